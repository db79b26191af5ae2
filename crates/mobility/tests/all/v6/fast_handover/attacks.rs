//! What those can do who have no key, or one that is not for everything.

use careof_base::Duration;
use careof_mobility::v6::access_router::{self, AccessRouterConfig};
use careof_mobility::v6::fast_handover::Event;
use careof_mobility::v6::{DropReason, TransmitPayload};
use careof_wire::icmpv6::{
    AddressRole, HandoverAddress, HandoverLinkLayerAddress, Icmpv6Message, LinkLayerRole, Naack, NaackStatus,
    NdOption, PrRtAdv, PrRtAdvCode, RouterAdvertisement,
};
use careof_wire::mip6::{
    FastBindingStatus, HandoverCode, InitiateCode, Message, SequenceNumber, Spi, UpdateFlags,
};
use std::net::Ipv6Addr;

use super::messages::*;
use super::world::*;

const MS: Duration = Duration::from_millis(1);

/// Hands a message to router 0 and gives what it has sent.
fn to_router(world: &mut World, router: usize, (addresses, hop_limit, payload): Crafted) -> usize {
    let before = world.sent.len();
    world.inject(router, addresses, hop_limit, payload);
    world.sent.len() - before
}

fn on_link(world: &mut World, router: usize, (addresses, hop_limit, payload): Crafted) -> usize {
    let before = world.sent.len();
    world.inject_from_link(router, addresses, hop_limit, payload);
    world.sent.len() - before
}

fn dropped(world: &World, router: usize, reason: DropReason) -> u64 {
    world.routers[router].counters().dropped(reason)
}

#[test]
fn the_update_that_the_others_are_changes_of_is_accepted() {
    let mut world = World::new();
    let update = Update::new(world.now, care_of(1));
    assert_eq!(to_router(&mut world, 0, update.packet()), 1, "a Handover Initiate");
    world.run(MS * 50);
    assert!(world.routers[0].tunnel(care_of(0)).is_some());
}

#[test]
fn updates_that_the_node_has_not_made_are_dropped_in_silence() {
    let mut world = World::new();
    let genuine = Update::new(world.now, care_of(1));
    let none = UpdateFlags::default();
    for (update, reason) in [
        (Update { key: b"a guess", ..genuine.clone() }, DropReason::BadAuthenticator),
        (Update { spi: Spi(257), ..genuine.clone() }, DropReason::UnknownSpi),
        (Update { signed: false, ..genuine.clone() }, DropReason::MissingAuthenticator),
        (Update { flags: none, ..genuine.clone() }, DropReason::PoorlyFormed),
        (Update { flags: UpdateFlags::ACKNOWLEDGE, ..genuine.clone() }, DropReason::PoorlyFormed),
        (Update { stamp: None, ..genuine.clone() }, DropReason::Replayed),
        (Update { previous: care_of(2), ..genuine.clone() }, DropReason::NotForUs),
        (
            Update { previous: prefix(0).with_interface_of(Ipv6Addr::LOCALHOST), ..genuine.clone() },
            DropReason::UnknownHomeAddress,
        ),
    ] {
        let before = dropped(&world, 0, reason);
        assert_eq!(to_router(&mut world, 0, update.packet()), 0, "{update:?}");
        assert_eq!(dropped(&world, 0, reason), before + 1, "{update:?}");
        assert_eq!(world.routers[0].departure_count(), 0);
    }
}

/// RFC 5568 section 10: the target of a redirection is an address of a router that the previous one trusts.
#[test]
fn a_node_with_a_key_cannot_have_packets_sent_anywhere_but_to_neighbors() {
    let mut world = World::new();
    let victim = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);
    for (new, source) in [
        (victim, care_of(0)),
        (victim, victim),
        (care_of(1), victim),
        (Ipv6Addr::UNSPECIFIED, care_of(0)),
        (prefix(0).with_interface_of(Ipv6Addr::LOCALHOST), care_of(0)),
    ] {
        world.run(Duration::from_secs(1));
        let update = Update { source, ..Update::new(world.now, new) };
        assert_eq!(to_router(&mut world, 0, update.packet()), 1, "a refusal: {update:?}");
        let status = FastBindingStatus::ReasonUnspecified;
        assert!(world.router_said(0, |event| matches!(
            event, access_router::Event::Refused { status: found, .. } if *found == status
        )));
        assert_eq!(world.routers[0].departure_count(), 0);
    }
}

