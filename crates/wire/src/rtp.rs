//! The fixed header of RTP (RFC 3550 section 5.1): no contributing sources, no extension, no padding.

use alloc::vec::Vec;

use crate::Error;

/// Version 2, the only one that is in use.
const VERSION: u8 = 2 << 6;

/// An RTP header without contributing sources, extension and padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RtpHeader {
    /// The first packet of a spell of talk.
    pub marker: bool,
    /// What the payload is, below 128 (RFC 3551 section 6).
    pub payload_type: u8,
    /// Counts packets, modulo 2^16.
    pub sequence: u16,
    /// When the payload's first sample was taken, by the payload's clock.
    pub timestamp: u32,
    /// Who sends (SSRC).
    pub source: u32,
}

impl RtpHeader {
    /// Bytes of the header.
    pub const LEN: usize = 12;

    /// Appends the header.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend([VERSION, u8::from(self.marker) << 7 | self.payload_type & 0x7f]);
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.timestamp.to_be_bytes());
        bytes.extend(self.source.to_be_bytes());
    }

    /// Reads the header at the beginning of a UDP payload, and what follows it.
    ///
    /// # Errors
    ///
    /// It ends within the header, is of another version, or has padding, an extension or contributing sources.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let truncated =
            Error::Truncated { what: "RTP header", offset: 0, needed: Self::LEN, found: bytes.len() };
        let (header, payload) = bytes.split_first_chunk::<{ Self::LEN }>().ok_or(truncated)?;
        let [first, second, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = *header;
        if first != VERSION {
            return Err(Error::Invalid {
                field: "RTP version and flags",
                offset: 0,
                found: first.into(),
                expected: "0x80",
            });
        }
        let header = Self {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            source: u32::from_be_bytes([c0, c1, c2, c3]),
        };
        Ok((header, payload))
    }

    /// The number, counted from 0, of a packet with this sequence number, if packet 0 had `first`: the one nearest to
    /// `expected`.
    #[must_use]
    pub const fn number(self, first: u16, expected: u64) -> u64 {
        let low = self.sequence.wrapping_sub(first);
        let ahead = low.wrapping_sub(expected as u16);
        if ahead < 0x8000 {
            return expected.saturating_add(ahead as u64);
        }
        match expected.checked_sub(0x1_0000 - ahead as u64) {
            Some(number) => number,
            None => low as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        // Octet by octet after the figure of RFC 3550 section 5.1: V = 2, M, PT = 18, then sequence, timestamp, SSRC.
        let bytes = [0x80, 0x92, 0x12, 0x34, 0, 0, 0, 160, 0xde, 0xad, 0xbe, 0xef, 7, 7];
        let header = RtpHeader {
            marker: true,
            payload_type: 18,
            sequence: 0x1234,
            timestamp: 160,
            source: 0xdead_beef,
        };
        assert_eq!(RtpHeader::parse(&bytes), Ok((header, &[7, 7][..])));
        let mut written = Vec::new();
        header.emit(&mut written);
        assert_eq!(written, bytes[..RtpHeader::LEN]);
    }

    #[test]
    fn what_is_no_such_header_is_refused() {
        assert!(RtpHeader::parse(&[0x80; 11]).is_err());
        for first in [0x00, 0x40, 0xa0, 0x90, 0x81] {
            assert!(RtpHeader::parse(&[first, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(), "{first:x}");
        }
    }

    #[test]
    fn numbers_go_on_where_sequence_numbers_wrap() {
        let number =
            |sequence, expected| RtpHeader { sequence, ..RtpHeader::default() }.number(65_530, expected);
        assert_eq!(number(65_530, 0), 0);
        assert_eq!(number(4, 10), 10, "65,530 + 10 wraps to 4");
        assert_eq!(number(65_535, 10), 5, "one that was overtaken");
        assert_eq!(number(65_530, 65_537), 65_536);
        assert_eq!(number(65_529, 0), 65_535, "there is nothing before the first");
    }
}
