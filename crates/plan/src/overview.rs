//! A scenario's network as people read it: who is joined to whom, at which addresses, and where mobile nodes begin.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;

use careof_base::{DataRate, Duration};
use careof_link::UNLIMITED_RATE;
use careof_scenario::{AnchorPoint, CopyNumber, LinkId, Role, Scenario, TraceFile};

use crate::agents::{AgentPlan, agent};
use crate::layout::lay_out;
use crate::script::attached_first;
use crate::topology::{Home, NodeId, Topology, down_of, up_of};

/// The network of a scenario with every address of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview<'a> {
    /// The nodes, in the order of the scenario.
    pub nodes: Vec<(&'a str, Role)>,
    /// The links that routes lead over, radios included, in the order of the scenario.
    pub links: Vec<LinkOverview<'a>>,
    /// The networks of home addresses.
    pub home_networks: Vec<HomeNetworkOverview<'a>>,
    /// The mobility anchor points.
    pub anchor_points: Vec<AnchorPointOverview<'a>>,
    /// The mobile nodes.
    pub mobiles: Vec<MobileOverview<'a>>,
}

/// A link with its network.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOverview<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ends; of a radio of many mobile nodes those with which it begins.
    pub ends: [LinkEnd<'a>; 2],
    /// Its network; of a radio that of its station's cell.
    pub network: Option<Network>,
    /// The direction from the first end to the second, and the one back.
    pub directions: [Direction<'a>; 2],
    /// Whether mobile nodes come and go over it.
    pub is_access: bool,
    /// Whether the mobile node is at home there.
    pub is_home: bool,
    /// The care-of address of a mobile node there; `None` at home, and of links that are no access links.
    pub care_of: Option<IpAddr>,
    /// The medium it is on.
    pub medium: Option<&'a str>,
    /// Which it is of the links that one table of the file stands for.
    pub copy: Option<CopyNumber>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd<'a> {
    /// The node.
    pub node: &'a str,
    /// The node's address there; `None` of a mobile node at a radio, which has none but its home address.
    pub address: Option<IpAddr>,
}

/// What a direction of a link is to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direction<'a> {
    /// The rate; `None` is unlimited.
    pub rate: Option<DataRate>,
    /// The propagation delay.
    pub delay: Duration,
    /// The file of the trace that says when packets leave, in place of the rate.
    pub trace: Option<&'a str>,
}

/// A network: its first address and the length of its prefix in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its first address.
    pub address: IpAddr,
    /// Length of the prefix.
    pub prefix_len: u8,
}

impl Network {
    /// The one of `address`.
    fn of(address: IpAddr, prefix_len: u8) -> Self {
        let kept = u32::from(prefix_len);
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(kept)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(kept)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { address, prefix_len }
    }
}

/// Where home addresses are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeNetworkOverview<'a> {
    /// Its addresses.
    pub network: Network,
    /// The node of the home agent.
    pub home_agent: &'a str,
    /// The home agent's address there, to which mobile nodes register.
    pub address: IpAddr,
    /// The link that it is; without one it exists only at the home agent.
    pub link: Option<&'a str>,
}

/// A mobility anchor point (RFC 5380).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorPointOverview<'a> {
    /// Its node.
    pub node: &'a str,
    /// The address by which it is advertised.
    pub address: IpAddr,
    /// The network of that and of the regional care-of addresses.
    pub network: Network,
    /// The access routers that advertise it.
    pub domain: Vec<&'a str>,
    /// Its preference, 0 to 15.
    pub preference: u8,
}

/// A mobile node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileOverview<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its home address.
    pub home_address: IpAddr,
    /// The node of its home agent.
    pub home_agent: &'a str,
    /// The access links that it is attached to when the run begins.
    pub starts_on: Vec<&'a str>,
}

