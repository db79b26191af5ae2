//! A Linux 2.0 sender whose path changes under way, from 2 Mbit/s and 3.5 ms to 960 byte/s and 700 ms and back:
//! the behaviour that *TCP in a handover between WaveLAN and GSM* (1999) measured.

use core::time::Duration;

use alloc::vec::Vec;

use careof_base::{DataRate, Instant};

use super::world::{CLIENT, Direction, SERVER, World};
use crate::{Config, Event, Profile};

fn world() -> World {
    let mut world = World::alike(&Config::from(Profile::Linux20), 2);
    world.ends[CLIENT].write(u64::MAX);
    world
}

/// What is on the old path arrives by it; what comes later does not wait for that.
fn wavelan(world: &mut World, end: usize) {
    world.ways[end] = Direction::new(Duration::from_micros(1_500));
    world.ways[end].rate = Some(DataRate::from_megabits_per_second(2));
    world.ways[end].queue = 50;
}

/// 9.6 kbit/s with ten bits on the wire for each byte.
fn gsm(world: &mut World, end: usize) {
    world.ways[end] = Direction::new(Duration::from_millis(260));
    world.ways[end].rate = Some(DataRate::from_bits_per_second(7_680));
    world.ways[end].queue = 50;
}

#[test]
fn from_the_fast_to_the_slow_path_a_whole_window_is_sent_twice() {
    let mut world = world();
    wavelan(&mut world, CLIENT);
    wavelan(&mut world, SERVER);
    let at = Instant::from_secs(12);
    world.run_until(at);
    assert_eq!(world.ends[CLIENT].snapshot().rto, Duration::from_millis(200));
    let handover = world.trace.len();
    // The receiver learns of the new path one trip over it later.
    gsm(&mut world, CLIENT);
    world.run_until(at + Duration::from_millis(400));
    gsm(&mut world, SERVER);
    world.run_until(Instant::from_secs(130));

    let sent: Vec<_> = world.trace[handover..].iter().filter(|sent| sent.from == CLIENT).collect();
    // One window of 11 segments goes out, then the first of them times out three times, although all arrive.
    let window = sent.iter().take_while(|sent| !sent.retransmission).count();
    assert_eq!(window, 11);
    let first = sent[0].segment.seq;
    let times = |seq| sent.iter().filter(|sent| sent.segment.seq == seq).count();
    assert_eq!((times(first), times(first.plus(1_460))), (4, 3));
    for number in 0..11 {
        assert!(times(first.plus(number * 1_460)) >= 2, "segment {number}");
    }
    assert_eq!(world.ends[CLIENT].counters().fast_retransmits, 0);

    // Then nothing new gets through until the copies have drained.
    let next = sent.iter().find(|sent| sent.segment.seq == first.plus(11 * 1_460)).unwrap();
    let answered = world
        .trace
        .iter()
        .find(|sent| sent.from == SERVER && sent.segment.ack.is_after(next.segment.seq))
        .unwrap();
    let gap = (answered.at - next.at).as_secs_f64();
    assert!((18.0..32.0).contains(&gap), "{gap}");
    let duplicates =
        world.trace.iter().filter(|sent| sent.from == SERVER && sent.segment.ack == next.segment.seq);
    assert!((10..=20).contains(&duplicates.count()));

    // In the end the line is full, and the queue before it makes the round trip and the RTO long.
    let state = world.ends[CLIENT].snapshot();
    assert!(state.srtt.unwrap() > Duration::from_secs(8), "{state:?}");
    let received = |world: &World| world.ends[SERVER].received();
    let before = received(&world);
    world.run_until(Instant::from_secs(160));
    let rate = (received(&world) - before) as f64 / 30.0;
    assert!((860.0..960.0).contains(&rate), "{rate}");
}

#[test]
fn from_the_slow_to_the_fast_path_the_rto_rises_first() {
    let mut world = world();
    gsm(&mut world, CLIENT);
    gsm(&mut world, SERVER);
    world.run_until(Instant::from_secs(120));
    let before = world.ends[CLIENT].snapshot().rto;
    let timeouts = world.ends[CLIENT].counters().timeouts;
    wavelan(&mut world, CLIENT);
    wavelan(&mut world, SERVER);
    let mut highest = before;
    world.run_while(Instant::from_secs(180), |world| {
        highest = highest.max(world.ends[CLIENT].snapshot().rto);
        true
    });
    let state = world.ends[CLIENT].snapshot();
    assert!(highest > before.mul_f64(1.5), "{before:?} then {highest:?}");
    assert_eq!(state.rto, Duration::from_millis(200));
    // No timeout, no retransmission: only the order suffers.
    assert_eq!(world.ends[CLIENT].counters().timeouts, timeouts);
    assert!(world.events[CLIENT].iter().all(|event| !matches!(event, Event::FastRetransmit { .. })));
}
