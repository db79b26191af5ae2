//! The daemon as an agent of Mobile IPv6: real processes, started from files, and the kernel's TCP over the home address.

use std::io::{Read as _, Write as _};
use std::net::Ipv6Addr;
use std::thread::JoinHandle;

use careof_lab::Host;
use nix::sys::signal::Signal;

use super::support::{Daemon, realm_or_skip, wait_until};
use crate::ipv6::network::{
    CARE_OF_IPV4, CORRESPONDENT, HA, HA_IPV4, HOME, HOME_IPV4, Links, Network, WLAN, assert_as_it_was,
    state_of, wait_for_addresses, wait_for_addresses_of,
};
use crate::support::{Listener, PATIENCE, Tcp, pattern, start};

const KEY: &str = "8f1c2a77d09be43516a0c7f92e5d3b48";

fn home_configuration(directory: &std::path::Path, more: &str, of_node: &str) -> String {
    format!(
        "role = \"home\"\naddress = \"{HA}\"\nhome_network = \"2001:db8:1::/64\"\n{more}\n\
         [store]\ndirectory = \"{}\"\n\
         [[mobile_node]]\nhome_address = \"{HOME}\"\nspi = 256\nkey = \"{KEY}\"\n{of_node}\n",
        directory.display()
    )
}

fn mobile_configuration(more: &str) -> String {
    format!(
        "role = \"mobile\"\nhome_address = \"{HOME}\"\nhome_network = \"2001:db8:1::/64\"\nhome_agent = \"{HA}\"\n\
         spi = 256\nkey = \"{KEY}\"\nhold = \"100 ms\"\n{more}\n\
         [[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n"
    )
}

fn correspondent_configuration() -> String {
    format!("role = \"correspondent\"\naddress = \"{CORRESPONDENT}\"\n")
}

/// A connection from the correspondent to the mobile node's home address, where everything comes back.
struct Echo {
    client: Tcp,
    server: JoinHandle<()>,
    sent: usize,
}

impl Echo {
    fn start(network: &Network) -> Self {
        let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
        let server = start(move || {
            let (mut peer, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), CORRESPONDENT);
            let mut back = peer.try_clone().unwrap();
            std::io::copy(&mut peer, &mut back).unwrap();
        });
        let client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { client, server, sent: 0 }
    }

    /// Sends so many bytes, and fails unless the same come back.
    #[track_caller]
    fn exchange(&mut self, bytes: usize) {
        let sent = pattern(self.sent + bytes).split_off(self.sent);
        self.sent += bytes;
        let mut writer = self.client.try_clone().unwrap();
        let part = sent.clone();
        let writing = start(move || writer.write_all(&part).unwrap());
        let mut got = vec![0; bytes];
        self.client.read_exact(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == sent, "what came back is what was sent");
    }

    fn end(self) {
        drop(self.client);
        self.server.join().unwrap();
    }
}

