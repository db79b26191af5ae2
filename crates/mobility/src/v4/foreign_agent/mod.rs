//! The foreign agent (RFC 5944 sections 3.7 and 4.2.2; reverse tunnelling: RFC 3024; smooth hand-off:
//! draft-ietf-mobileip-optim).
//!
//! Left out: challenges (RFC 4721), several mobile nodes with one private home address, multicast.

mod admission;
mod config;
mod handoff;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Instant, Randomness};
use careof_wire::Error as WireError;
use careof_wire::icmp::{AgentFlags, IcmpMessage, QuotedDatagram, UnreachableCode};
use careof_wire::mip4::{
    AuthenticationKind, CodeRange, Identification, Lifetime, Message, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags,
};

pub use config::{ForeignAgentConfig, ForeignLink};
use handoff::Handoffs;

use super::advertiser::Advertiser;
use super::authentication::{self, Found};
use super::io::{DEFAULT_TTL, REGISTRATION_PORT};
use super::lifetime::end_of;
use super::outbox::Outbox;
use super::path_news::news;
use super::unicast::is_unicast;
use super::visitor::{Claim, PendingRequest, PendingRequests, Room, Shares, VisitorList};
use super::{
    Change, ConfigError, Counters, DropReason, EncapsulationChoice, Encapsulations, Event, Input,
    InterfaceId, RegistrationEvent, RegistrationStep, ReverseTunnel, SecurityAssociation, Surroundings,
    Transmit, TransmitPayload, Tunnel, VisitorChanged, VisitorEntry, Wake,
};
use crate::deadline::earliest;
use crate::ration::DenialRation;
use crate::shares::{self, Station};

/// How a message came.
#[derive(Clone, Copy, Debug)]
struct Origin {
    interface: InterfaceId,
    source: Ipv4Addr,
    source_port: u16,
    destination: Ipv4Addr,
    ttl: u8,
    station: Option<Station>,
}

/// Where a reply to a mobile node goes.
#[derive(Clone, Copy, Debug)]
struct Way {
    interface: InterfaceId,
    agent_address: Ipv4Addr,
    destination: Ipv4Addr,
    port: u16,
}

/// A foreign agent: offers care-of addresses, relays registrations, and delivers to its visitors.
///
/// A sans-IO state machine. After any call of a `handle_*` method the owner polls
/// [`ForeignAgent::poll_transmit`] and [`ForeignAgent::poll_event`] until they return `None`, and then asks
/// [`ForeignAgent::next_timeout`] when to call [`ForeignAgent::handle_timeout`]. Time never goes backwards.
///
/// For every packet out of a tunnel the owner asks [`ForeignAgent::deliver`], for every packet of a visitor
/// [`ForeignAgent::reverse_tunnel`].
#[derive(Debug)]
pub struct ForeignAgent {
    config: ForeignAgentConfig,
    mobile_nodes: BTreeMap<Ipv4Addr, SecurityAssociation>,
    home_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
    advertisers: Vec<Advertiser>,
    visitors: VisitorList,
    pending: PendingRequests,
    surroundings: Surroundings,
    handoffs: Handoffs,
    denials: DenialRation,
    random: Randomness,
    outbox: Outbox,
}

