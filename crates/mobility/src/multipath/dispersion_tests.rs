//! By which paths packets go.

use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{DataRate, RandomStream};
use careof_wire::shake::PathEcho;

use super::*;
use crate::PathState;
use crate::multipath::{DelayReading, LengthReading, RatioReading};

fn id(number: u8) -> PathId {
    PathId::new(number).unwrap()
}

/// One way, milliseconds, and kbit/s; cost and weight.
type Link = (u64, u64, u16, u32);

/// A dispersion over paths whose round trips and transits are known, and the time.
fn over(scheduler: Scheduler, links: &[Link]) -> (Dispersion, Instant) {
    let mut dispersion =
        Dispersion::new(DispersionConfig { scheduler, flows: 64 }, RandomStream::new(1, 0, "dispersion"));
    for (number, &(_, kbit, cost, weight)) in links.iter().enumerate() {
        let rate = Some(DataRate::from_kilobits_per_second(kbit));
        let config = PathConfig { rate, cost, weight, ..PathConfig::default() };
        dispersion.set_path(Instant::ZERO, id(number as u8), config);
    }
    for round in 0..20 {
        let now = Instant::from_secs(10 * round);
        let mut asked = Vec::new();
        dispersion.handle_timeout(now);
        while let Some(probe) = dispersion.poll_feedback(now) {
            asked.push(probe);
        }
        asked.sort_by_key(|probe| links[usize::from(probe.path)].0);
        for probe in asked {
            let (way, ..) = links[usize::from(probe.path)];
            let came = now + Duration::from_millis(2 * way);
            dispersion.handle_feedback(came, &answer(&probe, way, 0));
        }
    }
    let now = Instant::from_secs(200);
    // Nothing is left of the initial window: these paths have been in use.
    for path in dispersion.paths.iter_mut().flatten() {
        path.end_trial();
    }
    (dispersion, now)
}

fn answer(probe: &PathFeedback, way: u64, packets: u32) -> PathFeedback {
    let micros = way as u32 * 1000;
    PathFeedback {
        path: probe.path,
        answer: true,
        sent_at: probe.sent_at.wrapping_add(micros),
        echo: Some(PathEcho { sent_at: probe.sent_at, held: 0, transit: micros, variation: 0 }),
        highest: packets.checked_sub(1),
        packets,
        bytes: u64::from(packets) * 1500,
        late: 0,
        ..PathFeedback::default()
    }
}

fn packet(flow: u64) -> Packet {
    Packet { flow, len: 1500, allowed: PathSet::ALL, treatment: Treatment::Dispersed }
}

/// Sends `packet`; its paths by their numbers.
fn send(dispersion: &mut Dispersion, now: Instant, packet: &Packet) -> Vec<u8> {
    let choice = dispersion.choose(now, packet);
    let paths: Vec<_> = choice.paths.iter().collect();
    for &path in &paths {
        let header = dispersion.header(now, &choice, path, packet.len, MultipathPayload::Ipv4).unwrap();
        assert_eq!((header.sequence, header.path), (choice.sequence, path.number()));
    }
    paths.into_iter().map(PathId::number).collect()
}

/// How many of `count` packets, one each `every`, each path gets.
fn shares(scheduler: Scheduler, links: &[Link], count: u32, every: Duration) -> Vec<u32> {
    let (mut dispersion, start) = over(scheduler, links);
    let mut shares = alloc::vec![0; links.len()];
    for n in 0..count {
        let [path] = send(&mut dispersion, start + every * n, &packet(1))[..] else { panic!("one path") };
        shares[usize::from(path)] += 1;
    }
    shares
}

#[test]
fn d_draws_by_the_ratio_of_round_trips_in_both_readings() {
    let links = [(100, 384, 0, 0), (300, 384, 0, 0)];
    let of = |reading| shares(Scheduler::RoundTripRatio(reading), &links, 10_000, Duration::from_millis(1));
    let [inverse, direct] = [of(RatioReading::Inverse), of(RatioReading::Direct)];
    // A quarter of 10,000: a standard deviation is 43.
    assert!(inverse[1].abs_diff(2500) < 200 && direct[0].abs_diff(2500) < 200, "{inverse:?} {direct:?}");
}

