//! How good the path through an interface is, and whether another one is clearly better.
//!
//! A path is *bad* when, in [`LASTING`] spans of traffic in a row, one of these held:
//!
//! - **Loss**: at least [`BAD_LOSS`] of the packets did not arrive.
//! - **Delay**: even the least round trip was [`DELAY_FACTOR`] times what it usually is there.
//!
//! What passes must not explain it. It does where a queue stands and more than little is in flight, unless the path delivers far less
//! than it is known to carry: flows that fill the queue of a path that delivers what it always did are no fault of the path.
//!
//! Another path is *clearly better* when it is known to carry twice what the bad one delivers, and when enough probes in a row
//! came through it. How many is a matter of loss and delay together: a TCP flow with segments of MSS gets about
//! 1.22 MSS / (R sqrt(p)) at loss p and round trip R (Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance
//! Algorithm, 1997), so the figure of merit is 1 / (R² p), and it has to be [`MERIT_FACTOR`]² times as good. n round trips
//! without loss make 1 / 2n the loss that one way may have; see [`probes_needed`].
//!
//! Order is the owner's policy: a path that always was slow is no bad one. What is bad is loss, and what has become worse.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::least::Least;
use crate::path_monitor::{Answer, Mark};
use crate::path_watch::PathAddress;
use crate::{PathFault, PathProperties};

/// Packets lost, of a thousand, by which a path is bad.
const BAD_LOSS: u16 = 50;
/// The same where only a metered path is left: TCP hardly moves there.
const BAD_LOSS_FOR_METERED: u16 = 200;
/// How many times as much a clearly better path would let a TCP flow have, and is known to carry.
pub(crate) const MERIT_FACTOR: u64 = 2;
/// A path's round trip is bad from so many times the usual one on,
const DELAY_FACTOR: u32 = 4;
/// and by so much, at least.
const DELAY_MARGIN: Duration = Duration::from_millis(100);
/// A path that was left is good again when its round trip is at most so many times what it was,
const GOOD_DELAY_FACTOR: u32 = 2;
/// or longer by so much.
const GOOD_DELAY_MARGIN: Duration = Duration::from_millis(50);
/// Spans in a row that make a path bad.
const LASTING: u32 = 3;
/// They also have to have lost so many packets, where it is loss: three spans of 100 packets at a loss of 2 % are all above
/// 5 % by chance once in 7,600 times, but 25 of 300 are lost once in 10^8.
const LASTING_LOST: u32 = 25;
/// How long a span is at least, and how many packets it has;
const SPAN: (Duration, u32) = (Duration::from_secs(5), 100);
/// the same where little passes.
const THIN_SPAN: (Duration, u32) = (Duration::from_secs(30), 20);
/// One that is longer tells nothing.
const LONGEST_SPAN: Duration = Duration::from_secs(70);
/// Bytes in flight that make no queue to speak of: four full packets.
const LITTLE_IN_FLIGHT: u64 = 6000;
/// The part of what a path is known to carry that counts as far less.
const FAR_LESS: u64 = 4;
/// Differences of round trips below this are no matter of merit.
const SHORT: Duration = Duration::from_millis(20);
/// Probes in a row that have to come through, at least, and at most: a path that would need more is not clearly better.
const FEWEST_PROBES: u32 = 8;
const MOST_PROBES: u32 = 120;
/// Those for a path that was left to be good again: one that loses [`BAD_LOSS`] each way passes with probability 0.017.
const PROBES_TO_RETURN: u32 = 40;

/// How long a path that was left as bad is not come back to, the first time; then each time twice as long, up to the longest.
const FIRST_AVOIDANCE: Duration = Duration::from_secs(60);
const LONGEST_AVOIDANCE: Duration = Duration::from_secs(3600);
/// After so long without being left again it is forgotten.
const FORGIVEN: Duration = Duration::from_secs(7200);

impl PathFault {
    const fn is_like(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Loss { .. }, Self::Loss { .. }) | (Self::Delay { .. }, Self::Delay { .. })
        )
    }

    /// The lesser of two of a kind.
    fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::Loss { permille: a }, Self::Loss { permille: b }) => Self::Loss { permille: a.min(b) },
            (Self::Delay { round_trip: a, usual }, Self::Delay { round_trip: b, .. }) => {
                Self::Delay { round_trip: a.min(b), usual }
            }
            _ => self,
        }
    }

    /// Whether it is bad enough to make a metered path worth its cost.
    pub(crate) const fn justifies_cost(self) -> bool {
        matches!(self, Self::Loss { permille } if permille >= BAD_LOSS_FOR_METERED)
    }
}

