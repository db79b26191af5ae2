use super::*;
use crate::protocol;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);

fn header(next_header: u8) -> Ipv6Header {
    Ipv6Header { source: SOURCE, destination: DESTINATION, next_header, ..Ipv6Header::default() }
}

fn emitted(extensions: &Extensions) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet::emit(&header(0), extensions, protocol::UDP, &[7; 8], &mut bytes).unwrap();
    bytes
}

/// A packet of which `rest` follows the header.
fn raw(destination: Ipv6Addr, next_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Ipv6Header { destination, payload_len: rest.len() as u16, ..header(next_header) }.emit(&mut bytes);
    bytes.extend(rest);
    bytes
}

fn parse(bytes: &[u8]) -> Result<Packet<'_>, PacketError> {
    Packet::parse(bytes, Understood::MOBILE_IPV6)
}

const fn problem_at(code: ParameterProblemCode, pointer: u32) -> PacketError {
    PacketError::ParameterProblem { code, pointer }
}

#[test]
fn every_combination_of_extensions_comes_back() {
    for bits in 0..16_u8 {
        let extensions = Extensions {
            router_alert: (bits & 1 != 0).then_some(0),
            type_2_routing: (bits & 2 != 0).then_some(HOME),
            home_address: (bits & 4 != 0).then_some(HOME),
            encapsulation_limit: (bits & 8 != 0).then_some(4),
        };
        let bytes = emitted(&extensions);
        assert_eq!(bytes.len(), 40 + usize::from(extensions.len()) + 8, "{extensions:?}");
        let packet = parse(&bytes).unwrap();
        assert_eq!(packet.extensions, extensions);
        assert_eq!((packet.protocol, packet.payload), (protocol::UDP, &[7; 8][..]));
        assert_eq!(packet.payload_offset, bytes.len() - 8);
        assert_eq!(bytes[packet.protocol_at], protocol::UDP);
        assert_eq!(extensions.is_empty(), bits == 0);
    }
}

#[test]
fn the_home_address_option_has_the_layout_of_the_rfc() {
    let bytes = emitted(&Extensions { home_address: Some(HOME), ..Extensions::NONE });
    assert_eq!(bytes[6], 60);
    // Alignment 8n+6: four bytes of padding in front.
    assert_eq!(bytes[40..48], [17, 2, 1, 2, 0, 0, 201, 16]);
    assert_eq!(bytes[48..64], HOME.octets());
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.source(), packet.destination()), (HOME, DESTINATION));
    // The encapsulation limit needs no room of its own beside it.
    let bytes =
        emitted(&Extensions { home_address: Some(HOME), encapsulation_limit: Some(9), ..Extensions::NONE });
    assert_eq!(bytes[40..48], [17, 2, 4, 1, 9, 0, 201, 16]);
}

#[test]
fn the_type_2_routing_header_has_the_layout_of_the_rfc() {
    let bytes = emitted(&Extensions { type_2_routing: Some(HOME), ..Extensions::NONE });
    assert_eq!(bytes[6], 43);
    assert_eq!(bytes[40..48], [17, 2, 2, 1, 0, 0, 0, 0]);
    assert_eq!(bytes[48..64], HOME.octets());
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.source(), packet.destination()), (SOURCE, HOME));
}

#[test]
fn the_encapsulation_limit_and_the_router_alert_have_the_layout_of_their_rfcs() {
    let bytes = emitted(&Extensions { encapsulation_limit: Some(4), ..Extensions::NONE });
    assert_eq!(bytes[40..48], [17, 0, 4, 1, 4, 1, 1, 0], "RFC 2473 section 5.1 has this very header");
    let bytes = emitted(&Extensions { router_alert: Some(0), ..Extensions::NONE });
    assert_eq!(bytes[6], 0);
    assert_eq!(bytes[40..48], [17, 0, 5, 2, 0, 0, 1, 0]);
}

