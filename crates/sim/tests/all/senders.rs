//! Senders that are told of handovers and of links, in whole worlds.

use crate::common::{captured_at, finish};
use careof_base::{Duration, Instant};
use careof_metrics::{FlowSummary, HandoverSummary, Summary, summary_json};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// From a fast link to a slow one, whose round trip is two hundred times as long; nothing is lost between them.
const TO_SLOW: &str = r#"
duration = "90 s"
[links]
first = "wavelan"
second = "gsm-csd"
[mobility]
protocol = "mobile-ipv4"
[[handover]]
at = "40 s"
from = "first"
to = "second"
[[flow]]
name = "bulk"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "linux-2.0"
"#;

const UPLOAD: [&str; 2] = ["flow.bulk.from=mobile", "flow.bulk.to=correspondent"];

/// From the slow link to the fast one, two seconds without any between them.
fn to_fast() -> String {
    TO_SLOW
        .replace("first = \"wavelan\"\nsecond = \"gsm-csd\"", "first = \"gsm-csd\"\nsecond = \"wavelan\"")
        .replace("to = \"second\"", "to = \"second\"\nstyle = \"break-before-make\"\ninterruption = \"2 s\"")
}

/// The sender takes what the mobile node knows of its path; `cross_layer.rs` has the others.
const TOLD_THE_PATH: &str = "{ use = \"tcp-cm\", tcp-cm = { estimator = \"link\" } }";

/// As many ways of telling a sender of a handover as there are.
const RESPONSES: [&str; 7] = [
    "rto-reset",
    "{ use = \"rto-reset\", rto-reset = { slow_start = true } }",
    "{ use = \"rto-reset\", rto-reset = { by = \"option\" } }",
    "{ use = \"rto-reset\", rto-reset = { by = \"option\", slow_start = true } }",
    TOLD_THE_PATH,
    "{ use = \"tcp-cm\", tcp-cm = { estimator = \"link\", resend = false, suspend = false } }",
    "mobile-tcp",
];

fn simulation(text: &str, overrides: &[&str], observation: Observation) -> Simulation {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    Simulation::new(scenario, "test.toml", 0, observation).unwrap()
}

fn traced(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    finish(simulation(text, overrides, Observation { trace: true, ..Observation::default() }))
}

fn run(text: &str, overrides: &[&str]) -> Summary {
    finish(simulation(text, overrides, Observation::default())).0
}

fn with(text: &str, assist: &str, overrides: &[&str]) -> Summary {
    run(text, &[&[&*format!("assist={assist}")], overrides].concat())
}

fn flow(summary: &Summary) -> &FlowSummary {
    &summary.flows[0]
}

fn handover(summary: &Summary) -> &HandoverSummary {
    &summary.handovers[0]
}

fn rows<'a>(events: &'a Columns, kind: &'a str) -> impl Iterator<Item = usize> + 'a {
    let kinds = events.by_name("kind").unwrap();
    (0..events.rows()).filter(move |row| kinds.text(*row) == Some(kind))
}

/// Node, assist and cause of every event of an assist, in order.
fn said(events: &Columns) -> Vec<[String; 3]> {
    let text = |column: &str, row: usize| events.by_name(column).unwrap().text(row).unwrap().to_owned();
    rows(events, "assist").map(|row| ["node", "assist", "cause"].map(|column| text(column, row))).collect()
}

#[test]
fn on_a_slower_path_a_sender_that_was_told_has_fewer_spurious_timeouts_in_both_directions() {
    for direction in [&[][..], &UPLOAD] {
        let without = with(TO_SLOW, "none", direction);
        assert!(flow(&without).spurious_timeouts >= 6, "{:?}", flow(&without));
        assert_eq!(flow(&without).advice_taken, 0);
        for assist in RESPONSES {
            let told = with(TO_SLOW, assist, direction);
            let (told, without) = (flow(&told), flow(&without));
            assert!(told.spurious_timeouts < without.spurious_timeouts, "{assist} {direction:?}: {told:?}");
            assert_eq!(told.advice_taken, 1, "{assist} {direction:?}");
        }
    }
}

