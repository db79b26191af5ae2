//! Dispersion of packets over several paths: one code for the home agent, towards the mobile node, and for the mobile node, towards
//! its home agent.

use careof_base::{Instant, Randomness};
use careof_wire::shake::PathFeedback;
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

use super::auto::{Auto, AutoReport};
use super::flow_table::{Flow, FlowTable};
use super::path::{Path, PathChange, PathConfig};
use super::path_id::{MAX_PATHS, PathId, PathSet};
use super::rules::Treatment;
use super::scheduler::{self, Candidates, Memory, Scheduler};
use super::wire_time::micros;
use crate::PathState;

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The flow it belongs to: [`super::FlowFields::key`].
    pub flow: u64,
    /// Its length, bytes, without the tunnel's headers.
    pub len: u32,
    /// The paths that it may take, and how: [`super::Rules::of`].
    pub allowed: PathSet,
    /// How.
    pub treatment: Treatment,
}

/// How a packet goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// By these paths, in a copy each; by none when no path that it may take works.
    pub paths: PathSet,
    /// What the flow is called on the wire.
    pub flow: u32,
    /// Which packet of the flow it is.
    pub sequence: u32,
    /// Whether packets of the flow may be on other paths.
    pub split: bool,
    /// The path of a copy that only shows what it is like there. Nobody needs it, so that the packet itself does not say that what is
    /// missing before it may be on other paths; for the copy, that may be quicker, it is so.
    pub shown: Option<PathId>,
}

/// What was dispersed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DispersionCounters {
    /// Packets.
    pub packets: u64,
    /// Packets for which no path worked: their owner drops them.
    pub no_path: u64,
    /// Times that a flow changed its path.
    pub moves: u64,
}

/// The configuration of a [`Dispersion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispersionConfig {
    /// How packets choose.
    pub scheduler: Scheduler,
    /// Flows that are remembered at once, about: the nearest power of two above, 65,536 at most.
    pub flows: usize,
}

impl Default for DispersionConfig {
    fn default() -> Self {
        Self { scheduler: Scheduler::Auto, flows: 256 }
    }
}

/// Disperses packets over the paths of one tunnel.
///
/// For every packet the owner asks [`Dispersion::choose`], and for each path chosen [`Dispersion::header`]. Packets and messages that
/// have come by a path go to [`Dispersion::note_received`] and [`Dispersion::handle_feedback`]. After any call it polls
/// [`Dispersion::poll_feedback`] until that returns `None`, and asks [`Dispersion::next_timeout`] when to call
/// [`Dispersion::handle_timeout`]. Time never goes backwards. No call allocates memory.
#[derive(Clone, Debug)]
pub struct Dispersion {
    scheduler: Scheduler,
    paths: [Option<Path>; MAX_PATHS],
    /// Of them, those that no packets go by before something was answered there.
    unproven: PathSet,
    flows: FlowTable,
    memory: Memory,
    auto: Auto,
    random: Randomness,
    counters: DispersionCounters,
    /// Packets that came too late to be put in order.
    late: u32,
}

impl Dispersion {
    /// A dispersion without paths.
    #[must_use]
    pub fn new(config: DispersionConfig, random: impl Into<Randomness>) -> Self {
        let mut random = random.into();
        let start = random.next_u64() as u16;
        Self {
            scheduler: config.scheduler,
            paths: Default::default(),
            unproven: PathSet::NONE,
            flows: FlowTable::new(config.flows, start),
            memory: Memory::default(),
            auto: Auto::default(),
            random,
            counters: DispersionCounters::default(),
            late: 0,
        }
    }

    /// Takes up a path, or tells something else of one that there is.
    pub fn set_path(&mut self, now: Instant, id: PathId, config: PathConfig) {
        if let Some(place) = self.paths.get_mut(id.index()) {
            match place {
                Some(path) => path.set_config(config),
                None => *place = Some(Path::new(now, id, config)),
            }
        }
    }

    /// The same, of a path whose address is somebody else's word: before something was answered there, nothing is put there but probes.
    pub fn set_path_to_prove(&mut self, now: Instant, id: PathId, config: PathConfig) {
        if self.path(id).is_none() {
            self.unproven = self.unproven.with(id);
        }
        self.set_path(now, id, config);
    }

    /// Forgets a path: its care-of address is registered no longer.
    pub fn remove_path(&mut self, id: PathId) {
        self.unproven = self.unproven.without(id);
        if let Some(place) = self.paths.get_mut(id.index()) {
            *place = None;
        }
    }

    /// Whether something was answered on a path that had to be proven, for the first time since that was last asked.
    pub(super) fn take_proof(&mut self, id: PathId) -> bool {
        let is_proven =
            self.unproven.contains(id) && self.path(id).is_some_and(|path| path.state() == PathState::Alive);
        if is_proven {
            self.unproven = self.unproven.without(id);
        }
        is_proven
    }

