//! A stranger on a visitors' link, with a home agent of his own that accepts whatever he asks for.

use std::net::Ipv4Addr;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::ethernet::*;
use crate::support::*;
use careof_lab::{Host, InterfaceConfig};
use careof_mobility::v4::{AdvertiserConfig, ForeignLink, InterfaceId, Notice, PeerSecurity, Prefix};
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Identification, Lifetime, Message, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags, Spi, append_authentication,
};

/// The stranger's address on the link, and the one that claims to be a home agent.
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 66);
const ACCOMPLICE: Ipv4Addr = NEIGHBOUR;
const LINK: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
const KEY: &[u8] = b"nobody checks it";

fn signed(message: Message) -> Vec<u8> {
    let mut bytes = message.emit();
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(999), Algorithm::HmacMd5, KEY);
    bytes
}

/// A second link with visitors, and the stranger on it.
fn stranger(world: &Ethernet) -> Host {
    let Some(realm) = realm_or_skip() else { unreachable!("there is a world") };
    let host = realm.host("stranger").unwrap();
    let visit = InterfaceConfig::new("visit1", LINK.into(), 24);
    let link = InterfaceConfig::new("link0", STRANGER.into(), 24);
    world.foreign.connect(&visit, &host, &link).unwrap();
    host
}

fn on_both_links(world: &Ethernet) -> careof_agent::ForeignSetup {
    let mut setup = world.foreign_setup();
    let advertisements = AdvertiserConfig::every(Duration::from_secs(1));
    setup.config.links.push(ForeignLink { interface: InterfaceId(2), address: LINK, advertisements });
    setup.devices.push(careof_agent::Device::new(2, "visit1"));
    setup
}

/// Accepts so many registrations, whoever asks.
fn accomplice(world: &Ethernet, count: usize) -> JoinHandle<()> {
    let socket = udp(&world.correspondent, ACCOMPLICE, 434);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    start(move || {
        let mut buffer = [0; 2000];
        for _ in 0..count {
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            let Message::Request(request) = Message::parse(&buffer[..len]).unwrap() else { panic!() };
            let reply = RegistrationReply {
                code: ReplyCode::Accepted,
                lifetime: request.lifetime,
                home_address: request.home_address,
                home_agent: ACCOMPLICE,
                identification: request.identification,
                extensions: Vec::new(),
            };
            socket.send_to(&signed(Message::Reply(reply)), from).unwrap();
        }
    })
}

/// Asks to visit with this home address, or to leave.
fn ask(stranger: &Host, home_address: Ipv4Addr, lifetime: Lifetime, identification: u64) {
    let request = RegistrationRequest {
        flags: RequestFlags::default(),
        lifetime,
        home_address,
        home_agent: ACCOMPLICE,
        care_of_address: if lifetime.is_zero() { home_address } else { FA },
        identification: Identification(identification),
        extensions: Vec::new(),
    };
    udp(stranger, STRANGER, 0).send_to(&signed(Message::Request(request)), (LINK, 434)).unwrap();
}

const A_WHILE: Lifetime = Lifetime::from_secs(600);

/// Waits until the foreign agent has answered so many requests this way.
fn answered(foreign: &Running, how: &str, count: u64) {
    foreign.wait_until(how, |status| status.counters.get(how).is_some_and(|counted| *counted == count));
}

/// By which way the foreign agent's own packets go there.
fn way(world: &Ethernet, to: Ipv4Addr) -> String {
    let asked = world.foreign.run(move || {
        let mut command = Command::new("ip");
        command.args(["route", "get", &to.to_string()]).output()
    });
    String::from_utf8(asked.unwrap().unwrap().stdout).unwrap()
}

