//! Two links of a mobile node at once, with the kernel's TCP.

use std::io::{Read, Write};

use crate::support::*;
use careof_agent::{HomeSetup, Hooks, MobileSetup, MultipathStatus, Status};
use careof_mobility::multipath::Scheduler;
use careof_mobility::v4::{DeliveryMethod, MultipathForm, Notice, PolicyTable};

pub(crate) fn home(scheduler: Scheduler) -> HomeSetup {
    let mut setup = home_setup();
    setup.config.multipath = true;
    setup.multipath.scheduler = scheduler;
    setup
}

pub(crate) fn mobile(form: MultipathForm, scheduler: Scheduler) -> MobileSetup {
    let mut setup = mobile_setup();
    setup.config.multipath = Some(form);
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    setup.multipath.scheduler = scheduler;
    setup
}

fn of(status: &Status) -> Option<&MultipathStatus> {
    status.multipath.first()
}

pub(crate) fn has_paths(status: &Status, alive: usize) -> bool {
    let is_alive = |path: &&careof_agent::MultipathPathStatus| path.state == "alive";
    of(status).is_some_and(|several| several.paths.iter().filter(is_alive).count() == alive)
}

/// Waits until both ends have both paths, and know that they work.
fn wait_for_paths(world: &World, home: &Running, mobile: &Running, alive: usize) {
    let _ = world;
    mobile.wait_until("all paths at the mobile node", |status| has_paths(status, alive));
    home.wait_until("all paths at the home agent", |status| has_paths(status, alive));
}

/// What is offered is sent once at least, and what comes is passed on once.
pub(crate) fn books_balance(status: &Status) {
    let several = of(status).unwrap();
    let first = several.transmitted - several.copies - several.replayed;
    assert_eq!(several.offered, several.no_path + first, "{several:#?}");
    let held = several.holds as u64;
    assert_eq!(several.arrived, several.released + several.duplicates + held, "{several:#?}");
    let by_path: u64 = several.paths.iter().map(|path| path.sent_packets).sum();
    assert!(by_path <= several.transmitted, "{several:#?}");
}

const SCHEDULERS: [Scheduler; 4] =
    [Scheduler::Auto, Scheduler::EarliestArrival, Scheduler::Duplicate, Scheduler::PerFlow];

#[test]
fn a_connection_over_two_links_keeps_every_byte_while_they_die_and_return() {
    let Some(realm) = realm_or_skip() else { return };
    let forms = [MultipathForm::Shake, MultipathForm::Rfc7629];
    for (scheduler, form) in SCHEDULERS.into_iter().zip(forms.into_iter().cycle()) {
        let world = World::new(realm);
        let before = state_of(&world.mobile);
        let unreachable = ProtocolUnreachable::listen(&world.home);
        let home = world.home_agent(home(scheduler), Hooks::default());
        let mobile = world.mobile_node(mobile(form, scheduler));
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        wait_for_paths(&world, &home, &mobile, 2);

        // Both ways at once over one connection: what is echoed is what was sent.
        let sent = pattern(2_000_000);
        let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
        let server = start(move || {
            let (mut peer, from) = listener.accept().unwrap();
            let mut buffer = vec![0; 65_536];
            loop {
                match peer.read(&mut buffer).unwrap() {
                    0 => return from.ip(),
                    count => peer.write_all(&buffer[..count]).unwrap(),
                }
            }
        });
        let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(client.local_addr().unwrap().ip(), HOME);
        let mut writer = client.try_clone().unwrap();
        let writing = start({
            let sent = sent.clone();
            move || {
                writer.write_all(&sent).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            }
        });
        let mut got = Vec::new();
        for dying in [world.wlan, world.gsm, world.wlan] {
            world.cut(dying);
            let begun = got.len();
            got.resize(begun + 300_000, 0);
            client.read_exact(&mut got[begun..]).unwrap();
            // Before the other one dies this one has to be back.
            world.mend(dying);
            wait_for_paths(&world, &home, &mobile, 2);
        }
        client.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert_eq!(server.join().unwrap(), HOME);
        assert!(got == sent, "what came back is what was sent");

        for end in [&home, &mobile] {
            let status = end.status();
            books_balance(&status);
            let several = of(&status).unwrap();
            assert_eq!(several.home_address, HOME);
            let carried = several.paths.iter().all(|path| path.sent_packets > 0);
            assert!(carried, "each path has carried something: {several:#?}");
        }
        assert_eq!(unreachable.heard(), 0);
        home.close().unwrap();
        mobile.close().unwrap();
        assert_eq!(difference(&before, &state_of(&world.mobile)), [""; 0], "everything is as it was");
    }
}

#[test]
fn a_home_agent_that_is_killed_goes_on_with_the_paths_that_it_had() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let memory = Memory::default();
    let scheduler = Scheduler::EarliestArrival;
    let first = world.home_agent(home(scheduler), memory.hooks());
    let mobile = world.mobile_node(mobile(MultipathForm::Shake, scheduler));
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    wait_for_paths(&world, &first, &mobile, 2);
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(1_000_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    client.write_all(&sent[..300_000]).unwrap();
    first.kill();
    let second = world.home_agent(home(scheduler), memory.hooks());
    client.write_all(&sent[300_000..]).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    wait_for_paths(&world, &second, &mobile, 2);
    let status = mobile.wait_until("acquainted with the new home agent", |status| {
        of(status).is_some_and(|several| several.peer_restarts == 1)
    });
    books_balance(&status);
    books_balance(&second.status());
}

#[test]
fn a_home_agent_without_multipath_serves_such_a_mobile_node_by_one_link() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile(MultipathForm::Rfc7629, Scheduler::Auto));
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(200_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");
    assert!(home.status().multipath.is_empty());
    assert_eq!(home.status().binding_count, 1);
}

#[test]
fn what_was_counted_of_a_mobile_node_stays_when_the_configuration_leaves_it_out() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let scheduler = Scheduler::EarliestArrival;
    let agent = world.home_agent(home(scheduler), Hooks::default());
    let mobile = world.mobile_node(mobile(MultipathForm::Shake, scheduler));
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    wait_for_paths(&world, &agent, &mobile, 2);
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(200_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent, "what arrived is what was sent");

    let counted = |status: &Status, what: &str| status.counters[&format!("multipath-packets-{what}")];
    let balance = |status: &Status| {
        let passed = ["released", "duplicate", "abandoned"].map(|what| counted(status, what));
        let held: u64 = status.multipath.iter().map(|one| one.holds as u64).sum();
        assert_eq!(counted(status, "arrived"), passed.iter().sum::<u64>() + held);
    };
    let before = agent.status();
    assert_eq!(counted(&before, "offered"), of(&before).unwrap().offered);
    assert!(counted(&before, "offered") > 100 && counted(&before, "arrived") > 0);
    balance(&before);
    let mut setup = home(scheduler);
    setup.config.mobile_nodes.clear();
    agent.with(move |agent| agent.reconfigure(careof_agent::Setup::Home(setup))).unwrap();
    let after = agent.status();
    assert!(after.multipath.is_empty());
    for what in ["offered", "arrived", "released"] {
        assert!(counted(&after, what) >= counted(&before, what), "{what}");
    }
    balance(&after);
}
