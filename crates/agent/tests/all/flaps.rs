//! Carriers that come and go, and a kernel that does not say so.
//!
//! ```text
//! far end  eth0 --- eth0  mobile node
//!         visit0 --- wlan0
//! ```
//!
//! The kernel tells at once of the carrier of an interface that stands on another one, as one end of a veth on the other, which it
//! knows by their numbers. In hosts that have nothing else both ends have the same one, and it tells of them as of real ones.

use std::time::Duration;

use crate::support::ethernet::cable;
use crate::support::*;
use careof_agent::{Device, Hooks, Setup};
use careof_lab::{Clock, Host, Netlink, Realm};
use careof_mobility::v4::{Event, HandoverEvent, InterfaceId};

const WLAN0: InterfaceId = InterfaceId(1);

struct Links {
    clock: Clock,
    far: Host,
    mobile: Host,
}

impl Links {
    fn new(realm: Realm) -> Self {
        let (far, mobile) = (realm.host("far").unwrap(), realm.host("mobile").unwrap());
        cable((&far, "eth0"), (&mobile, "eth0"));
        cable((&far, "visit0"), (&mobile, "wlan0"));
        let index = |host: &Host, name: &'static str| {
            host.run(move || Netlink::open()?.index_of(name)).unwrap().unwrap()
        };
        assert_eq!(index(&far, "visit0"), index(&mobile, "wlan0"));
        Self { clock: Clock::start(), far, mobile }
    }

    fn mobile_node(&self) -> Running {
        let mut setup = mobile_setup();
        setup.devices = vec![Device::new(0, "eth0"), Device::new(1, "wlan0")];
        Running::open(&self.mobile, Setup::Mobile(setup), self.clock, Hooks::default())
    }
}

/// Takes the far end of `wlan0` down and up at once.
fn flap(links: &Links) {
    let done = links.far.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("visit0")?;
        netlink.set_down(index)?;
        netlink.set_up(index)
    });
    done.unwrap().unwrap();
}

/// What was told of the carrier of `wlan0`: is it there?
fn carriers(mobile: &mut Running) -> Vec<bool> {
    mobile.news();
    let told = mobile.told.iter().filter_map(|(_, event)| match event {
        Event::Handover(HandoverEvent::LinkUp { interface: WLAN0 }) => Some(true),
        Event::Handover(HandoverEvent::LinkDown { interface: WLAN0 }) => Some(false),
        _ => None,
    });
    told.collect()
}

#[track_caller]
fn wait_carriers(mobile: &mut Running, expected: &[bool]) {
    let clock = Clock::start();
    while carriers(mobile).len() < expected.len() {
        assert!(clock.now().since_start() < PATIENCE, "{:?}, not {expected:?}", carriers(mobile));
        sleep(Duration::from_millis(5));
    }
    assert_eq!(carriers(mobile), expected);
}

#[test]
fn a_flap_that_nobody_told_is_noticed_when_the_kernel_is_asked() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Links::new(realm);
    let mut mobile = world.mobile_node();
    let mut expected = vec![true];
    wait_carriers(&mut mobile, &expected);
    for _ in 0..5 {
        flap(&world);
        mobile.with(|node| node.ask_links()).unwrap();
        expected.extend([false, true]);
        // Neither what the kernel tells later nor another question makes two of one.
        wait_carriers(&mut mobile, &expected);
    }
    mobile.with(|node| node.ask_links()).unwrap();
    assert_eq!(carriers(&mut mobile), expected);
    assert!(mobile.counter("links-asked") >= 6);
}

#[test]
fn a_flap_is_noticed_when_another_interface_changes() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Links::new(realm);
    let mut mobile = world.mobile_node();
    let mut expected = vec![true];
    wait_carriers(&mut mobile, &expected);
    for up in [false, true, false, true] {
        flap(&world);
        set_interface(&world.mobile, "eth0", up);
        expected.extend([false, true]);
        wait_carriers(&mut mobile, &expected);
    }
}

#[test]
fn however_often_the_carrier_is_asked_for_the_kernel_is_not() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Links::new(realm);
    let mobile = world.mobile_node();
    let clock = Clock::start();
    let before = mobile.counter("links-asked");
    mobile.with(|node| (0..10_000).for_each(|_| node.ask_links().unwrap()));
    let asked = mobile.counter("links-asked") - before;
    // Eight at once, and then one each 50 ms.
    let most = 8 + clock.now().since_start().as_millis() as u64 / 50 + 1;
    assert!((1..=most).contains(&asked), "{asked} of {most}");
}
