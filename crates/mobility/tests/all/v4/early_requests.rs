//! Requests that are sent again sooner than RFC 5944 has it, and replies to those before the last.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::v4::*;
use careof_wire::mip4::{Lifetime, Message, PathReport, RegistrationRequest, ReplyCode};

use super::craft::reply;
use super::world::*;

fn world(mobile: MobileNodeConfig) -> World {
    World::with(mobile, home_config(), [foreign_config(0), foreign_config(1)])
}

fn is_udp(transmit: &Transmit) -> bool {
    matches!(transmit.payload, TransmitPayload::Udp { .. })
}

/// Loses the first `count` requests that the mobile node sends.
fn lose_requests(world: &mut World, count: usize) {
    let mut left = count;
    world.lose = Box::new(move |from, transmit| {
        let lost = from == Who::Mobile && is_udp(transmit) && left > 0;
        left -= usize::from(lost);
        lost
    });
}

fn requests(world: &World) -> Vec<RegistrationRequest> {
    let requests = world.messages(Who::Mobile).into_iter().filter_map(|(_, message, _)| match message {
        Message::Request(request) => Some(request),
        _ => None,
    });
    requests.collect()
}

/// When, and after how many requests, the last handover was registered, and what it measured.
fn registered(world: &World) -> (Instant, u32, Duration) {
    let (at, event) = world.handovers().filter(|(_, event)| event.name() == "registered").last().unwrap();
    let HandoverEvent::Registered { attempts, round_trip, .. } = event else { panic!("{event:?}") };
    (at, attempts, round_trip)
}

fn given(round_trip: Option<u64>) -> MobileNodeConfig {
    let mut config = mobile_config();
    config.interfaces[0].path.round_trip = round_trip.map(Duration::from_millis);
    config
}

#[test]
fn a_lost_request_costs_300_ms_at_a_round_trip_of_100() {
    for (known, lost, expected) in
        [(Some(100), 1, 400), (None, 1, 400), (Some(100), 2, 700), (Some(40), 1, 280), (Some(10), 2, 340)]
    {
        let mut world = world(given(known));
        world.delay = Duration::from_millis(50);
        lose_requests(&mut world, lost);
        world.switch(IF_WLAN);
        world.run_until(at(5_000));
        assert_eq!(registered(&world).0, at(expected), "{known:?} {lost}");
        assert_eq!(registered(&world).1, lost as u32 + 1);
    }
    // As RFC 5944 section 3.6.3 has it.
    let mut world = world(to_the_letter(mobile_config()));
    world.delay = Duration::from_millis(50);
    lose_requests(&mut world, 1);
    world.switch(IF_WLAN);
    world.run_until(at(5_000));
    assert_eq!(registered(&world).0, at(1_100));
}

#[test]
fn after_the_early_requests_it_goes_on_as_the_rfc_has_it_and_never_exceeds_its_average() {
    let mut world = world(given(Some(100)));
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.switch(IF_WLAN);
    world.run_until(at(40_000));
    let times = world.request_times();
    assert_eq!(times, [0, 300, 600, 1_600, 3_600, 7_600, 15_600, 31_600].map(at));
    for first in 0..times.len() {
        for last in first..times.len() {
            let span = times[last] - times[first];
            assert!((last - first) as f64 <= span.as_secs_f64() + 3.0, "{times:?}");
        }
    }
}

#[test]
fn what_was_learned_of_the_round_trip_says_when_the_next_request_is_due() {
    let mut world = World::new();
    world.delay = Duration::from_millis(20);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    // The interface itself, a full queue notwithstanding that the last registration met.
    world.command(MobileNode::deregister);
    world.run_until(at(5_000));
    world.delay = Duration::from_millis(400);
    world.switch(IF_WLAN);
    world.run_until(at(20_000));
    let before = world.request_times().len();
    world.delay = Duration::from_millis(20);
    world.command(MobileNode::deregister);
    world.run_until(at(30_000));
    world.lose = Box::new(|from, _| from == Who::Mobile);
    for (interface, begun) in [(IF_WLAN, 30_000), (IF_GSM, 60_000)] {
        world.switch(interface);
        world.run_until(at(begun + 200));
        let times = world.request_times();
        // Another interface's where nothing is known of this one.
        assert_eq!(times[times.len() - 2..], [at(begun), at(begun + 180)], "{interface:?}");
        world.run_until(at(60_000));
    }
    assert!(world.request_times().len() > before);
}

