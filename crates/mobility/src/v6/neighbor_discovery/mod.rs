//! Neighbor discovery (RFC 4861), stateless address autoconfiguration (RFC 4862) and what goes with them: enhanced (RFC 7527) and
//! optimistic (RFC 4429) duplicate address detection, stable interface identifiers (RFC 7217), router preferences (RFC 4191), router
//! solicitations that back off (RFC 7559), and advertisements for mobile nodes (RFC 6275 section 7.5).
//!
//! [`NeighborDiscovery`] is the part of every node on each of its interfaces, [`AdvertisingRouter`] that of a router on each link.
//! Both decide; their owner carries. They answer for the packets of this protocol only: the packets that wait for a neighbor's
//! link-layer address are the owner's.
//!
//! Nothing here is authenticated, so whoever is on the link can lie to it (RFC 3756). What lies can do to memory is bounded by
//! [`Limits`]: they displace other lies, not what is in use.

mod advertising_router;
mod autoconfiguration;
mod duplicate_address_detection;
mod host;
mod interface_identifier;
mod io;
mod neighbor_cache;
mod optimistic;
mod router_discovery;
mod unreachability;

pub use advertising_router::{AdvertisingConfig, AdvertisingRouter};
pub use autoconfiguration::AddressOrigin;
pub use duplicate_address_detection::DetectionConfig;
pub use host::{Answering, HostConfig, Limits, NeighborDiscovery};
pub use interface_identifier::{
    INTERFACE_IDENTIFIER_BITS, InterfaceIdentifiers, StableSecret, modified_eui_64,
};
pub use io::{AddressLoss, Counters, DropReason, Event, Transmit, Wake, multicast_link_layer_address};
pub use neighbor_cache::{Neighbor, Resolution};
pub use optimistic::{AddressState, AddressUse, permits};
pub use unreachability::{
    LinkLayer, NeighborState, ReachabilityAction, ReachabilityEvent, Transition, transition,
};
