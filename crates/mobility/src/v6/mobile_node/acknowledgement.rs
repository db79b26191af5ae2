//! Binding Acknowledgements of the home agent, and what follows from them (RFC 6275 section 11.7.3, RFC 4285, RFC 5648 section 5.7).

use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{BindingAcknowledgement, BindingStatus, Lifetime, ReceivedData};

use super::MobileNode;
use super::attachment::{Attachment, Held};
use super::registration::{Pending, Purpose, Sent, Slot};
use crate::Change;
use crate::path_watch::PathWatch;
use crate::v6::{Addresses, BindingChanged, DropReason, Event, RegistrationStep, authentication};

/// Updates sent anew after refusals whose cause was removed, before the node waits: two nodes that misunderstand each other would
/// go on forever.
const MAX_REPAIRS: u32 = 3;

impl MobileNode {
    /// An acknowledgement from whom the node may have sent an update to as its home agent.
    pub(super) fn handle_home_acknowledgement(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        acknowledgement: &BindingAcknowledgement,
    ) {
        match self.match_acknowledgement(addresses, bytes, acknowledgement) {
            Ok((slot, sent)) => {
                if let Some(index) = self.carrier(slot) {
                    self.reply_came(now, index);
                }
                let status = outcome(acknowledgement);
                let finds_nat = acknowledgement.options.nat_detection().is_some_and(|nat| nat.requires_udp());
                if finds_nat {
                    self.outbox.drop(DropReason::NatOnPath, addresses.source);
                }
                let registers =
                    self.pending(slot).is_some_and(|pending| pending.purpose == Purpose::Register);
                if status.is_accepted() && finds_nat && registers {
                    // What the home agent would send there from now on nobody could read.
                    self.refused_with(
                        now,
                        slot,
                        sent,
                        acknowledgement,
                        BindingStatus::AdministrativelyProhibited,
                    );
                } else if status.is_accepted() {
                    self.accepted(now, slot, sent, acknowledgement, status);
                } else {
                    self.refused_with(now, slot, sent, acknowledgement, status);
                }
            }
            Err(reason) => self.outbox.drop(reason, addresses.source),
        }
    }

    /// What was sent that this answers.
    fn match_acknowledgement(
        &self,
        addresses: Addresses,
        bytes: &[u8],
        acknowledgement: &BindingAcknowledgement,
    ) -> Result<(Slot, Sent), DropReason> {
        let home_address = self.config.home_address;
        let timestamp = acknowledgement.options.replay_protection();
        let answers = |pending: &Pending| -> Option<Sent> {
            // Sent to the care-of address with a routing header, or at home without (section 9.5.4).
            let is_way_back = match pending.attachment {
                Attachment::Home => addresses.type_2_routing.is_none(),
                Attachment::Away { care_of } => self.is_way_back(care_of, &addresses),
            };
            if pending.peer != Some(addresses.source) || !is_way_back {
                return None;
            }
            match acknowledgement.status {
                // Its number is that of another update (section 11.7.3).
                BindingStatus::SequenceNumberOutOfWindow => pending.recent.latest(),
                _ => pending.recent.with(acknowledgement.sequence),
            }
        };
        let mut slots = self.slots().filter_map(|slot| Some((slot, answers(self.pending(slot)?)?)));
        let (slot, sent) = slots.next().ok_or(DropReason::UnexpectedAnswer)?;
        // Of two that have lost their numbers the authenticator tells which is meant.
        let is_genuine = |slot: Slot| {
            let Some(pending) = self.pending(slot) else { return Err(DropReason::UnexpectedAnswer) };
            let known = core::iter::once(&self.config.security);
            let care_of = pending.care_of(home_address);
            authentication::check(bytes, &acknowledgement.options, known, care_of, home_address).map(|_| ())
        };
        let (slot, sent) = match is_genuine(slot) {
            Ok(()) => (slot, sent),
            Err(reason) => {
                let other = slots.find(|(slot, _)| is_genuine(*slot).is_ok());
                other.ok_or(reason)?
            }
        };
        // RFC 4285 section 6: the timestamp ties the answer to its update.
        let is_of_update = match (sent.timestamp, timestamp) {
            (None, _) => true,
            (Some(_), None) => acknowledgement.status == BindingStatus::MessageIdRequired,
            (Some(own), Some(told)) if acknowledgement.status == BindingStatus::IdMismatch => {
                own.low() == told.low()
            }
            (Some(own), Some(told)) => own.0 == told.0,
        };
        // The last one may be newer than the one that an answer with an old number speaks of.
        let by_fraction = || timestamp.and_then(|told| self.pending(slot)?.recent.with_fraction(told));
        match (is_of_update, acknowledgement.status) {
            (true, _) => Ok((slot, sent)),
            (false, BindingStatus::SequenceNumberOutOfWindow) => {
                by_fraction().map(|sent| (slot, sent)).ok_or(DropReason::Replayed)
            }
            (false, _) => Err(DropReason::Replayed),
        }
    }

