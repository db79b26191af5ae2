//! The life of a packet at a node: arrive, forward, fragment, transmit.

use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv6::FragmentHeader;
use careof_wire::protocol;

use crate::agents::Agent;
use crate::drop_cause::{Cause, NodeDrop};
use crate::header::{Header, IPV6_LEN};
use crate::packet::{Body, Packet, PacketRef};
use crate::reassembly::Reassembled;
use crate::simulation::Simulation;
use careof_mobility::path_mtu;
use careof_plan::{InterfaceIndex, Locator, NodeId, OneWayId, Route};

/// Bytes of an IPv6 fragment header.
const FRAGMENT_HEADER_LEN: u8 = FragmentHeader::LEN as u8;

/// TTL of what nodes send themselves.
pub(crate) const DEFAULT_TTL: u8 = 64;

impl Simulation {
    /// A packet came in at `node` by `interface`.
    #[inline]
    pub(crate) fn arrive(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let hop = self.pool.hop_mut(packet);
        match self.nodes[usize::from(node.0)].next_way(hop.destination) {
            Some(_) if hop.ttl <= 1 => self.drop_packet(node, packet, NodeDrop::TtlExpired),
            Some(out) => {
                hop.ttl -= 1;
                let size = hop.size;
                self.transmit_sized(node, out, packet, size);
            }
            None => self.look_closer(node, interface, packet),
        }
    }

    /// The same, where the packet does not just follow the routes to the next node.
    pub(crate) fn look_closer(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let destination = self.pool.hop(packet).destination;
        let route = self.node(node).place.route(destination);
        self.pool.settle(packet);
        match route {
            Route::Local => self.deliver(node, interface, packet),
            _ if destination.is_group() || self.is_home_address_of(node, destination) => {
                self.deliver(node, interface, packet);
            }
            route => {
                if !self.node(node).place.forwards {
                    return self.not_forwarded(node, interface, packet, route);
                }
                if self.count_down(node, packet) {
                    self.forward(node, packet, route);
                }
            }
        }
    }

    /// Sends a packet that `node` made itself, or took out of a tunnel, on its way.
    pub(crate) fn route_on(&mut self, node: NodeId, packet: PacketRef) {
        let destination = self.pool[packet].outermost().destination;
        match self.node(node).place.route(destination) {
            // A node that has something to tell itself, such as that its own packet is too large for a tunnel.
            Route::Local => self.deliver(node, InterfaceIndex(0), packet),
            _ if self.is_home_address_of(node, destination)
                || self.is_regional_address_of(node, destination) =>
            {
                self.deliver(node, InterfaceIndex(0), packet);
            }
            route => self.forward(node, packet, route),
        }
    }

    /// Counts a hop down; `false` when the packet's time was up and it is gone.
    pub(crate) fn count_down(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let header = self.pool[packet].outermost_mut();
        if header.ttl <= 1 {
            self.drop_packet(node, packet, NodeDrop::TtlExpired);
            return false;
        }
        header.ttl -= 1;
        self.pool.refresh(packet);
        true
    }

    pub(crate) fn forward(&mut self, node: NodeId, packet: PacketRef, route: Route) {
        if self.node(node).assist.is_some() {
            return self.forward_assisted(node, packet, route);
        }
        self.forward_on(node, packet, route);
    }

