//! What a home agent makes of Binding Updates, questions and time.

use careof_base::{Duration, Instant};
use careof_mobility::v6::*;
use careof_mobility::{Change, ConfigError};
use careof_wire::icmpv6::{
    HomeAgentAddressDiscoveryRequest, Icmpv6Message, MobilePrefixSolicitation, NdOption, PrefixInformation,
    PrefixLifetime, RouterAdvertisement,
};
use careof_wire::ipv6::home_agents_anycast;
use careof_wire::mip6::{
    BindingErrorStatus, BindingId, BindingIdentifier, Lifetime, Message, MobilityOption, NonceIndex,
    NonceIndices, Spi, UnknownMessage, UpdateFlags,
};
use std::net::{IpAddr, Ipv6Addr};

use super::craft::*;

fn named(sequence: u16, id: u16, network: u16) -> Update {
    let identifier = BindingIdentifier {
        care_of_address: Some(IpAddr::V6(care_of(network))),
        ..BindingIdentifier::new(BindingId(id))
    };
    Update {
        options: vec![MobilityOption::BindingIdentifier(identifier)],
        ..Update::new(sequence, care_of(network))
    }
}

/// RFC 6275 sections 9.5.4 and 10.3.1: the acknowledgement goes to the source of the update, with the home address in a routing header.
#[test]
fn a_registration_is_acknowledged_by_way_of_the_care_of_address() {
    let mut agent = Agent::serving(sequence_numbers());
    let (addresses, acknowledgement) = agent.ask(&Update::new(5, care_of(2))).expect("an answer");
    assert_eq!(addresses, Addresses::new(HA, care_of(2)).with_type_2_routing(HOME));
    assert_eq!((acknowledgement.status.number(), acknowledgement.sequence.0), (0, 5));
    assert_eq!(acknowledgement.lifetime, Lifetime::from_units(75));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
    assert!(agent.node.accepts_reverse_tunnel(HOME, care_of(2)));
    assert!(!agent.node.accepts_reverse_tunnel(HOME, care_of(3)), "section 10.4.5");
    assert!(agent.node.accepts_home_address_option(HOME, care_of(2)));
}

/// RFC 6275 section 10.3.1: "Regardless of the setting of the Acknowledge (A) bit".
#[test]
fn a_registration_is_acknowledged_without_a_as_well() {
    let mut agent = Agent::serving(sequence_numbers());
    let update = Update { flags: UpdateFlags::HOME_REGISTRATION, ..Update::new(5, care_of(2)) };
    assert_eq!(agent.status(&update), Some(0));
}

/// RFC 6275 section 10.3.1: before the first binding the home agent looks for duplicates of the home address, and with L of the
/// link-local address that belongs to it; section 10.4.1: then it answers for them, and overrides what neighbours remember.
#[test]
fn the_first_binding_waits_for_duplicate_address_detection() {
    let mut agent = Agent::new(config(sequence_numbers()));
    let l = Update::new(5, care_of(2)).flags.with(UpdateFlags::LINK_LOCAL_ADDRESS_COMPATIBILITY);
    let update = Update { flags: l, ..Update::new(5, care_of(2)) };
    assert_eq!(agent.status(&update), None);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7);
    let wait = Duration::from_secs(1);
    let ask = |address| NeighborEvent::DetectDuplicate { interface: HOME_IF, address, wait };
    assert_eq!(agent.neighbor_events(), [ask(HOME), ask(link_local)]);
    let outcome = |address| Input::DuplicateAddressDetection { interface: HOME_IF, address, unique: true };
    agent.until(Instant::from_secs(1));
    agent.node.handle_input(agent.now, outcome(HOME));
    assert!(agent.drain().is_empty(), "the other address is in doubt");
    agent.node.handle_input(agent.now, outcome(link_local));
    let sent = agent.drain();
    let (_, acknowledgement) = acknowledgement(&sent[0], care_of(2)).expect("an acknowledgement");
    assert_eq!((acknowledgement.status.number(), acknowledgement.sequence.0), (0, 5));
    let on = |address| {
        [
            NeighborEvent::Proxy { interface: HOME_IF, address, on: true },
            NeighborEvent::Advertise { interface: HOME_IF, address },
        ]
    };
    assert_eq!(agent.neighbor_events(), [on(HOME), on(link_local)].concat());
    // There is a binding: no detection (section 10.3.1).
    assert_eq!(agent.status(&Update { flags: l, ..Update::new(6, care_of(3)) }), Some(0));
    assert!(agent.neighbor_events().is_empty());
}

