//! Many mobile nodes that go round stations: where each one's radio hangs, and when it moves on.

use careof_base::{Duration, Instant};
use careof_link::Fate;
use careof_metrics::RoamingMetrics;
use careof_mobility::{InterfaceId, Notice};
use careof_plan::{
    FlowId, Home, InterfaceIndex, Itinerary, Locator, NodeId, OneWayId, Plan, Topology, down_of,
};
use careof_scenario::{LinkId, Scenario};

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::packet::{Body, PacketRef};
use crate::queue::Slot;
use crate::simulation::Simulation;

/// The only interface of a mobile node with a radio.
const RADIO: InterfaceId = InterfaceId(0);

/// A station and who is there.
struct Station {
    node: NodeId,
    /// Its interface to all who are there.
    cell: InterfaceIndex,
    /// The mobile nodes, by index, in no order that means anything but the same in every run.
    here: Vec<u32>,
}

/// A mobile node on its way round the stations.
struct Roamer {
    /// The station it is at, or moves to.
    station: u32,
    /// Its place in that station's list; `None` while it is nowhere.
    place: Option<u32>,
    /// When it leaves for the next station, and for how long it is without a link then.
    path: Itinerary,
    slot: Slot,
}

/// The mobile nodes and the stations.
pub(crate) struct Fleet {
    home: Home,
    /// The way down to the first mobile node; those of the others follow, two a node.
    radio: OneWayId,
    stations: Vec<Station>,
    roamers: Vec<Roamer>,
    /// (index of a mobile node, a flow of its) in order.
    flows: Vec<(u32, FlowId)>,
    pub(crate) metrics: RoamingMetrics,
}

impl Fleet {
    /// All mobile nodes of a scenario about to arrive at their first stations, in repetition `run`; `slots` is a timer for each of them. `None` if
    /// there are none.
    pub(crate) fn new(
        (scenario, run): (&Scenario, u64),
        topology: &Topology,
        home: Home,
        slots: Vec<Slot>,
    ) -> Option<Self> {
        let plan = scenario.mobility.as_ref()?.fleet.as_ref()?;
        let station = |place: usize| {
            let cell = topology.places[place].cell?;
            Some(Station { node: NodeId(place as u16), cell: cell.interface, here: Vec::new() })
        };
        let mut stations: Vec<Station> = (0..topology.places.len()).filter_map(station).collect();
        // In the order of their cells, which is that of the scenario.
        stations.sort_by_key(|station| topology.place(station.node).cell.map(|cell| cell.address));
        // Behind them is the gateway of a domain, whose cell is the domain.
        stations.truncate(plan.stations.len());
        let roamer = |(n, slot)| {
            let name = &topology.place(NodeId(home.first.0 + n as u16)).name;
            let path = Itinerary::new(scenario, run, plan, n, name);
            Roamer { station: path.target as u32, place: None, path, slot }
        };
        Some(Self {
            home,
            radio: down_of(LinkId(plan.radio.0)),
            stations,
            roamers: slots.into_iter().enumerate().map(roamer).collect(),
            flows: Vec::new(),
            metrics: RoamingMetrics::new(plan.count, plan.stations.len()),
        })
    }

    /// A flow one of whose ends is a mobile node. To be called in the order of the flows.
    pub(crate) fn add_flow(&mut self, mobile: usize, flow: FlowId) {
        let at = self.flows.partition_point(|(other, _)| *other <= mobile as u32);
        self.flows.insert(at, (mobile as u32, flow));
    }

    /// The radio of a mobile node: down and up.
    fn ways(&self, mobile: usize) -> [OneWayId; 2] {
        let down = self.radio.0 + 2 * mobile as u32;
        [OneWayId(down), OneWayId(down + 1)]
    }

    fn node(&self, mobile: usize) -> NodeId {
        NodeId(self.home.first.0 + mobile as u16)
    }

    /// Takes a mobile node out of the station it is at, and turns it to the next one.
    fn take_out(&mut self, mobile: usize) {
        let roamer = &mut self.roamers[mobile];
        if let Some(place) = roamer.place.take() {
            let here = &mut self.stations[roamer.station as usize].here;
            here.swap_remove(place as usize);
            let moved = here.get(place as usize).copied();
            roamer.station = (roamer.station + 1) % self.stations.len() as u32;
            if let Some(moved) = moved {
                self.roamers[moved as usize].place = Some(place);
            }
        }
    }

    /// Puts a mobile node into the station it has moved to.
    fn put_in(&mut self, mobile: usize) -> (NodeId, InterfaceIndex) {
        let roamer = &mut self.roamers[mobile];
        let station = &mut self.stations[roamer.station as usize];
        roamer.place = Some(station.here.len() as u32);
        station.here.push(mobile as u32);
        (station.node, station.cell)
    }

