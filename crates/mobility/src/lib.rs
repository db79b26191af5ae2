//! Who is where: the agents and nodes of Mobile IP as sans-IO state machines.
//!
//! Nothing here touches a socket, a clock or a random source: state machines are handed the time, messages
//! and link events, and are asked what to send, what to tell and when to be woken. A simulator and real
//! hosts drive the same code.
//!
//! What Mobile IPv4 and Mobile IPv6 share stands here: handover events, security associations and their replay
//! protection, time of day, how paths are watched and what reports of them tell, and the parts of which agents are made. [`v4`] re-exports what is public of it.

#![no_std]

extern crate alloc;

mod back_off;
mod change;
mod config_error;
mod deadline;
pub mod dhcp;
mod drop_counts;
mod handover;
mod interface;
mod least;
mod left_care_of;
pub mod multipath;
mod outbox;
mod passage;
mod path_merit;
mod path_monitor;
pub mod path_mtu;
mod path_news;
mod path_quality;
mod path_watch;
mod ration;
mod refresh;
mod replay;
mod round_trip;
mod security_association;
mod selection;
mod shares;
mod time_of_day;
pub mod v4;
pub mod v6;

pub use change::Change;
pub use config_error::ConfigError;
pub use handover::{
    HandoverEvent, HandoverFailure, HandoverPhase, HandoverReason, HandoverStyle, Notice, PathFault,
    PathProperties,
};
pub use interface::{InterfaceId, LinkAddress};
pub use path_monitor::{PathFlow, PathQuality, PathState};
pub use replay::{IdentificationMismatch, ReplayGuard, ReplayProtection};
pub use security_association::SecurityAssociation;
pub use selection::{Selection, UnknownInterface};
pub use time_of_day::{NtpTime, WallClock};
