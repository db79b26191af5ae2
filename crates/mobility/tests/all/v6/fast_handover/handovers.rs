//! Handovers from beginning to end: predictive and reactive, and what can go wrong in between.

use careof_base::Duration;
use careof_mobility::v6::Tunnel;
use careof_mobility::v6::access_router::{
    self, AccessRouterConfig, AddressConflict, BufferConfig, RouterSecurity,
};
use careof_mobility::v6::fast_handover::{AccessPoint, Event, Failure};
use careof_wire::mip6::{FastBindingStatus, HandoverCode, Lifetime};

use super::messages::Update;
use super::world::*;

const MS: Duration = Duration::from_millis(1);

fn stream(world: &mut World, numbers: std::ops::Range<u64>, destination: std::net::Ipv6Addr) {
    for number in numbers {
        world.send_data(number, destination);
        world.run(MS * 2);
    }
}

#[test]
fn the_current_router_tells_of_all_access_points_nearby() {
    let mut world = World::new();
    world.discover();
    for router in 1..ROUTERS {
        let Some(AccessPoint::Router(info)) = world.mobile.access_point(access_point(router)) else {
            panic!("nothing is known of router {router}");
        };
        assert_eq!((info.address, info.prefix), (address(router), prefix(router)));
        assert_eq!(world.mobile.prospective(access_point(router)), Some(care_of(router)));
    }
    assert_eq!(world.mobile.access_point(access_point(0)), None, "it is the current one");
}

#[test]
fn of_those_asked_for_each_has_its_own_answer() {
    let mut world = World::with(
        |router| {
            let mut config = router_config(router);
            if let Some(second) = config.neighbors.get_mut(1) {
                second.fast_handover = false;
            }
            config
        },
        node_config(),
    );
    let unknown = careof_wire::icmpv6::LinkLayerAddress([2, 9, 9, 9, 9, 9]);
    let asked = [access_point(1), access_point(2), access_point(0), unknown];
    world.mobile.discover(world.now, &asked);
    world.run(MS * 50);
    let known = asked.map(|asked| world.mobile.access_point(asked));
    assert!(matches!(known[0], Some(AccessPoint::Router(_))));
    assert_eq!(
        known[1..],
        [Some(AccessPoint::NoFastHandover), Some(AccessPoint::SameLink), Some(AccessPoint::Unknown)]
    );
}

/// RFC 5568 figure 2.
#[test]
fn a_predictive_handover_loses_nothing_and_keeps_the_order() {
    let mut world = World::new();
    world.discover();
    stream(&mut world, 0..10, care_of(0));
    assert!(world.prepare(1));
    stream(&mut world, 10..40, care_of(0));
    assert!(world.mobile.is_prepared(), "{:?}", world.mobile_events);
    world.leave();
    stream(&mut world, 40..70, care_of(0));
    assert!(world.come_to(1));
    stream(&mut world, 70..120, care_of(0));
    world.run(MS * 500);
    assert_eq!(world.numbers(), (0..120).collect::<Vec<_>>());
    assert!(world.lost.is_empty());
    assert!(world.received.iter().any(|(_, router)| *router == 0));
    assert_eq!(world.received.last().unwrap().1, 1);
    // One update, acknowledged on the old link: none is sent from the new one.
    let updates = world.mobile_events.iter().filter(|event| matches!(event, Event::UpdateSent { .. }));
    assert_eq!(updates.count(), 1);
    world.run(Duration::from_secs(2));
    assert_eq!(world.routers[1].arrival_count(), 0, "nothing waits for it any longer");
}

