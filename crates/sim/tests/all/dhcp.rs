//! Care-of addresses by DHCP: what they add to a handover, and that the messages are real.

use std::process::Command;
use std::time::Duration;

use crate::common::{captured_at, finish};
use careof_base::Instant;
use careof_metrics::{Summary, summary_json};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// A round trip on the access link takes 20 ms, and its messages next to nothing.
const WALK: &str = r#"
duration = "40 s"
[links]
first = { rate = "1 Gbit/s", delay = "10 ms" }
second = { rate = "1 Gbit/s", delay = "10 ms" }
ethernet = { rate = "1 Gbit/s", delay = "1 ms" }
[mobility]
care_of = "dhcp"
[[handover]]
at = "20 s"
from = "first"
to = "second"
style = "break-before-make"
[[flow]]
from = "correspondent"
to = "mobile"
kind = "paced"
rate = "80 kbit/s"
message = "100 B"
"#;

const NO_CLIENT_CHECK: &str = "mobility.dhcp.client_check=none";
const NO_SERVER_CHECK: &str = "mobility.dhcp.server_check=none";
const UNCHECKED: [&str; 2] = [NO_CLIENT_CHECK, NO_SERVER_CHECK];

fn run(overrides: &[&str], observation: Observation) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("dhcp.toml", WALK, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "dhcp.toml", 0, observation).unwrap())
}

fn traced(overrides: &[&str]) -> (Summary, Columns) {
    run(overrides, Observation { trace: true, ..Observation::default() })
}

/// From each handover to its new path.
fn latencies(overrides: &[&str]) -> Vec<Duration> {
    let (summary, _) = run(overrides, Observation::default());
    let handovers = summary.handovers.iter();
    handovers.map(|handover| handover.ready_at.expect("the new path is ready") - handover.at).collect()
}

fn latency(overrides: &[&str]) -> Duration {
    let latencies = latencies(overrides);
    assert_eq!(latencies.len(), 1);
    latencies[0]
}

/// The rows of a kind with their time and, by `column`, their text.
fn rows(events: &Columns, kind: &str, column: &str) -> Vec<(Instant, String)> {
    let kinds = events.by_name("kind").unwrap();
    let times = events.by_name("time_ns").unwrap();
    let texts = events.by_name(column).unwrap();
    (0..events.rows())
        .filter(|row| kinds.text(*row) == Some(kind))
        .map(|row| {
            let nanos = times.number(row).and_then(|nanos| u64::try_from(nanos).ok()).unwrap();
            (Instant::from_nanos(nanos), texts.text(row).unwrap_or_default().to_owned())
        })
        .collect()
}

/// The sum of a span and a tolerance for the time that messages of a few hundred bytes take at 1 Gbit/s.
fn is_about(found: Duration, expected: Duration) -> bool {
    found >= expected && found <= expected + Duration::from_micros(50)
}

#[test]
fn an_address_without_a_check_adds_two_round_trips_of_the_access_link() {
    let ms = Duration::from_millis;
    let given = latency(&["mobility.care_of=co-located"]);
    assert!(is_about(given, ms(20)), "the registration alone: {given:?}");
    let (summary, _) = run(&["mobility.care_of=co-located"], Observation::default());
    assert!(!summary_json(&summary).contains("address_at_s"), "nothing was asked for");
    let asked = latency(&UNCHECKED);
    assert!(is_about(asked, ms(20 + 2 * 20)), "{asked:?}");
    let processed = latency(&[&UNCHECKED[..], &["mobility.dhcp.processing=7 ms"]].concat());
    assert!(is_about(processed, ms(60 + 2 * 7)), "{processed:?}");
    let delayed = latency(&[&UNCHECKED[..], &["mobility.dhcp.start_delay=300 ms"]].concat());
    assert!(is_about(delayed, ms(60 + 300)), "{delayed:?}");
}

