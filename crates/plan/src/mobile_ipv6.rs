//! Mobile IPv6: the agents' configurations, and what neighbor discovery is to do on each interface.

use core::net::{IpAddr, Ipv6Addr};

use careof_base::RandomStream;
use careof_mobility::v6::ReplayProtection;
use careof_mobility::v6::access_router::AccessRouterConfig;
use careof_mobility::v6::neighbor_discovery::{
    AdvertisingConfig, DetectionConfig, HostConfig, modified_eui_64,
};
use careof_mobility::v6::{
    CorrespondentNodeConfig, HierarchicalMobileNodeConfig, HomeAgentConfig, InterfaceAddress,
    InterfaceConfig, MobileNodeConfig, MobilityAnchorPointConfig, MovementConfig, Prefix,
    RouteOptimizationConfig, SecurityAssociation, ServedMobileNode,
};
use careof_mobility::{ConfigError, InterfaceId, PathProperties, Selection};
use careof_scenario::{
    Algorithm, Assist, DuplicateAddressDetection, LinkId, Mobility, MovementDetection, Protocol, Role,
    Scenario, Unreachability,
};
use careof_wire::icmpv6::{
    HomeAgentInformation, LinkLayerAddress, Milliseconds, PrefixInformation, PrefixLifetime,
};
use careof_wire::mip6::{self, Lifetime, Spi};

use crate::agents::{PATH_HOLD, preference, wall_clock};
use crate::assists::announced_path;
use crate::fast_handover;
use crate::hierarchical::{Parts, advertised, identifier};
use crate::layout::stream;
use crate::locator::{Ipv6Plan, Locator, Subnet};
use crate::topology::{Home, Interface, NodeId, Topology, down_of};

/// The SPI of the security association between the mobile node and its home agent.
const SPI: Spi = Spi(256);
/// The longest lifetime that an update can ask for, which is forever (RFC 6275 section 6.1.7).
const INFINITE: Lifetime = Lifetime::from_units(u16::MAX);
/// Bits of an IPv4-mapped address in front of the IPv4 address (RFC 4291 section 2.5.5.2).
const MAPPED_BITS: u8 = 96;
/// As good as forever for a home agent that is part of the experiment.
const FOREVER: PrefixLifetime = PrefixLifetime::INFINITE;

/// What runs of Mobile IPv6 on a node.
#[derive(Clone, Debug)]
pub enum Ipv6AgentPlan {
    /// A home agent.
    Home(Box<HomeAgentConfig>),
    /// The mobile node.
    Mobile(Box<MobileNodeConfig>),
    /// The mobile node where there are mobility anchor points.
    HierarchicalMobile(Box<HierarchicalMobileNodeConfig>),
    /// A mobility anchor point.
    AnchorPoint(Box<MobilityAnchorPointConfig>),
    /// A correspondent node that takes part in route optimisation.
    Correspondent(Box<CorrespondentNodeConfig>),
    /// An access router of fast handovers.
    AccessRouter(Box<AccessRouterConfig>),
}

/// Neighbor discovery on one interface of a node.
#[derive(Clone, Debug)]
pub struct NeighborPlan {
    /// Which interface.
    pub interface: InterfaceId,
    /// The access link it is on.
    pub link: LinkId,
    /// How it finds routers, forms and verifies addresses; `None` where nothing of that is needed.
    pub host: Option<HostConfig>,
    /// How it advertises itself as a router.
    pub router: Option<AdvertisingConfig>,
    /// Its own addresses on the link that the router answers for, beside its link-local one.
    pub answers: Vec<Ipv6Addr>,
    /// Whether its packets go to neighbors that are resolved and probed; otherwise neighbors are known for good.
    pub resolves: bool,
}

fn is_ipv6(scenario: &Scenario) -> Option<&Mobility> {
    scenario.mobility.as_ref().filter(|mobility| mobility.protocol == Protocol::MobileIpv6)
}

