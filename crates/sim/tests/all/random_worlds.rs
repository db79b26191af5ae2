//! Worlds put together by chance: whatever the scenario, nothing panics, nothing is lost in silence.

use std::fmt::Write as _;

use crate::common::captured_at;
use careof_base::{Instant, RandomStream};
use careof_metrics::HandoverSummary;
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

const WORLDS: u64 = 250;

/// Names the first world; `make hunt` sets it.
const FIRST_WORLD: &str = "CAREOF_FIRST_WORLD";

/// Worlds outside the first ones in which something was found.
const FOUND: [u64; 0] = [];

/// The numbers of `count` worlds in a row, and of those in which something was found: the same in every run, unless
/// [`FIRST_WORLD`] says where to begin.
pub(crate) fn worlds(count: u64, found: &[u64]) -> impl Iterator<Item = u64> {
    let first = std::env::var(FIRST_WORLD).map_or(0, |first| {
        first
            .parse::<u32>()
            .unwrap_or_else(|_| panic!("{FIRST_WORLD} = {first:?}: must be a number below 2^32"))
    });
    (u64::from(first)..).take(count as usize).chain(found.iter().copied())
}

pub(crate) fn pick<'a>(random: &mut RandomStream, choices: &[&'a str]) -> &'a str {
    choices[random.below(choices.len() as u64) as usize]
}

fn links(random: &mut RandomStream, text: &mut String) {
    for link in ["a", "b", "c"] {
        let rate = pick(random, &["9.6 kbit/s", "100 kbit/s", "2 Mbit/s", "8 Mbit/s"]);
        let delay = pick(random, &["1 ms", "20 ms", "300 ms"]);
        let mtu = pick(random, &["128", "300", "576", "1000", "1500", "9000", "65000"]);
        let loss = pick(random, &["0.0", "0.01", "0.2"]);
        let jitter = pick(
            random,
            &[
                "\"0 ms\"",
                "{ kind = \"uniform\", spread = \"1 ms\", reorder = true }",
                "{ kind = \"normal\", deviation = \"2 ms\", reorder = true }",
            ],
        );
        let queue = pick(
            random,
            &[
                "\"1 packets\"",
                "\"20 packets\"",
                "{ limit = \"100 packets\", discipline = \"codel\" }",
                "{ limit = \"60 packets\", discipline = \"red\" }",
            ],
        );
        let _ = writeln!(
            text,
            "{link} = {{ rate = \"{rate}\", delay = \"{delay}\", mtu = \"{mtu} B\", loss = {loss}, jitter = {jitter}, queue = {queue} }}"
        );
    }
}

fn mobility(random: &mut RandomStream, text: &mut String) {
    let care_of = pick(random, &["co-located", "dhcp", "foreign-agent"]);
    let detection = match care_of {
        "co-located" | "dhcp" => "link-trigger",
        _ => pick(random, &["link-trigger", "missed-advertisements", "lifetime", "prefix", "eager"]),
    };
    let _ = writeln!(text, "[mobility]\nprotocol = \"mobile-ipv4\"");
    for (key, value) in [
        ("care_of", care_of),
        ("movement_detection", detection),
        ("routing", pick(random, &["triangle", "reverse-tunnel"])),
        ("encapsulation", pick(random, &["ip-in-ip", "minimal", "gre"])),
        ("lifetime", pick(random, &["1 s", "3 s", "600 s", "infinity"])),
        ("replay", pick(random, &["timestamps", "nonces"])),
        ("advertisement_interval", pick(random, &["1 s", "100 ms"])),
    ] {
        let _ = writeln!(text, "{key} = \"{value}\"");
    }
    let _ = writeln!(
        text,
        "discovery = {{ above_recommended_rate = true, missed = {}, margin = {}, solicitation = {}, on_link_up = {} }}",
        pick(random, &["1", "3"]),
        pick(random, &["0", "0.5"]),
        pick(random, &["true", "false"]),
        pick(random, &["true", "false"]),
    );
    let _ = writeln!(text, "simultaneous_bindings = {}", pick(random, &["true", "false"]));
    text.push_str(pick(random, &["", "home = \"a\"\n", "home = \"b\"\n"]));
    if care_of != "foreign-agent" && random.below(3) == 0 {
        text.push_str("policy = [{ to = \"correspondent\", method = \"regular-ip\" }]\n");
    }
    if care_of == "dhcp" {
        let _ = writeln!(text, "[mobility.dhcp]");
        for (key, value) in [
            ("client_check", pick(random, &["none", "background", "before-use"])),
            ("server_check", pick(random, &["none", "200 ms"])),
            ("start_delay", pick(random, &["0 s", "300 ms", "rfc-2131"])),
            ("lease", pick(random, &["2 s", "12 h", "infinity"])),
            ("processing", pick(random, &["0 s", "20 ms"])),
        ] {
            let _ = writeln!(text, "{key} = \"{value}\"");
        }
    }
}

