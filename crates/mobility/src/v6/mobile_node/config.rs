//! What a mobile node is configured with.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use careof_wire::mip6::{Lifetime, MobileNodeIdentifier};

use crate::v6::home_agent::{check_ipv4, check_routable};
use crate::v6::{Prefix, SecurityAssociation};
use crate::{ConfigError, InterfaceId, PathProperties, Selection, WallClock};

/// An interface of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its number.
    pub id: InterfaceId,
    /// The higher, the better, under [`Selection::Preferred`].
    pub preference: u8,
    /// Whether its use costs something: under [`Selection::Preferred`] it comes after all that cost nothing, and is no
    /// refuge from a path that is merely bad, unless hardly anything gets through that.
    pub metered: bool,
    /// What is known of the path through it.
    pub path: PathProperties,
    /// Whether the link is up at the start.
    pub up: bool,
}

impl InterfaceConfig {
    /// An interface that is down.
    #[must_use]
    pub fn new(id: InterfaceId) -> Self {
        Self { id, preference: 0, metered: false, path: PathProperties::default(), up: false }
    }
}

/// When a Binding Update without acknowledgement is sent again (RFC 6275 sections 11.8, 12 and 13), each time after twice as long.
///
/// Before that `early` updates are sent sooner than the RFC has it, where packets wait for the registration: at a handover, on a link or
/// a path that is back, not for the renewal of a binding in use. INITIAL_BINDACK_TIMEOUT is a second; an update that is lost, as the first
/// packets on a radio often are, then costs that second, twenty times what the handover costs without it. What the rules are
/// for stands: there are never more than MAX_UPDATE_RATE (3) updates within a second, a first registration waits for Duplicate Address
/// Detection at the home agent (section 11.7.1), and after the early ones the waits are those of the RFC. Correspondent nodes are
/// sent none.
///
/// An early update follows after twice the least round trip that was given or measured for the interface and 100 ms; where there is
/// none, the least of any other interface, or 100 ms if that is less. Early updates are no `attempts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmissionConfig {
    /// InitialBindackTimeoutFirstReg: the first wait while there is no binding at the home agent, which then has to look
    /// for duplicates of the home address.
    pub first_registration: Duration,
    /// INITIAL_BINDACK_TIMEOUT: the first wait otherwise, and that of the return routability procedure.
    pub initial: Duration,
    /// MAX_BINDACK_TIMEOUT: the longest wait. Then another home agent is tried, where one is known.
    pub maximum: Duration,
    /// Early updates to the home agent, at most 2; 0 is the RFC to the letter.
    pub early: u32,
    /// Updates without an acknowledgement after which a handover has failed, when the old path still works, and after which, under
    /// [`Selection::Preferred`], the interface in use is left for another; `None`: never. Without another path the node never gives up.
    pub attempts: Option<u32>,
}

impl Default for RetransmissionConfig {
    /// 1.5 s or 1 s, up to 32 s, and none early; a handover fails after 6 updates.
    fn default() -> Self {
        Self {
            first_registration: Duration::from_millis(1500),
            initial: Duration::from_secs(1),
            maximum: Duration::from_secs(32),
            early: 0,
            attempts: Some(6),
        }
    }
}

/// By what a mobile node notices that it has moved, beside the routers and addresses that neighbor discovery tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovementConfig {
    /// The newest address of an interface is used as soon as it is there, although the router of the one in use still is (eager).
    /// Otherwise the one in use is kept for as long as its router is there, as RFC 6275 section 11.5.1 advises.
    pub eager: bool,
    /// The link layer is believed. When off, a link counts as up whatever it says.
    pub link_layer: bool,
    /// A default router that neighbor unreachability detection finds gone is left (RFC 6275 section 11.5.1). The node itself only hears
    /// of [`crate::v6::Input::RouterLost`]; this tells its owner whether to watch.
    pub unreachable_router: bool,
}

impl Default for MovementConfig {
    /// Not eager; the link layer is believed, and nothing else is watched.
    fn default() -> Self {
        Self { eager: false, link_layer: true, unreachable_router: false }
    }
}