#[test]
fn the_servers_check_adds_its_wait_and_the_clients_four_to_seven_seconds() {
    let ms = Duration::from_millis;
    let by_server = latency(&[NO_CLIENT_CHECK]);
    assert!(is_about(by_server, ms(60 + 1_000)), "{by_server:?}");
    let by_client = latency(&[NO_SERVER_CHECK]) - ms(60);
    assert!((ms(4_000)..=ms(7_001)).contains(&by_client), "{by_client:?}");
    let by_both = latency(&[]) - ms(60 + 1_000);
    assert!((ms(4_000)..=ms(7_001)).contains(&by_both), "{by_both:?}");
    let probes = "mobility.dhcp.probes=1";
    let one_probe = latency(&[NO_SERVER_CHECK, probes]) - ms(60);
    assert!((ms(2_000)..=ms(3_001)).contains(&one_probe), "{one_probe:?}");
}

#[test]
fn a_check_in_the_background_adds_nothing_and_is_made_all_the_same() {
    let overrides = [NO_SERVER_CHECK, "mobility.dhcp.client_check=background"];
    assert_eq!(latency(&overrides), latency(&UNCHECKED));
    let (_, events) = traced(&overrides);
    let probes = rows(&events, "arp", "cause").into_iter().filter(|(_, what)| what == "probe").count();
    assert_eq!(probes, 2 * 3, "three on each link");
}

#[test]
fn make_before_break_asks_for_the_address_while_the_old_path_carries_on() {
    let (summary, _) = run(&["handover.0.style=make-before-break"], Observation::default());
    let handover = &summary.handovers[0];
    let latency = handover.ready_at.unwrap() - handover.at;
    assert!(latency >= Duration::from_millis(5_060), "{latency:?}");
    assert_eq!(handover.interruption, Duration::ZERO);
}

#[test]
fn the_address_is_a_phase_of_the_handover_between_its_beginning_and_its_registration() {
    let (summary, events) = traced(&[]);
    let phases = rows(&events, "handover", "cause");
    let handover = summary.handovers[0].at;
    let of_the_handover: Vec<&str> =
        phases.iter().filter(|(at, _)| *at >= handover).map(|(_, phase)| phase.as_str()).collect();
    assert_eq!(
        of_the_handover,
        ["link-down", "address-lost", "link-up", "initiated", "address-acquired", "registered", "terminated"]
    );
    let at = |wanted: &str| {
        phases.iter().find(|(at, phase)| *at >= handover && phase == wanted).map(|(at, _)| *at).unwrap()
    };
    let registration = at("registered") - at("address-acquired");
    assert!(is_about(registration, Duration::from_millis(20)), "{registration:?}");
    assert_eq!(at("registered"), summary.handovers[0].ready_at.unwrap());
    assert_eq!(Some(at("address-acquired")), summary.handovers[0].address_at);
}

#[test]
fn the_messages_of_an_acquisition_are_those_of_the_rfc_in_their_order() {
    let (_, events) = traced(&[NO_CLIENT_CHECK]);
    let sent: Vec<String> = rows(&events, "message-sent", "message")
        .into_iter()
        .map(|(_, message)| message)
        .take_while(|message| message != "RegistrationRequest")
        .collect();
    assert_eq!(sent, ["DHCPDISCOVER", "EchoRequest", "DHCPOFFER", "DHCPREQUEST", "DHCPACK"]);
}

#[test]
fn a_link_that_was_visited_before_confirms_its_address_in_one_round_trip_without_an_echo() {
    let back = "handover=[{ at = \"10 s\", from = \"first\", to = \"second\", style = \"break-before-make\" }, \
                { at = \"30 s\", from = \"second\", to = \"first\", style = \"break-before-make\" }]";
    let found = latencies(&[back, NO_CLIENT_CHECK]);
    let ms = Duration::from_millis;
    assert!(is_about(found[0], ms(20 + 1_000 + 40)), "{found:?}");
    assert!(is_about(found[1], ms(20 + 20)), "{found:?}");
    // A lease that is over meanwhile is nobody's: all begins anew.
    let found = latencies(&[back, NO_CLIENT_CHECK, "mobility.dhcp.lease=15 s"]);
    assert!(is_about(found[1], ms(20 + 1_000 + 40)), "{found:?}");
}

