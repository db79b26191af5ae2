//! Moving from one interface, or one agent, to another.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::v4::*;
use careof_wire::mip4::{Algorithm, Lifetime, Message, ReplyCode, Spi};

use super::world::*;

fn world(mobile: MobileNodeConfig) -> World {
    World::with(mobile, home_config(), [foreign_config(0), foreign_config(1)])
}

fn is_udp(transmit: &Transmit) -> bool {
    matches!(transmit.payload, TransmitPayload::Udp { .. })
}

fn last_handover(world: &World) -> HandoverEvent {
    world.handovers().last().unwrap().1
}

#[test]
fn make_before_break_uses_the_new_interface_only_when_its_registration_is_accepted() {
    let mut world = world(to_the_letter(mobile_config()));
    world.delay = Duration::from_millis(350);
    world.switch(IF_WLAN);
    world.run_until(at(5_000));
    world.events.clear();
    world.switch(IF_GSM);
    assert_eq!(
        last_handover(&world),
        HandoverEvent::Initiated {
            from: Some(IF_WLAN),
            to: IF_GSM,
            notice: Notice::Ahead(Duration::ZERO),
            reason: HandoverReason::Chosen,
            style: HandoverStyle::MakeBeforeBreak,
            old: PathProperties { round_trip: Some(Duration::from_millis(700)), ..PathProperties::default() },
            new: PathProperties::default(),
        }
    );
    let sends_by =
        |world: &World| world.mobile.delivery(CORRESPONDENT, None).map(|delivery| delivery.interface);
    world.run_until(at(5_349));
    assert_eq!((sends_by(&world), world.exits()), (Some(IF_WLAN), vec![WLAN]));
    world.run_until(at(5_350));
    assert_eq!((sends_by(&world), world.exits()), (Some(IF_WLAN), vec![GSM]), "the home agent knows first");
    assert!(world.mobile.listens_on(IF_WLAN) && world.mobile.listens_on(IF_GSM));
    world.run_until(at(5_699));
    assert_eq!(sends_by(&world), Some(IF_WLAN));
    world.run_until(at(5_700));
    assert_eq!(sends_by(&world), Some(IF_GSM));
    assert!(world.mobile.listens_on(IF_WLAN), "what is still on its way there is not lost");
    let (when, registered) = world.handovers().last().unwrap();
    assert_eq!(when, at(5_700));
    let HandoverEvent::Registered { from, to, care_of, attempts, latency, round_trip, .. } = registered
    else {
        panic!("{registered:?}");
    };
    assert_eq!((from, to, care_of, attempts), (Some(IF_WLAN), IF_GSM, Some(GSM), 1));
    assert_eq!((latency, round_trip), (Duration::from_millis(700), Duration::from_millis(700)));

    world.run_until(at(100_000));
    assert_eq!(world.phases(), ["initiated", "registered"], "until the owner says so");
    world.command(|node, now| node.release(now, IF_WLAN));
    assert!(!world.mobile.listens_on(IF_WLAN));
    assert_eq!(
        last_handover(&world),
        HandoverEvent::Terminated { from: Some(IF_WLAN), to: IF_GSM, duration: Duration::from_secs(95) }
    );
    // The order in which the node's own registration and its phases appear.
    let order =
        world.events.iter().filter(|(_, who, _)| *who == Who::Mobile).filter_map(|(_, _, e)| match e {
            Event::Handover(event) => Some(event.name()),
            Event::Registration(event) => Some(event.step.name()),
            Event::Binding(change) => Some(change.change.name()),
            _ => None,
        });
    let order: Vec<_> = order.into_iter().collect();
    assert_eq!(
        order,
        ["initiated", "request-sent", "accepted", "removed", "created", "registered", "terminated"]
    );
}

#[test]
fn the_old_interface_is_released_with_its_link_or_after_the_time_configured() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    world.link(IF_WLAN, false);
    assert_eq!(world.phases()[3..], ["initiated", "registered", "link-down", "terminated"]);

    let mut config = mobile_config();
    config.keep_old = Some(Duration::from_secs(3));
    let mut world = self::world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(10_000));
    let (when, event) = world.handovers().last().unwrap();
    assert_eq!((when, event.name()), (at(4_010), "terminated"));
}

