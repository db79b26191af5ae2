//! The header of a packet whose flow goes by several paths at once.
//!
//! GRE with key and sequence number (RFC 2784, RFC 2890): the key names the flow, and the sequence number counts the packets of
//! that flow, as RFC 2890 section 2.2 has it. That is enough to put a flow in order. It is not enough to tell that a packet is
//! lost rather than late, or how far the delays of the paths are apart, so the Protocol Type is 0x88b5 (IEEE Std 802, Local
//! Experimental Ethertype 1), and a header of ours follows:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 0|1|1| Reserved0       | 0 0 0 |    Protocol Type = 0x88b5     |
//! |                         Key: the flow                         |
//! |                Sequence number within the flow                |
//! | Version=1 |S|0|     Path      |  Protocol Type of the payload |
//! |                Sequence number within the path                |
//! |               Time of sending, microseconds                   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! S says that packets of the flow may be on other paths now. The time is the sender's, of any start, and wraps after 71 minutes;
//! only differences mean something. Path is a number that both ends have agreed on, for through a relay the addresses of the outer
//! header do not tell it.

use super::gre::GreHeader;
use crate::Error;
use crate::fixed::Fixed;

/// IEEE Std 802, Local Experimental Ethertype 1.
const PROTOCOL_TYPE: u16 = 0x88b5;
const VERSION: u8 = 1;
/// S.
const SPLIT: u8 = 0x02;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

mod at {
    pub(super) const VERSION: usize = 0;
    pub(super) const PATH: usize = 1;
    pub(super) const PAYLOAD: usize = 2;
    pub(super) const PATH_SEQUENCE: usize = 4;
    pub(super) const SENT_AT: usize = 8;
    pub(super) const LEN: usize = 12;
}

/// What a packet that goes by several paths carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultipathPayload {
    /// An IPv4 datagram.
    Ipv4,
    /// An IPv6 datagram.
    Ipv6,
}

/// The header of a packet whose flow goes by several paths: GRE's and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultipathHeader {
    /// The flow, as the sender calls it.
    pub flow: u32,
    /// Which packet of the flow; wraps.
    pub sequence: u32,
    /// Whether packets of the flow may be on other paths now.
    pub split: bool,
    /// The path, as both ends call it.
    pub path: u8,
    /// Which packet of all on the path; wraps.
    pub path_sequence: u32,
    /// When it was sent, microseconds of the sender's clock; wraps.
    pub sent_at: u32,
    /// What follows.
    pub payload: MultipathPayload,
}

impl MultipathHeader {
    /// Bytes of the header.
    pub const LEN: usize = 24;

    /// Appends the header.
    pub fn emit(&self, bytes: &mut impl Extend<u8>) {
        let gre = GreHeader { key: Some(self.flow), sequence: Some(self.sequence) };
        gre.emit_around(PROTOCOL_TYPE, bytes);
        let payload = match self.payload {
            MultipathPayload::Ipv4 => IPV4,
            MultipathPayload::Ipv6 => IPV6,
        };
        let split = if self.split { SPLIT } else { 0 };
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::VERSION }, 1>([VERSION << 2 | split]);
        fixed.put::<{ at::PATH }, 1>([self.path]);
        fixed.put::<{ at::PAYLOAD }, 2>(payload.to_be_bytes());
        fixed.put::<{ at::PATH_SEQUENCE }, 4>(self.path_sequence.to_be_bytes());
        fixed.put::<{ at::SENT_AT }, 4>(self.sent_at.to_be_bytes());
        bytes.extend(fixed.bytes().iter().copied());
    }

    /// Reads the header; what follows it.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Checksum`] of a GRE header that has one, and [`Error::Invalid`] for another Protocol Type,
    /// another version, and a payload that is neither IPv4 nor IPv6.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (gre, rest) = GreHeader::parse_around(PROTOCOL_TYPE, "0x88b5", bytes)?;
        let offset = bytes.len() - rest.len();
        let invalid =
            |field, at, found, expected| Error::Invalid { field, offset: offset + at, found, expected };
        let (Some(flow), Some(sequence)) = (gre.key, gre.sequence) else {
            return Err(Error::Invalid {
                field: "GRE flags of a packet on several paths",
                offset: 0,
                found: u32::from(bytes.first().copied().unwrap_or_default()),
                expected: "key and sequence number",
            });
        };
        let (fixed, payload) =
            Fixed::<{ at::LEN }>::split(rest, "multipath header").map_err(|error| error.shifted(offset))?;
        let first = fixed.u8::<{ at::VERSION }>();
        if first >> 2 != VERSION {
            let field = "version of a multipath header";
            return Err(invalid(field, at::VERSION, u32::from(first >> 2), "1"));
        }
        let kind = match fixed.u16::<{ at::PAYLOAD }>() {
            IPV4 => MultipathPayload::Ipv4,
            IPV6 => MultipathPayload::Ipv6,
            found => {
                let field = "Protocol Type of a multipath payload";
                return Err(invalid(field, at::PAYLOAD, u32::from(found), "0x0800 or 0x86dd"));
            }
        };
        let header = Self {
            flow,
            sequence,
            split: first & SPLIT != 0,
            path: fixed.u8::<{ at::PATH }>(),
            path_sequence: fixed.u32::<{ at::PATH_SEQUENCE }>(),
            sent_at: fixed.u32::<{ at::SENT_AT }>(),
            payload: kind,
        };
        Ok((header, payload))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const HEADER: MultipathHeader = MultipathHeader {
        flow: 0x0102_0304,
        sequence: 5,
        split: true,
        path: 2,
        path_sequence: 7,
        sent_at: 0x1112_1314,
        payload: MultipathPayload::Ipv6,
    };

    fn emitted(header: MultipathHeader) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes
    }

    #[test]
    fn gre_has_key_and_sequence_as_in_rfc_2890_and_our_header_follows() {
        let mut bytes = emitted(HEADER);
        let expected = [
            0x30, 0, 0x88, 0xb5, 1, 2, 3, 4, 0, 0, 0, 5, 6, 2, 0x86, 0xdd, 0, 0, 0, 7, 0x11, 0x12, 0x13, 0x14,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len(), MultipathHeader::LEN);
        bytes.push(9);
        assert_eq!(MultipathHeader::parse(&bytes), Ok((HEADER, &[9][..])));
    }

    #[test]
    fn what_is_none_of_it_is_refused_with_its_place() {
        let header = MultipathHeader { split: false, payload: MultipathPayload::Ipv4, ..HEADER };
        assert_eq!(MultipathHeader::parse(&emitted(header)).map(|(header, _)| header), Ok(header));
        for (at, value, place) in [(2, 8, 2), (12, 9, 12), (14, 7, 14)] {
            let mut bytes = emitted(HEADER);
            bytes[at] = value;
            let error = MultipathHeader::parse(&bytes).unwrap_err();
            assert!(matches!(error, Error::Invalid { offset, .. } if offset == place), "{error}");
        }
        let without_sequence = [0x20, 0, 0x88, 0xb5, 0, 0, 0, 1, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(matches!(MultipathHeader::parse(&without_sequence), Err(Error::Invalid { offset: 0, .. })));
        for len in 0..MultipathHeader::LEN {
            let error = MultipathHeader::parse(&emitted(HEADER)[..len]).unwrap_err();
            assert!(matches!(error, Error::Truncated { .. }), "{len}: {error}");
        }
    }
}
