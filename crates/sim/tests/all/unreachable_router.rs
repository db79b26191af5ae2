//! Mobile nodes that find out by neighbor unreachability detection that their router is gone.

use std::fmt::Write;
use std::time::Duration;

use crate::common::finish;
use careof_base::RandomStream;
use careof_metrics::Summary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// The link called Wi-Fi dies at 20 s, and nobody is told.
const SILENT: &str = r#"
duration = "120 s"
[links]
wifi = { rate = "2 Mbit/s", delay = "5 ms" }
lte = { rate = "1 Mbit/s", delay = "20 ms" }
ethernet = { preset = "ethernet-1g", delay = "10 ms" }
[mobility]
protocol = "mobile-ipv6"
movement_detection = "unreachable-router"
lifetime = "infinity"
[[handover]]
at = "20 s"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
"#;
/// Of 256 kbit/s, so that no queue is filled by it.
const UPLOAD: &str = "[[flow]]\nname = \"upload\"\nfrom = \"mobile\"\nto = \"correspondent\"\nkind = \"paced\"\n\
    rate = \"256 kbit/s\"\nmessage = \"500 B\"\n";
const DOWNLOAD: &str = "[[flow]]\nname = \"download\"\nfrom = \"correspondent\"\nto = \"mobile\"\n";

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// When events of this kind and cause were, seconds.
fn times(events: &Columns, kind: &str, cause: &str) -> Vec<f64> {
    let [kinds, causes, times] = ["kind", "cause", "time_ns"].map(|name| events.by_name(name).unwrap());
    let is_one = |row: &usize| kinds.text(*row) == Some(kind) && causes.text(*row) == Some(cause);
    (0..events.rows()).filter(is_one).map(|row| times.number(row).unwrap() as f64 / 1e9).collect()
}

/// When messages of this name were sent, seconds.
fn sent(events: &Columns, message: &str) -> Vec<f64> {
    let [kinds, messages, times] = ["kind", "message", "time_ns"].map(|name| events.by_name(name).unwrap());
    let is_one =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some(message);
    (0..events.rows()).filter(is_one).map(|row| times.number(row).unwrap() as f64 / 1e9).collect()
}

/// When the router was found gone, seconds.
fn found_gone(events: &Columns) -> Vec<f64> {
    times(events, "arp", "unreachable")
}

fn moved_at(summary: &Summary) -> Option<f64> {
    summary.handovers[0].ready_at.map(|at| at.as_secs_f64())
}

#[test]
fn a_router_that_vanishes_is_left_five_seconds_and_three_probes_after_a_packet_that_nobody_confirms() {
    // A confirmation counts for 50 to 150 ms, so that the upload is always waiting for the next one.
    for more in [
        &["mobility.discovery.reachable_time=100 ms"][..],
        &["mobility.discovery.reachable_time=100 ms", "assist=default"],
        &["mobility.discovery.reachable_time=100 ms", "mobility.duplicate_address_detection=full"],
    ] {
        let (summary, events) = run(&format!("{SILENT}{UPLOAD}"), more);
        let gone = found_gone(&events);
        assert!(matches!(gone[..], [at] if (28.0..28.5).contains(&at)), "{more:?}: {gone:?}");
        // By then the other router is known, and the node has its address there.
        let moved = moved_at(&summary).unwrap_or_else(|| panic!("{more:?}: it stays"));
        assert!((gone[0]..gone[0] + 0.5).contains(&moved), "{more:?}: {moved}");
        let probes: Vec<_> = sent(&events, "NeighborSolicitation")
            .into_iter()
            .filter(|at| (24.0..28.5).contains(at))
            .collect();
        assert!(probes.len() >= 3, "{more:?}: {probes:?}");
        assert!(
            summary.flows[0].bytes_delivered > 2_000_000,
            "{more:?}: {}",
            summary.flows[0].bytes_delivered
        );
    }
}

