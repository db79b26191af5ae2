//! One direction of a link: what a packet crosses between one node and the next.
//!
//! A [`Link`] is small parts in a row, a file each: the queue and its discipline (drop-tail, RED, CoDel), the
//! serialiser, loss, propagation with jitter. Parts are chosen by [`Config`] at run time and can be changed
//! while packets are on their way; a [`Trace`] changes rate, delay and loss by the clock. Two links make a path there and
//! back.
//!
//! A [`Medium`] is the other way for nodes to be joined: half-duplex Ethernet or a radio channel of 802.11, which all its stations share.
//!
//! A link knows tokens and sizes, not packets; instants and durations, not clocks.
//!
//! ```
//! use careof_base::{DataRate, Duration, Instant, RandomStream};
//! use careof_link::{Config, Link, Output};
//!
//! let config = Config {
//!     rate: DataRate::from_megabits_per_second(2),
//!     delay: Duration::from_micros(3_500),
//!     ..Config::default()
//! };
//! let stream = |user| RandomStream::new(1, 0, user);
//! let mut link = Link::new(config, stream("loss"), stream("jitter"), stream("queue"));
//!
//! link.enqueue(Instant::ZERO, 'a', 1500).unwrap();
//! let arrival = Instant::from_micros(6_000 + 3_500);
//! assert_eq!(link.poll(Instant::ZERO), None);
//! assert_eq!(link.next_timeout(), Some(arrival));
//! assert_eq!(link.poll(arrival), Some(Output::Delivered { packet: 'a', at: arrival, marked: false }));
//! ```

#![no_std]

extern crate alloc;

mod codel;
mod config;
mod counters;
mod jitter;
mod link;
mod loss;
mod medium;
mod propagation;
mod queue;
mod red;
mod ring;
mod serialiser;
mod trace;

pub use config::{
    Config, ConfigError, Discipline, Framing, Jitter, Loss, MINIMUM_MTU, QueueConfig, QueueLimit, RedConfig,
    UNLIMITED_RATE,
};
pub use counters::{Counters, DropCause};
pub use link::{Fate, Link, Output};
pub use medium::{
    ACK_BYTES, ATTEMPT_LIMIT, BACKOFF_LIMIT, BEACON_INTERVAL, CTS_BYTES, Coding, Contention, DEVIATIONS,
    DcfConfig, EthernetConfig, FRAME_OVERHEAD_BYTES, GAP_BITS, HandoverPhases, JAM_BITS, LEAST_FRAME_BYTES,
    LONG_RETRY_LIMIT, MEDIUM_MTU, Medium, MediumConfig, MediumOutput, NEVER_RTS, PREAMBLE_BITS, PhaseLength,
    Phy, Protection, RTS_BYTES, SHORT_RETRY_LIMIT, SLOT_BITS, Scan, StationId, TIME_UNIT,
    WIRELESS_OVERHEAD_BYTES, WirelessHandover,
};
pub use trace::{Trace, TraceError, TraceRow};
