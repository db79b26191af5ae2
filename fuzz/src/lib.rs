//! What each fuzz target does with its bytes.
//!
//! Beyond not panicking, every parser has to keep a promise: what it accepts it can emit, and reads the
//! same from that. The targets in `fuzz_targets/` hand these functions to libFuzzer; the tests of
//! `careof-wire` run the very same ones on random and mutilated messages, with a stable compiler.
//!
//! Where a checksum would stop nearly all bytes at the door, they are parsed a second time with the
//! checksum made right.

mod ipv6;

use core::net::{Ipv4Addr, Ipv6Addr};

use careof_base::{Duration, Instant};
use careof_wire::dhcp::DhcpMessage;
use careof_wire::icmp::{IcmpMessage, QuotedDatagram, error_is_allowed};
use careof_wire::ipv4::{Ipv4Header, Reassembler, ReassemblyLimits, fragment};
use careof_wire::micro::{AUTHENTICATOR_LEN, MicroMessage, verify_authenticator};
use careof_wire::mip4::{Algorithm, Extension, Message, verify_authentication};
use careof_wire::mip6::{
    self, BindingAuthorization, BindingManagementKey, KeygenToken, MobileHomeAuthentication,
};
use careof_wire::shake::ShakeMessage;
use careof_wire::tunnel::{
    MultipathHeader, Origin, Tunnel, decapsulate, decapsulate_in_place, nested, relay_error,
};
use careof_wire::udp::UdpHeader;
use careof_wire::{Segment, protocol};

pub use ipv6::{icmpv6, ipv6};

/// A function that takes whatever bytes there are.
pub type Entry = fn(&[u8]);

/// Every entry by its name.
pub const ENTRIES: [(&str, Entry); 15] = [
    ("mip4", mip4),
    ("mip6", mip6),
    ("micro", micro),
    ("dhcp", dhcp),
    ("icmp", icmp),
    ("ipv4", ipv4),
    ("ipv6", ipv6),
    ("icmpv6", icmpv6),
    ("udp", udp),
    ("tcp", tcp),
    ("tunnel", tunnel),
    ("fragmentation", fragmentation),
    ("reassembly", reassembly),
    ("shake", shake),
    ("multipath", multipath),
];

const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const SOURCE_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77);
const DESTINATION_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);

/// The most bytes an IPv4 datagram carries.
const MAX_PAYLOAD: usize = Ipv4Header::MAX_PAYLOAD_LEN as usize;

/// The ones' complement of the sum of all 16-bit words, by hand.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

/// `bytes` with the checksum at `at` made right, over all of them and `pseudo`.
fn repaired(bytes: &[u8], at: usize, pseudo: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.fill(0);
        let right = checksum(&[pseudo, &bytes]);
        bytes[at..at + 2].copy_from_slice(&right);
    }
    bytes
}

/// A datagram with its header checksum made right.
fn repaired_datagram(bytes: &[u8]) -> Vec<u8> {
    let header_len = bytes.first().map_or(0, |first| usize::from(first & 15) * 4).min(bytes.len());
    let (header, rest) = bytes.split_at(header_len);
    [&repaired(header, 10, &[])[..], rest].concat()
}

fn pseudo_header(protocol: u8, len: usize) -> Vec<u8> {
    let [high, low] = (len as u16).to_be_bytes();
    [&SOURCE.octets()[..], &DESTINATION.octets(), &[0, protocol, high, low]].concat()
}

/// Registration messages: what is accepted is emitted byte for byte. Those of route optimisation drop reserved bits.
pub fn mip4(data: &[u8]) {
    let Ok(message) = Message::parse(data) else { return };
    let emitted = message.emit();
    match &message {
        Message::Request(request) => {
            assert_eq!(emitted, data);
            if let Some(notification) = request.previous_foreign_agent() {
                let update = notification.update(request.home_address, request.identification);
                let update = Message::BindingUpdate(update);
                assert_eq!(Message::parse(&update.emit()), Ok(update));
            }
        }
        Message::Reply(_) => assert_eq!(emitted, data),
        _ => {
            assert_eq!(emitted.len(), data.len());
            assert_eq!(Message::parse(&emitted).as_ref(), Ok(&message));
        }
    }
    for placed in message.placed_extensions() {
        assert!(placed.end() <= data.len());
        assert_eq!(placed.extension.kind(), data[placed.offset]);
        if let Extension::Authentication(_) = placed.extension {
            for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
                assert!(!verify_authentication(data, placed.offset, algorithm, b"not the key"));
            }
        }
    }
}

