//! Whether flows that are pressed are split: a trial for all of them at once, held against what one path has brought.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use super::alike::{are_even, are_unlike_in_rate, are_worth_trying};
use super::pace::{ROUNDS, rate};
use super::{AutoMode, FIRST_PAUSE, ROUNDS_OF_COPIES, ROUNDS_TO_ABORT, SHORTEST_MEASUREMENT, pause};
use crate::multipath::path::{FIRST_TIMEOUT, Path};
use crate::multipath::path_id::{MAX_PATHS, PathId, PathSet};
use crate::multipath::scheduler::INITIAL_WINDOW;

/// With more packets of a thousand than that out of order splitting has to bring a quarter more, and is a failure where paths are not
/// even in their rates.
const LATE_PERMILLE: u64 = 10;

/// Delivered bytes over a while.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    bytes: u64,
    packets: u32,
    /// Packets that came out of order all the same.
    late: u32,
    /// Bytes sent, and of these by flows that were pressed.
    sent: u64,
    pressed: u64,
}

/// The decision for one set of paths.
#[derive(Clone, Debug, Default)]
pub(super) struct SplitTrial {
    pub(super) mode: AutoMode,
    window: Option<Window>,
    pub(super) pinned_rate: Option<u64>,
    pub(super) split_rate: Option<u64>,
    retry_at: Instant,
    pub(super) failures: u32,
    /// The paths that the decision is about.
    paths: PathSet,
    /// The path of the last flow that was pressed while flows were pinned.
    pub(super) home: Option<PathId>,
    /// The mode is new: what the other end knows of the paths is not yet of use.
    settles: bool,
    /// Since when copies of pressed flows show what the other paths are like.
    copies_since: Option<Instant>,
    /// Copies have shown that splitting is out of the question.
    is_ruled_out: bool,
    /// Since when what is delivered is watched while flows are split, and what had been by then.
    watched: Option<(Instant, u64)>,
    /// Much less had come when that was last looked at.
    was_low: bool,
}

impl SplitTrial {
    /// A pressed flow is pinned to `path`; whether copies of what it sends are to show what the other paths are like.
    pub(super) fn look(&mut self, now: Instant, path: PathId) -> bool {
        self.home = Some(path);
        let looks = now >= self.retry_at;
        if looks && self.copies_since.is_none() {
            self.copies_since = Some(now);
        }
        looks
    }

    /// Whether a pressed flow may be tried elsewhere: splitting is out of the question for now.
    pub(super) fn leaves_room_for_moves(&self, now: Instant) -> bool {
        now < self.retry_at || self.is_ruled_out
    }

    /// Flows have another path than before: what was measured is not of it.
    pub(super) const fn flows_have_moved(&mut self) {
        (self.settles, self.copies_since) = (true, None);
    }

    /// A packet was sent.
    pub(super) fn note_sent(&mut self, len: u32, is_pressed: bool) {
        if let Some(window) = &mut self.window {
            window.sent = window.sent.saturating_add(u64::from(len));
            if is_pressed {
                window.pressed = window.pressed.saturating_add(u64::from(len));
            }
        }
    }

