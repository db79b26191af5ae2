//! A flow that wants more than its path gives is moved to another one for a trial, and stays there or is taken back.
//!
//! One flow at a time is *watched*: what it gets is measured round trip by round trip ([`super::pace`]). When it wants more, the path is
//! taken that promises most, if that is a quarter more than it has:
//!
//! | path | promises |
//! |---|---|
//! | that the flow was on in the last minute | what it had there |
//! | that was full, or whose rate is told and is not about that told of the flow's own | that rate |
//! | by which packets would arrive earlier, while the flow's own is full | twice what the flow has, as nobody knows: so fast does a source in slow start grow |
//! | of which no loss is known, or that loses far less, while the flow is held back by losses | the same |
//! | that loses far more, and that the flow was not on | nothing: most sources would be slowed down at once, and for long |
//!
//! What nobody knows is found out first where that takes half as long at most, by the round trips: a source that was taken far away grows
//! slowly there.
//!
//! **A path that is known to carry [`EVEN_RATES`] times as much** is tried at once, and the trial may cost what is to be gained if the flow,
//! which has lasted for a while, lasts as long again: a source may need many round trips to find what a path carries (BBR believes the
//! shorter round trip of its former path for ten seconds, CUBIC comes with a small window).
//!
//! **Any other path** has to have carried three quarters of what the flow has; where it has not, copies go there for
//! [`ROUNDS_OF_COPIES`] of its round trips, which costs the flow nothing. The trial may cost a 33rd of what the flow has had since it began: so
//! much is lost at most where the promise was empty.
//!
//! **The trial** is a failure when it has cost so much, or when three rounds bring less than three quarters of what the flow had and the path
//! is full. After [`ROUNDS`] round trips and a second at least the flow stays if it has as much as before, and goes back if the path is full,
//! or if it does not grow any more where nothing is known to be gained. After a failure the path is left alone for 33 times as
//! long as what was lacked until the flow had recovered would take, and for twice as long with each one more: trials after the first take
//! 3 % at most.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use super::alike::EVEN_RATES;
use super::copies::with_room;
use super::pace::{Pace, ROUNDS};
use super::want::{RESTED, Want};
use super::{FIRST_PAUSE, ROUNDS_OF_COPIES, ROUNDS_TO_ABORT, SHORTEST_MEASUREMENT, pause};
use crate::multipath::flow_table::Flow;
use crate::multipath::path::{FIRST_TIMEOUT, Path, REPORT_SPAN};
use crate::multipath::path_id::{MAX_PATHS, PathId};
use crate::multipath::scheduler::Candidates;

/// Bytes of a packet that is full, whatever its path: every host takes as long a one (RFC 1122 section 3.3.3).
const LEAST_FULL_SIZE: u32 = 576;
/// One part in so many of the time may be spent on trials that fail.
const SHARE: u32 = 33;

/// What is known of a path as a place for flows.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    retry_at: Instant,
    failures: u32,
}

impl Place {
    fn fail(&mut self, now: Instant, least: Duration) {
        self.retry_at = now + pause(least, self.failures);
        self.failures = self.failures.saturating_add(1);
    }
}

/// Copies show what a path is like.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: PathId,
    since: Instant,
}

/// A flow is on another path for a trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: PathId,
    to: PathId,
    since: Instant,
    /// What it had before, bit/s.
    had: u64,
    /// What it has lacked of that, and what it may lack, bits.
    lacked: i128,
    budget: i128,
    /// Rounds in a row that were far below what it had.
    low: u32,
    rounds: u32,
    /// The path is known to carry far more: a source may take long to find that.
    is_patient: bool,
}

/// It is back, and recovers.
#[derive(Clone, Copy, Debug)]
struct Return {
    trial: Trial,
    since: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Rests,
    Looks(Look),
    Tried(Trial),
    Returns(Return),
}

