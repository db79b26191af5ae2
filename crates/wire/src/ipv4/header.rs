//! The header.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;
use etherparse::err::ipv4::{HeaderError, HeaderSliceError};
use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4HeaderSlice};

use crate::{Error, checksum};

const TOTAL_LENGTH: usize = 2;
const CHECKSUM: usize = 10;

/// An IPv4 header. Options are skipped on reception and never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// What the payload is: a number of [`crate::protocol`] or another.
    pub protocol: u8,
    /// Time to live, hops.
    pub ttl: u8,
    /// Type of service: DSCP and ECN.
    pub tos: u8,
    /// Tells the fragments of one datagram from those of another.
    pub identification: u16,
    /// The DF bit.
    pub dont_fragment: bool,
    /// The MF bit: this is not the last fragment.
    pub more_fragments: bool,
    /// Where the payload belongs in that of the whole datagram, bytes; a multiple of 8.
    pub fragment_offset: u16,
    /// Bytes of payload, [`Ipv4Header::MAX_PAYLOAD_LEN`] at most.
    pub payload_len: u16,
}

/// The ECN field, the last two bits of the type of service (RFC 3168 section 5).
pub mod ecn {
    /// The field in the type of service.
    pub const MASK: u8 = 0b11;
    /// ECN-capable transport, ECT(0), which senders use.
    pub const CAPABLE: u8 = 0b10;
    /// Congestion experienced.
    pub const CONGESTION_EXPERIENCED: u8 = 0b11;
}

impl Ipv4Header {
    /// Whether a router may mark the datagram instead of dropping it: it is capable, or marked already.
    #[must_use]
    pub const fn is_ecn_capable(&self) -> bool {
        self.tos & ecn::MASK != 0
    }

    /// Whether the datagram met congestion (CE).
    #[must_use]
    pub const fn congestion_experienced(&self) -> bool {
        self.tos & ecn::MASK == ecn::CONGESTION_EXPERIENCED
    }

    /// Marks the datagram: it met congestion.
    pub const fn mark_congestion(&mut self) {
        self.tos |= ecn::CONGESTION_EXPERIENCED;
    }
}

impl Default for Ipv4Header {
    /// Nobody to nobody, with a time to live of 64.
    fn default() -> Self {
        Self {
            source: Ipv4Addr::UNSPECIFIED,
            destination: Ipv4Addr::UNSPECIFIED,
            protocol: 0,
            ttl: 64,
            tos: 0,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: 0,
        }
    }
}

/// A header as read from received bytes, which may be less than a datagram.
pub(crate) struct Received<'a> {
    pub(crate) header: Ipv4Header,
    /// Bytes of the header with its options.
    pub(crate) header_len: usize,
    /// What follows it, of which the datagram claims `header.payload_len` bytes.
    pub(crate) rest: &'a [u8],
    slice: Ipv4HeaderSlice<'a>,
}

