//! Tables that stand for many: links with `count`, flows between patterns, mobile nodes on their round.

use std::time::Duration;

use careof_scenario::{CareOf, CopyNumber, Role, Scenario};

const TREE: &str = r#"title = "x"
duration = "60 s"
[links]
area = { preset = "lte", between = ["home-agent", "area-*"], count = 3 }
cell = { preset = "lte", between = ["area-*", "station-*"], count = 7 }
radio = { preset = "lte", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 10
[[handover]]
every = "10 s"
interruption = "100 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile-*"
"#;

const PAIRS: &str = r#"title = "x"
duration = "60 s"
[links]
left = { preset = "lte", between = ["sender-*", "router"], count = 3 }
right = { preset = "lte", between = ["router", "receiver-*"], count = 3 }
[[flow]]
from = "sender-*"
to = "receiver-*"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The messages for `text` with `old` replaced by `new`.
fn wrong(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    match Scenario::parse("x.toml", &text.replacen(old, new, 1), &[]) {
        Ok(_) => panic!("{new} is accepted"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn copies_of_a_link_are_numbered_and_shared_out_in_order() {
    let scenario = parse(TREE);
    let ends = |name: &str| {
        let link = scenario.link(scenario.link_named(name).unwrap());
        link.ends.map(|end| scenario.node(end).name.as_str())
    };
    assert_eq!(ends("area-3"), ["home-agent", "area-3"]);
    assert_eq!(
        [1, 2, 3, 4, 5, 6, 7].map(|n| ends(&format!("cell-{n}"))[0].to_owned()),
        ["area-1", "area-1", "area-1", "area-2", "area-2", "area-3", "area-3"]
    );
    assert_eq!(ends("cell-7")[1], "station-7");
    let link = scenario.link(scenario.link_named("cell-7").unwrap());
    assert_eq!(link.copy, Some(CopyNumber { number: 7, of: 7 }));
}

#[test]
fn many_mobile_nodes_begin_at_their_stations_and_leave_one_after_the_other() {
    let scenario = parse(TREE);
    let mobility = scenario.mobility.as_ref().unwrap();
    let fleet = mobility.fleet.as_ref().unwrap();
    assert_eq!((fleet.count, fleet.stations.len(), mobility.care_of), (10, 7, CareOf::ForeignAgent));
    for n in 0..10 {
        let node = scenario.node_named(&format!("mobile-{}", n + 1)).unwrap();
        assert_eq!((node.0, scenario.node(node).role), (fleet.first.0 + n, Role::Mobile));
        let radio = &scenario.links[fleet.radio.0 + n];
        assert_eq!((radio.name.clone(), radio.ends[1]), (format!("radio-{}", n + 1), node));
        assert_eq!(scenario.node(radio.ends[0]).name, format!("station-{}", n % 7 + 1));
        assert_eq!(fleet.first_handover(n), Some(Duration::from_secs(n as u64 + 1)));
    }
    assert_eq!(scenario.links.len(), fleet.radio.0 + 10, "the radios come last");
    assert!(fleet.stations.iter().all(|station| scenario.node(*station).role == Role::ForeignAgent));
    assert!(scenario.node_named("mobile").is_none());
    assert_eq!(scenario.flows.len(), 10);
    assert_eq!(
        (scenario.flows[9].name.as_str(), scenario.node(scenario.flows[9].to).name.as_str()),
        ("download-10", "mobile-10")
    );
}

#[test]
fn one_of_many_is_still_counted() {
    let scenario = parse(&TREE.replace("nodes = 10", "nodes = 1"));
    assert!(scenario.node_named("mobile-1").is_some());
    assert_eq!(scenario.flows[0].name, "download-1");
}

#[test]
fn patterns_are_joined_node_by_node() {
    let scenario = parse(PAIRS);
    let names: Vec<_> = scenario
        .flows
        .iter()
        .map(|flow| {
            [&flow.name, &scenario.node(flow.from).name, &scenario.node(flow.to).name].map(String::as_str)
        })
        .collect();
    assert_eq!(
        names,
        [
            ["flow-1-1", "sender-1", "receiver-1"],
            ["flow-1-2", "sender-2", "receiver-2"],
            ["flow-1-3", "sender-3", "receiver-3"],
        ]
    );
}

#[test]
fn what_stands_for_many_is_one_entry_of_the_resolved_scenario() {
    let (few, many) = (parse(TREE), parse(&TREE.replace("nodes = 10", "nodes = 11")));
    assert_ne!(few.digest(), many.digest());
    let json: serde_json::Value = serde_json::from_str(&few.canonical_json()).unwrap();
    assert_eq!(json["flows"].as_array().unwrap().len(), 1);
    assert_eq!(json["flows"][0]["copies"]["count"], 10);
    assert_eq!(json["flows"][0]["copies"]["last_between"][1], "mobile-10");
    // area, cell, radio, and the ethernet that is understood.
    assert_eq!(json["links"].as_array().unwrap().len(), 4);
    assert_eq!(json["mobility"]["nodes"], 10);
}

#[test]
fn who_goes_round_stations_may_have_the_link_layer_of_802_11_and_be_late() {
    let text = TREE.replace(
        "interruption = \"100 ms\"",
        "link_layer = { scan_time = { mean = \"300 ms\", deviation = \"50 ms\" } }\nspread = \"1 s\"",
    );
    let scenario = parse(&text);
    let round = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref()?.round).unwrap();
    let longest = round.link_layer.unwrap().longest();
    // Three deviations above the mean, and two exchanges of frames of less than 10 ms in all.
    assert!((Duration::from_millis(450)..Duration::from_millis(460)).contains(&longest), "{longest:?}");
    assert_eq!((round.spread, round.interruption), (Duration::from_secs(1), Duration::ZERO));
    let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
    assert_eq!(json["mobility"]["link_layer"]["scan"]["length"]["deviation_ns"], 50_000_000);
    assert_eq!(json["mobility"]["spread_ns"], 1_000_000_000);
}

#[test]
fn a_wrong_tree_is_refused_where_it_is_wrong() {
    let mut missed = Vec::new();
    let radio = "radio = { preset = \"lte\", between = [\"station-*\", \"mobile-*\"] }";
    for (old, new, place, part) in [
        (
            "interruption = \"100 ms\"",
            "link_layer = { detection_time = \"10 s\" }",
            "handover.0.link_layer",
            "shorter than `every`",
        ),
        (
            "interruption = \"100 ms\"",
            "interruption = \"100 ms\"\nlink_layer = \"802.11\"",
            "handover.0.interruption",
            "leave one of the two out",
        ),
        (
            "interruption = \"100 ms\"",
            "link_layer = \"802.11\"\nspread = \"9950 ms\"",
            "handover.0.spread",
            "shorter than `every`",
        ),
        ("nodes = 10", "nodes = 0", "mobility.nodes", "between 1 and 20000"),
        ("nodes = 10", "nodes = 20001", "mobility.nodes", "between 1 and 20000"),
        ("nodes = 10\n", "", "links.radio.between", "add nodes = 10 to [mobility]"),
        (
            "nodes = 10",
            "nodes = 10\ncare_of = \"co-located\"",
            "mobility.care_of",
            "the stations are foreign agents",
        ),
        ("nodes = 10", "nodes = 10\nstart = \"cell\"", "mobility.start", "a station of its own"),
        ("nodes = 10", "nodes = 10\nhome = \"cell\"", "mobility.home", "away from home"),
        ("every = \"10 s\"", "every = \"0 s\"", "handover.0.every", "above zero"),
        ("every = \"10 s\"", "every = \"10 s\"\nat = \"1 s\"", "handover.0.at", "round the stations"),
        (
            "every = \"10 s\"",
            "every = \"10 s\"\nstyle = \"make-before-break\"",
            "handover.0.style",
            "one station at a time",
        ),
        ("every = \"10 s\"", "every = \"10 s\"\nqueued = \"re-route\"", "handover.0.queued", "is dropped"),
        (
            "interruption = \"100 ms\"",
            "interruption = \"10 s\"",
            "handover.0.interruption",
            "shorter than `every`",
        ),
        (
            "every = \"10 s\"\ninterruption = \"100 ms\"",
            "at = \"1 s\"\nfrom = \"cell-1\"\nto = \"cell-2\"",
            "handover.0.at",
            "write every = \"10 s\"",
        ),
        ("[[flow]]", "[[handover]]\nevery = \"3 s\"\n[[flow]]", "handover.1.every", "moves all mobile nodes"),
        ("count = 7", "count = 1", "handover.0.every", "two stations"),
        ("count = 7 }", "}", "links.cell.between", "add count = 10"),
        ("count = 7", "count = 0", "links.cell.count", "between 1 and 20000"),
        ("[\"home-agent\", \"area-*\"]", "[\"home-agent\", \"area-1\"]", "links.area.count", "\"area-1-*\""),
        ("\"area-*\"]", "\"area-**\"]", "links.area.between.1", "one `*`"),
        (radio, "", "mobility", "the mobile nodes need a radio"),
        (radio, "radio = \"lte\"", "links.radio", "with `nodes` a link names the nodes it joins"),
        (
            "\"mobile-*\"] }",
            "\"mobile-*\"], count = 4 }",
            "links.radio.count",
            "as many radios as mobile nodes",
        ),
        (
            radio,
            &format!("{radio}\nother = {{ preset = \"lte\", between = [\"station-*\", \"mobile-*\"] }}"),
            "links.other.between",
            "one radio, and that is \"radio\"",
        ),
        (
            radio,
            &format!("{radio}\nwire = {{ preset = \"lte\", between = [\"station-1\", \"mobile-3\"] }}"),
            "links.wire.between",
            "one link leads to the mobile nodes",
        ),
        (
            "[\"station-*\", \"mobile-*\"]",
            "[\"mast-*\", \"mobile-*\"]",
            "links.radio.between",
            "other links join to the rest",
        ),
        (
            "[\"station-*\", \"mobile-*\"]",
            "[\"home-agent\", \"mobile-*\"]",
            "links.radio.between",
            "a node of its own",
        ),
        ("to = \"mobile-*\"", "to = \"mobil-*\"", "flow.0.to", "there is no mobil-1"),
        ("to = \"mobile-*\"", "to = \"mobile\"", "flow.0.to", "found \"mobile\""),
    ] {
        let message = wrong(TREE, old, new);
        if !message.contains(&format!(": {place}: found")) || !message.contains(part) {
            missed.push(format!("{new}: {place}: {part}\n{message}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_round_needs_many_mobile_nodes() {
    let one = r#"duration = "60 s"
[links]
wavelan = "wavelan"
[mobility]
[[handover]]
every = "10 s"
"#;
    let message = wrong(one, "10 s", "9 s");
    assert!(
        message.contains("handover.0.every") && message.contains("add `nodes` to [mobility]"),
        "{message}"
    );
}

#[test]
fn pairs_that_do_not_match_are_refused() {
    for (old, new, part) in [
        ("\"receiver-*\"], count = 3", "\"receiver-*\"], count = 4", "found 4 nodes; node by node"),
        ("to = \"receiver-*\"", "to = \"sender-*\"", "two different nodes"),
        (
            "[[flow]]",
            "[[flow]]\nname = \"flow-1-2\"\nfrom = \"sender-1\"\nto = \"receiver-1\"\n[[flow]]\nname = \"flow-1\"",
            "no two flows share a name",
        ),
        (
            "right = { preset = \"lte\", between = [\"router\"",
            "right = { preset = \"lte\", between = [\"other\"",
            "no path of links",
        ),
    ] {
        let message = wrong(PAIRS, old, new);
        assert!(message.contains(part), "{new}: {message}");
    }
}
