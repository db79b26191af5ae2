//! The real world: a scenario on Linux hosts.
//!
//! A [`LinuxRun`] is built from a scenario and moved on by its owner as a simulation is; its time is the wall's.

mod error;
mod run;

pub use careof_plan::Observation;
pub use error::WorldError;
pub use run::LinuxRun;
