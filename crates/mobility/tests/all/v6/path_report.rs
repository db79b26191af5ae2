//! What a mobile node tells of its paths when it registers, and what the home agent makes of it.

use std::net::{IpAddr, Ipv6Addr};

use careof_base::{DataRate, Duration, Instant};
use careof_mobility::v6::*;
use careof_mobility::{Change, PathProperties};
use careof_wire::SeqNumber;
use careof_wire::mip6::{
    BindingUpdate, Message, MobilityOption, PathReport, ReceivedData, ReceivedFlow, SequenceNumber, ToldPath,
};

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);
const WLAN_PATH: PathProperties = PathProperties {
    downlink: Some(DataRate::from_megabits_per_second(11)),
    uplink: Some(DataRate::from_megabits_per_second(2)),
    round_trip: None,
};
const GSM_PATH: PathProperties = PathProperties {
    downlink: Some(DataRate::from_bits_per_second(9_600)),
    uplink: None,
    round_trip: Some(Duration::from_millis(700)),
};

fn reporting(security: SecurityAssociation) -> MobileNodeConfig {
    let mut config = MobileNodeConfig { report_paths: true, route_optimization: None, ..node(security) };
    config.interfaces[0].path = WLAN_PATH;
    config.interfaces[1].path = GSM_PATH;
    config
}

/// A node that is registered through one of its interfaces, and has a link on the other.
fn registered(node: MobileNodeConfig) -> World {
    let home = HomeAgentConfig { duplicate_address_detection: None, ..config(node.security.clone()) };
    let mut world = World::new(node, home);
    world.attach(WLAN, 2);
    world.attach(GSM, 3);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    world
}

fn updates(world: &World) -> Vec<BindingUpdate> {
    let update = |(_, addresses, message): &(Instant, Addresses, Message)| match message {
        Message::BindingUpdate(update) if addresses.destination == HA => Some(update.clone()),
        _ => None,
    };
    world.sent.iter().filter_map(update).collect()
}

/// What a home agent was told, as it tells its owner.
fn told(events: &[(Instant, Event)]) -> Vec<BindingChanged> {
    let change = |(_, event): &(Instant, Event)| match event {
        Event::Binding(change) => Some(*change),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

fn reports(world: &World) -> Vec<(Change, Option<PathReport>)> {
    told(&world.home_events).iter().map(|change| (change.change, change.path)).collect()
}

/// What the last registration said of the old path.
fn old_path_lost(world: &World) -> Option<bool> {
    let (change, report) = *reports(world).last().unwrap();
    assert!(matches!(change, Change::Created | Change::Updated), "{change:?}");
    report.expect("a report").old_path_lost
}

#[test]
fn without_the_owners_wish_no_update_says_anything_of_paths() {
    let mut world = registered(MobileNodeConfig { report_paths: false, ..reporting(timestamps()) });
    world.tell(Input::LinkDown { interface: WLAN });
    world.attach(WLAN, 2);
    world.run(SECOND);
    assert_eq!(updates(&world).len(), 1, "nor is there an update more");
    world.switch_to(GSM);
    world.run(SECOND);
    assert!(updates(&world).iter().all(|update| update.options.vendors().next().is_none()));
    assert!(reports(&world).iter().all(|(_, report)| report.is_none()));
}

#[test]
fn the_home_agent_hears_of_the_new_path_and_that_the_old_one_still_works() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = registered(reporting(security));
        let first =
            PathReport { downlink: WLAN_PATH.downlink, uplink: WLAN_PATH.uplink, ..PathReport::default() };
        assert_eq!(reports(&world), [(Change::Created, Some(first))], "there was no old path");
        assert_eq!(world.home.bindings().next().unwrap().path, Some(first));
        world.switch_to(GSM);
        world.run(SECOND);
        let second = PathReport {
            downlink: GSM_PATH.downlink,
            uplink: None,
            round_trip: GSM_PATH.round_trip,
            old_path_lost: Some(false),
            repeated_for: Duration::ZERO,
        };
        assert_eq!(reports(&world)[1..], [(Change::Removed, None), (Change::Created, Some(second))]);
        assert_eq!(PathProperties::from(second), GSM_PATH);
    }
}

