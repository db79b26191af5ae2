//! What an access router is configured with.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Lifetime;

use crate::config_error::check_distinct;
use crate::packet_buffer::{Limits, WhenFull};
use crate::v6::home_agent::check_routable;
use crate::v6::{Prefix, SecurityAssociation};
use crate::{ConfigError, InterfaceId, WallClock};

/// A link of the router that mobile nodes come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLink {
    /// The interface.
    pub interface: InterfaceId,
    /// The router's global address there: tunnels begin and end at it.
    pub address: Ipv6Addr,
    /// Its link-local address there.
    pub link_local: Ipv6Addr,
    /// Its station there.
    pub link_layer_address: LinkLayerAddress,
    /// The prefix of the link.
    pub prefix: Prefix,
    /// The access points of the link.
    pub access_points: Vec<LinkLayerAddress>,
    /// The Router Lifetime of its advertisements, seconds.
    pub router_lifetime_secs: u16,
}

impl AccessLink {
    /// A link with one access point, which is the router's own station; Router Lifetime 1800 s.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        address: Ipv6Addr,
        prefix: Prefix,
        link_layer_address: LinkLayerAddress,
    ) -> Self {
        Self {
            interface,
            address,
            link_local: Prefix::LINK_LOCAL.with_interface_of(address),
            link_layer_address,
            prefix,
            access_points: alloc::vec![link_layer_address],
            router_lifetime_secs: 1800,
        }
    }
}

/// How the messages of another access router are known to be its own. RFC 5568 section 10 asks for IPsec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterSecurity {
    /// By the Mobility Message Authentication option of RFC 4285 with a key of both routers, and a timestamp: careof's stand-in for IPsec,
    /// which only careof understands. With [`crate::v6::ReplayProtection::SequenceNumbers`] there is none, and who has recorded a Handover
    /// Initiate can have a mobile node expected again.
    Keyed(SecurityAssociation),
    /// By IPsec: the owner hands in no Handover Initiate and no Handover Acknowledge from this router's address that has not come
    /// through its security association (RFC 5568 section 10.2). What is handed in is believed.
    Ipsec,
}

/// Another access router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighborRouter {
    /// Its global address.
    pub address: Ipv6Addr,
    /// Its station on the link of its access points.
    pub link_layer_address: LinkLayerAddress,
    /// The prefix of that link. No two routers have prefixes of which one contains the other.
    pub prefix: Prefix,
    /// Its access points.
    pub access_points: Vec<LinkLayerAddress>,
    /// Whether it does fast handovers.
    pub fast_handover: bool,
    /// How its messages are known to be its own.
    pub security: RouterSecurity,
}

/// A mobile node on one of the router's links, and the key that it shares with the router. How they came by it (RFC 5269) is the
/// owner's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobileNodeKey {
    /// The care-of address that the node has on the link.
    pub care_of: Ipv6Addr,
    /// The key, and how replays of Fast Binding Updates are told from fresh ones: by timestamps (RFC 4285 section 6), or by the sequence
    /// number alone.
    pub security: SecurityAssociation,
}

/// How much is kept for mobile nodes that are between two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Packets for one address.
    pub packets: usize,
    /// Bytes for one address.
    pub bytes: usize,
    /// Packets for all together.
    pub total_packets: usize,
    /// Bytes for all together.
    pub total_bytes: usize,
    /// How fast they go on behind the first five, percent of the rate at which they came (RFC 5568 section 5.4). With 100 what
    /// comes meanwhile keeps the buffer as full as it is.
    pub release_percent: u32,
}

impl BufferConfig {
    /// Nothing is kept.
    pub const NONE: Self =
        Self { packets: 0, bytes: 0, total_packets: 0, total_bytes: 0, release_percent: 100 };