/// RFC 6275 section 10.3.1: status 134 when somebody has the address.
#[test]
fn a_duplicate_of_the_home_address_refuses_the_registration() {
    let mut agent = Agent::new(config(sequence_numbers()));
    agent.hand_in(&Update::new(5, care_of(2)).packet());
    // Sent again meanwhile: the latest is answered.
    assert!(agent.hand_in(&Update::new(6, care_of(2)).packet()).is_empty());
    let unique = false;
    agent.node.handle_input(
        agent.now,
        Input::DuplicateAddressDetection { interface: HOME_IF, address: HOME, unique },
    );
    let sent = agent.drain();
    let (_, refusal) = acknowledgement(&sent[0], care_of(2)).expect("an acknowledgement");
    assert_eq!((refusal.status.number(), refusal.sequence.0, sent.len()), (134, 6, 1));
    assert!(agent.care_ofs().is_empty() && agent.node.next_timeout().is_none());
    assert_eq!(agent.dropped(DropReason::DuplicateAddress), 1);
}

#[test]
fn an_owner_that_never_says_whether_there_are_duplicates_blocks_nobody() {
    let mut agent = Agent::new(config(sequence_numbers()));
    assert_eq!(agent.status(&Update::new(5, care_of(2))), None);
    assert_eq!(agent.node.next_timeout(), Some((Instant::from_secs(2), Wake::DuplicateAddressDetection)));
    assert!(agent.until(Instant::from_secs(2)).is_empty());
    assert!(agent.care_ofs().is_empty() && agent.node.next_timeout().is_none());
}

/// RFC 6275 section 9.5.1, with its own example: after 15, 0 to 15 and 32783 to 65535 are not greater. Status 135 tells the last.
#[test]
fn a_sequence_number_must_be_after_the_last_one() {
    for (sequence, accepted) in
        [(16, true), (32782, true), (15, false), (0, false), (32783, false), (65535, false)]
    {
        let mut agent = Agent::serving(sequence_numbers());
        assert_eq!(agent.status(&Update::new(15, care_of(2))), Some(0), "any number is taken first");
        let (_, answer) = agent.ask(&Update::new(sequence, care_of(3))).expect("an answer");
        let expected = if accepted { (0, sequence) } else { (135, 15) };
        assert_eq!((answer.status.number(), answer.sequence.0), expected, "{sequence}");
        assert_eq!(agent.care_ofs(), [care_of(if accepted { 3 } else { 2 })]);
    }
}

/// RFC 6275 section 10.3.2: the number of a deregistration is remembered for MAX_DELETE_BCE_TIMEOUT, so that an update from before,
/// which comes late, does not take the mobile node away from home.
#[test]
fn an_update_that_was_overtaken_by_the_return_home_is_refused() {
    let mut agent = Agent::serving(sequence_numbers());
    assert_eq!(agent.status(&Update::new(5, care_of(2))), Some(0));
    let (addresses, answer) = agent.ask(&Update::at_home(7)).expect("an answer");
    assert_eq!(
        addresses,
        Addresses::new(HA, HOME),
        "no routing header to who sends from home (section 9.5.4)"
    );
    assert_eq!((answer.status.number(), answer.lifetime), (0, Lifetime::ZERO));
    let off = NeighborEvent::Proxy { interface: HOME_IF, address: HOME, on: false };
    assert!(agent.neighbor_events().contains(&off));
    agent.until(Instant::from_millis(9_999));
    assert_eq!(agent.status(&Update::new(6, care_of(2))), Some(135));
    assert!(agent.care_ofs().is_empty());
    // The acknowledgement was lost: the entry is still there, marked as invalid.
    assert_eq!(agent.status(&Update::at_home(8)), Some(0));
    agent.until(Instant::from_millis(19_999));
    assert_eq!(agent.status(&Update::at_home(9)), Some(133), "section 10.3.2");
    assert_eq!(agent.status(&Update::new(1, care_of(2))), Some(0), "forgotten: any number is taken");
}

