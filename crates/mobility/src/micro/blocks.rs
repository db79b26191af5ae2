//! A router that does what the building blocks say (Bhaskara and Helmy, "TCP over Micro Mobility Protocols", section II; Bhaskara, Helmy and
//! Gupta, VTC 2003).
//!
//! Host routes lead down the tree. An *Attach* of the mobile node goes from its station up to the gateway and changes them; the router where
//! the old path branches off, the crossover router, sends it down there as well, so that the old station and candidates know. An *Announce*
//! has the station send an *Expect* to the candidates, and each router on the way adds them to the host route for a time.

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::micro::Body;

use super::Ports;
use super::aged::Aged;
use super::config::Blocks;
use super::core::{Core, Received};
use super::io::{Action, Event, Forward, MessageDrop, PacketDrop, Wake};
use crate::deadline::earliest;
use crate::packet_buffer::{Buffers, DiscardReason, Fate};
use crate::{Change, InterfaceId};

/// Where packets for a mobile node go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    /// To where it is.
    serving: Ports,
    /// To candidates, or to where it was (bicast).
    extra: Ports,
    extra_until: Instant,
}

impl Route {
    fn ports(&self, now: Instant) -> Ports {
        if now < self.extra_until { self.serving.with(self.extra) } else { self.serving }
    }
}

/// What a base station knows of a mobile node and its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It is there.
    Here,
    /// It may come.
    Expected,
    /// It has left, and nobody has said where it is.
    Gone,
    /// It is elsewhere, and packets for it go on.
    Left,
}

/// The state of a router.
#[derive(Debug)]
pub(super) struct BlocksRouter {
    config: Blocks,
    routes: Aged<Ipv4Addr, Route>,
    presence: Aged<Ipv4Addr, Presence>,
    pub(super) buffers: Buffers<Ipv4Addr>,
}

impl BlocksRouter {
    pub(super) fn new(config: Blocks, room: usize) -> Self {
        Self {
            config,
            routes: Aged::new(room),
            presence: Aged::new(room),
            buffers: Buffers::new(config.buffer.limits()),
        }
    }

    pub(super) fn route_count(&self) -> usize {
        self.routes.len()
    }

