//! What agents must neither carry, nor believe, nor pass on; and what must not get lost with it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::ethernet::*;
use crate::support::registration::{Asked, register};
use crate::support::*;
use careof_agent::{Device, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup, Setup, Status};
use careof_lab::{Host, IcmpSocket, InterfaceConfig, Netlink, OutgoingIcmp};
use careof_mobility::v4::{
    AdvertiserConfig, CareOfChoice, DeliveryMethod, ForeignLink, HomeAgentConfig, InterfaceId,
    MobileNodeConfig, Notice, PolicyTable, ServedMobileNode,
};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;

/// A second mobile node.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);

fn serving_two(setup: HomeSetup) -> HomeSetup {
    let mobile_nodes = [HOME, OTHER].map(|node| ServedMobileNode::new(node, security())).to_vec();
    HomeSetup { config: HomeAgentConfig { mobile_nodes, ..setup.config }, ..setup }
}

fn packets_out(status: &Status) -> u64 {
    status.tunnels.iter().map(|tunnel| tunnel.packets_out).sum()
}

#[test]
fn visitors_of_one_foreign_agent_reach_each_other_by_their_tunnels() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let other = realm.host("other").unwrap();
    let link: Ipv4Addr = [10, 8, 0, 1].into();
    let bare =
        |name| InterfaceConfig { addresses: Vec::new(), ..InterfaceConfig::new(name, link.into(), 24) };
    let visit = InterfaceConfig::new("visit1", link.into(), 24);
    world.foreign.connect(&visit, &other, &bare("wlan0")).unwrap();

    let setup = HomeSetup {
        config: HomeAgentConfig::new(HA, home_network(), InterfaceId(0)),
        devices: vec![Device::new(0, "br0")],
        home_network: HomeNetwork::Link,
        host: HostOptions::default(),
        assist: None,
        multipath: careof_agent::MultipathSetup::default(),
    };
    let home = Setup::Home(serving_two(setup));
    let home = Running::open(&world.home, home, world.clock, Hooks::default());
    let mut setup = world.foreign_setup();
    let advertisements = AdvertiserConfig::every(Duration::from_secs(1));
    setup.config.links.push(ForeignLink { interface: InterfaceId(2), address: link, advertisements });
    setup.devices.push(Device::new(2, "visit1"));
    let foreign = world.foreign_agent(setup);
    let visitor = |host: &Host, home_address| {
        let mut abroad = interface(1);
        abroad.care_of = CareOfChoice::ForeignAgent;
        let mut config = MobileNodeConfig::new(home_address, home_network(), HA, security(), vec![abroad]);
        config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
        let devices = vec![Device::new(1, "wlan0")];
        let setup = Setup::Mobile(MobileSetup {
            config,
            devices,
            host: HostOptions::default(),
            assist: None,
            multipath: careof_agent::MultipathSetup::default(),
        });
        let node = Running::open(host, setup, world.clock, Hooks::default());
        node.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        node.wait_registered("wlan0");
        node
    };
    let (_one, _two) = (visitor(&world.mobile, HOME), visitor(&other, OTHER));
    let (sender, receiver) = (udp(&other, OTHER, 0), udp(&world.mobile, HOME, 7000));
    let before = packets_out(&home.status());
    sender.send_to(b"hello", (HOME, 7000)).unwrap();
    let mut buffer = [0; 100];
    let arrived = receiver.recv(&mut buffer);
    assert!(arrived.is_ok(), "{:#?}", foreign.status());
    assert_eq!(packets_out(&home.status()) - before, 1, "once through the home agent");
}

#[test]
fn care_of_addresses_that_are_home_addresses_make_no_circle() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(serving_two(home_setup()), Hooks::default());
    let socket = udp(&world.correspondent, CORRESPONDENT, 0);
    assert_eq!(register(&socket, Asked::new(HOME, OTHER)), 129, "administratively prohibited");
    assert_eq!(register(&socket, Asked::new(OTHER, HOME)), 129);
    socket.send_to(b"hello", (HOME, 9)).unwrap();
    sleep(Duration::from_millis(100));
    let status = home.status();
    assert_eq!((packets_out(&status), status.bindings.len()), (0, 0));
}

/// An error about a datagram in a tunnel from the home agent to `exit`, of which `inside` is quoted.
fn forged(exit: Ipv4Addr, code: UnreachableCode, next_hop_mtu: u16, inside: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::new();
    Ipv4Header {
        source: HA,
        destination: exit,
        protocol: protocol::IP_IN_IP,
        dont_fragment: true,
        payload_len: 1400,
        ..Ipv4Header::default()
    }
    .emit(&mut quoted);
    quoted.extend(inside);
    let message = DestinationUnreachable { code, next_hop_mtu, quoted };
    let mut bytes = Vec::new();
    IcmpMessage::DestinationUnreachable(message).emit(&mut bytes);
    bytes
}

/// A datagram from the correspondent.
fn datagram_to(destination: Ipv4Addr) -> Vec<u8> {
    let (source, protocol) = (CORRESPONDENT, protocol::UDP);
    let mut bytes = Vec::new();
    Ipv4Header { source, destination, protocol, payload_len: 1380, ..Ipv4Header::default() }.emit(&mut bytes);
    bytes.extend([7; 8]);
    bytes
}

fn send(socket: &IcmpSocket, message: &[u8]) {
    let (source, destination) = (CORRESPONDENT, HA);
    socket.send(&OutgoingIcmp { interface: None, source, destination, ttl: 64, message }).unwrap();
}

