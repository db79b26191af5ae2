//! The assists of a node.

use core::net::IpAddr;

use careof_assist::{Config, Exception, FlowKey, Place};
use careof_mobility::v4::PathProperties;
use careof_scenario::{Assist, AssistException, AssistPlace, Destination, IpVersion, LinkId, Role, Scenario};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::tunnel::Encapsulation;

use crate::agents::algorithm;
use crate::flow::{FlowId, port};
use crate::path::path_to_home_agent;
use crate::topology::{Interface, NodeId, Topology};
use crate::workload::Side;

/// What whoever announces a handover knows of the path by an access link.
#[must_use]
pub fn announced_path(scenario: &Scenario, topology: &Topology, link: LinkId) -> PathProperties {
    let mobility = scenario.mobility.as_ref();
    mobility
        .map(|mobility| path_to_home_agent(scenario, topology, link, algorithm(mobility)))
        .unwrap_or_default()
}

/// The assists that run on `node`; `None` where none does.
#[must_use]
pub fn assists(scenario: &Scenario, topology: &Topology, node: NodeId) -> Option<Config> {
    let mobility = scenario.mobility.as_ref()?;
    let (here, place) = match topology.place(node).role {
        // What passes it while a route is not optimised yet is one direction, and only in part.
        Role::HomeAgent if mobility.route_optimization => return None,
        // What moves within its domain is seen there alone, and both directions pass it, whatever the route.
        Role::HomeAgent | Role::AnchorPoint => (AssistPlace::HomeAgent, Place::HomeAgent),
        Role::ForeignAgent => (AssistPlace::ForeignAgent, Place::ForeignAgent),
        Role::Mobile => (AssistPlace::Mobile, Place::MobileNode),
        // Over IPv6 the base stations of `ebsn` are routers, at which no other assist runs.
        Role::Host if is_access_router(topology, node) && scenario.assists.contains(&Assist::Ebsn) => {
            return Some(Config::none(Place::ForeignAgent));
        }
        Role::Correspondent | Role::Relay | Role::Host => return None,
    };
    let mut config = Config::none(place);
    let mut is_used = false;
    for assist in scenario.assists.iter().filter(|assist| assist.places().contains(&here)) {
        is_used = true;
        take(scenario, assist, &mut config);
    }
    config.except = exceptions(scenario, topology);
    is_used.then_some(config)
}

/// Whether a node that is neither home agent nor foreign agent is the router at the other end of a mobile node's link.
#[must_use]
pub fn is_access_router(topology: &Topology, node: NodeId) -> bool {
    let place = topology.place(node);
    let leads_to_mobile = |interface: &Interface| topology.homes.index(interface.peer).is_some();
    place.role == Role::Host && (place.cell.is_some() || place.interfaces.iter().any(leads_to_mobile))
}

/// How many bytes a tunnel over this access link adds to a datagram.
#[must_use]
pub fn tunnel_overhead_on(scenario: &Scenario, link: LinkId) -> u16 {
    if scenario.link(link).ipv4_only { Ipv4Header::LEN } else { tunnel_overhead(scenario) }
}

/// How many bytes a tunnel of the scenario adds to a datagram, at most.
#[must_use]
pub fn tunnel_overhead(scenario: &Scenario) -> u16 {
    if scenario.ip_version == IpVersion::V6 {
        let has_anchor_points =
            scenario.mobility.as_ref().is_some_and(|mobility| mobility.hierarchy.is_some());
        return if has_anchor_points { 2 * Ipv6Header::LEN } else { Ipv6Header::LEN };
    }
    let encapsulation = scenario.mobility.as_ref().map(|mobility| mobility.encapsulation);
    encapsulation.map_or(0, |encapsulation| match encapsulation {
        careof_scenario::Encapsulation::IpInIp => Encapsulation::IpInIp.max_overhead(),
        careof_scenario::Encapsulation::Minimal => Encapsulation::Minimal.max_overhead(),
        careof_scenario::Encapsulation::Gre => {
            Encapsulation::Gre { key: None, sequence: None }.max_overhead()
        }
    })
}

/// The flows that no assist touches.
#[must_use]
pub fn exceptions(scenario: &Scenario, topology: &Topology) -> Vec<Exception> {
    let exception = |except: &AssistException| Exception {
        prefix: match except.peer {
            Destination::Any => None,
            Destination::Node(node) => {
                let node = topology.find(&scenario.node(node).name).unwrap_or(NodeId(0));
                let address = topology.address(topology.address_of(node));
                Some((address, if address.is_ipv4() { 32 } else { 128 }))
            }
            Destination::Prefix { address, length } => Some((address.into(), length)),
        },
        port: except.port,
    };
    scenario.assist_except.iter().map(exception).collect()
}

