//! All interfaces at once: which care-of addresses the home agent disperses packets over.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_mobility::multipath::PathId;
use careof_mobility::v4::*;
use careof_wire::mip4::{Extension, Message, RequestFlags};

use super::world::*;

const FORMS: [MultipathForm; 2] = [MultipathForm::Shake, MultipathForm::Rfc7629];
/// The address of a relay's own link, and what stands for the relay at the mobile node.
const RELAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 99);
const IF_RELAY: InterfaceId = InterfaceId(2);

fn mobile(form: MultipathForm) -> MobileNodeConfig {
    MobileNodeConfig { multipath: Some(form), ..mobile_config() }
}

/// With something that stands for a relay instead of the interface towards foreign agents.
fn client(form: MultipathForm) -> MobileNodeConfig {
    let mut config = mobile(form);
    config.interfaces[2] = InterfaceConfig { relay: true, ..InterfaceConfig::new(IF_RELAY) };
    config
}

fn home() -> HomeAgentConfig {
    HomeAgentConfig { multipath: true, ..home_config() }
}

fn world(mobile: MobileNodeConfig, home: HomeAgentConfig) -> World {
    World::with(mobile, home, [foreign_config(0), foreign_config(1)])
}

/// The paths as either end has them: number, care-of address, whether that is a relay's. They agree.
fn paths(world: &World) -> Vec<(u8, Ipv4Addr, bool)> {
    let at_home = world.home.paths(HOME).map(|path| (path.path.number(), path.care_of, path.relayed));
    let mut at_home: Vec<_> = at_home.collect();
    at_home.sort_unstable();
    let mobile = world.mobile.paths().map(|path| (path.path.number(), path.care_of, path.relayed));
    assert_eq!(mobile.collect::<Vec<_>>(), at_home);
    assert_eq!(world.home.disperses(HOME), !at_home.is_empty());
    at_home
}

fn requests(world: &World) -> impl Iterator<Item = (&Transmit, Message)> {
    world.sent.iter().filter(|(_, who, _)| *who == Who::Mobile).filter_map(|(_, _, transmit)| {
        let message = Message::parse(transmit.payload.bytes()).ok()?;
        matches!(message, Message::Request(_)).then_some((transmit, message))
    })
}

const BOTH: [(u8, Ipv4Addr, bool); 2] = [(0, WLAN, false), (1, GSM, false)];

#[test]
fn every_interface_is_registered_as_a_path_once_one_is_in_use() {
    for form in FORMS {
        let mut world = world(mobile(form), home());
        world.run_until(at(1_000));
        assert!(paths(&world).is_empty(), "the owner has chosen none yet");
        world.switch(IF_WLAN);
        world.run_until(at(3_000));
        assert_eq!(paths(&world), BOTH);
        assert_eq!(world.mobile.active(), Some(IF_WLAN));
        for (transmit, message) in requests(&world) {
            let Message::Request(request) = &message else { continue };
            assert_eq!(transmit.source, request.care_of_address, "each by its own interface");
            assert!(request.flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS));
            assert!(!request.flags.contains(RequestFlags::RELAYED));
            let standard = request.extensions.iter().any(|e| matches!(e, Extension::Multipath(_)));
            assert_eq!(standard, form == MultipathForm::Rfc7629);
        }
        let sends = |world: &World| world.mobile.delivery(CORRESPONDENT, None).map(|d| d.interface);
        assert_eq!(sends(&world), Some(IF_WLAN));
        // Renewed for as long as it lasts.
        world.run_until(at(2_000_000));
        assert_eq!(paths(&world), BOTH);
        world.command(|node, now| node.deregister(now));
        world.run_for(Duration::from_secs(5));
        assert!(paths(&world).is_empty() && world.exits().is_empty());
    }
}

#[test]
fn a_link_that_goes_down_is_no_path_and_is_one_again_when_it_is_back() {
    for form in FORMS {
        let preferred = Selection::Preferred { hold: Duration::from_secs(1) };
        let mut world = world(MobileNodeConfig { selection: preferred, ..mobile(form) }, home());
        world.run_until(at(5_000));
        assert_eq!((world.mobile.active(), paths(&world)), (Some(IF_WLAN), BOTH.to_vec()));
        for (goes, stays, left) in [(IF_GSM, IF_WLAN, BOTH[0]), (IF_WLAN, IF_GSM, BOTH[1])] {
            world.link(goes, false);
            world.run_for(Duration::from_secs(4));
            assert_eq!((world.mobile.active(), paths(&world)), (Some(stays), vec![left]));
            world.link(goes, true);
            world.run_for(Duration::from_secs(10));
            assert_eq!((world.mobile.active(), paths(&world)), (Some(IF_WLAN), BOTH.to_vec()));
        }
    }
}

#[test]
fn a_handover_leaves_the_old_interface_as_a_path() {
    let mut world = world(mobile(MultipathForm::Shake), home());
    world.switch(IF_WLAN);
    world.run_until(at(3_000));
    world.events.clear();
    world.switch(IF_GSM);
    world.run_for(Duration::from_secs(3));
    assert_eq!((world.mobile.active(), paths(&world)), (Some(IF_GSM), BOTH.to_vec()));
    assert_eq!(world.phases(), ["initiated", "registered", "terminated"]);
    let removed =
        |event: &Event| matches!(event, Event::Binding(changed) if changed.change == Change::Removed);
    assert!(!world.events.iter().any(|(_, _, event)| removed(event)), "no binding has ended");
}