#[test]
fn a_hundred_predictive_handovers_lose_nothing() {
    let mut world = World::new();
    let mut number = 0;
    for round in 0..100 {
        let (from, to) = (round % ROUTERS, (round + 1) % ROUTERS);
        let old = *world.addresses.first().unwrap();
        assert!(prefix(from).contains(old));
        world.discover();
        assert!(world.prepare(to));
        stream(&mut world, number..number + 20, old);
        world.leave();
        stream(&mut world, number + 20..number + 40, old);
        world.come_to(to);
        stream(&mut world, number + 40..number + 60, old);
        world.run(MS * 200);
        number += 60;
        world.settle_at(to);
        // The binding of the old address ends before the node is there again.
        world.run(Duration::from_secs(21));
    }
    assert_eq!(world.numbers(), (0..number).collect::<Vec<_>>());
    assert!(world.lost.is_empty());
    for router in &world.routers {
        assert_eq!((router.arrival_count(), router.departure_count(), router.buffered()), (0, 0, (0, 0)));
    }
}

/// RFC 5568 figure 3.
#[test]
fn a_reactive_handover_gets_what_was_kept_since_the_link_layer_told_of_the_loss() {
    let mut world = World::new();
    world.discover();
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 20);
    world.leave();
    let now = world.now;
    world.routers[0].note_detached(now, care_of(0));
    stream(&mut world, 10..40, care_of(0));
    world.come_to(1);
    stream(&mut world, 40..80, care_of(0));
    world.run(MS * 500);
    assert_eq!(world.numbers(), (0..80).collect::<Vec<_>>());
    assert!(world.lost.is_empty());
}

#[test]
fn without_word_of_the_loss_a_reactive_handover_loses_what_was_sent_meanwhile() {
    let mut world = World::new();
    world.discover();
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 20);
    world.come_to(1);
    world.run(MS * 50);
    stream(&mut world, 10..20, care_of(0));
    world.run(MS * 100);
    assert_eq!(world.lost, (0..10).collect::<Vec<_>>());
    assert_eq!(world.numbers(), (10..20).collect::<Vec<_>>());
}

#[test]
fn who_left_before_the_acknowledgment_asks_again_from_the_new_link() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    // The update is on its way; the acknowledgment finds nobody on the old link.
    world.run(MS * 6);
    world.leave();
    world.run(MS * 100);
    assert!(!world.mobile.is_prepared());
    stream(&mut world, 0..10, care_of(0));
    world.come_to(1);
    world.run(MS * 200);
    assert!(world.mobile.is_prepared());
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
}

/// What the new router keeps goes on when it has heard the announcement, and the node hears nothing that would tell that it has not.
#[test]
fn who_is_not_heard_on_the_new_link_announces_itself_again() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 6);
    world.leave();
    world.run(MS * 100);
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 100);
    world.faults.loss = 1.0;
    world.come_to(1);
    world.faults = Faults::NONE;
    world.run(MS * 300);
    assert_eq!(world.numbers(), [0_u64; 0]);
    world.run(MS * 300);
    assert!(world.mobile.is_prepared());
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
    assert!(world.lost.is_empty());
}

#[test]
fn the_copies_of_buffer_and_forward_come_twice_and_save_what_the_old_link_lost() {
    let mut world = World::with(
        |router| AccessRouterConfig { buffer_and_forward: true, ..router_config(router) },
        node_config(),
    );
    world.discover();
    world.prepare(1);
    // While the new router is being asked, packets go to the old link, and the node leaves it.
    world.run(MS * 6);
    world.send_data(1, care_of(0));
    world.leave();
    world.run(MS * 100);
    assert_eq!(world.lost, [1]);
    world.come_to(1);
    world.run(MS * 100);
    assert_eq!(world.numbers(), [1]);
    assert!(world.routers[0].buffer_counters().kept > 0);
}

#[test]
fn packets_from_the_previous_address_go_back_through_the_tunnel_only_from_where_the_node_is() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    assert_eq!(world.mobile.reverse_tunnel(care_of(0)), None, "it is on the old link still");
    world.leave();
    world.come_to(1);
    world.run(MS * 50);
    world.send_back(7, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.sent_back, [7]);
    assert!(world.routers[0].accepts_reverse_tunnel(care_of(0), care_of(1)));
    assert!(!world.routers[0].accepts_reverse_tunnel(care_of(0), care_of(2)));
    assert!(!world.routers[0].accepts_reverse_tunnel(care_of(2), care_of(1)));
}

