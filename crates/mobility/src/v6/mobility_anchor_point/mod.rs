//! The mobility anchor point (MAP) of Hierarchical Mobile IPv6 (RFC 5380 section 6.2): a local home agent. It binds regional care-of
//! addresses (RCoA), which are addresses of its own link, to on-link care-of addresses (LCoA), and tunnels packets between the two.
//!
//! It is made of the [home agent](crate::v6::HomeAgent): its binding cache, duplicate address detection, sequence numbers, timestamps
//! and rations are that one's. What differs: an update has M instead of H, the LCoA is the source of the packet that brings it and
//! belongs to the domain, or to a neighboring one while packets are sent on, and a mobile node has one LCoA at a time.
//!
//! **Trust.** RFC 5380 section 12.1 wants IKEv2, which gives a mobile node its RCoA, and IPsec, whose security association is that of
//! the RCoA. Here both are configured: which RCoA each mobile node has, and the security association of RFC 4285 that authenticates
//! its updates and their acknowledgements. So nobody can bind the RCoA of another, and the mobile node knows that the MAP has the key.
//! Packets of data are not protected.
//!
//! Left out: IKEv2 and IPsec; RCoAs that the MAP hands out; RCoAs of mobile nodes that the MAP does not know; probes by which access
//! routers find that a MAP has failed (section 10), which the RFC leaves open.

mod config;

use core::net::Ipv6Addr;

use careof_base::{Instant, Randomness};

pub use config::MobilityAnchorPointConfig;

use super::home_agent::{HomeRegistration, MobileNodeRecord};
use super::{Counters, Event, HomeAgent, Input, Transmit, Tunnel, Wake};
use crate::{ConfigError, WallClock};

/// A mobility anchor point: keeps the bindings of the mobile nodes in its domain.
///
/// A sans-IO state machine, driven as a [`HomeAgent`] is. A *home address* in its events and bindings is a regional care-of address.
/// For every packet to one the owner asks [`tunnels`](Self::tunnels); what comes through a tunnel is forwarded where
/// [`accepts_reverse_tunnel`](Self::accepts_reverse_tunnel) says so. Either may itself be a tunnel, between the mobile node and its home
/// agent.
#[derive(Debug)]
pub struct MobilityAnchorPoint(HomeAgent);

impl MobilityAnchorPoint {
    /// A mobility anchor point without bindings.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        config: MobilityAnchorPointConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let (role, config) = config.into_parts();
        HomeAgent::with_role(now, role, config, random.into()).map(Self)
    }

    /// The home agent that it is, for an owner that carries home agents and mobility anchor points alike. The *home addresses* that it
    /// serves are regional care-of addresses.
    #[must_use]
    pub fn into_home_agent(self) -> HomeAgent {
        self.0
    }

    /// Sets its time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.0.set_clock(clock);
    }

    /// The tunnel to the current on-link care-of address of `regional`; empty when it has no binding. Cheap enough for every packet.
    #[must_use]
    pub fn tunnels(&self, regional: Ipv6Addr) -> &[Tunnel] {
        self.0.tunnels(regional)
    }

    /// Whether a packet from `regional` may come through a tunnel that begins at `tunnel_source`: that is its on-link care-of address, or
    /// was until lately.
    #[must_use]
    pub fn accepts_reverse_tunnel(&self, regional: Ipv6Addr, tunnel_source: Ipv6Addr) -> bool {
        self.0.accepts_reverse_tunnel(regional, tunnel_source)
    }

    /// Whether a mobile node is configured with this regional care-of address.
    #[must_use]
    pub fn serves(&self, regional: Ipv6Addr) -> bool {
        self.0.serves(regional)
    }

    /// The binding of a regional care-of address, none or one.
    #[must_use]
    pub fn bindings_of(&self, regional: Ipv6Addr) -> &[HomeRegistration] {
        self.0.bindings_of(regional)
    }

    /// All bindings, by regional care-of address.
    pub fn bindings(&self) -> impl Iterator<Item = &HomeRegistration> {
        self.0.bindings()
    }

    /// How many bindings there are.
    #[must_use]
    pub const fn binding_count(&self) -> usize {
        self.0.binding_count()
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.0.counters()
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.0.poll_transmit(now)
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        self.0.next_timeout()
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.0.handle_input(now, input);
    }

    /// Ends the binding of `regional` on the operator's word, and returns how many there were.
    pub fn drop_bindings(&mut self, now: Instant, regional: Ipv6Addr) -> usize {
        self.0.drop_bindings(now, regional)
    }

    /// What must be remembered of `regional` across a restart, as [`HomeAgent::record`].
    #[must_use]
    pub fn record(&self, now: Instant, regional: Ipv6Addr) -> Option<MobileNodeRecord> {
        self.0.record(now, regional)
    }

    /// Takes back what [`record`](Self::record) gave before a restart; whether the mobile node is served here.
    pub fn restore(&mut self, now: Instant, record: &MobileNodeRecord) -> bool {
        self.0.restore(now, record)
    }
}
