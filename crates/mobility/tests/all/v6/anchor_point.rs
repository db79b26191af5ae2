//! A mobility anchor point alone (RFC 5380 section 6.2): which updates it takes, what it answers and for how long.

use careof_base::{Duration, Instant, RandomStream};
use careof_mobility::v6::*;
use careof_mobility::{Change, ConfigError};
use careof_wire::icmpv6::{HomeAgentAddressDiscoveryRequest, Icmpv6Message, PrefixLifetime};
use careof_wire::ipv6::home_agents_anycast;
use careof_wire::mip6::{
    BindingAcknowledgement, BindingId, BindingIdentifier, Lifetime, MobilityOption, UpdateFlags,
};
use std::net::Ipv6Addr;

use super::craft::*;

/// The network of the anchor point, its own address there, and the regional care-of address of the mobile node.
const REGION: u16 = 300;
const MAP: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, REGION, 0, 0, 0, 0, 1);
const REGIONAL: Ipv6Addr = care_of(REGION);

struct Anchor {
    node: MobilityAnchorPoint,
    now: Instant,
    events: Vec<Event>,
}

fn settings(security: SecurityAssociation) -> MobilityAnchorPointConfig {
    MobilityAnchorPointConfig {
        mobile_nodes: vec![ServedMobileNode::new(REGIONAL, security)],
        clock: clock(),
        duplicate_address_detection: None,
        ..MobilityAnchorPointConfig::new(MAP, prefix(REGION), HOME_IF)
    }
}

/// An update as a mobile node under `SequenceNumbers` sends it.
fn local(sequence: u16, care_of: Ipv6Addr) -> Update {
    Update {
        to: MAP,
        home_address: REGIONAL,
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::MAP_REGISTRATION),
        options: Vec::new(),
        ..Update::new(sequence, care_of)
    }
}

impl Anchor {
    fn new(config: MobilityAnchorPointConfig) -> Self {
        let random = RandomStream::new(1, 0, "anchor point");
        let node = MobilityAnchorPoint::new(Instant::ZERO, config, random).unwrap();
        Self { node, now: Instant::ZERO, events: Vec::new() }
    }

    fn hand_in(&mut self, input: Input<'_>) -> Vec<Transmit> {
        self.node.handle_input(self.now, input);
        self.events.extend(std::iter::from_fn(|| self.node.poll_event()));
        std::iter::from_fn(|| self.node.poll_transmit(self.now)).collect()
    }

    fn ask(&mut self, update: &Update) -> Option<(Addresses, BindingAcknowledgement)> {
        let (addresses, bytes) = update.packet();
        let sent = self.hand_in(Input::Mobility { interface: HOME_IF, addresses, message: &bytes });
        sent.iter().find_map(|transmit| acknowledgement(transmit, update.care_of))
    }

    fn status(&mut self, update: &Update) -> Option<u8> {
        self.ask(update).map(|(_, acknowledgement)| acknowledgement.status.number())
    }

    fn exits(&self) -> Vec<Ipv6Addr> {
        self.node.tunnels(REGIONAL).iter().map(|tunnel| tunnel.exit).collect()
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.node.counters().dropped(reason)
    }
}

/// Section 6.2: the acknowledgement has a routing header with the regional care-of address; no new status is needed.
#[test]
fn a_local_update_binds_the_regional_to_the_on_link_care_of_address() {
    let mut anchor = Anchor::new(settings(sequence_numbers()));
    let (way, answer) = anchor.ask(&local(7, care_of(2))).expect("an answer");
    assert_eq!(way, Addresses::new(MAP, care_of(2)).with_type_2_routing(REGIONAL));
    assert_eq!((answer.status.number(), answer.lifetime.as_units(), answer.sequence.0), (0, 75, 7));
    assert_eq!(anchor.node.tunnels(REGIONAL), [Tunnel { entry: MAP, exit: care_of(2) }]);
    assert!(anchor.node.accepts_reverse_tunnel(REGIONAL, care_of(2)));
    assert!(!anchor.node.accepts_reverse_tunnel(REGIONAL, care_of(3)));
    assert!(!anchor.node.accepts_reverse_tunnel(HOME, care_of(2)), "it does not know the home address");
    let proxied = Event::Neighbor(NeighborEvent::Proxy { interface: HOME_IF, address: REGIONAL, on: true });
    assert!(anchor.events.contains(&proxied), "it takes the packets for the address");
    // A movement within the domain, and the end.
    assert_eq!(anchor.status(&local(8, care_of(3))), Some(0));
    assert_eq!((anchor.exits(), anchor.node.binding_count()), (vec![care_of(3)], 1));
    assert!(anchor.node.accepts_reverse_tunnel(REGIONAL, care_of(2)), "what was under way");
    assert_eq!(anchor.status(&Update { units: 0, ..local(9, care_of(3)) }), Some(0));
    assert!(anchor.exits().is_empty());
}

