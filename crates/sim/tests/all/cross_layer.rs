//! TCP-CM as its paper has it, in whole worlds: who tells whom, when, and how well the bandwidth is estimated.

use crate::common::finish;
use crate::senders::STRAIGHT;
use careof_metrics::{FlowHandoverSummary, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A second without a link, between two of the same kind.
const GAP: &str = r#"
duration = "40 s"
[links]
first = { rate = "2 Mbit/s", delay = "20 ms", queue = "30 packets" }
second = { rate = "2 Mbit/s", delay = "20 ms", queue = "30 packets" }
[mobility]
protocol = "mobile-ipv6"
[[handover]]
at = "20 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "1 s"
queued = "drop"
[[flow]]
name = "bulk"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "newreno"
[assist]
use = "tcp-cm"
"#;

const UPLOAD: [&str; 2] = ["flow.bulk.from=mobile", "flow.bulk.to=correspondent"];

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// Node, cause and time in seconds of what assists did.
fn said(events: &Columns) -> Vec<(String, String, f64)> {
    let [kinds, nodes, causes, times] =
        ["kind", "node", "cause", "time_ns"].map(|name| events.by_name(name).unwrap());
    let text = |column: &careof_trace::Column, row: usize| column.text(row).unwrap().to_owned();
    (0..events.rows())
        .filter(|row| kinds.text(*row) == Some("assist"))
        .map(|row| (text(nodes, row), text(causes, row), times.number(row).unwrap() as f64 / 1e9))
        .collect()
}

fn when(said: &[(String, String, f64)], node: &str, cause: &str) -> Vec<f64> {
    said.iter().filter(|(who, what, _)| who == node && what == cause).map(|(.., at)| *at).collect()
}

fn of_flow(summary: &Summary) -> &FlowHandoverSummary {
    &summary.handovers[0].flows[0]
}

fn ready(summary: &Summary) -> f64 {
    summary.handovers[0].ready_at.unwrap().as_secs_f64()
}

#[test]
fn neighbor_unreachability_detection_begins_a_handover_for_tcp_and_the_binding_acknowledgement_ends_it() {
    let text = GAP.replace("[mobility]", "[mobility]\nmovement_detection = \"unreachable-router\"");
    let more = ["mobility.discovery.reachable_time=100 ms", "duration=60 s"];
    let (summary, events) = run(&text, &[&more[..], &UPLOAD].concat());
    let (kinds, causes, times) = ("kind", "cause", "time_ns");
    let [kinds, causes, times] = [kinds, causes, times].map(|name| events.by_name(name).unwrap());
    let gone = (0..events.rows())
        .find(|row| kinds.text(*row) == Some("arp") && causes.text(*row) == Some("unreachable"))
        .map(|row| times.number(row).unwrap() as f64 / 1e9)
        .expect("the router is found gone");
    let said = said(&events);
    assert_eq!(when(&said, "mobile", "away"), [gone]);
    assert_eq!(when(&said, "mobile", "resume"), [ready(&summary)]);
}

#[test]
fn with_a_link_layer_that_tells_the_sender_stands_still_from_its_word_on() {
    let (summary, events) = run(GAP, &UPLOAD);
    let said = said(&events);
    assert_eq!(when(&said, "mobile", "away"), [20.0]);
    assert_eq!(when(&said, "mobile", "resume"), [ready(&summary)]);
    let [kinds, nodes, times] = ["kind", "node", "time_ns"].map(|name| events.by_name(name).unwrap());
    let sent_between = (0..events.rows()).any(|row| {
        let at = times.number(row).unwrap() as f64 / 1e9;
        nodes.text(row) == Some("mobile")
            && matches!(kinds.text(row), Some("segment-sent" | "timeout"))
            && at > 20.0
            && at < ready(&summary)
    });
    assert!(!sent_between);
    assert_eq!(of_flow(&summary).bandwidth_estimate_bps, None, "it sets no window");
}

#[test]
fn the_binding_update_tells_a_correspondent_that_sends_straight_and_nothing_else_is_sent() {
    let (summary, events) = run(STRAIGHT, &["assist=tcp-cm"]);
    let told = said(&events);
    assert!(when(&told, "mobile", "tell").is_empty(), "{told:?}");
    // The care-of test there and back, and the update.
    let at = when(&told, "correspondent", "replaced");
    assert_eq!(at.len(), 1, "{told:?}");
    assert!((at[0] - ready(&summary) - 0.150).abs() < 0.001, "{at:?}");
    // At home again it hears of it once more, be it by the update that deletes its binding.
    let home =
        STRAIGHT.replace("[[flow]]", "[[handover]]\nat = \"6.5 s\"\nfrom = \"new\"\nto = \"old\"\n[[flow]]");
    let (summary, events) = run(&home, &["assist=tcp-cm"]);
    assert_eq!(when(&said(&events), "correspondent", "replaced").len(), 2);
    assert_eq!(summary.flows[0].advice_taken, 2);
}

#[test]
fn where_there_is_no_binding_at_the_correspondent_a_datagram_tells_it() {
    let (_, events) = run(GAP, &[]);
    let said = said(&events);
    assert_eq!(when(&said, "mobile", "tell").len(), 1);
    assert_eq!(when(&said, "correspondent", "replaced").len(), 1);
}

#[test]
fn between_paths_of_one_rate_both_estimates_are_near_it_and_say_how_near() {
    for estimator in ["westwood", "delivery-rate"] {
        for tcp in ["newreno", "linux"] {
            let how = [&*format!("assist.tcp-cm.estimator={estimator}"), &*format!("flow.bulk.tcp={tcp}")];
            let (summary, _) = run(GAP, &how);
            let flow = of_flow(&summary);
            let (estimate, error) = (flow.bandwidth_estimate_bps.unwrap(), flow.bandwidth_error.unwrap());
            assert!((1.5e6..2.1e6).contains(&estimate), "{how:?}: {estimate}");
            assert!((-0.2..0.1).contains(&error), "{how:?}: {error}");
        }
    }
}

#[test]
fn from_a_fast_path_to_a_slow_one_the_estimate_is_the_old_paths_and_so_is_said() {
    for (rate, least, most) in [("500 kbit/s", 2.0, 3.1), ("8 Mbit/s", -0.82, -0.7)] {
        let (summary, _) = run(GAP, &[&*format!("links.second.rate={rate}")]);
        let error = of_flow(&summary).bandwidth_error.unwrap();
        assert!((least..most).contains(&error), "{rate}: {error}");
    }
}

#[test]
fn who_is_told_the_path_estimates_nothing() {
    let (summary, _) = run(GAP, &["assist.tcp-cm.estimator=link"]);
    assert_eq!((of_flow(&summary).bandwidth_estimate_bps, of_flow(&summary).bandwidth_error), (None, None));
}

#[test]
fn fr_and_freeze_act_when_the_correspondent_knows_the_new_care_of_address() {
    let notice = STRAIGHT.replace("queued = \"drop\"", "queued = \"drop\"\nnotice = \"100 ms\"");
    for assist in ["freeze", "{ use = \"fast-retransmit\", fast-retransmit = { longest_outage = \"any\" } }"]
    {
        let (summary, events) = run(&notice, &[&*format!("assist={assist}")]);
        let said = said(&events);
        let cause = if assist == "freeze" { "open-window" } else { "duplicate-acks" };
        // The care-of test there and back, the update and its acknowledgement.
        let at = when(&said, "mobile", cause);
        assert!(at.len() == 1 && (at[0] - ready(&summary) - 0.200).abs() < 0.001, "{assist}: {said:?}");
        // One way for the acknowledgements, and one for the data.
        let stall = of_flow(&summary).stall_after.unwrap().as_secs_f64();
        assert!((0.299..0.302).contains(&stall), "{assist}: {stall}");
        // Without route optimisation there is nobody to wait for.
        let (summary, events) =
            run(&notice, &[&*format!("assist={assist}"), "mobility.route_optimization=false"]);
        let at = when(&self::said(&events), "mobile", cause);
        assert!(at.len() == 1 && (at[0] - ready(&summary)).abs() < 0.001, "{assist}: {at:?}");
    }
}

#[test]
fn two_acknowledgements_with_the_rate_tell_tcp_ho_and_three_segments_demo_vegas() {
    for (assist, heard, times) in [("tcp-ho", "handed-off", 2), ("demo-vegas", "measure-base-rtt", 3)] {
        let (summary, events) = run(GAP, &[&*format!("assist={assist}")]);
        let said = said(&events);
        assert_eq!(when(&said, "mobile", "tell").len(), times, "{assist}: {said:?}");
        assert_eq!(when(&said, "correspondent", heard).len(), 1, "{assist}");
        assert_eq!(summary.flows[0].advice_taken, 1);
    }
    // The source has no mobile sender; one with Vegas has moved as much as its peer.
    let taken = |assist: &str| {
        run(GAP, &[&[&*format!("assist={assist}")], &UPLOAD[..]].concat()).0.flows[0].advice_taken
    };
    assert_eq!([taken("tcp-ho"), taken("demo-vegas")], [0, 1]);
}
