//! An estimator without a connection.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{Estimator, Sample, Sampling};
use crate::config::{Config, ConfigError};

/// A round trip, and where the sender stood when it was measured; segments are counted from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// When the segment left.
    pub sent_at: Instant,
    /// When its acknowledgement came.
    pub acknowledged_at: Instant,
    /// Segments acknowledged then, this one included.
    pub acknowledged: u32,
    /// Segments sent by then.
    pub sent: u32,
}

/// The estimator of the retransmission timeout that a [`Config`] asks for, by itself: for whoever has round trips, of a
/// trace for example, and no connection.
#[derive(Clone, Debug)]
pub struct TimeoutEstimator(Estimator);

impl TimeoutEstimator {
    /// An estimator that has measured nothing.
    ///
    /// # Errors
    /// What [`Config::check`] finds.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self(Estimator::new(config)))
    }

    /// Whether a sender without timestamps measures one segment at a time for it, and not each that is
    /// acknowledged.
    #[must_use]
    pub fn times_one_at_a_time(&self) -> bool {
        self.0.sampling() == Sampling::OneAtATime
    }

    /// Takes a measurement in, at full weight: without timestamps there is no appendix G of RFC 7323.
    pub fn measure(&mut self, round_trip: &RoundTrip) {
        let in_flight = round_trip.sent.saturating_sub(round_trip.acknowledged) + 1;
        self.0.sample(&Sample {
            sent_at: round_trip.sent_at,
            now: round_trip.acknowledged_at,
            snd_una: SeqNumber(round_trip.acknowledged),
            snd_nxt: SeqNumber(round_trip.sent),
            expected: 1,
            cwnd_segments: in_flight,
        });
    }

    /// The timeout in force.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.0.rto()
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.0.srtt()
    }
}
