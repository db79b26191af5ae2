//! A home network that is a link (RFC 6275 sections 10.3.1, 10.4.1 and 11.5.5): its neighbours find a mobile node, or the home agent in
//! its place, and nobody else has its address.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::network::*;
use crate::support::ethernet::ip;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all, sleep, start};
use careof_agent::{Device, Hooks, HostOptions, Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup};
use careof_lab::{AddressOptions, Clock, Host, Icmpv6Socket, Netlink, OutgoingIcmpv6, Realm};
use careof_mobility::InterfaceId;
use careof_mobility::v6::{
    Event, HomeAgentConfig, InterfaceConfig, Prefix, RegistrationStep, ServedMobileNode,
};
use careof_wire::mip6::BindingStatus;

const NEIGHBOUR: Ipv6Addr = on(1, 2);
const HOME_NETWORK: Prefix = Prefix::new(on(1, 0), 64);
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// The usual network, and a home link: a bridge on the home agent's host, which is the router there, too.
struct HomeLink {
    neighbour: Host,
    _advertiser: Advertising,
    network: Network,
}

/// `None`, and the reason printed, where there is no program to make a bridge with.
fn home_link(realm: Realm) -> Option<HomeLink> {
    home_link_with(realm, Links::Ethernet)
}

fn home_link_with(realm: Realm, links: Links) -> Option<HomeLink> {
    let neighbour = realm.host("neighbour").unwrap();
    skip_detection(&neighbour);
    let network = Network::with(realm, links);
    if !ip(&network.home, "link add br0 type bridge forward_delay 0 mcast_snooping 0") {
        careof_testbed::skip(
            "cannot make a bridge\n  hint: install iproute2, or a kernel with CONFIG_BRIDGE",
        );
        return None;
    }
    cable((&network.home, "port0", None), (&neighbour, "eth0", Some(NEIGHBOUR)));
    cable((&network.home, "port1", None), (&network.mobile, "home0", None));
    assert!(ip(&network.home, "link set port0 master br0") && ip(&network.home, "link set port1 master br0"));
    assert!(ip(&network.home, "link set br0 up"));
    network.set_link("home0", false);
    let advertiser = Advertising::start(&network.home, "br0", HOME_NETWORK, network.clock);
    Some(HomeLink { neighbour, _advertiser: advertiser, network })
}

impl HomeLink {
    fn home_agent(&self) -> Running {
        self.home_agent_with(HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security())],
            ..HomeAgentConfig::new(HA, HOME_NETWORK, InterfaceId(7))
        })
    }

    fn home_agent_with(&self, config: HomeAgentConfig) -> Running {
        let id = InterfaceId(7);
        let config = HomeAgentConfig { home_interface: id, ..config };
        let home_link = Some(Device::new(id.0, "br0"));
        let setup = Ipv6HomeSetup { config, home_link, host: HostOptions::for_ipv6(), assist: None };
        Running::open(&self.network.home, Ipv6Setup::Home(setup), self.network.clock, Hooks::default())
    }

    /// Home is where it likes to be best.
    fn mobile_setup(&self) -> Ipv6MobileSetup {
        self.also_at_home(self.network.mobile_setup())
    }

    fn also_at_home(&self, mut setup: Ipv6MobileSetup) -> Ipv6MobileSetup {
        setup
            .config
            .interfaces
            .push(InterfaceConfig { preference: 20, ..InterfaceConfig::new(InterfaceId(2)) });
        setup.devices.push(Device::new(2, "home0"));
        setup
    }
}

fn link_address(host: &Host, name: &'static str) -> [u8; 6] {
    let read = || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.interface(index)
    };
    host.run(read).unwrap().unwrap().link_address.unwrap()
}

/// Waits until a neighbour believes that this is who has the home address.
#[track_caller]
fn comes_to_believe(neighbour: &Host, whose: [u8; 6]) {
    comes_to_believe_of(neighbour, HOME.into(), whose);
}

/// The same of any address.
#[track_caller]
fn comes_to_believe_of(neighbour: &Host, address: IpAddr, whose: [u8; 6]) {
    let believed = || {
        let found = neighbour.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("eth0")?;
            netlink.neighbour(index, address)
        });
        found.unwrap().unwrap().and_then(|entry| entry.link_address)
    };
    let clock = Clock::start();
    while believed() != Some(whose) {
        assert!(clock.now().since_start() < PATIENCE, "{:?}, not {whose:?}", believed());
        sleep(Duration::from_millis(5));
    }
}

