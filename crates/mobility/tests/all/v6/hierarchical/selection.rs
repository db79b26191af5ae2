//! Which anchor point is used, and what happens when it fails (RFC 5380 sections 5, 7, 9 and 10).

use careof_base::{Instant, RandomStream};
use careof_mobility::v6::*;
use careof_mobility::{ConfigError, InterfaceId, Selection};
use careof_wire::icmpv6::{MapOption, PrefixLifetime};

use super::world::*;
use crate::v6::craft::{HA_IPV4, HOME, care_of, prefix};
use crate::v6::world::{GSM, WLAN};

/// The anchor point that is used where a router says this, if any.
fn chosen(config: HierarchicalMobileNodeConfig, maps: &[MapOption]) -> Option<u16> {
    let mut world = World::new(config);
    world.silent_routers = true;
    world.attach(WLAN, PLAIN_LINK);
    world.advertise(WLAN, maps);
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    world.check_both_ways();
    let used = world.mobile.map().map(|(map, _)| map);
    [WEST, EAST].into_iter().find(|number| used == Some(map(*number)))
}

/// Section 9.1 by default; otherwise section 7.1, or the closest.
#[test]
fn distance_and_preference_choose_the_anchor_point() {
    let by = |selection| HierarchicalMobileNodeConfig { selection, ..mobile_config() };
    let maps = [option(WEST, 2, 15), option(EAST, 5, 1)];
    assert_eq!(chosen(by(MapSelection::Furthest), &maps), Some(EAST));
    assert_eq!(chosen(by(MapSelection::HighestPreference), &maps), Some(WEST));
    assert_eq!(chosen(by(MapSelection::Nearest), &maps), Some(WEST));
    let equal = [option(EAST, 2, 3), option(WEST, 2, 4)];
    assert_eq!(chosen(by(MapSelection::Furthest), &equal), Some(WEST), "section 5: the tie is broken by it");
    let same = [option(EAST, 2, 3), option(WEST, 2, 3)];
    assert_eq!(chosen(by(MapSelection::Furthest), &same), Some(WEST), "always the same one");
}

#[test]
fn anchor_points_that_cannot_be_used_are_not() {
    let dead = MapOption { valid_lifetime: PrefixLifetime::ZERO, ..option(EAST, 5, 9) };
    for useless in [option(EAST, 5, 0), dead, option(EAST, 0, 9)] {
        assert_eq!(chosen(mobile_config(), &[useless]), None, "{useless:?}");
        assert_eq!(chosen(mobile_config(), &[useless, option(WEST, 1, 1)]), Some(WEST));
    }
    // Section 5: who lets the anchor point give it an address has to have been given one.
    let allocated = MapOption { allocates_address: true, ..option(WEST, 2, 9) };
    assert_eq!(chosen(mobile_config(), &[allocated]), None);
    let mut config = mobile_config();
    config.maps[0].regional_address = Some(regional(WEST));
    assert_eq!(chosen(config, &[allocated]), Some(WEST));
    // One without a security association.
    let stranger = MapOption { address: care_of(77), ..option(WEST, 9, 9) };
    assert_eq!(chosen(mobile_config(), &[stranger]), None);
}

/// Its regional care-of address would be the address of the link.
#[test]
fn an_anchor_point_on_the_own_link_is_not_used() {
    let mut world = World::new(mobile_config());
    world.networks.insert(WLAN, PLAIN_LINK);
    let (interface, router) = (WLAN, router(PLAIN_LINK));
    world.tell(Input::LinkUp { interface });
    let prefixes = [prefix(PLAIN_LINK), prefix(WEST)];
    world.tell(Input::RouterFound { interface, router, prefixes: &prefixes });
    world.advertise(WLAN, &[option(WEST, 1, 9)]);
    let (address, prefix) = (care_of(PLAIN_LINK), prefixes[0]);
    let address = InterfaceAddress { address, prefix, valid_for: None };
    world.tell(Input::AddressAdded { interface, address });
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    assert_eq!((world.mobile.map(), world.bound_at_home()), (None, vec![care_of(PLAIN_LINK)]));
}

/// Section 9: lazy in releasing; a better one elsewhere is no reason to leave, the end of the advertisements is.
#[test]
fn an_anchor_point_is_kept_for_as_long_as_it_is_advertised() {
    let mut world = World::on(2);
    let moved = world.now;
    world.move_to(BORDER);
    world.run(SECOND * 5);
    assert_eq!(world.mobile.map(), Some((map(WEST), care_of(BORDER))));
    assert_eq!(world.asked_since(moved).len(), 1);
    // Section 7.1: with preference 0 what there is is kept.
    world.advertise(WLAN, &[option(WEST, 2, 0)]);
    world.run(SECOND * 300);
    assert_eq!(world.mobile.map(), Some((map(WEST), care_of(BORDER))));
    world.move_to(EAST_LINK);
    world.run(SECOND * 5);
    assert_eq!(
        (world.mobile.map(), world.bound_at_home()),
        (Some((map(EAST), care_of(EAST_LINK))), vec![regional(EAST)])
    );
}