#[test]
fn a_path_that_is_slower_than_anybody_knew_costs_requests_and_nothing_else() {
    for (delay, sent) in [(200, 2), (400, 3), (1_000, 4)] {
        let mut world = World::new();
        world.delay = Duration::from_millis(delay);
        world.switch(IF_WLAN);
        world.run_until(at(20_000));
        // The reply to the first request counts, and tells the round trip.
        let (when, attempts, round_trip) = registered(&world);
        assert_eq!((when, round_trip), (at(2 * delay), Duration::from_millis(2 * delay)));
        assert_eq!(attempts, sent);
        assert_eq!(world.request_times().len(), sent as usize);
        assert_eq!(world.mobile.path(IF_WLAN).round_trip, Some(round_trip));
        assert_eq!((world.exits(), world.denials()), (vec![WLAN], vec![]));
        // The replies that were not needed are counted, and change nothing.
        assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedReply), u64::from(sent) - 1);
        assert_eq!(world.phases(), ["initiated", "registered", "terminated"]);
    }
}

#[test]
fn a_lifetime_counts_from_the_request_that_was_answered() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::from_secs(20);
    let mut world = world(config);
    world.delay = Duration::from_millis(400);
    world.switch(IF_WLAN);
    world.run_until(at(2_000));
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.run_until(at(19_999));
    assert!(world.mobile.is_registered());
    world.run_until(at(20_000));
    assert!(!world.mobile.is_registered());
}

#[test]
fn early_requests_are_no_attempts() {
    for (early, attempts, given_up) in [(0, 1, 1_000), (2, 1, 1_600), (0, 2, 3_000), (2, 2, 3_600)] {
        let mut config = mobile_config();
        config.retransmission =
            RetransmissionConfig { attempts: Some(attempts), early, ..config.retransmission };
        let mut world = world(config);
        world.delay = Duration::from_millis(50);
        world.switch(IF_GSM);
        world.run_until(at(20_000));
        let begun = world.now;
        world.lose = Box::new(|_, transmit| transmit.source == WLAN);
        world.switch(IF_WLAN);
        world.run_for(Duration::from_secs(20));
        let (when, _) = world.handovers().find(|(_, event)| event.name() == "failed").unwrap();
        assert_eq!(when - begun, Duration::from_millis(given_up));
    }
}

#[test]
fn the_renewal_of_a_binding_in_use_is_in_no_haste() {
    let mut config = mobile_config();
    config.lifetime = Lifetime::from_secs(100);
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.run_until(at(80_000));
    assert_eq!(world.request_times()[1..], [75_000, 76_000, 78_000].map(at));
}

#[test]
fn a_link_that_is_back_is_registered_at_once_and_in_haste() {
    let mut config = given(Some(100));
    config.report_paths = true;
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    // A registration that has waited long when the link goes.
    world.lose = Box::new(|from, _| from == Who::Mobile);
    world.switch(IF_GSM);
    world.run_until(at(9_000));
    world.link(IF_GSM, false);
    world.run_until(at(10_000));
    let before = world.request_times().len();
    world.link(IF_GSM, true);
    world.run_until(at(10_500));
    assert_eq!(world.request_times()[before..], [at(10_000), at(10_120), at(10_240)]);
}

#[test]
fn what_is_registered_next_need_not_wait_for_early_requests() {
    let mut world = world(given(Some(50)));
    world.lose = Box::new(|_, transmit| transmit.source == WLAN);
    world.switch(IF_WLAN);
    world.run_until(at(450));
    assert_eq!(world.request_times(), [0, 200, 400].map(at));
    world.switch(IF_GSM);
    world.run_until(at(500));
    assert_eq!((world.exits(), world.request_times().len()), (vec![GSM], 4));
}

