//! A router of multicast-based micro-mobility, M&M (Helmy, Jaseemuddin and Bhaskara, "Multicast-based Mobility", JSAC 2004 and CCR 2002).
//!
//! Each mobile node has a multicast group, which its address is mapped to by an algorithm. Where the mobile node is, its base station joins the
//! group, towards the gateway as the root, as in sparse mode (RFC 7761): a join ends at the first router that is in the tree. A handover is one
//! station joining and another leaving; while both are joined, packets come over both (bicast). With a trigger, candidate access routers join
//! before, and keep packets until the mobile node reports to one of them.
//!
//! Differences: packets keep the mobile node's address, and each router maps it to the group itself; a packet that has the group's address is
//! treated the same. A candidate access router learns of a handover in a message that routers pass on, each towards the stations that are
//! named. A packet from below goes up to the root before it goes down.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::micro::Body;

use super::Ports;
use super::aged::Aged;
use super::config::MulticastMobility;
use super::core::{Core, Received};
use super::io::{Action, Event, Forward, MessageDrop, PacketDrop, Wake};
use crate::deadline::earliest;
use crate::packet_buffer::{Buffers, DiscardReason, Fate};
use crate::{Change, InterfaceId};

/// Where members of a group are, and until when each interface has joined.
#[derive(Clone, Debug, Default)]
struct Group(Vec<(InterfaceId, Instant)>);

impl Group {
    fn ports(&self, now: Instant) -> Ports {
        self.0.iter().filter(|(_, until)| now < *until).map(|(port, _)| *port).collect()
    }

    fn join(&mut self, now: Instant, port: InterfaceId, until: Instant) {
        self.0.retain(|(other, over)| *other != port && now < *over);
        self.0.push((port, until));
    }

    fn leave(&mut self, port: InterfaceId) {
        self.0.retain(|(other, _)| *other != port);
    }
}

/// What a base station knows of a mobile node and its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It is there.
    Here,
    /// It may come.
    Expected,
    /// It has left, and the station leaves the group soon.
    Gone,
}

/// The state of a router.
#[derive(Debug)]
pub(super) struct MulticastRouter {
    config: MulticastMobility,
    groups: Aged<Ipv4Addr, Group>,
    presence: Aged<Ipv4Addr, Presence>,
    pub(super) buffers: Buffers<Ipv4Addr>,
    /// When this router joins again.
    join: Option<Instant>,
}

impl MulticastRouter {
    pub(super) fn new(config: MulticastMobility, room: usize) -> Self {
        Self {
            config,
            groups: Aged::new(room),
            presence: Aged::new(room),
            buffers: Buffers::new(config.buffer.limits()),
            join: None,
        }
    }

