//! What neighbor discovery on an interface is told once.

use core::time::Duration;

use careof_wire::icmpv6::LinkLayerAddress;

use crate::v6::neighbor_discovery::{DetectionConfig, InterfaceIdentifiers};

/// How much may be remembered of a link, whoever speaks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of the neighbor cache. Who only speaks displaces others who only spoke; what this node sends to keeps its place.
    pub neighbors: usize,
    /// Default routers, 2 or more (RFC 4861 section 6.3.4). Those that were never reached give way to new ones.
    pub routers: usize,
    /// On-link prefixes; further ones are ignored.
    pub prefixes: usize,
    /// Addresses that are formed of prefixes; further prefixes make none.
    pub addresses: usize,
}

impl Default for Limits {
    /// 256 neighbors, 8 routers, 32 prefixes, 16 addresses.
    fn default() -> Self {
        Self { neighbors: 256, routers: 8, prefixes: 32, addresses: 16 }
    }
}

/// How neighbor discovery works on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The interface's link-layer address.
    pub link_layer_address: LinkLayerAddress,
    /// Where interface identifiers come from.
    pub interface_identifiers: InterfaceIdentifiers,
    /// Whether the node is a router on this link: it neither solicits routers nor listens to their advertisements, and says in its
    /// own neighbor advertisements that it is one. See [`AdvertisingRouter`](super::super::AdvertisingRouter).
    pub is_router: bool,
    /// Whether it forms addresses of the prefixes that routers advertise.
    pub autoconfigure: bool,
    /// How it verifies addresses. A router does not use them while it does (RFC 4429 section 3.3).
    pub detection: DetectionConfig,
    /// After so many missing advertisements, by what the router says of their interval, it is lost (RFC 6275 section 11.5.1); `None`:
    /// only its lifetime and unreachability detection end it.
    pub missing_advertisements: Option<u32>,
    /// How long upper layers have to confirm that a neighbor receives what it is sent, before it is probed.
    pub delay_first_probe: Duration,
    /// The most that the MTU option of a router may say, bytes: what the link layer allows.
    pub max_link_mtu: u32,
    /// What is remembered at most.
    pub limits: Limits,
}

impl HostConfig {
    /// DELAY_FIRST_PROBE_TIME (RFC 4861 section 10).
    pub const DELAY_FIRST_PROBE_TIME: Duration = Duration::from_secs(5);

    /// A host on a link of Ethernet, by RFC 4861 and RFC 4862.
    #[must_use]
    pub fn new(link_layer_address: LinkLayerAddress) -> Self {
        Self {
            link_layer_address,
            interface_identifiers: InterfaceIdentifiers::ModifiedEui64,
            is_router: false,
            autoconfigure: true,
            detection: DetectionConfig::default(),
            missing_advertisements: None,
            delay_first_probe: Self::DELAY_FIRST_PROBE_TIME,
            max_link_mtu: 1500,
            limits: Limits::default(),
        }
    }

    /// A mobile node there: it waits for nothing when it comes to a link, as it may (RFC 4861 section 6.3.7, RFC 4429 section 3.3),
    /// and gives up a router of which three advertisements are missing.
    #[must_use]
    pub fn mobile(link_layer_address: LinkLayerAddress) -> Self {
        let mut this = Self::new(link_layer_address);
        this.detection.max_delay = Duration::ZERO;
        this.missing_advertisements = Some(3);
        this
    }
}
