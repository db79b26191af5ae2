//! Bytes to messages and back.
//!
//! | module | holds |
//! |---|---|
//! | [`mip4`] | Mobile IPv4 registration and its authentication (RFC 5944, RFC 3024) |
//! | [`mip6`] | Mobile IPv6: the Mobility Header and its authentication (RFC 6275, RFC 4285, RFC 5648, RFC 5555, RFC 5094), fast handovers (RFC 5568) |
//! | [`micro`] | micro-mobility inside one domain: Cellular IP, HAWAII, M&M, and their building blocks |
//! | [`shake`] | messages of a cluster that shares its links, and what the ends of a path tell each other of it |
//! | [`dhcp`] | the messages by which an address is obtained (RFC 2131, RFC 2132) |
//! | [`icmp`] | agent discovery (RFC 1256, RFC 5944), errors and what they quote, echo |
//! | [`tunnel`] | IP within IP (RFC 2003), minimal encapsulation (RFC 2004), GRE (RFC 2784, RFC 2890) |
//! | [`ipv4`] | the header, fragmentation, reassembly (RFC 791) |
//! | [`ipv6`] | the header and its extension headers, Mobile IPv6's among them, fragmentation, reassembly (RFC 8200, RFC 6275) |
//! | [`icmpv6`] | errors and what they quote, echo (RFC 4443), neighbor discovery (RFC 4861), home agent and mobile prefix discovery (RFC 6275), what routers tell of their neighbors for fast handovers (RFC 5568) |
//! | [`IpHeader`] | a header of either version |
//! | [`mptcp`] | options of Multipath TCP in segments that pass (RFC 8684) |
//! | [`udp`], [`Segment`] | the transport headers (RFC 768, RFC 9293) |
//! | [`tcp_edit`] | changes to a TCP header that passes (RFC 1624) |
//!
//! A message is a plain value. `parse` reads it from a slice and either gives it whole or an [`Error`] that
//! names the field, its place and what was found there; no bytes make it panic. `emit` appends it to a
//! vector, with every length and checksum made right, and what is emitted parses as the same value. There
//! is no state and no policy here, but for the [`ipv4::Reassembler`], which is told the time.
//!
//! ```
//! use careof_wire::mip4::{self, Algorithm, AuthenticationKind, Message};
//!
//! /// Whether a request comes from whoever holds the key, by the bytes as they came in.
//! fn is_genuine(received: &[u8], key: &[u8]) -> Result<bool, careof_wire::Error> {
//!     let message = Message::parse(received)?;
//!     Ok(message.authentication(AuthenticationKind::MobileHome).is_some_and(|(offset, _)| {
//!         mip4::verify_authentication(received, offset, Algorithm::HmacMd5, key)
//!     }))
//! }
//! # assert_eq!(is_genuine(&[3; 20], b"key"), Ok(false));
//! ```
#![no_std]

extern crate alloc;

mod bits;
mod checksum;
mod codes;
pub mod dhcp;
mod enterprise;
mod error;
mod extension;
mod fast_handover;
mod fixed;
pub mod icmp;
pub mod icmpv6;
mod ip_header;
pub mod ipv4;
pub mod ipv6;
pub mod micro;
pub mod mip4;
pub mod mip6;
pub mod mptcp;
mod numbered;
mod path_probe;
mod path_report;
pub mod protocol;
mod reassembly;
mod received_data;
pub mod rtp;
mod segment;
mod seq;
pub mod shake;
mod spi;
mod tcp;
pub mod tcp_edit;
pub mod tunnel;
pub mod udp;

pub use checksum::IpAddress;
pub use enterprise::ENTERPRISE;
pub use error::Error;
pub use extension::UnknownExtension;
pub use ip_header::IpHeader;
pub use path_probe::{PathCounts, PathProbeKind};
pub use path_report::PathReport;
pub use received_data::{ReceivedData, ReceivedFlow};
pub use segment::{Flags, SackBlocks, Segment, Timestamps};
pub use seq::SeqNumber;
