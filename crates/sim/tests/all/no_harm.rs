//! Assists never leave a flow worse off than none, whatever the paths are and whatever is known of them.

use std::fmt::Write as _;

use crate::common::{balanced, finish};
use crate::random_worlds::{pick, worlds};
use careof_base::{Instant, RandomStream};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::EventKind;

const HANDOVERS: u64 = 60;
/// Handovers outside of the first ones in which something was found: what a sender had too much of was lost in one piece on a slower path.
const FOUND: [u64; 4] = [285, 312, 321, 397];

/// Handovers in which assists do harm still, and at least what share they deliver. In 1 one instant of five decides: the registration request is
/// 0.2 ms longer, so that the sender, which loses packets on the path that it leaves, still has its window when the handover comes, and a
/// hole is then filled only behind all that waits at a path a quarter as fast. 56 is alike.
const HARMED: [(u64, f64); 2] = [(1, 0.80), (56, 0.85)];

/// What is counted: the bytes that an application was given in so many milliseconds after the handover.
pub(crate) const AFTER_MS: u64 = 10_000;
/// The least share of what the same run delivers without assists.
pub(crate) const LEAST: f64 = 0.95;

/// A rate between 64 kbit/s and 16 Mbit/s, every octave as likely.
fn rate(random: &mut RandomStream) -> u64 {
    let octave = random.below(8);
    (64_000 << octave) + random.below(64_000 << octave)
}

/// A link and what the mobile node takes its rate for.
fn link(random: &mut RandomStream, known: &str) -> String {
    let rate = rate(random);
    let delay = pick(random, &["2 ms", "20 ms", "50 ms", "150 ms"]);
    let queue = pick(random, &["8", "20", "50", "100", "200"]);
    let known_rate = match known {
        "right" => format!("{rate} bit/s"),
        "wrong" => {
            let times = pick(random, &["0.2", "0.5", "2", "5"]).parse::<f64>().expect("a number");
            format!("{} bit/s", (rate as f64 * times) as u64)
        }
        _ => known.to_owned(),
    };
    format!(
        "{{ rate = \"{rate} bit/s\", delay = \"{delay}\", queue = \"{queue} packets\", known_rate = \"{known_rate}\" }}"
    )
}

/// Instants of a handover, in milliseconds after the first one: what a sender makes of one loss more or less is chance, and assists
/// are not to be judged by it.
const PHASES_MS: [u64; 5] = [0, 37, 113, 291, 533];

/// A handover by chance, in the middle of a bulk flow that has had 15 s to fill the first path.
fn handover(number: u64) -> (String, u64) {
    let mut random = RandomStream::new(number, 0, "no-harm");
    let random = &mut random;
    let known = pick(random, &["none", "right", "wrong"]);
    let (old, new) = (link(random, known), link(random, known));
    let congestion = pick(random, &["reno", "cubic", "bbr"]);
    let ends = pick(random, &["correspondent mobile", "mobile correspondent"]);
    let (from, to) = ends.split_once(' ').expect("two ends");
    let style = if random.below(2) == 0 {
        "style = \"make-before-break\"".to_owned()
    } else {
        let outage = 50 << random.below(7);
        format!("style = \"break-before-make\"\ninterruption = \"{outage} ms\"")
    };
    let at = 15_000 + random.below(2_000);
    let text = scenario([&old, &new], &style, (from, to), congestion);
    (text, at)
}

/// A bulk flow and a handover from the first to the second link.
fn scenario([old, new]: [&str; 2], style: &str, (from, to): (&str, &str), congestion: &str) -> String {
    format!(
        r#"
[links]
old = {old}
new = {new}
ethernet = {{ preset = "ethernet-1g", delay = "10 ms" }}
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "0 s"
from = "old"
to = "new"
{style}
[[flow]]
name = "bulk"
from = "{from}"
to = "{to}"
kind = "bulk"
tcp = {{ congestion = "{congestion}" }}
"#
    )
}

