//! Several links at once.

use careof_scenario::{Dispersion, Routing, Scenario, Treatment, Uplink};

const BASE: &str = r#"
duration = "9 s"
[links]
wifi = "wifi-good"
cell = "lte"
[mobility]
[multipath]
[[flow]]
from = "correspondent"
to = "mobile"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn without_any_key_all_access_links_are_paths_and_both_directions_are_dispersed() {
    let mobility = parse(BASE).mobility.unwrap();
    assert_eq!(mobility.routing, Routing::ReverseTunnel);
    let multipath = mobility.multipath.unwrap();
    assert_eq!((multipath.dispersion, multipath.uplink), (Dispersion::Auto, Uplink::Dispersed));
    assert!(multipath.resequencer.is_some() && multipath.rules.is_empty());
    assert_eq!(multipath.paths.iter().map(|path| path.link.0).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn paths_have_costs_and_weights_and_rules_name_them() {
    let text = BASE.replace(
        "[multipath]",
        "[multipath]\nuplink = \"direct\"\npaths = [{ link = \"cell\", cost = 7, weight = 3 }, \"wifi\"]\n\
         rules = [{ port = 5060, dscp = 46, paths = [\"wifi\"], treatment = \"pinned\" }, { to = \"10.0.0.0/8\" }]",
    );
    let mobility = parse(&text).mobility.unwrap();
    assert_eq!(mobility.routing, Routing::Triangle, "straight to the correspondent node");
    let multipath = mobility.multipath.unwrap();
    let paths: Vec<_> = multipath.paths.iter().map(|path| (path.link.0, path.cost, path.weight)).collect();
    assert_eq!(paths, [(1, 7, 3), (0, 0, 1)]);
    let [calls, all] = &multipath.rules[..] else { panic!("two rules") };
    assert_eq!((calls.port, calls.dscp, calls.treatment), (Some(5060), Some(46), Treatment::Pinned));
    assert_eq!(calls.paths.iter().map(|link| link.0).collect::<Vec<_>>(), [0]);
    assert_eq!(all.paths.len(), 2, "what is left out is all");
}

#[test]
fn what_does_not_go_together_is_refused_where_it_stands() {
    let mut missed = Vec::new();
    for (old, new, place, part) in [
        ("[multipath]", "[multipath]\ndispersion = \"best\"", "multipath.dispersion", "\"earliest\""),
        ("[multipath]", "[multipath]\nscheduler = \"dq\"", "multipath.scheduler", "write `dispersion`"),
        ("[multipath]", "[multipath]\nresequencer = 3", "multipath.resequencer", "true, false or a table"),
        (
            "[multipath]",
            "[multipath]\nresequencer = { bytes = \"0 B\" }",
            "multipath.resequencer.bytes",
            "above zero",
        ),
        ("[multipath]", "[multipath]\npaths = [\"wify\", \"cell\"]", "multipath.paths.0", "\"wifi\""),
        ("[multipath]", "[multipath]\npaths = [\"cell\", \"cell\"]", "multipath.paths.1", "named once"),
        ("[multipath]", "[multipath]\npaths = [\"cell\"]", "multipath", "2 to 8"),
        ("cell = \"lte\"", "", "multipath", "2 to 8"),
        ("[multipath]", "[multipath]\nrules = [{ paths = [] }]", "multipath.rules.0.paths", "at least one"),
        ("[multipath]", "[multipath]\nrules = [{ dscp = 64 }]", "multipath.rules.0.dscp", "63"),
        ("[mobility]", "[mobility]\nprotocol = \"mobile-ipv6\"", "multipath", "Mobile IPv4"),
        ("[mobility]", "[mobility]\ncare_of = \"foreign-agent\"", "multipath", "care-of address of its own"),
        ("[mobility]", "[mobility]\nencapsulation = \"gre\"", "multipath", "header of its own"),
        ("[mobility]", "[mobility]\nrouting = \"triangle\"", "mobility.routing", "`uplink`"),
        ("[mobility]", "[mobility]\nhome = \"wifi\"", "mobility.home", "away from home"),
        ("[mobility]", "[mobility]\npath_monitor = true", "mobility.path_monitor", "all its paths"),
        ("[mobility]\n", "", "multipath", "add [mobility]"),
        (
            "[[flow]]",
            "[[handover]]\nat = \"3 s\"\nfrom = \"wifi\"\nto = \"cell\"\n[[flow]]",
            "multipath",
            "leave [[handover]] out",
        ),
    ] {
        let text = BASE.replacen(old, new, 1);
        let Err(errors) = Scenario::parse("x.toml", &text, &[]) else {
            missed.push(format!("{new}: accepted"));
            continue;
        };
        let said = errors.to_string();
        if !said.contains(place) || !said.contains(part) {
            missed.push(format!("{new}: {said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_relay_is_between_a_router_and_the_mobile_node_and_goes_with_multipath() {
    const LENT: &str = r#"
duration = "9 s"
[nodes]
neighbour = { role = "relay", claims = "10 Mbit/s", vanishes = "2 s", returns = "4 s", drops = 0.5, longest = "30 s" }
[links]
ethernet = "ethernet-100m"
own = "ethernet-10m"
lent = { preset = "ethernet-10m", between = ["home-agent", "neighbour"] }
cluster = { preset = "ethernet-100m", between = ["neighbour", "mobile"] }
[mobility]
[multipath]
trust = "first-use"
"#;
    let scenario = Scenario::parse("x.toml", LENT, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let multipath = scenario.mobility.as_ref().unwrap().multipath.as_ref().unwrap();
    let name = |link| scenario.link(link).name.as_str();
    let own: Vec<_> = multipath.paths.iter().map(|path| name(path.link)).collect();
    let lent: Vec<_> = multipath.relays.iter().map(|one| (name(one.link), name(one.cluster))).collect();
    assert_eq!((own, lent), (vec!["own"], vec![("lent", "cluster")]));
    assert_eq!(multipath.trust, careof_scenario::Trust::FirstUse);
    assert!(scenario.access_links().all(|(_, link)| link.name == "own"), "nobody hands over to a relay");
    for (from, to, key, expected) in [
        ("[multipath]\ntrust = \"first-use\"", "", "nodes.neighbour", "several links at once"),
        (
            "[\"home-agent\", \"neighbour\"]",
            "[\"neighbour\", \"home-agent\"]",
            "nodes.neighbour",
            "second end",
        ),
        ("[\"neighbour\", \"mobile\"]", "[\"home-agent\", \"neighbour\"]", "nodes.neighbour", "one link"),
        ("returns = \"4 s\"", "returns = \"1 s\"", "nodes.neighbour.returns", "after `vanishes`"),
        ("longest = \"30 s\"", "longest = \"1.5 s\"", "nodes.neighbour.longest", "whole seconds"),
        ("role = \"relay\"", "role = \"router\"", "nodes.neighbour.claims", "role = \"relay\""),
        ("own = \"ethernet-10m\"\n", "", "mobility", "found no access link"),
    ] {
        assert!(LENT.contains(from), "{from}");
        let errors = Scenario::parse("x.toml", &LENT.replace(from, to), &[]).unwrap_err().to_string();
        assert!(errors.contains(key) && errors.contains(expected), "{from} -> {to}: {errors}");
    }
}
