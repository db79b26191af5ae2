//! Packets as the agents see them and as they travel: which addresses stand where.

use std::net::Ipv4Addr;

use careof_mobility::v6::{Addresses, Transmit, TransmitPayload, Tunnel};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet, TooLong};
use careof_wire::tunnel::{
    Encapsulation, Ipv6EncapsulationError, Ipv6InIpv4Tunnel, Ipv6Tunnel, Origin, Tunnel as Ipv4Tunnel,
};
use careof_wire::udp::UdpHeader;
use careof_wire::{mip6, protocol};

/// The hop limit of the outer header of a tunnel.
pub(super) const TUNNEL_HOP_LIMIT: u8 = 64;
/// Next Header of Hop-by-Hop Options, which stand in front of everything else.
const HOP_BY_HOP: u8 = 0;

/// The addresses of a packet that has arrived.
pub(super) const fn addresses_of(packet: &Packet<'_>) -> Addresses {
    Addresses {
        home_address: packet.extensions.home_address,
        type_2_routing: packet.extensions.type_2_routing,
        ..Addresses::new(packet.header.source, packet.header.destination)
    }
}

/// A packet as upper layers are to see it: between the home addresses, without the headers that say where they are (RFC 6275 sections
/// 9.3.1 and 11.3.3). It takes the place of what is in `bytes`.
pub(super) fn between_home_addresses(packet: &Packet<'_>, bytes: &mut Vec<u8>) {
    let header = Ipv6Header { source: packet.source(), destination: packet.destination(), ..packet.header };
    bytes.clear();
    // It is shorter than it was.
    let _ = Packet::emit(&header, &Extensions::NONE, packet.protocol, packet.payload, bytes);
}

/// The tunnels of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tunnels {
    /// The one around the packet itself.
    pub(super) inner: Option<Tunnel>,
    /// The one around that, or around the packet: to the mobility anchor point.
    pub(super) outer: Option<Tunnel>,
}

impl Tunnels {
    pub(super) const fn one(tunnel: Tunnel) -> Self {
        Self { inner: Some(tunnel), outer: None }
    }

    pub(super) const fn of(addresses: &Addresses) -> Self {
        Self { inner: addresses.tunnel, outer: addresses.map_tunnel }
    }

    /// Without those inside.
    pub(super) fn outermost(self) -> Option<Tunnel> {
        self.outer.or(self.inner)
    }

    /// The one inside another.
    pub(super) fn nested(self) -> Option<Tunnel> {
        self.inner.filter(|_| self.outer.is_some())
    }
}

/// Why a packet of this host cannot travel as an agent has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsuitable {
    /// It is no packet of IPv6.
    Malformed,
    /// It begins with Hop-by-Hop Options, behind which the new headers would have to stand.
    HopByHop,
    /// It would be longer than a packet can be.
    TooLong,
}

impl From<TooLong> for Unsuitable {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

/// A packet of this host between home addresses, with the headers that bring it to where these are, but without its tunnel. It takes
/// the place of what is in `bytes`.
pub(super) fn with_addresses(
    packet: &[u8],
    addresses: &Addresses,
    bytes: &mut Vec<u8>,
) -> Result<(), Unsuitable> {
    let (header, payload) = Ipv6Header::parse(packet).map_err(|_| Unsuitable::Malformed)?;
    if header.next_header == HOP_BY_HOP {
        return Err(Unsuitable::HopByHop);
    }
    let next_header = header.next_header;
    let header = Ipv6Header { source: addresses.source, destination: addresses.destination, ..header };
    bytes.clear();
    Ok(Packet::emit(&header, &extensions_of(addresses), next_header, payload, bytes)?)
}

/// What an agent has to say, as a packet; without its tunnel.
pub(super) fn emit(transmit: &Transmit) -> Result<Vec<u8>, TooLong> {
    let addresses = &transmit.addresses;
    let header = Ipv6Header {
        source: addresses.source,
        destination: addresses.destination,
        hop_limit: transmit.hop_limit,
        ..Ipv6Header::default()
    };
    let protocol = match transmit.payload {
        TransmitPayload::Mobility(_) => mip6::PROTOCOL,
        TransmitPayload::Icmp(_) => protocol::ICMPV6,
    };
    let mut bytes = Vec::new();
    Packet::emit(&header, &extensions_of(addresses), protocol, transmit.payload.bytes(), &mut bytes)?;
    Ok(bytes)
}

const fn extensions_of(addresses: &Addresses) -> Extensions {
    Extensions {
        type_2_routing: addresses.type_2_routing,
        home_address: addresses.home_address,
        ..Extensions::NONE
    }
}

/// Whether a packet is of IPv4.
pub(super) fn is_ipv4(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 4)
}

