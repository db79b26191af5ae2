//! TCP-CM as the paper has it (Le, Fu and Hogrefe 2008, sections 3.2, 3.2.1 and 3.2.2), a test for each of its sentences; TCP-HO and
//! Demo-Vegas.

use core::time::Duration;

use alloc::vec::Vec;

use careof_base::{DataRate, Instant};
use proptest::prelude::*;

use super::advice::{advise, at, every_profile, name, slower, under_way};
use super::robustness::any_config;
use super::script::{Peer, plain, play};
use super::world::{CLIENT, Sent, World};
use crate::{
    Advice, BandwidthEstimator, Config, CongestionControl, Event, InitialWindow, Phase, Profile,
    RtoEstimator, Variant, Wake,
};

const REPLACED: Advice = Advice::Replaced { repeat: true };

/// Senders whose timer runs for nothing but retransmission.
fn with_one_timer() -> Vec<Config> {
    [Profile::Tahoe, Profile::Reno, Profile::NewReno, Profile::Sack].map(Config::from).to_vec()
}

fn estimating(config: &Config, estimator: BandwidthEstimator, seconds: u64) -> World {
    let mut world = World::alike(config, 25);
    for way in &mut world.ways {
        way.rate = Some(DataRate::from_megabits_per_second(10));
        way.queue = 40;
    }
    world.ends[CLIENT].estimate_bandwidth(estimator);
    world.ends[CLIENT].write(u64::MAX);
    world.run_until(Instant::from_secs(seconds));
    world
}

fn measured(world: &World) -> Option<(Option<DataRate>, Duration, Option<u32>)> {
    world.events[CLIENT].iter().find_map(|event| match *event {
        Event::PathMeasured { bandwidth, round_trip, window } => Some((bandwidth, round_trip, window)),
        _ => None,
    })
}

// Section 3.2.1: the mobile node sends.

#[test]
fn at_the_initiation_the_timer_is_suspended_and_at_the_termination_it_goes_on_with_its_value() {
    for config in with_one_timer() {
        let mut world = under_way(&config, 5);
        let (due, wake) = world.ends[CLIENT].next_timeout().unwrap();
        assert_eq!(wake, Wake::Retransmission);
        let rest = due - world.now;
        let rto = world.ends[CLIENT].snapshot().rto;
        advise(&mut world, Advice::Away);
        let left = world.now;
        world.outages.push((left, left + Duration::from_secs(8)));
        at(&mut world, left + Duration::from_secs(8));
        advise(&mut world, Advice::Resume);
        let (due, wake) = world.ends[CLIENT].next_timeout().unwrap();
        assert_eq!((due - world.now, wake), (rest, Wake::Retransmission), "{}", name(&config));
        assert_eq!(world.ends[CLIENT].snapshot().rto, rto, "{}", name(&config));
    }
}

#[test]
fn neither_window_nor_threshold_nor_estimate_of_a_sender_that_has_moved_is_reset() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        advise(&mut world, Advice::Away);
        let left = world.now;
        world.outages.push((left, left + Duration::from_secs(2)));
        at(&mut world, left + Duration::from_secs(2));
        let before = world.ends[CLIENT].snapshot();
        advise(&mut world, Advice::Resume);
        let after = world.ends[CLIENT].snapshot();
        assert_eq!((after.srtt, after.rto), (before.srtt, before.rto), "{}", name(&config));
        assert_eq!(after.ssthresh, before.ssthresh, "{}", name(&config));
        assert!(after.cwnd >= before.cwnd && after.cwnd <= before.cwnd + 2 * before.mss, "{}", name(&config));
    }
}

const TWO: fn() -> Config = || Config { initial_window: InitialWindow::Segments(2), ..plain() };

#[test]
fn where_the_usable_window_is_zero_it_grows_by_one_segment_which_leaves() {
    play(
        TWO(),
        &Peer::default(),
        "   0 write 8000
            0 > 0+1000
            0 > 1000+1000
           10 away
         3000 resume
         3000 > 2000+1000
            = cwnd 3",
    );
}

