//! Mobile nodes in a domain of micro-mobility.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::finish;
use careof_metrics::{Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const DOMAIN: &str = r#"
duration = "30 s"
[links]
server = { rate = "10 Mbit/s", delay = "2 ms", between = ["correspondent", "home-agent"] }
uplink = { rate = "10 Mbit/s", delay = "2 ms", between = ["home-agent", "gateway"] }
area = { rate = "10 Mbit/s", delay = "2 ms", between = ["gateway", "area-*"], count = 2 }
cell = { rate = "10 Mbit/s", delay = "2 ms", between = ["area-*", "station-*"], count = 5 }
radio = { rate = "1 Mbit/s", delay = "5 ms", queue = "20 packets", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 3
[micro_mobility]
protocol = "building-blocks"
[[handover]]
every = "3 s"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile-*"
tcp = { profile = "newreno", window = "8 KiB" }
"#;

fn overrides(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn run(words: &[&str], trace: bool) -> (Summary, Columns) {
    let scenario =
        Scenario::parse("domain.toml", DOMAIN, &overrides(words)).unwrap_or_else(|e| panic!("{e}"));
    finish(
        Simulation::new(scenario, "domain.toml", 0, Observation { trace, ..Observation::default() }).unwrap(),
    )
}

/// Settings of the building blocks that differ in all that they can do, and the named protocols.
const BLOCKS: [&[&str]; 11] = [
    &["handover.interruption=200 ms"],
    &["micro_mobility.trigger=source", "handover.interruption=200 ms"],
    &[
        "micro_mobility.trigger=source",
        "micro_mobility.buffer={ packets = 5 }",
        "handover.interruption=200 ms",
    ],
    &[
        "micro_mobility.trigger=path",
        "micro_mobility.car_set=2",
        "micro_mobility.buffer=true",
        "handover.overlap=100 ms",
    ],
    &["micro_mobility.trigger=no-path", "micro_mobility.bicast=150 ms", "handover.overlap=150 ms"],
    &["micro_mobility.forward=1 s", "micro_mobility.buffer=true", "handover.interruption=300 ms"],
    &["micro_mobility.protocol=cellular-ip", "handover.interruption=100 ms"],
    &[
        "micro_mobility.protocol=cellular-ip",
        "micro_mobility.handover=semi-soft",
        "micro_mobility.delay=10 ms",
    ],
    &[
        "micro_mobility.protocol=hawaii",
        "micro_mobility.scheme=ssf",
        "micro_mobility.buffer=true",
        "handover.interruption=100 ms",
    ],
    &["micro_mobility.protocol=hawaii", "micro_mobility.scheme=mnf", "handover.overlap=100 ms"],
    &[
        "micro_mobility.protocol=multicast",
        "micro_mobility.trigger=path",
        "micro_mobility.buffer=true",
        "handover.interruption=100 ms",
    ],
];

#[test]
fn moves_inside_a_domain_are_not_told_to_the_home_agent_and_downloads_go_on() {
    for words in BLOCKS {
        let (summary, _) = run(words, false);
        let roaming = summary.roaming.as_ref().unwrap();
        assert_eq!((roaming.nodes, roaming.stations), (3, 5), "{words:?}");
        assert!((27..=30).contains(&roaming.handovers), "{words:?}: {roaming:?}");
        assert!(roaming.not_ready <= 1, "{words:?}: {roaming:?}");
        let mobility = summary.mobility.as_ref().unwrap();
        assert_eq!((mobility.registrations_sent, mobility.registrations_accepted), (3, 3), "{words:?}");
        for flow in &summary.flows {
            assert!(flow.last_delivery.unwrap() > careof_base::Instant::from_secs(26), "{words:?}");
            assert!(flow.goodput_bps > 0.3e6, "{words:?}: {}", flow.goodput_bps);
        }
        let micro = summary.micro_mobility.as_ref().unwrap();
        assert!(micro.messages_sent > roaming.handovers, "{words:?}: {micro:?}");
    }
}

#[test]
fn a_gap_is_what_the_link_layer_takes_and_one_message_to_the_base_station() {
    let (summary, _) = run(&["handover.interruption=200 ms"], false);
    let roaming = summary.roaming.unwrap();
    let (least, most) = (roaming.interruption_min.unwrap(), roaming.interruption_max.unwrap());
    // The message and its confirmation, of less than 100 bytes each, over a radio of 5 ms and 1 Mbit/s.
    assert!(least > Duration::from_millis(210) && most < Duration::from_millis(213), "{least:?} {most:?}");
}

#[test]
fn the_handovers_of_a_domain_have_the_phases_of_802_11_drawn_for_each() {
    let phases = "link_layer={ scan_time = { min = \"100 ms\", max = \"300 ms\" }, authentication_time = \"1 ms\", reassociation_time = \"1 ms\" }";
    let (summary, _) = run(&["handover=[{ every = \"3 s\" }]", &format!("handover.{phases}")], false);
    let roaming = summary.roaming.unwrap();
    assert!((27..=30).contains(&roaming.handovers), "{roaming:?}");
    let (least, most) = (roaming.interruption_min.unwrap(), roaming.interruption_max.unwrap());
    // As with a gap that is given, 10 to 13 ms behind it.
    assert!(least > Duration::from_millis(112) && most < Duration::from_millis(315), "{least:?} {most:?}");
    assert!(most - least > Duration::from_millis(100), "{least:?} {most:?}");
}

#[test]
fn nothing_is_lost_where_base_stations_overlap_and_the_network_sends_to_both() {
    let (summary, _) = run(&["handover.overlap=300 ms", "micro_mobility.bicast=300 ms"], false);
    for flow in &summary.flows {
        assert_eq!((flow.segments_retransmitted, flow.timeouts), (0, 0), "{}", flow.name);
        assert!(flow.network_duplicates > 0, "{}", flow.name);
    }
    let micro = summary.micro_mobility.unwrap();
    assert!(micro.copies > 0 && micro.packets_kept == 0, "{micro:?}");
}

#[test]
fn a_candidate_with_a_buffer_has_what_the_old_base_station_could_not_deliver() {
    let trigger = ["micro_mobility.trigger=source", "handover.interruption=300 ms"];
    let (without, _) = run(&trigger, false);
    let (with, _) = run(&[&trigger[..], &["micro_mobility.buffer={ packets = 50 }"]].concat(), false);
    let timeouts = |summary: &Summary| summary.flows.iter().map(|flow| flow.timeouts).sum::<u64>();
    let kept = |summary: &Summary| summary.micro_mobility.as_ref().unwrap().packets_kept;
    assert!(kept(&with) > 0 && kept(&without) == 0);
    assert!(without.packets.dropped.contains_key("not-there-yet"), "{:?}", without.packets.dropped);
    assert!(timeouts(&without) > 0);
}

#[test]
fn mobile_nodes_of_one_domain_reach_each_other_through_its_gateway() {
    // Without a spread the retransmission timer doubles from one gap into the next.
    let spread = "handover.spread=900 ms";
    let peers =
        ["flow.download.from=mobile-1", "flow.download.to=mobile-2", "handover.interruption=50 ms", spread];
    let (summary, _) = run(&peers, false);
    assert_eq!(summary.flows.len(), 1);
    assert!(summary.flows[0].goodput_bps > 0.2e6, "{}", summary.flows[0].goodput_bps);
    let uplink = summary.links.iter().find(|link| link.name == "uplink.up").unwrap();
    assert!(uplink.delivered_bytes < 20_000, "the segments stay inside: {}", uplink.delivered_bytes);
}

#[test]
fn the_same_walk_twice_is_the_same_run_watched_or_not() {
    let words = [
        "handover.walk=random-waypoint",
        "handover.spread=500 ms",
        "micro_mobility.trigger=source",
        "micro_mobility.buffer=true",
        "handover.interruption=100 ms",
    ];
    let (blind, _) = run(&words, false);
    let (watched, events) = run(&words, true);
    assert_eq!(summary_json(&blind), summary_json(&watched));
    assert_ne!(blind.digest, run(&[&words[..], &["seed=2"]].concat(), false).0.digest);
    let (kinds, causes) = (events.by_name("kind").unwrap(), events.by_name("cause").unwrap());
    let count = |kind: &str, cause: &str| {
        let is_it = |row: &usize| kinds.text(*row) == Some(kind) && causes.text(*row) == Some(cause);
        (0..events.rows()).filter(is_it).count() as u64
    };
    let handovers = blind.roaming.unwrap().handovers;
    assert_eq!(
        (count("handover", "initiated"), count("handover", "announced") >= handovers),
        (handovers + 3, true)
    );
    assert!(count("host-route", "updated") >= handovers);
    assert_eq!(count("packet-derived", "copy"), blind.micro_mobility.unwrap().copies);
}

#[test]
fn a_given_walk_is_walked() {
    let words = ["handover.walk=[\"station-5\", \"station-1\", \"station-4\"]", "mobility.nodes=1"];
    let (summary, _) = run(&words, false);
    let delivered = |n: usize| {
        let name = format!("cell-{n}.down");
        summary.links.iter().find(|link| link.name == name).unwrap().delivered_packets
    };
    assert!([1, 4, 5].iter().all(|n| delivered(*n) > 100));
    // Advertisements of the gateway's foreign agent go to all cells.
    assert!([2, 3].iter().all(|n| delivered(*n) < 100));
}

/// A channel of 802.11 in place of the radios.
const CHANNEL: [&str; 2] = [
    "media.air={ kind = \"802.11b\", rate = \"11 Mbit/s\", queue = \"20 packets\" }",
    "links.radio={ medium = \"air\", between = [\"station-*\", \"mobile-*\"] }",
];

#[test]
fn mobile_nodes_that_share_a_channel_go_from_station_to_station_and_no_packet_is_unaccounted_for() {
    for words in BLOCKS {
        // All books are balanced at the end of a run.
        let (summary, _) = run(&[words, &CHANNEL].concat(), false);
        let roaming = summary.roaming.as_ref().unwrap();
        assert!((27..=30).contains(&roaming.handovers), "{words:?}: {roaming:?}");
        assert!(roaming.not_ready <= 1, "{words:?}: {roaming:?}");
        for flow in &summary.flows {
            assert!(flow.last_delivery.unwrap() > careof_base::Instant::from_secs(26), "{words:?}");
        }
    }
}

#[test]
fn stations_of_one_channel_share_its_rate_while_the_network_sends_to_both() {
    let air = "media.air={ kind = \"802.11b\", rate = \"2 Mbit/s\" }";
    let of = |overlap: &str| {
        let (bicast, overlap) =
            (format!("micro_mobility.bicast={overlap}"), format!("handover.overlap={overlap}"));
        let window = "flow.download.tcp={ profile = \"sack\", window = \"20000 B\" }";
        let words = ["mobility.nodes=1", CHANNEL[1], air, window, &bicast, &overlap];
        run(&words, false).0.flows[0].goodput_bps
    };
    // 2 of 3 seconds instead of a fifteenth of them, and every packet in them is on the air twice.
    assert!(of("2 s") < 0.85 * of("200 ms"));
}

#[test]
fn a_mobile_node_tells_the_network_when_it_hears_the_next_advertisement() {
    let words = ["handover.interruption=200 ms", "micro_mobility.advertisement_interval=700 ms"];
    let (summary, _) = run(&words, false);
    let roaming = summary.roaming.unwrap();
    let (least, most) = (roaming.interruption_min.unwrap(), roaming.interruption_max.unwrap());
    assert!(least > Duration::from_millis(210), "{least:?}");
    assert!(most > Duration::from_millis(400) && most < Duration::from_millis(913), "{most:?}");
    assert!((27..=30).contains(&roaming.handovers) && roaming.not_ready <= 1, "{roaming:?}");
}

#[test]
fn a_candidate_without_a_buffer_does_not_wait_to_be_told_who_is_there() {
    let gap =
        ["handover.interruption=50 ms", "micro_mobility.advertisement_interval=2 s", "mobility.nodes=1"];
    let goodput = |more: &[&str]| run(&[&gap[..], more].concat(), false).0.flows[0].goodput_bps;
    // Without a trigger nothing comes before the mobile node has heard where it is.
    assert!(goodput(&["micro_mobility.trigger=source"]) > goodput(&[]));
}

#[test]
fn a_walk_out_of_a_file_has_its_own_times() {
    let folder = std::env::temp_dir().join(format!("careof-walk-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("commute.csv"), "time_s,station\n0,station-2\n4,station-5\n20.5,station-1\n")
        .unwrap();
    let text = DOMAIN.replace("every = \"3 s\"", "walk = \"commute.csv\"").replace("nodes = 3", "nodes = 1");
    let file = folder.join("domain.toml");
    fs::write(&file, text).unwrap();
    let scenario = Scenario::load(&file, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    fs::remove_dir_all(&folder).unwrap();
    let observation = Observation { trace: true, ..Observation::default() };
    let (summary, _) = finish(Simulation::new(scenario, "domain.toml", 0, observation).unwrap());
    assert_eq!(summary.roaming.unwrap().handovers, 2);
    let delivered = |n: usize| {
        let name = format!("cell-{n}.down");
        summary.links.iter().find(|link| link.name == name).unwrap().delivered_packets
    };
    // 4, 16.5 and 9.5 seconds of a download; advertisements of the foreign agent go to all cells.
    assert!(delivered(5) > delivered(1) && delivered(1) > delivered(2) && delivered(2) > 100);
    assert!([3, 4].iter().all(|n| delivered(*n) < 100));
}

#[test]
fn every_ready_scenario_of_a_domain_runs_and_its_books_balance() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let name = file.display().to_string();
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        if scenario.mobility.as_ref().is_none_or(|mobility| mobility.micro_mobility.is_none()) {
            continue;
        }
        let (summary, _) = finish(Simulation::new(scenario, &name, 0, Observation::default()).unwrap());
        let roaming = summary.roaming.unwrap();
        let expected = if name.contains("seven-hosts") { 10..=10 } else { 19..=20 };
        assert!(expected.contains(&roaming.handovers), "{name}: {roaming:?}");
        assert!(roaming.not_ready <= 1, "{name}: {roaming:?}");
        assert!(summary.flows[0].goodput_bps > 0.7e6, "{name}: {}", summary.flows[0].goodput_bps);
    }
}

#[test]
fn a_hundred_handovers_without_a_gap_lose_nothing_and_give_twice_what_the_scheme_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility");
    for file in
        ["cellular-ip-semisoft.toml", "seven-hosts-cellular-ip-semisoft.toml", "seven-hosts-mm-bicast.toml"]
    {
        let words = overrides(&["duration=100500 ms", "handover.every=1 s", "handover.spread=0 s"]);
        let scenario = Scenario::load(&folder.join(file), &words).unwrap_or_else(|errors| panic!("{errors}"));
        let (summary, _) = finish(Simulation::new(scenario, file, 0, Observation::default()).unwrap());
        assert_eq!(summary.roaming.as_ref().unwrap().handovers, 100, "{file}");
        let (flow, micro) = (&summary.flows[0], summary.micro_mobility.as_ref().unwrap());
        let told = || format!("{file}: {}", summary_json(&summary));
        // What was sent again had arrived.
        assert_eq!(flow.segments_retransmitted, flow.unnecessary_retransmissions, "{}", told());
        assert_eq!((flow.timeouts, flow.stalls), (0, 0), "{}", told());
        assert!(flow.network_duplicates <= micro.copies, "{}", told());
    }
}

#[test]
fn a_thousand_mobile_nodes_share_a_domain() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility/car-set.toml");
    let wide = "{ rate = \"10 Gbit/s\", delay = \"2 ms\", queue = \"5000 packets\", between = ";
    let link = |name: &str, ends: &str| format!("links.{name}={wide}{ends} }}");
    let links = [
        link("server", "[\"correspondent\", \"home-agent\"]"),
        link("uplink", "[\"home-agent\", \"gateway\"]"),
        link("core", "[\"gateway\", \"core-*\"], count = 2"),
        link("area", "[\"core-*\", \"area-*\"], count = 7"),
        link("cell", "[\"area-*\", \"station-*\"], count = 21"),
    ];
    let mut words =
        vec!["mobility.nodes=1000", "flow.download.to=mobile-*", "flow.download.size=20 kB", "duration=7 s"];
    words.extend(links.iter().map(String::as_str));
    let scenario = Scenario::load(&file, &overrides(&words)).unwrap_or_else(|errors| panic!("{errors}"));
    let (summary, _) = finish(Simulation::new(scenario, "thousand", 0, Observation::default()).unwrap());
    let mobility = summary.mobility.unwrap();
    assert_eq!(mobility.registrations_accepted, 1000);
    assert!(summary.roaming.unwrap().handovers > 1000);
}
