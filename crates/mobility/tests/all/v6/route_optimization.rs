//! Route optimisation: the return routability procedure from the mobile node's side, and what may go wrong with it.

use careof_base::{Duration, Instant};
use careof_mobility::Change;
use careof_mobility::v6::*;
use careof_wire::icmpv6::{Icmpv6Message, ParameterProblem, ParameterProblemCode};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::mip6::{self, BindingStatus, Lifetime, Message};

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// A mobile node at network 2 that has received a packet of the correspondent node through the tunnel.
fn optimized() -> World {
    let mut world = World::simple(timestamps());
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.send_down(1);
    world.run(SECOND);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(2)));
    world
}

/// RFC 6275 sections 5.2.5, 6.1.3, 6.1.4 and 11.7.2: both tests at once, the home test through the home agent; then the update, with
/// the home address in an option, and packets go straight.
#[test]
fn a_packet_through_the_tunnel_begins_route_optimisation() {
    let mut world = optimized();
    assert_eq!((world.peer.home_tests, world.peer.care_of_tests, world.peer.updates), (1, 1, 1));
    let tunnel = Tunnel { entry: care_of(2), exit: HA };
    let init = world.sent.iter().find(|(_, _, message)| matches!(message, Message::HomeTestInit(_)));
    assert_eq!(init.map(|init| init.1), Some(Addresses::new(HOME, CN).through(tunnel)));
    let update =
        world.sent.iter().rev().find(|(_, addresses, _)| addresses.destination == CN).expect("an update");
    assert_eq!(update.1, Addresses::new(care_of(2), CN).with_home_address(HOME));
    assert_eq!(world.peer.bindings.get(&HOME).map(|binding| binding.0), Some(care_of(2)));
    let delivery = world.mobile.delivery(CN).expect("a way");
    assert_eq!(delivery.addresses, Addresses::new(care_of(2), CN).with_home_address(HOME));
    assert!(world.send_up(2));
    world.send_down(2);
    world.run(SECOND);
    assert_eq!((&world.peer.data[..], &world.data[..]), (&[2][..], &[(1, true), (2, false)][..]));
}

/// RFC 6275 section 11.7.2: lifetimes are no longer than what is left of the home registration, nor than MAX_RR_BINDING_LIFETIME.
#[test]
fn a_binding_at_a_correspondent_ends_with_the_home_registration() {
    let world = optimized();
    let lifetime = world.sent.iter().find_map(|(_, addresses, message)| match message {
        Message::BindingUpdate(update) if addresses.destination == CN => Some(update.lifetime),
        _ => None,
    });
    assert!(lifetime.is_some_and(|lifetime| lifetime <= Lifetime::from_units(75)), "{lifetime:?}");
}

/// RFC 6275 section 11.6.1: a home keygen token serves again after a move; only the new care-of address is tested.
#[test]
fn after_a_move_the_care_of_address_alone_is_tested() {
    let mut world = optimized();
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND);
    assert_eq!((world.peer.home_tests, world.peer.care_of_tests), (1, 2));
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(3)));
    assert_eq!(world.peer.bindings.get(&HOME).map(|binding| binding.0), Some(care_of(3)));
    // Section 5.2.7: not beyond MAX_TOKEN_LIFETIME.
    world.run(SECOND * 211);
    world.detach(WLAN);
    world.attach(WLAN, 4);
    world.run(SECOND);
    assert_eq!((world.peer.home_tests, world.mobile.optimized_route(CN)), (2, Some(care_of(4))));
}

/// RFC 6275 sections 5.2.5 and 11.7.2: at home the home test alone gives the key to delete the binding.
#[test]
fn a_node_that_returns_home_deletes_its_bindings() {
    let mut world = optimized();
    world.run(SECOND * 211);
    world.mobile.note_correspondent(world.now, CN);
    let before = world.now;
    world.detach(WLAN);
    world.attach(WLAN, AT_HOME);
    world.run(SECOND * 2);
    assert!(world.peer.bindings.is_empty() && world.mobile.optimized_route(CN).is_none());
    let tests =
        [world.count_sent(before, "HomeTestInit", CN), world.count_sent(before, "CareOfTestInit", CN)];
    assert_eq!(tests, [1, 0]);
    let removed = |event: &Event| matches!(event, Event::Correspondent(changed) if changed.change == Change::Removed && changed.correspondent == CN);
    assert!(world.mobile_events.iter().any(|(_, event)| removed(event)));
    assert_eq!(world.mobile.correspondent_count(), 0);
}

