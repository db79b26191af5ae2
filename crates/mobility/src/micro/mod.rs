//! Mobility inside one domain, which nobody outside sees: Cellular IP, HAWAII, multicast-based mobility (M&M), and the building blocks that
//! they are made of.
//!
//! A domain is a tree: a gateway, routers, base stations. Each has a [`Router`] with host routes for the mobile nodes below it; a mobile node
//! has a [`MobileHost`]. Towards the outside a mobile node is registered by Mobile IP as anywhere else, with the gateway's network as the one
//! that it visits, and inside its address stays the same.
//!
//! | module | protocol |
//! |---|---|
//! | `blocks` | the building blocks: trigger and candidate access router set, buffer, bicast, forwarding from the old router (Bhaskara and Helmy) |
//! | `cellular_ip` | Cellular IP: Route and Paging Cache, hard and semi-soft handover (draft-ietf-mobileip-cellularip-00) |
//! | `hawaii` | HAWAII: the path setup schemes MSF, SSF, UNF and MNF (draft-ietf-mobileip-hawaii; Ramjee et al., ICNP 1999) |
//! | `multicast` | M&M: joins and prunes of a multicast group per mobile node (Helmy, Jaseemuddin and Bhaskara) |
//!
//! Messages go from neighbour to neighbour in UDP ([`careof_wire::micro`]). Each is authenticated: with a key that a mobile node shares with
//! all routers of the domain ([`NetworkKey::mobile_key`]), or with that of the routers; and each is fresh by its timestamp. None is believed
//! that does not come from the direction of the station that it names. So a mobile node changes its own routes only, and what it can have
//! kept is bounded ([`RouterLimits`]).

mod aged;
mod blocks;
mod candidates;
mod cell;
mod cellular_ip;
mod config;
mod core;
mod hawaii;
mod host;
mod io;
mod multicast;
mod ports;
mod router;
mod security;

pub use self::config::{
    Blocks, Buffer, CellularHandover, CellularIp, Downlink, GroupMapping, Hawaii, MulticastMobility, Role,
    RouterConfig, RouterLimits, Scheme, Trigger,
};
pub use self::host::{HostConfig, MobileHost};
pub use self::io::{
    Action, Counters, Event, Forward, HostEvent, HostTransmit, HostWake, MessageDrop, PacketDrop, Transmit,
    Wake,
};
pub use self::ports::Ports;
pub use self::router::Router;
pub use self::security::{MobileKey, NetworkKey};
pub use crate::packet_buffer::{BufferCounters, DiscardReason, PacketToken, WhenFull};
pub use careof_wire::micro::PathScheme;
