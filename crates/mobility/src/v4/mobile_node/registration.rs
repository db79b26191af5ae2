//! Registrations under way: when requests are sent, sent again and given up (RFC 5944 section 3.6.3).

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip4::{Identification, Lifetime, RequestFlags};

use super::MobileNode;
use super::attachment::Attachment;
use super::config::RetransmissionConfig;
use super::request::Wishes;
use crate::v4::{Event, RegistrationEvent, RegistrationStep};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The binding of the interface it is sent through, or at home the end of all bindings.
    Register,
    /// The end of the binding with this care-of address.
    Release { care_of: Ipv4Addr },
    /// The end of all bindings, wherever the node is.
    Farewell,
}

/// A registration under way.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    /// By what it is sent.
    pub(super) attachment: Attachment,
    pub(super) lifetime: Lifetime,
    pub(super) flags: RequestFlags,
    pub(super) encapsulating_delivery: bool,
    /// Whom the request asks, and who may answer.
    pub(super) peer: Ipv4Addr,
    pub(super) identification: Option<Identification>,
    /// The request as last sent.
    pub(super) bytes: Vec<u8>,
    /// What the requests sent ask for; all those of `recent` ask for the same.
    asked: Option<Wishes>,
    /// The last requests sent, the latest first.
    recent: [Option<Sent>; RECENT],
    /// How many of them may be answered.
    answerable: usize,
    /// When the first request was sent that asks for this, since it was begun (again).
    begun: Option<Instant>,
    /// When it is to be sent, or sent again.
    pub(super) next: Instant,
    pub(super) attempts: u32,
    /// Attempts since the last sign of life of an agent, but for early ones.
    pub(super) unanswered: u32,
    waits: Waits,
    pub(super) repairs: u32,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) identification: Identification,
    /// When, the first time.
    pub(super) at: Instant,
    /// How often, unchanged: with nonces.
    pub(super) copies: u32,
}

/// Requests of which a reply counts: what may be under way when early ones were needless.
const RECENT: usize = 4;

/// The waits between requests.
#[derive(Clone, Copy, Debug)]
struct Waits {
    /// Early requests that may go out whenever it is begun again.
    allowance: u32,
    /// Early requests that may still go out.
    early_left: u32,
    /// The wait before an early request.
    early: Duration,
    /// The wait before the first other one.
    first: Duration,
    /// The wait before the next other one.
    next: Duration,
    /// Whether the request that is due next is an early one.
    is_early: bool,
}

impl Waits {
    /// Begins anew, with all its early requests.
    const fn restart(&mut self) {
        self.early_left = self.allowance;
        self.next = self.first;
        self.is_early = false;
    }

    /// Somebody has answered: it goes on without haste.
    const fn calm_down(&mut self) {
        self.early_left = 0;
        self.is_early = false;
    }

    /// The wait after a request that was sent now; `longest` is that of any.
    fn take(&mut self, minimum: Duration, longest: Duration) -> Duration {
        self.is_early = self.early_left > 0;
        if self.is_early {
            self.early_left -= 1;
            return self.early;
        }
        let wait = self.next;
        self.next = self.next.saturating_mul(2).min(longest).max(minimum);
        wait
    }
}

/// What is known of the round trip to the home agent when a registration begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// Of the interface, as it was given or last measured.
    latest: Option<Duration>,
    /// The least to be expected.
    least: Duration,
}

/// Requests for a release or a farewell: the binding ends by itself, too.
const MAX_FAREWELLS: u32 = 3;

/// Requests without an answer after which another agent is tried, if there is one.
const SILENT_AFTER: u32 = 3;

/// Where nothing is known of the round trip to the home agent: that of most networks, or more. Too short a time costs a request.
const ASSUMED_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Twice the round trip, and the time that agents take.
fn patience(config: &RetransmissionConfig, round_trip: Duration) -> Duration {
    round_trip.saturating_mul(2).saturating_add(config.processing)
}

impl Pending {
    pub(super) fn new(
        now: Instant,
        purpose: Purpose,
        attachment: Attachment,
        config: &RetransmissionConfig,
        round_trip: RoundTrip,
    ) -> Self {
        let first = patience(config, round_trip.latest.unwrap_or_default()).max(config.minimum);
        let waits = Waits {
            allowance: if purpose == Purpose::Register { config.early } else { 0 },
            early_left: 0,
            early: patience(config, round_trip.least).min(first),
            first,
            next: first,
            is_early: false,
        };
        Self {
            purpose,
            attachment,
            lifetime: Lifetime::ZERO,
            flags: RequestFlags::default(),
            encapsulating_delivery: false,
            peer: Ipv4Addr::UNSPECIFIED,
            identification: None,
            bytes: Vec::new(),
            asked: None,
            recent: [None; RECENT],
            answerable: if config.early > 0 { RECENT } else { 1 },
            begun: None,
            next: now,
            attempts: 0,
            unanswered: 0,
            waits,
            repairs: 0,
        }
    }