#[test]
fn dq_fills_paths_by_their_bandwidths_and_prefers_the_shorter_way() {
    let readings = [LengthReading::Packets, LengthReading::Bytes];
    for length in readings {
        let dq = Scheduler::DelayQueue { delay: DelayReading::HalfRoundTrip, length };
        // 1500 bytes take 187.5 ms at 64 kbit/s: three paths alike carry one packet each 62.5 ms.
        let alike = [(300, 64, 0, 0); 3];
        assert_eq!(shares(dq, &alike, 300, Duration::from_micros(62_500)), [100, 100, 100]);
        // Twice the bandwidth, twice the packets, at a load that fills both.
        let uneven = [(300, 128, 0, 0), (300, 64, 0, 0)];
        let got = shares(dq, &uneven, 300, Duration::from_micros(62_500));
        assert!(got[0].abs_diff(200) <= 2, "{got:?}");
        // At a load that the shorter way carries alone the other one is not used: 100 ms longer is more than one packet.
        assert_eq!(
            shares(dq, &[(50, 384, 0, 0), (150, 384, 0, 0)], 100, Duration::from_millis(40)),
            [100, 0]
        );
    }
}

#[test]
fn a_flow_is_pinned_and_moves_when_its_path_goes_out() {
    let (mut dispersion, now) = over(Scheduler::PerFlow, &[(10, 8_000, 0, 0), (20, 8_000, 0, 0)]);
    for n in 0..20 {
        assert_eq!(send(&mut dispersion, now + Duration::from_millis(10 * n), &packet(1)), [0]);
    }
    let now = now + Duration::from_millis(200);
    assert_eq!(dispersion.path_is_out(now, id(0)), Some(PathChange::Out));
    let choice = dispersion.choose(now, &packet(1));
    assert_eq!(
        (choice.paths, choice.split),
        (PathSet::of(id(1)), true),
        "earlier ones may be on the other path"
    );
    let later = dispersion.choose(now + Duration::from_secs(5), &packet(1));
    assert!(!later.split, "but not for long");
    assert_eq!((later.sequence, dispersion.counters().moves), (choice.sequence + 1, 1));
    assert_eq!(dispersion.path_is_out(now, id(0)), None, "it is known");
}

#[test]
fn flows_that_fill_paths_spread_over_them() {
    let (mut dispersion, start) = over(Scheduler::PerFlow, &[(10, 8_000, 0, 0), (10, 8_000, 0, 0)]);
    // Each flow sends as much as a path carries: 1500 bytes in 1.5 ms.
    let mut used = Vec::new();
    for n in 0..2_000 {
        let now = start + Duration::from_micros(1_500 * n);
        used.push([send(&mut dispersion, now, &packet(1)), send(&mut dispersion, now, &packet(2))]);
    }
    let [one, other] = used.last().unwrap();
    assert_ne!(one, other);
    assert!(dispersion.counters().moves <= 4, "{:?}", dispersion.counters());
}

#[test]
fn duplicates_go_by_every_path_under_one_number() {
    let (mut dispersion, now) =
        over(Scheduler::Duplicate, &[(10, 8_000, 0, 0), (20, 8_000, 0, 0), (30, 800, 0, 0)]);
    assert_eq!(send(&mut dispersion, now, &packet(1)), [0, 1, 2]);
    let two = Packet { allowed: PathSet::of(id(0)).with(id(2)), ..packet(1) };
    assert_eq!(send(&mut dispersion, now, &two), [0, 2]);
}

#[test]
fn weights_are_kept_in_bytes() {
    let links = [(10, 8_000, 0, 3), (10, 8_000, 0, 1), (10, 8_000, 0, 0)];
    assert_eq!(shares(Scheduler::Weighted, &links, 4_000, Duration::from_micros(100)), [3000, 1000, 0]);
    let (mut dispersion, now) = over(Scheduler::Weighted, &links);
    let mut random = RandomStream::new(2, 0, "lengths");
    let mut bytes = [0_u64; 3];
    for _ in 0..10_000 {
        let len = 40 + random.below(9_000) as u32;
        let path = send(&mut dispersion, now, &Packet { len, ..packet(random.below(9)) })[0];
        bytes[usize::from(path)] += u64::from(len);
    }
    let ratio = bytes[0] as f64 / bytes[1] as f64;
    assert!((2.98..3.02).contains(&ratio) && bytes[2] == 0, "{bytes:?}");
}

