//! By which path a packet goes: the schedulers, each a function of what is known of the paths.
//!
//! | scheduler | rule | from |
//! |---|---|---|
//! | [`Scheduler::RoundTripRatio`] | at random, by the ratio of measured round trips | `D` of the paper, section 2.5 |
//! | [`Scheduler::DelayQueue`] | shortest time in a virtual transmission queue and on the way | `DQ` of the paper, section 2.5 |
//! | [`Scheduler::PerFlow`] | each flow by one path | section 2.4 of the paper, RFC 5648 |
//! | [`Scheduler::Duplicate`] | a copy by every path | section 2.4 of the paper |
//! | [`Scheduler::Weighted`] | deficit round robin by weight | Shreedhar and Varghese 1995 |
//! | [`Scheduler::Ecf`] | waits for the fastest path where that completes first | Lim et al., ECF, 2017 |
//! | [`Scheduler::Blest`] | leaves a slow path alone that would block the window | Ferlin et al., BLEST, 2016 |
//! | [`Scheduler::EarliestArrival`] | earliest predicted arrival, with measured rates | |
//! | [`Scheduler::Overflow`] | the cheapest path that is not full | RFC 8157 fills the primary link first |
//! | [`Scheduler::Auto`] | pins or splits each flow, by what it measures | [`super::auto`] |
//!
//! A tunnel has no send buffer: what ECF and BLEST call waiting for the fastest path is to queue before it. A tunnel has no
//! congestion window for each path either; in its place stands what the path carries in its least round trip and a quarter more.

use core::time::Duration;

use careof_base::{Instant, Randomness};

use super::path::Path;
use super::path_id::{MAX_PATHS, PathId, PathSet};
use super::virtual_queue::{LengthReading, VirtualQueue};

/// How "randomly according to the ratio of measured round trip delay" is read; the paper is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RatioReading {
    /// A path with half of the round trip gets twice as many packets: what makes sense of the measurement.
    #[default]
    Inverse,
    /// A path with twice the round trip gets twice as many packets: the words as they stand.
    Direct,
}

/// What `d`, "the estimated transmission delay time, which is predicted from a feedback message from the client", is; the paper's
/// implementation measures round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DelayReading {
    /// Half of the smoothed round trip: the way there, if both ways are alike.
    #[default]
    HalfRoundTrip,
    /// The smoothed round trip, as it is measured.
    RoundTrip,
    /// The least transit of late, which has no queue in it that the virtual queue counts as well.
    Transit,
}

/// Which path a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// `D`.
    RoundTripRatio(RatioReading),
    /// `DQ`, with the rates that are told of the paths ([`super::PathConfig::rate`]), as the paper has them, and measured ones where
    /// none is told.
    DelayQueue {
        /// What the delay is.
        delay: DelayReading,
        /// What the length of a queue is.
        length: LengthReading,
    },
    /// Each flow by one path; it is moved when that goes out, or is full while another one is not.
    PerFlow,
    /// A copy by every path; the first that comes counts.
    Duplicate,
    /// Deficit round robin by [`super::PathConfig::weight`], in bytes.
    Weighted,
    /// Earliest completion first.
    Ecf,
    /// Blocking estimation.
    Blest {
        /// What the other end's resequencer holds at most, bytes: it stands for the receive window of a connection.
        window: u64,
    },
    /// Earliest arrival.
    EarliestArrival,
    /// The cheapest path that is not full, by [`super::PathConfig::cost`].
    Overflow,
    /// Pins or splits each flow.
    #[default]
    Auto,
}

/// What schedulers remember between packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    queues: [VirtualQueue; MAX_PATHS],
    /// Bytes that a path may still send in its round.
    deficits: [u64; MAX_PATHS],
    /// Whose round it is.
    turn: u8,
}

/// The paths that a packet may take now.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'a> {
    pub(super) now: Instant,
    pub(super) len: u32,
    pub(super) paths: &'a [Option<Path>; MAX_PATHS],
    /// Never empty.
    pub(super) usable: PathSet,
    /// These, and those that are only tried and have enough in flight for that.
    pub(super) working: PathSet,
}

