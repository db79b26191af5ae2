//! What a home agent answers to requests made by hand.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Identification, Lifetime, Message, PathNumber, RegistrationReply,
    ReplyCode, RequestFlags, Spi, UnknownExtension,
};

use super::craft::*;
use super::world::*;

struct Bench {
    agent: HomeAgent,
    now: Instant,
    sent: Vec<Transmit>,
    events: Vec<Event>,
}

impl Bench {
    fn new(config: HomeAgentConfig) -> Self {
        let agent = HomeAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "home")).unwrap();
        Self { agent, now: Instant::from_secs(100), sent: Vec::new(), events: Vec::new() }
    }

    /// A second later; each request needs its own time.
    fn next(&mut self) -> Craft {
        self.now += Duration::from_secs(1);
        Craft::new(self.now)
    }

    fn ask(&mut self, craft: &Craft) -> Option<RegistrationReply> {
        self.ask_on(UPSTREAM, craft.transmit())
    }

    fn ask_on(&mut self, interface: InterfaceId, transmit: Transmit) -> Option<RegistrationReply> {
        self.agent.handle_input(
            self.now,
            Input::Udp {
                interface,
                source: transmit.source,
                source_port: 40_000,
                destination: transmit.destination,
                destination_port: 434,
                ttl: transmit.ttl,
                link_address: None,
                payload: transmit.payload.bytes(),
            },
        );
        self.sent = std::iter::from_fn(|| self.agent.poll_transmit(self.now)).collect();
        self.events = std::iter::from_fn(|| self.agent.poll_event()).collect();
        last_reply(&self.sent)
    }

    fn code(&mut self, craft: &Craft) -> Option<ReplyCode> {
        self.ask(craft).map(|reply| reply.code)
    }
}

fn foreign_security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(999), *b"between agents!!").unwrap()
}

#[test]
fn a_good_request_is_accepted_and_the_reply_goes_back_where_it_came_from() {
    let mut bench = Bench::new(home_config());
    let craft = bench.next();
    let reply = bench.ask(&craft).unwrap();
    assert_eq!((reply.code, reply.lifetime), (ReplyCode::Accepted, Lifetime::from_secs(100)));
    assert_eq!((reply.home_address, reply.home_agent), (HOME, HA));
    assert_eq!(reply.identification, craft.request.identification);
    let sent = &bench.sent[0];
    assert_eq!((sent.source, sent.destination, sent.interface), (HA, WLAN, None));
    let TransmitPayload::Udp { source_port, destination_port, .. } = sent.payload else { panic!() };
    assert_eq!((source_port, destination_port), (434, 40_000));
    let binding = bench.agent.bindings().next().unwrap();
    assert!(binding.co_located && !binding.reverse_tunnel && !binding.broadcasts);
    assert_eq!(binding.expires, bench.now + Duration::from_secs(100));
}

