//! Who fills a foreign agent's lists, and what is left to the others.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::icmp::{AgentFlags, IcmpMessage};
use careof_wire::mip4::{AuthenticationKind, Identification, Lifetime, ReplyCode, Spi};

use super::craft::*;
use super::world::*;

const ROGUE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 66);
/// The places of an agent in this file.
const ROOM: usize = 200;

struct Crowd {
    agent: ForeignAgent,
    now: Instant,
    identification: u64,
}

/// How somebody asks to visit.
#[derive(Clone, Copy)]
struct Asks {
    node: u32,
    home_agent: Ipv4Addr,
    station: Option<[u8; 6]>,
    lifetime: u16,
}

fn node(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a14_0000 + n)
}

const fn mac(n: u32) -> Option<[u8; 6]> {
    let [a, b, c, d] = n.to_be_bytes();
    Some([2, 0, a, b, c, d])
}

const fn asks(node: u32, home_agent: Ipv4Addr, station: Option<[u8; 6]>) -> Asks {
    Asks { node, home_agent, station, lifetime: 600 }
}

fn agents_security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(999), *b"between agents!!").unwrap()
}

impl Crowd {
    fn new(change: impl FnOnce(&mut ForeignAgentConfig)) -> Self {
        let mut config = foreign_config(0);
        config.max_visitors = ROOM;
        config.max_pending = ROOM;
        change(&mut config);
        let agent = ForeignAgent::new(Instant::ZERO, config, RandomStream::new(1, 0, "foreign")).unwrap();
        Self { agent, now: Instant::from_secs(100), identification: 0 }
    }

    fn take(&mut self, interface: InterfaceId, station: Option<[u8; 6]>, transmit: &Transmit) -> Option<u8> {
        self.agent.handle_input(
            self.now,
            Input::Udp {
                interface,
                source: transmit.source,
                source_port: 434,
                destination: transmit.destination,
                destination_port: 434,
                ttl: transmit.ttl,
                link_address: station.map(LinkAddress),
                payload: transmit.payload.bytes(),
            },
        );
        let sent: Vec<_> = std::iter::from_fn(|| self.agent.poll_transmit(self.now)).collect();
        while self.agent.poll_event().is_some() {}
        // The last of them is the answer to this one, if there is an answer.
        last_reply(&sent).map(|reply| reply.code.number())
    }

    fn craft(&mut self, asks: Asks) -> Craft {
        self.identification += 1;
        let identification = Identification(self.identification);
        Craft::to_foreign_agent(self.now).with(|c| {
            c.request.home_address = node(asks.node);
            c.request.home_agent = asks.home_agent;
            c.request.lifetime = Lifetime::from_secs(asks.lifetime);
            c.request.identification = identification;
            c.source = node(asks.node);
        })
    }

    /// Asks, and is accepted by whoever is named as home agent; the code that the mobile node sees.
    fn visit(&mut self, asks: Asks) -> u8 {
        // Slowly enough that every denial is within the ration of its network.
        self.now += Duration::from_millis(60);
        let craft = self.craft(asks);
        if let Some(code) = self.take(DOWNSTREAM, asks.station, &craft.transmit()) {
            return code;
        }
        let mut answer = reply(&craft.request, ReplyCode::Accepted);
        if asks.home_agent == HA {
            sign(&mut answer, AuthenticationKind::ForeignHome, &agents_security());
        }
        self.take(UPSTREAM, None, &udp(asks.home_agent, FA[0], 64, answer)).unwrap()
    }

    fn is_here(&self, n: u32) -> bool {
        self.agent.visitor(node(n)).is_some()
    }

    fn count(&self) -> usize {
        self.agent.visitors().count()
    }

    fn is_busy(&mut self) -> bool {
        loop {
            let (at, _) = self.agent.next_timeout().unwrap();
            self.now = self.now.max(at);
            self.agent.handle_timeout(self.now);
            while self.agent.poll_event().is_some() {}
            let sent: Vec<_> = std::iter::from_fn(|| self.agent.poll_transmit(self.now)).collect();
            for transmit in &sent {
                let TransmitPayload::Icmp { bytes } = &transmit.payload else { continue };
                let IcmpMessage::RouterAdvertisement(message) = IcmpMessage::parse(bytes).unwrap() else {
                    continue;
                };
                return message.mobility_agent().unwrap().flags.contains(AgentFlags::BUSY);
            }
        }
    }
}

fn honest() -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 77)
}

#[test]
fn a_station_cannot_fill_the_visitor_list_however_many_it_says_it_is() {
    for listed in [None, Some(vec![Prefix::host(ROGUE), Prefix::host(honest())])] {
        let mut crowd = Crowd::new(|config| config.admitted_home_agents = listed);
        let codes: Vec<u8> = (0..210).map(|n| crowd.visit(asks(n, ROGUE, mac(66)))).collect();
        let accepted = codes.iter().filter(|code| **code == 0).count();
        assert_eq!((accepted, crowd.count()), (ROOM / 4, ROOM / 4));
        assert!(codes.iter().all(|code| [0, 66].contains(code)));
        let refused = crowd.agent.counters().dropped(DropReason::OverShare);
        assert_eq!((refused, crowd.agent.counters().denied(66)), (160, 160));
        // Those who are here may stay, and others come.
        assert_eq!(crowd.visit(asks(0, ROGUE, mac(66))), 0);
        for n in 1_000..1_100 {
            assert_eq!(crowd.visit(asks(n, honest(), mac(n))), 0);
        }
        assert!(!crowd.is_busy());
        // And it has its share again when some have left.
        assert_eq!(crowd.visit(Asks { lifetime: 0, ..asks(3, ROGUE, mac(66)) }), 0);
        crowd.agent.drop_visitor(crowd.now, node(3));
        assert_eq!(crowd.visit(asks(500, ROGUE, mac(66))), 0);
        assert_eq!(crowd.visit(asks(501, ROGUE, mac(66))), 66);
    }
}

