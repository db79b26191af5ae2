//! The course of a handover: which interface is wanted, which is used, and what is left behind.

use core::net::Ipv4Addr;

use careof_base::Instant;

use super::attachment::{Attachment, Interface};
use super::registration::{Pending, Purpose};
use super::{MobileNode, PathProperties};
use crate::Selection;
use crate::path_watch::{PathInterface, PathWatch};
use crate::v4::{
    ArpEvent, ArpOwner, Event, HandoverEvent, HandoverFailure, HandoverReason, HandoverStyle, Notice,
};

/// A handover that is not registered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handover {
    from: Option<usize>,
    pub(super) to: usize,
    started: Instant,
}

/// The old interface of a registered handover, still listened to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retiring {
    pub(super) from: usize,
    to: usize,
    started: Instant,
    /// When it is released without being told.
    pub(super) until: Option<Instant>,
}

impl MobileNode {
    pub(super) fn handover_event(&mut self, event: HandoverEvent) {
        self.outbox.event(Event::Handover(event));
    }

    fn path_of(&self, index: Option<usize>) -> PathProperties {
        index
            .and_then(|index| self.interfaces.get(index))
            .map_or(PathProperties::default(), Interface::known_path)
    }

    /// Whether packets can be sent and received through the interface as things stand.
    fn works(&self, index: usize) -> bool {
        let works = |interface: &Interface| {
            interface.up && interface.held.is_some() && !interface.watch.monitor.is_silent()
        };
        self.interfaces.get(index).is_some_and(works)
    }

    /// Begins a handover to interface `to`, ending another one that was under way.
    pub(super) fn begin_handover(&mut self, now: Instant, to: usize, notice: Notice, why: HandoverReason) {
        if self.handover.is_some_and(|handover| handover.to == to) {
            return;
        }
        let lost = |handover: Handover| self.interfaces.get(handover.to).is_some_and(|to| !to.up);
        let reason = match self.handover {
            Some(handover) if lost(handover) => HandoverFailure::LinkLost,
            _ => HandoverFailure::Superseded,
        };
        self.abandon_handover(now, reason);
        if self.retiring.is_some_and(|retiring| retiring.from == to) {
            // Back to where it came from; what is held there is of use again.
            self.end_retirement(now);
        }
        self.desired = Some(to);
        if let Some(interface) = self.interfaces.get_mut(to) {
            interface.blocked = None;
        }
        let in_place = self.active == Some(to) && self.works(to) && self.is_held_in_place(to);
        // A request sent for the handover just abandoned may have been accepted already: the way back is then
        // registered anew, and is a handover whose end the owner is told.
        let unsure = self.interfaces.get(to).is_some_and(|interface| interface.refresh);
        if !in_place || unsure {
            self.initiate(now, to, notice, why);
        }
    }

    /// Whether the binding held for an interface is for where that interface is attached now.
    fn is_held_in_place(&self, index: usize) -> bool {
        let attachment = self.attachment(index);
        let held = self.interfaces.get(index).and_then(|interface| interface.held);
        held.is_some_and(|held| attachment.is_none_or(|attachment| attachment == held.attachment))
    }

    fn initiate(&mut self, now: Instant, to: usize, notice: Notice, reason: HandoverReason) {
        let from = self.active;
        let style = match from {
            Some(from) if self.works(from) && (from != to || self.is_held_in_place(to)) => {
                HandoverStyle::MakeBeforeBreak
            }
            _ => HandoverStyle::BreakBeforeMake,
        };
        let Some(to_id) = self.id(to) else { return };
        let (old, new) = (self.path_of(from), self.path_of(Some(to)));
        let from_id = from.and_then(|from| self.id(from));
        self.handover = Some(Handover { from, to, started: now });
        let (from, to) = (from_id, to_id);
        self.handover_event(HandoverEvent::Initiated { from, to, notice, reason, style, old, new });
    }

    /// Ends a handover that is not registered.
    pub(super) fn abandon_handover(&mut self, now: Instant, reason: HandoverFailure) {
        let Some(handover) = self.handover.take() else { return };
        self.cancel_pending(now, handover.to);
        let from = handover.from.and_then(|from| self.id(from));
        if let Some(to) = self.id(handover.to) {
            self.handover_event(HandoverEvent::Failed { from, to, reason });
        }
    }

    /// Gives up the handover to `to`, if there is one and the interface in use still works; returns whether
    /// that is so.
    pub(super) fn give_up_handover(&mut self, now: Instant, to: usize, reason: HandoverFailure) -> bool {
        let works = self.active.is_some_and(|active| active != to && self.works(active));
        if !works || self.handover.is_none_or(|handover| handover.to != to) {
            return false;
        }
        self.abandon_handover(now, reason);
        self.desired = self.active;
        true
    }

