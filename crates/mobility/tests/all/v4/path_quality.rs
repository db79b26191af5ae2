//! A path in use that is bad is left for a better one and come back to when it is good again; and whatever is no reason for that.

use std::time::Duration;

use careof_base::DataRate;
use careof_mobility::v4::*;

use super::paths::{Bench, Path, Traffic, ms, node, preferred};
use super::world::{IF_GSM, IF_WLAN};

const MINUTE: Duration = Duration::from_secs(60);
const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// A node that leaves bad paths and was told these rates, in kbit/s, if any.
fn choosing(rates: [Option<u64>; 2]) -> MobileNodeConfig {
    let mut config = node(preferred());
    config.leave_bad_paths = true;
    for (interface, rate) in config.interfaces.iter_mut().zip(rates) {
        let rate = rate.map(|rate| DataRate::from_bits_per_second(rate * 1000));
        interface.path = PathProperties { downlink: rate, uplink: rate, round_trip: None };
    }
    config
}

const BOTH_KNOWN: [Option<u64>; 2] = [Some(50_000), Some(50_000)];

/// Why the handovers were made, the first attachment left out.
fn reasons(bench: &Bench) -> Vec<&'static str> {
    let initiated = bench.events.iter().filter_map(|(_, event)| match event {
        HandoverEvent::Initiated { reason, .. } => Some(reason.name()),
        _ => None,
    });
    initiated.skip(1).collect()
}

fn last_style(bench: &Bench) -> Option<HandoverStyle> {
    bench.events.iter().rev().find_map(|(_, event)| match event {
        HandoverEvent::Initiated { style, .. } => Some(*style),
        _ => None,
    })
}

/// Runs until the interface in use is this one; how long that took.
fn until_active(bench: &mut Bench, path: usize, limit: Duration) -> Duration {
    let begin = bench.now;
    while bench.active() != Some(path) {
        assert!(bench.now < begin + limit, "still on {:?}: {:?}", bench.active(), bench.events);
        bench.run_for(ms(100));
    }
    bench.now - begin
}

const TALKS: [Traffic; 4] =
    [Traffic::Bulk(20), Traffic::Download(10), Traffic::Requests(20), Traffic::OneWay(20)];

#[test]
fn a_path_that_loses_a_tenth_is_left_make_before_break_and_come_back_to_when_it_is_good() {
    for traffic in TALKS {
        for seed in 0..2 {
            let mut bench = Bench::new(seed, choosing(BOTH_KNOWN), [Path::new(40), Path::new(40)]);
            bench.run_for(Duration::from_secs(3));
            bench.start(traffic);
            bench.run_for(MINUTE);
            assert_eq!(bench.active(), Some(0));
            bench.paths[0].loss = 0.1;
            let took = until_active(&mut bench, 1, MINUTE * 3);
            assert!(took >= Duration::from_secs(15), "{took:?}: a passing thing is no reason");
            assert_eq!(
                (reasons(&bench), last_style(&bench)),
                (vec!["path-lossy"], Some(HandoverStyle::MakeBeforeBreak))
            );
            assert!(bench.mobile.path_quality(IF_WLAN).avoided);
            bench.run_for(MINUTE);
            assert_eq!(bench.active(), Some(1), "it is as bad as it was");
            bench.paths[0].loss = 0.0;
            until_active(&mut bench, 0, MINUTE * 10);
            assert_eq!(
                (reasons(&bench), last_style(&bench)),
                (vec!["path-lossy", "path-good-again"], Some(HandoverStyle::MakeBeforeBreak))
            );
            bench.run_for(MINUTE * 10);
            assert_eq!(reasons(&bench).len(), 2, "{traffic:?}, seed {seed}");
        }
    }
}

#[test]
fn a_path_whose_delay_rises_tenfold_is_left_where_little_is_in_flight() {
    for seed in 0..4 {
        let mut bench = Bench::new(seed, choosing(BOTH_KNOWN), [Path::new(40), Path::new(60)]);
        bench.run_for(Duration::from_secs(3));
        bench.start(Traffic::Requests(20));
        bench.run_for(MINUTE);
        bench.paths[0].delay *= 10;
        until_active(&mut bench, 1, MINUTE * 5);
        assert_eq!(reasons(&bench), ["path-slow"]);
        bench.run_for(MINUTE * 5);
        assert_eq!(bench.active(), Some(1), "it is as slow as it was");
        bench.paths[0].delay /= 10;
        until_active(&mut bench, 0, MINUTE * 10);
        assert_eq!(reasons(&bench), ["path-slow", "path-good-again"]);
    }
}

