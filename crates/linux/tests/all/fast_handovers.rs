//! Fast handovers (RFC 5568) on real hosts: one that is announced, and one that is not, with the kernel's TCP. Where this machine has no
//! namespaces or no TUN devices for this user the tests say so and pass.

use crate::common::{Ran, paced, slower};
use careof_metrics::summary_json;
use careof_trace::Columns;

const WALK: &str = r#"
duration = "11 s"
[links]
home-core = { preset = "ethernet-100m", delay = "30 ms", between = ["core", "home-agent"] }
server = { preset = "ethernet-100m", delay = "5 ms", between = ["core", "correspondent"] }
core-west = { preset = "ethernet-100m", delay = "1 ms", between = ["core", "router-west"] }
core-east = { preset = "ethernet-100m", delay = "1 ms", between = ["core", "router-east"] }
west = { rate = "4 Mbit/s", delay = "10 ms", between = ["router-west", "mobile"] }
east = { rate = "4 Mbit/s", delay = "10 ms", between = ["router-east", "mobile"] }
[mobility]
protocol = "mobile-ipv6"
start = "west"
fast_handover = {}
[[handover]]
at = "4 s"
from = "west"
to = "east"
style = "break-before-make"
interruption = "300 ms"
notice = "1000 ms"
[[handover]]
at = "7 s"
from = "east"
to = "west"
style = "break-before-make"
interruption = "300 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = { variant = "kernel", congestion = "cubic" }
[[flow]]
name = "upload"
from = "mobile"
to = "correspondent"
tcp = { variant = "kernel", congestion = "reno" }
"#;

fn received(events: &Columns, node: &str, message: &str) -> usize {
    let [kinds, nodes, messages] = ["kind", "node", "message"].map(|name| events.by_name(name).unwrap());
    let is_it = |row: &usize| {
        kinds.text(*row) == Some("message-received")
            && nodes.text(*row) == Some(node)
            && messages.text(*row) == Some(message)
    };
    (0..events.rows()).filter(is_it).count()
}

#[test]
fn access_routers_send_on_what_comes_for_a_mobile_node_that_moves() {
    let times = [
        ("duration", 11, "s"),
        ("at", 7, "s"),
        ("at", 4, "s"),
        ("notice", 1000, "ms"),
        ("interruption", 300, "ms"),
    ];
    let is_as_planned =
        |ran: &Ran| ran.resumes_after(2) && received(&ran.events, "mobile", "FastBindingAcknowledgment") > 0;
    let ran = paced(|pace| slower(WALK, pace, &times), is_as_planned);
    let Some(Ran { summary, events, .. }) = ran else { return };
    for handover in &summary.handovers {
        assert!(handover.ready_at.is_some(), "{}", summary_json(&summary));
    }
    // The announced one: RtSolPr and PrRtAdv, the update, and what the routers say to each other.
    for (node, message) in [
        ("router-west", "RtSolPr"),
        ("mobile", "PrRtAdv"),
        ("router-west", "FastBindingUpdate"),
        ("router-east", "HandoverInitiate"),
        ("router-west", "HandoverAcknowledge"),
        ("mobile", "FastBindingAcknowledgment"),
        // The other one: from the new link.
        ("router-east", "FastBindingUpdate"),
    ] {
        assert!(received(&events, node, message) >= 1, "{message} at {node}");
    }
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    let malformed =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some("Malformed");
    assert_eq!((0..events.rows()).filter(malformed).count(), 0);
}
