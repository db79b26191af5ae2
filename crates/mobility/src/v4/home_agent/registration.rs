//! Registration requests at a home agent: what they must be, what becomes of them, and how they are answered (RFC 5944 section 3.8).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Identification, Lifetime, Message, PathNumber, ReceivedData,
    RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags, Spi,
};

use super::HomeAgent;
use crate::multipath::PathId;
use crate::v4::authentication::{self, Found};
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::lifetime::end_of;
use crate::v4::path_news::news;
use crate::v4::unicast::is_unicast;
use crate::v4::{
    ArpEvent, ArpOwner, BindingChanged, Change, DropReason, EncapsulationChoice, Event, InterfaceId,
    MobilityBinding, RegistrationEvent, RegistrationStep, ReverseTunnel, Transmit, TransmitPayload, Tunnel,
};

/// How a request came, as far as the reply needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) interface: InterfaceId,
    pub(super) source: Ipv4Addr,
    pub(super) source_port: u16,
    pub(super) destination: Ipv4Addr,
}

/// What the home agent answers.
#[derive(Clone, Copy, Debug)]
struct Answer {
    code: ReplyCode,
    lifetime: Lifetime,
    identification: Identification,
    /// The path that packets are dispersed over from now on.
    path: Option<PathId>,
}

impl HomeAgent {
    pub(super) fn handle_message(&mut self, now: Instant, origin: Origin, bytes: &[u8], message: &Message) {
        let request = match message {
            Message::Request(request) => request,
            Message::BindingWarning(warning) => return self.handle_warning(now, origin, warning),
            Message::BindingRequest(request) => {
                return self.handle_binding_request(now, origin, bytes, message, request);
            }
            Message::BindingAcknowledge(acknowledge) => {
                return self.handle_acknowledge(origin, bytes, message, acknowledge);
            }
            Message::PathProbe(probe) => return self.handle_probe(now, origin, bytes, message, probe),
            Message::Reply(_) | Message::BindingUpdate(_) => {
                return self.outbox.drop(DropReason::NotForUs, origin.source);
            }
        };
        // For foreign agents, of a type that must be understood (section 1.8).
        if message.extensions().iter().any(|e| matches!(e, Extension::PreviousForeignAgent(_))) {
            return self.outbox.drop(DropReason::UnknownExtension, origin.source);
        }
        self.outbox.event(Event::Registration(RegistrationEvent {
            step: RegistrationStep::RequestReceived,
            home_address: request.home_address,
            care_of: request.care_of_address,
            lifetime: request.lifetime,
            identification: request.identification,
            interface: Some(origin.interface),
        }));
        // Somebody with whom nothing was agreed cannot even be answered (section 3.8.2.1).
        if !self.nodes.contains_key(&request.home_address) {
            return self.outbox.drop(DropReason::UnknownHomeAddress, origin.source);
        }
        // Nor is what nobody has signed.
        if authentication::find(message, AuthenticationKind::MobileHome) == Found::None {
            return self.outbox.drop(DropReason::MissingAuthenticator, origin.source);
        }
        match self.check_origin(now, origin, bytes, message, request) {
            Ok((spi, identification)) => {
                let answer = match self.check_wishes(request) {
                    Ok(()) if request.lifetime.is_zero() => Ok(self.deregister(now, origin, request)),
                    Ok(()) => self.register(now, request),
                    Err(refusal) => Err(refusal),
                };
                let answer = match answer {
                    Ok((code, lifetime)) => {
                        let path = self.path_of(request).filter(|_| !lifetime.is_zero());
                        Answer { code, lifetime, identification, path }
                    }
                    Err((reason, code)) => {
                        self.outbox.drop(reason, origin.source);
                        Answer { code, lifetime: request.lifetime, identification, path: None }
                    }
                };
                self.reply(origin, request, answer, Some(spi));
                self.tell_correspondents(now, request.home_address);
            }
            Err((reason, code, identification)) => {
                self.outbox.drop(reason, origin.source);
                if !self.may_deny(now, origin.source, bytes, message, (request.home_address, code)) {
                    return self.outbox.counters.count_suppressed_denial();
                }
                let answer = Answer { code, lifetime: request.lifetime, identification, path: None };
                let spi = message.authentication(AuthenticationKind::MobileHome).map(|(_, e)| e.spi());
                self.reply(origin, request, answer, spi);
            }
        }
    }

