//! What a correspondent node is configured with.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::mip6::Lifetime;

use crate::ConfigError;
use crate::v6::home_agent::check_routable;

/// MAX_RR_BINDING_LIFETIME (RFC 6275 section 12).
const MAX_RR_BINDING_LIFETIME: Duration = Duration::from_secs(420);

/// The configuration of a [`super::CorrespondentNode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrespondentNodeConfig {
    /// The node's address. A node with several has a correspondent node for each (RFC 6275 section 9.1).
    pub address: Ipv6Addr,
    /// Whether it takes part in route optimisation at all (RFC 6275 section 15.4.5).
    pub route_optimization: bool,
    /// Home addresses that bindings are kept of at a time, at least one.
    pub max_mobile_nodes: usize,
    /// How many of them may be of one site (/48), at least one; `None`: a quarter, and 16 at least.
    pub max_mobile_nodes_per_site: Option<usize>,
    /// Bindings of one mobile node (RFC 5648), at least one; with one, Binding Identifiers are refused.
    pub max_bindings_per_node: usize,
    /// The longest a binding is kept, 4 to 420 seconds.
    pub max_lifetime: Lifetime,
}

impl CorrespondentNodeConfig {
    /// The longest a binding may be kept that return routability has made: 420 s (MAX_RR_BINDING_LIFETIME, RFC 6275 section 12).
    pub const MAX_LIFETIME: Lifetime = Lifetime::from_duration(MAX_RR_BINDING_LIFETIME);

    /// A node that keeps bindings of up to 1000 mobile nodes, up to 4 of each, for as long as they may be kept.
    #[must_use]
    pub const fn new(address: Ipv6Addr) -> Self {
        Self {
            address,
            route_optimization: true,
            max_mobile_nodes: 1000,
            max_mobile_nodes_per_site: None,
            max_bindings_per_node: 4,
            max_lifetime: Self::MAX_LIFETIME,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_routable("the correspondent node's address", self.address)?;
        let at_least_one = |what, found| match found {
            0 => Err(ConfigError::OutOfRange { what, found: 0, low: 1, high: usize::MAX as u64 }),
            _ => Ok(()),
        };
        at_least_one("the number of mobile nodes at a time", self.max_mobile_nodes)?;
        at_least_one("the number of mobile nodes of a site", self.max_mobile_nodes_per_site.unwrap_or(1))?;
        at_least_one("the number of bindings of a mobile node", self.max_bindings_per_node)?;
        if self.max_lifetime.is_zero() || self.max_lifetime > Self::MAX_LIFETIME {
            return Err(ConfigError::OutOfRange {
                what: "the longest lifetime of a binding, in seconds,",
                found: self.max_lifetime.duration().as_secs(),
                low: u64::from(Lifetime::UNIT_SECS),
                high: MAX_RR_BINDING_LIFETIME.as_secs(),
            });
        }
        Ok(())
    }
}
