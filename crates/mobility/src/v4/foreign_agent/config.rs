//! What a foreign agent is configured with.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::mip4::Lifetime;

use crate::config_error::check_distinct;
use crate::v4::home_agent::PeerSecurity;
use crate::v4::unicast::check_unicast;
use crate::v4::{AdvertiserConfig, ConfigError, InterfaceId, Prefix, ReverseTunnel, WallClock};

/// A link on which a foreign agent receives visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignLink {
    /// The interface.
    pub interface: InterfaceId,
    /// The agent's address there: source of advertisements, and where mobile nodes send their requests.
    pub address: Ipv4Addr,
    /// How the agent advertises itself there.
    pub advertisements: AdvertiserConfig,
}

/// The configuration of a [`super::ForeignAgent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignAgentConfig {
    /// The source of relayed requests.
    pub address: Ipv4Addr,
    /// The care-of addresses offered; at least one, all the agent's own.
    pub care_of_addresses: Vec<Ipv4Addr>,
    /// The links with visitors; at least one.
    pub links: Vec<ForeignLink>,
    /// The longest lifetime accepted; longer requests are denied with code 69. Advertisements should offer
    /// the same.
    pub max_lifetime: Lifetime,
    /// Visitors at a time; beyond, the agent is busy (B) and denies with code 66. Those who are who they say, by a security
    /// association of theirs or of their home agent with this agent, take the place of others even then.
    pub max_visitors: usize,
    /// So many of them, and not more, may have come from one station of a link without such a proof; beyond, code 66. `None`: a
    /// quarter, and 16 at least. Nothing is known of stations on links without link addresses.
    pub max_visitors_per_station: Option<usize>,
    /// So many of them may be one home agent's without such a proof, where all home agents are admitted, when others come and there
    /// is no room: then the last ones beyond it make room. `None`: half, and 16 at least.
    pub max_visitors_per_home_agent: Option<usize>,
    /// Relayed requests waiting for replies at a time; of more one of those is denied with code 66, taken by lot, that the mobile
    /// node has not authenticated to this agent.
    pub max_pending: usize,
    /// So many of them, and not more, may have come from one station of a link, as with visitors.
    pub max_pending_per_station: Option<usize>,
    /// How long a relayed request waits for its reply before it is denied with code 78.
    pub pending_timeout: Duration,
    /// Mobile nodes with co-located care-of addresses must register through an agent, too (R).
    pub registration_required: bool,
    /// The attitude to reverse tunnelling.
    pub reverse_tunnel: ReverseTunnel,
    /// Whether visitors may tunnel what they send to the agent (RFC 3024 section 3.3).
    pub encapsulating_delivery: bool,
    /// Whether minimal encapsulation is offered (M).
    pub minimal_encapsulation: bool,
    /// Whether GRE is offered (G).
    pub gre: bool,
    /// Whether the agent takes part in smooth hand-offs (draft-ietf-mobileip-optim) of the mobile nodes it has a
    /// security association with: it tells the agents they come from, and sends on what arrives for those that have
    /// gone elsewhere and told of it.
    pub smooth_handoff: bool,
    /// The agent's time of day, by which updates are told from old ones that are replayed.
    pub clock: WallClock,
    /// Mobile nodes with which there is a security association, by home address.
    pub mobile_nodes: Vec<PeerSecurity>,
    /// Home agents with which there is a security association.
    pub home_agents: Vec<PeerSecurity>,
    /// Whose mobile nodes are admitted, by home address; `None`: everybody's. Others are denied with code
    /// 65. A home address on a network that this host is connected to is admitted only where it is named here.
    pub admitted: Option<Vec<Prefix>>,
    /// Whose home agents requests are relayed to, by address; those there is a security association with come on top. `None`:
    /// everybody's. Requests to others are denied with code 65. What a home agent accepts, its mobile nodes' packets do on this
    /// agent's links: whoever may name any home agent may name a host of his own.
    pub admitted_home_agents: Option<Vec<Prefix>>,
}

impl ForeignAgentConfig {
    /// An agent for everybody on one link: lifetimes up to what it advertises, 1000 visitors, 1000 waiting
    /// requests for 7 s each, reverse tunnelling and all encapsulations and delivery styles on request.
    #[must_use]
    pub fn new(address: Ipv4Addr, care_of_address: Ipv4Addr, link: ForeignLink) -> Self {
        Self {
            address,
            care_of_addresses: alloc::vec![care_of_address],
            links: alloc::vec![link],
            max_lifetime: link.advertisements.registration_lifetime,
            max_visitors: 1000,
            max_visitors_per_station: None,
            max_visitors_per_home_agent: None,
            max_pending: 1000,
            max_pending_per_station: None,
            pending_timeout: Duration::from_secs(7),
            registration_required: false,
            reverse_tunnel: ReverseTunnel::Optional,
            encapsulating_delivery: true,
            minimal_encapsulation: true,
            gre: true,
            smooth_handoff: false,
            clock: WallClock::default(),
            mobile_nodes: Vec::new(),
            home_agents: Vec::new(),
            admitted: None,
            admitted_home_agents: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_unicast("the foreign agent's address", self.address)?;
        if self.care_of_addresses.is_empty() {
            return Err(ConfigError::Missing("care-of address"));
        }
        if self.links.is_empty() {
            return Err(ConfigError::Missing("link"));
        }
        for &address in &self.care_of_addresses {
            check_unicast("a care-of address", address)?;
        }
        for (index, link) in self.links.iter().enumerate() {
            check_unicast("the foreign agent's address on a link", link.address)?;
            link.advertisements.check()?;
            if self.links.iter().take(index).any(|other| other.interface == link.interface) {
                return Err(ConfigError::DuplicateInterface(link.interface));
            }
        }
        check_distinct("the mobile node", self.mobile_nodes.iter().map(|peer| peer.address))?;
        check_distinct("the home agent", self.home_agents.iter().map(|peer| peer.address))
    }
}
