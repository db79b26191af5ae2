//! IPv4 home and care-of addresses (RFC 5555), at a home agent and together with a mobile node.

use careof_base::{Duration, Instant};
use careof_mobility::v6::*;
use careof_mobility::{Change, ConfigError, Notice, Selection};
use careof_wire::mip6::{
    AcknowledgementFlags, Algorithm, BindingAcknowledgement, BindingId, BindingIdentifier, BindingStatus,
    Ipv4AddressAcknowledgement, Ipv4AddressStatus, Ipv4HomeAddress, Lifetime, Message,
    MobileHomeAuthentication, MobilityOption, MobilityOptions, NatDetection, UpdateFlags,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::craft::*;
use super::world::*;

const SECOND: Duration = Duration::from_secs(1);
const ABROAD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Networks that have only IPv4.
const V4: u16 = IPV4_ONLY + 1;
const OTHER_V4: u16 = IPV4_ONLY + 2;

fn dual(security: SecurityAssociation) -> HomeAgentConfig {
    let node = ServedMobileNode {
        ipv4_home_address: Some(HOME_IPV4),
        ..ServedMobileNode::new(HOME, security.clone())
    };
    HomeAgentConfig {
        ipv4_address: Some(HA_IPV4),
        mobile_nodes: vec![node],
        duplicate_address_detection: None,
        ..config(security)
    }
}

fn agent() -> Agent {
    Agent::new(dual(sequence_numbers()))
}

fn wants(address: Ipv4Addr) -> MobilityOption {
    MobilityOption::Ipv4HomeAddress(Ipv4HomeAddress::new(address, 32, false).unwrap())
}

/// RFC 5555 sections 4.2 and 4.5: the update is in UDP and IPv4 with the home address as source; the answer goes back the same way and
/// says that there is no NAT; packets then go in IPv4 alone.
#[test]
fn an_ipv4_care_of_address_is_bound_and_answered_by_the_way_of_the_update() {
    let mut agent = agent();
    let (addresses, acknowledgement) = agent.ask(&Update::through_ipv4(5, ABROAD)).expect("an answer");
    let back = Tunnel::through_ipv4(HA_IPV4, ABROAD);
    assert_eq!(addresses, Addresses::new(HA, HOME).through(back).in_udp(40_000));
    assert_eq!(acknowledgement.status.number(), 0);
    let none = NatDetection { udp_encapsulation_required: false, refresh_time: NatDetection::NO_NAT };
    assert_eq!(acknowledgement.options.nat_detection(), Some(none));
    assert_eq!(agent.node.tunnels(HOME), [back]);
    assert!(agent.node.accepts_reverse_tunnel(HOME, ABROAD.to_ipv6_mapped()));
    assert!(
        !agent.node.accepts_home_address_option(HOME, ABROAD.to_ipv6_mapped()),
        "no packet has such a source"
    );
    assert!(agent.node.ipv4_tunnels(HOME_IPV4).is_empty(), "nobody has asked for it");
}

/// The same without UDP, which is answered without UDP (section 4.2: "whenever the binding update is encapsulated in UDP").
#[test]
fn an_update_in_ipv4_alone_is_answered_in_ipv4_alone() {
    let mut agent = agent();
    let update = Update { outer: Some((ABROAD, None)), ..Update::through_ipv4(5, ABROAD) };
    let (addresses, acknowledgement) = agent.ask(&update).expect("an answer");
    assert_eq!(addresses, Addresses::new(HA, HOME).through(Tunnel::through_ipv4(HA_IPV4, ABROAD)));
    assert_eq!((acknowledgement.status.number(), acknowledgement.options.nat_detection()), (0, None));
}

/// Section 4.2: another source in the header of IPv4 means a NAT. It cannot be traversed here, and that is said to who can hear it.
#[test]
fn a_nat_on_the_path_is_found_refused_and_counted() {
    let mut agent = agent();
    let nat = Ipv4Addr::new(203, 0, 113, 9);
    let update = Update { outer: Some((nat, Some(1024))), ..Update::through_ipv4(5, ABROAD) };
    let (addresses, acknowledgement) = agent.ask(&update).expect("an answer");
    assert_eq!(addresses, Addresses::new(HA, HOME).through(Tunnel::through_ipv4(HA_IPV4, nat)).in_udp(1024));
    assert_eq!(acknowledgement.status.number(), 129);
    let found = NatDetection { udp_encapsulation_required: false, refresh_time: 110 };
    assert_eq!(acknowledgement.options.nat_detection(), Some(found));
    assert!(agent.care_ofs().is_empty());
    assert_eq!(agent.dropped(DropReason::NatOnPath), 1);
}

/// Section 4.5: UDP encapsulation that is asked for is not there to be had.
#[test]
fn forced_udp_encapsulation_is_refused() {
    let mut agent = agent();
    let update = Update::through_ipv4(5, ABROAD);
    let update = Update { flags: update.flags.with(UpdateFlags::FORCE_UDP_ENCAPSULATION), ..update };
    assert_eq!(agent.status(&update), Some(129));
    assert_eq!((agent.care_ofs(), agent.dropped(DropReason::NotOffered)), (vec![], 1));
}

#[test]
fn a_care_of_address_that_leads_back_or_nowhere_is_refused() {
    for address in [
        HOME_IPV4,
        HA_IPV4,
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
        Ipv4Addr::new(169, 254, 1, 1),
        Ipv4Addr::new(10, 0, 0, 7),
        Ipv4Addr::new(192, 168, 1, 7),
        Ipv4Addr::new(100, 64, 0, 7),
    ] {
        let mut agent = agent();
        let status = agent.status(&Update::through_ipv4(5, address));
        assert!(matches!(status, None | Some(174)), "{address} {status:?}");
        assert!(agent.care_ofs().is_empty(), "{address}");
        assert_eq!(agent.node.counters().dropped_total(), 1, "{address}");
    }
    // In a private network that is the home agent's own a private address is one like any other.
    let own = Ipv4Addr::new(10, 0, 0, 1);
    let private = HomeAgentConfig { ipv4_address: Some(own), ..dual(sequence_numbers()) };
    let mut agent = Agent::new(private);
    let (addresses, bytes) = Update::through_ipv4(5, Ipv4Addr::new(10, 9, 0, 7)).packet();
    let addresses = addresses.through(Tunnel::through_ipv4(Ipv4Addr::new(10, 9, 0, 7), own));
    agent.hand_in(&(addresses, bytes));
    assert_eq!(agent.care_ofs(), [Ipv4Addr::new(10, 9, 0, 7).to_ipv6_mapped()]);
}

/// What a message names must be of the network that it came through, or nothing proves that the mobile node is there.
#[test]
fn an_address_of_the_other_version_is_refused() {
    let option = MobilityOption::Ipv4CareOfAddress(ABROAD);
    // By IPv6, with an address of IPv4 beside it.
    let mut over_ipv6 = Update { source: care_of(2), outer: None, ..Update::through_ipv4(5, ABROAD) };
    over_ipv6.options = vec![option];
    // By IPv4, with an address of IPv6, with none at all, and with an IPv4-mapped one in its place.
    let through = |care_of, options| Update { care_of, options, ..Update::through_ipv4(5, ABROAD) };
    let mapped = Ipv4Addr::new(203, 0, 113, 9).to_ipv6_mapped();
    for update in [
        over_ipv6,
        through(care_of(2), vec![MobilityOption::AlternateCareOfAddress(care_of(2))]),
        through(HOME, vec![]),
        through(mapped, vec![MobilityOption::AlternateCareOfAddress(mapped)]),
    ] {
        let mut agent = agent();
        let status = agent.status(&update);
        assert!(matches!(status, Some(174 | 129)), "{update:?} {status:?}");
        assert!(agent.care_ofs().is_empty());
    }
}

#[test]
fn without_an_ipv4_address_of_its_own_a_home_agent_takes_nothing_from_ipv4() {
    let mut agent = Agent::serving(sequence_numbers());
    assert_eq!(agent.status(&Update::through_ipv4(5, ABROAD)), None);
    assert_eq!(agent.dropped(DropReason::NotForUs), 1);
    let mut agent = self::agent();
    let (addresses, bytes) = Update::through_ipv4(5, ABROAD).packet();
    let elsewhere = Tunnel::through_ipv4(ABROAD, Ipv4Addr::new(192, 0, 2, 99));
    assert!(agent.hand_in(&(addresses.through(elsewhere), bytes)).is_empty());
    assert_eq!((agent.care_ofs(), agent.dropped(DropReason::NotForUs)), (vec![], 1));
}

#[test]
fn a_forged_update_through_ipv4_binds_nothing() {
    let mut agent = agent();
    let forged = Update { key: b"not the same key", ..Update::through_ipv4(5, ABROAD) };
    let (addresses, bytes) = forged.packet();
    agent.hand_in(&(addresses, bytes));
    assert!(agent.care_ofs().is_empty());
    assert_eq!(agent.dropped(DropReason::BadAuthenticator), 1);
    // A genuine one with another care-of address in it.
    let (addresses, mut bytes) = Update::through_ipv4(5, ABROAD).packet();
    let at = bytes.windows(4).position(|four| four == ABROAD.octets()).unwrap();
    bytes[at..at + 4].copy_from_slice(&[203, 0, 113, 66]);
    make_checksum_right(addresses, &mut bytes);
    let thief = Tunnel::through_ipv4(Ipv4Addr::new(203, 0, 113, 66), HA_IPV4);
    agent.hand_in(&(addresses.through(thief), bytes));
    assert_eq!((agent.care_ofs(), agent.dropped(DropReason::BadAuthenticator)), (vec![], 2));
    // Refusals to who has proved nothing are rationed by where they go.
    let before = agent.node.counters().answers_suppressed;
    for number in 0..200 {
        agent.hand_in(&Update { sequence: number, ..forged.clone() }.packet());
    }
    assert!(agent.node.counters().answers_suppressed > before + 100);
}

fn answers_for(
    agent: &mut Agent,
    sequence: u16,
    options: &[MobilityOption],
) -> Vec<Ipv4AddressAcknowledgement> {
    let update = options.iter().cloned().fold(Update::new(sequence, care_of(2)), Update::with);
    let (_, acknowledgement) = agent.ask(&update).expect("an answer");
    assert_eq!(
        acknowledgement.status.number(),
        0,
        "the binding of the IPv6 home address does not depend on it"
    );
    acknowledgement.options.ipv4_address_acknowledgements().copied().collect()
}

/// RFC 5555 sections 2.3.1 and 3.2.1.
#[test]
fn an_ipv4_home_address_is_bound_to_whom_it_belongs() {
    let mut agent = agent();
    let success = Ipv4AddressAcknowledgement::new(Ipv4AddressStatus::Success, HOME_IPV4, 32).unwrap();
    assert_eq!(answers_for(&mut agent, 5, &[wants(HOME_IPV4)]), [success]);
    let tunnel = Tunnel { entry: HA, exit: care_of(2) };
    assert_eq!(agent.node.ipv4_tunnels(HOME_IPV4), [tunnel]);
    assert!(agent.node.accepts_ipv4_reverse_tunnel(HOME_IPV4, care_of(2)));
    assert!(!agent.node.accepts_ipv4_reverse_tunnel(HOME_IPV4, care_of(3)));
    assert!(!agent.node.accepts_ipv4_reverse_tunnel(Ipv4Addr::new(192, 0, 2, 8), care_of(2)));
    // Section 4.4.2.1: without the option it is gone, and the other stays.
    assert_eq!(answers_for(&mut agent, 6, &[]), []);
    assert_eq!((agent.node.ipv4_tunnels(HOME_IPV4), agent.care_ofs()), (&[][..], vec![care_of(2)]));
    // Whichever there is.
    assert_eq!(answers_for(&mut agent, 7, &[wants(Ipv4Addr::UNSPECIFIED)]), [success]);
    assert_eq!(agent.node.ipv4_tunnels(HOME_IPV4), [tunnel]);
    // The end of all.
    assert_eq!(agent.status(&Update { units: 0, ..Update::new(8, care_of(2)) }), Some(0));
    assert!(agent.node.ipv4_tunnels(HOME_IPV4).is_empty() && agent.care_ofs().is_empty());
}

/// The length of the home network is told with the address, and is no prefix of the mobile node's.
#[test]
fn an_ipv4_home_address_comes_with_the_length_of_its_network() {
    let security = timestamps();
    let home = HomeAgentConfig { ipv4_home_prefix_len: 24, ..dual(security.clone()) };
    let mut world = World::new(dual_node(security.clone()), home);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(outcomes(&world), [Ipv4HomeOutcome::Bound { address: HOME_IPV4, prefix_len: 24 }]);
    // It asks for one address again, which is the same, and who asks with the length that he was told is given it, too.
    world.attach(GSM, V4);
    world.switch_to(GSM);
    world.run(SECOND * 2);
    assert_eq!(outcomes(&world).len(), 1);
    assert_eq!(
        world.home.ipv4_tunnels(HOME_IPV4),
        [Tunnel::through_ipv4(HA_IPV4, care_of(V4).to_ipv4_mapped().unwrap())]
    );
    let mut agent = Agent::new(HomeAgentConfig { ipv4_home_prefix_len: 24, ..dual(sequence_numbers()) });
    let success = Ipv4AddressAcknowledgement::new(Ipv4AddressStatus::Success, HOME_IPV4, 24).unwrap();
    for (sequence, len) in [(5, 32), (6, 24)] {
        let asked = Ipv4HomeAddress::new(HOME_IPV4, len, false).map(MobilityOption::Ipv4HomeAddress).unwrap();
        assert_eq!(answers_for(&mut agent, sequence, &[asked]), [success]);
    }
}

#[test]
fn both_addresses_go_to_an_ipv4_care_of_address() {
    let mut agent = agent();
    let update = Update::through_ipv4(5, ABROAD).with(wants(HOME_IPV4));
    assert_eq!(agent.status(&update), Some(0));
    let tunnel = Tunnel::through_ipv4(HA_IPV4, ABROAD);
    assert_eq!(
        (agent.node.tunnels(HOME), agent.node.ipv4_tunnels(HOME_IPV4)),
        (&[tunnel][..], &[tunnel][..])
    );
    assert!(agent.node.accepts_ipv4_reverse_tunnel(HOME_IPV4, ABROAD.to_ipv6_mapped()));
}

#[test]
fn other_ipv4_home_addresses_are_refused_by_their_statuses() {
    let prefix =
        |address, len| Ipv4HomeAddress::new(address, len, true).map(MobilityOption::Ipv4HomeAddress).unwrap();
    let shorter = MobilityOption::Ipv4HomeAddress(Ipv4HomeAddress::new(HOME_IPV4, 24, false).unwrap());
    for (option, status) in [
        (wants(Ipv4Addr::new(192, 0, 2, 8)), 130),
        (wants(HA_IPV4), 130),
        (wants(Ipv4Addr::BROADCAST), 131),
        (wants(Ipv4Addr::new(224, 0, 0, 1)), 131),
        (wants(Ipv4Addr::LOCALHOST), 131),
        (prefix(Ipv4Addr::UNSPECIFIED, 24), 133),
        (shorter, 133),
    ] {
        let mut agent = agent();
        let answers = answers_for(&mut agent, 5, std::slice::from_ref(&option));
        let [answer] = answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer.status().number(), answer.prefix_len()), (status, 0), "{option:?}");
        assert!(agent.node.ipv4_tunnels(HOME_IPV4).is_empty(), "{option:?}");
    }
    // Who has none is given none.
    let mut agent = Agent::serving(sequence_numbers());
    let answers = answers_for(&mut agent, 5, &[wants(Ipv4Addr::UNSPECIFIED)]);
    assert_eq!(answers.first().map(|answer| answer.status().number()), Some(132));
    // An address and a prefix at once (section 3.1.1), and far too many.
    let mut agent = self::agent();
    let both = answers_for(&mut agent, 5, &[wants(HOME_IPV4), prefix(Ipv4Addr::UNSPECIFIED, 24)]);
    assert_eq!(both.iter().map(|answer| answer.status().number()).collect::<Vec<_>>(), [0, 133]);
    assert!(!agent.node.ipv4_tunnels(HOME_IPV4).is_empty());
    let many = vec![wants(HOME_IPV4); 100];
    assert_eq!(answers_for(&mut agent, 6, &many).len(), 4);
}