/// Section 4: M and not H tells the registration from one with a home agent, which it is not. A home agent does not know M (section 6.3).
#[test]
fn an_update_for_a_home_agent_is_none_for_an_anchor_point() {
    let mut anchor = Anchor::new(settings(sequence_numbers()));
    let flags = |flag: UpdateFlags| UpdateFlags::ACKNOWLEDGE.with(flag);
    let both = flags(UpdateFlags::MAP_REGISTRATION).with(UpdateFlags::HOME_REGISTRATION);
    for flags in [flags(UpdateFlags::HOME_REGISTRATION), both, UpdateFlags::ACKNOWLEDGE] {
        assert_eq!(anchor.status(&Update { flags, ..local(1, care_of(2)) }), None, "{flags:?}");
    }
    assert_eq!((anchor.dropped(DropReason::NotForUs), anchor.node.binding_count()), (3, 0));
    // Once there is a binding its kind does not change (RFC 6275 section 9.5.1).
    anchor.ask(&local(2, care_of(2)));
    assert_eq!(anchor.status(&Update { flags: both, ..local(3, care_of(3)) }), Some(139));
    assert_eq!(anchor.exits(), [care_of(2)]);
    let mut agent = Agent::serving(sequence_numbers());
    let update = Update { flags: both, ..Update::new(1, care_of(2)) };
    assert_eq!(agent.status(&update), Some(0));
    let update = Update { flags: flags(UpdateFlags::MAP_REGISTRATION), ..Update::new(2, care_of(3)) };
    assert_eq!((agent.status(&update), agent.care_ofs()), (Some(139), vec![care_of(2)]));
}

/// Sections 6.1 and 6.2: the on-link care-of address is the source, is of a link of the domain, and is no regional one.
#[test]
fn care_of_addresses_that_are_not_of_the_domain_are_refused() {
    let domain = vec![prefix(2), prefix(3)];
    let mut anchor = Anchor::new(MobilityAnchorPointConfig { domain, ..settings(sequence_numbers()) });
    assert_eq!(anchor.status(&local(1, care_of(4))), Some(129), "administratively prohibited");
    let elsewhere = local(2, care_of(2)).with(MobilityOption::AlternateCareOfAddress(care_of(3)));
    let elsewhere = Update { care_of: care_of(3), ..elsewhere };
    assert_eq!(anchor.status(&elsewhere), Some(174), "whether it is there nobody knows");
    for regional in [Ipv6Addr::new(0x2001, 0xdb8, REGION, 0, 0, 0, 0, 9), MAP] {
        assert_eq!(anchor.status(&local(3, regional)), Some(174), "{regional}");
    }
    assert_eq!(anchor.node.binding_count(), 0);
    assert_eq!(anchor.status(&local(4, care_of(3))), Some(0));
    let two = MobilityOption::BindingIdentifier(BindingIdentifier::new(BindingId(1)));
    assert_eq!(anchor.status(&local(5, care_of(3)).with(two)), Some(166), "one address at a time");
}

/// Section 8: packets are sent on to neighboring domains, for who has a binding, and not for long.
#[test]
fn packets_are_sent_on_to_neighboring_domains_for_a_while() {
    let mut anchor = Anchor::new(MobilityAnchorPointConfig {
        domain: vec![prefix(2)],
        neighbors: vec![prefix(3)],
        forwarding: Lifetime::from_units(5),
        ..settings(sequence_numbers())
    });
    assert_eq!(anchor.status(&local(1, care_of(3))), Some(129), "it has nothing to send on");
    assert_eq!(anchor.status(&local(2, care_of(2))), Some(0));
    let (_, answer) = anchor.ask(&local(3, care_of(3))).expect("an answer");
    assert_eq!((answer.status.number(), answer.lifetime.as_units()), (0, 5));
    assert_eq!(anchor.exits(), [care_of(3)]);
    assert_eq!(anchor.status(&local(4, care_of(4))), Some(129));
    anchor.now = Instant::from_secs(20);
    anchor.node.handle_timeout(anchor.now);
    assert!(anchor.exits().is_empty());
    let expired = |event: Event| matches!(event, Event::Binding(b) if b.change == Change::Expired);
    assert!(std::iter::from_fn(|| anchor.node.poll_event()).any(expired));
    assert_eq!(anchor.status(&local(5, care_of(3))), Some(129));
}

