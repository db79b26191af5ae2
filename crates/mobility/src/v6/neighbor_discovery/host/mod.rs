//! Neighbor discovery on one interface of a node.

mod addresses;
mod config;
mod messages;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{
    HOP_LIMIT, Icmpv6Message, IpFields, LinkLayerAddress, NdOption, NeighborAdvertisement,
    NeighborSolicitation, RouterSolicitation,
};
use careof_wire::ipv6::{ALL_NODES, ALL_ROUTERS, Ipv6Header, solicited_node};

use super::autoconfiguration::{AddressList, AddressOrigin};
use super::neighbor_cache::{CacheAction, Neighbor, NeighborCache, Resolution};
use super::optimistic::{AddressState, AddressUse};
use super::router_discovery::{PrefixList, RouterList, RouterSolicitor};
use super::unreachability::NeighborState;
use super::{AddressLoss, Counters, DropReason, Event, Transmit, Wake, multicast_link_layer_address};
use crate::deadline::earliest;
use crate::outbox::Outbox;
use crate::v6::Prefix;

pub use config::{HostConfig, Limits};

/// MAX_NEIGHBOR_ADVERTISEMENT (RFC 4861 section 10).
const MAX_NEIGHBOR_ADVERTISEMENT: u8 = 3;

/// In whose name a node answers neighbor solicitations for an address that neighbor discovery has not assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answering {
    /// The address is the node's own: a mobile node's home address on its home link.
    Own,
    /// It is another node's, for which this one stands in (RFC 4861 section 7.2.8): a home agent for a mobile node that is away.
    Proxy,
}

/// Neighbor discovery on one interface of a node: it finds routers and prefixes, forms addresses and verifies them, resolves
/// neighbors and finds out when they are gone, and answers for its own addresses.
///
/// The owner hands in what happens ([`handle_link_up`](Self::handle_link_up), [`handle_message`](Self::handle_message) and so on),
/// then drains [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), and calls
/// [`handle_timeout`](Self::handle_timeout) at [`next_timeout`](Self::next_timeout). For each packet that it sends it asks
/// [`next_hop`](Self::next_hop) and [`resolve`](Self::resolve); the packets themselves stay with the owner.
///
/// Left out: redirects are ignored and counted; there is no destination cache, so the next hop is chosen for each packet; no
/// anycast delays; Multicast Listener Discovery goes no further than the report with which detection begins.
#[derive(Debug)]
pub struct NeighborDiscovery {
    config: HostConfig,
    random: Randomness,
    outbox: Outbox<Transmit, Event, Counters>,
    up: bool,
    /// A duplicate of the hardware's own address was found.
    disabled: bool,
    addresses: AddressList,
    /// Prefixes of which no address could be formed that nobody else has.
    failed: Vec<Prefix>,
    answering: BTreeMap<Ipv6Addr, Answering>,
    /// Unsolicited advertisements to be repeated: how often yet, and when next.
    repeats: BTreeMap<Ipv6Addr, (u8, Instant)>,
    neighbors: NeighborCache,
    solicitor: RouterSolicitor,
    routers: RouterList,
    prefixes: PrefixList,
    hop_limit: Option<u8>,
    link_mtu: Option<u32>,
}

impl NeighborDiscovery {
    /// Neighbor discovery on an interface that is down.
    #[must_use]
    pub fn new(config: HostConfig, mut random: Randomness) -> Self {
        let Limits { neighbors, routers, prefixes, .. } = config.limits;
        Self {
            neighbors: NeighborCache::new(neighbors, config.delay_first_probe, &mut random),
            routers: RouterList::new(routers, config.missing_advertisements),
            prefixes: PrefixList::new(prefixes),
            solicitor: RouterSolicitor::default(),
            outbox: Outbox::default(),
            up: false,
            disabled: false,
            addresses: AddressList::default(),
            failed: Vec::new(),
            answering: BTreeMap::new(),
            repeats: BTreeMap::new(),
            hop_limit: None,
            link_mtu: None,
            config,
            random,
        }
    }