#[test]
fn a_denial_of_an_earlier_request_does_no_harm() {
    // What a home agent says of a request that another has overtaken (133), and what anybody can say (66), is of the past.
    for code in [ReplyCode::HomeIdentificationMismatch, ReplyCode::ForeignInsufficientResources] {
        let mut world = World::new();
        world.lose = Box::new(|_, transmit| is_udp(transmit));
        world.switch(IF_WLAN);
        world.run_until(at(350));
        let sent = requests(&world);
        assert_eq!(sent.len(), 2);
        let deny = super::craft::udp(HA, WLAN, 64, reply(&sent[0], code));
        world.inject(Who::Mobile, IF_WLAN, deny);
        assert_eq!(world.denials(), []);
        assert_eq!(world.mobile.counters().dropped(DropReason::IdentificationMismatch), 1);
        // The answer to either counts still.
        for which in [0, 1] {
            let accept = super::craft::udp(HA, WLAN, 64, reply(&sent[which], ReplyCode::Accepted));
            world.inject(Who::Mobile, IF_WLAN, accept);
            assert!(world.mobile.is_registered());
        }
        assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedReply), 1);
    }
    // One that the home agent has signed speaks of the later request, too.
    let mut world = World::new();
    world.lose = Box::new(|_, transmit| is_udp(transmit));
    world.switch(IF_WLAN);
    world.run_until(at(350));
    let refuse = reply(&requests(&world)[0], ReplyCode::HomeAdministrativelyProhibited);
    world.inject(Who::Mobile, IF_WLAN, super::craft::udp(HA, WLAN, 64, refuse));
    assert_eq!(world.denials(), [ReplyCode::HomeAdministrativelyProhibited]);
}

#[test]
fn to_the_letter_only_the_reply_to_the_last_request_counts() {
    let mut world = world(to_the_letter(mobile_config()));
    world.lose = Box::new(|_, transmit| is_udp(transmit));
    world.switch(IF_WLAN);
    world.run_until(at(1_100));
    let sent = requests(&world);
    for (which, is_registered) in [(0, false), (1, true)] {
        let accept = super::craft::udp(HA, WLAN, 64, reply(&sent[which], ReplyCode::Accepted));
        world.inject(Who::Mobile, IF_WLAN, accept);
        assert_eq!(world.mobile.is_registered(), is_registered);
    }
}

#[test]
fn a_reply_to_a_request_from_before_an_interruption_does_not_count() {
    let mut config = mobile_config();
    config.report_paths = true;
    let mut world = world(config);
    world.lose = Box::new(|_, transmit| is_udp(transmit));
    world.switch(IF_WLAN);
    world.run_until(at(350));
    let sent = requests(&world);
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    let accept = super::craft::udp(HA, WLAN, 64, reply(&sent[1], ReplyCode::Accepted));
    world.inject(Who::Mobile, IF_WLAN, accept);
    assert!(!world.mobile.is_registered());
    let again = requests(&world);
    assert_eq!((again.len(), again[2].path_report().unwrap().repeated_for), (3, Duration::ZERO));
}

#[test]
fn a_wrong_clock_is_put_right_on_a_slow_path_too() {
    let mut config = mobile_config();
    config.clock = clock().behind_by(Duration::from_secs(86_400));
    let mut world = world(config);
    world.delay = Duration::from_millis(250);
    world.switch(IF_WLAN);
    world.run_until(at(10_000));
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.denials(), [ReplyCode::HomeIdentificationMismatch]);
}