/// No binding outlives the prefix of its regional care-of address. Its end is told by the lifetime alone: an anchor point has no prefixes
/// of a home network to tell of, so the status is 0.
#[test]
fn no_binding_outlives_the_prefix() {
    let valid = PrefixLifetime::from_secs(101);
    let mut config = settings(sequence_numbers());
    config.prefixes = vec![HomePrefix { valid, preferred: valid, ..config.prefixes[0] }];
    let mut anchor = Anchor::new(config);
    let (_, answer) = anchor.ask(&local(1, care_of(2))).expect("an answer");
    assert_eq!((answer.status.number(), answer.lifetime.as_units()), (0, 25));
    anchor.now = Instant::from_secs(101);
    anchor.node.handle_timeout(anchor.now);
    assert_eq!(anchor.status(&local(2, care_of(2))), Some(132));
}

/// RFC 6275 section 10.3.1, for the link of the anchor point.
#[test]
fn a_regional_address_that_somebody_has_is_not_bound() {
    let wait = Duration::from_secs(1);
    let config =
        MobilityAnchorPointConfig { duplicate_address_detection: Some(wait), ..settings(sequence_numbers()) };
    for unique in [true, false] {
        let mut anchor = Anchor::new(config.clone());
        assert_eq!(anchor.status(&local(1, care_of(2))), None, "the answer waits");
        let detect = NeighborEvent::DetectDuplicate { interface: HOME_IF, address: REGIONAL, wait };
        assert!(anchor.events.contains(&Event::Neighbor(detect)));
        let outcome = Input::DuplicateAddressDetection { interface: HOME_IF, address: REGIONAL, unique };
        let sent = anchor.hand_in(outcome);
        let (_, answer) = acknowledgement(&sent[0], care_of(2)).expect("an answer");
        assert_eq!(answer.status.number(), if unique { 0 } else { 134 });
        // Whoever moves has his address already.
        assert_eq!(anchor.status(&local(2, care_of(3))).is_some(), unique);
    }
}

/// Section 12.1: who does not have the key of a regional care-of address does nothing with it, and a recording counts once.
#[test]
fn forged_and_repeated_local_updates_move_nobody() {
    let mut anchor = Anchor::new(settings(timestamps()));
    let stamped = |update: Update, now| update.stamped(clock().at(now));
    let genuine = stamped(local(1, care_of(2)), anchor.now);
    assert_eq!(anchor.status(&genuine), Some(0));
    anchor.now = Instant::from_secs(1);
    let moved = stamped(local(2, care_of(3)), anchor.now);
    assert_eq!(anchor.status(&moved), Some(0));
    assert_eq!(anchor.status(&genuine), Some(144), "a recording");
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, REGION, 0, 0, 0, 0, 0x66);
    let forged = [
        Update { key: b"a guess", ..local(3, care_of(66)) },
        Update { home_address: stranger, ..local(3, care_of(66)) },
        Update { units: 0, key: b"a guess", ..local(3, care_of(3)) },
        Update { home_address: HOME, ..local(3, care_of(66)) },
    ];
    for update in forged {
        anchor.now += Duration::from_secs(1);
        let update = stamped(update, anchor.now);
        let (addresses, bytes) = update.packet();
        anchor.hand_in(Input::Mobility { interface: HOME_IF, addresses, message: &bytes });
        assert_eq!(anchor.exits(), [care_of(3)], "{update:?}");
    }
    assert_eq!(anchor.dropped(DropReason::BadAuthenticator), 2);
    assert_eq!(anchor.dropped(DropReason::UnknownHomeAddress), 2);
}

/// A mobile node that has its own key cannot take the regional care-of address of another, nor have its packets sent to others.
#[test]
fn a_mobile_node_cannot_act_for_another() {
    let mut config = settings(sequence_numbers());
    let other = Ipv6Addr::new(0x2001, 0xdb8, REGION, 0, 0, 0, 0, 8);
    let security = SecurityAssociation::new(
        careof_wire::mip6::Spi(300),
        careof_wire::mip6::Algorithm::HmacSha1,
        *b"another's key",
        ReplayProtection::SequenceNumbers,
    );
    config.mobile_nodes.push(ServedMobileNode::new(other, security.unwrap()));
    let mut anchor = Anchor::new(config);
    assert_eq!(anchor.status(&local(1, care_of(2))), Some(0));
    assert_eq!(anchor.status(&Update { home_address: other, ..local(2, care_of(2)) }), None);
    let to_another = Update { source: other, ..local(2, other) };
    let _ = anchor.status(&Update { home_address: REGIONAL, ..to_another });
    assert_eq!(anchor.exits(), [care_of(2)], "another's regional address is none of a link");
}

