//! Tables that stand for several handovers of one mobile node, and for several flows between the same nodes.

use std::time::Duration;

use careof_scenario::{CopyNumber, LinkId, Scenario, Workload};

const TEXT: &str = r#"title = "x"
duration = "100 s"
[links]
wifi = "lte"
lte = "lte"
dsl = "lte"
[mobility]
[[handover]]
every = "20 s"
from = "wifi"
to = "lte"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
count = 3
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The scenario with `old` replaced by `new`.
fn edited(old: &str, new: &str) -> String {
    assert!(TEXT.contains(old), "{old}");
    TEXT.replacen(old, new, 1)
}

/// When each handover is, in seconds, and between which links.
fn handovers(scenario: &Scenario) -> Vec<(f64, &str, &str)> {
    let name = |link| scenario.link(link).name.as_str();
    scenario.handovers.iter().map(|one| (one.at.as_secs_f64(), name(one.from), name(one.to))).collect()
}

#[test]
fn every_moves_back_and_forth_as_long_as_there_is_time() {
    let scenario = parse(TEXT);
    let there = [(20.0, "wifi", "lte"), (40.0, "lte", "wifi"), (60.0, "wifi", "lte"), (80.0, "lte", "wifi")];
    assert_eq!(handovers(&scenario), there);
    assert!(scenario.poisson_handovers.is_empty());
    // One that would end with the run is left out.
    let late = edited("to = \"lte\"", "to = \"lte\"\nstyle = \"break-before-make\"\ninterruption = \"19 s\"");
    assert_eq!(handovers(&parse(&late)), there);
    let later = late.replace("19 s", "19999 ms").replace("\"100 s\"", "\"99 s\"");
    assert_eq!(handovers(&parse(&later)).len(), 3);
}

#[test]
fn at_says_when_the_first_of_every_is() {
    let scenario = parse(&edited("every = \"20 s\"", "every = \"20 s\"\nat = \"50 s\""));
    assert_eq!(handovers(&scenario), [(50.0, "wifi", "lte"), (70.0, "lte", "wifi"), (90.0, "wifi", "lte")]);
}

#[test]
fn each_handover_of_a_table_has_the_link_layer_of_the_table() {
    let layer =
        "to = \"lte\"\nstyle = \"break-before-make\"\nlink_layer = { scan = \"passive\", channels = 3 }";
    for times in ["every = \"20 s\"", "at = [\"5 s\", \"9 s\"]", "every = \"20 s\"\nspacing = \"poisson\""] {
        let scenario = parse(&edited("to = \"lte\"", layer).replace("every = \"20 s\"", times));
        let drawn = scenario.poisson_handovers.iter().flat_map(|one| &one.round);
        let all: Vec<_> = scenario.handovers.iter().chain(drawn).collect();
        assert!(all.len() >= 2, "{times}");
        assert!(all.iter().all(|one| one.link_layer.is_some()), "{times}");
    }
}

#[test]
fn a_list_of_instants_is_that_many_handovers_and_a_list_of_links_is_their_round() {
    let text = edited("every = \"20 s\"", "at = [\"5 s\", \"9 s\", \"30 s\", \"31 s\"]");
    let text = text.replace("to = \"lte\"", "to = [\"lte\", \"dsl\"]");
    assert_eq!(
        handovers(&parse(&text)),
        [(5.0, "wifi", "lte"), (9.0, "lte", "dsl"), (30.0, "dsl", "wifi"), (31.0, "wifi", "lte")]
    );
}

#[test]
fn drawn_handovers_are_a_round_with_its_mean_and_its_least_distance() {
    let poisson = edited(
        "every = \"20 s\"",
        "every = \"20 s\"\nspacing = \"poisson\"\nstyle = \"break-before-make\"\ninterruption = \"300 ms\"\nnotice = \"1 s\"",
    );
    let scenario = parse(&poisson);
    assert!(scenario.handovers.is_empty());
    let [drawn] = &scenario.poisson_handovers[..] else { panic!("{:?}", scenario.poisson_handovers) };
    assert_eq!((drawn.mean, drawn.least), (Duration::from_secs(20), Duration::from_secs(1)));
    let links: Vec<_> = drawn.round.iter().map(|one| (one.from, one.to)).collect();
    assert_eq!(links, [(LinkId(0), LinkId(1)), (LinkId(1), LinkId(0))]);
    let apart = parse(&poisson.replace("spacing", "least_spacing = \"5 s\"\nspacing"));
    assert_eq!(apart.poisson_handovers[0].least, Duration::from_secs(5));
    assert_ne!(apart.digest(), scenario.digest());
}

