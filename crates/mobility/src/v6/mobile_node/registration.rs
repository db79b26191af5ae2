//! Binding Updates to the home agent: what they say, when they are sent, sent again and given up (RFC 6275 sections 11.7.1 and 11.8).

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    BindingId, BindingIdentifier, BindingUpdate, Lifetime, Message, MobilityOption, MobilityOptions,
    NtpTimestamp, SequenceNumber, UpdateFlags,
};

use super::MobileNode;
use super::attachment::Attachment;
use super::config::RetransmissionConfig;
use super::dual_stack::SILENT_UPDATES;
use crate::path_watch::PathWatch;
use crate::v6::update_rate::Retransmission;
use crate::v6::{Addresses, Event, RegistrationEvent, RegistrationStep};

/// What an update is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The binding of the interface it is sent through, or at home the end of all bindings.
    Register,
    /// The end of the binding with this name (RFC 5648).
    Release {
        /// Its name.
        id: BindingId,
        /// Its care-of address.
        care_of: Ipv6Addr,
    },
    /// The end of all bindings, wherever the node is.
    Farewell,
}

impl Purpose {
    /// Whether it ends what `other` ends: a name, whatever its care-of address, or everything.
    fn ends_same_as(self, other: Self) -> bool {
        match (self, other) {
            (Self::Release { id, .. }, Self::Release { id: other, .. }) => id == other,
            _ => self == other,
        }
    }
}

/// An update that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its place among all updates sent, from 1. Of two it tells which was sent later, which sequence numbers do not after a refusal has
    /// set them anew.
    pub(super) ordinal: u64,
    pub(super) sequence: SequenceNumber,
    pub(super) timestamp: Option<Identification>,
    pub(super) at: Instant,
}

/// Updates of which an acknowledgement counts: what may be under way when some were sent again in vain. Each asked for the same.
const RECENT: usize = 4;

/// The last updates sent that ask for the same, the latest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentUpdates([Option<Sent>; RECENT]);

impl RecentUpdates {
    pub(super) fn push(&mut self, sent: Sent) {
        self.0.rotate_right(1);
        let [latest, ..] = &mut self.0;
        *latest = Some(sent);
    }

    /// The update with this number.
    pub(super) fn with(&self, sequence: SequenceNumber) -> Option<Sent> {
        self.0.iter().flatten().find(|sent| sent.sequence == sequence).copied()
    }

    /// The update whose timestamp has this low half, which an acknowledgement always copies (RFC 4285 section 6).
    pub(super) fn with_fraction(&self, timestamp: NtpTimestamp) -> Option<Sent> {
        let is_same = |sent: &&Sent| sent.timestamp.is_some_and(|own| own.low() == timestamp.low());
        self.0.iter().flatten().find(is_same).copied()
    }

    pub(super) fn latest(&self) -> Option<Sent> {
        let [latest, ..] = self.0;
        latest
    }
}

/// A registration under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    /// By what it is sent.
    pub(super) attachment: Attachment,
    /// Whom it asks, and who may answer.
    pub(super) peer: Option<Ipv6Addr>,
    pub(super) lifetime: Lifetime,
    /// Whether the binding has a name (RFC 5648).
    pub(super) id: Option<BindingId>,
    /// The care-of address of an update with the same name that was cancelled before it, and may have been accepted.
    pub(super) succeeds: Option<Ipv6Addr>,
    pub(super) recent: RecentUpdates,
    /// When the first update that asked for the same was sent, and its number.
    pub(super) begun: Option<(Instant, SequenceNumber)>,
    pub(super) retransmission: Retransmission,
    /// Updates since the last sign of life of the home agent.
    pub(super) unanswered: u32,
    /// Updates sent after refusals whose cause was removed.
    pub(super) repairs: u32,
    /// Whether the last update asked for an IPv4 home address.
    pub(super) asks_ipv4_home: bool,
}

/// Where nothing is known of the round trip to the home agent: that of most networks, or more. Too short a time costs an update.
const ASSUMED_ROUND_TRIP: Duration = Duration::from_millis(100);
/// The time that a home agent takes, at most, where it need not detect duplicates.
const PROCESSING: Duration = Duration::from_millis(100);

