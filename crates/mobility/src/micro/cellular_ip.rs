//! A node of a Cellular IP network (draft-ietf-mobileip-cellularip-00): Route Cache, Paging Cache, hard and semi-soft handover.
//!
//! Packets from a mobile host go up to the gateway, hop by hop, and on their way they renew the mappings that lead back to it (section 3.6.2).
//! Only route-update and paging-update packets make or change mappings, for only they are authenticated. Packets to a mobile host go where its
//! Route Cache mappings lead; those to an idle host where its Paging Cache mapping leads, and from a node without a Paging Cache everywhere
//! below (section 3.6.3).
//!
//! A route-update packet with S adds a mapping instead of replacing them: the crossover node sends to both base stations then, to the new one
//! through a delay device, and that ends with the first route-update packet without S (section 4.1). The delay makes up for the shorter way
//! that the new base station may have: the host finds there what it has not had from the old one yet. When it ends, what waits in the delay
//! device goes at once, in front of what follows.
//!
//! Differences: a base station takes packets from hosts only that its link layer has in the cell; a message names its station (`careof_wire::micro`), and a mapping that a host's first semi-soft packet makes where there was
//! none is an ordinary one. There are at most two mappings for a host: a host hands over to one base station at a time.

use alloc::collections::VecDeque;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::micro::Body;

use super::Ports;
use super::aged::Aged;
use super::cell::Cell;
use super::config::{Buffer, CellularHandover, CellularIp};
use super::core::{Core, Received};
use super::io::{Action, Event, Forward, MessageDrop, PacketDrop, Wake};
use crate::deadline::earliest;
use crate::packet_buffer::{Buffers, DiscardReason, Fate, PacketToken};
use crate::{Change, InterfaceId};

/// One mapping of the Route Cache.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    port: InterfaceId,
    until: Instant,
}

impl Mapping {
    fn ports(self, now: Instant) -> Ports {
        if now < self.until { Ports::one(self.port) } else { Ports::NONE }
    }
}

/// The mappings of a mobile host.
#[derive(Clone, Copy, Debug)]
struct Mappings {
    main: Mapping,
    /// What a semi-soft packet has added.
    semi_soft: Option<Mapping>,
}

impl Mappings {
    fn main(&self, now: Instant) -> Ports {
        self.main.ports(now)
    }

    fn semi_soft(&self, now: Instant) -> Ports {
        self.semi_soft.map_or(Ports::NONE, |mapping| mapping.ports(now))
    }

    fn ports(&self, now: Instant) -> Ports {
        self.main(now).with(self.semi_soft(now))
    }
}

/// A packet in the delay device.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    until: Instant,
    mobile: Ipv4Addr,
    token: PacketToken,
}

/// The state of a node.
#[derive(Debug)]
pub(super) struct CellularIpRouter {
    config: CellularIp,
    routes: Aged<Ipv4Addr, Mappings>,
    paging: Aged<Ipv4Addr, InterfaceId>,
    cell: Cell,
    /// The delay device: the packets of each host, and in which order the device lets all of them go.
    pub(super) buffers: Buffers<Ipv4Addr>,
    delayed: VecDeque<Delayed>,
}

impl CellularIpRouter {
    pub(super) fn new(config: CellularIp, room: usize) -> Self {
        let buffer = match config.handover {
            CellularHandover::SemiSoft { packets, .. } => {
                Buffer { packets, total_packets: packets, ..Buffer::packets(packets) }
            }
            CellularHandover::Hard => Buffer::NONE,
        };
        Self {
            config,
            routes: Aged::new(room),
            paging: Aged::new(room),
            cell: Cell::new(room),
            buffers: Buffers::new(Buffer { when_full: super::WhenFull::DropTail, ..buffer }.limits()),
            delayed: VecDeque::new(),
        }
    }

    pub(super) fn route_count(&self) -> usize {
        self.routes.len()
    }

    pub(super) fn paging_count(&self) -> usize {
        self.paging.len()
    }