/// RFC 6275 sections 9.5.1 and 11.7.3: after statuses 136 to 138 the tests are run again.
#[test]
fn expired_nonces_make_the_node_test_again() {
    let mut world = optimized();
    world.peer.nonce += 1;
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND * 2);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(3)));
    assert_eq!(world.mobile.counters().refused(136), 1, "the care-of token is new, the home token old");
    assert_eq!(world.peer.home_tests, 2);
}

/// RFC 6275 section 11.7.3: status 135 tells the number to go on from.
#[test]
fn a_correspondent_that_has_seen_a_later_number_is_followed() {
    let mut world = optimized();
    let binding = world.peer.bindings.get_mut(&HOME).expect("a binding");
    binding.1 = mip6::SequenceNumber(binding.1.0.wrapping_add(1000));
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND * 2);
    assert_eq!(world.mobile.counters().refused(135), 1);
    assert_eq!(world.peer.bindings.get(&HOME).map(|binding| binding.0), Some(care_of(3)));
}

/// A refusal that nothing helps against: packets go through the home agent, and the correspondent node is left alone for a while.
#[test]
fn a_correspondent_that_refuses_is_left_alone() {
    let mut world = World::simple(timestamps());
    world.peer.always = Some(BindingStatus::InsufficientResources);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    for number in 0..200 {
        world.send_down(number);
        world.run(SECOND);
    }
    assert_eq!(world.peer.updates, 1);
    assert!(world.mobile.delivery(CN).is_some_and(|delivery| delivery.addresses.tunnel.is_some()));
    assert_eq!(world.data.len(), 200);
}

/// RFC 6275 section 5.2.9: after MAX_RO_FAILURE messages in vain the node reverts to its home agent; section 11.8: it backs off.
#[test]
fn a_correspondent_that_is_silent_is_reverted_from() {
    let mut world = optimized();
    let dead = std::net::Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 99);
    let before = world.now;
    world.peer.address = dead;
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND * 100);
    let way = world.mobile.delivery(CN).expect("a way");
    assert_eq!(way.addresses.tunnel, Some(Tunnel { entry: care_of(3), exit: HA }));
    let sent: Vec<Instant> = world
        .sent
        .iter()
        .filter(|(at, _, message)| *at > before && matches!(message, Message::CareOfTestInit(_)))
        .map(|(at, ..)| *at)
        .collect();
    let waits: Vec<_> = sent.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 32]);
    let cookies: std::collections::BTreeSet<_> = world
        .sent
        .iter()
        .filter_map(
            |(_, _, message)| {
                if let Message::CareOfTestInit(init) = message { Some(init.cookie.0) } else { None }
            },
        )
        .collect();
    assert_eq!(cookies.len(), sent.len() + 1, "each with a cookie of its own");
}

/// RFC 6275 section 11.3.5: who does not know the Mobility Header is not asked again.
#[test]
fn a_host_without_mobile_ip_is_left_alone() {
    let mut world = World::simple(timestamps());
    world.peer.address = std::net::Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 99);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.mobile.note_correspondent(world.now, CN);
    world.run(Duration::from_millis(100));
    let header = Ipv6Header {
        source: care_of(2),
        destination: CN,
        next_header: mip6::PROTOCOL,
        hop_limit: 60,
        traffic_class: 0,
        flow_label: 0,
        payload_len: 16,
    };
    let mut quoted = header.to_bytes().to_vec();
    quoted.extend([59, 1, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let problem = ParameterProblem { code: ParameterProblemCode::NextHeader, pointer: 6, quoted };
    let mut bytes = Vec::new();
    Icmpv6Message::ParameterProblem(problem).emit(CN, care_of(2), &mut bytes);
    let addresses = Addresses::new(CN, care_of(2));
    let before = world.now;
    world.tell(Input::Icmp { interface: WLAN, addresses, hop_limit: 60, message: &bytes });
    world.run(SECOND * 299);
    assert_eq!(world.count_sent(before + SECOND / 1000, "", CN), 0);
    // From somebody else it says nothing of the correspondent node.
    let elsewhere = Addresses::new(care_of(66), care_of(2));
    let before = world.mobile.counters().dropped_total();
    world.tell(Input::Icmp { interface: WLAN, addresses: elsewhere, hop_limit: 60, message: &bytes });
    assert_eq!(world.mobile.counters().dropped_total(), before + 1);
}

/// RFC 6275 section 11.3.6: a correspondent node that has forgotten is told anew; meanwhile packets go through the home agent.
#[test]
fn a_binding_error_is_repaired() {
    let mut world = optimized();
    world.peer.bindings.clear();
    assert!(world.send_up(7));
    world.run(Duration::from_millis(50));
    assert!(world.mobile.delivery(CN).is_some_and(|way| way.addresses.tunnel.is_some()));
    world.run(SECOND);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(2)));
    assert_eq!(world.peer.bindings.len(), 1);
    // It is not believed as often as somebody says so in its name.
    let before = world.peer.home_tests;
    for _ in 0..600 {
        let error = world.peer.unknown_binding(care_of(2), HOME);
        world.peer_sends(error);
        world.run(Duration::from_millis(100));
    }
    assert!(world.peer.home_tests - before < 10, "{}", world.peer.home_tests - before);
    // From who is not known it is ignored.
    let stranger = super::peer::Peer::new(std::net::Ipv6Addr::new(0x2001, 0xdb8, 98, 0, 0, 0, 0, 1));
    let error = stranger.unknown_binding(care_of(2), HOME);
    world.peer_sends(error);
    world.run(SECOND);
    assert_eq!(world.mobile.correspondent_count(), 1);
}

