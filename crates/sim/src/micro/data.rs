//! Packets on their way through a domain.

use careof_mobility::InterfaceId;
use careof_mobility::micro::{Action, Forward, PacketDrop, Ports};
use careof_plan::{InterfaceIndex, NodeId, Route};

use crate::drop_cause::NodeDrop;
use crate::kept::Kept;
use crate::packet::PacketRef;
use crate::simulation::Simulation;

impl Simulation {
    /// A packet came to a node that does not forward as the routes say: a router of a domain, or a host that it is not for.
    #[cold]
    pub(crate) fn not_forwarded(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        route: Route,
    ) {
        let Some(domain) = self.micro.as_mut().filter(|domain| domain.has_router(node)) else {
            return self.drop_packet(node, packet, NodeDrop::NotForUs);
        };
        let is_from_outside = domain.gateway == node
            && domain.router(node).is_some_and(|gateway| !gateway.downlinks.contains(&interface));
        if !self.count_down(node, packet) {
            return;
        }
        if is_from_outside {
            return self.forward(node, packet, route);
        }
        self.note_data(node, Some(interface), packet);
        self.pass_on(node, InterfaceId(interface.0), packet, route);
    }

    /// The gateway's foreign agent, or a router's message, sends a packet into the cell of `node`: to Mobile IP that of the gateway is
    /// the whole domain.
    #[cold]
    pub(crate) fn transmit_in_domain(&mut self, node: NodeId, packet: PacketRef, otherwise: NodeDrop) {
        let Some(domain) = &mut self.micro else { return self.drop_packet(node, packet, otherwise) };
        let is_gateway = domain.gateway == node;
        let Some(router) = domain.router(node) else { return self.drop_packet(node, packet, otherwise) };
        if self.pool[packet].outermost().destination.is_group() {
            return self.send_to_all_below(node, packet);
        }
        if is_gateway {
            let from = router.uplink.map_or(InterfaceId(u16::MAX), |uplink| InterfaceId(uplink.0));
            return self.pass_on(node, from, packet, Route::Unreachable);
        }
        self.transmit_to_host(node, packet);
    }

    /// Shows a packet to a router of the domain, and does as it says; what it sends out of the domain takes `route`.
    fn pass_on(&mut self, node: NodeId, from: InterfaceId, packet: PacketRef, route: Route) {
        let now = self.now;
        let shown = &self.pool[packet];
        let (header, len) = (*shown.outermost(), shown.size_bytes());
        let (source, destination) = (header.source.to_ipv4(), header.destination.to_ipv4());
        let Some(domain) = &mut self.micro else { return self.drop_packet(node, packet, NodeDrop::NoRoute) };
        let is_gateway = domain.gateway == node;
        let Some(router) = domain.router(node) else {
            return self.drop_packet(node, packet, NodeDrop::NoRoute);
        };
        let is_below = is_gateway && router.is_below(InterfaceIndex(from.0));
        match router.agent.handle_packet(now, from, source, destination, len) {
            Forward::To(ports) => self.send_to_ports(node, ports, packet, route),
            Forward::Hold(token) => router.kept.keep(token, Kept::Held(packet)),
            Forward::ToAndHold(ports, token) => {
                let copy = Kept::Copy(Box::new(self.pool[packet].clone()));
                if let Some(router) = self.micro.as_mut().and_then(|domain| domain.router(node)) {
                    router.kept.keep(token, copy);
                }
                self.send_to_ports(node, ports, packet, route);
            }
            // Between two mobile nodes of one cell, or branch, a packet turns round at the gateway, and goes back by the link that it came by.
            Forward::Drop(PacketDrop::NoRoute)
                if is_below && self.topology.homes.node_at(header.destination).is_some() =>
            {
                return self.transmit_in_domain(node, packet, NodeDrop::NoRoute);
            }
            Forward::Drop(reason) => self.drop_packet(node, packet, reason.into()),
        }
        self.drive_router(node);
    }

    fn send_to_ports(&mut self, node: NodeId, ports: Ports, packet: PacketRef, route: Route) {
        let mut ports = ports.iter();
        let Some(first) = ports.next() else { return self.drop_packet(node, packet, NodeDrop::NoRoute) };
        for port in ports {
            let copy = self.pool[packet].clone();
            let original = copy.id;
            let copy = self.insert(copy);
            self.trace_derived(node, copy, original, "copy");
            self.send_to_port(node, port, copy, route);
        }
        self.send_to_port(node, first, packet, route);
    }