    /// The same, past any assist.
    pub(crate) fn forward_on(&mut self, node: NodeId, packet: PacketRef, route: Route) {
        match &self.node(node).agent {
            Agent::None | Agent::Mobile(_) | Agent::Correspondent(_) => {}
            Agent::Ipv6(host) if host.is_access_router() => {
                if self.shown_to_access_router(node, packet) {
                    return;
                }
            }
            Agent::Home(_) | Agent::Ipv6(_) => {
                let destination = self.pool[packet].outermost().destination;
                if self.intercept(node, packet, destination) {
                    return;
                }
            }
            Agent::Foreign(agent) => {
                let Packet { header, outer, .. } = &self.pool[packet];
                if outer.is_none() {
                    // A visitor is on the agent's own link, whatever the routes say of its home address.
                    if let Some(interface) = agent.deliver(header.destination.to_ipv4()) {
                        return self.transmit(node, InterfaceIndex(interface.0), packet);
                    }
                    if let Some(tunnel) = agent.reverse_tunnel(header.source.to_ipv4()) {
                        return self.encapsulate(node, packet, tunnel);
                    }
                }
            }
        }
        match route {
            Route::Via(interface) => self.transmit(node, interface, packet),
            Route::Home => self.drop_packet(node, packet, NodeDrop::NoBinding),
            Route::Local | Route::Unreachable => self.drop_packet(node, packet, NodeDrop::NoRoute),
        }
    }

    /// Hands a packet to the link at `interface`, in fragments if it must be.
    #[inline]
    pub(crate) fn transmit(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        match self.node(node).place.interfaces.get(usize::from(interface.0)) {
            Some(interface) => {
                let out = interface.out;
                self.transmit_by(node, out, packet);
            }
            // What is behind the wired interfaces of a station is its cell.
            None => self.transmit_in_cell(node, packet),
        }
    }

    /// Hands a packet to a one-way link, in fragments if it must be.
    #[inline]
    pub(crate) fn transmit_by(&mut self, node: NodeId, out: OneWayId, packet: PacketRef) {
        let size = self.pool.hop(packet).size;
        self.transmit_sized(node, out, packet, size);
    }

    /// The same, of a packet that has `size` bytes.
    #[inline(always)]
    pub(crate) fn transmit_sized(&mut self, node: NodeId, out: OneWayId, packet: PacketRef, size: u32) {
        let mtu = self.links[out.0 as usize].link.mtu();
        if size <= u32::from(mtu) {
            return self.offer(out, packet, size);
        }
        self.transmit_too_large(node, out, packet, mtu);
    }

    /// Hands a packet that exceeds a link's MTU to it in fragments, or tells its sender.
    #[cold]
    fn transmit_too_large(&mut self, node: NodeId, out: OneWayId, packet: PacketRef, mtu: u16) {
        self.pool.settle(packet);
        let header = self.pool[packet].outermost();
        // Over IPv6 only the source fragments (RFC 8200 section 5).
        let (dont_fragment, source) = (header.dont_fragment, header.source);
        if dont_fragment || header.is_ipv6() && !self.is_own(node, source) {
            self.fragmentation_needed(node, packet, mtu);
            return self.drop_packet(node, packet, NodeDrop::FragmentationNeeded);
        }
        self.cut(node, packet, mtu, |this, part| {
            let size = this.pool.hop(part).size;
            this.offer(out, part, size);
        });
    }

    /// Cuts a packet into fragments of at most `mtu` bytes (RFC 791 section 3.2), if it has to be, and sends each on.
    pub(crate) fn cut(
        &mut self,
        node: NodeId,
        packet: PacketRef,
        mtu: u16,
        send: impl Fn(&mut Self, PacketRef),
    ) {
        if self.pool.hop(packet).size <= u32::from(mtu) {
            return send(self, packet);
        }
        let whole = self.pool[packet].clone();
        let header = *whole.outermost();
        // Of a datagram that is fragmented again the fragment header is there.
        let room = if header.is_ipv6() && !header.is_fragment() { FRAGMENT_HEADER_LEN } else { 0 };
        let len = header.len + room;
        let step = (mtu - u16::from(len)) & !7;
        let mut offset = 0;
        while offset < header.payload_len {
            let payload_len = step.min(header.payload_len - offset);
            let mut part = whole.clone();
            let part_header = part.outermost_mut();
            part_header.len = len;
            part_header.fragment_offset = header.fragment_offset + offset;
            part_header.payload_len = payload_len;
            part_header.more_fragments = header.more_fragments || offset + payload_len < header.payload_len;
            let part = self.insert(part);
            self.trace_derived(node, part, whole.id, "fragment");
            send(self, part);
            offset += payload_len;
        }
        self.ledger.fragmented += 1;
        self.release(packet);
    }

