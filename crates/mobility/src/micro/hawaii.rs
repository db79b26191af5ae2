//! A router of a HAWAII domain (draft-ietf-mobileip-hawaii; Ramjee et al., ICNP 1999): host-based forwarding entries, the four path setup
//! schemes, refreshes hop by hop.
//!
//! A path setup message that a mobile host signs goes from its new base station towards the old one; what the old one then sends to the new one
//! goes back the same way. The router where the two paths part is the crossover router. On the way:
//!
//! | scheme | to the old base station | at the old base station | back to the new one |
//! |---|---|---|---|
//! | MSF | nothing | packets go to the new one | each router sends to the new one |
//! | SSF | packets *from the side of the old one* go to the new one; new branch: all do | packets go to the new one | the crossover router sends to the new one |
//! | UNF | each router sends to the new one | the entry leads to the new one; what was kept is thrown away | nothing |
//! | MNF | the same, but the crossover router sends to both and the old branch stays | as with UNF | each router sends to the new one |
//!
//! With MSF and SSF the old base station keeps what comes while the host is not in its cell (section 5.1).
//!
//! A mobile host's entries last as long as they are refreshed: by the host at its base station, and from there on by each router at the next,
//! for all hosts in one message (section 6).
//!
//! Differences: base stations and crossover routers are known by their direction in the tree instead of by the routing protocol; a mobile host
//! speaks to the base station in these messages instead of in Mobile IP's; power-up is confirmed by the base station.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::micro::{Body, MicroMessage, PathScheme};

use super::Ports;
use super::aged::Aged;
use super::cell::Cell;
use super::config::Hawaii;
use super::core::{Core, Received};
use super::io::{Action, Event, Forward, MessageDrop, PacketDrop, Wake};
use crate::deadline::earliest;
use crate::packet_buffer::{Buffers, DiscardReason, Fate};
use crate::{Change, InterfaceId};

/// A host-based forwarding entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    port: InterfaceId,
    /// MNF: where packets go as well, and until when.
    dual: Option<(InterfaceId, Instant)>,
    /// SSF: packets that come by the first go to the second.
    interface_based: Option<(InterfaceId, InterfaceId)>,
}

impl Entry {
    const fn to(port: InterfaceId) -> Self {
        Self { port, dual: None, interface_based: None }
    }

    fn ports(&self, now: Instant) -> Ports {
        let dual = self.dual.filter(|(_, until)| now < *until);
        Ports::one(self.port).with(dual.map_or(Ports::NONE, |(port, _)| Ports::one(port)))
    }
}

/// The state of a router.
#[derive(Debug)]
pub(super) struct HawaiiRouter {
    config: Hawaii,
    entries: Aged<Ipv4Addr, Entry>,
    cell: Cell,
    pub(super) buffers: Buffers<Ipv4Addr>,
    /// New base station: the timestamps of messages that wait for the old one's answer.
    waiting: Aged<Ipv4Addr, u64>,
    /// When the next router has to be told that entries shall stay.
    refresh: Option<Instant>,
}

const fn forwards(scheme: PathScheme) -> bool {
    matches!(scheme, PathScheme::MultipleStreamForwarding | PathScheme::SingleStreamForwarding)
}

impl HawaiiRouter {
    pub(super) fn new(config: Hawaii, room: usize) -> Self {
        Self {
            config,
            entries: Aged::new(room),
            cell: Cell::new(room),
            buffers: Buffers::new(config.buffer.limits()),
            waiting: Aged::new(room),
            refresh: None,
        }
    }

