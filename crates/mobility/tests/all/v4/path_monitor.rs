//! What is found out about paths that lose, delay, or die in silence, and what follows from it.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_mobility::v4::*;
use careof_wire::mip4::{Message, PathProbeKind};

use super::paths::{Bench, Load, Path, Traffic, What, input, ms, node, preferred};
use super::world::{GSM, HA, HOME, IF_GSM, IF_WLAN, WLAN};

const TALKS: [Traffic; 4] =
    [Traffic::Bulk(20), Traffic::Download(10), Traffic::Requests(20), Traffic::Requests(300)];

#[test]
fn a_path_that_dies_in_silence_is_left_within_a_round_trip_and_a_second() {
    for round_trip in [20, 50, 100, 200, 300] {
        for traffic in TALKS {
            for seed in 0..8 {
                let paths = [Path::new(round_trip), Path::new(round_trip)];
                let mut bench = Bench::new(seed, node(preferred()), paths);
                bench.run_for(Duration::from_secs(3));
                bench.start(traffic);
                bench.run_for(ms(8000 + seed * 137));
                assert_eq!(bench.active(), Some(0));
                let (died, before) = (bench.now, bench.requests.len());
                bench.paths[0].dead = true;
                bench.run_for(Duration::from_secs(4));
                let asked = bench.requests[before..].iter().find(|(_, path, _)| *path == 1);
                let (at, _, lost) = asked.expect("a request by the other path");
                assert_eq!(*lost, Some(true), "what was on its way is lost");
                let took = *at - died;
                // The pause of who asks now and then is the traffic's own.
                let pause = if let Traffic::Requests(pause) = traffic { ms(pause) } else { Duration::ZERO };
                // And what was on its way to the node still arrives.
                let limit = Duration::from_secs(1) + ms(round_trip * 3 / 2) + pause;
                assert!(took <= limit, "{took:?} at {round_trip} ms with {traffic:?}");
                assert_eq!((bench.active(), bench.count("path-silent")), (Some(1), 1));
                let initiated = bench.events.iter().rev().find_map(|(_, event)| match event {
                    HandoverEvent::Initiated { style, .. } => Some(*style),
                    _ => None,
                });
                assert_eq!(initiated, Some(HandoverStyle::BreakBeforeMake));
                assert!(bench.home.tunnels(HOME).iter().all(|tunnel| tunnel.exit == GSM));
            }
        }
    }
}

#[test]
fn loss_and_jitter_are_no_reason_to_leave_a_path() {
    for round_trip in [20, 100, 300] {
        for traffic in [
            Traffic::Bulk(10),
            Traffic::Download(20),
            Traffic::Requests(20),
            Traffic::Requests(1000),
            Traffic::OneWay(20),
            Traffic::Idle,
        ] {
            for seed in 0..4 {
                let paths = [Path::rough(round_trip), Path::rough(round_trip)];
                let mut bench = Bench::new(seed, node(preferred()), paths);
                bench.run_for(Duration::from_secs(5));
                bench.start(traffic);
                bench.run_for(Duration::from_secs(1800));
                let told: Vec<_> =
                    bench.events.iter().filter(|(_, event)| event.name() == "initiated").collect();
                assert_eq!(told.len(), 1, "{round_trip} ms, {traffic:?}, seed {seed}: {told:?}");
                let first = bench.events.iter().filter(
                    |(_, event)| matches!(event, HandoverEvent::PathSilent { interface, .. } if *interface == IF_WLAN),
                );
                assert_eq!(first.count(), 0, "{round_trip} ms, {traffic:?}, seed {seed}");
                // Of 1805 seconds; what is in doubt costs more.
                let spent = bench.probe_bytes.map(|bytes| bytes as f64 / 1805.0);
                let share = bench.traffic_bytes as f64 / 1805.0 * 0.01;
                assert!(
                    spent[0] <= share + 50.0 && spent[1] <= 50.0,
                    "{spent:?} beside {share}, {traffic:?}"
                );
            }
        }
    }
}

#[test]
fn a_slow_link_with_full_queues_is_not_dead() {
    let slow = Path { rate: Some(9_600), queue: Duration::from_secs(25), ..Path::new(500) };
    for traffic in [Traffic::Bulk(20), Traffic::Bulk(2), Traffic::Download(900), Traffic::Requests(100)] {
        for seed in 0..3 {
            let mut config = node(preferred());
            // A reply that takes longer than the request is waited for answers none.
            config.retransmission.attempts = None;
            let mut bench = Bench::new(seed, config, [slow, Path::new(50)]);
            bench.run_for(Duration::from_secs(10));
            bench.start(traffic);
            bench.run_for(Duration::from_secs(600));
            assert_eq!(bench.count("initiated"), 1, "{traffic:?}, seed {seed}: {:?}", bench.events);
            assert_eq!(bench.count("path-silent"), 0, "{traffic:?}, seed {seed}: {:?}", bench.events);
        }
    }
}