    /// Whether the request is what it claims to be: from the mobile node, fresh, and relayed by the foreign
    /// agent (section 3.8.2.1). Returns the security association and the Identification for the reply.
    fn check_origin(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        request: &RegistrationRequest,
    ) -> Result<(Spi, Identification), (DropReason, ReplyCode, Identification)> {
        let own = request.identification;
        let failed = |reason| (reason, ReplyCode::HomeMobileNodeFailedAuthentication, own);
        let node = self.nodes.get_mut(&request.home_address).ok_or(failed(DropReason::UnknownHomeAddress))?;
        let associations = node.security.iter().map(|(association, _)| association);
        let (association, _) =
            authentication::check(bytes, message, AuthenticationKind::MobileHome, associations)
                .map_err(failed)?;
        let spi = association.spi();

        let kind = AuthenticationKind::ForeignHome;
        let checked = match (self.foreign_agents.get(&origin.source), authentication::find(message, kind)) {
            (None, Found::None) => Ok(()),
            (None, _) => Err(DropReason::UnknownSpi),
            // A foreign agent signs no deregistration of an address that is not its own (section 3.8.2.2), and need not sign
            // any other (section 3.7.2.2).
            (Some(_), Found::None) if request.lifetime.is_zero() => Ok(()),
            (Some(association), _) => {
                authentication::check(bytes, message, kind, core::iter::once(association)).map(|_| ())
            }
        };

        let clock = self.config.clock.at(now);
        let guard = node.security.iter_mut().find(|(association, _)| association.spi() == spi);
        let (_, guard) = guard.ok_or(failed(DropReason::UnknownSpi))?;
        // Of these the mobile node has signed nothing: whoever has heard its request can send a copy that is denied for them, and
        // that must not use up the request itself. Only what is accepted counts (section 5.7.1).
        let checked = match checked {
            Err(reason) => Err((reason, ReplyCode::HomeForeignAgentFailedAuthentication, own)),
            // Also how a mobile node finds its home agent: by asking all of the home network (section 3.8.2.1).
            Ok(()) if origin.destination != self.config.address => {
                Err((DropReason::NotForUs, ReplyCode::HomeUnknownHomeAgentAddress, own))
            }
            Ok(()) => Ok(()),
        };
        if checked.is_err() && guard.clone().check(own, clock, &mut self.random).outcome.is_ok() {
            return checked.map(|()| (spi, own));
        }
        let verdict = guard.check(own, clock, &mut self.random);
        if verdict.outcome.is_err() {
            return Err((DropReason::Replayed, ReplyCode::HomeIdentificationMismatch, verdict.reply));
        }
        node.synchronize();
        Ok((spi, verdict.reply))
    }

    /// Whether a request that is not what it claims to be is denied in so many words. A denial "MAY" or "SHOULD" be sent (sections
    /// 3.8.2.1 and 3.8.2.3); many of them would go to whomever the sender names as its source. One "MUST": what a foreign agent
    /// has signed tells who sends it.
    fn may_deny(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        bytes: &[u8],
        message: &Message,
        (home_address, code): (Ipv4Addr, ReplyCode),
    ) -> bool {
        match code {
            // It has the key, or was sent before by somebody who has, or is a copy of what he sent.
            ReplyCode::HomeIdentificationMismatch
            | ReplyCode::HomeForeignAgentFailedAuthentication
            | ReplyCode::HomeUnknownHomeAgentAddress => {
                self.nodes.get_mut(&home_address).is_some_and(|node| node.denials.allows(now))
            }
            _ => {
                let is_signed = self.foreign_agents.get(&source).is_some_and(|association| {
                    let associations = core::iter::once(association);
                    authentication::check(bytes, message, AuthenticationKind::ForeignHome, associations)
                        .is_ok()
                });
                is_signed || self.denials.allows(now, source)
            }
        }
    }

