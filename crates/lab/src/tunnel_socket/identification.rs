//! Outer headers whose Identification nobody else can know.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;

use careof_wire::icmp::QuotedDatagram;
use careof_wire::protocol;

/// Bytes behind the outer header that every ICMP error quotes (RFC 792).
const QUOTED: usize = 8;

/// Gives the packets of an agent's tunnels an Identification that follows from a secret, so that an ICMP error about one of them
/// shows whether its sender has seen the packet: anybody can write an error, but only who is on the path can quote it.
///
/// A packet that is not to be fragmented needs no Identification of its own (RFC 6864 section 4.1), so this takes nothing
/// from anybody. Others keep the kernel's, which are unique; so do those of minimal encapsulation, whose Identification is
/// that of the datagram inside (RFC 2004 section 3).
#[derive(Clone, Debug)]
pub struct Identifier(RandomState);

/// What a quoted packet says about the error that quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It was sent: its Identification is right, which a guess is once in 65,535.
    Sent,
    /// It was not sent as it is quoted: somebody has made it up, or changed its Identification on the way.
    Wrong,
    /// Packets like this have no such Identification.
    Impossible,
}

impl Identifier {
    /// With a new secret, of the operating system's randomness.
    #[must_use]
    pub fn new() -> Self {
        Self(RandomState::new())
    }

    /// Whether a packet, of which an ICMP error quotes this much, was sent.
    #[must_use]
    pub fn proof(&self, quoted: &QuotedDatagram<'_>) -> Proof {
        let header = &quoted.header;
        if !header.dont_fragment || header.protocol == protocol::MINIMAL {
            return Proof::Impossible;
        }
        match self.identification(header.destination, header.protocol, quoted.payload) {
            Some(identification) if identification == header.identification => Proof::Sent,
            _ => Proof::Wrong,
        }
    }

    /// That of a packet with this payload; never 0, for which the kernel would choose.
    pub(super) fn identification(&self, exit: Ipv4Addr, protocol: u8, payload: &[u8]) -> Option<u16> {
        let start = payload.first_chunk::<QUOTED>()?;
        let hash = self.0.hash_one((exit.to_bits(), protocol, u64::from_be_bytes(*start)));
        u16::try_from(hash % u64::from(u16::MAX)).ok().map(|below| below + 1)
    }
}

impl Default for Identifier {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use careof_wire::ipv4::Ipv4Header;

    use super::*;

    #[test]
    fn only_who_has_seen_a_packet_can_quote_it() {
        let (identifier, other) = (Identifier::new(), Identifier::new());
        let exit = Ipv4Addr::new(192, 0, 2, 7);
        let mut right = 0;
        for length in 0..1000_u16 {
            let mut payload = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6];
            payload[2..4].copy_from_slice(&length.to_be_bytes());
            let identification = identifier.identification(exit, protocol::IP_IN_IP, &payload).unwrap();
            assert_ne!(identification, 0);
            let header = Ipv4Header {
                destination: exit,
                protocol: protocol::IP_IN_IP,
                dont_fragment: true,
                identification,
                payload_len: 1400,
                ..Ipv4Header::default()
            };
            let proof =
                |header, payload| identifier.proof(&QuotedDatagram { header, header_len: 20, payload });
            assert_eq!(proof(header, &payload[..8]), Proof::Sent);
            assert_eq!(proof(Ipv4Header { identification: 0, ..header }, &payload), Proof::Wrong);
            assert_eq!(proof(header, &payload[..7]), Proof::Wrong);
            assert_eq!(proof(Ipv4Header { dont_fragment: false, ..header }, &payload), Proof::Impossible);
            let minimal = Ipv4Header { protocol: protocol::MINIMAL, ..header };
            assert_eq!(proof(minimal, &payload), Proof::Impossible);
            right +=
                usize::from(other.identification(exit, protocol::IP_IN_IP, &payload) == Some(identification));
        }
        assert!(right < 10, "{right} of 1000 guesses are right");
    }
}