/// Mobility Headers: padding and reserved bits are dropped, all else is kept; no bytes are authentic by themselves.
pub fn mip6(data: &[u8]) {
    let units = data.get(1).map_or(0, |units| usize::from(*units));
    let (header, behind) = data.split_at(((units + 1) * 8).min(data.len()));
    let addresses = [SOURCE_6.octets(), DESTINATION_6.octets()].concat();
    let len = (header.len() as u32).to_be_bytes();
    let pseudo = [&addresses[..], &len, &[0, 0, 0, mip6::PROTOCOL]].concat();
    let key = BindingManagementKey::for_deletion(KeygenToken(*b"no token"));
    let authorization =
        BindingAuthorization { key: &key, care_of_address: SOURCE_6, correspondent: DESTINATION_6 };
    for bytes in [data.to_vec(), [&repaired(header, 4, &pseudo)[..], behind].concat()] {
        assert!(!authorization.verify(&bytes));
        let parsed = mip6::Message::parse(SOURCE_6, DESTINATION_6, &bytes);
        let Ok(message) = parsed else { continue };
        // Padding that a sender saved may be too much for us.
        let Ok(emitted) = message.emit(SOURCE_6, DESTINATION_6) else { continue };
        assert_eq!(emitted.len() % 8, 0);
        assert_eq!(mip6::Message::parse(SOURCE_6, DESTINATION_6, &emitted).as_ref(), Ok(&message));
        if let Ok(signed) = message.emit_authorized(SOURCE_6, DESTINATION_6, &authorization) {
            let has_options = message.options().is_some();
            assert_eq!(authorization.verify(&signed), has_options);
        }
        for algorithm in [mip6::Algorithm::HmacSha1, mip6::Algorithm::HmacSha256] {
            let authentication = MobileHomeAuthentication {
                spi: mip6::Spi(256),
                algorithm,
                key: b"not the key",
                care_of_address: SOURCE_6,
                home_address: DESTINATION_6,
            };
            assert!(!authentication.verify(&bytes));
            let authorization = mip6::FastBindingAuthorization {
                spi: mip6::Spi(256),
                algorithm,
                key: b"not the key",
                care_of_address: SOURCE_6,
                access_router: DESTINATION_6,
            };
            assert!(!authorization.verify(&bytes));
            if let Ok(signed) = message.emit_fast_authorized(SOURCE_6, DESTINATION_6, &authorization) {
                assert_eq!(authorization.verify(&signed), message.options().is_some());
            }
        }
    }
}

/// Micro-mobility messages: what is accepted is emitted byte for byte, but for the authenticator; no bytes are authentic by themselves.
pub fn micro(data: &[u8]) {
    assert!(!verify_authenticator(data, b"not the key"));
    let Ok(message) = MicroMessage::parse(data) else { return };
    let emitted = message.emit(b"the key");
    let covered = data.len() - AUTHENTICATOR_LEN;
    assert_eq!((emitted.len(), &emitted[..covered]), (data.len(), &data[..covered]));
    assert_eq!(MicroMessage::parse(&emitted), Ok(message));
    assert!(verify_authenticator(&emitted, b"the key"));
}

/// DHCP messages: where an option stands is not kept, what it says is.
pub fn dhcp(data: &[u8]) {
    let Ok(message) = DhcpMessage::parse(data) else { return };
    assert_eq!(DhcpMessage::parse(&message.emit()), Ok(message));
}

