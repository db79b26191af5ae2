//! Addresses that the file gives single nodes.

use crate::common::finish;
use careof_metrics::Summary;
use careof_plan::overview;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// Two mobile nodes of one home agent. NET stands for the beginning of an address of each version.
const TWO: &str = r#"
duration = "12 s"
[nodes]
core = "router"
north = { role = "home-agent", prefix = "HOME", address = ["HOME-AGENT", "WIRE-AGENT"] }
server = { role = "correspondent", address = "SERVER" }
one = { role = "mobile" }
two = { role = "mobile", address = "TWO" }
[links]
to-north = { preset = "ethernet-1g", between = ["core", "north"], prefix = "WIRE" }
to-server = { preset = "ethernet-1g", between = ["core", "server"], prefix = "LAN" }
one-a = { preset = "lte", between = ["core", "one"] }
one-b = { preset = "lte", between = ["core", "one"] }
two-a = { preset = "lte", between = ["core", "two"] }
two-b = { preset = "lte", between = ["core", "two"] }
[mobility]
protocol = "PROTOCOL"
routing = "reverse-tunnel"
[[handover]]
at = "5 s"
from = "one-a"
to = "one-b"
[[handover]]
at = "6 s"
from = "two-a"
to = "two-b"
[[flow]]
from = "server"
to = "one"
[[flow]]
from = "two"
to = "server"
"#;

const IPV4: [(&str, &str); 9] = [
    ("\"HOME-AGENT\"", "\"192.0.2.200\""),
    ("\"WIRE-AGENT\"", "\"198.51.100.30\""),
    ("\"TWO\"", "\"192.0.2.2\""),
    ("\"SERVER\"", "\"203.0.113.80\""),
    ("\"HOME\"", "\"192.0.2.0/24\""),
    ("\"WIRE\"", "\"198.51.100.0/24\""),
    ("\"LAN\"", "\"203.0.113.0/24\""),
    ("role = \"mobile\" }", "role = \"mobile\", address = \"192.0.2.3\" }"),
    ("PROTOCOL", "mobile-ipv4"),
];
const IPV6: [(&str, &str); 9] = [
    ("\"HOME-AGENT\"", "\"2001:db8:1::a:1\""),
    ("\"WIRE-AGENT\"", "\"fd00:0:0:1:8000::30\""),
    ("\"TWO\"", "\"2001:db8:1::2\""),
    ("\"SERVER\"", "\"2001:db8:2:0:1:2:3:4\""),
    ("\"HOME\"", "\"2001:db8:1::/64\""),
    ("\"WIRE\"", "\"fd00:0:0:1::/64\""),
    ("\"LAN\"", "\"2001:db8:2::/64\""),
    ("role = \"mobile\" }", "role = \"mobile\", address = \"2001:db8:1::bee\" }"),
    ("PROTOCOL", "mobile-ipv6"),
];

fn scenario(version: &[(&str, &str)]) -> Scenario {
    let text = version.iter().fold(TWO.to_owned(), |text, (old, new)| text.replacen(old, new, 1));
    Scenario::parse("test.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(scenario: Scenario) -> (Summary, Columns) {
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

#[test]
fn flows_of_nodes_with_addresses_of_their_own_go_on_and_their_signalling_names_these() {
    // The number of a mobile node and the place of its home address have nothing to do with each other any longer.
    for (version, homes) in
        [(&IPV4, ["192.0.2.3", "192.0.2.2"]), (&IPV6, ["2001:db8:1::bee", "2001:db8:1::2"])]
    {
        let (summary, events) = run(scenario(version));
        assert!(
            summary.handovers.iter().all(|handover| handover.ready_at.is_some()),
            "{:?}",
            summary.handovers
        );
        for handover in &summary.handovers {
            let went_on = handover.flows.iter().all(|flow| flow.bytes_delivered > 0);
            assert!(went_on, "{:?}", handover.flows);
        }
        let [kinds, details] = ["kind", "detail"].map(|name| events.by_name(name).unwrap());
        for home in homes {
            let is_bound = |row: &usize| {
                kinds.text(*row) == Some("binding")
                    && details.text(*row).is_some_and(|text| text.split(' ').any(|word| word == home))
            };
            assert!((0..events.rows()).any(|row| is_bound(&row)), "{home}");
        }
    }
}

#[test]
fn the_overview_has_the_addresses_that_the_file_gives_and_the_planned_ones_beside_them() {
    let scenario = scenario(&IPV6);
    let seen = overview(&scenario);
    let wire = seen.links.iter().find(|link| link.name == "to-north").unwrap();
    let ends = wire.ends.map(|end| end.address.unwrap().to_string());
    assert_eq!(ends, ["fd00:0:0:1::1", "fd00::1:8000:0:0:30"]);
    let lan = seen.links.iter().find(|link| link.name == "to-server").unwrap();
    assert_eq!(lan.ends[1].address.unwrap().to_string(), "2001:db8:2:0:1:2:3:4");
    assert_eq!(seen.home_networks[0].address.to_string(), "2001:db8:1::a:1");
    let homes: Vec<String> = seen.mobiles.iter().map(|mobile| mobile.home_address.to_string()).collect();
    assert_eq!(homes, ["2001:db8:1::bee", "2001:db8:1::2"]);
}

#[test]
fn a_care_of_address_and_that_of_a_home_link_can_be_given_over_ipv4() {
    const TEXT: &str = r#"
duration = "12 s"
[nodes]
home-agent = { role = "home-agent", address = "192.0.2.9" }
mobile = { role = "mobile", address = ["192.0.2.77", "198.51.100.78"] }
[links]
home = { preset = "wavelan", prefix = "192.0.2.0/24" }
away = { preset = "lte", prefix = "198.51.100.0/24" }
[mobility]
home = "home"
[[handover]]
at = "5 s"
from = "home"
to = "away"
[[flow]]
from = "correspondent"
to = "mobile"
"#;
    let scenario = Scenario::parse("test.toml", TEXT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let (summary, events) = run(scenario);
    assert!(summary.handovers[0].flows[0].bytes_delivered > 0, "{:?}", summary.handovers);
    let details = events.by_name("detail").unwrap();
    let bound = "192.0.2.77 at 198.51.100.78";
    assert!(
        (0..events.rows()).any(|row| details.text(row).is_some_and(|text| text.contains(bound))),
        "{bound}"
    );
}
