//! By which path a copy of a packet goes.

use super::alike::EVEN_SPREAD;
use crate::multipath::path::Path;
use crate::multipath::path_id::{PathId, PathSet};
use crate::multipath::scheduler::Candidates;

/// By which path a copy of what goes by `path` goes: the earliest that is not full and costs no more. With `in_time` it is to take the
/// place of what is lost, and one that comes so much later that it is waited for longer than a source is slowed down by is none.
pub(super) fn room_for_copies(candidates: &Candidates<'_>, path: PathId, in_time: bool) -> Option<PathId> {
    let own = candidates.get(path)?;
    let least = own.estimate().least_round_trip.unwrap_or_default();
    let latest = candidates.arrival(own) + EVEN_SPREAD.max(least / 4).as_nanos() as i128;
    let comes = |other: &Path| !in_time || candidates.arrival(other) <= latest;
    let others = with_room(candidates, path, comes)?;
    candidates.narrowed(others).earliest()
}

/// The paths beside `path` that are not full, cost no more and are as asked for; `None` without any.
pub(super) fn with_room(
    candidates: &Candidates<'_>,
    path: PathId,
    is_asked_for: impl Fn(&Path) -> bool,
) -> Option<PathSet> {
    let cost = candidates.get(path)?.config().cost;
    let has_room =
        |other: &&Path| !other.is_full(candidates.now) && other.config().cost <= cost && is_asked_for(other);
    let others = candidates.usable.without(path);
    let others: PathSet =
        others.iter().filter_map(|other| candidates.get(other)).filter(has_room).map(Path::id).collect();
    (!others.is_empty()).then_some(others)
}
