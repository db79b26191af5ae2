//! How much of what is released may be under way on a path, and at which pace it goes: found by what is acknowledged of it.
//!
//! The window is one of delay, as TCP Vegas has it (Brakmo, O'Malley, Peterson 1994): what stands in the path's queue is `out * (1 - base /
//! took)` for a packet that took `took` to be acknowledged, where one takes `base` without a queue. It is to be a few packets, so that
//! the path never idles, and no queue overflows however short it is.
//!
//! - *Nobody has said the rate:* the window opens with half of what the path that was left held, at least ten packets (RFC 6928), and as slow start does, until a queue stands (as HyStart
//!   has it, Ha and Rhee 2008) or something is lost.
//! - *Somebody has,* or the path is the one that was lost: it opens with what that holds.
//! - *A queue stands:* the window shrinks by what is too much in it, at once, and nothing changes for a round trip.
//! - *There is none for a whole round trip,* though something waited here all that time: the window grows by an eighth, of which
//!   nothing can be seen in the next round trip. If there is still none in the one after that, the window opens again as slow start does. So a rate that was told too low, or was lower once, is put right within a few round trips.
//! - *Something is lost:* nothing changes for a round trip but a window that opens, by a quarter. What arrives meanwhile is what the
//!   path carries, and that is the window then. Where losses have another reason, next to all arrives, and the window stays.
//! - Packets go at the window's rate, a quarter faster lest the pace be what limits, and twice as fast while the window opens.
//!
//! While nothing waits here it is the sender that limits, and nothing is learnt but how long packets take. A base that is too short
//! would starve the path: no round trip is shorter than what the path's registration took, samples count two in a row, and where a queue
//! seems to stand for long though hardly anything is under way, what packets take then is the base.
//!
//! **Delays that vary without a queue** (radio links retransmit) look like one for the packets that they hit. They are told apart by two things. The
//! variation between packets in a row, which a queue hardly has, is measured (the interarrival jitter of RFC 3550, section 6.4.1), and a packet tells of a
//! queue only if it takes longer than four times that explains (as RFC 6298 has it for timeouts). And after a round trip its fastest packet counts, for a
//! standing queue delays all of them (Nichols and Jacobson 2012, RFC 8289).
//!
//! **Others in the same queue** who fill it leave little to whoever keeps it short (as they do to Vegas: Mo, La, Anantharam, Walrand
//! 1999). Then the window gives way: what waits goes on to the link, and TCP has it out with them, as it would without a replay.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::keeping::Kept;

/// Packets that a window begins with at least where nobody has said the rate (RFC 6928).
const INITIAL: u64 = 10;
/// Packets that are always let out: two for a receiver that acknowledges every second one, while two are on their way.
const LEAST: u64 = 4;
/// Packets that may stand in the queue before the window shrinks, and an eighth of it: the shortest queues of routers hold about twice
/// as much.
const HIGH: u64 = 4;
/// A path that carries a fraction like this of what it has carried before, with a queue that is not ours, is taken by others.
const SQUEEZED: u64 = 4;
/// After so many round trips with a queue that the smallest window does not make the base is taken for too short.
const STUCK: u32 = 8;
/// Each packet changes the jitter by this part of the difference (RFC 3550 section 6.4.1).
const SMOOTHING: u32 = 16;
/// What takes longer by so many times the variation is late for another reason (RFC 6298 section 2: K).
const BEYOND: u32 = 4;
/// Packets that are to stand there, lest the path idle.
const LOW: u64 = 2;

/// What has arrived of the released packets since the last time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    /// When the latest of those was released of which it is clear that they have arrived just now.
    pub(crate) released: Option<Instant>,
}

impl Arrived {
    /// Another one has arrived. The acknowledgement that says so `tells` when, unless the packet has a younger timestamp than it
    /// echoes: then the packet had arrived before what it answers (RFC 7323 section 4.3), by the path that was left perhaps.
    pub(crate) fn add(
        so_far: &mut Option<Self>,
        kept: &Kept,
        left_is_lost: bool,
        (tells, echo): (bool, Option<u32>),
    ) {
        if !kept.sent().is_some_and(|sent| sent.by_us && !sent.left) {
            return;
        }
        let arrived = so_far.get_or_insert_default();
        arrived.bytes += u64::from(kept.size);
        let is_younger =
            kept.stamp.zip(echo).is_some_and(|(stamp, echo)| stamp.wrapping_sub(echo) as i32 > 0);
        if tells && !kept.is_behind && !is_younger {
            arrived.released = arrived.released.max(kept.clearly_released(left_is_lost).map(|sent| sent.at));
        }
    }
}

