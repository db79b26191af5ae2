//! What may go wrong around agents: they go on, count it, and recover by themselves.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::support::*;
use careof_agent::{Carrier, Hooks, Setup};
use careof_base::RandomStream;
use careof_lab::{InterfaceConfig, Netlink};
use careof_mobility::v4::{CareOfChoice, Event, HandoverEvent, Notice, Selection};

fn preferring(hold: Duration) -> careof_agent::MobileSetup {
    let mut setup = mobile_setup();
    setup.config.selection = Selection::Preferred { hold };
    setup
}

#[test]
fn a_home_agent_that_does_not_answer_is_asked_with_restraint_until_it_does() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let begun = world.clock.now();
    let mobile = world.mobile_node(preferring(Duration::from_secs(1)));
    let status = mobile.wait_until("asked again", |status| status.counters["messages-sent"] >= 5);
    // After 0, 1, 3, 7 s at the earliest, and so on; two early ones come on top.
    let (sent, passed) = (status.counters["messages-sent"], world.clock.now() - begun);
    let most = (0..8).filter(|doublings| passed >= Duration::from_secs((1 << doublings) - 1)).count() as u64;
    assert!(sent <= most + 2, "{sent} requests in {passed:?}");
    let _home = world.home_agent(home_setup(), Hooks::default());
    mobile.wait_until("registered", |status| status.registration.as_ref().unwrap().registered);
}

#[test]
fn a_link_that_flaps_every_100_ms_neither_wedges_nor_floods() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(preferring(Duration::from_secs(1)));
    mobile.wait_registered("wlan0");
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(2_000_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 80);
    let before = mobile.counter("messages-sent");
    for piece in sent.chunks(sent.len() / 40) {
        client.write_all(piece).unwrap();
        set_interface(&world.mobile, "wlan0", false);
        sleep(Duration::from_millis(100));
        set_interface(&world.mobile, "wlan0", true);
        sleep(Duration::from_millis(100));
    }
    drop(client);
    let requests = mobile.counter("messages-sent") - before;
    // The links were up and down forty times: what each of these costs a busy machine may make a second of.
    assert!(requests < 40, "{requests} requests");
    assert!(received.join().unwrap() == sent);
    default_route(&world.mobile, "wlan0", Some(100));
    mobile.wait_registered("wlan0");
    let handovers = mobile.status().handovers;
    assert!(handovers.len() < 40, "{handovers:#?}");
}

#[test]
fn a_clock_that_is_set_costs_one_more_request() {
    let Some(realm) = realm_or_skip() else { return };
    for (of_mobile_node, hours) in [(true, 3i64), (true, -3), (false, 3), (false, -3)] {
        let world = World::new(realm);
        let offset = Arc::new(AtomicI64::new(100));
        let hooks = |stepped: bool| {
            let offset = Arc::clone(&offset);
            let clock = world.clock;
            let time_of_day: careof_agent::TimeOfDay = Box::new(move || {
                let hours = if stepped { offset.load(Ordering::Relaxed) } else { 100 };
                Duration::from_secs(1_700_000_000 + 3600 * hours.unsigned_abs()) + clock.now().since_start()
            });
            Hooks { time_of_day: Some(time_of_day), ..Hooks::default() }
        };
        let _home = world.home_agent(home_setup(), hooks(!of_mobile_node));
        let mut setup = mobile_setup();
        setup.config.probe = Some(Duration::from_secs(1));
        let mobile = Running::open(&world.mobile, Setup::Mobile(setup), world.clock, hooks(of_mobile_node));
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        offset.fetch_add(hours, Ordering::Relaxed);
        let accepted = mobile.counter("registrations-accepted");
        mobile.wait_until("registered twice since", |status| {
            status.counters["registrations-accepted"] >= accepted + 2
        });
        let status = mobile.status();
        assert!(status.registration.unwrap().registered);
        // Set back, time does not run backwards for stamps: they go on from the latest until the clocks are apart
        // by more than the window.
        let denied = status.counters.get("denied-133").copied().unwrap_or(0);
        assert_eq!(denied, u64::from(hours > 0), "{of_mobile_node} {hours}");
    }
}