    /// How it works.
    #[must_use]
    pub const fn config(&self) -> &HostConfig {
        &self.config
    }

    /// What it has received and done.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The addresses of the interface and how far they are, without those that are only probed.
    pub fn addresses(&self) -> impl Iterator<Item = (Ipv6Addr, AddressState)> {
        let now = self.outbox.now();
        let own = self.addresses.iter().filter(|entry| entry.origin != AddressOrigin::Probed);
        own.map(move |entry| (entry.address, entry.state(now)))
    }

    /// The default routers.
    pub fn routers(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.routers.iter().map(|router| router.address)
    }

    /// What is known of a neighbor.
    #[must_use]
    pub fn neighbor(&self, neighbor: Ipv6Addr) -> Option<&Neighbor> {
        self.neighbors.get(neighbor)
    }

    /// How many neighbors are known.
    #[must_use]
    pub fn neighbors(&self) -> usize {
        self.neighbors.len()
    }

    /// How many on-link prefixes are known.
    #[must_use]
    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// The interface can carry packets: it has come to a link of which nothing is known.
    pub fn handle_link_up(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.leave_link();
        self.up = true;
        self.form_link_local(now);
        if !self.config.is_router {
            self.solicitor.start(now, self.config.detection.max_delay, &mut self.random);
        }
        self.run(now);
    }

    /// The interface cannot carry packets.
    pub fn handle_link_down(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.leave_link();
        self.up = false;
    }

    /// Forgets the link.
    fn leave_link(&mut self) {
        for entry in self.addresses.take(|entry| entry.origin != AddressOrigin::Configured) {
            let address = entry.address;
            if entry.origin == AddressOrigin::Probed {
                // Nobody could have answered.
                self.outbox.event(Event::DetectionDone { address, unique: false });
            } else {
                self.outbox.event(Event::AddressRemoved { address, loss: AddressLoss::LinkLost });
            }
        }
        // What the owner has given stays, to be verified on the next link.
        for address in self.addresses.forget_told() {
            self.outbox.event(Event::AddressRemoved { address, loss: AddressLoss::LinkLost });
        }
        for router in self.routers.take() {
            self.outbox.event(Event::RouterLost { router });
        }
        self.neighbors.clear();
        self.prefixes.clear();
        self.solicitor.stop();
        self.failed.clear();
        self.repeats.clear();
        self.disabled = false;
        (self.hop_limit, self.link_mtu) = (None, None);
    }

