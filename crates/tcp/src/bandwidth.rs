//! How much the path delivers, in the sender's view: an estimate beside the congestion control, which nobody but
//! [advice](crate::Advice::Replaced) asks for.
//!
//! | estimator | what it is |
//! |---|---|
//! | [`BandwidthEstimator::Westwood`] | Westwood+'s: what is acknowledged in a round trip, at least 50 ms, through two low-pass filters of 1/8 (`congestion/westwood.rs`) |
//! | [`BandwidthEstimator::DeliveryRate`] | the largest delivery rate (`delivery_rate.rs`) of the last ten round trips, as BBR has it; samples that the application limits count where they are larger |
//!
//! Both count bytes of data, without headers. Neither takes silence for a slow path: while nothing is acknowledged nothing is
//! measured, and after a handover [`Bandwidth::begin`] starts the measurement anew.

use core::fmt;

use careof_base::{DataRate, Instant};
use careof_wire::SeqNumber;

use crate::congestion::{AckSample, Westwood, Window, WindowedMax};
use crate::delivery_rate::RateSample;

/// Round trips over which the largest delivery rate is taken (BBR's `bbr_bw_rtts`).
const ROUNDS: u64 = 10;

/// An estimator of the bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BandwidthEstimator {
    /// Westwood+'s filter over what is acknowledged.
    #[default]
    Westwood,
    /// The largest delivery rate of ten round trips.
    DeliveryRate,
}

impl BandwidthEstimator {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Westwood, Self::DeliveryRate];

    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Westwood => "westwood",
            Self::DeliveryRate => "delivery-rate",
        }
    }
}

impl fmt::Display for BandwidthEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The estimator in use.
#[derive(Clone, Debug)]
pub(crate) enum Bandwidth {
    Westwood(Westwood),
    DeliveryRate(LargestRate),
}

impl Bandwidth {
    pub(crate) fn new(estimator: BandwidthEstimator) -> Self {
        match estimator {
            // In bytes a second, whichever sender it is.
            BandwidthEstimator::Westwood => Self::Westwood(Westwood::new(false)),
            BandwidthEstimator::DeliveryRate => Self::DeliveryRate(LargestRate::default()),
        }
    }

    /// Nothing is known of the path; everything before `una` is acknowledged.
    pub(crate) fn begin(&mut self, now: Instant, una: SeqNumber) {
        match self {
            Self::Westwood(westwood) => westwood.begin_at(now, una),
            Self::DeliveryRate(largest) => *largest = LargestRate::default(),
        }
    }

    /// An acknowledgement came, a duplicate perhaps.
    pub(crate) fn on_ack(&mut self, window: &Window, sample: &AckSample) {
        if let Self::Westwood(westwood) = self {
            westwood.on_ack(window, sample);
        }
    }

    /// A delivery rate was measured, of amounts of `unit` bytes; `delivered` of them have arrived in all.
    pub(crate) fn on_rate(&mut self, sample: &RateSample, unit: u64, delivered: u64) {
        if let Self::DeliveryRate(largest) = self {
            largest.take(sample, unit, delivered);
        }
    }

    /// What the path delivers, of data; `None` before the first measurement.
    pub(crate) fn rate(&self) -> Option<DataRate> {
        let bytes = match self {
            Self::Westwood(westwood) => westwood.bytes_per_second(),
            Self::DeliveryRate(largest) => largest.peak.get(),
        };
        (bytes > 0).then(|| DataRate::from_bits_per_second(bytes.saturating_mul(8)))
    }
}

/// The largest delivery rate of the last round trips, bytes a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct LargestRate {
    peak: WindowedMax,
    /// Round trips so far.
    round: u64,
    /// The present one ends with a segment that left when this much had been delivered.
    round_ends: u64,
}

impl LargestRate {
    fn take(&mut self, sample: &RateSample, unit: u64, delivered: u64) {
        let Some((amount, interval)) = sample.delivered.zip(sample.interval) else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round += 1;
            self.round_ends = delivered;
        }
        let bytes = u128::from(amount) * u128::from(unit) * 1_000_000_000;
        let Some(rate) = bytes.checked_div(interval.as_nanos()) else { return };
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        if !sample.app_limited || rate >= self.peak.get() {
            self.peak.update(ROUNDS, self.round, rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn rate(amount: u64, ms: u64, prior_delivered: u64, app_limited: bool) -> RateSample {
        RateSample {
            newly_delivered: amount,
            newly_lost: 0,
            delivered: Some(amount),
            interval: Some(Duration::from_millis(ms)),
            prior_delivered,
            app_limited,
            tx_in_flight: 0,
            lost: 0,
            prior_in_flight: 0,
            rtt: None,
            ack_delayed: false,
        }
    }

    fn bits(bandwidth: &Bandwidth) -> Option<u64> {
        bandwidth.rate().map(|rate| rate.bits_per_second())
    }

    #[test]
    fn the_largest_delivery_rate_of_ten_round_trips_is_the_estimate() {
        let mut bandwidth = Bandwidth::new(BandwidthEstimator::DeliveryRate);
        assert_eq!(bits(&bandwidth), None);
        // 100 segments of 1000 bytes in 100 ms, then half as much in each round trip.
        bandwidth.on_rate(&rate(100, 100, 0, false), 1_000, 100);
        assert_eq!(bits(&bandwidth), Some(8_000_000));
        let mut delivered = 100;
        for _ in 0..ROUNDS {
            bandwidth.on_rate(&rate(50, 100, delivered, false), 1_000, delivered + 50);
            delivered += 50;
            assert_eq!(bits(&bandwidth), Some(8_000_000));
        }
        for _ in 0..2 {
            bandwidth.on_rate(&rate(50, 100, delivered, false), 1_000, delivered + 50);
            delivered += 50;
        }
        assert_eq!(bits(&bandwidth), Some(4_000_000));
    }

    #[test]
    fn a_sample_that_the_application_limits_counts_where_it_is_larger() {
        let mut bandwidth = Bandwidth::new(BandwidthEstimator::DeliveryRate);
        bandwidth.on_rate(&rate(100_000, 100, 0, false), 1, 100_000);
        bandwidth.on_rate(&rate(10_000, 100, 100_000, true), 1, 110_000);
        assert_eq!(bits(&bandwidth), Some(8_000_000));
        bandwidth.on_rate(&rate(200_000, 100, 110_000, true), 1, 310_000);
        assert_eq!(bits(&bandwidth), Some(16_000_000));
    }

    #[test]
    fn a_sample_without_a_plausible_interval_says_nothing() {
        let mut bandwidth = Bandwidth::new(BandwidthEstimator::DeliveryRate);
        bandwidth.on_rate(&RateSample { interval: None, ..rate(100, 100, 0, false) }, 1, 100);
        bandwidth.on_rate(&rate(100, 0, 0, false), 1, 100);
        assert_eq!(bits(&bandwidth), None);
    }
}
