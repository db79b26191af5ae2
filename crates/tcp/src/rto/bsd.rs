//! The estimator of 4.4BSD (Net/3, 1994): ticks of 500 ms, scaled integers.
//!
//! Measurements and timeouts count ticks of the slow timeout, which runs for all connections alike; a timer of
//! n ticks fires at the n-th tick after it was set, so up to half a second early. Stevens and Wright, TCP/IP
//! Illustrated volume 2, chapter 25.

use core::time::Duration;

use careof_base::Instant;

use super::Sample;
use crate::config::Config;
use crate::timer::Ticks;

/// Back-off stops growing after six doublings.
const MOST_DOUBLINGS: u32 = 6;
/// After this many timeouts the average is forgotten, its weight moved to the variation.
const DISTRUST_AFTER: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Bsd {
    /// Ticks times 8; 0 before the first sample.
    srtt: i64,
    /// Ticks times 4.
    rttvar: i64,
    backoff: u32,
    /// Ticks, back-off included.
    current: i64,
    min: i64,
    max: i64,
}

fn ticks(span: Duration) -> i64 {
    i64::try_from(Ticks::SLOW_TIMEOUT.count_in(span)).unwrap_or(i64::MAX >> 8).min(i64::MAX >> 8)
}

impl Bsd {
    pub(crate) fn new(config: &Config) -> Self {
        // Three seconds of variation and no average: the first timeout is set apart, later ones back off from
        // SRTT + 4 RTTVAR.
        Self {
            srtt: 0,
            rttvar: ticks(Duration::from_secs(3)) << 2,
            backoff: 0,
            current: ticks(config.effective_rto_initial()),
            min: ticks(config.effective_rto_min()),
            max: ticks(config.effective_rto_max()),
        }
    }

    fn base(&self) -> i64 {
        (self.srtt >> 3) + self.rttvar
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let slow = Ticks::SLOW_TIMEOUT;
        let crossed = slow.at(sample.now).saturating_sub(slow.at(sample.sent_at));
        // The counter of the kernel starts at 1.
        let rtt = i64::try_from(crossed).unwrap_or(i64::MAX >> 8).min(i64::MAX >> 8) + 1;
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.rttvar = rtt << 1;
        } else {
            let error = rtt - 1 - (self.srtt >> 3);
            self.srtt = (self.srtt + error).max(1);
            self.rttvar = (self.rttvar + error.abs() - (self.rttvar >> 2)).max(1);
        }
        self.backoff = 0;
        self.current = self.base().clamp(self.min, self.max);
    }

    pub(crate) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.double();
        if self.backoff > DISTRUST_AFTER {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    pub(crate) fn undo_back_off(&mut self) -> bool {
        let Some(less) = self.backoff.checked_sub(1) else { return false };
        self.backoff = less;
        self.double();
        true
    }

    fn double(&mut self) {
        let factor = 1_i64 << self.backoff.min(MOST_DOUBLINGS);
        self.current = self.base().saturating_mul(factor).clamp(self.min, self.max);
    }

    pub(crate) fn rto(&self) -> Duration {
        Ticks::SLOW_TIMEOUT.span_of(self.current.unsigned_abs())
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Ticks::SLOW_TIMEOUT.span_of(self.srtt.unsigned_abs()) / 8)
    }

    pub(crate) fn rttvar(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Ticks::SLOW_TIMEOUT.span_of(self.rttvar.unsigned_abs()) / 4)
    }

    pub(crate) fn deadline(&self, from: Instant) -> Instant {
        Ticks::SLOW_TIMEOUT.start_of(Ticks::SLOW_TIMEOUT.at(from).saturating_add(self.current.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RtoEstimator;
    use careof_wire::SeqNumber;

    fn bsd() -> Bsd {
        Bsd::new(&Config { rto: RtoEstimator::Bsd, ..Config::default() })
    }

    fn feed(bsd: &mut Bsd, from: u64, to: u64) {
        bsd.sample(&Sample {
            sent_at: Instant::from_millis(from),
            now: Instant::from_millis(to),
            snd_una: SeqNumber(0),
            snd_nxt: SeqNumber(0),
            expected: 1,
            cwnd_segments: 10,
        });
    }

    #[test]
    fn a_syn_is_repeated_after_6_then_24_then_48_seconds() {
        let mut bsd = bsd();
        assert_eq!(bsd.rto(), Duration::from_secs(6));
        bsd.back_off();
        assert_eq!(bsd.rto(), Duration::from_secs(24));
        bsd.back_off();
        assert_eq!(bsd.rto(), Duration::from_secs(48));
        bsd.back_off();
        assert_eq!(bsd.rto(), Duration::from_secs(64));
    }

    #[test]
    fn a_fast_path_settles_at_three_ticks() {
        // The scaled integers never decay below a variation of 3/4 tick, so the floor of two is not reached.
        let mut bsd = bsd();
        for i in 0..50 {
            feed(&mut bsd, i * 1_000 + 100, i * 1_000 + 120);
        }
        assert_eq!(bsd.rto(), Duration::from_millis(1_500));
    }

    #[test]
    fn a_round_trip_counts_the_ticks_it_crosses() {
        let mut bsd = bsd();
        feed(&mut bsd, 400, 2_100);
        // Crossed 0.5, 1.0, 1.5 and 2.0 s: t_rtt = 5, RTO = 5 + 10 ticks.
        assert_eq!(bsd.rto(), Duration::from_millis(7_500));
    }

    #[test]
    fn timers_fire_on_ticks() {
        let mut bsd = bsd();
        for _ in 0..50 {
            feed(&mut bsd, 0, 10);
        }
        assert_eq!(bsd.deadline(Instant::from_millis(499)), Instant::from_millis(1_500));
        assert_eq!(bsd.deadline(Instant::from_millis(500)), Instant::from_millis(2_000));
    }
}
