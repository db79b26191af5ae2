//! Routers and anchor points that lie, and others who have no key.

use careof_base::RandomStream;
use careof_mobility::v6::*;
use careof_wire::icmpv6::{MapOption, PrefixLifetime};
use careof_wire::mip6::{
    AcknowledgementFlags, Algorithm, BindingAcknowledgement, BindingError, BindingErrorStatus,
    BindingRefreshRequest, BindingStatus, BindingUpdate, CareOfTest, HomeTest, InitCookie, KeygenToken,
    Lifetime, Message, MobileHomeAuthentication, MobilityOption, MobilityOptions, NonceIndex, NtpTimestamp,
    SequenceNumber, Spi, UpdateFlags,
};
use std::net::Ipv6Addr;

use super::world::*;
use crate::v6::craft::{HA, HOME, HOME_IF, care_of, clock, make_checksum_right};
use crate::v6::world::{CN, WLAN};

/// Whoever binds but does not forward is left, and nothing is lost but time.
#[test]
fn an_anchor_point_that_forwards_nothing_is_left() {
    let mut world = World::new(mobile_config());
    world.anchor(WEST).black_hole = true;
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 30);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(2)], None));
    world.check_both_ways();
    // It is tried again, less and less often.
    let before = world.updates.len();
    world.run(SECOND * 1000);
    let to_map = world.updates[before..].iter().filter(|(_, way, _)| way.destination == map(WEST)).count();
    assert!((1..25).contains(&to_map), "{to_map}");
    world.run(SECOND * 60);
    world.check_both_ways();
}

/// One that grants next to nothing would have the node ask forever.
#[test]
fn an_anchor_point_that_grants_next_to_nothing_is_left() {
    let mut world = World::new(mobile_config());
    let short = MobilityAnchorPointConfig { max_lifetime: Lifetime::from_units(1), ..anchor_config(WEST) };
    world.anchor(WEST).node =
        MobilityAnchorPoint::new(world.now, short, RandomStream::new(7, 0, "short")).unwrap();
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 10);
    assert_eq!((world.bound_at_home(), world.mobile.map()), (vec![care_of(2)], None));
    world.check_both_ways();
}

/// Who is on the link can tell of as many anchor points as he likes: those without a security association are nothing.
#[test]
fn invented_anchor_points_take_neither_room_nor_packets() {
    let mut world = World::on(2);
    let before = world.updates.len();
    let mut random = RandomStream::new(1, 0, "liar");
    for _ in 0..2_000 {
        let number = random.next_u64();
        let invented = MapOption {
            address: Ipv6Addr::from_bits(0x2001_0db8_0066_u128 << 80 | u128::from(number)),
            ..option(WEST, 15, 15)
        };
        world.advertise(WLAN, &[invented; 8]);
        let router = Ipv6Addr::from_bits(0xfe80_u128 << 112 | u128::from(number));
        world.tell(Input::MapsFound { interface: WLAN, router, maps: &[option(EAST, 9, 9)] });
    }
    assert_eq!((world.mobile.map(), world.updates.len()), (Some((map(WEST), care_of(2))), before));
    assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedSource), 2_000);
    assert!(format!("{:?}", world.mobile).len() < 40_000, "it has grown");
    world.check_both_ways();
}

/// A liar that lets an anchor point fail again and again costs updates, no more than a few a second.
#[test]
fn an_anchor_point_that_comes_and_goes_does_not_cause_a_storm() {
    let mut world = World::on(2);
    let before = world.updates.len();
    let failed = MapOption { valid_lifetime: PrefixLifetime::ZERO, ..option(WEST, 2, 10) };
    for _ in 0..200 {
        world.advertise(WLAN, &[failed]);
        world.run(SECOND / 20);
        world.advertise(WLAN, &[option(WEST, 2, 10)]);
        world.run(SECOND / 20);
    }
    let sent = world.updates.len() - before;
    // 20 s; three a second to the home agent, and to the anchor point ever more seldom.
    assert!(sent <= 80, "{sent}");
    world.run(SECOND * 40);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    world.check_both_ways();
}

/// What somebody without a key says of registrations is ignored, whoever he says he is.
#[test]
fn forged_answers_of_an_anchor_point_change_nothing() {
    let mut world = World::on(2);
    world.anchor(WEST).dead = true;
    world.move_to(3);
    let sequence = world.updates.last().expect("an update").2.sequence;
    for status in [0, 128, 129, 132, 133, 134, 135, 144, 145, 146, 174] {
        let options = MobilityOptions::new();
        let forged = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::from_number(status),
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime: Lifetime::from_units(75),
            options,
        });
        let way = Addresses::new(map(WEST), care_of(3));
        // Without a routing header it is ignored in any case (RFC 5380 section 6.1).
        for way in [way.with_type_2_routing(regional(WEST)), way] {
            let bytes = forged.emit(way.source, way.real_destination()).unwrap();
            world.forge(way, &bytes);
        }
    }
    assert_eq!(world.mobile.counters().dropped(DropReason::MissingAuthenticator), 11);
    assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedAnswer), 11);
    let error = Message::BindingError(BindingError {
        status: BindingErrorStatus::UnrecognizedMhType,
        home_address: regional(WEST),
        options: MobilityOptions::new(),
    });
    world.forge(Addresses::new(map(WEST), care_of(3)), &error.emit(map(WEST), care_of(3)).unwrap());
    assert!(world.mobile.delivery(CN).is_none(), "it is not registered from here");
    world.anchor(WEST).dead = false;
    world.run(SECOND * 5);
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(3)], vec![regional(WEST)]));
}