/// Updates for a release or a farewell: the binding ends by itself, too.
const MAX_FAREWELLS: u32 = 3;

impl Pending {
    pub(super) fn new(
        now: Instant,
        purpose: Purpose,
        attachment: Attachment,
        config: &RetransmissionConfig,
        is_first: bool,
    ) -> Self {
        let first = if is_first { config.first_registration } else { config.initial };
        Self {
            purpose,
            attachment,
            peer: None,
            lifetime: Lifetime::ZERO,
            id: None,
            succeeds: None,
            recent: RecentUpdates::default(),
            begun: None,
            retransmission: Retransmission::begin(now, first, config.maximum),
            unanswered: 0,
            repairs: 0,
            asks_ipv4_home: false,
        }
    }

    /// Whether the home agent may have heard of it.
    pub(super) const fn was_sent(&self) -> bool {
        self.retransmission.attempts > 0
    }

    /// An answer to what was sent so far says nothing any more.
    pub(super) fn forget_sent(&mut self) {
        self.recent = RecentUpdates::default();
        self.begun = None;
    }

    /// At once; an answer to what was sent so far says nothing any more.
    pub(super) fn begin_again(&mut self, now: Instant) {
        self.forget_sent();
        self.unanswered = 0;
        self.retransmission.begin_again(now);
    }

    /// Packets wait for this one: it is sent again early so many times, after `wait` each.
    pub(super) fn in_haste(self, early: u32, wait: Duration) -> Self {
        Self { retransmission: self.retransmission.with_early(early, wait), ..self }
    }

    /// The care-of address of the binding that it is about; the home address when it ends all of them at home.
    pub(super) fn care_of(&self, home_address: Ipv6Addr) -> Ipv6Addr {
        match self.purpose {
            Purpose::Release { care_of, .. } => care_of,
            Purpose::Register | Purpose::Farewell => self.attachment.care_of().unwrap_or(home_address),
        }
    }
}

/// Where a pending registration is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Interface(usize),
    Farewell(usize),
}

impl MobileNode {
    pub(super) fn pending(&self, slot: Slot) -> Option<&Pending> {
        match slot {
            Slot::Interface(index) => self.interfaces.get(index)?.pending.as_ref(),
            Slot::Farewell(index) => self.farewells.get(index),
        }
    }

    pub(super) fn pending_mut(&mut self, slot: Slot) -> Option<&mut Pending> {
        match slot {
            Slot::Interface(index) => self.interfaces.get_mut(index)?.pending.as_mut(),
            Slot::Farewell(index) => self.farewells.get_mut(index),
        }
    }

    pub(super) fn remove_pending(&mut self, slot: Slot) -> Option<Pending> {
        match slot {
            Slot::Interface(index) => self.interfaces.get_mut(index)?.pending.take(),
            Slot::Farewell(index) if index < self.farewells.len() => Some(self.farewells.remove(index)),
            Slot::Farewell(_) => None,
        }
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let interfaces = (0..self.interfaces.len()).map(Slot::Interface);
        interfaces.chain((0..self.farewells.len()).map(Slot::Farewell))
    }

    /// The interface a pending registration is sent through.
    pub(super) fn carrier(&self, slot: Slot) -> Option<usize> {
        match slot {
            Slot::Interface(index) => Some(index),
            Slot::Farewell(_) => self.active,
        }
    }

    /// When something pending is to be sent, as far as it can be.
    pub(super) fn send_deadline(&self) -> Option<Instant> {
        self.home_agents.current()?;
        let due = self.slots().filter_map(|slot| {
            let interface = self.interfaces.get(self.carrier(slot)?)?;
            interface.up.then_some(self.pending(slot)?.retransmission.next)
        });
        due.min()
    }

    /// Sends every update that is due. Returns whether something was given up instead, so that the rest must be brought in line with
    /// it.
    pub(super) fn send_due(&mut self, now: Instant) -> bool {
        let mut gave_up = false;
        // Giving up removes a slot; the next one is looked at on the next call.
        let mut index = 0;
        while let Some(slot) = self.slots().nth(index) {
            index += 1;
            let up = self.carrier(slot).and_then(|i| self.interfaces.get(i)).is_some_and(|i| i.up);
            let due = self.pending(slot).is_some_and(|pending| pending.retransmission.next <= now);
            if !up || !due || self.home_agents.current().is_none() {
                continue;
            }
            let allowed = self.updates.earliest(now);
            if allowed > now {
                if let Some(pending) = self.pending_mut(slot) {
                    pending.retransmission.next = allowed;
                }
                continue;
            }
            gave_up |= !self.send(now, slot);
        }
        gave_up
    }

