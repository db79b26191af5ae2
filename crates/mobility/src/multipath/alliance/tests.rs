//! A cluster of a few nodes.

use alloc::vec;
use alloc::vec::Vec;

use careof_base::{DataRate, Instant, RandomStream};
use careof_wire::shake::{Alliance, AllianceCode, ClusterAdvertisement, IntroducedKey, ShakeMessage};

use super::*;
use crate::v4::{InterfaceAddress, InterfaceId, Prefix};

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const OTHER_HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

fn member(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, last)
}

fn outside(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

fn key(name: u8) -> ClusterKey {
    ClusterKey { spi: Spi(1000 + u32::from(name)), key: vec![name; 16] }
}

/// At a relay, by home addresses; at a client, by cluster addresses of relays.
fn keys(peers: &[(Ipv4Addr, u8)]) -> Trust {
    Trust::Keys { cluster: key(0), peers: peers.iter().map(|&(peer, name)| (peer, key(name))).collect() }
}

fn relay_config(last: u8, trust: Trust) -> RelayConfig {
    RelayConfig {
        cluster: member(last),
        cluster_network: Prefix::new(member(0), 24),
        outside: outside(last),
        downlink: Some(DataRate::from_kilobits_per_second(384)),
        uplink: Some(DataRate::from_kilobits_per_second(64)),
        cost: 0,
        clients: 2,
        client_rate: None,
        client_bytes: None,
        longest: Duration::from_secs(60),
        trust,
    }
}

fn client_config(last: u8, home_address: Ipv4Addr, trust: Trust) -> ClientConfig {
    ClientConfig {
        home_address,
        home_agent: Some(HOME_AGENT),
        cluster: member(last),
        cluster_network: Prefix::new(member(0), 24),
        relays: 2,
        highest_cost: 5,
        lifetime: Duration::from_secs(600),
        trust,
        secret: IntroducedKey([last; 32]),
    }
}

struct Cluster {
    now: Instant,
    relays: Vec<(Relay, bool)>,
    clients: Vec<Client>,
    events: Vec<(u64, ClientEvent)>,
    relay_events: Vec<RelayEvent>,
    /// Whether something comes through each relay from the beginning.
    paths_work: bool,
    /// Every message: from whom, to whom, and the bytes.
    seen: Vec<(Ipv4Addr, Option<Ipv4Addr>, Vec<u8>)>,
}

impl Cluster {
    fn new(relays: Vec<RelayConfig>, clients: Vec<ClientConfig>) -> Self {
        let relay = |config| (Relay::new(Instant::ZERO, config, 1000), true);
        let client = |(n, config)| Client::new(config, 2000, RandomStream::new(n as u64, 0, "client"));
        Self {
            now: Instant::ZERO,
            relays: relays.into_iter().map(relay).collect(),
            clients: clients.into_iter().enumerate().map(client).collect(),
            events: Vec::new(),
            relay_events: Vec::new(),
            paths_work: true,
            seen: Vec::new(),
        }
    }

    /// Goes on for so many milliseconds. Messages take no time; a relay that is switched off neither hears nor says anything.
    fn run(&mut self, millis: u64) {
        for _ in 0..millis / 10 {
            self.now += Duration::from_millis(10);
            let now = self.now;
            for (relay, _) in self.relays.iter_mut().filter(|(_, is_on)| *is_on) {
                if relay.next_timeout() <= now {
                    relay.handle_timeout(now);
                }
            }
            for client in &mut self.clients {
                if client.next_timeout().is_some_and(|at| at <= now) {
                    client.handle_timeout(now);
                }
            }
            self.exchange();
        }
    }

    fn exchange(&mut self) {
        let now = self.now;
        loop {
            let mut sent = Vec::new();
            for (relay, is_on) in &mut self.relays {
                let from = relay.config().cluster;
                let messages = core::iter::from_fn(|| relay.poll_transmit());
                sent.extend(messages.filter(|_| *is_on).map(|message| (from, message)));
                self.relay_events.extend(core::iter::from_fn(|| relay.poll_event()));
            }
            for client in &mut self.clients {
                let from = client.cluster();
                sent.extend(core::iter::from_fn(|| client.poll_transmit()).map(|message| (from, message)));
                while let Some(event) = client.poll_event() {
                    if let (ClientEvent::RelayGained { relay, .. }, true) = (event, self.paths_work) {
                        client.note_path(now, relay, true);
                    }
                    self.events.push((now.as_nanos() / 1_000_000, event));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, ClusterTransmit { destination, payload }) in sent {
                for (relay, _) in self.relays.iter_mut().filter(|(_, is_on)| *is_on) {
                    if destination.is_none_or(|to| to == relay.config().cluster) {
                        relay.handle_message(now, from, CLUSTER_TTL, &payload);
                    }
                }
                for client in &mut self.clients {
                    if destination.is_none_or(|to| to == client.cluster()) {
                        client.handle_message(now, from, CLUSTER_TTL, &payload);
                    }
                }
                self.seen.push((from, destination, payload));
            }
        }
    }

    fn care_of(&self, client: usize) -> Vec<Ipv4Addr> {
        self.clients[client].relays().map(|(_, outside)| outside).collect()
    }
}

fn pair(trust: [Trust; 2]) -> Cluster {
    let [relay, client] = trust;
    Cluster::new(vec![relay_config(9, relay)], vec![client_config(1, HOME, client)])
}

fn both_trusts() -> [[Trust; 2]; 2] {
    [[keys(&[(HOME, 1)]), keys(&[(member(9), 1)])], [Trust::FirstUse, Trust::FirstUse]]
}

#[test]
fn a_client_finds_a_relay_and_has_its_care_of_address_as_long_as_both_wish() {
    for trust in both_trusts() {
        let mut cluster = pair(trust);
        cluster.run(3_000);
        assert_eq!(cluster.care_of(0), [outside(9)]);
        let [(_, ClientEvent::RelayGained { relay, downlink, uplink, .. })] = cluster.events[..] else {
            panic!()
        };
        assert_eq!(relay, member(9));
        assert_eq!([downlink, uplink], [384, 64].map(|kbit| Some(DataRate::from_kilobits_per_second(kbit))));
        // Granted for 60 s, and renewed.
        cluster.run(300_000);
        assert_eq!((cluster.events.len(), cluster.care_of(0)), (1, vec![outside(9)]));
        assert_eq!(cluster.relay_events, [RelayEvent::Allied { home_address: HOME, client: member(1) }]);
        let now = cluster.now;
        cluster.clients[0].leave(now, member(9));
        cluster.exchange();
        assert_eq!(
            cluster.relay_events[1..],
            [RelayEvent::Ended { home_address: HOME, why: AllyEnd::Withdrawn }]
        );
        assert!(cluster.care_of(0).is_empty());
    }
}

#[test]
fn advertisements_come_every_two_seconds() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(20_000);
    let advertisements = cluster.seen.iter().filter(|(_, to, _)| to.is_none()).count();
    assert_eq!(advertisements, 10);
}

#[test]
fn a_relay_that_vanishes_is_given_up_after_three_intervals() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(10_500);
    cluster.relays[0].1 = false;
    cluster.run(10_000);
    let [_, (at, ClientEvent::RelayLost { why: RelayLost::Silent, .. })] = cluster.events[..] else {
        panic!("{:?}", cluster.events)
    };
    assert!((14_000..=16_100).contains(&at), "{at}");
    assert_eq!(cluster.clients[0].known(), 0);
    cluster.relays[0].1 = true;
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(9)], "and taken up again when it is back");
}

