//! A router that is gone while its link is there: the kernel's neighbor unreachability detection (RFC 4861 section 7.3).

use std::io::Write;
use std::net::IpAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use super::network::*;
use crate::support::{Listener, PATIENCE, Running, Tcp, pattern, realm_or_skip, receive_all, sleep, start};
use careof_lab::{Clock, IpVersion, Netlink, NetlinkMonitor, NetworkChange, set_sysctl};

const BYTES: usize = 300_000;

/// An upload by the first router, which vanishes in its midst.
struct Upload {
    network: Network,
    _home: Running,
    mobile: Running,
    written: JoinHandle<()>,
    received: JoinHandle<Vec<u8>>,
}

/// Begins it. The kernel takes a second or two to find out instead of half a minute.
fn upload_through_a_router_that_vanishes(leaves_it: bool) -> Option<Upload> {
    let mut network = Network::new(realm_or_skip()?);
    wait_for_addresses(&network.mobile);
    let quick = network.mobile.run(|| {
        let parameters =
            [("base_reachable_time_ms", "200"), ("delay_first_probe_time", "1"), ("retrans_time_ms", "50")];
        parameters
            .iter()
            .try_for_each(|(name, value)| set_sysctl(&format!("net.ipv6.neigh.wlan0.{name}"), value))
    });
    quick.unwrap().unwrap();
    let home = network.home_agent(security());
    let mut setup = network.mobile_setup();
    setup.config.movement.unreachable_router = leaves_it;
    let mobile = network.mobile_node(setup);
    wait_registered(&mobile, "wlan0");
    let listener = network.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let mut client = network.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let sent = pattern(BYTES);
    client.write_all(&sent[..BYTES / 2]).unwrap();
    network.silence_west();
    let written = start(move || client.write_all(&sent[BYTES / 2..]).unwrap());
    Some(Upload { network, _home: home, mobile, written, received })
}

#[test]
fn a_router_that_the_kernel_finds_unreachable_is_left_and_come_back_to_when_it_is_heard_again() {
    let Some(mut upload) = upload_through_a_router_that_vanishes(true) else { return };
    let registered = wait_registered(&upload.mobile, "gsm0");
    assert!(registered.interfaces[0].up, "the link is there: {registered:#?}");
    assert!(registered.counters["routers-unreachable"] >= 1, "{registered:#?}");
    upload.written.join().unwrap();
    assert!(upload.received.join().unwrap() == pattern(BYTES), "what arrived is what was sent");
    upload.network.wake_west();
    wait_registered(&upload.mobile, "wlan0");
}

#[test]
fn a_node_that_goes_by_its_links_alone_does_not_care_what_the_kernel_finds() {
    let Some(upload) = upload_through_a_router_that_vanishes(false) else { return };
    let monitor = upload.network.mobile.run(|| {
        let mut monitor = NetlinkMonitor::open_for(IpVersion::V6)?;
        monitor.listen_to_neighbours()?;
        Ok::<_, careof_lab::Error>((monitor, Netlink::open()?.index_of("wlan0")?))
    });
    let (mut monitor, wlan) = monitor.unwrap().unwrap();
    let clock = Clock::start();
    let is_router =
        |address: IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    loop {
        match monitor.poll_change().unwrap() {
            Some(NetworkChange::NeighbourFailed { index, address })
                if index == wlan && is_router(address) =>
            {
                break;
            }
            Some(_) => {}
            None => sleep(Duration::from_millis(5)),
        }
        assert!(clock.now().since_start() < PATIENCE, "the kernel probes");
    }
    let status = status(&upload.mobile);
    assert_eq!(status.counters["routers-unreachable"], 0, "{status:#?}");
    assert_eq!(status.registration.unwrap().interface.as_deref(), Some("wlan0"));
    drop(upload.mobile);
}