#[test]
fn on_a_faster_path_after_losses_a_sender_that_was_told_does_not_wait_for_the_old_paths_timeout() {
    let text = to_fast();
    for direction in [&[][..], &UPLOAD] {
        for tcp in ["linux-2.0", "linux"] {
            let tcp = format!("flow.bulk.tcp={tcp}");
            let how = [direction, &[&*tcp]].concat();
            let stall = |assist: &str| handover(&with(&text, assist, &how)).stall_after.unwrap();
            let without = stall("none");
            assert!(without > Duration::from_secs(19), "{how:?}: {without:?}");
            for assist in RESPONSES {
                let told = stall(assist);
                // The initial timeout of Linux 2.0, and a round trip.
                assert!(told < Duration::from_millis(3_100), "{assist} {how:?}: {told:?}");
            }
            // Whoever sends again at once does not wait for any timeout: less than two round trips.
            for assist in [TOLD_THE_PATH, "mobile-tcp"] {
                let told = stall(assist);
                assert!(told < Duration::from_millis(20), "{assist} {how:?}: {told:?}");
            }
        }
    }
}

const OVER_IPV6: &str = "mobility.protocol=mobile-ipv6";

/// Times that differ by what the longer headers take.
fn are_alike(one: Duration, other: Duration) -> bool {
    one.abs_diff(other) <= Duration::from_millis(10) + one.max(other) / 20
}

#[test]
fn over_ipv6_senders_are_told_as_over_ipv4() {
    let text = to_fast();
    for direction in [&[][..], &UPLOAD] {
        for assist in RESPONSES {
            let [ipv4, ipv6] = [&[][..], &[OVER_IPV6]].map(|version| {
                let how = [direction, version].concat();
                let slow = with(TO_SLOW, assist, &how);
                let fast = with(&text, assist, &how);
                let counts = [&slow, &fast]
                    .map(|summary| (flow(summary).advice_taken, flow(summary).spurious_timeouts));
                (counts, handover(&fast).stall_after.unwrap())
            });
            let what = format!("{assist} {direction:?}: {ipv4:?} {ipv6:?}");
            for ((told, spurious), (told_over_ipv6, spurious_over_ipv6)) in ipv4.0.into_iter().zip(ipv6.0) {
                assert_eq!(told, told_over_ipv6, "{what}");
                // Which segments are under way at the handover differs by what fits into one.
                assert!(spurious.abs_diff(spurious_over_ipv6) <= 2, "{what}");
            }
            // Where the first timer runs out of those that are under way when the option comes is a matter of phase.
            let least_timeout = Duration::from_millis(220);
            assert!(
                are_alike(ipv4.1, ipv6.1) || ipv4.1.max(ipv6.1) < least_timeout && assist.contains("option"),
                "{what}"
            );
        }
    }
}

