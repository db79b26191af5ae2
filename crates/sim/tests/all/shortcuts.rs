//! Ways that pass the home agent by: from correspondents that know the care-of address, and from a foreign agent that the
//! mobile node has left.

use std::path::Path;

use crate::common::finish;
use careof_metrics::{LinkSummary, Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

fn overridden(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|text| (*text).to_owned()).collect()
}

fn simulate(scenario: Scenario) -> (Summary, Columns) {
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap_or_else(|error| panic!("{error}")))
}

/// One of the scenarios that come with careof.
fn ready(name: &str, overrides: &[&str]) -> (Summary, Columns) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let scenario = Scenario::load(&path, &overridden(overrides));
    simulate(scenario.unwrap_or_else(|errors| panic!("{errors}")))
}

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let scenario = Scenario::parse("test.toml", text, &overridden(overrides));
    simulate(scenario.unwrap_or_else(|errors| panic!("{errors}")))
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

/// What happened at a node to bindings: `created 10.0.4.2 at 10.0.3.2 for 599 s`.
fn bindings(events: &Columns, node: &str) -> Vec<String> {
    let rows = (0..events.rows())
        .filter(|row| text(events, "kind", *row) == "binding" && text(events, "node", *row) == node);
    rows.map(|row| format!("{} {}", text(events, "cause", row), text(events, "detail", row))).collect()
}