/// The acknowledgment may stand behind what the router sends on; until the tunnel is there the router drops what comes back.
#[test]
fn packets_go_back_from_the_new_link_before_the_acknowledgment_has_come() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.leave();
    world.run(MS * 4);
    assert_eq!(world.mobile.reverse_tunnel(care_of(0)), None);
    world.come_to(1);
    let back = Tunnel { entry: care_of(1), exit: address(0) };
    assert!(!world.mobile.is_prepared());
    assert_eq!(world.mobile.reverse_tunnel(care_of(0)), Some(back));
    world.send_back(1, care_of(0));
    world.run(MS * 12);
    assert_eq!(world.sent_back, [0_u64; 0], "the new router has not answered");
    world.run(MS * 8);
    world.send_back(2, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.sent_back, [2]);
    assert_eq!(world.mobile.reverse_tunnel(care_of(0)), Some(back));
}

/// The station that left for another router a moment ago comes back by way of that one, at its old address.
#[test]
fn a_node_that_comes_back_by_way_of_another_router_has_its_address_again() {
    let mut world = World::new();
    let mut number = 0;
    let mut from = 0;
    for to in [1, 2, 1, 0, 2, 0] {
        world.discover();
        assert!(world.prepare(to));
        world.run(MS * 50);
        world.leave();
        stream(&mut world, number..number + 5, care_of(from));
        world.come_to(to);
        world.run(MS * 100);
        assert!(world.addresses.contains(&care_of(to)), "{from} to {to}: {:?}", world.addresses);
        world.settle_at(to);
        // MAX_RTSOLPR_RATE.
        world.run(MS * 300);
        (number, from) = (number + 5, to);
    }
    assert_eq!(world.numbers(), (0..number).collect::<Vec<_>>());
}

#[test]
fn a_node_that_comes_back_has_its_tunnel_ended() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.send_data(1, care_of(0));
    world.run(MS * 20);
    world.mobile.returned(world.now);
    world.run(MS * 50);
    assert!(world.mobile_said(|event| *event == Event::Returned), "{:?}", world.mobile_events);
    assert_eq!(world.routers[0].tunnel(care_of(0)), None);
    stream(&mut world, 2..5, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.numbers(), [2, 3, 4]);
    // What waits at the router that it did not go to is thrown away when its time is over.
    world.run(Duration::from_secs(2));
    assert_eq!(world.lost, [1]);
    assert_eq!(world.routers[1].buffer_counters().expired, 2, "the acknowledgment, too");
}

#[test]
fn a_node_that_never_comes_is_waited_for_no_longer_than_the_lifetimes_say() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    let proxied = |on| move |event: &access_router::Event| matches!(event, access_router::Event::Proxy { on: found, .. } if *found == on);
    assert!(world.router_said(1, proxied(true)) && !world.router_said(1, proxied(false)));
    world.run(MS * 20);
    assert_eq!(world.routers[1].buffered().0, 11, "ten packets, and the acknowledgment");
    world.run(Duration::from_millis(1500));
    assert!(world.router_said(1, proxied(false)));
    assert!(world.router_said(1, |event| matches!(event, access_router::Event::NeverCame { .. })));
    assert_eq!((world.routers[1].buffered(), world.routers[1].arrival_count()), ((0, 0), 0));
    assert!(world.routers[0].tunnel(care_of(0)).is_some());
    world.run(Duration::from_secs(20));
    assert_eq!(world.routers[0].departure_count(), 0);
}