#[test]
fn by_the_times_of_the_rfc_the_last_confirmation_counts_for_a_quarter_to_three_quarters_of_a_minute() {
    let (summary, events) = run(&format!("{SILENT}{UPLOAD}{DOWNLOAD}"), &[]);
    let gone = found_gone(&events);
    // Until then TCP's own timer may have doubled to as much again.
    assert!(
        matches!(gone[..], [at] if (20.0 + 15.0 + 8.0..20.0 + 2.0 * 45.0 + 8.0).contains(&at)),
        "{gone:?}"
    );
    assert!(moved_at(&summary).is_some_and(|at| at - gone[0] < 0.5));
    assert!(
        sent(&events, "NeighborAdvertisement").len() <= 5,
        "TCP confirms, so that nobody has to be asked"
    );
}

#[test]
fn a_node_that_only_receives_finds_out_nothing() {
    let (summary, events) = run(&format!("{SILENT}{DOWNLOAD}"), &[]);
    assert_eq!((moved_at(&summary), found_gone(&events)), (None, vec![]));
    let after = sent(&events, "NeighborSolicitation").into_iter().filter(|at| *at > 25.0).count();
    assert_eq!(after, 0, "there is nothing to send");
    let told = run(&format!("{SILENT}{DOWNLOAD}"), &["mobility.movement_detection=missed-advertisements"]).0;
    assert!(moved_at(&told).is_some());
}

#[test]
fn a_node_without_a_word_to_send_stays_until_it_has_one() {
    let late = format!("{SILENT}{UPLOAD}start = \"60 s\"\n");
    let (summary, events) = run(&late, &[]);
    let gone = found_gone(&events);
    assert!(matches!(gone[..], [at] if (67.9..68.1).contains(&at)), "{gone:?}");
    assert!(moved_at(&summary).is_some_and(|at| (68.0..68.5).contains(&at)), "{:?}", moved_at(&summary));
    assert!(summary.flows[0].bytes_delivered > 100_000);
}

#[test]
fn a_router_that_answers_is_kept_however_long_tcp_gets_nowhere() {
    let text = SILENT.replace("delay = \"10 ms\"", "delay = \"10 ms\", loss = \"100 %\"");
    let text = &text[..text.find("[[handover]]").unwrap()];
    let (summary, events) = run(&format!("{text}{UPLOAD}"), &["mobility.start=wifi"]);
    assert_eq!(summary.flows[0].bytes_delivered, 0);
    assert_eq!(found_gone(&events), Vec::<f64>::new());
    let answers = sent(&events, "NeighborAdvertisement");
    assert!(answers.len() >= 2 && answers.last().is_some_and(|last| *last > 30.0), "{answers:?}");
}

#[test]
fn where_cells_overlap_the_old_link_is_left_when_it_has_died_without_a_word() {
    let style = "style = \"make-before-break\"\noverlap = \"5 s\"";
    let text = SILENT.replace("style = \"break-before-make\"\ninterruption = \"500 ms\"", style);
    assert_ne!(text, SILENT);
    let (summary, events) = run(&format!("{text}{UPLOAD}"), &["mobility.discovery.reachable_time=100 ms"]);
    let gone = found_gone(&events);
    assert!(matches!(gone[..], [at] if (33.0..33.5).contains(&at)), "{gone:?}");
    assert!(moved_at(&summary).is_some_and(|at| at - gone[0] < 0.5), "{:?}", moved_at(&summary));
}

#[test]
fn a_node_at_home_asks_for_its_home_agent_and_leaves_when_nobody_answers() {
    for home in ["wifi", "lte"] {
        let more = [&format!("mobility.home={home}"), "mobility.discovery.reachable_time=100 ms"];
        let (summary, events) = run(&format!("{SILENT}{UPLOAD}"), &more);
        assert!(moved_at(&summary).is_some_and(|at| (28.0..31.0).contains(&at)), "{home}: {summary:?}");
        assert!(!found_gone(&events).is_empty(), "{home}");
    }
}