#[test]
fn a_flood_of_forged_local_updates_costs_no_memory_and_few_answers() {
    let mut anchor = Anchor::new(settings(timestamps()));
    let mut random = RandomStream::new(3, 0, "flood");
    let mut answers = 0;
    for round in 0..2_000_u64 {
        anchor.now = Instant::from_millis(round);
        let host = Ipv6Addr::from_bits(0x2001_0db8_0070_u128 << 80 | u128::from(random.next_u64()));
        let home_address = if round % 2 == 0 { REGIONAL } else { host };
        let forged = Update { key: b"a guess", home_address, ..local(random.next_u64() as u16, host) };
        let (addresses, bytes) = forged.stamped(clock().at(anchor.now)).packet();
        let input = Input::Mobility { interface: HOME_IF, addresses, message: &bytes };
        answers += anchor.hand_in(input).len();
    }
    assert_eq!((anchor.node.binding_count(), anchor.node.next_timeout()), (0, None));
    assert!(answers < 250, "{answers} answers to 2000 forgeries");
    assert_eq!(anchor.status(&local(1, care_of(2)).stamped(clock().at(anchor.now))), Some(0));
}

/// It is no home agent: neither found as one nor listing others.
#[test]
fn who_looks_for_home_agents_does_not_find_it() {
    let mut anchor = Anchor::new(settings(sequence_numbers()));
    let addresses = Addresses::new(care_of(2), home_agents_anycast(prefix(REGION).address(), 64));
    let request = HomeAgentAddressDiscoveryRequest { identifier: 7 };
    let mut message = Vec::new();
    Icmpv6Message::HomeAgentAddressDiscoveryRequest(request).emit(
        addresses.source,
        addresses.destination,
        &mut message,
    );
    let input = Input::Icmp { interface: HOME_IF, addresses, hop_limit: 64, message: &message };
    assert!(anchor.hand_in(input).is_empty());
    assert_eq!(anchor.dropped(DropReason::NotForUs), 1);
}

#[test]
fn bindings_outlive_a_restart() {
    let mut anchor = Anchor::new(settings(timestamps()));
    anchor.ask(&local(1, care_of(2)).stamped(clock().at(anchor.now))).expect("an answer");
    let record = anchor.node.record(anchor.now, REGIONAL).expect("it is served");
    let mut again = Anchor::new(settings(timestamps()));
    assert!(again.node.restore(Instant::ZERO, &record));
    assert_eq!(again.exits(), [care_of(2)]);
    assert_eq!(again.status(&local(1, care_of(2)).stamped(clock().at(Instant::ZERO))), Some(144));
}

#[test]
fn configurations_that_contradict_themselves_are_refused() {
    let refused = |change: &dyn Fn(&mut MobilityAnchorPointConfig)| {
        let mut config = settings(sequence_numbers());
        change(&mut config);
        let random = RandomStream::new(1, 0, "anchor point");
        MobilityAnchorPoint::new(Instant::ZERO, config, random).map(drop).unwrap_err()
    };
    let error = refused(&|config| config.address = REGIONAL);
    assert!(matches!(error, ConfigError::DuplicateAddress { .. }), "{error}");
    let error = refused(&|config| config.address = Ipv6Addr::UNSPECIFIED);
    assert!(matches!(error, ConfigError::NotUnicast { .. }), "{error}");
    let error = refused(&|config| config.mobile_nodes[0].ipv4_home_address = Some(HOME_IPV4));
    assert_eq!(error, ConfigError::Incompatible("a mobility anchor point", "IPv4 home addresses"));
    let error = refused(&|config| {
        (config.neighbors, config.forwarding) = (vec![prefix(3)], Lifetime::ZERO);
    });
    assert!(matches!(error, ConfigError::OutOfRange { .. }), "{error}");
    let error = refused(&|config| config.prefixes.clear());
    assert!(matches!(error, ConfigError::Missing(_)), "{error}");
}