impl ForeignAgent {
    /// A foreign agent without visitors.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        mut config: ForeignAgentConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = random.into();
        let advertisers = config
            .links
            .iter()
            .map(|link| Advertiser::new(now, link.advertisements, link.interface, link.address, &mut random));
        Ok(Self {
            advertisers: advertisers.collect(),
            mobile_nodes: config.mobile_nodes.drain(..).map(|p| (p.address, p.security)).collect(),
            home_agents: config.home_agents.drain(..).map(|p| (p.address, p.security)).collect(),
            visitors: VisitorList::default(),
            pending: PendingRequests::new(
                config.max_pending,
                shares::of_station(config.max_pending_per_station, config.max_pending),
            ),
            surroundings: Surroundings::default(),
            handoffs: Handoffs::new(config.max_visitors),
            config,
            denials: DenialRation::default(),
            random,
            outbox: Outbox::default(),
        })
    }

    /// The interface behind which `home_address` visits, for a packet that came out of a tunnel; `None`
    /// when it is not a visitor here, or has its own care-of address. With smooth hand-off also where one waits for its
    /// registration that has proved to be here. Cheap enough for every packet.
    #[must_use]
    pub fn deliver(&self, home_address: Ipv4Addr) -> Option<InterfaceId> {
        let expected = self.handoffs.expected(home_address);
        expected.or_else(|| {
            let visitor = self.visitors.get(home_address).filter(|visitor| !visitor.co_located);
            visitor.map(|visitor| visitor.interface)
        })
    }

    /// The tunnel for packets from `home_address`; `None` when they are routed as any others (RFC 3024).
    #[must_use]
    pub fn reverse_tunnel(&self, home_address: Ipv4Addr) -> Option<Tunnel> {
        self.visitors.get(home_address).and_then(|visitor| visitor.reverse_tunnel)
    }

    /// Whether [`Self::reverse_tunnel`] has an answer for anybody.
    #[must_use]
    pub fn has_reverse_tunnels(&self) -> bool {
        self.visitors.has_reverse_tunnels()
    }

    /// The visitor with this home address.
    #[must_use]
    pub fn visitor(&self, home_address: Ipv4Addr) -> Option<&VisitorEntry> {
        self.visitors.get(home_address)
    }

    /// All visitors, by home address.
    pub fn visitors(&self) -> impl Iterator<Item = &VisitorEntry> {
        self.visitors.iter()
    }

    /// Those with this home address and larger ones, in the same order: for a look at one part after the other.
    pub fn visitors_from(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &VisitorEntry> {
        self.visitors.from(home_address)
    }

    /// How many visitors there are.
    #[must_use]
    pub fn visitor_count(&self) -> usize {
        self.visitors.len()
    }

    /// How many relayed requests wait for their replies.
    #[must_use]
    pub fn pending_requests(&self) -> usize {
        self.pending.len()
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

    /// When to call [`ForeignAgent::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let visitors = self.visitors.deadline().map(|at| (at, Wake::VisitorLifetime));
        let pending = self.pending.deadline().map(|at| (at, Wake::PendingRequest));
        let advertisers = self.advertisers.iter().filter_map(Advertiser::deadline).min();
        let handoffs = self.handoffs.deadline().map(|at| (at, Wake::BindingUpdateLifetime));
        earliest(
            earliest(earliest(visitors, pending), handoffs),
            advertisers.map(|at| (at, Wake::AdvertisementDue)),
        )
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        while let Some(visitor) = self.visitors.expire(now) {
            self.tell(&visitor, Change::Expired);
        }
        while let Some(request) = self.pending.expire(now) {
            self.deny_pending(&request, ReplyCode::ForeignRegistrationTimeout);
        }
        self.handle_handoff_timeout(now);
        let flags = self.flags();
        for advertiser in &mut self.advertisers {
            let care_of = &self.config.care_of_addresses;
            if let Some(transmit) = advertiser.poll(now, flags, care_of, &mut self.random) {
                self.outbox.transmit(transmit);
            }
        }
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Udp {
                interface,
                source,
                source_port,
                destination,
                destination_port,
                ttl,
                link_address,
                payload,
            } => {
                self.outbox.count_received();
                if destination_port != REGISTRATION_PORT {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                let station = link_address.map(|address| (interface, address));
                let origin = Origin { interface, source, source_port, destination, ttl, station };
                match Message::parse(payload) {
                    Ok(message) => match &message {
                        Message::Request(request) => {
                            self.handle_request(now, origin, payload, &message, request);
                        }
                        Message::Reply(reply) => self.handle_reply(now, origin, payload, &message, reply),
                        Message::BindingUpdate(update) => {
                            self.handle_update(now, origin, payload, &message, update);
                        }
                        Message::BindingAcknowledge(acknowledge) => {
                            self.handle_acknowledge(origin, payload, acknowledge);
                        }
                        Message::BindingWarning(_) | Message::BindingRequest(_) | Message::PathProbe(_) => {
                            self.outbox.drop(DropReason::NotForUs, source);
                        }
                    },
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

    /// What this host is and is connected to, now: no visitor may claim an address of it.
    pub fn set_surroundings(&mut self, surroundings: Surroundings) {
        self.surroundings = surroundings;
    }

    /// Forgets a visitor on its operator's word; whether there was one. The mobile node is not told: it may register again at any time.
    pub fn drop_visitor(&mut self, now: Instant, home_address: Ipv4Addr) -> bool {
        self.outbox.called_at(now);
        let visitor = self.visitors.remove(home_address);
        if let Some(visitor) = &visitor {
            self.tell(visitor, Change::Removed);
        }
        visitor.is_some()
    }

    fn handle_link(&mut self, now: Instant, interface: InterfaceId, up: bool) {
        for advertiser in self.advertisers.iter_mut().filter(|a| a.interface() == interface) {
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
                for advertiser in self.advertisers.iter_mut().filter(|a| a.interface() == interface) {
                    advertiser.solicited(now, &mut self.random);
                }
            }
            Ok(IcmpMessage::DestinationUnreachable(message)) => {
                self.handle_unreachable(source, &message.quoted, unreachable_code(message.code));
            }
            Ok(IcmpMessage::TimeExceeded(message)) => {
                self.handle_unreachable(source, &message.quoted, ReplyCode::ForeignHomeAgentUnreachable);
            }
            // Other agents' advertisements and the like come along; they mean nothing here.
            Ok(_) => {}
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    /// A request we relayed did not reach the home agent (codes 80 to 88).
    ///
    /// Anybody can send such an error; who quotes the Identification has seen the request. A router that quotes the UDP header
    /// only (RFC 792) is not believed: the request then ends with its timeout.
    fn handle_unreachable(&mut self, source: Ipv4Addr, quoted: &[u8], code: ReplyCode) {
        let Ok(quoted) = QuotedDatagram::parse(quoted) else { return };
        let to_agent = quoted.ports().is_some_and(|ports| ports.destination_port == REGISTRATION_PORT);
        if !to_agent || quoted.header.source != self.config.address {
            return;
        }
        let home_agent = quoted.header.destination;
        let message = quoted.payload.get(8..).unwrap_or_default();
        let relayed = message.first_chunk::<{ RegistrationRequest::FIXED_LEN }>().and_then(|fixed| {
            let Ok(Message::Request(quoted)) = Message::parse(fixed) else { return None };
            let pending = self.pending.get(quoted.home_address, quoted.identification).copied()?;
            let is_it = pending.identification == quoted.identification && pending.home_agent == home_agent;
            is_it.then_some(pending)
        });
        let Some(request) = relayed else {
            return self.outbox.drop(DropReason::IdentificationMismatch, source);
        };
        self.pending.remove(&request);
        self.deny_pending(&request, code);
    }

    fn handle_request(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        request: &RegistrationRequest,
    ) {
        let link = self.advertisers.iter().find(|a| a.interface() == origin.interface);
        let Some(address) = link.map(Advertiser::address) else {
            return self.outbox.drop(DropReason::NotForUs, origin.source);
        };
        let wish = request.previous_foreign_agent();
        if wish.is_some() && !self.config.smooth_handoff {
            // Of a type that must be understood (section 1.8).
            return self.outbox.drop(DropReason::UnknownExtension, origin.source);
        }
        self.trace(RegistrationStep::RequestReceived, request, Some(origin.interface));
        let agent_address = if self.is_own(origin.destination) { origin.destination } else { address };
        match self.admit(origin, bytes, message, request) {
            Ok(admitted) => {
                // Nothing that has waited longer than it was asked for is worth a reply.
                let wait = request.lifetime.duration().filter(|_| !request.lifetime.is_zero());
                let wait = wait.map_or(self.config.pending_timeout, |l| l.min(self.config.pending_timeout));
                let pending = PendingRequest {
                    home_address: request.home_address,
                    home_agent: request.home_agent,
                    care_of: request.care_of_address,
                    interface: origin.interface,
                    station: origin.station,
                    is_proven: self.mobile_nodes.contains_key(&request.home_address),
                    source: origin.source,
                    source_port: origin.source_port,
                    agent_address,
                    identification: request.identification,
                    flags: request.flags,
                    encapsulating_delivery: admitted.encapsulating_delivery,
                    lifetime: request.lifetime,
                    path: request.path_report(),
                    relayed: now,
                    expires: now + wait,
                };
                if let Some(displaced) = self.pending.insert(pending, &mut self.random) {
                    self.outbox.drop(DropReason::TableFull, displaced.source);
                    self.deny_pending(&displaced, ReplyCode::ForeignInsufficientResources);
                }
                self.relay_request(bytes.get(..admitted.end).unwrap_or(bytes), request);
                self.expect(now, origin.interface, request);
                if let Some(wish) = wish {
                    let way = Way {
                        interface: origin.interface,
                        agent_address,
                        destination: reply_destination(request.flags, origin.source, request.home_address),
                        port: origin.source_port,
                    };
                    self.notify(now, origin.source, way, request, wish);
                }
            }
            Err(refusal) => {
                self.outbox.drop(refusal.reason, origin.source);
                let way = Way {
                    interface: origin.interface,
                    agent_address,
                    destination: reply_destination(request.flags, origin.source, request.home_address),
                    port: origin.source_port,
                };
                let lifetime = refusal.lifetime.unwrap_or(request.lifetime);
                self.deny(
                    way,
                    request.home_address,
                    request.home_agent,
                    request.identification,
                    refusal.code,
                    lifetime,
                );
            }
        }
    }

    /// Passes on what is for the home agent, signed if we have agreed on that (section 3.7.2.2).
    fn relay_request(&mut self, for_home_agent: &[u8], request: &RegistrationRequest) {
        let mut bytes = for_home_agent.to_vec();
        // We do not vouch for the deregistration of an address that is not ours (section 3.8.2.2).
        let not_ours = request.lifetime.is_zero() && !self.is_own(request.care_of_address);
        if let Some(association) = self.home_agents.get(&request.home_agent).filter(|_| !not_ours) {
            authentication::append(&mut bytes, AuthenticationKind::ForeignHome, association);
        }
        self.trace(RegistrationStep::RequestRelayed, request, None);
        self.outbox.message(None, self.config.address, request.home_agent, bytes);
    }

    /// Checks a reply (section 3.7.3.1), and passes it on (3.7.3.2).
    fn handle_reply(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        reply: &RegistrationReply,
    ) {
        let source = origin.source;
        let Some(&request) = self.pending.get(reply.home_address, reply.identification) else {
            return self.outbox.drop(DropReason::UnexpectedReply, source);
        };
        // Who looks for a home agent by broadcast hears of it in the reply (code 136), from its own address.
        let answers_broadcast = reply.code == ReplyCode::HomeUnknownHomeAgentAddress;
        if source != request.home_agent && !answers_broadcast {
            return self.outbox.drop(DropReason::UnexpectedSource, source);
        }
        self.pending.remove(&request);
        if let Some(association) = self.home_agents.get(&request.home_agent) {
            let kind = AuthenticationKind::ForeignHome;
            if let Err(reason) = authentication::check(bytes, message, kind, core::iter::once(association)) {
                self.outbox.drop(reason, source);
                return self.deny_pending(&request, ReplyCode::ForeignHomeAgentFailedAuthentication);
            }
        }
        let from_home_agent = matches!(reply.code.range(), CodeRange::Success | CodeRange::HomeAgent);
        let Found::One(place) = authentication::find(message, AuthenticationKind::MobileHome) else {
            self.outbox.drop(DropReason::PoorlyFormed, source);
            return self.deny_pending(&request, ReplyCode::ForeignPoorlyFormedReply);
        };
        if !from_home_agent {
            self.outbox.drop(DropReason::PoorlyFormed, source);
            return self.deny_pending(&request, ReplyCode::ForeignPoorlyFormedReply);
        }
        if reply.code.is_accepted()
            && let Err((reason, code)) = self.update_visitors(now, &request, reply)
        {
            self.outbox.drop(reason, source);
            return self.deny_pending(&request, code);
        }

        if !reply.code.is_accepted() {
            self.handoffs.denied(reply.home_address);
        }
        let mut relayed = bytes.get(..place.end).unwrap_or(bytes).to_vec();
        if let Some(association) = self.mobile_nodes.get(&reply.home_address) {
            authentication::append(&mut relayed, AuthenticationKind::MobileForeign, association);
        }
        if reply.code.is_accepted() {
            self.outbox.count_accepted();
        }
        self.outbox.event(Event::Registration(RegistrationEvent {
            step: RegistrationStep::ReplyRelayed { code: reply.code },
            home_address: reply.home_address,
            care_of: request.care_of,
            // A deregistration grants nothing, whatever is answered to it.
            lifetime: reply.lifetime.min(request.lifetime),
            identification: reply.identification,
            interface: Some(request.interface),
        }));
        self.send_to_mobile_node(request.way(), relayed);
    }

    /// Enters or removes the visitor whose registration was accepted, unless there is no room, or it is another home agent's.
    fn update_visitors(
        &mut self,
        now: Instant,
        request: &PendingRequest,
        reply: &RegistrationReply,
    ) -> Result<(), (DropReason, ReplyCode)> {
        let takes_over = self.takes_over(request.home_address, request.home_agent);
        let lifetime = reply.lifetime.min(request.lifetime);
        let co_located = request.flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE);
        if lifetime.is_zero() {
            // It may have deregistered an address at another agent, through us.
            let concerned = |visitor: &VisitorEntry| {
                !takes_over && (request.care_of == request.home_address || request.care_of == visitor.care_of)
            };
            if self.visitors.get(request.home_address).is_some_and(concerned)
                && let Some(visitor) = self.visitors.remove(request.home_address)
            {
                self.tell(&visitor, Change::Removed);
            }
            return Ok(());
        }
        if takes_over {
            return Err((DropReason::NotOffered, ReplyCode::ForeignAdministrativelyProhibited));
        }
        let claim = self.claim(request.home_address, request.home_agent, request.station);
        match self.visitors.room_for(&claim, &self.shares()) {
            Room::Free => {}
            Room::InsteadOf(other) => {
                if let Some(visitor) = self.visitors.remove(other) {
                    self.outbox.drop(DropReason::TableFull, other);
                    self.tell(&visitor, Change::Removed);
                }
            }
            Room::None => return Err((DropReason::TableFull, ReplyCode::ForeignInsufficientResources)),
            Room::OverShare => return Err((DropReason::OverShare, ReplyCode::ForeignInsufficientResources)),
        }
        self.welcome(request.home_address);
        let encapsulation = if request.flags.contains(RequestFlags::MINIMAL_ENCAPSULATION) {
            EncapsulationChoice::Minimal
        } else if request.flags.contains(RequestFlags::GRE) {
            EncapsulationChoice::Gre
        } else {
            EncapsulationChoice::IpInIp
        };
        let reverse = request.flags.contains(RequestFlags::REVERSE_TUNNELING) && !co_located;
        let visitor = VisitorEntry {
            home_address: request.home_address,
            home_agent: request.home_agent,
            care_of: request.care_of,
            interface: request.interface,
            lifetime,
            // From when the request was sent on, so that it ends here no later than at the home agent.
            expires: end_of(lifetime, request.relayed).max(now),
            co_located,
            reverse_tunnel: reverse.then(|| Tunnel {
                entry: request.care_of,
                exit: request.home_agent,
                encapsulation: encapsulation.encapsulation(),
                ttl: crate::v4::TUNNEL_TTL,
            }),
            encapsulating_delivery: request.encapsulating_delivery,
            encapsulations: Encapsulations::asked_for(request.flags),
            path: request.path,
            identification: request.identification,
        };
        let old = self.visitors.insert(visitor, claim);
        let change = if old.is_some() { Change::Updated } else { Change::Created };
        let before = old.filter(|old| (old.care_of, old.interface) == (visitor.care_of, visitor.interface));
        let before = before.and_then(|old| Some((old.path?, old.identification)));
        let path = news(visitor.path, visitor.identification, before);
        self.tell(&VisitorEntry { path, ..visitor }, change);
        Ok(())
    }

    fn deny_pending(&mut self, request: &PendingRequest, code: ReplyCode) {
        let (home_address, home_agent) = (request.home_address, request.home_agent);
        self.handoffs.denied(home_address);
        self.deny(request.way(), home_address, home_agent, request.identification, code, request.lifetime);
    }

    /// Answers a request with a denial of our own (section 3.7.2.3), as far as the ration goes: nobody has proved anything.
    fn deny(
        &mut self,
        way: Way,
        home_address: Ipv4Addr,
        home_agent: Ipv4Addr,
        identification: Identification,
        code: ReplyCode,
        lifetime: Lifetime,
    ) {
        let now = self.outbox.now();
        let is_allowed = match code {
            ReplyCode::ForeignMobileNodeTooDistant => self.denials.allows_too_distant(now, way.destination),
            _ => self.denials.allows(now, way.destination),
        };
        if !is_allowed {
            return self.outbox.counters.count_suppressed_denial();
        }
        let mut bytes = Vec::new();
        let extensions = Vec::new();
        RegistrationReply { code, lifetime, home_address, home_agent, identification, extensions }
            .emit(&mut bytes);
        if let Some(association) = self.mobile_nodes.get(&home_address) {
            authentication::append(&mut bytes, AuthenticationKind::MobileForeign, association);
        }
        self.outbox.counters.count_denial(code.number());
        self.outbox.event(Event::Registration(RegistrationEvent {
            step: RegistrationStep::ReplySent { code },
            home_address,
            care_of: Ipv4Addr::UNSPECIFIED,
            lifetime,
            identification,
            interface: Some(way.interface),
        }));
        self.send_to_mobile_node(way, bytes);
    }

    fn send_to_mobile_node(&mut self, way: Way, bytes: Vec<u8>) {
        self.outbox.transmit(Transmit {
            interface: Some(way.interface),
            source: way.agent_address,
            destination: way.destination,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: way.port,
                bytes,
            },
        });
    }

    fn trace(
        &mut self,
        step: RegistrationStep,
        request: &RegistrationRequest,
        interface: Option<InterfaceId>,
    ) {
        self.outbox.event(Event::Registration(RegistrationEvent {
            step,
            home_address: request.home_address,
            care_of: request.care_of_address,
            lifetime: request.lifetime,
            identification: request.identification,
            interface,
        }));
    }

    fn tell(&mut self, visitor: &VisitorEntry, change: Change) {
        let gone = matches!(change, Change::Removed | Change::Expired);
        self.outbox.event(Event::Visitor(VisitorChanged {
            home_address: visitor.home_address,
            interface: visitor.interface,
            care_of: visitor.care_of,
            lifetime: if gone { Lifetime::ZERO } else { visitor.lifetime },
            change,
            path: visitor.path.filter(|_| !gone),
        }));
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        address == self.config.address
            || self.config.care_of_addresses.contains(&address)
            || self.advertisers.iter().any(|advertiser| advertiser.address() == address)
    }

    /// What speaks for who asks to visit, once his home agent has answered.
    fn claim(&self, home_address: Ipv4Addr, home_agent: Ipv4Addr, station: Option<Station>) -> Claim {
        let is_proven =
            self.mobile_nodes.contains_key(&home_address) || self.home_agents.contains_key(&home_agent);
        Claim { home_address, home_agent, station, is_proven }
    }

    fn shares(&self) -> Shares {
        let config = &self.config;
        let all = config.max_visitors;
        // Those that the operator lists may have all of it.
        let home_agent = config
            .admitted_home_agents
            .is_none()
            .then(|| shares::of_home_agent(config.max_visitors_per_home_agent, all));
        Shares { all, station: shares::of_station(config.max_visitors_per_station, all), home_agent }
    }

    fn flags(&self) -> AgentFlags {
        let config = &self.config;
        let has_proofs = !self.mobile_nodes.is_empty() || !self.home_agents.is_empty();
        let busy = self.visitors.is_closed(&self.shares(), has_proofs) || self.pending.is_closed();
        let mut flags = AgentFlags::FOREIGN_AGENT;
        for (offered, flag) in [
            (busy, AgentFlags::BUSY),
            (config.registration_required, AgentFlags::REGISTRATION_REQUIRED),
            (config.minimal_encapsulation, AgentFlags::MINIMAL_ENCAPSULATION),
            (config.gre, AgentFlags::GRE),
            (config.reverse_tunnel != ReverseTunnel::Unavailable, AgentFlags::REVERSE_TUNNELING),
        ] {
            if offered {
                flags = flags.with(flag);
            }
        }
        flags
    }
}

impl PendingRequest {
    fn way(&self) -> Way {
        Way {
            interface: self.interface,
            agent_address: self.agent_address,
            destination: reply_destination(self.flags, self.source, self.home_address),
            port: self.source_port,
        }
    }
}

/// The home address, on the link to the mobile node; its own care-of address when it has one there; or
/// everybody on the link when there is neither (section 3.7.2.3).
fn reply_destination(flags: RequestFlags, source: Ipv4Addr, home_address: Ipv4Addr) -> Ipv4Addr {
    if flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE) && is_unicast(source) {
        source
    } else if is_unicast(home_address) {
        home_address
    } else {
        Ipv4Addr::BROADCAST
    }
}

const fn unreachable_code(code: UnreachableCode) -> ReplyCode {
    match code {
        UnreachableCode::Net | UnreachableCode::NetUnknown | UnreachableCode::NetProhibited => {
            ReplyCode::ForeignHomeNetworkUnreachable
        }
        UnreachableCode::Host | UnreachableCode::HostUnknown | UnreachableCode::HostProhibited => {
            ReplyCode::ForeignHomeAgentHostUnreachable
        }
        UnreachableCode::Port => ReplyCode::ForeignHomeAgentPortUnreachable,
        _ => ReplyCode::ForeignHomeAgentUnreachable,
    }
}
