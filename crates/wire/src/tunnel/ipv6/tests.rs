use core::net::Ipv4Addr;

use super::*;

const TUNNEL: Ipv6Tunnel = Ipv6Tunnel {
    entry: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
    exit: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9),
    hop_limit: 64,
    encapsulation_limit: None,
};
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7);

fn packet(source: Ipv6Addr, hop_limit: u8, extensions: &Extensions) -> Vec<u8> {
    let header = Ipv6Header {
        source,
        destination: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5),
        hop_limit,
        traffic_class: 0x2a,
        flow_label: 9,
        ..Ipv6Header::default()
    };
    let mut bytes = Vec::new();
    Packet::emit(&header, extensions, protocol::UDP, &[7; 8], &mut bytes).unwrap();
    bytes
}

fn plain(hop_limit: u8) -> Vec<u8> {
    packet(SENDER, hop_limit, &Extensions::NONE)
}

fn datagram(ttl: u8) -> Vec<u8> {
    let (source, destination) = (Ipv4Addr::new(198, 51, 100, 7), Ipv4Addr::new(10, 0, 0, 5));
    let protocol = protocol::UDP;
    let mut bytes = Vec::new();
    let header =
        Ipv4Header { source, destination, protocol, ttl, tos: 0x2a, payload_len: 8, ..Ipv4Header::default() };
    header.emit(&mut bytes);
    bytes.extend([7; 8]);
    bytes
}

#[test]
fn a_packet_comes_out_as_it_went_in_but_for_a_hop() {
    for encapsulation_limit in [None, Some(4)] {
        let tunnel = Ipv6Tunnel { encapsulation_limit, ..TUNNEL };
        for (inner, went_in, comes_out) in
            [(Inner::Ipv6, plain(9), plain(8)), (Inner::Ipv4, datagram(9), datagram(8))]
        {
            let bytes = tunnel.encapsulate(&went_in, Origin::Forwarded).unwrap();
            assert_eq!(bytes.len(), went_in.len() + usize::from(tunnel.overhead()));
            let out = decapsulate_ipv6(&bytes).unwrap();
            assert_eq!((out.inner, out.datagram), (inner, &comes_out[..]));
            assert_eq!((out.outer.source, out.outer.destination), (TUNNEL.entry, TUNNEL.exit));
            assert_eq!((out.outer.hop_limit, out.outer.traffic_class), (64, 0x2a));
            assert_eq!(out.extensions.encapsulation_limit, encapsulation_limit);
            let bytes = tunnel.encapsulate(&went_in, Origin::Local).unwrap();
            assert_eq!(decapsulate_ipv6(&bytes).unwrap().datagram, went_in);
        }
    }
}

#[test]
fn the_front_and_the_payload_make_what_encapsulation_makes() {
    let tunnel = Ipv6Tunnel { encapsulation_limit: Some(4), ..TUNNEL };
    for went_in in [plain(9), datagram(9)] {
        let front = tunnel.front(&went_in, Origin::Forwarded).unwrap();
        let together = [front.bytes(), &went_in[front.header_len()..]].concat();
        assert_eq!(tunnel.encapsulate(&went_in, Origin::Forwarded), Ok(together));
    }
}

#[test]
fn a_packet_that_has_used_up_its_hops_does_not_enter() {
    for (last, used_up) in [(plain(1), plain(0)), (datagram(1), datagram(0))] {
        let expired = Err(Ipv6EncapsulationError::HopLimitExpired);
        assert_eq!(TUNNEL.encapsulate(&last, Origin::Forwarded), expired);
        assert!(TUNNEL.encapsulate(&last, Origin::Local).is_ok());
        assert_eq!(TUNNEL.encapsulate(&used_up, Origin::Local), expired);
    }
}

#[test]
fn a_packet_that_comes_back_to_its_source_does_not_enter() {
    let bytes = packet(TUNNEL.entry, 9, &Extensions::NONE);
    assert_eq!(TUNNEL.encapsulate(&bytes, Origin::Forwarded), Err(Ipv6EncapsulationError::SourceIsEntry));
    assert!(TUNNEL.encapsulate(&bytes, Origin::Local).is_ok());
}

