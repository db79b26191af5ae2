//! What RFC 6275 section 9 and RFC 5648 section 6 ask of a correspondent node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_mobility::v6::{Addresses, CorrespondentNodeConfig, DropReason, Event, RegistrationStep, Wake};
use careof_mobility::{Change, ConfigError};
use careof_wire::icmpv6::{DestinationUnreachable, Icmpv6Message, UnreachableCode};
use careof_wire::mip6::{
    BindingErrorStatus, BindingId, BindingIdentifier, BindingRefreshRequest, BindingStatus, CareOfTestInit,
    InitCookie, Lifetime, Message, MobilityOption, MobilityOptions, NonceIndex, SequenceNumber,
    UnknownMessage, UpdateFlags,
};

use super::peer::*;

const SECOND: Duration = Duration::from_secs(1);

fn care_of_addresses(world: &World) -> Vec<Ipv6Addr> {
    world.node.bindings_of(HOME).map(|binding| binding.care_of).collect()
}

fn changes(world: &mut World) -> Vec<Change> {
    let events = std::mem::take(&mut world.events).into_iter();
    events
        .filter_map(|event| if let Event::Binding(changed) = event { Some(changed.change) } else { None })
        .collect()
}

#[test]
fn a_mobile_node_that_is_reachable_at_both_addresses_is_believed() {
    let mut world = World::new();
    assert_eq!(world.node.care_of_address(HOME), None);
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    assert_eq!(world.node.remembered(), 0, "tests leave nothing behind");
    let update = Craft::new(7, tokens).signed();
    let sent = world.receive_bytes(update.addresses, &update.bytes);
    let [(way, Message::BindingAcknowledgement(answer))] = &parsed(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(*way, Addresses::new(CORRESPONDENT, CARE_OF[0]).with_type_2_routing(HOME));
    assert_eq!((answer.status, answer.sequence), (BindingStatus::Accepted, SequenceNumber(7)));
    assert_eq!(answer.lifetime.duration(), Duration::from_secs(400));
    assert!(update.proves(&sent[0]));
    assert_eq!(world.node.care_of_address(HOME), Some(CARE_OF[0]));
    let steps: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Registration(registration) => Some(registration.step),
            _ => None,
        })
        .collect();
    let sent = RegistrationStep::AcknowledgementSent { status: BindingStatus::Accepted };
    assert_eq!(steps, [RegistrationStep::UpdateReceived, sent]);
    assert_eq!(changes(&mut world), [Change::Created]);
}

#[test]
fn an_acceptance_is_not_acknowledged_unasked_and_a_refusal_is() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let silent = Craft { flags: UpdateFlags::default(), ..Craft::new(7, tokens) };
    assert_eq!(world.status_of(&silent.clone().signed()), None);
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    assert_eq!(world.status_of(&silent.signed()), Some(135));
}

#[test]
fn a_home_token_serves_a_second_care_of_address() {
    let mut world = World::new();
    let first = world.return_routability(HOME, CARE_OF[0]);
    assert_eq!(world.status_of(&Craft::new(1, first).signed()), Some(0));
    world.wait(40 * SECOND);
    let second = world.return_routability(ATTACKER, CARE_OF[1]);
    let mut mixed = Tokens { home: first.home, ..second };
    mixed.indices.home = first.indices.home;
    assert_ne!(mixed.indices.home, mixed.indices.care_of);
    let moved = Craft { care_of: CARE_OF[1], ..Craft::new(2, mixed) };
    assert_eq!(world.status_of(&moved.signed()), Some(0));
    assert_eq!(care_of_addresses(&world), [CARE_OF[1]]);
}

