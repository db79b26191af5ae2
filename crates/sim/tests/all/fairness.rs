//! Equal flows through one bottleneck: each gets its share (Jain's index at least 0.95), and the path is used.

use careof_base::Instant;
use careof_metrics::FlowSummary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

const FLOWS: usize = 5;
const SECONDS: f64 = 200.0;
const RATE: f64 = 5e6;

/// Five senders -100 Mbit/s, 5 ms- router -5 Mbit/s, 20 ms, 50 packets- router -100 Mbit/s, 5 ms- receivers. The flows
/// start `apart_ms` after each other.
fn dumbbell(tcp: &str, apart_ms: usize) -> Vec<FlowSummary> {
    let mut text = String::from(
        r#"duration = "200 s"
[links]
middle = { rate = "5 Mbit/s", delay = "20 ms", queue = "50 packets", between = ["router-left", "router-right"] }
"#,
    );
    for flow in 1..=FLOWS {
        text += &format!(
            r#"left-{flow} = {{ rate = "100 Mbit/s", delay = "5 ms", queue = "1000 packets", between = ["sender-{flow}", "router-left"] }}
right-{flow} = {{ rate = "100 Mbit/s", delay = "5 ms", queue = "1000 packets", between = ["router-right", "receiver-{flow}"] }}
"#
        );
    }
    for flow in 1..=FLOWS {
        text += &format!(
            r#"[[flow]]
name = "flow-{flow}"
from = "sender-{flow}"
to = "receiver-{flow}"
kind = "bulk"
start = "{} ms"
tcp = {{ window = "1 MiB", window_scaling = true, {tcp} }}
"#,
            (flow - 1) * apart_ms
        );
    }
    let scenario = Scenario::parse("test.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut simulation = Simulation::new(scenario, "test.toml", 0, Observation::default()).unwrap();
    simulation.advance(Instant::MAX).unwrap();
    simulation.finish().unwrap().flows
}

/// Jain's index of the flows' goodputs, and the share of the bottleneck that they use.
fn fairness(tcp: &str, apart_ms: usize) -> (f64, f64) {
    let rates: Vec<f64> =
        dumbbell(tcp, apart_ms).iter().map(|flow| flow.bytes_delivered as f64 * 8.0 / SECONDS).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    println!("{tcp}: {rates:.0?}");
    (sum * sum / (rates.len() as f64 * squares), sum * 1500.0 / 1460.0 / RATE)
}

fn assert_fair(tcp: &str, apart_ms: usize) {
    let (jain, used) = fairness(tcp, apart_ms);
    println!("{tcp}: Jain's index {jain:.4}, used {used:.3}");
    assert!(jain >= 0.95, "{tcp}: Jain's index {jain:.4}");
    assert!((0.9..1.0).contains(&used), "{tcp}: used {used:.3}");
}

#[test]
fn equal_reno_flows_share_a_bottleneck() {
    for profile in ["newreno", "sack"] {
        assert_fair(&format!("profile = \"{profile}\""), 230);
    }
}

#[test]
fn equal_cubic_flows_share_a_bottleneck() {
    assert_fair(r#"profile = "sack", congestion = "cubic""#, 230);
    assert_fair(r#"profile = "sack", congestion = "cubic", hystart = "hystart++""#, 230);
}

/// Who comes later takes the others' queue for part of the path and keeps more: equal flows begin together.
#[test]
fn equal_vegas_flows_share_a_bottleneck() {
    assert_fair(r#"profile = "sack", congestion = "vegas""#, 0);
    assert_fair(r#"profile = "vegas""#, 0);
    let (late, _) = fairness(r#"profile = "sack", congestion = "vegas""#, 230);
    assert!(late < 0.9, "Jain's index {late:.4} although they began one after another");
}

#[test]
fn equal_westwood_flows_share_a_bottleneck() {
    assert_fair(r#"profile = "sack", congestion = "westwood""#, 230);
}

#[test]
fn equal_flows_of_todays_linux_share_a_bottleneck() {
    for congestion in ["cubic", "reno", "westwood"] {
        assert_fair(&format!("profile = \"linux\", congestion = \"{congestion}\""), 230);
    }
    // Five times ten segments at once would fill the queue, and whoever stands at its end takes it for the path.
    assert_fair(r#"profile = "linux", congestion = "vegas", initial_window = "2 segments""#, 0);
}