    fn accepted(
        &mut self,
        now: Instant,
        slot: Slot,
        sent: Sent,
        acknowledgement: &BindingAcknowledgement,
        status: BindingStatus,
    ) {
        let Some(carrier) = self.carrier(slot) else { return };
        let Some(pending) = self.remove_pending(slot) else { return };
        self.outbox.counters.count_accepted();
        let round_trip = now - sent.at;
        let granted = acknowledgement.lifetime.min(pending.lifetime);
        self.registration_event(RegistrationStep::Accepted { status, round_trip }, &pending, carrier);
        match pending.purpose {
            Purpose::Release { .. } => {}
            Purpose::Farewell => self.forget_bindings(),
            Purpose::Register => {
                self.home_agents.works();
                self.take_ipv4_answer(&pending, acknowledgement);
                if status == BindingStatus::AcceptedPrefixDiscoveryNecessary {
                    self.solicit_prefixes(now);
                }
                let understood = pending.id.is_none()
                    || acknowledgement.options.binding_identifiers().any(|id| Some(id.id) == pending.id);
                // Who does not give the name back has made it the only binding (RFC 5648 section 5.7).
                self.single |= !understood;
                self.registered_at(now, carrier, &pending, (sent, granted), round_trip);
                self.overwrite = false;
                if let Some(advice) = acknowledgement.options.binding_refresh_advice() {
                    self.take_advice(carrier, sent.at, advice);
                }
            }
        }
    }

    /// The home agent has granted what an interface asked for. Time counts from when the update was sent, so that it ends here no
    /// later than at the home agent (section 11.7.3).
    fn registered_at(
        &mut self,
        now: Instant,
        carrier: usize,
        pending: &Pending,
        (sent, granted): (Sent, Lifetime),
        round_trip: core::time::Duration,
    ) {
        let Some(home_agent) = pending.peer else { return };
        let at_home = pending.attachment == Attachment::Home;
        let Some(interface) = self.interfaces.get_mut(carrier) else { return };
        interface.measured(round_trip);
        interface.interrupted = interface.interrupted.filter(|&at| at > sent.at);
        if granted.is_zero() && !at_home {
            // Accepted for no time at all. Asking again at once would be answered the same way.
            return self.block(now, carrier, pending.attachment);
        }
        interface.refusals = 0;
        interface.blocked = None;
        let alone = at_home || pending.id.is_none() || self.single || self.overwrite;
        let others = self.interfaces.iter().enumerate().filter(|(index, _)| alone && *index != carrier);
        let mut pendings = others.filter_map(|(_, other)| other.pending.as_ref());
        let undone = pendings.any(Pending::was_sent);
        for index in (0..self.interfaces.len()).filter(|&index| index != carrier) {
            if alone || self.is_held_at_home(index) {
                self.forget_binding(index, Change::Removed);
            }
            if alone {
                // What else is under way would undo this.
                self.cancel_pending(now, index);
            }
        }
        if alone {
            self.farewells.retain(|pending| pending.purpose == Purpose::Farewell);
        }
        let span = granted.duration();
        let percent = u32::from(self.config.renew_after_percent);
        let (renew_at, expires) = if at_home {
            (Instant::MAX, Instant::MAX)
        } else {
            (sent.at + span * percent / 100, sent.at + span)
        };
        let held =
            Held { attachment: pending.attachment, home_agent, ordinal: sent.ordinal, renew_at, expires };
        let Some(interface) = self.interfaces.get_mut(carrier) else { return };
        interface.refresh = undone;
        let before = interface.held.replace(held).and_then(|old| old.attachment.care_of());
        let after = pending.attachment.care_of();
        if let Some(care_of) = before.filter(|_| before != after) {
            self.binding_event(carrier, care_of, Lifetime::ZERO, Change::Removed);
        }
        if let Some(care_of) = after {
            let change = if before == after { Change::Updated } else { Change::Created };
            self.binding_event(carrier, care_of, granted, change);
        }
        if at_home {
            self.advertise_home_address(carrier);
        }
        self.registered(now, carrier, pending.retransmission.attempts, round_trip);
        self.drive_correspondents(now);
    }