#[test]
fn an_estimator_that_follows_a_fall_needs_nobody_to_tell_it() {
    // A second after a soft handover to the fast link, losses: the next handover has a gap.
    let text = to_fast()
        .replace("style = \"break-before-make\"\ninterruption = \"2 s\"\n", "")
        .replace("second = \"wavelan\"", "second = \"wavelan\"\nthird = \"wavelan\"")
        // How far the timer has come down in that second depends on when the last segments leave the slow link.
        .replace("[mobility]", "[mobility]\nleave_room = false");
    let at = |instant: &str| {
        let gap = format!(
            "[[handover]]\nat = \"{instant}\"\nfrom = \"second\"\nto = \"third\"\nstyle = \"break-before-make\"\n\
             interruption = \"300 ms\"\n[[flow]]"
        );
        text.replace("[[flow]]", &gap)
    };
    // As many samples in a row as never come: what is left is RFC 6298 with the floor there was.
    let never = "{ use = \"rto-fast-decrease\", rto-fast-decrease = { samples = 100000 } }";
    for tcp in ["sack", "linux"] {
        let tcp = format!("flow.bulk.tcp={tcp}");
        // How far the timer has come down by then depends on when the last segments left the slow link.
        let median = |assist: &str| {
            let stall = |instant| with(&at(instant), assist, &[&tcp]).handovers[1].stall_after.unwrap();
            let mut stalls = ["40.8 s", "40.9 s", "41 s", "41.1 s", "41.2 s", "41.3 s", "41.4 s"].map(stall);
            stalls.sort_unstable();
            stalls[3]
        };
        let (none, never, fast) = (median("none"), median(never), median("rto-fast-decrease"));
        assert!(none.min(never) > Duration::from_secs(4), "{tcp}: {none:?}, {never:?}");
        assert!(fast < Duration::from_secs(1), "{tcp}: {fast:?}");
    }
    let text = at("41 s");
    let summary = with(&text, "rto-fast-decrease", &[]);
    assert_eq!((flow(&summary).tcp.rto.as_str(), flow(&summary).advice_taken), ("fast-decrease", 0));
    // A flow that is excepted keeps what it has.
    let except = "{ use = \"rto-fast-decrease\", except = [{ prefix = \"correspondent\" }] }";
    assert_eq!(flow(&with(&text, except, &[])).tcp.rto, flow(&with(&text, "none", &[])).tcp.rto);
}

#[test]
fn a_sender_that_knows_that_the_path_is_gone_has_no_timeout_in_the_outage() {
    let text = to_fast().replace("gsm-csd", "wavelan");
    for version in [&[][..], &[OVER_IPV6]] {
        let how = [&UPLOAD[..], version].concat();
        let timeouts = |assist: &str| handover(&with(&text, assist, &how)).flows[0].timeouts;
        assert!(timeouts("none") >= 2, "{}", timeouts("none"));
        assert!(timeouts("{ use = \"tcp-cm\", tcp-cm = { estimator = \"link\", suspend = false } }") >= 2);
        assert_eq!(timeouts(TOLD_THE_PATH), 0);
        assert_eq!(timeouts("mobile-tcp"), 0);
    }
}

#[test]
fn the_trace_says_who_told_whom_and_by_which_way() {
    let first = |assist: &str, direction: &[&str]| {
        let assist = format!("assist={assist}");
        let (_, events) = traced(TO_SLOW, &[&[&*assist], direction].concat());
        said(&events)
    };
    let owned = |all: &[[&str; 3]]| all.iter().map(|row| row.map(str::to_owned)).collect::<Vec<_>>();
    // At once, and nothing on the way.
    assert_eq!(first("rto-reset", &[]).last(), owned(&[["correspondent", "rto-reset", "reset-rto"]]).last());
    for (assist, [own, peers]) in [("tcp-cm", ["resume", "replaced"]), (TOLD_THE_PATH, ["back", "back"])] {
        let expected =
            [["mobile", "tcp-cm", own], ["mobile", "tcp-cm", "tell"], ["correspondent", "tcp-cm", peers]];
        assert_eq!(first(assist, &[]), owned(&expected));
    }
    let by_option = first("mobile-tcp", &[]);
    let heard = by_option.iter().filter(|[node, _, cause]| node == "correspondent" && cause == "back");
    let told = by_option.iter().filter(|[_, _, cause]| cause == "tell");
    assert_eq!((heard.count(), told.count()), (1, 3));
}

