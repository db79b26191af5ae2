//! Segments in others' names, while a foreign agent or a mobile node assists a transfer.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::abroad::{Abroad, STATIONS, VISITS, ask_to_visit};
use super::segments::{Forger, KNOWN, Overheard, counter, download_between, far_from, flow_of, scattered};
use crate::support::*;
use careof_agent::{HomeSetup, Hooks, MobileSetup, Setup, Status};
use careof_assist::{Config as Assist, Limits, Place, Replay};
use careof_base::DataRate;
use careof_lab::{Change, Clock, Direction};
use careof_link::{Config, Fate};
use careof_mobility::v4::{DeliveryMethod, HomeAgentConfig, Notice, PolicyTable, ServedMobileNode};
use careof_wire::mip4::PathReport;
use careof_wire::{Flags, Segment, SeqNumber};

/// A second visitor.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
/// Where nobody answers.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 77);
const ROOM: usize = 256;
const STORED: usize = 512;

/// The usual assists with little room, in which nothing is old, however slow the machine is.
fn assists(place: Place) -> Assist {
    let limits = Limits { flows: ROOM, packets: STORED, idle: PATIENCE * 10, ..Limits::DEFAULT };
    let replay = Replay { age: PATIENCE * 10, ..Replay::DEFAULT };
    Assist { replay: Some(replay), limits, ..Assist::default_set(place) }
}

/// All that an agent may have said in others' names since then, for connections that do not count and a few that do, at so many
/// changes of path.
fn ration(begun: Clock, changes: u64) -> u64 {
    let seconds = begun.now().since_start().as_secs() + 2;
    let limits = Limits::DEFAULT;
    let a_second = limits.unreachables_per_second + limits.unproven_acks_per_second;
    u64::from(a_second) * seconds + 4 * changes * u64::from(limits.acks_per_flow)
}

fn said(status: &Status) -> u64 {
    counter(status, "assist-acks-injected") + counter(status, "assist-unreachables")
}

#[track_caller]
fn assert_bounded(status: &Status) {
    let assist = status.assist.as_ref().unwrap();
    assert!(assist.flows.len() <= ROOM, "{} flows", assist.flows.len());
    assert!(assist.stored_packets <= STORED, "{} packets", assist.stored_packets);
}

/// The `n`th of many segments that are of no connection.
fn made_up(n: u32) -> Segment {
    let flags = if n.is_multiple_of(2) { Flags::ACK } else { Flags::SYN };
    let (seq, ack) = (SeqNumber(scattered(n)), SeqNumber(scattered(!n)));
    Segment { flags, seq, ack, window: 500, ..Segment::default() }
}

const ENDS: [Flags; 4] = [Flags::RST, Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK];

#[test]
fn a_foreign_agent_follows_a_live_connection_whatever_comes_from_visitors_links_and_from_outside() {
    const BYTES: usize = 2_000_000;
    let Some(realm) = realm_or_skip() else { return };
    let world = Abroad::new(realm);
    let begun = Clock::start();
    let _home = Running::open(&world.home, Setup::Home(home_setup()), world.clock, Hooks::default());
    let mut setup = world.foreign_setup();
    setup.assist = Some(assists(Place::ForeignAgent));
    let foreign = world.foreign_agent(setup);
    let mobile = world.mobile_node();
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let overheard = Overheard::at(&world.correspondent);
    let transfer = download_between(&world.correspondent, &world.mobile, BYTES);
    let port = transfer.port;
    let [own, theirs] = overheard.numbers(port);
    transfer.wait_for(BYTES / 3);
    let cut = Clock::start();
    world.cut_to_mobile_node(true);
    let kept = |status: &Status| flow_of(status, port).map_or(0, |flow| flow.packets);
    foreign.wait_until("keeps a flight", |status| kept(status) >= 10);
    sleep(Duration::from_millis(300));
    let status = foreign.status();
    let (before, seen) = (kept(&status), counter(&status, "assist-flows"));
    let (inside, outside) = (Forger::at(&world.mobile, HOME), Forger::on(&world.correspondent));
    for n in 0..20 * ROOM as u32 {
        let there = 1_000 + n as u16;
        // In the visitor's name from its link, and in its peers' from outside.
        inside.send_from((HOME, 443), (NOBODY, there), &made_up(n), &[]);
        outside.send_from((NOBODY, there), (HOME, 444), &made_up(n), &[]);
        if n % 50 == 0 {
            for flags in ENDS {
                let (own, theirs) = (far_from(own, n), far_from(theirs, !n));
                let numbers = Segment { flags, seq: own, ack: theirs, ..made_up(n) };
                inside.send_from((HOME, port), (CORRESPONDENT, 80), &numbers, &[]);
                outside.send(80, (HOME, port), &Segment { seq: theirs, ack: own, ..numbers }, &[]);
            }
        }
        if n % 20 == 0 {
            sleep(Duration::from_millis(1));
        }
    }
    let status = foreign
        .wait_until("looked at them", |status| counter(status, "assist-flows") >= seen + 4 * ROOM as u64);
    assert!(counter(&status, "assist-flows-evicted") > 0, "{:#?}", status.counters);
    assert_bounded(&status);
    let is_known = cut.now().since_start() < KNOWN;
    let is_kept = kept(&status) >= before.min(10);
    assert!(is_kept || !is_known, "{before} before, {:?} now", flow_of(&status, port));
    world.cut_to_mobile_node(false);
    let received = transfer.received();
    assert!(received == pattern(BYTES), "{} bytes of {BYTES} are what was sent", received.len());
    let status = foreign.status();
    assert!(said(&status) <= ration(begun, 1), "{:#?}", status.counters);
}