    pub(super) fn route(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ports> {
        self.routes.get(now, mobile).map(|route| route.ports(now))
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
        let ports = self.route(now, mobile).unwrap_or(Ports::NONE).without(Ports::one(from));
        let cell = core.cell_port();
        if ports.both(cell).is_empty() {
            return match (self.presence.get(now, mobile), core.up()) {
                // What comes behind the news that the mobile node is elsewhere goes after it.
                (Some(Presence::Left), Some(up)) if up == from && ports.is_empty() => {
                    Forward::To(Ports::one(up))
                }
                _ => core.forward(from, ports),
            };
        }
        let rest = ports.without(cell);
        let kept = match self.presence.get(now, mobile) {
            // What comes now does not overtake what waits.
            Some(Presence::Here) if !self.buffers.holds(mobile) => return Forward::To(ports),
            Some(Presence::Expected) if !self.config.buffer.is_none() => self.keep(now, mobile, len, true),
            Some(Presence::Expected) => Err(PacketDrop::Early),
            Some(Presence::Gone) if self.config.forward.is_zero() => Err(PacketDrop::NotAttached),
            Some(Presence::Here | Presence::Gone | Presence::Left) => self.keep(now, mobile, len, false),
            None => Err(PacketDrop::NotAttached),
        };
        Forward::beside(kept, rest)
    }

    fn keep(
        &mut self,
        now: Instant,
        mobile: Ipv4Addr,
        len: u32,
        is_copy: bool,
    ) -> Result<crate::packet_buffer::PacketToken, PacketDrop> {
        self.buffers.keep(now, mobile, len, is_copy).ok_or(PacketDrop::BufferFull)
    }

    pub(super) fn handle_message(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) {
        let outcome = match &received.message.body {
            Body::Attach => self.handle_attach(core, now, received),
            Body::Announce { next } => self.handle_announce(core, now, received, next),
            Body::Expect { candidates } => {
                let mobile = received.message.mobile;
                self.expect(core, now, received.from, mobile, candidates, received.payload)
            }
            _ => Err(MessageDrop::NotForUs),
        };
        if let Err(reason) = outcome {
            core.refuse(received, reason);
        }
    }

    /// The mobile node is where the message comes from.
    fn handle_attach(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
    ) -> Result<(), MessageDrop> {
        let (mobile, from) = (received.message.mobile, received.from);
        let old = self.routes.get(now, mobile).copied();
        if core.is_up(from) {
            self.moved_up(core, now, received, old);
            return Ok(());
        }
        let (port, expires) = (Ports::one(from), now + self.config.route_lifetime);
        match old {
            Some(route) if route.serving == port => self.routes.keep_until(mobile, expires),
            _ => {
                let before = old.map_or(Ports::NONE, |route| route.serving);
                let others = old.map_or(Ports::NONE, |route| route.ports(now)).without(port);
                let route = Route {
                    serving: port,
                    extra: before.without(port),
                    extra_until: now + self.config.bicast,
                };
                self.routes.insert(mobile, route, expires).map_err(|_| MessageDrop::TableFull)?;
                let change = if before.is_empty() { Change::Created } else { Change::Updated };
                core.route_event(mobile, route.ports(now), change);
                core.send(others.both(core.below), received.payload);
                if !others.both(core.cell_port()).is_empty() {
                    self.leave_cell(core, now, mobile);
                }
            }
        }
        if core.is_cell(from) {
            self.arrive(core, now, mobile)?;
            core.confirm(mobile, received.message.timestamp);
        }
        core.send_up(received.payload);
        Ok(())
    }

    fn arrive(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr) -> Result<(), MessageDrop> {
        let expires = now + self.config.route_lifetime;
        if self.presence.get(now, mobile) == Some(&Presence::Here) {
            self.presence.keep_until(mobile, expires);
        } else {
            self.presence.insert(mobile, Presence::Here, expires).map_err(|_| MessageDrop::TableFull)?;
            core.outbox.event(Event::Arrived { mobile });
        }
        self.buffers.begin_release(now, mobile);
        Ok(())
    }

    /// The mobile node is not below this router any longer.
    fn moved_up(&mut self, core: &mut Core, now: Instant, received: &Received<'_>, old: Option<Route>) {
        let mobile = received.message.mobile;
        let Some(route) = old else {
            if self.presence.get(now, mobile).is_some() {
                self.leave_cell(core, now, mobile);
            }
            return;
        };
        let ports = route.ports(now);
        core.send(ports.both(core.below), received.payload);
        if !ports.both(core.cell_port()).is_empty() {
            self.leave_cell(core, now, mobile);
        }
        let stays = !self.config.bicast.is_zero() && !route.serving.is_empty();
        if stays {
            let route = Route { extra: Ports::NONE, ..route };
            // It takes the place of what is there.
            let _in_its_place = self.routes.insert(mobile, route, now + self.config.bicast);
        } else {
            self.routes.remove(mobile);
            core.route_event(mobile, Ports::NONE, Change::Removed);
        }
    }

    /// The mobile node is known to be elsewhere.
    fn leave_cell(&mut self, core: &mut Core, now: Instant, mobile: Ipv4Addr) {
        let presence = self.presence.get(now, mobile).copied();
        let next = match presence {
            Some(Presence::Here | Presence::Gone) if !self.config.forward.is_zero() => {
                Some((Presence::Left, self.config.forward))
            }
            Some(Presence::Here) if !self.config.bicast.is_zero() => {
                Some((Presence::Here, self.config.bicast))
            }
            Some(Presence::Left) => return,
            _ => None,
        };
        match next {
            Some((presence, lifetime)) => {
                // It takes the place of what is there.
                let _in_its_place = self.presence.insert(mobile, presence, now + lifetime);
                self.buffers.begin_release(now, mobile);
            }
            None => {
                self.presence.remove(mobile);
                self.buffers.clear(mobile, DiscardReason::CopyNotNeeded);
            }
        }
        core.outbox.event(Event::Moved { mobile });
    }

    /// The mobile node in the cell says that it will go to one of `next`.
    fn handle_announce(
        &mut self,
        core: &mut Core,
        now: Instant,
        received: &Received<'_>,
        next: &[Ipv4Addr],
    ) -> Result<(), MessageDrop> {
        let mobile = received.message.mobile;
        let serves = self.routes.get(now, mobile).is_some_and(|route| route.serving == core.cell_port());
        let (candidates, payload) = core.announced(now, received, self.config.trigger, next, serves)?;
        self.expect(core, now, received.from, mobile, &candidates, &payload)
    }

    /// Packets for the mobile node go to candidates, too, that are not where the message comes from.
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
        let (cell, until) = (core.cell_port(), now + self.config.candidate_lifetime);
        let added = ports.both(core.below.with(cell));
        if !added.is_empty() {
            if let Some(route) = self.routes.get_mut(now, mobile) {
                let extra = route.ports(now).without(route.serving).with(added).without(route.serving);
                (route.extra, route.extra_until) = (extra, until);
                self.routes.keep_until(mobile, until);
            } else {
                let route = Route { serving: Ports::NONE, extra: added, extra_until: until };
                self.routes.insert(mobile, route, until).map_err(|_| MessageDrop::TableFull)?;
            }
            let ports = self.route(now, mobile).unwrap_or(Ports::NONE);
            core.route_event(mobile, ports, Change::Updated);
        }
        if !added.both(cell).is_empty() && self.presence.get(now, mobile) != Some(&Presence::Here) {
            let expected = self.presence.insert(mobile, Presence::Expected, until);
            expected.map_err(|_| MessageDrop::TableFull)?;
            core.outbox.event(Event::Expected { mobile });
        }
        core.send(ports, payload);
        Ok(())
    }