    /// Packets wait for this one.
    pub(super) const fn in_haste(mut self) -> Self {
        self.waits.restart();
        self
    }

    /// Whether the home agent may have heard of it.
    pub(super) const fn was_sent(&self) -> bool {
        self.attempts > 0
    }

    /// Takes over a request as it was written.
    pub(super) fn compose(
        &mut self,
        wishes: Wishes,
        peer: Ipv4Addr,
        identification: Identification,
        bytes: Vec<u8>,
    ) {
        if self.asked.replace(wishes) != Some(wishes) || self.peer != peer {
            self.forget_sent();
        }
        self.flags = wishes.flags;
        self.lifetime = wishes.lifetime;
        self.encapsulating_delivery = wishes.encapsulating_delivery;
        self.peer = peer;
        self.identification = Some(identification);
        self.bytes = bytes;
    }

    /// Whether another request than the first is to be sent, sooner than the RFC has it.
    const fn is_early(&self) -> bool {
        self.waits.is_early
    }

    /// The request as composed is sent now; when the next one is due, if nobody answers.
    fn sent(&mut self, now: Instant, config: &RetransmissionConfig) {
        self.attempts = self.attempts.saturating_add(1);
        if !self.is_early() {
            self.unanswered = self.unanswered.saturating_add(1);
        }
        self.begun.get_or_insert(now);
        if let Some(identification) = self.identification {
            match &mut self.recent {
                [Some(latest), ..] if latest.identification == identification => latest.copies += 1,
                recent => {
                    recent.rotate_right(1);
                    if let Some(latest) = recent.first_mut() {
                        *latest = Some(Sent { identification, at: now, copies: 1 });
                    }
                }
            }
        }
        let lifetime = self.lifetime.duration().filter(|lifetime| !lifetime.is_zero());
        let longest = lifetime.unwrap_or(Duration::MAX).min(config.maximum);
        self.next = now + self.waits.take(config.minimum, longest);
    }

    fn forget_sent(&mut self) {
        self.recent = [None; RECENT];
        self.begun = None;
    }

    /// With a new Identification, at once; a reply to what was sent so far says nothing any more.
    pub(super) fn begin_again(&mut self) {
        self.identification = None;
        self.bytes.clear();
        self.forget_sent();
        self.unanswered = 0;
        self.waits.restart();
        self.next = Instant::ZERO;
    }

    /// An agent denied what was asked for, and it goes on. With `repaired` it asks for something else, or says it otherwise.
    pub(super) fn was_denied(&mut self, repaired: bool) {
        self.bytes.clear();
        self.unanswered = 0;
        self.waits.calm_down();
        if repaired {
            self.forget_sent();
            self.repairs += 1;
        }
    }