impl<'a> Candidates<'a> {
    pub(super) fn get(&self, path: PathId) -> Option<&'a Path> {
        self.paths.get(path.index()).and_then(Option::as_ref)
    }

    fn iter(&self) -> impl Iterator<Item = &'a Path> {
        let usable = self.usable;
        self.paths.iter().flatten().filter(move |path| usable.contains(path.id()))
    }

    /// These without some, as long as others are left.
    pub(super) fn narrowed(self, to: PathSet) -> Self {
        let usable = self.usable.and(to);
        if usable.is_empty() { self } else { Self { usable, ..self } }
    }

    /// How long the way over a path takes at least, nanoseconds from a start that is the same for all; `None` while unknown.
    fn way(&self, path: &Path, by_transit: bool) -> Option<i128> {
        let estimate = path.estimate();
        if by_transit {
            let variation = estimate.transit_variation.as_nanos() as i128;
            return estimate.transit.map(|transit| i128::from(transit) * 1_000 + variation);
        }
        estimate.least_round_trip.map(|least| (least / 2).as_nanos() as i128)
    }

    /// When the packet would arrive over `path`, nanoseconds from the same start for all paths: a queue, its own transmission and
    /// the way. A path whose way is not known is taken for as long as the longest.
    pub(super) fn arrival(&self, path: &Path) -> i128 {
        // Transits are told apart exactly, halves of round trips only if ways there and back are alike.
        let by_transit = self.iter().all(|path| path.estimate().transit.is_some());
        let longest = self.iter().filter_map(|path| self.way(path, by_transit)).max().unwrap_or_default();
        let way = self.way(path, by_transit).unwrap_or(longest);
        way + path.backlog(self.now).as_nanos() as i128 + path.service_time(self.len).as_nanos() as i128
    }

    /// The path by which the packet would arrive first.
    pub(super) fn earliest(&self) -> Option<PathId> {
        self.iter().min_by_key(|path| self.arrival(path)).map(Path::id)
    }

    /// The same of those that are not full.
    fn earliest_not_full(&self) -> Option<PathId> {
        let free = self.iter().filter(|path| !path.is_full(self.now));
        free.min_by_key(|path| self.arrival(path)).map(Path::id)
    }

    /// Bytes that stand for the congestion window of a path; all that its trial allows where its rate is not known.
    fn window(&self, path: &Path) -> u64 {
        let estimate = path.estimate();
        match (estimate.rate, estimate.least_round_trip) {
            (Some(rate), Some(least)) => {
                let carried = rate.bits_in(least) / 8;
                (carried + carried / 4).max(2 * u64::from(self.len)).max(1)
            }
            _ => u64::from(self.len).saturating_mul(2).max(1),
        }
    }

    fn has_room(&self, path: &Path) -> bool {
        path.in_flight() + u64::from(self.len) <= self.window(path)
    }

    fn round_trip(path: &Path) -> u128 {
        path.estimate().round_trip.map_or(u128::MAX >> 64, |round_trip| round_trip.as_nanos())
    }

    /// The path with the least smoothed round trip, and the one among the others that has room.
    fn fastest_and_next(&self) -> Option<(&'a Path, Option<&'a Path>)> {
        let fastest = self.iter().min_by_key(|path| (Self::round_trip(path), path.id()))?;
        let others = self.iter().filter(|path| path.id() != fastest.id() && self.has_room(path));
        Some((fastest, others.min_by_key(|path| (Self::round_trip(path), path.id()))))
    }
}

/// `D`: at random, by round trips. A path that was not measured yet counts as the mean of the others.
pub(super) fn round_trip_ratio(
    candidates: &Candidates<'_>,
    reading: RatioReading,
    random: &mut Randomness,
) -> Option<PathId> {
    /// Weights are parts of this, so that a ratio of round trips is kept to a millionth for all below an hour.
    const WHOLE: u64 = 1 << 52;
    let weight = |path: &Path| {
        let micros = u64::try_from(path.estimate().round_trip?.as_micros()).unwrap_or(u64::MAX).max(1);
        Some(match reading {
            RatioReading::Inverse => (WHOLE / micros).max(1),
            RatioReading::Direct => micros.min(WHOLE),
        })
    };
    let (sum, count) = candidates
        .iter()
        .filter_map(weight)
        .fold((0_u64, 0), |(sum, count), weight| (sum + weight, count + 1));
    let mean = sum.checked_div(count).unwrap_or(1).max(1);
    let weight = |path: &Path| weight(path).unwrap_or(mean);
    let all = candidates.iter().map(weight).sum();
    let mut drawn = random.below(all);
    let mut last = None;
    for path in candidates.iter() {
        last = Some(path.id());
        let Some(left) = drawn.checked_sub(weight(path)) else { return last };
        drawn = left;
    }
    last
}

