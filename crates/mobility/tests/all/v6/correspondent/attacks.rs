//! The threats of RFC 6275 section 15, carried out.

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_mobility::v6::{Addresses, CorrespondentNodeConfig, DropReason};
use careof_wire::mip6::{BindingErrorStatus, KeygenToken, Message, MobilityOption, MobilityOptions};

use super::peer::*;

const SECOND: Duration = Duration::from_secs(1);
/// Next Header values.
const TCP: u8 = 6;
const ESP: u8 = 50;
const MOBILITY: u8 = 135;

fn care_of_addresses(world: &World) -> Vec<Ipv6Addr> {
    world.node.bindings_of(HOME).map(|binding| binding.care_of).collect()
}

/// What somebody has who has received neither test.
fn no_tokens(world: &mut World) -> Tokens {
    let known = world.return_routability(ATTACKER, ATTACKER);
    Tokens { home: KeygenToken([0; 8]), care_of: KeygenToken([0; 8]), ..known }
}

#[test]
fn an_update_without_tokens_is_silently_discarded() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    let nothing = no_tokens(&mut world);
    for number in 0..200_u8 {
        let guess = Tokens { home: KeygenToken([number; 8]), care_of: KeygenToken([number; 8]), ..nothing };
        let forged = Craft { care_of: ATTACKER, ..Craft::new(2 + u16::from(number), guess) };
        assert_eq!(world.status_of(&forged.signed()), None);
        let deletion = Craft { lifetime: 0, source: Some(HOME), ..Craft::new(2 + u16::from(number), guess) };
        assert_eq!(world.status_of(&deletion.signed()), None);
    }
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    assert_eq!(world.node.counters().dropped(DropReason::BadAuthenticator), 400);
}

#[test]
fn ones_own_tokens_open_nobody_elses_home_address() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    // Reachable at its own addresses, and everywhere but at the victim's home.
    let own = world.return_routability(ATTACKER, ATTACKER);
    let hijack = Craft { care_of: ATTACKER, ..Craft::new(2, own) };
    assert_eq!(world.status_of(&hijack.clone().signed()), None);
    // A care-of token is no home token, although it is for the same address.
    let sent = world.care_of_test_init(HOME);
    let [(_, Message::CareOfTest(test))] = &parsed(&sent)[..] else { panic!("{sent:?}") };
    let mixed = Tokens { home: test.token, ..own };
    assert_eq!(world.status_of(&Craft { tokens: mixed, ..hijack }.signed()), None);
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
}

#[test]
fn nobody_can_send_others_packets_to_an_address_that_does_not_answer() {
    let mut world = World::new();
    let victim = CARE_OF[1];
    // An honest home address and a home token, but the Care-of Test went to the victim.
    let own = world.return_routability(ATTACKER, CARE_OF[0]);
    let sent = world.care_of_test_init(victim);
    assert_eq!(sent[0].addresses.destination, victim);
    let flood = Craft { home_address: ATTACKER, care_of: victim, ..Craft::new(1, own) };
    assert_eq!(world.status_of(&flood.clone().signed()), None);
    // Nor by an Alternate Care-of Address behind an address that answers.
    let alternate = MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(victim));
    let flood = Craft { source: Some(CARE_OF[0]), options: alternate, ..flood };
    assert_eq!(world.status_of(&flood.clone().signed()), None);
    assert_eq!(world.status_of(&Craft { covered: Some(CARE_OF[0]), ..flood }.signed()), None);
    assert_eq!(world.node.bindings().count(), 0);
}

#[test]
fn a_repeated_update_does_not_bring_an_old_care_of_address_back() {
    let mut world = World::new();
    let old = world.register(HOME, CARE_OF[0], 1);
    world.register(HOME, CARE_OF[1], 2);
    assert_eq!(world.status_of(&old), Some(135));
    assert_eq!(care_of_addresses(&world), [CARE_OF[1]]);
}

