//! Links that share a medium: what crosses it how often, and what is lost there.

use std::path::Path;

use crate::common::finish;
use careof_base::Instant;
use careof_metrics::{LinkSummary, Resumption, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

fn scenario(name: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/overheads").join(name);
    Scenario::load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_of(scenario: Scenario, trace: bool) -> (Summary, Columns) {
    let observation = Observation { trace, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// One of the ready scenarios, with a smaller file.
fn run(name: &str, overrides: &[&str]) -> Summary {
    let mut all = vec!["flow.file.size=1 MB", "duration=30 s"];
    all.extend(overrides);
    run_of(scenario(name, &all), false).0
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a LinkSummary {
    summary.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("{name}"))
}

/// Full segments of the file of [`run`].
const SEGMENTS: u64 = 1_000_000_u64.div_ceil(1460);

#[test]
fn at_home_what_one_sends_to_the_other_crosses_the_cable_once_and_passes_no_router() {
    for (name, data, acks) in [
        ("a.toml", "lan-correspondent-mobile.down", "lan-correspondent-mobile.up"),
        ("b.toml", "lan-correspondent-mobile.up", "lan-correspondent-mobile.down"),
    ] {
        let summary = run(name, &[]);
        assert!(summary.flows[0].complete, "{name}");
        assert!(link(&summary, data).delivered_packets >= SEGMENTS, "{name}");
        assert!(link(&summary, acks).delivered_packets >= SEGMENTS / 2, "{name}");
        // Of the mobile node's agents there are advertisements at most.
        for other in ["ethernet.down", "ethernet.up", "home.up"] {
            assert!(link(&summary, other).delivered_packets < 10, "{name}: {other}");
        }
    }
}

#[test]
fn away_a_download_crosses_the_cable_twice_and_its_acknowledgements_once() {
    let summary = run("e.toml", &[]);
    assert!(summary.flows[0].complete);
    let segments = 1_000_000_u64.div_ceil(1410);
    for way in ["ethernet.down", "cell-backhaul.down", "cell.down"] {
        assert!(link(&summary, way).delivered_packets >= segments, "{way}");
    }
    assert!(link(&summary, "lan-correspondent-foreign-agent-cell.up").delivered_packets >= segments / 2);
    assert!(link(&summary, "ethernet.up").delivered_packets < 10, "none of them passes the home agent");
    assert_eq!(summary.packets.fragmented, 0);
}

#[test]
fn away_an_upload_crosses_the_cable_once_and_its_acknowledgements_twice() {
    let summary = run("d.toml", &[]);
    assert!(summary.flows[0].complete);
    assert!(link(&summary, "lan-correspondent-foreign-agent-cell.up").delivered_packets >= SEGMENTS);
    for way in ["ethernet.down", "cell-backhaul.down"] {
        assert!(link(&summary, way).delivered_packets >= SEGMENTS / 2, "{way}");
    }
    assert_eq!(summary.packets.fragmented, 0);
}

#[test]
fn a_full_packet_in_a_tunnel_makes_two_fragments_on_the_cable() {
    let summary = run("c.toml", &[]);
    assert!(summary.flows[0].complete);
    let plain = link(&summary, "ethernet.down").delivered_packets;
    let tunnelled = link(&summary, "cell-backhaul.down").delivered_packets;
    assert!(summary.packets.fragmented >= SEGMENTS - 1);
    // Those that are not full stay whole; and the answer to the registration takes that way.
    assert_eq!(tunnelled, plain + summary.packets.fragmented + 1);
}

#[test]
fn the_longer_way_costs_most_and_the_tunnel_little() {
    let time = |name| {
        let summary = run(name, &[]);
        let flow = &summary.flows[0];
        flow.last_delivery.unwrap().saturating_duration_since(flow.start.unwrap()).as_secs_f64()
    };
    let [a, b, c, d, e] = ["a.toml", "b.toml", "c.toml", "d.toml", "e.toml"].map(time);
    assert!(e > 1.5 * a && c > e, "A {a:.3} s, C {c:.3} s, E {e:.3} s");
    assert!(d > b && d < 1.25 * b, "B {b:.3} s, D {d:.3} s");
}

#[test]
fn every_packet_on_a_medium_is_in_the_trace_at_both_ends() {
    let (summary, events) = run_of(scenario("c.toml", &["flow.file.size=100 kB", "duration=5 s"]), true);
    let kinds = events.by_name("kind").unwrap();
    let count = |kind: &str| (0..events.rows()).filter(|row| kinds.text(*row) == Some(kind)).count() as u64;
    let offered: u64 = summary.links.iter().map(|link| link.offered_packets).sum();
    let delivered: u64 = summary.links.iter().map(|link| link.delivered_packets).sum();
    assert_eq!(count("packet-delivered"), delivered);
    assert_eq!(count("packet-enqueued") + count("packet-dropped"), offered);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_run_another() {
    let digest = |run| {
        let scenario = scenario("c.toml", &["flow.file.size=200 kB", "duration=5 s"]);
        let mut simulation = Simulation::new(scenario, "c.toml", run, Observation::default()).unwrap();
        simulation.advance(Instant::MAX).unwrap();
        simulation.finish().unwrap().digest
    };
    assert_eq!(digest(0), digest(0));
    assert_ne!(digest(0), digest(1));
}

/// From home, where the medium is shared with the correspondent, to a cell and back.
const JOURNEY: &str = r#"
duration = "30 s"
[media.lan]
rate = "10 Mbit/s"
delay = "1 us"
queue = { limit = "50 packets", discipline = "red", ecn = true }
[links]
ethernet = { medium = "lan" }
home = { medium = "lan" }
cell = "ethernet-10m"
cell-backhaul = { medium = "lan" }
[mobility]
care_of = "foreign-agent"
home = "home"
[[handover]]
at = "8 s"
from = "home"
to = "cell"
style = "break-before-make"
[[handover]]
at = "16 s"
from = "cell"
to = "home"
[[flow]]
from = "correspondent"
to = "mobile"
tcp = { profile = "newreno", ecn = true }
[[flow]]
from = "mobile"
to = "correspondent"
tcp = "newreno"
"#;

#[test]
fn a_mobile_node_leaves_a_medium_and_comes_back() {
    for queued in ["drop", "drain-late", "drop-with-icmp"] {
        let overrides = [format!("handover.0.queued={queued}")];
        let scenario = Scenario::parse("journey.toml", JOURNEY, &overrides).unwrap();
        let (summary, _) = run_of(scenario, false);
        assert_eq!(summary.handovers.len(), 2);
        let home = link(&summary, "lan-correspondent-mobile.down");
        assert!(home.delivered_packets > 1_000, "{queued}");
        // What the correspondent sends before it is tunnelled finds nobody there.
        assert!(home.dropped_packets.get("link-down").is_some_and(|n| *n > 0), "{queued}: {home:?}");
        assert!(link(&summary, "cell.down").delivered_packets > 1_000, "{queued}");
        for handover in &summary.handovers {
            assert!(
                handover.flows.iter().all(|flow| flow.stall == Resumption::Resumed),
                "{queued}: {handover:?}"
            );
        }
    }
}

#[test]
fn media_of_many_stations_and_of_wired_nodes_alone() {
    let text = r#"
duration = "3 s"
[media.floor]
rate = "10 Mbit/s"
delay = "5 us"
[links]
office = { medium = "floor", between = ["server", "client-*"], count = 12 }
[[flow]]
from = "client-*"
to = "server"
"#;
    let scenario = Scenario::parse("floor.toml", text, &[]).unwrap();
    let (summary, _) = run_of(scenario, false);
    assert_eq!(summary.flows.len(), 12);
    assert!(summary.flows.iter().all(|flow| flow.bytes_delivered > 0));
    let carried: u64 = summary.links.iter().map(|link| link.delivered_bytes).sum();
    let most = 3 * 10_000_000 / 8;
    assert!(carried < most && carried > most / 2, "{carried} of {most} bytes");
}
