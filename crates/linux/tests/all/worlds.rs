//! Whole worlds on real hosts. They take the time that they last; where this machine has no namespaces or no TUN
//! devices for this user they say so and pass.

use crate::common::{Ran, paced, parsed, run, run_scenario, slower, start};
use careof_base::{Duration, Instant};
use careof_metrics::{Recovery, Resumption, summary_json};
use careof_scenario::Scenario;
use careof_trace::Columns;

fn count(events: &Columns, kind: &str) -> usize {
    let kinds = events.by_name("kind").unwrap();
    (0..events.rows()).filter(|row| kinds.text(*row) == Some(kind)).count()
}

fn assert_in_order_of_time(events: &Columns) {
    let time = events.iter().next().unwrap();
    assert!(
        (1..events.rows()).all(|row| time.number(row - 1) <= time.number(row)),
        "{} is not in order",
        time.name()
    );
}

const WAVELAN_TO_GSM: &str = r#"
title = "WaveLAN to GSM, in a hurry"
duration = "14 s"
[links]
wavelan = "wavelan"
gsm = "gsm-csd"
[mobility]
[[handover]]
at = "3 s"
from = "wavelan"
to = "gsm"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = { profile = "linux-2.0", window = "16 KiB" }
"#;

#[test]
fn a_connection_survives_the_handover_and_every_byte_arrives_in_its_place() {
    let later = |pace| slower(WAVELAN_TO_GSM, pace, &[("duration", 14, "s"), ("at", 3, "s")]);
    // GSM's round trip is beyond every timer of WaveLAN's.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let flow = &summary.flows[0];
        summary.handovers.first().is_some_and(|handover| handover.stall == Resumption::Resumed)
            && flow.timeouts > 0
            && flow.spurious_timeouts > 0
    };
    let Some(Ran { summary, events, remarks, .. }) = paced(later, is_as_planned) else { return };
    let [flow] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    assert_eq!(flow.tcp.profile.as_deref(), Some("legacy"));
    assert_eq!(flow.tcp.variant, "kernel-reno");
    assert!(
        remarks.iter().any(|remark| remark.contains("\"linux-2.0\" is not what runs here")),
        "{remarks:?}"
    );
    let [handover] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
    let ready = handover.ready_at.unwrap();
    // Two GSM crossings of the registration and its reply, and whatever this machine adds.
    assert!(ready > handover.at + Duration::from_millis(700), "{ready}");
    assert!(handover.flows[0].bytes_delivered > 0, "by GSM: {}", handover.flows[0].bytes_delivered);
    // 2 Mbit/s to the end would be more.
    let most = summary.duration.as_secs() * 250_000;
    assert!((1..most).contains(&flow.bytes_delivered), "{}", flow.bytes_delivered);
    assert!(flow.rtt_samples > 0 && flow.rtt_min.unwrap() > Duration::from_millis(3));
    let mobility = summary.mobility.unwrap();
    let (sent, accepted) = (mobility.registrations_sent, mobility.registrations_accepted);
    assert!((2..=sent).contains(&accepted), "{accepted} of {sent}");

    assert_in_order_of_time(&events);
    assert_eq!(count(&events, "timeout"), flow.timeouts as usize);
    let messages = (count(&events, "message-sent"), count(&events, "message-received"));
    assert!((4..=messages.0).contains(&messages.1), "{messages:?}");
    assert!(messages.0 as u64 >= sent + accepted, "{messages:?}");
    assert!(count(&events, "tcp-state") > 0);
    let delivered: u64 = summary.links.iter().map(|link| link.delivered_packets).sum();
    assert_eq!(count(&events, "packet-delivered") as u64, delivered, "what is traced is what is counted");
    let segments = flow.segments_sent as usize;
    assert!(count(&events, "segment-sent") > segments);
}

const WALK: &str = r#"
duration = "6 s"
[links]
first = { rate = "4 Mbit/s", delay = "10 ms" }
second = { rate = "4 Mbit/s", delay = "10 ms" }
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "2 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
[[flow]]
name = "upload"
from = "mobile"
to = "correspondent"
tcp = { variant = "kernel", congestion = "reno" }
[[flow]]
name = "pages"
from = "mobile"
to = "correspondent"
kind = "request-response"
request = "400 B"
response = "3 kB"
think = "50 ms"
requests = 5
tcp = { variant = "kernel", congestion = "reno" }
"#;