/// RFC 5568 section 10, "Sending an FBU from a NAR's link".
#[test]
fn a_node_with_a_key_cannot_name_the_address_of_another_on_the_new_link() {
    let mut world = World::new();
    world.occupy(1, care_of(1));
    world.run(MS);
    let update = Update { source: care_of(1), ..Update::new(world.now, care_of(1)) };
    to_router(&mut world, 0, update.packet());
    world.run(MS * 100);
    assert_eq!(world.routers[0].tunnel(care_of(0)), None);
    assert!(world.router_said(1, |event| matches!(
        event,
        access_router::Event::Initiated { code: HandoverCode::AcceptedAddressInUse, .. }
    )));
}

/// The same on the old link, where the new router looks for duplicates: the packets of who is there go on meanwhile.
#[test]
fn while_an_address_is_in_doubt_its_packets_go_to_whom_they_are_for() {
    let mut world = World::with(
        |router| AccessRouterConfig {
            duplicate_address_detection: Some(Duration::from_secs(1)),
            ..router_config(router)
        },
        node_config(),
    );
    world.taken.insert(care_of(1));
    let update = Update::new(world.now, care_of(1));
    to_router(&mut world, 0, update.packet());
    world.run(MS * 100);
    assert_eq!(world.routers[1].arrival_count(), 1);
    let now = world.now;
    let verdict = world.routers[1].handle_packet(now, care_of(1), 100);
    assert_eq!(verdict, access_router::Verdict::Pass(access_router::Way::Link));
    world.run(Duration::from_secs(2));
    assert_ne!(world.routers[0].tunnel(care_of(0)).unwrap().exit, care_of(1));
}

#[test]
fn recorded_updates_are_worth_nothing_and_use_nothing_up() {
    let mut world = World::new();
    let first = Update::new(world.now, care_of(1)).packet();
    to_router(&mut world, 0, first.clone());
    world.run(MS * 50);
    // At once: in silence.
    for _ in 0..100 {
        assert_eq!(to_router(&mut world, 0, first.clone()), 0);
    }
    world.run(LATER);
    assert_eq!(world.routers[0].departure_count(), 0);
    // Later: with the time of day, a few times.
    let answers: usize = (0..100).map(|_| to_router(&mut world, 0, first.clone())).sum();
    assert_eq!(answers, 16);
    assert_eq!(world.routers[0].departure_count(), 0);
    let fresh = Update { sequence: 2, ..Update::new(world.now, care_of(1)) };
    to_router(&mut world, 0, fresh.packet());
    assert_eq!(world.routers[0].departure_count(), 1, "the node itself is served");
}

#[test]
fn a_node_with_a_key_asks_the_new_router_no_more_often_than_its_ration_allows() {
    let mut world = World::new();
    let mut asked = 0;
    for n in 0..200_u16 {
        world.run(MS);
        let new = prefix(1).with_interface_of(Ipv6Addr::from_bits(u128::from(n) + 100));
        let update = Update { sequence: n + 1, ..Update::new(world.now, new) };
        asked += to_router(&mut world, 0, update.packet());
    }
    // And what one router answers the other, and the acknowledgments.
    assert!(asked <= 16 * 4, "{asked}");
    assert!(dropped(&world, 0, DropReason::OverRation) > 150);
    assert_eq!(world.routers[0].departure_count(), 1);
}