/// Bytes delivered in the `after_ms` after the handover at `at_ms`.
fn delivered_within(after_ms: u64, text: &str, assist: &str, at_ms: u64) -> u64 {
    let overrides = [
        format!("assist={assist}"),
        format!("handover.0.at={at_ms} ms"),
        format!("duration={} ms", at_ms + after_ms),
    ];
    let scenario =
        Scenario::parse("no-harm.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let kinds = Some(vec![EventKind::DataDelivered]);
    let observation = Observation { trace: true, kinds, ..Observation::default() };
    let mut simulation = Simulation::new(scenario, "no-harm.toml", 0, observation).expect("a world");
    simulation.advance(Instant::from_millis(at_ms)).expect("a sound run");
    let events = simulation.take_events();
    let delivered = events.by_name("delivered_bytes").expect("a column of the trace");
    let before = (0..events.rows()).rev().find_map(|row| delivered.number(row)).unwrap_or(0);
    simulation.advance(Instant::MAX).expect("a sound run");
    let flows = balanced(simulation.finish().expect("a sound run")).flows;
    let whole: u64 = flows.iter().map(|flow| flow.bytes_delivered).sum();
    whole - u64::try_from(before).expect("a count")
}

/// Bytes delivered in the time that counts after the handover at `at_ms`.
fn delivered_after(text: &str, assist: &str, at_ms: u64) -> u64 {
    delivered_within(AFTER_MS, text, assist, at_ms)
}

#[test]
fn default_assists_deliver_no_less_than_none_after_a_handover() {
    let mut shares = Vec::new();
    let mut harmed = String::new();
    for number in worlds(HANDOVERS, &FOUND) {
        let (text, at) = handover(number);
        let in_all =
            |assist| PHASES_MS.iter().map(|phase| delivered_after(&text, assist, at + phase)).sum::<u64>();
        let [with, without] = ["default", "none"].map(in_all);
        let share = with as f64 / without.max(1) as f64;
        shares.push(share);
        let least = HARMED.iter().find(|(known, _)| *known == number).map_or(LEAST, |(_, least)| *least);
        if share < least {
            let _ = writeln!(
                harmed,
                "handover {number}: {with} bytes with assists, {without} without ({share:.3}){text}"
            );
        }
    }
    shares.sort_by(f64::total_cmp);
    assert!(harmed.is_empty(), "{harmed}");
    let median = shares[shares.len() / 2];
    assert!(median >= 1.0, "the median of {} handovers is {median}", shares.len());
}

/// A sender that keeps growing behind a replay always has something that waits: that may not become a queue without an end, which overflows long after
/// the handover.
#[test]
fn a_download_is_not_worse_off_half_a_minute_after_a_handover_either() {
    let link = "{ rate = \"12 Mbit/s\", delay = \"25 ms\", queue = \"60 packets\" }";
    let style = "style = \"break-before-make\"\ninterruption = \"500 ms\"";
    for congestion in ["cubic", "reno"] {
        let text = scenario([link, link], style, ("correspondent", "mobile"), congestion);
        let [with, without] =
            ["default", "none"].map(|assist| delivered_within(40_000, &text, assist, 10_000));
        assert!(with >= without, "{congestion}: {with} bytes with assists, {without} without");
    }
}

/// A mobile node that goes on and on, a second or so without a path each time: what a replay repairs no sender slows down for, so that nothing but
/// its advertised window keeps it from filling the agent's store.
const ROUND_AND_ROUND: &str = r#"
duration = "100 s"
[links]
server = { rate = "10 Mbit/s", delay = "2 ms", queue = "50 packets", between = ["correspondent", "home-agent"] }
uplink = { rate = "10 Mbit/s", delay = "2 ms", queue = "50 packets", between = ["home-agent", "gateway"] }
cell = { rate = "10 Mbit/s", delay = "2 ms", queue = "50 packets", between = ["gateway", "station-*"], count = 21 }
radio = { rate = "2 Mbit/s", delay = "2 ms", queue = "50 packets", between = ["station-*", "mobile-*"] }
[mobility]
nodes = 1
[[handover]]
every = "4800 ms"
interruption = "400 ms"
[[flow]]
name = "bulk"
from = "correspondent"
to = "mobile-1"
kind = "bulk"
"#;

#[test]
fn a_download_is_not_worse_off_by_default_assists_after_a_row_of_handovers() {
    for congestion in ["cubic", "reno", "bbr"] {
        let flow = |assist: &str| {
            let words = [format!("assist={assist}"), format!("flow.bulk.tcp.congestion={congestion}")];
            let scenario = Scenario::parse("round.toml", ROUND_AND_ROUND, &words)
                .unwrap_or_else(|errors| panic!("{errors}"));
            let simulation = Simulation::new(scenario, "round.toml", 0, Observation::default()).unwrap();
            finish(simulation).0.flows.remove(0)
        };
        let [with, without] = ["default", "none"].map(flow);
        assert!(
            with.bytes_delivered >= without.bytes_delivered
                && with.longest_silence <= without.longest_silence,
            "{congestion}: {} bytes with assists, {} without; {:?} and {:?} of silence",
            with.bytes_delivered,
            without.bytes_delivered,
            with.longest_silence,
            without.longest_silence
        );
    }
}

/// A mobile node that leaves home has segments under way that do not fit its tunnel, as one has that comes to a link with a smaller MTU: what
/// would be replayed of them is refused there, and their sender repeats them in smaller ones.
#[test]
fn a_flow_is_not_worse_off_where_what_it_has_sent_does_not_fit_the_new_path() {
    let link =
        |more: &str| format!("{{ rate = \"2 Mbit/s\", delay = \"30 ms\", queue = \"60 packets\"{more} }}");
    let style = "style = \"break-before-make\"\ninterruption = \"100 ms\"";
    for (new, home) in [("", "home = \"old\"\n"), (", mtu = 1300", "")] {
        for congestion in ["cubic", "reno", "bbr"] {
            for ends in [("correspondent", "mobile"), ("mobile", "correspondent")] {
                let text = scenario([&link(""), &link(new)], style, ends, congestion);
                let text = text.replace("[mobility]\n", &format!("[mobility]\n{home}"));
                let in_all = |assist| {
                    PHASES_MS.iter().map(|phase| delivered_after(&text, assist, 8_000 + phase)).sum::<u64>()
                };
                let [with, without] = ["default", "none"].map(in_all);
                assert!(
                    with as f64 >= LEAST * without as f64,
                    "{congestion} from {}: {with} bytes with assists, {without} without{text}",
                    ends.0
                );
            }
        }
    }
}

/// A receiver without SACK has a hole nearly always where a queue overflows, and does not say what it has behind it: whatever goes again of that
/// makes a duplicate acknowledgement, and its sender takes many of them for reordering.
#[test]
fn a_flow_without_sack_is_not_worse_off_where_its_receiver_has_a_hole() {
    let link = |rate: &str, delay: &str, queue: u32| {
        format!("{{ rate = \"{rate}\", delay = \"{delay}\", queue = \"{queue} packets\" }}")
    };
    let soft = "style = \"make-before-break\"\nqueued = \"drain-late\"";
    let hard = "style = \"break-before-make\"\ninterruption = \"3 s\"\nqueued = \"drop\"";
    for (old, new, style, congestion, at) in [
        (link("200 kbit/s", "1 ms", 100), link("3.6 Mbit/s", "75 ms", 100), soft, "cubic", 46_900),
        (link("900 kbit/s", "200 ms", 20), link("4 Mbit/s", "3 ms", 50), hard, "reno", 7_744),
    ] {
        let text = scenario([&old, &new], style, ("correspondent", "mobile"), congestion);
        let without_sack = format!("congestion = \"{congestion}\", sack = false");
        let text = text.replace(&format!("congestion = \"{congestion}\""), &without_sack);
        let in_all =
            |assist| PHASES_MS.iter().map(|phase| delivered_after(&text, assist, at + phase)).sum::<u64>();
        let [with, without] = ["default", "none"].map(in_all);
        assert!(with as f64 >= LEAST * without as f64, "{with} bytes with assists, {without} without{text}");
    }
}

/// What a link delivers late is not lost, and its varying delays are no queue: a replay behind which a sender goes on would hold it back for as long as it
/// sends.
#[test]
fn a_download_is_not_worse_off_a_minute_after_a_handover_to_a_link_that_reorders() {
    let old = "{ rate = \"470 kbit/s\", delay = \"20 ms\" }";
    let new = "{ rate = \"3 Mbit/s\", delay = \"40 ms\", rate_up = \"380 kbit/s\", delay_up = \"80 ms\", queue = \"20 packets\", jitter = { spread = \"32 ms\", reorder = true } }";
    let style = "style = \"break-before-make\"\ninterruption = \"0 ms\"";
    let text = scenario([old, new], style, ("correspondent", "mobile"), "cubic");
    let in_all = |assist| {
        PHASES_MS.iter().map(|phase| delivered_within(60_000, &text, assist, 20_000 + phase)).sum::<u64>()
    };
    let [with, without] = ["default", "none"].map(in_all);
    assert!(with as f64 >= LEAST * without as f64, "{with} bytes with assists, {without} without");
}

/// Soft handovers between a slow, deeply queued path and a fast one, with nothing known of either.
#[test]
fn default_assists_deliver_no_less_than_none_after_soft_handovers() {
    for (old, new) in [("256 kbit/s", "10 Mbit/s"), ("2 Mbit/s", "256 kbit/s")] {
        for congestion in ["reno", "cubic", "bbr"] {
            for (from, to) in [("correspondent", "mobile"), ("mobile", "correspondent")] {
                let link = |rate: &str| {
                    format!(
                        "{{ rate = \"{rate}\", delay = \"20 ms\", queue = \"100 packets\", known_rate = \"none\" }}"
                    )
                };
                let style = "style = \"make-before-break\"";
                let text = scenario([&link(old), &link(new)], style, (from, to), congestion);
                let median = |assist| {
                    let mut bytes = PHASES_MS.map(|phase| delivered_after(&text, assist, 15_000 + phase));
                    bytes.sort_unstable();
                    bytes[PHASES_MS.len() / 2]
                };
                let [with, without] = ["default", "none"].map(median);
                // One more segment or less is a matter of the registration's length.
                assert!(
                    with + 1_500 >= without,
                    "{old} to {new}, {congestion} from {from}: {with} with assists, {without} without"
                );
            }
        }
    }
}

/// A window of what the path holds starves a flow whose acknowledgements share their way with other data: they come late.
#[test]
fn an_upload_is_not_worse_off_on_a_slower_path_that_it_shares() {
    let old = "{ rate = \"20 Mbit/s\", delay = \"100 ms\" }";
    let style = "style = \"make-before-break\"\noverlap = \"1 s\"";
    let new = "{ rate = \"3 Mbit/s\", delay = \"3 ms\" }";
    let text = scenario([old, new], style, ("mobile", "correspondent"), "cubic");
    let text = text.replace("delay = \"10 ms\"", "delay = \"2 ms\"");
    let other = "[[flow]]\nname = \"other\"\nfrom = \"correspondent\"\nto = \"mobile\"\nkind = \"paced\"\nrate = \"256 kbit/s\"\nmessage = \"1200 B\"\n";
    let text = format!("{text}{other}");
    let in_all = |assist| {
        let phases = PHASES_MS.iter();
        phases.map(|phase| delivered_within(40_000, &text, assist, 8_000 + phase)).sum::<u64>()
    };
    let [with, without] = ["default", "none"].map(in_all);
    assert!(with as f64 >= 0.98 * without as f64, "{with} bytes with assists, {without} without{text}");
}

/// While the home agent keeps both bindings the faster path carries everything.
#[test]
fn a_download_is_not_worse_off_while_copies_come_by_a_slow_path_as_well() {
    let [fast, slow] = ["2 Mbit/s\", delay = \"10 ms", "60 kbit/s\", delay = \"3 ms"]
        .map(|of| format!("{{ rate = \"{of}\", queue = \"50 packets\" }}"));
    let style = "style = \"make-before-break\"";
    for congestion in ["cubic", "reno", "bbr"] {
        let text = scenario([&fast, &slow], style, ("correspondent", "mobile"), congestion);
        let text = text.replace("[mobility]\n", "[mobility]\nsimultaneous_bindings = true\n");
        let text = text.replace("delay = \"10 ms\" }\n[mobility]", "delay = \"100 ms\" }\n[mobility]");
        let in_all = |assist| {
            let phases = PHASES_MS.iter();
            phases.map(|phase| delivered_within(30_000, &text, assist, 10_000 + phase)).sum::<u64>()
        };
        let [with, without] = ["default", "none"].map(in_all);
        assert!(
            with as f64 >= LEAST * without as f64,
            "{congestion}: {with} bytes with assists, {without} without{text}"
        );
    }
}

/// The number that a variable of the environment has.
pub(crate) fn number_of(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Shifts of a handover in which the survey looks how much chance decides, ms.
const SHIFTS_MS: [u64; 20] =
    [0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 70, 77, 84, 91, 98, 105, 112, 119, 126, 133];

/// Measures handovers `FROM` and the `COUNT` from it on: what share of what is delivered without assists in `AFTER_MS` is delivered with them. Of those with
/// less than [`LEAST`] it prints in how many of twenty shifts of the same handover that is so, and what the sender's own scatter is: the least and
/// the most that the shifts deliver without assists, as shares of their median.
#[test]
#[ignore = "takes minutes: make bench"]
fn survey() {
    let (from, count) = (number_of("FROM", 400), number_of("COUNT", 600));
    let after_ms = number_of("AFTER_MS", AFTER_MS);
    let mut shares = Vec::new();
    for number in from..from + count {
        let (text, at) = handover(number);
        let in_all = |assist| {
            PHASES_MS.iter().map(|phase| delivered_within(after_ms, &text, assist, at + phase)).sum::<u64>()
        };
        let [with, without] = ["default", "none"].map(in_all);
        let share = with as f64 / without.max(1) as f64;
        shares.push(share);
        if share < LEAST {
            println!("{number}: {share:.3}, {}{text}", scatter(&text, at));
        }
    }
    let held = shares.iter().filter(|share| **share >= LEAST).count();
    shares.sort_by(f64::total_cmp);
    let [least, low, median] = [0, shares.len() / 20, shares.len() / 2].map(|index| shares[index]);
    println!("{held} of {} hold, least {least:.3}, 5 % {low:.3}, median {median:.3}", shares.len());
}

/// How much chance decides of a handover, in words.
fn scatter(text: &str, at: u64) -> String {
    let in_each = |assist| SHIFTS_MS.map(|shift| delivered_after(text, assist, at + shift).max(1) as f64);
    let [with, mut without] = ["default", "none"].map(in_each);
    let harmed = with.iter().zip(&without).filter(|(with, without)| **with < LEAST * **without).count();
    let share = with.iter().sum::<f64>() / without.iter().sum::<f64>();
    without.sort_by(f64::total_cmp);
    let [least, median, most] = [0, SHIFTS_MS.len() / 2, SHIFTS_MS.len() - 1].map(|index| without[index]);
    let (least, most) = (least / median, most / median);
    format!("{harmed} of {} shifts, in all {share:.3}; without assists {least:.2} to {most:.2}", with.len())
}
