//! A mobile node's registrations with its home agent: when, how often, and what follows from the answers.

use careof_base::{Duration, Instant};
use careof_mobility::v6::*;
use careof_mobility::{Change, HandoverStyle, InterfaceId, Selection};
use careof_wire::icmpv6::PrefixLifetime;
use careof_wire::mip6::{BindingStatus, BindingUpdate, Lifetime, Message, UpdateFlags};
use std::collections::BTreeSet;

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn updates(world: &World) -> Vec<(Instant, Addresses, BindingUpdate)> {
    let update = |(at, addresses, message): &(Instant, Addresses, Message)| match message {
        Message::BindingUpdate(update) if addresses.destination == HA => {
            Some((*at, *addresses, update.clone()))
        }
        _ => None,
    };
    world.sent.iter().filter_map(update).collect()
}

fn registered(security: SecurityAssociation) -> World {
    let mut world = World::simple(security);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.mobile.care_of(), Some(care_of(2)));
    world
}

/// RFC 6275 section 11.7.1: H, A, the home address in an option, the care-of address as source and in an option.
#[test]
fn a_node_away_from_home_registers_its_care_of_address() {
    for security in [timestamps(), sequence_numbers()] {
        let world = registered(security);
        let (_, addresses, update) = &updates(&world)[0];
        assert_eq!(*addresses, Addresses::new(care_of(2), HA).with_home_address(HOME));
        assert_eq!(update.flags, UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION));
        assert_eq!(update.options.alternate_care_of_address(), Some(care_of(2)));
        assert_eq!(update.lifetime, Lifetime::from_units(75));
        assert_eq!(world.tunnelled_to(), [care_of(2)]);
        assert_eq!(
            updates(&world).len(),
            1,
            "the first wait is as long as Duplicate Address Detection takes"
        );
        let created =
            |event: &Event| matches!(event, Event::Binding(changed) if changed.change == Change::Created);
        assert!(world.mobile_events.iter().any(|(_, event)| created(event)));
    }
}

/// RFC 6275 section 11.8: 1.5 s for a first registration, doubled up to 32 s, each with a greater sequence number.
#[test]
fn an_update_that_nobody_answers_is_sent_again_at_growing_intervals() {
    let mut world = World::simple(sequence_numbers());
    world.home_is_dead = true;
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 200);
    let sent = updates(&world);
    let waits: Vec<_> = sent.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis()).collect();
    assert_eq!(waits, [1500, 3000, 6000, 12_000, 24_000, 32_000, 32_000, 32_000, 32_000]);
    assert!(sent.windows(2).all(|pair| pair[1].2.sequence.is_after(pair[0].2.sequence)));
    world.home_is_dead = false;
    world.run(SECOND * 40);
    assert_eq!(world.tunnelled_to(), [care_of(2)], "it never gives up");
}

/// RFC 6275 section 11.7.1: well before the end of the lifetime the binding is renewed; with an existing binding the first wait is 1 s.
#[test]
fn a_binding_is_renewed_after_three_quarters_of_its_lifetime() {
    let mut world = registered(sequence_numbers());
    let first = updates(&world)[0].0;
    world.run(SECOND * 225);
    world.home_is_dead = true;
    let renewal = updates(&world)[1].0;
    assert_eq!((renewal - first).as_secs(), 225);
    world.run(SECOND * 500);
    let sent = updates(&world);
    let second = sent[2].0;
    assert_eq!((second - sent[1].0).as_secs(), 225, "renewed in time, so again");
    assert_eq!((sent[3].0 - second).as_millis(), 1000);
    assert!(world.mobile.care_of().is_none(), "it has ended");
    assert!(world.mobile.delivery(CN).is_none());
}

/// RFC 6275 section 11.7.3: the home agent's advice shortens the interval.
#[test]
fn a_refresh_advice_is_taken() {
    let home = HomeAgentConfig { refresh_advice_percent: Some(10), ..config(timestamps()) };
    let mut world = World::new(node(timestamps()), home);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 33);
    assert_eq!(updates(&world).len(), 2, "after 28 s");
}