#[test]
fn with_nonces_the_second_copy_does_no_harm() {
    let nonces = SecurityAssociation::new(
        careof_wire::mip4::Spi(256),
        careof_wire::mip4::Algorithm::HmacMd5,
        KEY.to_vec(),
        ReplayProtection::Nonces,
    );
    let nonces = nonces.unwrap();
    let mobile = MobileNodeConfig { security: nonces.clone(), ..mobile_config() };
    let home = HomeAgentConfig { mobile_nodes: vec![ServedMobileNode::new(HOME, nonces)], ..home_config() };
    let mut world = World::with(mobile, home, [foreign_config(0), foreign_config(1)]);
    world.delay = Duration::from_millis(200);
    for (round, interface) in [IF_WLAN, IF_GSM, IF_WLAN, IF_GSM].into_iter().enumerate() {
        lose_requests(&mut world, round);
        world.switch(interface);
        world.run_for(Duration::from_secs(10));
        assert_eq!(world.mobile.active(), Some(interface), "{round}");
        assert_eq!(world.exits(), [[WLAN, GSM][round % 2]]);
    }
    // The first has to ask for a nonce.
    assert_eq!(world.denials(), [ReplyCode::HomeIdentificationMismatch]);
    assert_eq!(world.home.counters().denials_suppressed, 0);
    // Of copies nobody knows which was answered, so they tell no round trip that is shorter than the way is.
    for interface in [IF_WLAN, IF_GSM] {
        let known = world.mobile.path(interface).round_trip;
        assert!(known.is_none_or(|known| known == Duration::from_millis(400)), "{known:?}");
    }
}

/// What the home agent, or a foreign agent, told of the old path.
fn told(world: &World, who: Who) -> Vec<Option<bool>> {
    let lost = |path: Option<PathReport>| path.and_then(|report| report.old_path_lost);
    let events = world.events.iter().filter(|(_, from, _)| *from == who);
    let told = events.filter_map(|(_, _, event)| match event {
        Event::Binding(change) if change.change != Change::Removed => Some(lost(change.path)),
        Event::Visitor(change) if change.change != Change::Removed => Some(lost(change.path)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_loss_that_several_requests_report_is_told_once() {
    let mut config = mobile_config();
    config.report_paths = true;
    let mut world = world(config);
    world.delay = Duration::from_millis(5);
    world.switch(IF_WLAN);
    world.run_until(at(5_000));
    world.delay = Duration::from_millis(400);
    // The early requests are needless, and arrive all the same.
    for lost in [0, 1] {
        let before = told(&world, Who::Home).len();
        lose_requests(&mut world, lost);
        world.link(IF_WLAN, false);
        world.link(IF_WLAN, true);
        world.run_for(Duration::from_secs(20));
        let told = told(&world, Who::Home);
        assert_eq!(told[before..], [[Some(true), Some(false), Some(false)].as_slice(); 2][lost][..3 - lost]);
    }
    // Interrupted again while they are under way: that is another loss.
    let before = told(&world, Who::Home).len();
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    world.run_for(Duration::from_millis(200));
    world.link(IF_WLAN, false);
    world.link(IF_WLAN, true);
    world.run_for(Duration::from_secs(20));
    let told = told(&world, Who::Home);
    assert_eq!(told[before..].iter().filter(|lost| **lost == Some(true)).count(), 2, "{told:?}");
}

#[test]
fn a_foreign_agent_relays_all_of_them_and_tells_a_loss_once() {
    let mut config = mobile_config();
    config.report_paths = true;
    config.interfaces[2].path.round_trip = Some(Duration::from_millis(20));
    let mut world = world(config);
    world.switch(IF_CELL);
    world.run_until(at(5_000));
    world.delay = Duration::from_millis(150);
    world.link(IF_CELL, false);
    world.link(IF_CELL, true);
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.exits(), [FA[0]]);
    for who in [Who::Home, Who::Foreign(0)] {
        let told = told(&world, who);
        assert!(told.len() >= 3, "{who:?} {told:?}");
        assert_eq!(told.iter().filter(|lost| **lost == Some(true)).count(), 1, "{who:?} {told:?}");
    }
    assert_eq!((world.foreign[0].pending_requests(), world.denials()), (0, vec![]));
}