#[test]
fn garbage_at_10_000_messages_a_second_is_counted_and_does_not_keep_agents_from_serving() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::with(realm, &fast(), &fast());
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.config.probe = Some(Duration::from_secs(1));
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let stop = Arc::new(AtomicBool::new(false));
    let clock = world.clock;
    let guns: Vec<_> = [(&world.correspondent, HA), (&world.home, WLAN)]
        .map(|(host, target)| {
            let socket = udp(host, Ipv4Addr::UNSPECIFIED, 0);
            let stop = Arc::clone(&stop);
            start(move || {
                let mut random = RandomStream::new(1, 0, "garbage");
                let mut message = [0; 200];
                let (begun, mut sent) = (clock.now(), 0u64);
                while !stop.load(Ordering::Relaxed) {
                    let due = (clock.now() - begun).as_millis() as u64 * 10;
                    while sent < due {
                        message.fill_with(|| random.next_u64() as u8);
                        // A request, a reply, or anything.
                        message[0] = [1, 3, message[0]][random.below(3) as usize];
                        let len = random.below(200) as usize;
                        let _ = socket.send_to(&message[..len], (target, 434));
                        sent += 1;
                    }
                    sleep(Duration::from_millis(1));
                }
                sent
            })
        })
        .into();
    let accepted = mobile.counter("registrations-accepted");
    mobile.wait_until("registered twice more", |status| {
        status.counters["registrations-accepted"] >= accepted + 2
    });
    mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
    mobile.wait_registered("gsm0");
    stop.store(true, Ordering::Relaxed);
    let sent: Vec<u64> = guns.into_iter().map(|gun| gun.join().unwrap()).collect();
    for (agent, host, sent) in [(&home, &world.home, sent[0]), (&mobile, &world.mobile, sent[1])] {
        // Where the machine is too busy for both guns and agents, links and sockets are too full for some of it: what came
        // as far as an agent is counted there, but for the few that look like more than garbage.
        let fetched = host.run(fetched_datagrams).unwrap();
        assert!(fetched > 0 && fetched <= sent + 100, "{fetched} of {sent}");
        agent.wait_until("counted", |status| {
            let drops = status.counters.iter().filter(|(name, _)| name.starts_with("dropped-"));
            drops.map(|(_, count)| count).sum::<u64>() > fetched * 8 / 10
        });
    }
}

/// Datagrams that sockets of this thread's host have received.
fn fetched_datagrams() -> u64 {
    let counters = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split(' ').position(|name| name == "InDatagrams").unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}

fn fast() -> careof_link::Config {
    careof_link::Config {
        rate: careof_base::DataRate::from_megabits_per_second(100),
        delay: Duration::from_millis(1),
        ..careof_link::Config::default()
    }
}

#[test]
fn an_interface_may_be_removed_and_made_again() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mut mobile = world.mobile_node(preferring(Duration::from_secs(1)));
    mobile.wait_registered("wlan0");
    world
        .mobile
        .run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("wlan0")?;
            netlink.remove_interface(index)
        })
        .unwrap()
        .unwrap();
    mobile.wait_registered("gsm0");
    let lost = |event: &Event| matches!(event, Event::Handover(HandoverEvent::LinkDown { .. }));
    assert_eq!(mobile.news().iter().filter(|event| lost(event)).count(), 1);
    // Another one of the same name: nobody is at its other end, so the node comes back to what works.
    let tun = world.mobile.attach(&InterfaceConfig::new("wlan0", WLAN.into(), 24)).unwrap();
    mobile.wait_until("up again", |status| status.interfaces[0].up);
    drop(tun);
    mobile.wait_until("down again", |status| !status.interfaces[0].up);
    mobile.wait_registered("gsm0");
}

#[test]
fn changes_that_come_faster_than_they_are_read_are_caught_up_with() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let clock = world.clock;
    let mut node = {
        let random = RandomStream::new(3, 0, "overrun");
        let setup = Setup::Mobile(preferring(Duration::from_secs(1)));
        world.mobile.run(move || Carrier::open(setup, clock, random, Hooks::default())).unwrap().unwrap()
    };
    let registered = |node: &mut Carrier, interface: &str| {
        let begun = clock.now();
        loop {
            node.turn().unwrap();
            while node.poll_event().is_some() {}
            let registration = node.status().registration.unwrap();
            if registration.registered && registration.interface.as_deref() == Some(interface) {
                return;
            }
            assert!(clock.now() - begun < PATIENCE, "{:#?}", node.status());
            sleep(Duration::from_millis(1));
        }
    };
    registered(&mut node, "wlan0");
    // Nobody reads meanwhile.
    world
        .mobile
        .run(|| {
            let mut netlink = Netlink::open().unwrap();
            let wlan = netlink.index_of("wlan0").unwrap();
            change_too_often(&mut netlink).unwrap();
            netlink.set_down(wlan).unwrap();
        })
        .unwrap();
    registered(&mut node, "gsm0");
    assert!(node.status().counters["network-overruns"] >= 1);
}