/// RFC 6275 section 11.5.5: at home the node deregisters from its home address, answers for it from then on, and tells the neighbours when it
/// is acknowledged.
#[test]
fn a_node_that_returns_home_deregisters_and_answers_for_its_address() {
    let mut world = registered(timestamps());
    world.detach(WLAN);
    world.mobile_events.clear();
    world.attach(WLAN, AT_HOME);
    let answer = NeighborEvent::Answer { interface: WLAN, address: HOME, on: true };
    let advertise = NeighborEvent::Advertise { interface: WLAN, address: HOME };
    let told = |world: &World, event| world.mobile_events.iter().any(|(_, e)| *e == Event::Neighbor(event));
    assert!(told(&world, answer) && !told(&world, advertise));
    world.run(SECOND);
    assert!(told(&world, advertise) && world.mobile.is_at_home());
    let (_, addresses, update) = updates(&world).pop().expect("an update");
    assert_eq!(addresses, Addresses::new(HOME, HA));
    assert_eq!((update.lifetime, update.options.alternate_care_of_address()), (Lifetime::ZERO, Some(HOME)));
    assert!(world.tunnelled_to().is_empty() && world.proxied.is_empty());
    assert!(world.send_up(1));
    world.send_down(1);
    world.run(SECOND);
    assert_eq!((&world.peer.data[..], &world.data[..]), (&[1][..], &[(1, false)][..]));
    // Away again: no longer its own address there.
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND * 2);
    assert!(told(&world, NeighborEvent::Answer { interface: WLAN, address: HOME, on: false }));
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
}

/// A lost acknowledgement of the return home is no harm: status 133 to the repetition says that there is no binding (RFC 6275 section
/// 10.3.2).
#[test]
fn a_node_that_was_never_away_is_at_home_all_the_same() {
    let mut world = World::simple(sequence_numbers());
    world.attach(WLAN, AT_HOME);
    world.switch_to(WLAN);
    world.run(SECOND);
    assert!(world.mobile.is_at_home());
    assert_eq!(world.home.counters().refused(133), 1);
}

/// RFC 6275 sections 9.5.1 and 11.7.3: after status 135 the node goes on from the number it is told.
#[test]
fn a_node_that_has_lost_its_numbers_adopts_those_of_the_home_agent() {
    let mut world = registered(sequence_numbers());
    let last = updates(&world)[0].2.sequence;
    let ahead = Update::new(last.0.wrapping_add(20_000), care_of(2)).packet();
    let input = Input::Mobility { interface: HOME_IF, addresses: ahead.0, message: &ahead.1 };
    world.home.handle_input(world.now, input);
    world.detach(WLAN);
    world.attach(WLAN, 3);
    world.run(SECOND);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    assert_eq!(world.mobile.counters().refused(135), 1);
    let sent = updates(&world);
    assert_eq!(sent.last().map(|sent| sent.2.sequence.0), Some(last.0.wrapping_add(20_001)));
}

/// RFC 4285 section 6: after MIPV6-ID-MISMATCH the node adjusts its timestamps.
#[test]
fn a_node_whose_clock_is_wrong_registers_with_the_second_update() {
    let mut world = World::simple(timestamps());
    world.mobile.set_clock(clock().ahead_by(Duration::from_secs(86_400)));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    assert_eq!((updates(&world).len(), world.mobile.counters().refused(144)), (2, 1));
}

/// RFC 4285 section 6: MIPV6-MESG-ID-REQD asks for timestamps.
#[test]
fn a_node_learns_that_timestamps_are_asked_for() {
    let mut world = World::new(node(sequence_numbers()), config(timestamps()));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    assert_eq!(world.mobile.counters().refused(145), 1);
}

