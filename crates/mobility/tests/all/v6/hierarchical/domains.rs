//! Movements within the domain of an anchor point, between domains, and out of them (RFC 5380 sections 6.1 and 8).

use careof_base::Duration;
use careof_mobility::v6::*;
use careof_mobility::{HandoverReason, HandoverStyle, Notice};
use careof_wire::mip6::{Lifetime, UpdateFlags};

use super::world::*;
use crate::v6::craft::{HA, HOME, care_of};
use crate::v6::world::{AT_HOME, CN, GSM, WLAN};

const LOCAL: UpdateFlags = UpdateFlags(0x8800);
const TO_HOME: UpdateFlags = UpdateFlags(0xc000);

/// Section 6.1: the anchor point first, by M and A, with the regional care-of address in the Home Address option, from the on-link one and
/// without another; then the home agent, to which the regional care-of address is the care-of address.
#[test]
fn the_anchor_point_is_asked_first_and_the_home_agent_told_of_the_regional_address() {
    let world = World::on(2);
    let asked: Vec<_> = world.updates.iter().map(|(_, way, update)| (*way, update.clone())).collect();
    let [(local_way, local), (home_way, home)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(*local_way, Addresses::new(care_of(2), map(WEST)).with_home_address(regional(WEST)));
    assert_eq!((local.flags, local.options.alternate_care_of_address()), (LOCAL, None));
    let tunnel = Tunnel { entry: care_of(2), exit: map(WEST) };
    let expected = Addresses::new(regional(WEST), HA).with_home_address(HOME).through_map(tunnel);
    assert_eq!((*home_way, home.flags), (expected, TO_HOME));
    assert_eq!(home.options.alternate_care_of_address(), Some(regional(WEST)));
    // No binding of the regional care-of address outlives its own.
    assert!(home.lifetime < local.lifetime, "{:?} {:?}", home.lifetime, local.lifetime);
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(2)], vec![regional(WEST)]));
    assert_eq!(world.mobile.map(), Some((map(WEST), care_of(2))));
    assert_eq!(world.mobile.care_of(), Some(regional(WEST)));
    let handovers = world.handovers_since(careof_base::Instant::ZERO);
    let registered = |event: &&HandoverEvent| matches!(event, HandoverEvent::Registered { .. });
    let [HandoverEvent::Registered { care_of, from: None, .. }] =
        handovers.iter().filter(registered).collect::<Vec<_>>()[..]
    else {
        panic!("{handovers:?}")
    };
    assert_eq!(*care_of, Some(regional(WEST)));
}

/// Section 6.1: within a domain only the anchor point hears of it, and its answer ends the handover: one round trip.
#[test]
fn within_a_domain_one_round_trip_to_the_anchor_point_is_all() {
    let mut world = World::on(2);
    world.check_both_ways();
    world.run(SECOND * 5);
    assert_eq!(world.mobile.optimized_route(CN), Some(regional(WEST)), "route optimisation is with it, too");
    let moved = world.now;
    world.move_to(3);
    world.run(SECOND * 2);
    assert_eq!(world.asked_since(moved), [(map(WEST), LOCAL)], "neither home agent nor correspondent node");
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(3)], vec![regional(WEST)]));
    let phases = world.handovers_since(moved);
    let names: Vec<_> = phases.iter().map(HandoverEvent::name).collect();
    assert_eq!(names, ["link-down", "link-up", "initiated", "registered", "terminated"]);
    let HandoverEvent::Initiated { from, to, reason, style, .. } = phases[2] else { panic!() };
    assert_eq!((from, to, reason), (Some(WLAN), WLAN, HandoverReason::Moved));
    assert_eq!(style, HandoverStyle::BreakBeforeMake);
    let HandoverEvent::Registered { latency, round_trip, care_of, attempts, .. } = phases[3] else {
        panic!()
    };
    assert_eq!((latency, round_trip), (world.one_way * 2, world.one_way * 2));
    assert_eq!((care_of, attempts), (Some(regional(WEST)), 1));
    world.check_both_ways();
    assert_eq!(world.peer.care_of(HOME), Some(regional(WEST)));
}

