//! A sender that is told of a handover.

use core::time::Duration;

use alloc::vec::Vec;

use careof_base::{DataRate, Instant, Probability, RandomStream};
use careof_wire::SeqNumber;
use proptest::prelude::*;

use super::robustness::any_config;
use super::script::{Peer, plain, play};
use super::world::{CLIENT, Direction, SERVER, Sent, World};
use crate::{
    Advice, BandwidthEstimator, Config, CongestionControl, Connection, Event, InitialWindow, NewPath, Phase,
    Profile, Role, RtoEstimator, Variant,
};

const SLOW: NewPath = NewPath {
    rate: Some(DataRate::from_bits_per_second(384_000)),
    round_trip: Some(Duration::from_millis(400)),
};

pub(super) fn any_advice(chance: &mut RandomStream) -> Advice {
    let mut up_to = |bits: u64| {
        let magnitude = chance.below(bits);
        chance.below(2 << magnitude)
    };
    let (rto, round_trip) = (Duration::from_micros(up_to(27)), Duration::from_micros(up_to(27)));
    let rate = DataRate::from_bits_per_second(up_to(36));
    let path = NewPath {
        rate: (chance.below(4) > 0).then_some(rate),
        round_trip: (chance.below(4) > 0).then_some(round_trip),
    };
    match chance.below(14) {
        0 => Advice::ResetRto { slow_start: false },
        1 => Advice::ResetRto { slow_start: true },
        2 => Advice::SetRto(rto),
        3 => Advice::Rearm,
        4 | 5 => Advice::Away,
        6 => Advice::Moved(path),
        7 => Advice::Resume,
        8 => Advice::HandedOff(rate),
        9 => Advice::MeasureBaseRtt,
        10 | 11 => Advice::Replaced { repeat: chance.below(2) > 0 },
        _ => Advice::Back(path),
    }
}

pub(super) fn every_profile() -> Vec<Config> {
    let mut configs: Vec<Config> = Profile::ALL.iter().copied().map(Config::from).collect();
    for &congestion in CongestionControl::ALL {
        for profile in [Profile::Linux, Profile::Sack] {
            configs.push(Config { congestion, ..Config::from(profile) });
        }
    }
    let estimator = |&rto| Config { rto, ..Config::from(Profile::NewReno) };
    configs.extend(RtoEstimator::ALL.iter().map(estimator));
    configs
}

/// A transfer without end over 10 Mbit/s and 50 ms, `seconds` old.
pub(super) fn under_way(config: &Config, seconds: u64) -> World {
    let mut world = World::alike(config, 25);
    for way in &mut world.ways {
        way.rate = Some(DataRate::from_megabits_per_second(10));
        way.queue = 40;
    }
    world.ends[CLIENT].write(u64::MAX);
    world.run_until(Instant::from_secs(seconds));
    world
}

/// Runs until `until`, which is the time then.
pub(super) fn at(world: &mut World, until: Instant) {
    world.run_until(until);
    world.now = until;
}

pub(super) fn advise(world: &mut World, advice: Advice) {
    let now = world.now;
    world.ends[CLIENT].advise(now, &advice);
}

pub(super) fn slower(world: &mut World) {
    for end in [CLIENT, SERVER] {
        world.ways[end] = Direction::new(Duration::from_millis(200));
        world.ways[end].rate = SLOW.rate;
        world.ways[end].queue = 100;
    }
}

pub(super) fn name(config: &Config) -> alloc::string::String {
    alloc::format!("{} {} {}", config.variant, config.congestion, config.rto)
}

#[test]
fn a_reset_estimator_has_its_initial_timeout_and_takes_no_sample_of_what_left_before() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let told = world.now;
        advise(&mut world, Advice::ResetRto { slow_start: false });
        let state = world.ends[CLIENT].snapshot();
        assert_eq!(
            (state.rto, state.srtt, state.backoff),
            (config.effective_rto_initial(), None, 0),
            "{}",
            name(&config)
        );
        slower(&mut world);
        // All that was on the old path is acknowledged, over it.
        world.run_until(told + Duration::from_millis(150));
        let state = world.ends[CLIENT].snapshot();
        assert_eq!((state.rto, state.srtt), (config.effective_rto_initial(), None), "{}", name(&config));
        world.run_until(told + Duration::from_secs(20));
        assert!(world.ends[CLIENT].snapshot().srtt >= Some(Duration::from_millis(300)), "{}", name(&config));
    }
}