    /// Whether `interface` of `node` leads to a cell in which nobody is.
    pub(crate) fn is_empty_cell(&self, node: NodeId, interface: InterfaceIndex) -> bool {
        let station = self.stations.iter().find(|station| station.node == node);
        station.is_some_and(|station| station.cell == interface && station.here.is_empty())
    }

    /// The mobile node that a packet in a cell goes to: over IPv4 by its home address, over IPv6 by its care-of address.
    #[inline]
    fn mobile_at(&self, destination: Locator) -> Option<usize> {
        let by_care_of = || destination.station_and_mobile().map(|(_, mobile)| usize::from(mobile));
        self.home.index_of(destination).or_else(by_care_of)
    }

    /// Whether a mobile node is at the station on `node`.
    fn is_at(&self, mobile: usize, node: NodeId) -> bool {
        let roamer = &self.roamers[mobile];
        roamer.place.is_some() && self.stations[roamer.station as usize].node == node
    }
}

impl Simulation {
    /// A mobile node leaves its station, or arrives at the next one.
    pub(crate) fn roamer_timeout(&mut self, mobile: usize) {
        if self.micro.is_some() {
            return self.walk(mobile);
        }
        let Some(fleet) = &self.fleet else { return };
        if fleet.roamers[mobile].place.is_some() {
            let gap = self.leave_station(mobile);
            if !gap.is_zero() {
                return self.wake_roamer(mobile, self.now + gap);
            }
        }
        self.arrive_at_station(mobile);
        if let Some(fleet) = &self.fleet {
            let leaves = fleet.roamers[mobile].path.leaves;
            self.wake_roamer(mobile, leaves);
        }
    }

    pub(crate) fn wake_roamer(&mut self, mobile: usize, at: Instant) {
        if let Some(fleet) = &self.fleet {
            self.queue.set(fleet.roamers[mobile].slot, Some(at));
        }
    }

    /// The time until it is at the next station.
    fn leave_station(&mut self, mobile: usize) -> Duration {
        let now = self.now;
        let plan = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
        let Some((fleet, plan)) = self.fleet.as_mut().zip(plan) else { return Duration::ZERO };
        fleet.take_out(mobile);
        let path = &mut fleet.roamers[mobile].path;
        path.leave(plan);
        let gap = path.gap;
        fleet.metrics.on_handover(mobile, now);
        let node = fleet.node(mobile);
        for way in fleet.ways(mobile) {
            self.links[way.0 as usize].link.set_down(now, Fate::Drop, Fate::Drop);
            self.link_timeout(way);
        }
        self.link_changed(node, RADIO, false);
        gap
    }

    fn arrive_at_station(&mut self, mobile: usize) {
        let now = self.now;
        let Some(fleet) = &mut self.fleet else { return };
        let (station, cell) = fleet.put_in(mobile);
        let node = fleet.node(mobile);
        let [down, up] = fleet.ways(mobile);
        self.links[down.0 as usize].from = station;
        let way = &mut self.links[up.0 as usize];
        (way.to, way.to_interface) = (station, cell);
        for way in [down, up] {
            self.links[way.0 as usize].link.set_up(now);
            self.link_timeout(way);
        }
        self.link_changed(node, RADIO, true);
        if let Agent::Ipv6(_) = self.node(node).agent {
            return self.ipv6_switch_to(node, RADIO, Notice::None);
        }
        if let Agent::Mobile(agent) = &mut self.node_mut(node).agent {
            // The interface is the only one, and it is there.
            let _ = agent.switch_to(now, RADIO, Notice::None);
        }
        self.drive_agent(node);
    }

    /// A station sends a packet into its cell: to the mobile node it is for, or to everybody there.
    #[inline]
    pub(crate) fn transmit_in_cell(&mut self, node: NodeId, packet: PacketRef) {
        let destination = self.pool.hop(packet).destination;
        let neighbor = if destination.is_group() { self.neighbor_in_cell(packet) } else { None };
        if destination.is_group() && neighbor.is_none() {
            return self.transmit_to_all(node, packet);
        }
        let Some(fleet) = &self.fleet else { return self.drop_packet(node, packet, NodeDrop::NoRoute) };
        match neighbor.or_else(|| fleet.mobile_at(destination)) {
            Some(mobile) if fleet.is_at(mobile, node) => {
                let [down, _] = fleet.ways(mobile);
                self.transmit_by(node, down, packet);
            }
            Some(_) => self.transmit_in_domain(node, packet, NodeDrop::LeftCell),
            None => self.drop_packet(node, packet, NodeDrop::NoRoute),
        }
    }