#[test]
fn a_binding_ends_with_its_lifetime_and_never_lasts_longer_than_420_seconds() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let long = Craft { lifetime: u16::MAX, ..Craft::new(1, tokens) }.signed();
    let answer = world.receive_update(&long).unwrap();
    assert_eq!(answer.lifetime, CorrespondentNodeConfig::MAX_LIFETIME);
    assert_eq!(answer.lifetime.duration(), 420 * SECOND);
    world.wait(420 * SECOND - Duration::from_millis(1));
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    assert_eq!(world.next_wake(), Some((Duration::from_millis(1), Wake::BindingLifetime)));
    world.wait(Duration::from_millis(1));
    assert_eq!(care_of_addresses(&world), [] as [Ipv6Addr; 0]);
    assert_eq!(changes(&mut world), [Change::Created, Change::Expired]);
    assert_eq!((world.node.remembered(), world.next_wake()), (0, None));
}

#[test]
fn the_care_of_address_may_be_another_one_than_the_source() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let alternate = Craft {
        source: Some(HOME),
        options: MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(CARE_OF[0])),
        ..Craft::new(1, tokens)
    }
    .signed();
    let sent = world.receive_bytes(alternate.addresses, &alternate.bytes);
    // From the home address without an option: the answer goes there without a routing header.
    assert_eq!(sent[0].addresses, Addresses::new(CORRESPONDENT, HOME));
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
}

#[test]
fn a_mobile_node_back_home_deletes_its_binding_with_the_home_token_alone() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 7);
    let mut tokens = world.return_routability(HOME, CARE_OF[1]);
    // Not looked at.
    tokens.indices.care_of = NonceIndex(tokens.indices.care_of.0.wrapping_add(999));
    let deletion = Craft { lifetime: 0, source: Some(HOME), ..Craft::new(8, tokens) }.signed();
    let sent = world.receive_bytes(deletion.addresses, &deletion.bytes);
    assert!(deletion.proves(&sent[0]));
    assert_eq!(world.node.care_of_address(HOME), None);
    assert_eq!(changes(&mut world), [Change::Created, Change::Removed]);
    // Of nobody's binding: accepted, and nobody gets one.
    let tokens = world.return_routability(ATTACKER, CARE_OF[1]);
    let other =
        Craft { home_address: ATTACKER, lifetime: 0, source: Some(ATTACKER), ..Craft::new(1, tokens) };
    assert_eq!(world.status_of(&other.signed()), Some(0));
    assert_eq!(world.node.bindings().count(), 0);
}

#[test]
fn a_sequence_number_that_is_not_greater_is_answered_with_the_last_one() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 15);
    let tokens = world.return_routability(HOME, CARE_OF[1]);
    for number in [15, 14, 0, 32_783, u16::MAX] {
        let old = Craft { care_of: CARE_OF[1], ..Craft::new(number, tokens) }.signed();
        let sent = world.receive_bytes(old.addresses, &old.bytes);
        let [(_, Message::BindingAcknowledgement(answer))] = &parsed(&sent)[..] else { panic!("{number}") };
        assert_eq!((answer.status.number(), answer.sequence), (135, SequenceNumber(15)), "{number}");
        assert!(old.proves(&sent[0]), "the answer is authentic");
    }
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    assert_eq!(world.node.counters().dropped(DropReason::SequenceOutOfWindow), 5);
    assert_eq!(world.node.counters().refused(135), 5);
    let greater = Craft { care_of: CARE_OF[1], ..Craft::new(32_782, tokens) }.signed();
    assert_eq!(world.status_of(&greater), Some(0));
}

#[test]
fn nonces_that_are_not_known_any_longer_are_named_without_an_authenticator() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let with = |home: u16, care_of: u16| {
        let mut changed = tokens;
        changed.indices.home.0 = changed.indices.home.0.wrapping_add(home);
        changed.indices.care_of.0 = changed.indices.care_of.0.wrapping_add(care_of);
        Craft { flags: UpdateFlags::default(), ..Craft::new(1, changed) }.signed()
    };
    for (home, care_of, status) in [(9, 0, 136), (0, 9, 137), (9, 9, 138)] {
        let update = with(home, care_of);
        let sent = world.receive_bytes(update.addresses, &update.bytes);
        let [(_, Message::BindingAcknowledgement(answer))] = &parsed(&sent)[..] else { panic!("{status}") };
        assert_eq!(answer.status.number(), status);
        assert_eq!(answer.options.len(), 0, "no Binding Authorization Data");
    }
    assert_eq!(world.node.counters().dropped(DropReason::ExpiredNonce), 3);
}

