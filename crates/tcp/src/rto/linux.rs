//! The estimator of Linux since 2.4, as of 6.x: microseconds, and a floor under the variation instead of under
//! the RTO.
//!
//! It differs from RFC 6298 in three ways. The variation that counts is the greatest of the last round trip
//! (it falls by a quarter a round trip at most). A sample below the average raises it by an eighth of what it
//! otherwise would. And since it never falls below the least RTO, the RTO is always at least SRTT + 200 ms.
//!
//! With [`crate::Variant::Linux`] the RTO is a whole number of milliseconds, rounded up, as in a kernel with HZ = 1000;
//! other senders take it as it comes. Left out: the timer wheel, by which a timer may run out later than set.

use core::time::Duration;

use careof_wire::SeqNumber;

use super::{Sample, doubled};
use crate::config::{Config, Variant};

#[derive(Clone, Debug)]
pub(crate) struct Linux {
    /// Microseconds times 8; 0 before the first sample.
    srtt: u64,
    /// The three variations are microseconds times 4.
    mdev: u64,
    mdev_max: u64,
    rttvar: u64,
    /// End of the round trip whose greatest variation is being taken.
    rtt_seq: SeqNumber,
    backoff: u32,
    /// The RTO is a multiple of this.
    tick: u64,
    base: u64,
    current: u64,
    min: u64,
    max: u64,
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX >> 8).min(u64::MAX >> 8)
}

impl Linux {
    pub(crate) fn new(config: &Config) -> Self {
        let initial = micros(config.effective_rto_initial());
        Self {
            srtt: 0,
            mdev: 0,
            mdev_max: 0,
            rttvar: 0,
            rtt_seq: SeqNumber(0),
            backoff: 0,
            tick: if config.variant == Variant::Linux { 1_000 } else { 1 },
            base: initial,
            current: initial,
            min: micros(config.effective_rto_min()),
            max: micros(config.effective_rto_max()),
        }
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let rtt = micros(sample.rtt());
        if self.srtt == 0 {
            self.srtt = (rtt << 3).max(1);
            self.mdev = rtt << 1;
            self.rttvar = self.mdev.max(self.min);
            self.mdev_max = self.rttvar;
            self.rtt_seq = sample.snd_nxt;
        } else {
            self.smooth(rtt);
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if sample.snd_una.is_after(self.rtt_seq) {
                self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) >> 2;
                self.rtt_seq = sample.snd_nxt;
                self.mdev_max = self.min;
            }
        }
        self.base = ((self.srtt >> 3) + self.rttvar).next_multiple_of(self.tick).min(self.max);
        self.backoff = 0;
        self.current = self.base;
    }

    fn smooth(&mut self, rtt: u64) {
        let average = self.srtt >> 3;
        let error = rtt.abs_diff(average);
        let below = rtt < average;
        self.srtt = if below { self.srtt - error } else { self.srtt + error }.max(1);
        let deviation = self.mdev >> 2;
        self.mdev = if error >= deviation {
            let growth = error - deviation;
            self.mdev + if below { growth >> 3 } else { growth }
        } else {
            self.mdev - (deviation - error)
        };
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

    pub(crate) fn rto(&self) -> Duration {
        Duration::from_micros(self.current)
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_micros(self.srtt >> 3))
    }

    /// The momentary variation, as `TCP_INFO` reports it.
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_micros(self.mdev >> 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::Instant;

    fn sample(millis: u64, una: u32, nxt: u32) -> Sample {
        Sample {
            sent_at: Instant::ZERO,
            now: Instant::from_millis(millis),
            snd_una: SeqNumber(una),
            snd_nxt: SeqNumber(nxt),
            expected: 1,
            cwnd_segments: 10,
        }
    }

    #[test]
    fn the_rto_of_a_steady_path_is_its_round_trip_plus_200_ms() {
        let mut linux = Linux::new(&Config::default_for_linux());
        for round in 0..100 {
            linux.sample(&sample(50, round * 10, round * 10 + 10));
        }
        assert_eq!(linux.rto(), Duration::from_millis(250));
        assert_eq!(linux.srtt(), Some(Duration::from_millis(50)));
    }

    #[test]
    fn a_falling_round_trip_hardly_raises_the_variation() {
        let mut linux = Linux::new(&Config::default_for_linux());
        for round in 0..200 {
            linux.sample(&sample(700, round * 10, round * 10 + 10));
        }
        let before = linux.rto();
        linux.sample(&sample(4, 3_000, 3_010));
        // RFC 6298 would answer with more than 1.2 s here.
        assert!(linux.rto() <= before, "{:?} after {before:?}", linux.rto());
        assert!(linux.rttvar() < Some(Duration::from_millis(25)), "{:?}", linux.rttvar());
    }

    #[test]
    fn the_greatest_variation_of_a_round_trip_decays_by_a_quarter() {
        let mut linux = Linux::new(&Config::default_for_linux());
        linux.sample(&sample(1_000, 0, 10));
        let mut last = linux.rttvar;
        for round in 1..20 {
            linux.sample(&sample(1_000, round * 10 + 3, round * 10 + 12));
            assert!(linux.rttvar >= last - (last >> 2), "round {round}");
            last = linux.rttvar;
        }
        assert!(last < 300_000, "{last}");
    }

    impl Config {
        fn default_for_linux() -> Self {
            Self { rto: crate::RtoEstimator::Linux, ..Self::default() }
        }
    }
}
