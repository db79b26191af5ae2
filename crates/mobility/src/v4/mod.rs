//! Mobile IPv4 (RFC 5944) with reverse tunnelling (RFC 3024), route optimisation and smooth hand-off
//! (draft-ietf-mobileip-optim).
//!
//! [`HomeAgent`], [`ForeignAgent`], [`MobileNode`] and [`CorrespondentNode`] decide; their owner carries. Each takes [`Input`]s and the
//! time, and hands out [`Transmit`]s, [`Event`]s and a deadline with its reason ([`Wake`]).

mod advertiser;
mod authentication;
mod binding;
mod binding_cache;
mod correspondent_node;
mod drop_reason;
mod event;
mod foreign_agent;
mod home_agent;
mod io;
mod lifetime;
mod mobile_node;
mod movement_detection;
mod outbox;
mod pace;
mod path_news;
mod policy;
mod prefix;
mod solicitor;
mod surroundings;
mod tunnel;
mod unicast;
mod visitor;

pub use crate::change::Change;
pub use crate::config_error::ConfigError;
pub use crate::handover::{
    HandoverEvent, HandoverFailure, HandoverReason, HandoverStyle, Notice, PathFault, PathProperties,
};
pub use crate::interface::{InterfaceId, LinkAddress};
pub use crate::path_monitor::{PathFlow, PathQuality, PathState};
pub use crate::replay::{IdentificationMismatch, ReplayGuard, ReplayProtection};
pub use crate::security_association::SecurityAssociation;
pub use crate::selection::{Selection, UnknownInterface};
pub use crate::time_of_day::{NtpTime, WallClock};
pub use advertiser::AdvertiserConfig;
pub use binding::MobilityBinding;
pub use binding_cache::CachedBinding;
pub use careof_wire::tunnel::Tunnel;
pub use correspondent_node::{BindingAuthority, CorrespondentNode, CorrespondentNodeConfig};
pub use drop_reason::{Counters, DropReason};
pub use event::{
    AgentEvent, AgentLoss, ArpEvent, ArpOwner, BindingChanged, Event, RegistrationEvent, RegistrationStep,
    VisitorChanged,
};
pub use foreign_agent::{ForeignAgent, ForeignAgentConfig, ForeignLink};
pub use home_agent::{
    BindingRecord, HomeAgent, HomeAgentConfig, HomePath, MobileNodeRecord, PeerSecurity, ServedMobileNode,
};
pub use io::{
    ALL_MOBILITY_AGENTS, ALL_ROUTERS, ALL_SYSTEMS, Input, InterfaceAddress, REGISTRATION_PORT, Transmit,
    TransmitPayload, Wake,
};
pub use mobile_node::{
    CareOfChoice, Delivery, InterfaceConfig, MobileNode, MobileNodeConfig, MobilePath, MultipathForm,
    RetransmissionConfig,
};
pub use movement_detection::MovementConfig;
pub use policy::{DeliveryMethod, PolicyEntry, PolicyTable};
pub use prefix::Prefix;
pub use solicitor::SolicitorConfig;
pub use surroundings::Surroundings;
pub(crate) use tunnel::TUNNEL_TTL;
pub use tunnel::{EncapsulationChoice, Encapsulations, ReverseTunnel};
pub(crate) use unicast::is_unicast;
pub use visitor::VisitorEntry;