#[test]
fn a_reordering_suspected_while_the_path_was_away_leaves_a_timer_for_what_is_outstanding() {
    let config = Config {
        variant: Variant::Linux,
        sack: true,
        rack: true,
        initial_window: InitialWindow::Segments(4),
        ..plain()
    };
    let peer = Peer { sack: true, ..Peer::default() };
    play(
        config,
        &peer,
        "   0 write 3000
            0 > 0+1000
            0 > 1000+1000
            0 > 2000+1000
           90 away
          100 < ack 0 sack 1000-2000
          101 moved
         1101 > 0+1000 again",
    );
}

#[test]
fn a_connection_that_is_over_is_not_woken_by_what_icmp_says() {
    for variant in [Variant::Linux, Variant::NewReno] {
        let config =
            Config { variant, icmp_unreachable: true, initial_window: InitialWindow::Segments(2), ..plain() };
        let script = "
            0 write 2000
            0 > 0+1000
            0 > 1000+1000
          300 > 0+1000 again
          400 < rst
              = state CLOSED
          410 unreachable 0
          410 mtu 500
        10000 silence";
        let mut ended = play(config, &Peer::default(), script);
        assert_eq!(ended.connection.next_timeout(), None, "{variant}");
        assert_eq!(ended.connection.poll_transmit(Instant::from_secs(30)), None, "{variant}");
    }
}

#[test]
fn what_waits_for_its_time_on_the_old_path_leaves_at_once_on_the_new_one() {
    let config = Config {
        variant: Variant::Linux,
        pacing: true,
        initial_window: InitialWindow::Segments(10),
        ..plain()
    };
    let segments: alloc::string::String =
        (0..10).map(|n| alloc::format!("0 > {}+1000\n", n * 1_000)).collect();
    let mut script = play(config, &Peer::default(), &["0 write 10000\n", &segments].concat());
    script.play(
        "   1 < ack 10000
            2 close
            3 moved
            3 > 10000+0 fin",
    );
}

#[test]
fn a_narrower_path_does_not_keep_linux_2_0_from_closing() {
    let config = Config { variant: Variant::Linux20, initial_window: InitialWindow::Segments(2), ..plain() };
    play(
        config,
        &Peer::default(),
        "   0 write 2000
            0 > 0+1000
            0 > 1000+1000
           10 mtu 540
           10 > 0+500 again
           10 > 500+500 again
           10 > 1000+500 again
          100 < ack 2000
          200 close
          200 > 2000+0 fin",
    );
}

#[test]
fn told_of_a_slower_path_no_segment_times_out_for_nothing() {
    let spurious = |advice: Option<Advice>| {
        let config = Config { rto: RtoEstimator::Linux20, ..Config::from(Profile::Reno) };
        let config = Config { receive_window: 16_384, ..config };
        let mut world = World::alike(&config, 2);
        world.ends[CLIENT].write(u64::MAX);
        world.run_until(Instant::from_secs(5));
        assert_eq!(world.ends[CLIENT].snapshot().rto, Duration::from_millis(200));
        for way in &mut world.ways {
            *way = Direction::new(Duration::from_millis(400));
        }
        if let Some(advice) = advice {
            advise(&mut world, advice);
        }
        world.run_for(10);
        world.ends[CLIENT].counters().timeouts
    };
    assert!(spurious(None) > 0);
    assert_eq!(spurious(Some(Advice::ResetRto { slow_start: false })), 0);
    assert_eq!(spurious(Some(Advice::SetRto(Duration::from_secs(2)))), 0);
}

#[test]
fn slow_start_begins_with_one_segment_and_without_a_threshold() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        advise(&mut world, Advice::ResetRto { slow_start: true });
        let state = world.ends[CLIENT].snapshot();
        assert_eq!((state.cwnd, state.ssthresh), (state.mss, u32::MAX), "{}", name(&config));
        assert_ne!(state.phase, Phase::FastRecovery);
        let before = world.ends[CLIENT].acknowledged();
        world.run_for(20);
        let goodput = world.ends[CLIENT].acknowledged() - before;
        assert!(goodput > 5_000_000, "{}: {goodput}", name(&config));
    }
}

