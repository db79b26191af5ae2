//! A flow that wants more than its path gives is moved to another one for a trial, and stays there or is taken back.
//!
//! One flow at a time is *watched*: what it gets is measured round trip by round trip ([`super::pace`]). When it wants more, paths that
//! promise more are taken in the order of what they promise:
//!
//! | path | promises |
//! |---|---|
//! | that the flow was on of late | what it had there |
//! | that was full, or whose rate is told | that rate |
//! | by which packets would arrive earlier, while the flow's own is full | twice what the flow has, as nobody knows: so fast does a source in slow start grow |
//! | of which no loss is known, or that loses far less, while the flow is held back by losses | the same |
//! | that loses far more | nothing: most sources would be slowed down at once, and for long |
//!
//! **It is looked at first**: copies go there for [`ROUNDS_OF_COPIES`] of its round trips. A path that has no room for three quarters of
//! what the flow sends, or loses far more, is none; that costs the flow nothing. Only a path that is known to carry [`EVEN_RATES`] times
//! what the flow gets needs no look.
//!
//! **A trial has to be worth it.** A flow that has lasted for a while is expected to last as long again, so that
//! is what the gain counts for; the cost is what the flow will lack while it grows on a path with a longer round trip, and until a
//! trial is known to fail.
//!
//! **The trial** is a failure when three rounds bring less than three quarters of what the flow had and it is not growing, as the path is
//! full or losses slow it down, or when it has lacked what was to be gained. After [`ROUNDS`] round trips and a second at least the flow
//! stays if it has as much as before, and goes back if it does not grow any more. After a failure the path is left alone for 33 times as
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
    /// What the watched flow has had there, bit/s, and until when that counts.
    had: Option<(u64, Instant)>,
}

impl Place {
    fn fail(&mut self, now: Instant, least: Duration) {
        self.retry_at = now + pause(least, self.failures);
        self.failures = self.failures.saturating_add(1);
    }

    const fn remember(&mut self, had: u64, until: Instant) {
        self.had = Some((had, until));
    }
}

/// Copies show what a path is like.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: PathId,
    since: Instant,
    /// Bytes that the flow has sent in the later half, and for how many of them there was room: a path that is only tried takes few at
    /// first.
    sent: u64,
    copied: u64,
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
    /// The best round, bit/s.
    best: u64,
    /// Rounds in a row that were far below what it had.
    low: u32,
    rounds: u32,
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
                let Some((to, promise)) = self.most_promising(candidates, flow, (path, had), want) else {
                    watched.is_settled = true;
                    return stays;
                };
                let is_far_quicker = promise.is_known && promise.rate >= had.saturating_mul(EVEN_RATES);
                if is_far_quicker {
                    return watched.begin(now, to, had, promise.gain(had, now, flow));
                }
                if may_begin {
                    watched.stage = Stage::Looks(Look { at: to, since: now, sent: 0, copied: 0 });
                }
                stays
            }
            Stage::Looks(mut look) => {
                let Some(other) = candidates.get(look.at) else {
                    watched.stage = Stage::Rests;
                    return stays;
                };
                let span = round_trip(other).max(REPORT_SPAN) * ROUNDS_OF_COPIES;
                let has_room = !other.is_full(now) && other.allows(candidates.len);
                if now < look.since + span {
                    if now >= look.since + span / 2 {
                        let len = u64::from(candidates.len);
                        look.sent = look.sent.saturating_add(len);
                        look.copied = look.copied.saturating_add(if has_room { len } else { 0 });
                        watched.stage = Stage::Looks(look);
                    }
                    return Course { path, look: has_room.then_some(look.at) };
                }
                watched.stage = Stage::Rests;
                let had = candidates.get(path).and_then(|own| watched.had(want, own)).unwrap_or_default();
                let has_shown = had > 0 && look.copied > look.sent / 4 * 3;
                let promise = self.promise(candidates, flow, (path, had), other, want).filter(|_| has_shown);
                match promise {
                    Some(promise) => watched.begin(now, look.at, had, promise.gain(had, now, flow)),
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
        here: (PathId, u64),
        want: Want,
    ) -> Option<(PathId, Promise)> {
        let others = with_room(candidates, here.0, |_| true)?;
        let promises = others.iter().filter_map(|other| {
            let known = candidates.get(other)?;
            let place = self.places.get(other.index())?;
            if candidates.now < place.retry_at {
                return None;
            }
            Some((other, self.promise(candidates, flow, here, known, want)?))
        });
        promises.max_by_key(|(_, promise)| promise.rate)
    }

    /// What `other` promises the flow; `None` where a trial is not worth it.
    fn promise(
        &self,
        candidates: &Candidates<'_>,
        flow: &Flow,
        (path, had): (PathId, u64),
        other: &Path,
        want: Want,
    ) -> Option<Promise> {
        let now = candidates.now;
        let own = candidates.get(path)?;
        if other.losses().are_twice(own.losses()) {
            return None;
        }
        let loses_less = other.losses().are_unknown() || own.losses().are_twice(other.losses());
        if want == Want::Lossy && !loses_less {
            return None;
        }
        let place = self.places.get(other.id().index())?;
        let before = place.had.filter(|&(_, until)| now < until).map(|(before, _)| before);
        let told = other.config().rate.map(DataRate::bits_per_second);
        let promise = match (before.or_else(|| other.limit()).or(told), want) {
            (Some(rate), _) => Promise { rate, is_known: true },
            (None, Want::Full) if candidates.arrival(other) < candidates.arrival(own) => Promise::twice(had),
            (None, Want::Lossy) => Promise::twice(had),
            (None, _) => return None,
        };
        let (there, here) = (round_trip(other), round_trip(own));
        let cost = there.saturating_sub(here) * ROUNDS as u32 + there * ROUNDS_TO_ABORT;
        let costs = u128::from(had) * cost.as_nanos() / 1_000_000_000;
        (promise.gain(had, now, flow) > costs as i128).then_some(promise)
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
                        place.remember(trial.had, now + FIRST_PAUSE);
                        place.retry_at = now;
                    }
                    watched.stage = Stage::Rests;
                }
                Some(false) => watched.stage = Stage::Returns(Return { trial: *trial, since: now }),
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

