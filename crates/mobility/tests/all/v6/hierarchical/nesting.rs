//! Packets in tunnels in tunnels (RFC 5380 sections 6.1.1 and 12.2).

use careof_mobility::v6::*;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet};
use careof_wire::protocol;
use careof_wire::tunnel::{Ipv6Tunnel, Origin, decapsulate_ipv6};

use super::world::*;
use crate::v6::craft::{HA, HOME, care_of};
use crate::v6::world::{CN, WLAN};

const OUTER: Tunnel = Tunnel { entry: care_of(2), exit: map(WEST) };
const INNER: Tunnel = Tunnel { entry: regional(WEST), exit: HA };

/// By the home agent: the tunnel from the regional care-of address to the home agent, in that from the on-link one to the anchor point.
#[test]
fn packets_to_the_home_agent_are_tunnelled_twice() {
    let world = World::on(2);
    let delivery = world.mobile.delivery(CN).expect("a way");
    assert_eq!(delivery.addresses, Addresses::new(HOME, CN).through(INNER).through_map(OUTER));
    assert_eq!((delivery.interface, delivery.via), (WLAN, Some(router(2))));
    // Section 6.5: the regional address itself, within the domain.
    let delivery = world.mobile.regional_delivery(CN).expect("a way");
    assert_eq!(delivery.addresses, Addresses::new(regional(WEST), CN).through_map(OUTER));
    assert_eq!(world.mobile.regional_address(), Some(regional(WEST)));
}

/// Section 12.2: a Home Test Init is encapsulated twice, and a Care-of Test Init comes from the regional care-of address. Then packets have
/// the Home Address option, in one tunnel.
#[test]
fn routes_are_optimised_through_the_anchor_point() {
    let mut world = World::on(2);
    world.check_both_ways();
    world.run(SECOND * 2);
    let from_home = Addresses::new(HOME, CN).through(INNER).through_map(OUTER);
    let from_care_of = Addresses::new(regional(WEST), CN).through_map(OUTER);
    let tests: Vec<_> = world.recorded.iter().map(|(addresses, _)| *addresses).collect();
    assert!(tests.contains(&from_home) && tests.contains(&from_care_of));
    assert_eq!(world.peer.care_of(HOME), Some(regional(WEST)));
    let delivery = world.mobile.delivery(CN).expect("a way");
    assert_eq!(delivery.addresses, from_care_of.with_home_address(HOME));
    world.send_down(7);
    world.run(SECOND);
    let (number, way) = *world.data.last().expect("a packet");
    let tunnel = Tunnel { entry: map(WEST), exit: care_of(2) };
    let straight = Addresses::new(CN, regional(WEST)).with_type_2_routing(HOME);
    assert_eq!((number, way), (7, straight.through(tunnel)));
}

/// A packet as its owner writes it, from the innermost header on.
fn written(addresses: Addresses, payload: &[u8]) -> Vec<u8> {
    let header =
        Ipv6Header { source: addresses.source, destination: addresses.destination, ..Ipv6Header::default() };
    let extensions = Extensions {
        home_address: addresses.home_address,
        type_2_routing: addresses.type_2_routing,
        ..Extensions::NONE
    };
    let mut bytes = Vec::new();
    Packet::emit(&header, &extensions, protocol::UDP, payload, &mut bytes).expect("a packet");
    for Tunnel { entry, exit } in addresses.tunnel.into_iter().chain(addresses.map_tunnel) {
        let tunnel = Ipv6Tunnel { entry, exit, hop_limit: 64, encapsulation_limit: None };
        bytes = tunnel.encapsulate(&bytes, Origin::Local).expect("it enters");
    }
    bytes
}

/// Section 11: what upper layers have to leave room for is what the headers take; and the packets come out of their tunnels whole.
#[test]
fn the_headers_take_as_much_as_is_said_of_them() {
    let mut world = World::on(2);
    let by_home_agent = world.mobile.delivery(CN).expect("a way").addresses;
    world.check_both_ways();
    world.run(SECOND * 2);
    let optimised = world.mobile.delivery(CN).expect("a way").addresses;
    let local_update = world.updates[0].1;
    let payload = [7; 100];
    for (addresses, tunnels, overhead) in [(by_home_agent, 2, 80), (optimised, 1, 64), (local_update, 0, 24)]
    {
        let bytes = written(addresses, &payload);
        assert_eq!((addresses.overhead(), bytes.len()), (overhead, 40 + usize::from(overhead) + 100));
        let mut inner = bytes;
        for _ in 0..tunnels {
            inner = decapsulate_ipv6(&inner).expect("a tunnel").datagram.to_vec();
        }
        assert_eq!(inner, written(Addresses { tunnel: None, map_tunnel: None, ..addresses }, &payload));
    }
}

/// What comes from an anchor point is taken when it is for the regional care-of address, and from the home agent if it is in one more
/// tunnel.
#[test]
fn an_anchor_point_cannot_speak_in_the_name_of_others() {
    let world = World::on(2);
    let from_map = Tunnel { entry: map(WEST), exit: care_of(2) };
    let from_home = Tunnel { entry: HA, exit: regional(WEST) };
    let taken = |addresses: Addresses| world.mobile.accepts_tunnels(&addresses);
    assert!(taken(Addresses::new(CN, HOME).through(from_home).through_map(from_map)));
    assert!(taken(Addresses::new(CN, regional(WEST)).with_type_2_routing(HOME).through(from_map)));
    // As if it were the home agent.
    assert!(!taken(Addresses::new(CN, HOME).through(from_map)));
    assert!(!taken(Addresses::new(CN, HOME).through_map(from_map)));
    let stranger = Tunnel { entry: map(EAST), exit: regional(WEST) };
    assert!(!taken(Addresses::new(CN, HOME).through(stranger).through_map(from_map)));
    // An anchor point that is not used, for the address at another.
    let other = Tunnel { entry: map(EAST), exit: care_of(2) };
    assert!(!taken(Addresses::new(CN, HOME).through(from_home).through_map(other)));
    assert!(!taken(Addresses::new(CN, regional(WEST)).through(other)));
    assert!(!taken(Addresses::new(CN, regional(EAST)).through(from_map)));
}