/// The flow that is watched.
#[derive(Clone, Copy, Debug)]
struct Watched {
    key: u64,
    path: PathId,
    /// When it had its latest packet.
    last: Instant,
    pace: Pace,
    stage: Stage,
    /// Its path carries what it can, though no queue stands before it.
    fills: bool,
    /// It wants more, for that or another reason.
    wants: bool,
    /// A round is over since paths were last chosen from.
    is_due: bool,
    /// There is none to try it on: others may be watched.
    is_settled: bool,
    /// What it had on each path when it was last taken from there, bit/s, and until when that is fresh.
    had_there: [Option<(u64, Instant)>; MAX_PATHS],
}

/// Where a packet goes, and where a copy shows what another path is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    pub(super) path: PathId,
    pub(super) look: Option<PathId>,
}

/// The moves of one tunnel.
#[derive(Clone, Debug, Default)]
pub(super) struct TriedMoves {
    watched: Option<Watched>,
    places: [Place; MAX_PATHS],
}

impl TriedMoves {
    /// A packet of `flow`, which is pinned to `path`, is to be sent. Unless `may_begin`, only a path that is known to be far quicker is
    /// tried.
    pub(super) fn choose(
        &mut self,
        candidates: &Candidates<'_>,
        flow: &Flow,
        path: PathId,
        want: Option<Want>,
        may_begin: bool,
    ) -> Course {
        let stays = Course { path, look: None };
        let now = candidates.now;
        let watched = match self.watched.take() {
            // After a pause it is another matter what it gets.
            Some(watched) if watched.key == flow.key() && !watched.has_rested(now) => Some(watched),
            Some(watched)
                if watched.key != flow.key()
                    && (!watched.is_left(now, want) || candidates.len < LEAST_FULL_SIZE) =>
            {
                self.watched = Some(watched);
                return stays;
            }
            _ => None,
        };
        // A source that has more to send fills its packets.
        let is_full_size = candidates.len >= LEAST_FULL_SIZE;
        if watched.is_none() && !is_full_size {
            return stays;
        }
        let mut watched = watched.unwrap_or_else(|| Watched::new(now, flow.key(), path));
        watched.last = now;
        let ordered = match watched.stage {
            Stage::Tried(trial) => Some(trial.to),
            Stage::Returns(back) => Some(back.trial.from),
            _ => None,
        };
        let path = match ordered {
            Some(to) if candidates.working.contains(to) => to,
            Some(_) => {
                watched.stage = Stage::Rests;
                path
            }
            None => path,
        };
        if watched.path != path {
            if matches!(watched.stage, Stage::Looks(_)) {
                watched.stage = Stage::Rests;
            }
            (watched.path, watched.pace, watched.fills) = (path, Pace::default(), false);
        }
        // Without a queue nothing shows that the flow has more to send: only a far quicker path is worth it then.
        let may_begin = may_begin && want.is_some();
        let want = want.or_else(|| watched.fills.then_some(Want::Full));
        watched.wants = want.is_some();
        let course = match is_full_size {
            true => self.decide(candidates, flow, &mut watched, want, may_begin),
            false => Course { path, look: None },
        };
        watched.pace.note_sent(candidates.len);
        self.watched = Some(watched);
        course
    }

    fn decide(
        &mut self,
        candidates: &Candidates<'_>,
        flow: &Flow,
        watched: &mut Watched,
        want: Option<Want>,
        may_begin: bool,
    ) -> Course {
        let (now, path) = (candidates.now, watched.path);
        let stays = Course { path, look: None };
        let Some(want) = want else {
            if matches!(watched.stage, Stage::Looks(_)) {
                watched.stage = Stage::Rests;
            }
            watched.is_settled |= watched.pace.count() >= ROUNDS;
            return stays;
        };
        match watched.stage {
            Stage::Rests => {
                if !core::mem::take(&mut watched.is_due) {
                    return stays;
                }
                let own = candidates.get(path);
                let Some(had) = own.and_then(|own| watched.had(want, own)) else { return stays };
                let Some((to, promise)) = self.most_promising(candidates, flow, watched, had, want) else {
                    watched.is_settled = true;
                    return stays;
                };
                if promise.is_far_more(had) || may_begin && promise.is_shown {
                    return watched.begin(now, to, had, promise, flow);
                }
                if may_begin {
                    watched.stage = Stage::Looks(Look { at: to, since: now });
                }
                stays
            }
            Stage::Looks(look) => {
                let Some(other) = candidates.get(look.at) else {
                    watched.stage = Stage::Rests;
                    return stays;
                };
                let span = round_trip(other).max(REPORT_SPAN) * ROUNDS_OF_COPIES;
                if now < look.since + span {
                    let has_room = !other.is_full(now) && other.allows(candidates.len);
                    return Course { path, look: has_room.then_some(look.at) };
                }
                watched.stage = Stage::Rests;
                let had = candidates.get(path).and_then(|own| watched.had(want, own)).unwrap_or_default();
                let promise = self.promise(candidates, flow, watched, had, other, want);
                let promise = promise.filter(|promise| promise.is_shown && had > 0);
                match promise {
                    Some(promise) => watched.begin(now, look.at, had, promise, flow),
                    None => {
                        if let Some(place) = self.places.get_mut(look.at.index()) {
                            place.fail(now, span * SHARE);
                        }
                        stays
                    }
                }
            }
            Stage::Tried(_) | Stage::Returns(_) => stays,
        }
    }

