//! What a probe of a path and its answer say, of Mobile IPv4 ([`crate::mip4::PathProbe`]) as of Mobile IPv6
//! ([`crate::mip6::PathProbe`]).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Sequence number                        |
//! |                          Nonce (64)                           |
//! |                         Packets sent                          |
//! |                       Packets received                        |
//! |                        Bytes sent (64)                        |
//! |                      Bytes received (64)                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! In front of it each message has a Version, which is 1, and flags, of which C says that the counters are known. They count what
//! whoever sends the message has put into tunnels on this path and taken out of them, and go on from any start; packets wrap.

use crate::fixed::Fixed;

/// The number that names a probe: Vendor-NVSE-Type or Sub-Type.
pub(crate) const KIND_PROBE: u8 = 2;
/// The number that names an answer.
pub(crate) const KIND_ANSWER: u8 = 3;
/// The Version of probes and answers.
pub(crate) const VERSION: u8 = 1;
/// C.
const COUNTERS_KNOWN: u8 = 0x80;

/// Offsets in what is shared.
mod field {
    pub(super) const SEQUENCE: usize = 0;
    pub(super) const NONCE: usize = 4;
    pub(super) const PACKETS_SENT: usize = 12;
    pub(super) const PACKETS_RECEIVED: usize = 16;
    pub(super) const BYTES_SENT: usize = 20;
    pub(super) const BYTES_RECEIVED: usize = 28;
    pub(super) const LEN: usize = 36;
}

/// Whether it asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathProbeKind {
    /// The mobile node asks.
    Probe,
    /// The home agent answers.
    Answer,
}

impl PathProbeKind {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Probe => KIND_PROBE,
            Self::Answer => KIND_ANSWER,
        }
    }

    pub(crate) const fn from_number(number: u16) -> Option<Self> {
        const PROBE: u16 = KIND_PROBE as u16;
        const ANSWER: u16 = KIND_ANSWER as u16;
        match number {
            PROBE => Some(Self::Probe),
            ANSWER => Some(Self::Answer),
            _ => None,
        }
    }
}

/// What one end of a path has put into tunnels there and taken out of them, from any start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathCounts {
    /// Datagrams put in; wraps.
    pub packets_sent: u32,
    /// Datagrams taken out; wraps.
    pub packets_received: u32,
    /// Bytes of the datagrams put in, without the tunnel's headers.
    pub bytes_sent: u64,
    /// Bytes of the datagrams taken out, without the tunnel's headers.
    pub bytes_received: u64,
}

/// The fields that probes of both protocols share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) sequence: u32,
    pub(crate) nonce: u64,
    pub(crate) counts: Option<PathCounts>,
}

impl Measurement {
    /// Bytes of the fields.
    pub(crate) const LEN: usize = field::LEN;

    pub(crate) fn flags(&self) -> u8 {
        if self.counts.is_some() { COUNTERS_KNOWN } else { 0 }
    }

    pub(crate) fn encode(&self) -> [u8; field::LEN] {
        let mut fixed = Fixed::<{ field::LEN }>::ZERO;
        fixed.put::<{ field::SEQUENCE }, 4>(self.sequence.to_be_bytes());
        fixed.put::<{ field::NONCE }, 8>(self.nonce.to_be_bytes());
        if let Some(counts) = self.counts {
            fixed.put::<{ field::PACKETS_SENT }, 4>(counts.packets_sent.to_be_bytes());
            fixed.put::<{ field::PACKETS_RECEIVED }, 4>(counts.packets_received.to_be_bytes());
            fixed.put::<{ field::BYTES_SENT }, 8>(counts.bytes_sent.to_be_bytes());
            fixed.put::<{ field::BYTES_RECEIVED }, 8>(counts.bytes_received.to_be_bytes());
        }
        *fixed.bytes()
    }

    pub(crate) fn decode(flags: u8, bytes: [u8; field::LEN]) -> Self {
        let fixed = Fixed::from(bytes);
        Self {
            sequence: fixed.u32::<{ field::SEQUENCE }>(),
            nonce: fixed.u64::<{ field::NONCE }>(),
            counts: (flags & COUNTERS_KNOWN != 0).then(|| PathCounts {
                packets_sent: fixed.u32::<{ field::PACKETS_SENT }>(),
                packets_received: fixed.u32::<{ field::PACKETS_RECEIVED }>(),
                bytes_sent: fixed.u64::<{ field::BYTES_SENT }>(),
                bytes_received: fixed.u64::<{ field::BYTES_RECEIVED }>(),
            }),
        }
    }
}