/// The agent of `node` in repetition `run` of `scenario`; `None` where nothing of Mobile IPv6 runs.
///
/// The interface with index `n` of the node is `InterfaceId(n)` to its agent.
///
/// # Errors
/// What a security association has against its parameters.
pub fn ipv6_agent(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
) -> Result<Option<Ipv6AgentPlan>, ConfigError> {
    let Some(mobility) = is_ipv6(scenario) else { return Ok(None) };
    if let Some(config) = fast_handover::access_router(scenario, mobility, topology, run, node)? {
        return Ok(Some(Ipv6AgentPlan::AccessRouter(Box::new(config))));
    }
    let place = topology.place(node);
    let network = |home: &Home| {
        let agent_address = address(topology, home.agent_address);
        (agent_address, Prefix::new(agent_address, topology.home_prefix_len()))
    };
    // What a mobile node and its home agent have agreed on.
    let agreed = |mobile: NodeId| {
        let name = &topology.place(mobile).name;
        let mut random = match mobility.nodes.as_slice() {
            [_] => stream(scenario, run, "mobility.key"),
            _ => stream(scenario, run, &format!("mobility.key.{name}")),
        };
        Ok::<_, ConfigError>((security(mobility, &mut random)?, identifier(name)))
    };
    let hierarchical = Parts { scenario, mobility, topology, run };
    Ok(match place.role {
        Role::AnchorPoint => {
            let config = hierarchical.anchor_point(node)?;
            config.map(|config| Ipv6AgentPlan::AnchorPoint(Box::new(config)))
        }
        Role::HomeAgent => {
            let Some(home) = topology.homes.at(node) else { return Ok(None) };
            let (agent_address, home_prefix) = network(home);
            let home_interface =
                place.interfaces.iter().position(|interface| interface.address == home.agent_address);
            let id = InterfaceId(home_interface.map_or(u16::MAX, |index| index as u16));
            let mut config = HomeAgentConfig::new(agent_address, home_prefix, id);
            config.clock = wall_clock();
            config.ipv4_address = topology.plan.ipv4_beside(home.agent_address);
            // Without a link nobody else can have a home address.
            let detects = mobility.duplicate_address_detection != DuplicateAddressDetection::None;
            config.duplicate_address_detection =
                config.duplicate_address_detection.filter(|_| detects && home_interface.is_some());
            for mobile in home.mobile_nodes() {
                let (security, identifier) = agreed(mobile)?;
                let home_address = address(topology, topology.address_of(mobile));
                let mut served = ServedMobileNode::new(home_address, security);
                served.identifier = identifier;
                config.mobile_nodes.push(served);
            }
            Some(Ipv6AgentPlan::Home(Box::new(config)))
        }
        Role::Mobile => {
            let Some(home) = topology.homes.of(node) else { return Ok(None) };
            let ((agent_address, home_prefix), (security, identifier)) = (network(home), agreed(node)?);
            let interfaces = place.interfaces.iter().enumerate();
            let interfaces =
                interfaces.map(|(n, interface)| mobile_interface(scenario, mobility, n, interface));
            let mut config = MobileNodeConfig::new(
                address(topology, topology.address_of(node)),
                home_prefix,
                agent_address,
                security,
                interfaces.collect(),
            );
            config.identifier = identifier;
            config.home_agent_ipv4 = topology.plan.ipv4_beside(home.agent_address);
            config.clock = wall_clock();
            config.lifetime = mobility.lifetime.map_or(INFINITE, Lifetime::from_duration);
            let detection = mobility.movement_detection;
            config.movement = MovementConfig {
                eager: detection == MovementDetection::Eager,
                link_layer: detection == MovementDetection::LinkTrigger,
                unreachable_router: detection == MovementDetection::UnreachableRouter,
            };
            if detection != MovementDetection::LinkTrigger {
                // Where advertisements tell, the node goes where it hears a router.
                config.selection = Selection::Preferred { hold: core::time::Duration::ZERO };
            }
            config.retransmission.early = mobility.early_requests;
            config.path_monitor = mobility.path_monitor;
            if mobility.path_monitor && config.selection == Selection::Manual {
                // Without `order` all are equal: none is left but for one that answers when it does not.
                config.selection = Selection::Preferred { hold: PATH_HOLD };
            }
            config.leave_bad_paths = mobility.leave_bad_paths;
            // Whose TCP is told by the Binding Update.
            let is_told = |assist: &Assist| matches!(assist, Assist::TcpCm(manager) if manager.estimator.in_tcp().is_some());
            config.route_optimization = mobility.route_optimization.then(|| RouteOptimizationConfig {
                tells_end_of_handover: scenario.assists.iter().any(is_told),
                ..RouteOptimizationConfig::default()
            });
            // Reports are for those who act on them.
            config.report_paths = !scenario.assists.is_empty();
            if config.report_paths || config.leave_bad_paths {
                for interface in &mut config.interfaces {
                    let way = place.interfaces[usize::from(interface.id.0)].out;
                    interface.path = announced_path(scenario, topology, LinkId(way.0 as usize / 2));
                }
            }
            Some(match &mobility.hierarchy {
                Some(hierarchy) => {
                    let config = hierarchical.mobile_node(node, config, hierarchy)?;
                    Ipv6AgentPlan::HierarchicalMobile(Box::new(config))
                }
                None => Ipv6AgentPlan::Mobile(Box::new(config)),
            })
        }
        _ if mobility.route_optimization && is_peer_of_mobile(scenario, &place.name) => {
            let own = topology.address_of(node);
            let mut config = CorrespondentNodeConfig::new(address(topology, own));
            // All of the experiment may be its peers.
            config.max_mobile_nodes = config.max_mobile_nodes.max(topology.homes.mobile_nodes().count());
            Some(Ipv6AgentPlan::Correspondent(Box::new(config)))
        }
        _ => None,
    })
}

