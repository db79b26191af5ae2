//! Paths that die in silence, that come back, and what strangers can do about it.

use std::net::Ipv6Addr;

use careof_base::{Duration, Instant};
use careof_mobility::v6::*;
use careof_mobility::{HandoverReason, InterfaceId, Notice, Selection};
use careof_wire::mip6::{Message, MobilityOptions, PathCounts, PathProbe, PathProbeKind};

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(50);

fn watching(security: SecurityAssociation, selection: Selection) -> MobileNodeConfig {
    MobileNodeConfig {
        selection,
        report_paths: true,
        path_monitor: true,
        route_optimization: None,
        ..node(security)
    }
}

fn preferred() -> Selection {
    Selection::Preferred { hold: Duration::from_secs(5) }
}

/// A node on networks 2 and 3 of which it uses the first, and its home agent.
fn world(mut node: MobileNodeConfig) -> World {
    node.interfaces[0].preference = 1;
    let home = HomeAgentConfig { duplicate_address_detection: None, ..config(node.security.clone()) };
    let is_manual = node.selection == Selection::Manual;
    let mut world = World::new(node, home);
    world.attach(WLAN, 2);
    world.attach(GSM, 3);
    if is_manual {
        world.mobile.switch_to(world.now, WLAN, Notice::None).unwrap();
    }
    world.run(SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    world
}

/// Packets leave once a step, and are answered where they get through.
fn talk(world: &mut World, span: Duration) {
    let end = world.now + span;
    while world.now < end {
        let by = world.mobile.active_interface().expect("an interface in use");
        world.mobile.note_sent(world.now, by, 1, 1000);
        world.run(STEP);
        if world.broken != world.networks.get(&by).copied() {
            world.mobile.note_received(world.now, by, 1, 1000);
        }
    }
}

fn count(world: &World, name: &str) -> usize {
    world.handovers().iter().filter(|event| event.name() == name).count()
}

fn reasons(world: &World) -> Vec<HandoverReason> {
    let reason = |event: HandoverEvent| match event {
        HandoverEvent::Initiated { reason, .. } => Some(reason),
        _ => None,
    };
    world.handovers().into_iter().filter_map(reason).collect()
}

fn last_report(world: &World) -> Option<bool> {
    let told = world.home_events.iter().rev().find_map(|(_, event)| match event {
        Event::Binding(BindingChanged { path: Some(path), .. }) => Some(*path),
        _ => None,
    });
    told.expect("a report").old_path_lost
}

#[test]
fn a_path_that_dies_in_silence_is_left_for_one_that_answers() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = world(watching(security, preferred()));
        talk(&mut world, SECOND * 10);
        assert_eq!((reasons(&world), count(&world, "path-silent")), (vec![HandoverReason::Attached], 0));
        let quality = world.mobile.path_quality(WLAN);
        assert_eq!((quality.state, quality.round_trip), (PathState::Alive, Some(world.one_way * 2)));
        world.broken = Some(2);
        talk(&mut world, SECOND * 3);
        assert_eq!(reasons(&world), [HandoverReason::Attached, HandoverReason::PathSilent]);
        assert_eq!((world.tunnelled_to(), count(&world, "path-silent")), (vec![care_of(3)], 1));
        assert_eq!(last_report(&world), Some(true), "what was on its way is lost");
        // It is come back to when it has answered for long enough.
        world.broken = None;
        talk(&mut world, SECOND * 60);
        assert_eq!((world.tunnelled_to(), count(&world, "path-answers")), (vec![care_of(2)], 1));
        assert_eq!(reasons(&world).last(), Some(&HandoverReason::Preferred));
    }
}

#[test]
fn a_silent_path_is_left_for_the_home_link_which_nobody_can_probe() {
    let mut node = watching(timestamps(), preferred());
    node.interfaces[1].preference = 2;
    let home = HomeAgentConfig { duplicate_address_detection: None, ..config(node.security.clone()) };
    let mut world = World::new(node, home);
    world.attach(WLAN, 2);
    world.run(SECOND * 3);
    talk(&mut world, SECOND * 10);
    world.broken = Some(2);
    talk(&mut world, SECOND * 5);
    assert_eq!(world.mobile.path_quality(WLAN).state, PathState::Silent);
    world.attach(GSM, AT_HOME);
    // Longer than a better interface has to have worked: no deadline stays behind.
    world.run(SECOND * 20);
    assert!(world.mobile.is_at_home());
    assert_eq!(reasons(&world), [HandoverReason::Attached, HandoverReason::PathSilent]);
}

