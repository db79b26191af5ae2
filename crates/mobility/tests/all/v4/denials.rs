//! Requests that are denied, in anybody's name and in masses: whom the denials go to has not asked for them.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{AuthenticationKind, Identification, ReplyCode, RequestFlags, Spi};

use super::craft::*;
use super::world::*;

fn home_agent(config: HomeAgentConfig) -> HomeAgent {
    HomeAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "home")).unwrap()
}

/// What the home agent answers to a request from `source`.
fn ask(agent: &mut HomeAgent, now: Instant, source: Ipv4Addr, craft: &Craft) -> Option<ReplyCode> {
    let bytes = craft.bytes();
    agent.handle_input(
        now,
        Input::Udp {
            interface: UPSTREAM,
            source,
            source_port: 434,
            destination: HA,
            destination_port: 434,
            ttl: 64,
            link_address: None,
            payload: &bytes,
        },
    );
    while agent.poll_event().is_some() {}
    let sent: Vec<Transmit> = std::iter::from_fn(|| agent.poll_transmit(now)).collect();
    assert!(sent.iter().all(|transmit| transmit.destination == source));
    last_reply(&sent).map(|reply| reply.code)
}

/// A request that names a mobile node and proves nothing, for whoever sends it does not have its key.
fn forged(now: Instant) -> Craft {
    let guessed = SecurityAssociation::hmac_md5(Spi(256), *b"not its key").unwrap();
    Craft::new(now).with(|craft| craft.security = Some(guessed))
}

#[test]
fn a_home_agent_sends_a_victim_few_denials_however_many_are_provoked() {
    let mut agent = home_agent(home_config());
    let victim = Ipv4Addr::new(203, 0, 113, 77);
    let begun = Instant::from_secs(100);
    let mut denials = 0;
    // 10,000 a second, for ten seconds.
    for number in 0..100_000 {
        let now = begun + Duration::from_micros(100 * number);
        denials += u64::from(ask(&mut agent, now, victim, &forged(now)).is_some());
    }
    assert!((100..=300).contains(&denials), "{denials}");
    let counted = agent.counters();
    assert_eq!(counted.denied(131), denials);
    assert_eq!(counted.denials_suppressed, 100_000 - denials);
    assert_eq!(counted.dropped(DropReason::BadAuthenticator), 100_000);
}

#[test]
fn strangers_cannot_use_up_the_denial_that_mends_a_mobile_nodes_clock() {
    let mut agent = home_agent(home_config());
    let now = Instant::from_secs(100);
    for number in 0..100_000 {
        let anybody = Ipv4Addr::from_bits(0x0b00_0000 + number * 257);
        ask(&mut agent, now, anybody, &forged(now));
    }
    assert!(agent.counters().denied(131) <= 200, "{}", agent.counters().denied(131));
    // It is on a network in whose name they have asked, and its clock is an hour late.
    let early = Identification(clock().behind_by(Duration::from_secs(3600)).at(now).to_bits());
    let wrong = Craft::new(now).with(|craft| craft.request.identification = early);
    let source = Ipv4Addr::new(11, 0, 1, 1);
    assert_eq!(ask(&mut agent, now, source, &wrong), Some(ReplyCode::HomeIdentificationMismatch));
    assert_eq!(ask(&mut agent, now, source, &Craft::new(now)), Some(ReplyCode::Accepted));
}

#[test]
fn a_recorded_request_provokes_one_denial_a_second() {
    let mut agent = home_agent(home_config());
    let begun = Instant::from_secs(100);
    let recorded = Craft::new(begun);
    assert_eq!(ask(&mut agent, begun, WLAN, &recorded), Some(ReplyCode::Accepted));
    let mut denials = 0;
    for number in 0..100_000_u64 {
        let now = begun + Duration::from_micros(100 * number);
        let victim = Ipv4Addr::from_bits(0xcb00_0000 + (number as u32 & 0xffff));
        denials += u64::from(ask(&mut agent, now, victim, &recorded).is_some());
    }
    assert!((16..=26).contains(&denials), "{denials}");
    assert_eq!(agent.counters().denials_suppressed, 100_000 - denials);
    assert_eq!(agent.bindings_of(HOME).len(), 1);
}

#[test]
fn copies_of_a_request_that_are_denied_for_what_was_added_provoke_one_denial_a_second() {
    let mut agent = home_agent(home_config());
    let now = Instant::from_secs(100);
    let added = Some((AuthenticationKind::ForeignHome, security()));
    let copy = Craft::new(now).with(|craft| craft.foreign = added);
    let mut denials = 0;
    for number in 0..10_000_u32 {
        let victim = Ipv4Addr::from_bits(0xcb00_0000 + number);
        denials += u64::from(ask(&mut agent, now, victim, &copy).is_some());
    }
    assert_eq!((denials, agent.counters().denials_suppressed), (16, 9_984));
    assert_eq!(ask(&mut agent, now, WLAN, &Craft::new(now)), Some(ReplyCode::Accepted));
}

