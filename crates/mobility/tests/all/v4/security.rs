//! Replays, forgeries and lies.

use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::icmp::{
    AdvertisementExtension, AgentFlags, IcmpMessage, MobilityAgentAdvertisement, RouterAddress,
    RouterAdvertisement,
};
use careof_wire::mip4::{
    AuthenticationKind, Lifetime, Message, RegistrationReply, RegistrationRequest, ReplyCode, Spi,
};

use super::craft::{reply, sign, udp};
use super::world::*;

fn last_request(world: &World) -> RegistrationRequest {
    match world.messages(Who::Mobile).pop().unwrap().1 {
        Message::Request(request) => request,
        other => panic!("a mobile node sends requests, not {other:?}"),
    }
}

#[test]
fn a_replayed_request_is_denied_with_133_and_changes_nothing() {
    let mut world = World::new();
    world.switch(IF_WLAN);
    world.run_until(at(1_000));
    let recorded = world.messages(Who::Mobile)[0].2.clone();
    world.switch(IF_GSM);
    world.run_until(at(2_000));
    assert_eq!(world.exits(), [GSM]);
    for _ in 0..10 {
        world.inject(Who::Home, UPSTREAM, recorded.clone());
    }
    world.run_until(at(3_000));
    assert_eq!(world.exits(), [GSM]);
    assert_eq!(world.home.counters().dropped(DropReason::Replayed), 10);
    assert_eq!(world.home.counters().denied(133), 10);
    // The denials reach the mobile node, which has not asked.
    assert_eq!(world.mobile.counters().dropped(DropReason::UnexpectedReply), 10);
    assert!(world.denials().is_empty());
    world.run_until(at(600_000));
    assert_eq!(world.exits(), [GSM]);
}

#[test]
fn a_wrong_key_is_denied_counted_and_not_mended() {
    let mut config = mobile_config();
    config.security = SecurityAssociation::hmac_md5(Spi(256), *b"another key").unwrap();
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(10_000));
    let home = world.home.counters();
    assert!(home.dropped(DropReason::BadAuthenticator) >= 3);
    assert_eq!(home.denied(131), home.dropped(DropReason::BadAuthenticator));
    assert!(world.exits().is_empty());
    // Its denial cannot be verified either, so it is no more than a wrong authenticator here.
    assert!(world.mobile.counters().dropped(DropReason::BadAuthenticator) >= 3);
    assert!(world.denials().is_empty());
}

#[test]
fn an_unknown_spi_is_denied_and_counted() {
    let mut config = to_the_letter(mobile_config());
    config.security = SecurityAssociation::hmac_md5(Spi(1_000), KEY).unwrap();
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.switch(IF_WLAN);
    world.run_until(at(500));
    assert_eq!(world.home.counters().dropped(DropReason::UnknownSpi), 1);
    assert_eq!(world.home.counters().denied(131), 1);
}

#[test]
fn forged_replies_do_not_move_a_mobile_node() {
    let mut world = World::new();
    world.lose = Box::new(|from, _| from == Who::Home);
    world.switch(IF_WLAN);
    world.run_until(at(100));
    let request = last_request(&world);
    let genuine = reply(&request, ReplyCode::Accepted);
    let wrong_low = {
        let mut other = request.clone();
        other.identification.0 ^= 1;
        reply(&other, ReplyCode::Accepted)
    };
    let mut tampered = genuine.clone();
    tampered[3] ^= 0x40;
    let unsigned = genuine[..RegistrationReply::FIXED_LEN].to_vec();
    let mut doubled = genuine.clone();
    sign(&mut doubled, AuthenticationKind::MobileHome, &security());
    let mut other_node = request.clone();
    other_node.home_address = CORRESPONDENT;
    let agents_denial = reply(&request, ReplyCode::ForeignAdministrativelyProhibited);
    for (bytes, source, reason) in [
        (wrong_low, HA, DropReason::IdentificationMismatch),
        (genuine.clone(), CORRESPONDENT, DropReason::UnexpectedSource),
        (tampered, HA, DropReason::BadAuthenticator),
        (unsigned, HA, DropReason::MissingAuthenticator),
        (doubled, HA, DropReason::MissingAuthenticator),
        (reply(&other_node, ReplyCode::Accepted), HA, DropReason::NotForUs),
        (agents_denial, HA, DropReason::PoorlyFormed),
        (reply(&request, ReplyCode::Unknown(250)), HA, DropReason::PoorlyFormed),
        (vec![3; 19], HA, DropReason::Malformed),
    ] {
        let before = world.mobile.counters().dropped(reason);
        world.inject(Who::Mobile, IF_WLAN, udp(source, WLAN, 64, bytes));
        assert_eq!(world.mobile.counters().dropped(reason), before + 1, "{reason:?}");
        assert!(!world.mobile.is_registered(), "{reason:?}");
    }
    world.inject(Who::Mobile, IF_WLAN, udp(HA, WLAN, 64, genuine));
    assert!(world.mobile.is_registered());
}

