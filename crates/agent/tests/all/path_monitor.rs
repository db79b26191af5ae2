//! A path goes silent while its interface stays up: nobody says so, and the mobile node finds out.

use std::io::{Read, Write};
use std::time::Duration;

use crate::support::*;
use careof_agent::{Hooks, MobileSetup, Status};
use careof_base::{DataRate, Probability};
use careof_link::{Config, Loss};
use careof_mobility::v4::{DeliveryMethod, Event, HandoverEvent, Notice, PolicyTable, Selection};

fn watching(selection: Selection) -> MobileSetup {
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    setup.config.reverse_tunnel = true;
    setup.config.report_paths = true;
    setup.config.path_monitor = true;
    setup.config.selection = selection;
    setup
}

fn state(status: &Status, interface: &str) -> &'static str {
    let found = status.interfaces.iter().find(|found| found.name == interface).expect("an interface");
    found.path.as_ref().expect("paths are watched").state
}

/// A server that sends, then takes what comes back.
fn exchange(world: &World, len: usize) -> (std::thread::JoinHandle<Vec<u8>>, Tcp) {
    let sent = pattern(len);
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = start(move || {
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.write_all(&sent).unwrap();
        let mut got = Vec::new();
        peer.read_to_end(&mut got).unwrap();
        got
    });
    let client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (server, client)
}

#[test]
fn a_transfer_goes_on_over_the_other_path_when_the_one_in_use_dies_in_silence() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut mobile = world.mobile_node(watching(Selection::Preferred { hold: Duration::from_secs(600) }));
    mobile.wait_registered("wlan0");
    for interface in ["wlan0", "gsm0"] {
        mobile.wait_until("known to answer", |status| state(status, interface) == "alive");
    }
    let sent = pattern(2_000_000);
    let (server, mut client) = exchange(&world, sent.len());
    let mut got = vec![0; 300_000];
    client.read_exact(&mut got).unwrap();
    world.cut(world.wlan);
    let status = mobile.wait_registered("gsm0");
    assert_eq!(state(&status, "wlan0"), "silent");
    assert!(status.interfaces.iter().all(|interface| interface.up), "no link has gone: {status:#?}");
    got.resize(sent.len(), 0);
    client.read_exact(&mut got[300_000..]).unwrap();
    assert!(got == sent, "what arrived is what was sent");
    client.write_all(&sent).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(server.join().unwrap() == sent, "the other way, too");
    // It answers again, and is not relied on before it has for long enough.
    world.mend(world.wlan);
    let status = mobile.wait_until("back", |status| state(status, "wlan0") == "alive");
    assert_eq!(status.registration.unwrap().interface.as_deref(), Some("gsm0"));
    let news = mobile.news();
    let named = |name| {
        news.iter().filter(|event| matches!(event, Event::Handover(event) if event.name() == name)).count()
    };
    assert!(named("path-silent") >= 1 && named("path-answers") >= 1, "{news:?}");
    assert!(!news.iter().any(|event| matches!(event, Event::Handover(HandoverEvent::LinkDown { .. }))));
}

#[test]
fn a_path_that_is_back_after_a_silence_is_registered_again_and_the_transfer_goes_on() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(watching(Selection::Manual));
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    mobile.wait_until("known to answer", |status| state(status, "wlan0") == "alive");
    let sent = pattern(1_000_000);
    let (server, mut client) = exchange(&world, sent.len());
    let mut got = vec![0; 300_000];
    client.read_exact(&mut got).unwrap();
    world.cut(world.wlan);
    let status = mobile.wait_until("silent", |status| state(status, "wlan0") == "silent");
    assert_eq!(status.registration.unwrap().interface.as_deref(), Some("wlan0"), "its owner chooses");
    let accepted = home.counter("registrations-accepted");
    world.mend(world.wlan);
    mobile.wait_until("back", |status| state(status, "wlan0") == "alive");
    home.wait_until("told", |status| status.counters["registrations-accepted"] > accepted);
    got.resize(sent.len(), 0);
    client.read_exact(&mut got[300_000..]).unwrap();
    assert!(got == sent, "what arrived is what was sent");
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(server.join().unwrap().is_empty());
}

#[test]
fn a_path_that_loses_much_is_left_for_the_other_one_and_the_status_says_why() {
    let Some(realm) = realm_or_skip() else { return };
    let good = Config { delay: Duration::from_millis(10), ..Config::default() };
    let lossy = Config { loss: Loss::Bernoulli { p: Probability::new(0.15).unwrap() }, ..good.clone() };
    let world = World::with(realm, &lossy, &good);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = watching(Selection::Preferred { hold: Duration::from_secs(600) });
    setup.config.leave_bad_paths = true;
    for interface in &mut setup.config.interfaces {
        let rate = Some(DataRate::from_megabits_per_second(1000));
        (interface.path.downlink, interface.path.uplink) = (rate, rate);
    }
    let mobile = world.mobile_node(setup);
    mobile.wait_registered("wlan0");
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = start(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let sent = pattern(100_000);
        // Until the other end has enough.
        while peer.write_all(&sent).is_ok() {}
    });
    let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let reader = start(move || {
        let mut got = vec![0; 10_000];
        while stopped.try_recv().is_err() {
            client.read_exact(&mut got).unwrap();
        }
    });
    let status = mobile.wait_registered("gsm0");
    let last = status.handovers.last().expect("a handover");
    assert!(last.reason.starts_with("path-lossy: "), "{last:?}");
    let wlan = status.interfaces.iter().find(|found| found.name == "wlan0").expect("an interface");
    let wlan = wlan.path.as_ref().expect("watched");
    assert!(wlan.avoided && wlan.state == "alive", "{wlan:?}");
    stop.send(()).unwrap();
    reader.join().unwrap();
    server.join().unwrap();
}
