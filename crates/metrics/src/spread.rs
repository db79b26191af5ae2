//! How a duration is spread, in buckets whose width grows with it: memory does not grow with time.

use alloc::string::String;
use alloc::vec::Vec;

use careof_base::Duration;
use serde::Serialize;

use crate::seconds::{optional_span, span};

/// Buckets to a doubling: the middle of one is right to 1/64, under two per cent.
const STEPS: u64 = 32;
const BUCKETS: usize = 60 * STEPS as usize;

/// How a duration is distributed: exactly its extremes and its mean, its quantiles to the width of a bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    buckets: Vec<u64>,
    count: u64,
    sum_nanos: u128,
    min: Option<Duration>,
    max: Option<Duration>,
}

impl Spread {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The bucket of `nanos`: one each below [`STEPS`], from there on [`STEPS`] to a doubling.
    fn bucket(nanos: u64) -> usize {
        let doublings = u64::from((nanos / STEPS).checked_ilog2().map_or(0, |log| log + 1));
        let within = if doublings == 0 { nanos } else { (nanos >> (doublings - 1)) - STEPS };
        (doublings * STEPS + within) as usize
    }

    /// Where a bucket begins, and how wide it is, in nanoseconds.
    fn range(bucket: usize) -> (u64, u64) {
        let (doublings, within) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
        match doublings.checked_sub(1) {
            None => (within, 1),
            Some(shift) => ((STEPS + within) << shift, 1 << shift),
        }
    }

    pub(crate) fn add(&mut self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let bucket = Self::bucket(nanos).min(BUCKETS - 1);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(bucket) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_nanos += span.as_nanos();
        self.min = Some(self.min.map_or(span, |min| min.min(span)));
        self.max = self.max.max(Some(span));
    }

    pub(crate) const fn extremes(&self) -> [Option<Duration>; 2] {
        [self.min, self.max]
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean, rounded down to a nanosecond.
    pub(crate) fn mean(&self) -> Option<Duration> {
        let mean = self.sum_nanos.checked_div(self.count.into())?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The middle of the bucket that holds the lower median.
    pub(crate) fn median(&self) -> Option<Duration> {
        self.at_rank(self.count.checked_sub(1)? / 2)
    }

    /// What `permille` of 1000 values are at most: the middle of the bucket of the value with that rank, the nearest above.
    pub(crate) fn quantile(&self, permille: u64) -> Option<Duration> {
        let rank = (u128::from(self.count) * u128::from(permille)).div_ceil(1000);
        self.at_rank(u64::try_from(rank).unwrap_or(u64::MAX).max(1) - 1)
    }

    /// The middle of the bucket that holds the value that `rank` others are not above.
    fn at_rank(&self, rank: u64) -> Option<Duration> {
        let mut below = 0;
        let holds = |count: &u64| {
            below += count;
            below > rank
        };
        let (begin, width) = Self::range(self.buckets.iter().position(holds)?);
        Some(Duration::from_nanos(begin + width / 2).clamp(self.min?, self.max?))
    }
}

/// How a quantity of a flow is spread; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HistogramSummary {
    /// The flow's name.
    pub flow: String,
    /// What is spread: `delay` or `jitter`.
    pub quantity: String,
    /// How many values.
    pub samples: u64,
    /// The smallest.
    #[serde(rename = "min_s", serialize_with = "optional_span")]
    pub min: Option<Duration>,
    /// Their mean.
    #[serde(rename = "mean_s", serialize_with = "optional_span")]
    pub mean: Option<Duration>,
    /// What half of them are at most.
    #[serde(rename = "p50_s", serialize_with = "optional_span")]
    pub p50: Option<Duration>,
    /// What 90 of 100 are at most.
    #[serde(rename = "p90_s", serialize_with = "optional_span")]
    pub p90: Option<Duration>,
    /// What 99 of 100 are at most.
    #[serde(rename = "p99_s", serialize_with = "optional_span")]
    pub p99: Option<Duration>,
    /// What 999 of 1000 are at most.
    #[serde(rename = "p999_s", serialize_with = "optional_span")]
    pub p999: Option<Duration>,
    /// The largest.
    #[serde(rename = "max_s", serialize_with = "optional_span")]
    pub max: Option<Duration>,
    /// The buckets that are not empty.
    pub buckets: Vec<Bucket>,
}

/// A bucket of a histogram; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The smallest value that belongs to it.
    #[serde(rename = "from_s", serialize_with = "span")]
    pub from: Duration,
    /// The smallest that does not any more.
    #[serde(rename = "to_s", serialize_with = "span")]
    pub to: Duration,
    /// How many values.
    pub samples: u64,
}

impl HistogramSummary {
    /// The histogram of a `quantity` of `flow`; `None` without values.
    pub(crate) fn of(flow: &str, quantity: &str, spread: &Spread) -> Option<Self> {
        let filled = spread.buckets.iter().enumerate().filter(|(_, samples)| **samples > 0);
        let buckets = filled.map(|(bucket, samples)| {
            let (begin, width) = Spread::range(bucket);
            let [from, to] = [begin, begin.saturating_add(width)].map(Duration::from_nanos);
            Bucket { from, to, samples: *samples }
        });
        let [min, max] = spread.extremes();
        (spread.count() > 0).then(|| Self {
            flow: flow.into(),
            quantity: quantity.into(),
            samples: spread.count(),
            min,
            mean: spread.mean(),
            p50: spread.quantile(500),
            p90: spread.quantile(900),
            p99: spread.quantile(990),
            p999: spread.quantile(999),
            max,
            buckets: buckets.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_values_to_a_bucket() {
        let mut spread = Spread::new();
        // In an order that is none: 7919 is prime to 10,000.
        (0..10_000_u64).for_each(|n| spread.add(Duration::from_micros(1 + n * 7919 % 10_000)));
        for (permille, exact) in [(500, 5_000.0), (900, 9_000.0), (990, 9_900.0), (999, 9_990.0)] {
            let found = spread.quantile(permille).unwrap().as_secs_f64() * 1e6;
            assert!((found / exact - 1.0).abs() < 1.0 / 64.0, "{permille}: {found}");
        }
        assert_eq!(spread.extremes(), [1, 10_000].map(|us| Some(Duration::from_micros(us))));
        assert_eq!(spread.mean(), Some(Duration::from_nanos(5_000_500)));
        let histogram = HistogramSummary::of("x", "delay", &spread).unwrap();
        assert_eq!(histogram.buckets.iter().map(|bucket| bucket.samples).sum::<u64>(), 10_000);
        assert!(histogram.buckets.windows(2).all(|pair| pair[0].to <= pair[1].from));
        assert!(histogram.buckets[0].from <= Duration::from_micros(1));
    }

    #[test]
    fn a_quantile_of_one_value_is_that_value_and_of_none_nothing() {
        let mut spread = Spread::new();
        assert_eq!((spread.quantile(500), spread.mean(), spread.median()), (None, None, None));
        assert_eq!(HistogramSummary::of("x", "delay", &spread), None);
        spread.add(Duration::from_millis(3));
        for permille in [0, 1, 500, 1000] {
            assert_eq!(spread.quantile(permille), Some(Duration::from_millis(3)));
        }
        spread.add(Duration::MAX);
        assert!(
            spread.quantile(1000) > Some(Duration::from_secs(1 << 33)),
            "what fits no bucket is in the last"
        );
    }
}
