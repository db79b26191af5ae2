//! Domains of micro-mobility.

use std::time::Duration;

use careof_scenario::{
    BuildingBlocks, CandidateSet, CellularHandover, MicroProtocol, PathScheme, Role, Scenario, Trigger, Walk,
    WhenFull,
};

const DOMAIN: &str = r#"
duration = "30 s"
[links]
ethernet = "ethernet-10m"
uplink = { preset = "ethernet-10m", between = ["home-agent", "gateway"] }
area = { preset = "ethernet-10m", between = ["gateway", "area-*"], count = 2 }
cell = { preset = "ethernet-10m", between = ["area-*", "station-*"], count = 5 }
radio = { preset = "wavelan", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 3
[micro_mobility]
protocol = "building-blocks"
trigger = "source"
[[handover]]
every = "3 s"
overlap = "100 ms"
[[flow]]
from = "correspondent"
to = "mobile-*"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse("domain.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn blocks(protocol: MicroProtocol) -> BuildingBlocks {
    let MicroProtocol::BuildingBlocks(blocks) = protocol else { panic!("{protocol:?}") };
    blocks
}

#[test]
fn each_protocol_has_its_own_settings() {
    let protocol = |text: &str| {
        let whole = "protocol = \"building-blocks\"\ntrigger = \"source\"";
        parse(&DOMAIN.replace(whole, text)).mobility.unwrap().micro_mobility.unwrap().protocol
    };
    let hard = protocol("protocol = \"cellular-ip\"");
    assert_eq!(hard, MicroProtocol::CellularIp(CellularHandover::Hard));
    let soft =
        protocol("protocol = \"cellular-ip\"\nhandover = \"semi-soft\"\nlead = \"70 ms\"\ndelay = \"9 ms\"");
    let (lead, delay) = (Duration::from_millis(70), Duration::from_millis(9));
    assert_eq!(soft, MicroProtocol::CellularIp(CellularHandover::SemiSoft { lead, delay, packets: 50 }));
    let hawaii = protocol("protocol = \"hawaii\"\nscheme = \"ssf\"\nbuffer = true");
    assert!(matches!(hawaii, MicroProtocol::Hawaii { scheme: PathScheme::Ssf, buffer: Some(_) }));
    let multicast = protocol("protocol = \"multicast\"\ntrigger = \"path\"\ncar_set = 3\nbicast = \"1 s\"");
    assert!(matches!(multicast, MicroProtocol::Multicast { candidates: CandidateSet::Nearest(3), .. }));
}

#[test]
fn a_domain_has_all_that_hangs_on_its_gateway() {
    let scenario = parse(DOMAIN);
    let mobility = scenario.mobility.as_ref().unwrap();
    let domain = mobility.micro_mobility.as_ref().unwrap();
    let name = |node| scenario.node(node).name.as_str();
    let routers: Vec<&str> = domain.routers.iter().map(|node| name(*node)).collect();
    assert_eq!(
        routers,
        ["area-1", "area-2", "station-1", "station-2", "station-3", "station-4", "station-5"]
    );
    assert_eq!((name(domain.gateway), scenario.node(domain.gateway).role), ("gateway", Role::ForeignAgent));
    let fleet = mobility.fleet.as_ref().unwrap();
    assert!(fleet.stations.iter().all(|station| scenario.node(*station).role == Role::Host));
    let blocks = blocks(domain.protocol);
    assert_eq!((blocks.trigger, blocks.candidates), (Trigger::Source, CandidateSet::Nearest(1)));
    assert_eq!(
        (blocks.lead, blocks.buffer, blocks.bicast),
        (Duration::from_millis(100), None, Duration::ZERO)
    );
}

#[test]
fn where_cells_overlap_a_mobile_node_has_two_radios() {
    let scenario = parse(DOMAIN);
    let fleet = scenario.mobility.as_ref().unwrap().fleet.as_ref().unwrap();
    assert!(fleet.has_second_radios && fleet.radios() == 6);
    let names: Vec<&str> = scenario.links[fleet.radio.0..].iter().map(|link| link.name.as_str()).collect();
    assert_eq!(
        names,
        ["radio-1", "radio-2", "radio-3", "radio-second-1", "radio-second-2", "radio-second-3"]
    );
    for (first, second) in scenario.links[fleet.radio.0..].iter().zip(&scenario.links[fleet.radio.0 + 3..]) {
        assert_eq!((first.ends, first.down.rate), (second.ends, second.down.rate));
    }
    let gap = parse(&DOMAIN.replace("overlap", "interruption"));
    assert!(!gap.mobility.unwrap().fleet.unwrap().has_second_radios);
}

#[test]
fn a_walk_is_given_or_drawn() {
    let walk = |text: &str| {
        let scenario = parse(&DOMAIN.replace("overlap = ", &format!("walk = {text}\noverlap = ")));
        let fleet = scenario.mobility.unwrap().fleet.unwrap();
        (fleet.first_station(1), fleet.walk)
    };
    assert_eq!(walk("\"round\""), (1, Walk::Round));
    assert_eq!(walk("\"random-waypoint\""), (1, Walk::RandomWaypoint));
    assert_eq!(walk("[\"station-3\", \"station-1\"]"), (2, Walk::Given(vec![2, 0])));
}

#[test]
fn a_walk_out_of_a_file_is_looked_up_and_errors_name_its_line() {
    let folder = std::env::temp_dir().join(format!("careof-scenario-walk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = DOMAIN.replace("every = \"3 s\"", "walk = \"a.csv\"");
    let load = |walk: &str, text: &str| {
        std::fs::write(folder.join("a.csv"), walk).unwrap();
        std::fs::write(folder.join("domain.toml"), text).unwrap();
        Scenario::load(&folder.join("domain.toml"), &[])
    };
    let found = load("time_s,station\n0,station-3\n7.5,station-1\n", &text).unwrap();
    let fleet = found.mobility.unwrap().fleet.unwrap();
    assert_eq!(fleet.walk, Walk::Trace(vec![(Duration::ZERO, 2), (Duration::from_millis(7_500), 0)]));
    assert_eq!(fleet.first_handover(2), Some(Duration::from_millis(7_500)));
    let wrong = |walk: &str, text: &str| load(walk, text).unwrap_err().to_string();
    let error = wrong("time_s,station\n0,station-3\n7,station-9\n", &text);
    assert!(error.contains("another station in a.csv, line 3"), "{error}");
    let error = wrong("time_s,station\n9,station-3\n7,station-1\n", &text);
    assert!(error.contains("an earlier time in a.csv, line 3"), "{error}");
    let error = wrong("time_s,station\n0,station-3\n0.05,station-1\n", &text);
    assert!(error.contains("must be shorter"), "{error}");
    let both = text.replace("walk = ", "every = \"1 s\"\nwalk = ");
    let error = wrong("time_s,station\n0,station-3\n7,station-1\n", &both);
    assert!(error.contains("the file of the walk says when each handover is"), "{error}");
    let missing = text.replace("a.csv", "b.csv");
    let error = wrong("time_s,station\n", &missing);
    assert!(error.contains("counts from the folder of the scenario"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn mobile_nodes_share_a_channel_in_a_domain_only() {
    let air = "[media.air]\nkind = \"802.11b\"\n[micro_mobility]";
    let shared = DOMAIN.replace("preset = \"wavelan\"", "medium = \"air\"").replace("[micro_mobility]", air);
    let scenario = parse(&shared);
    let fleet = scenario.mobility.as_ref().unwrap().fleet.as_ref().unwrap();
    let names: Vec<&str> =
        scenario.media[0].stations.iter().map(|node| scenario.node(*node).name.as_str()).collect();
    // Five base stations, and behind them two radios for each of three mobile nodes.
    assert_eq!(names[..5], ["station-1", "station-2", "station-3", "station-4", "station-5"]);
    assert_eq!(names[5..], ["mobile-1", "mobile-2", "mobile-3", "mobile-1", "mobile-2", "mobile-3"]);
    assert!(scenario.links[fleet.radio.0..].iter().all(|link| link.medium.is_some()));
    let error = |text: &str| Scenario::parse("domain.toml", text, &[]).unwrap_err().to_string();
    let cable = shared.replace("kind = \"802.11b\"", "rate = \"10 Mbit/s\"\ndelay = \"1 us\"");
    assert!(error(&cable).contains("share a radio channel, not a cable"), "{}", error(&cable));
    let alone = shared.replace("[micro_mobility]\nprotocol = \"building-blocks\"\ntrigger = \"source\"", "");
    let alone = alone.replace("overlap = \"100 ms\"", "");
    assert!(error(&alone).contains("share a radio channel in a domain"), "{}", error(&alone));
}

#[test]
fn a_buffer_is_short_or_a_table() {
    let buffer = |text: &str| {
        let scenario = parse(&DOMAIN.replace("\"source\"", &format!("\"source\"\nbuffer = {text}")));
        blocks(scenario.mobility.unwrap().micro_mobility.unwrap().protocol).buffer
    };
    assert_eq!(buffer("false"), None);
    assert_eq!(buffer("true").unwrap().packets, 256);
    let given =
        buffer("{ packets = 9, bytes = \"9 kB\", age = \"1 s\", when_full = \"drop-tail\" }").unwrap();
    assert_eq!((given.packets, given.bytes, given.age), (9, 9_000, Duration::from_secs(1)));
    assert_eq!(given.when_full, WhenFull::DropTail);
}

#[test]
fn what_is_said_of_a_domain_is_in_its_json_and_changes_its_digest() {
    let json =
        |scenario: &Scenario| serde_json::from_str::<serde_json::Value>(&scenario.canonical_json()).unwrap();
    let scenario = parse(DOMAIN);
    let domain = &json(&scenario)["mobility"]["micro_mobility"];
    assert_eq!((&domain["gateway"], &domain["car_set"]), (&"gateway".into(), &1.into()), "{domain}");
    assert_eq!(json(&scenario)["mobility"]["overlap_ns"], 100_000_000);
    let other = parse(&DOMAIN.replace("\"source\"", "\"source\"\nlead = \"7 ms\""));
    assert_ne!(scenario.digest(), other.digest());
}

#[test]
fn a_wrong_domain_is_refused_where_it_is_wrong() {
    let mut missed = Vec::new();
    let protocol = "protocol = \"building-blocks\"";
    let trigger = "trigger = \"source\"";
    for (old, new, place, part) in [
        (protocol, "", "micro_mobility.protocol", "needs its protocol"),
        (protocol, "protocol = \"blocks\"", "micro_mobility.protocol", "building-blocks"),
        (trigger, "gateway = \"gatway\"", "micro_mobility.gateway", "did you mean \"gateway\"?"),
        (trigger, "gateway = \"area-1\"", "micro_mobility.gateway", "from \"station-4\" one does not"),
        (trigger, "gateway = \"home-agent\"", "micro_mobility.gateway", "a router of its own"),
        (trigger, "gateway = \"station-1\"", "micro_mobility.gateway", "a router of its own"),
        (trigger, "car_set = 2", "micro_mobility.car_set", "without a trigger"),
        (trigger, "buffer = true", "micro_mobility.buffer", "nothing is kept"),
        (trigger, "trigger = \"source\"\ncar_set = 2", "micro_mobility.car_set", "names one base station"),
        (trigger, "trigger = \"no-path\"\ncar_set = 2", "micro_mobility.car_set", "goes to all"),
        (trigger, "trigger = \"path\"\ncar_set = 6", "micro_mobility.car_set", "there are 5 base stations"),
        (trigger, "trigger = \"path\"\ncar_set = \"some\"", "micro_mobility.car_set", "or \"all\""),
        (trigger, "forward = \"1 s\"\nbicast = \"1 s\"", "micro_mobility.forward", "with `bicast`"),
        (trigger, "handover = \"semi-soft\"", "micro_mobility.handover", "\"cellular-ip\""),
        (trigger, "scheme = \"msf\"", "micro_mobility.scheme", "\"hawaii\""),
        (
            "protocol = \"building-blocks\"\ntrigger = \"source\"",
            "protocol = \"hawaii\"\nbuffer = true",
            "micro_mobility.buffer",
            "nobody forwards",
        ),
        (
            "protocol = \"building-blocks\"\ntrigger = \"source\"",
            "protocol = \"cellular-ip\"\nlead = \"1 s\"",
            "micro_mobility.lead",
            "semi-soft",
        ),
        (trigger, "buffers = true", "micro_mobility.buffers", "did you mean"),
        (trigger, "reactive = true", "micro_mobility.reactive", "write `forward`"),
        ("nodes = 3", "", "micro_mobility", "for mobile nodes with a radio"),
        ("nodes = 3", "nodes = 3\nprotocol = \"mobile-ipv6\"", "micro_mobility", "below Mobile IPv4"),
        ("nodes = 3", "nodes = 3\nprotocol = \"hawaii\"", "mobility.protocol", "in [micro_mobility]"),
        (
            "[micro_mobility]",
            "[links.round]\npreset = \"ethernet-10m\"\nbetween = [\"area-1\", \"area-2\"]\n[micro_mobility]",
            "micro_mobility.gateway",
            "a domain is a tree",
        ),
        ("overlap = \"100 ms\"", "overlap = \"3 s\"", "handover.0.overlap", "shorter than `every`"),
        (
            "overlap = \"100 ms\"",
            "overlap = \"1 s\"\ninterruption = \"1 s\"",
            "handover.0.overlap",
            "there is no interruption",
        ),
        (
            "overlap = \"100 ms\"",
            "overlap = \"1 s\"\nlink_layer = \"802.11\"",
            "handover.0.overlap",
            "there is no interruption",
        ),
        ("overlap = \"100 ms\"", "spread = \"3 s\"", "handover.0.spread", "shorter than `every`"),
        ("overlap = \"100 ms\"", "walk = \"straight\"", "handover.0.walk", "random-waypoint"),
        ("overlap = \"100 ms\"", "walk = [\"station-1\"]", "handover.0.walk", "two stations at least"),
        (
            "overlap = \"100 ms\"",
            "walk = [\"station-1\", \"station-9\"]",
            "handover.0.walk.1",
            "the stations are",
        ),
        (
            "overlap = \"100 ms\"",
            "walk = [\"station-1\", \"station-2\", \"station-1\"]",
            "handover.0.walk.2",
            "begins anew",
        ),
        (
            "[micro_mobility]\nprotocol = \"building-blocks\"\ntrigger = \"source\"\n",
            "",
            "handover.0.overlap",
            "add [micro_mobility]",
        ),
    ] {
        let text = DOMAIN.replacen(old, new, 1);
        match Scenario::parse("domain.toml", &text, &[]) {
            Ok(_) => missed.push(format!("accepted: {new}")),
            Err(errors) => {
                let has = |error: &careof_scenario::ScenarioError| {
                    let said = format!("{} {}", error.expected, error.hint.clone().unwrap_or_default());
                    error.key == place && said.contains(part)
                };
                if !errors.0.iter().any(has) {
                    missed.push(format!("{place}: {part}, and not\n{errors}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