/// What is known when something arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Bytes that were under way until then.
    pub(super) out: u64,
    /// Something waits here.
    pub(super) waits: bool,
    /// Bytes of a packet.
    pub(super) packet: u64,
}

/// A round trip: from a packet's release to its arrival.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Instant,
    bytes: u64,
    /// Something waited here all the time.
    is_limited: bool,
    /// The window stays as it is.
    holds: bool,
    /// The window has grown at its begin, of which nothing can be seen yet.
    has_grown: bool,
    /// Something was lost, so the path had as much to do as it can.
    is_busy: bool,
    /// The least that a packet took.
    least: Option<Duration>,
}

impl Round {
    const fn from(since: Instant) -> Self {
        Self {
            since,
            bytes: 0,
            is_limited: true,
            holds: false,
            has_grown: false,
            is_busy: false,
            least: None,
        }
    }
}

/// The window of a path, and the pace.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWindow {
    /// What somebody has said, or another path had, bit/s; 0: nothing is known.
    guess: u64,
    /// The pace is still the guess.
    is_guess: bool,
    /// The guess is of this path.
    is_told: bool,
    /// Bytes of a packet.
    packet: u64,
    /// Bytes that may be under way.
    window: u64,
    /// It opens as slow start does.
    is_opening: bool,
    /// No round trip is shorter.
    floor: Duration,
    /// What one is expected to be, until it has been measured.
    expected: Duration,
    /// The shortest time that two packets in a row took to be acknowledged.
    sample: Option<Duration>,
    /// The time that the latest one took.
    took: Option<Duration>,
    /// By how much that differs from one packet to the next.
    jitter: Duration,
    round: Option<Round>,
    /// It has grown since a queue stood.
    is_too_small: bool,
    /// The most that has arrived in a round trip, bytes a second.
    fastest: u64,
    /// Round trips in a row with a queue though the window was as small as can be.
    at_least: u32,
    gives_way: bool,
}

impl PathWindow {
    pub(super) const fn new(floor: Duration) -> Self {
        Self {
            guess: 0,
            is_guess: true,
            is_told: false,
            packet: 0,
            window: 0,
            is_opening: true,
            floor,
            expected: Duration::ZERO,
            sample: None,
            took: None,
            jitter: Duration::ZERO,
            round: None,
            is_too_small: false,
            fastest: 0,
            at_least: 0,
            gives_way: false,
        }
    }

    /// A rate as somebody has said (`is_told`) or as it was before, unless the path has said something itself. A packet has
    /// `packet` bytes.
    pub(super) fn guess(&mut self, guess: u64, is_told: bool, expected: Duration, packet: u64) {
        self.expected = self.expected.max(expected);
        if self.is_guess {
            self.guess = guess;
            self.is_opening = !is_told;
            self.is_told = is_told;
            self.packet = self.packet.max(packet);
            self.follow_guess();
        }
    }

    /// The window is what the path holds as somebody has said, while nothing else is known.
    fn follow_guess(&mut self) {
        if self.is_guess {
            let holds = DataRate::from_bits_per_second(self.guess).bits_in(self.round_trip()) / 8;
            self.window =
                if self.is_told { holds + LOW * self.packet } else { (holds / 2).max(INITIAL * self.packet) };
        }
    }

    /// The time that a released packet takes to be acknowledged where no queue stands.
    pub(super) fn round_trip(&self) -> Duration {
        let first = self.took.unwrap_or_default().max(self.expected);
        self.sample.unwrap_or(first).max(self.floor)
    }

    pub(super) const fn is_measured(&self) -> bool {
        self.sample.is_some()
    }

    /// The queue is somebody else's, who leaves nothing to whoever keeps it short.
    pub(super) const fn gives_way(&self) -> bool {
        self.gives_way
    }

    /// The time that the latest packet took to be acknowledged.
    pub(super) const fn took(&self) -> Option<Duration> {
        self.took
    }

