//! Packets that enter tunnels and leave them.

use careof_mobility::InterfaceId;
use careof_mobility::path_mtu;
use careof_plan::{InterfaceIndex, Locator, NodeId};
use careof_wire::tunnel::Encapsulation;

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::packet::{Outer, PacketRef};
use crate::passage::{Passage, Passed, Wrapping};
use crate::simulation::Simulation;

impl Simulation {
    /// Home agent: tunnels a packet for a mobile node that is away to each of its care-of addresses.
    pub(crate) fn intercept(&mut self, node: NodeId, packet: PacketRef, destination: Locator) -> bool {
        let agent = &self.node(node).agent;
        let Some((first, others)) = agent.tunnel_to(destination, 0) else { return false };
        let tells = matches!(agent, Agent::Home(agent) if agent.has_correspondents());
        if let (Some(outer), Agent::Home(_)) = (self.pool[packet].outer, agent) {
            return self.intercept_returned(node, packet, &outer);
        }
        if self.multipath.is_some() && self.disperse(node, packet) {
            return true;
        }
        let source = self.pool[packet].header.source;
        for n in 1..=others {
            let Some((tunnel, _)) = self.node(node).agent.tunnel_to(destination, n) else { break };
            let copy = self.pool[packet].clone();
            let original = copy.id;
            let copy = self.insert(copy);
            self.trace_derived(node, copy, original, "copy");
            self.encapsulate(node, copy, tunnel);
        }
        self.encapsulate(node, packet, first);
        if tells {
            self.tell_correspondent(node, destination, source);
        }
        true
    }

    /// Home agent: who sent what was tunnelled can tunnel it itself the next time.
    fn tell_correspondent(&mut self, node: NodeId, home_address: Locator, source: Locator) {
        let now = self.now;
        if let Agent::Home(agent) = &mut self.node_mut(node).agent {
            agent.tunnelled(now, home_address.to_ipv4(), source.to_ipv4());
            self.drive_agent(node);
        }
    }

    /// Home agent: a packet in a special tunnel, one that leads to the home address itself, comes from somebody who was sent it
    /// and does not know the mobile node any longer. It goes to wherever else the node is (draft-ietf-mobileip-optim).
    fn intercept_returned(&mut self, node: NodeId, packet: PacketRef, outer: &Outer) -> bool {
        let destination = self.pool[packet].header.destination;
        if outer.header.destination != destination {
            return false;
        }
        self.strip_outer(packet);
        let Agent::Home(agent) = &self.node(node).agent else { return false };
        let returned_by = outer.header.source.to_ipv4();
        let elsewhere = agent.tunnels(destination.to_ipv4()).iter().find(|tunnel| tunnel.exit != returned_by);
        match elsewhere.copied() {
            Some(tunnel) => {
                let source = self.pool[packet].header.source;
                self.encapsulate(node, packet, tunnel);
                self.tell_correspondent(node, destination, source);
            }
            None => self.drop_packet(node, packet, NodeDrop::TunnelLoop),
        }
        true
    }

    /// Puts a packet into a tunnel and sends it on.
    pub(crate) fn encapsulate(&mut self, node: NodeId, packet: PacketRef, passage: impl Into<Passage>) {
        if !self.put_in_tunnel(node, packet, passage.into()) {
            return;
        }
        match self.pool[packet].in_fragments {
            0 => self.send_as_known(node, packet, |this, part| this.route_on(node, part)),
            longest => {
                // Another tunnel on the way takes the fragments as they are.
                self.pool[packet].in_fragments = 0;
                self.cut(node, packet, longest, |this, part| this.route_on(node, part));
            }
        }
    }

    /// Sends a packet that has entered a tunnel, in fragments where that is known not to take it whole and the entry cuts it.
    pub(crate) fn send_as_known(
        &mut self,
        node: NodeId,
        packet: PacketRef,
        send: impl Fn(&mut Self, PacketRef),
    ) {
        let header = self.pool[packet].outermost();
        let known = match self.tunnel_mtus.is_empty() || header.dont_fragment || !header.is_ipv6() {
            true => None,
            false => self.tunnel_mtus.get(&(node, header.destination)).and_then(|mtu| mtu.get(self.now)),
        };
        match known {
            Some(mtu) => self.cut(node, packet, mtu, send),
            None => send(self, packet),
        }
    }