impl<'a> Received<'a> {
    /// Reads a header without checking its checksum or that its payload is there.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let slice = Ipv4HeaderSlice::from_slice(bytes).map_err(|error| match error {
            HeaderSliceError::Len(error) => Error::Truncated {
                what: "IPv4 header",
                offset: 0,
                needed: error.required_len,
                found: bytes.len(),
            },
            HeaderSliceError::Content(HeaderError::UnexpectedVersion { version_number }) => Error::Invalid {
                field: "IP version",
                offset: 0,
                found: u32::from(version_number),
                expected: "4",
            },
            HeaderSliceError::Content(HeaderError::HeaderLengthSmallerThanHeader { ihl }) => Error::Invalid {
                field: "IPv4 header length in words",
                offset: 0,
                found: u32::from(ihl),
                expected: "5 or more",
            },
        })?;
        let header_len = slice.slice().len();
        let Some(payload_len) = usize::from(slice.total_len()).checked_sub(header_len) else {
            return Err(Error::Invalid {
                field: "IPv4 Total Length",
                offset: TOTAL_LENGTH,
                found: u32::from(slice.total_len()),
                expected: "at least the header's length",
            });
        };
        let header = Ipv4Header {
            source: slice.source_addr(),
            destination: slice.destination_addr(),
            protocol: slice.protocol().0,
            ttl: slice.ttl(),
            tos: slice.dcp().value() << 2 | slice.ecn().value(),
            identification: slice.identification(),
            dont_fragment: slice.dont_fragment(),
            more_fragments: slice.more_fragments(),
            fragment_offset: slice.fragments_offset().byte_offset(),
            payload_len: payload_len as u16,
        };
        Ok(Self { header, header_len, rest: bytes.get(header_len..).unwrap_or_default(), slice })
    }

    /// Reads a header, checks its checksum and takes the payload its Total Length claims, which leaves out
    /// what a link may have padded the datagram with.
    pub(crate) fn parse_whole(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let received = Self::parse(bytes)?;
        received.verify()?;
        match received.rest.get(..usize::from(received.header.payload_len)) {
            Some(payload) => Ok((received, payload)),
            None => Err(Error::Truncated {
                what: "IPv4 datagram",
                offset: 0,
                needed: received.header_len + usize::from(received.header.payload_len),
                found: bytes.len(),
            }),
        }
    }

    /// The header with its options, to be changed and sent on.
    pub(crate) fn to_etherparse(&self) -> etherparse::Ipv4Header {
        self.slice.to_header()
    }

    /// Checks the header checksum.
    fn verify(&self) -> Result<(), Error> {
        let sum = Sum16BitWords::new().add_slice(self.slice.slice());
        checksum::verify(&sum, "IPv4 header", CHECKSUM, self.slice.header_checksum())
    }
}

impl Ipv4Header {
    /// Bytes of a header without options, as it is sent.
    pub const LEN: u16 = 20;
    /// The most payload the Total Length of a header without options can tell, bytes.
    pub const MAX_PAYLOAD_LEN: u16 = u16::MAX - Self::LEN;

    /// Bytes of the datagram when it is sent.
    #[must_use]
    pub const fn total_len(&self) -> u16 {
        self.payload_len.saturating_add(Self::LEN)
    }

    /// Whether the payload is not that of a whole datagram.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Appends the header with its checksum.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let mut header = self.to_etherparse();
        header.header_checksum = header.calc_header_checksum();
        bytes.extend(header.to_bytes());
    }

    /// The header to be sent, without its checksum.
    pub(crate) fn to_etherparse(self) -> etherparse::Ipv4Header {
        debug_assert!(self.payload_len <= Self::MAX_PAYLOAD_LEN, "the Total Length is 16 bits");
        debug_assert!(self.fragment_offset.is_multiple_of(8), "the Fragment Offset counts units of 8 bytes");
        etherparse::Ipv4Header {
            dscp: IpDscp::try_new(self.tos >> 2).unwrap_or_default(),
            ecn: IpEcn::try_new(self.tos & 3).unwrap_or_default(),
            total_len: self.total_len(),
            identification: self.identification,
            dont_fragment: self.dont_fragment,
            more_fragments: self.more_fragments,
            fragment_offset: IpFragOffset::try_new(self.fragment_offset / 8).unwrap_or_default(),
            time_to_live: self.ttl,
            protocol: IpNumber(self.protocol),
            header_checksum: 0,
            source: self.source.octets(),
            destination: self.destination.octets(),
            options: etherparse::Ipv4Options::default(),
        }
    }

    /// Reads a datagram: its header and its payload, without what a link may have padded it with.
    ///
    /// # Errors
    ///
    /// Bytes that are no IPv4 header, end before the datagram does, or do not add up to the checksum.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (received, payload) = Received::parse_whole(bytes)?;
        Ok((received.header, payload))
    }
}

