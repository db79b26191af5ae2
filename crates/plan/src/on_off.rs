//! Bursts and pauses of an on-off flow.

use careof_base::{Duration, Instant, RandomStream};
use careof_scenario::{Burst, Law, OnOff};

/// What is written now, and when the application comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// 0 once everything is written; `None` where it is too early for the next message.
    pub(crate) bytes: Option<u64>,
    /// `None` where that depends on the arrival of what is written.
    pub(crate) next: Option<Instant>,
}

/// Where an on-off flow is in its bursts.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    config: OnOff,
    random: RandomStream,
    /// Bursts of some time: when the present one is over.
    end: Option<Instant>,
    /// How much of bursts to come the last message takes at the flow's rate.
    owed: Duration,
}

impl Bursts {
    pub(crate) const fn new(config: OnOff, random: RandomStream) -> Self {
        Self { config, random, end: None, owed: Duration::ZERO }
    }

    /// Whether a pause begins with the arrival of a burst.
    pub(crate) const fn wait_for_arrival(&self) -> bool {
        matches!(self.config.burst, Burst::Bytes(_))
    }

    /// It is `now`, and `written` bytes have been written in all.
    pub(crate) fn step(&mut self, now: Instant, written: u64) -> Step {
        let left = self.left(written);
        let (span, rate, message) = match self.config.burst {
            Burst::Bytes(mean) => {
                let bytes = drawn(mean, self.config.burst_law, &mut self.random).max(1);
                return Step { bytes: Some(bytes.min(left)), next: None };
            }
            Burst::Time { span, rate, message } => (span, rate, message),
        };
        let end = match self.end {
            Some(end) => end,
            None => now + drawn_span(span, self.config.burst_law, &mut self.random),
        };
        let (bytes, interval) = if self.owed.is_zero() || left == 0 {
            let bytes = message.min(left);
            (Some(bytes), rate.time_for_bits(bytes.saturating_mul(8)).unwrap_or(Duration::MAX))
        } else {
            (None, self.owed)
        };
        let next = now + interval;
        // A rate of bursts is kept over them: a message that would be due later is, as far into the next one.
        self.owed = next - end;
        self.end = (next < end).then_some(end);
        Step { bytes, next: Some(if next < end { next } else { end + self.pause() }) }
    }

    /// A burst of bytes, by which `written` are written in all, has arrived: how long the pause is; `None` when that was
    /// everything.
    pub(crate) fn arrived(&mut self, written: u64) -> Option<Duration> {
        (self.left(written) > 0).then(|| self.pause())
    }

    fn left(&self, written: u64) -> u64 {
        self.config.size.map_or(u64::MAX, |size| size.saturating_sub(written))
    }

    fn pause(&mut self) -> Duration {
        drawn_span(self.config.pause, self.config.pause_law, &mut self.random)
    }
}

fn drawn_span(mean: Duration, law: Law, random: &mut RandomStream) -> Duration {
    Duration::from_nanos(drawn(u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX), law, random))
}

/// A number around `mean`. The conversion saturates.
fn drawn(mean: u64, law: Law, random: &mut RandomStream) -> u64 {
    let factor = match law {
        Law::Fixed => return mean,
        Law::Exponential => random.standard_exponential(),
        // A Pareto distribution with minimum 1 has the mean shape / (shape - 1).
        Law::Pareto(shape) => random.standard_pareto(shape) * (shape - 1.0) / shape,
    };
    (mean as f64 * factor) as u64
}
