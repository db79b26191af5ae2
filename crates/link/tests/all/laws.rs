//! Each part of a link, measured against its law from outside.

use careof_base::{DataRate, Duration, Instant, Probability, RandomStream};
use careof_link::{
    Config, Discipline, DropCause, Fate, Framing, Jitter, Link, Loss, Output, QueueConfig, QueueLimit,
    RedConfig, UNLIMITED_RATE,
};

fn link(config: Config) -> Link<u32> {
    config.check().expect("a link");
    let stream = |user| RandomStream::new(11, 0, user);
    Link::new(config, stream("loss"), stream("jitter"), stream("queue"))
}

fn at_micros(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn megabits(rate: u64) -> DataRate {
    DataRate::from_megabits_per_second(rate)
}

fn roomy(discipline: Discipline) -> QueueConfig {
    QueueConfig { limit: QueueLimit::Packets(1_000_000), discipline, ecn: false }
}

/// 12 Mbit/s, so that a packet of 1500 bytes takes a millisecond, and 20 ms of delay.
fn millisecond_link() -> Config {
    Config { rate: megabits(12), delay: millis(20), queue: roomy(Discipline::DropTail), ..Config::default() }
}

/// Everything that happens by `until` when the link is polled at its own timeouts.
fn run(link: &mut Link<u32>, until: Instant) -> Vec<Output<u32>> {
    let mut outputs = Vec::new();
    while let Some(next) = link.next_timeout().filter(|next| *next <= until) {
        outputs.extend(std::iter::from_fn(|| link.poll(next)));
    }
    outputs.extend(std::iter::from_fn(|| link.poll(until)));
    outputs
}

fn delivered(outputs: &[Output<u32>]) -> Vec<(u32, u64)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Delivered { packet, at, .. } => Some((*packet, at.as_nanos() / 1_000)),
            Output::Dropped { .. } => None,
        })
        .collect()
}

fn dropped(outputs: &[Output<u32>]) -> Vec<(u32, u64, DropCause)> {
    outputs
        .iter()
        .filter_map(|output| match output {
            Output::Dropped { packet, at, cause } => Some((*packet, at.as_nanos() / 1_000, *cause)),
            Output::Delivered { .. } => None,
        })
        .collect()
}

#[test]
fn segments_and_acks_take_their_arithmetic_time() {
    let mut link = link(Config { queue: roomy(Discipline::DropTail), ..Config::default() });
    for packet in 0..300 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    let outputs = run(&mut link, Instant::from_secs(1));
    assert_eq!(delivered(&outputs)[0], (0, 1_200));
    assert_eq!(delivered(&outputs)[299], (299, 360_000));
    // A 52-byte acknowledgement at 10 Mbit/s: 41.6 us.
    link.enqueue(Instant::from_secs(2), 300, 52).unwrap();
    assert_eq!(link.next_timeout(), Some(Instant::from_nanos(2_000_041_600)));
}

#[test]
fn a_million_packets_take_their_exact_time_and_one_timeout_each() {
    let rate = DataRate::from_bits_per_second(7_777_777);
    let mut link = link(Config { rate, delay: Duration::ZERO, ..millisecond_link() });
    for packet in 0..10 {
        link.enqueue(Instant::ZERO, packet, 333).unwrap();
    }
    for packet in 0..1_000_000_u32 {
        let now = link.next_timeout().expect("a packet is on its way");
        let exact = u128::from(packet + 1) * 333 * 8 * 1_000_000_000 / 7_777_777;
        assert_eq!(u128::from(now.as_nanos()), exact);
        assert_eq!(link.poll(now), Some(Output::Delivered { packet, at: now, marked: false }));
        assert_eq!(link.poll(now), None);
        link.enqueue(now, packet + 10, 333).unwrap();
    }
}

#[test]
fn asynchronous_framing_carries_960_bytes_a_second_at_9600_bits() {
    let mut link = link(Config {
        rate: DataRate::from_bits_per_second(9_600),
        framing: Framing { bits_per_byte: 10, overhead_bytes: 0 },
        ..millisecond_link()
    });
    for packet in 0..100 {
        link.enqueue(Instant::ZERO, packet, 960).unwrap();
    }
    let outputs = run(&mut link, Instant::from_secs(200));
    assert_eq!(delivered(&outputs)[99], (99, 100_020_000));
}

