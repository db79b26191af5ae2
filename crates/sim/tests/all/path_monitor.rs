//! Mobile nodes that watch their paths.

use crate::common::finish;
use careof_metrics::Summary;
use careof_scenario::{NamedIn, Scenario};
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A link that loses everything from `from` to `to`, and a download over it.
fn run(lossy: &str, overrides: &[&str]) -> (Summary, Columns) {
    let text = "duration = \"30 s\"\n[links]\nethernet = \"ethernet-1g\"\n\
                wifi = { rate = \"10 Mbit/s\", delay = \"20 ms\", trace = \"wifi.csv\" }\n\
                [mobility]\nrouting = \"reverse-tunnel\"\n\
                [[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\nkind = \"bulk\"\nsize = \"15 MB\"\n\
                [assist]\nuse = [\"replay\"]\n"
        .replace("rate = \"10 Mbit/s\", delay = \"20 ms\", ", "");
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let file = format!("time_s,rate_mbit_s,delay_ms,loss\n0,10,20,0\n{lossy}");
    let read = |_: &str, _: NamedIn| Ok(file.clone());
    let scenario = Scenario::parse_with("test.toml", &text, &overrides, &read);
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

fn count(events: &Columns, column: &str, wanted: &str) -> usize {
    let values = events.by_name(column).unwrap();
    (0..events.rows()).filter(|row| values.text(*row) == Some(wanted)).count()
}

/// Both protocols.
const PROTOCOLS: [&str; 2] = ["mobility.protocol=mobile-ipv4", "mobility.protocol=mobile-ipv6"];

#[test]
fn a_silence_that_nobody_announces_is_found_and_its_end_is_registered() {
    let silence = "8,10,20,1\n12,10,20,0\n";
    for protocol in PROTOCOLS {
        // Longer than the silence a router is one that is not heard.
        let interval = "mobility.advertisement_interval=2 s";
        let (without, before) = run(silence, &[protocol, interval, "mobility.path_monitor=false"]);
        let (with, events) = run(silence, &[protocol, interval, "mobility.path_monitor=true"]);
        assert_eq!(count(&before, "message", "PathProbe"), 0);
        assert!(count(&events, "message", "PathProbe") > 20);
        for cause in ["path-silent", "path-answers"] {
            assert_eq!((count(&before, "cause", cause), count(&events, "cause", cause)), (0, 1), "{cause}");
        }
        let longest = |summary: &Summary| summary.flows[0].longest_silence.expect("a silence").as_secs_f64();
        assert!(longest(&without) > 4.5, "{} s, {protocol}", longest(&without));
        assert!(longest(&with) < 4.4, "{} s, {protocol}", longest(&with));
    }
}

#[test]
fn a_silence_in_which_the_router_is_forgotten_too_is_registered_when_it_ends() {
    let (with, events) = run("8,10,20,1\n14,10,20,0\n", &[PROTOCOLS[1], "mobility.path_monitor=true"]);
    for cause in ["path-silent", "path-answers"] {
        assert_eq!(count(&events, "cause", cause), 1, "{cause}");
    }
    assert!(with.flows[0].complete);
    assert_eq!(with.mobility.map(|mobility| mobility.registrations_accepted), Some(2));
}

#[test]
fn a_path_that_works_is_left_alone() {
    for protocol in PROTOCOLS {
        let (with, events) = run("25,10,20,0.05\n", &[protocol, "mobility.path_monitor=true"]);
        assert!(with.flows[0].complete);
        assert!(count(&events, "message", "PathProbe") > 5, "it is watched");
        assert_eq!(count(&events, "cause", "path-silent"), 0);
    }
}

#[test]
fn a_path_that_dies_in_silence_is_left_for_one_that_answers() {
    let choice = [
        "mobility.path_monitor=true",
        "mobility.order=[\"wifi\", \"lte\"]",
        "links.lte={ rate = \"8 Mbit/s\", delay = \"30 ms\" }",
    ];
    let worlds =
        [[PROTOCOLS[0]].as_slice(), &[PROTOCOLS[1]], &[PROTOCOLS[1], "mobility.route_optimization=true"]];
    for world in worlds {
        let (summary, events) = run("8,10,20,1\n1000,10,20,1\n", &[world, &choice].concat());
        assert!(summary.flows[0].complete, "{world:?}");
        assert_eq!(count(&events, "cause", "path-silent"), 1, "{world:?}");
        let begun = count(&events, "cause", "initiated");
        assert_eq!(count(&events, "cause", "registered"), begun, "{world:?}");
        // Over IPv6 the preferred path need not be the first to have an address.
        assert!(begun == 2 || begun == 3 && world[0] == PROTOCOLS[1], "{begun}, {world:?}");
    }
}