/// RFC 5568 section 5.6, ping-pong: packets do not go round between the two routers.
#[test]
fn a_node_that_goes_back_and_forth_within_the_lifetime_of_its_tunnels_loses_nothing() {
    for predictive in [true, false] {
        let mut world = World::new();
        let mut number = 0;
        for round in 0..10 {
            let (from, to) = (round % 2, (round + 1) % 2);
            world.discover();
            if predictive {
                assert!(world.prepare(to));
                world.run(MS * 100);
            }
            stream(&mut world, number..number + 5, care_of(from));
            world.run(MS * 20);
            world.leave();
            let now = world.now;
            if !predictive {
                world.routers[from].note_detached(now, care_of(from));
            }
            stream(&mut world, number + 5..number + 10, care_of(from));
            world.come_to(to);
            stream(&mut world, number + 10..number + 15, care_of(from));
            world.run(MS * 300);
            number += 15;
            world.settle_at(to);
            stream(&mut world, number..number + 5, care_of(to));
            world.run(MS * 20);
            number += 5;
        }
        assert_eq!(world.numbers(), (0..number).collect::<Vec<_>>(), "predictive: {predictive}");
    }
}

/// The acknowledgment is lost, the update sent again from the old link, and the node is on the new one when the new router hears of that.
#[test]
fn what_was_under_way_when_the_node_came_does_not_have_its_packets_wait() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    let again = Update { sequence: 0x7777, ..Update::new(world.now, care_of(1)) };
    world.leave();
    world.come_to(1);
    world.run(MS * 50);
    let (addresses, hop_limit, payload) = again.packet();
    world.inject(0, addresses, hop_limit, payload);
    world.run(MS * 50);
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
}

#[test]
fn who_says_again_that_it_will_leave_is_waited_for_from_then_on() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(Duration::from_secs(1));
    world.prepare(1);
    world.run(Duration::from_secs(1));
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 20);
    world.come_to(1);
    world.run(MS * 100);
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
}

/// RFC 5568 section 5.6: the update from an unanticipated router supersedes the one before.
#[test]
fn a_node_that_comes_to_another_router_has_packets_sent_there() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.leave();
    world.run(MS * 20);
    assert!(world.come_to(2));
    world.run(MS * 100);
    assert_eq!(world.routers[0].tunnel(care_of(0)).unwrap().exit, care_of(2));
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 100);
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
    assert!(world.received.iter().all(|(_, router)| *router == 2));
}

#[test]
fn who_prepares_twice_goes_where_it_said_last() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.prepare(2);
    world.run(MS * 100);
    assert_eq!(world.routers[0].departure_count(), 1);
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.come_to(2);
    world.run(MS * 100);
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
}

#[test]
fn an_address_that_is_taken_is_replaced_by_another() {
    for detection in [None, Some(MS * 50)] {
        let mut world = World::with(
            |router| AccessRouterConfig { duplicate_address_detection: detection, ..router_config(router) },
            node_config(),
        );
        // Of one it has heard; of the other it finds out.
        match detection {
            None => world.occupy(1, care_of(1)),
            Some(_) => assert!(world.taken.insert(care_of(1))),
        }
        world.discover();
        world.prepare(1);
        world.run(MS * 300);
        let new = world.mobile.new_care_of().unwrap();
        assert!(world.mobile.is_prepared() && new != care_of(1) && prefix(1).contains(new));
        assert!(world.router_said(1, |event| matches!(
            event,
            access_router::Event::Initiated { code: HandoverCode::AcceptedAddressAssigned, .. }
        )));
        world.leave();
        stream(&mut world, 0..10, care_of(0));
        world.come_to(1);
        world.run(MS * 100);
        assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
        assert!(world.addresses.contains(&new));
    }
}