#[test]
fn an_option_takes_its_bytes_in_acknowledgements_and_in_nothing_else() {
    // 12 bytes in each of three segments, and what the first of them is more than there would have been: 40 + 12.
    let up = |assist: &str| {
        let (summary, events) = traced(TO_SLOW, &[&format!("assist={assist}"), "duration=50 s"]);
        let size = |row: usize| events.by_name("size_bytes").unwrap().number(row).unwrap();
        let node = |row: usize| events.by_name("node").unwrap().text(row) == Some("mobile");
        let sizes: Vec<u64> =
            rows(&events, "segment-sent").filter(|row| node(*row)).map(|row| size(row) as u64).collect();
        (summary, sizes)
    };
    let option = "{ use = \"rto-reset\", rto-reset = { by = \"option\" } }";
    let (_, with_option) = up(option);
    let count = |sizes: &[u64], bytes: u64| sizes.iter().filter(|size| **size == bytes).count();
    assert_eq!(count(&with_option, 52), 3);
    let (_, without) = up("rto-reset");
    assert_eq!(count(&without, 52), 0);
    let (_, mobile_tcp) = up("mobile-tcp");
    assert_eq!(count(&mobile_tcp, 56), 3);
}

#[test]
fn an_option_or_a_datagram_that_is_lost_tells_nothing() {
    for assist in [
        "mobile-tcp",
        "{ use = \"rto-reset\", rto-reset = { by = \"option\" } }",
        "tcp-cm",
        "tcp-ho",
        "demo-vegas",
    ] {
        let summary = with(TO_SLOW, assist, &[]);
        assert_eq!(flow(&summary).advice_taken, 1, "{assist}");
        let mut heard = 0;
        for seed in 0..12 {
            let how = [&*format!("seed={seed}"), "links.second.loss_up=0.5", "duration=70 s"];
            let lost = with(TO_SLOW, assist, &how);
            assert!(flow(&lost).advice_taken <= 1, "{assist}");
            heard += flow(&lost).advice_taken;
        }
        assert!((1..12).contains(&heard), "{assist}: {heard} of 12");
    }
}

#[test]
fn a_handover_back_and_forth_tells_each_time() {
    let there_and_back = TO_SLOW
        .replace("[[flow]]", "[[handover]]\nat = \"60 s\"\nfrom = \"second\"\nto = \"first\"\n[[flow]]");
    for direction in [&[][..], &UPLOAD] {
        for assist in RESPONSES {
            let summary = with(&there_and_back, assist, direction);
            assert_eq!(flow(&summary).advice_taken, 2, "{assist} {direction:?}");
        }
    }
}

