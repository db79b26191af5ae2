//! Many mobile nodes on their way round base stations.

use std::time::Duration;

use crate::common::finish;
use careof_base::Instant;
use careof_metrics::{Summary, summary_json};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation, WorldError};
use careof_trace::Columns;

const TREE: &str = r#"
duration = "30 s"
[links]
ethernet = { rate = "1 Gbit/s", delay = "2 ms" }
area = { rate = "1 Gbit/s", delay = "2 ms", between = ["home-agent", "area-*"], count = 2 }
cell = { rate = "1 Gbit/s", delay = "2 ms", between = ["area-*", "station-*"], count = 5 }
radio = { rate = "1 Mbit/s", delay = "5 ms", queue = "20 packets", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 6
[[handover]]
every = "6 s"
interruption = "100 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile-*"
tcp = "newreno"
"#;

fn simulation(overrides: &[&str], trace: bool) -> Simulation {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("tree.toml", TREE, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    Simulation::new(scenario, "tree.toml", 0, Observation { trace, ..Observation::default() }).unwrap()
}

/// The summary and the events of a run, nothing of which appears or vanishes.
fn run(overrides: &[&str], trace: bool) -> (Summary, Columns) {
    finish(simulation(overrides, trace))
}

#[test]
fn relays_stand_between_each_of_many_mobile_nodes_and_its_peer() {
    let split = ["assist=split", "mobility.routing=reverse-tunnel"];
    let others: [&[&str]; 3] = [
        &[],
        &["flow.download.from=mobile-*", "flow.download.to=correspondent"],
        &["flow.download.size=200 kB"],
    ];
    for other in others {
        let (summary, events) = run(&[&split[..], other].concat(), true);
        assert_eq!(summary.flows.len(), 6);
        assert!(summary.flows.iter().all(|flow| flow.bytes_delivered >= 200_000), "{:?}", summary.flows);
        let cause = events.by_name("cause").unwrap();
        assert_eq!((0..events.rows()).filter(|row| cause.text(*row) == Some("open")).count(), 6);
    }
}

#[test]
fn the_link_layer_says_for_how_long_each_handover_leaves_no_link() {
    let spans = |layer: &str| {
        let gone = ["handover=[{ every = \"6 s\" }]", layer];
        let (summary, _) = run(&gone, false);
        let roaming = summary.roaming.unwrap();
        assert!((29..=30).contains(&roaming.handovers), "{roaming:?}");
        (roaming.interruption_min.unwrap(), roaming.interruption_max.unwrap())
    };
    let of = |min: &str, max: &str| {
        spans(&format!("handover.link_layer={{ scan_time = {{ min = \"{min}\", max = \"{max}\" }} }}"))
    };
    let [(_, longest), (shortest, _)] = [of("10 ms", "20 ms"), of("2800 ms", "2900 ms")];
    // The same walk and registrations: what differs is the scan, by at least 2.78 s.
    assert!(shortest >= Duration::from_millis(2_800), "{shortest:?}");
    assert!(longest < Duration::from_millis(2_450), "{longest:?}");
}

#[test]
fn a_spread_moves_handovers_and_draws_them_anew_in_each_repetition() {
    let begun = |spread: &str, run: u64| {
        let scenario = Scenario::parse("tree.toml", TREE, &[format!("handover.spread={spread}")]).unwrap();
        let observation = Observation { trace: true, ..Observation::default() };
        let (_, events) = finish(Simulation::new(scenario, "tree.toml", run, observation).unwrap());
        let [kinds, causes, nodes] = ["kind", "cause", "node"].map(|name| events.by_name(name).unwrap());
        let times = events.by_name("time_ns").unwrap();
        let is_it = |row: usize| {
            [kinds, causes, nodes].map(|column| column.text(row))
                == [Some("handover"), Some("link-down"), Some("mobile-3")]
        };
        (0..events.rows()).filter(|row| is_it(*row)).map(|row| times.number(row).unwrap()).collect::<Vec<_>>()
    };
    let even = begun("0 s", 0);
    let (one, other) = (begun("500 ms", 0), begun("500 ms", 1));
    assert_eq!((even.len(), one.len()), (5, 5));
    assert_ne!(one, other);
    for (at, marked) in one.iter().zip(even) {
        assert!((marked..=marked + 500_000_000).contains(at), "{at}");
    }
}

#[test]
fn every_mobile_node_registers_at_every_station_it_comes_to_and_goes_on_downloading() {
    let (summary, _) = run(&[], false);
    let roaming = summary.roaming.unwrap();
    // Node i leaves at i s and every 6 s from then on: 5 handovers in 30 s each, but that of the last one at 30 s.
    assert_eq!((roaming.nodes, roaming.stations), (6, 5));
    assert!((29..=30).contains(&roaming.handovers), "{roaming:?}");
    assert!(roaming.not_ready <= 1 && roaming.not_resumed <= 2, "{roaming:?}");
    // At least the gap; then a solicitation within 100 ms, an advertisement within a second of the one before, and a
    // registration with two messages over a 5 ms radio.
    assert!(roaming.interruption_min.unwrap() > Duration::from_millis(110), "{roaming:?}");
    assert!(roaming.interruption_max.unwrap() < Duration::from_millis(2_500), "{roaming:?}");
    assert!(summary.handovers.is_empty());
    assert_eq!(summary.flows.len(), 6);
    for flow in &summary.flows {
        assert!(flow.last_delivery.unwrap() > Instant::from_secs(26), "{} stopped", flow.name);
        // Of a radio that is away for some 2 of 6 seconds, timeouts included.
        assert!((0.3e6..0.97e6).contains(&flow.goodput_bps), "{}: {}", flow.name, flow.goodput_bps);
    }
    let mobility = summary.mobility.unwrap();
    assert_eq!(mobility.registrations_denied, 0);
    assert!(mobility.registrations_accepted >= 6 + roaming.handovers - roaming.not_ready);
    assert!(summary.packets.dropped.contains_key("left-cell"), "{:?}", summary.packets.dropped);
}

#[test]
fn the_same_round_twice_is_the_same_run_watched_or_not() {
    let (blind, _) = run(&[], false);
    let (watched, events) = run(&[], true);
    assert_eq!(summary_json(&blind), summary_json(&watched));
    assert_ne!(blind.digest, run(&["seed=2"], false).0.digest, "solicitations are sent at random times");

    let (kinds, nodes) = (events.by_name("kind").unwrap(), events.by_name("node").unwrap());
    let causes = events.by_name("cause").unwrap();
    for mobile in 1..=6 {
        let registered = (0..events.rows()).filter(|row| {
            kinds.text(*row) == Some("handover")
                && causes.text(*row) == Some("registered")
                && nodes.text(*row) == Some(&format!("mobile-{mobile}"))
        });
        assert!(registered.count() >= 5, "mobile-{mobile}");
    }
}

#[test]
fn reverse_tunnels_and_other_headers_follow_the_nodes() {
    for change in
        ["mobility.routing=reverse-tunnel", "mobility.encapsulation=minimal", "mobility.encapsulation=gre"]
    {
        let (summary, _) = run(&[change, "duration=20 s"], false);
        assert!(summary.flows.iter().all(|flow| flow.goodput_bps > 0.2e6), "{change}");
    }
}

#[test]
fn nodes_that_stay_register_once() {
    let (summary, _) = run(&["handover=[]"], false);
    let roaming = summary.roaming.unwrap();
    assert_eq!((roaming.handovers, roaming.interruption_min), (0, None));
    assert_eq!(summary.mobility.unwrap().registrations_accepted, 6);
    assert!(summary.flows.iter().all(|flow| flow.goodput_bps > 0.9e6 && flow.timeouts == 0));
}

#[test]
fn a_round_without_a_gap_still_breaks_before_it_makes() {
    let (summary, _) = run(&["handover.interruption=0 s"], false);
    let roaming = summary.roaming.unwrap();
    assert!(roaming.handovers >= 29 && roaming.interruption_min.unwrap() > Duration::from_millis(10));
}

#[test]
fn what_no_world_can_do_is_refused_by_key() {
    let scenario =
        Scenario::parse("tree.toml", TREE, &["mobility.movement_detection=lifetime".to_owned()]).unwrap();
    let Err(WorldError::Unsupported { key, .. }) = Simulation::new(scenario, "x", 0, Observation::default())
    else {
        panic!("it was accepted")
    };
    assert_eq!(key, "mobility.movement_detection");
}

#[test]
fn each_mobile_node_tells_of_its_own_handovers() {
    for assist in ["rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho", "demo-vegas"] {
        let (summary, _) = run(&[&format!("assist={assist}")], false);
        let taken: Vec<u64> = summary.flows.iter().map(|flow| flow.advice_taken).collect();
        // Five handovers each; the last may come too late, and an option or a datagram may get lost in the next.
        assert!(taken.iter().all(|taken| (3..=5).contains(taken)), "{assist}: {taken:?}");
    }
    // A station whose radio has lost its visitor tells its peer.
    let (summary, _) = run(&["assist=ebsn"], false);
    assert!(summary.flows.iter().all(|flow| flow.advice_taken > 0), "{:?}", summary.flows);
}

const OVER_IPV6: &str = "mobility.protocol=mobile-ipv6";

#[test]
fn over_ipv6_fifty_mobile_nodes_go_round_the_stations_as_over_ipv4() {
    const FIFTY: [&str; 2] = ["mobility.nodes=50", "links.radio.rate=256 kbit/s"];
    let roaming = |more: &[&str]| {
        let (summary, _) = run(&[&FIFTY[..], more].concat(), false);
        let roaming = summary.roaming.clone().unwrap();
        assert_eq!((roaming.nodes, roaming.stations, summary.flows.len()), (50, 5, 50));
        for flow in &summary.flows {
            assert!(flow.last_delivery.unwrap() > Instant::from_secs(24), "{more:?}: {} stopped", flow.name);
        }
        let mobility = summary.mobility.as_ref().unwrap();
        assert_eq!(mobility.registrations_denied, 0);
        // Who leaves the first station within the second that full detection takes is not registered there.
        let registered = mobility.registrations_accepted + roaming.not_ready + 10;
        assert!(registered >= 50 + roaming.handovers, "{more:?} {roaming:?} {mobility:?}");
        assert!(summary.packets.dropped.contains_key("left-cell"), "{:?}", summary.packets.dropped);
        let delivered: u64 = summary.flows.iter().map(|flow| flow.bytes_delivered).sum();
        (roaming, delivered)
    };
    let (ipv4, delivered) = roaming(&["mobility.routing=reverse-tunnel"]);
    let detection = |how: &str| roaming(&[OVER_IPV6, &format!("mobility.duplicate_address_detection={how}")]);
    for (how, least) in [("optimistic", 0), ("none", 0), ("full", 1_000)] {
        let (ipv6, over_ipv6) = detection(how);
        assert_eq!(ipv6.handovers, ipv4.handovers, "{how}");
        assert!(ipv6.not_ready <= ipv4.not_ready + 10, "{how}: {ipv6:?} {ipv4:?}");
        // The gap, two messages by way of the home agent, and with full detection a second that the address waits.
        assert!(ipv6.interruption_min.unwrap() > Duration::from_millis(120 + least), "{how}: {ipv6:?}");
        assert!(ipv6.interruption_max.unwrap() < Duration::from_millis(2_500 + least), "{how}: {ipv6:?}");
        let share = over_ipv6 as f64 / delivered as f64;
        let limits = if least > 0 { 0.6..1.0 } else { 0.85..1.35 };
        assert!(limits.contains(&share), "{how}: {over_ipv6} B instead of {delivered} B");
    }
}

#[test]
fn over_ipv6_a_round_is_the_same_run_watched_or_not_and_care_of_addresses_are_those_of_the_cells() {
    let (blind, _) = run(&[OVER_IPV6], false);
    let (watched, events) = run(&[OVER_IPV6], true);
    assert_eq!(summary_json(&blind), summary_json(&watched));
    let [kinds, details] = ["kind", "detail"].map(|name| events.by_name(name).unwrap());
    let bound: std::collections::BTreeSet<&str> = (0..events.rows())
        .filter(|row| kinds.text(*row) == Some("binding"))
        .filter_map(|row| details.text(row)?.strip_prefix("2001:db8:0:c000::3 at "))
        .filter_map(|text| text.split(' ').next())
        .collect();
    // Eight wired links come before the cells, and one number is that of the home network without a link.
    let cells = (10..15).map(|cell| format!("2001:db8:0:{cell:x}:0:ff:fec0:3"));
    assert_eq!(bound.into_iter().map(str::to_owned).collect::<Vec<_>>(), {
        let mut cells: Vec<String> = cells.collect();
        cells.sort_unstable();
        cells
    });
}

#[test]
fn over_ipv6_routes_are_optimised_for_many_and_assists_serve_them() {
    for more in [
        &["mobility.route_optimization=true"][..],
        &["mobility.route_optimization=true", "assist=default"],
        &["assist=default"],
        &["assist=split"],
        &["assist=tcp-cm"],
        &["assist=ebsn"],
    ] {
        let (summary, _) = run(&[&[OVER_IPV6], more].concat(), false);
        assert!(summary.flows.iter().all(|flow| flow.goodput_bps > 0.2e6), "{more:?}: {:?}", summary.flows);
        if more == ["assist=ebsn"] || more == ["assist=tcp-cm"] {
            assert!(summary.flows.iter().all(|flow| flow.advice_taken > 0), "{more:?}: {:?}", summary.flows);
        }
    }
}
