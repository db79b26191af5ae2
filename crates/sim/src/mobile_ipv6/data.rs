//! Packets of mobile nodes and of those they talk to: in tunnels, and by the headers of route optimisation.

use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, Delivery, Tunnel};
use careof_plan::{InterfaceIndex, Locator, NodeId};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::mip6::DSMIPV6_PORT;

use super::{Ipv6Host, Ipv6Role};
use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::header::Header;
use crate::packet::{Outer, Packet, PacketRef};
use crate::passage::{Passage, Passed, Wrapping};
use crate::simulation::Simulation;

impl Simulation {
    /// The mobile node sends a packet of its own, as it knows its peer.
    pub(crate) fn originate_ipv6(&mut self, node: NodeId, packet: PacketRef) {
        let Packet { header, .. } = &self.pool[packet];
        let (destination, ttl) = (self.address_v6(header.destination), header.ttl);
        let Agent::Ipv6(host) = &self.node(node).agent else { return self.route_on(node, packet) };
        let delivery = host.mobile().and_then(|mobile| mobile.delivery(destination));
        let Some(Delivery { interface, addresses, .. }) = delivery else {
            return self.originate_by_way_back(node, packet);
        };
        let bytes = u64::from(self.pool[packet].header.total_len());
        let [first, around] = self.passages(&addresses, ttl);
        if let Some(first) = first {
            if !self.put_in_tunnel(node, packet, first) {
                return;
            }
            let straight = addresses.tunnel.is_none();
            self.note_passed(node, interface, Passed { sent: true, straight, bytes });
        }
        self.send_as_known(node, packet, |this, part| this.send_around(node, around, Some(interface), part));
    }

    /// Sends what has entered a tunnel, or a fragment of it, in the one `around` that where there is one; without an interface as the routes
    /// say.
    pub(super) fn send_around(
        &mut self,
        node: NodeId,
        around: Option<Passage>,
        interface: Option<InterfaceId>,
        packet: PacketRef,
    ) {
        if let Some(around) = around
            && !self.put_in_tunnel(node, packet, around)
        {
            return;
        }
        self.send_as_known(node, packet, |this, part| match interface {
            Some(interface) => this.send_to_next_hop(node, interface, part),
            None => this.route_on(node, part),
        });
    }

    /// The same while nothing is registered: by way of the previous access router, if there is a tunnel to it.
    fn originate_by_way_back(&mut self, node: NodeId, packet: PacketRef) {
        let Packet { header, .. } = &self.pool[packet];
        let (destination, ttl) = (self.address_v6(header.destination), header.ttl);
        let Agent::Ipv6(host) = &self.node(node).agent else { return self.route_on(node, packet) };
        let Some((delivery, tunnel, interface)) = host.way_back(destination) else {
            return self.drop_packet(node, packet, NodeDrop::NoRoute);
        };
        let inner = match delivery.addresses.tunnel {
            Some(tunnel) => self.tunnel_passage(tunnel),
            None => self.extended_passage(&delivery.addresses, ttl),
        };
        let outer = self.tunnel_passage(tunnel);
        if self.put_in_tunnel(node, packet, inner) {
            self.send_as_known(node, packet, |this, part| {
                this.send_around(node, Some(outer), Some(interface), part);
            });
        }
    }