    /// An ICMPv6 message, from its type on, with the fields of its IPv6 header. One that is none of neighbor discovery does nothing,
    /// and is not counted as dropped.
    pub fn handle_message(&mut self, now: Instant, ip: &IpFields, message: &[u8]) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        if let Err(reason) = self.message(now, ip, message) {
            self.outbox.counters.count_drop(reason);
        }
        self.run(now);
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        for router in self.routers.handle_timeout(now) {
            self.router_lost(now, router);
        }
        self.prefixes.handle_timeout(now);
        self.neighbors.handle_timeout(now);
        self.run(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, and why.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        if !self.up || self.disabled {
            return None;
        }
        let at = |deadline: Option<Instant>, wake| deadline.map(|at| (at, wake));
        let addresses = self.addresses.next_timeout().map(|(at, is_detection)| {
            (at, if is_detection { Wake::DuplicateAddressDetection } else { Wake::AddressLifetime })
        });
        let repeat = self.repeats.values().map(|(_, at)| *at).min();
        [
            at(self.solicitor.deadline(), Wake::RouterSolicitationDue),
            addresses,
            at(self.neighbors.next_timeout(), Wake::NeighborReachability),
            at(repeat, Wake::NeighborAdvertisementDue),
            at(self.routers.next_timeout(), Wake::RouterLifetime),
            at(self.prefixes.next_timeout(), Wake::PrefixLifetime),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    /// The next message to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    /// The next hop of a packet to `destination` (RFC 4861 section 5.2): itself, when it is on the link, or else a default router;
    /// `None` when there is none. Where no router is known to be reachable each is named in turn.
    pub fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        if destination.is_multicast() || self.prefixes.contains(destination) {
            return Some(destination);
        }
        let neighbors = &self.neighbors;
        let is_reachable =
            |router| neighbors.get(router).is_some_and(|entry| entry.state != NeighborState::Incomplete);
        self.routers.select(is_reachable)
    }

    /// The link-layer address that a packet to the neighbor `next_hop` goes to.
    pub fn resolve(&mut self, now: Instant, next_hop: Ipv6Addr) -> Resolution {
        self.outbox.called_at(now);
        if !self.up || self.disabled {
            return Resolution::Impossible;
        }
        if next_hop.is_multicast() {
            return Resolution::Known(multicast_link_layer_address(next_hop));
        }
        let may_solicit = self.soliciting_address(now).is_some();
        let resolution = self.neighbors.resolve(now, next_hop, may_solicit);
        self.run(now);
        resolution
    }

    /// An upper layer has made progress by what it sent through `neighbor` (RFC 4861 section 7.3.1).
    pub fn confirm_reachability(&mut self, now: Instant, neighbor: Ipv6Addr) {
        self.outbox.called_at(now);
        self.neighbors.confirm(now, neighbor);
    }

    /// Answers neighbor solicitations for `address`, or with `None` no longer. The address is not verified before: see
    /// [`detect_duplicate`](Self::detect_duplicate).
    pub fn answer(&mut self, address: Ipv6Addr, answering: Option<Answering>) {
        match answering {
            Some(answering) => drop(self.answering.insert(address, answering)),
            None => {
                self.answering.remove(&address);
                self.repeats.remove(&address);
            }
        }
    }

    /// Tells all nodes of the link that packets for `address` come to this node (RFC 4861 section 7.2.6, RFC 6275 section 10.4.1):
    /// now, and twice more.
    pub fn advertise(&mut self, now: Instant, address: Ipv6Addr) {
        self.outbox.called_at(now);
        self.repeats.insert(address, (MAX_NEIGHBOR_ADVERTISEMENT, now));
        self.run(now);
    }

    /// Does all that is due, until nothing is.
    fn run(&mut self, now: Instant) {
        self.run_addresses(now);
        self.run_cache(now);
        if !self.up || self.disabled {
            self.repeats.clear();
            return;
        }
        if self.solicitor.poll(now, &mut self.random) {
            self.send_router_solicitation(now);
        }
        let due = |(address, (_, at)): (&Ipv6Addr, &(u8, Instant))| (*at <= now).then_some(*address);
        let due: Vec<_> = self.repeats.iter().filter_map(due).collect();
        for address in due {
            self.send_unsolicited(now, address);
            let next = now + self.neighbors.retrans_timer();
            if let Some((left, at)) = self.repeats.get_mut(&address) {
                (*left, *at) = (left.saturating_sub(1), next);
            }
        }
        self.repeats.retain(|_, (left, _)| *left > 0);
    }

    fn run_cache(&mut self, now: Instant) {
        for action in core::mem::take(&mut self.neighbors.actions) {
            match action {
                CacheAction::Solicit { target, link_layer } => {
                    self.send_neighbor_solicitation(now, target, link_layer);
                }
                CacheAction::Resolved { neighbor, link_layer: link_layer_address } => {
                    self.outbox.event(Event::NeighborResolved { neighbor, link_layer_address });
                }
                CacheAction::Unreachable { neighbor, .. } => {
                    self.outbox.event(Event::NeighborUnreachable { neighbor });
                    if self.routers.remove(neighbor) {
                        self.router_lost(now, neighbor);
                    }
                }
                CacheAction::NoLongerRouter { neighbor } => {
                    if self.routers.remove(neighbor) {
                        self.router_lost(now, neighbor);
                    }
                }
            }
        }
    }

    /// A router has been taken out of the list. Without any the node asks for others: perhaps it is on another link.
    fn router_lost(&mut self, now: Instant, router: Ipv6Addr) {
        self.outbox.event(Event::RouterLost { router });
        if self.routers.iter().next().is_none() && self.up && !self.disabled {
            self.solicitor.start(now, self.config.detection.max_delay, &mut self.random);
        }
    }

    /// The address that neighbor solicitations come from.
    fn soliciting_address(&self, now: Instant) -> Option<Ipv6Addr> {
        let what = AddressUse::NeighborSolicitation;
        let any = || self.addresses.iter().find(|entry| entry.permits(now, what)).map(|entry| entry.address);
        self.addresses.link_local(now, what).or_else(any)
    }

    fn send(
        &mut self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        link_layer: Option<LinkLayerAddress>,
        message: &Icmpv6Message,
    ) {
        // Most messages have one option of 8 bytes.
        let mut bytes = Vec::with_capacity(32);
        message.emit(source, destination, &mut bytes);
        let group = destination.is_multicast().then(|| multicast_link_layer_address(destination));
        let is_report = matches!(message, Icmpv6Message::MulticastListenerReport(_));
        self.outbox.transmit(Transmit {
            source,
            destination,
            link_layer_destination: group.or(link_layer),
            hop_limit: if is_report { 1 } else { HOP_LIMIT },
            router_alert: is_report,
            message: bytes,
        });
    }

    const fn source_link_layer_address(&self) -> NdOption {
        NdOption::SourceLinkLayerAddress(self.config.link_layer_address)
    }

    fn send_router_solicitation(&mut self, now: Instant) {
        let mut message = RouterSolicitation::default();
        let source = match self.addresses.link_local(now, AddressUse::RouterSolicitation) {
            Some(source) => {
                let entry = self.addresses.get(source);
                if entry.is_some_and(|entry| entry.permits(now, AddressUse::SourceLinkLayerAddress)) {
                    message.options.push(self.source_link_layer_address());
                }
                source
            }
            None => Ipv6Addr::UNSPECIFIED,
        };
        self.send(source, ALL_ROUTERS, None, &Icmpv6Message::RouterSolicitation(message));
    }

    fn send_neighbor_solicitation(
        &mut self,
        now: Instant,
        target: Ipv6Addr,
        link_layer: Option<LinkLayerAddress>,
    ) {
        let Some(source) = self.soliciting_address(now) else { return };
        let options = alloc::vec![self.source_link_layer_address()];
        let destination = if link_layer.is_some() { target } else { solicited_node(target) };
        let message = Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target, options });
        self.send(source, destination, link_layer, &message);
    }

    fn send_unsolicited(&mut self, now: Instant, target: Ipv6Addr) {
        let is_proxy = self.answering.get(&target) == Some(&Answering::Proxy);
        let message = NeighborAdvertisement {
            router: self.config.is_router && !is_proxy,
            solicited: false,
            override_flag: true,
            target,
            options: alloc::vec![NdOption::TargetLinkLayerAddress(self.config.link_layer_address)],
        };
        let source = if is_proxy { self.soliciting_address(now).unwrap_or(target) } else { target };
        self.send(source, ALL_NODES, None, &Icmpv6Message::NeighborAdvertisement(message));
    }

    /// How long detection and repeated advertisements wait: RetransTimer.
    const fn retrans_timer(&self) -> Duration {
        self.neighbors.retrans_timer()
    }

    const fn is_link_mtu(&self, mtu: u32) -> bool {
        mtu >= Ipv6Header::MIN_MTU as u32 && mtu <= self.config.max_link_mtu
    }

    /// Counts a message that was taken, but for what found no room.
    fn note_room(&mut self, there_was_room: bool) {
        if !there_was_room {
            self.outbox.counters.count_drop(DropReason::TableFull);
        }
    }
}

#[cfg(test)]
mod tests;
