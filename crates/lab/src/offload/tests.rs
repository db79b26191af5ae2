//! Cutting and putting together, against the parsers of `careof_wire` and against each other.

use std::net::Ipv4Addr;

use careof_wire::ipv4::Ipv4Header;
use careof_wire::udp::UdpHeader;
use careof_wire::{Flags, Segment, SeqNumber, Timestamps, protocol};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coalescer::Coalescer;
use super::frame::{Frame, Malformed};
use super::layout::LeftChecksum;
use super::vnet_header::{Segmentation, SegmentationKind, VnetHeader};
use super::{checksum, layout};

const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const SEGMENT: Segment = Segment {
    source_port: 5001,
    destination_port: 443,
    seq: SeqNumber(0xffff_f000),
    ack: SeqNumber(77),
    flags: Flags::ACK,
    window: 1000,
    mss: None,
    window_scale: None,
    sack_permitted: false,
    timestamps: Some(Timestamps { value: 5, echo: 6 }),
    sack: careof_wire::SackBlocks::EMPTY,
    payload_len: 0,
};
const HEADER: Ipv4Header = Ipv4Header {
    source: SOURCE,
    destination: DESTINATION,
    protocol: protocol::TCP,
    ttl: 61,
    tos: 0x02,
    identification: 65_530,
    dont_fragment: true,
    more_fragments: false,
    fragment_offset: 0,
    payload_len: 0,
};

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn tcp(header: Ipv4Header, segment: Segment, payload: &[u8]) -> Vec<u8> {
    let segment = Segment { payload_len: payload.len() as u16, ..segment };
    let mut transport = Vec::new();
    segment.emit(header.source, header.destination, payload, &mut transport);
    let mut datagram = Vec::new();
    Ipv4Header { payload_len: transport.len() as u16, ..header }.emit(&mut datagram);
    datagram.extend(transport);
    datagram
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let header = UdpHeader { source_port: 9, destination_port: 10, payload_len: payload.len() as u16 };
    let mut transport = Vec::new();
    header.emit(SOURCE, DESTINATION, payload, &mut transport);
    let mut datagram = Vec::new();
    Ipv4Header { protocol: protocol::UDP, payload_len: transport.len() as u16, ..HEADER }.emit(&mut datagram);
    datagram.extend(transport);
    datagram
}

/// As the kernel hands it out: the checksum field has the sum of the pseudo header.
fn leave_checksum(datagram: &mut [u8], protocol: u8, offset: usize) {
    let sum = layout::pseudo_header(datagram, 20, protocol);
    layout::put(datagram, 20 + offset, checksum::folded(sum));
}

fn vnet(kind: SegmentationKind, size: u16, offset: u16) -> VnetHeader {
    VnetHeader {
        checksum: Some((20, offset)),
        segmentation: Some(Segmentation { kind, size, has_cwr: false }),
        headers_len: 0,
    }
}

fn loaded(vnet: VnetHeader, packet: &[u8]) -> Result<Frame, Malformed> {
    let mut frame = Frame::new();
    let bytes = [&vnet.bytes()[..], packet].concat();
    frame.room()[..bytes.len()].copy_from_slice(&bytes);
    frame.load(bytes.len(), true).map(|()| frame)
}

fn datagrams(frame: &mut Frame) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    while let Some(len) = frame.next_len() {
        let mut bytes = vec![0xee; len];
        assert_eq!(frame.take(&mut bytes), Some(len));
        datagrams.push(bytes);
    }
    assert!(frame.is_done());
    datagrams
}

/// Reads a datagram of TCP with careof's parsers, checksums and all.
fn parse_tcp(datagram: &[u8]) -> (Ipv4Header, Segment, Vec<u8>) {
    let (header, rest) = Ipv4Header::parse(datagram).unwrap();
    assert_eq!(usize::from(header.total_len()), datagram.len());
    let (segment, payload) = Segment::parse(header.source, header.destination, rest).unwrap();
    (header, segment, payload.to_vec())
}

