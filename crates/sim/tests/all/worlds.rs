//! Whole worlds: what a scenario does to packets, flows and handovers.

use crate::common::balanced;
use careof_base::{Duration, Instant};
use careof_metrics::{FlowSummary, Recovery, Resumption, Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation, WorldError};
use careof_trace::Columns;

fn simulation(text: &str, overrides: &[&str], trace: bool) -> Simulation {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    Simulation::new(scenario, "test.toml", 0, Observation { trace, ..Observation::default() }).unwrap()
}

fn run(text: &str, overrides: &[&str]) -> Summary {
    let mut simulation = simulation(text, overrides, false);
    simulation.advance(Instant::MAX).unwrap();
    balanced(simulation.finish().unwrap())
}

fn traced(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let mut simulation = simulation(text, overrides, true);
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    (balanced(simulation.finish().unwrap()), events)
}

fn only_flow(summary: &Summary) -> &FlowSummary {
    let [flow] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    flow
}

fn rows<'a>(events: &'a Columns, kind: &'a str) -> impl Iterator<Item = usize> + 'a {
    let kinds = events.by_name("kind").unwrap();
    (0..events.rows()).filter(move |row| kinds.text(*row) == Some(kind))
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

const DOWNLOAD: &str = r#"
duration = "40 s"
[links]
wavelan = "wavelan"
gsm = "gsm-csd"
[mobility]
protocol = "mobile-ipv4"
[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "linux-2.0" }
"#;

const WALK: &str = r#"
duration = "20 s"
[links]
first = { rate = "10 Mbit/s", delay = "2 ms" }
second = { rate = "10 Mbit/s", delay = "2 ms" }
[mobility]
protocol = "mobile-ipv4"
[[handover]]
at = "8 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "300 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "newreno"
"#;

#[test]
fn how_a_run_is_cut_into_pieces_and_who_looks_on_do_not_change_it() {
    let at_once = summary_json(&run(DOWNLOAD, &[]));
    let (looked_at, _) = traced(DOWNLOAD, &[]);
    assert_eq!(at_once, summary_json(&looked_at));

    let mut simulation = simulation(DOWNLOAD, &[], true);
    let mut until = Instant::ZERO;
    while simulation.advance(until).unwrap() < Instant::ZERO + simulation.duration() {
        simulation.take_events();
        until += std::time::Duration::from_micros(123_457);
    }
    assert_eq!(at_once, summary_json(&simulation.finish().unwrap()));
}

#[test]
fn another_seed_is_another_run_where_chance_plays() {
    let lossy = ["links.first.loss=0.01"];
    let digest = |seed: &str| run(WALK, &[lossy[0], seed]).digest;
    assert_eq!(digest("seed=1"), digest("seed=1"));
    assert_ne!(digest("seed=1"), digest("seed=2"));
}

#[test]
fn make_before_break_uses_the_new_link_only_when_its_registration_is_accepted() {
    let (summary, events) = traced(DOWNLOAD, &[]);
    let handover = &summary.handovers[0];
    assert!(handover.interruption.is_zero());

    let time = events.by_name("time_ns").unwrap();
    let registered = rows(&events, "handover")
        .filter(|row| text(&events, "cause", *row) == "registered")
        .map(|row| time.number(row).unwrap())
        .find(|at| *at > 12_000_000_000)
        .unwrap();
    // The request crosses GSM before that, and nothing of the flow does on the way up.
    let first_up = rows(&events, "packet-enqueued")
        .find(|row| text(&events, "link", *row) == "gsm.up" && text(&events, "flow", *row) == "download")
        .map(|row| time.number(row).unwrap())
        .unwrap();
    assert!(first_up >= registered, "{first_up} before {registered}");
    let last_wavelan = rows(&events, "packet-enqueued")
        .filter(|row| text(&events, "link", *row) == "wavelan.up")
        .map(|row| time.number(row).unwrap())
        .max()
        .unwrap();
    assert!(last_wavelan < registered);
}

#[test]
fn packets_sent_into_a_link_that_is_gone_are_counted_and_the_flow_goes_on() {
    let summary = run(WALK, &[]);
    let handover = &summary.handovers[0];
    // 300 ms without a link, and the registration's round trip.
    assert!((0.300..0.320).contains(&handover.interruption.as_secs_f64()), "{:?}", handover.interruption);
    assert!(handover.stall_after.is_some());
    assert!(summary.packets.dropped.contains_key("link-down"));
    let flow = only_flow(&summary);
    // 20 s at 10 Mbit/s carry 25 MB; a second or so is lost to the handover.
    assert!((20_000_000..25_000_000).contains(&flow.bytes_delivered), "{}", flow.bytes_delivered);
}

#[test]
fn a_packet_too_large_for_the_tunnel_is_reported_to_its_sender_who_shrinks_it() {
    let (summary, events) = traced(WALK, &["mobility.leave_room=false"]);
    assert!(summary.packets.dropped["fragmentation-needed"] > 0);
    assert_eq!(summary.packets.fragmented, 0);
    let unreachable = rows(&events, "message-received")
        .find(|row| text(&events, "message", *row) == "DestinationUnreachable")
        .map(|row| text(&events, "detail", row).to_owned());
    assert_eq!(unreachable.as_deref(), Some("fragmentation needed and DF set, next hop 1480 bytes"));
    let lengths = events.by_name("len_bytes").unwrap();
    let longest = rows(&events, "segment-received").filter_map(|row| lengths.number(row)).max();
    assert_eq!(longest, Some(1440));
}

#[test]
fn without_path_mtu_discovery_the_tunnel_makes_two_fragments_of_a_full_packet() {
    let summary = run(WALK, &["flow.tcp.pmtu_discovery=false"]);
    let packets = &summary.packets;
    assert!(packets.fragmented > 1000);
    assert!(packets.reassembled > 1000 && packets.reassembled <= packets.fragmented);
    assert!(!packets.dropped.contains_key("fragmentation-needed"));
    assert!(only_flow(&summary).bytes_delivered > 20_000_000);
}

#[test]
fn every_encapsulation_and_direction_of_tunnel_carries_the_flow() {
    let upload = [("flow.from", "mobile"), ("flow.to", "correspondent")];
    for encapsulation in ["ip-in-ip", "minimal", "gre"] {
        for routing in ["triangle", "reverse-tunnel"] {
            for care_of in ["co-located", "foreign-agent"] {
                for direction in [&[][..], &upload[..]] {
                    let how = [
                        ("mobility.encapsulation", encapsulation),
                        ("mobility.routing", routing),
                        ("mobility.care_of", care_of),
                    ];
                    let overrides: Vec<String> =
                        how.iter().chain(direction).map(|(key, value)| format!("{key}={value}")).collect();
                    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
                    let summary = run(WALK, &overrides);
                    let delivered = only_flow(&summary).bytes_delivered;
                    assert!(delivered > 18_000_000, "{overrides:?}: {delivered}");
                    assert!(summary.handovers[0].stall_after.is_some(), "{overrides:?}");
                    assert_eq!(summary.mobility.unwrap().registrations_denied, 0, "{overrides:?}");
                }
            }
        }
    }
}

#[test]
fn authentication_and_replay_protection_of_every_kind_register() {
    for algorithm in ["hmac-md5", "hmac-sha-256"] {
        for replay in ["timestamps", "nonces"] {
            let overrides = [format!("mobility.algorithm={algorithm}"), format!("mobility.replay={replay}")];
            let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
            let mobility = run(WALK, &overrides).mobility.unwrap();
            assert!(mobility.registrations_accepted >= 2, "{overrides:?}: {mobility:?}");
            // With nonces the first request cannot know the home agent's, and is answered with code 133.
            assert_eq!(mobility.registrations_denied, u64::from(replay == "nonces"), "{overrides:?}");
        }
    }
}

#[test]
fn without_a_link_trigger_the_move_is_noticed_by_the_new_agent_s_advertisement() {
    for detection in ["missed-advertisements", "lifetime", "prefix"] {
        let overrides = [
            "mobility.care_of=foreign-agent".to_owned(),
            "mobility.advertisement_interval=1 s".to_owned(),
            format!("mobility.movement_detection={detection}"),
        ];
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let summary = run(WALK, &overrides);
        let interruption = summary.handovers[0].interruption.as_secs_f64();
        assert!((0.3..5.0).contains(&interruption), "{detection}: {interruption}");
    }
}

#[test]
fn queued_packets_meet_the_fate_the_scenario_asks_for() {
    // A download from GSM back to WaveLAN: a window of packets waits for GSM when the handover comes.
    let back = ["handover.from=gsm", "handover.to=wavelan"];
    let with = |queued: &str| {
        let queued = format!("handover.queued={queued}");
        run(DOWNLOAD, &[back[0], back[1], &queued])
    };
    let late = with("drain-late");
    assert!(!late.packets.dropped.contains_key("handover"));
    assert!(only_flow(&late).out_of_order_arrivals > 0, "late packets are overtaken");

    let dropped = with("drop");
    assert!(dropped.packets.dropped["handover"] > 0);

    let told = with("drop-with-icmp");
    assert_eq!(told.packets.dropped["handover"], dropped.packets.dropped["handover"]);

    let rerouted = with("re-route");
    assert!(!rerouted.packets.dropped.contains_key("handover"));
    let delivered = |summary: &Summary| only_flow(summary).bytes_delivered;
    assert!(delivered(&rerouted) > delivered(&late), "nothing waits for the slow link any more");
}

#[test]
fn what_the_old_link_drops_at_a_handover_shortens_the_timeout_of_a_sender_that_listens() {
    // The link is gone for 20 s before the new one is used: the timer doubles, and what it repeated waits where it
    // never leaves. Each message about that takes a doubling back, and the last repetition is made at once.
    let with = |listens: &str| {
        let listens = format!("flow.download.tcp.icmp_unreachable={listens}");
        let gone = ["handover.style=break-before-make", "handover.interruption=20 s", "handover.at=6 s"];
        let lost = ["handover.queued=drop-with-icmp", "handover.to=gsm", "flow.download.tcp.profile=newreno"];
        let slow = "links.wavelan.queue=5 packets";
        run(DOWNLOAD, &[&gone[..], &lost[..], &[&*listens, slow]].concat())
    };
    let delivered = |summary: &Summary| only_flow(summary).bytes_delivered;
    let (deaf, listening) = (with("false"), with("true"));
    assert!(delivered(&listening) > delivered(&deaf), "{} {}", delivered(&listening), delivered(&deaf));
}

const MARKING: &str = r#"
duration = "60 s"
[links.access]
between = ["sender", "router"]
rate = "100 Mbit/s"
delay = "5 ms"
[links.middle]
between = ["router", "receiver"]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { discipline = "codel", limit = "200 packets", ecn = true }
[[flow]]
name = "bulk"
from = "sender"
to = "receiver"
kind = "bulk"
tcp = { profile = "sack", ecn = true }
"#;

#[test]
fn a_queue_that_marks_keeps_flows_that_listen_without_a_loss() {
    let marked = |summary: &Summary| summary.links.iter().map(|link| link.marked_packets).sum::<u64>();
    let dropped = |summary: &Summary| summary.packets.dropped.values().sum::<u64>();
    for discipline in ["codel", "red"] {
        let discipline = format!("links.middle.queue.discipline={discipline}");
        let summary = run(MARKING, &[&discipline, "flow.bulk.tcp.initial_ssthresh=64 KiB"]);
        let flow = only_flow(&summary);
        assert!(marked(&summary) > 5, "{}", marked(&summary));
        assert_eq!((dropped(&summary), flow.segments_retransmitted), (0, 0));
        // Halving without a buffer to speak of leaves three quarters of the rate, less the headers.
        assert!((3.5e6..4.87e6).contains(&flow.goodput_bps), "{}", flow.goodput_bps);

        // A flow that does not listen loses as many packets instead.
        let deaf =
            run(MARKING, &[&discipline, "flow.bulk.tcp.initial_ssthresh=64 KiB", "flow.bulk.tcp.ecn=false"]);
        assert_eq!(marked(&deaf), 0);
        assert!(dropped(&deaf) > 5, "{}", dropped(&deaf));
    }
}

const THERE_AND_BACK: &str = r#"
duration = "20 s"
[links]
first = { rate = "8 Mbit/s", delay = "2 ms" }
second = { rate = "8 Mbit/s", delay = "40 ms" }
[mobility]
protocol = "mobile-ipv4"
[[handover]]
at = "6 s"
from = "first"
to = "second"
[[handover]]
at = "12 s"
from = "second"
to = "first"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "newreno"
"#;

#[test]
fn a_way_back_is_a_handover_like_any_other() {
    for simultaneous in ["false", "true"] {
        let overrides = [format!("mobility.simultaneous_bindings={simultaneous}")];
        let summary = run(THERE_AND_BACK, &[&overrides[0]]);
        for handover in &summary.handovers {
            let ready = handover.ready_at.unwrap_or(Instant::MAX) - handover.at;
            assert!(ready.as_millis() < 500, "{simultaneous}: {handover:?}");
        }
    }
}

#[test]
fn copies_by_simultaneous_bindings_end_when_the_old_interface_is_left_and_are_nobody_s_retransmission() {
    let until_down = run(THERE_AND_BACK, &["mobility.simultaneous_bindings=true"]);
    let for_a_second = run(THERE_AND_BACK, &["mobility.simultaneous_bindings=true", "mobility.keep_old=1 s"]);
    let copies = |summary: &Summary| only_flow(summary).network_duplicates;
    assert!(copies(&for_a_second) > 100, "{}", copies(&for_a_second));
    assert!(copies(&until_down) > 2 * copies(&for_a_second), "{}", copies(&until_down));
    let flow = only_flow(&for_a_second);
    assert!(flow.unnecessary_retransmissions <= flow.segments_retransmitted, "{flow:?}");
}

#[test]
fn a_handover_taken_back_before_it_was_complete_is_ready_at_once() {
    let summary = run(THERE_AND_BACK, &["handover.1.at=6001 ms"]);
    let back = &summary.handovers[1];
    assert!(back.ready_at.is_some(), "{back:?}");
    assert!(back.interruption.is_zero());
}

#[test]
fn recovery_is_measured_against_the_narrowest_link_of_the_path() {
    // Both access links are faster than the 10 Mbit/s Ethernet behind them.
    let fast = ["links.first.rate=54 Mbit/s", "links.second.rate=54 Mbit/s"];
    let summary = run(WALK, &fast);
    assert!(summary.handovers[0].recovery_90.is_some(), "{:?}", summary.handovers[0]);
}

#[test]
fn an_agent_that_knows_its_link_is_down_does_not_fill_it_with_old_advertisements() {
    let text = THERE_AND_BACK.replace("from = \"first\"", "style = \"break-before-make\"\nfrom = \"first\"");
    let text = text.replace("from = \"second\"", "style = \"break-before-make\"\nfrom = \"second\"");
    let summary =
        run(&text, &["mobility.care_of=foreign-agent", "links.first.rate=9.6 kbit/s", "flow.stop=1 s"]);
    let back = &summary.handovers[1];
    assert!(back.interruption.as_secs() < 5, "{back:?}");
}

#[test]
fn a_flow_whose_time_is_over_before_the_node_is_registered_never_opens() {
    let overrides = ["handover.from=gsm", "handover.to=wavelan", "flow.stop=500 ms"];
    let summary = run(DOWNLOAD, &overrides);
    assert_eq!(only_flow(&summary).segments_sent, 0);
}

#[test]
fn at_home_nothing_is_tunnelled_and_leaving_home_registers() {
    let home = WALK.replace("[mobility]", "[mobility]\nhome = \"first\"");
    let (summary, events) = traced(&home, &[]);
    let mobility = summary.mobility.clone().unwrap();
    assert!(mobility.registrations_accepted >= 1, "{mobility:?}");
    let proxy = rows(&events, "arp").filter(|row| text(&events, "cause", *row) == "proxy-on").count();
    assert_eq!(proxy, 1, "the home agent answers for the node when it has left");
    assert!(only_flow(&summary).bytes_delivered > 18_000_000);
}

#[test]
fn every_workload_delivers_what_it_was_asked_for() {
    let bulk = run(WALK, &["flow.size=100 kB"]);
    assert_eq!(only_flow(&bulk).bytes_delivered, 100_000);
    assert!(only_flow(&bulk).complete);

    let stopped = run(WALK, &["flow.stop=2 s"]);
    let flow = only_flow(&stopped);
    assert!(!flow.complete && flow.last_delivery.unwrap() < Instant::from_millis(2_200), "{flow:?}");

    let mut web =
        WALK.replace("kind = \"bulk\"", "kind = \"request-response\"\nrequests = 5\nthink = \"1 s\"");
    web.push_str("request = \"300 B\"\nresponse = \"20 kB\"\n");
    let web = run(&web, &[]);
    let names: Vec<_> = web.flows.iter().map(|flow| (flow.name.as_str(), flow.bytes_delivered)).collect();
    assert_eq!(names, [("download", 100_000), ("download.requests", 1_500)]);

    let mut voice = WALK.replace("kind = \"bulk\"", "kind = \"paced\"\nrate = \"64 kbit/s\"");
    voice.push_str("message = \"160 B\"\n");
    let voice = run(&voice, &[]);
    // 8000 byte/s for 20 s, less what is under way at the end.
    assert!((158_000..=160_000).contains(&only_flow(&voice).bytes_delivered), "{:?}", only_flow(&voice));
}

#[test]
fn a_bottleneck_is_used_and_shared_by_its_rules() {
    let text = include_str!("../../../../scenarios/bench/dumbbell1.toml");
    let summary = run(text, &["duration=100 s"]);
    let flow = only_flow(&summary);
    // 1460 of 1500 bytes are data; slow start and its losses cost a few seconds.
    assert!((9.0e6..9.734e6).contains(&flow.goodput_bps), "{}", flow.goodput_bps);
    let middle = summary.links.iter().find(|link| link.name == "middle.down").unwrap();
    assert_eq!(middle.max_queue_packets, 100);
    assert!(middle.dropped_packets["queue-full"] > 0);
}

#[test]
fn what_the_simulator_cannot_do_is_refused_before_anything_runs() {
    let overrides = ["handover.queued=buffer-and-forward".to_owned()];
    let scenario = Scenario::parse("test.toml", DOWNLOAD, &overrides).unwrap();
    let error = Simulation::new(scenario, "test.toml", 0, Observation::default()).err().unwrap();
    assert!(matches!(&error, WorldError::Unsupported { key, .. } if key == "handover.0.queued"), "{error}");
    assert!(error.to_string().contains("re-route"), "the remedy is named: {error}");
}

#[test]
fn a_link_whose_packets_would_not_fit_a_tunnel_is_refused() {
    let overrides = ["links.gsm.mtu=65535 B".to_owned()];
    let scenario = Scenario::parse("test.toml", DOWNLOAD, &overrides).unwrap();
    let error = Simulation::new(scenario, "test.toml", 0, Observation::default()).err().unwrap();
    assert!(matches!(&error, WorldError::Unsupported { key, .. } if key == "links.gsm.mtu"), "{error}");
}

#[test]
fn runs_that_differ_only_in_what_was_dropped_have_different_digests() {
    let with = |queued: &str| {
        let queued = format!("handover.queued={queued}");
        run(DOWNLOAD, &["handover.style=break-before-make", "handover.interruption=1 s", &queued])
    };
    let (kept, dropped) = (with("drain-late"), with("drop"));
    assert_ne!(kept.packets.dropped, dropped.packets.dropped);
    assert_ne!(kept.digest, dropped.digest);
}

#[test]
fn what_only_a_kernel_has_is_refused_by_its_key() {
    for (key, value, expected) in [
        (
            "flow.download.tcp",
            "{ variant = \"kernel\" }",
            "flow.0.tcp.variant: \"kernel\" cannot be simulated",
        ),
        ("flow.download.tcp", "legacy", "flow.0.tcp.profile: \"legacy\" cannot be simulated"),
        ("flow.download.tcp", "{ congestion = \"dctcp\" }", "flow.0.tcp.congestion: \"dctcp\" cannot"),
    ] {
        let scenario = Scenario::parse("x.toml", DOWNLOAD, &[format!("{key}={value}")]).unwrap();
        let error = Simulation::new(scenario, "x.toml", 0, Observation::default()).err().unwrap().to_string();
        assert!(error.contains(expected) && error.ends_with("add --world linux"), "{error}");
    }
    for (keys, expected) in [
        ("command = \"curl {correspondent}\"", "flow.1.command: \"curl\" cannot be simulated"),
        ("kind = \"probe\"\nlink = \"gsm\"", "flow.1.kind: \"probe\" cannot be simulated"),
    ] {
        let text = format!("{DOWNLOAD}[[flow]]\nfrom = \"home-agent\"\nto = \"mobile\"\n{keys}\n");
        let scenario = Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let error = Simulation::new(scenario, "x.toml", 0, Observation::default()).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains("--world linux"), "{error}");
    }
}

