//! Nodes, interfaces, addresses and static routes.

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use careof_scenario::{LinkId, Role};

use crate::hierarchical::AnchorPointPlace;
use crate::locator::{Cells, Locator, Plan, Subnet};
use crate::media::Media;

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// Index of an interface of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceIndex(pub u16);

/// Index of a one-way link: link `n` of the scenario is one-way link `2n` (`.down`) and `2n + 1` (`.up`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWayId(pub u32);

/// The direction towards the mobile node, or from a link's first end.
#[must_use]
pub const fn down_of(link: LinkId) -> OneWayId {
    OneWayId(2 * link.0 as u32)
}

/// The direction from the mobile node, or from a link's second end.
#[must_use]
pub const fn up_of(link: LinkId) -> OneWayId {
    OneWayId(2 * link.0 as u32 + 1)
}

/// Where home addresses are when many nodes move: 10.192.0.0/10. They are no [`Subnet`] of a link.
pub(crate) const HOME_PREFIX_LEN: u8 = 10;
const HOME_NETWORK: Locator = Locator::of_ipv4(Ipv4Addr::new(10, 192, 0, 0));

/// Whether `address` is one of many mobile nodes', or their home agent's.
const fn is_in_home_network(address: Locator) -> bool {
    address.to_ipv4().to_bits() >> (32 - HOME_PREFIX_LEN)
        == HOME_NETWORK.to_ipv4().to_bits() >> (32 - HOME_PREFIX_LEN)
}

/// A home agent with its mobile nodes, which are numbered in a row, as their home addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The home agent.
    pub agent: NodeId,
    /// Its address on the home network.
    pub agent_address: Locator,
    /// The first of the mobile nodes.
    pub first: NodeId,
    /// How many there are.
    pub count: usize,
    /// The home address of the first as planned; the file may give it another ([`Homes::address_of`]).
    pub home_address: Locator,
}

impl Home {
    /// Which of its mobile nodes `node` is, counted from 0.
    #[inline]
    #[must_use]
    pub fn index(&self, node: NodeId) -> Option<usize> {
        let index = usize::from(node.0.checked_sub(self.first.0)?);
        (index < self.count).then_some(index)
    }

    /// The planned home address of `node`, if it is one of its mobile nodes.
    #[inline]
    #[must_use]
    pub(crate) fn address_of(&self, node: NodeId) -> Option<Locator> {
        let index = self.index(node)? as u32;
        Some(self.home_address.after(index))
    }

    /// The mobile node with this planned home address, counted from 0.
    #[inline]
    #[must_use]
    pub fn index_of(&self, home_address: Locator) -> Option<usize> {
        let index = home_address.since(self.home_address)? as usize;
        (index < self.count).then_some(index)
    }

    /// Its mobile nodes.
    pub fn mobile_nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        let first = self.first.0;
        (0..self.count as u16).map(move |n| NodeId(first + n))
    }
}

/// The home agents with their mobile nodes; those of all are numbered in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    all: Vec<Home>,
    /// The home addresses that are not those of their mobile nodes' numbers, in the order of the nodes.
    given: Vec<(NodeId, Locator)>,
}

impl Homes {
    /// The home agents.
    pub fn iter(&self) -> impl Iterator<Item = &Home> {
        self.all.iter()
    }

    /// The first home agent: the only one, wherever there are no several.
    #[must_use]
    pub fn first(&self) -> Option<&Home> {
        self.all.first()
    }

    /// That of a mobile node.
    #[inline]
    #[must_use]
    pub fn of(&self, mobile: NodeId) -> Option<&Home> {
        self.all.iter().find(|home| home.index(mobile).is_some())
    }

    /// That which a node is.
    #[must_use]
    pub fn at(&self, agent: NodeId) -> Option<&Home> {
        self.all.iter().find(|home| home.agent == agent)
    }

    /// The home address of a mobile node.
    #[inline]
    #[must_use]
    pub fn address_of(&self, node: NodeId) -> Option<Locator> {
        if let Ok(at) = self.given.binary_search_by_key(&node, |(node, _)| *node) {
            return Some(self.given[at].1);
        }
        self.all.iter().find_map(|home| home.address_of(node))
    }