#[test]
fn an_update_without_nonces_or_authorization_is_silently_discarded() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let good = Craft::new(1, tokens).signed();
    let Ok(Message::BindingUpdate(update)) = Message::parse(HOME, CORRESPONDENT, &good.bytes) else {
        panic!()
    };
    for kept in [vec![], vec![0], vec![1]] {
        let options = kept.iter().map(|&at: &usize| update.options[at].clone()).collect();
        let update = Message::BindingUpdate(careof_wire::mip6::BindingUpdate { options, ..update.clone() });
        assert_eq!(world.receive(good.addresses, &update), []);
    }
    assert_eq!(world.node.counters().dropped(DropReason::MissingAuthenticator), 3);
}

#[test]
fn a_care_of_address_that_is_no_way_is_silently_discarded() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let local = "fe80::1".parse().unwrap();
    let many = "ff02::1".parse().unwrap();
    for alternate in [local, many, HOME, CORRESPONDENT, Ipv6Addr::UNSPECIFIED] {
        // Even when somebody had a token for it.
        let care_of = match alternate {
            HOME | CORRESPONDENT => {
                let sent = world.care_of_test_init(alternate);
                let [(_, Message::CareOfTest(test))] = &parsed(&sent)[..] else { panic!("{sent:?}") };
                test.token
            }
            _ => tokens.care_of,
        };
        let update = Craft {
            care_of: alternate,
            source: Some(CARE_OF[0]),
            options: MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(alternate)),
            ..Craft::new(1, Tokens { care_of, ..tokens })
        };
        assert_eq!(world.status_of(&update.signed()), None, "{alternate}");
    }
    assert_eq!(world.node.bindings().count(), 0);
    assert_eq!(world.node.counters().dropped(DropReason::PoorlyFormed), 2);
    assert_eq!(world.node.counters().dropped(DropReason::BadAuthenticator), 3);
}

#[test]
fn a_home_registration_is_refused() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let flags = UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION);
    assert_eq!(world.status_of(&Craft { flags, ..Craft::new(1, tokens) }.signed()), Some(131));
    assert_eq!(world.node.bindings().count(), 0);
}

#[test]
fn a_test_with_a_home_address_option_is_ignored() {
    let mut world = World::new();
    let init = CareOfTestInit { cookie: InitCookie([1; 8]), options: MobilityOptions::new() };
    let addresses = Addresses::new(CARE_OF[0], CORRESPONDENT).with_home_address(HOME);
    assert_eq!(world.receive(addresses, &Message::CareOfTestInit(init)), []);
    assert_eq!(world.node.counters().dropped(DropReason::PoorlyFormed), 1);
}

#[test]
fn a_binding_in_use_is_asked_for_before_it_ends_and_an_idle_one_is_not() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    let other = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 6);
    world.register(other, CARE_OF[1], 1);
    assert!(world.node.care_of_address(HOME).is_some());
    assert_eq!(world.next_wake(), Some((300 * SECOND, Wake::BindingRefresh)));
    let start = world.now;
    let asked = world.wait(399 * SECOND);
    let times: Vec<_> = asked.iter().map(|(at, _)| at.saturating_duration_since(start).as_secs()).collect();
    assert_eq!(times, [300, 350, 375, 387, 393, 396, 398]);
    for (way, message) in parsed(&asked.into_iter().map(|(_, transmit)| transmit).collect::<Vec<_>>()) {
        assert_eq!(way, Addresses::new(CORRESPONDENT, HOME), "to the home address, past the binding");
        assert_eq!(message, Message::BindingRefreshRequest(BindingRefreshRequest::default()));
    }
    // A new binding that nothing is sent by is not asked for.
    world.register(HOME, CARE_OF[0], 2);
    assert_eq!(world.wait(500 * SECOND), []);
}

