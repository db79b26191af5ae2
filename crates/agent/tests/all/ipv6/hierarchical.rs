//! Hierarchical Mobile IPv6 (RFC 5380): movements within a domain and between domains, with the kernel's TCP.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr};

use super::domains::*;
use super::network::*;
use crate::assists::{counter, replay, wait_for_back_off};
use crate::daemons::support::{Capture, find, skip};
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all, start};
use careof_assist::Place;
use careof_mobility::v6::RouteOptimizationConfig;

const WEST: (Ipv6Addr, Ipv6Addr) = (MAP_WEST, REGIONAL_WEST);
const EAST: (Ipv6Addr, Ipv6Addr) = (MAP_EAST, REGIONAL_EAST);

const MALFORMED: &str = "_ws.malformed || icmpv6.checksum.status == \"Bad\"";

fn bindings(agent: &Running) -> Vec<(Ipv6Addr, Ipv6Addr)> {
    status(agent).bindings.iter().map(|binding| (binding.home_address, binding.care_of)).collect()
}

fn count(agent: &Running, name: &str) -> u64 {
    status(agent).counters[name]
}

/// The part of a pattern with this number, of `PARTS`.
fn part(sent: &[u8], number: usize) -> &[u8] {
    let len = sent.len() / PARTS;
    &sent[number * len..(number + 1) * len]
}
const PARTS: usize = 5;

#[test]
fn connections_survive_movements_within_a_domain_and_between_domains_byte_by_byte() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Domains::new(realm);
    network.wait_for_addresses();
    let before = network.hosts().map(state_of);
    let problems = network.hosts().map(Problems::listen);
    let directory = tempfile::tempdir().unwrap();
    let is_there = find("tshark").is_some();
    let capture = is_there.then(|| Capture::start(&network.west, "down1", directory.path()));
    let home = network.home_agent();
    let (west, east) = (network.anchor_point(MAP_WEST, None), network.anchor_point(MAP_EAST, None));
    let mobile = network.mobile_node(network.mobile_setup());
    let on_link = wait_below(&mobile, WEST, WLAN0);
    assert_eq!(
        (bindings(&home), bindings(&west)),
        (vec![(HOME, REGIONAL_WEST)], vec![(REGIONAL_WEST, on_link)])
    );

    let sent = pattern(PARTS * 300_000);
    let inbound = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let outbound = network.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let received = [receive_all(inbound), receive_all(outbound)];
    let to_mobile = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    let from_mobile = network.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    assert_eq!(from_mobile.local_addr().unwrap().ip(), HOME);
    let mut clients = [to_mobile, from_mobile];
    let mut write = |number| {
        for client in &mut clients {
            client.set_write_timeout(Some(PATIENCE)).unwrap();
            client.write_all(part(&sent, number)).unwrap();
        }
    };
    write(0);
    network.set_link("wlan0", false);
    let on_link = wait_below(&mobile, WEST, GSM0);
    write(1);
    network.set_link("wlan0", true);
    wait_below(&mobile, WEST, WLAN0);
    write(2);
    assert_eq!(bindings(&home), [(HOME, REGIONAL_WEST)], "within the domain nobody has to be told");
    assert!(!GSM0.contains(bindings(&west)[0].1) && GSM0.contains(on_link));
    network.set_link("gsm0", false);
    network.set_link("wlan0", false);
    wait_below(&mobile, EAST, LTE0);
    write(3);
    assert_eq!(bindings(&home), [(HOME, REGIONAL_EAST)]);
    network.set_link("wlan0", true);
    wait_below(&mobile, WEST, WLAN0);
    write(4);
    drop(clients);
    for received in received {
        assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    }
    // How much of the data travels while it is in which domain is the machine's affair.
    for (agent, least) in [(&mobile, 50), (&west, 1), (&east, 1)] {
        for name in ["packets-tunnelled-in", "packets-tunnelled-out"] {
            assert!(count(agent, name) >= least, "{name}: {:#?}", status(agent));
        }
    }
    assert_eq!(problems.map(|problems| problems.heard()), [0; 5], "everybody understands what comes");
    mobile.close().unwrap();
    for agent in [west, east, home] {
        agent.close().unwrap();
    }
    for (host, before) in network.hosts().into_iter().zip(&before) {
        // `gsm0` is down.
        assert_as_it_was_but_for(host, before, |line| {
            line.contains("2001:db8:101:") || line.contains("::/0")
        });
    }
    let Some(capture) = capture else {
        return skip("tshark is not installed: nobody else reads the packets");
    };
    let file = capture.finish();
    assert_eq!(file.frames(MALFORMED), "");
    let nested = format!("ipv6.src == {MAP_WEST} && ipv6.src == {HA} && ipv6.dst == {REGIONAL_WEST} && tcp");
    assert!(!file.frames(&nested).is_empty(), "two tunnels around what comes");
    let nested = format!("ipv6.dst == {MAP_WEST} && ipv6.src == {REGIONAL_WEST} && ipv6.dst == {HA} && tcp");
    assert!(!file.frames(&nested).is_empty(), "and around what leaves");
    assert!(file.frames("mip6.mhtype").contains("Binding Update"));
}

