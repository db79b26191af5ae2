//! A router of a micro-mobility domain.

use core::net::Ipv4Addr;

use careof_base::Instant;

use super::Ports;
use super::blocks::BlocksRouter;
use super::cellular_ip::CellularIpRouter;
use super::config::{RouterConfig, Scheme};
use super::core::Core;
use super::hawaii::HawaiiRouter;
use super::io::{Action, Counters, Event, Forward, PacketDrop, Transmit, Wake};
use super::multicast::MulticastRouter;
use crate::deadline::earliest;
use crate::packet_buffer::BufferCounters;
use crate::{ConfigError, InterfaceId};

/// The state of the protocol.
#[derive(Debug)]
enum Protocol {
    Blocks(BlocksRouter),
    CellularIp(CellularIpRouter),
    Hawaii(HawaiiRouter),
    Multicast(MulticastRouter),
}

/// Calls the same method of whichever protocol it is.
macro_rules! each {
    ($protocol:expr, $router:ident => $call:expr) => {
        match $protocol {
            Protocol::Blocks($router) => $call,
            Protocol::CellularIp($router) => $call,
            Protocol::Hawaii($router) => $call,
            Protocol::Multicast($router) => $call,
        }
    };
}

/// A router of a domain: gateway, base station, or between them.
///
/// The owner shows it every packet that it forwards for, or from, a mobile node of the domain ([`Router::handle_packet`]) and every message
/// ([`Router::handle_message`]), and tells a base station whom its link layer has in the cell. After each call, [`Router::handle_timeout`]
/// among them, it drains [`Router::poll_transmit`], [`Router::poll_action`] and [`Router::poll_event`] until each says `None`, in this order: a
/// message that sets up a path leaves in front of the packets that take it. Then [`Router::next_timeout`] says when the router wants to be
/// called, and why. Time never runs backwards.
#[derive(Debug)]
pub struct Router {
    core: Core,
    protocol: Protocol,
}

impl Router {
    /// A router that knows no mobile node.
    ///
    /// # Errors
    /// A [`ConfigError`] for interfaces numbered 64 or more or twice, stations and neighbours named twice or with addresses of mobile nodes,
    /// links that the role must or must not have, and protocols whose parts contradict each other.
    pub fn new(config: RouterConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let room = config.limits.mobiles;
        let protocol = match config.scheme {
            Scheme::Blocks(blocks) => Protocol::Blocks(BlocksRouter::new(blocks, room)),
            Scheme::CellularIp(cellular) => Protocol::CellularIp(CellularIpRouter::new(cellular, room)),
            Scheme::Hawaii(hawaii) => Protocol::Hawaii(HawaiiRouter::new(hawaii, room)),
            Scheme::Multicast(multicast) => Protocol::Multicast(MulticastRouter::new(multicast, room)),
        };
        Ok(Self { core: Core::new(config), protocol })
    }