/// The network of `scenario`, with the addresses that both worlds give it.
#[must_use]
pub fn overview(scenario: &Scenario) -> Overview<'_> {
    let topology = lay_out(scenario);
    let network = Known::new(scenario, &topology);
    let links = scenario.links.iter().enumerate().filter(|(_, link)| !link.straight);
    Overview {
        nodes: scenario.nodes.iter().map(|node| (node.name.as_str(), node.role)).collect(),
        links: links.map(|(index, _)| network.link(LinkId(index))).collect(),
        home_networks: network.home_networks(),
        anchor_points: network.anchor_points(),
        mobiles: network.mobiles(),
    }
}

/// What is looked up for every link.
struct Known<'a, 'b> {
    scenario: &'a Scenario,
    topology: &'b Topology,
    by_name: BTreeMap<&'b str, NodeId>,
    /// The care-of addresses that foreign agents offer, by node.
    offered: BTreeMap<NodeId, Ipv4Addr>,
}

impl<'a, 'b> Known<'a, 'b> {
    fn new(scenario: &'a Scenario, topology: &'b Topology) -> Self {
        let nodes = (0..topology.places.len() as u16).map(NodeId);
        let by_name = nodes.clone().map(|node| (topology.place(node).name.as_str(), node)).collect();
        let is_lent = scenario.mobility.as_ref().is_some_and(|mobility| !mobility.care_of.is_co_located());
        let agents = nodes.filter(|node| is_lent && topology.place(*node).role == Role::ForeignAgent);
        let offered = agents.filter_map(|node| match agent(scenario, topology, 0, node) {
            Ok(Some(AgentPlan::Foreign(config))) => Some((node, *config.care_of_addresses.first()?)),
            _ => None,
        });
        Self { scenario, topology, by_name, offered: offered.collect() }
    }

