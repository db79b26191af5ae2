//! What an assistant is shown of the bytes of a datagram.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet, fragment};
use careof_wire::tcp_edit::{self, ChecksumField};
use careof_wire::{Flags, IpHeader, Segment, SeqNumber, Timestamps, protocol};
use proptest::option;
use proptest::prelude::*;

use crate::{Assistant, Config, Fate, Place, ReadPacket, Replay, Towards};

const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
const OTHER_HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 8);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 9);

/// A care-of address.
const fn care_of(network: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, 7)
}

const SEGMENT: Segment = Segment {
    source_port: 40_000,
    destination_port: 80,
    seq: SeqNumber(7),
    ack: SeqNumber(9),
    flags: Flags::ACK,
    window: 500,
    mss: None,
    window_scale: None,
    sack_permitted: false,
    timestamps: Some(Timestamps { value: 1, echo: 2 }),
    sack: careof_wire::SackBlocks::EMPTY,
    payload_len: 5,
};

/// `SEGMENT` between these ends.
fn tcp(source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut tcp = Vec::new();
    SEGMENT.emit(source, destination, b"abcde", &mut tcp);
    tcp
}

fn datagram(source: Ipv6Addr, destination: Ipv6Addr, extensions: &Extensions, tcp: &[u8]) -> Vec<u8> {
    let header = Ipv6Header { source, destination, hop_limit: 60, flow_label: 9, ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    Packet::emit(&header, extensions, protocol::TCP, tcp, &mut bytes).unwrap();
    bytes
}

/// What is read if nothing stands in front of TCP.
fn between(source: Ipv6Addr, destination: Ipv6Addr, payload_len: usize) -> IpHeader {
    IpHeader::V6(Ipv6Header {
        source,
        destination,
        next_header: protocol::TCP,
        hop_limit: 60,
        flow_label: 9,
        payload_len: payload_len as u16,
        ..Ipv6Header::default()
    })
}

#[test]
fn a_datagram_of_ipv4_is_shown_as_it_is() {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
    let mut tcp = Vec::new();
    SEGMENT.emit(source, destination, b"abcde", &mut tcp);
    let payload_len = tcp.len() as u16;
    let header =
        Ipv4Header { source, destination, protocol: protocol::TCP, payload_len, ..Ipv4Header::default() };
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    bytes.extend(&tcp);
    let read = ReadPacket::of(&bytes).unwrap();
    assert_eq!((read.header, read.segment), (header.into(), Some(SEGMENT)));
    assert_eq!((read.is_opaque, read.payload_offset), (false, 20));
    assert_eq!(ReadPacket::of(&bytes[..30]), None);
    let fragment = Ipv4Header { more_fragments: true, ..header };
    let mut bytes = Vec::new();
    fragment.emit(&mut bytes);
    bytes.extend(&tcp);
    assert_eq!(ReadPacket::of(&bytes).unwrap().segment, None);
}

/// RFC 6275 sections 6.3 and 6.4: the home address takes the care-of address's place, as in the checksum.
#[test]
fn the_flow_is_known_by_the_home_address_whatever_mobile_ipv6_adds() {
    let home_address = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    let routing = Extensions { type_2_routing: Some(HOME), ..Extensions::NONE };
    let both = Extensions { home_address: Some(HOME), type_2_routing: Some(OTHER_HOME), ..Extensions::NONE };
    for (addresses, extensions, ends) in [
        ((HOME, PEER), Extensions::NONE, (HOME, PEER)),
        ((care_of(2), PEER), home_address, (HOME, PEER)),
        ((PEER, care_of(2)), routing, (PEER, HOME)),
        ((care_of(2), care_of(3)), both, (HOME, OTHER_HOME)),
    ] {
        let tcp = tcp(ends.0, ends.1);
        let mut bytes = datagram(addresses.0, addresses.1, &extensions, &tcp);
        let read = ReadPacket::of(&bytes).unwrap();
        assert_eq!(read.header, between(ends.0, ends.1, tcp.len()));
        assert_eq!((read.segment, read.is_opaque), (Some(SEGMENT), false));
        assert_eq!(read.payload_offset, 40 + usize::from(extensions.len()));
        assert_eq!(Segment::parse(ends.0, ends.1, &bytes[read.payload_offset..]).unwrap().0, SEGMENT);
        // What is changed there has the checksum of RFC 8200 section 8.1 afterwards.
        assert!(tcp_edit::set_window(&mut bytes[read.payload_offset..], 3, ChecksumField::Complete));
        let changed = Segment { window: 3, ..SEGMENT };
        assert_eq!(Segment::parse(ends.0, ends.1, &bytes[read.payload_offset..]).unwrap().0, changed);
    }
}

#[test]
fn what_else_stands_in_front_of_tcp_makes_it_opaque() {
    let (limit, alert) = (Some(4), Some(0));
    let tcp = tcp(HOME, PEER);
    for extensions in [
        Extensions { encapsulation_limit: limit, ..Extensions::NONE },
        Extensions { router_alert: alert, ..Extensions::NONE },
        Extensions { router_alert: alert, home_address: Some(HOME), ..Extensions::NONE },
    ] {
        let source = if extensions.home_address.is_some() { care_of(2) } else { HOME };
        let read = ReadPacket::of(&datagram(source, PEER, &extensions, &tcp)).unwrap();
        assert_eq!(read.header, between(HOME, PEER, tcp.len()));
        assert_eq!((read.segment, read.is_opaque), (Some(SEGMENT), true));
    }
    // An option that is not known, in the place of the Home Address.
    let home_address = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    let mut bytes = datagram(care_of(2), PEER, &home_address, &tcp);
    let at = bytes.iter().position(|byte| *byte == 201).unwrap();
    bytes[at] = 0x1e;
    let read = ReadPacket::of(&bytes).unwrap();
    assert!(read.is_opaque);
    assert_eq!(read.header.source(), IpAddr::V6(care_of(2)));
}

#[test]
fn fragments_and_what_is_not_tcp_show_no_segment() {
    let mut tcp = Vec::new();
    Segment { payload_len: 200, ..SEGMENT }.emit(HOME, PEER, &[7; 200], &mut tcp);
    let whole = datagram(HOME, PEER, &Extensions::NONE, &tcp);
    for piece in fragment(&whole, 128, 1).unwrap() {
        let read = ReadPacket::of(&piece).unwrap();
        assert_eq!((read.segment, read.header.source()), (None, IpAddr::V6(HOME)));
    }
    // ESP, and the Mobility Header.
    for protocol in [50, 135] {
        let mut bytes = whole.clone();
        bytes[6] = protocol;
        assert_eq!(ReadPacket::of(&bytes).unwrap().segment, None);
    }
    assert_eq!(ReadPacket::of(&[]), None);
    assert_eq!(ReadPacket::of(&[0x50; 60]), None);
}

/// A mobile node with route optimisation sends from one care-of address, and after a handover from another: the flow stays.
#[test]
fn packets_from_several_care_of_addresses_are_of_one_flow() {
    let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::MobileNode) };
    let mut assistant = Assistant::new(config).unwrap();
    let now = Instant::from_secs(1);
    for network in [2, 3] {
        let extensions = Extensions { home_address: Some(HOME), ..Extensions::NONE };
        let up = datagram(care_of(network), PEER, &extensions, &tcp(HOME, PEER));
        let read = ReadPacket::of(&up).unwrap();
        assert_eq!(assistant.handle_packet(now, Towards::Peer, None, &read.view(24)).fate, Fate::Pass);
    }
    let flows: Vec<_> = assistant.flows().map(|flow| flow.key).collect();
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].mobile, flows[0].peer), (IpAddr::V6(HOME), IpAddr::V6(PEER)));
}

