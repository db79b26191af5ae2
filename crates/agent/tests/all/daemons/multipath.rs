//! Several links at once, with daemons as people run them.

use careof_base::{DataRate, Duration};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::support::{Daemon, HOME_ADDRESS, Network, Snapshot, key, law, pause, realm_or_skip, wait_until};

/// The tables of a mobile node with three modems.
const THREE: &str = "[multipath]\n[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n\
    [[interface]]\nname = \"lte0\"\ncost = \"metered\"\n";

/// What is offered is sent once at least, and what comes is passed on once.
#[track_caller]
pub(super) fn assert_balanced(status: &Value) {
    let several = &status["multipath"][0];
    let count = |name: &str| several[name].as_u64().unwrap();
    assert_eq!(
        count("offered") - count("no_path"),
        count("transmitted") - count("copies") - count("replayed"),
        "{several}"
    );
    assert_eq!(count("arrived"), count("released") + count("duplicates") + count("holds"), "{several}");
}

#[test]
fn a_download_over_three_links_survives_the_death_of_each_and_of_the_home_agent() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let law = law(DataRate::from_kilobits_per_second(1500), Duration::from_millis(30), 40);
    let lte = network.attach_third(law);
    let before = Snapshot::of(&network.mobile);
    let web = network.web_server();
    // More than all three carry while all of this happens.
    web.offer("film", 8_000_000);
    let mut home = network.start_home_agent_with("max_bindings_per_node = 8\n[multipath]\n");
    let mut mobile = network.start_mobile_node_with(THREE);
    mobile.wait_for_working_paths(3);
    home.wait_for_working_paths(3);

    let mut download = web.download(&network.mobile, "film");
    for (round, dying) in [&network.wlan, &network.gsm, &lte, &network.wlan].into_iter().enumerate() {
        download.wait_for_bytes(50_000);
        // With and without word from the interface.
        match round % 2 {
            0 => network.set_silent(dying, true),
            _ => network.set_carrier(dying, false),
        }
        mobile.wait_for_working_paths(2);
        if round == 0 {
            // Later a path that is gone, or a home agent that has begun anew, may come before it.
            wait_until("the mobile node says that a path is out", || mobile.log().contains("Path out"));
        }
        if round == 2 {
            home.kill();
            pause(Duration::from_millis(200));
            home.start_again(&network.home);
        }
        download.wait_for_bytes(50_000);
        match round % 2 {
            0 => network.set_silent(dying, false),
            _ => network.set_carrier(dying, true),
        }
        if round == 0 {
            wait_until("the mobile node says that it is back", || mobile.log().contains("Path back"));
        }
        mobile.wait_for_working_paths(3);
        home.wait_for_working_paths(3);
    }
    network.hurry();
    download.finish();

    let requests = web.log();
    assert!(requests.contains(&format!("{HOME_ADDRESS} - - ")), "not from the home address: {requests}");
    assert_eq!(requests.matches("\"GET /film").count(), 1, "one connection: {requests}");
    for status in [home.status(), mobile.status()] {
        assert_balanced(&status);
        let paths = status["multipath"][0]["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 3, "{status}");
    }
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "{}", home.status());
    before.assert_unchanged(&network.mobile);
}

#[test]
fn a_key_is_renewed_by_reading_the_files_again_while_a_download_goes_on() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 1_000_000);
    let links = "[multipath]\n[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n";
    let (more, old) =
        ("max_bindings_per_node = 8\n[multipath]\n", format!("{:032x}", u128::from_be_bytes(key())));
    // Another key, with a number of its own.
    let new =
        |text: &str| text.replace("spi = 256", "spi = 257").replace(&old, "0c7f92e5d3b488f1c2a77d09be43516a");
    let of_old = network.home_configuration(more);
    let node = format!("[[mobile_node]]{}", of_old.split("[[mobile_node]]").nth(1).unwrap());
    let mut home = network.start_home_agent_with(more);
    let mut mobile = network.start_mobile_node_with(links);
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    let mut download = web.download(&network.mobile, "film");
    download.wait_for_bytes(50_000);

    let read_again = |daemon: &mut Daemon, text: &str, times: usize| {
        daemon.configure(text);
        daemon.signal(Signal::SIGHUP);
        wait_until("the file is read", || daemon.log().matches("Configuration read again").count() == times);
    };
    read_again(&mut home, &format!("{of_old}{}", new(&node)), 1);
    read_again(&mut mobile, &new(&Network::mobile_configuration(links)), 1);
    mobile.wait_for_working_paths(2);
    download.wait_for_bytes(100_000);
    read_again(&mut home, &new(&of_old), 2);
    mobile.wait_for_working_paths(2);
    home.wait_for_working_paths(2);
    // What is measured from now on is measured by messages with the new key.
    let answered = |daemon: &Daemon| -> u64 {
        let paths = daemon.status()["multipath"][0]["paths"].as_array().unwrap().clone();
        paths.iter().map(|path| path["probes_answered"].as_u64().unwrap()).min().unwrap()
    };
    let before = [answered(&home), answered(&mobile)];
    wait_until("both go on measuring", || answered(&home) > before[0] && answered(&mobile) > before[1]);
    network.hurry();
    download.finish();
    for status in [home.status(), mobile.status()] {
        assert_balanced(&status);
        assert_eq!(status["multipath"][0]["peer_restarts"], 0, "{status}");
    }
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "{}", home.status());
}