#[test]
fn an_unknown_option_is_treated_as_its_type_says() {
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let with = |destination, kind| {
        let bytes = raw(destination, 60, &[59, 0, 1, 0, kind, 2, 0, 0]);
        Packet::parse(&bytes, Understood::MOBILE_IPV6).map(|packet| packet.protocol)
    };
    let told = Err(problem_at(ParameterProblemCode::Option, 44));
    let dropped = |kind| Err(PacketError::UnknownOption { kind, offset: 44 });
    assert_eq!(with(DESTINATION, 0x1e), Ok(59));
    assert_eq!(with(DESTINATION, 0x5e), dropped(0x5e));
    assert_eq!(with(DESTINATION, 0x9e), told);
    assert_eq!(with(DESTINATION, 0xde), told);
    assert_eq!(with(group, 0x9e), told);
    assert_eq!(with(group, 0xde), dropped(0xde));
}

#[test]
fn a_node_without_mobile_ipv6_says_that_it_does_not_understand() {
    let plain = |extensions| {
        let bytes = emitted(&extensions);
        Packet::parse(&bytes, Understood::PLAIN_IPV6).map(|packet| packet.extensions)
    };
    assert_eq!(
        plain(Extensions { home_address: Some(HOME), ..Extensions::NONE }),
        Err(problem_at(ParameterProblemCode::Option, 46))
    );
    assert_eq!(
        plain(Extensions { type_2_routing: Some(HOME), ..Extensions::NONE }),
        Err(problem_at(ParameterProblemCode::ErroneousField, 42))
    );
}

#[test]
fn a_routing_header_of_an_unknown_type_matters_only_with_segments_left() {
    let mut rest = [59, 0, 77, 0, 0, 0, 0, 0];
    assert_eq!(parse(&raw(DESTINATION, 43, &rest)).unwrap().protocol, 59);
    rest[3] = 1;
    assert_eq!(
        parse(&raw(DESTINATION, 43, &rest)),
        Err(problem_at(ParameterProblemCode::ErroneousField, 42))
    );
    // Type 0 is deprecated (RFC 5095): it is treated as one that is not known.
    rest[2] = 0;
    assert_eq!(
        parse(&raw(DESTINATION, 43, &rest)),
        Err(problem_at(ParameterProblemCode::ErroneousField, 42))
    );
}