#[test]
fn an_update_cannot_be_repeated_after_its_binding_was_deleted_or_has_ended() {
    let mut world = World::new();
    let tokens = world.return_routability(HOME, CARE_OF[0]);
    let short = Craft { lifetime: 5, ..Craft::new(1, tokens) }.signed();
    assert_eq!(world.status_of(&short), Some(0));
    world.wait(25 * SECOND);
    assert_eq!((world.node.bindings().count(), world.node.remembered()), (0, 1));
    assert_eq!(world.status_of(&short), Some(135), "it has ended");
    let again = Craft::new(2, tokens).signed();
    assert_eq!(world.status_of(&again), Some(0));
    let deletion = Craft { lifetime: 0, source: Some(HOME), ..Craft::new(3, tokens) }.signed();
    assert_eq!(world.status_of(&deletion), Some(0));
    for repeated in [&short, &again, &deletion] {
        assert_eq!(world.status_of(repeated), Some(135), "it is deleted");
    }
    // When the sequence number is forgotten, the nonces are so as well.
    let mut statuses = Vec::new();
    for _ in 0..300 {
        world.wait(SECOND);
        statuses.push(world.status_of(&again));
        assert_eq!(world.node.bindings().count(), 0);
    }
    statuses.dedup();
    assert_eq!(statuses, [Some(135), Some(138)]);
    assert_eq!(world.node.remembered(), 0);
}

#[test]
fn a_stolen_token_is_worth_nothing_after_its_time() {
    let mut world = World::new();
    // Somebody on the path has seen both tests.
    let stolen = world.return_routability(HOME, ATTACKER);
    world.wait(240 * SECOND);
    let hijack = Craft { care_of: ATTACKER, ..Craft::new(1, stolen) };
    assert_eq!(world.status_of(&hijack.clone().signed()), Some(138));
    // Nor with the indices of the nonces of today.
    let today = world.return_routability(ATTACKER, ATTACKER);
    let stolen = Tokens { indices: today.indices, ..stolen };
    assert_eq!(world.status_of(&Craft { tokens: stolen, ..hijack }.signed()), None);
    assert_eq!(world.node.bindings().count(), 0);
}

#[test]
fn a_home_address_option_without_binding_reflects_nothing() {
    let mut world = World::new();
    world.register(HOME, CARE_OF[0], 1);
    let accepts = |world: &mut World, source, home_address, protocol| {
        let addresses = Addresses::new(source, CORRESPONDENT).with_home_address(home_address);
        let accepted = world.node.accepts_home_address_option(world.now, &addresses, protocol);
        (accepted, parsed(&world.poll()))
    };
    assert_eq!(accepts(&mut world, CARE_OF[0], HOME, TCP), (true, vec![]));
    // A victim's address, and a home address that is somewhere else.
    for (source, victim) in [(ATTACKER, CARE_OF[1]), (ATTACKER, HOME), (CARE_OF[0], CARE_OF[1])] {
        let (accepted, sent) = accepts(&mut world, source, victim, TCP);
        let [(way, Message::BindingError(error))] = &sent[..] else { panic!("{sent:?}") };
        assert!(!accepted);
        assert_eq!(*way, Addresses::new(CORRESPONDENT, source), "the sender is told, not the victim");
        assert_eq!((error.status, error.home_address), (BindingErrorStatus::UnknownBinding, victim));
        // What has protection of its own is looked at, and an update is to make the binding.
        for protocol in [ESP, MOBILITY] {
            assert_eq!(accepts(&mut world, source, victim, protocol), (true, vec![]));
        }
    }
    let many: Ipv6Addr = "ff02::1".parse().unwrap();
    assert!(!accepts(&mut world, ATTACKER, many, ESP).0, "no home address at all");
    assert_eq!(accepts(&mut world, many, ATTACKER, TCP), (false, vec![]), "nobody to tell");
    assert_eq!(world.node.bindings().count(), 1, "the option changes nothing");
    let without = Addresses::new(ATTACKER, CORRESPONDENT);
    assert!(world.node.accepts_home_address_option(world.now, &without, TCP));
}

