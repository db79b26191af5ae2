//! IPv4 datagrams (RFC 791): the header, [`fragment()`] and the [`Reassembler`].

mod fragmentation;
mod header;
mod reassembly;

pub use fragmentation::{FragmentationError, fragment};
pub(crate) use header::Received;
pub use header::{Ipv4Header, count_down, ecn};
pub use reassembly::Reassembler;

pub use crate::reassembly::{ReassemblyCounters, ReassemblyLimits};
