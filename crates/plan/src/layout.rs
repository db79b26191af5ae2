//! From a scenario to its nodes and links, and the names that traces and captures have for them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use careof_base::RandomStream;
use careof_scenario::{
    AnchorPoint, IpVersion, Link, LinkId, MobileNode, Mobility, Node, Prefix, Role, Scenario,
};
use careof_trace::Names;

use crate::hierarchical::AnchorPointPlace;
use crate::locator::{Ipv6Plan, Locator, Plan, Subnet};
use crate::media::Media;
use crate::topology::{Cable, FleetNetwork, HomeNetwork, NodeId, Topology};

/// The random stream of a user of chance: the same in both worlds.
#[must_use]
pub fn stream(scenario: &Scenario, run: u64, name: &str) -> RandomStream {
    RandomStream::new(scenario.seed, run, name)
}

/// The nodes of `scenario` with their addresses and routes.
#[must_use]
pub fn lay_out(scenario: &Scenario) -> Topology {
    let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
    // The radios of many mobile nodes are the last links, and before them stand those over which no route leads.
    let wired = fleet.map_or(scenario.links.len(), |fleet| fleet.radio.0);
    let cables: Vec<Cable<'_>> = scenario
        .links
        .iter()
        .take(wired)
        .take_while(|link| !link.straight)
        .map(|link| Cable {
            name: &link.name,
            between: link.ends.map(|end| scenario.node(end).name.as_str()),
            network: link.prefix.and_then(of_ipv4),
            hosts: [(0, 1), (1, 2)].map(|(end, planned)| {
                place_in(scenario.node(link.ends[end]), link.prefix).unwrap_or(planned)
            }),
        })
        .collect();
    let mut topology = match fleet {
        Some(fleet) => {
            let node = |n| {
                let name = scenario.node(careof_scenario::NodeId(fleet.first.0 + n)).name.as_str();
                (name, LinkId(fleet.radio.0 + n), fleet.first_station(n))
            };
            let nodes = (0..fleet.count).map(node).collect();
            let stations =
                fleet.stations.iter().map(|station| scenario.node(*station).name.as_str()).collect();
            let agent = scenario.node_with_role(Role::HomeAgent);
            let home_agent = agent.map_or("", |agent| scenario.node(agent).name.as_str());
            let domain = scenario.mobility.as_ref().and_then(|mobility| mobility.micro_mobility.as_ref());
            let gateway = domain.map(|domain| scenario.node(domain.gateway).name.as_str());
            Topology::build_with_fleet(&cables, &FleetNetwork { home_agent, stations, gateway, nodes })
        }
        None => {
            let homes = scenario.mobility.as_ref().map(|mobility| home_networks(scenario, mobility));
            Topology::build(&cables, &homes.unwrap_or_default())
        }
    };
    topology.anchor_points = anchor_points(scenario, &topology, cables.len());
    let roles: BTreeMap<&str, Role> =
        scenario.nodes.iter().map(|node| (node.name.as_str(), node.role)).collect();
    for place in &mut topology.places {
        place.role = roles.get(place.name.as_str()).copied().unwrap_or(Role::Host);
    }
    if scenario.ip_version == IpVersion::V6 {
        let plan = ipv6_plan(scenario, &topology);
        let stations = fleet.map(|fleet| fleet.stations.iter().map(|id| scenario.node(*id).name.as_str()));
        let cells =
            stations.and_then(|stations| topology.add_care_of_addresses(&stations.collect::<Vec<_>>()));
        topology.plan = Plan::Ipv6(match cells {
            Some(cells) => plan.with_cells(cells),
            None => plan,
        });
    }
    topology.media = Media::new(scenario, |name| topology.find(name).unwrap_or(NodeId(0)));
    topology
}

/// Those of the mobile nodes that move by themselves.
fn home_networks<'a>(scenario: &'a Scenario, mobility: &'a Mobility) -> Vec<HomeNetwork<'a>> {
    let name = |node| scenario.node(node).name.as_str();
    let relays = mobility.multipath.iter().flat_map(|multipath| &multipath.relays);
    let relays: Vec<&str> = relays.map(|relay| name(relay.node)).collect();
    let of_one_agent = mobility.nodes.chunk_by(|one, other| one.home_agent == other.home_agent);
    let network = |mobile_nodes: &'a [MobileNode]| {
        let agent = scenario.node(mobile_nodes[0].home_agent);
        let place = |one: &MobileNode| place_in(scenario.node(one.node), agent.home_prefix);
        let places = mobile_nodes.iter().enumerate().filter_map(|(n, one)| Some((n, place(one)?)));
        HomeNetwork {
            home_agent: &agent.name,
            mobile_nodes: mobile_nodes.iter().map(|one| name(one.node)).collect(),
            relays: relays.clone(),
            link: mobility.home.map(|home| scenario.link(home).name.as_str()),
            network: agent.home_prefix.and_then(of_ipv4),
            agent_host: place_in(agent, agent.home_prefix).unwrap_or(1),
            mobile_hosts: places.collect(),
        }
    };
    // That of a mobility anchor point is one without a link where nobody is at home.
    let regional = |one: &'a AnchorPoint| HomeNetwork {
        home_agent: name(one.node),
        mobile_nodes: Vec::new(),
        relays: Vec::new(),
        link: None,
        network: None,
        agent_host: 1,
        mobile_hosts: Vec::new(),
    };
    let anchor_points = mobility.hierarchy.iter().flat_map(|hierarchy| &hierarchy.anchor_points);
    of_one_agent.map(network).chain(anchor_points.map(regional)).collect()
}