/// What RFC 5944 section 5.7.1 leaves open, as `docs/security.md` says.
#[test]
fn a_request_that_came_before_its_time_can_be_replayed_when_it_has_come() {
    let mut agent = home_agent(home_config());
    let (now, its_time) = (Instant::from_secs(100), Instant::from_secs(200));
    let early = Craft::new(its_time);
    assert_eq!(ask(&mut agent, now, WLAN, &early), Some(ReplyCode::HomeIdentificationMismatch));
    let mut unlucky = home_agent(home_config());
    assert_eq!(
        ask(&mut unlucky, its_time, WLAN, &Craft::new(its_time + Duration::from_secs(1))),
        Some(ReplyCode::Accepted)
    );
    for (agent, code) in
        [(&mut agent, ReplyCode::Accepted), (&mut unlucky, ReplyCode::HomeIdentificationMismatch)]
    {
        assert_eq!(ask(agent, its_time, WLAN, &early), Some(code));
    }
}

#[test]
fn a_foreign_agent_that_signs_is_told_of_every_mobile_node_that_has_not() {
    let between = SecurityAssociation::hmac_md5(Spi(999), *b"between agents!!").unwrap();
    let mut config = home_config();
    config.foreign_agents = vec![PeerSecurity { address: FA[0], security: between.clone() }];
    let mut agent = home_agent(config);
    let now = Instant::from_secs(100);
    for number in 0..1000 {
        let craft =
            forged(now).with(|c| c.foreign = Some((AuthenticationKind::ForeignHome, between.clone())));
        let code = ask(&mut agent, now, FA[0], &craft);
        assert_eq!(code, Some(ReplyCode::HomeMobileNodeFailedAuthentication), "after {number}");
    }
    // In its name, but not by it.
    let mut denials = 0;
    for _ in 0..1000 {
        let wrong = Some((AuthenticationKind::ForeignHome, security()));
        let craft = forged(now).with(|craft| craft.foreign = wrong.clone());
        denials += u64::from(ask(&mut agent, now, FA[0], &craft).is_some());
    }
    assert_eq!((denials, agent.counters().denials_suppressed), (100, 900));
}

fn ask_foreign_agent(agent: &mut ForeignAgent, now: Instant, craft: &Craft) {
    let bytes = craft.bytes();
    let (source, destination) = (HOME, FA[0]);
    agent.handle_input(
        now,
        Input::Udp {
            interface: DOWNSTREAM,
            source,
            source_port: 434,
            destination,
            destination_port: 434,
            ttl: 64,
            link_address: None,
            payload: &bytes,
        },
    );
}

#[test]
fn a_foreign_agent_rations_its_denials() {
    let random = RandomStream::new(1, 0, "foreign");
    let mut agent = ForeignAgent::new(Instant::ZERO, foreign_config(0), random).unwrap();
    let now = Instant::from_secs(100);
    for _ in 0..1000 {
        let craft = Craft::to_foreign_agent(now).with(|craft| craft.security = None);
        ask_foreign_agent(&mut agent, now, &craft);
    }
    assert_eq!((agent.counters().denied(70), agent.counters().denials_suppressed), (100, 900));
    assert_eq!(std::iter::from_fn(|| agent.poll_transmit(now)).count(), 100);
}

#[test]
fn that_a_mobile_node_is_too_distant_is_said_once_a_second() {
    let random = RandomStream::new(1, 0, "foreign");
    let mut agent = ForeignAgent::new(Instant::ZERO, foreign_config(0), random).unwrap();
    let begun = Instant::from_secs(100);
    // A thousand a second, in the names of many.
    for number in 0..5_000 {
        let now = begun + Duration::from_millis(number);
        let craft = Craft::to_foreign_agent(now).with(|craft| {
            craft.flag(RequestFlags::REVERSE_TUNNELING);
            craft.request.home_address = Ipv4Addr::from_bits(0x0b00_0000 + number as u32 * 257);
        });
        ask_foreign_agent(&mut agent, now, &craft);
    }
    assert_eq!((agent.counters().denied(76), agent.counters().denials_suppressed), (5, 4_995));
    // Others hear what they are to hear.
    let now = begun + Duration::from_secs(5);
    ask_foreign_agent(&mut agent, now, &Craft::to_foreign_agent(now).with(|craft| craft.security = None));
    assert_eq!(agent.counters().denied(70), 1);
}
