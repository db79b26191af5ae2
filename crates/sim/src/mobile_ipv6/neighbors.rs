//! Neighbor discovery on the links of mobile nodes, and messages that do not leave their link.

use core::net::IpAddr;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::neighbor_discovery::{
    self, AdvertisingRouter, Answering, Event as DiscoveryEvent, NeighborDiscovery,
};
use careof_mobility::v6::{Addresses, Input, InterfaceAddress, NeighborEvent};
use careof_plan::{InterfaceIndex, Locator, NodeId};
use careof_wire::icmpv6::IpFields;
use careof_wire::ipv6::{Extensions, is_link_local};
use careof_wire::protocol;

use super::Ipv6Role;
use super::next_hop::WaitingPackets;
use crate::header::{Header, IPV6_LEN};
use crate::observer::Note;
use crate::packet::{Body, OnLink, Packet, PacketRef};
use crate::simulation::Simulation;

/// Bytes of a hop-by-hop header with the Router Alert option.
const ROUTER_ALERT_LEN: u8 = Extensions::ROUTER_ALERT_LEN as u8;

/// Neighbor discovery on one interface.
pub(super) struct Neighborhood {
    pub(super) interface: InterfaceId,
    pub(super) discovery: Option<NeighborDiscovery>,
    pub(super) router: Option<AdvertisingRouter>,
    /// Whether packets go to neighbors that are resolved and probed; otherwise neighbors are known for good.
    pub(super) resolves: bool,
    pub(super) waiting: WaitingPackets,
}

