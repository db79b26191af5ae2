//! The daemon as a mobility anchor point (RFC 5380), and as a mobile node below it.

use std::io::{Read as _, Write as _};
use std::net::Ipv6Addr;

use nix::sys::signal::Signal;

use super::support::{Daemon, realm_or_skip, wait_until};
use crate::ipv6::domains::{Domains, GSM0, MAP_WEST, REGIONAL_WEST, WLAN0};
use crate::ipv6::network::{CORRESPONDENT, HA, HOME, assert_as_it_was, state_of};
use crate::support::{Listener, PATIENCE, Tcp, pattern, start};

const KEY: &str = "8f1c2a77d09be43516a0c7f92e5d3b48";
const REGIONAL_KEY: &str = "51c0b9e8a1374fd26e0d8a7cf3925b46";

fn home_configuration(directory: &std::path::Path) -> String {
    format!(
        "role = \"home\"\naddress = \"{HA}\"\nhome_network = \"2001:db8:1::/64\"\n\
         store = {{ directory = \"{}\" }}\n\
         [[mobile_node]]\nhome_address = \"{HOME}\"\nspi = 256\nkey = \"{KEY}\"\n",
        directory.display()
    )
}

fn anchor_configuration(directory: &std::path::Path, more: &str) -> String {
    format!(
        "role = \"anchor-point\"\naddress = \"{MAP_WEST}\"\nnetwork = \"2001:db8:51::/64\"\n{more}\n\
         domain = [\"{WLAN0}\", \"{GSM0}\"]\nmetrics = {{ listen = \"[::1]:9434\" }}\n\
         store = {{ directory = \"{}\" }}\n\
         [[mobile_node]]\nregional_address = \"{REGIONAL_WEST}\"\nspi = 257\nkey = \"{REGIONAL_KEY}\"\n",
        directory.display()
    )
}

fn mobile_configuration() -> String {
    format!(
        "role = \"mobile\"\nhome_address = \"{HOME}\"\nhome_network = \"2001:db8:1::/64\"\nhome_agent = \"{HA}\"\n\
         spi = 256\nkey = \"{KEY}\"\nhold = \"100 ms\"\nassist = \"default\"\n\
         [[map]]\naddress = \"{MAP_WEST}\"\nspi = 257\nkey = \"{REGIONAL_KEY}\"\n\
         [[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n"
    )
}

#[track_caller]
fn wait_on(mobile: &Daemon, link: careof_mobility::v6::Prefix) {
    wait_until("the anchor point knows where the mobile node is", || {
        let registration = &mobile.status()["registration"];
        let on_link = registration["on_link_care_of"].as_str().and_then(|text| text.parse::<Ipv6Addr>().ok());
        on_link.is_some_and(|on_link| link.contains(on_link))
            && registration["care_of"] == REGIONAL_WEST.to_string()
    });
}

#[test]
fn a_connection_survives_the_death_of_its_anchor_point_which_comes_back_with_its_store() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let network = Domains::new(realm);
    network.wait_for_addresses();
    let hosts = [&network.home, &network.west, &network.mobile];
    let before = hosts.map(state_of);
    let directory = tempfile::tempdir().unwrap();
    let home_file = home_configuration(directory.path());
    let mut home = Daemon::start(&network.home, directory.path(), "home", &home_file);
    let file = |more: &str| anchor_configuration(directory.path(), more);
    let mut anchor = Daemon::start(&network.west, directory.path(), "anchor", &file(""));
    let mut mobile = Daemon::start(&network.mobile, directory.path(), "mobile", &mobile_configuration());
    wait_on(&mobile, WLAN0);
    assert_eq!(home.status()["bindings"][0]["care_of"], REGIONAL_WEST.to_string());

    let listener = network.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let server = start(move || {
        let (mut peer, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), CORRESPONDENT);
        let mut back = peer.try_clone().unwrap();
        std::io::copy(&mut peer, &mut back).unwrap();
    });
    let client = network.correspondent.run(|| Tcp::connect((HOME, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let exchange = || {
        let sent = pattern(200_000);
        let (mut writer, mut reader) = (client.try_clone().unwrap(), client.try_clone().unwrap());
        let (part, mut got) = (sent.clone(), vec![0; sent.len()]);
        let writing = start(move || writer.write_all(&part).unwrap());
        reader.read_exact(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == sent, "what came back is what was sent");
    };
    exchange();
    network.set_link("wlan0", false);
    wait_on(&mobile, GSM0);
    exchange();
    anchor.kill();
    anchor.start_again(&network.west);
    assert_eq!(anchor.bindings(), 1, "the binding is there before the mobile node asks again");
    exchange();
    assert_eq!(home.status()["bindings"][0]["care_of"], REGIONAL_WEST.to_string());

    // Read again, with assists.
    anchor.configure(&file("max_lifetime = \"40 s\"\nassist = \"default\""));
    anchor.signal(Signal::SIGHUP);
    wait_until("the file is read", || anchor.log().contains("Configuration read again"));
    assert_eq!(anchor.bindings(), 1, "the binding that was granted stays");
    exchange();
    wait_until("assists follow what is in the home agent's tunnel", || {
        anchor.status()["assist"]["flows"][0]["home_address"] == HOME.to_string()
    });
    anchor.configure(&file("").replace("2001:db8:51::/64", "2001:db8:51::/60"));
    anchor.signal(Signal::SIGHUP);
    wait_until("the network stays", || anchor.log().contains("cannot change while the agent runs"));

    let page = mobile.page();
    let first = format!("regional care-of address {REGIONAL_WEST} at the mobility anchor point {MAP_WEST}");
    assert!(page.contains(&first), "{page}");
    assert!(anchor.page().starts_with("mobility anchor point, up "), "{}", anchor.page());
    let mut scrape = network.west.run(|| Tcp::connect((Ipv6Addr::LOCALHOST, 9434))).unwrap().unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    let mut metrics = String::new();
    scrape.read_to_string(&mut metrics).unwrap();
    for line in
        ["careof_build_info{role=\"anchor-point\"", "careof_bindings 1.0", "careof_bindings_unsaved 0.0"]
    {
        assert!(metrics.contains(line), "no {line:?} in\n{metrics}");
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    server.join().unwrap();
    network.set_link("wlan0", true);
    wait_on(&mobile, WLAN0);
    mobile.terminate();
    assert_eq!(home.bindings(), 0, "the mobile node has deregistered: {}", home.status());
    assert_eq!(anchor.bindings(), 0, "there, too: {}", anchor.status());
    for daemon in [&mut anchor, &mut home] {
        daemon.terminate();
    }
    for (host, before) in hosts.into_iter().zip(&before) {
        assert_as_it_was(host, before);
    }
}
