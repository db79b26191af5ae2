//! The daemon as a service: it ends without a trace, takes new configurations, and answers whoever asks.

use std::os::unix::net::UnixStream;

use careof_base::Duration;
use nix::sys::signal::Signal;

use super::support::{Flood, HOME_AGENT, Network, Snapshot, pause, realm_or_skip, wait_until};

#[test]
fn an_agent_that_is_asked_to_end_leaves_everything_as_it_was() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let snapshots = [&network.home, &network.mobile].map(Snapshot::of);
    let mut home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    assert_eq!(home.bindings(), 1);
    let host = &network.mobile;
    assert_ne!(Snapshot::of(host), snapshots[1], "the comparison compares nothing");
    // A handover leaves its own traces.
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");
    network.set_carrier(&network.wlan, true);
    mobile.wait_for_registration("wlan0");

    mobile.terminate();
    assert_eq!(home.bindings(), 0, "the mobile node has deregistered: {}", home.status());
    snapshots[1].assert_unchanged(host);
    home.terminate();
    snapshots[0].assert_unchanged(&network.home);
}

#[test]
fn an_agent_that_was_killed_puts_the_host_in_order_when_it_is_back() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let before = Snapshot::of(&network.mobile);
    let _home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    mobile.kill();
    mobile.start_again(&network.mobile);
    mobile.wait_for_registration("wlan0");
    mobile.terminate();
    before.assert_unchanged(&network.mobile);
}

#[test]
fn a_broken_file_changes_nothing_and_a_whole_one_what_it_says() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let mut home = network.start_home_agent();
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");

    home.configure("role = \"home\"\naddress = \"not an address\"\n");
    home.signal(Signal::SIGHUP);
    wait_until("the daemon complains", || home.log().contains("not an address"));
    assert_eq!(home.bindings(), 1);
    home.assert_running();
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");

    home.configure(&network.home_configuration("max_lifetime = \"30 s\""));
    home.signal(Signal::SIGHUP);
    network.set_carrier(&network.wlan, true);
    mobile.wait_for_registration("wlan0");
    wait_until("the shorter lifetime is granted", || {
        home.status()["bindings"][0]["lifetime_s"].as_u64().is_some_and(|lifetime| lifetime <= 30)
    });
    home.assert_running();
}

#[test]
fn many_who_ask_at_once_are_answered_under_load() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 2_000_000);
    let home = network.start_home_agent();
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    network.hurry();
    let flood = Flood::start(&network.correspondent, HOME_AGENT, 5_000);
    let download = web.download(&network.mobile, "film");
    // Some who connect and say nothing.
    let _silent: Vec<_> = (0..20).map(|_| UnixStream::connect(home.socket()).unwrap()).collect();
    for _ in 0..5 {
        let askers: Vec<_> = (0..8).map(|_| home.asker().spawn()).collect();
        for asker in askers {
            let output = asker.unwrap().wait_with_output().unwrap();
            assert!(output.status.success());
            serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
        }
        pause(Duration::from_millis(20));
    }
    download.finish();
    drop(flood);
    assert_eq!(home.bindings(), 1);
}

#[test]
fn the_network_of_these_tests_carries_a_download_without_agents() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 100_000);
    web.fetch(&network.mobile, "film");
    network.set_up(&network.wlan, false);
    web.fetch(&network.mobile, "film");
    let requests = web.log();
    assert!(requests.contains("10.1.0.2 - - ") && requests.contains("10.2.0.2 - - "), "{requests}");
}