/// A second interface in the same domain: the old path serves until the anchor point has answered.
#[test]
fn an_interface_is_changed_within_a_domain_without_the_home_agent() {
    let mut world = World::on(2);
    world.attach(GSM, 3);
    world.run(SECOND);
    let moved = world.now;
    world.switch_to(GSM);
    assert_eq!(world.mobile.active_interface(), Some(WLAN));
    assert!(world.send_up(1));
    world.run(SECOND);
    assert_eq!(world.asked_since(moved), [(map(WEST), LOCAL)]);
    assert_eq!(world.mobile.active_interface(), Some(GSM));
    let phases = world.handovers_since(moved);
    assert!(matches!(
        phases[..],
        [
            HandoverEvent::Initiated {
                style: HandoverStyle::MakeBeforeBreak,
                reason: HandoverReason::Chosen,
                ..
            },
            HandoverEvent::Registered { from: Some(WLAN), to: GSM, .. },
        ]
    ));
    world.mobile.release(world.now, WLAN);
    world.run(SECOND);
    assert!(matches!(
        world.handovers_since(moved).last(),
        Some(HandoverEvent::Terminated { from: Some(WLAN), to: GSM, .. })
    ));
    world.check_both_ways();
}

/// The same where the old link is gone before there is a new one: the registration of the regional address is as good as before.
#[test]
fn an_interface_is_changed_within_a_domain_across_a_gap_without_the_home_agent() {
    let mut world = World::on(2);
    world.check_both_ways();
    world.run(SECOND);
    let moved = world.now;
    world.detach(WLAN);
    world.switch_to(GSM);
    world.run(SECOND);
    world.attach(GSM, 3);
    world.run(SECOND * 2);
    assert_eq!(world.asked_since(moved), [(map(WEST), LOCAL)]);
    assert_eq!(world.mobile.active_interface(), Some(GSM));
    let phases = world.handovers_since(moved);
    let is_registered =
        |phase: &&HandoverEvent| matches!(phase, HandoverEvent::Registered { from: Some(WLAN), to: GSM, .. });
    assert_eq!(phases.iter().filter(is_registered).count(), 1, "{phases:?}");
    world.check_both_ways();
}

/// Sections 6.1 and 8: in another domain the new anchor point and the home agent are asked, and the one before sends packets on.
#[test]
fn between_domains_the_anchor_point_of_before_sends_packets_on() {
    let mut world = World::on(2);
    world.peer.always = Some(careof_wire::mip6::BindingStatus::AdministrativelyProhibited);
    let moved = world.now;
    world.move_to(EAST_LINK);
    world.run(Duration::from_millis(100));
    // The new one still looks for duplicates of the regional address; meanwhile packets come by the old one.
    assert_eq!(
        (world.bound_at(WEST), world.bound_at_home()),
        (vec![care_of(EAST_LINK)], vec![regional(WEST)])
    );
    world.check_both_ways();
    world.run(SECOND * 2);
    assert_eq!(
        (world.bound_at(EAST), world.bound_at_home()),
        (vec![care_of(EAST_LINK)], vec![regional(EAST)])
    );
    let asked = world.asked_since(moved);
    assert_eq!(asked.iter().filter(|(to, _)| *to == HA).count(), 1, "{asked:?}");
    let phases = world.handovers_since(moved);
    let names: Vec<_> = phases.iter().map(HandoverEvent::name).collect();
    assert_eq!(names, ["link-down", "link-up", "initiated", "registered", "terminated"]);
    world.check_both_ways();
    let rejected = world.rejected;
    // It is asked no longer than a minute.
    world.run(SECOND * 300);
    assert!(world.bound_at(WEST).is_empty());
    assert_eq!(world.rejected, rejected);
    world.check_both_ways();
}

#[test]
fn who_comes_back_uses_the_anchor_point_of_before_again() {
    let mut world = World::on(2);
    world.move_to(EAST_LINK);
    world.run(SECOND * 5);
    let moved = world.now;
    world.move_to(3);
    world.run(SECOND * 5);
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(3)], vec![regional(WEST)]));
    assert!(world.asked_since(moved).contains(&(map(WEST), LOCAL)));
    world.run(SECOND * 400);
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(3)], vec![regional(WEST)]));
    world.check_both_ways();
}

