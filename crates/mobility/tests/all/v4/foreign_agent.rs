//! What a foreign agent does with requests and replies made by hand.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::{
    AuthenticationKind, Extension, Lifetime, Message, RegistrationReply, RegistrationRequest, ReplyCode,
    RequestFlags, Spi, UnknownExtension,
};

use super::craft::*;
use super::world::*;

struct Bench {
    agent: ForeignAgent,
    now: Instant,
    sent: Vec<Transmit>,
    told: Vec<Event>,
}

impl Bench {
    fn new(config: ForeignAgentConfig) -> Self {
        let agent = ForeignAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "foreign")).unwrap();
        Self { agent, now: Instant::from_secs(100), sent: Vec::new(), told: Vec::new() }
    }

    fn next(&mut self) -> Craft {
        self.now += Duration::from_secs(1);
        Craft::to_foreign_agent(self.now)
    }

    fn handle(&mut self, interface: InterfaceId, transmit: &Transmit) {
        self.agent.handle_input(
            self.now,
            Input::Udp {
                interface,
                source: transmit.source,
                source_port: 434,
                destination: transmit.destination,
                destination_port: 434,
                ttl: transmit.ttl,
                link_address: None,
                payload: transmit.payload.bytes(),
            },
        );
        self.collect();
    }

    fn collect(&mut self) {
        self.sent = std::iter::from_fn(|| self.agent.poll_transmit(self.now)).collect();
        self.told = std::iter::from_fn(|| self.agent.poll_event()).collect();
    }

    /// The agent's own answer to a request; `None` when it is relayed or dropped.
    fn code(&mut self, craft: &Craft) -> Option<ReplyCode> {
        self.handle(DOWNSTREAM, &craft.transmit());
        last_reply(&self.sent).map(|reply| reply.code)
    }

    /// Registers, and returns what the mobile node gets.
    fn register(&mut self, craft: &Craft) -> Option<RegistrationReply> {
        assert_eq!(self.code(craft), None);
        assert_eq!(self.sent[0].destination, HA, "relayed");
        self.handle(UPSTREAM, &udp(HA, FA[0], 64, reply(&craft.request, ReplyCode::Accepted)));
        last_reply(&self.sent)
    }

    fn timeout(&mut self, after: Duration) {
        self.now += after;
        self.agent.handle_timeout(self.now);
        self.collect();
    }
}

fn agents_security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(999), *b"between agents!!").unwrap()
}

fn visitor_security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(700), *b"visitor and host").unwrap()
}

