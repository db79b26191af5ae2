//! The real world: a scenario on Linux hosts.
//!
//! A [`LinuxRun`] is built from a scenario and moved on by its owner as a simulation is; its time is the wall's.

mod agents;
mod application;
mod books;
mod director;
mod error;
mod network;
mod pattern;
mod probe;
mod programs;
mod refusal;
mod report;
mod run;
mod sampler;
mod summary;
mod tcp;

pub use careof_plan::Observation;
pub use error::WorldError;
pub use programs::ProgramOutput;
pub use run::LinuxRun;
