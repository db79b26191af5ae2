//! Binding Updates at a home agent: what they must be, what becomes of them, and how they are acknowledged (RFC 6275 sections 9.5.1
//! and 10.3, RFC 4285 sections 5 and 6, RFC 5648 section 6.2).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use careof_base::Instant;
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingId, BindingIdentifier, BindingStatus, BindingUpdate,
    Ipv4HomeAddress, Lifetime, Message, MobileNodeIdentifier, MobilityOption, MobilityOptions, NtpTimestamp,
    PathReport, ReceivedData, SequenceNumber, Spi, ToldPath, UpdateFlags,
};

use super::bindings::HomeRegistration;
use super::dual_stack::asked_for;
use super::{HomeAgent, Pending};
use crate::replay::ReplayGuard;
use crate::v6::authentication::{self, ReplayProtection};
use crate::v6::{
    Addresses, BindingChanged, DropReason, Event, NeighborEvent, RegistrationEvent, RegistrationStep, Tunnel,
};
use crate::{Change, InterfaceId, path_news};

/// MAX_DELETE_BCE_TIMEOUT (RFC 6275 section 12).
pub(super) const DELETED_FOR: Duration = Duration::from_secs(10);

/// A Binding Update whose authenticator was found right, as far as it takes to carry it out and to answer it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    interface: InterfaceId,
    pub(super) addresses: Addresses,
    pub(super) home_address: Ipv6Addr,
    pub(super) care_of: Ipv6Addr,
    sequence: SequenceNumber,
    lifetime: Lifetime,
    flags: UpdateFlags,
    spi: Spi,
    /// For the acknowledgement: that of the update, or the one to use next.
    timestamp: Option<NtpTimestamp>,
    identifier: Option<MobileNodeIdentifier>,
    ids: Vec<BindingIdentifier>,
    pub(super) ipv4_homes: Vec<Ipv4HomeAddress>,
    path: Option<ToldPath>,
    received: ReceivedData,
}

/// How an update is answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    status: BindingStatus,
    lifetime: Lifetime,
    sequence: SequenceNumber,
}

pub(super) type Refusal = (DropReason, BindingStatus);

impl Request {
    pub(super) fn has(&self, flag: UpdateFlags) -> bool {
        self.flags.contains(flag)
    }

    fn answer(&self, status: BindingStatus, lifetime: Lifetime) -> Answer {
        Answer { status, lifetime, sequence: self.sequence }
    }

    /// Whether it is to end a binding (section 9.5.1).
    fn is_deregistration(&self) -> bool {
        self.lifetime.is_zero() || self.care_of == self.home_address && self.outer_source().is_none()
    }
}