#[test]
fn what_is_read_late_and_what_is_due_are_done_at_one_instant() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let clock = world.clock;
    let mut setup = preferring(Duration::from_secs(1));
    // Where it seeks agents, a solicitation is due each second at first.
    setup.config.interfaces[1].care_of = CareOfChoice::ForeignAgent;
    let mut node = {
        let random = RandomStream::new(3, 0, "one instant");
        world.mobile.run(move || Carrier::open(Setup::Mobile(setup), clock, random, Hooks::default()))
    }
    .unwrap()
    .unwrap();
    let turn_until = |node: &mut Carrier, what: &str, is_so: &dyn Fn(&careof_agent::Status) -> bool| {
        let begun = clock.now();
        while !is_so(&node.status()) {
            assert!(clock.now() - begun < PATIENCE, "not {what}: {:#?}", node.status());
            node.turn().unwrap();
            while node.poll_event().is_some() {}
            sleep(Duration::from_millis(1));
        }
    };
    turn_until(&mut node, "registered", &|status| status.registration.as_ref().unwrap().registered);
    careof_agent::refuse_readings(&mut node, 1);
    let removed = world.mobile.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("gsm0")?;
        netlink.remove_address(index, GSM.into(), 24)
    });
    removed.unwrap().unwrap();
    turn_until(&mut node, "told", &|status| status.network_problem.is_some());
    // Both the reading and a solicitation are due when the agent has its next turn.
    sleep(Duration::from_millis(2500));
    turn_until(&mut node, "read again", &|status| status.network_problem.is_none());
}

#[test]
fn what_is_tunnelled_by_strangers_goes_nowhere_and_is_not_answered() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let unreachable = ProtocolUnreachable::listen(&world.correspondent);
    let victim = udp(&world.mobile, HOME, 7000);
    victim.set_read_timeout(Some(SILENCE)).unwrap();
    let sent = world
        .correspondent
        .run(move || {
            for protocol in [4, 55, 47] {
                let socket = careof_lab::TunnelSocket::open(protocol).unwrap();
                let mut batch = careof_lab::SendBatch::new(16);
                for exit in [HA, WLAN] {
                    let mut inner = Vec::new();
                    let header = careof_wire::ipv4::Ipv4Header {
                        source: CORRESPONDENT,
                        destination: HOME,
                        protocol: 17,
                        ttl: 64,
                        payload_len: 12,
                        ..careof_wire::ipv4::Ipv4Header::default()
                    };
                    header.emit(&mut inner);
                    careof_wire::udp::UdpHeader { source_port: 1, destination_port: 7000, payload_len: 4 }
                        .emit(CORRESPONDENT, HOME, b"evil", &mut inner);
                    let encapsulation = match protocol {
                        4 => careof_wire::tunnel::Encapsulation::IpInIp,
                        55 => careof_wire::tunnel::Encapsulation::Minimal,
                        _ => careof_wire::tunnel::Encapsulation::Gre { key: None, sequence: None },
                    };
                    let mut tunnel =
                        careof_mobility::v4::Tunnel { entry: CORRESPONDENT, exit, encapsulation, ttl: 64 };
                    let origin = careof_wire::tunnel::Origin::Local;
                    assert!(
                        batch
                            .push_one(&mut tunnel, careof_lab::Departure::default(), &inner, origin)
                            .unwrap()
                    );
                    // And what is no datagram at all.
                    let outer = careof_lab::Outer {
                        source: CORRESPONDENT,
                        destination: exit,
                        protocol,
                        tos: 0,
                        ttl: 64,
                        dont_fragment: false,
                        interface: None,
                    };
                    assert!(batch.push(&outer, b"garbage"));
                }
                socket.send_batch(&mut batch, |failure| panic!("{failure:?}")).unwrap();
            }
        })
        .is_ok();
    assert!(sent);
    for agent in [&home, &mobile] {
        let count = |status: &careof_agent::Status, name| status.counters.get(name).copied().unwrap_or(0);
        agent.wait_until("all of it counted", |status| {
            (count(status, "packets-not-ours"), count(status, "packets-malformed")) == (3, 3)
        });
    }
    let mut buffer = [0; 100];
    assert!(victim.recv(&mut buffer).is_err(), "nothing arrives");
    assert_eq!(unreachable.heard(), 0);
}

#[test]
fn a_host_that_cannot_be_read_leaves_what_was_known_until_it_can() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let _home = world.home_agent(home_setup(), Hooks::default());
    let mobile = world.mobile_node(mobile_setup());
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    // Every attempt but the last one fails: the address that goes is believed until then.
    mobile.with(|carrier| careof_agent::refuse_readings(carrier, 3));
    let with_gsm = move |work: fn(&mut Netlink, u32)| {
        let work = move || {
            let mut netlink = Netlink::open().unwrap();
            let index = netlink.index_of("gsm0").unwrap();
            work(&mut netlink, index);
        };
        world.mobile.run(work).unwrap();
    };
    let known = |status: &careof_agent::Status| {
        let gsm = status.interfaces.iter().find(|interface| interface.name == "gsm0");
        gsm.and_then(|gsm| gsm.address.clone())
    };
    let before = known(&mobile.status());
    assert!(before.is_some());
    with_gsm(|netlink, index| {
        netlink.remove_address(index, GSM.into(), 24).unwrap();
    });
    let status = mobile.wait_until("told", |status| status.network_problem.is_some());
    assert_eq!(known(&status), before, "the last good state");
    assert!(status.registration.is_some_and(|registration| registration.registered));
    let status = mobile.wait_until("read again", |status| status.network_problem.is_none());
    assert_eq!((known(&status), status.counters["network-unread"]), (None, 3));
}
