//! The home agent (RFC 5944 sections 3.8, 4.2.3 and 4.6; reverse tunnelling: RFC 3024; route optimisation:
//! draft-ietf-mobileip-optim).
//!
//! Left out: home addresses handed out by the agent (RFC 4433), broadcasts of the home link to mobile nodes
//! (the B bit is kept in the binding; forwarding is the owner's), multicast routing.

mod config;
mod correspondents;
mod probes;
mod record;
mod registration;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Instant, Randomness};
use careof_wire::Error as WireError;
use careof_wire::icmp::{AgentFlags, IcmpMessage};
use careof_wire::mip4::{Message, PathCounts, PathReport};

pub use config::{HomeAgentConfig, PeerSecurity, ServedMobileNode};
use correspondents::Correspondents;
pub use record::{BindingRecord, MobileNodeRecord};

use super::advertiser::Advertiser;
use super::binding::BindingTable;
use super::io::REGISTRATION_PORT;
use super::lifetime::end_of;
use super::outbox::Outbox;
use super::unicast::is_unicast;
use super::{
    ArpEvent, ArpOwner, BindingChanged, Change, ConfigError, Counters, DropReason, EncapsulationChoice,
    Event, Input, InterfaceId, MobilityBinding, NtpTime, ReplayGuard, ReverseTunnel, SecurityAssociation,
    Surroundings, Transmit, Tunnel, Wake, WallClock,
};
use crate::deadline::earliest;
use crate::left_care_of::LeftCareOfAddresses;
use crate::multipath::PathId;
use crate::ration::{DenialRation, NodeRation, ProbeRation};
use registration::Origin;

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

/// One of the paths to a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomePath {
    /// Its number.
    pub path: PathId,
    /// The care-of address that it leads to.
    pub care_of: Ipv4Addr,
    /// That is a relay's: what is put there is for the home address, within another header (IP within IP).
    pub relayed: bool,
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
    /// goes, in a copy each, through all of them, unless the home agent [disperses](HomeAgent::disperses) them. Cheap enough for every packet; lifetimes are checked by
    /// [`HomeAgent::handle_timeout`].
    #[must_use]
    pub fn tunnels(&self, home_address: Ipv4Addr) -> &[Tunnel] {
        self.bindings.tunnels(home_address)
    }

    /// Whether a packet from `home_address` may come through a tunnel that begins at `tunnel_source`: there
    /// is a binding with that care-of address, or was until lately, and reverse tunnelling was granted (RFC 3024 section 4.4). Through a
    /// relay they come so in any case, for it passes on nothing that is not in a tunnel.
    #[must_use]
    pub fn accepts_reverse_tunnel(&self, home_address: Ipv4Addr, tunnel_source: Ipv4Addr) -> bool {
        let is_relays = |path: HomePath| path.relayed && path.care_of == tunnel_source;
        self.reverse_tunnels(home_address).any(|tunnel| tunnel.exit == tunnel_source)
            || self.paths(home_address).any(is_relays)
    }

    /// The tunnels through which packets from `home_address` may come back, each named the way that packets to it take: those of its
    /// bindings with reverse tunnelling, and for [`HomeAgentConfig::late_reverse_tunnel`] those of care-of addresses that it has left.
    pub fn reverse_tunnels(&self, home_address: Ipv4Addr) -> impl Iterator<Item = Tunnel> {
        let bindings = self.bindings.of(home_address).iter().filter(|binding| binding.reverse_tunnel);
        bindings.map(|binding| binding.tunnel).chain(self.left.tunnels(home_address))
    }

    /// Whether packets to `home_address` are dispersed over its care-of addresses ([`crate::multipath::Bond`]) instead of going to
    /// each in a copy: it has numbered them.
    #[must_use]
    pub fn disperses(&self, home_address: Ipv4Addr) -> bool {
        self.paths(home_address).next().is_some()
    }

    /// The paths to `home_address`, where packets are dispersed; none otherwise.
    pub fn paths(&self, home_address: Ipv4Addr) -> impl Iterator<Item = HomePath> {
        self.bindings.of(home_address).iter().filter_map(|binding| {
            let MobilityBinding { care_of, relayed, .. } = *binding;
            Some(HomePath { path: binding.path_id?, care_of, relayed })
        })
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
            path_id: binding.path_id,
            relayed: binding.relayed,
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
                path_id: saved.path_id.filter(|_| self.config.multipath),
                relayed: saved.relayed,
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
