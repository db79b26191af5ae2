//! IPv6 within IPv4 (RFC 4213 section 3).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::encapsulation::emit;
use super::ipv6::checked_ipv6;
use super::{Admission, Front, Ipv6EncapsulationError, Origin};
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;
use crate::{Error, protocol};

/// A tunnel for IPv6 whose outer header is IPv4, as its entry sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6InIpv4Tunnel {
    /// The encapsulator's address.
    pub entry: Ipv4Addr,
    /// The decapsulator's address.
    pub exit: Ipv4Addr,
    /// The time to live that brings a packet to the exit, hops.
    pub ttl: u8,
}

impl Ipv6InIpv4Tunnel {
    /// Bytes the tunnel adds to a packet.
    pub const OVERHEAD: u16 = Ipv4Header::LEN;

    /// The MTU of the tunnel on a path with this MTU, bytes; at least 1280 (RFC 4213 section 3.2.2).
    #[must_use]
    pub const fn mtu(path_mtu: u16) -> u16 {
        let mtu = path_mtu.saturating_sub(Self::OVERHEAD);
        if mtu < Ipv6Header::MIN_MTU { Ipv6Header::MIN_MTU } else { mtu }
    }

    /// What becomes of a packet of `len` bytes on a path with this MTU (RFC 4213 section 3.2.2). Where it is
    /// [`Admission::Fragmented`], [`encapsulate`](Self::encapsulate) has to leave DF clear.
    #[must_use]
    pub fn admission(len: usize, path_mtu: u16) -> Admission {
        let mtu = Self::mtu(path_mtu);
        if len > usize::from(mtu) {
            return Admission::TooBig { mtu };
        }
        let fits = len <= usize::from(path_mtu.saturating_sub(Self::OVERHEAD));
        if fits { Admission::Whole } else { Admission::Fragmented }
    }

    /// Wraps `packet`. `identification` is that of the outer header, `dont_fragment` its DF bit: set where the path MTU of the
    /// tunnel is known (RFC 4213 section 3.2.2). The traffic class goes into the outer header.
    ///
    /// # Errors
    ///
    /// [`Ipv6EncapsulationError`]: the packet is dropped.
    pub fn encapsulate(
        &self,
        packet: &[u8],
        origin: Origin,
        identification: u16,
        dont_fragment: bool,
    ) -> Result<Vec<u8>, Ipv6EncapsulationError> {
        let (front, payload) = self.front_and_payload(packet, origin, identification, dont_fragment)?;
        let mut bytes = Vec::with_capacity(front.bytes().len() + payload.len());
        bytes.extend(front.bytes());
        bytes.extend(payload);
        Ok(bytes)
    }

    /// What has to stand in front of the payload of `packet` instead of its header, to wrap it as [`encapsulate`](Self::encapsulate)
    /// does but without a copy; the DF bit is clear ([`Front::set_outer`]).
    ///
    /// # Errors
    ///
    /// [`Ipv6EncapsulationError`]: the packet is dropped.
    pub fn front(
        &self,
        packet: &[u8],
        origin: Origin,
        identification: u16,
    ) -> Result<Front, Ipv6EncapsulationError> {
        self.front_and_payload(packet, origin, identification, false).map(|(front, _)| front)
    }

