//! Mobile IPv6 on its nodes: agents, and neighbor discovery on the links that the mobile node visits.
//!
//! Agents and neighbor discovery speak of addresses, the network of locators. What does not leave its link has addresses only
//! ([`OnLink`]); the headers of tunnels and of route optimisation are a [`Passage`].

use core::net::Ipv6Addr;
use std::collections::{BTreeMap, BTreeSet};

use careof_base::{Instant, Randomness};
use careof_metrics::MobilitySummary;
use careof_mobility::v6::neighbor_discovery::{
    self, AdvertisingRouter, Answering, Event as DiscoveryEvent, NeighborDiscovery,
};
use careof_mobility::v6::{
    Addresses, CorrespondentNode, Delivery, DropReason, Event, HomeAgent, Input, InterfaceAddress,
    MobileNode, NeighborEvent, RegistrationStep, Transmit, TransmitPayload, Tunnel,
};
use careof_mobility::{ConfigError, InterfaceId, Notice};
use careof_plan::{InterfaceIndex, Ipv6AgentPlan, Locator, NodeId};
use careof_wire::icmpv6::{
    DestinationUnreachable, Icmpv6Message, IpFields, PacketTooBig, QuotedPacket, UnreachableCode,
};
use careof_wire::ipv6::{Ipv6Header, is_link_local};
use careof_wire::protocol;
use careof_wire::tunnel::{RelayedFromIpv6, relay_error_ipv6};

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::{Header, IPV6_LEN};
use crate::observer::Note;
use crate::packet::{Body, OnLink, Outer, Packet, PacketRef};
use crate::passage::{Passage, Wrapping};
use crate::simulation::Simulation;

/// Bytes of a hop-by-hop header with the Router Alert option.
const ROUTER_ALERT_LEN: u8 = 8;

/// What runs of Mobile IPv6 on a node.
pub(crate) struct Ipv6Host {
    pub(crate) role: Ipv6Role,
    neighborhoods: Vec<Neighborhood>,
    /// Home agent: its own address, and where the packets of mobile nodes that are away go.
    own: Locator,
    tunnels: BTreeMap<Locator, Vec<Locator>>,
    /// Mobile node: the addresses that it has formed.
    addresses: BTreeSet<Ipv6Addr>,
}

/// The part that a node has.
pub(crate) enum Ipv6Role {
    /// A router that mobile nodes come to.
    None,
    /// A home agent.
    Home(Box<HomeAgent>),
    /// The mobile node.
    Mobile(Box<MobileNode>),
    /// A correspondent node.
    Correspondent(Box<CorrespondentNode>),
}

/// Neighbor discovery on one interface.
struct Neighborhood {
    interface: InterfaceId,
    discovery: Option<NeighborDiscovery>,
    router: Option<AdvertisingRouter>,
}

macro_rules! on_role {
    ($role:expr, $bound:ident => $call:expr, $none:expr) => {
        match $role {
            Ipv6Role::None => $none,
            Ipv6Role::Home($bound) => $call,
            Ipv6Role::Mobile($bound) => $call,
            Ipv6Role::Correspondent($bound) => $call,
        }
    };
}

