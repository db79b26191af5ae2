//! The agents' configurations.

use core::net::Ipv4Addr;

use careof_base::{DataRate, Duration, RandomStream};
use careof_mobility::v4::{
    AdvertiserConfig, BindingAuthority, CareOfChoice, ConfigError, CorrespondentNodeConfig, DeliveryMethod,
    EncapsulationChoice, ForeignAgentConfig, ForeignLink, HomeAgentConfig, InterfaceConfig, InterfaceId,
    MobileNodeConfig, MovementConfig, MultipathForm, NtpTime, PathProperties, PeerSecurity, PolicyEntry,
    PolicyTable, Prefix, ReplayProtection, SecurityAssociation, Selection, ServedMobileNode, WallClock,
};
use careof_scenario::{
    CareOf, Destination, Discovery, Encapsulation, Flow, KnownRate, Link, LinkId, Mobility,
    MovementDetection, Protocol, Replay, Role, Routing, Scenario,
};
use careof_wire::mip4::{Algorithm, Lifetime, Spi};

use crate::layout::stream;
use crate::locator::Subnet;
use crate::own_address::policy_of_migrating_flows;
use crate::path::path_to_home_agent;
use crate::topology::{Cell, Home, NodeId, Route, Topology};

/// Midnight of 1 January 2000, the time of day at the beginning of every run: registrations carry it.
const EPOCH_UNIX: Duration = Duration::from_secs(946_684_800);

/// The SPI of the security association between the mobile node and its home agent.
const SPI: Spi = Spi(256);

/// That of the association between the mobile node and a foreign agent.
const VISITOR_SPI: Spi = Spi(257);

/// That of the association between the home agent and a correspondent.
const UPDATE_SPI: Spi = Spi(258);
/// How long a better path must have worked.
pub(crate) const PATH_HOLD: Duration = Duration::from_secs(5);

/// What runs on a node beyond forwarding.
#[derive(Clone, Debug)]
pub enum AgentPlan {
    /// A home agent.
    Home(Box<HomeAgentConfig>),
    /// A foreign agent.
    Foreign(Box<ForeignAgentConfig>),
    /// The mobile node.
    Mobile(Box<MobileNodeConfig>),
    /// A host that tunnels to mobile nodes itself.
    Correspondent(Box<CorrespondentNodeConfig>),
}

/// The clock of every agent.
#[must_use]
pub fn wall_clock() -> WallClock {
    WallClock::new(NtpTime::from_unix(EPOCH_UNIX))
}

/// The agent of `node` in repetition `run` of `scenario`; `None` where nothing of Mobile IP runs.
///
/// The interface with index `n` of the node is `InterfaceId(n)` to its agent.
///
/// # Errors
/// What a security association has against its parameters.
pub fn agent(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
) -> Result<Option<AgentPlan>, ConfigError> {
    // Reports are for those who act on them.
    agent_with_reports(scenario, topology, run, node, !scenario.assists.is_empty())
}