#[test]
fn a_super_packet_of_tcp_is_cut_as_its_sender_would_have() {
    let payload = pattern(2500);
    let flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN).with(Flags::CWR);
    let mut packet = tcp(HEADER, Segment { flags, ..SEGMENT }, &payload);
    leave_checksum(&mut packet, protocol::TCP, layout::tcp::CHECKSUM);
    let mut frame = loaded(vnet(SegmentationKind::Tcp, 1000, 16), &packet).unwrap();
    assert_eq!(frame.header().unwrap().source, SOURCE);
    assert_eq!((frame.longest(), frame.next_len()), (1052, Some(1052)));
    let first = frame.first_datagram();
    let cut = datagrams(&mut frame);
    assert_eq!(cut[0], first);
    let parsed: Vec<_> = cut.iter().map(|datagram| parse_tcp(datagram)).collect();
    let ids: Vec<_> = parsed.iter().map(|(header, ..)| header.identification).collect();
    assert_eq!(ids, [65_530, 65_531, 65_532]);
    let seqs: Vec<_> = parsed.iter().map(|(_, segment, _)| segment.seq.0).collect();
    assert_eq!(seqs, [0xffff_f000, 0xffff_f3e8, 0xffff_f7d0]);
    let flags: Vec<_> = parsed.iter().map(|(_, segment, _)| segment.flags).collect();
    assert_eq!(
        flags,
        [Flags::ACK.with(Flags::CWR), Flags::ACK, Flags::ACK.with(Flags::PSH).with(Flags::FIN)]
    );
    assert!(parsed.iter().all(|(header, segment, _)| header.ttl == 61
        && header.tos == 2
        && header.dont_fragment
        && segment.timestamps == SEGMENT.timestamps
        && segment.window == 1000));
    assert_eq!(parsed.iter().flat_map(|(.., payload)| payload.clone()).collect::<Vec<_>>(), payload);
}

#[test]
fn a_super_packet_of_udp_is_cut_into_datagrams() {
    let payload = pattern(1300);
    let mut packet = udp(&payload);
    leave_checksum(&mut packet, protocol::UDP, layout::udp::CHECKSUM);
    let mut frame = loaded(vnet(SegmentationKind::Udp, 600, 6), &packet).unwrap();
    let cut = datagrams(&mut frame);
    let parsed = cut.iter().map(|datagram| {
        let (header, rest) = Ipv4Header::parse(datagram).unwrap();
        let (udp, payload) = UdpHeader::parse(header.source, header.destination, rest).unwrap();
        assert_eq!(usize::from(udp.payload_len), payload.len());
        assert_ne!(rest[6..8], [0, 0]);
        payload.to_vec()
    });
    let parsed: Vec<_> = parsed.collect();
    assert_eq!(parsed.iter().map(Vec::len).collect::<Vec<_>>(), [600, 600, 100]);
    assert_eq!(parsed.concat(), payload);
}

#[test]
fn a_checksum_that_was_left_is_completed() {
    for whole in [tcp(HEADER, SEGMENT, &pattern(77)), udp(&pattern(33)), udp(&[])] {
        let (protocol, offset) = if whole[9] == protocol::TCP { (protocol::TCP, 16) } else { (17, 6) };
        let mut packet = whole.clone();
        leave_checksum(&mut packet, protocol, usize::from(offset));
        let left = VnetHeader { checksum: Some((20, offset)), ..VnetHeader::default() };
        assert_eq!(datagrams(&mut loaded(left, &packet).unwrap()), [whole]);
    }
}

