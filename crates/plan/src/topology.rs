//! Nodes, interfaces, addresses and static routes.

use core::net::Ipv4Addr;

use careof_scenario::LinkId;

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

/// A /24 of 10.0.0.0/8: every link is one, and so is a home network without a link.
///
/// Subnet `s` is 10.(s / 256).(s mod 256).0/24, which makes a route look-up an array access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(pub u16);

impl Subnet {
    /// Prefix length of every subnet.
    pub const PREFIX_LEN: u8 = 24;

    /// Host `host` of the subnet.
    pub const fn host(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, (self.0 >> 8) as u8, self.0 as u8, host)
    }

    /// The subnet of `address`, if it is one of ours.
    pub const fn of(address: Ipv4Addr) -> Option<Self> {
        let [net, high, low, _] = address.octets();
        if net == 10 { Some(Self(((high as u16) << 8) | low as u16)) } else { None }
    }
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The one-way link packets leave by.
    pub out: OneWayId,
    /// The network on the link.
    pub subnet: Subnet,
    /// The node's address there.
    pub address: Ipv4Addr,
    /// The node at the other end.
    pub peer: NodeId,
    /// The other end's address.
    pub peer_address: Ipv4Addr,
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
    own: Ipv4Addr,
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
    table: Vec<RouteEntry>,
}

impl Place {
    /// Where to send a packet for `destination`.
    pub fn route(&self, destination: Ipv4Addr) -> Route {
        let Some(entry) = Subnet::of(destination).and_then(|s| self.table.get(usize::from(s.0))) else {
            return Route::Unreachable;
        };
        if entry.own == destination { Route::Local } else { entry.route }
    }

    /// The interface at `index`.
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
}

/// Where the mobile node's home network is.
pub struct HomeNetwork<'a> {
    /// The home agent's node.
    pub home_agent: &'a str,
    /// The node that moves and therefore never forwards.
    pub mobile: &'a str,
    /// The link that is the home network; without one the network exists only on the home agent.
    pub link: Option<&'a str>,
}

/// All nodes with their addresses and routes.
#[derive(Clone, Debug)]
pub struct Topology {
    /// In the order in which the links name them.
    pub places: Vec<Place>,
    /// Address of the home agent on the home network.
    pub home_agent_address: Option<Ipv4Addr>,
    /// The mobile node's home address.
    pub home_address: Option<Ipv4Addr>,
}

