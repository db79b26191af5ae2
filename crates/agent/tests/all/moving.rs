//! What makes a mobile node move, and how its packets travel.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::*;
use careof_agent::Hooks;
use careof_lab::{Netlink, Route};
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyEntry, PolicyTable, Prefix, Selection};

#[test]
fn a_link_that_is_up_and_carries_nothing_is_left_and_returned_to() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.selection = Selection::Preferred { hold: Duration::from_secs(1) };
    setup.config.probe = Some(Duration::from_secs(1));
    setup.config.retransmission.attempts = Some(2);
    let mobile = world.mobile_node(setup);
    mobile.wait_registered("wlan0");
    world.cut(world.wlan);
    mobile.wait_registered("gsm0");
    sleep(Duration::from_secs(2));
    world.mend(world.wlan);
    mobile.wait_registered("wlan0");
    sleep(Duration::from_secs(3));
    let status = mobile.wait_registered("wlan0");
    let registered = status.handovers.iter().filter(|handover| handover.latency_ms.is_some()).count();
    assert_eq!(registered, 3, "{:#?}", status.handovers);
}

#[test]
fn a_switch_to_a_link_that_has_only_just_come_up_is_not_taken_back() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.selection = Selection::Preferred { hold: Duration::from_secs(600) };
    set_interface(&world.mobile, "gsm0", false);
    let mobile = world.mobile_node(setup);
    mobile.wait_registered("wlan0");
    let mut netlink = world.mobile.run(Netlink::open).unwrap().unwrap();
    // Nothing is read in between: the kernel's word about the link comes after the switch.
    let switched = mobile.with(move |node| {
        let index = netlink.index_of("gsm0").unwrap();
        netlink.set_up(index).unwrap();
        netlink.set_route(&Route { metric: Some(200), ..Route::default_through(index, ANY) }).unwrap();
        node.switch_to("gsm0", Notice::None)
    });
    switched.unwrap();
    let status = mobile.wait_until("at the end of a handover", |status| {
        status.handovers.len() > 1 && status.handovers.last().is_some_and(|last| last.phase != "initiated")
    });
    assert_eq!(status.registration.unwrap().interface.as_deref(), Some("gsm0"), "{:#?}", status.handovers);
}

#[test]
fn an_address_that_comes_goes_or_changes_is_noticed() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.selection = Selection::Preferred { hold: Duration::from_millis(300) };
    let mobile = world.mobile_node(setup);
    mobile.wait_registered("wlan0");
    let change = |remove: Option<Ipv4Addr>, add: Option<Ipv4Addr>| {
        world
            .mobile
            .run(move || {
                let mut netlink = Netlink::open()?;
                let index = netlink.index_of("wlan0")?;
                if let Some(address) = remove {
                    netlink.remove_address(index, address.into(), 24)?;
                }
                if let Some(address) = add {
                    netlink.add_address(index, address.into(), 24)?;
                }
                Ok::<_, careof_lab::Error>(())
            })
            .unwrap()
            .unwrap();
    };
    let other = Ipv4Addr::new(192, 0, 2, 77);
    change(Some(WLAN), Some(other));
    default_route(&world.mobile, "wlan0", Some(100));
    mobile.wait_until("registered by the new address", |status| {
        status.registration.as_ref().unwrap().care_of == Some(other.into())
    });
    let bindings = home.wait_until("bound", |status| status.bindings.len() == 1).bindings;
    assert_eq!(bindings[0].care_of, other);
    change(Some(other), None);
    mobile.wait_registered("gsm0");
    change(None, Some(WLAN));
    let status = mobile.wait_registered("wlan0");
    assert_eq!(status.registration.unwrap().care_of, Some(WLAN.into()));
}

/// Where a datagram from the mobile node to `to` seems to come from, and what the kernel chose.
fn source_seen(world: &World, to: (Ipv4Addr, u16), port: &Udp) -> Ipv4Addr {
    let socket = world
        .mobile
        .run(move || {
            let socket = Udp::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.connect(to).unwrap();
            socket.send(b"hello").unwrap();
            socket
        })
        .unwrap();
    let mut buffer = [0; 100];
    let (_, from) = port.recv_from(&mut buffer).unwrap();
    assert_eq!(socket.local_addr().unwrap().ip(), from.ip());
    match from.ip() {
        std::net::IpAddr::V4(address) => address,
        other => panic!("{other}"),
    }
}

