//! Links by a trace, against the rules of the trace written down the slow way.

use std::collections::VecDeque;

use crate::reference::Reference;
use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{
    Config, DropCause, Fate, Jitter, Link, Loss, Output, QueueConfig, QueueLimit, Trace, TraceError, TraceRow,
};
use proptest::prelude::*;

fn link(config: Config) -> Link<u32> {
    let stream = |user| RandomStream::new(5, 0, user);
    Link::new(config, stream("loss"), stream("jitter"), stream("queue"))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn megabits(rate: u64) -> DataRate {
    DataRate::from_megabits_per_second(rate)
}

fn roomy(packets: u32) -> QueueConfig {
    QueueConfig { limit: QueueLimit::Packets(packets), ..QueueConfig::default() }
}

/// Rates and delays from millisecond to millisecond.
fn rows(rows: &[(u64, DataRate, u64)]) -> Trace {
    let row = |(at, rate, delay): &(u64, DataRate, u64)| TraceRow {
        at: millis(*at),
        rate: Some(*rate),
        delay: Some(millis(*delay)),
        loss: None,
    };
    Trace::of_rows(&rows.iter().map(row).collect::<Vec<_>>()).unwrap()
}

/// Everything that happens by `until` when the link is polled at its own timeouts, and how often that was.
fn run(link: &mut Link<u32>, until: Instant) -> (Vec<Output<u32>>, usize) {
    let (mut outputs, mut polls) = (Vec::new(), 0);
    while let Some(next) = link.next_timeout().filter(|next| *next <= until) {
        outputs.extend(std::iter::from_fn(|| link.poll(next)));
        polls += 1;
    }
    outputs.extend(std::iter::from_fn(|| link.poll(until)));
    (outputs, polls)
}

fn arrivals(outputs: &[Output<u32>]) -> Vec<(u32, f64)> {
    let arrival = |output: &Output<u32>| match output {
        Output::Delivered { packet, at, .. } => Some((*packet, at.as_nanos() as f64 / 1e6)),
        Output::Dropped { .. } => None,
    };
    outputs.iter().filter_map(arrival).collect()
}

#[test]
fn a_packet_waits_out_a_time_without_rate_and_keeps_what_was_sent_of_it() {
    // 1500 bytes take a millisecond of the first and the last millisecond, and none of the 8 s between them.
    let trace = rows(&[
        (0, megabits(12), 5),
        (1, DataRate::ZERO, 5),
        (8_001, megabits(12), 5),
        (8_100, megabits(12), 5),
    ]);
    let mut link = link(Config { queue: roomy(100), ..Config::default() }.following(trace));
    for packet in 0..3 {
        link.enqueue(Instant::from_micros(500), packet, 1500).unwrap();
    }
    let (outputs, polls) = run(&mut link, Instant::from_secs(8));
    assert_eq!((arrivals(&outputs), polls), (vec![], 0), "nothing moves, and nobody is woken meanwhile");
    let (outputs, polls) = run(&mut link, Instant::from_secs(9));
    assert_eq!(arrivals(&outputs), [(0, 8_006.5), (1, 8_007.5), (2, 8_008.5)]);
    assert_eq!(polls, 3);
}

#[test]
fn a_packet_that_ends_where_the_rate_does_arrives() {
    let trace = rows(&[(0, megabits(12), 5), (1, DataRate::ZERO, 5), (10, megabits(12), 5)]);
    let mut link = link(Config::default().following(trace));
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    assert_eq!(link.next_timeout(), Some(Instant::from_millis(6)));
}

#[test]
fn a_trace_without_any_rate_carries_nothing_and_waits_for_nothing() {
    let mut link = link(Config::default().following(rows(&[(0, DataRate::ZERO, 1), (5, DataRate::ZERO, 1)])));
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    assert_eq!((link.next_timeout(), link.queue_len().0), (None, 1));
    assert_eq!(link.poll(Instant::from_secs(1_000_000)), None);
}

#[test]
fn the_delay_is_that_of_the_last_bit_and_nothing_overtakes_where_it_falls() {
    let trace = rows(&[(0, megabits(12), 40), (2, megabits(12), 10), (100, megabits(12), 10)]);
    let mut link = link(Config { queue: roomy(100), ..Config::default() }.following(trace));
    for packet in 0..4 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    let (outputs, _) = run(&mut link, Instant::from_secs(1));
    // The second ends at 2 ms, where the delay is 10 ms, and waits for the first.
    assert_eq!(arrivals(&outputs), [(0, 41.0), (1, 41.0), (2, 41.0), (3, 41.0)]);
}

#[test]
fn losses_come_when_the_trace_has_them() {
    let row = |at, loss| TraceRow {
        at: millis(at),
        loss: Some(Probability::new(loss).unwrap()),
        ..TraceRow::default()
    };
    let trace = Trace::of_rows(&[row(0, 0.0), row(14_000, 0.25), row(15_000, 0.0)]).unwrap();
    let config = Config { rate: megabits(100), ..Config::default() }.following(trace);
    let mut link = link(config);
    let mut lost_in = [0_u32; 15];
    for packet in 0..30_000 {
        // A packet a millisecond, twice round the 16 s of the trace less the last of its seconds.
        let at = u64::from(packet / 15_000) * 16_000 + u64::from(packet % 15_000);
        let now = Instant::from_millis(at);
        link.enqueue(now, packet, 1500).unwrap();
        let end = link.next_timeout().unwrap();
        if matches!(link.poll(end), Some(Output::Dropped { cause: DropCause::Loss, .. })) {
            lost_in[at as usize % 16_000 / 1000] += 1;
        }
    }
    assert_eq!(lost_in[..14], [0; 14]);
    // 2000 packets at 25 %: five standard deviations are 97.
    assert!((403..=597).contains(&lost_in[14]), "{lost_in:?}");
}

#[test]
fn short_packets_share_an_opportunity_and_long_ones_take_several() {
    let trace = Trace::of_opportunities(vec![1, 2, 2, 10]).unwrap();
    let config = Config { delay: Duration::ZERO, mtu: 9000, queue: roomy(100), ..Config::default() };
    let mut link = link(config.following(trace));
    // 500 and 700 bytes leave together at 1 ms, with 300 of 1500; the other 1200 go at 2 ms with 1500 of the 4000, whose
    // last 700 are those of the opportunity at 10 ms and the next at 11 ms.
    for (packet, size) in [500, 700, 1500, 4000].into_iter().enumerate() {
        link.enqueue(Instant::ZERO, packet as u32, size).unwrap();
    }
    let (outputs, _) = run(&mut link, Instant::from_millis(11));
    assert_eq!(arrivals(&outputs), [(0, 1.0), (1, 1.0), (2, 2.0), (3, 11.0)]);
    // What is left of the one at 11 ms is gone, and so are those at 12 ms; the next is at 20 ms.
    link.enqueue(Instant::from_millis(13), 4, 40).unwrap();
    assert_eq!(link.next_timeout(), Some(Instant::from_millis(20)));
}

#[test]
fn an_opportunity_at_which_nothing_waits_is_gone() {
    let mut link = link(
        Config { delay: millis(3), ..Config::default() }.following(Trace::of_opportunities(vec![5]).unwrap()),
    );
    link.enqueue(Instant::from_millis(5), 0, 1500).unwrap();
    assert_eq!(link.next_timeout(), Some(Instant::from_millis(13)));
}

#[test]
fn a_trace_can_begin_anywhere() {
    let trace = Trace::of_opportunities(vec![4, 6, 10]).unwrap();
    for (start, first) in [(0, 4), (4, 2), (7, 3), (10, 4), (25, 1)] {
        let config = Config::default().following(trace.clone().starting_at(millis(start)));
        let mut link = link(config);
        link.enqueue(Instant::ZERO, 0, 1500).unwrap();
        assert_eq!(link.next_timeout(), Some(Instant::from_millis(first)), "{start}");
    }
}

#[test]
fn a_trace_has_a_mean_rate_a_median_delay_and_a_capacity() {
    let trace = rows(&[
        (0, megabits(10), 50),
        (1_000, DataRate::ZERO, 20),
        (1_500, megabits(2), 30),
        (3_000, megabits(2), 70),
    ]);
    // 10 + 0 + 3 + 3 Mbit in 4.5 s.
    assert_eq!(trace.period(), millis(4_500));
    assert_eq!(trace.mean_rate(), Some(DataRate::from_bits_per_second(3_555_555)));
    // 0.5 s of 20 ms, 1.5 s of 30, 1 s of 50, 1.5 s of 70.
    assert_eq!((trace.median_delay(), trace.least_delay()), (Some(millis(50)), Some(millis(20))));
    assert_eq!(trace.bits_by(Instant::from_millis(5_000)), Some(16_000_000 + 5_000_000));
    let config = Config::default().following(trace);
    assert_eq!((config.rate, config.delay), (DataRate::from_bits_per_second(3_555_555), millis(50)));
    assert_eq!(config.bits_by(Instant::from_millis(2_000)), 11_000_000);
    let plain = Config { rate: megabits(1), ..Config::default() };
    assert_eq!(plain.bits_by(Instant::from_millis(2_000)), 2_000_000);

    let opportunities = Trace::of_opportunities(vec![1, 2, 2, 10]).unwrap();
    assert_eq!(opportunities.mean_rate(), Some(DataRate::from_bits_per_second(4_800_000)));
    assert_eq!((opportunities.median_delay(), opportunities.mean_loss()), (None, None));
}

#[test]
fn what_is_no_trace_is_refused() {
    assert_eq!(Trace::of_opportunities(vec![]), Err(TraceError::Empty));
    assert_eq!(Trace::of_opportunities(vec![0, 0]), Err(TraceError::NoLength));
    assert_eq!(Trace::of_opportunities(vec![0, 4, 3]), Err(TraceError::OutOfOrder { row: 2 }));
    let row = |at, rate| TraceRow { at: millis(at), rate, ..TraceRow::default() };
    let rate = Some(megabits(1));
    assert_eq!(Trace::of_rows(&[]), Err(TraceError::Empty));
    assert_eq!(Trace::of_rows(&[row(1, rate)]), Err(TraceError::BeginsLate));
    assert_eq!(Trace::of_rows(&[row(0, rate), row(0, rate)]), Err(TraceError::OutOfOrder { row: 1 }));
    assert_eq!(Trace::of_rows(&[row(0, None), row(1, rate)]), Err(TraceError::LateColumn { row: 1 }));
}

#[test]
fn jitter_may_not_exceed_the_least_delay_of_a_trace() {
    let jitter = Jitter::Uniform { spread: millis(8), reorder: false };
    let config = Config { jitter, ..Config::default() };
    let trace = |least| rows(&[(0, megabits(1), least), (1, megabits(1), 100), (100, megabits(1), 100)]);
    assert_eq!(config.clone().following(trace(8)).check(), Ok(()));
    assert!(config.following(trace(7)).check().is_err());
}

#[test]
fn links_do_not_grow_by_traces_they_do_not_have() {
    // Trees of ten thousand mobile nodes have forty thousand of them. 72 bytes are a counter for each cause of a drop.
    assert!(size_of::<Link<u32>>() <= 536, "{}", size_of::<Link<u32>>());
}

/// Something done to a link, after a wait in nanoseconds.
#[derive(Clone, Debug)]
enum Action {
    Enqueue(u32),
    Down { queued: Fate, in_flight: Fate },
    Up,
    Drain,
}

fn scripts(
    waits: std::ops::Range<u64>,
    sizes: std::ops::Range<u32>,
) -> impl Strategy<Value = Vec<(u64, Action)>> {
    let fate = || prop_oneof![Just(Fate::Keep), Just(Fate::Drop)];
    let action = prop_oneof![
        16 => sizes.prop_map(Action::Enqueue),
        1 => (fate(), fate()).prop_map(|(queued, in_flight)| Action::Down { queued, in_flight }),
        2 => Just(Action::Up),
        1 => Just(Action::Drain),
    ];
    prop::collection::vec((prop_oneof![Just(0), waits], action), 1..80)
}

fn act(link: &mut Link<u32>, now: Instant, action: &Action, next: &mut u32) -> Vec<u32> {
    match action {
        Action::Enqueue(size) => {
            let _ = link.enqueue(now, *next, *size);
            *next += 1;
        }
        Action::Down { queued, in_flight } => link.set_down(now, *queued, *in_flight),
        Action::Up => link.set_up(now),
        Action::Drain => return link.drain_queue(now),
    }
    Vec::new()
}

/// Mahimahi's rule as its queue has it: at each opportunity 1500 bytes of the packet in transit and those behind it.
struct Mahimahi {
    millis: Vec<u64>,
    next: usize,
    base: u64,
    queue: VecDeque<(u32, u64)>,
    in_transit: Option<(u32, u64)>,
}

impl Mahimahi {
    /// Passes opportunities up to `until`, in nanoseconds.
    fn pass(&mut self, until: u64, departures: &mut Vec<(u32, u64)>) {
        while (self.base + self.millis[self.next]) * 1_000_000 <= until {
            let at = (self.base + self.millis[self.next]) * 1_000_000;
            self.next += 1;
            if self.next == self.millis.len() {
                (self.next, self.base) = (0, self.base + self.millis[self.millis.len() - 1]);
            }
            let mut room = 1500;
            while room > 0 {
                let Some((packet, left)) = self.in_transit.take().or_else(|| self.queue.pop_front()) else {
                    break;
                };
                let sent = left.min(room);
                room -= sent;
                if left > sent {
                    self.in_transit = Some((packet, left - sent));
                } else {
                    departures.push((packet, at));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn opportunities_pass_as_in_mahimahi(
        mut stamps in prop::collection::vec(0_u32..50, 1..60),
        offers in prop::collection::vec((0_u64..8_000_000, 1_u32..4000), 1..120),
        whole_millis in any::<bool>(),
    ) {
        stamps.push(50);
        stamps.sort_unstable();
        let config = Config { delay: Duration::ZERO, mtu: 9000, queue: roomy(1000), ..Config::default() };
        let mut link = link(config.following(Trace::of_opportunities(stamps.clone()).unwrap()));
        let millis = stamps.into_iter().map(u64::from).collect();
        let mut slow = Mahimahi { millis, next: 0, base: 0, queue: VecDeque::new(), in_transit: None };
        let (mut now, mut found, mut expected) = (0, Vec::new(), Vec::new());
        for (packet, (wait, size)) in (0..).zip(offers) {
            now += if whole_millis { wait / 1_000_000 * 1_000_000 } else { wait };
            slow.pass(now, &mut expected);
            slow.queue.push_back((packet, u64::from(size)));
            link.enqueue(Instant::from_nanos(now), packet, size).unwrap();
        }
        slow.pass(now + 100_000_000_000, &mut expected);
        found.extend(run(&mut link, Instant::from_nanos(now + 100_000_000_000)).0.iter().map(|output| match output {
            Output::Delivered { packet, at, .. } => (*packet, at.as_nanos()),
            Output::Dropped { .. } => unreachable!("there is room for all"),
        }));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_constant_trace_is_a_constant_link(
        bits in 1_000_u64..100_000_000,
        delay in 0_u64..30_000,
        loss in 0.0..0.5,
        start in 0_u64..100_000,
        row_count in 1_u64..4,
        script in scripts(0..20_000_000, 0..1600),
    ) {
        let (rate, delay) = (DataRate::from_bits_per_second(bits), Duration::from_micros(delay));
        let p = Probability::new(loss).unwrap();
        let constant =
            Config { rate, delay, loss: Loss::Bernoulli { p }, queue: roomy(10), ..Config::default() };
        let row = |at| TraceRow { at: millis(at), rate: Some(rate), delay: Some(delay), loss: Some(p) };
        let trace = Trace::of_rows(&(0..row_count).map(|row_number| row(row_number * 7)).collect::<Vec<_>>()).unwrap();
        let traced = Config { queue: roomy(10), ..Config::default() }
            .following(trace.starting_at(Duration::from_micros(start)));
        prop_assert_eq!((traced.rate, traced.delay), (rate, delay));
        let (mut one, mut other) = (link(constant), link(traced));
        let (mut now, mut next) = (Instant::ZERO, [0; 2]);
        let end = (60_000_000_000, Action::Up);
        for (wait, action) in script.iter().chain([&end]) {
            let until = now + Duration::from_nanos(*wait);
            prop_assert_eq!(run(&mut one, until).0, run(&mut other, until).0);
            now = until;
            prop_assert_eq!(act(&mut one, now, action, &mut next[0]), act(&mut other, now, action, &mut next[1]));
            prop_assert_eq!(one.next_timeout(), other.next_timeout());
            prop_assert_eq!((one.queue_len(), one.in_flight()), (other.queue_len(), other.in_flight()));
        }
        prop_assert_eq!(one.counters(), other.counters());
    }

    /// Nanosecond by nanosecond, with packets that take tens of them and rows of a few.
    #[test]
    fn a_series_equals_one_that_is_stepped_through_each_nanosecond(
        rows in prop::collection::vec(
            (1_u64..80, prop_oneof![1 => Just(0_u64), 3 => 1_000_000_000_u64..50_000_000_000], 0_u64..60),
            2..7,
        ),
        limit in 0_u32..8,
        script in scripts(0..200, 1..160),
    ) {
        // Something moves now and then, and the last row is as long as the one before it.
        let mut rows = rows;
        rows[0].1 = rows[0].1.max(1_000_000_000);
        let count = rows.len();
        rows[count - 1].0 = rows[count - 2].0;
        let mut at = 0;
        let table: Vec<TraceRow> = rows.iter().map(|(length, rate, delay)| {
            let row = TraceRow {
                at: Duration::from_nanos(at),
                rate: Some(DataRate::from_bits_per_second(*rate)),
                delay: Some(Duration::from_nanos(*delay)),
                loss: None,
            };
            at += length;
            row
        }).collect();
        let config = Config { mtu: 150, queue: roomy(limit), ..Config::default() };
        let mut link = link(config.clone().following(Trace::of_rows(&table).unwrap()));
        let mut slow = Reference::with_trace(config, rows);
        let mut next_packet = 0;
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        let end = (5_000, Action::Up);
        for (wait, action) in script.iter().chain([&end, &end]) {
            let until = slow.now() + wait;
            while let Some(wake) = link.next_timeout().filter(|wake| wake.as_nanos() <= until) {
                found.extend(std::iter::from_fn(|| link.poll(wake)));
            }
            slow.step_to(until, &mut expected);
            let now = Instant::from_nanos(until);
            let drained = match action {
                Action::Enqueue(size) => {
                    next_packet += 1;
                    prop_assert_eq!(link.enqueue(now, next_packet, *size), slow.enqueue(next_packet, *size));
                    Vec::new()
                }
                other => act(&mut link, now, other, &mut next_packet),
            };
            match action {
                Action::Enqueue(_) => {}
                Action::Down { queued, in_flight } => slow.set_down(*queued, *in_flight, &mut expected),
                Action::Up => slow.set_up(),
                Action::Drain => prop_assert_eq!(drained, slow.drain()),
            }
            found.extend(std::iter::from_fn(|| link.poll(now)));
            slow.step_to(until, &mut expected);
            let key = |output: &Output<u32>| (output.at(), matches!(output, Output::Dropped { .. }));
            found.sort_by_key(key);
            expected.sort_by_key(key);
            prop_assert_eq!(&found, &expected, "after {:?} at {}", action, now);
        }
    }
}
