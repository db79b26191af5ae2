//! What somebody without the key can do: say things in others' names, repeat what was recorded, and ask a lot.

use careof_base::{Duration, RandomStream};
use careof_mobility::v6::*;
use careof_wire::mip6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingStatus, Lifetime, Message, MobilityOptions,
};

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn travelled() -> World {
    let mut world = World::simple(timestamps());
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    for network in [3, 4, 2, AT_HOME, 3] {
        world.detach(WLAN);
        world.attach(WLAN, network);
        world.run(SECOND * 20);
    }
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    world
}

/// RFC 4285 section 6: with timestamps nothing that was ever sent counts twice, also when the binding is gone.
#[test]
fn recordings_played_to_the_home_agent_move_nobody() {
    for at_home in [false, true] {
        let mut world = travelled();
        if at_home {
            world.detach(WLAN);
            world.attach(WLAN, AT_HOME);
        }
        world.run(SECOND * 30);
        let expected = world.tunnelled_to();
        assert_eq!(expected.is_empty(), at_home);
        for (addresses, bytes) in world.recorded.clone() {
            for source in [addresses.source, care_of(66)] {
                let addresses = Addresses { source, ..addresses };
                let input = Input::Mobility { interface: HOME_IF, addresses, message: &bytes };
                world.home.handle_input(world.now, input);
            }
            assert_eq!(world.tunnelled_to(), expected);
        }
        world.run(SECOND * 5);
        assert_eq!(world.tunnelled_to(), expected);
    }
}

/// Acknowledgements that were recorded end nothing and begin nothing at the mobile node.
#[test]
fn recordings_played_to_the_mobile_node_change_nothing() {
    let mut world = travelled();
    let accepted = world.mobile.counters().accepted;
    let (registered, updates) = (world.mobile.care_of(), world.sent.len());
    for (addresses, bytes) in world.recorded.clone() {
        world.tell(Input::Mobility { interface: WLAN, addresses, message: &bytes });
    }
    world.run(SECOND * 5);
    assert_eq!((world.mobile.care_of(), world.mobile.counters().accepted), (registered, accepted));
    assert_eq!(world.sent.len(), updates);
}

/// RFC 6275 section 11.7.3: an acknowledgement without the home agent's authenticator is ignored, whatever it says.
#[test]
fn forged_acknowledgements_are_ignored() {
    let mut world = World::simple(timestamps());
    world.home_is_dead = true;
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND);
    let sent = world.sent.iter().rev().find_map(|(_, _, message)| match message {
        Message::BindingUpdate(update) => Some(update.clone()),
        _ => None,
    });
    let sequence = sent.expect("an update").sequence;
    let addresses = Addresses::new(HA, care_of(2)).with_type_2_routing(HOME);
    for status in [0, 1, 128, 129, 132, 133, 134, 135, 136, 144, 145, 146] {
        let forged = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::from_number(status),
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime: Lifetime::from_units(75),
            options: MobilityOptions::new(),
        });
        let bytes = forged.emit(HA, HOME).unwrap();
        world.tell(Input::Mobility { interface: WLAN, addresses, message: &bytes });
    }
    assert_eq!(world.mobile.counters().dropped(DropReason::MissingAuthenticator), 12);
    assert!(!world.mobile.is_registered());
    world.home_is_dead = false;
    world.run(SECOND * 10);
    assert_eq!(world.tunnelled_to(), [care_of(2)], "the node goes on as if nothing had been said");
}

/// A flood of forged updates costs nobody else an answer, and the home agent no memory.
#[test]
fn a_flood_of_forged_updates_does_not_hinder_the_mobile_node() {
    let mut world = World::simple(timestamps());
    let mut random = RandomStream::new(3, 0, "flood");
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    for round in 0..50 {
        for _ in 0..100 {
            let host =
                std::net::Ipv6Addr::from_bits(0x2001_0db8_0070_u128 << 80 | u128::from(random.next_u64()));
            let forged = Update { key: b"a guess", ..Update::new(random.next_u64() as u16, host) };
            let (addresses, bytes) = forged.stamped(clock().at(world.now)).packet();
            let input = Input::Mobility { interface: HOME_IF, addresses, message: &bytes };
            world.home.handle_input(world.now, input);
        }
        if round == 20 {
            world.detach(WLAN);
            world.attach(WLAN, 3);
        }
        world.run(Duration::from_millis(100));
    }
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    assert_eq!(world.home.binding_count(), 1);
    let answered = world.home.counters().refused(146);
    assert!(answered < 250, "{answered} answers to 5000 forgeries");
}