impl Topology {
    /// Lays the links and computes shortest routes, counting hops; ties go to the link named first.
    pub fn build(cables: &[Cable<'_>], home: Option<&HomeNetwork<'_>>) -> Self {
        let mut topology = Self { places: Vec::new(), home_agent_address: None, home_address: None };
        for (index, cable) in cables.iter().enumerate() {
            let subnet = Subnet(index as u16 + 1);
            let [a, b] = cable.between.map(|name| topology.place_named(name));
            for (node, peer, host, peer_host, direction) in [(a, b, 1, 2, 0), (b, a, 2, 1, 1)] {
                topology.places[usize::from(node.0)].interfaces.push(Interface {
                    out: OneWayId(2 * index as u32 + direction),
                    subnet,
                    address: subnet.host(host),
                    peer,
                    peer_address: subnet.host(peer_host),
                });
            }
        }
        let subnets = cables.len() + 2;
        for place in &mut topology.places {
            place.table = vec![RouteEntry { route: Route::Unreachable, own: Ipv4Addr::UNSPECIFIED }; subnets];
        }
        let mut virtual_home = None;
        if let Some(home) = home {
            let agent = topology.place_named(home.home_agent);
            let mobile = topology.place_named(home.mobile);
            topology.places[usize::from(mobile.0)].forwards = false;
            let on_link = home.link.and_then(|link| cables.iter().position(|cable| cable.name == link));
            let subnet = Subnet(on_link.map_or(cables.len(), |index| index) as u16 + 1);
            if on_link.is_none() {
                virtual_home = Some((agent, subnet));
            }
            let place = &topology.places[usize::from(agent.0)];
            let own =
                place.interfaces.iter().find(|i| i.subnet == subnet).map_or(subnet.host(1), |i| i.address);
            let place = &topology.places[usize::from(mobile.0)];
            let mobile_own =
                place.interfaces.iter().find(|i| i.subnet == subnet).map_or(subnet.host(2), |i| i.address);
            topology.home_agent_address = Some(own);
            topology.home_address = Some(mobile_own);
        }
        topology.compute_routes(cables.len(), virtual_home);
        topology
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

    /// The node that packets enter a one-way link from.
    #[must_use]
    pub fn entrance(&self, way: OneWayId) -> NodeId {
        let leads_out = |place: &Place| place.interfaces.iter().any(|interface| interface.out == way);
        NodeId(self.places.iter().position(leads_out).unwrap_or_default() as u16)
    }

    /// The address a node is known by: the mobile node by its home address, others by that of their first interface.
    #[must_use]
    pub fn address_of(&self, id: NodeId) -> Ipv4Addr {
        match self.home_address {
            Some(home_address) if self.find("mobile") == Some(id) => home_address,
            _ => self.place(id).interfaces.first().map_or(Ipv4Addr::UNSPECIFIED, |i| i.address),
        }
    }

    fn place_named(&mut self, name: &str) -> NodeId {
        self.find(name).unwrap_or_else(|| {
            self.places.push(Place {
                name: name.to_owned(),
                interfaces: Vec::new(),
                forwards: true,
                table: Vec::new(),
            });
            NodeId((self.places.len() - 1) as u16)
        })
    }

    fn compute_routes(&mut self, links: usize, virtual_home: Option<(NodeId, Subnet)>) {
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
        if let Some((agent, subnet)) = virtual_home {
            self.places[usize::from(agent.0)].table[usize::from(subnet.0)] =
                RouteEntry { route: Route::Home, own: subnet.host(1) };
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
        Cable { name, between: [a, b] }
    }

    #[test]
    fn routes_are_shortest_and_never_cross_the_mobile_node() {
        let cables = [
            cable("ethernet", "correspondent", "home-agent"),
            cable("wavelan", "home-agent", "mobile"),
            cable("gsm", "router", "mobile"),
            cable("backbone", "home-agent", "router"),
        ];
        let home = HomeNetwork { home_agent: "home-agent", mobile: "mobile", link: None };
        let topology = Topology::build(&cables, Some(&home));
        let place = |name| &topology.places[usize::from(topology.find(name).unwrap().0)];

        let gsm_care_of = Subnet(3).host(2);
        assert_eq!(place("correspondent").route(gsm_care_of), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("home-agent").route(gsm_care_of), Route::Via(InterfaceIndex(2)), "by the backbone");
        assert_eq!(place("router").route(gsm_care_of), Route::Via(InterfaceIndex(0)));
        assert_eq!(place("mobile").route(gsm_care_of), Route::Local);

        let home_address = topology.home_address.unwrap();
        assert_eq!(place("home-agent").route(home_address), Route::Home);
        assert_eq!(place("home-agent").route(topology.home_agent_address.unwrap()), Route::Local);
        assert_eq!(place("router").route(home_address), Route::Via(InterfaceIndex(1)));
        assert_eq!(place("mobile").route(Ipv4Addr::new(192, 0, 2, 1)), Route::Unreachable);
    }

    #[test]
    fn a_home_link_is_the_home_network() {
        let cables =
            [cable("ethernet", "correspondent", "home-agent"), cable("home", "home-agent", "mobile")];
        let home = HomeNetwork { home_agent: "home-agent", mobile: "mobile", link: Some("home") };
        let topology = Topology::build(&cables, Some(&home));
        assert_eq!(topology.home_agent_address, Some(Subnet(2).host(1)));
        assert_eq!(topology.home_address, Some(Subnet(2).host(2)));
    }
}
