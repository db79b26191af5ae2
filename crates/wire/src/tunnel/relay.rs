//! ICMP errors from inside a tunnel (RFC 2003 section 4).
//!
//! A router inside the tunnel sends its error to the source of what it sees: the encapsulator. Where the
//! error quotes enough of the datagram inside, the encapsulator tells the datagram's sender.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::gre::GreHeader;
use super::minimal::MinimalHeader;
use crate::icmp::{
    DestinationUnreachable, IcmpMessage, QuotedDatagram, TimeExceededCode, UnreachableCode, error_is_allowed,
};
use crate::ipv4::Ipv4Header;
use crate::{Error, protocol};

/// Bytes of payload that every ICMP error quotes, where there are as many: the ports.
const LEAST_QUOTED: u16 = 8;

/// An error for the sender of a datagram that did not make it through a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedError {
    /// Whom it goes to.
    pub to: Ipv4Addr,
    /// What it says, about the datagram as it was before it was wrapped but for its time to live.
    pub message: DestinationUnreachable,
}

/// Why an ICMP message is not relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotRelayed {
    /// It is none that is relayed: Port Unreachable and Source Route Failed, which say nothing of the
    /// original datagram; Source Quench and Redirect, which are the encapsulator's own; reassembly time,
    /// for RFC 2003 speaks of loops; parameter problems, codes of which RFC 2003 does not speak, and
    /// everything that is no error.
    #[error("this message ends at the encapsulator")]
    EndsHere,
    /// What it quotes has not been sent into a tunnel by this encapsulator.
    #[error("the datagram quoted is none that was sent into a tunnel from here")]
    NotOurs,
    /// It quotes too little: a router that follows RFC 792 to the letter quotes 8 bytes, and the sender's
    /// address is not among them.
    #[error("too little is quoted: {0}")]
    QuotedTooShort(Error),
    /// The datagram inside is one about which no error is sent (RFC 1122 section 3.2.2).
    #[error("no error is sent about the datagram inside")]
    NoErrorAllowed,
}

/// The error to send to the original sender, when the encapsulator `entry` receives `message`.
///
/// `destination_is_local` says whether the encapsulator is on the network the datagram was for, as a home
/// agent is: then an unreachable net or protocol inside the tunnel is an unreachable host to the sender,
/// else an unreachable net.
///
/// # Errors
///
/// [`NotRelayed`]; the message may still say something about the tunnel: its MTU, its length, whether its
/// end can be reached.
pub fn relay_error(
    message: &IcmpMessage,
    entry: Ipv4Addr,
    destination_is_local: bool,
) -> Result<RelayedError, NotRelayed> {
    let unreachable = if destination_is_local { UnreachableCode::Host } else { UnreachableCode::Net };
    let (code, next_hop_mtu, quoted) = match message {
        IcmpMessage::DestinationUnreachable(message) => {
            let code = match message.code {
                // Section 4.1: the sender did not send protocol 4, 47 or 55, so it is not told of it.
                UnreachableCode::Net | UnreachableCode::Protocol => unreachable,
                UnreachableCode::Host => UnreachableCode::Host,
                UnreachableCode::FragmentationNeeded => UnreachableCode::FragmentationNeeded,
                _ => return Err(NotRelayed::EndsHere),
            };
            (code, message.next_hop_mtu, &message.quoted)
        }
        // Section 4.4: a routing loop inside the tunnel.
        IcmpMessage::TimeExceeded(message) if message.code == TimeExceededCode::InTransit => {
            (UnreachableCode::Host, 0, &message.quoted)
        }
        _ => return Err(NotRelayed::EndsHere),
    };
    let outer = QuotedDatagram::parse(quoted).map_err(NotRelayed::QuotedTooShort)?;
    if outer.header.source != entry {
        return Err(NotRelayed::NotOurs);
    }
    let (quoted, overhead) = quoted_inside(&outer)?;
    let inner = QuotedDatagram::parse(&quoted).map_err(NotRelayed::QuotedTooShort)?;
    let needed = usize::from(inner.header.payload_len.min(LEAST_QUOTED));
    if inner.payload.len() < needed {
        let (what, offset, found) = ("quoted payload", inner.header_len, inner.payload.len());
        return Err(NotRelayed::QuotedTooShort(Error::Truncated { what, offset, needed, found }));
    }
    if !error_is_allowed(&inner.header, inner.payload) {
        return Err(NotRelayed::NoErrorAllowed);
    }
    let next_hop_mtu = match code {
        // Section 5.1. A router that does not know RFC 1191 says 0, and so does the encapsulator.
        UnreachableCode::FragmentationNeeded => next_hop_mtu.saturating_sub(overhead),
        _ => 0,
    };
    let to = inner.header.source;
    Ok(RelayedError { to, message: DestinationUnreachable { code, next_hop_mtu, quoted } })
}