/// What passed in one direction during a span.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    put_in: u32,
    taken_out: u32,
    bytes: u64,
}

impl Way {
    fn lost(self) -> u32 {
        self.put_in.saturating_sub(self.taken_out)
    }

    fn loss_permille(self) -> u16 {
        let lost = u64::from(self.lost()) * 1000 / u64::from(self.put_in.max(1));
        u16::try_from(lost).unwrap_or(1000)
    }

    /// Bit/s.
    fn rate(self, span: Duration) -> u64 {
        let bits = u128::from(self.bytes) * 8 * 1_000_000_000 / span.as_nanos().max(1);
        u64::try_from(bits).unwrap_or(u64::MAX)
    }
}

/// Rates in bit/s: towards the mobile node, and from it.
pub(crate) type Rates = [u64; 2];

/// A span of traffic over a path in use, from one answered probe to another.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: Mark,
    last: Mark,
    least: Duration,
    sum: Duration,
    samples: u32,
}

impl Span {
    const fn new(first: Mark) -> Self {
        Self { first, last: first, least: Duration::MAX, sum: Duration::ZERO, samples: 0 }
    }

    fn add(&mut self, mark: Mark) {
        let round_trip = mark.answered_at.saturating_duration_since(mark.asked_at);
        self.last = mark;
        self.least = self.least.min(round_trip);
        self.sum += round_trip;
        self.samples += 1;
    }

    fn length(&self) -> Duration {
        self.last.answered_at.saturating_duration_since(self.first.answered_at)
    }

    /// Towards the mobile node, and from it.
    fn ways(&self) -> [Way; 2] {
        let (first, last) = (&self.first, &self.last);
        let down = Way {
            put_in: last.peer.packets_sent.wrapping_sub(first.peer.packets_sent),
            taken_out: last.own.packets_received.wrapping_sub(first.own.packets_received),
            bytes: last.own.bytes_received.wrapping_sub(first.own.bytes_received),
        };
        let up = Way {
            put_in: last.own.packets_sent.wrapping_sub(first.own.packets_sent),
            taken_out: last.peer.packets_received.wrapping_sub(first.peer.packets_received),
            bytes: last.peer.bytes_received.wrapping_sub(first.peer.bytes_received),
        };
        [down, up]
    }

    fn is_complete(&self) -> bool {
        let packets = self.ways().iter().map(|way| way.put_in).max().unwrap_or_default();
        [SPAN, THIN_SPAN].iter().any(|&(length, least)| self.length() >= length && packets >= least)
    }

    fn is_sound(&self) -> bool {
        // A counter that began anew leaps.
        let is_sound =
            |way: &Way| way.put_in < u32::MAX / 2 && way.taken_out < u32::MAX / 2 && way.bytes < u64::MAX / 2;
        self.ways().iter().all(is_sound) && self.length() <= LONGEST_SPAN
    }

    fn mean(&self) -> Duration {
        self.sum / self.samples.max(1)
    }
}

/// A span in which a path was bad.
#[derive(Clone, Copy, Debug)]
struct BadSpan {
    fault: PathFault,
    lost: u32,
    delivered: Rates,
    /// The least round trip.
    round_trip: Duration,
}

/// The spans in a row in which a path was bad in the same way.
#[derive(Clone, Copy, Debug)]
struct Streak {
    spans: u32,
    lost: u32,
    /// The latest, where each has its place.
    latest: [BadSpan; LASTING as usize],
}

impl Streak {
    /// The spans that were bad before, if they were in the same way, and this one.
    fn with(before: Option<Self>, span: BadSpan) -> Self {
        let before = before.filter(|before| before.latest.iter().all(|last| last.fault.is_like(span.fault)));
        let mut streak = before.unwrap_or(Self { spans: 0, lost: 0, latest: [span; LASTING as usize] });
        if let Some(place) = streak.latest.get_mut(streak.spans as usize % LASTING as usize) {
            *place = span;
        }
        streak.spans = streak.spans.saturating_add(1);
        streak.lost = streak.lost.saturating_add(span.lost);
        streak
    }
}