    fn mobiles(&self) -> Vec<MobileOverview<'a>> {
        let (scenario, homes) = (self.scenario, &self.topology.homes);
        let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
        let first = attached_first(scenario);
        let mobile = |node: &'a careof_scenario::Node| {
            let id = *self.by_name.get(node.name.as_str())?;
            let starts_on = match (fleet, homes.index(id)) {
                (Some(fleet), Some(index)) => vec![LinkId(fleet.radio.0 + index)],
                _ => first.iter().copied().filter(|link| self.topology.mobile_of(*link) == id).collect(),
            };
            Some(MobileOverview {
                name: &node.name,
                home_address: self.topology.address(homes.address_of(id)?),
                home_agent: self.name_of(homes.of(id)?.agent)?,
                starts_on: starts_on.into_iter().map(|link| scenario.link(link).name.as_str()).collect(),
            })
        };
        // Those of one home agent stand in a row.
        let mut nodes: Vec<_> = scenario.nodes.iter().filter(|node| node.role == Role::Mobile).collect();
        nodes.sort_by_key(|node| self.by_name.get(node.name.as_str()).and_then(|id| homes.index(*id)));
        nodes.into_iter().filter_map(mobile).collect()
    }

    fn home_networks(&self) -> Vec<HomeNetworkOverview<'a>> {
        let (scenario, topology) = (self.scenario, self.topology);
        let link = scenario.mobility.as_ref().and_then(|mobility| mobility.home);
        let network = |home: &Home| {
            let address = topology.address(home.agent_address);
            Some(HomeNetworkOverview {
                network: Network::of(address, topology.home_prefix_len()),
                home_agent: self.name_of(home.agent)?,
                address,
                link: link.map(|link| scenario.link(link).name.as_str()),
            })
        };
        topology.homes.iter().filter_map(network).collect()
    }

    fn anchor_points(&self) -> Vec<AnchorPointOverview<'a>> {
        let (scenario, topology) = (self.scenario, self.topology);
        let hierarchy = scenario.mobility.as_ref().and_then(|mobility| mobility.hierarchy.as_ref());
        let name = |id| scenario.node(id).name.as_str();
        let of_hierarchy = hierarchy.iter().flat_map(|hierarchy| &hierarchy.anchor_points);
        let anchor_point = |one: &AnchorPoint| {
            let node = topology.find(name(one.node))?;
            let place = topology.anchor_points.iter().find(|place| place.node == node)?;
            let address = topology.address(place.address());
            Some(AnchorPointOverview {
                node: name(one.node),
                address,
                network: Network::of(address, topology.plan.prefix_len_of(address)),
                domain: one.domain.iter().map(|router| name(*router)).collect(),
                preference: one.preference,
            })
        };
        of_hierarchy.filter_map(anchor_point).collect()
    }

    /// The scenario's name of a node.
    fn name_of(&self, node: NodeId) -> Option<&'a str> {
        let name = &self.topology.place(node).name;
        self.scenario.nodes.iter().find(|one| one.name == *name).map(|one| one.name.as_str())
    }

    fn link(&self, id: LinkId) -> LinkOverview<'a> {
        let (scenario, topology) = (self.scenario, self.topology);
        let link = scenario.link(id);
        let nodes = link.ends.map(|end| scenario.node(end).name.as_str());
        let ids = nodes.map(|name| self.by_name.get(name).copied().unwrap_or(NodeId(0)));
        let mobility = scenario.mobility.as_ref();
        let fleet = mobility.and_then(|mobility| mobility.fleet.as_ref());
        let is_home = mobility.is_some_and(|mobility| mobility.home == Some(id));
        let locators = if fleet.is_some_and(|fleet| fleet.is_radio(id)) {
            [topology.place(ids[0]).cell.map(|cell| cell.address), None]
        } else {
            let ways = [down_of(id), up_of(id)];
            [0, 1].map(|end| {
                let mut interfaces = topology.place(ids[end]).interfaces.iter();
                interfaces.find(|interface| interface.out == ways[end]).map(|interface| interface.address)
            })
        };
        let addresses = locators.map(|locator| locator.map(|locator| topology.address(locator)));
        // A foreign agent lends its own; otherwise the mobile node has one to itself.
        let care_of = self.offered.get(&ids[0]).map_or(addresses[1], |address| Some((*address).into()));
        let direction = |config: &careof_link::Config, file: &'a Option<TraceFile>| Direction {
            rate: (config.rate != UNLIMITED_RATE).then_some(config.rate),
            delay: config.delay,
            trace: file.as_ref().map(|trace| trace.file.as_str()),
        };
        let [down, up] = &link.traces;
        LinkOverview {
            name: &link.name,
            ends: [0, 1].map(|end| LinkEnd { node: nodes[end], address: addresses[end] }),
            network: addresses[0].map(|address| Network::of(address, topology.plan.prefix_len_of(address))),
            directions: [direction(&link.down, down), direction(&link.up, up)],
            is_access: link.access,
            is_home,
            care_of: care_of.filter(|_| link.access && !is_home),
            medium: link.medium.and_then(|medium| scenario.media.get(medium.0)).map(|one| one.name.as_str()),
            copy: link.copy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, more: &[&str]) -> Scenario {
        let overrides: Vec<String> = more.iter().map(|&one| one.to_owned()).collect();
        Scenario::parse("x.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    const ONE: &str = "duration = \"9 s\"\n[links]\nhome = \"wavelan\"\n\
        gsm = { preset = \"gsm-csd\", between = [\"router\", \"mobile\"] }\n\
        backbone = { rate = \"unlimited\", delay = \"5 ms\", between = [\"home-agent\", \"router\"] }\n\
        [mobility]\nhome = \"home\"\nstart = \"gsm\"\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n";

    #[test]
    fn a_link_has_the_addresses_of_its_ends_and_the_care_of_address_of_who_visits_it() {
        let scenario = parsed(ONE, &[]);
        let overview = overview(&scenario);
        let link = |name| overview.links.iter().find(|link| link.name == name).unwrap();
        let gsm = link("gsm");
        assert_eq!(
            gsm.ends.map(|end| (end.node, end.address)),
            [("router", ip("10.0.2.1")), ("mobile", ip("10.0.2.2"))]
        );
        assert_eq!(gsm.network, Some(Network { address: ip("10.0.2.0").unwrap(), prefix_len: 24 }));
        assert_eq!((gsm.care_of, gsm.is_access, gsm.is_home), (ip("10.0.2.2"), true, false));
        assert_eq!(gsm.directions[0].rate, Some(DataRate::from_bits_per_second(9_600)));
        let backbone = link("backbone");
        assert_eq!((backbone.care_of, backbone.is_access, backbone.directions[0].rate), (None, false, None));
        assert_eq!((link("home").care_of, link("home").is_home), (None, true), "at home there is none");
    }

    #[test]
    fn a_mobile_node_has_the_home_address_of_the_run_and_begins_where_the_scenario_says() {
        let scenario = parsed(ONE, &[]);
        let found = overview(&scenario);
        let mobile = MobileOverview {
            name: "mobile",
            home_address: ip("10.0.1.2").unwrap(),
            home_agent: "home-agent",
            starts_on: vec!["gsm"],
        };
        assert_eq!(found.mobiles, [mobile]);
        let network = HomeNetworkOverview {
            network: Network { address: ip("10.0.1.0").unwrap(), prefix_len: 24 },
            home_agent: "home-agent",
            address: ip("10.0.1.1").unwrap(),
            link: Some("home"),
        };
        assert_eq!(found.home_networks, [network]);
    }

    #[test]
    fn over_ipv6_the_care_of_address_is_the_one_that_the_mobile_node_will_form() {
        let scenario = parsed(ONE, &["mobility.protocol=mobile-ipv6"]);
        let overview = overview(&scenario);
        let gsm = overview.links.iter().find(|link| link.name == "gsm").unwrap();
        assert_eq!(gsm.care_of, ip("2001:db8:0:2:0:ff:fe00:202"));
        assert_eq!(gsm.network, Some(Network { address: ip("2001:db8:0:2::").unwrap(), prefix_len: 64 }));
        assert_eq!(overview.mobiles[0].home_address, ip("2001:db8:0:1::2").unwrap());
    }

    #[test]
    fn a_foreign_agent_lends_its_own_address() {
        let scenario = parsed(
            "duration = \"9 s\"\n[links]\nfirst = \"wavelan\"\nsecond = \"wavelan\"\n[mobility]\n\
             care_of = \"foreign-agent\"\n",
            &[],
        );
        let topology = lay_out(&scenario);
        let overview = overview(&scenario);
        for link in overview.links.iter().filter(|link| link.is_access) {
            let agent = topology.place(topology.find(link.ends[0].node).unwrap());
            let addresses: Vec<_> =
                agent.interfaces.iter().map(|one| topology.address(one.address)).collect();
            assert!(addresses.contains(&link.care_of.unwrap()), "{link:?}");
            assert_ne!(link.care_of, link.ends[1].address);
        }
    }

    #[test]
    fn of_many_mobile_nodes_each_begins_at_its_station() {
        let scenario = parsed(
            "duration = \"9 s\"\n[links]\n\
             cell = { preset = \"ethernet-1g\", between = [\"home-agent\", \"station-*\"], count = 2 }\n\
             radio = { preset = \"wavelan\", between = [\"station-*\", \"mobile-*\"] }\n[mobility]\nnodes = 3\n",
            &[],
        );
        let overview = overview(&scenario);
        let begins: Vec<_> = overview.mobiles.iter().map(|one| (one.name, one.starts_on.clone())).collect();
        let radios = ["mobile-1", "mobile-2", "mobile-3"].into_iter().zip(["radio-1", "radio-2", "radio-3"]);
        assert_eq!(begins, radios.map(|(name, radio)| (name, vec![radio])).collect::<Vec<_>>());
        let stations: Vec<_> =
            overview.links.iter().filter(|link| link.is_access).map(|link| link.ends[0].node).collect();
        assert_eq!(stations, ["station-1", "station-2", "station-1"]);
        let homes: Vec<_> = overview.mobiles.iter().map(|one| one.home_address.to_string()).collect();
        assert_eq!(homes, ["10.192.0.2", "10.192.0.3", "10.192.0.4"]);
        let home = &overview.home_networks[0];
        assert_eq!(
            (home.network.address.to_string(), home.network.prefix_len),
            ("10.192.0.0".to_owned(), 10)
        );
        let radio = overview.links.last().unwrap();
        assert_eq!(radio.ends[1].address, None);
        assert!(radio.care_of.is_some() && radio.ends[0].address.is_some());
    }
}