#[test]
fn break_before_make_leaves_no_way_to_send_in_between() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.link(IF_GSM, false);
    world.link(IF_WLAN, false);
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None), None);
    world.switch(IF_GSM);
    let HandoverEvent::Initiated { style, .. } = last_handover(&world) else { panic!() };
    assert_eq!(style, HandoverStyle::BreakBeforeMake);
    world.run_until(at(3_000));
    assert_eq!(world.request_times().len(), 1, "nothing is sent into a link that is down");
    world.link(IF_GSM, true);
    world.run_until(at(3_010));
    assert_eq!(world.exits(), [GSM]);
    assert_eq!(
        world.phases()[3..],
        ["link-down", "link-down", "initiated", "link-up", "registered", "terminated"]
    );
}

#[test]
fn simultaneous_bindings_send_by_both_until_the_old_one_is_released() {
    let mut config = mobile_config();
    config.simultaneous = true;
    config.lifetime = Lifetime::from_secs(60);
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    assert_eq!(world.exits(), [WLAN, GSM]);
    world.run_until(at(200_000));
    let mut exits = world.exits();
    exits.sort();
    assert_eq!(exits, [WLAN, GSM], "both are renewed");
    world.command(|node, now| node.release(now, IF_WLAN));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.exits(), [GSM]);
    let Message::Request(request) = world.messages(Who::Mobile).pop().unwrap().1 else { panic!() };
    assert!(request.lifetime.is_zero() && request.care_of_address == WLAN);
    world.run_for(Duration::from_secs(200));
    assert_eq!(world.exits(), [GSM]);
}

#[test]
fn a_home_agent_without_simultaneous_bindings_says_so_and_the_node_believes_it() {
    let mut config = mobile_config();
    config.simultaneous = true;
    let home = HomeAgentConfig { max_bindings_per_node: 1, ..home_config() };
    let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    assert_eq!(world.exits(), [GSM]);
    let codes = world.messages(Who::Home).into_iter().map(|(_, message, _)| match message {
        Message::Reply(reply) => reply.code,
        other => panic!("{other:?}"),
    });
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [ReplyCode::Accepted, ReplyCode::AcceptedWithoutSimultaneousBindings]
    );
    world.command(|node, now| node.release(now, IF_WLAN));
    assert_eq!(world.request_times().len(), 2, "there is nothing to deregister");
}

#[test]
fn a_handover_nobody_answers_fails_and_the_old_path_is_registered_again() {
    let mut config = mobile_config();
    config.retransmission.attempts = Some(3);
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    // Requests reach the home agent, replies over GSM are lost.
    world.lose = Box::new(|from, transmit| from == Who::Home && transmit.destination == GSM);
    world.switch(IF_GSM);
    world.run_until(at(1_100));
    assert_eq!(world.exits(), [GSM], "the home agent has believed it");
    world.run_until(at(20_000));
    assert_eq!(
        world.handovers().find(|(_, event)| event.name() == "failed").map(|(_, event)| event),
        Some(HandoverEvent::Failed { from: Some(IF_WLAN), to: IF_GSM, reason: HandoverFailure::NoReply })
    );
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
    let sent = world.request_times().len();
    world.run_until(at(100_000));
    assert_eq!(world.request_times().len(), sent);
}

#[test]
fn a_denied_handover_fails_and_the_old_path_stays() {
    let mut foreign = foreign_config(0);
    foreign.admitted = Some(vec![]);
    let mut world = World::with(mobile_config(), home_config(), [foreign, foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(2_000));
    world.switch(IF_CELL);
    world.run_until(at(10_000));
    let reason = HandoverFailure::Denied(ReplyCode::ForeignAdministrativelyProhibited);
    assert_eq!(last_handover(&world), HandoverEvent::Failed { from: Some(IF_WLAN), to: IF_CELL, reason });
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
    assert_eq!(world.exits(), [WLAN]);
}

#[test]
fn with_nowhere_else_to_go_a_denied_node_keeps_trying_ever_more_slowly() {
    let mut foreign = foreign_config(0);
    foreign.admitted = Some(vec![]);
    let mut world = World::with(mobile_config(), home_config(), [foreign, foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(300_000));
    let denials = world.denials().len();
    assert!((9..=13).contains(&denials), "{denials}");
    let times = world.request_times();
    assert!(times.windows(2).skip(4).all(|pair| pair[1] - pair[0] >= Duration::from_secs(32)), "{times:?}");
    assert!(!world.mobile.is_registered());
}

#[test]
fn another_handover_supersedes_the_one_under_way() {
    let mut world = world(to_the_letter(mobile_config()));
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.delay = Duration::from_millis(100);
    world.switch(IF_GSM);
    world.run_until(at(1_050));
    world.switch(IF_WLAN);
    // A request is on its way to the home agent, so the way back has to be registered too.
    let HandoverEvent::Initiated { from, to, style, .. } = last_handover(&world) else {
        panic!("{:?}", last_handover(&world))
    };
    assert_eq!((from, to, style), (Some(IF_WLAN), IF_WLAN, HandoverStyle::MakeBeforeBreak));
    world.run_until(at(2_000));
    // The home agent has moved the binding and, after the next request, moved it back.
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
    assert_eq!(
        world.mobile.counters().dropped(DropReason::UnexpectedReply)
            + world.mobile.counters().dropped(DropReason::IdentificationMismatch),
        1
    );
    assert_eq!(world.phases()[3..], ["initiated", "failed", "initiated", "registered", "terminated"]);
}

#[test]
fn there_and_back_again_ends_the_first_handover() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    world.switch(IF_WLAN);
    world.run_until(at(3_000));
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.phases()[3..], ["initiated", "registered", "terminated", "initiated", "registered"]);
}