#[test]
fn a_visitor_that_lies_about_its_path_has_a_foreign_agent_say_little_in_others_names() {
    const BYTES: usize = 2_000_000;
    let Some(realm) = realm_or_skip() else { return };
    let world = Abroad::new(realm);
    let begun = Clock::start();
    let setup = home_setup();
    let mobile_nodes = [HOME, OTHER].map(|node| ServedMobileNode::new(node, security())).to_vec();
    let config = HomeAgentConfig { mobile_nodes, ..setup.config };
    let setup = Setup::Home(HomeSetup { config, ..setup });
    let _home = Running::open(&world.home, setup, world.clock, Hooks::default());
    let mut setup = world.foreign_setup();
    setup.assist = Some(assists(Place::ForeignAgent));
    let foreign = world.foreign_agent(setup);
    let mobile = world.mobile_node();
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let transfer = download_between(&world.correspondent, &world.mobile, BYTES);
    transfer.wait_for(BYTES / 10);
    let (overheard, outside) = (Overheard::at(&world.correspondent), Forger::on(&world.correspondent));
    // From one link to the other and back, for each of which the old path is said to be lost.
    let stations = [0, 1].map(|n| udp(&world.mobile, STATIONS[n], 0));
    let (mut heard, forged) = (0, AtomicU32::new(0));
    for turn in 0..12 {
        let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
        let before = foreign.counter("registrations-accepted");
        let accepted = |status: &Status| counter(status, "registrations-accepted") > before;
        let clock = Clock::start();
        while !accepted(&foreign.status()) {
            assert!(clock.now().since_start() < PATIENCE, "{:#?}", foreign.status());
            ask_to_visit(&stations[turn % 2], VISITS[turn % 2], (OTHER, HA), vec![report.extension()]);
            sleep(SILENCE);
        }
        // Until it follows many: the queue on the way takes few at a time.
        foreign.wait_until("follows them", |status| {
            for _ in 0..20 {
                let n = forged.fetch_add(1, Ordering::Relaxed);
                let data = Segment { flags: Flags::ACK, ..made_up(n) };
                outside.send(10_000 + n as u16 % 300, (OTHER, 7), &data, &[7; 100]);
            }
            assert_bounded(status);
            let flows = &status.assist.as_ref().unwrap().flows;
            flows.iter().filter(|flow| flow.home_address == OTHER).count() > 100
        });
        heard += overheard.from(OTHER, 0);
    }
    let received = transfer.received();
    assert!(received == pattern(BYTES), "{} bytes of {BYTES} are what was sent", received.len());
    let status = foreign.status();
    heard += overheard.from(OTHER, 0);
    assert!(said(&status) <= ration(begun, 12), "{:#?}", status.counters);
    assert!(heard <= counter(&status, "assist-acks-injected"), "{heard}: {:#?}", status.counters);
}

