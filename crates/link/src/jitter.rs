//! Deviation of single packets from the propagation delay.

use careof_base::{Duration, RandomStream};

use crate::config::Jitter;

/// Draws a deviation for each packet, in the order in which they are sent.
#[derive(Clone, Debug)]
pub(crate) struct JitterProcess {
    law: Jitter,
    stream: RandomStream,
}

impl JitterProcess {
    pub(crate) fn new(law: Jitter, stream: RandomStream) -> Self {
        Self { law, stream }
    }

    pub(crate) fn set_law(&mut self, law: Jitter) {
        self.law = law;
    }

    /// What the next packet's delay differs by, in nanoseconds.
    pub(crate) fn next_nanos(&mut self) -> i64 {
        match self.law {
            Jitter::None => 0,
            Jitter::Uniform { spread, .. } => {
                let spread = nanos(spread).min(i64::MAX as u64 / 2);
                self.stream.below(2 * spread + 1) as i64 - spread as i64
            }
            // A float that does not fit an integer becomes the nearest integer there is, and NaN zero.
            Jitter::Normal { deviation, .. } => {
                libm::round(nanos(deviation) as f64 * self.stream.standard_normal()) as i64
            }
            Jitter::Pareto { scale, shape, .. } => {
                libm::round(nanos(scale) as f64 * (self.stream.standard_pareto(shape) - 1.0)) as i64
            }
        }
    }
}

pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::vec::Vec;

    const N: u32 = 400_000;

    fn draws(law: Jitter) -> Vec<f64> {
        let mut process = JitterProcess::new(law, RandomStream::new(5, 0, "jitter"));
        (0..N).map(|_| process.next_nanos() as f64 / 1e6).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// The mean of the `power`-th powers.
    fn moment(values: &[f64], power: i32) -> f64 {
        values.iter().map(|v| v.powi(power)).sum::<f64>() / values.len() as f64
    }

    /// Five standard errors of a mean of `N` values with this standard deviation.
    fn five_sigma(deviation: f64) -> f64 {
        5.0 * deviation / f64::from(N).sqrt()
    }

    #[test]
    fn uniform_jitter_is_centred_bounded_and_flat() {
        let spread = 3.0_f64;
        let values = draws(Jitter::Uniform { spread: Duration::from_millis(3), reorder: true });
        assert!(values.iter().all(|v| v.abs() <= spread));
        assert!(mean(&values).abs() < five_sigma(spread / 3.0_f64.sqrt()));
        // Second moment a²/3; the variance of x² is 4a⁴/45.
        assert!((moment(&values, 2) - 3.0).abs() < five_sigma((4.0 * 81.0 / 45.0_f64).sqrt()));
        // Fourth moment a⁴/5; the variance of x⁴ is 16a⁸/225.
        assert!((moment(&values, 4) - 16.2).abs() < five_sigma((16.0 * 6561.0 / 225.0_f64).sqrt()));
    }

    #[test]
    fn normal_jitter_has_the_moments_of_a_normal_law() {
        let values = draws(Jitter::Normal { deviation: Duration::from_millis(2), reorder: true });
        assert!(mean(&values).abs() < five_sigma(2.0));
        assert!((moment(&values, 2) - 4.0).abs() < five_sigma(4.0 * 2.0_f64.sqrt()));
        assert!(moment(&values, 3).abs() < five_sigma(8.0 * 15.0_f64.sqrt()));
        assert!((moment(&values, 4) - 48.0).abs() < five_sigma(16.0 * 96.0_f64.sqrt()));
    }

    #[test]
    fn pareto_jitter_only_adds_and_has_the_lomax_tail() {
        let (scale, shape) = (1.5, 4.0);
        let values = draws(Jitter::Pareto { scale: Duration::from_micros(1500), shape, reorder: true });
        assert!(values.iter().all(|v| *v >= 0.0));
        // Mean s/(a-1); variance s²a/((a-1)²(a-2)).
        let variance = scale * scale * shape / (9.0 * 2.0);
        assert!((mean(&values) - scale / 3.0).abs() < five_sigma(variance.sqrt()));
        // P(J > j) = (1 + j/s)^-a.
        for beyond in [0.5, 1.5, 6.0_f64] {
            let expected = (1.0 + beyond / scale).powf(-shape);
            let found = values.iter().filter(|v| **v > beyond).count() as f64 / f64::from(N);
            assert!((found - expected).abs() < five_sigma((expected * (1.0 - expected)).sqrt()));
        }
    }

    #[test]
    fn a_law_that_cannot_be_kept_is_still_a_number() {
        for law in [
            Jitter::Uniform { spread: Duration::MAX, reorder: true },
            Jitter::Normal { deviation: Duration::MAX, reorder: true },
            Jitter::Pareto { scale: Duration::MAX, shape: f64::NAN, reorder: true },
            Jitter::Pareto { scale: Duration::MAX, shape: -1.0, reorder: true },
        ] {
            let mut process = JitterProcess::new(law, RandomStream::new(1, 0, "odd"));
            for _ in 0..100 {
                process.next_nanos();
            }
        }
    }
}
