//! The correspondent node (RFC 6275 section 9): a host that mobile nodes tell where they are, after they have proved that they are
//! reachable there and at home.
//!
//! Left out: ICMP Parameter Problems about Mobility Headers, which quote a packet that only the owner has, and authorisation by anything
//! but return routability.

mod config;
mod update;

use core::net::Ipv6Addr;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{DestinationUnreachable, Icmpv6Message, QuotedPacket};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{
    self, BindingError, BindingErrorStatus, BindingIdentifier, BindingRefreshRequest, CareOfTest,
    CareOfTestInit, HomeTest, HomeTestInit, Message, MobilityOption, MobilityOptions,
};

pub use config::CorrespondentNodeConfig;

use super::binding_cache::{BindingCache, CachedBinding, Due, Outcome};
use super::outbox::Outbox;
use super::return_routability::ReturnRoutability;
use super::{Addresses, Counters, DropReason, Event, Input, Transmit, Wake};
use crate::ration::DenialRation;
use crate::{Change, ConfigError, shares};

/// Next Header values whose packets are looked at, whatever home address they claim: their own protection is stronger (RFC 6275 section
/// 9.3.1). Encapsulating Security Payload, Authentication Header, Mobility Header.
const PROTECTED: [u8; 3] = [50, 51, mip6::PROTOCOL];

/// A host that sends to mobile nodes where they are, as far as they have told it.
///
/// A sans-IO state machine. After any call of a `handle_*` method, and of [`CorrespondentNode::accepts_home_address_option`], the owner
/// polls [`CorrespondentNode::poll_transmit`] and [`CorrespondentNode::poll_event`] until they return `None`, and then asks
/// [`CorrespondentNode::next_timeout`] when to call [`CorrespondentNode::handle_timeout`]. Time never goes backwards.
///
/// For every packet of its own the owner asks [`CorrespondentNode::care_of_address`], but not for neighbor discovery, and not for what
/// this state machine sends.
#[derive(Debug)]
pub struct CorrespondentNode {
    config: CorrespondentNodeConfig,
    routability: ReturnRoutability,
    cache: BindingCache,
    /// Of Home Tests and Care-of Tests, which anybody can ask for in anybody's name.
    tests: DenialRation,
    /// Of errors and refusals to those who have proved nothing.
    answers: DenialRation,
    random: Randomness,
    outbox: Outbox,
}

