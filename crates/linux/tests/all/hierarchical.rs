//! Hierarchical Mobile IPv6 (RFC 5380) on real hosts: movements within a domain and to another one, with the kernel's TCP. Where this
//! machine has no namespaces or no TUN devices for this user the tests say so and pass.

use crate::common::{Ran, did, flow, paced, slower};
use careof_metrics::summary_json;
use careof_trace::Columns;

/// Links `a` and `b` are in the domain of `map-west`, `c` in that of `map-east`.
const WALK: &str = r#"
duration = "11 s"
[nodes]
map-west = { role = "map", domain = ["router-w"] }
map-east = { role = "map", domain = ["router-e"] }
[links]
home-core = { preset = "ethernet-100m", delay = "30 ms", between = ["core", "home-agent"] }
server = { preset = "ethernet-100m", delay = "5 ms", between = ["core", "correspondent"] }
core-west = { preset = "ethernet-100m", delay = "5 ms", between = ["core", "map-west"] }
core-east = { preset = "ethernet-100m", delay = "5 ms", between = ["core", "map-east"] }
west = { preset = "ethernet-100m", delay = "2 ms", between = ["map-west", "router-w"] }
east = { preset = "ethernet-100m", delay = "2 ms", between = ["map-east", "router-e"] }
a = { rate = "4 Mbit/s", delay = "10 ms", between = ["router-w", "mobile"] }
b = { rate = "2 Mbit/s", delay = "20 ms", between = ["router-w", "mobile"] }
c = { rate = "4 Mbit/s", delay = "10 ms", between = ["router-e", "mobile"] }
[mobility]
protocol = "mobile-ipv6"
start = "a"
[[handover]]
at = "3 s"
from = "a"
to = "b"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
[[handover]]
at = "7 s"
from = "b"
to = "c"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
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

fn walked(more: &str, is_as_planned: impl Fn(&Ran) -> bool) -> Option<Ran> {
    let text = format!("{more}\n{WALK}");
    let times = [("duration", 11, "s"), ("at", 7, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
    paced(|pace| slower(&text, pace, &times), |ran: &Ran| ran.resumes_after(2) && is_as_planned(ran))
}

/// When `node` received a message, in the order of time.
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
fn of_a_movement_within_a_domain_the_anchor_point_hears_alone() {
    let Some(Ran { summary, events, .. }) = walked("", |_| true) else { return };
    for handover in &summary.handovers {
        assert!(handover.ready_at.is_some(), "{}", summary_json(&summary));
    }
    // A path is ready when the anchor point, or the home agent, has answered, and not when the link is there.
    let [at, kinds, causes] = ["time_ns", "kind", "cause"].map(|name| events.by_name(name).unwrap());
    let is_registration =
        |row: &usize| kinds.text(*row) == Some("handover") && causes.text(*row) == Some("registered");
    let registered: Vec<_> =
        (0..events.rows()).filter(is_registration).filter_map(|row| at.number(row)).collect();
    for handover in &summary.handovers {
        let ready_at = handover.ready_at.map(|at| i128::from(at.as_nanos()));
        assert!(ready_at.is_some_and(|at| registered.contains(&at)), "{ready_at:?} of {registered:?}");
    }
    let heard = |node| received(&events, node, "BindingUpdate");
    assert!(heard("map-west") >= 2 && heard("map-east") >= 1, "{} {}", heard("map-west"), heard("map-east"));
    // It learns of an address in each domain; an update that was lost, or slow, may have been repeated.
    assert!((2..=4).contains(&heard("home-agent")), "{}", heard("home-agent"));
    let details = events.by_name("detail").unwrap();
    let bindings = (0..events.rows()).filter_map(|row| details.text(row));
    let at_home: std::collections::BTreeSet<&str> =
        bindings.filter(|text| text.contains(" at 2001:db8:0:")).collect();
    assert!(at_home.len() >= 5, "three on links, and two regional ones: {at_home:?}");
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    let malformed =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some("Malformed");
    assert_eq!((0..events.rows()).filter(malformed).count(), 0);
}

#[test]
fn with_the_default_assists_the_anchor_point_sends_again_what_a_movement_has_cost() {
    let replayed = |ran: &Ran| did(&ran.events, "map-west", "replay") > 0;
    let Some(Ran { summary, events, .. }) = walked("assist = \"default\"", replayed) else { return };
    assert!(did(&events, "map-west", "replay") > 0, "{}", summary_json(&summary));
    assert!(flow(&summary, "download").packets_replayed > 0, "{}", summary_json(&summary));
}