    /// Writes the outer header; `false` when the packet had to be dropped instead.
    pub(crate) fn put_in_tunnel(&mut self, node: NodeId, packet: PacketRef, passage: Passage) -> bool {
        if !self.tunnel_mtus.is_empty() && self.exceeds_tunnel(node, packet, passage) {
            self.drop_packet(node, packet, NodeDrop::FragmentationNeeded);
            return false;
        }
        let identification = self.next_identification(node);
        let inner = &mut self.pool[packet];
        let entering = *inner.outermost();
        // A packet from the tunnel's exit would go round in circles (RFC 2003 section 3.2, RFC 2473 section 3.4). The headers of route
        // optimisation are the sender's, which nothing else stands around yet.
        let is_tunnel = !matches!(passage.wrapping, Wrapping::Extended { .. });
        if is_tunnel && entering.source == passage.exit || !is_tunnel && inner.outer.is_some() {
            self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
            return false;
        }
        if inner.outer.is_some() && inner.has_entered(&passage) {
            self.drop_packet(node, packet, NodeDrop::TunnelLoop);
            return false;
        }
        // The minimal forwarding header has no room for a fragment (RFC 2004 section 2).
        let wrapping = match passage.wrapping {
            Wrapping::Ipv4(Encapsulation::Minimal) if entering.is_fragment() => {
                Wrapping::Ipv4(Encapsulation::IpInIp)
            }
            other => other,
        };
        let passage = Passage { wrapping, ..passage };
        let header = passage.wrap(&entering, inner.in_fragments != 0, identification);
        inner.enter(Outer { header, wrapping });
        self.pool.refresh(packet);
        if is_tunnel {
            self.count_at_home(node, packet, passage.exit, true);
        }
        true
    }

    /// A packet enters a tunnel at a home agent, or comes out of one; `there` is its other end.
    #[inline]
    fn count_at_home(&mut self, node: NodeId, packet: PacketRef, there: Locator, sent: bool) {
        if self.passed_at_home.is_some() {
            self.add_at_home(node, packet, there, sent);
        }
    }

    #[inline(never)]
    fn add_at_home(&mut self, node: NodeId, packet: PacketRef, there: Locator, sent: bool) {
        let Some(passed) = &mut self.passed_at_home else { return };
        if !self.nodes[usize::from(node.0)].agent.is_home_agent() {
            return;
        }
        let inner = &self.pool[packet].header;
        let (home, bytes) = (if sent { inner.destination } else { inner.source }, inner.total_len());
        let counts = passed.entry((node, home, there)).or_default();
        let (packets, sum) = if sent {
            (&mut counts.packets_sent, &mut counts.bytes_sent)
        } else {
            (&mut counts.packets_received, &mut counts.bytes_received)
        };
        *packets = packets.wrapping_add(1);
        *sum = sum.wrapping_add(u64::from(bytes));
    }

    /// Whether a packet that must not be fragmented is larger than the tunnel is known to take: then its sender is told
    /// (RFC 2003 section 5.1).
    fn exceeds_tunnel(&mut self, node: NodeId, packet: PacketRef, passage: Passage) -> bool {
        let entering = &self.pool[packet];
        let (header, in_fragments) = (entering.outermost(), entering.in_fragments);
        let overhead = passage.overhead(header.source);
        let known = self.tunnel_mtus.get(&(node, passage.exit)).and_then(|mtu| mtu.get(self.now));
        let Some(mtu) = known.map(|mtu| mtu.saturating_sub(overhead)) else { return false };
        if !header.dont_fragment
            || passage.takes_in_fragments(header)
            || in_fragments != 0
            || header.total_len() <= mtu
        {
            return false;
        }
        let (to, inner) = (header.source, self.pool[packet].clone());
        self.tell_too_large(node, to, &inner, mtu);
        true
    }

    /// A router on the way of a tunnel that begins at `node` says that a datagram is too large for its next link, which takes `mtu`
    /// bytes.
    pub(crate) fn tunnel_mtu_learnt(&mut self, node: NodeId, exit: Locator, mtu: u16) {
        self.tunnel_mtus.entry((node, exit)).or_default().lower(self.now, mtu, path_mtu::LIFETIME);
    }

    /// Takes the outer header off, if this node is a tunnel exit for its sender.
    pub(crate) fn leave_tunnel(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        self.leave_tunnel_in(node, interface, packet, None);
    }

