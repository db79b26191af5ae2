//! ICMPv6 errors from inside a tunnel whose outer header is IPv6 (RFC 2473 section 8).

use core::net::{Ipv4Addr, Ipv6Addr};

use super::NotRelayed;
use crate::icmp::{self, QuotedDatagram, UnreachableCode as Ipv4UnreachableCode};
use crate::icmpv6::{
    DestinationUnreachable, Icmpv6Message, PacketTooBig, ParameterProblemCode, QuotedPacket,
    TimeExceededCode, UnreachableCode, error_is_allowed,
};
use crate::ipv6::{ExtensionHeaders, Ipv6Header};
use crate::{Error, protocol};

/// An error for the sender of a packet that did not make it through a tunnel. What it quotes is the packet as it was in the
/// tunnel: its hop limit may be one less than at the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayedFromIpv6 {
    /// The packet was of IPv6 (RFC 2473 section 8.2).
    Ipv6 {
        /// Whom the error goes to.
        to: Ipv6Addr,
        /// What it says.
        message: Icmpv6Message,
    },
    /// The packet was of IPv4 (RFC 2473 section 8.3).
    Ipv4 {
        /// Whom the error goes to.
        to: Ipv4Addr,
        /// What it says.
        message: icmp::DestinationUnreachable,
    },
}

/// What an error from inside a tunnel means to the sender.
enum Meaning {
    Unreachable,
    TooBig {
        /// The MTU inside the tunnel, bytes.
        mtu: u32,
    },
}

/// The error to send to the original sender, when the encapsulator `entry` receives `message`.
///
/// # Errors
///
/// [`NotRelayed`]; the message may still say something about the tunnel: its MTU, its length, whether its end can be reached.
pub fn relay_error_ipv6(message: &Icmpv6Message, entry: Ipv6Addr) -> Result<RelayedFromIpv6, NotRelayed> {
    let (meaning, quoted) = match message {
        Icmpv6Message::DestinationUnreachable(message) => (Meaning::Unreachable, &message.quoted),
        Icmpv6Message::TimeExceeded(message) if message.code == TimeExceededCode::HopLimit => {
            (Meaning::Unreachable, &message.quoted)
        }
        Icmpv6Message::ParameterProblem(message)
            if message.code == ParameterProblemCode::ErroneousField
                && is_exhausted_limit(&message.quoted, message.pointer) =>
        {
            (Meaning::Unreachable, &message.quoted)
        }
        Icmpv6Message::PacketTooBig(message) => (Meaning::TooBig { mtu: message.mtu }, &message.quoted),
        _ => return Err(NotRelayed::EndsHere),
    };
    let outer = QuotedPacket::parse(quoted).map_err(NotRelayed::QuotedTooShort)?;
    if outer.header.source != entry || outer.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return Err(NotRelayed::NotOurs);
    }
    let overhead = u32::try_from(outer.payload_offset).unwrap_or(u32::MAX);
    match outer.protocol {
        protocol::IPV6 => about_ipv6(&meaning, outer.payload, overhead),
        protocol::IP_IN_IP => about_ipv4(&meaning, outer.payload, overhead),
        _ => Err(NotRelayed::NotOurs),
    }
}

fn about_ipv6(meaning: &Meaning, quoted: &[u8], overhead: u32) -> Result<RelayedFromIpv6, NotRelayed> {
    let (header, _) = Ipv6Header::parse_start(quoted).map_err(NotRelayed::QuotedTooShort)?;
    let is_too_big = matches!(meaning, Meaning::TooBig { .. });
    if !error_is_allowed(quoted, is_too_big) {
        return Err(NotRelayed::NoErrorAllowed);
    }
    let (to, quoted) = (header.source, quoted.to_vec());
    let message = match *meaning {
        Meaning::Unreachable => {
            let code = UnreachableCode::Address;
            Icmpv6Message::DestinationUnreachable(DestinationUnreachable { code, quoted })
        }
        // Section 7.1: a packet no longer than that is fragmented at the entry instead.
        Meaning::TooBig { .. } if header.total_len() <= u32::from(Ipv6Header::MIN_MTU) => {
            return Err(NotRelayed::EndsHere);
        }
        Meaning::TooBig { mtu } => {
            let mtu = mtu.saturating_sub(overhead).max(u32::from(Ipv6Header::MIN_MTU));
            Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted })
        }
    };
    Ok(RelayedFromIpv6::Ipv6 { to, message })
}

