//! Networks that have only IPv4, and connections of IPv4 (RFC 5555).

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use careof_lab::{AgentSocket, Host, Ipv4PacketSocket, Netlink, OutgoingDatagram, Route, set_sysctl};
use careof_mobility::v6::{HomeAgentConfig, ServedMobileNode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet};
use careof_wire::mip6::DSMIPV6_PORT;
use careof_wire::protocol;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all, udp};

/// A connection from one host to an address of another, and the thread that receives.
struct Connection {
    client: Tcp,
    received: std::thread::JoinHandle<Vec<u8>>,
}

impl Connection {
    fn open(from: &Host, to: &Host, address: impl Into<IpAddr>, port: u16) -> Self {
        let address = SocketAddr::new(address.into(), port);
        let listener = to.run(move || Listener::bind(address)).unwrap().unwrap();
        let received = receive_all(listener);
        let client = from.run(move || Tcp::connect(address)).unwrap().unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { client, received }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).unwrap();
    }

    fn finish(self) -> Vec<u8> {
        drop(self.client);
        self.received.join().unwrap()
    }
}

/// Connections of both versions and in both directions.
fn connections(network: &Network) -> [Connection; 4] {
    let (mobile, correspondent) = (&network.mobile, &network.correspondent);
    let connections = [
        Connection::open(correspondent, mobile, HOME, 80),
        Connection::open(mobile, correspondent, CORRESPONDENT, 80),
        Connection::open(correspondent, mobile, HOME_IPV4, 81),
        Connection::open(mobile, correspondent, CORRESPONDENT_IPV4, 81),
    ];
    let local = |at: usize| connections[at].client.local_addr().unwrap().ip();
    assert_eq!(
        (local(1), local(3)),
        (IpAddr::V6(HOME), IpAddr::V4(HOME_IPV4)),
        "the home addresses by themselves"
    );
    connections
}

fn ipv4_home(mobile: &Running) -> Option<Ipv4Addr> {
    status(mobile).registration.unwrap().ipv4_home_address
}

fn care_of(mobile: &Running, interface: &str) -> std::net::Ipv6Addr {
    wait_registered(mobile, interface).registration.unwrap().care_of.unwrap()
}

/// From IPv6 to a network that has only IPv4, and back.
#[test]
fn connections_of_both_versions_survive_handovers_between_networks_of_either() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    let hosts = [&network.home, &network.mobile, &network.correspondent];
    let before = hosts.map(state_of);
    let problems = hosts.map(Problems::listen);
    let home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert!(WLAN.contains(care_of(&mobile, "wlan0")));
    assert_eq!(ipv4_home(&mobile), Some(HOME_IPV4));
    let mut connections = connections(&network);
    let sent = pattern(600_000);
    let mut parts = sent.chunks(200_000);
    let mut send = || {
        let part = parts.next().unwrap();
        connections.iter_mut().for_each(|connection| connection.send(part));
    };
    send();
    network.set_link("wlan0", false);
    assert_eq!(care_of(&mobile, "gsm0"), CARE_OF_IPV4.to_ipv6_mapped());
    let bindings = status(&home).bindings;
    let bound: Vec<_> = bindings.iter().map(|one| (one.care_of, one.ipv4_home_address)).collect();
    assert_eq!(bound, [(CARE_OF_IPV4.to_ipv6_mapped(), Some(HOME_IPV4))]);
    send();
    network.set_link("wlan0", true);
    assert!(WLAN.contains(care_of(&mobile, "wlan0")));
    send();
    for connection in connections {
        assert!(connection.finish() == sent, "what arrived is what was sent");
    }
    let counters = status(&mobile).counters;
    for name in ["packets-tunnelled-in", "packets-tunnelled-out"] {
        assert!(counters[name] > 500, "{name}: {counters:#?}");
    }
    assert_eq!(problems.map(|problems| problems.heard()), [0; 3], "everybody understands what comes");
    mobile.close().unwrap();
    home.close().unwrap();
    for (host, before) in hosts.into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

fn set_mtu(host: &Host, name: &'static str, mtu: u16) {
    let set = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.set_mtu(index, mtu)
    });
    set.unwrap().unwrap();
}

