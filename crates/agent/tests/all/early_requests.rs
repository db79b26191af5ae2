//! A registration request is lost between real hosts.

use std::time::Duration;

use crate::support::*;
use careof_agent::Hooks;
use careof_mobility::v4::{Event, HandoverEvent, Notice, RegistrationStep, RetransmissionConfig};

/// A mobile node for which the time between requests that the RFC has would be beyond all patience.
fn only_early(round_trip: Duration) -> careof_agent::MobileSetup {
    let mut setup = mobile_setup();
    let hour = Duration::from_secs(3600);
    setup.config.retransmission =
        RetransmissionConfig { minimum: hour, maximum: hour, ..setup.config.retransmission };
    for interface in &mut setup.config.interfaces {
        interface.path.round_trip = Some(round_trip);
    }
    setup
}

fn requests_sent(running: &mut Running) -> usize {
    running.news();
    let is_sent = |event: &Event| match event {
        Event::Registration(event) => matches!(event.step, RegistrationStep::RequestSent { .. }),
        _ => false,
    };
    running.told.iter().filter(|(_, event)| is_sent(event)).count()
}

fn wait_sent(running: &mut Running, count: usize) {
    let clock = careof_lab::Clock::start();
    while requests_sent(running) < count {
        assert!(clock.now().since_start() < PATIENCE, "no request {count}");
        sleep(Duration::from_millis(1));
    }
}

/// How many requests the last handover took.
fn attempts(running: &mut Running) -> u32 {
    running.news();
    let attempts = |event: &Event| match event {
        Event::Handover(HandoverEvent::Registered { attempts, .. }) => Some(*attempts),
        _ => None,
    };
    running.told.iter().rev().find_map(|(_, event)| attempts(event)).unwrap()
}

#[test]
fn a_lost_request_is_made_good_by_an_early_one() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    // The next request goes after 4.1 s: the link is mended by then.
    let mut mobile = world.mobile_node(only_early(Duration::from_secs(2)));
    world.cut(world.wlan);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    wait_sent(&mut mobile, 1);
    assert!(home.status().bindings.is_empty());
    world.mend(world.wlan);
    mobile.wait_registered("wlan0");
    let attempts = attempts(&mut mobile);
    assert!((2..=3).contains(&attempts), "{attempts}");
    assert_eq!(home.status().bindings[0].care_of, WLAN);
}

#[test]
fn requests_that_were_sent_early_in_vain_do_no_harm() {
    let Some(realm) = realm_or_skip() else { return };
    let link = |millis| careof_link::Config {
        delay: Duration::from_millis(millis),
        ..careof_link::Config::default()
    };
    let world = World::with(realm, &link(1_500), &link(1));
    let home = world.home_agent(home_setup(), Hooks::default());
    // Twice 1 ms, it is said, and it is 3 s: all early requests have gone when the answer to the first comes, and no other one
    // will be answered within reason.
    let mut mobile = world.mobile_node(only_early(Duration::from_millis(1)));
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    assert_eq!(attempts(&mut mobile), 3);
    home.wait_until("asked three times", |status| status.counters["registrations-accepted"] == 3);
    mobile.wait_until("answered three times", |status| {
        status.counters["dropped-unexpected-reply"] == 2 && status.counters["registrations-accepted"] == 1
    });
    assert_eq!(home.status().bindings.len(), 1);
}