    pub(super) const fn limits(&self) -> Limits {
        Limits {
            packets: self.packets,
            bytes: self.bytes,
            total_packets: self.total_packets,
            total_bytes: self.total_bytes,
            age: None,
            when_full: WhenFull::DropOldest,
            release_percent: Some(self.release_percent),
        }
    }
}

impl Default for BufferConfig {
    /// 256 packets and 384,000 bytes for one address, 4096 packets and 6 MB in all; twice as fast as they came.
    fn default() -> Self {
        Self {
            packets: 256,
            bytes: 384_000,
            total_packets: 4096,
            total_bytes: 6_000_000,
            release_percent: 200,
        }
    }
}

/// What a new access router does with a mobile node whose new care-of address cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressConflict {
    /// It gives the node another address of the link (Assigned Addressing).
    #[default]
    Assign,
    /// It delivers to the previous care-of address, by a host route.
    UsePrevious,
    /// It says that the address is in use.
    Refuse,
}

/// The configuration of a [`super::AccessRouter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRouterConfig {
    /// The links of mobile nodes.
    pub links: Vec<AccessLink>,
    /// The other access routers.
    pub neighbors: Vec<NeighborRouter>,
    /// The mobile nodes whose keys are known from the start.
    pub mobile_nodes: Vec<MobileNodeKey>,
    /// Mobile nodes whose keys are known at a time.
    pub max_mobile_nodes: usize,
    /// Mobile nodes that are expected at a time.
    pub max_arrivals: usize,
    /// Previous access router: the longest lifetime granted to a tunnel.
    pub max_lifetime: Lifetime,
    /// New access router: how long a mobile node is waited for (PROXY_ND_LIFETIME, RFC 5568 section 9).
    pub proxy_lifetime: Duration,
    /// Previous access router: the first wait for a Handover Acknowledge, doubled each time (RFC 5568 section 6.2.1.1: twice the round trip
    /// time, or 100 ms).
    pub initiate_timeout: Duration,
    /// How often a Handover Initiate is sent again (HI_RETRIES, RFC 5568 section 9).
    pub initiate_retries: u32,
    /// How long the new router waits for somebody who has a new care-of address (RetransTimer). `None`: it does not look
    /// (DupAddrDetectTransmits is 0), which is right where chance alone could make two nodes choose one (RFC 5568 section 5.5): a mobile node
    /// with a key that names the address of another has packets kept from that one for as long as it is waited for.
    pub duplicate_address_detection: Option<Duration>,
    /// What the new router does when the address cannot be used.
    pub address_conflict: AddressConflict,
    /// Whether the previous router asks the new one to buffer (U).
    pub request_buffering: bool,
    /// Whether the previous router keeps copies of what it still forwards to the old link, from the Fast Binding Update until the tunnel
    /// begins (RFC 5568 section 4: buffer and forward). The copies then go through the tunnel: nothing is lost if the mobile node has
    /// left already, and what it has received comes twice.
    pub buffer_and_forward: bool,
    /// Previous access router: how long packets for a mobile node that has left its link are kept ([`super::AccessRouter::note_detached`]).
    pub detached_lifetime: Duration,
    /// The buffers.
    pub buffer: BufferConfig,
    /// The router's time of day.
    pub clock: WallClock,
}

impl AccessRouterConfig {
    /// PROXY_ND_LIFETIME (RFC 5568 section 9).
    pub const PROXY_ND_LIFETIME: Duration = Duration::from_millis(1500);
    /// HI_RETRIES (RFC 5568 section 9).
    pub const HI_RETRIES: u32 = 3;

