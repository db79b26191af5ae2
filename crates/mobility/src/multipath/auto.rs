//! `auto`: pins or splits each flow, by what is measured.
//!
//! **A flow is pinned** to one path, the one by which its first ten packets arrive first, as long as that carries it: the paper (section 2.4)
//! asks for the per-flow rule there, and RFC 5648 that a flow should use one care-of address at a time, lest its packets come
//! out of order. It is *pressed* when it finds its path full while another one is not.
//!
//! **Where its path loses packets by itself**, before which no queue stands, a copy of each goes by another path that is not full, costs
//! no more and brings it not much later: a source that takes losses for congestion never fills such a path, so that there is room, and what both lose is less by
//! orders of magnitude.
//!
//! **A flow that is pressed is split**, after copies of its packets have shown for [`ROUNDS_OF_COPIES`] round trips what the other paths are
//! like under load; then each packet takes the path by which it would arrive first, with measured rates, queues and
//! transits. That alone leaves a slow path unused until the queue before the quick one is longer than the slow path's way. What can
//! make it worse than one path all the same is what predictions do not hold: jitter, losses, queues that overflow. So
//! ([`split_trial`]):
//!
//! - Where the paths that would be used are *even* ([`alike`]) - transits less than 50 ms or a quarter of the shortest round trip apart with
//!   four variations, rates less than fourfold - flows are split at once.
//! - Otherwise splitting is tried: for ten round trips, and a second at least, after the same time with one path; as long again
//!   before it counts, for only then both ends know the paths under load. It stays
//!   when it has delivered more by a 32nd at least, and ends as soon as less than three quarters come for [`ROUNDS_TO_ABORT`] round trips twice in a row. Where transits are 250 ms apart, and further than a round trip of the
//!   shortest path, it is not tried.
//!   Paths that lose unlike parts of what they carry are not even, and splitting over them is not tried: most sources would be slowed
//!   down by the losses of the worst path at once, and need long to be as fast as before.
//! - When no flow is pressed any more, flows are pinned again: either one path carries them, or they have slowed down for what was lost,
//!   and where a path loses that is a failure. They go to the path on which one was measured, or else to the first of those that lose least.
//! - While flows are split, less than 0.97 of what the best path alone is measured to carry ends it. With more than
//!   ten of a thousand packets that the other end could not put in order, what is delivered counts for four fifths.
//! - A trial of splitting that fails leaves flows on the path that has delivered most.
//!
//! **A pinned flow that wants more** than its path gives, where splitting is out of the question, is tried on another path, whole:
//! [`tried_move`].
//!
//! What has failed is not tried again for [`FIRST_PAUSE`] and then for twice as long each time, so that trials take a 33rd of the
//! time at most after the first.
//!
//! | part | does |
//! |---|---|
//! | [`want`] | says whether a flow wants more than its path gives |
//! | [`pace`] | measures what a flow gets |
//! | [`alike`] | says whether paths are even |
//! | [`copies`] | says where copies go |
//! | [`split_trial`] | decides whether flows are split |
//! | [`tried_move`] | decides by which path a pinned flow goes |

mod alike;
mod copies;
mod pace;
mod split_trial;
mod tried_move;
mod want;

use core::time::Duration;

use careof_base::Instant;

use self::copies::room_for_copies;
use self::split_trial::SplitTrial;
use self::tried_move::TriedMoves;
pub(super) use self::want::Pressure;
use self::want::Want;
use super::flow_table::Flow;
use super::path::Path;
use super::path_id::{MAX_PATHS, PathId};
use super::scheduler::{self, Candidates};

/// Round trips for which copies are sent before a flow is split or moved: by then each trial of a path is over.
const ROUNDS_OF_COPIES: u32 = 4;
/// Round trips after which what has brought much less ends.
const ROUNDS_TO_ABORT: u32 = 3;
/// The least that a measurement lasts.
const SHORTEST_MEASUREMENT: Duration = Duration::from_secs(1);
/// After something was worse it is not tried again for so long.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// At most.
const LONGEST_PAUSE: Duration = Duration::from_secs(960);

/// For how long something is not tried again that has failed so often before.
fn pause(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE.max(first))
}

/// Whether flows that are pressed are split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoMode {
    /// No: one path carries each. What it delivers is measured while a flow is pressed.
    #[default]
    Pinned,
    /// Splitting is tried.
    Tried,
    /// Yes.
    Split,
}

impl AutoMode {
    /// As people read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Tried => "tried",
            Self::Split => "split",
        }
    }
}

/// What `auto` has decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoReport {
    /// Whether flows that are pressed are split.
    pub mode: AutoMode,
    /// What one path was measured to deliver while a flow was pressed, bit/s.
    pub pinned_rate: Option<u64>,
    /// What all paths were last measured to deliver while flows were split, bit/s.
    pub split_rate: Option<u64>,
    /// Trials of splitting that failed.
    pub failures: u32,
}

/// The decisions for one tunnel.
#[derive(Clone, Debug, Default)]
pub(super) struct Auto {
    split: SplitTrial,
    moves: TriedMoves,
    /// Bytes of the packet that is chosen for belong to a pressed flow.
    is_pressed: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) path: PathId,
    /// A copy of it.
    pub(super) copy: Option<PathId>,
    /// The copy only shows what that path is like: it does not take the place of what is lost.
    pub(super) only_shows: bool,
}

