//! Neighbours that lend the mobile node their links.

use crate::common::finish;
use careof_metrics::Summary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A link of its own and one of a neighbour's, both of 4 Mbit/s.
const WORLD: &str = r#"
duration = "60 s"
[nodes]
neighbour = { role = "relay" }
[links]
ethernet = "ethernet-100m"
own = { rate = "4 Mbit/s", delay = "30 ms", queue = "100 packets" }
lent = { rate = "4 Mbit/s", delay = "30 ms", queue = "100 packets", between = ["home-agent", "neighbour"] }
cluster = { rate = "54 Mbit/s", delay = "2 ms", queue = "100 packets", between = ["neighbour", "mobile"] }
[mobility]
[multipath]
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
start = "3 s"
"#;

/// The same without a neighbour.
const ALONE: &str = r#"
duration = "60 s"
[links]
ethernet = "ethernet-100m"
own = { rate = "4 Mbit/s", delay = "30 ms", queue = "100 packets" }
[mobility]
routing = "reverse-tunnel"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
start = "3 s"
"#;

fn simulate(text: &str, words: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let scenario = Scenario::parse("relays.toml", text, &overrides).unwrap_or_else(|all| panic!("{all}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "relays.toml", 0, observation).unwrap())
}

fn run(words: &[&str]) -> Summary {
    simulate(WORLD, words).0
}

fn delivered(summary: &Summary) -> u64 {
    summary.flows[0].bytes_delivered
}

/// What is left of that at least with a bad neighbour, in hundredths: a packet carries up to 64 bytes of headers, and not 20.
const LEAST: u64 = 96;

/// What the mobile node gets by its own link alone.
fn alone() -> u64 {
    delivered(&simulate(ALONE, &[]).0)
}

/// What the mobile node gets with these words, if its neighbour is honest, and how much of that the neighbour's link carried.
fn with_honest_neighbour(words: &[&str]) -> (u64, u64) {
    let summary = run(words);
    let link = summary.links.iter().find(|link| link.name == "lent.down").unwrap();
    (delivered(&summary), link.delivered_bytes)
}

/// A bad neighbour costs at most what its link carried.
#[track_caller]
fn assert_bounded(bad: u64, (honest, carried): (u64, u64), what: &str) {
    assert!(
        bad + carried >= honest,
        "{what}: {bad}, with an honest one {honest}, of which {carried} by its link"
    );
}

#[test]
fn a_neighbours_link_nearly_doubles_a_download() {
    let best = alone();
    for trust in ["keys", "first-use"] {
        let summary = run(&[&format!("multipath.trust={trust}")]);
        let [home, mobile] = &summary.multipath[..] else { panic!("two ends") };
        assert_eq!(home.paths.iter().map(|path| path.link.as_str()).collect::<Vec<_>>(), ["own", "lent"]);
        let sum = delivered(&summary);
        assert!(sum * 10 > best * 18, "{trust}: {sum} with it, {best} without");
        assert!(home.paths[1].share.unwrap() > 0.4, "{trust}");
        assert!(mobile.paths.iter().all(|path| path.round_trip.is_some()), "{trust}: both are measured");
    }
}

#[test]
fn packets_take_the_neighbours_link_both_ways_or_one_as_the_file_says() {
    for (uplink, both) in [("dispersed", true), ("direct", false)] {
        let summary = run(&["multipath.dispersion=weighted", &format!("multipath.uplink={uplink}")]);
        let [home, mobile] = &summary.multipath[..] else { panic!("two ends") };
        assert!(home.paths.iter().all(|path| path.packets > 1000), "{uplink}");
        assert_eq!(mobile.paths.iter().all(|path| path.packets > 1000), both, "{uplink}");
        assert!(delivered(&summary) * 10 > alone() * 15, "{uplink}: {}", delivered(&summary));
    }
}

#[test]
fn a_relay_that_lies_about_its_rate_costs_at_most_what_its_link_carried() {
    for (rate, claims) in
        [("4 Mbit/s", ["1 Gbit/s", "10 kbit/s"]), ("320 kbit/s", ["100 Mbit/s", "10 kbit/s"])]
    {
        let rate = format!("links.lent.rate={rate}");
        let honest = with_honest_neighbour(&[&rate]);
        for claim in claims {
            let word = format!("nodes.neighbour.claims={claim}");
            let bad = delivered(&run(&[&rate, &word]));
            assert_bounded(bad, honest, &format!("{claim} of {rate}"));
        }
    }
}

#[test]
fn a_relay_that_drops_costs_at_most_what_its_link_carried() {
    let honest = with_honest_neighbour(&[]);
    for drops in ["0.02", "0.2", "0.5", "1.0"] {
        let bad = delivered(&run(&[&format!("nodes.neighbour.drops={drops}")]));
        assert_bounded(bad, honest, drops);
    }
}

fn causes(events: &Columns, of: &str) -> Vec<String> {
    let (causes, nodes) = (events.by_name("cause").unwrap(), events.by_name("node").unwrap());
    let is_its = |row: &usize| nodes.text(*row) == Some(of);
    let told = (0..events.rows()).filter(is_its).filter_map(|row| causes.text(row));
    told.filter(|cause| cause.starts_with("relay-") && *cause != "relay-gone").map(str::to_owned).collect()
}

#[test]
fn a_relay_through_which_nothing_is_ever_answered_gets_no_data_and_is_left() {
    let (summary, events) = simulate(WORLD, &["nodes.neighbour.drops=1.0"]);
    for end in &summary.multipath {
        assert_eq!((end.paths[1].link.as_str(), end.paths[1].packets), ("lent", 0), "{}", end.node);
    }
    // It is asked again after a minute, which is when the run is over.
    assert_eq!(causes(&events, "mobile"), ["relay-gained", "relay-lost"]);
}

#[test]
fn a_relay_that_vanishes_costs_at_most_what_its_link_carried_and_is_taken_up_again() {
    let words = ["nodes.neighbour.vanishes=15 s", "nodes.neighbour.returns=35 s"];
    let (summary, events) = simulate(WORLD, &words);
    let honest = with_honest_neighbour(&[]);
    assert_bounded(delivered(&summary), honest, "gone for a while");
    assert_eq!(causes(&events, "mobile"), ["relay-gained", "relay-lost", "relay-gained"]);
    assert!(summary.packets.dropped["relay-gone"] > 0, "{:?}", summary.packets.dropped);
    assert!(summary.multipath[0].paths[1].outages > 0, "noticed before it was given up");
    for at in ["3.1 s", "5 s", "30 s"] {
        let bad = delivered(&run(&[&format!("nodes.neighbour.vanishes={at}")]));
        assert_bounded(bad, honest, at);
    }
}

#[test]
fn a_client_gets_what_is_granted_and_no_more() {
    let best = alone();
    let summary = run(&["nodes.neighbour.client_rate=500 kbit/s"]);
    let sum = delivered(&summary);
    assert!(sum * 100 >= best * LEAST, "{sum}, {best} without");
    assert!(summary.packets.dropped["over-rate"] > 0, "{:?}", summary.packets.dropped);

    let (summary, events) = simulate(WORLD, &["nodes.neighbour.client_bytes=200 kB"]);
    assert_eq!(causes(&events, "neighbour")[..2], ["relay-allied", "relay-ended"]);
    assert!(delivered(&summary) * 100 >= best * LEAST, "{}", delivered(&summary));
    assert!(summary.multipath[0].paths[1].bytes < 600_000, "{:?}", summary.multipath[0].paths[1]);
}

#[test]
fn an_alliance_that_ends_by_time_is_renewed_and_nothing_is_lost_by_that() {
    let (summary, events) = simulate(WORLD, &["nodes.neighbour.longest=5 s"]);
    assert_eq!(causes(&events, "mobile"), ["relay-gained"]);
    assert!(!summary.packets.dropped.contains_key("no-ally"), "{:?}", summary.packets.dropped);
}

#[test]
fn two_neighbours_lend_their_links_at_once() {
    let text = WORLD
        .replace("neighbour = { role = \"relay\" }", "one = \"relay\"\nother = \"relay\"")
        .replace("[\"home-agent\", \"neighbour\"] }", "[\"home-agent\", \"one\"] }\nsecond = { rate = \"4 Mbit/s\", delay = \"150 ms\", queue = \"100 packets\", between = [\"home-agent\", \"other\"] }")
        .replace("[\"neighbour\", \"mobile\"] }", "[\"one\", \"mobile\"] }\ncluster2 = { rate = \"11 Mbit/s\", delay = \"2 ms\", between = [\"other\", \"mobile\"] }");
    let (summary, _) = simulate(&text, &[]);
    let (sum, best) = (delivered(&summary), alone());
    assert!(sum * 10 > best * 25, "{sum}, {best} without");
    assert_eq!(summary.multipath[0].paths.len(), 3);
}
