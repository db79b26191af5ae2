//! RFC 6298 (2011), section 2 and 5; with many samples in a round trip, RFC 7323 (2014) appendix G.

use core::time::Duration;

use careof_base::Instant;

use super::{Sample, doubled};
use crate::config::Config;
use crate::timer::nanos;

/// Fractional bits of the averages: rounding stays far below a nanosecond.
const FRACTION: u32 = 16;

#[derive(Clone, Debug)]
pub(crate) struct Rfc6298 {
    /// Nanoseconds, with [`FRACTION`] bits behind the point.
    srtt: u64,
    rttvar: u64,
    measured: bool,
    backoff: u32,
    /// RTO without back-off, nanoseconds, within its bounds.
    base: u64,
    current: u64,
    granularity: u64,
    min: u64,
    max: u64,
}

impl Rfc6298 {
    pub(crate) fn new(config: &Config) -> Self {
        let initial = nanos(config.effective_rto_initial());
        Self {
            srtt: 0,
            rttvar: 0,
            measured: false,
            backoff: 0,
            base: initial,
            current: initial,
            granularity: nanos(config.clock_granularity),
            min: nanos(config.effective_rto_min()),
            max: nanos(config.effective_rto_max()),
        }
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let rtt = nanos(sample.rtt()).min(u64::MAX >> (FRACTION + 3)) << FRACTION;
        if self.measured {
            // Appendix G divides both gains by the number of samples a round trip will bring.
            let expected = u64::from(sample.expected.max(1));
            let error = self.srtt.abs_diff(rtt);
            self.rttvar = approach(self.rttvar, error, expected.saturating_mul(4));
            self.srtt = approach(self.srtt, rtt, expected.saturating_mul(8));
        } else {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
            self.measured = true;
        }
        self.compute();
    }

    /// RFC 4015 step 8: the averages go on from the greater of what they were and what is measured now.
    pub(crate) fn adapt(&mut self, sample: &Sample, previous: (Duration, Duration)) {
        let scaled = |span: Duration| nanos(span).min(u64::MAX >> (FRACTION + 3)) << FRACTION;
        let rtt = scaled(sample.rtt());
        self.srtt = scaled(previous.0).max(rtt);
        self.rttvar = scaled(previous.1).max(rtt / 2);
        self.measured = true;
        self.compute();
    }

    /// The same estimator as if it had measured `rtt` and nothing before.
    pub(super) fn begun_with(&self, rtt: Duration) -> Self {
        let rtt = nanos(rtt).min(u64::MAX >> (FRACTION + 3)) << FRACTION;
        let mut begun = Self { srtt: rtt, rttvar: rtt / 2, measured: true, ..self.clone() };
        begun.compute();
        begun
    }

    /// RTO without back-off.
    pub(super) fn base(&self) -> Duration {
        Duration::from_nanos(self.base)
    }

    fn compute(&mut self) {
        let rto = (self.srtt >> FRACTION) + self.granularity.max((4 * self.rttvar) >> FRACTION);
        self.base = rto.clamp(self.min, self.max);
        self.backoff = 0;
        self.current = self.base;
    }

    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.current = doubled(self.base, self.backoff, self.max);
    }

    pub(crate) fn undo_back_off(&mut self) -> bool {
        let Some(less) = self.backoff.checked_sub(1) else { return false };
        self.backoff = less;
        self.current = doubled(self.base, self.backoff, self.max);
        true
    }

    /// Section 5.7: an RTO below 3 s that let a SYN time out is not trusted with data.
    pub(crate) fn syn_was_repeated(&mut self) {
        if !self.measured {
            self.base = self.base.max(3_000_000_000).min(self.max);
            self.backoff = 0;
            self.current = self.base;
        }
    }

    pub(crate) fn rto(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// When a timer started at `from` runs out.
    pub(crate) fn deadline(&self, from: Instant) -> Instant {
        Instant::from_nanos(from.as_nanos().saturating_add(self.current))
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.measured.then(|| Duration::from_nanos(self.srtt >> FRACTION))
    }

    pub(crate) fn rttvar(&self) -> Option<Duration> {
        self.measured.then(|| Duration::from_nanos(self.rttvar >> FRACTION))
    }
}

/// `average` moved towards `value` by a `parts`-th of the way.
fn approach(average: u64, value: u64, parts: u64) -> u64 {
    if value >= average { average + (value - average) / parts } else { average - (average - value) / parts }
}
