//! One end of a QUIC connection (RFC 9000) that carries the data of a flow.
//!
//! The protocol is `quinn-proto`'s: a state machine without sockets, clocks or threads. This room gives it what it would take from its
//! surroundings - the time, random numbers, a TLS session - so that the same seed makes the same datagrams, and answers in the terms of
//! the other rooms: [`Instant`](careof_base::Instant), bytes that an application wants written, bytes that arrived in order.
//!
//! **Nothing is encrypted.** In the place of TLS stands a handshake of messages of the usual sizes ([`handshake`]) and in that of the
//! cipher a checksum of 16 bytes, so that datagrams are as long and as many as with TLS 1.3 and AES-128-GCM, can be read in a capture,
//! and an end that lies about its keys is found out only if it does not know the checksum. It measures transport, it protects nobody.
//!
//! ```
//! use std::net::SocketAddr;
//! use careof_base::{Instant, RandomStream};
//! use careof_quic::{Config, Connection, Role};
//!
//! let [client, server]: [SocketAddr; 2] = [([10, 0, 0, 1], 49_152).into(), ([10, 0, 0, 2], 5001).into()];
//! let mut ends = [(Role::Client, client, server), (Role::Server, server, client)].map(|(role, own, peer)| {
//!     (own, Connection::new(&Config::default(), role, peer, RandomStream::new(1, 0, role.name())))
//! });
//! ends[0].1.open(Instant::ZERO)?;
//! ends[0].1.write(100_000);
//! ends[0].1.close();
//! let mut now = Instant::ZERO;
//! while ends[1].1.received() < 100_000 {
//!     for (from, to) in [(0, 1), (1, 0)] {
//!         while let Some(datagram) = ends[from].1.poll_transmit(now) {
//!             let source = ends[from].0;
//!             ends[to].1.handle_datagram(now, source, datagram.ecn, &datagram.bytes);
//!         }
//!     }
//!     now = now + std::time::Duration::from_millis(1);
//!     ends.iter_mut().for_each(|(_, end)| end.handle_timeout(now));
//! }
//! # Ok::<(), careof_quic::OpenError>(())
//! ```

mod config;
mod connection;
mod frames;
pub mod handshake;
mod keys;
mod time;

pub use config::{Config, Congestion, MAX_MTU, MIN_MTU};
pub use connection::{Connection, Counters, Datagram, Event, OpenError, Role, Snapshot};
pub use frames::{Packet, StreamRange, packet_of_data};
