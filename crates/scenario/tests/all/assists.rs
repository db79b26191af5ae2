//! `[assist]`: what it means, and what is told where it makes no sense.

use core::time::Duration;

use careof_assist::{QueueAtHandover, Replay, Rest, Sack, Which};
use careof_assist_file::parameters::ReplayTable;
use careof_link::{Discipline, QueueLimit};
use careof_scenario::{AdvisedBy, Assist, AssistPlace, Destination, Placed, Scenario, Split};
use proptest::prelude::*;

const GOOD: &str = r#"duration = "120 s"
[links]
wavelan = "wavelan"
gsm = "gsm-csd"
[mobility]
[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
[[flow]]
from = "correspondent"
to = "mobile"
"#;

const NAMES: [&str; 22] = [
    "replay",
    "hold-last",
    "lcd-kick",
    "freeze",
    "fast-retransmit",
    "ack-hold",
    "window-clamp",
    "path-queue",
    "buffer-forward",
    "bicast",
    "snoop",
    "ebsn",
    "split",
    "m-tcp",
    "rto-reset",
    "tcp-cm",
    "mobile-tcp",
    "tcp-ho",
    "demo-vegas",
    "rto-fast-decrease",
    "mss-clamp",
    "black-hole",
];

/// What all assists need together: a warning, copies to the old address, base stations, both directions by the agents.
const ALL_THERE: [&str; 4] = [
    "handover.notice=1 s",
    "mobility.simultaneous_bindings=true",
    "mobility.care_of=foreign-agent",
    "mobility.routing=reverse-tunnel",
];

/// [`GOOD`] with `[assist]` and overrides.
fn parse(assist: &str, overrides: &[&str]) -> Result<Scenario, careof_scenario::ScenarioErrors> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("x.toml", &format!("{GOOD}[assist]\n{assist}\n"), &overrides)
}