#[test]
fn an_address_that_is_taken_can_leave_the_node_its_previous_one() {
    let mut world = World::with(
        |router| AccessRouterConfig {
            address_conflict: AddressConflict::UsePrevious,
            ..router_config(router)
        },
        node_config(),
    );
    world.occupy(1, care_of(1));
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    assert_eq!(world.mobile.new_care_of(), Some(care_of(0)));
    assert_eq!(world.routers[0].tunnel(care_of(0)).unwrap().exit, address(1));
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.come_to(1);
    stream(&mut world, 10..20, care_of(0));
    world.run(MS * 100);
    assert_eq!(world.numbers(), (0..20).collect::<Vec<_>>());
    world.send_back(5, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.sent_back, [5]);
    world.run(Duration::from_secs(60));
    assert!(world.router_said(1, |event| matches!(event, access_router::Event::HostRouteEnded { .. })));
}

#[test]
fn an_address_that_is_taken_can_end_the_handover() {
    let mut world = World::with(
        |router| AccessRouterConfig { address_conflict: AddressConflict::Refuse, ..router_config(router) },
        node_config(),
    );
    world.occupy(1, care_of(1));
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    let refused = Event::Failed(Failure::Refused(FastBindingStatus::ReasonUnspecified));
    assert!(world.mobile_said(|event| *event == refused));
    stream(&mut world, 0..5, care_of(0));
    world.run(MS * 50);
    assert_eq!(world.numbers(), (0..5).collect::<Vec<_>>(), "packets go to the old link");
}

/// RFC 5568 section 6.2.1.1.
#[test]
fn a_router_that_does_not_answer_is_asked_four_times_with_growing_waits() {
    let mut world = World::new();
    world.discover();
    world.faults.loss = 0.0;
    // Nobody at router 1 knows router 0.
    world.routers[1] = {
        let config = AccessRouterConfig { neighbors: Vec::new(), ..router_config(1) };
        access_router::AccessRouter::new(config, careof_base::RandomStream::new(1, 0, "deaf")).unwrap()
    };
    world.prepare(1);
    let start = world.now;
    let mut asked = Vec::new();
    while world.now < start + Duration::from_secs(3) {
        let before = world.sent.len();
        world.run(MS);
        let new = world.sent[before..].iter();
        let count = new.filter(|(addresses, ..)| addresses.destination == address(1)).count();
        asked.extend(std::iter::repeat_n((world.now - start).as_millis() as u64, count));
    }
    let gaps: Vec<u64> = asked.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps, [100, 200, 400]);
    let refused = Event::Failed(Failure::Refused(FastBindingStatus::ReasonUnspecified));
    assert!(
        world.mobile_said(|event| *event == refused)
            || world.mobile_said(|event| { matches!(event, Event::Failed(Failure::NoAcknowledgment)) })
    );
    assert_eq!(world.routers[0].departure_count(), 0);
}

#[test]
fn a_previous_router_that_does_not_answer_is_given_up() {
    let mut world = World::new();
    world.discover();
    world.faults.loss = 1.0;
    world.prepare(1);
    world.run(Duration::from_secs(10));
    assert!(world.mobile_said(|event| *event == Event::Failed(Failure::NoAcknowledgment)));
    let updates = world.mobile_events.iter().filter(|event| matches!(event, Event::UpdateSent { .. }));
    assert_eq!(updates.count(), 4, "FBU_RETRIES is 3");
}

#[test]
fn a_router_that_knows_no_fast_handovers_is_asked_four_times_and_no_more() {
    let mut world = World::new();
    world.faults.loss = 1.0;
    world.mobile.discover(world.now, &[]);
    world.run(Duration::from_secs(10));
    assert!(world.mobile_said(|event| *event == Event::Failed(Failure::NoAdvertisement)));
    assert_eq!(world.sent.len(), 4, "RTSOLPR_RETRIES is 3");
}

#[test]
fn the_network_can_send_a_node_away() {
    let mut world = World::new();
    let (now, destination) = (world.now, care_of(0));
    assert!(world.routers[0].trigger_handover(now, LINK, destination, access_point(1), None));
    assert!(!world.routers[0].trigger_handover(now, LINK, destination, access_point(0), None));
    world.run(MS * 100);
    assert!(world.mobile_said(|event| matches!(event, Event::Triggered { .. })));
    assert!(world.mobile.is_prepared());
    let given = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0x12, 0, 0, 0, 0, 0x99);
    let now = world.now;
    world.routers[0].trigger_handover(now, LINK, destination, access_point(2), Some(given));
    world.run(MS * 100);
    assert_eq!(world.mobile.new_care_of(), Some(given));
}