#[test]
fn a_path_that_is_silent_for_seconds_and_back_is_registered_at_once() {
    for selection in [Selection::Manual, preferred()] {
        for round_trip in [20, 100, 300] {
            for silence in [3, 8] {
                // The other path is dead, too.
                let other = Path { dead: true, ..Path::new(50) };
                let mut bench = Bench::new(7, node(selection), [Path::new(round_trip), other]);
                if selection == Selection::Manual {
                    bench.mobile.switch_to(bench.now, IF_WLAN, Notice::None).unwrap();
                    bench.drain();
                }
                bench.run_for(Duration::from_secs(3));
                bench.start(Traffic::Bulk(20));
                bench.run_for(Duration::from_secs(5));
                bench.paths[0].dead = true;
                bench.run_for(Duration::from_secs(silence));
                assert_eq!((bench.active(), bench.state(0)), (Some(0), PathState::Silent));
                let (back, before) = (bench.now, bench.requests.len());
                bench.paths[0].dead = false;
                bench.run_for(Duration::from_secs(2));
                let asked = bench.requests[before..].first().expect("a registration");
                assert_eq!((asked.1, asked.2), (0, Some(true)));
                let took = asked.0 - back;
                assert!(took <= ms(200 + round_trip + 1), "{took:?} at {round_trip} ms");
                assert_eq!(bench.state(0), PathState::Alive);
                let about = bench.events.iter().filter_map(|(_, event)| match event {
                    HandoverEvent::PathSilent { interface, .. }
                    | HandoverEvent::PathAnswers { interface } => {
                        (*interface == IF_WLAN).then_some(event.name())
                    }
                    _ => None,
                });
                assert_eq!(about.collect::<Vec<_>>(), ["path-silent", "path-answers"]);
                // What follows says that nothing is lost.
                bench.run_for(Duration::from_secs(300));
                let last = bench.requests.last().expect("a renewal");
                assert_eq!(last.2, Some(false));
            }
        }
    }
}

#[test]
fn the_path_that_was_left_is_come_back_to_when_it_has_answered_for_long_enough() {
    let mut bench = Bench::new(3, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(5));
    bench.run_for(Duration::from_secs(5));
    let mut stays = Vec::new();
    for _ in 0..4 {
        bench.paths[0].dead = true;
        bench.run_for(Duration::from_secs(20));
        assert_eq!(bench.active(), Some(1));
        bench.paths[0].dead = false;
        let back = bench.now;
        while bench.active() == Some(1) {
            bench.run_for(ms(100));
            assert!(bench.now < back + Duration::from_secs(90));
        }
        stays.push((bench.now - back).as_secs());
        bench.run_for(Duration::from_secs(10));
    }
    assert!(stays[0] >= 5, "{stays:?}");
    assert!(
        stays.windows(2).all(|pair| pair[1] > pair[0]),
        "who comes and goes is relied on later: {stays:?}"
    );
}

#[test]
fn what_happens_nowhere_costs_little() {
    let mut bench = Bench::new(1, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(10));
    let (before, wakes) = (bench.probe_bytes, bench.wakes);
    bench.run_for(Duration::from_secs(3600));
    for path in [0, 1] {
        let rate = (bench.probe_bytes[path] - before[path]) as f64 / 3600.0;
        assert!((7.0..8.0).contains(&rate), "{rate} B/s");
        assert_eq!(bench.state(path), PathState::Alive);
    }
    let a_minute = (bench.wakes - wakes) as f64 / 60.0;
    assert!(a_minute <= 12.0, "{a_minute} wakes a minute");
}

#[test]
fn a_home_agent_that_knows_no_probes_is_left_alone() {
    let mut bench = Bench::new(1, node(preferred()), [Path::new(40), Path::new(60)]);
    // As one that silently discards them.
    let blind = |bench: &mut Bench| {
        bench.queue.retain(|_, what| match what {
            What::Up(_, Load::Signal(transmit)) => transmit.payload.bytes().first() != Some(&255),
            _ => true,
        });
    };
    for _ in 0..20_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    bench.start(Traffic::OneWay(20));
    for _ in 0..20_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    assert_eq!((bench.count("path-silent"), bench.count("initiated")), (0, 1));
    let before = bench.probe_bytes;
    for _ in 0..120_000 {
        bench.run_for(ms(5));
        blind(&mut bench);
    }
    assert!(bench.probe_bytes[0] - before[0] <= 300, "it is asked again rarely");
}

