//! The estimators of the retransmission timeout over series of round trips: measured ones that somebody has, and
//! [steps](steps) that are made here.
//!
//! A sample of a series is a segment: it leaves at its time and is acknowledged a round trip later. The timeout that
//! is in force when it leaves is the one it has to keep. A sender restarts its timer with every acknowledgement that
//! advances, so that a segment in the middle of a flight has longer than that: what is counted here is the estimator's
//! judgement, not a connection's timeouts. Segments without an acknowledgement are not in a series.
//!
//! Each estimator measures what a sender without timestamps measures for it: RFC 6298's and its relative one segment at a
//! time, Linux's every one. Each runs twice: within its own bounds, and with the floor taken away ([`NO_FLOOR`]), which
//! on a path of milliseconds hides all else.

use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_tcp::{Config, RoundTrip, RtoEstimator, TimeoutEstimator};
use serde_json::{Value, json};

/// The estimators compared.
const ESTIMATORS: [RtoEstimator; 3] =
    [RtoEstimator::Rfc6298, RtoEstimator::Linux, RtoEstimator::FastDecrease];

/// The least RTO where there is to be none: an estimator needs one.
const NO_FLOOR: Duration = Duration::from_millis(1);

/// A step down is where the shortest of so many round trips is at least twice the longest of as many after it.
const LEVEL: usize = 8;

/// A round trip: when the segment left, and how long its acknowledgement took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timed {
    sent_at: Instant,
    took: Duration,
}

impl Timed {
    fn acknowledged_at(&self) -> Instant {
        self.sent_at + self.took
    }
}

/// What an estimator made of a series.
#[derive(Clone, Debug, Default, PartialEq)]
struct Judgement {
    /// Samples that had a timeout to keep that rested on a measurement.
    samples: usize,
    /// Of them, those that took longer.
    exceeding: usize,
    /// Sum of the timeouts less the round trips, seconds.
    waste: f64,
    /// After each step down: until the timeout was at most twice the longest new round trip, or that and the floor if
    /// that is more. `None`: it never was.
    settled: Vec<Option<Settled>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Settled {
    after: Duration,
    /// In new round trips.
    round_trips: f64,
}

/// A step down: the sample with which it begins, and the longest of the round trips that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    at: usize,
    longest: Duration,
}

/// The steps down of a series.
fn steps_down(series: &[Timed]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut index = LEVEL;
    while index + LEVEL <= series.len() {
        let took = |range: &[Timed]| -> Vec<Duration> { range.iter().map(|timed| timed.took).collect() };
        let before = took(&series[index - LEVEL..index]).into_iter().min().unwrap_or_default();
        let longest = took(&series[index..index + LEVEL]).into_iter().max().unwrap_or_default();
        if before >= longest * 2 {
            steps.push(Step { at: index, longest });
            index += LEVEL;
        } else {
            index += 1;
        }
    }
    steps
}

/// Runs an estimator over a series.
fn judge(series: &[Timed], config: &Config) -> Result<Judgement, String> {
    let mut estimator = TimeoutEstimator::new(config).map_err(|error| error.to_string())?;
    let floor = config.effective_rto_min();
    let one_at_a_time = estimator.times_one_at_a_time();
    let mut arrivals: Vec<usize> = (0..series.len()).collect();
    arrivals.sort_by_key(|&index| (series[index].acknowledged_at(), index));
    let mut judgement = Judgement::default();
    let steps = steps_down(series);
    let mut waiting: Vec<(usize, Step)> = Vec::new();
    let (mut next_step, mut acknowledged) = (0, 0);
    // Without timestamps one segment is timed, and the next to be is the first that leaves after it was measured.
    let mut timed: Option<usize> = None;
    judgement.settled = vec![None; steps.len()];
    for (index, sample) in series.iter().enumerate() {
        while let Some(&arrived) = arrivals.get(acknowledged)
            && series[arrived].acknowledged_at() <= sample.sent_at
        {
            acknowledged += 1;
            let now = series[arrived].acknowledged_at();
            if !one_at_a_time || timed == Some(arrived) {
                timed = None;
                let round_trip = RoundTrip {
                    sent_at: series[arrived].sent_at,
                    acknowledged_at: now,
                    acknowledged: count(acknowledged),
                    sent: count(index),
                };
                estimator.measure(&round_trip);
            }
            waiting.retain(|&(number, step)| {
                let since = series[step.at].sent_at;
                let settled = now > since && estimator.rto() <= (step.longest * 2).max(step.longest + floor);
                if settled {
                    let after = now - since;
                    let round_trips = after.as_secs_f64() / step.longest.as_secs_f64();
                    judgement.settled[number] = Some(Settled { after, round_trips });
                }
                !settled
            });
        }
        while let Some(&step) = steps.get(next_step).filter(|step| step.at <= index) {
            waiting.push((next_step, step));
            next_step += 1;
        }
        timed.get_or_insert(index);
        if estimator.srtt().is_some() {
            judgement.samples += 1;
            judgement.exceeding += usize::from(sample.took > estimator.rto());
            judgement.waste += estimator.rto().as_secs_f64() - sample.took.as_secs_f64();
        }
    }
    Ok(judgement)
}