#[test]
fn switching_to_the_interface_in_use_does_nothing() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_WLAN);
    world.run_until(at(2_000));
    assert_eq!(world.phases(), ["initiated", "registered", "terminated"]);
    assert_eq!(world.request_times().len(), 1);
    let unknown = InterfaceId(77);
    assert_eq!(world.mobile.switch_to(at(2_000), unknown, Notice::None), Err(UnknownInterface(unknown)));
}

#[test]
fn a_new_address_on_the_interface_is_registered() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.input(Input::AddressChanged { interface: IF_WLAN, address: None });
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None), None);
    world.run_until(at(2_000));
    world.input(Input::AddressChanged { interface: IF_WLAN, address: Some(own(GSM)) });
    let Message::Request(request) = world.messages(Who::Mobile).pop().unwrap().1 else { panic!() };
    assert_eq!(request.care_of_address, GSM);
}

#[test]
fn with_simultaneous_bindings_an_address_that_changed_does_not_stay_behind() {
    let mut config = mobile_config();
    config.simultaneous = true;
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(5_000));
    assert_eq!(world.exits(), [WLAN, GSM]);
    let other = std::net::Ipv4Addr::new(192, 0, 2, 70);
    world.extra.push((other, IF_GSM));
    world.input(Input::AddressChanged { interface: IF_GSM, address: Some(own(other)) });
    world.run_until(at(10_000));
    // The move to another address is a handover as well, and with it the one before is over.
    assert_eq!(world.exits(), [other]);
}

#[test]
fn bindings_the_node_has_lost_sight_of_do_not_lock_it_out() {
    let mut config = mobile_config();
    config.simultaneous = true;
    let home = HomeAgentConfig { max_bindings_per_node: 2, ..home_config() };
    let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
    // The home agent has two bindings from before the node was started again.
    for last in [71, 72] {
        world.run_for(Duration::from_secs(1));
        let craft = super::craft::Craft::new(world.now).with(|c| {
            c.flag(careof_wire::mip4::RequestFlags::SIMULTANEOUS_BINDINGS);
            c.request.care_of_address = std::net::Ipv4Addr::new(192, 0, 2, last);
        });
        world.inject(Who::Home, UPSTREAM, craft.transmit());
    }
    assert_eq!(world.exits().len(), 2);
    world.run_for(Duration::from_secs(1));
    world.switch(IF_WLAN);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.exits(), [WLAN]);
    let craft = super::craft::Craft::new(world.now).with(|c| {
        c.flag(careof_wire::mip4::RequestFlags::SIMULTANEOUS_BINDINGS);
        c.request.care_of_address = std::net::Ipv4Addr::new(192, 0, 2, 71);
    });
    world.inject(Who::Home, UPSTREAM, craft.transmit());
    world.run_for(Duration::from_secs(1));
    world.switch(IF_GSM);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.denials(), [ReplyCode::HomeTooManySimultaneousBindings]);
    assert_eq!(world.exits(), [GSM]);
}

/// Flaps `interface` every 100 ms for `span`.
fn flap(world: &mut World, interface: InterfaceId, span: Duration) {
    for turn in 0..span.as_millis() / 100 {
        world.link(interface, turn % 2 == 1);
        world.run_for(Duration::from_millis(100));
    }
    world.link(interface, true);
}

