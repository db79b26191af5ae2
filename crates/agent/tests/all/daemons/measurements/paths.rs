//! Paths that go silent with their interfaces up, and paths that only seem to.

use careof_base::{Duration, Instant, Probability};
use careof_lab::Realm;
use careof_link::{Config, Jitter, Loss};

use super::transfer::{Transfer, Way};
use super::{in_turn, link, median, number, say, verdict};
use crate::daemons::support::{Daemon, Network, pause, realm_or_skip};

const RATE_MBIT_S: u64 = 10;
const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(300)];
/// Between probes of a path in use that has been silent for less than ten seconds (`docs/careof-agent.md`).
const PROBE_INTERVAL: Duration = Duration::from_millis(200);
const ASSIST: &str = "assist = \"default\"\n";
const BOTH: &str = "assist = \"default\"\n[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n";
const ONE: &str = "assist = \"default\"\n[[interface]]\nname = \"wlan0\"\n";

/// What is measured: with which round trip, which way, how long the path is silent, which run.
#[derive(Clone, Copy, Debug)]
struct Case {
    round_trip: Duration,
    way: Way,
    silence: Option<Duration>,
    run: u32,
}

fn cases(silences: &[Option<Duration>], runs: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for round_trip in ROUND_TRIPS {
        for way in Way::BOTH {
            for &silence in silences {
                cases.extend((0..runs).map(|run| Case { round_trip, way, silence, run }));
            }
        }
    }
    cases
}

/// Hosts, daemons that know both paths, and a transfer that has filled the path in use.
struct Scene {
    network: Network,
    _home: Daemon,
    mobile: Daemon,
    transfer: Transfer,
}

impl Scene {
    fn new(realm: Realm, case: Case, interfaces: &str) -> Self {
        let path = link(RATE_MBIT_S, case.round_trip);
        let network = Network::between(realm, 0, [path.clone(), path]);
        let home = network.start_home_agent_with(ASSIST);
        let mobile = network.start_mobile_node_with(interfaces);
        mobile.wait_for_registration("wlan0");
        mobile.wait_for_path("wlan0");
        if interfaces == BOTH {
            mobile.wait_for_path("gsm0");
        }
        let transfer = Transfer::start(&network, case.way);
        // Slow start is over then; the runs begin at instants of their own.
        pause(Duration::from_secs(3) + case.round_trip * 5 + Duration::from_millis(137) * (case.run % 20));
        Self { network, _home: home, mobile, transfer }
    }
}

/// Waits until `found` says something, for twenty seconds at most.
fn look_for<T>(transfer: &Transfer, since: Instant, found: impl Fn() -> Option<T>) -> Option<T> {
    while transfer.now().saturating_duration_since(since) < Duration::from_secs(20) {
        if let Some(found) = found() {
            return Some(found);
        }
        pause(Duration::from_millis(20));
    }
    None
}

/// Prints a row for each setting, and says whether all are within the bound.
fn table(
    head: &str,
    cases: &[Case],
    measured: &[Option<Duration>],
    bound: impl Fn(&Case) -> Duration,
) -> bool {
    say(&format!("{head:24} {:9} {:>5} {:>9} {:>9} {:>9}", "way", "runs", "median", "longest", "bound"));
    let key = |case: &Case| (case.round_trip, case.way.name(), case.silence);
    let mut is_held = true;
    let mut done: Vec<_> = Vec::new();
    for case in cases {
        if done.contains(&key(case)) {
            continue;
        }
        done.push(key(case));
        let of = cases.iter().zip(measured).filter(|(other, _)| key(other) == key(case));
        let of: Vec<Duration> = of.map(|(_, time)| time.unwrap_or(Duration::MAX)).collect();
        let (longest, bound) = (of.iter().max().copied().unwrap_or_default(), bound(case));
        let silence = case.silence.map(|silence| format!(", silent for {} s", silence.as_secs()));
        let what = format!("{} ms{}", case.round_trip.as_millis(), silence.unwrap_or_default());
        let times = [median(&of), longest, bound].map(|time| match time {
            Duration::MAX => "never".to_owned(),
            time => format!("{:.3} s", time.as_secs_f64()),
        });
        let [median, most, limit] = times;
        let row_holds = longest <= bound;
        let (way, runs) = (case.way.name(), of.len());
        say(&format!("{what:24} {way:9} {runs:>5} {median:>9} {most:>9} {limit:>9}  {}", verdict(row_holds)));
        is_held &= row_holds;
    }
    is_held
}