/// RFC 6275 section 9.5.1: somebody with an old recording cannot lead the numbers astray; nor can an acknowledgement of another update.
#[test]
fn numbers_cannot_be_led_astray_by_recordings() {
    let mut world = World::simple(sequence_numbers());
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    for network in [3, 4, 5] {
        world.detach(WLAN);
        world.attach(WLAN, network);
        world.run(SECOND * 2);
        for (addresses, bytes) in world.recorded.clone() {
            let input = Input::Mobility { interface: HOME_IF, addresses, message: &bytes };
            world.home.handle_input(world.now, input);
            world.tell(Input::Mobility { interface: WLAN, addresses, message: &bytes });
        }
        world.run(SECOND * 2);
        assert_eq!(world.tunnelled_to(), [care_of(network)]);
    }
}

/// The home agent signs its refusal of a damaged copy (RFC 4285 section 5.1), and accepts the update that the copy has overtaken.
#[test]
fn a_refusal_of_a_damaged_copy_does_not_leave_the_two_with_different_care_of_addresses() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = World::simple(security);
        world.attach(WLAN, 2);
        world.switch_to(WLAN);
        world.run(SECOND * 2);
        world.attach(GSM, 4);
        world.switch_to(GSM);
        let (addresses, mut copy) = world.recorded.last().cloned().expect("an update");
        assert_eq!(addresses.source, care_of(4));
        // The lifetime.
        copy[11] ^= 1;
        make_checksum_right(addresses, &mut copy);
        let input = Input::Mobility { interface: HOME_IF, addresses, message: &copy };
        world.home.handle_input(world.now, input);
        world.run(SECOND * 5);
        assert_eq!(world.home.counters().refused(146), 1);
        assert_eq!(world.tunnelled_to(), [world.mobile.care_of().expect("it is away")]);
    }
}

/// RFC 6275 section 10.4.5: who does not send from the care-of address gets nothing through the home agent.
#[test]
fn tunnels_from_elsewhere_are_not_taken_out() {
    let world = travelled();
    assert!(!world.home.accepts_reverse_tunnel(HOME, care_of(66)));
    assert!(!world.home.accepts_reverse_tunnel(care_of(66), care_of(3)));
    assert!(!world.mobile.accepts_tunnel_from(care_of(66)), "section 11.3.3");
}

/// No bytes make either of them panic, hang or believe something.
#[test]
fn garbage_has_no_effect() {
    let mut world = travelled();
    let mut random = RandomStream::new(5, 0, "garbage");
    let before = (world.tunnelled_to(), world.mobile.care_of());
    for round in 0..20_000 {
        let recorded = &world.recorded[random.below(world.recorded.len() as u64) as usize];
        let (addresses, mut bytes) = recorded.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        // Half of them with a right checksum.
        if round % 2 == 0 {
            make_checksum_right(addresses, &mut bytes);
        }
        world
            .home
            .handle_input(world.now, Input::Mobility { interface: HOME_IF, addresses, message: &bytes });
        world.tell(Input::Mobility { interface: WLAN, addresses, message: &bytes });
        let hop_limit = random.next_u64() as u8;
        world.home.handle_input(
            world.now,
            Input::Icmp { interface: HOME_IF, addresses, hop_limit, message: &bytes },
        );
        world.tell(Input::Icmp { interface: WLAN, addresses, hop_limit, message: &bytes });
    }
    world.run(SECOND);
    assert_eq!((world.tunnelled_to(), world.mobile.care_of()), before);
}
