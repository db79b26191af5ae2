//! Assists in whole worlds: what they do for flows across handovers, and that nothing gets lost with them.

use crate::common::balanced;
use careof_base::{Duration, Instant};
use careof_metrics::{FlowSummary, HandoverSummary, Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A walk out of reach: from one link to another like it, with nothing between them.
const OUTAGE: &str = r#"
duration = "30 s"
[links]
first = { rate = "10 Mbit/s", delay = "5 ms", queue = "100 packets" }
second = { rate = "10 Mbit/s", delay = "5 ms", queue = "100 packets" }
[mobility]
protocol = "mobile-ipv4"
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

const UPLOAD: [&str; 2] = ["flow.bulk.from=mobile", "flow.bulk.to=correspondent"];

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn simulation(text: &str, overrides: &[&str], trace: bool) -> Simulation {
    let observation = Observation { trace, ..Observation::default() };
    Simulation::new(scenario(text, overrides), "test.toml", 0, observation).unwrap()
}

fn run_until(text: &str, overrides: &[&str], until: Instant) -> Summary {
    let mut simulation = simulation(text, overrides, false);
    simulation.advance(until).unwrap();
    balanced(simulation.finish().unwrap())
}

fn run(text: &str, overrides: &[&str]) -> Summary {
    run_until(text, overrides, Instant::MAX)
}

fn only<T>(all: &[T]) -> &T {
    let [one] = all else { panic!("{} of them", all.len()) };
    one
}

fn flow(summary: &Summary) -> &FlowSummary {
    only(&summary.flows)
}

fn handover(summary: &Summary) -> &HandoverSummary {
    only(&summary.handovers)
}

fn rows<'a>(events: &'a Columns, kind: &'a str) -> impl Iterator<Item = usize> + 'a {
    let kinds = events.by_name("kind").unwrap();
    (0..events.rows()).filter(move |row| kinds.text(*row) == Some(kind))
}

/// The stall and the round trip of the new path, for every congestion control, two round trips and three outages.
fn stalls(direction: &[&str], assist: &str) -> Vec<(String, Duration, Duration)> {
    let mut stalls = Vec::new();
    for congestion in ["reno", "cubic", "bbr"] {
        for delay in ["5 ms", "50 ms"] {
            for outage in ["0.5 s", "1 s", "3 s"] {
                let how = [
                    format!("flow.bulk.tcp={{ profile = \"linux\", congestion = \"{congestion}\" }}"),
                    format!("links.first.delay={delay}"),
                    format!("links.second.delay={delay}"),
                    format!("handover.interruption={outage}"),
                    format!("assist={assist}"),
                ];
                let how: Vec<&str> =
                    how.iter().map(String::as_str).chain(direction.iter().copied()).collect();
                let summary = run(OUTAGE, &how);
                let after = handover(&summary);
                // Ten packets take less than four round trips here.
                let round_trip = after.recovery_window.unwrap() / 4;
                let stall = after.stall_after.unwrap_or(Duration::MAX);
                stalls.push((format!("{congestion}, {delay}, {outage}"), stall, round_trip));
            }
        }
    }
    stalls
}

#[test]
fn a_download_goes_on_within_a_round_trip_when_the_home_agent_replays() {
    for (case, stall, round_trip) in stalls(&[], "replay") {
        assert!(stall <= round_trip, "{case}: {stall:?}, and a round trip is {round_trip:?}");
    }
    for (case, stall, round_trip) in stalls(&[], "none") {
        assert!(stall > round_trip, "{case}: {stall:?} without help");
    }
}

#[test]
fn a_replay_repeats_next_to_nothing_that_has_arrived() {
    // The acknowledgements of half a round trip, 42 segments, died with the path.
    for (way, direction) in [("down", &[][..]), ("up", &UPLOAD)] {
        for congestion in ["reno", "cubic", "bbr"] {
            let how = [
                format!("flow.bulk.tcp={{ profile = \"linux\", congestion = \"{congestion}\" }}"),
                "links.first.delay=50 ms".to_owned(),
                "links.second.delay=50 ms".to_owned(),
                "assist=default".to_owned(),
            ];
            let how: Vec<&str> = how.iter().map(String::as_str).chain(direction.iter().copied()).collect();
            let summary = run(OUTAGE, &how);
            let duplicates = flow(&summary).network_duplicates;
            assert!(duplicates <= 4, "{way}, {congestion}: {duplicates}");
        }
    }
}

#[test]
fn an_upload_goes_on_within_a_round_trip_when_the_mobile_node_replays() {
    for (case, stall, round_trip) in stalls(&UPLOAD, "replay") {
        // Half a round trip, and what had arrived but not been acknowledged here: the other half, and of 1.2 ms each the two
        // segments for which a receiver may wait (RFC 5681 section 4.2), the one under way and the one that brings news.
        let most = round_trip + Duration::from_micros(4 * 1200);
        assert!(stall <= most, "{case}: {stall:?}, and a round trip is {round_trip:?}");
    }
    for (case, stall, round_trip) in stalls(&UPLOAD, "none") {
        assert!(stall > 2 * round_trip, "{case}: {stall:?} without help");
    }
}

#[test]
fn what_an_assist_does_stands_in_the_summary_and_in_the_trace() {
    let mut simulation = simulation(OUTAGE, &["assist=replay"], true);
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    let summary = balanced(simulation.finish().unwrap());
    let of_assists: Vec<usize> = rows(&events, "assist").collect();
    let text = |column: &str, row: usize| events.by_name(column).unwrap().text(row).unwrap().to_owned();
    let first = of_assists[0];
    let said = ["node", "flow", "assist", "cause"].map(|column| text(column, first));
    assert_eq!(said, ["home-agent", "bulk", "replay", "replay"]);
    let number = |column: &str, row: usize| events.by_name(column).unwrap().number(row).unwrap();
    let packets = number("assist_packets", first);
    assert!(number("assist_bytes", first) > 1000 * packets && packets > 10, "{packets}");

    let flow = flow(&summary);
    assert!(flow.packets_replayed > 10, "{flow:?}");
    // The home agent knows of the path half a round trip before the mobile node, and sees the answer to what it sent.
    let stall = flow.assist_stall.unwrap();
    assert!(stall < handover(&summary).recovery_window.unwrap() / 2, "{stall:?}");
    let after = handover(&summary);
    assert_eq!(only(&after.flows).packets_replayed, flow.packets_replayed);
    assert!(after.goodput_after_share.unwrap() > 0.95, "{after:?}");

    let alone = run(OUTAGE, &[]);
    let share = |summary: &Summary| handover(summary).goodput_after_share.unwrap();
    assert!(share(&alone) < share(&summary), "{} {}", share(&alone), share(&summary));
    let counters = self::flow(&alone);
    assert_eq!((counters.packets_replayed, counters.packets_held, counters.assist_stall), (0, 0, None));
}

/// Onto a link so slow that a replay takes seconds, and by reverse tunnel, so that everything passes the home agent.
const ONTO_A_SLOW_LINK: [&str; 6] = [
    "links.second.rate=200 kbit/s",
    "links.second.delay=80 ms",
    "mobility.routing=reverse-tunnel",
    "handover.interruption=600 ms",
    "duration=40 s",
    "assist=replay",
];

#[test]
fn packets_that_wait_in_an_assist_when_the_run_ends_count_as_queued() {
    let mut most_held = 0;
    for direction in [&[][..], &UPLOAD] {
        let how = [&ONTO_A_SLOW_LINK[..], direction].concat();
        for millis in (8_600..12_000).step_by(170) {
            let summary = run_until(OUTAGE, &how, Instant::from_millis(millis));
            let on_links: u64 = summary.links.iter().map(|link| link.queued_packets).sum();
            most_held = most_held.max(summary.packets.queued - on_links);
        }
    }
    assert!(most_held > 0, "no cut met a packet that was held");
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_assists_however_the_run_is_cut_and_looked_at() {
    for direction in [&[][..], &UPLOAD] {
        let how = [&ONTO_A_SLOW_LINK[..], direction].concat();
        let at_once = summary_json(&run(OUTAGE, &how));
        let mut pieces = simulation(OUTAGE, &how, true);
        let mut until = Instant::ZERO;
        while pieces.advance(until).unwrap() < Instant::ZERO + pieces.duration() {
            pieces.take_events();
            until += Duration::from_micros(123_457);
        }
        assert_eq!(at_once, summary_json(&pieces.finish().unwrap()));
    }
}

#[test]
fn a_handover_that_is_announced_and_does_not_happen_costs_nothing_with_replay() {
    let cancelled = OUTAGE.replace(
        "style = \"break-before-make\"\ninterruption = \"1 s\"",
        "notice = \"500 ms\"\ncancelled = true",
    );
    for direction in [&[][..], &UPLOAD] {
        let with = |assist: &str| {
            let assist = format!("assist={assist}");
            run(&cancelled, &[&[&*assist], direction].concat())
        };
        let (none, replay) = (with("none"), with("replay"));
        assert!(flow(&none).bytes_delivered > 30_000_000, "{}", flow(&none).bytes_delivered);
        let (replay, none) = (flow(&replay), flow(&none));
        assert_eq!((replay.timeouts, replay.packets_replayed), (none.timeouts, none.packets_replayed));
        // The report of the path makes the registration longer, so that everything is later by microseconds: a packet more or
        // less is lost when the queue first overflows.
        let apart = |of: fn(&FlowSummary) -> u64| of(replay).abs_diff(of(none)) as f64 / of(none) as f64;
        assert!(apart(|flow| flow.bytes_delivered) < 1e-3, "{replay:?} {none:?}");
        assert!(apart(|flow| flow.segments_sent) < 1e-3, "{replay:?} {none:?}");
    }
}

#[test]
fn a_flow_that_is_excepted_is_left_alone() {
    let assist = "assist={ use = \"replay\", except = [{ prefix = \"correspondent\", port = 5001 }] }";
    let summary = run(OUTAGE, &[assist]);
    let alone = run(OUTAGE, &[]);
    assert_eq!(flow(&summary).packets_replayed, 0);
    assert_eq!(flow(&summary).bytes_delivered, flow(&alone).bytes_delivered);
}

#[test]
fn a_foreign_agent_sends_on_what_waited_for_its_own_link() {
    // There and back before the flow is given up: the old agent has what its link owed.
    let mut back =
        OUTAGE.replace("[[flow]]", "[[handover]]\nat = \"9 s\"\nfrom = \"second\"\nto = \"first\"\n[[flow]]");
    back = back.replace("interruption = \"1 s\"", "interruption = \"1 ms\"");
    back = back.replace("[mobility]", "[mobility]\ncare_of = \"foreign-agent\"");
    let summary = run(&back, &["assist={ use = \"replay\", replay = { at = \"foreign-agent\" } }"]);
    assert!(flow(&summary).packets_replayed > 0, "{:?}", flow(&summary));
    assert!(flow(&summary).bytes_delivered > 20_000_000, "{:?}", flow(&summary));
}

/// Behind foreign agents, far from the sender.
const BEHIND_AGENTS: [&str; 4] = [
    "mobility.care_of=foreign-agent",
    "links.wan={ between = [\"correspondent\", \"home-agent\"], rate = \"100 Mbit/s\", delay = \"40 ms\" }",
    "links.first.delay=2 ms",
    "links.second.delay=2 ms",
];

#[test]
fn losses_of_the_wireless_link_are_repaired_from_the_base_station() {
    // A window that does not fill the queue, so that all losses are the link's.
    let window = "flow.bulk.tcp={ profile = \"linux\", window = \"128 KiB\" }";
    let lossy = [&BEHIND_AGENTS[..], &["links.first.loss=0.02", "links.first.loss_up=0", window]].concat();
    let with = |assist: &str| run_until(OUTAGE, &[&lossy[..], &[assist]].concat(), Instant::from_secs(8));
    let (alone, snoop) = (with("assist=none"), with("assist=snoop"));
    let (alone, snoop) = (flow(&alone), flow(&snoop));
    let share = |flow: &FlowSummary| flow.segments_retransmitted as f64 / flow.segments_sent as f64;
    assert!(3.0 * share(snoop) < share(alone), "{snoop:?} {alone:?}");
    assert!(snoop.bytes_delivered > 2 * alone.bytes_delivered, "{snoop:?} {alone:?}");
}

#[test]
fn a_sender_whose_window_the_base_station_closes_asks_for_news_and_goes_on() {
    // Little enough for the last byte to be all that is owed when the path ends.
    let slow = [
        "flow.bulk.kind=paced",
        "flow.bulk.rate=100 kbit/s",
        "flow.bulk.message=1000 B",
        "handover.interruption=3 s",
    ];
    let with = |assist: &str| run(OUTAGE, &[&BEHIND_AGENTS[..], &slow, &[assist]].concat());
    let (alone, lever) = (with("assist=none"), with("assist=m-tcp"));
    let (alone, lever) = (flow(&alone), flow(&lever));
    // Alone it takes the outage for losses, and repeats; with a window of zero it only asks for news.
    assert!(alone.timeouts > 0 && lever.spurious_timeouts == 0, "{lever:?} {alone:?}");
    assert!(lever.segments_retransmitted < alone.segments_retransmitted, "{lever:?} {alone:?}");
    assert_eq!(lever.bytes_delivered, alone.bytes_delivered);
}

/// From one link to another like it, both up for a while.
const SOFT: [&str; 3] =
    ["handover.style=make-before-break", "handover.interruption=0 s", "mobility.routing=reverse-tunnel"];

#[test]
fn the_queue_of_a_path_stands_in_the_agent_and_not_at_the_link() {
    for direction in [&[][..], &UPLOAD] {
        // The links are the narrowest part of the way, with room for more than the window.
        let wide = [
            "links.wan={ between = [\"correspondent\", \"home-agent\"], rate = \"100 Mbit/s\", delay = \"1 ms\" }",
            "links.first.queue=1000 packets",
            "links.second.queue=1000 packets",
        ];
        let with = |assist: &str| run(OUTAGE, &[&SOFT[..], &wide, direction, &[assist]].concat());
        let (alone, queued) = (with("assist=none"), with("assist=path-queue"));
        let deepest = |summary: &Summary, link: &str| {
            let ways = summary.links.iter().filter(|way| way.name.contains(link));
            ways.map(|way| way.max_queue_bytes).max().unwrap()
        };
        for link in ["first", "second"] {
            // 10 Mbit/s for the 12 ms there and back.
            let product = 15_000;
            let depths = (deepest(&alone, link), deepest(&queued, link));
            assert!(depths.0 > 2 * product && depths.1 < product, "{link} {direction:?}: {depths:?}");
        }
        let (fast, slow) = (flow(&alone).bytes_delivered as f64, flow(&queued).bytes_delivered as f64);
        assert!(slow > 0.9 * fast, "{slow} of {fast}");
        assert!(flow(&queued).rtt_mean.unwrap() < flow(&alone).rtt_mean.unwrap() / 2, "{queued:?}");
        assert!(queued.packets.dropped["assist-queue-management"] > 0, "{:?}", queued.packets);
    }
}

#[test]
fn what_waits_in_the_agent_takes_the_new_path_in_order_or_is_dropped_or_goes_by_the_old_one() {
    let with = |at_handover: &str| {
        let queue = "use = \"path-queue\", path-queue = { discipline = \"drop-tail\", at_handover";
        run(OUTAGE, &[&SOFT[..], &[&*format!("assist={{ {queue} = \"{at_handover}\" }} }}")]].concat())
    };
    let dropped =
        |summary: &Summary| summary.packets.dropped.get("assist-handover").copied().unwrap_or_default();
    let [along, gone, late] = ["re-route", "drop", "drain-late"].map(with);
    assert_eq!((dropped(&along), flow(&along).out_of_order_arrivals), (0, 0));
    assert!(dropped(&gone) > 20, "{:?}", gone.packets);
    assert_eq!(dropped(&late), 0);
    // By two paths at a time packets overtake each other.
    assert!(flow(&late).out_of_order_arrivals > 20, "{:?}", flow(&late));
    let repeated = |summary: &Summary| only(&handover(summary).flows).segments_retransmitted;
    assert!(
        repeated(&along) + dropped(&gone) / 2 < repeated(&gone),
        "{} {}",
        repeated(&along),
        repeated(&gone)
    );
}

#[test]
fn a_buffer_saves_what_comes_while_there_is_no_path() {
    let how = ["handover.interruption=50 ms", "handover.notice=20 ms"];
    let with = |assist: &str| run(OUTAGE, &[&how[..], &[assist]].concat());
    let buffer = "assist={ use = \"buffer-forward\", buffer-forward = { limit = 500 } }";
    let (alone, buffered) = (with("assist=none"), with(buffer));
    let repeated = |summary: &Summary| only(&handover(summary).flows).segments_retransmitted;
    let held = flow(&buffered).packets_held;
    assert!(held > 40 && repeated(&buffered) + held / 2 < repeated(&alone), "{held} {buffered:?}");
    assert!(flow(&buffered).bytes_delivered > flow(&alone).bytes_delivered);
    // Twenty are not enough for fifty milliseconds at ten packets in twelve.
    let small = with("assist={ use = \"buffer-forward\", buffer-forward = { limit = 20 } }");
    assert_eq!(flow(&small).packets_held, 20);
    assert!(small.packets.dropped["assist-queue-full"] > 10, "{:?}", small.packets);
}

#[test]
fn copies_end_at_the_mobile_node() {
    let both = ["mobility.simultaneous_bindings=true", "mobility.keep_old=2 s"];
    let with = |assist: &str| run(OUTAGE, &[&SOFT[..], &both, &[assist]].concat());
    let (alone, bicast) = (with("assist=none"), with("assist=bicast"));
    let copies = flow(&alone).network_duplicates;
    assert!(copies > 1000, "{:?}", flow(&alone));
    assert_eq!(flow(&bicast).network_duplicates, 0);
    assert_eq!(bicast.packets.dropped["assist-delivered-already"], copies);
    assert!(flow(&bicast).duplicate_acks < flow(&alone).duplicate_acks);
    assert!(flow(&bicast).bytes_delivered >= flow(&alone).bytes_delivered);
}

#[test]
fn nothing_vanishes_with_queues_and_buffers_wherever_a_run_is_cut() {
    let mut most_held = 0;
    let agents = ["mobility.care_of=foreign-agent"];
    for (how, assist) in [
        (&SOFT[..], "assist=path-queue"),
        (&SOFT[..], "assist={ use = \"path-queue\", path-queue = { at_handover = \"drain-late\" } }"),
        (&["handover.interruption=200 ms"][..], "assist=path-queue"),
        (&agents[..], "assist=path-queue"),
        (&agents[..], "assist=buffer-forward"),
        (&["handover.notice=100 ms"][..], "assist=buffer-forward"),
    ] {
        for millis in [7_950, 8_003, 8_040, 8_150, 9_004, 9_012] {
            let summary = run_until(OUTAGE, &[how, &[assist]].concat(), Instant::from_millis(millis));
            let on_links: u64 = summary.links.iter().map(|link| link.queued_packets).sum();
            most_held = most_held.max(summary.packets.queued - on_links);
        }
    }
    assert!(most_held > 10, "{most_held}");
}