#[test]
fn a_reply_to_an_earlier_request_is_not_taken_for_one_to_the_latest() {
    let mut world =
        World::with(to_the_letter(mobile_config()), home_config(), [foreign_config(0), foreign_config(1)]);
    world.lose = Box::new(|from, _| from == Who::Home);
    world.switch(IF_WLAN);
    world.run_until(at(100));
    let early = reply(&last_request(&world), ReplyCode::Accepted);
    world.run_until(at(1_500));
    world.inject(Who::Mobile, IF_WLAN, udp(HA, WLAN, 64, early));
    assert_eq!(world.mobile.counters().dropped(DropReason::IdentificationMismatch), 1);
    assert!(!world.mobile.is_registered());
}

#[test]
fn a_foreign_agent_with_an_agreement_must_sign_its_replies() {
    let security = SecurityAssociation::hmac_md5(Spi(700), *b"visitor and host").unwrap();
    let mut config = mobile_config();
    config.foreign_agents = vec![PeerSecurity { address: FA[0], security: security.clone() }];
    let mut host = foreign_config(0);
    host.mobile_nodes = vec![PeerSecurity { address: HOME, security }];
    let mut world = World::with(config, home_config(), [host, foreign_config(1)]);
    world.switch(IF_CELL);
    world.run_until(at(2_000));
    assert!(world.mobile.is_registered());
    world.run_until(at(224_000));
    world.lose = Box::new(|from, _| from == Who::Home);
    world.run_until(at(227_500));
    let request = last_request(&world);
    world.inject(Who::Mobile, IF_CELL, udp(FA[0], HOME, 64, reply(&request, ReplyCode::Accepted)));
    assert_eq!(world.mobile.counters().dropped(DropReason::MissingAuthenticator), 1);
}

fn advertisement(change: impl FnOnce(&mut RouterAdvertisement, &mut MobilityAgentAdvertisement)) -> Vec<u8> {
    let mut agent = MobilityAgentAdvertisement {
        sequence: 9,
        registration_lifetime: Lifetime::from_secs(600),
        flags: AgentFlags::FOREIGN_AGENT,
        care_of_addresses: vec![FA[1]],
    };
    let mut message = RouterAdvertisement { lifetime_secs: 30, ..RouterAdvertisement::default() };
    change(&mut message, &mut agent);
    message.extensions.push(AdvertisementExtension::MobilityAgent(agent));
    let mut bytes = Vec::new();
    IcmpMessage::RouterAdvertisement(message).emit(&mut bytes);
    bytes
}

fn icmp(source: std::net::Ipv4Addr, ttl: u8, bytes: Vec<u8>) -> Transmit {
    let payload = TransmitPayload::Icmp { bytes };
    Transmit { interface: None, source, destination: ALL_SYSTEMS, ttl, payload }
}

#[test]
fn advertisements_that_cannot_be_are_ignored() {
    let mut world = World::new();
    world.cells.clear();
    world.switch(IF_CELL);
    let mut plain = Vec::new();
    IcmpMessage::RouterAdvertisement(RouterAdvertisement {
        lifetime_secs: 30,
        ..RouterAdvertisement::default()
    })
    .emit(&mut plain);
    for (transmit, reason) in [
        (icmp(FA[1], 64, advertisement(|_, _| ())), DropReason::WrongTtl),
        (icmp(FA[1], 1, plain), DropReason::NotAnAgent),
        (icmp(FA[1], 1, advertisement(|_, _| ())[..12].to_vec()), DropReason::Malformed),
    ] {
        world.inject(Who::Mobile, IF_CELL, transmit);
        assert_eq!(world.mobile.counters().dropped(reason), 1);
    }
    // Agents that offer nothing to register with.
    for bytes in [
        advertisement(|_, agent| agent.care_of_addresses.clear()),
        advertisement(|_, agent| agent.flags = AgentFlags::default()),
        advertisement(|_, agent| agent.registration_lifetime = Lifetime::ZERO),
        advertisement(|_, agent| agent.flags = AgentFlags::FOREIGN_AGENT.with(AgentFlags::BUSY)),
        advertisement(|message, _| message.lifetime_secs = 0),
    ] {
        world.inject(Who::Mobile, IF_CELL, icmp(FA[1], 1, bytes));
        assert!(world.request_times().is_empty());
    }
    world.inject(Who::Mobile, IF_CELL, icmp(FA[1], 1, advertisement(|_, _| ())));
    assert_eq!(world.request_times().len(), 1);
}