    /// A router with these links and no neighbors: RFC 5568's constants, lifetimes up to 40 s, buffers, no Duplicate Address Detection,
    /// other addresses where one is taken, no copies.
    #[must_use]
    pub fn new(links: Vec<AccessLink>) -> Self {
        Self {
            links,
            neighbors: Vec::new(),
            mobile_nodes: Vec::new(),
            max_mobile_nodes: 10_000,
            max_arrivals: 1_000,
            max_lifetime: Lifetime::from_units(10),
            proxy_lifetime: Self::PROXY_ND_LIFETIME,
            initiate_timeout: Duration::from_millis(100),
            initiate_retries: Self::HI_RETRIES,
            duplicate_address_detection: None,
            address_conflict: AddressConflict::default(),
            request_buffering: true,
            buffer_and_forward: false,
            detached_lifetime: Self::PROXY_ND_LIFETIME,
            buffer: BufferConfig::default(),
            clock: WallClock::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.links.is_empty() {
            return Err(ConfigError::Missing("link"));
        }
        for (index, link) in self.links.iter().enumerate() {
            check_routable("the address of an access router", link.address)?;
            if self.links.iter().take(index).any(|other| other.interface == link.interface) {
                return Err(ConfigError::DuplicateInterface(link.interface));
            }
        }
        let own = self.links.iter().map(|link| link.address);
        check_distinct("the access router", own.chain(self.neighbors.iter().map(|router| router.address)))?;
        for router in &self.neighbors {
            check_routable("the address of another access router", router.address)?;
        }
        let prefixes = self.links.iter().map(|link| link.prefix);
        let prefixes: Vec<Prefix> =
            prefixes.chain(self.neighbors.iter().map(|router| router.prefix)).collect();
        for (index, one) in prefixes.iter().enumerate() {
            let overlaps = |other: &&Prefix| one.contains(other.address()) || other.contains(one.address());
            if let Some(other) = prefixes.iter().take(index).find(overlaps) {
                let what = "the prefix of an access router";
                return Err(ConfigError::DuplicateAddress { what, address: other.address().into() });
            }
        }
        check_distinct("the mobile node", self.mobile_nodes.iter().map(|node| node.care_of))?;
        let in_range = |what, found: u64, low, high| {
            let fits = (low..=high).contains(&found);
            if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
        };
        let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        let lifetime = self.max_lifetime.as_units().into();
        in_range("the longest lifetime in units of 4 s", lifetime, 1, u16::MAX.into())?;
        let timeout = millis(self.initiate_timeout);
        in_range("the wait for a Handover Acknowledge in milliseconds", timeout, 1, 60_000)?;
        in_range("the number of Handover Initiates", self.initiate_retries.into(), 0, 16)?;
        in_range("PROXY_ND_LIFETIME in milliseconds", millis(self.proxy_lifetime), 1, 600_000)?;
        let detached = millis(self.detached_lifetime);
        in_range("the wait for a mobile node that has left in milliseconds", detached, 1, 600_000)?;
        in_range("the release rate in percent", self.buffer.release_percent.into(), 1, 10_000)?;
        let known = self.mobile_nodes.len() as u64;
        in_range("the number of mobile nodes", known, 0, self.max_mobile_nodes as u64)
    }

    /// The link with this interface.
    pub(super) fn link(&self, interface: InterfaceId) -> Option<&AccessLink> {
        self.links.iter().find(|link| link.interface == interface)
    }

    /// The link that `address` belongs to.
    pub(super) fn link_of(&self, address: Ipv6Addr) -> Option<&AccessLink> {
        self.links.iter().find(|link| link.prefix.contains(address))
    }

    /// Whether `address` is one of the router's own.
    pub(super) fn is_own(&self, address: Ipv6Addr) -> bool {
        self.links.iter().any(|link| link.address == address || link.link_local == address)
    }

    /// The router at `address`, and its number.
    pub(super) fn neighbor(&self, address: Ipv6Addr) -> Option<(usize, &NeighborRouter)> {
        self.neighbors.iter().enumerate().find(|(_, router)| router.address == address)
    }

    /// The router whose link `address` belongs to, and its number.
    pub(super) fn neighbor_of(&self, address: Ipv6Addr) -> Option<(usize, &NeighborRouter)> {
        self.neighbors.iter().enumerate().find(|(_, router)| router.prefix.contains(address))
    }
}