/// RFC 5648 sections 8.1 and 8.2: a name may go with an address of either version, and the IPv4 home address has all of them.
#[test]
fn several_care_of_addresses_may_be_of_both_versions() {
    let mut agent = agent();
    let named = |id, care_of_address: IpAddr| {
        let care_of_address = Some(care_of_address);
        let id = BindingId(id);
        MobilityOption::BindingIdentifier(BindingIdentifier { care_of_address, ..BindingIdentifier::new(id) })
    };
    let first = Update { options: vec![named(1, care_of(2).into())], ..Update::new(5, care_of(2)) };
    assert_eq!(agent.status(&first), Some(0));
    assert!(agent.node.ipv4_tunnels(HOME_IPV4).is_empty());
    let second = Update {
        options: vec![named(2, ABROAD.into()), wants(HOME_IPV4)],
        ..Update::through_ipv4(6, ABROAD)
    };
    assert_eq!(agent.status(&second), Some(0));
    let both = [Tunnel { entry: HA, exit: care_of(2) }, Tunnel::through_ipv4(HA_IPV4, ABROAD)];
    assert_eq!((agent.node.tunnels(HOME), agent.node.ipv4_tunnels(HOME_IPV4)), (&both[..], &both[..]));
    // One of IPv4 is ended by way of IPv6.
    let end = Update {
        units: 0,
        options: vec![named(2, ABROAD.into())],
        care_of: ABROAD.to_ipv6_mapped(),
        ..Update::new(7, care_of(2))
    };
    assert_eq!(agent.status(&end), Some(0));
    assert_eq!(agent.care_ofs(), [care_of(2)]);
}

