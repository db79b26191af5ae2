//! How one-way delays and jitter of flows that deliver in order are spread.

use core::time::Duration;

use careof_metrics::{HistogramSummary, MOST_DELAYS, Summary};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

use crate::common::finish;

/// Messages of 100 B, one every 10 ms, and a handover with a gap of 400 ms between two like links.
const SCENARIO: &str = r#"
duration = "20 s"
[links]
one = { rate = "8 Mbit/s", delay = "15 ms" }
two = { rate = "8 Mbit/s", delay = "15 ms" }
ethernet = { rate = "1 Gbit/s", delay = "10 ms" }
[mobility]
[[handover]]
at = "10 s"
from = "one"
to = "two"
style = "break-before-make"
interruption = "400 ms"
[[flow]]
name = "it"
from = "correspondent"
to = "mobile"
kind = "paced"
start = "3 s"
rate = "80 kbit/s"
message = "100 B"
"#;

fn run(more: &str, overrides: &[&str]) -> Summary {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let text = format!("{SCENARIO}{more}\n");
    let scenario = Scenario::parse("x.toml", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap()).0
}

fn of<'a>(summary: &'a Summary, quantity: &str) -> &'a HistogramSummary {
    summary.histograms.iter().find(|one| one.quantity == quantity).unwrap()
}

/// TCP without Nagle's algorithm, which would join messages, and QUIC; both versions of IP.
const FLOWS: [&str; 2] = ["tcp = { nagle = false }", "quic = \"cubic\""];

#[test]
fn on_a_path_that_stays_a_message_takes_propagation_and_serialisation() {
    for (flow, version) in FLOWS.iter().flat_map(|flow| ["mobile-ipv4", "mobile-ipv6"].map(|v| (flow, v))) {
        let summary = run(flow, &["handover=[]", &format!("mobility.protocol={version}")]);
        let (delay, jitter) = (of(&summary, "delay"), of(&summary, "jitter"));
        // What was under way at the end has come to nobody.
        let messages = summary.flows[0].bytes_delivered / 100;
        assert!(messages > 1680, "{flow} {version}: {messages}");
        assert_eq!((delay.samples, jitter.samples), (messages, messages - 1), "{flow} {version}");
        // 25 ms of propagation; 100 B and headers of 40 to 120 B at 8 Mbit/s, and at 1 Gbit/s.
        let range = Duration::from_micros(25_140)..Duration::from_micros(25_230);
        for one in [delay.min, delay.mean] {
            assert!(range.contains(&one.unwrap()), "{flow} {version}: {delay:?}");
        }
        // Few stood behind a message of an agent, or a packet of the link's MTU, which takes 1.5 ms.
        assert!(delay.max < Some(Duration::from_millis(27)), "{flow} {version}: {delay:?}");
        assert!(jitter.p99 < Some(Duration::from_micros(40)), "{flow} {version}: {jitter:?}");
    }
}

#[test]
fn what_is_lost_at_a_handover_is_as_late_as_its_retransmission() {
    for flow in FLOWS {
        let summary = run(flow, &[]);
        let (delay, silence) = (of(&summary, "delay"), summary.flows[0].longest_silence.unwrap());
        assert!(silence > Duration::from_millis(400), "{flow}");
        // The first message that was lost left at most an interval behind the last that was delivered: it is late by the silence and the
        // delay less that.
        let most = delay.max.unwrap();
        let range = silence..silence + Duration::from_millis(26);
        assert!(range.contains(&most), "{flow}: {most:?}, silent for {silence:?}");
        assert!(delay.p50 < Some(Duration::from_millis(26)), "{flow}: {delay:?}");
    }
}

#[test]
fn of_many_flows_the_first_are_measured() {
    let summary = run("count = 40\ntcp = { nagle = false }", &["duration=5 s", "handover=[]"]);
    assert_eq!((summary.flows.len(), summary.histograms.len()), (40, 2 * MOST_DELAYS));
    assert!(summary.histograms.iter().all(|one| one.samples > 100));
}
