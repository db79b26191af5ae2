//! The GRE header (RFC 2784 section 2, RFC 2890 section 2).

use etherparse::checksum::Sum16BitWords;

use crate::fixed::Fixed;
use crate::{Error, checksum};

mod at {
    pub(super) const FLAGS: usize = 0;
    pub(super) const PROTOCOL_TYPE: usize = 2;
    pub(super) const LEN: usize = 4;
}

const CHECKSUM_PRESENT: u16 = 0x8000;
const KEY_PRESENT: u16 = 0x2000;
const SEQUENCE_PRESENT: u16 = 0x1000;
/// Routing, strict source route and recursion control of RFC 1701: a receiver that does not implement
/// them discards (RFC 2784 section 2.3).
const RFC_1701: u16 = 0x4c00;
/// The version number, which is 0 (RFC 2784 section 2.3.1). The reserved bits before it are ignored.
const VERSION: u16 = 0x0007;

/// The Protocol Type of IPv4.
const IPV4: u16 = 0x0800;

/// A GRE header around an IPv4 datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GreHeader {
    pub(super) key: Option<u32>,
    pub(super) sequence: Option<u32>,
}

impl GreHeader {
    /// Bytes of a header with every field that is sent.
    pub(super) const MAX_LEN: u16 = 12;

    pub(super) const fn len(self) -> u16 {
        4 + 4 * self.key.is_some() as u16 + 4 * self.sequence.is_some() as u16
    }

    pub(super) fn emit(self, bytes: &mut impl Extend<u8>) {
        self.emit_around(IPV4, bytes);
    }

    /// Appends the header of a packet whose payload has this Protocol Type.
    pub(super) fn emit_around(self, protocol_type: u16, bytes: &mut impl Extend<u8>) {
        let mut flags = 0;
        if self.key.is_some() {
            flags |= KEY_PRESENT;
        }
        if self.sequence.is_some() {
            flags |= SEQUENCE_PRESENT;
        }
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::FLAGS }, 2>(flags.to_be_bytes());
        fixed.put::<{ at::PROTOCOL_TYPE }, 2>(protocol_type.to_be_bytes());
        bytes.extend(fixed.bytes().iter().copied());
        for field in [self.key, self.sequence].into_iter().flatten() {
            bytes.extend(field.to_be_bytes());
        }
    }

    /// Reads the header of a whole packet, with its checksum if it has one; what follows the header.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        Self::parse_around(IPV4, "0x0800", bytes)
    }

    /// As [`Self::parse`], of a payload with another Protocol Type, which errors call `expected`.
    pub(super) fn parse_around<'a>(
        protocol_type: u16,
        expected: &'static str,
        bytes: &'a [u8],
    ) -> Result<(Self, &'a [u8]), Error> {
        let parsed = Self::parse_start(protocol_type, expected, bytes)?;
        if let &[flags, _, _, _, high, low, ..] = bytes
            && u16::from_be_bytes([flags, 0]) & CHECKSUM_PRESENT != 0
        {
            let sum = Sum16BitWords::new().add_slice(bytes);
            checksum::verify(&sum, "GRE", at::LEN, u16::from_be_bytes([high, low]))?;
        }
        Ok(parsed)
    }

    /// Reads the header of a packet of which there may be only the start, which no checksum can tell of.
    pub(super) fn parse_quoted(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        Self::parse_start(IPV4, "0x0800", bytes)
    }

    fn parse_start<'a>(
        protocol_type: u16,
        expected_type: &'static str,
        bytes: &'a [u8],
    ) -> Result<(Self, &'a [u8]), Error> {
        let (fixed, mut rest) = Fixed::<{ at::LEN }>::split(bytes, "GRE header")?;
        let flags = fixed.u16::<{ at::FLAGS }>();
        let invalid = |field, offset, found: u16, expected| Error::Invalid {
            field,
            offset,
            found: u32::from(found),
            expected,
        };
        if flags & RFC_1701 != 0 {
            return Err(invalid("GRE flags", at::FLAGS, flags, "none of RFC 1701"));
        }
        if flags & VERSION != 0 {
            return Err(invalid("GRE version", at::FLAGS + 1, flags & VERSION, "0"));
        }
        let found = fixed.u16::<{ at::PROTOCOL_TYPE }>();
        if found != protocol_type {
            return Err(invalid("GRE Protocol Type", at::PROTOCOL_TYPE, found, expected_type));
        }
        let mut field = |flag| {
            if flags & flag == 0 {
                return Ok(None);
            }
            let (field, after) = Fixed::<4>::split(rest, "GRE field")
                .map_err(|error| error.shifted(bytes.len() - rest.len()))?;
            rest = after;
            Ok(Some(field.u32::<0>()))
        };
        let _checksum_and_reserved1 = field(CHECKSUM_PRESENT)?;
        let key = field(KEY_PRESENT)?;
        let sequence = field(SEQUENCE_PRESENT)?;
        Ok((Self { key, sequence }, rest))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn key_and_sequence_stand_in_this_order() {
        let mut bytes = Vec::new();
        let header = GreHeader { key: Some(0x0102_0304), sequence: Some(5) };
        header.emit(&mut bytes);
        assert_eq!(bytes, [0x30, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 5]);
        assert_eq!(bytes.len(), usize::from(header.len()));
        bytes.push(9);
        assert_eq!(GreHeader::parse(&bytes), Ok((header, &[9][..])));
    }

    #[test]
    fn a_checksum_is_checked_where_there_is_one() {
        // 0x8000 + 0x0800 + 0x0102 = 0x8902.
        let mut bytes = [0x80, 0, 8, 0, 0x76, 0xfd, 0, 0, 1, 2];
        let header = GreHeader { key: None, sequence: None };
        assert_eq!(GreHeader::parse(&bytes), Ok((header, &[1, 2][..])));
        bytes[9] = 3;
        assert!(matches!(
            GreHeader::parse(&bytes),
            Err(Error::Checksum { what: "GRE", offset: 4, found: 0x76fd, expected: 0x76fc })
        ));
        assert_eq!(
            GreHeader::parse(&bytes[..7]),
            Err(Error::Truncated { what: "GRE field", offset: 4, needed: 4, found: 3 })
        );
    }

    #[test]
    fn what_rfc_1701_had_more_is_refused() {
        for flags in [0x4000_u16, 0x0800, 0x0400] {
            let [high, low] = flags.to_be_bytes();
            let error = GreHeader::parse(&[high, low, 8, 0]).unwrap_err();
            assert!(matches!(error, Error::Invalid { field: "GRE flags", .. }), "{error}");
        }
        assert!(matches!(
            GreHeader::parse(&[0, 1, 8, 0]),
            Err(Error::Invalid { field: "GRE version", found: 1, .. })
        ));
        assert!(matches!(
            GreHeader::parse(&[0, 0, 0x86, 0xdd]),
            Err(Error::Invalid { field: "GRE Protocol Type", found: 0x86dd, .. })
        ));
        assert!(GreHeader::parse(&[0x03, 0xf8, 8, 0]).is_ok(), "reserved bits are ignored");
    }
}