#[test]
fn a_home_agent_that_starts_again_knows_ipv4_bindings() {
    let mut before = agent();
    assert_eq!(before.status(&Update::through_ipv4(5, ABROAD).with(wants(HOME_IPV4))), Some(0));
    let record = before.node.record(before.now, HOME).unwrap();
    let mut after = agent();
    assert!(after.node.restore(after.now, &record));
    let tunnel = Tunnel::through_ipv4(HA_IPV4, ABROAD);
    assert_eq!(
        (after.node.tunnels(HOME), after.node.ipv4_tunnels(HOME_IPV4)),
        (&[tunnel][..], &[tunnel][..])
    );
    // What the configuration no longer has does not come back.
    let none = HomeAgentConfig { ipv4_address: None, ..dual(sequence_numbers()) };
    let mut without = Agent::new(none);
    without.node.restore(without.now, &record);
    assert!(without.care_ofs().is_empty());
}

#[test]
fn addresses_that_cannot_be_are_refused_at_once() {
    let refused = |config: HomeAgentConfig| {
        HomeAgent::new(Instant::ZERO, config, careof_base::RandomStream::new(1, 0, "refused")).err()
    };
    let group = Some(Ipv4Addr::new(224, 0, 0, 1));
    let not_unicast = refused(HomeAgentConfig { ipv4_address: group, ..dual(timestamps()) });
    assert!(matches!(not_unicast, Some(ConfigError::NotUnicast { .. })), "{not_unicast:?}");
    let none = refused(HomeAgentConfig { ipv4_home_prefix_len: 0, ..dual(timestamps()) });
    assert!(matches!(none, Some(ConfigError::OutOfRange { found: 0, low: 1, high: 32, .. })), "{none:?}");
    let twice = refused(HomeAgentConfig { ipv4_address: Some(HOME_IPV4), ..dual(timestamps()) });
    assert!(matches!(twice, Some(ConfigError::DuplicateAddress { .. })), "{twice:?}");
    let refused = |config: MobileNodeConfig| {
        MobileNode::new(Instant::ZERO, config, careof_base::RandomStream::new(1, 0, "refused")).err()
    };
    let unnamed = MobileNodeConfig { home_agent: None, ..dual_node(timestamps()) };
    assert!(matches!(refused(unnamed), Some(ConfigError::Missing(_))));
    let same = MobileNodeConfig { ipv4_home_address: Some(HA_IPV4), ..dual_node(timestamps()) };
    assert!(matches!(refused(same), Some(ConfigError::DuplicateAddress { .. })));
}