#[test]
fn every_denial_has_its_code() {
    let restricted = HomeAgentConfig {
        reverse_tunnel: ReverseTunnel::Unavailable,
        minimal_encapsulation: false,
        gre: false,
        max_bindings_per_node: 2,
        ..home_config()
    };
    type Change = fn(&mut Craft);
    let cases: [(Change, ReplyCode); 14] = [
        (
            |c| c.security = Some(SecurityAssociation::hmac_md5(Spi(256), *b"wrong").unwrap()),
            ReplyCode::HomeMobileNodeFailedAuthentication,
        ),
        (
            |c| c.security = Some(SecurityAssociation::hmac_md5(Spi(257), KEY).unwrap()),
            ReplyCode::HomeMobileNodeFailedAuthentication,
        ),
        (
            |c| c.foreign = Some((AuthenticationKind::ForeignHome, foreign_security())),
            ReplyCode::HomeForeignAgentFailedAuthentication,
        ),
        (|c| c.request.identification = Identification(7), ReplyCode::HomeIdentificationMismatch),
        (|c| c.flag(RequestFlags::RESERVED_R), ReplyCode::HomePoorlyFormedRequest),
        (|c| c.flag(RequestFlags::RESERVED_X), ReplyCode::HomePoorlyFormedRequest),
        (|c| c.request.care_of_address = Ipv4Addr::UNSPECIFIED, ReplyCode::HomePoorlyFormedRequest),
        (|c| c.request.care_of_address = HOME, ReplyCode::HomePoorlyFormedRequest),
        (|c| c.request.care_of_address = HA, ReplyCode::HomePoorlyFormedRequest),
        (|c| c.request.home_agent = Ipv4Addr::new(10, 0, 0, 2), ReplyCode::HomeUnknownHomeAgentAddress),
        (
            |c| c.destination = home_network().directed_broadcast().unwrap(),
            ReplyCode::HomeUnknownHomeAgentAddress,
        ),
        (|c| c.flag(RequestFlags::REVERSE_TUNNELING), ReplyCode::HomeReverseTunnelUnavailable),
        (|c| c.flag(RequestFlags::MINIMAL_ENCAPSULATION), ReplyCode::HomeEncapsulationUnavailable),
        (|c| c.flag(RequestFlags::GRE), ReplyCode::HomeEncapsulationUnavailable),
    ];
    for (index, (change, code)) in cases.into_iter().enumerate() {
        let mut bench = Bench::new(restricted.clone());
        let craft = bench.next().with(change);
        assert_eq!(bench.code(&craft), Some(code), "case {index}");
        assert_eq!(bench.agent.counters().denied(code.number()), 1);
        assert_eq!(bench.agent.counters().dropped_total(), 1, "and counted by its reason");
        assert!(bench.agent.tunnels(HOME).is_empty());
        assert_eq!(bench.sent[0].source, HA, "from our own address, however it was asked");
        let good = bench.next();
        assert_eq!(bench.code(&good), Some(ReplyCode::Accepted), "the next good one is served");
    }
}

#[test]
fn the_remaining_denials() {
    let mut config = home_config();
    config.mobile_nodes[0].permitted = false;
    let mut bench = Bench::new(config);
    let craft = bench.next();
    assert_eq!(bench.code(&craft), Some(ReplyCode::HomeAdministrativelyProhibited));

    let mut bench = Bench::new(HomeAgentConfig { reverse_tunnel: ReverseTunnel::Required, ..home_config() });
    let craft = bench.next();
    assert_eq!(bench.code(&craft), Some(ReplyCode::HomeReverseTunnelMandatory));

    let mut bench = Bench::new(HomeAgentConfig { max_bindings: 0, ..home_config() });
    let craft = bench.next();
    assert_eq!(bench.code(&craft), Some(ReplyCode::HomeInsufficientResources));

    let mut bench = Bench::new(HomeAgentConfig { max_bindings_per_node: 2, ..home_config() });
    for (last, expected) in [
        (1, ReplyCode::Accepted),
        (2, ReplyCode::Accepted),
        (3, ReplyCode::HomeTooManySimultaneousBindings),
        (2, ReplyCode::Accepted),
    ] {
        let craft = bench.next().with(|c| {
            c.flag(RequestFlags::SIMULTANEOUS_BINDINGS);
            c.request.care_of_address = Ipv4Addr::new(192, 0, 2, last);
        });
        assert_eq!(bench.code(&craft), Some(expected));
    }
    assert_eq!(bench.agent.tunnels(HOME).len(), 2);
}

#[test]
fn no_tunnel_leads_to_a_served_home_address_or_to_the_agent_itself() {
    let other = Ipv4Addr::new(10, 0, 0, 9);
    let mut config = home_config();
    let mut node = config.mobile_nodes[0].clone();
    node.home_address = other;
    config.mobile_nodes.push(node);
    let mut bench = Bench::new(config.clone());
    for (care_of, code) in
        [(other, ReplyCode::HomeAdministrativelyProhibited), (HA, ReplyCode::HomePoorlyFormedRequest)]
    {
        let craft = bench.next().with(|c| c.request.care_of_address = care_of);
        assert_eq!(bench.code(&craft), Some(code));
        assert!(bench.agent.tunnels(HOME).is_empty());
    }
    // One that came to be served later is not restored, either.
    let mut before = Bench::new(home_config());
    let craft = before.next().with(|c| c.request.care_of_address = other);
    assert_eq!(before.code(&craft), Some(ReplyCode::Accepted), "somebody else's address");
    let record = before.agent.record(before.now, HOME).unwrap();
    let mut after = Bench::new(config);
    assert!(after.agent.restore(after.now, &record));
    assert!(after.agent.tunnels(HOME).is_empty());
    // Whoever is there by an older agreement may still leave.
    let craft = bench.next().with(|c| {
        c.request.care_of_address = other;
        c.request.lifetime = Lifetime::ZERO;
    });
    assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
}

