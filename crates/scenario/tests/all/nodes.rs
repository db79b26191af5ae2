//! Nodes whose roles the file says: several home agents, mobile nodes and correspondents.

use careof_scenario::{Role, Scenario};

const TWO_HOME_AGENTS: &str = include_str!("../../../../scenarios/two-home-agents.toml");

const SMALL: &str = r#"duration = "30 s"
[nodes]
core = "router"
north = "home-agent"
south = "home-agent"
server = "correspondent"
one = { role = "mobile", home_agent = "north" }
two = { role = "mobile", home_agent = "south" }
[links]
to-north = { preset = "ethernet-1g", between = ["core", "north"] }
to-south = { preset = "ethernet-1g", between = ["core", "south"] }
to-server = { preset = "ethernet-1g", between = ["core", "server"] }
one-a = { preset = "lte", between = ["core", "one"] }
one-b = { preset = "lte", between = ["core", "one"] }
two-a = { preset = "lte", between = ["core", "two"] }
two-b = { preset = "lte", between = ["core", "two"] }
[mobility]
[[handover]]
at = "10 s"
from = "one-a"
to = "one-b"
[[flow]]
from = "server"
to = "one"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The messages for [`SMALL`] with `old` replaced by `new`.
fn wrong(old: &str, new: &str) -> String {
    assert!(SMALL.contains(old), "{old}");
    match Scenario::parse("x.toml", &SMALL.replacen(old, new, 1), &[]) {
        Ok(_) => panic!("{new} is accepted"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn each_mobile_node_has_its_home_agent_and_begins_where_its_own_handovers_do() {
    let scenario = parse(TWO_HOME_AGENTS);
    let name = |node| scenario.node(node).name.as_str();
    let mobility = scenario.mobility.as_ref().unwrap();
    let nodes: Vec<[&str; 3]> = mobility
        .nodes
        .iter()
        .map(|one| [name(one.node), name(one.home_agent), scenario.link(one.start).name.as_str()])
        .collect();
    assert_eq!(
        nodes,
        [
            ["ferry", "sea-control", "ferry-west"],
            ["pilot", "sea-control", "pilot-west"],
            ["tug", "sea-control", "tug-east"],
            ["van", "depot", "van-west"],
            ["bus", "depot", "bus-west"],
        ]
    );
    let count = |role| scenario.nodes.iter().filter(|node| node.role == role).count();
    assert_eq!([Role::HomeAgent, Role::Mobile, Role::Correspondent, Role::Host].map(count), [2, 5, 3, 3]);
    // Each of them has an access link of either mast, and nothing is understood beside what is there.
    assert_eq!(scenario.access_links().count(), 10);
    assert_eq!(scenario.links.len(), 17);
}

#[test]
fn two_mobile_nodes_may_move_at_once_and_one_may_not() {
    let second = "[[handover]]\nat = \"10 s\"\nfrom = \"FROM\"\nto = \"TO\"\n[[flow]]";
    let both = |from: &str, to: &str| {
        let second = second.replace("FROM", from).replace("TO", to);
        Scenario::parse("x.toml", &SMALL.replacen("[[flow]]", &second, 1), &[])
    };
    assert_eq!(both("two-a", "two-b").unwrap().handovers.len(), 2);
    let same = both("one-b", "one-a").unwrap_err().to_string();
    assert!(same.contains("handover.1.at") && same.contains("the one before is over at 10"), "{same}");
}

#[test]
fn one_mobile_node_of_another_name_needs_no_more_than_its_role() {
    let text = "duration = \"9 s\"\n[nodes]\nlaptop = \"mobile\"\nserver = \"correspondent\"\n[links]\nlan = \"ethernet-1g\"\n\
                wifi = { preset = \"wifi-good\", between = [\"home-agent\", \"laptop\"] }\n\
                wire = { preset = \"ethernet-1g\", between = [\"server\", \"home-agent\"] }\n\
                [mobility]\n[[flow]]\nfrom = \"server\"\nto = \"laptop\"\n";
    let text = text.replace("lan = \"ethernet-1g\"\n", "");
    let scenario = parse(&text);
    let mobility = scenario.mobility.as_ref().unwrap();
    assert_eq!(scenario.node(mobility.nodes[0].node).name, "laptop");
    assert_eq!(scenario.node(mobility.nodes[0].home_agent).name, "home-agent");
}

#[test]
fn the_roles_that_names_say_need_no_table() {
    let text = "duration = \"9 s\"\n[links]\nwifi = \"wifi-good\"\n[mobility]\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n";
    let said = "duration = \"9 s\"\n[nodes]\nmobile = \"mobile\"\nhome-agent = \"home-agent\"\ncorrespondent = \"correspondent\"\n";
    assert_eq!(parse(text).digest(), parse(&text.replacen("duration = \"9 s\"\n", said, 1)).digest());
}

#[test]
fn a_wrong_node_is_refused_where_it_is_wrong() {
    let mut missed = Vec::new();
    const SOME: &str = "prefix = \"192.0.2.0/24\"";
    let north = |prefix: &str| format!("north = {{ role = \"home-agent\", prefix = \"{prefix}\" }}");
    let one = "one = { role = \"mobile\", home_agent = \"north\" }";
    for (old, new, place, part) in [
        (
            "home_agent = \"north\"",
            "home_agent = \"nroth\"",
            "nodes.one.home_agent",
            "did you mean \"north\"?",
        ),
        ("home_agent = \"north\"", "home_agent = \"core\"", "nodes.one.home_agent", "the home agents are"),
        (one, "one = \"mobile\"", "nodes.one", "home_agent = \"north\""),
        (one, "one = { home_agent = \"north\" }", "nodes.one", "role = \"router\""),
        (one, "one = 3", "nodes.one", "a table"),
        ("core = \"router\"", "core = \"ruter\"", "nodes.core", "did you mean \"router\"?"),
        ("core = \"router\"", "core = \"base-station\"", "nodes.core", "not"),
        (
            "core = \"router\"",
            "core = { role = \"router\", start = \"one-a\" }",
            "nodes.core.start",
            "only a mobile node has that",
        ),
        (
            "home_agent = \"north\" }",
            "home_agent = \"north\", home = \"one-a\" }",
            "nodes.one.home",
            "home = \"LINK\" in [mobility]",
        ),
        (
            "home_agent = \"north\" }",
            "home_agent = \"north\", start = \"two-a\" }",
            "nodes.one.start",
            "an access link of \"one\"",
        ),
        ("core = \"router\"", "core = \"router\"\nlost = \"router\"", "nodes.lost", "no link names this one"),
        ("to = \"one-b\"", "to = \"two-b\"", "handover.0.to", "an access link of \"one\""),
        ("[mobility]", "[mobility]\nstart = \"one-a\"", "mobility.start", "in the tables of [nodes]"),
        ("[mobility]", "[mobility]\nhome = \"one-a\"", "mobility.home", "one mobile node"),
        ("[mobility]\n", "", "nodes.north", "add [mobility]"),
        // Prefixes.
        ("north = \"home-agent\"", &north("192.0.2.7/24"), "nodes.north.prefix", "write \"192.0.2.0/24\""),
        ("north = \"home-agent\"", &north("192.0.2.0/25"), "nodes.north.prefix", "write \"192.0.2.0/24\""),
        ("north = \"home-agent\"", &north("10.1.2.0/24"), "nodes.north.prefix", "planned from 10.0.0.0/8"),
        ("north = \"home-agent\"", &north("224.0.0.0/24"), "nodes.north.prefix", "hosts have no addresses"),
        ("north = \"home-agent\"", &north("192.0.2.0"), "nodes.north.prefix", "a prefix is a network"),
        ("north = \"home-agent\"", &north("2001:db8:1::/64"), "nodes.north.prefix", "the run is of IPv4"),
        (
            "server = \"correspondent\"",
            &format!("server = {{ role = \"correspondent\", {SOME} }}"),
            "nodes.server.prefix",
            "only a home agent",
        ),
        (
            "between = [\"core\", \"north\"]",
            &format!(
                "between = [\"core\", \"north\"], {SOME} }}\nagain = {{ preset = \"lte\", between = [\"core\", \"south\"], {SOME}"
            ),
            "links.again.prefix",
            "that of `links.to-north.prefix`",
        ),
    ] {
        let said = wrong(old, new);
        if !said.contains(place) || !said.contains(part) {
            missed.push(format!("{new}: {said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn an_address_that_a_node_cannot_have_is_refused_with_what_would_be_right() {
    let with_prefixes = |node: &str, address: &str, more: &str| {
        let text = SMALL
            .replace("north = \"home-agent\"", "north = { role = \"home-agent\", prefix = \"192.0.2.0/24\" }")
            .replace(
                "between = [\"core\", \"server\"]",
                "between = [\"core\", \"server\"], prefix = \"203.0.113.0/24\"",
            )
            .replace(
                "one-a = { preset = \"lte\"",
                "one-a = { preset = \"lte\", prefix = \"198.51.100.0/24\"",
            );
        let (old, new) = match node {
            "server" => (
                "server = \"correspondent\"",
                format!("server = {{ role = \"correspondent\", address = {address} }}"),
            ),
            "core" => ("core = \"router\"", format!("core = {{ role = \"router\", address = {address} }}")),
            _ => ("home_agent = \"north\" }", format!("home_agent = \"north\", address = {address} }}")),
        };
        assert!(text.contains(old));
        Scenario::parse(
            "x.toml",
            &text.replace(old, &new).replace("[mobility]", &format!("[mobility]\n{more}")),
            &[],
        )
    };
    let said = |node: &str, address: &str, more: &str| match with_prefixes(node, address, more) {
        Ok(_) => panic!("{node} may have {address}"),
        Err(errors) => errors.to_string(),
    };
    let accepted = |node: &str, address: &str| with_prefixes(node, address, "").is_ok();
    assert!(
        accepted("server", "\"203.0.113.80\"")
            && accepted("one", "\"192.0.2.2\"")
            && accepted("core", "\"203.0.113.1\"")
    );
    assert!(accepted("one", "[\"192.0.2.2\", \"198.51.100.2\"]"));
    for (node, address, more, expected) in [
        ("server", "\"203.0.113\"", "", "it is an address, or an array of them"),
        ("server", "\"203.0.113.80/24\"", "", "leave the length of the prefix out"),
        ("server", "\"203.0.113.255\"", "", "the addresses of hosts end with 1 to 253"),
        ("server", "\"2001:db8:9::1\"", "", "the run is of IPv4"),
        (
            "server",
            "\"192.0.2.5\"",
            "",
            "the networks of \"server\" that have a `prefix` are 203.0.113.0/24 (`links.to-server`)",
        ),
        ("server", "\"203.0.113.1\"", "", "it is the address of \"core\" there"),
        ("server", "[\"203.0.113.7\", \"203.0.113.8\"]", "", "\"server\" has one address in 203.0.113.0/24"),
        ("one", "\"192.0.2.1\"", "", "it is the address of \"north\" there"),
        ("one", "\"198.51.100.9\"", "care_of = \"dhcp\"", "the mobile node asks for its address there"),
    ] {
        let said = said(node, address, more);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("x.toml:") && said.contains(&format!("nodes.{node}.address")), "{said}");
    }
    let said = wrong(
        "two = { role = \"mobile\", home_agent = \"south\" }",
        "two = { role = \"mobile\", home_agent = \"south\", address = \"192.0.2.9\" }",
    );
    assert!(
        said.contains("none has one") && said.contains("write prefix = \"192.0.2.0/24\" in nodes.south"),
        "{said}"
    );
}

#[test]
fn two_nodes_with_one_address_are_refused_at_the_second() {
    let of_both = |prefix: &str, first: &str, second: &str, protocol: &str| {
        let text = format!(
            "duration = \"9 s\"\n[nodes]\nha = {{ role = \"home-agent\", prefix = \"{prefix}\" }}\n\
             a = {{ role = \"mobile\", address = \"{first}\" }}\nb = {{ role = \"mobile\"{second} }}\n[links]\n\
             one = {{ preset = \"lte\", between = [\"ha\", \"a\"] }}\ntwo = {{ preset = \"lte\", between = [\"ha\", \"b\"] }}\n\
             [mobility]\nprotocol = \"{protocol}\"\n"
        );
        Scenario::parse("x.toml", &text, &[]).err().map(|errors| errors.to_string())
    };
    for (prefix, taken, free, planned, protocol) in [
        ("192.0.2.0/24", "192.0.2.40", "192.0.2.41", "192.0.2.3", "mobile-ipv4"),
        ("2001:db8:1::/64", "2001:db8:1::4:0", "2001:db8:1::4:1", "2001:db8:1::3", "mobile-ipv6"),
    ] {
        let second = |address: &str| format!(", address = \"{address}\"");
        assert_eq!(of_both(prefix, taken, &second(free), protocol), None);
        assert_eq!(of_both(prefix, taken, "", protocol), None);
        let said = of_both(prefix, taken, &second(taken), protocol).unwrap();
        assert!(said.contains("nodes.b.address") && said.contains("the address of \"a\" there"), "{said}");
        assert!(!said.contains("nodes.a.address"), "{said}");
        // What the other one is to have without being given it.
        let said = of_both(prefix, planned, "", protocol).unwrap();
        assert!(said.contains("nodes.a.address") && said.contains("the address of \"b\" there"), "{said}");
    }
    let visited = "duration = \"9 s\"\n[nodes]\nmobile = { role = \"mobile\", address = \"2001:db8:7::5\" }\n[links]\n\
                   lte = { preset = \"lte\", prefix = \"2001:db8:7::/64\" }\n[mobility]\nprotocol = \"mobile-ipv6\"\n";
    let said = Scenario::parse("x.toml", visited, &[]).unwrap_err().to_string();
    assert!(said.contains("forms its address there itself") && said.contains("x.toml:3"), "{said}");
}