/// The address that a mobile node has on a link that has only IPv4, as soon as that is up; `None` on other links.
#[must_use]
pub fn ipv4_care_of(
    scenario: &Scenario,
    topology: &Topology,
    node: NodeId,
    interface: InterfaceId,
) -> Option<InterfaceAddress> {
    let place = topology.place(node);
    let interface = place.interfaces.get(usize::from(interface.0))?;
    let is_ipv4_only = scenario.link(LinkId(interface.out.0 as usize / 2)).ipv4_only;
    if place.role != Role::Mobile || !is_ipv4_only {
        return None;
    }
    let address = interface.address.to_ipv4().to_ipv6_mapped();
    let prefix = Prefix::new(address, MAPPED_BITS + Subnet::PREFIX_LEN);
    Some(InterfaceAddress { address, prefix, valid_for: None })
}

fn is_peer_of_mobile(scenario: &Scenario, name: &str) -> bool {
    scenario.flows.iter().any(|flow| {
        let ends = [flow.from, flow.to].map(|end| scenario.node(end));
        ends.iter().any(|end| end.name == name) && ends.iter().any(|end| end.role == Role::Mobile)
    })
}

fn mobile_interface(
    scenario: &Scenario,
    mobility: &Mobility,
    n: usize,
    interface: &Interface,
) -> InterfaceConfig {
    let id = LinkId(interface.out.0 as usize / 2);
    let link = scenario.link(id);
    let downlink = match link.known_rate {
        careof_scenario::KnownRate::True => Some(link.down.rate),
        careof_scenario::KnownRate::Unknown => None,
        careof_scenario::KnownRate::Told(rate) => Some(rate),
    };
    let path = PathProperties { downlink, ..PathProperties::default() };
    InterfaceConfig {
        path,
        preference: preference(mobility, id),
        metered: mobility.metered.contains(&id),
        ..InterfaceConfig::new(InterfaceId(n as u16))
    }
}

