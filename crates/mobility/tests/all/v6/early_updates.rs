//! Binding Updates that are sent again early, and what of RFC 6275 section 11.8 stands all the same.

use careof_base::{Duration, Instant};
use careof_mobility::v6::*;
use careof_wire::mip6::Message;

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// A node that is registered through its first interface, with a link on the other.
fn registered(early: u32) -> World {
    let mut node = MobileNodeConfig { route_optimization: None, ..node(timestamps()) };
    node.retransmission.early = early;
    let home = HomeAgentConfig { duplicate_address_detection: None, ..config(node.security.clone()) };
    let mut world = World::new(node, home);
    world.attach(WLAN, 2);
    world.attach(GSM, 3);
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    world
}

/// When updates were sent to the home agent since `since`, in milliseconds from then on.
fn updates(world: &World, since: Instant) -> Vec<u64> {
    let sent = world.sent.iter().filter(|(at, addresses, message)| {
        *at >= since && addresses.destination == HA && matches!(message, Message::BindingUpdate(_))
    });
    sent.map(|(at, ..)| (*at - since).as_millis() as u64).collect()
}

#[test]
fn a_lost_update_of_a_handover_is_sent_again_after_twice_the_round_trip_and_100_ms() {
    for (early, expected) in [
        (0, [0, 1000, 3000, 7000].as_slice()),
        (1, &[0, 180, 1180, 3180, 7180]),
        (2, &[0, 180, 360, 1360, 3360, 7360]),
    ] {
        let mut world = registered(early);
        world.broken = Some(3);
        let begun = world.now;
        world.switch_to(GSM);
        world.run(SECOND * 10);
        assert_eq!(updates(&world, begun), expected);
    }
}

#[test]
fn the_acknowledgement_of_any_of_them_counts_and_the_others_change_nothing() {
    let mut world = registered(2);
    // Slower than the node believes: all three are on their way before the first is acknowledged.
    world.one_way = Duration::from_millis(400);
    let begun = world.now;
    world.switch_to(GSM);
    world.run(SECOND * 5);
    assert_eq!(updates(&world, begun), [0, 180, 360]);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    let registered = world.handovers().into_iter().rev().find_map(|event| match event {
        HandoverEvent::Registered { latency, .. } => Some(latency),
        _ => None,
    });
    assert_eq!(registered, Some(Duration::from_millis(800)), "that of the first");
    assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedAnswer), 2);
}

#[test]
fn no_second_sees_more_than_three_updates_whatever_the_node_does() {
    let mut world = registered(2);
    world.broken = Some(3);
    let begun = world.now;
    for n in 0..40 {
        world.switch_to(if n % 2 == 0 { GSM } else { WLAN });
        world.run(Duration::from_millis(130));
    }
    let sent = updates(&world, begun);
    assert!(sent.windows(4).all(|four| four[3] - four[0] >= 1000), "{sent:?}");
}

#[test]
fn neither_the_first_update_nor_a_renewal_is_in_haste() {
    let mut node = MobileNodeConfig { route_optimization: None, ..node(timestamps()) };
    node.retransmission.early = 2;
    let mut world = World::new(node.clone(), config(node.security));
    world.home_is_dead = true;
    world.attach(WLAN, 2);
    let begun = world.now;
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    assert_eq!(updates(&world, begun), [0, 1500, 4500], "the home agent may have to detect duplicates");
    let mut world = registered(2);
    world.home_is_dead = true;
    let begun = world.now;
    world.run(SECOND * 240);
    let sent = updates(&world, begun);
    let waits: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[..3], [1000, 2000, 4000], "{sent:?}");
}

#[test]
fn more_than_two_are_refused() {
    let mut node = node(timestamps());
    node.retransmission.early = 3;
    let random = careof_base::RandomStream::new(1, 0, "refused");
    assert!(MobileNode::new(Instant::ZERO, node, random).is_err());
}
