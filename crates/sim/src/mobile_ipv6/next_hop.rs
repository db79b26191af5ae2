//! The next hop of a mobile node's packets: resolved, watched and confirmed (RFC 4861 sections 7.2 and 7.3).
//!
//! Only the mobile node's ends of access links do so, and only where its movement detection goes by it. All others know their
//! neighbors for good: on a link with two ends there is nobody else whom a packet could go to.

use core::net::Ipv6Addr;
use std::collections::{BTreeMap, VecDeque};

use careof_mobility::InterfaceId;
use careof_mobility::v6::neighbor_discovery::{NeighborDiscovery, NeighborState, Resolution};
use careof_plan::{InterfaceIndex, NodeId};

use crate::drop_cause::NodeDrop;
use crate::observer::Note;
use crate::packet::PacketRef;
use crate::simulation::Simulation;

/// Packets that wait for one neighbor at most (RFC 4861 section 7.2.2 wants room for one; the kernel of Linux had room for three).
const MOST_WAITING: usize = 3;

/// The packets of an interface that wait for the link-layer addresses of their neighbors.
#[derive(Debug)]
pub(super) struct WaitingPackets<P = PacketRef>(BTreeMap<Ipv6Addr, VecDeque<P>>);

impl<P> Default for WaitingPackets<P> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<P> WaitingPackets<P> {
    /// Has a packet wait; returns the one that has to give way, the oldest.
    fn push(&mut self, neighbor: Ipv6Addr, packet: P) -> Option<P> {
        let waiting = self.0.entry(neighbor).or_default();
        waiting.push_back(packet);
        if waiting.len() > MOST_WAITING { waiting.pop_front() } else { None }
    }

    /// Those that wait for a neighbor, the oldest first.
    fn take(&mut self, neighbor: Ipv6Addr) -> Vec<P> {
        self.0.remove(&neighbor).unwrap_or_default().into()
    }

    /// All of them.
    fn take_all(&mut self) -> Vec<P> {
        std::mem::take(&mut self.0).into_values().flatten().collect()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }
}

/// Where a packet goes.
enum NextHop {
    /// Onto the link.
    Link,
    /// It waits, and another one may have to give way.
    Waits(Option<PacketRef>),
    /// Nowhere.
    None(NodeDrop),
}

impl Simulation {
    /// Hands a packet of a node's own to the link at `interface`, as soon as the link-layer address of its next hop is known.
    pub(super) fn send_to_next_hop(&mut self, node: NodeId, interface: InterfaceId, packet: PacketRef) {
        if !self.watches_neighbors {
            return self.transmit(node, InterfaceIndex(interface.0), packet);
        }
        match self.find_next_hop(node, interface, packet) {
            NextHop::Link => self.transmit(node, InterfaceIndex(interface.0), packet),
            NextHop::Waits(None) => {}
            NextHop::Waits(Some(oldest)) => self.drop_packet(node, oldest, NodeDrop::NeighborQueueFull),
            NextHop::None(cause) => self.drop_packet(node, packet, cause),
        }
    }

    fn find_next_hop(&mut self, node: NodeId, interface: InterfaceId, packet: PacketRef) -> NextHop {
        let now = self.now;
        let destination = self.address_v6(self.pool[packet].outermost().destination);
        let neighborhood = self.ipv6(node).and_then(|host| host.neighborhood(interface));
        let Some(neighborhood) = neighborhood.filter(|neighborhood| neighborhood.resolves) else {
            return NextHop::Link;
        };
        let Some(discovery) = &mut neighborhood.discovery else { return NextHop::Link };
        let Some(neighbor) = discovery.next_hop(destination) else {
            return NextHop::None(NodeDrop::NoRoute);
        };
        let before = state(discovery, neighbor);
        let next = match discovery.resolve(now, neighbor) {
            Resolution::Known(_) => NextHop::Link,
            Resolution::Pending => NextHop::Waits(neighborhood.waiting.push(neighbor, packet)),
            Resolution::Impossible => NextHop::None(NodeDrop::NeighborUnreachable),
        };
        if state(discovery, neighbor) != before {
            self.look_after_neighbors(node);
        }
        next
    }

    /// Does what neighbor discovery has to say, and sets its timers, behind what is being done now.
    fn look_after_neighbors(&mut self, node: NodeId) {
        let (slot, now) = (self.node(node).agent_slot, self.now);
        self.queue.set(slot, Some(now));
    }

