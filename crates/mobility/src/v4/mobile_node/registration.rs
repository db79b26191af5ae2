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
    /// When the request was last sent.
    pub(super) sent_at: Instant,
    /// When it is to be sent, or sent again.
    pub(super) next: Instant,
    pub(super) attempts: u32,
    /// Attempts since the last sign of life of an agent.
    pub(super) unanswered: u32,
    timeout: Duration,
    pub(super) repairs: u32,
}

/// Requests for a release or a farewell: the binding ends by itself, too.
const MAX_FAREWELLS: u32 = 3;

/// Requests without an answer after which another agent is tried, if there is one.
const SILENT_AFTER: u32 = 3;

/// The wait before the first retransmission.
fn initial_timeout(config: &RetransmissionConfig, round_trip: Option<Duration>) -> Duration {
    let estimate = round_trip.unwrap_or_default().saturating_mul(2).saturating_add(config.processing);
    estimate.max(config.minimum)
}

impl Pending {
    pub(super) fn new(
        now: Instant,
        purpose: Purpose,
        attachment: Attachment,
        config: &RetransmissionConfig,
        round_trip: Option<Duration>,
    ) -> Self {
        Self {
            purpose,
            attachment,
            lifetime: Lifetime::ZERO,
            flags: RequestFlags::default(),
            encapsulating_delivery: false,
            peer: Ipv4Addr::UNSPECIFIED,
            identification: None,
            bytes: Vec::new(),
            sent_at: now,
            next: now,
            attempts: 0,
            unanswered: 0,
            timeout: initial_timeout(config, round_trip),
            repairs: 0,
        }
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
        self.flags = wishes.flags;
        self.lifetime = wishes.lifetime;
        self.encapsulating_delivery = wishes.encapsulating_delivery;
        self.peer = peer;
        self.identification = Some(identification);
        self.bytes = bytes;
    }

    /// With a new Identification, at once; a reply to what was sent so far says nothing any more.
    pub(super) fn begin_again(&mut self) {
        self.identification = None;
        self.bytes.clear();
        self.unanswered = 0;
        self.next = Instant::ZERO;
    }

    pub(super) fn answers(&self, identification: Identification) -> bool {
        self.identification.is_some_and(|own| own.low() == identification.low())
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
        let due = self.slots().filter_map(|slot| {
            let interface = self.interfaces.get(self.carrier(slot)?)?;
            interface.up.then_some(self.pending(slot)?.next)
        });
        due.min()
    }

    /// Sends every request that is due. Returns whether something was given up instead, so that the rest
    /// must be brought in line with it.
    pub(super) fn send_due(&mut self, now: Instant) -> bool {
        let mut gave_up = false;
        // Giving up removes a slot; the next one is looked at on the next call.
        let mut index = 0;
        while let Some(slot) = self.slots().nth(index) {
            index += 1;
            let up = self.carrier(slot).and_then(|i| self.interfaces.get(i)).is_some_and(|i| i.up);
            let due = self.pending(slot).is_some_and(|pending| pending.next <= now);
            if !up || !due {
                continue;
            }
            let allowed = self.pace.earliest(now);
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
                        pending.next = now + pending.timeout;
                    }
                    return true;
                }
            }
        }
        if self.agent_is_silent(carrier, &pending) {
            return false;
        }
        if pending.unanswered > 0 {
            self.registration_event(
                RegistrationStep::TimedOut { attempt: pending.attempts },
                &pending,
                carrier,
            );
            if self.gives_up(now, slot, &pending) {
                return false;
            }
        }
        let unchanged = self.identifications.retransmits_unchanged() && pending.unanswered > 0;
        if !unchanged || pending.bytes.is_empty() {
            self.compose(now, carrier, &mut pending);
        }
        pending.attempts = pending.attempts.saturating_add(1);
        pending.unanswered = pending.unanswered.saturating_add(1);
        pending.sent_at = now;
        pending.next = now + pending.timeout;
        let longest = pending.lifetime.duration().filter(|lifetime| !lifetime.is_zero());
        let longest = longest.unwrap_or(Duration::MAX).min(self.config.retransmission.maximum);
        pending.timeout =
            pending.timeout.saturating_mul(2).min(longest).max(self.config.retransmission.minimum);
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
