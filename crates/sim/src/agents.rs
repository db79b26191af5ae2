//! Mobility agents on their nodes: what reaches them, what they send, what they tell.

use core::fmt::Display;
use core::net::{IpAddr, Ipv4Addr};

use careof_mobility::path_mtu;
use careof_mobility::v4::{
    ArpEvent, CorrespondentNode, Event, ForeignAgent, HomeAgent, Input, InterfaceId, MobileNode,
    RegistrationStep, Transmit, TransmitPayload,
};
use careof_mobility::{HandoverEvent, PathProperties};
use careof_plan::{
    InterfaceIndex, Locator, NodeId, OneWayId, Route, Topology, arp_text, binding_text, handover_text,
    visitor_text,
};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, QuotedDatagram, TimeExceeded, UnreachableCode};
use careof_wire::mip4::{Message, PathProbe, ReceivedData};
use careof_wire::protocol;
use careof_wire::tunnel::relay_error;
use careof_wire::udp::UdpHeader;

use crate::drop_cause::NodeDrop;
use crate::header::Header;
use crate::micro::DomainMessage;
use crate::mobile_ipv6::{Ipv6Host, Ipv6Role};
use crate::observer::Note;
use crate::packet::PacketRef;
use crate::passage::{Passage, Passed};
use crate::simulation::Simulation;

/// What runs on a node beyond forwarding.
pub(crate) enum Agent {
    /// Nothing.
    None,
    /// A home agent.
    Home(Box<HomeAgent>),
    /// A foreign agent.
    Foreign(Box<ForeignAgent>),
    /// The mobile node.
    Mobile(Box<MobileNode>),
    /// A host that tunnels to mobile nodes itself.
    Correspondent(Box<CorrespondentNode>),
    /// Any of them over IPv6, or a router that mobile nodes come to.
    Ipv6(Box<Ipv6Host>),
}

impl Agent {
    /// Home agent: the `n`th tunnel towards a mobile node that is away, and how many more there are behind it.
    pub(crate) fn tunnel_to(&self, destination: Locator, n: usize) -> Option<(Passage, usize)> {
        match self {
            Self::Home(agent) => {
                let (tunnel, others) = agent.tunnels(destination.to_ipv4()).get(n..)?.split_first()?;
                Some((Passage::from(*tunnel), others.len()))
            }
            Self::Ipv6(host) => host.tunnel_to(destination, n),
            _ => None,
        }
    }

    /// Whether it is one of either protocol.
    pub(crate) fn is_home_agent(&self) -> bool {
        match self {
            Self::Home(_) => true,
            Self::Ipv6(host) => matches!(host.role, Ipv6Role::Home(_)),
            _ => false,
        }
    }

    /// Whether all that becomes of a packet for `destination`, on a router with this agent, is in the routes.
    #[inline]
    pub(crate) fn leaves_to_routes(&self, destination: Locator) -> bool {
        // Apart, so that what most routers are costs a hop no call.
        matches!(self, Self::None) || self.agent_leaves_to_routes(destination)
    }

    #[inline(never)]
    fn agent_leaves_to_routes(&self, destination: Locator) -> bool {
        match self {
            Self::None | Self::Correspondent(_) => true,
            Self::Home(agent) => agent.tunnels(destination.to_ipv4()).is_empty(),
            Self::Foreign(agent) => {
                !agent.has_reverse_tunnels() && agent.deliver(destination.to_ipv4()).is_none()
            }
            Self::Mobile(_) => false,
            Self::Ipv6(host) => host.leaves_to_routes(destination),
        }
    }

    /// The mobile node: whether its home agent knows where it is, and the interface that it uses.
    pub(crate) fn is_registered_by(&self) -> Option<(bool, Option<InterfaceId>)> {
        match self {
            Self::Mobile(mobile) => Some((mobile.is_registered(), mobile.active())),
            Self::Ipv6(host) => {
                host.mobile().map(|mobile| (mobile.is_registered(), mobile.active_interface()))
            }
            _ => None,
        }
    }