    /// Tells whoever can do something about it that a packet is too large (RFC 1191, RFC 2003 section 5.1).
    fn fragmentation_needed(&mut self, node: NodeId, packet: PacketRef, mtu: u16) {
        let (mut quoted, mut next_hop_mtu) = (self.pool[packet].clone(), mtu);
        // The entry of a tunnel speaks for the whole tunnel, in terms of the packet that went in.
        while let Some(outer) = quoted.outer.filter(|outer| self.is_own(node, outer.header.source)) {
            quoted.leave();
            let overhead = outer.passage().overhead(quoted.outermost().source);
            next_hop_mtu = next_hop_mtu.saturating_sub(overhead);
        }
        let to = quoted.outermost().source;
        self.tell_too_large(node, to, &quoted, next_hop_mtu);
    }

    pub(crate) fn tell_too_large(
        &mut self,
        node: NodeId,
        to: Locator,
        too_large: &Packet,
        next_hop_mtu: u16,
    ) {
        let quoted = self.bytes.quote(too_large);
        if too_large.header.is_ipv6() {
            return self.tell_too_big(node, to, quoted, next_hop_mtu);
        }
        // No sender is told less than every node passes on whole (RFC 1191 section 3).
        let next_hop_mtu = next_hop_mtu.max(path_mtu::LEAST);
        let message = IcmpMessage::DestinationUnreachable(DestinationUnreachable {
            code: UnreachableCode::FragmentationNeeded,
            next_hop_mtu,
            quoted,
        });
        self.send_icmp(node, to, &message);
    }

    /// Sends an ICMP message from `node`, with the address of the interface it leaves by.
    pub(crate) fn send_icmp(&mut self, node: NodeId, to: Locator, message: &IcmpMessage) {
        if self.relays.is_some() && self.relay_hears(node, message) {
            return;
        }
        let source = self.source_address(node, to);
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        self.send_message(node, None, (source, to), DEFAULT_TTL, protocol::ICMP, bytes);
    }

    /// Sends a signalling datagram; by a given interface, or as the routes say.
    pub(crate) fn send_message(
        &mut self,
        node: NodeId,
        interface: Option<InterfaceIndex>,
        (source, destination): (Locator, Locator),
        ttl: u8,
        protocol: u8,
        payload: Vec<u8>,
    ) {
        let packet = self.message((source, destination), node, ttl, protocol, payload);
        self.trace_message(node, packet, true);
        match interface {
            Some(interface) => self.transmit(node, interface, packet),
            None => self.route_on(node, packet),
        }
    }

    /// A signalling datagram of `node`, not yet on its way.
    pub(crate) fn message(
        &mut self,
        (source, destination): (Locator, Locator),
        node: NodeId,
        ttl: u8,
        protocol: u8,
        payload: Vec<u8>,
    ) -> PacketRef {
        let header = Header {
            source,
            destination,
            protocol,
            ttl,
            tos: 0,
            len: self.ip_header_len,
            identification: self.next_identification(node),
            dont_fragment: self.ip_header_len == IPV6_LEN,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: payload.len() as u16,
        };
        self.insert(Packet::new(header, Body::Message(payload.into()), None))
    }

    /// Whether `address` belongs to `node`.
    pub(crate) fn is_own(&self, node: NodeId, address: Locator) -> bool {
        self.node(node).place.route(address) == Route::Local
            || self.is_home_address_of(node, address)
            || self.is_regional_address_of(node, address)
    }