fn dual_node(security: SecurityAssociation) -> MobileNodeConfig {
    MobileNodeConfig { home_agent_ipv4: Some(HA_IPV4), ipv4_home_address: Some(HOME_IPV4), ..node(security) }
}

fn world(security: SecurityAssociation) -> World {
    World::new(dual_node(security.clone()), dual(security))
}

fn outcomes(world: &World) -> Vec<Ipv4HomeOutcome> {
    let told = |(_, event): &(Instant, Event)| match event {
        Event::Ipv4HomeAddress { outcome } => Some(*outcome),
        _ => None,
    };
    world.mobile_events.iter().filter_map(told).collect()
}

/// From IPv6 to IPv4 and back, each with both home addresses.
#[test]
fn a_mobile_node_moves_between_networks_of_both_versions() {
    for security in [timestamps(), sequence_numbers()] {
        let mut world = world(security);
        world.attach(WLAN, 2);
        world.switch_to(WLAN);
        world.run(SECOND * 2);
        assert_eq!(outcomes(&world), [Ipv4HomeOutcome::Bound { address: HOME_IPV4, prefix_len: 32 }]);
        let ipv6 = Tunnel { entry: care_of(2), exit: HA };
        assert_eq!(world.mobile.ipv4_delivery().unwrap().tunnel, ipv6);
        assert_eq!(world.home.ipv4_tunnels(HOME_IPV4), [Tunnel { entry: HA, exit: care_of(2) }]);

        world.attach(GSM, V4);
        world.switch_to(GSM);
        world.run(SECOND * 2);
        assert_eq!(world.mobile.care_of(), Some(care_of(V4)));
        let out = Tunnel::through_ipv4(ipv4_care_of(V4).unwrap(), HA_IPV4);
        let delivery = world.mobile.ipv4_delivery().unwrap();
        assert_eq!((delivery.interface, delivery.tunnel, delivery.via), (GSM, out, None));
        let delivery = world.mobile.delivery(CN).unwrap();
        assert_eq!(delivery.addresses, Addresses::new(HOME, CN).through(out));
        let back = Tunnel { entry: out.exit, exit: out.entry };
        assert_eq!(
            (world.home.tunnels(HOME), world.home.ipv4_tunnels(HOME_IPV4)),
            (&[back][..], &[back][..])
        );
        assert!(world.mobile.accepts_tunnel_from(HA_IPV4.to_ipv6_mapped()));
        let update = world.sent.iter().rev().find_map(|(_, addresses, message)| match message {
            Message::BindingUpdate(update) => Some((*addresses, update.clone())),
            _ => None,
        });
        let (addresses, update) = update.unwrap();
        assert_eq!(addresses, Addresses::new(HOME, HA).through(out).in_udp(4191));
        assert_eq!(update.options.ipv4_care_of_address(), ipv4_care_of(V4));
        assert_eq!(update.options.alternate_care_of_address(), None);

        // Data both ways, through IPv4.
        world.send_down(1);
        assert!(world.send_up(2));
        world.run(SECOND);
        assert_eq!((&world.data[..], world.rejected), (&[(1, true)][..], 0));

        // The same interface moves to another network, and that to one of IPv6.
        world.detach(GSM);
        world.attach(GSM, OTHER_V4);
        world.run(SECOND * 40);
        assert_eq!(world.tunnelled_to(), [care_of(OTHER_V4)]);
        world.detach(GSM);
        world.attach(GSM, 3);
        world.run(SECOND * 40);
        assert_eq!(world.tunnelled_to(), [care_of(3)]);
        assert_eq!(outcomes(&world).len(), 1, "it was bound all the time");
        world.mobile.deregister(world.now);
        world.run(SECOND * 2);
        assert!(world.tunnelled_to().is_empty() && world.mobile.ipv4_home_address().is_none());
    }
}

