//! Workloads between real hosts: what applications send by bursts arrives, whole and in order.

use careof_scenario::Scenario;

use crate::common::run_scenario;

/// Two links to a mobile node, and a handover between them.
const WORLD: &str = r#"
duration = "6 s"
[links]
wifi = { rate = "10 Mbit/s", delay = "5 ms" }
lte = { rate = "10 Mbit/s", delay = "15 ms" }
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "2 s"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "200 ms"
"#;

fn scenario(flows: &str) -> Scenario {
    Scenario::parse("test.toml", &format!("{WORLD}{flows}"), &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn bursts_arrive_whole_and_pauses_lie_between_them() {
    const BURSTS: &str = r#"
[[flow]]
name = "bytes"
from = "correspondent"
to = "mobile"
kind = "on-off"
burst = "20 kB"
burst_law = "exponential"
pause = "200 ms"
pause_law = "pareto"
size = "60 kB"
[[flow]]
name = "times"
from = "mobile"
to = "correspondent"
kind = "on-off"
on = "300 ms"
rate = "80 kbit/s"
message = "200 B"
pause = "400 ms"
size = "9 kB"
"#;
    let Some(ran) = run_scenario(scenario(BURSTS)) else { return };
    for (flow, size) in ran.summary.flows.iter().zip([60_000, 9_000]) {
        assert_eq!(flow.kind, "on-off");
        assert!(flow.bytes_delivered <= size, "{}: {}", flow.name, flow.bytes_delivered);
        assert!(!flow.complete || flow.bytes_delivered == size, "{}: {}", flow.name, flow.bytes_delivered);
    }
    assert!(ran.summary.conservation.values().all(|difference| *difference == 0));
}
