//! Binding Updates at a correspondent node (RFC 6275 section 9.5, RFC 5648 section 6.2).

use core::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingAuthorization, BindingId, BindingIdentifier,
    BindingStatus, BindingUpdate, Lifetime, Message, MobilityOption, NonceIndices, SequenceNumber,
    UpdateFlags,
};

use super::CorrespondentNode;
use crate::v6::authentication;
use crate::v6::binding_cache::{Accepted, CachedBinding};
use crate::v6::return_routability::RecoveredKey;
use crate::v6::{Addresses, DropReason, Event, RegistrationEvent, RegistrationStep};

/// A Binding Update, as far as it takes to carry it out and to answer it.
#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    addresses: &'a Addresses,
    home_address: Ipv6Addr,
    care_of: Ipv6Addr,
    update: &'a BindingUpdate,
    /// The only binding it names (RFC 5648).
    id: Option<BindingId>,
}

/// How an update is answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    status: BindingStatus,
    lifetime: Lifetime,
    sequence: SequenceNumber,
}

type Refusal = (DropReason, Answer);

impl Request<'_> {
    fn is_deletion(&self) -> bool {
        self.update.lifetime.is_zero()
    }

    fn has(&self, flag: UpdateFlags) -> bool {
        self.update.flags.contains(flag)
    }

    fn answer(&self, status: BindingStatus, lifetime: Lifetime) -> Answer {
        Answer { status, lifetime, sequence: self.update.sequence }
    }

    fn refusal(&self, reason: DropReason, status: BindingStatus) -> Refusal {
        (reason, self.answer(status, Lifetime::ZERO))
    }

    /// The care-of address that its authenticator covers (RFC 6275 section 6.2.7).
    fn covered_care_of(&self) -> Ipv6Addr {
        if self.is_deletion() { self.home_address } else { self.care_of }
    }

    fn event(&self, correspondent: Ipv6Addr, step: RegistrationStep) -> Event {
        Event::Registration(RegistrationEvent {
            step,
            home_address: self.home_address,
            care_of: self.care_of,
            peer: correspondent,
            lifetime: self.update.lifetime,
            sequence: self.update.sequence,
            interface: None,
        })
    }
}

