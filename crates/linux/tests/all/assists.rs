//! Assists beside the kernel's own TCP: that each does its part, and that no byte is lost with it. How much it brings, a busy
//! machine decides: the simulator's tests of the same names say so, and [`gains`] where there is nothing else to do.

use crate::common::{Ran, paced, run, slower};
use careof_metrics::{FlowSummary, Resumption, Summary};

mod gains;

/// A download to a mobile node behind foreign agents, far from the sender, by a window that overflows no queue.
fn behind_agents(assist: &str, first: &str, handover: &str, workload: &str) -> String {
    format!(
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
    )
}

fn only_flow(ran: &Ran) -> &FlowSummary {
    let [flow] = &ran.summary.flows[..] else { panic!("{} flows", ran.summary.flows.len()) };
    flow
}

/// How often an assist said that it did this.
fn did(ran: &Ran, what: &str) -> usize {
    let column = |name| ran.events.by_name(name).unwrap();
    let (kinds, causes) = (column("kind"), column("cause"));
    let is = |row: &usize| kinds.text(*row) == Some("assist") && causes.text(*row) == Some(what);
    (0..ran.events.rows()).filter(is).count()
}

/// A gap of three seconds, and a trickle: little enough for the last byte to be all that is owed when the path ends.
const GAP: &str = "[[handover]]\nat = \"3 s\"\nfrom = \"first\"\nto = \"second\"\nstyle = \"break-before-make\"\n\
                   interruption = \"3 s\"\n";
const TRICKLE: &str = "kind = \"paced\"\nrate = \"100 kbit/s\"\nmessage = \"1000 B\"\n";
const LOSSY: &str = "loss = 0.02\nloss_up = 0";

/// A download over both links of a mobile node for two seconds; so many times as slow.
fn over_both_links(pace: u64, assist: &str) -> String {
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
    let times = [("duration", 6, "s"), ("keep_old", 2, "s"), ("at", 2, "s")];
    slower(&text, pace, &times)
}

/// From one link to another like it, with the narrowest part of the way there.
fn between_two_links(ends: [&str; 2], window: Option<&str>, assist: &str, handover: &str) -> Option<Ran> {
    run(&moving_between(1, ends, window, assist, handover))
}

/// The scenario of [`between_two_links`], so many times as slow.
fn moving_between(
    pace: u64,
    [from, to]: [&str; 2],
    window: Option<&str>,
    assist: &str,
    handover: &str,
) -> String {
    let tcp = window.map_or_else(String::new, |window| format!(", window = \"{window}\""));
    let (duration, at) = (4 * pace, 2 * pace);
    format!(
        r#"
assist = {assist}
duration = "{duration} s"
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
at = "{at} s"
from = "first"
to = "second"
{handover}
[[flow]]
name = "bulk"
from = "{from}"
to = "{to}"
tcp = {{ variant = "kernel", congestion = "reno"{tcp} }}
"#
    )
}

/// Packets and messages that agents discarded for `reason`.
fn discarded(summary: &Summary, reason: &str) -> u64 {
    summary.mobility.as_ref().unwrap().discarded.get(reason).copied().unwrap_or_default()
}

const DOWN: [&str; 2] = ["correspondent", "mobile"];
const UP: [&str; 2] = ["mobile", "correspondent"];
const SOFT: &str = "style = \"make-before-break\"";

/// A path's queue in the home agent, and where it goes at a handover; so many times as slow.
fn queue_in_the_agent(pace: u64, at_handover: &str) -> String {
    let queue = "discipline = \"drop-tail\", limit = \"200 packets\"";
    let assist =
        format!("{{ use = \"path-queue\", path-queue = {{ {queue}, at_handover = \"{at_handover}\" }} }}");
    moving_between(pace, DOWN, None, &assist, SOFT)
}

/// A handover with a gap of 50 ms, announced, and room for so many packets meanwhile; so many times as slow.
fn buffered_gap(pace: u64, limit: usize) -> String {
    // The whole window is in the buffer when the path ends, and less time passes than a sender waits.
    let handover = "style = \"break-before-make\"\ninterruption = \"50 ms\"\nnotice = \"60 ms\"";
    let buffer = format!("{{ use = \"buffer-forward\", buffer-forward = {{ limit = {limit} }} }}");
    moving_between(pace, DOWN, Some("64 KiB"), &buffer, handover)
}