#[test]
fn no_tunnel_leads_to_everybody_or_to_nobody() {
    let mut bench = Bench::new(home_config());
    let everybody = Ipv4Addr::new(172, 16, 255, 255);
    let connected = vec![Prefix::new(everybody, 16)];
    bench.agent.set_surroundings(Surroundings { connected, ..Surroundings::default() });
    let at_home = home_network().directed_broadcast().unwrap();
    for care_of in [everybody, at_home, Ipv4Addr::new(0, 0, 0, 1), Ipv4Addr::BROADCAST] {
        let craft = bench.next().with(|c| c.request.care_of_address = care_of);
        assert_eq!(bench.code(&craft), Some(ReplyCode::HomePoorlyFormedRequest), "{care_of}");
        assert!(bench.agent.tunnels(HOME).is_empty());
    }
}

#[test]
fn strangers_get_no_answer_at_all() {
    let mut bench = Bench::new(home_config());
    let craft = bench.next().with(|c| c.request.home_address = Ipv4Addr::new(10, 0, 0, 8));
    assert_eq!(bench.code(&craft), None);
    assert_eq!(bench.agent.counters().dropped(DropReason::UnknownHomeAddress), 1);
    assert!(!bench.agent.serves(Ipv4Addr::new(10, 0, 0, 8)) && bench.agent.serves(HOME));
}

#[test]
fn a_denial_of_an_unsynchronised_request_tells_our_time() {
    let mut bench = Bench::new(home_config());
    let craft = bench.next().with(|c| c.request.identification = Identification::from_halves(1, 0xabcd));
    let reply = bench.ask(&craft).unwrap();
    assert_eq!(reply.code, ReplyCode::HomeIdentificationMismatch);
    assert_eq!(reply.identification.low(), 0xabcd);
    assert_eq!(reply.identification.high(), clock().at(bench.now).seconds());
    assert_eq!(bench.agent.counters().dropped(DropReason::Replayed), 1);
}

#[test]
fn the_encapsulation_is_the_one_asked_for() {
    use careof_wire::tunnel::Encapsulation;
    for (flag, expected) in [
        (RequestFlags::default(), Encapsulation::IpInIp),
        (RequestFlags::MINIMAL_ENCAPSULATION, Encapsulation::Minimal),
        (RequestFlags::GRE, Encapsulation::Gre { key: None, sequence: None }),
    ] {
        let mut bench = Bench::new(home_config());
        let craft = bench.next().with(|c| c.flag(flag));
        assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
        let tunnel = Tunnel { entry: HA, exit: WLAN, encapsulation: expected, ttl: 64 };
        assert_eq!(bench.agent.tunnels(HOME), [tunnel]);
    }
}

#[test]
fn a_foreign_agent_known_to_us_must_sign() {
    let mut config = home_config();
    config.foreign_agents = vec![PeerSecurity { address: FA[0], security: foreign_security() }];
    let mut bench = Bench::new(config);
    let by_agent = |c: &mut Craft| {
        c.source = FA[0];
        c.request.care_of_address = FA[0];
        c.request.flags = RequestFlags::default();
    };
    let unsigned = bench.next().with(by_agent);
    assert_eq!(bench.code(&unsigned), Some(ReplyCode::HomeForeignAgentFailedAuthentication));
    let wrong =
        bench.next().with(by_agent).with(|c| c.foreign = Some((AuthenticationKind::ForeignHome, security())));
    assert_eq!(bench.code(&wrong), Some(ReplyCode::HomeForeignAgentFailedAuthentication));
    let signed = bench
        .next()
        .with(by_agent)
        .with(|c| c.foreign = Some((AuthenticationKind::ForeignHome, foreign_security())));
    assert_eq!(bench.code(&signed), Some(ReplyCode::Accepted));
    let Ok(message) = Message::parse(bench.sent[0].payload.bytes()) else { panic!() };
    assert!(message.authentication(AuthenticationKind::ForeignHome).is_some(), "so do we");
    // The deregistration of another agent's address comes unsigned.
    let foreign = bench.next().with(by_agent).with(|c| {
        c.request.care_of_address = FA[1];
        c.request.lifetime = Lifetime::ZERO;
    });
    assert_eq!(bench.code(&foreign), Some(ReplyCode::Accepted));
    assert_eq!(bench.agent.tunnels(HOME).len(), 1);
}