/// What a bad path is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) fault: PathFault,
    /// What it delivers at most.
    pub(crate) delivered: Rates,
    pub(crate) round_trip: Duration,
}

/// What a span has told of a path in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// What was delivered.
    pub(crate) delivered: Rates,
    /// Whether more was wanted: a queue stood, or much was lost.
    pub(crate) is_full: bool,
}

/// Probes that are sent to find out whether a path would do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Examination {
    asked: u32,
    /// Answered in a row.
    run: u32,
    least: Duration,
    last: Option<u32>,
}

impl Examination {
    const fn new() -> Self {
        Self { asked: 0, run: 0, least: Duration::MAX, last: None }
    }

    /// Probes in a row that came through.
    pub(crate) const fn run(&self) -> u32 {
        self.run
    }

    /// The least round trip of these.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        (self.run > 0).then_some(self.least)
    }
}

/// Why and until when a path is avoided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avoided {
    pub(crate) until: Instant,
    /// What its round trip was before.
    usual: Option<Duration>,
}

/// What is remembered of the path through an interface, as long as it begins with the same address.
#[derive(Clone, Debug)]
pub(crate) struct PathRecord<A> {
    of: Option<A>,
    usual: Least,
    recent: Least,
    span: Option<Span>,
    streak: Option<Streak>,
    /// The most that it has delivered during a span.
    peak: Option<(Rates, Instant)>,
    /// What it carries, whatever was said: it was full then.
    refuted: Option<(Rates, Instant)>,
    pub(crate) examination: Option<Examination>,
    /// Not to be examined again before then.
    pub(crate) examine_from: Instant,
    pub(crate) avoided: Option<Avoided>,
    /// Not to be left again as bad before then.
    pub(crate) kept_until: Instant,
    /// Times that it was left as bad, and when last.
    demerits: (u32, Instant),
}

/// How long a measured rate is believed.
const RATE_IS_KNOWN: Duration = Duration::from_secs(3600);

impl<A> Default for PathRecord<A> {
    fn default() -> Self {
        Self {
            of: None,
            usual: Least::default(),
            recent: Least::default(),
            span: None,
            streak: None,
            peak: None,
            refuted: None,
            examination: None,
            examine_from: Instant::ZERO,
            avoided: None,
            kept_until: Instant::ZERO,
            demerits: (0, Instant::ZERO),
        }
    }
}

impl<A: PathAddress> PathRecord<A> {
    /// The path begins with `care_of`.
    pub(crate) fn watch(&mut self, care_of: Option<A>) {
        match care_of {
            Some(_) if self.of != care_of => {
                // Who is left again and again is so with any address.
                *self = Self { of: care_of, demerits: self.demerits, ..Self::default() };
            }
            Some(_) => {}
            None => (self.span, self.streak, self.examination) = (None, None, None),
        }
    }

    /// The least round trip of the last 20 s to a minute, longer where it is hardly used.
    pub(crate) fn least_round_trip(&self) -> Option<Duration> {
        self.recent.get()
    }

    /// A probe was answered, while the path was in use or not; says what it tells of what passes, at the end of a span.
    pub(crate) fn answered(&mut self, answer: &Answer, in_use: bool, told: PathProperties) -> Option<Told> {
        let now = answer.at;
        self.recent.add(now, answer.round_trip, Duration::from_secs(20), 4);
        let usual = self.usual.get();
        self.usual.add(now, answer.round_trip, Duration::from_secs(3600), 8);
        if let Some(examination) = &mut self.examination {
            let follows = examination.last.is_none_or(|last| answer.sequence == last.wrapping_add(1));
            if !follows {
                (examination.run, examination.least) = (0, Duration::MAX);
            }
            examination.run = examination.run.saturating_add(1);
            examination.least = examination.least.min(answer.round_trip);
            examination.last = Some(answer.sequence);
        }
        if !in_use {
            (self.span, self.streak) = (None, None);
            return None;
        }
        let mark = answer.mark?;
        let span = self.span.get_or_insert(Span::new(mark));
        // What is overtaken tells nothing.
        if mark.asked_at <= span.last.asked_at {
            return None;
        }
        span.add(mark);
        let span = *span;
        if !span.is_sound() {
            (self.span, self.streak) = (Some(Span::new(mark)), None);
            return None;
        }
        if !span.is_complete() {
            return None;
        }
        self.span = Some(Span::new(mark));
        Some(self.judge(&span, usual.unwrap_or(span.least), told))
    }

