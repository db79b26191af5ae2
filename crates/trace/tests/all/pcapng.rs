//! Captures, read back by a small reader of our own and by tshark where it is installed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::process::Command;

use careof_base::Instant;
use careof_trace::{Capture, Direction, PcapngWriter, annotate};
use proptest::prelude::*;

/// A block as the format's text describes it; nothing of the writer is used.
#[derive(Debug, PartialEq)]
enum Block {
    Section {
        application: String,
    },
    Interface {
        snap_length: u32,
        link_type: u16,
        name: String,
        description: String,
        resolution: u8,
    },
    Packet {
        interface: u32,
        nanos: u64,
        original: u32,
        bytes: Vec<u8>,
        comments: Vec<String>,
        flags: u32,
        id: u64,
    },
    Statistics {
        interface: u32,
        nanos: u64,
        comments: Vec<String>,
        received: u64,
        dropped: u64,
    },
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn time_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

fn options(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut found = Vec::new();
    loop {
        let (code, length) = (u16_at(bytes, 0), usize::from(u16_at(bytes, 2)));
        let padded = length.div_ceil(4) * 4;
        let value = bytes[4..4 + length].to_vec();
        assert!(bytes[4 + length..4 + padded].iter().all(|byte| *byte == 0), "padding is zero");
        bytes = &bytes[4 + padded..];
        if code == 0 {
            assert!(length == 0 && bytes.is_empty(), "the end of options ends the block");
            return found;
        }
        found.push((code, value));
    }
}

fn texts(options: &[(u16, Vec<u8>)], code: u16) -> Vec<String> {
    let values = options.iter().filter(|(found, _)| *found == code);
    values.map(|(_, value)| String::from_utf8(value.clone()).unwrap()).collect()
}

fn value(options: &[(u16, Vec<u8>)], code: u16) -> &[u8] {
    let mut values = options.iter().filter(|(found, _)| *found == code);
    let value = values.next().map(|(_, value)| value.as_slice()).unwrap_or_default();
    assert!(values.next().is_none(), "option {code} stands once");
    value
}

fn read(mut file: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let length = u32_at(file, 4) as usize;
        assert!(length.is_multiple_of(4) && u32_at(file, length - 4) as usize == length);
        let body = &file[8..length - 4];
        blocks.push(match u32_at(file, 0) {
            0x0a0d_0d0a => {
                assert_eq!((u32_at(body, 0), u16_at(body, 4), u16_at(body, 6)), (0x1a2b_3c4d, 1, 0));
                assert_eq!(body[8..16], [0xff; 8]);
                Block::Section { application: texts(&options(&body[16..]), 4).concat() }
            }
            1 => {
                let options = options(&body[8..]);
                Block::Interface {
                    snap_length: u32_at(body, 4),
                    link_type: u16_at(body, 0),
                    name: texts(&options, 2).concat(),
                    description: texts(&options, 3).concat(),
                    resolution: value(&options, 9)[0],
                }
            }
            6 => {
                let captured = u32_at(body, 12) as usize;
                let options = options(&body[20 + captured.div_ceil(4) * 4..]);
                Block::Packet {
                    interface: u32_at(body, 0),
                    nanos: time_at(body, 4),
                    original: u32_at(body, 16),
                    bytes: body[20..20 + captured].to_vec(),
                    comments: texts(&options, 1),
                    flags: u32_at(value(&options, 2), 0),
                    id: u64::from_le_bytes(value(&options, 5).try_into().unwrap()),
                }
            }
            5 => Block::Statistics {
                interface: u32_at(body, 0),
                nanos: time_at(body, 4),
                comments: texts(&options(&body[12..]), 1),
                received: u64::from_le_bytes(value(&options(&body[12..]), 4).try_into().unwrap()),
                dropped: u64::from_le_bytes(value(&options(&body[12..]), 5).try_into().unwrap()),
            },
            other => panic!("block type {other}"),
        });
        file = &file[length..];
    }
    blocks
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let bytes: Vec<u8> = parts.concat();
    let sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

/// A UDP datagram over IPv4 with valid checksums.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let udp_len = (8 + payload.len()) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2];
    ip[2..4].copy_from_slice(&(20 + udp_len).to_be_bytes());
    let sum = checksum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut udp = [40_000_u16, 9, udp_len, 0].map(u16::to_be_bytes).concat();
    udp.extend_from_slice(payload);
    let sum = checksum(&[&ip[12..20], &[0, 17], &udp_len.to_be_bytes(), &udp]);
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    [ip, udp].concat()
}

