//! Through the home agent: bidirectional tunnelling (RFC 6275 section 4.1).

use std::io::{Read, Write};

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all, start};
use careof_agent::{Error, Hooks, HostOptions, Ipv6HomeSetup, Ipv6Setup};
use careof_mobility::InterfaceId;
use careof_mobility::v6::{HomeAgentConfig, Prefix, SecurityAssociation};
use careof_wire::mip6::Spi;

#[test]
fn connections_of_ipv6_survive_the_end_of_a_link_byte_by_byte() {
    let Some(realm) = realm_or_skip() else { return };
    survive(&Network::new(realm), 2_000_000);
}

/// As in the real world of scenarios: devices without link-layer addresses, whose links go without being taken down.
#[test]
fn connections_of_ipv6_survive_the_end_of_an_emulated_link() {
    let Some(realm) = realm_or_skip() else { return };
    survive(&Network::with(realm, Links::Emulated), 1_000_000);
}

/// Connections in both directions, as many bytes each, while the mobile node loses a link and gets it back.
fn survive(network: &Network, bytes: usize) {
    wait_for_addresses(&network.mobile);
    let before = [&network.home, &network.mobile, &network.correspondent].map(state_of);
    let problems = [&network.home, &network.mobile, &network.correspondent].map(Problems::listen);
    let home = network.home_agent(security());
    let mobile = network.mobile_node(network.mobile_setup());
    let registered = wait_registered(&mobile, "wlan0");
    let care_of = registered.registration.unwrap().care_of.unwrap();
    assert!(WLAN.contains(care_of), "{care_of}");
    let bindings = status_of_bindings(&home);
    assert_eq!(bindings, [(HOME, care_of)]);

    // One connection to the mobile node, at its home address, and one from it, which has that address by itself.
    let sent = pattern(bytes);
    let inbound = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let outbound = network.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let received = [receive_all(inbound), receive_all(outbound)];
    let to_mobile = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    let from_mobile = network.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    assert_eq!(from_mobile.local_addr().unwrap().ip(), HOME);
    let (half, rest) = sent.split_at(sent.len() / 2);
    let mut clients = [to_mobile, from_mobile];
    for client in &mut clients {
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        client.write_all(half).unwrap();
    }
    network.set_link("wlan0", false);
    let registered = wait_registered(&mobile, "gsm0");
    let care_of = registered.registration.unwrap().care_of.unwrap();
    assert!(GSM.contains(care_of), "{care_of}");
    for client in &mut clients {
        client.write_all(rest).unwrap();
    }
    // And back, as soon as the better link is there again.
    network.set_link("wlan0", true);
    wait_registered(&mobile, "wlan0");
    drop(clients);
    for received in received {
        assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    }

    let counters = status(&mobile).counters;
    for name in ["packets-tunnelled-in", "packets-tunnelled-out"] {
        assert!(counters[name] > 500, "{name}: {counters:#?}");
    }
    assert_eq!((counters["packets-optimised-in"], counters["packets-optimised-out"]), (0, 0));
    assert_eq!(problems.map(|problems| problems.heard()), [0; 3], "everybody understands what comes");
    mobile.close().unwrap();
    home.close().unwrap();
    for (host, before) in [&network.home, &network.mobile, &network.correspondent].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

fn status_of_bindings(agent: &crate::support::Running) -> Vec<(std::net::Ipv6Addr, std::net::Ipv6Addr)> {
    status(agent).bindings.iter().map(|binding| (binding.home_address, binding.care_of)).collect()
}

#[test]
fn who_has_another_key_is_not_registered() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let other = SecurityAssociation::hmac_sha1(Spi(256), b"fedcba9876543210".to_vec()).unwrap();
    let home = network.home_agent(other);
    let mobile = network.mobile_node(network.mobile_setup());
    wait_until(&home, "asked", |status| status.counters["dropped-bad-authenticator"] > 1);
    assert!(status(&home).bindings.is_empty());
    let registration = status(&mobile).registration.unwrap();
    assert!(!registration.registered, "{registration:?}");
}

#[test]
fn an_address_that_the_host_has_is_no_home_agents() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let config = HomeAgentConfig::new(on(9, 1), Prefix::new(on(9, 0), 64), InterfaceId(0));
    let setup = Ipv6Setup::Home(Ipv6HomeSetup {
        config,
        home_link: None,
        host: HostOptions::for_ipv6(),
        assist: None,
    });
    let before = state_of(&network.home);
    let refused = Running::try_open(&network.home, setup, network.clock, Hooks::default());
    let Err(error @ Error::AddressOfHost { .. }) = refused else { panic!("its packets would not reach it") };
    assert!(error.to_string().starts_with("2001:db8:9::1 is an address of this host"), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("ip -6 address")));
    assert_as_it_was(&network.home, &before);
}

#[test]
fn what_a_killed_agent_left_is_taken_over_by_the_next() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    wait_for_addresses(&network.mobile);
    let before = [&network.home, &network.mobile].map(state_of);
    let home = network.home_agent(security());
    let mobile = network.mobile_node(network.mobile_setup());
    wait_registered(&mobile, "wlan0");
    mobile.kill();
    home.kill();
    // Without a binding store the home agent begins anew; the mobile node knows nothing either.
    let home = network.home_agent(security());
    let mobile = network.mobile_node(network.mobile_setup());
    wait_registered(&mobile, "wlan0");
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let greeter = start(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let mut client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert_eq!(got, "hello");
    greeter.join().unwrap();
    mobile.with(|node| node.deregister()).unwrap();
    wait_until(&home, "told that it ends", |status| status.bindings.is_empty());
    mobile.close().unwrap();
    home.close().unwrap();
    // Forwarding was switched on by the one that was killed, and nobody has kept that it was off.
    for (host, before) in [&network.home, &network.mobile].into_iter().zip(before) {
        assert_as_it_was_but_for(host, &before, |line| line.contains("/proc/sys"));
    }
}