    /// The path that promises most, of those that are worth a trial.
    fn most_promising(
        &self,
        candidates: &Candidates<'_>,
        flow: &Flow,
        watched: &Watched,
        had: u64,
        want: Want,
    ) -> Option<(PathId, Promise)> {
        let others = with_room(candidates, watched.path, |_| true)?;
        let promises = others.iter().filter_map(|other| {
            let known = candidates.get(other)?;
            let place = self.places.get(other.index())?;
            if candidates.now < place.retry_at {
                return None;
            }
            Some((other, self.promise(candidates, flow, watched, had, known, want)?))
        });
        let mut best = None::<(PathId, Promise)>;
        let mut nearest = None::<(PathId, Promise)>;
        for one in promises {
            if best.is_none_or(|(_, best)| one.1.rate >= best.rate) {
                best = Some(one);
            }
            if !one.1.is_known && nearest.is_none_or(|(_, nearest)| one.1.round_trip < nearest.round_trip) {
                nearest = Some(one);
            }
        }
        // What nobody knows is found out first where that takes half as long at most.
        let is_quicker = |near: &Promise, far: &Promise| near.round_trip < far.round_trip / 2;
        match (best, nearest) {
            (Some((_, far)), Some((_, near))) if is_quicker(&near, &far) => nearest,
            _ => best,
        }
    }

    /// What `other` promises the flow, which has so much; `None` where a trial is not worth it.
    fn promise(
        &self,
        candidates: &Candidates<'_>,
        flow: &Flow,
        watched: &Watched,
        had: u64,
        other: &Path,
        want: Want,
    ) -> Option<Promise> {
        let now = candidates.now;
        let own = candidates.get(watched.path)?;
        let before = watched.had_there.get(other.id().index()).copied().flatten();
        let before = before.filter(|&(_, until)| now < until).map(|(before, _)| before);
        let loses_less = other.losses().are_unknown() || own.losses().are_twice(other.losses());
        let loses_more = other.losses().are_twice(own.losses()) || want == Want::Lossy && !loses_less;
        if loses_more && before.is_none() {
            return None;
        }
        let told = |path: &Path| path.config().rate.map(DataRate::bits_per_second);
        // Where as much is told of both, what keeps the flow from it here may do so there as well.
        let told = told(other).filter(|&there| !told(own).is_some_and(|here| are_close(there, here)));
        let carried = other.measured_rate().map_or(0, DataRate::bits_per_second);
        let rate = match (before.or_else(|| other.limit()).or(told), want) {
            (Some(rate), _) => Some(rate),
            (None, Want::Full) if candidates.arrival(other) < candidates.arrival(own) => None,
            (None, Want::Lossy) => None,
            (None, _) => return None,
        };
        let is_shown = before.is_some() || carried >= had - had / 4;
        let (there, here) = (round_trip(other), round_trip(own));
        let promise = Promise {
            rate: rate.unwrap_or(had.saturating_mul(2)),
            is_known: rate.is_some(),
            is_shown,
            round_trip: there,
        };
        if promise.rate / 5 * 4 <= had {
            return None;
        }
        let later = there.saturating_sub(here);
        let cost = match promise.is_far_more(had) {
            true => later * ROUNDS as u32 + there * ROUNDS_TO_ABORT,
            false => later * ROUNDS_TO_ABORT,
        };
        let costs = u128::from(had) * cost.as_nanos() / 1_000_000_000;
        (promise.budget(had, now, flow) > costs as i128).then_some(promise)
    }