#[test]
fn a_relay_that_loses_its_link_or_its_will_says_so() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    cluster.relays[0].0.set_outside(now, None);
    cluster.run(10);
    let lost = |code| RelayLost::Withdrawn(code);
    assert!(
        matches!(cluster.events[..], [_, (_, ClientEvent::RelayLost { why, .. })] if why == lost(AllianceCode::LinkLost))
    );
    cluster.run(120_000);
    assert!(cluster.care_of(0).is_empty(), "it is not willing");
    let now = cluster.now;
    cluster.relays[0].0.set_outside(now, Some(outside(77)));
    cluster.run(5_000);
    assert_eq!(cluster.care_of(0), [outside(77)]);
    let now = cluster.now;
    cluster.relays[0].0.set_willing(now, false);
    cluster.run(10);
    assert!(cluster.care_of(0).is_empty());
}

#[test]
fn the_cheapest_and_fastest_relays_are_asked_and_no_more_than_wanted() {
    let mut relays: Vec<_> = (10..16).map(|last| relay_config(last, Trust::FirstUse)).collect();
    relays[0].cost = 9;
    relays[2].downlink = Some(DataRate::from_megabits_per_second(50));
    relays[3].downlink = Some(DataRate::from_megabits_per_second(20));
    relays[4].cost = 3;
    let client = client_config(1, HOME, Trust::FirstUse);
    let mut cluster = Cluster::new(relays, vec![client]);
    // All advertise at once; who is heard first is asked first.
    cluster.relays.iter_mut().for_each(|(_, is_on)| *is_on = false);
    for on in [2, 3, 0, 1, 4, 5] {
        cluster.relays[on].1 = true;
        cluster.run(2_100);
    }
    assert_eq!(cluster.care_of(0), [outside(12), outside(13)]);
    cluster.relays[2].1 = false;
    cluster.run(10_000);
    let care_of = cluster.care_of(0);
    assert!(care_of.contains(&outside(13)) && care_of.len() == 2, "{care_of:?}");
    assert!(!care_of.contains(&outside(10)), "that costs too much");
    assert!(!care_of.contains(&outside(14)), "there are cheaper ones");
}

#[test]
fn a_relay_takes_no_more_clients_than_it_has_places() {
    let clients = (1..=3).map(|n| client_config(n, Ipv4Addr::new(10, 0, 0, n), Trust::FirstUse)).collect();
    let mut cluster = Cluster::new(vec![relay_config(9, Trust::FirstUse)], clients);
    cluster.run(5_000);
    let served = (0..3).filter(|&client| !cluster.care_of(client).is_empty()).count();
    assert_eq!((served, cluster.relays[0].0.allies().count()), (2, 2));
}

