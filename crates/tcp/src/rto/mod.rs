//! Estimators of the retransmission timeout, chosen at run time.
//!
//! An estimator is fed round-trip samples and timeouts and answers with an RTO and a deadline. Which
//! acknowledgements make a sample (Karn's algorithm) is the sender's business; how often, is the estimator's
//! ([`Sampling`]).

mod advised;
mod alone;
mod bsd;
mod fast_decrease;
mod linux;
mod linux20;
mod rfc6298;

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::config::{Config, RtoEstimator};

pub(crate) use advised::{Advised, Told};
pub use alone::{RoundTrip, TimeoutEstimator};
pub(crate) use bsd::Bsd;
pub(crate) use fast_decrease::FastDecrease;
pub(crate) use linux::Linux;
pub(crate) use linux20::Linux20;
pub(crate) use rfc6298::Rfc6298;

/// Which segments are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// One at a time, as the first implementations did; every acknowledgement with timestamps.
    OneAtATime,
    /// Every acknowledgement of data that was sent once.
    EveryAck,
    /// Every segment that an acknowledgement covers.
    EverySegment,
}

/// A round-trip measurement and what the estimators want to know about its circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When the timed segment left.
    pub(crate) sent_at: Instant,
    /// When its acknowledgement came.
    pub(crate) now: Instant,
    /// Everything before is acknowledged, this acknowledgement included.
    pub(crate) snd_una: SeqNumber,
    /// Everything before has been sent.
    pub(crate) snd_nxt: SeqNumber,
    /// Samples expected in one round trip (RFC 7323 appendix G); 1 when one segment is timed at a time.
    pub(crate) expected: u32,
    /// Congestion window, segments.
    pub(crate) cwnd_segments: u32,
}

impl Sample {
    pub(crate) fn rtt(&self) -> Duration {
        self.now - self.sent_at
    }
}

/// The estimator in use.
#[derive(Clone, Debug)]
pub(crate) enum Estimator {
    Rfc6298(Rfc6298),
    Linux(Linux),
    Linux20(Linux20),
    Bsd(Bsd),
    FastDecrease(Box<FastDecrease>),
    /// Any of the others, told what to expect of the path.
    Advised(Box<Advised>),
}

macro_rules! each {
    ($self:expr, $estimator:ident => $answer:expr) => {
        match $self {
            Estimator::Rfc6298($estimator) => $answer,
            Estimator::Linux($estimator) => $answer,
            Estimator::Linux20($estimator) => $answer,
            Estimator::Bsd($estimator) => $answer,
            Estimator::FastDecrease($estimator) => $answer,
            Estimator::Advised($estimator) => $answer,
        }
    };
}

impl Estimator {
    pub(crate) fn new(config: &Config) -> Self {
        match config.rto {
            RtoEstimator::Rfc6298 => Self::Rfc6298(Rfc6298::new(config)),
            RtoEstimator::Linux => Self::Linux(Linux::new(config)),
            RtoEstimator::Linux20 => Self::Linux20(Linux20::new(config)),
            RtoEstimator::Bsd => Self::Bsd(Bsd::new(config)),
            RtoEstimator::FastDecrease => Self::FastDecrease(Box::new(FastDecrease::new(config))),
        }
    }

    pub(crate) fn sampling(&self) -> Sampling {
        match self {
            Self::Rfc6298(_) | Self::Bsd(_) | Self::FastDecrease(_) => Sampling::OneAtATime,
            Self::Linux(_) => Sampling::EveryAck,
            Self::Linux20(_) => Sampling::EverySegment,
            Self::Advised(e) => e.sampling(),
        }
    }

    /// Takes a measurement in; this ends any back-off.
    pub(crate) fn sample(&mut self, sample: &Sample) {
        match self {
            Self::Rfc6298(e) => e.sample(sample),
            Self::Linux(e) => e.sample(sample),
            Self::Linux20(e) => e.sample(sample),
            Self::Bsd(e) => e.sample(sample),
            Self::FastDecrease(e) => e.sample(sample),
            Self::Advised(_) => self.settle(sample),
        }
    }

    /// [`Self::sample`] of an estimator that was advised.
    #[cold]
    fn settle(&mut self, sample: &Sample) {
        if let Self::Advised(advised) = self
            && let Some(settled) = advised.settle(sample)
        {
            *self = settled;
        }
    }

    /// Doubles the timeout after it ran out (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        each!(self, e => e.back_off());
    }

    /// Takes one doubling back (RFC 6069); `false` where there is none.
    pub(crate) fn undo_back_off(&mut self) -> bool {
        each!(self, e => e.undo_back_off())
    }

    /// Takes the first measurement after a spurious timeout in (RFC 4015 step 8): `previous` are SRTT and RTTVAR as
    /// they were before. Only RFC 6298's estimator does more of it than of any other.
    pub(crate) fn sample_after_spurious_timeout(&mut self, sample: &Sample, previous: (Duration, Duration)) {
        match self {
            Self::Rfc6298(e) => e.adapt(sample, previous),
            Self::FastDecrease(e) => e.adapt(sample, previous),
            other => other.sample(sample),
        }
    }

    /// Tells that the handshake is over, and whether a SYN had to be repeated.
    pub(crate) fn connected(&mut self, syn_repeated: bool) {
        match self {
            Self::Rfc6298(e) if syn_repeated => e.syn_was_repeated(),
            Self::FastDecrease(e) if syn_repeated => e.syn_was_repeated(),
            Self::Advised(e) => e.connected(syn_repeated),
            Self::Linux20(e) => e.forget(),
            _ => {}
        }
    }

    /// The timeout in force, back-off included.
    pub(crate) fn rto(&self) -> Duration {
        each!(self, e => e.rto())
    }

    /// Timeouts since the last sample.
    pub(crate) fn backoff(&self) -> u32 {
        each!(self, e => e.backoff())
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        each!(self, e => e.srtt())
    }

    /// Round-trip time variation; `None` before the first sample.
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        each!(self, e => e.rttvar())
    }

    /// When a timer started at `from` runs out. Kernels with a coarse clock fire on its ticks.
    #[inline]
    pub(crate) fn deadline(&self, from: Instant) -> Instant {
        match self {
            Self::Rfc6298(e) => e.deadline(from),
            Self::Linux(e) => from + e.rto(),
            Self::Linux20(e) => e.deadline(from, from),
            Self::Bsd(e) => e.deadline(from),
            Self::FastDecrease(e) => e.deadline(from),
            Self::Advised(e) => e.deadline(from),
        }
    }

    /// When the timer of a segment sent at `sent_at` runs out; in 20 ms where that is past.
    pub(crate) fn deadline_of_segment(&self, sent_at: Instant, now: Instant) -> Instant {
        match self {
            Self::Linux20(e) => return e.deadline(sent_at, now),
            Self::Advised(e) => return e.deadline_of_segment(sent_at, now),
            _ => {}
        }
        let deadline = self.deadline(sent_at);
        if deadline > now { deadline } else { now + Duration::from_millis(20) }
    }
}

/// `rto` doubled `backoff` times, at most `max`.
fn doubled(rto: u64, backoff: u32, max: u64) -> u64 {
    1_u64.checked_shl(backoff).and_then(|factor| rto.checked_mul(factor)).map_or(max, |rto| rto.min(max))
}