    /// Whether what an authentic request asks for can be had.
    fn check_wishes(&self, request: &RegistrationRequest) -> Result<(), (DropReason, ReplyCode)> {
        let flags = request.flags;
        let reserved = RequestFlags::RESERVED_R.with(RequestFlags::RESERVED_X);
        let meant = if self.config.multipath { RequestFlags::RELAYED } else { RequestFlags::default() };
        let reserved = reserved.without(meant);
        if flags.without(reserved) != flags {
            return Err((DropReason::PoorlyFormed, ReplyCode::HomePoorlyFormedRequest));
        }
        if request.home_agent != self.config.address {
            return Err((DropReason::NotForUs, ReplyCode::HomeUnknownHomeAgentAddress));
        }
        if !self.nodes.get(&request.home_address).is_some_and(|node| node.permitted) {
            return Err((DropReason::NotOffered, ReplyCode::HomeAdministrativelyProhibited));
        }
        if request.lifetime.is_zero() {
            return Ok(());
        }
        // A tunnel to ourselves, or to the address it is for, would never end.
        let care_of = request.care_of_address;
        let is_everybodys = self.surroundings.is_broadcast(care_of)
            || self.config.home_network.directed_broadcast() == Some(care_of);
        let leads_back = care_of == request.home_address || care_of == self.config.address;
        if !is_unicast(care_of) || is_everybodys || leads_back {
            return Err((DropReason::PoorlyFormed, ReplyCode::HomePoorlyFormedRequest));
        }
        // A served home address is where its node is, or leads into that node's tunnel: two nodes, each registered
        // at the other, would have a packet go round between them. The request itself is in order.
        if self.nodes.contains_key(&care_of) {
            return Err((DropReason::NotOffered, ReplyCode::HomeAdministrativelyProhibited));
        }
        let wants_reverse = flags.contains(RequestFlags::REVERSE_TUNNELING);
        match self.config.reverse_tunnel {
            ReverseTunnel::Unavailable if wants_reverse => {
                Err((DropReason::NotOffered, ReplyCode::HomeReverseTunnelUnavailable))
            }
            ReverseTunnel::Required if !wants_reverse => {
                Err((DropReason::NotOffered, ReplyCode::HomeReverseTunnelMandatory))
            }
            _ => Ok(()),
        }
    }

    /// The encapsulation for the request: one it asks for, or IP within IP when it asks for none.
    fn choose_encapsulation(&self, flags: RequestFlags) -> Option<EncapsulationChoice> {
        let minimal = flags.contains(RequestFlags::MINIMAL_ENCAPSULATION);
        let gre = flags.contains(RequestFlags::GRE);
        if minimal && self.config.minimal_encapsulation {
            Some(EncapsulationChoice::Minimal)
        } else if gre && self.config.gre {
            Some(EncapsulationChoice::Gre)
        } else {
            (!minimal && !gre).then_some(EncapsulationChoice::IpInIp)
        }
    }

    /// The path that is registered by a request; a number that there is no place for is none.
    fn path_of(&self, request: &RegistrationRequest) -> Option<PathId> {
        let ours = request.path_number().map(|PathNumber(number)| number);
        // Binding-Ids begin with 1.
        let number =
            ours.or_else(|| request.multipath().and_then(|multipath| multipath.binding_id.checked_sub(1)));
        number.and_then(PathId::new).filter(|_| self.config.multipath)
    }