    /// What was delivered is known anew; whether it is over other paths than before. `moves` says that a flow is being tried elsewhere:
    /// nothing begins meanwhile.
    pub(super) fn handle_feedback(
        &mut self,
        now: Instant,
        paths: &[Option<Path>; MAX_PATHS],
        late: u32,
        moves: bool,
    ) -> bool {
        let usable = || paths.iter().flatten().filter(|path: &&Path| path.is_usable());
        let packets = paths.iter().flatten().map(Path::delivered_packets).fold(0, u32::wrapping_add);
        let bytes = paths.iter().flatten().map(Path::delivered_bytes).fold(0, u64::saturating_add);
        let known: PathSet = usable().map(Path::id).collect();
        let window = self.window.filter(|_| known == self.paths);
        let Some(window) = window else {
            // Other paths are another matter.
            self.paths = known;
            (self.settles, self.retry_at, self.failures) = (true, now, 0);
            (self.copies_since, self.watched, self.was_low) = (None, None, false);
            self.begin(now, bytes, packets, late);
            return true;
        };
        let longest = usable().filter_map(|path| path.estimate().round_trip).max().unwrap_or(FIRST_TIMEOUT);
        // The paths that are looked at have round trips of their own; that of the full one tells of a queue, which grows meanwhile.
        let others = usable().filter(|path| Some(path.id()) != self.home);
        let looked_at = others.filter_map(|path| path.estimate().round_trip).max().unwrap_or(longest);
        let enough =
            (looked_at * ROUNDS_OF_COPIES).max((longest * ROUNDS_OF_COPIES).min(SHORTEST_MEASUREMENT));
        let is_seen = self.copies_since.is_some_and(|since| now >= since + enough);
        let is_worth_trying = are_worth_trying(usable());
        let may_try = is_seen && is_worth_trying && !moves;
        self.is_ruled_out = is_seen && !is_worth_trying;
        if self.mode == AutoMode::Pinned
            && now >= self.retry_at
            && window.pressed >= u64::from(INITIAL_WINDOW)
            && is_seen
            && !moves
            && are_even(usable())
        {
            // What the flow has had until now is what splitting is held against.
            let home = self.home.and_then(|home| usable().find(|path| path.id() == home));
            self.pinned_rate =
                home.and_then(Path::measured_rate).map(DataRate::bits_per_second).or(self.pinned_rate);
            (self.mode, self.settles) = (AutoMode::Split, true);
            self.begin(now, bytes, packets, late);
            return false;
        }
        if self.is_far_less(now, bytes, longest) {
            self.pin_again(now, usable());
            self.begin(now, bytes, packets, late);
            return false;
        }
        let span = now.saturating_duration_since(window.since);
        if span < SHORTEST_MEASUREMENT.max(longest * ROUNDS as u32) {
            return false;
        }
        let delivered = bytes.saturating_sub(window.bytes);
        // Where flows had what they wanted most of the time nothing is told.
        let rate = Some(rate(delivered, span)).filter(|_| window.pressed > window.sent / 2);
        if core::mem::take(&mut self.settles) {
            self.begin(now, bytes, packets, late);
            return false;
        }
        if let Some(rate) = rate {
            if self.mode == AutoMode::Pinned && is_seen && !may_try && !moves && now >= self.retry_at {
                // Copies have shown that there is nothing to gain; they end as well.
                self.fail(now);
            }
            let arrived = u64::from(packets.wrapping_sub(window.packets));
            let late = u64::from(late.wrapping_sub(window.late));
            // What a source takes for lost it slows down for, sooner or later: splitting is to have brought a quarter more then, and is
            // a failure where one path does most of it.
            let rate = match late * 1000 > arrived * LATE_PERMILLE {
                true if are_unlike_in_rate(usable()) => 0,
                true => rate / 5 * 4,
                false => rate,
            };
            let was = self.mode;
            self.judge(now, rate, usable().filter_map(Path::limit).max(), may_try);
            if was != AutoMode::Pinned && self.mode == AutoMode::Pinned {
                self.choose_home(usable());
            }
        } else if self.mode != AutoMode::Pinned {
            // No flow needs several paths any more, or one has slowed down for what it lost: one path carries it either way.
            self.pin_again(now, usable());
        } else {
            self.copies_since = None;
        }
        self.begin(now, bytes, packets, late);
        false
    }

