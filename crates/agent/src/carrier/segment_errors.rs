//! ICMP errors that an assist has the sender of a segment told.

use std::net::IpAddr;

use careof_wire::icmp::{self, IcmpMessage, UnreachableCode};
use careof_wire::icmpv6::{self, Icmpv6Message, PacketTooBig};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{IpHeader, SeqNumber};

use super::error_reports::{ErrorReport, SegmentReport};

/// What a sender is told about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentError {
    /// It cannot be delivered at present.
    Unreachable,
    /// It is too large; what fits is so many bytes.
    TooBig { mtu: u16 },
}

/// The error about a segment, from the agent's `own` address; `None` if its sender must not be told. Over IPv6 it quotes as much as
/// fits of `packet`, if that is there (RFC 4443 section 2.4 (c)), and else what TCP needs of it.
pub(super) fn about_segment(
    error: SegmentError,
    own: IpAddr,
    quoted: &IpHeader,
    ports: (u16, u16),
    seq: SeqNumber,
    packet: Option<&[u8]>,
) -> Option<SegmentReport> {
    match (own, quoted) {
        (IpAddr::V4(source), IpHeader::V4(header)) => {
            // What the rule forbids by the payload is about ICMP only.
            if !icmp::error_is_allowed(header, &[]) {
                return None;
            }
            let (code, next_hop_mtu) = match error {
                SegmentError::Unreachable => (UnreachableCode::Host, 0),
                SegmentError::TooBig { mtu } => (UnreachableCode::FragmentationNeeded, mtu),
            };
            let quoted = icmp::quote_segment(header, ports, seq);
            let message = icmp::DestinationUnreachable { code, next_hop_mtu, quoted };
            let message = IcmpMessage::DestinationUnreachable(message);
            Some(SegmentReport::V4(ErrorReport { source, destination: header.source, message }))
        }
        (IpAddr::V6(source), IpHeader::V6(header)) => {
            let quoted = packet.map_or_else(|| icmpv6::quote_segment(header, ports, seq), icmpv6::quote);
            let is_too_big = matches!(error, SegmentError::TooBig { .. });
            if !icmpv6::error_is_allowed(&quoted, is_too_big) {
                return None;
            }
            let message = match error {
                SegmentError::Unreachable => {
                    let code = icmpv6::UnreachableCode::NoRoute;
                    Icmpv6Message::DestinationUnreachable(icmpv6::DestinationUnreachable { code, quoted })
                }
                SegmentError::TooBig { mtu } => {
                    let mtu = mtu.max(Ipv6Header::MIN_MTU).into();
                    Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted })
                }
            };
            Some(SegmentReport::V6(ErrorReport { source, destination: header.source, message }))
        }
        // An agent carries packets of the version that its own address is of.
        _ => None,
    }
}

/// Whether these are the bytes of a packet of IPv6, without extension headers, that holds this segment.
pub(super) fn is_segment_of(packet: &[u8], header: &IpHeader, ports: (u16, u16), seq: SeqNumber) -> bool {
    /// Where the addresses stand, and the ports and the sequence number behind the header.
    const ADDRESSES: usize = 8;
    const TCP: usize = Ipv6Header::LEN as usize;
    let IpHeader::V6(header) = header else { return false };
    let Some([s0, s1, d0, d1, number @ ..]) = packet.get(TCP..TCP + 8).and_then(<[u8]>::first_chunk::<8>)
    else {
        return false;
    };
    let found = (u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]));
    let addresses = packet.get(ADDRESSES..TCP).and_then(|both| both.split_first_chunk::<16>());
    found == ports
        && u32::from_be_bytes(*number) == seq.0
        && packet.first().is_some_and(|first| first >> 4 == 6)
        && addresses.is_some_and(|(source, destination)| {
            *source == header.source.octets() && destination == header.destination.octets()
        })
}
