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
//! make it worse than one path all the same is what predictions do not hold: jitter, losses, queues that overflow. So:
//!
//! - Where the paths that would be used are *even* - transits less than [`EVEN_SPREAD`] or a quarter of the shortest round trip apart with
//!   four variations, rates less than [`EVEN_RATES`] times - flows are split at once.
//! - Otherwise splitting is tried: for [`ROUNDS`] round trips, and a second at least, after the same time with one path; as long again
//!   before it counts, for only then both ends know the paths under load. It stays
//!   when it has delivered more by a 32nd at least, and ends as soon as less than three quarters come for [`ROUNDS_TO_ABORT`] round trips. Where transits are [`HOPELESS_SPREAD`] apart, and further than a round trip of the
//!   shortest path, it is not tried.
//!   Paths that lose unlike parts of what they carry are not even, and splitting over them is not tried: most sources would be slowed
//!   down by the losses of the worst path at once, and need long to be as fast as before.
//! - When no flow is pressed any more, flows are pinned again: either one path carries them, or they have slowed down for what was lost,
//!   and where a path loses that is a failure. They go to the path on which one was measured, or else to the first of those that lose least.
//! - While flows are split, less than 0.97 of what the best path alone is measured to carry ends it. With more than
//!   [`LATE_PERMILLE`] of a thousand packets that the other end could not put in order, what is delivered counts for four fifths.
//!
//! **A pinned flow moves** to another path that has room, and where it is pressed does not lose more than twice as much, if that
//! - is known to carry [`EVEN_RATES`] times as much, or
//! - is where copies for repair go and loses far less, or
//! - has carried copies of three quarters of what the flow sends, while splitting is not to be tried, and brings its packets earlier.
//!
//! And a trial of splitting that fails leaves flows on the path that has delivered most.
//!
//! What has failed is not tried again for [`FIRST_PAUSE`] and then for twice as long each time, so that trials take a 33rd of the
//! time at most after the first.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use super::flow_table::Flow;
use super::path::{FIRST_TIMEOUT, Path};
use super::path_id::{MAX_PATHS, PathId, PathSet};
use super::scheduler::{self, Candidates};

/// Transits of even paths are less apart, variations included. Where the shortest round trip is more than four times that, a quarter of
/// it counts: by so much a flow that is split has a longer round trip at most, and a second path that is even adds a quarter at least.
const EVEN_SPREAD: Duration = Duration::from_millis(50);
/// Round trips for which copies are sent before a flow is split: by then each trial of a path is over.
const ROUNDS_OF_COPIES: u32 = 4;
/// Round trips after which splitting that has brought much less ends.
const ROUNDS_TO_ABORT: u32 = 3;
/// Where transits are this far apart splitting is not even tried, unless the shortest path has a round trip as long, which is then less
/// than doubled: a flow that is split has the round trip of the slowest path, and at half of what a resequencer waits at most a trial
/// alone costs more than it can bring.
const HOPELESS_SPREAD: Duration = Duration::from_millis(250);
/// Rates of even paths are less than so many times apart.
const EVEN_RATES: u64 = 4;
/// With more packets of a thousand than that out of order splitting has to bring a quarter more, and is a failure where paths are not
/// even in their rates.
const LATE_PERMILLE: u64 = 10;
/// Round trips that a measurement lasts.
const ROUNDS: u32 = 10;
/// The least that it lasts.
const SHORTEST_MEASUREMENT: Duration = Duration::from_secs(1);
/// After splitting was worse it is not tried again for so long.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// At most.
const LONGEST_PAUSE: Duration = Duration::from_secs(960);
/// Bytes that a flow has to send against a full path to be split.
const PRESSED: u64 = scheduler::INITIAL_WINDOW as u64;
/// A pause after which a flow begins anew.
const RESTED: Duration = Duration::from_secs(1);

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
    /// Trials that failed.
    pub failures: u32,
}

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
pub(super) struct Auto {
    mode: AutoMode,
    window: Option<Window>,
    pinned_rate: Option<u64>,
    split_rate: Option<u64>,
    retry_at: Instant,
    failures: u32,
    /// The paths that the decision is about.
    paths: PathSet,
    /// The path of the last flow that was pressed while flows were pinned.
    home: Option<PathId>,
    /// The mode is new: what the other end knows of the paths is not yet of use.
    settles: bool,
    /// Bytes of the packet that is chosen for belong to a pressed flow.
    is_pressed: bool,
    /// Since when copies of pressed flows show what the other paths are like.
    copies_since: Option<Instant>,
    /// Bytes that pressed flows have sent in the later half of that, and for how many of them another path had room for a copy.
    looked: [u64; 2],
    /// Splitting will not be tried: a flow may move to where copies of what it sends had room.
    may_move: bool,
    /// Since when what is delivered is watched while flows are split, and what had been by then.
    watched: Option<(Instant, u64)>,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) path: PathId,
    /// A copy of it.
    pub(super) copy: Option<PathId>,
}

