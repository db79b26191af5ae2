//! A path between two ends.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::*;

/// A path with both its ends. Clocks of the ends are an hour apart.
struct Pair {
    near: Path,
    far: Path,
    now: Instant,
    /// Away from the near end and back: delay, and whether it gets through.
    delays: [Duration; 2],
    works: [bool; 2],
    /// Bit/s and when the queue before it is empty, away from the near end.
    rate: u64,
    free_at: Instant,
    messages: [VecDeque<(Instant, PathFeedback)>; 2],
    packets: VecDeque<(Instant, u32, u32, u32)>,
    changes: Vec<(u64, PathChange)>,
}

const APART: Duration = Duration::from_secs(3600);

impl Pair {
    fn new(delay: u64) -> Self {
        let id = PathId::new(0).unwrap();
        Self {
            near: Path::new(Instant::ZERO, id, PathConfig::default()),
            far: Path::new(Instant::ZERO + APART, id, PathConfig::default()),
            now: Instant::ZERO,
            delays: [Duration::from_millis(delay); 2],
            works: [true; 2],
            rate: 8_000_000,
            free_at: Instant::ZERO,
            messages: Default::default(),
            packets: VecDeque::new(),
            changes: Vec::new(),
        }
    }

    /// Goes on for so many milliseconds, with a packet of 1000 bytes each `every`, if any.
    fn run(&mut self, millis: u64, every: Option<u64>) {
        for _ in 0..millis {
            self.now += Duration::from_millis(1);
            let (now, far_now) = (self.now, self.now + APART);
            while let Some(&(_, sent_at, sequence, len)) = self.packets.front().filter(|p| p.0 <= now) {
                self.packets.pop_front();
                self.far.note_received(far_now, sent_at, sequence, len);
            }
            while let Some(&(_, message)) = self.messages[0].front().filter(|m| m.0 <= now) {
                self.messages[0].pop_front();
                self.far.handle_feedback(far_now, &message);
            }
            while let Some(&(_, message)) = self.messages[1].front().filter(|m| m.0 <= now) {
                self.messages[1].pop_front();
                let change = self.near.handle_feedback(now, &message);
                self.changes.extend(change.map(|change| (now.as_nanos() / 1_000_000, change)));
            }
            if every.is_some_and(|every| (now.as_nanos() / 1_000_000).is_multiple_of(every))
                && self.near.is_usable()
            {
                let sequence = self.near.note_sent(now, 1000);
                self.free_at = self.free_at.max(now) + Duration::from_nanos(8_000_000_000_000 / self.rate);
                if self.works[0] {
                    self.packets.push_back((self.free_at + self.delays[0], micros(now), sequence, 1000));
                }
            }
            let change = self.near.handle_timeout(now);
            self.changes.extend(change.map(|change| (now.as_nanos() / 1_000_000, change)));
            self.far.handle_timeout(far_now);
            while let Some(message) = self.near.poll_feedback(now, 0) {
                if self.works[0] {
                    self.messages[0].push_back((self.free_at.max(now) + self.delays[0], message));
                }
            }
            while let Some(message) = self.far.poll_feedback(far_now, 0) {
                if self.works[1] {
                    self.messages[1].push_back((now + self.delays[1], message));
                }
            }
        }
    }
}

#[test]
fn round_trip_and_loss_free_delivery_are_measured_though_clocks_are_an_hour_apart() {
    let mut pair = Pair::new(20);
    pair.run(5_000, Some(2));
    let estimate = pair.near.estimate();
    let round_trip = estimate.round_trip.unwrap();
    assert!(round_trip.abs_diff(Duration::from_millis(41)) <= Duration::from_millis(2), "{round_trip:?}");
    assert_eq!(estimate.loss_permille, Some(0));
    assert!(!estimate.is_limit, "half of the rate is used, and that is no limit");
    let rate = pair.near.measured_rate().unwrap().bits_per_second();
    assert!(rate.abs_diff(4_000_000) < 400_000, "{rate}");
}

#[test]
fn a_queue_tells_what_the_path_carries() {
    let mut pair = Pair::new(20);
    pair.rate = 7_000_000;
    pair.run(3_000, Some(1));
    let estimate = pair.near.estimate();
    let rate = estimate.rate.unwrap().bits_per_second();
    assert!(estimate.is_limit && rate.abs_diff(7_000_000) < 350_000, "{estimate:?}");
    assert!(pair.near.is_full(pair.now), "{:?} {estimate:?}", pair.near.backlog(pair.now));
    // The prediction is what there is: 3 s of an eighth too much.
    let backlog = pair.near.backlog(pair.now);
    let queue = pair.free_at - pair.now;
    assert!(backlog.abs_diff(queue) < queue / 4, "{backlog:?} of {queue:?}");
}