/// `DQ`: the shortest of W + d.
pub(super) fn delay_queue(
    candidates: &Candidates<'_>,
    delay: DelayReading,
    length: LengthReading,
    memory: &mut Memory,
) -> Option<PathId> {
    let Candidates { now, len, .. } = *candidates;
    let mut best: Option<(i128, PathId, Duration)> = None;
    for path in candidates.iter() {
        let estimate = path.estimate();
        let rate = path.config().rate.or(estimate.rate);
        let Some(queue) = memory.queues.get_mut(path.id().index()) else { continue };
        let waiting = queue.waiting_time(now, len, rate, length);
        let way = match delay {
            DelayReading::HalfRoundTrip => estimate.round_trip.map(|way| (way / 2).as_nanos() as i128),
            DelayReading::RoundTrip => estimate.round_trip.map(|way| way.as_nanos() as i128),
            DelayReading::Transit => estimate.transit.map(|way| i128::from(way) * 1_000),
        };
        // Of a path without feedback the paper says nothing: its queue alone counts.
        let all = waiting.as_nanos() as i128 + way.unwrap_or_default();
        if best.is_none_or(|(least, ..)| all < least) {
            best = Some((all, path.id(), waiting));
        }
    }
    let (_, path, waiting) = best?;
    if let Some(queue) = memory.queues.get_mut(path.index()) {
        queue.push(now, waiting);
    }
    Some(path)
}

/// The path that a pinned flow stays on, or moves to; `moved_at` is when it last did. It moves when its path is out and, with
/// `when_full`, when that is full, to one that is not and carries at least half as much: as much as it shares with another flow.
pub(super) fn pinned(
    candidates: &Candidates<'_>,
    current: Option<PathId>,
    moved_at: Instant,
    when_full: bool,
) -> Option<PathId> {
    let stays =
        current.filter(|&path| candidates.usable.contains(path)).and_then(|path| candidates.get(path));
    let Some(path) = stays else {
        // Where what a flow begins with arrives first, not its first packet alone, which may be on the slowest path. A rate that is not
        // known would make a path look the quicker the more is sent.
        let is_known = candidates.iter().all(|path| path.estimate().rate.is_some());
        let len = if is_known { candidates.len.max(INITIAL_WINDOW) } else { candidates.len };
        let candidates = Candidates { len, ..*candidates };
        return candidates.earliest_not_full().or_else(|| candidates.earliest());
    };
    if !when_full || !path.is_full(candidates.now) {
        return Some(path.id());
    }
    // It has had the time to fill the path that it came to, and another one would be earlier by more than what a queue of one
    // round trip is.
    let round_trip = path.estimate().round_trip.unwrap_or_default();
    let has_settled = candidates.now >= moved_at + round_trip * 8;
    let free = candidates.earliest_not_full().and_then(|free| candidates.get(free)).filter(|_| has_settled);
    let is_better =
        |free: &&Path| candidates.arrival(free) + (round_trip.as_nanos() as i128) < candidates.arrival(path);
    Some(free.filter(is_better).map_or(path.id(), Path::id))
}

/// Bytes that a flow begins with (RFC 6928).
pub(super) const INITIAL_WINDOW: u32 = 10 * 1460;

/// Bytes that the heaviest path may send in its turn.
const QUANTUM: u64 = 1500;