    /// The mobile node with this home address.
    #[must_use]
    pub fn node_at(&self, home_address: Locator) -> Option<NodeId> {
        if let Some((node, _)) = self.given.iter().find(|(_, address)| *address == home_address) {
            return Some(*node);
        }
        let of_number = |home: &Home| Some(NodeId(home.first.0 + home.index_of(home_address)? as u16));
        self.all.iter().find_map(of_number).filter(|node| self.address_of(*node) == Some(home_address))
    }

    /// Which of all mobile nodes `node` is, counted from 0.
    #[inline]
    #[must_use]
    pub fn index(&self, node: NodeId) -> Option<usize> {
        let first = self.all.first()?.first;
        self.of(node).map(|_| usize::from(node.0 - first.0))
    }

    /// All mobile nodes in order.
    pub fn mobile_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.all.iter().flat_map(Home::mobile_nodes)
    }
}

/// The radio side of a station of many mobile nodes: one interface, and behind it whoever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its index follows those of the station's wired interfaces.
    pub interface: InterfaceIndex,
    /// The station's address there.
    pub address: Locator,
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The one-way link packets leave by.
    pub out: OneWayId,
    /// The network on the link.
    pub subnet: Subnet,
    /// The node's address there.
    pub address: Locator,
    /// The node at the other end.
    pub peer: NodeId,
    /// The other end's address.
    pub peer_address: Locator,
}

/// Where a node sends a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The address is the node's own.
    Local,
    /// Out by this interface.
    Via(InterfaceIndex),
    /// On a network that the node serves without a link: the home network of a home agent.
    Home,
    /// Nowhere.
    Unreachable,
}

#[derive(Clone, Debug)]
struct RouteEntry {
    route: Route,
    own: Locator,
}

/// The static part of a node.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its name in the scenario.
    pub name: String,
    /// Its ends of links.
    pub interfaces: Vec<Interface>,
    /// Whether it passes on packets of others.
    pub forwards: bool,
    /// What the scenario says it does.
    pub role: Role,
    /// A station's radio side, where many nodes move; of the gateway of a domain, the domain.
    pub cell: Option<Cell>,
    table: Vec<RouteEntry>,
    /// To the home network of many mobile nodes.
    home: RouteEntry,
    /// Networks whose addresses are not those of their number, with it, in the order of their addresses.
    elsewhere: Arc<[(Locator, Subnet)]>,
    /// Where many move over IPv6, by the number of a station: a network that it is on, by which packets for its cell travel.
    cells: Arc<[Subnet]>,
    /// The number that it has there, as a station or as a mobile node.
    number: u16,
}

const NO_ROUTE: RouteEntry = RouteEntry { route: Route::Unreachable, own: Locator::NOWHERE };

impl Place {
    /// Where to send a packet for `destination`.
    #[inline]
    pub fn route(&self, destination: Locator) -> Route {
        let entry = match self.table.get(destination.network()) {
            Some(entry) => entry,
            None if is_in_home_network(destination) => &self.home,
            None => return self.route_unnumbered(destination),
        };
        if entry.own == destination { Route::Local } else { entry.route }
    }