#[test]
fn what_is_no_ipv4_comes_out_as_it_is_and_says_so() {
    let mut ipv6 = vec![0; 60];
    ipv6[0] = 0x60;
    let mut frame = loaded(VnetHeader::default(), &ipv6).unwrap();
    assert_eq!(frame.header(), None);
    assert_eq!(datagrams(&mut frame), [ipv6]);
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let packet = tcp(HEADER, SEGMENT, &pattern(3000));
    let refused = |vnet, packet: &[u8]| loaded(vnet, packet).map(drop).unwrap_err();
    assert_eq!(refused(vnet(SegmentationKind::Tcp, 0, 16), &packet), Malformed::Headers);
    assert_eq!(refused(vnet(SegmentationKind::Udp, 100, 6), &packet), Malformed::Headers);
    assert_eq!(refused(vnet(SegmentationKind::Tcp, 100, 16), &packet[..30]), Malformed::Headers);
    assert_eq!(refused(vnet(SegmentationKind::Other(4), 100, 16), &packet), Malformed::Kind);
    let beyond = VnetHeader { checksum: Some((3000, 100)), ..VnetHeader::default() };
    assert_eq!(refused(beyond, &packet), Malformed::Checksum);
    assert_eq!(refused(VnetHeader::default(), &packet[..1000]), Malformed::Truncated);
    let mut frame = Frame::new();
    assert_eq!(frame.load(9, true), Err(Malformed::Truncated));
    assert_eq!((frame.is_done(), frame.next_len()), (true, None));
}

#[test]
fn a_frame_can_be_left_off_and_given_up() {
    let mut packet = tcp(HEADER, SEGMENT, &pattern(2500));
    leave_checksum(&mut packet, protocol::TCP, 16);
    let mut frame = loaded(vnet(SegmentationKind::Tcp, 1000, 16), &packet).unwrap();
    assert_eq!(frame.take(&mut [0; 100]), None, "no room");
    assert_eq!(frame.take(&mut [0; 2000]), Some(1052));
    assert_eq!(frame.next_len(), Some(1052));
    assert_eq!(frame.discard(), 2);
    assert_eq!((frame.next_len(), frame.discard()), (None, 0));
}

/// What a coalescer wrote, frame by frame.
type Written = Vec<([u8; VnetHeader::LEN], Vec<u8>)>;

fn coalesced(datagrams: &[Vec<u8>]) -> Written {
    let mut coalescer = Coalescer::new();
    let mut written = Vec::new();
    for datagram in datagrams {
        coalescer.push(datagram, |vnet, packet| written.push((*vnet, packet.to_vec())));
    }
    coalescer.flush(|vnet, packet| written.push((*vnet, packet.to_vec())));
    written
}

fn split(written: &Written) -> Vec<Vec<u8>> {
    let cut = written
        .iter()
        .flat_map(|(vnet, packet)| datagrams(&mut loaded(VnetHeader::parse(vnet), packet).unwrap()));
    cut.collect()
}

/// A run of segments of one flow, each with `size` bytes but the last.
fn run_of(
    count: u16,
    size: usize,
    last: usize,
    change: impl Fn(u16, &mut Ipv4Header, &mut Segment),
) -> Vec<Vec<u8>> {
    let segment = |i: u16| {
        let len = if i + 1 == count { last } else { size };
        let mut header = Ipv4Header { identification: HEADER.identification.wrapping_add(i), ..HEADER };
        let mut segment = SEGMENT;
        segment.seq = SeqNumber(SEGMENT.seq.0.wrapping_add(u32::from(i) * size as u32));
        change(i, &mut header, &mut segment);
        tcp(header, segment, &pattern(len))
    };
    (0..count).map(segment).collect()
}

/// Datagrams a frame, of a run of five.
fn groups(change: impl Fn(u16, &mut Ipv4Header, &mut Segment)) -> Vec<usize> {
    let run = run_of(5, 500, 500, change);
    let written = coalesced(&run);
    assert_eq!(split(&written), run);
    written.iter().map(|frame| split(&vec![frame.clone()]).len()).collect()
}

#[test]
fn segments_in_order_become_one_super_packet() {
    assert_eq!(groups(|_, _, _| ()), [5]);
    let run = run_of(4, 1000, 300, |_, _, _| ());
    let written = coalesced(&run);
    let vnet = VnetHeader::parse(&written[0].0);
    assert_eq!(vnet.checksum, Some((20, 16)));
    let expected = Segmentation { kind: SegmentationKind::Tcp, size: 1000, has_cwr: false };
    assert_eq!((vnet.segmentation, vnet.headers_len), (Some(expected), 52));
    assert_eq!(written[0].1.len(), 52 + 3300);
    assert_eq!(split(&written), run);
}

