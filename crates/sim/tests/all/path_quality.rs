//! Mobile nodes that leave a bad path for a better one, and come back; and what does not make them.

use crate::common::finish;
use careof_metrics::Summary;
use careof_scenario::{NamedIn, Scenario};
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const BULK: &str = "kind = \"bulk\"";
const REQUESTS: &str =
    "kind = \"request-response\"\nrequest = \"200 B\"\nresponse = \"2 kB\"\nthink = \"50 ms\"";

/// A world with two paths of which the first is preferred, one flow towards the mobile node, and more keys.
struct World<'a> {
    seconds: u32,
    /// `time_s,rate_mbit_s,delay_ms,loss` of the first path.
    wifi: &'a str,
    /// The table of the second one.
    lte: &'a str,
    flow: &'a str,
    mobility: &'a str,
}

impl World<'_> {
    fn run(&self, leaves: bool) -> (Summary, Vec<String>) {
        let Self { seconds, wifi, lte, flow, mobility } = *self;
        let text = format!(
            "duration = \"{seconds} s\"\n[links]\nethernet = \"ethernet-1g\"\n\
             wifi = {{ trace = \"wifi.csv\", queue = \"60 packets\" }}\nlte = {lte}\n\
             [mobility]\nrouting = \"reverse-tunnel\"\npath_monitor = true\norder = [\"wifi\", \"lte\"]\n\
             leave_bad_paths = {leaves}\n{mobility}\n\
             [[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n{flow}\n"
        );
        let file = format!("time_s,rate_mbit_s,delay_ms,loss\n{wifi}");
        let read = |_: &str, _: NamedIn| Ok(file.clone());
        let scenario = Scenario::parse_with("test.toml", &text, &[], &read);
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        let observation = Observation { trace: true, ..Observation::default() };
        let (summary, events) = finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap());
        (summary, initiated(&events))
    }
}

/// What was said of each handover that was begun, the first attachment left out.
fn initiated(events: &Columns) -> Vec<String> {
    let (causes, details) = (events.by_name("cause").unwrap(), events.by_name("detail").unwrap());
    let rows = (0..events.rows()).filter(|row| causes.text(*row) == Some("initiated"));
    rows.skip(1).map(|row| details.text(row).unwrap_or_default().to_owned()).collect()
}

/// Those that the quality of a path was the reason of. Over IPv6 the preferred path need not be the first to have an address.
fn by_quality(handovers: Vec<String>, mobility: &str) -> Vec<String> {
    let counts = |text: &String| mobility == PROTOCOLS[0] || text.contains('(');
    handovers.into_iter().filter(counts).collect()
}

fn is_away_and_back(handovers: &[String], why: &str) -> bool {
    let [away, back] = handovers else { return false };
    let makes_before_it_breaks = |text: &String| text.starts_with("make-before-break");
    handovers.iter().all(makes_before_it_breaks) && away.contains(why) && back.contains("path-good-again")
}

const QUICK: &str = "{ rate = \"20 Mbit/s\", delay = \"20 ms\", queue = \"60 packets\" }";

/// What `[mobility]` has for either protocol.
const PROTOCOLS: [&str; 2] = ["protocol = \"mobile-ipv4\"", "protocol = \"mobile-ipv6\""];

#[test]
fn a_download_is_better_off_where_a_path_that_loses_a_tenth_is_left_and_comes_back() {
    for mobility in PROTOCOLS {
        let world = World {
            seconds: 330,
            wifi: "0,5,20,0\n30,5,20,0.1\n150,5,20,0\n1000,5,20,0\n",
            // No faster than the first path is when it is good.
            lte: "{ rate = \"5 Mbit/s\", delay = \"20 ms\", queue = \"60 packets\" }",
            flow: BULK,
            mobility,
        };
        let ((without, stays), (with, handovers)) = (world.run(false), world.run(true));
        let [stays, handovers] = [stays, handovers].map(|begun| by_quality(begun, mobility));
        assert_eq!(stays, [""; 0]);
        assert!(is_away_and_back(&handovers, "path-lossy"), "{handovers:?}");
        let [without, with] = [without, with].map(|summary| summary.flows[0].bytes_delivered);
        assert!(with * 10 > without * 12, "{with} bytes beside {without}, {mobility}");
    }
}

#[test]
fn requests_are_better_off_where_a_path_whose_delay_rises_tenfold_is_left_and_come_back() {
    for mobility in PROTOCOLS {
        let world = World {
            seconds: 400,
            wifi: "0,5,20,0\n30,5,200,0\n180,5,20,0\n1000,5,20,0\n",
            lte: QUICK,
            flow: REQUESTS,
            mobility,
        };
        let ((without, stays), (with, handovers)) = (world.run(false), world.run(true));
        let [stays, handovers] = [stays, handovers].map(|begun| by_quality(begun, mobility));
        assert_eq!(stays, [""; 0]);
        assert!(is_away_and_back(&handovers, "path-slow"), "{handovers:?}");
        let [without, with] = [without, with].map(|summary| summary.flows[0].bytes_delivered);
        assert!(with * 10 > without * 12, "{with} bytes beside {without}, {mobility}");
    }
}

#[test]
fn half_an_hour_of_a_full_queue_or_of_equal_paths_or_of_a_slow_metered_one_makes_no_handover() {
    let some = "{ rate = \"2 Mbit/s\", delay = \"20 ms\", loss = \"2 %\", jitter = { spread = \"5 ms\" } }";
    let slow = "{ rate = \"200 kbit/s\", delay = \"20 ms\" }";
    for (wifi, lte, mobility) in [
        ("0,1,20,0\n", QUICK, ""),
        ("0,2,20,0.02\n", some, ""),
        ("0,2,20,0.02\n", slow, "metered = [\"lte\"]"),
        ("0,2,20,0.1\n", QUICK, "metered = [\"lte\"]"),
    ] {
        for flow in [BULK, REQUESTS] {
            let world = World { seconds: 1800, wifi, lte, flow, mobility };
            let (with, handovers) = world.run(true);
            assert_eq!(handovers, [""; 0], "{wifi} beside {lte} with {flow}");
            assert!(with.flows[0].bytes_delivered > 1_000_000);
        }
    }
}