#[test]
fn without_a_buffer_what_comes_too_early_is_dropped_and_counted() {
    let mut world = World::with(
        |router| AccessRouterConfig { buffer: BufferConfig::NONE, ..router_config(router) },
        node_config(),
    );
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 20);
    world.come_to(1);
    world.run(MS * 100);
    assert_eq!(world.lost, (0..10).collect::<Vec<_>>());
    assert_eq!(world.routers[1].buffer_counters().dropped, 11, "the acknowledgment, too");
}

#[test]
fn a_small_buffer_keeps_the_latest() {
    let mut world = World::with(
        |router| AccessRouterConfig {
            buffer: BufferConfig { packets: 4, ..BufferConfig::default() },
            ..router_config(router)
        },
        node_config(),
    );
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.leave();
    stream(&mut world, 0..10, care_of(0));
    world.run(MS * 20);
    world.come_to(1);
    world.run(MS * 100);
    assert_eq!(world.numbers(), [6, 7, 8, 9]);
    assert_eq!(world.lost, (0..6).collect::<Vec<_>>());
}

#[test]
fn routers_behind_ipsec_need_no_key() {
    let mut world = World::with(
        |router| {
            let mut config = router_config(router);
            config.neighbors.iter_mut().for_each(|other| other.security = RouterSecurity::Ipsec);
            config
        },
        node_config(),
    );
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    assert!(world.mobile.is_prepared());
}

#[test]
fn a_node_whose_clock_is_wrong_is_told_the_time() {
    let node = careof_mobility::v6::fast_handover::FastHandoverConfig {
        clock: clock().behind_by(Duration::from_secs(3600)),
        ..node_config()
    };
    let mut world = World::with(router_config, node);
    world.discover();
    world.prepare(1);
    world.run(MS * 200);
    assert!(world.mobile.is_prepared(), "{:?}", world.mobile_events);
}

#[test]
fn no_tunnel_is_granted_for_longer_than_the_router_wants() {
    let mut world = World::with(
        |router| AccessRouterConfig { max_lifetime: Lifetime::from_units(1), ..router_config(router) },
        node_config(),
    );
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    assert!(world.routers[0].tunnel(care_of(0)).is_some());
    world.run(Duration::from_secs(4));
    assert_eq!(world.routers[0].tunnel(care_of(0)), None);
    assert!(world.mobile_said(|event| *event == Event::TunnelEnded));
}

#[test]
fn in_bad_weather_most_handovers_succeed_and_nothing_stays_behind() {
    let mut prepared = 0;
    let mut world = World::new();
    for round in 0..40 {
        let to = (round + 1) % ROUTERS;
        world.faults = Faults { loss: 0.2, duplicate: 0.2, jitter: MS * 30 };
        world.discover();
        world.run(MS * 600);
        if world.prepare(to) {
            world.run(MS * 400);
            world.leave();
            world.run(MS * 50);
            world.come_to(to);
            world.run(Duration::from_secs(3));
            prepared += u32::from(world.mobile.is_prepared());
        }
        world.faults = Faults::NONE;
        let place = world.place.unwrap();
        world.settle_at(place);
        world.run(Duration::from_secs(45));
        if place != to {
            // Discovery has failed: it moves without.
            world.place = Some(to);
            world.addresses = std::collections::BTreeSet::from([care_of(to)]);
            world.settle_at(to);
        }
    }
    assert!(prepared > 30, "{prepared}");
    for router in &world.routers {
        assert_eq!((router.arrival_count(), router.departure_count(), router.buffered()), (0, 0, (0, 0)));
    }
}