    fn front_and_payload<'a>(
        &self,
        packet: &'a [u8],
        origin: Origin,
        identification: u16,
        dont_fragment: bool,
    ) -> Result<(Front, &'a [u8]), Ipv6EncapsulationError> {
        let (header, payload) = Ipv6Header::parse(packet)?;
        let hop_limit = match origin {
            Origin::Forwarded => header.hop_limit.saturating_sub(1),
            Origin::Local => header.hop_limit,
        };
        if hop_limit == 0 {
            return Err(Ipv6EncapsulationError::HopLimitExpired);
        }
        let len = usize::from(Ipv6Header::LEN) + payload.len();
        let Some(payload_len) = u16::try_from(len).ok().filter(|&len| len <= Ipv4Header::MAX_PAYLOAD_LEN)
        else {
            return Err(Ipv6EncapsulationError::TooLong { len });
        };
        let mut front = Front::new(Ipv6Header::LEN.into());
        let outer = Ipv4Header {
            source: self.entry,
            destination: self.exit,
            protocol: protocol::IPV6,
            ttl: self.ttl,
            tos: header.traffic_class,
            identification,
            dont_fragment,
            payload_len,
            ..Ipv4Header::default()
        };
        emit(outer.to_etherparse(), &mut front);
        front.extend(Ipv6Header { hop_limit, ..header }.to_bytes());
        Ok((front, payload))
    }
}

/// An IPv6 packet that came out of a tunnel whose outer header is IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecapsulatedIpv6<'a> {
    /// The header it travelled the tunnel with; its source is the entry and its destination the exit.
    pub outer: Ipv4Header,
    /// The packet, its hop limit as it was in the tunnel.
    pub packet: &'a [u8],
}

/// Unwraps `datagram`, whatever tunnel it comes from. Whether that tunnel is one to take packets from is the caller's to judge, by
/// the outer header: RFC 4213 section 3.6 wants the source to be the configured entry.
///
/// # Errors
///
/// Another protocol than 41, a fragment (to be reassembled first), anything malformed outside or inside, an inner hop limit of 0,
/// an outer source that is no single node's (section 3.6), an inner source that cannot come out of a tunnel (section 3.6):
/// multicast, loopback, IPv4-compatible or IPv4-mapped.
pub fn decapsulate_ipv6_in_ipv4(datagram: &[u8]) -> Result<DecapsulatedIpv6<'_>, Error> {
    const SOURCE: usize = 12;
    let (outer, payload) = Ipv4Header::parse(datagram)?;
    let at = datagram.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    let invalid = |field, offset, found, expected| Err(Error::Invalid { field, offset, found, expected });
    if outer.protocol != protocol::IPV6 {
        return invalid("IPv4 Protocol", 9, u32::from(outer.protocol), "41");
    }
    if outer.is_fragment() {
        return invalid("Fragment Offset", 6, u32::from(outer.fragment_offset), "that of a whole datagram");
    }
    let source = outer.source;
    if source.is_unspecified() || source.is_loopback() || source.is_multicast() || source.is_broadcast() {
        return invalid("IPv4 Source Address", SOURCE, source.to_bits(), "a single node's");
    }
    let packet = checked_ipv6(payload).map_err(|error| error.shifted(at))?;
    let (header, _) = Ipv6Header::parse_start(packet)?;
    if !may_come_out(header.source) {
        let found = (header.source.to_bits() >> 96) as u32;
        return invalid("inner Source Address", at + 8, found, "one that can come out of a tunnel");
    }
    Ok(DecapsulatedIpv6 { outer, packet })
}