    /// What becomes of a packet of `len` bytes that came in by `from`.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        from: InterfaceId,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        len: u32,
    ) -> Forward {
        self.core.outbox.called_at(now);
        let forward = self.forward(now, from, source, destination, len);
        self.core.outbox.counters.count_packet(forward);
        forward
    }

    fn forward(
        &mut self,
        now: Instant,
        from: InterfaceId,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        len: u32,
    ) -> Forward {
        let core = &mut self.core;
        let destination = match &mut self.protocol {
            Protocol::CellularIp(router) if !router.is_from_here(core, from, source) => {
                return Forward::Drop(PacketDrop::WrongSource);
            }
            Protocol::CellularIp(router) => {
                router.note_uplink(core, now, from, source);
                destination
            }
            Protocol::Multicast(router) => router.mobile(core, destination),
            Protocol::Blocks(_) | Protocol::Hawaii(_) => destination,
        };
        if let Some(forward) = core.out_of_domain(from, destination) {
            return forward;
        }
        match &mut self.protocol {
            Protocol::Blocks(router) => router.handle_packet(core, now, from, destination, len),
            Protocol::CellularIp(router) => router.handle_packet(core, now, from, destination, len),
            Protocol::Hawaii(router) => router.handle_packet(core, now, from, destination, len),
            Protocol::Multicast(router) => router.handle_packet(core, now, from, destination, len),
        }
    }

    /// Takes in the UDP payload of a message that came in by `from`; `source` is the source address of its IP header.
    pub fn handle_message(&mut self, now: Instant, from: InterfaceId, source: Ipv4Addr, payload: &[u8]) {
        self.handle_timeout(now);
        if let Some(received) = self.core.admit(now, from, source, payload) {
            each!(&mut self.protocol, router => router.handle_message(&mut self.core, now, &received));
        }
    }

    /// Base station: the link layer says that a mobile node is in the cell. Packets go to it when it has said so itself.
    pub fn note_attached(&mut self, now: Instant, mobile: Ipv4Addr) {
        self.core.outbox.called_at(now);
        match &mut self.protocol {
            Protocol::Blocks(router) => router.note_attached(now, mobile),
            Protocol::CellularIp(router) => router.note_attached(mobile),
            Protocol::Hawaii(router) => router.note_attached(&self.core, now, mobile),
            Protocol::Multicast(router) => router.note_attached(now, mobile),
        }
    }

    /// Base station: the link layer says that a mobile node has left the cell.
    pub fn note_detached(&mut self, now: Instant, mobile: Ipv4Addr) {
        self.core.outbox.called_at(now);
        match &mut self.protocol {
            Protocol::Blocks(router) => router.note_detached(now, mobile),
            Protocol::CellularIp(router) => router.note_detached(mobile),
            Protocol::Hawaii(router) => router.note_detached(mobile),
            Protocol::Multicast(router) => router.note_detached(&mut self.core, now, mobile),
        }
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.core.outbox.poll_transmit(now)
    }

    /// What becomes of the next kept packet.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.core.outbox.called_at(now);
        match &mut self.protocol {
            Protocol::Blocks(router) => router.poll_action(&self.core, now),
            Protocol::CellularIp(router) => router.poll_action(&self.core, now),
            Protocol::Hawaii(router) => router.poll_action(now),
            Protocol::Multicast(router) => router.poll_action(&self.core, now),
        }
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.outbox.poll_event()
    }

    /// When to call [`Router::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let forget = self.core.deadline().map(|at| (at, Wake::Forget));
        earliest(each!(&self.protocol, router => router.next_timeout()), forget)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.core.outbox.called_at(now);
        self.core.expire(now);
        each!(&mut self.protocol, router => router.expire(&mut self.core, now));
    }

    /// The interfaces that packets for a mobile node go to at present, before the one they come by is left out; `None`: there is no host
    /// route.
    #[must_use]
    pub fn route(&self, now: Instant, mobile: Ipv4Addr) -> Option<Ports> {
        each!(&self.protocol, router => router.route(now, mobile))
    }

    /// How many host routes there are; those that have just run out count until [`Router::handle_timeout`].
    #[must_use]
    pub fn route_count(&self) -> usize {
        each!(&self.protocol, router => router.route_count())
    }

    /// Cellular IP: how many hosts the Paging Cache has.
    #[must_use]
    pub fn paging_count(&self) -> usize {
        match &self.protocol {
            Protocol::CellularIp(router) => router.paging_count(),
            Protocol::Blocks(_) | Protocol::Hawaii(_) | Protocol::Multicast(_) => 0,
        }
    }

    /// How many authors of messages are remembered against replays: at most four times [`super::RouterLimits::mobiles`].
    #[must_use]
    pub fn author_count(&self) -> usize {
        self.core.authors()
    }

    /// Packets that the owner keeps, and their bytes.
    #[must_use]
    pub fn buffered(&self) -> (usize, usize) {
        each!(&self.protocol, router => (router.buffers.len(), router.buffers.bytes()))
    }

    /// What happened to packets that were kept.
    #[must_use]
    pub fn buffer_counters(&self) -> &BufferCounters {
        each!(&self.protocol, router => &router.buffers.counters)
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.core.outbox.counters
    }
}
