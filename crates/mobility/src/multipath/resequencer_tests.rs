//! What comes out of a resequencer.

use alloc::vec;

use careof_base::RandomStream;
use careof_wire::tunnel::MultipathPayload;

use super::*;
use crate::multipath::micros;

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn header(flow: u32, sequence: u32, path: u8, sent_at: u64) -> MultipathHeader {
    MultipathHeader {
        flow,
        sequence,
        split: true,
        path,
        path_sequence: 0,
        sent_at: micros(at(sent_at)),
        payload: MultipathPayload::Ipv4,
    }
}

fn out(resequencer: &mut Resequencer<u32>) -> Vec<u32> {
    core::iter::from_fn(|| resequencer.poll()).collect()
}

/// A resequencer that knows two paths, of 20 and 50 ms, and has passed on 0 to 99 of flow 1.
fn warm() -> Resequencer<u32> {
    let mut resequencer = Resequencer::new(ResequencerConfig::default());
    for n in 0..100 {
        let sent = u64::from(n) * 10_000;
        for (path, way) in [(0, 20_000), (1, 50_000)] {
            resequencer.handle_message(at(sent + way), PathId::new(path).unwrap(), micros(at(sent)));
        }
        resequencer.handle_packet(at(sent + 50_000), &header(1, n, 1, sent), 1000, n);
    }
    assert_eq!(out(&mut resequencer), (0..100).collect::<Vec<_>>());
    assert_eq!(resequencer.counters().held, 0);
    resequencer
}

const T: u64 = 1_100_000;

#[test]
fn what_overtakes_waits_for_what_it_has_overtaken() {
    let mut resequencer = warm();
    // 100 went by the slow path, 101 and 102 by the quick one.
    resequencer.handle_packet(at(T + 21_000), &header(1, 101, 0, T + 1_000), 1000, 101);
    resequencer.handle_packet(at(T + 22_000), &header(1, 102, 0, T + 2_000), 1000, 102);
    assert_eq!(out(&mut resequencer), []);
    assert_eq!(resequencer.holds(), (2, 2000));
    resequencer.handle_packet(at(T + 50_000), &header(1, 100, 1, T), 1000, 100);
    assert_eq!(out(&mut resequencer), [100, 101, 102]);
    assert_eq!((resequencer.holds(), resequencer.next_timeout()), ((0, 0), None));
}

#[test]
fn what_every_path_has_passed_is_waited_for_no_longer() {
    let mut resequencer = warm();
    resequencer.handle_packet(at(T + 21_000), &header(1, 101, 0, T + 1_000), 1000, 101);
    assert_eq!(out(&mut resequencer), []);
    // Another flow's packet has come by the slow path that was sent later than 100.
    resequencer.handle_packet(at(T + 52_000), &header(2, 0, 1, T + 2_000), 1000, 900);
    assert_eq!(out(&mut resequencer), [900, 101]);
    assert_eq!((resequencer.counters().passed, resequencer.counters().timed_out), (1, 0));
}

#[test]
fn nothing_is_waited_for_longer_than_the_paths_are_apart() {
    let mut resequencer = warm();
    resequencer.handle_packet(at(T + 21_000), &header(1, 101, 0, T + 1_000), 1000, 101);
    // By the slow path it would have come by 51 ms after the packet behind it was sent.
    assert_eq!(resequencer.next_timeout(), Some(at(T + 51_000)));
    resequencer.handle_timeout(at(T + 50_999));
    assert_eq!(out(&mut resequencer), []);
    resequencer.handle_timeout(at(T + 51_000));
    assert_eq!(out(&mut resequencer), [101]);
    assert_eq!(resequencer.counters().timed_out, 1);
    // And what comes after all is passed on, once.
    for _ in 0..2 {
        resequencer.handle_packet(at(T + 60_000), &header(1, 100, 1, T), 1000, 100);
    }
    assert_eq!(out(&mut resequencer), [100]);
    assert_eq!((resequencer.counters().late, resequencer.counters().duplicates), (1, 1));
}

#[test]
fn a_flow_that_keeps_to_one_path_waits_for_nothing() {
    let mut resequencer = warm();
    let pinned = MultipathHeader { split: false, ..header(1, 105, 0, T) };
    resequencer.handle_packet(at(T + 20_000), &pinned, 1000, 105);
    assert_eq!(out(&mut resequencer), [105]);
}

#[test]
fn a_path_that_is_out_is_not_waited_for() {
    let mut resequencer = warm();
    resequencer.handle_packet(at(T + 21_000), &header(1, 101, 0, T + 1_000), 1000, 101);
    resequencer.path_is_out(at(T + 22_000), PathId::new(1).unwrap());
    assert_eq!(out(&mut resequencer), [101]);
}

#[test]
fn one_flow_s_gap_holds_up_no_other() {
    let mut resequencer = warm();
    resequencer.handle_packet(at(T + 21_000), &header(1, 101, 0, T + 1_000), 1000, 101);
    for n in 0..50 {
        resequencer.handle_packet(at(T + 22_000), &header(2, n, 0, T + 2_000), 1000, 1000 + n);
    }
    assert_eq!(out(&mut resequencer), (1000..1050).collect::<Vec<_>>());
}

