//! One flow over links drawn by chance: what `dispersion = "auto"` brings beside the best of them alone, and beside all alone together.
//!
//! `FROM=1000 COUNT=60 cargo test -p careof-sim --test all multipath_drawn -- --ignored --nocapture` prints a line for each set of
//! links, each run `SEEDS` times (4), of which the median counts, and at the end how many fall short of what is promised. `ONLY=1003,1007` is
//! these sets alone. A set takes about two seconds of a core with each seed. It holds nothing.

use std::fmt::Write as _;

use crate::common::finish;
use crate::no_harm::number_of;
use crate::random_worlds::pick;
use careof_base::RandomStream;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};

/// What is promised: of the best link alone, and of the sum where links are even.
const OF_THE_BEST: f64 = 0.97;
const OF_THE_SUM: f64 = 0.9;
/// Links are even whose delays are less apart, ms, and whose rates are less than so many times apart.
const EVEN_MS: f64 = 50.0;
const EVEN_RATES: f64 = 4.0;

/// Between both, every factor as likely.
fn log_uniform(random: &mut RandomStream, least: f64, most: f64) -> f64 {
    least * (most / least).powf(random.unit())
}

#[derive(Debug)]
struct Drawn {
    /// In a word.
    what: String,
    text: String,
    links: usize,
    is_even: bool,
}

fn drawn(number: u64) -> Drawn {
    let mut random = RandomStream::new(number, 0, "multipath-survey");
    let random = &mut random;
    let congestion = pick(random, &["cubic", "bbr", "reno"]);
    let (from, to, way) = match random.below(2) {
        0 => ("correspondent", "mobile", "down"),
        _ => ("mobile", "correspondent", "up"),
    };
    let is_told = random.below(2) == 0;
    let links = 2 + random.below(3) as usize;
    let mut what = format!("{congestion} {way}{}", if is_told { "" } else { ", rates not told" });
    let mut text = "duration = \"33 s\"\n[links]\nethernet = \"ethernet-1g\"\n".to_owned();
    let (mut rates, mut delays) = (Vec::new(), Vec::new());
    for link in 0..links {
        let rate = log_uniform(random, 1.0, 100.0);
        let delay = log_uniform(random, 5.0, 300.0);
        let jitter = if random.below(2) == 0 { 0.0 } else { delay / 2.0 * random.unit() };
        let reorder = random.below(3) == 0;
        let loss = if random.below(2) == 0 { 0.0 } else { log_uniform(random, 0.02, 2.0) };
        // Packets of 1,500 bytes in as much of a second as that.
        let queue = match random.below(2) {
            0 => log_uniform(random, 50.0, 1000.0),
            _ => (rate * log_uniform(random, 10.0, 500.0) / 12.0).max(10.0),
        };
        let known = if is_told { "" } else { ", known_rate = \"none\"" };
        let _ = writeln!(
            text,
            "l{link} = {{ rate = \"{rate:.2} Mbit/s\", delay = \"{delay:.1} ms\", loss = \"{loss:.3} %\", queue = \"{queue:.0} packets\"{known}, \
             jitter = {{ kind = \"normal\", deviation = \"{jitter:.1} ms\", reorder = {reorder} }} }}"
        );
        let _ = write!(what, " | {rate:.1} Mbit/s {delay:.0} ms");
        if jitter > 0.0 {
            let _ = write!(what, " ±{jitter:.0}{}", if reorder { " reordered" } else { "" });
        }
        if loss > 0.0 {
            let _ = write!(what, " {loss:.2} %");
        }
        let _ = write!(what, " q{queue:.0}");
        rates.push(rate);
        delays.push(delay);
    }
    let _ = writeln!(
        text,
        "[mobility]\n[multipath]\n[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"3 s\"\n\
         tcp = {{ profile = \"linux\", congestion = \"{congestion}\" }}"
    );
    let most = |all: &[f64]| all.iter().copied().fold(f64::MIN, f64::max);
    let least = |all: &[f64]| all.iter().copied().fold(f64::MAX, f64::min);
    let is_even = most(&delays) - least(&delays) < EVEN_MS && most(&rates) < EVEN_RATES * least(&rates);
    Drawn { what, text, links, is_even }
}

/// Goodput with each seed, Mbit/s, in order.
fn goodputs(text: &str, word: Option<&str>, seeds: u64) -> Vec<f64> {
    let mut all: Vec<f64> = (1..=seeds)
        .map(|seed| {
            let words: Vec<String> =
                word.iter().map(|word| (*word).to_owned()).chain([format!("seed={seed}")]).collect();
            let scenario =
                Scenario::parse("x.toml", text, &words).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            let (summary, _) =
                finish(Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap());
            assert!(summary.conservation.values().all(|difference| *difference == 0), "{text}");
            summary.flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

fn median(ordered: &[f64]) -> f64 {
    let half = ordered.len() / 2;
    if ordered.len().is_multiple_of(2) { (ordered[half - 1] + ordered[half]) / 2.0 } else { ordered[half] }
}

#[test]
#[ignore = "takes minutes, prints a table"]
fn one_flow_over_links_drawn_by_chance() {
    let (from, count, seeds) = (number_of("FROM", 0), number_of("COUNT", 60), number_of("SEEDS", 4));
    let numbers = std::env::var("ONLY").map_or((from..from + count).collect::<Vec<_>>(), |only| {
        only.split(',').map(|one| one.parse().expect("a number")).collect()
    });
    let (mut shares, mut sums) = (Vec::new(), Vec::new());
    for number in numbers {
        let Drawn { what, text, links, is_even } = drawn(number);
        let alone: Vec<f64> = (0..links)
            .map(|link| format!("multipath.rules=[{{ paths = [\"l{link}\"] }}]"))
            .map(|word| median(&goodputs(&text, Some(&word), seeds)))
            .collect();
        let auto = goodputs(&text, None, seeds);
        let best = alone.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let sum = alone.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let (of_best, of_sum) = (median(&auto) / best, median(&auto) / sum);
        let shown = |all: &[f64]| all.iter().map(|one| format!("{one:.2}")).collect::<Vec<_>>().join(" ");
        println!(
            "{number}: {of_best:.2} of the best, {of_sum:.2} of the sum{}; alone {}; auto {}; {what}",
            if is_even { " of even links" } else { "" },
            shown(&alone),
            shown(&auto)
        );
        shares.push((of_best, number));
        if is_even {
            sums.push((of_sum, number));
        }
    }
    shares.sort_by(|one, other| one.0.total_cmp(&other.0));
    sums.sort_by(|one, other| one.0.total_cmp(&other.0));
    let below = |of: &[(f64, u64)], least: f64| of.iter().filter(|(share, _)| *share < least).count();
    let worst = |of: &[(f64, u64)]| {
        of.iter()
            .take(10)
            .map(|(share, number)| format!("{number} {share:.2}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let ordered: Vec<f64> = shares.iter().map(|(share, _)| *share).collect();
    println!(
        "of the best: {} of {} below {OF_THE_BEST}, {} below 0.9, {} below 0.5; median {:.2}; worst {}",
        below(&shares, OF_THE_BEST),
        shares.len(),
        below(&shares, 0.9),
        below(&shares, 0.5),
        median(&ordered),
        worst(&shares)
    );
    println!(
        "of the sum: {} of {} even below {OF_THE_SUM}; worst {}",
        below(&sums, OF_THE_SUM),
        sums.len(),
        worst(&sums)
    );
}
