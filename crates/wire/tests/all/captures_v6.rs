//! What Mobile IPv6 nodes and tunnels of others have put on the wire.

use careof_wire::ipv6::{Packet, Understood, upper_layer_checksum};
use careof_wire::tunnel::{Inner, decapsulate_ipv6};
use careof_wire::udp::UdpHeader;
use careof_wire::{Segment, protocol};

use crate::captures::{captures, frames};

/// The IPv6 packet in the only frame of a capture; `None` where there are no captures.
fn packet(directory: &str, name: &str) -> Option<Vec<u8>> {
    let path = captures(directory)?.into_iter().find(|path| path.ends_with(name)).expect("the capture");
    let frame = frames(&path).1.into_iter().next().expect("a frame");
    assert_eq!(frame[12..14], [0x86, 0xdd]);
    Some(frame[14..].to_vec())
}

fn parse(bytes: &[u8]) -> Packet<'_> {
    Packet::parse(bytes, Understood::MOBILE_IPV6).expect("a packet")
}

/// Whether the checksum of the upper layer is right over the pseudo header of the addresses that count.
fn has_right_checksum(packet: &Packet<'_>) -> bool {
    upper_layer_checksum(packet.source(), packet.destination(), packet.protocol, packet.payload) == 0
}

/// The headers that were read are emitted byte for byte.
fn comes_back(bytes: &[u8]) {
    let packet = parse(bytes);
    let Packet { header, extensions, protocol, payload, .. } = packet;
    let mut emitted = Vec::new();
    Packet::emit(&header, &extensions, protocol, payload, &mut emitted).expect("it was a packet");
    assert_eq!(emitted, bytes[..emitted.len()]);
}

#[test]
fn the_home_address_counts_in_the_checksum() {
    for (name, right, protocol) in [
        ("zeek-ip6-hoa-tcp-good-chksum.pcap", true, protocol::TCP),
        ("zeek-ip6-hoa-tcp-bad-chksum.pcap", false, protocol::TCP),
        ("zeek-ipv6-mobile-hoa.pcap", true, protocol::UDP),
    ] {
        let Some(bytes) = packet("mip6", name) else { return };
        let packet = parse(&bytes);
        assert_eq!(packet.protocol, protocol, "{name}");
        assert_eq!(packet.extensions.home_address, Some("2001:78:1:32::1".parse().unwrap()));
        assert_eq!(
            packet.header.source,
            "2001:4f8:4:7:2e0:81ff:fe52:ffff".parse::<std::net::Ipv6Addr>().unwrap()
        );
        assert_eq!(has_right_checksum(&packet), right, "{name}");
        let (source, destination) = (packet.source(), packet.destination());
        if protocol == protocol::TCP {
            assert_eq!(Segment::parse(source, destination, packet.payload).is_ok(), right, "{name}");
        } else {
            assert!(UdpHeader::parse(source, destination, packet.payload).is_ok());
        }
        comes_back(&bytes);
    }
}

#[test]
fn the_destination_of_the_routing_header_counts_in_the_checksum() {
    let Some(bytes) = packet("mip6", "zeek-ipv6-mobile-routing.pcap") else { return };
    let packet = parse(&bytes);
    let home_address = packet.extensions.type_2_routing.expect("a type 2 routing header");
    assert_ne!(home_address, packet.header.destination);
    assert!(has_right_checksum(&packet));
    comes_back(&bytes);
}

#[test]
fn a_mobility_header_ends_the_chain() {
    for (name, right) in [("zeek-mip6-good-mh-chksum.pcap", true), ("zeek-mip6-bad-mh-chksum.pcap", false)] {
        let Some(bytes) = packet("mip6", name) else { return };
        let packet = parse(&bytes);
        assert_eq!(packet.protocol, protocol::MOBILITY_HEADER);
        assert_eq!(has_right_checksum(&packet), right, "{name}");
        comes_back(&bytes);
    }
}

#[test]
fn tunnels_of_others_are_read() {
    let Some(bytes) = packet("tunnels", "zeek-6in6.pcap") else { return };
    let out = decapsulate_ipv6(&bytes).expect("a tunnel");
    assert_eq!(out.inner, Inner::Ipv6);
    let inner = parse(out.datagram);
    assert_eq!(inner.header.source, "dead::beef".parse::<std::net::Ipv6Addr>().unwrap());
    assert_eq!(inner.protocol, protocol::UDP);
    assert!(has_right_checksum(&inner));

    let Some(bytes) = packet("tunnels", "zeek-4in6.pcap") else { return };
    let out = decapsulate_ipv6(&bytes).expect("a tunnel");
    assert_eq!(out.inner, Inner::Ipv4);
    let (header, _) = careof_wire::ipv4::Ipv4Header::parse(out.datagram).expect("a datagram");
    assert_eq!((header.source, header.protocol), ([70, 55, 213, 211].into(), protocol::TCP));
}