    /// No reply has come through interface `index` for too long. Returns whether that is the end of the
    /// registration there: a handover to it has failed, or another interface can be used instead.
    pub(super) fn leave_silent(&mut self, now: Instant, index: usize, attachment: Attachment) -> bool {
        let chooses = matches!(self.config.selection, Selection::Preferred { .. });
        if self.give_up_handover(now, index, HandoverFailure::NoReply) {
            if chooses {
                self.block(now, index, attachment);
            }
            return true;
        }
        let other = |other: usize| other != index && self.is_viable(now, other);
        if !chooses || !(0..self.interfaces.len()).any(other) {
            return false;
        }
        if self.handover.is_some_and(|handover| handover.to == index) {
            self.abandon_handover(now, HandoverFailure::NoReply);
        }
        self.cancel_pending(now, index);
        self.block(now, index, attachment);
        true
    }

    /// A denial that nothing can be done about.
    pub(super) fn refused(
        &mut self,
        now: Instant,
        index: usize,
        attachment: Attachment,
        code: careof_wire::mip4::ReplyCode,
    ) {
        let reason = HandoverFailure::Denied(code);
        if !self.give_up_handover(now, index, reason) && self.handover.is_some_and(|h| h.to == index) {
            // Nowhere to go back to: the handover has failed, but the node keeps trying, from time to time.
            self.abandon_handover(now, reason);
        }
        self.block(now, index, attachment);
    }

    /// No more registrations with `attachment` for a while, which doubles each time.
    pub(super) fn block(&mut self, now: Instant, index: usize, attachment: Attachment) {
        let longest = self.config.retransmission.maximum;
        let first = self.config.retransmission.minimum * 2;
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        interface.denials = interface.denials.saturating_add(1);
        let wait = first.saturating_mul(1 << interface.denials.min(16)).min(longest).max(first);
        interface.blocked = Some((attachment, now + wait));
        interface.pending = None;
    }