#[test]
fn the_end_of_the_service_is_told_from_a_network_of_ipv4() {
    let mut world = world(timestamps());
    world.attach(GSM, V4);
    world.switch_to(GSM);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(V4)]);
    world.mobile.deregister(world.now);
    world.run(SECOND * 2);
    assert!(!world.mobile.is_registered() && world.tunnelled_to().is_empty());
    assert!(world.home.ipv4_tunnels(HOME_IPV4).is_empty());
}

/// RFC 5648 section 8.1: with names, both care-of addresses at once.
#[test]
fn an_old_binding_of_the_other_version_is_kept_until_it_is_released() {
    let security = timestamps();
    let config = MobileNodeConfig { multiple_care_of: true, ..dual_node(security.clone()) };
    let mut world = World::new(config, dual(security));
    world.attach(GSM, V4);
    world.switch_to(GSM);
    world.run(SECOND * 2);
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(V4), care_of(2)]);
    assert_eq!(world.home.ipv4_tunnels(HOME_IPV4).len(), 2);
    world.mobile.release(world.now, GSM);
    world.run(SECOND * 2);
    assert_eq!(world.tunnelled_to(), [care_of(2)]);
}

/// Section 4.4.1: on a link of both IPv6 is preferred; where nobody answers by it, IPv4 is tried after three updates.
#[test]
fn ipv4_is_used_on_a_link_of_both_only_when_ipv6_is_silent() {
    for broken in [None, Some(2)] {
        let mut world = world(timestamps());
        world.broken = broken;
        let prefix = prefix(V4);
        let address = InterfaceAddress { address: care_of(V4), prefix, valid_for: None };
        world.attach(WLAN, 2);
        world.tell(Input::AddressAdded { interface: WLAN, address });
        world.switch_to(WLAN);
        world.run(SECOND * 2);
        if broken.is_none() {
            assert_eq!(world.tunnelled_to(), [care_of(2)]);
            continue;
        }
        let sent = |world: &World| world.count_sent(Instant::ZERO, "BindingUpdate", HA);
        while sent(&world) < 4 {
            world.networks.insert(WLAN, if sent(&world) < 3 { 2 } else { V4 });
            world.run(Duration::from_millis(100));
        }
        world.networks.insert(WLAN, V4);
        world.run(SECOND * 40);
        assert_eq!(world.tunnelled_to(), [care_of(V4)]);
    }
}