pub(crate) fn security(
    mobility: &Mobility,
    random: &mut RandomStream,
) -> Result<SecurityAssociation, ConfigError> {
    let key = [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat();
    let algorithm = match mobility.algorithm {
        Algorithm::HmacSha256 => mip6::Algorithm::HmacSha256,
        // The scenario refuses the one of Mobile IPv4.
        Algorithm::HmacSha1 | Algorithm::HmacMd5 => mip6::Algorithm::HmacSha1,
    };
    SecurityAssociation::new(SPI, algorithm, key, ReplayProtection::TIMESTAMPS)
}

/// Neighbor discovery on the interfaces of `node`, as far as a node that moves needs it: at its own ends of access links, and at those
/// of the routers there.
#[must_use]
pub fn neighbors(scenario: &Scenario, topology: &Topology, node: NodeId) -> Vec<NeighborPlan> {
    let Some(mobility) = is_ipv6(scenario) else { return Vec::new() };
    let place = topology.place(node);
    let interfaces = place.interfaces.iter().enumerate();
    let detects = mobility.movement_detection == MovementDetection::UnreachableRouter;
    let plan = |(n, interface): (usize, &Interface)| {
        let (interface_id, link) = (InterfaceId(n as u16), LinkId(interface.out.0 as usize / 2));
        let is_home = mobility.home == Some(link);
        if scenario.link(link).ipv4_only {
            return None;
        }
        if place.role == Role::Mobile {
            let host = Some(mobile_host(mobility, topology.plan.station(interface.address)));
            return Some(NeighborPlan {
                interface: interface_id,
                link,
                host,
                router: None,
                answers: Vec::new(),
                resolves: detects,
            });
        }
        if topology.homes.index(interface.peer).is_none() || interface.out != down_of(link) {
            return None;
        }
        let host = (is_home || detects).then(|| {
            let config = HostConfig {
                is_router: true,
                autoconfigure: false,
                ..HostConfig::new(hardware(interface.address))
            };
            // Its addresses are the plan's.
            let detection = DetectionConfig { transmits: 0, ..config.detection };
            if is_home { config } else { HostConfig { detection, ..config } }
        });
        let own = address(topology, interface.address);
        let answers = if detects { vec![own] } else { Vec::new() };
        let mut router = access_router(topology, mobility, interface.address, is_home);
        if !is_home {
            router.maps = advertised(scenario, mobility, topology, node);
        }
        let router = Some(router);
        Some(NeighborPlan { interface: interface_id, link, host, router, answers, resolves: false })
    };
    let mut plans: Vec<NeighborPlan> = interfaces.filter_map(plan).collect();
    let fleet = mobility.fleet.as_ref();
    plans.extend(fleet.zip(place.cell).map(|(fleet, cell)| NeighborPlan {
        interface: InterfaceId(cell.interface.0),
        link: fleet.radio,
        host: None,
        router: Some(access_router(topology, mobility, cell.address, false)),
        answers: Vec::new(),
        resolves: false,
    }));
    plans
}

/// `station` is the locator that the link-layer address of the node is formed of.
fn mobile_host(mobility: &Mobility, station: Locator) -> HostConfig {
    let mut config = HostConfig::mobile(hardware(station));
    match mobility.duplicate_address_detection {
        DuplicateAddressDetection::Optimistic => config.detection.optimistic = true,
        DuplicateAddressDetection::Full => {}
        DuplicateAddressDetection::None => config.detection.transmits = 0,
    }
    // What the link layer tells needs no second opinion.
    let by_advertisements = matches!(
        mobility.movement_detection,
        MovementDetection::MissedAdvertisements | MovementDetection::Eager
    );
    config.missing_advertisements = by_advertisements.then(|| mobility.discovery.missed.into());
    config.delay_first_probe = mobility.discovery.unreachability.delay_first_probe;
    config
}

fn access_router(
    topology: &Topology,
    mobility: &Mobility,
    locator: Locator,
    is_home: bool,
) -> AdvertisingConfig {
    let own = address(topology, locator);
    let discovery = &mobility.discovery;
    let mut config =
        AdvertisingConfig::new(link_local(locator), hardware(locator)).for_mobile_nodes(discovery.interval);
    config.min_interval = config.min_interval.max(discovery.least_interval);
    config.max_response_delay = discovery.response_delay;
    config.prefixes = vec![PrefixInformation {
        prefix_length: Ipv6Plan::PREFIX_LEN,
        on_link: true,
        autonomous: true,
        router_address: is_home,
        valid_lifetime: FOREVER,
        preferred_lifetime: FOREVER,
        prefix: if is_home { own } else { Prefix::new(own, Ipv6Plan::PREFIX_LEN).address() },
    }];
    if mobility.movement_detection == MovementDetection::UnreachableRouter {
        let Unreachability { router_lifetime, reachable_time, retrans_timer, .. } = discovery.unreachability;
        // The scenario holds it to 9000 s.
        config.lifetime_secs = u16::try_from(router_lifetime.as_secs()).unwrap_or(u16::MAX);
        config.reachable_time = Milliseconds::from_duration(reachable_time);
        config.retrans_timer = Milliseconds::from_duration(retrans_timer);
    }
    config.is_home_agent = is_home;
    config.home_agent_information = None::<HomeAgentInformation>;
    config
}

/// The link-layer address of the interface with this locator.
#[must_use]
pub fn hardware(locator: Locator) -> LinkLayerAddress {
    LinkLayerAddress(Ipv6Plan::link_layer_address(locator))
}

/// Its link-local address.
#[must_use]
pub fn link_local(locator: Locator) -> Ipv6Addr {
    let identifier = u128::from(modified_eui_64(hardware(locator)));
    Ipv6Addr::from_bits(Prefix::LINK_LOCAL.address().to_bits() | identifier)
}

pub(crate) fn address(topology: &Topology, locator: Locator) -> Ipv6Addr {
    match topology.address(locator) {
        IpAddr::V6(address) => address,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::lay_out;

    const SCENARIO: &str = "duration = \"9 s\"\n[links]\nwifi = \"wavelan\"\nlte = \"lte\"\n[mobility]\n\
        protocol = \"mobile-ipv6\"\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n";

    fn scenario(more: &[&str]) -> (Scenario, Topology) {
        let overrides: Vec<String> = more.iter().map(|&text| text.to_owned()).collect();
        let scenario = Scenario::parse("x.toml", SCENARIO, &overrides).unwrap_or_else(|e| panic!("{e}"));
        let topology = lay_out(&scenario);
        (scenario, topology)
    }

    #[test]
    fn the_address_that_a_mobile_node_will_form_is_that_of_the_plan() {
        let (scenario, topology) = scenario(&[]);
        let mobile = topology.find("mobile").unwrap();
        for plan in neighbors(&scenario, &topology, mobile) {
            let interface = &topology.place(mobile).interfaces[usize::from(plan.interface.0)];
            let host = plan.host.unwrap();
            let own = address(&topology, interface.address);
            let prefix = Prefix::new(own, Ipv6Plan::PREFIX_LEN);
            assert_eq!(host.interface_identifiers.address(prefix, host.link_layer_address, 0), Some(own));
            let router = neighbors(&scenario, &topology, interface.peer);
            let advertised = router.iter().find(|router| router.link == plan.link).unwrap();
            assert_eq!(advertised.router.as_ref().unwrap().prefixes[0].prefix, prefix.address());
        }
    }

    #[test]
    fn on_a_link_of_ipv4_there_is_no_router_of_ipv6_and_an_address_that_the_home_agent_takes() {
        let (scenario, topology) = scenario(&["links.lte={ preset = \"lte\", ip_version = 4 }"]);
        let mobile = topology.find("mobile").unwrap();
        let lte = scenario.links.iter().position(|link| link.name == "lte").map(LinkId).unwrap();
        let nodes = (0..topology.places.len()).map(|index| NodeId(index as u16));
        let all: Vec<_> = nodes.flat_map(|node| neighbors(&scenario, &topology, node)).collect();
        assert!(!all.is_empty() && all.iter().all(|plan| plan.link != lte));
        let interfaces = topology.place(mobile).interfaces.len() as u16;
        let addresses: Vec<_> =
            (0..interfaces).map(|n| ipv4_care_of(&scenario, &topology, mobile, InterfaceId(n))).collect();
        let [None, Some(address)] = addresses[..] else { panic!("{addresses:?}") };
        assert!(address.prefix.contains(address.address));
        assert!(address.address.to_ipv4_mapped().is_some());
        let Some(Ipv6AgentPlan::Mobile(config)) = ipv6_agent(&scenario, &topology, 0, mobile).unwrap() else {
            panic!()
        };
        let agent = topology.homes.first().unwrap();
        assert_eq!(config.home_agent_ipv4, Some(agent.agent_address.to_ipv4()));
        let Some(Ipv6AgentPlan::Home(config)) = ipv6_agent(&scenario, &topology, 0, agent.agent).unwrap()
        else {
            panic!()
        };
        assert_eq!(config.ipv4_address, Some(agent.agent_address.to_ipv4()));
    }

    const WITH_MAPS: [&str; 3] = [
        "links.lte={ preset = \"lte\", between = [\"router\", \"mobile\"] }",
        "links.up={ preset = \"ethernet-1g\", between = [\"anchor\", \"router\"] }",
        "links.core={ preset = \"ethernet-1g\", between = [\"home-agent\", \"anchor\"] }",
    ];

    #[test]
    fn a_router_advertises_the_mobility_anchor_point_it_is_behind_and_both_know_the_same_addresses() {
        let map = "nodes={ anchor = { role = \"map\", preference = 3 } }";
        let (scenario, topology) = scenario(&[&WITH_MAPS[..], &[map]].concat());
        let find = |name: &str| topology.find(name).unwrap();
        let (anchor, mobile, router) = (find("anchor"), find("mobile"), find("router"));
        let advertised = |node| {
            let plans = neighbors(&scenario, &topology, node);
            plans.into_iter().flat_map(|plan| plan.router.unwrap().maps).collect::<Vec<_>>()
        };
        let [option] = advertised(router)[..] else { panic!() };
        assert_eq!((option.distance, option.preference, option.allocates_address), (2, 3, false));
        // What comes to the home agent's own access link does not pass it.
        assert_eq!(advertised(find("home-agent")), []);
        let Some(Ipv6AgentPlan::AnchorPoint(map)) = ipv6_agent(&scenario, &topology, 0, anchor).unwrap()
        else {
            panic!()
        };
        let Some(Ipv6AgentPlan::HierarchicalMobile(node)) =
            ipv6_agent(&scenario, &topology, 0, mobile).unwrap()
        else {
            panic!()
        };
        let [association] = &node.maps[..] else { panic!() };
        let [served] = &map.mobile_nodes[..] else { panic!() };
        assert_eq!((association.address, map.address), (option.address, option.address));
        assert_eq!(association.regional_address, Some(served.home_address));
        assert_eq!(association.security, served.security[0]);
        assert!(map.prefixes[0].prefix.contains(served.home_address));
        let regional = topology.regional_address(anchor, mobile).unwrap();
        assert_eq!(topology.plan.locate(served.home_address.into()), regional);
        assert_eq!(topology.mobile_at_regional(regional), Some(mobile));
        // The link at the router is its domain, and that at the home agent another one.
        assert_eq!((map.domain.len(), map.neighbors.len()), (1, 1));
        let care_of = topology.place(mobile).interfaces.iter().find(|one| one.peer == router).unwrap();
        assert!(map.domain[0].contains(address(&topology, care_of.address)));
    }

    #[test]
    fn every_configuration_is_one_that_its_agent_takes() {
        use careof_mobility::v6::{
            CorrespondentNode, HierarchicalMobileNode, HomeAgent, MobileNode, MobilityAnchorPoint,
        };
        for more in [
            &[][..],
            &["mobility.home=wifi"],
            &["mobility.route_optimization=true", "mobility.lifetime=infinity"],
            &["links.lte={ preset = \"lte\", ip_version = 4 }"],
            &["mobility.movement_detection=unreachable-router", "mobility.discovery.router_lifetime=9 s"],
            &[WITH_MAPS[0], WITH_MAPS[1], WITH_MAPS[2], "nodes={ anchor = \"map\" }", "assist=default"],
        ] {
            let (scenario, topology) = scenario(more);
            let mut agents = 0;
            for index in 0..topology.places.len() {
                let node = NodeId(index as u16);
                for neighbor in neighbors(&scenario, &topology, node) {
                    assert_eq!(neighbor.router.map_or(Ok(()), |router| router.check()), Ok(()));
                }
                let now = careof_base::Instant::ZERO;
                let random = || careof_base::RandomStream::new(1, 0, "x");
                match ipv6_agent(&scenario, &topology, 0, node).unwrap() {
                    Some(Ipv6AgentPlan::Home(config)) => {
                        drop(HomeAgent::new(now, *config, random()).unwrap())
                    }
                    Some(Ipv6AgentPlan::Mobile(config)) => {
                        drop(MobileNode::new(now, *config, random()).unwrap())
                    }
                    Some(Ipv6AgentPlan::Correspondent(config)) => {
                        drop(CorrespondentNode::new(*config, random()).unwrap());
                    }
                    Some(Ipv6AgentPlan::AccessRouter(_)) => unreachable!("nobody asks for fast handovers"),
                    Some(Ipv6AgentPlan::HierarchicalMobile(config)) => {
                        drop(HierarchicalMobileNode::new(now, *config, random()).unwrap());
                    }
                    Some(Ipv6AgentPlan::AnchorPoint(config)) => {
                        drop(MobilityAnchorPoint::new(now, *config, random()).unwrap());
                    }
                    None => continue,
                }
                agents += 1;
            }
            let has_third = |key: &&str| key.contains("route_optimization") || key.starts_with("nodes=");
            assert_eq!(agents, if more.iter().any(has_third) { 3 } else { 2 });
        }
    }
}
