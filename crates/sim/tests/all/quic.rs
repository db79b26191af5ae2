//! Flows over QUIC: what arrives, what a handover does to them, and that their books balance.

use std::fs;

use careof_metrics::{FlowSummary, Summary};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation, WorldError};
use careof_trace::Columns;

use crate::common::{captured_at, finish};

const HANDOVER: &str = r#"
duration = "20 s"
[links]
wifi = { rate = "20 Mbit/s", delay = "5 ms" }
lte = { rate = "10 Mbit/s", delay = "25 ms" }
ethernet = { preset = "ethernet-1g", delay = "10 ms" }
[mobility]
[[handover]]
at = "8 s"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "300 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
quic = { migration = true }
"#;

fn simulation(text: &str, overrides: &[&str], observation: Observation) -> Result<Simulation, WorldError> {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("x.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    Simulation::new(scenario, "x.toml", 0, observation)
}

fn run(overrides: &[&str]) -> (Summary, Columns) {
    let observation = Observation { trace: true, ..Observation::default() };
    finish(simulation(HANDOVER, overrides, observation).unwrap())
}

fn only_flow(summary: &Summary) -> &FlowSummary {
    let [flow] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    flow
}

fn text<'a>(events: &'a Columns, column: &str, row: usize) -> &'a str {
    events.by_name(column).unwrap().text(row).unwrap_or_default()
}

/// When the receiver got data after the handover began, and how long it waited for that.
fn silence(summary: &Summary) -> (f64, f64) {
    let flow = only_flow(summary);
    let begin = flow.longest_silence_at.unwrap().as_secs_f64();
    (begin, flow.longest_silence.unwrap().as_secs_f64())
}

#[test]
fn a_download_goes_on_after_a_handover_with_either_kind_of_mobility_and_from_either_end() {
    let upload = ["flow.from=mobile", "flow.to=correspondent"];
    for migration in ["flow.quic.migration=true", "flow.quic.migration=false"] {
        for ends in [&[][..], &upload[..]] {
            for more in [
                "links.lte.loss=1 %",
                "flow.quic.congestion=new-reno",
                "handover.style=make-before-break\nhandover.interruption=0 s",
            ] {
                let mut overrides = vec![migration];
                overrides.extend(ends);
                if !more.contains('\n') {
                    overrides.push(more);
                }
                let (summary, _) = run(&overrides);
                let flow = only_flow(&summary);
                let (begin, length) = silence(&summary);
                assert!((7.9..8.1).contains(&begin), "{overrides:?}: silent from {begin} s");
                assert!((0.3..3.0).contains(&length), "{overrides:?}: silent for {length} s");
                let last = flow.last_delivery.unwrap().as_secs_f64();
                assert!(last > 19.9, "{overrides:?}: it went on to the end: {last} s");
                assert!(flow.bytes_delivered > 15_000_000, "{overrides:?}: {} bytes", flow.bytes_delivered);
                assert!(flow.segments_retransmitted > 0 && flow.rtt_samples > 100);
                assert!(flow.rtt_min.unwrap().as_secs_f64() >= 0.030, "no shorter than the path");
            }
        }
    }
}

#[test]
fn a_connection_that_migrates_has_the_address_of_the_link_and_no_tunnel() {
    let sources = |overrides: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let scenario = Scenario::parse("x.toml", HANDOVER, &[]).unwrap();
        let nodes = CaptureNodes::Named(vec!["correspondent".to_owned()]);
        let observation = captured_at(folder.path(), &scenario, &nodes);
        finish(simulation(HANDOVER, overrides, observation).unwrap());
        let bytes = fs::read(folder.path().join("correspondent.pcapng")).unwrap();
        // IPv4 headers of UDP to the correspondent's port, from whom.
        let mut sources: Vec<[u8; 4]> = bytes
            .windows(28)
            .filter(|packet| {
                packet[0] == 0x45 && packet[9] == 17 && packet[22..24] == 49_152_u16.to_be_bytes()
            })
            .map(|packet| packet[12..16].try_into().unwrap())
            .collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    };
    let home = sources(&["flow.quic.migration=false"]);
    assert_eq!(home.len(), 1, "the home address: {home:?}");
    let own = sources(&[]);
    assert_eq!(own.len(), 2, "the addresses on both links: {own:?}");
    assert!(!own.contains(&home[0]), "{own:?}");
}

#[test]
fn the_same_seed_makes_the_same_run_and_another_one_another() {
    let digest = |overrides: &[&str]| run(overrides).0.digest;
    let first = digest(&["links.lte.loss=1 %"]);
    assert_eq!(first, digest(&["links.lte.loss=1 %"]));
    assert_ne!(first, digest(&["links.lte.loss=1 %", "seed=9"]));
}

#[test]
fn a_download_of_a_given_size_is_complete_and_every_byte_is_delivered_once() {
    let (summary, events) = run(&["flow.size=3 MB", "links.wifi.loss=2 %"]);
    let flow = only_flow(&summary);
    assert!(flow.complete);
    assert_eq!(flow.bytes_delivered, 3_000_000);
    assert_eq!((flow.tcp.profile.as_deref(), flow.tcp.variant.as_str()), (Some("quic"), "cubic"));
    // The trace has the states of the endpoints, too.
    assert!((0..events.rows()).any(|row| text(&events, "kind", row) == "tcp-state"));
}

#[test]
fn requests_and_responses_and_paced_messages_are_carried() {
    let asked = [
        "flow.kind=request-response",
        "flow.request=400 B",
        "flow.response=60 kB",
        "flow.requests=10",
        "flow.from=mobile",
        "flow.to=correspondent",
    ];
    let (summary, _) = run(&asked);
    assert_eq!(summary.flows.iter().map(|flow| flow.bytes_delivered).collect::<Vec<_>>(), [600_000, 4_000]);
    assert!(summary.flows[0].complete);
    let (summary, _) =
        run(&["flow.kind=paced", "flow.rate=64 kbit/s", "flow.message=160 B", "flow.stop=15 s"]);
    let delivered = only_flow(&summary).bytes_delivered;
    assert!((118_000..=120_000).contains(&delivered), "15 s of 8 kB, less the handshake: {delivered}");
}

#[test]
fn quic_is_carried_over_ipv6_by_the_home_address_and_migration_is_refused_there() {
    let overrides = ["mobility.protocol=mobile-ipv6", "flow.quic.migration=false"];
    let (summary, _) = run(&overrides);
    assert!(only_flow(&summary).last_delivery.unwrap().as_secs_f64() > 19.9);
    for (overrides, key, word) in [
        (&["mobility.protocol=mobile-ipv6"][..], "flow.0.quic.migration", "mobile-ipv4"),
        (&["mobility.care_of=foreign-agent"], "flow.0.quic.migration", "co-located"),
        (&["flow.quic.congestion=bbr"], "flow.0.quic.congestion", "--world linux"),
    ] {
        let error =
            simulation(HANDOVER, overrides, Observation::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(word), "{overrides:?}: {error}");
    }
}

#[test]
fn assists_leave_quic_alone_and_carry_it_through() {
    for assist in ["replay", "split", "freeze", "hold-last"] {
        let assist_line = format!("assist={assist}");
        let (summary, _) = run(&[
            "flow.quic.migration=false",
            "mobility.routing=reverse-tunnel",
            "handover.notice=500 ms",
            &assist_line,
        ]);
        let flow = only_flow(&summary);
        assert!(flow.last_delivery.unwrap().as_secs_f64() > 19.9, "{assist}");
        assert_eq!((flow.acks_injected, flow.retransmissions_swallowed), (0, 0), "{assist}");
    }
}
