//! The real world: a scenario on Linux hosts.
//!
//! A [`LinuxRun`] is built from a scenario and moved on by its owner as a simulation is; its time is the wall's.

mod agents;
mod application;
mod books;
mod cells;
mod director;
mod domain;
mod error;
mod live;
mod media;
mod mobile_ipv6;
mod mptcp;
mod multipath;
mod network;
mod pattern;
mod probe;
mod programs;
mod quic;
mod refusal;
mod relay;
mod report;
mod run;
mod sampler;
mod steps;
mod summary;
mod tcp;
mod tcp_cm;
mod voice;

pub use careof_plan::Observation;
pub use error::WorldError;
pub use live::Live;
pub use programs::{OwnProgram, ProgramOutput};
pub use refusal::check;
pub use run::LinuxRun;

/// Acquires the right to make hosts; [`LinuxRun::new`] does so itself, unless somebody has done it before.
///
/// Without `CAP_SYS_ADMIN` this process enters a user namespace for good, which it can only while it has one thread.
/// Whoever starts threads before a run can be built calls this first.
///
/// # Errors
/// [`WorldError::Lab`].
pub fn enter() -> Result<(), WorldError> {
    careof_lab::Realm::enter()?;
    Ok(())
}
