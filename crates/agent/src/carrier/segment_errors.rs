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