#[test]
fn a_refresh_request_names_the_binding() {
    let mut world = World::new();
    register_named(&mut world, 3, CARE_OF[0], 1, UpdateFlags::ACKNOWLEDGE).unwrap();
    assert!(world.node.care_of_address(HOME).is_some());
    let asked = world.wait(300 * SECOND);
    let [(_, Message::BindingRefreshRequest(request))] = &parsed(&[asked[0].1.clone()])[..] else { panic!() };
    assert_eq!(request.options.binding_identifiers().map(|named| named.id.0).collect::<Vec<_>>(), [3]);
}

/// Registers a care-of address under a name; the status of the answer.
fn register_named(
    world: &mut World,
    id: u16,
    care_of: Ipv6Addr,
    sequence: u16,
    flags: UpdateFlags,
) -> Result<(), u8> {
    let named = BindingIdentifier {
        care_of_address: Some(IpAddr::V6(care_of)),
        ..BindingIdentifier::new(BindingId(id))
    };
    let tokens = world.return_routability(HOME, care_of);
    let options = MobilityOptions::new().with(MobilityOption::BindingIdentifier(named));
    let update = Craft { care_of, flags, options, ..Craft::new(sequence, tokens) }.signed();
    let answer = world.receive_update(&update).expect("an answer");
    assert_eq!(
        answer.options.binding_identifiers().copied().collect::<Vec<_>>(),
        [BindingIdentifier::new(named.id)]
    );
    if answer.status.is_accepted() { Ok(()) } else { Err(answer.status.number()) }
}

#[test]
fn several_care_of_addresses_live_side_by_side() {
    let mut world = World::new();
    let flags = UpdateFlags::ACKNOWLEDGE;
    assert_eq!(register_named(&mut world, 1, CARE_OF[0], 1, flags), Ok(()));
    assert_eq!(register_named(&mut world, 2, CARE_OF[1], 2, flags), Ok(()));
    assert_eq!(care_of_addresses(&world), CARE_OF);
    assert_eq!(world.node.care_of_address(HOME), Some(CARE_OF[1]), "the one registered last");
    for care_of in CARE_OF {
        let addresses = Addresses::new(care_of, CORRESPONDENT).with_home_address(HOME);
        assert!(world.node.accepts_home_address_option(world.now, &addresses, 6));
    }
    // One of them goes.
    let tokens = world.return_routability(HOME, CARE_OF[1]);
    let named = BindingIdentifier::new(BindingId(2));
    let options = || MobilityOptions::new().with(MobilityOption::BindingIdentifier(named));
    let deletion =
        Craft { lifetime: 0, options: options(), source: Some(CARE_OF[1]), ..Craft::new(3, tokens) };
    assert_eq!(world.status_of(&deletion.signed()), Some(0));
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    let again = Craft { lifetime: 0, options: options(), source: Some(CARE_OF[1]), ..Craft::new(4, tokens) };
    assert_eq!(world.status_of(&again.signed()), Some(133));
    // An update without a name takes the place of all.
    assert_eq!(register_named(&mut world, 2, CARE_OF[1], 5, flags), Ok(()));
    world.register(HOME, CARE_OF[0], 6);
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    // And is not joined by a named one, but replaced.
    assert_eq!(register_named(&mut world, 1, CARE_OF[1], 7, flags), Err(165));
    assert_eq!(register_named(&mut world, 1, CARE_OF[1], 7, flags.with(UpdateFlags::OVERWRITE)), Ok(()));
    assert_eq!(care_of_addresses(&world), [CARE_OF[1]]);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let named = |id, care_of_address| {
        MobilityOption::BindingIdentifier(BindingIdentifier {
            care_of_address,
            ..BindingIdentifier::new(BindingId(id))
        })
    };
    let ipv6 = Some(IpAddr::V6(CARE_OF[0]));
    let ipv4 = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    for (options, status) in [
        (vec![named(0, ipv6)], 164),
        (vec![named(1, ipv4)], 164),
        (vec![named(1, ipv6), named(2, ipv6)], 168),
        (vec![named(1, None)], 167),
    ] {
        let update = Craft { options: options.into(), ..Craft::new(1, tokens) }.signed();
        assert_eq!(world.status_of(&update), Some(status));
    }
    let config =
        CorrespondentNodeConfig { max_bindings_per_node: 1, ..CorrespondentNodeConfig::new(CORRESPONDENT) };
    let mut world = World::with(config);
    assert_eq!(register_named(&mut world, 1, CARE_OF[0], 1, UpdateFlags::ACKNOWLEDGE), Err(166));
}