    pub(super) fn route_count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn route(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ports> {
        self.entries.get(now, mobile).map(|entry| entry.ports(now))
    }

    /// What becomes of a packet for a mobile host of the domain.
    pub(super) fn handle_packet(
        &mut self,
        core: &Core,
        now: Instant,
        from: InterfaceId,
        mobile: Ipv4Addr,
        len: u32,
    ) -> Forward {
        let Some(entry) = self.entries.get(now, mobile).copied() else {
            return core.forward(from, Ports::NONE);
        };
        if let Some((_, to)) = entry.interface_based.filter(|(came, _)| *came == from) {
            return Forward::To(Ports::one(to));
        }
        if core.is_cell(entry.port) {
            return self.deliver(core, now, mobile, len);
        }
        // What an old branch still gets goes back where it came from.
        if core.is_up(entry.port) {
            return Forward::To(Ports::one(entry.port));
        }
        core.forward(from, entry.ports(now))
    }

    fn deliver(&mut self, core: &Core, now: Instant, mobile: Ipv4Addr, len: u32) -> Forward {
        let is_there = self.cell.has(mobile);
        if is_there && !self.buffers.holds(mobile) {
            return Forward::To(core.cell_port());
        }
        if !is_there && !forwards(self.config.scheme) {
            return Forward::Drop(PacketDrop::NotAttached);
        }
        let kept = self.buffers.keep(now, mobile, len, false);
        let reason =
            if self.config.buffer.is_none() { PacketDrop::NotAttached } else { PacketDrop::BufferFull };
        kept.map_or(Forward::Drop(reason), Forward::Hold)
    }

    pub(super) fn handle_message(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) {
        let outcome = match &received.message.body {
            Body::PathSetupPowerUp => self.power_up(core, now, received),
            Body::PathSetupUpdate { scheme, old } if *scheme == self.config.scheme => {
                self.update(core, now, received, *scheme, *old)
            }
            Body::PathSetupReturn { scheme } if *scheme == self.config.scheme => {
                self.answer(core, now, received, *scheme)
            }
            Body::PathRefresh { mobiles } => self.refreshed(core, now, received.from, mobiles),
            _ => Err(MessageDrop::NotForUs),
        };
        if let Err(reason) = outcome {
            core.refuse(received, reason);
        }
    }

    /// Has packets go to `port`.
    fn set(
        &mut self,
        core: &mut Core,
        now: Instant,
        mobile: Ipv4Addr,
        entry: Entry,
    ) -> Result<(), MessageDrop> {
        let before = self.route(now, mobile);
        let expires = now + self.config.entry_lifetime;
        self.entries.insert(mobile, entry, expires).map_err(|_| MessageDrop::TableFull)?;
        core.route_set(mobile, before, entry.ports(now));
        if core.up().is_some() && self.refresh.is_none() {
            self.refresh = Some(now + self.config.refresh_interval);
        }
        Ok(())
    }

    /// The host is in the cell: with the same entry as before the others are refreshed by routers.
    fn power_up(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
    ) -> Result<(), MessageDrop> {
        let (mobile, from) = (received.message.mobile, received.from);
        if core.is_up(from) {
            return Err(MessageDrop::WrongInterface);
        }
        let is_known = self.entries.get(now, mobile).is_some_and(|entry| entry.port == from);
        self.set(core, now, mobile, Entry::to(from))?;
        if core.is_cell(from) {
            if !is_known {
                core.outbox.event(Event::Arrived { mobile });
            }
            self.buffers.begin_release(now, mobile);
            core.confirm(mobile, received.message.timestamp);
            if is_known {
                return Ok(());
            }
        }
        core.send_up(received.payload);
        Ok(())
    }

    /// A path setup message on its way from the new base station to the old one.
    fn update(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
        scheme: PathScheme,
        old: Ipv4Addr,
    ) -> Result<(), MessageDrop> {
        let MicroMessage { mobile, station: new, timestamp, .. } = received.message;
        let from = received.from;
        if core.is_cell(from) {
            self.set(core, now, mobile, Entry::to(from))?;
            let expires = now + self.config.entry_lifetime;
            self.waiting.insert(mobile, timestamp, expires).map_err(|_| MessageDrop::TableFull)?;
            core.outbox.event(Event::Arrived { mobile });
            self.buffers.begin_release(now, mobile);
        }
        let towards_old = core.direction(old).filter(|next| *next != from);
        let Some(next) = towards_old.filter(|next| !core.is_cell(*next)) else {
            return self.end_of_path(core, now, received, scheme, new);
        };
        let entry = self.entries.get(now, mobile).copied();
        let (is_old_branch, is_new_branch) = (core.is_up(from), core.is_up(next));
        match scheme {
            _ if core.is_cell(from) => {}
            PathScheme::MultipleStreamForwarding => {}
            PathScheme::SingleStreamForwarding if is_new_branch => {
                self.set(core, now, mobile, Entry::to(from))?;
            }
            PathScheme::SingleStreamForwarding => {
                // Where there is no entry, all packets go as these do.
                let port = entry.map_or(from, |entry| entry.port);
                let entry = Entry { interface_based: Some((next, from)), ..Entry::to(port) };
                self.set(core, now, mobile, entry)?;
            }
            PathScheme::MulticastNonForwarding if is_old_branch => {}
            PathScheme::MulticastNonForwarding if entry.is_some_and(|entry| entry.port == next) => {
                let dual = Some((next, now + self.config.dual_cast));
                self.set(core, now, mobile, Entry { dual, ..Entry::to(from) })?;
            }
            PathScheme::UnicastNonForwarding | PathScheme::MulticastNonForwarding => {
                self.set(core, now, mobile, Entry::to(from))?;
            }
        }
        core.send(Ports::one(next), received.payload);
        Ok(())
    }

    /// This is the old base station, or the domain root router, which knows none of that address.
    fn end_of_path(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
        scheme: PathScheme,
        new: Ipv4Addr,
    ) -> Result<(), MessageDrop> {
        let (mobile, from) = (received.message.mobile, received.from);
        if core.is_cell(from) {
            // The host has come back to where it was, or names no other base station.
            if let Some(timestamp) = self.waiting.remove(mobile) {
                core.confirm(mobile, timestamp);
            }
            return Ok(());
        }
        self.set(core, now, mobile, Entry::to(from))?;
        if forwards(scheme) {
            self.buffers.begin_release(now, mobile);
        } else {
            self.buffers.clear(mobile, DiscardReason::CopyNotNeeded);
        }
        core.outbox.event(Event::Moved { mobile });
        let payload = core.make(now, mobile, new, Body::PathSetupReturn { scheme });
        core.send(Ports::one(from), &payload);
        Ok(())
    }

    /// What the old base station sends, on its way to the new one.
    fn answer(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
        scheme: PathScheme,
    ) -> Result<(), MessageDrop> {
        let MicroMessage { mobile, station: new, .. } = received.message;
        let Some(next) = core.direction(new).filter(|next| *next != received.from) else {
            return Err(MessageDrop::WrongStation);
        };
        if core.is_cell(next) {
            let Some(timestamp) = self.waiting.remove(mobile) else { return Err(MessageDrop::Unexpected) };
            core.confirm(mobile, timestamp);
            return Ok(());
        }
        let is_old_branch = core.is_up(next);
        match scheme {
            PathScheme::MultipleStreamForwarding | PathScheme::MulticastNonForwarding => {
                self.set(core, now, mobile, Entry::to(next))?;
            }
            PathScheme::SingleStreamForwarding if !is_old_branch => {
                // What is still on its way from the old base station needs its entry.
                let interface_based = self.entries.get(now, mobile).and_then(|entry| entry.interface_based);
                self.set(core, now, mobile, Entry { interface_based, ..Entry::to(next) })?;
            }
            PathScheme::SingleStreamForwarding | PathScheme::UnicastNonForwarding => {}
        }
        core.send(Ports::one(next), received.payload);
        Ok(())
    }

    /// The router below says that these hosts are still there.
    fn refreshed(
        &mut self,
        core: &mut Core,
        now: Instant,
        from: InterfaceId,
        mobiles: &[Ipv4Addr],
    ) -> Result<(), MessageDrop> {
        let (expires, domain) = (now + self.config.entry_lifetime, core.domain);
        let mut outcome = Ok(());
        for mobile in mobiles.iter().copied().filter(|mobile| domain.contains(*mobile)) {
            match self.entries.get(now, mobile) {
                Some(entry) if entry.port == from => self.entries.keep_until(mobile, expires),
                Some(_) => {}
                // It was lost, or the message that would have made it.
                None => outcome = outcome.and(self.set(core, now, mobile, Entry::to(from))),
            }
        }
        outcome
    }

    /// Tells the next router which hosts are below this one.
    fn refresh(&mut self, core: &mut Core, now: Instant) {
        let is_below = |entry: &Entry| core.below.contains(entry.port) || core.is_cell(entry.port);
        let mobiles: Vec<Ipv4Addr> =
            self.entries.iter().filter(|(_, entry)| is_below(entry)).map(|(mobile, _)| mobile).collect();
        for mobiles in mobiles.chunks(MicroMessage::MAX_ADDRESSES) {
            let (nobody, body) = (Ipv4Addr::UNSPECIFIED, Body::PathRefresh { mobiles: mobiles.to_vec() });
            let payload = core.make(now, nobody, nobody, body);
            core.send_up(&payload);
        }
        self.refresh = (self.entries.len() > 0).then(|| now + self.config.refresh_interval);
    }

    pub(super) fn note_attached(&mut self, core: &Core, now: Instant, mobile: Ipv4Addr) {
        self.cell.attach(mobile);
        if self.entries.get(now, mobile).is_some_and(|entry| core.is_cell(entry.port)) {
            self.buffers.begin_release(now, mobile);
        }
    }

    pub(super) fn note_detached(&mut self, mobile: Ipv4Addr) {
        self.cell.detach(mobile);
        self.buffers.stop_release(mobile);
    }

    pub(super) fn poll_action(&mut self, now: Instant) -> Option<Action> {
        Some(match self.buffers.poll(now)? {
            Fate::Released(mobile, token) => {
                let ports = self.route(now, mobile).unwrap_or(Ports::NONE);
                Action::Release { token, ports }
            }
            Fate::Discarded(token, reason) => Action::Discard { token, reason },
        })
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let at = |at: Option<Instant>, wake| at.map(|at| (at, wake));
        let tables = earliest(
            at(self.entries.deadline(), Wake::RouteLifetime),
            at(self.waiting.deadline(), Wake::RouteLifetime),
        );
        let buffer = at(self.buffers.deadline(), Wake::Buffer);
        earliest(earliest(buffer, at(self.refresh, Wake::Refresh)), tables)
    }

    pub(super) fn expire(&mut self, core: &mut Core, now: Instant) {
        self.buffers.expire(now);
        while let Some((mobile, _)) = self.entries.take_expired(now) {
            core.route_event(mobile, Ports::NONE, Change::Expired);
            self.buffers.clear(mobile, DiscardReason::Expired);
        }
        while self.waiting.take_expired(now).is_some() {}
        if self.refresh.is_some_and(|at| at <= now) {
            self.refresh(core, now);
        }
    }
}