    /// A neighbor's link-layer address is known.
    pub(super) fn neighbor_resolved(&mut self, node: NodeId, interface: InterfaceId, neighbor: Ipv6Addr) {
        for packet in self.take_waiting(node, interface, |waiting| waiting.take(neighbor)) {
            self.transmit(node, InterfaceIndex(interface.0), packet);
        }
    }

    /// A neighbor does not answer.
    pub(super) fn neighbor_unreachable(&mut self, node: NodeId, interface: InterfaceId, neighbor: Ipv6Addr) {
        let way = self.way_of(node, interface);
        self.note(node, way, Note::Arp("unreachable"), format_args!("{neighbor}"));
        for packet in self.take_waiting(node, interface, |waiting| waiting.take(neighbor)) {
            self.drop_packet(node, packet, NodeDrop::NeighborUnreachable);
        }
    }

    /// The interface has come to a link of which nothing is known.
    pub(super) fn forget_neighbors(&mut self, node: NodeId, interface: InterfaceId) {
        for packet in self.take_waiting(node, interface, WaitingPackets::take_all) {
            self.drop_packet(node, packet, NodeDrop::NeighborUnreachable);
        }
    }

    fn take_waiting(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        take: impl Fn(&mut WaitingPackets) -> Vec<PacketRef>,
    ) -> Vec<PacketRef> {
        let neighborhood = self.ipv6(node).and_then(|host| host.neighborhood(interface));
        neighborhood.map(|neighborhood| take(&mut neighborhood.waiting)).unwrap_or_default()
    }

    /// A whole segment has reached an address of `node`: if it takes a connection forward, the neighbor that packets to its sender go
    /// through has received what it was sent (RFC 4861 section 7.3.1).
    #[cold]
    pub(crate) fn deliver_watched(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let arrived = &self.pool[packet];
        let source = arrived.header.source;
        let receiver = arrived.origin.as_ref().map(|origin| (origin.flow, origin.sender.peer()));
        let progress = |this: &Self| {
            let (flow, side) = receiver?;
            let connection = &this.flows.get(usize::from(flow.0))?.ends[side.index()].connection;
            Some((connection.acknowledged(), connection.received()))
        };
        let before = progress(self);
        self.deliver_to_connection(node, interface, packet);
        if progress(self) != before {
            let source = self.address_v6(source);
            self.confirm_neighbor(node, InterfaceId(interface.0), source);
        }
    }

    fn confirm_neighbor(&mut self, node: NodeId, interface: InterfaceId, peer: Ipv6Addr) {
        let now = self.now;
        let neighborhood = self.ipv6(node).and_then(|host| host.neighborhood(interface));
        let Some(neighborhood) = neighborhood.filter(|neighborhood| neighborhood.resolves) else { return };
        let Some(discovery) = &mut neighborhood.discovery else { return };
        let Some(neighbor) = discovery.next_hop(peer) else { return };
        let before = state(discovery, neighbor);
        discovery.confirm_reachability(now, neighbor);
        // Where it was reachable before, the timer wakes too early, and is set anew then.
        if state(discovery, neighbor) != before {
            self.look_after_neighbors(node);
        }
    }
}

fn state(discovery: &NeighborDiscovery, neighbor: Ipv6Addr) -> Option<NeighborState> {
    discovery.neighbor(neighbor).map(|entry| entry.state)
}

#[cfg(test)]
mod tests {
    use careof_base::{Instant, RandomStream};
    use careof_plan::Observation;
    use careof_scenario::Scenario;

    use super::*;
    use crate::packet::{Body, Packet};

    fn neighbor(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
    }