#[test]
fn a_mobile_node_has_no_more_bindings_than_it_may() {
    let config =
        CorrespondentNodeConfig { max_bindings_per_node: 2, ..CorrespondentNodeConfig::new(CORRESPONDENT) };
    let mut world = World::with(config);
    let flags = UpdateFlags::ACKNOWLEDGE;
    for id in [1, 2] {
        assert_eq!(register_named(&mut world, id, CARE_OF[0], id, flags), Ok(()));
    }
    assert_eq!(register_named(&mut world, 3, CARE_OF[1], 3, flags), Err(130));
    assert_eq!(register_named(&mut world, 2, CARE_OF[1], 4, flags), Ok(()), "a change takes no room");
}

#[test]
fn the_name_of_a_care_of_test_comes_back() {
    let mut world = World::new();
    let named = MobilityOption::BindingIdentifier(BindingIdentifier::new(BindingId(5)));
    let options = MobilityOptions::new().with(named.clone());
    let init = CareOfTestInit { cookie: InitCookie([1; 8]), options };
    let sent = world.receive(Addresses::new(CARE_OF[0], CORRESPONDENT), &Message::CareOfTestInit(init));
    let [(_, Message::CareOfTest(test))] = &parsed(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(test.options[..], [named]);
}

#[test]
fn an_unknown_message_is_answered_with_an_error() {
    let mut world = World::new();
    let unknown = Message::Unknown(UnknownMessage::new(99, &[0; 10]).unwrap());
    let sent = world.receive(Addresses::new(CARE_OF[0], CORRESPONDENT).with_home_address(HOME), &unknown);
    let [(way, Message::BindingError(error))] = &parsed(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(*way, Addresses::new(CORRESPONDENT, CARE_OF[0]));
    assert_eq!((error.status, error.home_address), (BindingErrorStatus::UnrecognizedMhType, HOME));
}

/// An ICMP error about a packet of ours to `home_address` by way of `care_of`.
fn unreachable(source: Ipv6Addr, home_address: Ipv6Addr, care_of: Ipv6Addr) -> Vec<u8> {
    let mut quoted = vec![0x60, 0, 0, 0, 0, 32, 43, 64];
    quoted.extend(CORRESPONDENT.octets());
    quoted.extend(care_of.octets());
    // A type 2 routing header before UDP, one segment left.
    quoted.extend([17, 2, 2, 1, 0, 0, 0, 0]);
    quoted.extend(home_address.octets());
    quoted.extend([0; 8]);
    let code = UnreachableCode::from_number(3);
    let mut bytes = Vec::new();
    Icmpv6Message::DestinationUnreachable(DestinationUnreachable { code, quoted }).emit(
        source,
        CORRESPONDENT,
        &mut bytes,
    );
    bytes
}

#[test]
fn packets_go_home_again_when_the_care_of_address_stays_unreachable() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    let router = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1);
    for (home_address, care_of) in [(HOME, CARE_OF[1]), (ATTACKER, CARE_OF[0])] {
        for _ in 0..10 {
            world.receive_icmp(router, &unreachable(router, home_address, care_of));
            world.wait(2 * SECOND);
        }
    }
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    for _ in 0..3 {
        world.wait(2 * SECOND);
        world.receive_icmp(router, &unreachable(router, HOME, CARE_OF[0]));
    }
    assert_eq!(world.node.care_of_address(HOME), None);
}