#[test]
fn only_allies_packets_are_relayed_and_none_can_go_round() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    let relay = &mut cluster.relays[0].0;
    assert_eq!(relay.forward_inward(now, HOME_AGENT, HOME, 1500), Ok(Forwarded::ToClient(member(1))));
    assert_eq!(relay.forward_inward(now, HOME_AGENT, OTHER_HOME, 1500), Err(RelayDrop::NoAlly));
    let mut out = |client, source, destination| relay.forward_outward(now, client, source, destination, 1000);
    assert_eq!(out(member(1), HOME, HOME_AGENT), Ok(Forwarded::ByOwnLink));
    assert_eq!(out(member(1), HOME, CORRESPONDENT), Err(RelayDrop::NotHomeAgent));
    assert_eq!(out(member(1), OTHER_HOME, HOME_AGENT), Err(RelayDrop::NoAlly), "another one's name");
    assert_eq!(out(member(2), HOME, HOME_AGENT), Err(RelayDrop::NoAlly), "from another node");
    for back in [member(2), outside(9), HOME] {
        assert_eq!(out(member(1), HOME, back), Err(RelayDrop::WouldLoop), "{back}");
    }
    assert_eq!((relay.dropped(RelayDrop::NoAlly), relay.dropped(RelayDrop::WouldLoop)), (3, 3));
    let by_others = relay.forward_inward(now, CORRESPONDENT, HOME, 1500);
    assert_eq!(by_others, Err(RelayDrop::NotHomeAgent), "anybody can write to the ally");
    let ally = *relay.allies().next().unwrap();
    assert_eq!((ally.inward, ally.outward), ((1, 1500), (1, 1000)));
    let expired = ally.expires;
    assert_eq!(
        relay.forward_inward(expired, HOME_AGENT, HOME, 1500),
        Err(RelayDrop::NoAlly),
        "not a moment longer"
    );
}

#[test]
fn rate_and_bytes_are_limited_for_each_ally() {
    let config = RelayConfig {
        client_rate: Some(DataRate::from_kilobits_per_second(80)),
        client_bytes: Some(100_000),
        ..relay_config(9, Trust::FirstUse)
    };
    let mut cluster = Cluster::new(vec![config], vec![client_config(1, HOME, Trust::FirstUse)]);
    cluster.run(3_000);
    let [(_, ClientEvent::RelayGained { downlink, .. })] = cluster.events[..] else { panic!() };
    assert_eq!(
        downlink,
        Some(DataRate::from_kilobits_per_second(80)),
        "that is all that the client may have"
    );
    let mut passed = 0;
    for _ in 0..3_000 {
        cluster.run(10);
        let now = cluster.now;
        passed += usize::from(cluster.relays[0].0.forward_inward(now, HOME_AGENT, HOME, 1000).is_ok());
    }
    assert_eq!(passed, 100, "100 kB, and not one packet more");
    assert!(cluster.relays[0].0.dropped(RelayDrop::OverRate) > 500);
    assert!(matches!(
        cluster.events[1..],
        [(_, ClientEvent::RelayLost { why: RelayLost::Withdrawn(AllianceCode::LimitReached), .. }), ..]
    ));
}

#[test]
fn who_has_no_key_gets_no_alliance() {
    for trust in [[keys(&[(HOME, 1)]), keys(&[(member(9), 2)])], [keys(&[(HOME, 1)]), Trust::FirstUse]] {
        let mut cluster = pair(trust);
        cluster.run(20_000);
        assert!(cluster.care_of(0).is_empty());
        assert!(cluster.relays[0].0.counters().dropped(ClusterDrop::NotGenuine) > 2);
    }
    let mut cluster = pair([Trust::FirstUse, keys(&[(member(9), 1)])]);
    cluster.run(20_000);
    assert!(
        cluster.clients[0].counters().dropped(ClusterDrop::NotGenuine) > 2,
        "its advertisements are not signed"
    );
}

#[test]
fn a_second_one_cannot_pose_as_a_client_that_was_trusted_first() {
    let clients = vec![client_config(1, HOME, Trust::FirstUse), client_config(2, HOME, Trust::FirstUse)];
    let mut cluster = Cluster::new(vec![relay_config(9, Trust::FirstUse)], clients);
    cluster.run(60_000);
    assert_eq!(cluster.care_of(0), [outside(9)]);
    assert!(cluster.care_of(1).is_empty());
    assert!(cluster.relays[0].0.counters().dropped(ClusterDrop::NotGenuine) > 2);
}

#[test]
fn nothing_that_was_heard_can_be_played_again_or_turned_back() {
    for trust in both_trusts() {
        let mut cluster = pair(trust);
        cluster.run(40_000);
        let now = cluster.now;
        cluster.clients[0].leave(now, member(9));
        cluster.exchange();
        let events = (cluster.events.len(), cluster.relay_events.len());
        for (from, _, bytes) in cluster.seen.clone() {
            for source in [from, member(1), member(9)] {
                cluster.relays[0].0.handle_message(now, source, CLUSTER_TTL, &bytes);
                cluster.clients[0].handle_message(now, source, CLUSTER_TTL, &bytes);
            }
        }
        cluster.exchange();
        assert_eq!((cluster.events.len(), cluster.relay_events.len()), events);
        assert_eq!(cluster.relays[0].0.allies().count(), 0);
    }
}

