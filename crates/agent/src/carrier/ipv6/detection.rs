//! Duplicate Address Detection for home addresses, on behalf of mobile nodes that are away (RFC 4862 section 5.4, RFC 6275 section 10.3.1).

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{HOP_LIMIT, Icmpv6Message, NdOption, NeighborSolicitation, Nonce};
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet, solicited_node};
use careof_wire::protocol;

use super::timed_addresses::TimedAddresses;

/// The addresses in question.
#[derive(Debug, Default)]
pub(super) struct Detections {
    /// With the nonce of our solicitation, by which one that is looped back is known (RFC 7527).
    running: TimedAddresses<[u8; Nonce::MIN_LEN]>,
}

impl Detections {
    /// Somebody who has the address is waited for so long.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        wait: Duration,
        nonce: [u8; Nonce::MIN_LEN],
    ) {
        self.running.insert(now + wait, address, nonce);
    }

    /// Whether another address in question is asked for by the same group.
    pub(super) fn needs(&self, group: Ipv6Addr) -> bool {
        self.running.addresses().any(|address| solicited_node(address) == group)
    }

    /// A message of a neighbour: the address in question that it has, or wants to have (section 5.4.3 and 5.4.4).
    pub(super) fn heard(&mut self, source: Ipv6Addr, message: &Icmpv6Message) -> Option<Ipv6Addr> {
        let address = match message {
            Icmpv6Message::NeighborAdvertisement(advertisement) => advertisement.target,
            // Another node detects, too; anybody else asks for somebody whom it has yet to find.
            Icmpv6Message::NeighborSolicitation(solicitation) if source.is_unspecified() => {
                let own = self.running.get(solicitation.target)?;
                if solicitation.nonce().is_some_and(|nonce| nonce.bytes() == own) {
                    return None;
                }
                solicitation.target
            }
            _ => return None,
        };
        self.running.remove(address).map(|_| address)
    }

    /// An address that nobody has claimed in time.
    pub(super) fn pop_unique(&mut self, now: Instant) -> Option<Ipv6Addr> {
        self.running.pop_due(now).map(|(address, _)| address)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.running.next_timeout()
    }
}

/// The packet that asks for somebody who has `target`.
pub(super) fn solicitation(target: Ipv6Addr, nonce: [u8; Nonce::MIN_LEN]) -> Vec<u8> {
    let (source, destination) = (Ipv6Addr::UNSPECIFIED, solicited_node(target));
    let solicitation = NeighborSolicitation { target, options: vec![NdOption::Nonce(Nonce::new(nonce))] };
    let (mut message, mut packet) = (Vec::new(), Vec::new());
    Icmpv6Message::NeighborSolicitation(solicitation).emit(source, destination, &mut message);
    let header = Ipv6Header { source, destination, hop_limit: HOP_LIMIT, ..Ipv6Header::default() };
    // It is far from too long.
    let _ = Packet::emit(&header, &Extensions::NONE, protocol::ICMPV6, &message, &mut packet);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::icmpv6::{IpFields, NeighborAdvertisement};
    use careof_wire::ipv6::Understood;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 8);
    const WAIT: Duration = Duration::from_secs(1);
    const NONCE: [u8; 6] = [1, 2, 3, 4, 5, 6];

    fn begun() -> Detections {
        let mut detections = Detections::default();
        detections.begin(Instant::ZERO, HOME, WAIT, NONCE);
        detections
    }

    fn sent(target: Ipv6Addr, nonce: [u8; 6]) -> Icmpv6Message {
        let bytes = solicitation(target, nonce);
        let packet = Packet::parse(&bytes, Understood::PLAIN_IPV6).unwrap();
        let (source, destination) = (packet.header.source, packet.header.destination);
        let message = Icmpv6Message::parse(source, destination, packet.payload).unwrap();
        let ip = IpFields { source, destination, hop_limit: packet.header.hop_limit };
        assert_eq!((message.check(&ip), destination), (Ok(()), solicited_node(target)));
        message
    }

    #[test]
    fn an_address_is_unique_when_nobody_has_claimed_it_in_time() {
        let mut detections = begun();
        assert!(detections.needs(solicited_node(HOME)) && !detections.needs(solicited_node(OTHER)));
        assert_eq!(detections.heard(Ipv6Addr::UNSPECIFIED, &sent(HOME, NONCE)), None, "looped back");
        assert_eq!(detections.heard(Ipv6Addr::UNSPECIFIED, &sent(OTHER, [9; 6])), None);
        assert_eq!(detections.heard(OTHER, &sent(HOME, [9; 6])), None, "somebody looks for who has it");
        assert_eq!(detections.pop_unique(Instant::from_millis(999)), None);
        assert_eq!(detections.pop_unique(Instant::from_secs(1)), Some(HOME));
        assert_eq!(detections.next_timeout(), None);
    }

    #[test]
    fn who_has_the_address_or_wants_it_too_is_a_duplicate() {
        let advertisement = NeighborAdvertisement {
            router: false,
            solicited: false,
            override_flag: true,
            target: HOME,
            options: Vec::new(),
        };
        let mut detections = begun();
        let claimed = Icmpv6Message::NeighborAdvertisement(advertisement);
        assert_eq!(detections.heard(HOME, &claimed), Some(HOME));
        assert_eq!(detections.heard(HOME, &claimed), None, "once");
        assert_eq!(begun().heard(Ipv6Addr::UNSPECIFIED, &sent(HOME, [9; 6])), Some(HOME));
    }
}
