//! The paths through a mobile node's interfaces are watched: a silent one in use is left, one that is back is registered anew. The same for
//! Mobile IPv4 and Mobile IPv6; each says as a [`PathOwner`] what is its own.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use careof_base::Instant;
use careof_wire::PathCounts;

use crate::path_merit::PathRecord;
use crate::path_monitor::{DEATH, PathMonitor, PathQuality, PathState};
use crate::path_quality::{PathChoice, Trial};
use crate::{HandoverReason, InterfaceId, PathProperties, Selection};

/// Probes of the path in use that are unanswered before others are asked whether they would do: by then most doubts are over.
const OTHERS_ASKED_AFTER: u32 = 3;
/// A path that goes silent in use for the second time within this is relied on later.
const FLAPPING: Duration = Duration::from_secs(600);
/// How much later, the first time; then each time twice as long, up to the longest.
const FIRST_DISTRUST: Duration = Duration::from_secs(5);
const LONGEST_DISTRUST: Duration = Duration::from_secs(300);
/// Probes in a row that nobody answers while other things come: the home agent knows them no longer.
const FORGOTTEN_AFTER: u32 = 16;

/// The address that a path begins with.
pub(crate) trait PathAddress: Copy + PartialEq + Debug {
    /// Bytes a probe and its answer take, about.
    const PROBE_COST: i64;
    /// The longest datagram, bytes, that may be nothing but an acknowledgement of TCP, which nobody answers: the header of IP, 20 of TCP,
    /// 12 of options. What asks for something is mostly longer, and a SYN is.
    const ACKNOWLEDGEMENT: u64;
}

impl PathAddress for Ipv4Addr {
    const PROBE_COST: i64 = 220;
    const ACKNOWLEDGEMENT: u64 = 52;
}

impl PathAddress for Ipv6Addr {
    const PROBE_COST: i64 = 260;
    const ACKNOWLEDGEMENT: u64 = 72;
}

/// What is known of the path through an interface.
#[derive(Clone, Debug)]
pub(crate) struct WatchedPath<A> {
    /// Whether packets get through.
    pub(crate) monitor: PathMonitor<A>,
    /// How good it is.
    pub(crate) record: PathRecord<A>,
    /// Times that the path was found silent in use, of late, and when last.
    deaths: (u32, Instant),
    /// Not to be relied on before then, since it went silent in use more than once.
    pub(crate) usable_from: Instant,
}

impl<A> Default for WatchedPath<A> {
    fn default() -> Self {
        Self {
            monitor: PathMonitor::default(),
            record: PathRecord::default(),
            deaths: (0, Instant::ZERO),
            usable_from: Instant::ZERO,
        }
    }
}

impl<A: PathAddress> WatchedPath<A> {
    /// Whether an interface with this path may be relied on.
    pub(crate) fn is_usable(&self, now: Instant) -> bool {
        !self.monitor.is_silent() && self.usable_from <= now
    }

    pub(crate) fn quality(&self) -> PathQuality {
        PathQuality {
            least_round_trip: self.record.least_round_trip(),
            fault: self.record.bad().map(|bad| bad.fault),
            avoided: self.record.avoided.is_some(),
            ..self.monitor.quality()
        }
    }

    /// The path in use is silent.
    fn count_death(&mut self, now: Instant) {
        let (before, at) = self.deaths;
        let recent = before > 0 && now < at + FLAPPING;
        self.deaths = (if recent { before.saturating_add(1) } else { 1 }, now);
    }

    /// How long the path, back again, is not relied on.
    fn distrust(&self) -> Duration {
        let again = self.deaths.0.saturating_sub(1).min(16);
        FIRST_DISTRUST.saturating_mul((1 << again) - 1).min(LONGEST_DISTRUST)
    }
}

/// An interface of a mobile node whose paths are watched.
pub(crate) trait PathInterface {
    /// Of the protocol.
    type Address: PathAddress;

    fn id(&self) -> InterfaceId;
    fn watch(&self) -> &WatchedPath<Self::Address>;
    fn watch_mut(&mut self) -> &mut WatchedPath<Self::Address>;
    /// What the owner has said of the path.
    fn told(&self) -> PathProperties;
    fn is_metered(&self) -> bool;
    fn preference(&self) -> u8;
    /// Since when a handover there would work.
    fn viable_since(&self) -> Option<Instant>;