#[test]
fn where_the_window_has_room_what_waits_leaves_and_the_window_stays() {
    play(
        TWO(),
        &Peer::default(),
        "   0 write 1000
            0 > 0+1000
           10 away
           20 write 1000
         3000 resume
         3000 > 1000+1000
            = cwnd 2",
    );
}

#[test]
fn the_peers_window_holds_for_the_segment_more() {
    let peer = Peer { window: 2_000, ..Peer::default() };
    play(
        TWO(),
        &peer,
        "   0 write 8000
            0 > 0+1000
            0 > 1000+1000
           10 away
         3000 resume
         3001 silence",
    );
}

#[test]
fn what_the_old_path_carried_is_confirmed_by_the_first_acknowledgement_of_the_new_one() {
    play(
        TWO(),
        &Peer::default(),
        "   0 write 3000
            0 > 0+1000
            0 > 1000+1000
           10 away
         3000 resume
         3000 > 2000+1000
         3100 < ack 3000
            = flight 0 phase open",
    );
}

// Section 3.2.2: the correspondent sends.

#[test]
fn round_trip_and_its_variation_are_cleared_and_the_first_sample_of_the_new_path_sets_them() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let left = world.now;
        world.outages.push((left, left + Duration::from_secs(3)));
        world.run_until(left + Duration::from_secs(3));
        world.now = left + Duration::from_secs(3);
        slower(&mut world);
        advise(&mut world, REPLACED);
        let state = world.ends[CLIENT].snapshot();
        assert_eq!((state.srtt, state.rttvar, state.backoff), (None, None, 0), "{}", name(&config));
        assert_eq!(state.rto, config.effective_rto_initial(), "{}", name(&config));
        world.run_while(left + Duration::from_secs(20), |world| measured(world).is_none());
        let (_, round_trip, _) = measured(&world).unwrap_or_else(|| panic!("{}", name(&config)));
        // 400 ms and the time of a segment on the line.
        assert!(round_trip >= Duration::from_millis(400), "{}: {round_trip:?}", name(&config));
        let state = world.ends[CLIENT].snapshot();
        let fine = matches!(config.rto, RtoEstimator::Rfc6298 | RtoEstimator::FastDecrease);
        if fine && config.variant != Variant::Linux {
            let srtt = state.srtt.unwrap();
            assert_eq!(state.rttvar, Some(srtt / 2), "{}", name(&config));
            // The clock's granularity, and the least timeout.
            let rto = (srtt + 4 * (srtt / 2)).max(config.effective_rto_min());
            assert!(state.rto.abs_diff(rto) < Duration::from_micros(2), "{}: {state:?}", name(&config));
        }
    }
}

#[test]
fn outstanding_segments_leave_again_at_once_whatever_a_timeout_has_left_of_the_window() {
    let config = Config { initial_window: InitialWindow::Segments(4), ..plain() };
    let ended = play(
        config,
        &Peer::default(),
        "   0 write 8000
            0 > 0+1000
            0 > 1000+1000
            0 > 2000+1000
            0 > 3000+1000
          300 > 0+1000 again
            = cwnd 1
          500 replaced
          500 > 0+1000 again
          500 > 1000+1000 again
          500 > 2000+1000 again
          500 > 3000+1000 again
          700 < ack 4000
          700 > 4000+1000
          700 > 5000+1000
          700 > 6000+1000
          700 > 7000+1000
          900 < ack 5000
            = srtt 200 rttvar 100 rto 600",
    );
    assert_eq!(ended.connection.counters().timeouts, 1);
}

