//! Links that share a medium: what a file may say of it, and what becomes of that.

use careof_base::{DataRate, Duration};
use careof_link::{DcfConfig, EthernetConfig, QueueLimit};
use careof_scenario::{Link, Scenario};

const GOOD: &str = r#"duration = "9 s"
[media.lan]
rate = "10 Mbit/s"
delay = "1 us"
[links]
ethernet = { medium = "lan", mtu = "1450 B" }
home = { medium = "lan" }
cell = { preset = "ethernet-10m" }
cell-backhaul = { medium = "lan" }
[mobility]
care_of = "foreign-agent"
home = "home"
[[flow]]
from = "correspondent"
to = "mobile"
"#;

fn read(text: &str) -> Scenario {
    Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The message for [`GOOD`] with `old` replaced by `new`.
fn edited(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    Scenario::parse("x.toml", &GOOD.replacen(old, new, 1), &[]).expect_err(new).to_string()
}

#[test]
fn links_that_name_a_medium_are_on_it_and_their_nodes_are_its_stations() {
    let scenario = read(GOOD);
    let [lan] = scenario.media.as_slice() else { panic!("{:?}", scenario.media) };
    let expected = EthernetConfig {
        rate: DataRate::from_megabits_per_second(10),
        delay: Duration::from_micros(1),
        ..EthernetConfig::default()
    };
    assert_eq!((lan.name.as_str(), &lan.config), ("lan", &expected.into()));
    let mut names: Vec<&str> = lan.stations.iter().map(|id| scenario.node(*id).name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["correspondent", "foreign-agent-cell", "home-agent", "mobile"]);
    for link in &scenario.links {
        assert_eq!(link.medium.is_some(), link.name != "cell", "{}", link.name);
    }
    let mtu = |name| scenario.link(scenario.link_named(name).unwrap()).down.mtu;
    assert_eq!((mtu("ethernet"), mtu("home")), (1450, 1500));
}

#[test]
fn every_two_stations_are_joined_and_only_the_links_of_the_file_can_be_moved_to() {
    let scenario = read(GOOD);
    let straight: Vec<&Link> = scenario.links.iter().filter(|link| link.straight).collect();
    let names: Vec<&str> = straight.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(straight.len(), 4 * 3 / 2 - 3, "{names:?}");
    assert!(straight.iter().all(|link| link.implied && !link.access));
    let first = scenario.links.iter().position(|link| link.straight).unwrap();
    assert_eq!(first + straight.len(), scenario.links.len(), "they come last");
    let access: Vec<_> = scenario.access_links().map(|(_, link)| link.name.as_str()).collect();
    assert_eq!(access, ["home", "cell"]);
}

#[test]
fn a_queue_of_a_medium_is_written_as_that_of_a_link() {
    let limit = |text: &str| {
        let queue = format!("delay = \"1 us\"\nqueue = {text}");
        read(&GOOD.replacen("delay = \"1 us\"", &queue, 1)).media[0].config.queue().limit
    };
    assert_eq!(limit("\"7 packets\""), QueueLimit::Packets(7));
    assert_eq!(limit("{ limit = \"20 kB\" }"), QueueLimit::Bytes(20_000));
}

#[test]
fn what_is_wrong_with_a_medium_is_said_with_its_place_and_remedy() {
    for (old, new, place, parts) in [
        (
            "home = { medium = \"lan\" }",
            "home = { medium = \"lam\" }",
            ":7:",
            ["links.home.medium", "\"lan\"?"],
        ),
        (
            "medium = \"lan\", mtu",
            "rate = \"1 Mbit/s\", medium = \"lan\", mtu",
            ":6:",
            ["ethernet.rate", "[media.lan]"],
        ),
        ("1450 B", "60 B", ":6:", ["links.ethernet.mtu", "68"]),
        ("1450 B", "1501 B", ":6:", ["links.ethernet.mtu", "1500"]),
        ("delay = \"1 us\"", "delay = \"25 us\"", ":4:", ["media.lan.delay", "at most \"24 us\""]),
        ("rate = \"10 Mbit/s\"", "rate = \"0 bit/s\"", ":3:", ["media.lan.rate", "1 Gbit/s"]),
        ("rate = \"10 Mbit/s\"", "kind = \"token-ring\"", ":3:", ["media.lan.kind", "csma-cd"]),
        ("rate = \"10 Mbit/s\"\n", "", ":2:", ["media.lan.rate", "rate = \"10 Mbit/s\""]),
        ("delay = \"1 us\"", "delay = \"1 us\"\nmtu = 9", ":5:", ["media.lan.mtu", "in the table of a link"]),
        (
            "[links]",
            "[media.other]\nrate = \"1 Mbit/s\"\ndelay = \"1 us\"\n[links]",
            ":5:",
            ["media.other", "medium = \"other\""],
        ),
        (
            "cell = { preset = \"ethernet-10m\" }",
            "cell = { medium = \"lan\" }",
            ":2:",
            ["media.lan", "a medium of its own"],
        ),
    ] {
        let said = edited(old, new);
        assert!(said.contains(place) && parts.iter().all(|part| said.contains(part)), "{new}: {said}");
    }
    let said = Scenario::parse(
        "x.toml",
        &GOOD.replace("[media.lan]\nrate = \"10 Mbit/s\"\ndelay = \"1 us\"\n", ""),
        &[],
    );
    let said = said.unwrap_err().to_string();
    assert!(said.contains("add [media.lan] with rate"), "{said}");
}

#[test]
fn a_medium_whose_values_are_wrong_is_reported_once() {
    let said = edited("delay = \"1 us\"", "delay = \"1 parsec\"");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn a_radio_is_on_no_medium() {
    let text = r#"duration = "9 s"
[media.lan]
rate = "10 Mbit/s"
delay = "1 us"
[links]
wire = { preset = "lte", between = ["home-agent", "station-*"], count = 2 }
radio = { medium = "lan", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 3
"#;
    let said = Scenario::parse("x.toml", text, &[]).unwrap_err().to_string();
    assert!(said.contains("links.radio") && said.contains("leave `medium` out"), "{said}");
    let wired = text
        .replace("preset = \"lte\", b", "medium = \"lan\", b")
        .replace("radio = { medium = \"lan\",", "radio = { preset = \"lte\",");
    let scenario = read(&wired);
    let fleet = scenario.mobility.as_ref().unwrap().fleet.as_ref().unwrap();
    assert_eq!(fleet.radio.0 + fleet.count, scenario.links.len(), "radios come last");
    assert_eq!(scenario.media[0].stations.len(), 3);
    assert_eq!(scenario.links.iter().filter(|link| link.straight).count(), 1);
}

const CELL: &str = r#"duration = "60 s"
[media.air]
kind = "802.11b"
rate = "11 Mbit/s"
[links]
wifi = { medium = "air" }
lte = "lte"
[mobility]
[[handover]]
at = "9 s"
from = "wifi"
to = "lte"
style = "break-before-make"
link_layer = { scan = "active", channels = 11 }
[[flow]]
from = "correspondent"
to = "mobile"
"#;

/// The message for [`CELL`] with `old` replaced by `new`.
fn edited_cell(old: &str, new: &str) -> String {
    assert!(CELL.contains(old), "{old}");
    Scenario::parse("x.toml", &CELL.replacen(old, new, 1), &[]).expect_err(new).to_string()
}

#[test]
fn a_channel_of_802_11_has_the_parameters_of_its_standard_and_no_links_but_those_of_the_file() {
    let config = |more: &str| {
        let text = CELL.replacen("kind = \"802.11b\"\nrate = \"11 Mbit/s\"\n", more, 1);
        read(&text).media[0].config.clone()
    };
    let mbit = DataRate::from_megabits_per_second;
    for (more, expected) in [
        ("kind = \"802.11b\"\n", DcfConfig::b(mbit(11))),
        ("kind = \"802.11b\"\npreamble = \"short\"\nrate = \"2 Mbit/s\"\n", DcfConfig::b_short(mbit(2))),
        ("kind = \"802.11g\"\n", DcfConfig::g(mbit(54))),
        ("kind = \"802.11g\"\nprotection = true\nrate = \"6 Mbit/s\"\n", DcfConfig::g_protected(mbit(6))),
        (
            "kind = \"802.11g\"\nrts_threshold = \"500 B\"\nlong_retry_limit = 9\ncontrol_rate = \"6 Mbit/s\"\n",
            DcfConfig {
                rts_threshold: 500,
                long_retry_limit: 9,
                control_rate: mbit(6),
                ..DcfConfig::g(mbit(54))
            },
        ),
    ] {
        assert_eq!(expected.check(), Ok(()));
        assert_eq!(config(more), expected.into(), "{more}");
    }
    assert!(read(CELL).links.iter().all(|link| !link.straight));
}

#[test]
fn what_is_wrong_with_a_channel_or_a_handover_of_802_11_is_said_with_its_place_and_remedy() {
    let rate = "rate = \"11 Mbit/s\"";
    let layer = "link_layer = { scan = \"active\", channels = 11 }";
    for (old, new, place, parts) in [
        (
            rate,
            "rate = \"54 Mbit/s\"",
            "media.air.rate",
            ["have the rates \"1 Mbit/s\", \"2 Mbit/s\", \"5.5 Mbit/s\" or", "11"],
        ),
        (rate, "protection = true", "media.air.protection", ["it belongs to kind = \"802.11g\"", "found"]),
        (
            rate,
            "delay = \"5 us\"",
            "media.air.delay",
            ["would be heard too late", "write less than \"5 us\""],
        ),
        (rate, "short_retry_limit = 0", "media.air.short_retry_limit", ["1", "255"]),
        (
            rate,
            "rate = \"2 Mbit/s\"\ncontrol_rate = \"11 Mbit/s\"",
            "media.air.control_rate",
            ["not faster than what it acknowledges", "write at most \"2 Mbit/s\""],
        ),
        (
            "kind = \"802.11b\"",
            "kind = \"802.11g\"\npreamble = \"long\"",
            "media.air.preamble",
            ["it belongs to kind = \"802.11b\"", "found"],
        ),
        (
            "kind = \"802.11b\"",
            "kind = \"csma-cd\"\ndelay = \"1 us\"\nrts_threshold = 500",
            "media.air.rts_threshold",
            ["it belongs to kind = \"802.11b\" or \"802.11g\"", "found"],
        ),
        (
            "style = \"break-before-make\"",
            "style = \"make-before-break\"",
            "handover.0.link_layer",
            ["make-before-break has no interruption", "break-before-make"],
        ),
        (
            layer,
            "link_layer = \"802.11\"\ninterruption = \"1 s\"",
            "handover.0.interruption",
            ["follows from `link_layer`", "leave one of the two out"],
        ),
        (
            layer,
            "link_layer = { scan = \"passive\", answering = 0.5 }",
            "handover.0.link_layer.answering",
            ["it belongs to scan = \"active\"", "found"],
        ),
        (
            layer,
            "link_layer = { min_channel_time = \"20 ms\" }",
            "handover.0.link_layer.min_channel_time",
            ["a scan has both times", "max_channel_time = \"40 ms\""],
        ),
        (
            layer,
            "link_layer = { min_channel_time = \"20 ms\", max_channel_time = \"10 ms\" }",
            "handover.0.link_layer.max_channel_time",
            ["must not be less than `min_channel_time`", "found"],
        ),
        (
            layer,
            "link_layer = { scan_time = { min = \"20 ms\", max = \"10 ms\" } }",
            "handover.0.link_layer.scan_time.max",
            ["must not be less than `min`", "found"],
        ),
        (
            layer,
            "link_layer = { scan_time = { mean = \"20 ms\" } }",
            "handover.0.link_layer.scan_time.deviation",
            ["mean = \"30 ms\", deviation = \"5 ms\"", "max"],
        ),
        (
            layer,
            "link_layer = { scan_time = \"20 ms\", channels = 3 }",
            "handover.0.link_layer.channels",
            ["`scan_time` says how long the scan is", "found"],
        ),
        (
            layer,
            "link_layer = { detection_time = \"20 ms\", lost_beacons = 3 }",
            "handover.0.link_layer.lost_beacons",
            ["`detection_time` says", "found"],
        ),
        (layer, "link_layer = { channels = 15 }", "handover.0.link_layer.channels", ["1", "14"]),
        (layer, "link_layer = \"802.16\"", "handover.0.link_layer", ["\"802.11\"", "found"]),
        (
            "at = \"9 s\"",
            "at = \"59.9 s\"",
            "handover.0.at",
            ["a handover that is over at 60018.84 ms", "the run ends at 60 s"],
        ),
    ] {
        let message = edited_cell(old, new);
        assert!(message.contains(&format!(": {place}: ")), "{message} lacks {place}");
        for part in parts {
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }
}

#[test]
fn a_mobile_node_is_on_a_medium_once_and_several_may_be_there() {
    let text = |links: &str| {
        format!(
            "duration = \"9 s\"\n[media.air]\nkind = \"802.11g\"\n[nodes]\nhome = \"home-agent\"\nap = \"access-router\"\n\
             one = \"mobile\"\ntwo = \"mobile\"\n[links]\nwire = {{ preset = \"lte\", between = [\"home\", \"ap\"] }}\n{links}[mobility]\n"
        )
    };
    let link =
        |name: &str, end: &str| format!("{name} = {{ medium = \"air\", between = [\"ap\", \"{end}\"] }}\n");
    let several = text(&(link("first", "one") + &link("second", "two")));
    let scenario = Scenario::parse("x.toml", &several, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario.media[0].stations.len(), 3);
    let twice = text(&(link("first", "one") + &link("second", "two") + &link("third", "one")));
    let message = Scenario::parse("x.toml", &twice, &[]).expect_err("twice").to_string();
    assert!(message.contains("a mobile node is on a medium once") && message.contains("third"), "{message}");
}
