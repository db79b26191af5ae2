//! What saturated stations get out of a shared medium, beside the model of Metcalfe and Boggs.

use careof_base::{DataRate, Duration, Instant, RandomStream};
use careof_link::{
    EthernetConfig, FRAME_OVERHEAD_BYTES, GAP_BITS, Medium, MediumOutput, PREAMBLE_BITS, SLOT_BITS, StationId,
};

const RATE: DataRate = DataRate::from_megabits_per_second(10);

/// What `stations` that always have frames of `frame` bytes, check sequence included, deliver in `span`, by station.
struct Saturated {
    delivered: Vec<u64>,
    /// Who sent each frame.
    order: Vec<u16>,
    dropped: u64,
}

fn saturate(stations: u16, frame: u16, delay: Duration, span: Duration, seed: u64) -> Saturated {
    let config = EthernetConfig { rate: RATE, delay, ..EthernetConfig::default() };
    assert_eq!(config.check(), Ok(()));
    let stream = |user: &str| RandomStream::new(seed, 0, user);
    let mut medium =
        Medium::new(config, stream("backoff"), stream("loss"), (0..stations).map(|_| stream("queue")));
    let size = u32::from(frame - FRAME_OVERHEAD_BYTES);
    let everybody = || (0..stations).map(StationId);
    let next = |from: StationId| StationId((from.0 + 1) % stations.max(2));
    for from in everybody() {
        for _ in 0..2 {
            medium.enqueue(Instant::ZERO, from, next(from), (), size).unwrap();
        }
    }
    let end = Instant::ZERO + span;
    let mut found = Saturated { delivered: vec![0; usize::from(stations)], order: Vec::new(), dropped: 0 };
    while let Some(now) = medium.next_timeout().filter(|now| *now <= end) {
        while let Some(output) = medium.poll(now) {
            let from = match output {
                MediumOutput::Delivered { from, .. } => {
                    found.delivered[usize::from(from.0)] += 1;
                    found.order.push(from.0);
                    from
                }
                MediumOutput::Dropped { from, .. } => {
                    found.dropped += 1;
                    from
                }
            };
            medium.enqueue(now, from, next(from), (), size).unwrap();
        }
    }
    found
}

/// Share of time in which frames, preambles included, are on the cable and do not collide.
fn efficiency(stations: u16, frame: u16, delay: Duration) -> f64 {
    let span = Duration::from_secs(20);
    let frames: u64 = saturate(stations, frame, delay, span, 1).delivered.iter().sum();
    frames as f64 * bits(frame) / (RATE.bits_per_second() as f64 * span.as_secs_f64())
}

fn bits(frame: u16) -> f64 {
    f64::from(frame) * 8.0 + PREAMBLE_BITS as f64
}

/// Metcalfe and Boggs, "Ethernet: Distributed Packet Switching for Local Computer Networks", CACM 19(7), 1976, section 6, in bit
/// times: of Q stations that send in a slot with probability 1/Q each, one alone does so with A = (1 - 1/Q)^(Q-1), so
/// that W = (1 - A)/A slots pass before each frame. The gap, which their network did not have, is added to each frame.
fn metcalfe_boggs(stations: u16, frame: u16, slot: f64) -> f64 {
    let q = f64::from(stations);
    let a = (1.0 - 1.0 / q).powf(q - 1.0);
    let w = (1.0 - a) / a;
    bits(frame) / (bits(frame) + GAP_BITS as f64 + w * slot)
}

/// A cable of about 180 m, and the longest.
fn cables() -> [Duration; 2] {
    [Duration::from_nanos(900), EthernetConfig::longest_delay(RATE)]
}

