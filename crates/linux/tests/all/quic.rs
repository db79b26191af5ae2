//! Flows over QUIC between real hosts, whose datagrams pass real sockets and, with Mobile IP, real tunnels.
//!
//! `cargo test -p careof-linux --test all quic -- --nocapture` prints what was measured.

use careof_linux::WorldError;
use careof_scenario::Scenario;

use crate::common::{run_scenario, start};

/// Two links to a mobile node, and a handover between them.
const WORLD: &str = r#"
duration = "5 s"
[links]
wifi = { rate = "10 Mbit/s", delay = "5 ms" }
lte = { rate = "10 Mbit/s", delay = "15 ms" }
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "2500 ms"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "100 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
size = "700 kB"
quic = { migration = true }
"#;

fn scenario(overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    Scenario::parse("test.toml", WORLD, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn what_is_sent_over_quic_arrives_with_mobile_ip_and_past_it() {
    for migration in ["flow.quic.migration=true", "flow.quic.migration=false"] {
        let Some(ran) = run_scenario(scenario(&[migration])) else { return };
        let [flow] = &ran.summary.flows[..] else { panic!("{migration}: {:?}", ran.summary.flows) };
        assert_eq!((flow.tcp.profile.as_deref(), flow.tcp.variant.as_str()), (Some("quic"), "cubic"));
        assert!(flow.bytes_delivered <= 700_000, "{migration}: {}", flow.bytes_delivered);
        assert!(flow.bytes_delivered > 0, "{migration}");
        assert!(!flow.complete || flow.bytes_delivered == 700_000, "{migration}");
        assert!(flow.segments_arrived <= flow.segments_sent && flow.rtt_samples > 0, "{migration}");
    }
}

#[test]
fn a_connection_goes_on_after_a_handover_with_mobile_ip_and_past_it() {
    for migration in ["flow.quic.migration=true", "flow.quic.migration=false"] {
        let overrides = [
            migration,
            "flow.start=1 s",
            "flow.kind=paced",
            "flow.size=30 kB",
            "flow.rate=80 kbit/s",
            "flow.message=100 B",
            "duration=8 s",
        ];
        let Some(ran) = run_scenario(scenario(&overrides)) else { return };
        let [flow] = &ran.summary.flows[..] else { panic!("{migration}: {:?}", ran.summary.flows) };
        let [handover] = &ran.summary.handovers[..] else {
            panic!("{migration}: {:?}", ran.summary.handovers)
        };
        let silence = flow.longest_silence.unwrap_or_default();
        println!("{migration}: silent for {} ms, {} bytes", silence.as_millis(), flow.bytes_delivered);
        // On a machine too busy to begin before the handover there is nothing to go on.
        if ran.summary.lateness.unwrap_or_default() < std::time::Duration::from_millis(200) {
            assert!(ran.resumes_after(1), "{migration}: {handover:?} {flow:?}");
        }
    }
}

#[test]
fn quic_over_ipv6_is_refused_before_anything_is_made() {
    let error = start(scenario(&["mobility.protocol=mobile-ipv6", "flow.quic.migration=false"])).map(drop);
    let Err(WorldError::Unsupported { key, .. }) = error else { panic!("{error:?}") };
    assert_eq!(key, "flow.0.quic");
}