/// The same, with mobile nodes that tell their home agent what they know of their paths, if `report_paths`: then
/// they know both rates and the round trip of every access link from the start, or what the scenario has them believe.
fn agent_with_reports(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
    report_paths: bool,
) -> Result<Option<AgentPlan>, ConfigError> {
    let mobility = scenario.mobility.as_ref().filter(|mobility| mobility.protocol == Protocol::MobileIpv4);
    let Some(mobility) = mobility else { return Ok(None) };
    let place = topology.place(node);
    let agent_address = |home: &Home| home.agent_address.to_ipv4();
    let network = |home: &Home| Prefix::new(agent_address(home), topology.home_prefix_len());
    Ok(match place.role {
        Role::HomeAgent => {
            let Some(home) = topology.homes.at(node) else { return Ok(None) };
            let home_interface =
                place.interfaces.iter().position(|interface| interface.address == home.agent_address);
            let mut config = HomeAgentConfig::new(
                agent_address(home),
                network(home),
                InterfaceId(home_interface.map_or(u16::MAX, |index| index as u16)),
            );
            config.clock = wall_clock();
            config.advertisements = home_interface.map(|_| advertiser(mobility));
            if let Some(multipath) = &mobility.multipath {
                config.multipath = true;
                config.max_bindings_per_node = config.max_bindings_per_node.max(multipath.paths.len());
            }
            for mobile in home.mobile_nodes() {
                let security = security(scenario, run, mobility, &topology.place(mobile).name)?;
                config
                    .mobile_nodes
                    .push(ServedMobileNode::new(topology.address_of(mobile).to_ipv4(), security));
            }
            for node in correspondents(scenario, topology, home) {
                let (address, name) = (address_towards(topology, node, home), &topology.place(node).name);
                let security = association(scenario, run, mobility, UPDATE_SPI, name)?;
                config.correspondents.push(PeerSecurity { address, security });
            }
            Some(AgentPlan::Home(Box::new(config)))
        }
        Role::ForeignAgent => {
            let Some(mut config) = foreign_agent(topology, node, mobility) else { return Ok(None) };
            config.clock = wall_clock();
            config.smooth_handoff = mobility.smooth_handoff;
            // The foreign agent may be connected to the home network itself.
            config.admitted = Some(topology.homes.iter().map(network).collect());
            if mobility.smooth_handoff
                && let Some(home) = topology.homes.first()
            {
                let security = association(scenario, run, mobility, VISITOR_SPI, &place.name)?;
                let address = topology.address_of(home.first).to_ipv4();
                config.mobile_nodes.push(PeerSecurity { address, security });
            }
            Some(AgentPlan::Foreign(Box::new(config)))
        }
        Role::Mobile => {
            let Some(home) = topology.homes.of(node) else { return Ok(None) };
            let mut config = MobileNodeConfig::new(
                topology.address_of(node).to_ipv4(),
                network(home),
                agent_address(home),
                security(scenario, run, mobility, &place.name)?,
                mobile_interfaces(scenario, topology, node, mobility, report_paths),
            );
            config.clock = wall_clock();
            config.lifetime = lifetime(mobility);
            config.retransmission.early = mobility.early_requests;
            config.simultaneous = mobility.simultaneous_bindings;
            config.keep_old = mobility.keep_old;
            config.multipath = mobility.multipath.as_ref().map(|_| MultipathForm::default());
            config.encapsulation = match mobility.encapsulation {
                Encapsulation::IpInIp => EncapsulationChoice::IpInIp,
                Encapsulation::Minimal => EncapsulationChoice::Minimal,
                Encapsulation::Gre => EncapsulationChoice::Gre,
            };
            config.movement = movement(mobility);
            config.solicitation.enabled = mobility.discovery.solicitation;
            if mobility.movement_detection != MovementDetection::LinkTrigger {
                // Where advertisements tell, the node goes where it hears an agent.
                config.selection = Selection::Preferred { hold: Duration::ZERO };
            }
            config.path_monitor = mobility.path_monitor;
            if mobility.path_monitor && config.selection == Selection::Manual {
                // Without `order` all are equal: none is left but for one that answers when it does not.
                config.selection = Selection::Preferred { hold: PATH_HOLD };
            }
            config.leave_bad_paths = mobility.leave_bad_paths;
            config.policy = policy(scenario, topology, mobility);
            config.report_paths = report_paths;
            config.smooth_handoff = mobility.smooth_handoff;
            if mobility.smooth_handoff {
                for interface in &place.interfaces {
                    let agent = topology.place(interface.peer);
                    if agent.role == Role::ForeignAgent {
                        let security = association(scenario, run, mobility, VISITOR_SPI, &agent.name)?;
                        config
                            .foreign_agents
                            .push(PeerSecurity { address: interface.peer_address.to_ipv4(), security });
                    }
                }
            }
            Some(AgentPlan::Mobile(Box::new(config)))
        }
        _ => match home_of_correspondent(scenario, topology, node) {
            Some(home) => {
                let authority = BindingAuthority {
                    home_agent: agent_address(home),
                    home_network: network(home),
                    security: association(scenario, run, mobility, UPDATE_SPI, &place.name)?,
                };
                let own = address_towards(topology, node, home);
                let mut config = CorrespondentNodeConfig::new(own, authority);
                config.clock = wall_clock();
                Some(AgentPlan::Correspondent(Box::new(config)))
            }
            None => None,
        },
    })
}

/// The nodes that a home agent tells of its mobile nodes.
fn correspondents(scenario: &Scenario, topology: &Topology, home: &Home) -> Vec<NodeId> {
    let nodes = (0..topology.places.len()).map(|index| NodeId(index as u16));
    nodes.filter(|node| home_of_correspondent(scenario, topology, *node) == Some(home)).collect()
}