impl Auto {
    pub(super) const fn report(&self) -> AutoReport {
        let Self { mode, pinned_rate, split_rate, failures, .. } = *self;
        AutoReport { mode, pinned_rate, split_rate, failures }
    }

    /// The path of a packet of `flow`.
    pub(super) fn choose(&mut self, candidates: &Candidates<'_>, flow: &mut Flow) -> Option<Chosen> {
        let now = candidates.now;
        // A source begins slowly by itself: where it is alone, a path that is only tried need not be spared.
        let stays = flow.path.filter(|&path| candidates.working.contains(path));
        let path = stays.or_else(|| scheduler::pinned(candidates, None, flow.moved_at, false))?;
        let is_pressed = |path: PathId| candidates.get(path).is_some_and(|path| path.is_pressed(now));
        let others = candidates.usable.without(path);
        let was_split = flow.is_split;
        if now >= flow.pressed_at + RESTED {
            (flow.pressure, flow.is_split) = (0, false);
        }
        // One that is split fills the others, too: that all are full is what it is split for.
        if is_pressed(path) && (flow.is_split || others.iter().any(|other| !is_pressed(other))) {
            flow.pressure = flow.pressure.saturating_add(u64::from(candidates.len));
            flow.pressed_at = now;
        }
        self.is_pressed = flow.pressure >= PRESSED;
        flow.is_split = self.is_pressed && self.mode != AutoMode::Pinned;
        if !flow.is_split {
            let [sent, copied] = self.looked;
            let has_shown = self.may_move && self.home == Some(path) && copied > sent / 4 * 3;
            if self.is_pressed && !was_split {
                let to = if has_shown { earlier_with_room(candidates, path) } else { None };
                if to.is_some() {
                    // One flow at a time: for two there might be no room.
                    (self.may_move, self.retry_at) = (false, now + FIRST_PAUSE);
                }
                if let Some(to) = to.or_else(|| far_quicker(candidates, path)) {
                    (self.copies_since, flow.pressure) = (None, 0);
                    return Some(Chosen { path: to, copy: None });
                }
            }
            // Back to the path that it was measured on, or to the best, not where it happened to be.
            let home = self.home.filter(|&home| candidates.usable.contains(home));
            let path = match was_split {
                true => home.or_else(|| earliest_of_least_loss(candidates)).unwrap_or(path),
                false => path,
            };
            let loses = candidates.get(path).is_some_and(|path| path.losses().permille() > 0);
            if !self.is_pressed || self.mode != AutoMode::Pinned {
                let copy = if loses { room_for_copies(candidates, path, true) } else { None };
                let losses = |path: PathId| candidates.get(path).map(Path::losses).unwrap_or_default();
                // Where copies lose far less there is no need for the first of them.
                let better = copy.filter(|&copy| losses(path).are_twice(losses(copy)));
                return Some(better.map_or(Chosen { path, copy }, |path| Chosen { path, copy: None }));
            }
            self.home = Some(path);
            let looks = now >= self.retry_at;
            if looks && self.copies_since.is_none() {
                (self.copies_since, self.looked) = (Some(now), [0; 2]);
            }
            let copy = if looks || loses { room_for_copies(candidates, path, !looks) } else { None };
            if looks {
                let len = u64::from(candidates.len);
                let [sent, copied] = self.looked;
                self.looked = [sent.saturating_add(len), copied.saturating_add(copy.map_or(0, |_| len))];
            }
            return Some(Chosen { path, copy });
        }
        candidates.earliest().map(|path| Chosen { path, copy: None })
    }

    /// A packet was sent.
    pub(super) fn note_sent(&mut self, len: u32) {
        if let Some(window) = &mut self.window {
            window.sent = window.sent.saturating_add(u64::from(len));
            if self.is_pressed {
                window.pressed = window.pressed.saturating_add(u64::from(len));
            }
        }
    }