/// RFC 6275 section 11.7.4: a refresh request of who is known makes the node test and update again.
#[test]
fn a_refresh_request_renews_the_binding() {
    let mut world = optimized();
    let before = world.peer.updates;
    let request = world.peer.refresh_request(HOME);
    world.peer_sends(request);
    world.run(SECOND);
    assert_eq!(world.peer.updates, before + 1);
    let stranger = super::peer::Peer::new(std::net::Ipv6Addr::new(0x2001, 0xdb8, 98, 0, 0, 0, 0, 1));
    let request = stranger.refresh_request(HOME);
    world.peer_sends(request);
    world.run(SECOND);
    assert_eq!(world.mobile.correspondent_count(), 1);
}

/// RFC 6275 section 8.5: route optimisation can be disabled.
#[test]
fn without_route_optimisation_everything_goes_through_the_home_agent() {
    let mobile = MobileNodeConfig { route_optimization: None, ..node(timestamps()) };
    let mut world = World::new(mobile, config(timestamps()));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.send_down(1);
    world.run(SECOND * 5);
    assert_eq!((world.peer.home_tests, world.mobile.correspondent_count()), (0, 0));
    assert!(world.mobile.delivery(CN).is_some_and(|way| way.addresses.tunnel.is_some()));
}

/// RFC 6275 section 11.6.2: answers that nobody asked for, or that came another way, are ignored.
#[test]
fn a_home_test_outside_the_tunnel_is_ignored() {
    let mut world = World::simple(timestamps());
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.mobile.note_correspondent(world.now, CN);
    world.run(Duration::from_millis(1));
    let cookies: Vec<_> = world
        .sent
        .iter()
        .filter_map(|(_, _, message)| match message {
            Message::HomeTestInit(init) => Some(init.cookie),
            _ => None,
        })
        .collect();
    let test = |cookie| {
        Message::HomeTest(mip6::HomeTest {
            nonce_index: mip6::NonceIndex(1),
            cookie,
            token: mip6::KeygenToken([0; 8]),
            options: mip6::MobilityOptions::new(),
        })
    };
    let plain = Addresses::new(CN, HOME);
    let from_elsewhere = plain.through(Tunnel { entry: care_of(66), exit: care_of(2) });
    let right = plain.through(Tunnel { entry: HA, exit: care_of(2) });
    let wrong_cookie = mip6::InitCookie([9; 8]);
    for (addresses, cookie) in [(plain, cookies[0]), (from_elsewhere, cookies[0]), (right, wrong_cookie)] {
        let before = world.mobile.counters().dropped(DropReason::UnexpectedAnswer);
        let bytes = test(cookie).emit(CN, HOME).unwrap();
        world.tell(Input::Mobility { interface: WLAN, addresses, message: &bytes });
        assert_eq!(
            world.mobile.counters().dropped(DropReason::UnexpectedAnswer),
            before + 1,
            "{addresses:?}"
        );
    }
    world.run(SECOND);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(2)), "the real ones are taken");
}

/// Packets from many invented addresses take the room of the few correspondent nodes that may be, and little traffic.
#[test]
fn invented_correspondents_take_little_room_and_push_out_nobody_who_is_optimised() {
    let mut world = optimized();
    let before = world.sent.len();
    for number in 0..10_000_u128 {
        let invented = std::net::Ipv6Addr::from_bits(0x2001_0db8_0050 << 80 | number);
        world.mobile.note_correspondent(world.now, invented);
        assert!(world.mobile.correspondent_count() <= 64);
    }
    world.run(SECOND);
    assert!(world.sent.len() - before < 400, "{}", world.sent.len() - before);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(2)));
    world.run(SECOND * 1000);
    assert!(world.mobile.correspondent_count() <= 1);
}