    /// What a span of this length tells.
    fn judge(&mut self, span: &Span, usual: Duration, told: PathProperties) -> Told {
        let (ways, length, now) = (span.ways(), span.length(), span.last.answered_at);
        let delivered = ways.map(|way| way.rate(length));
        let known = self.carries(now, told);
        // A direction that carries acknowledgements hardly minds losses.
        let bytes = ways.iter().fold(0, |sum: u64, way| sum.saturating_add(way.bytes));
        let main = ways.iter().filter(|way| way.put_in >= THIN_SPAN.1 && way.bytes >= bytes / 4);
        let worst = main.copied().max_by_key(|way| way.loss_permille());
        let lossy = worst.filter(|way| way.loss_permille() >= BAD_LOSS);
        let in_flight = u128::from(bytes) * span.mean().as_nanos() / length.as_nanos().max(1);
        let is_light = in_flight <= u128::from(LITTLE_IN_FLIGHT);
        let is_far_less = |(rate, known): (&u64, &Option<u64>)| {
            known.is_some_and(|known| rate.saturating_mul(FAR_LESS) <= known)
        };
        let busier = usize::from(delivered[1] > delivered[0]);
        let falls_short = is_far_less((&delivered[busier], &known[busier]));
        let is_slow = span.least >= (usual * DELAY_FACTOR).max(usual + DELAY_MARGIN);
        let queue_stands = span.mean() >= usual * 2 && span.mean() >= usual + GOOD_DELAY_MARGIN;
        let is_explained = queue_stands && !is_light && !falls_short;
        let fault = match lossy {
            _ if is_explained => None,
            Some(way) => Some(PathFault::Loss { permille: way.loss_permille() }),
            None => is_slow.then_some(PathFault::Delay { round_trip: span.least, usual }),
        };
        self.streak = fault.map(|fault| {
            let lost = lossy.map_or(0, Way::lost);
            Streak::with(self.streak, BadSpan { fault, lost, delivered, round_trip: span.least })
        });
        let most = |before: Rates| [before[0].max(delivered[0]), before[1].max(delivered[1])];
        let believed = self.peak.filter(|(_, at)| now < *at + RATE_IS_KNOWN);
        self.peak = match believed {
            Some((before, at)) if most(before) == before => Some((before, at)),
            Some((before, _)) => Some((most(before), now)),
            None => Some((delivered, now)),
        };
        let proves_more = |(refuted, _): &(Rates, Instant)| (0..2).any(|way| delivered[way] > refuted[way]);
        self.refuted = self.refuted.filter(|refuted| !proves_more(refuted));
        Told { delivered, is_full: lossy.is_some() || queue_stands }
    }

    /// What the path is known to carry, in bit/s: as told, or as it has delivered of late.
    pub(crate) fn carries(&self, now: Instant, told: PathProperties) -> [Option<u64>; 2] {
        let told = [told.downlink, told.uplink].map(|rate| rate.map(DataRate::bits_per_second));
        let fresh = |(rates, at): (Rates, Instant)| (now < at + RATE_IS_KNOWN).then_some(rates);
        let peak = self.peak.and_then(fresh);
        if let Some(refuted) = self.refuted.and_then(fresh) {
            return refuted.map(Some);
        }
        [0, 1].map(|way| told[way].max(peak.map(|peak| peak[way])))
    }

    /// The path was full when it delivered this: it carries no more.
    pub(crate) fn refute(&mut self, now: Instant, delivered: Rates) {
        self.refuted = Some((delivered, now));
    }

    /// What is wrong with the path in use, if that has lasted: by the best of the latest spans.
    pub(crate) fn bad(&self) -> Option<Bad> {
        let streak = self.streak.filter(|streak| streak.spans >= LASTING)?;
        let best = streak.latest.into_iter().reduce(|a, b| BadSpan {
            fault: a.fault.min(b.fault),
            lost: 0,
            delivered: [0, 1].map(|way| a.delivered[way].max(b.delivered[way])),
            round_trip: a.round_trip.min(b.round_trip),
        })?;
        let BadSpan { fault, delivered, round_trip, .. } = best;
        let is_loss = matches!(fault, PathFault::Loss { .. });
        (!is_loss || streak.lost >= LASTING_LOST).then_some(Bad { fault, delivered, round_trip })
    }