/// Two interfaces; packets one of which is dropped later and one left out, phases of a handover with and without a carrier.
fn example() -> Vec<u8> {
    let mut pcap = PcapngWriter::new(Vec::new(), "careof 0.1.0").unwrap();
    let router = pcap.add_interface("gsm@home-agent", "", None).unwrap();
    let mobile = pcap.add_interface("gsm@mobile", "9.6 kbit/s", None).unwrap();
    let bytes = datagram(b"payload");
    let see = |pcap: &mut PcapngWriter<_>, interface, nanos, direction, packet| {
        let time = Instant::from_nanos(nanos);
        pcap.capture(Capture { interface, time, direction, packet, bytes: &bytes, snap_length: u32::MAX });
    };
    see(&mut pcap, router, 1_000_000_001, Direction::Out, 7);
    pcap.comment(Instant::from_millis(1100), "handover initiated: gsm");
    pcap.comment(Instant::from_millis(1320), "handover link-up: gsm");
    see(&mut pcap, mobile, 1_350_000_002, Direction::In, 7);
    pcap.flush(Instant::from_millis(1300)).unwrap();
    see(&mut pcap, router, 1_300_000_000, Direction::Out, 8);
    pcap.leave_out(router, Instant::from_millis(1301));
    pcap.comment(Instant::from_secs(5_000_000_000), "handover terminated");
    let written = pcap.finish().unwrap();
    let mut annotated = Vec::new();
    annotate(&written[..], &mut annotated, |packet, comments| {
        comments.extend((packet == 8).then(|| "dropped: queue-full".to_owned()));
    })
    .unwrap();
    annotated
}

#[test]
fn what_was_seen_is_what_is_read() {
    let bytes = datagram(b"payload");
    let original = bytes.len() as u32;
    let packet = |interface, nanos, comments: &[&str], flags, id| Block::Packet {
        interface,
        nanos,
        original,
        bytes: bytes.clone(),
        comments: comments.iter().map(|text| (*text).to_owned()).collect(),
        flags,
        id,
    };
    let initiated = "handover initiated: gsm (at 1.100000000 s)";
    let link_up = "handover link-up: gsm (at 1.320000000 s)";
    let interface = |name: &str, description: &str| Block::Interface {
        snap_length: 0,
        link_type: 101,
        name: name.to_owned(),
        description: description.to_owned(),
        resolution: 9,
    };
    let expected = [
        Block::Section { application: "careof 0.1.0".to_owned() },
        interface("gsm@home-agent", ""),
        interface("gsm@mobile", "9.6 kbit/s"),
        packet(0, 1_000_000_001, &[], 0b10, 7),
        packet(0, 1_300_000_000, &["dropped: queue-full", initiated], 0b10, 8),
        packet(1, 1_350_000_002, &[link_up], 0b01, 7),
        Block::Statistics {
            interface: 0,
            nanos: 5_000_000_000_000_000_000,
            comments: vec!["handover terminated (at 5000000000.000000000 s)".to_owned()],
            received: 3,
            dropped: 1,
        },
        Block::Statistics {
            interface: 1,
            nanos: 5_000_000_000_000_000_000,
            comments: vec![],
            received: 1,
            dropped: 0,
        },
    ];
    assert_eq!(read(&example()), expected);
}

#[test]
fn a_comment_longer_than_the_format_allows_is_cut_at_a_character() {
    let mut pcap = PcapngWriter::new(Vec::new(), "careof").unwrap();
    let interface = pcap.add_interface("a@b", "", None).unwrap();
    let comment = "x".to_owned() + &"ü".repeat(40_000);
    let time = Instant::ZERO;
    let direction = Direction::In;
    pcap.comment(time, &comment);
    pcap.capture(Capture { interface, time, direction, packet: 0, bytes: &[], snap_length: 0 });
    let blocks = read(&pcap.finish().unwrap());
    let Some(Block::Packet { comments, .. }) = blocks.get(2) else { panic!() };
    assert_eq!(comments[0].len(), 65_535);
    assert!(comment.starts_with(&comments[0]));
}