#[test]
fn a_new_timeout_is_kept_within_the_estimators_bounds() {
    let mut world = under_way(&Config::from(Profile::NewReno), 2);
    for (told, kept) in [(0, 1_000), (1_500, 1_500), (90_000, 60_000)] {
        advise(&mut world, Advice::SetRto(Duration::from_millis(told)));
        assert_eq!(world.ends[CLIENT].snapshot().rto, Duration::from_millis(kept));
    }
}

#[test]
fn a_timer_begins_anew_with_each_notification_and_nothing_else_changes() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let before = world.ends[CLIENT].snapshot();
        world.outages.push((world.now, world.now + Duration::from_secs(3)));
        let timeouts = world.ends[CLIENT].counters().timeouts;
        // A notification each 100 ms, as a base station that fails to deliver sends them.
        for _ in 0..30 {
            let next = world.now + Duration::from_millis(100);
            at(&mut world, next);
            advise(&mut world, Advice::Rearm);
        }
        let after = world.ends[CLIENT].snapshot();
        assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts, "{}", name(&config));
        assert_eq!((after.srtt.is_some(), after.backoff), (before.srtt.is_some(), 0), "{}", name(&config));
    }
}

#[test]
fn while_the_path_is_away_nothing_leaves_and_nothing_times_out() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let (left, timeouts) = (world.now, world.ends[CLIENT].counters().timeouts);
        let cwnd = world.ends[CLIENT].snapshot().cwnd;
        advise(&mut world, Advice::Away);
        world.drain();
        world.outages.push((left, left + Duration::from_secs(8)));
        world.run_for(8);
        let sent = world.trace.iter().filter(|sent| sent.from == CLIENT && sent.at > left);
        assert_eq!(sent.count(), 0, "{}", name(&config));
        assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts, "{}", name(&config));
        assert!(world.ends[CLIENT].snapshot().cwnd >= cwnd, "{}", name(&config));
    }
}

#[test]
fn back_on_a_path_the_sender_knows_its_round_trip_and_its_window_and_repeats_what_was_outstanding() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let left = world.now;
        advise(&mut world, Advice::Away);
        world.outages.push((left, left + Duration::from_secs(2)));
        at(&mut world, left + Duration::from_secs(2));
        slower(&mut world);
        let una = world.ends[CLIENT].snapshot().snd_una;
        advise(&mut world, Advice::Back(SLOW));
        let state = world.ends[CLIENT].snapshot();
        // Average and four deviations; in jiffies a quarter more; in half seconds 1 and 4/2.
        let rto = match config.rto {
            RtoEstimator::Rfc6298 | RtoEstimator::FastDecrease | RtoEstimator::Linux => 1_200..=1_200,
            RtoEstimator::Linux20 => 1_500..=2_700,
            RtoEstimator::Bsd => 1_500..=1_500,
        };
        assert!(rto.contains(&state.rto.as_millis()), "{}: {:?}", name(&config), state.rto);
        let srtt = state.srtt.unwrap_or_default();
        assert!(srtt.abs_diff(Duration::from_millis(400)) < Duration::from_millis(150), "{srtt:?}");
        // 384 kbit/s times 400 ms, less headers.
        let segments = f64::from(state.cwnd) / f64::from(state.mss);
        assert!((12.0..13.2).contains(&segments), "{}: {segments}", name(&config));
        world.drain();
        let again: Vec<&Sent> = world
            .trace
            .iter()
            .filter(|sent| sent.from == CLIENT && sent.at == world.now && sent.segment.payload_len > 0)
            .collect();
        assert_eq!(again.first().map(|sent| sent.segment.seq), Some(una), "{}", name(&config));
        let timeouts = world.ends[CLIENT].counters().timeouts;
        let before = world.ends[CLIENT].acknowledged();
        world.run_for(20);
        assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts, "{}", name(&config));
        // 48 kbyte/s less headers, for 20 s.
        let share = (world.ends[CLIENT].acknowledged() - before) as f64 / (20.0 * 48_000.0);
        // Some had arrived before. Linux 2.0 sends nothing new before it has sent everything again, also what had arrived.
        let least = if config.variant == Variant::Linux20 { 0.65 } else { 0.8 };
        assert!((least..1.05).contains(&share), "{}: {share}", name(&config));
    }
}

