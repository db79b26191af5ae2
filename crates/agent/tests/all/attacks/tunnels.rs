//! A stranger who writes errors about tunnels, packets into tunnels in another wrapping, and tunnels that lead to each other.

use std::io::Write;
use std::net::Ipv4Addr;

use crate::support::ethernet::*;
use crate::support::registration::{Asked, register};
use crate::support::*;
use careof_agent::{Device, HomeNetwork, HomeSetup, Hooks, HostOptions, Setup, Status};
use careof_lab::{IcmpSocket, Netlink, OutgoingIcmp, Route};
use careof_mobility::v4::{
    DeliveryMethod, HomeAgentConfig, InterfaceId, Notice, PolicyTable, Prefix, ServedMobileNode,
};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::RequestFlags;
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel};

const GRE: Encapsulation = Encapsulation::Gre { key: None, sequence: None };

fn count(status: &Status, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

/// A mobile node that is away, tunnels both ways.
fn away(world: &World) -> (Running, Running) {
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    (home, mobile)
}

/// An error, written by somebody who has seen nothing, about a datagram from the correspondent to `home_address`, in the tunnel
/// to the care-of address.
fn made_up(code: UnreachableCode, next_hop_mtu: u16, home_address: Ipv4Addr, identification: u16) -> Vec<u8> {
    let inner = Ipv4Header {
        source: CORRESPONDENT,
        destination: home_address,
        protocol: protocol::UDP,
        dont_fragment: true,
        payload_len: 1400,
        ..Ipv4Header::default()
    };
    let outer = Ipv4Header {
        source: HA,
        destination: WLAN,
        protocol: protocol::IP_IN_IP,
        identification,
        payload_len: 1420,
        ..inner
    };
    let mut quoted = Vec::new();
    outer.emit(&mut quoted);
    inner.emit(&mut quoted);
    quoted.extend([0x1b, 0x58, 0, 9, 5, 0x78, 0, 0]);
    let mut bytes = Vec::new();
    IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, next_hop_mtu, quoted })
        .emit(&mut bytes);
    bytes
}

fn send(socket: &IcmpSocket, message: &[u8]) {
    let (source, destination) = (CORRESPONDENT, HA);
    socket.send(&OutgoingIcmp { interface: None, source, destination, ttl: 64, message }).unwrap();
}

#[test]
fn a_made_up_error_brings_a_path_down_to_the_floor_only_and_nobody_is_told_of_less() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (home, _mobile) = away(&world);
    let errors = world.correspondent.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    let (sender, receiver) = (udp(&world.correspondent, CORRESPONDENT, 0), udp(&world.mobile, HOME, 7000));
    let mtu_after = |what: &str, before: Option<u16>| {
        let status = home.wait_until(what, |status| {
            // It is looked for when there is something to send.
            sender.send_to(b"hello", (HOME, 9)).unwrap();
            status.tunnels.first().is_some_and(|tunnel| tunnel.mtu.is_some() && tunnel.mtu != before)
        });
        status.tunnels[0].mtu
    };
    let mut mtu = mtu_after("looked at", None);
    for (told, expected) in [(1400, 1380), (552, 1260)] {
        send(&errors, &made_up(UnreachableCode::FragmentationNeeded, told, HOME, 0));
        mtu = mtu_after("told", mtu);
        assert_eq!(mtu, Some(expected), "after {told}");
    }
    // Nor by one about what is shorter, or by more of them.
    for told in [68, 1] {
        send(&errors, &made_up(UnreachableCode::FragmentationNeeded, told, HOME, 77));
    }
    home.wait_until("all seen", |status| count(status, "errors-unproven") == 4);
    // What fits goes through, whole at the other end, without anybody being told.
    let sent = pattern(1200);
    sender.send_to(&sent, (HOME, 7000)).unwrap();
    let mut buffer = [0; 2000];
    let len = receiver.recv(&mut buffer).unwrap();
    assert!(buffer[..len] == sent);
    assert_eq!(home.status().tunnels[0].mtu, Some(1260));
}

#[test]
fn an_error_about_what_was_never_sent_is_not_passed_on_whatever_address_is_guessed() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (home, _mobile) = away(&world);
    let errors = world.correspondent.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    for (identification, last) in (1..=50).zip(1..) {
        send(&errors, &made_up(UnreachableCode::Host, 0, Ipv4Addr::new(10, 0, 0, last), identification));
        send(&errors, &made_up(UnreachableCode::Host, 0, HOME, identification));
    }
    let seen = |status: &Status| {
        count(status, "errors-unproven")
            + count(status, "packets-not-ours")
            + count(status, "errors-suppressed")
    };
    home.wait_until("all seen", |status| seen(status) >= 100);
    sleep(SILENCE);
    let mut buffer = [0; 1000];
    assert_eq!(errors.receive(&mut buffer).unwrap(), None);
    assert_eq!(home.status().tunnels.len(), 1);
}

