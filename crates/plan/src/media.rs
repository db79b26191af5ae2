//! Links that share a medium: who is on it, and which way over it a packet takes.

use careof_link::StationId;
use careof_scenario::{LinkId, Scenario};

use crate::locator::Locator;
use crate::topology::{InterfaceIndex, NodeId, OneWayId, Topology};

/// Where on a medium a one-way link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnMedium {
    /// Which medium, in the order of the scenario.
    pub medium: u16,
    /// The station that sends by it.
    pub from: StationId,
    /// The one that receives by it.
    pub to: StationId,
}

#[derive(Clone, Debug)]
struct Stations {
    /// Every two of them are joined, and hear each other.
    are_all_joined: bool,
    nodes: Vec<NodeId>,
    /// From each station to each: the row is who sends.
    ways: Vec<Option<OneWayId>>,
}

/// The media of a scenario, their stations and the ways between these.
#[derive(Clone, Debug, Default)]
pub struct Media {
    media: Vec<Stations>,
    /// By one-way link.
    places: Vec<Option<OnMedium>>,
}

impl Media {
    /// The media of `scenario`; `find` says which node is the one of a name.
    pub(crate) fn new(scenario: &Scenario, find: impl Fn(&str) -> NodeId) -> Self {
        let mut media = Self { media: Vec::new(), places: vec![None; 2 * scenario.links.len()] };
        for (index, medium) in scenario.media.iter().enumerate() {
            let count = medium.stations.len();
            let nodes = medium.stations.iter().map(|node| find(&scenario.node(*node).name)).collect();
            let mut stations = Stations {
                are_all_joined: medium.config.joins_every_two(),
                nodes,
                ways: vec![None; count * count],
            };
            let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
            for (n, link) in scenario.links.iter().enumerate() {
                if link.medium.is_none_or(|medium| medium.0 != index) {
                    continue;
                }
                if let Some(fleet) = fleet.filter(|fleet| fleet.is_radio(LinkId(n))) {
                    // Radios are the last links, and the last stations. Each is heard by all stations of the fleet.
                    let radio = (count + n).saturating_sub(scenario.links.len());
                    let ways = [OneWayId(2 * n as u32), OneWayId(2 * n as u32 + 1)];
                    for station in &fleet.stations {
                        let station =
                            medium.stations.iter().position(|node| node == station).unwrap_or_default();
                        stations.ways[station * count + radio] = Some(ways[0]);
                        stations.ways[radio * count + station] = Some(ways[1]);
                    }
                    let first =
                        medium.stations.iter().position(|node| *node == link.ends[0]).unwrap_or_default();
                    let [first, radio] = [first, radio].map(|station| StationId(station as u16));
                    let medium = index as u16;
                    media.places[2 * n] = Some(OnMedium { medium, from: first, to: radio });
                    media.places[2 * n + 1] = Some(OnMedium { medium, from: radio, to: first });
                    continue;
                }
                let station = |end| medium.stations.iter().position(|node| *node == end).unwrap_or_default();
                let [a, b] = link.ends.map(station);
                for (way, from, to) in [(2 * n, a, b), (2 * n + 1, b, a)] {
                    // On one cable there is one way from a station to another, however many links join them.
                    stations.ways[from * count + to].get_or_insert(OneWayId(way as u32));
                    let [from, to] = [from, to].map(|station| StationId(station as u16));
                    media.places[way] = Some(OnMedium { medium: index as u16, from, to });
                }
            }
            media.media.push(stations);
        }
        media
    }

    /// Where on which medium a one-way link is; `None` for one that is on none.
    #[inline]
    #[must_use]
    pub fn place(&self, way: OneWayId) -> Option<OnMedium> {
        *self.places.get(way.0 as usize)?
    }

    /// Which station of a medium a node is; the first of them where it has several radios.
    #[must_use]
    pub fn station(&self, medium: u16, node: NodeId) -> Option<StationId> {
        let nodes = &self.media.get(usize::from(medium))?.nodes;
        nodes.iter().position(|other| *other == node).map(|station| StationId(station as u16))
    }

