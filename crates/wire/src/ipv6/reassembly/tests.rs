use core::net::Ipv6Addr;

use super::*;
use crate::ipv6::extension_header::kind;
use crate::ipv6::{Extensions, Packet, fragment};
use crate::protocol;

const HEADER: Ipv6Header = Ipv6Header {
    source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    next_header: 0,
    hop_limit: 64,
    traffic_class: 0,
    flow_label: 0,
    payload_len: 0,
};

fn reassembler() -> Reassembler {
    Reassembler::new(ReassemblyLimits::default())
}

fn packet(extensions: &Extensions, len: u16) -> Vec<u8> {
    let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let mut bytes = Vec::new();
    Packet::emit(&HEADER, extensions, protocol::UDP, &payload, &mut bytes).unwrap();
    bytes
}

fn piece(offset: u16, payload: &[u8], more_fragments: bool) -> Vec<u8> {
    let fragment = FragmentHeader { next_header: 254, offset, more_fragments, identification: 7 };
    let mut bytes = Vec::new();
    let payload = [&fragment.to_bytes(), payload].concat();
    Packet::emit(&HEADER, &Extensions::NONE, 44, &payload, &mut bytes).unwrap();
    bytes
}

/// Every fragment is accounted for.
#[track_caller]
fn check_conservation(reassembler: &Reassembler, handed_over: u64) {
    let c = reassembler.counters();
    let fates = c.fragments_reassembled
        + c.dropped_duplicate
        + c.dropped_inconsistent
        + c.dropped_no_room
        + c.dropped_timeout
        + c.dropped_malformed;
    assert_eq!(fates + reassembler.fragments_waiting() as u64, handed_over, "{c:?}");
}

#[test]
fn a_packet_with_as_many_headers_as_may_be_is_cut_and_made_whole() {
    // Padding of a whole header each time (RFC 8200 section 4.2).
    let empty_options = |next_header: u8| [next_header, 0, 1, 4, 0, 0, 0, 0];
    let options = (1..ExtensionHeaders::MAX).flat_map(|_| empty_options(kind::DESTINATION));
    let mut payload: Vec<u8> = options.chain(empty_options(protocol::UDP)).collect();
    payload.resize(900, 0);
    let mut bytes = Vec::new();
    Packet::emit(&HEADER, &Extensions::NONE, kind::DESTINATION, &payload, &mut bytes).unwrap();
    let fragments = fragment(&bytes, 600, 9).unwrap();
    let mut reassembler = reassembler();
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[0]), Ok(None));
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[1]), Ok(Some(bytes)));
    check_conservation(&reassembler, 2);
}

#[test]
fn fragments_in_any_order_make_the_packet() {
    let home = Some(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5));
    for extensions in [
        Extensions::NONE,
        Extensions { home_address: home, ..Extensions::NONE },
        Extensions { type_2_routing: home, encapsulation_limit: Some(3), ..Extensions::NONE },
    ] {
        let bytes = packet(&extensions, 900);
        let fragments = fragment(&bytes, 376, 9).unwrap();
        let count = fragments.len();
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut reassembler = reassembler();
            let mut whole = None;
            for at in order.into_iter().filter(|&at| at < count) {
                assert_eq!(whole, None);
                whole = reassembler.handle_fragment(Instant::ZERO, &fragments[at]).unwrap();
            }
            assert_eq!(whole.as_ref(), Some(&bytes));
            assert_eq!(reassembler.next_timeout(), None);
            check_conservation(&reassembler, count as u64);
        }
    }
}

#[test]
fn a_packet_without_a_fragment_header_passes() {
    let bytes = packet(&Extensions::NONE, 100);
    assert_eq!(reassembler().handle_fragment(Instant::ZERO, &bytes), Ok(Some(bytes)));
}

#[test]
fn an_atomic_fragment_is_whole_whatever_waits_under_its_identification() {
    let mut reassembler = reassembler();
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(0, &[1; 8], true)), Ok(None));
    let whole = reassembler.handle_fragment(Instant::ZERO, &piece(0, &[2; 3], false)).unwrap().unwrap();
    let (header, payload) = Ipv6Header::parse(&whole).unwrap();
    assert_eq!((header.next_header, payload), (254, &[2; 3][..]));
    assert_eq!(reassembler.fragments_waiting(), 1);
    let whole = reassembler.handle_fragment(Instant::ZERO, &piece(8, &[1; 8], false)).unwrap().unwrap();
    assert_eq!(whole[40..], [1; 16]);
    // Even with nothing in it.
    assert!(reassembler.handle_fragment(Instant::ZERO, &piece(0, &[], false)).unwrap().is_some());
}