/// The choice of IPv4 is one of the moment: a home agent that was away for some seconds is found by IPv6 again.
#[test]
fn ipv6_is_tried_again_where_ipv4_is_refused_silent_or_gone() {
    for end in ["refused", "silent", "gone"] {
        let mut world = world(timestamps());
        world.broken = Some(2);
        let address = InterfaceAddress { address: care_of(V4), prefix: prefix(V4), valid_for: None };
        world.attach(WLAN, 2);
        world.tell(Input::AddressAdded { interface: WLAN, address });
        world.switch_to(WLAN);
        let sent = |world: &World| world.count_sent(Instant::ZERO, "BindingUpdate", HA);
        while sent(&world) < 3 {
            world.run(Duration::from_millis(100));
        }
        match end {
            "refused" => {
                world.nat = Some(Ipv4Addr::new(203, 0, 113, 9));
                world.networks.insert(WLAN, V4);
                while world.mobile.counters().refused(129) == 0 {
                    world.run(Duration::from_millis(100));
                }
            }
            "silent" => world.run(SECOND * 20),
            _ => {
                world.run(SECOND * 5);
                world.tell(Input::AddressRemoved { interface: WLAN, address: care_of(V4) });
                let before = sent(&world);
                world.run(SECOND * 60);
                assert!(sent(&world) > before, "a node that is not answered goes on");
            }
        }
        (world.nat, world.broken) = (None, None);
        world.networks.insert(WLAN, 2);
        world.run(SECOND * 100);
        assert_eq!(world.tunnelled_to(), [care_of(2)], "{end}");
    }
}