/// A unicast routable address.
fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(|bits| Ipv6Addr::from_bits((bits >> 3) | (1 << 125)))
}

proptest! {
    #[test]
    fn any_packet_of_mobile_ipv6_is_shown_between_home_addresses(
        (source, destination) in (address(), address()),
        (home_address, type_2_routing) in (option::of(address()), option::of(address())),
        (router_alert, encapsulation_limit) in any::<(Option<u16>, Option<u8>)>(),
    ) {
        let extensions = Extensions { router_alert, type_2_routing, home_address, encapsulation_limit };
        let ends = (home_address.unwrap_or(source), type_2_routing.unwrap_or(destination));
        let tcp = tcp(ends.0, ends.1);
        let read = ReadPacket::of(&datagram(source, destination, &extensions, &tcp)).unwrap();
        prop_assert_eq!(read.header, between(ends.0, ends.1, tcp.len()));
        prop_assert_eq!(read.segment, Some(SEGMENT));
        prop_assert_eq!(read.is_opaque, router_alert.is_some() || encapsulation_limit.is_some());
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_looked_at(
        (version, bytes) in (prop_oneof![Just(0x45_u8), Just(0x60_u8), any::<u8>()], any::<Vec<u8>>()),
        (next_header, len) in (prop_oneof![Just(0_u8), Just(43), Just(44), Just(60), Just(6)], 0..100_u8),
    ) {
        let mut bytes = [&[version, 0, 0, 0, 0, len, next_header, 64][..], &[0x20; 32], &bytes].concat();
        let read = ReadPacket::of(&bytes);
        if let Some(read) = read {
            prop_assert!(read.payload_offset <= bytes.len());
            prop_assert!(read.header.total_len() >= read.header.header_len());
        }
        let is_whole = read.is_some_and(|read| bytes.len() == usize::from(read.header.total_len()));
        bytes.pop();
        prop_assert!(!is_whole || ReadPacket::of(&bytes).is_none(), "half a datagram is none");
    }
}