/// The metrics of the agent on a host.
fn scrape(host: &Host) -> String {
    let mut client = host.run(|| Tcp::connect((Ipv6Addr::LOCALHOST, 9434))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn care_of(daemon: &Daemon) -> Ipv6Addr {
    daemon.status()["registration"]["care_of"].as_str().unwrap().parse().unwrap()
}

/// RFC 5555: to a network that has only IPv4, where a home agent that was killed goes on with the binding it had.
#[test]
fn a_connection_goes_on_over_a_network_of_ipv4_and_past_the_death_of_its_home_agent() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::with(realm, Links::Ipv4Only);
    wait_for_addresses_of(&network.mobile, &[WLAN]);
    let before = [&network.home, &network.mobile].map(state_of);
    let directory = tempfile::tempdir().unwrap();
    let (own, of_node) = (
        format!("ipv4_address = \"{HA_IPV4}\"\nassist = \"default\""),
        format!("ipv4_home_address = \"{HOME_IPV4}\""),
    );
    let configuration = home_configuration(directory.path(), &own, &of_node);
    let mut home = Daemon::start(&network.home, directory.path(), "home", &configuration);
    let more =
        format!("ipv4_home_agent = \"{HA_IPV4}\"\nipv4_home_address = \"0.0.0.0\"\nassist = \"default\"");
    let mut mobile = Daemon::start(&network.mobile, directory.path(), "mobile", &mobile_configuration(&more));
    mobile.wait_for_registration("wlan0");
    let mut echo = Echo::start(&network);
    echo.exchange(100_000);
    network.set_link("wlan0", false);
    mobile.wait_for_registration("gsm0");
    assert_eq!(mobile.status()["registration"]["care_of"], CARE_OF_IPV4.to_string());
    let binding = home.status()["bindings"][0].clone();
    assert_eq!(
        (&binding["care_of"], &binding["encapsulation"]),
        (&CARE_OF_IPV4.to_string().into(), &"ipv6-in-ipv4".into())
    );
    echo.exchange(100_000);
    home.kill();
    home.start_again(&network.home);
    assert_eq!(home.bindings(), 1, "the binding is there before the mobile node asks again");
    echo.exchange(100_000);
    // The IPv4 home address was given by the home agent, and is bound again as well.
    let listener = network.mobile.run(|| Listener::bind((HOME_IPV4, 81))).unwrap().unwrap();
    let greeter = start(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
    let mut client = network.correspondent.run(|| Tcp::connect((HOME_IPV4, 81))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert_eq!(got, "hello");
    greeter.join().unwrap();
    network.set_link("wlan0", true);
    mobile.wait_for_registration("wlan0");
    echo.exchange(100_000);
    echo.end();
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "the mobile node has deregistered: {}", home.status());
    home.terminate();
    for (host, before) in [&network.home, &network.mobile].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

#[test]
fn a_connection_survives_handovers_and_the_death_of_its_home_agent() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    wait_for_addresses(&network.mobile);
    let before = [&network.home, &network.mobile].map(state_of);
    let directory = tempfile::tempdir().unwrap();
    let more = "assist = \"default\"\nmetrics = { listen = \"[::1]:9434\" }";
    let configuration = home_configuration(directory.path(), more, "");
    let mut home = Daemon::start(&network.home, directory.path(), "home", &configuration);
    let configuration = mobile_configuration("assist = \"default\"");
    let mut mobile = Daemon::start(&network.mobile, directory.path(), "mobile", &configuration);
    mobile.wait_for_registration("wlan0");
    let binding = &home.status()["bindings"][0];
    assert_eq!(
        (&binding["home_address"], &binding["care_of"]),
        (&HOME.to_string().into(), &care_of(&mobile).to_string().into())
    );
    let mut echo = Echo::start(&network);
    echo.exchange(300_000);

    network.set_link("wlan0", false);
    mobile.wait_for_registration("gsm0");
    echo.exchange(300_000);
    home.kill();
    home.start_again(&network.home);
    assert_eq!(home.bindings(), 1, "the binding is there before the mobile node asks again");
    echo.exchange(300_000);
    network.set_link("wlan0", true);
    mobile.wait_for_registration("wlan0");
    echo.exchange(300_000);
    echo.end();

    let status = mobile.status();
    let counters = &status["counters"];
    assert!(counters["packets-tunnelled-in"].as_u64().unwrap() > 100, "{counters}");
    assert!(status["handovers"].as_array().unwrap().len() >= 3, "{status}");
    let (told, asked) = (home.log(), mobile.log());
    for line in ["Mobility binding created", "Binding Update received", "Bindings restored bindings=1"] {
        assert!(told.contains(line), "no {line:?} in\n{told}");
    }
    for line in ["Handover initiated", "Handover registered", "Link down interface=\"wlan0\""] {
        assert!(asked.contains(line), "no {line:?} in\n{asked}");
    }
    let page = mobile.page();
    let first = format!("{HOME} is registered with {HA}: care-of address {} on wlan0", care_of(&mobile));
    assert!(page.starts_with("mobile node, up ") && page.contains(&first), "{page}");
    let page = home.page();
    assert!(page.contains("ipv6-in-ipv6") && page.contains(&care_of(&mobile).to_string()), "{page}");
    let metrics = scrape(&network.home);
    for line in [
        "careof_build_info{role=\"home\"",
        "careof_bindings 1.0",
        "careof_bindings_unsaved 0.0",
        "careof_assist_flows 1.0",
    ] {
        assert!(metrics.contains(line), "no {line:?} in\n{metrics}");
    }
    let out = "careof_tunnelled_packets_total{direction=\"out\"} ";
    let out = metrics.lines().find_map(|line| line.strip_prefix(out)).unwrap();
    assert!(out.parse::<u64>().unwrap() > 50, "{metrics}");
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "the mobile node has deregistered: {}", home.status());
    home.terminate();
    for (host, before) in [&network.home, &network.mobile].into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

#[test]
fn a_mobile_node_and_its_correspondent_take_the_direct_way() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    wait_for_addresses(&network.mobile);
    let hosts = [&network.home, &network.mobile, &network.correspondent];
    let before = hosts.map(state_of);
    let directory = tempfile::tempdir().unwrap();
    let agreed =
        "algorithm = \"hmac-sha-256\"\nreplay = \"sequence-numbers\"\nidentifier = \"laptop@example.org\"";
    let configuration = home_configuration(directory.path(), "prefix_advertisements = true", agreed);
    let mut home = Daemon::start(&network.home, directory.path(), "home", &configuration);
    let mut correspondent = Daemon::start(
        &network.correspondent,
        directory.path(),
        "correspondent",
        &correspondent_configuration(),
    );
    // It finds its home agent by asking the home network.
    let configuration = mobile_configuration(&format!("route_optimization = true\n{agreed}"))
        .replace(&format!("home_agent = \"{HA}\"\n"), "");
    let mut mobile = Daemon::start(&network.mobile, directory.path(), "mobile", &configuration);
    mobile.wait_for_registration("wlan0");
    let mut echo = Echo::start(&network);
    // The first packets come through the tunnel, which is how the mobile node learns of its correspondent.
    echo.exchange(1000);
    let knows = |interface: &str| {
        mobile.wait_for_registration(interface);
        let care_of = care_of(&mobile).to_string();
        wait_until("the correspondent node is told", || {
            correspondent.status()["bindings"][0]["care_of"] == care_of
        });
    };
    knows("wlan0");
    wait_until("the mobile node has its home agent", || mobile.log().contains("Home agents found"));
    assert_eq!(mobile.status()["registration"]["home_agent"], HA.to_string());
    // Packets take the way as soon as the mobile node has heard that it is known.
    wait_until("the mobile node is told that it is known", || mobile.log().contains("Route optimised"));
    echo.exchange(300_000);
    for daemon in [&mobile, &correspondent] {
        assert!(daemon.counter("packets-optimised-in") > 50, "{}", daemon.status());
        assert!(daemon.counter("packets-optimised-out") > 50, "{}", daemon.status());
    }
    network.set_link("wlan0", false);
    knows("gsm0");
    echo.exchange(300_000);
    network.set_link("wlan0", true);
    knows("wlan0");
    echo.end();
    // What a killed one has left, its successor puts in order.
    for (daemon, host) in [
        (&mut correspondent, &network.correspondent),
        (&mut mobile, &network.mobile),
        (&mut home, &network.home),
    ] {
        daemon.kill();
        daemon.start_again(host);
    }
    mobile.wait_for_registration("wlan0");
    for daemon in [&mut mobile, &mut correspondent, &mut home] {
        daemon.terminate();
    }
    for (host, before) in hosts.into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}

#[test]
fn a_file_that_is_read_again_changes_what_it_says() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Network::new(realm);
    let directory = tempfile::tempdir().unwrap();
    let home_file = |more: &str, of_node: &str| home_configuration(directory.path(), more, of_node);
    let mut home = Daemon::start(&network.home, directory.path(), "home", &home_file("", ""));
    let mut mobile = Daemon::start(&network.mobile, directory.path(), "mobile", &mobile_configuration(""));
    mobile.wait_for_registration("wlan0");

    home.configure("role = \"home\"\naddress = \"2001:db8:1::not\"\n");
    home.signal(Signal::SIGHUP);
    wait_until("the daemon complains", || home.log().contains("2001:db8:1::not"));
    assert_eq!(home.bindings(), 1);
    home.configure(&home_file("", "").replace("2001:db8:1::/64", "2001:db8::/32"));
    home.signal(Signal::SIGHUP);
    wait_until("the network stays", || {
        home.log().contains("the home network cannot change while the agent runs")
    });

    assert!(home.status()["assist"].is_null());
    home.configure(&home_file("max_lifetime = \"40 s\"\nassist = \"default\"", ""));
    home.signal(Signal::SIGHUP);
    wait_until("the file is read", || home.log().contains("Configuration read again"));
    assert_eq!(home.bindings(), 1, "the binding that was granted stays");
    assert!(home.status()["assist"].is_object(), "{}", home.status());
    // A mobile node that changes registers anew.
    mobile.configure(&mobile_configuration("lifetime = \"200 s\""));
    mobile.signal(Signal::SIGHUP);
    wait_until("the shorter lifetime is granted", || home.status()["bindings"][0]["lifetime_s"] == 40);
    mobile.wait_for_registration("wlan0");
    Echo::start(&network).exchange(10_000);

    // A way that cannot be gone yet is not chosen for long.
    wait_until("gsm0 has a router and an address", || {
        let status = mobile.status();
        let mut interfaces = status["interfaces"].as_array().unwrap().iter();
        let gsm = interfaces.find(|known| known["name"] == "gsm0").unwrap();
        !gsm["gateway"].is_null() && !gsm["address"].is_null()
    });
    mobile.switch("gsm0");
    mobile.wait_for_registration("gsm0");
    home.drop_mobile_node(&HOME.to_string()).unwrap();
    assert_eq!(home.bindings(), 0);
    let nothing = home.drop_mobile_node("2001:db8:1::99").unwrap_err();
    assert!(nothing.contains("nothing is held for 2001:db8:1::99"), "{nothing}");
    mobile.switch("wlan0");
    mobile.wait_for_registration("wlan0");
    wait_until("it is bound again", || home.bindings() == 1);
    home.configure(&home_file("", "permitted = false"));
    home.signal(Signal::SIGHUP);
    wait_until("who is not permitted has no binding", || home.bindings() == 0);
    mobile.configure(&mobile_configuration("lifetime = \"100 s\""));
    mobile.signal(Signal::SIGHUP);
    wait_until("it is refused", || home.counter("refused-129") > 0);
    mobile.assert_running();
    home.assert_running();
}
