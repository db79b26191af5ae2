//! How a datagram travels under other addresses than its own: in a tunnel, or by the headers of route optimisation.
use crate::header::{Header, IPV4_LEN};

use careof_mobility::v4;
use careof_plan::Locator;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header};
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, MultipathHeader};
use careof_wire::udp::UdpHeader;

/// What stands around a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// A tunnel over IPv4.
    Ipv4(Encapsulation),
    /// One of the paths of a tunnel over IPv4 that has several.
    Multipath,
    /// IPv6 in IPv6 (RFC 2473).
    Ipv6,
    /// IPv6 in IPv4 (RFC 4213).
    Ipv6InIpv4 {
        /// With a header of UDP between them, as messages of mobility travel there (RFC 5555 section 4.1).
        udp: bool,
    },
    /// None: the addresses of the datagram stand in extension headers of the only header there is (RFC 6275 sections 6.3 and 6.4).
    Extended {
        /// The source in a Home Address option.
        home_address: bool,
        /// The destination in a type 2 routing header.
        routing: bool,
    },
}

/// A tunnel, or what route optimisation has in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) wrapping: Wrapping,
    /// The source address that routers see.
    pub(crate) entry: Locator,
    /// The destination address that routers see.
    pub(crate) exit: Locator,
    /// Hops allowed on the way; of an extended datagram, and of one in minimal encapsulation, its own count.
    pub(crate) ttl: u8,
}

/// Bytes that a tunnel over several paths adds.
pub(crate) const MULTIPATH_OVERHEAD: u16 = Ipv4Header::LEN + MultipathHeader::LEN as u16;

/// A packet of a mobile node that has entered what it travels in, or come out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// It leaves the mobile node.
    pub(crate) sent: bool,
    /// It travels between mobile node and correspondent node, and not through the home agent's tunnel.
    pub(crate) straight: bool,
    /// Its length, bytes, without what it travels in.
    pub(crate) bytes: u64,
}

impl From<v4::Tunnel> for Passage {
    fn from(v4::Tunnel { encapsulation, entry, exit, ttl }: v4::Tunnel) -> Self {
        Self { wrapping: Wrapping::Ipv4(encapsulation), entry: entry.into(), exit: exit.into(), ttl }
    }
}

impl Passage {
    /// The same, where a tunnel through IPv4 has a header of UDP inside.
    pub(crate) const fn in_udp(self, udp: bool) -> Self {
        match self.wrapping {
            Wrapping::Ipv6InIpv4 { .. } => Self { wrapping: Wrapping::Ipv6InIpv4 { udp }, ..self },
            _ => self,
        }
    }

    /// Bytes it adds to a datagram from `source`.
    pub(crate) fn overhead(&self, source: Locator) -> u16 {
        match self.wrapping {
            Wrapping::Ipv4(encapsulation) => {
                let (entry, exit) = (self.entry.to_ipv4(), self.exit.to_ipv4());
                v4::Tunnel { encapsulation, entry, exit, ttl: self.ttl }.overhead(source.to_ipv4())
            }
            Wrapping::Multipath => MULTIPATH_OVERHEAD,
            Wrapping::Ipv6 => Ipv6Header::LEN,
            Wrapping::Ipv6InIpv4 { udp } => Ipv4Header::LEN + if udp { UdpHeader::LEN } else { 0 },
            Wrapping::Extended { home_address, routing } => {
                u16::from(home_address) * Extensions::HOME_ADDRESS_LEN
                    + u16::from(routing) * Extensions::TYPE_2_ROUTING_LEN
            }
        }
    }

    /// Whether the entry of a tunnel of IPv6 cuts its packet rather than tell the sender: none is told that less than the least MTU is too
    /// much (RFC 2473 section 7.1).
    pub(crate) const fn takes_in_fragments(&self, inner: &Header) -> bool {
        matches!(self.wrapping, Wrapping::Ipv6) && inner.total_len() <= Ipv6Header::MIN_MTU
    }

    /// The header of `inner` on this passage. A new datagram has the given identification.
    pub(crate) fn wrap(&self, inner: &Header, in_fragments: bool, identification: u16) -> Header {
        let Header { len, payload_len, .. } = *inner;
        let overhead = self.overhead(inner.source);
        let (protocol, len, payload_len, keeps) = match self.wrapping {
            Wrapping::Ipv4(encapsulation) => {
                let minimal = encapsulation == Encapsulation::Minimal;
                (encapsulation.protocol(), len, payload_len + overhead, minimal)
            }
            Wrapping::Multipath => {
                (protocol::GRE, IPV4_LEN, inner.total_len() + overhead - u16::from(IPV4_LEN), false)
            }
            Wrapping::Ipv6 => (protocol::IPV6, Ipv6Header::LEN as u8, inner.total_len(), false),
            Wrapping::Ipv6InIpv4 { udp } => {
                let protocol = if udp { protocol::UDP } else { protocol::IPV6 };
                (protocol, IPV4_LEN, inner.total_len() + overhead - u16::from(IPV4_LEN), false)
            }
            Wrapping::Extended { .. } => (inner.protocol, len + overhead as u8, payload_len, true),
        };
        Header {
            source: self.entry,
            destination: self.exit,
            protocol,
            ttl: if keeps { inner.ttl } else { self.ttl },
            tos: inner.tos,
            len,
            identification: if keeps { inner.identification } else { identification },
            fragment_offset: 0,
            payload_len,
            // Routers of IPv4 may cut what those of IPv6 may not (RFC 4213 section 3.2.1).
            dont_fragment: inner.dont_fragment
                && !in_fragments
                && !self.takes_in_fragments(inner)
                && !matches!(self.wrapping, Wrapping::Ipv6InIpv4 { .. }),
            more_fragments: false,
        }
    }
}
