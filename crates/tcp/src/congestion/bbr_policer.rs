//! BBR's estimate of a rate that a token bucket enforces by dropping (Linux 6.1 `net/ipv4/tcp_bbr.c`,
//! `bbr_lt_bw_sampling`; Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016): two intervals
//! in a row, each from loss to loss, in which more than a fifth is lost and the bandwidth is the same.

use super::bbr::{BW_SCALE, bytes_per_second};

/// Rounds in an interval at least; four times as many at most.
const INTERVAL_ROUNDS: u32 = 4;

/// Lost for each 256 delivered: about a fifth.
const LOSS_THRESHOLD: u64 = 50;

/// Bandwidths that differ by at most an eighth are the same, or by 4 kbit/s.
const SAME_PART: u64 = 8;
const SAME_BYTES_PER_SECOND: u64 = 4_000 / 8;

/// Rounds for which the estimate is used.
const ROUNDS_IN_USE: u32 = 48;

/// What the sender knows, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// When something was delivered last, milliseconds.
    pub(super) delivered_ms: u64,
    pub(super) mss: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    bandwidth: u64,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    delivered: u64,
    lost: u64,
    since_ms: u64,
}

impl Policer {
    /// The rate it lets through, if there seems to be one.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bandwidth)
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, evidence: &Evidence) {
        *self = Self::default();
        self.begin_interval(evidence);
    }

    fn begin_interval(&mut self, evidence: &Evidence) {
        self.since_ms = evidence.delivered_ms;
        self.delivered = evidence.delivered;
        self.lost = evidence.lost;
        self.rounds = 0;
    }

    /// A round with the estimate in use is over; whether it was the last.
    pub(super) fn has_served_its_time(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= ROUNDS_IN_USE
    }

    /// Takes in an acknowledgement, while the estimate is not in use; returns whether it is from now on.
    pub(super) fn sample(
        &mut self,
        evidence: &Evidence,
        round_start: bool,
        losses: bool,
        app_limited: bool,
    ) -> bool {
        if !self.sampling {
            // The bucket is full before the first loss: what passed until then is no measure.
            if !losses {
                return false;
            }
            self.begin_interval(evidence);
            self.sampling = true;
        }
        if app_limited {
            self.reset(evidence);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < INTERVAL_ROUNDS {
            return false;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(evidence);
            return false;
        }
        // It ends with a loss, for then the bucket is empty.
        let lost = evidence.lost.saturating_sub(self.lost);
        let delivered = evidence.delivered.saturating_sub(self.delivered);
        let span_ms = evidence.delivered_ms.saturating_sub(self.since_ms);
        if !losses || delivered == 0 || (lost << 8) < LOSS_THRESHOLD * delivered || span_ms == 0 {
            return false;
        }
        self.end_interval(evidence, (delivered << BW_SCALE) / span_ms.saturating_mul(1_000));
        self.in_use
    }

    fn end_interval(&mut self, evidence: &Evidence, bandwidth: u64) {
        if self.bandwidth > 0 {
            let difference = bandwidth.abs_diff(self.bandwidth);
            if difference.saturating_mul(SAME_PART) <= self.bandwidth
                || bytes_per_second(difference, 1 << 8, evidence.mss) <= SAME_BYTES_PER_SECOND
            {
                self.bandwidth = u64::midpoint(bandwidth, self.bandwidth);
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = bandwidth;
        self.begin_interval(evidence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs intervals of four rounds of 50 ms, `lost` segments each against `delivered`; returns after how many the
    /// estimate was used, and what it was in segments a second.
    fn run(intervals: &[(u64, u64)]) -> Option<(usize, u64)> {
        let mut policer = Policer::default();
        let mut now = Evidence { delivered: 0, lost: 0, delivered_ms: 0, mss: 1_448 };
        policer.reset(&now);
        assert!(!policer.sample(&now, false, true, false));
        for (count, &(delivered, lost)) in intervals.iter().enumerate() {
            now.delivered += delivered;
            now.lost += lost;
            for round in 1..=4 {
                now.delivered_ms += 50;
                if policer.sample(&now, true, round == 4, false) {
                    let rate = policer.bandwidth().unwrap() * 1_000_000;
                    return Some((count + 1, rate >> BW_SCALE));
                }
            }
        }
        None
    }

    #[test]
    fn two_lossy_intervals_of_the_same_bandwidth_are_a_policer() {
        let (count, rate) = run(&[(100, 30), (100, 30)]).unwrap();
        assert_eq!(count, 2);
        assert!((499..=500).contains(&rate), "{rate}");
    }

    #[test]
    fn few_losses_or_changing_bandwidth_are_none() {
        assert_eq!(run(&[(100, 10), (100, 10), (100, 10)]), None);
        assert_eq!(run(&[(100, 30), (150, 40), (100, 30), (150, 40)]), None);
    }
}