impl Chosen {
    /// Without a copy.
    const fn of(path: PathId) -> Self {
        Self { path, copy: None, only_shows: false }
    }
}

impl Auto {
    pub(super) const fn report(&self) -> AutoReport {
        let SplitTrial { mode, pinned_rate, split_rate, failures, .. } = self.split;
        AutoReport { mode, pinned_rate, split_rate, failures }
    }

    /// The path of a packet of `flow`.
    pub(super) fn choose(&mut self, candidates: &Candidates<'_>, flow: &mut Flow) -> Option<Chosen> {
        // A source begins slowly by itself: where it is alone, a path that is only tried need not be spared.
        let stays = flow.path.filter(|&path| candidates.working.contains(path));
        let path = stays.or_else(|| scheduler::pinned(candidates, None, flow.moved_at, false))?;
        let was_split = self.press(candidates, flow, path);
        if flow.is_split {
            self.moves.leave(flow);
            return candidates.earliest().map(Chosen::of);
        }
        // Back to the path that it was measured on, or to the best, not where it happened to be.
        let path = if was_split { self.home(candidates).unwrap_or(path) } else { path };
        Some(self.pin(candidates, flow, path))
    }

    /// Notes whether the flow is pressed, and is split therefore; whether it was.
    fn press(&mut self, candidates: &Candidates<'_>, flow: &mut Flow, path: PathId) -> bool {
        let now = candidates.now;
        let is_pressed = |path: PathId| candidates.get(path).is_some_and(|path| path.is_pressed(now));
        let others = candidates.usable.without(path);
        let was_split = flow.is_split;
        if flow.full.rest(now) {
            flow.is_split = false;
        }
        // One that is split fills the others, too: that all are full is what it is split for.
        if is_pressed(path) && (flow.is_split || others.iter().any(|other| !is_pressed(other))) {
            flow.full.add(now, candidates.len);
        }
        self.is_pressed = flow.full.is_enough();
        flow.is_split = self.is_pressed && self.split.mode != AutoMode::Pinned;
        was_split
    }

    /// Where a flow goes that is not split any more.
    fn home(&self, candidates: &Candidates<'_>) -> Option<PathId> {
        let home = self.split.home.filter(|&home| candidates.usable.contains(home));
        home.or_else(|| earliest_of_least_loss(candidates))
    }

    /// Where a packet of a pinned flow goes.
    fn pin(&mut self, candidates: &Candidates<'_>, flow: &mut Flow, path: PathId) -> Chosen {
        let now = candidates.now;
        let losses = |path: PathId| candidates.get(path).map(Path::losses).unwrap_or_default();
        let loses = losses(path).permille() > 0;
        let repair = if loses { room_for_copies(candidates, path, true) } else { None };
        flow.lossy.rest(now);
        // Where copies lose far less, the flow may have more without those that are repaired.
        if loses && repair.is_none_or(|repair| losses(path).are_twice(losses(repair))) {
            flow.lossy.add(now, candidates.len);
        }
        let want = match (self.is_pressed, flow.lossy.is_enough()) {
            (true, _) => Some(Want::Full),
            (false, true) => Some(Want::Lossy),
            (false, false) => None,
        };
        let looks = self.is_pressed
            && self.split.mode == AutoMode::Pinned
            && !self.moves.is_trying()
            && self.split.look(now, path);
        // Whether to split is asked first, of flows that are pressed.
        let may_begin = self.split.mode == AutoMode::Pinned
            && (!self.is_pressed || self.split.leaves_room_for_moves(now));
        let course = self.moves.choose(candidates, flow, path, want, may_begin);
        if course.path != path {
            self.split.flows_have_moved();
            return Chosen::of(course.path);
        }
        let shows = || if looks { room_for_copies(candidates, path, false) } else { None };
        let shown = course.look.or_else(shows);
        Chosen { path, copy: shown.or(repair), only_shows: shown.is_some() && shown != repair }
    }

    /// A packet was sent.
    pub(super) fn note_sent(&mut self, len: u32) {
        self.split.note_sent(len, self.is_pressed);
    }

    /// What was delivered is known anew.
    pub(super) fn handle_feedback(&mut self, now: Instant, paths: &[Option<Path>; MAX_PATHS], late: u32) {
        if self.split.handle_feedback(now, paths, late, self.moves.is_trying()) {
            self.moves.forget();
        }
        self.moves.handle_feedback(now, paths);
    }
}

/// The path by which a packet would arrive first, of those that lose least.
fn earliest_of_least_loss(candidates: &Candidates<'_>) -> Option<PathId> {
    let usable = || candidates.paths.iter().flatten().filter(|path| candidates.usable.contains(path.id()));
    let loss = |path: &Path| path.losses().permille();
    let least = usable().map(loss).min()?;
    let best = usable().filter(|path| loss(path) == least).map(Path::id).collect();
    candidates.narrowed(best).earliest()
}

#[cfg(test)]
mod tests;