/// RFC 4285 section 5.3: after MIPV6-AUTH-FAIL the node does not go on as before.
#[test]
fn a_node_with_another_key_does_not_flood_its_home_agent() {
    let another = SecurityAssociation::hmac_sha1(SPI, *b"another key here").unwrap();
    let mut world = World::new(node(another), config(timestamps()));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 300);
    // The refusal is authenticated by the home agent's key, so the node cannot even read it.
    assert!(updates(&world).len() < 20 && world.tunnelled_to().is_empty());
    assert!(world.mobile.counters().dropped(DropReason::BadAuthenticator) > 0);
}

/// RFC 6275 section 11.7.1: after status 134 the home address is not used again.
#[test]
fn a_home_address_that_somebody_else_has_is_given_up() {
    let mut world = World::simple(timestamps());
    world.taken.insert(HOME);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 300);
    let lost = Event::HomeAddressLost { home_address: HOME };
    assert!(world.mobile_events.iter().any(|(_, event)| *event == lost));
    assert_eq!(updates(&world).len(), 1);
    let failed = HandoverFailure::Denied(BindingStatus::DuplicateAddressDetectionFailed);
    assert!(matches!(world.handovers()[..], [.., HandoverEvent::Failed { reason, .. }] if reason == failed));
    // Unless the owner says so.
    world.taken.clear();
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
}

/// RFC 6275 section 11.8: no more than MAX_UPDATE_RATE updates within a second, however fast the node moves.
#[test]
fn a_node_that_moves_all_the_time_keeps_to_three_updates_a_second() {
    let mut world = registered(timestamps());
    for step in 0..200 {
        world.detach(WLAN);
        world.attach(WLAN, 2 + step % 3);
        world.run(Duration::from_millis(37));
    }
    let sent = updates(&world);
    assert!(sent.windows(4).all(|four| four[3].0 - four[0].0 >= SECOND));
    world.run(SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(2 + 199 % 3)]);
}

/// RFC 6275 section 11.4.1: the home agent is asked for at the anycast address, and its answer is registered with.
#[test]
fn a_node_that_knows_no_home_agent_finds_one() {
    let mobile = MobileNodeConfig { home_agent: None, ..node(timestamps()) };
    let mut world = World::new(mobile, config(timestamps()));
    world.home_is_dead = true;
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 120);
    let waits: Vec<_> = world.sent_icmp.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs()).collect();
    assert_eq!(waits, [3, 6, 12, 24], "INITIAL_DHAAD_TIMEOUT, DHAAD_RETRIES");
    world.home_is_dead = false;
    world.run(SECOND * 120);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    assert_eq!(world.mobile.home_agent(), Some(HA));
    let found = Event::HomeAgentsFound { home_agents: vec![HA] };
    assert!(world.mobile_events.iter().any(|(_, event)| *event == found));
}

/// RFC 6275 sections 10.3.1 and 11.7.3: status 1 makes the node ask for the prefixes.
#[test]
fn a_prefix_that_is_about_to_end_is_asked_about() {
    let secs = PrefixLifetime::from_secs;
    let told = HomePrefix { valid: secs(1000), preferred: secs(100), ..HomePrefix::permanent(HOME_PREFIX) };
    let home = HomeAgentConfig { prefixes: vec![told], ..config(timestamps()) };
    let mut world = World::new(node(timestamps()), home);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 3);
    let prefixes = world.mobile_events.iter().find_map(|(_, event)| match event {
        Event::HomePrefixes { prefixes } => Some(prefixes.clone()),
        _ => None,
    });
    let prefixes = prefixes.expect("an answer");
    assert_eq!((prefixes.len(), prefixes[0].masked_prefix()), (1, HOME_PREFIX.address()));
    // Section 11.4.2: no lifetime beyond that of the prefix.
    world.run(SECOND * 997);
    assert!(updates(&world).iter().all(|(at, _, update)| {
        at.since_start() + update.lifetime.duration() <= Duration::from_secs(1001) || at.as_nanos() == 0
    }));
    assert!(world.tunnelled_to().is_empty());
}

