//! The home agent (RFC 5944 sections 3.8, 4.2.3 and 4.6; reverse tunnelling: RFC 3024; route optimisation:
//! draft-ietf-mobileip-optim).
//!
//! Left out: home addresses handed out by the agent (RFC 4433), broadcasts of the home link to mobile nodes
//! (the B bit is kept in the binding; forwarding is the owner's), multicast routing.

mod config;
mod correspondents;
mod probes;
mod record;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Instant, Randomness};
use careof_wire::Error as WireError;
use careof_wire::icmp::{AgentFlags, IcmpMessage};
use careof_wire::mip4::{
    AuthenticationKind, Extension, Identification, Lifetime, Message, PathCounts, PathReport,
    RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags, Spi,
};

pub use config::{HomeAgentConfig, PeerSecurity, ServedMobileNode};
use correspondents::Correspondents;
pub use record::{BindingRecord, MobileNodeRecord};

use super::advertiser::Advertiser;
use super::authentication::{self, Found};
use super::binding::BindingTable;
use super::io::{DEFAULT_TTL, REGISTRATION_PORT};
use super::lifetime::end_of;
use super::outbox::Outbox;
use super::path_news::news;
use super::unicast::is_unicast;
use super::{
    ArpEvent, ArpOwner, BindingChanged, Change, ConfigError, Counters, DropReason, EncapsulationChoice,
    Event, Input, InterfaceId, MobilityBinding, NtpTime, RegistrationEvent, RegistrationStep, ReplayGuard,
    ReverseTunnel, SecurityAssociation, Surroundings, Transmit, TransmitPayload, Tunnel, Wake, WallClock,
};
use crate::deadline::earliest;
use crate::left_care_of::LeftCareOfAddresses;
use crate::ration::{DenialRation, NodeRation, ProbeRation};

/// A mobile node served, and what its security associations have seen.
#[derive(Debug)]
struct Served {
    security: Vec<(SecurityAssociation, ReplayGuard)>,
    permitted: bool,
    denials: NodeRation,
    probes: ProbeRation,
}

impl Served {
    /// A timestamp that one security association has accepted is past for the others, too: it must be later than all that were
    /// accepted of the mobile node (section 5.7.1).
    fn synchronize(&mut self) {
        let Some(latest) =
            self.security.iter().filter_map(|(_, guard)| guard.latest()).reduce(NtpTime::later_of)
        else {
            return;
        };
        self.security.iter_mut().for_each(|(_, guard)| guard.advance(latest));
    }
}

/// How a request came, as far as the reply needs it.
#[derive(Clone, Copy, Debug)]
struct Origin {
    interface: InterfaceId,
    source: Ipv4Addr,
    source_port: u16,
    destination: Ipv4Addr,
}

/// What the home agent answers.
#[derive(Clone, Copy, Debug)]
struct Answer {
    code: ReplyCode,
    lifetime: Lifetime,
    identification: Identification,
}

/// A home agent: keeps the mobility bindings of its mobile nodes.
///
/// A sans-IO state machine. After any call of a `handle_*` method the owner polls
/// [`HomeAgent::poll_transmit`] and [`HomeAgent::poll_event`] until they return `None`, and then asks
/// [`HomeAgent::next_timeout`] when to call [`HomeAgent::handle_timeout`]. Time never goes backwards.
///
/// For every packet to a mobile node the owner asks [`HomeAgent::tunnels`].
///
/// An owner that must survive a crash writes [`HomeAgent::record`] down when a binding has changed or a
/// request was received, before it sends what `poll_transmit` returned.
#[derive(Debug)]
pub struct HomeAgent {
    config: HomeAgentConfig,
    nodes: BTreeMap<Ipv4Addr, Served>,
    foreign_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    bindings: BindingTable,
    left: LeftCareOfAddresses<Ipv4Addr, Tunnel>,
    correspondents: Correspondents,
    surroundings: Surroundings,
    advertiser: Option<Advertiser>,
    denials: DenialRation,
    /// What has passed between a mobile node and one of its care-of addresses, as the owner last told.
    noted: Option<(Ipv4Addr, Ipv4Addr, PathCounts)>,
    random: Randomness,
    outbox: Outbox,
}