    /// A probe is sent for an examination.
    pub(crate) fn examine(&mut self) {
        let examination = self.examination.get_or_insert(Examination::new());
        examination.asked = examination.asked.saturating_add(1);
    }

    /// The path is left because it is bad; it is avoided for a while.
    pub(crate) fn leave(&mut self, now: Instant) {
        let (before, at) = self.demerits;
        let count = if before > 0 && now < at + FORGIVEN { before.saturating_add(1) } else { 1 };
        self.demerits = (count, now);
        self.avoided = Some(Avoided { until: now + avoidance(count), usual: self.usual.get() });
        (self.span, self.streak) = (None, None);
    }

    /// Leaving the path was a mistake: it is not left as bad for as long as it would have been avoided.
    pub(crate) fn keep(&mut self, now: Instant) {
        self.avoided = None;
        self.kept_until = now + avoidance(self.demerits.0.saturating_add(3));
        (self.span, self.streak) = (None, None);
    }

    /// Whether the path, avoided until now, is good again, as far as it was examined.
    pub(crate) fn is_good_again(&self) -> bool {
        let Some((examination, avoided)) = self.examination.zip(self.avoided) else { return false };
        let is_near = avoided.usual.is_none_or(|usual| {
            examination.least <= (usual * GOOD_DELAY_FACTOR).max(usual + GOOD_DELAY_MARGIN)
        });
        examination.run >= PROBES_TO_RETURN && is_near
    }

    /// Whether so many probes were sent that it would be known by now if it were.
    pub(crate) fn is_found_wanting(&self, needed: Option<u32>) -> bool {
        let needed = needed.unwrap_or(PROBES_TO_RETURN);
        self.examination.is_some_and(|examination| examination.asked >= needed.saturating_mul(2) + 4)
    }
}

/// How long a path that was left as bad for the `count`th time is avoided.
fn avoidance(count: u32) -> Duration {
    FIRST_AVOIDANCE.saturating_mul(1 << count.saturating_sub(1).min(16)).min(LONGEST_AVOIDANCE)
}

/// How many probes in a row have to come through a path with this `round_trip` for it to be clearly better than the bad one;
/// `None`: it cannot be.
///
/// After n of them 1 / 2n of what passes one way may be lost. Where the other one loses p at a round trip R, what a TCP flow
/// gets is [`MERIT_FACTOR`] times as much if (R² p) / (round_trip² / 2n) is its square.
pub(crate) fn probes_needed(bad: &Bad, round_trip: Duration) -> Option<u32> {
    match bad.fault {
        PathFault::Loss { permille } => {
            let micros = |time: Duration| time.max(SHORT).as_micros();
            let (there, here) = (micros(round_trip).pow(2), micros(bad.round_trip).pow(2));
            let factor = u128::from(MERIT_FACTOR).pow(2);
            let needed = (there * factor * 1000).div_ceil((here * u128::from(permille) * 2).max(1));
            let needed = u32::try_from(needed).ok().filter(|needed| *needed <= MOST_PROBES)?;
            Some(needed.max(FEWEST_PROBES))
        }
        PathFault::Delay { .. } => {
            let is_quick =
                round_trip * DELAY_FACTOR <= bad.round_trip && round_trip + DELAY_MARGIN <= bad.round_trip;
            is_quick.then_some(FEWEST_PROBES)
        }
    }
}

