//! The least round-trip time of the last five minutes (Linux 6.1, `tcp_update_rtt_min`, `tcp_min_rtt_wlen`).

use careof_base::Instant;

use crate::congestion::WindowedMax;

/// Nanoseconds.
const WINDOW: u64 = 300 * 1_000_000_000;

/// The filter keeps maxima: of how much less than the longest time a round trip took.
#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt(WindowedMax);

impl MinRtt {
    /// Microseconds; [`u64::MAX`] before the first sample.
    pub(super) fn get(&self) -> u64 {
        u64::MAX - self.0.get()
    }

    pub(super) fn take(&mut self, now: Instant, rtt: u64) {
        self.0.update(WINDOW, now.as_nanos(), u64::MAX - rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_five_minutes_is_kept_and_then_forgotten() {
        let mut min = MinRtt::default();
        assert_eq!(min.get(), u64::MAX);
        for (seconds, rtt, least) in [
            (0, 50, 50),
            (10, 40, 40),
            (100, 60, 40),
            (200, 55, 40),
            (309, 70, 40),
            (311, 70, 55),
            (501, 80, 70),
        ] {
            min.take(Instant::from_secs(seconds), rtt);
            assert_eq!(min.get(), least, "at {seconds} s");
        }
    }
}
