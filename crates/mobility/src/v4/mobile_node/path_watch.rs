//! The paths through a mobile node's interfaces are watched: a silent one in use is left, one that is back is registered anew.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip4::{AuthenticationKind, Message, PathProbe, PathProbeKind};

use super::MobileNode;
use super::attachment::{Attachment, Interface};
use super::registration::Slot;
use crate::Selection;
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::path_monitor::{DEATH, PathMonitor};
use crate::v4::{
    DropReason, HandoverEvent, HandoverReason, InterfaceId, Notice, PathQuality, PathState, Transmit,
    TransmitPayload, authentication,
};

/// Probes of the path in use that are unanswered before others are asked whether they would do: by then most doubts are over.
const OTHERS_ASKED_AFTER: u32 = 3;
/// A path that goes silent in use for the second time within this is relied on later.
const FLAPPING: Duration = Duration::from_secs(600);
/// How much later, the first time; then each time twice as long, up to the longest.
const FIRST_DISTRUST: Duration = Duration::from_secs(5);
const LONGEST_DISTRUST: Duration = Duration::from_secs(300);
/// Probes in a row that nobody answers while other things come: the home agent knows them no longer.
const FORGOTTEN_AFTER: u32 = 16;

impl MobileNode {
    /// Packets for, or by way of, the home agent were put into the tunnel through `interface`: so many, and so many bytes. To be
    /// called for each, or for several that left at the same time; it costs next to nothing. Returns whether
    /// [`MobileNode::next_timeout`] has come forward.
    pub fn note_sent(&mut self, now: Instant, interface: InterfaceId, packets: u32, bytes: u64) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_sent(now, packets, bytes))
    }

    /// Packets came out of the tunnel through `interface`; as [`MobileNode::note_sent`].
    pub fn note_received(&mut self, now: Instant, interface: InterfaceId, packets: u32, bytes: u64) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_received(now, packets, bytes))
    }

    fn monitor_of(&mut self, interface: InterfaceId) -> Option<&mut PathMonitor> {
        if !self.config.path_monitor {
            return None;
        }
        let known = self.interfaces.iter_mut().find(|known| known.config.id == interface);
        known.map(|known| &mut known.monitor)
    }

    /// What is known of how the path through `interface` works.
    #[must_use]
    pub fn path_quality(&self, interface: InterfaceId) -> PathQuality {
        let known = self.interfaces.iter().find(|known| known.config.id == interface);
        let quality = known.map(|known| PathQuality {
            least_round_trip: known.record.least_round_trip(),
            fault: known.record.bad().map(|bad| bad.fault),
            avoided: known.record.avoided.is_some(),
            ..known.monitor.quality()
        });
        quality.unwrap_or_default()
    }

    /// When something is to be done about a path.
    pub(super) fn watch_deadline(&self) -> Option<Instant> {
        self.interfaces.iter().filter_map(|interface| interface.monitor.deadline()).min()
    }

    /// The address from which the path through interface `index` can be watched: one of its own, while the node is served.
    fn watched_from(&self, index: usize) -> Option<Ipv4Addr> {
        if !self.config.path_monitor || self.left || self.active.is_none() || self.home_agent.is_none() {
            return None;
        }
        match self.attachment(index)? {
            Attachment::CoLocated { care_of, .. } => Some(care_of),
            Attachment::Home | Attachment::ForeignAgent { .. } => None,
        }
    }

    /// Brings in line which paths are watched.
    pub(super) fn choose_watched(&mut self, now: Instant) {
        if !self.config.path_monitor {
            return;
        }
        for index in 0..self.interfaces.len() {
            let (care_of, in_use) = (self.watched_from(index), self.active == Some(index));
            let Some(interface) = self.interfaces.get_mut(index) else { continue };
            if interface.monitor.care_of() != care_of {
                interface.usable_from = Instant::ZERO;
            }
            interface.monitor.watch(now, care_of, in_use);
            interface.record.watch(care_of);
        }
    }

    /// Does what is due about paths.
    pub(super) fn watch_paths(&mut self, now: Instant) {
        if !self.config.path_monitor {
            return;
        }
        for index in 0..self.interfaces.len() {
            let understood = self.probes_understood;
            let Some(interface) = self.interfaces.get_mut(index) else { continue };
            if interface.monitor.deadline().is_none_or(|at| at > now) {
                continue;
            }
            let due = interface.monitor.poll(now, understood);
            let is_alive = interface.monitor.state() == PathState::Alive;
            if is_alive && interface.monitor.missing() >= FORGOTTEN_AFTER {
                self.probes_understood = false;
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
        let Some(monitor) = self.interfaces.get(index).map(|interface| &interface.monitor) else { return };
        let Some(since) = monitor.doubt_since().filter(|_| self.active == Some(index)) else { return };
        let unanswered = monitor.unanswered();
        if unanswered < OTHERS_ASKED_AFTER {
            return;
        }
        for other in (0..self.interfaces.len()).filter(|&other| other != index) {
            let Some(interface) = self.interfaces.get_mut(other) else { continue };
            let silent = interface.monitor.is_silent();
            if !silent && interface.monitor.should_vouch(now, since, unanswered >= DEATH) {
                self.probe(now, other);
            }
        }
    }

    /// Sends a probe through interface `index`.
    pub(super) fn probe(&mut self, now: Instant, index: usize) {
        let Some(home_agent) = self.home_agent else { return };
        let nonce = self.random.next_u64();
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let Some(care_of) = interface.monitor.care_of() else { return };
        let counts = interface.monitor.counts();
        let probe = PathProbe {
            kind: PathProbeKind::Probe,
            home_address: self.config.home_address,
            sequence: interface.monitor.probe_sent(now, nonce),
            nonce,
            counts: Some(counts),
            extensions: Vec::new(),
        };
        let mut bytes = Message::PathProbe(probe).emit();
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, &self.config.security);
        self.outbox.transmit(Transmit {
            interface: Some(interface.config.id),
            source: care_of,
            destination: home_agent,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: REGISTRATION_PORT,
                bytes,
            },
        });
    }

    /// What answers a probe. It counts if somebody has written it who knows the key and has seen the probe.
    pub(super) fn handle_probe_answer(
        &mut self,
        now: Instant,
        (interface, source): (InterfaceId, Ipv4Addr),
        bytes: &[u8],
        answer: &PathProbe,
    ) {
        let index = self.index(interface).filter(|_| self.config.path_monitor);
        let Some(index) = index.filter(|_| {
            answer.kind == PathProbeKind::Answer && answer.home_address == self.config.home_address
        }) else {
            return self.outbox.drop(DropReason::NotForUs, source);
        };
        let Some(interface) = self.interfaces.get(index) else { return };
        if self.home_agent != Some(source) {
            return self.outbox.drop(DropReason::UnexpectedSource, source);
        }
        if !interface.monitor.waits_for(answer.sequence, answer.nonce) {
            return self.outbox.drop(DropReason::UnexpectedReply, source);
        }
        let message = Message::PathProbe(answer.clone());
        let association = core::iter::once(&self.config.security);
        let kind = AuthenticationKind::MobileHome;
        if let Err(reason) = authentication::check(bytes, &message, kind, association) {
            return self.outbox.drop(reason, source);
        }
        self.probes_understood = true;
        let interface = self.interfaces.get_mut(index);
        if let Some(answer) = interface.and_then(|i| i.monitor.answered(now, answer.sequence, answer.counts))
        {
            self.take_answer(now, index, &answer);
        }
        self.watch_paths(now);
        self.leave_silent_path(now);
        self.judge_paths(now);
    }

    /// A request of ours leaves through interface `index`: an answer is to come.
    pub(super) fn request_leaves(&mut self, index: usize) {
        let now = self.outbox.now();
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.monitor.expect(now);
        }
    }

    /// A genuine reply has come.
    pub(super) fn reply_came(&mut self, now: Instant, slot: Slot) {
        if let Some(interface) = self.carrier(slot).and_then(|index| self.interfaces.get_mut(index)) {
            interface.monitor.heard(now);
        }
    }

    /// Nothing gets through interface `index`.
    fn path_is_silent(&mut self, now: Instant, index: usize) {
        let in_use = self.active == Some(index);
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let (id, last) = (interface.config.id, interface.monitor.last_received());
        let since = last.or(interface.monitor.doubt_since()).unwrap_or(now);
        // Of a path that is not used nothing is lost.
        if in_use {
            interface.interrupted = interface.interrupted.or(Some(since));
            let (before, at) = interface.deaths;
            let recent = before > 0 && now < at + FLAPPING;
            interface.deaths = (if recent { before.saturating_add(1) } else { 1 }, now);
            // It says that nothing is lost: its reply would have the home agent believe it.
            if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent()) {
                pending.identification = None;
                pending.bytes.clear();
            }
        }
        let silence = now.saturating_duration_since(since);
        self.handover_event(HandoverEvent::PathSilent { interface: id, silence });
        // A handover away from it told that nothing is lost, too.
        let desired = self.desired.filter(|&desired| in_use && desired != index);
        let request = desired.and_then(|desired| self.interfaces.get_mut(desired)?.pending.as_mut());
        if let Some(request) = request.filter(|request| request.was_sent() && self.config.report_paths) {
            request.begin_again();
        }
        self.leave_silent_path(now);
    }

    /// Something comes through interface `index` again.
    fn path_answers(&mut self, now: Instant, index: usize) {
        let hold = match self.config.selection {
            Selection::Manual => Duration::ZERO,
            Selection::Preferred { hold } => hold,
        };
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let again = interface.deaths.0.saturating_sub(1).min(16);
        let distrust = FIRST_DISTRUST.saturating_mul((1 << again) - 1).min(LONGEST_DISTRUST);
        if self.active != Some(index) {
            interface.usable_from = now + distrust;
            interface.monitor.put_on_probation(now, now + distrust + hold);
        }
        if self.config.report_paths && interface.interrupted.is_some() {
            interface.refresh |= interface.held.is_some();
            if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent()) {
                pending.begin_again();
            }
        }
        let interface = interface.config.id;
        self.handover_event(HandoverEvent::PathAnswers { interface });
    }

    /// Under [`Selection::Preferred`] the path in use is left, if it is silent, for the best other one that has answered since.
    /// What the owner chose is chosen as long as it works.
    fn leave_silent_path(&mut self, now: Instant) {
        let Selection::Preferred { .. } = self.config.selection else { return };
        let Some(active) = self.active else { return };
        let silent = |index: usize| self.interfaces.get(index).is_some_and(|i| i.monitor.is_silent());
        // Somewhere else already, or on the way there.
        let leaves = self.desired.is_some_and(|desired| desired != active && !silent(desired));
        if !silent(active) || leaves || self.left {
            return;
        }
        let Some(since) = self.interfaces.get(active).and_then(|i| i.monitor.doubt_since()) else { return };
        let others =
            (0..self.interfaces.len()).filter(|&index| index != active && self.is_viable(now, index));
        let others = others.filter_map(|index| Some((index, self.interfaces.get(index)?)));
        let rank = |(index, interface): &(usize, &Interface)| {
            (interface.standing_in_need(), core::cmp::Reverse(*index))
        };
        let (watched, others): (Vec<_>, Vec<_>) =
            others.partition(|(_, interface)| interface.monitor.care_of().is_some());
        let best = if watched.is_empty() {
            // Nobody can say beforehand whether a foreign agent's path works.
            others.into_iter().max_by_key(rank)
        } else {
            watched.into_iter().filter(|(_, other)| other.monitor.answered_since(since)).max_by_key(rank)
        };
        let Some((best, _)) = best else { return };
        self.cancel_pending(now, active);
        self.pinned = false;
        self.begin_handover(now, best, Notice::None, HandoverReason::PathSilent);
    }
}