/// How assists know a flow whose `mobile` side moves; addresses of the sides, opener first.
#[must_use]
pub fn flow_key(id: FlowId, mobile: Side, addresses: [IpAddr; 2]) -> FlowKey {
    let peer = mobile.peer();
    FlowKey {
        mobile: addresses[mobile.index()],
        peer: addresses[peer.index()],
        mobile_port: port(id, mobile),
        peer_port: port(id, peer),
    }
}

/// Enters one assist with its parameters.
fn take(scenario: &Scenario, assist: &Assist, config: &mut Config) {
    match assist {
        Assist::Replay(replay) => replay.parameters.enter(config),
        Assist::HoldLast(hold) => config.hold_last = Some(*hold),
        Assist::LcdKick(kick) => kick.enter(config),
        Assist::Freeze(freeze) => {
            // From the announcement on is as long before the end as anything is announced.
            let longest = || scenario.handovers.iter().map(|handover| handover.notice).max();
            config.freeze = Some(careof_assist::Freeze {
                warning: freeze.warning.or_else(longest).unwrap_or_default(),
                acks: freeze.acks,
                patience: freeze.patience,
            });
        }
        Assist::FastRetransmit(repeat) => config.fast_retransmit = Some(*repeat),
        Assist::AckHold(hold) => config.ack_hold = Some(*hold),
        Assist::WindowClamp(clamp) => config.window_clamp = Some(clamp.parameters),
        Assist::Snoop(snoop) => config.snoop = Some(*snoop),
        Assist::MTcp => config.m_tcp = true,
        Assist::PathQueue(path) => config.path_queue = Some(*path),
        Assist::BufferForward(buffer) => config.buffer_forward = Some(*buffer),
        Assist::MssClamp(clamp) => config.mss_clamp = Some(clamp.parameters),
        Assist::BlackHole(hole) => config.black_hole = Some(hole.parameters),
        Assist::Bicast => config.bicast = true,
        // These are for senders; a base station with the first looks at what passes, and changes nothing.
        Assist::Ebsn
        | Assist::RtoReset(_)
        | Assist::TcpCm(_)
        | Assist::TcpHo
        | Assist::DemoVegas
        | Assist::MobileTcp
        | Assist::RtoFastDecrease(_) => {}
        // A relay is no part of an assistant: it ends connections, which that only watches.
        Assist::Split(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::layout::lay_out;

    const TWO_LINKS: &str = r#"
        duration = "60 s"
        [links]
        wavelan = "wavelan"
        gsm = "gsm-csd"
        [mobility]
        protocol = "mobile-ipv4"
        [[handover]]
        at = "12 s"
        from = "wavelan"
        to = "gsm"
        notice = "2 s"
        [[flow]]
        from = "correspondent"
        to = "mobile"
    "#;

    fn configs(assist: &str) -> [Option<Config>; 3] {
        let scenario = Scenario::parse("x.toml", TWO_LINKS, &[assist.to_owned()]).unwrap();
        let topology = lay_out(&scenario);
        ["correspondent", "home-agent", "mobile"]
            .map(|name| assists(&scenario, &topology, topology.find(name).unwrap()))
    }

    #[test]
    fn an_assist_runs_where_the_scenario_has_it_and_with_its_defaults_elsewhere_nothing_does() {
        assert_eq!(configs("assist=none"), [None, None, None]);
        let [correspondent, home_agent, mobile] = configs("assist=default");
        assert_eq!(correspondent, None);
        let expected = Config::default_set(Place::MobileNode);
        assert_eq!(mobile, Some(expected));
        assert_eq!(home_agent, Some(Config::default_set(Place::HomeAgent)));
    }

    #[test]
    fn a_window_that_is_to_close_from_the_announcement_on_closes_as_early_as_any_is_made() {
        let [_, home_agent, mobile] = configs("assist=freeze");
        assert_eq!(home_agent, None);
        assert_eq!(mobile.unwrap().freeze.unwrap().warning, Duration::from_secs(2));
    }

    #[test]
    fn exceptions_are_addresses() {
        let [_, home_agent, _] =
            configs(r#"assist={ use = "replay", except = [{ prefix = "correspondent", port = 22 }] }"#);
        let [Exception { prefix: Some((_, 32)), port: Some(22) }] = home_agent.unwrap().except[..] else {
            panic!()
        };
    }
}