#[test]
fn a_mobile_node_follows_its_live_connection_whatever_others_send_and_answers_few_of_them() {
    const BYTES: usize = 2_000_000;
    let Some(realm) = realm_or_skip() else { return };
    let rate = DataRate::from_megabits_per_second(10);
    let path = Config { rate, delay: Duration::from_millis(5), ..Config::default() };
    let world = World::with(realm, &path, &path);
    let begun = Clock::start();
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = MobileSetup { assist: Some(assists(Place::MobileNode)), ..mobile_setup() };
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    setup.config.reverse_tunnel = true;
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");

    let overheard = Overheard::at(&world.correspondent);
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    let port = client.local_addr().unwrap().port();
    let mut server = listener.accept().unwrap().0;
    let (tell, arrived) = std::sync::mpsc::channel();
    let received = start(move || {
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(len @ 1..) = server.read(&mut buffer) {
            got.extend_from_slice(&buffer[..len]);
            let _ = tell.send(got.len());
        }
        got
    });
    let sender = start(move || client.write_all(&pattern(BYTES)).unwrap());
    let [own, theirs] = overheard.numbers(port);
    while arrived.recv_timeout(PATIENCE).unwrap() < BYTES / 3 {}
    let since = Clock::start();
    // What it sends is lost; what others send to it is not.
    let (link, direction) = (world.wlan, Direction::Backward);
    let cut = Change::SetDown { link, direction, queued: Fate::Drop, in_flight: Fate::Drop };
    world.emulator.apply(vec![cut]).unwrap();
    let kept = |status: &Status| flow_of(status, port).map_or(0, |flow| flow.packets);
    mobile.wait_until("keeps a flight", |status| kept(status) >= 10);
    sleep(Duration::from_millis(300));
    let status = mobile.status();
    let (before, seen) = (kept(&status), counter(&status, "assist-flows"));
    let outside = Forger::on(&world.correspondent);
    for n in 0..20 * ROOM as u32 {
        outside.send_broken(1_000 + n as u16, (HOME, 443), &made_up(n));
        outside.send(1_000 + n as u16, (HOME, 444), &made_up(n), &[]);
        if n % 50 == 0 {
            for flags in ENDS {
                let (seq, ack) = (far_from(theirs, n), far_from(own, !n));
                outside.send(80, (HOME, port), &Segment { flags, seq, ack, ..made_up(n) }, &[]);
            }
        }
        if n % 20 == 0 {
            sleep(Duration::from_millis(1));
        }
    }
    let status = mobile
        .wait_until("looked at them", |status| counter(status, "assist-flows") >= seen + 4 * ROOM as u64);
    assert!(counter(&status, "assist-flows-evicted") > 0, "{:#?}", status.counters);
    assert_bounded(&status);
    let is_known = since.now().since_start() < KNOWN;
    let is_kept = kept(&status) >= before.min(10);
    assert!(is_kept || !is_known, "{before} before, {:?} now", flow_of(&status, port));
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    sender.join().unwrap();
    let received = received.join().unwrap();
    assert!(received == pattern(BYTES), "{} bytes of {BYTES} are what was sent", received.len());
    assert!(counter(&mobile.status(), "assist-replayed") > 0);

    world.mend(world.wlan);
    let overheard = Overheard::at(&world.correspondent);
    let mut heard = 0;
    for turn in 0..6 {
        for n in 0..300 {
            outside.send_broken(20_000 + n, (HOME, 443), &made_up(1_000_000 + u32::from(n)));
            if n % 20 == 0 {
                sleep(Duration::from_millis(1));
            }
        }
        let interface = ["wlan0", "gsm0"][turn % 2];
        mobile.with(move |node| node.switch_to(interface, Notice::None)).unwrap();
        assert_bounded(&mobile.wait_registered(interface));
        heard += overheard.from(HOME, port);
    }
    sleep(SILENCE);
    heard += overheard.from(HOME, port);
    let status = mobile.status();
    assert!(said(&status) <= ration(begun, 7), "{:#?}", status.counters);
    assert!(heard <= said(&status), "{heard}: {:#?}", status.counters);
}