#[test]
fn a_foreign_agent_need_not_sign_a_deregistration_but_must_not_sign_it_wrongly() {
    let mut config = home_config();
    config.foreign_agents = vec![PeerSecurity { address: FA[0], security: foreign_security() }];
    let mut bench = Bench::new(config);
    let by_agent = |c: &mut Craft| {
        c.source = FA[0];
        c.request.care_of_address = FA[0];
        c.request.flags = RequestFlags::default();
        c.foreign = Some((AuthenticationKind::ForeignHome, foreign_security()));
    };
    let signed = bench.next().with(by_agent);
    assert_eq!(bench.code(&signed), Some(ReplyCode::Accepted));
    let mut leave = |foreign: Option<SecurityAssociation>| {
        let craft = bench.next().with(by_agent).with(|c| {
            c.request.lifetime = Lifetime::ZERO;
            c.foreign = foreign.map(|security| (AuthenticationKind::ForeignHome, security));
        });
        (bench.code(&craft), bench.agent.tunnels(HOME).len())
    };
    let wrong = leave(Some(security()));
    assert_eq!(wrong, (Some(ReplyCode::HomeForeignAgentFailedAuthentication), 1));
    assert_eq!(leave(None), (Some(ReplyCode::Accepted), 0));
}

#[test]
fn what_nobody_has_signed_gets_no_answer() {
    let mut bench = Bench::new(home_config());
    let craft = bench.next().with(|c| c.security = None);
    assert_eq!((bench.code(&craft), bench.sent.len()), (None, 0));
    let counted = bench.agent.counters();
    assert_eq!((counted.dropped(DropReason::MissingAuthenticator), counted.denials_suppressed), (1, 0));
}

#[test]
fn a_time_is_past_for_every_security_association_once_one_has_seen_a_later_one() {
    let second = SecurityAssociation::hmac_md5(Spi(257), *b"the new key, soon").unwrap();
    let mut config = home_config();
    config.mobile_nodes[0].security.push(second.clone());
    let mut bench = Bench::new(config.clone());
    let delayed = bench.next().with(|c| {
        c.security = Some(second.clone());
        c.request.care_of_address = GSM;
    });
    let latest = bench.next();
    assert_eq!(bench.code(&latest), Some(ReplyCode::Accepted));
    let exits =
        |bench: &Bench| bench.agent.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect::<Vec<_>>();
    assert_eq!(bench.code(&delayed), Some(ReplyCode::HomeIdentificationMismatch));
    assert_eq!(exits(&bench), [WLAN]);
    // Nor is it news to an agent that has been given the second one since, and was restarted.
    let mut before = Bench::new(home_config());
    assert_eq!(before.code(&latest), Some(ReplyCode::Accepted));
    let record = before.agent.record(before.now, HOME).unwrap();
    let mut after = Bench::new(config);
    after.now = bench.now;
    assert!(after.agent.restore(after.now, &record));
    assert_eq!(after.code(&delayed), Some(ReplyCode::HomeIdentificationMismatch));
    assert_eq!(exits(&after), [WLAN]);
    let craft = after.next().with(|c| c.security = Some(second));
    assert_eq!(after.code(&craft), Some(ReplyCode::Accepted));
}