/// Headers of route optimisation inside the tunnel to the anchor point.
#[test]
fn a_connection_takes_the_direct_way_through_the_anchor_point() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Domains::new(realm);
    network.wait_for_addresses();
    let problems = network.hosts().map(Problems::listen);
    let home = network.home_agent();
    let west = network.anchor_point(MAP_WEST, None);
    let correspondent = network.correspondent_node();
    let mut setup = network.mobile_setup();
    setup.mobile.config.route_optimization = Some(RouteOptimizationConfig::default());
    let mobile = network.mobile_node(setup);
    wait_below(&mobile, WEST, WLAN0);
    let sent = pattern(600_000);
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let echo = start(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut back = peer.try_clone().unwrap();
        std::io::copy(&mut peer, &mut back).unwrap();
    });
    let client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let exchange = |range: std::ops::Range<usize>| {
        let part = sent[range].to_vec();
        let (mut writer, mut reader) = (client.try_clone().unwrap(), client.try_clone().unwrap());
        let mut got = vec![0; part.len()];
        let expected = part.clone();
        let writing = start(move || writer.write_all(&part).unwrap());
        reader.read_exact(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == expected, "what came back is what was sent");
    };
    exchange(0..1000);
    wait_until(&correspondent, "told of the regional address", |status| {
        status.bindings.iter().any(|binding| (binding.home_address, binding.care_of) == (HOME, REGIONAL_WEST))
    });
    exchange(1000..300_000);
    network.set_link("wlan0", false);
    wait_below(&mobile, WEST, GSM0);
    exchange(300_000..600_000);
    assert_eq!(bindings(&home), [(HOME, REGIONAL_WEST)]);
    assert_eq!(bindings(&correspondent), [(HOME, REGIONAL_WEST)]);
    for agent in [&mobile, &correspondent] {
        for name in ["packets-optimised-in", "packets-optimised-out"] {
            assert!(count(agent, name) > 50, "{name}: {:#?}", status(agent));
        }
    }
    assert_eq!(problems.map(|problems| problems.heard()), [0; 5], "everybody understands what comes");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    echo.join().unwrap();
    drop(west);
}

#[test]
fn an_anchor_point_sends_again_what_an_outage_within_its_domain_has_cost_a_download() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Domains::new(realm);
    network.wait_for_addresses();
    let home = network.home_agent();
    let west = network.anchor_point(MAP_WEST, Some(replay(Place::HomeAgent)));
    let mobile = network.mobile_node(network.mobile_setup());
    wait_below(&mobile, WEST, WLAN0);
    let sent = pattern(1_000_000);
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let (first, rest) = sent.split_at(sent.len() / 2);
    client.write_all(first).unwrap();
    for name in ["lte0", "gsm0", "wlan0"] {
        network.set_link(name, false);
    }
    let rest = rest.to_vec();
    let writing = start(move || client.write_all(&rest).unwrap());
    wait_for_back_off(&network.correspondent, SocketAddr::from((HOME, 80)));
    network.set_link("gsm0", true);
    writing.join().unwrap();
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    assert_eq!(bindings(&home), [(HOME, REGIONAL_WEST)]);
    let after = west.status();
    for name in ["assist-kept", "assist-replayed"] {
        assert!(counter(&after, name) > 0, "{name}: {:#?}", after.counters);
    }
    let flow = &after.assist.unwrap().flows[0];
    assert_eq!((flow.home_address, flow.port, flow.peer), (HOME.into(), 80, CORRESPONDENT.into()));
}

/// RFC 5380 section 7.1: who does not answer is left.
#[test]
fn a_mobile_node_does_without_an_anchor_point_that_does_not_answer() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Domains::new(realm);
    network.wait_for_addresses();
    let home = network.home_agent();
    let mut setup = network.mobile_setup();
    setup.patience = 1;
    let mobile = network.mobile_node(setup);
    let registered = wait_registered(&mobile, "wlan0").registration.unwrap();
    assert_eq!(registered.anchor_point, None, "{registered:?}");
    assert!(WLAN0.contains(registered.care_of.unwrap()), "{registered:?}");
    assert_eq!(bindings(&home), [(HOME, registered.care_of.unwrap())]);
}
