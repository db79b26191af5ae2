//! The header.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use etherparse::err::ipv6::{HeaderError, HeaderSliceError};
use etherparse::{IpNumber, Ipv6FlowLabel, Ipv6HeaderSlice};

use crate::Error;
use crate::ipv4::ecn;

/// An IPv6 header (RFC 8200 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Header {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// What follows: an extension header, or a number of [`crate::protocol`] or another.
    pub next_header: u8,
    /// Hops the packet may still take.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Tells flows apart, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Bytes of all that follows the header, extension headers included.
    pub payload_len: u16,
}

impl Default for Ipv6Header {
    /// Nobody to nobody and nothing behind it, with a hop limit of 64.
    fn default() -> Self {
        Self {
            source: Ipv6Addr::UNSPECIFIED,
            destination: Ipv6Addr::UNSPECIFIED,
            next_header: crate::protocol::NO_NEXT_HEADER,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
            payload_len: 0,
        }
    }
}

impl Ipv6Header {
    /// Bytes of the header.
    pub const LEN: u16 = 40;
    /// The least MTU that a link of IPv6 has, bytes (RFC 8200 section 5).
    pub const MIN_MTU: u16 = 1280;
    /// The most that the Flow Label can tell.
    pub const MAX_FLOW_LABEL: u32 = 0x000f_ffff;
    /// Where the Payload Length stands, bytes.
    pub(crate) const PAYLOAD_LENGTH: usize = 4;
    /// Where the Next Header stands, bytes.
    pub(crate) const NEXT_HEADER: usize = 6;

    /// Bytes of the packet; more than 65535 where the payload has nearly as many.
    #[must_use]
    pub const fn total_len(&self) -> u32 {
        self.payload_len as u32 + Self::LEN as u32
    }

    /// Whether a router may mark the packet instead of dropping it: it is capable, or marked already.
    #[must_use]
    pub const fn is_ecn_capable(&self) -> bool {
        self.traffic_class & ecn::MASK != 0
    }

    /// Whether the packet met congestion (CE).
    #[must_use]
    pub const fn congestion_experienced(&self) -> bool {
        self.traffic_class & ecn::MASK == ecn::CONGESTION_EXPERIENCED
    }

    /// Marks the packet: it met congestion.
    pub const fn mark_congestion(&mut self) {
        self.traffic_class |= ecn::CONGESTION_EXPERIENCED;
    }

    /// The 40 bytes of the header.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN as usize] {
        debug_assert!(self.flow_label <= Self::MAX_FLOW_LABEL, "the Flow Label is 20 bits");
        let flow_label = Ipv6FlowLabel::try_new(self.flow_label & Self::MAX_FLOW_LABEL).unwrap_or_default();
        etherparse::Ipv6Header {
            traffic_class: self.traffic_class,
            flow_label,
            payload_length: self.payload_len,
            next_header: IpNumber(self.next_header),
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
        }
        .to_bytes()
    }

    /// Appends the header.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_bytes());
    }

    /// Reads a packet: its header and all that follows it, without what a link may have padded it with.
    ///
    /// # Errors
    ///
    /// Bytes that are no IPv6 header, or end before the packet does.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (header, rest) = Self::parse_start(bytes)?;
        match rest.get(..usize::from(header.payload_len)) {
            Some(payload) => Ok((header, payload)),
            None => Err(Error::Truncated {
                what: "IPv6 packet",
                offset: 0,
                needed: header.total_len() as usize,
                found: bytes.len(),
            }),
        }
    }

    /// Reads the header of bytes that may be less than a packet, or more; and what follows it.
    ///
    /// # Errors
    ///
    /// Bytes that are no IPv6 header.
    pub fn parse_start(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let slice = Ipv6HeaderSlice::from_slice(bytes).map_err(|error| match error {
            HeaderSliceError::Len(error) => Error::Truncated {
                what: "IPv6 header",
                offset: 0,
                needed: error.required_len,
                found: bytes.len(),
            },
            HeaderSliceError::Content(HeaderError::UnexpectedVersion { version_number }) => Error::Invalid {
                field: "IP version",
                offset: 0,
                found: u32::from(version_number),
                expected: "6",
            },
        })?;
        let header = Self {
            source: slice.source_addr(),
            destination: slice.destination_addr(),
            next_header: slice.next_header().0,
            hop_limit: slice.hop_limit(),
            traffic_class: slice.traffic_class(),
            flow_label: slice.flow_label().value(),
            payload_len: slice.payload_length(),
        };
        Ok((header, bytes.get(usize::from(Self::LEN)..).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Ipv6Header = Ipv6Header {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
        next_header: 17,
        hop_limit: 63,
        traffic_class: 0xb9,
        flow_label: 0x12345,
        payload_len: 3,
    };

    #[test]
    fn a_header_has_the_layout_of_the_rfc() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        assert_eq!(bytes[..8], [0x6b, 0x91, 0x23, 0x45, 0, 3, 17, 63]);
        assert_eq!(bytes[8..24], HEADER.source.octets());
        assert_eq!(bytes[24..], HEADER.destination.octets());
        bytes.extend([1, 2, 3]);
        assert_eq!(Ipv6Header::parse(&bytes), Ok((HEADER, &[1, 2, 3][..])));
        bytes.extend([0; 20]);
        assert_eq!(Ipv6Header::parse(&bytes), Ok((HEADER, &[1, 2, 3][..])), "padding of the link");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        assert_eq!(
            Ipv6Header::parse(&bytes),
            Err(Error::Truncated { what: "IPv6 packet", offset: 0, needed: 43, found: 40 })
        );
        assert_eq!(
            Ipv6Header::parse(&bytes[..39]),
            Err(Error::Truncated { what: "IPv6 header", offset: 0, needed: 40, found: 39 })
        );
        bytes[0] = 0x45;
        assert!(matches!(
            Ipv6Header::parse(&bytes),
            Err(Error::Invalid { field: "IP version", found: 4, .. })
        ));
    }

    #[test]
    fn a_capable_packet_can_be_marked() {
        let mut header = Ipv6Header { traffic_class: ecn::CAPABLE, ..HEADER };
        assert!(header.is_ecn_capable() && !header.congestion_experienced());
        header.mark_congestion();
        assert!(header.congestion_experienced());
        assert!(!Ipv6Header::default().is_ecn_capable());
    }
}