/// Recordings, as they were and in tunnels, played to everybody.
#[test]
fn recordings_move_nobody() {
    let mut world = World::on(2);
    world.check_both_ways();
    for network in [3, BORDER, EAST_LINK, 2, 3] {
        world.move_to(network);
        world.run(SECOND * 5);
    }
    world.run(SECOND * 70);
    let state = |world: &World| (world.bound_at(WEST), world.bound_at(EAST), world.bound_at_home());
    let before = state(&world);
    assert_eq!((&before.0, &before.2), (&vec![care_of(3)], &vec![regional(WEST)]));
    let updates = world.updates.len();
    for (addresses, bytes) in world.recorded.clone() {
        let inner = Addresses { map_tunnel: None, ..addresses };
        let from_map = Tunnel { entry: map(WEST), exit: care_of(3) };
        for way in [addresses, inner, inner.through_map(from_map)] {
            world.forge(way, &bytes);
        }
        let input = Input::Mobility { interface: HOME_IF, addresses: inner, message: &bytes };
        world.home.handle_input(world.now, input);
        for number in [WEST, EAST] {
            let now = world.now;
            world.anchor(number).node.handle_input(now, input);
        }
    }
    world.run(SECOND);
    assert_eq!((state(&world), world.updates.len()), (before, updates));
    world.check_both_ways();
}

/// An anchor point knows the key of the regional care-of address, not that of the home address: it cannot move that.
#[test]
fn an_anchor_point_cannot_register_with_the_home_agent() {
    let mut world = World::on(2);
    let key = association(WEST);
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: SequenceNumber(1),
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
        lifetime: Lifetime::from_units(75),
        options: MobilityOptions::new(),
    });
    let authentication = careof_wire::mip6::MobileHomeAuthentication {
        spi: key.spi(),
        algorithm: key.algorithm(),
        key: key.key(),
        care_of_address: map(WEST),
        home_address: HOME,
    };
    let way = Addresses::new(map(WEST), HA).with_home_address(HOME);
    let bytes = update.emit_authenticated(HOME, HA, &authentication).unwrap();
    let input = Input::Mobility { interface: HOME_IF, addresses: way, message: &bytes };
    world.home.handle_input(world.now, input);
    world.run(SECOND);
    assert_eq!(world.bound_at_home(), [regional(WEST)]);
    assert_eq!(world.home.counters().refused(146), 1);
}

/// Addresses that a forger may name.
const NAMES: [Ipv6Addr; 10] =
    [HA, HOME, CN, map(WEST), map(EAST), regional(WEST), regional(EAST), care_of(2), care_of(3), care_of(66)];

/// A message as somebody without a key makes it.
fn forged(random: &mut RandomStream, now: careof_base::Instant, sequence: SequenceNumber) -> Message {
    let mut name = || NAMES[random.below(NAMES.len() as u64) as usize];
    let (home_address, care_of) = (name(), name());
    let bits = random.next_u64();
    let mut options = MobilityOptions::new();
    if bits & 1 != 0 {
        options.push(MobilityOption::AlternateCareOfAddress(care_of));
    }
    if bits & 2 != 0 {
        options.push(MobilityOption::ReplayProtection(NtpTimestamp(clock().at(now).to_bits())));
    }
    let lifetime = Lifetime::from_units((bits >> 8) as u16 % 100);
    match random.below(6) {
        0 | 1 => Message::BindingUpdate(BindingUpdate {
            sequence,
            flags: UpdateFlags((bits >> 32) as u16 & 0xffc0),
            lifetime,
            options,
        }),
        2 | 3 => Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::from_number((bits >> 48) as u8),
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime,
            options,
        }),
        4 => {
            let (cookie, token) = (InitCookie(bits.to_be_bytes()), KeygenToken([7; 8]));
            let nonce_index = NonceIndex(1);
            match bits % 3 {
                0 => Message::HomeTest(HomeTest { nonce_index, cookie, token, options }),
                1 => Message::CareOfTest(CareOfTest { nonce_index, cookie, token, options }),
                _ => Message::BindingRefreshRequest(BindingRefreshRequest { options }),
            }
        }
        _ => Message::BindingError(BindingError {
            status: BindingErrorStatus::UnknownBinding,
            home_address,
            options: MobilityOptions::new(),
        }),
    }
}