    /// By subnet, from 0 on: the node's own address there ([`Locator::NOWHERE`] without one), and where others there are sent.
    pub fn routes(&self) -> impl Iterator<Item = (Locator, Route)> + '_ {
        self.table.iter().map(|entry| (entry.own, entry.route))
    }

    /// To a network that has no number, apart from the numbered ones and the home network: those cost a hop no call.
    #[inline(never)]
    fn route_unnumbered(&self, destination: Locator) -> Route {
        match self.cells.is_empty() {
            true => self.route_elsewhere(destination),
            false => self.route_to_cell(destination),
        }
    }

    fn route_to_cell(&self, destination: Locator) -> Route {
        let Some((station, mobile)) = destination.station_and_mobile() else {
            return self.route_elsewhere(destination);
        };
        match (self.role, self.cell) {
            (Role::Mobile, _) if mobile == self.number => Route::Local,
            (Role::Mobile, _) => self.home.route,
            (_, Some(cell)) if station == self.number => Route::Via(cell.interface),
            _ => {
                let network = self.cells.get(usize::from(station)).map(|subnet| usize::from(subnet.0));
                let entry = network.and_then(|network| self.table.get(network));
                entry.map_or(Route::Unreachable, |entry| entry.route)
            }
        }
    }

    fn route_elsewhere(&self, destination: Locator) -> Route {
        let network = destination.beside(0);
        let found = self.elsewhere.binary_search_by_key(&network, |(own, _)| *own);
        let subnet = found.ok().map(|at| usize::from(self.elsewhere[at].1.0));
        match subnet.and_then(|subnet| self.table.get(subnet)) {
            Some(entry) if entry.own == destination => Route::Local,
            Some(entry) => entry.route,
            None => Route::Unreachable,
        }
    }

    /// The interface at `index`.
    #[inline]
    pub fn interface(&self, index: InterfaceIndex) -> &Interface {
        &self.interfaces[usize::from(index.0)]
    }
}

/// A link to be laid between two nodes.
pub struct Cable<'a> {
    /// The scenario's name of the link.
    pub name: &'a str,
    /// Its ends; packets from the first to the second cross the `.down` direction.
    pub between: [&'a str; 2],
    /// The network on it over IPv4, if it is not the planned one: a /24.
    pub network: Option<Ipv4Addr>,
    /// The places of the ends in that network, 1 and 2 unless the scenario says others.
    pub hosts: [u8; 2],
}

/// A home network: who serves it, and who is at home there.
pub struct HomeNetwork<'a> {
    /// The home agent's node.
    pub home_agent: &'a str,
    /// The nodes that move and therefore never forward.
    pub mobile_nodes: Vec<&'a str>,
    /// The nodes that lend those their links, and route nothing either.
    pub relays: Vec<&'a str>,
    /// The link that is the home network, to the first of them; without one the network exists only on the home agent.
    pub link: Option<&'a str>,
    /// The network over IPv4, if it has no link and is not the planned one: a /24.
    pub network: Option<Ipv4Addr>,
    /// The places in that network of the home agent, and of those mobile nodes that do not have that of their number.
    pub agent_host: u8,
    /// By the number of the mobile node.
    pub mobile_hosts: Vec<(usize, u8)>,
}

/// Many mobile nodes.
pub struct FleetNetwork<'a> {
    /// The home agent's node.
    pub home_agent: &'a str,
    /// The stations' nodes.
    pub stations: Vec<&'a str>,
    /// The node whose cell is the domain that the stations are in, if they are in one.
    pub gateway: Option<&'a str>,
    /// Of each mobile node: its name, its radio, and at which of the stations it begins.
    pub nodes: Vec<(&'a str, LinkId, usize)>,
}

/// All nodes with their addresses and routes.
#[derive(Clone, Debug)]
pub struct Topology {
    /// In the order in which the links name them.
    pub places: Vec<Place>,
    /// Which addresses the locators stand for.
    pub plan: Plan,
    /// The home agents and their mobile nodes.
    pub homes: Homes,
    /// The mobility anchor points, in the order of the scenario.
    pub anchor_points: Vec<AnchorPointPlace>,
    /// The media that links share.
    pub media: Media,
    elsewhere: Arc<[(Locator, Subnet)]>,
}