    /// Sends one update; false when it was given up instead.
    fn send(&mut self, now: Instant, slot: Slot) -> bool {
        let Some(carrier) = self.carrier(slot) else { return true };
        let Some(mut pending) = self.pending(slot).copied() else { return true };
        if let Slot::Farewell(_) = slot {
            // It goes by whatever the interface in use is attached to by now.
            match self.attachment(now, carrier) {
                Some(attachment)
                    if attachment != Attachment::Home || pending.purpose == Purpose::Farewell =>
                {
                    pending.attachment = attachment;
                }
                // At home the end of all bindings is asked for anyway; until that is granted it waits.
                _ => {
                    let wait = self.config.retransmission.initial;
                    if let Some(pending) = self.pending_mut(slot) {
                        // Nobody is slow to answer what was not sent.
                        pending.retransmission.next = now + wait;
                    }
                    return true;
                }
            }
        }
        if pending.unanswered > 0 {
            let step = RegistrationStep::TimedOut { attempt: pending.retransmission.attempts };
            self.registration_event(step, &pending, carrier);
            if !pending.retransmission.is_early() && self.gives_up(now, slot, &pending) {
                return false;
            }
            // Section 11.7.1: at the longest wait the next home agent is tried.
            if pending.retransmission.is_slow() && self.try_next_home_agent(now) {
                return false;
            }
        }
        let Some(home_agent) = self.home_agents.current() else { return true };
        if pending.peer.is_some_and(|peer| peer != home_agent) {
            pending.forget_sent();
        }
        pending.peer = Some(home_agent);
        self.transmit_update(now, carrier, home_agent, &mut pending);
        if let Some(place) = self.pending_mut(slot) {
            *place = pending;
        }
        // From now on somebody may ask for its link-layer address in order to answer it (section 11.5.5).
        if pending.attachment == Attachment::Home && pending.purpose == Purpose::Register {
            self.answer_neighbors(carrier, true);
        }
        true
    }