    /// Bytes that may be under way.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// The pace, if there is any.
    pub(super) fn pace(&self) -> Option<DataRate> {
        if self.is_guess {
            return (self.guess > 0).then(|| DataRate::from_bits_per_second(self.guess));
        }
        let (times, by) = if self.is_opening { (2, 1) } else { (5, 4) };
        let bits = u128::from(self.window) * 8 * times / by;
        let rate = bits * 1_000_000_000 / self.round_trip().as_nanos().max(1);
        Some(DataRate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX).max(1)))
    }

    /// What a packet may take without any queue.
    fn unqueued(&self) -> Duration {
        self.round_trip() + self.jitter
    }

    /// Bytes of `out` that stand in a queue if a packet takes so long, and would take `least` without one.
    fn queued(out: u64, took: Duration, least: Duration) -> u64 {
        let more = took.saturating_sub(least).as_nanos();
        let queued = u128::from(out) * more / took.as_nanos().max(1);
        u64::try_from(queued).unwrap_or(out)
    }

    /// Something that was released is lost: from now on it is measured what arrives.
    pub(super) fn lost(&mut self, now: Instant, packet: u64) {
        if !self.round.is_some_and(|round| round.holds) {
            let is_open = self.is_opening || self.is_guess;
            let window = if is_open { self.window - self.window / 4 } else { self.window };
            self.shrink(now, window, packet);
        }
        if let Some(round) = &mut self.round {
            round.is_busy = true;
        }
    }

    fn shrink(&mut self, now: Instant, to: u64, packet: u64) {
        self.window = to.min(self.window).max(LEAST * packet);
        self.is_guess = false;
        self.is_opening = false;
        self.is_too_small = false;
        self.round = Some(Round { holds: true, ..Round::from(now) });
    }

    /// Released packets have arrived.
    pub(super) fn arrived(&mut self, now: Instant, arrived: &Arrived, seen: &Seen) {
        let round = self.round.get_or_insert(Round::from(now));
        round.is_limited &= seen.waits;
        round.bytes += arrived.bytes;
        if self.is_opening && seen.waits && self.pace().is_some() {
            self.is_guess = false;
            self.window += arrived.bytes;
        }
        let Some(released) = arrived.released else { return };
        let took = now.saturating_duration_since(released);
        let before = self.took.replace(took);
        if let Some(before) = before {
            let differs = took.abs_diff(before);
            self.jitter = self.jitter + differs / SMOOTHING - self.jitter / SMOOTHING;
            let both = took.max(before);
            self.sample = Some(self.sample.map_or(both, |least| least.min(both)));
        }
        self.follow_guess();
        if self.pace().is_some() {
            // A receiver may have waited for another one before it acknowledged.
            self.judge(now, released, took.min(before.unwrap_or(took)), seen);
        }
    }

    /// In a round trip in which `bytes` arrived the path had a queue, or not, though the window has become as small as can be.
    fn compare(&mut self, bytes: u64, lasted: u128, took: Duration, packet: u64, has_queue: bool) {
        let rate = u64::try_from(u128::from(bytes) * 1_000_000_000 / lasted).unwrap_or(u64::MAX);
        self.fastest = self.fastest.max(rate);
        if self.window > LEAST * packet || !has_queue {
            self.at_least = 0;
            return;
        }
        self.at_least += 1;
        self.gives_way |= rate < self.fastest / SQUEEZED;
        if self.at_least >= STUCK {
            self.sample = Some(took);
            self.at_least = 0;
        }
    }

    /// Bytes that are to stand in the queue of a path that holds so much beside it.
    fn low(holds: u64, packet: u64) -> u64 {
        (LOW * packet).max(holds / 16)
    }

    /// Bytes that may stand there.
    fn most(holds: u64, packet: u64) -> u64 {
        (HIGH * packet).max(holds / 8)
    }

    /// A packet took so long.
    fn judge(
        &mut self,
        now: Instant,
        released: Instant,
        took: Duration,
        &Seen { out, waits, packet }: &Seen,
    ) {
        let Some(round) = &mut self.round else { return };
        let least = round.least.map_or(took, |least| least.min(took));
        round.least = Some(least);
        let round = *round;
        let certain = self.round_trip() + BEYOND * self.jitter;
        let queued = Self::queued(out, took, certain);
        if waits && queued > Self::most(out - queued, packet) && !round.holds {
            return self.shrink(now, out - queued + Self::low(out - queued, packet), packet);
        }
        if released < round.since {
            return;
        }
        let queued = Self::queued(out, least, self.unqueued());
        let holds = out - queued;
        let low = Self::low(holds, packet);
        if waits && queued > Self::most(holds, packet) && !round.holds {
            return self.shrink(now, holds + low, packet);
        }
        let lasted = now.saturating_duration_since(round.since).as_nanos().max(1);
        if round.is_limited {
            self.compare(round.bytes, lasted, least, packet, queued > low);
        }
        if round.is_limited && round.holds && (round.is_busy || queued > low) {
            let carries = u128::from(round.bytes) * self.unqueued().as_nanos() / lasted;
            let carries = u64::try_from(carries).unwrap_or(u64::MAX);
            if carries.saturating_add(low) < self.window {
                // What is under way still saw the queue of before.
                return self.shrink(now, carries.saturating_add(low), packet);
            }
        } else if round.is_limited && !self.is_opening && Self::queued(out, took, self.unqueued()) < low {
            if !round.has_grown {
                self.is_guess = false;
                self.is_opening = self.is_too_small;
                self.window += (self.window / 8).max(LOW * packet);
                self.is_too_small = true;
                self.round = Some(Round { has_grown: true, ..Round::from(now) });
                return;
            }
        } else {
            self.is_too_small = false;
        }
        self.round = Some(Round::from(now));
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use careof_base::RandomStream;

    use super::*;

    const PACKET: u64 = 1_500;

    /// A path with a drop-tail queue, on which something always waits to be sent.
    struct Path {
        /// bit/s
        rate: u64,
        round_trip: Duration,
        /// Packets.
        queue: u64,
        /// One of so many packets is lost; 0: none.
        lossy: u64,
        /// A packet takes up to so much longer, but none overtakes another.
        spread: Duration,
    }

    /// What came of it.
    #[derive(Debug)]
    struct Course {
        /// Share of the rate that was used from the first second on.
        used: f64,
        dropped: u32,
    }

    impl Path {
        fn of(rate: u64, ms: u64, queue: u64) -> Self {
            Self { rate, round_trip: Duration::from_millis(ms), queue, lossy: 0, spread: Duration::ZERO }
        }

        /// Ten seconds of a window that begins with the guess `told`, or one that another path had.
        fn run(&self, told: Option<u64>, measured: u64) -> Course {
            let mut window = PathWindow::new(Duration::ZERO);
            window.guess(told.unwrap_or(measured), told.is_some(), self.round_trip, PACKET);
            let packet = DataRate::from_bits_per_second(self.rate).time_for_bits(PACKET * 8).unwrap();
            let (mut now, mut next, mut free) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
            // Acknowledgements under way, and when what was lost is found to be.
            let mut acks: VecDeque<(Instant, Instant, bool)> = VecDeque::new();
            let (mut out, mut sent, mut used, mut dropped) = (0, 0_u64, 0, 0);
            let mut random = RandomStream::new(1, 0, "jitter");
            let mut latest = Instant::ZERO;
            let first = Instant::from_secs(1);
            while now < Instant::from_secs(11) {
                let may_send = out + PACKET <= window.window();
                let ack = acks.front().map(|(at, ..)| *at);
                now = match ack {
                    Some(at) if !may_send || at <= next => at,
                    _ => now.max(next),
                };
                if ack == Some(now) {
                    let Some((_, released, is_lost)) = acks.pop_front() else { break };
                    if is_lost {
                        out -= PACKET;
                        window.lost(now, PACKET);
                    } else {
                        let arrived = Arrived { bytes: PACKET, released: Some(released) };
                        window.arrived(now, &arrived, &Seen { out, waits: true, packet: PACKET });
                        out -= PACKET;
                        used += if now >= first { PACKET } else { 0 };
                    }
                    continue;
                }
                sent += 1;
                let waits = free.saturating_duration_since(now);
                let is_full = waits > packet * (self.queue as u32 + 1);
                let is_lost = is_full || (self.lossy > 0 && sent.is_multiple_of(self.lossy));
                dropped += u32::from(is_full);
                if !is_full {
                    free = free.max(now) + packet;
                }
                out += PACKET;
                let spread = u64::try_from(self.spread.as_nanos()).expect("a short one");
                let late = Duration::from_nanos(random.below(spread.max(1)));
                latest = latest.max(free.max(now) + self.round_trip + late);
                // Three packets later it is clear that one is lost.
                let heard = latest + if is_lost { 3 * packet } else { Duration::ZERO };
                let index = acks.partition_point(|(at, ..)| *at <= heard);
                acks.insert(index, (heard, now, is_lost));
                let pace = window.pace().and_then(|pace| pace.time_for_bits(PACKET * 8));
                next = now + pace.unwrap_or_default();
            }
            Course { used: used as f64 * 8.0 / 10.0 / self.rate as f64, dropped }
        }
    }

    #[test]
    fn a_path_is_used_and_its_queue_does_not_overflow_when_its_rate_is_told() {
        for (rate, ms, queue) in
            [(1_000_000, 300, 8), (200_000, 40, 8), (10_000_000, 100, 20), (3_000_000, 300, 20)]
        {
            let course = Path::of(rate, ms, queue).run(Some(rate), 0);
            assert!(course.used > 0.97 && course.dropped == 0, "{rate} bit/s, {ms} ms: {course:?}");
        }
    }

    #[test]
    fn a_rate_that_is_told_wrong_is_put_right() {
        for (rate, ms, queue) in [(1_000_000, 300, 20), (200_000, 40, 8), (10_000_000, 100, 50)] {
            for (times, least) in [(0.2, 0.85), (0.5, 0.9), (2.0, 0.95), (5.0, 0.9)] {
                let told = (rate as f64 * times) as u64;
                let course = Path::of(rate, ms, queue).run(Some(told), 0);
                assert!(course.used > least, "{times} times {rate} bit/s, {ms} ms: {course:?}");
            }
        }
    }

    #[test]
    fn an_unknown_path_is_found_whatever_the_one_before_was_like() {
        for (rate, ms, queue) in [(1_000_000, 300, 20), (200_000, 40, 8), (10_000_000, 100, 50)] {
            for before in [100_000, 1_000_000, 20_000_000] {
                let course = Path::of(rate, ms, queue).run(None, before);
                assert!(course.used > 0.85, "{before} before {rate} bit/s, {ms} ms: {course:?}");
            }
        }
    }

    #[test]
    fn losses_that_no_queue_makes_do_not_shrink_the_window() {
        let path = Path { lossy: 50, ..Path::of(2_000_000, 100, 50) };
        let course = path.run(Some(2_000_000), 0);
        assert!(course.used > 0.93, "{course:?}");
    }

    #[test]
    fn delays_that_vary_do_not_shrink_the_window() {
        for (rate, ms, spread) in [(3_000_000, 125, 32), (1_000_000, 600, 120), (10_000_000, 40, 15)] {
            for told in [Some(rate), None] {
                let path = Path { spread: Duration::from_millis(spread), ..Path::of(rate, ms, 50) };
                let course = path.run(told, 500_000);
                assert!(course.used > 0.75, "{told:?}, {rate} bit/s, {ms} ms and up to {spread}: {course:?}");
            }
        }
    }

    #[test]
    fn a_base_that_is_too_short_does_not_starve_the_path() {
        let mut window = PathWindow::new(Duration::ZERO);
        window.guess(1_000_000, true, Duration::from_millis(100), PACKET);
        let arrived = |released| Arrived { bytes: 2 * PACKET, released: Some(released) };
        let seen = |window: &PathWindow| Seen { out: window.window(), waits: true, packet: PACKET };
        // Two acknowledgements told of what the receiver had before.
        for _ in 0..2 {
            window.arrived(Instant::from_millis(101), &arrived(Instant::from_millis(100)), &seen(&window));
        }
        for round in 1..100 {
            let now = Instant::from_millis(101 + 100 * round);
            window.arrived(now, &arrived(now.saturating_sub(Duration::from_millis(100))), &seen(&window));
        }
        assert!(window.round_trip() >= Duration::from_millis(100), "{window:?}");
        assert!(window.window() > 10 * PACKET, "{window:?}");
    }

    #[test]
    fn a_window_that_others_leave_nothing_gives_way() {
        let mut window = PathWindow::new(Duration::ZERO);
        window.guess(10_000_000, true, Duration::from_millis(50), PACKET);
        let mut now = Instant::ZERO;
        for (took, rounds) in [(50, 20), (500, 20)] {
            for _ in 0..rounds {
                now += Duration::from_millis(took);
                let out = window.window();
                let released = Some(now.saturating_sub(Duration::from_millis(took)));
                window.arrived(
                    now,
                    &Arrived { bytes: out, released },
                    &Seen { out, waits: true, packet: PACKET },
                );
            }
            assert_eq!(window.gives_way(), took == 500, "{window:?}");
        }
    }
}