#[test]
fn nobody_is_expected_because_a_stranger_says_so() {
    let mut world = World::new();
    let genuine = Initiate::new(world.now, care_of(0), care_of(1));
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);
    for (initiate, reason) in [
        (Initiate { from: stranger, ..genuine.clone() }, DropReason::UnexpectedSource),
        (Initiate { key: None, ..genuine.clone() }, DropReason::MissingAuthenticator),
        (Initiate { key: Some(b"a guess"), ..genuine.clone() }, DropReason::BadAuthenticator),
        (Initiate { stamp: None, ..genuine.clone() }, DropReason::Replayed),
        // A neighbor tells of the nodes on its own link.
        (Initiate { previous: care_of(2), ..genuine.clone() }, DropReason::PoorlyFormed),
    ] {
        assert_eq!(to_router(&mut world, 1, initiate.packet()), 0, "{initiate:?}");
        assert!(dropped(&world, 1, reason) > 0, "{initiate:?}");
        assert_eq!(world.routers[1].arrival_count(), 0);
    }
    assert_eq!(to_router(&mut world, 1, genuine.packet()), 1);
    assert_eq!(world.routers[1].arrival_count(), 1);
    // What comes back to its sender is not the other router's.
    let (mut addresses, hop_limit, payload) = genuine.packet();
    core::mem::swap(&mut addresses.source, &mut addresses.destination);
    assert_eq!(to_router(&mut world, 0, (addresses, hop_limit, payload)), 0);
    assert_eq!(world.routers[0].arrival_count(), 0);
}

#[test]
fn a_recorded_initiate_expects_nobody_again() {
    let mut world = World::new();
    let recorded = Initiate::new(world.now, care_of(0), care_of(1)).packet();
    assert_eq!(to_router(&mut world, 1, recorded.clone()), 1);
    for _ in 0..10 {
        assert_eq!(to_router(&mut world, 1, recorded.clone()), 0, "neither is it answered again");
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.routers[1].arrival_count(), 0);
    assert_eq!(to_router(&mut world, 1, recorded), 0);
    assert_eq!(world.routers[1].arrival_count(), 0);
    // With one that was lost on the way and comes late it is no different from another node's.
    let next = Initiate { sequence: 2, ..Initiate::new(world.now, care_of(0), care_of(1)) };
    assert_eq!(to_router(&mut world, 1, next.packet()), 1);
}

#[test]
fn a_router_that_goes_mad_fills_half_of_the_room_at_most() {
    let mut world = World::with(
        |router| AccessRouterConfig { max_arrivals: 100, ..router_config(router) },
        node_config(),
    );
    for n in 0..1000_u128 {
        world.now += Duration::from_micros(10);
        let of = |router: usize| prefix(router).with_interface_of(Ipv6Addr::from_bits(n + 100));
        let initiate = Initiate { sequence: n as u16, ..Initiate::new(world.now, of(0), of(1)) };
        assert_eq!(to_router(&mut world, 1, initiate.packet()), 1, "each has its answer");
    }
    assert_eq!(world.routers[1].arrival_count(), 50);
    assert!(world.router_said(1, |event| matches!(
        event,
        access_router::Event::Initiated { code: HandoverCode::InsufficientResources, .. }
    )));
    world.now += MS;
    let of = |router: usize| prefix(router).with_interface_of(Ipv6Addr::from_bits(7));
    let other = Initiate { from: address(2), ..Initiate::new(world.now, of(2), of(1)) };
    to_router(&mut world, 1, other.packet());
    assert_eq!(world.routers[1].arrival_count(), 51, "others are served");
    world.run(Duration::from_secs(2));
    assert_eq!(world.routers[1].arrival_count(), 0);
}