/// `datagram` in a tunnel.
fn wrapped(datagram: &[u8], encapsulation: Encapsulation, entry: Ipv4Addr, exit: Ipv4Addr) -> Vec<u8> {
    let tunnel = Tunnel { encapsulation, entry, exit, ttl: 64 };
    tunnel.encapsulate(datagram, Origin::Local, 1).unwrap()
}

/// Sends a datagram to `receiver` in every wrapping; which of them arrive.
fn arriving(
    forger: &Forger,
    receiver: &Udp,
    inner: impl Fn(&[u8]) -> Vec<u8>,
    ends: (Ipv4Addr, Ipv4Addr),
) -> Vec<u8> {
    for (name, encapsulation) in [(1, GRE), (2, Encapsulation::Minimal), (3, Encapsulation::IpInIp)] {
        forger.send(&wrapped(&inner(&[name]), encapsulation, ends.0, ends.1));
    }
    let mut arrived = Vec::new();
    let mut buffer = [0; 10];
    // The last one is what was agreed on, and takes the same way; but the sockets of the others may be read later.
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    while let Ok(1) = receiver.recv(&mut buffer) {
        arrived.push(buffer[0]);
        receiver.set_read_timeout(Some(SILENCE)).unwrap();
    }
    arrived
}

#[test]
fn a_tunnel_takes_no_other_wrapping_than_was_agreed_on() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (home, mobile) = away(&world);
    let receiver = udp(&world.correspondent, CORRESPONDENT, 7001);
    let back = |payload: &[u8]| udp_datagram((HOME, 1), (CORRESPONDENT, 7001), payload);
    assert_eq!(arriving(&Forger::at(&world.mobile, WLAN), &receiver, back, (WLAN, HA)), [3]);
    home.wait_until("counted", |status| count(status, "packets-other-encapsulation") == 2);
    let receiver = udp(&world.mobile, HOME, 7000);
    let forth = |payload: &[u8]| udp_datagram((CORRESPONDENT, 1), (HOME, 7000), payload);
    assert_eq!(arriving(&Forger::at(&world.home, HA), &receiver, forth, (HA, WLAN)), [3]);
    mobile.wait_until("counted", |status| count(status, "packets-other-encapsulation") == 2);
}

#[test]
fn a_visitor_gets_no_other_wrapping_than_was_agreed_on() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let _home = world.home_agent();
    let foreign = world.foreign_agent(world.foreign_setup());
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let receiver = udp(&world.mobile, HOME, 7000);
    let forth = |payload: &[u8]| udp_datagram((NEIGHBOUR, 1), (HOME, 7000), payload);
    assert_eq!(arriving(&Forger::at(&world.home, HA), &receiver, forth, (HA, FA)), [3]);
    foreign.wait_until("counted", |status| count(status, "packets-other-encapsulation") == 2);
}

/// The mobile node of the other home agent, which is on the correspondent's host.
const OTHER: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 5);
const OTHER_HA: Ipv4Addr = CORRESPONDENT;

/// Packets put into a home agent's tunnels.
fn packets_out(status: &Status) -> u64 {
    status.tunnels.iter().map(|tunnel| tunnel.packets_out).sum()
}