fn about_ipv4(meaning: &Meaning, quoted: &[u8], overhead: u32) -> Result<RelayedFromIpv6, NotRelayed> {
    let inner = QuotedDatagram::parse(quoted).map_err(NotRelayed::QuotedTooShort)?;
    // What every ICMP error quotes: the ports.
    let needed = usize::from(inner.header.payload_len.min(8));
    if inner.payload.len() < needed {
        let (what, offset, found) = ("quoted payload", inner.header_len, inner.payload.len());
        return Err(NotRelayed::QuotedTooShort(Error::Truncated { what, offset, needed, found }));
    }
    if !icmp::error_is_allowed(&inner.header, inner.payload) {
        return Err(NotRelayed::NoErrorAllowed);
    }
    let (code, next_hop_mtu) = match *meaning {
        Meaning::Unreachable => (Ipv4UnreachableCode::Host, 0),
        // Section 7.2: what may be fragmented is, at the entry.
        Meaning::TooBig { .. } if !inner.header.dont_fragment => return Err(NotRelayed::EndsHere),
        Meaning::TooBig { mtu } => {
            // No link that carries IPv6 takes less, whatever a router says.
            let mtu = mtu.max(Ipv6Header::MIN_MTU.into()).saturating_sub(overhead);
            (Ipv4UnreachableCode::FragmentationNeeded, u16::try_from(mtu).unwrap_or(u16::MAX))
        }
    };
    let quoted = icmp::quote(quoted);
    let message = icmp::DestinationUnreachable { code, next_hop_mtu, quoted };
    Ok(RelayedFromIpv6::Ipv4 { to: inner.header.source, message })
}

