//! A relay at the home agent that makes two connections of one: what the ends get and see of it, what it may hold, and that nothing
//! gets lost with it in silence.

use crate::common::balanced;
use careof_base::{Duration, Instant};
use careof_metrics::{FlowSummary, Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation, WorldError};
use careof_trace::Columns;

/// A walk out of reach: from one link to another like it, with a second between them.
const OUTAGE: &str = r#"
duration = "30 s"
[links]
first = { rate = "10 Mbit/s", delay = "5 ms", queue = "100 packets" }
second = { rate = "10 Mbit/s", delay = "5 ms", queue = "100 packets" }
[mobility]
protocol = "mobile-ipv4"
routing = "reverse-tunnel"
[[handover]]
at = "8 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "1 s"
[[flow]]
name = "bulk"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "linux"
"#;

const SPLIT: &str = "assist=split";
const UPLOAD: [&str; 2] = ["flow.bulk.from=mobile", "flow.bulk.to=correspondent"];
/// More than the first link carries before the handover, by a quarter.
const ACROSS: &str = "flow.bulk.size=12 MB";
const BYTES: u64 = 12_000_000;

fn simulation(overrides: &[&str], trace: bool) -> Simulation {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario =
        Scenario::parse("test.toml", OUTAGE, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace, ..Observation::default() };
    Simulation::new(scenario, "test.toml", 0, observation).unwrap()
}

fn run(overrides: &[&str]) -> Summary {
    let mut simulation = simulation(overrides, false);
    simulation.advance(Instant::MAX).unwrap();
    balanced(simulation.finish().unwrap())
}

fn traced(overrides: &[&str]) -> (Summary, Columns) {
    let mut simulation = simulation(overrides, true);
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    (balanced(simulation.finish().unwrap()), events)
}