#[test]
fn no_acknowledge_is_believed_but_that_of_the_router_asked() {
    let mut world = World::new();
    // The new router is silent.
    world.routers[1].handle_timeout(world.now);
    let update = Update::new(world.now, care_of(1));
    world.faults.loss = 1.0;
    to_router(&mut world, 0, update.packet());
    let (_, _, payload) = world.sent.last().unwrap().clone();
    let TransmitPayload::Mobility(bytes) = payload else { panic!("{payload:?}") };
    let Ok(Message::HandoverInitiate(initiate)) = Message::parse(address(0), address(1), &bytes) else {
        panic!("it asks the new router");
    };
    let (number, sent) = (initiate.sequence.0, initiate.options.replay_protection());
    assert!(sent.is_some());
    let accepted = HandoverCode::Accepted;
    for (forged, reason) in [
        (acknowledge(number, accepted, sent, None), DropReason::MissingAuthenticator),
        (acknowledge(number, accepted, sent, Some(b"a guess")), DropReason::BadAuthenticator),
        (acknowledge(number.wrapping_add(1), accepted, sent, Some(ROUTER_KEY)), DropReason::UnexpectedAnswer),
        (acknowledge(number, accepted, None, Some(ROUTER_KEY)), DropReason::Replayed),
        (
            acknowledge(number, accepted, Some(stamp(careof_base::Instant::ZERO)), Some(ROUTER_KEY)),
            DropReason::Replayed,
        ),
        (acknowledge(number, HandoverCode::Unsolicited, sent, Some(ROUTER_KEY)), DropReason::NotOffered),
    ] {
        let before = dropped(&world, 0, reason);
        to_router(&mut world, 0, forged);
        assert_eq!(dropped(&world, 0, reason), before + 1, "{reason:?}");
        assert_eq!(world.routers[0].tunnel(care_of(0)), None);
    }
    to_router(&mut world, 0, acknowledge(number, accepted, sent, Some(ROUTER_KEY)));
    assert!(world.routers[0].tunnel(care_of(0)).is_some());
}

#[test]
fn an_announcement_of_another_station_gets_no_packets() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    world.leave();
    world.send_data(1, care_of(0));
    world.run(MS * 20);
    let waiting = world.routers[1].buffered();
    assert!(waiting.0 > 0);
    let before = world.sent.len();
    world.occupy(1, care_of(1));
    assert_eq!(world.routers[1].buffered(), waiting);
    let answers = &world.sent[before..];
    assert_eq!(answers.len(), 1, "NAACK: the link-layer address is not known");
    world.come_to(1);
    world.run(MS * 50);
    assert_eq!(world.numbers(), [1]);
}

#[test]
fn announcements_without_end_are_refused_with_measure_and_remembered_with_measure() {
    let mut world = World::new();
    world.occupy(1, care_of(1));
    let mut answers = 0;
    for n in 0..5000_u128 {
        let station = careof_wire::icmpv6::LinkLayerAddress([2, 0, 0, 1, (n >> 8) as u8, n as u8]);
        answers += on_link(&mut world, 1, announcement(care_of(1), station));
        let other = prefix(1).with_interface_of(Ipv6Addr::from_bits(n + 1000));
        answers += on_link(&mut world, 1, announcement(other, station));
    }
    assert_eq!(answers, 32);
    // A router forgets who does not concern it.
    world.run(LATER);
    assert!(world.routers[1].next_timeout().is_none());
}

#[test]
fn questions_make_no_state_and_are_answered_with_measure() {
    let mut world = World::new();
    let wildcard = HandoverLinkLayerAddress::WILDCARD;
    let one = |n| HandoverLinkLayerAddress { role: LinkLayerRole::NewAccessPoint, address: access_point(n) };
    let answers: usize =
        (0..1000).map(|_| on_link(&mut world, 0, solicitation(care_of(0), vec![wildcard]))).sum();
    assert_eq!(answers, 64);
    assert!(world.routers[0].next_timeout().is_none());
    world.run(LATER);
    assert_eq!(on_link(&mut world, 0, solicitation(care_of(0), vec![wildcard, one(1)])), 0);
    assert_eq!(on_link(&mut world, 0, solicitation(care_of(0), Vec::new())), 0);
    assert_eq!(on_link(&mut world, 0, solicitation(Ipv6Addr::UNSPECIFIED, vec![one(1)])), 0);
    let (addresses, _, payload) = solicitation(care_of(0), vec![one(1)]);
    assert_eq!(on_link(&mut world, 0, (addresses, 254, payload)), 0, "a router has forwarded it");
    // However many are asked for, the answer is no longer than a packet.
    let before = world.sent.len();
    on_link(&mut world, 0, solicitation(care_of(0), (0..200).map(one).collect()));
    assert!(world.sent[before..].iter().all(|(_, _, payload)| payload.bytes().len() <= 1240));
    assert_eq!(world.sent.len(), before + 1);
}