#[test]
fn overlapping_fragments_drop_the_packet_and_exact_duplicates_do_not() {
    for (first, second) in [
        (piece(0, &[1; 16], true), piece(8, &[2; 16], true)),
        (piece(8, &[1; 16], true), piece(0, &[2; 16], true)),
        (piece(0, &[1; 8], true), piece(0, &[2; 8], true)),
        (piece(8, &[1; 8], false), piece(16, &[1; 8], true)),
    ] {
        let mut reassembler = reassembler();
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &first), Ok(None));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &second), Ok(None));
        assert_eq!(reassembler.counters().dropped_inconsistent, 2, "{first:?} {second:?}");
        assert_eq!(reassembler.next_timeout(), None);
        check_conservation(&reassembler, 2);
    }
    let mut reassembler = reassembler();
    for _ in 0..2 {
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(0, &[1; 8], true)), Ok(None));
    }
    assert_eq!(reassembler.counters().dropped_duplicate, 1);
    assert!(reassembler.handle_fragment(Instant::ZERO, &piece(8, &[1; 8], false)).unwrap().is_some());
    check_conservation(&reassembler, 3);
}

#[test]
fn the_next_header_of_the_first_fragment_counts() {
    let mut reassembler = reassembler();
    let mut last = piece(8, &[1; 8], false);
    last[40] = 253;
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &last), Ok(None));
    let whole = reassembler.handle_fragment(Instant::ZERO, &piece(0, &[1; 8], true)).unwrap().unwrap();
    assert_eq!(Ipv6Header::parse(&whole).unwrap().0.next_header, 254);
}

#[test]
fn a_first_fragment_without_the_whole_chain_is_refused() {
    let chain = |next_header: u8, payload: &[u8]| {
        let mut bytes = piece(0, payload, true);
        bytes[40] = next_header;
        bytes
    };
    let problem =
        Err(PacketError::ParameterProblem { code: ParameterProblemCode::IncompleteHeaderChain, pointer: 0 });
    let mut reassembler = reassembler();
    // 16 of 20 bytes of TCP; a destination options header of 16 bytes, half of it; one without UDP behind it.
    let options = [protocol::UDP, 0, 1, 4, 0, 0, 0, 0];
    for bytes in [
        chain(protocol::TCP, &[0; 16]),
        chain(60, &[protocol::UDP, 1, 1, 12, 0, 0, 0, 0]),
        chain(60, &options),
    ] {
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &bytes), problem);
    }
    assert_eq!(reassembler.counters().dropped_malformed, 3);
    let bytes = chain(60, &[options, [0; 8]].concat());
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &bytes), Ok(None));
}

#[test]
fn what_cannot_be_a_fragment_is_answered_as_the_rfc_says() {
    let erroneous =
        |pointer| Err(PacketError::ParameterProblem { code: ParameterProblemCode::ErroneousField, pointer });
    let mut reassembler = reassembler();
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(0, &[0; 7], true)), erroneous(4));
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(65_528, &[0; 8], false)), erroneous(42));
    assert!(matches!(
        reassembler.handle_fragment(Instant::ZERO, &piece(8, &[], true)),
        Err(PacketError::Malformed(Error::Invalid { found: 0, .. }))
    ));
    assert_eq!(reassembler.counters().dropped_malformed, 3);
    assert_eq!(reassembler.fragments_waiting(), 0);
}

#[test]
fn a_packet_that_its_first_headers_make_too_long_is_dropped() {
    let mut reassembler = reassembler();
    let last = piece(65_520, &[0; 15], false);
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &last), Ok(None));
    let fragment = FragmentHeader { next_header: 254, offset: 0, more_fragments: true, identification: 7 };
    let mut first = Vec::new();
    let extensions = Extensions { router_alert: Some(0), ..Extensions::NONE };
    let payload = [&fragment.to_bytes()[..], &[0; 65_512]].concat();
    Packet::emit(&HEADER, &extensions, 44, &payload, &mut first).unwrap();
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &first), Ok(None));
    assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(65_512, &[0; 8], true)), Ok(None));
    assert_eq!(reassembler.counters().dropped_inconsistent, 3);
    assert_eq!(reassembler.counters().datagrams_reassembled, 0);
    check_conservation(&reassembler, 3);
}

#[test]
fn what_waits_too_long_is_dropped() {
    let fragments = fragment(&packet(&Extensions::NONE, 100), 104, 1).unwrap();
    let mut reassembler = reassembler();
    let start = Instant::from_secs(5);
    assert_eq!(reassembler.handle_fragment(start, &fragments[0]), Ok(None));
    assert_eq!(reassembler.next_timeout(), Some(Instant::from_secs(65)));
    assert_eq!(reassembler.handle_fragment(Instant::from_secs(65), &fragments[1]), Ok(None));
    assert_eq!(reassembler.counters().dropped_timeout, 1);
    check_conservation(&reassembler, 2);
}

#[test]
fn the_headers_of_first_fragments_count_against_the_limit() {
    let limits = ReassemblyLimits { bytes: 3 * (64 + 8 + 40), ..ReassemblyLimits::default() };
    let mut reassembler = Reassembler::new(limits);
    for identification in 0..5_u8 {
        let mut bytes = piece(0, &[0; 8], true);
        bytes[47] = identification;
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &bytes), Ok(None));
    }
    assert_eq!(reassembler.fragments_waiting(), 3);
    assert_eq!(reassembler.counters().dropped_no_room, 2);
    check_conservation(&reassembler, 5);
}