/// The home agent that tells a node of its mobile nodes, so that the node runs careof although it does not move: with route optimisation
/// the other ends of the mobile nodes' flows. It is one: the home agent of the first such flow.
fn home_of_correspondent<'a>(scenario: &Scenario, topology: &'a Topology, node: NodeId) -> Option<&'a Home> {
    let place = topology.place(node);
    // A home agent tunnels anyway, and a foreign agent has visitors of its own.
    let is_host = matches!(place.role, Role::Correspondent | Role::Host);
    let optimized = scenario.mobility.as_ref().is_some_and(|mobility| mobility.route_optimization);
    let of_a_flow = |flow: &Flow| {
        let ends = [flow.from, flow.to].map(|end| scenario.node(end));
        let mobile = ends.iter().find(|end| end.role == Role::Mobile)?;
        ends.iter().find(|end| end.name == place.name)?;
        topology.homes.of(topology.find(&mobile.name)?)
    };
    scenario.flows.iter().filter(|_| is_host && optimized).find_map(of_a_flow)
}

/// The address from which a node sends to the mobile nodes of a home agent.
fn address_towards(topology: &Topology, node: NodeId, home: &Home) -> Ipv4Addr {
    let place = topology.place(node);
    match place.route(home.agent_address) {
        Route::Via(interface) => place.interface(interface).address,
        _ => topology.address_of(node),
    }
    .to_ipv4()
}

fn foreign_agent(topology: &Topology, node: NodeId, mobility: &Mobility) -> Option<ForeignAgentConfig> {
    let place = topology.place(node);
    if let Some(cell) = place.cell {
        let address = place.interfaces.first().map_or(cell.address, |interface| interface.address).to_ipv4();
        let Cell { interface, address: on_cell } = cell;
        let link = ForeignLink {
            interface: InterfaceId(interface.0),
            address: on_cell.to_ipv4(),
            advertisements: advertiser(mobility),
        };
        let mut config = ForeignAgentConfig::new(address, address, link);
        // All may come to one station.
        let count = topology.homes.mobile_nodes().count();
        config.max_visitors = config.max_visitors.max(count);
        config.max_pending = config.max_pending.max(count);
        return Some(config);
    }
    let moves = |node: NodeId| topology.homes.index(node).is_some();
    let mut links =
        place.interfaces.iter().enumerate().filter(|(_, i)| moves(i.peer)).map(|(n, i)| ForeignLink {
            interface: InterfaceId(n as u16),
            address: i.address.to_ipv4(),
            advertisements: advertiser(mobility),
        });
    // The care-of address is the one towards the home network, as far as the scenario has such a link.
    let address = place
        .interfaces
        .iter()
        .find(|i| !moves(i.peer))
        .or(place.interfaces.first())
        .map_or(Ipv4Addr::UNSPECIFIED, |i| i.address.to_ipv4());
    let mut config = ForeignAgentConfig::new(address, address, links.next()?);
    config.links.extend(links);
    Some(config)
}

fn mobile_interfaces(
    scenario: &Scenario,
    topology: &Topology,
    node: NodeId,
    mobility: &Mobility,
    report_paths: bool,
) -> Vec<InterfaceConfig> {
    let relays = mobility.multipath.as_ref().map_or(&[][..], |multipath| &multipath.relays);
    let relay_on = |link: LinkId| relays.iter().find(|relay| relay.cluster == link);
    let path = |link: LinkId| {
        if let Some(relay) = relay_on(link) {
            // What it says of itself, which is all that the mobile node knows.
            let downlink = relay.claims.or(told_rate(scenario.link(relay.link), |link| link.down.rate));
            PathProperties { downlink, ..PathProperties::default() }
        } else if report_paths || mobility.leave_bad_paths {
            path_to_home_agent(scenario, topology, link, algorithm(mobility))
        } else {
            let downlink = told_rate(scenario.link(link), |link| link.down.rate);
            PathProperties { downlink, ..PathProperties::default() }
        }
    };
    let link_of = |i: &crate::topology::Interface| LinkId(i.out.0 as usize / 2);
    let interface = |(n, i): (usize, &crate::topology::Interface)| InterfaceConfig {
        relay: relay_on(link_of(i)).is_some(),
        id: InterfaceId(n as u16),
        care_of: match mobility.care_of {
            CareOf::CoLocated | CareOf::Dhcp => CareOfChoice::CoLocated,
            CareOf::ForeignAgent => CareOfChoice::ForeignAgent,
        },
        preference: preference(mobility, link_of(i)),
        metered: mobility.metered.contains(&link_of(i)),
        path: path(link_of(i)),
        up: false,
        address: None,
    };
    topology.place(node).interfaces.iter().enumerate().map(interface).collect()
}