#[test]
fn no_address_that_the_router_needs_becomes_a_visitors() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let stranger = stranger(&world);
    let _home = world.home_agent();
    let foreign = world.foreign_agent(on_both_links(&world));
    let gateway = Ipv4Addr::new(172, 16, 0, 1);
    let elsewhere = Ipv4Addr::new(9, 9, 9, 9);
    let helper = accomplice(&world, 1);
    let everything = [FA, gateway, Ipv4Addr::new(10, 7, 0, 9), Ipv4Addr::new(0, 0, 0, 1), HA, elsewhere];
    let before = everything.map(|to| way(&world, to));
    let refused = [FA, gateway, Ipv4Addr::new(10, 7, 0, 9), ACCOMPLICE];
    for (count, own) in (1..).zip(refused) {
        ask(&stranger, own, A_WHILE, count);
        answered(&foreign, "denied-65", count);
    }
    ask(&stranger, Ipv4Addr::new(0, 0, 0, 1), A_WHILE, 5);
    answered(&foreign, "denied-70", 1);
    assert!(foreign.status().visitors.is_empty());
    // Nothing says that this is not his: but where others send to it, it stays.
    ask(&stranger, elsewhere, A_WHILE, 6);
    foreign.wait_until("visited", |status| status.visitors.len() == 1);
    assert_eq!(everything.map(|to| way(&world, to)), before);
    helper.join().unwrap();
}

#[test]
fn a_present_visitor_is_replaced_or_removed_by_no_other_home_agent() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let stranger = stranger(&world);
    let _home = world.home_agent();
    let foreign = world.foreign_agent(on_both_links(&world));
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let visits = || {
        let visitors = foreign.status().visitors;
        visitors.iter().map(|visitor| (visitor.home_address, visitor.home_agent)).collect::<Vec<_>>()
    };
    assert_eq!(visits(), [(HOME, HA)]);
    ask(&stranger, HOME, A_WHILE, 1);
    answered(&foreign, "denied-65", 1);
    assert_eq!(visits(), [(HOME, HA)]);
    // A deregistration is relayed whatever it says (RFC 5944 section 3.7), and accepted.
    let helper = accomplice(&world, 1);
    ask(&stranger, HOME, Lifetime::ZERO, 2);
    helper.join().unwrap();
    answered(&foreign, "registrations-accepted", 2);
    assert_eq!(visits(), [(HOME, HA)]);
}

#[test]
fn only_home_agents_that_are_listed_are_asked() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let stranger = stranger(&world);
    let mut setup = on_both_links(&world);
    setup.config.admitted_home_agents = Some(vec![Prefix::host(HA)]);
    setup.config.home_agents =
        vec![PeerSecurity { address: Ipv4Addr::new(10, 0, 0, 77), security: security() }];
    let foreign = world.foreign_agent(setup);
    ask(&stranger, Ipv4Addr::new(9, 9, 9, 9), A_WHILE, 1);
    answered(&foreign, "denied-65", 1);
    assert!(foreign.status().visitors.is_empty());
}

#[test]
fn a_stranger_with_a_home_agent_of_his_own_does_not_fill_the_visitor_list() {
    const ROOM: usize = 200;
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let stranger = stranger(&world);
    let _home = world.home_agent();
    let mut setup = on_both_links(&world);
    setup.config.max_visitors = ROOM;
    let foreign = world.foreign_agent(setup);
    let helper = accomplice(&world, ROOM / 4);
    for n in 0..210u32 {
        let visitor = Ipv4Addr::from_bits(0x0a14_0000 + n);
        ask(&stranger, visitor, A_WHILE, 1 + u64::from(n));
        // Each has its answer before the next one asks: none is lost on the way.
        let has_answer = |status: &careof_agent::Status| {
            let counted = |name: &str| status.counters.get(name).copied().unwrap_or(0);
            // A denial beyond the ration is counted instead of sent.
            let denied = counted("denied-66") + counted("denials-suppressed");
            counted("registrations-accepted") + denied > u64::from(n)
        };
        foreign.wait_until("an answer", has_answer);
    }
    helper.join().unwrap();
    let status = foreign.status();
    assert_eq!(status.visitors.len(), ROOM / 4);
    let counted = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let denied = counted("denied-66") + counted("denials-suppressed");
    assert_eq!((denied, counted("dropped-over-share")), (160, 160));
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    assert_eq!(foreign.status().visitors.len(), ROOM / 4 + 1);
}