#[test]
fn the_only_path_is_registered_anew_when_its_silence_ends() {
    let mut world = world(watching(timestamps(), Selection::Manual));
    talk(&mut world, SECOND * 10);
    world.broken = Some(2);
    talk(&mut world, SECOND * 5);
    assert_eq!(world.mobile.path_quality(WLAN).state, PathState::Silent);
    let (back, before) = (world.now, world.home_events.len());
    world.broken = None;
    talk(&mut world, SECOND);
    assert_eq!(world.mobile.path_quality(WLAN).state, PathState::Alive);
    assert_eq!(world.count_sent(back, "BindingUpdate", HA), 1);
    let updated = |event: &Event| matches!(event, Event::Binding(change) if change.care_of == care_of(2));
    assert!(world.home_events[before..].iter().any(|(_, event)| updated(event)));
    assert_eq!(last_report(&world), Some(true));
    assert_eq!(reasons(&world), [HandoverReason::Chosen]);
}

#[test]
fn what_goes_straight_to_correspondent_nodes_wants_answers_and_is_not_counted() {
    let mut world = world(watching(timestamps(), preferred()));
    let goes_on = |world: &mut World, span: Duration| {
        let end = world.now + span;
        while world.now < end {
            let by = world.mobile.active_interface().expect("an interface in use");
            world.mobile.note_sent_straight(world.now, by, 1, 1000);
            world.run(STEP);
            if world.broken != world.networks.get(&by).copied() {
                world.mobile.note_received_straight(world.now, by);
            }
        }
    };
    goes_on(&mut world, SECOND * 30);
    let probes = world.sent.iter().filter_map(|(_, _, message)| match message {
        Message::PathProbe(probe) => probe.counts,
        _ => None,
    });
    assert!(probes.into_iter().all(|counts| counts == PathCounts::default()));
    world.broken = Some(2);
    goes_on(&mut world, SECOND * 3);
    assert_eq!(reasons(&world), [HandoverReason::Attached, HandoverReason::PathSilent]);
}

#[test]
fn a_path_through_ipv4_is_watched_too() {
    let node = MobileNodeConfig { home_agent_ipv4: Some(HA_IPV4), ..watching(timestamps(), preferred()) };
    let home = HomeAgentConfig {
        duplicate_address_detection: None,
        ipv4_address: Some(HA_IPV4),
        ..config(node.security.clone())
    };
    let mut world = World::new(node, home);
    world.attach(WLAN, IPV4_ONLY);
    world.run(SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(IPV4_ONLY)]);
    world.attach(GSM, 3);
    talk(&mut world, SECOND * 10);
    for interface in [WLAN, GSM] {
        let quality = world.mobile.path_quality(interface);
        assert_eq!(quality.state, PathState::Alive, "{interface:?}");
        assert_eq!(quality.probes_sent, quality.probes_answered, "{interface:?}");
    }
    world.broken = Some(IPV4_ONLY);
    talk(&mut world, SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
}

#[test]
fn a_home_agent_that_does_not_know_the_node_makes_no_path_silent() {
    let mut world = world(watching(timestamps(), preferred()));
    talk(&mut world, SECOND * 3);
    // As one that knows no probes: with another key none is answered.
    let node = watching(timestamps(), preferred());
    let other = SecurityAssociation::hmac_sha1(SPI, b"another key than".to_vec()).unwrap();
    let home = HomeAgentConfig { duplicate_address_detection: None, ..config(other) };
    let mut stranger = World::new(MobileNodeConfig { selection: Selection::Manual, ..node }, home);
    stranger.attach(WLAN, 2);
    stranger.switch_to(WLAN);
    stranger.run(SECOND * 60);
    assert_eq!(count(&stranger, "path-silent"), 0);
    assert_eq!(stranger.count_sent(Instant::ZERO, "PathProbe", HA), 0, "who is not served probes nothing");
}

fn probe(kind: PathProbeKind, sequence: u32, nonce: u64) -> PathProbe {
    let options = MobilityOptions::new();
    PathProbe { kind, home_address: HOME, sequence, nonce, counts: None, options }
}

/// The latest probe from network 2, as it travelled: with neither option nor tunnel.
fn recorded_probe(world: &World) -> (Addresses, Vec<u8>) {
    let way = Addresses::new(care_of(2), HA);
    let is_probe = |bytes: &[u8]| matches!(Message::parse(care_of(2), HA, bytes), Ok(Message::PathProbe(_)));
    let found = world.recorded.iter().rev().find(|(addresses, bytes)| *addresses == way && is_probe(bytes));
    found.cloned().expect("a probe")
}