    pub(super) fn route_count(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn route(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ports> {
        self.groups.get(now, mobile).map(|group| group.ports(now)).filter(|ports| !ports.is_empty())
    }

    /// The mobile node that a packet is for, by its address or by its group's.
    pub(super) fn mobile(&self, core: &Core, destination: Ipv4Addr) -> Ipv4Addr {
        self.config.mapping.mobile(core.domain, destination).unwrap_or(destination)
    }

    /// What becomes of a packet for a mobile node of the domain.
    pub(super) fn handle_packet(
        &mut self,
        core: &Core,
        now: Instant,
        from: InterfaceId,
        mobile: Ipv4Addr,
        len: u32,
    ) -> Forward {
        if let Some(up) = core.up()
            && up != from
        {
            return Forward::To(Ports::one(up));
        }
        let ports = self.route(now, mobile).unwrap_or(Ports::NONE);
        let rest = ports.without(core.cell_port());
        if ports == rest {
            return if rest.is_empty() { Forward::Drop(PacketDrop::NoRoute) } else { Forward::To(rest) };
        }
        let kept = match self.presence.get(now, mobile) {
            // What comes now does not overtake what waits.
            Some(Presence::Here) if !self.buffers.holds(mobile) => return Forward::To(ports),
            Some(Presence::Here) => self.buffers.keep(now, mobile, len, false).ok_or(PacketDrop::BufferFull),
            Some(Presence::Expected) if !self.config.buffer.is_none() => {
                self.buffers.keep(now, mobile, len, true).ok_or(PacketDrop::BufferFull)
            }
            Some(Presence::Expected) => Err(PacketDrop::Early),
            Some(Presence::Gone) | None => Err(PacketDrop::NotAttached),
        };
        Forward::beside(kept, rest)
    }

    pub(super) fn handle_message(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) {
        let mobile = received.message.mobile;
        let outcome = match &received.message.body {
            Body::Report => self.report(core, now, received),
            Body::Announce { next } => self.announce(core, now, received, next),
            Body::Expect { candidates } => {
                self.expect(core, now, received.from, mobile, candidates, received.payload)
            }
            Body::Join => self.join(core, now, mobile, received.from),
            Body::Prune => {
                self.leave(core, now, mobile, received.from);
                Ok(())
            }
            _ => Err(MessageDrop::NotForUs),
        };
        if let Err(reason) = outcome {
            core.refuse(received, reason);
        }
    }

    /// Packets go to `port` as well; the first there is has this router join itself.
    fn join(
        &mut self,
        core: &mut Core,
        now: Instant,
        mobile: Ipv4Addr,
        port: InterfaceId,
    ) -> Result<(), MessageDrop> {
        let until = now + self.config.hold_time;
        let before = self.route(now, mobile);
        if let Some(group) = self.groups.get_mut(now, mobile) {
            group.join(now, port, until);
            self.groups.keep_until(mobile, until);
        } else {
            let mut group = Group::default();
            group.join(now, port, until);
            self.groups.insert(mobile, group, until).map_err(|_| MessageDrop::TableFull)?;
        }
        let ports = self.route(now, mobile).unwrap_or(Ports::NONE);
        core.route_set(mobile, before, ports);
        if before.is_none() {
            self.send_join(core, now, mobile);
        }
        Ok(())
    }

    fn send_join(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr) {
        if core.up().is_none() {
            return;
        }
        let payload = core.make(now, mobile, Ipv4Addr::UNSPECIFIED, Body::Join);
        core.send_up(&payload);
        self.join.get_or_insert(now + self.config.join_interval);
    }

    /// Packets no longer go to `port`; when there is none left, this router leaves.
    fn leave(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr, port: InterfaceId) {
        let Some(before) = self.route(now, mobile) else { return };
        if let Some(group) = self.groups.get_mut(now, mobile) {
            group.leave(port);
        }
        match self.route(now, mobile) {
            Some(ports) => core.route_set(mobile, Some(before), ports),
            None => {
                self.groups.remove(mobile);
                core.route_event(mobile, Ports::NONE, Change::Removed);
                let payload = core.make(now, mobile, Ipv4Addr::UNSPECIFIED, Body::Prune);
                core.send_up(&payload);
            }
        }
    }

    /// The mobile node is in the cell.
    fn report(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) -> Result<(), MessageDrop> {
        let (mobile, from) = (received.message.mobile, received.from);
        if !core.is_cell(from) {
            return Err(MessageDrop::WrongInterface);
        }
        let until = now + self.config.hold_time;
        if self.presence.get(now, mobile) == Some(&Presence::Here) {
            self.presence.keep_until(mobile, until);
        } else {
            self.presence.insert(mobile, Presence::Here, until).map_err(|_| MessageDrop::TableFull)?;
            core.outbox.event(Event::Arrived { mobile });
        }
        self.join(core, now, mobile, from)?;
        self.buffers.begin_release(now, mobile);
        core.confirm(mobile, received.message.timestamp);
        Ok(())
    }

    /// The mobile node in the cell says that it will go to one of `next`.
    fn announce(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
        next: &[Ipv4Addr],
    ) -> Result<(), MessageDrop> {
        let mobile = received.message.mobile;
        let serves = self.presence.get(now, mobile) == Some(&Presence::Here);
        let (candidates, payload) = core.announced(now, received, self.config.trigger, next, serves)?;
        self.expect(core, now, received.from, mobile, &candidates, &payload)
    }

    /// Passes the news on to candidates; one of them joins.
    fn expect(
        &mut self,
        core: &mut Core,
        now: Instant,
        from: InterfaceId,
        mobile: Ipv4Addr,
        candidates: &[Ipv4Addr],
        payload: &[u8],
    ) -> Result<(), MessageDrop> {
        let ports = core.directions(candidates, from);
        core.send(ports, payload);
        let Some(cell) = core.cell.filter(|cell| ports.contains(*cell)) else { return Ok(()) };
        if self.presence.get(now, mobile) == Some(&Presence::Here) {
            return Ok(());
        }
        let until = now + self.config.candidate_lifetime;
        self.presence.insert(mobile, Presence::Expected, until).map_err(|_| MessageDrop::TableFull)?;
        core.outbox.event(Event::Expected { mobile });
        self.join(core, now, mobile, cell)
    }

    pub(super) fn note_attached(&mut self, now: Instant, mobile: Ipv4Addr) {
        if self.presence.get(now, mobile) == Some(&Presence::Gone) {
            // It takes the place of what is there.
            let _in_its_place = self.presence.insert(mobile, Presence::Here, now + self.config.hold_time);
        }
    }

    pub(super) fn note_detached(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr) {
        if self.presence.get(now, mobile) != Some(&Presence::Here) {
            return;
        }
        if self.config.leave_delay.is_zero() {
            self.presence.remove(mobile);
            return self.leave_cell(core, now, mobile);
        }
        // It takes the place of what is there.
        let _in_its_place = self.presence.insert(mobile, Presence::Gone, now + self.config.leave_delay);
    }

    fn leave_cell(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr) {
        self.buffers.clear(mobile, DiscardReason::Expired);
        if let Some(cell) = core.cell {
            self.leave(core, now, mobile, cell);
        }
    }

    pub(super) fn poll_action(&mut self, core: &Core, now: Instant) -> Option<Action> {
        Some(match self.buffers.poll(now)? {
            Fate::Released(_, token) => Action::Release { token, ports: core.cell_port() },
            Fate::Discarded(token, reason) => Action::Discard { token, reason },
        })
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let at = |at: Option<Instant>, wake| at.map(|at| (at, wake));
        let tables = earliest(
            at(self.groups.deadline(), Wake::RouteLifetime),
            at(self.presence.deadline(), Wake::RouteLifetime),
        );
        let buffer = at(self.buffers.deadline(), Wake::Buffer);
        earliest(earliest(buffer, at(self.join, Wake::Refresh)), tables)
    }

    pub(super) fn expire(&mut self, core: &mut Core, now: Instant) {
        self.buffers.expire(now);
        while let Some((mobile, _)) = self.presence.take_expired(now) {
            self.leave_cell(core, now, mobile);
        }
        while let Some((mobile, _)) = self.groups.take_expired(now) {
            core.route_event(mobile, Ports::NONE, Change::Expired);
        }
        if self.join.is_some_and(|at| at <= now) {
            self.join = None;
            let mobiles: Vec<Ipv4Addr> = self.groups.iter().map(|(mobile, _)| mobile).collect();
            for mobile in mobiles {
                if self.route(now, mobile).is_some() {
                    self.send_join(core, now, mobile);
                }
            }
        }
    }
}
