//! Mobile nodes with several links at once.

use std::fs;
use std::path::Path;

use crate::common::finish;
use careof_metrics::{Summary, summary_json};
use careof_scenario::{NamedIn, Scenario};
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// Two links of 384 kbit/s, as in the paper's emulated network.
const TWO: &str = r#"
duration = "60 s"
[links]
ethernet = "ethernet-100m"
a = { rate = "384 kbit/s", delay = "300 ms", queue = "100 packets" }
b = { rate = "384 kbit/s", delay = "300 ms", queue = "100 packets" }
[mobility]
[multipath]
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
start = "3 s"
"#;

fn parse(text: &str, words: &[&str]) -> Scenario {
    let overrides: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Scenario::parse("two.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn simulate(scenario: Scenario, trace: bool) -> (Summary, Columns) {
    let observation = Observation { trace, ..Observation::default() };
    finish(Simulation::new(scenario, "two.toml", 0, observation).unwrap())
}

fn run(words: &[&str]) -> Summary {
    simulate(parse(TWO, words), false).0
}

fn assert_balanced(summary: &Summary, what: &str) {
    for (book, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what}: {book}");
    }
}

/// Every rule, with and without order restored, and both ways of the mobile node's packets.
#[test]
fn every_dispersion_carries_a_flow_over_both_links_and_its_books_balance() {
    const RULES: [&str; 10] =
        ["auto", "d", "dq", "per-flow", "duplicate", "weighted", "ecf", "blest", "earliest", "overflow"];
    for rule in RULES {
        for resequencer in ["true", "false"] {
            let uplink = if resequencer == "true" { "dispersed" } else { "direct" };
            let summary = run(&[
                &format!("multipath.dispersion={rule}"),
                &format!("multipath.resequencer={resequencer}"),
                &format!("multipath.uplink={uplink}"),
                "links.b.jitter={ spread = \"50 ms\", reorder = true }",
                "links.b.loss=0.005",
                "duration=20 s",
            ]);
            let what = format!("{rule}, resequencer {resequencer}");
            assert_balanced(&summary, &what);
            assert!(
                summary.flows[0].bytes_delivered > 200_000,
                "{what}: {}",
                summary.flows[0].bytes_delivered
            );
            let [home, mobile] = &summary.multipath[..] else { panic!("{what}: two ends") };
            assert_eq!((home.node.as_str(), mobile.node.as_str()), ("home-agent", "mobile"));
            assert!(home.paths.iter().all(|path| path.round_trip.is_some()), "{what}: both are measured");
            let packets: u64 = home.paths.iter().map(|path| path.packets).sum();
            assert_eq!(packets, home.offered - home.no_path + home.copies + home.replayed, "{what}");
            let sent_by_mobile: u64 = mobile.paths.iter().map(|path| path.packets).sum();
            assert_eq!(sent_by_mobile > 0, uplink == "dispersed", "{what}");
            match rule {
                "duplicate" => assert!(home.copies > 0 && mobile.duplicates > 0, "{what}"),
                // Copies only where a path loses packets by itself.
                "auto" => assert!(home.copies > 0 && mobile.duplicates <= home.copies, "{what}"),
                _ => assert_eq!((home.copies, mobile.duplicates), (0, 0), "{what}"),
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let words = ["links.a.jitter={ spread = \"100 ms\", reorder = true }", "duration=20 s"];
    assert_eq!(summary_json(&run(&words)), summary_json(&run(&words)));
    let other = run(&[words[0], words[1], "seed=2"]);
    assert_ne!(run(&words).digest, other.digest);
}

#[test]
fn one_flow_gets_the_sum_of_two_even_links() {
    let goodput = |words: &[&str]| run(words).flows[0].goodput_bps;
    let one = goodput(&["multipath.rules=[{ paths = [\"a\"] }]"]);
    let two = goodput(&["multipath.dispersion=dq"]);
    assert!(two > 1.7 * one, "{two} with two, {one} with one");
}

/// While a flow is pinned its path's queue grows to seconds; splitting begins behind it, and lasts only if all links may be full.
#[test]
fn one_flow_over_three_slow_links_with_long_queues_is_split_by_auto_and_stays_so() {
    for tcp in [
        "{ profile = \"sack\", window = \"256000 B\", window_scaling = true }",
        "{ profile = \"linux\", variant = \"linux\" }",
    ] {
        let delivered = |dispersion: &str| {
            let summary = run(&[
                "links.c={ rate = \"384 kbit/s\", delay = \"300 ms\", queue = \"100 packets\" }",
                &format!("multipath.dispersion={dispersion}"),
                &format!("flow.0.tcp={tcp}"),
            ]);
            assert_balanced(&summary, tcp);
            summary.flows[0].bytes_delivered
        };
        let (auto, alone) = (delivered("auto"), delivered("per-flow"));
        assert!(auto > alone * 2, "{tcp}: {auto} {alone}");
    }
}

/// A second link that is too far away for a flow to be split over both.
#[test]
fn auto_moves_a_flow_from_a_slow_near_link_to_a_quick_one_far_away() {
    let delivered = |words: &[&str]| {
        let links = [
            "links.a={ rate = \"1 Mbit/s\", delay = \"10 ms\", queue = \"200 packets\" }",
            "links.b={ rate = \"20 Mbit/s\", delay = \"300 ms\", queue = \"1000 packets\" }",
        ];
        let summary = run(&[&links, words].concat());
        assert_balanced(&summary, "near and far");
        summary.flows[0].bytes_delivered
    };
    let near = delivered(&["multipath.rules=[{ paths = [\"a\"] }]"]);
    let auto = delivered(&[]);
    assert!(auto > near * 3, "{auto} {near}");
}

#[test]
fn a_rule_keeps_packets_to_the_links_it_names() {
    let summary = run(&["multipath.rules=[{ to = \"correspondent\", paths = [\"b\"] }]", "duration=20 s"]);
    for end in &summary.multipath {
        assert_eq!(end.paths[0].packets, 0, "{}", end.node);
        assert!(end.paths[1].packets > 0, "{}", end.node);
    }
}

#[test]
fn a_link_that_dies_takes_no_flow_with_it_and_comes_back() {
    let text = TWO.replace(
        "b = { rate = \"384 kbit/s\", delay = \"300 ms\", queue = \"100 packets\" }",
        "b = { queue = \"100 packets\", mtu = 1500, trace = \"b.csv\" }",
    );
    let trace = "time_s,rate_mbit_s,delay_ms,loss\n0,0.384,300,0\n20,0.384,300,1\n30,0.384,300,0\n";
    let read = |_: &str, _: NamedIn| Ok(trace.to_owned());
    let scenario = Scenario::parse_with("two.toml", &text, &[], &read);
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let (summary, events) = simulate(scenario, true);
    assert_balanced(&summary, "a link dies");
    let home = &summary.multipath[0];
    assert!(home.paths[1].outages >= 1);
    let out = home.paths[1].out_for.as_secs_f64();
    // A queue of 100 packets is 3 s of round trip, and silence is told by that.
    assert!((2.0..14.0).contains(&out), "out for {out} s of 10 and the time to trust it again");
    let causes = events.by_name("cause").unwrap();
    let count = |wanted| (0..events.rows()).filter(|row| causes.text(*row) == Some(wanted)).count();
    assert!(count("path-out") >= 1 && count("path-back") >= 1);
    assert!(summary.flows[0].bytes_delivered > 60 * 384_000 / 8 / 2);
}

/// The file of a scenario, with the traces beside it.
fn shipped(file: &Path, words: &[&str]) -> Scenario {
    let overrides: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Scenario::load(file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_scenarios_of_the_study_run_and_their_books_balance() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/shake");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let (summary, _) = simulate(shipped(&file, &["duration=20 s"]), false);
        let what = file.display().to_string();
        assert_balanced(&summary, &what);
        assert!(summary.flows[0].bytes_delivered > 0, "{what}");
        assert!(summary.multipath[0].paths.iter().all(|path| path.packets > 0), "{what}: every link is used");
    }
}

/// The summary of any scenario, `TEXT` its file and `WORDS` overrides with `;` between them: for looking at one run.
#[test]
#[ignore = "prints a summary"]
fn print_the_summary_of_a_run() {
    let text =
        std::env::var("TEXT").map_or_else(|_| TWO.to_owned(), |file| fs::read_to_string(file).unwrap());
    let words = std::env::var("WORDS").unwrap_or_default();
    let words: Vec<&str> = words.split(';').filter(|word| !word.is_empty()).collect();
    println!("{}", summary_json(&simulate(parse(&text, &words), false).0));
}