fn handovers(random: &mut RandomStream, text: &mut String) {
    let (mut current, mut at) = ("a", 3_000);
    for _ in 0..random.below(5) {
        let others: Vec<&str> = ["a", "b", "c"].into_iter().filter(|link| *link != current).collect();
        let to = pick(random, &others);
        let queued = pick(random, &["drain-late", "drop", "drop-with-icmp"]);
        let _ = writeln!(text, "[[handover]]\nat = \"{at} ms\"\nfrom = \"{current}\"\nto = \"{to}\"");
        let _ = writeln!(text, "queued = \"{queued}\"");
        let mut interruption = 0;
        if random.below(2) == 0 {
            interruption = random.below(800);
            let _ = writeln!(text, "style = \"break-before-make\"\ninterruption = \"{interruption} ms\"");
        }
        at += interruption + 1 + random.below(2_500);
        current = to;
        if at > 11_000 {
            break;
        }
    }
}

fn flows(random: &mut RandomStream, text: &mut String) {
    for flow in 0..=random.below(3) {
        let (from, to) = match random.below(3) {
            0 => ("correspondent", "mobile"),
            1 => ("mobile", "correspondent"),
            _ => ("mobile", "home-agent"),
        };
        let kind = pick(
            random,
            &[
                "kind = \"bulk\"",
                "kind = \"bulk\"\nsize = \"50 kB\"",
                "kind = \"bulk\"\nstop = \"5 s\"",
                "kind = \"request-response\"\nrequest = \"3 kB\"\nresponse = \"20 kB\"\nthink = \"100 ms\"",
                "kind = \"paced\"\nrate = \"64 kbit/s\"\nmessage = \"160 B\"",
                "kind = \"voice\"",
                "kind = \"video\"\nsegment = \"1 s\"\nrates = [\"20 kbit/s\", \"200 kbit/s\", \"2 Mbit/s\"]\nbuffer = \"4 s\"",
                "kind = \"video\"\nsegment = \"500 ms\"\nadaptation = \"buffer\"\nlength = \"8 s\"",
                "kind = \"voice\"\nstop = \"9 s\"\npayload = \"700 B\"\ninterval = \"30 ms\"\njitter_buffer = \"5 ms\"",
                "kind = \"on-off\"\nburst = \"9 kB\"\npause = \"500 ms\"\nburst_law = \"pareto\"\npause_law = \"exponential\"",
                "kind = \"on-off\"\non = \"1 s\"\nrate = \"64 kbit/s\"\nmessage = \"160 B\"\npause = \"1 s\"\nsize = \"40 kB\"",
            ],
        );
        let profile = pick(random, &["tahoe", "reno", "newreno", "sack", "linux-2.0"]);
        let discovery = pick(random, &["true", "false"]);
        let _ = writeln!(text, "[[flow]]\nname = \"f{flow}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{kind}");
        if kind.contains("voice") {
            continue;
        }
        let _ = writeln!(text, "tcp = {{ profile = \"{profile}\", pmtu_discovery = {discovery} }}");
    }
}