#[test]
fn what_cannot_be_told_apart_again_is_not_put_together() {
    assert_eq!(groups(|i, header, _| header.tos = if i == 2 { 3 } else { 2 }), [2, 1, 2], "congestion seen");
    assert_eq!(groups(|i, header, _| header.ttl = if i < 2 { 60 } else { 61 }), [2, 3]);
    assert_eq!(
        groups(|i, header, _| {
            header.identification = header.identification.wrapping_add(7 * u16::from(i > 2));
        }),
        [3, 2]
    );
    assert_eq!(groups(|i, header, _| header.dont_fragment = i > 0), [1, 4]);
    assert_eq!(groups(|i, _, segment| segment.ack = SeqNumber(u32::from(i / 3))), [3, 2]);
    assert_eq!(groups(|i, _, segment| segment.window = 9 - i / 4), [4, 1]);
    let time = |i| Some(Timestamps { value: u32::from(i / 2), echo: 6 });
    assert_eq!(groups(|i, _, segment| segment.timestamps = time(i)), [2, 2, 1]);
    assert_eq!(groups(|i, _, segment| segment.timestamps = time(0).filter(|_| i < 4)), [4, 1]);
    assert_eq!(groups(|i, _, segment| segment.seq = SeqNumber(segment.seq.0 + u32::from(i > 3))), [4, 1]);
    let flagged = |at, flags| {
        move |i, _: &mut Ipv4Header, segment: &mut Segment| {
            if i == at {
                segment.flags = Flags::ACK.with(flags);
            }
        }
    };
    assert_eq!(groups(flagged(1, Flags::PSH)), [2, 3], "the end of what was written");
    assert_eq!(groups(flagged(4, Flags::FIN)), [5]);
    assert_eq!(groups(flagged(0, Flags::CWR)), [5]);
    assert_eq!(groups(flagged(2, Flags::CWR)), [2, 3]);
    assert_eq!(groups(flagged(2, Flags::ECE)), [2, 1, 2]);
    assert_eq!(groups(flagged(2, Flags::URG)), [2, 1, 2]);
    assert_eq!(groups(flagged(2, Flags::RST)), [2, 1, 2]);
}

#[test]
fn an_identification_that_says_nothing_may_stay_the_same() {
    let run = run_of(3, 500, 500, |_, header, _| header.identification = 0);
    assert_eq!(coalesced(&run).len(), 1);
    let run = run_of(3, 500, 500, |_, header, _| {
        header.identification = 0;
        header.dont_fragment = false;
    });
    assert_eq!(coalesced(&run).len(), 3);
}

#[test]
fn a_shorter_segment_ends_a_super_packet_and_a_longer_one_starts_its_own() {
    let sizes = [500, 500, 300, 300, 400];
    let mut at = 0;
    let mut run = Vec::new();
    for (i, size) in (0_u16..).zip(sizes) {
        let header = Ipv4Header { identification: i, ..HEADER };
        run.push(tcp(header, Segment { seq: SeqNumber(at), ..SEGMENT }, &pattern(size)));
        at += size as u32;
    }
    let written = coalesced(&run);
    let lens: Vec<_> = written.iter().map(|(_, packet)| packet.len() - 52).collect();
    assert_eq!(lens, [1300, 300, 400]);
    assert_eq!(split(&written), run);
}

#[test]
fn a_broken_segment_goes_alone_and_in_its_place() {
    let mut run = run_of(5, 500, 500, |_, _, _| ());
    run[2][100] ^= 1;
    let written = coalesced(&run);
    assert_eq!(written.len(), 3);
    assert_eq!(written[1], (VnetHeader::default().bytes(), run[2].clone()));
    assert_eq!(split(&written), run);
}