#[test]
fn an_address_that_changes_takes_the_place_of_the_old_one() {
    const OTHER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 8);
    for form in FORMS {
        let mut world = world(mobile(form), home());
        world.extra = vec![(OTHER, IF_GSM)];
        world.switch(IF_WLAN);
        world.run_until(at(3_000));
        world.input(Input::AddressChanged { interface: IF_GSM, address: Some(own(OTHER)) });
        world.run_for(Duration::from_secs(3));
        assert_eq!(paths(&world), [BOTH[0], (1, OTHER, false)]);
        assert_eq!(world.exits().len(), 2);
    }
}

#[test]
fn a_home_agent_that_does_not_disperse_gets_one_address_only() {
    for form in FORMS {
        for home in [home_config(), HomeAgentConfig { max_bindings_per_node: 1, ..home() }] {
            let numbers = home.multipath;
            let mut world = world(mobile(form), home);
            world.switch(IF_WLAN);
            world.run_until(at(20_000));
            assert_eq!((world.exits(), world.mobile.active()), (vec![WLAN], Some(IF_WLAN)));
            assert_eq!(paths(&world), if numbers { vec![BOTH[0]] } else { Vec::new() });
            let sent = requests(&world).count();
            world.run_until(at(200_000));
            assert_eq!(requests(&world).count(), sent, "it does not keep asking");
        }
    }
}

#[test]
fn a_relay_s_address_is_a_path_from_the_alliance_to_its_end() {
    for form in FORMS {
        let mut world = world(client(form), home());
        world.switch(IF_WLAN);
        world.run_until(at(3_000));
        assert_eq!(paths(&world), BOTH);
        assert!(world.mobile.switch_to(world.now, IF_RELAY, Notice::None).is_err());
        world.link(IF_RELAY, true);
        world.input(Input::AddressChanged { interface: IF_RELAY, address: Some(own(RELAY)) });
        world.run_for(Duration::from_secs(3));
        assert_eq!(paths(&world), [BOTH[0], BOTH[1], (2, RELAY, true)]);
        let (by, request) = requests(&world).last().unwrap();
        let Message::Request(request) = request else { unreachable!() };
        assert_eq!((by.interface, by.source, request.care_of_address), (Some(IF_WLAN), WLAN, RELAY));
        assert_eq!(request.flags.contains(RequestFlags::RELAYED), form == MultipathForm::Shake);
        assert!(!request.flags.contains(RequestFlags::DECAPSULATION_BY_MOBILE_NODE));
        let path = world.mobile.paths().find(|path| path.relayed).unwrap();
        assert_eq!((path.interface, path.home_agent, path.via), (IF_RELAY, HA, None));
        world.run_until(at(2_000_000));
        assert_eq!(paths(&world).len(), 3, "it is renewed");
        // Whatever becomes of the interface in use, its registration goes by the one that is.
        world.switch(IF_GSM);
        world.run_for(Duration::from_secs(3));
        assert_eq!(paths(&world).len(), 3);
        world.link(IF_RELAY, false);
        world.run_for(Duration::from_secs(3));
        assert_eq!(paths(&world), BOTH);
    }
}

#[test]
fn paths_survive_a_restart_of_the_home_agent() {
    let mut world = world(client(MultipathForm::Rfc7629), home());
    world.switch(IF_WLAN);
    world.link(IF_RELAY, true);
    world.input(Input::AddressChanged { interface: IF_RELAY, address: Some(own(RELAY)) });
    world.run_until(at(10_000));
    let before = paths(&world);
    assert_eq!(before.len(), 3);
    let record = world.home.record(world.now, HOME).unwrap();
    let random = careof_base::RandomStream::new(8, 0, "home");
    world.home = HomeAgent::new(world.now, home(), random).unwrap();
    assert!(world.home.restore(world.now, &record));
    assert_eq!(paths(&world), before);
    let random = careof_base::RandomStream::new(9, 0, "home");
    let mut without = HomeAgent::new(world.now, home_config(), random).unwrap();
    assert!(without.restore(world.now, &record));
    assert!(!without.disperses(HOME), "it no longer disperses");
}

#[test]
fn a_path_beyond_those_that_there_are_is_none() {
    assert!(PathId::new(8).is_none());
    let mut config = mobile(MultipathForm::Shake);
    config.interfaces = (0..9).map(|id| InterfaceConfig::new(InterfaceId(id))).collect();
    let random = || careof_base::RandomStream::new(1, 0, "mobile");
    let error = MobileNode::new(at(0), config.clone(), random()).unwrap_err();
    assert!(error.to_string().contains("interfaces with multipath"), "{error}");
    config.interfaces.truncate(1);
    config.interfaces[0].relay = true;
    config.multipath = None;
    let error = MobileNode::new(at(0), config, random()).unwrap_err();
    assert!(error.to_string().contains("relay"), "{error}");
}