#[test]
fn the_end_of_the_packet_in_the_serialiser_is_known() {
    let mut link = link(millisecond_link());
    assert_eq!(link.sending_until(), None);
    for packet in 0..2 {
        link.enqueue(at_micros(100), packet, 1500).unwrap();
    }
    assert_eq!(link.sending_until(), Some(at_micros(1_100)));
    link.advance(at_micros(1_100));
    assert_eq!(link.sending_until(), Some(at_micros(2_100)));
    link.set_down(at_micros(1_500), Fate::Keep, Fate::Keep);
    assert_eq!(link.sending_until(), None);
    link.set_up(at_micros(9_500));
    assert_eq!(link.sending_until(), Some(at_micros(10_100)));
    link.advance(at_micros(10_100));
    assert_eq!(link.sending_until(), None);
}

#[test]
fn propagation_is_never_charged_to_the_queue() {
    // No queue at all, and a thousand packets on a wire a second long.
    let mut link = link(Config {
        delay: millis(1_000),
        queue: QueueConfig { limit: QueueLimit::Packets(0), ..QueueConfig::default() },
        ..millisecond_link()
    });
    for packet in 0..1_000 {
        link.enqueue(Instant::from_millis(u64::from(packet)), packet, 1500).unwrap();
    }
    assert_eq!(link.in_flight(), 1_000);
    assert_eq!(link.enqueue(Instant::from_micros(999_999), 1_000, 1500), Err(DropCause::QueueFull));
    assert_eq!(delivered(&run(&mut link, Instant::from_secs(3))).len(), 1_000);
}

