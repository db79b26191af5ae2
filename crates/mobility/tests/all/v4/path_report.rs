//! What a mobile node tells of its paths when it registers, and who believes it.

use std::time::Duration;

use careof_base::DataRate;
use careof_mobility::v4::*;
use careof_wire::SeqNumber;
use careof_wire::mip4::{
    Extension, Lifetime, Message, PathReport, ReceivedData, ReceivedFlow, RegistrationRequest,
};

use super::craft::{Craft, udp};
use super::world::*;

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

fn reporting() -> MobileNodeConfig {
    let mut config = mobile_config();
    config.report_paths = true;
    config.interfaces[0].path = WLAN_PATH;
    config.interfaces[1].path = GSM_PATH;
    config
}

fn world(mobile: MobileNodeConfig) -> World {
    World::with(mobile, home_config(), [foreign_config(0), foreign_config(1)])
}

fn requests(world: &World) -> Vec<RegistrationRequest> {
    let requests = world.messages(Who::Mobile).into_iter().filter_map(|(_, message, _)| match message {
        Message::Request(request) => Some(request),
        _ => None,
    });
    requests.collect()
}

/// What the home agent was told, as it tells its owner.
fn told(world: &World) -> Vec<(Change, Option<PathReport>)> {
    let events = world.events.iter().filter(|(_, who, _)| *who == Who::Home);
    let bindings = events.filter_map(|(_, _, event)| match event {
        Event::Binding(change) => Some((change.change, change.path)),
        _ => None,
    });
    bindings.collect()
}

/// What the last registration said of the old path.
fn old_path_lost(world: &World) -> Option<bool> {
    let (change, report) = *told(world).last().unwrap();
    assert!(matches!(change, Change::Created | Change::Updated), "{change:?}");
    report.expect("a report").old_path_lost
}

#[test]
fn without_the_owners_wish_no_request_says_anything_of_paths() {
    let mut config = reporting();
    config.report_paths = false;
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    world.run_until(at(2_000));
    assert_eq!(requests(&world).len(), 1, "nor is there a request more");
    world.switch(IF_GSM);
    world.run_until(at(4_000));
    for request in requests(&world) {
        assert_eq!(request.extensions.iter().map(Extension::kind).collect::<Vec<_>>(), [32]);
    }
    assert!(told(&world).iter().all(|(_, report)| report.is_none()));
}

#[test]
fn the_home_agent_hears_of_the_new_path_and_that_the_old_one_still_works() {
    let mut world = world(reporting());
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    let first = PathReport {
        downlink: WLAN_PATH.downlink,
        uplink: WLAN_PATH.uplink,
        round_trip: None,
        old_path_lost: None,
        repeated_for: Duration::ZERO,
    };
    assert_eq!(told(&world), [(Change::Created, Some(first))], "there was no old path");
    assert_eq!(world.home.bindings().next().unwrap().path, Some(first));

    world.switch(IF_GSM);
    world.run_until(at(2_000));
    let second = PathReport {
        downlink: GSM_PATH.downlink,
        uplink: None,
        round_trip: GSM_PATH.round_trip,
        old_path_lost: Some(false),
        repeated_for: Duration::ZERO,
    };
    assert_eq!(told(&world)[1..], [(Change::Removed, None), (Change::Created, Some(second))]);
    assert_eq!(PathProperties::from(second), GSM_PATH);
    for request in requests(&world) {
        assert_eq!(request.extensions.iter().map(Extension::kind).collect::<Vec<_>>(), [134, 32]);
    }
}

#[test]
fn a_handover_that_breaks_before_it_makes_says_that_the_old_path_is_lost() {
    let mut world = world(reporting());
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_WLAN, false);
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    assert_eq!(old_path_lost(&world), Some(true));
    // Back by a link that was lost a while ago, which says nothing of the one that is left now.
    world.link(IF_WLAN, true);
    world.run_until(at(3_000));
    world.switch(IF_WLAN);
    world.run_until(at(4_000));
    assert_eq!((world.exits(), old_path_lost(&world)), (vec![WLAN], Some(false)));
}

#[test]
fn after_an_outage_the_same_care_of_address_is_registered_again() {
    let mut config = reporting();
    config.lifetime = Lifetime::from_secs(40);
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_WLAN, false);
    world.run_until(at(3_000));
    world.link(IF_WLAN, true);
    world.run_until(at(3_010));
    let (change, report) = *told(&world).last().unwrap();
    assert_eq!((change, world.exits()), (Change::Updated, vec![WLAN]));
    let report = report.unwrap();
    assert_eq!(report.old_path_lost, Some(true));
    assert_eq!(report.round_trip, Some(Duration::from_millis(10)), "as the first registration measured it");
    assert_eq!(world.phases(), ["initiated", "registered", "terminated", "link-down", "link-up"]);
    // The next renewal has nothing to report.
    world.run_until(at(39_000));
    assert_eq!((told(&world).len(), old_path_lost(&world)), (3, Some(false)));
}

#[test]
fn an_outage_while_a_request_is_under_way_is_told_in_another() {
    let mut world = world(to_the_letter(reporting()));
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.delay = Duration::from_millis(100);
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    world.run_for(Duration::from_millis(150));
    assert_eq!(old_path_lost(&world), Some(true));
    // Its reply is on its way, and does not speak of this.
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    world.run_for(Duration::from_secs(3));
    let lost = told(&world).into_iter().map(|(_, report)| report.unwrap().old_path_lost);
    assert_eq!(lost.collect::<Vec<_>>(), [None, Some(true), Some(true)]);
    assert!(world.mobile.is_registered());
}