#[test]
fn every_denial_has_its_code() {
    let plain = || {
        let mut config = foreign_config(0);
        config.max_lifetime = Lifetime::from_secs(200);
        config.reverse_tunnel = ReverseTunnel::Unavailable;
        config.minimal_encapsulation = false;
        config.gre = false;
        config.admitted = Some(vec![home_network()]);
        config
    };
    let tunnelling = || ForeignAgentConfig { reverse_tunnel: ReverseTunnel::Optional, ..plain() };
    let styleless = || ForeignAgentConfig { encapsulating_delivery: false, ..tunnelling() };
    let mandatory = || ForeignAgentConfig { reverse_tunnel: ReverseTunnel::Required, ..plain() };
    let full = || ForeignAgentConfig { max_visitors: 0, ..plain() };
    let busy = || ForeignAgentConfig { max_pending: 0, ..plain() };
    let acquainted = || ForeignAgentConfig {
        mobile_nodes: vec![PeerSecurity { address: HOME, security: visitor_security() }],
        ..plain()
    };
    type Config<'a> = &'a dyn Fn() -> ForeignAgentConfig;
    type Change = fn(&mut Craft);
    let cases: [(Config<'_>, Change, ReplyCode); 22] = [
        (
            &plain,
            |c| c.request.home_address = Ipv4Addr::new(172, 16, 0, 1),
            ReplyCode::ForeignAdministrativelyProhibited,
        ),
        (&full, |_| (), ReplyCode::ForeignInsufficientResources),
        (&busy, |_| (), ReplyCode::ForeignInsufficientResources),
        (&acquainted, |_| (), ReplyCode::ForeignMobileNodeFailedAuthentication),
        (
            &acquainted,
            |c| c.foreign = Some((AuthenticationKind::MobileForeign, security())),
            ReplyCode::ForeignMobileNodeFailedAuthentication,
        ),
        (
            &plain,
            |c| c.request.lifetime = Lifetime::from_secs(201),
            ReplyCode::ForeignRequestedLifetimeTooLong,
        ),
        (&plain, |c| c.flag(RequestFlags::RESERVED_R), ReplyCode::ForeignPoorlyFormedRequest),
        (&plain, |c| c.security = None, ReplyCode::ForeignPoorlyFormedRequest),
        (&plain, |c| c.request.home_address = Ipv4Addr::UNSPECIFIED, ReplyCode::ForeignPoorlyFormedRequest),
        (&tunnelling, |c| c.delivery_style = true, ReplyCode::ForeignPoorlyFormedRequest),
        (
            &tunnelling,
            |c| {
                c.flag(RequestFlags::REVERSE_TUNNELING);
                // In the part that belongs to the home agent.
                c.request.extensions.push(Extension::EncapsulatingDeliveryStyle);
            },
            ReplyCode::ForeignPoorlyFormedRequest,
        ),
        (&plain, |c| c.flag(RequestFlags::MINIMAL_ENCAPSULATION), ReplyCode::ForeignEncapsulationUnavailable),
        (&plain, |c| c.flag(RequestFlags::GRE), ReplyCode::ForeignEncapsulationUnavailable),
        (&plain, |c| c.flag(RequestFlags::REVERSE_TUNNELING), ReplyCode::ForeignReverseTunnelUnavailable),
        (&mandatory, |_| (), ReplyCode::ForeignReverseTunnelMandatory),
        (&tunnelling, |c| c.flag(RequestFlags::REVERSE_TUNNELING), ReplyCode::ForeignMobileNodeTooDistant),
        (
            &styleless,
            |c| {
                c.flag(RequestFlags::REVERSE_TUNNELING);
                c.delivery_style = true;
                c.ttl = 255;
            },
            ReplyCode::ForeignDeliveryStyleNotSupported,
        ),
        (&plain, |c| c.request.care_of_address = FA[1], ReplyCode::ForeignInvalidCareOfAddress),
        (&plain, |c| c.request.home_agent = Ipv4Addr::UNSPECIFIED, ReplyCode::ForeignInvalidHomeAgentAddress),
        (&plain, |c| c.request.home_agent = Ipv4Addr::BROADCAST, ReplyCode::ForeignInvalidHomeAgentAddress),
        (
            &plain,
            |c| c.request.home_agent = Ipv4Addr::new(224, 0, 0, 11),
            ReplyCode::ForeignInvalidHomeAgentAddress,
        ),
        (&plain, |c| c.request.home_agent = FA[0], ReplyCode::ForeignInvalidHomeAgentAddress),
    ];
    for (index, (config, change, code)) in cases.into_iter().enumerate() {
        let mut bench = Bench::new(config());
        let craft = bench.next().with(change);
        assert_eq!(bench.code(&craft), Some(code), "case {index}");
        assert_eq!(bench.agent.counters().denied(code.number()), 1);
        assert_eq!(bench.agent.counters().dropped_total(), 1);
        assert_eq!(bench.agent.pending_requests(), 0);
        let sent = &bench.sent[0];
        assert_eq!((sent.interface, sent.source), (Some(DOWNSTREAM), FA[0]));
        let reply = last_reply(&bench.sent).unwrap();
        assert_eq!(reply.identification, craft.request.identification);
        if code == ReplyCode::ForeignRequestedLifetimeTooLong {
            assert_eq!(reply.lifetime, Lifetime::from_secs(200));
        }
    }
}

#[test]
fn no_request_is_relayed_to_an_address_of_the_agents_own_host() {
    let own = Ipv4Addr::new(203, 0, 113, 9);
    let mut bench = Bench::new(foreign_config(0));
    bench.agent.set_surroundings(Surroundings { own: vec![own], ..Surroundings::default() });
    for lifetime in [Lifetime::from_secs(100), Lifetime::ZERO] {
        let craft = bench.next().with(|c| (c.request.home_agent, c.request.lifetime) = (own, lifetime));
        assert_eq!(bench.code(&craft), Some(ReplyCode::ForeignInvalidHomeAgentAddress));
        assert_eq!((bench.sent.len(), bench.agent.pending_requests()), (1, 0));
    }
}

#[test]
fn what_is_not_for_the_home_agent_is_taken_out_and_our_signature_put_in() {
    let mut config = foreign_config(0);
    config.home_agents = vec![PeerSecurity { address: HA, security: agents_security() }];
    config.mobile_nodes = vec![PeerSecurity { address: HOME, security: visitor_security() }];
    let mut bench = Bench::new(config);
    let craft = bench.next().with(|c| {
        c.flag(RequestFlags::REVERSE_TUNNELING);
        c.request.extensions.push(Extension::Unknown(UnknownExtension::new(201, b"for home").unwrap()));
        c.delivery_style = true;
        c.foreign = Some((AuthenticationKind::MobileForeign, visitor_security()));
        c.ttl = 255;
    });
    assert_eq!(bench.code(&craft), None);
    let relayed = bench.sent[0].payload.bytes().to_vec();
    let message = Message::parse(&relayed).unwrap();
    let kinds: Vec<_> = message.extensions().iter().map(Extension::kind).collect();
    assert_eq!(kinds, [201, 32, 34]);
    let mut expected = craft.clone().with(|c| (c.delivery_style, c.foreign) = (false, None)).bytes();
    sign(&mut expected, AuthenticationKind::ForeignHome, &agents_security());
    assert_eq!(relayed, expected);

    let mut answer = reply(&craft.request, ReplyCode::Accepted);
    let for_mobile_node = answer.clone();
    sign(&mut answer, AuthenticationKind::ForeignHome, &agents_security());
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, answer));
    let mut expected = for_mobile_node;
    sign(&mut expected, AuthenticationKind::MobileForeign, &visitor_security());
    assert_eq!(bench.sent[0].payload.bytes(), expected);
    assert_eq!((bench.sent[0].destination, bench.sent[0].interface), (HOME, Some(DOWNSTREAM)));
    assert!(bench.agent.visitor(HOME).unwrap().encapsulating_delivery);
}