#[test]
fn waiting_times_are_those_of_an_m_d_1_queue() {
    const BATCHES: usize = 40;
    for load in [0.3, 0.7, 0.9] {
        let mut link = link(millisecond_link());
        let mut arrivals = RandomStream::new(21, 0, "poisson");
        let (mut now, mut offered_at) = (0.0, Vec::new());
        let mut waits = Vec::new();
        for packet in 0..400_000 {
            now += arrivals.standard_exponential() * 1e6 / load;
            let instant = Instant::from_nanos(now as u64);
            for output in run(&mut link, instant) {
                let Output::Delivered { packet, at, .. } = output else { panic!("{output:?}") };
                let took = at - offered_at[packet as usize] - millis(21);
                waits.push(took.as_secs_f64() * 1e3);
            }
            offered_at.push(instant);
            link.enqueue(instant, packet, 1500).unwrap();
        }
        // Pollaczek and Khinchine: the mean wait is load / (2 (1 - load)) services. Waits are correlated, so
        // the error is taken from the means of batches.
        let expected = load / (2.0 * (1.0 - load));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let batches: Vec<f64> = waits.chunks_exact(waits.len() / BATCHES).take(BATCHES).map(mean).collect();
        let found = mean(&batches);
        let variance = batches.iter().map(|b| (b - found).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
        let error = (variance / BATCHES as f64).sqrt();
        assert!((found - expected).abs() < 4.0 * error, "{found} for {expected} at load {load}");
        assert!(error < 0.04 * expected, "a band of {error} proves nothing at load {load}");
    }
}

#[test]
fn queues_are_limited_in_packets_or_in_bytes() {
    let limited =
        |limit| link(Config { queue: QueueConfig { limit, ..QueueConfig::default() }, ..millisecond_link() });
    let mut packets = limited(QueueLimit::Packets(3));
    let mut bytes = limited(QueueLimit::Bytes(3_000));
    let mut accepted = [0, 0];
    for packet in 0..10 {
        accepted[0] += u32::from(packets.enqueue(Instant::ZERO, packet, 100).is_ok());
        accepted[1] += u32::from(bytes.enqueue(Instant::ZERO, packet, 1_500 - packet).is_ok());
    }
    // One more than the limit: the packet being sent is not in the queue.
    assert_eq!(accepted, [4, 3]);
    assert_eq!((packets.queue_len(), bytes.queue_len()), ((3, 300), (2, 2_997)));
    assert!(bytes.enqueue(Instant::ZERO, 10, 3).is_ok());
    assert_eq!(bytes.counters().dropped_by(DropCause::QueueFull), 7);
}

#[test]
fn packets_above_the_mtu_are_refused() {
    let mut link = link(Config { mtu: 576, ..millisecond_link() });
    assert_eq!(link.enqueue(Instant::ZERO, 0, 577), Err(DropCause::MtuExceeded));
    assert_eq!(link.enqueue(Instant::ZERO, 1, u32::MAX), Err(DropCause::MtuExceeded));
    assert_eq!(link.enqueue(Instant::ZERO, 2, 576), Ok(()));
    assert_eq!(link.counters().dropped_by(DropCause::MtuExceeded), 2);
}

#[test]
fn loss_takes_its_share_of_the_link_and_is_reported_when_the_packet_is_missed() {
    let p = Probability::new(0.1).unwrap();
    let mut link = link(Config { loss: Loss::Bernoulli { p }, ..millisecond_link() });
    for packet in 0..10_000 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    let outputs = run(&mut link, Instant::from_secs(100));
    let lost = dropped(&outputs);
    // Five sigma around a thousand.
    assert!((850..=1_150).contains(&lost.len()), "{}", lost.len());
    for (packet, micros, cause) in lost {
        assert_eq!((micros, cause), (u64::from(packet + 1) * 1_000 + 20_000, DropCause::Loss));
    }
    for (packet, micros) in delivered(&outputs) {
        assert_eq!(micros, u64::from(packet + 1) * 1_000 + 20_000);
    }
}

#[test]
fn switching_loss_on_does_not_disturb_jitter_nor_the_other_way_round() {
    let jitter = Jitter::Normal { deviation: millis(3), reorder: true };
    let loss = Loss::Bernoulli { p: Probability::new(0.2).unwrap() };
    let outputs = |jitter, loss| {
        let mut link = link(Config { jitter, loss, ..millisecond_link() });
        for packet in 0..2_000 {
            link.enqueue(Instant::ZERO, packet, 1500).unwrap();
        }
        run(&mut link, Instant::from_secs(10))
    };
    let by_packet = |mut list: Vec<(u32, u64)>| {
        list.sort_unstable();
        list
    };
    let both = outputs(jitter, loss);
    let survivors = by_packet(delivered(&both));
    let jitter_only = by_packet(delivered(&outputs(jitter, Loss::None)));
    assert!(survivors.iter().all(|found| jitter_only[found.0 as usize] == *found));
    let lost = |outputs: &[Output<u32>]| {
        let mut lost: Vec<u32> = dropped(outputs).into_iter().map(|(packet, ..)| packet).collect();
        lost.sort_unstable();
        lost
    };
    assert_eq!(lost(&both), lost(&outputs(Jitter::None, loss)));
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    let (spread, deviation, scale) = (millis(15), millis(5), millis(5));
    let laws = |reorder| {
        [
            Jitter::Uniform { spread, reorder },
            Jitter::Normal { deviation, reorder },
            Jitter::Pareto { scale, shape: 2.5, reorder },
        ]
    };
    let arrivals = |jitter| {
        let mut link = link(Config { jitter, ..millisecond_link() });
        for packet in 0..5_000 {
            link.enqueue(Instant::ZERO, packet, 1500).unwrap();
        }
        delivered(&run(&mut link, Instant::from_secs(60)))
    };
    for (kept, free) in laws(false).into_iter().zip(laws(true)) {
        let (kept, free) = (arrivals(kept), arrivals(free));
        assert_eq!((kept.len(), free.len()), (5_000, 5_000));
        assert!(kept.is_sorted(), "out of order without leave");
        assert!(free.iter().map(|a| a.1).is_sorted() && !free.iter().map(|a| a.0).is_sorted());
        // In order, a packet arrives in its own time or with the latest before it.
        let mut own = free.clone();
        own.sort_unstable();
        let mut latest = 0;
        for ((packet, found), (_, own)) in kept.into_iter().zip(own) {
            latest = latest.max(own);
            assert_eq!(found, latest, "packet {packet}");
        }
    }
}

#[test]
fn the_delay_through_a_jittery_link_has_the_mean_and_spread_configured() {
    let jitter = Jitter::Uniform { spread: millis(8), reorder: true };
    let mut link = link(Config { jitter, rate: UNLIMITED_RATE, ..millisecond_link() });
    for packet in 0..100_000 {
        link.enqueue(Instant::from_millis(u64::from(packet)), packet, 1500).unwrap();
    }
    let delays: Vec<f64> = delivered(&run(&mut link, Instant::from_secs(200)))
        .into_iter()
        .map(|(packet, micros)| micros as f64 / 1e3 - f64::from(packet))
        .collect();
    let mean = delays.iter().sum::<f64>() / 1e5;
    let deviation = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
    // Five sigma of the mean of 100,000; the deviation is 8/√3 within a per cent.
    assert!((mean - 20.0).abs() < 5.0 * 4.62 / 316.0, "{mean}");
    assert!((deviation / (8.0 / 3.0_f64.sqrt()) - 1.0).abs() < 0.01, "{deviation}");
}

#[test]
fn a_rate_of_zero_delivers_nothing_until_it_is_changed() {
    let mut link = link(Config { rate: DataRate::ZERO, ..millisecond_link() });
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    link.enqueue(Instant::ZERO, 1, 1500).unwrap();
    assert_eq!((link.next_timeout(), link.poll(Instant::from_secs(1_000))), (None, None));
    assert_eq!((link.queue_len(), link.in_flight()), ((2, 3_000), 0));
    link.reconfigure(Instant::from_secs(1_000), millisecond_link());
    let outputs = run(&mut link, Instant::from_secs(2_000));
    assert_eq!(delivered(&outputs), [(0, 1_000_021_000), (1, 1_000_022_000)]);
}

#[test]
fn a_rate_changed_mid_packet_holds_for_the_rest_of_it() {
    let mut link = link(millisecond_link());
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    link.enqueue(Instant::ZERO, 1, 1500).unwrap();
    // Three quarters at 12 Mbit/s, nothing for a second, the rest at 3 Mbit/s.
    link.reconfigure(at_micros(750), Config { rate: DataRate::ZERO, ..millisecond_link() });
    assert_eq!((link.next_timeout(), link.in_flight()), (None, 1));
    link.reconfigure(at_micros(1_000_750), Config { rate: megabits(3), ..millisecond_link() });
    let outputs = run(&mut link, Instant::from_secs(2));
    assert_eq!(delivered(&outputs), [(0, 1_021_750), (1, 1_025_750)]);
}

#[test]
fn a_changed_delay_holds_for_packets_not_yet_sent_and_lets_none_overtake() {
    let mut link = link(millisecond_link());
    for packet in 0..3 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    link.reconfigure(at_micros(1_500), Config { delay: millis(2), ..millisecond_link() });
    let outputs = run(&mut link, Instant::from_secs(1));
    // The first is on the wire already. The others would arrive at 4 and 5 ms.
    assert_eq!(delivered(&outputs), [(0, 21_000), (1, 21_000), (2, 21_000)]);
    link.enqueue(Instant::from_secs(1), 3, 1500).unwrap();
    assert_eq!(link.next_timeout(), Some(at_micros(1_003_000)));
}

#[test]
fn a_smaller_queue_drops_from_the_tail() {
    let mut link = link(millisecond_link());
    for packet in 0..6 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    let queue = QueueConfig { limit: QueueLimit::Bytes(4_000), ..QueueConfig::default() };
    link.reconfigure(at_micros(500), Config { queue, ..millisecond_link() });
    let outputs = run(&mut link, Instant::from_secs(1));
    assert_eq!(
        dropped(&outputs),
        [(5, 500, DropCause::QueueFull), (4, 500, DropCause::QueueFull), (3, 500, DropCause::QueueFull)]
    );
    assert_eq!(delivered(&outputs), [(0, 21_000), (1, 22_000), (2, 23_000)]);
}

/// At 2.5 ms: packet 0 on the wire, 1 as well, 2 half sent, 3 and 4 in the queue.
fn half_way() -> Link<u32> {
    let mut link = link(millisecond_link());
    for packet in 0..5 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    link.advance(at_micros(2_500));
    assert_eq!((link.in_flight(), link.queue_len().0), (3, 2));
    link
}

#[test]
fn what_a_link_keeps_while_it_is_down_goes_on_from_where_it_was() {
    let mut link = half_way();
    link.set_down(at_micros(2_500), Fate::Keep, Fate::Keep);
    assert!(!link.is_up());
    assert_eq!((link.next_timeout(), link.poll(Instant::from_secs(9))), (None, None));
    link.enqueue(Instant::from_secs(9), 5, 1500).unwrap();
    link.set_up(at_micros(10_002_500));
    let outputs = run(&mut link, Instant::from_secs(20));
    let expected: Vec<(u32, u64)> = (0..6).map(|n| (n, 10_021_000 + u64::from(n) * 1_000)).collect();
    assert_eq!(delivered(&outputs), expected);
}

#[test]
fn what_a_link_drops_when_it_goes_down_is_reported_at_once() {
    let mut link = half_way();
    link.set_down(at_micros(2_500), Fate::Drop, Fate::Drop);
    assert_eq!(link.enqueue(at_micros(3_000), 5, 1500), Err(DropCause::LinkDown));
    let outputs = run(&mut link, Instant::from_secs(1));
    let expected: Vec<_> = (0..5).map(|n| (n, 2_500, DropCause::LinkDown)).collect();
    assert_eq!(dropped(&outputs), expected);
    link.set_up(Instant::from_secs(1));
    link.enqueue(Instant::from_secs(1), 6, 1500).unwrap();
    assert_eq!(delivered(&run(&mut link, Instant::from_secs(2))), [(6, 1_021_000)]);
}

#[test]
fn the_queue_can_be_kept_when_the_wire_is_cut_and_the_wire_when_the_queue_is_dropped() {
    let mut link = half_way();
    link.set_down(at_micros(2_500), Fate::Keep, Fate::Drop);
    link.set_up(at_micros(12_500));
    let outputs = run(&mut link, Instant::from_secs(1));
    assert_eq!(dropped(&outputs).iter().map(|d| d.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(delivered(&outputs), [(3, 33_500), (4, 34_500)]);

    let mut link = half_way();
    link.set_down(at_micros(2_500), Fate::Drop, Fate::Keep);
    link.set_up(at_micros(12_500));
    let outputs = run(&mut link, Instant::from_secs(1));
    assert_eq!(dropped(&outputs).iter().map(|d| d.0).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(delivered(&outputs), [(0, 31_000), (1, 32_000), (2, 33_000)]);
}

#[test]
fn what_has_arrived_is_delivered_although_the_link_went_down() {
    let mut link = half_way();
    link.set_down(at_micros(21_000), Fate::Drop, Fate::Drop);
    assert_eq!(link.next_timeout().map(|at| at <= at_micros(21_000)), Some(true));
    let outputs = run(&mut link, at_micros(21_000));
    assert_eq!(outputs[0], Output::Delivered { packet: 0, at: at_micros(21_000), marked: false });
    assert_eq!((delivered(&outputs).len(), dropped(&outputs).len()), (1, 4));
}

#[test]
fn a_drained_queue_is_handed_back_oldest_first() {
    let mut link = half_way();
    assert_eq!(link.drain_queue(at_micros(2_500)), [3, 4]);
    assert_eq!(link.counters().drained, 2);
    assert_eq!(link.queue_len(), (0, 0));
    assert_eq!(delivered(&run(&mut link, Instant::from_secs(1))).len(), 3);
}

#[test]
fn at_an_unlimited_rate_there_is_no_queue() {
    let mut link = link(Config {
        rate: UNLIMITED_RATE,
        queue: QueueConfig { limit: QueueLimit::Packets(0), ..QueueConfig::default() },
        ..millisecond_link()
    });
    for packet in 0..1_000 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    assert!(delivered(&run(&mut link, Instant::from_secs(1))).iter().all(|d| d.1 == 20_000));
    assert_eq!(link.counters().delivered, 1_000);
}

/// Offers a packet each `micros` for `secs`; returns the time each delivered one spent in the queue, in ms.
fn overload(discipline: Discipline, limit: u32, micros: u64, secs: u64) -> (Vec<f64>, Link<u32>) {
    let queue = QueueConfig { limit: QueueLimit::Packets(limit), discipline, ecn: false };
    let mut link = link(Config { queue, ..millisecond_link() });
    let mut waits = Vec::new();
    for packet in 0..(secs * 1_000_000 / micros) {
        let now = at_micros(packet * micros);
        for (packet, arrival) in delivered(&run(&mut link, now)) {
            waits.push((arrival - u64::from(packet) * micros) as f64 / 1e3 - 21.0);
        }
        // A refused packet is counted by the link.
        let _ = link.enqueue(now, packet as u32, 1500);
    }
    (waits, link)
}

#[test]
fn codel_holds_a_standing_queue_near_its_target_where_drop_tail_fills_up() {
    // 1 % more than the link carries: the drop rate that cures it is reached within a second.
    let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
    let (waits, _) = overload(Discipline::DropTail, 200, 990, 60);
    let drop_tail = mean(&waits[waits.len() / 2..]);
    assert!(drop_tail > 195.0, "{drop_tail}");
    let (waits, link) = overload(Discipline::CODEL, 200, 990, 60);
    let codel = mean(&waits[waits.len() / 2..]);
    assert!((1.0..10.0).contains(&codel), "{codel}");
    let share = link.counters().dropped_by(DropCause::CoDel) as f64 / link.counters().offered as f64;
    assert!((share - 0.01).abs() < 0.001, "{share}");
    assert_eq!(link.counters().dropped_by(DropCause::QueueFull), 0);
}

#[test]
fn codel_drops_at_the_interval_over_the_root_of_the_count() {
    // Twice what the link carries: the queue never falls below the target.
    let mut link = link(Config { queue: roomy(Discipline::CODEL), ..millisecond_link() });
    let mut drops = Vec::new();
    for packet in 0..6_000 {
        let now = at_micros(packet * 500);
        drops.extend(dropped(&run(&mut link, now)).into_iter().map(|(_, at, _)| at as f64 / 1e3));
        link.enqueue(now, packet as u32, 1500).unwrap();
    }
    // The first drop is due an interval after the queueing time first reached 5 ms, in the packet that left the
    // queue at 11 ms at the latest.
    assert!((104.0..=113.0).contains(&drops[0]), "{}", drops[0]);
    let mut due = drops[0];
    for (n, found) in drops.iter().enumerate() {
        // A drop happens when the packet before it is sent, up to a millisecond late.
        assert!((0.0..=1.001).contains(&(found - due)), "drop {n} at {found}, due at {due}");
        due += 100.0 / ((n + 1) as f64).sqrt();
    }
    assert!(drops.len() > 150);
}

#[test]
fn red_settles_where_its_probability_sheds_the_overload() {
    // 10 % too much: one packet in 11 must go. With gaps of 1 / (2 p_b) packets in the mean that is p_b = 1/22, and
    // 5 + 10 / 2.2 packets in the average queue.
    let red = RedConfig { weight: 0.002, ..RedConfig::default() };
    let micros = 909;
    let (waits, link) = overload(Discipline::Red(red), 100, micros, 120);
    let share = link.counters().dropped_by(DropCause::RedEarly) as f64 / link.counters().offered as f64;
    assert!((share - (1.0 - 0.909)).abs() < 0.002, "{share}");
    assert_eq!(link.counters().dropped_by(DropCause::QueueFull), 0);
    let late = &waits[waits.len() / 2..];
    // A packet that waits w ms found w - ½ packets in the mean before it, and the rest of one.
    let queue = late.iter().sum::<f64>() / late.len() as f64;
    assert!((queue - 9.55).abs() < 1.0, "{queue}");
}

#[test]
fn red_forgets_while_the_link_is_down_and_empty() {
    let red =
        RedConfig { min_threshold: 1, max_threshold: 2, weight: 1.0, gentle: false, ..RedConfig::default() };
    let mut link = link(Config { queue: roomy(Discipline::Red(red)), ..millisecond_link() });
    for packet in 0..20 {
        let _ = link.enqueue(Instant::ZERO, packet, 1500);
    }
    assert_eq!(link.enqueue(Instant::ZERO, 20, 1500), Err(DropCause::RedEarly));
    link.set_down(Instant::ZERO, Fate::Drop, Fate::Drop);
    link.set_up(Instant::from_secs(100));
    assert_eq!(link.enqueue(Instant::from_secs(100), 21, 1500), Ok(()));
}

#[test]
fn a_discipline_keeps_its_state_when_its_parameters_change() {
    // RED: an average of 4 packets lies above the old upper threshold and below the new lower one.
    let red = |min_threshold, max_threshold| {
        let red =
            RedConfig { min_threshold, max_threshold, weight: 0.5, gentle: false, ..RedConfig::default() };
        Config { queue: roomy(Discipline::Red(red)), ..millisecond_link() }
    };
    let mut early = link(red(1, 4));
    let offered = (0..100).map(|packet| early.enqueue(Instant::ZERO, packet, 1500));
    assert!(offered.last() == Some(Err(DropCause::RedEarly)));
    early.reconfigure(Instant::ZERO, red(50, 100));
    assert_eq!(early.enqueue(Instant::ZERO, 100, 1500), Ok(()));
    early.reconfigure(Instant::ZERO, red(1, 3));
    assert_eq!(early.enqueue(Instant::ZERO, 101, 1500), Err(DropCause::RedEarly));

    // CoDel: dropped at 1.005 s, and due to drop again at 2.005 s. That stands; the interval after it is shorter.
    let codel = |target, interval| {
        let discipline = Discipline::CoDel { target: millis(target), interval: millis(interval) };
        Config { queue: roomy(discipline), ..millisecond_link() }
    };
    let mut late = link(codel(5, 1_000));
    for packet in 0..10_000 {
        late.enqueue(Instant::ZERO, packet, 1500).unwrap();
    }
    let drops = |link: &mut Link<u32>, until| {
        let outputs = run(link, Instant::from_millis(until));
        dropped(&outputs).iter().map(|d| d.1 / 1_000).collect::<Vec<_>>()
    };
    assert_eq!(drops(&mut late, 2_000), [1_005]);
    late.reconfigure(Instant::from_secs(2), codel(5, 100));
    assert_eq!(drops(&mut late, 2_100), [2_005, 2_076]);
    late.reconfigure(Instant::from_millis(2_100), codel(5_000, 10_000));
    assert_eq!(drops(&mut late, 4_000), []);
}

#[test]
fn a_mark_that_red_made_outlives_a_change_to_drop_tail() {
    let red = RedConfig { min_threshold: 1, max_threshold: 20, weight: 1.0, ..RedConfig::default() };
    let queue = QueueConfig { ecn: true, ..roomy(Discipline::Red(red)) };
    let mut link = link(Config { queue, ..millisecond_link() });
    for packet in 0..15 {
        let _ = link.enqueue_ecn_capable(Instant::ZERO, packet, 1500);
    }
    let marked = link.counters().marked;
    assert!(marked > 0);
    link.reconfigure(Instant::ZERO, millisecond_link());
    let mut seen = 0;
    while let Some(now) = link.next_timeout() {
        // An owner that asks this first hears of no marks, and so must not be given one.
        if link.take_arrival(now).is_none() {
            seen += u64::from(matches!(link.poll(now), Some(Output::Delivered { marked: true, .. })));
        }
    }
    assert_eq!((seen, link.counters().delivered), (marked, 15));
}

#[test]
fn a_packet_keeps_its_jitter_while_it_is_sent_whatever_is_changed_twice() {
    let jitter = Jitter::Uniform { spread: millis(8), reorder: false };
    let jittery = Config { jitter, ..millisecond_link() };
    let arrival = |changes: usize| {
        let mut link = link(jittery.clone());
        link.enqueue(Instant::ZERO, 0, 1500).unwrap();
        for n in 1..=changes {
            link.reconfigure(at_micros(100 * n as u64), millisecond_link());
        }
        link.next_timeout()
    };
    assert_ne!(arrival(0), Some(at_micros(21_000)));
    assert_eq!((arrival(1), arrival(2), arrival(3)), (arrival(0), arrival(0), arrival(0)));
}

#[test]
fn what_arrives_can_be_taken_in_one_step_where_it_just_arrives() {
    let mut link = link(millisecond_link());
    assert!(!link.is_behind_others());
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    // It is the next to arrive, and the others are not.
    assert!(!link.is_behind_others());
    for packet in 1..3 {
        link.enqueue(Instant::ZERO, packet, 1500).unwrap();
        assert!(link.is_behind_others());
        assert_eq!(link.next_timeout(), Some(at_micros(21_000)));
    }
    assert_eq!(link.take_arrival(at_micros(20_999)), None);
    assert_eq!(link.take_arrival(at_micros(21_000)), Some((0, at_micros(22_000))));
    assert_eq!(link.take_arrival(at_micros(21_000)), None);
    assert_eq!(
        link.poll(at_micros(22_000)),
        Some(Output::Delivered { packet: 1, at: at_micros(22_000), marked: false })
    );
    assert!(!link.is_behind_others());
    assert_eq!(link.take_arrival(at_micros(23_000)), Some((2, Instant::MAX)));
    assert_eq!((link.next_timeout(), link.in_flight()), (None, 0));
    let counters = link.counters();
    assert_eq!((counters.delivered, counters.delivered_bytes), (3, 4_500));
}

#[test]
fn where_more_can_happen_than_an_arrival_it_has_to_be_polled() {
    let codel = Discipline::CoDel { target: millis(5), interval: millis(100) };
    let half = Probability::new(0.5).unwrap();
    let jitter = Jitter::Uniform { spread: millis(1), reorder: true };
    for config in [
        Config { loss: Loss::Bernoulli { p: half }, ..millisecond_link() },
        Config { jitter, ..millisecond_link() },
        Config { queue: roomy(codel), ..millisecond_link() },
        Config { queue: roomy(Discipline::Red(RedConfig::default())), ..millisecond_link() },
    ] {
        let mut link = link(config);
        for packet in 0..3 {
            link.enqueue(Instant::ZERO, packet, 1500).unwrap();
            assert!(!link.is_behind_others());
        }
        let later = Instant::from_secs(1);
        assert_eq!(link.take_arrival(later), None);
        assert!(link.poll(later).is_some());
    }
    // Nor while it is down: what had arrived before is told by `poll`.
    let mut link = link(millisecond_link());
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    link.set_down(at_micros(21_000), Fate::Keep, Fate::Keep);
    assert_eq!(link.take_arrival(at_micros(21_000)), None);
    assert!(link.poll(at_micros(21_000)).is_some());
}

#[test]
fn the_largest_packet_there_is_passes_and_none_above_it_does() {
    let mut link = link(Config { mtu: u16::MAX, ..millisecond_link() });
    let mtu = u32::from(u16::MAX);
    assert_eq!(link.enqueue(Instant::ZERO, 0, mtu), Ok(()));
    // Of some of these the low 16 bits would fit.
    for size in [mtu + 1, mtu + 41, 10 * (mtu + 1), u32::MAX] {
        assert_eq!(link.enqueue(Instant::ZERO, 1, size), Err(DropCause::MtuExceeded));
    }
    let outputs = run(&mut link, Instant::from_secs(1));
    assert_eq!(delivered(&outputs), [(0, 63_690)]);
    assert_eq!(link.counters().delivered_bytes, u64::from(mtu));
}

/// A link on which a packet takes a millisecond and one may wait, and packets 0 and 1 are offered at 0.
fn full_link(jitter: Jitter) -> Link<u32> {
    let mut link = link(Config {
        jitter,
        queue: QueueConfig { limit: QueueLimit::Packets(1), ..QueueConfig::default() },
        ..millisecond_link()
    });
    link.enqueue(Instant::ZERO, 0, 1500).unwrap();
    link.enqueue(Instant::ZERO, 1, 1500).unwrap();
    link
}

#[test]
fn a_packet_that_leaves_at_an_instant_makes_no_room_for_those_that_come_in_it() {
    // A link that goes through its queue, and one that puts what waits on the wire at once.
    for jitter in [Jitter::None, Jitter::Uniform { spread: Duration::ZERO, reorder: false }] {
        let end = Instant::from_millis(1);
        let just_after = Instant::from_nanos(end.as_nanos() + 1);
        let mut first = full_link(jitter);
        assert_eq!(first.enqueue(end, 2, 1500), Err(DropCause::QueueFull));
        assert_eq!(first.enqueue(just_after, 3, 1500), Ok(()));

        // Nor does it if the owner looks at the link before.
        let mut second = full_link(jitter);
        second.advance(end);
        assert_eq!(second.poll(end).map(|output| output.at()), None);
        assert_eq!(second.queue_len().0, 0);
        assert_eq!(second.enqueue(end, 2, 1500), Err(DropCause::QueueFull));

        // Packet 1 ends too, and nothing waits: of two that come then, one may wait.
        let mut third = full_link(jitter);
        let end = Instant::from_millis(2);
        assert_eq!(third.enqueue(end, 2, 1500), Ok(()));
        assert_eq!(third.enqueue(end, 3, 1500), Err(DropCause::QueueFull));
    }
}

#[test]
fn any_number_of_packets_at_an_instant_crosses_a_link_of_unlimited_rate() {
    let mut link = link(Config {
        rate: UNLIMITED_RATE,
        queue: QueueConfig { limit: QueueLimit::Packets(1), ..QueueConfig::default() },
        ..millisecond_link()
    });
    for packet in 0..100 {
        link.enqueue(Instant::from_millis(3), packet, 1500).unwrap();
    }
}
