//! On links with ARP: the mobile node at home, then with a foreign agent, then at home again.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::ethernet::*;
use crate::support::*;
use careof_agent::Status;
use careof_lab::{Clock, Host, Netlink};
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyTable};
use careof_wire::mip4::{Identification, Lifetime, Message, RegistrationRequest, RequestFlags};

const PORT: u16 = 7000;

/// Sends datagrams from `from` until one of them comes back from the mobile node, or patience ends.
fn answers(from: &Udp, to: Ipv4Addr) -> bool {
    let mut buffer = [0; 2000];
    from.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    (0..5 * PATIENCE.as_secs() as u32).any(|number| {
        from.send_to(&number.to_be_bytes(), (to, PORT)).unwrap();
        from.recv_from(&mut buffer).is_ok_and(|(_, source)| source.ip() == to)
    })
}

/// Echoes in the mobile node until the test ends.
fn echo(host: &Host) {
    let socket = udp(host, HOME, PORT);
    socket.set_read_timeout(None).unwrap();
    start(move || {
        let mut buffer = [0; 2000];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            if len == 0 {
                break;
            }
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
}

fn link_address(host: &Host, name: &'static str) -> [u8; 6] {
    let state = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.interface(index)
    });
    state.unwrap().unwrap().link_address.unwrap()
}

/// The correspondent comes to believe that this is who has the home address.
#[track_caller]
fn comes_to_believe(correspondent: &Host, whose: [u8; 6], what: &str) {
    let clock = Clock::start();
    while believed(correspondent) != Some(whose) {
        assert!(clock.now().since_start() < PATIENCE, "{what}: {:?}, not {whose:?}", believed(correspondent));
        sleep(Duration::from_millis(5));
    }
}

/// Who the correspondent believes to have the home address.
fn believed(host: &Host) -> Option<[u8; 6]> {
    let found = host.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("eth0")?;
        netlink.neighbour(index, HOME)
    });
    found.unwrap().unwrap().and_then(|neighbour| neighbour.link_address)
}

fn at_home(status: &Status) -> bool {
    status.registration.as_ref().is_some_and(|registration| registration.at_home)
}

#[test]
fn a_mobile_node_leaves_home_visits_and_returns() {
    let Some(realm) = realm_or_skip() else { return };
    for (method, encapsulating) in [
        (DeliveryMethod::Triangle, false),
        (DeliveryMethod::ReverseTunnel, false),
        (DeliveryMethod::ReverseTunnel, true),
    ] {
        let Some(world) = Ethernet::new(realm) else { return };
        let before = [state_of(&world.home), state_of(&world.foreign), state_of(&world.mobile)];
        let (home, foreign) = (world.home_agent(), world.foreign_agent(world.foreign_setup()));
        let mut setup = world.mobile_setup();
        setup.config.policy = PolicyTable::new(method, []);
        setup.config.encapsulating_delivery = encapsulating;
        let mobile = world.mobile_node(setup);
        let (correspondent, its_address) = (udp(&world.correspondent, NEIGHBOUR, 0), HOME);
        echo(&world.mobile);

        mobile.with(|node| node.switch_to("eth0", Notice::None)).unwrap();
        mobile.wait_until("at home", at_home);
        assert!(answers(&correspondent, its_address), "at home");
        comes_to_believe(&world.correspondent, link_address(&world.mobile, "eth0"), "at home");

        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        let status = mobile.wait_registered("wlan0");
        assert_eq!(status.registration.unwrap().care_of, Some(FA.into()));
        comes_to_believe(&world.correspondent, link_address(&world.home, "br0"), "gratuitous ARP");
        assert!(answers(&correspondent, its_address), "{method:?} {encapsulating}: {:#?}", foreign.status());
        let visitors = foreign.status().visitors;
        assert_eq!(visitors.len(), 1);
        assert_eq!(visitors[0].interface.as_deref(), Some("visit0"));
        let tunnels = foreign.status().tunnels;
        let back: u64 = tunnels.iter().map(|tunnel| tunnel.packets_out).sum();
        assert_eq!(back > 0, method == DeliveryMethod::ReverseTunnel, "{tunnels:#?}");
        if encapsulating {
            assert!(mobile.status().tunnels.iter().any(|tunnel| tunnel.packets_out > 0));
        }
        // Away, nobody but the home agent answers for the home address: not even on the foreign link.
        let answered = world.foreign.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("visit0")?;
            netlink.neighbour(index, HOME)
        });
        assert!(answered.unwrap().unwrap().is_some_and(|neighbour| neighbour.is_permanent));

        mobile.with(|node| node.switch_to("eth0", Notice::None)).unwrap();
        mobile.wait_until("at home again", at_home);
        assert!(answers(&correspondent, its_address), "at home again");
        comes_to_believe(&world.correspondent, link_address(&world.mobile, "eth0"), "at home again");
        assert!(home.status().bindings.is_empty());
        // Ends the echo.
        correspondent.send_to(&[], (HOME, PORT)).unwrap();
        sleep(Duration::from_millis(50));
        home.close().unwrap();
        foreign.close().unwrap();
        mobile.close().unwrap();
        for (before, host) in before.iter().zip([&world.home, &world.foreign, &world.mobile]) {
            let difference = difference(before, &state_of(host));
            assert_eq!(difference, [""; 0], "everything in {:?} is as it was", host.name());
        }
    }
}