#[test]
fn a_deregistration_of_an_address_that_is_not_ours_is_relayed_unsigned() {
    let mut config = foreign_config(0);
    config.home_agents = vec![PeerSecurity { address: HA, security: agents_security() }];
    let mut bench = Bench::new(config);
    for (care_of, signed) in [(FA[1], false), (FA[0], true)] {
        let craft = bench.next().with(|c| {
            c.request.lifetime = Lifetime::ZERO;
            c.request.care_of_address = care_of;
        });
        assert_eq!(bench.code(&craft), None);
        let message = Message::parse(bench.sent[0].payload.bytes()).unwrap();
        assert_eq!(message.authentication(AuthenticationKind::ForeignHome).is_some(), signed);
    }
}

#[test]
fn replies_that_nobody_asked_for_are_dropped() {
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next();
    let good = reply(&craft.request, ReplyCode::Accepted);
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, good.clone()));
    assert_eq!(bench.agent.counters().dropped(DropReason::UnexpectedReply), 1);
    assert_eq!(bench.code(&craft), None);
    bench.handle(UPSTREAM, &udp(CORRESPONDENT, FA[0], 64, good.clone()));
    assert_eq!(bench.agent.counters().dropped(DropReason::UnexpectedSource), 1);
    assert!(bench.sent.is_empty());
    let mut other = craft.request.clone();
    other.identification.0 ^= 1;
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, reply(&other, ReplyCode::Accepted)));
    assert_eq!(bench.agent.counters().dropped(DropReason::UnexpectedReply), 2);
    assert_eq!(bench.agent.deliver(HOME), None);
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, good.clone()));
    assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, good));
    assert_eq!(bench.agent.counters().dropped(DropReason::UnexpectedReply), 3, "once only");
}

#[test]
fn a_reply_without_the_home_agents_signature_is_denied_with_68_and_a_formless_one_with_71() {
    let mut config = foreign_config(0);
    config.home_agents = vec![PeerSecurity { address: HA, security: agents_security() }];
    let mut bench = Bench::new(config);
    let craft = bench.next();
    assert_eq!(
        bench.register(&craft).map(|reply| reply.code),
        Some(ReplyCode::ForeignHomeAgentFailedAuthentication)
    );
    assert_eq!(bench.agent.counters().dropped(DropReason::MissingAuthenticator), 1);
    assert_eq!((bench.agent.deliver(HOME), bench.agent.pending_requests()), (None, 0));

    let mut bench = Bench::new(foreign_config(0));
    for (code, keep) in [(ReplyCode::Accepted, 20), (ReplyCode::ForeignReasonUnspecified, usize::MAX)] {
        let craft = bench.next();
        assert_eq!(bench.code(&craft), None);
        let mut bytes = reply(&craft.request, code);
        bytes.truncate(keep);
        bench.handle(UPSTREAM, &udp(HA, FA[0], 64, bytes));
        assert_eq!(
            last_reply(&bench.sent).map(|reply| reply.code),
            Some(ReplyCode::ForeignPoorlyFormedReply)
        );
    }
}