/// RFC 6275 section 11.4.3: an advertisement that was not asked for is discarded, and asked about.
#[test]
fn news_of_prefixes_is_asked_about_before_it_is_believed() {
    let mut world = registered(timestamps());
    world
        .home
        .set_prefixes(world.now, &[HomePrefix::permanent(HOME_PREFIX), HomePrefix::permanent(prefix(9))]);
    world.run(SECOND * 90_000);
    assert!(world.mobile.counters().dropped(DropReason::UnexpectedAnswer) > 0);
    assert!(
        world
            .mobile_events
            .iter()
            .any(|(_, event)| { matches!(event, Event::HomePrefixes { prefixes } if prefixes.len() == 2) })
    );
}

/// The owner ends the service.
#[test]
fn a_node_that_deregisters_leaves_no_binding() {
    let mut world = registered(timestamps());
    world.mobile.deregister(world.now);
    world.run(SECOND);
    assert!(world.tunnelled_to().is_empty() && !world.mobile.is_registered());
    world.run(SECOND * 1000);
    assert_eq!(updates(&world).len(), 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
}

/// Make before break: the old path carries packets until the new one is registered, and those under way on it arrive.
#[test]
fn a_handover_between_links_that_are_both_there_loses_nothing() {
    for multiple_care_of in [false, true] {
        let mobile = MobileNodeConfig { multiple_care_of, keep_old: Some(SECOND), ..node(timestamps()) };
        let mut world = World::new(mobile, config(timestamps()));
        world.attach(WLAN, 2);
        world.switch_to(WLAN);
        world.run(SECOND * 2);
        world.attach(GSM, 3);
        world.mobile_events.clear();
        for number in 0..200 {
            assert!(world.send_up(number), "{number}");
            world.send_down(number);
            if number == 50 {
                world.switch_to(GSM);
            }
            world.run(Duration::from_millis(10));
        }
        world.run(SECOND * 3);
        assert_eq!((world.peer.data.len(), world.data.len(), world.rejected), (200, 200, 0));
        assert_eq!(world.tunnelled_to(), [care_of(3)]);
        let handovers = world.handovers();
        assert!(
            matches!(
                handovers[..],
                [
                    HandoverEvent::Initiated {
                        from: Some(WLAN),
                        to: GSM,
                        style: HandoverStyle::MakeBeforeBreak,
                        ..
                    },
                    HandoverEvent::Registered { from: Some(WLAN), to: GSM, care_of: Some(_), .. },
                    HandoverEvent::Terminated { from: Some(WLAN), to: GSM, .. },
                ]
            ),
            "{handovers:?}"
        );
    }
}

/// Break before make: the link is gone before the new address is registered.
#[test]
fn a_handover_after_the_link_is_lost_is_told_as_one() {
    let mobile = MobileNodeConfig { selection: Selection::Preferred { hold: SECOND }, ..node(timestamps()) };
    let mut world = World::new(mobile, config(timestamps()));
    world.attach(WLAN, 2);
    world.attach(GSM, 3);
    world.run(SECOND * 2);
    assert_eq!(world.mobile.active_interface(), Some(WLAN));
    world.mobile_events.clear();
    world.detach(WLAN);
    world.run(SECOND);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    let handovers = world.handovers();
    assert!(
        matches!(
            handovers[..],
            [
                HandoverEvent::LinkDown { interface: WLAN },
                HandoverEvent::Initiated {
                    from: Some(WLAN),
                    to: GSM,
                    style: HandoverStyle::BreakBeforeMake,
                    ..
                },
                HandoverEvent::Registered { .. },
                HandoverEvent::Terminated { .. },
            ]
        ),
        "{handovers:?}"
    );
}

/// The better interface is gone back to when it has worked for long enough.
#[test]
fn the_preferred_interface_is_gone_back_to_after_the_hold_time() {
    let better =
        |id: InterfaceId| InterfaceConfig { preference: u8::from(id == WLAN), ..InterfaceConfig::new(id) };
    let mobile = MobileNodeConfig {
        selection: Selection::Preferred { hold: SECOND * 5 },
        interfaces: vec![better(WLAN), better(GSM)],
        ..node(timestamps())
    };
    let mut world = World::new(mobile, config(timestamps()));
    world.attach(GSM, 3);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
    world.attach(WLAN, 2);
    world.run(Duration::from_millis(4_990));
    assert_eq!(world.mobile.active_interface(), Some(GSM));
    world.run(SECOND);
    assert_eq!((world.mobile.active_interface(), world.tunnelled_to()), (Some(WLAN), vec![care_of(2)]));
}

/// A handover to a link that carries nothing fails, and the old path stays in use.
#[test]
fn a_handover_to_a_dead_link_fails_and_the_old_path_stays() {
    let mut world = registered(timestamps());
    world.attach(GSM, 3);
    // The link is up, but leads nowhere.
    world.networks.remove(&GSM);
    world.mobile_events.clear();
    world.switch_to(GSM);
    world.run(SECOND * 100);
    let handovers = world.handovers();
    assert!(
        matches!(
            handovers[..],
            [_, HandoverEvent::Failed { from: Some(WLAN), to: GSM, reason: HandoverFailure::NoReply }]
        ),
        "{handovers:?}"
    );
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    assert!(world.send_up(1));
    world.run(SECOND);
    assert_eq!(world.peer.data, [1]);
}

/// RFC 5648 section 5.7: where the home agent keeps one binding only, the node makes do with that.
#[test]
fn a_home_agent_that_keeps_one_binding_is_given_one() {
    let mobile = MobileNodeConfig { multiple_care_of: true, ..node(timestamps()) };
    let home = HomeAgentConfig { max_bindings_per_node: 1, ..config(timestamps()) };
    let mut world = World::new(mobile, home);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
    assert_eq!(world.mobile.counters().refused(166), 1);
}

/// RFC 6275 section 11.5.1: a router of the same link that comes is no move; the one in use that is lost is.
#[test]
fn a_second_router_on_the_link_is_no_move() {
    let mut world = registered(timestamps());
    let router = |host| std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host);
    let (address, prefix) = (care_of(3), prefix(3));
    world.tell(Input::RouterFound { interface: WLAN, router: router(3), prefixes: &[prefix] });
    let address = InterfaceAddress { address, prefix, valid_for: None };
    world.tell(Input::AddressAdded { interface: WLAN, address });
    world.run(SECOND);
    assert_eq!(updates(&world).len(), 1);
    world.networks.insert(WLAN, 3);
    world.tell(Input::RouterLost { interface: WLAN, router: router(2) });
    world.run(SECOND);
    assert_eq!(world.tunnelled_to(), [care_of(3)]);
}