/// How often something is answered of 1000 times at once.
fn answered(world: &mut World, mut one: impl FnMut(&mut World) -> usize) -> usize {
    (0..1000).map(|_| one(world)).sum()
}

#[test]
fn a_victim_is_not_flooded_with_answers_to_what_others_send_in_its_name() {
    let victim = CARE_OF[1];
    let mut world = World::new();
    assert_eq!(answered(&mut world, |world| world.home_test_init(victim).len()), 100);
    assert_eq!(world.node.counters().dropped(DropReason::OverRation), 900);
    assert_eq!(answered(&mut world, |world| world.care_of_test_init(victim).len()), 0);
    // Others are still answered.
    world.register(HOME, CARE_OF[0], 1);

    let nothing = no_tokens(&mut world);
    let mut stale = nothing;
    stale.indices.home.0 = stale.indices.home.0.wrapping_add(1000);
    let refused = Craft { source: Some(victim), care_of: victim, ..Craft::new(1, stale) }.signed();
    assert_eq!(answered(&mut world, |world| usize::from(world.status_of(&refused).is_some())), 100);
    assert_eq!(world.node.counters().answers_suppressed, 900);
    let reflected = Addresses::new(victim, CORRESPONDENT).with_home_address(ATTACKER);
    let errors = answered(&mut world, |world| {
        assert!(!world.node.accepts_home_address_option(world.now, &reflected, TCP));
        world.poll().len()
    });
    assert_eq!(errors, 0, "errors and refusals have one ration");
}

#[test]
fn repeated_updates_do_not_flood_the_mobile_node_with_refusals() {
    let mut world = World::new();
    let update = world.register(HOME, CARE_OF[0], 1);
    assert_eq!(answered(&mut world, |world| usize::from(world.status_of(&update).is_some())), 16);
    assert_eq!(world.node.counters().answers_suppressed, 984);
    world.wait(SECOND);
    assert_eq!(answered(&mut world, |world| usize::from(world.status_of(&update).is_some())), 1);
}

#[test]
fn who_has_all_addresses_of_a_site_cannot_fill_the_cache() {
    let config = CorrespondentNodeConfig {
        max_mobile_nodes: 40,
        max_mobile_nodes_per_site: Some(10),
        ..CorrespondentNodeConfig::new(CORRESPONDENT)
    };
    let mut world = World::with(config);
    world.register(HOME, CARE_OF[0], 1);
    let try_one = |world: &mut World, site: u16, host: u16| {
        let home_address = Ipv6Addr::new(0x2001, 0xdb8, 0x600 + site, host, 0, 0, 0, 1);
        let tokens = world.return_routability(home_address, home_address);
        let care_of = Ipv6Addr::new(0x2001, 0xdb8, 0x600 + site, host, 0, 0, 0, 2);
        let own = world.return_routability(home_address, care_of);
        let tokens = Tokens { home: tokens.home, care_of: own.care_of, indices: own.indices };
        let update = Craft { home_address, care_of, ..Craft::new(1, tokens) };
        let status = world.status_of(&update.signed()).unwrap();
        // The tests have a ration.
        world.wait(SECOND);
        status
    };
    let accepted = |world: &mut World, site| (0..30).filter(|host| try_one(world, site, *host) == 0).count();
    assert_eq!(accepted(&mut world, 0), 10, "a site has its share");
    assert_eq!(try_one(&mut world, 0, 99), 130);
    // With four sites all is taken, and who was there before stays.
    let more: Vec<_> = (1..4).map(|site| accepted(&mut world, site)).collect();
    assert_eq!(more, [10, 10, 9]);
    assert_eq!(world.node.remembered(), 40);
    assert_eq!(care_of_addresses(&world), [CARE_OF[0]]);
    world.register(HOME, CARE_OF[1], 2);
    assert_eq!(try_one(&mut world, 5, 1), 130, "a newcomer goes by the home agent");
    world.wait(420 * SECOND);
    assert_eq!(try_one(&mut world, 5, 1), 0, "until bindings have ended");
}