#[test]
fn the_retransmission_is_no_sign_of_congestion() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let before = world.ends[CLIENT].snapshot();
        advise(&mut world, REPLACED);
        let after = world.ends[CLIENT].snapshot();
        assert!(after.cwnd >= before.cwnd, "{}: {before:?}, {after:?}", name(&config));
        assert_eq!(after.ssthresh, before.ssthresh, "{}", name(&config));
        let (una, sent_before) = (before.snd_una, world.trace.len());
        world.run_until(world.now + Duration::from_millis(20));
        let is_data = |sent: &&Sent| sent.from == CLIENT && sent.segment.payload_len > 0;
        let again = world.trace[sent_before..].iter().find(is_data);
        assert_eq!(again.map(|sent| sent.segment.seq), Some(una), "{}", name(&config));
    }
}

#[test]
fn threshold_and_window_become_the_estimate_times_the_new_round_trip() {
    for config in every_profile() {
        for &estimator in BandwidthEstimator::ALL {
            let what = alloc::format!("{} {estimator}", name(&config));
            let mut world = estimating(&config, estimator, 5);
            let left = world.now;
            world.outages.push((left, left + Duration::from_millis(100)));
            at(&mut world, left + Duration::from_millis(100));
            let estimate = world.ends[CLIENT].bandwidth_estimate();
            advise(&mut world, REPLACED);
            world.run_while(left + Duration::from_secs(9), |world| measured(world).is_none());
            let (bandwidth, round_trip, window) = measured(&world).unwrap_or_else(|| panic!("{what}"));
            assert_eq!(bandwidth, estimate, "{what}");
            let product = bandwidth.unwrap_or_else(|| panic!("{what}")).bits_in(round_trip) / 8;
            assert_eq!(window.map(u64::from), Some(product), "{what}");
            let state = world.ends[CLIENT].snapshot();
            let segment = u64::from(state.mss);
            for found in [state.cwnd, state.ssthresh] {
                // Some senders count in whole segments, and a model has its own idea of the window.
                let is_modeled =
                    matches!(config.congestion, CongestionControl::Bbr | CongestionControl::Bbr3);
                assert!(
                    is_modeled || u64::from(found).abs_diff(product) < segment,
                    "{what}: {state:?}, {product}"
                );
            }
        }
    }
}

#[test]
fn acknowledgements_of_what_left_before_do_not_move_the_window() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let told = world.now;
        advise(&mut world, Advice::Replaced { repeat: false });
        let before = world.ends[CLIENT].snapshot();
        if before.phase != Phase::Open {
            continue;
        }
        // Whatever is acknowledged within a round trip had left before.
        world.run_until(told + Duration::from_millis(49));
        let after = world.ends[CLIENT].snapshot();
        assert!(after.snd_una.is_after(before.snd_una), "{}", name(&config));
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh), "{}", name(&config));
        assert_eq!(measured(&world), None, "{}", name(&config));
        world.run_until(told + Duration::from_millis(250));
        assert!(measured(&world).is_some(), "{}", name(&config));
    }
}

#[test]
fn without_an_estimate_the_window_stays() {
    let mut world = under_way(&Config::from(Profile::Sack), 5);
    advise(&mut world, REPLACED);
    world.run_for(1);
    assert_eq!(measured(&world).map(|(bandwidth, _, window)| (bandwidth, window)), Some((None, None)));
}

#[test]
fn after_a_replaced_path_the_transfer_goes_on() {
    for config in every_profile() {
        for &estimator in BandwidthEstimator::ALL {
            let mut world = estimating(&config, estimator, 5);
            let left = world.now;
            world.outages.push((left, left + Duration::from_secs(2)));
            world.run_until(left + Duration::from_secs(2));
            world.now = left + Duration::from_secs(2);
            advise(&mut world, REPLACED);
            let before = world.ends[CLIENT].acknowledged();
            world.run_for(10);
            let bytes = world.ends[CLIENT].acknowledged() - before;
            // A fifth of the path: 16 KiB a round trip are all that Linux 2.0's peer takes, and of what leaves at once senders
            // without selective acknowledgements lose more than they can repair without a timeout.
            let least = 2_500_000;
            assert!(bytes > least, "{} {estimator}: {bytes}", name(&config));
        }
    }
}