    /// The same, of a packet that has left the tunnel `around` this one here.
    fn leave_tunnel_in(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        around: Option<&Outer>,
    ) {
        let Some(outer) = self.pool[packet].outer else { return };
        if self.cluster.is_some() && self.relay_on(node, interface, packet, &outer) {
            return;
        }
        let arrived = &self.pool[packet];
        let (inner, is_nested) = (*arrived.within(), arrived.is_nested());
        let is_message = !is_nested && arrived.is_signalling();
        let is_extended = matches!(outer.wrapping, Wrapping::Extended { .. });
        let is_in_udp = matches!(outer.wrapping, Wrapping::Ipv6InIpv4 { udp: true });
        // An agent judges the headers of messages for itself.
        let accepts = match &self.node(node).agent {
            Agent::Ipv6(_) => {
                let is_for_agent = is_extended || is_in_udp && self.is_own(node, inner.destination);
                is_for_agent && is_message || self.ipv6_accepts(node, interface, &outer, &inner, around)
            }
            agent => {
                // Through a relay it is the header around that says where it comes from.
                let around = around.filter(|_| outer.wrapping == Wrapping::Multipath);
                agent.accepts_tunnel(interface, &around.unwrap_or(&outer).header, &inner)
            }
        };
        if !accepts {
            return self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
        }
        let multipath = self.pool[packet].multipath().copied();
        self.strip_outer(packet);
        if is_nested {
            return self.go_on_in_tunnel(node, interface, packet, &outer);
        }
        let bytes = u64::from(inner.total_len());
        if !is_message || !is_extended {
            let passed = Passed { sent: false, straight: is_extended, bytes };
            self.note_passed(node, InterfaceId(interface.0), passed);
        }
        if is_message && inner.is_ipv6() && (is_extended || self.is_own(node, inner.destination)) {
            return self.deliver_ipv6_message(node, interface, packet, Some(&outer), around);
        }
        if inner.is_ipv6() {
            self.note_correspondent(node, inner.source);
        }
        self.count_at_home(node, packet, outer.header.source, false);
        if let Some(header) = multipath {
            return self.restore_order(node, interface, packet, &header);
        }
        if self.is_own(node, inner.destination) {
            return self.deliver(node, interface, packet);
        }
        // What came out of a tunnel is forwarded like anything else (RFC 2003 section 3.1).
        if self.count_down(node, packet) && !self.passed_on(node, packet, outer.header.source) {
            self.route_on(node, packet);
        }
    }

    /// A packet out of a tunnel over several paths goes on, now that those before it have.
    pub(crate) fn pass_on_in_order(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let destination = self.pool[packet].header.destination;
        if self.is_own(node, destination) {
            self.deliver(node, interface, packet);
        } else if self.count_down(node, packet) {
            self.route_on(node, packet);
        }
    }

    /// A packet out of a tunnel is still in another one.
    fn go_on_in_tunnel(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        around: &Outer,
    ) {
        let header = *self.pool[packet].outermost();
        if self.is_own(node, header.destination) {
            let whole =
                if header.is_fragment() { self.reassemble(node, &header, packet) } else { Some(packet) };
            if let Some(packet) = whole {
                // What access routers put around says nothing to the registrations.
                let tells = self.cluster.is_some() || !self.topology.anchor_points.is_empty();
                let around = Some(around).filter(|_| tells);
                self.leave_tunnel_in(node, interface, packet, around);
            }
            return;
        }
        if self.count_down(node, packet) {
            self.route_on(node, packet);
        }
    }

    /// Takes the outermost header off.
    pub(crate) fn strip_outer(&mut self, packet: PacketRef) {
        self.pool[packet].leave();
        self.pool[packet].in_fragments = 0;
        self.pool.refresh(packet);
    }