/// What a path promises, bit/s.
#[derive(Clone, Copy, Debug)]
struct Promise {
    rate: u64,
    is_known: bool,
}

impl Promise {
    const fn twice(had: u64) -> Self {
        Self { rate: had.saturating_mul(2), is_known: false }
    }

    /// What a flow is expected to gain, bits: for as long as it has lasted.
    fn gain(self, had: u64, now: Instant, flow: &Flow) -> i128 {
        let age = now.saturating_duration_since(flow.begun_at()).as_nanos();
        let gain = u128::from(self.rate.saturating_sub(had)) * age / 1_000_000_000;
        i128::try_from(gain).unwrap_or(i128::MAX)
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

    /// What the flow gets, bit/s, once that is known: what a full path gives after a while, what losses leave when they come and go.
    fn had(&self, want: Want, own: &Path) -> Option<u64> {
        let lately = self.pace.over(ROUNDS, 0);
        match want {
            // Its part of what the path carries, though it stalls for a moment.
            Want::Full => {
                let part = own.capacity().map(|capacity| lately.part_of(capacity));
                let is_known = part.is_some() || lately.span >= SHORTEST_MEASUREMENT;
                is_known.then(|| lately.rate().max(part.unwrap_or_default()))
            }
            Want::Lossy => {
                let is_known = self.pace.count() >= ROUNDS && lately.span >= SHORTEST_MEASUREMENT;
                is_known.then(|| lately.rate())
            }
        }
        .filter(|&had| had > 0)
    }

    fn begin(&mut self, now: Instant, to: PathId, had: u64, budget: i128) -> Course {
        let from = self.path;
        let trial = Trial { from, to, since: now, had, lacked: 0, budget, best: 0, low: 0, rounds: 0 };
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
        self.account(rate, span);
        if self.rounds == 1 {
            // What came before belongs to what the flow had sent elsewhere.
            return None;
        }
        self.best = self.best.max(rate);
        self.low = if rate < self.had / 4 * 3 { self.low + 1 } else { 0 };
        let is_full = path.is_pressed(now);
        let is_slowed = rate <= self.best / 4 * 3;
        let is_worse = self.low >= ROUNDS_TO_ABORT && self.lacked > 0 && (is_full || is_slowed);
        if is_worse || self.lacked > self.budget {
            return Some(false);
        }
        if self.rounds as usize <= ROUNDS || now < self.since + SHORTEST_MEASUREMENT {
            return None;
        }
        let lately = pace.over(ROUNDS / 2, 0).rate();
        let before = pace.over(ROUNDS / 2, ROUNDS / 2).rate();
        match lately >= self.had {
            true => Some(true),
            false if is_full || lately <= before => Some(false),
            false => None,
        }
    }
}

/// The smoothed round trip of a path.
fn round_trip(path: &Path) -> Duration {
    path.estimate().round_trip.unwrap_or(FIRST_TIMEOUT)
}