#[test]
fn a_copy_that_is_denied_for_what_the_mobile_node_did_not_sign_does_not_use_its_request_up() {
    let copies: [fn(&mut Craft); 2] = [
        |c| c.foreign = Some((AuthenticationKind::ForeignHome, foreign_security())),
        |c| c.destination = home_network().directed_broadcast().unwrap(),
    ];
    let codes = [ReplyCode::HomeForeignAgentFailedAuthentication, ReplyCode::HomeUnknownHomeAgentAddress];
    for replay in [ReplayProtection::TIMESTAMPS, ReplayProtection::Nonces] {
        let mut config = home_config();
        let key = SecurityAssociation::new(Spi(256), careof_wire::mip4::Algorithm::HmacMd5, KEY, replay);
        config.mobile_nodes[0].security = vec![key.unwrap()];
        let mut bench = Bench::new(config);
        let mut request = bench.next();
        if replay == ReplayProtection::Nonces {
            // It is told which nonce to take.
            let first = bench.ask(&request).unwrap();
            assert_eq!(first.code, ReplyCode::HomeIdentificationMismatch);
            request.request.identification = Identification::from_halves(first.identification.high(), 7);
        }
        for (copy, code) in copies.into_iter().zip(codes) {
            // From somebody who was faster.
            assert_eq!(bench.code(&request.clone().with(copy)), Some(code));
        }
        assert_eq!(bench.code(&request), Some(ReplyCode::Accepted), "{replay:?}");
        for copy in copies {
            let code = bench.code(&request.clone().with(copy));
            assert_eq!(code, Some(ReplyCode::HomeIdentificationMismatch), "and only once");
        }
    }
}

#[test]
fn a_deregistration_ends_the_binding_it_names() {
    let mut bench = Bench::new(home_config());
    for address in [WLAN, GSM] {
        let craft = bench.next().with(|c| {
            c.flag(RequestFlags::SIMULTANEOUS_BINDINGS);
            c.request.care_of_address = address;
        });
        assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
    }
    let craft = bench.next().with(|c| c.request.lifetime = Lifetime::ZERO);
    let reply = bench.ask(&craft).unwrap();
    assert_eq!((reply.code, reply.lifetime), (ReplyCode::Accepted, Lifetime::ZERO));
    assert_eq!(bench.agent.tunnels(HOME).iter().map(|t| t.exit).collect::<Vec<_>>(), [GSM]);
    let unknown = bench.next().with(|c| c.request.lifetime = Lifetime::ZERO);
    assert_eq!(bench.code(&unknown), Some(ReplyCode::Accepted), "gone already");
}

#[test]
fn a_relay_s_address_is_registered_beside_the_others_and_has_packets_dispersed() {
    let relayed = |address: Ipv4Addr| {
        move |c: &mut Craft| {
            c.flag(RequestFlags::RELAYED);
            c.request.care_of_address = address;
            c.request.extensions.insert(0, PathNumber(1).extension());
        }
    };
    let mut bench = Bench::new(home_config());
    let craft = bench.next().with(relayed(GSM));
    assert_eq!(bench.code(&craft), Some(ReplyCode::HomePoorlyFormedRequest), "it is not offered");

    let mut bench = Bench::new(HomeAgentConfig { multipath: true, ..home_config() });
    let craft = bench.next();
    assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
    assert!(!bench.agent.disperses(HOME));
    let craft = bench.next().with(relayed(GSM));
    assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
    let bindings = |bench: &Bench| {
        bench.agent.bindings_of(HOME).iter().map(|b| (b.care_of, b.relayed)).collect::<Vec<_>>()
    };
    assert_eq!(bindings(&bench), [(WLAN, false), (GSM, true)]);
    assert!(bench.agent.disperses(HOME));
    // The relay is gone: its address is deregistered, and packets go the one way that is left.
    let craft = bench.next().with(|c| {
        c.request.care_of_address = GSM;
        c.request.lifetime = Lifetime::ZERO;
    });
    assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));
    assert_eq!(bindings(&bench), [(WLAN, false)]);
    assert!(!bench.agent.disperses(HOME));

    let one = HomeAgentConfig { multipath: true, max_bindings_per_node: 1, ..home_config() };
    let mut bench = Bench::new(one);
    let craft = bench.next().with(relayed(GSM));
    assert_eq!(bench.code(&craft), Some(ReplyCode::AcceptedWithoutSimultaneousBindings));
}