    /// The stations of a medium from which a packet to `to` goes by `way`.
    pub fn senders(&self, medium: u16, way: OneWayId, to: StationId) -> impl Iterator<Item = StationId> + '_ {
        let count = self.media.get(usize::from(medium)).map_or(0, |stations| stations.nodes.len());
        let stations = (0..count).map(|station| StationId(station as u16));
        stations.filter(move |station| self.way(medium, *station, to) == Some(way))
    }

    /// The way on a medium from a station to another. That to a radio which goes from station to station is the same from all of them.
    #[must_use]
    pub fn way(&self, medium: u16, from: StationId, to: StationId) -> Option<OneWayId> {
        let stations = self.media.get(usize::from(medium))?;
        *stations.ways.get(usize::from(from.0) * stations.nodes.len() + usize::from(to.0))?
    }

    /// The node that packets enter a one-way link on a medium from.
    pub(crate) fn entrance(&self, way: OneWayId) -> Option<NodeId> {
        let place = self.place(way)?;
        self.node(place.medium, place.from)
    }

    fn node(&self, medium: u16, station: StationId) -> Option<NodeId> {
        self.media.get(usize::from(medium))?.nodes.get(usize::from(station.0)).copied()
    }

    /// The way over a medium to the last of its stations that a packet sent by `way` would come to one after the other, where `next`
    /// says by which way a station passes it on, if all that becomes of it there is in the routes. Stations of one medium hear
    /// each other, so that no router takes a packet back to where it came from. In a cell of 802.11 everything goes by the access point, as
    /// the routes say.
    pub(crate) fn straight(&self, way: OneWayId, next: impl Fn(NodeId) -> Option<OneWayId>) -> OneWayId {
        let Some(OnMedium { medium, from, mut to }) = self.place(way) else { return way };
        let stations = self.media.get(usize::from(medium));
        let stations =
            stations.filter(|stations| stations.are_all_joined).map_or(0, |stations| stations.nodes.len());
        // Routes are shortest, so that they never come to a station twice.
        for _ in 0..stations {
            let next = self.node(medium, to).and_then(&next).and_then(|way| self.place(way));
            let Some(next) = next.filter(|next| next.medium == medium && next.to != from) else { break };
            to = next.to;
        }
        self.way(medium, from, to).unwrap_or(way)
    }
}

impl Topology {
    /// The way that a packet for `destination` takes when its sender's routes lead it by `way`: on a medium straight to the last
    /// station they would lead it to there, which Ethernet does by address resolution. `leaves_to_routes` says of a node whether all
    /// it does with the packet is to pass it on; a home agent whose mobile node is away has more to do, and draws its packets
    /// by proxy ARP.
    #[must_use]
    pub fn straight_way(
        &self,
        way: OneWayId,
        destination: Locator,
        leaves_to_routes: impl Fn(NodeId) -> bool,
    ) -> OneWayId {
        self.media.straight(way, |node| {
            let place = self.place(node);
            if !place.forwards || !leaves_to_routes(node) {
                return None;
            }
            let crate::Route::Via(interface) = place.route(destination) else { return None };
            Some(place.interface(interface).out)
        })
    }