#[test]
fn losses_of_the_wireless_link_are_repaired_from_the_base_station() {
    let with = |assist: &'static str, is_as_planned: fn(&Ran) -> bool| {
        paced(
            |pace| slower(&behind_agents(assist, LOSSY, "", ""), pace, &[("duration", 9, "s")]),
            is_as_planned,
        )
    };
    let Some(alone) = with("none", |ran| only_flow(ran).segments_retransmitted > 0) else { return };
    assert_eq!(did(&alone, "repair"), 0);
    with("snoop", |ran| did(ran, "repair") > 0);
}

#[test]
fn a_base_station_gives_no_acknowledgement_away_that_it_may_need_over_a_gap() {
    let times = [("duration", 9, "s"), ("at", 3, "s"), ("interruption", 3, "s")];
    let spoken = |ran: &Ran| (did(ran, "close-window") > 0, only_flow(ran).acks_injected > 0);
    let resumes = |ran: &Ran| ran.summary.handovers[0].stall == Resumption::Resumed;
    for (assist, speaks) in [("none", false), ("m-tcp", true)] {
        let text = |pace| slower(&behind_agents(assist, "", GAP, TRICKLE), pace, &times);
        // Behind another foreign agent it is the sender's next probe, or its next retransmission, that goes through.
        let is_as_planned = |ran: &Ran| {
            assert!(speaks || spoken(ran) == (false, false), "{:?}", only_flow(ran));
            resumes(ran) && spoken(ran) == (speaks, speaks) && (speaks || only_flow(ran).timeouts > 0)
        };
        let Some(_) = paced(text, is_as_planned) else { return };
    }
}

#[test]
fn the_second_of_two_copies_ends_at_the_mobile_node() {
    let ended = |ran: &Ran| discarded(&ran.summary, "assist-delivered-already");
    // Both links carry everything; each copy that got through was answered.
    let Some(alone) =
        paced(|pace| over_both_links(pace, "none"), |ran| only_flow(ran).network_duplicates > 0)
    else {
        return;
    };
    assert_eq!(ended(&alone), 0, "{:?}", only_flow(&alone));
    paced(|pace| over_both_links(pace, "bicast"), |ran| ended(ran) > 0);
}

#[test]
fn the_queue_of_a_path_stands_in_the_agent_and_is_managed_there() {
    for ends in [DOWN, UP] {
        for (assist, is_managed) in [("\"none\"", false), ("\"path-queue\"", true)] {
            let text = |pace| moving_between(pace, ends, None, assist, SOFT);
            let is_as_planned = |Ran { summary, .. }: &Ran| {
                let managed = discarded(summary, "assist-queue-management");
                assert!(is_managed || managed == 0, "{ends:?}: {summary:?}");
                (managed > 0) == is_managed && summary.handovers[0].stall == Resumption::Resumed
            };
            let Some(_) = paced(text, is_as_planned) else { return };
        }
    }
}

#[test]
fn what_waits_in_the_agent_takes_the_new_path_or_is_dropped_or_goes_by_the_old_one() {
    for (at_handover, is_dropped) in [("re-route", false), ("drop", true), ("drain-late", false)] {
        let text = |pace| queue_in_the_agent(pace, at_handover);
        let dropped = |Ran { summary, .. }: &Ran| discarded(summary, "assist-handover") > 0;
        let is_as_planned = |ran: &Ran| {
            assert!(is_dropped || !dropped(ran), "{at_handover}: {:?}", ran.summary);
            dropped(ran) == is_dropped
        };
        let Some(_) = paced(text, is_as_planned) else { return };
    }
}

#[test]
fn a_buffer_holds_what_comes_while_there_is_no_path_as_far_as_it_has_room() {
    let counts = |ran: &Ran| (only_flow(ran).packets_held, discarded(&ran.summary, "assist-queue-full"));
    // A window of 64 KiB is fewer than 500 packets.
    let large = paced(
        |pace| buffered_gap(pace, 500),
        |ran| {
            let (held, dropped) = counts(ran);
            assert_eq!(dropped, 0, "{:?}", ran.summary);
            held > 10
        },
    );
    let small = paced(
        |pace| buffered_gap(pace, 10),
        |ran| {
            let (held, dropped) = counts(ran);
            // Nothing is refused while there is room. What was let go in between may make room for more than ten in all.
            assert!(dropped == 0 || held >= 10, "{:?}", ran.summary);
            held == 10 && dropped > 0
        },
    );
    assert_eq!(large.is_some(), small.is_some());
}