#[test]
fn an_error_about_a_datagram_that_was_never_tunnelled_reaches_nobody() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let socket = world.correspondent.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    let elsewhere = Ipv4Addr::new(203, 0, 113, 9);
    // No such tunnel, and no such datagram in this one.
    for (exit, to) in [(elsewhere, HOME), (WLAN, OTHER)] {
        send(&socket, &forged(exit, UnreachableCode::Host, 0, &datagram_to(to)));
    }
    home.wait_until("looked at both", |status| status.counters.get("packets-not-ours") == Some(&2));
    sleep(Duration::from_millis(200));
    let mut buffer = [0; 1000];
    assert_eq!(socket.receive(&mut buffer).unwrap(), None);
    // One that may be true, as far as it quotes, is passed on, with no less than the floor.
    send(&socket, &forged(WLAN, UnreachableCode::FragmentationNeeded, 60, &datagram_to(HOME)));
    let clock = careof_lab::Clock::start();
    let told = loop {
        if let Some(error) = socket.receive(&mut buffer).unwrap() {
            break (error.source, IcmpMessage::parse(error.message).unwrap());
        }
        assert!(clock.now().since_start() < PATIENCE);
        sleep(Duration::from_millis(5));
    };
    let (HA, IcmpMessage::DestinationUnreachable(told)) = told else { panic!("{told:?}") };
    assert_eq!((told.code, told.next_hop_mtu), (UnreachableCode::FragmentationNeeded, 1260));
}

#[test]
fn a_router_that_quotes_little_is_believed_about_the_mtu() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let sender = udp(&world.correspondent, CORRESPONDENT, 0);
    let mtu_is = |mtu, sender: &Udp| {
        home.wait_until("of this MTU", |status| {
            // It is looked for when there is something to send.
            sender.send_to(b"hello", (HOME, 9)).unwrap();
            status.tunnels.first().is_some_and(|tunnel| tunnel.mtu == Some(mtu))
        })
    };
    mtu_is(1480, &sender);
    let socket = world.correspondent.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    send(&socket, &forged(WLAN, UnreachableCode::FragmentationNeeded, 1300, &[0x45, 0, 5, 0, 0, 0, 0, 0]));
    mtu_is(1280, &sender);
}

#[test]
fn an_address_that_goes_and_comes_back_at_once_takes_no_routes_with_it() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let own_routes = || -> Vec<String> {
        state_of(&world.mobile).into_iter().filter(|line| line.contains("table: Some(434")).collect()
    };
    let before = own_routes();
    let mut netlink = world.mobile.run(Netlink::open).unwrap().unwrap();
    // While the node is busy, so that it hears of both at once.
    mobile.with(move |_| {
        let index = netlink.index_of("wlan0").unwrap();
        assert!(netlink.remove_address(index, IpAddr::V4(WLAN), 24).unwrap().is_changed());
        assert!(netlink.add_address(index, IpAddr::V4(WLAN), 24).unwrap().is_changed());
    });
    mobile.wait_until("as before", |_| difference(&before, &own_routes()).is_empty());
    drop(home);
}

#[test]
fn a_neighbour_that_somebody_has_set_is_there_again_afterwards() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let of_foreign_agent = |host: &Host| {
        host.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("wlan0")?;
            netlink.neighbour(index, Ipv4Addr::new(10, 7, 0, 1))
        })
        .unwrap()
        .unwrap()
    };
    let set = [2, 0, 0, 0, 0, 0x99];
    world
        .mobile
        .run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("wlan0")?;
            netlink.set_neighbour(index, Ipv4Addr::new(10, 7, 0, 1), set)
        })
        .unwrap()
        .unwrap();
    let _home = world.home_agent();
    let _foreign = world.foreign_agent(world.foreign_setup());
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    assert_ne!(of_foreign_agent(&world.mobile).unwrap().link_address, Some(set));
    mobile.close().unwrap();
    let after = of_foreign_agent(&world.mobile).unwrap();
    assert!(after.is_permanent && after.link_address == Some(set), "{after:?}");
}

#[test]
fn what_waited_for_room_is_sent_without_being_asked_for() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let home = world.home_agent();
    let _foreign = world.foreign_agent(world.foreign_setup());
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    // What the home agent sends waits for an answer to ARP, in room enough for all of it.
    let quiet = |host: &Host, name: &'static str, address: Ipv4Addr| {
        host.run(move || {
            careof_lab::set_sysctl(&format!("net.ipv4.neigh.{name}.unres_qlen_bytes"), "100000000")?;
            careof_lab::set_sysctl(&format!("net.ipv4.neigh.{name}.mcast_solicit"), "1000")?;
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.remove_neighbour(index, address)
        })
        .unwrap()
        .unwrap();
    };
    assert!(ip(&world.foreign, "link set up0 arp off"));
    quiet(&world.home, "back0", FA);
    let sender = udp(&world.home, Ipv4Addr::new(172, 16, 0, 1), 0);
    nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::UdpGsoSegment, &500).unwrap();
    nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::SndBuf, &4_000_000).unwrap();
    let before = packets_out(&home.status());
    let mut sent = 0;
    let lag = loop {
        // Two frames while the agent is busy, of which one datagram does not fit its batch any more.
        let more = sender.try_clone().unwrap();
        home.with(move |_| {
            for datagrams in [63, 2] {
                more.send_to(&vec![7; 500 * datagrams], (HOME, 9)).unwrap();
            }
        });
        sent += 65;
        sleep(Duration::from_millis(20));
        let lag = sent - (packets_out(&home.status()) - before);
        if lag > 0 || sent > 100_000 {
            break lag;
        }
    };
    // One, the rest of a frame, unless room ended right behind a batch.
    assert!((1..=65).contains(&lag), "{lag} of {sent} wait");
    assert!(ip(&world.foreign, "link set up0 arp on"));
    home.wait_until("all on their way", |status| packets_out(status) - before == sent);
}
