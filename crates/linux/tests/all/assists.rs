//! Assists beside the kernel's own TCP. Where this machine has no namespaces or no TUN devices for this user the tests
//! say so and pass.

use crate::common::{flow, run};
use careof_metrics::{FlowSummary, Summary};

/// A download to a mobile node behind foreign agents, far from the sender, by a window that overflows no queue.
fn behind_agents(assist: &str, first: &str, handover: &str, workload: &str) -> Option<FlowSummary> {
    let text = format!(
        r#"
assist = "{assist}"
duration = "9 s"
[links.wan]
between = ["correspondent", "home-agent"]
rate = "100 Mbit/s"
delay = "40 ms"
[links.first]
rate = "10 Mbit/s"
delay = "2 ms"
{first}
[links.second]
rate = "10 Mbit/s"
delay = "2 ms"
[mobility]
care_of = "foreign-agent"
routing = "reverse-tunnel"
{handover}
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = {{ variant = "kernel", congestion = "reno", window = "96 KiB" }}
{workload}"#
    );
    let summary = run(&text)?.summary;
    Some(flow(&summary, "download").clone())
}

#[test]
fn losses_of_the_wireless_link_are_repaired_from_the_base_station() {
    let with = |assist| behind_agents(assist, "loss = 0.02\nloss_up = 0", "", "");
    let (Some(alone), Some(snoop)) = (with("none"), with("snoop")) else { return };
    let share = |flow: &FlowSummary| flow.segments_retransmitted as f64 / flow.segments_sent as f64;
    assert!(2.0 * share(&snoop) < share(&alone), "{snoop:?} {alone:?}");
    assert!(snoop.bytes_delivered > alone.bytes_delivered, "{snoop:?} {alone:?}");
}

#[test]
fn a_sender_whose_window_the_base_station_closes_does_not_time_out_over_a_gap() {
    let handover = "[[handover]]\nat = \"3 s\"\nfrom = \"first\"\nto = \"second\"\nstyle = \"break-before-make\"\n\
                    interruption = \"3 s\"\n";
    // Little enough for the last byte to be all that is owed when the path ends.
    let paced = "kind = \"paced\"\nrate = \"100 kbit/s\"\nmessage = \"1000 B\"\n";
    let with = |assist| behind_agents(assist, "", handover, paced);
    let (Some(alone), Some(lever)) = (with("none"), with("m-tcp")) else { return };
    assert!(lever.timeouts < alone.timeouts, "{lever:?} {alone:?}");
    assert!(lever.segments_retransmitted < alone.segments_retransmitted, "{lever:?} {alone:?}");
}

#[test]
fn the_second_of_two_copies_ends_at_the_mobile_node() {
    let with = |assist: &str| {
        let text = format!(
            r#"
assist = "{assist}"
duration = "6 s"
[links.first]
rate = "4 Mbit/s"
delay = "5 ms"
[links.second]
rate = "4 Mbit/s"
delay = "10 ms"
[mobility]
routing = "reverse-tunnel"
simultaneous_bindings = true
keep_old = "2 s"
[[handover]]
at = "2 s"
from = "first"
to = "second"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = {{ variant = "kernel", congestion = "reno" }}
"#
        );
        let summary = run(&text)?.summary;
        Some(flow(&summary, "download").clone())
    };
    let (Some(alone), Some(bicast)) = (with("none"), with("bicast")) else { return };
    for flow in [&alone, &bicast] {
        assert!(flow.network_duplicates > 100, "both links carry everything: {flow:?}");
    }
    // Each that gets through is answered.
    assert!(2 * bicast.duplicate_acks < alone.duplicate_acks, "{bicast:?} {alone:?}");
}

/// From one link to another like it, with the narrowest part of the way there.
fn between_two_links(ends: [&str; 2], window: Option<&str>, assist: &str, handover: &str) -> Option<Summary> {
    let [from, to] = ends;
    let tcp = window.map_or_else(String::new, |window| format!(", window = \"{window}\""));
    let text = format!(
        r#"
assist = {assist}
duration = "4 s"
[links.wan]
between = ["correspondent", "home-agent"]
rate = "100 Mbit/s"
delay = "1 ms"
[links]
first = {{ rate = "10 Mbit/s", delay = "5 ms", queue = "1000 packets" }}
second = {{ rate = "10 Mbit/s", delay = "5 ms", queue = "1000 packets" }}
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "2 s"
from = "first"
to = "second"
{handover}
[[flow]]
name = "bulk"
from = "{from}"
to = "{to}"
tcp = {{ variant = "kernel", congestion = "reno"{tcp} }}
"#
    );
    Some(run(&text)?.summary)
}

