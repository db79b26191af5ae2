//! What `auto` makes of paths of which one is a trap, in the model.

use alloc::vec;
use core::time::Duration;

use crate::multipath::Scheduler;
use crate::multipath::model::{Link, Model, Outcome, Setup};

const fn link(rate: u64, delay: u64, loss: u64) -> Link {
    Link { rate, delay, jitter: 0, loss }
}

/// One flow without end; what is measured begins when half of the time is over.
fn run(links: &[Link], halves: bool, seconds: u64) -> Outcome {
    Model::new(Setup {
        links: links.to_vec(),
        keeps_order: true,
        scheduler: Scheduler::Auto,
        resequences: true,
        window: 600,
        halves,
        until: Duration::from_secs(seconds),
        from: Duration::from_secs(seconds / 2),
        seed: 1,
        outage: None,
    })
    .run()
}

#[test]
fn a_flow_leaves_a_slow_near_path_for_a_quick_far_one_of_unknown_rate() {
    let (near, far) = (link(1, 5, 0), link(20, 300, 0));
    let outcome = run(&[near, far], false, 20);
    assert!(outcome.goodput > 15_000_000, "{outcome:?}");
}

#[test]
fn a_flow_with_a_good_path_is_not_tried_on_one_that_loses() {
    let links = [link(40, 30, 0), link(100, 35, 20)];
    let alone = run(&links[..1], true, 30).goodput;
    let outcome = run(&links, true, 30);
    assert!(outcome.goodput > alone / 100 * 97, "{alone} {outcome:?}");
}

#[test]
fn what_has_failed_is_tried_more_and_more_rarely() {
    let pauses: vec::Vec<_> =
        (0..5).map(|failures| super::pause(super::FIRST_PAUSE, failures).as_secs()).collect();
    assert_eq!(pauses, [60, 120, 240, 480, 960]);
    assert_eq!(super::pause(super::FIRST_PAUSE, u32::MAX), super::LONGEST_PAUSE);
}

#[test]
fn copies_that_show_a_slow_path_do_not_hold_up_what_is_behind_a_loss() {
    let outcome = run(&[link(50, 7, 5), link(1, 150, 0)], false, 20);
    assert!(outcome.longest_gap < Duration::from_millis(60), "{outcome:?}");
}