#[test]
fn a_hostile_neighbour_fills_no_memory_and_breaks_no_alliance() {
    let clients = vec![client_config(1, HOME, Trust::FirstUse)];
    let mut cluster = Cluster::new(vec![relay_config(9, Trust::FirstUse)], clients);
    cluster.run(3_000);
    let mut random = RandomStream::new(8, 0, "hostile");
    let genuine: Vec<Vec<u8>> = cluster.seen.iter().map(|(.., bytes)| bytes.clone()).collect();
    for n in 0..20_000_u32 {
        let mut word = || random.next_u64() as u32;
        let source = member((word() % 256) as u8);
        let alliance = Alliance {
            code: AllianceCode::from_number(word() as u8),
            lifetime: word() as u16,
            home_address: Ipv4Addr::from_bits(if word() % 4 == 0 { HOME.to_bits() } else { word() }),
            client: if word() % 2 == 0 { source } else { member(1) },
            relay: member(9),
            outside: if word() % 2 == 0 { Ipv4Addr::UNSPECIFIED } else { outside(66) },
            home_agent: HOME_AGENT,
            rate: None,
            cost: 0,
            challenge: 1000 + u64::from(word() % 3),
            counter: u64::from(word()) << 20,
            nonce: u64::from(word()),
            key: Some(IntroducedKey([n as u8; 32])),
        };
        let advertisement = ClusterAdvertisement {
            sequence: word(),
            willing: true,
            cost: 0,
            downlink: Some(DataRate::from_megabits_per_second(1_000_000)),
            uplink: None,
            outside: outside(66),
            cluster: source,
            clients: 9,
            longest: 9,
            client_rate: None,
        };
        let message = match word() % 4 {
            0 => ShakeMessage::Request(alliance),
            1 => ShakeMessage::Reply(alliance),
            2 => ShakeMessage::Withdrawal(alliance),
            _ => ShakeMessage::Advertisement(advertisement),
        };
        let mut bytes = message.emit(Some(ShakeKey { spi: INTRODUCED, key: &[n as u8; 32] }));
        if word() % 3 == 0 {
            bytes = genuine[word() as usize % genuine.len()].clone();
            let at = word() as usize % bytes.len();
            bytes[at] ^= word() as u8;
        }
        // It can call itself whatever it likes but the relay.
        let source = if source == member(9) { member(10) } else { source };
        let now = cluster.now;
        cluster.relays[0].0.handle_message(now, source, CLUSTER_TTL, &bytes);
        cluster.clients[0].handle_message(now, source, CLUSTER_TTL, &bytes);
        if n % 100 == 0 {
            cluster.run(10);
            cluster.seen.clear();
        }
        assert!(cluster.clients[0].known() <= 32 && cluster.relays[0].0.allies().count() <= 2);
        assert!(cluster.relays[0].0.remembered() <= 8);
    }
    assert!(cluster.care_of(0).contains(&outside(9)), "{:?}", cluster.events);
    assert!(
        !cluster
            .events
            .iter()
            .any(|(_, event)| matches!(event, ClientEvent::RelayLost { relay, .. } if *relay == member(9)))
    );
}

#[test]
fn a_client_that_lost_sight_of_a_relay_finds_its_place_there_again() {
    let config = RelayConfig { clients: 1, ..relay_config(9, Trust::FirstUse) };
    let mut cluster = Cluster::new(vec![config], vec![client_config(1, HOME, Trust::FirstUse)]);
    cluster.run(3_000);
    cluster.relays[0].1 = false;
    cluster.run(10_000);
    assert!(cluster.care_of(0).is_empty());
    cluster.relays[0].1 = true;
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(9)], "the place that it still has there is not advertised");
    assert_eq!(cluster.relays[0].0.allies().count(), 1);
}

#[test]
fn a_packet_goes_on_in_the_tunnel_of_the_other_side() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    let relay = &mut cluster.relays[0].0;
    let packet =
        |side, entry, source, destination| Incoming { side, entry, source, destination, ttl: 60, len: 100 };
    let down = packet(Side::Link, HOME_AGENT, HOME_AGENT, HOME);
    let to_client = Onward { side: Side::Cluster, entry: member(9), exit: member(1), ttl: 59 };
    assert_eq!(relay.switch(now, &down), Ok(to_client));
    let up = packet(Side::Cluster, member(1), HOME, HOME_AGENT);
    let by_link = Onward { side: Side::Link, entry: outside(9), exit: HOME_AGENT, ttl: 59 };
    assert_eq!(relay.switch(now, &up), Ok(by_link));
    let others = packet(Side::Cluster, member(2), HOME, HOME_AGENT);
    assert_eq!(relay.switch(now, &others), Err(RelayDrop::NoAlly));
    // What comes by the link in the name of an ally is for nobody here, and does not go back there.
    let spoofed = packet(Side::Link, member(1), HOME, HOME_AGENT);
    assert_eq!(relay.switch(now, &spoofed), Err(RelayDrop::NoAlly));
}