    /// What was delivered is known anew.
    pub(super) fn handle_feedback(&mut self, now: Instant, paths: &[Option<Path>; MAX_PATHS], late: u32) {
        let usable = || paths.iter().flatten().filter(|path: &&Path| path.is_usable());
        let packets = paths.iter().flatten().map(Path::delivered_packets).fold(0, u32::wrapping_add);
        let bytes = paths.iter().flatten().map(Path::delivered_bytes).fold(0, u64::saturating_add);
        let known: PathSet = usable().map(Path::id).collect();
        let window = self.window.filter(|_| known == self.paths);
        let Some(window) = window else {
            // Other paths are another matter.
            self.paths = known;
            (self.settles, self.retry_at, self.failures) = (true, now, 0);
            (self.copies_since, self.watched) = (None, None);
            self.begin(now, bytes, packets, late);
            return;
        };
        let longest = usable().filter_map(|path| path.estimate().round_trip).max().unwrap_or(FIRST_TIMEOUT);
        // The paths that are looked at have round trips of their own; that of the full one tells of a queue, which grows meanwhile.
        let others = usable().filter(|path| Some(path.id()) != self.home);
        let looked_at = others.filter_map(|path| path.estimate().round_trip).max().unwrap_or(longest);
        let enough =
            (looked_at * ROUNDS_OF_COPIES).max((longest * ROUNDS_OF_COPIES).min(SHORTEST_MEASUREMENT));
        let is_seen = self.copies_since.is_some_and(|since| now >= since + enough);
        if self.copies_since.is_some_and(|since| now < since + enough / 2) {
            // A path that is only tried takes few copies at first.
            self.looked = [0; 2];
        }
        let shortest = usable().filter_map(|path| path.estimate().least_round_trip).min();
        let hopeless = HOPELESS_SPREAD.max(shortest.unwrap_or_default());
        let may_try = is_seen
            && spread(usable()).is_some_and(|spread| spread < hopeless)
            && !are_unlike_in_loss(usable());
        self.may_move = self.mode == AutoMode::Pinned && now >= self.retry_at && is_seen && !may_try;
        if self.mode == AutoMode::Pinned
            && now >= self.retry_at
            && window.pressed >= PRESSED
            && is_seen
            && are_even(usable())
        {
            // What the flow has had until now is what splitting is held against.
            let home = self.home.and_then(|home| usable().find(|path| path.id() == home));
            self.pinned_rate =
                home.and_then(Path::measured_rate).map(DataRate::bits_per_second).or(self.pinned_rate);
            (self.mode, self.settles) = (AutoMode::Split, true);
            self.begin(now, bytes, packets, late);
            return;
        }
        if self.is_far_less(now, bytes, longest) {
            self.pin_again(now, usable());
            self.begin(now, bytes, packets, late);
            return;
        }
        let span = now.saturating_duration_since(window.since);
        if span < SHORTEST_MEASUREMENT.max(longest * ROUNDS) {
            return;
        }
        let delivered = bytes.saturating_sub(window.bytes);
        let rate = u64::try_from(u128::from(delivered) * 8_000_000_000 / span.as_nanos().max(1));
        // Where flows had what they wanted most of the time nothing is told.
        let rate = rate.ok().filter(|_| window.pressed > window.sent / 2);
        if core::mem::take(&mut self.settles) {
            self.begin(now, bytes, packets, late);
            return;
        }
        if let Some(rate) = rate {
            if self.mode == AutoMode::Pinned && is_seen && !may_try && now >= self.retry_at {
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
    }

    /// Whether much less has come of late than by one path. It ends splitting before the measurement does: a source that slows down for
    /// what a path loses would need long to be as fast as before.
    fn is_far_less(&mut self, now: Instant, bytes: u64, longest: Duration) -> bool {
        if self.mode == AutoMode::Pinned {
            self.watched = None;
            return false;
        }
        let (since, before) = *self.watched.get_or_insert((now, bytes));
        let span = now.saturating_duration_since(since);
        if span < longest * ROUNDS_TO_ABORT {
            return false;
        }
        self.watched = Some((now, bytes));
        let bits = u128::from(bytes.saturating_sub(before)) * 8_000_000_000;
        let rate = bits / span.as_nanos().max(1);
        self.pinned_rate.is_some_and(|pinned| rate < u128::from(pinned) / 4 * 3)
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
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(8)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now + pause;
        self.copies_since = None;
    }
}

/// By which path a copy of what goes by `path` goes: the earliest that is not full and costs no more. With `in_time` it is to take the
/// place of what is lost, and one that comes so much later that it is waited for longer than a source is slowed down by is none.
fn room_for_copies(candidates: &Candidates<'_>, path: PathId, in_time: bool) -> Option<PathId> {
    let own = candidates.get(path)?;
    let least = own.estimate().least_round_trip.unwrap_or_default();
    let latest = candidates.arrival(own) + EVEN_SPREAD.max(least / 4).as_nanos() as i128;
    let comes = |other: &Path| !in_time || candidates.arrival(other) <= latest;
    let others = with_room(candidates, path, comes)?;
    candidates.narrowed(others).earliest()
}

/// The path by which what goes by `path` would arrive first and earlier, of those that are not full, cost no more and do not lose
/// more than twice as much.
fn earlier_with_room(candidates: &Candidates<'_>, path: PathId) -> Option<PathId> {
    let own = candidates.get(path)?;
    let now = candidates.arrival(own);
    let is_better = |other: &Path| candidates.arrival(other) < now && !other.losses().are_twice(own.losses());
    let others = with_room(candidates, path, is_better)?;
    candidates.narrowed(others).earliest()
}

/// A path that is known to carry so many times what `path` does that they are not even, and has room.
fn far_quicker(candidates: &Candidates<'_>, path: PathId) -> Option<PathId> {
    let own = candidates.get(path)?;
    let rate = |path: &Path| path.estimate().rate.map_or(0, DataRate::bits_per_second);
    let least = own.limit()?.saturating_mul(EVEN_RATES);
    let is_quicker = |other: &Path| rate(other) >= least && !other.losses().are_twice(own.losses());
    let others = with_room(candidates, path, is_quicker)?;
    candidates.narrowed(others).earliest()
}

/// The paths beside `path` that are not full, cost no more and are as asked for; `None` without any.
fn with_room(
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

/// Bytes of a packet of full size on most links.
const FULL_PACKET: u64 = 1500;

/// How far transits of these paths are apart, variations included; `None` while one of them is not known. Packets that follow each other
/// through a queue differ by the time that each is on the wire: on a slow path that alone is no jitter.
fn spread<'a>(paths: impl Iterator<Item = &'a Path>) -> Option<Duration> {
    let (mut earliest, mut latest) = (i64::MAX, i64::MIN);
    for estimate in paths.map(Path::estimate) {
        let on_wire = estimate.rate.and_then(|rate| rate.time_for_bits(FULL_PACKET * 8)).unwrap_or_default();
        let variation = estimate.transit_variation.saturating_sub(on_wire);
        let variation = i64::try_from(variation.as_micros()).unwrap_or(i64::MAX / 8);
        let transit = estimate.transit?;
        earliest = earliest.min(transit);
        latest = latest.max(transit.saturating_add(variation.saturating_mul(4)));
    }
    u64::try_from(latest.saturating_sub(earliest)).ok().map(Duration::from_micros)
}

/// The path by which a packet would arrive first, of those that lose least.
fn earliest_of_least_loss(candidates: &Candidates<'_>) -> Option<PathId> {
    let usable = || candidates.paths.iter().flatten().filter(|path| candidates.usable.contains(path.id()));
    let loss = |path: &Path| path.losses().permille();
    let least = usable().map(loss).min()?;
    let best = usable().filter(|path| loss(path) == least).map(Path::id).collect();
    candidates.narrowed(best).earliest()
}

/// Whether all these paths are alike: no packet is waited for long because others went by another one.
fn are_even<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    let estimates = || paths.clone().map(Path::estimate);
    // A rate that is not known yet does not make paths uneven: the trial that every new path begins with bounds the harm.
    let rates = || estimates().filter(|estimate| estimate.is_limit).filter_map(|estimate| estimate.rate);
    let (least, most) = (rates().min().unwrap_or_default(), rates().max().unwrap_or_default());
    let shortest = estimates().filter_map(|estimate| estimate.least_round_trip).min().unwrap_or_default();
    spread(paths.clone()).is_some_and(|spread| spread < EVEN_SPREAD.max(shortest / 4))
        && (most == least || most.bits_per_second() < least.bits_per_second().saturating_mul(EVEN_RATES))
        && !are_unlike_in_loss(paths)
}

/// Whether some path has delivered so many times as much as another that they are not even.
fn are_unlike_in_rate<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    let rates = || paths.clone().map(|path| path.measured_rate().map_or(0, DataRate::bits_per_second));
    rates().max().unwrap_or_default() >= rates().min().unwrap_or_default().saturating_mul(EVEN_RATES)
}

/// Whether some path loses more than twice as much as another: a flow that is split is slowed down by the losses of all its paths.
fn are_unlike_in_loss<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    paths.clone().any(|one| paths.clone().any(|other| one.losses().are_twice(other.losses())))
}
