//! The link of a neighbour, with daemons as people run them.

use careof_base::{DataRate, Duration};
use serde_json::Value;

use super::multipath::assert_balanced;
use super::support::{
    Daemon, HOME_ADDRESS, IN_CLUSTER, NEIGHBOUR, Network, Snapshot, key, law, realm_or_skip, wait_until,
};

const SEVERAL: &str = "max_bindings_per_node = 8\n[multipath]\n";

/// What two nodes of a cluster have agreed on: a key for advertisements, and one of their own.
fn keys(peer: &str) -> String {
    let key = format!("{:032x}", u128::from_be_bytes(key()));
    format!("trust = \"keys\"\nspi = 300\nkey = \"{key}\"\n{peer}\nspi = 301\nkey = \"{key}\"\n")
}

/// A mobile node with one link of its own, and a cluster.
fn mobile_node(trust: &str) -> String {
    let own = "[[interface]]\nname = \"wlan0\"\n";
    format!("[multipath]\n[multipath.cluster]\ninterface = \"cluster0\"\n{trust}\n{own}")
}

fn relays_in_use(mobile: &Daemon) -> usize {
    mobile.status()["cluster"]["relays"].as_array().unwrap().len()
}

/// What the relay counts for its only ally is what it passed on.
#[track_caller]
fn assert_passed_on(status: &Value) {
    let relay = &status["relay"];
    let ally = &relay["allies"][0];
    assert_eq!(ally["home_address"], HOME_ADDRESS.to_string(), "{status}");
    assert_eq!(ally["client"], IN_CLUSTER.to_string(), "{status}");
    assert_eq!(relay["relayed_packets"], serde_json::json!([ally["packets_in"], ally["packets_out"]]));
    assert_eq!(relay["relayed_bytes"], serde_json::json!([ally["bytes_in"], ally["bytes_out"]]));
    for name in ["dropped-relay-no-ally", "dropped-relay-would-loop", "dropped-relay-over-rate"] {
        assert_eq!(status["counters"][name], 0, "{status}");
    }
}

#[test]
fn a_neighbours_link_carries_a_download_beside_ones_own_and_alone() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let neighbour =
        network.add_neighbour(law(DataRate::from_kilobits_per_second(1500), Duration::from_millis(30), 40));
    let before = [Snapshot::of(&network.mobile), Snapshot::of(&neighbour.host)];
    let web = network.web_server();
    web.offer("film", 4_000_000);
    let home = network.start_home_agent_with(SEVERAL);
    let client = format!("[[client]]\nhome_address = \"{HOME_ADDRESS}\"");
    let mut relay = network.start_relay(&neighbour, &keys(&client));
    let cluster = keys(&format!("[[multipath.cluster.relay]]\naddress = \"{NEIGHBOUR}\""));
    let mut mobile = network.start_mobile_node_with(&mobile_node(&cluster));
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    let status = mobile.status();
    assert_eq!(status["cluster"]["relays"][0]["care_of"], neighbour.link.address.to_string(), "{status}");
    assert_eq!(status["multipath"][0]["paths"][1]["relay"], NEIGHBOUR.to_string(), "{status}");

    let mut download = web.download(&network.mobile, "film");
    download.wait_for_bytes(100_000);
    network.set_silent(&network.wlan, true);
    mobile.wait_for_working_paths(1);
    download.wait_for_bytes(100_000);
    network.set_silent(&network.wlan, false);
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    download.wait_for_bytes(100_000);
    assert_passed_on(&relay.status());
    let page = relay.page();
    assert!(page.contains(&format!("lends {}", neighbour.link.address)), "{page}");

    // It vanishes without a word, and is back.
    relay.kill();
    wait_until("the relay is left", || relays_in_use(&mobile) == 0);
    download.wait_for_bytes(100_000);
    relay.start_again(&neighbour.host);
    wait_until("the relay is used again", || relays_in_use(&mobile) == 1);
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    network.hurry();
    download.finish();

    for status in [home.status(), mobile.status()] {
        assert_balanced(&status);
        let paths = status["multipath"][0]["paths"].as_array().unwrap();
        assert!(paths.iter().all(|path| path["sent_packets"].as_u64().unwrap() > 0), "{status}");
    }
    assert_passed_on(&relay.status());
    assert!(relay.status()["relay"]["relayed_packets"][0].as_u64().unwrap() > 0);
    // Told that it ends, it says so.
    relay.terminate();
    wait_until("the relay is left", || relays_in_use(&mobile) == 0);
    mobile.wait_for_working_paths(1);
    let log = mobile.log();
    for line in ["Relay gained", "nothing is heard of it", "it says so"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "{}", home.status());
    before[0].assert_unchanged(&network.mobile);
    before[1].assert_unchanged(&neighbour.host);
}

#[test]
fn who_was_not_agreed_on_gets_nothing_lent_and_first_use_needs_no_key() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let neighbour =
        network.add_neighbour(law(DataRate::from_megabits_per_second(4), Duration::from_millis(10), 40));
    let web = network.web_server();
    web.offer("film", 600_000);
    let mut home = network.start_home_agent_with(SEVERAL);
    let others = "[[client]]\nhome_address = \"192.0.2.77\"".to_owned();
    let mut relay = network.start_relay(&neighbour, &keys(&others));
    let cluster = keys(&format!("[[multipath.cluster.relay]]\naddress = \"{NEIGHBOUR}\""));
    let mut mobile = network.start_mobile_node_with(&mobile_node(&cluster));
    wait_until("the relay has refused it", || relay.counter("dropped-cluster-not-genuine") >= 2);
    assert_eq!(relays_in_use(&mobile), 0);
    assert_eq!(relay.status()["relay"]["allies"].as_array().unwrap().len(), 0);
    assert_eq!(mobile.status()["cluster"]["known"], 1);
    mobile.terminate();
    relay.terminate();

    let trust = "trust = \"first-use\"";
    let mut relay =
        network.start_relay(&neighbour, &format!("{trust}\nclient_bytes = \"400 kB\"\nlongest = \"10 s\""));
    let mut mobile = network.start_mobile_node_with(&mobile_node(trust));
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    network.set_silent(&network.wlan, true);
    let mut download = web.download(&network.mobile, "film");
    download.wait_for_bytes(100_000);
    // Alliances are renewed, and end when the client has had what it may have: the rest comes by its own link.
    wait_until("the alliance has ended", || relay.status()["relay"]["allies"].as_array().unwrap().is_empty());
    network.set_silent(&network.wlan, false);
    download.finish();
    wait_until("the relay is left", || relays_in_use(&mobile) == 0);
    let relayed = relay.status()["relay"]["relayed_bytes"].clone();
    let relayed: u64 = relayed.as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert!((400_000..402_000).contains(&relayed), "400 kB, and the packet that made it full: {relayed}");
    assert!(mobile.log().contains("Relay lost"));
    for status in [home.status(), mobile.status()] {
        assert_balanced(&status);
    }
    mobile.terminate();
    relay.terminate();
    home.terminate();
}