#[test]
fn a_stranger_s_probe_is_not_answered_and_a_stranger_s_answer_says_nothing() {
    let mut world = world(watching(timestamps(), preferred()));
    talk(&mut world, SECOND * 3);
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 77, 0, 0, 0, 0, 9);
    let sent = world.home.counters().sent;
    let hear = |world: &mut World, addresses: Addresses, message: &[u8]| {
        world.home.handle_input(world.now, Input::Mobility { interface: HOME_IF, addresses, message });
    };
    let forged = Message::PathProbe(probe(PathProbeKind::Probe, 1, 1)).emit(stranger, HA).unwrap();
    hear(&mut world, Addresses::new(stranger, HA), &forged);
    assert_eq!(world.home.counters().dropped(DropReason::MissingAuthenticator), 1);
    // A genuine one, in somebody else's name.
    let (way, recorded) = recorded_probe(&world);
    let Ok(Message::PathProbe(genuine)) = Message::parse(care_of(2), HA, &recorded) else { panic!() };
    let moved = Message::PathProbe(genuine).emit(stranger, HA).unwrap();
    hear(&mut world, Addresses::new(stranger, HA), &moved);
    assert_eq!(world.home.counters().dropped(DropReason::BadAuthenticator), 1);
    assert_eq!(world.home.counters().sent, sent);
    // Who repeats what the node has sent gets no more answers than that node could use.
    for _ in 0..1000 {
        hear(&mut world, way, &recorded);
    }
    assert!(world.home.counters().sent - sent <= 64);
    assert!(world.home.counters().dropped(DropReason::OverRation) >= 936);
    assert_eq!(world.tunnelled_to(), [care_of(2)], "nothing follows from a probe");
    // The path is dead, and somebody who has seen no probe says that it is not.
    world.broken = Some(2);
    for sequence in 0..60 {
        talk(&mut world, STEP);
        let forged = Message::PathProbe(probe(PathProbeKind::Answer, sequence, u64::from(sequence)));
        let message = forged.emit(HA, care_of(2)).unwrap();
        let addresses = Addresses::new(HA, care_of(2));
        world.tell(Input::Mobility { interface: WLAN, addresses, message: &message });
    }
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    assert!(world.mobile.counters().dropped(DropReason::UnexpectedAnswer) >= 55);
}

#[test]
fn the_home_agent_tells_what_its_owner_has_counted_for_that_path() {
    let mut world = world(watching(timestamps(), preferred()));
    world.run(SECOND * 3);
    let counts = PathCounts { packets_sent: 5, packets_received: 6, bytes_sent: 500, bytes_received: 600 };
    let (way, recorded) = recorded_probe(&world);
    let mut answered = |from: Ipv6Addr| {
        world.home.note_traffic(HOME, from, counts);
        let message = &recorded[..];
        world.home.handle_input(world.now, Input::Mobility { interface: HOME_IF, addresses: way, message });
        let answer = world.home.poll_transmit(world.now).expect("an answer");
        assert_eq!(answer.addresses, Addresses::new(HA, care_of(2)));
        match Message::parse(HA, care_of(2), answer.payload.bytes()) {
            Ok(Message::PathProbe(answer)) => answer.counts,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answered(care_of(2)), Some(counts));
    assert_eq!(answered(care_of(3)), None, "that was for another path");
}

#[test]
fn what_happens_nowhere_costs_little() {
    let mut world = world(watching(timestamps(), preferred()));
    world.run(SECOND * 10);
    let begun = world.now;
    world.run(SECOND * 3600);
    let probes = world.count_sent(begun, "PathProbe", HA);
    assert!((238..=242).contains(&probes), "one in half a minute on each path: {probes}");
    for interface in [WLAN, GSM] {
        assert_eq!(world.mobile.path_quality(interface).state, PathState::Alive);
    }
}

#[test]
fn without_the_owners_wish_nothing_is_probed() {
    let config = MobileNodeConfig { path_monitor: false, ..watching(timestamps(), preferred()) };
    let mut world = world(config);
    talk(&mut world, SECOND * 100);
    assert_eq!(world.count_sent(Instant::ZERO, "PathProbe", HA), 0);
    assert_eq!(world.mobile.path_quality(InterfaceId(1)).state, PathState::Unknown);
}