#[test]
fn a_flow_that_is_excepted_is_told_nothing() {
    let except = "except = [{ prefix = \"correspondent\", port = 5001 }]";
    for assist in ["rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho", "demo-vegas"] {
        for direction in [&[][..], &UPLOAD] {
            let summary = with(TO_SLOW, &format!("{{ use = \"{assist}\", {except} }}"), direction);
            assert_eq!(flow(&summary).advice_taken, 0);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_however_the_run_is_cut_and_looked_at() {
    for assist in RESPONSES {
        for direction in [&[][..], &UPLOAD] {
            let assist = format!("assist={assist}");
            let how = [&[&*assist, "duration=55 s"], direction].concat();
            let at_once = summary_json(&run(TO_SLOW, &how));
            let directory = tempfile::tempdir().unwrap();
            let scenario = Scenario::parse("test.toml", TO_SLOW, &[]).unwrap();
            let capture = captured_at(directory.path(), &scenario, &CaptureNodes::All);
            let observation = Observation { trace: true, ..capture };
            let mut pieces = simulation(TO_SLOW, &how, observation);
            let mut until = Instant::ZERO;
            while pieces.advance(until).unwrap() < Instant::ZERO + pieces.duration() {
                pieces.take_events();
                until += Duration::from_micros(1_123_457);
            }
            let summary = pieces.finish().unwrap();
            assert!(summary.captures.iter().all(|capture| capture.packets > 0), "{:?}", summary.captures);
            assert_eq!(at_once, summary_json(&Summary { captures: vec![], ..summary }));
        }
    }
}

/// A cell whose link fails for a second and a half; the queue of the base station waits.
const FADE: &str = r#"
duration = "20 s"
[links]
first = { rate = "2 Mbit/s", delay = "5 ms", queue = "100 packets" }
second = { rate = "2 Mbit/s", delay = "5 ms", queue = "100 packets" }
[mobility]
care_of = "foreign-agent"
[[handover]]
at = "8 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "1.5 s"
[[handover]]
at = "9.6 s"
from = "second"
to = "first"
[[flow]]
name = "bulk"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = "linux"
"#;

#[test]
fn a_base_station_whose_link_fails_keeps_the_senders_timer_from_running_out() {
    let timeouts = |assist: &str| flow(&with(FADE, assist, &[])).timeouts;
    assert!(timeouts("none") > 0);
    assert_eq!(timeouts("ebsn"), 0);
    let (summary, events) = traced(FADE, &["assist=ebsn"]);
    let said = said(&events);
    let by = |who: &str, what: &str| {
        said.iter()
            .filter(|[node, assist, cause]| (&**node, &**assist, &**cause) == (who, "ebsn", what))
            .count()
    };
    // One as it goes down, and one every 100 ms.
    let sent = by("foreign-agent-first", "bad-state");
    assert!(sent >= 15, "{said:?}");
    assert_eq!(by("correspondent", "rearm") as u64, flow(&summary).advice_taken);
    // It knows nothing of what goes the other way.
    assert_eq!(flow(&with(FADE, "ebsn", &UPLOAD)).advice_taken, 0);
}

/// The same over IPv6, where routers are the base stations.
fn fade_over_ipv6() -> String {
    let link = |name: &str| format!("between = [\"station-{name}\", \"mobile\"]");
    let fade = FADE
        .replace("care_of = \"foreign-agent\"", "protocol = \"mobile-ipv6\"")
        .replacen("queue = \"100 packets\"", &format!("queue = \"100 packets\", {}", link("first")), 1)
        .replace("queue = \"100 packets\" }", &format!("queue = \"100 packets\", {} }}", link("second")));
    let backhaul = |name: &str| {
        format!("{name} = {{ preset = \"ethernet-100m\", between = [\"home-agent\", \"station-{name}\"] }}\n")
    };
    let [first, second] =
        ["first", "second"].map(|name| backhaul(name).replacen(name, &format!("wire-{name}"), 1));
    fade.replace("[mobility]", &format!("{first}{second}[mobility]"))
}

#[test]
fn over_ipv6_an_access_router_looks_into_tunnels_and_keeps_the_senders_timer_from_running_out() {
    let text = fade_over_ipv6();
    for more in [&[][..], &["mobility.route_optimization=true"]] {
        let timeouts = |assist: &str| flow(&with(&text, assist, more)).timeouts;
        assert!(timeouts("none") > 0, "{more:?}");
        assert_eq!(timeouts("ebsn"), 0, "{more:?}");
        let (summary, events) = traced(&text, &[&["assist=ebsn"], more].concat());
        let said = said(&events);
        let by = |who: &str, what: &str| {
            said.iter().filter(|[node, _, cause]| (&**node, &**cause) == (who, what)).count()
        };
        let sent = by("station-first", "bad-state");
        assert!(sent >= 15, "{more:?}: {said:?}");
        assert_eq!(by("correspondent", "rearm") as u64, flow(&summary).advice_taken, "{more:?}");
        let upload = [&UPLOAD[..], more].concat();
        assert_eq!(flow(&with(&text, "ebsn", &upload)).advice_taken, 0, "{more:?}");
    }
    let [ipv4, ipv6] = [FADE, &text].map(|text| with(text, "ebsn", &[]));
    let [few, many] = [&ipv4, &ipv6].map(|summary| flow(summary).advice_taken);
    assert!(few.abs_diff(many) <= 2, "{few} over IPv4, {many} over IPv6");
    let [one, other] = [&ipv4, &ipv6].map(|summary| flow(summary).bytes_delivered as f64);
    assert!((0.95..1.0).contains(&(other / one)), "{one} B over IPv4, {other} B over IPv6");
}

/// Correspondent, home agent and routers are 50 ms from each other, and packets go straight.
pub(crate) const STRAIGHT: &str = r#"
duration = "8 s"
[links]
cn-home = { rate = "unlimited", delay = "50 ms", between = ["correspondent", "home-agent"] }
cn-old = { rate = "unlimited", delay = "50 ms", between = ["correspondent", "router-old"] }
cn-new = { rate = "unlimited", delay = "50 ms", between = ["correspondent", "router-new"] }
home-old = { rate = "unlimited", delay = "50 ms", between = ["home-agent", "router-old"] }
home-new = { rate = "unlimited", delay = "50 ms", between = ["home-agent", "router-new"] }
old = { rate = "unlimited", delay = "0 s", between = ["router-old", "mobile"] }
new = { rate = "unlimited", delay = "0 s", between = ["router-new", "mobile"] }
[mobility]
protocol = "mobile-ipv6"
route_optimization = true
[[handover]]
at = "5 s"
from = "old"
to = "new"
style = "break-before-make"
queued = "drop"
[[flow]]
name = "data"
from = "correspondent"
to = "mobile"
kind = "paced"
rate = "800 kbit/s"
message = "100 B"
tcp = { profile = "reno", nagle = false }
"#;

#[test]
fn over_ipv6_a_correspondent_that_sends_straight_is_told_when_it_knows_where_to() {
    let stall = |assist: &str| handover(&with(STRAIGHT, assist, &[])).stall_after.unwrap().as_millis();
    // From the home registration on: the care-of test there and back, the update with the datagram, the data.
    assert_eq!(stall("tcp-cm"), 200);
    assert_eq!(stall(TOLD_THE_PATH), 200);
    // The test, the update and its acknowledgement, the option, the data.
    assert_eq!(stall("mobile-tcp"), 300);
    for assist in [
        "tcp-cm",
        TOLD_THE_PATH,
        "mobile-tcp",
        "tcp-ho",
        "{ use = \"rto-reset\", rto-reset = { by = \"option\" } }",
    ] {
        let (summary, events) = traced(STRAIGHT, &[&*format!("assist={assist}")]);
        let [nodes, causes] = ["node", "cause"].map(|name| events.by_name(name).unwrap());
        let at = |kind: &str, what: &[&str]| {
            let is_it = |row: &usize| {
                nodes.text(*row) == Some("correspondent")
                    && causes.text(*row).is_some_and(|cause| what.contains(&cause))
            };
            rows(&events, kind).filter(is_it).last().unwrap()
        };
        let (bound, told) =
            (at("binding", &["created"]), at("assist", &["back", "set-rto", "replaced", "handed-off"]));
        assert!(bound < told, "{assist}: told in row {told}, bound in row {bound}");
        assert_eq!(flow(&summary).timeouts, u64::from(assist.contains("rto-reset")), "{assist}");
    }
}

#[test]
fn a_base_station_gives_a_visitor_up_that_has_gone_elsewhere() {
    let gone = FADE.replace("[[handover]]\nat = \"9.6 s\"\nfrom = \"second\"\nto = \"first\"\n", "");
    let summary = with(&gone, "ebsn", &[]);
    assert!(flow(&summary).bytes_delivered > 2_500_000, "{:?}", flow(&summary));
    let stall = handover(&summary).stall_after.unwrap();
    assert!(stall < Duration::from_secs(5), "{stall:?}");
}

#[test]
fn a_base_station_tells_of_each_packet_that_its_link_lost() {
    let (start, rest) = FADE.split_once("[[handover]]").unwrap();
    let still = format!("{start}[[flow]]{}", rest.split_once("[[flow]]").unwrap().1);
    let how = ["links.first.loss=0.02", "assist=ebsn"];
    let (summary, events) = traced(&still, &how);
    let told = said(&events).iter().filter(|[_, _, cause]| cause == "bad-state").count() as u64;
    let lost = summary.links.iter().find(|link| link.name == "first.down").unwrap().dropped_packets["loss"];
    // Agent advertisements are lost, too, and nobody is told of those.
    assert!(told <= lost && told * 10 > lost * 8, "{told} of {lost}");
}
