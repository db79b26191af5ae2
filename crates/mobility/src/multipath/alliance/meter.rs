//! How many bytes an ally may have.

use core::time::Duration;

use careof_base::{DataRate, Instant};

/// What an ally that was quiet may send at once.
const BURST: Duration = Duration::from_millis(100);
/// At least so many bytes: a few full packets.
const LEAST_BURST: u64 = 4 * 1500;

/// A token bucket in bytes, by the time at which it is full again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    full_at: Instant,
}

impl Meter {
    /// Takes `len` bytes, if that is within `rate`; whether it is.
    pub(super) fn take(&mut self, now: Instant, len: u32, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return true };
        if rate == DataRate::ZERO {
            return false;
        }
        let time = |bytes: u64| rate.time_for_bits(bytes * 8).unwrap_or(Duration::MAX);
        let full_at = self.full_at.max(now) + time(u64::from(len));
        let is_within = full_at.saturating_duration_since(now) <= BURST.max(time(LEAST_BURST));
        if is_within {
            self.full_at = full_at;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_rate_and_one_burst_passes() {
        let rate = Some(DataRate::from_kilobits_per_second(800));
        let mut meter = Meter::default();
        let mut bytes = 0;
        for n in 0..10_000 {
            if meter.take(Instant::from_millis(n), 1000, rate) {
                bytes += 1000;
            }
        }
        // 100 kB/s for 10 s, and 10 kB at once.
        assert!((1_000_000..=1_010_000).contains(&bytes), "{bytes}");
        assert!(Meter::default().take(Instant::ZERO, 60_000, None));
        assert!(!Meter::default().take(Instant::ZERO, 1, Some(DataRate::ZERO)));
    }
}
