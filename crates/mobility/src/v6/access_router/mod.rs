//! The access router of fast handovers (RFC 5568): previous access router (PAR) of the mobile nodes that leave its links, and new
//! access router (NAR) of those that come.
//!
//! Trust. A Fast Binding Update is authenticated by the BADF option with the key of mobile node and router, and is fresh by a timestamp
//! (the Mobility Message Replay Protection option of RFC 4285, which others skip) or by its sequence number. The routers know each
//! other's messages by a key or by IPsec ([`RouterSecurity`]). RtSolPr, announcements (UNA) and what answers them are neighbor discovery:
//! nobody vouches for them, and what they can do is bounded - an RtSolPr makes no state, an announcement of another station than the
//! Handover Initiate names gets nothing.
//!
//! Left out: handovers between two links of one router; HI and HAck over ICMPv6 (RFC 5268); unsolicited Handover Acknowledges (code
//! 4); addresses by DHCP (PrRtAdv code 5); context transfer. A Handover Initiate without a Previous Care-of Address option, which the RFC
//! only wants to be there ("SHOULD"), is refused.

mod arrivals;
mod config;
mod departures;
mod io;
mod proxy_advertisement;
mod router_messages;

use alloc::collections::BTreeMap;
use core::net::Ipv6Addr;

use careof_base::{Instant, Randomness, Used};
use careof_wire::icmpv6::{Icmpv6Message, IpFields};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{Message, SequenceNumber};

pub use config::{
    AccessLink, AccessRouterConfig, AddressConflict, BufferConfig, MobileNodeKey, NeighborRouter,
    RouterSecurity,
};
pub use io::{Action, BufferCounters, DiscardReason, Event, PacketToken, Transmit, Verdict, Wake, Way};

use arrivals::{Announcements, Arrivals};
use departures::Departures;
use io::Outbox;

use super::{Counters, DropReason, Input, SecurityAssociation, Tunnel};
use crate::deadline::{Deadlines, earliest};
use crate::packet_buffer::{Buffers, Fate};
use crate::ration::NodeRation;
use crate::{ConfigError, InterfaceId, NtpTime, WallClock};

/// A mobile node whose key is known, and what it has proved.
#[derive(Debug)]
struct KnownMobileNode {
    security: SecurityAssociation,
    /// The latest timestamp accepted.
    latest: Option<NtpTime>,
    /// The sequence number of the last Fast Binding Update accepted.
    sequence: Option<SequenceNumber>,
    updates: NodeRation,
    /// Of answers to updates that are authentic and not fresh.
    refusals: NodeRation,
}

impl KnownMobileNode {
    fn new(security: SecurityAssociation) -> Self {
        Self {
            security,
            latest: None,
            sequence: None,
            updates: NodeRation::default(),
            refusals: NodeRation::default(),
        }
    }
}

/// Where packets for an address go at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Go(Way),
    /// To the link, and a copy is kept.
    Copy,
    /// The mobile node is nowhere.
    Wait {
        keep: bool,
    },
}

/// An access router: tells mobile nodes of its neighbors, and hands them over.
///
/// A sans-IO state machine. After any call of a `handle_*` method or of a command ([`AccessRouter::note_detached`],
/// [`AccessRouter::trigger_handover`]) the owner polls [`AccessRouter::poll_transmit`], [`AccessRouter::poll_action`] and
/// [`AccessRouter::poll_event`] until they return `None`, and then asks [`AccessRouter::next_timeout`] when to call
/// [`AccessRouter::handle_timeout`]. Time never goes backwards.
///
/// The owner shows it each packet for an address of one of its links ([`AccessRouter::handle_packet`]), out of any tunnel that ends here,
/// but for what the router itself sends. Packets that are to wait stay with the owner under a [`PacketToken`] until an [`Action`] says
/// what becomes of them. Packets that a mobile node sends through its tunnel are forwarded if [`AccessRouter::accepts_reverse_tunnel`] says
/// so.
#[derive(Debug)]
pub struct AccessRouter {
    config: AccessRouterConfig,
    keys: BTreeMap<Ipv6Addr, KnownMobileNode>,
    departures: Departures,
    arrivals: Arrivals,
    announcements: Announcements,
    buffers: Buffers<Ipv6Addr>,
    /// Mobile nodes that have left their link without a word, until when packets wait for one.
    detached: Deadlines<Ipv6Addr>,
    detached_until: BTreeMap<Ipv6Addr, Instant>,
    /// Answers to RtSolPr, and refusals of announcements.
    proxy_advertisements: Used,
    refusals: Used,
    random: Randomness,
    outbox: Outbox,
}

