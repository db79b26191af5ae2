//! The home agent (RFC 6275 sections 8.4 and 10), with the authentication of RFC 4285, several care-of addresses (RFC 5648), IPv4 home
//! and care-of addresses (RFC 5555), and answers to probes of paths (experimental messages, RFC 5096).
//!
//! Left out: IPsec - home registrations are authenticated by RFC 4285 alone, so K is never set, and neither return routability nor
//! prefix discovery are protected between mobile node and home agent; several bindings in one update (RFC 5648 section 5.3),
//! refused with status 168; being at home and away at once (RFC 5648 section 5.6), refused with status 169; multicast group
//! membership (section 10.4.3); home addresses handed out by the agent; ICMP errors about Mobility Headers, for which the whole packet
//! would be needed.

mod bindings;
mod config;
mod dual_stack;
mod home_agents_list;
mod prefix_delivery;
mod prefixes;
mod probes;
mod record;
mod registration;
mod role;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{Icmpv6Message, IpFields};
use careof_wire::ipv6::{home_agents_anycast, is_unicast_routable};
use careof_wire::mip6::{
    BindingError, BindingErrorStatus, Message, MobileNodeIdentifier, MobilityOptions, PathCounts,
};

pub use bindings::HomeRegistration;
use bindings::HomeRegistrations;
pub use config::{HomeAgentConfig, HomePrefix, PrefixAdvertisementConfig, ServedMobileNode};
pub(in crate::v6) use config::{check_ipv4, check_routable};
use home_agents_list::HomeAgentsList;
use prefix_delivery::PrefixDeliveries;
use prefixes::HomePrefixes;
pub use record::{HomeRegistrationRecord, MobileNodeRecord};
use registration::Request;
pub(in crate::v6) use role::{OnLinkAddresses, Role};

use super::outbox::Outbox;
use super::{
    Addresses, BindingChanged, Counters, DropReason, Event, Input, NeighborEvent, Prefix,
    SecurityAssociation, Transmit, Tunnel, Wake,
};
use crate::deadline::earliest;
use crate::left_care_of::LeftCareOfAddresses;
use crate::ration::{DenialRation, NodeRation, ProbeRation};
use crate::{ConfigError, InterfaceId, NtpTime, WallClock};

/// A mobile node served, and what it has proved.
#[derive(Debug)]
struct Served {
    security: Vec<SecurityAssociation>,
    identifier: Option<MobileNodeIdentifier>,
    permitted: bool,
    ipv4_home_address: Option<Ipv4Addr>,
    /// The latest timestamp accepted, under whichever security association (RFC 4285 section 6).
    latest: Option<NtpTime>,
    refusals: NodeRation,
    solicitations: NodeRation,
    probes: ProbeRation,
}

/// A first binding that waits for the end of Duplicate Address Detection.
#[derive(Debug)]
struct Pending {
    request: Request,
    /// The home address, and with L the link-local address that belongs to it, as long as they are in doubt.
    in_doubt: Vec<Ipv6Addr>,
    /// When the owner has had its time to find out.
    until: Instant,
}