/// RFC 4285 section 6: status 145 without a timestamp, 144 outside the window or not after the last one, with the time to use.
#[test]
fn a_timestamp_must_be_there_close_and_new() {
    let mut agent = Agent::serving(timestamps());
    let time = |ms: i64| {
        let now = clock().at(Instant::ZERO);
        let span = Duration::from_millis(ms.unsigned_abs());
        if ms < 0 { now.earlier(span) } else { now.later(span) }
    };
    let update = |sequence, ms| Update::new(sequence, care_of(2)).stamped(time(ms));
    assert_eq!(agent.status(&Update::new(1, care_of(2))), Some(145));
    assert_eq!(agent.status(&update(1, 7_001)), Some(144));
    assert_eq!(agent.status(&update(1, -7_001)), Some(144));
    assert!(agent.care_ofs().is_empty());
    let (_, answer) = agent.ask(&update(1, 1_000)).expect("an answer");
    let told = answer.options.replay_protection().expect("the timestamp comes back");
    assert_eq!((answer.status.number(), told.0), (0, time(1_000).to_bits()));
    // "The sequence number field in the Binding Update is not used if this mechanism is used" (section 7).
    assert_eq!(agent.status(&update(1, 1_001)), Some(0));
    let replayed = update(2, 1_001);
    let (_, answer) = agent.ask(&replayed).expect("an answer");
    let told = answer.options.replay_protection().expect("a timestamp to go on with");
    assert_eq!((answer.status.number(), told.low()), (144, time(1_001).to_bits() as u32));
    assert!(told.0 > time(1_001).to_bits() && told.0 < time(3_000).to_bits());
    assert_eq!(agent.dropped(DropReason::Replayed), 4);
}

/// RFC 6275 section 9.5.1 and RFC 4285 section 5: what is not the mobile node's has no effect and, but for a wrong authenticator
/// under a known SPI, no answer.
#[test]
fn what_nobody_has_authenticated_is_dropped_in_silence_and_counted() {
    let mut agent = Agent::serving(sequence_numbers());
    let update = Update::new(5, care_of(2));
    let elsewhere = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 99);
    let nonces = NonceIndices { home: NonceIndex(1), care_of: NonceIndex(1) };
    for (update, reason) in [
        (Update { spi: Spi(300), ..update.clone() }, DropReason::UnknownSpi),
        (Update { home_address: elsewhere, ..update.clone() }, DropReason::UnknownHomeAddress),
        (
            Update { home_address: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), ..update.clone() },
            DropReason::PoorlyFormed,
        ),
        (update.clone().with(MobilityOption::NonceIndices(nonces)), DropReason::PoorlyFormed),
        // Section 10.3.1: a Home Address option must be there.
        (Update { source: HOME, ..update.clone() }, DropReason::PoorlyFormed),
    ] {
        let before = agent.dropped(reason);
        assert_eq!(agent.status(&update), None, "{reason:?}");
        assert_eq!(agent.dropped(reason), before + 1);
    }
    assert_eq!(agent.status(&Update { key: b"another key", ..update.clone() }), Some(146));
    assert_eq!(agent.dropped(DropReason::BadAuthenticator), 1);
    // The authentication has to be the last option, and covers all others.
    let (addresses, mut bytes) = update.packet();
    bytes.truncate(12);
    bytes[1] = 0;
    assert!(agent.hand_in(&(addresses, bytes)).is_empty());
    assert!(agent.care_ofs().is_empty());
    assert_eq!(agent.status(&update), Some(0));
}

/// The authenticator covers the care-of address: who sends a copy from elsewhere moves nobody.
#[test]
fn a_copy_from_another_address_moves_nobody() {
    let mut agent = Agent::serving(sequence_numbers());
    let (addresses, bytes) = Update { options: Vec::new(), ..Update::new(5, care_of(2)) }.packet();
    let stolen = (Addresses { source: care_of(66), ..addresses }, bytes);
    assert_eq!(agent.hand_in(&stolen).len(), 1, "status 146");
    assert!(agent.care_ofs().is_empty());
}