/// The times without a delivery of `flow` from `from` to `until`, read off the trace; the flow wants data all the time.
fn gaps(events: &Columns, flow: &str, from: Instant, until: Instant) -> Vec<(Instant, Duration)> {
    let time = events.by_name("time_ns").unwrap();
    let mine = rows(events, "data-delivered").filter(|row| text(events, "flow", *row) == flow);
    let at = |row| Instant::from_nanos(u64::try_from(time.number(row).unwrap()).unwrap());
    let inside = mine.map(at).filter(|at| (from..until).contains(at)).chain([until]);
    let mut before = from;
    inside.map(|at| (std::mem::replace(&mut before, at), at)).map(|(from, to)| (from, to - from)).collect()
}

#[test]
fn the_demo_says_how_long_its_download_is_silent() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/wavelan-to-gsm.toml");
    let (summary, events) = traced(&std::fs::read_to_string(file).unwrap(), &[]);
    let handover = &summary.handovers[0];
    let found = gaps(&events, "download", handover.at, handover.until);
    let (at, longest) = *found.iter().rev().max_by_key(|(_, length)| length).unwrap();
    assert!(longest > Duration::from_secs(20), "{longest:?} from {at}: it is no demonstration of anything");
    assert_eq!(
        (handover.longest_silence, handover.longest_silence_flow.as_deref()),
        (Some(longest), Some("download"))
    );
    let flow = &handover.flows[0];
    assert_eq!((flow.longest_silence, flow.longest_silence_at), (Some(longest), Some(at)));
    // Whatever is as long as a stall is listed, and a GSM link that delivers packet by packet is none.
    assert_eq!(summary.stall_threshold.as_millis(), 3139, "two packets of 1507 bytes of 10 bits each");
    let all = gaps(&events, "download", only_flow(&summary).start.unwrap(), Instant::ZERO + summary.duration);
    let stalls = all.into_iter().filter(|(_, length)| *length >= summary.stall_threshold);
    let listed = summary.stalls.iter().map(|stall| (stall.silence.begin, stall.silence.length));
    assert_eq!(listed.collect::<Vec<_>>(), stalls.collect::<Vec<_>>());
    assert_eq!(only_flow(&summary).stalls, summary.stalls.len() as u64);
    assert_eq!(
        only_flow(&summary).waiting,
        summary.duration - only_flow(&summary).start.unwrap().since_start()
    );
}