/// Packets and messages that agents discarded for `reason`.
fn discarded(summary: &Summary, reason: &str) -> u64 {
    summary.mobility.as_ref().unwrap().discarded.get(reason).copied().unwrap_or_default()
}

const DOWN: [&str; 2] = ["correspondent", "mobile"];
const SOFT: &str = "style = \"make-before-break\"";

#[test]
fn the_queue_of_a_path_stands_in_the_agent_and_not_at_the_link() {
    for ends in [DOWN, ["mobile", "correspondent"]] {
        let with = |assist| between_two_links(ends, None, assist, SOFT);
        let (Some(alone), Some(queued)) = (with("\"none\""), with("\"path-queue\"")) else { return };
        let deepest = |summary: &Summary, link: &str| {
            let ways = summary.links.iter().filter(|way| way.name.contains(link));
            ways.map(|way| way.max_queue_bytes).max().unwrap()
        };
        for link in ["first", "second"] {
            // 10 Mbit/s for the 12 ms there and back; a busy machine may be late by as much again.
            let product = 15_000;
            let depths = (deepest(&alone, link), deepest(&queued, link));
            assert!(depths.0 > 4 * product && depths.1 < 2 * product, "{link} {ends:?}: {depths:?}");
        }
        let delivered = |summary: &Summary| flow(summary, "bulk").bytes_delivered as f64;
        assert!(delivered(&queued) > 0.85 * delivered(&alone), "{queued:?} {alone:?}");
        let rtt = |summary: &Summary| flow(summary, "bulk").rtt_mean.unwrap();
        assert!(rtt(&queued) < rtt(&alone) / 2, "{queued:?} {alone:?}");
        assert!(discarded(&queued, "assist-queue-management") > 0, "{queued:?}");
    }
}

#[test]
fn what_waits_in_the_agent_takes_the_new_path_in_order_or_is_dropped_or_goes_by_the_old_one() {
    let with = |at_handover: &str| {
        let queue = "discipline = \"drop-tail\", limit = \"200 packets\"";
        let assist = format!(
            "{{ use = \"path-queue\", path-queue = {{ {queue}, at_handover = \"{at_handover}\" }} }}"
        );
        between_two_links(DOWN, None, &assist, SOFT)
    };
    let [Some(along), Some(gone), Some(late)] = ["re-route", "drop", "drain-late"].map(with) else { return };
    let dropped = |summary: &Summary| discarded(summary, "assist-handover");
    // Nothing but what had left for the old link already can be overtaken.
    assert!(dropped(&along) == 0 && flow(&along, "bulk").out_of_order_arrivals < 5, "{along:?}");
    assert!(dropped(&gone) > 20, "{gone:?}");
    assert_eq!(dropped(&late), 0, "{late:?}");
    // By two paths at a time packets overtake each other.
    assert!(flow(&late, "bulk").out_of_order_arrivals > 20, "{late:?}");
}

#[test]
fn a_buffer_saves_what_comes_while_there_is_no_path() {
    // The whole window is in the buffer when the path ends, and less time passes than a sender waits.
    let handover = "style = \"break-before-make\"\ninterruption = \"50 ms\"\nnotice = \"60 ms\"";
    let with = |limit: usize| {
        let buffer = format!("{{ use = \"buffer-forward\", buffer-forward = {{ limit = {limit} }} }}");
        between_two_links(DOWN, Some("64 KiB"), &buffer, handover)
    };
    let (Some(large), Some(small)) = (with(500), with(10)) else { return };
    let dropped = |summary: &Summary| discarded(summary, "assist-queue-full");
    let bulk = |summary: &Summary| flow(summary, "bulk").clone();
    assert!(bulk(&large).packets_held > 20 && dropped(&large) == 0, "{large:?}");
    assert_eq!(bulk(&small).packets_held, 10, "{small:?}");
    assert!(dropped(&small) > 10, "{small:?}");
    assert!(bulk(&large).segments_retransmitted < 5, "{large:?}");
    assert!(bulk(&small).segments_retransmitted > 10, "{small:?}");
}