    /// For how long the same has been asked for without an answer.
    pub(super) fn asked_for(&self, now: Instant) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun))
    }

    /// The request that a reply with this Identification answers, and whether it is the latest one.
    ///
    /// RFC 5944 section 3.6.2.1 has the latest only. After early requests the answer to one before is as good: it asked for the
    /// same.
    pub(super) fn answered(&self, identification: Identification) -> Option<(Sent, bool)> {
        let mut recent = self.recent.iter().take(self.answerable).flatten().enumerate();
        let found = recent.find(|(_, sent)| sent.identification.low() == identification.low());
        found.map(|(place, sent)| (*sent, place == 0))
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
        let due = self.slots().filter_map(|slot| self.can_send(slot).then_some(self.pending(slot)?.next));
        due.min()
    }

    /// Whether there is a link that requests of this registration can take.
    fn can_send(&self, slot: Slot) -> bool {
        let is_up = |index: usize| self.interfaces.get(index).is_some_and(|interface| interface.up);
        let is_relayed = self
            .pending(slot)
            .is_some_and(|pending| matches!(pending.attachment, Attachment::Relayed { .. }));
        self.carrier(slot).is_some_and(is_up) && (!is_relayed || self.active.is_some_and(is_up))
    }

    /// Sends every request that is due. Returns whether something was given up instead, so that the rest
    /// must be brought in line with it.
    pub(super) fn send_due(&mut self, now: Instant) -> bool {
        let mut gave_up = false;
        // Giving up removes a slot; the next one is looked at on the next call.
        let mut index = 0;
        while let Some(slot) = self.slots().nth(index) {
            index += 1;
            let due = self.pending(slot).is_some_and(|pending| pending.next <= now);
            if !due || !self.can_send(slot) {
                continue;
            }
            // What nobody was asked yet need not wait for the early requests of what was asked before.
            let is_first = self.pending(slot).is_some_and(|pending| pending.unanswered == 0);
            let more = u32::from(is_first && self.config.retransmission.early > 0);
            let allowed = self.pace.earliest(now, more);
            if allowed > now {
                if let Some(pending) = self.pending_mut(slot) {
                    pending.next = allowed;
                }
                continue;
            }
            gave_up |= !self.send(now, slot);
        }
        gave_up
    }

    /// Sends one request; false when it was given up instead.
    fn send(&mut self, now: Instant, slot: Slot) -> bool {
        let Some(carrier) = self.carrier(slot) else { return true };
        let Some(mut pending) = self.pending(slot).cloned() else { return true };
        if let Slot::Farewell(_) = slot {
            // It goes by whatever the interface in use is attached to by now.
            match self.attachment(carrier) {
                Some(attachment) => pending.attachment = attachment,
                None => {
                    if let Some(pending) = self.pending_mut(slot) {
                        pending.next = now + pending.waits.next;
                    }
                    return true;
                }
            }
        }
        if !pending.is_early() && self.agent_is_silent(carrier, &pending) {
            return false;
        }
        if pending.unanswered > 0 {
            self.registration_event(
                RegistrationStep::TimedOut { attempt: pending.attempts },
                &pending,
                carrier,
            );
            if !pending.is_early() && self.gives_up(now, slot, &pending) {
                return false;
            }
        }
        let unchanged = self.identifications.retransmits_unchanged() && pending.unanswered > 0;
        if !unchanged || pending.bytes.is_empty() {
            self.compose(now, carrier, &mut pending);
        }
        pending.sent(now, &self.config.retransmission);
        self.pace.spend(now);
        self.registration_event(
            RegistrationStep::RequestSent { attempt: pending.attempts },
            &pending,
            carrier,
        );
        self.transmit_request(carrier, &pending);
        if let Some(slot) = self.pending_mut(slot) {
            *slot = pending;
        }
        true
    }

    /// What is known of the round trip to the home agent through interface `index`.
    pub(super) fn round_trip(&self, index: usize) -> RoundTrip {
        let interface = self.interfaces.get(index);
        // The least, for a queue on the way may have made it anything, and too short a time costs a request.
        let least = interface.and_then(|interface| interface.least_round_trip).unwrap_or_else(|| {
            let others = self.interfaces.iter().filter_map(|other| other.least_round_trip);
            others.fold(ASSUMED_ROUND_TRIP, Duration::min)
        });
        RoundTrip { latest: interface.and_then(|interface| interface.path.round_trip), least }
    }

    /// Whether it has just become clear that the agent does not answer: then another one may be better.
    fn agent_is_silent(&mut self, carrier: usize, pending: &Pending) -> bool {
        let agent = self.heard_agent(pending.attachment).filter(|_| pending.unanswered >= SILENT_AFTER);
        let Some(agent) = agent else { return false };
        self.interfaces.get_mut(carrier).is_some_and(|interface| interface.agents.set_silent(agent, true))
    }

    /// Whether enough requests have stayed without reply; then what follows from it is done.
    fn gives_up(&mut self, now: Instant, slot: Slot, pending: &Pending) -> bool {
        match slot {
            Slot::Farewell(_) => {
                let enough = pending.unanswered >= MAX_FAREWELLS;
                if enough {
                    self.remove_pending(slot);
                    if pending.purpose == Purpose::Farewell {
                        self.forget_bindings();
                    }
                }
                enough
            }
            Slot::Interface(index) => {
                let limit = self.config.retransmission.attempts;
                let enough = limit.is_some_and(|limit| pending.unanswered >= limit);
                enough && self.leave_silent(now, index, pending.attachment)
            }
        }
    }

    pub(super) fn registration_event(&mut self, step: RegistrationStep, pending: &Pending, carrier: usize) {
        let care_of = match pending.purpose {
            Purpose::Register => pending.attachment.care_of().unwrap_or(self.config.home_address),
            Purpose::Release { care_of } => care_of,
            Purpose::Farewell => self.config.home_address,
        };
        self.outbox.event(Event::Registration(RegistrationEvent {
            step,
            home_address: self.config.home_address,
            care_of,
            lifetime: pending.lifetime,
            identification: pending.identification.unwrap_or_default(),
            interface: self.interfaces.get(carrier).map(|interface| interface.config.id),
        }));
    }
}
