//! Assists beside the kernel's own TCP. Where this machine has no namespaces or no TUN devices for this user the tests
//! say so and pass.

#![allow(missing_docs)]

mod common;

use careof_metrics::FlowSummary;
use common::{flow, run};

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