impl HomeAgent {
    /// A home agent without bindings.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        mut config: HomeAgentConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = random.into();
        let guarded = |association: SecurityAssociation| {
            let guard = ReplayGuard::new(association.replay());
            (association, guard)
        };
        let nodes = config.mobile_nodes.drain(..).map(|node| {
            let security = node.security.into_iter().map(guarded).collect();
            (
                node.home_address,
                Served {
                    security,
                    permitted: node.permitted,
                    denials: NodeRation::default(),
                    probes: ProbeRation::default(),
                },
            )
        });
        let nodes = nodes.collect();
        let foreign_agents = config.foreign_agents.drain(..).map(|p| (p.address, p.security)).collect();
        let peers = config.correspondents.drain(..).map(|p| (p.address, p.security)).collect();
        let correspondents = Correspondents::new(peers, config.max_bindings);
        let (interface, address) = (config.home_interface, config.address);
        let advertiser =
            config.advertisements.map(|how| Advertiser::new(now, how, interface, address, &mut random));
        Ok(Self {
            config,
            nodes,
            foreign_agents,
            bindings: BindingTable::default(),
            left: LeftCareOfAddresses::default(),
            correspondents,
            surroundings: Surroundings::default(),
            advertiser,
            denials: DenialRation::default(),
            noted: None,
            random,
            outbox: Outbox::default(),
        })
    }

    /// What this host is and is connected to, now: no care-of address is everybody's on one of its networks.
    pub fn set_surroundings(&mut self, surroundings: Surroundings) {
        self.surroundings = surroundings;
    }

    /// Sets the home agent's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// The tunnels to the current care-of addresses of `home_address`; empty when it is not away. A packet
    /// goes, in a copy each, through all of them. Cheap enough for every packet; lifetimes are checked by
    /// [`HomeAgent::handle_timeout`].
    #[must_use]
    pub fn tunnels(&self, home_address: Ipv4Addr) -> &[Tunnel] {
        self.bindings.tunnels(home_address)
    }

    /// Whether a packet from `home_address` may come through a tunnel that begins at `tunnel_source`: there
    /// is a binding with that care-of address, or was until lately, and reverse tunnelling was granted (RFC 3024 section 4.4).
    #[must_use]
    pub fn accepts_reverse_tunnel(&self, home_address: Ipv4Addr, tunnel_source: Ipv4Addr) -> bool {
        self.reverse_tunnels(home_address).any(|tunnel| tunnel.exit == tunnel_source)
    }

    /// The tunnels through which packets from `home_address` may come back, each named the way that packets to it take: those of its
    /// bindings with reverse tunnelling, and for [`HomeAgentConfig::late_reverse_tunnel`] those of care-of addresses that it has left.
    pub fn reverse_tunnels(&self, home_address: Ipv4Addr) -> impl Iterator<Item = Tunnel> {
        let bindings = self.bindings.of(home_address).iter().filter(|binding| binding.reverse_tunnel);
        bindings.map(|binding| binding.tunnel).chain(self.left.tunnels(home_address))
    }

    /// Whether this is the home agent of `home_address`.
    #[must_use]
    pub fn serves(&self, home_address: Ipv4Addr) -> bool {
        self.nodes.contains_key(&home_address)
    }

    /// The bindings of a mobile node, the newest last.
    #[must_use]
    pub fn bindings_of(&self, home_address: Ipv4Addr) -> &[MobilityBinding] {
        self.bindings.of(home_address)
    }

    /// All bindings, by home address.
    pub fn bindings(&self) -> impl Iterator<Item = &MobilityBinding> {
        self.bindings.iter()
    }

    /// Those of mobile nodes with this home address and larger ones, in the same order: for a look at one part after the other.
    pub fn bindings_from(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &MobilityBinding> {
        self.bindings.from(home_address)
    }

    /// How many bindings there are.
    #[must_use]
    pub const fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    /// When to call [`HomeAgent::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let bindings = self.bindings.deadline().map(|at| (at, Wake::BindingLifetime));
        let advertiser = self.advertiser.as_ref().and_then(Advertiser::deadline);
        let correspondents = self.correspondents.deadline().map(|at| (at, Wake::BindingUpdateLifetime));
        let bindings = earliest(bindings, self.left.deadline().map(|at| (at, Wake::LateReverseTunnel)));
        earliest(earliest(bindings, correspondents), advertiser.map(|at| (at, Wake::AdvertisementDue)))
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        while let Some(change) = self.bindings.expire(now) {
            self.tell(change);
            self.arp_after_removal(change.home_address);
            self.tell_correspondents(now, change.home_address);
        }
        while let Some(home_address) = self.left.expire(now) {
            self.outbox.event(Event::ReverseTunnelEnded { home_address });
        }
        self.handle_correspondents_timeout(now);
        let flags = self.flags();
        if let Some(advertiser) = &mut self.advertiser
            && let Some(transmit) = advertiser.poll(now, flags, &[], &mut self.random)
        {
            self.outbox.transmit(transmit);
        }
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Udp { interface, source, source_port, destination, destination_port, payload, .. } => {
                self.outbox.count_received();
                if destination_port != REGISTRATION_PORT || !is_unicast(source) {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                match Message::parse(payload) {
                    Ok(message) => {
                        let origin = Origin { interface, source, source_port, destination };
                        self.handle_message(now, origin, payload, &message);
                    }
                    Err(WireError::UnknownExtension { .. }) => {
                        self.outbox.drop(DropReason::UnknownExtension, source);
                    }
                    Err(_) => self.outbox.drop(DropReason::Malformed, source),
                }
            }
            Input::Icmp { interface, source, ttl, message, .. } => {
                self.outbox.count_received();
                self.handle_icmp(now, interface, source, ttl, message);
            }
            Input::LinkUp { interface } => self.handle_link(now, interface, true),
            Input::LinkDown { interface } => self.handle_link(now, interface, false),
            Input::AddressChanged { .. } => {}
        }
    }

    fn handle_link(&mut self, now: Instant, interface: InterfaceId, up: bool) {
        if let Some(advertiser) = &mut self.advertiser
            && advertiser.interface() == interface
        {
            advertiser.link(now, up, &mut self.random);
        }
    }

    fn handle_icmp(&mut self, now: Instant, interface: InterfaceId, source: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        match IcmpMessage::parse(bytes) {
            Ok(IcmpMessage::RouterSolicitation(_)) => {
                // Sent with 1 (RFC 5944 section 2.2), so anything else comes from elsewhere.
                if ttl != 1 {
                    return self.outbox.drop(DropReason::WrongTtl, source);
                }
                if let Some(advertiser) = &mut self.advertiser
                    && advertiser.interface() == interface
                {
                    advertiser.solicited(now, &mut self.random);
                }
            }
            // Other agents' advertisements and errors come along; they mean nothing here.
            Ok(_) => {}
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    fn handle_message(&mut self, now: Instant, origin: Origin, bytes: &[u8], message: &Message) {
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
                    Ok((code, lifetime)) => Answer { code, lifetime, identification },
                    Err((reason, code)) => {
                        self.outbox.drop(reason, origin.source);
                        Answer { code, lifetime: request.lifetime, identification }
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
                let answer = Answer { code, lifetime: request.lifetime, identification };
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
        let others = existing.iter().filter(|binding| binding.care_of != care_of).count();
        let keep =
            flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS) && self.config.max_bindings_per_node > 1;
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
            co_located: flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE),
            broadcasts: flags.contains(RequestFlags::BROADCAST),
            reverse_tunnel: flags.contains(RequestFlags::REVERSE_TUNNELING),
            tunnel: self.tunnel_to(care_of, encapsulation),
            path: request.path_report(),
        };
        if !keep {
            self.leave(now, home_address, |old| old.care_of != care_of);
        }
        self.left.forget(home_address, Some(care_of));
        for change in self.bindings.insert(binding, keep) {
            let path = if change.change == Change::Removed { change.path } else { report };
            self.tell(BindingChanged { path, ..change });
        }
        if !was_away {
            self.arp_for_absent(home_address);
        }
        let code = if flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS) && !keep {
            ReplyCode::AcceptedWithoutSimultaneousBindings
        } else {
            ReplyCode::Accepted
        };
        Ok((code, lifetime))
    }

    /// The mobile node leaves those of its care-of addresses: what it has sent from there is still welcome.
    fn leave(&mut self, now: Instant, home_address: Ipv4Addr, is_left: impl Fn(&MobilityBinding) -> bool) {
        let bindings = self.bindings.of(home_address).iter();
        for binding in bindings.filter(|binding| binding.reverse_tunnel && is_left(binding)) {
            let left = (binding.care_of, binding.tunnel);
            self.left.add(now, home_address, left, self.config.late_reverse_tunnel);
        }
    }

    fn tunnel_to(&self, care_of: Ipv4Addr, encapsulation: EncapsulationChoice) -> Tunnel {
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

    /// Takes out all bindings of a mobile node, and returns how many there were.
    fn remove_all(&mut self, home_address: Ipv4Addr, path: Option<PathReport>) -> usize {
        let changes = self.bindings.remove_all(home_address);
        let count = changes.len();
        for change in changes {
            self.tell(BindingChanged { path, ..change });
        }
        if count > 0 {
            self.arp_after_removal(home_address);
        }
        count
    }

    /// Ends all bindings of a mobile node on its operator's word, and returns how many there were. The mobile node is not told: it
    /// may register again at any time, unless it is not [permitted](ServedMobileNode::permitted) to.
    pub fn drop_bindings(&mut self, now: Instant, home_address: Ipv4Addr) -> usize {
        self.outbox.called_at(now);
        self.left.forget(home_address, None);
        let count = self.remove_all(home_address, None);
        self.tell_correspondents(now, home_address);
        count
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
            extensions: Vec::new(),
        }
        .emit(&mut bytes);
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, association);
        if let Some(association) = self.foreign_agents.get(&origin.source) {
            authentication::append(&mut bytes, AuthenticationKind::ForeignHome, association);
        }

        let Answer { code, lifetime, identification } = answer;
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

    fn tell(&mut self, change: BindingChanged) {
        self.outbox.event(Event::Binding(change));
    }

    /// The home agent takes the packets of a mobile node that has left (section 4.6).
    fn arp_for_absent(&mut self, home_address: Ipv4Addr) {
        let interface = self.config.home_interface;
        self.outbox.event(Event::Arp(ArpEvent::Proxy { home_address, interface, on: true }));
        let owner = ArpOwner::Sender;
        self.outbox.event(Event::Arp(ArpEvent::Gratuitous { home_address, interface, owner }));
    }

    fn arp_after_removal(&mut self, home_address: Ipv4Addr) {
        if self.bindings.of(home_address).is_empty() {
            let interface = self.config.home_interface;
            self.outbox.event(Event::Arp(ArpEvent::Proxy { home_address, interface, on: false }));
        }
    }

    fn flags(&self) -> AgentFlags {
        let mut flags = AgentFlags::HOME_AGENT;
        for (offered, flag) in [
            (self.config.minimal_encapsulation, AgentFlags::MINIMAL_ENCAPSULATION),
            (self.config.gre, AgentFlags::GRE),
            (self.config.reverse_tunnel != ReverseTunnel::Unavailable, AgentFlags::REVERSE_TUNNELING),
        ] {
            if offered {
                flags = flags.with(flag);
            }
        }
        flags
    }

    /// What must be remembered of `home_address` across a restart; `None` when it is not served here.
    #[must_use]
    pub fn record(&self, now: Instant, home_address: Ipv4Addr) -> Option<MobileNodeRecord> {
        let node = self.nodes.get(&home_address)?;
        let clock = self.config.clock.at(now);
        let bindings = self.bindings.of(home_address).iter().map(|binding| BindingRecord {
            care_of: binding.care_of,
            lifetime: binding.lifetime,
            expires: (binding.expires < Instant::MAX).then(|| clock.later(binding.expires - now)),
            identification: binding.identification,
            co_located: binding.co_located,
            broadcasts: binding.broadcasts,
            reverse_tunnel: binding.reverse_tunnel,
            encapsulation: EncapsulationChoice::of(binding.tunnel.encapsulation),
        });
        Some(MobileNodeRecord {
            home_address,
            bindings: bindings.collect(),
            replay: node.security.iter().map(|(a, guard)| (a.spi(), *guard)).collect(),
        })
    }

    /// Takes back what [`HomeAgent::record`] gave before a restart. Bindings whose lifetime has ended
    /// meanwhile are left out, and so is what the configuration no longer allows. Returns whether the
    /// mobile node is served here.
    pub fn restore(&mut self, now: Instant, record: &MobileNodeRecord) -> bool {
        let Some(node) = self.nodes.get_mut(&record.home_address) else { return false };
        for (association, guard) in &mut node.security {
            if let Some((_, saved)) = record.replay.iter().find(|(spi, _)| *spi == association.spi()) {
                guard.resume(saved);
            }
        }
        // Also for one that has been agreed on since.
        node.synchronize();
        let clock = self.config.clock.at(now);
        // Who may no longer register has nothing to keep either.
        let kept = if node.permitted { self.config.max_bindings_per_node } else { 0 };
        let was_away = !self.bindings.of(record.home_address).is_empty();
        for saved in record.bindings.iter().take(kept) {
            let expires = match saved.expires.map(|at| at.after(clock)) {
                None => Instant::MAX,
                // At most what was granted, wherever the clock has gone meanwhile.
                Some(Some(left)) => (now + left).min(end_of(saved.lifetime, now)),
                Some(None) => continue,
            };
            // The configuration may have changed since it was granted.
            let leads_back = saved.care_of == self.config.address || self.nodes.contains_key(&saved.care_of);
            if self.bindings.len() >= self.config.max_bindings || !is_unicast(saved.care_of) || leads_back {
                continue;
            }
            let binding = MobilityBinding {
                home_address: record.home_address,
                care_of: saved.care_of,
                lifetime: saved.lifetime,
                expires,
                identification: saved.identification,
                co_located: saved.co_located,
                broadcasts: saved.broadcasts,
                reverse_tunnel: saved.reverse_tunnel,
                tunnel: self.tunnel_to(saved.care_of, saved.encapsulation),
                path: None,
            };
            for change in self.bindings.insert(binding, true) {
                self.tell(BindingChanged { change: Change::Created, ..change });
            }
        }
        if !was_away && !self.bindings.of(record.home_address).is_empty() {
            self.arp_for_absent(record.home_address);
        }
        true
    }
}