    /// The link layer is there. What is kept waits until the mobile node asks for it; where nothing is kept, nothing has to wait.
    pub(super) fn note_attached(&mut self, now: Instant, mobile: Ipv4Addr) {
        let is_awaited = match self.presence.get(now, mobile) {
            Some(Presence::Gone) => true,
            Some(Presence::Expected) => self.config.buffer.is_none(),
            Some(Presence::Here | Presence::Left) | None => false,
        };
        if is_awaited {
            let expires = now + self.config.route_lifetime;
            // It takes the place of what is there.
            let _in_its_place = self.presence.insert(mobile, Presence::Here, expires);
            self.buffers.begin_release(now, mobile);
        }
    }

    pub(super) fn note_detached(&mut self, now: Instant, mobile: Ipv4Addr) {
        if self.presence.get(now, mobile) == Some(&Presence::Here) {
            let until = now + self.config.candidate_lifetime;
            // It takes the place of what is there.
            let _in_its_place = self.presence.insert(mobile, Presence::Gone, until);
            self.buffers.stop_release(mobile);
        }
    }

    pub(super) fn poll_action(&mut self, core: &Core, now: Instant) -> Option<Action> {
        let (mobile, token) = match self.buffers.poll(now)? {
            Fate::Released(mobile, token) => (mobile, token),
            Fate::Discarded(token, reason) => return Some(Action::Discard { token, reason }),
        };
        let ports = match self.presence.get(now, mobile) {
            Some(Presence::Left) => {
                let up = core.up().map_or(Ports::NONE, Ports::one);
                self.route(now, mobile).map_or(up, |ports| ports.without(core.cell_port()))
            }
            _ => core.cell_port(),
        };
        Some(Action::Release { token, ports })
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let at = |at: Option<Instant>, wake| at.map(|at| (at, wake));
        let kept = earliest(
            at(self.routes.deadline(), Wake::RouteLifetime),
            at(self.presence.deadline(), Wake::RouteLifetime),
        );
        earliest(at(self.buffers.deadline(), Wake::Buffer), kept)
    }

    pub(super) fn expire(&mut self, core: &mut Core, now: Instant) {
        self.buffers.expire(now);
        while let Some((mobile, _)) = self.routes.take_expired(now) {
            core.route_event(mobile, Ports::NONE, Change::Expired);
        }
        while let Some((mobile, _)) = self.presence.take_expired(now) {
            self.buffers.clear(mobile, DiscardReason::Expired);
        }
    }
}