#[test]
fn a_link_that_flaps_every_100_ms_wedges_nothing_and_floods_nobody() {
    for (interface, selection) in [
        (IF_WLAN, Selection::Manual),
        (IF_CELL, Selection::Manual),
        (IF_WLAN, Selection::Preferred { hold: Duration::from_secs(5) }),
    ] {
        let mut config = mobile_config();
        config.selection = selection;
        config.lifetime = Lifetime::from_secs(60);
        if interface == IF_CELL {
            config.interfaces.retain(|interface| interface.id != IF_HOME);
        }
        let mut world = world(config);
        world.delay = Duration::from_millis(40);
        world.switch(interface);
        world.run_until(at(5_000));
        assert!(world.mobile.is_registered());
        let before = (world.request_times().len(), world.sent.len());
        flap(&mut world, interface, Duration::from_secs(100));
        let requests = world.request_times().len() - before.0;
        assert!(requests <= 105, "{requests} requests in 100 s");
        let by_mobile = world.sent[before.1..].iter().filter(|(_, who, _)| *who == Who::Mobile).count();
        assert!(by_mobile <= 210, "{by_mobile} packets in 100 s");
        world.run_for(Duration::from_secs(40));
        assert!(world.mobile.is_registered(), "{interface:?} {selection:?}");
        assert_eq!(world.mobile.active(), Some(interface), "back on the best");
        assert!(!world.exits().is_empty());
        assert!(world.mobile.delivery(CORRESPONDENT, None).is_some());
    }
}

#[test]
fn a_link_may_flap_during_its_handover() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(2_000));
    world.delay = Duration::from_millis(350);
    world.switch(IF_GSM);
    flap(&mut world, IF_GSM, Duration::from_secs(30));
    world.run_for(Duration::from_secs(40));
    assert_eq!(world.exits(), [GSM]);
    assert_eq!(world.mobile.active(), Some(IF_GSM));
}

#[test]
fn the_preferred_interface_is_left_at_once_and_returned_to_after_the_hold_time() {
    let mut config = mobile_config();
    config.selection = Selection::Preferred { hold: Duration::from_secs(10) };
    let mut world = world(config);
    world.run_until(at(1_000));
    assert_eq!(world.mobile.active(), Some(IF_WLAN), "the best, without being told");
    world.link(IF_WLAN, false);
    world.run_until(at(1_100));
    assert_eq!((world.mobile.active(), world.exits()), (Some(IF_GSM), vec![GSM]));
    // Short returns do not count.
    for turn in 0..5u64 {
        world.run_until(at(5_000 + 5_000 * turn));
        world.link(IF_WLAN, true);
        world.run_for(Duration::from_secs(3));
        world.link(IF_WLAN, false);
    }
    assert_eq!(world.mobile.active(), Some(IF_GSM));
    let back = world.now + Duration::from_secs(1);
    world.run_until(back);
    world.link(IF_WLAN, true);
    world.run_until(back + Duration::from_millis(9_999));
    assert_eq!(world.mobile.active(), Some(IF_GSM));
    world.run_until(back + Duration::from_millis(10_100));
    assert_eq!((world.mobile.active(), world.exits()), (Some(IF_WLAN), vec![WLAN]));
}

/// Everything through the node's first interface is lost while its link stays up.
fn deaf(from: Who, transmit: &Transmit) -> bool {
    if from == Who::Mobile { transmit.interface == Some(IF_WLAN) } else { transmit.destination == WLAN }
}

#[test]
fn a_link_that_is_up_and_carries_nothing_is_left_and_returned_to_without_flapping() {
    let mut config = mobile_config();
    config.selection = Selection::Preferred { hold: Duration::from_secs(10) };
    config.probe = Some(Duration::from_secs(15));
    config.retransmission.attempts = Some(3);
    let mut world = world(config);
    world.run_until(at(20_000));
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
    world.lose = Box::new(deaf);
    // A probe after at most 15 s, and three requests: 1 + 2 + 4 s.
    world.run_for(Duration::from_secs(23));
    assert_eq!((world.mobile.active(), world.exits()), (Some(IF_GSM), vec![GSM]));
    world.events.clear();
    world.sent.clear();
    world.run_for(Duration::from_secs(600));
    assert_eq!(world.mobile.active(), Some(IF_GSM), "it is tried, and what works is used meanwhile");
    let tried = world.phases().iter().filter(|&&phase| phase == "initiated").count();
    assert!((3..=30).contains(&tried), "tried {tried} times in 600 s");
    // The first return ends the handover that left it.
    assert_eq!(world.phases().iter().filter(|&&phase| phase == "terminated").count(), 1);
    assert!(!world.phases().contains(&"registered"));
    world.lose = Box::new(|_, _| false);
    world.events.clear();
    world.run_for(Duration::from_secs(32 + 10 + 7));
    assert_eq!((world.mobile.active(), world.exits()), (Some(IF_WLAN), vec![WLAN]), "better again");
    world.run_for(Duration::from_secs(600));
    assert_eq!(world.phases().iter().filter(|&&phase| phase == "registered").count(), 1);
    check_phases(&world);
}