/// How many messages of a name a node sent.
fn sent(events: &Columns, node: &str, message: &str) -> usize {
    let rows = (0..events.rows()).filter(|row| text(events, "kind", *row) == "message-sent");
    rows.filter(|row| text(events, "node", *row) == node && text(events, "message", *row) == message).count()
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a LinkSummary {
    summary.links.iter().find(|link| link.name == name).unwrap()
}

fn dropped(summary: &Summary, cause: &str) -> u64 {
    summary.packets.dropped.get(cause).copied().unwrap_or_default()
}

fn seconds_of_transfer(summary: &Summary) -> f64 {
    summary.flows[0].active.as_secs_f64()
}

#[test]
fn with_route_optimisation_the_dogleg_over_a_shared_ethernet_is_gone() {
    let size = ["flow.file.size=6 MB"];
    let (home, _) = ready("overheads/a.toml", &size);
    let (dogleg, _) = ready("overheads/e.toml", &size);
    let (straight, events) = ready("overheads/e-route-optimization.toml", &size);
    let [home, dogleg, straight_time] = [&home, &dogleg, &straight].map(seconds_of_transfer);
    // A header of 20 bytes on each of 1410 is what is left of 1.8 to 2 times the time.
    assert!(dogleg / home > 1.7, "{dogleg} s and {home} s");
    assert!((0.97..1.05).contains(&(straight_time / home)), "{straight_time} s and {home} s");
    // The SYN went by the home agent, and nothing of the file.
    assert_eq!(sent(&events, "home-agent", "BindingUpdate"), 1);
    assert_eq!(sent(&events, "correspondent", "BindingAcknowledge"), 1);
    assert!(link(&straight, "cell-backhaul.down").delivered_bytes < 3_000, "{}", summary_json(&straight));
    assert_eq!(straight.packets.fragmented, 0);
    assert!(straight.mobility.unwrap().discarded.is_empty());
}

/// A correspondent far from the home agent and close to two cells.
const NEAR: &str = r#"
duration = "30 s"
[links]
far = { rate = "10 Mbit/s", delay = "80 ms", between = ["home-agent", "exchange"] }
near = { rate = "10 Mbit/s", delay = "5 ms", between = ["correspondent", "exchange"] }
first = { rate = "5 Mbit/s", delay = "2 ms", between = ["exchange", "mobile"] }
second = { rate = "5 Mbit/s", delay = "2 ms", between = ["exchange", "mobile"] }
home = { rate = "5 Mbit/s", delay = "2 ms" }
[mobility]
route_optimization = true
home = "home"
start = "first"
[[handover]]
at = "10 s"
from = "first"
to = "second"
[[handover]]
at = "20 s"
from = "second"
to = "home"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "newreno"
"#;

#[test]
fn the_correspondent_follows_the_mobile_node_from_link_to_link_and_home() {
    let (summary, events) = run(NEAR, &[]);
    let correspondent = bindings(&events, "correspondent");
    let changes: Vec<&str> =
        correspondent.iter().map(|text| text.split_once(' ').map_or("", |(change, _)| change)).collect();
    assert_eq!(changes, ["created", "removed", "created", "removed"], "{correspondent:?}");
    assert_eq!(sent(&events, "home-agent", "BindingUpdate"), 3);
    assert_eq!(sent(&events, "correspondent", "BindingAcknowledge"), 3);
    // Nothing is lost, and 14 ms there and back are no longer 174.
    assert_eq!(summary.flows[0].timeouts, 0);
    let (slow, _) = run(NEAR, &["mobility.route_optimization=false"]);
    let rtt = |summary: &Summary| summary.flows[0].rtt_min.unwrap().as_secs_f64();
    assert!(rtt(&summary) < 0.03 && rtt(&slow) > 0.17, "{} and {}", rtt(&summary), rtt(&slow));
}

#[test]
fn what_the_correspondent_still_tunnels_to_a_foreign_agent_follows_the_mobile_node_home() {
    let overrides = |smooth: bool| {
        vec![
            "mobility.care_of=foreign-agent".to_owned(),
            format!("mobility.smooth_handoff={smooth}"),
            "links.first={ rate = \"5 Mbit/s\", delay = \"2 ms\" }".to_owned(),
            "links.second={ rate = \"5 Mbit/s\", delay = \"2 ms\" }".to_owned(),
            "links.cell={ rate = \"10 Mbit/s\", delay = \"1 ms\", between = [\"exchange\", \"foreign-agent-first\"] }"
                .to_owned(),
            "links.near={ rate = \"10 Mbit/s\", delay = \"20 ms\", between = [\"correspondent\", \"exchange\"] }"
                .to_owned(),
            "handover=[{ at = \"10 s\", from = \"first\", to = \"home\", style = \"break-before-make\", queued = \"drop\" }]"
                .to_owned(),
            "flow=[{ from = \"correspondent\", to = \"mobile\", kind = \"paced\", rate = \"1 Mbit/s\", message = \"1000 B\" }]"
                .to_owned(),
        ]
    };
    let [plain, smooth] = [false, true].map(|smooth| {
        let scenario = Scenario::parse("test.toml", NEAR, &overrides(smooth));
        simulate(scenario.unwrap_or_else(|errors| panic!("{errors}")))
    });
    // From when the agent hears of it until the correspondent's last packet has come: 40 ms of one each 8 ms.
    let lost = [&plain, &smooth].map(|(summary, _)| dropped(summary, "link-down"));
    assert!(lost[0] >= lost[1] + 3, "{lost:?}");
    for cause in ["tunnel-loop", "foreign-tunnel", "ttl-expired", "no-binding"] {
        assert_eq!(dropped(&smooth.0, cause), 0, "{cause}");
    }
}

#[test]
fn a_binding_in_use_outlives_its_lifetime() {
    let (summary, events) = run(NEAR, &["mobility.lifetime=4 s"]);
    assert!(sent(&events, "correspondent", "BindingRequest") >= 4);
    let expired =
        bindings(&events, "correspondent").iter().filter(|text| text.starts_with("expired")).count();
    assert_eq!(expired, 0);
    assert_eq!(summary.flows[0].timeouts, 0);
}

#[test]
fn runs_with_shortcuts_repeat_byte_for_byte() {
    for name in ["smooth-handoff.toml", "overheads/e-route-optimization.toml"] {
        let shorter = ["duration=25 s"];
        assert_eq!(ready(name, &shorter).0.digest, ready(name, &shorter).0.digest);
    }
}

#[test]
fn what_is_on_its_way_to_the_old_foreign_agent_reaches_the_mobile_node_at_the_new_one() {
    let (plain, _) = ready("smooth-handoff.toml", &["mobility.smooth_handoff=false"]);
    let (smooth, events) = ready("smooth-handoff.toml", &[]);
    // All that the home agent sent in a round trip, and without it what was on the air.
    assert!(dropped(&plain, "link-down") > 20, "{:?}", plain.packets.dropped);
    assert!(dropped(&smooth, "link-down") <= 2, "{:?}", smooth.packets.dropped);
    assert_eq!([plain.flows[0].timeouts, smooth.flows[0].timeouts], [1, 0]);
    let stall = |summary: &Summary| summary.handovers[0].stall_after.unwrap().as_secs_f64();
    assert!(stall(&smooth) < 0.1 && stall(&plain) > 0.5, "{} and {}", stall(&smooth), stall(&plain));
    let old = bindings(&events, "foreign-agent-first");
    let moved: Vec<_> = old.iter().filter(|text| !text.contains("visitor")).collect();
    assert_eq!(moved.len(), 1);
    assert!(moved[0].starts_with("created 10.0.7.2 at 10.0.3.2"), "{moved:?}");
    assert_eq!(sent(&events, "foreign-agent-second", "BindingUpdate"), 1);
    // Once passed on, too.
    assert_eq!(sent(&events, "foreign-agent-first", "BindingAcknowledge"), 1);
    assert_eq!(sent(&events, "foreign-agent-second", "BindingAcknowledge"), 1);
    assert!(smooth.mobility.unwrap().discarded.is_empty());
}

#[test]
fn a_correspondent_that_tunnels_to_the_old_agent_is_helped_by_it_and_told_better() {
    let both = ["mobility.route_optimization=true"];
    let (summary, events) = ready("smooth-handoff.toml", &both);
    assert!(dropped(&summary, "link-down") <= 2, "{:?}", summary.packets.dropped);
    assert_eq!((dropped(&summary, "tunnel-loop"), dropped(&summary, "foreign-tunnel")), (0, 0));
    assert_eq!(summary.flows[0].timeouts, 0);
    // The old agent sees packets of the correspondent's tunnel and warns; the home agent knew already.
    assert_eq!(sent(&events, "foreign-agent-first", "BindingWarning"), 1);
    assert_eq!(sent(&events, "home-agent", "BindingUpdate"), 2);
}

#[test]
fn between_the_same_two_agents_and_back_nothing_goes_round() {
    let back = "handover=[{ at = \"20 s\", from = \"first\", to = \"second\", style = \"break-before-make\" }, \
                { at = \"20.6 s\", from = \"second\", to = \"first\", style = \"break-before-make\" }, \
                { at = \"20.7 s\", from = \"first\", to = \"second\", style = \"break-before-make\" }]";
    let (summary, events) = ready("smooth-handoff.toml", &[back, "mobility.route_optimization=true"]);
    assert_eq!(dropped(&summary, "ttl-expired"), 0, "{:?}", summary.packets.dropped);
    let last = bindings(&events, "correspondent").pop().unwrap();
    assert!(last.starts_with("created 10.0.7.2 at 10.0.3.2"), "{last}");
}

#[test]
fn a_foreign_agent_hears_of_the_return_home_from_the_mobile_node_itself() {
    let home = [
        "links.base={ rate = \"2 Mbit/s\", delay = \"1 ms\" }",
        "mobility.home=base",
        "handover=[{ at = \"20 s\", from = \"first\", to = \"base\", style = \"break-before-make\" }]",
    ];
    let (summary, events) = ready("smooth-handoff.toml", &home);
    assert_eq!(sent(&events, "mobile", "BindingUpdate"), 1);
    assert_eq!(sent(&events, "foreign-agent-first", "BindingAcknowledge"), 1);
    let gone = bindings(&events, "foreign-agent-first").pop().unwrap();
    assert!(gone.starts_with("removed visitor 10.0.6.2"), "{gone}");
    assert!(summary.mobility.unwrap().discarded.is_empty());
}

#[test]
fn advertisements_that_stay_away_leave_nothing_to_be_smoothed() {
    let detection = "mobility.movement_detection=missed-advertisements";
    let (plain, _) = ready("smooth-handoff.toml", &[detection, "mobility.smooth_handoff=false"]);
    let (smooth, _) = ready("smooth-handoff.toml", &[detection]);
    // Nobody tells the old agent anything for seconds, and it keeps nothing.
    assert_eq!(dropped(&plain, "link-down"), dropped(&smooth, "link-down"));
}

#[test]
fn what_an_assist_of_the_old_foreign_agent_kept_follows_the_mobile_node() {
    let late = "mobility.movement_detection=missed-advertisements";
    for assist in [
        "assist={ use = \"replay\", replay = { at = \"foreign-agent\" } }",
        "assist={ use = \"buffer-forward\" }",
    ] {
        let (alone, _) = ready("smooth-handoff.toml", &[late, assist, "mobility.smooth_handoff=false"]);
        let (smooth, _) = ready("smooth-handoff.toml", &[late, assist]);
        let stall = |summary: &Summary| summary.handovers[0].stall_after.unwrap().as_secs_f64();
        // The seconds until the move is noticed are lost either way; what comes behind them is not.
        assert!(
            stall(&smooth) < 0.1 && stall(&alone) > 1.0,
            "{assist}: {} {}",
            stall(&smooth),
            stall(&alone)
        );
        assert_eq!(dropped(&smooth, "no-route"), 0, "{assist}");
        let (at_once, _) = ready("smooth-handoff.toml", &[assist]);
        assert!(at_once.flows[0].timeouts == 0 && dropped(&at_once, "no-route") == 0, "{assist}");
    }
}

#[test]
fn many_mobile_nodes_are_followed_each() {
    const FLEET: &str = r#"
duration = "12 s"
[links]
lan = { rate = "100 Mbit/s", delay = "1 ms", between = ["home-agent", "switch"] }
server = { rate = "100 Mbit/s", delay = "1 ms", between = ["switch", "correspondent"] }
backhaul = { rate = "100 Mbit/s", delay = "1 ms", between = ["switch", "station-*"], count = 3 }
radio = { rate = "2 Mbit/s", delay = "1 ms", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 6
route_optimization = true
[[handover]]
every = "4 s"
[[flow]]
from = "correspondent"
to = "mobile-*"
kind = "bulk"
"#;
    let (summary, events) = run(FLEET, &[]);
    let created =
        bindings(&events, "correspondent").iter().filter(|text| text.starts_with("created")).count();
    // Each at its first station and after each of its two or three moves.
    assert!((6 * 3..=6 * 4).contains(&created), "{created}");
    assert!(summary.flows.iter().all(|flow| flow.bytes_delivered > 500_000), "{}", summary_json(&summary));
}

#[test]
fn an_assist_at_the_home_agent_that_would_see_nothing_is_refused() {
    let scenario = Scenario::parse(
        "test.toml",
        NEAR,
        &overridden(&["assist.use=replay", "assist.replay.at=home-agent"]),
    );
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let Err(error) = Simulation::new(scenario, "test.toml", 0, Observation::default()) else {
        panic!("it was built")
    };
    let said = error.to_string();
    assert!(said.contains("mobility.route_optimization") && said.contains("\"replay\""), "{said}");
}