/// With other detections, and over IPv4, nothing of all this exists.
#[test]
fn other_detections_neither_probe_nor_wait() {
    for detection in ["link-trigger", "missed-advertisements", "eager"] {
        let detection = format!("mobility.movement_detection={detection}");
        let (_, events) = run(&format!("{SILENT}{UPLOAD}"), &[&detection]);
        assert_eq!(sent(&events, "NeighborAdvertisement").len(), 0, "{detection}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let digest = || run(&format!("{SILENT}{UPLOAD}{DOWNLOAD}"), &["duration=40 s"]).0.digest;
    assert_eq!(digest(), digest());
}

#[test]
fn the_times_can_be_shorter() {
    let more = [
        "mobility.discovery.reachable_time=100 ms",
        "mobility.discovery.delay_first_probe=500 ms",
        "mobility.discovery.retrans_timer=100 ms",
    ];
    let (summary, events) = run(&format!("{SILENT}{UPLOAD}"), &more);
    let gone = found_gone(&events);
    assert!(matches!(gone[..], [at] if (20.8..21.3).contains(&at)), "{gone:?}");
    let took = Duration::from_secs_f64(moved_at(&summary).unwrap() - 20.0);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Whatever links lose, and however often nobody is told of what they do, no packet is missing from the books.
#[test]
fn the_books_balance_whatever_becomes_of_routers() {
    let mut random = RandomStream::new(1, 0, "unreachable routers");
    let mut found = 0;
    for world in 0..24 {
        let mut pick = |of: &[&str]| of[(random.next_u64() % of.len() as u64) as usize].to_owned();
        let mut text =
            "duration = \"60 s\"\n[links]\nethernet = { preset = \"ethernet-1g\", delay = \"10 ms\" }\n"
                .to_owned();
        for link in ["wifi", "lte"] {
            let (rate, loss) = (pick(&["64 kbit/s", "1 Mbit/s"]), pick(&["0.0", "0.05", "0.3"]));
            let mtu = pick(&["1300", "1500"]);
            let _ = writeln!(
                text,
                "{link} = {{ rate = \"{rate}\", delay = \"20 ms\", loss = {loss}, mtu = \"{mtu} B\" }}"
            );
        }
        text.push_str(
            "[mobility]\nprotocol = \"mobile-ipv6\"\nmovement_detection = \"unreachable-router\"\n",
        );
        text.push_str(&pick(&["", "home = \"wifi\"\n", "home = \"lte\"\n", "route_optimization = true\n"]));
        let _ = writeln!(text, "duplicate_address_detection = \"{}\"", pick(&["optimistic", "full", "none"]));
        let _ = writeln!(
            text,
            "[mobility.discovery]\nreachable_time = \"{}\"\nretrans_timer = \"{}\"\ndelay_first_probe = \"{}\"\nrouter_lifetime = \"{}\"",
            pick(&["1 ms", "100 ms", "30 s"]),
            pick(&["1 ms", "100 ms", "1 s"]),
            pick(&["1 ms", "1 s", "5 s"]),
            pick(&["1 s", "1800 s"]),
        );
        for (at, from, to) in [(15, "wifi", "lte"), (30, "lte", "wifi"), (45, "wifi", "lte")] {
            let style = pick(&[
                "style = \"break-before-make\"\ninterruption = \"1 s\"",
                "style = \"make-before-break\"\noverlap = \"2 s\"",
            ]);
            let queued = pick(&["drop", "drain-late"]);
            let _ = writeln!(
                text,
                "[[handover]]\nat = \"{at} s\"\nfrom = \"{from}\"\nto = \"{to}\"\n{style}\nqueued = \"{queued}\""
            );
        }
        text.push_str(UPLOAD);
        text.push_str(DOWNLOAD);
        let assist = format!("assist={}", pick(&["none", "default"]));
        // The books are looked at there.
        let (_, events) = run(&text, &[&assist]);
        found += found_gone(&events).len();
        if world % 8 == 0 {
            assert_eq!(run(&text, &[&assist]).0.digest, run(&text, &[&assist]).0.digest);
        }
    }
    assert!(found > 24, "{found}");
}