    /// Whether much less has come of late than by one path, twice in a row. It ends splitting before the measurement does: a source that slows
    /// down for what a path loses would need long to be as fast as before.
    fn is_far_less(&mut self, now: Instant, bytes: u64, longest: Duration) -> bool {
        if self.mode == AutoMode::Pinned {
            (self.watched, self.was_low) = (None, false);
            return false;
        }
        let (since, before) = *self.watched.get_or_insert((now, bytes));
        let span = now.saturating_duration_since(since);
        if span < longest * ROUNDS_TO_ABORT {
            return false;
        }
        self.watched = Some((now, bytes));
        let rate = rate(bytes.saturating_sub(before), span);
        let is_low = self.pinned_rate.is_some_and(|pinned| rate < pinned / 4 * 3);
        // Once may be chance: BBR all but stops for 0.2 s every ten (draft-ietf-ccwg-bbr, ProbeRTT).
        core::mem::replace(&mut self.was_low, is_low) && is_low
    }

    /// Splitting ends as flows are not pressed by it: where a path loses that is its fault.
    fn pin_again<'a>(&mut self, now: Instant, mut paths: impl Iterator<Item = &'a Path>) {
        if paths.any(|path| path.losses().permille() > 0) {
            self.fail(now);
        }
        (self.mode, self.settles, self.copies_since) = (AutoMode::Pinned, true, None);
    }

    /// Splitting has failed, but has shown what each path delivers: flows go to the one that delivers most, if that is a good deal more
    /// than where they were, of those that lose no more.
    fn choose_home<'a>(&mut self, paths: impl Iterator<Item = &'a Path> + Clone) {
        let Some(home) = paths.clone().find(|path| Some(path.id()) == self.home) else { return };
        let loses_more = |path: &Path| path.losses().are_twice(home.losses());
        let rate = |path: &Path| path.measured_rate().map_or(0, DataRate::bits_per_second);
        let best = paths.filter(|path| !loses_more(path)).max_by_key(|path| rate(path));
        if let Some(best) = best.filter(|best| rate(best) / 5 * 4 > rate(home)) {
            self.home = Some(best.id());
        }
    }

    fn begin(&mut self, since: Instant, bytes: u64, packets: u32, late: u32) {
        self.window = Some(Window { since, bytes, packets, late, sent: 0, pressed: 0 });
    }

    /// So much was delivered, in bit/s, while flows were pressed; `best` is what the best of the paths carries.
    fn judge(&mut self, now: Instant, rate: u64, best: Option<u64>, may_try: bool) {
        match self.mode {
            AutoMode::Pinned => {
                self.pinned_rate = Some(rate);
                if may_try && now >= self.retry_at {
                    (self.mode, self.settles) = (AutoMode::Tried, true);
                }
            }
            AutoMode::Tried | AutoMode::Split => {
                self.split_rate = Some(rate);
                let pinned = self.pinned_rate.unwrap_or_default();
                let least = match self.mode {
                    AutoMode::Tried => pinned + pinned / 32,
                    _ => pinned.max(best.unwrap_or_default()) / 100 * 97,
                };
                if rate >= least {
                    self.mode = AutoMode::Split;
                    return;
                }
                self.mode = AutoMode::Pinned;
                self.fail(now);
            }
        }
    }

    /// Splitting was worse: it is not tried again for a while.
    fn fail(&mut self, now: Instant) {
        self.retry_at = now + pause(FIRST_PAUSE, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.copies_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_ends_early_only_if_less_than_three_quarters_came_twice_in_a_row() {
        let mut trial =
            SplitTrial { mode: AutoMode::Split, pinned_rate: Some(8_000_000), ..SplitTrial::default() };
        let round_trip = Duration::from_millis(100);
        let (mut now, mut bytes) = (Instant::ZERO, 0);
        assert!(!trial.is_far_less(now, bytes, round_trip), "nothing is known yet");
        // Parts of what one path brought in three round trips, 300,000 bytes; BBR's ProbeRTT takes one in ten seconds.
        for (part, ends) in
            [(100, false), (30, false), (100, false), (74, false), (76, false), (74, false), (74, true)]
        {
            now += round_trip * ROUNDS_TO_ABORT;
            bytes += 3_000 * part;
            assert_eq!(trial.is_far_less(now, bytes, round_trip), ends, "{part} at {now}");
        }
    }
}