#[test]
fn unknown_extensions_are_skipped_from_128_on_and_condemn_the_message_below() {
    let mut bench = Bench::new(home_config());
    let skippable = UnknownExtension::new(200, b"whatever").unwrap();
    let craft = bench.next().with(|c| c.request.extensions.push(Extension::Unknown(skippable)));
    assert_eq!(bench.code(&craft), Some(ReplyCode::Accepted));

    let craft = bench.next();
    let mut bytes = Message::Request(craft.request.clone()).emit();
    bytes.extend([100, 2, 1, 1]);
    sign(&mut bytes, AuthenticationKind::MobileHome, &security());
    assert!(bench.ask_on(UPSTREAM, udp(WLAN, HA, 64, bytes)).is_none());
    assert_eq!(bench.agent.counters().dropped(DropReason::UnknownExtension), 1);
}

#[test]
fn a_deregistration_from_abroad_does_not_announce_the_node_at_home() {
    let mut bench = Bench::new(home_config());
    let craft = bench.next();
    bench.code(&craft);
    let away = bench.next().with(|c| {
        c.request.lifetime = Lifetime::ZERO;
        c.request.care_of_address = HOME;
    });
    assert_eq!(bench.code(&away), Some(ReplyCode::Accepted));
    let arps: Vec<_> = bench.events.iter().filter(|event| matches!(event, Event::Arp(_))).collect();
    let off = Event::Arp(ArpEvent::Proxy { home_address: HOME, interface: DOWNSTREAM, on: false });
    assert_eq!(arps, [&off]);
}

#[test]
fn solicitations_on_the_home_link_are_answered() {
    let mut bench = Bench::new(home_config());
    bench.agent.handle_timeout(bench.now);
    bench.sent = std::iter::from_fn(|| bench.agent.poll_transmit(bench.now)).collect();
    assert_eq!(bench.sent.len(), 1);
    bench.now += Duration::from_secs(5);
    let mut message = Vec::new();
    careof_wire::icmp::IcmpMessage::RouterSolicitation(careof_wire::icmp::RouterSolicitation)
        .emit(&mut message);
    let mut solicit = |ttl, interface| {
        let input = Input::Icmp { interface, source: HOME, destination: ALL_ROUTERS, ttl, message: &message };
        bench.agent.handle_input(bench.now, input);
        bench.agent.next_timeout().unwrap().0
    };
    let quiet = solicit(64, DOWNSTREAM);
    assert_eq!(solicit(1, UPSTREAM), quiet);
    assert!(quiet > bench.now + Duration::from_secs(1));
    assert!(solicit(1, DOWNSTREAM) <= bench.now + Duration::from_millis(100));
    assert_eq!(bench.agent.counters().dropped(DropReason::WrongTtl), 1);
}

#[test]
fn impossible_configurations_are_refused() {
    let make = |config| HomeAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "home")).map(|_| ());
    let mut twice = home_config();
    twice.mobile_nodes.push(twice.mobile_nodes[0].clone());
    assert!(matches!(make(twice), Err(ConfigError::DuplicateAddress { .. })));
    let mut keyless = home_config();
    keyless.mobile_nodes[0].security.clear();
    assert_eq!(make(keyless), Err(ConfigError::NoSecurityAssociation { home_address: HOME.into() }));
    let mut same = home_config();
    same.mobile_nodes[0].security.push(security());
    assert_eq!(make(same), Err(ConfigError::DuplicateSpi { address: HOME.into(), spi: Spi(256) }));
    let nowhere = HomeAgentConfig { address: Ipv4Addr::BROADCAST, ..home_config() };
    assert!(matches!(make(nowhere), Err(ConfigError::NotUnicast { .. })));
    let none = HomeAgentConfig { max_bindings_per_node: 0, ..home_config() };
    assert!(matches!(make(none), Err(ConfigError::OutOfRange { .. })));
}