/// How correspondent nodes are told where the node is (RFC 6275 section 11.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOptimizationConfig {
    /// Correspondent nodes at a time; packets to others go through the home agent.
    pub max_correspondents: usize,
    /// The lifetime asked for; at most MAX_RR_BINDING_LIFETIME, 420 s (section 12).
    pub lifetime: Lifetime,
    /// Updates that replace a care-of address say that a handover has ended ([`careof_wire::mip6::UpdateFlags::END_OF_HANDOVER`]).
    pub tells_end_of_handover: bool,
}

impl RouteOptimizationConfig {
    /// The longest that a correspondent node keeps what return routability has made.
    pub const MAX_LIFETIME: Lifetime = crate::v6::CorrespondentNodeConfig::MAX_LIFETIME;
}

impl Default for RouteOptimizationConfig {
    /// 64 correspondent nodes, 420 s; handovers are not told.
    fn default() -> Self {
        Self { max_correspondents: 64, lifetime: Self::MAX_LIFETIME, tells_end_of_handover: false }
    }
}

/// The configuration of a [`super::MobileNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNodeConfig {
    /// The home address.
    pub home_address: Ipv6Addr,
    /// The prefix of the home network.
    pub home_prefix: Prefix,
    /// The home agent; `None`: found by asking the home network (RFC 6275 section 11.4.1).
    pub home_agent: Option<Ipv6Addr>,
    /// The IPv4 address of that home agent, by which it is reached where there is no IPv6 (RFC 5555). `None`: IPv4 addresses are no
    /// care-of addresses.
    pub home_agent_ipv4: Option<Ipv4Addr>,
    /// The IPv4 home address that the home agent is asked to bind, too; unspecified: whichever it has for the node (RFC 5555 section
    /// 3.1.1). `None`: none.
    pub ipv4_home_address: Option<Ipv4Addr>,
    /// The security association with the home agents.
    pub security: SecurityAssociation,
    /// How the node calls itself (RFC 4283). RFC 4285 section 4 wants a network access identifier.
    pub identifier: Option<MobileNodeIdentifier>,
    /// The node's time of day.
    pub clock: WallClock,
    /// The lifetime asked for; not zero.
    pub lifetime: Lifetime,
    /// How much of a lifetime passes before it is renewed, percent, 1 to 95.
    pub renew_after_percent: u8,
    /// Whether the node's link-local address has the interface identifier of its home address, so that the home agent is to defend
    /// both (L).
    pub link_local_compatible: bool,
    /// Whether the home agent is asked to keep the old binding at a handover, each under a name of its own (RFC 5648): packets
    /// then can come through both until the old interface is released.
    pub multiple_care_of: bool,
    /// When unanswered updates are sent again.
    pub retransmission: RetransmissionConfig,
    /// How the node notices that it has moved.
    pub movement: MovementConfig,
    /// Who chooses the interface.
    pub selection: Selection,
    /// How long the old interface of a handover is listened to; `None`: until the owner calls
    /// [`super::MobileNode::release`] or the link goes.
    pub keep_old: Option<Duration>,
    /// Whether updates tell the home agent what is known of the path ([`careof_wire::PathReport`]), in a vendor's option that others skip.
    /// With it a node registers again when a link that was lost is back, as only that tells what was lost with it.
    pub report_paths: bool,
    /// Whether the paths through interfaces with care-of addresses are watched: by what the owner
    /// [notes](super::MobileNode::note_sent), and by probes ([`careof_wire::mip6::PathProbe`]), which home agents that do not know them
    /// discard. Under [`Selection::Preferred`] a path in use that is silent is left for another one that answers.
    pub path_monitor: bool,
    /// Whether, with `path_monitor` and under [`Selection::Preferred`], a path in use that is bad - it loses much, or has become
    /// slow - is left for another one that is known to carry more and is found clearly better by probes.
    pub leave_bad_paths: bool,
    /// Whether and how routes are optimised; `None`: all packets go through the home agent. RFC 4285 section 2 advises against it where
    /// nothing else protects the Home Test messages between home agent and mobile node.
    pub route_optimization: Option<RouteOptimizationConfig>,
    /// The interfaces.
    pub interfaces: Vec<InterfaceConfig>,
}