#[test]
fn an_agent_that_lies_about_its_lifetimes_costs_no_more_than_its_silence() {
    let mut config = mobile_config();
    config.movement.prefix = false;
    let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
    world.cells = vec![1];
    world.switch(IF_CELL);
    world.run_until(at(3_000));
    assert_eq!(world.exits(), [FA[1]]);
    // It promises 18 hours, every second, and then is gone.
    for second in 0..5u16 {
        let bytes = advertisement(|message, agent| {
            message.lifetime_secs = u16::MAX;
            agent.sequence = 1_000 + second;
            agent.registration_lifetime = Lifetime::INFINITE;
        });
        world.cells.clear();
        world.inject(Who::Mobile, IF_CELL, icmp(FA[1], 1, bytes));
        world.run_for(Duration::from_secs(1));
    }
    world.cells = vec![0];
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.exits(), [FA[0]]);
}

#[test]
fn whoever_only_pretends_to_be_an_agent_is_not_believed_for_long() {
    // One claims to be the home agent, one that registrations must go through it.
    let home = AgentFlags::HOME_AGENT;
    let demanding = AgentFlags::FOREIGN_AGENT.with(AgentFlags::REGISTRATION_REQUIRED);
    for (source, flags) in [(HA, home), (FA[1], demanding)] {
        let mut config = mobile_config();
        config.interfaces[0].care_of = CareOfChoice::PreferCoLocated;
        let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
        let bytes = advertisement(|message, agent| {
            message.lifetime_secs = 9_000;
            agent.flags = flags;
        });
        world.inject(Who::Mobile, IF_WLAN, icmp(source, 1, bytes));
        // Nobody answers what is sent from the home address or to the agent.
        world.lose = Box::new(|from, transmit| {
            from == Who::Mobile && (transmit.source == HOME || transmit.destination == FA[1])
        });
        world.switch(IF_WLAN);
        world.run_until(at(9_000));
        assert_eq!(world.exits(), [WLAN]);
        assert!(!world.mobile.is_at_home() && world.mobile.is_registered());
    }
}

#[test]
fn who_advertises_as_the_home_agent_costs_no_packet_and_no_binding() {
    for eager in [false, true] {
        let mut config = mobile_config();
        config.movement.eager = eager;
        let mut world = World::with(config, home_config(), [foreign_config(0), foreign_config(1)]);
        world.switch(IF_CELL);
        world.run_until(at(3_000));
        let before = world.mobile.delivery(CORRESPONDENT, None);
        assert_eq!(before.and_then(|delivery| delivery.via), Some(FA[0]));
        let began = world.messages(Who::Mobile).len();
        for second in 0..60u16 {
            let forged = advertisement(|message, agent| {
                message.routers.push(RouterAddress { address: HA, preference: 0 });
                message.extensions.push(AdvertisementExtension::PrefixLengths(vec![24]));
                agent.flags = AgentFlags::HOME_AGENT;
                agent.care_of_addresses.clear();
                agent.sequence = 256 + second;
            });
            world.inject(Who::Mobile, IF_CELL, icmp(HA, 1, forged));
            world.run_for(Duration::from_secs(1));
            assert_eq!(world.mobile.delivery(CORRESPONDENT, None), before, "after {second} s");
            assert_eq!(world.exits(), [FA[0]], "after {second} s");
        }
        // What says that it is at home must not get beyond this link, where who forges might pass it on.
        let messages = world.messages(Who::Mobile).split_off(began);
        let farewells = messages.iter().filter(|(.., transmit)| transmit.destination == HA);
        assert!(farewells.clone().count() > 0);
        assert!(farewells.clone().all(|(.., transmit)| transmit.ttl == 1));
        let gone = AgentEvent::PrefixChanged { interface: IF_CELL, agent: HA };
        assert!(!world.events.iter().any(|(_, _, event)| *event == Event::Agent(gone)));
        assert_eq!(world.arps(Who::Mobile).pop(), Some(ArpEvent::Answer { home_address: HOME, on: false }));
    }
}

#[test]
fn a_home_agent_that_grants_no_time_at_all_is_not_asked_in_a_loop() {
    let mut world = World::new();
    world.lose = Box::new(|from, _| from == Who::Home);
    world.switch(IF_WLAN);
    for _ in 0..200 {
        world.run_for(Duration::from_millis(500));
        let mut request = last_request(&world);
        request.lifetime = Lifetime::ZERO;
        world.inject(Who::Mobile, IF_WLAN, udp(HA, WLAN, 64, reply(&request, ReplyCode::Accepted)));
    }
    let requests = world.request_times().len();
    assert!(requests <= 10, "{requests} requests in 100 s");
}

#[test]
fn endless_denials_that_could_be_mended_are_not_believed_forever() {
    let mut world = World::new();
    world.lose = Box::new(|from, _| from == Who::Home);
    world.switch(IF_WLAN);
    for turn in 0..1_000u32 {
        world.run_for(Duration::from_millis(100));
        let mut request = last_request(&world);
        request.identification.0 = request.identification.0.wrapping_add(u64::from(turn) << 40);
        world.inject(
            Who::Mobile,
            IF_WLAN,
            udp(HA, WLAN, 64, reply(&request, ReplyCode::HomeIdentificationMismatch)),
        );
    }
    let requests = world.request_times().len();
    assert!(requests <= 40, "{requests} requests in 100 s");
}