    /// By which of its interfaces a node receives what comes over `way`: that of the link, or, where the way joins two stations of a
    /// medium that no link of the scenario joins, the first one it has on the medium.
    #[must_use]
    pub fn receiving_interface(&self, way: OneWayId) -> Option<InterfaceIndex> {
        let opposite = OneWayId(way.0 ^ 1);
        let interfaces = &self.place(self.entrance(opposite)).interfaces;
        let medium = self.media.place(way).map(|place| place.medium);
        let is_there = |way: OneWayId| medium.is_some() && self.media.place(way).map(|p| p.medium) == medium;
        let found = interfaces
            .iter()
            .position(|interface| interface.out == opposite)
            .or_else(|| interfaces.iter().position(|interface| is_there(interface.out)));
        found.map(|index| InterfaceIndex(index as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::lay_out;

    /// A host, a home agent, the mobile node at home and a foreign agent, all on one cable.
    const TEXT: &str = r#"
        duration = "9 s"
        [media.lan]
        rate = "10 Mbit/s"
        delay = "1 us"
        [links]
        ethernet = { medium = "lan", between = ["correspondent", "home-agent"] }
        again = { medium = "lan", between = ["correspondent", "home-agent"] }
        home = { medium = "lan" }
        cell = "ethernet-10m"
        cell-backhaul = { medium = "lan" }
        [mobility]
        home = "home"
        care_of = "foreign-agent"
        [[handover]]
        at = "5 s"
        from = "home"
        to = "cell"
    "#;

    fn laid_out() -> (Scenario, Topology) {
        let scenario = Scenario::parse("x.toml", TEXT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let topology = lay_out(&scenario);
        (scenario, topology)
    }

    fn way(scenario: &Scenario, name: &str) -> OneWayId {
        let link = |name| crate::down_of(scenario.link_named(name).unwrap());
        name.strip_suffix(".up").map_or_else(|| link(name), |name| OneWayId(link(name).0 + 1))
    }

    #[test]
    fn a_packet_goes_straight_to_the_last_station_that_only_passes_it_on() {
        let (scenario, topology) = laid_out();
        let way = |name| way(&scenario, name);
        let home = *topology.homes.first().unwrap();
        let straight = way("lan-correspondent-mobile");
        assert_eq!(topology.straight_way(way("ethernet"), home.home_address, |_| true), straight);
        let drawn = topology.straight_way(way("ethernet"), home.home_address, |node| node != home.agent);
        assert_eq!(drawn, way("ethernet"), "the home agent sees to it");
        let own = home.agent_address;
        assert_eq!(
            topology.straight_way(way("ethernet"), own, |_| true),
            way("ethernet"),
            "it is for the agent"
        );
        let everybody = core::net::Ipv4Addr::BROADCAST.into();
        assert_eq!(topology.straight_way(way("home"), everybody, |_| true), way("home"));
        let correspondent = topology.address_of(topology.find("correspondent").unwrap());
        let from_cell = topology.straight_way(way("cell-backhaul.up"), correspondent, |_| true);
        assert_eq!(from_cell, way("lan-correspondent-foreign-agent-cell.up"));
        assert_eq!(topology.straight_way(way("cell.up"), correspondent, |_| true), way("cell.up"));
    }

    #[test]
    fn a_second_link_between_two_stations_is_no_second_way() {
        let (scenario, topology) = laid_out();
        let (first, second) = (way(&scenario, "ethernet"), way(&scenario, "again"));
        let destination = topology.place(topology.find("home-agent").unwrap()).interfaces[0].address;
        assert_eq!(topology.straight_way(second, destination, |_| true), first);
    }

    #[test]
    fn what_comes_straight_comes_in_by_an_interface_on_the_medium() {
        let (scenario, topology) = laid_out();
        let by = |name: &str, node: &str| {
            let place = topology.place(topology.find(node).unwrap());
            let interface = topology.receiving_interface(way(&scenario, name)).unwrap();
            scenario.links[place.interface(interface).out.0 as usize / 2].name.clone()
        };
        assert_eq!(by("lan-correspondent-mobile", "mobile"), "home");
        assert_eq!(by("lan-correspondent-mobile.up", "correspondent"), "ethernet");
        assert_eq!(by("cell-backhaul", "foreign-agent-cell"), "cell-backhaul");
        assert_eq!(by("lan-correspondent-foreign-agent-cell", "foreign-agent-cell"), "cell-backhaul");
        assert_eq!(by("cell", "mobile"), "cell");
        let straight = way(&scenario, "lan-correspondent-mobile.up");
        assert_eq!(topology.place(topology.entrance(straight)).name, "mobile");
    }
}