impl Neighborhood {
    /// The link came up or went down. A router's interface is there whoever comes and goes, and what it sends then is lost; but it need
    /// not advertise itself to nobody.
    fn handle_link(&mut self, now: Instant, up: bool) {
        if let (Some(discovery), None) = (&mut self.discovery, &self.router) {
            if up { discovery.handle_link_up(now) } else { discovery.handle_link_down(now) }
        }
        if let Some(router) = &mut self.router {
            if up { router.handle_link_up(now) } else { router.handle_link_down(now) }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
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

    fn handle_message(&mut self, now: Instant, ip: &IpFields, message: &[u8]) {
        if let Some(discovery) = &mut self.discovery {
            discovery.handle_message(now, ip, message);
        }
        if let Some(router) = &mut self.router {
            router.handle_message(now, ip, message);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<neighbor_discovery::Transmit> {
        let of_host = self.discovery.as_mut().and_then(|discovery| discovery.poll_transmit(now));
        of_host.or_else(|| self.router.as_mut().and_then(|router| router.poll_transmit(now)))
    }

    fn next_timeout(&self) -> Option<Instant> {
        let of_host = self.discovery.as_ref().and_then(NeighborDiscovery::next_timeout);
        let of_router = self.router.as_ref().and_then(AdvertisingRouter::next_timeout);
        let of_host = of_host.map(|(at, _)| at);
        of_host.into_iter().chain(of_router.map(|(at, _)| at)).min()
    }
}

impl Ipv6Host {
    /// Home agent: the `n`th tunnel towards a mobile node that is away.
    pub(crate) fn tunnel_to(&self, home_address: Locator, n: usize) -> Option<Passage> {
        let exit = *self.tunnels.get(&home_address)?.get(n)?;
        Some(Passage { wrapping: Wrapping::Ipv6, entry: self.own, exit, ttl: DEFAULT_TTL })
    }

    /// Whether all that becomes of a packet for `destination`, on a router with this agent, is in the routes.
    pub(crate) fn leaves_to_routes(&self, destination: Locator) -> bool {
        match self.role {
            Ipv6Role::Mobile(_) => false,
            _ => self.tunnels.get(&destination).is_none_or(Vec::is_empty),
        }
    }

    pub(crate) fn mobile(&self) -> Option<&MobileNode> {
        match &self.role {
            Ipv6Role::Mobile(mobile) => Some(mobile),
            _ => None,
        }
    }

    /// Adds what the agent has counted to a summary.
    pub(crate) fn add_to(&self, summary: &mut MobilitySummary) {
        let Some(counters) = on_role!(&self.role, agent => Some(agent.counters()), None) else { return };
        if self.mobile().is_some() {
            summary.registrations_accepted += counters.accepted;
            summary.registrations_denied += counters.refusals().map(|(_, count)| count).sum::<u64>();
        }
        for reason in DropReason::ALL {
            let count = counters.dropped(reason);
            if count > 0 {
                *summary.discarded.entry(reason.name().to_owned()).or_default() += count;
            }
        }
    }

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        on_role!(&mut self.role, agent => agent.handle_input(now, input), ());
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.neighborhoods.iter_mut().for_each(|neighborhood| neighborhood.handle_timeout(now));
        let due = on_role!(&self.role, agent => agent.next_timeout(), None);
        if due.is_some_and(|(at, _)| at <= now) {
            on_role!(&mut self.role, agent => agent.handle_timeout(now), ());
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let of_agent = on_role!(&self.role, agent => agent.next_timeout(), None).map(|(at, _)| at);
        let of_links = self.neighborhoods.iter().filter_map(Neighborhood::next_timeout).min();
        of_agent.into_iter().chain(of_links).min()
    }

    fn neighborhood(&mut self, interface: InterfaceId) -> Option<&mut Neighborhood> {
        self.neighborhoods.iter_mut().find(|neighborhood| neighborhood.interface == interface)
    }
}

impl Simulation {
    /// The agent of Mobile IPv6 on a node, and neighbor discovery there; `None` where there is neither.
    pub(crate) fn ipv6_host(&self, node: NodeId) -> Result<Option<Ipv6Host>, ConfigError> {
        let (now, name) = (self.now, self.node(node).place.name.clone());
        let stream = |name: String| Randomness::from(self.stream(&name));
        let random = stream(format!("agent.{name}"));
        let role = match careof_plan::ipv6_agent(&self.scenario, &self.topology, self.run, node)? {
            Some(Ipv6AgentPlan::Home(config)) => {
                Ipv6Role::Home(Box::new(HomeAgent::new(now, *config, random)?))
            }
            Some(Ipv6AgentPlan::Mobile(config)) => {
                Ipv6Role::Mobile(Box::new(MobileNode::new(now, *config, random)?))
            }
            Some(Ipv6AgentPlan::Correspondent(config)) => {
                Ipv6Role::Correspondent(Box::new(CorrespondentNode::new(*config, random)?))
            }
            None => Ipv6Role::None,
        };
        let mut neighborhoods = Vec::new();
        for plan in careof_plan::neighbors(&self.scenario, &self.topology, node) {
            let stream = |what: &str| stream(format!("neighbors.{what}.{name}.{}", plan.interface.0));
            let router = plan.router.map(|config| AdvertisingRouter::new(config, stream("router")));
            let mut discovery = plan.host.map(|config| NeighborDiscovery::new(config, stream("host")));
            if let (Some(discovery), true) = (&mut discovery, router.is_some()) {
                discovery.handle_link_up(now);
            }
            let interface = plan.interface;
            neighborhoods.push(Neighborhood { interface, discovery, router: router.transpose()? });
        }
        if matches!(role, Ipv6Role::None) && neighborhoods.is_empty() {
            return Ok(None);
        }
        let own = self.topology.home_agent_address.unwrap_or_default();
        let (tunnels, addresses) = (BTreeMap::new(), BTreeSet::new());
        Ok(Some(Ipv6Host { role, neighborhoods, own, tunnels, addresses }))
    }

    fn ipv6(&mut self, node: NodeId) -> Option<&mut Ipv6Host> {
        match &mut self.node_mut(node).agent {
            Agent::Ipv6(host) => Some(host),
            _ => None,
        }
    }

    fn address_v6(&self, locator: Locator) -> Ipv6Addr {
        self.bytes.address_v6(locator)
    }

    fn locate(&self, address: Ipv6Addr) -> Locator {
        self.topology.plan.locate(address.into())
    }

    /// Timers of an agent or of neighbor discovery ran out.
    pub(crate) fn ipv6_timeout(&mut self, node: NodeId) {
        let now = self.now;
        if let Some(host) = self.ipv6(node) {
            host.handle_timeout(now);
        }
        self.drive_ipv6(node);
    }

    /// The link at an interface came up or went down.
    pub(crate) fn ipv6_link(&mut self, node: NodeId, interface: InterfaceId, up: bool) {
        let now = self.now;
        if let Some(host) = self.ipv6(node) {
            if let Some(neighborhood) = host.neighborhood(interface) {
                neighborhood.handle_link(now, up);
            }
            host.handle_input(
                now,
                if up { Input::LinkUp { interface } } else { Input::LinkDown { interface } },
            );
        }
        self.drive_ipv6(node);
    }

    /// The owner of the mobile node has it move to an interface.
    pub(crate) fn ipv6_switch_to(&mut self, node: NodeId, interface: InterfaceId, notice: Notice) {
        let now = self.now;
        if let Some(Ipv6Host { role: Ipv6Role::Mobile(mobile), .. }) = self.ipv6(node) {
            // The interface exists: the scenario names access links only, and each has one.
            let _ = mobile.switch_to(now, interface, notice);
        }
        self.drive_ipv6(node);
    }

    /// Drains what runs on a node: messages, events, timers.
    pub(crate) fn drive_ipv6(&mut self, node: NodeId) {
        let now = self.now;
        'drain: loop {
            let Some(host) = self.ipv6(node) else { return };
            for n in 0..host.neighborhoods.len() {
                let neighborhood = &mut host.neighborhoods[n];
                let interface = neighborhood.interface;
                if let Some(transmit) = neighborhood.poll_transmit(now) {
                    self.send_to_neighbors(node, interface, transmit);
                    continue 'drain;
                }
                let event = neighborhood.discovery.as_mut().and_then(NeighborDiscovery::poll_event);
                if let Some(event) = event {
                    self.discovery_event(node, interface, event);
                    continue 'drain;
                }
            }
            if let Some(transmit) = on_role!(&mut host.role, agent => agent.poll_transmit(now), None) {
                self.send_for_ipv6_agent(node, transmit);
                continue;
            }
            match on_role!(&mut host.role, agent => agent.poll_event(), None) {
                Some(event) => self.ipv6_event(node, event),
                None => break,
            }
        }
        let Agent::Ipv6(host) = &self.node(node).agent else { return };
        let (slot, deadline) = (self.node(node).agent_slot, host.next_timeout());
        self.queue.set(slot, deadline);
    }

    fn send_to_neighbors(
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
    fn send_on_link(&mut self, node: NodeId, interface: InterfaceId, hop_limit: u8, on_link: OnLink) {
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
        let packet = self.insert(Packet { id: 0, header, outer: None, body, origin: None, in_fragments: 0 });
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
        self.drive_ipv6(node);
    }

    fn discovery_event(&mut self, node: NodeId, interface: InterfaceId, event: DiscoveryEvent) {
        let now = self.now;
        let way = self.way_of(node, interface);
        let input = match &event {
            DiscoveryEvent::RouterFound { router, prefixes } => {
                Input::RouterFound { interface, router: *router, prefixes }
            }
            DiscoveryEvent::RouterLost { router } => Input::RouterLost { interface, router: *router },
            DiscoveryEvent::AddressAssigned { address, .. }
            | DiscoveryEvent::AddressRemoved { address, .. }
                if is_link_local(*address) =>
            {
                return;
            }
            DiscoveryEvent::AddressAssigned { address, prefix, valid_for, .. } => {
                let address = InterfaceAddress { address: *address, prefix: *prefix, valid_for: *valid_for };
                // An optimistic address is told of once more when it is verified.
                let is_new = self.ipv6(node).is_some_and(|host| host.addresses.insert(address.address));
                if is_new {
                    let text = address.address.to_string();
                    self.note(node, way, Note::Handover("address-acquired"), format_args!("{text}"));
                    self.handover_has_address(interface);
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
            // Of what else there is to know nothing changes what a simulated link does.
            DiscoveryEvent::AddressDeprecated { .. }
            | DiscoveryEvent::InterfaceDisabled
            | DiscoveryEvent::NeighborResolved { .. }
            | DiscoveryEvent::NeighborUnreachable { .. }
            | DiscoveryEvent::LinkMtu(_)
            | DiscoveryEvent::HopLimit(_) => return,
        };
        if let Some(host) = self.ipv6(node) {
            host.handle_input(now, input);
        }
    }

    fn send_for_ipv6_agent(&mut self, node: NodeId, transmit: Transmit) {
        let Transmit { interface, addresses, hop_limit, payload } = transmit;
        let (number, bytes) = match payload {
            TransmitPayload::Mobility(bytes) => (protocol::MOBILITY_HEADER, bytes),
            TransmitPayload::Icmp(bytes) => (protocol::ICMPV6, bytes),
        };
        let Addresses { source, destination, home_address, type_2_routing, tunnel } = addresses;
        if let (true, Some(interface)) = (is_link_local(source) || is_link_local(destination), interface) {
            let on_link = OnLink { source, destination, router_alert: false, message: bytes };
            return self.send_on_link(node, interface, hop_limit, on_link);
        }
        let header = Header {
            source: self.locate(addresses.real_source()),
            destination: self.locate(addresses.real_destination()),
            protocol: number,
            ttl: hop_limit,
            len: IPV6_LEN,
            payload_len: bytes.len() as u16,
            dont_fragment: true,
            ..Header::default()
        };
        let body = Body::Message(bytes.into());
        let packet = self.insert(Packet { id: 0, header, outer: None, body, origin: None, in_fragments: 0 });
        self.trace_message(node, packet, true);
        let passage = match tunnel {
            Some(tunnel) => Some(self.tunnel_passage(tunnel)),
            None if home_address.is_some() || type_2_routing.is_some() => {
                Some(self.extended_passage(&addresses, hop_limit))
            }
            None => None,
        };
        if let Some(passage) = passage
            && !self.put_in_tunnel(node, packet, passage)
        {
            return;
        }
        match interface {
            Some(interface) => self.transmit(node, InterfaceIndex(interface.0), packet),
            None => self.route_on(node, packet),
        }
    }

    fn tunnel_passage(&self, Tunnel { entry, exit }: Tunnel) -> Passage {
        let [entry, exit] = [entry, exit].map(|end| self.locate(end));
        Passage { wrapping: Wrapping::Ipv6, entry, exit, ttl: DEFAULT_TTL }
    }

    fn extended_passage(&self, addresses: &Addresses, ttl: u8) -> Passage {
        let wrapping = Wrapping::Extended {
            home_address: addresses.home_address.is_some(),
            routing: addresses.type_2_routing.is_some(),
        };
        let [entry, exit] = [addresses.source, addresses.destination].map(|end| self.locate(end));
        Passage { wrapping, entry, exit, ttl }
    }

    fn ipv6_event(&mut self, node: NodeId, event: Event) {
        let now = self.now;
        match event {
            Event::Handover(event) => self.handover_event(node, &event),
            Event::Binding(change) => {
                let text = format!("{} at {} for {}", change.home_address, change.care_of, change.lifetime);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
                let home = self.locate(change.home_address);
                match &self.node(node).agent {
                    Agent::Ipv6(host) => match &host.role {
                        Ipv6Role::Home(agent) => {
                            let tunnels = agent.tunnels(change.home_address).iter();
                            let exits = tunnels.map(|tunnel| self.locate(tunnel.exit)).collect();
                            if let Some(host) = self.ipv6(node) {
                                host.tunnels.insert(home, exits);
                            }
                            self.binding_changed(node);
                        }
                        Ipv6Role::Mobile(mobile) if !mobile.is_registered() => {
                            self.script.metrics.on_path(now, false);
                        }
                        _ => {}
                    },
                    _ => {}
                }
            }
            Event::Correspondent(change) => {
                let text =
                    format!("{} knows {} for {}", change.correspondent, change.care_of, change.lifetime);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
            }
            Event::Neighbor(event) => self.neighbor_event(node, event),
            Event::Registration(event) => {
                if let RegistrationStep::UpdateSent { .. } = event.step {
                    self.registration_requests += 1;
                }
            }
            // The messages themselves are in the trace, and the agent counts what it drops.
            Event::ReverseTunnelEnded { .. }
            | Event::HomeAgentsFound { .. }
            | Event::HomePrefixes { .. }
            | Event::HomeAddressLost { .. }
            | Event::Dropped { .. } => {}
        }
    }

    fn neighbor_event(&mut self, node: NodeId, event: NeighborEvent) {
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

    /// The mobile node sends a packet of its own, as it knows its peer.
    pub(crate) fn originate_ipv6(&mut self, node: NodeId, packet: PacketRef) {
        let Packet { header, .. } = &self.pool[packet];
        let (destination, ttl) = (self.address_v6(header.destination), header.ttl);
        let Agent::Ipv6(host) = &self.node(node).agent else { return self.route_on(node, packet) };
        let delivery = host.mobile().and_then(|mobile| mobile.delivery(destination));
        let Some(Delivery { interface, addresses, .. }) = delivery else {
            return self.drop_packet(node, packet, NodeDrop::NoRoute);
        };
        let passage = match addresses.tunnel {
            Some(tunnel) => Some(self.tunnel_passage(tunnel)),
            None if addresses.home_address.is_some() || addresses.type_2_routing.is_some() => {
                Some(self.extended_passage(&addresses, ttl))
            }
            None => None,
        };
        if let Some(passage) = passage
            && !self.put_in_tunnel(node, packet, passage)
        {
            return;
        }
        self.transmit(node, InterfaceIndex(interface.0), packet);
    }

    /// What a mobile node's TCP knows of the MTU towards a peer; `None` if it is no mobile node of Mobile IPv6.
    pub(crate) fn ipv6_mtu_towards(&self, node: NodeId, peer: Locator) -> Option<Option<u16>> {
        let Agent::Ipv6(host) = &self.node(node).agent else { return None };
        let mobile = host.mobile()?;
        Some(mobile.delivery(self.address_v6(peer)).and_then(|delivery| {
            let way = self.way_of(node, delivery.interface)?;
            let mtu = self.links[way.0 as usize].link.mtu();
            let is_wrapped = delivery.addresses
                != Addresses::new(delivery.addresses.source, delivery.addresses.destination);
            // The tunnel takes more than the headers of route optimisation, which may come later or end.
            Some(if is_wrapped && self.leaves_room { mtu.saturating_sub(Ipv6Header::LEN) } else { mtu })
        }))
    }

    /// What a correspondent node puts around a packet of its own for a mobile node whose care-of address it knows.
    pub(crate) fn optimized_passage(&mut self, node: NodeId, packet: PacketRef) -> Option<Passage> {
        let Header { source, destination, ttl, .. } = self.pool[packet].header;
        let home_address = self.address_v6(destination);
        let Some(Ipv6Host { role: Ipv6Role::Correspondent(agent), .. }) = self.ipv6(node) else {
            return None;
        };
        let care_of = agent.care_of_address(home_address)?;
        let wrapping = Wrapping::Extended { home_address: false, routing: true };
        Some(Passage { wrapping, entry: source, exit: self.locate(care_of), ttl })
    }

    /// Whether this node takes a packet out of what it came in.
    pub(crate) fn ipv6_accepts(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        outer: &Outer,
        inner: &Header,
    ) -> bool {
        let now = self.now;
        let addresses = self.addresses_of(inner, Some(outer));
        let is_home_address = self.is_home_address_of(node, inner.destination);
        let Some(host) = self.ipv6(node) else { return false };
        let interface = InterfaceId(interface.0);
        match (&mut host.role, outer.wrapping) {
            (Ipv6Role::Home(agent), Wrapping::Ipv6) => {
                let Some(Tunnel { entry, .. }) = addresses.tunnel else { return false };
                agent.accepts_reverse_tunnel(addresses.source, entry)
            }
            (Ipv6Role::Home(agent), Wrapping::Extended { home_address: true, routing: false }) => {
                agent.accepts_home_address_option(addresses.real_source(), addresses.source)
            }
            (Ipv6Role::Mobile(mobile), Wrapping::Ipv6) => {
                let Some(Tunnel { entry, .. }) = addresses.tunnel else { return false };
                mobile.listens_on(interface) && mobile.accepts_tunnel_from(entry)
            }
            (Ipv6Role::Mobile(mobile), Wrapping::Extended { home_address: false, routing: true }) => {
                is_home_address && mobile.listens_on(interface)
            }
            (Ipv6Role::Correspondent(agent), Wrapping::Extended { home_address: true, routing: false }) => {
                let accepts = agent.accepts_home_address_option(now, &addresses, inner.protocol);
                if !accepts {
                    self.drive_ipv6(node);
                }
                accepts
            }
            _ => false,
        }
    }

    /// A packet of a peer's has reached the mobile node away from home: the way to there may be optimised.
    pub(crate) fn note_correspondent(&mut self, node: NodeId, peer: Locator) {
        let (now, peer) = (self.now, self.address_v6(peer));
        if let Some(Ipv6Host { role: Ipv6Role::Mobile(mobile), .. }) = self.ipv6(node) {
            mobile.note_correspondent(now, peer);
            self.drive_ipv6(node);
        }
    }

    /// The addresses of a packet with this header, in what it came in.
    fn addresses_of(&self, inner: &Header, outer: Option<&Outer>) -> Addresses {
        let [source, destination] = [inner.source, inner.destination].map(|end| self.address_v6(end));
        let plain = Addresses::new(source, destination);
        let Some(Outer { header, wrapping }) = outer else { return plain };
        let [entry, exit] = [header.source, header.destination].map(|end| self.address_v6(end));
        match wrapping {
            Wrapping::Extended { home_address, routing } => Addresses {
                home_address: home_address.then_some(source),
                type_2_routing: routing.then_some(destination),
                ..Addresses::new(entry, exit)
            },
            Wrapping::Ipv6 | Wrapping::Ipv4(_) => plain.through(Tunnel { entry, exit }),
        }
    }

    /// A signalling message over IPv6 has reached a node.
    pub(crate) fn deliver_ipv6_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        outer: Option<&Outer>,
    ) {
        let now = self.now;
        let arrived = &self.pool[packet];
        let Body::Message(message) = &arrived.body else { return };
        let (message, header) = (message.clone(), arrived.header);
        let addresses = self.addresses_of(&header, outer);
        self.trace_message(node, packet, false);
        self.consume(packet);
        let (interface, hop_limit) = (InterfaceId(interface.0), header.ttl);
        match header.protocol {
            protocol::MOBILITY_HEADER => match self.ipv6(node) {
                Some(host) => {
                    host.handle_input(now, Input::Mobility { interface, addresses, message: &message })
                }
                None => self.malformed_messages += 1,
            },
            protocol::ICMPV6 => {
                if let Some(host) = self.ipv6(node) {
                    host.handle_input(
                        now,
                        Input::Icmp { interface, addresses, hop_limit, message: &message },
                    );
                }
                let (source, destination) = (addresses.real_source(), addresses.real_destination());
                match Icmpv6Message::parse(source, destination, &message) {
                    Ok(message) => self.icmpv6_error(node, &message),
                    Err(_) => self.malformed_messages += 1,
                }
            }
            _ => self.malformed_messages += 1,
        }
        self.drive_ipv6(node);
    }

    /// An ICMPv6 error may be about a segment of this node, or about a tunnel that begins here.
    fn icmpv6_error(&mut self, node: NodeId, message: &Icmpv6Message) {
        let quoted = match message {
            Icmpv6Message::DestinationUnreachable(error) => &error.quoted,
            Icmpv6Message::PacketTooBig(error) => &error.quoted,
            Icmpv6Message::TimeExceeded(error) => &error.quoted,
            _ => return,
        };
        let Ok(quoted) = QuotedPacket::parse(quoted) else {
            self.malformed_messages += 1;
            return;
        };
        let mtu = |error: &PacketTooBig| u16::try_from(error.mtu).unwrap_or(u16::MAX);
        if let Some(ports) = quoted.ports() {
            let source = (self.locate(quoted.source), ports.source_port);
            match (message, ports.seq) {
                (Icmpv6Message::PacketTooBig(error), _) => {
                    // What extension headers take is not for the segment.
                    let extensions = quoted.payload_offset.saturating_sub(usize::from(Ipv6Header::LEN));
                    let mtu = mtu(error).saturating_sub(u16::try_from(extensions).unwrap_or(u16::MAX));
                    self.path_mtu_changed(source, mtu);
                }
                (Icmpv6Message::DestinationUnreachable(error), Some(seq))
                    if matches!(error.code, UnreachableCode::NoRoute | UnreachableCode::Address) =>
                {
                    self.destination_unreachable(source, seq);
                }
                _ => {}
            }
            return;
        }
        let entry = quoted.header.source;
        if !self.is_own(node, self.locate(entry)) {
            return;
        }
        if let Icmpv6Message::PacketTooBig(error) = message {
            let exit = self.locate(quoted.header.destination);
            // A tunnel takes the least MTU whole, in fragments if it must (RFC 2473 section 7.1).
            self.tunnel_mtu_learnt(node, exit, mtu(error).max(Ipv6Header::MIN_MTU));
        }
        if let Ok(RelayedFromIpv6::Ipv6 { to, message }) = relay_error_ipv6(message, entry) {
            let to = self.locate(to);
            self.send_icmpv6(node, to, &message);
        }
    }

    /// Sends an ICMPv6 message from `node`.
    pub(crate) fn send_icmpv6(&mut self, node: NodeId, to: Locator, message: &Icmpv6Message) {
        let source = self.source_address(node, to);
        let mut bytes = Vec::new();
        message.emit(self.address_v6(source), self.address_v6(to), &mut bytes);
        self.send_message(node, None, (source, to), DEFAULT_TTL, protocol::ICMPV6, bytes);
    }

    /// Tells the sender of a packet over IPv6 that the next link is too narrow for it.
    pub(crate) fn tell_too_big(&mut self, node: NodeId, to: Locator, quoted: Vec<u8>, mtu: u16) {
        let mtu = u32::from(mtu.max(Ipv6Header::MIN_MTU));
        self.send_icmpv6(node, to, &Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted }));
    }

    /// Tells the sender of a packet over IPv6 that it cannot be delivered.
    pub(crate) fn tell_unreachable(&mut self, node: NodeId, to: Locator, quoted: Vec<u8>) {
        let error = DestinationUnreachable { code: UnreachableCode::Address, quoted };
        self.send_icmpv6(node, to, &Icmpv6Message::DestinationUnreachable(error));
    }
}