    /// The address `node` speaks with towards `destination`.
    pub(crate) fn source_address(&self, node: NodeId, destination: Locator) -> Locator {
        let place = &self.node(node).place;
        match place.route(destination) {
            Route::Via(interface) => match (place.interfaces.get(usize::from(interface.0)), place.cell) {
                (Some(interface), _) => interface.address,
                // What is behind the wired interfaces of a station is its cell.
                (None, cell) => cell.map_or(Locator::NOWHERE, |cell| cell.address),
            },
            Route::Local => destination,
            Route::Home | Route::Unreachable => {
                place.interfaces.first().map_or(Locator::NOWHERE, |interface| interface.address)
            }
        }
    }

    /// A packet has reached an address of `node`.
    pub(crate) fn deliver(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let arrived = &self.pool[packet];
        if arrived.outer.is_none() && !arrived.header.is_fragment() && matches!(arrived.body, Body::Tcp(_)) {
            self.deliver_whole(node, interface, packet);
        } else {
            self.deliver_other(node, interface, packet);
        }
    }

    /// A whole segment has reached an address of `node`.
    #[inline(always)]
    fn deliver_whole(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        if self.watches_neighbors {
            return self.deliver_watched(node, interface, packet);
        }
        self.deliver_to_connection(node, interface, packet);
    }

    /// The same, for those only who are to take it.
    #[inline(always)]
    pub(crate) fn deliver_to_connection(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
    ) {
        if self.node(node).assist.is_some() {
            return self.deliver_assisted(node, interface, packet);
        }
        self.deliver_segment(node, packet);
    }

    /// A packet that is more than a whole segment out of any tunnel.
    #[inline(never)]
    fn deliver_other(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        if self.cluster.is_some() && self.is_gone(node) {
            return self.drop_packet(node, packet, NodeDrop::RelayGone);
        }
        let header = *self.pool[packet].outermost();
        let packet = if header.is_fragment() {
            match self.reassemble(node, &header, packet) {
                Some(whole) => whole,
                None => return,
            }
        } else {
            packet
        };
        if self.pool[packet].outer.is_some() {
            return self.leave_tunnel(node, interface, packet);
        }
        match &self.pool[packet].body {
            Body::Tcp(_) => self.deliver_whole(node, interface, packet),
            Body::Message(_) if self.pool[packet].origin.is_some() => {
                self.deliver_to_connection(node, interface, packet);
            }
            Body::OnLink(_) => self.hear_neighbor(node, interface, packet),
            Body::Message(_) if self.pool[packet].header.is_ipv6() => {
                self.deliver_ipv6_message(node, interface, packet, None, None);
            }
            Body::Message(bytes) => {
                let bytes = bytes.clone();
                self.trace_message(node, packet, false);
                let header = self.pool[packet].header;
                self.consume(packet);
                self.deliver_message(node, interface, &header, &bytes);
            }
        }
    }

    pub(crate) fn reassemble(
        &mut self,
        node: NodeId,
        header: &Header,
        packet: PacketRef,
    ) -> Option<PacketRef> {
        let now = self.now;
        let mut evicted = Vec::new();
        let outcome = self.nodes[usize::from(node.0)].reassembly.add(now, header, packet, &mut evicted);
        for fragment in evicted {
            self.drop_packet(node, fragment, NodeDrop::ReassemblyTimeout);
        }
        let deadline = self.node(node).reassembly.next_timeout();
        let slot = self.node(node).reassembly_slot;
        self.queue.set(slot, deadline);
        let Reassembled::Whole(fragments) = outcome else { return None };
        // RFC 3168 section 5.3: a mark on any fragment is one on the whole.
        let marked =
            fragments.iter().any(|fragment| self.pool[*fragment].outermost().congestion_experienced());
        // The last fragment in sequence knows the total length; the one that arrived last becomes the whole.
        let total = fragments
            .iter()
            .map(|fragment| self.pool[*fragment].outermost())
            .map(|header| header.fragment_offset + header.payload_len)
            .max()
            .unwrap_or(0);
        let (whole, parts) = fragments.split_last()?;
        for part in parts {
            self.ledger.reassembled += 1;
            self.release(*part);
        }
        let header = self.pool[*whole].outermost_mut();
        header.more_fragments = false;
        header.fragment_offset = 0;
        header.payload_len = total;
        if header.is_ipv6() {
            header.len -= FRAGMENT_HEADER_LEN;
        }
        if marked {
            header.mark_congestion();
        }
        self.pool.refresh(*whole);
        Some(*whole)
    }