#[test]
fn a_way_back_to_a_binding_that_stands_is_over_when_the_address_is_confirmed() {
    // The second handover comes before the first has an address: the home agent has never heard of it.
    let back = "handover=[{ at = \"10 s\", from = \"first\", to = \"second\", style = \"break-before-make\" }, \
                { at = \"12 s\", from = \"second\", to = \"first\", style = \"break-before-make\" }]";
    let overrides = [&UNCHECKED[..], &[back, "mobility.dhcp.start_delay=5 s"]].concat();
    let (summary, _) = run(&overrides, Observation::default());
    let [there, back] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
    assert_eq!(there.ready_at, None);
    let found = back.ready_at.unwrap() - back.at;
    assert!(is_about(found, Duration::from_millis(20)), "{found:?}");
}

#[test]
fn a_lease_is_renewed_again_and_again_while_data_flow() {
    let (summary, events) = traced(&[&UNCHECKED[..], &["mobility.dhcp.lease=4 s"]].concat());
    let sent = rows(&events, "message-sent", "message");
    let renewals = sent.iter().filter(|(_, message)| message == "DHCPREQUEST").count();
    // 2 for the addresses, and one for every 2 s of 40 s.
    assert!((20..=22).contains(&renewals), "{renewals}");
    let lost =
        rows(&events, "handover", "cause").into_iter().filter(|(_, what)| what == "address-lost").count();
    assert_eq!(lost, 1, "by the handover alone");
    assert_eq!(summary.flows[0].bytes_delivered % 100, 0);
}

#[test]
fn a_lost_message_costs_a_retransmission_of_its_client() {
    // What is lost on the way of the first message is answered after 4 s, give or take one.
    let mut found = Vec::new();
    for seed in 1..=20 {
        let seed = format!("seed={seed}");
        let overrides = [&UNCHECKED[..], &["links.second.loss=0.2", &seed]].concat();
        let (summary, _) = run(&overrides, Observation::default());
        let handover = &summary.handovers[0];
        found.extend(handover.ready_at.map(|at| (at - handover.at).as_secs_f64()));
    }
    let undisturbed = found.iter().filter(|seconds| **seconds < 0.1).count();
    let repeated = found.iter().filter(|seconds| (3.0..=5.2).contains(*seconds)).count();
    // Each of four messages arrives with probability 0.8, those of the registration likewise.
    assert!(undisturbed >= 1 && repeated >= 1, "{found:?}");
    assert!(found.iter().all(|seconds| *seconds < 0.1 || *seconds >= 1.0), "{found:?}");
}

#[test]
fn tshark_reads_the_messages_in_the_capture() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed: nobody else reads the messages");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse("dhcp.toml", WALK, &[]).unwrap();
    let mobile = CaptureNodes::Named(vec!["mobile".to_owned()]);
    run(&[NO_CLIENT_CHECK, "duration=22 s"], captured_at(directory.path(), &scenario, &mobile));
    let path = directory.path().join("mobile.pcapng");
    let tshark = |arguments: &[&str]| {
        let options = ["-n", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
        let output =
            Command::new("tshark").arg("-r").arg(&path).args(options).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let kinds =
        tshark(&["-Y", "dhcp", "-T", "fields", "-e", "dhcp.option.dhcp", "-e", "udp.checksum.status"]);
    let bad = tshark(&["-Y", "_ws.malformed || udp.checksum.status == 0 || ip.checksum.status == 0"]);
    // On two links, each message once.
    let each: Vec<String> = [1, 2, 3, 5].iter().flat_map(|kind| [format!("{kind}\t1")]).collect();
    assert_eq!(kinds.lines().collect::<Vec<_>>(), [&each[..], &each[..]].concat());
    assert_eq!(bad, "");
}
