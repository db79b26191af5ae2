//! Fast handovers (RFC 5568): the access routers of both links send on, and keep, what comes while the mobile node is on neither.

use std::cell::Cell;
use std::io::Write;
use std::net::Ipv6Addr;
use std::process::Command;
use std::time::Duration;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, Udp, pattern, realm_or_skip, receive_all, sleep};
use careof_agent::{
    AccessPointSetup, Device, FastHandoverSetup, Hooks, HostOptions, Ipv6AccessRouterSetup, Ipv6MobileSetup,
    Ipv6Setup,
};
use careof_lab::Host;
use careof_mobility::InterfaceId;
use careof_mobility::v6::access_router::{
    AccessLink, AccessRouterConfig, MobileNodeKey, NeighborRouter, RouterSecurity,
};
use careof_mobility::v6::fast_handover::{CurrentRouter, FastHandoverConfig};
use careof_mobility::v6::{Prefix, SecurityAssociation};
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Spi;

const WEST: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 1, 1]);
const EAST: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 2, 1]);
/// The mobile node's station, the same on all its links.
const STATION: [u8; 6] = [2, 0, 0, 0, 0, 7];

fn security_of(name: &str) -> SecurityAssociation {
    let key = format!("{name} and sixteen more bytes");
    SecurityAssociation::hmac_sha1(Spi(300), key.into_bytes()).unwrap()
}

/// The care-of address that is formed on a link.
fn care_of(link: Prefix) -> Ipv6Addr {
    let [a, b, c, d, e, f] = STATION.map(u16::from);
    let identifier = [(a ^ 2) << 8 | b, c << 8 | 0xff, 0xfe00 | d, e << 8 | f];
    let [one, two, three, four] = identifier;
    link.with_interface_of(Ipv6Addr::new(0, 0, 0, 0, one, two, three, four))
}

/// How patient routers are: a test asserts what is true on the busiest machine.
fn router(network: &Network, host: &Host, link: Prefix) -> Running {
    let (own, there) = if link == WLAN { ((WLAN, WEST), (GSM, EAST)) } else { ((GSM, EAST), (WLAN, WEST)) };
    let address = |link: Prefix| link.with_interface_of(on(0, 1));
    let mut config =
        AccessRouterConfig::new(vec![AccessLink::new(InterfaceId(0), address(own.0), own.0, own.1)]);
    config.neighbors.push(NeighborRouter {
        address: address(there.0),
        link_layer_address: there.1,
        prefix: there.0,
        access_points: vec![there.1],
        fast_handover: true,
        security: RouterSecurity::Keyed(security_of("both routers")),
    });
    let name = if link == WLAN { "west" } else { "east" };
    config.mobile_nodes.push(MobileNodeKey { care_of: care_of(link), security: security_of(name) });
    config.proxy_lifetime = PATIENCE;
    config.detached_lifetime = PATIENCE;
    let devices = vec![Device::new(0, "down0")];
    let setup = Ipv6AccessRouterSetup { config, devices, host: HostOptions::for_ipv6() };
    Running::open(host, Ipv6Setup::AccessRouter(Box::new(setup)), network.clock, Hooks::default())
}

fn mobile_setup(network: &Network) -> Ipv6MobileSetup {
    let point = |id: u16, link: Prefix, station, name| AccessPointSetup {
        station,
        router: CurrentRouter {
            interface: InterfaceId(id),
            address: link.with_interface_of(on(0, 1)),
            link_local: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
            care_of: care_of(link),
            security: security_of(name),
        },
    };
    let mut config = FastHandoverConfig::new(LinkLayerAddress(STATION));
    config.lifetime = careof_wire::mip6::Lifetime::from_units(10);
    let fast_handover = FastHandoverSetup {
        config,
        access_points: vec![point(0, WLAN, WEST, "west"), point(1, GSM, EAST, "east")],
        is_buffered: true,
    };
    Ipv6MobileSetup { fast_handover: Some(Box::new(fast_handover)), ..network.mobile_setup() }
}

/// Gives an interface of the mobile node, which is down, the link-layer address of its station.
fn give_station(network: &Network, name: &str) {
    let [a, b, c, d, e, f] = STATION;
    let mut command = Command::new("ip");
    let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    command.args(["link", "set", "dev", name, "address", &address]);
    assert!(network.mobile.spawn(command).unwrap().wait().unwrap().success(), "{name}");
}

/// Routers and a mobile node that is registered by `wlan0`, and has no other link. The interfaces have one link-layer address, as RFC 5568
/// has it.
fn start(network: &Network) -> [Running; 4] {
    for name in ["gsm0", "wlan0"] {
        network.set_link(name, false);
        if network.has_stations() {
            give_station(network, name);
        }
    }
    for (name, link) in [("wlan0", WLAN), ("gsm0", GSM)] {
        let formed = network.mobile.run(move || {
            let mut netlink = careof_lab::Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.autoconfigure_as(index, care_of(link))
        });
        formed.unwrap().unwrap();
    }
    let home = network.home_agent(security());
    let west = router(network, &network.west, WLAN);
    let east = router(network, &network.east, GSM);
    let mobile = network.mobile_node(mobile_setup(network));
    network.set_link("wlan0", true);
    wait_registered(&mobile, "wlan0");
    // A link that comes up may flap; from here on it is as the kernel says now.
    mobile.with(|carrier| carrier.ask_links()).unwrap();
    sleep(Duration::from_millis(200));
    let registered = wait_registered(&mobile, "wlan0").registration.unwrap();
    assert_eq!(registered.care_of, Some(care_of(WLAN)));
    [home, west, east, mobile]
}

