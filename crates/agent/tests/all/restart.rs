//! Agents that are killed and started again.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::support::*;
use careof_agent::{Hooks, Setup};
use careof_lab::{Netlink, Route, Rule};
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyTable};

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
            // Among the agent's priorities, and for somebody else.
            netlink.add_rule(&Rule::new(5_210, 52)).unwrap();
            netlink.add_rule(&Rule::new(4_540, Route::MAIN_TABLE)).unwrap();
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
    assert_eq!(rules.len(), 3, "{left:#?}");
    for theirs in ["priority: 20000,", "priority: 5210,", "priority: 4540,"] {
        assert!(rules.iter().any(|rule| rule.contains(theirs)), "{theirs} {left:#?}");
    }
    assert!(!left.iter().any(|line| line.contains("Route")), "{left:#?}");
}

#[test]
fn a_store_that_fails_stops_nobody_is_told_and_gets_everything_when_it_works_again() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let store = Memory::default();
    let home = world.home_agent(home_setup(), store.hooks());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let saved = store.records();
    assert_eq!(home.status().store.unwrap().failing_s, None);

    store.break_down(true);
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    let status = home.status();
    assert_eq!(status.bindings[0].care_of, GSM, "who moves is not refused");
    let told = status.store.unwrap();
    assert_eq!((told.unsaved, told.problem.as_deref()), (1, Some("no space")));
    assert!(told.failing_s.is_some() && store.records() == saved);
    // Packets are no reason to try again, time is.
    let attempts = status.counters["bindings-not-saved"];
    let begun = world.clock.now();
    let there = udp(&world.correspondent, CORRESPONDENT, 0);
    for _ in 0..200 {
        there.send_to(b"hello", (HOME, 9)).unwrap();
        sleep(Duration::from_millis(1));
    }
    let more = home.counter("bindings-not-saved") - attempts;
    // It tries again every five seconds.
    assert!(more <= (world.clock.now() - begun).as_secs() / 5 + 1, "{more} attempts more");
    store.break_down(false);
    let status = home.wait_until("written down", |status| status.store.as_ref().unwrap().unsaved == 0);
    assert_eq!((status.store.unwrap().problem, store.records()[0].bindings[0].care_of), (None, GSM));
}

fn parameter(host: &careof_lab::Host, name: &'static str) -> String {
    host.run(move || careof_lab::sysctl(name).unwrap()).unwrap()
}

fn set_parameter(host: &careof_lab::Host, name: &'static str, value: &'static str) {
    host.run(move || careof_lab::set_sysctl(name, value).unwrap()).unwrap();
}

#[test]
fn kernel_parameters_are_set_back_by_the_life_after_a_killed_one() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    set_parameter(&world.home, "net.ipv4.ip_forward", "0");
    set_parameter(&world.mobile, "net.ipv4.conf.wlan0.rp_filter", "1");
    let before = [state_of(&world.home), state_of(&world.mobile)];
    let (of_home, of_mobile) = (Parameters::default(), Parameters::default());
    for _ in 0..2 {
        let home = world.home_agent(home_setup(), of_home.hooks());
        let setup = Setup::Mobile(mobile_setup());
        let mobile = Running::open(&world.mobile, setup, world.clock, of_mobile.hooks());
        assert_eq!(parameter(&world.home, "net.ipv4.ip_forward"), "1");
        assert_eq!(parameter(&world.mobile, "net.ipv4.conf.wlan0.rp_filter"), "2");
        mobile.kill();
        home.kill();
    }
    assert_eq!(parameter(&world.home, "net.ipv4.ip_forward"), "1", "nobody was there to set it back");
    let home = world.home_agent(home_setup(), of_home.hooks());
    let setup = Setup::Mobile(mobile_setup());
    let mobile = Running::open(&world.mobile, setup, world.clock, of_mobile.hooks());
    assert_eq!(parameter(&world.mobile, "net.ipv4.conf.wlan0.rp_filter"), "2");
    mobile.close().unwrap();
    home.close().unwrap();
    assert_eq!(difference(&before[0], &state_of(&world.home)), [""; 0]);
    assert_eq!(difference(&before[1], &state_of(&world.mobile)), [""; 0]);
    assert!(of_home.changes().is_empty() && of_mobile.changes().is_empty(), "nothing is left to set back");
}

#[test]
fn what_a_killed_agent_has_set_and_its_successor_does_not_need_is_set_back_at_once() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let log = Parameters::default();
    let before = state_of(&world.mobile);
    let setup = Setup::Mobile(mobile_setup());
    Running::open(&world.mobile, setup, world.clock, log.hooks()).kill();
    assert_eq!(parameter(&world.mobile, "net.ipv4.conf.gsm0.ignore_routes_with_linkdown"), "1");
    // Somebody has set one since, which is his business.
    set_parameter(&world.mobile, "net.ipv4.conf.wlan0.ignore_routes_with_linkdown", "0");
    let mut setup = mobile_setup();
    setup.config.interfaces.truncate(1);
    setup.devices.truncate(1);
    let mobile = Running::open(&world.mobile, Setup::Mobile(setup), world.clock, log.hooks());
    assert_eq!(parameter(&world.mobile, "net.ipv4.conf.gsm0.ignore_routes_with_linkdown"), "0");
    assert_eq!(parameter(&world.mobile, "net.ipv4.conf.wlan0.ignore_routes_with_linkdown"), "1");
    mobile.kill();
    // Nor does one that is to set none at all.
    let mut setup = mobile_setup();
    setup.host.set_kernel_parameters = false;
    let mobile = Running::open(&world.mobile, Setup::Mobile(setup), world.clock, log.hooks());
    assert_eq!(parameter(&world.mobile, "net.ipv4.conf.wlan0.ignore_routes_with_linkdown"), "0");
    mobile.close().unwrap();
    assert_eq!(difference(&before, &state_of(&world.mobile)), [""; 0]);
}