    fn take_advice(&mut self, carrier: usize, sent: Instant, advice: Lifetime) {
        let held = self.interfaces.get_mut(carrier).and_then(|interface| interface.held.as_mut());
        if let Some(held) = held.filter(|_| !advice.is_zero()) {
            held.renew_at = held.renew_at.min(sent + advice.duration());
        }
    }

    pub(super) fn is_held_at_home(&self, index: usize) -> bool {
        let held = self.interfaces.get(index).and_then(|interface| interface.held);
        held.is_some_and(|held| held.attachment == Attachment::Home)
    }

    /// All bindings are gone.
    pub(super) fn forget_bindings(&mut self) {
        (0..self.interfaces.len()).for_each(|index| self.forget_binding(index, Change::Removed));
        self.forget_ipv4_home();
    }

    pub(super) fn forget_binding(&mut self, index: usize, change: Change) {
        let held = self.interfaces.get_mut(index).and_then(|interface| interface.held.take());
        if let Some(care_of) = held.and_then(|held| held.attachment.care_of()) {
            self.binding_event(index, care_of, Lifetime::ZERO, change);
        }
    }

    fn binding_event(&mut self, index: usize, care_of: Ipv6Addr, lifetime: Lifetime, change: Change) {
        let home_address = self.config.home_address;
        let id = self.keeps_several().then(|| super::registration::name_of(index));
        let (path, received) = (None, ReceivedData::EMPTY);
        let change = BindingChanged { home_address, care_of, id, lifetime, change, path, received };
        self.outbox.event(Event::Binding(change));
    }

    fn refused_with(
        &mut self,
        now: Instant,
        slot: Slot,
        sent: Sent,
        acknowledgement: &BindingAcknowledgement,
        status: BindingStatus,
    ) {
        let Some(carrier) = self.carrier(slot) else { return };
        let Some(pending) = self.pending(slot).copied() else { return };
        self.outbox.counters.count_refusal(status.number());
        let round_trip = now - sent.at;
        self.registration_event(RegistrationStep::Refused { status, round_trip }, &pending, carrier);
        // The end is reached all the same: there is no binding.
        let ends = pending.lifetime.is_zero();
        if ends && status == BindingStatus::NotHomeAgentForThisMobileNode {
            let accepted = BindingAcknowledgement { lifetime: Lifetime::ZERO, ..acknowledgement.clone() };
            return self.accepted(now, slot, sent, &accepted, BindingStatus::Accepted);
        }
        let repaired = pending.repairs < MAX_REPAIRS && self.repair(&pending, acknowledgement, status);
        if repaired || is_passing(status) {
            if let Some(pending) = self.pending_mut(slot) {
                pending.unanswered = 0;
                pending.retransmission.calm_down();
                if repaired {
                    pending.repairs += 1;
                    pending.begun = None;
                    pending.retransmission.next = now;
                }
            }
            return;
        }
        if status == BindingStatus::DuplicateAddressDetectionFailed {
            return self.lose_home_address(now, status);
        }
        match slot {
            // The binding will expire.
            Slot::Farewell(_) => {
                self.remove_pending(slot);
                if pending.purpose == Purpose::Farewell {
                    self.forget_bindings();
                }
            }
            // Section 11.4.1: after a rejection another home agent is tried.
            Slot::Interface(_) if asks_elsewhere(status) && self.try_next_home_agent(now) => {}
            Slot::Interface(index) => self.refused(now, index, pending.attachment, status),
        }
    }