fn count(agent: &Running, name: &str) -> u64 {
    status(agent).counters[name]
}

#[track_caller]
fn wait_for(agent: &Running, name: &'static str, least: u64) {
    wait_until(agent, name, |status| status.counters[name] >= least);
}

/// Prepares a handover to an interface, again where a busy machine's answers came too late, until so many have been prepared.
fn prepare(mobile: &Running, interface: &'static str, least: u64) {
    let failed = Cell::new(None);
    wait_until(mobile, "handovers-prepared", |status| {
        let failures = status.counters["handovers-not-prepared"];
        if failed.replace(Some(failures)) != Some(failures) {
            mobile.with(|carrier| carrier.prepare_handover(interface)).unwrap();
        }
        status.counters["handovers-prepared"] >= least
    });
}

/// Prepared (predictive): what comes while the mobile node is on no link waits at the new router, and comes once. In which order is the
/// kernel's affair, which may have to resolve the mobile node's address first.
#[test]
fn nothing_is_lost_in_a_handover_that_was_prepared() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let [home, west, east, mobile] = start(&network);
    let problems = [&network.west, &network.east, &network.mobile].map(Problems::listen);
    let receiver = network.mobile.run(|| Udp::bind((HOME, 7000))).unwrap().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = network.correspondent.run(|| Udp::bind((CORRESPONDENT, 7000))).unwrap().unwrap();
    let mut number = 0_u32;
    let mut send = |packets: u32| {
        for _ in 0..packets {
            sender.send_to(&number.to_be_bytes(), (HOME, 7000)).unwrap();
            number += 1;
            sleep(Duration::from_millis(1));
        }
    };
    let receive = |numbers: std::ops::Range<u32>| {
        let mut got = Vec::new();
        for _ in numbers.clone() {
            let mut number = [0; 4];
            let received = receiver.recv(&mut number);
            assert_eq!(received.ok(), Some(4), "of {numbers:?} came {got:?}, {:#?}", status(&mobile));
            got.push(u32::from_be_bytes(number));
        }
        let in_order = got.is_sorted();
        got.sort_unstable();
        assert_eq!(got, numbers.collect::<Vec<_>>(), "in order: {in_order}");
    };
    send(10);
    receive(0..10);
    prepare(&mobile, "gsm0", 1);
    send(20);
    wait_for(&east, "handover-packets-kept", 20);
    network.set_link("wlan0", false);
    send(20);
    wait_for(&east, "handover-packets-kept", 40);
    network.set_link("gsm0", true);
    wait_registered(&mobile, "gsm0");
    receive(10..50);
    send(10);
    receive(50..60);
    assert_eq!(count(&west, "handovers-from-here"), 1);
    assert!(count(&east, "handovers-to-here") >= 1);
    assert!(count(&mobile, "handovers-announced") >= 1);
    for name in ["handover-packets-dropped", "handover-packets-full", "handover-packets-expired"] {
        assert_eq!((count(&west, name), count(&east, name)), (0, 0), "{name}");
    }
    assert_eq!(count(&east, "handover-packets-kept"), count(&east, "handover-packets-released"));
    assert_eq!(problems.map(|problems| problems.heard()), [0; 3], "everybody understands what comes");
    let care_of_there = status(&mobile).registration.unwrap().care_of;
    assert_eq!(care_of_there, Some(care_of(GSM)), "the address it had announced");
    drop(home);
}

/// Unprepared (reactive): the mobile node turns up at the other router, and has what its former router keeps sent on.
#[test]
fn a_connection_survives_a_handover_that_nobody_has_announced_byte_by_byte() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let [_home, west, _east, mobile] = start(&network);
    let sent = pattern(800_000);
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let (first, rest) = sent.split_at(sent.len() / 2);
    client.write_all(first).unwrap();
    // The link layer tells the router that the mobile node has left.
    network.set_link("wlan0", false);
    west.with(|carrier| carrier.care_of_reachable(care_of(WLAN).into(), false)).unwrap();
    network.set_link("gsm0", true);
    wait_registered(&mobile, "gsm0");
    wait_for(&west, "handovers-from-here", 1);
    client.write_all(rest).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    assert!(count(&mobile, "handovers-announced") >= 1, "{:#?}", status(&mobile));
}

/// Back on a link that the mobile node had left a moment ago, where its host has its address still and no router is heard yet: what it has
/// to say to the router that it comes from leaves at the first try.
#[test]
fn who_comes_back_to_a_link_tells_the_router_before_at_once() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Emulated);
    let [_home, west, east, mobile] = start(&network);
    prepare(&mobile, "gsm0", 1);
    network.set_link("wlan0", false);
    network.set_link("gsm0", true);
    wait_registered(&mobile, "gsm0");
    // That it can prepare for the way back says that it knows the router there.
    prepare(&mobile, "wlan0", 2);
    let accepted = count(&east, "registrations-accepted");
    mobile.with(|carrier| carrier.call_off_handover()).unwrap();
    wait_for(&east, "registrations-accepted", accepted + 1);
    let unsent = count(&mobile, "messages-unsent");
    let (announced, departures) =
        (count(&mobile, "handovers-announced"), count(&east, "handovers-from-here"));
    network.set_link("gsm0", false);
    network.set_link("wlan0", true);
    wait_registered(&mobile, "wlan0");
    wait_for(&east, "handovers-from-here", departures + 1);
    assert_eq!(count(&mobile, "handovers-announced"), announced + 1);
    assert_eq!(count(&mobile, "messages-unsent"), unsent, "{:#?}", status(&mobile));
    assert_eq!(count(&west, "handovers-from-here"), 1);
}