/// RFC 6275 section 9.5.1: status 139 for an update with another H bit than the binding.
#[test]
fn a_home_registration_cannot_be_made_one_of_a_correspondent() {
    let mut agent = Agent::serving(sequence_numbers());
    let without = |sequence| Update { flags: UpdateFlags::ACKNOWLEDGE, ..Update::new(sequence, care_of(3)) };
    assert_eq!(agent.status(&without(1)), None);
    assert_eq!(agent.status(&Update::new(5, care_of(2))), Some(0));
    assert_eq!(agent.status(&without(6)), Some(139));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
}

/// RFC 6275 section 10.3.1: no longer than asked, than this home agent grants, and than the prefix is valid, in units of 4 s; status 1
/// when the prefix is deprecated before the binding ends, or invalid at its end.
#[test]
fn a_lifetime_ends_with_the_prefix() {
    let secs = PrefixLifetime::from_secs;
    let forever = PrefixLifetime::INFINITE;
    for (asked, valid, preferred, status, granted) in [
        (75, forever, forever, 0, 75),
        (1000, forever, forever, 0, 450),
        (75, secs(303), secs(303), 1, 75),
        (75, secs(304), secs(304), 0, 75),
        (75, secs(299), secs(299), 1, 74),
        (75, secs(4000), secs(200), 1, 75),
        (75, secs(4000), secs(0), 1, 75),
        (75, secs(3), secs(3), 132, 0),
    ] {
        let prefixes = vec![HomePrefix { valid, preferred, ..HomePrefix::permanent(HOME_PREFIX) }];
        let config =
            HomeAgentConfig { prefixes, duplicate_address_detection: None, ..config(sequence_numbers()) };
        let mut agent = Agent::new(config);
        let update = Update { units: asked, ..Update::new(5, care_of(2)) };
        let (_, answer) = agent.ask(&update).expect("an answer");
        let found = (answer.status.number(), answer.lifetime.as_units());
        assert_eq!(found, (status, granted), "{asked} {valid:?} {preferred:?}");
    }
}

/// RFC 6275 section 10.3.1: a binding is deleted when its lifetime, or that of the prefix, ends.
#[test]
fn a_binding_ends_with_its_lifetime_or_with_the_prefix() {
    let mut agent = Agent::serving(sequence_numbers());
    agent.status(&Update::new(5, care_of(2)));
    agent.until(Instant::from_millis(299_999));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
    agent.until(Instant::from_secs(300));
    assert!(agent.care_ofs().is_empty());
    let expired =
        |event: &Event| matches!(event, Event::Binding(changed) if changed.change == Change::Expired);
    assert!(agent.events.iter().any(expired));
    agent.status(&Update::new(6, care_of(2)));
    let valid = PrefixLifetime::from_secs(60);
    agent.node.set_prefixes(agent.now, &[HomePrefix { valid, ..HomePrefix::permanent(HOME_PREFIX) }]);
    agent.until(agent.now + Duration::from_secs(60));
    assert!(agent.care_ofs().is_empty());
    agent.node.set_prefixes(agent.now, &[HomePrefix::permanent(HOME_PREFIX)]);
    assert_eq!(agent.status(&Update::new(7, care_of(2))), Some(0));
    agent.node.set_prefixes(agent.now, &[HomePrefix::permanent(prefix(9))]);
    assert!(agent.care_ofs().is_empty(), "the home address is of no prefix any longer");
}

/// RFC 6275 section 10.3.1: the refresh interval is below the lifetime.
#[test]
fn a_refresh_advice_is_shorter_than_the_lifetime() {
    let config = HomeAgentConfig {
        duplicate_address_detection: None,
        refresh_advice_percent: Some(60),
        ..config(sequence_numbers())
    };
    let mut agent = Agent::new(config);
    let (_, answer) = agent.ask(&Update::new(5, care_of(2))).expect("an answer");
    assert_eq!(answer.options.binding_refresh_advice(), Some(Lifetime::from_units(45)));
    let (_, answer) = agent.ask(&Update::at_home(6)).expect("an answer");
    assert_eq!(answer.options.binding_refresh_advice(), None, "section 10.3.2");
}

