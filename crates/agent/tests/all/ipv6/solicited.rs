//! How a mobile node comes by a care-of address on a link that has come up.

use std::net::Ipv6Addr;

use super::network::*;
use crate::support::{PATIENCE, realm_or_skip, sleep};
use careof_agent::Ipv6MobileSetup;
use careof_lab::{Clock, Host, Icmpv6Socket, Netlink, set_sysctl};
use careof_wire::ipv6::ALL_ROUTERS;
use std::time::Duration;

/// Router Solicitation (RFC 4861 section 4.1).
const SOLICITATION: u8 = 133;

/// Has the kernel take longer than any test to find out that an address of `wlan0` is unique.
fn verify_for_long(host: &Host) {
    let set = host.run(move || {
        let parameters = [("accept_dad", "1"), ("dad_transmits", "1000")];
        parameters
            .iter()
            .try_for_each(|(name, value)| set_sysctl(&format!("net.ipv6.conf.wlan0.{name}"), value))
    });
    set.unwrap().unwrap();
}

fn is_verified(host: &Host, is_it: impl Fn(Ipv6Addr) -> bool) -> bool {
    let assigned = host.run(|| Netlink::open()?.assigned_addresses()).unwrap().unwrap();
    let mut assigned = assigned.into_iter();
    assigned.any(|on| matches!(on.address, std::net::IpAddr::V6(own) if is_it(own)) && !on.is_tentative)
}

/// The kernel of the mobile node asks only when it has an address to ask from.
#[test]
fn routers_are_asked_for_from_the_unspecified_address_as_long_as_there_is_no_other() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::new(realm);
    verify_for_long(&network.mobile);
    let setup = Ipv6MobileSetup { optimistic_detection: false, ..network.mobile_setup() };
    let mobile = network.mobile_node(setup);
    network.set_link("wlan0", false);
    wait_until(&mobile, "told that the link is down", |status| !status.interfaces[0].up);
    let opened = network.west.run(|| {
        let socket = Icmpv6Socket::open(&[SOLICITATION])?;
        socket.join(ALL_ROUTERS, Netlink::open()?.index_of("down0")?)?;
        Ok::<_, careof_lab::Error>(socket)
    });
    let socket = opened.unwrap().unwrap();
    network.set_link("wlan0", true);
    let clock = Clock::start();
    let mut buffer = [0; 1500];
    let (source, hop_limit) = loop {
        if let Some(heard) = socket.receive(&mut buffer).unwrap() {
            break (heard.source, heard.hop_limit);
        }
        assert!(clock.now().since_start() < PATIENCE, "{:#?}", status(&mobile));
        sleep(Duration::from_millis(5));
    };
    assert_eq!((source, hop_limit), (Ipv6Addr::UNSPECIFIED, 255));
    let counters = status(&mobile).counters;
    assert!(counters["router-solicitations-sent"] > 0, "{counters:#?}");
    assert_eq!(counters["router-solicitations-unsent"], 0);
}

/// On a TUN device, too: there is no link-layer address of a router to be learnt, but the kernel wants to be told one (RFC 4429 section
/// 3.3).
#[test]
fn an_optimistic_care_of_address_is_registered_while_it_is_verified() {
    let Some(realm) = realm_or_skip() else { return };
    let network = Network::with(realm, Links::Emulated);
    network.set_link("wlan0", false);
    verify_for_long(&network.mobile);
    let care_of = on(0x100, 0xbeef);
    // The agent sets the parameters by which what is formed from now on is optimistic.
    let _home = network.home_agent(security());
    let mobile = network.mobile_node(network.mobile_setup());
    let forms = network.mobile.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("wlan0")?;
        netlink.autoconfigure_as(index, care_of)
    });
    forms.unwrap().unwrap();
    network.set_link("wlan0", true);
    wait_until(&mobile, "registered", |status| {
        let registration = status.registration.as_ref().unwrap();
        registration.registered && registration.care_of == Some(care_of)
    });
    assert!(!is_verified(&network.mobile, |address| address == care_of));
}
