//! BBR's estimate of how much more is acknowledged at once than the bandwidth accounts for (Linux 6.1
//! `net/ipv4/tcp_bbr.c`, `bbr_update_ack_aggregation`): the window is larger by it, so that sending goes on in
//! the silence between. The estimate is the maximum of the last five to ten rounds.

use super::bbr::BW_SCALE;

/// Rounds in each of the two halves of the window.
const WINDOW_ROUNDS: u32 = 5;

/// Segments after which an epoch ends in any case.
const EPOCH_LIMIT: u64 = 1 << 20;

/// The window is not made larger than by what the bandwidth delivers in this time.
const MOST_US: u64 = 100_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    epoch_us: u64,
    epoch_acked: u64,
    extra: [u32; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) fn begin(&mut self, now_us: u64) {
        *self = Self { epoch_us: now_us, ..Self::default() };
    }

    /// A new epoch: there was a silence of the application.
    pub(super) fn restart(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.epoch_acked = 0;
    }

    /// `acked` segments were delivered at `now_us`, at an estimated `bandwidth`, with a window of `cwnd` segments.
    pub(super) fn update(&mut self, round_start: bool, now_us: u64, acked: u64, bandwidth: u64, cwnd: u32) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.extra[self.half] = 0;
            }
        }
        let elapsed = now_us.saturating_sub(self.epoch_us);
        let mut expected =
            u64::try_from((u128::from(bandwidth) * u128::from(elapsed)) >> BW_SCALE).unwrap_or(u64::MAX);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_LIMIT {
            self.epoch_acked = 0;
            self.epoch_us = now_us;
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_LIMIT - 1);
        let extra = u32::try_from(self.epoch_acked.saturating_sub(expected)).unwrap_or(u32::MAX).min(cwnd);
        self.extra[self.half] = self.extra[self.half].max(extra);
    }

    /// By how many segments the window is larger.
    pub(super) fn cwnd(&self, bandwidth: u64) -> u32 {
        let most = (u128::from(bandwidth) * u128::from(MOST_US)) >> BW_SCALE;
        self.extra[0].max(self.extra[1]).min(u32::try_from(most).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment a millisecond.
    const BANDWIDTH: u64 = (1 << BW_SCALE) / 1_000 + 1;

    #[test]
    fn what_comes_at_once_is_extra_for_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        aggregation.begin(0);
        for ms in 1..=20 {
            aggregation.update(false, ms * 1_000, 1, BANDWIDTH, 100);
        }
        let smooth = aggregation.cwnd(BANDWIDTH);
        assert!(smooth <= 2, "{smooth}");
        aggregation.update(false, 30_000, 10, BANDWIDTH, 100);
        assert_eq!(aggregation.cwnd(BANDWIDTH), 10);
        let mut rounds = 0;
        while aggregation.cwnd(BANDWIDTH) == 10 {
            rounds += 1;
            aggregation.update(true, 30_000 + rounds * 50_000, 1, BANDWIDTH, 100);
        }
        assert!((5..=10).contains(&rounds), "{rounds}");
    }

    #[test]
    fn it_is_bounded_by_the_window_and_by_a_tenth_of_a_second() {
        let mut aggregation = Aggregation::default();
        aggregation.begin(0);
        aggregation.update(false, 1, 1_000, BANDWIDTH, 40);
        assert_eq!(aggregation.cwnd(BANDWIDTH), 40);
        aggregation.update(false, 1, 1_000, BANDWIDTH, 400);
        assert_eq!(aggregation.cwnd(BANDWIDTH), 100);
    }
}