fn good(assist: &str, overrides: &[&str]) -> Scenario {
    parse(assist, overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn message(assist: &str, overrides: &[&str]) -> String {
    parse(assist, overrides).expect_err(assist).to_string()
}

fn names(scenario: &Scenario) -> Vec<&'static str> {
    scenario.assists.iter().map(Assist::name).collect()
}

#[test]
fn every_assist_is_known_by_its_name() {
    for name in NAMES {
        assert_eq!(names(&good(&format!("use = [\"{name}\"]"), &ALL_THERE)), [name]);
    }
    let changed: Vec<_> = NAMES
        .into_iter()
        .filter(|name| good(&format!("use = \"{name}\""), &ALL_THERE).assists[0].needs_changed_sender())
        .collect();
    assert_eq!(
        changed,
        ["ebsn", "rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho", "demo-vegas", "rto-fast-decrease"]
    );
    let nowhere: Vec<_> = NAMES
        .into_iter()
        .filter(|name| good(&format!("use = \"{name}\""), &ALL_THERE).assists[0].places().is_empty())
        .collect();
    assert_eq!(nowhere, ["rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho", "demo-vegas", "rto-fast-decrease"]);
}

#[test]
fn none_is_the_default_and_leaves_no_trace() {
    let plain = Scenario::parse("x.toml", GOOD, &[]).unwrap();
    assert!(plain.assists.is_empty());
    for assist in ["", "use = []", "use = \"none\"", "use = [\"none\"]", "except = [{ port = 22 }]"] {
        let scenario = good(assist, &[]);
        assert_eq!(scenario.digest(), plain.digest(), "{assist}");
        assert!(scenario.assist_except.is_empty(), "{assist}");
    }
}

#[test]
fn the_default_is_what_is_safe_with_ends_that_know_nothing_of_it() {
    let scenario = good("use = \"default\"", &[]);
    assert_eq!(names(&scenario), ["replay", "lcd-kick", "window-clamp"]);
    assert!(!scenario.assists.iter().any(Assist::needs_changed_sender));
    assert_eq!(
        scenario.assists[0],
        Assist::Replay(Placed {
            at: vec![AssistPlace::HomeAgent, AssistPlace::Mobile],
            parameters: ReplayTable::default()
        })
    );
}

#[test]
fn an_override_names_assists_in_each_form() {
    let base = "use = [\"none\"]";
    for (value, expected) in [
        ("assist=none", vec![]),
        ("assist=default", vec!["replay", "lcd-kick", "window-clamp"]),
        ("assist.use=default", vec!["replay", "lcd-kick", "window-clamp"]),
        ("assist=lcd-kick+replay", vec!["replay", "lcd-kick"]),
        ("assist=\"replay + lcd-kick\"", vec!["replay", "lcd-kick"]),
        ("assist.use=[\"window-clamp\", \"replay\"]", vec!["replay", "window-clamp"]),
        ("assist=[\"fast-retransmit\"]", vec!["fast-retransmit"]),
        ("assist={ use = \"replay\", replay = { age = \"1 s\" } }", vec!["replay"]),
    ] {
        assert_eq!(names(&good(base, &[value])), expected, "{value}");
    }
    // A parameter can be set beside the short form.
    let scenario = good(base, &["assist=default", "assist.replay.rest=drop"]);
    let Assist::Replay(replay) = &scenario.assists[0] else { panic!("{:?}", scenario.assists) };
    assert_eq!(replay.parameters.replay.rest, Rest::Drop);
}

#[test]
fn parameters_are_read() {
    let scenario = good(
        "use = \"replay+fast-retransmit+window-clamp+rto-reset\"\n\
         replay = { at = [\"mobile\", \"home-agent\"], bytes = \"1 MB\", packets = \"9 packets\", total = \"2 MB\", \
         flows = 3, age = \"4 s\", keep = \"newest\", rest = \"burst\", wait = \"5 s\", duplicates = \"pass\", patience = 2 }\n\
         fast-retransmit = { sack = \"none\", longest_outage = \"any\" }\n\
         window-clamp = { at = \"home-agent\", factor = 2, plus = \"0 segments\" }\n\
         rto-reset = { slow_start = true, by = \"option\" }",
        &[],
    );
    let [
        Assist::Replay(replay),
        Assist::FastRetransmit(repeat),
        Assist::WindowClamp(clamp),
        Assist::RtoReset(reset),
    ] = scenario.assists.as_slice()
    else {
        panic!("{:?}", scenario.assists)
    };
    let each = Replay {
        bytes: 1_000_000,
        packets: 9,
        age: Duration::from_secs(4),
        keep: Which::Newest,
        rest: Rest::Burst,
        wait: Duration::from_secs(5),
        swallow: false,
        patience: 2,
    };
    let parameters = ReplayTable { replay: each, total: 2_000_000, flows: 3 };
    assert_eq!(*replay, Placed { at: vec![AssistPlace::HomeAgent, AssistPlace::Mobile], parameters });
    assert_eq!((repeat.acks, repeat.sack, repeat.longest_outage), (3, Sack::None, None));
    assert_eq!((clamp.parameters.factor, clamp.parameters.segments), (2.0, 0));
    assert_eq!(clamp.at, [AssistPlace::HomeAgent]);
    assert_eq!((reset.slow_start, reset.by), (true, AdvisedBy::Option));
    let scenario = good(
        "use = \"path-queue\"\n\
         path-queue = { limit = \"30 kB\", discipline = \"red\", margin = 0.1, at_handover = \"drop\" }",
        &[],
    );
    let [Assist::PathQueue(path)] = scenario.assists.as_slice() else { panic!("{:?}", scenario.assists) };
    assert_eq!((path.queue.limit, path.at_handover), (QueueLimit::Bytes(30_000), QueueAtHandover::Drop));
    assert!(matches!(path.queue.discipline, Discipline::Red(_)) && path.margin == 0.1);
}

#[test]
fn the_defaults_of_parameters_are_those_of_the_documentation() {
    let json = |name: &str| -> serde_json::Value {
        let scenario = good(&format!("use = \"{name}\""), &ALL_THERE);
        let mut json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
        json["assists"][0].take()
    };
    assert_eq!(
        json("replay"),
        serde_json::json!({
            "name": "replay", "at": ["home-agent", "mobile"], "bytes": 4_194_304, "packets": 4096,
            "total_bytes": 67_108_864, "flows": 4096, "age_ns": 30_000_000_000_u64, "keep": "oldest", "rest": "wait",
            "wait_ns": 300_000_000_000_u64, "swallow_duplicates": true, "patience_round_trips": 1,
        })
    );
    assert_eq!(
        json("lcd-kick"),
        serde_json::json!({
            "name": "lcd-kick", "during": true, "interval_ns": 250_000_000, "burst": 8, "spacing_ns": 1_000_000,
            "limit_per_second": 100,
        })
    );
    assert_eq!(
        json("freeze"),
        serde_json::json!({ "name": "freeze", "warning_ns": null, "acks": 3, "patience_ns": 200_000_000 })
    );
    assert_eq!(json("path-queue")["queue"]["discipline"]["kind"], "codel");
    assert_eq!(json("path-queue")["margin"], 0.03);
    assert_eq!(json("bicast"), serde_json::json!({ "name": "bicast" }));
}

#[test]
fn flows_are_left_alone_by_prefix_and_port() {
    let scenario = good(
        "use = \"replay\"\nexcept = [{ prefix = \"10.0.0.0/8\", port = 22 }, { prefix = \"correspondent\" }, { port = 80 }]",
        &[],
    );
    let except: Vec<_> = scenario.assist_except.iter().map(|one| (one.peer, one.port)).collect();
    let network = Destination::Prefix { address: [10, 0, 0, 0].into(), length: 8 };
    let correspondent = Destination::Node(scenario.node_named("correspondent").unwrap());
    assert_eq!(except, [(network, Some(22)), (correspondent, None), (Destination::Any, Some(80))]);
    let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
    assert_eq!(json["assist_except"][0], serde_json::json!({ "peer": "10.0.0.0/8", "port": 22 }));
    assert_eq!(json["assist_except"][1], serde_json::json!({ "peer": "correspondent", "port": null }));
}

#[test]
fn a_name_that_is_none_is_refused_with_the_nearest_or_the_one_meant() {
    assert_eq!(
        message("use = [\"snop\"]", &[]),
        format!(
            "error: x.toml:14:8: assist.use.0: found \"snop\"; there is no such assist; known are \"none\", \"default\", \
             \"{}\"\n  hint: did you mean \"snoop\"?",
            NAMES.join("\", \"")
        )
    );
    for (name, hint) in [
        ("tcp-lcd", "write \"lcd-kick\""),
        ("Freeze-TCP", "write \"freeze\""),
        (
            "re-route",
            "write \"path-queue\", which moves its queue: path-queue = { at_handover = \"re-route\" }",
        ),
        ("rto_option", "write \"rto-reset\" with rto-reset = { by = \"option\" }"),
        ("i-tcp", "write \"split\""),
        ("buffer", "write \"buffer-forward\""),
        ("off", "write \"none\""),
        ("lcd_kick", "did you mean \"lcd-kick\"?"),
        ("defualt", "did you mean \"default\"?"),
    ] {
        let said = message(&format!("use = \"{name}\""), &[]);
        assert!(said.ends_with(&format!("\n  hint: {hint}")), "{said}");
    }
    assert!(message("use = \"replay+\"", &[]).contains("assist.use: found \"\"; there is no such assist"));
    assert!(message("use = 3", &[]).contains("it is an array of names, such as"));
    assert!(message("use = [3]", &[]).contains("assist.use.0: found 3; it must be text in quotes"));
    let said = message("", &["assist=replya"]);
    assert!(said.starts_with("error: --set assist=replya: assist: found \"replya\""), "{said}");
}

#[test]
fn words_for_many_stand_alone_and_an_assist_is_named_once() {
    for (used, part) in [
        ("[\"none\", \"replay\"]", "assist.use.0: found \"none\"; \"none\" stands alone"),
        ("\"none+none\"", "\"none\" stands alone"),
        (
            "\"default+freeze\"",
            "assist.use: found \"default\"; \"default\" stands alone\n  hint: it stands for \"replay\", \"lcd-kick\", \
             \"window-clamp\": write them instead",
        ),
        ("[\"replay\", \"lcd-kick\", \"replay\"]", "assist.use.2: found \"replay\"; an assist is named once"),
    ] {
        let said = message(&format!("use = {used}"), &[]);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn parameters_of_an_assist_that_is_not_used_are_refused() {
    let said = message("use = \"replay\"\nfreeze = { acks = 1 }", &[]);
    assert_eq!(
        said,
        "error: x.toml:15:10: assist.freeze: found a table; \"freeze\" is not in use\n  hint: add \"freeze\" to `use`, or \
         leave its parameters out"
    );
    assert!(message("replay = {}", &[]).contains("\"replay\" is not in use"));
    assert!(
        message("use = \"bicast\"\nbicast = {}", &["mobility.simultaneous_bindings=true"])
            .ends_with("hint: \"bicast\" has no parameters; name it in `use`")
    );
    // One mistake is told once: with a name mistyped, nothing is said of the parameters.
    let said = message("use = \"freez\"\nfreeze = { acks = 1 }", &[]);
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, parameters, part) in [
        ("replay", "age = \"0 s\"", "assist.replay.age: found \"0 s\"; it must be above zero"),
        ("replay", "packets = 0", "it must be a whole number between 1 and 1000000"),
        ("replay", "packets = \"0 packets\"", "it must be above zero"),
        ("replay", "bytes = \"0 B\"", "it must be above zero"),
        (
            "replay",
            "bytes = \"100 MiB\"",
            "assist.replay.bytes: found \"100 MiB\"; all flows together may keep 64 MiB, and a flow of them 100 MiB\n  \
             hint: raise `total` or lower `bytes`",
        ),
        (
            "replay",
            "total = \"1 MiB\"",
            "assist.replay.total: found \"1 MiB\"; all flows together may keep 1 MiB",
        ),
        ("replay", "keep = \"old\"", "hint: did you mean \"oldest\"?"),
        ("replay", "rest = \"later\"", "known are \"wait\", \"drop\" and \"burst\""),
        ("replay", "duplicates = true", "it must be \"swallow\" or \"pass\""),
        ("replay", "at = []", "hint: leave `at` out for the usual places"),
        (
            "replay",
            "at = [\"mobile\", \"mobile\"]",
            "assist.replay.at.1: found \"mobile\"; a place is named once",
        ),
        ("replay", "at = [\"homeagent\"]", "hint: did you mean \"home-agent\"?"),
        ("replay", "at = 1", "it is an array of places: \"home-agent\", \"foreign-agent\" or \"mobile\""),
        ("window-clamp", "at = \"foreign-agent\"", "known are \"home-agent\" and \"mobile\""),
        ("window-clamp", "factor = 0", "it must be a number above 0 and at most 1000"),
        ("window-clamp", "plus = 1", "hint: write \"1 segments\""),
        ("lcd-kick", "interval = \"0 s\"", "it must be above zero"),
        ("lcd-kick", "limit = 0", "it must be a whole number between 1 and 1000000"),
        (
            "lcd-kick",
            "during = false, burst = 0",
            "assist.lcd-kick.burst: found 0; neither during an outage nor at its end would it send anything",
        ),
        ("freeze", "warning = \"0 s\"", "it must be above zero"),
        ("freeze", "acks = 0", "it must be a whole number between 1 and 1000000"),
        ("freeze", "notice = \"1 s\"", "hint: write `notice` in a [[handover]]"),
        (
            "fast-retransmit",
            "longest_outage = \"all\"",
            "it must be a duration, such as \"200 ms\", or \"any\"",
        ),
        ("fast-retransmit", "sack = \"last\"", "hint: did you mean \"as-last\"?"),
        ("ack-hold", "bytes = 0", "it must lie between 1 and 65535 bytes"),
        ("ack-hold", "from = \"now\"", "known are \"notice\" and \"always\""),
        (
            "path-queue",
            "margin = 1",
            "assist.path-queue.margin: found 1; nothing would be left of the path's rate",
        ),
        ("path-queue", "limit = 50", "hint: write \"50 packets\" or \"50 B\""),
        (
            "path-queue",
            "limit = \"9 packets\", discipline = \"red\"",
            "assist.path-queue.limit: found \"9 packets\"; RED needs room for 15 packets",
        ),
        ("buffer-forward", "limit = 0", "it must be a whole number between 1 and 1000000"),
        (
            "split",
            "at = \"mobile\"",
            "assist.split.at: found \"mobile\"; known are \"home-agent\" and \"foreign-agent\"",
        ),
        ("split", "buffer = \"0 B\"", "assist.split.buffer: found \"0 B\"; it must be above zero"),
        ("split", "tcp = \"tahoo\"", "hint: did you mean \"tahoe\"?"),
        ("split", "tcp = { mss = 3000 }", "assist.split.tcp.mss: found 3000; 1460 is the most that fits"),
        ("split", "window = \"1 KiB\"", "hint: write it in the table of `tcp`"),
        ("rto-reset", "by = \"icmp\"", "known are \"signal\" and \"option\""),
        ("tcp-cm", "resend = 1", "it must be true or false, without quotes"),
        ("rto-fast-decrease", "samples = 0", "it must be a whole number between 1 and 1000000"),
        ("hold-last", "count = 2", "hint: write `packets`"),
        ("snoop", "least_timeout = \"0 s\"", "it must be above zero"),
    ] {
        let said = message(&format!("use = \"{name}\"\n{name} = {{ {parameters} }}"), &ALL_THERE);
        assert!(said.contains(part), "{name} {parameters}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    assert!(message("use = \"replay\"\nreplay = 7", &[]).contains("a replay is a table"));
}

#[test]
fn assists_that_contradict_each_other_are_refused() {
    for (first, second, reason) in [
        ("replay", "hold-last", "both keep or copy the packets for the mobile node"),
        ("replay", "buffer-forward", "both keep or copy"),
        ("replay", "bicast", "both keep or copy"),
        ("replay", "snoop", "both keep or copy"),
        ("hold-last", "buffer-forward", "both keep or copy"),
        ("replay", "path-queue", "both keep or copy"),
        ("freeze", "ack-hold", "both rewrite the acknowledgements before a handover"),
        ("freeze", "m-tcp", "both rewrite the acknowledgements"),
        ("split", "m-tcp", "both stand between the ends"),
        ("ebsn", "split", "one of them advises the sender, whose connection the other ends at a relay"),
        ("split", "rto-reset", "one of them advises the sender"),
        ("split", "tcp-cm", "one of them advises the sender"),
        ("split", "mobile-tcp", "one of them advises the sender"),
        ("rto-reset", "tcp-cm", "both say what a sender does after a handover"),
        ("tcp-cm", "mobile-tcp", "both say what a sender does"),
        ("tcp-ho", "demo-vegas", "both say what a sender does"),
    ] {
        let said = message(&format!("use = [\"{second}\", \"{first}\"]"), &ALL_THERE);
        let expected =
            format!("assist.use.0: found \"{second}\"; it cannot be used with \"{first}\": {reason}");
        assert!(said.contains(&expected), "{said}");
        assert!(said.ends_with("hint: use one of them"), "{said}");
    }
    let at_once = "use = \"replay+lcd-kick+freeze+fast-retransmit+window-clamp+rto-reset+rto-fast-decrease\"";
    assert_eq!(good(at_once, &ALL_THERE).assists.len(), 7);
}

#[test]
fn what_acts_on_an_announcement_needs_one() {
    for name in ["freeze", "ack-hold"] {
        assert_eq!(
            message(&format!("use = \"{name}\""), &[]),
            format!(
                "error: x.toml:14:7: assist.use: found \"{name}\"; it acts when a handover is announced, and none is\n  hint: \
                 write notice = \"500 ms\" in a [[handover]]"
            )
        );
        assert_eq!(names(&good(&format!("use = \"{name}\""), &["handover.notice=1 s"])), [name]);
    }
    // A warning of its own is counted from the announcement, too.
    assert!(message("use = \"freeze\"\nfreeze = { warning = \"1 s\" }", &[]).contains("and none is"));
    good("use = \"ack-hold\"\nack-hold = { from = \"always\" }", &[]);
    good("use = \"freeze\"", &["handover.notice=1 s", "handover.cancelled=true"]);
}

#[test]
fn what_an_assist_needs_of_the_network_has_to_be_there() {
    assert_eq!(
        message("use = \"bicast\"", &[]),
        "error: x.toml:14:7: assist.use: found \"bicast\"; it needs bindings by the old path and the new one at a time\n  \
         hint: write simultaneous_bindings = true in [mobility]"
    );
    assert_eq!(
        message("use = \"replay\"\nreplay = { at = [\"foreign-agent\"] }", &[]),
        "error: x.toml:15:17: assist.replay.at: found \"foreign-agent\"; the scenario has no foreign agent\n  hint: write \
         care_of = \"foreign-agent\" in [mobility]"
    );
    for name in ["snoop", "ebsn", "m-tcp"] {
        let said = message(&format!("use = \"{name}\""), &[]);
        assert!(
            said.contains("it runs at a foreign agent, and the scenario has none\n  hint: write care_of"),
            "{said}"
        );
    }
    let fixed = "duration = \"1 s\"\n[links]\na = { preset = \"lte\", between = [\"a\", \"b\"] }\n[assist]\n\
                 use = [\"replay\", \"lcd-kick\"]\n";
    assert_eq!(
        Scenario::parse("x.toml", fixed, &[]).unwrap_err().to_string(),
        "error: x.toml:5:8: assist.use.0: found \"replay\"; assists help across handovers, and nobody moves\n  hint: add \
         [mobility] with protocol = \"mobile-ipv4\""
    );
}

#[test]
fn a_relay_has_room_and_a_tcp_of_its_own() {
    let split = |assist: &str, overrides: &[&str]| {
        let scenario = good(assist, &[&ALL_THERE[..], overrides].concat());
        let [Assist::Split(split)] = scenario.assists.as_slice() else { panic!("{:?}", scenario.assists) };
        split.clone()
    };
    // Without a word about it the relay is at the home agent, and its TCP is the flow's.
    let usual = split("use = \"split\"", &[]);
    assert_eq!(usual, Split { at: AssistPlace::HomeAgent, buffer: Split::BUFFER, tcp: None });
    assert_eq!(Split::BUFFER, 262_144, "the reference says 256 KiB");
    let given =
        split("use = \"split\"\nsplit = { buffer = \"9 kB\", tcp = { profile = \"reno\", mss = 536 } }", &[]);
    let tcp = given.tcp.unwrap();
    assert_eq!((given.buffer, tcp.profile.name(), tcp.config.mss), (9000, "reno", 536));
    // Its segments fit the links of the mobile node, which the flow's may not have to.
    let narrow = split("use = \"split\"", &["assist.split.tcp=reno", "links.gsm.mtu=576"]);
    let tcp = narrow.tcp.unwrap();
    assert_eq!((tcp.profile.name(), tcp.config.mss), ("reno", 536));
    let station = split("use = \"split\"\nsplit = { at = \"foreign-agent\" }", &[]);
    assert_eq!(station.at, AssistPlace::ForeignAgent);
}

#[test]
fn a_relay_at_the_home_agent_needs_both_directions() {
    assert_eq!(
        message("use = \"split\"", &[]),
        "error: x.toml:14:7: assist.use: found \"split\"; its relay needs both directions of a flow, and only one passes the \
         home agent\n  hint: write routing = \"reverse-tunnel\" in [mobility]"
    );
    let policy =
        |method: &str| format!("mobility.policy=[{{ to = \"correspondent\", method = \"{method}\" }}]");
    let both = "mobility.routing=reverse-tunnel";
    for method in ["triangle", "regular-ip"] {
        let said = message("use = \"split\"", &[both, &policy(method)]);
        assert!(said.contains("and by mobility.policy.0 only one may pass the home agent"), "{said}");
    }
    good("use = \"split\"", &[both, &policy("reverse-tunnel")]);
    // A base station sees both directions whatever the home agent sees.
    good("use = \"split\"\nsplit = { at = \"foreign-agent\" }", &["mobility.care_of=foreign-agent"]);
    let said = message("use = \"split\"\nsplit = { at = \"foreign-agent\" }", &[]);
    assert!(
        said.contains("assist.split.at: found \"foreign-agent\"; the scenario has no foreign agent"),
        "{said}"
    );
}

#[test]
fn one_of_assist_and_handover_says_what_becomes_of_a_queue() {
    let queued = |name: &str, queued: &str| {
        message(&format!("use = \"{name}\""), &[&format!("handover.queued={queued}")])
    };
    for name in ["replay", "hold-last"] {
        assert!(queued(name, "re-route").contains(
            "it sends again what queued = \"re-route\" of handover.0 moves\n  hint: leave `queued` out"
        ));
    }
    for fate in ["drop", "drop-with-icmp", "re-route"] {
        assert!(queued("path-queue", fate).contains(&format!("handover.0 has queued = \"{fate}\"")));
    }
    good("use = \"path-queue\"", &["handover.queued=drain-late"]);
    good("use = \"path-queue\"\npath-queue = { at_handover = \"drop\" }", &["handover.queued=drop"]);
    good("use = \"replay\"", &["handover.queued=drop"]);
}

#[test]
fn exceptions_are_checked() {
    for (except, part) in [
        ("\"10.0.0.0/8\"", "it is an array of tables, such as [{ prefix = \"10.0.0.0/8\", port = 22 }]"),
        ("[{}]", "assist.except.0: found a table; an exception has a `prefix`, a `port` or both"),
        ("[{ prefix = \"10.0.0.1/8\" }]", "hint: write \"10.0.0.0/8\""),
        ("[{ prefix = \"nobody\" }]", "assist.except.0.prefix: found \"nobody\"; the nodes are"),
        ("[{ port = 0 }]", "it must be a whole number between 1 and 65535"),
        ("[{ peer = \"10.0.0.0/8\" }]", "hint: write `prefix`"),
    ] {
        let said = message(&format!("use = \"replay\"\nexcept = {except}"), &[]);
        assert!(said.contains(part), "{except}: {said}");
    }
}

#[test]
fn a_false_alarm_leaves_the_link_in_use() {
    let alarm =
        "[[handover]]\nat = \"5 s\"\nfrom = \"wavelan\"\nto = \"gsm\"\nnotice = \"1 s\"\ncancelled = true\n";
    let text = GOOD.replacen("[[handover]]", &format!("{alarm}[[handover]]"), 1);
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap();
    assert_eq!(scenario.handovers.iter().map(|one| one.cancelled).collect::<Vec<_>>(), [true, false]);
    assert_eq!(scenario.handovers[0].notice, Duration::from_secs(1));
    let json: serde_json::Value = serde_json::from_str(&scenario.canonical_json()).unwrap();
    assert_eq!(json["handovers"][0]["cancelled"], true);
    assert_eq!(json["handovers"][1].get("cancelled"), None, "the digest of others stays");
}

/// Any set of assists as text, and whether it contradicts itself.
fn sets() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(NAMES.to_vec(), 1..=4).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_of_names_means_nothing(set in sets()) {
        let text = |names: &[&str]| format!("use = \"{}\"", names.join("+"));
        let mut sorted = set.clone();
        sorted.sort_by_key(|name| NAMES.iter().position(|other| other == name));
        match (parse(&text(&set), &ALL_THERE), parse(&text(&sorted), &ALL_THERE)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(names(&one), sorted);
                prop_assert_eq!(one.digest(), other.digest());
            }
            (one, other) => prop_assert!(one.is_err() && other.is_err()),
        }
    }

    #[test]
    fn no_assist_makes_the_parser_panic(text in "[a-z0-9=\\[\\]{}\". +-]{0,30}", key in "use|replay|freeze|except") {
        let _ = parse(&format!("use = \"replay\"\n{text}"), &[]);
        let _ = parse("", &[&format!("assist.{key}={text}"), &format!("assist={text}")]);
    }
}