#[test]
fn moved_to_a_path_the_sender_knows_it_and_repeats_nothing_that_may_still_arrive() {
    let mut tried = 0;
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        slower(&mut world);
        let before = world.ends[CLIENT].snapshot();
        let timeouts = world.ends[CLIENT].counters().timeouts;
        let repeated = world.ends[CLIENT].counters().segments_retransmitted;
        advise(&mut world, Advice::Moved(SLOW));
        let state = world.ends[CLIENT].snapshot();
        let segments = f64::from(state.cwnd) / f64::from(state.mss);
        assert!((12.0..13.2).contains(&segments), "{}: {segments}", name(&config));
        world.drain();
        if before.phase == Phase::Open {
            tried += 1;
            let counters = world.ends[CLIENT].counters();
            assert_eq!(counters.segments_retransmitted, repeated, "{}", name(&config));
        }
        world.run_for(5);
        assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts, "{}", name(&config));
    }
    assert!(tried > 5, "{tried} were not just recovering");
}

#[test]
fn an_acknowledgement_that_is_asked_for_leaves_alone_and_once() {
    for config in every_profile() {
        let mut world = under_way(&config, 1);
        let now = world.now;
        let end = &mut world.ends[CLIENT];
        while end.poll_transmit(now).is_some() {}
        end.acknowledge();
        let sent = end.poll_transmit(now).expect("it was asked for");
        assert_eq!((sent.segment.payload_len, sent.retransmission), (0, false), "{}", name(&config));
        assert_eq!(end.poll_transmit(now), None, "{}", name(&config));
    }
    let mut closed = Connection::new(Config::default(), Role::Active, 1, 2, SeqNumber(0)).unwrap();
    closed.acknowledge();
    assert_eq!(closed.poll_transmit(Instant::ZERO), None);
}

#[test]
fn without_the_end_of_a_handover_the_sender_goes_on_after_the_greatest_timeout() {
    for config in every_profile() {
        let mut world = under_way(&config, 5);
        let left = world.now;
        advise(&mut world, Advice::Away);
        world.run_until(left + config.effective_rto_max() + Duration::from_secs(30));
        let next = world.trace.iter().find(|sent| sent.from == CLIENT && sent.at > left).map(|sent| sent.at);
        let late = next.expect("it goes on") - (left + config.effective_rto_max());
        assert!(late <= Duration::from_millis(1), "{}: {late:?}", name(&config));
        let before = world.ends[CLIENT].acknowledged();
        world.run_for(10);
        assert!(world.ends[CLIENT].acknowledged() > before + 1_000_000, "{}", name(&config));
    }
}

#[test]
fn what_is_written_and_closed_while_the_path_is_away_leaves_when_it_is_back() {
    for config in every_profile() {
        let mut world = World::alike(&config, 25);
        world.run_for(1);
        advise(&mut world, Advice::Away);
        world.ends[CLIENT].write(20_000);
        world.ends[CLIENT].close();
        world.run_for(3);
        assert_eq!(world.ends[SERVER].received(), 0, "{}", name(&config));
        advise(&mut world, Advice::Back(NewPath::default()));
        world.run_for(20);
        assert_eq!(world.ends[SERVER].received(), 20_000, "{}", name(&config));
        assert!(world.events[SERVER].contains(&Event::PeerClosed));
    }
}

#[test]
fn a_closed_connection_and_a_handshake_take_what_concerns_them() {
    let config = Config::from(Profile::Linux);
    let mut world = World::alike(&config, 25);
    world.outages.push((Instant::ZERO, Instant::from_secs(4)));
    world.run_until(Instant::from_millis(3_500));
    assert!(world.ends[CLIENT].snapshot().backoff > 0);
    advise(&mut world, Advice::Away);
    advise(&mut world, Advice::ResetRto { slow_start: true });
    assert_eq!(world.ends[CLIENT].snapshot().backoff, 0);
    world.run_for(5);
    assert!(world.ends[CLIENT].is_established());
    world.ends[CLIENT].abort();
    let before = world.ends[CLIENT].next_timeout();
    for advice in [Advice::Away, Advice::Back(SLOW), Advice::Rearm, Advice::ResetRto { slow_start: true }] {
        advise(&mut world, advice);
    }
    assert_eq!(world.ends[CLIENT].next_timeout(), before);
}

