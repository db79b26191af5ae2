//! Networks that have only IPv4, and connections of IPv4 (RFC 5555).

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use careof_lab::Host;

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

fn ipv4_home(mobile: &Running) -> Option<std::net::Ipv4Addr> {
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

/// Without any IPv6 but in the tunnel.
#[test]
fn a_mobile_node_begins_and_ends_on_a_network_of_ipv4() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    network.set_link("wlan0", false);
    let before = [&network.home, &network.mobile].map(state_of);
    let home = network.dual_stack_home_agent();
    let mobile = network.mobile_node(network.dual_stack_mobile_setup());
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