#[test]
fn a_super_packet_has_no_more_bytes_than_a_datagram() {
    let run = run_of(60, 1400, 1400, |_, _, _| ());
    let written = coalesced(&run);
    assert_eq!(written.len(), 2);
    assert!(written.iter().all(|(_, packet)| packet.len() <= 65_535));
    assert_eq!(split(&written), run);
}

#[test]
fn more_flows_than_there_is_room_for_are_all_carried() {
    let one = |port: u16, i: u16| {
        let header = Ipv4Header { identification: i, ..HEADER };
        let seq = SeqNumber(u32::from(i) * 100);
        tcp(header, Segment { source_port: port, seq, ..SEGMENT }, &pattern(100))
    };
    let sent: Vec<_> = (0..4).flat_map(|i| (0..20).map(move |port| one(port, i))).collect();
    let carried = split(&coalesced(&sent));
    let of = |all: &[Vec<u8>], port: u16| -> Vec<Vec<u8>> {
        all.iter().filter(|datagram| datagram[20..22] == port.to_be_bytes()).cloned().collect()
    };
    for port in 0..20 {
        assert_eq!(of(&carried, port), of(&sent, port));
    }
}

#[test]
fn a_checksum_left_by_another_kernel_is_seen_and_finished() {
    let payload = pattern(5000);
    let whole = tcp(HEADER, Segment { flags: Flags::ACK.with(Flags::CWR), ..SEGMENT }, &payload);
    assert_eq!(LeftChecksum::of(&whole), None);
    let mut packet = whole.clone();
    leave_checksum(&mut packet, protocol::TCP, layout::tcp::CHECKSUM);
    let left = LeftChecksum::of(&packet).unwrap();
    // It fits, or it does not.
    let vnet = left.vnet_header(packet.len(), 9000);
    assert_eq!((vnet.checksum, vnet.segmentation), (Some((20, 16)), None));
    let mut frame = Frame::new();
    frame.hold(&vnet, &packet).unwrap();
    assert_eq!(datagrams(&mut frame), [whole]);
    let vnet = left.vnet_header(packet.len(), 1480);
    let expected = Segmentation { kind: SegmentationKind::Tcp, size: 1428, has_cwr: true };
    assert_eq!((vnet.segmentation, vnet.headers_len), (Some(expected), 52));
    frame.hold(&vnet, &packet).unwrap();
    let cut = datagrams(&mut frame);
    assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [1480, 1480, 1480, 768]);
    assert_eq!(cut.iter().flat_map(|datagram| parse_tcp(datagram).2).collect::<Vec<_>>(), payload);

    assert!(frame.hold_unfinished(&packet, 1480));
    assert_eq!(datagrams(&mut frame), cut);

    let whole = udp(&pattern(300));
    assert!(!frame.hold_unfinished(&whole, 1480) && frame.is_done());
    assert_eq!(LeftChecksum::of(&whole), None);
    let mut packet = whole.clone();
    leave_checksum(&mut packet, protocol::UDP, layout::udp::CHECKSUM);
    let left = LeftChecksum::of(&packet).unwrap();
    frame.hold(&left.vnet_header(packet.len(), 100), &packet).unwrap();
    assert_eq!(datagrams(&mut frame), [whole]);
    for shorter in 0..packet.len() {
        assert_eq!(LeftChecksum::of(&packet[..shorter]), None);
    }
}

/// One datagram of a few flows, most often the next of its flow.
#[derive(Clone, Debug)]
struct Step {
    flow: u16,
    len: usize,
    /// Everything else: 0 to 9 are a little different from what came before.
    change: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![5 => Just(700_usize), 1 => Just(0), 1 => 1_usize..1400];
    let step = (0_u16..3, len, 0_u8..60).prop_map(|(flow, len, change)| Step { flow, len, change });
    vec(step, 1..80)
}