    /// Where the interface stands in the owner's order: those that cost nothing first.
    fn standing(&self) -> (bool, u8) {
        (!self.is_metered(), self.preference())
    }

    /// The same where something is needed that works: those that were left as bad come last.
    fn standing_in_need(&self) -> (bool, bool, u8) {
        let (free, preference) = self.standing();
        (self.watch().record.avoided.is_none(), free, preference)
    }
}

/// What a mobile node is configured with, and how far it has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathCourse {
    /// Whether paths are watched at all.
    pub(crate) watches: bool,
    /// Whether bad paths are left.
    pub(crate) leaves_bad: bool,
    pub(crate) selection: Selection,
    /// The interface in use.
    pub(crate) active: Option<usize>,
    /// The interface that is, or is to be, used.
    pub(crate) desired: Option<usize>,
    /// A handover is not registered yet.
    pub(crate) is_moving: bool,
    /// The owner chose the interface.
    pub(crate) pinned: bool,
    /// The owner has ended the service.
    pub(crate) left: bool,
}

/// What is known of all paths together.
#[derive(Debug)]
pub(crate) struct PathSupervision {
    /// The home agent has answered a probe.
    pub(crate) probes_understood: bool,
    /// A path that was come to from a bad one.
    pub(crate) trial: Option<Trial>,
    /// When paths are to be judged.
    pub(crate) judge_at: Instant,
}

impl Default for PathSupervision {
    fn default() -> Self {
        Self { probes_understood: false, trial: None, judge_at: Instant::MAX }
    }
}

/// What a probe says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeFields {
    pub(crate) sequence: u32,
    pub(crate) nonce: u64,
    pub(crate) counts: PathCounts,
}

/// What an owner's handover events tell of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathNews {
    Silent { interface: InterfaceId, silence: Duration },
    Answers { interface: InterfaceId },
}

/// A mobile node whose paths are watched.
pub(crate) trait PathOwner {
    type Address: PathAddress;
    type Interface: PathInterface<Address = Self::Address>;

    fn interfaces(&self) -> &[Self::Interface];
    fn interfaces_mut(&mut self) -> &mut [Self::Interface];
    fn course(&self) -> PathCourse;
    fn supervision(&self) -> &PathSupervision;
    fn supervision_mut(&mut self) -> &mut PathSupervision;
    /// The address from which the path through interface `index` can be watched: one of its own, while the node is served.
    fn watched_from(&self, now: Instant, index: usize) -> Option<Self::Address>;
    /// Whether an interface could be used.
    fn is_usable(&self, now: Instant, index: usize) -> bool;
    /// A number that nobody else can know.
    fn next_nonce(&mut self) -> u64;
    /// Sends a probe through interface `index`, from the address that its path is watched from.
    fn transmit_probe(&mut self, index: usize, from: Self::Address, probe: ProbeFields);
    /// Begins a handover to interface `to` that the owner has not asked for.
    fn hand_over(&mut self, now: Instant, to: usize, reason: HandoverReason);
    /// What the owner chose is silent.
    fn unpin(&mut self);
    /// Ends what is under way on interface `index`.
    fn cancel_registration(&mut self, now: Instant, index: usize);
    /// The path in use, through interface `index`, has been silent since `since`: what says otherwise is not sent again.
    fn path_in_use_lost(&mut self, index: usize, since: Instant);
    /// Packets come through interface `index` again: what was lost with it is told.
    fn path_is_back(&mut self, index: usize);
    fn tell(&mut self, news: PathNews);
}

/// What follows from watching.
pub(crate) trait PathWatch: PathOwner {
    fn monitor_of(&mut self, interface: InterfaceId) -> Option<&mut PathMonitor<Self::Address>> {
        if !self.course().watches {
            return None;
        }
        let known = self.interfaces_mut().iter_mut().find(|known| known.id() == interface);
        known.map(|known| &mut known.watch_mut().monitor)
    }

    /// What is known of how the path through `interface` works.
    fn quality_of(&self, interface: InterfaceId) -> PathQuality {
        let known = self.interfaces().iter().find(|known| known.id() == interface);
        known.map(|known| known.watch().quality()).unwrap_or_default()
    }

    /// When something is to be done about a path.
    fn watch_deadline(&self) -> Option<Instant> {
        let watched = self.interfaces().iter().filter_map(|interface| interface.watch().monitor.deadline());
        let judged = Some(self.supervision().judge_at).filter(|&at| at < Instant::MAX);
        watched.chain(judged).min()
    }