    /// The mobile node: what it knows of the path by an interface.
    pub(crate) fn path(&self, interface: InterfaceId) -> PathProperties {
        match self {
            Self::Mobile(mobile) => mobile.path(interface),
            Self::Ipv6(host) => host.mobile().map(|mobile| mobile.path(interface)).unwrap_or_default(),
            _ => PathProperties::default(),
        }
    }

    /// The mobile node: whether it has a way to a peer.
    pub(crate) fn has_way(&self, topology: &Topology, peer: Locator) -> bool {
        match (self, topology.address(peer)) {
            (Self::Mobile(mobile), IpAddr::V4(peer)) => mobile.delivery(peer, None).is_some(),
            (Self::Ipv6(host), IpAddr::V6(peer)) => host.has_way(peer),
            _ => false,
        }
    }

    /// Whether it is that of a node that moves.
    pub(crate) fn moves(&self) -> bool {
        self.is_registered_by().is_some()
    }

    /// Whether this node is the exit of a tunnel for such a packet.
    pub(crate) fn accepts_tunnel(&self, interface: InterfaceIndex, outer: &Header, inner: &Header) -> bool {
        match self {
            Self::None | Self::Correspondent(_) | Self::Ipv6(_) => false,
            Self::Home(agent) => agent.accepts_reverse_tunnel(inner.source.to_ipv4(), outer.source.to_ipv4()),
            Self::Foreign(agent) => {
                let (source, destination) = (inner.source.to_ipv4(), inner.destination.to_ipv4());
                agent.deliver(destination).is_some()
                    || agent.reverse_tunnel(source).is_some()
                    || agent.passes_on(destination)
            }
            Self::Mobile(mobile) => mobile.listens_on(InterfaceId(interface.0)),
        }
    }
}

/// The same call on whichever agent there is.
macro_rules! on_agent {
    ($agent:expr, $bound:ident => $call:expr, $none:expr) => {
        match $agent {
            Agent::None | Agent::Ipv6(_) => $none,
            Agent::Home($bound) => $call,
            Agent::Foreign($bound) => $call,
            Agent::Mobile($bound) => $call,
            Agent::Correspondent($bound) => $call,
        }
    };
}

impl Simulation {
    /// A timer of an agent ran out.
    pub(crate) fn agent_timeout(&mut self, node: NodeId) {
        let now = self.now;
        if let Agent::Ipv6(_) = self.node(node).agent {
            return self.ipv6_timeout(node);
        }
        self.tell_received_data(node);
        on_agent!(&mut self.node_mut(node).agent, agent => agent.handle_timeout(now), ());
        self.drive_agent(node);
    }

    /// The link at an interface came up or went down, as the link layer tells the agent there.
    pub(crate) fn link_changed(&mut self, node: NodeId, interface: InterfaceId, up: bool) {
        match self.node(node).agent {
            Agent::Ipv6(_) => self.ipv6_link(node, interface, up),
            _ if up => self.agent_input(node, Input::LinkUp { interface }),
            _ => {
                self.multipath_link_down(node, interface);
                self.agent_input(node, Input::LinkDown { interface });
            }
        }
    }

    /// Hands an agent an input and does what it asks for.
    pub(crate) fn agent_input(&mut self, node: NodeId, input: Input<'_>) {
        let now = self.now;
        self.tell_received_data(node);
        on_agent!(&mut self.node_mut(node).agent, agent => agent.handle_input(now, input), ());
        self.drive_agent(node);
    }