#[test]
fn what_forwarding_brings_with_it_is_set_back_as_well() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    set_parameter(&world.home, "net.ipv4.ip_forward", "0");
    set_parameter(&world.home, "net.ipv4.conf.all.accept_redirects", "0");
    set_parameter(&world.home, "net.ipv4.conf.gsm0.forwarding", "1");
    let log = Parameters::default();
    world.home_agent(home_setup(), log.hooks()).kill();
    world.home_agent(home_setup(), log.hooks()).close().unwrap();
    assert_eq!(parameter(&world.home, "net.ipv4.ip_forward"), "0");
    assert_eq!(parameter(&world.home, "net.ipv4.conf.all.accept_redirects"), "0");
    assert_eq!(parameter(&world.home, "net.ipv4.conf.wlan0.forwarding"), "0");
    assert_eq!(parameter(&world.home, "net.ipv4.conf.gsm0.forwarding"), "1");
}

#[test]
fn an_interface_that_gets_another_name_is_left_as_it_was() {
    let Some(realm) = realm_or_skip() else { return };
    if Command::new("ip").arg("-V").output().is_err() {
        return eprintln!("skipped: there is no ip(8) to rename an interface with");
    }
    let world = World::new(realm);
    let before = state_of(&world.mobile);
    let mobile = world.mobile_node(mobile_setup());
    let rename = |to: &'static str, from: &'static str| {
        set_interface(&world.mobile, from, false);
        let mut ip = Command::new("ip");
        ip.args(["link", "set", from, "name", to]);
        assert!(world.mobile.spawn(ip).unwrap().wait().unwrap().success());
        set_interface(&world.mobile, to, true);
    };
    rename("other0", "gsm0");
    mobile.wait_until("left as it was", |_| {
        parameter(&world.mobile, "net.ipv4.conf.other0.ignore_routes_with_linkdown") == "0"
    });
    rename("gsm0", "other0");
    mobile.wait_until("back", |_| {
        parameter(&world.mobile, "net.ipv4.conf.gsm0.ignore_routes_with_linkdown") == "1"
    });
    mobile.close().unwrap();
    default_route(&world.mobile, "gsm0", Some(200));
    assert_eq!(difference(&before, &state_of(&world.mobile)), [""; 0]);
}

#[test]
fn two_agents_do_not_get_each_other_s_device() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let before = state_of(&world.home);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let with_one = state_of(&world.home);
    let second = Running::try_open(
        &world.home,
        careof_agent::Setup::Home(home_setup()),
        world.clock,
        Hooks::default(),
    );
    let error = second.err().unwrap();
    assert!(error.to_string().contains("careof0"), "{error}");
    assert!(error.remedy().unwrap().contains("tunnel_device"), "{error}");
    assert_ne!(before, with_one);
    assert_eq!(
        difference(&with_one, &state_of(&world.home)),
        [""; 0],
        "the first one's routes and rules stay"
    );
}

#[test]
fn another_configuration_keeps_what_it_allows() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let answers = |patience| {
        let here = udp(&world.mobile, HOME, 0);
        here.set_read_timeout(Some(patience)).unwrap();
        let there = udp(&world.correspondent, CORRESPONDENT, 0);
        there.send_to(b"hello", (HOME, here.local_addr().unwrap().port())).unwrap();
        here.recv(&mut [0; 10]).is_ok()
    };
    assert!(answers(PATIENCE));
    let mut setup = home_setup();
    setup.config.max_lifetime = careof_wire::mip4::Lifetime::from_secs(60);
    home.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    assert!(answers(PATIENCE), "the binding is kept");
    let mut setup = home_setup();
    setup.config.mobile_nodes.clear();
    home.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    assert!(!answers(SILENCE) && home.status().bindings.is_empty(), "it is served no longer");
    let mut setup = mobile_setup();
    setup.host.tunnel_mtu = 1400;
    let refused = mobile.with(move |node| node.reconfigure(careof_agent::Setup::Mobile(setup)));
    assert!(matches!(refused, Err(careof_agent::Error::NeedsRestart { .. })));
}

#[test]
fn bindings_end_on_the_operators_word_and_with_the_permission() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    let before = state_of(&world.home);
    let registers = |interface: &'static str| {
        mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
        mobile.wait_registered(interface);
        assert!(!home.status().bindings.is_empty());
    };
    let nothing_is_left = |when: &str| {
        assert!(home.status().bindings.is_empty(), "{when}");
        assert_eq!(difference(&before, &state_of(&world.home)), [""; 0], "{when}");
    };
    registers("wlan0");
    let dropped = || home.with(|agent| agent.drop_mobile_node(HOME)).unwrap();
    assert_eq!(dropped(), 1);
    nothing_is_left("dropped");
    assert_eq!(dropped(), 0);

    registers("gsm0");
    let mut setup = home_setup();
    setup.config.mobile_nodes.iter_mut().for_each(|node| node.permitted = false);
    home.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    nothing_is_left("not permitted");
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_until("denied", |status| status.counters.get("denied-129").is_some_and(|count| *count > 0));
    nothing_is_left("denied");
    let refused = mobile.with(|node| node.drop_mobile_node(HOME));
    assert!(matches!(refused, Err(careof_agent::Error::NotForThisRole { .. })), "{refused:?}");
}
