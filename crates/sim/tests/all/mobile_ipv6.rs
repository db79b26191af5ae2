//! Mobile IPv6: whole worlds.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{captured_at, finish};
use careof_metrics::{HandoverSummary, Summary};
use careof_plan::CaptureNodes;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const WIFI_TO_LTE: &str = include_str!("../../../../scenarios/ipv6/wifi-to-lte.toml");
const DUAL_STACK: &str = include_str!("../../../../scenarios/ipv6/dual-stack.toml");
const ROUTE_OPTIMISATION: &str = include_str!("../../../../scenarios/ipv6/route-optimisation.toml");

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

/// Messages that had no effect, by reason.
fn discarded(summary: &Summary) -> BTreeMap<String, u64> {
    summary.mobility.as_ref().map(|mobility| mobility.discarded.clone()).unwrap_or_default()
}

/// How often a message of this name was sent.
fn sent(events: &Columns, message: &str) -> usize {
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    let is_one =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some(message);
    (0..events.rows()).filter(is_one).count()
}

/// The sizes of the messages of this name that were sent, bytes.
fn sizes(events: &Columns, message: &str) -> Vec<u64> {
    let [kinds, messages, sizes] =
        ["kind", "message", "size_bytes"].map(|name| events.by_name(name).unwrap());
    let is_one =
        |row: &usize| kinds.text(*row) == Some("message-sent") && messages.text(*row) == Some(message);
    let size = |row| sizes.number(row).and_then(|size| u64::try_from(size).ok());
    (0..events.rows()).filter(is_one).filter_map(size).collect()
}

#[test]
fn a_connection_over_ipv6_goes_on_after_a_gap_and_nothing_is_lost_from_the_books() {
    for more in [&[][..], &["mobility.duplicate_address_detection=full"], &["mobility.home=wifi"]] {
        let (summary, events) = run(WIFI_TO_LTE, more);
        let [handover] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
        let ready = handover.ready_at.unwrap_or_else(|| panic!("{more:?}: the handover was never over"));
        // The router answers within 100 ms, and where an address waits for its detection that takes a second.
        let took = ready - (handover.at + Duration::from_millis(500));
        // So does the home agent's on a home link before the first binding (RFC 6275 section 10.3.1).
        let limits = if more.is_empty() { 0..400 } else { 1_000..1_400 };
        assert!(limits.contains(&took.as_millis()), "{more:?}: {took:?}");
        assert!(handover.address_at.is_some_and(|at| at <= ready), "{more:?}");
        // A node that begins at home ends whatever binding it may have had.
        let ends_none = more.iter().any(|key| key.contains("home="));
        assert_eq!(discarded(&summary).into_values().sum::<u64>(), u64::from(ends_none), "{more:?}");
        assert!(sent(&events, "RouterSolicitation") >= 2, "{more:?}");
        assert!(sent(&events, "BindingUpdate") >= 2, "{more:?}");
        assert!(sent(&events, "BindingAcknowledgement") >= 2, "{more:?}");
        for flow in &summary.flows {
            assert!(flow.bytes_delivered > 400_000, "{more:?}: {} of {}", flow.bytes_delivered, flow.name);
        }
    }
}

/// A way back to the Wi-Fi behind the handover of a scenario.
const BACK: &str = "[[handover]]\nat = \"30 s\"\nfrom = \"lte\"\nto = \"wifi\"\nstyle = \"break-before-make\"\n\
                    interruption = \"500 ms\"\nqueued = \"drop\"\n[[flow]]";