fn count(segments: usize) -> u32 {
    u32::try_from(segments).unwrap_or(u32::MAX)
}

impl Judgement {
    fn json(&self, series: &str, estimator: RtoEstimator, floor: Option<Duration>) -> Value {
        let per_sample = |sum: f64| (self.samples > 0).then(|| sum / self.samples as f64);
        let mut settled: Vec<&Settled> = self.settled.iter().flatten().collect();
        settled.sort_by_key(|settled| settled.after);
        let middle = settled.get(settled.len() / 2);
        json!({
            "series": series,
            "estimator": estimator.name(),
            "floor_s": floor.map(|floor| floor.as_secs_f64()),
            "samples": self.samples,
            "exceeding": self.exceeding,
            "exceeding_per_1000": per_sample(self.exceeding as f64 * 1000.0),
            "waste_s": per_sample(self.waste),
            "steps_down": self.settled.len(),
            "settled": settled.len(),
            "settled_after_s": middle.map(|settled| settled.after.as_secs_f64()),
            "settled_after_round_trips": middle.map(|settled| settled.round_trips),
        })
    }
}

/// The samples of a series: pairs of seconds, when the segment left and how long its acknowledgement took.
fn read(series: &Value) -> Result<Vec<Timed>, String> {
    const MOST_SECONDS: f64 = 1e9;
    let pairs = series["samples"].as_array().ok_or("a series needs samples, pairs of seconds")?;
    let mut samples: Vec<Timed> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let seconds = |part: usize| {
            pair[part].as_f64().filter(|seconds| (0.0..MOST_SECONDS).contains(seconds)).ok_or_else(|| {
                format!("sample {index}: expected two numbers of seconds, from 0 on, not {pair}")
            })
        };
        let sample = Timed {
            sent_at: Instant::ZERO + Duration::from_secs_f64(seconds(0)?),
            took: Duration::from_secs_f64(seconds(1)?),
        };
        if samples.last().is_some_and(|last| last.sent_at > sample.sent_at) {
            return Err(format!("sample {index} left before the one above it: they must be in order"));
        }
        samples.push(sample);
    }
    if samples.is_empty() {
        return Err("a series needs at least one sample".to_owned());
    }
    Ok(samples)
}

/// What the estimators make of a series, `{"name": .., "samples": [[seconds, seconds], ..]}`: a row an estimator and floor.
///
/// # Errors
/// What is wrong with it.
pub fn judge_json(series: &Value) -> Result<Value, String> {
    let samples = read(series)?;
    let name = series["name"].as_str().unwrap_or_default();
    let mut rows = Vec::new();
    for floor in [None, Some(NO_FLOOR)] {
        for rto in ESTIMATORS {
            let config = Config { rto, rto_min: floor, ..Config::default() };
            rows.push(judge(&samples, &config)?.json(name, rto, floor));
        }
    }
    Ok(rows.into())
}

/// Round trips one after the other, as many of each level, seconds, as it says; each up to a tenth longer, by chance.
fn made(name: &str, levels: &[(f64, usize)]) -> Value {
    let mut chance = RandomStream::new(1, 0, "oracle.rtt");
    let mut at = 0.0;
    let mut samples = Vec::new();
    for &(level, count) in levels {
        for _ in 0..count {
            let took = level * (1.0 + 0.1 * (chance.below(1 << 32) as f64 / f64::from(u32::MAX)));
            samples.push(json!([at, took]));
            at += took;
        }
    }
    json!({ "name": name, "samples": samples })
}