    /// The one mobile node that a neighbor's message is for.
    fn neighbor_in_cell(&self, packet: PacketRef) -> Option<usize> {
        let (Body::OnLink(on_link), Plan::Ipv6(plan)) = (&self.pool[packet].body, &self.topology.plan) else {
            return None;
        };
        if on_link.destination.is_multicast() {
            None
        } else {
            plan.mobile_with_identifier(on_link.destination)
        }
    }

    /// Whether `interface` of `node` leads to a cell in which nobody is.
    pub(crate) fn is_empty_cell(&self, node: NodeId, interface: InterfaceId) -> bool {
        let cell = InterfaceIndex(interface.0);
        self.fleet.as_ref().is_some_and(|fleet| fleet.is_empty_cell(node, cell))
    }

    /// Each mobile node in the cell gets a packet of its own. One to an empty cell has reached everybody there is.
    fn transmit_to_all(&mut self, node: NodeId, packet: PacketRef) {
        let stations = self.fleet.iter().flat_map(|fleet| &fleet.stations);
        let Some(at) = stations.enumerate().find_map(|(at, station)| (station.node == node).then_some(at))
        else {
            return self.transmit_in_domain(node, packet, NodeDrop::NoRoute);
        };
        for n in 0.. {
            let Some(fleet) = &self.fleet else { break };
            let Some(mobile) = fleet.stations[at].here.get(n) else { break };
            let [down, _] = fleet.ways(*mobile as usize);
            let copy = self.pool[packet].clone();
            let copy = self.insert(copy);
            self.transmit_by(node, down, copy);
        }
        self.consume(packet);
    }

    /// A mobile node's registration was accepted: its path carries packets both ways. In a domain that is so once and for all, and its
    /// handovers are none of Mobile IP's.
    pub(crate) fn roamer_registered(&mut self, mobile: usize) {
        if self.micro.is_none() {
            self.roamer_path_ready(mobile);
        }
        let Some(fleet) = &self.fleet else { return };
        let first = fleet.flows.partition_point(|(other, _)| *other < mobile as u32);
        for at in first.. {
            let next = self.fleet.as_ref().and_then(|fleet| fleet.flows.get(at).copied());
            match next {
                Some((other, flow)) if other == mobile as u32 => self.open_flow(flow),
                _ => break,
            }
        }
    }

    /// The path of a mobile node carries packets both ways after a handover.
    pub(crate) fn roamer_path_ready(&mut self, mobile: usize) {
        let now = self.now;
        let Some(fleet) = &mut self.fleet else { return };
        let first = fleet.flows.partition_point(|(other, _)| *other < mobile as u32);
        let mut carries = false;
        for (_, flow) in fleet.flows[first..].iter().take_while(|(other, _)| *other == mobile as u32) {
            let mut measured = self.flows[usize::from(flow.0)].measured.into_iter().flatten();
            carries |= measured.any(|index| self.flow_metrics[index].is_waited_for());
        }
        fleet.metrics.on_ready(mobile, now, carries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_plan::Observation;
    use careof_scenario::Scenario;

    #[test]
    fn memory_does_not_grow_with_simulated_time() {
        for protocol in ["mobile-ipv4", "mobile-ipv6"] {
            memory_does_not_grow(protocol);
        }
    }

    fn memory_does_not_grow(protocol: &str) {
        let text = r#"
            duration = "400 s"
            [links]
            cell = { rate = "100 Mbit/s", delay = "2 ms", between = ["home-agent", "station-*"], count = 3 }
            radio = { rate = "1 Mbit/s", delay = "5 ms", queue = "20 packets", between = ["station-*", "mobile-*"] }
            [mobility]
            nodes = 4
            [[handover]]
            every = "3 s"
            interruption = "50 ms"
            [[flow]]
            from = "correspondent"
            to = "mobile-*"
            tcp = { profile = "newreno", window = "16 KiB" }
        "#;
        let scenario = Scenario::parse("x.toml", text, &[format!("mobility.protocol={protocol}")]).unwrap();
        let mut simulation = Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap();
        let mut marks = |until| {
            simulation.advance(Instant::from_secs(until)).unwrap();
            let fleet = simulation.fleet.as_ref().unwrap();
            let here: usize = fleet.stations.iter().map(|station| station.here.capacity()).sum();
            [simulation.pool.high_water(), simulation.queue.high_water(), here]
        };
        let early = marks(100);
        let late = marks(400);
        // Four windows of 11 segments, their acknowledgements and some signalling.
        assert!(early[0] < 120 && early[1] <= 64, "{early:?}");
        assert!(
            late[0] <= early[0] + 12 && late[1] <= early[1] && late[2] <= early[2] + 8,
            "{early:?} {late:?}"
        );
        assert!(simulation.finish().unwrap().handovers.is_empty());
    }
}