#[test]
fn a_snap_length_keeps_the_beginning_and_says_how_long_the_packet_was() {
    let mut writer = PcapngWriter::new(Vec::new(), "careof").unwrap();
    let interface = writer.add_interface("gsm@mobile", "", Some(40)).unwrap();
    let whole = datagram(&[7; 100]);
    for bytes in [&whole[..], &whole[..30]] {
        writer.capture(Capture {
            interface,
            time: Instant::ZERO,
            direction: Direction::Out,
            packet: 1,
            bytes,
            snap_length: 40,
        });
    }
    let blocks = read(&writer.finish().unwrap());
    assert!(matches!(blocks[1], Block::Interface { snap_length: 40, .. }));
    let kept: Vec<_> = blocks
        .into_iter()
        .filter_map(|block| match block {
            Block::Packet { original, bytes, .. } => Some((original as usize, bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [(whole.len(), whole[..40].to_vec()), (30, whole[..30].to_vec())]);
}

#[test]
fn an_interface_of_another_capture_is_refused() {
    let mut other = PcapngWriter::new(Vec::new(), "careof").unwrap();
    let mut pcap = PcapngWriter::new(Vec::new(), "careof").unwrap();
    let interface = other.add_interface("a@b", "", None).unwrap();
    pcap.leave_out(interface, Instant::ZERO);
    assert_eq!(pcap.flush(Instant::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(read(&pcap.finish().unwrap()).len(), 1);
}

#[test]
fn a_writer_that_fails_says_so() {
    #[derive(Debug)]
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(PcapngWriter::new(Full, "careof").unwrap_err().kind(), io::ErrorKind::StorageFull);
}

/// Reads `file` with tshark, or returns `None` where there is none.
fn tshark(name: &str, file: &[u8], arguments: &[&str]) -> Option<String> {
    if Command::new("tshark").arg("--version").output().is_err() {
        return None;
    }
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(name);
    fs::write(&path, file).unwrap();
    let output = Command::new("tshark").arg("-r").arg(&path).args(arguments).output().unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    let complaints: Vec<&str> =
        complaints.lines().filter(|line| !line.contains("Running as user \"root\"")).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_reads_names_times_directions_numbers_and_comments() {
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.packet_flags_direction",
        "frame.packet_id",
        "frame.comment",
        "udp.dstport",
    ];
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.into_iter().flat_map(|field| ["-e", field]));
    let Some(output) = tshark("fields.pcapng", &example(), &arguments) else { return };
    // Versions differ in how they print a direction.
    let output = output.replace("|0x0000000", "|");
    let lines: Vec<&str> = output.lines().collect();
    let expected = [
        "gsm@home-agent|1.000000001|2|7||9",
        "gsm@home-agent|1.300000000|2|8|dropped: queue-full,handover initiated: gsm (at 1.100000000 s)|9",
        "gsm@mobile|1.350000002|1|7|handover link-up: gsm (at 1.320000000 s)|9",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn tshark_finds_no_fault_in_the_packets() {
    let arguments = [
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
        "-Y",
        "_ws.malformed || _ws.expert.severity >= \"Warning\" || ip.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\"",
    ];
    let Some(output) = tshark("faults.pcapng", &example(), &arguments) else { return };
    assert_eq!(output, "");
    // The filter does find a fault where there is one: a bit of the payload flipped.
    let mut damaged = example();
    let payload = damaged.windows(7).position(|bytes| bytes == b"payload").unwrap();
    damaged[payload] ^= 1;
    assert_eq!(tshark("damaged.pcapng", &damaged, &arguments).unwrap().lines().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Any packets with any comments, flushed at any time.
    #[test]
    fn packets_are_read_in_order_of_time(
        packets in prop::collection::vec((0_u64..1000, 0_usize..3, any::<bool>(), prop::collection::vec(any::<u8>(), 0..50), prop::option::of(".{1,20}")), 0..40),
        cut in 0_u64..1000,
    ) {
        let mut pcap = PcapngWriter::new(Vec::new(), "careof").unwrap();
        let interfaces: Vec<_> =
            ["a@x", "a@y", "b@y"].iter().map(|name| pcap.add_interface(name, "", None).unwrap()).collect();
        let mut expected = Vec::new();
        let mut comments = BTreeMap::new();
        // A packet after the flush is not older than the flush, as its contract says.
        let (early, late): (Vec<_>, Vec<_>) = packets.into_iter().partition(|packet| packet.0 < cut);
        for (group, flush) in [(early, Some(cut)), (late, None)] {
            for (time, interface, incoming, bytes, comment) in group {
                let packet = expected.len() as u64;
                comments.extend(comment.clone().map(|comment| (packet, comment)));
                let direction = if incoming { Direction::In } else { Direction::Out };
                pcap.capture(Capture {
                    interface: interfaces[interface],
                    time: Instant::from_nanos(time),
                    direction,
                    packet,
                    bytes: &bytes,
                    snap_length: u32::MAX,
                });
                expected.push(Block::Packet {
                    interface: interface as u32,
                    nanos: time,
                    original: bytes.len() as u32,
                    bytes,
                    comments: comment.into_iter().collect(),
                    flags: if incoming { 1 } else { 2 },
                    id: packet,
                });
            }
            if let Some(cut) = flush {
                pcap.flush(Instant::from_nanos(cut)).unwrap();
            }
        }
        expected.sort_by_key(|block| match block {
            Block::Packet { nanos, .. } => *nanos,
            _ => 0,
        });
        let mut annotated = Vec::new();
        annotate(&pcap.finish().unwrap()[..], &mut annotated, |packet, said| {
            said.extend(comments.remove(&packet));
        })
        .unwrap();
        let found = read(&annotated);
        let statistics = found.len() - interfaces.len();
        prop_assert_eq!(&found[4..statistics], &expected[..]);
    }
}
