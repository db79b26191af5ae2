//! Bad input and faults: the agents keep running, count them, and recover by themselves.

use careof_base::Duration;
use careof_lab::{Clock, Netlink};

use super::support::{
    Capture, Daemon, FOREIGN_AGENT, Flood, HOME_ADDRESS, HOME_AGENT, Network, Snapshot, VISITED_INTERFACE,
    find, pause, realm_or_skip, silent_socket, skip, wait_until,
};

#[test]
fn rubbish_at_ten_thousand_packets_a_second_stops_no_download() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 1_000_000);
    let home = network.start_home_agent();
    let mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");

    let flood = Flood::start(&network.correspondent, HOME_AGENT, 10_000);
    let before = home.counters("dropped");
    let mut download = web.download(&network.mobile, "film");
    download.wait_for_bytes(100_000);
    // A handover is possible meanwhile.
    network.set_carrier(&network.wlan, false);
    mobile.wait_for_registration("gsm0");
    download.wait_for_bytes(50_000);
    network.hurry();
    download.finish();
    wait_until("20,000 pieces of rubbish are sent", || flood.sent() > 20_000);
    drop(flood);
    let counted = home.counters("dropped") - before;
    assert!(counted > 0, "{counted} were counted: {}", home.status()["counters"]);
    assert_eq!(home.bindings(), 1);
}

#[test]
fn a_home_agent_that_never_answers_is_asked_ever_less_often() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let mute = silent_socket(&network.home, HOME_AGENT);
    let mobile = network.start_mobile_node();
    let clock = Clock::start();
    let mut buffer = [0; 2048];
    let mut arrivals = Vec::new();
    // Without back-off it would be one a second at the least.
    while arrivals.len() < 4 {
        wait_until("another request", || mute.recv(&mut buffer).is_ok());
        arrivals.push(clock.now());
        assert_eq!(mobile.registered_on(), None);
    }
    let gaps: Vec<Duration> =
        arrivals.windows(2).map(|pair| pair[1].saturating_duration_since(pair[0])).collect();
    assert!(gaps[2] > gaps[0] + gaps[0] / 2, "{gaps:?}");
    drop(mute);
    let home = network.start_home_agent();
    wait_until("the mobile node is registered", || mobile.registered_on().is_some());
    assert_eq!(home.bindings(), 1);
}

#[test]
fn links_that_flap_every_100_ms_are_survived() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 100_000);
    let mut home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");

    let before = mobile.counter("messages-sent");
    for round in 0..40 {
        let there = round % 2 == 1;
        network.set_carrier(&network.wlan, there);
        if round >= 20 {
            network.set_up(&network.gsm, there);
        }
        pause(Duration::from_millis(100));
    }
    let sent = mobile.counter("messages-sent") - before;
    assert!(sent < 200, "{sent} messages in four seconds");
    mobile.assert_running();
    home.assert_running();
    mobile.wait_for_registration("wlan0");
    web.fetch(&network.mobile, "film");
}

#[test]
fn a_foreign_agent_that_dies_and_comes_back_is_found_again() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let mut network = Network::new(realm);
    network.add_foreign_agent();
    let web = network.web_server();
    web.offer("film", 3_000_000);
    let before = [network.foreign(), &network.mobile].map(Snapshot::of);
    let capture = find("tshark")
        .is_some()
        .then(|| Capture::start(&network.mobile, VISITED_INTERFACE, network.directory()));
    let home = network.start_home_agent();
    let mut foreign = network.start_foreign_agent();
    let interface = format!("[[interface]]\nname = \"{VISITED_INTERFACE}\"\ncare_of = \"foreign-agent\"\n");
    let mut mobile = network.start_mobile_node_with(&interface);
    mobile.wait_for_registration(VISITED_INTERFACE);
    let binding = &home.status()["bindings"][0];
    assert_eq!(binding["care_of"], FOREIGN_AGENT.to_string(), "{binding}");
    assert_eq!(foreign.status()["visitors"].as_array().unwrap().len(), 1);

    let mut download = web.download_slowly(&network.mobile, "film", "600k");
    download.wait_for_bytes(100_000);
    foreign.kill();
    pause(Duration::from_millis(500));
    foreign.start_again(network.foreign());
    wait_until("the mobile node visits again", || {
        !foreign.status()["visitors"].as_array().unwrap().is_empty()
    });
    mobile.wait_for_registration(VISITED_INTERFACE);
    download.finish();

    mobile.terminate();
    assert_eq!(home.bindings(), 0, "{}", home.status());
    before[1].assert_unchanged(&network.mobile);
    wait_until("the visitor is gone", || foreign.status()["visitors"].as_array().unwrap().is_empty());
    foreign.terminate();
    before[0].assert_unchanged(network.foreign());
    let Some(capture) = capture else { return skip("tshark is not installed: nobody looks for ARP") };
    let captured = capture.finish();
    // RFC 5944 section 4.6: neither asked for nor asked with on a foreign link.
    let about_home = format!("arp.src.proto_ipv4 == {HOME_ADDRESS} || arp.dst.proto_ipv4 == {HOME_ADDRESS}");
    assert_eq!(captured.frames(&about_home), "");
    assert_ne!(captured.frames("mip.type == 3"), "");
}

#[test]
fn a_refusal_reaches_a_visitor_who_answers_no_arp() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let mut network = Network::new(realm);
    network.add_foreign_agent();
    let configuration = network.home_configuration("") + "permitted = false\n";
    let home = Daemon::start(&network.home, network.directory(), "home", &configuration);
    let foreign = network.start_foreign_agent();
    let interface = format!("[[interface]]\nname = \"{VISITED_INTERFACE}\"\ncare_of = \"foreign-agent\"\n");
    let mobile = network.start_mobile_node_with(&interface);
    // Administratively prohibited (RFC 5944 section 3.4).
    wait_until("the mobile node hears the refusal", || mobile.counter("denied-129") > 0);
    assert_eq!(mobile.registered_on(), None);
    assert_eq!((home.bindings(), foreign.status()["visitors"].as_array().unwrap().len()), (0, 0));
}

#[test]
fn a_tunnel_device_that_somebody_takes_down_works_when_it_is_up_again() {
    let Some(realm) = realm_or_skip(&["curl", "python3"]) else { return };
    let network = Network::new(realm);
    let web = network.web_server();
    web.offer("film", 100_000);
    let mut home = network.start_home_agent();
    let mut mobile = network.start_mobile_node();
    mobile.wait_for_registration("wlan0");
    for host in [&network.mobile, &network.home] {
        let taken = host.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("careof0")?;
            netlink.set_down(index)?;
            Ok::<_, careof_lab::Error>(index)
        });
        let index = taken.unwrap().unwrap();
        pause(Duration::from_millis(200));
        host.run(move || Netlink::open()?.set_up(index)).unwrap().unwrap();
    }
    web.fetch(&network.mobile, "film");
    mobile.assert_running();
    home.assert_running();
}