#[test]
#[ignore = "takes a quarter of an hour: make bench-silent-death"]
fn silent_death() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let cases = cases(&[None], number("RUNS", 20));
    let measured = in_turn(number("AT_ONCE", 1), &cases, |case| {
        let scene = Scene::new(realm, *case, BOTH);
        let died = scene.transfer.now();
        scene.network.set_silent(&scene.network.wlan, true);
        // A silence that has not lasted longer than any is no end of one yet.
        pause(Duration::from_secs(1));
        let there = look_for(&scene.transfer, died, || {
            let is_there = scene.mobile.registered_on().as_deref() == Some("gsm0");
            scene.transfer.end_of_longest_silence(died).filter(|_| is_there)
        });
        there.map(|there| there - died)
    });
    let head = "from death to new bytes";
    let is_held = table(head, &cases, &measured, |case| case.round_trip * 3 + Duration::from_secs(1));
    assert!(is_held, "not within 3 round trips and 1 s");
}

#[test]
#[ignore = "takes minutes: make bench-silent-outage"]
fn silent_outage() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let silences = [3, 8].map(|seconds| Some(Duration::from_secs(seconds)));
    let cases = cases(&silences, number("RUNS", 5));
    let measured = in_turn(number("AT_ONCE", 1), &cases, |case| {
        let scene = Scene::new(realm, *case, ONE);
        scene.network.set_silent(&scene.network.wlan, true);
        pause(case.silence.unwrap());
        let back = scene.transfer.now();
        scene.network.set_silent(&scene.network.wlan, false);
        let there = look_for(&scene.transfer, back, || scene.transfer.first_after(back));
        there.map(|there| there - back)
    });
    let head = "from return to new bytes";
    let is_held = table(head, &cases, &measured, |case| case.round_trip * 2 + PROBE_INTERVAL);
    assert!(is_held, "not within 2 round trips and the time between two probes");
}

/// A path that loses 5 % of the packets each way and delays them by up to half a round trip more or less, there and back.
fn rough(round_trip: Duration) -> Config {
    Config {
        loss: Loss::Bernoulli { p: Probability::new(0.05).unwrap() },
        jitter: Jitter::Uniform { spread: round_trip / 4, reorder: false },
        ..link(RATE_MBIT_S, round_trip)
    }
}

#[test]
#[ignore = "takes half an hour: make bench-false-switch"]
fn false_switch() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let minutes = number("MINUTES", 30);
    let mut cases: Vec<(Duration, Option<Way>)> = Vec::new();
    for round_trip in ROUND_TRIPS {
        cases.extend([None, Some(Way::Download), Some(Way::Upload)].map(|way| (round_trip, way)));
    }
    let indexed: Vec<_> = (1..).zip(&cases).collect();
    let at_once = u32::try_from(cases.len()).unwrap();
    let rows = in_turn(at_once, &indexed, |&(seed, &(round_trip, way))| {
        let network = Network::between(realm, seed, [rough(round_trip), rough(round_trip)]);
        let _home = network.start_home_agent_with(ASSIST);
        let mobile = network.start_mobile_node_with(BOTH);
        mobile.wait_for_registration("wlan0");
        let transfer = way.map(|way| Transfer::start(&network, way));
        pause(Duration::from_secs(60) * minutes);
        let bytes = transfer.map_or(0, |transfer| transfer.bytes_by(transfer.now()));
        let (log, path) = (mobile.log(), mobile.path("wlan0"));
        // The first is that by which it came there.
        let handovers = log.matches("Handover initiated").count() - 1;
        let is_held = handovers == 0 && mobile.registered_on().as_deref() == Some("wlan0");
        let row = format!(
            "{:>6} ms {:9} {:>10} {:>10} {:>9} {:>7} {handovers:>9}  {}",
            round_trip.as_millis(),
            way.map_or("none", Way::name),
            bytes,
            path["probes_sent"].to_string(),
            path["probes_answered"].to_string(),
            log.matches("Path silent").count(),
            verdict(is_held)
        );
        (row, is_held)
    });
    say(&format!(
        "{minutes} min at 5 % loss each way\n{:>9} {:9} {:>10} {:>10} {:>9} {:>7} {:>9}",
        "RTT", "transfer", "bytes", "probes", "answered", "silent", "switches"
    ));
    rows.iter().for_each(|(row, _)| say(row));
    assert!(rows.iter().all(|(_, is_held)| *is_held), "a path was left that worked");
}
