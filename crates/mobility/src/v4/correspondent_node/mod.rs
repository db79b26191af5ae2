//! The correspondent node of route optimisation (draft-ietf-mobileip-optim): a host that is told where the mobile nodes are
//! that it sends to, and tunnels to them itself.
//!
//! Left out: bindings learnt from anybody but a home agent with which there is a security association, and key distribution.

mod config;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Instant, Randomness};
use careof_wire::Error as WireError;
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, QuotedDatagram, TimeExceeded, UnreachableCode};
use careof_wire::mip4::{
    AuthenticationKind, BindingAcknowledge, BindingRequest, BindingUpdate, Identification, Message,
};

pub use config::{BindingAuthority, CorrespondentNodeConfig};

use super::binding_cache::{BindingCache, CachedBinding};
use super::io::REGISTRATION_PORT;
use super::outbox::Outbox;
use super::unicast::is_unicast;
use super::{
    Change, ConfigError, Counters, DropReason, Event, Input, Prefix, ReplayGuard, ReplayProtection,
    SecurityAssociation, Transmit, Tunnel, Wake, authentication,
};
use crate::deadline::earliest;
use crate::refresh;
use crate::replay::IdentificationSource;

/// A home agent that is believed.
#[derive(Debug)]
struct Authority {
    network: Prefix,
    security: SecurityAssociation,
    guard: ReplayGuard,
    /// The last request of ours that it answered: not to be answered twice.
    answered: Option<Identification>,
}

/// How a cached binding is kept alive.
#[derive(Clone, Copy, Debug)]
struct Refresh {
    /// When the home agent is asked again, if the binding is in use.
    at: Instant,
    /// Whether it has been used since it was told.
    used: bool,
    /// What the home agent was asked with last.
    asked: Option<Identification>,
}

/// A host that tunnels what it sends to mobile nodes straight to where they are, as far as it has been told.
///
/// A sans-IO state machine. After any call of a `handle_*` method the owner polls
/// [`CorrespondentNode::poll_transmit`] and [`CorrespondentNode::poll_event`] until they return `None`, and then asks
/// [`CorrespondentNode::next_timeout`] when to call [`CorrespondentNode::handle_timeout`]. Time never goes backwards.
///
/// For every packet of its own the owner asks [`CorrespondentNode::tunnel`].
#[derive(Debug)]
pub struct CorrespondentNode {
    config: CorrespondentNodeConfig,
    authorities: BTreeMap<Ipv4Addr, Authority>,
    cache: BindingCache,
    refreshes: BTreeMap<Ipv4Addr, Refresh>,
    identifications: IdentificationSource,
    random: Randomness,
    outbox: Outbox,
}