/// A tunnel that leads back would never end.
#[test]
fn a_care_of_address_that_leads_back_is_refused() {
    let mut agent = Agent::serving(sequence_numbers());
    for (sequence, care_of) in [(1, HA), (2, Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1))] {
        let update = Update { source: super::craft::care_of(2), ..Update::new(sequence, care_of) };
        assert_eq!(agent.status(&update), Some(174), "{care_of}");
    }
}

/// Statuses 129 and 130: the operator's word, and the room there is.
#[test]
fn what_the_operator_does_not_want_or_has_no_room_for_is_refused() {
    let mut forbidden = config(sequence_numbers());
    forbidden.duplicate_address_detection = None;
    forbidden.mobile_nodes[0].permitted = false;
    assert_eq!(Agent::new(forbidden).status(&Update::new(5, care_of(2))), Some(129));
    let full =
        HomeAgentConfig { duplicate_address_detection: None, max_bindings: 0, ..config(sequence_numbers()) };
    assert_eq!(Agent::new(full).status(&Update::new(5, care_of(2))), Some(130));
}

/// RFC 5648 section 6.2: bindings are kept by their names; one without replaces all.
#[test]
fn several_care_of_addresses_are_kept_by_their_names() {
    let mut agent = Agent::serving(sequence_numbers());
    let (_, answer) = agent.ask(&named(1, 1, 2)).expect("an answer");
    let ids: Vec<_> = answer.options.binding_identifiers().map(|id| (id.id.0, id.status.number())).collect();
    assert_eq!((answer.status.number(), ids), (0, vec![(1, 0)]));
    assert_eq!(agent.status(&named(2, 2, 3)), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(2), care_of(3)]);
    assert_eq!(agent.status(&named(3, 1, 4)), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(3), care_of(4)]);
    assert_eq!(agent.status(&Update { units: 0, ..named(4, 2, 3) }), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(4)]);
    assert_eq!(agent.status(&Update { units: 0, ..named(5, 2, 3) }), Some(133));
    assert_eq!(agent.status(&Update::new(6, care_of(5))), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(5)]);
    assert_eq!(agent.status(&named(7, 1, 2)), Some(165), "one without a name is there");
    let overwrites = named(8, 1, 2).flags.with(UpdateFlags::OVERWRITE);
    assert_eq!(agent.status(&Update { flags: overwrites, ..named(8, 1, 2) }), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
}

/// RFC 6275 section 9.5.1: the number of the last valid update counts, also where there was nothing to end.
#[test]
fn a_deregistration_that_overtakes_the_update_it_undoes_is_not_undone_by_it() {
    let mut agent = Agent::serving(sequence_numbers());
    assert_eq!(agent.status(&named(1, 1, 2)), Some(0));
    assert_eq!(agent.status(&Update { units: 0, ..named(3, 2, 3) }), Some(133));
    assert_eq!(agent.status(&named(2, 2, 3)), Some(135));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
}

/// RFC 5648 sections 4.4 and 6.2.
#[test]
fn names_that_cannot_be_kept_are_refused_with_their_own_status() {
    let mut agent = Agent::serving(sequence_numbers());
    assert_eq!(agent.status(&named(1, 0, 2)), Some(164));
    let both = named(2, 1, 2).with(MobilityOption::BindingIdentifier(BindingIdentifier::new(BindingId(2))));
    assert_eq!(agent.status(&both), Some(168));
    let unknown = MobilityOption::BindingIdentifier(BindingIdentifier::new(BindingId(9)));
    assert_eq!(agent.status(&Update { options: vec![unknown], ..Update::new(3, care_of(2)) }), Some(167));
    let home =
        BindingIdentifier { simultaneous_home_and_foreign: true, ..BindingIdentifier::new(BindingId(1)) };
    let home = MobilityOption::BindingIdentifier(home);
    assert_eq!(agent.status(&Update { options: vec![home], ..Update::new(4, care_of(2)) }), Some(169));
    for (sequence, id) in [(5, 1), (6, 2), (7, 3), (8, 4)] {
        assert_eq!(agent.status(&named(sequence, id, 10 + id)), Some(0));
    }
    assert_eq!(agent.status(&named(9, 5, 15)), Some(130), "four are as many as one may have");
    let alone = HomeAgentConfig {
        max_bindings_per_node: 1,
        duplicate_address_detection: None,
        ..config(sequence_numbers())
    };
    assert_eq!(Agent::new(alone).status(&named(1, 1, 2)), Some(166));
}

