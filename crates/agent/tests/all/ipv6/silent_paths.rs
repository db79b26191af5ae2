//! A path goes silent beyond its router: no link goes, and no router; the mobile node finds out.

use std::io::{Read, Write};
use std::net::IpAddr;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, start};
use careof_agent::{Ipv6MobileSetup, Status};
use careof_lab::{Host, set_sysctl};
use careof_mobility::{Notice, Selection};

fn watching(network: &Network, selection: Selection) -> Ipv6MobileSetup {
    let mut setup = network.mobile_setup();
    setup.config.report_paths = true;
    setup.config.path_monitor = true;
    setup.config.selection = selection;
    setup
}

fn state(status: &Status, interface: &str) -> &'static str {
    let found = status.interfaces.iter().find(|found| found.name == interface).expect("an interface");
    found.path.as_ref().expect("paths are watched").state
}

/// A router passes nothing on from now on, or does again; it still advertises itself.
fn forward(router: &Host, on: bool) {
    let value = if on { "1" } else { "0" };
    router.run(move || set_sysctl("net.ipv6.conf.all.forwarding", value)).unwrap().unwrap();
}

/// A download from the correspondent node in two halves; what is done in between is `meanwhile`.
fn download(network: &Network, meanwhile: impl FnOnce()) {
    let sent = pattern(600_000);
    let listener = network.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = {
        let sent = sent.clone();
        start(move || listener.accept().unwrap().0.write_all(&sent).unwrap())
    };
    let mut client = network.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    assert_eq!(client.local_addr().unwrap().ip(), HOME);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = vec![0; 100_000];
    client.read_exact(&mut got).unwrap();
    meanwhile();
    client.read_to_end(&mut got).unwrap();
    server.join().unwrap();
    assert!(got == sent, "what arrived is what was sent");
}

fn agents(network: &Network, selection: Selection) -> (Running, Running) {
    wait_for_addresses(&network.mobile);
    let home = network.home_agent(security());
    // Of two links the node takes the one that it is told of first, and stays there for as long as `hold` is.
    network.set_link("gsm0", false);
    let mobile = network.mobile_node(watching(network, selection));
    if selection == Selection::Manual {
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    }
    wait_registered(&mobile, "wlan0");
    network.set_link("gsm0", true);
    (home, mobile)
}

#[test]
fn a_transfer_over_ipv6_goes_on_over_the_other_path_when_the_one_in_use_dies_in_silence() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let hold = std::time::Duration::from_secs(600);
    let (home, mobile) = agents(&network, Selection::Preferred { hold });
    for interface in ["wlan0", "gsm0"] {
        mobile.wait_until("known to answer", |status| state(status, interface) == "alive");
    }
    download(&network, || {
        forward(&network.west, false);
        wait_registered(&mobile, "gsm0");
    });
    let status = mobile.wait_until("silent", |status| state(status, "wlan0") == "silent");
    assert!(status.interfaces.iter().all(|interface| interface.up), "no link has gone: {status:#?}");
    assert_eq!(status.handovers.last().expect("a handover").reason, "path-silent");
    // How much of that came before the path died is the machine's affair; this comes by the other one.
    download(&network, || ());
    let status = mobile.status();
    // Both ends tell what has passed in which tunnel.
    let own = status.registration.unwrap().care_of.unwrap();
    let tunnel = status.tunnels.iter().find(|tunnel| tunnel.here == own).expect("the tunnel in use");
    assert_eq!(tunnel.there, IpAddr::V6(HA));
    let at_home = home.with(|agent| agent.status()).tunnels;
    let same = at_home.iter().find(|tunnel| tunnel.there == own).expect("its other end");
    for bytes in [tunnel.bytes_in, same.bytes_out] {
        assert!(bytes > 100_000, "{tunnel:?} {same:?}");
    }
    // It answers again, and is not relied on before it has for long enough.
    forward(&network.west, true);
    let status = mobile.wait_until("back", |status| state(status, "wlan0") == "alive");
    assert_eq!(status.registration.unwrap().interface.as_deref(), Some("gsm0"));
}

#[test]
fn a_path_of_ipv6_that_is_back_after_a_silence_is_registered_again() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    let (home, mobile) = agents(&network, Selection::Manual);
    mobile.wait_until("known to answer", |status| state(status, "wlan0") == "alive");
    download(&network, || {
        forward(&network.west, false);
        let status = mobile.wait_until("silent", |status| state(status, "wlan0") == "silent");
        assert_eq!(status.registration.unwrap().interface.as_deref(), Some("wlan0"), "its owner chooses");
        let accepted = home.counter("registrations-accepted");
        forward(&network.west, true);
        mobile.wait_until("back", |status| state(status, "wlan0") == "alive");
        home.wait_until("told", |status| status.counters["registrations-accepted"] > accepted);
    });
}
