//! A small MTU in the middle of a tunnel: told, filtered, clamped, found.

use crate::common::finish;
use careof_metrics::{FlowSummary, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A tunnel of 1400 bytes: between the router that the home agent sends to and the one before the mobile node.
const WORLD: &str = r#"
duration = "40 s"
[links]
core = { rate = "100 Mbit/s", delay = "5 ms", between = ["home-agent", "near"] }
narrow = { rate = "20 Mbit/s", delay = "5 ms", mtu = 1400, between = ["near", "far"] }
wifi = { rate = "20 Mbit/s", delay = "5 ms", between = ["far", "mobile"] }
[mobility]
start = "wifi"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
size = "2 MB"
tcp = "linux"
"#;

const FILTERED: &str = "links.core.icmp_up=filtered";

fn run(overrides: &[&str]) -> (Summary, Columns) {
    run_with("", overrides)
}

/// The same with more in the file.
fn run_with(more: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("test.toml", &format!("{WORLD}{more}"), &overrides)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

fn only_flow(summary: &Summary) -> &FlowSummary {
    let [flow] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    flow
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

fn rows<'a>(events: &'a Columns, kind: &'a str) -> impl Iterator<Item = usize> + 'a {
    (0..events.rows()).filter(move |row| text(events, "kind", *row) == kind)
}

/// What the correspondent was told to fit, in order, and by how many messages.
fn told(events: &Columns, node: &str) -> Vec<String> {
    rows(events, "message-received")
        .filter(|row| {
            text(events, "message", *row) == "DestinationUnreachable" && text(events, "node", *row) == node
        })
        .map(|row| text(events, "detail", row).to_owned())
        .collect()
}

#[test]
fn the_entry_of_a_tunnel_relays_what_a_router_inside_says_and_remembers_it() {
    let (summary, events) = run(&["mobility.leave_room=false"]);
    let flow = only_flow(&summary);
    assert!(flow.complete);
    let needed = |mtu: u32| format!("fragmentation needed and DF set, next hop {mtu} bytes");
    // First what fits the home agent's own link, then what the router inside says, less the tunnel's header.
    let correspondent = told(&events, "correspondent");
    assert_eq!(correspondent.iter().map(String::as_str).next(), Some(needed(1480).as_str()));
    assert!(correspondent.contains(&needed(1380)), "{correspondent:?}");
    assert!(told(&events, "home-agent").contains(&needed(1400)));
    assert!(summary.black_holes.is_empty() && summary.icmp_filtered.is_empty());
}

#[test]
fn later_packets_that_are_too_large_are_answered_by_the_entry_at_once() {
    // A second connection begins with the segment size of its links.
    let second = "[[flow]]\nname = \"second\"\nfrom = \"correspondent\"\nto = \"mobile\"\nsize = \"100 kB\"\nstart = \"20 s\"\n";
    let (summary, events) = run_with(second, &[]);
    assert!(summary.flows.iter().all(|flow| flow.complete));
    let times = events.by_name("time_ns").unwrap();
    let late = |node: &str| {
        rows(&events, "message-received")
            .filter(|row| times.number(*row) >= Some(20_000_000_000) && text(&events, "node", *row) == node)
            .filter(|row| text(&events, "message", *row) == "DestinationUnreachable")
            .count()
    };
    assert_eq!(late("home-agent"), 0, "nothing has to get as far as the router again");
    assert!(late("correspondent") > 0);
}

#[test]
fn a_filtered_message_leaves_a_black_hole_that_the_summary_names() {
    let (summary, _) = run(&[FILTERED]);
    let flow = only_flow(&summary);
    assert_eq!((flow.complete, flow.bytes_delivered), (false, 0));
    assert!(summary.packets.dropped["icmp-filtered"] > 3);
    let [filtered] = &summary.icmp_filtered[..] else { panic!("{:?}", summary.icmp_filtered) };
    assert_eq!((filtered.link.as_str(), filtered.mtu_bytes), ("core.up", 1400));
    assert_eq!(filtered.messages, summary.packets.dropped["icmp-filtered"]);
    assert!(summary.black_holes.is_empty());
}

#[test]
fn with_the_assist_the_download_completes_and_the_summary_says_what_was_met() {
    let (summary, events) = run(&[FILTERED, "assist=black-hole"]);
    let flow = only_flow(&summary);
    assert!(flow.complete, "{flow:?}");
    let met: Vec<_> =
        summary.black_holes.iter().map(|hole| (hole.failed_bytes, hole.assumed_mtu_bytes)).collect();
    // The table of RFC 1191 leads below 1400 in two steps.
    assert_eq!(met, [(1500, 1492), (1492, 1006)]);
    let last = summary.black_holes.last().unwrap();
    assert_eq!((last.node.as_str(), last.flow.as_str()), ("home-agent", "download"));
    assert!(last.senders_told > 0 && last.packets_in_fragments > 0, "{last:?}");
    assert!(last.at.since_start().as_secs() < 15, "{last:?}");
    let done: Vec<_> = rows(&events, "assist").map(|row| text(&events, "cause", row)).collect();
    for what in ["trial", "black-hole", "told-sender", "in-fragments"] {
        assert!(done.contains(&what), "{what} in {done:?}");
    }
}

#[test]
fn it_completes_though_nobody_can_be_told() {
    // What the home agent says is filtered on its way to the correspondent, too. Its own link is no smaller than the tunnel.
    let (summary, _) = run(&[
        FILTERED,
        "links.ethernet={ preset = \"ethernet-10m\", icmp = \"filtered\", icmp_up = \"filtered\" }",
        "links.core.mtu=1520",
        "assist=black-hole",
    ]);
    let flow = only_flow(&summary);
    assert!(flow.complete, "{flow:?}");
    let last = summary.black_holes.last().unwrap();
    assert!(last.packets_in_fragments > 1_000, "every full packet: {last:?}");
    assert!(summary.packets.reassembled > 2_000);
}

#[test]
fn a_mobile_node_finds_the_black_hole_on_the_way_home() {
    let (summary, _) = run(&[
        "links.narrow.icmp=filtered",
        "links.wifi.icmp=filtered",
        "links.core.icmp=filtered",
        "flow.from=mobile",
        "flow.to=correspondent",
        "mobility.routing=reverse-tunnel",
        "assist={ use = \"black-hole\", black-hole = { at = \"mobile\" } }",
    ]);
    let flow = only_flow(&summary);
    assert!(flow.complete, "{flow:?}");
    let last = summary.black_holes.last().unwrap();
    assert_eq!((last.node.as_str(), last.towards.as_str()), ("mobile", "wifi.up"));
}

#[test]
fn clamped_segments_never_meet_the_black_hole() {
    let clamp = "assist={ use = \"mss-clamp\", mss-clamp = { mtu = 1400 } }";
    let (summary, events) = run(&[FILTERED, clamp]);
    assert!(only_flow(&summary).complete);
    assert!(!summary.packets.dropped.contains_key("fragmentation-needed"));
    assert!(summary.icmp_filtered.is_empty());
    let lengths = events.by_name("len_bytes").unwrap();
    let longest = rows(&events, "segment-received").filter_map(|row| lengths.number(row)).max();
    // 1400 bytes less 20 of the tunnel, 40 of IP and TCP and 12 of timestamps.
    assert_eq!(longest, Some(1328));
}

#[test]
fn a_sender_that_probes_needs_no_help() {
    for profile in ["linux", "sack", "newreno"] {
        let tcp = format!("flow.tcp={{ profile = \"{profile}\", mtu_probing = true }}");
        let (summary, _) = run(&[FILTERED, &tcp]);
        let flow = only_flow(&summary);
        assert!(flow.complete, "{flow:?}");
        assert!(flow.timeouts >= 3, "{flow:?}");
    }
}

#[test]
fn without_path_mtu_discovery_there_is_no_black_hole() {
    let (summary, _) =
        run(&[FILTERED, "flow.tcp={ profile = \"linux\", pmtu_discovery = false }", "assist=black-hole"]);
    assert!(only_flow(&summary).complete);
    assert!(summary.black_holes.is_empty());
}

#[test]
fn echoes_and_registrations_pass_a_filter() {
    let all = "links.core.icmp=filtered";
    let (summary, _) =
        run(&[all, "links.narrow.icmp=filtered", "links.wifi.icmp=filtered", "links.narrow.mtu=1520"]);
    assert!(only_flow(&summary).complete);
    assert!(!summary.packets.dropped.contains_key("icmp-filtered"));
}

/// The ready scenarios: handovers of every kind, outages, losses, slow links; and no black hole among them.
#[test]
fn no_ready_scenario_is_taken_for_a_black_hole() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut tried = 0;
    for folder in [root.clone(), root.join("overheads")] {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
            if file.file_stem().is_some_and(|name| name == "black-hole") {
                continue;
            }
            for place in ["home-agent", "mobile"] {
                let assist =
                    format!("assist={{ use = \"black-hole\", black-hole = {{ at = \"{place}\" }} }}");
                let loaded = Scenario::load(file, &[assist]);
                let scenario = match loaded {
                    Ok(scenario) => scenario,
                    // No tunnel, no assist.
                    Err(error) if error.to_string().contains("nobody moves") => continue,
                    Err(error) => panic!("{error}"),
                };
                if scenario.flows.iter().any(|flow| flow.mptcp.is_some()) {
                    // Multipath TCP is the kernel's, and passes the tunnel by.
                    continue;
                }
                if place == "home-agent"
                    && scenario.mobility.as_ref().is_some_and(|mobility| mobility.route_optimization)
                {
                    // Packets pass the home agent by.
                    continue;
                }
                let mut simulation =
                    Simulation::new(scenario, "test.toml", 0, Observation::default()).unwrap();
                simulation.advance(careof_base::Instant::MAX).unwrap();
                let summary = simulation.finish().unwrap();
                assert_eq!(summary.black_holes, [], "{} at {place}", file.display());
                tried += 1;
            }
        }
    }
    assert!(tried >= 30, "{tried}");
}

/// What each end announces, and the most data that a segment carries on a path of 1500 bytes: as a kernel's TCP has it from its routes.
#[test]
fn a_flow_begins_with_segments_that_the_tunnel_takes() {
    let wide = "links.narrow.mtu=1500";
    for (more, longest, refused) in [
        (&[wide][..], 1_428, 0),
        (&[wide, "mobility.routing=reverse-tunnel"], 1_428, 0),
        (&[wide, "mobility.encapsulation=gre"], 1_424, 0),
        (&[wide, "flow.from=mobile", "flow.to=correspondent"], 1_428, 0),
        (&[wide, "mobility.leave_room=false"], 1_448, 10),
    ] {
        let (summary, events) = run(more);
        let data = events.by_name("len_bytes").unwrap();
        let sent = rows(&events, "segment-sent").filter_map(|row| data.number(row)).max();
        assert_eq!(sent, Some(longest), "{more:?}");
        let dropped = summary.packets.dropped.get("fragmentation-needed").copied();
        assert_eq!(dropped.unwrap_or_default(), refused, "{more:?}");
    }
}