#[test]
fn where_waiting_brings_nothing_it_ends_until_something_comes_late() {
    let mut resequencer = warm();
    let mut sequence = 100;
    let mut now = T;
    // Every second packet is lost, and the slow path is silent.
    for round in 0..40 {
        now += 100_000;
        sequence += 2;
        resequencer.handle_packet(at(now + 20_000), &header(1, sequence, 0, now), 1000, sequence);
        let waits = resequencer.holds().0 > 0;
        assert_eq!(waits, round < IN_VAIN, "{round}");
        resequencer.handle_timeout(at(now + 90_000));
    }
    let late = sequence - 1;
    now += 100_000;
    resequencer.handle_packet(at(now), &header(1, late, 1, now - 50_000), 1000, late);
    resequencer.handle_packet(at(now + 20_000), &header(1, sequence + 2, 0, now), 1000, sequence + 2);
    assert_eq!(resequencer.holds().0, 1, "it waits again");
}

#[test]
fn duplicates_are_dropped_where_the_first_copy_was_passed_on_and_where_it_is_held() {
    let mut resequencer = warm();
    for path in [0, 1] {
        for n in [101, 102] {
            let way = if path == 0 { 20_000 } else { 50_000 };
            resequencer.handle_packet(at(T + way + u64::from(n)), &header(1, n, path, T), 1000, n);
        }
    }
    resequencer.handle_timeout(at(T + 100_000));
    assert_eq!(out(&mut resequencer), [101, 102]);
    resequencer.handle_packet(at(T + 110_000), &header(1, 101, 1, T), 1000, 101);
    assert_eq!(out(&mut resequencer), []);
    assert_eq!(resequencer.counters().duplicates, 3);
}

#[test]
fn a_single_leap_moves_nothing_and_two_that_follow_begin_anew() {
    let mut resequencer = warm();
    let far = 0x8000_0000;
    resequencer.handle_packet(at(T), &header(1, far, 0, T), 1000, far);
    resequencer.handle_packet(at(T), &header(1, 100, 0, T), 1000, 100);
    assert_eq!(out(&mut resequencer), [far, 100]);
    for n in [0, 1, 2] {
        resequencer.handle_packet(at(T), &header(1, far + n, 0, T), 1000, n);
    }
    assert_eq!((out(&mut resequencer), resequencer.counters().leaps), (vec![0, 1, 2], 1));
    resequencer.handle_packet(at(T), &header(1, far + 1, 0, T), 1000, 1);
    assert_eq!(out(&mut resequencer), []);
}

