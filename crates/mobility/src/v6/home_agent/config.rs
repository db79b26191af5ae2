//! What a home agent is configured with.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use careof_wire::icmpv6::PrefixLifetime;
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{Lifetime, MobileNodeIdentifier, Spi};

use crate::config_error::check_distinct;
use crate::v6::dual_stack::is_unicast_ipv4;
use crate::v6::{Prefix, SecurityAssociation};
use crate::{ConfigError, InterfaceId, WallClock};

/// A mobile node whose home agent this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedMobileNode {
    /// Its home address.
    pub home_address: Ipv6Addr,
    /// The security associations with it, each with its own SPI; at least one.
    pub security: Vec<SecurityAssociation>,
    /// How it is to call itself (RFC 4283); `None`: as it likes.
    pub identifier: Option<MobileNodeIdentifier>,
    /// Whether it may register; otherwise its updates are refused with status 129.
    pub permitted: bool,
    /// Its IPv4 home address: bound when it asks for it, or for any, in the IPv4 Home Address option (RFC 5555 section 3.1.1). `None`: it
    /// has none.
    pub ipv4_home_address: Option<Ipv4Addr>,
}

impl ServedMobileNode {
    /// A mobile node that may register, with one security association.
    #[must_use]
    pub fn new(home_address: Ipv6Addr, security: SecurityAssociation) -> Self {
        Self {
            home_address,
            security: alloc::vec![security],
            identifier: None,
            permitted: true,
            ipv4_home_address: None,
        }
    }
}

/// A prefix of the home network, as the routers there advertise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomePrefix {
    /// The prefix.
    pub prefix: Prefix,
    /// For how long it is valid from now on. No binding outlives it.
    pub valid: PrefixLifetime,
    /// For how long addresses of it remain preferred from now on; no longer than `valid`.
    pub preferred: PrefixLifetime,
    /// Whether mobile nodes may form addresses of it (A).
    pub autonomous: bool,
}

impl HomePrefix {
    /// A prefix that stays forever.
    #[must_use]
    pub const fn permanent(prefix: Prefix) -> Self {
        let forever = PrefixLifetime::INFINITE;
        Self { prefix, valid: forever, preferred: forever, autonomous: true }
    }
}

/// When mobile nodes are told the prefixes of the home network without having asked (RFC 6275 sections 10.6.2 and 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixAdvertisementConfig {
    /// MinMobPfxAdvInterval: the shortest wait before an advertisement.
    pub min_interval: Duration,
    /// MaxMobPfxAdvInterval: the longest.
    pub max_interval: Duration,
}

impl Default for PrefixAdvertisementConfig {
    /// From 600 s to a day.
    fn default() -> Self {
        Self { min_interval: Duration::from_secs(600), max_interval: Duration::from_secs(86_400) }
    }
}

/// The configuration of a [`super::HomeAgent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeAgentConfig {
    /// The home agent's global address.
    pub address: Ipv6Addr,
    /// The interface to the home network.
    pub home_interface: InterfaceId,
    /// The prefixes of the home network.
    pub prefixes: Vec<HomePrefix>,
    /// The mobile nodes served.
    pub mobile_nodes: Vec<ServedMobileNode>,
    /// The longest lifetime granted.
    pub max_lifetime: Lifetime,
    /// Care-of addresses one mobile node can have at a time; with 1, several are refused with status 166.
    pub max_bindings_per_node: usize,
    /// Bindings of all mobile nodes together.
    pub max_bindings: usize,
    /// How long the home agent waits for somebody who has a home address before it accepts the first binding of it (RetransTimer,
    /// RFC 4862 section 5.4). `None`: it does not look, which is right only where nobody else can have such addresses.
    pub duplicate_address_detection: Option<Duration>,
    /// The home agent's IPv4 address, at which mobile nodes reach it from networks that have only IPv4 (RFC 5555); `None`: no IPv4 care-of
    /// addresses.
    pub ipv4_address: Option<Ipv4Addr>,
    /// Bits of the prefix of the IPv4 home network, which are told with IPv4 home addresses, 1 to 32; 32: each is an address by itself.
    pub ipv4_home_prefix_len: u8,
    /// After how much of a granted lifetime the mobile node is advised to renew it, percent, 1 to 99; `None`: no advice.
    pub refresh_advice_percent: Option<u8>,
    /// How long packets are taken out of tunnels from a care-of address that the mobile node has left, for what was under way
    /// there; zero: not at all, as RFC 6275 section 10.4.5 has it.
    pub late_reverse_tunnel: Duration,
    /// What it says of itself in the list of home agents: the higher, the more preferable (RFC 6275 section 7.4).
    pub preference: u16,
    /// Other home agents of the home network that are remembered.
    pub max_home_agents: usize,
    /// How the prefixes of the home network are told; `None`: not at all, not even who asks (RFC 6275 section 8.4). RFC 4285 section 2
    /// protects neither question nor answer.
    pub prefix_advertisements: Option<PrefixAdvertisementConfig>,
    /// The home agent's time of day.
    pub clock: WallClock,
}