    /// Counts and traces a packet dropped by a node, and gives its place back.
    pub(crate) fn drop_packet(&mut self, node: NodeId, packet: PacketRef, cause: NodeDrop) {
        self.digest.drop(self.now, self.pool.hop(packet).id, cause.name());
        self.ledger.drop_at_node(cause);
        self.observe_drop(node, packet, Cause::Node(cause));
        self.release(packet);
    }

    /// A packet has reached whom it was for.
    pub(crate) fn consume(&mut self, packet: PacketRef) {
        self.ledger.consumed += 1;
        self.release(packet);
    }
}

#[cfg(test)]
mod tests {
    use careof_base::Instant;
    use careof_plan::Observation;
    use careof_scenario::Scenario;
    use careof_wire::tunnel::Encapsulation;

    use super::*;
    use crate::passage::{Passage, Wrapping};

    /// The mobile node visits `second`, and has never been at `first`.
    const VISIT: &str = "duration = \"9 s\"\n[links]\nfirst = \"ethernet-10m\"\nsecond = \"ethernet-10m\"\n[mobility]\n\
        care_of = \"foreign-agent\"\nsmooth_handoff = true\nstart = \"second\"\n";

    /// A datagram of the correspondent's, which nobody can read, reaches a foreign agent from a tunnel that begins at
    /// `from`, when the mobile node is registered: how many were not understood, and what was dropped.
    fn tunnelled_to(agent: &str, from: &str) -> (u64, Vec<(NodeDrop, u64)>) {
        let scenario = Scenario::parse("x.toml", VISIT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mut simulation = Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap();
        simulation.advance(Instant::from_secs(5)).unwrap();
        let find = |name: &str| simulation.topology.find(name).unwrap();
        let (agent, correspondent) = (find(agent), find("correspondent"));
        let address = |name: &str| match name {
            "home-agent" => simulation.topology.homes.first().unwrap().agent_address,
            name => simulation.topology.address_of(find(name)),
        };
        let home_address = simulation.topology.homes.first().unwrap().home_address;
        let (entry, exit) = (address(from), simulation.topology.address_of(agent));
        let source = simulation.topology.address_of(correspondent);
        let header = Header {
            source,
            destination: home_address,
            protocol: protocol::UDP,
            ttl: 60,
            payload_len: 8,
            ..Header::default()
        };
        let packet = simulation.insert(Packet::new(header, Body::Message(vec![0; 8].into()), None));
        assert_eq!((simulation.malformed_messages, simulation.ledger.dropped_at_nodes().count()), (0, 0));
        let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
        assert!(simulation.put_in_tunnel(correspondent, packet, Passage { wrapping, entry, exit, ttl: 60 }));
        simulation.look_closer(agent, InterfaceIndex(0), packet);
        // Before anybody advertises or renews.
        simulation.advance(Instant::from_secs(5) + careof_base::Duration::from_millis(20)).unwrap();
        (simulation.malformed_messages, simulation.ledger.dropped_at_nodes().collect())
    }

    #[test]
    fn a_packet_at_an_agent_that_knows_nothing_finds_the_mobile_node_by_way_of_its_home_agent() {
        for from in ["correspondent", "home-agent"] {
            assert_eq!(tunnelled_to("foreign-agent-first", from), (1, Vec::new()), "{from}");
        }
    }

    #[test]
    fn a_packet_at_the_agent_where_the_mobile_node_is_takes_no_detour() {
        assert_eq!(tunnelled_to("foreign-agent-second", "correspondent"), (1, Vec::new()));
    }
}