/// What was under way from the care-of address before is taken for a while, and no longer.
#[test]
fn packets_from_a_care_of_address_that_was_left_are_taken_for_five_seconds() {
    let mut agent = Agent::serving(sequence_numbers());
    agent.status(&Update::new(1, care_of(2)));
    agent.status(&Update::new(2, care_of(3)));
    assert!(agent.node.accepts_reverse_tunnel(HOME, care_of(2)));
    agent.until(Instant::from_millis(4_999));
    assert!(agent.node.accepts_reverse_tunnel(HOME, care_of(2)));
    agent.until(Instant::from_secs(5));
    assert!(!agent.node.accepts_reverse_tunnel(HOME, care_of(2)));
    assert!(agent.node.accepts_reverse_tunnel(HOME, care_of(3)));
}

fn hand_in_icmp(
    agent: &mut Agent,
    addresses: Addresses,
    hop_limit: u8,
    message: &Icmpv6Message,
) -> Vec<Transmit> {
    let mut bytes = Vec::new();
    message.emit(addresses.real_source(), addresses.real_destination(), &mut bytes);
    let input = Input::Icmp { interface: HOME_IF, addresses, hop_limit, message: &bytes };
    agent.node.handle_input(agent.now, input);
    agent.drain()
}

fn icmp(transmit: &Transmit) -> Icmpv6Message {
    let (source, destination) = (transmit.addresses.real_source(), transmit.addresses.real_destination());
    Icmpv6Message::parse(source, destination, transmit.payload.bytes()).unwrap()
}

/// RFC 6275 section 10.5.1: who asks at the anycast address is told of all home agents heard, the most preferable first.
#[test]
fn who_looks_for_home_agents_is_told_of_those_that_were_heard() {
    let mut agent = Agent::serving(sequence_numbers());
    let other = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);
    let information = careof_wire::icmpv6::HomeAgentInformation { preference: 7, lifetime_secs: 100 };
    let advertisement = Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
        home_agent: true,
        router_lifetime_secs: 30,
        options: vec![
            NdOption::HomeAgentInformation(information),
            NdOption::PrefixInformation(PrefixInformation {
                prefix_length: 64,
                on_link: true,
                autonomous: true,
                router_address: true,
                valid_lifetime: PrefixLifetime::INFINITE,
                preferred_lifetime: PrefixLifetime::INFINITE,
                prefix: other,
            }),
        ],
        ..RouterAdvertisement::default()
    });
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
    let heard = Addresses::new(link_local, careof_wire::ipv6::ALL_NODES);
    hand_in_icmp(&mut agent, heard, 64, &advertisement);
    assert_eq!(
        (agent.node.home_agent_count(), agent.dropped(DropReason::NotValid)),
        (0, 1),
        "from another link"
    );
    hand_in_icmp(&mut agent, heard, 255, &advertisement);
    let request =
        Icmpv6Message::HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest { identifier: 42 });
    let anycast = home_agents_anycast(HOME_PREFIX.address(), 64);
    let sent = hand_in_icmp(&mut agent, Addresses::new(care_of(2), anycast), 64, &request);
    let Icmpv6Message::HomeAgentAddressDiscoveryReply(reply) = icmp(&sent[0]) else { panic!("{sent:?}") };
    assert_eq!((reply.identifier, reply.home_agents), (42, vec![other, HA]));
    assert_eq!(sent[0].addresses, Addresses::new(HA, care_of(2)));
    agent.until(Instant::from_secs(100));
    assert_eq!(agent.node.home_agent_count(), 0);
}