/// A packet of either version in its tunnel through either, whole. It takes the place of what is in `bytes`. `identification` is that of
/// a header of IPv4 around it, which may be fragmented on its way.
pub(super) fn encapsulated(
    packet: &[u8],
    tunnel: Tunnel,
    identification: u16,
    bytes: &mut Vec<u8>,
) -> Result<(), Unsuitable> {
    if let Some((entry, exit)) = tunnel.ipv4_ends() {
        let ttl = TUNNEL_HOP_LIMIT;
        let front = if is_ipv4(packet) {
            let tunnel = Ipv4Tunnel { encapsulation: Encapsulation::IpInIp, entry, exit, ttl };
            tunnel.front(packet, Origin::Local, identification).ok()
        } else {
            Ipv6InIpv4Tunnel { entry, exit, ttl }.front(packet, Origin::Local, identification).ok()
        };
        let mut front = front.ok_or(Unsuitable::Malformed)?;
        // Routers may cut it, whatever the packet inside says, and the exit of the tunnel puts it together again.
        front.set_outer(identification, false);
        bytes.clear();
        bytes.extend_from_slice(front.bytes());
        bytes.extend_from_slice(packet.get(front.header_len()..).unwrap_or_default());
        return Ok(());
    }
    let Tunnel { entry, exit } = tunnel;
    let tunnel = Ipv6Tunnel { entry, exit, hop_limit: TUNNEL_HOP_LIMIT, encapsulation_limit: None };
    let front = tunnel.front(packet, Origin::Local).map_err(|error| match error {
        Ipv6EncapsulationError::TooLong { .. } => Unsuitable::TooLong,
        _ => Unsuitable::Malformed,
    })?;
    bytes.clear();
    bytes.extend_from_slice(front.bytes());
    bytes.extend_from_slice(packet.get(front.header_len()..).unwrap_or_default());
    Ok(())
}

