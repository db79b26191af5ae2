//! Path probes: a mobile node asks its home agent through one of its interfaces whether packets get through, and how many of
//! those before did.
//!
//! They travel as experimental messages of Mobile IPv4 (RFC 4064 section 3), type 255, which agents that do not know them
//! silently discard (RFC 4064 section 6), with a Mobile-Home authentication extension behind. Since everybody may use that type,
//! the enterprise number says whose experiment it is:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Type 255    |   Sub-Type    |    Version    |C|  reserved   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       Enterprise number                       |
//! |                         Home address                          |
//! |                        Sequence number                        |
//! |                          Nonce (64)                           |
//! |                         Packets sent                          |
//! |                       Packets received                        |
//! |                        Bytes sent (64)                        |
//! |                      Bytes received (64)                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Extensions ...
//! ```
//!
//! Sub-Type is 1 in a probe and 2 in its answer, Version is 1, and C says that the counters are known. They count what whoever
//! sends the message has put into tunnels on this path and taken out of them, and go on from any start; packets wrap.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::Extension;
use super::vendor::ENTERPRISE;
use crate::Error;
use crate::fixed::Fixed;

/// EXP-MSG-TYPE (RFC 4064 section 3).
pub(super) const TYPE_EXPERIMENTAL: u8 = 255;

const VERSION: u8 = 1;
const COUNTERS_KNOWN: u8 = 0x80;

mod field {
    pub(super) const TYPE: usize = 0;
    pub(super) const SUB_TYPE: usize = 1;
    pub(super) const VERSION: usize = 2;
    pub(super) const FLAGS: usize = 3;
    pub(super) const ENTERPRISE: usize = 4;
    pub(super) const HOME_ADDRESS: usize = 8;
    pub(super) const SEQUENCE: usize = 12;
    pub(super) const NONCE: usize = 16;
    pub(super) const PACKETS_SENT: usize = 24;
    pub(super) const PACKETS_RECEIVED: usize = 28;
    pub(super) const BYTES_SENT: usize = 32;
    pub(super) const BYTES_RECEIVED: usize = 40;
    pub(super) const LEN: usize = 48;
}

/// Whether it asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathProbeKind {
    /// The mobile node asks.
    Probe,
    /// The home agent answers.
    Answer,
}

/// What one end of a path has put into tunnels there and taken out of them.
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

/// A probe of a path, or the answer to one (type 255 of RFC 4064).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathProbe {
    /// Which of both.
    pub kind: PathProbeKind,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Which probe of its sender's on this path; an answer repeats it.
    pub sequence: u32,
    /// What nobody who has not seen the probe can know; an answer repeats it.
    pub nonce: u64,
    /// The counters of whoever sends this message; `None` when it keeps none.
    pub counts: Option<PathCounts>,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl PathProbe {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = field::LEN;

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let sub_type = match self.kind {
            PathProbeKind::Probe => 1,
            PathProbeKind::Answer => 2,
        };
        let mut fixed = Fixed::<{ field::LEN }>::ZERO;
        fixed.put::<{ field::TYPE }, 1>([TYPE_EXPERIMENTAL]);
        fixed.put::<{ field::SUB_TYPE }, 1>([sub_type]);
        fixed.put::<{ field::VERSION }, 1>([VERSION]);
        fixed.put::<{ field::ENTERPRISE }, 4>(ENTERPRISE.to_be_bytes());
        fixed.put::<{ field::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ field::SEQUENCE }, 4>(self.sequence.to_be_bytes());
        fixed.put::<{ field::NONCE }, 8>(self.nonce.to_be_bytes());
        if let Some(counts) = self.counts {
            fixed.put::<{ field::FLAGS }, 1>([COUNTERS_KNOWN]);
            fixed.put::<{ field::PACKETS_SENT }, 4>(counts.packets_sent.to_be_bytes());
            fixed.put::<{ field::PACKETS_RECEIVED }, 4>(counts.packets_received.to_be_bytes());
            fixed.put::<{ field::BYTES_SENT }, 8>(counts.bytes_sent.to_be_bytes());
            fixed.put::<{ field::BYTES_RECEIVED }, 8>(counts.bytes_received.to_be_bytes());
        }
        bytes.extend(fixed.bytes());
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ field::LEN }>::split(bytes, "path probe")?;
        let invalid = |field, offset, found, expected| Error::Invalid { field, offset, found, expected };
        let enterprise = fixed.u32::<{ field::ENTERPRISE }>();
        if enterprise != ENTERPRISE {
            let (what, at) = ("enterprise number of an experimental message", field::ENTERPRISE);
            return Err(invalid(what, at, enterprise, "32473"));
        }
        let version = fixed.u8::<{ field::VERSION }>();
        if version != VERSION {
            return Err(invalid("version of a path probe", field::VERSION, u32::from(version), "1"));
        }
        let kind = match fixed.u8::<{ field::SUB_TYPE }>() {
            1 => PathProbeKind::Probe,
            2 => PathProbeKind::Answer,
            found => {
                let what = "Sub-Type of a path probe";
                return Err(invalid(what, field::SUB_TYPE, u32::from(found), "1 or 2"));
            }
        };
        let knows = fixed.u8::<{ field::FLAGS }>() & COUNTERS_KNOWN != 0;
        Ok(Self {
            kind,
            home_address: fixed.address::<{ field::HOME_ADDRESS }>(),
            sequence: fixed.u32::<{ field::SEQUENCE }>(),
            nonce: fixed.u64::<{ field::NONCE }>(),
            counts: knows.then(|| PathCounts {
                packets_sent: fixed.u32::<{ field::PACKETS_SENT }>(),
                packets_received: fixed.u32::<{ field::PACKETS_RECEIVED }>(),
                bytes_sent: fixed.u64::<{ field::BYTES_SENT }>(),
                bytes_received: fixed.u64::<{ field::BYTES_RECEIVED }>(),
            }),
            extensions: Extension::parse_all(rest, field::LEN)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip4::Message;

    fn probe() -> PathProbe {
        PathProbe {
            kind: PathProbeKind::Probe,
            home_address: Ipv4Addr::new(10, 0, 0, 5),
            sequence: 0x0102_0304,
            nonce: 0x1112_1314_1516_1718,
            counts: Some(PathCounts {
                packets_sent: 1,
                packets_received: 2,
                bytes_sent: 3,
                bytes_received: 4,
            }),
            extensions: Vec::new(),
        }
    }

    #[test]
    fn a_probe_has_the_layout_told_above() {
        let message = Message::PathProbe(probe());
        let bytes = message.emit();
        let expected = [
            255, 1, 1, 0x80, 0, 0, 0x7e, 0xd9, 10, 0, 0, 5, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
            0x17, 0x18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn counters_that_are_not_known_are_not_made_up() {
        let answer = PathProbe { kind: PathProbeKind::Answer, counts: None, ..probe() };
        let mut bytes = Message::PathProbe(answer.clone()).emit();
        assert_eq!(bytes[24..], [0; 24]);
        bytes[24..].fill(7);
        assert_eq!(Message::parse(&bytes), Ok(Message::PathProbe(answer)));
    }

    #[test]
    fn somebody_else_s_experiment_is_none_of_ours() {
        for (at, value) in [(1, 0), (1, 3), (2, 2), (7, 0xda)] {
            let mut bytes = Message::PathProbe(probe()).emit();
            bytes[at] = value;
            assert!(matches!(Message::parse(&bytes), Err(Error::Invalid { .. })), "{at}");
        }
        assert!(matches!(Message::parse(&[255; 47]), Err(Error::Truncated { .. })));
    }
}
