//! Tunnels inside tunnels.

use super::gre::GreHeader;
use super::minimal::MinimalHeader;
use crate::icmp::QuotedDatagram;
use crate::ipv4::Ipv4Header;
use crate::protocol;

/// The headers with which a datagram is in tunnels already, the outermost first. It ends at the first that is none, behind the
/// header of a later fragment, and where nothing can be read; checksums are not looked at.
///
/// A datagram that is about to enter a tunnel, and has been in it before, goes round in circles (RFC 2003 section 3.2): two agents
/// that send it to each other wrap it again each time, and every outer header has a fresh time to live.
pub fn nested(datagram: &[u8]) -> impl Iterator<Item = Ipv4Header> {
    let outermost = QuotedDatagram::parse(datagram).ok().map(|outer| (outer.header, outer.payload));
    let is_tunnelled = |(header, _): &(Ipv4Header, &[u8])| {
        matches!(header.protocol, protocol::IP_IN_IP | protocol::MINIMAL | protocol::GRE)
    };
    core::iter::successors(outermost.filter(is_tunnelled), move |&(header, payload)| {
        inside(header, payload).filter(is_tunnelled)
    })
    .map(|(header, _)| header)
}

/// What is in a tunnelled datagram: its header, and the payload as far as it is there.
fn inside(header: Ipv4Header, payload: &[u8]) -> Option<(Ipv4Header, &[u8])> {
    if header.fragment_offset != 0 {
        return None;
    }
    let inner = match header.protocol {
        protocol::IP_IN_IP => payload,
        protocol::GRE => GreHeader::parse_quoted(payload).ok()?.1,
        protocol::MINIMAL => {
            let (minimal, rest) = MinimalHeader::parse(payload).ok()?;
            let source = minimal.source.unwrap_or(header.source);
            let (protocol, destination) = (minimal.protocol, minimal.destination);
            return Some((Ipv4Header { source, destination, protocol, ..header }, rest));
        }
        _ => return None,
    };
    QuotedDatagram::parse(inner).ok().map(|inner| (inner.header, inner.payload))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use super::*;
    use crate::tunnel::{Encapsulation, Origin, Tunnel};

    /// Two home agents, each of which tunnels to the home address of the other's mobile node.
    const ONE: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(172, 16, 0, 5));
    const OTHER: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(172, 16, 0, 1), Ipv4Addr::new(10, 0, 0, 5));

    fn datagram() -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = Ipv4Header {
            source: Ipv4Addr::new(198, 51, 100, 7),
            destination: Ipv4Addr::new(10, 0, 0, 5),
            protocol: protocol::UDP,
            payload_len: 8,
            ..Ipv4Header::default()
        };
        header.emit(&mut bytes);
        bytes.extend([7; 8]);
        bytes
    }

    fn wrapped(
        datagram: &[u8],
        encapsulation: Encapsulation,
        (entry, exit): (Ipv4Addr, Ipv4Addr),
    ) -> Vec<u8> {
        let tunnel = Tunnel { encapsulation, entry, exit, ttl: 64 };
        tunnel.encapsulate(datagram, Origin::Local, 1).unwrap()
    }

    #[test]
    fn every_tunnel_that_a_datagram_is_in_is_seen() {
        let ends = [ONE, OTHER, ONE];
        let gre = Encapsulation::Gre { key: Some(1), sequence: Some(2) };
        for encapsulations in [
            [Encapsulation::IpInIp; 3],
            [Encapsulation::Minimal; 3],
            [gre; 3],
            [Encapsulation::Minimal, gre, Encapsulation::IpInIp],
            [Encapsulation::IpInIp, Encapsulation::Minimal, gre],
        ] {
            let mut bytes = datagram();
            for (encapsulation, ends) in encapsulations.into_iter().zip(ends) {
                bytes = wrapped(&bytes, encapsulation, ends);
            }
            let seen: Vec<_> = nested(&bytes).map(|header| (header.source, header.destination)).collect();
            assert_eq!(seen, [ends[2], ends[1], ends[0]], "{encapsulations:?}");
        }
        assert_eq!(nested(&datagram()).count(), 0);
        assert_eq!(nested(b"no datagram").count(), 0);
    }

    #[test]
    fn of_a_later_fragment_the_tunnel_it_is_in_itself_is_seen() {
        let twice = [ONE, OTHER]
            .into_iter()
            .fold(datagram(), |bytes, ends| wrapped(&bytes, Encapsulation::IpInIp, ends));
        let fragments = crate::ipv4::fragment(&twice, 44).unwrap();
        let seen = fragments.iter().map(|fragment| nested(fragment).count());
        assert_eq!(seen.collect::<Vec<_>>(), [2, 1]);
    }
}