fn proxied(host: &Host) -> Vec<std::net::IpAddr> {
    let read = || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("br0")?;
        netlink.proxy_neighbours(index)
    };
    host.run(read).unwrap().unwrap()
}

/// Waits until a host's echo requests are answered.
#[track_caller]
fn answers(host: &Host, to: Ipv6Addr) {
    let socket = host.run(|| Icmpv6Socket::open(&[ECHO_REPLY])).unwrap().unwrap();
    let mut buffer = [0; 2048];
    let clock = Clock::start();
    loop {
        let message = [ECHO_REQUEST, 0, 0, 0, 0, 7, 0, 1];
        let request = OutgoingIcmpv6 {
            interface: None,
            source: Ipv6Addr::UNSPECIFIED,
            destination: to,
            hop_limit: 64,
            message: &message,
        };
        let _ = socket.send(&request);
        sleep(Duration::from_millis(20));
        while let Some(reply) = socket.receive(&mut buffer).unwrap() {
            if reply.source == to {
                return;
            }
        }
        assert!(clock.now().since_start() < PATIENCE, "{to} is not there");
    }
}

#[test]
fn a_neighbour_reaches_a_mobile_node_that_is_away_at_home_and_away_again() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(link) = home_link(realm) else { return };
    let network = &link.network;
    wait_for_addresses(&network.mobile);
    let before = [&network.home, &network.mobile].map(state_of);
    let home = link.home_agent();
    let mobile = network.mobile_node(link.mobile_setup());
    wait_registered(&mobile, "wlan0");
    // The home agent's address is on no interface, and yet on the link.
    answers(&link.neighbour, HA);

    // The mobile node's neighbour calls, and hears all of it, wherever the node is.
    let sent = pattern(600_000);
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = link.neighbour.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let (home_agents, own) = (link_address(&network.home, "br0"), link_address(&network.mobile, "home0"));
    comes_to_believe(&link.neighbour, home_agents);
    let mut parts = sent.chunks(150_000);
    let mut send_part = || client.write_all(parts.next().unwrap()).unwrap();
    send_part();

    network.set_link("home0", true);
    let at_home = wait_registered(&mobile, "home0");
    assert_eq!(at_home.registration.unwrap().care_of, None);
    wait_until(&home, "told that the node is at home", |status| status.bindings.is_empty());
    comes_to_believe(&link.neighbour, own);
    assert!(!proxied(&network.home).contains(&HOME.into()));
    let tunnelled = status(&home).counters["packets-tunnelled-out"];
    assert!(tunnelled > 50, "{tunnelled}");
    send_part();
    answers(&link.neighbour, HOME);
    // From home everything goes straight, also to others.
    let listener = network.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let greeted = start(move || listener.accept().unwrap().1);
    let _greeting = network.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    assert_eq!(greeted.join().unwrap().ip(), HOME);
    let out_of_tunnels = || status(&home).counters["packets-tunnelled-in"];
    let earlier = out_of_tunnels();
    answers(&link.neighbour, HOME);
    assert_eq!(out_of_tunnels(), earlier);

    network.set_link("home0", false);
    wait_registered(&mobile, "wlan0");
    wait_until(&home, "told that the node is away", |status| !status.bindings.is_empty());
    comes_to_believe(&link.neighbour, home_agents);
    send_part();
    // And home for good.
    network.set_link("home0", true);
    wait_registered(&mobile, "home0");
    send_part();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    mobile.close().unwrap();
    home.close().unwrap();
    assert_eq!(proxied(&network.home), [] as [std::net::IpAddr; 0]);
    network.set_link("home0", false);
    for (host, before) in [&network.home, &network.mobile].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