#[test]
fn a_handover_that_breaks_before_it_makes_says_that_the_old_path_is_lost() {
    let mut world = registered(reporting(timestamps()));
    world.detach(WLAN);
    world.switch_to(GSM);
    world.run(SECOND);
    assert_eq!(old_path_lost(&world), Some(true));
    // Back by a link that was lost a while ago, which says nothing of the one that is left now.
    world.attach(WLAN, 2);
    world.run(SECOND);
    world.switch_to(WLAN);
    world.run(SECOND);
    assert_eq!((world.tunnelled_to(), old_path_lost(&world)), (vec![care_of(2)], Some(false)));
}

/// RFC 5568: access routers send on what was under way, so that nobody need repeat it.
#[test]
fn what_access_routers_send_on_is_not_reported_as_lost() {
    let mut world = registered(reporting(timestamps()));
    world.detach(WLAN);
    assert_eq!(world.mobile.delivery(CN), None);
    let previous = world.mobile.delivery_from_previous(CN).unwrap();
    let tunnel = Tunnel { entry: care_of(2), exit: HA };
    assert_eq!(previous.addresses, Addresses::new(HOME, CN).through(tunnel));
    world.mobile.set_forwarded(true);
    world.switch_to(GSM);
    world.run(SECOND);
    assert_eq!(old_path_lost(&world), Some(false));
    let now = world.mobile.delivery_from_previous(CN).unwrap();
    assert_eq!(now.addresses.tunnel, Some(Tunnel { entry: care_of(3), exit: HA }), "what is registered now");
    world.mobile.set_forwarded(false);
    world.detach(GSM);
    world.switch_to(WLAN);
    world.attach(WLAN, 2);
    world.run(SECOND);
    assert_eq!(old_path_lost(&world), Some(true));
}

#[test]
fn after_an_outage_the_same_care_of_address_is_registered_again() {
    let mut world = registered(reporting(timestamps()));
    world.detach(WLAN);
    world.run(SECOND * 2);
    world.attach(WLAN, 2);
    world.run(Duration::from_millis(30));
    let (change, report) = *reports(&world).last().unwrap();
    assert_eq!((change, world.tunnelled_to()), (Change::Updated, vec![care_of(2)]));
    let report = report.unwrap();
    assert_eq!(report.old_path_lost, Some(true));
    assert_eq!(report.round_trip, Some(Duration::from_millis(40)), "as the first registration measured it");
    // The next renewal has nothing to report.
    world.run(SECOND * 230);
    assert_eq!((reports(&world).len(), old_path_lost(&world)), (3, Some(false)));
}

#[test]
fn an_outage_while_an_update_is_under_way_is_told_in_another() {
    let mut world = registered(reporting(timestamps()));
    world.one_way = Duration::from_millis(100);
    let interrupt = |world: &mut World| {
        world.tell(Input::LinkDown { interface: WLAN });
        world.tell(Input::LinkUp { interface: WLAN });
    };
    interrupt(&mut world);
    world.run(Duration::from_millis(150));
    assert_eq!(old_path_lost(&world), Some(true));
    // Its acknowledgement is on its way, and does not speak of this.
    interrupt(&mut world);
    world.run(SECOND * 3);
    let lost = reports(&world).into_iter().map(|(_, report)| report.unwrap().old_path_lost);
    assert_eq!(lost.collect::<Vec<_>>(), [None, Some(true), Some(true)]);
    assert!(world.mobile.is_registered());
}

#[test]
fn what_nobody_watches_is_not_said_to_work() {
    let mut config = reporting(timestamps());
    config.movement.link_layer = false;
    let home = HomeAgentConfig {
        duplicate_address_detection: None,
        ..super::craft::config(config.security.clone())
    };
    let mut world = World::new(config, home);
    for (interface, number) in [(WLAN, 2), (GSM, 3)] {
        world.networks.insert(interface, number);
        let (address, prefix) = (care_of(number), prefix(number));
        let address = InterfaceAddress { address, prefix, valid_for: None };
        world.tell(Input::AddressAdded { interface, address });
    }
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.switch_to(GSM);
    world.run(SECOND);
    assert_eq!((world.tunnelled_to(), old_path_lost(&world)), (vec![care_of(3)], None));
}