impl MobileNodeConfig {
    /// A node that asks for 300 s, renews after three quarters of it and optimises routes; otherwise with what the parts
    /// of the configuration have as defaults.
    #[must_use]
    pub fn new(
        home_address: Ipv6Addr,
        home_prefix: Prefix,
        home_agent: Ipv6Addr,
        security: SecurityAssociation,
        interfaces: Vec<InterfaceConfig>,
    ) -> Self {
        Self {
            home_address,
            home_prefix,
            home_agent: Some(home_agent),
            home_agent_ipv4: None,
            ipv4_home_address: None,
            security,
            identifier: None,
            clock: WallClock::default(),
            lifetime: Lifetime::from_units(75),
            renew_after_percent: 75,
            link_local_compatible: false,
            multiple_care_of: false,
            retransmission: RetransmissionConfig::default(),
            movement: MovementConfig::default(),
            selection: Selection::Manual,
            keep_old: None,
            report_paths: false,
            path_monitor: false,
            leave_bad_paths: false,
            route_optimization: Some(RouteOptimizationConfig::default()),
            interfaces,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_routable("the home address", self.home_address)?;
        if !self.home_prefix.contains(self.home_address) {
            let (network, length) = (self.home_prefix.address().into(), self.home_prefix.length());
            return Err(ConfigError::NotAtHome { home_address: self.home_address.into(), network, length });
        }
        if let Some(address) = self.home_agent {
            check_routable("the home agent's address", address)?;
        }
        if let Some(address) = self.home_agent_ipv4 {
            check_ipv4("the home agent's IPv4 address", address)?;
            // Which of several it belongs to nobody could tell.
            if self.home_agent.is_none() {
                return Err(ConfigError::Missing("home agent's address of IPv6 beside that of IPv4"));
            }
        }
        if let Some(address) = self.ipv4_home_address.filter(|address| !address.is_unspecified()) {
            check_ipv4("the IPv4 home address", address)?;
            if self.home_agent_ipv4 == Some(address) {
                let what = "the IPv4 address of home agent and mobile node";
                return Err(ConfigError::DuplicateAddress { what, address: address.into() });
            }
        }
        if self.interfaces.is_empty() {
            return Err(ConfigError::Missing("interface"));
        }
        for (index, interface) in self.interfaces.iter().enumerate() {
            if self.interfaces.iter().take(index).any(|other| other.id == interface.id) {
                return Err(ConfigError::DuplicateInterface(interface.id));
            }
        }
        let in_range = |what, found, low, high| {
            let fits = (low..=high).contains(&found);
            if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
        };
        in_range("the number of interfaces", self.interfaces.len() as u64, 1, u64::from(u16::MAX) - 1)?;
        in_range("the lifetime in units of 4 s", self.lifetime.as_units().into(), 1, u16::MAX.into())?;
        in_range("renew_after_percent", self.renew_after_percent.into(), 1, 95)?;
        let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        let RetransmissionConfig { first_registration, initial, maximum, early, .. } = self.retransmission;
        in_range("early updates", early.into(), 0, 2)?;
        in_range("the first retransmission time in milliseconds", millis(initial), 100, u64::MAX)?;
        let what = "the first retransmission time of a first registration in milliseconds";
        in_range(what, millis(first_registration), 100, u64::MAX)?;
        in_range(
            "the longest retransmission time in milliseconds",
            millis(maximum),
            millis(initial),
            u64::MAX,
        )?;
        let Some(RouteOptimizationConfig { lifetime, .. }) = self.route_optimization else { return Ok(()) };
        let longest = RouteOptimizationConfig::MAX_LIFETIME.as_units().into();
        in_range(
            "the lifetime at correspondent nodes in units of 4 s",
            lifetime.as_units().into(),
            1,
            longest,
        )
    }
}