#[test]
fn a_hop_by_hop_header_stands_first_or_not_at_all() {
    let rest = [0, 0, 1, 4, 0, 0, 0, 0, 59, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(parse(&raw(DESTINATION, 60, &rest)), Err(problem_at(ParameterProblemCode::NextHeader, 40)));
    assert_eq!(parse(&raw(DESTINATION, 0, &rest)), Err(problem_at(ParameterProblemCode::NextHeader, 40)));
    assert!(parse(&raw(DESTINATION, 0, &rest[8..])).is_ok());
}

#[test]
fn rules_of_the_home_address_option_and_the_type_2_routing_header_are_kept() {
    let field = |bytes: &[u8]| match parse(bytes) {
        Err(PacketError::Malformed(Error::Invalid { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    let hao = emitted(&Extensions { home_address: Some(HOME), ..Extensions::NONE });
    let rh2 = emitted(&Extensions { type_2_routing: Some(HOME), ..Extensions::NONE });
    let with = |bytes: &[u8], at: usize, values: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + values.len()].copy_from_slice(values);
        bytes
    };
    // Only a unicast routable address: here fe80::, ff02::, and zeros.
    assert_eq!(field(&with(&hao, 48, &[0xfe, 0x80])), "Home Address option");
    assert_eq!(field(&with(&hao, 48, &[0xff, 0x02])), "Home Address option");
    assert_eq!(field(&with(&hao, 48, &[0; 16])), "Home Address option");
    assert_eq!(field(&with(&hao, 47, &[15])), "Home Address option Length");
    assert_eq!(field(&with(&rh2, 48, &[0xfe, 0x80])), "type 2 routing header Home Address");
    assert_eq!(field(&with(&rh2, 43, &[2])), "type 2 routing header Segments Left");
    assert_eq!(field(&with(&rh2, 43, &[0])), "type 2 routing header Segments Left");
    assert_eq!(field(&with(&rh2, 41, &[3])), "type 2 routing header Hdr Ext Len");

    let (option, routing) = (&hao[40..64], &rh2[40..64]);
    let chain = |parts: [&[u8]; 2], next_headers: [u8; 2]| {
        let mut rest = parts.concat();
        rest[0] = next_headers[1];
        raw(DESTINATION, next_headers[0], &[&rest[..], &[7; 8]].concat())
    };
    assert_eq!(field(&chain([option, option], [60, 60])), "Home Address option");
    assert_eq!(field(&chain([routing, routing], [43, 43])), "type 2 routing header");
    assert_eq!(field(&chain([option, routing], [60, 43])), "type 2 routing header");
    assert!(parse(&chain([routing, option], [43, 60])).is_ok());
    // Behind a Fragment header it would be missing in all fragments but one.
    let atomic = [60, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(field(&chain([&atomic, option], [44, 60])), "Home Address option");
    assert_eq!(field(&chain([&atomic, &atomic], [44, 44])), "Fragment header");
}

#[test]
fn the_payload_of_a_fragment_is_not_walked_into() {
    // A first fragment whose payload would be a broken options header.
    let rest = [60, 0, 0, 1, 0, 0, 0, 1, 17, 9, 1, 4, 0, 0, 0, 0];
    let bytes = raw(DESTINATION, 44, &rest);
    let packet = parse(&bytes).unwrap();
    assert_eq!(packet.fragment.map(|fragment| fragment.more_fragments), Some(true));
    assert_eq!((packet.protocol, packet.payload), (60, &rest[8..]));
    assert_eq!(
        parse(&raw(DESTINATION, 44, &rest[..15])),
        Err(problem_at(ParameterProblemCode::ErroneousField, 4))
    );
}

#[test]
fn a_chain_has_an_end() {
    let options = [60, 0, 1, 4, 0, 0, 0, 0];
    let mut rest = options.repeat(8);
    rest[7 * 8] = 59;
    assert!(parse(&raw(DESTINATION, 60, &rest)).is_ok());
    let rest = options.repeat(1000);
    assert!(matches!(
        parse(&raw(DESTINATION, 60, &rest)),
        Err(PacketError::Malformed(Error::Invalid { field: "IPv6 extension headers", offset: 104, .. }))
    ));
    let truncated = |needed, found| {
        let error = Error::Truncated { what: "IPv6 extension header", offset: 40, needed, found };
        Err(PacketError::Malformed(error))
    };
    assert_eq!(parse(&raw(DESTINATION, 60, &[59, 1, 1, 4, 0, 0, 0, 0])), truncated(16, 8));
    assert_eq!(parse(&raw(DESTINATION, 60, &[59])), truncated(8, 1));
    assert_eq!(parse(&raw(DESTINATION, 44, &[])), truncated(8, 0));
}

#[test]
fn nothing_behind_the_last_header_is_nothing() {
    let bytes = raw(DESTINATION, 59, &[]);
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.protocol, packet.payload, packet.payload_offset), (59, &[][..], 40));
    // What a link padded the packet with is not part of it.
    let padded = [&bytes[..], &[1, 2, 3]].concat();
    assert_eq!(parse(&padded).unwrap().payload, []);
}

#[test]
fn more_than_65535_bytes_are_refused() {
    let mut bytes = Vec::new();
    let extensions = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    let result = Packet::emit(&header(0), &extensions, protocol::UDP, &[0; 65_512], &mut bytes);
    assert_eq!((result, bytes.len()), (Err(TooLong { len: 65_536 }), 0));
    Packet::emit(&header(0), &extensions, protocol::UDP, &[0; 65_511], &mut bytes).unwrap();
    assert!(parse(&bytes).is_ok());
}