    /// A path is known to be out: its link is down, or a relay has withdrawn.
    pub fn path_is_out(&mut self, now: Instant, id: PathId) -> Option<PathChange> {
        self.path_mut(id)?.be_told_out(now)
    }

    /// The other end has begun anew: what it told, and what was measured with its clock, means nothing any more.
    pub fn peer_restarted(&mut self, now: Instant) {
        for path in self.paths.iter_mut().flatten() {
            *path = Path::new(now, path.id(), *path.config());
        }
    }

    /// The next message over this path leaves at once: the other end waits for it.
    pub(super) fn greet(&mut self, id: PathId) {
        if let Some(path) = self.path_mut(id) {
            path.greet();
        }
    }

    /// Probes every path at once: only now the other end takes messages.
    pub(super) fn probe_now(&mut self) {
        self.paths.iter_mut().flatten().for_each(Path::probe_now);
    }

    /// The path by which a packet of `len` bytes would arrive first, of those that it may take and that work: for one whose own path
    /// has gone out. It is not counted.
    #[must_use]
    pub fn detour(&self, now: Instant, len: u32, allowed: PathSet) -> Option<PathId> {
        let packet = Packet { flow: 0, len, allowed, treatment: Treatment::Dispersed };
        candidates(&self.paths, now, &self.proven(packet))?.earliest()
    }

    /// What is known of a path.
    #[must_use]
    pub fn path(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id.index()).and_then(Option::as_ref)
    }

    /// The paths, by their numbers.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().flatten()
    }

    fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.get_mut(id.index()).and_then(Option::as_mut)
    }

    /// What was dispersed.
    #[must_use]
    pub const fn counters(&self) -> &DispersionCounters {
        &self.counters
    }

    /// What the scheduler `auto` has decided, and why.
    #[must_use]
    pub fn auto(&self) -> AutoReport {
        self.auto.report()
    }

    /// A packet that may take no path that is still to be proven.
    fn proven(&self, packet: Packet) -> Packet {
        let allowed = PathId::all().filter(|&id| packet.allowed.contains(id) && !self.unproven.contains(id));
        Packet { allowed: allowed.collect(), ..packet }
    }

    /// By which paths `packet` goes. It counts as sent there.
    pub fn choose(&mut self, now: Instant, packet: &Packet) -> Choice {
        let packet = &if self.unproven.is_empty() { *packet } else { self.proven(*packet) };
        self.counters.packets = self.counters.packets.saturating_add(1);
        let Some(candidates) = candidates(&self.paths, now, packet) else {
            if let Some(path) = last_resort(&self.paths, packet) {
                let (flow, label) = self.flows.get(now, packet.flow);
                let split = flow.path != Some(path) || now < flow.split_until;
                let sequence = flow.take_sequence();
                return Choice { paths: PathSet::of(path), flow: label, sequence, split, shown: None };
            }
            self.counters.no_path = self.counters.no_path.saturating_add(1);
            return Choice::default();
        };
        let (flow, label) = self.flows.get(now, packet.flow);
        let memory = &mut self.memory;
        let (mut copy, mut shown) = (None, None);
        let path = match (packet.treatment, self.scheduler) {
            (Treatment::Duplicated, _) | (Treatment::Dispersed, Scheduler::Duplicate) => None,
            (Treatment::Pinned, _) | (Treatment::Dispersed, Scheduler::PerFlow) => {
                scheduler::pinned(&candidates, flow.path, flow.moved_at, true)
            }
            (Treatment::Dispersed, scheduler) => match scheduler {
                Scheduler::RoundTripRatio(reading) => {
                    scheduler::round_trip_ratio(&candidates, reading, &mut self.random)
                }
                Scheduler::DelayQueue { delay, length } => {
                    scheduler::delay_queue(&candidates, delay, length, memory)
                }
                Scheduler::Weighted => scheduler::weighted(&candidates, memory),
                Scheduler::Ecf => scheduler::ecf(&candidates, &mut flow.waits),
                Scheduler::Blest { window } => scheduler::blest(&candidates, window),
                Scheduler::EarliestArrival => candidates.earliest(),
                Scheduler::Overflow => scheduler::overflow(&candidates),
                Scheduler::Auto | Scheduler::PerFlow | Scheduler::Duplicate => {
                    let chosen = self.auto.choose(&candidates, flow);
                    copy = chosen.and_then(|chosen| chosen.copy);
                    shown = copy.filter(|_| chosen.is_some_and(|chosen| chosen.only_shows));
                    chosen.map(|chosen| chosen.path)
                }
            },
        };
        let paths: PathSet = path.map_or(candidates.usable, |path| copy.into_iter().chain([path]).collect());
        if let Some(to) = path {
            self.counters.moves += u64::from(follow(flow, &candidates, to));
        }
        let choice = Choice {
            paths,
            flow: label,
            sequence: flow.take_sequence(),
            split: (paths.len() > 1 && shown.is_none()) || now < flow.split_until,
            shown,
        };
        self.auto.note_sent(packet.len);
        choice
    }

    /// The header of a packet of `len` bytes on one of the paths that were chosen for it, which it is sent by now; `None` when that is
    /// none.
    pub fn header(
        &mut self,
        now: Instant,
        choice: &Choice,
        path: PathId,
        len: u32,
        payload: MultipathPayload,
    ) -> Option<MultipathHeader> {
        let known = self.path_mut(path).filter(|_| choice.paths.contains(path))?;
        let path_sequence = known.note_sent(now, len);
        let Choice { flow, sequence, shown, .. } = *choice;
        let split = choice.split || shown == Some(path);
        let sent_at = micros(now);
        Some(MultipathHeader { flow, sequence, split, path: path.number(), path_sequence, sent_at, payload })
    }

    /// A packet of `len` bytes, without the tunnel's headers, has come with this header.
    pub fn note_received(&mut self, now: Instant, header: &MultipathHeader, len: u32) {
        if let Some(path) = PathId::new(header.path).and_then(|id| self.path_mut(id)) {
            path.note_received(now, header.sent_at, header.path_sequence, len);
        }
    }

    /// So many packets have come too late to be put in order: [`super::ResequencerCounters::late`], which the other end is told.
    pub const fn set_late(&mut self, late: u64) {
        self.late = late as u32;
    }

    /// A genuine message has come by the path that it names; what has become of the path.
    pub fn handle_feedback(&mut self, now: Instant, feedback: &PathFeedback) -> Option<(PathId, PathChange)> {
        let id = PathId::new(feedback.path)?;
        let change = self.path_mut(id)?.handle_feedback(now, feedback);
        self.auto.handle_feedback(now, &self.paths, feedback.late);
        change.map(|change| (id, change))
    }

    /// The next message to send, over the path that it names.
    pub fn poll_feedback(&mut self, now: Instant) -> Option<PathFeedback> {
        self.paths.iter_mut().flatten().find_map(|path| path.poll_feedback(now, self.late))
    }

    /// When to call [`Dispersion::handle_timeout`] and [`Dispersion::poll_feedback`].
    #[must_use]
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.paths().map(|path| path.next_timeout(now)).min()
    }

    /// Finds out which paths have gone out; to be called until it returns `None`.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<(PathId, PathChange)> {
        let mut paths = self.paths.iter_mut().flatten();
        paths.find_map(|path| path.handle_timeout(now).map(|change| (path.id(), change)))
    }
}

