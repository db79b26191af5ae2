//! What a hierarchical mobile node is configured with.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use super::REGIONAL;
use crate::config_error::check_distinct;
use crate::v6::home_agent::check_routable;
use crate::v6::{MobileNodeConfig, Prefix, SecurityAssociation};
use crate::{ConfigError, InterfaceId};

/// Bits of the prefix that a mobility anchor point shares with regional care-of addresses: those in front of an interface identifier.
const PREFIX_LEN: u8 = 64;

/// What a mobile node and a mobility anchor point have agreed on. One without is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapAssociation {
    /// The address of the mobility anchor point, as routers advertise it.
    pub address: Ipv6Addr,
    /// The regional care-of address there. `None`: that with the prefix of [`address`](Self::address) and the interface identifier of the
    /// home address (RFC 5380 section 6); not where the mobility anchor point allocates it (R).
    pub regional_address: Option<Ipv6Addr>,
    /// The security association of the regional care-of address.
    pub security: SecurityAssociation,
}

impl MapAssociation {
    /// One with a regional care-of address that the mobile node forms.
    #[must_use]
    pub const fn new(address: Ipv6Addr, security: SecurityAssociation) -> Self {
        Self { address, regional_address: None, security }
    }

    pub(super) const fn prefix(&self) -> Prefix {
        Prefix::new(self.address, PREFIX_LEN)
    }

    /// The regional care-of address of the mobile node with this home address.
    #[must_use]
    pub fn regional_of(&self, home_address: Ipv6Addr) -> Ipv6Addr {
        self.regional_address.unwrap_or_else(|| self.prefix().with_interface_of(home_address))
    }
}

/// Which of several mobility anchor points is used. Of those that are equal the one with the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapSelection {
    /// The most distant one, then the most preferred one: the default of RFC 5380 section 9.1. It is left least often.
    #[default]
    Furthest,
    /// The most preferred one (RFC 5380 section 7.1), then the most distant one.
    HighestPreference,
    /// The closest one, then the most preferred one: the least detour, and changed most often.
    Nearest,
}

/// The configuration of a [`super::HierarchicalMobileNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchicalMobileNodeConfig {
    /// The mobile node: its home, its interfaces, and how it registers with home agent and mobility anchor points alike. It has one
    /// care-of address at a time, of IPv6, and tells nobody of paths.
    pub node: MobileNodeConfig,
    /// The mobility anchor points that it may use; at least one.
    pub maps: Vec<MapAssociation>,
    /// Which of them it uses where several are advertised.
    pub selection: MapSelection,
    /// Updates without an acknowledgement, sent to a mobility anchor point or through it, after which it is left; at least 1.
    pub patience: u32,
    /// For how long a mobility anchor point that was left for another is told where to send packets on (RFC 5380 section 6.1); `None`: it
    /// is not told.
    pub forwarding: Option<Duration>,
}

impl HierarchicalMobileNodeConfig {
    /// The most distant one of `maps`, left after 3 updates in vain, which sends packets on for 60 s.
    #[must_use]
    pub fn new(node: MobileNodeConfig, maps: Vec<MapAssociation>) -> Self {
        let selection = MapSelection::default();
        Self { node, maps, selection, patience: 3, forwarding: Some(Duration::from_secs(60)) }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let combined = |with| Err(ConfigError::Incompatible("a mobility anchor point", with));
        let node = &self.node;
        if self.maps.is_empty() {
            return Err(ConfigError::Missing("mobility anchor point"));
        }
        if node.multiple_care_of {
            return combined("several care-of addresses");
        }
        if node.report_paths {
            return combined("reports of paths");
        }
        if node.home_agent_ipv4.is_some() || node.ipv4_home_address.is_some() {
            return combined("IPv4 addresses");
        }
        let InterfaceId(reserved) = REGIONAL;
        if node.interfaces.iter().any(|interface| interface.id == REGIONAL) {
            let (what, found) = ("the number of an interface", u64::from(reserved));
            return Err(ConfigError::OutOfRange { what, found, low: 0, high: found - 1 });
        }
        if self.patience == 0 {
            let what = "the number of updates after which a mobility anchor point is left";
            return Err(ConfigError::OutOfRange { what, found: 0, low: 1, high: u32::MAX.into() });
        }
        check_distinct("the mobility anchor point", self.maps.iter().map(|map| map.address))?;
        for map in &self.maps {
            check_routable("the address of a mobility anchor point", map.address)?;
            let regional = map.regional_of(node.home_address);
            check_routable("a regional care-of address", regional)?;
            if [map.address, node.home_address].contains(&regional) {
                let what = "the regional care-of address";
                return Err(ConfigError::DuplicateAddress { what, address: regional.into() });
            }
        }
        Ok(())
    }
}
