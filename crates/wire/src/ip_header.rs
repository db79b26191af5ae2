//! A header of either version of IP.

use core::net::IpAddr;

use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;

/// The header of a datagram, for whoever looks at datagrams of both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpHeader {
    /// Of IPv4.
    V4(Ipv4Header),
    /// Of IPv6.
    V6(Ipv6Header),
}

impl IpHeader {
    /// Source address.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        match self {
            Self::V4(header) => IpAddr::V4(header.source),
            Self::V6(header) => IpAddr::V6(header.source),
        }
    }

    /// Destination address.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        match self {
            Self::V4(header) => IpAddr::V4(header.destination),
            Self::V6(header) => IpAddr::V6(header.destination),
        }
    }

    /// Bytes of the header without options or extension headers: 20 or 40.
    #[must_use]
    pub const fn header_len(&self) -> u16 {
        match self {
            Self::V4(_) => Ipv4Header::LEN,
            Self::V6(_) => Ipv6Header::LEN,
        }
    }

    /// Bytes of the datagram; 65535 where one of IPv6 has more.
    #[must_use]
    pub const fn total_len(&self) -> u16 {
        match self {
            Self::V4(header) => header.total_len(),
            Self::V6(header) => header.payload_len.saturating_add(Ipv6Header::LEN),
        }
    }

    /// Whether only its sender may fragment the datagram: always with IPv6 (RFC 8200 section 4.5), with IPv4 where DF is set.
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        match self {
            Self::V4(header) => header.dont_fragment,
            Self::V6(_) => true,
        }
    }

    /// The type of service or traffic class: DSCP and ECN.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        match self {
            Self::V4(header) => header.tos,
            Self::V6(header) => header.traffic_class,
        }
    }
}

impl From<Ipv4Header> for IpHeader {
    fn from(header: Ipv4Header) -> Self {
        Self::V4(header)
    }
}

impl From<Ipv6Header> for IpHeader {
    fn from(header: Ipv6Header) -> Self {
        Self::V6(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_packet_of_ipv6_is_longer_than_can_be_told() {
        let of =
            |payload_len| IpHeader::from(Ipv6Header { payload_len, ..Ipv6Header::default() }).total_len();
        assert_eq!((of(0), of(1_240), of(u16::MAX)), (40, 1_280, u16::MAX));
        let header = Ipv4Header { payload_len: 1_240, ..Ipv4Header::default() };
        assert_eq!(IpHeader::from(header).total_len(), 1_260);
    }
}
