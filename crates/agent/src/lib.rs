//! Mobility agents on a real Linux host.
//!
//! [`Carrier`] carries one home agent, foreign agent or mobile node of `careof_mobility`: it owns the sockets, the
//! tunnel device, the routes and the timer, and does what the agent decides.
//!
//! The rest makes a daemon of it, `careof-agent`: [`config`] reads its configuration, [`store`] keeps a home agent's
//! bindings, [`command`] is its command line.

mod carrier;
pub mod command;
pub mod config;
mod daemon;
pub mod store;

pub use carrier::{
    AgentCounters, AssistDeed, AssistEvent, AssistFlowStatus, AssistNews, AssistStatus, BindingStatus,
    BindingStore, Carrier, Device, Error, ForeignSetup, HandoverStatus, HomeNetwork, HomeSetup, Hooks,
    HostOptions, InterfaceStatus, MobileSetup, PacketDeed, ParameterChange, ParameterLog, PathStatus,
    RegistrationStatus, Role, Setup, Status, StoreError, StoreStatus, TimeOfDay, TunnelStatus, VisitorStatus,
};
#[doc(hidden)]
pub use carrier::{abandon, refuse_readings};