#[test]
fn without_route_optimization_nothing_is_answered() {
    let config =
        CorrespondentNodeConfig { route_optimization: false, ..CorrespondentNodeConfig::new(CORRESPONDENT) };
    let mut world = World::with(config);
    assert_eq!(world.home_test_init(HOME), []);
    assert_eq!(world.care_of_test_init(CARE_OF[0]), []);
    assert_eq!(world.node.counters().dropped(DropReason::NotOffered), 2);
}

#[test]
fn what_is_not_for_the_node_or_from_nobody_is_dropped() {
    let mut world = World::new();
    let init = || {
        let init = CareOfTestInit { cookie: InitCookie([1; 8]), options: MobilityOptions::new() };
        Message::CareOfTestInit(init)
    };
    assert_eq!(world.receive(Addresses::new(CARE_OF[0], ATTACKER), &init()), []);
    assert_eq!(world.receive(Addresses::new("ff02::1".parse().unwrap(), CORRESPONDENT), &init()), []);
    let request = Message::BindingRefreshRequest(BindingRefreshRequest::default());
    assert_eq!(world.receive(Addresses::new(CARE_OF[0], CORRESPONDENT), &request), []);
    assert_eq!(world.node.counters().dropped(DropReason::NotForUs), 3);
    assert_eq!(world.receive_bytes(Addresses::new(CARE_OF[0], CORRESPONDENT), &[59, 9, 1]), []);
    assert_eq!(world.node.counters().dropped(DropReason::Malformed), 1);
    let events = world.events.iter().filter(|event| matches!(event, Event::Dropped { .. })).count();
    assert_eq!(events, 4, "every drop is told");
}

#[test]
fn a_configuration_that_cannot_be_is_refused() {
    let good = CorrespondentNodeConfig::new(CORRESPONDENT);
    let check = |config| {
        let random = careof_base::RandomStream::new(1, 0, "config");
        careof_mobility::v6::CorrespondentNode::new(config, random).err()
    };
    assert_eq!(check(good.clone()), None);
    let address = Ipv6Addr::UNSPECIFIED;
    assert!(matches!(
        check(CorrespondentNodeConfig { address, ..good.clone() }),
        Some(ConfigError::NotUnicast { .. })
    ));
    let too_long = Lifetime::from_units(106);
    for config in [
        CorrespondentNodeConfig { max_mobile_nodes: 0, ..good.clone() },
        CorrespondentNodeConfig { max_mobile_nodes_per_site: Some(0), ..good.clone() },
        CorrespondentNodeConfig { max_bindings_per_node: 0, ..good.clone() },
        CorrespondentNodeConfig { max_lifetime: Lifetime::ZERO, ..good.clone() },
        CorrespondentNodeConfig { max_lifetime: too_long, ..good },
    ] {
        assert!(matches!(check(config), Some(ConfigError::OutOfRange { .. })));
    }
}

/// An update whose acknowledgement was lost comes again, and tells of the same handover; one that is not believed tells of none.
#[test]
fn the_end_of_a_handover_is_told_with_the_first_update_that_is_accepted() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    let tokens = world.return_routability(HOME, CARE_OF[1]);
    let flags = UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::END_OF_HANDOVER);
    let update = |sequence| Craft { care_of: CARE_OF[1], flags, ..Craft::new(sequence, tokens) };
    let ended = |world: &World| {
        let care_of = |event: &Event| match *event {
            Event::HandoverEnded { home_address: HOME, care_of } => Some(care_of),
            _ => None,
        };
        world.events.iter().filter_map(care_of).collect::<Vec<_>>()
    };
    let forged = Craft { covered: Some(CARE_OF[0]), ..update(2) }.signed();
    assert_eq!(world.status_of(&forged), None);
    assert!(ended(&world).is_empty());
    for sequence in [2, 3] {
        assert_eq!(world.status_of(&update(sequence).signed()), Some(0));
        assert_eq!(ended(&world), [CARE_OF[1]]);
    }
}