/// ICMP messages, and what is relayed of them.
pub fn icmp(data: &[u8]) {
    for bytes in [data.to_vec(), repaired(data, 2, &[])] {
        let Ok(message) = IcmpMessage::parse(&bytes) else { continue };
        let mut emitted = Vec::new();
        message.emit(&mut emitted);
        assert_eq!(IcmpMessage::parse(&emitted).as_ref(), Ok(&message));
        let quoted = match &message {
            IcmpMessage::DestinationUnreachable(message) => &message.quoted,
            IcmpMessage::TimeExceeded(message) => &message.quoted,
            _ => continue,
        };
        let Ok(outer) = QuotedDatagram::parse(quoted) else { continue };
        let _ports = outer.ports();
        if let Ok(relayed) = relay_error(&message, outer.header.source, true) {
            let inner = QuotedDatagram::parse(&relayed.message.quoted).expect("a datagram is quoted");
            assert_eq!(inner.header.source, relayed.to);
            assert!(error_is_allowed(&inner.header, inner.payload));
        }
    }
}

/// IPv4 datagrams.
pub fn ipv4(data: &[u8]) {
    for bytes in [data.to_vec(), repaired_datagram(data)] {
        let Ok((header, payload)) = Ipv4Header::parse(&bytes) else { continue };
        assert_eq!(payload.len(), usize::from(header.payload_len));
        let mut emitted = Vec::new();
        header.emit(&mut emitted);
        emitted.extend(payload);
        assert_eq!(Ipv4Header::parse(&emitted), Ok((header, payload)));
    }
}