/// The longest time without a delivery of `flow` from `from` to `until`, read off the trace.
fn longest_gap(events: &Columns, flow: &str, from: Instant, until: Instant) -> Duration {
    let column = |name| events.by_name(name).unwrap();
    let mine = (0..events.rows()).filter(|row| {
        column("kind").text(*row) == Some("data-delivered") && column("flow").text(*row) == Some(flow)
    });
    let times =
        mine.map(|row| Instant::from_nanos(u64::try_from(column("time_ns").number(row).unwrap()).unwrap()));
    let mut before = from;
    let gap = |at: Instant| at - std::mem::replace(&mut before, at);
    times.filter(|at| *at > from).chain([until]).map(gap).max().unwrap()
}

#[test]
fn a_gap_without_any_link_is_an_interruption_and_the_connection_outlives_it() {
    let times = [("duration", 6, "s"), ("at", 2, "s"), ("interruption", 500, "ms")];
    let later = |pace| slower(WALK, pace, &times);
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let dropped = &summary.packets.dropped;
        summary.flows.iter().all(|flow| flow.complete || flow.name == "upload")
            && summary.handovers[0].flows[0].stall == Resumption::Resumed
            && (dropped.contains_key("link-down") || dropped.contains_key("handover"))
    };
    let Some(Ran { summary, events, .. }) = paced(later, is_as_planned) else { return };
    let [upload, pages, requests] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    assert_eq!(upload.tcp.profile.as_deref(), Some("modern"));
    assert!(upload.bytes_delivered > 0, "{}", summary_json(&summary));
    assert_eq!((pages.bytes_delivered, requests.bytes_delivered), (15_000, 2000));
    // Four times the user thinks, and waits for nothing then.
    let took = pages.last_delivery.unwrap() - pages.start.unwrap();
    assert!(pages.waiting + Duration::from_millis(4 * 50) <= took, "{:?} of {took:?}", pages.waiting);
    let handover = &summary.handovers[0];
    let silence = longest_gap(&events, "upload", handover.at, Instant::ZERO + summary.duration);
    assert_eq!(handover.flows[0].longest_silence, Some(silence));
    assert_eq!(upload.stalls as usize, summary.stalls.iter().filter(|stall| stall.flow == "upload").count());
    let interruption = handover.interruption;
    assert!(interruption >= Duration::from_millis(500), "{interruption:?}");
    assert_ne!(handover.recovery, Recovery::NotReady);
    // Either end of a connection has nothing in flight when everything is acknowledged.
    for node in ["mobile", "correspondent"] {
        let column = |name| events.by_name(name).unwrap();
        let is_state = |row: &usize| {
            let is = |name, value| column(name).text(*row) == Some(value);
            is("kind", "tcp-state") && is("flow", "pages") && is("node", node)
        };
        let flights =
            (0..events.rows()).filter(is_state).filter_map(|row| column("flight_bytes").number(row));
        assert_eq!(flights.min(), Some(0), "{node}");
    }
}

#[test]
fn the_books_hold_when_the_home_agent_sends_again_what_a_gap_has_cost() {
    let resumed = |assist: &'static str, is_used: bool| {
        let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 1, "s")];
        let later = |pace| format!("assist = {assist}\n{}", slower(GAP_OF_A_SECOND, pace, &times));
        paced(later, |Ran { summary, .. }| {
            let handover = summary.handovers.first().map(|handover| &handover.flows[0]);
            handover.is_some_and(|flow| {
                assert!(is_used || flow.packets_replayed == 0, "{flow:?}");
                flow.stall == Resumption::Resumed && (flow.packets_replayed > 0) == is_used
            })
        })
    };
    let Some(without) = resumed("\"none\"", false) else { return };
    let Some(with) = resumed("{ use = \"replay\", replay = { at = \"home-agent\" } }", true) else { return };
    // What the assist did is told in the trace and counted, for the flow and for the handover.
    let (flow, handover) = (&with.summary.flows[0], &with.summary.handovers[0].flows[0]);
    assert!(count(&with.events, "assist") > 0);
    assert!(flow.packets_replayed > 0 && flow.packets_replayed == handover.packets_replayed, "{flow:#?}");
    assert!(flow.assist_stall.is_some());
    let flow = &without.summary.flows[0];
    assert_eq!((count(&without.events, "assist"), flow.packets_replayed, flow.assist_stall), (0, 0, None));
}