impl Topology {
    /// Lays the links and computes shortest routes, counting hops; ties go to the link named first.
    pub fn build(cables: &[Cable<'_>], homes: &[HomeNetwork<'_>]) -> Self {
        let mut topology = Self {
            places: Vec::new(),
            plan: Plan::Ipv4,
            homes: Homes::default(),
            anchor_points: Vec::new(),
            media: Media::default(),
            elsewhere: Arc::new([]),
        };
        let home_subnet = |number: usize| Subnet((cables.len() + number) as u16 + 1);
        let of_cables = cables.iter().zip((1..).map(Subnet)).map(|(cable, subnet)| (cable.network, subnet));
        let of_homes = homes.iter().enumerate().map(|(number, home)| (home.network, home_subnet(number)));
        let mut elsewhere: Vec<_> = of_cables
            .chain(of_homes)
            .filter_map(|(network, subnet)| Some((Locator::of_ipv4(network?), subnet)))
            .collect();
        elsewhere.sort_unstable_by_key(|(network, _)| *network);
        topology.elsewhere = elsewhere.into();
        let mobile_nodes: Vec<&str> =
            homes.iter().flat_map(|home| home.mobile_nodes.iter().copied()).collect();
        for (index, cable) in cables.iter().enumerate() {
            let subnet = Subnet(index as u16 + 1);
            let [a, b] = cable.between.map(|name| {
                if topology.find(name).is_none() && mobile_nodes.contains(&name) {
                    // They are numbered in a row, whichever comes first.
                    mobile_nodes.iter().for_each(|mobile| _ = topology.place_named(mobile));
                }
                topology.place_named(name)
            });
            let [of_a, of_b] = cable.hosts;
            for (node, peer, host, peer_host, direction) in [(a, b, of_a, of_b, 0), (b, a, of_b, of_a, 1)] {
                let [address, peer_address] = [host, peer_host].map(|host| topology.host(subnet, host));
                let out = OneWayId(2 * index as u32 + direction);
                let interface = Interface { out, subnet, address, peer, peer_address };
                topology.places[usize::from(node.0)].interfaces.push(interface);
            }
        }
        let subnets = cables.len() + 1 + homes.len().max(1);
        for place in &mut topology.places {
            place.table = vec![NO_ROUTE; subnets];
            place.elsewhere = Arc::clone(&topology.elsewhere);
        }
        let mut without_a_link = Vec::new();
        for (number, home) in homes.iter().enumerate() {
            let agent = topology.place_named(home.home_agent);
            let ids: Vec<NodeId> =
                home.mobile_nodes.iter().map(|mobile| topology.place_named(mobile)).collect();
            let lenders = home.relays.iter().map(|relay| topology.place_named(relay));
            let lenders: Vec<NodeId> = lenders.collect();
            for node in ids.iter().chain(&lenders) {
                topology.places[usize::from(node.0)].forwards = false;
            }
            let on_link = home.link.and_then(|link| cables.iter().position(|cable| cable.name == link));
            let subnet = on_link.map_or(home_subnet(number), |index| Subnet(index as u16 + 1));
            if on_link.is_none() {
                without_a_link.push((agent, topology.host(subnet, home.agent_host), subnet));
            }
            let own = |node: NodeId, otherwise| {
                let interfaces = &topology.places[usize::from(node.0)].interfaces;
                interfaces.iter().find(|i| i.subnet == subnet).map_or(otherwise, |i| i.address)
            };
            let agent_address = own(agent, topology.host(subnet, home.agent_host));
            let Some(&first) = ids.first() else { continue };
            let home_address = own(first, topology.host(subnet, 2));
            topology.homes.all.push(Home { agent, agent_address, first, count: ids.len(), home_address });
            for &(n, host) in &home.mobile_hosts {
                topology.homes.given.push((ids[n], topology.host(subnet, host)));
            }
        }
        topology.homes.given.sort_unstable_by_key(|(node, _)| *node);
        topology.compute_routes(cables.len(), &without_a_link);
        topology
    }