    /// Does what makes a refusal unlikely the next time; false where nothing does.
    fn repair(
        &mut self,
        pending: &Pending,
        acknowledgement: &BindingAcknowledgement,
        status: BindingStatus,
    ) -> bool {
        match status {
            BindingStatus::SequenceNumberOutOfWindow => {
                // Its last number; the next update has the one after it.
                self.sequence = acknowledgement.sequence;
                true
            }
            BindingStatus::IdMismatch => {
                let told = acknowledgement.options.replay_protection();
                let Some((told, timestamps)) = told.zip(self.timestamps.as_mut()) else { return false };
                let Some(sent) = pending.recent.with_fraction(told) else { return false };
                let Some(own) = sent.timestamp else { return false };
                timestamps.resynchronize(own, Identification(told.0));
                true
            }
            BindingStatus::MessageIdRequired => {
                let had_none = self.timestamps.is_none();
                if had_none {
                    self.use_timestamps();
                }
                had_none
            }
            // There is one of before the node had several.
            BindingStatus::McoaNonMcoaBindingExists => !core::mem::replace(&mut self.overwrite, true),
            BindingStatus::McoaProhibited
            | BindingStatus::McoaBulkRegistrationProhibited
            | BindingStatus::McoaSimultaneousHomeAndForeignProhibited => {
                pending.id.is_some() && !core::mem::replace(&mut self.single, true)
            }
            _ => false,
        }
    }

    /// Somebody else has the home address: it must not be used again (section 11.7.1), unless the owner says so.
    fn lose_home_address(&mut self, now: Instant, status: BindingStatus) {
        self.abandon_handover(now, crate::HandoverFailure::Denied(status));
        self.left = true;
        self.farewells.clear();
        for index in 0..self.interfaces.len() {
            if let Some(interface) = self.interfaces.get_mut(index) {
                interface.pending = None;
            }
            self.forget_binding(index, Change::Removed);
        }
        let home_address = self.config.home_address;
        self.outbox.event(Event::HomeAddressLost { home_address });
        self.drive_correspondents(now);
    }

    /// Whether each interface registers a binding with a name of its own.
    pub(super) const fn keeps_several(&self) -> bool {
        self.config.multiple_care_of && !self.single
    }
}

/// The Status that counts: that of the Binding Identifier option, where it says something (RFC 5648 section 5.7).
fn outcome(acknowledgement: &BindingAcknowledgement) -> BindingStatus {
    let told = acknowledgement.options.binding_identifiers().map(|identifier| identifier.status);
    told.filter(|status| status.number() != 0).last().unwrap_or(acknowledgement.status)
}

/// Whether a refusal is of the moment: then the update is sent again as if it had had no answer.
const fn is_passing(status: BindingStatus) -> bool {
    matches!(status, BindingStatus::ReasonUnspecified | BindingStatus::InsufficientResources)
}

/// Whether another home agent of the home network may answer otherwise.
const fn asks_elsewhere(status: BindingStatus) -> bool {
    matches!(
        status,
        BindingStatus::AdministrativelyProhibited
            | BindingStatus::HomeRegistrationNotSupported
            | BindingStatus::NotHomeSubnet
            | BindingStatus::NotHomeAgentForThisMobileNode
    )
}