const GAP_OF_A_SECOND: &str = r#"
duration = "8 s"
[links.one]
rate = "4 Mbit/s"
delay = "5 ms"
[links.two]
rate = "4 Mbit/s"
delay = "5 ms"
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "3 s"
from = "one"
to = "two"
style = "break-before-make"
interruption = "1 s"
queued = "drop"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = { variant = "kernel", congestion = "reno" }
"#;

#[test]
fn the_queue_of_the_link_that_is_left_goes_where_the_scenario_says() {
    let drained = |Ran { summary, .. }: &Ran, link: &str| {
        summary.links.iter().find(|way| way.name == link).unwrap().drained_packets
    };
    // 50 packets wait before a slow link when the handover comes.
    let moving = |queued: &'static str,
                  [from, to]: [&'static str; 2],
                  window: &'static str,
                  link: &'static str| {
        let text = |pace: u64| {
            let (duration, at) = (4 * pace, 2 * pace);
            format!(
                "duration = \"{duration} s\"\n[links]\nslow = {{ rate = \"300 kbit/s\", delay = \"5 ms\" }}\n\
                 fast = {{ rate = \"10 Mbit/s\", delay = \"5 ms\" }}\n[mobility]\n[[handover]]\nat = \"{at} s\"\n\
                 from = \"slow\"\nto = \"fast\"\nqueued = \"{queued}\"\n[[flow]]\nfrom = \"{from}\"\n\
                 to = \"{to}\"\ntcp = {{ congestion = \"reno\", window = \"{window}\" }}\n"
            )
        };
        paced(text, |ran| drained(ran, link) > 0)
    };
    let (down, up) = (["correspondent", "mobile"], ["mobile", "correspondent"]);
    let Some(moved) = moving("re-route", down, "64 kB", "slow.down") else { return };
    assert_eq!(moved.summary.packets.dropped.get("handover"), None);
    let Some(upload) = moving("re-route", up, "16 kB", "slow.up") else { return };
    assert_eq!(upload.summary.packets.dropped.get("handover"), None);
    let Some(dropped) = moving("drop", down, "64 kB", "slow.down") else { return };
    assert_eq!(dropped.summary.packets.dropped.get("handover"), Some(&drained(&dropped, "slow.down")));
    let all: u64 = dropped.summary.packets.dropped.values().sum();
    assert_eq!(count(&dropped.events, "packet-dropped") as u64, all, "the trace has them too");
}

#[test]
fn a_foreign_agent_advertises_as_soon_as_its_link_comes_up() {
    // By its clock it would advertise again long after the end.
    let text = |pace: u64| {
        let (duration, at) = (4 * pace, 2 * pace);
        format!(
            "duration = \"{duration} s\"\n[links]\nfirst = \"ethernet-10m\"\nsecond = \"ethernet-10m\"\n[mobility]\n\
             care_of = \"foreign-agent\"\nadvertisement_interval = \"100 s\"\n[[handover]]\nat = \"{at} s\"\n\
             from = \"first\"\nto = \"second\"\n"
        )
    };
    // The mobile node has heard of its first link before it moves to the second.
    let is_as_planned = |Ran { summary, events, .. }: &Ran| {
        let column = |name| events.by_name(name).unwrap();
        let came_up = (0..events.rows()).find(|row| column("cause").text(*row) == Some("link-up"));
        let came_up = came_up.and_then(|row| column("time_ns").number(row));
        summary.handovers.first().is_some_and(|handover| {
            handover.ready_at.is_some() && came_up.is_some_and(|at| at < i128::from(handover.at.as_nanos()))
        })
    };
    let Some(Ran { events, .. }) = paced(text, is_as_planned) else { return };
    let (kinds, nodes) = (events.by_name("kind").unwrap(), events.by_name("node").unwrap());
    let sequences = events.by_name("detail").unwrap();
    let of_second = |row: &usize| {
        kinds.text(*row) == Some("message-sent") && nodes.text(*row) == Some("foreign-agent-second")
    };
    let first = (0..events.rows()).find(of_second).and_then(|row| sequences.text(row)).unwrap();
    assert!(first.contains("sequence 0,"), "it said nothing before: {first}");
}