/// The acknowledgement of a renewal says nothing of an update that was sent after it for another interface, and cancelled.
#[test]
fn a_cancelled_handover_is_undone_although_an_older_update_is_acknowledged_meanwhile() {
    let mut world = registered(timestamps());
    world.attach(GSM, 4);
    let before = updates(&world).len();
    while updates(&world).len() == before {
        world.run(Duration::from_millis(10));
        assert!(world.now < Instant::from_secs(300), "the binding is renewed");
    }
    world.switch_to(GSM);
    assert_eq!(updates(&world).len(), before + 2);
    world.switch_to(WLAN);
    world.run(SECOND * 5);
    assert_eq!(world.mobile.care_of(), Some(care_of(2)));
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
}

/// A node with a binding for each of two interfaces; the second is in use.
fn with_two_care_of_addresses(security: SecurityAssociation) -> World {
    let mobile = MobileNodeConfig { multiple_care_of: true, ..node(security.clone()) };
    let mut world = World::new(mobile, config(security));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.attach(GSM, 4);
    world.switch_to(GSM);
    world.run(SECOND);
    assert_eq!(world.tunnelled_to(), [care_of(2), care_of(4)]);
    world
}

/// The home agent has accepted the update of a handover that is given up as its link goes: it is told to use the other interface, and that the
/// binding has ended.
#[test]
fn a_handover_to_an_interface_that_has_a_binding_is_undone_when_its_link_goes() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = with_two_care_of_addresses(security);
        world.switch_to(WLAN);
        world.detach(WLAN);
        world.run(Duration::from_millis(20));
        assert_eq!(world.tunnelled_to(), [care_of(4), care_of(2)], "accepted");
        world.switch_to(GSM);
        world.run(SECOND);
        assert_eq!(world.tunnelled_to(), [care_of(4)]);
        assert_eq!(world.mobile.care_of(), Some(care_of(4)));
    }
}