/// In worlds with a chance of it, assists: more often where a relay can be.
fn assists(random: &mut RandomStream, text: &mut String) {
    let at_agents = text.contains("care_of = \"foreign-agent\"");
    // With a rule for another way it depends on where the mobile node is.
    let both_ways = text.contains("routing = \"reverse-tunnel\"") && !text.contains("policy");
    let assist = match random.below(12) {
        0 | 1 => "use = \"default\"",
        2 => "use = \"replay\"\nreplay = { bytes = \"20 kB\", age = \"2 s\" }",
        3 => "use = \"replay\"\nreplay = { keep = \"newest\", packets = 5, rest = \"burst\" }",
        4 => "use = \"replay\"\nreplay = { rest = \"drop\", duplicates = \"pass\", patience = 3 }",
        5 if at_agents => {
            "use = \"replay\"\nreplay = { at = [\"home-agent\", \"foreign-agent\", \"mobile\"] }"
        }
        6 if both_ways => "use = \"split\"",
        7 if both_ways => "use = \"split\"\nsplit = { buffer = \"3 kB\", tcp = \"reno\" }",
        8 if both_ways => "use = \"split+replay\"\nsplit = { tcp = { pmtu_discovery = false } }",
        9 if both_ways => "use = \"split+lcd-kick+window-clamp\"\nsplit = { tcp = \"linux\" }",
        _ => return,
    };
    let _ = writeln!(text, "[assist]\n{assist}");
}

/// In half of the others senders that are told, some beside an assist on the way.
fn told_senders(random: &mut RandomStream, text: &mut String) {
    if text.contains("[assist]") {
        return;
    }
    let at_agents = text.contains("care_of = \"foreign-agent\"");
    let assist = match random.below(14) {
        0 => "use = \"rto-reset\"",
        1 => "use = \"rto-reset+window-clamp\"\nrto-reset = { slow_start = true }",
        2 => "use = \"rto-reset+replay\"\nrto-reset = { by = \"option\" }",
        3 => "use = \"tcp-cm+rto-fast-decrease\"",
        4 => "use = \"tcp-cm\"\ntcp-cm = { estimator = \"delivery-rate\", resend = false, suspend = false }",
        5 => "use = \"mobile-tcp+replay\"",
        6 => "use = \"tcp-ho\"",
        7 if at_agents => "use = \"ebsn\"",
        8 if at_agents => "use = \"ebsn+tcp-cm+lcd-kick\"",
        _ => return,
    };
    let _ = writeln!(text, "[assist]\n{assist}");
}

fn scenario(world: u64) -> String {
    let random = &mut RandomStream::new(world, 0, "random world");
    let mut text = format!("duration = \"{} s\"\nseed = {world}\n[links]\n", 12 + random.below(10));
    links(random, &mut text);
    mobility(random, &mut text);
    handovers(random, &mut text);
    flows(random, &mut text);
    assists(random, &mut text);
    told_senders(random, &mut text);
    text
}

