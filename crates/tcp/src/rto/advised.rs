//! An estimator that was [told](crate::Advice) something of the path, until it has measured it.
//!
//! The old path's segments are still being acknowledged when the sender learns that the path is another. Their round
//! trips would undo the advice at once: after a handover to a slow path the next acknowledgement is a fast one's. So
//! nothing counts that left before the advice; the first measurement of what left after it goes to the estimator, which
//! then goes on by itself.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{Estimator, Sample, Sampling};
use crate::config::Config;

#[derive(Clone, Debug)]
pub(crate) struct Advised {
    estimator: Estimator,
    /// When the advice came.
    since: Instant,
}

/// What an estimator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing: it begins anew.
    Nothing,
    /// The timeout, within its bounds, until it has measured a round trip.
    Rto(Duration),
    /// The round trip, as if that were measured: SRTT = R, RTTVAR = R/2.
    RoundTrip(Duration),
}

impl Estimator {
    /// A new estimator that was told something at `now`.
    pub(crate) fn told(told: Told, now: Instant, config: &Config) -> Self {
        let estimator = match told {
            Told::Nothing => Self::new(config),
            Told::Rto(rto) => {
                let rto = rto.clamp(config.effective_rto_min(), config.effective_rto_max());
                Self::new(&Config { rto_initial: Some(rto), ..config.clone() })
            }
            Told::RoundTrip(round_trip) => {
                let mut estimator = Self::new(config);
                estimator.sample(&Sample {
                    sent_at: Instant::ZERO,
                    now: Instant::ZERO + round_trip.min(config.effective_rto_max()),
                    snd_una: SeqNumber(0),
                    snd_nxt: SeqNumber(0),
                    expected: 1,
                    cwnd_segments: 1,
                });
                estimator
            }
        };
        Self::Advised(alloc::boxed::Box::new(Advised { estimator, since: now }))
    }
}

impl Advised {
    /// Takes a measurement in, or leaves it alone. Returns the estimator once it has measured the path.
    #[cold]
    pub(super) fn settle(&mut self, sample: &Sample) -> Option<Estimator> {
        if sample.sent_at < self.since {
            return None;
        }
        self.estimator.sample(sample);
        Some(self.estimator.clone())
    }

    #[cold]
    pub(super) fn sampling(&self) -> Sampling {
        self.estimator.sampling()
    }

    #[cold]
    pub(super) fn back_off(&mut self) {
        self.estimator.back_off();
    }

    #[cold]
    pub(super) fn undo_back_off(&mut self) -> bool {
        self.estimator.undo_back_off()
    }

    #[cold]
    pub(super) fn connected(&mut self, syn_repeated: bool) {
        self.estimator.connected(syn_repeated);
    }

    #[cold]
    pub(super) fn rto(&self) -> Duration {
        self.estimator.rto()
    }

    #[cold]
    pub(super) fn backoff(&self) -> u32 {
        self.estimator.backoff()
    }

    #[cold]
    pub(super) fn srtt(&self) -> Option<Duration> {
        self.estimator.srtt()
    }

    #[cold]
    pub(super) fn rttvar(&self) -> Option<Duration> {
        self.estimator.rttvar()
    }

    #[cold]
    pub(super) fn deadline(&self, from: Instant) -> Instant {
        self.estimator.deadline(from)
    }

    #[cold]
    pub(super) fn deadline_of_segment(&self, sent_at: Instant, now: Instant) -> Instant {
        self.estimator.deadline_of_segment(sent_at, now)
    }
}