    /// Enters a binding (section 3.8.2.2).
    fn register(
        &mut self,
        now: Instant,
        request: &RegistrationRequest,
    ) -> Result<(ReplyCode, Lifetime), (DropReason, ReplyCode)> {
        let (home_address, care_of, flags) = (request.home_address, request.care_of_address, request.flags);
        let encapsulation = self
            .choose_encapsulation(flags)
            .ok_or((DropReason::NotOffered, ReplyCode::HomeEncapsulationUnavailable))?;
        let existing = self.bindings.of(home_address);
        let path_id = self.path_of(request);
        let co_located = flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE);
        // RFC 7629 has no bit for it: who numbers an address and does not decapsulate there has a relay that does.
        let relayed = flags.contains(RequestFlags::RELAYED) || (path_id.is_some() && !co_located);
        // A numbered address, and that of a relay, is one of several by its nature.
        let multipath = request.multipath().filter(|_| path_id.is_some());
        let is_one_of_several = relayed || multipath.is_some_and(|multipath| !multipath.overwrite);
        let wants_others = flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS) || is_one_of_several;
        let keep = wants_others && self.config.max_bindings_per_node > 1;
        let is_same =
            |old: &&MobilityBinding| old.care_of == care_of || (path_id.is_some() && old.path_id == path_id);
        let others = existing.len() - existing.iter().filter(is_same).count();
        if keep && others >= self.config.max_bindings_per_node {
            return Err((DropReason::TableFull, ReplyCode::HomeTooManySimultaneousBindings));
        }
        let gone = if keep { existing.len() - others } else { existing.len() };
        if self.bindings.len() - gone >= self.config.max_bindings {
            return Err((DropReason::TableFull, ReplyCode::HomeInsufficientResources));
        }
        let was_away = !existing.is_empty();
        let before = existing.iter().find(|binding| binding.care_of == care_of);
        let before = before.and_then(|binding| Some((binding.path?, binding.identification)));
        let report = news(request.path_report(), request.identification, before);
        let lifetime = request.lifetime.min(self.config.max_lifetime);
        let binding = MobilityBinding {
            home_address,
            care_of,
            lifetime,
            expires: end_of(lifetime, now),
            identification: request.identification,
            co_located,
            broadcasts: flags.contains(RequestFlags::BROADCAST),
            reverse_tunnel: flags.contains(RequestFlags::REVERSE_TUNNELING),
            path_id,
            relayed,
            tunnel: self.tunnel_to(care_of, encapsulation),
            path: request.path_report(),
        };
        // The same path with another address: the mobile node has left the old one.
        let renumbered = |old: &MobilityBinding| {
            keep && path_id.is_some() && old.path_id == path_id && old.care_of != care_of
        };
        self.leave(now, home_address, |old| (!keep && old.care_of != care_of) || renumbered(old));
        let renumbered =
            self.bindings.of(home_address).iter().find(|&old| renumbered(old)).map(|old| old.care_of);
        if let Some(change) = renumbered.and_then(|old| self.bindings.remove(home_address, old)) {
            self.tell(change);
        }
        self.left.forget(home_address, Some(care_of));
        for change in self.bindings.insert(binding, keep) {
            let (path, received) = match change.change {
                Change::Removed => (change.path, ReceivedData::EMPTY),
                _ => (report, request.received_data()),
            };
            self.tell(BindingChanged { path, received, ..change });
        }
        if multipath.is_some_and(|multipath| multipath.bulk) {
            self.renew_others(now, home_address, care_of, lifetime);
        }
        if !was_away {
            self.arp_for_absent(home_address);
        }
        let code = if wants_others && !keep {
            ReplyCode::AcceptedWithoutSimultaneousBindings
        } else {
            ReplyCode::Accepted
        };
        Ok((code, lifetime))
    }

    /// All other bindings of the mobile node last as long as the one with `care_of` (RFC 7629: B).
    fn renew_others(&mut self, now: Instant, home_address: Ipv4Addr, care_of: Ipv4Addr, lifetime: Lifetime) {
        let others = self.bindings.of(home_address).iter().filter(|binding| binding.care_of != care_of);
        let others: Vec<_> = others.copied().collect();
        for other in others {
            let renewed = MobilityBinding { lifetime, expires: end_of(lifetime, now), ..other };
            for change in self.bindings.insert(renewed, true) {
                self.tell(change);
            }
        }
    }

    /// The mobile node leaves those of its care-of addresses: what it has sent from there is still welcome.
    fn leave(&mut self, now: Instant, home_address: Ipv4Addr, is_left: impl Fn(&MobilityBinding) -> bool) {
        let bindings = self.bindings.of(home_address).iter();
        for binding in bindings.filter(|binding| binding.reverse_tunnel && is_left(binding)) {
            let left = (binding.care_of, binding.tunnel);
            self.left.add(now, home_address, left, self.config.late_reverse_tunnel);
        }
    }

    pub(super) fn tunnel_to(&self, care_of: Ipv4Addr, encapsulation: EncapsulationChoice) -> Tunnel {
        Tunnel {
            entry: self.config.address,
            exit: care_of,
            encapsulation: encapsulation.encapsulation(),
            ttl: crate::v4::TUNNEL_TTL,
        }
    }

    /// Removes the binding named by the care-of address, or with the home address there all of them
    /// (section 3.8.2.2).
    fn deregister(
        &mut self,
        now: Instant,
        origin: Origin,
        request: &RegistrationRequest,
    ) -> (ReplyCode, Lifetime) {
        let (home_address, care_of) = (request.home_address, request.care_of_address);
        let path = request.path_report();
        self.leave(now, home_address, |old| care_of == home_address || old.care_of == care_of);
        if care_of == home_address {
            self.remove_all(home_address, path);
            // At home again: the neighbours learn it before the mobile node reads its reply (section 4.6).
            if origin.source == home_address && origin.interface == self.config.home_interface {
                self.outbox.event(Event::Arp(ArpEvent::Gratuitous {
                    home_address,
                    interface: origin.interface,
                    owner: ArpOwner::MobileNode,
                }));
            }
        } else if let Some(change) = self.bindings.remove(home_address, care_of) {
            self.tell(BindingChanged { path, ..change });
            self.arp_after_removal(home_address);
        }
        (ReplyCode::Accepted, Lifetime::ZERO)
    }

    fn reply(&mut self, origin: Origin, request: &RegistrationRequest, answer: Answer, spi: Option<Spi>) {
        let Some(node) = self.nodes.get(&request.home_address) else { return };
        // An answer to a request whose association is not known uses the first there is.
        let association = node.security.iter().find(|(association, _)| Some(association.spi()) == spi);
        let Some((association, _)) = association.or(node.security.first()) else { return };
        let mut bytes = Vec::new();
        RegistrationReply {
            code: answer.code,
            lifetime: answer.lifetime,
            home_address: request.home_address,
            home_agent: self.config.address,
            identification: answer.identification,
            extensions: answer.path.map(|path| PathNumber(path.number()).extension()).into_iter().collect(),
        }
        .emit(&mut bytes);
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, association);
        if let Some(association) = self.foreign_agents.get(&origin.source) {
            authentication::append(&mut bytes, AuthenticationKind::ForeignHome, association);
        }

        let Answer { code, lifetime, identification, .. } = answer;
        if code.is_accepted() {
            self.outbox.count_accepted();
        } else {
            self.outbox.counters.count_denial(code.number());
        }
        self.outbox.event(Event::Registration(RegistrationEvent {
            step: RegistrationStep::ReplySent { code },
            home_address: request.home_address,
            care_of: request.care_of_address,
            lifetime,
            identification,
            interface: None,
        }));
        self.outbox.transmit(Transmit {
            // The way to a home address may still lead into a tunnel; one that sends from home is on the link.
            interface: (origin.source == request.home_address).then_some(origin.interface),
            source: self.config.address,
            destination: origin.source,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: origin.source_port,
                bytes,
            },
        });
    }
}
