//! Mobile IPv6 (RFC 6275), with the authentication of RFC 4285, several care-of addresses (RFC 5648), IPv4 home and care-of addresses
//! without NATs (RFC 5555), and probes of paths in experimental messages (RFC 5096); Hierarchical Mobile IPv6 (RFC 5380); fast handovers
//! between access routers (RFC 5568) in [`access_router`] and [`fast_handover`].
//!
//! Nodes decide; their owner carries. Each takes [`Input`]s and the time, and hands out [`Transmit`]s, [`Event`]s and a deadline with
//! its reason ([`Wake`]).

pub mod access_router;
mod authentication;
mod binding_cache;
mod correspondent_node;
mod drop_reason;
mod dual_stack;
mod event;
mod hierarchical_mobile_node;
mod home_agent;
mod io;
mod mobile_node;
mod mobility_anchor_point;
pub mod neighbor_discovery;
mod outbox;
mod prefix;
mod return_routability;
mod update_rate;

pub use crate::path_monitor::{PathFlow, PathQuality, PathState};
pub use authentication::{ReplayProtection, SecurityAssociation};
pub use binding_cache::CachedBinding;
pub use correspondent_node::{CorrespondentNode, CorrespondentNodeConfig};
pub use drop_reason::{Counters, DropReason};
pub use event::{
    BindingChanged, CorrespondentChanged, Event, Ipv4HomeOutcome, NeighborEvent, RegistrationEvent,
    RegistrationStep,
};
pub use hierarchical_mobile_node::{
    HierarchicalMobileNode, HierarchicalMobileNodeConfig, MapAssociation, MapSelection,
};
pub use home_agent::{
    HomeAgent, HomeAgentConfig, HomePrefix, HomeRegistration, HomeRegistrationRecord, MobileNodeRecord,
    PrefixAdvertisementConfig, ServedMobileNode,
};
pub use io::{Addresses, Input, InterfaceAddress, Transmit, TransmitPayload, Tunnel, Wake};
pub use mobile_node::fast_handover;
pub use mobile_node::{
    Delivery, HandoverEvent, HandoverFailure, InterfaceConfig, Ipv4Delivery, MobileNode, MobileNodeConfig,
    MovementConfig, RetransmissionConfig, RouteOptimizationConfig,
};
pub use mobility_anchor_point::{MobilityAnchorPoint, MobilityAnchorPointConfig};
pub use prefix::Prefix;
