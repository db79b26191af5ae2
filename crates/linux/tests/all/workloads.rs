//! Workloads between real hosts: bursts arrive whole and in order, and of voice and films there is what people heard and saw.

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

#[test]
fn every_packet_of_a_call_is_heard_lost_or_late_and_counted_once() {
    const CALL: &str = r#"
[[flow]]
name = "heard"
from = "correspondent"
to = "mobile"
kind = "voice"
stop = "5 s"
[[flow]]
name = "said"
from = "mobile"
to = "correspondent"
kind = "voice"
codec = "g729"
stop = "5 s"
"#;
    for protocol in ["mobile-ipv4", "mobile-ipv6"] {
        let flows = CALL.to_owned();
        let text = format!(
            "{}{flows}",
            WORLD.replace("routing =", &format!("protocol = \"{protocol}\"\nrouting ="))
        );
        let text =
            if protocol == "mobile-ipv6" { text.replace("routing = \"reverse-tunnel\"\n", "") } else { text };
        let scenario = Scenario::parse("test.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let Some(ran) = run_scenario(scenario) else { return };
        assert_eq!(ran.summary.voice.len(), 2, "{protocol}");
        for (call, flow) in ran.summary.voice.iter().zip(&ran.summary.flows) {
            assert_eq!((flow.kind.as_str(), flow.tcp.profile.as_deref()), ("voice", Some("udp")));
            assert_eq!(call.packets_sent, flow.segments_sent, "{protocol} {call:?}");
            assert!(call.packets_received <= call.packets_sent, "{protocol} {call:?}");
            assert!(call.packets_due <= call.packets_sent, "{protocol} {call:?}");
            assert!(call.packets_lost + call.packets_late <= call.packets_due, "{protocol} {call:?}");
            // Neither sees the network faster than it is: 5 ms one way.
            let fastest = call.delay_min.unwrap_or(std::time::Duration::MAX);
            assert!(fastest >= std::time::Duration::from_millis(5), "{protocol} {call:?}");
            let bytes = if call.codec.as_deref() == Some("g711") { 160 } else { 20 };
            assert_eq!(flow.bytes_delivered, call.packets_received * bytes, "{protocol} {call:?}");
        }
        assert!(ran.summary.conservation.values().all(|difference| *difference == 0), "{protocol}");
    }
}

#[test]
fn a_film_that_never_begins_is_listed() {
    for transport in ["", "quic = \"cubic\""] {
        let film = format!(
            "[[flow]]\nname = \"film\"\nfrom = \"mobile\"\nto = \"correspondent\"\nkind = \"video\"\n{transport}"
        );
        // Nothing comes back before the run ends.
        let text = format!("{WORLD}{film}").replace("duration = \"6 s\"", "duration = \"3 s\"");
        let text = text.replace("delay = \"5 ms\"", "delay = \"2 s\"").replace("15 ms", "2 s");
        let scenario = Scenario::parse("test.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let Some(ran) = run_scenario(scenario) else { return };
        let [film] = &ran.summary.video[..] else { panic!("{transport}: {:?}", ran.summary.video) };
        assert_eq!((film.flow.as_str(), film.startup_delay, film.segments), ("film", None, 0), "{transport}");
    }
}

#[test]
fn a_film_is_fetched_segment_by_segment() {
    const FILM: &str = r#"
[[flow]]
name = "film"
from = "mobile"
to = "correspondent"
kind = "video"
segment = "500 ms"
rates = ["200 kbit/s", "800 kbit/s"]
buffer = "2 s"
length = "3 s"
"#;
    let Some(ran) = run_scenario(scenario(FILM)) else { return };
    let [film] = &ran.summary.video[..] else { panic!("{:?}", ran.summary.video) };
    let [segments, requests] = &ran.summary.flows[..] else { panic!("{} flows", ran.summary.flows.len()) };
    assert!(film.segments <= 6 && requests.bytes_delivered % 400 == 0, "{film:?}");
    assert!(segments.bytes_delivered >= film.segments * 12_500, "{film:?}");
    assert!(!segments.complete || film.segments == 6, "{film:?}");
    let seen = film.startup_delay.unwrap_or_default() + film.played + film.rebuffering;
    assert!(seen <= ran.summary.duration, "{film:?}");
}
