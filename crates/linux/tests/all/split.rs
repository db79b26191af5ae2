//! The relay of `split` on real hosts. Where this machine has no namespaces or no TUN devices for this user the tests
//! say so and pass.

use crate::common::{Ran, completed, flow, paced, parsed};
use careof_linux::{LinuxRun, Observation, check};
use careof_metrics::{Resumption, Summary, summary_json};
use careof_trace::Columns;

/// Two links, a gap of a second between them, and a relay at the home agent; so many times as slow.
fn scenario(pace: u64, assist: &str, flows: &str) -> String {
    let (duration, at) = (12 * pace, 2 * pace);
    format!(
        r#"
assist = {{ use = "split"{assist} }}
duration = "{duration} s"
[links.one]
rate = "4 Mbit/s"
delay = "5 ms"
[links.two]
rate = "4 Mbit/s"
delay = "5 ms"
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "{at} s"
from = "one"
to = "two"
style = "break-before-make"
interruption = "{pace} s"
queued = "drop"
{flows}"#
    )
}

/// With a least timeout that is shorter than the gap, and longer than a machine makes a flow wait at some pace.
fn kernel(pace: u64) -> String {
    let rto_min = 600 * pace;
    format!("{{ variant = \"kernel\", congestion = \"reno\", rto_min = \"{rto_min} ms\" }}")
}

/// Three seconds of the link's time.
const BYTES: u64 = 1_500_000;
/// The default.
const BUFFER: i128 = 256 << 10;

fn bulk(pace: u64, name: &str, from: &str, to: &str) -> String {
    let (size, tcp) = (BYTES * pace, kernel(pace));
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nsize = \"{size} B\"\ntcp = {tcp}\n"
    )
}

/// Whether a [`bulk`] flow is through; then every byte of it has arrived, and nothing else.
fn is_whole(summary: &Summary, name: &str) -> bool {
    let flow = flow(summary, name);
    let pace = summary.duration.as_secs() / 12;
    assert!(!flow.complete || flow.bytes_delivered == BYTES * pace, "{}", summary_json(summary));
    flow.complete
}

/// Segments that left a node for a flow.
fn segments(events: &Columns, flow: &str, node: &str) -> usize {
    let column = |name| events.by_name(name).unwrap();
    let is = |row: &usize, name, value: &str| column(name).text(*row) == Some(value);
    (0..events.rows())
        .filter(|row| is(row, "kind", "segment-sent") && is(row, "flow", flow) && is(row, "node", node))
        .count()
}

/// What the relay said it did, in bytes.
fn relayed(events: &Columns, what: &str) -> Vec<i128> {
    let column = |name| events.by_name(name).unwrap();
    let is = |row: &usize, name, value: &str| column(name).text(*row) == Some(value);
    let rows = (0..events.rows()).filter(|row| is(row, "kind", "assist") && is(row, "cause", what));
    rows.filter_map(|row| column("assist_bytes").number(row)).collect()
}

#[test]
fn the_fixed_sender_sees_nothing_of_the_gap_and_every_byte_arrives_in_its_place() {
    let text = |pace| scenario(pace, "", &bulk(pace, "download", "correspondent", "mobile"));
    // Its path lost nothing, the relay's did.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let download = flow(summary, "download");
        is_whole(summary, "download")
            && download.timeouts == 0
            && summary.handovers[0].flows[0].stall == Resumption::Resumed
            && summary.packets.dropped.contains_key("link-down")
    };
    let Some(Ran { summary, events, .. }) = paced(text, is_as_planned) else { return };
    let download = flow(&summary, "download");
    assert!(segments(&events, "download", "correspondent") > 0);
    assert!(segments(&events, "download", "home-agent") > 0, "it goes on by another connection");
    let held = relayed(&events, "hold");
    assert!(held.iter().max().is_some_and(|most| (1..=BUFFER).contains(most)), "{held:?}");
    assert_eq!(relayed(&events, "close"), [i128::from(download.bytes_delivered)]);
}

#[test]
fn over_ipv6_the_relay_speaks_to_both_ends_in_the_name_of_the_other() {
    let text = |pace| {
        let flows = [
            bulk(pace, "download", "correspondent", "mobile"),
            bulk(pace, "upload", "mobile", "correspondent"),
        ];
        scenario(pace, "", &flows.concat()).replace("routing =", "protocol = \"mobile-ipv6\"\nrouting =")
    };
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        is_whole(summary, "download")
            && is_whole(summary, "upload")
            && flow(summary, "download").timeouts == 0
    };
    let Some(Ran { summary, events, .. }) = paced(text, is_as_planned) else { return };
    for name in ["download", "upload"] {
        assert!(segments(&events, name, "home-agent") > 0, "{name} goes on by another connection");
    }
    let held = relayed(&events, "hold");
    assert!(held.iter().max().is_some_and(|most| (1..=BUFFER).contains(most)), "{held:?}");
    let bytes = i128::from(flow(&summary, "download").bytes_delivered);
    assert_eq!(relayed(&events, "close"), [bytes, bytes]);
    let optimised = scenario(1, "", &bulk(1, "download", "correspondent", "mobile"))
        .replace("routing =", "protocol = \"mobile-ipv6\"\nroute_optimization = true\nrouting =");
    let said = check(&parsed(&optimised)).unwrap_err().to_string();
    assert!(said.starts_with("mobility.route_optimization: true") && said.contains("\"split\""), "{said}");
}