#[test]
fn the_policy_table_decides_by_prefix_and_port() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    let entry = |destination, port, method| PolicyEntry { destination, port, method };
    setup.config.policy = PolicyTable::new(
        DeliveryMethod::ReverseTunnel,
        [
            entry(Prefix::ALL, Some(53), DeliveryMethod::RegularIp),
            entry(Prefix::new(CORRESPONDENT, 24), Some(80), DeliveryMethod::Triangle),
            entry(Prefix::host(CORRESPONDENT), Some(8080), DeliveryMethod::RegularIp),
            entry(Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 16), None, DeliveryMethod::Triangle),
        ],
    );
    let mobile = world.mobile_node(setup);
    let port = |number| udp(&world.correspondent, CORRESPONDENT, number);
    let (dns, web, proxy, other) = (port(53), port(80), port(8080), port(9999));
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let tunnelled = || mobile.status().tunnels.iter().map(|tunnel| tunnel.packets_out).sum::<u64>();
    for (interface, care_of) in [("wlan0", WLAN), ("gsm0", GSM)] {
        mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
        mobile.wait_registered(interface);
        let before = tunnelled();
        // Of the prefix the longest first: the correspondent's /16 without a port beats any prefix with one.
        assert_eq!(source_seen(&world, (CORRESPONDENT, 53), &dns), HOME);
        assert_eq!(source_seen(&world, (CORRESPONDENT, 80), &web), HOME);
        assert_eq!(source_seen(&world, (CORRESPONDENT, 8080), &proxy), care_of);
        assert_eq!(source_seen(&world, (CORRESPONDENT, 9999), &other), HOME);
        assert_eq!(tunnelled(), before, "triangle and regular IP need no tunnel back");
        let far = udp(&world.home, HA, 9999);
        assert_eq!(source_seen(&world, (HA, 9999), &far), HOME);
        assert_eq!(tunnelled(), before + 1, "the default is the reverse tunnel");
        let far = udp(&world.home, HA, 53);
        assert_eq!(source_seen(&world, (HA, 53), &far), care_of);
    }
    // A connection that is bound to the home address cannot travel by regular IP.
    let from_home = udp(&world.mobile, HOME, 0);
    let before = tunnelled();
    from_home.send_to(b"hello", (CORRESPONDENT, 8080)).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(proxy.recv_from(&mut buffer).unwrap().1.ip(), HOME);
    assert_eq!(tunnelled(), before + 1);
    // The end of the service: a host like any other.
    mobile.with(|node| node.deregister()).unwrap();
    mobile.wait_until("deregistered", |status| !status.registration.as_ref().unwrap().registered);
    assert_eq!(source_seen(&world, (CORRESPONDENT, 9999), &other), WLAN, "by the main table");
}

#[test]
fn simultaneous_bindings_bring_a_copy_by_each_link() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.simultaneous = true;
    let mobile = world.mobile_node(setup);
    for interface in ["wlan0", "gsm0"] {
        mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
        mobile.wait_registered(interface);
    }
    home.wait_until("bound twice", |status| status.bindings.len() == 2);
    let copies = |expected: usize| {
        let here = udp(&world.mobile, HOME, 0);
        let port = here.local_addr().unwrap().port();
        let there = udp(&world.correspondent, CORRESPONDENT, 0);
        there.send_to(b"once", (HOME, port)).unwrap();
        let mut buffer = [0; 100];
        for _ in 0..expected {
            assert!(here.recv(&mut buffer).is_ok(), "of {expected}");
        }
        here.set_read_timeout(Some(SILENCE)).unwrap();
        assert!(here.recv(&mut buffer).is_err(), "more than {expected}");
    };
    copies(2);
    mobile.with(|node| node.release("wlan0")).unwrap();
    home.wait_until("bound once", |status| status.bindings.len() == 1);
    copies(1);
}

#[test]
fn a_link_that_becomes_narrower_is_noticed() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let sender = udp(&world.mobile, HOME, 0);
    let mtu_is = |mtu| {
        mobile.wait_until("of this MTU", |status| {
            sender.send_to(b"hello", (CORRESPONDENT, 9)).unwrap();
            status.tunnels.first().is_some_and(|tunnel| tunnel.mtu == Some(mtu))
        })
    };
    mtu_is(1480);
    let narrower = world.mobile.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("wlan0")?;
        netlink.set_mtu(index, 1000)
    });
    narrower.unwrap().unwrap();
    mtu_is(980);
    // The host's TCP is told by the route.
    assert!(state_of(&world.mobile).iter().any(|route| route.contains("mtu: Some(980)")));
}

#[test]
fn room_for_the_tunnel_is_left_on_a_foreign_link_unless_it_is_not_wanted() {
    let Some(realm) = realm_or_skip() else { return };
    for leave_room in [true, false] {
        let world = World::new(realm);
        let _home = world.home_agent(home_setup(), Hooks::default());
        let mut setup = mobile_setup();
        setup.config.policy = PolicyTable::new(DeliveryMethod::Triangle, []);
        setup.host.leave_room = leave_room;
        let mobile = world.mobile_node(setup);
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        let is_narrow = state_of(&world.mobile).iter().any(|route| route.contains("mtu: Some(1480)"));
        assert_eq!(is_narrow, leave_room);
    }
}