#[test]
fn a_queue_tells_what_a_path_carries_that_delivers_little_between_two_reports() {
    let mut pair = Pair::new(20);
    // 5 kB in 100 ms, which is too little to tell a rate from.
    pair.rate = 400_000;
    pair.run(10_000, Some(18));
    let estimate = pair.near.estimate();
    let rate = estimate.rate.unwrap().bits_per_second();
    assert!(estimate.is_limit && rate.abs_diff(400_000) < 20_000, "{estimate:?}");
    assert!(pair.near.is_pressed(pair.now), "{:?} {estimate:?}", pair.near.backlog(pair.now));
}

#[test]
fn a_path_that_is_used_now_and_then_is_not_taken_for_one_that_carries_little() {
    let mut pair = Pair::new(20);
    pair.run(10_000, Some(200));
    assert_eq!(pair.near.measured_rate(), None);
}

#[test]
fn transits_of_two_paths_can_be_compared() {
    let (mut quick, mut slow) = (Pair::new(20), Pair::new(70));
    // The way back is the longer one on the quick path: half of the round trip would not tell.
    quick.delays[1] = Duration::from_millis(300);
    for pair in [&mut quick, &mut slow] {
        pair.run(3_000, Some(10));
    }
    let apart = slow.near.estimate().transit.unwrap() - quick.near.estimate().transit.unwrap();
    assert_eq!(apart, 50_000);
}

#[test]
fn a_path_that_stops_answering_is_out_within_three_intervals_and_below_a_second() {
    for (delay, at_most) in [(10, 330), (100, 360), (300, 960)] {
        for direction in [0, 1] {
            let mut pair = Pair::new(delay);
            pair.run(5_000, Some(5));
            assert_eq!((pair.near.state(), &pair.changes[..]), (PathState::Alive, &[][..]), "{delay}");
            pair.works[direction] = false;
            pair.run(3_000, Some(5));
            let [(at, PathChange::Out)] = pair.changes[..] else { panic!("{:?}", pair.changes) };
            // What was on its way still comes, for a round trip at most if it is the way out that ends.
            let on_its_way = if direction == 0 { 2 * delay } else { delay };
            assert!(at - 5_000 <= on_its_way + at_most, "{delay}, {direction}: {}", at - 5_000);
        }
    }
}

#[test]
fn an_idle_path_is_probed_rarely_and_found_out_soon_once_it_is_used() {
    let mut pair = Pair::new(20);
    pair.run(60_000, None);
    let probes = pair.near.quality().probes_sent;
    assert!(probes <= 20, "{probes}");
    assert_eq!(pair.near.state(), PathState::Alive);
    pair.works = [false; 2];
    pair.run(1_000, Some(5));
    assert!(matches!(pair.changes[..], [(_, PathChange::Out)]), "{:?}", pair.changes);
}

#[test]
fn a_path_that_returns_is_tried_gently() {
    let mut pair = Pair::new(20);
    pair.rate = 80_000_000;
    pair.run(5_000, Some(1));
    assert!(pair.near.trial.is_none() || pair.near.allows(10_000));
    pair.works = [false; 2];
    pair.run(2_000, Some(1));
    pair.works = [true; 2];
    // So long that not even the first answers have come.
    pair.run(40, None);
    assert_eq!(pair.changes.len(), 1);
    pair.run(1_000, None);
    let [_, (at, PathChange::Back)] = pair.changes[..] else { panic!("{:?}", pair.changes) };
    assert!((7_040..7_600).contains(&at), "three answers in a row came first: {at}");
    assert!(pair.near.allows(FIRST_ALLOWANCE as u32) && !pair.near.allows(FIRST_ALLOWANCE as u32 + 1));
    assert_eq!(pair.near.in_flight(), 0, "what was lost with it is in flight no more");
    // A packet of 1000 bytes each millisecond is 40 kB in flight.
    pair.run(5_000, Some(1));
    let allowance = pair.near.trial.map(|trial| trial.allowance);
    assert!(allowance.is_none_or(|allowance| allowance > 40_000), "{allowance:?}");
}

