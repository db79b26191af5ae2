//! Mobile IPv6 on its nodes: agents, and neighbor discovery on the links that the mobile node visits.
//!
//! Agents and neighbor discovery speak of addresses, the network of locators. What does not leave its link has addresses only
//! ([`OnLink`]); the headers of tunnels and of route optimisation are a [`Passage`].

mod access_router;
mod anchor_point;
mod assists;
mod data;
mod errors;
mod fast_handover;
mod mobile;
mod neighbors;
mod next_hop;

use core::net::Ipv6Addr;
use std::collections::{BTreeMap, BTreeSet};

use careof_base::{Instant, Randomness};
use careof_metrics::MobilitySummary;
use careof_mobility::v6::fast_handover::FastHandover;
use careof_mobility::v6::neighbor_discovery::{AdvertisingRouter, Answering, NeighborDiscovery};
use careof_mobility::v6::{
    Addresses, CorrespondentNode, Counters, DropReason, Event, HierarchicalMobileNode, HomeAgent, Input,
    MobileNode, MobilityAnchorPoint, RegistrationStep, Transmit, TransmitPayload, Tunnel,
};
use careof_mobility::{ConfigError, HandoverEvent, InterfaceId, Notice};
use careof_plan::{Cell, InterfaceIndex, Ipv6AgentPlan, Locator, NodeId};
use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::ipv6::is_link_local;
use careof_wire::mip6::{Message, PathProbe};
use careof_wire::protocol;

use crate::agents::Agent;
use crate::forwarding::DEFAULT_TTL;
use crate::header::{Header, IPV6_LEN};
use crate::observer::Note;
use crate::packet::{Body, OnLink, Outer, Packet, PacketRef};
use crate::passage::{Passage, Passed, Wrapping};
use crate::simulation::Simulation;

use access_router::AccessRouterHost;
pub(crate) use errors::{is_unreachable, mtu_for_segment};
use fast_handover::FastMobile;
pub(crate) use mobile::AnyMobile;
use neighbors::Neighborhood;
use next_hop::WaitingPackets;

/// What runs of Mobile IPv6 on a node.
pub(crate) struct Ipv6Host {
    pub(crate) role: Ipv6Role,
    neighborhoods: Vec<Neighborhood>,
    /// Home agent: where the packets of mobile nodes that are away go. Mobility anchor point: where those to regional addresses go.
    tunnels: BTreeMap<Locator, Vec<Passage>>,
    /// Mobile node: the addresses that it has formed.
    addresses: BTreeSet<Ipv6Addr>,
    /// Mobile node: its part in fast handovers.
    fast: Option<Box<FastMobile>>,
    /// Mobility anchor point: the regional addresses whose mobile nodes have left the domain.
    abroad: BTreeSet<Locator>,
}

/// The part that a node has.
pub(crate) enum Ipv6Role {
    /// A router that mobile nodes come to.
    None,
    /// A home agent.
    Home(Box<HomeAgent>),
    /// The mobile node.
    Mobile(Box<MobileNode>),
    /// The mobile node, with mobility anchor points.
    HierarchicalMobile(Box<HierarchicalMobileNode>),
    /// A mobility anchor point.
    AnchorPoint(Box<MobilityAnchorPoint>),
    /// A correspondent node.
    Correspondent(Box<CorrespondentNode>),
    /// An access router of fast handovers.
    AccessRouter(Box<AccessRouterHost>),
}

macro_rules! on_role {
    ($role:expr, $bound:ident => $call:expr, $none:expr) => {
        match $role {
            Ipv6Role::None | Ipv6Role::AccessRouter(_) => $none,
            Ipv6Role::Home($bound) => $call,
            Ipv6Role::Mobile($bound) => $call,
            Ipv6Role::HierarchicalMobile($bound) => $call,
            Ipv6Role::AnchorPoint($bound) => $call,
            Ipv6Role::Correspondent($bound) => $call,
        }
    };
}

