//! Worlds over IPv6 on real hosts. Where this machine has no namespaces or no TUN devices for this user the tests say so and pass.

use std::net::Ipv6Addr;
use std::path::Path;

use crate::common::{Ran, completed, completed_when, flow, paced, parsed, run, run_observed, slower};
use careof_base::Instant;
use careof_linux::Observation;
use careof_metrics::{Summary, summary_json};
use careof_plan::{CaptureNodes, CaptureRequest, plan_captures};
use careof_scenario::Scenario;
use careof_trace::Columns;
use careof_wire::ipv6::{Packet, Understood};
use careof_wire::{Segment, protocol};

/// A client and a server with a router between them.
const OFFICE: &str = r#"
duration = "6 s"
ip_version = 6
[links]
near = { rate = "20 Mbit/s", delay = "2 ms", between = ["client", "router"] }
far = { rate = "10 Mbit/s", delay = "5 ms", between = ["router", "server"] }
[[flow]]
name = "file"
from = "server"
to = "client"
size = "1 MB"
[[flow]]
name = "pages"
from = "client"
to = "server"
kind = "request-response"
request = "400 B"
response = "3 kB"
think = "20 ms"
requests = 5
[[flow]]
name = "voice"
from = "client"
to = "server"
kind = "paced"
rate = "64 kbit/s"
message = "160 B"
size = "8 kB"
"#;

const CLIENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1);
const SERVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 2);

fn rows<'a>(events: &'a Columns, kind: &'a str) -> impl Iterator<Item = usize> + 'a {
    let kinds = events.by_name("kind").unwrap();
    (0..events.rows()).filter(move |row| kinds.text(*row) == Some(kind))
}

fn delivered(summary: &Summary) -> Vec<(&str, u64)> {
    summary.flows.iter().map(|flow| (flow.name.as_str(), flow.bytes_delivered)).collect()
}

/// The packets in a capture: the blocks of type 6 of a pcapng file in the byte order of this machine.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    const ENHANCED_PACKET: u32 = 6;
    let bytes = std::fs::read(file).unwrap();
    let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut packets = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if number(at) == ENHANCED_PACKET as usize {
            packets.push(bytes[at + 28..at + 28 + number(at + 20)].to_vec());
        }
        at += number(at + 4);
    }
    packets
}

#[test]
fn flows_over_ipv6_arrive_byte_by_byte_and_every_packet_is_in_the_books_and_in_the_capture() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = |pace| parsed(&slower(OFFICE, pace, &[("duration", 6, "s")]));
    let observed = |scenario: Scenario| {
        let capture = CaptureRequest {
            directory: directory.path().to_owned(),
            nodes: plan_captures(&scenario, &CaptureNodes::All).unwrap().nodes,
            snap_length: None,
            limit_bytes: u64::MAX,
        };
        run_observed(scenario, Observation { trace: true, capture: Some(capture), ..Observation::default() })
    };
    let Some(Ran { summary, events, .. }) = completed_when(|pace| observed(scenario(pace))) else { return };
    assert!(summary.flows.iter().all(|flow| flow.complete), "{}", summary_json(&summary));
    assert_eq!(
        delivered(&summary),
        [("file", 1_000_000), ("pages", 15_000), ("pages.requests", 2_000), ("voice", 8_000)]
    );
    for flow in &summary.flows {
        assert!(flow.segments_arrived > 0 && flow.rtt_samples > 0, "{}", summary_json(&summary));
    }
    // The kernel's TCP was looked into, and its messages are understood.
    assert!(rows(&events, "tcp-state").count() > 0);
    let [messages, details] = ["message", "detail"].map(|name| events.by_name(name).unwrap());
    for row in rows(&events, "message-sent") {
        assert_ne!(messages.text(row), Some("Malformed"), "{:?}", details.text(row));
    }

    let seen = packets(&directory.path().join("server.pcapng"));
    let mut sent = 0;
    for bytes in &seen {
        let packet = Packet::parse(bytes, Understood::PLAIN_IPV6).unwrap();
        if packet.protocol == protocol::TCP {
            let ends = [packet.source(), packet.destination()];
            assert!([[CLIENT, SERVER], [SERVER, CLIENT]].contains(&ends), "{ends:?}");
            let (segment, data) = Segment::parse(ends[0], ends[1], packet.payload).unwrap();
            assert_eq!(data.len(), usize::from(segment.payload_len));
            sent += u64::from(ends[0] == SERVER);
        }
    }
    let of_server = rows(&events, "segment-sent");
    let nodes = events.by_name("node").unwrap();
    assert_eq!(of_server.filter(|row| nodes.text(*row) == Some("server")).count() as u64, sent);
}

#[test]
fn a_transfer_over_ipv6_delivers_the_same_bytes_in_both_worlds() {
    let mut simulation =
        careof_sim::Simulation::new(parsed(OFFICE), "test.toml", 0, careof_sim::Observation::default())
            .unwrap();
    simulation.advance(Instant::MAX).unwrap();
    let simulated = simulation.finish().unwrap();
    assert!(simulated.flows.iter().all(|flow| flow.complete), "{}", summary_json(&simulated));
    let later = |pace| parsed(&slower(OFFICE, pace, &[("duration", 6, "s")]));
    let Some(Ran { summary, .. }) = completed(later) else { return };
    assert_eq!(delivered(&summary), delivered(&simulated));
}