/// The acknowledgement is lost, and the update sent again: the home agent has sent on already what the old path lost.
#[test]
fn a_repetition_of_an_update_tells_of_no_other_loss() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = registered(reporting(security));
        world.detach(WLAN);
        world.switch_to(GSM);
        world.run(Duration::from_millis(25));
        assert_eq!(old_path_lost(&world), Some(true));
        // What the home agent has answered gets lost.
        world.networks.remove(&GSM);
        world.run(Duration::from_millis(500));
        world.networks.insert(GSM, 3);
        world.run(SECOND * 2);
        let (change, report) = *reports(&world).last().unwrap();
        assert_eq!((change, report.unwrap().old_path_lost), (Change::Updated, Some(false)));
        assert!(report.unwrap().repeated_for >= SECOND);
        assert_eq!(world.home.bindings().next().unwrap().path.unwrap().old_path_lost, Some(true));
        assert_eq!(world.mobile.care_of(), Some(care_of(3)));
        // Another outage is another loss.
        world.detach(GSM);
        world.attach(GSM, 3);
        world.run(SECOND);
        assert_eq!(old_path_lost(&world), Some(true));
    }
}

#[test]
fn coming_home_is_told_with_the_bindings_that_end() {
    let mut world = registered(reporting(timestamps()));
    world.detach(WLAN);
    world.detach(GSM);
    world.attach(GSM, AT_HOME);
    world.switch_to(GSM);
    world.run(SECOND);
    assert!(world.mobile.is_at_home());
    let (change, report) = *reports(&world).last().unwrap();
    assert_eq!((change, report.unwrap().old_path_lost), (Change::Removed, Some(true)));
}

#[test]
fn a_report_that_the_authentication_does_not_cover_is_not_believed() {
    let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
    let option = ToldPath { report, first: SequenceNumber(2) }.option();
    let mut agent = Agent::serving(sequence_numbers());
    let of = |agent: &Agent| -> Vec<_> {
        let changes = agent.events.iter().filter_map(|event| match event {
            Event::Binding(change) => Some((change.change, change.path)),
            _ => None,
        });
        changes.collect()
    };
    agent.ask(&Update::new(1, care_of(2)));
    assert_eq!(of(&agent), [(Change::Created, None)]);

    // Put in on the way, it breaks it.
    let plain = Update::new(2, care_of(2));
    let (addresses, bytes) = plain.packet();
    let parsed = Message::parse(addresses.real_source(), addresses.real_destination(), &bytes);
    let Ok(Message::BindingUpdate(mut update)) = parsed else { panic!("no update") };
    let mut options: Vec<MobilityOption> = update.options.to_vec();
    options.insert(1, option.clone());
    update.options = options.into();
    let forged =
        Message::BindingUpdate(update).emit(addresses.real_source(), addresses.real_destination()).unwrap();
    agent.hand_in(&(addresses, forged));
    assert_eq!(of(&agent).len(), 1);

    // Signed by the mobile node it counts.
    agent.ask(&plain.with(option));
    assert_eq!(of(&agent)[1..], [(Change::Updated, Some(report))]);
}

#[test]
fn only_an_update_that_says_that_a_path_is_lost_tells_what_was_received() {
    let flow = ReceivedFlow {
        peer: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 9)),
        peer_port: 443,
        mobile_port: 50_000,
        ack: SeqNumber(77),
        echo: Some(5),
    };
    let received: ReceivedData = [flow].into_iter().collect();
    let mut world = registered(reporting(timestamps()));
    world.mobile.set_received_data(received);
    world.switch_to(GSM);
    world.run(SECOND);
    assert!(updates(&world).iter().all(|update| update.options.received_data().is_empty()));
    world.detach(GSM);
    world.switch_to(WLAN);
    world.run(SECOND);
    assert_eq!(updates(&world).last().unwrap().options.received_data(), received);
    let told = told(&world.home_events).into_iter().filter(|change| !change.received.is_empty());
    let told: Vec<_> = told.map(|change| (change.change, change.received)).collect();
    assert_eq!(told, [(Change::Created, received)]);
}