    /// Foreign agent: sees to a packet out of a tunnel that began at `from` whose mobile node is not here any longer; whether
    /// it was one.
    fn passed_on(&mut self, node: NodeId, packet: PacketRef, from: Locator) -> bool {
        let (now, destination) = (self.now, self.pool[packet].header.destination);
        let Agent::Foreign(agent) = &mut self.node_mut(node).agent else { return false };
        if !agent.passes_on(destination.to_ipv4()) || agent.deliver(destination.to_ipv4()).is_some() {
            return false;
        }
        match agent.pass_on(now, destination.to_ipv4(), from.to_ipv4()) {
            Some(tunnel) => {
                self.encapsulate(node, packet, tunnel);
                self.drive_agent(node);
            }
            None => self.drop_packet(node, packet, NodeDrop::TunnelLoop),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::header::Header;
    use careof_base::Instant;
    use careof_plan::Observation;
    use careof_scenario::Scenario;
    use careof_wire::protocol;

    use super::*;
    use crate::packet::Body;
    use crate::packet::Packet;

    const VISIT: &str =
        "duration = \"9 s\"\n[links]\nfirst = { preset = \"ethernet-10m\", mtu = 576 }\n[mobility]\n";

    /// A datagram of the correspondent's, which nobody can read, in tunnels from these nodes to the care-of address, the innermost first.
    struct Sent {
        simulation: Simulation,
        correspondent: NodeId,
        packet: PacketRef,
        entries: Vec<Locator>,
        exit: Locator,
    }

    fn sent(tunnels: usize, payload_len: u16, dont_fragment: bool) -> Sent {
        let scenario = Scenario::parse("x.toml", VISIT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mut simulation = Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap();
        simulation.advance(Instant::from_secs(5)).unwrap();
        let find = |name: &str| simulation.topology.find(name).unwrap();
        let (correspondent, mobile) = (find("correspondent"), find("mobile"));
        let home_agent = find("home-agent");
        let home = *simulation.topology.homes.first().unwrap();
        let own = simulation.topology.address_of(correspondent);
        let entries =
            vec![home.agent_address, simulation.topology.place(home_agent).interfaces[0].address, own];
        let exit = simulation.topology.place(mobile).interfaces[0].address;
        let header = Header {
            source: own,
            destination: home.home_address,
            protocol: protocol::UDP,
            ttl: 60,
            payload_len,
            dont_fragment,
            ..Header::default()
        };
        let body = Body::Message(vec![0; payload_len.into()].into());
        let packet = simulation.insert(Packet::new(header, body, None));
        for &entry in &entries[..tunnels] {
            let passage = Passage { wrapping: Wrapping::Ipv4(Encapsulation::IpInIp), entry, exit, ttl: 64 };
            assert!(simulation.put_in_tunnel(correspondent, packet, passage));
        }
        Sent { simulation, correspondent, packet, entries, exit }
    }

    #[test]
    fn a_packet_in_nested_tunnels_is_cut_and_put_together_and_comes_out_of_all_of_them() {
        for tunnels in [1, 2, 3] {
            let Sent { mut simulation, correspondent, packet, .. } = sent(tunnels, 1_000, false);
            assert_eq!(simulation.pool[packet].size_bytes(), 1_020 + 20 * tunnels as u32);
            simulation.route_on(correspondent, packet);
            simulation.advance(Instant::from_millis(5_100)).unwrap();
            assert_eq!((simulation.malformed_messages, simulation.ledger.fragmented), (1, 1), "{tunnels}");
            assert_eq!(simulation.ledger.dropped_at_nodes().count(), 0, "{tunnels}");
        }
    }

    #[test]
    fn each_entry_of_nested_tunnels_learns_the_mtu_and_tells_who_is_inside() {
        let Sent { mut simulation, correspondent, packet, entries, exit } = sent(0, 1_000, true);
        // Both begin at the correspondent node, which has one address more for that.
        let own = entries[2];
        let elsewhere = simulation.topology.homes.first().unwrap().agent_address;
        let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
        for exit in [elsewhere, exit] {
            assert!(simulation.put_in_tunnel(
                correspondent,
                packet,
                Passage { wrapping, entry: own, exit, ttl: 64 }
            ));
        }
        simulation.route_on(correspondent, packet);
        simulation.advance(Instant::from_millis(5_100)).unwrap();
        let now = simulation.now;
        let learnt =
            |exit: Locator| simulation.tunnel_mtus.get(&(correspondent, exit)).and_then(|mtu| mtu.get(now));
        assert_eq!((learnt(exit), learnt(elsewhere)), (Some(576), Some(556)));
    }

    #[test]
    fn a_packet_goes_through_a_tunnel_once_and_not_through_too_many() {
        let Sent { mut simulation, correspondent, packet, entries, exit } = sent(3, 8, false);
        let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
        let again = Passage { wrapping, entry: entries[0], exit, ttl: 64 };
        let copy = simulation.pool[packet].clone();
        let copy = simulation.insert(copy);
        assert!(!simulation.put_in_tunnel(correspondent, packet, again));
        let others = (1..4).map(|n| entries[1].beside(100 + n));
        let entered = others.filter(|&entry| {
            let passage = Passage { entry, ..again };
            simulation.put_in_tunnel(correspondent, copy, passage)
        });
        assert_eq!(entered.count(), 2);
        assert_eq!(simulation.ledger.dropped_at_nodes().collect::<Vec<_>>(), [(NodeDrop::TunnelLoop, 2)]);
    }
}