#[test]
fn a_home_address_that_a_neighbour_has_is_refused() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(link) = home_link(realm) else { return };
    let network = &link.network;
    let owns = || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("eth0")?;
        let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
        netlink.add_address_as(options, index, HOME.into(), 64)
    };
    link.neighbour.run(owns).unwrap().unwrap();
    let home = link.home_agent();
    let mobile = network.mobile_node(link.mobile_setup());
    let clock = Clock::start();
    loop {
        let event = mobile.with(|carrier| carrier.poll_ipv6_event());
        if let Some((_, Event::Registration(event))) = event
            && let RegistrationStep::Refused { status, .. } = event.step
        {
            assert_eq!(status, BindingStatus::DuplicateAddressDetectionFailed);
            assert_eq!(status.number(), 134);
            break;
        }
        assert!(clock.now().since_start() < PATIENCE, "{:#?}", status(&mobile));
        if event.is_none() {
            sleep(Duration::from_millis(5));
        }
    }
    assert!(status(&home).bindings.is_empty());
    assert!(!proxied(&network.home).contains(&HOME.into()), "it is its neighbour's");
    let mut greeting = String::new();
    let listener = link.neighbour.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let greeter = start(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let mut client = network.home.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.read_to_string(&mut greeting).unwrap();
    greeter.join().unwrap();
    assert_eq!(greeting, "hello");
}

fn add_ipv4(host: &Host, name: &'static str, address: Ipv4Addr) {
    let add = move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.add_address(index, address.into(), 24).map(drop)
    };
    host.run(add).unwrap().unwrap();
}

/// RFC 5555 section 4.5: a home agent is a proxy for address resolution of IPv4 home addresses, too.
#[test]
fn a_neighbour_finds_the_ipv4_home_address_of_a_mobile_node_that_is_away() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(link) = home_link_with(realm, Links::Ipv4Only) else { return };
    let network = &link.network;
    add_ipv4(&network.home, "br0", Ipv4Addr::new(192, 0, 2, 254));
    add_ipv4(&link.neighbour, "eth0", Ipv4Addr::new(192, 0, 2, 2));
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    let before = state_of(&network.home);
    // It takes the node for at home, and for who it finds there.
    let somebody = [2, 0, 0, 0, 0, 77];
    let believes = move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("eth0")?;
        netlink.set_neighbour(index, HOME_IPV4, somebody)
    };
    link.neighbour.run(believes).unwrap().unwrap();
    let home = link.home_agent_with(dual_stack_config());
    let mobile = network.mobile_node(link.also_at_home(network.dual_stack_mobile_setup()));
    wait_registered(&mobile, "wlan0");
    let home_agents = link_address(&network.home, "br0");
    // By gratuitous ARP first, and by its own question then.
    let heard = |home: &Running| status(home).counters["announcements-sent"];
    wait_until(&home, "announcing", |_| heard(&home) >= 2);
    let forgets = || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("eth0")?;
        netlink.remove_neighbour(index, HOME_IPV4)
    };
    link.neighbour.run(forgets).unwrap().unwrap();
    let sent = pattern(300_000);
    let mut parts = sent.chunks(100_000);
    let listener = network.mobile.run(|| Listener::bind((HOME_IPV4, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = link.neighbour.run(|| Tcp::connect((HOME_IPV4, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    comes_to_believe_of(&link.neighbour, HOME_IPV4.into(), home_agents);
    client.write_all(parts.next().unwrap()).unwrap();
    let proxies = [HOME_IPV4.into(), HA_IPV4.into()];
    assert!(proxies.iter().all(|address| proxied(&network.home).contains(address)));
    // Also where the care-of address is of IPv4.
    network.set_link("wlan0", false);
    wait_registered(&mobile, "gsm0");
    client.write_all(parts.next().unwrap()).unwrap();
    client.write_all(parts.next().unwrap()).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");

    // At home the home agent no longer answers for it.
    network.set_link("home0", true);
    wait_registered(&mobile, "home0");
    wait_until(&home, "told that the node is at home", |status| status.bindings.is_empty());
    assert!(!proxied(&network.home).contains(&HOME_IPV4.into()));
    let own = link_address(&network.mobile, "home0");
    link.neighbour.run(forgets).unwrap().unwrap();
    let _ = link.neighbour.run(|| Tcp::connect((HOME_IPV4, 81)));
    comes_to_believe_of(&link.neighbour, HOME_IPV4.into(), own);
    mobile.close().unwrap();
    home.close().unwrap();
    assert_eq!(proxied(&network.home), [] as [IpAddr; 0]);
    network.set_link("home0", false);
    network.set_link("wlan0", true);
    assert_as_it_was(&network.home, &before);
}
