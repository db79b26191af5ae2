//! Path probes: a mobile node asks its home agent through one of its interfaces whether packets get through, and how many of
//! those before did.
//!
//! They travel as experimental messages of Mobile IPv4 (RFC 4064 section 3), type 255, which agents that do not know them
//! silently discard (RFC 4064 section 6). What such a message is, the extensions in it say, as that RFC suggests: first comes a
//! vendor extension (RFC 3115 section 2.2), last the Mobile-Home authentication.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Type 255    |                   reserved                    |
//! |   Type 134    |   Length 52   |           reserved            |
//! |                         Vendor/Org-ID                         |
//! |       Vendor-NVSE-Type        |    Version    |C|  reserved   |
//! |           reserved            |         Home address          |
//! |         Home address          |        Sequence number        |
//! |        Sequence number        |           Nonce (64)          |
//! |                                       |     Packets sent      |
//! |     Packets sent      |           Packets received            |
//! |                        Bytes sent (64)                        |
//! |                      Bytes received (64)                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Extensions ...
//! ```
//!
//! Vendor-NVSE-Type is 2 in a probe and 3 in its answer, Version is 1, and C says that the counters ([`PathCounts`]) are known.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::Extension;
use crate::Error;
use crate::enterprise::ENTERPRISE;
use crate::extension::HEADER_LEN;
use crate::fixed::Fixed;
use crate::path_probe::{Measurement, PathCounts, PathProbeKind, VERSION};

/// EXP-MSG-TYPE (RFC 4064 section 3).
pub(super) const TYPE_EXPERIMENTAL: u8 = 255;
/// Of the extension.
const TYPE_VENDOR: u8 = 134;

/// Offsets from the start of the message.
mod field {
    pub(super) const TYPE: usize = 0;
    pub(super) const EXTENSION: usize = 4;
    pub(super) const EXTENSION_LEN: usize = 5;
    pub(super) const VENDOR: usize = 8;
    pub(super) const KIND: usize = 12;
    pub(super) const VERSION: usize = 14;
    pub(super) const FLAGS: usize = 15;
    pub(super) const HOME_ADDRESS: usize = 18;
    pub(super) const MEASUREMENT: usize = 22;
    pub(super) const LEN: usize = MEASUREMENT + super::Measurement::LEN;
}

/// What the Length octet of the extension tells.
const EXTENSION_LEN: u8 = (field::LEN - field::EXTENSION - HEADER_LEN) as u8;

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
    /// What follows the one that makes it a probe, in order.
    pub extensions: Vec<Extension>,
}

impl PathProbe {
    /// The Type of the message.
    pub const TYPE: u8 = TYPE_EXPERIMENTAL;

    /// Bytes before what [`PathProbe::extensions`] are.
    pub const FIXED_LEN: usize = field::LEN;

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let PathProbe { sequence, nonce, counts, .. } = *self;
        let measurement = Measurement { sequence, nonce, counts };
        let mut fixed = Fixed::<{ field::LEN }>::ZERO;
        fixed.put::<{ field::TYPE }, 1>([TYPE_EXPERIMENTAL]);
        fixed.put::<{ field::EXTENSION }, 1>([TYPE_VENDOR]);
        fixed.put::<{ field::EXTENSION_LEN }, 1>([EXTENSION_LEN]);
        fixed.put::<{ field::VENDOR }, 4>(ENTERPRISE.to_be_bytes());
        fixed.put::<{ field::KIND }, 2>(u16::from(self.kind.number()).to_be_bytes());
        fixed.put::<{ field::VERSION }, 1>([VERSION]);
        fixed.put::<{ field::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ field::FLAGS }, 1>([measurement.flags()]);
        fixed.put::<{ field::MEASUREMENT }, { Measurement::LEN }>(measurement.encode());
        bytes.extend(fixed.bytes());
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ field::LEN }>::split(bytes, "path probe")?;
        let invalid = |field, offset, found, expected| Error::Invalid { field, offset, found, expected };
        let (extension, len) = (fixed.u8::<{ field::EXTENSION }>(), fixed.u8::<{ field::EXTENSION_LEN }>());
        if (extension, len) != (TYPE_VENDOR, EXTENSION_LEN) {
            let what = "first extension of an experimental message";
            return Err(invalid(what, field::EXTENSION, u32::from(extension), "134 of 52 bytes"));
        }
        let vendor = fixed.u32::<{ field::VENDOR }>();
        if vendor != ENTERPRISE {
            let what = "Vendor/Org-ID of an experimental message";
            return Err(invalid(what, field::VENDOR, vendor, "32473"));
        }
        let number = fixed.u16::<{ field::KIND }>();
        let Some(kind) = PathProbeKind::from_number(number) else {
            let what = "Vendor-NVSE-Type of a path probe";
            return Err(invalid(what, field::KIND, u32::from(number), "2 or 3"));
        };
        let version = fixed.u8::<{ field::VERSION }>();
        if version != VERSION {
            return Err(invalid("version of a path probe", field::VERSION, u32::from(version), "1"));
        }
        let flags = fixed.u8::<{ field::FLAGS }>();
        let measurement =
            Measurement::decode(flags, fixed.array::<{ field::MEASUREMENT }, { Measurement::LEN }>());
        let Measurement { sequence, nonce, counts } = measurement;
        Ok(Self {
            kind,
            home_address: fixed.address::<{ field::HOME_ADDRESS }>(),
            sequence,
            nonce,
            counts,
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
            255, 0, 0, 0, 134, 52, 0, 0, 0, 0, 0x7e, 0xd9, 0, 2, 1, 0x80, 0, 0, 10, 0, 0, 5, 1, 2, 3, 4,
            0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3,
            0, 0, 0, 0, 0, 0, 0, 4,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn counters_that_are_not_known_are_not_made_up() {
        let answer = PathProbe { kind: PathProbeKind::Answer, counts: None, ..probe() };
        let mut bytes = Message::PathProbe(answer.clone()).emit();
        assert_eq!(bytes[34..], [0; 24]);
        bytes[34..].fill(7);
        assert_eq!(Message::parse(&bytes), Ok(Message::PathProbe(answer)));
    }

    #[test]
    fn somebody_else_s_experiment_is_none_of_ours() {
        for (at, value) in [(4, 133), (5, 51), (11, 0xda), (13, 1), (13, 4), (14, 2)] {
            let mut bytes = Message::PathProbe(probe()).emit();
            bytes[at] = value;
            assert!(matches!(Message::parse(&bytes), Err(Error::Invalid { .. })), "{at}");
        }
        assert!(matches!(Message::parse(&[255; 57]), Err(Error::Truncated { .. })));
    }
}
