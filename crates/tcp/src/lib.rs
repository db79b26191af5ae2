//! TCP endpoint models: a full-duplex connection that exchanges [`careof_wire::Segment`]s - lengths, not
//! bytes - and never touches a clock, a socket or a random source.
//!
//! [`Connection`] is the whole of it. Its sender is put together from parts that are chosen at run time by
//! [`Config`]: loss recovery ([`Variant`]), the estimator of the retransmission timeout ([`RtoEstimator`]), the
//! policy of delayed acknowledgements ([`DelayedAck`]) and switches for single mechanisms. Each part is a file
//! that names its specification and what it leaves out.
//!
//! ```
//! use careof_base::Instant;
//! use careof_tcp::{Config, Connection, Role};
//! use careof_wire::SeqNumber;
//!
//! let end = |role, iss| Connection::new(Config::default(), role, 1000, 2000, SeqNumber(iss));
//! let (mut client, mut server) = (end(Role::Active, 7)?, end(Role::Passive, 99)?);
//! let now = Instant::ZERO;
//! server.open(now);
//! client.open(now);
//! client.write(10_000);
//! // A path without delay: whatever one end sends, the other receives at once.
//! while server.received() < 10_000 {
//!     while let Some(sent) = client.poll_transmit(now) {
//!         server.handle_segment(now, &sent.segment);
//!     }
//!     while let Some(sent) = server.poll_transmit(now) {
//!         client.handle_segment(now, &sent.segment);
//!     }
//! }
//! # Ok::<(), careof_tcp::ConfigError>(())
//! ```

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod advice;
mod bandwidth;
mod config;
mod congestion;
mod connection;
mod counters;
mod delayed_ack;
mod delivery_rate;
mod ecn;
mod events;
mod handshake;
mod input;
mod liveness;
mod ordinary;
mod output;
mod pacing;
mod persist;
mod receive_queue;
mod receive_window;
mod receiver;
mod recovery;
mod rto;
mod scoreboard;
mod send_queue;
mod sender;
mod snapshot;
mod state;
mod timer;
mod timestamps;

#[cfg(test)]
mod tests;

pub use advice::{Advice, NewPath};
pub use bandwidth::BandwidthEstimator;
pub use config::{
    AckCounting, Config, ConfigError, CongestionControl, DelayedAck, HyStart, IdleRestart, InitialWindow,
    KernelEdition, MAX_WINDOW, MIN_MSS, PartialAckTimer, Profile, ReductionBound, RtoEstimator, Variant,
};
pub use congestion::cubic::cubic_curve;
pub use connection::{Connection, Role, Sending, Transmission, Wake};
pub use counters::Counters;
pub use events::Event;
pub use rto::{RoundTrip, TimeoutEstimator};
pub use snapshot::{PathModel, Phase, Snapshot};
pub use state::State;