/// From any address and in any tunnels, to everybody, whatever they are busy with.
#[test]
fn what_somebody_without_a_key_says_changes_nobodys_mind() {
    let mut world = World::on(2);
    world.check_both_ways();
    let mut random = RandomStream::new(11, 0, "forger");
    let state = |world: &World| {
        let bound = (world.bound_at(WEST), world.bound_at(EAST), world.bound_at_home());
        (bound, world.mobile.map(), world.mobile.care_of(), world.mobile.is_registered())
    };
    let mut refused = 0;
    for round in 0..3_000_u64 {
        if round % 100 == 0 {
            // In the middle of a registration as well as at rest.
            world.move_to([3, EAST_LINK, BORDER, PLAIN_LINK, 2][(round / 100 % 5) as usize]);
        }
        if round % 10 == 0 {
            world.run(SECOND / 50);
        }
        let before = state(&world);
        let sent = world.updates.len();
        let sequence = world.updates.last().expect("an update").2.sequence;
        let message = forged(&mut random, world.now, sequence);
        let mut name = || NAMES[random.below(NAMES.len() as u64) as usize];
        let mut way = Addresses::new(name(), name());
        let (tunnel, outer) =
            (Tunnel { entry: name(), exit: name() }, Tunnel { entry: name(), exit: name() });
        let (home, routing) = (name(), name());
        let bits = random.next_u64();
        way.home_address = (bits & 1 != 0).then_some(home);
        way.type_2_routing = (bits & 2 != 0).then_some(routing);
        if bits & 96 == 0 {
            // As the node itself would ask.
            (way.destination, way.home_address, way.type_2_routing) = (map(WEST), Some(regional(WEST)), None);
        }
        let authentication = MobileHomeAuthentication {
            spi: Spi(256),
            algorithm: Algorithm::HmacSha1,
            key: b"a guess",
            care_of_address: way.source,
            home_address: way.real_source(),
        };
        let ends = (way.real_source(), way.real_destination());
        let bytes = match bits & 4 {
            0 => message.emit(ends.0, ends.1),
            _ => message.emit_authenticated(ends.0, ends.1, &authentication),
        };
        let Ok(bytes) = bytes else { continue };
        let to_agents = Input::Mobility { interface: HOME_IF, addresses: way, message: &bytes };
        let now = world.now;
        world.home.handle_input(now, to_agents);
        world.anchors.values_mut().for_each(|anchor| anchor.node.handle_input(now, to_agents));
        way.tunnel = (bits & 8 != 0).then_some(tunnel);
        way.map_tunnel = (bits & 16 != 0).then_some(outer);
        world.forge(way, &bytes);
        assert_eq!(state(&world), before, "{message:?} {way:?}");
        // A Binding Error, which nothing protects, may have a registration be renewed.
        assert!(world.updates.len() <= sent + 2, "{message:?} {way:?}");
        refused += u64::from(!world.mobile.accepts_tunnels(&way));
    }
    assert!(refused > 1_000, "{refused}");
    let dropped = |reason| world.anchors[&WEST].node.counters().dropped(reason);
    assert!(dropped(DropReason::BadAuthenticator) > 20, "the right places were hit");
    assert!(world.mobile.counters().dropped(DropReason::UnexpectedAnswer) > 100);
    world.run(SECOND * 10);
    world.move_to(3);
    world.run(SECOND * 40);
    assert_eq!((world.bound_at(WEST), world.bound_at_home()), (vec![care_of(3)], vec![regional(WEST)]));
    world.check_both_ways();
}

/// No bytes make any of them panic, hang or believe something.
#[test]
fn garbage_has_no_effect() {
    let mut world = World::on(2);
    world.check_both_ways();
    world.move_to(3);
    world.run(SECOND * 3);
    let mut random = RandomStream::new(5, 0, "garbage");
    let before = (world.bound_at(WEST), world.bound_at_home(), world.mobile.map());
    for round in 0..6_000 {
        let at = random.below(world.recorded.len() as u64) as usize;
        let (addresses, mut bytes) = world.recorded[at].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        if round % 2 == 0 {
            make_checksum_right(addresses, &mut bytes);
        }
        let now = world.now;
        let inner = Addresses { map_tunnel: None, ..addresses };
        let input = Input::Mobility { interface: HOME_IF, addresses: inner, message: &bytes };
        world.anchor(WEST).node.handle_input(now, input);
        world.home.handle_input(now, input);
        world.forge(addresses, &bytes);
        world.forge(Addresses::new(CN, addresses.destination), &bytes);
    }
    world.run(SECOND);
    assert_eq!((world.bound_at(WEST), world.bound_at_home(), world.mobile.map()), before);
}