#[test]
fn an_idle_node_finds_a_dead_path_by_its_probes_and_by_registrations() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(60));
    bench.paths[0].dead = true;
    bench.run_for(Duration::from_secs(32));
    assert_eq!(bench.active(), Some(1));
}

#[test]
fn loss_and_rate_are_told_by_the_counters_of_both_ends() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.paths[0].loss = 0.05;
    bench.start(Traffic::OneWay(10));
    bench.run_for(Duration::from_secs(60));
    let quality = bench.mobile.path_quality(IF_WLAN);
    let loss = quality.uplink.loss_permille.unwrap();
    assert!((20..90).contains(&loss), "{loss}");
    let rate = quality.uplink.delivered.unwrap().bits_per_second();
    assert!((680_000..800_000).contains(&rate), "{rate}");
    assert_eq!(quality.downlink.delivered, None);
    let round_trip = quality.round_trip.unwrap();
    assert!((ms(39)..ms(41)).contains(&round_trip), "{round_trip:?}");
}

#[test]
fn a_stranger_s_probe_is_not_answered_and_a_stranger_s_answer_says_nothing() {
    let mut bench = Bench::new(5, node(preferred()), [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    let probe = |kind, sequence, nonce| {
        Message::PathProbe(careof_wire::mip4::PathProbe {
            kind,
            home_address: HOME,
            sequence,
            nonce,
            counts: None,
            extensions: Vec::new(),
        })
        .emit()
    };
    let udp = |bytes, source, destination| Transmit {
        interface: None,
        source,
        destination,
        ttl: 64,
        payload: TransmitPayload::Udp { source_port: 434, destination_port: 434, bytes },
    };
    let sent = bench.home.counters().sent;
    let stranger = Ipv4Addr::new(203, 0, 113, 9);
    let forged = udp(probe(PathProbeKind::Probe, 1, 1), stranger, HA);
    bench.home.handle_input(bench.now, input(&forged, InterfaceId(0)));
    assert_eq!(bench.home.counters().sent, sent);
    assert_eq!(bench.home.counters().dropped(DropReason::MissingAuthenticator), 1);
    // The path is dead, and somebody who has seen no probe says that it is not.
    bench.paths[0].dead = true;
    bench.start(Traffic::Bulk(5));
    for sequence in 0..200 {
        bench.run_for(ms(10));
        let forged = udp(probe(PathProbeKind::Answer, sequence, u64::from(sequence)), HA, WLAN);
        bench.mobile.handle_input(bench.now, input(&forged, IF_WLAN));
        bench.drain();
    }
    assert_eq!(bench.active(), Some(1));
    assert!(bench.mobile.counters().dropped(DropReason::UnexpectedReply) >= 190);
    // Who repeats what a node has sent gets no more answers than that node could use.
    let mut recorded = None;
    while recorded.is_none() {
        bench.run_for(ms(1));
        recorded = bench.queue.values().find_map(|what| match what {
            What::Up(_, Load::Signal(transmit)) if transmit.payload.bytes().first() == Some(&255) => {
                Some(transmit.clone())
            }
            _ => None,
        });
    }
    let recorded = recorded.expect("a probe");
    let sent = bench.home.counters().sent;
    for _ in 0..1000 {
        bench.home.handle_input(bench.now, input(&recorded, InterfaceId(0)));
    }
    assert!(bench.home.counters().sent - sent <= 64);
    assert!(bench.home.bindings_of(HOME).iter().all(|binding| binding.care_of == GSM));
    assert_eq!(bench.state(usize::from(IF_GSM.0)), PathState::Alive);
}

#[test]
fn without_the_key_nothing_is_probed() {
    let config = MobileNodeConfig { path_monitor: false, ..node(preferred()) };
    let mut bench = Bench::new(5, config, [Path::new(40), Path::new(60)]);
    bench.run_for(Duration::from_secs(3));
    bench.start(Traffic::Bulk(5));
    bench.run_for(Duration::from_secs(100));
    assert_eq!((bench.probe_bytes, bench.state(0)), ([0, 0], PathState::Unknown));
}
