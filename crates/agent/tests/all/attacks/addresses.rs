//! Addresses of the agents' own hosts: as care-of addresses, and when they are gone.

use std::net::Ipv4Addr;

use crate::daemons::support as daemons;
use crate::support::ethernet::{Ethernet, FA_LINK, ip};
use crate::support::registration::{Asked, register};
use crate::support::*;
use careof_agent::Hooks;
use careof_mobility::v4::{Notice, ServedMobileNode};
use careof_wire::mip4::RequestFlags;

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
/// Of the home agent's host, beside the home agent's own.
const ITS_OTHERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(192, 0, 2, 1)];

#[test]
fn tunnels_to_other_addresses_of_the_home_agents_host_end_there() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let mut setup = home_setup();
    setup.config.mobile_nodes = [HOME, OTHER].map(|node| ServedMobileNode::new(node, security())).to_vec();
    let home = world.home_agent(setup, Hooks::default());
    let socket = udp(&world.correspondent, CORRESPONDENT, 0);
    let encapsulations = [RequestFlags::default(), RequestFlags::MINIMAL_ENCAPSULATION, RequestFlags::GRE];
    for (round, flags) in (1..).zip(encapsulations) {
        for (node, care_of) in [HOME, OTHER].into_iter().zip(ITS_OTHERS) {
            let flags = flags.with(RequestFlags::REVERSE_TUNNELING);
            assert_eq!(register(&socket, Asked { flags, ..Asked::new(node, care_of) }), 0);
            for _ in 0..10 {
                socket.send_to(b"once", (node, 9)).unwrap();
            }
        }
        // Each of them goes in once, comes out, and is nobody's: a mobile node on this host would have it.
        let status =
            home.wait_until("all have come out", |status| status.counters["packets-not-ours"] >= round * 20);
        let into = |there: Ipv4Addr| -> u64 {
            status
                .tunnels
                .iter()
                .filter(|tunnel| tunnel.there == there)
                .map(|tunnel| tunnel.packets_out)
                .sum()
        };
        // A tunnel of another kind counts anew.
        assert_eq!(ITS_OTHERS.map(into), [10; 2], "{status:#?}");
        assert_eq!(status.counters["packets-not-ours"], 20 * round);
    }
    // Nothing goes round on its own.
    sleep(SILENCE);
    assert_eq!(home.counter("packets-not-ours"), 60);
}

#[test]
fn a_home_agent_that_loses_its_address_says_so_and_serves_when_it_is_back() {
    let Some(realm) = daemons::realm_or_skip(&[]) else { return };
    let network = daemons::Network::new(realm);
    let configuration = network.home_configuration("[metrics]\nlisten = \"127.0.0.1:0\"");
    let home = daemons::Daemon::start(&network.home, network.directory(), "home", &configuration);
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    assert_eq!(home.status()["missing_addresses"].as_array().map(Vec::len), Some(0));

    assert!(ip(&network.home, "address del 192.0.2.1/24 dev eth0"));
    daemons::wait_until("it says so", || home.status()["missing_addresses"][0] == "192.0.2.1");
    daemons::wait_until("its log says what helps", || {
        home.log().lines().any(|line| line.contains("192.0.2.1") && line.contains("ip address add"))
    });
    let metrics: std::net::SocketAddr = home.status()["metrics"].as_str().unwrap().parse().unwrap();
    let scraped = super::storms::scrape(&network.home, metrics);
    assert!(scraped.contains("\ncareof_addresses_missing 1.0\n"), "{scraped}");
    assert_eq!(home.bindings(), 1, "what it has promised holds");

    assert!(ip(&network.home, "address add 192.0.2.1/24 dev eth0"));
    assert!(ip(&network.home, "route add default via 192.0.2.254 dev eth0"));
    daemons::wait_until("it has it again", || {
        home.status()["missing_addresses"].as_array().is_some_and(Vec::is_empty)
    });
    daemons::wait_until("its log says so", || home.log().contains("has all addresses of the agent again"));
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");
}

#[test]
fn a_foreign_agent_that_loses_an_address_says_which_and_serves_when_it_is_back() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let _home = world.home_agent();
    let foreign = world.foreign_agent(world.foreign_setup());
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let care_of = mobile.status().registration.unwrap().care_of.unwrap();
    for (lost, gone, back) in [
        (care_of, "address del 172.16.0.2/24 dev up0", "address add 172.16.0.2/24 dev up0"),
        (FA_LINK.into(), "address del 10.7.0.1/24 dev visit0", "address add 10.7.0.1/24 dev visit0"),
    ] {
        assert!(ip(&world.foreign, gone));
        foreign.wait_until("missed", |status| status.missing_addresses == [lost]);
        assert!(ip(&world.foreign, back));
        foreign.wait_until("found again", |status| status.missing_addresses.is_empty());
    }
    assert!(ip(&world.foreign, "route replace default via 172.16.0.1 dev up0"));
    let accepted = foreign.counter("registrations-accepted");
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.with(|node| node.switch_to("eth0", Notice::None)).unwrap();
    mobile.wait_registered("eth0");
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    assert!(foreign.counter("registrations-accepted") > accepted);
}
