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

/// Takes the far end of a link down and, with `again`, up at once.
fn unplug(host: &Host, name: &'static str, again: bool) {
    let done = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.set_down(index)?;
        if again { netlink.set_up(index) } else { Ok(()) }
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
        unplug(&world.far, "visit0", true);
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
        unplug(&world.far, "visit0", true);
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

/// Not a test: says how late a lost carrier is noticed after another link has changed, by the kernel's word and by asking.
#[test]
#[ignore = "prints times"]
fn print_how_late_a_loss_is_noticed() {
    let Some(realm) = realm_or_skip() else { return };
    let world = Links::new(realm);
    let mut mobile = world.mobile_node();
    let mut seen = 1;
    wait_carriers(&mut mobile, &[true]);
    let mut monitor = world.mobile.run(careof_lab::NetlinkMonitor::open).unwrap().unwrap();
    let (mut told, mut noticed) = (Vec::new(), Vec::new());
    for round in 0..40u64 {
        sleep(Duration::from_millis(1_500));
        // Another interface changes; a while later the carrier goes.
        unplug(&world.far, "eth0", true);
        sleep(Duration::from_millis(20 + 23 * round));
        while monitor.poll_change().unwrap().is_some() {}
        let begun = world.clock.now();
        unplug(&world.far, "visit0", false);
        let mut at = None;
        while at.is_none() || carriers(&mut mobile).len() == seen {
            while let Some(change) = monitor.poll_change().unwrap() {
                if let careof_lab::NetworkChange::Link { state } = change
                    && state.name == "wlan0"
                    && !state.has_carrier
                {
                    at.get_or_insert(world.clock.now());
                }
            }
            sleep(Duration::from_millis(1));
        }
        carriers(&mut mobile);
        let of = |(_, event): &&(careof_base::Instant, Event)| {
            matches!(event, Event::Handover(HandoverEvent::LinkDown { interface: WLAN0 }))
        };
        let (when, _) = mobile.told.iter().rfind(of).unwrap();
        told.push(at.unwrap().saturating_duration_since(begun));
        noticed.push(when.saturating_duration_since(begun));
        set_interface(&world.far, "visit0", true);
        seen += 2;
        while carriers(&mut mobile).len() < seen {
            sleep(Duration::from_millis(1));
        }
    }
    for (what, mut delays) in [("told", told), ("noticed", noticed)] {
        delays.sort();
        println!("{what}: median {:?}, p95 {:?}, most {:?}", delays[20], delays[37], delays[39]);
    }
}
