//! Mobility anchor point: whose home addresses are behind the regional care-of addresses that it serves, for assists, who know flows by
//! home addresses.
//!
//! The anchor point is told regional care-of addresses only. What comes out of the tunnel of a mobile node, for its home agent, says the
//! home address and the home agent: nobody else can send in that tunnel's name, so far as routers check sources. Packets towards the
//! mobile node are followed only if they are in the same tunnel, in the other direction: anybody can send to a regional care-of address.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use careof_mobility::v6::Tunnel;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::protocol;

use crate::carrier::assists::Heading;

/// Home addresses behind one regional care-of address. Those of more connections go their way unseen.
const MOST_HOMES: usize = 4;

/// A packet that may be inside another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) header: Ipv6Header,
    /// At which byte of the outer packet it begins; 0: it is in none.
    pub(super) at: usize,
}

/// Behind what a home address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Behind {
    regional: Ipv6Addr,
    home_agent: Ipv6Addr,
}

/// The home addresses that are known.
#[derive(Debug, Default)]
pub(super) struct HomesBehind(BTreeMap<Ipv6Addr, Behind>);

/// What is in a packet that is a tunnel's, with nothing between both headers.
fn inside(packet: &[u8]) -> Option<(Ipv6Header, Inside)> {
    let at = usize::from(Ipv6Header::LEN);
    let (outer, _) = Ipv6Header::parse(packet).ok()?;
    if outer.next_header != protocol::IPV6 {
        return None;
    }
    let (header, _) = Ipv6Header::parse(packet.get(at..)?).ok()?;
    Some((outer, Inside { header, at }))
}

impl HomesBehind {
    /// A packet has come out of the tunnel from a mobile node. What is in it, if it is for a home agent, and the regional care-of address if
    /// it is news that the home address is behind there.
    pub(super) fn learn(
        &mut self,
        packet: &[u8],
        is_bound: impl Fn(Ipv6Addr) -> bool,
    ) -> Option<(Inside, Option<Ipv6Addr>)> {
        let (outer, inside) = inside(packet)?;
        let home_address = inside.header.source;
        let found = Behind { regional: outer.source, home_agent: outer.destination };
        match self.0.get(&home_address) {
            Some(known) if *known == found => return Some((inside, None)),
            // Somebody else's, as long as that one is there.
            Some(known) if known.regional != found.regional && is_bound(known.regional) => return None,
            Some(_) => {}
            None if self.homes_of(found.regional).len() >= MOST_HOMES => return None,
            None => {}
        }
        self.0.insert(home_address, found);
        Some((inside, Some(found.regional)))
    }

    /// What is in a packet for a regional care-of address, if it comes from the home agent of a home address that is known.
    pub(super) fn inside(&self, outer: &Ipv6Header, packet: &[u8]) -> Option<Inside> {
        let (_, inside) = inside(packet)?;
        let known = self.0.get(&inside.header.destination)?;
        let is_it = known.regional == outer.destination && known.home_agent == outer.source;
        is_it.then_some(inside)
    }

    /// The tunnel between mobile node and home agent that a packet from or to a home address is in.
    pub(super) fn tunnel(&self, heading: Heading, header: &Ipv6Header) -> Option<Tunnel> {
        let home_address = match heading {
            Heading::Out => header.destination,
            Heading::In => header.source,
        };
        let Behind { regional, home_agent } = *self.0.get(&home_address)?;
        Some(match heading {
            Heading::Out => Tunnel { entry: home_agent, exit: regional },
            Heading::In => Tunnel { entry: regional, exit: home_agent },
        })
    }

    pub(super) fn regional_of(&self, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        self.0.get(&home_address).map(|behind| behind.regional)
    }

    /// The home addresses behind a regional care-of address.
    pub(super) fn homes_of(&self, regional: Ipv6Addr) -> Vec<Ipv6Addr> {
        let behind = self.0.iter().filter(|(_, behind)| behind.regional == regional);
        behind.map(|(home_address, _)| *home_address).collect()
    }

    /// There is nobody at a regional care-of address any longer.
    pub(super) fn forget(&mut self, regional: Ipv6Addr) {
        self.0.retain(|_, behind| behind.regional != regional);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::ipv6::packets::encapsulated;
    use careof_wire::ipv6::{Extensions, Packet};

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const HA: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const REGIONAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 7);
    const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 8);
    const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);

    /// A packet in a tunnel.
    fn packet((source, destination): (Ipv6Addr, Ipv6Addr), (entry, exit): (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
        let header = Ipv6Header { source, destination, ..Ipv6Header::default() };
        let (mut plain, mut bytes) = (Vec::new(), Vec::new());
        Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 20], &mut plain).unwrap();
        encapsulated(&plain, Tunnel { entry, exit }, 0, &mut bytes).unwrap();
        bytes
    }

    fn seen(homes: &HomesBehind, packet: &[u8]) -> Option<Ipv6Addr> {
        let (outer, _) = Ipv6Header::parse(packet).unwrap();
        homes.inside(&outer, packet).map(|inside| inside.header.destination)
    }

    #[test]
    fn a_home_address_is_learned_from_what_its_mobile_node_sends_and_from_nobody_else() {
        let mut homes = HomesBehind::default();
        let down = packet((PEER, HOME), (HA, REGIONAL));
        assert_eq!(seen(&homes, &down), None, "nobody has said that it is behind there");
        let up = packet((HOME, PEER), (REGIONAL, HA));
        let learned = homes.learn(&up, |_| true).unwrap();
        assert_eq!((learned.0.header.source, learned.0.at, learned.1), (HOME, 40, Some(REGIONAL)));
        assert_eq!(homes.learn(&up, |_| true).unwrap().1, None, "it is known");
        assert_eq!(seen(&homes, &down), Some(HOME));
        assert_eq!(
            seen(&homes, &packet((PEER, HOME), (PEER, REGIONAL))),
            None,
            "this is no home agent of it"
        );
        let header = Ipv6Header { source: PEER, destination: HOME, ..Ipv6Header::default() };
        let tunnel = homes.tunnel(Heading::Out, &header);
        assert_eq!(tunnel, Some(Tunnel { entry: HA, exit: REGIONAL }));
        homes.forget(REGIONAL);
        assert_eq!((seen(&homes, &down), homes.regional_of(HOME)), (None, None));
    }

    #[test]
    fn another_mobile_node_cannot_claim_a_home_address_nor_any_number_of_them() {
        let mut homes = HomesBehind::default();
        homes.learn(&packet((HOME, PEER), (REGIONAL, HA)), |_| true).unwrap();
        let claim = packet((HOME, PEER), (OTHER, HA));
        assert_eq!(homes.learn(&claim, |_| true), None);
        assert_eq!(homes.regional_of(HOME), Some(REGIONAL));
        assert!(homes.learn(&claim, |_| false).is_some(), "it has moved");
        for host in 100..1000 {
            let invented = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, host);
            homes.learn(&packet((invented, PEER), (OTHER, HA)), |_| true);
        }
        assert_eq!(homes.homes_of(OTHER).len(), MOST_HOMES);
    }
}