/// As much as is quoted of the datagram inside a quoted one, and how many bytes the tunnel had added.
fn quoted_inside(outer: &QuotedDatagram<'_>) -> Result<(Vec<u8>, u16), NotRelayed> {
    let header_len = outer.header_len as u16;
    let too_short = |error: Error| NotRelayed::QuotedTooShort(error.shifted(outer.header_len));
    match outer.header.protocol {
        protocol::IP_IN_IP => Ok((outer.payload.to_vec(), header_len)),
        protocol::GRE => {
            let (gre, inner) = GreHeader::parse_quoted(outer.payload).map_err(too_short)?;
            Ok((inner.to_vec(), header_len + gre.len()))
        }
        protocol::MINIMAL => {
            let (minimal, rest) = MinimalHeader::parse(outer.payload).map_err(too_short)?;
            let overhead = MinimalHeader::len_with(minimal.source.is_some());
            let mut inner = Vec::new();
            Ipv4Header {
                source: minimal.source.unwrap_or(outer.header.source),
                destination: minimal.destination,
                protocol: minimal.protocol,
                payload_len: outer.header.payload_len.saturating_sub(overhead),
                ..outer.header
            }
            .emit(&mut inner);
            inner.extend(rest);
            Ok((inner, overhead))
        }
        _ => Err(NotRelayed::NotOurs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::{Echo, TimeExceeded, quote};
    use crate::tunnel::{Encapsulation, Origin, Tunnel};

    const SENDER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const EVERY: [Encapsulation; 3] = [
        Encapsulation::IpInIp,
        Encapsulation::Minimal,
        Encapsulation::Gre { key: Some(1), sequence: Some(2) },
    ];

    fn datagram(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        Ipv4Header {
            source: SENDER,
            destination: Ipv4Addr::new(10, 0, 0, 5),
            dont_fragment: true,
            payload_len: 1400,
            ..header
        }
        .emit(&mut bytes);
        bytes.resize(1420, 0x3c);
        bytes
    }

    fn tcp() -> Ipv4Header {
        Ipv4Header { protocol: protocol::TCP, ..Ipv4Header::default() }
    }

    fn tunnelled(encapsulation: Encapsulation, header: Ipv4Header) -> Vec<u8> {
        let tunnel = Tunnel { encapsulation, entry: ENTRY, exit: Ipv4Addr::new(192, 0, 2, 9), ttl: 64 };
        tunnel.encapsulate(&datagram(header), Origin::Forwarded, 1).unwrap()
    }

    fn unreachable(code: UnreachableCode, next_hop_mtu: u16, quoted: Vec<u8>) -> IcmpMessage {
        IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, next_hop_mtu, quoted })
    }

    #[test]
    fn datagram_too_big_reaches_the_sender_with_the_tunnel_s_mtu() {
        for (encapsulation, mtu) in EVERY.into_iter().zip([1380, 1388, 1368]) {
            let quoted = quote(&tunnelled(encapsulation, tcp()));
            let error = unreachable(UnreachableCode::FragmentationNeeded, 1400, quoted);
            let relayed = relay_error(&error, ENTRY, true).unwrap();
            assert_eq!(relayed.to, SENDER);
            assert_eq!(relayed.message.code, UnreachableCode::FragmentationNeeded);
            assert_eq!(relayed.message.next_hop_mtu, mtu);
            let about = QuotedDatagram::parse(&relayed.message.quoted).unwrap();
            let original = Ipv4Header { ttl: 63, ..Ipv4Header::parse(&datagram(tcp())).unwrap().0 };
            assert_eq!(about.header, original, "{encapsulation:?}");
            assert_eq!(about.payload[..8], [0x3c; 8]);
        }
        let quoted = quote(&tunnelled(Encapsulation::IpInIp, tcp()));
        let error = unreachable(UnreachableCode::FragmentationNeeded, 0, quoted);
        assert_eq!(relay_error(&error, ENTRY, true).unwrap().message.next_hop_mtu, 0);
    }

    #[test]
    fn codes_are_translated_as_rfc_2003_says() {
        use UnreachableCode::{Host, Net, Port, Protocol, SourceRouteFailed};
        let quoted = quote(&tunnelled(Encapsulation::IpInIp, tcp()));
        for (code, local, expected) in [
            (Net, true, Some(Host)),
            (Net, false, Some(Net)),
            (Host, true, Some(Host)),
            (Host, false, Some(Host)),
            (Protocol, true, Some(Host)),
            (Protocol, false, Some(Net)),
            (Port, true, None),
            (SourceRouteFailed, true, None),
        ] {
            let relayed = relay_error(&unreachable(code, 0, quoted.clone()), ENTRY, local);
            assert_eq!(relayed.ok().map(|relayed| relayed.message.code), expected, "{code} {local}");
        }
        let code = TimeExceededCode::InTransit;
        let loops = IcmpMessage::TimeExceeded(TimeExceeded { code, quoted: quoted.clone() });
        assert_eq!(relay_error(&loops, ENTRY, false).unwrap().message.code, Host);
        let code = TimeExceededCode::Reassembly;
        let late = IcmpMessage::TimeExceeded(TimeExceeded { code, quoted });
        assert_eq!(relay_error(&late, ENTRY, false), Err(NotRelayed::EndsHere));
        let echo = IcmpMessage::EchoReply(Echo::default());
        assert_eq!(relay_error(&echo, ENTRY, false), Err(NotRelayed::EndsHere));
    }

    #[test]
    fn eight_quoted_bytes_do_not_tell_the_sender() {
        for encapsulation in EVERY {
            let mut quoted = tunnelled(encapsulation, tcp());
            quoted.truncate(28);
            let relayed = relay_error(&unreachable(UnreachableCode::Host, 0, quoted), ENTRY, true);
            assert!(matches!(relayed, Err(NotRelayed::QuotedTooShort(Error::Truncated { .. }))));
        }
        let mut quoted = tunnelled(Encapsulation::IpInIp, tcp());
        quoted.truncate(20 + 20 + 7);
        let relayed = relay_error(&unreachable(UnreachableCode::Host, 0, quoted.clone()), ENTRY, true);
        assert!(matches!(relayed, Err(NotRelayed::QuotedTooShort(Error::Truncated { found: 7, .. }))));
        quoted.push(0);
        assert!(relay_error(&unreachable(UnreachableCode::Host, 0, quoted), ENTRY, true).is_ok());
    }

    #[test]
    fn errors_about_others_datagrams_and_about_errors_are_not_relayed() {
        let quoted = quote(&tunnelled(Encapsulation::IpInIp, tcp()));
        let error = unreachable(UnreachableCode::Host, 0, quoted);
        assert_eq!(relay_error(&error, SENDER, true), Err(NotRelayed::NotOurs));
        let mut plain = datagram(tcp());
        plain[12..16].copy_from_slice(&ENTRY.octets());
        let error = unreachable(UnreachableCode::Host, 0, plain);
        assert_eq!(relay_error(&error, ENTRY, true), Err(NotRelayed::NotOurs));
        let icmp = Ipv4Header { protocol: protocol::ICMP, ..Ipv4Header::default() };
        let error = unreachable(UnreachableCode::Host, 0, quote(&tunnelled(Encapsulation::IpInIp, icmp)));
        assert_eq!(relay_error(&error, ENTRY, true), Err(NotRelayed::NoErrorAllowed));
    }
}