fn proxy_advertisement(source: Ipv6Addr, code: PrRtAdvCode, identifier: u16) -> Crafted {
    let link_layer =
        |role, address| NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address });
    let rogue = Ipv6Addr::new(0x2001, 0xdb8, 0x66, 0, 0, 0, 0, 1);
    let options = vec![
        link_layer(LinkLayerRole::NewAccessPoint, OTHER_STATION),
        NdOption::HandoverAddress(HandoverAddress::new(AddressRole::NewAccessRouter, rogue)),
    ];
    icmp(source, care_of(0), &Icmpv6Message::PrRtAdv(PrRtAdv { code, identifier, options }))
}

#[test]
fn a_node_is_told_of_neighbors_by_its_router_only_and_when_it_has_asked() {
    let mut world = World::new();
    let stranger = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);
    for (source, code, identifier) in [
        (stranger, PrRtAdvCode::HandoverTrigger, 0),
        (stranger, PrRtAdvCode::Unsolicited, 0),
        (link_local(0), PrRtAdvCode::Solicited, 7),
        (link_local(0), PrRtAdvCode::HandoverTrigger, 7),
        (link_local(0), PrRtAdvCode::UseDhcp, 0),
    ] {
        let (addresses, hop_limit, payload) = proxy_advertisement(source, code, identifier);
        world.tell_mobile(addresses, hop_limit, &payload);
        assert_eq!(world.mobile.access_point(OTHER_STATION), None, "{code:?}");
        assert_eq!(world.mobile.new_care_of(), None);
    }
    let (addresses, _, payload) = proxy_advertisement(link_local(0), PrRtAdvCode::Unsolicited, 0);
    world.tell_mobile(addresses, 254, &payload);
    assert_eq!(world.mobile.access_point(OTHER_STATION), None);
    world.tell_mobile(addresses, 255, &payload);
    assert!(world.mobile.access_point(OTHER_STATION).is_some());
}

#[test]
fn a_node_remembers_no_more_access_points_than_it_has_room_for() {
    let mut world = World::new();
    for n in 0..500_u16 {
        let [high, low] = n.to_be_bytes();
        let point = careof_wire::icmpv6::LinkLayerAddress([2, 0, 0, 9, high, low]);
        let role = LinkLayerRole::NoPrefixInformation;
        let options =
            vec![NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address: point })];
        let code = PrRtAdvCode::Unsolicited;
        let (addresses, hop_limit, payload) = icmp(
            link_local(0),
            care_of(0),
            &Icmpv6Message::PrRtAdv(PrRtAdv { code, identifier: 0, options }),
        );
        world.tell_mobile(addresses, hop_limit, &payload);
        let first = careof_wire::icmpv6::LinkLayerAddress([2, 0, 0, 9, 0, 0]);
        assert_eq!(world.mobile.access_point(first).is_some(), n < 64);
    }
}