    /// What was delivered is known anew; a trial goes on by it, or ends.
    pub(super) fn handle_feedback(&mut self, now: Instant, paths: &[Option<Path>; MAX_PATHS]) {
        let Some(watched) = &mut self.watched else { return };
        let Some(path) = paths.get(watched.path.index()).and_then(Option::as_ref) else { return };
        let Some(round) = watched.pace.take(now, path) else { return };
        let (rate, span) = (round.rate(), round.span);
        let capacity = path.capacity();
        watched.fills = capacity.is_some_and(|capacity| round.rate_of_all() >= capacity - capacity / 8);
        watched.is_due = true;
        match &mut watched.stage {
            Stage::Tried(trial) => match trial.verdict(now, rate, span, &mut watched.pace, path) {
                None => {}
                Some(true) => {
                    if let Some(place) = self.places.get_mut(trial.from.index()) {
                        place.retry_at = now;
                    }
                    if let Some(had) = watched.had_there.get_mut(trial.from.index()) {
                        *had = Some((trial.had, now + FIRST_PAUSE));
                    }
                    watched.stage = Stage::Rests;
                }
                Some(false) => {
                    watched.stage = Stage::Returns(Return { trial: *trial, since: now });
                }
            },
            Stage::Returns(back) => {
                back.trial.account(rate, span);
                let Return { trial, since } = *back;
                // As long as the trial took at most: what it lacks later has other causes.
                let spent = since.saturating_duration_since(trial.since);
                let has_recovered = rate >= trial.had - trial.had / 32 || path.is_pressed(now);
                if has_recovered || now >= since + spent.max(SHORTEST_MEASUREMENT) {
                    let lacked = u128::try_from(trial.lacked).unwrap_or_default();
                    let lacked = lacked.saturating_mul(1_000_000_000) / u128::from(trial.had.max(1));
                    let lacked = Duration::from_nanos(u64::try_from(lacked).unwrap_or(u64::MAX / 1024));
                    if let Some(place) = self.places.get_mut(trial.to.index()) {
                        place.fail(now, FIRST_PAUSE.max(lacked * SHARE));
                    }
                    watched.stage = Stage::Rests;
                }
            }
            Stage::Rests | Stage::Looks(_) => {}
        }
    }

    /// The flow is split: what it gets on one path tells nothing.
    pub(super) fn leave(&mut self, flow: &Flow) {
        self.watched = self.watched.take().filter(|watched| watched.key != flow.key());
    }

    /// Whether a flow is on another path for a trial, or recovers from one.
    pub(super) fn is_trying(&self) -> bool {
        let stage = self.watched.as_ref().map(|watched| watched.stage);
        matches!(stage, Some(Stage::Tried(_) | Stage::Returns(_)))
    }

    /// There are other paths: what was found out is another matter.
    pub(super) fn forget(&mut self) {
        self.places = Default::default();
    }
}

/// What a path promises.
#[derive(Clone, Copy, Debug)]
struct Promise {
    /// Bit/s.
    rate: u64,
    /// That has been seen, or is told.
    is_known: bool,
    /// It has carried three quarters of what the flow has.
    is_shown: bool,
    /// The smoothed one.
    round_trip: Duration,
}

impl Promise {
    /// Whether it is known to be so many times what the flow has that the paths are not even.
    const fn is_far_more(self, had: u64) -> bool {
        self.is_known && self.rate >= had.saturating_mul(EVEN_RATES)
    }

    /// What a trial may cost, bits.
    fn budget(self, had: u64, now: Instant, flow: &Flow) -> i128 {
        let age = now.saturating_duration_since(flow.begun_at()).as_nanos();
        let bits = |rate: u64| i128::try_from(u128::from(rate) * age / 1_000_000_000).unwrap_or(i128::MAX);
        let gain = bits(self.rate.saturating_sub(had));
        if self.is_far_more(had) { gain } else { gain.min(bits(had) / i128::from(SHARE)) }
    }
}

