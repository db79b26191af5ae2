//! What a correspondent node is configured with.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_wire::mip4::Lifetime;

use crate::config_error::check_distinct;
use crate::v4::unicast::check_unicast;
use crate::v4::{ConfigError, Prefix, SecurityAssociation, WallClock};

/// A home agent that a correspondent node believes, and in what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingAuthority {
    /// Its address.
    pub home_agent: Ipv4Addr,
    /// Of whose mobile nodes it may tell; of others it is not believed.
    pub home_network: Prefix,
    /// What was agreed on. Updates are always told from old ones by timestamps.
    pub security: SecurityAssociation,
}

/// The configuration of a [`super::CorrespondentNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrespondentNodeConfig {
    /// The node's address: where its tunnels begin.
    pub address: Ipv4Addr,
    /// The home agents it believes; at least one.
    pub home_agents: Vec<BindingAuthority>,
    /// Bindings cached at a time, at least one; where there is no room, the one that would end first goes.
    pub max_bindings: usize,
    /// The longest a binding is cached.
    pub max_lifetime: Lifetime,
    /// The node's time of day.
    pub clock: WallClock,
}

impl CorrespondentNodeConfig {
    /// A node that believes `home_agent`: up to 1000 bindings, each for as long as it is told.
    #[must_use]
    pub fn new(address: Ipv4Addr, home_agent: BindingAuthority) -> Self {
        Self {
            address,
            home_agents: alloc::vec![home_agent],
            max_bindings: 1000,
            max_lifetime: Lifetime::INFINITE,
            clock: WallClock::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_unicast("the correspondent node's address", self.address)?;
        if self.home_agents.is_empty() {
            return Err(ConfigError::Missing("home agent"));
        }
        if self.max_bindings == 0 {
            let what = "the number of bindings cached at a time";
            return Err(ConfigError::OutOfRange { what, found: 0, low: 1, high: usize::MAX as u64 });
        }
        for authority in &self.home_agents {
            check_unicast("a home agent's address", authority.home_agent)?;
        }
        check_distinct("the home agent", self.home_agents.iter().map(|authority| authority.home_agent))
    }
}