/// RFC 5555: to a network that has only IPv4, and back.
#[test]
fn a_connection_of_ipv6_goes_on_over_a_network_that_has_only_ipv4() {
    let text = DUAL_STACK.replacen("[[flow]]", BACK, 1);
    for (more, is_plain) in [
        (&["assist=none"][..], true),
        (&["assist=default", "mobility.algorithm=hmac-sha-256"], true),
        // Routes are optimised on the Wi-Fi alone.
        (&["assist=none", "mobility.route_optimization=true"], false),
        // At home before the first binding the home agent looks for duplicates.
        (&["assist=none", "mobility.home=wifi"], false),
    ] {
        let (summary, events) = run(&text, &[more, &["duration=40 s"]].concat());
        let [away, back] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
        let took = away.ready_at.unwrap() - (away.at + Duration::from_millis(500));
        assert_eq!(away.address_at, Some(away.at + Duration::from_millis(500)), "{more:?}");
        assert!(back.ready_at.is_some(), "{more:?}");
        let of_handover = |handover: &HandoverSummary| {
            handover.flows.iter().map(|flow| flow.bytes_delivered).collect::<Vec<_>>()
        };
        let delivered = [of_handover(away), of_handover(back)];
        assert!(delivered.iter().flatten().all(|bytes| *bytes > 50_000), "{more:?}: {delivered:?}");
        let details = events.by_name("detail").unwrap();
        let bound = |row: &usize| details.text(*row).is_some_and(|text| text.contains("at ::ffff:10.0.2.2"));
        assert!((0..events.rows()).any(|row| bound(&row)), "{more:?}");
        assert_eq!(sent(&events, "Malformed"), 0);
        if is_plain {
            // Nothing is to be formed or verified there: a Binding Update and its answer, one round trip over the link.
            assert!((20..100).contains(&took.as_millis()), "{more:?}: {took:?}");
            assert_eq!(discarded(&summary), BTreeMap::new(), "{more:?}");
            // Each on the Wi-Fi, and nobody asks for a router of IPv6 elsewhere.
            assert_eq!(sent(&events, "RouterSolicitation"), 2, "{more:?}");
        }
    }
}

#[test]
fn assists_make_good_what_the_gap_before_a_network_of_ipv4_has_cost() {
    let stall = |assist: &str| {
        let (summary, _) = run(DUAL_STACK, &[assist, "duration=30 s"]);
        let download = summary.handovers[0].flows.iter().find(|flow| flow.name == "download").unwrap();
        (download.stall_after.unwrap(), download.packets_replayed)
    };
    let ((without, none), (with, replayed)) = (stall("assist=none"), stall("assist=default"));
    assert_eq!(none, 0);
    assert!(replayed > 10, "{replayed}");
    assert!(
        with < Duration::from_millis(150) && without > Duration::from_millis(200),
        "{with:?}, {without:?}"
    );
}

/// A tunnel through IPv4 takes 20 bytes, and routers of IPv4 cut what a link does not take.
#[test]
fn what_a_link_of_ipv4_does_not_take_whole_goes_in_fragments() {
    let fragments = |more: &[&str]| {
        let (summary, events) = run(DUAL_STACK, &[more, &["assist=none", "duration=30 s"]].concat());
        let download = summary.handovers[0].flows.iter().find(|flow| flow.name == "download").unwrap();
        assert!(download.bytes_delivered > 500_000, "{more:?}");
        let [kinds, causes] = ["kind", "cause"].map(|name| events.by_name(name).unwrap());
        let is_fragment =
            |row: &usize| kinds.text(*row) == Some("packet-derived") && causes.text(*row) == Some("fragment");
        (0..events.rows()).filter(is_fragment).count()
    };
    assert_eq!(fragments(&[]), 0);
    assert!(fragments(&["links.lte.mtu=1400"]) > 100);
}

#[test]
fn one_seed_is_one_run_over_both_versions_whoever_looks_on() {
    let scenario = || Scenario::parse("test.toml", DUAL_STACK, &["duration=\"25 s\"".to_owned()]).unwrap();
    let digest =
        |observation| finish(Simulation::new(scenario(), "test.toml", 0, observation).unwrap()).0.digest;
    let directory = tempfile::tempdir().unwrap();
    let captured = captured_at(directory.path(), &scenario(), &CaptureNodes::All);
    assert_eq!(digest(captured), digest(Observation::default()));
}

#[test]
fn packets_go_straight_once_both_addresses_are_proved() {
    let least_round_trips = |more: &[&str]| {
        let (summary, events) = run(ROUTE_OPTIMISATION, more);
        let tests =
            ["HomeTestInit", "CareOfTestInit", "HomeTest", "CareOfTest"].map(|name| sent(&events, name));
        (summary.flows.iter().map(|flow| flow.rtt_min.unwrap()).collect::<Vec<_>>(), tests)
    };
    let (straight, tests) = least_round_trips(&[]);
    assert!(tests.iter().all(|count| *count >= 1), "{tests:?}");
    let (around, none) = least_round_trips(&["mobility.route_optimization=false"]);
    assert_eq!(none, [0; 4]);
    for (straight, around) in straight.iter().zip(&around) {
        // Twice to the home agent and back.
        let detour = *around - *straight;
        assert!(detour >= Duration::from_millis(4 * 60 - 2 * 10), "{straight:?} straight, {around:?} around");
    }
}