/// The link between two routers takes no full packet; `more` stands in the table of the sender's.
fn through_a_narrow_link(pace: u64, more: &str) -> String {
    let duration = 6 * pace;
    format!(
        r#"
duration = "{duration} s"
ip_version = 6
[links]
wide = {{ rate = "20 Mbit/s", delay = "2 ms", between = ["server", "near"]{more} }}
narrow = {{ rate = "20 Mbit/s", delay = "2 ms", mtu = 1300, between = ["near", "far"] }}
last = {{ rate = "20 Mbit/s", delay = "2 ms", between = ["far", "client"] }}
[[flow]]
name = "file"
from = "server"
to = "client"
size = "300 kB"
tcp = {{ variant = "kernel", congestion = "reno" }}
"#
    )
}

#[test]
fn a_router_that_cannot_pass_a_packet_on_says_so_and_the_sender_listens() {
    let scenario = |pace| parsed(&through_a_narrow_link(pace, ""));
    let Some(Ran { summary, events, .. }) = completed(scenario) else { return };
    assert!(flow(&summary, "file").complete, "{}", summary_json(&summary));
    let [messages, nodes] = ["message", "node"].map(|name| events.by_name(name).unwrap());
    let too_big =
        |row: &usize| messages.text(*row) == Some("PacketTooBig") && nodes.text(*row) == Some("server");
    assert!(rows(&events, "message-received").any(|row| too_big(&row)));
    assert!(summary.icmp_filtered.is_empty());
}

#[test]
fn a_packet_too_big_that_is_filtered_leaves_a_black_hole_that_the_summary_names() {
    // It never completes.
    let Some(Ran { summary, .. }) = run(&through_a_narrow_link(1, ", icmp_up = \"filtered\"")) else {
        return;
    };
    let flow = flow(&summary, "file");
    assert!(!flow.complete, "{}", summary_json(&summary));
    let [filtered] = &summary.icmp_filtered[..] else { panic!("{:?}", summary.icmp_filtered) };
    assert_eq!((filtered.link.as_str(), filtered.mtu_bytes), ("wide.up", 1300));
    assert_eq!(filtered.messages, summary.packets.dropped["icmp-filtered"]);
}

#[test]
fn a_link_is_measured_by_echoes_and_a_train_of_ipv6() {
    let text = r#"
        duration = "3 s"
        ip_version = 6
        [links]
        wire = { rate = "2 Mbit/s", delay = "5 ms", between = ["left", "right"] }
        [[flow]]
        name = "accuracy"
        from = "left"
        to = "right"
        kind = "probe"
    "#;
    let later = |pace| slower(text, pace, &[("duration", 3, "s")]);
    // It has time for both, the echoes and the train.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let [probe] = &summary.probes[..] else { panic!("{} probes", summary.probes.len()) };
        probe.echoes_answered > 0 && probe.rate_error.is_some()
    };
    let Some(Ran { summary, .. }) = paced(later, is_as_planned) else { return };
    let probe = &summary.probes[0];
    assert!((1..=probe.echoes_sent).contains(&probe.echoes_answered), "{probe:?}");
    // The link is never faster than it is; how much later its hosts see a packet is this machine's affair.
    assert!(probe.round_trip_error_median.unwrap() >= 0.0, "{probe:?}");
    assert!(probe.rate_error.unwrap().is_finite(), "{probe:?}");
}

#[test]
fn a_program_is_told_addresses_of_ipv6_and_its_connection_is_followed() {
    let text = r#"
        duration = "4 s"
        ip_version = 6
        [links]
        wire = { rate = "10 Mbit/s", delay = "1 ms", between = ["left", "right"] }
        [[flow]]
        name = "web"
        from = "left"
        to = "right"
        start = "1 s"
        command = ["python3", "-c", "import socket; s = socket.create_connection(('{right}', 8080)); s.sendall(b'x' * 70000); s.shutdown(1); print(s.recv(100).decode())"]
        server = ["python3", "-c", "import socket; l = socket.create_server(('::', 8080), family=socket.AF_INET6); c, a = l.accept(); n = 0\nwhile d := c.recv(9999): n += len(d)\nc.sendall(str(n).encode())"]
    "#;
    if careof_testbed::find("python3").is_none() {
        return careof_testbed::skip("python3 is not installed");
    }
    // The server has until the start of the flow to listen.
    let later = |pace| slower(text, pace, &[("duration", 4, "s"), ("start", 1, "s")]);
    let is_as_planned = |Ran { outputs, .. }: &Ran| {
        outputs
            .iter()
            .any(|output| output.which == "command" && output.is_success && !output.stdout.is_empty())
    };
    let Some(Ran { summary, outputs, .. }) = paced(later, is_as_planned) else { return };
    let output = outputs.iter().find(|output| output.which == "command").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "70000\n");
    assert_eq!(delivered(&summary), [("web.1", 70_000), ("web.1.back", 5)]);
}

#[test]
fn on_a_shared_medium_packets_of_ipv6_go_straight_to_whom_they_are_for() {
    let text = |pace: u64| {
        let duration = 5 * pace;
        format!(
            r#"
duration = "{duration} s"
ip_version = 6
[media.lan]
rate = "10 Mbit/s"
delay = "1 us"
[links]
office = {{ medium = "lan", between = ["server", "client-*"], count = 2 }}
[[flow]]
name = "file"
from = "client-1"
to = "client-2"
size = "500 kB"
tcp = {{ variant = "kernel" }}
"#
        )
    };
    let Some(Ran { summary, .. }) = completed(|pace| parsed(&text(pace))) else { return };
    assert!(flow(&summary, "file").complete, "{}", summary_json(&summary));
    for link in &summary.links {
        // Around the transfer there are messages of the hosts to all on the link, the more the longer it takes.
        let carries = link.name.starts_with("lan-client-1-client-2");
        let bytes = link.delivered_bytes;
        assert!(if carries { bytes > 5_000 } else { bytes < 50_000 }, "{}: {bytes}", link.name);
    }
}