#[test]
fn programs_run_in_their_hosts_and_what_they_print_is_kept() {
    let text = r#"
        duration = "3 s"
        [links]
        wire = { rate = "10 Mbit/s", delay = "1 ms", between = ["left", "right"] }
        [[flow]]
        name = "shell"
        from = "left"
        to = "right"
        command = ["sh", "-c", "echo to {right}; echo oops >&2; sed -n 's/ *wire:.*/wire/p' /proc/net/dev; exit 3"]
        server = "sleep 1000"
    "#;
    let later = |pace| slower(text, pace, &[("duration", 3, "s")]);
    // The program ends by itself before the run does.
    let is_as_planned =
        |Ran { outputs, .. }: &Ran| outputs.iter().any(|output| output.ended == "exit status: 3");
    let Some(Ran { outputs, events, .. }) = paced(later, is_as_planned) else { return };
    let output = |which| outputs.iter().find(|output| output.which == which).unwrap();
    let command = output("command");
    assert_eq!(String::from_utf8_lossy(&command.stdout), "to 10.0.1.2\nwire\n");
    assert_eq!(String::from_utf8_lossy(&command.stderr), "oops\n");
    assert_eq!((command.ended.as_str(), command.is_success), ("exit status: 3", false));
    assert!(output("server").is_success, "it was told to end");
    assert_eq!(count(&events, "flow-end"), 2);
}

#[test]
fn a_link_is_measured_from_its_hosts() {
    let text = r#"
        duration = "3 s"
        [links]
        wire = { rate = "2 Mbit/s", delay = "5 ms", between = ["left", "right"] }
        [[flow]]
        name = "accuracy"
        from = "left"
        to = "right"
        kind = "probe"
    "#;
    let later = |pace| slower(text, pace, &[("duration", 3, "s")]);
    // It has time for both, the echoes and the train.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let [probe] = &summary.probes[..] else { panic!("{} probes", summary.probes.len()) };
        probe.echoes_answered > 0 && probe.rate_error.is_some()
    };
    let Some(Ran { summary, .. }) = paced(later, is_as_planned) else { return };
    let probe = &summary.probes[0];
    assert_eq!((probe.link.as_str(), probe.name.as_str()), ("wire", "accuracy"));
    assert!((1..=probe.echoes_sent).contains(&probe.echoes_answered), "{probe:?}");
    // A busy machine decides how good it is; this is that it measures the link at all, which is never faster than it is.
    assert!(probe.round_trip_error_median.unwrap() >= 0.0, "{probe:?}");
    assert!(probe.rate_error.unwrap().is_finite(), "{probe:?}");
}

#[test]
fn what_a_probe_has_measured_counts_though_the_run_ends_before_it_is_through() {
    // An echo takes longer than the run, on a machine of any speed.
    let text = r#"
        duration = "1 s"
        [links]
        wire = { rate = "2 Mbit/s", delay = "2 s", between = ["left", "right"] }
        [[flow]]
        name = "accuracy"
        from = "left"
        to = "right"
        kind = "probe"
    "#;
    let Some(Ran { summary, .. }) = run(text) else { return };
    let [probe] = &summary.probes[..] else { panic!("{} probes", summary.probes.len()) };
    assert!(probe.echoes_sent <= 1, "{probe:?}");
    assert_eq!((probe.echoes_answered, probe.rate_bps), (0, None));
}

