//! What the fuzz targets of IPv6 do with their bytes.

use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::icmpv6::{self, Icmpv6Message, IpFields, QuotedPacket};
use careof_wire::ipv6::{
    ExtensionHeaders, Ipv6Header, Packet, PacketError, Reassembler, ReassemblyLimits, Understood, fragment,
    upper_layer_checksum,
};
use careof_wire::protocol;
use careof_wire::tunnel::{
    Ipv6InIpv4Tunnel, Ipv6Tunnel, Origin, RelayedFromIpv6, decapsulate_ipv6, decapsulate_ipv6_in_ipv4,
    relay_error_ipv6,
};

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A packet whose version and Payload Length are right, as far as they can be.
fn repaired_packet(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first = *first & 0x0f | 0x60;
    }
    let len = bytes.len().saturating_sub(usize::from(Ipv6Header::LEN)).min(usize::from(u16::MAX)) as u16;
    if let Some(field) = bytes.get_mut(4..6) {
        field.copy_from_slice(&len.to_be_bytes());
    }
    bytes
}

/// IPv6 packets, their extension headers, fragments and tunnels: what is understood is emitted and read again.
pub fn ipv6(data: &[u8]) {
    for bytes in [data.to_vec(), repaired_packet(data)] {
        let headers = ExtensionHeaders::of(&bytes).map_or(0, Iterator::count);
        // With that of a fragment, and an error.
        assert!(headers <= usize::from(ExtensionHeaders::MAX) + 2, "the walk has an end");
        let _plain = Packet::parse(&bytes, Understood::PLAIN_IPV6);
        packet(&bytes);
        pieces(&bytes);
        tunnels(&bytes);
    }
}

fn packet(bytes: &[u8]) {
    let packet = match Packet::parse(bytes, Understood::MOBILE_IPV6) {
        Ok(packet) => packet,
        Err(PacketError::ParameterProblem { pointer, .. }) => {
            return assert!((pointer as usize) < bytes.len(), "it points into the packet");
        }
        Err(_) => return,
    };
    assert_eq!(bytes.get(packet.protocol_at), Some(&packet.protocol));
    let mut emitted = Vec::new();
    // Unknown options and other routing headers are gone, so it cannot be too long.
    let Packet { header, extensions, protocol, payload, .. } = packet;
    Packet::emit(&header, &extensions, protocol, payload, &mut emitted).expect("no longer than it was");
    if packet.fragment.is_none() {
        let again = Packet::parse(&emitted, Understood::MOBILE_IPV6).expect("we emitted it");
        assert_eq!((again.extensions, again.protocol, again.payload), (extensions, protocol, payload));
        assert_eq!((again.source(), again.destination()), (packet.source(), packet.destination()));
    }
}

/// Cuts a packet at several places and puts it together again.
fn pieces(bytes: &[u8]) {
    let limits = ReassemblyLimits { bytes: usize::MAX, ..ReassemblyLimits::default() };
    let _either = Reassembler::new(limits).handle_fragment(Instant::ZERO, bytes);
    for mtu in [100, 1280] {
        let Ok(fragments) = fragment(bytes, mtu, 7) else { continue };
        let mut reassembler = Reassembler::new(limits);
        assert!(fragments.len() == 1 || fragments.iter().all(|fragment| fragment.len() <= usize::from(mtu)));
        let (last, others) = fragments.split_last().expect("one at least");
        if others.is_empty() {
            continue;
        }
        for fragment in others {
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, fragment), Ok(None));
        }
        let whole =
            reassembler.handle_fragment(Instant::ZERO, last).expect("we cut it").expect("it is whole");
        assert_eq!(whole, bytes[..whole.len()]);
    }
}

fn tunnels(bytes: &[u8]) {
    let tunnel = Ipv6Tunnel { entry: SOURCE, exit: DESTINATION, hop_limit: 64, encapsulation_limit: Some(4) };
    if let Ok(wrapped) = tunnel.encapsulate(bytes, Origin::Local) {
        let out = decapsulate_ipv6(&wrapped).expect("we encapsulated it");
        assert_eq!(out.datagram, &bytes[..out.datagram.len()]);
        let front = tunnel.front(bytes, Origin::Local).expect("it was encapsulated");
        assert!(wrapped.starts_with(front.bytes()));
    }
    if let Ok(out) = decapsulate_ipv6(bytes) {
        assert!(!out.datagram.is_empty() && bytes.len() > out.datagram.len());
    }
    let tunnel = Ipv6InIpv4Tunnel { entry: [10, 0, 0, 1].into(), exit: [192, 0, 2, 9].into(), ttl: 64 };
    if let Ok(wrapped) = tunnel.encapsulate(bytes, Origin::Local, 1, true)
        && let Ok(out) = decapsulate_ipv6_in_ipv4(&wrapped)
    {
        assert_eq!(out.packet, &bytes[..out.packet.len()]);
    }
    let _either = decapsulate_ipv6_in_ipv4(bytes);
}

/// ICMPv6 messages, and what errors quote.
pub fn icmpv6(data: &[u8]) {
    let mut repaired = data.to_vec();
    if let Some(field) = repaired.get_mut(2..4) {
        field.fill(0);
        let sum = upper_layer_checksum(SOURCE, DESTINATION, protocol::ICMPV6, &repaired);
        repaired[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    for bytes in [data.to_vec(), repaired] {
        let Ok(message) = Icmpv6Message::parse(SOURCE, DESTINATION, &bytes) else { continue };
        let mut emitted = Vec::new();
        message.emit(SOURCE, DESTINATION, &mut emitted);
        assert_eq!(Icmpv6Message::parse(SOURCE, DESTINATION, &emitted).as_ref(), Ok(&message));
        for hop_limit in [64, 255] {
            let _either = message.check(&IpFields { source: SOURCE, destination: DESTINATION, hop_limit });
        }
        let quoted = match &message {
            Icmpv6Message::DestinationUnreachable(message) => &message.quoted,
            Icmpv6Message::PacketTooBig(message) => &message.quoted,
            Icmpv6Message::TimeExceeded(message) => &message.quoted,
            Icmpv6Message::ParameterProblem(message) => &message.quoted,
            _ => continue,
        };
        let _allowed = icmpv6::error_is_allowed(quoted, false);
        let Ok(outer) = QuotedPacket::parse(quoted) else { continue };
        let _ports = outer.ports();
        assert!(outer.payload.len() <= quoted.len());
        if let Ok(RelayedFromIpv6::Ipv6 { to, message }) = relay_error_ipv6(&message, outer.header.source) {
            let quoted = match &message {
                Icmpv6Message::DestinationUnreachable(message) => &message.quoted,
                Icmpv6Message::PacketTooBig(message) => &message.quoted,
                other => panic!("relayed as {other:?}"),
            };
            let (inner, _) = Ipv6Header::parse_start(quoted).expect("a packet is quoted");
            assert_eq!(inner.source, to);
            assert!(icmpv6::error_is_allowed(quoted, true));
        }
    }
}