#[test]
fn the_encapsulation_limit_counts_down_through_nested_tunnels() {
    let tunnel = Ipv6Tunnel { encapsulation_limit: Some(2), ..TUNNEL };
    // Tunnels behind the first have no limit of their own.
    let others = Ipv6Tunnel { entry: TUNNEL.exit, exit: SENDER, ..TUNNEL };
    let mut bytes = tunnel.encapsulate(&plain(9), Origin::Forwarded).unwrap();
    for left in [1, 0] {
        bytes = others.encapsulate(&bytes, Origin::Local).unwrap();
        assert_eq!(decapsulate_ipv6(&bytes).unwrap().extensions.encapsulation_limit, Some(left));
    }
    let error = others.encapsulate(&bytes, Origin::Local).unwrap_err();
    assert_eq!(error, Ipv6EncapsulationError::EncapsulationLimit { pointer: 44 });
    assert_eq!(error.parameter_problem(), Some((ParameterProblemCode::ErroneousField, 44)));
    // Wherever the limit stands.
    let extensions =
        Extensions { home_address: Some(SENDER), encapsulation_limit: Some(0), ..Extensions::NONE };
    let extensions = Extensions { router_alert: Some(0), ..extensions };
    let error = TUNNEL.encapsulate(&packet(SENDER, 9, &extensions), Origin::Forwarded).unwrap_err();
    assert_eq!(error, Ipv6EncapsulationError::EncapsulationLimit { pointer: 52 });
}

#[test]
fn no_source_of_ipv6_is_told_of_less_than_1280_bytes() {
    use Admission::{Fragmented, TooBig, Whole};
    let limited = Ipv6Tunnel { encapsulation_limit: Some(4), ..TUNNEL };
    assert_eq!((TUNNEL.mtu(1500), limited.mtu(1500), TUNNEL.mtu(20)), (1460, 1452, 0));
    let (v6, v4, mut whole_v4) = (plain(9), datagram(9), datagram(9));
    whole_v4[6] |= 0x40;
    for (bytes, len, path_mtu, expected) in [
        (&v6, 1460, 1500, Whole),
        (&v6, 1461, 1500, TooBig { mtu: 1460 }),
        (&v6, 1280, 1300, Fragmented),
        (&v6, 1281, 1300, TooBig { mtu: 1280 }),
        (&v4, 1460, 1500, Whole),
        (&v4, 1461, 1500, Fragmented),
        (&whole_v4, 1461, 1500, TooBig { mtu: 1460 }),
        (&whole_v4, 1280, 1300, TooBig { mtu: 1260 }),
    ] {
        assert_eq!(TUNNEL.admission(bytes, len, path_mtu), expected, "{len} {path_mtu}");
    }
}

#[test]
fn what_is_no_such_tunnel_is_refused() {
    let field = |bytes: &[u8]| match decapsulate_ipv6(bytes) {
        Err(PacketError::Malformed(Error::Invalid { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(&plain(9)), "Next Header");
    let bytes = TUNNEL.encapsulate(&plain(9), Origin::Local).unwrap();
    let mut long = Vec::new();
    let header = Ipv6Header { source: SENDER, ..Ipv6Header::default() };
    Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 100], &mut long).unwrap();
    let long = TUNNEL.encapsulate(&long, Origin::Local).unwrap();
    let fragments = crate::ipv6::fragment(&long, 40 + 8 + 48, 1).unwrap();
    assert_eq!(field(&fragments[0]), "Fragment Offset");
    let mut dead = bytes.clone();
    dead[40 + 7] = 0;
    assert_eq!(field(&dead), "inner Hop Limit");
    let mut dead = TUNNEL.encapsulate(&datagram(9), Origin::Local).unwrap();
    dead[40 + 8] = 0;
    assert!(matches!(
        decapsulate_ipv6(&dead),
        Err(PacketError::Malformed(Error::Checksum { offset: 50, .. }))
    ));
    let mut short = bytes;
    short[45] += 1;
    assert!(matches!(
        decapsulate_ipv6(&short),
        Err(PacketError::Malformed(Error::Truncated { offset: 40, needed: 49, found: 48, .. }))
    ));
}

#[test]
fn more_than_65535_bytes_are_refused() {
    let header = Ipv6Header { source: SENDER, hop_limit: 9, ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[0; 65_496], &mut bytes).unwrap();
    assert_eq!(
        TUNNEL.encapsulate(&bytes, Origin::Local),
        Err(Ipv6EncapsulationError::TooLong { len: 65_536 })
    );
}
