//! The life of a packet at a node: arrive, forward, tunnel, fragment, transmit.

use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv6::FragmentHeader;
use careof_wire::protocol;
use careof_wire::tunnel::Encapsulation;

use crate::agents::Agent;
use crate::drop_cause::{Cause, NodeDrop};
use crate::header::{Header, IPV6_LEN};
use crate::packet::{Body, Outer, Packet, PacketRef};
use crate::passage::{Passage, Passed, Wrapping};
use crate::reassembly::Reassembled;
use crate::simulation::Simulation;
use careof_mobility::path_mtu;
use careof_mobility::v4::InterfaceId;
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
                    return self.drop_packet(node, packet, NodeDrop::NotForUs);
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
            _ if self.is_home_address_of(node, destination) => {
                self.deliver(node, InterfaceIndex(0), packet);
            }
            route => self.forward(node, packet, route),
        }
    }

    /// Counts a hop down; `false` when the packet's time was up and it is gone.
    fn count_down(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let header = self.pool[packet].outermost_mut();
        if header.ttl <= 1 {
            self.drop_packet(node, packet, NodeDrop::TtlExpired);
            return false;
        }
        header.ttl -= 1;
        self.pool.refresh(packet);
        true
    }

    fn forward(&mut self, node: NodeId, packet: PacketRef, route: Route) {
        if self.node(node).assist.is_some() {
            return self.forward_assisted(node, packet, route);
        }
        self.forward_on(node, packet, route);
    }

    /// The same, past any assist.
    pub(crate) fn forward_on(&mut self, node: NodeId, packet: PacketRef, route: Route) {
        match &self.node(node).agent {
            Agent::None | Agent::Mobile(_) | Agent::Correspondent(_) => {}
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

    /// Home agent: tunnels a packet for a mobile node that is away to each of its care-of addresses.
    fn intercept(&mut self, node: NodeId, packet: PacketRef, destination: Locator) -> bool {
        let agent = &self.node(node).agent;
        let Some((first, others)) = agent.tunnel_to(destination, 0) else { return false };
        let tells = matches!(agent, Agent::Home(agent) if agent.has_correspondents());
        if let Some(outer) = self.pool[packet].outer {
            return self.intercept_returned(node, packet, &outer);
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
        self.strip_outer(packet, outer);
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
            0 => self.route_on(node, packet),
            longest => self.cut(node, packet, longest, |this, part| this.route_on(node, part)),
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
        // A packet from the tunnel's exit would go round in circles (RFC 2003 section 3.2, RFC 2473 section 3.4); a tunnel within a
        // tunnel is nothing any agent asks for.
        let is_tunnel = !matches!(passage.wrapping, Wrapping::Extended { .. });
        if inner.outer.is_some() || is_tunnel && inner.header.source == passage.exit {
            self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
            return false;
        }
        // The minimal forwarding header has no room for a fragment (RFC 2004 section 2).
        let wrapping = match passage.wrapping {
            Wrapping::Ipv4(Encapsulation::Minimal) if inner.header.is_fragment() => {
                Wrapping::Ipv4(Encapsulation::IpInIp)
            }
            other => other,
        };
        let passage = Passage { wrapping, ..passage };
        let header = passage.wrap(&inner.header, inner.in_fragments != 0, identification);
        inner.outer = Some(Outer { header, wrapping });
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

    /// Whether a packet that must not be fragmented is larger than the tunnel is known to take: then its sender is told
    /// (RFC 2003 section 5.1).
    fn exceeds_tunnel(&mut self, node: NodeId, packet: PacketRef, passage: Passage) -> bool {
        let Packet { header, in_fragments, .. } = &self.pool[packet];
        let overhead = passage.overhead(header.source);
        let known = self.tunnel_mtus.get(&(node, passage.exit)).and_then(|mtu| mtu.get(self.now));
        let Some(mtu) = known.map(|mtu| mtu.saturating_sub(overhead)) else { return false };
        if !header.dont_fragment || *in_fragments != 0 || header.total_len() <= mtu {
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
        let too_large = &self.pool[packet];
        let own_tunnel = too_large.outer.filter(|outer| self.is_own(node, outer.header.source));
        // The entry of a tunnel speaks for the whole tunnel, in terms of the packet that went in.
        let (to, next_hop_mtu, quoted) = match own_tunnel {
            Some(outer) => {
                let overhead = outer.passage().overhead(too_large.header.source);
                let inner = Packet { outer: None, ..too_large.clone() };
                (too_large.header.source, mtu.saturating_sub(overhead), inner)
            }
            None => (too_large.outermost().source, mtu, too_large.clone()),
        };
        self.tell_too_large(node, to, &quoted, next_hop_mtu);
    }

    fn tell_too_large(&mut self, node: NodeId, to: Locator, too_large: &Packet, next_hop_mtu: u16) {
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
        let packet = self.insert(Packet {
            id: 0,
            header,
            outer: None,
            body: Body::Message(payload.into()),
            origin: None,
            in_fragments: 0,
        });
        self.trace_message(node, packet, true);
        match interface {
            Some(interface) => self.transmit(node, interface, packet),
            None => self.route_on(node, packet),
        }
    }

    /// Whether `address` belongs to `node`.
    pub(crate) fn is_own(&self, node: NodeId, address: Locator) -> bool {
        self.node(node).place.route(address) == Route::Local || self.is_home_address_of(node, address)
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
    fn deliver(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
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
            Body::OnLink(_) => self.hear_neighbor(node, interface, packet),
            Body::Message(_) if self.pool[packet].header.is_ipv6() => {
                self.deliver_ipv6_message(node, interface, packet, None);
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

    /// Takes the outer header off, if this node is a tunnel exit for its sender.
    fn leave_tunnel(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let Some(outer) = self.pool[packet].outer else { return };
        let inner = self.pool[packet].header;
        let is_message = matches!(self.pool[packet].body, Body::Message(_));
        let is_extended = matches!(outer.wrapping, Wrapping::Extended { .. });
        let is_in_udp = matches!(outer.wrapping, Wrapping::Ipv6InIpv4 { udp: true });
        // An agent judges the headers of messages for itself.
        let accepts = match &self.node(node).agent {
            Agent::Ipv6(_) => {
                let is_for_agent = is_extended || is_in_udp && self.is_own(node, inner.destination);
                is_for_agent && is_message || self.ipv6_accepts(node, interface, &outer, &inner)
            }
            agent => agent.accepts_tunnel(interface, &outer.header, &inner),
        };
        if !accepts {
            return self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
        }
        self.strip_outer(packet, &outer);
        let bytes = u64::from(inner.total_len());
        if !is_message || !is_extended {
            let passed = Passed { sent: false, straight: is_extended, bytes };
            self.note_passed(node, InterfaceId(interface.0), passed);
        }
        if is_message && inner.is_ipv6() && (is_extended || self.is_own(node, inner.destination)) {
            return self.deliver_ipv6_message(node, interface, packet, Some(&outer));
        }
        if inner.is_ipv6() {
            self.note_correspondent(node, inner.source);
        }
        self.count_at_home(node, packet, outer.header.source, false);
        if self.is_own(node, inner.destination) {
            return self.deliver(node, interface, packet);
        }
        // What came out of a tunnel is forwarded like anything else (RFC 2003 section 3.1).
        if self.count_down(node, packet) && !self.passed_on(node, packet, outer.header.source) {
            self.route_on(node, packet);
        }
    }

    /// Takes the outer header off.
    fn strip_outer(&mut self, packet: PacketRef, outer: &Outer) {
        if let Wrapping::Ipv4(Encapsulation::Minimal) | Wrapping::Extended { .. } = outer.wrapping {
            self.pool[packet].header.ttl = outer.header.ttl;
        }
        // RFC 6040 section 4.2; the inner field is capable, for the outer one was copied from it (section 4.1).
        if outer.header.congestion_experienced() {
            self.pool[packet].header.mark_congestion();
        }
        self.pool[packet].outer = None;
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

    use super::*;

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
        let packet = simulation.insert(Packet {
            id: 0,
            header: Header {
                source,
                destination: home_address,
                protocol: protocol::UDP,
                ttl: 60,
                payload_len: 8,
                ..Header::default()
            },
            outer: None,
            body: Body::Message(vec![0; 8].into()),
            origin: None,
            in_fragments: 0,
        });
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