#[test]
fn who_leaves_the_cluster_has_no_allies_there_and_finds_new_ones_where_it_comes_to() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    cluster.clients[0].set_cluster(None);
    cluster.run(10_000);
    let why = cluster.events.iter().filter_map(|(_, event)| match event {
        ClientEvent::RelayLost { why, .. } => Some(*why),
        ClientEvent::RelayGained { .. } => None,
    });
    assert_eq!(why.collect::<Vec<_>>(), [RelayLost::LeftCluster]);
    assert!(cluster.care_of(0).is_empty(), "what it hears is of no use to it");
    cluster.clients[0].set_cluster(Some((member(2), Prefix::new(member(0), 24))));
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(9)]);
    assert_eq!(cluster.relays[0].0.allies().next().unwrap().client, member(2));

    let now = cluster.now;
    cluster.relays[0].0.set_cluster(now, None);
    cluster.seen.clear();
    cluster.run(20_000);
    assert_eq!(cluster.relays[0].0.allies().count(), 0);
    assert!(cluster.seen.iter().all(|(from, ..)| *from != member(9)), "it says nothing");
    assert!(matches!(cluster.relay_events.last(), Some(RelayEvent::Ended { why: AllyEnd::LeftCluster, .. })));
    let now = cluster.now;
    cluster.relays[0].0.set_cluster(now, Some((member(8), Prefix::new(member(0), 24))));
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(9)], "by its new address");
}

#[test]
fn a_relay_that_advertises_and_carries_nothing_is_left_for_another_one() {
    let mut cluster = Cluster::new(
        vec![relay_config(9, Trust::FirstUse), relay_config(10, Trust::FirstUse)],
        vec![ClientConfig { relays: 1, ..client_config(1, HOME, Trust::FirstUse) }],
    );
    cluster.run(3_000);
    let used = cluster.clients[0].relays().next().unwrap();
    let now = cluster.now;
    cluster.clients[0].note_path(now, used.0, false);
    cluster.run(4_000);
    let now = cluster.now;
    cluster.clients[0].note_path(now, used.0, true);
    cluster.run(10_000);
    assert_eq!(cluster.clients[0].relays().next(), Some(used), "it was back in time");
    let now = cluster.now;
    cluster.clients[0].note_path(now, used.0, false);
    cluster.run(8_100);
    let other = cluster.clients[0].relays().next().unwrap();
    assert_ne!(used, other);
    let lost = cluster.events.iter().any(|(_, event)| {
        matches!(event, ClientEvent::RelayLost { relay, why: RelayLost::Dead, .. } if *relay == used.0)
    });
    assert!(lost, "{:?}", cluster.events);
    assert_eq!(
        cluster.relay_events.last(),
        Some(&RelayEvent::Allied { home_address: HOME, client: member(1) })
    );
    assert!(
        cluster.relay_events.contains(&RelayEvent::Ended { home_address: HOME, why: AllyEnd::Withdrawn }),
        "and was told"
    );
}

#[test]
fn interfaces_stand_for_relays_as_long_as_these_are_of_use() {
    let mut places = RelayInterfaces::new([7, 8].map(InterfaceId));
    let gained = |last| ClientEvent::RelayGained {
        relay: member(last),
        outside: outside(last),
        downlink: None,
        uplink: None,
        cost: 0,
    };
    let lost = |last| {
        let (relay, outside, why) = (member(last), outside(last), RelayLost::Left);
        ClientEvent::RelayLost { relay, outside, why }
    };
    let change = |interface, last: Option<u8>| {
        let on = |last| InterfaceAddress { address: outside(last), prefix_length: 32, gateway: None };
        Some(RelayInterfaceChange { interface: InterfaceId(interface), address: last.map(on) })
    };
    assert_eq!(places.follow(&gained(1)), change(7, Some(1)));
    assert_eq!(places.follow(&gained(2)), change(8, Some(2)));
    assert_eq!(places.follow(&gained(3)), None, "there is none left");
    assert_eq!(places.relay_of(InterfaceId(8)), Some(member(2)));
    assert_eq!(places.follow(&lost(1)), change(7, None));
    assert_eq!(places.relay_of(InterfaceId(7)), None);
    assert_eq!(places.follow(&lost(1)), None);
    assert_eq!(places.follow(&gained(3)), change(7, Some(3)));
}

/// What somebody who has `key` says: a request of a client in its name.
fn request(home_address: Ipv4Addr, client: Ipv4Addr, relay: Ipv4Addr, key: [u8; 32]) -> Alliance {
    Alliance {
        code: AllianceCode::Accepted,
        lifetime: 60,
        home_address,
        client,
        relay,
        outside: Ipv4Addr::UNSPECIFIED,
        home_agent: HOME_AGENT,
        rate: None,
        cost: 0,
        challenge: 1000,
        counter: 1,
        nonce: 7,
        key: Some(IntroducedKey(key)),
    }
}