/// What is told of the rate of a direction of an access link.
pub(crate) fn told_rate(link: &Link, direction: impl Fn(&Link) -> DataRate) -> Option<DataRate> {
    match link.known_rate {
        KnownRate::True => Some(direction(link)),
        KnownRate::Unknown => None,
        KnownRate::Told(rate) => Some(rate),
    }
}

/// How a link stands in the mobile node's order: the first is the best; where there is no order all are equal.
pub(crate) fn preference(mobility: &Mobility, link: LinkId) -> u8 {
    let place = mobility.order.iter().position(|known| *known == link);
    place.map_or(0, |place| u8::try_from(mobility.order.len() - place).unwrap_or(u8::MAX))
}

/// What the mobile node `name` and its home agent have agreed on.
fn security(
    scenario: &Scenario,
    run: u64,
    mobility: &Mobility,
    name: &str,
) -> Result<SecurityAssociation, ConfigError> {
    let mut random = match mobility.nodes.as_slice() {
        [_] => stream(scenario, run, "mobility.key"),
        _ => stream(scenario, run, &format!("mobility.key.{name}")),
    };
    let replay = match mobility.replay {
        Replay::Timestamps => ReplayProtection::TIMESTAMPS,
        Replay::Nonces => ReplayProtection::Nonces,
    };
    SecurityAssociation::new(SPI, algorithm(mobility), key(&mut random), replay)
}