#[test]
fn a_path_that_delivers_far_less_than_it_carries_with_a_queue_before_it_is_left() {
    let fast = Path { rate: Some(10_000_000), queue: ms(300), ..Path::new(40) };
    let mut bench = Bench::new(1, choosing([Some(10_000), Some(10_000)]), [fast, fast]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(100));
    bench.run_for(MINUTE);
    assert_eq!(bench.active(), Some(0));
    bench.paths[0].rate = Some(1_000_000);
    bench.paths[0].queue = ms(3000);
    until_active(&mut bench, 1, MINUTE * 3);
    assert_eq!(reasons(&bench), ["path-slow"]);
}

#[test]
fn a_bulk_flow_that_fills_the_queue_of_its_path_does_not_leave_it() {
    let full = Path { rate: Some(500_000), queue: ms(2000), ..Path::new(40) };
    let quick = Path { rate: Some(50_000_000), ..Path::new(10) };
    for rates in [[Some(500), Some(50_000)], [None, Some(50_000)]] {
        // The last one is more than the queue holds, all the time.
        for window in [20, 100, 150] {
            for seed in 0..2 {
                let mut config = choosing(rates);
                // Requests may wait in that queue, or be lost there, for long.
                config.retransmission.attempts = None;
                let mut bench = Bench::new(seed, config, [full, quick]);
                bench.run_for(Duration::from_secs(3));
                bench.start(Traffic::Bulk(window));
                bench.run_for(HALF_AN_HOUR);
                assert_eq!(reasons(&bench), [""; 0], "window {window}, {rates:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn of_equal_paths_with_some_loss_and_jitter_none_is_left() {
    for round_trip in [20, 200] {
        let some = Path { loss: 0.02, ..Path::rough(round_trip) };
        for traffic in TALKS {
            for seed in 0..2 {
                let mut bench = Bench::new(seed, choosing(BOTH_KNOWN), [some, some]);
                bench.run_for(Duration::from_secs(3));
                bench.start(traffic);
                bench.run_for(HALF_AN_HOUR);
                assert_eq!(reasons(&bench), [""; 0], "{round_trip} ms, {traffic:?}, seed {seed}");
                let share = bench.traffic_bytes as f64 / 1803.0 * 0.01;
                let spent = bench.probe_bytes.iter().sum::<u64>() as f64 / 1803.0;
                assert!(spent <= share + 100.0, "{spent} B/s beside {share}, {traffic:?}");
            }
        }
    }
}

#[test]
fn a_bad_path_is_not_left_for_one_that_is_slow_unknown_or_costs() {
    let lossy = Path { loss: 0.1, ..Path::new(40) };
    let mut metered = choosing(BOTH_KNOWN);
    metered.interfaces[1].metered = true;
    let slow = choosing([Some(50_000), Some(200)]);
    let unknown = choosing([Some(50_000), None]);
    for (config, why) in [(metered, "metered"), (slow, "slow"), (unknown, "unknown")] {
        for traffic in [Traffic::Bulk(20), Traffic::Download(10)] {
            let mut bench = Bench::new(5, config.clone(), [lossy, Path::new(40)]);
            bench.run_for(Duration::from_secs(3));
            bench.start(traffic);
            bench.run_for(HALF_AN_HOUR);
            assert_eq!(reasons(&bench), [""; 0], "{why}, {traffic:?}");
            assert!(bench.mobile.path_quality(IF_WLAN).fault.is_some(), "it is seen all the same");
        }
    }
}

#[test]
fn a_metered_path_is_used_when_hardly_anything_gets_through_the_other_or_it_is_dead() {
    let mut config = choosing(BOTH_KNOWN);
    // The order would have it first.
    config.interfaces[0].metered = true;
    let mut bench = Bench::new(5, config, [Path::new(40), Path::new(40)]);
    bench.run_for(Duration::from_secs(3));
    assert_eq!(bench.active(), Some(1));
    bench.start(Traffic::Download(10));
    bench.run_for(MINUTE);
    bench.paths[1].loss = 0.35;
    until_active(&mut bench, 0, MINUTE * 3);
    assert_eq!(reasons(&bench), ["path-lossy"]);
    bench.paths[1].loss = 0.0;
    until_active(&mut bench, 1, MINUTE * 10);
    bench.paths[1].dead = true;
    until_active(&mut bench, 0, Duration::from_secs(5));
    bench.paths[1].dead = false;
    until_active(&mut bench, 1, MINUTE * 2);
    assert_eq!(reasons(&bench), ["path-lossy", "path-good-again", "path-silent", "preferred"]);
}

#[test]
fn who_leaves_for_a_path_that_carries_less_than_was_told_comes_back_and_stays() {
    let lossy = Path { loss: 0.1, rate: Some(20_000_000), ..Path::new(40) };
    let slow = Path { rate: Some(300_000), queue: ms(1500), ..Path::new(40) };
    let mut bench = Bench::new(5, choosing([Some(20_000), Some(20_000)]), [lossy, slow]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(40));
    until_active(&mut bench, 1, MINUTE * 3);
    let away = until_active(&mut bench, 0, MINUTE);
    assert!(away <= Duration::from_secs(20), "{away:?}");
    assert_eq!(reasons(&bench), ["path-lossy", "not-better"]);
    bench.run_for(MINUTE * 50);
    assert_eq!(reasons(&bench).len(), 2, "what it carries is known now");
}

#[test]
fn a_bad_path_is_better_than_a_dead_one() {
    let mut bench = Bench::new(5, choosing(BOTH_KNOWN), [Path::new(40), Path::new(40)]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Download(10));
    bench.run_for(MINUTE);
    bench.paths[0].loss = 0.1;
    until_active(&mut bench, 1, MINUTE * 3);
    bench.paths[1].dead = true;
    until_active(&mut bench, 0, Duration::from_secs(5));
    assert_eq!(reasons(&bench), ["path-lossy", "path-silent"]);
}

#[test]
fn what_the_owner_chose_is_not_left_because_it_is_bad() {
    for off in [false, true] {
        let mut config = choosing(BOTH_KNOWN);
        config.leave_bad_paths = !off;
        let mut bench = Bench::new(5, config, [Path { loss: 0.1, ..Path::new(40) }, Path::new(40)]);
        bench.run_for(Duration::from_secs(3));
        if !off {
            bench.mobile.switch_to(bench.now, IF_WLAN, Notice::None).unwrap();
            bench.drain();
        }
        bench.start(Traffic::Download(10));
        bench.run_for(MINUTE * 10);
        assert_eq!(bench.active(), Some(0));
    }
}

/// Each path is bad while it is used, and good while it is not: nothing can be worse to choose between.
#[test]
fn whatever_paths_do_they_are_changed_no_more_often_than_the_bound() {
    for (traffic, seed) in [(Traffic::Download(10), 1), (Traffic::Bulk(20), 2), (Traffic::Requests(20), 3)] {
        let mut bench = Bench::new(seed, choosing(BOTH_KNOWN), [Path::new(40), Path::new(40)]);
        bench.run_for(Duration::from_secs(3));
        bench.start(traffic);
        let begin = bench.now;
        while bench.now < begin + Duration::from_secs(4 * 3600) {
            for path in 0..2 {
                bench.paths[path].loss = if bench.active() == Some(path) { 0.15 } else { 0.0 };
            }
            bench.run_for(ms(500));
            let minutes = (bench.now - begin).as_secs_f64() / 60.0;
            let left = |path: InterfaceId| {
                let left = bench.events.iter().filter(|(_, event)| {
                    matches!(event, HandoverEvent::Initiated { from: Some(from), reason: HandoverReason::PathBad(_), .. } if *from == path)
                });
                left.count() as f64
            };
            for path in [IF_WLAN, IF_GSM] {
                let bound = 1.0 + (1.0 + minutes.min(63.0)).log2() + (minutes - 63.0).max(0.0) / 60.0;
                assert!(left(path) <= bound, "{} times in {minutes} min", left(path));
            }
        }
        let back = reasons(&bench).iter().filter(|reason| **reason == "path-good-again").count();
        let left = reasons(&bench).iter().filter(|reason| **reason == "path-lossy").count();
        assert!(left >= 4 && back <= left, "{left}, {back}: it is no test otherwise");
    }
}
