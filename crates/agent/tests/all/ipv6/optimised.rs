//! Straight to the care-of address: route optimisation (RFC 6275 section 4.1).

use std::io::{Read, Write};
use std::net::Ipv6Addr;
use std::time::Duration;

use super::network::*;
use crate::daemons::support::{Capture, find, skip};
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, sleep, start};
use careof_agent::{Hooks, HostOptions, Ipv6CorrespondentSetup, Ipv6Setup};
use careof_lab::{Clock, Netlink};
use careof_mobility::v6::{CorrespondentNodeConfig, Event, RouteOptimizationConfig};

/// What no frame may be. Checksums of TCP are left to the interface, which a capture comes before.
const MALFORMED: &str = "_ws.malformed || icmpv6.checksum.status == \"Bad\"";

/// What Mobile IPv6 says, as tshark puts it.
const MESSAGES: [&str; 6] = [
    "Home Test Init",
    "Care-of Test Init",
    "Home Test",
    "Care-of Test",
    "Binding Update",
    "Binding Acknowledgement",
];

/// How its packets travel: in a tunnel, with a Home Address option, with a type 2 routing header.
const WAYS: [&str; 3] = [
    "ipv6.nxt == 41 && tcp",
    "ipv6.opt.mipv6.home_address == 2001:db8:1::7 && tcp",
    "ipv6.routing.mipv6.home_address == 2001:db8:1::7 && tcp",
];

fn knows(correspondent: &Running, care_of: Ipv6Addr) {
    wait_until(correspondent, &format!("told of {care_of}"), |status| {
        status.bindings.iter().any(|binding| (binding.home_address, binding.care_of) == (HOME, care_of))
    });
}

fn care_of(mobile: &Running, interface: &str) -> Ipv6Addr {
    wait_registered(mobile, interface).registration.unwrap().care_of.unwrap()
}

/// Waits until the mobile node believes that its correspondent knows where it is.
#[track_caller]
fn wait_for_agreement(mobile: &Running) {
    let clock = Clock::start();
    loop {
        let event = mobile.with(|carrier| carrier.poll_ipv6_event());
        if matches!(event, Some((_, Event::Correspondent(change))) if change.correspondent == CORRESPONDENT) {
            return;
        }
        assert!(clock.now().since_start() < PATIENCE, "{:#?}", status(mobile));
        if event.is_none() {
            sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_connection_takes_the_direct_way_and_survives_the_end_of_a_link() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    wait_for_addresses(&network.mobile);
    let before = [&network.home, &network.mobile, &network.correspondent].map(state_of);
    let directory = tempfile::tempdir().unwrap();
    // On the first of the mobile node's ways everything comes along.
    let is_there = find("tshark").is_some();
    let capture = is_there.then(|| Capture::start(&network.home, "west0", directory.path()));
    let problems = [&network.home, &network.mobile, &network.correspondent].map(Problems::listen);
    let home = network.home_agent(security());
    let correspondent = network.correspondent_node();
    let mut setup = network.mobile_setup();
    setup.config.route_optimization = Some(RouteOptimizationConfig::default());
    let mobile = network.mobile_node(setup);
    let first = care_of(&mobile, "wlan0");

    // An echo: what the correspondent sends comes back, so that both directions carry the same.
    let sent = pattern(1_500_000);
    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let echo = start(move || {
        let (mut peer, from) = listener.accept().unwrap();
        let mut back = peer.try_clone().unwrap();
        std::io::copy(&mut peer, &mut back).unwrap();
        from.ip()
    });
    let mut client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = Vec::new();
    let mut exchange = |range: std::ops::Range<usize>| {
        let part = sent[range].to_vec();
        let len = part.len();
        let mut writer = client.try_clone().unwrap();
        let writing = start(move || writer.write_all(&part).unwrap());
        let start = got.len();
        got.resize(start + len, 0);
        client.read_exact(&mut got[start..]).unwrap();
        writing.join().unwrap();
    };
    // The first packets come through the tunnel, which is how the mobile node learns of its correspondent.
    exchange(0..1000);
    knows(&correspondent, first);
    wait_for_agreement(&mobile);
    exchange(1000..500_000);
    let (there, here) = (status(&correspondent).counters, status(&mobile).counters);
    for counters in [&there, &here] {
        assert!(
            counters["packets-optimised-in"] > 100 && counters["packets-optimised-out"] > 100,
            "{there:#?} {here:#?}"
        );
    }
    network.set_link("wlan0", false);
    let second = care_of(&mobile, "gsm0");
    exchange(500_000..700_000);
    knows(&correspondent, second);
    exchange(700_000..1_500_000);
    let after = status(&mobile).counters;
    assert!(after["packets-optimised-in"] > here["packets-optimised-in"] + 100, "{after:#?}");
    assert!(after["packets-optimised-out"] > here["packets-optimised-out"] + 100, "{after:#?}");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(echo.join().unwrap(), CORRESPONDENT);
    assert!(got == sent, "what came back is what was sent");
    assert_eq!(problems.map(|problems| problems.heard()), [0; 3], "everybody understands what comes");

    network.set_link("wlan0", true);
    care_of(&mobile, "wlan0");
    mobile.close().unwrap();
    correspondent.close().unwrap();
    home.close().unwrap();
    for (host, before) in [&network.home, &network.mobile, &network.correspondent].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
    let Some(capture) = capture else {
        return skip("tshark is not installed: nobody else reads the packets");
    };
    let file = capture.finish();
    assert_eq!(file.frames(MALFORMED), "");
    let messages = file.frames("mip6.mhtype");
    for message in MESSAGES {
        assert!(messages.contains(message), "no {message} among\n{messages}");
    }
    for way in WAYS {
        assert!(!file.frames(way).is_empty(), "no frame of {way}");
    }
}

#[test]
fn a_correspondent_node_says_which_address_its_host_lacks() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let lost = on(9, 7);
    let setup =
        Ipv6CorrespondentSetup { config: CorrespondentNodeConfig::new(lost), host: HostOptions::for_ipv6() };
    let setup = Ipv6Setup::Correspondent(setup);
    let node = Running::open(&network.correspondent, setup, network.clock, Hooks::default());
    node.wait_until("missed", |status| status.missing_addresses == [lost]);
    let given = network.correspondent.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("up0")?;
        netlink.add_address(index, lost.into(), 64)
    });
    given.unwrap().unwrap();
    node.wait_until("found", |status| status.missing_addresses.is_empty());
    node.close().unwrap();
}