fn say(relay: &mut Relay, now: Instant, message: ShakeMessage, key: [u8; 32]) {
    let (ShakeMessage::Request(of) | ShakeMessage::Withdrawal(of)) = message else { panic!() };
    let bytes = message.emit(Some(ShakeKey { spi: INTRODUCED, key: &key }));
    relay.handle_message(now, of.client, CLUSTER_TTL, &bytes);
}

#[test]
fn a_packet_between_relays_that_were_made_each_others_allies_ends_with_its_time_to_live() {
    // Somebody asks each relay in the name of the other. That the addresses lead to the other link is what he has arranged.
    let [to_first, to_second] = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 2)];
    let relays = vec![relay_config(8, Trust::FirstUse), relay_config(9, Trust::FirstUse)];
    let mut cluster = Cluster::new(relays, Vec::new());
    let key = [9; 32];
    let at_first = Alliance { home_agent: outside(9), ..request(to_first, member(9), member(8), key) };
    let at_second = Alliance { home_agent: to_first, ..request(to_second, member(8), member(9), key) };
    for (relay, asked) in [(0, at_first), (1, at_second)] {
        say(&mut cluster.relays[relay].0, Instant::ZERO, ShakeMessage::Request(asked), key);
        assert_eq!(cluster.relays[relay].0.allies().count(), 1);
    }
    let mut packet = Incoming {
        side: Side::Link,
        entry: outside(9),
        source: to_second,
        destination: to_first,
        ttl: 64,
        len: 100,
    };
    let mut passes = 0;
    let reason = loop {
        let at = if packet.side == Side::Link { 0 } else { 1 };
        match cluster.relays[at].0.switch(Instant::ZERO, &packet) {
            Ok(Onward { side, entry, ttl, .. }) => packet = Incoming { side, entry, ttl, ..packet },
            Err(reason) => break reason,
        }
        passes += 1;
        assert!(passes < 1000, "it goes round");
    };
    assert_eq!((reason, passes), (RelayDrop::Expired, 63));
}

#[test]
fn a_relay_takes_no_client_with_an_address_that_leads_to_itself_or_into_the_cluster() {
    let broadcast = Ipv4Addr::BROADCAST;
    for bad in [outside(9), member(9), member(77), broadcast, Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let good = request(HOME, member(1), member(9), [1; 32]);
        for asked in [Alliance { home_address: bad, ..good }, Alliance { home_agent: bad, ..good }] {
            let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
            let relay = &mut cluster.relays[0].0;
            say(relay, Instant::ZERO, ShakeMessage::Request(asked), [1; 32]);
            assert_eq!(relay.allies().count(), 0, "{asked:?}");
            assert_eq!(relay.counters().dropped(ClusterDrop::UnusableAddress), 1, "{asked:?}");
        }
    }
}

#[test]
fn a_care_of_address_that_cannot_be_a_relays_is_refused() {
    let own = Ipv4Addr::new(198, 51, 100, 7);
    for lie in
        [own, HOME, HOME_AGENT, member(3), Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::LOCALHOST, outside(8)]
    {
        for trust in both_trusts() {
            let [at_relay, at_client] = trust;
            let at_client = match at_client {
                Trust::Keys { .. } => keys(&[(member(9), 1), (member(8), 1)]),
                Trust::FirstUse => Trust::FirstUse,
            };
            let honest = RelayConfig { outside: outside(8), ..relay_config(8, at_relay.clone()) };
            let liar = RelayConfig { outside: lie, ..relay_config(9, at_relay) };
            let client = client_config(1, HOME, at_client);
            let mut cluster = Cluster::new(vec![honest, liar], vec![client]);
            cluster.clients[0].set_own_addresses(Instant::ZERO, vec![own, member(1)]);
            cluster.relays[1].1 = false;
            cluster.run(3_000);
            cluster.relays[1].1 = true;
            cluster.run(30_000);
            assert_eq!(cluster.care_of(0), [outside(8)], "{lie}");
            assert!(cluster.clients[0].counters().dropped(ClusterDrop::UnusableAddress) > 2, "{lie}");
        }
    }
}

#[test]
fn a_lie_in_a_reply_is_refused_as_well_and_the_relay_told() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    let own = outside(9);
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [own]);
    let now = cluster.now;
    cluster.clients[0].set_own_addresses(now, vec![own]);
    cluster.exchange();
    assert!(cluster.care_of(0).is_empty(), "the address has turned out to be the node's own");
    let lost = |why| {
        cluster.events.iter().any(|(_, e)| matches!(e, ClientEvent::RelayLost { why: w, .. } if *w == why))
    };
    assert!(lost(RelayLost::UnusableAddress));
    assert_eq!(
        cluster.relay_events.last(),
        Some(&RelayEvent::Ended { home_address: HOME, why: AllyEnd::Withdrawn })
    );
}

#[test]
fn a_relay_that_does_not_answer_bars_no_other_one() {
    // The first one has another key for this client, and is the cheapest.
    let with_other_key = relay_config(8, keys(&[(HOME, 3)]));
    let good = RelayConfig { cost: 1, ..relay_config(9, keys(&[(HOME, 1)])) };
    let trust = keys(&[(member(8), 1), (member(9), 1)]);
    let client = ClientConfig { relays: 1, ..client_config(1, HOME, trust) };
    let mut cluster = Cluster::new(vec![with_other_key, good], vec![client]);
    cluster.run(30_000);
    assert_eq!(cluster.care_of(0), [outside(9)]);
}

