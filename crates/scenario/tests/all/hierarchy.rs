//! Mobility anchor points.

use careof_scenario::{MapSelection, Role, Scenario};

const HMIPV6: &str = include_str!("../../../../scenarios/ipv6/hmipv6.toml");

fn parse(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The messages for the ready scenario with `old` replaced by `new`.
fn wrong(old: &str, new: &str) -> String {
    assert!(HMIPV6.contains(old), "{old}");
    match Scenario::parse("x.toml", &HMIPV6.replacen(old, new, 1), &[]) {
        Ok(_) => panic!("{new} is accepted"),
        Err(errors) => errors.to_string(),
    }
}

/// By the name of each mobility anchor point its domain.
fn domains(scenario: &Scenario) -> Vec<(&str, Vec<&str>)> {
    let hierarchy = scenario.mobility.as_ref().unwrap().hierarchy.as_ref().unwrap();
    let name = |node| scenario.node(node).name.as_str();
    let domain = |one: &careof_scenario::AnchorPoint| {
        (name(one.node), one.domain.iter().map(|router| name(*router)).collect())
    };
    hierarchy.anchor_points.iter().map(domain).collect()
}

#[test]
fn a_mobility_anchor_point_has_the_domain_that_it_is_given_or_that_lies_behind_it() {
    let scenario = parse(HMIPV6);
    let expected = [("map-west", vec!["router-a", "router-b"]), ("map-east", vec!["router-c", "router-d"])];
    assert_eq!(domains(&scenario), expected);
    let hierarchy = scenario.mobility.as_ref().unwrap().hierarchy.as_ref().unwrap();
    assert_eq!((hierarchy.selection, hierarchy.anchor_points[0].preference), (MapSelection::Furthest, 10));
    assert_eq!(scenario.nodes.iter().filter(|node| node.role == Role::AnchorPoint).count(), 2);
    // By the routes alone it would be the same.
    let understood = HMIPV6
        .replacen("{ role = \"map\", domain = [\"router-a\", \"router-b\"] }", "\"map\"", 1)
        .replacen(", domain = [\"router-c\", \"router-d\"]", "", 1);
    assert_eq!(domains(&parse(&understood)), expected);
    assert_eq!(parse(&understood).digest(), scenario.digest());
}

#[test]
fn what_the_file_says_of_anchor_points_is_in_its_digest_and_nothing_where_there_is_none() {
    let base = parse(HMIPV6).digest();
    for (old, new) in [
        ("map_selection = \"furthest\"", "map_selection = \"nearest\""),
        ("map_forwarding = \"60 s\"", "map_forwarding = \"off\""),
        ("\"router-b\"] }", "\"router-b\"], preference = 3 }"),
        ("\"router-b\"] }", "\"router-b\"], prefix = \"2001:db8:7::/64\" }"),
    ] {
        assert_ne!(parse(&HMIPV6.replacen(old, new, 1)).digest(), base, "{new}");
    }
    assert!(parse(HMIPV6).canonical_json().contains("\"hierarchy\""));
    let plain = include_str!("../../../../scenarios/ipv6/wifi-to-lte.toml");
    assert!(!parse(plain).canonical_json().contains("hierarchy"));
}

#[test]
fn a_router_that_nobody_comes_to_is_in_no_domain() {
    let message = wrong("[\"router-a\", \"router-b\"]", "[\"router-a\", \"core\"]");
    assert!(message.contains("nodes.map-west.domain.1: found \"core\""), "{message}");
    assert!(message.contains("the access routers are \"router-a\", \"router-b\""), "{message}");
    assert!(wrong("[\"router-a\", \"router-b\"]", "[\"router-a\", \"router-a\"]").contains("named once"));
    assert!(wrong("[\"router-a\", \"router-b\"]", "[]").contains("leave it out"));
    assert!(wrong("\"router-b\"] }", "\"router-b\"], preference = 16 }").contains("16"));
    // A second way makes no domain.
    let around = "around = { preset = \"ethernet-1g\", between = [\"core\", \"router-c\"] }\n\
        around-d = { preset = \"ethernet-1g\", between = [\"core\", \"router-d\"] }\na = {";
    let text = HMIPV6.replacen("\na = {", &format!("\n{around}"), 1);
    let text = text.replacen(", domain = [\"router-c\", \"router-d\"]", "", 1);
    let message = Scenario::parse("x.toml", &text, &[]).unwrap_err().to_string();
    assert!(message.contains("does not lead through it") && message.contains("domain = ["), "{message}");
}

#[test]
fn what_hierarchical_mobile_nodes_do_not_do_is_refused_with_the_remedy() {
    let lte = "a = { preset = \"lte\"";
    for (old, new, expected, remedy) in [
        ("lifetime =", "path_monitor = true\nlifetime =", "do not watch their paths", "leave `path_monitor`"),
        (lte, "a = { preset = \"lte\", ip_version = 4", "that of \"a\" has not", "leave `ip_version` out"),
        ("map_forwarding = \"60 s\"", "map_forwarding = \"61 s\"", "units of 4 s", "\"off\""),
        ("map_forwarding = \"60 s\"", "map_forwarding = \"never\"", "or \"off\"", ""),
        ("map_selection = \"furthest\"", "map_selection = \"best\"", "\"nearest\"", ""),
        ("\"mobile-ipv6\"", "\"hierarchical-mobile-ipv6\"", "with mobility anchor points", "role = \"map\""),
    ] {
        let message = wrong(old, new);
        assert!(message.contains(expected) && message.contains(remedy), "{new}: {message}");
    }
    let message = wrong("protocol = \"mobile-ipv6\"\n", "");
    assert!(message.contains("anchor points are of Mobile IPv6"), "{message}");
    // Its keys say nothing without one.
    let without = HMIPV6
        .replacen("map-west = { role = \"map\", domain = [\"router-a\", \"router-b\"] }\n", "", 1)
        .replacen("map-east = { role = \"map\", domain = [\"router-c\", \"router-d\"] }\n", "", 1);
    let message = Scenario::parse("x.toml", &without, &[]).unwrap_err().to_string();
    assert!(message.contains("map_selection") && message.contains("there is none"), "{message}");
    let router = "map-west = { role = \"map\", domain = [\"router-a\", \"router-b\"] }";
    let message = wrong(router, "map-west = { role = \"router\", preference = 3 }");
    assert!(message.contains("only a mobility anchor point has that"), "{message}");
}