    /// The same with many mobile nodes, which have no routes of their own: each stands behind its station.
    pub fn build_with_fleet(cables: &[Cable<'_>], fleet: &FleetNetwork<'_>) -> Self {
        let mut topology = Self::build(cables, &[]);
        let agent = topology.place_named(fleet.home_agent);
        let own = HOME_NETWORK.after(1);
        // The network without a link, whose routes each node then keeps apart.
        let virtual_home = Subnet(cables.len() as u16 + 1);
        let at = usize::from(virtual_home.0);
        topology.places[usize::from(agent.0)].table[at] = RouteEntry { route: Route::Home, own };
        topology.spread(virtual_home, vec![agent]);
        for place in &mut topology.places {
            place.home = std::mem::replace(&mut place.table[at], NO_ROUTE);
        }
        let mut stations = Vec::new();
        for (n, station) in fleet.stations.iter().chain(&fleet.gateway).enumerate() {
            let id = topology.place_named(station);
            let subnet = Subnet(virtual_home.0 + 1 + n as u16);
            let place = &mut topology.places[usize::from(id.0)];
            let interface = InterfaceIndex(place.interfaces.len() as u16);
            let cell = Cell { interface, address: subnet.host(1) };
            place.cell = Some(cell);
            place.table.resize(usize::from(subnet.0) + 1, NO_ROUTE);
            place.table[usize::from(subnet.0)].own = cell.address;
            stations.push((id, cell));
        }
        let first = NodeId(topology.places.len() as u16);
        let home = Home {
            agent,
            agent_address: own,
            first,
            count: fleet.nodes.len(),
            home_address: HOME_NETWORK.after(2),
        };
        for (n, (name, radio, station)) in fleet.nodes.iter().enumerate() {
            let address = home.home_address.after(n as u32);
            let (peer, cell) = stations[*station];
            let place = topology.new_place(name);
            let out = up_of(*radio);
            place.interfaces.push(Interface {
                out,
                subnet: Subnet(0),
                address,
                peer,
                peer_address: cell.address,
            });
            place.interfaces.shrink_to_fit();
            place.forwards = false;
            place.home = RouteEntry { route: Route::Via(InterfaceIndex(0)), own: address };
        }
        topology.homes = Homes { all: vec![home], given: Vec::new() };
        topology
    }

    /// Gives each of the many mobile nodes of [`build_with_fleet`](Self::build_with_fleet) care-of addresses of its own at all
    /// stations, as over IPv6, and says which addresses they are.
    pub(crate) fn add_care_of_addresses(&mut self, stations: &[&str]) -> Option<Cells> {
        let home = self.homes.first().copied()?;
        let ids: Vec<NodeId> = stations.iter().filter_map(|station| self.find(station)).collect();
        let on_wire = |id: &NodeId| self.place(*id).interfaces.first().map_or(Subnet(0), |link| link.subnet);
        let cells: Arc<[Subnet]> = ids.iter().map(on_wire).collect();
        for (id, number) in ids.iter().zip(0..) {
            self.places[usize::from(id.0)].number = number;
        }
        for (mobile, number) in home.mobile_nodes().zip(0..) {
            self.places[usize::from(mobile.0)].number = number;
        }
        for place in &mut self.places {
            place.cells = Arc::clone(&cells);
        }
        let first_cell = self.place(*ids.first()?).cell?.address.subnet()?;
        Some(Cells {
            home_network: HOME_NETWORK,
            home_address: home.home_address,
            mobile_nodes: home.count,
            first_cell,
            stations: ids.len(),
        })
    }

    /// How many links a packet from `node` crosses on its way to the node that has `destination`; `None` if it does not get there.
    #[must_use]
    pub fn hops(&self, node: NodeId, destination: Locator) -> Option<usize> {
        let mut here = node;
        for hops in 0..=self.places.len() {
            match self.place(here).route(destination) {
                Route::Local => return Some(hops),
                Route::Via(interface) => here = self.place(here).interface(interface).peer,
                Route::Home | Route::Unreachable => return None,
            }
        }
        None
    }

    /// Host `host` of a network.
    #[must_use]
    pub fn host(&self, subnet: Subnet, host: u8) -> Locator {
        let own = self.elsewhere.iter().find(|(_, of)| *of == subnet);
        own.map_or(subnet.host(host), |(network, _)| network.beside(host))
    }

    /// The prefix length of home networks.
    #[must_use]
    pub fn home_prefix_len(&self) -> u8 {
        match self.homes.first() {
            Some(home) if is_in_home_network(home.home_address) && self.plan == Plan::Ipv4 => HOME_PREFIX_LEN,
            _ => self.plan.prefix_len(),
        }
    }

    /// The address that a locator stands for.
    #[must_use]
    pub fn address(&self, locator: Locator) -> IpAddr {
        self.plan.address(locator)
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.places.iter().position(|place| place.name == name).map(|index| NodeId(index as u16))
    }

    /// The node with this id.
    ///
    /// # Panics
    /// When the id is another topology's.
    #[must_use]
    pub fn place(&self, id: NodeId) -> &Place {
        &self.places[usize::from(id.0)]
    }

    /// The mobile node of an access link.
    #[must_use]
    pub fn mobile_of(&self, access: LinkId) -> NodeId {
        self.entrance(up_of(access))
    }

    /// The node that packets enter a one-way link from.
    #[must_use]
    pub fn entrance(&self, way: OneWayId) -> NodeId {
        if let Some(node) = self.media.entrance(way) {
            return node;
        }
        let leads_out = |place: &Place| place.interfaces.iter().any(|interface| interface.out == way);
        NodeId(self.places.iter().position(leads_out).unwrap_or_default() as u16)
    }

    /// The address a node is known by: the mobile node by its home address, others by that of their first interface.
    #[must_use]
    pub fn address_of(&self, id: NodeId) -> Locator {
        let first = || self.place(id).interfaces.first().map_or(Locator::NOWHERE, |i| i.address);
        self.homes.address_of(id).unwrap_or_else(first)
    }

    fn place_named(&mut self, name: &str) -> NodeId {
        self.find(name).unwrap_or_else(|| {
            self.new_place(name);
            NodeId((self.places.len() - 1) as u16)
        })
    }

    fn new_place(&mut self, name: &str) -> &mut Place {
        let at = self.places.len();
        self.places.push(Place {
            name: name.to_owned(),
            interfaces: Vec::new(),
            forwards: true,
            role: Role::Host,
            cell: None,
            table: Vec::new(),
            home: NO_ROUTE,
            elsewhere: Arc::clone(&self.elsewhere),
            cells: Arc::new([]),
            number: 0,
        });
        &mut self.places[at]
    }

    /// Routes to the networks that are links, and to home networks `without_a_link`, each with its home agent and its address there.
    fn compute_routes(&mut self, links: usize, without_a_link: &[(NodeId, Locator, Subnet)]) {
        for subnet in (1..=links as u16).map(Subnet) {
            let mut reached: Vec<NodeId> = Vec::new();
            for (index, place) in self.places.iter_mut().enumerate() {
                if let Some(i) = place.interfaces.iter().position(|interface| interface.subnet == subnet) {
                    let own = place.interfaces[i].address;
                    place.table[usize::from(subnet.0)] =
                        RouteEntry { route: Route::Via(InterfaceIndex(i as u16)), own };
                    reached.push(NodeId(index as u16));
                }
            }
            self.spread(subnet, reached);
        }
        for &(agent, own, subnet) in without_a_link {
            self.places[usize::from(agent.0)].table[usize::from(subnet.0)] =
                RouteEntry { route: Route::Home, own };
            self.spread(subnet, vec![agent]);
        }
    }

    /// Breadth-first from the nodes that know `subnet` already.
    fn spread(&mut self, subnet: Subnet, mut frontier: Vec<NodeId>) {
        let mut next = 0;
        while next < frontier.len() {
            let known = frontier[next];
            next += 1;
            if !self.places[usize::from(known.0)].forwards {
                continue;
            }
            for i in 0..self.places[usize::from(known.0)].interfaces.len() {
                let neighbour = self.places[usize::from(known.0)].interfaces[i].peer;
                let place = &mut self.places[usize::from(neighbour.0)];
                if place.table[usize::from(subnet.0)].route != Route::Unreachable {
                    continue;
                }
                if let Some(back) = place.interfaces.iter().position(|interface| interface.peer == known) {
                    place.table[usize::from(subnet.0)].route = Route::Via(InterfaceIndex(back as u16));
                    frontier.push(neighbour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cable<'a>(name: &'a str, a: &'a str, b: &'a str) -> Cable<'a> {
        Cable { name, between: [a, b], network: None, hosts: [1, 2] }
    }

    #[test]
    fn routes_are_shortest_and_never_cross_the_mobile_node() {
        let cables = [
            cable("ethernet", "correspondent", "home-agent"),
            cable("wavelan", "home-agent", "mobile"),
            cable("gsm", "router", "mobile"),
            cable("backbone", "home-agent", "router"),
        ];
        let home = HomeNetwork {
            home_agent: "home-agent",
            mobile_nodes: vec!["mobile"],
            relays: Vec::new(),
            link: None,
            network: None,
            agent_host: 1,
            mobile_hosts: Vec::new(),
        };
        let topology = Topology::build(&cables, &[home]);
        let place = |name| &topology.places[usize::from(topology.find(name).unwrap().0)];

        let gsm_care_of = Subnet(3).host(2);
        assert_eq!(place("correspondent").route(gsm_care_of), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("home-agent").route(gsm_care_of), Route::Via(InterfaceIndex(2)), "by the backbone");
        assert_eq!(place("router").route(gsm_care_of), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("mobile").route(gsm_care_of), Route::Local);

        let home_address = topology.homes.first().unwrap().home_address;
        assert_eq!(place("home-agent").route(home_address), Route::Home);
        assert_eq!(place("home-agent").route(topology.homes.first().unwrap().agent_address), Route::Local);
        assert_eq!(place("router").route(home_address), Route::Via(InterfaceIndex(1)));
        assert_eq!(place("mobile").route(Ipv4Addr::new(192, 0, 2, 1).into()), Route::Unreachable);
    }

    #[test]
    fn a_home_link_is_the_home_network() {
        let cables =
            [cable("ethernet", "correspondent", "home-agent"), cable("home", "home-agent", "mobile")];
        let home = HomeNetwork {
            home_agent: "home-agent",
            mobile_nodes: vec!["mobile"],
            relays: Vec::new(),
            link: Some("home"),
            network: None,
            agent_host: 1,
            mobile_hosts: Vec::new(),
        };
        let topology = Topology::build(&cables, &[home]);
        assert_eq!(topology.homes.first().unwrap().agent_address, Subnet(2).host(1));
        assert_eq!(topology.homes.first().unwrap().home_address, Subnet(2).host(2));
    }

    #[test]
    fn many_mobile_nodes_share_the_routes_of_their_home_network() {
        let cables = [
            cable("ethernet", "correspondent", "home-agent"),
            cable("one", "home-agent", "station-1"),
            cable("two", "home-agent", "station-2"),
        ];
        let nodes = vec![("mobile-1", LinkId(3), 0), ("mobile-2", LinkId(4), 1), ("mobile-3", LinkId(5), 0)];
        let stations = vec!["station-1", "station-2"];
        let fleet = FleetNetwork { home_agent: "home-agent", stations, gateway: None, nodes };
        let topology = Topology::build_with_fleet(&cables, &fleet);
        let place = |name| topology.place(topology.find(name).unwrap());
        let home = topology.homes.first().unwrap();
        let last = NodeId(home.first.0 + 2);
        let address = home.address_of(last).unwrap();

        assert_eq!(topology.place(last).name, "mobile-3");
        assert_eq!((home.index_of(address), topology.address_of(last)), (Some(2), address));
        assert_eq!(place("home-agent").route(address), Route::Home);
        assert_eq!(place("correspondent").route(address), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("station-2").route(address), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("mobile-3").route(address), Route::Local);
        let cell = place("station-2").cell.unwrap();
        assert_eq!(cell.interface, InterfaceIndex(1));
        assert_eq!(place("station-2").route(cell.address), Route::Local);
        assert_eq!(place("home-agent").route(topology.homes.first().unwrap().agent_address), Route::Local);
        assert_eq!(place("mobile-1").interfaces[0].peer_address, place("station-1").cell.unwrap().address);
        assert_eq!(home.address_of(topology.find("station-1").unwrap()), None);
    }
}