/// Whatever is lost, repeated or overtaken, home agent and mobile node agree on where it is in the end.
#[test]
fn on_networks_that_lose_and_reorder_both_agree_in_the_end() {
    for (several, seed) in [(false, 1), (true, 2), (false, 3), (true, 4)] {
        let security = timestamps();
        let config = MobileNodeConfig { multiple_care_of: several, ..dual_node(security.clone()) };
        let mut world = World::new(config, dual(security));
        let jitter = Duration::from_millis(300);
        for turn in 0_u16..12 {
            world.faults = Faults { loss: 0.3, duplicate: 0.2, jitter };
            let (interface, number) = match (turn * seed) % 5 {
                0 => (WLAN, 2),
                1 => (GSM, V4),
                2 => (WLAN, OTHER_V4),
                3 => (GSM, 3),
                _ => (WLAN, V4 + 5),
            };
            world.detach(interface);
            world.attach(interface, number);
            world.switch_to(interface);
            world.run(Duration::from_millis(700 * u64::from(turn)));
            world.faults = Faults::NONE;
            world.run(SECOND * 70);
            let tunnels = world.tunnelled_to();
            assert_eq!(tunnels.last(), Some(&care_of(number)), "turn {turn} of {seed}");
            assert_eq!(world.mobile.care_of(), Some(care_of(number)));
            assert_eq!(world.home.ipv4_tunnels(HOME_IPV4), world.home.tunnels(HOME));
            let tunnel = world.home.tunnels(HOME).last().unwrap();
            let back = Tunnel { entry: tunnel.exit, exit: tunnel.entry };
            assert_eq!(world.mobile.ipv4_delivery().map(|delivery| delivery.tunnel), Some(back));
            let data = world.data.len();
            world.send_down(turn.into());
            world.run(SECOND);
            assert_eq!(world.data.len(), data + 1);
        }
        assert_eq!(world.rejected, 0);
    }
}

#[test]
fn behind_a_nat_the_node_is_not_registered_and_knows_why() {
    let security = timestamps();
    let config = MobileNodeConfig {
        selection: Selection::Preferred { hold: Duration::ZERO },
        ..dual_node(security.clone())
    };
    let mut world = World::new(config, dual(security));
    world.nat = Some(Ipv4Addr::new(203, 0, 113, 9));
    world.attach(GSM, V4);
    world.run(SECOND * 10);
    assert!(!world.mobile.is_registered() && world.tunnelled_to().is_empty());
    assert!(world.mobile.counters().dropped(DropReason::NatOnPath) > 0);
    assert!(world.mobile.counters().refused(129) > 0);
    assert!(world.home.counters().dropped(DropReason::NatOnPath) > 0);
    world.attach(WLAN, 2);
    world.run(SECOND * 10);
    assert_eq!(world.tunnelled_to(), [care_of(2)], "another network will do");
}

/// Section 2.3.1: who does not answer for an IPv4 home address does not know of any, and is not asked again.
#[test]
fn a_home_agent_that_knows_no_ipv4_home_addresses_is_not_asked_again() {
    let security = sequence_numbers();
    let random = careof_base::RandomStream::new(1, 0, "mobile node");
    let config =
        MobileNodeConfig { clock: clock(), lifetime: Lifetime::from_units(1), ..dual_node(security) };
    let mut node = MobileNode::new(Instant::ZERO, config, random).unwrap();
    let address = InterfaceAddress { address: care_of(2), prefix: prefix(2), valid_for: None };
    node.handle_input(Instant::ZERO, Input::LinkUp { interface: WLAN });
    node.handle_input(Instant::ZERO, Input::AddressAdded { interface: WLAN, address });
    node.switch_to(Instant::ZERO, WLAN, Notice::None).unwrap();
    let mut asked = Vec::new();
    let mut now = Instant::ZERO;
    for _ in 0..3 {
        let sent = node.poll_transmit(now).expect("an update");
        let to = sent.addresses;
        let parsed = Message::parse(to.real_source(), to.real_destination(), sent.payload.bytes());
        let Ok(Message::BindingUpdate(update)) = parsed else { panic!("{parsed:?}") };
        asked.push(update.options.ipv4_home_addresses().count());
        let answer = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::Accepted,
            flags: AcknowledgementFlags::default(),
            sequence: update.sequence,
            lifetime: update.lifetime,
            options: MobilityOptions::new(),
        });
        let back = Addresses::new(HA, care_of(2)).with_type_2_routing(HOME);
        let authentication = MobileHomeAuthentication {
            spi: SPI,
            algorithm: Algorithm::HmacSha1,
            key: KEY,
            care_of_address: care_of(2),
            home_address: HOME,
        };
        let bytes = answer.emit_authenticated(HA, HOME, &authentication).unwrap();
        node.handle_input(now, Input::Mobility { interface: WLAN, addresses: back, message: &bytes });
        assert!(node.is_registered());
        assert_eq!(node.ipv4_home_outcome(), Some(Ipv4HomeOutcome::NotSupported));
        // The renewal.
        now = node.next_timeout().expect("a deadline").0;
        node.handle_timeout(now);
    }
    assert_eq!((asked, node.ipv4_delivery()), (vec![1, 0, 0], None));
}