    /// Brings in line which paths are watched.
    fn choose_watched(&mut self, now: Instant) {
        let course = self.course();
        if !course.watches {
            return;
        }
        for index in 0..self.interfaces().len() {
            let (care_of, in_use) = (self.watched_from(now, index), course.active == Some(index));
            let Some(interface) = self.interfaces_mut().get_mut(index) else { continue };
            let watch = interface.watch_mut();
            if watch.monitor.care_of() != care_of {
                watch.usable_from = Instant::ZERO;
            }
            watch.monitor.watch(now, care_of, in_use);
            watch.record.watch(care_of);
        }
    }

    /// Does what is due about paths.
    fn watch_paths(&mut self, now: Instant) {
        if !self.course().watches {
            return;
        }
        for index in 0..self.interfaces().len() {
            let understood = self.supervision().probes_understood;
            let Some(interface) = self.interfaces_mut().get_mut(index) else { continue };
            let monitor = &mut interface.watch_mut().monitor;
            if monitor.deadline().is_none_or(|at| at > now) {
                continue;
            }
            let due = monitor.poll(now, understood);
            let is_alive = monitor.state() == PathState::Alive;
            if is_alive && monitor.missing() >= FORGOTTEN_AFTER {
                self.supervision_mut().probes_understood = false;
            }
            if due.returned {
                self.path_answers(now, index);
            }
            if due.died {
                self.path_is_silent(now, index);
            }
            if due.probe {
                self.probe(now, index);
                self.ask_others(now, index);
            }
        }
    }

    /// The path through interface `index` is in doubt, or silent: others say whether they would do.
    fn ask_others(&mut self, now: Instant, index: usize) {
        let active = self.course().active;
        let Some(monitor) = self.interfaces().get(index).map(|interface| &interface.watch().monitor) else {
            return;
        };
        let Some(since) = monitor.doubt_since().filter(|_| active == Some(index)) else { return };
        let unanswered = monitor.unanswered();
        if unanswered < OTHERS_ASKED_AFTER {
            return;
        }
        for other in (0..self.interfaces().len()).filter(|&other| other != index) {
            let Some(interface) = self.interfaces_mut().get_mut(other) else { continue };
            let monitor = &mut interface.watch_mut().monitor;
            let silent = monitor.is_silent();
            if !silent && monitor.should_vouch(now, since, unanswered >= DEATH) {
                self.probe(now, other);
            }
        }
    }

    /// Sends a probe through interface `index`.
    fn probe(&mut self, now: Instant, index: usize) {
        let nonce = self.next_nonce();
        let Some(interface) = self.interfaces_mut().get_mut(index) else { return };
        let monitor = &mut interface.watch_mut().monitor;
        let Some(care_of) = monitor.care_of() else { return };
        let counts = monitor.counts();
        let sequence = monitor.probe_sent(now, nonce);
        self.transmit_probe(index, care_of, ProbeFields { sequence, nonce, counts });
    }

    /// Whether the probe through interface `index` with these numbers is waited for.
    fn awaits_answer(&self, index: usize, sequence: u32, nonce: u64) -> bool {
        let interface = self.interfaces().get(index);
        interface.is_some_and(|interface| interface.watch().monitor.waits_for(sequence, nonce))
    }

    /// The answer to a probe through interface `index` has come, and is genuine; with what the home agent has counted.
    fn take_genuine_answer(&mut self, now: Instant, index: usize, sequence: u32, peer: Option<PathCounts>) {
        self.supervision_mut().probes_understood = true;
        let interface = self.interfaces_mut().get_mut(index);
        if let Some(answer) = interface.and_then(|i| i.watch_mut().monitor.answered(now, sequence, peer)) {
            self.take_answer(now, index, &answer);
        }
        self.watch_paths(now);
        self.leave_silent_path(now);
        self.judge_paths(now);
    }

    /// A request of ours leaves through interface `index`: an answer is to come.
    fn request_leaves(&mut self, now: Instant, index: usize) {
        if let Some(interface) = self.interfaces_mut().get_mut(index) {
            interface.watch_mut().monitor.expect(now);
        }
    }

