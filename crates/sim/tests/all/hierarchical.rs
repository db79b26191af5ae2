//! Hierarchical Mobile IPv6: whole worlds.

use std::time::Duration;

use crate::common::finish;
use careof_metrics::{HandoverSummary, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const HMIPV6: &str = include_str!("../../../../scenarios/ipv6/hmipv6.toml");

fn parsed(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_text(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(parsed(text, overrides), "test.toml", 0, observation).unwrap())
}

fn run(overrides: &[&str]) -> (Summary, Columns) {
    run_text(HMIPV6, overrides)
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

fn seconds(events: &Columns, row: usize) -> f64 {
    events.by_name("time_ns").unwrap().number(row).unwrap_or_default() as f64 / 1e9
}

/// When a node sent messages of this name, or when they reached it, s.
fn messages(events: &Columns, kind: &str, node: &str, message: &str) -> Vec<f64> {
    let is_one = |row: &usize| {
        text(events, "kind", *row) == kind
            && text(events, "node", *row) == node
            && text(events, "message", *row) == message
    };
    (0..events.rows()).filter(is_one).map(|row| seconds(events, row)).collect()
}

fn within(times: &[f64], from: f64, to: f64) -> usize {
    times.iter().filter(|time| (from..to).contains(*time)).count()
}

/// What happened to bindings at a node, with the time, s.
fn bindings(events: &Columns, node: &str) -> Vec<(f64, String)> {
    let rows = (0..events.rows())
        .filter(|row| text(events, "kind", *row) == "binding" && text(events, "node", *row) == node);
    rows.map(|row| {
        let what = format!("{} {}", text(events, "cause", row), text(events, "detail", row));
        (seconds(events, row), what)
    })
    .collect()
}

/// Everything but packets, for the message of a test that fails.
fn story(events: &Columns) -> String {
    let is_told = |row: &usize| !matches!(text(events, "kind", *row), kind if kind.starts_with("packet") || kind.contains("segment") || kind == "tcp-state");
    let lines = (0..events.rows()).filter(is_told).map(|row| {
        let columns =
            ["kind", "node", "link", "message", "cause", "detail"].map(|name| text(events, name, row));
        format!("{:.4} {}", seconds(events, row), columns.join(" | "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// From the new link being up to packets taking the new path.
fn latency(handover: &HandoverSummary) -> Duration {
    let ready = handover.ready_at.unwrap_or_else(|| panic!("the handover to {} was never over", handover.to));
    ready - (handover.at + Duration::from_millis(100))
}

#[test]
fn a_move_within_a_domain_is_over_after_a_round_trip_to_the_anchor_point_and_its_home_agent_hears_nothing() {
    let (summary, events) = run(&["assist=none"]);
    let [within_west, between, within_east] = &summary.handovers[..] else { panic!() };
    let heard = messages(&events, "message-received", "home-agent", "BindingUpdate");
    assert_eq!(within(&heard, 15.0, 30.0), 0, "{}", story(&events));
    assert_eq!(within(&heard, 30.0, 32.0), 1);
    assert_eq!(within(&heard, 45.0, 60.0), 0);
    assert!(bindings(&events, "map-west").len() >= 3, "{}", story(&events));
    for moved in [within_west, within_east] {
        // The router answers a solicitation within 100 ms; then a round trip of LTE and 2 ms.
        assert!(latency(moved) < Duration::from_millis(220), "{:?}\n{}", latency(moved), story(&events));
    }
    // To the other domain: the same, and then a round trip to the home agent 67 ms behind the anchor point.
    assert!(latency(between) > Duration::from_millis(150), "{:?}", latency(between));
    assert!(latency(between) < Duration::from_millis(420), "{:?}", latency(between));
    for flow in &summary.flows {
        assert!(flow.bytes_delivered > 10_000_000, "{} of {}", flow.bytes_delivered, flow.name);
    }
    let mobility = summary.mobility.as_ref().unwrap();
    assert_eq!(mobility.discarded.values().sum::<u64>(), 0, "{:?}\n{}", mobility.discarded, story(&events));
}
