//! How much assists bring beside the kernel's TCP. These compare what a machine with nothing else to do measures, so that they are
//! run by `make bench`; that each assist does its part is tested above, and that it brings this in the simulator.

use super::{
    DOWN, GAP, LOSSY, SOFT, TRICKLE, UP, behind_agents, between_two_links, buffered_gap, discarded,
    only_flow, over_both_links, queue_in_the_agent,
};
use crate::common::{Ran, run};
use careof_metrics::{FlowSummary, Summary};

#[test]
#[ignore = "compares measurements: make bench"]
fn fewer_losses_of_the_wireless_link_reach_the_sender() {
    let with = |assist| run(&behind_agents(assist, LOSSY, "", ""));
    let (Some(alone), Some(snoop)) = (with("none"), with("snoop")) else { return };
    let (alone, snoop) = (only_flow(&alone), only_flow(&snoop));
    let share = |flow: &FlowSummary| flow.segments_retransmitted as f64 / flow.segments_sent as f64;
    assert!(2.0 * share(snoop) < share(alone), "{snoop:?} {alone:?}");
    assert!(snoop.bytes_delivered > alone.bytes_delivered, "{snoop:?} {alone:?}");
}

#[test]
#[ignore = "compares measurements: make bench"]
fn a_sender_whose_window_the_base_station_closes_does_not_time_out_over_a_gap() {
    let with = |assist| run(&behind_agents(assist, "", GAP, TRICKLE));
    let (Some(alone), Some(lever)) = (with("none"), with("m-tcp")) else { return };
    let (alone, lever) = (only_flow(&alone), only_flow(&lever));
    assert!(lever.timeouts < alone.timeouts, "{lever:?} {alone:?}");
    assert!(lever.segments_retransmitted < alone.segments_retransmitted, "{lever:?} {alone:?}");
}

#[test]
#[ignore = "compares measurements: make bench"]
fn fewer_copies_are_answered() {
    let (Some(alone), Some(bicast)) = (run(&over_both_links(1, "none")), run(&over_both_links(1, "bicast")))
    else {
        return;
    };
    let (alone, bicast) = (only_flow(&alone), only_flow(&bicast));
    assert!(alone.network_duplicates > 100 && bicast.network_duplicates > 100, "{bicast:?} {alone:?}");
    // Each that gets through is answered.
    assert!(2 * bicast.duplicate_acks < alone.duplicate_acks, "{bicast:?} {alone:?}");
}

#[test]
#[ignore = "compares measurements: make bench"]
fn the_queue_of_a_path_does_not_stand_at_the_link() {
    for ends in [DOWN, UP] {
        let with = |assist| between_two_links(ends, None, assist, SOFT);
        let (Some(alone), Some(queued)) = (with("\"none\""), with("\"path-queue\"")) else { return };
        let deepest = |summary: &Summary, link: &str| {
            let ways = summary.links.iter().filter(|way| way.name.contains(link));
            ways.map(|way| way.max_queue_bytes).max().unwrap()
        };
        for link in ["first", "second"] {
            // 10 Mbit/s for the 12 ms there and back; a machine may be late by as much again.
            let product = 15_000;
            let depths = (deepest(&alone.summary, link), deepest(&queued.summary, link));
            assert!(depths.0 > 4 * product && depths.1 < 2 * product, "{link} {ends:?}: {depths:?}");
        }
        let delivered = |ran: &Ran| only_flow(ran).bytes_delivered as f64;
        assert!(delivered(&queued) > 0.85 * delivered(&alone), "{:?} {:?}", queued.summary, alone.summary);
        let rtt = |ran: &Ran| only_flow(ran).rtt_mean.unwrap();
        assert!(rtt(&queued) < rtt(&alone) / 2, "{:?} {:?}", queued.summary, alone.summary);
    }
}

#[test]
#[ignore = "compares measurements: make bench"]
fn what_waits_in_the_agent_stays_in_order_by_one_path_and_not_by_two() {
    let [Some(along), Some(gone), Some(late)] =
        ["re-route", "drop", "drain-late"].map(|to| run(&queue_in_the_agent(1, to)))
    else {
        return;
    };
    // Nothing but what had left for the old link already can be overtaken.
    assert!(only_flow(&along).out_of_order_arrivals < 5, "{:?}", along.summary);
    assert!(discarded(&gone.summary, "assist-handover") > 20, "{:?}", gone.summary);
    // By two paths at a time packets overtake each other.
    assert!(only_flow(&late).out_of_order_arrivals > 20, "{:?}", late.summary);
}

#[test]
#[ignore = "compares measurements: make bench"]
fn a_large_buffer_saves_repetitions() {
    let (Some(large), Some(small)) = (run(&buffered_gap(1, 500)), run(&buffered_gap(1, 10))) else { return };
    assert!(only_flow(&large).packets_held > 20, "{:?}", large.summary);
    assert_eq!(only_flow(&small).packets_held, 10, "{:?}", small.summary);
    assert!(discarded(&small.summary, "assist-queue-full") > 10, "{:?}", small.summary);
    assert!(only_flow(&large).segments_retransmitted < 5, "{:?}", large.summary);
    assert!(only_flow(&small).segments_retransmitted > 10, "{:?}", small.summary);
}