/// Anybody can ask in anybody's name.
#[test]
fn answers_to_who_has_proved_nothing_are_rationed() {
    let mut agent = Agent::serving(sequence_numbers());
    let request =
        Icmpv6Message::HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest { identifier: 42 });
    let asked = Addresses::new(care_of(2), home_agents_anycast(HOME_PREFIX.address(), 64));
    let answers: usize = (0..1000).map(|_| hand_in_icmp(&mut agent, asked, 64, &request).len()).sum();
    assert_eq!(answers, 100);
    let forged = Update { key: b"not the key", ..Update::new(1, care_of(2)) };
    let answers = (0..1000).filter(|_| agent.status(&forged).is_some()).count();
    assert_eq!(answers, 0, "the same site has had its share");
    assert_eq!(agent.node.counters().answers_suppressed, 900 + 1000);
    let elsewhere = Ipv6Addr::new(0x2001, 0xdb9, 0, 0, 0, 0, 0, 1);
    let forged = Update { key: b"not the key", ..Update::new(1, elsewhere) };
    assert_eq!(agent.status(&forged), Some(146));
}

/// A recording is repeated: the mobile node has its answers, but not more than it can need.
#[test]
fn answers_to_repeated_recordings_are_rationed() {
    let mut agent = Agent::serving(timestamps());
    let recording = Update::new(1, care_of(2)).stamped(clock().at(Instant::ZERO));
    assert_eq!(agent.status(&recording), Some(0));
    let answers = (0..1000).filter(|_| agent.status(&recording) == Some(144)).count();
    assert_eq!((answers, agent.care_ofs()), (16, vec![care_of(2)]));
}

/// RFC 6275 sections 10.6.2 and 10.6.3.
#[test]
fn who_asks_from_its_care_of_address_is_told_the_prefixes() {
    let mut agent = Agent::serving(sequence_numbers());
    let solicitation = Icmpv6Message::MobilePrefixSolicitation(MobilePrefixSolicitation {
        identifier: 9,
        options: Vec::new(),
    });
    let asked = Addresses::new(care_of(2), HA).with_home_address(HOME);
    assert!(hand_in_icmp(&mut agent, asked, 64, &solicitation).is_empty());
    assert_eq!(agent.dropped(DropReason::NoBinding), 1);
    agent.status(&Update::new(5, care_of(2)));
    let sent = hand_in_icmp(&mut agent, asked, 64, &solicitation);
    assert_eq!(sent[0].addresses, Addresses::new(HA, care_of(2)).with_type_2_routing(HOME));
    let Icmpv6Message::MobilePrefixAdvertisement(told) = icmp(&sent[0]) else { panic!("{sent:?}") };
    let prefixes: Vec<_> = told.prefixes().map(|told| (told.masked_prefix(), told.valid_lifetime)).collect();
    assert_eq!(prefixes, [(HOME_PREFIX.address(), PrefixLifetime::INFINITE)]);
    assert_eq!(told.identifier, 9);
    let elsewhere = Addresses { source: care_of(3), ..asked };
    assert!(hand_in_icmp(&mut agent, elsewhere, 64, &solicitation).is_empty());
}

/// RFC 6275 section 10.6.2: a change is told, and told again, while there is a binding.
#[test]
fn a_change_of_prefixes_is_told_unasked_until_the_binding_ends() {
    let config = HomeAgentConfig {
        duplicate_address_detection: None,
        max_lifetime: Lifetime::MAX,
        ..config(sequence_numbers())
    };
    let mut agent = Agent::new(config);
    let update = Update { units: 50_000, ..Update::new(5, care_of(2)) };
    agent.status(&update);
    agent
        .node
        .set_prefixes(agent.now, &[HomePrefix::permanent(HOME_PREFIX), HomePrefix::permanent(prefix(9))]);
    let sent = agent.until(Instant::from_secs(86_500));
    let advertised =
        sent.iter().filter(|sent| matches!(icmp(sent), Icmpv6Message::MobilePrefixAdvertisement(_)));
    assert_eq!(advertised.count(), 4, "once, and three times again");
    agent.status(&Update::at_home(6));
    assert!(agent.until(Instant::from_secs(400_000)).is_empty());
    assert_eq!(agent.node.next_timeout(), None);
}