#[test]
fn a_foreign_agent_that_promises_more_than_it_keeps_is_put_up_with() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let home = world.home_agent();
    let mut setup = world.foreign_setup();
    // It advertises 1800 s and accepts 5.
    setup.config.max_lifetime = careof_wire::mip4::Lifetime::from_secs(5);
    let foreign = world.foreign_agent(setup.clone());
    let mobile = world.mobile_node(world.mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    let status = mobile.wait_registered("wlan0");
    assert_eq!(status.counters.get("denied-69"), Some(&1));
    let binding = &home.status().bindings[0];
    assert_eq!((binding.care_of, binding.lifetime_s), (FA.into(), Some(5)));
    // It is killed and started again, and does not know its visitor: the sequence numbers tell.
    let accepted = mobile.counter("registrations-accepted");
    foreign.kill();
    let foreign = world.foreign_agent(setup);
    assert!(foreign.status().visitors.is_empty());
    foreign.wait_until("visited again", |status| status.visitors.len() == 1);
    mobile.wait_until("registered again", |status| {
        status.counters["registrations-accepted"] > accepted
            && status.registration.as_ref().is_some_and(|registration| registration.registered)
    });
    let correspondent = udp(&world.correspondent, NEIGHBOUR, 0);
    echo(&world.mobile);
    assert!(answers(&correspondent, HOME));
    correspondent.send_to(&[], (HOME, PORT)).unwrap();
}

#[test]
fn who_is_refused_takes_nobodys_place_among_the_neighbours() {
    let Some(realm) = realm_or_skip() else { return };
    let Some(world) = Ethernet::new(realm) else { return };
    let foreign = world.foreign_agent(world.foreign_setup());
    let router = Ipv4Addr::new(10, 7, 0, 9);
    let added = world.mobile.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("wlan0")?;
        netlink.add_address(index, router.into(), 24)
    });
    added.unwrap().unwrap();
    let known = |address| {
        let found = world.foreign.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("visit0")?;
            netlink.neighbour(index, address)
        });
        found.unwrap().unwrap()
    };
    let request = RegistrationRequest {
        flags: RequestFlags::RESERVED_R,
        lifetime: Lifetime::from_secs(100),
        home_address: router,
        home_agent: HA,
        care_of_address: FA,
        identification: Identification(1),
        extensions: Vec::new(),
    };
    let socket = udp(&world.mobile, router, 0);
    let mut buffer = [0; 200];
    for _ in 0..2 {
        socket.send_to(&Message::Request(request.clone()).emit(), (FA_LINK, 434)).unwrap();
        assert!(socket.recv(&mut buffer).is_ok(), "refused, and told so");
        let neighbour = known(router).unwrap();
        assert_eq!(neighbour.link_address, Some(link_address(&world.mobile, "wlan0")), "as ARP has it");
        assert!(!neighbour.is_permanent && neighbour.maker == 0);
    }
    assert_eq!(foreign.counter("denied-70"), 2);
}