/// Whether `source` may be that of a packet out of a tunnel. The unspecified address may: of duplicate address detection.
fn may_come_out(source: Ipv6Addr) -> bool {
    let is_ipv4_compatible = source.segments()[..6] == [0; 6] && !source.is_unspecified();
    !(source.is_multicast() || is_ipv4_compatible || source.to_ipv4_mapped().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::{Extensions, Packet};

    const TUNNEL: Ipv6InIpv4Tunnel =
        Ipv6InIpv4Tunnel { entry: Ipv4Addr::new(10, 0, 0, 1), exit: Ipv4Addr::new(192, 0, 2, 9), ttl: 64 };
    const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);

    fn packet(source: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
        let header = Ipv6Header { source, hop_limit, traffic_class: 0x2a, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 8], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_packet_comes_out_as_it_went_in_but_for_a_hop() {
        let bytes = TUNNEL.encapsulate(&packet(SOURCE, 9), Origin::Forwarded, 77, true).unwrap();
        let out = decapsulate_ipv6_in_ipv4(&bytes).unwrap();
        assert_eq!(out.packet, packet(SOURCE, 8));
        assert_eq!((out.outer.source, out.outer.destination), (TUNNEL.entry, TUNNEL.exit));
        assert_eq!((out.outer.protocol, out.outer.ttl, out.outer.tos), (41, 64, 0x2a));
        assert_eq!((out.outer.identification, out.outer.dont_fragment), (77, true));
        let bytes = TUNNEL.encapsulate(&packet(SOURCE, 9), Origin::Local, 77, false).unwrap();
        assert_eq!(decapsulate_ipv6_in_ipv4(&bytes).unwrap().packet, packet(SOURCE, 9));
        assert_eq!(
            TUNNEL.encapsulate(&packet(SOURCE, 1), Origin::Forwarded, 1, true),
            Err(Ipv6EncapsulationError::HopLimitExpired)
        );
    }

    #[test]
    fn the_mtu_of_a_tunnel_is_at_least_1280() {
        use Admission::{Fragmented, TooBig, Whole};
        for (len, path_mtu, expected) in [
            (1480, 1500, Whole),
            (1481, 1500, TooBig { mtu: 1480 }),
            (1280, 1300, Whole),
            (1280, 1299, Fragmented),
            (1281, 1299, TooBig { mtu: 1280 }),
            (40, 576, Whole),
            (600, 576, Fragmented),
        ] {
            assert_eq!(Ipv6InIpv4Tunnel::admission(len, path_mtu), expected, "{len} {path_mtu}");
        }
    }

    #[test]
    fn sources_that_cannot_be_are_refused() {
        let with = |outer: Ipv4Addr, inner: Ipv6Addr| {
            let tunnel = Ipv6InIpv4Tunnel { entry: outer, ..TUNNEL };
            let bytes = tunnel.encapsulate(&packet(inner, 9), Origin::Local, 1, true).unwrap();
            decapsulate_ipv6_in_ipv4(&bytes).map(|_| ())
        };
        assert_eq!(with(TUNNEL.entry, Ipv6Addr::UNSPECIFIED), Ok(()));
        for outer in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255, 255, 255, 255]] {
            let error = with(outer.into(), SOURCE);
            assert!(matches!(error, Err(Error::Invalid { field: "IPv4 Source Address", .. })), "{outer:?}");
        }
        for inner in ["::1", "ff02::1", "::10.0.0.1", "::ffff:10.0.0.1"] {
            let error = with(TUNNEL.entry, inner.parse().unwrap());
            assert!(matches!(error, Err(Error::Invalid { field: "inner Source Address", offset: 28, .. })));
        }
    }

    #[test]
    fn what_is_no_such_tunnel_is_refused() {
        let bytes = TUNNEL.encapsulate(&packet(SOURCE, 9), Origin::Local, 1, true).unwrap();
        let mut other = Vec::new();
        let (header, payload) = Ipv4Header::parse(&bytes).unwrap();
        Ipv4Header { protocol: protocol::IP_IN_IP, ..header }.emit(&mut other);
        other.extend(payload);
        assert!(matches!(
            decapsulate_ipv6_in_ipv4(&other),
            Err(Error::Invalid { field: "IPv4 Protocol", found: 4, .. })
        ));
        let mut fragment = Vec::new();
        Ipv4Header { more_fragments: true, ..header }.emit(&mut fragment);
        fragment.extend(payload);
        assert!(matches!(
            decapsulate_ipv6_in_ipv4(&fragment),
            Err(Error::Invalid { field: "Fragment Offset", .. })
        ));
        let mut dead = bytes;
        dead[20 + 7] = 0;
        assert!(matches!(
            decapsulate_ipv6_in_ipv4(&dead),
            Err(Error::Invalid { field: "inner Hop Limit", offset: 27, .. })
        ));
    }
}