    /// What a mobile node's TCP knows of the MTU towards a peer; `None` if it is no mobile node of Mobile IPv6.
    pub(crate) fn ipv6_mtu_towards(&self, node: NodeId, peer: Locator) -> Option<Option<u16>> {
        let Agent::Ipv6(host) = &self.node(node).agent else { return None };
        let mobile = host.mobile()?;
        let peer = self.address_v6(peer);
        // Packets for the previous care-of address come in a tunnel more, and some go back in one.
        let tunnels = 1 + u16::from(host.fast.is_some());
        let back = || host.way_back(peer).map(|(delivery, _, interface)| Delivery { interface, ..delivery });
        Some(mobile.delivery(peer).or_else(back).and_then(|delivery| {
            let way = self.way_of(node, delivery.interface)?;
            let mtu = self.links[way.0 as usize].link.mtu();
            let is_wrapped = delivery.addresses
                != Addresses::new(delivery.addresses.source, delivery.addresses.destination);
            // The tunnel takes more than the headers of route optimisation, which may come later or end.
            let tunnels = tunnels + u16::from(delivery.addresses.map_tunnel.is_some());
            let overhead = tunnels * Ipv6Header::LEN;
            Some(if is_wrapped && self.leaves_room { mtu.saturating_sub(overhead) } else { mtu })
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
        around: Option<&Outer>,
    ) -> bool {
        let now = self.now;
        let addresses = self.addresses_of(inner, Some(outer), around);
        let is_home_address = self.is_home_address_of(node, inner.destination);
        let Some(host) = self.ipv6(node) else { return false };
        let interface = InterfaceId(interface.0);
        match (&mut host.role, outer.wrapping) {
            (Ipv6Role::Home(agent), Wrapping::Ipv6 | Wrapping::Ipv6InIpv4 { udp: false }) => {
                let Some(Tunnel { entry, .. }) = addresses.tunnel else { return false };
                agent.accepts_reverse_tunnel(addresses.source, entry)
            }
            (Ipv6Role::Home(agent), Wrapping::Extended { home_address: true, routing: false }) => {
                agent.accepts_home_address_option(addresses.real_source(), addresses.source)
            }
            (Ipv6Role::AnchorPoint(agent), Wrapping::Ipv6) => {
                let Some(Tunnel { entry, .. }) = addresses.tunnel else { return false };
                agent.accepts_reverse_tunnel(addresses.source, entry)
            }
            (Ipv6Role::AccessRouter(router), Wrapping::Ipv6) => {
                let Some(Tunnel { entry, .. }) = addresses.tunnel else { return false };
                router.accepts_tunnel(addresses.source, addresses.destination, entry)
            }
            (Ipv6Role::Mobile(_), Wrapping::Ipv6)
                if host.fast.as_ref().is_some_and(|fast| fast.takes_out_of(addresses.tunnel)) =>
            {
                true
            }
            (Ipv6Role::Correspondent(agent), Wrapping::Extended { home_address: true, routing: false }) => {
                let accepts = agent.accepts_home_address_option(now, &addresses, inner.protocol);
                if !accepts {
                    self.drive_ipv6(node);
                }
                accepts
            }
            (_, wrapping) => match (host.mobile(), wrapping) {
                (Some(mobile), Wrapping::Ipv6 | Wrapping::Ipv6InIpv4 { udp: false }) => {
                    mobile.listens_on(interface) && mobile.accepts_tunnels(&addresses)
                }
                (Some(mobile), Wrapping::Extended { home_address: false, routing: true }) => {
                    is_home_address && mobile.listens_on(interface)
                }
                _ => false,
            },
        }
    }

    /// A packet of a peer's has reached the mobile node away from home: the way to there may be optimised.
    pub(crate) fn note_correspondent(&mut self, node: NodeId, peer: Locator) {
        let optimises = self.scenario.mobility.as_ref().is_some_and(|mobility| mobility.route_optimization);
        if !optimises && !self.topology.anchor_points.is_empty() {
            // A hierarchical mobile node goes through all it knows, which would be for nothing with each packet.
            return;
        }
        let (now, peer) = (self.now, self.address_v6(peer));
        if self.ipv6(node).is_some_and(|host| host.role.note_correspondent(now, peer)) {
            self.drive_ipv6(node);
        }
    }

    /// The addresses of a packet with this header, in what it came in, and in the tunnel around that.
    pub(super) fn addresses_of(
        &self,
        inner: &Header,
        outer: Option<&Outer>,
        around: Option<&Outer>,
    ) -> Addresses {
        let addresses = self.addresses_in(inner, outer);
        let Some(Outer { header, .. }) = around else { return addresses };
        let [entry, exit] = [header.source, header.destination].map(|end| self.address_v6(end));
        addresses.through_map(Tunnel { entry, exit })
    }

    fn addresses_in(&self, inner: &Header, outer: Option<&Outer>) -> Addresses {
        let [source, destination] = [inner.source, inner.destination].map(|end| self.address_v6(end));
        let plain = Addresses::new(source, destination);
        let Some(Outer { header, wrapping }) = outer else { return plain };
        if let Wrapping::Ipv6InIpv4 { udp } = wrapping {
            let tunnel = Tunnel::through_ipv4(header.source.to_ipv4(), header.destination.to_ipv4());
            let addresses = plain.through(tunnel);
            return if *udp { addresses.in_udp(DSMIPV6_PORT) } else { addresses };
        }
        let [entry, exit] = [header.source, header.destination].map(|end| self.address_v6(end));
        match wrapping {
            Wrapping::Extended { home_address, routing } => Addresses {
                home_address: home_address.then_some(source),
                type_2_routing: routing.then_some(destination),
                ..Addresses::new(entry, exit)
            },
            Wrapping::Ipv6 | Wrapping::Ipv6InIpv4 { .. } | Wrapping::Ipv4(_) | Wrapping::Multipath => {
                plain.through(Tunnel { entry, exit })
            }
        }
    }
}