/// Without the link there is no way to say so; it is said when there is one.
#[test]
fn a_binding_whose_link_is_gone_is_ended_as_soon_as_the_home_agent_can_be_told() {
    let mut world = with_two_care_of_addresses(timestamps());
    world.detach(GSM);
    world.detach(WLAN);
    world.run(SECOND * 3);
    world.attach(GSM, 5);
    world.run(SECOND * 3);
    assert_eq!(world.tunnelled_to(), [care_of(5)]);
}

/// Packets go by the newest binding, so that of the interface in use is made anew after that of another.
#[test]
fn the_renewal_of_another_binding_leads_no_packets_away_from_the_interface_in_use() {
    let mut world = with_two_care_of_addresses(timestamps());
    let (mut renewed, mut seen) = (0, updates(&world).len());
    while renewed < 3 {
        world.run(Duration::from_millis(10));
        assert!(world.now < Instant::from_secs(2000), "bindings are renewed");
        let new: Vec<_> = updates(&world).split_off(seen).iter().map(|(_, a, _)| a.source).collect();
        seen += new.len();
        if new.contains(&care_of(2)) {
            renewed += 1;
            world.run(SECOND);
            assert_eq!(world.tunnelled_to(), [care_of(2), care_of(4)]);
            seen = updates(&world).len();
        }
    }
    world.run(SECOND * 100);
    assert_eq!(updates(&world).len(), seen, "two updates for each renewal");
}

/// From when the home agent has accepted the renewal of the other binding until it has accepted that of the one in use, packets go by the other.
#[test]
fn packets_arrive_by_the_other_care_of_address_while_its_binding_is_renewed() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = with_two_care_of_addresses(security);
        // The binding of the other interface was made at the beginning, for 300 s.
        let renewal = Instant::from_secs(225);
        world.run(Instant::from_secs(224) - world.now);
        world.data.clear();
        let (mut sent, mut away) = (0, Duration::ZERO);
        let step = Duration::from_millis(5);
        while world.now < renewal + SECOND {
            if world.tunnelled_to() == [care_of(4), care_of(2)] {
                away += step;
            }
            sent += 1;
            world.send_down(sent);
            world.run(step);
        }
        assert_eq!(away, world.one_way * 2, "a round trip");
        assert_eq!(world.tunnelled_to(), [care_of(2), care_of(4)]);
        world.run(SECOND);
        let arrived: BTreeSet<u64> = world.data.iter().map(|(number, _)| *number).collect();
        assert_eq!(arrived, (1..=sent).collect());
    }
}

/// With RFC 5648 as without: the home agent may have accepted the update of a handover that was cancelled at home.
#[test]
fn a_handover_cancelled_at_home_is_undone() {
    for multiple_care_of in [false, true] {
        let mobile = MobileNodeConfig { multiple_care_of, ..node(timestamps()) };
        let mut world = World::new(mobile, config(timestamps()));
        world.attach(WLAN, AT_HOME);
        world.switch_to(WLAN);
        world.run(SECOND * 2);
        assert!(world.mobile.is_at_home());
        world.attach(GSM, 4);
        world.switch_to(GSM);
        world.switch_to(WLAN);
        world.run(SECOND * 5);
        assert!(world.mobile.is_at_home());
        assert!(world.tunnelled_to().is_empty(), "{multiple_care_of}: {:?}", world.tunnelled_to());
    }
}