    /// A mobile node whose router, at the end of an access link, is known since 5 s.
    fn world() -> (Simulation, NodeId) {
        const WORLD: &str = "duration = \"60 s\"\n[links]\nfirst = \"ethernet-10m\"\nsecond = \"ethernet-10m\"\n[mobility]\n\
            protocol = \"mobile-ipv6\"\nmovement_detection = \"unreachable-router\"\n";
        let scenario = Scenario::parse("x.toml", WORLD, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let mut simulation = Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap();
        simulation.advance(Instant::from_secs(5)).unwrap();
        let mobile = simulation.topology.find("mobile").unwrap();
        (simulation, mobile)
    }

    /// A datagram of the mobile node's to the first router's own address, which no advertisement gives a link-layer address.
    fn to_router(simulation: &mut Simulation, mobile: NodeId) -> PacketRef {
        let interface = simulation.node(mobile).place.interfaces[0];
        let header = crate::header::Header {
            source: interface.address,
            destination: interface.peer_address,
            protocol: careof_wire::protocol::ICMPV6,
            ttl: 64,
            len: crate::header::IPV6_LEN,
            payload_len: 8,
            dont_fragment: true,
            ..Default::default()
        };
        let body = Body::Message(vec![0; 8].into());
        simulation.insert(Packet::new(header, body, None))
    }

    fn waiting(simulation: &mut Simulation, mobile: NodeId) -> usize {
        let host = simulation.ipv6(mobile).unwrap();
        host.neighborhoods.iter().map(|neighborhood| neighborhood.waiting.len()).sum()
    }

    #[test]
    fn packets_wait_for_a_link_layer_address_a_round_trip_long_and_three_of_them() {
        let (mut simulation, mobile) = world();
        let unread = simulation.malformed_messages;
        for _ in 0..5 {
            let packet = to_router(&mut simulation, mobile);
            simulation.send_to_next_hop(mobile, InterfaceId(0), packet);
        }
        assert_eq!(waiting(&mut simulation, mobile), 3);
        simulation.advance(Instant::from_millis(5_500)).unwrap();
        assert_eq!(waiting(&mut simulation, mobile), 0);
        // Nobody can read them.
        assert_eq!(simulation.malformed_messages - unread, 3);
        // Now that it is known none has to wait.
        let packet = to_router(&mut simulation, mobile);
        simulation.send_to_next_hop(mobile, InterfaceId(0), packet);
        assert_eq!(waiting(&mut simulation, mobile), 0);
        let summary = simulation.finish().unwrap();
        assert_eq!(summary.packets.dropped.get("neighbor-queue-full"), Some(&2));
        assert!(summary.conservation.values().all(|difference| *difference == 0), "{summary:?}");
    }

    #[test]
    fn packets_for_a_neighbor_that_is_not_there_are_dropped_after_three_questions() {
        let (mut simulation, mobile) = world();
        simulation.lose_what_comes_down(mobile);
        let packet = to_router(&mut simulation, mobile);
        simulation.send_to_next_hop(mobile, InterfaceId(0), packet);
        simulation.advance(Instant::from_millis(7_999)).unwrap();
        assert_eq!(waiting(&mut simulation, mobile), 1);
        simulation.advance(Instant::from_millis(8_001)).unwrap();
        assert_eq!(waiting(&mut simulation, mobile), 0);
        let summary = simulation.finish().unwrap();
        assert_eq!(summary.packets.dropped.get("neighbor-unreachable"), Some(&1));
        assert!(summary.conservation.values().all(|difference| *difference == 0), "{summary:?}");
    }

    impl Simulation {
        /// Whatever goes down the mobile node's first access link is lost from now on.
        fn lose_what_comes_down(&mut self, mobile: NodeId) {
            let out = self.node(mobile).place.interfaces[0].out;
            let down = careof_plan::down_of(careof_scenario::LinkId(out.0 as usize / 2));
            self.take_down(down, careof_link::Fate::Drop, careof_link::Fate::Drop);
        }
    }

    /// Whatever comes and goes: no neighbor has more than its three packets, the oldest give way, and none is forgotten.
    #[test]
    fn no_more_than_three_packets_wait_for_a_neighbor_and_none_is_forgotten() {
        let mut random = RandomStream::new(1, 0, "waiting packets");
        for _ in 0..100 {
            let (mut waiting, mut model) = (WaitingPackets::default(), BTreeMap::<u16, Vec<u32>>::new());
            for packet in 0..200_u32 {
                let to = (random.next_u64() % 4) as u16;
                let held = model.entry(to).or_default();
                if random.next_u64().is_multiple_of(8) {
                    assert_eq!(waiting.take(neighbor(to)), std::mem::take(held));
                } else {
                    held.push(packet);
                    let oldest = (held.len() > MOST_WAITING).then(|| held.remove(0));
                    assert_eq!(waiting.push(neighbor(to), packet), oldest);
                }
                assert!(waiting.0.values().all(|of_one| of_one.len() <= MOST_WAITING));
                assert_eq!(waiting.len(), model.values().map(Vec::len).sum::<usize>());
            }
            assert_eq!(waiting.take_all().len(), model.values().map(Vec::len).sum::<usize>());
            assert_eq!(waiting.len(), 0);
        }
    }
}