impl AccessRouter {
    /// A router that expects nobody.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(mut config: AccessRouterConfig, random: impl Into<Randomness>) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = random.into();
        let keys =
            config.mobile_nodes.drain(..).map(|node| (node.care_of, KnownMobileNode::new(node.security)));
        Ok(Self {
            keys: keys.collect(),
            departures: Departures::new((random.next_u64() >> 48) as u16),
            arrivals: Arrivals::new(config.neighbors.len()),
            announcements: Announcements::default(),
            buffers: Buffers::new(config.buffer.limits()),
            detached: Deadlines::default(),
            detached_until: BTreeMap::new(),
            proxy_advertisements: Used::NOTHING,
            refusals: Used::NOTHING,
            random,
            outbox: Outbox::default(),
            config,
        })
    }

    /// Sets the router's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// The router's link-local address on one of its links is another one than was configured, as when the link came up only now.
    pub fn set_link_local(&mut self, interface: InterfaceId, link_local: Ipv6Addr) {
        if let Some(link) = self.config.links.iter_mut().find(|link| link.interface == interface) {
            link.link_local = link_local;
        }
    }

    /// The key of a mobile node at `care_of` on one of the links, known from now on in place of any before (RFC 5269, or by
    /// configuration). Gives `false`, and knows it not, when there are too many.
    pub fn set_key(&mut self, care_of: Ipv6Addr, security: SecurityAssociation) -> bool {
        let full = self.keys.len() >= self.config.max_mobile_nodes;
        if full && !self.keys.contains_key(&care_of) {
            return false;
        }
        match self.keys.get_mut(&care_of) {
            // What was proved under the same key stays proved, so that nothing recorded comes to life again.
            Some(known) if known.security == security => {}
            _ => drop(self.keys.insert(care_of, KnownMobileNode::new(security))),
        }
        true
    }

    /// The key is no longer known; a tunnel that there is stays until its lifetime ends.
    pub fn remove_key(&mut self, care_of: Ipv6Addr) {
        self.keys.remove(&care_of);
    }

    /// The link layer says that the mobile node at `care_of` has left the link: packets for it wait for its word, for
    /// [`AccessRouterConfig::detached_lifetime`] at most.
    pub fn note_detached(&mut self, now: Instant, care_of: Ipv6Addr) {
        self.outbox.called_at(now);
        // Of others nothing could ever come, and there is room for those only.
        if self.keys.contains_key(&care_of) {
            let until = now + self.config.detached_lifetime;
            self.detached.set(care_of, Some(until));
            self.detached_until.insert(care_of, until);
            self.settle(now, care_of);
        }
    }

    /// The link layer says that the mobile node at `care_of` is there, or there again: packets go to the link, unless it has said
    /// otherwise.
    pub fn note_attached(&mut self, now: Instant, care_of: Ipv6Addr) {
        self.outbox.called_at(now);
        self.forget_detached(care_of);
        self.settle(now, care_of);
    }

    fn forget_detached(&mut self, care_of: Ipv6Addr) {
        self.detached.set(care_of, None);
        self.detached_until.remove(&care_of);
    }

    /// What becomes of a packet of `len` bytes for `address`, an address of one of the links or a previous care-of address that a
    /// tunnel has brought here.
    pub fn handle_packet(&mut self, now: Instant, address: Ipv6Addr, len: u32) -> Verdict {
        self.outbox.called_at(now);
        match self.standing(address) {
            // What comes now does not overtake what waits.
            Standing::Go(way) if self.buffers.holds(address) => {
                self.buffers.keep(now, address, len, false).map_or(Verdict::Pass(way), Verdict::Hold)
            }
            Standing::Go(way) => Verdict::Pass(way),
            Standing::Copy => match self.buffers.keep(now, address, len, true) {
                Some(token) => Verdict::PassAndKeep(token),
                None => Verdict::Pass(Way::Link),
            },
            Standing::Wait { keep } => {
                let kept = if keep { self.buffers.keep(now, address, len, false) } else { None };
                kept.map_or_else(
                    || {
                        self.buffers.counters.dropped += 1;
                        Verdict::Drop
                    },
                    Verdict::Hold,
                )
            }
        }
    }

    /// Whether packets for `address` do anything but go on to its link at present: only then the owner has to show them
    /// ([`AccessRouter::handle_packet`]). To be asked again after each call.
    #[must_use]
    pub fn sees_to(&self, address: Ipv6Addr) -> bool {
        self.standing(address) != Standing::Go(Way::Link) || self.buffers.holds(address)
    }

    fn standing(&self, address: Ipv6Addr) -> Standing {
        let is_detached = self.detached_until.contains_key(&address);
        if let Some(departure) = self.departures.get(address) {
            return match departure.tunnel() {
                Some(tunnel) => Standing::Go(Way::Tunnel(tunnel)),
                None if departure.is_gone() || is_detached => Standing::Wait { keep: true },
                None if self.config.buffer_and_forward => Standing::Copy,
                None => Standing::Go(Way::Link),
            };
        }
        match self.arrivals.get(address) {
            // While its address is in doubt, it may be that of somebody who is there.
            Some(arrival) if arrival.is_expected() => Standing::Wait { keep: arrival.buffers() },
            _ if is_detached => Standing::Wait { keep: true },
            _ => Standing::Go(Way::Link),
        }
    }

    /// Has what waits for `address` go on, or wait, as it stands now.
    fn settle(&mut self, now: Instant, address: Ipv6Addr) {
        match self.standing(address) {
            Standing::Go(way) => {
                if way == Way::Link {
                    self.buffers.clear_copies(address);
                }
                self.buffers.begin_release(now, address);
            }
            Standing::Copy | Standing::Wait { .. } => self.buffers.stop_release(address),
        }
    }

    /// The tunnel that packets for `previous`, a care-of address on one of the links, go through.
    #[must_use]
    pub fn tunnel(&self, previous: Ipv6Addr) -> Option<Tunnel> {
        self.departures.get(previous)?.tunnel()
    }

    /// Whether a packet from `source` may come out of a tunnel that begins at `tunnel_source` and ends here: a mobile node that was handed
    /// over sends from its previous care-of address (RFC 5568 section 4).
    #[must_use]
    pub fn accepts_reverse_tunnel(&self, source: Ipv6Addr, tunnel_source: Ipv6Addr) -> bool {
        self.tunnel(source).is_some_and(|tunnel| tunnel.exit == tunnel_source)
    }

    /// The tunnel through which a packet from `source`, the previous care-of address of a mobile node on one of the links, goes back to
    /// its previous router; `None`: it has no host route here.
    #[must_use]
    pub fn reverse_tunnel(&self, source: Ipv6Addr) -> Option<Tunnel> {
        let arrival = self.arrivals.get(source).filter(|arrival| arrival.has_host_route())?;
        let entry = self.config.link(arrival.interface())?.address;
        let exit = self.config.neighbors.get(arrival.neighbor())?.address;
        Some(Tunnel { entry, exit })
    }

    /// Whether a packet for `destination` may come out of a tunnel from `tunnel_source` that ends here: it is for a mobile node with a
    /// host route.
    #[must_use]
    pub fn accepts_tunnel(&self, destination: Ipv6Addr, tunnel_source: Ipv6Addr) -> bool {
        self.reverse_tunnel(destination).is_some_and(|tunnel| tunnel.exit == tunnel_source)
    }

    /// How many mobile nodes of its links have a tunnel, or are about to.
    #[must_use]
    pub fn departure_count(&self) -> usize {
        self.departures.len()
    }

    /// How many mobile nodes of others are expected, have come within PROXY_ND_LIFETIME, or have a host route.
    #[must_use]
    pub fn arrival_count(&self) -> usize {
        self.arrivals.len()
    }

    /// Packets that the owner keeps, and their bytes.
    #[must_use]
    pub const fn buffered(&self) -> (usize, usize) {
        (self.buffers.len(), self.buffers.bytes())
    }

    /// What happened to packets.
    #[must_use]
    pub const fn buffer_counters(&self) -> &BufferCounters {
        &self.buffers.counters
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    /// What becomes of the next kept packet.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.outbox.called_at(now);
        let (address, token) = match self.buffers.poll(now)? {
            Fate::Released(address, token) => (address, token),
            Fate::Discarded(token, reason) => return Some(Action::Discard { token, reason }),
        };
        let way = match self.standing(address) {
            Standing::Go(way) => way,
            Standing::Copy | Standing::Wait { .. } => Way::Link,
        };
        Some(Action::Release { token, way })
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    /// When to call [`AccessRouter::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        [
            (self.departures.retransmit_deadline(), Wake::HandoverInitiateRetransmit),
            (self.buffers.deadline(), Wake::BufferRelease),
            (self.arrivals.deadline(), Wake::ProxyLifetime),
            (self.departures.lifetime_deadline(), Wake::BindingLifetime),
            (self.announcements.deadline(), Wake::Forget),
            (self.detached.next(), Wake::Forget),
        ]
        .into_iter()
        .fold(None, |next, (at, wake)| earliest(next, at.map(|at| (at, wake))))
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.retransmit_initiates(now);
        self.expire_departures(now);
        self.expire_arrivals(now);
        self.announcements.expire(now);
        while let Some(care_of) = self.detached.take_due(now) {
            if self.departures.get(care_of).is_some() {
                // Its word has come, and the new router's will or will not.
                self.detached.set(care_of, Some(now + self.config.detached_lifetime));
                continue;
            }
            self.detached_until.remove(&care_of);
            // It has not come back, and nobody has said where it is.
            self.buffers.clear(care_of, DiscardReason::Expired);
            self.settle(now, care_of);
        }
    }

    /// Takes something in: Mobility Headers and ICMPv6 messages of this protocol, and outcomes of Duplicate Address Detection. What is
    /// neighbor discovery the owner gives to that as well.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { addresses, message: bytes, .. } => {
                self.outbox.count_received();
                let source = addresses.source;
                if addresses.tunnel.is_some() || !is_unicast_routable(source) {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                if addresses.type_2_routing.is_some() || !self.config.is_own(addresses.destination) {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                match Message::parse(addresses.real_source(), addresses.destination, bytes) {
                    Ok(Message::FastBindingUpdate(update)) => {
                        self.handle_update(now, addresses, bytes, &update);
                    }
                    Ok(Message::HandoverInitiate(initiate)) => {
                        self.handle_initiate(now, addresses, bytes, &initiate);
                    }
                    Ok(Message::HandoverAcknowledge(acknowledge)) => {
                        self.handle_acknowledge(now, addresses, bytes, &acknowledge);
                    }
                    Ok(Message::Unknown(_)) => self.outbox.drop(DropReason::UnknownMessage, source),
                    Ok(_) => self.outbox.drop(DropReason::NotForUs, source),
                    Err(_) => self.outbox.drop(DropReason::Malformed, source),
                }
            }
            Input::Icmp { interface, addresses, hop_limit, message } => {
                let (source, destination) = (addresses.source, addresses.destination);
                let message = match Icmpv6Message::parse(source, destination, message) {
                    Ok(message) => message,
                    Err(_) => return self.outbox.drop(DropReason::Malformed, source),
                };
                let ip = IpFields { source, destination, hop_limit };
                self.handle_icmp(now, interface, &ip, &message);
            }
            Input::DuplicateAddressDetection { interface, address, unique } => {
                self.handle_detection(now, interface, address, unique);
            }
            Input::LinkUp { .. }
            | Input::LinkDown { .. }
            | Input::RouterFound { .. }
            | Input::RouterLost { .. }
            | Input::AddressAdded { .. }
            | Input::AddressRemoved { .. }
            | Input::MapsFound { .. } => {}
        }
    }

    fn handle_icmp(&mut self, now: Instant, interface: InterfaceId, ip: &IpFields, message: &Icmpv6Message) {
        if !matches!(message, Icmpv6Message::RtSolPr(_) | Icmpv6Message::NeighborAdvertisement(_)) {
            return;
        }
        self.outbox.count_received();
        if message.check(ip).is_err() {
            return self.outbox.drop(DropReason::NotValid, ip.source);
        }
        match message {
            Icmpv6Message::RtSolPr(solicitation) => {
                self.handle_solicitation(now, interface, ip.source, solicitation);
            }
            Icmpv6Message::NeighborAdvertisement(advertisement) => {
                self.handle_announcement(now, interface, ip.source, advertisement);
            }
            _ => {}
        }
    }
}