/// Series with a step in each, without any file: the thesis' handovers between PPP over GSM and WaveLAN, with an empty
/// path and with a window queued on it, milder ones, one up, and a path that goes back and forth.
#[must_use]
pub fn steps_json() -> Value {
    let there_and_back: Vec<(f64, usize)> = [(0.3, 12), (0.03, 6)].repeat(20);
    json!([
        made("700 ms to 3.5 ms", &[(0.7, 200), (0.0035, 400)]),
        made("11 s to 3.5 ms", &[(11.0, 200), (0.0035, 400)]),
        made("600 ms to 60 ms", &[(0.6, 200), (0.06, 400)]),
        made("80 ms to 10 ms", &[(0.08, 200), (0.01, 400)]),
        made("3.5 ms to 700 ms", &[(0.0035, 200), (0.7, 400)]),
        made("300 ms, 30 ms, 20 times", &there_and_back),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(name: &str) -> Vec<Value> {
        let steps = steps_json();
        let series = steps.as_array().unwrap().iter().find(|series| series["name"] == name).unwrap();
        judge_json(series).unwrap().as_array().unwrap().clone()
    }

    fn row(rows: &[Value], estimator: &str, floor: bool) -> Value {
        rows.iter()
            .find(|row| row["estimator"] == estimator && row["floor_s"].is_null() == floor)
            .unwrap()
            .clone()
    }

    #[test]
    fn after_a_step_down_the_fast_estimator_settles_within_ten_round_trips_and_the_others_do_not() {
        for name in ["700 ms to 3.5 ms", "11 s to 3.5 ms", "600 ms to 60 ms", "80 ms to 10 ms"] {
            let rows = rows(name);
            let settled = |estimator| {
                let row = row(&rows, estimator, false);
                assert_eq!((&row["steps_down"], &row["settled"]), (&json!(1), &json!(1)), "{row}");
                row["settled_after_round_trips"].as_f64().unwrap()
            };
            let fast = settled("fast-decrease");
            assert!(fast < 10.0, "{name}: {fast}");
            for other in ["rfc6298", "linux"] {
                assert!(settled(other) > 1.5 * fast, "{name}: {other} {} beside {fast}", settled(other));
            }
        }
    }

    #[test]
    fn without_a_step_down_the_fast_estimator_is_rfc_6298() {
        let rows = rows("3.5 ms to 700 ms");
        for floor in [true, false] {
            let (mut fast, mut plain) = (row(&rows, "fast-decrease", floor), row(&rows, "rfc6298", floor));
            for row in [&mut fast, &mut plain] {
                row["estimator"].take();
            }
            assert_eq!(fast, plain);
        }
    }

    #[test]
    fn a_path_that_goes_back_and_forth_costs_at_most_three_timeouts() {
        let rows = rows("300 ms, 30 ms, 20 times");
        let exceeding = |estimator| row(&rows, estimator, false)["exceeding"].as_u64().unwrap();
        assert!(exceeding("fast-decrease") <= exceeding("rfc6298") + 3);
    }

    #[test]
    fn a_segment_has_the_timeout_that_was_in_force_when_it_left() {
        // The second leaves before the first is acknowledged: it has no timeout yet that rests on a measurement.
        let series =
            json!({ "name": "", "samples": [[0.0, 0.1], [0.05, 9.0], [0.2, 0.1], [0.4, 0.31], [0.8, 0.1]] });
        let rows = judge_json(&series).unwrap();
        let plain = row(rows.as_array().unwrap(), "rfc6298", false);
        // 300 ms after the first, 250 ms after the third.
        assert_eq!((&plain["samples"], &plain["exceeding"]), (&json!(3), &json!(1)));
        let waste = (0.3 - 0.1) + (0.25 - 0.31);
        assert!(plain["waste_s"].as_f64().unwrap() * 3.0 > waste, "{plain}");
    }

    #[test]
    fn what_is_no_series_is_refused() {
        for (series, wanted) in [
            (json!({}), "pairs of seconds"),
            (json!({ "samples": [] }), "at least one"),
            (json!({ "samples": [[0, -1]] }), "sample 0"),
            (json!({ "samples": [[1, 0.1], [0, 0.1]] }), "in order"),
            (json!({ "samples": [[0, "x"]] }), "sample 0"),
        ] {
            let error = judge_json(&series).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_step_is_where_all_before_are_twice_all_after() {
        let series = |levels: &[(u64, usize)]| {
            let mut at = Instant::ZERO;
            let mut samples = Vec::new();
            for &(millis, count) in levels {
                for _ in 0..count {
                    let took = Duration::from_millis(millis);
                    samples.push(Timed { sent_at: at, took });
                    at += took;
                }
            }
            samples
        };
        let at = |levels: &[(u64, usize)]| {
            steps_down(&series(levels)).iter().map(|step| step.at).collect::<Vec<_>>()
        };
        assert_eq!(at(&[(100, 20), (50, 20)]), [20]);
        assert_eq!(at(&[(100, 20), (51, 20)]), [0_usize; 0]);
        assert_eq!(at(&[(100, 20), (20, 7), (100, 20)]), [0_usize; 0]);
        assert_eq!(at(&[(100, 7), (20, 20)]), [0_usize; 0]);
    }
}