#[test]
fn acknowledgments_of_others_say_nothing_to_the_node() {
    let mut world = World::new();
    world.discover();
    world.faults.loss = 1.0;
    world.prepare(1);
    let (_, _, payload) = world.sent.last().unwrap().clone();
    let TransmitPayload::Mobility(bytes) = payload else { panic!("{payload:?}") };
    let Ok(Message::FastBindingUpdate(update)) = Message::parse(care_of(0), address(0), &bytes) else {
        panic!("it asks its router");
    };
    let (sequence, sent) = (update.sequence, update.options.replay_protection());
    let (new, refused) = (care_of(1), FastBindingStatus::InsufficientResources);
    for (status, sequence, stamp, new, key) in [
        (FastBindingStatus::Accepted, sequence, sent, new, &b"a guess"[..]),
        (refused, sequence, sent, new, b"a guess"),
        (refused, SequenceNumber(sequence.0.wrapping_sub(1)), sent, new, KEY),
        (refused, sequence, None, new, KEY),
        (FastBindingStatus::Accepted, sequence, None, new, KEY),
        (FastBindingStatus::Accepted, sequence, sent, care_of(2), KEY),
    ] {
        let (addresses, hop_limit, payload) = fast_acknowledgement(sequence, status, stamp, (new, key));
        world.tell_mobile(addresses, hop_limit, &payload);
        assert!(!world.mobile.is_prepared());
        assert!(!world.mobile_said(|event| matches!(event, Event::Failed(_))));
    }
    let genuine = fast_acknowledgement(sequence, FastBindingStatus::Accepted, sent, (new, KEY));
    let (addresses, hop_limit, payload) = genuine;
    world.tell_mobile(addresses, hop_limit, &payload);
    assert!(world.mobile.is_prepared());
}

fn refusal(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    status: NaackStatus,
    address: Option<Ipv6Addr>,
) -> Crafted {
    let message = Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
        options: vec![NdOption::Naack(Naack { status, address })],
        ..RouterAdvertisement::default()
    });
    icmp(source, destination, &message)
}

#[test]
fn a_refused_address_is_replaced_by_one_of_the_link_while_the_announcement_is_new() {
    let mut world = World::new();
    world.discover();
    world.prepare(1);
    world.run(MS * 100);
    let other = prefix(1).with_interface_of(Ipv6Addr::from_bits(0x77));
    let supplied = NaackStatus::UseSuppliedAddress;
    let too_early = refusal(link_local(1), care_of(1), supplied, Some(other));
    world.tell_mobile(too_early.0, 255, &too_early.2);
    assert_eq!(world.mobile.new_care_of(), Some(care_of(1)));
    world.leave();
    world.come_to(1);
    for (told, hop_limit) in [
        (refusal(link_local(1), care_of(1), supplied, Some(other)), 254),
        (refusal(address(1), care_of(1), supplied, Some(other)), 255),
        (refusal(link_local(1), care_of(2), supplied, Some(other)), 255),
    ] {
        world.tell_mobile(told.0, hop_limit, &told.2);
        assert_eq!(world.mobile.new_care_of(), Some(care_of(1)));
    }
    let genuine = refusal(link_local(1), care_of(1), supplied, Some(other));
    world.tell_mobile(genuine.0, 255, &genuine.2);
    assert_eq!(world.mobile.new_care_of(), Some(other));
    // It sends an update with the new one, and is where that says.
    world.run(MS * 200);
    assert_eq!(world.routers[0].tunnel(care_of(0)).unwrap().exit, other);
    // An address of another link is none.
    let elsewhere = refusal(link_local(1), other, supplied, Some(care_of(2)));
    world.tell_mobile(elsewhere.0, 255, &elsewhere.2);
    assert!(world.mobile_said(|event| matches!(event, Event::Failed(_))));
    assert_eq!(world.mobile.new_care_of(), Some(other));
}

#[test]
fn initiates_of_an_unknown_code_are_refused() {
    let mut world = World::new();
    let code = InitiateCode::Unknown(9);
    let initiate = Initiate { code, ..Initiate::new(world.now, care_of(0), care_of(1)) };
    assert_eq!(to_router(&mut world, 1, initiate.packet()), 1);
    assert!(world.router_said(1, |event| matches!(
        event,
        access_router::Event::Initiated { code: HandoverCode::NotAccepted, .. }
    )));
    assert_eq!(world.routers[1].arrival_count(), 0);
}