#[test]
fn what_a_timeout_has_repeated_before_gives_no_round_trip_of_the_new_path() {
    let config = Config { initial_window: InitialWindow::Segments(2), ..plain() };
    play(
        config,
        &Peer::default(),
        "   0 write 4000
            0 > 0+1000
            0 > 1000+1000
          300 > 0+1000 again
          400 replaced
          400 > 0+1000 again
          400 > 1000+1000 again
# The answer to what left at 300.
          440 < ack 1000
          440 > 2000+1000
          600 < ack 2000
          600 > 3000+1000
          640 < ack 3000
            = srtt 200 rttvar 100",
    );
}

// The estimators.

#[test]
fn both_estimators_find_the_rate_of_a_path_that_is_filled() {
    for profile in [Profile::Reno, Profile::NewReno, Profile::Sack, Profile::Linux] {
        let config = Config { congestion: CongestionControl::Cubic, ..Config::from(profile) };
        for &estimator in BandwidthEstimator::ALL {
            let world = estimating(&config, estimator, 20);
            let estimate = world.ends[CLIENT].bandwidth_estimate().unwrap().bits_per_second() as f64 / 1e6;
            assert!((8.0..10.1).contains(&estimate), "{profile:?} {estimator}: {estimate}");
        }
    }
}

#[test]
fn an_estimate_survives_silence() {
    for &estimator in BandwidthEstimator::ALL {
        let mut world = estimating(&Config::from(Profile::NewReno), estimator, 5);
        let before = world.ends[CLIENT].bandwidth_estimate();
        let left = world.now;
        world.outages.push((left, left + Duration::from_secs(6)));
        world.run_until(left + Duration::from_secs(6));
        assert!(world.ends[CLIENT].counters().timeouts > 0);
        let after = world.ends[CLIENT].bandwidth_estimate();
        // What was on its way back when the path went may still have been measured.
        let [before, after] = [before, after].map(|rate| rate.unwrap().bits_per_second() as f64 / 1e6);
        assert!((after / before - 1.0).abs() < 0.2, "{estimator}: {before}, {after}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_estimator_changes_nothing_that_is_sent(
        config in any_config(),
        loss in 0.0..0.05_f64,
        seed in any::<u64>(),
        delivery_rate in any::<bool>(),
    ) {
        let trace = |estimator: Option<BandwidthEstimator>| {
            let mut world = World::alike(&config, 20);
            world.chance = careof_base::RandomStream::new(seed, 0, "estimator");
            world.loss = careof_base::Probability::new(loss).expect("below 1");
            if let Some(estimator) = estimator {
                world.ends[CLIENT].estimate_bandwidth(estimator);
            }
            world.ends[CLIENT].write(200_000);
            world.run_until(Instant::from_secs(30));
            let sent = |sent: &Sent| (sent.at, sent.from, sent.segment, sent.retransmission);
            world.trace.iter().map(sent).collect::<Vec<_>>()
        };
        let all = BandwidthEstimator::ALL;
        prop_assert_eq!(trace(None), trace(Some(all[usize::from(delivery_rate)])));
    }
}

// TCP-HO.

#[test]
fn four_samples_after_the_notification_set_the_threshold_and_no_more() {
    let config = Config { initial_window: InitialWindow::Segments(2), ..plain() };
    let mut script = play(
        config,
        &Peer::default(),
        "   0 write 90000
            0 > 0+1000
            0 > 1000+1000",
    );
    // 1 Mbit/s and 200 ms hold 25,000 bytes, headers included.
    let now = |ms: u64| super::script::BASE + Duration::from_millis(ms);
    script.play("10 silence");
    script.connection.advise(now(10), &Advice::HandedOff(DataRate::from_megabits_per_second(1)));
    let mut thresholds = Vec::new();
    let mut una = 0_u32;
    for round in 0..7_u64 {
        while script.connection.poll_transmit(now(10 + round * 200)).is_some() {}
        una = una.max(script.connection.snapshot().snd_nxt.bytes_since(super::script::ISS.plus(1)));
        let segment = careof_wire::Segment {
            source_port: 2_000,
            destination_port: 1_000,
            seq: script.connection.rcv_nxt(),
            ack: super::script::ISS.plus(1).plus(una),
            flags: careof_wire::Flags::ACK,
            window: u16::MAX,
            ..careof_wire::Segment::default()
        };
        let samples = script.connection.counters().rtt_samples;
        script.connection.handle_segment(now(10 + (round + 1) * 200), &segment);
        if script.connection.counters().rtt_samples > samples {
            thresholds.push(script.connection.snapshot().ssthresh);
        }
        if thresholds.len() == 4 {
            assert!(script.connection.sender.handed_off.is_none());
        }
    }
    assert!(thresholds.len() >= 4, "{thresholds:?}");
    let expected = 25_000 * 1_000 / (1_000 + 40);
    assert!(thresholds[..4].iter().all(|found| found.abs_diff(expected) <= 1), "{thresholds:?}");
}

#[test]
fn congestion_ends_the_following_of_the_threshold() {
    let mut world = under_way(&Config::from(Profile::NewReno), 5);
    let left = world.now;
    world.outages.push((left, left + Duration::from_secs(4)));
    advise(&mut world, Advice::HandedOff(DataRate::from_megabits_per_second(3)));
    assert!(world.ends[CLIENT].sender.handed_off.is_some());
    world.run_until(left + Duration::from_secs(5));
    assert!(world.ends[CLIENT].counters().timeouts > 0);
    world.run_for(5);
    assert!(world.ends[CLIENT].sender.handed_off.is_none());
}

#[test]
fn told_the_rate_the_sender_does_not_wait_for_its_timer() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let left = world.now;
        world.outages.push((left, left + Duration::from_secs(4)));
        world.run_until(left + Duration::from_secs(4));
        world.now = left + Duration::from_secs(4);
        let una = world.ends[CLIENT].snapshot().snd_una;
        advise(&mut world, Advice::HandedOff(DataRate::from_megabits_per_second(10)));
        world.run_until(left + Duration::from_millis(4_100));
        assert!(world.ends[CLIENT].snapshot().snd_una.is_after(una), "{}", name(&config));
    }
}

