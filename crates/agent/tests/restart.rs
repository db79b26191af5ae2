//! Agents that are killed and started again.

#![allow(missing_docs)]

mod support;

use std::io::Write;
use std::time::Duration;

use careof_agent::Hooks;
use careof_lab::{Netlink, Route, Rule};
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyTable};
use support::*;

#[test]
fn no_connection_breaks_when_the_home_agent_is_killed_and_started_again() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let store = Memory::default();
    let before = state_of(&world.home);
    let mut home = world.home_agent(home_setup(), store.hooks());
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    assert_eq!(store.records()[0].bindings.len(), 1, "written down before the reply left");

    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(1_500_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    let asked = mobile.counter("messages-sent");
    for piece in sent.chunks(500_000) {
        client.write_all(piece).unwrap();
        home.kill();
        sleep(Duration::from_millis(300));
        home = world.home_agent(home_setup(), store.hooks());
        assert_eq!(home.status().bindings.len(), 1);
    }
    drop(client);
    assert!(received.join().unwrap() == sent);
    assert_eq!(mobile.counter("messages-sent"), asked, "nobody had to register again");
    home.close().unwrap();
    assert_eq!(difference(&before, &state_of(&world.home)), ["- 0\n"; 0]);
}

#[test]
fn what_a_killed_mobile_node_left_is_replaced() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let before = state_of(&world.mobile);
    for _ in 0..3 {
        let mobile = world.mobile_node(mobile_setup());
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        mobile.kill();
        // The device and what led there went with it; rules and routes by the links are left.
        assert!(!difference(&before, &state_of(&world.mobile)).is_empty());
    }
    // Somebody else's, and a remnant of a configuration that nobody has any more.
    world
        .mobile
        .run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.add_rule(&Rule::new(20_000, 70_000)).unwrap();
            netlink.add_rule(&Rule::new(5_000, 43_410)).unwrap();
            let gsm = netlink.index_of("gsm0").unwrap();
            let remnant = Route { table: Some(43_463), ..Route::default_through(gsm, ANY) };
            netlink.set_route(&remnant).unwrap();
        })
        .unwrap();
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    assert_eq!(home.status().bindings.len(), 1);
    mobile.close().unwrap();
    let left = difference(&before, &state_of(&world.mobile));
    let rules: Vec<_> = left.iter().filter(|line| line.contains("Rule")).collect();
    assert_eq!(rules.len(), 1, "{left:#?}");
    assert!(rules[0].contains("20000") && !left.iter().any(|line| line.contains("Route")), "{left:#?}");
}

#[test]
fn two_agents_do_not_get_each_other_s_device() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let before = state_of(&world.home);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let second = Running::try_open(
        &world.home,
        careof_agent::Setup::Home(home_setup()),
        world.clock,
        Hooks::default(),
    );
    let error = second.err().unwrap();
    assert!(error.to_string().contains("careof0"), "{error}");
    assert!(!before.is_empty());
}

#[test]
fn another_configuration_keeps_what_it_allows() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let answers = || {
        let here = udp(&world.mobile, HOME, 0);
        let there = udp(&world.correspondent, CORRESPONDENT, 0);
        there.send_to(b"hello", (HOME, here.local_addr().unwrap().port())).unwrap();
        here.recv(&mut [0; 10]).is_ok()
    };
    assert!(answers());
    let mut setup = home_setup();
    setup.config.max_lifetime = careof_wire::mip4::Lifetime::from_secs(60);
    home.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    assert!(answers(), "the binding is kept");
    let mut setup = home_setup();
    setup.config.mobile_nodes.clear();
    home.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    assert!(!answers() && home.status().bindings.is_empty(), "it is served no longer");
    let mut setup = mobile_setup();
    setup.host.tunnel_mtu = 1400;
    let refused = mobile.with(move |node| node.reconfigure(careof_agent::Setup::Mobile(setup)));
    assert!(matches!(refused, Err(careof_agent::Error::NeedsRestart { .. })));
}