/// Deficit round robin. A path without weight gets nothing unless all are.
pub(super) fn weighted(candidates: &Candidates<'_>, memory: &mut Memory) -> Option<PathId> {
    let weight = |path: &Path| u64::from(path.config().weight);
    let heaviest = candidates.iter().map(weight).max()?;
    if heaviest == 0 {
        return candidates.earliest();
    }
    // The heaviest path gets a full packet's worth with each turn, so that it can send after a few.
    let quantum = |path: &Path| (QUANTUM * weight(path)).div_ceil(heaviest);
    let turns = (u64::from(candidates.len) / QUANTUM + 2) * MAX_PATHS as u64;
    for _ in 0..=turns {
        let turn = PathId::new(memory.turn).filter(|&path| candidates.usable.contains(path));
        if let Some(path) = turn
            && let Some(deficit) = memory.deficits.get_mut(path.index())
            && let Some(left) = deficit.checked_sub(u64::from(candidates.len))
            && candidates.get(path).is_some_and(|path| path.config().weight > 0)
        {
            *deficit = left;
            return Some(path);
        }
        memory.turn = (memory.turn + 1) % MAX_PATHS as u8;
        if let Some(path) = PathId::new(memory.turn).filter(|&path| candidates.usable.contains(path))
            && let Some(known) = candidates.get(path)
            && let Some(deficit) = memory.deficits.get_mut(path.index())
        {
            // Less than the longest packet is left of the turns before.
            *deficit = deficit.saturating_add(quantum(known));
        }
    }
    candidates.earliest()
}

/// Earliest completion first. `waits` is the flow's memory of having waited, which gives the hysteresis β = 1/4.
pub(super) fn ecf(candidates: &Candidates<'_>, waits: &mut bool) -> Option<PathId> {
    let (fastest, next) = candidates.fastest_and_next()?;
    let Some(next) = next.filter(|_| !candidates.has_room(fastest)) else {
        return Some(fastest.id());
    };
    let variation = |path: &Path| path.estimate().variation.unwrap_or_default().as_nanos();
    let delta = variation(fastest).max(variation(next));
    let (srtt_f, srtt_s) = (Candidates::round_trip(fastest), Candidates::round_trip(next));
    let (window_f, window_s) = (candidates.window(fastest), candidates.window(next));
    // What waits to be sent is what is beyond the window.
    let unsent = (fastest.in_flight() + u64::from(candidates.len)).saturating_sub(window_f);
    let [x_f, x_s] = [window_f, window_s].map(|window| u128::from(unsent.max(window)));
    let [window_f, window_s] = [window_f, window_s].map(u128::from);
    let quarters = if *waits { 5 } else { 4 };
    let fastest_is_first = 4 * srtt_f * (x_f + window_f) < quarters * window_f * (srtt_s + delta);
    let next_is_late = srtt_s * x_s >= window_s * (2 * srtt_f + delta);
    *waits = fastest_is_first && next_is_late;
    Some(if *waits { fastest.id() } else { next.id() })
}

/// Blocking estimation, with λ = 1.2 and without its adaptation, for a tunnel does not see that its receiver was blocked.
pub(super) fn blest(candidates: &Candidates<'_>, window: u64) -> Option<PathId> {
    let (fastest, next) = candidates.fastest_and_next()?;
    let Some(next) = next.filter(|_| !candidates.has_room(fastest)) else {
        return Some(fastest.id());
    };
    // While one packet lingers on the slow path the fast one has so many round trips, and its window grows by a packet with each.
    let rounds = Candidates::round_trip(next).div_ceil(Candidates::round_trip(fastest).max(1));
    let rounds = rounds.min(1 << 20);
    let growth = u128::from(candidates.len) * rounds * rounds.saturating_sub(1) / 2;
    let carried = u128::from(candidates.window(fastest)) * rounds + growth;
    let left = u128::from(window.saturating_sub(next.in_flight()).saturating_sub(u64::from(candidates.len)));
    Some(if carried * 6 / 5 > left { fastest.id() } else { next.id() })
}

/// The cheapest that is not full; where all are, the earliest.
pub(super) fn overflow(candidates: &Candidates<'_>) -> Option<PathId> {
    let free = candidates.iter().filter(|path| !path.is_full(candidates.now));
    let cheapest = free.min_by_key(|path| (path.config().cost, candidates.arrival(path)));
    cheapest.map(Path::id).or_else(|| candidates.earliest())
}