impl Neighborhood {
    /// The link came up or went down. A router's interface is there whoever comes and goes, and what it sends then is lost; but it need
    /// not advertise itself to nobody.
    pub(super) fn handle_link(&mut self, now: Instant, up: bool) {
        if let (Some(discovery), None) = (&mut self.discovery, &self.router) {
            if up { discovery.handle_link_up(now) } else { discovery.handle_link_down(now) }
        }
        if let Some(router) = &mut self.router {
            if up { router.handle_link_up(now) } else { router.handle_link_down(now) }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
        if let Some(discovery) = &mut self.discovery
            && is_due(discovery.next_timeout().map(|(at, _)| at))
        {
            discovery.handle_timeout(now);
        }
        if let Some(router) = &mut self.router
            && is_due(router.next_timeout().map(|(at, _)| at))
        {
            router.handle_timeout(now);
        }
    }

    pub(super) fn handle_message(&mut self, now: Instant, ip: &IpFields, message: &[u8]) {
        if let Some(discovery) = &mut self.discovery {
            discovery.handle_message(now, ip, message);
        }
        if let Some(router) = &mut self.router {
            router.handle_message(now, ip, message);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<neighbor_discovery::Transmit> {
        let of_host = self.discovery.as_mut().and_then(|discovery| discovery.poll_transmit(now));
        of_host.or_else(|| self.router.as_mut().and_then(|router| router.poll_transmit(now)))
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let of_host = self.discovery.as_ref().and_then(NeighborDiscovery::next_timeout);
        let of_router = self.router.as_ref().and_then(AdvertisingRouter::next_timeout);
        let of_host = of_host.map(|(at, _)| at);
        of_host.into_iter().chain(of_router.map(|(at, _)| at)).min()
    }
}

impl Simulation {
    pub(super) fn send_to_neighbors(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        transmit: neighbor_discovery::Transmit,
    ) {
        let neighbor_discovery::Transmit { source, destination, hop_limit, router_alert, message, .. } =
            transmit;
        let on_link = OnLink { source, destination, router_alert, message };
        self.send_on_link(node, interface, hop_limit, on_link);
    }

    /// Sends a message that does not leave its link.
    pub(super) fn send_on_link(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        hop_limit: u8,
        on_link: OnLink,
    ) {
        if !self.is_observed() && on_link.destination.is_multicast() && self.is_empty_cell(node, interface) {
            // An advertisement that reaches everybody there is: it counts, but nobody will read it.
            self.pool.skip_id();
            self.ledger.consumed += 1;
            return;
        }
        let header = Header {
            source: Locator::NOWHERE,
            destination: Locator::GROUP,
            protocol: protocol::ICMPV6,
            ttl: hop_limit,
            len: IPV6_LEN + if on_link.router_alert { ROUTER_ALERT_LEN } else { 0 },
            payload_len: on_link.message.len() as u16,
            dont_fragment: true,
            ..Header::default()
        };
        let body = Body::OnLink(on_link.into());
        let packet = self.insert(Packet::new(header, body, None));
        self.trace_message(node, packet, true);
        self.transmit(node, InterfaceIndex(interface.0), packet);
    }

    /// A message of a neighbor has arrived.
    pub(crate) fn hear_neighbor(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let now = self.now;
        let arrived = &self.pool[packet];
        let Body::OnLink(on_link) = &arrived.body else { return };
        let (on_link, hop_limit) = (on_link.clone(), arrived.header.ttl);
        self.trace_message(node, packet, false);
        self.consume(packet);
        let interface = InterfaceId(interface.0);
        let OnLink { source, destination, message, .. } = &*on_link;
        let Some(host) = self.ipv6(node) else { return };
        if let Some(neighborhood) = host.neighborhood(interface) {
            let ip = IpFields { source: *source, destination: *destination, hop_limit };
            neighborhood.handle_message(now, &ip, message);
        }
        if let Ipv6Role::Home(agent) = &mut host.role {
            // It keeps a list of the home agents that it hears (RFC 6275 section 10.5).
            let addresses = Addresses::new(*source, *destination);
            agent.handle_input(now, Input::Icmp { interface, addresses, hop_limit, message });
        }
        let addresses = Addresses::new(*source, *destination);
        let input = Input::Icmp { interface, addresses, hop_limit, message };
        if let Some(fast) = &mut host.fast {
            fast.handle_neighbor(now, input);
        }
        if let Ipv6Role::AccessRouter(router) = &mut host.role {
            router.handle_input(now, input);
        }
        self.drive_ipv6(node);
    }

    /// Mobile node: on a link of IPv4 it has its address as soon as that is up, and no longer.
    pub(super) fn ipv4_link(&mut self, node: NodeId, interface: InterfaceId, up: bool) {
        let now = self.now;
        let Some(address) = careof_plan::ipv4_care_of(&self.scenario, &self.topology, node, interface) else {
            return;
        };
        let way = self.way_of(node, interface);
        let shown = IpAddr::V6(address.address).to_canonical();
        let Some(host) = self.ipv6(node) else { return };
        if up && host.addresses.insert(address.address) {
            host.handle_input(now, Input::AddressAdded { interface, address });
            self.note(node, way, Note::Handover("address-acquired"), format_args!("{shown}"));
            self.handover_has_address(node, interface);
        } else if !up && host.addresses.remove(&address.address) {
            host.handle_input(now, Input::AddressRemoved { interface, address: address.address });
            self.note(node, way, Note::Handover("address-lost"), format_args!("{shown}"));
        }
    }

    pub(super) fn discovery_event(&mut self, node: NodeId, interface: InterfaceId, event: DiscoveryEvent) {
        let now = self.now;
        let way = self.way_of(node, interface);
        let input = match &event {
            DiscoveryEvent::RouterFound { router, prefixes } => {
                Input::RouterFound { interface, router: *router, prefixes }
            }
            DiscoveryEvent::RouterLost { router } => {
                if self.senders.is_some() {
                    self.advise_router(node, interface, false);
                }
                Input::RouterLost { interface, router: *router }
            }
            DiscoveryEvent::AddressAssigned { address, .. }
            | DiscoveryEvent::AddressRemoved { address, .. }
                if is_link_local(*address) =>
            {
                return;
            }
            DiscoveryEvent::AddressAssigned { address, prefix, valid_for, .. } => {
                self.fast_configured(node, interface, *address);
                let address = InterfaceAddress { address: *address, prefix: *prefix, valid_for: *valid_for };
                // An optimistic address is told of once more when it is verified.
                let is_new = self.ipv6(node).is_some_and(|host| host.addresses.insert(address.address));
                if is_new {
                    let text = address.address.to_string();
                    self.note(node, way, Note::Handover("address-acquired"), format_args!("{text}"));
                    self.handover_has_address(node, interface);
                }
                Input::AddressAdded { interface, address }
            }
            DiscoveryEvent::AddressRemoved { address, loss } => {
                self.note(node, way, Note::Handover("address-lost"), format_args!("{address}: {loss:?}"));
                if let Some(host) = self.ipv6(node) {
                    host.addresses.remove(address);
                }
                Input::AddressRemoved { interface, address: *address }
            }
            DiscoveryEvent::DetectionDone { address, unique } => {
                Input::DuplicateAddressDetection { interface, address: *address, unique: *unique }
            }
            DiscoveryEvent::NeighborResolved { neighbor, .. } => {
                return self.neighbor_resolved(node, interface, *neighbor);
            }
            DiscoveryEvent::NeighborUnreachable { neighbor } => {
                return self.neighbor_unreachable(node, interface, *neighbor);
            }
            DiscoveryEvent::MapsFound { router, maps } => {
                Input::MapsFound { interface, router: *router, maps }
            }
            // Of what else there is to know nothing changes what a simulated link does.
            DiscoveryEvent::AddressDeprecated { .. }
            | DiscoveryEvent::InterfaceDisabled
            | DiscoveryEvent::LinkMtu(_)
            | DiscoveryEvent::HopLimit(_) => return,
        };
        if let Some(host) = self.ipv6(node) {
            host.handle_input(now, input);
        }
        if self.senders.is_some() && matches!(event, DiscoveryEvent::RouterFound { .. }) {
            self.advise_router(node, interface, true);
        }
    }

    pub(super) fn neighbor_event(&mut self, node: NodeId, event: NeighborEvent) {
        let now = self.now;
        let (interface, address, what) = match event {
            NeighborEvent::DetectDuplicate { interface, address, .. } => (interface, address, "probe"),
            NeighborEvent::Proxy { interface, address, on: true } => (interface, address, "proxy-on"),
            NeighborEvent::Proxy { interface, address, on: false } => (interface, address, "proxy-off"),
            NeighborEvent::Answer { interface, address, on: true } => (interface, address, "answer-on"),
            NeighborEvent::Answer { interface, address, on: false } => (interface, address, "answer-off"),
            NeighborEvent::Advertise { interface, address } => (interface, address, "announcement"),
        };
        let way = self.way_of(node, interface);
        self.note(node, way, Note::Arp(what), format_args!("{address}"));
        let discovery = self
            .ipv6(node)
            .and_then(|host| host.neighborhood(interface))
            .and_then(|neighborhood| neighborhood.discovery.as_mut());
        let Some(discovery) = discovery else { return };
        match event {
            NeighborEvent::DetectDuplicate { wait, .. } => discovery.detect_duplicate(now, address, wait),
            NeighborEvent::Proxy { on, .. } => discovery.answer(address, on.then_some(Answering::Proxy)),
            NeighborEvent::Answer { on, .. } => discovery.answer(address, on.then_some(Answering::Own)),
            NeighborEvent::Advertise { .. } => discovery.advertise(now, address),
        }
    }
}