/// The same, with links that share a medium: those between fixed nodes, and perhaps one of the mobile node's.
fn on_a_medium(world: u64) -> String {
    let random = &mut RandomStream::new(world, 0, "random medium");
    let text = scenario(world);
    let queue = pick(random, &["\"3 packets\"", "\"100 packets\"", "{ discipline = \"codel\" }"]);
    let (rate, delay) = (pick(random, &["1 Mbit/s", "10 Mbit/s"]), pick(random, &["0 us", "2 us", "20 us"]));
    let medium = format!("[media.lan]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = {queue}\n[links]\n");
    let mut links = medium;
    let mtu = |random: &mut RandomStream| pick(random, &["300", "1000", "1450", "1500"]).to_owned();
    let _ = writeln!(links, "ethernet = {{ medium = \"lan\", mtu = \"{} B\" }}", mtu(random));
    let shared = pick(random, &["none", "a", "b", "c"]);
    for link in ["a", "b", "c"] {
        let is_home = text.contains(&format!("home = \"{link}\""));
        if text.contains("care_of = \"foreign-agent\"") && !is_home && random.below(3) > 0 {
            let _ = writeln!(links, "{link}-backhaul = {{ medium = \"lan\", mtu = \"{} B\" }}", mtu(random));
        }
    }
    let text = text.replacen("[links]\n", &links, 1);
    let line = |line: &str| match line.split_once(" = ") {
        Some((link, _)) if link == shared => format!("{link} = {{ medium = \"lan\" }}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// A world whose correspondents run careof and whose foreign agents help each other, as far as it has them.
fn optimized(world: u64, text: &str) -> String {
    let mut keys = "route_optimization = true\n".to_owned();
    let single = text.contains("simultaneous_bindings = false");
    if single && text.contains("care_of = \"foreign-agent\"") && text.contains("replay = \"timestamps\"") {
        keys.push_str("smooth_handoff = true\n");
    }
    // Without an assist, of which many act at the home agent; in one world of three one that does not.
    let text = text.split("[assist]").next().unwrap_or_default();
    let assist = match text.contains("care_of = \"foreign-agent\"") {
        true if world.is_multiple_of(3) => "[assist]\nuse = \"snoop\"\n",
        _ => "",
    };
    format!("{}{assist}", text.replacen("protocol = \"mobile-ipv4\"\n", &keys, 1))
}

/// Runs a world; returns how often senders were told something.
fn check(world: u64, text: &str) -> u64 {
    let parsed = Scenario::parse("world.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let directory = world.is_multiple_of(2).then(|| tempfile::tempdir().unwrap());
    let captured = directory.as_ref().map(|at| captured_at(at.path(), &parsed, &CaptureNodes::FlowEnds));
    let observation = Observation { trace: world.is_multiple_of(3), ..captured.unwrap_or_default() };
    let mut simulation = Simulation::new(parsed, "world.toml", 0, observation)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    simulation.advance(Instant::MAX).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let summary = simulation.finish().unwrap();
    let unbalanced: Vec<_> = summary.conservation.iter().filter(|(_, n)| **n != 0).collect();
    assert!(unbalanced.is_empty(), "{unbalanced:?}\n{text}");
    let sane = |h: &HandoverSummary| h.ready_at.is_none_or(|ready| h.at <= ready && ready <= h.until);
    assert!(summary.handovers.iter().all(sane), "{:?}\n{text}", summary.handovers);
    summary.flows.iter().map(|flow| flow.advice_taken).sum()
}

#[test]
fn no_world_panics_or_loses_a_packet_in_silence() {
    let told: u64 = worlds(WORLDS, &FOUND).map(|world| check(world, &scenario(world))).sum();
    assert!(told > 100, "senders were told of {told} things in all");
}

#[test]
fn no_world_on_a_medium_panics_or_loses_a_packet_in_silence() {
    for world in worlds(WORLDS, &FOUND) {
        check(world, &on_a_medium(world));
    }
}

#[test]
fn no_world_that_filters_icmp_panics_or_loses_a_packet_in_silence() {
    const ASSIST: &str = "[assist]\nuse = \"mss-clamp+black-hole\"\nmss-clamp = { at = \"home-agent+mobile\", mtu = 300 }\n\
        black-hole = { at = \"home-agent+mobile\", repeats = 1, lifetime = \"3 s\" }\n";
    for world in worlds(WORLDS / 2, &FOUND) {
        let text = scenario(world).replace(", queue = ", ", icmp = \"filtered\", queue = ");
        let assist = if text.contains("[assist]") { "" } else { ASSIST };
        check(world, &format!("{text}{assist}"));
    }
}

#[test]
fn no_world_with_tunnels_from_correspondents_and_previous_agents_panics_or_loses_a_packet_in_silence() {
    for world in worlds(WORLDS, &FOUND) {
        check(world, &optimized(world, &scenario(world)));
        if world.is_multiple_of(2) {
            check(world, &optimized(world, &on_a_medium(world)));
        }
    }
}
