//! Mobility agents on a real Linux host.
//!
//! [`Carrier`] carries one home agent, foreign agent, mobile node or correspondent node of `careof_mobility`: it owns the sockets, the
//! tunnel device, the routes and the timer, and does what the agent decides. [`RouterAdvertiser`] has a host advertise itself as a router
//! to mobile nodes of Mobile IPv6. [`DomainRouter`] and [`DomainHost`] carry the routers and mobile nodes of a micro-mobility domain.
//!
//! The rest makes a daemon of it, `careof-agent`: [`config`] reads its configuration, [`store`] keeps a home agent's
//! bindings, [`command`] is its command line.

mod carrier;
pub mod command;
pub mod config;
mod daemon;
mod domain;
pub mod store;

pub use carrier::{
    AccessPointSetup, AgentCounters, AllyStatus, AnySetup, AssistDeed, AssistEvent, AssistFlowStatus,
    AssistNews, AssistStatus, BindingStatus, BindingStore, Carrier, ClusterEvent, ClusterSetup,
    ClusterStatus, Device, Error, FastHandoverSetup, ForeignSetup, HandoverStatus, HomeNetwork, HomeSetup,
    Hooks, HostOptions, InterfaceStatus, Ipv6AccessRouterSetup, Ipv6AnchorPointSetup, Ipv6BindingStatus,
    Ipv6CorrespondentSetup, Ipv6HierarchicalMobileSetup, Ipv6HomeSetup, Ipv6InterfaceStatus, Ipv6MobileSetup,
    Ipv6RegistrationStatus, Ipv6Setup, Ipv6Status, LeftPath, MobileSetup, MultipathEvent,
    MultipathPathStatus, MultipathSetup, MultipathStatus, PacketDeed, ParameterChange, ParameterLog,
    PathStatus, RegistrationStatus, RelayInUse, RelaySetup, RelayStatus, Role, RouterAdvertiser, Setup,
    Status, StoreError, StoreStatus, TimeOfDay, TunnelStatus, VisitorStatus,
};
#[doc(hidden)]
pub use carrier::{RelayFaults, abandon, refuse_readings, spoil_relay};
pub use domain::{
    DomainHost, DomainHostSetup, DomainLink, DomainRouter, DomainRouterSetup, DomainTraffic, StationLink,
};