#[test]
fn losses_of_a_tenth_and_jitter_do_not_look_like_silence() {
    let mut pair = Pair::new(20);
    let mut random = careof_base::RandomStream::new(1, 0, "path");
    for _ in 0..120 {
        for _ in 0..100 {
            pair.works = [random.below(10) > 0, random.below(10) > 0];
            pair.delays = [0, 1].map(|_| Duration::from_millis(10 + random.below(40)));
            pair.run(10, Some(5));
        }
    }
    assert_eq!(pair.changes, []);
    let loss = pair.near.estimate().loss_permille.unwrap();
    assert!((50..200).contains(&loss), "{loss}");
}

#[test]
fn losses_of_a_flow_of_few_packets_are_told_from_several_reports() {
    let mut pair = Pair::new(20);
    let mut random = careof_base::RandomStream::new(3, 0, "path");
    // A packet in 20 ms: never twenty of them between two reports.
    for _ in 0..2_000 {
        pair.works[0] = random.below(20) > 0;
        pair.run(20, Some(20));
    }
    let loss = pair.near.estimate().loss_permille.unwrap();
    assert!((10..200).contains(&loss), "{loss}");
    let loss = pair.near.losses().permille();
    assert!((25..100).contains(&loss), "{loss}");
}

#[test]
fn losses_are_twice_others_only_beyond_chance() {
    let losses = |sent, lost| {
        let mut losses = Losses::default();
        losses.add(sent, sent - lost);
        losses
    };
    assert!(losses(2000, 20).are_twice(losses(2000, 0)));
    assert!(!losses(100, 2).are_twice(losses(2000, 0)), "two of a hundred are chance");
    assert!(!losses(2000, 20).are_twice(losses(2000, 10)));
    assert!(!losses(2000, 20).are_twice(Losses::default()), "nothing is known of the other");
    assert_eq!((losses(2000, 2).permille(), losses(1000, 20).permille()), (0, 20));
}

#[test]
fn garbage_from_the_other_end_neither_panics_nor_moves_the_clock() {
    let mut random = careof_base::RandomStream::new(2, 0, "garbage");
    let mut path = Path::new(Instant::ZERO, PathId::new(1).unwrap(), PathConfig::default());
    for n in 0..20_000_u64 {
        let now = Instant::from_micros(n * random.below(2_000));
        let now = now.max(Instant::from_millis(n));
        let mut word = || random.next_u64() as u32;
        let echo = PathEcho { sent_at: word(), held: word(), transit: word(), variation: word() };
        let feedback = PathFeedback {
            path: 1,
            answer: word() % 2 == 0,
            sent_at: word(),
            sent_at_high: 0,
            echo: (word() % 4 > 0).then_some(echo),
            highest: (word() % 4 > 0).then(&mut word),
            packets: word(),
            bytes: u64::from(word()) << (word() % 32),
            late: word(),
            sender: 1,
            receiver: 2,
        };
        path.note_sent(now, word() % 65_536);
        path.handle_feedback(now, &feedback);
        path.note_received(now, word(), word(), word());
        path.handle_timeout(now);
        path.poll_feedback(now, 0);
        assert!(path.in_flight() <= path.sent().1);
        let _ = (path.estimate(), path.backlog(now), path.next_timeout(now), path.is_full(now));
    }
}

#[test]
fn a_path_on_which_a_queue_grows_that_holds_up_the_answers_is_not_out() {
    for growth in [0, 1, 3] {
        let mut pair = Pair::new(200);
        pair.run(5_000, Some(5));
        let mut data = VecDeque::new();
        for sequence in 0..2_000 {
            // A millisecond of sending takes `1 + growth` to come: as when a source doubles its rate on a path that is full.
            pair.delays[1] += Duration::from_millis(growth);
            data.push_back((pair.now + pair.delays[1], micros(pair.now + APART), sequence));
            pair.run(1, Some(5));
            while let Some(&(_, sent_at, sequence)) = data.front().filter(|packet| packet.0 <= pair.now) {
                data.pop_front();
                pair.near.note_received(pair.now, sent_at, sequence, 1000);
            }
        }
        assert_eq!(pair.changes, [], "{growth}");
    }
}

#[test]
fn what_is_repeated_on_the_way_counts_once() {
    let id = PathId::new(0).unwrap();
    let mut path = Path::new(Instant::ZERO, id, PathConfig::default());
    for number in 0..100_u32 {
        for _ in 0..3 {
            path.note_received(Instant::from_millis(number.into()), number * 1000, number, 1000);
        }
    }
    assert_eq!(path.received(), (100, 100_000));
}