/// Counts a packet's Time To Live down and puts its header's checksum right (RFC 1624, equation 3); `false`: it has reached its end, or is no
/// whole header.
#[must_use]
pub fn count_down(packet: &mut [u8]) -> bool {
    let Some([ttl, _, high, low, ..]) = packet.get_mut(8..20) else { return false };
    if *ttl <= 1 {
        return false;
    }
    *ttl -= 1;
    // The word that the time to live is the upper half of has become less by 0x0100.
    let (sum, carry) = u16::from_be_bytes([*high, *low]).overflowing_add(0x0100);
    [*high, *low] = (sum + u16::from(carry)).to_be_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Ipv4Header = Ipv4Header {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(198, 51, 100, 2),
        protocol: 17,
        ttl: 63,
        tos: 0xb9,
        identification: 0x1234,
        dont_fragment: false,
        more_fragments: true,
        fragment_offset: 1480,
        payload_len: 3,
    };

    /// A header alone, of so many hops.
    fn header(ttl: u8, identification: u16) -> Vec<u8> {
        let header = Ipv4Header {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: 17,
            ttl,
            tos: 0,
            identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: 0,
        };
        let mut packet = Vec::new();
        header.emit(&mut packet);
        packet
    }

    #[test]
    fn a_header_counted_down_to_its_end_is_right_all_the_way() {
        let mut packet = header(64, 0);
        for left in (1..64).rev() {
            assert!(count_down(&mut packet));
            let (header, _) = Ipv4Header::parse(&packet).unwrap_or_else(|error| panic!("{left}: {error}"));
            assert_eq!(header.ttl, left);
        }
        assert!(!count_down(&mut packet));
        assert!(!count_down(&mut packet[..19]));
    }

    #[test]
    fn the_checksum_of_a_header_counted_down_carries_around() {
        // Of all identifications, some make the sum that overflows.
        for identification in 0..=u16::MAX {
            let mut packet = header(64, identification);
            assert!(count_down(&mut packet) && Ipv4Header::parse(&packet).is_ok(), "{identification}");
        }
    }

    #[test]
    fn a_header_has_the_layout_of_the_rfc() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        assert_eq!(bytes[..10], [0x45, 0xb9, 0, 23, 0x12, 0x34, 0x20, 185, 63, 17]);
        assert_eq!(bytes[12..], [192, 0, 2, 1, 198, 51, 100, 2]);
        bytes.extend([1, 2, 3]);
        assert_eq!(Ipv4Header::parse(&bytes), Ok((HEADER, &[1, 2, 3][..])));
        bytes.extend([0; 20]);
        assert_eq!(Ipv4Header::parse(&bytes), Ok((HEADER, &[1, 2, 3][..])), "padding of the link");
    }

    #[test]
    fn options_are_skipped() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        bytes[0] = 0x46;
        bytes[3] = 27;
        bytes.extend([1, 1, 1, 0, 1, 2, 3]);
        bytes[10..12].fill(0);
        let right = checksum::finish(&Sum16BitWords::new().add_slice(&bytes[..24]));
        bytes[10..12].copy_from_slice(&right.to_be_bytes());
        assert_eq!(Ipv4Header::parse(&bytes), Ok((HEADER, &[1, 2, 3][..])));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        assert_eq!(
            Ipv4Header::parse(&bytes),
            Err(Error::Truncated { what: "IPv4 datagram", offset: 0, needed: 23, found: 20 })
        );
        assert_eq!(
            Ipv4Header::parse(&bytes[..19]),
            Err(Error::Truncated { what: "IPv4 header", offset: 0, needed: 20, found: 19 })
        );
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            Ipv4Header::parse(&bytes).unwrap_err()
        };
        assert!(matches!(with(0, 0x65), Error::Invalid { field: "IP version", found: 6, .. }));
        assert!(matches!(
            with(0, 0x44),
            Error::Invalid { field: "IPv4 header length in words", found: 4, .. }
        ));
        assert!(matches!(with(3, 19), Error::Invalid { field: "IPv4 Total Length", found: 19, .. }));
        assert!(matches!(with(8, 0), Error::Checksum { what: "IPv4 header", offset: 10, .. }));
    }
}
