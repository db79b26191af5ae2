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

/// Two cells, in one of which three mobile nodes begin.
fn cells(overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility/wifi-cells.toml");
    Scenario::load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn delivered(summary: &Summary, name: &str) -> u64 {
    link(summary, name).delivered_packets
}

#[test]
fn who_moves_to_an_empty_cell_of_802_11_leaves_its_share_to_the_others_and_has_one_of_its_own() {
    let (summary, _) = run_of(cells(&[]), false);
    assert_eq!(summary.handovers.len(), 2);
    for handover in &summary.handovers {
        assert!(handover.flows.iter().any(|flow| flow.stall == Resumption::Resumed), "{handover:?}");
    }
    // Eleven channels of 20 or 40 ms; up to three beacons of 102.4 ms, and eleven channels of as long. What comes after - authentication,
    // reassociation, and a registration that waits behind the others' packets - takes less than half a second.
    let spans = summary.handovers.iter().map(|handover| handover.interruption.as_secs_f64());
    for (span, (least, most)) in spans.zip([(0.240, 0.440), (1.331, 1.434)]) {
        assert!(span > least && span < most + 0.5, "{span} s of {least} to {most}");
    }
    for way in ["anna-west.down", "anna-east.down", "bert-west.down", "carl-west.up"] {
        assert!(delivered(&summary, way) > 1_000, "{way}");
    }
    // What is on its way to a cell that Anna has left is sent in vain, and then dropped.
    let west = link(&summary, "anna-west.down");
    assert!(west.dropped_packets.get("link-down").is_some_and(|n| *n > 0), "{west:?}");
    // She alone gets more in 13 s in the east than in 27 s of three in the west.
    assert!(delivered(&summary, "anna-east.down") > delivered(&summary, "anna-west.down"));
}

#[test]
fn a_cell_carries_what_a_lone_station_gets_and_less_of_acknowledgements() {
    let text = |kind: &str, between: &str| {
        format!(
            "duration = \"20 s\"\n[media.air]\n{kind}\n[links]\nair = {{ medium = \"air\", between = [{between}] }}\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\ntcp = {{ profile = \"newreno\", window = \"64 kB\" }}\n"
        )
    };
    // Each segment of 1460 bytes takes an exchange, every second one an acknowledgement of 40 bytes another. A back-off is of 15.5 or
    // 7.5 slots in the mean; with two stations the shorter of both counts, and some collide: what is between is bounded by one
    // back-off an exchange, and by none.
    for (kind, exchange, acknowledgement, back_off) in [
        ("kind = \"802.11b\"", 50 + 192 + 1118 + 10 + 248 + 2, 50 + 192 + 56 + 10 + 248 + 2, 310),
        ("kind = \"802.11g\"", 28 + 254 + 10 + 34 + 2, 28 + 38 + 10 + 34 + 2, 68),
    ] {
        let scenario = Scenario::parse("air.toml", &text(kind, "\"a\", \"b\""), &[]).unwrap();
        let (summary, _) = run_of(scenario, false);
        let rate = summary.flows[0].bytes_delivered as f64 * 8.0 / 20.0;
        let pair = |back_off: u64| (2 * exchange + acknowledgement + 3 * back_off) as f64 / 1e6;
        let segments = 2.0 * 1460.0 * 8.0;
        let (least, most) = (segments / pair(back_off), segments / pair(0));
        assert!(rate > 0.95 * least && rate < most, "{kind}: {rate} of {least} to {most} bit/s");
    }
}

#[test]
fn in_a_cell_what_one_station_sends_to_another_is_on_the_air_twice() {
    let text = r#"
duration = "10 s"
[media.air]
kind = "802.11g"
[links]
left = { medium = "air", between = ["ap", "a"] }
right = { medium = "air", between = ["ap", "b"] }
[[flow]]
from = "a"
to = "b"
size = "1 MB"
"#;
    let scenario = Scenario::parse("air.toml", text, &[]).unwrap();
    assert_eq!(scenario.links.len(), 2, "no two stations are joined but by the file");
    let (summary, _) = run_of(scenario, false);
    assert!(summary.flows[0].complete);
    for way in ["left.up", "right.down"] {
        assert!(delivered(&summary, way) >= SEGMENTS, "{way}");
    }
}

#[test]
fn a_channel_that_damages_frames_repeats_them_and_gives_few_up() {
    let text = |loss: &str| {
        format!(
            "duration = \"20 s\"\n[media.air]\nkind = \"802.11g\"\nloss = \"{loss}\"\n[links]\n\
             air = {{ medium = \"air\", between = [\"a\", \"b\"] }}\n[[flow]]\nfrom = \"a\"\nto = \"b\"\nsize = \"4 MB\"\n"
        )
    };
    let run = |loss| run_of(Scenario::parse("air.toml", &text(loss), &[]).unwrap(), false).0;
    let (clean, damaged, hopeless) = (run("0 %"), run("30 %"), run("90 %"));
    let dropped = |summary: &Summary| {
        let dropped = |name| link(summary, name).dropped_packets.get("retry-limit").copied().unwrap_or(0);
        dropped("air.down") + dropped("air.up")
    };
    assert!(clean.flows[0].complete && damaged.flows[0].complete);
    assert_eq!(dropped(&clean), 0);
    // 0.3^7 is 2 in 10000.
    assert!(dropped(&damaged) < 10, "{}", dropped(&damaged));
    assert!(damaged.flows[0].last_delivery > clean.flows[0].last_delivery);
    assert!(dropped(&hopeless) > 0 && !hopeless.flows[0].complete);
}

#[test]
fn a_run_over_802_11_repeats_itself_and_another_one_differs() {
    let digest = |run| {
        let mut simulation = Simulation::new(
            cells(&["duration=20 s", "handover=[]"]),
            "cells.toml",
            run,
            Observation::default(),
        )
        .unwrap();
        simulation.advance(Instant::MAX).unwrap();
        simulation.finish().unwrap().digest
    };
    assert_eq!(digest(0), digest(0));
    assert_ne!(digest(0), digest(1));
}