#[test]
fn without_its_ipv4_home_address_a_node_is_registered_all_the_same() {
    let security = timestamps();
    let mut world = World::new(dual_node(security.clone()), config(security));
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    // Ours answers that there is none.
    let refused = Ipv4HomeOutcome::Refused { status: Ipv4AddressStatus::IncorrectHomeAddress };
    assert_eq!((outcomes(&world), world.mobile.ipv4_delivery()), (vec![refused], None));
    assert!(world.mobile.is_registered());
}

#[test]
fn an_address_of_ipv4_is_no_care_of_address_without_a_home_agent_of_ipv4() {
    let mut world = World::simple(timestamps());
    world.attach(GSM, V4);
    world.switch_to(GSM);
    world.run(SECOND * 10);
    assert!(world.sent.is_empty() && !world.mobile.is_registered());
    // Nor is the node's own home address, or the home agent's.
    let mut world = self::world(timestamps());
    world.switch_to(GSM);
    world.tell(Input::LinkUp { interface: GSM });
    for own in [HOME_IPV4, HA_IPV4] {
        let address = own.to_ipv6_mapped();
        let address = InterfaceAddress { address, prefix: Prefix::new(address, 128), valid_for: None };
        world.tell(Input::AddressAdded { interface: GSM, address });
    }
    world.run(SECOND * 10);
    assert!(world.sent.is_empty());
}

/// RFC 5555 section 5.1: a correspondent node cannot be told an IPv4 care-of address, so what it knows ends.
#[test]
fn routes_are_optimised_no_longer_from_a_network_of_ipv4() {
    let mut world = world(timestamps());
    world.attach(WLAN, 2);
    world.switch_to(WLAN);
    world.run(SECOND * 2);
    world.send_down(1);
    world.run(SECOND * 5);
    assert_eq!(world.mobile.optimized_route(CN), Some(care_of(2)));
    world.attach(GSM, V4);
    world.switch_to(GSM);
    world.run(SECOND * 10);
    assert_eq!(world.mobile.optimized_route(CN), None);
    assert_eq!(world.peer.way_to(HOME), Addresses::new(CN, HOME), "it has deleted its binding");
    let changed = |(_, event): &(Instant, Event)| match event {
        Event::Correspondent(change) => Some(change.change),
        _ => None,
    };
    assert_eq!(world.mobile_events.iter().rev().find_map(changed), Some(Change::Removed));
}

proptest! {
    /// Whatever an authentic update says of IPv4, no tunnel leads to the home agent, to a home address, or to what is no node.
    #[test]
    fn no_update_makes_a_tunnel_that_leads_back(
        outer in prop_oneof![any::<u32>().prop_map(Ipv4Addr::from_bits), Just(HOME_IPV4), Just(HA_IPV4), Just(ABROAD)],
        named in prop_oneof![any::<u32>().prop_map(Ipv4Addr::from_bits), Just(HOME_IPV4), Just(HA_IPV4), Just(ABROAD)],
        same in any::<bool>(),
        units in 0_u16..3,
        asked in proptest::option::of(prop_oneof![any::<u32>().prop_map(Ipv4Addr::from_bits), Just(HOME_IPV4)]),
    ) {
        let mut agent = agent();
        let outer = if same { named } else { outer };
        let mut update = Update { outer: Some((outer, Some(9))), units, ..Update::through_ipv4(5, named) };
        update.options.extend(asked.map(wants));
        let status = agent.status(&update);
        for tunnel in agent.node.tunnels(HOME) {
            let (entry, exit) = tunnel.ipv4_ends().expect("of IPv4");
            prop_assert_eq!((entry, exit), (HA_IPV4, outer));
            prop_assert!(exit == named && exit != HOME_IPV4 && exit != HA_IPV4 && !exit.is_private());
            prop_assert!(!exit.is_multicast() && !exit.is_loopback() && !exit.is_unspecified());
            prop_assert_eq!(status, Some(0));
        }
        let is_bound = !agent.node.ipv4_tunnels(HOME_IPV4).is_empty();
        prop_assert!(!is_bound || matches!(asked, Some(HOME_IPV4 | Ipv4Addr::UNSPECIFIED)));
    }
}

/// An address that only looks like one of IPv4 (RFC 4291 section 2.5.5.1) is one of IPv6.
#[test]
fn ends_of_tunnels_are_of_one_version() {
    let compatible: Ipv6Addr = ABROAD.to_ipv6_compatible();
    assert_eq!(Tunnel { entry: compatible, exit: HA }.ipv4_ends(), None);
    assert_eq!(Tunnel { entry: ABROAD.to_ipv6_mapped(), exit: HA }.ipv4_ends(), None);
    assert_eq!(Tunnel::through_ipv4(ABROAD, HA_IPV4).ipv4_ends(), Some((ABROAD, HA_IPV4)));
}