#[test]
fn a_user_who_thinks_waits_for_nothing() {
    let pages = r#"
        duration = "60 s"
        [links]
        first = { rate = "10 Mbit/s", delay = "20 ms" }
        second = { rate = "10 Mbit/s", delay = "20 ms" }
        [mobility]
        [[handover]]
        at = "20 s"
        from = "first"
        to = "second"
        style = "break-before-make"
        interruption = "300 ms"
        [[flow]]
        name = "pages"
        from = "mobile"
        to = "correspondent"
        kind = "request-response"
        request = "400 B"
        response = "60 kB"
        think = "12 s"
    "#;
    let summary = run(pages, &[]);
    assert!(summary.stalls.is_empty());
    for flow in &summary.flows {
        assert!(flow.longest_silence.unwrap() < Duration::from_millis(200), "{flow:#?}");
        assert!(flow.waiting < Duration::from_secs(3), "{flow:#?}");
    }
    let handover = &summary.handovers[0];
    assert_eq!((handover.stall, handover.recovery), (Resumption::Idle, Recovery::NotMeasured));

    // Whoever asks in the gap waits for its end.
    let asked = run(pages, &["handover.0.at=12.2 s", "handover.0.interruption=4 s", "flow.0.think=12 s"]);
    let [responses, requests] = &asked.flows[..] else { panic!("{} flows", asked.flows.len()) };
    assert!(responses.longest_silence.unwrap() > Duration::from_secs(3), "{responses:#?}");
    assert!(requests.longest_silence.unwrap() > Duration::from_secs(3), "{requests:#?}");
    assert_eq!(asked.stalls.len(), 2);
}