/// Whether a path that is known to carry this much is enough to move to from one that delivers what the bad one does. Of the
/// direction with less to carry, acknowledgements mostly, it is enough if nothing speaks against it.
pub(crate) fn carries_more(known: [Option<u64>; 2], bad: &Bad) -> bool {
    let busier = usize::from(bad.delivered[1] > bad.delivered[0]);
    let enough = known[busier].is_some_and(|rate| rate >= bad.delivered[busier].saturating_mul(MERIT_FACTOR));
    enough && known[1 - busier].is_none_or(|rate| rate >= bad.delivered[1 - busier])
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use careof_wire::PathCounts;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn lossy(permille: u16, round_trip: u64) -> Bad {
        let fault = PathFault::Loss { permille };
        Bad { fault, delivered: [1_000_000, 50_000], round_trip: ms(round_trip) }
    }

    /// A path in use over which packets of 1000 bytes come, 200 in 5 s, of which so many of a thousand are lost.
    struct Used {
        record: PathRecord<Ipv4Addr>,
        at: Instant,
        sequence: u32,
        own: PathCounts,
        peer: PathCounts,
    }

    impl Used {
        fn new() -> Self {
            let counts = PathCounts::default;
            Self {
                record: PathRecord::default(),
                at: Instant::ZERO,
                sequence: 0,
                own: counts(),
                peer: counts(),
            }
        }

        fn span(&mut self, lost: u32, round_trip: Duration) {
            for _ in 0..5 {
                self.at += ms(1000);
                self.sequence += 1;
                self.peer.packets_sent += 40;
                self.peer.bytes_sent += 40_000;
                let came = 40 - lost / 5;
                self.own.packets_received += came;
                self.own.bytes_received += u64::from(came) * 1000;
                let (own, peer) = (self.own, self.peer);
                let (asked_at, answered_at) = (self.at, self.at + round_trip);
                let mark = Some(Mark { asked_at, answered_at, own, peer });
                let answer = Answer { sequence: self.sequence, at: answered_at, round_trip, mark };
                self.record.answered(&answer, true, PathProperties::default());
            }
        }
    }

    #[test]
    fn how_many_probes_are_needed_follows_from_loss_and_round_trip_together() {
        // 1 / 2n of the loss is a quarter of the bad one's where the round trips are equal.
        assert_eq!(probes_needed(&lossy(100, 40), ms(40)), Some(20));
        assert_eq!(probes_needed(&lossy(50, 40), ms(40)), Some(40));
        assert_eq!(probes_needed(&lossy(100, 40), ms(80)), Some(80), "half of it by its round trip");
        assert_eq!(probes_needed(&lossy(100, 40), ms(400)), None, "no loss is small enough");
        assert_eq!(probes_needed(&lossy(500, 40), ms(10)), Some(FEWEST_PROBES));
        let slow = |round_trip, usual| {
            let fault = PathFault::Delay { round_trip: ms(round_trip), usual: ms(usual) };
            Bad { fault, delivered: [0, 0], round_trip: ms(round_trip) }
        };
        assert_eq!(probes_needed(&slow(400, 40), ms(60)), Some(FEWEST_PROBES));
        assert_eq!(probes_needed(&slow(400, 40), ms(150)), None, "not four times as quick");
    }

    #[test]
    fn a_path_that_is_not_known_to_carry_twice_as_much_is_not_moved_to() {
        let bad = lossy(100, 40);
        assert!(carries_more([Some(2_000_000), None], &bad));
        assert!(!carries_more([Some(1_900_000), None], &bad));
        assert!(!carries_more([None, Some(9_000_000)], &bad));
        assert!(!carries_more([Some(2_000_000), Some(40_000)], &bad), "its acknowledgements need their room");
    }

    #[test]
    fn loss_is_a_fault_when_it_lasts_and_over_when_it_ends() {
        let mut used = Used::new();
        used.span(0, ms(40));
        let mut spans = 0;
        while used.record.bad().is_none() {
            used.span(20, ms(40));
            spans += 1;
            assert!(spans < 10, "it lasts");
        }
        assert!(spans >= LASTING, "{spans}");
        let bad = used.record.bad().expect("bad");
        assert!(matches!(bad.fault, PathFault::Loss { permille: 90..=110 }), "{bad:?}");
        used.span(0, ms(40));
        used.span(0, ms(40));
        assert_eq!(used.record.bad(), None);
    }

    #[test]
    fn loss_before_a_queue_that_stands_is_no_fault_of_a_path_that_delivers_what_it_always_did() {
        let mut used = Used::new();
        for _ in 0..4 {
            used.span(0, ms(40));
        }
        for _ in 0..10 {
            used.span(20, ms(800));
            assert_eq!(used.record.bad(), None);
        }
    }

    #[test]
    fn a_path_is_avoided_for_twice_as_long_each_time_up_to_an_hour_and_forgiven_after_two() {
        let mut record = PathRecord::<Ipv4Addr>::default();
        let mut now = Instant::ZERO;
        let mut minutes = alloc::vec::Vec::new();
        for _ in 0..8 {
            record.leave(now);
            let until = record.avoided.expect("avoided").until;
            minutes.push((until - now).as_secs() / 60);
            now = until;
        }
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        now += FORGIVEN;
        record.leave(now);
        assert_eq!(record.avoided.map(|avoided| avoided.until), Some(now + FIRST_AVOIDANCE));
    }
}