#[test]
fn what_linux_cannot_do_is_refused_before_anything_starts() {
    let refused = |text: &str| match start(parsed(text)) {
        Err(error) => (error.to_string(), error.remedy().map(str::to_owned)),
        Ok(_) => panic!("accepted: {text}"),
    };
    let tcp = |value: &str| WAVELAN_TO_GSM.replace("{ profile = \"linux-2.0\", window = \"16 KiB\" }", value);
    for (text, expected) in [
        (
            tcp("{ profile = \"linux-2.0\", rto = \"bsd\" }"),
            "flow.0.tcp.rto: \"bsd\" cannot be done on Linux",
        ),
        (
            tcp("{ profile = \"reno\", delayed_ack = \"off\" }"),
            "flow.0.tcp.delayed_ack: choosing this cannot be done",
        ),
        (
            tcp("{ profile = \"reno\", variant = \"newreno\" }"),
            "flow.0.tcp.variant: \"newreno\" cannot be done",
        ),
        (
            WAVELAN_TO_GSM.replace("to = \"gsm\"\n", "to = \"gsm\"\nqueued = \"drop-with-icmp\"\n"),
            "handover.0.queued: \"drop-with-icmp\" cannot be done on Linux",
        ),
        (
            WAVELAN_TO_GSM
                .replace("wavelan = \"wavelan\"", "wavelan = \"wavelan\"\na-name-beyond-15 = \"lte\""),
            "links.a-name-beyond-15: the name \"a-name-beyond-15\" cannot be done on Linux",
        ),
        (
            format!(
                "{WAVELAN_TO_GSM}[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\ntcp = \"modern\"\n"
            ),
            "flow.1.tcp: net.ipv4.tcp_",
        ),
    ] {
        let (message, _) = refused(&text);
        assert!(message.contains(expected), "{message}");
    }
    let program = WAVELAN_TO_GSM.replace("tcp =", "command = \"no-such-program {mobile}\"\ntcp =");
    assert_eq!(
        refused(&program).0,
        "flow.0.command: there is no program \"no-such-program\" on this machine"
    );
}

#[test]
fn a_congestion_control_that_the_kernel_does_not_have_is_refused_by_its_key_with_a_remedy() {
    let text = WAVELAN_TO_GSM
        .replace("{ profile = \"linux-2.0\", window = \"16 KiB\" }", "{ congestion = \"nonesuch\" }");
    let error = start(parsed(&text)).err().unwrap_or_else(|| panic!("accepted"));
    assert!(error.to_string().starts_with("flow.0.tcp.congestion: there is no"), "{error}");
    assert!(error.remedy().is_some(), "{error}");
}

#[test]
fn a_run_can_be_ended_early() {
    // Its handover is far away.
    let long = slower(WAVELAN_TO_GSM, 60, &[("duration", 14, "s"), ("at", 3, "s")]);
    let mut world = match start(parsed(&long)) {
        Ok(world) => world,
        Err(error) => return careof_testbed::skip(&format!("{error}")),
    };
    world.advance(Instant::from_millis(500)).unwrap();
    let early = world.take_events();
    let summary = world.finish().unwrap();
    assert!(
        summary.duration >= Duration::from_millis(500) && summary.duration < Duration::from_secs(14 * 60)
    );
    assert!(early.rows() + world.take_events().rows() > 0);
    assert_eq!(summary.handovers.len(), 0);
}

#[test]
fn a_link_by_a_trace_carries_what_the_trace_has_and_nothing_while_it_has_nothing() {
    let text = r#"
        duration = "6 s"
        [links]
        cell = { trace = "walk.csv", delay = "10 ms" }
        [mobility]
        [[flow]]
        from = "correspondent"
        to = "mobile"
        tcp = "modern"
    "#;
    let walk = |_: &str, _| Ok("time_s,rate_mbit_s\n0,4\n2,0\n4,4\n5,4\n".to_owned());
    let scenario = Scenario::parse_with("test.toml", text, &[], &walk).unwrap();
    let Some(Ran { summary, events, .. }) = run_scenario(scenario) else { return };
    let cell = summary.links.iter().find(|link| link.name == "cell.down").unwrap();
    // 4 Mbit/s for 4 s, of which the kernel's time-outs and this machine take what they take; and a packet at each end of the rate, where a
    // busy machine is late.
    assert!((1..=2_003_000).contains(&cell.delivered_bytes), "{}", cell.delivered_bytes);
    let utilisation = cell.utilisation.unwrap();
    assert!((utilisation - cell.delivered_bytes as f64 / 2e6).abs() < 0.01, "{utilisation}");

    let column = |name| events.by_name(name).unwrap();
    let (kinds, links, times) = (column("kind"), column("link"), events.iter().next().unwrap());
    let arrivals = (0..events.rows())
        .filter(|row| kinds.text(*row) == Some("packet-delivered") && links.text(*row) == Some("cell.down"));
    // What was to come before it, and what the machine was late by.
    let begin = Duration::from_millis(2_200) + summary.lateness.unwrap_or_default();
    let outage = begin.as_nanos().cast_signed()..4_000_000_000;
    let in_the_outage =
        arrivals.filter(|row| outage.contains(&times.number(*row).unwrap_or_default())).count();
    assert_eq!(in_the_outage, 0);
}