#[test]
fn a_table_with_count_is_so_many_flows_between_the_same_nodes() {
    let scenario = parse(TEXT);
    let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["download-1", "download-2", "download-3"]);
    assert_eq!(scenario.flows[2].copy, Some(CopyNumber { number: 3, of: 3 }));
    let first = &scenario.flows[0];
    assert!(scenario.flows.iter().all(|flow| (flow.from, flow.to) == (first.from, first.to)));
    let asked =
        "count = 2\nkind = \"request-response\"\nrequest = \"1 kB\"\nresponse = \"2 kB\"\nrequests = ";
    let counted = parse(&edited("count = 3", &format!("{asked}7")));
    assert!(matches!(counted.flows[1].workload, Workload::RequestResponse { count: Some(7), .. }));
    let endless = parse(&edited("count = 3", &format!("{asked}\"endless\"")));
    assert!(matches!(endless.flows[1].workload, Workload::RequestResponse { count: None, .. }));
}

#[test]
fn what_makes_no_sense_of_several_is_an_error_with_its_place() {
    let every = "every = \"20 s\"";
    let poisson = "every = \"20 s\"\nspacing = \"poisson\"";
    let mut missed = Vec::new();
    for (old, new, place, part) in [
        (every, "every = \"0 s\"", "handover.0.every", "above zero"),
        (every, "every = \"1 ns\"", "handover.0.every", "at most 100000"),
        (every, "at = []", "handover.0.at", "one instant at least"),
        (every, "at = [\"5 s\", \"x\"]", "handover.0.at.1", "found \"x\""),
        (every, "at = [\"9 s\", \"5 s\"]", "handover.0.at.1", "the one before is over at 9 s"),
        (every, "at = [\"9 s\", \"100 s\"]", "handover.0.at.1", "the run ends at 100 s"),
        (every, "every = \"20 s\"\nat = \"100 s\"", "handover.0.at", "the run ends at 100 s"),
        (every, "every = \"100 s\"", "handover.0.every", "the run ends at 100 s"),
        (every, "at = \"5 s\"\nspacing = \"poisson\"", "handover.0.spacing", "add `every`"),
        (every, "every = \"20 s\"\nleast_spacing = \"1 s\"", "handover.0.least_spacing", "\"poisson\""),
        (every, "every = \"20 s\"\nspacing = \"poison\"", "handover.0.spacing", "did you mean \"poisson\"?"),
        (every, "every = \"20 s\"\noverlap = \"20 s\"", "handover.0.every", "longer than a handover takes"),
        (
            every,
            "every = \"20 s\"\nnotice = \"1 s\"\ncancelled = true",
            "handover.0.cancelled",
            "a single handover",
        ),
        (every, &format!("{poisson}\nat = \"5 s\""), "handover.0.at", "are drawn"),
        (every, &format!("{poisson}\nleast_spacing = \"20 s\""), "handover.0.every", "above the least, 20 s"),
        (
            every,
            &format!("{poisson}\nnotice = \"2 s\"\nleast_spacing = \"1 s\""),
            "handover.0.least_spacing",
            "is announced before, 2 s",
        ),
        ("to = \"lte\"", "to = \"let\"", "handover.0.to", "did you mean \"lte\"?"),
        ("to = \"lte\"", "to = [\"lte\", \"wifi\"]", "handover.0.from", "leads to another link"),
        (every, "at = \"5 s\"\nto = [\"lte\", \"dsl\"]\n#", "handover.0.to", "several links are for several"),
        ("count = 3", "count = 0", "flow.0.count", "1"),
        ("count = 3", "count = 2\ncommand = \"true\"", "flow.0.count", "a table of its own"),
        (
            "count = 3",
            "count = 2\nkind = \"request-response\"\nrequest = \"1 kB\"\nresponse = \"2 kB\"",
            "flow.0.count",
            "write `requests`",
        ),
    ] {
        let text = edited(old, new).replace("#\nfrom = \"wifi\"\nto = \"lte\"", "\nfrom = \"wifi\"");
        match Scenario::parse("x.toml", &text, &[]) {
            Ok(_) => missed.push(format!("{new} is accepted")),
            Err(errors) => {
                let message = errors.to_string();
                if !message.contains(&format!("{place}: found")) || !message.contains(part) {
                    missed.push(format!("{new}: {place}: {part}\n{message}"));
                }
                // What is wrong with a table is said once, however many it stands for.
                if errors.0.len() > 2 {
                    missed.push(format!("{new}: {} messages\n{message}", errors.0.len()));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_mobile_node_whose_handovers_are_drawn_has_no_others() {
    let text = edited("[[flow]]", "[[handover]]\nat = \"50 s\"\nfrom = \"wifi\"\nto = \"lte\"\n[[flow]]");
    let text = text.replace("every = \"20 s\"", "every = \"20 s\"\nspacing = \"poisson\"");
    let message = Scenario::parse("x.toml", &text, &[]).unwrap_err().to_string();
    assert!(message.contains("has one [[handover]]"), "{message}");
}