/// The paths that `packet` may take: those that work, and of these, if there are any, those that may have more in flight. One on which
/// nothing was ever answered, as after this end or the other has begun anew, is taken for one that works only while there is no other.
fn candidates<'a>(
    paths: &'a [Option<Path>; MAX_PATHS],
    now: Instant,
    packet: &Packet,
) -> Option<Candidates<'a>> {
    let is_open = |path: &&Path| path.is_usable() && packet.allowed.contains(path.id());
    let was_answered = |path: &Path| path.state() != PathState::Unknown;
    let any_was_answered = paths.iter().flatten().filter(is_open).any(was_answered);
    let works = |path: &&Path| is_open(path) && (was_answered(path) || !any_was_answered);
    let usable: PathSet = paths.iter().flatten().filter(works).map(Path::id).collect();
    let has_room = |path: &&Path| works(path) && path.allows(packet.len);
    let with_room = paths.iter().flatten().filter(has_room).map(Path::id).collect();
    let candidates = Candidates { now, len: packet.len, paths, usable, working: usable };
    (!usable.is_empty()).then(|| candidates.narrowed(with_room))
}

/// Where a packet goes when none of the paths works that it may take: to the one that fell silent last. It may be no worse than slow, as
/// behind a queue that grows faster than a round trip is measured, and to drop the packet would be worse in any case. Where a link is known
/// to be down there is nothing to hope for.
fn last_resort(paths: &[Option<Path>; MAX_PATHS], packet: &Packet) -> Option<PathId> {
    let allowed = paths.iter().flatten().filter(|path| packet.allowed.contains(path.id()));
    let silent = allowed.filter_map(|path| Some((path.silent_since()?, core::cmp::Reverse(path.id()))));
    silent.max().map(|(_, core::cmp::Reverse(id))| id)
}

/// The flow goes on by `to`; whether that is another path than before.
fn follow(flow: &mut Flow, candidates: &Candidates<'_>, to: PathId) -> bool {
    let Some(from) = flow.path.replace(to).filter(|&from| from != to) else { return false };
    let now = candidates.now;
    flow.moved_at = now;
    // For so long what was sent by the other path can still be on its way.
    if let Some(path) = candidates.get(from) {
        let estimate = path.estimate();
        let round_trip = estimate.round_trip.unwrap_or(super::path::FIRST_TIMEOUT);
        let way = round_trip + estimate.variation.unwrap_or_default() * 4;
        flow.split_until = flow.split_until.max(now + path.backlog(now) + way);
    }
    true
}

#[cfg(test)]
#[path = "dispersion_tests.rs"]
mod tests;