fn flow(summary: &Summary) -> &FlowSummary {
    let [flow] = summary.flows.as_slice() else { panic!("{} flows", summary.flows.len()) };
    flow
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

/// Rows of a kind at a node, in order of time.
fn rows(events: &Columns, kind: &str, node: &str) -> Vec<usize> {
    let is_one = |row: &usize| text(events, "kind", *row) == kind && text(events, "node", *row) == node;
    (0..events.rows()).filter(is_one).collect()
}

fn number(events: &Columns, column: &str, row: usize) -> u64 {
    u64::try_from(events.by_name(column).unwrap().number(row).unwrap()).unwrap()
}

/// What the relay told, in order: what happened, and the bytes.
fn told(events: &Columns) -> Vec<(&str, u64)> {
    let one = |row: usize| (text(events, "cause", row), number(events, "assist_bytes", row));
    rows(events, "assist", "home-agent").into_iter().map(one).collect()
}

/// The most that the relay said it held.
fn most_held(events: &Columns) -> u64 {
    told(events)
        .into_iter()
        .filter(|(what, _)| *what == "hold")
        .map(|(_, bytes)| bytes)
        .max()
        .unwrap_or_default()
}

#[test]
fn a_download_arrives_whole_across_an_outage_of_which_its_sender_notices_nothing() {
    // As much as is lost with the path and comes while there is none, the sender's window included, has room.
    let room = "assist.split.buffer=4 MiB";
    let (split, alone) = (run(&[SPLIT, room, ACROSS]), run(&[ACROSS]));
    for summary in [&split, &alone] {
        let flow = flow(summary);
        assert!(flow.complete && flow.bytes_delivered == BYTES, "{flow:?}");
    }
    let (split, alone) = (flow(&split), flow(&alone));
    assert!(alone.timeouts > 0, "{alone:?}");
    assert_eq!((split.timeouts, split.unnecessary_retransmissions), (0, 0), "{split:?}");
    // It hears of the near network only.
    assert!(split.rtt_min.unwrap() < alone.rtt_min.unwrap() / 10, "{split:?} {alone:?}");
}

#[test]
fn over_ipv6_a_relay_does_what_it_does_over_ipv4() {
    let variants: [(u64, &[&str]); 3] = [
        (4 << 20, &["assist.split.buffer=4 MiB"]),
        (64 << 10, &["assist.split.buffer=64 KiB"]),
        (4 << 20, &["assist.split.buffer=4 MiB", "assist.split.tcp=reno"]),
    ];
    for direction in [&[][..], &UPLOAD] {
        for (buffer, variant) in variants {
            let [ipv4, ipv6] = [&[][..], &["mobility.protocol=mobile-ipv6"]].map(|version| {
                let (summary, events) = traced(&[&[SPLIT, ACROSS], variant, direction, version].concat());
                let said: Vec<_> = told(&events)
                    .into_iter()
                    .filter(|(what, _)| *what != "hold")
                    .map(|(what, _)| what)
                    .collect();
                (summary, most_held(&events), said.join(" "))
            });
            let [one, other] = [&ipv4, &ipv6].map(|(summary, ..)| flow(summary));
            let what = format!("{variant:?} {direction:?}: {one:?} {other:?}");
            assert!(one.complete && other.complete && other.bytes_delivered == BYTES, "{what}");
            assert_eq!(ipv4.2, ipv6.2, "{what}");
            assert_eq!(
                (one.timeouts, one.unnecessary_retransmissions),
                (other.timeouts, other.unnecessary_retransmissions),
                "{what}"
            );
            let seconds = |flow: &FlowSummary| flow.last_delivery.unwrap().since_start().as_secs_f64();
            assert!((0.95..1.1).contains(&(seconds(other) / seconds(one))), "{what}");
            // It is told in eighths of the buffer.
            assert!(ipv4.1.abs_diff(ipv6.1) < buffer / 4, "{what}: {} {}", ipv4.1, ipv6.1);
        }
    }
}

#[test]
fn over_ipv6_segments_too_large_for_the_tunnel_are_the_relays_to_make_smaller() {
    let large = [SPLIT, "flow.bulk.size=1 MB", "mobility.leave_room=false", "mobility.protocol=mobile-ipv6"];
    let (summary, events) = traced(&large);
    let largest = |node: &str| {
        let rows = rows(&events, "segment-sent", node);
        let later = rows.iter().skip(rows.len() / 4);
        later.map(|row| number(&events, "size_bytes", *row)).max().unwrap()
    };
    assert_eq!((largest("correspondent"), largest("home-agent")), (1500, 1460));
    assert!(
        flow(&summary).complete && summary.packets.dropped["fragmentation-needed"] > 0,
        "{:?}",
        summary.packets
    );
}

#[test]
fn a_relay_is_refused_where_packets_pass_it_by() {
    let overrides =
        [SPLIT, "mobility.protocol=mobile-ipv6", "mobility.route_optimization=true"].map(str::to_owned);
    let scenario = Scenario::parse("test.toml", OUTAGE, &overrides).unwrap();
    let error = Simulation::new(scenario, "test.toml", 0, Observation::default()).err().unwrap();
    assert!(
        matches!(&error, WorldError::Unsupported { key, remedy, .. }
            if key == "mobility.route_optimization" && remedy.contains("\"split\"")),
        "{error}"
    );
}

#[test]
fn a_sender_without_room_waits_for_the_window_and_needs_no_timer_either() {
    let (summary, events) = traced(&[SPLIT, "assist.split.buffer=64 KiB", ACROSS]);
    let flow = flow(&summary);
    assert!(flow.complete && flow.bytes_delivered == BYTES, "{flow:?}");
    assert_eq!(flow.timeouts, 0, "{flow:?}");
    let most = most_held(&events);
    assert!((57_344..=65_536).contains(&most), "{most}");
}

#[test]
fn an_upload_arrives_whole_across_an_outage() {
    for room in ["assist.split.buffer=4 MiB", "assist.split.buffer=16 KiB"] {
        let summary = run(&[&[SPLIT, room, ACROSS][..], &UPLOAD].concat());
        let flow = flow(&summary);
        assert!(flow.complete && flow.bytes_delivered == BYTES, "{flow:?}");
        assert!(
            flow.rtt_max.is_some() && flow.timeouts > 0,
            "the mobile node's own path went away: {flow:?}"
        );
    }
}

#[test]
fn what_the_relay_holds_is_bounded_whichever_side_is_slow() {
    let slow_radio = ["links.first.rate=500 kbit/s", "links.second.rate=200 kbit/s"];
    let slow_wire = [&UPLOAD[..], &["links.ethernet.rate=500 kbit/s"]].concat();
    for slow in [&slow_radio[..], &slow_wire] {
        for (room, bytes) in [("5 kB", 5_000), ("64 KiB", 65_536), ("1 MiB", 1 << 20)] {
            let buffer = format!("assist.split.buffer={room}");
            let how = [
                slow,
                &[
                    SPLIT,
                    &*buffer,
                    "duration=60 s",
                    "flow.bulk.tcp={ profile = \"linux\", window = \"4 MiB\" }",
                    "assist.split.tcp={ profile = \"linux\", window = \"4 MiB\" }",
                ],
            ]
            .concat();
            let (summary, events) = traced(&how);
            let most = most_held(&events);
            assert!(most <= bytes, "{most} of {room}");
            assert!(most > bytes / 2, "{most} of {room}: {:?}", flow(&summary));
            assert!(flow(&summary).bytes_delivered > 1_000_000 / 2, "{:?}", flow(&summary));
        }
    }
}

#[test]
fn without_a_tcp_of_its_own_the_relay_has_the_flows() {
    let digest = |own: &[&str]| run(&[&[SPLIT, "flow.bulk.tcp=reno"], own].concat()).digest;
    let usual = digest(&[]);
    assert_eq!(usual, digest(&["assist.split.tcp=reno"]));
    assert_ne!(usual, digest(&["assist.split.tcp=linux"]));
}

#[test]
fn both_directions_of_a_dialogue_pass() {
    let dialogue = [
        "flow.bulk.kind=request-response",
        "flow.bulk.request=40 kB",
        "flow.bulk.response=300 kB",
        "flow.bulk.requests=25",
    ];
    for direction in [&[][..], &UPLOAD] {
        let summary = run(&[&[SPLIT][..], &dialogue, direction].concat());
        let [responses, requests] = summary.flows.as_slice() else { panic!("{:?}", summary.flows) };
        assert_eq!((responses.bytes_delivered, requests.bytes_delivered), (25 * 300_000, 25 * 40_000));
        assert!(responses.complete && requests.complete, "{responses:?} {requests:?}");
    }
}

#[test]
fn a_connection_that_cannot_be_made_is_refused() {
    // Nothing reaches the correspondent; the relay has accepted before it can know.
    let nobody =
        ["links.ethernet.loss_up=1", "flow.bulk.tcp={ profile = \"sack\", max_retransmissions = 2 }"];
    let (summary, events) = traced(&[&[SPLIT][..], &nobody, &UPLOAD].concat());
    assert_eq!(flow(&summary).bytes_delivered, 0);
    let ends: Vec<_> =
        rows(&events, "flow-end", "mobile").into_iter().map(|row| text(&events, "detail", row)).collect();
    assert_eq!(ends, ["Reset"]);
    let said: Vec<_> =
        told(&events).into_iter().map(|(what, _)| what).filter(|what| *what != "hold").collect();
    assert_eq!(said, ["open", "reset", "close"]);
}

#[test]
fn a_path_that_is_given_up_resets_the_sender() {
    let impatient =
        ["assist.split.tcp={ profile = \"sack\", max_retransmissions = 2 }", "handover.interruption=10 s"];
    let (summary, events) = traced(&[&[SPLIT][..], &impatient].concat());
    let ends = rows(&events, "flow-end", "correspondent");
    let said: Vec<_> = ends.iter().map(|row| text(&events, "detail", *row)).collect();
    assert_eq!(said, ["Reset"], "{:?}", flow(&summary));
    let at = number(&events, "time_ns", ends[0]);
    assert!((8_000_000_000..18_000_000_000).contains(&at), "{at}");
}

#[test]
fn a_fin_follows_all_data_and_both_connections_end() {
    for direction in [&[][..], &UPLOAD] {
        let (summary, events) =
            traced(&[&[SPLIT, "flow.bulk.size=1 MB", "duration=80 s"][..], direction].concat());
        assert!(flow(&summary).complete, "{:?}", flow(&summary));
        for node in ["correspondent", "mobile"] {
            let ends = rows(&events, "flow-end", node);
            let said: Vec<_> = ends.iter().map(|row| text(&events, "detail", *row)).collect();
            assert_eq!(said, ["Closed"], "{node}");
        }
        let said = told(&events);
        assert_eq!(said[0], ("open", 0));
        assert_eq!(said[said.len() - 1], ("close", 1_000_000));
    }
}

#[test]
fn the_relays_own_connection_to_the_mobile_node_is_in_the_trace() {
    let (_, events) = traced(&[SPLIT, ACROSS]);
    let states = rows(&events, "tcp-state", "home-agent");
    assert!(states.len() > 100, "{}", states.len());
    // It is the relay to which the path is lost.
    assert!(!rows(&events, "timeout", "home-agent").is_empty());
    assert!(rows(&events, "timeout", "correspondent").is_empty());
    // Bytes have one number wherever they are seen: what the relay sent last is what the correspondent did.
    let sent = |node: &str| {
        let rows = rows(&events, "segment-sent", node);
        rows.into_iter()
            .map(|row| number(&events, "seq", row) + number(&events, "len_bytes", row))
            .max()
            .unwrap()
    };
    assert_eq!(sent("home-agent"), sent("correspondent"));
}

#[test]
fn a_flow_that_is_excepted_passes_untouched() {
    let excepted = "assist={ use = \"split\", except = [{ port = 5001 }] }";
    let other = "assist={ use = \"split\", except = [{ prefix = \"correspondent\" }] }";
    for how in [[excepted], [other]] {
        let (summary, events) = traced(&how);
        assert!(flow(&summary).bytes_delivered > 1_000_000, "{:?}", flow(&summary));
        for kind in ["segment-sent", "segment-received", "tcp-state", "assist"] {
            assert!(rows(&events, kind, "home-agent").is_empty(), "{how:?} {kind}");
        }
    }
    // It makes no difference which assist it is that leaves them alone.
    let digest = |assist: &str| run(&[assist]).digest;
    assert_eq!(digest(excepted), digest("assist={ use = \"lcd-kick\", except = [{ port = 5001 }] }"));
    assert_ne!(digest(excepted), digest(SPLIT));
}

#[test]
fn assists_of_the_agent_and_of_the_mobile_node_help_the_relay() {
    let with = |others: &str| {
        let assist = format!("assist=split{others}");
        let summary = run(&[&*assist, "assist.split.tcp=linux", "assist.split.buffer=1 MiB", ACROSS]);
        assert!(
            flow(&summary).complete && flow(&summary).bytes_delivered == BYTES,
            "{others} {:?}",
            flow(&summary)
        );
        summary
    };
    let alone = flow(&with("")).last_delivery.unwrap();
    let replayed = with("+replay");
    assert!(flow(&replayed).packets_replayed > 10, "{replayed:?}");
    assert!(flow(&replayed).last_delivery.unwrap() < alone, "{replayed:?}");
    let kicked = with("+lcd-kick");
    assert!(flow(&kicked).unreachables_injected > 0, "{kicked:?}");
    for others in [
        "+hold-last",
        "+window-clamp",
        "+path-queue",
        "+buffer-forward",
        "+fast-retransmit",
        "+rto-fast-decrease",
    ] {
        with(others);
    }
}

#[test]
fn segments_too_large_for_the_tunnel_are_the_relays_to_make_smaller() {
    // 1500 bytes do not fit into a tunnel over a link of 1500: the agent tells the relay, which is itself.
    let (summary, events) = traced(&[SPLIT, "flow.bulk.size=1 MB", "mobility.leave_room=false"]);
    let largest = |node: &str| {
        let rows = rows(&events, "segment-sent", node);
        // The first flight is too large for the tunnel; it is sent again.
        let later = rows.iter().skip(rows.len() / 4);
        later.map(|row| number(&events, "size_bytes", *row)).max().unwrap()
    };
    assert_eq!((largest("correspondent"), largest("home-agent")), (1500, 1480));
    assert!(
        flow(&summary).complete && summary.packets.dropped["fragmentation-needed"] > 0,
        "{:?}",
        summary.packets
    );
    // Without path MTU discovery there are fragments, which the relay puts together.
    let cut = [
        "flow.bulk.tcp={ profile = \"sack\", pmtu_discovery = false }",
        "links.ethernet.mtu=1000",
        "flow.bulk.size=1 MB",
    ];
    for direction in [&[][..], &UPLOAD] {
        let summary = run(&[&[SPLIT][..], &cut, direction].concat());
        assert!(flow(&summary).complete, "{:?}", flow(&summary));
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_a_relay_however_the_run_is_cut_and_looked_at() {
    for direction in [&[][..], &UPLOAD] {
        let how = [&["assist=split+replay"][..], direction].concat();
        let at_once = summary_json(&run(&how));
        let mut pieces = simulation(&how, true);
        let mut until = Instant::ZERO;
        while pieces.advance(until).unwrap() < Instant::ZERO + pieces.duration() {
            pieces.take_events();
            until += Duration::from_micros(123_457);
        }
        assert_eq!(at_once, summary_json(&pieces.finish().unwrap()));
    }
}

#[test]
fn a_relay_with_the_tcp_of_a_kernel_is_refused_by_the_key() {
    let overrides = [SPLIT, "assist.split.tcp={ variant = \"kernel\" }"].map(str::to_owned);
    let scenario = Scenario::parse("test.toml", OUTAGE, &overrides).unwrap();
    let error = Simulation::new(scenario, "test.toml", 0, Observation::default()).err().unwrap();
    assert!(
        matches!(&error, WorldError::Unsupported { key, .. } if key == "assist.split.tcp.variant"),
        "{error}"
    );
}

#[test]
fn a_relay_at_a_base_station_is_refused() {
    let overrides =
        [SPLIT, "assist.split.at=foreign-agent", "mobility.care_of=foreign-agent"].map(str::to_owned);
    let scenario = Scenario::parse("test.toml", OUTAGE, &overrides).unwrap();
    let error = Simulation::new(scenario, "test.toml", 0, Observation::default()).err().unwrap();
    assert!(matches!(&error, WorldError::Unsupported { key, .. } if key == "assist.split.at"), "{error}");
}