impl Ipv6Host {
    /// Home agent: the `n`th tunnel towards a mobile node that is away, and how many more there are behind it.
    pub(crate) fn tunnel_to(&self, home_address: Locator, n: usize) -> Option<(Passage, usize)> {
        let (passage, others) = self.tunnels.get(&home_address)?.get(n..)?.split_first()?;
        Some((*passage, others.len()))
    }

    /// Whether all that becomes of a packet for `destination`, on a router with this agent, is in the routes.
    pub(crate) fn leaves_to_routes(&self, destination: Locator) -> bool {
        match &self.role {
            Ipv6Role::Mobile(_) | Ipv6Role::HierarchicalMobile(_) => false,
            Ipv6Role::AccessRouter(router) => !router.sees(destination),
            _ => self.tunnels.get(&destination).is_none_or(Vec::is_empty),
        }
    }

    pub(crate) const fn is_access_router(&self) -> bool {
        matches!(self.role, Ipv6Role::AccessRouter(_))
    }

    /// Whether the mobile node can send to `peer`.
    pub(crate) fn has_way(&self, peer: Ipv6Addr) -> bool {
        let mobile = self.mobile();
        mobile.is_some_and(|mobile| mobile.delivery(peer).is_some()) || self.way_back(peer).is_some()
    }