#[test]
fn numbers_wrap() {
    let mut resequencer = Resequencer::new(ResequencerConfig::default());
    let start = u32::MAX - 2;
    for n in [0, 2, 1, 3, 5, 4] {
        resequencer.handle_packet(at(T), &header(1, start.wrapping_add(n), (n % 2) as u8, T), 1000, n);
    }
    resequencer.handle_timeout(at(T + 1_000_000));
    let mut all = out(&mut resequencer);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_bounds_hold_and_what_does_not_fit_is_passed_on() {
    let config =
        ResequencerConfig { packets: 64, bytes: 40_000, share: 2, flows: 16, ..ResequencerConfig::default() };
    let mut resequencer = Resequencer::new(config);
    let mut random = RandomStream::new(5, 0, "bounds");
    let mut sent = 0;
    for n in 0..50_000_u32 {
        let now = at(T + u64::from(n) * 100);
        let sequence = (n / 8).wrapping_add(random.below(200) as u32);
        let path = random.below(3) as u8;
        resequencer.handle_packet(
            now,
            &header(random.below(40) as u32, sequence, path, T + u64::from(n) * 100),
            1000,
            n,
        );
        sent += 1;
        let (packets, bytes) = resequencer.holds();
        assert!(packets <= 64 && bytes <= 40_000, "{packets} {bytes}");
        if n % 50 == 0 {
            resequencer.handle_timeout(now);
        }
    }
    resequencer.handle_timeout(at(u64::MAX / 2000));
    let counters = *resequencer.counters();
    assert_eq!(resequencer.holds(), (0, 0));
    assert_eq!(out(&mut resequencer).len() as u64, counters.released);
    assert_eq!(counters.arrived, sent);
    assert_eq!(counters.arrived, counters.released + counters.duplicates);
}

/// A network of so many paths, with loss, jitter that reorders or does not, duplicates, and paths that die; each flow's packets go by
/// any path.
fn through_a_network(seed: u64, keeps_order: bool, duplicates: bool) {
    let mut random = RandomStream::new(seed, 0, "network");
    let mut resequencer = Resequencer::new(ResequencerConfig::default());
    let (flows, packets) = (1 + random.below(4) as u32, 4_000_u32);
    let ways: Vec<(u64, u64, u64)> =
        (0..3).map(|_| (5_000 + random.below(150_000), random.below(40_000), random.below(8))).collect();
    // The paths have been probed.
    for (path, (way, ..)) in ways.iter().enumerate() {
        let path = PathId::new(path as u8).unwrap();
        resequencer.handle_message(at(500_000 + way), path, micros(at(500_000)));
    }
    let mut arrivals: Vec<(u64, u64, MultipathHeader, u32)> = Vec::new();
    let mut last = [0; 3];
    let mut next = vec![0; flows as usize];
    let mut delivered = vec![Vec::new(); flows as usize];
    for n in 0..packets {
        let sent = 1_000_000 + u64::from(n) * 500;
        let flow = random.below(u64::from(flows)) as u32;
        let sequence = next[flow as usize];
        next[flow as usize] += 1;
        let copies = if duplicates { 2 } else { 1 };
        let first = random.below(3) as usize;
        for copy in 0..copies {
            let path = (first + copy) % 3;
            let (way, jitter, loss) = ways[path];
            // The third path is dead for a while.
            let is_dead = path == 2 && (1_500_000..2_000_000).contains(&sent);
            if random.below(100) < loss || is_dead {
                continue;
            }
            let mut came = sent + way + random.below(jitter + 1);
            if keeps_order {
                came = came.max(last[path]);
                last[path] = came;
            }
            arrivals.push((came, arrivals.len() as u64, header(flow, sequence, path as u8, sent), sequence));
        }
    }
    arrivals.sort_by_key(|&(came, order, ..)| (came, order));
    let mut came_at_all = vec![alloc::collections::BTreeSet::new(); flows as usize];
    for (came, _, header, sequence) in arrivals {
        while let Some(due) = resequencer.next_timeout().filter(|due| *due <= at(came)) {
            resequencer.handle_timeout(due);
        }
        came_at_all[header.flow as usize].insert(sequence);
        resequencer.handle_packet(at(came), &header, 1000, (header.flow << 16) | sequence);
        for packet in out(&mut resequencer) {
            delivered[(packet >> 16) as usize].push(packet & 0xffff);
        }
    }
    while let Some(due) = resequencer.next_timeout() {
        resequencer.handle_timeout(due);
    }
    for packet in out(&mut resequencer) {
        delivered[(packet >> 16) as usize].push(packet & 0xffff);
    }
    let late = resequencer.counters().late;
    for (flow, all) in delivered.iter().enumerate() {
        // Nothing lost, nothing invented, nothing doubled.
        let mut sorted = all.clone();
        sorted.sort_unstable();
        let expected: Vec<u32> = came_at_all[flow].iter().copied().collect();
        assert_eq!(sorted, expected, "seed {seed}, flow {flow}");
        let descents = all.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64;
        assert!(descents <= late, "seed {seed}, flow {flow}: {descents} out of order, {late} late");
    }
    // What came late is what the estimate of the spread had not seen yet.
    let arrived = resequencer.counters().arrived;
    assert!(late <= arrived / 20, "seed {seed}: {late} of {arrived} late");
    assert!(resequencer.counters().longest_wait <= Duration::from_millis(500));
}

#[test]
fn nothing_is_lost_doubled_or_invented_whatever_the_network_does() {
    for seed in 0..40 {
        through_a_network(seed, true, false);
        through_a_network(seed, false, false);
        through_a_network(seed, seed % 2 == 0, true);
    }
}

#[test]
fn hostile_numbers_break_nothing() {
    let config = ResequencerConfig { packets: 256, bytes: 100_000, ..ResequencerConfig::default() };
    let mut resequencer = Resequencer::new(config);
    let mut random = RandomStream::new(9, 0, "hostile");
    let (mut genuine, mut passed) = (0_u32, BTreeSet::new());
    for n in 0..60_000_u64 {
        let now = T + n * 300;
        let mut word = || random.next_u64() as u32;
        if word() % 2 == 0 {
            let garbage = MultipathHeader {
                // Half of it calls itself the flow that others use.
                flow: if word() % 2 == 0 { 1 } else { word() | 0x8000_0000 },
                sequence: word(),
                split: word() % 2 == 0,
                path: (word() % 10) as u8,
                path_sequence: word(),
                sent_at: word(),
                payload: MultipathPayload::Ipv4,
            };
            resequencer.handle_packet(at(now), &garbage, word() % 1500, u32::MAX);
        } else {
            resequencer.handle_packet(at(now), &header(1, genuine, 0, now - 20_000), 1000, genuine);
            genuine += 1;
        }
        resequencer.handle_timeout(at(now));
        let (packets, bytes) = resequencer.holds();
        assert!(packets <= 256 && bytes <= 100_000);
        passed.extend(
            out(&mut resequencer)
                .into_iter()
                .filter(|&packet| packet != u32::MAX)
                .map(|packet| (at(0), packet as usize)),
        );
    }
    resequencer.handle_timeout(at(u64::MAX / 2000));
    passed.extend(
        out(&mut resequencer)
            .into_iter()
            .filter(|&packet| packet != u32::MAX)
            .map(|packet| (at(0), packet as usize)),
    );
    let duplicates = resequencer.counters().duplicates;
    // A number that garbage has used already makes the genuine packet a duplicate: of 2^32 numbers it hits the window rarely.
    assert!(u64::from(genuine) - passed.len() as u64 <= duplicates && duplicates < 100, "{duplicates}");
}