    /// Drains an agent: messages, events, timer.
    pub(crate) fn drive_agent(&mut self, node: NodeId) {
        let now = self.now;
        if let Agent::Ipv6(_) = self.node(node).agent {
            return self.drive_ipv6(node);
        }
        loop {
            let agent = &mut self.node_mut(node).agent;
            if let Some(transmit) = on_agent!(agent, agent => agent.poll_transmit(now), None) {
                self.send_for_agent(node, transmit);
                continue;
            }
            let agent = &mut self.node_mut(node).agent;
            match on_agent!(agent, agent => agent.poll_event(), None) {
                Some(event) => self.agent_event(node, event),
                None => break,
            }
        }
        self.assist_paths(node);
        if self.multipath.is_some() {
            self.follow_registrations(node);
        }
        let agent = &self.node(node).agent;
        let deadline = on_agent!(agent, agent => agent.next_timeout(), None).map(|(at, _)| at);
        let slot = self.node(node).agent_slot;
        self.queue.set(slot, deadline);
        if !self.migrating.is_empty() {
            self.follow_address(node);
        }
    }

    pub(crate) fn send_for_agent(&mut self, node: NodeId, transmit: Transmit) {
        let Transmit { interface, source, destination, ttl, payload } = transmit;
        let interface = interface.map(|interface| InterfaceIndex(interface.0));
        if (destination.is_multicast() || destination.is_broadcast())
            && !self.is_observed()
            && let (Some(cell), Some(fleet)) = (interface, &self.fleet)
            && fleet.is_empty_cell(node, cell)
        {
            // An advertisement that reaches everybody there is: it counts, but nobody will read it.
            self.next_identification(node);
            self.pool.skip_id();
            self.ledger.consumed += 1;
            return;
        }
        let (number, payload) = match payload {
            TransmitPayload::Udp { source_port, destination_port, bytes } => {
                let header = UdpHeader { source_port, destination_port, payload_len: bytes.len() as u16 };
                let mut datagram = Vec::with_capacity(bytes.len() + 8);
                header.emit(source, destination, &bytes, &mut datagram);
                (protocol::UDP, datagram)
            }
            TransmitPayload::Icmp { bytes } => (protocol::ICMP, bytes),
        };
        self.send_message(node, interface, (source.into(), destination.into()), ttl, number, payload);
    }

    fn agent_event(&mut self, node: NodeId, event: Event) {
        match event {
            Event::Handover(event) => {
                self.handover_event(node, &event);
                self.assist_handover(node, &event);
                if self.senders.is_some() {
                    self.advise_handover(node, &event);
                }
            }
            Event::Binding(change) => {
                let text = binding_text(&change);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
                match &self.node(node).agent {
                    Agent::Home(_) => {
                        self.binding_changed(node, change.home_address.into());
                        self.assist_moved(node, change.home_address.into(), change.path, change.received);
                    }
                    Agent::Mobile(mobile) if self.fleet.is_none() && !mobile.is_registered() => {
                        self.on_path(node, false);
                    }
                    _ => {}
                }
            }
            Event::ReverseTunnelEnded { .. } => {}
            Event::Visitor(change) => {
                let text = visitor_text(&change);
                self.note(node, None, Note::Binding(change.change.name()), format_args!("{text}"));
                self.assist_moved(node, change.home_address.into(), change.path, ReceivedData::EMPTY);
            }
            Event::Arp(event) => self.arp_event(node, event),
            Event::Registration(event) => {
                if let RegistrationStep::RequestSent { .. } = event.step {
                    self.registration_requests += 1;
                }
            }
            // The messages themselves are in the trace, and the agent counts what it drops.
            Event::Agent(_) | Event::Dropped { .. } => {}
        }
    }

    fn arp_event(&mut self, node: NodeId, event: ArpEvent) {
        let (cause, interface, text) = arp_text(&event);
        let way = interface.and_then(|interface| self.way_of(node, interface));
        self.note(node, way, Note::Arp(cause), format_args!("{text}"));
    }

    /// A phase of a handover, by either protocol.
    pub(crate) fn handover_event<A: Display, C: Display>(
        &mut self,
        node: NodeId,
        event: &HandoverEvent<A, C>,
    ) {
        if let (HandoverEvent::Initiated { .. }, Some(journey)) = (event, self.journey_mut(node)) {
            journey.initiated = true;
        }
        let (interface, text) = handover_text(event);
        let way = self.way_of(node, interface);
        self.note(node, way, Note::Handover(event.name()), format_args!("{text}"));
        if let HandoverEvent::Registered { to, .. } = event {
            match (&self.fleet, self.topology.homes.index(node)) {
                (Some(_), Some(mobile)) => self.roamer_registered(mobile),
                _ => self.registered(node, *to),
            }
        }
    }