    /// Writes and sends an update.
    fn transmit_update(&mut self, now: Instant, carrier: usize, home_agent: Ipv6Addr, pending: &mut Pending) {
        let home_address = self.config.home_address;
        let care_of = pending.care_of(home_address);
        pending.id = self.binding_id(carrier, pending);
        pending.lifetime = match (pending.purpose, pending.attachment) {
            (Purpose::Register, Attachment::Away { care_of }) => self.home_lifetime(now, carrier, care_of),
            _ => Lifetime::ZERO,
        };
        self.sequence = self.sequence.next();
        let timestamp = self
            .timestamps
            .as_mut()
            .map(|timestamps| timestamps.next(now, self.config.clock, &mut self.random));
        let mut options = MobilityOptions::new();
        if let Some(identifier) = &self.config.identifier {
            options.push(MobilityOption::MobileNodeIdentifier(identifier.clone()));
        }
        let care_of_option = match pending.id {
            // It takes the place of the Alternate Care-of Address (RFC 5648 section 5.2), and of that of IPv4 (section 8.1).
            Some(id) => {
                let care_of_address = Some(care_of.to_canonical());
                Some(MobilityOption::BindingIdentifier(BindingIdentifier {
                    care_of_address,
                    ..BindingIdentifier::new(id)
                }))
            }
            // The source address says it (RFC 5380 section 6.1), and the authenticator covers it.
            None if self.is_local => None,
            None => Some(match care_of.to_ipv4_mapped() {
                Some(care_of) => MobilityOption::Ipv4CareOfAddress(care_of),
                None => MobilityOption::AlternateCareOfAddress(care_of),
            }),
        };
        care_of_option.into_iter().for_each(|option| options.push(option));
        let ipv4_home = self.ipv4_home_option(home_agent, pending);
        pending.asks_ipv4_home = ipv4_home.is_some();
        if let Some(option) = ipv4_home {
            options.push(option);
        }
        if let Some(timestamp) = timestamp {
            options.push(MobilityOption::ReplayProtection(NtpTimestamp(timestamp.0)));
        }
        self.report(now, carrier, pending, &mut options);
        let mut flags = UpdateFlags::ACKNOWLEDGE.with(self.registration_flag());
        if self.config.link_local_compatible {
            flags = flags.with(UpdateFlags::LINK_LOCAL_ADDRESS_COMPATIBILITY);
        }
        if pending.id.is_some() && pending.purpose == Purpose::Register && self.overwrite {
            flags = flags.with(UpdateFlags::OVERWRITE);
        }
        let update = BindingUpdate { sequence: self.sequence, flags, lifetime: pending.lifetime, options };
        let addresses = match pending.attachment {
            // The home address is the source (section 11.5.5).
            Attachment::Home => Addresses::new(home_address, home_agent),
            Attachment::Away { care_of } => self.way_away(care_of, home_agent),
        };
        let authentication = self.config.security.authentication(care_of, home_address);
        let message = Message::BindingUpdate(update);
        let emitted = message.emit_authenticated(
            addresses.real_source(),
            addresses.real_destination(),
            &authentication,
        );
        let Ok(bytes) = emitted else { return };
        self.updates_sent += 1;
        let ordinal = self.updates_sent;
        pending.recent.push(Sent { ordinal, sequence: self.sequence, timestamp, at: now });
        if let Some(interface) =
            self.interfaces.get_mut(carrier).filter(|_| pending.purpose == Purpose::Register)
        {
            interface.last_sent = ordinal;
        }
        if !pending.retransmission.is_early() {
            pending.unanswered = pending.unanswered.saturating_add(1);
        }
        pending.retransmission.sent(now);
        self.updates.spend(now);
        let step = RegistrationStep::UpdateSent { attempt: pending.retransmission.attempts };
        self.registration_event(step, pending, carrier);
        self.request_leaves(now, carrier);
        let interface = self.id(carrier);
        self.outbox.mobility(interface, addresses, bytes);
    }

    /// The name of the binding that an update is about: each interface has its own, where the home agent keeps several.
    fn binding_id(&self, carrier: usize, pending: &Pending) -> Option<BindingId> {
        match (pending.purpose, pending.attachment) {
            (Purpose::Release { id, .. }, _) => Some(id),
            (Purpose::Register, Attachment::Away { .. }) => self.keeps_several().then(|| name_of(carrier)),
            _ => None,
        }
    }

    /// The lifetime to ask the home agent for: the care-of address and the home address outlive it (section 11.7.1).
    fn home_lifetime(&self, now: Instant, carrier: usize, care_of: Ipv6Addr) -> Lifetime {
        let end = self.interfaces.get(carrier).map_or(Instant::MAX, |interface| interface.end_of(care_of));
        let end = end.min(self.home_prefix_end);
        let longest = if end == Instant::MAX {
            Lifetime::MAX
        } else {
            Lifetime::from_duration(end.saturating_duration_since(now))
        };
        // Zero would end the binding.
        self.config.lifetime.min(longest).max(Lifetime::from_units(1))
    }

    /// How long an update through interface `index` is waited for before an early one follows.
    pub(super) fn early_wait(&self, index: usize) -> Duration {
        let own = self.interfaces.get(index).and_then(|interface| interface.least_round_trip);
        // The least, for a queue on the way may have made it anything, and too short a time costs an update.
        let least = own.unwrap_or_else(|| {
            let others = self.interfaces.iter().filter_map(|other| other.least_round_trip);
            others.fold(ASSUMED_ROUND_TRIP, Duration::min)
        });
        least.saturating_mul(2).saturating_add(PROCESSING)
    }