#[test]
fn a_denial_by_the_home_agent_is_passed_on_and_leaves_the_visitor_as_it_was() {
    let mut bench = Bench::new(foreign_config(0));
    let first = bench.next();
    assert!(bench.register(&first).is_some());
    let second = bench.next();
    assert_eq!(bench.code(&second), None);
    let denial = reply(&second.request, ReplyCode::HomeTooManySimultaneousBindings);
    bench.handle(UPSTREAM, &udp(HA, FA[0], 64, denial.clone()));
    assert_eq!(bench.sent[0].payload.bytes(), denial);
    assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    assert_eq!(bench.agent.pending_requests(), 0);
}

#[test]
fn a_home_agent_that_never_answers_is_reported_after_seven_seconds() {
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next();
    assert_eq!(bench.code(&craft), None);
    bench.timeout(Duration::from_millis(6_999));
    assert!(last_reply(&bench.sent).is_none());
    bench.timeout(Duration::from_millis(1));
    assert_eq!(last_reply(&bench.sent).map(|reply| reply.code), Some(ReplyCode::ForeignRegistrationTimeout));
    assert_eq!(bench.agent.pending_requests(), 0);
}

/// What of a request an ICMP error quotes.
#[derive(Clone, Copy)]
enum Quotes {
    All,
    /// The IP and UDP headers, which somebody off the path can guess.
    UdpHeader,
    /// All of a request that was not sent.
    Another,
}

#[test]
fn an_unreachable_home_agent_is_reported_at_once_by_an_error_that_quotes_the_identification() {
    for (code, expected) in [
        (UnreachableCode::Net, ReplyCode::ForeignHomeNetworkUnreachable),
        (UnreachableCode::Host, ReplyCode::ForeignHomeAgentHostUnreachable),
        (UnreachableCode::Port, ReplyCode::ForeignHomeAgentPortUnreachable),
        (UnreachableCode::Protocol, ReplyCode::ForeignHomeAgentUnreachable),
    ] {
        for (quotes, is_believed) in
            [(Quotes::All, true), (Quotes::UdpHeader, false), (Quotes::Another, false)]
        {
            let mut bench = Bench::new(foreign_config(0));
            let craft = bench.next();
            assert_eq!(bench.code(&craft), None);
            let mut bytes = bench.sent[0].payload.bytes().to_vec();
            if matches!(quotes, Quotes::Another) {
                // The high half of the Identification (section 3.3), which no reply has to repeat.
                bytes[16] ^= 1;
            }
            let mut udp = Vec::new();
            let header = careof_wire::udp::UdpHeader {
                source_port: 434,
                destination_port: 434,
                payload_len: bytes.len() as u16,
            };
            header.emit(FA[0], HA, &bytes, &mut udp);
            let mut quoted = Vec::new();
            let header = Ipv4Header {
                source: FA[0],
                destination: HA,
                protocol: careof_wire::protocol::UDP,
                payload_len: udp.len() as u16,
                ..Ipv4Header::default()
            };
            header.emit(&mut quoted);
            quoted.extend(&udp[..if matches!(quotes, Quotes::UdpHeader) { 8 } else { udp.len() }]);
            let error = DestinationUnreachable { code, next_hop_mtu: 0, quoted };
            let mut message = Vec::new();
            IcmpMessage::DestinationUnreachable(error).emit(&mut message);
            let source = Ipv4Addr::new(203, 0, 113, 250);
            let input =
                Input::Icmp { interface: UPSTREAM, source, destination: FA[0], ttl: 60, message: &message };
            bench.agent.handle_input(bench.now, input);
            bench.collect();
            let told = last_reply(&bench.sent).map(|reply| reply.code);
            assert_eq!(told, is_believed.then_some(expected));
            assert_eq!(bench.agent.pending_requests(), usize::from(!is_believed));
            let disbelieved = bench.agent.counters().dropped(DropReason::IdentificationMismatch);
            assert_eq!(disbelieved, u64::from(!is_believed));
        }
    }
}

