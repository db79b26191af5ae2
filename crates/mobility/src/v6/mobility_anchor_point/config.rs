//! What a mobility anchor point is configured with.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::mip6::Lifetime;

use crate::v6::Prefix;
use crate::v6::home_agent::{
    HomeAgentConfig, HomePrefix, OnLinkAddresses, Role, ServedMobileNode, check_routable,
};
use crate::{ConfigError, InterfaceId, WallClock};

/// The configuration of a [`super::MobilityAnchorPoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobilityAnchorPointConfig {
    /// Its global address, as access routers advertise it.
    pub address: Ipv6Addr,
    /// The interface to the link that the regional care-of addresses are of.
    pub interface: InterfaceId,
    /// The prefixes of that link. No binding outlives the prefix of its regional care-of address.
    pub prefixes: Vec<HomePrefix>,
    /// The mobile nodes served: the *home address* of each is its regional care-of address, and the security associations are those of
    /// that address. IPv4 home addresses are refused.
    pub mobile_nodes: Vec<ServedMobileNode>,
    /// The prefixes of the links in its domain: on-link care-of addresses of others are refused with status 129 (RFC 5380 section 6.2).
    /// Empty: all are accepted.
    pub domain: Vec<Prefix>,
    /// The prefixes of links in other domains to which the packets of a mobile node that has a binding are sent on after it has left
    /// (RFC 5380 section 8).
    pub neighbors: Vec<Prefix>,
    /// For how long they are, at most.
    pub forwarding: Lifetime,
    /// The longest lifetime granted.
    pub max_lifetime: Lifetime,
    /// Bindings of all mobile nodes together.
    pub max_bindings: usize,
    /// As [`HomeAgentConfig::duplicate_address_detection`], for regional care-of addresses.
    pub duplicate_address_detection: Option<Duration>,
    /// After how much of a granted lifetime the mobile node is advised to renew it, percent, 1 to 99; `None`: no advice.
    pub refresh_advice_percent: Option<u8>,
    /// As [`HomeAgentConfig::late_reverse_tunnel`].
    pub late_reverse_tunnel: Duration,
    /// Its time of day.
    pub clock: WallClock,
}

impl MobilityAnchorPointConfig {
    /// One that serves nobody yet and whose domain is everywhere: lifetimes up to 1800 s, 100,000 bindings, 1 s of Duplicate Address
    /// Detection, packets from left care-of addresses for 5 s, packets sent on for up to 60 s.
    #[must_use]
    pub fn new(address: Ipv6Addr, prefix: Prefix, interface: InterfaceId) -> Self {
        let defaults = HomeAgentConfig::new(address, prefix, interface);
        Self {
            address,
            interface,
            prefixes: defaults.prefixes,
            mobile_nodes: Vec::new(),
            domain: Vec::new(),
            neighbors: Vec::new(),
            forwarding: Lifetime::from_units(15),
            max_lifetime: defaults.max_lifetime,
            max_bindings: defaults.max_bindings,
            duplicate_address_detection: defaults.duplicate_address_detection,
            refresh_advice_percent: None,
            late_reverse_tunnel: defaults.late_reverse_tunnel,
            clock: defaults.clock,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_routable("the address of the mobility anchor point", self.address)?;
        let mut addresses = self.mobile_nodes.iter().map(|node| node.home_address);
        if let Some(address) = addresses.find(|regional| *regional == self.address) {
            let what = "the address of the mobility anchor point and of a mobile node";
            return Err(ConfigError::DuplicateAddress { what, address: address.into() });
        }
        if self.mobile_nodes.iter().any(|node| node.ipv4_home_address.is_some()) {
            return Err(ConfigError::Incompatible("a mobility anchor point", "IPv4 home addresses"));
        }
        let forwarding = u64::from(self.forwarding.as_units());
        if !self.neighbors.is_empty() && forwarding == 0 {
            let what = "the lifetime of forwarding in units of 4 s";
            return Err(ConfigError::OutOfRange { what, found: 0, low: 1, high: u16::MAX.into() });
        }
        Ok(())
    }

    /// What of it is a home agent's, and what is not. The home agent's part is checked there.
    pub(super) fn into_parts(self) -> (Role, HomeAgentConfig) {
        let Self { domain, neighbors, forwarding, .. } = self;
        let role = Role::AnchorPoint(OnLinkAddresses { domain, neighbors, forwarding });
        let config = HomeAgentConfig {
            address: self.address,
            home_interface: self.interface,
            prefixes: self.prefixes,
            mobile_nodes: self.mobile_nodes,
            max_lifetime: self.max_lifetime,
            max_bindings_per_node: 1,
            max_bindings: self.max_bindings,
            duplicate_address_detection: self.duplicate_address_detection,
            ipv4_address: None,
            ipv4_home_prefix_len: 32,
            refresh_advice_percent: self.refresh_advice_percent,
            late_reverse_tunnel: self.late_reverse_tunnel,
            preference: 0,
            max_home_agents: 0,
            prefix_advertisements: None,
            clock: self.clock,
        };
        (role, config)
    }
}