/// Whether `pointer` points at a Tunnel Encapsulation Limit of zero in the quoted packet.
fn is_exhausted_limit(quoted: &[u8], pointer: u32) -> bool {
    let Ok(headers) = ExtensionHeaders::of(quoted) else { return false };
    headers.flatten().any(|extension| extension.encapsulation_limit() == Some((0, pointer)))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::icmpv6::{Echo, ParameterProblem, TimeExceeded, quote};
    use crate::ipv4::Ipv4Header;
    use crate::ipv6::{Extensions, Packet};
    use crate::tunnel::{Ipv6Tunnel, Origin};

    const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7);
    const SENDER_V4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
    const TUNNEL: Ipv6Tunnel = Ipv6Tunnel {
        entry: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
        exit: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9),
        hop_limit: 64,
        encapsulation_limit: Some(4),
    };

    fn ipv6(protocol: u8, len: usize) -> Vec<u8> {
        let destination = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
        let header = Ipv6Header { source: SENDER, destination, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol, &alloc::vec![1; len], &mut bytes).unwrap();
        bytes
    }

    fn ipv4(dont_fragment: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (source, destination) = (SENDER_V4, Ipv4Addr::new(10, 0, 0, 5));
        let protocol = protocol::UDP;
        let header = Ipv4Header { source, destination, protocol, dont_fragment, ..Ipv4Header::default() };
        Ipv4Header { payload_len: 1400, ..header }.emit(&mut bytes);
        bytes.resize(1420, 0x3c);
        bytes
    }

    fn in_tunnel(datagram: &[u8]) -> Vec<u8> {
        quote(&TUNNEL.encapsulate(datagram, Origin::Forwarded).unwrap())
    }

    fn too_big(mtu: u32, datagram: &[u8]) -> Result<RelayedFromIpv6, NotRelayed> {
        let message = PacketTooBig { mtu, quoted: in_tunnel(datagram) };
        relay_error_ipv6(&Icmpv6Message::PacketTooBig(message), TUNNEL.entry)
    }

    #[test]
    fn packet_too_big_reaches_the_sender_with_the_tunnel_s_mtu() {
        for (mtu, told) in [(1400, 1352), (1300, 1280)] {
            let Ok(RelayedFromIpv6::Ipv6 { to, message: Icmpv6Message::PacketTooBig(message) }) =
                too_big(mtu, &ipv6(protocol::UDP, 1400))
            else {
                panic!();
            };
            assert_eq!((to, message.mtu), (SENDER, told));
            assert_eq!(QuotedPacket::parse(&message.quoted).unwrap().header.source, SENDER);
        }
        // The entry fragments what is no longer than 1280 bytes.
        assert_eq!(too_big(1280, &ipv6(protocol::UDP, 1240)), Err(NotRelayed::EndsHere));
        let Ok(RelayedFromIpv6::Ipv4 { to, message }) = too_big(1300, &ipv4(true)) else { panic!() };
        assert_eq!((to, message.next_hop_mtu), (SENDER_V4, 1252));
        assert_eq!(message.code, Ipv4UnreachableCode::FragmentationNeeded);
        assert_eq!(too_big(1300, &ipv4(false)), Err(NotRelayed::EndsHere));
    }

    #[test]
    fn other_errors_tell_the_sender_that_the_destination_is_unreachable() {
        let quoted = in_tunnel(&ipv6(protocol::UDP, 100));
        let (code, v4_code) = (UnreachableCode::NoRoute, Ipv4UnreachableCode::Host);
        let unreachable =
            |quoted| Icmpv6Message::DestinationUnreachable(DestinationUnreachable { code, quoted });
        let hop_limit = Icmpv6Message::TimeExceeded(TimeExceeded {
            code: TimeExceededCode::HopLimit,
            quoted: quoted.clone(),
        });
        // A limit of zero in a packet that was encapsulated once more.
        let last = Ipv6Tunnel { encapsulation_limit: Some(0), ..TUNNEL };
        let exhausted = last.encapsulate(&ipv6(protocol::UDP, 100), Origin::Forwarded).unwrap();
        let problem = |pointer| {
            let code = ParameterProblemCode::ErroneousField;
            let quoted = exhausted.clone();
            Icmpv6Message::ParameterProblem(ParameterProblem { code, pointer, quoted })
        };
        for message in [unreachable(quoted.clone()), hop_limit, problem(44)] {
            let Ok(RelayedFromIpv6::Ipv6 { to, message: Icmpv6Message::DestinationUnreachable(message) }) =
                relay_error_ipv6(&message, TUNNEL.entry)
            else {
                panic!();
            };
            assert_eq!((to, message.code), (SENDER, UnreachableCode::Address));
        }
        assert_eq!(relay_error_ipv6(&problem(43), TUNNEL.entry), Err(NotRelayed::EndsHere));
        let message = unreachable(in_tunnel(&ipv4(false)));
        let Ok(RelayedFromIpv6::Ipv4 { message, .. }) = relay_error_ipv6(&message, TUNNEL.entry) else {
            panic!();
        };
        assert_eq!((message.code, message.next_hop_mtu), (v4_code, 0));
    }

    #[test]
    fn what_is_not_ours_or_an_error_itself_is_not_relayed() {
        let code = UnreachableCode::NoRoute;
        let unreachable =
            |quoted| Icmpv6Message::DestinationUnreachable(DestinationUnreachable { code, quoted });
        let message = unreachable(in_tunnel(&ipv6(protocol::UDP, 100)));
        assert_eq!(relay_error_ipv6(&message, SENDER), Err(NotRelayed::NotOurs));
        let message = unreachable(ipv6(protocol::UDP, 100));
        assert_eq!(relay_error_ipv6(&message, SENDER), Err(NotRelayed::NotOurs));
        let message = unreachable(in_tunnel(&ipv6(protocol::ICMPV6, 100)));
        assert_eq!(relay_error_ipv6(&message, TUNNEL.entry), Err(NotRelayed::NoErrorAllowed));
        let echo = Icmpv6Message::EchoReply(Echo::default());
        assert_eq!(relay_error_ipv6(&echo, TUNNEL.entry), Err(NotRelayed::EndsHere));
        let mut quoted = in_tunnel(&ipv6(protocol::UDP, 100));
        quoted.truncate(48 + 39);
        let relayed = relay_error_ipv6(&unreachable(quoted), TUNNEL.entry);
        assert!(matches!(relayed, Err(NotRelayed::QuotedTooShort(_))));
    }
}