/// Routers in a tunnel say what is too long to the tunnel's entry, which tells the sender; where that is not asked for, packets are cut.
#[test]
fn connections_of_ipv4_find_out_what_a_path_takes() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    // In the middle of the tunnel of IPv6, and on the link of IPv4.
    for (host, name, mtu) in [
        (&network.home, "west0", 1400),
        (&network.west, "up0", 1400),
        (&network.east, "down0", 1310),
        (&network.mobile, "gsm0", 1310),
    ] {
        set_mtu(host, name, mtu);
    }
    let home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    let sent = pattern(100_000);
    for interface in ["wlan0", "gsm0"] {
        let care_of = care_of(&mobile, interface);
        let both = [Some(HOME_IPV4), status(&home).bindings[0].ipv4_home_address];
        assert_eq!(both, [Some(HOME_IPV4); 2], "{care_of}");
        for mut connection in connections(&network) {
            connection.send(&sent);
            assert!(connection.finish() == sent, "by {interface}");
        }
        network.set_link("wlan0", false);
    }
    for agent in [&home, &mobile] {
        let counters = status(agent).counters;
        assert!(counters["errors-relayed"] > 0, "{counters:#?}");
        assert_eq!(counters["packets-refused"], 0, "{counters:#?}");
    }
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let payload_len = payload.len() as u16;
    let header = Ipv4Header { source, destination, protocol, payload_len, ttl: 64, ..Ipv4Header::default() };
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    bytes.extend(payload);
    bytes
}

/// Tunnels are known by their ends: what comes from elsewhere, or claims to be somebody else's inside, does not get through.
#[test]
fn strangers_have_no_use_of_the_tunnels() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    network.set_link("wlan0", false);
    let home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert_eq!(care_of(&mobile, "gsm0"), CARE_OF_IPV4.to_ipv6_mapped());
    let ipv6 = |source, destination| {
        let header = Ipv6Header { source, destination, hop_limit: 64, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 16], &mut bytes).unwrap();
        bytes
    };
    let own = CORRESPONDENT_IPV4;
    let inner = ipv4(HOME_IPV4, own, protocol::UDP, &[7; 16]);
    let to_mobile = ipv4(own, HOME_IPV4, protocol::UDP, &[7; 16]);
    let packets = [
        // From nobody's care-of address, in the mobile node's name.
        ipv4(own, HA_IPV4, protocol::IPV6, &ipv6(HOME, CORRESPONDENT)),
        ipv4(own, HA_IPV4, protocol::IP_IN_IP, &inner),
        // From its care-of address, in other names.
        ipv4(CARE_OF_IPV4, HA_IPV4, protocol::IPV6, &ipv6(on(9, 77), CORRESPONDENT)),
        ipv4(CARE_OF_IPV4, HA_IPV4, protocol::IP_IN_IP, &ipv4(own, own, protocol::UDP, &[7; 16])),
        // To the mobile node, from who is no home agent.
        ipv4(own, CARE_OF_IPV4, protocol::IPV6, &ipv6(CORRESPONDENT, HOME)),
        ipv4(own, CARE_OF_IPV4, protocol::IP_IN_IP, &to_mobile),
    ];
    let not_ours = |agent: &Running| status(agent).counters["packets-not-ours"];
    let before = [not_ours(&home), not_ours(&mobile)];
    let sent = network.correspondent.run(move || {
        let socket = Ipv4PacketSocket::open(protocol::IPV6)?;
        for packet in &packets {
            assert!(socket.send(packet, None)?);
        }
        let udp = AgentSocket::open(DSMIPV6_PORT)?;
        let payload = &ipv6(CORRESPONDENT, HOME);
        for destination in [HA_IPV4, CARE_OF_IPV4] {
            let (source, destination_port) = (Ipv4Addr::UNSPECIFIED, DSMIPV6_PORT);
            let interface = None;
            udp.send(&OutgoingDatagram {
                interface,
                source,
                destination,
                destination_port,
                ttl: 64,
                payload,
            })?;
        }
        Ok::<_, careof_lab::Error>(())
    });
    sent.unwrap().unwrap();
    wait_until(&home, "sent to by strangers", |_| not_ours(&home) == before[0] + 5);
    wait_until(&mobile, "sent to by strangers", |_| not_ours(&mobile) == before[1] + 3);
    let mut connection = Connection::open(&network.correspondent, &network.mobile, HOME, 80);
    connection.send(b"still there");
    assert_eq!(connection.finish(), b"still there");
}