#[test]
fn the_earliest_arrival_leaves_the_slow_path_until_the_queue_before_the_quick_one_is_as_long() {
    let (mut dispersion, now) = over(Scheduler::EarliestArrival, &[(20, 12_000, 0, 0), (70, 12_000, 0, 0)]);
    // At once: 1 ms each. The 50 ms that the ways are apart hold 50 packets; one more would come at the same time by both.
    let paths: Vec<u8> = (0..90).map(|n| send(&mut dispersion, now, &packet(n))[0]).collect();
    assert_eq!(paths.iter().position(|&path| path == 1), Some(51), "{paths:?}");
    let slow = paths.iter().filter(|&&path| path == 1).count();
    assert!(slow.abs_diff(20) <= 1, "{slow}");
}

#[test]
fn ecf_waits_for_the_quick_path_where_the_slow_one_would_end_later() {
    // 20 ms of round trip and 1 s: the window of the quick path empties 50 times meanwhile.
    let ecf = shares(Scheduler::Ecf, &[(10, 8_000, 0, 0), (500, 8_000, 0, 0)], 60, Duration::ZERO);
    assert_eq!(ecf, [60, 0]);
    // Two paths alike fill both.
    let alike = shares(Scheduler::Ecf, &[(10, 8_000, 0, 0), (11, 8_000, 0, 0)], 30, Duration::ZERO);
    assert!(alike[1] > 10, "{alike:?}");
}

#[test]
fn blest_leaves_a_path_alone_that_would_block_the_window() {
    let links = [(10, 8_000, 0, 0), (50, 8_000, 0, 0)];
    let narrow = shares(Scheduler::Blest { window: 60_000 }, &links, 60, Duration::ZERO);
    let wide = shares(Scheduler::Blest { window: 10 << 20 }, &links, 60, Duration::ZERO);
    assert_eq!(narrow, [60, 0]);
    assert!(wide[1] > 10, "{wide:?}");
}

#[test]
fn the_metered_link_is_used_when_the_cheap_one_is_full() {
    let links = [(10, 8_000, 1, 0), (40, 8_000, 0, 0)];
    // Half of what the cheap one carries: it is used, slow as it is.
    assert_eq!(shares(Scheduler::Overflow, &links, 500, Duration::from_millis(3)), [0, 500]);
    // Three halves: the other one takes what is left.
    let over = shares(Scheduler::Overflow, &links, 3_000, Duration::from_millis(1));
    assert!((900..1_150).contains(&over[0]), "{over:?}");
}

#[test]
fn without_a_path_nothing_is_chosen_and_that_is_counted() {
    let (mut dispersion, now) = over(Scheduler::EarliestArrival, &[(10, 8_000, 0, 0)]);
    let nowhere = Packet { allowed: PathSet::of(id(3)), ..packet(1) };
    assert!(dispersion.choose(now, &nowhere).paths.is_empty());
    dispersion.path_is_out(now, id(0));
    assert_eq!(dispersion.path(id(0)).unwrap().state(), PathState::Silent);
    assert!(dispersion.choose(now, &packet(1)).paths.is_empty());
    dispersion.remove_path(id(0));
    assert!(dispersion.choose(now, &packet(1)).paths.is_empty());
    assert_eq!((dispersion.counters().no_path, dispersion.next_timeout(now)), (3, None));
}

#[test]
fn where_all_paths_are_silent_packets_take_the_one_that_fell_silent_last() {
    let (mut dispersion, now) =
        over(Scheduler::Auto, &[(10, 8_000, 0, 0), (10, 8_000, 0, 0), (10, 8_000, 0, 0)]);
    for (path, after) in [(1, 10), (0, 30)] {
        dispersion.path_mut(id(path)).unwrap().go_out(now + Duration::from_millis(after));
    }
    let now = now + Duration::from_millis(40);
    assert_eq!(dispersion.choose(now, &packet(1)).paths, PathSet::of(id(2)), "one works");
    assert_eq!(dispersion.path_is_out(now, id(2)), Some(PathChange::Out));
    let choice = dispersion.choose(now, &packet(1));
    assert_eq!((choice.paths, choice.split), (PathSet::of(id(0)), true));
    let only = Packet { allowed: PathSet::of(id(1)), ..packet(1) };
    assert_eq!(dispersion.choose(now, &only).paths, PathSet::of(id(1)));
    let down = Packet { allowed: PathSet::of(id(2)), ..packet(1) };
    assert!(dispersion.choose(now, &down).paths.is_empty(), "its link is known to be down");
}