    /// The registration of interface `index` was accepted.
    pub(super) fn registered(
        &mut self,
        now: Instant,
        index: usize,
        attempts: u32,
        round_trip: core::time::Duration,
    ) {
        let handover = match self.handover {
            Some(handover) if handover.to == index => handover,
            // A renewal.
            _ if self.active == Some(index) || self.desired != Some(index) => return,
            _ => Handover { from: self.active, to: index, started: now },
        };
        self.handover = None;
        let Some(to) = self.id(index) else { return };
        if self.retiring.is_some() {
            self.terminate(now);
        }
        let from = handover.from;
        self.active = Some(index);
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.watch.record.avoided = None;
        }
        let care_of = self.interfaces.get(index).and_then(|i| i.held).and_then(|h| h.attachment.care_of());
        let latency = now - handover.started;
        let (old, new) = (self.path_of(from), self.path_of(Some(index)));
        let from_id = from.and_then(|from| self.id(from));
        // With several paths at once no binding ends with the handover.
        let others = from.filter(|&from| from != index && self.config.multipath.is_none());
        let keeps_old =
            others.and_then(|from| self.interfaces.get(from)).is_some_and(|old| old.held.is_some());
        self.handover_event(HandoverEvent::Registered {
            from: from_id,
            to,
            care_of,
            attempts,
            latency,
            round_trip,
            old,
            new,
            keeps_old,
        });
        match from.filter(|&from| from != index) {
            Some(from) if self.config.multipath.is_some() => {
                // It remains a path beside the new one.
                let duration = now - handover.started;
                self.handover_event(HandoverEvent::Terminated { from: from_id, to, duration });
                if self.interfaces.get(from).is_none_or(|old| !old.up) {
                    self.release_binding(now, from);
                }
            }
            Some(from) => {
                let until = self.config.keep_old.map(|span| now + span);
                self.retiring = Some(Retiring { from, to: index, started: handover.started, until });
                if self.interfaces.get(from).is_none_or(|old| !old.up || old.watch.monitor.is_silent()) {
                    self.terminate(now);
                }
            }
            None => {
                let duration = now - handover.started;
                self.handover_event(HandoverEvent::Terminated { from: from_id, to, duration });
            }
        }
    }

    /// The old interface of the last handover is not listened to any longer.
    pub(super) fn terminate(&mut self, now: Instant) {
        if let Some(old) = self.end_retirement(now) {
            self.release_binding(now, old);
        }
    }

    /// Says that the last handover is over; returns the interface it has left.
    fn end_retirement(&mut self, now: Instant) -> Option<usize> {
        let retiring = self.retiring.take()?;
        let from = self.id(retiring.from);
        if let Some(to) = self.id(retiring.to) {
            let duration = now - retiring.started;
            self.handover_event(HandoverEvent::Terminated { from, to, duration });
        }
        Some(retiring.from)
    }

    /// Asks the home agent to end the binding of an interface that is not in use, if there is one.
    pub(super) fn release_binding(&mut self, now: Instant, index: usize) {
        let held = self.interfaces.get(index).and_then(|interface| interface.held);
        self.forget_binding(index, crate::v4::Change::Removed);
        if let Some(care_of) = held.and_then(|held| held.attachment.care_of()) {
            self.release_care_of(now, care_of);
        }
    }

    /// The release of an address that is held again, or about to be, would undo that.
    fn drop_needless_releases(&mut self) {
        let used = |care_of| {
            self.interfaces.iter().any(|interface| {
                let held = interface.held.and_then(|held| held.attachment.care_of());
                let pending = interface.pending.as_ref().and_then(|pending| pending.attachment.care_of());
                held == Some(care_of) || pending == Some(care_of)
            })
        };
        let keep = |pending: &Pending| match pending.purpose {
            Purpose::Release { care_of } => !used(care_of),
            Purpose::Register | Purpose::Farewell => true,
        };
        let farewells = core::mem::take(&mut self.farewells);
        self.farewells = farewells.into_iter().filter(keep).collect();
    }

    /// Asks the home agent to end a binding that no interface holds.
    pub(super) fn release_care_of(&mut self, now: Instant, care_of: Ipv4Addr) {
        let holds = |interface: &Interface| {
            interface.held.is_some_and(|held| held.attachment.care_of() == Some(care_of))
        };
        if let Some(by) = self.active.and_then(|active| self.attachment(active))
            && !self.interfaces.iter().any(holds)
        {
            self.farewell(now, Purpose::Release { care_of }, by);
        }
    }

    pub(super) fn farewell(&mut self, now: Instant, purpose: Purpose, by: Attachment) {
        self.farewells.retain(|pending| pending.purpose != purpose);
        // One for each interface is all that can be needed.
        if self.farewells.len() < self.interfaces.len() {
            let round_trip = self.round_trip(self.active.unwrap_or(usize::MAX));
            self.farewells.push(Pending::new(now, purpose, by, &self.config.retransmission, round_trip));
        }
    }

    /// Brings what is under way in line with what is wanted and possible. Called after everything that
    /// could have changed either.
    pub(super) fn reconcile(&mut self, now: Instant) {
        self.choose_watched(now);
        // What is given up on the way changes what is wanted; each round gives up at least one thing.
        for _ in 0..=2 * self.interfaces.len() {
            if !self.left {
                self.choose(now);
                for index in 0..self.interfaces.len() {
                    self.reconcile_registration(now, index);
                }
            }
            for index in 0..self.interfaces.len() {
                self.reconcile_solicitation(now, index);
            }
            self.drop_needless_releases();
            if !self.send_due(now) {
                break;
            }
        }
        self.choose_watched(now);
    }

    fn reconcile_registration(&mut self, now: Instant, index: usize) {
        let attachment = self.attachment(index);
        let desired = self.desired == Some(index);
        let joins = self.joins(index);
        let Some(interface) = self.interfaces.get(index) else { return };
        let Some(attachment) = attachment else {
            // A link that is down may come back as it was; without an agent or address there is nothing to
            // wait for.
            if interface.up {
                self.cancel_pending(now, index);
            }
            return;
        };
        if let Some(pending) = &interface.pending {
            if pending.attachment == attachment && (desired || joins || interface.held.is_some()) {
                return;
            }
            self.cancel_pending(now, index);
        }
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let in_place = interface.held.filter(|held| held.attachment == attachment);
        // A handover under way makes everything anew, so what is left can wait for its outcome.
        let refresh = interface.refresh && (desired || self.handover.is_none());
        let due = in_place.is_some_and(|held| held.renew_at <= now) || refresh;
        let needed = match in_place {
            // A binding kept from before (S bit) is no reason to stay on another interface.
            Some(_) => due || (desired && self.active != Some(index)),
            None => desired || joins,
        };
        let blocked = interface.blocked.is_some_and(|(where_, until)| where_ == attachment && until > now);
        if !needed || blocked {
            if desired && in_place.is_some() {
                // Somebody may have made it believe for a while that it was elsewhere.
                self.arp_for(index, attachment);
            }
            return;
        }
        if interface.held.is_none_or(|held| held.attachment != attachment) {
            interface.repairs = super::attachment::Repairs::default();
        }
        let round_trip = self.round_trip(index);
        let mut pending =
            Pending::new(now, Purpose::Register, attachment, &self.config.retransmission, round_trip);
        // All but the renewal of a binding that is in use.
        if in_place.is_none() || refresh || (desired && self.active != Some(index)) {
            pending = pending.in_haste();
        }
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.pending = Some(pending);
        }
        if desired && in_place.is_none() && self.handover.is_none() {
            self.initiate(now, index, Notice::None, HandoverReason::Moved);
        }
        if desired {
            self.arp_for(index, attachment);
        }
    }

    /// At home the node answers for its address again before it says so (RFC 5944 section 4.6); elsewhere
    /// it must not.
    fn arp_for(&mut self, index: usize, attachment: Attachment) {
        let on = attachment == Attachment::Home;
        if self.answers_arp == Some(on) {
            return;
        }
        self.answers_arp = Some(on);
        let home_address = self.config.home_address;
        self.outbox.event(Event::Arp(ArpEvent::Answer { home_address, on }));
        if let Some(interface) = self.id(index).filter(|_| on) {
            let owner = ArpOwner::Sender;
            self.outbox.event(Event::Arp(ArpEvent::Gratuitous { home_address, interface, owner }));
        }
    }

    fn reconcile_solicitation(&mut self, now: Instant, index: usize) {
        let everywhere = matches!(self.config.selection, Selection::Preferred { .. });
        let wanted = !self.left && (everywhere || self.desired == Some(index));
        let attached = self.attachment(index).is_some();
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let search = wanted && interface.up && !attached && interface.config.care_of.allows_foreign_agent();
        if search {
            interface.solicitor.start(now, &mut self.random);
        } else {
            interface.solicitor.stop();
        }
    }

    /// Under [`Selection::Preferred`]: which interface is to be used.
    fn choose(&mut self, now: Instant) {
        let Selection::Preferred { hold } = self.config.selection else { return };
        for index in 0..self.interfaces.len() {
            let viable = self.is_viable(now, index);
            if let Some(interface) = self.interfaces.get_mut(index) {
                interface.viable_since = viable.then(|| interface.viable_since.unwrap_or(now));
            }
        }
        let viable = self.interfaces.iter().enumerate().filter_map(|(index, interface)| {
            // Of equals the first.
            Some((index, (interface.standing_in_need(), core::cmp::Reverse(index)), interface.viable_since?))
        });
        // What was left as bad has to be found good again.
        let is_avoided =
            |index: usize| self.interfaces.get(index).is_some_and(|i| i.watch.record.avoided.is_some());
        let eager = self.config.movement.eager;
        let current = self.desired.and_then(|index| self.interfaces.get(index));
        if current.is_some_and(|interface| interface.watch.monitor.is_silent()) {
            // It is left when another one answers, or for one that nobody can ask.
            return self.leave_silent_path(now);
        }
        let current = current.filter(|interface| interface.viable_since.is_some());
        let choice = match current {
            // What the owner chose stays as long as it works.
            Some(_) if self.pinned && self.desired.is_some() => None,
            // Of those that are as good, the one that came last.
            Some(current) if eager => viable
                .filter(|(index, (standing, _), since)| {
                    *standing >= current.standing_in_need()
                        && Some(*since) > current.viable_since
                        && !is_avoided(*index)
                })
                .max_by_key(|(_, rank, since)| (*since, *rank)),
            Some(current) => viable
                .filter(|(index, (standing, _), since)| {
                    *standing > current.standing_in_need() && *since + hold <= now && !is_avoided(*index)
                })
                .max_by_key(|(_, rank, _)| *rank),
            None => viable.max_by_key(|(_, rank, _)| *rank),
        };
        let reason = match (current, self.active) {
            (Some(_), _) => HandoverReason::Preferred,
            (None, Some(_)) => HandoverReason::NotWorking,
            (None, None) => HandoverReason::Attached,
        };
        if let Some((index, ..)) = choice {
            self.pinned = false;
            self.begin_handover(now, index, Notice::None, reason);
        }
    }

    pub(super) fn is_viable(&self, now: Instant, index: usize) -> bool {
        if self.interfaces.get(index).is_some_and(|interface| !interface.watch.is_usable(now)) {
            return false;
        }
        let blocked = self.interfaces.get(index).and_then(|interface| interface.blocked);
        let attachment = self.attachment(index);
        attachment
            .filter(|attachment| !matches!(attachment, Attachment::Relayed { .. }))
            .is_some_and(|attachment| !blocked.is_some_and(|(at, until)| at == attachment && until > now))
    }
}