// Demo-Vegas.

#[test]
fn the_least_round_trip_is_measured_anew_from_what_leaves_after_the_move() {
    for (variant, congestion) in [
        (Variant::Vegas, CongestionControl::Vegas),
        (Variant::Linux, CongestionControl::Vegas),
        (Variant::NewReno, CongestionControl::Vegas),
    ] {
        let profile = if variant == Variant::Linux { Profile::Linux } else { Profile::NewReno };
        let config = Config { variant, congestion, initial_ssthresh: 20_000, ..Config::from(profile) };
        let goodput = |advice: Option<Advice>| {
            let mut world = under_way(&config, 5);
            for way in &mut world.ways {
                way.delay = Duration::from_millis(100);
            }
            if let Some(advice) = advice {
                advise(&mut world, advice);
            }
            world.run_for(40);
            let before = world.ends[CLIENT].acknowledged();
            world.run_for(20);
            world.ends[CLIENT].acknowledged() - before
        };
        let [without, with] = [None, Some(Advice::MeasureBaseRtt)].map(goodput);
        if variant == Variant::Linux {
            // Linux measures anew by itself whenever nothing is in flight.
            assert!(with > 20_000_000, "{with} B");
            continue;
        }
        // Taken for a queue, the longer round trip has Vegas shrink its window to what the old one would have filled.
        assert!(with > 2 * without, "{variant} {congestion}: {without} B, {with} B");
    }
}
