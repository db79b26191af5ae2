//! Each mistake in a scenario gets one message that names the place, the value and the remedy.

use std::path::Path;

use careof_scenario::{Scenario, ScenarioErrors};
use proptest::prelude::*;

const GOOD: &str = r#"title = "x"
duration = "120 s"
[links]
wavelan = "wavelan"
gsm = { preset = "gsm-csd", queue = "50 packets" }
[mobility]
[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
[[flow]]
from = "correspondent"
to = "mobile"
"#;

fn errors(text: &str, overrides: &[&str]) -> ScenarioErrors {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("scenarios/x.toml", text, &overrides).expect_err(text)
}

/// The messages for [`GOOD`] with `old` replaced by `new`.
fn edited(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    errors(&GOOD.replacen(old, new, 1), &[]).to_string()
}

/// The messages for [`GOOD`] with `lines` added at the end.
fn added(lines: &str) -> String {
    errors(&format!("{GOOD}{lines}"), &[]).to_string()
}

/// The messages for [`GOOD`] with an override.
fn overridden(text: &str) -> String {
    errors(GOOD, &[text]).to_string()
}

#[test]
fn what_is_wrong_alike_in_many_tables_is_said_once_with_the_lines() {
    let handover =
        |at: u32| format!("[[handover]]\nat = \"{at} s\"\nfrom = \"gsm\"\nto = \"gsm\"\nqueued = \"away\"\n");
    let many: String = [20, 30, 40, 50, 60].into_iter().map(handover).collect();
    let said = added(&many);
    assert_eq!(said.matches("found \"away\"").count(), 1, "{said}");
    assert!(
        said.contains("handover.1.queued") && said.contains("also in line 23, 28, 33 and 1 more"),
        "{said}"
    );
}

#[test]
fn keys_of_the_other_ip_version_are_refused_with_what_would_be_right() {
    let over_ipv6 = |more: &str| {
        let text =
            GOOD.replacen("[mobility]\n", &format!("[mobility]\nprotocol = \"mobile-ipv6\"\n{more}\n"), 1);
        errors(&text, &[]).to_string()
    };
    for key in [
        "encapsulation = \"gre\"",
        "care_of = \"foreign-agent\"",
        "simultaneous_bindings = true",
        "replay = \"nonces\"",
    ] {
        assert!(over_ipv6(key).contains("protocol = \"mobile-ipv4\" only"), "{key}");
    }
    assert!(over_ipv6("routing = \"triangle\"").contains("write route_optimization = true"));
    assert!(over_ipv6("algorithm = \"hmac-md5\"").contains("\"hmac-sha-1\" or \"hmac-sha-256\""));
    assert!(over_ipv6("advertisement_interval = \"60 ms\"").contains("70 ms"));
    let detection = "mobility.duplicate_address_detection=full";
    assert!(overridden(detection).contains("protocol = \"mobile-ipv6\""));
    assert!(overridden("mobility.algorithm=hmac-sha-1").contains("\"hmac-md5\" or \"hmac-sha-256\""));
    assert!(overridden("ip_version=6").contains("mobile-ipv4 is for version 4"));
    assert!(overridden("ip_version=5").contains("there is 4 and there is 6"));
    assert!(overridden("ip_version=7").contains("ip_version"));
}

#[test]
fn a_link_of_ipv4_is_for_mobile_nodes_over_ipv6_that_are_elsewhere() {
    let over_ipv6 = |mobility: &str, overrides: &[&str]| {
        let protocol = format!("[mobility]\nprotocol = \"mobile-ipv6\"\n{mobility}\n");
        let text = GOOD.replacen("[mobility]\n", &protocol, 1);
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::parse("x.toml", &text, &overrides)
    };
    let only = "links.gsm.ip_version=4";
    let scenario = over_ipv6("", &[only]).unwrap();
    let ipv4_only = |name: &str| scenario.links.iter().find(|link| link.name == name).unwrap().ipv4_only;
    assert!(ipv4_only("gsm") && !ipv4_only("wavelan"));
    assert!(!over_ipv6("", &["links.gsm.ip_version=6"]).unwrap().links.iter().any(|link| link.ipv4_only));
    let wrong = |mobility: &str, overrides: &[&str]| over_ipv6(mobility, overrides).unwrap_err().to_string();
    assert!(wrong("", &["links.gsm.ip_version=5"]).contains("there is 4 and there is 6"));
    assert!(wrong("home = \"gsm\"", &[only]).contains("at home in a network of IPv6"));
    assert!(
        wrong("movement_detection = \"eager\"", &[only]).contains("movement_detection = \"link-trigger\"")
    );
    assert!(wrong("", &[only, "links.gsm.prefix=192.0.2.0/24"]).contains("leave `prefix` out"));
    let wired = "links.wire={ preset = \"lte\", between = [\"home-agent\", \"x\"], ip_version = 4 }";
    assert!(wrong("", &[wired]).contains("it is for the access links"));
    assert!(overridden(only).contains("protocol = \"mobile-ipv6\" in [mobility]"));
}

#[test]
fn a_mobile_node_that_chooses_among_links_needs_to_watch_them_and_no_script() {
    let order = "[mobility]\norder = [\"wavelan\", \"gsm\"]\n";
    let watched = format!("{order}path_monitor = true\n");
    let no_script = |text: String| {
        text.split("[[handover]]").next().unwrap().to_owned()
            + "[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n"
    };
    assert!(edited("[mobility]\n", &watched).contains("with `order` the mobile node chooses by itself"));
    assert!(edited("[mobility]\n", order).contains("hint: write path_monitor = true"));
    assert!(edited("[mobility]\n", "[mobility]\nmetered = [\"gsm\"]\n").contains("write order ="));
    let wrong = |more: &str| {
        let text = no_script(GOOD.replacen("[mobility]\n", &format!("{watched}{more}\n"), 1));
        errors(&text, &[]).to_string()
    };
    assert!(wrong("metered = [\"lte\"]").contains("the mobile node's links are"));
    assert!(wrong("start = \"gsm\"").contains("with `order` the mobile node chooses by itself"));
    assert!(wrong("movement_detection = \"prefix\"").contains("hint: leave `movement_detection` out"));
    let text = no_script(GOOD.replacen("[mobility]\n", &watched, 1));
    Scenario::parse("scenarios/x.toml", &text, &[]).expect("nothing is wrong with it");
    let only = text.replacen("[\"wavelan\", \"gsm\"]", "[\"wavelan\"]\nmetered = [\"gsm\"]", 1);
    assert!(errors(&only, &[]).to_string().contains("`metered` names links of `order`"));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_ones() {
    assert_eq!(
        edited("queue =", "rato = "),
        "error: scenarios/x.toml:5:29: links.gsm.rato: found an unknown key; a link has the keys rate, trace, \
         mtu and 20 more\n  \
         hint: did you mean `rate`?"
    );
    assert!(edited("queue =", "queue-up =").ends_with("hint: write `queue_up`"));
    assert!(
        added("widnow = 1").ends_with("hint: `window` is a key of `tcp`")
            || added("widnow = 1").contains("flow.0")
    );
    assert!(added("mss = 536").ends_with("hint: `mss` is a key of `tcp`"));
    let queue = edited("queue = \"50 packets\"", "queue = { discipline = \"codel\", ecnn = true }");
    assert_eq!(
        queue.matches("ecnn: found an unknown key").count(),
        1,
        "a queue is read for both directions: {queue}"
    );
    assert!(added("[[flows]]").ends_with("hint: write [[flow]], once for each flow"));
}

#[test]
fn all_unknown_keys_are_told_at_once_in_the_order_of_the_file() {
    let text = GOOD.replacen("title", "titel", 1).replacen("queue =", "buffer =", 1) + "knd = \"bulk\"\n";
    let found: Vec<_> = errors(&text, &[])
        .0
        .into_iter()
        .map(|error| (error.line.unwrap(), error.key, error.hint.unwrap()))
        .collect();
    let expected = [
        (1, "titel", "did you mean `title`?"),
        (5, "links.gsm.buffer", "write `queue`"),
        (14, "flow.0.knd", "did you mean `kind`?"),
    ];
    assert_eq!(found, expected.map(|(line, key, hint)| (line, key.to_owned(), hint.to_owned())));
}

#[test]
fn a_round_trip_time_is_not_a_delay() {
    assert!(
        edited("queue = \"50 packets\"", "rtt = \"700 ms\"")
            .ends_with("hint: delays are one way here: write half of the round-trip time as `delay`")
    );
}

#[test]
fn an_unknown_preset_is_refused_with_the_nearest_one() {
    assert_eq!(
        edited("\"gsm-csd\"", "\"gsm-scd\""),
        "error: scenarios/x.toml:5:18: links.gsm.preset: found \"gsm-scd\"; it must be one of the presets that \
         `careof presets` lists\n  hint: did you mean \"gsm-csd\"?"
    );
    assert!(edited("wavelan = \"wavelan\"", "wavelan = \"x\"").contains("hint: they are ethernet-10m, "));
}

#[test]
fn a_negative_rate_is_refused() {
    assert_eq!(
        edited("queue = \"50 packets\"", "rate = \"-9.6 kbit/s\""),
        "error: scenarios/x.toml:5:36: links.gsm.rate: found \"-9.6 kbit/s\"; a rate must not be negative\n  \
         hint: write \"9.6 kbit/s\""
    );
}

#[test]
fn a_missing_unit_is_asked_for() {
    assert_eq!(
        edited("queue = \"50 packets\"", "delay = 700"),
        "error: scenarios/x.toml:5:37: links.gsm.delay: found 700; a duration is a number and a unit, such as \
         \"700 ms\"\n  hint: write \"700 ms\" or \"700 s\""
    );
    assert!(edited("\"12 s\"", "12").contains("handover.0.at: found 12; a duration is a number and a unit"));
    assert!(edited("\"50 packets\"", "50").ends_with("hint: write \"50 packets\" or \"50 B\""));
    assert!(added("size = \"1000\"").ends_with("hint: write \"1000 B\" or \"1000 KiB\""));
}

#[test]
fn text_without_quotes_is_recognised() {
    let message = edited("\"12 s\"", "12 s");
    assert!(message.starts_with("error: scenarios/x.toml:8:"), "{message}");
    assert!(
        message.ends_with("hint: text, and every value with a unit, stands in quotes: at = \"12 s\""),
        "{message}"
    );
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    for (edit, part) in [
        (
            edited("\"120 s\"", "true"),
            "duration: found true; write text with a number and a unit, such as \"700 ms\"",
        ),
        (edited("\"120 s\"", "\"0 s\""), "duration: found \"0 s\"; it must be above zero"),
        (edited("title = \"x\"", "title = 1"), "title: found 1; it must be text in quotes"),
        (edited("title", "seed = -1\ntitle"), "seed: found -1; it must be a whole number not below 0"),
        (edited("\"wavelan\"\ngsm", "7\ngsm"), "links.wavelan: found 7; a link is the name of a preset"),
        (overridden("flow=3"), "flow: found 3; write [[flow]], once for each flow"),
        (
            edited("[mobility]", "[mobility]\nsimultaneous_bindings = 1"),
            "it must be true or false, without quotes",
        ),
        (edited("[mobility]", "[mobility]\nprotocol = 4"), "found 4; it must be \"mobile-ipv4\""),
    ] {
        assert!(edit.contains(part), "{edit}");
    }
}

#[test]
fn impossible_links_are_refused() {
    for (value, part) in [
        (
            "mtu = 67",
            "links.gsm.mtu: found 67; it must lie between 68 and 65535 bytes: every IPv4 node passes on 68",
        ),
        ("mtu = \"70 kB\"", "it must lie between 68 and 65535 bytes"),
        ("loss = \"101 %\"", "a probability lies between 0 and 1, such as 0.01 or \"1 %\""),
        ("loss = 2", "hint: write \"2 %\""),
        (
            "loss = { good_to_bad = 0.1 }",
            "links.gsm.loss.bad_to_good: found nothing; the chain needs both its steps",
        ),
        ("loss = { p = 0.1, bad_to_good = 0.1 }", "it belongs to kind = \"bernoulli\""),
        (
            "jitter = \"1 s\"",
            "found a jitter of ±1 s around a delay of 349.75 ms; uniform jitter is at most the delay, so that no \
             packet arrives before it was sent\n  hint: raise the delay to \"1 s\" or lower the jitter to \"349.75 ms\"",
        ),
        ("jitter = { kind = \"pareto\", scale = \"1 ms\", shape = 1 }", "the shape must be a number above 1"),
        (
            "jitter = { deviation = \"1 ms\", spread = \"1 ms\" }",
            "this jitter is normal, which has no such part",
        ),
        ("framing = \"ppp\"", "known are \"none\" and \"async-ppp\"\n  hint: did you mean \"async-ppp\"?"),
        ("framing = { bits_per_byte = 7 }", "it must be a whole number between 8 and 16"),
        ("queue = { target = \"5 ms\" }", "it belongs to discipline = \"codel\""),
        (
            "queue = { discipline = \"codel\", target = \"200 ms\" }",
            "found a target of 200 ms and an interval of 100 ms; the target must lie below the interval",
        ),
        (
            "queue = { discipline = \"red\", limit = \"10 packets\" }",
            "found an upper threshold of 15 packets in a queue of 10",
        ),
        (
            "queue = { discipline = \"red\", min_threshold = \"20 packets\" }",
            "found thresholds of 20 and 15 packets; min_threshold must lie below max_threshold",
        ),
        ("queue = { discipline = \"fq\" }", "known are \"drop-tail\", \"red\" and \"codel\""),
        ("between = [\"mobile\"]", "it names the two ends of the link"),
        ("between = [\"a\", \"a\"]", "a link joins two nodes, not a and itself"),
        ("between = [\"a b\", \"c\"]", "a name is 1 to 32 letters, digits, `-` and `_`"),
        ("between = [\"mobile\", \"home-agent\"]", "hint: write between = [\"home-agent\", \"mobile\"]"),
        ("between = [\"correspondent\", \"mobile\"]", "an access link ends at \"home-agent\""),
        (
            "between = [\"router\", \"mobile\"]",
            "found \"router\"; no path of links leads there from \"home-agent\", so that nobody can register over it\n  \
             hint: add a link with between = [\"home-agent\", \"router\"]",
        ),
    ] {
        let message = edited("queue = \"50 packets\"", value);
        assert!(message.contains(part), "{value}: {message}");
    }
    assert!(edited("[mobility]", "x = { rate = \"1 Mbit/s\" }\n[mobility]").contains(
        "links.x.delay: found nothing; a link needs a preset, or rate and delay: delay = \"1.5 ms\" (one way)"
    ));
}

#[test]
fn a_network_without_a_mobile_node_needs_ends() {
    let text = "duration = \"1 s\"\n[links]\na = \"ethernet-10m\"\n";
    assert_eq!(
        errors(text, &[]).to_string(),
        "error: scenarios/x.toml:3:5: links.a: found no ends; without [mobility] a link names the nodes it joins: \
         between = [\"a\", \"b\"]"
    );
    let island = "duration = \"1 s\"\n[links]\na = { preset = \"lte\", between = [\"a\", \"b\"] }\n\
                  b = { preset = \"lte\", between = [\"c\", \"d\"] }\n[[flow]]\nfrom = \"a\"\nto = \"c\"\n";
    assert!(errors(island, &[]).to_string().contains(
        "flow.0.to: found \"c\"; no path of links leads there from \"a\"\n  hint: join them in [links]"
    ));
    let handover =
        island.replacen("[[flow]]", "[[handover]]\nat = \"0 s\"\nfrom = \"a\"\nto = \"b\"\n[[flow]]", 1);
    assert!(
        errors(&handover, &[]).to_string().contains("hint: add [mobility] with protocol = \"mobile-ipv4\"")
    );
}

#[test]
fn a_mobile_node_needs_an_access_link() {
    let text = "duration = \"1 s\"\n[links]\nethernet = { delay = \"1 ms\" }\n[mobility]\n";
    let message = errors(text, &[]).to_string();
    assert!(
        message
            .contains("scenarios/x.toml:4:1: mobility: found no access link; the mobile node needs a link")
    );
}

#[test]
fn a_handover_to_a_link_that_is_not_there_is_refused() {
    assert_eq!(
        edited("to = \"gsm\"", "to = \"gms\""),
        "error: scenarios/x.toml:10:6: handover.0.to: found \"gms\"; the mobile node's links are \"wavelan\" and \
         \"gsm\"\n  hint: did you mean \"gsm\"?"
    );
    assert!(edited("to = \"gsm\"", "to = \"ethernet\"").contains(
        "found \"ethernet\", which joins correspondent and home-agent; the mobile node's links are \"wavelan\" and \"gsm\""
    ));
    assert!(edited("to = \"gsm\"", "to = \"lte\"").ends_with("hint: add it to [links]"));
}

#[test]
fn handovers_form_a_chain_in_time() {
    let second = "[[handover]]\nat = \"20 s\"\nfrom = \"gsm\"\nto = \"wavelan\"\n";
    assert!(Scenario::parse("x.toml", &format!("{GOOD}{second}"), &[]).is_ok());
    for (message, part) in [
        (edited("to = \"gsm\"", "to = \"wavelan\""), "a handover leads to another link than it leaves"),
        (
            edited("[mobility]", "[mobility]\nstart = \"gsm\""),
            "handover.0.from: found \"wavelan\"; the link in use at that time is \"gsm\"\n  hint: write from = \"gsm\"",
        ),
        (
            added(&second.replacen("gsm", "wavelan", 1).replacen("o = \"wavelan", "o = \"gsm", 1)),
            "is \"gsm\"",
        ),
        (
            added(&second.replacen("20 s", "12 s", 1)),
            "handover.1.at: found \"12 s\"; handovers stand in the order of time, and the one before is over at 12 s",
        ),
        (
            edited("\"12 s\"", "\"2 min\""),
            "handover.0.at: found \"2 min\"; the run ends at 120 s\n  hint: raise `duration` or lower `at`",
        ),
        (
            edited("to = \"gsm\"", "to = \"gsm\"\ninterruption = \"1 s\""),
            "make-before-break has no interruption\n  hint: write style = \"break-before-make\"",
        ),
        (
            edited("to = \"gsm\"", "to = \"gsm\"\nstyle = \"break-before-make\"\ninterruption = \"110 s\""),
            "found a handover that is over at 122 s; the run ends at 120 s",
        ),
        (
            edited("to = \"gsm\"", "to = \"gsm\"\nnotice = \"13 s\""),
            "handover.0.notice: found \"13 s\"; the notice must not lie before the beginning of the run",
        ),
        (
            edited("at = \"12 s\"\n", ""),
            "handover.0.at: found nothing; a handover needs its time: at = \"12 s\"",
        ),
        (edited("to = \"gsm\"", "to = \"gsm\"\nqueued = \"reroute\""), "hint: did you mean \"re-route\"?"),
        (
            edited("to = \"gsm\"", "to = \"gsm\"\ncancelled = true"),
            "handover.0.cancelled: found true; what does not happen has to be announced at least\n  hint: add notice = \"500 ms\"",
        ),
        (
            edited("to = \"gsm\"", "to = \"gsm\"\nnotice = \"1 s\"\ncancelled = true\nqueued = \"drop\""),
            "handover.0.queued: found \"drop\"; a cancelled handover leaves the link alone",
        ),
        (
            edited(
                "to = \"gsm\"",
                "to = \"gsm\"\nnotice = \"1 s\"\ncancelled = true\n[[handover]]\nat = \"13 s\"\nfrom = \"gsm\"\nto = \"wavelan\"",
            ),
            "handover.1.from: found \"gsm\"; the link in use at that time is \"wavelan\"",
        ),
        (edited("to = \"gsm\"", "to = \"gsm\"\ncancelled = 1"), "it must be true or false, without quotes"),
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_window_of_zero_is_refused() {
    for value in ["0", "\"0 B\"", "\"0 KiB\""] {
        assert_eq!(
            added(&format!("tcp = {{ window = {value} }}")),
            format!(
                "error: scenarios/x.toml:14:18: flow.0.tcp.window: found {value}; it must be above zero\n  hint: \
                 write \"16 KiB\", for example"
            )
        );
    }
}

#[test]
fn impossible_tcp_is_refused() {
    for (value, part) in [
        (
            "profile = \"sack\", window = \"100 kB\"",
            "without window scaling the largest window is 65535 B\n  hint: add `window_scaling = true`",
        ),
        (
            "window = \"2 GB\", window_scaling = true",
            "the largest window that can be advertised is 1073725440 B",
        ),
        (
            "mss = 1461",
            "found 1461; 1460 is the most that fits the MTU of 1500 at the flow's ends (less 40 of headers)",
        ),
        ("mss = 20", "it must lie between 88 and 65495 bytes"),
        (
            "variant = \"cubic\"",
            "\"linux-2.0\", \"linux\" and \"kernel\"\n  hint: write congestion = \"cubic\"",
        ),
        ("congestion = \"Cubic!\"", "\"bbr\" or \"bbr3\", or the name of a Linux kernel's own"),
        ("profile = \"linux-2.0\", congestion = \"cubic\"", "the variant linux-2.0 has its own"),
        (
            "variant = \"reno\", congestion = \"dctcp\"",
            "no model has \"dctcp\": it belongs to a kernel's TCP\n  hint: leave variant = \"reno\" out, or write variant = \"kernel\"",
        ),
        ("profile = \"linus\"", "hint: did you mean \"linux\"?"),
        ("variant = \"rneo\"", "hint: did you mean \"reno\"?"),
        (
            "rto = \"linux-2\"",
            "known are \"rfc6298\", \"linux\", \"linux-2.0\", \"bsd\" and \"fast-decrease\"\n  hint: did you mean \"linux-2.0\"?",
        ),
        (
            "profile = \"sack\", rto_min = \"61 s\"",
            "found a least RTO of 61 s and a greatest of 60 s; rto_min must not be above rto_max",
        ),
        ("delayed_ack = \"600 ms\"", "RFC 1122 allows at most 500 ms"),
        ("initial_window = \"0 segments\"", "a number of segments above zero"),
        ("profile = \"sack\", sack = false", "the variant \"sack\" needs the option of that name"),
        (
            "profile = \"linux\", sack = false, rack = true",
            "flow.0.tcp.rack: found true; it needs SACK, and sack is off\n  hint: leave `rack` out, or write sack = true",
        ),
        ("max_cwnd = \"100 B\"", "flow.0.tcp: found values that do not go together; max_cwnd is 100 bytes"),
        ("duplicate_ack_threshold = 0", "it must be a whole number between 1 and 255"),
    ] {
        let message = added(&format!("tcp = {{ {value} }}"));
        assert!(message.contains(part), "{value}: {message}");
    }
    let tiny = GOOD.replacen("queue = \"50 packets\"", "mtu = 100", 1);
    assert!(errors(&tiny, &[]).to_string().contains("found an MTU of 100; TCP needs 128 bytes on the links"));
}

#[test]
fn impossible_flows_are_refused() {
    let flow = "[[flow]]\nfrom = \"mobile\"\nto = \"correspondent\"\n";
    let named = format!("name = \"a\"\n{flow}name = \"a\"\n");
    assert_eq!(
        added(&named),
        "error: scenarios/x.toml:18:8: flow.1.name: found \"a\"; no two flows share a name, and flow.0 has it \
         already\n  hint: give this one another name, or none"
    );
    for (message, part) in [
        (
            edited("\"correspondent\"", "\"corespondent\""),
            "flow.0.from: found \"corespondent\"; the nodes are \"correspondent\", \"home-agent\" and \"mobile\"\n  \
             hint: did you mean \"correspondent\"?",
        ),
        (
            edited("\"correspondent\"", "\"mobile\""),
            "flow.0.to: found \"mobile\"; a flow joins two different nodes",
        ),
        (
            edited("to = \"mobile\"", ""),
            "flow.0.to: found nothing; a flow needs its other end: to = \"mobile\"",
        ),
        (added("start = \"2 min\""), "flow.0.start: found \"2 min\"; the run ends at 120 s"),
        (added("start = \"2 s\"\nstop = \"1 s\""), "flow.0.stop: found \"1 s\"; the flow starts at 2 s"),
        (added("size = \"0 B\""), "flow.0.size: found \"0 B\"; it must be above zero"),
        (added("request = \"1 B\""), "it belongs to kind = \"request-response\" and to kind = \"video\""),
        (
            added("kind = \"paced\"\nmessage = \"1 B\""),
            "flow.0.rate: found nothing; a paced flow needs its rate",
        ),
        (
            added("kind = \"paced\"\nmessage = \"1 B\"\nrate = \"0 bit/s\""),
            "flow.0.rate: found \"0 bit/s\"; it must be above zero",
        ),
        (
            added("kind = \"request-response\""),
            "flow.0.request: found nothing; it needs the size of a request",
        ),
        (added("kind = \"request-response\"\nsize = \"1 B\""), "a request-response flow counts its requests"),
        (
            added("kind = \"on-off\"\npause = \"1 s\""),
            "flow.0.burst: found nothing; an on-off flow needs its bursts",
        ),
        (added("kind = \"on-off\"\nburst = \"1 kB\""), "flow.0.pause: found nothing"),
        (
            added("kind = \"on-off\"\nburst = \"1 kB\"\npause = \"1 s\"\nrate = \"1 kbit/s\""),
            "flow.0.rate: found \"1 kbit/s\"; a burst of `burst` bytes is written at once",
        ),
        (
            added("kind = \"on-off\"\nburst = \"1 kB\"\npause = \"1 s\"\non = \"1 s\""),
            "a burst has bytes or a time",
        ),
        (
            added("kind = \"on-off\"\nburst = \"1 kB\"\npause = \"1 s\"\nshape = 2"),
            "flow.0.shape: found 2; it is the shape of a law",
        ),
        (
            added("kind = \"on-off\"\nburst = \"1 kB\"\npause = \"1 s\"\npause_law = \"pareto\"\nshape = 1"),
            "the shape must be a number above 1",
        ),
        (added("kind = \"voice\"\nquic = \"cubic\""), "voice is carried by RTP over UDP"),
        (added("kind = \"voice\"\nsize = \"1 kB\""), "a voice flow lasts until `stop`"),
        (added("kind = \"voice\"\npayload = \"1 kB\""), "flow.0.interval: found nothing"),
        (
            added("kind = \"voice\"\npayload = \"1 MB\"\ninterval = \"1 s\""),
            "a packet has 65000 bytes at most",
        ),
        (added("kind = \"voice\"\ncodec = \"g729\"\npayload = \"1 kB\""), "a codec has its own"),
        (
            added("kind = \"voice\"\ncodec = \"opus\"\nie = 3"),
            "flow.0.bpl: found nothing; the E-model needs both",
        ),
        (added("kind = \"voice\"\nie = 96"), "flow.0.ie: found 96; it must be a number from 0 to 95"),
        (added("codec = \"g711\""), "it belongs to kind = \"voice\""),
        (added("kind = \"video\"\nsize = \"1 kB\""), "a film has a `length`"),
        (added("kind = \"video\"\nrates = []"), "it must have 1 to 16 rates"),
        (added("kind = \"video\"\nrates = [\"2 kbit/s\", \"1 kbit/s\"]"), "each above the one before"),
        (added("kind = \"video\"\nbuffer = \"7 s\""), "flow.0.buffer: found \"7 s\"; before it is played"),
        (added("segment = \"1 s\""), "it belongs to kind = \"video\""),
        (added("pause = \"1 s\""), "it belongs to kind = \"on-off\""),
        (added("kind = \"bluk\""), "hint: did you mean \"bulk\"?"),
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn mobility_is_checked() {
    for (value, part) in [
        (
            "protocol = \"proxy-mobile-ipv6\"",
            "known are \"mobile-ipv4\" and \"mobile-ipv6\"\n  hint: \"proxy-mobile-ipv6\" is not in this version yet",
        ),
        (
            "protocol = \"fast-mobile-ipv6\"",
            "known are \"mobile-ipv4\" and \"mobile-ipv6\"\n  hint: write protocol = \"mobile-ipv6\" and fast_handover = true",
        ),
        ("fast_handover = true", "it is for IPv6: write protocol = \"mobile-ipv6\""),
        (
            "protocol = \"mobile-ipv6\"\nfast_handover = 2",
            "it must be true, false or a table\n  hint: write fast_handover = true, or",
        ),
        (
            "protocol = \"mobile-ipv6\"\nfast_handover = true",
            "access links hang on routers that are nothing else\n  hint: write between = [\"router-",
        ),
        (
            "protocol = \"mobile-ipv6\"\nmovement_detection = \"eager\"\nfast_handover = true",
            "fast handovers act on what the link layer tells\n  hint: leave `movement_detection` or `fast_handover` out",
        ),
        (
            "protocol = \"mobile-ipv6\"\nfast_handover = { lifetime = \"6 s\" }",
            "bindings last a multiple of 4 s, at most 262140 s",
        ),
        (
            "protocol = \"mobile-ipv6\"\nfast_handover = { proxy_lifetime = \"1 ns\" }",
            "it must be at most 10 min, in whole milliseconds",
        ),
        ("care_of = \"colocated\"", "hint: did you mean \"co-located\"?"),
        ("routing = \"regular-ip\"", "it must be \"triangle\" or \"reverse-tunnel\""),
        ("lifetime = \"0.5 s\"", "registrations carry whole seconds, at most 65534"),
        ("advertisement_interval = \"0 s\"", "it must be above zero"),
        ("keep_old = \"forever\"", "it must be a duration, such as \"2 s\", or \"until-down\""),
        ("keep_old = 2", "mobility.keep_old: found 2"),
        ("bicast = true", "hint: write `simultaneous_bindings` and `keep_old`"),
        (
            "smooth_handoff = true",
            "hand-offs are made smooth by foreign agents\n  hint: write care_of = \"foreign-agent\"",
        ),
        (
            "smooth_handoff = true\ncare_of = \"foreign-agent\"\nreplay = \"nonces\"",
            "hint: write replay = \"timestamps\"",
        ),
        (
            "smooth_handoff = true\ncare_of = \"foreign-agent\"\nsimultaneous_bindings = true",
            "with simultaneous bindings the home agent sends to both foreign agents itself",
        ),
        ("route_optimization = \"yes\"", "it must be true or false, without quotes"),
        ("route_optimisation = true", "hint: write `route_optimization`"),
        ("home = \"lte\"", "mobility.home: found \"lte\"; the mobile node's links are"),
        ("policy = [{ to = \"10.0.0.1/8\", method = \"triangle\" }]", "hint: write \"10.0.0.0/8\""),
        ("policy = [{ to = \"10.0.0.0/33\", method = \"triangle\" }]", "it must be a node or an IPv4 prefix"),
        ("policy = [{ to = \"nobody\", method = \"triangle\" }]", "the nodes are \"correspondent\""),
        (
            "policy = [{ to = \"correspondent\" }]",
            "mobility.policy.0.method: found nothing; a rule needs its method",
        ),
        ("policy = \"none\"", "the policy is an array of rules"),
    ] {
        let message = edited("[mobility]", &format!("[mobility]\n{value}"));
        assert!(message.contains(part), "{value}: {message}");
    }
    let anchored = GOOD.replacen("[mobility]", "[mobility]\ncare_of = \"foreign-agent\"", 1).replacen(
        "queue = \"50 packets\"",
        "between = [\"home-agent\", \"mobile\"]",
        1,
    );
    assert!(
        errors(&anchored, &[])
            .to_string()
            .ends_with("hint: leave `between` out, or write \"foreign-agent-gsm\"")
    );
    let backhaul = GOOD.replacen("[mobility]", "gsm-backhaul = { delay = \"1 ms\" }\n[mobility]", 1);
    assert!(errors(&backhaul, &[]).to_string().contains("hint: give it `between`, or name it otherwise"));
    let taken = GOOD.replacen(
        "[mobility]",
        "ethernet = { preset = \"lte\", between = [\"home-agent\", \"x\"] }\n[mobility]",
        1,
    );
    assert!(
        errors(&taken, &[])
            .to_string()
            .contains("the link between correspondent and home-agent is understood under that name")
    );
}

#[test]
fn an_error_in_an_override_names_the_override() {
    assert_eq!(
        overridden("flow.tcp.window=0 B"),
        "error: --set flow.tcp.window=0 B: flow.0.tcp.window: found \"0 B\"; it must be above zero\n  hint: write \
         \"16 KiB\", for example"
    );
    assert_eq!(
        overridden("links.gsm.rate=-9.6 kbit/s"),
        "error: --set links.gsm.rate=-9.6 kbit/s: links.gsm.rate: found \"-9.6 kbit/s\"; a rate must not be \
         negative\n  hint: write \"9.6 kbit/s\""
    );
    assert!(overridden("links.gsm.rato=1").ends_with("hint: did you mean `rate`?"));
    assert!(overridden("seed").contains("found no equals sign; an override is written key=value"));
}

#[test]
fn a_file_cut_off_anywhere_is_refused_with_a_line() {
    // Up to the last key that the scenario cannot do without.
    let needed = GOOD.rfind("to = \"mobile").unwrap() + "to = \"mobile".len();
    let mut whole = 0;
    for end in 0..=needed {
        match Scenario::parse("x.toml", &GOOD[..end], &[]) {
            // A cut before a table leaves a smaller scenario.
            Ok(_) => whole += 1,
            Err(errors) => {
                assert!(!errors.0.is_empty());
                assert!(errors.0.iter().all(|error| error.line.is_some()), "{errors}");
            }
        }
    }
    assert!(whole < 20, "{whole}");
    let cut = errors("title = \"x\"\nduration = \"12", &[]).to_string();
    assert!(cut.starts_with("error: scenarios/x.toml:2:15: found the end of the file; "), "{cut}");
    assert!(cut.ends_with("hint: the file may have been cut off; compare it with its original"), "{cut}");
    assert!(errors("", &[]).to_string().contains("links: found nothing; a scenario needs at least one link"));
}

#[test]
fn a_key_given_twice_is_refused() {
    let message = edited("title", "title = \"y\"\ntitle");
    assert!(
        message.starts_with("error: scenarios/x.toml:2:1: found a key that is there already; "),
        "{message}"
    );
}

#[test]
fn what_is_no_readable_file_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let message = |path: &Path| Scenario::load(path, &[]).unwrap_err().to_string();
    assert!(message(folder).contains(
        "found a directory; it must be a scenario file\n  hint: name one of the .toml files in it"
    ));
    let missing = message(&folder.join("missing.toml"));
    assert!(missing.contains("missing.toml: found nothing; there is no such file"), "{missing}");
    let binary = std::env::temp_dir().join(format!("careof-scenario-{}.toml", std::process::id()));
    std::fs::write(&binary, b"title = \"x\"\nseed = \xff\n").unwrap();
    let message = message(&binary);
    std::fs::remove_file(&binary).unwrap();
    assert!(
        message.contains("found bytes that are not UTF-8, in line 2; a scenario is UTF-8 text"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_change_to_a_file_makes_the_parser_panic(
        at in 0..GOOD.len(),
        cut in 0_usize..12,
        insert in "[a-z0-9=\\[\\]{}\". \n_-]{0,12}",
    ) {
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{insert}{}", &GOOD[..at], &GOOD[end..]);
        if let Err(errors) = Scenario::parse("x.toml", &text, &[]) {
            prop_assert!(!errors.0.is_empty());
            let order: Vec<_> = errors.0.iter().map(|error| (error.line, error.column)).collect();
            prop_assert!(order.is_sorted());
        }
    }

    #[test]
    fn no_override_makes_the_parser_panic(text in "[a-z0-9=.\\[\\]{}\" _-]{0,30}") {
        let _ = Scenario::parse("x.toml", GOOD, &[text.clone(), format!("flow.0.tcp={text}"), format!("links.{text}")]);
    }
}

#[test]
fn programs_and_probes_are_checked_before_anything_runs() {
    let with = |keys: &str| {
        let flow = format!("[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n{keys}\n");
        errors(&format!("{GOOD}\n{flow}"), &[]).to_string()
    };
    for (keys, part) in [
        ("kind = \"command\"", "such a flow needs its program"),
        ("command = \"iperf3 -c {corespondent}\"", "found \"{corespondent}\"; in braces stand nodes"),
        ("command = \"iperf3 -c {corespondent}\"", "did you mean \"{correspondent}\"?"),
        ("command = \"echo 'half\"", "a quotation mark is missing in it"),
        ("command = []", "it must begin with the name of a program"),
        ("command = \"true\"\nsize = \"1 MB\"", "the program decides how much it sends"),
        ("server = \"iperf3 -s\"", "it belongs to kind = \"command\""),
        ("kind = \"probe\"", "a probe measures a link that joins its two nodes, and none does"),
        ("kind = \"probe\"\nlink = \"gsm\"", "no link joins the probe's two nodes"),
        ("link = \"gsm\"", "it belongs to kind = \"probe\""),
    ] {
        let message = with(keys);
        assert!(message.contains(part), "{keys}: {message}");
    }
}

#[test]
fn advertisements_closer_than_the_rfc_has_them_have_to_be_meant() {
    let said = overridden("mobility.advertisement_interval=10 ms");
    assert!(said.contains("advertisement_interval: found \"10 ms\"; RFC 5944 (section 2.3) calls"), "{said}");
    assert!(said.contains("hint: add discovery = { above_recommended_rate = true } to [mobility]"), "{said}");
    for (given, expected) in [
        ("least_interval=2 s", "it must be at most `advertisement_interval`, which is 1 s"),
        ("missed=0", "mobility.discovery.missed"),
        ("margin=2", "mobility.discovery.margin"),
        ("jitter=1 ms", "hint: write `least_interval`"),
    ] {
        let said = overridden(&format!("mobility.discovery.{given}"));
        assert!(said.contains(expected), "{given}: {said}");
    }
    let said =
        errors(GOOD, &["mobility.movement_detection=prefix", "mobility.discovery.prefix=false"]).to_string();
    assert!(said.contains("goes by the prefix that is told"), "{said}");
}

#[test]
fn times_of_unreachability_detection_are_of_that_detection_and_fit_their_fields() {
    let said = overridden("mobility.discovery.reachable_time=9 s");
    assert!(said.contains("it is a time of movement_detection = \"unreachable-router\""), "{said}");
    let asked = |given: &str| {
        let detection = "mobility.movement_detection=unreachable-router";
        errors(GOOD, &[detection, &format!("mobility.discovery.{given}")]).to_string()
    };
    for (given, expected) in [
        ("router_lifetime=500 ms", "it must be 1 s to 9000 s, in whole seconds"),
        ("router_lifetime=1500 ms", "in whole seconds"),
        ("reachable_time=2 h", "it must be 1 ms to 3600 s, in whole milliseconds"),
        ("retrans_timer=1500 us", "in whole milliseconds"),
        ("delay_first_probe=0 s", "it must be above zero"),
        ("delay_first_probe_time=1 s", "hint: write `delay_first_probe`"),
    ] {
        let said = asked(given);
        assert!(said.contains(expected), "{given}: {said}");
    }
    let many = ["mobility.movement_detection=unreachable-router", "mobility.nodes=2"];
    let said = errors(GOOD, &many).to_string();
    assert!(said.contains("with `nodes` neighbors are known for good"), "{said}");
}

#[test]
fn parameters_of_dhcp_without_dhcp_or_beyond_its_fields_are_refused() {
    let said = overridden("mobility.dhcp.probes=2");
    assert!(
        said.contains("mobility.dhcp: found a table; no address is asked for with another `care_of`"),
        "{said}"
    );
    assert!(said.contains("hint: write care_of = \"dhcp\" in [mobility]"), "{said}");
    let asked = |others: &[&str]| errors(GOOD, &[&["mobility.care_of=dhcp"], others].concat()).to_string();
    for (given, expected) in [
        ("lease=1500 ms", "leases are whole seconds\n  hint: write \"2 s\""),
        ("probes=0", "mobility.dhcp.probes"),
        ("server_check=0 s", "it must be above zero"),
        ("client_check=before", "hint: did you mean \"before-use\"?"),
        ("lease_time=9 s", "hint: write `lease`"),
    ] {
        let said = asked(&[&format!("mobility.dhcp.{given}")]);
        assert!(said.contains(expected), "{given}: {said}");
    }
    let said = asked(&["mobility.dhcp.client_check=none", "mobility.dhcp.probes=2"]);
    assert!(said.contains("a client that does not check sends no probes"), "{said}");
    let said = asked(&["mobility.nodes=2"]);
    assert!(said.contains("with `nodes` the stations are foreign agents"), "{said}");
}