/// A packet in UDP and IPv4 from a home agent (RFC 5555 section 4.1). It takes the place of what is in `bytes`.
pub(super) fn in_udp(
    packet: &[u8],
    (source, destination): (Ipv4Addr, Ipv4Addr),
    destination_port: u16,
    identification: u16,
    bytes: &mut Vec<u8>,
) -> Result<(), Unsuitable> {
    let fitting = |len: usize| u16::try_from(len).ok().filter(|len| *len <= UdpHeader::MAX_PAYLOAD_LEN);
    let len = fitting(packet.len()).ok_or(Unsuitable::TooLong)?;
    bytes.clear();
    Ipv4Header {
        source,
        destination,
        protocol: protocol::UDP,
        ttl: TUNNEL_HOP_LIMIT,
        identification,
        payload_len: UdpHeader::LEN + len,
        ..Ipv4Header::default()
    }
    .emit(bytes);
    UdpHeader { source_port: mip6::DSMIPV6_PORT, destination_port, payload_len: len }.emit(
        source,
        destination,
        packet,
        bytes,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::ipv6::Understood;
    use std::net::Ipv6Addr;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7);
    const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);

    fn udp(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let header = Ipv6Header {
            source,
            destination,
            hop_limit: 7,
            traffic_class: 0xb8,
            flow_label: 99,
            ..Ipv6Header::default()
        };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[1, 2, 3, 4, 5], &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_packet_arrives_between_home_addresses_as_it_left() {
        let ways = [
            (udp(HOME, PEER), Addresses::new(CARE_OF, PEER).with_home_address(HOME)),
            (udp(PEER, HOME), Addresses::new(PEER, CARE_OF).with_type_2_routing(HOME)),
        ];
        for (packet, way) in ways {
            let (mut travelling, mut got) = (vec![1, 2, 3], vec![4, 5, 6]);
            with_addresses(&packet, &way, &mut travelling).unwrap();
            assert_eq!(travelling.len(), packet.len() + 24);
            let arrived = Packet::parse(&travelling, Understood::MOBILE_IPV6).unwrap();
            assert_eq!(addresses_of(&arrived), way);
            between_home_addresses(&arrived, &mut got);
            assert_eq!(got, packet);
        }
    }

    /// RFC 5555 section 4.1: either version in a header of IPv4, which routers may cut whatever is inside.
    #[test]
    fn a_packet_of_either_version_travels_in_ipv4() {
        let (entry, exit) = (Ipv4Addr::new(198, 51, 100, 7), Ipv4Addr::new(192, 0, 2, 1));
        let tunnel = Tunnel::through_ipv4(entry, exit);
        let mut ipv4 = Vec::new();
        let header = Ipv4Header {
            source: Ipv4Addr::new(192, 0, 2, 7),
            destination: Ipv4Addr::new(203, 0, 113, 1),
            protocol: protocol::UDP,
            ttl: 9,
            dont_fragment: true,
            payload_len: 8,
            ..Ipv4Header::default()
        };
        header.emit(&mut ipv4);
        ipv4.extend([7; 8]);
        for (packet, number) in [(udp(HOME, PEER), protocol::IPV6), (ipv4, protocol::IP_IN_IP)] {
            let mut outer = vec![1, 2, 3];
            encapsulated(&packet, tunnel, 77, &mut outer).unwrap();
            let (header, payload) = Ipv4Header::parse(&outer).unwrap();
            assert_eq!((header.source, header.destination, header.protocol), (entry, exit, number));
            assert_eq!(
                (header.identification, header.dont_fragment, header.ttl),
                (77, false, TUNNEL_HOP_LIMIT)
            );
            assert_eq!(payload, packet);
        }
        let (mut outer, message) = (Vec::new(), udp(HOME, PEER));
        in_udp(&message, (exit, entry), 4000, 78, &mut outer).unwrap();
        let (header, payload) = Ipv4Header::parse(&outer).unwrap();
        assert_eq!((header.source, header.destination, header.protocol), (exit, entry, protocol::UDP));
        let (ports, inside) = UdpHeader::parse(exit, entry, payload).unwrap();
        assert_eq!((ports.source_port, ports.destination_port, inside), (4191, 4000, &message[..]));
        assert_eq!(in_udp(&vec![0; 65_536], (exit, entry), 1, 1, &mut outer), Err(Unsuitable::TooLong));
    }

    #[test]
    fn what_cannot_be_given_headers_is_refused() {
        let way = Addresses::new(CARE_OF, PEER).with_home_address(HOME);
        let mut bytes = Vec::new();
        let mut refused = |packet: &[u8]| with_addresses(packet, &way, &mut bytes).unwrap_err();
        assert_eq!(refused(&[0x45; 60]), Unsuitable::Malformed);
        let mut hop_by_hop = udp(HOME, PEER);
        hop_by_hop[6] = HOP_BY_HOP;
        assert_eq!(refused(&hop_by_hop), Unsuitable::HopByHop);
        let mut longest = udp(HOME, PEER);
        longest.resize(40 + 65_535, 0);
        longest[4..6].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(refused(&longest), Unsuitable::TooLong);
        let tunnel = Tunnel { entry: CARE_OF, exit: PEER };
        assert_eq!(encapsulated(&longest, tunnel, 1, &mut bytes), Err(Unsuitable::TooLong));
        encapsulated(&hop_by_hop, tunnel, 1, &mut bytes).unwrap();
        assert_eq!(bytes[40..], hop_by_hop, "a tunnel takes it as it is");
    }
}
