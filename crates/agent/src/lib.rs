//! Mobility agents on a real Linux host.
//!
//! [`Carrier`] carries one home agent, foreign agent or mobile node of `careof_mobility`: it owns the sockets, the
//! tunnel device, the routes and the timer, and does what the agent decides.

mod carrier;

pub use carrier::{
    AgentCounters, BindingStatus, BindingStore, Carrier, Device, Error, ForeignSetup, HandoverStatus,
    HomeNetwork, HomeSetup, Hooks, HostOptions, InterfaceStatus, MobileSetup, RegistrationStatus, Role,
    Setup, Status, StoreError, TimeOfDay, TunnelStatus, VisitorStatus,
};