    /// A genuine reply to a request through interface `index` has come.
    fn reply_came(&mut self, now: Instant, index: usize) {
        if let Some(interface) = self.interfaces_mut().get_mut(index) {
            interface.watch_mut().monitor.heard(now);
        }
    }

    /// Nothing gets through interface `index`.
    fn path_is_silent(&mut self, now: Instant, index: usize) {
        let in_use = self.course().active == Some(index);
        let Some(interface) = self.interfaces_mut().get_mut(index) else { return };
        let id = interface.id();
        let watch = interface.watch_mut();
        let last = watch.monitor.last_received();
        let since = last.or(watch.monitor.doubt_since()).unwrap_or(now);
        // Of a path that is not used nothing is lost.
        if in_use {
            watch.count_death(now);
            self.path_in_use_lost(index, since);
        }
        let silence = now.saturating_duration_since(since);
        self.tell(PathNews::Silent { interface: id, silence });
        self.leave_silent_path(now);
    }

    /// Something comes through interface `index` again.
    fn path_answers(&mut self, now: Instant, index: usize) {
        let course = self.course();
        let hold = match course.selection {
            Selection::Manual => Duration::ZERO,
            Selection::Preferred { hold } => hold,
        };
        let Some(interface) = self.interfaces_mut().get_mut(index) else { return };
        let id = interface.id();
        let watch = interface.watch_mut();
        if course.active != Some(index) {
            let distrust = watch.distrust();
            watch.usable_from = now + distrust;
            watch.monitor.put_on_probation(now, now + distrust + hold);
        }
        self.path_is_back(index);
        self.tell(PathNews::Answers { interface: id });
    }

    /// Under [`Selection::Preferred`]: when a better interface will have worked for long enough.
    fn hold_deadline(&self, now: Instant) -> Option<Instant> {
        let course = self.course();
        let Selection::Preferred { hold } = course.selection else { return None };
        let current = self.interfaces().get(course.desired?)?;
        // One that is silent is not left for one that has worked for long, but for one that answers.
        if course.pinned || course.left || current.watch().monitor.is_silent() {
            return None;
        }
        let better = self.interfaces().iter().filter(|interface| {
            interface.standing_in_need() > current.standing_in_need()
                && interface.watch().record.avoided.is_none()
        });
        let from = |interface: &Self::Interface| match interface.viable_since() {
            Some(since) => Some(since + hold),
            None => Some(interface.watch().usable_from).filter(|&usable_from| usable_from > now),
        };
        better.filter_map(from).min()
    }

    /// Under [`Selection::Preferred`] the path in use is left, if it is silent, for the best other one that has answered since.
    /// What the owner chose is chosen as long as it works.
    fn leave_silent_path(&mut self, now: Instant) {
        let course = self.course();
        let Selection::Preferred { .. } = course.selection else { return };
        let Some(active) = course.active else { return };
        let silent =
            |index: usize| self.interfaces().get(index).is_some_and(|i| i.watch().monitor.is_silent());
        // Somewhere else already, or on the way there.
        let leaves = course.desired.is_some_and(|desired| desired != active && !silent(desired));
        if !silent(active) || leaves || course.left {
            return;
        }
        let doubted = self.interfaces().get(active).and_then(|i| i.watch().monitor.doubt_since());
        let Some(since) = doubted else { return };
        let others =
            (0..self.interfaces().len()).filter(|&index| index != active && self.is_usable(now, index));
        let others = others.filter_map(|index| Some((index, self.interfaces().get(index)?)));
        let rank = |(index, interface): &(usize, &Self::Interface)| {
            (interface.standing_in_need(), core::cmp::Reverse(*index))
        };
        let (watched, others): (Vec<_>, Vec<_>) =
            others.partition(|(_, interface)| interface.watch().monitor.care_of().is_some());
        let best = if watched.iter().all(|(_, other)| other.watch().monitor.is_silent()) {
            // Nobody can say beforehand whether a foreign agent's path works, or that at home.
            others.into_iter().max_by_key(rank)
        } else {
            let answers = |interface: &Self::Interface| interface.watch().monitor.answered_since(since);
            watched.into_iter().filter(|(_, other)| answers(other)).max_by_key(rank)
        };
        let Some((best, _)) = best else { return };
        self.cancel_registration(now, active);
        self.unpin();
        self.hand_over(now, best, HandoverReason::PathSilent);
    }
}

impl<T: PathOwner + ?Sized> PathWatch for T {}
