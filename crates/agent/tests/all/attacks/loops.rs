//! Tunnels and routes of a home agent and a foreign agent that lead to each other.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::abroad::{Abroad, STATIONS, VISITS, ask_to_visit};
use crate::support::ethernet::FA;
use crate::support::registration::{Asked, register};
use crate::support::*;
use careof_agent::{Device, HomeNetwork, HomeSetup, Hooks, HostOptions, MultipathSetup, Setup, Status};
use careof_lab::{Clock, IcmpSocket};
use careof_mobility::v4::{HomeAgentConfig, InterfaceId, Prefix, ServedMobileNode};

fn count(status: &Status, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

/// Packets put into an agent's tunnels.
fn packets_out(agent: &Running) -> u64 {
    agent.status().tunnels.iter().map(|tunnel| tunnel.packets_out).sum()
}

/// A home agent of one mobile node, with this address.
fn home_setup_of(address: Ipv4Addr, served: Ipv4Addr, home_network: HomeNetwork) -> HomeSetup {
    HomeSetup {
        config: HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(served, security())],
            advertisements: None,
            ..HomeAgentConfig::new(address, Prefix::new(served, 24), InterfaceId(0))
        },
        devices: vec![Device::new(0, "up0")],
        home_network,
        host: HostOptions::default(),
        assist: None,
        multipath: MultipathSetup::default(),
    }
}

/// Has a mobile node visit by hand.
fn visit(foreign: &Running, from: &Udp, agent: Ipv4Addr, (home_address, home_agent): (Ipv4Addr, Ipv4Addr)) {
    let clock = Clock::start();
    let is_there =
        |status: &Status| status.visitors.iter().any(|visitor| visitor.home_address == home_address);
    while !is_there(&foreign.status()) {
        assert!(clock.now().since_start() < PATIENCE, "{:#?}", foreign.status());
        ask_to_visit(from, agent, (home_address, home_agent), Vec::new());
        sleep(SILENCE);
    }
}

#[test]
fn a_visitor_whose_host_is_its_home_agents_has_a_datagram_go_round_until_its_time_is_up() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Abroad::new(realm);
    let home = Running::open(&world.home, Setup::Home(home_setup()), world.clock, Hooks::default());
    let foreign = world.foreign_agent(world.foreign_setup());
    // Who visits sends from the home agent's host: what is delivered to it there goes into the tunnel again.
    let socket = udp(&world.home, STATIONS[2], 0);
    visit(&foreign, &socket, VISITS[2], (HOME, HA));
    let ended = world.correspondent.run(|| IcmpSocket::open(&[11])).unwrap().unwrap();
    let forger = Forger::at(&world.correspondent, CORRESPONDENT);
    // The answer to the registration goes round as well.
    let settled = || {
        let mut before = packets_out(&home);
        loop {
            sleep(SILENCE);
            let now = packets_out(&home);
            if now == before {
                return now;
            }
            before = now;
        }
    };
    let before = settled();
    for n in 1..=5 {
        forger.send(&udp_datagram((CORRESPONDENT, n), (HOME, 9), b"round and round"));
    }
    // Whoever takes the last of its time says so.
    let (clock, mut heard) = (Clock::start(), 0);
    while heard < 5 {
        assert!(clock.now().since_start() < PATIENCE, "{heard} have ended");
        let mut buffer = [0; 2048];
        while ended.receive(&mut buffer).unwrap().is_some() {
            heard += 1;
        }
        sleep(Duration::from_millis(5));
    }
    let rounds = settled() - before;
    // Each of the two hosts takes one of the 64.
    assert!((5..=5 * 32).contains(&rounds), "{rounds} rounds");
    assert_eq!(packets_out(&foreign), 0);
}

#[test]
fn what_a_visitor_sends_to_itself_is_wrapped_once_by_each_agent() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Abroad::new(realm);
    let home = Running::open(&world.home, Setup::Home(home_setup()), world.clock, Hooks::default());
    let foreign = world.foreign_agent(world.foreign_setup());
    visit(&foreign, &udp(&world.mobile, STATIONS[0], 0), VISITS[0], (HOME, HA));
    let before = (packets_out(&home), packets_out(&foreign));
    let forger = Forger::at(&world.mobile, STATIONS[0]);
    for n in 1..=5 {
        forger.send(&udp_datagram((HOME, n), (HOME, 9), b"to myself"));
    }
    let all =
        |status: &Status| status.tunnels.iter().map(|tunnel| tunnel.packets_out).sum::<u64>() >= before.0 + 5;
    home.wait_until("wrapped", all);
    sleep(SILENCE);
    assert_eq!((packets_out(&home) - before.0, packets_out(&foreign) - before.1), (5, 5));
}

#[test]
fn a_reverse_tunnel_whose_exit_is_reached_by_a_tunnel_back_ends_where_that_begins() {
    const OTHER: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 5);
    let Some(realm) = realm_or_skip() else { return };
    let world = Abroad::new(realm);
    // The visitor's home agent is on the correspondent's host, behind that of another home agent.
    let far = Setup::Home(home_setup_of(CORRESPONDENT, OTHER, HomeNetwork::Routed));
    let far = Running::open(&world.correspondent, far, world.clock, Hooks::default());
    let near = Setup::Home(home_setup_of(HA, CORRESPONDENT, HomeNetwork::Link));
    let near = Running::open(&world.home, near, world.clock, Hooks::default());
    let foreign = world.foreign_agent(world.foreign_setup());
    let socket = udp(&world.mobile, STATIONS[0], 0);
    visit(&foreign, &socket, VISITS[0], (OTHER, CORRESPONDENT));
    // That other one serves the address of the first, which is said to be where the visitor is.
    let asker = udp(&world.home, STATIONS[2], 0);
    assert_eq!(register(&asker, Asked::new(CORRESPONDENT, FA)), 0);
    let before = packets_out(&foreign);
    let forger = Forger::at(&world.mobile, STATIONS[0]);
    for n in 1..=5 {
        forger.send(&udp_datagram((OTHER, n), (Ipv4Addr::new(203, 0, 113, 9), 9), b"round and round"));
    }
    // What comes from the care-of address is not sent back there (RFC 2003 section 3.2, RFC 5944 section 4.2.3).
    near.wait_until("ended", |status| count(status, "packets-looping") >= 5);
    sleep(SILENCE);
    assert_eq!((packets_out(&foreign) - before, packets_out(&near)), (5, 0));
    assert_eq!(count(&near.status(), "packets-looping"), 5);
    assert_eq!(packets_out(&far), 0);
    // Nor is there a visitor with the address of another's home agent, to which it would be delivered.
    let denied = count(&foreign.status(), "denied-65");
    ask_to_visit(&socket, VISITS[0], (CORRESPONDENT, HA), Vec::new());
    foreign.wait_until("refused", |status| count(status, "denied-65") > denied);
    assert_eq!(foreign.status().visitors.len(), 1);
}