#[test]
fn without_another_path_a_silent_link_is_kept() {
    let mut config = mobile_config();
    config.selection = Selection::Preferred { hold: Duration::from_secs(10) };
    config.probe = Some(Duration::from_secs(15));
    config.interfaces.truncate(1);
    let mut world = world(config);
    world.run_until(at(5_000));
    world.lose = Box::new(deaf);
    world.run_for(Duration::from_secs(200));
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
    world.lose = Box::new(|_, _| false);
    world.run_for(Duration::from_secs(33));
    assert_eq!(world.exits(), [WLAN]);
    assert_eq!(world.phases(), ["initiated", "registered", "terminated"]);
}

#[test]
fn the_way_of_every_method_can_be_asked_for() {
    let mut config = mobile_config();
    config.reverse_tunnel = true;
    let mut world = world(config);
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    let by = |method| world.mobile.delivery_by(method, CORRESPONDENT).unwrap();
    assert_eq!(by(DeliveryMethod::RegularIp).source, WLAN);
    assert_eq!((by(DeliveryMethod::Triangle).source, by(DeliveryMethod::Triangle).tunnel), (HOME, None));
    assert_eq!(by(DeliveryMethod::ReverseTunnel).tunnel.map(|tunnel| tunnel.exit), Some(HA));
    let default = world.mobile.policy().default_method();
    assert_eq!(world.mobile.delivery(CORRESPONDENT, None), Some(by(default)));
}

#[test]
fn what_the_owner_chose_is_kept_as_long_as_it_works() {
    let mut config = mobile_config();
    config.selection = Selection::Preferred { hold: Duration::from_secs(1) };
    let mut world = world(config);
    world.run_until(at(1_000));
    world.switch(IF_GSM);
    world.run_until(at(60_000));
    assert_eq!(world.mobile.active(), Some(IF_GSM));
    world.link(IF_GSM, false);
    world.run_until(at(61_000));
    assert_eq!(world.mobile.active(), Some(IF_WLAN));
}

#[test]
fn two_hundred_random_handovers_end_where_they_should() {
    for seed in 0..8 {
        let mut random = careof_base::RandomStream::new(seed, 0, "moves");
        let replay = if seed < 4 { ReplayProtection::TIMESTAMPS } else { ReplayProtection::Nonces };
        let security = SecurityAssociation::new(Spi(300), Algorithm::HmacSha256, KEY, replay).unwrap();
        let mut config = mobile_config();
        config.simultaneous = seed % 2 == 0;
        config.lifetime = Lifetime::from_secs(30);
        config.security = security.clone();
        let mut home = home_config();
        home.mobile_nodes = vec![ServedMobileNode::new(HOME, security)];
        let mut world = World::with(config, home, [foreign_config(0), foreign_config(1)]);
        let mut losses = careof_base::RandomStream::new(seed, 0, "losses");
        world.lose = Box::new(move |_, transmit| is_udp(transmit) && losses.unit() < 0.2);
        let interfaces = [IF_WLAN, IF_GSM, IF_CELL];
        for _ in 0..200 {
            let interface = interfaces[random.below(3) as usize];
            match random.below(6) {
                0 => world.link(interface, false),
                1 => world.link(interface, true),
                2 => world.cells = vec![random.below(2) as usize],
                3 => world.command(|node, now| node.release(now, interface)),
                _ => world.switch(interface),
            }
            world.run_for(random.duration_up_to(Duration::from_secs(4)));
        }
        world.lose = Box::new(|_, _| false);
        for interface in interfaces {
            world.link(interface, true);
        }
        world.switch(IF_GSM);
        world.run_for(Duration::from_secs(50));
        world.command(|node, now| node.release(now, IF_WLAN));
        world.command(|node, now| node.release(now, IF_CELL));
        world.run_for(Duration::from_secs(50));
        assert_eq!(world.mobile.active(), Some(IF_GSM), "seed {seed}");
        assert_eq!(world.exits(), [GSM], "seed {seed}");
        check_phases(&world);
    }
}