#[test]
fn an_upload_that_a_gap_cut_reaches_the_fixed_host_whole() {
    let text = |pace| scenario(pace, "", &bulk(pace, "upload", "mobile", "correspondent"));
    // Its own path is the one with the gap.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let upload = flow(summary, "upload");
        is_whole(summary, "upload") && upload.timeouts > 0
    };
    let Some(Ran { events, .. }) = paced(text, is_as_planned) else { return };
    assert!(segments(&events, "upload", "home-agent") > 0);
}

#[test]
fn requests_and_responses_pass_a_relay_both_ways() {
    let flows = |pace| {
        format!(
            "[[flow]]\nname = \"pages\"\nfrom = \"mobile\"\nto = \"correspondent\"\nkind = \"request-response\"\n\
         request = \"400 B\"\nresponse = \"30 kB\"\nthink = \"50 ms\"\nrequests = 20\ntcp = {}\n",
            kernel(pace)
        )
    };
    let Some(Ran { summary, .. }) = completed(|pace| parsed(&scenario(pace, "", &flows(pace)))) else {
        return;
    };
    let [responses, requests] = &summary.flows[..] else { panic!("{} flows", summary.flows.len()) };
    assert!(responses.complete && requests.complete, "{}", summary_json(&summary));
    assert_eq!((responses.bytes_delivered, requests.bytes_delivered), (600_000, 8000));
}

#[test]
fn an_excepted_flow_stays_one_connection() {
    let names = ["left-alone", "split"];
    let flows = |pace| names.map(|name| bulk(pace, name, "correspondent", "mobile")).concat();
    // The port at which the first flow's acceptor listens.
    let text = |pace| scenario(pace, ", except = [{ port = 5001 }]", &flows(pace));
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        names.iter().all(|name| is_whole(summary, name))
            && flow(summary, "left-alone").timeouts > 0
            && flow(summary, "split").timeouts == 0
    };
    let Some(Ran { events, .. }) = paced(text, is_as_planned) else { return };
    assert_eq!(segments(&events, "left-alone", "home-agent"), 0);
    assert!(segments(&events, "split", "home-agent") > 0);
}

#[test]
fn a_relay_stays_between_whether_the_node_is_at_home_or_behind_a_foreign_agent_or_a_narrow_link() {
    let download = |pace| bulk(pace, "download", "correspondent", "mobile");
    for change in [
        ("routing =", "home = \"one\"\nrouting ="),
        ("routing =", "care_of = \"foreign-agent\"\nrouting ="),
        // What no longer fits is not reported to the relay, in whose name it was not sent.
        ("[links.two]", "[links.two]\nmtu = \"1000 B\""),
    ] {
        let text = |pace| scenario(pace, "", &download(pace)).replace(change.0, change.1);
        let is_as_planned = |Ran { summary, .. }: &Ran| {
            let download = flow(summary, "download");
            is_whole(summary, "download") && download.timeouts == 0
        };
        let Some(Ran { events, .. }) = paced(text, is_as_planned) else { return };
        assert!(segments(&events, "download", "home-agent") > 0, "{change:?}");
    }
}

#[test]
fn what_a_relay_cannot_do_is_refused_by_its_key() {
    let refused = |text: &str| match check(&parsed(text)) {
        Err(error) => error.to_string(),
        Ok(()) => panic!("accepted: {text}"),
    };
    let scenario = |assist: &str, flows: &str| scenario(1, assist, flows);
    let download = bulk(1, "download", "correspondent", "mobile");
    let said = refused(&scenario(", split = { buffer = \"4 KiB\" }", &download));
    assert!(said.starts_with("assist.split.buffer: 4096 B cannot be done on Linux"), "{said}");
    let stations = scenario(", split = { at = \"foreign-agent\" }", &download);
    let said = refused(&stations.replace("routing =", "care_of = \"foreign-agent\"\nrouting ="));
    assert!(said.starts_with("assist.split.at: \"foreign-agent\""), "{said}");
    let tcp = kernel(1);
    let own = format!(", split = {{ tcp = {tcp} }}");
    let said = refused(&scenario(&own, &download).replacen("600 ms", "1 ns", 1));
    assert!(said.starts_with("assist.split.tcp.rto_min:"), "{said}");
    let program = "[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\ncommand = \"true\"\n";
    let said = refused(&scenario("", program));
    assert!(said.starts_with("flow.0.command:") && said.contains("`except ="), "{said}");
    let by_peer = ", except = [{ prefix = \"correspondent\" }]";
    assert_eq!(check(&parsed(&scenario(by_peer, program))), Ok(()));
    // The switches of its two connections are one host's.
    let other = download.replace(&tcp, "\"legacy\"");
    let text = scenario(&own, &other);
    let observation = Observation { trace: false, ..Observation::default() };
    let Err(error) = LinuxRun::new(parsed(&text), "test.toml", 0, observation) else { panic!("accepted") };
    let said = error.to_string();
    assert!(said.starts_with("assist.split.tcp: net.ipv4.tcp_") && said.contains("flow download"), "{said}");
}