#[test]
fn a_recovery_under_way_ends_with_the_old_path() {
    for variant in [Variant::Reno, Variant::NewReno, Variant::Sack, Variant::Linux] {
        let profile = if variant == Variant::Linux { Profile::Linux } else { Profile::Sack };
        let mut world = World::alike(&Config { variant, ..Config::from(profile) }, 25);
        world.drops = (30..36).map(|segment| (segment, 1)).collect();
        world.ends[CLIENT].write(u64::MAX);
        world.run_while(Instant::from_secs(20), |world| {
            world.ends[CLIENT].snapshot().phase != Phase::FastRecovery
        });
        assert_eq!(world.ends[CLIENT].snapshot().phase, Phase::FastRecovery, "{variant}");
        advise(&mut world, Advice::Back(SLOW));
        assert_eq!(world.ends[CLIENT].snapshot().phase, Phase::Loss, "{variant}");
        let ssthresh = world.ends[CLIENT].snapshot().ssthresh;
        world.run_for(3);
        let after = world.ends[CLIENT].snapshot();
        assert_eq!((after.phase, after.ssthresh), (Phase::Open, ssthresh), "{variant}");
        assert_eq!(world.ends[CLIENT].counters().timeouts, 0, "{variant}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_advice_comes_at_any_time_every_byte_arrives_once(
        client in any_config(),
        server in any_config(),
        loss in 0.0..0.2_f64,
        seed in any::<u64>(),
        bytes in 1_u64..120_000,
        advices in 1_usize..20,
        spread in 1_u64..3_000,
        close_first in any::<bool>(),
        estimators in 0_usize..9,
    ) {
        let bytes = bytes.min(u64::from(server.receive_window) * 60).min(u64::from(client.mss) * 150);
        let mut world = World::new(client, server, Duration::from_millis(30));
        world.traced = false;
        for (end, which) in [(CLIENT, estimators % 3), (SERVER, estimators / 3)] {
            if let Some(&estimator) = BandwidthEstimator::ALL.get(which) {
                world.ends[end].estimate_bandwidth(estimator);
            }
        }
        world.chance = RandomStream::new(seed, 0, "advice");
        world.loss = Probability::new(loss).expect("below 1");
        let mut chance = RandomStream::new(seed, 1, "advice");
        world.ends[CLIENT].write(bytes);
        if close_first {
            world.ends[CLIENT].close();
        }
        for _ in 0..advices {
            let until = world.now + Duration::from_millis(chance.below(spread));
            at(&mut world, until);
            for end in [CLIENT, SERVER] {
                if chance.below(3) > 0 {
                    let advice = any_advice(&mut chance);
                    let now = world.now;
                    world.ends[end].advise(now, &advice);
                    world.ends[end].sender.check();
                }
            }
        }
        world.transfer(0, Instant::from_secs(200_000));
        let gave_up = world.events.iter().flatten().any(|event| *event == Event::GivenUp);
        prop_assert!(!gave_up || loss > 0.1, "gave up at a loss of {loss}");
        if !gave_up {
            prop_assert_eq!(world.ends[SERVER].received(), bytes);
            prop_assert!(world.ends.iter().all(crate::Connection::is_closed),
                "{:?} {:?}", world.ends[CLIENT].snapshot(), world.ends[SERVER].snapshot());
        }
    }
}

#[test]
fn advice_takes_the_sequence_numbers_as_they_come() {
    // The window of the transfer begins below where sequence numbers start over.
    let mut world = under_way(&Config::from(Profile::Sack), 1);
    assert!(world.ends[CLIENT].snapshot().snd_una.is_after(SeqNumber(0)));
    advise(&mut world, Advice::Back(SLOW));
    world.run_for(1);
    assert!(world.ends[CLIENT].acknowledged() > 0);
}