#[test]
fn up_to_ten_saturated_stations_get_more_than_the_model_of_metcalfe_and_boggs_and_less_than_one_alone() {
    for delay in cables() {
        for (frame, most) in [(64, 2.2), (128, 1.7), (512, 1.17), (1024, 1.08), (1518, 1.05)] {
            for stations in [2, 3, 5, 10] {
                let found = efficiency(stations, frame, delay);
                let model = metcalfe_boggs(stations, frame, SLOT_BITS as f64);
                let alone = bits(frame) / (bits(frame) + GAP_BITS as f64);
                // The model's stations forget who collided, and an attempt that fails costs them a whole slot. Here one that
                // has just sent mostly sends again (the capture effect), and a collision takes a preamble, a jam, a gap and
                // twice the delay: the shorter the frames, the more that is worth. Long frames come within 8 % of the model.
                let ratio = found / model;
                assert!(
                    (1.0..most).contains(&ratio) && found < alone,
                    "{stations} stations, {frame} B, {delay:?}: {found:.4}, model {model:.4}, alone {alone:.4}"
                );
            }
        }
    }
}

#[test]
fn efficiency_falls_with_stations_with_shorter_frames_and_with_a_longer_cable() {
    let [short, long] = cables();
    for frame in [64, 512, 1518] {
        let by_stations = [2, 5, 10, 20].map(|stations| efficiency(stations, frame, short));
        assert!(by_stations.is_sorted_by(|a, b| a > b), "{frame} B: {by_stations:?}");
    }
    for stations in [2, 5, 10] {
        let by_frame = [64, 128, 512, 1024, 1518].map(|frame| efficiency(stations, frame, short));
        assert!(by_frame.is_sorted_by(|a, b| a < b), "{stations} stations: {by_frame:?}");
        assert!(efficiency(stations, 64, long) < efficiency(stations, 64, short), "{stations} stations");
    }
}

/// Jain's index of fairness: 1 where all get the same, 1/n where one gets everything.
fn jain(delivered: &[u64]) -> f64 {
    let (sum, squares) = delivered.iter().fold((0.0, 0.0), |(sum, squares), n| {
        let n = *n as f64;
        (sum + n, squares + n * n)
    });
    sum * sum / (delivered.len() as f64 * squares)
}

#[test]
fn whoever_sent_last_mostly_sends_next_and_yet_the_long_run_is_fair() {
    for (stations, least_run) in [(2, 50.0), (5, 15.0), (10, 7.0)] {
        let found = saturate(stations, 1518, cables()[0], Duration::from_secs(400), 1);
        let changes = found.order.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let run = found.order.len() as f64 / (changes + 1) as f64;
        // Stations that took turns by chance would have runs of n / (n - 1) frames.
        assert!(run > least_run, "{stations} stations: runs of {run:.1} frames");
        assert!(jain(&found.delivered) > 0.999, "{stations} stations: {:?}", found.delivered);
        assert!(found.dropped > 0, "who loses again and again gives a frame up");
    }
}

#[test]
fn two_stations_that_begin_together_collide_as_often_as_their_ranges_say() {
    // After the k-th collision both draw from 2^k slots and collide again if they draw the same.
    let (mut expected, mut chance) = (0.0, 1.0);
    for k in 0..16 {
        chance *= 0.5_f64.powi(k);
        expected += chance;
    }
    let rounds = 20_000;
    let mut collisions = 0;
    for seed in 0..rounds {
        let config = EthernetConfig { delay: cables()[0], ..EthernetConfig::default() };
        let stream = |user: &str| RandomStream::new(seed, 0, user);
        let mut medium = Medium::new(config, stream("backoff"), stream("loss"), [stream("a"), stream("b")]);
        let [a, b] = [StationId(0), StationId(1)];
        medium.enqueue(Instant::ZERO, a, b, 0, 1000).unwrap();
        medium.enqueue(Instant::ZERO, b, a, 1, 1000).unwrap();
        while let Some(now) = medium.next_timeout() {
            while medium.poll(now).is_some() {}
        }
        assert_eq!(medium.contention(a).collisions, medium.contention(b).collisions);
        collisions += medium.contention(a).collisions;
    }
    let mean = collisions as f64 / rounds as f64;
    // The standard deviation of the number is about 0.75: 20000 rounds give the mean to 0.0053, three times that is 0.016.
    assert!((mean - expected).abs() < 0.016, "{mean:.4} collisions in the mean, {expected:.4} expected");
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_seed_another() {
    let order = |seed| saturate(5, 512, cables()[0], Duration::from_secs(2), seed).order;
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
