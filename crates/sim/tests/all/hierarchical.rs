//! Hierarchical Mobile IPv6: whole worlds.

use std::time::Duration;

use crate::common::{captured_at, finish};
use crate::random_worlds::{pick, worlds};
use careof_base::{Instant, RandomStream};
use careof_metrics::{HandoverSummary, Summary};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const HMIPV6: &str = include_str!("../../../../scenarios/ipv6/hmipv6.toml");

fn parsed(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_text(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(parsed(text, overrides), "test.toml", 0, observation).unwrap())
}

/// The moves sooner after each other than in the file: within the west, to the east, and within that.
const SHORT: [&str; 4] = ["duration=17 s", "handover.0.at=5 s", "handover.1.at=9 s", "handover.2.at=13 s"];

fn run(overrides: &[&str]) -> (Summary, Columns) {
    run_text(HMIPV6, &[&SHORT, overrides].concat())
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

fn seconds(events: &Columns, row: usize) -> f64 {
    events.by_name("time_ns").unwrap().number(row).unwrap_or_default() as f64 / 1e9
}

/// When a node sent messages of this name, or when they reached it, s.
fn messages(events: &Columns, kind: &str, node: &str, message: &str) -> Vec<f64> {
    let is_one = |row: &usize| {
        text(events, "kind", *row) == kind
            && text(events, "node", *row) == node
            && text(events, "message", *row) == message
    };
    (0..events.rows()).filter(is_one).map(|row| seconds(events, row)).collect()
}

fn within(times: &[f64], from: f64, to: f64) -> usize {
    times.iter().filter(|time| (from..to).contains(*time)).count()
}

/// What happened to bindings at a node, with the time, s.
fn bindings(events: &Columns, node: &str) -> Vec<(f64, String)> {
    let rows = (0..events.rows())
        .filter(|row| text(events, "kind", *row) == "binding" && text(events, "node", *row) == node);
    rows.map(|row| {
        let what = format!("{} {}", text(events, "cause", row), text(events, "detail", row));
        (seconds(events, row), what)
    })
    .collect()
}

/// Everything but packets, for the message of a test that fails.
fn story(events: &Columns) -> String {
    let is_told = |row: &usize| !matches!(text(events, "kind", *row), kind if kind.starts_with("packet") || kind.contains("data") || kind.contains("state"));
    let lines = (0..events.rows()).filter(is_told).map(|row| {
        let columns =
            ["kind", "node", "link", "message", "cause", "detail"].map(|name| text(events, name, row));
        format!("{:.4} {}", seconds(events, row), columns.join(" | "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// From the new link being up to packets taking the new path.
fn latency(handover: &HandoverSummary) -> Duration {
    let ready = handover.ready_at.unwrap_or_else(|| panic!("the handover to {} was never over", handover.to));
    ready - (handover.at + Duration::from_millis(100))
}

#[test]
fn a_move_within_a_domain_is_over_after_a_round_trip_to_the_anchor_point_and_its_home_agent_hears_nothing() {
    let (summary, events) = run(&["assist=none"]);
    let [within_west, between, within_east] = &summary.handovers[..] else { panic!() };
    let heard = messages(&events, "message-received", "home-agent", "BindingUpdate");
    assert_eq!(within(&heard, 5.0, 9.0), 0, "{}", story(&events));
    assert_eq!(within(&heard, 9.0, 13.0), 1);
    assert_eq!(within(&heard, 13.0, 17.0), 0);
    assert!(bindings(&events, "map-west").len() >= 3, "{}", story(&events));
    for moved in [within_west, within_east] {
        // The router answers a solicitation within 100 ms; then a round trip of LTE and 2 ms.
        assert!(latency(moved) < Duration::from_millis(220), "{:?}\n{}", latency(moved), story(&events));
    }
    // To the other domain: the same, and then a round trip to the home agent 67 ms behind the anchor point.
    assert!(latency(between) > Duration::from_millis(150), "{:?}", latency(between));
    assert!(latency(between) < Duration::from_millis(420), "{:?}", latency(between));
    for flow in &summary.flows {
        assert!(flow.bytes_delivered > 3_000_000, "{} of {}", flow.bytes_delivered, flow.name);
    }
    let mobility = summary.mobility.as_ref().unwrap();
    assert_eq!(mobility.discarded.values().sum::<u64>(), 0, "{:?}\n{}", mobility.discarded, story(&events));
}

/// Packets of data that a link delivered in a span of time, s.
fn delivered(events: &Columns, link: &str, from: f64, to: f64) -> usize {
    let sizes = events.by_name("size_bytes").unwrap();
    let is_one = |row: &usize| {
        text(events, "kind", *row) == "packet-delivered"
            && text(events, "link", *row) == link
            && sizes.number(*row).is_some_and(|size| size > 1_000)
            && (from..to).contains(&seconds(events, *row))
    };
    (0..events.rows()).filter(is_one).count()
}

#[test]
fn the_anchor_point_of_before_sends_packets_on_until_the_home_agent_knows_better() {
    let after = |more: &[&str]| {
        let (summary, events) = run(&[&["assist=none"], more].concat());
        let heard = messages(&events, "message-received", "home-agent", "BindingUpdate");
        let told = heard.into_iter().find(|at| (9.0..13.0).contains(at)).unwrap();
        assert!(summary.handovers[1].ready_at.is_some());
        // What the home agent sends from then on takes longer than this.
        (
            delivered(&events, "c.down", 9.1, told + 0.06),
            messages(&events, "message-received", "map-west", "BindingUpdate"),
        )
    };
    let (sent_on, asked) = after(&[]);
    assert_eq!(within(&asked, 9.0, 10.0), 1);
    let (without, asked) = after(&["mobility.map_forwarding=off"]);
    assert_eq!((within(&asked, 9.0, 10.0), without), (0, 0));
    assert!(sent_on > 5, "{sent_on}");
}

#[test]
fn with_route_optimisation_correspondents_know_the_regional_address_and_hear_nothing_within_a_domain() {
    let (summary, events) = run(&["assist=none", "mobility.route_optimization=true"]);
    let heard = messages(&events, "message-received", "correspondent", "BindingUpdate");
    for (from, to, times) in [(0.0, 5.0, 1), (5.0, 9.0, 0), (9.0, 13.0, 1), (13.0, 17.0, 0)] {
        assert_eq!(within(&heard, from, to), times, "{heard:?}");
    }
    // Packets have extension headers in the tunnel to the anchor point, and do not see the home agent.
    let home = summary.links.iter().find(|link| link.name == "core-home.down").unwrap();
    let flows: u64 = summary.flows.iter().map(|flow| flow.bytes_delivered).sum();
    assert!(flows > 50 * home.delivered_bytes, "{flows} and {}", home.delivered_bytes);
    assert!(summary.handovers.iter().all(|handover| handover.ready_at.is_some()));
    assert_eq!(summary.mobility.as_ref().unwrap().discarded.values().sum::<u64>(), 0, "{}", story(&events));
}

#[test]
fn packets_leave_room_for_both_tunnels_and_find_their_size_where_they_do_not() {
    for (more, whole) in
        [(&["assist=none"][..], true), (&["assist=none", "mobility.leave_room=false"], false)]
    {
        let (summary, _) = run(&[more, &["duration=15 s"]].concat());
        let needed = summary.packets.dropped.get("fragmentation-needed").copied().unwrap_or_default();
        assert_eq!(needed == 0, whole, "{more:?}: {needed}");
        for flow in &summary.flows {
            assert!(flow.bytes_delivered > 2_000_000, "{more:?}: {} of {}", flow.bytes_delivered, flow.name);
        }
    }
}

/// RFC 2473 section 7.1: where links take no more than every link of IPv6 does, the entries of tunnels cut what senders cannot make smaller.
#[test]
fn over_the_narrowest_links_tunnels_within_tunnels_are_cut_and_put_together() {
    for link in ["a", "core-west", "west-a"] {
        let narrow = format!("links.{link}.mtu=1280 B");
        let (summary, _) = run(&[
            "assist=none",
            "mobility.leave_room=false",
            "duration=5 s",
            &narrow,
            "handover.0.at=4 s",
            "handover.1.at=4.3 s",
            "handover.2.at=4.6 s",
        ]);
        assert!(summary.packets.fragmented > 100, "{link}: {}", summary.packets.fragmented);
        // The first flight is lost, and what follows it grows by a segment a round trip.
        for flow in &summary.flows {
            assert!(flow.bytes_delivered > 40_000, "{link}: {} of {}", flow.bytes_delivered, flow.name);
        }
    }
}

/// The anchor point of the west hangs beside the way, and nothing comes through to it.
fn lost(text: &str) -> String {
    text.replace("between = [\"core\", \"map-west\"]", "between = [\"core\", \"hub\"]")
        .replace("between = [\"map-west\", \"router-a\"]", "between = [\"hub\", \"router-a\"]")
        .replace("between = [\"map-west\", \"router-b\"]", "between = [\"hub\", \"router-b\"]")
        .replace(
            "\na = {",
            "\nside = { preset = \"ethernet-1g\", loss = \"100 %\", between = [\"hub\", \"map-west\"] }\na = {",
        )
}

#[test]
fn an_anchor_point_that_does_not_answer_is_left_for_plain_mobile_ipv6() {
    let (summary, events) = run_text(
        &lost(HMIPV6),
        &["assist=none", "duration=22 s", "handover.0.at=12 s", "handover.1.at=15 s", "handover.2.at=18 s"],
    );
    let asked = messages(&events, "message-sent", "mobile", "BindingUpdate");
    assert!(asked.len() > 3);
    // The home agent knows the addresses of the links, and in the other domain the regional one.
    let bound = bindings(&events, "home-agent");
    let at = |from: f64, to: f64, address: &str| {
        bound.iter().any(|(time, what)| (from..to).contains(time) && what.contains(&format!("at {address}")))
    };
    assert!(at(0.0, 12.0, "2001:db8:0:a:0:ff:fe00:a02"), "{bound:?}");
    assert!(at(15.0, 18.0, "2001:db8:0:10::2"), "{bound:?}\n{}", story(&events));
    assert!(summary.flows.iter().all(|flow| flow.bytes_delivered > 1_000_000));
}

/// Two mobile nodes, one of which stays where it is.
fn two(text: &str) -> String {
    text.replace("[nodes]\n", "[nodes]\nmobile = { role = \"mobile\", start = \"a\" }\nother = { role = \"mobile\", start = \"oa\" }\n")
        .replace("start = \"a\"\nlifetime", "lifetime")
        .replace("\na = {", "\noa = { preset = \"lte\", between = [\"router-a\", \"other\"] }\nob = { preset = \"lte\", between = [\"router-b\", \"other\"] }\na = {")
        .replacen(
            "[[flow]]",
            "[[handover]]\nat = \"14 s\"\nfrom = \"oa\"\nto = \"ob\"\n[[flow]]\nname = \"third\"\nfrom = \"correspondent\"\nto = \"other\"\nkind = \"bulk\"\n\n[[flow]]",
            1,
        )
}

#[test]
fn several_mobile_nodes_have_regional_addresses_of_their_own() {
    let (summary, events) = run_text(&two(HMIPV6), &[&SHORT[..], &["assist=default"]].concat());
    assert_eq!(summary.handovers.len(), 4);
    assert!(summary.handovers.iter().all(|handover| handover.ready_at.is_some()), "{}", story(&events));
    let mut regional: Vec<String> = bindings(&events, "map-west")
        .into_iter()
        .filter_map(|(_, what)| {
            what.strip_prefix("created ").map(|what| what.split(' ').next().unwrap().to_owned())
        })
        .collect();
    regional.sort();
    regional.dedup();
    assert_eq!(regional.len(), 2, "{regional:?}");
    assert!(summary.flows.iter().all(|flow| flow.bytes_delivered > 1_000_000));
}

#[test]
fn the_default_assists_work_at_the_anchor_point_when_the_node_moves_within_its_domain() {
    let stalls = |assist: &str| {
        let (summary, _) = run(&[assist]);
        let of = |n: usize, name: &str| {
            let flow = summary.handovers[n].flows.iter().find(|flow| flow.name == name).unwrap();
            (flow.stall_after.unwrap_or_default(), flow.packets_replayed)
        };
        [0, 1, 2].map(|n| of(n, "download"))
    };
    let (without, with) = (stalls("assist=none"), stalls("assist=default"));
    for n in [0, 1, 2] {
        assert_eq!(without[n].1, 0);
        assert!(with[n].1 > 5, "{n}: {with:?}");
        assert!(with[n].0 < without[n].0, "{n}: {with:?} and {without:?}");
    }
}

#[test]
fn the_same_run_gives_the_same_packets() {
    let digest = |assist: &str| run(&[assist, "mobility.route_optimization=true"]).0.digest;
    for assist in ["assist=none", "assist=default"] {
        assert_eq!(digest(assist), digest(assist), "{assist}");
    }
}

/// RFC 6069, by way of the anchor point: it says to a sender that is timing out that there was no path, and once more when there is one.
#[test]
fn a_sender_is_told_by_the_anchor_point_that_a_timeout_was_none_of_congestion() {
    let run = |assist: &str| {
        run(&[
            assist,
            "handover.0.interruption=2 s",
            "duration=9 s",
            "handover.1.at=8.5 s",
            "handover.2.at=8.8 s",
        ])
    };
    let (_, events) = run("assist=none");
    assert_eq!(messages(&events, "message-sent", "map-west", "DestinationUnreachable").len(), 0);
    let (summary, events) = run("assist=lcd-kick");
    let told = messages(&events, "message-sent", "map-west", "DestinationUnreachable");
    let moved = bindings(&events, "map-west").into_iter().find(|(at, _)| *at > 7.0).unwrap().0;
    assert!(within(&told, 5.5, 7.0) > 0, "{told:?}");
    assert!(within(&told, moved, moved + 0.02) > 1, "{told:?} and {moved}");
    let heard = messages(&events, "message-received", "correspondent", "DestinationUnreachable");
    assert!(within(&heard, moved, moved + 0.04) > 1, "{heard:?}");
    assert!(summary.flows.iter().all(|flow| flow.unreachables_injected > 0));
}

/// The scenario with links, moves, flows and assists by chance, and perhaps an anchor point above both domains.
fn by_chance(world: u64) -> String {
    let random = &mut RandomStream::new(world, 0, "random hierarchy");
    let mut text =
        HMIPV6.split("\n[[handover]]").next().unwrap().replace("60 s\"\n\n[nodes]", "9 s\"\n\n[nodes]");
    text = text.replacen("seed = ", "", 1).replacen("duration", &format!("seed = {world}\nduration"), 1);
    for cell in ["a", "b", "c", "d"] {
        let rate = pick(random, &["100 kbit/s", "2 Mbit/s", "8 Mbit/s"]);
        let (mtu, loss) =
            (pick(random, &["1280", "1340", "1500", "9000"]), pick(random, &["0.0", "0.01", "0.2"]));
        let queue = pick(random, &["2 packets", "100 packets"]);
        let cell_of = format!("\n{cell} = {{ preset = \"lte\",");
        let link = format!(
            "\n{cell} = {{ rate = \"{rate}\", delay = \"10 ms\", mtu = \"{mtu} B\", loss = {loss}, queue = \"{queue}\","
        );
        assert!(text.contains(&cell_of));
        text = text.replacen(&cell_of, &link, 1);
    }
    let narrow = pick(random, &["1280 B", "1400 B", "1500 B"]);
    text = text.replacen(
        "delay = \"5 ms\", between = [\"core\", \"map-west\"]",
        &format!("mtu = \"{narrow}\", between = [\"core\", \"map-west\"]"),
        1,
    );
    if random.below(2) == 0 {
        let top =
            "\n[nodes]\ntop = { role = \"map\", domain = [\"router-b\", \"router-c\"], preference = 12 }";
        text = text.replacen("\n[nodes]", top, 1);
        text = text.replacen(
            "\n[links]",
            "\n[links]\nto-top = { preset = \"ethernet-1g\", between = [\"core\", \"top\"] }",
            1,
        );
    }
    let keys = [
        ("map_selection", pick(random, &["\"furthest\"", "\"highest-preference\"", "\"nearest\""])),
        ("map_forwarding", pick(random, &["\"off\"", "\"4 s\"", "\"60 s\""])),
        ("route_optimization", pick(random, &["true", "false"])),
        ("leave_room", pick(random, &["true", "false"])),
        ("lifetime", pick(random, &["\"8 s\"", "\"300 s\"", "\"infinity\""])),
        ("duplicate_address_detection", pick(random, &["\"optimistic\"", "\"full\"", "\"none\""])),
        (
            "movement_detection",
            pick(
                random,
                &["\"link-trigger\"", "\"missed-advertisements\"", "\"eager\"", "\"unreachable-router\""],
            ),
        ),
    ];
    let without: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("map_") && !line.starts_with("lifetime")).collect();
    text = without.join("\n");
    for (key, value) in keys {
        text.push_str(&format!("\n{key} = {value}"));
    }
    let (mut at, mut here) = (1_500, "a");
    while at < 7_000 {
        let others: Vec<&str> = ["a", "b", "c", "d"].into_iter().filter(|cell| *cell != here).collect();
        let to = pick(random, &others);
        let queued = pick(random, &["drain-late", "drop", "drop-with-icmp"]);
        let gap = random.below(2) * random.below(900);
        let style = if gap > 0 {
            format!("style = \"break-before-make\"\ninterruption = \"{gap} ms\"")
        } else {
            pick(
                random,
                &["style = \"make-before-break\"", "style = \"make-before-break\"\noverlap = \"300 ms\""],
            )
            .to_owned()
        };
        text.push_str(&format!("\n[[handover]]\nat = \"{at} ms\"\nfrom = \"{here}\"\nto = \"{to}\"\nqueued = \"{queued}\"\n{style}"));
        (at, here) = (at + gap + 400 + random.below(3_000), to);
    }
    for flow in 0..=random.below(2) {
        let (from, to) =
            if random.below(2) == 0 { ("correspondent", "mobile") } else { ("mobile", "correspondent") };
        text.push_str(&format!(
            "\n[[flow]]\nname = \"f{flow}\"\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"bulk\""
        ));
    }
    let assist =
        pick(random, &["none", "default", "default", "replay+lcd-kick", "tcp-cm", "mss-clamp", "snoop"]);
    if assist != "snoop" {
        text.push_str(&format!("\n[assist]\nuse = \"{assist}\"\n"));
    }
    text
}

#[test]
fn no_hierarchy_put_together_by_chance_panics_or_loses_a_packet_in_silence() {
    let mut anchored = 0;
    for world in worlds(60, &[]) {
        let text = by_chance(world);
        let parsed =
            Scenario::parse("world.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let directory = world.is_multiple_of(4).then(|| tempfile::tempdir().unwrap());
        let captured = directory.as_ref().map(|at| captured_at(at.path(), &parsed, &CaptureNodes::All));
        let observation = Observation { trace: world.is_multiple_of(3), ..captured.unwrap_or_default() };
        let mut simulation = Simulation::new(parsed, "world.toml", 0, observation)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        simulation.advance(Instant::MAX).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let summary = simulation.finish().unwrap();
        let unbalanced: Vec<_> = summary.conservation.iter().filter(|(_, n)| **n != 0).collect();
        assert!(unbalanced.is_empty(), "{unbalanced:?}\n{text}");
        anchored += u64::from(summary.handovers.iter().any(|handover| handover.ready_at.is_some()));
    }
    assert!(anchored > 40, "{anchored}");
}