fn key(random: &mut RandomStream) -> Vec<u8> {
    [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat()
}

/// What the node `name` has agreed on with the home agent ([`UPDATE_SPI`]) or with the mobile node ([`VISITOR_SPI`]).
fn association(
    scenario: &Scenario,
    run: u64,
    mobility: &Mobility,
    spi: Spi,
    name: &str,
) -> Result<SecurityAssociation, ConfigError> {
    let mut random = stream(scenario, run, &format!("mobility.key.{name}"));
    SecurityAssociation::new(spi, algorithm(mobility), key(&mut random), ReplayProtection::TIMESTAMPS)
}

pub(crate) const fn algorithm(mobility: &Mobility) -> Algorithm {
    match mobility.algorithm {
        // The scenario refuses the one of Mobile IPv6.
        careof_scenario::Algorithm::HmacMd5 | careof_scenario::Algorithm::HmacSha1 => Algorithm::HmacMd5,
        careof_scenario::Algorithm::HmacSha256 => Algorithm::HmacSha256,
    }
}

fn policy(scenario: &Scenario, topology: &Topology, mobility: &Mobility) -> PolicyTable {
    let entries = mobility.policy.iter().map(|rule| PolicyEntry {
        destination: match rule.to {
            Destination::Any => Prefix::ALL,
            Destination::Node(node) => Prefix::host(
                topology.address_of(topology.find(&scenario.node(node).name).unwrap_or(NodeId(0))).to_ipv4(),
            ),
            Destination::Prefix { address, length } => Prefix::new(address, length),
        },
        port: rule.port,
        method: method(rule.method),
    });
    let entries = policy_of_migrating_flows(scenario, topology).chain(entries);
    PolicyTable::new(method(mobility.routing), entries)
}

fn method(routing: Routing) -> DeliveryMethod {
    match routing {
        Routing::Triangle => DeliveryMethod::Triangle,
        Routing::ReverseTunnel => DeliveryMethod::ReverseTunnel,
        Routing::RegularIp => DeliveryMethod::RegularIp,
    }
}

fn advertiser(mobility: &Mobility) -> AdvertiserConfig {
    let discovery = &mobility.discovery;
    AdvertiserConfig {
        min_interval: discovery.least_interval,
        max_response_delay: discovery.response_delay,
        rate_limit: discovery.least_interval.min(Discovery::RECOMMENDED_INTERVAL),
        on_link_up: discovery.on_link_up,
        prefix_length: discovery.prefix.then_some(Subnet::PREFIX_LEN),
        ..AdvertiserConfig::every(discovery.interval)
    }
}

fn lifetime(mobility: &Mobility) -> Lifetime {
    match mobility.lifetime {
        Some(lifetime) => Lifetime::from_secs(u16::try_from(lifetime.as_secs()).unwrap_or(u16::MAX)),
        None => Lifetime::INFINITE,
    }
}

fn movement(mobility: &Mobility) -> MovementConfig {
    let nothing = MovementConfig {
        lifetime: false,
        missed_advertisements: None,
        margin_permille: mobility.discovery.margin_permille,
        eager: false,
        prefix: false,
        link_layer: false,
    };
    let missed_advertisements = Some(mobility.discovery.missed);
    match mobility.movement_detection {
        MovementDetection::LinkTrigger => MovementConfig { link_layer: true, ..nothing },
        MovementDetection::MissedAdvertisements => MovementConfig { missed_advertisements, ..nothing },
        MovementDetection::Eager => MovementConfig { missed_advertisements, eager: true, ..nothing },
        // Over IPv6 only, which is refused before.
        MovementDetection::UnreachableRouter => nothing,
        MovementDetection::Lifetime => MovementConfig { lifetime: true, ..nothing },
        // A prefix tells agents of one link apart; that a link is gone shows when its agent's lifetime ends.
        MovementDetection::Prefix => MovementConfig { prefix: true, lifetime: true, ..nothing },
    }
}

#[cfg(test)]
mod tests {
    use careof_base::DataRate;

    use super::*;
    use crate::layout::lay_out;

    const SCENARIO: &str = r#"
duration = "9 s"
[links]
lan = { rate = "1 Mbit/s", delay = "10 ms", between = ["correspondent", "home-agent"] }
backbone = { rate = "1 Mbit/s", delay = "5 ms", between = ["home-agent", "router"] }
wlan = { rate = "2 Mbit/s", delay = "1 ms", between = ["home-agent", "mobile"] }
gsm = { rate = "9.6 kbit/s", rate_up = "4.8 kbit/s", delay = "300 ms", delay_up = "200 ms", between = ["router", "mobile"] }
[mobility]
protocol = "mobile-ipv4"
[[flow]]
from = "correspondent"
to = "mobile"
kind = "bulk"
"#;

    fn mobile(report_paths: bool) -> MobileNodeConfig {
        let scenario = Scenario::parse("x.toml", SCENARIO, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let topology = lay_out(&scenario);
        let node = topology.find("mobile").unwrap();
        match agent_with_reports(&scenario, &topology, 0, node, report_paths) {
            Ok(Some(AgentPlan::Mobile(config))) => *config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mobile_node_that_reports_knows_rates_and_round_trips_of_its_links() {
        let config = mobile(true);
        assert!(config.report_paths);
        let [wlan, gsm] = [&config.interfaces[0].path, &config.interfaces[1].path];
        assert_eq!(wlan.downlink, Some(DataRate::from_megabits_per_second(2)));
        assert_eq!(wlan.uplink, wlan.downlink);
        // 98 bytes there and 70 back: headers (28), request (24) or reply (20), report (24), HMAC-MD5 extension (22).
        assert_eq!(
            wlan.round_trip,
            Some(Duration::from_millis(2) + Duration::from_micros((98 + 70) * 8 / 2))
        );
        assert_eq!(gsm.downlink, Some(DataRate::from_bits_per_second(9_600)));
        assert_eq!(gsm.uplink, Some(DataRate::from_bits_per_second(4_800)));
        let on_air = Duration::from_secs(98 * 8) / 4_800 + Duration::from_secs(70 * 8) / 9_600;
        let wired = Duration::from_micros((98 + 70) * 8);
        let expected = Duration::from_millis(200 + 300 + 5 + 5) + on_air + wired;
        assert!(
            gsm.round_trip.unwrap().abs_diff(expected) < Duration::from_micros(1),
            "{:?}",
            gsm.round_trip
        );
    }

    #[test]
    fn one_that_does_not_report_is_configured_as_ever() {
        let (silent, reporting) = (mobile(false), mobile(true));
        assert!(!silent.report_paths);
        for interface in &silent.interfaces {
            assert!(interface.path.downlink.is_some());
            assert_eq!((interface.path.uplink, interface.path.round_trip), (None, None));
        }
        let mut same = reporting;
        same.report_paths = false;
        same.interfaces.clone_from(&silent.interfaces);
        assert_eq!(same, silent);
    }
}