/// UDP datagrams.
pub fn udp(data: &[u8]) {
    let data = &data[..data.len().min(MAX_PAYLOAD)];
    let claimed = match data {
        [_, _, _, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => data.len(),
    };
    let (datagram, padding) = data.split_at(claimed.min(data.len()));
    let right = repaired(datagram, 6, &pseudo_header(protocol::UDP, datagram.len()));
    for bytes in [data.to_vec(), [&right, padding].concat()] {
        let Ok((header, payload)) = UdpHeader::parse(SOURCE, DESTINATION, &bytes) else { continue };
        let mut emitted = Vec::new();
        header.emit(SOURCE, DESTINATION, payload, &mut emitted);
        assert_eq!(UdpHeader::parse(SOURCE, DESTINATION, &emitted), Ok((header, payload)));
    }
}

/// TCP segments.
pub fn tcp(data: &[u8]) {
    let data = &data[..data.len().min(MAX_PAYLOAD)];
    for bytes in [data.to_vec(), repaired(data, 16, &pseudo_header(protocol::TCP, data.len()))] {
        let Ok((segment, payload)) = Segment::parse(SOURCE, DESTINATION, &bytes) else { continue };
        let mut emitted = Vec::new();
        segment.emit(SOURCE, DESTINATION, payload, &mut emitted);
        assert_eq!(emitted.len(), usize::from(segment.header_len()) + payload.len());
        let (again, same_payload) = Segment::parse(SOURCE, DESTINATION, &emitted).expect("we emitted it");
        assert_eq!(same_payload, payload);
        // Four SACK blocks packed tightly beside other options find less room when those are aligned.
        assert_eq!(again.sack.as_slice(), segment.sack_blocks_that_fit());
        assert_eq!(Segment { sack: segment.sack, ..again }, segment);
    }
}

/// Tunnels: what comes out goes in again.
pub fn tunnel(data: &[u8]) {
    for bytes in [data.to_vec(), repaired_datagram(data)] {
        // Each has a header at least.
        assert!(nested(&bytes).count() <= bytes.len() / 8);
        let mut copy = bytes.clone();
        let in_place = decapsulate_in_place(&mut copy);
        assert_eq!(in_place, decapsulate(&bytes), "in place or not is the same");
        let Ok(out) = in_place else { continue };
        let (entry, exit) = (out.outer.source, out.outer.destination);
        let seen: Vec<_> = nested(&bytes).collect();
        assert_eq!(seen.first(), Some(&out.outer), "it came out of this tunnel");
        let inside: Vec<_> = nested(&out.datagram).collect();
        assert!(seen[1..].iter().zip(&inside).all(|(seen, inside)| seen.source == inside.source));
        let tunnel = Tunnel { encapsulation: out.encapsulation, entry, exit, ttl: 64 };
        if let Ok(again) = tunnel.encapsulate(&out.datagram, Origin::Local, 1) {
            let again = decapsulate(&again).expect("we encapsulated it");
            assert_eq!(again.encapsulation, out.encapsulation);
            assert_eq!(Ipv4Header::parse(&again.datagram), Ipv4Header::parse(&out.datagram));
        }
    }
}

/// A datagram behind two bytes of MTU is cut and put together again.
pub fn fragmentation(data: &[u8]) {
    let Some((mtu, datagram)) = data.split_first_chunk::<2>() else { return };
    let (datagram, mtu) = (repaired_datagram(datagram), u16::from_be_bytes(*mtu));
    let Ok(fragments) = fragment(&datagram, mtu) else { return };
    let (header, payload) = Ipv4Header::parse(&datagram).expect("it was cut");
    assert!(fragments.iter().all(|fragment| fragment.len() <= usize::from(mtu)));
    if header.is_fragment() {
        return;
    }
    let limits = ReassemblyLimits { bytes: usize::MAX, ..ReassemblyLimits::default() };
    let mut reassembler = Reassembler::new(limits);
    let mut whole = None;
    for fragment in fragments.iter().rev() {
        assert_eq!(whole, None);
        whole = reassembler.handle_fragment(Instant::ZERO, fragment).expect("we cut it");
    }
    let whole = whole.expect("every fragment is there");
    assert_eq!(Ipv4Header::parse(&whole), Ok((header, payload)));
}

/// A sequence of fragments of a few datagrams, four bytes of description each.
pub fn reassembly(data: &[u8]) {
    let limits = ReassemblyLimits { datagrams: 3, bytes: 2000, timeout: Duration::from_millis(100) };
    let mut reassembler = Reassembler::new(limits);
    let mut now = Instant::ZERO;
    let (mut handed_over, mut whole) = (0, 0);
    for description in data.chunks_exact(4) {
        let &[which, place, len, wait] = description else { return };
        let header = Ipv4Header {
            source: SOURCE,
            destination: DESTINATION,
            identification: u16::from(which & 7),
            more_fragments: which & 0x80 != 0,
            fragment_offset: u16::from(place) * if which & 0x40 == 0 { 8 } else { 256 },
            payload_len: u16::from(len),
            ..Ipv4Header::default()
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.resize(bytes.len() + usize::from(len), which & 0x20);
        now += Duration::from_millis(u64::from(wait / 8));
        handed_over += 1;
        if let Ok(Some(_)) = reassembler.handle_fragment(now, &bytes)
            && !header.is_fragment()
        {
            whole += 1;
        }
        let counters = reassembler.counters();
        let fates = counters.fragments_reassembled
            + counters.dropped_duplicate
            + counters.dropped_inconsistent
            + counters.dropped_no_room
            + counters.dropped_timeout
            + counters.dropped_malformed;
        assert_eq!(fates + whole + reassembler.fragments_waiting() as u64, handed_over);
        assert!(reassembler.fragments_waiting() <= limits.bytes / 64);
        assert!(reassembler.next_timeout().is_none_or(|deadline| deadline > now));
    }
}

/// Messages of a cluster: reserved bits and what a later edition may append are dropped, all else is kept; no bytes are authentic by
/// themselves.
pub fn shake(data: &[u8]) {
    let Ok(received) = ShakeMessage::parse(data) else { return };
    assert!(!received.is_genuine(b"not the key"));
    let emitted = received.message.emit(None);
    let again = ShakeMessage::parse(&emitted);
    assert_eq!(again.map(|again| (again.message, again.spi)), Ok((received.message, None)));
}

/// The header of packets that go by several paths: reserved bits and a checksum are dropped, all else is kept.
pub fn multipath(data: &[u8]) {
    let Ok((header, payload)) = MultipathHeader::parse(data) else { return };
    let mut emitted = Vec::new();
    header.emit(&mut emitted);
    assert_eq!(emitted.len(), MultipathHeader::LEN);
    emitted.extend(payload);
    assert_eq!(MultipathHeader::parse(&emitted), Ok((header, payload)));
}
