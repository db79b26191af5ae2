//! Networks that have only IPv4, and connections of IPv4 (RFC 5555).

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use careof_lab::{AgentSocket, Host, Ipv4PacketSocket, Netlink, OutgoingDatagram};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet};
use careof_wire::mip6::DSMIPV6_PORT;
use careof_wire::protocol;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all};

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

/// Tunnels are known by their ends: what comes from elsewhere, or claims to be somebody else's inside, does not get through.
#[test]
fn strangers_have_no_use_of_the_tunnels() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    network.set_link("wlan0", false);
    let home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
    assert_eq!(care_of(&mobile, "gsm0"), CARE_OF_IPV4.to_ipv6_mapped());
    let ipv4 = |source, destination, protocol, payload: &[u8]| {
        let payload_len = payload.len() as u16;
        let header =
            Ipv4Header { source, destination, protocol, payload_len, ttl: 64, ..Ipv4Header::default() };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend(payload);
        bytes
    };
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