impl CorrespondentNode {
    /// A correspondent node that knows of no mobile node.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: CorrespondentNodeConfig, random: impl Into<Randomness>) -> Result<Self, ConfigError> {
        config.check()?;
        let per_site = shares::of_site(config.max_mobile_nodes_per_site, config.max_mobile_nodes);
        Ok(Self {
            cache: BindingCache::new(config.max_mobile_nodes, per_site),
            config,
            routability: ReturnRoutability::default(),
            tests: DenialRation::default(),
            answers: DenialRation::default(),
            random: random.into(),
            outbox: Outbox::default(),
        })
    }

    /// Where a packet of the node's own to `destination` goes, with a type 2 routing header that holds `destination`; `None` when it is
    /// sent like any other (RFC 6275 section 9.3.2). Cheap enough for every packet; it counts as use of the binding, without which
    /// that is not kept up. Of several care-of addresses it is the one registered last.
    pub fn care_of_address(&mut self, destination: Ipv6Addr) -> Option<Ipv6Addr> {
        self.cache.route(destination)
    }

    /// Whether a packet with a Home Address option is taken as from there (RFC 6275 section 9.3.1, RFC 5648 section 6.5). One that is not
    /// is dropped by the owner, and its sender told. `protocol` is the Next Header of the Destination Options header.
    pub fn accepts_home_address_option(&mut self, now: Instant, addresses: &Addresses, protocol: u8) -> bool {
        self.outbox.called_at(now);
        let Some(home_address) = addresses.home_address else { return true };
        if is_unicast_routable(home_address) {
            if PROTECTED.contains(&protocol) {
                return true;
            }
            if self.cache.has(home_address, addresses.source) {
                self.cache.note_reachable(home_address, addresses.source);
                return true;
            }
        }
        self.outbox.drop(DropReason::NoBinding, addresses.source);
        self.tell_error(now, addresses, BindingErrorStatus::UnknownBinding);
        false
    }

    /// The bindings of one mobile node, the one registered last at the end.
    pub fn bindings_of(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &CachedBinding> {
        self.cache.of(home_address)
    }

    /// All bindings, by home address.
    pub fn bindings(&self) -> impl Iterator<Item = &CachedBinding> {
        self.cache.iter()
    }

    /// Those of mobile nodes with this home address and larger ones, in the same order: for a look at one part after the other.
    pub fn bindings_from(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &CachedBinding> {
        self.cache.from(home_address)
    }

    /// How many bindings there are.
    #[must_use]
    pub const fn binding_count(&self) -> usize {
        self.cache.count()
    }

    /// Home addresses that something is remembered of: those with bindings, and those whose last update could still be repeated.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.cache.len()
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
        let (at, due) = self.cache.next_due()?;
        let wake = match due {
            Due::Expiry => Wake::BindingLifetime,
            Due::Refresh => Wake::BindingRefresh,
            Due::Oblivion => Wake::DeletedBinding,
        };
        Some((at, wake))
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        while let Some(outcome) = self.cache.carry_out(now) {
            match outcome {
                Outcome::Expired(binding) => {
                    self.outbox.event(Event::Binding(binding.changed(Change::Expired)));
                }
                Outcome::Ask(binding) => self.ask(&binding),
            }
        }
    }

    /// Asks a mobile node for a new binding in place of one in use (RFC 6275 section 9.5.5, RFC 5648 section 6.4).
    fn ask(&mut self, binding: &CachedBinding) {
        let id = binding.id.map(BindingIdentifier::new).map(MobilityOption::BindingIdentifier);
        let request =
            Message::BindingRefreshRequest(BindingRefreshRequest { options: id.into_iter().collect() });
        self.send(Addresses::new(self.config.address, binding.home_address), &request);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { addresses, message, .. } => {
                self.outbox.count_received();
                self.handle_mobility(now, &addresses, message);
            }
            Input::Icmp { addresses, message, .. } => {
                self.outbox.count_received();
                self.handle_icmp(now, &addresses, message);
            }
            Input::LinkUp { .. }
            | Input::LinkDown { .. }
            | Input::RouterFound { .. }
            | Input::RouterLost { .. }
            | Input::MapsFound { .. }
            | Input::AddressAdded { .. }
            | Input::AddressRemoved { .. }
            | Input::DuplicateAddressDetection { .. } => {}
        }
    }

    fn handle_mobility(&mut self, now: Instant, addresses: &Addresses, bytes: &[u8]) {
        let source = addresses.source;
        // Nothing is ever sent to an address that is none (sections 9.3.3 and 9.5.4).
        if addresses.real_destination() != self.config.address || !is_unicast_routable(source) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let message = match Message::parse(addresses.real_source(), addresses.real_destination(), bytes) {
            Ok(message) => message,
            Err(_) => return self.outbox.drop(DropReason::Malformed, source),
        };
        match message {
            message if message.is_unknown_to_mobile_ipv6() => {
                self.outbox.drop(DropReason::UnknownMessage, source);
                self.tell_error(now, addresses, BindingErrorStatus::UnrecognizedMhType);
            }
            Message::HomeTestInit(_) | Message::CareOfTestInit(_) | Message::BindingUpdate(_)
                if !self.config.route_optimization =>
            {
                self.outbox.drop(DropReason::NotOffered, source);
            }
            Message::HomeTestInit(init) => self.handle_home_test_init(now, addresses, &init),
            Message::CareOfTestInit(init) => self.handle_care_of_test_init(now, addresses, &init),
            Message::BindingUpdate(update) => self.handle_update(now, addresses, bytes, &update),
            _ => self.outbox.drop(DropReason::NotForUs, source),
        }
    }

    /// Makes a token for the source of a Home Test Init (RFC 6275 sections 9.4.1 and 9.4.3).
    fn handle_home_test_init(&mut self, now: Instant, addresses: &Addresses, init: &HomeTestInit) {
        if !self.may_test(now, addresses) {
            return;
        }
        let (nonce_index, token) = self.routability.home_token(now, &mut self.random, addresses.source);
        let cookie = init.cookie;
        let test =
            Message::HomeTest(HomeTest { nonce_index, cookie, token, options: MobilityOptions::new() });
        self.send(Addresses::new(self.config.address, addresses.source), &test);
    }

    /// Makes a token for the source of a Care-of Test Init (RFC 6275 sections 9.4.2 and 9.4.4). A Binding Identifier comes back in the
    /// answer (RFC 5648 section 4.3).
    fn handle_care_of_test_init(&mut self, now: Instant, addresses: &Addresses, init: &CareOfTestInit) {
        if !self.may_test(now, addresses) {
            return;
        }
        let (nonce_index, token) = self.routability.care_of_token(now, &mut self.random, addresses.source);
        let id = init.options.binding_identifiers().next().map(|named| BindingIdentifier::new(named.id));
        let options = id.map(MobilityOption::BindingIdentifier).into_iter().collect();
        let test = Message::CareOfTest(CareOfTest { nonce_index, cookie: init.cookie, token, options });
        self.send(Addresses::new(self.config.address, addresses.source), &test);
    }

    /// Whether a test is answered: it claims no home address, and there are not too many.
    fn may_test(&mut self, now: Instant, addresses: &Addresses) -> bool {
        if addresses.home_address.is_some() {
            self.outbox.drop(DropReason::PoorlyFormed, addresses.source);
            return false;
        }
        let allowed = self.tests.allows(now, addresses.source);
        if !allowed {
            self.outbox.drop(DropReason::OverRation, addresses.source);
        }
        allowed
    }

    /// Sends a Binding Error to the source address of a packet (RFC 6275 section 9.3.3).
    fn tell_error(&mut self, now: Instant, addresses: &Addresses, status: BindingErrorStatus) {
        if !is_unicast_routable(addresses.source) {
            return;
        }
        if !self.answers.allows(now, addresses.source) {
            return self.outbox.counters.count_suppressed_answer();
        }
        let home_address = addresses.home_address.unwrap_or(Ipv6Addr::UNSPECIFIED);
        let error =
            Message::BindingError(BindingError { status, home_address, options: MobilityOptions::new() });
        self.send(Addresses::new(self.config.address, addresses.source), &error);
    }

    /// Packets to a care-of address do not arrive. Whoever forges the error can make packets take the longer way, if it knows the
    /// binding, and nothing more.
    fn handle_icmp(&mut self, now: Instant, addresses: &Addresses, bytes: &[u8]) {
        let source = addresses.source;
        let message = match Icmpv6Message::parse(addresses.real_source(), addresses.real_destination(), bytes)
        {
            Ok(message) => message,
            Err(_) => return self.outbox.drop(DropReason::Malformed, source),
        };
        let Icmpv6Message::DestinationUnreachable(DestinationUnreachable { quoted, .. }) = message else {
            return;
        };
        let Ok(quoted) = QuotedPacket::parse(&quoted) else { return };
        let (home_address, care_of) = (quoted.destination, quoted.header.destination);
        if quoted.source != self.config.address || home_address == care_of {
            return;
        }
        if let Some(change) = self.cache.note_unreachable(now, home_address, care_of) {
            self.outbox.event(Event::Binding(change));
        }
    }

    /// Sends a message without authenticator.
    fn send(&mut self, addresses: Addresses, message: &Message) {
        if let Ok(bytes) = message.emit(addresses.source, addresses.real_destination()) {
            self.outbox.mobility(None, addresses, bytes);
        }
    }
}
