//! Several mobile nodes and home agents: whole worlds.

use std::collections::BTreeMap;

use crate::common::finish;
use careof_metrics::{Resumption, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const TWO_HOME_AGENTS: &str = include_str!("../../../../scenarios/two-home-agents.toml");
/// The same over IPv6.
const OVER_IPV6: [&str; 2] = ["mobility.protocol=mobile-ipv6", "mobility.lifetime=300 s"];

fn run(overrides: &[&str]) -> (Summary, Columns) {
    let mut overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let text = if overrides.iter().any(|key| key.contains("ipv6")) {
        TWO_HOME_AGENTS.replace("routing = \"reverse-tunnel\"\n", "")
    } else {
        TWO_HOME_AGENTS.to_owned()
    };
    overrides.push("duration=32 s".to_owned());
    let scenario =
        Scenario::parse("test.toml", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// By home agent: the mobile nodes it came to have a binding for, by their home addresses.
fn served(events: &Columns) -> BTreeMap<String, Vec<String>> {
    let [kinds, nodes, details] = ["kind", "node", "detail"].map(|name| events.by_name(name).unwrap());
    let mut served: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in 0..events.rows() {
        let node = nodes.text(row).unwrap_or_default();
        let is_agent = ["sea-control", "depot"].contains(&node);
        if kinds.text(row) == Some("binding") && is_agent {
            let home =
                details.text(row).and_then(|text| text.split(' ').next()).unwrap_or_default().to_owned();
            let known = served.entry(node.to_owned()).or_default();
            if !known.contains(&home) {
                known.push(home);
            }
        }
    }
    served
}

#[test]
fn five_mobile_nodes_of_two_home_agents_move_each_in_its_own_time() {
    for more in [&[][..], &OVER_IPV6] {
        let (summary, events) = run(more);
        let moved: Vec<(u64, &str)> = summary
            .handovers
            .iter()
            .map(|handover| (handover.at.since_start().as_secs(), handover.node.as_deref().unwrap()))
            .collect();
        let planned = [(10, "ferry"), (10, "van"), (15, "pilot"), (18, "tug"), (20, "bus"), (25, "ferry")];
        assert_eq!(moved, planned, "{more:?}");
        for handover in &summary.handovers {
            let node = handover.node.as_deref().unwrap();
            assert!(handover.ready_at.is_some(), "{more:?}: {node}");
            // Only its own flows count; the call is of two.
            let own: Vec<&str> = handover.flows.iter().map(|flow| flow.name.as_str()).collect();
            let expected: &[&str] = match node {
                "ferry" => &["ferry-download", "call"],
                "pilot" => &["pilot-download"],
                "tug" => &["tug-upload"],
                "van" => &["van-download", "call"],
                _ => &["bus-report"],
            };
            assert_eq!(own, expected, "{more:?}: {node}");
            for flow in &handover.flows {
                assert_eq!(flow.stall, Resumption::Resumed, "{more:?}: {} of {node}", flow.name);
            }
        }
        for flow in &summary.flows {
            assert!(flow.bytes_delivered > 100_000, "{more:?}: {} {}", flow.name, flow.bytes_delivered);
        }
        let served = served(&events);
        assert_eq!(served["sea-control"].len(), 3, "{more:?}: {served:?}");
        assert_eq!(served["depot"].len(), 2, "{more:?}: {served:?}");
    }
}

/// The same worlds with networks of the author's: what is sent is the same, under other addresses.
#[test]
fn the_prefixes_of_the_file_change_addresses_and_nothing_else() {
    let of_ipv4: &[&str] = &[
        "links.ferry-west.prefix=192.168.7.0/24",
        "links.to-server.prefix=172.16.0.0/24",
        "nodes.sea-control={ role = \"home-agent\", prefix = \"198.51.100.0/24\" }",
    ];
    let of_ipv6: &[&str] = &[
        OVER_IPV6[0],
        OVER_IPV6[1],
        "links.ferry-west.prefix=fd00:0:0:7::/64",
        "links.to-server.prefix=2001:db8:1::/64",
        "nodes.sea-control={ role = \"home-agent\", prefix = \"2001:db8:2::/64\" }",
    ];
    for (planned, own, addresses) in [
        (&[][..], of_ipv4, ["198.51.100.2 ", "at 192.168.7.2"]),
        (&OVER_IPV6, of_ipv6, ["2001:db8:2::2 ", "at fd00::7:0:ff:fe00:"]),
    ] {
        let ((planned, _), (own, events)) = (run(planned), run(own));
        for (planned, own) in planned.flows.iter().zip(&own.flows) {
            assert_eq!(planned.bytes_delivered, own.bytes_delivered, "{}", own.name);
        }
        let details = events.by_name("detail").unwrap();
        for address in addresses {
            let tells = |row| details.text(row).is_some_and(|text| text.contains(address));
            assert!((0..events.rows()).any(tells), "{address}");
        }
    }
}

#[test]
fn with_assists_each_mobile_node_is_helped_on_its_own_path() {
    for more in [&["assist.use=default"][..], &["assist.use=default", OVER_IPV6[0], OVER_IPV6[1]]] {
        let (summary, _) = run(more);
        for handover in &summary.handovers {
            // In the first two handovers the other end of the call moves, too.
            let counts = |name: &str| handover.at.since_start().as_secs() > 10 || name != "call";
            for flow in handover.flows.iter().filter(|flow| counts(&flow.name)) {
                // Two tunnels and a path of two masts: a round trip is below 150 ms.
                let after = flow.stall_after.unwrap_or_default();
                assert!(after.as_millis() < 150, "{more:?}: {} of {:?}: {after:?}", flow.name, handover.node);
            }
        }
    }
}

#[test]
fn route_optimisation_serves_the_correspondents_of_either_home_agent() {
    let (around, _) = run(&OVER_IPV6);
    let (straight, events) = run(&[OVER_IPV6[0], OVER_IPV6[1], "mobility.route_optimization=true"]);
    let least = |summary: &Summary, name: &str| {
        summary.flows.iter().find(|flow| flow.name == name).unwrap().rtt_min.unwrap()
    };
    // Each saves the detour by its own home agent, twice there and back.
    for (name, detour) in [("pilot-download", 4 * 8), ("van-download", 4 * 3)] {
        let saved = least(&around, name) - least(&straight, name);
        assert!((detour - 2..=detour + 2).contains(&(saved.as_millis() as u64)), "{name}: {saved:?}");
    }
    let nodes = events.by_name("node").unwrap();
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    for node in ["server", "mirror", "office"] {
        let told = (0..events.rows()).any(|row| {
            nodes.text(row) == Some(node)
                && kinds.text(row) == Some("message-received")
                && messages.text(row) == Some("BindingUpdate")
        });
        assert!(told, "{node}");
    }
}