impl Watched {
    fn new(now: Instant, key: u64, path: PathId) -> Self {
        Self {
            key,
            path,
            last: now,
            pace: Pace::default(),
            stage: Stage::Rests,
            fills: false,
            wants: false,
            is_due: false,
            is_settled: false,
            had_there: [None; MAX_PATHS],
        }
    }

    /// Whether another flow, which wants so much, may be watched in its place.
    fn is_left(&self, now: Instant, want: Option<Want>) -> bool {
        let has_less_need = want.is_some() && !self.wants;
        matches!(self.stage, Stage::Rests) && (self.is_settled || has_less_need || now >= self.last + RESTED)
    }

    /// Whether it had a pause, and is on no trial.
    fn has_rested(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Rests | Stage::Looks(_)) && now >= self.last + RESTED
    }

    /// What the flow gets, bit/s, once that is known: what a full path gives after a while, what losses leave when they come and go. What
    /// it has had since it came counts where that is more, for a flow that wants more may just have stalled.
    fn had(&self, want: Want, own: &Path) -> Option<u64> {
        let lately = self.pace.over(ROUNDS, 0);
        let rate = lately.rate().max(self.pace.since_begin().rate());
        match want {
            // Its part of what the path carries, though it stalls for a moment.
            Want::Full => {
                let part = own.capacity().map(|capacity| lately.part_of(capacity));
                let is_known = part.is_some() || lately.span >= SHORTEST_MEASUREMENT;
                is_known.then(|| rate.max(part.unwrap_or_default()))
            }
            Want::Lossy => {
                let is_known = self.pace.count() >= ROUNDS && lately.span >= SHORTEST_MEASUREMENT;
                is_known.then_some(rate)
            }
        }
        .filter(|&had| had > 0)
    }

    fn begin(&mut self, now: Instant, to: PathId, had: u64, promise: Promise, flow: &Flow) -> Course {
        let (from, budget) = (self.path, promise.budget(had, now, flow));
        let is_patient = promise.is_far_more(had);
        let trial = Trial { from, to, since: now, had, lacked: 0, budget, low: 0, rounds: 0, is_patient };
        (self.stage, self.path, self.pace) = (Stage::Tried(trial), to, Pace::default());
        (self.fills, self.is_settled) = (false, false);
        Course { path: to, look: None }
    }
}

impl Trial {
    fn account(&mut self, rate: u64, span: Duration) {
        let lacks = i128::from(self.had) - i128::from(rate);
        self.lacked += lacks * i128::try_from(span.as_micros()).unwrap_or(i128::MAX / 8) / 1_000_000;
    }

    /// A round is over; whether the flow stays, once that is known.
    fn verdict(
        &mut self,
        now: Instant,
        rate: u64,
        span: Duration,
        pace: &mut Pace,
        path: &Path,
    ) -> Option<bool> {
        self.rounds += 1;
        if self.rounds == 1 {
            // What comes then was sent elsewhere.
            return None;
        }
        self.account(rate, span);
        self.low = if rate < self.had / 4 * 3 { self.low + 1 } else { 0 };
        let is_full = path.is_pressed(now);
        let is_worse = self.low >= ROUNDS_TO_ABORT && self.lacked > 0 && is_full;
        if is_worse || self.lacked > self.budget {
            return Some(false);
        }
        if self.rounds as usize <= ROUNDS || now < self.since + SHORTEST_MEASUREMENT {
            return None;
        }
        let lately = pace.over(ROUNDS / 2, 0).rate();
        match lately >= self.had {
            true => Some(true),
            false if is_full || !self.is_patient && !pace.grows() => Some(false),
            false => None,
        }
    }
}

/// The smoothed round trip of a path.
fn round_trip(path: &Path) -> Duration {
    path.estimate().round_trip.unwrap_or(FIRST_TIMEOUT)
}

/// Whether rates differ by less than a quarter.
const fn are_close(one: u64, other: u64) -> bool {
    one / 5 * 4 <= other && other / 5 * 4 <= one
}
