//! What assists do for the kernel's TCP over Mobile IPv6.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};

use super::network::*;
use crate::assists::{counter, replay, wait_for_back_off};
use crate::support::{Listener, PATIENCE, Tcp, pattern, realm_or_skip, receive_all, start};
use careof_agent::{Ipv6MobileSetup, Ipv6Setup};
use careof_assist::Place;
use careof_lab::Host;
use careof_mobility::v6::RouteOptimizationConfig;

/// A mobile node with assists, which tells the home agent of its paths.
fn assisted(network: &Network, place: Place) -> Ipv6MobileSetup {
    let mut setup = network.mobile_setup();
    setup.assist = Some(replay(place));
    setup.config.report_paths = true;
    setup
}

/// Sends `bytes` to the server of another host; in the middle of it no link is there until the sender has backed off, and then another
/// one than before. What was received, and what was sent.
fn transfer_through_an_outage(
    network: &Network,
    (sender, receiver): (&Host, &Host),
    server: Ipv6Addr,
    bytes: usize,
) -> (Vec<u8>, Vec<u8>) {
    let sent = pattern(bytes);
    let listener = receiver.run(move || Listener::bind((server, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = sender.run(move || Tcp::connect((server, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let (first, rest) = sent.split_at(bytes / 2);
    client.write_all(first).unwrap();
    let rest = rest.to_vec();
    network.set_link("gsm0", false);
    network.set_link("wlan0", false);
    let writing = start(move || client.write_all(&rest).unwrap());
    wait_for_back_off(sender, SocketAddr::from((server, 80)));
    network.set_link("gsm0", true);
    writing.join().unwrap();
    (received.join().unwrap(), sent)
}

#[test]
fn a_home_agent_of_ipv6_sends_again_what_an_outage_has_cost_a_download() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Emulated);
    wait_for_addresses(&network.mobile);
    let home = network.assisted_home_agent(security(), Some(replay(Place::HomeAgent)));
    let mobile = network.mobile_node(assisted(&network, Place::MobileNode));
    wait_registered(&mobile, "wlan0");
    let ends = (&network.correspondent, &network.mobile);
    let (received, sent) = transfer_through_an_outage(&network, ends, HOME, 1_000_000);
    assert!(received == sent, "{} bytes of {} are what was sent", received.len(), sent.len());
    let after = home.status();
    for name in ["assist-kept", "assist-replayed"] {
        assert!(counter(&after, name) > 0, "{name}: {:#?}", after.counters);
    }
    let flow = &after.assist.unwrap().flows[0];
    assert_eq!((flow.home_address, flow.port, flow.peer), (HOME.into(), 80, CORRESPONDENT.into()));
}

#[test]
fn a_mobile_node_of_ipv6_sends_again_what_an_outage_has_cost_an_upload() {
    let Some(realm) = realm_or_skip() else { return };
    for optimises in [false, true] {
        let network = Network::with(realm, Links::Emulated);
        wait_for_addresses(&network.mobile);
        let home = network.home_agent(security());
        let correspondent = optimises.then(|| network.correspondent_node());
        let mut setup = assisted(&network, Place::MobileNode);
        setup.config.route_optimization = optimises.then(RouteOptimizationConfig::default);
        let mobile = network.mobile_node(setup);
        wait_registered(&mobile, "wlan0");
        let ends = (&network.mobile, &network.correspondent);
        let (received, sent) = transfer_through_an_outage(&network, ends, CORRESPONDENT, 1_000_000);
        assert!(received == sent, "{} bytes of {} are what was sent", received.len(), sent.len());
        let after = mobile.status();
        assert!(counter(&after, "assist-replayed") > 0, "{:#?}", after.counters);
        assert_eq!(counter(&after, "packets-optimised-out") > 0, optimises, "{:#?}", after.counters);
        assert_eq!(home.status().assist, None);
        drop(correspondent);
    }
}

#[test]
fn assists_for_another_kind_of_agent_are_refused() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let setup = Ipv6Setup::Mobile(assisted(&network, Place::HomeAgent));
    let refused = network.refused(setup);
    assert!(refused.to_string().contains("another kind of agent"), "{refused}");
}