impl HomeAgentConfig {
    /// A home agent that serves nobody yet: lifetimes up to 1800 s, 4 bindings a node, 100,000 in all, 1 s of
    /// Duplicate Address Detection, packets from left care-of addresses for 5 s.
    #[must_use]
    pub fn new(address: Ipv6Addr, home_prefix: Prefix, home_interface: InterfaceId) -> Self {
        Self {
            address,
            home_interface,
            prefixes: alloc::vec![HomePrefix::permanent(home_prefix)],
            mobile_nodes: Vec::new(),
            max_lifetime: Lifetime::from_units(450),
            max_bindings_per_node: 4,
            max_bindings: 100_000,
            duplicate_address_detection: Some(Duration::from_secs(1)),
            ipv4_address: None,
            ipv4_home_prefix_len: 32,
            refresh_advice_percent: None,
            late_reverse_tunnel: Duration::from_secs(5),
            preference: 0,
            max_home_agents: 16,
            prefix_advertisements: Some(PrefixAdvertisementConfig::default()),
            clock: WallClock::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_routable("the home agent's address", self.address)?;
        check_distinct("the mobile node", self.mobile_nodes.iter().map(|node| node.home_address))?;
        self.mobile_nodes.iter().try_for_each(check_served)?;
        let ipv4_homes = self.mobile_nodes.iter().filter_map(|node| node.ipv4_home_address);
        // A packet to the home agent itself would enter the tunnel to a mobile node.
        check_distinct("the IPv4 address", ipv4_homes.chain(self.ipv4_address))?;
        if let Some(address) = self.ipv4_address {
            check_ipv4("the home agent's IPv4 address", address)?;
        }
        if !(1..=32).contains(&self.ipv4_home_prefix_len) {
            let (what, found) = ("the prefix length of the IPv4 home network", self.ipv4_home_prefix_len);
            return Err(ConfigError::OutOfRange { what, found: found.into(), low: 1, high: 32 });
        }
        if self.prefixes.is_empty() {
            return Err(ConfigError::Missing("prefix of the home network"));
        }
        let at_least = |what, found: u64, low| {
            if found >= low {
                Ok(())
            } else {
                Err(ConfigError::OutOfRange { what, found, low, high: u64::MAX })
            }
        };
        at_least("the number of bindings a mobile node can have", self.max_bindings_per_node as u64, 1)?;
        at_least("the longest lifetime in units of 4 s", self.max_lifetime.as_units().into(), 1)?;
        if let Some(found) = self.refresh_advice_percent.filter(|percent| !(1..100).contains(percent)) {
            let what = "the time of the refresh advice in percent";
            return Err(ConfigError::OutOfRange { what, found: found.into(), low: 1, high: 99 });
        }
        match self.prefix_advertisements {
            Some(PrefixAdvertisementConfig { min_interval: min, max_interval: max })
                if min.is_zero() || min > max =>
            {
                Err(ConfigError::BadInterval { min, max })
            }
            _ => Ok(()),
        }
    }
}

pub(in crate::v6) fn check_routable(what: &'static str, address: Ipv6Addr) -> Result<(), ConfigError> {
    if is_unicast_routable(address) {
        Ok(())
    } else {
        Err(ConfigError::NotUnicast { what, address: address.into() })
    }
}

pub(in crate::v6) fn check_ipv4(what: &'static str, address: Ipv4Addr) -> Result<(), ConfigError> {
    if is_unicast_ipv4(address) {
        Ok(())
    } else {
        Err(ConfigError::NotUnicast { what, address: address.into() })
    }
}

fn check_served(node: &ServedMobileNode) -> Result<(), ConfigError> {
    check_routable("a home address", node.home_address)?;
    if let Some(address) = node.ipv4_home_address {
        check_ipv4("an IPv4 home address", address)?;
    }
    let address = node.home_address.into();
    if node.security.is_empty() {
        return Err(ConfigError::NoSecurityAssociation { home_address: address });
    }
    let mut names = BTreeSet::<Spi>::new();
    for association in &node.security {
        let spi = association.spi();
        if !names.insert(spi) {
            return Err(ConfigError::DuplicateSpi { address, spi });
        }
    }
    Ok(())
}