impl CorrespondentNode {
    /// A correspondent node that knows nothing yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        mut config: CorrespondentNodeConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let authorities = config.home_agents.drain(..).map(|authority| {
            let guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
            let BindingAuthority { home_agent, home_network: network, security } = authority;
            (home_agent, Authority { network, security, guard, answered: None })
        });
        Ok(Self {
            authorities: authorities.collect(),
            cache: BindingCache::new(config.max_bindings),
            refreshes: BTreeMap::new(),
            identifications: IdentificationSource::new(ReplayProtection::TIMESTAMPS),
            config,
            random: random.into(),
            outbox: Outbox::default(),
        })
    }

    /// The tunnel for a packet of the node's own to `destination`; `None` when it is sent like any other. Cheap enough
    /// for every packet; it counts as use of the binding, without which that is not kept up.
    pub fn tunnel(&mut self, destination: Ipv4Addr) -> Option<Tunnel> {
        if self.cache.is_empty() {
            return None;
        }
        let tunnel = self.cache.get(destination)?.tunnel;
        if let Some(refresh) = self.refreshes.get_mut(&destination) {
            refresh.used = true;
        }
        Some(tunnel)
    }

    /// The cached bindings, by home address.
    pub fn bindings(&self) -> impl Iterator<Item = &CachedBinding> {
        self.cache.iter()
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

    /// When to call [`CorrespondentNode::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let end = self.cache.deadline().map(|at| (at, Wake::BindingUpdateLifetime));
        let refresh = self.refreshes.values().map(|refresh| refresh.at).min();
        let refresh = refresh.filter(|&at| at < Instant::MAX).map(|at| (at, Wake::BindingRefresh));
        earliest(end, refresh)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        while let Some(ended) = self.cache.expire(now) {
            self.refreshes.remove(&ended.home_address);
            self.outbox.event(Event::Binding(ended.event(Change::Expired)));
        }
        let due: Vec<Ipv4Addr> =
            self.refreshes.iter().filter(|(_, refresh)| refresh.at <= now).map(|(&home, _)| home).collect();
        for home_address in due {
            self.refresh(now, home_address);
        }
    }

    /// Asks the home agent again for a binding in use that is about to end; one that is not in use ends.
    fn refresh(&mut self, now: Instant, home_address: Ipv4Addr) {
        let Some(binding) = self.cache.get(home_address).copied() else { return };
        let Some(refresh) = self.refreshes.get_mut(&home_address) else { return };
        if !refresh.used {
            // It may still be before it ends: then it is asked for at half of what is left.
            refresh.at = refresh::next(now, binding.expires);
            return;
        }
        let identification = self.identifications.next(now, self.config.clock, &mut self.random);
        *refresh =
            Refresh { at: refresh::next(now, binding.expires), asked: Some(identification), ..*refresh };
        let Some(home_agent) = binding.home_agent else { return };
        let Some(authority) = self.authorities.get(&home_agent) else { return };
        let request = BindingRequest { home_address, identification, extensions: Vec::new() };
        let mut bytes = Message::BindingRequest(request).emit();
        authentication::append(&mut bytes, AuthenticationKind::RouteOptimization, &authority.security);
        self.outbox.message(None, self.config.address, home_agent, bytes);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Udp { source, destination, destination_port, payload, .. } => {
                self.outbox.count_received();
                if destination_port != REGISTRATION_PORT || destination != self.config.address {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                match Message::parse(payload) {
                    Ok(message) => match &message {
                        Message::BindingUpdate(update) => {
                            self.handle_update(now, source, payload, &message, update);
                        }
                        _ => self.outbox.drop(DropReason::NotForUs, source),
                    },
                    Err(WireError::UnknownExtension { .. }) => {
                        self.outbox.drop(DropReason::UnknownExtension, source);
                    }
                    Err(_) => self.outbox.drop(DropReason::Malformed, source),
                }
            }
            Input::Icmp { source, message, .. } => {
                self.outbox.count_received();
                match IcmpMessage::parse(message) {
                    Ok(message) => self.handle_icmp(&message),
                    Err(_) => self.outbox.drop(DropReason::Malformed, source),
                }
            }
            Input::LinkUp { .. } | Input::LinkDown { .. } | Input::AddressChanged { .. } => {}
        }
    }

    /// A tunnel of ours leads nowhere: the binding is forgotten, and the packets go by the home agent, which tells a better
    /// one. Whoever forges this can make packets take the longer way, and nothing more.
    fn handle_icmp(&mut self, message: &IcmpMessage) {
        let quoted = match message {
            IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, quoted, .. })
                if *code != UnreachableCode::FragmentationNeeded =>
            {
                quoted
            }
            IcmpMessage::TimeExceeded(TimeExceeded { quoted, .. }) => quoted,
            _ => return,
        };
        let Ok(quoted) = QuotedDatagram::parse(quoted) else { return };
        let header = quoted.header;
        let leads_there = |binding: &&CachedBinding| {
            let tunnel = binding.tunnel;
            let is_ours = header.source == tunnel.entry && header.destination == tunnel.exit;
            is_ours && header.protocol == tunnel.encapsulation.protocol()
        };
        let stale: Vec<Ipv4Addr> =
            self.cache.iter().filter(leads_there).map(|binding| binding.home_address).collect();
        for home_address in stale {
            self.forget(home_address);
        }
    }

    fn forget(&mut self, home_address: Ipv4Addr) {
        self.refreshes.remove(&home_address);
        if let Some(binding) = self.cache.remove(home_address) {
            self.outbox.event(Event::Binding(binding.event(Change::Removed)));
        }
    }

    fn handle_update(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        bytes: &[u8],
        message: &Message,
        update: &BindingUpdate,
    ) {
        match self.check_update(now, source, bytes, message, update) {
            Ok(identification) => {
                let care_of = update.care_of_address;
                // A tunnel to ourselves would never end.
                let usable = update.forgets() || (is_unicast(care_of) && care_of != self.config.address);
                if update.forgets() {
                    self.forget(update.home_address);
                } else if usable {
                    self.remember(now, source, update);
                } else {
                    self.outbox.drop(DropReason::PoorlyFormed, source);
                }
                if usable {
                    self.outbox.count_accepted();
                }
                if update.acknowledge {
                    self.acknowledge(source, update.home_address, identification, !usable);
                }
            }
            Err(reason) => self.outbox.drop(reason, source),
        }
    }

    /// Whether an update is from a home agent that may tell this, and fresh.
    fn check_update(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        bytes: &[u8],
        message: &Message,
        update: &BindingUpdate,
    ) -> Result<Identification, DropReason> {
        let authority = self.authorities.get_mut(&source).ok_or(DropReason::UnexpectedSource)?;
        let kind = AuthenticationKind::RouteOptimization;
        authentication::check(bytes, message, kind, core::iter::once(&authority.security))?;
        if !authority.network.contains(update.home_address) {
            return Err(DropReason::UnknownHomeAddress);
        }
        let identification = update.identification.ok_or(DropReason::PoorlyFormed)?;
        if authority.answered == Some(identification) {
            return Err(DropReason::Replayed);
        }
        let clock = self.config.clock.at(now);
        let fresh = authority.guard.check(identification, clock, &mut self.random).outcome;
        let asked = self.refreshes.get(&update.home_address).and_then(|refresh| refresh.asked);
        if asked == Some(identification) {
            // What was signed before we asked is old from now on, as the guard has seen.
            authority.answered = asked;
            return Ok(identification);
        }
        match fresh {
            Ok(()) => Ok(identification),
            Err(_) => Err(DropReason::Replayed),
        }
    }

    fn remember(&mut self, now: Instant, home_agent: Ipv4Addr, update: &BindingUpdate) {
        let (entry, longest) = (self.config.address, self.config.max_lifetime);
        let binding = CachedBinding::told(now, update, entry, Some(home_agent), longest);
        let (old, evicted) = self.cache.insert(binding);
        if let Some(evicted) = evicted {
            self.refreshes.remove(&evicted.home_address);
            self.outbox.event(Event::Binding(evicted.event(Change::Removed)));
        }
        let refresh = Refresh { at: refresh::first(now, binding.expires), used: false, asked: None };
        self.refreshes.insert(binding.home_address, refresh);
        let moved = old.filter(|old| old.tunnel.exit != binding.tunnel.exit);
        if let Some(old) = moved {
            self.outbox.event(Event::Binding(old.event(Change::Removed)));
        }
        let renewed = old.is_some() && moved.is_none();
        let change = if renewed { Change::Updated } else { Change::Created };
        self.outbox.event(Event::Binding(binding.event(change)));
    }

    fn acknowledge(
        &mut self,
        home_agent: Ipv4Addr,
        home_address: Ipv4Addr,
        identification: Identification,
        negative: bool,
    ) {
        let Some(authority) = self.authorities.get(&home_agent) else { return };
        let answer = BindingAcknowledge { negative, home_address, identification, extensions: Vec::new() };
        let mut bytes = Message::BindingAcknowledge(answer).emit();
        authentication::append(&mut bytes, AuthenticationKind::RouteOptimization, &authority.security);
        self.outbox.message(None, self.config.address, home_agent, bytes);
    }
}