/// Without any IPv6 but in the tunnel.
#[test]
fn a_mobile_node_begins_and_ends_on_a_network_of_ipv4() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    network.set_link("wlan0", false);
    let before = [&network.home, &network.mobile].map(state_of);
    let home = network.dual_stack_home_agent();
    network.set_mobile_ipv4(false);
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert!(!status(&mobile).registration.unwrap().registered);
    // The address comes as from DHCP: later, and its route after it.
    network.set_mobile_ipv4(true);
    assert_eq!(care_of(&mobile, "gsm0"), CARE_OF_IPV4.to_ipv6_mapped());
    let sent = pattern(100_000);
    for mut connection in connections(&network) {
        connection.send(&sent);
        assert!(connection.finish() == sent);
    }
    mobile.with(|node| node.deregister()).unwrap();
    wait_until(&home, "told that it ends", |status| status.bindings.is_empty());
    mobile.close().unwrap();
    home.close().unwrap();
    for (host, before) in [&network.home, &network.mobile].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

fn set(host: &Host, name: &'static str, value: &'static str) {
    host.run(move || set_sysctl(name, value)).unwrap().unwrap();
}

/// A home agent without an IPv4 address speaks of IPv4 packets from an address that is nobody's (RFC 7600 section 4.8). Reverse path
/// filtering would have the kernel drop that, and senders would never learn what the tunnel takes.
#[test]
fn the_senders_of_a_host_with_strict_filtering_hear_what_a_tunnel_takes() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    set(&network.home, "net.ipv4.conf.all.rp_filter", "1");
    for (host, name, mtu) in [(&network.home, "west0", 1400), (&network.west, "up0", 1400)] {
        set_mtu(host, name, mtu);
    }
    let home = network.home_agent_with(HomeAgentConfig { ipv4_address: None, ..dual_stack_config() });
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert!(WLAN.contains(care_of(&mobile, "wlan0")));
    let sent = pattern(100_000);
    let mut connection = Connection::open(&network.correspondent, &network.mobile, HOME_IPV4, 80);
    connection.send(&sent);
    assert!(connection.finish() == sent);
    assert!(status(&home).counters["errors-relayed"] > 0);
}

/// What comes out of the tunnel is from everywhere, whatever other ways there are to its senders.
#[test]
fn a_mobile_node_with_strict_filtering_hears_senders_to_whom_another_way_leads() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    set(&network.mobile, "net.ipv4.conf.all.rp_filter", "1");
    let another_way = || {
        let mut netlink = Netlink::open()?;
        let route = Route::to(CORRESPONDENT_IPV4.into(), 32, netlink.index_of("gsm0")?);
        netlink.add_route(&Route { via: Some(Ipv4Addr::new(198, 51, 100, 1).into()), ..route }).map(drop)
    };
    network.mobile.run(another_way).unwrap().unwrap();
    let _home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert!(WLAN.contains(care_of(&mobile, "wlan0")));
    let here = udp(&network.mobile, HOME_IPV4, 8080);
    here.set_read_timeout(Some(PATIENCE)).unwrap();
    udp(&network.correspondent, CORRESPONDENT_IPV4, 0).send_to(b"hello", (HOME_IPV4, 8080)).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(here.recv(&mut buffer).unwrap(), 5);
}

/// The IPv4 addresses of a host's tunnel device, and the bits of their prefixes.
fn on_device(host: &Host) -> Vec<(Ipv4Addr, u8)> {
    let read = || {
        let mut netlink = Netlink::open()?;
        let device = netlink.index_of("careof6")?;
        let mut found = netlink.assigned_addresses()?;
        found.retain(|on| on.interface == device);
        Ok::<_, careof_lab::Error>(found)
    };
    let found = host.run(read).unwrap().unwrap().into_iter();
    let ipv4 = found.filter_map(|on| match on.address {
        IpAddr::V4(address) => Some((address, on.prefix_length)),
        IpAddr::V6(_) => None,
    });
    ipv4.collect()
}