/// Without an anchor point it is Mobile IPv6 as ever.
#[test]
fn outside_all_domains_the_home_agent_is_told_of_the_address_of_the_link() {
    let mut world = World::on(PLAIN_LINK);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(PLAIN_LINK)], None));
    world.check_both_ways();
    world.move_to(2);
    world.run(SECOND * 5);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    world.check_both_ways();
    let moved = world.now;
    world.move_to(PLAIN_LINK);
    world.run(SECOND * 5);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(PLAIN_LINK)], None));
    // The one before sends on what still comes.
    assert!(world.asked_since(moved).contains(&(map(WEST), LOCAL)));
    assert_eq!(world.bound_at(WEST), [care_of(PLAIN_LINK)]);
    world.check_both_ways();
    world.move_to(AT_HOME);
    world.run(SECOND * 5);
    assert!(world.mobile.is_at_home() && world.bound_at_home().is_empty());
    world.check_both_ways();
    world.move_to(2);
    world.run(SECOND * 5);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
}

/// Section 6.1: bindings of the regional care-of address do not outlive its own, and all are renewed.
#[test]
fn bindings_are_renewed_and_never_outlive_the_regional_one() {
    let mut world = World::on(2);
    world.check_both_ways();
    for _ in 0..400 {
        world.run(SECOND * 5);
        let now = world.now;
        let local = world.anchors[&WEST].node.bindings_of(regional(WEST))[0].expires;
        let home = world.home.bindings_of(HOME)[0].expires;
        // What the home agent counts from is a round trip later.
        assert!(home <= local + SECOND, "at {now}: {home} {local}");
        assert!(local > now + SECOND * 10);
    }
    assert_eq!(world.handovers_since(careof_base::Instant::from_secs(10)), []);
    world.check_both_ways();
}

/// No binding at an anchor point outlives what its option says (section 5).
#[test]
fn the_lifetime_of_the_option_bounds_that_of_the_binding() {
    let mut world = World::new(mobile_config());
    world.silent_routers = true;
    world.attach(WLAN, 2);
    let valid_lifetime = careof_wire::icmpv6::PrefixLifetime::from_secs(100);
    world.advertise(WLAN, &[careof_wire::icmpv6::MapOption { valid_lifetime, ..option(WEST, 2, 10) }]);
    world.switch_to(WLAN);
    world.run(SECOND * 4);
    assert_eq!(world.updates[0].2.lifetime, Lifetime::from_units(25));
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    world.run(SECOND * 100);
    // It was not told of again, so it is used no longer.
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(2)], None));
    world.check_both_ways();
}

/// RFC 6275 section 11.4.1, from the regional care-of address.
#[test]
fn a_home_agent_is_found_through_the_anchor_point() {
    let mut config = mobile_config();
    config.node.home_agent = None;
    let mut world = World::new(config);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 10);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    assert!(world.events.iter().any(|(_, event)| matches!(event, Event::HomeAgentsFound { .. })));
}

/// A node that does not believe its link layer follows routers and addresses alone.
#[test]
fn who_does_not_believe_the_link_moves_as_well() {
    let mut config = mobile_config();
    config.node.movement.link_layer = false;
    let mut world = World::new(config);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    let moved = world.now;
    world.move_to(3);
    world.run(SECOND * 2);
    assert_eq!(world.asked_since(moved), [(map(WEST), LOCAL)]);
    world.check_both_ways();
}

#[test]
fn a_node_that_deregisters_ends_all_bindings() {
    let mut world = World::on(2);
    world.mobile.deregister(world.now);
    world.run(SECOND * 5);
    assert!(world.bound_at_home().is_empty() && world.bound_at(WEST).is_empty());
    assert!(!world.mobile.is_registered());
    let left = world.now;
    world.run(SECOND * 500);
    assert_eq!(world.asked_since(left), []);
    world.switch_to(WLAN);
    world.run(SECOND * 15);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    world.check_both_ways();
}

#[test]
fn who_comes_back_while_taking_leave_is_registered_again() {
    for tens in 0..20 {
        let mut world = World::on(2);
        world.mobile.deregister(world.now);
        world.run(Duration::from_millis(tens * 10));
        world.switch_to(WLAN);
        world.run(SECOND * 15);
        assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(2)], vec![regional(WEST)]));
        world.check_both_ways();
    }
}

#[test]
fn an_interface_that_does_not_exist_is_refused() {
    let mut world = World::on(2);
    for id in [9, u16::MAX] {
        let unknown = careof_mobility::InterfaceId(id);
        assert!(world.mobile.switch_to(world.now, unknown, Notice::None).is_err());
        assert!(!world.mobile.listens_on(unknown));
    }
}