/// Every `Initiated` is followed by exactly one `Registered` or `Failed`, and every `Registered` by at most
/// one `Terminated`.
fn check_phases(world: &World) {
    let mut open: Option<InterfaceId> = None;
    let mut unfinished = false;
    let mut last = Instant::ZERO;
    for (at, event) in world.handovers() {
        assert!(at >= last);
        last = at;
        match event {
            HandoverEvent::Initiated { to, .. } => {
                assert_eq!(open, None, "one at a time");
                open = Some(to);
            }
            HandoverEvent::Registered { to, .. } => {
                assert_eq!(open, Some(to));
                assert!(!unfinished, "the one before is over");
                (open, unfinished) = (None, true);
            }
            HandoverEvent::Failed { to, .. } => {
                assert_eq!(open, Some(to));
                open = None;
            }
            HandoverEvent::Terminated { .. } => {
                assert!(unfinished);
                unfinished = false;
            }
            HandoverEvent::LinkDown { .. }
            | HandoverEvent::LinkUp { .. }
            | HandoverEvent::PathSilent { .. }
            | HandoverEvent::PathAnswers { .. } => {}
        }
    }
}

/// A node that sends through its tunnel and has moved from one address of its own to another at 5 s.
fn moved_with_reverse_tunnel(late: Duration) -> World {
    let mut mobile = mobile_config();
    mobile.reverse_tunnel = true;
    let home = HomeAgentConfig { late_reverse_tunnel: late, ..home_config() };
    let mut world = World::with(mobile, home, [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(5_000));
    world.switch(IF_GSM);
    world.run_until(at(5_100));
    assert_eq!(world.exits(), [GSM]);
    world
}

#[test]
fn what_was_sent_by_the_old_path_is_taken_for_some_time() {
    let mut world = moved_with_reverse_tunnel(Duration::from_secs(5));
    assert!(world.home.accepts_reverse_tunnel(HOME, GSM));
    assert!(world.home.accepts_reverse_tunnel(HOME, WLAN));
    assert!(!world.home.accepts_reverse_tunnel(CORRESPONDENT, WLAN), "of this mobile node only");
    assert!(
        world.home.tunnels(HOME).iter().all(|tunnel| tunnel.exit == GSM),
        "nothing goes there any longer"
    );
    world.run_until(at(11_000));
    assert!(!world.home.accepts_reverse_tunnel(HOME, WLAN));
    assert!(world.home.accepts_reverse_tunnel(HOME, GSM));
}

#[test]
fn nothing_late_is_taken_where_that_is_not_wanted_or_the_operator_has_ended_the_bindings() {
    let world = moved_with_reverse_tunnel(Duration::ZERO);
    assert!(!world.home.accepts_reverse_tunnel(HOME, WLAN));
    let mut world = moved_with_reverse_tunnel(Duration::from_secs(5));
    world.home.drop_bindings(world.now, HOME);
    assert_eq!(world.home.reverse_tunnels(HOME).count(), 0);
}

#[test]
fn who_goes_to_and_fro_leaves_the_last_two_addresses_behind() {
    let mut world = moved_with_reverse_tunnel(Duration::from_secs(5));
    world.switch(IF_WLAN);
    world.run_until(at(5_300));
    let exits: Vec<_> = world.home.reverse_tunnels(HOME).map(|tunnel| tunnel.exit).collect();
    assert_eq!(exits, [WLAN, GSM]);
    world.run_until(at(12_000));
    let exits: Vec<_> = world.home.reverse_tunnels(HOME).map(|tunnel| tunnel.exit).collect();
    assert_eq!(exits, [WLAN]);
}

/// The reply to a renewal says nothing of a request that was sent after it through another interface, and cancelled.
#[test]
fn a_cancelled_handover_is_undone_although_an_older_request_is_answered_meanwhile() {
    for early in [mobile_config(), to_the_letter(mobile_config())] {
        let mut world = world(early);
        world.delay = Duration::from_millis(20);
        world.switch(IF_WLAN);
        world.run_until(at(1_000));
        let before = world.request_times().len();
        while world.request_times().len() == before {
            world.run_for(Duration::from_millis(10));
            assert!(world.now < at(3_600_000), "the binding is renewed");
        }
        world.switch(IF_GSM);
        assert_eq!(world.request_times().len(), before + 2);
        world.switch(IF_WLAN);
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.mobile.care_of_address(), Some(WLAN));
        assert_eq!(world.exits(), [WLAN]);
    }
}