    pub(super) fn route(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ports> {
        self.routes.get(now, mobile).map(|mappings| mappings.ports(now))
    }

    /// Whether a packet that comes from the cell is from a host that is there: data packets renew mappings, and nobody shall renew those of
    /// others.
    pub(super) fn is_from_here(&self, core: &Core, from: InterfaceId, source: Ipv4Addr) -> bool {
        !core.is_cell(from) || !core.domain.contains(source) || self.cell.has(source)
    }

    /// A packet from `source` has come from below: the mappings by which packets go back to it last on.
    pub(super) fn note_uplink(&mut self, core: &Core, now: Instant, from: InterfaceId, source: Ipv4Addr) {
        if !core.below.contains(from) && !core.is_cell(from) {
            return;
        }
        let until = now + self.config.route_timeout;
        self.routes.renew_if(now, source, until, |mappings| {
            let mut is_renewed = false;
            for mapping in [Some(&mut mappings.main), mappings.semi_soft.as_mut()].into_iter().flatten() {
                if mapping.port == from && now < mapping.until {
                    mapping.until = until;
                    is_renewed = true;
                }
            }
            is_renewed
        });
        self.paging.renew_if(now, source, now + self.config.paging_timeout, |port| *port == from);
    }

    /// What becomes of a packet for a mobile host of the domain.
    pub(super) fn handle_packet(
        &mut self,
        core: &mut Core,
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
        let (main, semi_soft) = self
            .routes
            .get(now, mobile)
            .map_or((Ports::NONE, Ports::NONE), |mappings| (mappings.main(now), mappings.semi_soft(now)));
        if main.with(semi_soft).is_empty() {
            return self.page(core, now, mobile);
        }
        let CellularHandover::SemiSoft { delay, .. } = self.config.handover else {
            return self.send(core, mobile, main.with(semi_soft));
        };
        if main.is_empty() || semi_soft.is_empty() || delay.is_zero() {
            return self.send(core, mobile, main.with(semi_soft));
        }
        let direct = self.send(core, mobile, main);
        let Some(token) = self.buffers.keep(now, mobile, len, true) else {
            self.buffers.counters.dropped += 1;
            return direct;
        };
        self.delayed.push_back(Delayed { until: now + delay, mobile, token });
        match direct {
            Forward::To(ports) => Forward::ToAndHold(ports, token),
            _ => Forward::Hold(token),
        }
    }

    /// An idle host is looked for.
    fn page(&self, core: &mut Core, now: Instant, mobile: Ipv4Addr) -> Forward {
        let ports = match self.paging.get(now, mobile) {
            Some(port) => Ports::one(*port),
            None if self.config.paging_cache => return Forward::Drop(PacketDrop::NoRoute),
            None => core.below.with(core.cell_port()),
        };
        let forward = self.send(core, mobile, ports);
        if let Forward::To(ports) = forward {
            core.outbox.event(Event::Paged { mobile, ports });
        }
        forward
    }

    /// To these ports; to the cell only where the host is there.
    fn send(&self, core: &Core, mobile: Ipv4Addr, ports: Ports) -> Forward {
        let reached = if self.cell.has(mobile) { ports } else { ports.without(core.cell_port()) };
        match (reached.is_empty(), ports.is_empty()) {
            (false, _) => Forward::To(reached),
            (true, false) => Forward::Drop(PacketDrop::NotAttached),
            (true, true) => Forward::Drop(PacketDrop::NoRoute),
        }
    }

    pub(super) fn handle_message(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) {
        if let Err(reason) = self.handle(core, now, received) {
            core.refuse(received, reason);
        }
    }

    fn handle(&mut self, core: &mut Core, now: Instant, received: &Received<'_>) -> Result<(), MessageDrop> {
        let (mobile, from) = (received.message.mobile, received.from);
        if core.is_up(from) {
            return Err(MessageDrop::WrongInterface);
        }
        match received.message.body {
            Body::RouteUpdate { semi_soft } => {
                self.update_route(core, now, mobile, from, semi_soft)?;
                if !semi_soft {
                    self.update_paging(now, mobile, from)?;
                }
            }
            Body::PagingUpdate => self.update_paging(now, mobile, from)?,
            Body::PagingTeardown => {
                self.paging.remove(mobile);
                if self.routes.remove(mobile).is_some() {
                    core.route_event(mobile, Ports::NONE, Change::Removed);
                }
            }
            _ => return Err(MessageDrop::NotForUs),
        }
        core.send_up(received.payload);
        Ok(())
    }

    fn update_paging(
        &mut self,
        now: Instant,
        mobile: Ipv4Addr,
        from: InterfaceId,
    ) -> Result<(), MessageDrop> {
        if !self.config.paging_cache {
            return Ok(());
        }
        let until = now + self.config.paging_timeout;
        if self.paging.get(now, mobile) == Some(&from) {
            self.paging.keep_until(mobile, until);
            return Ok(());
        }
        self.paging.insert(mobile, from, until).map_err(|_| MessageDrop::TableFull)
    }

    fn update_route(
        &mut self,
        core: &mut Core,
        now: Instant,
        mobile: Ipv4Addr,
        from: InterfaceId,
        is_semi_soft: bool,
    ) -> Result<(), MessageDrop> {
        let mapping = Mapping { port: from, until: now + self.config.route_timeout };
        let old = self.routes.get(now, mobile).copied().filter(|old| !old.ports(now).is_empty());
        let new = match old {
            Some(old) if is_semi_soft && now < old.main.until => {
                if old.main.port == from {
                    Mappings { main: mapping, ..old }
                } else {
                    Mappings { semi_soft: Some(mapping), ..old }
                }
            }
            _ => Mappings { main: mapping, semi_soft: None },
        };
        // No mapping was made later than this one.
        self.routes.insert(mobile, new, mapping.until).map_err(|_| MessageDrop::TableFull)?;
        if new.semi_soft.is_none() {
            self.buffers.begin_release(now, mobile);
        }
        core.route_set(mobile, old.map(|old| old.ports(now)), new.ports(now));
        Ok(())
    }

    pub(super) fn note_attached(&mut self, mobile: Ipv4Addr) {
        self.cell.attach(mobile);
    }

    pub(super) fn note_detached(&mut self, mobile: Ipv4Addr) {
        self.cell.detach(mobile);
    }

    pub(super) fn poll_action(&mut self, core: &Core, now: Instant) -> Option<Action> {
        let (mobile, token) = match self.buffers.poll(now) {
            Some(Fate::Released(mobile, token)) => (mobile, token),
            Some(Fate::Discarded(token, reason)) => return Some(Action::Discard { token, reason }),
            None => self.take_delayed(now)?,
        };
        let ports = self.routes.get(now, mobile).map_or(Ports::NONE, |mappings| {
            let semi_soft = mappings.semi_soft(now);
            if semi_soft.is_empty() { mappings.main(now) } else { semi_soft }
        });
        Some(match self.send(core, mobile, ports) {
            Forward::To(ports) => Action::Release { token, ports },
            _ => Action::Discard { token, reason: DiscardReason::Expired },
        })
    }

    /// The next packet that has waited for as long as the device delays.
    fn take_delayed(&mut self, now: Instant) -> Option<(Ipv4Addr, PacketToken)> {
        while let Some(delayed) = self.delayed.front().copied().filter(|delayed| delayed.until <= now) {
            self.delayed.pop_front();
            // If it is not there any more, it went when the delay ended.
            if let Some(token) = self.buffers.release_up_to(delayed.mobile, delayed.token) {
                return Some((delayed.mobile, token));
            }
        }
        None
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let at = |at: Option<Instant>, wake| at.map(|at| (at, wake));
        let delayed = self.delayed.front().map(|delayed| delayed.until);
        let buffer = earliest(at(self.buffers.deadline(), Wake::Buffer), at(delayed, Wake::Buffer));
        let caches = earliest(
            at(self.routes.deadline(), Wake::RouteLifetime),
            at(self.paging.deadline(), Wake::RouteLifetime),
        );
        earliest(buffer, caches)
    }

    pub(super) fn expire(&mut self, core: &mut Core, now: Instant) {
        while let Some((mobile, _)) = self.routes.take_expired(now) {
            core.route_event(mobile, Ports::NONE, Change::Expired);
        }
        while self.paging.take_expired(now).is_some() {}
    }
}