#[test]
fn no_scheduler_chooses_what_is_not_allowed_or_does_not_work() {
    let links = [(10, 8_000, 1, 1), (40, 900, 0, 0), (300, 64, 2, 7), (5, 100_000, 0, 2)];
    let schedulers = [
        Scheduler::RoundTripRatio(RatioReading::Direct),
        Scheduler::DelayQueue { delay: DelayReading::Transit, length: LengthReading::Packets },
        Scheduler::PerFlow,
        Scheduler::Duplicate,
        Scheduler::Weighted,
        Scheduler::Ecf,
        Scheduler::Blest { window: 100_000 },
        Scheduler::EarliestArrival,
        Scheduler::Overflow,
        Scheduler::Auto,
    ];
    for scheduler in schedulers {
        let (mut dispersion, mut now) = over(scheduler, &links);
        let mut random = RandomStream::new(4, 0, "allowed");
        for n in 0..3_000 {
            now += Duration::from_micros(random.below(4_000));
            if n == 1_000 {
                dispersion.path_is_out(now, id(3));
            }
            let allowed = (0..4).filter(|_| random.below(3) > 0).map(id).collect::<PathSet>();
            let treatment =
                [Treatment::Dispersed, Treatment::Pinned, Treatment::Duplicated][random.below(3) as usize];
            let packet =
                Packet { flow: random.below(100), len: random.below(9_000) as u32, allowed, treatment };
            let choice = dispersion.choose(now, &packet);
            let works = if n >= 1_000 { allowed.without(id(3)) } else { allowed };
            assert_eq!(choice.paths.and(works), choice.paths, "{scheduler:?}");
            assert_eq!(choice.paths.is_empty(), works.is_empty(), "{scheduler:?}");
            for path in choice.paths.iter() {
                dispersion.header(now, &choice, path, packet.len, MultipathPayload::Ipv6);
            }
        }
    }
}

#[test]
fn a_copy_that_only_shows_a_path_has_nobody_wait_for_the_packet_itself() {
    let (mut dispersion, now) = over(Scheduler::Auto, &[(10, 8_000, 0, 0), (40, 8_000, 0, 0)]);
    let paths: PathSet = [id(0), id(1)].into_iter().collect();
    let choice = Choice { paths, flow: 1, sequence: 7, split: false, shown: Some(id(1)) };
    let split = [0, 1]
        .map(|path| dispersion.header(now, &choice, id(path), 1500, MultipathPayload::Ipv4).unwrap().split);
    assert_eq!(split, [false, true]);
}

#[test]
fn a_path_on_which_nothing_was_answered_is_taken_only_while_there_is_no_other() {
    for scheduler in [Scheduler::Weighted, Scheduler::EarliestArrival, Scheduler::Auto, Scheduler::PerFlow] {
        let (mut dispersion, now) = over(scheduler, &[(10, 2_000, 0, 1), (10, 2_000, 0, 1)]);
        // As an agent that has just been started: it knows the paths from its store.
        dispersion.peer_restarted(now);
        let taken = |dispersion: &mut Dispersion| -> PathSet {
            let by = (0..40).flat_map(|flow| send(dispersion, now, &packet(flow)));
            by.map(id).collect()
        };
        assert!(!taken(&mut dispersion).is_empty());
        dispersion.handle_feedback(now, &answer(&PathFeedback { path: 1, ..PathFeedback::default() }, 10, 0));
        assert_eq!(taken(&mut dispersion), PathSet::of(id(1)), "{scheduler:?}");
        dispersion.handle_feedback(now, &answer(&PathFeedback::default(), 10, 0));
        // The others may find the first one enough.
        if scheduler == Scheduler::Weighted {
            assert_eq!(taken(&mut dispersion).len(), 2);
        }
    }
}