    fn send_to_port(&mut self, node: NodeId, port: InterfaceId, packet: PacketRef, route: Route) {
        let port = InterfaceIndex(port.0);
        let Some(domain) = &mut self.micro else { return };
        let is_gateway = domain.gateway == node;
        let Some(router) = domain.router(node) else { return };
        if router.cell == Some(port) {
            self.transmit_to_host(node, packet);
        } else if is_gateway && router.uplink == Some(port) {
            self.forward(node, packet, route);
        } else {
            self.transmit(node, port, packet);
        }
    }

    /// A packet that is no message of the domain leaves a base station for a mobile node, or has come to it `from` its cell: where nothing is
    /// confirmed, that tells the mobile node's part something, too.
    fn note_data(&mut self, node: NodeId, from: Option<InterfaceIndex>, packet: PacketRef) {
        let now = self.now;
        let Some(domain) = self.micro.as_mut().filter(|domain| !domain.confirms) else { return };
        let Some(router) = domain.router(node) else { return };
        if from.is_some() && from != router.cell {
            return;
        }
        let header = self.pool[packet].outermost();
        let home = if from.is_some() { header.source } else { header.destination };
        let mobile = self.topology.homes.node_at(home).and_then(|node| self.topology.homes.index(node));
        let Some(mobile) = mobile else { return };
        let Some(host) = domain.hosts.get_mut(mobile) else { return };
        match from {
            Some(_) => host.agent.note_sent(now),
            None => host.agent.note_received(now),
        }
        self.drive_host(mobile);
    }

    /// A base station sends a packet to the mobile node that it is for.
    fn transmit_to_host(&mut self, node: NodeId, packet: PacketRef) {
        let destination = self.pool[packet].outermost().destination;
        let mobile =
            self.topology.homes.node_at(destination).and_then(|node| self.topology.homes.index(node));
        let way = self.micro.as_ref().zip(mobile).and_then(|(domain, mobile)| domain.way_to(mobile, node));
        match way {
            Some(way) => {
                self.note_data(node, None, packet);
                self.transmit_by(node, way, packet);
            }
            None => self.drop_packet(node, packet, NodeDrop::LeftCell),
        }
    }

    /// Sends a copy of a link-scope message down every link of a router, and to everybody in its cell.
    pub(super) fn send_to_all_below(&mut self, node: NodeId, packet: PacketRef) {
        let Some(domain) = &mut self.micro else { return };
        let Some(router) = domain.router(node) else { return };
        let (downlinks, has_cell) = (router.downlinks.clone(), router.cell.is_some());
        let hosts = 0..domain.hosts.len();
        let radios: Vec<_> =
            hosts.filter(|_| has_cell).filter_map(|host| domain.way_to(host, node)).collect();
        let ways = downlinks.iter().map(|link| self.node(node).place.interface(*link).out);
        let ways: Vec<_> = ways.chain(radios).collect();
        for way in ways {
            let copy = self.pool[packet].clone();
            let copy = self.insert(copy);
            self.transmit_by(node, way, copy);
        }
        self.consume(packet);
    }

    /// Does what a router asks for with a packet that it kept.
    pub(super) fn act_for_router(&mut self, node: NodeId, action: Action) {
        let (Action::Release { token, .. } | Action::Discard { token, .. }) = action;
        let router = self.micro.as_mut().and_then(|domain| domain.router(node));
        let Some(kept) = router.and_then(|router| router.kept.take(token)) else { return };
        let packet = match kept {
            Kept::Held(packet) => packet,
            Kept::Copy(_) if matches!(action, Action::Discard { .. }) => return,
            Kept::Copy(copy) => {
                let original = copy.id;
                let packet = self.insert(*copy);
                self.trace_derived(node, packet, original, "copy");
                packet
            }
        };
        match action {
            Action::Release { ports, .. } => self.send_to_ports(node, ports, packet, Route::Unreachable),
            Action::Discard { reason, .. } => self.drop_packet(node, packet, reason.into()),
        }
    }
}
