//! What the books note of tunnels that swallow large packets.

use careof_assist::HoleNews;
use careof_base::Instant;
use careof_metrics::BlackHoles;
use careof_wire::icmp::{IcmpMessage, QuotedDatagram, UnreachableCode};
use careof_wire::icmpv6::QuotedPacket;

/// Notes what an assist on `node` has to say of the path `towards` something, on which a packet of `flow` was.
pub fn note_hole(
    holes: &mut BlackHoles,
    at: Instant,
    (node, towards): (&str, String),
    flow: &str,
    news: HoleNews,
) {
    match news {
        HoleNews::Assumed { mtu, failed } => holes.on_assumed(at, (node, towards), flow, failed, mtu),
        HoleNews::Told { .. } => holes.on_told(node, &towards),
        HoleNews::InFragments => holes.on_fragments(node, &towards),
    }
}

/// Notes an ICMP message that a link filtered, if it said that a packet was too large: that leaves a black hole.
pub fn note_filtered(holes: &mut BlackHoles, at: Instant, link: &str, message: &[u8]) {
    if let Ok(IcmpMessage::DestinationUnreachable(error)) = IcmpMessage::parse(message)
        && error.code == UnreachableCode::FragmentationNeeded
        && let Ok(quoted) = QuotedDatagram::parse(&error.quoted)
    {
        holes.on_filtered(at, link, quoted.header.destination.to_string(), error.next_hop_mtu);
    }
}

/// Notes an ICMPv6 message that a link filtered, if it was a Packet Too Big (RFC 4443 section 3.2).
pub fn note_filtered_ipv6(holes: &mut BlackHoles, at: Instant, link: &str, message: &[u8]) {
    const PACKET_TOO_BIG: u8 = 2;
    let Some((header, quoted)) = message.split_first_chunk::<8>() else { return };
    let [kind, _, _, _, mtu @ ..] = *header;
    if kind == PACKET_TOO_BIG
        && let Ok(quoted) = QuotedPacket::parse(quoted)
    {
        let mtu = u16::try_from(u32::from_be_bytes(mtu)).unwrap_or(u16::MAX);
        holes.on_filtered(at, link, quoted.header.destination.to_string(), mtu);
    }
}
