//! The UDP header (RFC 768).

use alloc::vec::Vec;

use etherparse::UdpHeaderSlice;

use crate::{Error, IpAddress, checksum, protocol};

const LENGTH: usize = 4;
const CHECKSUM: usize = 6;

/// A UDP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UdpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes of payload, [`UdpHeader::MAX_PAYLOAD_LEN`] at most.
    pub payload_len: u16,
}

impl UdpHeader {
    /// Bytes of the header.
    pub const LEN: u16 = 8;
    /// The most payload that fits an IPv4 datagram, bytes.
    pub const MAX_PAYLOAD_LEN: u16 = crate::ipv4::Ipv4Header::MAX_PAYLOAD_LEN - Self::LEN;

    /// Appends the header, with its checksum, and the payload.
    pub fn emit<A: IpAddress>(&self, source: A, destination: A, payload: &[u8], bytes: &mut Vec<u8>) {
        debug_assert_eq!(payload.len(), usize::from(self.payload_len), "the header tells another length");
        debug_assert!(self.payload_len <= Self::MAX_PAYLOAD_LEN, "longer than an IPv4 datagram");
        let mut header = etherparse::UdpHeader {
            source_port: self.source_port,
            destination_port: self.destination_port,
            length: self.payload_len.saturating_add(Self::LEN),
            checksum: 0,
        };
        let sum = checksum::pseudo_header(source, destination, protocol::UDP, usize::from(header.length));
        let sum = sum.add_slice(&header.to_bytes()).add_slice(payload);
        // Zero would say that there is no checksum; minus zero is the same sum.
        header.checksum = match checksum::finish(&sum) {
            0 => 0xffff,
            sum => sum,
        };
        bytes.extend(header.to_bytes());
        bytes.extend(payload);
    }

    /// Reads the payload of an IP datagram from `source` to `destination`: the header and its payload.
    ///
    /// Over IPv4 a checksum of zero says that the sender computed none, and is accepted (RFC 1122 section 4.1.3.4); it
    /// is the invalid one that condemns a registration (RFC 5944 sections 3.6.2.1 and 3.7.2.1). Over IPv6 it is wrong (RFC 8200
    /// section 8.1), and the addresses are those of [`Packet::source`](crate::ipv6::Packet::source) and [`Packet::destination`](crate::ipv6::Packet::destination).
    ///
    /// # Errors
    ///
    /// A Length below 8 or beyond the datagram, or a wrong checksum.
    pub fn parse<A: IpAddress>(source: A, destination: A, bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let truncated =
            |needed| Error::Truncated { what: "UDP datagram", offset: 0, needed, found: bytes.len() };
        let header = UdpHeaderSlice::from_slice(bytes).map_err(|error| truncated(error.required_len))?;
        let Some(payload_len) = header.length().checked_sub(Self::LEN) else {
            return Err(Error::Invalid {
                field: "UDP Length",
                offset: LENGTH,
                found: u32::from(header.length()),
                expected: "8 or more",
            });
        };
        let Some(datagram) = bytes.get(..usize::from(header.length())) else {
            return Err(truncated(usize::from(header.length())));
        };
        if header.checksum() != 0 || !A::MAY_OMIT_UDP_CHECKSUM {
            let sum = checksum::pseudo_header(source, destination, protocol::UDP, datagram.len());
            checksum::verify(&sum.add_slice(datagram), "UDP", CHECKSUM, header.checksum())?;
        }
        let (source_port, destination_port) = (header.source_port(), header.destination_port());
        let payload = datagram.get(usize::from(Self::LEN)..).unwrap_or_default();
        Ok((Self { source_port, destination_port, payload_len }, payload))
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const HEADER: UdpHeader = UdpHeader { source_port: 1024, destination_port: 434, payload_len: 3 };

    fn emitted() -> Vec<u8> {
        let mut bytes = Vec::new();
        HEADER.emit(A, B, &[1, 2, 3], &mut bytes);
        bytes
    }

    #[test]
    fn a_datagram_has_the_layout_of_the_rfc() {
        let mut bytes = emitted();
        // Sums: pseudo header 0x141f, header 0x05bd, payload 0x0402.
        assert_eq!(bytes, [4, 0, 1, 178, 0, 11, 0xe2, 0x21, 1, 2, 3]);
        bytes.push(0);
        assert_eq!(UdpHeader::parse(A, B, &bytes), Ok((HEADER, &[1, 2, 3][..])));
    }

    #[test]
    fn a_checksum_of_zero_is_accepted_and_a_wrong_one_is_not() {
        let mut bytes = emitted();
        bytes[6..8].fill(0);
        assert!(UdpHeader::parse(A, B, &bytes).is_ok());
        bytes[7] = 1;
        assert!(matches!(UdpHeader::parse(A, B, &bytes), Err(Error::Checksum { what: "UDP", found: 1, .. })));
        assert!(UdpHeader::parse(A, A, &emitted()).is_err());
    }

    #[test]
    fn over_ipv6_a_checksum_of_zero_is_wrong() {
        let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        let mut bytes = Vec::new();
        HEADER.emit(a, b, &[1, 2, 3], &mut bytes);
        assert_eq!(UdpHeader::parse(a, b, &bytes), Ok((HEADER, &[1, 2, 3][..])));
        assert_eq!(crate::ipv6::upper_layer_checksum(a, b, protocol::UDP, &bytes), 0);
        bytes[6..8].fill(0);
        assert!(matches!(UdpHeader::parse(a, b, &bytes), Err(Error::Checksum { what: "UDP", found: 0, .. })));
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_minus_zero() {
        let mut bytes = Vec::new();
        let header = UdpHeader { source_port: 0, destination_port: 0, payload_len: 2 };
        // 17 + 10 + 10 = 37 = 0x25 of pseudo header and Length.
        header.emit(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED, &[0xff, 0xda], &mut bytes);
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        assert!(UdpHeader::parse(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED, &bytes).is_ok());
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut bytes = emitted();
        bytes[5] = 7;
        assert!(matches!(
            UdpHeader::parse(A, B, &bytes),
            Err(Error::Invalid { field: "UDP Length", offset: 4, found: 7, .. })
        ));
        bytes[5] = 12;
        assert_eq!(
            UdpHeader::parse(A, B, &bytes),
            Err(Error::Truncated { what: "UDP datagram", offset: 0, needed: 12, found: 11 })
        );
    }
}