impl HomeAgent {
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        bytes: &[u8],
        update: &BindingUpdate,
    ) {
        let request = match self.authenticate(now, interface, addresses, bytes, update) {
            Ok(request) => request,
            Err(reason) => return self.outbox.drop(reason, addresses.source),
        };
        let answer = match self.check_fresh(now, &request, update) {
            Ok(timestamp) => {
                let request = Request { timestamp: timestamp.or(request.timestamp), ..request };
                self.carry_out(now, request, update)
            }
            Err((reason, answer, timestamp)) => {
                self.outbox.drop(reason, addresses.source);
                // It has the key, or was sent before by somebody who has.
                let allowed =
                    self.nodes.get_mut(&request.home_address).is_some_and(|node| node.refusals.allows(now));
                if !allowed {
                    return self.outbox.counters.count_suppressed_answer();
                }
                Some((Request { timestamp: timestamp.or(request.timestamp), ..request }, answer))
            }
        };
        if let Some((request, answer)) = answer {
            self.acknowledge(&request, answer);
        }
    }

    /// Whether the update is the mobile node's, and one that can be answered. One that is neither is silently discarded, but for a
    /// wrong authenticator under a known SPI (RFC 4285 section 5.1.1).
    fn authenticate(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        bytes: &[u8],
        update: &BindingUpdate,
    ) -> Result<Request, DropReason> {
        let home_address = addresses.real_source();
        let care_of = authentication::home_care_of_address(update, addresses.source);
        // Through IPv4 the home address is the source (RFC 5555 section 4.4.2).
        let is_ipv4 = addresses.ipv4_tunnel().is_some();
        if !is_unicast_routable(home_address) || is_ipv4 && addresses.source != home_address {
            return Err(DropReason::PoorlyFormed);
        }
        let request = Request {
            interface,
            addresses,
            home_address,
            care_of,
            sequence: update.sequence,
            lifetime: update.lifetime,
            flags: update.flags,
            spi: Spi(0),
            timestamp: update.options.replay_protection(),
            identifier: update.options.mobile_node_identifier().cloned(),
            ids: update.options.binding_identifiers().copied().collect(),
            ipv4_homes: asked_for(update.options.ipv4_home_addresses()),
            path: update.options.told_path(),
            received: update.options.received_data(),
        };
        self.outbox.event(Event::Registration(self.event(&request, RegistrationStep::UpdateReceived)));
        if self.role.is_addressed(request.flags) && update.options.nonce_indices().is_some() {
            return Err(DropReason::PoorlyFormed);
        }
        let node = self.nodes.get(&home_address).ok_or(DropReason::UnknownHomeAddress)?;
        let associations = node.security.iter();
        let spi = match authentication::check(bytes, &update.options, associations, care_of, home_address) {
            Ok(association) => association.spi(),
            // A correspondent's (section 9.5.1), which a home agent is not.
            Err(DropReason::MissingAuthenticator) if !self.role.is_addressed(request.flags) => {
                return Err(DropReason::NotForUs);
            }
            Err(reason) => {
                let subtype = careof_wire::mip6::AuthenticationSubtype::MobileHome;
                let named = update.options.message_authentication(subtype).map(|found| found.spi());
                if let (DropReason::BadAuthenticator, Some(spi)) = (reason, named) {
                    self.tell_unauthentic(now, &Request { spi, ..request });
                }
                return Err(reason);
            }
        };
        if node.identifier.is_some() && node.identifier != request.identifier {
            return Err(DropReason::UnknownHomeAddress);
        }
        Ok(Request { spi, ..request })
    }

    /// Anybody can send a wrong authenticator in anybody's name, so there is a ration of answers.
    fn tell_unauthentic(&mut self, now: Instant, request: &Request) {
        let source = request.addresses.tunnel.map_or(request.addresses.source, |tunnel| tunnel.entry);
        // A network of IPv4 has a share of its own.
        if self.answers.allows(now, source.to_canonical()) {
            let answer = request.answer(BindingStatus::AuthenticationFailed, Lifetime::ZERO);
            self.acknowledge(request, answer);
        } else {
            self.outbox.counters.count_suppressed_answer();
        }
    }

    /// Whether an authentic update is no repetition of an old one; returns the timestamp for the acknowledgement.
    fn check_fresh(
        &mut self,
        now: Instant,
        request: &Request,
        update: &BindingUpdate,
    ) -> Result<Option<NtpTimestamp>, (DropReason, Answer, Option<NtpTimestamp>)> {
        let home_address = request.home_address;
        let clock = self.config.clock.at(now);
        let refused = |status| request.answer(status, Lifetime::ZERO);
        let protection = self.nodes.get(&home_address).and_then(|node| {
            let used = node.security.iter().find(|association| association.spi() == request.spi);
            used.map(|association| association.replay())
        });
        match protection {
            Some(ReplayProtection::Timestamps { window }) => {
                let Some(stamp) = update.options.replay_protection() else {
                    let answer = refused(BindingStatus::MessageIdRequired);
                    return Err((DropReason::Replayed, answer, None));
                };
                let Some(node) = self.nodes.get_mut(&home_address) else {
                    return Err((
                        DropReason::UnknownHomeAddress,
                        refused(BindingStatus::ReasonUnspecified),
                        None,
                    ));
                };
                let mut guard = ReplayGuard::Timestamps { window, last: node.latest };
                let verdict = guard.check(Identification(stamp.0), clock, &mut self.random);
                let reply = Some(NtpTimestamp(verdict.reply.0));
                if verdict.outcome.is_err() {
                    return Err((DropReason::Replayed, refused(BindingStatus::IdMismatch), reply));
                }
                node.latest = guard.latest();
                Ok(reply)
            }
            Some(ReplayProtection::SequenceNumbers) | None => {
                let waiting = self.pending.get(&home_address).map(|pending| pending.request.sequence);
                let last = waiting.or_else(|| self.bindings.last_sequence(home_address));
                match last.filter(|last| !request.sequence.is_after(*last)) {
                    Some(last) => {
                        let answer =
                            Answer { sequence: last, ..refused(BindingStatus::SequenceNumberOutOfWindow) };
                        Err((DropReason::SequenceOutOfWindow, answer, None))
                    }
                    None => Ok(None),
                }
            }
        }
    }

    /// Does what an authentic, fresh update asks for. Without an answer the acknowledgement has to wait, or there is none.
    fn carry_out(
        &mut self,
        now: Instant,
        request: Request,
        update: &BindingUpdate,
    ) -> Option<(Request, Answer)> {
        let source = request.addresses.source;
        if !self.role.is_addressed(request.flags) {
            if self.bindings.of(request.home_address).is_empty() {
                self.outbox.drop(DropReason::NotForUs, source);
                return None;
            }
            self.outbox.drop(DropReason::PoorlyFormed, source);
            let answer = request.answer(BindingStatus::RegistrationTypeChangeDisallowed, Lifetime::ZERO);
            return Some((request, answer));
        }
        let outcome = match self.check_wishes(&request, update) {
            Ok(()) if request.is_deregistration() => self.deregister(now, &request).map(Some),
            // Without its home address in an option it would be at home (section 10.3.1).
            Ok(()) if request.addresses.home_address.is_none() && request.outer_source().is_none() => {
                self.outbox.drop(DropReason::PoorlyFormed, source);
                return None;
            }
            Ok(()) => self.check_registration(now, &request).map(|()| self.begin(now, &request)),
            Err(refusal) => Err(refusal),
        };
        let answer = match outcome {
            Ok(answer) => answer?,
            Err((reason, status)) => {
                self.outbox.drop(reason, source);
                request.answer(status, Lifetime::ZERO)
            }
        };
        Some((request, answer))
    }

    /// Whether an authentic update asks for something that there is.
    fn check_wishes(&self, request: &Request, update: &BindingUpdate) -> Result<(), Refusal> {
        if !self.nodes.get(&request.home_address).is_some_and(|node| node.permitted) {
            return Err((DropReason::NotOffered, BindingStatus::AdministrativelyProhibited));
        }
        Self::check_encapsulation(request)?;
        let has_ipv4 = self.config.ipv4_address.is_some();
        let is_ipv4 = |id: &BindingIdentifier| matches!(id.care_of_address, Some(IpAddr::V4(_)));
        let is_malformed = |id: &BindingIdentifier| id.id.is_reserved() || !has_ipv4 && is_ipv4(id);
        if update.options.has_malformed_binding_identifier() || request.ids.iter().any(is_malformed) {
            return Err((DropReason::PoorlyFormed, BindingStatus::McoaMalformed));
        }
        let status = match request.ids.as_slice() {
            [] => return Ok(()),
            [_] if self.config.max_bindings_per_node == 1 => BindingStatus::McoaProhibited,
            [id] if id.simultaneous_home_and_foreign => {
                BindingStatus::McoaSimultaneousHomeAndForeignProhibited
            }
            [_] => return Ok(()),
            _ => BindingStatus::McoaBulkRegistrationProhibited,
        };
        Err((DropReason::NotOffered, status))
    }

    /// Whether a binding can be made (section 10.3.1).
    fn check_registration(&self, now: Instant, request: &Request) -> Result<(), Refusal> {
        let (home_address, care_of) = (request.home_address, request.care_of);
        if self.granted(now, request).is_none() {
            return Err((DropReason::NotHomeSubnet, BindingStatus::NotHomeSubnet));
        }
        self.check_network(request)?;
        if !self.can_be_care_of(care_of) {
            return Err((DropReason::PoorlyFormed, BindingStatus::InvalidCareOfAddress));
        }
        let existing = self.bindings.of(home_address);
        self.role.check_care_of(request, !existing.is_empty())?;
        let id = request.ids.first().map(|identifier| identifier.id);
        let overwrites = id.is_none() || request.has(UpdateFlags::OVERWRITE);
        if !overwrites && existing.iter().any(|binding| binding.id.is_none()) {
            return Err((DropReason::PoorlyFormed, BindingStatus::McoaNonMcoaBindingExists));
        }
        let is_known = existing.iter().any(|binding| binding.id == id);
        let tells_care_of = request.ids.first().is_none_or(|identifier| identifier.care_of_address.is_some());
        if !is_known && !tells_care_of {
            return Err((DropReason::PoorlyFormed, BindingStatus::McoaUnknownCareOfAddress));
        }
        let kept = if overwrites { 0 } else { existing.iter().filter(|binding| binding.id != id).count() };
        let too_many = kept >= self.config.max_bindings_per_node
            || self.bindings.len() - existing.len() + kept >= self.config.max_bindings;
        if too_many {
            return Err((DropReason::TableFull, BindingStatus::InsufficientResources));
        }
        Ok(())
    }

    /// The lifetime that the update can have, and whether the home address's prefix is, or becomes by its end, deprecated or invalid
    /// (section 10.3.1); `None` when the home address is of no prefix of the home network.
    fn granted(&self, now: Instant, request: &Request) -> Option<(Lifetime, bool)> {
        let (valid, preferred) = self.prefixes.left_of(now, request.home_address)?;
        let [valid, preferred] = [valid, preferred].map(|left| left.as_secs() / 4);
        let longest = self.role.longest(request.care_of, self.config.max_lifetime);
        let granted = request.lifetime.min(longest);
        let lifetime = Lifetime::from_units(u16::try_from(valid).unwrap_or(u16::MAX).min(granted.as_units()));
        let units = u64::from(lifetime.as_units());
        (!lifetime.is_zero()).then_some((lifetime, preferred < units || valid <= units))
    }

    /// Enters the binding, or first finds out whether somebody else has the home address. Then the answer waits.
    fn begin(&mut self, now: Instant, request: &Request) -> Option<Answer> {
        let home_address = request.home_address;
        let is_known = !self.bindings.of(home_address).is_empty();
        let Some(wait) = self.config.duplicate_address_detection.filter(|_| !is_known) else {
            return Some(self.register(now, request));
        };
        let link_local = request.has(UpdateFlags::LINK_LOCAL_ADDRESS_COMPATIBILITY);
        if let Some(pending) = self.pending.get_mut(&home_address) {
            // The latest is answered; what is in doubt stays so.
            pending.request = request.clone();
            return None;
        }
        let in_doubt: Vec<Ipv6Addr> = self.defended(home_address, link_local).collect();
        for &address in &in_doubt {
            let interface = self.config.home_interface;
            let event = NeighborEvent::DetectDuplicate { interface, address, wait };
            self.outbox.event(Event::Neighbor(event));
        }
        // An owner that has nothing to say after twice the time has forgotten.
        let until = now + wait * 2;
        self.pending.insert(home_address, Pending { request: request.clone(), in_doubt, until });
        None
    }

    /// The owner has found out whether somebody else has `address`: the home address of one mobile node, or a link-local address
    /// that belongs to those of several.
    pub(super) fn handle_detection(&mut self, now: Instant, address: Ipv6Addr, unique: bool) {
        let mut decided = Vec::new();
        for (home_address, pending) in &mut self.pending {
            if !pending.in_doubt.contains(&address) {
                continue;
            }
            pending.in_doubt.retain(|doubtful| *doubtful != address);
            if !unique || pending.in_doubt.is_empty() {
                decided.push(*home_address);
            }
        }
        for home_address in decided {
            if let Some(Pending { request, .. }) = self.pending.remove(&home_address) {
                let answer = self.decide(now, &request, unique);
                self.acknowledge(&request, answer);
            }
        }
    }

    /// What becomes of a first binding now that it is known whether its addresses are unique.
    fn decide(&mut self, now: Instant, request: &Request, unique: bool) -> Answer {
        let checked = if unique {
            self.check_registration(now, request)
        } else {
            Err((DropReason::DuplicateAddress, BindingStatus::DuplicateAddressDetectionFailed))
        };
        match checked {
            Ok(()) => self.register(now, request),
            Err((reason, status)) => {
                self.outbox.drop(reason, request.addresses.source);
                request.answer(status, Lifetime::ZERO)
            }
        }
    }

    /// What nobody has found out in time is not accepted: the mobile node will ask again.
    pub(super) fn expire_pending(&mut self, now: Instant) {
        let overdue = |pending: &Pending| pending.until <= now;
        let homes: Vec<_> = self.pending.iter().filter(|(_, p)| overdue(p)).map(|(home, _)| *home).collect();
        for home_address in homes {
            if let Some(Pending { request, .. }) = self.pending.remove(&home_address) {
                self.outbox.drop(DropReason::DuplicateAddress, request.addresses.source);
            }
        }
    }

    /// Enters a binding (section 10.3.1).
    fn register(&mut self, now: Instant, request: &Request) -> Answer {
        let (home_address, care_of) = (request.home_address, request.care_of);
        let Some((lifetime, necessary)) = self.granted(now, request) else {
            return request.answer(BindingStatus::NotHomeSubnet, Lifetime::ZERO);
        };
        let was_away = !self.bindings.of(home_address).is_empty();
        let link_local = request.has(UpdateFlags::LINK_LOCAL_ADDRESS_COMPATIBILITY);
        let id = request.ids.first().map(|identifier| identifier.id);
        let report = self.news(request, id);
        let registration = HomeRegistration {
            home_address,
            ipv4_home_address: self.ipv4_home_to_bind(request),
            care_of,
            id,
            lifetime,
            expires: now + lifetime.duration(),
            sequence: request.sequence,
            link_local,
            path: request.path.map(|told| told.report),
        };
        let keep_others = registration.id.is_some() && !request.has(UpdateFlags::OVERWRITE);
        for change in self.bindings.insert(registration, keep_others) {
            if change.change == Change::Removed {
                self.leave(now, home_address, change.care_of);
                self.tell(change);
            } else {
                self.tell(BindingChanged { path: report, received: request.received, ..change });
            }
        }
        self.left.forget(home_address, Some(care_of));
        let was_link_local = self.link_local.contains(&home_address);
        if link_local {
            self.link_local.insert(home_address);
        } else {
            self.link_local.remove(&home_address);
        }
        if !was_away {
            self.defended(home_address, link_local).for_each(|address| self.proxy(address, true));
        } else if was_link_local != link_local {
            self.defended(home_address, true).skip(1).for_each(|address| self.proxy(address, link_local));
        }
        if let Some(config) = self.config.prefix_advertisements {
            let preferred =
                self.prefixes.left_of(now, home_address).map_or(Duration::ZERO, |(_, preferred)| preferred);
            self.deliveries.ensure(now, home_address, (config, preferred), &mut self.random);
        }
        let status = if necessary && self.role.is_home_agent() {
            BindingStatus::AcceptedPrefixDiscoveryNecessary
        } else {
            BindingStatus::Accepted
        };
        request.answer(status, lifetime)
    }

    /// What an update tells of the path of the binding `id` that the home agent has not been told. One that repeats another has a number
    /// after that of the first that asked for the same, and so had the one that was accepted if it was one of them.
    fn news(&self, request: &Request, id: Option<BindingId>) -> Option<PathReport> {
        let ToldPath { report, first } = request.path?;
        let mut known = self.bindings.of(request.home_address).iter();
        let before = known.find(|binding| binding.id == id && binding.care_of == request.care_of);
        let is_repetition = || before.is_some_and(|before| !first.is_after(before.sequence));
        Some(path_news::news(report, before.and_then(|before| before.path), is_repetition))
    }

    /// What is under way from a care-of address that the mobile node leaves is still welcome.
    fn leave(&mut self, now: Instant, home_address: Ipv6Addr, care_of: Ipv6Addr) {
        let tunnel = self.tunnel_to(care_of);
        self.left.add(now, home_address, (care_of, tunnel), self.config.late_reverse_tunnel);
    }

    /// Ends the binding that the update names, or all of them (section 10.3.2, RFC 5648 section 6.2).
    fn deregister(&mut self, now: Instant, request: &Request) -> Result<Answer, Refusal> {
        let home_address = request.home_address;
        let id = request.ids.first().map(|identifier| identifier.id);
        let was_waiting = self.pending.remove(&home_address).is_some();
        let changes = match id {
            Some(id) => self.bindings.remove(home_address, Some(id)).into_iter().collect(),
            None => self.bindings.remove_all(home_address),
        };
        // An entry that is marked as invalid is still there: the acknowledgement may have been lost.
        let is_known = !changes.is_empty() || was_waiting || self.bindings.was_deleted(home_address);
        if !is_known {
            // It may have overtaken the update whose binding it is to end, which is not to make it any more.
            self.bindings.accept_sequence(home_address, request.sequence);
            return Err((DropReason::NoBinding, BindingStatus::NotHomeAgentForThisMobileNode));
        }
        for change in changes {
            self.leave(now, home_address, change.care_of);
            let (path, received) = (request.path.map(|told| told.report), request.received);
            self.tell(BindingChanged { path, received, ..change });
            self.end_service_of_bindingless(home_address);
        }
        self.bindings.accept_sequence(home_address, request.sequence);
        if self.bindings.of(home_address).is_empty() {
            self.bindings.mark_deleted(home_address, request.sequence, now + DELETED_FOR);
        }
        Ok(request.answer(BindingStatus::Accepted, Lifetime::ZERO))
    }

    /// Sends a Binding Acknowledgement, whatever A says (section 10.3.1), to where the update came from (section 9.5.4).
    fn acknowledge(&mut self, request: &Request, answer: Answer) {
        let Answer { status, lifetime, sequence } = answer;
        let Some(node) = self.nodes.get(&request.home_address) else { return };
        let association = node.security.iter().find(|association| association.spi() == request.spi);
        let Some(association) = association.or(node.security.first()) else { return };
        let mut options = MobilityOptions::new();
        if let Some(identifier) = &request.identifier {
            options.push(MobilityOption::MobileNodeIdentifier(identifier.clone()));
        }
        if let Some(timestamp) = request.timestamp {
            options.push(MobilityOption::ReplayProtection(timestamp));
        }
        // RFC 5648 section 8.2: in front of the Binding Identifier options.
        if status.is_accepted() && !lifetime.is_zero() {
            self.ipv4_answers(request)
                .map(MobilityOption::Ipv4AddressAcknowledgement)
                .for_each(|o| options.push(o));
        }
        for identifier in &request.ids {
            options.push(MobilityOption::BindingIdentifier(BindingIdentifier::new(identifier.id)));
        }
        if status.is_accepted()
            && let Some(advice) = self.advice(lifetime)
        {
            options.push(MobilityOption::BindingRefreshAdvice(advice));
        }
        if let Some(nat) = request.nat_detection() {
            options.push(nat);
        }
        let way = self.way_back(request);
        let flags = AcknowledgementFlags::default();
        let message = Message::BindingAcknowledgement(BindingAcknowledgement {
            status,
            flags,
            sequence,
            lifetime,
            options,
        });
        let authentication = association.authentication(request.care_of, request.home_address);
        let emitted = message.emit_authenticated(way.real_source(), way.real_destination(), &authentication);
        let Ok(bytes) = emitted else { return };
        if status.is_accepted() {
            self.outbox.counters.count_accepted();
        } else {
            self.outbox.counters.count_refusal(status.number());
        }
        let mut event = self.event(request, RegistrationStep::AcknowledgementSent { status });
        (event.lifetime, event.sequence) = (lifetime, sequence);
        self.outbox.event(Event::Registration(event));
        // The way to a home address may still lead into a tunnel; one that sends from home is on the link.
        let at_home = request.addresses.source == request.home_address && way.tunnel.is_none();
        self.outbox.mobility(at_home.then_some(request.interface), way, bytes);
    }

    /// How the acknowledgement of an update travels: as the update did.
    fn way_back(&self, request: &Request) -> Addresses {
        let Addresses { source, home_address, udp_port, .. } = request.addresses;
        let way = Addresses::new(self.config.address, source);
        if let Some((there, here)) = request.addresses.ipv4_tunnel() {
            return Addresses { udp_port, ..way.through(Tunnel::through_ipv4(here, there)) };
        }
        match home_address {
            Some(home_address) => way.with_type_2_routing(home_address),
            None => way,
        }
    }

    /// When the mobile node should renew a binding of this `lifetime`, if it is advised.
    fn advice(&self, lifetime: Lifetime) -> Option<Lifetime> {
        let percent = u32::from(self.config.refresh_advice_percent?);
        let units = u32::from(lifetime.as_units()) * percent / 100;
        // Below that of the binding (section 10.3.1).
        u16::try_from(units).ok().filter(|&units| units > 0).map(Lifetime::from_units)
    }

    fn event(&self, request: &Request, step: RegistrationStep) -> RegistrationEvent {
        RegistrationEvent {
            step,
            home_address: request.home_address,
            care_of: request.care_of,
            peer: self.config.address,
            lifetime: request.lifetime,
            sequence: request.sequence,
            interface: Some(request.interface),
        }
    }
}