/// A home agent: keeps the bindings of its mobile nodes.
///
/// A sans-IO state machine. After any call of a `handle_*` method the owner polls [`HomeAgent::poll_transmit`] and
/// [`HomeAgent::poll_event`] until they return `None`, and then asks [`HomeAgent::next_timeout`] when to call
/// [`HomeAgent::handle_timeout`]. Time never goes backwards.
///
/// For every packet to a mobile node the owner asks [`HomeAgent::tunnels`]; it answers neighbor solicitations as
/// [`NeighborEvent::Proxy`] says. Packets to a link-local address that it defends are not tunnelled (section 10.4.2).
#[derive(Debug)]
pub struct HomeAgent {
    role: Role,
    config: HomeAgentConfig,
    nodes: BTreeMap<Ipv6Addr, Served>,
    /// Whose IPv4 home address it is.
    ipv4_homes: BTreeMap<Ipv4Addr, Ipv6Addr>,
    prefixes: HomePrefixes,
    bindings: HomeRegistrations,
    /// Home addresses of mobile nodes that are away whose link-local address is defended, too.
    link_local: BTreeSet<Ipv6Addr>,
    /// At most one for each mobile node served.
    pending: BTreeMap<Ipv6Addr, Pending>,
    left: LeftCareOfAddresses<Ipv6Addr, Tunnel>,
    home_agents: HomeAgentsList,
    deliveries: PrefixDeliveries,
    /// What has passed between a home address and a care-of address, for the probe that comes next.
    noted: Option<(Ipv6Addr, Ipv6Addr, PathCounts)>,
    /// To those who have proved nothing.
    answers: DenialRation,
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
        config: HomeAgentConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        Self::with_role(now, Role::HomeAgent, config, random.into())
    }

    pub(in crate::v6) fn with_role(
        now: Instant,
        role: Role,
        mut config: HomeAgentConfig,
        random: Randomness,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let ipv4_home = |node: &ServedMobileNode| Some((node.ipv4_home_address?, node.home_address));
        let ipv4_homes = config.mobile_nodes.iter().filter_map(ipv4_home).collect();
        let nodes = config.mobile_nodes.drain(..).map(|node| {
            let served = Served {
                security: node.security,
                identifier: node.identifier,
                permitted: node.permitted,
                ipv4_home_address: node.ipv4_home_address,
                latest: None,
                refusals: NodeRation::default(),
                solicitations: NodeRation::default(),
                probes: ProbeRation::default(),
            };
            (node.home_address, served)
        });
        let nodes = nodes.collect();
        Ok(Self {
            role,
            nodes,
            ipv4_homes,
            prefixes: HomePrefixes::new(now, config.prefixes.drain(..)),
            bindings: HomeRegistrations::new(config.address, config.ipv4_address),
            link_local: BTreeSet::new(),
            pending: BTreeMap::new(),
            left: LeftCareOfAddresses::default(),
            home_agents: HomeAgentsList::new(config.max_home_agents),
            deliveries: PrefixDeliveries::default(),
            noted: None,
            answers: DenialRation::default(),
            random,
            outbox: Outbox::default(),
            config,
        })
    }

    /// Sets the home agent's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// The tunnels to the current care-of addresses of `home_address`, the newest last; empty when it is not away. With one binding
    /// there is one; of several any will do (RFC 5648 section 6.1). Cheap enough for every packet; lifetimes are checked by
    /// [`HomeAgent::handle_timeout`].
    #[must_use]
    pub fn tunnels(&self, home_address: Ipv6Addr) -> &[Tunnel] {
        self.bindings.tunnels(home_address)
    }

    /// Whether a packet from `home_address` may come through a tunnel that begins at `tunnel_source`: that is one of its care-of
    /// addresses, or was until lately (RFC 6275 section 10.4.5, RFC 5648 section 9.3.1).
    #[must_use]
    pub fn accepts_reverse_tunnel(&self, home_address: Ipv6Addr, tunnel_source: Ipv6Addr) -> bool {
        self.reverse_tunnels(home_address).any(|tunnel| tunnel.exit == tunnel_source)
    }

    /// The tunnels through which packets from `home_address` may come back, each named the way that packets to it take: those of its
    /// bindings, and for [`HomeAgentConfig::late_reverse_tunnel`] those of care-of addresses that it has left.
    pub fn reverse_tunnels(&self, home_address: Ipv6Addr) -> impl Iterator<Item = Tunnel> {
        self.bindings.tunnels(home_address).iter().copied().chain(self.left.tunnels(home_address))
    }

    /// Whether a packet from `source` may claim `home_address` in a Home Address option: it is one of its care-of addresses (RFC 6275
    /// section 9.3.1). Packets with a Mobility Header need not be asked about.
    #[must_use]
    pub fn accepts_home_address_option(&self, home_address: Ipv6Addr, source: Ipv6Addr) -> bool {
        // What has come through IPv4 has come from a care-of address through its tunnel.
        let is_ipv6 = source.to_ipv4_mapped().is_none();
        is_ipv6 && self.bindings.tunnels(home_address).iter().any(|tunnel| tunnel.exit == source)
    }

    /// Whether this is the home agent of `home_address`.
    #[must_use]
    pub fn serves(&self, home_address: Ipv6Addr) -> bool {
        self.nodes.contains_key(&home_address)
    }

    /// The bindings of a mobile node, the newest last.
    #[must_use]
    pub fn bindings_of(&self, home_address: Ipv6Addr) -> &[HomeRegistration] {
        self.bindings.of(home_address)
    }

    /// All bindings, by home address.
    pub fn bindings(&self) -> impl Iterator<Item = &HomeRegistration> {
        self.bindings.iter()
    }

    /// Those of mobile nodes with this home address and larger ones, in the same order: for a look at one part after the other.
    pub fn bindings_from(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &HomeRegistration> {
        self.bindings.from(home_address)
    }

    /// How many bindings there are.
    #[must_use]
    pub const fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    /// How many other home agents of the home network are known.
    #[must_use]
    pub fn home_agent_count(&self) -> usize {
        self.home_agents.len()
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
        let detection = self.pending.values().map(|pending| pending.until).min();
        [
            (self.bindings.deadline(), Wake::BindingLifetime),
            (detection, Wake::DuplicateAddressDetection),
            (self.bindings.deleted_deadline(), Wake::DeletedBinding),
            (self.left.deadline(), Wake::DeletedBinding),
            (self.home_agents.deadline(), Wake::HomeAgentLifetime),
            (self.deliveries.deadline(), Wake::PrefixAdvertisementDue),
        ]
        .into_iter()
        .fold(None, |next, (at, wake)| earliest(next, at.map(|at| (at, wake))))
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        while let Some(change) = self.bindings.expire(now) {
            self.tell(change);
            self.end_service_of_bindingless(change.home_address);
        }
        self.bindings.expire_deleted(now);
        while let Some(home_address) = self.left.expire(now) {
            self.outbox.event(Event::ReverseTunnelEnded { home_address });
        }
        self.expire_pending(now);
        self.home_agents.expire(now);
        self.advertise_prefixes(now);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { interface, addresses, message } => {
                self.outbox.count_received();
                self.handle_mobility(now, interface, addresses, message);
            }
            Input::Icmp { interface, addresses, hop_limit, message } => {
                self.outbox.count_received();
                self.handle_icmp(now, interface, addresses, hop_limit, message);
            }
            Input::DuplicateAddressDetection { interface, address, unique } => {
                if interface == self.config.home_interface {
                    self.handle_detection(now, address, unique);
                }
            }
            Input::LinkUp { .. }
            | Input::LinkDown { .. }
            | Input::RouterFound { .. }
            | Input::RouterLost { .. }
            | Input::MapsFound { .. }
            | Input::AddressAdded { .. }
            | Input::AddressRemoved { .. } => {}
        }
    }

    fn handle_mobility(&mut self, now: Instant, interface: InterfaceId, addresses: Addresses, bytes: &[u8]) {
        let source = addresses.source;
        if addresses.real_destination() != self.config.address || !is_unicast_routable(source) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        if addresses.ipv4_tunnel().is_some_and(|ends| !self.is_ipv4_way(ends)) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        match Message::parse(addresses.real_source(), addresses.real_destination(), bytes) {
            Ok(Message::BindingUpdate(update)) => {
                self.handle_update(now, interface, addresses, bytes, &update);
            }
            Ok(Message::PathProbe(probe)) => self.handle_probe(now, addresses, bytes, &probe),
            Ok(message) if message.is_unknown_to_mobile_ipv6() => {
                self.outbox.drop(DropReason::UnknownMessage, source);
                // Who sends it through IPv4 has proved nothing of where it is.
                if addresses.ipv4_tunnel().is_none() {
                    self.tell_unknown(now, addresses);
                }
            }
            Ok(_) => self.outbox.drop(DropReason::NotForUs, source),
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    /// Says that a Mobility Header of this type is not known here (RFC 6275 sections 9.2 and 9.3.3).
    fn tell_unknown(&mut self, now: Instant, addresses: Addresses) {
        if !self.answers.allows(now, addresses.source) {
            return self.outbox.counters.count_suppressed_answer();
        }
        let error = Message::BindingError(BindingError {
            status: BindingErrorStatus::UnrecognizedMhType,
            home_address: addresses.home_address.unwrap_or(Ipv6Addr::UNSPECIFIED),
            options: MobilityOptions::new(),
        });
        let way = Addresses::new(self.config.address, addresses.source);
        if let Ok(bytes) = error.emit(way.source, way.destination) {
            self.outbox.mobility(None, way, bytes);
        }
    }

    fn handle_icmp(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        hop_limit: u8,
        bytes: &[u8],
    ) {
        let Addresses { source, destination, .. } = addresses;
        let Ok(message) = Icmpv6Message::parse(addresses.real_source(), addresses.real_destination(), bytes)
        else {
            return self.outbox.drop(DropReason::Malformed, source);
        };
        match message {
            Icmpv6Message::RouterAdvertisement(heard)
                if interface == self.config.home_interface && self.role.is_home_agent() =>
            {
                if heard.check(&IpFields { source, destination, hop_limit }).is_err() {
                    return self.outbox.drop(DropReason::NotValid, source);
                }
                if !self.home_agents.heard(now, source, &heard) {
                    self.outbox.drop(DropReason::TableFull, source);
                }
            }
            Icmpv6Message::HomeAgentAddressDiscoveryRequest(request) => {
                self.answer_discovery(now, addresses, request.identifier);
            }
            Icmpv6Message::MobilePrefixSolicitation(solicitation) => {
                self.answer_prefix_solicitation(now, addresses, solicitation.identifier);
            }
            // What else comes along means nothing here.
            _ => {}
        }
    }

    /// Answers who looks for home agents of the home network (section 10.5.1). Anybody can ask in anybody's name, so there is a ration.
    fn answer_discovery(&mut self, now: Instant, addresses: Addresses, identifier: u16) {
        let Addresses { source, destination, .. } = addresses;
        let anycast = |prefix: Prefix| home_agents_anycast(prefix.address(), prefix.length());
        let is_asked = self.prefixes.iter().any(|prefix| anycast(prefix) == destination);
        if !is_asked || !self.role.is_home_agent() || !is_unicast_routable(source) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        if !self.answers.allows(now, source) {
            self.outbox.drop(DropReason::OverRation, source);
            return self.outbox.counters.count_suppressed_answer();
        }
        let own = (self.config.address, self.config.preference);
        let home_agents = self.home_agents.addresses(own, &mut self.random);
        let reply = careof_wire::icmpv6::HomeAgentAddressDiscoveryReply { identifier, home_agents };
        let way = Addresses::new(self.config.address, source);
        let mut bytes = Vec::new();
        Icmpv6Message::HomeAgentAddressDiscoveryReply(reply).emit(way.source, way.destination, &mut bytes);
        self.outbox.icmp(None, way, bytes);
    }

    fn tell(&mut self, change: BindingChanged) {
        self.outbox.event(Event::Binding(change));
    }

    /// The addresses that are defended for a mobile node: its home address, and with L the link-local address that belongs to it
    /// (section 10.3.1).
    fn defended(&self, home_address: Ipv6Addr, link_local: bool) -> impl Iterator<Item = Ipv6Addr> + use<> {
        let derived = link_local.then(|| Prefix::LINK_LOCAL.with_interface_of(home_address));
        [Some(home_address), derived].into_iter().flatten()
    }

    /// The home agent takes the packets of a mobile node that has left, or no longer (section 10.4.1).
    fn proxy(&mut self, address: Ipv6Addr, on: bool) {
        let interface = self.config.home_interface;
        self.outbox.event(Event::Neighbor(NeighborEvent::Proxy { interface, address, on }));
        if on {
            self.outbox.event(Event::Neighbor(NeighborEvent::Advertise { interface, address }));
        }
    }

    /// Stops what is done for mobile nodes with bindings, if this one has none left.
    fn end_service_of_bindingless(&mut self, home_address: Ipv6Addr) {
        if self.bindings.of(home_address).is_empty() {
            let link_local = self.link_local.remove(&home_address);
            self.defended(home_address, link_local).for_each(|address| self.proxy(address, false));
            self.deliveries.cancel(home_address);
        }
    }

    /// Ends all bindings of a mobile node on its operator's word, and returns how many there were. The mobile node is not told: it
    /// may register again at any time, unless it is not [permitted](ServedMobileNode::permitted) to.
    pub fn drop_bindings(&mut self, now: Instant, home_address: Ipv6Addr) -> usize {
        self.outbox.called_at(now);
        self.pending.remove(&home_address);
        self.left.forget(home_address, None);
        let changes = self.bindings.remove_all(home_address);
        let count = changes.len();
        changes.into_iter().for_each(|change| self.tell(change));
        if count > 0 {
            self.end_service_of_bindingless(home_address);
        }
        count
    }
}
