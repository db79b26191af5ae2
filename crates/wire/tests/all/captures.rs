//! What agents nobody here wrote have put on the wire.
//!
//! The captures lie beside the repository, in `../shared/pcaps`; where they are not, there is nothing to
//! test. Some are malformed on purpose.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use careof_wire::icmp::IcmpMessage;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::{self, Message};
use careof_wire::tunnel::decapsulate;
use careof_wire::udp::UdpHeader;
use careof_wire::{Error, Segment, protocol};

/// The captures of a directory, or `None` where there are none.
pub(crate) fn captures(directory: &str) -> Option<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pcaps");
    let Ok(entries) = root.join(directory).read_dir() else {
        eprintln!("skipped: no captures in ../shared/pcaps");
        return None;
    };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    Some(paths)
}

/// The frames of a capture in the classic format, and its link type.
pub(crate) fn frames(path: &Path) -> (u32, Vec<Vec<u8>>) {
    const FILE_HEADER: usize = 24;
    const LINK_TYPE: usize = 20;
    const FRAME_HEADER: usize = 16;
    const CAPTURED_LEN: usize = 8;
    let bytes = std::fs::read(path).expect("a capture");
    let big_endian = bytes.starts_with(&[0xa1]);
    let u32_at = |at: usize| {
        let field = bytes[at..at + 4].try_into().expect("four bytes");
        if big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
    };
    let mut frames = Vec::new();
    let mut at = FILE_HEADER;
    while at + FRAME_HEADER <= bytes.len() {
        let start = at + FRAME_HEADER;
        at = (start + u32_at(at + CAPTURED_LEN) as usize).min(bytes.len());
        frames.push(bytes[start..at].to_vec());
    }
    // The upper bits of the field tell the length of a frame check sequence.
    (u32_at(LINK_TYPE) & 0xffff, frames)
}

/// The IPv4 datagram in an Ethernet frame.
fn in_ethernet(frame: &[u8]) -> Option<&[u8]> {
    frame.strip_prefix(frame.get(..12)?)?.strip_prefix(&[0x08, 0x00])
}

/// How many messages of each kind there were.
type Found = BTreeMap<&'static str, usize>;

/// Takes a datagram apart, and those inside it.
fn take_apart(datagram: &[u8], found: &mut Found) -> Result<(), Error> {
    let (header, payload) = Ipv4Header::parse(datagram)?;
    let kind = match header.protocol {
        protocol::UDP => {
            let (ports, payload) = UdpHeader::parse(header.source, header.destination, payload)?;
            if ports.source_port != mip4::PORT && ports.destination_port != mip4::PORT {
                "udp"
            } else {
                let message = Message::parse(payload)?;
                assert_eq!(message.emit(), payload, "every byte of a message is kept");
                match message {
                    Message::Request(_) => "request",
                    Message::Reply(_) => "reply",
                    _ => "route optimisation",
                }
            }
        }
        protocol::ICMP => match IcmpMessage::parse(payload)? {
            IcmpMessage::RouterAdvertisement(message) if message.mobility_agent().is_some() => "agent",
            IcmpMessage::RouterAdvertisement(_) => "router",
            IcmpMessage::RouterSolicitation(_) => "solicitation",
            IcmpMessage::DestinationUnreachable(_) => "unreachable",
            IcmpMessage::EchoReply(_) | IcmpMessage::EchoRequest(_) => "echo",
            _ => "icmp",
        },
        protocol::TCP => Segment::parse(header.source, header.destination, payload).map(|_| "tcp")?,
        protocol::IP_IN_IP | protocol::GRE => {
            take_apart(&decapsulate(datagram)?.datagram, found)?;
            "tunnel"
        }
        _ => "other",
    };
    *found.entry(kind).or_default() += 1;
    Ok(())
}

fn take_apart_all(paths: &[PathBuf]) -> (Found, Vec<String>) {
    let (mut found, mut errors) = (Found::new(), Vec::new());
    for path in paths {
        let (_, frames) = frames(path);
        for (number, frame) in (1..).zip(&frames) {
            let Some(datagram) = in_ethernet(frame) else { continue };
            if let Err(error) = take_apart(datagram, &mut found) {
                errors.push(format!("{} frame {number}: {error}", path.display()));
            }
        }
    }
    (found, errors)
}

#[test]
fn registrations_and_advertisements_of_click_agents_are_read() {
    let Some(paths) = captures("mip4-click") else { return };
    let (found, errors) = take_apart_all(&paths);
    assert_eq!(errors, [""; 0]);
    // As many as tshark finds.
    assert_eq!(found["request"] + found["reply"], 26);
    assert_eq!(found["agent"] + found["solicitation"], 119);
    assert_eq!(found["tunnel"], 126);
}

#[test]
fn tunnels_of_others_are_read() {
    let Some(paths) = captures("tunnels") else { return };
    let (found, errors) = take_apart_all(&paths);
    assert_eq!(errors, [""; 0]);
    assert_eq!(found["tunnel"], 41);
}

#[test]
fn malformed_captures_are_survived() {
    for directory in ["mip4-click", "mip6", "tunnels"] {
        let Some(paths) = captures(directory) else { return };
        for path in paths {
            for frame in frames(&path).1 {
                // Wherever a header could begin: behind the link's, and where none does.
                for start in [0, 14, 18, 34, 54] {
                    let bytes = frame.get(start..).unwrap_or_default();
                    crate::entry::ENTRIES.iter().for_each(|(_, entry)| entry(bytes));
                }
            }
        }
    }
}