/// The home agent may be given another address for the mobile node, or none; what it had is somebody else's then.
#[test]
fn an_ipv4_home_address_that_the_home_agent_takes_back_leaves_the_mobile_node() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    let other = Ipv4Addr::new(192, 0, 2, 8);
    let serving = |ipv4_home_address: Option<Ipv4Addr>| {
        let node = ServedMobileNode { ipv4_home_address, ..ServedMobileNode::new(HOME, security()) };
        HomeAgentConfig { mobile_nodes: vec![node], ..dual_stack_config() }
    };
    let mut setup = network.dual_stack_mobile_setup();
    setup.config.ipv4_home_address = Some(Ipv4Addr::UNSPECIFIED);
    let mut home = network.home_agent_with(serving(Some(HOME_IPV4)));
    let mobile = network.mobile_node(setup);
    let renewed = |home: &Running| {
        let accepted = |agent: &Running| status(agent).counters["registrations-accepted"];
        let before = accepted(home);
        for up in [false, true] {
            network.set_link("wlan0", up);
            wait_registered(&mobile, if up { "wlan0" } else { "gsm0" });
        }
        assert!(accepted(home) > before);
    };
    wait_registered(&mobile, "wlan0");
    assert_eq!(on_device(&network.mobile), [(HOME_IPV4, 32)]);
    for (served, expected) in
        [(Some(other), vec![(other, 32)]), (None, vec![]), (Some(HOME_IPV4), vec![(HOME_IPV4, 32)])]
    {
        home.close().unwrap();
        home = network.home_agent_with(serving(served));
        renewed(&home);
        assert_eq!(ipv4_home(&mobile), served);
        assert_eq!(on_device(&network.mobile), expected);
    }
    let mut connection = Connection::open(&network.correspondent, &network.mobile, HOME_IPV4, 80);
    connection.send(b"here");
    assert_eq!(connection.finish(), b"here");
}

/// The length of the home network's prefix comes with the address. It makes no route: the network is behind the home agent.
#[test]
fn a_mobile_node_has_its_ipv4_home_address_with_the_prefix_of_its_network() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    let before = state_of(&network.mobile);
    let home = network.home_agent_with(HomeAgentConfig { ipv4_home_prefix_len: 24, ..dual_stack_config() });
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    wait_registered(&mobile, "wlan0");
    assert_eq!(on_device(&network.mobile), [(HOME_IPV4, 24)]);
    let main = network.mobile.run(|| Netlink::open()?.routes(Route::MAIN_TABLE)).unwrap().unwrap();
    let into_network = |route: &Route| route.destination == Ipv4Addr::new(192, 0, 2, 0);
    assert!(!main.iter().any(into_network), "{main:#?}");
    // Nobody behind a tunnel could go another way.
    for host in [&network.home, &network.mobile] {
        for parameter in ["send_redirects", "accept_redirects"] {
            let path = format!("/proc/sys/net/ipv4/conf/careof6/{parameter}");
            let set = host.run(move || std::fs::read_to_string(path)).unwrap().unwrap();
            assert_eq!(set.trim(), "0", "{parameter} of {}", host.name());
        }
    }
    // It is bound again, and is the same.
    network.set_link("wlan0", false);
    wait_registered(&mobile, "gsm0");
    let quiet = network.mobile.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/conf/gsm0/arp_ignore"));
    assert_eq!(quiet.unwrap().unwrap().trim(), "1", "a visited link is not to hear of the home address");
    for mut connection in connections(&network) {
        connection.send(b"still there");
        assert_eq!(connection.finish(), b"still there");
    }
    network.set_link("wlan0", true);
    wait_registered(&mobile, "wlan0");
    mobile.close().unwrap();
    home.close().unwrap();
    assert_as_it_was(&network.mobile, &before);
}