#[test]
fn what_nobody_watches_is_not_said_to_work() {
    // No link layer that tells, and no agent that is heard.
    let mut config = reporting();
    config.movement = MovementConfig { link_layer: false, ..config.movement };
    let mut unwatched = world(config);
    unwatched.switch(IF_WLAN);
    unwatched.run_until(at(1_000));
    unwatched.switch(IF_GSM);
    unwatched.run_until(at(2_000));
    assert_eq!((unwatched.exits(), old_path_lost(&unwatched)), (vec![GSM], None));

    // An interface that is up and carries nothing.
    let mut config = reporting();
    config.selection = Selection::Preferred { hold: Duration::from_secs(5) };
    config.probe = Some(Duration::from_secs(5));
    config.retransmission.attempts = Some(3);
    let mut silent = world(config);
    silent.run_until(at(3_000));
    assert_eq!(silent.exits(), [WLAN]);
    silent.lose = Box::new(|_, transmit| transmit.source == WLAN || transmit.destination == WLAN);
    silent.run_until(at(30_000));
    assert_eq!((silent.exits(), old_path_lost(&silent)), (vec![GSM], None));
}

#[test]
fn a_foreign_agent_relays_the_report_untouched_and_reads_it() {
    let mut world = world(reporting());
    world.switch(IF_CELL);
    world.run_until(at(3_000));
    assert_eq!(world.exits(), [FA[0]]);
    let from_mobile = world.messages(Who::Mobile);
    let relayed = world.messages(Who::Foreign(0));
    let (_, _, sent) =
        from_mobile.iter().find(|(_, message, _)| matches!(message, Message::Request(_))).unwrap();
    let (_, _, passed) =
        relayed.iter().find(|(_, message, _)| matches!(message, Message::Request(_))).unwrap();
    assert_eq!(sent.payload.bytes(), passed.payload.bytes());

    // The next cell: whatever is on its way to the old agent does not follow.
    world.cells = vec![1];
    world.run_until(at(20_000));
    assert_eq!((world.exits(), old_path_lost(&world)), (vec![FA[1]], Some(true)));
    let of_visitor = |which| {
        let events = world.events.iter().filter(move |(_, who, _)| *who == Who::Foreign(which));
        let mut visitors = events.filter_map(|(_, _, event)| match event {
            Event::Visitor(change) => Some((change.change, change.path)),
            _ => None,
        });
        visitors.next_back()
    };
    assert_eq!(of_visitor(1), told(&world).last().copied());
    assert_eq!(world.foreign[1].visitor(HOME).unwrap().path, told(&world).last().unwrap().1);
    assert_eq!(of_visitor(0).map(|(_, report)| report.unwrap().old_path_lost), Some(None));
}

#[test]
fn coming_home_is_told_with_the_bindings_that_end() {
    let mut world = world(reporting());
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_WLAN, false);
    world.link(IF_HOME, true);
    world.switch(IF_HOME);
    world.run_until(at(2_000));
    assert!(world.mobile.is_at_home());
    let (change, report) = *told(&world).last().unwrap();
    assert_eq!((change, report.unwrap().old_path_lost), (Change::Removed, Some(true)));
}

#[test]
fn a_report_that_the_authentication_does_not_cover_is_not_believed() {
    let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
    let mut world = World::new();
    let mut behind = Craft::new(world.now).transmit();
    let TransmitPayload::Udp { bytes, .. } = &mut behind.payload else { panic!() };
    report.extension().emit(bytes);
    world.inject(Who::Home, UPSTREAM, behind);
    assert_eq!(told(&world), [(Change::Created, None)]);

    // Put in before it on the way, it breaks it.
    world.run_until(at(1_000));
    let good = Craft::new(world.now);
    let signature = good.bytes()[RegistrationRequest::FIXED_LEN..].to_vec();
    let with_report = good.with(|craft| craft.request.extensions.push(report.extension()));
    let mut forged = Message::Request(with_report.request.clone()).emit();
    forged.extend(signature);
    world.inject(Who::Home, UPSTREAM, udp(WLAN, HA, 64, forged));
    assert_eq!(told(&world).len(), 1);

    // Signed by the mobile node it counts.
    world.inject(Who::Home, UPSTREAM, with_report.transmit());
    assert_eq!(told(&world)[1..], [(Change::Updated, Some(report))]);
}

#[test]
fn only_a_request_that_says_that_a_path_is_lost_tells_what_was_received() {
    let flow = ReceivedFlow {
        peer: "198.51.100.7".parse().unwrap(),
        peer_port: 443,
        mobile_port: 50_000,
        ack: SeqNumber(77),
        echo: Some(5),
    };
    let received: ReceivedData = [flow].into_iter().collect();
    let mut world = world(reporting());
    world.mobile.set_received_data(received);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    assert!(requests(&world).iter().all(|request| request.received_data().is_empty()));
    world.link(IF_GSM, false);
    world.switch(IF_WLAN);
    world.run_until(at(3_000));
    assert_eq!(requests(&world).last().unwrap().received_data(), received);
    let told = world.events.iter().filter_map(|(_, who, event)| match event {
        Event::Binding(change) if *who == Who::Home => Some((change.change, change.received)),
        _ => None,
    });
    let told: Vec<_> = told.filter(|(_, received)| !received.is_empty()).collect();
    assert_eq!(told, [(Change::Created, received)]);
}