    /// The one-way link that leaves `node` by an interface; `None` where the node has no such interface.
    pub(crate) fn way_of(&self, node: NodeId, interface: InterfaceId) -> Option<OneWayId> {
        self.node(node).place.interfaces.get(usize::from(interface.0)).map(|interface| interface.out)
    }

    /// A signalling message reached `node`.
    pub(crate) fn deliver_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        header: &Header,
        bytes: &[u8],
    ) {
        if self.dhcp_receives(node, interface, header, bytes) {
            return;
        }
        if self.cluster_message(node, interface, header, bytes) {
            return;
        }
        if self.multipath_message(node, interface, header, bytes) {
            return;
        }
        let interface = match self.domain_message(node, interface, header, bytes) {
            DomainMessage::Taken => return,
            DomainMessage::Other(interface) => interface,
        };
        let interface = InterfaceId(interface.0);
        let (source, destination, ttl) = (header.source.to_ipv4(), header.destination.to_ipv4(), header.ttl);
        match header.protocol {
            protocol::UDP => match UdpHeader::parse(source, destination, bytes) {
                Ok((udp, payload)) => {
                    self.tell_traffic(node, source, payload);
                    let input = Input::Udp {
                        interface,
                        source,
                        source_port: udp.source_port,
                        destination,
                        destination_port: udp.destination_port,
                        ttl,
                        // Links of a scenario have as many ends as it says.
                        link_address: None,
                        payload,
                    };
                    self.agent_input(node, input);
                }
                Err(_) => self.malformed_messages += 1,
            },
            protocol::ICMP => {
                self.agent_input(node, Input::Icmp { interface, source, destination, ttl, message: bytes });
                match IcmpMessage::parse(bytes) {
                    Ok(IcmpMessage::Other(message)) => self.hear_message(node, header, &message),
                    Ok(message) => self.icmp_error(node, &message),
                    // An agent counts what it cannot read itself.
                    Err(_) if matches!(self.node(node).agent, Agent::None) => self.malformed_messages += 1,
                    Err(_) => {}
                }
            }
            _ => self.malformed_messages += 1,
        }
    }

    /// Home agent: has what it answers to a probe tell what has passed there.
    fn tell_traffic(&mut self, node: NodeId, source: Ipv4Addr, payload: &[u8]) {
        let Some(passed) = &self.passed_at_home else { return };
        let Agent::Home(agent) = &mut self.nodes[usize::from(node.0)].agent else { return };
        let Some(fixed) = payload.first_chunk::<{ PathProbe::FIXED_LEN }>() else { return };
        if payload.first() != Some(&PathProbe::TYPE) {
            return;
        }
        let Ok(Message::PathProbe(probe)) = Message::parse(fixed) else { return };
        let key = (node, probe.home_address.into(), source.into());
        let counts = passed.get(&key).copied().unwrap_or_default();
        agent.note_traffic(probe.home_address, source, counts);
    }

    /// An ICMP error may be about a segment of this node, or about a tunnel that begins here.
    fn icmp_error(&mut self, node: NodeId, message: &IcmpMessage) {
        let (IcmpMessage::DestinationUnreachable(DestinationUnreachable { quoted, .. })
        | IcmpMessage::TimeExceeded(TimeExceeded { quoted, .. })) = message
        else {
            return;
        };
        let Ok(quoted) = QuotedDatagram::parse(quoted) else {
            self.malformed_messages += 1;
            return;
        };
        let source = Locator::of_ipv4(quoted.header.source);
        if let Some(ports) = quoted.ports() {
            let IcmpMessage::DestinationUnreachable(error) = message else { return };
            match (error.code, ports.seq) {
                (UnreachableCode::FragmentationNeeded, _) => {
                    self.path_mtu_changed((source, ports.source_port), error.next_hop_mtu);
                }
                (UnreachableCode::Net | UnreachableCode::Host, Some(seq)) => {
                    self.destination_unreachable((source, ports.source_port), seq);
                }
                _ => {}
            }
        } else if self.is_own(node, source) {
            if let IcmpMessage::DestinationUnreachable(error) = message
                && error.code == UnreachableCode::FragmentationNeeded
            {
                let (exit, len) = (quoted.header.destination.into(), quoted.header.total_len());
                // One that does not know RFC 1191 says 0.
                let mtu = match error.next_hop_mtu {
                    0 => path_mtu::plateau_below(len),
                    told => told,
                };
                self.tunnel_mtu_learnt(node, exit, mtu);
            }
            if let IcmpMessage::DestinationUnreachable(error) = message
                && matches!(error.code, UnreachableCode::Net | UnreachableCode::Host)
            {
                self.assist_unreachable(node, quoted.header.destination.into());
            }
            if let Ok(relayed) = relay_error(message, quoted.header.source, true) {
                self.send_icmp(
                    node,
                    relayed.to.into(),
                    &IcmpMessage::DestinationUnreachable(relayed.message),
                );
            }
        }
    }

    /// Whether `address` is the home address of the mobile node and `node` is that node.
    pub(crate) fn is_home_address_of(&self, node: NodeId, address: Locator) -> bool {
        self.node(node).home_address == Some(address)
    }

    /// The address a node is known by.
    pub(crate) fn own_address(&self, node: NodeId) -> Locator {
        let home_address = self.node(node).home_address;
        let first = || self.node(node).place.interfaces.first().map_or(Locator::NOWHERE, |i| i.address);
        home_address.unwrap_or_else(first)
    }

    /// The address a node opens a connection from.
    pub(crate) fn address_towards(&self, node: NodeId, destination: Locator, port: u16) -> Locator {
        match &self.node(node).agent {
            // Over IPv6 the home address is the only one that connections use.
            Agent::Ipv6(host) if host.mobile().is_some() => self.own_address(node),
            Agent::Mobile(mobile) => mobile
                .delivery(destination.to_ipv4(), Some(port))
                .map_or_else(|| self.own_address(node), |delivery| delivery.source.into()),
            _ => self.source_address(node, destination),
        }
    }

    /// What a host's TCP knows of the MTU towards a peer before it has sent anything: that of the interface, and on a mobile node that
    /// leaves room for the tunnel what is left of it. `None` where there is no way.
    pub(crate) fn mtu_towards(&self, node: NodeId, peer: Locator, port: u16) -> Option<u16> {
        let of = |way: OneWayId| self.links[way.0 as usize].link.mtu();
        if let Some(mtu) = self.ipv6_mtu_towards(node, peer) {
            return mtu;
        }
        let Agent::Mobile(mobile) = &self.node(node).agent else {
            let place = &self.node(node).place;
            let Route::Via(interface) = place.route(peer) else { return None };
            return place.interfaces.get(usize::from(interface.0)).map(|interface| of(interface.out));
        };
        let delivery = mobile.delivery(peer.to_ipv4(), Some(port))?;
        let mtu = of(self.way_of(node, delivery.interface)?);
        if self.leaves_room
            && let Some(multipath) = &self.multipath
        {
            return Some(multipath.mtu(of));
        }
        let beside = mobile.mtu_beside_tunnel(&delivery, mtu).filter(|_| self.leaves_room);
        Some(beside.unwrap_or(mtu))
    }

    /// Whether packets reach a node and come back: it does not move, is at home, or its binding stands.
    pub(crate) fn is_reachable(&self, node: NodeId) -> bool {
        self.node(node).agent.is_registered_by().is_none_or(|(registered, _)| registered)
    }

    /// The way by which everything that `node` itself sends to `destination` leaves it, where nobody moves and no agent
    /// has a say.
    pub(crate) fn fixed_way(&self, node: NodeId, destination: Locator) -> Option<OneWayId> {
        let here = self.node(node);
        match (&here.agent, here.place.route(destination)) {
            (Agent::None, Route::Via(interface)) if !self.is_home_address_of(node, destination) => {
                here.place.interfaces.get(usize::from(interface.0)).map(|interface| interface.out)
            }
            _ => None,
        }
    }

    /// Sends what a node made itself; the mobile node consults its policy table.
    pub(crate) fn originate(&mut self, node: NodeId, packet: PacketRef, port: u16) {
        if let Agent::Correspondent(agent) = &mut self.nodes[usize::from(node.0)].agent {
            let destination = self.pool.hop(packet).destination;
            if let Some(tunnel) = agent.tunnel(destination.to_ipv4()) {
                return self.encapsulate(node, packet, tunnel);
            }
        }
        if let Agent::Ipv6(_) = self.node(node).agent
            && let Some(passage) = self.optimized_passage(node, packet)
        {
            return self.encapsulate(node, packet, passage);
        }
        let here = self.node(node);
        if !here.agent.moves() {
            return match here.next_way(self.pool.hop(packet).destination) {
                Some(way) => self.transmit_by(node, way, packet),
                None => self.route_on(node, packet),
            };
        }
        if here.assist.is_some() {
            return self.originate_assisted(node, packet, port);
        }
        self.originate_on(node, packet, port);
    }

    /// A packet of a mobile node has entered a tunnel by an interface, or come out of one.
    #[inline]
    pub(crate) fn note_passed(&mut self, node: NodeId, interface: InterfaceId, passed: Passed) {
        // Apart, so that it costs the other ends of tunnels no call.
        if matches!(self.node(node).agent, Agent::Mobile(_) | Agent::Ipv6(_)) {
            self.tell_passed(node, interface, passed);
        }
    }

    fn tell_passed(&mut self, node: NodeId, interface: InterfaceId, passed: Passed) {
        let now = self.now;
        let here = self.node_mut(node);
        let (sooner, deadline) = match &mut here.agent {
            Agent::Mobile(mobile) => {
                let sooner = if passed.sent {
                    mobile.note_sent(now, interface, 1, passed.bytes)
                } else {
                    mobile.note_received(now, interface, 1, passed.bytes)
                };
                (sooner, sooner.then(|| mobile.next_timeout().map(|(at, _)| at)).flatten())
            }
            Agent::Ipv6(host) => {
                let sooner = host.note_passed(now, interface, passed);
                (sooner, sooner.then(|| host.next_timeout()).flatten())
            }
            _ => return,
        };
        if sooner {
            let slot = here.agent_slot;
            self.queue.set(slot, deadline);
        }
    }

    /// The mobile node sends a packet as its policy table says, past any assist.
    pub(crate) fn originate_on(&mut self, node: NodeId, packet: PacketRef, port: u16) {
        let Agent::Mobile(mobile) = &self.node(node).agent else {
            return self.originate_ipv6(node, packet);
        };
        let destination = self.pool[packet].header.destination;
        let Some(delivery) = mobile.delivery(destination.to_ipv4(), Some(port)) else {
            return self.drop_packet(node, packet, NodeDrop::NoRoute);
        };
        let interface = InterfaceIndex(delivery.interface.0);
        if self.disperses_uplink(node) && delivery.tunnel.is_some() && self.disperse(node, packet) {
            return;
        }
        if let Some(tunnel) = delivery.tunnel {
            let bytes = u64::from(self.pool[packet].header.total_len());
            if !self.put_in_tunnel(node, packet, tunnel.into()) {
                return;
            }
            self.note_passed(node, delivery.interface, Passed { sent: true, straight: false, bytes });
        }
        let longest = self.pool[packet].in_fragments;
        if longest == 0 {
            return self.transmit(node, interface, packet);
        }
        let leaving = &mut self.pool[packet];
        (leaving.outermost_mut().dont_fragment, leaving.in_fragments) = (false, 0);
        self.cut(node, packet, longest, |this, part| this.transmit(node, interface, part));
    }
}