/// The mobility anchor points, whose networks follow those of the home agents.
fn anchor_points(scenario: &Scenario, topology: &Topology, links: usize) -> Vec<AnchorPointPlace> {
    let Some(hierarchy) = scenario.mobility.as_ref().and_then(|mobility| mobility.hierarchy.as_ref()) else {
        return Vec::new();
    };
    let first = links + topology.homes.iter().count() + 1;
    let place = |(one, n): (&AnchorPoint, usize)| {
        let node = topology.find(&scenario.node(one.node).name)?;
        Some(AnchorPointPlace { node, network: Subnet((first + n) as u16) })
    };
    hierarchy.anchor_points.iter().zip(0..).filter_map(place).collect()
}

/// The address that the scenario gives `node` in the network with this prefix.
fn address_in(node: &Node, prefix: Option<Prefix>) -> Option<IpAddr> {
    let prefix = prefix?;
    node.addresses.iter().copied().find(|address| prefix.contains(*address))
}

/// Its place there over IPv4. Over IPv6 places are planned, and stand for the addresses that are given.
fn place_in(node: &Node, prefix: Option<Prefix>) -> Option<u8> {
    match address_in(node, prefix)? {
        IpAddr::V4(address) => Some(address.octets()[3]),
        IpAddr::V6(_) => None,
    }
}

/// An IPv4 network.
fn of_ipv4(prefix: Prefix) -> Option<Ipv4Addr> {
    match prefix.network() {
        IpAddr::V4(network) => Some(network),
        IpAddr::V6(_) => None,
    }
}

/// A mobile node forms its address on the links that it visits itself; at home it has its home address.
fn ipv6_plan(scenario: &Scenario, topology: &Topology) -> Ipv6Plan {
    let home = scenario.mobility.as_ref().and_then(|mobility| mobility.home);
    let is_visited = |(link, id): (&Link, usize)| link.access && home != Some(LinkId(id));
    // Networks are counted from 1.
    let visited = scenario.links.iter().zip(0..).map(is_visited);
    let of_links = scenario.links.iter().zip((1..).map(Subnet)).map(|(link, subnet)| (link.prefix, subnet));
    let of_homes = topology.homes.iter().filter_map(|home| {
        let name = &topology.place(home.agent).name;
        let agent = scenario.nodes.iter().find(|node| node.name == *name)?;
        Some((agent.home_prefix, home.home_address.subnet()?))
    });
    let of_anchor_points = topology.anchor_points.iter().filter_map(|place| {
        let node = scenario.nodes.iter().find(|node| node.name == topology.place(place.node).name)?;
        Some((node.home_prefix, place.network))
    });
    let prefixes = of_links.chain(of_homes).chain(of_anchor_points).filter_map(|(prefix, subnet)| {
        match prefix?.network() {
            IpAddr::V6(network) => Some((subnet, network)),
            IpAddr::V4(_) => None,
        }
    });
    let plan = Ipv6Plan::new(core::iter::once(false).chain(visited).collect(), prefixes.collect());
    let ipv4_only = scenario.links.iter().zip((1..).map(Subnet)).filter(|(link, _)| link.ipv4_only);
    plan.with_addresses(ipv6_addresses(scenario, topology))
        .with_ipv4_only(ipv4_only.map(|(_, subnet)| subnet).collect())
        .with_stations(stations(scenario))
}

/// With fast handovers a mobile node has the link-layer address of its first access link on all of them, as one radio has, so that it knows
/// its next care-of address beforehand.
fn stations(scenario: &Scenario) -> Vec<(Subnet, Locator)> {
    if scenario.mobility.as_ref().is_none_or(|mobility| mobility.fast_handover.is_none()) {
        return Vec::new();
    }
    // Networks are counted from 1, and the mobile node is the second end of its access links.
    let network = |link: LinkId| Subnet(link.0 as u16 + 1);
    let mut first = std::collections::BTreeMap::new();
    let of_link = |(id, link): (LinkId, &Link)| {
        let station = *first.entry(link.ends[1].0).or_insert(network(id).host(2));
        (network(id), station)
    };
    scenario.access_links().map(of_link).collect()
}

/// The addresses that the scenario gives single nodes.
fn ipv6_addresses(scenario: &Scenario, topology: &Topology) -> Vec<(Locator, Ipv6Addr)> {
    if scenario.nodes.iter().all(|node| node.addresses.is_empty()) {
        return Vec::new();
    }
    let of_links = scenario.links.iter().zip((1..).map(Subnet)).flat_map(|(link, subnet)| {
        [(0, 1), (1, 2)]
            .map(|(end, host)| (subnet.host(host), address_in(scenario.node(link.ends[end]), link.prefix)))
    });
    let of_homes = topology.homes.iter().flat_map(|home| {
        let node = |id: NodeId| scenario.nodes.iter().find(|node| node.name == topology.place(id).name);
        let prefix = node(home.agent).and_then(|agent| agent.home_prefix);
        let address = move |id: NodeId| address_in(node(id)?, Some(prefix?));
        let agent = core::iter::once((home.agent_address, address(home.agent)));
        agent.chain(home.mobile_nodes().filter_map(move |id| Some((home.address_of(id)?, address(id)))))
    });
    let is_ipv6 = |(locator, address)| match address {
        Some(IpAddr::V6(address)) => Some((locator, address)),
        _ => None,
    };
    of_links.chain(of_homes).filter_map(is_ipv6).collect()
}

/// What the identifiers of a trace stand for.
#[must_use]
pub fn names(scenario: &Scenario, topology: &Topology) -> Names {
    Names {
        nodes: topology.places.iter().map(|place| place.name.clone()).collect(),
        links: scenario
            .links
            .iter()
            .flat_map(|link| [format!("{}.down", link.name), format!("{}.up", link.name)])
            .collect(),
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
    }
}