    /// Whether nobody answers for too long.
    fn gives_up(&mut self, now: Instant, slot: Slot, pending: &Pending) -> bool {
        match slot {
            Slot::Farewell(_) => {
                if pending.unanswered < MAX_FAREWELLS {
                    return false;
                }
                self.remove_pending(slot);
                if pending.purpose == Purpose::Farewell {
                    self.forget_bindings();
                }
                true
            }
            Slot::Interface(index) => {
                let care_of = pending.attachment.care_of().filter(|_| pending.unanswered >= SILENT_UPDATES);
                if care_of.is_some_and(|care_of| self.changes_version(now, index, care_of)) {
                    return true;
                }
                let too_many = |most| pending.unanswered >= most;
                self.config.retransmission.attempts.is_some_and(too_many)
                    && self.leave_silent(now, index, pending.attachment)
            }
        }
    }

    /// Nobody answers by `care_of` of interface `index`; whether it has an address of the other version that is used from now on.
    fn changes_version(&mut self, now: Instant, index: usize, care_of: Ipv6Addr) -> bool {
        let Some(interface) = self.interfaces.get_mut(index) else { return false };
        let before = interface.pass_over(care_of);
        if self.attachment(now, index).is_some_and(|there| there.care_of() != Some(care_of)) {
            return true;
        }
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.undo_pass_over(before);
        }
        false
    }

    pub(super) fn registration_event(&mut self, step: RegistrationStep, pending: &Pending, carrier: usize) {
        let home_address = self.config.home_address;
        self.outbox.event(Event::Registration(RegistrationEvent {
            step,
            home_address,
            care_of: pending.care_of(home_address),
            peer: pending.peer.unwrap_or(Ipv6Addr::UNSPECIFIED),
            lifetime: pending.lifetime,
            sequence: pending.recent.latest().map_or(self.sequence, |sent| sent.sequence),
            interface: self.id(carrier),
        }));
    }

    /// Ends what is under way on an interface. The home agent may have heard of it already: then what it did is undone, or made anew.
    pub(super) fn cancel_pending(&mut self, now: Instant, index: usize) {
        let Some(pending) = self.interfaces.get_mut(index).and_then(|interface| interface.pending.take())
        else {
            return;
        };
        if !pending.was_sent() {
            if let Some(care_of) = pending.succeeds {
                self.farewell(now, Purpose::Release { id: name_of(index), care_of });
            }
            return;
        }
        match (pending.id, pending.attachment.care_of()) {
            (Some(id), Some(care_of)) => {
                match self.interfaces.get(index).and_then(|interface| interface.held) {
                    // It was to last for longer, no more.
                    Some(held) if held.attachment == pending.attachment => {}
                    Some(_) => self.refresh(index),
                    None => self.farewell(now, Purpose::Release { id, care_of }),
                }
            }
            // It has replaced all others.
            _ => (0..self.interfaces.len()).for_each(|index| self.refresh(index)),
        }
    }

    /// Whether another interface's update was sent after the one by which this one was registered: the home agent may have accepted it,
    /// and send packets there.
    pub(super) fn is_outdone(&self, index: usize) -> bool {
        let held = self.interfaces.get(index).and_then(|interface| interface.held);
        let mut others = self.interfaces.iter().enumerate().filter(|(other, _)| *other != index);
        held.is_some_and(|held| others.any(|(_, other)| other.last_sent > held.ordinal))
    }

    fn refresh(&mut self, index: usize) {
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.refresh |= interface.held.is_some();
        }
    }

    /// Asks the home agent for an end, besides what is registered.
    pub(super) fn farewell(&mut self, now: Instant, purpose: Purpose) {
        self.farewells.retain(|pending| !pending.purpose.ends_same_as(purpose));
        let by = self.active.and_then(|active| self.attachment(now, active));
        let attachment = match (by, purpose) {
            (Some(attachment), _) => attachment,
            // It waits until the interface in use is attached to something.
            (None, Purpose::Release { care_of, .. }) => Attachment::Away { care_of },
            (None, _) => return,
        };
        // One for each interface is all that can be needed.
        if self.farewells.len() < self.interfaces.len() {
            let pending = Pending::new(now, purpose, attachment, &self.config.retransmission, false);
            self.farewells.push(pending);
        }
    }
}

/// The name of the binding of interface `index`: not 0, which is reserved. There are not more interfaces than names.
pub(super) fn name_of(index: usize) -> BindingId {
    BindingId(u16::try_from(index).unwrap_or(u16::MAX - 1) + 1)
}