#[test]
fn two_home_agents_whose_tunnels_lead_to_each_other_wrap_a_datagram_once_each() {
    let Some(realm) = realm_or_skip() else { return };
    for flags in [RequestFlags::default(), RequestFlags::MINIMAL_ENCAPSULATION, RequestFlags::GRE] {
        let world = World::new(realm);
        let routed = world.home.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("up0")?;
            netlink.set_route(&Route::to(OTHER.into(), 24, index))
        });
        routed.unwrap().unwrap();
        let home = world.home_agent(home_setup(), Hooks::default());
        let other = HomeSetup {
            config: HomeAgentConfig {
                mobile_nodes: vec![ServedMobileNode::new(OTHER, security())],
                advertisements: None,
                ..HomeAgentConfig::new(OTHER_HA, Prefix::new(OTHER, 24), InterfaceId(0))
            },
            devices: vec![Device::new(0, "up0")],
            home_network: HomeNetwork::Routed,
            host: HostOptions::default(),
            assist: None,
            multipath: careof_agent::MultipathSetup::default(),
        };
        let other = Running::open(&world.correspondent, Setup::Home(other), world.clock, Hooks::default());
        let socket = udp(&world.mobile, WLAN, 0);
        assert_eq!(register(&socket, Asked { flags, ..Asked::new(HOME, OTHER) }), 0);
        let elsewhere = Asked { home_agent: OTHER_HA, flags, ..Asked::new(OTHER, HOME) };
        assert_eq!(register(&socket, elsewhere), 0);
        let forger = Forger::at(&world.mobile, WLAN);
        for n in 1..=5 {
            // May be fragmented: it would grow to 64 KiB.
            forger.send(&udp_datagram((WLAN, n), (HOME, 9), b"round and round"));
        }
        home.wait_until("stopped", |status| count(status, "packets-looping") >= 5);
        sleep(SILENCE);
        let (home, other) = (home.status(), other.status());
        assert_eq!((packets_out(&home), packets_out(&other)), (5, 5), "{flags:?}");
        assert_eq!(count(&home, "packets-looping"), 5);
    }
}

#[test]
fn what_was_wrapped_over_and_over_by_its_sender_is_not_wrapped_again() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (home, _mobile) = away(&world);
    let forger = Forger::at(&world.correspondent, CORRESPONDENT);
    let before = packets_out(&home.status());
    // Tunnels of others, four of which may be around a datagram.
    for depth in [4, 5_u8] {
        let mut bytes = udp_datagram((CORRESPONDENT, 1), (HOME, 9), b"deep");
        for n in 0..depth {
            let entry = Ipv4Addr::new(203, 0, 113, n + 1);
            bytes = wrapped(&bytes, Encapsulation::IpInIp, entry, HOME);
        }
        forger.send(&bytes);
    }
    let status = home.wait_until("dropped", |status| count(status, "packets-looping") == 1);
    let status = if packets_out(&status) > before { status } else { home.status() };
    assert_eq!(packets_out(&status) - before, 1);
}

#[test]
fn what_a_care_of_address_sends_back_wrapped_for_its_mobile_node_is_not_wrapped_again() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    assert_eq!(register(&udp(&world.mobile, WLAN, 0), Asked::new(HOME, WLAN)), 0);
    let inner = |port| udp_datagram((CORRESPONDENT, port), (HOME, 9), b"back again");
    let before = packets_out(&home.status());
    let (there, elsewhere) =
        (Forger::at(&world.mobile, WLAN), Forger::at(&world.correspondent, CORRESPONDENT));
    for encapsulation in [Encapsulation::IpInIp, Encapsulation::Minimal, GRE] {
        there.send(&wrapped(&inner(1), encapsulation, WLAN, HOME));
    }
    home.wait_until("dropped", |status| count(status, "packets-looping") == 3);
    // Somebody else's tunnel to the mobile node is one like any other.
    elsewhere.send(&wrapped(&inner(2), Encapsulation::IpInIp, CORRESPONDENT, HOME));
    home.wait_until("wrapped", |status| packets_out(status) > before);
    sleep(SILENCE);
    let status = home.status();
    assert_eq!((packets_out(&status) - before, count(&status, "packets-looping")), (1, 3));
}

#[test]
fn a_path_below_the_floor_whose_errors_prove_nothing_is_no_black_hole() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (_router, far) = crate::path_mtu::behind_a_router(&world, realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.devices.push(Device::new(2, "far0"));
    setup.config.interfaces.push(interface(2));
    // Its Identification is that of the datagram inside.
    setup.config.encapsulation = careof_mobility::v4::EncapsulationChoice::Minimal;
    let mobile = world.mobile_node(setup);
    // The connection begins while the path is wide.
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let listener = world.mobile.run(|| Listener::bind((HOME, 81))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = connect_home(&world, 81);
    let sent = pattern(600_000);
    client.write_all(&sent[..300_000]).unwrap();
    mobile.with(|node| node.switch_to("far0", Notice::None)).unwrap();
    mobile.wait_registered("far0");
    client.write_all(&sent[300_000..]).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent);
    let status = home.status();
    let mtu = status.tunnels.iter().find(|tunnel| tunnel.there == far).and_then(|tunnel| tunnel.mtu);
    assert_eq!(mtu, Some(1268), "the floor less the header; {status:#?}");
}
