//! The simulated world: virtual time, packets as small structs, one event queue.
//!
//! A [`Simulation`] is built from a scenario and moved on by its owner. The same scenario, seed and run
//! number give the same packets at the same nanoseconds on every machine, whoever looks on.

mod advice;
mod agents;
mod assist_news;
mod assists;
mod build;
mod bytes;
mod cluster;
mod dhcp;
mod drop_cause;
mod fleet;
mod flow;
mod forwarding;
mod handover;
mod handover_option;
mod header;
mod kept;
mod ledger;
mod media;
mod micro;
mod mobile_ipv6;
mod multipath;
mod observer;
mod packet;
mod passage;
mod path;
mod queue;
mod quic;
mod reassembly;
mod relay;
mod simulation;
mod summary;
mod transport;
mod tunnels;
mod voice;

pub use careof_plan::Observation;
pub use simulation::{Simulation, WorldError};