#[test]
fn a_visitor_leaves_by_deregistration_or_with_its_lifetime() {
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next();
    assert!(bench.register(&craft).is_some());
    // Another agent's address, deregistered through us: the visitor stays.
    let elsewhere = bench.next().with(|c| {
        c.request.lifetime = Lifetime::ZERO;
        c.request.care_of_address = FA[1];
    });
    assert!(bench.register(&elsewhere).is_some());
    assert_eq!(bench.agent.deliver(HOME), Some(DOWNSTREAM));
    let here = bench.next().with(|c| c.request.lifetime = Lifetime::ZERO);
    assert!(bench.register(&here).is_some());
    assert_eq!(bench.agent.deliver(HOME), None);

    let craft = bench.next();
    assert!(bench.register(&craft).is_some());
    bench.timeout(Duration::from_millis(99_999));
    assert_eq!(bench.agent.visitors().count(), 1);
    bench.timeout(Duration::from_millis(1));
    assert_eq!(bench.agent.visitors().count(), 0);
}

#[test]
fn a_home_agent_neither_takes_nor_ends_nor_moves_the_visit_of_anothers_mobile_node() {
    let stranger = Ipv4Addr::new(198, 51, 100, 66);
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next();
    assert!(bench.register(&craft).is_some());
    let visits = |bench: &Bench| bench.agent.visitor(HOME).map(|visitor| visitor.home_agent);
    let registers = bench.next().with(|c| c.request.home_agent = stranger);
    assert_eq!(bench.code(&registers), Some(ReplyCode::ForeignAdministrativelyProhibited));
    // A deregistration is relayed whatever it says (section 3.7), and answered with a lifetime that was not asked for.
    let leaves = bench.next().with(|c| {
        c.request.home_agent = stranger;
        c.request.care_of_address = HOME;
        c.request.lifetime = Lifetime::ZERO;
    });
    assert_eq!(bench.code(&leaves), None);
    let granting = RegistrationRequest { lifetime: Lifetime::from_secs(600), ..leaves.request.clone() };
    bench.handle(UPSTREAM, &udp(stranger, FA[0], 64, reply(&granting, ReplyCode::Accepted)));
    let granted: Vec<_> = bench
        .told
        .iter()
        .filter_map(|event| match event {
            Event::Registration(event) => Some(event.lifetime),
            _ => None,
        })
        .collect();
    assert_eq!(granted, [Lifetime::ZERO], "nobody is to take its sender for the visitor");
    assert_eq!(visits(&bench), Some(HA));
    // Nor is a home agent's own address a visitor's.
    let claims = bench.next().with(|c| {
        c.request.home_agent = stranger;
        c.request.home_address = HA;
    });
    assert_eq!(bench.code(&claims), Some(ReplyCode::ForeignAdministrativelyProhibited));
}

#[test]
fn requests_from_the_wrong_side_are_not_relayed() {
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next();
    bench.handle(UPSTREAM, &craft.transmit());
    assert!(bench.sent.is_empty());
    assert_eq!(bench.agent.counters().dropped(DropReason::NotForUs), 1);
}

#[test]
fn a_request_to_all_mobility_agents_is_answered_from_our_address() {
    let mut bench = Bench::new(foreign_config(0));
    let craft = bench.next().with(|c| {
        c.destination = ALL_MOBILITY_AGENTS;
        c.ttl = 1;
    });
    assert!(bench.register(&craft).is_some());
    assert_eq!(bench.sent[0].source, FA[0]);
}

#[test]
fn impossible_configurations_are_refused() {
    let make = |config| ForeignAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "x")).map(|_| ());
    let good = foreign_config(0);
    let addressless = ForeignAgentConfig { care_of_addresses: vec![], ..good.clone() };
    assert!(matches!(make(addressless), Err(ConfigError::Missing(_))));
    let linkless = ForeignAgentConfig { links: vec![], ..good.clone() };
    assert!(matches!(make(linkless), Err(ConfigError::Missing(_))));
    let twice = ForeignAgentConfig { links: vec![good.links[0]; 2], ..good.clone() };
    assert_eq!(make(twice), Err(ConfigError::DuplicateInterface(DOWNSTREAM)));
    let nowhere = ForeignAgentConfig { care_of_addresses: vec![Ipv4Addr::LOCALHOST], ..good };
    assert!(matches!(make(nowhere), Err(ConfigError::NotUnicast { .. })));
}