/// What was sent from the old care-of address and arrives after the update is refused with a Binding Error (RFC 6275 section 9.3.1).
#[test]
fn packets_that_the_update_overtakes_are_lost_and_the_binding_is_kept() {
    let (summary, events) = run(ROUTE_OPTIMISATION, &[]);
    let refused = sent(&events, "BindingError");
    assert!(refused > 0);
    assert_eq!(discarded(&summary), BTreeMap::from([("no-binding".to_owned(), 2 * refused as u64)]));
    // A Home Test serves two moves, and nothing is tested a second time.
    assert_eq!([sent(&events, "HomeTestInit"), sent(&events, "CareOfTestInit")], [1, 2]);
}

#[test]
fn a_node_that_comes_home_needs_no_tunnel_any_longer() {
    let text = WIFI_TO_LTE.replace("from = \"wifi\"\nto = \"lte\"", "from = \"lte\"\nto = \"wifi\"");
    let (summary, events) = run(&text, &["mobility.home=wifi", "mobility.start=lte"]);
    assert!(summary.handovers[0].ready_at.is_some());
    let node = events.by_name("node").unwrap();
    let last_binding = (0..events.rows())
        .rev()
        .find(|row| events.by_name("kind").unwrap().text(*row) == Some("binding"))
        .map(|row| (node.text(row).map(str::to_owned), events.by_name("cause").unwrap().text(row)));
    assert!(matches!(last_binding, Some((_, Some("removed")))), "{last_binding:?}");
}

#[test]
fn one_seed_is_one_run_over_ipv6_whoever_looks_on() {
    let scenario =
        || Scenario::parse("test.toml", ROUTE_OPTIMISATION, &["duration=\"20 s\"".to_owned()]).unwrap();
    let digest =
        |observation| finish(Simulation::new(scenario(), "test.toml", 0, observation).unwrap()).0.digest;
    let directory = tempfile::tempdir().unwrap();
    let captured = captured_at(directory.path(), &scenario(), &CaptureNodes::All);
    let unseen = digest(Observation::default());
    assert_eq!(digest(captured), unseen);
    assert_eq!(digest(Observation { trace: true, ..Observation::default() }), unseen);
}

#[test]
fn assists_follow_flows_over_ipv6() {
    let stall = |more: &[&str]| {
        let (summary, events) = run(WIFI_TO_LTE, more);
        let handover = &summary.handovers[0];
        let download = handover.flows.iter().find(|flow| flow.name == "download").unwrap();
        let signalling = ["BindingUpdate", "BindingAcknowledgement"].map(|name| sizes(&events, name)[0]);
        (download.stall_after.unwrap(), download.packets_replayed, signalling)
    };
    let (without, none, _) = stall(&["assist=none"]);
    let (with, replayed, signalling) = stall(&["assist=default"]);
    assert_eq!(none, 0);
    assert!(replayed > 10, "{replayed}");
    // A round trip by way of the home agent is 75 ms on an empty path.
    assert!(
        with < Duration::from_millis(150) && without > Duration::from_millis(200),
        "{with:?}, {without:?}"
    );
    // The first update says nothing of what was received: by its size `plan` tells the round trip of a path.
    assert_eq!(signalling, [152, 112]);
}

/// Packets pass the home agent by, so that only the mobile node can help, and what it sends.
#[test]
fn with_route_optimisation_the_default_assists_help_uploads_and_harm_nothing() {
    let hard = "style = \"break-before-make\"\ninterruption = \"1 s\"\nqueued = \"drop\"";
    let text = ROUTE_OPTIMISATION.replace("style = \"make-before-break\"\noverlap = \"1 s\"", hard);
    assert_ne!(text, ROUTE_OPTIMISATION);
    let after = |assist: &str| {
        let (summary, _) = run(&text, &[assist]);
        let stall = |name: &str| {
            let flow = summary.handovers[0].flows.iter().find(|flow| flow.name == name).unwrap();
            flow.stall_after.unwrap_or_else(|| panic!("{assist}: {name} does not go on"))
        };
        ["upload", "download"].map(stall)
    };
    let [none, default] = ["assist.use=none", "assist.use=default"].map(after);
    assert!(default[0] < none[0] / 2, "{default:?} with assists, {none:?} without");
    assert!(default[1] <= none[1], "{default:?} with assists, {none:?} without");
}