/// Sections 7.1 and 10: a lifetime of zero says that it has failed. Another one is chosen, or none.
#[test]
fn an_anchor_point_that_is_said_to_have_failed_is_left() {
    let failed = |number| MapOption { valid_lifetime: PrefixLifetime::ZERO, ..option(number, 2, 10) };
    let mut world = World::on(2);
    world.move_to(BORDER);
    world.run(SECOND * 5);
    world.anchor(WEST).dead = true;
    world.advertise(WLAN, &[failed(WEST)]);
    world.run(SECOND * 5);
    assert_eq!(world.bound_at_home(), [regional(EAST)]);
    world.check_both_ways();
    world.anchor(EAST).dead = true;
    world.advertise(WLAN, &[failed(EAST)]);
    world.run(SECOND * 5);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(BORDER)], None));
    world.check_both_ways();
    world.anchor(WEST).dead = false;
    world.advertise(WLAN, &[option(WEST, 2, 10)]);
    world.run(SECOND * 5);
    assert_eq!(world.bound_at_home(), [regional(WEST)], "eager to use it again");
    world.check_both_ways();
}

/// Nobody says that it has failed: it does not answer.
#[test]
fn an_anchor_point_that_does_not_answer_is_left_for_a_while() {
    let mut world = World::new(mobile_config());
    world.anchor(WEST).dead = true;
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 15);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(2)], None));
    world.check_both_ways();
    world.anchor(WEST).dead = false;
    world.run(SECOND * 60);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    // One that fails later is noticed at the next movement.
    world.anchor(WEST).dead = true;
    world.move_to(3);
    world.run(SECOND * 15);
    assert_eq!(world.bound_at_home(), [care_of(3)]);
    world.check_both_ways();
}

/// Somebody else on the anchor point's link has the regional care-of address.
#[test]
fn an_anchor_point_that_refuses_is_left_at_once() {
    let mut world = World::new(mobile_config());
    world.taken.insert(regional(WEST));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 4);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(2)], None));
    assert_eq!(world.mobile.counters().refused(134), 1);
    world.check_both_ways();
}

/// Interfaces are chosen by preference, each with the anchor point of its network.
#[test]
fn the_preferred_interface_brings_its_own_anchor_point() {
    let mut config = mobile_config();
    config.node.selection = Selection::Preferred { hold: SECOND };
    config.node.interfaces[0].preference = 9;
    let mut world = World::new(config);
    world.attach(GSM, EAST_LINK);
    world.run(SECOND * 5);
    assert_eq!(world.mobile.active_interface(), Some(GSM));
    assert_eq!(world.bound_at_home(), [regional(EAST)]);
    world.attach(WLAN, 2);
    world.run(SECOND * 10);
    assert_eq!((world.mobile.active_interface(), world.bound_at_home()), (Some(WLAN), vec![regional(WEST)]));
    world.check_both_ways();
    world.detach(WLAN);
    world.run(SECOND * 10);
    assert_eq!((world.mobile.active_interface(), world.bound_at_home()), (Some(GSM), vec![regional(EAST)]));
    world.check_both_ways();
}

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    let refused = |change: &dyn Fn(&mut HierarchicalMobileNodeConfig)| {
        let mut config = mobile_config();
        change(&mut config);
        let random = RandomStream::new(1, 0, "mobile node");
        HierarchicalMobileNode::new(Instant::ZERO, config, random).map(drop).unwrap_err()
    };
    let error = refused(&|config| config.maps.clear());
    assert_eq!(error, ConfigError::Missing("mobility anchor point"));
    let error = refused(&|config| config.maps[1].address = map(WEST));
    assert!(matches!(error, ConfigError::DuplicateAddress { .. }), "{error}");
    for own in [HOME, map(WEST)] {
        let error = refused(&|config| config.maps[0].regional_address = Some(own));
        assert!(matches!(error, ConfigError::DuplicateAddress { .. }), "{error}");
    }
    let error = refused(&|config| config.node.multiple_care_of = true);
    assert!(matches!(error, ConfigError::Incompatible(..)), "{error}");
    let error = refused(&|config| config.node.report_paths = true);
    assert!(matches!(error, ConfigError::Incompatible(..)), "{error}");
    let error = refused(&|config| config.node.home_agent_ipv4 = Some(HA_IPV4));
    assert!(matches!(error, ConfigError::Incompatible(..)), "{error}");
    let error = refused(&|config| config.node.interfaces[0].id = InterfaceId(u16::MAX));
    assert!(matches!(error, ConfigError::OutOfRange { .. }), "{error}");
    let error = refused(&|config| config.patience = 0);
    assert!(matches!(error, ConfigError::OutOfRange { .. }), "{error}");
}
