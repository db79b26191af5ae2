//! The headers of datagrams, of either IP version.

use core::net::IpAddr;

use careof_plan::{Locator, Plan};
use careof_wire::IpHeader;
use careof_wire::ipv4::{Ipv4Header, ecn};
use careof_wire::ipv6::Ipv6Header;

/// The header of a datagram, or of a fragment of one.
///
/// Over IPv6 `ttl` is the hop limit and `tos` the traffic class, no router fragments, and the two fields of fragments are those of a
/// fragment header, whose bytes are in `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) source: Locator,
    pub(crate) destination: Locator,
    /// What the payload is: a number of [`careof_wire::protocol`] or another.
    pub(crate) protocol: u8,
    /// Hops left.
    pub(crate) ttl: u8,
    /// DSCP and ECN.
    pub(crate) tos: u8,
    /// Bytes in front of the payload.
    pub(crate) len: u8,
    /// Tells the fragments of one datagram from those of another.
    pub(crate) identification: u16,
    /// Where the payload belongs in that of the whole datagram, bytes; a multiple of 8.
    pub(crate) fragment_offset: u16,
    /// Bytes of payload.
    pub(crate) payload_len: u16,
    /// No router may fragment it.
    pub(crate) dont_fragment: bool,
    /// This is not the last fragment.
    pub(crate) more_fragments: bool,
}

/// Hops and routers read this with each packet that is made.
const _: () = assert!(size_of::<Header>() == 20);

/// Bytes of an IPv4 header, as the simulator sends it.
pub(crate) const IPV4_LEN: u8 = Ipv4Header::LEN as u8;
/// Bytes of an IPv6 header without extension headers.
pub(crate) const IPV6_LEN: u8 = Ipv6Header::LEN as u8;

impl Default for Header {
    /// IPv4, nobody to nobody, with a time to live of 64.
    fn default() -> Self {
        Self::of_ipv4(&Ipv4Header::default())
    }
}

impl Header {
    /// The header that stands for an IPv4 one.
    pub(crate) const fn of_ipv4(header: &Ipv4Header) -> Self {
        Self {
            source: Locator::of_ipv4(header.source),
            destination: Locator::of_ipv4(header.destination),
            protocol: header.protocol,
            ttl: header.ttl,
            tos: header.tos,
            len: IPV4_LEN,
            identification: header.identification,
            fragment_offset: header.fragment_offset,
            payload_len: header.payload_len,
            dont_fragment: header.dont_fragment,
            more_fragments: header.more_fragments,
        }
    }

    /// The IPv4 header that this one stands for.
    pub(crate) const fn to_ipv4(self) -> Ipv4Header {
        Ipv4Header {
            source: self.source.to_ipv4(),
            destination: self.destination.to_ipv4(),
            protocol: self.protocol,
            ttl: self.ttl,
            tos: self.tos,
            identification: self.identification,
            dont_fragment: self.dont_fragment,
            more_fragments: self.more_fragments,
            fragment_offset: self.fragment_offset,
            payload_len: self.payload_len,
        }
    }

    /// The header that stands for one of either version.
    pub(crate) fn of_ip(header: &IpHeader, plan: &Plan) -> Self {
        match header {
            IpHeader::V4(header) => Self::of_ipv4(header),
            IpHeader::V6(header) => Self {
                source: plan.locate(header.source.into()),
                destination: plan.locate(header.destination.into()),
                protocol: header.next_header,
                ttl: header.hop_limit,
                tos: header.traffic_class,
                len: IPV6_LEN,
                payload_len: header.payload_len,
                dont_fragment: true,
                ..Self::default()
            },
        }
    }

    /// The header that this one stands for, without extension headers.
    pub(crate) fn to_ip(self, plan: &Plan) -> IpHeader {
        match (plan.address(self.source), plan.address(self.destination)) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => IpHeader::V6(Ipv6Header {
                source,
                destination,
                next_header: self.protocol,
                hop_limit: self.ttl,
                traffic_class: self.tos,
                flow_label: 0,
                payload_len: self.payload_len,
            }),
            _ => IpHeader::V4(self.to_ipv4()),
        }
    }

    /// Bytes of the datagram, headers included.
    #[inline]
    pub(crate) const fn total_len(&self) -> u16 {
        self.payload_len + self.len as u16
    }

    /// Whether it is an IPv6 header.
    pub(crate) const fn is_ipv6(&self) -> bool {
        self.len >= IPV6_LEN
    }

    /// Whether it is that of a part of a datagram.
    #[inline]
    pub(crate) const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Whether a router may mark the datagram instead of dropping it.
    #[inline]
    pub(crate) const fn is_ecn_capable(&self) -> bool {
        self.tos & ecn::MASK != 0
    }

    /// Whether the datagram met congestion (CE).
    #[inline]
    pub(crate) const fn congestion_experienced(&self) -> bool {
        self.tos & ecn::MASK == ecn::CONGESTION_EXPERIENCED
    }

    /// Marks the datagram: it met congestion.
    pub(crate) const fn mark_congestion(&mut self) {
        self.tos |= ecn::CONGESTION_EXPERIENCED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_header_is_what_it_was_after_its_time_in_the_simulator() {
        let header = Ipv4Header {
            source: [10, 0, 1, 2].into(),
            destination: [255; 4].into(),
            protocol: 17,
            ttl: 3,
            tos: 0b1011,
            identification: 0x1234,
            dont_fragment: true,
            more_fragments: true,
            fragment_offset: 800,
            payload_len: 1480,
        };
        let kept = Header::of_ipv4(&header);
        assert_eq!(kept.to_ipv4(), header);
        assert_eq!((kept.total_len(), kept.is_fragment(), kept.is_ipv6()), (1500, true, false));
        assert!(kept.congestion_experienced());
    }
}
