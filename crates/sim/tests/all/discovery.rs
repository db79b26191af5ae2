//! How long a mobile node takes to find out by advertisements that it moved.

use std::fmt::Write as _;

use crate::common::finish;
use careof_base::{Duration, RandomStream};
use careof_metrics::Summary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

/// A node that goes to and fro between two cells, `handovers` times, each `period` after the one before and at a random
/// instant within an interval of advertisements; for the time of `overlap` it is in both.
fn roaming(
    handovers: u32,
    interval: Duration,
    period: Duration,
    overlap: Option<Duration>,
    set: &[&str],
) -> Summary {
    let mut random = RandomStream::new(7, 0, "instants");
    let mut text = format!(
        "duration = \"{} s\"\n[links]\na = \"ethernet-10m\"\nb = \"ethernet-10m\"\n[mobility]\ncare_of = \"foreign-agent\"\n\
         movement_detection = \"missed-advertisements\"\nadvertisement_interval = \"{} us\"\n\
         [mobility.discovery]\nabove_recommended_rate = true\n",
        period.as_secs() * u64::from(handovers + 2),
        interval.as_micros(),
    );
    for n in 1..=handovers {
        let at = period * n + random.duration_up_to(interval);
        let (from, to) = if n % 2 == 1 { ("a", "b") } else { ("b", "a") };
        let _ =
            writeln!(text, "[[handover]]\nat = \"{} ns\"\nfrom = \"{from}\"\nto = \"{to}\"", at.as_nanos());
        let _ = match overlap {
            None => writeln!(text, "style = \"break-before-make\"\nqueued = \"drop\""),
            Some(overlap) => writeln!(text, "overlap = \"{} us\"\nqueued = \"drop\"", overlap.as_micros()),
        };
    }
    text.push_str("[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\nkind = \"bulk\"\nsize = \"10 kB\"\n");
    let set: Vec<String> = set.iter().map(|&one| one.to_owned()).collect();
    let scenario = Scenario::parse("roaming.toml", &text, &set).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "roaming.toml", 0, Observation::default()).unwrap()).0
}

/// Mean of the interruptions and the 95 % confidence interval's half width, in intervals of advertisements.
fn interruption(summary: &Summary, interval: Duration) -> (f64, f64, f64, f64) {
    let all: Vec<f64> = summary
        .handovers
        .iter()
        .map(|handover| handover.interruption.as_secs_f64() / interval.as_secs_f64())
        .collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    (mean, 1.96 * (variance / n).sqrt(), least, most)
}

/// Advertisements come like a clock and three missed ones count at once.
const BY_THE_CLOCK: [&str; 2] = ["mobility.discovery.least_interval=1 s", "mobility.discovery.margin=0"];

#[test]
fn three_missed_advertisements_take_two_and_a_half_intervals_in_the_mean() {
    let interval = Duration::from_secs(1);
    let summary =
        roaming(400, interval, Duration::from_secs(10), Some(Duration::from_secs(3)), &BY_THE_CLOCK);
    let (mean, half, least, most) = interruption(&summary, interval);
    assert!((mean - 2.5).abs() < half, "{mean} +- {half}");
    assert!(half < 0.05 && least >= 2.0 && most < 3.01, "{half} {least} {most}");
}

#[test]
fn whoever_is_eager_has_gone_before_the_old_cell_ends() {
    let interval = Duration::from_secs(1);
    let overlap = Some(Duration::from_millis(1_300));
    let eager = ["mobility.movement_detection=eager"];
    let summary = roaming(20, interval, Duration::from_secs(10), overlap, &eager);
    let (_, _, _, most) = interruption(&summary, interval);
    assert_eq!(most, 0.0, "an advertisement comes in 1 s, and the cells overlap for longer");
    let lazy = roaming(20, interval, Duration::from_secs(10), overlap, &[]);
    assert!(interruption(&lazy, interval).2 > 1.9);
}

#[test]
fn without_solicitation_an_advertisement_is_waited_for() {
    let interval = Duration::from_secs(1);
    let trigger = ["mobility.movement_detection=link-trigger", "mobility.discovery.on_link_up=false"];
    let asked = roaming(60, interval, Duration::from_secs(10), None, &trigger);
    let silent = [trigger[0], trigger[1], "mobility.discovery.solicitation=false"];
    let waited = roaming(60, interval, Duration::from_secs(10), None, &silent);
    // At most 100 ms until it is asked, as long until the answer, and the registration.
    assert!(interruption(&asked, interval).3 < 0.21, "{:?}", interruption(&asked, interval));
    let (mean, ..) = interruption(&waited, interval);
    assert!((0.35..0.65).contains(&mean), "half an interval: {mean}");
}