#[test]
fn a_relay_through_which_nothing_has_ever_come_is_left_if_there_is_anything_else() {
    let relays = || vec![relay_config(8, Trust::FirstUse), relay_config(9, Trust::FirstUse)];
    let client = || ClientConfig { relays: 1, ..client_config(1, HOME, Trust::FirstUse) };
    let mut cluster = Cluster::new(relays(), vec![client()]);
    cluster.paths_work = false;
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(8)]);
    cluster.run(6_100);
    assert_eq!(cluster.care_of(0), [outside(9)], "the home agent may refuse the other one's address");
    // Nor does anything come through this one, and by no other way: it may be the home agent.
    cluster.run(20_000);
    assert_eq!(cluster.care_of(0), [outside(9)]);
    assert!(cluster.clients[0].next_timeout().is_some_and(|at| at > cluster.now), "it waits for something");
    let now = cluster.now;
    cluster.clients[0].note_own_path(now, true);
    cluster.run(5_000);
    assert_eq!(cluster.care_of(0), [outside(9)], "only now the home agent answers");
    cluster.run(1_100);
    assert!(!cluster.care_of(0).contains(&outside(9)));
}

#[test]
fn the_only_way_is_not_left_while_the_home_agent_is_silent() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    cluster.clients[0].note_path(now, member(9), false);
    cluster.run(60_000);
    assert_eq!(cluster.care_of(0), [outside(9)]);
}

#[test]
fn what_passed_a_router_or_comes_from_elsewhere_has_no_effect() {
    let heard = {
        let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
        cluster.run(3_000);
        cluster.seen
    };
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    let elsewhere = Ipv4Addr::new(10, 9, 1, 1);
    let routed = request(OTHER_HOME, elsewhere, member(9), [1; 32]);
    say(&mut cluster.relays[0].0, Instant::ZERO, ShakeMessage::Request(routed), [1; 32]);
    for (from, _, bytes) in heard {
        for ttl in [0, 1, 254] {
            cluster.relays[0].0.handle_message(Instant::ZERO, from, ttl, &bytes);
            cluster.clients[0].handle_message(Instant::ZERO, from, ttl, &bytes);
        }
    }
    let (relay, client) = (&cluster.relays[0].0, &cluster.clients[0]);
    assert_eq!((relay.allies().count(), client.known()), (0, 0));
    for counters in [relay.counters(), client.counters()] {
        assert_eq!(counters.dropped(ClusterDrop::NotOfCluster), counters.received);
    }
}

#[test]
fn who_goes_and_comes_again_has_no_more_than_who_stays() {
    let config = RelayConfig { client_bytes: Some(100_000), ..relay_config(9, Trust::FirstUse) };
    let mut relay = Relay::new(Instant::ZERO, config, 1000);
    let good = request(HOME, member(1), member(9), [1; 32]);
    let mut counter = 0;
    let mut now = Instant::ZERO;
    let mut passed = 0;
    let mut tell = |relay: &mut Relay, now, message: fn(Alliance) -> ShakeMessage| {
        counter += 1;
        say(relay, now, message(Alliance { counter, ..good }), [1; 32]);
    };
    for _ in 0..1000 {
        now += Duration::from_millis(50);
        tell(&mut relay, now, ShakeMessage::Request);
        passed += usize::from(relay.forward_inward(now, HOME_AGENT, HOME, 1000).is_ok());
        tell(&mut relay, now, ShakeMessage::Withdrawal);
    }
    assert_eq!(passed, 100);
    now += Duration::from_secs(60);
    tell(&mut relay, now, ShakeMessage::Request);
    assert!(relay.forward_inward(now, HOME_AGENT, HOME, 1000).is_ok(), "and again after a minute");

    let config = RelayConfig {
        client_rate: Some(DataRate::from_kilobits_per_second(80)),
        ..relay_config(9, Trust::FirstUse)
    };
    let mut relay = Relay::new(Instant::ZERO, config, 1000);
    let (mut now, mut passed) = (Instant::ZERO, 0);
    for _ in 0..1000 {
        now += Duration::from_millis(10);
        tell(&mut relay, now, ShakeMessage::Request);
        passed += usize::from(relay.forward_inward(now, HOME_AGENT, HOME, 1000).is_ok());
        tell(&mut relay, now, ShakeMessage::Withdrawal);
    }
    assert!((100..=106).contains(&passed), "10 kB/s for 10 s, and a few packets at once: {passed}");
}