    pub(crate) fn mobile(&self) -> Option<AnyMobile<'_>> {
        match &self.role {
            Ipv6Role::Mobile(mobile) => Some(AnyMobile::Plain(mobile)),
            Ipv6Role::HierarchicalMobile(mobile) => Some(AnyMobile::Hierarchical(mobile)),
            _ => None,
        }
    }

    /// Adds what the agent has counted to a summary.
    pub(crate) fn add_to(&self, summary: &mut MobilitySummary) {
        let of_router = match &self.role {
            Ipv6Role::AccessRouter(router) => Some(router.counters()),
            _ => None,
        };
        let beside = self.fast.as_ref().map(|fast| fast.agent().counters()).or(of_router);
        for (reason, count) in beside.into_iter().flat_map(discarded) {
            *summary.discarded.entry(reason.to_owned()).or_default() += count;
        }
        let Some(counters) = on_role!(&self.role, agent => Some(agent.counters()), None) else { return };
        if self.mobile().is_some() {
            summary.registrations_accepted += counters.accepted;
            summary.registrations_denied += counters.refusals().map(|(_, count)| count).sum::<u64>();
        }
        for (reason, count) in discarded(counters) {
            *summary.discarded.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// Whether it resolves its neighbors and watches whether they are there.
    pub(crate) fn watches_neighbors(&self) -> bool {
        self.neighborhoods.iter().any(|neighborhood| neighborhood.resolves)
    }

    /// Packets that wait for the link-layer addresses of neighbors, or for mobile nodes.
    pub(crate) fn held(&self) -> u64 {
        let for_neighbors: u64 =
            self.neighborhoods.iter().map(|neighborhood| neighborhood.waiting.len() as u64).sum();
        match &self.role {
            Ipv6Role::AccessRouter(router) => for_neighbors + router.held(),
            _ => for_neighbors,
        }
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        if let Some(fast) = &mut self.fast
            && fast.takes(now, input)
        {
            return;
        }
        if let Ipv6Role::AccessRouter(router) = &mut self.role {
            return router.handle_input(now, input);
        }
        on_role!(&mut self.role, agent => agent.handle_input(now, input), ());
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.neighborhoods.iter_mut().for_each(|neighborhood| neighborhood.handle_timeout(now));
        if let Some(fast) = &mut self.fast {
            fast.handle_timeout(now);
        }
        if let Ipv6Role::AccessRouter(router) = &mut self.role {
            router.handle_timeout(now);
        }
        let due = on_role!(&self.role, agent => agent.next_timeout(), None);
        if due.is_some_and(|(at, _)| at <= now) {
            on_role!(&mut self.role, agent => agent.handle_timeout(now), ());
        }
    }

    /// A packet of the mobile node has entered what it travels in, or come out of it; whether its timeout has come forward.
    #[inline]
    pub(crate) fn note_passed(&mut self, now: Instant, interface: InterfaceId, passed: Passed) -> bool {
        let Ipv6Role::Mobile(mobile) = &mut self.role else { return false };
        let Passed { sent, straight, bytes } = passed;
        match (sent, straight) {
            (true, false) => mobile.note_sent(now, interface, 1, bytes),
            (true, true) => mobile.note_sent_straight(now, interface, 1, bytes),
            (false, false) => mobile.note_received(now, interface, 1, bytes),
            (false, true) => mobile.note_received_straight(now, interface),
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let of_agent = on_role!(&self.role, agent => agent.next_timeout(), None).map(|(at, _)| at);
        let of_links = self.neighborhoods.iter().filter_map(Neighborhood::next_timeout).min();
        let beside = match &self.role {
            Ipv6Role::AccessRouter(router) => router.next_timeout(),
            _ => self.fast.as_ref().and_then(|fast| fast.next_timeout()),
        };
        of_agent.into_iter().chain(of_links).chain(beside).min()
    }

    fn neighborhood(&mut self, interface: InterfaceId) -> Option<&mut Neighborhood> {
        self.neighborhoods.iter_mut().find(|neighborhood| neighborhood.interface == interface)
    }
}

/// Messages that had no effect, by why.
fn discarded(counters: &Counters) -> impl Iterator<Item = (&'static str, u64)> {
    let counts = DropReason::ALL.into_iter().map(|reason| (reason.name(), counters.dropped(reason)));
    counts.filter(|(_, count)| *count > 0)
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
            Some(Ipv6AgentPlan::HierarchicalMobile(config)) => {
                Ipv6Role::HierarchicalMobile(Box::new(HierarchicalMobileNode::new(now, *config, random)?))
            }
            Some(Ipv6AgentPlan::AnchorPoint(config)) => {
                Ipv6Role::AnchorPoint(Box::new(MobilityAnchorPoint::new(now, *config, random)?))
            }
            Some(Ipv6AgentPlan::Correspondent(config)) => {
                Ipv6Role::Correspondent(Box::new(CorrespondentNode::new(*config, random)?))
            }
            Some(Ipv6AgentPlan::AccessRouter(config)) => {
                let locate = |address| self.locate(address);
                Ipv6Role::AccessRouter(Box::new(AccessRouterHost::new(*config, random, locate)?))
            }
            None => Ipv6Role::None,
        };
        let mut neighborhoods = Vec::new();
        for plan in careof_plan::neighbors(&self.scenario, &self.topology, node) {
            let stream = |what: &str| stream(format!("neighbors.{what}.{name}.{}", plan.interface.0));
            let router = plan.router.map(|config| AdvertisingRouter::new(config, stream("router")));
            let mut router = router.transpose()?;
            let mut discovery = plan.host.map(|config| NeighborDiscovery::new(config, stream("host")));
            if let (Some(discovery), true) = (&mut discovery, router.is_some()) {
                discovery.handle_link_up(now);
            }
            let interface = plan.interface;
            let is_cell = |cell: Cell| cell.interface.0 == interface.0;
            if let (Some(router), true) = (&mut router, self.node(node).place.cell.is_some_and(is_cell)) {
                // A station's cell is there, whoever is in it.
                router.handle_link_up(now);
            }
            for address in plan.answers {
                if let Some(discovery) = &mut discovery {
                    discovery.answer(address, Some(Answering::Own));
                }
            }
            let (resolves, waiting) = (plan.resolves, WaitingPackets::default());
            neighborhoods.push(Neighborhood { interface, discovery, router, resolves, waiting });
        }
        if matches!(role, Ipv6Role::None) && neighborhoods.is_empty() {
            return Ok(None);
        }
        let (tunnels, addresses, abroad) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let fast = match &role {
            Ipv6Role::Mobile(_) => {
                careof_plan::fast_handover(&self.scenario, &self.topology, self.run, node)?
            }
            _ => None,
        };
        let fast = fast.map(|plan| {
            let agent = FastHandover::new(plan.config.clone(), stream(format!("fast-handover.{name}")))?;
            let wanted = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fast_handover.as_ref());
            let is_buffered = wanted.is_some_and(|wanted| wanted.buffer_packets > 0);
            Ok::<_, ConfigError>(Box::new(FastMobile::new(agent, plan, is_buffered)))
        });
        let fast = fast.transpose()?;
        Ok(Some(Ipv6Host { role, neighborhoods, tunnels, addresses, fast, abroad }))
    }

    pub(super) fn ipv6(&mut self, node: NodeId) -> Option<&mut Ipv6Host> {
        match &mut self.node_mut(node).agent {
            Agent::Ipv6(host) => Some(host),
            _ => None,
        }
    }

    pub(super) fn address_v6(&self, locator: Locator) -> Ipv6Addr {
        self.bytes.address_v6(locator)
    }

    pub(super) fn locate(&self, address: Ipv6Addr) -> Locator {
        self.topology.plan.locate(address.into())
    }

    /// Whether a correspondent node has acknowledged another care-of address than the one that this mobile node has registered.
    pub(crate) fn is_outdated(&self, node: NodeId, correspondent: Ipv6Addr) -> bool {
        let Agent::Ipv6(host) = &self.node(node).agent else { return false };
        host.mobile().is_some_and(|mobile| {
            let known = mobile.optimized_route(correspondent);
            known.is_some() && known != mobile.care_of()
        })
    }

    /// Timers of an agent or of neighbor discovery ran out.
    pub(crate) fn ipv6_timeout(&mut self, node: NodeId) {
        let now = self.now;
        self.tell_received_data(node);
        if let Some(host) = self.ipv6(node) {
            host.handle_timeout(now);
        }
        self.drive_ipv6(node);
    }

    /// The link at an interface came up or went down.
    pub(crate) fn ipv6_link(&mut self, node: NodeId, interface: InterfaceId, up: bool) {
        let now = self.now;
        let neighborhood = self.ipv6(node).and_then(|host| host.neighborhood(interface));
        if neighborhood.is_some_and(|neighborhood| neighborhood.resolves) {
            if !up {
                // Its carrier stays: what a link carries no longer is for unreachability detection to find out.
                return;
            }
            self.forget_neighbors(node, interface);
        }
        self.tell_received_data(node);
        if let Some(host) = self.ipv6(node) {
            if let Some(neighborhood) = host.neighborhood(interface) {
                neighborhood.handle_link(now, up);
            }
            host.handle_input(
                now,
                if up { Input::LinkUp { interface } } else { Input::LinkDown { interface } },
            );
            host.fast_link(now, interface, up);
            if let Ipv6Role::AccessRouter(router) = &mut host.role {
                router.handle_link(now, interface, up);
            }
        }
        self.ipv4_link(node, interface, up);
        self.drive_ipv6(node);
        if !up {
            self.fast_link_lost(node, interface);
            self.drive_ipv6(node);
        }
    }

    /// The owner of the mobile node has it move to an interface.
    pub(crate) fn ipv6_switch_to(&mut self, node: NodeId, interface: InterfaceId, notice: Notice) {
        let now = self.now;
        if let Some(host) = self.ipv6(node) {
            host.role.switch_to(now, interface, notice);
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
            if let Some(event) = on_role!(&mut host.role, agent => agent.poll_event(), None) {
                self.ipv6_event(node, event);
                continue;
            }
            if !self.drive_access_router(node) && !self.drive_fast_handover(node) {
                break;
            }
        }
        self.assist_paths(node);
        let Agent::Ipv6(host) = &self.node(node).agent else { return };
        let (slot, deadline) = (self.node(node).agent_slot, host.next_timeout());
        self.queue.set(slot, deadline);
    }

    pub(crate) fn send_for_ipv6_agent(&mut self, node: NodeId, transmit: Transmit) {
        let Transmit { interface, addresses, hop_limit, payload } = transmit;
        let (number, bytes) = match payload {
            TransmitPayload::Mobility(bytes) => (protocol::MOBILITY_HEADER, bytes),
            TransmitPayload::Icmp(bytes) => (protocol::ICMPV6, bytes),
        };
        let Addresses { source, destination, tunnel, udp_port, .. } = addresses;
        let stays = is_link_local(source) || is_link_local(destination) || destination.is_multicast();
        if let (true, Some(interface)) = (stays, interface) {
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
        let packet = self.insert(Packet::new(header, body, None));
        self.trace_message(node, packet, true);
        let bytes = u64::from(self.pool[packet].header.total_len());
        let [first, around] = self.passages(&addresses, hop_limit);
        if let Some(first) = first
            && !self.put_in_tunnel(node, packet, first.in_udp(udp_port.is_some()))
        {
            return;
        }
        if let Some((interface, _)) = interface.zip(tunnel) {
            self.note_passed(node, interface, Passed { sent: true, straight: false, bytes });
        }
        self.send_as_known(node, packet, |this, part| this.send_around(node, around, interface, part));
    }

    /// What a packet with these addresses is put in, the innermost first.
    pub(super) fn passages(&self, addresses: &Addresses, ttl: u8) -> [Option<Passage>; 2] {
        let Addresses { home_address, type_2_routing, tunnel, map_tunnel, .. } = *addresses;
        let first = match tunnel {
            Some(tunnel) => Some(self.tunnel_passage(tunnel)),
            None if home_address.is_some() || type_2_routing.is_some() => {
                Some(self.extended_passage(addresses, ttl))
            }
            None => None,
        };
        [first, map_tunnel.map(|tunnel| self.tunnel_passage(tunnel))]
    }

    pub(super) fn tunnel_passage(&self, tunnel: Tunnel) -> Passage {
        let is_ipv4 = tunnel.ipv4_ends().is_some();
        let wrapping = if is_ipv4 { Wrapping::Ipv6InIpv4 { udp: false } } else { Wrapping::Ipv6 };
        let [entry, exit] = [tunnel.entry, tunnel.exit].map(|end| self.locate(end));
        Passage { wrapping, entry, exit, ttl: DEFAULT_TTL }
    }

    pub(super) fn extended_passage(&self, addresses: &Addresses, ttl: u8) -> Passage {
        let wrapping = Wrapping::Extended {
            home_address: addresses.home_address.is_some(),
            routing: addresses.type_2_routing.is_some(),
        };
        let [entry, exit] = [addresses.source, addresses.destination].map(|end| self.locate(end));
        Passage { wrapping, entry, exit, ttl }
    }

    fn ipv6_event(&mut self, node: NodeId, event: Event) {
        match event {
            Event::Handover(event) => {
                self.handover_event(node, &event);
                self.assist_handover(node, &event);
                if self.senders.is_some() {
                    self.advise_handover(node, &event);
                }
                if let HandoverEvent::Registered { to, .. } = event {
                    self.fast_registered(node, to);
                }
            }
            Event::Binding(change) => {
                let text = format!("{} at {} for {}", change.home_address, change.care_of, change.lifetime);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
                let home = self.locate(change.home_address);
                let Agent::Ipv6(host) = &self.node(node).agent else { return };
                let tunnels = match &host.role {
                    Ipv6Role::Home(agent) => agent.tunnels(change.home_address),
                    Ipv6Role::AnchorPoint(agent) => agent.tunnels(change.home_address),
                    _ => {
                        let is_away = |mobile: AnyMobile<'_>| !mobile.is_registered();
                        if self.fleet.is_none() && host.mobile().is_some_and(is_away) {
                            self.on_path(node, false);
                        }
                        return;
                    }
                };
                let is_anchor_point = matches!(host.role, Ipv6Role::AnchorPoint(_));
                let passages = tunnels.iter().map(|tunnel| self.tunnel_passage(*tunnel)).collect();
                if let Some(host) = self.ipv6(node) {
                    host.tunnels.insert(home, passages);
                }
                if is_anchor_point {
                    return self.regional_binding_changed(node, &change);
                }
                self.binding_changed(node, home);
                self.assist_moved(node, change.home_address.into(), change.path, change.received);
            }
            Event::Correspondent(change) => {
                let text =
                    format!("{} knows {} for {}", change.correspondent, change.care_of, change.lifetime);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
                self.assist_correspondent(node, change.correspondent);
                self.advise_correspondent(node, &change);
            }
            Event::HandoverEnded { home_address, .. } => self.handover_ended(node, home_address),
            Event::Neighbor(event) => self.neighbor_event(node, event),
            Event::Registration(event) => {
                if let RegistrationStep::Accepted { .. } = event.step {
                    self.update_accepted(node, event.peer);
                }
                if let RegistrationStep::UpdateSent { .. } = event.step {
                    self.registration_requests += 1;
                    let (peer, care_of) = (event.peer, event.care_of);
                    self.advise_updated(node, peer, care_of, event.interface);
                }
            }
            // The messages themselves are in the trace, and the agent counts what it drops.
            Event::ReverseTunnelEnded { .. }
            | Event::HomeAgentsFound { .. }
            | Event::HomePrefixes { .. }
            | Event::HomeAddressLost { .. }
            | Event::Ipv4HomeAddress { .. }
            | Event::Dropped { .. } => {}
        }
    }

    /// Home agent: has what it answers to a probe tell what has passed there.
    fn tell_ipv6_traffic(&mut self, node: NodeId, addresses: &Addresses, message: &[u8]) {
        let (true, Some(passed)) = (message.get(2) == Some(&PathProbe::TYPE), &self.passed_at_home) else {
            return;
        };
        let (source, destination) = (addresses.real_source(), addresses.real_destination());
        let Ok(Message::PathProbe(probe)) = Message::parse(source, destination, message) else { return };
        let key = (node, self.locate(probe.home_address), self.locate(source));
        let counts = passed.get(&key).copied().unwrap_or_default();
        if let Some(Ipv6Host { role: Ipv6Role::Home(agent), .. }) = self.ipv6(node) {
            agent.note_traffic(probe.home_address, source, counts);
        }
    }

    /// A signalling message over IPv6 has reached a node, in this header and in the one `around` that, if there were any.
    pub(crate) fn deliver_ipv6_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        outer: Option<&Outer>,
        around: Option<&Outer>,
    ) {
        let now = self.now;
        let arrived = &self.pool[packet];
        let Body::Message(message) = &arrived.body else { return };
        let (message, header) = (message.clone(), arrived.header);
        let addresses = self.addresses_of(&header, outer, around);
        self.trace_message(node, packet, false);
        self.consume(packet);
        let (interface, hop_limit) = (InterfaceId(interface.0), header.ttl);
        if header.protocol == protocol::MOBILITY_HEADER {
            self.tell_ipv6_traffic(node, &addresses, &message);
        }
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
                    Ok(Icmpv6Message::Other(message)) => self.hear_icmpv6_message(node, &header, &message),
                    Ok(message) => self.icmpv6_error(node, &message),
                    Err(_) => self.malformed_messages += 1,
                }
            }
            _ => self.malformed_messages += 1,
        }
        self.drive_ipv6(node);
    }
}
