//! Messages inside a domain: those of its routers and mobile nodes, and those of Mobile IP between the gateway and the cells.

use careof_mobility::InterfaceId;
use careof_mobility::micro::{Event, HostEvent, HostTransmit, Transmit};
use careof_plan::{InterfaceIndex, Locator, NodeId, RouterNote, host_event_text, router_event_text};
use careof_wire::micro::PORT;
use careof_wire::protocol;
use careof_wire::udp::UdpHeader;

use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::observer::Note;
use crate::simulation::Simulation;

/// A message of the domain.
fn datagram((source, destination): (Locator, Locator), payload: &[u8]) -> Vec<u8> {
    let header = UdpHeader { source_port: PORT, destination_port: PORT, payload_len: payload.len() as u16 };
    let mut datagram = Vec::with_capacity(payload.len() + 8);
    header.emit(source.to_ipv4(), destination.to_ipv4(), payload, &mut datagram);
    datagram
}

/// Where a message that reached a router of a domain goes.
pub(crate) enum DomainMessage {
    /// It was the domain's, and is taken.
    Taken,
    /// It is the node's own business, and came by this interface to it.
    Other(InterfaceIndex),
}

impl Simulation {
    /// A signalling message has reached a node of the domain.
    pub(crate) fn domain_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        header: &Header,
        bytes: &[u8],
    ) -> DomainMessage {
        let now = self.now;
        let other = DomainMessage::Other(interface);
        let mobile = self.topology.homes.index(node);
        let Some(domain) = &mut self.micro else { return other };
        let (source, destination) = (header.source.to_ipv4(), header.destination.to_ipv4());
        if header.protocol == protocol::UDP
            && let Ok((udp, payload)) = UdpHeader::parse(source, destination, bytes)
            && udp.destination_port == PORT
        {
            if let Some(mobile) = mobile {
                if let Some(host) = domain.hosts.get_mut(mobile) {
                    host.agent.handle_message(now, source, payload);
                }
                self.drive_host(mobile);
                return DomainMessage::Taken;
            }
            if let Some(router) = domain.router(node) {
                router.agent.handle_message(now, InterfaceId(interface.0), source, payload);
                self.drive_router(node);
                return DomainMessage::Taken;
            }
        }
        let is_gateway = domain.gateway == node;
        let Some(router) = domain.router(node) else { return other };
        let is_from_below = router.is_below(interface);
        let (uplink, is_group) = (router.uplink, header.destination.is_group());
        match (is_gateway, is_from_below) {
            // To the foreign agent the domain is one cell.
            (true, true) => {
                let cell = self.topology.place(node).cell;
                DomainMessage::Other(cell.map_or(interface, |cell| cell.interface))
            }
            // What is for everybody on the link of a mobile node or of its foreign agent passes through the domain.
            (false, true) if is_group => {
                if let Some(uplink) = uplink {
                    let addresses = (header.source, header.destination);
                    self.send_message(
                        node,
                        Some(uplink),
                        addresses,
                        header.ttl,
                        header.protocol,
                        bytes.to_vec(),
                    );
                }
                DomainMessage::Taken
            }
            (false, false) if is_group => {
                let addresses = (header.source, header.destination);
                let message = self.message(addresses, node, header.ttl, header.protocol, bytes.to_vec());
                self.send_to_all_below(node, message);
                DomainMessage::Taken
            }
            _ => other,
        }
    }

    /// Drains a router: messages, kept packets, events, timer.
    pub(super) fn drive_router(&mut self, node: NodeId) {
        let now = self.now;
        loop {
            let Some(router) = self.micro.as_mut().and_then(|domain| domain.router(node)) else { return };
            if let Some(transmit) = router.agent.poll_transmit(now) {
                self.send_for_router(node, transmit);
            } else if let Some(action) = router.agent.poll_action(now) {
                self.act_for_router(node, action);
            } else if let Some(event) = router.agent.poll_event() {
                self.router_event(node, event);
            } else {
                break;
            }
        }
        let Some(router) = self.micro.as_mut().and_then(|domain| domain.router(node)) else { return };
        let deadline = router.agent.next_timeout().map(|(at, _)| at);
        if router.deadline != deadline {
            router.deadline = deadline;
            self.queue.set(router.slot, deadline);
        }
    }

    /// Drains a mobile node's part.
    pub(super) fn drive_host(&mut self, mobile: usize) {
        let now = self.now;
        loop {
            let Some(host) = self.micro.as_mut().and_then(|domain| domain.hosts.get_mut(mobile)) else {
                return;
            };
            if let Some(transmit) = host.agent.poll_transmit(now) {
                self.send_for_host(mobile, transmit);
            } else if let Some(event) = host.agent.poll_event() {
                self.host_event(mobile, event);
            } else {
                break;
            }
        }
        let Some(host) = self.micro.as_mut().and_then(|domain| domain.hosts.get_mut(mobile)) else { return };
        let deadline = host.agent.next_timeout().map(|(at, _)| at);
        let hears = host.hears.map(|(at, _)| at);
        self.queue.set(host.slot, deadline.into_iter().chain(hears).min());
    }

    fn send_for_router(&mut self, node: NodeId, transmit: Transmit) {
        let Transmit { interface, mobile, payload } = transmit;
        let interface = InterfaceIndex(interface.0);
        let Some(router) = self.micro.as_mut().and_then(|domain| domain.router(node)) else { return };
        let source = router.address;
        let peer = || Some(self.topology.place(node).interfaces.get(usize::from(interface.0))?.peer_address);
        let Some(destination) = mobile.map(Locator::from).or_else(peer) else { return };
        self.send_udp(node, interface, (source, destination), &payload);
    }

    fn send_for_host(&mut self, mobile: usize, transmit: HostTransmit) {
        let node = self.node_of_host(mobile);
        let source = self.topology.address_of(node);
        let station = transmit.station.into();
        let other = self.micro.as_ref().and_then(|domain| domain.other_way_up(mobile, station));
        match other {
            Some(way) => {
                let datagram = datagram((source, station), &transmit.payload);
                let packet = self.message((source, station), node, DEFAULT_TTL, protocol::UDP, datagram);
                self.trace_message(node, packet, true);
                self.transmit_by(node, way, packet);
            }
            None => self.send_udp(node, InterfaceIndex(0), (source, station), &transmit.payload),
        }
    }

    fn send_udp(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        (source, destination): (Locator, Locator),
        payload: &[u8],
    ) {
        let datagram = datagram((source, destination), payload);
        self.send_message(node, Some(interface), (source, destination), DEFAULT_TTL, protocol::UDP, datagram);
    }

    fn router_event(&mut self, node: NodeId, event: Event) {
        let told = router_event_text(&self.topology, self.topology.place(node), &event);
        let note = match &told {
            Some(RouterNote::Route(change, text)) => Some((Note::Route(change), text)),
            Some(RouterNote::Handover(phase, text)) => Some((Note::Handover(phase), text)),
            // The agent counts them.
            None => None,
        };
        if let Some((note, text)) = note {
            self.note(node, None, note, format_args!("{text}"));
        }
        if let Event::RouteChanged { mobile, .. } = event {
            let home = Locator::from(mobile);
            let moved = self.topology.homes.node_at(home).and_then(|node| self.topology.homes.index(node));
            if let Some(mobile) = moved {
                self.route_is_there(mobile, node);
            }
        }
    }

    fn host_event(&mut self, mobile: usize, event: HostEvent) {
        let node = self.node_of_host(mobile);
        if let Some((phase, text)) = host_event_text(&event) {
            self.note(node, None, Note::Handover(phase), format_args!("{text}"));
        }
        if let HostEvent::Confirmed { station } = event {
            self.host_confirmed(mobile, station.into());
        }
    }

    /// The node of a mobile node by its number.
    pub(super) fn node_of_host(&self, mobile: usize) -> NodeId {
        let first = self.topology.homes.first().map_or(NodeId(0), |home| home.first);
        NodeId(first.0 + mobile as u16)
    }
}