#[test]
fn what_was_said_to_a_relay_before_it_began_anew_or_forgot_the_client_does_not_count() {
    for trust in both_trusts() {
        let mut cluster = pair(trust.clone());
        cluster.run(40_000);
        let [at_relay, _] = trust;
        let mut again = Relay::new(cluster.now, relay_config(9, at_relay), 77);
        for (from, _, bytes) in &cluster.seen {
            again.handle_message(cluster.now, *from, CLUSTER_TTL, bytes);
        }
        assert_eq!(again.allies().count(), 0);
    }
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    cluster.clients[0].leave(now, member(9));
    cluster.exchange();
    let relay = &mut cluster.relays[0].0;
    // Others come, until it knows nothing of the first one.
    for last in 100..110 {
        let key = [last; 32];
        for challenge in 1000..1010 {
            let asked = request(Ipv4Addr::new(10, 0, 0, last), member(last), member(9), key);
            say(relay, now, ShakeMessage::Request(Alliance { challenge, counter: challenge, ..asked }), key);
            let counter = challenge + 1;
            say(relay, now, ShakeMessage::Withdrawal(Alliance { challenge, counter, ..asked }), key);
        }
    }
    assert_eq!((relay.allies().count(), relay.remembered()), (0, 8));
    for (from, _, bytes) in &cluster.seen {
        relay.handle_message(now, *from, CLUSTER_TTL, bytes);
    }
    assert!(relay.allies().all(|ally| ally.home_address != HOME), "its first request counts no more");
}

#[test]
fn a_client_whose_clock_was_set_back_is_an_ally_again_at_once() {
    for trust in both_trusts() {
        let mut cluster = pair(trust.clone());
        cluster.run(3_000);
        let [_, at_client] = trust;
        let random = RandomStream::new(3, 0, "client");
        cluster.clients[0] = Client::new(client_config(1, HOME, at_client), 5, random);
        cluster.run(3_000);
        assert_eq!(cluster.care_of(0), [outside(9)]);
    }
}

#[test]
fn the_withdrawal_of_an_earlier_alliance_ends_no_later_one() {
    for trust in both_trusts() {
        let mut cluster = pair(trust);
        cluster.run(3_000);
        let now = cluster.now;
        cluster.relays[0].0.set_willing(now, false);
        cluster.exchange();
        assert!(cluster.care_of(0).is_empty());
        // The client forgets all about it.
        cluster.relays[0].1 = false;
        cluster.run(10_000);
        assert_eq!(cluster.clients[0].known(), 0);
        cluster.relays[0].1 = true;
        let now = cluster.now;
        cluster.relays[0].0.set_willing(now, true);
        cluster.run(3_000);
        assert_eq!(cluster.care_of(0), [outside(9)]);
        for (from, _, bytes) in cluster.seen.clone() {
            let now = cluster.now;
            cluster.clients[0].handle_message(now, from, CLUSTER_TTL, &bytes);
        }
        assert_eq!(cluster.care_of(0), [outside(9)]);
    }
}

/// An advertisement of the relay's that names another price, or that it does not lend.
fn advertisement(sequence: u32, willing: bool, cost: u16) -> ShakeMessage {
    ShakeMessage::Advertisement(ClusterAdvertisement {
        sequence,
        willing,
        cost,
        downlink: None,
        uplink: None,
        outside: outside(9),
        cluster: member(9),
        clients: 1,
        longest: 60,
        client_rate: None,
    })
}

#[test]
fn advertisements_that_anybody_can_have_written_end_no_alliance_and_bar_none() {
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    for (willing, cost, named) in [(false, 0, outside(9)), (true, 9, outside(9)), (true, 0, outside(66))] {
        let ShakeMessage::Advertisement(said) = advertisement(u32::MAX / 2, willing, cost) else { panic!() };
        let forged = ShakeMessage::Advertisement(ClusterAdvertisement { outside: named, ..said }).emit(None);
        let now = cluster.now;
        cluster.clients[0].handle_message(now, member(9), CLUSTER_TTL, &forged);
        cluster.run(10_000);
        assert_eq!((cluster.care_of(0), cluster.events.len()), (vec![outside(9)], 1));
    }
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    let forged = advertisement(u32::MAX / 2, false, 0).emit(None);
    cluster.clients[0].handle_message(Instant::ZERO, member(9), CLUSTER_TTL, &forged);
    cluster.run(3_000);
    assert_eq!(cluster.care_of(0), [outside(9)], "the next one is believed just so");
}

#[test]
fn a_relay_that_gets_too_dear_or_unwilling_is_left() {
    for (willing, cost) in [(false, 0), (true, 9)] {
        let mut cluster = pair([keys(&[(HOME, 1)]), keys(&[(member(9), 1)])]);
        cluster.run(3_000);
        let signed = advertisement(1000, willing, cost).emit(Some(key(0).as_wire()));
        let now = cluster.now;
        cluster.clients[0].handle_message(now, member(9), CLUSTER_TTL, &signed);
        assert!(cluster.care_of(0).is_empty(), "{willing}, {cost}");
    }
    // Where advertisements are not signed its replies say so.
    let mut cluster = pair([Trust::FirstUse, Trust::FirstUse]);
    cluster.run(3_000);
    let now = cluster.now;
    cluster.relays[0].0.set_conditions(now, RelayConfig { cost: 9, ..relay_config(9, Trust::FirstUse) });
    cluster.run(40_000);
    assert!(cluster.care_of(0).is_empty());
    assert_eq!(cluster.relays[0].0.allies().count(), 0, "and it knows");
}
