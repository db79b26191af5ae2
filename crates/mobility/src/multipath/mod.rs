//! Several links at once: one code for the home agent, which disperses packets towards the mobile node, and for the mobile node,
//! which disperses them towards the home agent (SHAKE: Koyama et al., Evaluation of Performance of TCP on Mobile IP SHAKE, 2004,
//! and what its authors left open).
//!
//! | part | does |
//! |---|---|
//! | [`Bond`] | is one end of a tunnel over several paths: all of the following but the alliance, in one piece |
//! | [`Path`] | knows one path: silence, round trip, transit, loss, rate, queue |
//! | [`Dispersion`] | chooses by which of the paths a packet goes ([`Scheduler`]), names and numbers it |
//! | [`Rules`] | what the owner wants of certain flows |
//! | [`alliance`] | mobile nodes that lend each other their links |
//! | [`Resequencer`] | puts the flows that have come by several paths in order |
//!
//! An owner - a world or the carrier of an agent - has a [`Bond`] for each mobile node, at the home agent and at the mobile node. It
//! is told which paths there are ([`crate::v4::HomeAgent::paths`], [`crate::v4::MobileNode::paths`]), wraps and unwraps packets, and
//! carries messages; what to do when stands at [`Bond`].

pub mod alliance;
mod auto;
mod bond;
mod bond_counters;
mod dispersion;
mod flow_table;
mod marks;
mod owed;
mod path;
mod path_account;
mod path_id;
mod path_losses;
mod path_rate;
mod path_transit;
mod resequencer;
mod rules;
mod scheduler;
mod seen;
mod virtual_queue;
mod wire_time;

#[cfg(test)]
mod model;
#[cfg(test)]
mod profiles;

pub use auto::{AutoMode, AutoReport};
pub use bond::{Bond, BondConfig, BondEvent, BondTransmit, PATH_PORT, Sending};
pub use bond_counters::{BondCounters, BondDrop};
pub use dispersion::{Choice, Dispersion, DispersionConfig, DispersionCounters, Packet};
pub use owed::ReplayConfig;
pub use path::{CONFIRMATIONS, INTERVALS_TO_SILENCE, Path, PathChange, PathConfig, PathEstimate, Probing};
pub use path_account::PathAccount;
pub use path_id::{MAX_PATHS, PathId, PathSet};
pub use resequencer::{Resequencer, ResequencerConfig, ResequencerCounters};
pub use rules::{FlowFields, Rule, Rules, Treatment};
pub use scheduler::{DelayReading, RatioReading, Scheduler};
pub use virtual_queue::LengthReading;
pub use wire_time::micros;