/// RFC 6275 section 9.2: a message of a type that is not known is answered with a Binding Error.
#[test]
fn an_unknown_message_is_answered_with_a_binding_error() {
    let mut agent = Agent::serving(sequence_numbers());
    let message = Message::Unknown(UnknownMessage::new(99, &[0; 10]).unwrap());
    let asked = Addresses::new(care_of(2), HA).with_home_address(HOME);
    let sent = agent.hand_in(&(asked, message.emit(HOME, HA).unwrap()));
    assert_eq!(sent[0].addresses, Addresses::new(HA, care_of(2)));
    let answer = Message::parse(HA, care_of(2), sent[0].payload.bytes()).unwrap();
    let Message::BindingError(error) = answer else { panic!("{answer:?}") };
    assert_eq!((error.status, error.home_address), (BindingErrorStatus::UnrecognizedMhType, HOME));
}

#[test]
fn the_operator_ends_a_mobile_nodes_bindings() {
    let mut agent = Agent::serving(sequence_numbers());
    agent.status(&Update::new(5, care_of(2)));
    assert_eq!(agent.node.drop_bindings(agent.now, HOME), 1);
    agent.drain();
    assert!(agent.care_ofs().is_empty() && !agent.node.accepts_reverse_tunnel(HOME, care_of(2)));
}

/// A restart loses neither bindings nor what tells fresh updates from old ones.
#[test]
fn a_home_agent_that_is_started_again_carries_on() {
    for security in [timestamps(), sequence_numbers()] {
        let mut before = Agent::serving(security.clone());
        let stamp = clock().at(Instant::ZERO);
        let update = named(5, 1, 2).stamped(stamp);
        assert_eq!(before.status(&update), Some(0));
        before.until(Instant::from_secs(100));
        let record = before.node.record(before.now, HOME).expect("served");
        // It starts at another instant of its own, and the clock has gone on by 50 s.
        let mut after = Agent::serving(security);
        after.node.set_clock(clock().ahead_by(Duration::from_secs(150)));
        assert!(after.node.restore(after.now, &record));
        after.drain();
        assert_eq!(after.care_ofs(), [care_of(2)]);
        let proxy = NeighborEvent::Proxy { interface: HOME_IF, address: HOME, on: true };
        assert!(after.neighbor_events().contains(&proxy));
        assert!(matches!(after.status(&update), Some(135 | 144)), "a replay");
        after.until(Instant::from_secs(149));
        assert_eq!(after.care_ofs(), [care_of(2)]);
        after.until(Instant::from_secs(151));
        assert!(after.care_ofs().is_empty(), "300 s after it was granted");
    }
    let stranger = MobileNodeRecord { home_address: HA, bindings: Vec::new(), sequence: None, latest: None };
    assert!(!Agent::serving(timestamps()).node.restore(Instant::ZERO, &stranger));
}

#[test]
fn configurations_that_could_never_work_are_refused() {
    let make =
        |config| HomeAgent::new(Instant::ZERO, config, careof_base::RandomStream::new(1, 0, "x")).err();
    let good = config(timestamps());
    assert!(make(good.clone()).is_none());
    let home_address = HOME.into();
    let mut keyless = good.clone();
    keyless.mobile_nodes[0].security.clear();
    assert_eq!(make(keyless), Some(ConfigError::NoSecurityAssociation { home_address }));
    let mut twice = good.clone();
    twice.mobile_nodes.push(twice.mobile_nodes[0].clone());
    assert!(matches!(make(twice), Some(ConfigError::DuplicateAddress { .. })));
    let prefixless = HomeAgentConfig { prefixes: Vec::new(), ..good.clone() };
    assert!(matches!(make(prefixless), Some(ConfigError::Missing(_))));
    let nowhere = HomeAgentConfig { address: Ipv6Addr::LOCALHOST, ..good };
    assert!(matches!(make(nowhere), Some(ConfigError::NotUnicast { .. })));
}
