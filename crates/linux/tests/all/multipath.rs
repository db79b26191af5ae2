//! Several links of a mobile node at once, with the kernel's TCP.

use std::fs;
use std::path::Path;

use crate::common::{Ran, completed, flow, parsed, run_scenario};
use careof_metrics::MultipathSummary;
use careof_scenario::{NamedIn, Scenario};

/// Two links, the second one slower and with jitter that changes the order.
const TWO: &str = r#"
duration = "20 s"
[links]
ethernet = "ethernet-100m"
first = { rate = "4 Mbit/s", delay = "20 ms", queue = "100 packets" }
second = { rate = "2 Mbit/s", delay = "40 ms", jitter = { spread = "10 ms", reorder = true }, queue = "100 packets" }
[mobility]
[multipath]
dispersion = "earliest"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
start = "1 s"
size = "1 MB"
"#;

/// The scenario with further keys, in so many times as much time.
fn two(words: &[&str], pace: u64) -> Scenario {
    let mut overrides: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    overrides.push(format!("duration={} s", 20 * pace));
    Scenario::parse("test.toml", TWO, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn ends(ran: &Ran) -> [&MultipathSummary; 2] {
    let [home, mobile] = &ran.summary.multipath[..] else { panic!("{:#?}", ran.summary.multipath) };
    assert_eq!((home.node.as_str(), mobile.node.as_str()), ("home-agent", "mobile"));
    [home, mobile]
}

fn sent(end: &MultipathSummary) -> u64 {
    end.paths.iter().map(|path| path.packets).sum()
}

#[test]
fn a_flow_goes_by_both_links_and_arrives_in_its_order() {
    let Some(ran) = completed(|pace| two(&[], pace)) else { return };
    let [home, mobile] = ends(&ran);
    assert!(home.paths.iter().all(|path| path.packets > 0), "{home:#?}");
    for end in [home, mobile] {
        assert!(end.paths.iter().all(|path| path.round_trip.is_some()), "{end:#?}");
        assert_eq!(sent(end), end.offered - end.no_path + end.copies + end.replayed);
    }
    let links: Vec<_> = home.paths.iter().map(|path| path.link.as_str()).collect();
    assert_eq!(links, ["first", "second"]);
    let download = flow(&ran.summary, "download");
    assert!(download.complete);
    assert_eq!(download.bytes_delivered, 1_000_000);
    // Each segment that the tunnel passed on is in the books, in the order in which it did.
    assert_eq!(download.segments_sent, download.segments_arrived + lost(&ran));
    assert!(download.out_of_order_arrivals <= mobile.late, "{}", download.out_of_order_arrivals);
    let kinds = ran.events.by_name("kind").unwrap();
    let messages = ran.events.by_name("message").unwrap();
    let feedback = (0..ran.events.rows()).filter(|row| messages.text(*row) == Some("PathFeedback"));
    assert!(feedback.filter(|row| kinds.text(*row) == Some("message-sent")).count() > 0);
}

/// Packets that links dropped.
fn lost(ran: &Ran) -> u64 {
    ran.summary.links.iter().flat_map(|link| link.dropped_packets.values()).sum()
}

#[test]
fn copies_by_every_link_are_passed_on_once() {
    let Some(ran) = completed(|pace| two(&["multipath.dispersion=duplicate", "flow.0.size=200 kB"], pace))
    else {
        return;
    };
    let [home, mobile] = ends(&ran);
    assert!(home.copies > 0 && mobile.duplicates > 0);
    let download = flow(&ran.summary, "download");
    assert_eq!((download.bytes_delivered, download.network_duplicates), (200_000, 0));
}

#[test]
fn the_uplink_may_go_straight_by_one_link() {
    let Some(ran) = completed(|pace| {
        let words = ["multipath.uplink=direct", "multipath.resequencer=false", "multipath.dispersion=dq"];
        two(&words, pace)
    }) else {
        return;
    };
    let [home, mobile] = ends(&ran);
    assert!(home.paths.iter().all(|path| path.packets > 0));
    assert_eq!((mobile.offered, sent(mobile)), (0, 0));
    assert!(mobile.longest_wait.is_zero(), "nothing is put in order");
    assert!(flow(&ran.summary, "download").complete);
}

#[test]
fn a_rule_keeps_packets_to_the_link_it_names() {
    let Some(ran) =
        completed(|pace| two(&["multipath.rules=[{ to = \"correspondent\", paths = [\"second\"] }]"], pace))
    else {
        return;
    };
    for end in ends(&ran) {
        assert_eq!(end.paths[0].packets, 0, "{end:#?}");
        assert!(end.paths[1].packets > 0, "{end:#?}");
    }
}

#[test]
fn a_link_that_carries_nothing_for_a_while_is_left_and_taken_up_again() {
    let text = TWO.replace("second = { rate = \"2 Mbit/s\", delay = \"40 ms\", jitter = { spread = \"10 ms\", reorder = true }, queue = \"100 packets\" }",
        "second = { queue = \"100 packets\", mtu = 1500, trace = \"second.csv\" }")
        .replace("size = \"1 MB\"", "");
    let trace = "time_s,rate_mbit_s,delay_ms,loss\n0,2,40,0\n5,2,40,1\n10,2,40,0\n";
    let read = |_: &str, _: NamedIn| Ok(trace.to_owned());
    let scenario = Scenario::parse_with("test.toml", &text, &[], &read);
    let Some(ran) = run_scenario(scenario.unwrap_or_else(|errors| panic!("{errors}"))) else { return };
    let [home, mobile] = ends(&ran);
    assert!(home.paths[1].outages >= 1, "{home:#?}");
    assert!(home.paths[1].out_for > std::time::Duration::ZERO);
    let causes = ran.events.by_name("cause").unwrap();
    let count =
        |wanted| (0..ran.events.rows()).filter(|row| causes.text(*row) == Some(wanted)).count() as u64;
    let outages: u64 = [home, mobile].iter().flat_map(|end| &end.paths).map(|path| path.outages).sum();
    assert_eq!(count("path-out"), outages);
    assert!(flow(&ran.summary, "download").bytes_delivered > 0);
}

/// One link of its own, and one that a neighbour lends.
fn lent(words: &[&str], pace: u64) -> Scenario {
    let text = TWO
        .replace("first =", "own =")
        .replace(
            "second = { rate = \"2 Mbit/s\", delay = \"40 ms\", jitter = { spread = \"10 ms\", reorder = true }, queue = \"100 packets\" }",
            "lent = { rate = \"4 Mbit/s\", delay = \"20 ms\", queue = \"100 packets\", between = [\"home-agent\", \"neighbour\"] }\n\
             cluster = { rate = \"54 Mbit/s\", delay = \"2 ms\", queue = \"100 packets\", between = [\"neighbour\", \"mobile\"] }\n\
             [nodes]\nneighbour = { role = \"relay\" }",
        )
        .replace("dispersion = \"earliest\"\n", "")
        .replace("start = \"1 s\"", "start = \"4 s\"");
    let mut overrides: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    overrides.push(format!("duration={} s", 20 * pace));
    Scenario::parse("test.toml", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

/// How often something of this cause or kind is in the events.
fn told(ran: &Ran, wanted: &str) -> usize {
    let causes = ran.events.by_name("cause").unwrap();
    (0..ran.events.rows()).filter(|row| causes.text(*row) == Some(wanted)).count()
}

#[test]
fn a_neighbours_link_is_a_path_as_in_the_simulator() {
    for trust in ["multipath.trust=keys", "multipath.trust=first-use"] {
        let Some(ran) = completed(|pace| lent(&[trust], pace)) else { return };
        let [home, mobile] = ends(&ran);
        let links: Vec<_> = home.paths.iter().map(|path| path.link.as_str()).collect();
        assert_eq!(links, ["own", "lent"]);
        assert!(home.paths.iter().all(|path| path.round_trip.is_some()), "{home:#?}");
        for end in [home, mobile] {
            assert_eq!(sent(end), end.offered - end.no_path + end.copies + end.replayed);
        }
        assert_eq!(flow(&ran.summary, "download").bytes_delivered, 1_000_000);
        assert_eq!((told(&ran, "relay-allied"), told(&ran, "relay-gained")), (1, 1));
        assert_eq!((told(&ran, "relay-ended"), told(&ran, "relay-lost")), (0, 0));
        let messages = ran.events.by_name("message").unwrap();
        for wanted in ["ClusterAdvertisement", "AllianceRequest", "AllianceReply"] {
            assert!((0..ran.events.rows()).any(|row| messages.text(row) == Some(wanted)), "{wanted}");
        }
    }
}

#[test]
fn a_bad_neighbour_costs_no_byte() {
    for bad in [
        "nodes.neighbour.drops=0.5",
        "nodes.neighbour.drops=1",
        "nodes.neighbour.claims=100 Mbit/s",
        "nodes.neighbour.vanishes=5 s",
    ] {
        let Some(ran) = completed(|pace| lent(&[bad], pace)) else { return };
        let download = flow(&ran.summary, "download");
        assert!(download.complete, "{bad}");
        assert_eq!(download.bytes_delivered, 1_000_000, "{bad}");
        let [home, mobile] = ends(&ran);
        for end in [home, mobile] {
            assert_eq!(sent(end), end.offered - end.no_path + end.copies + end.replayed, "{bad}: {end:#?}");
        }
        println!(
            "{bad}: {:?} s, shares {:?}",
            download.active,
            home.paths.iter().map(|path| path.share).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_scenarios_of_the_study_are_refused_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shake");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios: Vec<_> =
        files.map(|file| Scenario::load(&file, &[]).unwrap_or_else(|errors| panic!("{errors}"))).collect();
    assert!(scenarios.len() >= 7);
    for scenario in scenarios {
        careof_linux::check(&scenario).unwrap_or_else(|error| panic!("{}: {error}", scenario.title));
    }
    assert!(careof_linux::check(&parsed(TWO)).is_ok());
}