impl CorrespondentNode {
    /// The tests are those of section 9.5.1. The sequence number is looked at behind the authenticator, not before: its answer tells the
    /// last number, and is to carry an authenticator, for which the nonces must be known.
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        addresses: &Addresses,
        bytes: &[u8],
        update: &BindingUpdate,
    ) {
        let request = Request {
            addresses,
            home_address: addresses.real_source(),
            care_of: authentication::care_of_address(update, addresses.source),
            update,
            id: update.options.binding_identifiers().next().map(|named| named.id),
        };
        self.outbox.event(request.event(self.config.address, RegistrationStep::UpdateReceived));
        let indices = match self.check_form(&request) {
            Ok(indices) => indices,
            Err(reason) => {
                self.outbox.drop(reason, addresses.source);
                if reason == DropReason::NotOffered {
                    let status = BindingStatus::HomeRegistrationNotSupported;
                    self.refuse_unproved(now, &request, status);
                }
                return;
            }
        };
        let care_of = (!request.is_deletion()).then_some(request.care_of);
        let recovered = match self.routability.key(now, indices, request.home_address, care_of) {
            Ok(recovered) => recovered,
            Err(status) => {
                self.outbox.drop(DropReason::ExpiredNonce, addresses.source);
                return self.refuse_unproved(now, &request, status);
            }
        };
        if !self.authorization(&request, &recovered).verify(bytes) {
            return self.outbox.drop(DropReason::BadAuthenticator, addresses.source);
        }
        // Discarded without an answer (section 6.1.7); a care-of address at home, or here, would be no route.
        let leads_nowhere = request.care_of == request.home_address || request.care_of == self.config.address;
        if !request.is_deletion() && (!is_unicast_routable(request.care_of) || leads_nowhere) {
            return self.outbox.drop(DropReason::PoorlyFormed, addresses.source);
        }
        match self.carry_out(now, &request, recovered.until) {
            Ok(answer) => {
                self.outbox.counters.count_accepted();
                if request.has(UpdateFlags::ACKNOWLEDGE) {
                    self.acknowledge(&request, answer, Some(&recovered));
                }
            }
            Err((reason, answer)) => {
                self.outbox.drop(reason, addresses.source);
                let allowed = match self.cache.refusals(request.home_address) {
                    Some(ration) => ration.allows(now),
                    None => self.answers.allows(now, addresses.source),
                };
                if allowed {
                    self.acknowledge(&request, answer, Some(&recovered));
                } else {
                    self.outbox.counters.count_suppressed_answer();
                }
            }
        }
    }

    /// Whether the update is one that a correspondent node can look at. One that is not is silently discarded, but for a home
    /// registration (section 10.3.1).
    fn check_form(&self, request: &Request<'_>) -> Result<NonceIndices, DropReason> {
        if !is_unicast_routable(request.home_address) || request.home_address == self.config.address {
            return Err(DropReason::PoorlyFormed);
        }
        if request.has(UpdateFlags::HOME_REGISTRATION) {
            return Err(DropReason::NotOffered);
        }
        let options = &request.update.options;
        options.binding_authorization_data().ok_or(DropReason::MissingAuthenticator)?;
        options.nonce_indices().ok_or(DropReason::MissingAuthenticator)
    }

    fn authorization<'a>(
        &self,
        request: &Request<'_>,
        recovered: &'a RecoveredKey,
    ) -> BindingAuthorization<'a> {
        BindingAuthorization {
            key: &recovered.key,
            care_of_address: request.covered_care_of(),
            correspondent: self.config.address,
        }
    }

    /// Does what an authentic update asks for. It could be repeated until `until`.
    fn carry_out(&mut self, now: Instant, request: &Request<'_>, until: Instant) -> Result<Answer, Refusal> {
        let last = self.cache.last_sequence(request.home_address);
        if let Some(last) = last.filter(|last| !request.update.sequence.is_after(*last)) {
            let (reason, status) =
                (DropReason::SequenceOutOfWindow, BindingStatus::SequenceNumberOutOfWindow);
            let (reason, answer) = request.refusal(reason, status);
            return Err((reason, Answer { sequence: last, ..answer }));
        }
        self.check_identifiers(request)?;
        let before = self.cache.of(request.home_address).last().map(|binding| binding.care_of);
        let accepted = Accepted { sequence: request.update.sequence, until };
        let (changes, answer) = if request.is_deletion() {
            if request.id.is_some()
                && !self.cache.of(request.home_address).any(|known| known.id == request.id)
            {
                let status = BindingStatus::NotHomeAgentForThisMobileNode;
                return Err(request.refusal(DropReason::NoBinding, status));
            }
            let changes = self.cache.delete(now, request.home_address, request.id, accepted);
            (changes, request.answer(BindingStatus::Accepted, Lifetime::ZERO))
        } else {
            self.check_room(request)?;
            let lifetime = request.update.lifetime.min(self.config.max_lifetime);
            let binding = CachedBinding {
                home_address: request.home_address,
                care_of: request.care_of,
                id: request.id,
                lifetime,
                expires: now + lifetime.duration(),
            };
            let keep_others = request.id.is_some() && !request.has(UpdateFlags::OVERWRITE);
            let changes = self.cache.insert(now, binding, accepted, keep_others);
            (changes, request.answer(BindingStatus::Accepted, lifetime))
        };
        changes.into_iter().for_each(|change| self.outbox.event(Event::Binding(change)));
        let care_of = (!request.is_deletion()).then_some(request.care_of);
        // One that repeats what is known tells nothing new.
        if request.has(UpdateFlags::END_OF_HANDOVER) && before != care_of {
            let home_address = request.home_address;
            let care_of = care_of.unwrap_or(home_address);
            self.outbox.event(Event::HandoverEnded { home_address, care_of });
        }
        Ok(answer)
    }

    /// Whether the bindings that the update names can be registered or deleted (RFC 5648 section 6.2).
    fn check_identifiers(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let options = &request.update.options;
        let is_malformed = |named: &BindingIdentifier| {
            named.id.is_reserved() || matches!(named.care_of_address, Some(IpAddr::V4(_)))
        };
        if options.has_malformed_binding_identifier() || options.binding_identifiers().any(is_malformed) {
            return Err(request.refusal(DropReason::PoorlyFormed, BindingStatus::McoaMalformed));
        }
        let Some(named) = options.binding_identifiers().next() else { return Ok(()) };
        if options.binding_identifiers().count() > 1 {
            let status = BindingStatus::McoaBulkRegistrationProhibited;
            return Err(request.refusal(DropReason::NotOffered, status));
        }
        if self.config.max_bindings_per_node == 1 {
            return Err(request.refusal(DropReason::NotOffered, BindingStatus::McoaProhibited));
        }
        if request.is_deletion() {
            return Ok(());
        }
        let mut known = self.cache.of(request.home_address);
        if named.care_of_address.is_none() && !known.any(|binding| binding.id == Some(named.id)) {
            return Err(request.refusal(DropReason::NoBinding, BindingStatus::McoaUnknownCareOfAddress));
        }
        let mut known = self.cache.of(request.home_address);
        if !request.has(UpdateFlags::OVERWRITE) && known.any(|binding| binding.id.is_none()) {
            let status = BindingStatus::McoaNonMcoaBindingExists;
            return Err(request.refusal(DropReason::NotOffered, status));
        }
        Ok(())
    }

    /// Whether there is room for the binding.
    fn check_room(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let others = self.cache.of(request.home_address).filter(|known| known.id != request.id).count();
        let replaces = request.id.is_none() || request.has(UpdateFlags::OVERWRITE);
        let too_many = !replaces && others >= self.config.max_bindings_per_node;
        if too_many || !self.cache.has_room(request.home_address) {
            return Err(request.refusal(DropReason::TableFull, BindingStatus::InsufficientResources));
        }
        Ok(())
    }

    /// Refuses an update of which nothing is proved. Anybody can send it in anybody's name, so there is a ration of answers.
    fn refuse_unproved(&mut self, now: Instant, request: &Request<'_>, status: BindingStatus) {
        if self.answers.allows(now, request.addresses.source) {
            self.acknowledge(request, request.answer(status, Lifetime::ZERO), None);
        } else {
            self.outbox.counters.count_suppressed_answer();
        }
    }

    /// Answers to the source address of the update, by way of the home address where it had claimed one (section 9.5.4).
    fn acknowledge(&mut self, request: &Request<'_>, answer: Answer, recovered: Option<&RecoveredKey>) {
        let Answer { status, lifetime, sequence } = answer;
        let named = request.update.options.binding_identifiers();
        let options = named.map(|named| MobilityOption::BindingIdentifier(BindingIdentifier::new(named.id)));
        let message = Message::BindingAcknowledgement(BindingAcknowledgement {
            status,
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime,
            options: options.collect(),
        });
        let mut way = Addresses::new(self.config.address, request.addresses.source);
        way.type_2_routing = request.addresses.home_address;
        let destination = way.real_destination();
        let bytes = match recovered {
            Some(recovered) => {
                let authorization = self.authorization(request, recovered);
                message.emit_authorized(way.source, destination, &authorization)
            }
            None => message.emit(way.source, destination),
        };
        // It is never longer than the update.
        let Ok(bytes) = bytes else { return };
        if !status.is_accepted() {
            self.outbox.counters.count_refusal(status.number());
        }
        self.outbox.mobility(None, way, bytes);
        let step = RegistrationStep::AcknowledgementSent { status };
        self.outbox.event(request.event(self.config.address, step));
    }
}