#[test]
fn frames_that_nobody_saw_are_one_station_and_links_without_addresses_have_none() {
    let mut crowd = Crowd::new(|_| ());
    let unseen = Some(LinkAddress::UNSEEN.0);
    assert_eq!((0..100).filter(|n| crowd.visit(asks(*n, ROGUE, unseen)) == 0).count(), ROOM / 4);
    let mut crowd = Crowd::new(|_| ());
    assert_eq!((0..210).filter(|n| crowd.visit(asks(*n, ROGUE, None)) == 0).count(), ROOM);
}

#[test]
fn a_home_agent_that_nobody_knows_leaves_room_for_the_mobile_nodes_of_others() {
    let mut crowd = Crowd::new(|_| ());
    for n in 0..20 {
        assert_eq!(crowd.visit(asks(n, honest(), mac(n))), 0);
    }
    // From link addresses that are all different.
    for n in 1_000..1_500 {
        crowd.visit(asks(n, ROGUE, mac(n)));
    }
    assert_eq!(crowd.count(), ROOM);
    assert!(!crowd.is_busy(), "another home agent's find room");
    assert!((0..20).all(|n| crowd.is_here(n)), "who was here stays");
    for n in 20..90 {
        assert_eq!(crowd.visit(asks(n, honest(), mac(n))), 0);
        assert_eq!(crowd.visit(asks(2_000 + n, ROGUE, mac(n + 2_000))), 66);
    }
    assert!((0..90).all(|n| crowd.is_here(n)));
    // The rogue's first ones are here still: as many as its share is.
    assert!((1_000..1_100).all(|n| crowd.is_here(n)));
    assert_eq!(crowd.count(), ROOM);
}

#[test]
fn who_proves_who_he_is_finds_room_in_a_list_full_of_others() {
    for keyed_node in [false, true] {
        let mut crowd = Crowd::new(|config| {
            let peer = |address| PeerSecurity { address, security: agents_security() };
            config.home_agents = vec![peer(HA)];
            if keyed_node {
                config.mobile_nodes = vec![peer(node(1))];
            }
        });
        for n in 0..20 {
            let code = crowd.visit(asks(100 + n, HA, mac(n)));
            assert_eq!(code, 0);
        }
        // Many home agents, many link addresses.
        for n in 1_000..3_000 {
            let rogue = Ipv4Addr::from_bits(0xc612_0000 + n);
            crowd.visit(asks(n, rogue, mac(n)));
        }
        assert_eq!(crowd.count(), ROOM);
        assert!((100..120).all(|n| crowd.is_here(n)));
        assert!(!crowd.is_busy());
        let honest_without = crowd.visit(asks(5_000, honest(), mac(5_000)));
        assert_eq!(honest_without, 66, "nothing tells it from the crowd");
        for n in 0..180 {
            assert_eq!(crowd.visit(asks(6_000 + n, HA, mac(7))), 0, "its station has no share");
        }
        assert_eq!((crowd.count(), crowd.is_busy()), (ROOM, true));
        assert_eq!(crowd.visit(asks(7_000, HA, mac(8))), 66);
        assert!((6_000..6_180).all(|n| crowd.is_here(n)));
    }
}

#[test]
fn requests_that_nobody_answers_leave_the_way_open_for_others() {
    for spoofed in [false, true] {
        let mut crowd = Crowd::new(|_| ());
        let mut seen = 0;
        let mut tries = 0;
        for n in 0..20_000u32 {
            let station = if spoofed { mac(n) } else { mac(66) };
            let craft = crowd.craft(asks(10_000 + n, ROGUE, station));
            crowd.take(DOWNSTREAM, station, &craft.transmit());
            assert!(crowd.agent.pending_requests() <= ROOM);
            if n % 100 == 99 {
                // A newcomer whose home agent answers after so many more.
                tries += 1;
                let craft = crowd.craft(asks(n / 100, honest(), mac(1 << 20 | n)));
                // Where somebody has to make room for it, he is told.
                let told = crowd.take(DOWNSTREAM, mac(1 << 20 | n), &craft.transmit());
                assert!(told.is_none_or(|code| code == 66));
                for m in 0..50 {
                    let station = if spoofed { mac(1 << 24 | m) } else { mac(66) };
                    let craft = crowd.craft(asks(100_000 + n + m, ROGUE, station));
                    crowd.take(DOWNSTREAM, station, &craft.transmit());
                }
                let answer = reply(&craft.request, ReplyCode::Accepted);
                crowd.take(UPSTREAM, None, &udp(honest(), FA[0], 64, answer));
                seen += usize::from(crowd.is_here(n / 100));
                crowd.agent.drop_visitor(crowd.now, node(n / 100));
            }
            crowd.now += Duration::from_micros(50);
        }
        assert!(seen * 2 > tries, "{seen} of {tries} found room");
        if !spoofed {
            assert_eq!(seen, tries);
            assert!(crowd.agent.counters().dropped(DropReason::OverShare) > 19_000);
        }
        // The flood ends, and with it what it left.
        crowd.now += Duration::from_secs(8);
        crowd.agent.handle_timeout(crowd.now);
        assert_eq!(crowd.agent.pending_requests(), 0);
    }
}