fn datagrams_of(steps: &[Step]) -> Vec<Vec<u8>> {
    let mut next = [(0_u32, 0_u16); 3];
    let mut sent = Vec::new();
    for step in steps {
        let (seq, id) = &mut next[usize::from(step.flow)];
        let mut header = Ipv4Header { identification: *id, ..HEADER };
        let mut segment = Segment { source_port: step.flow, seq: SeqNumber(*seq), ..SEGMENT };
        match step.change {
            0 => segment.flags = segment.flags.with(Flags::PSH),
            1 => segment.flags = segment.flags.with(Flags::FIN),
            2 => segment.flags = segment.flags.with(Flags::CWR),
            3 => segment.flags = Flags::SYN,
            4 => header.tos = 3,
            5 => segment.timestamps = None,
            6 => segment.ack = SeqNumber(78),
            7 => segment.seq = SeqNumber(seq.wrapping_add(1)),
            8 => header.identification = id.wrapping_add(5),
            9 => header.dont_fragment = false,
            _ => {}
        }
        sent.push(tcp(header, segment, &pattern(step.len)));
        *seq = segment.seq.0.wrapping_add(step.len as u32);
        *id = header.identification.wrapping_add(1);
        if step.change == 10
            && let Some(byte) = sent.last_mut().and_then(|datagram| datagram.last_mut())
        {
            *byte ^= 0x40;
        }
    }
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cutting_undoes_putting_together(steps in steps()) {
        let sent = datagrams_of(&steps);
        let written = coalesced(&sent);
        prop_assert!(written.len() <= sent.len());
        let carried = split(&written);
        for flow in 0_u16..3 {
            let of = |all: &[Vec<u8>]| -> Vec<Vec<u8>> {
                all.iter().filter(|datagram| datagram[20..22] == flow.to_be_bytes()).cloned().collect()
            };
            prop_assert_eq!(of(&carried), of(&sent));
        }
    }

    #[test]
    fn putting_together_undoes_cutting(
        len in 1_usize..60_000,
        size in 100_u16..2000,
        seq in any::<u32>(),
        identification in any::<u16>(),
        psh in any::<bool>(),
        options in any::<bool>(),
    ) {
        let timestamps = options.then_some(Timestamps { value: 1, echo: 2 });
        let flags = if psh { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        let segment = Segment { seq: SeqNumber(seq), timestamps, flags, ..SEGMENT };
        let mut packet = tcp(Ipv4Header { identification, ..HEADER }, segment, &pattern(len));
        leave_checksum(&mut packet, protocol::TCP, 16);
        let mut frame = loaded(vnet(SegmentationKind::Tcp, size, 16), &packet).unwrap();
        let longest = frame.longest();
        let cut = datagrams(&mut frame);
        prop_assert_eq!(cut.iter().map(Vec::len).max(), Some(longest));
        for datagram in &cut {
            parse_tcp(datagram);
        }
        let written = coalesced(&cut);
        prop_assert_eq!(written.len(), 1);
        if cut.len() > 1 {
            prop_assert_eq!(&written[0].1, &packet);
        } else {
            prop_assert_eq!(&written[0].1, &cut[0]);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..200), like_ip in any::<bool>(), has_header in any::<bool>()) {
        let mut bytes = bytes;
        if like_ip && bytes.len() > 30 {
            bytes[1] = [0, 1, 5, 0x81][usize::from(bytes[1] % 4)];
            bytes[5] = 0;
            bytes[10] = 0x45;
            bytes[19] = [6, 17][usize::from(bytes[19] % 2)];
            let len = (bytes.len() - 10) as u16;
            bytes[12..14].copy_from_slice(&len.to_be_bytes());
        }
        let mut frame = Frame::new();
        frame.room()[..bytes.len()].copy_from_slice(&bytes);
        if frame.load(bytes.len(), has_header).is_ok() {
            prop_assert_eq!(frame.first_datagram().len(), frame.longest());
            prop_assert!(datagrams(&mut frame).len() <= 200);
        }
        let start = if like_ip { 10.min(bytes.len()) } else { 0 };
        coalesced(&[bytes[start..].to_vec(), bytes[start..].to_vec()]);
    }
}
