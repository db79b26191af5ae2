//! What a home agent is configured with.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::mip4::{Lifetime, Spi};

use crate::config_error::check_distinct;
use crate::v4::unicast::check_unicast;
use crate::v4::{
    AdvertiserConfig, ConfigError, InterfaceId, Prefix, ReverseTunnel, SecurityAssociation, WallClock,
};

/// A mobile node whose home agent this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedMobileNode {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// The security associations with it, each with its own SPI; at least one.
    pub security: Vec<SecurityAssociation>,
    /// Whether it may register; otherwise its requests are denied with code 129, and no binding of it is restored.
    pub permitted: bool,
}

impl ServedMobileNode {
    /// A mobile node that may register, with one security association.
    #[must_use]
    pub fn new(home_address: Ipv4Addr, security: SecurityAssociation) -> Self {
        Self { home_address, security: alloc::vec![security], permitted: true }
    }
}

/// A security association with another agent or node, named by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSecurity {
    /// The address its messages come from; for a mobile node its home address.
    pub address: Ipv4Addr,
    /// What was agreed on. Its replay protection is not used: that is between mobile node and home agent.
    pub security: SecurityAssociation,
}

/// A queue of 100 packets at 256 kbit/s.
const LATE_REVERSE_TUNNEL: Duration = Duration::from_secs(5);

/// The configuration of a [`super::HomeAgent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeAgentConfig {
    /// The home agent's address.
    pub address: Ipv4Addr,
    /// The home network.
    pub home_network: Prefix,
    /// The interface to the home network.
    pub home_interface: InterfaceId,
    /// The mobile nodes served.
    pub mobile_nodes: Vec<ServedMobileNode>,
    /// Foreign agents with which there is a security association.
    pub foreign_agents: Vec<PeerSecurity>,
    /// Correspondents that are told where mobile nodes are, so that they tunnel themselves
    /// (draft-ietf-mobileip-optim). There, too, updates are told from old ones by timestamps.
    pub correspondents: Vec<PeerSecurity>,
    /// The longest lifetime granted.
    pub max_lifetime: Lifetime,
    /// Care-of addresses one mobile node can have at a time; with 1, a request for several is accepted
    /// with code 1.
    pub max_bindings_per_node: usize,
    /// Whether packets are dispersed over the care-of addresses of a mobile node that numbers them, as paths of one tunnel
    /// ([`crate::multipath`]): in the form of RFC 7629, or in that of SHAKE ([`careof_wire::mip4::RequestFlags::RELAYED`]). Where they are
    /// not, numbers mean nothing, and a request with that bit is poorly formed, as one with any reserved bit.
    pub multipath: bool,
    /// Bindings of all mobile nodes together.
    pub max_bindings: usize,
    /// The attitude to reverse tunnelling.
    pub reverse_tunnel: ReverseTunnel,
    /// How long packets are taken out of reverse tunnels from a care-of address that the mobile node has left, for what was under way there;
    /// zero: not at all, as RFC 3024, section 4.4, has it.
    pub late_reverse_tunnel: Duration,
    /// Whether minimal encapsulation is offered (M).
    pub minimal_encapsulation: bool,
    /// Whether GRE is offered (G).
    pub gre: bool,
    /// How the home agent advertises itself on the home link; `None`: not at all.
    pub advertisements: Option<AdvertiserConfig>,
    /// The home agent's time of day.
    pub clock: WallClock,
}

impl HomeAgentConfig {
    /// A home agent that serves nobody yet: lifetimes up to 1800 s, 4 bindings a node, no dispersion over them, 100,000 in all,
    /// reverse tunnelling and all encapsulations on request, packets from left care-of addresses for 5 s, advertisements
    /// every 10 s.
    #[must_use]
    pub fn new(address: Ipv4Addr, home_network: Prefix, home_interface: InterfaceId) -> Self {
        Self {
            address,
            home_network,
            home_interface,
            mobile_nodes: Vec::new(),
            foreign_agents: Vec::new(),
            correspondents: Vec::new(),
            max_lifetime: Lifetime::from_secs(1800),
            max_bindings_per_node: 4,
            multipath: false,
            max_bindings: 100_000,
            reverse_tunnel: ReverseTunnel::Optional,
            late_reverse_tunnel: LATE_REVERSE_TUNNEL,
            minimal_encapsulation: true,
            gre: true,
            advertisements: Some(AdvertiserConfig {
                prefix_length: Some(home_network.length()),
                ..AdvertiserConfig::default()
            }),
            clock: WallClock::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_unicast("the home agent's address", self.address)?;
        check_distinct("the mobile node", self.mobile_nodes.iter().map(|node| node.home_address))?;
        check_distinct("the foreign agent", self.foreign_agents.iter().map(|peer| peer.address))?;
        check_distinct("the correspondent", self.correspondents.iter().map(|peer| peer.address))?;
        for node in &self.mobile_nodes {
            check_served(node)?;
        }
        if self.max_bindings_per_node == 0 {
            let what = "the number of bindings a mobile node can have";
            return Err(ConfigError::OutOfRange { what, found: 0, low: 1, high: u64::MAX });
        }
        self.advertisements.map_or(Ok(()), |advertisements| advertisements.check())
    }
}

fn check_served(node: &ServedMobileNode) -> Result<(), ConfigError> {
    let home_address = node.home_address;
    check_unicast("a home address", home_address)?;
    if node.security.is_empty() {
        return Err(ConfigError::NoSecurityAssociation { home_address: home_address.into() });
    }
    let mut names = BTreeSet::<Spi>::new();
    for association in &node.security {
        let spi = association.spi();
        if !names.insert(spi) {
            return Err(ConfigError::DuplicateSpi { address: home_address.into(), spi });
        }
    }
    Ok(())
}
