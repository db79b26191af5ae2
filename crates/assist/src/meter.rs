//! How fast a flow went.

use core::time::Duration;

use careof_base::{DataRate, Instant};

/// Shortest stretch of time that is measured: shorter ones see the bursts of an acknowledgement clock.
const SHORTEST: Duration = Duration::from_millis(100);
/// Stretches remembered.
const STRETCHES: usize = 4;

/// Bytes over stretches of time, and the fastest of the last few. A pause does not count: neither the outage in front of a
/// replay nor an application that has nothing to say makes a path slow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    since: Option<Instant>,
    bytes: u64,
    /// The latest whole ones, bit/s.
    rates: [u64; STRETCHES],
    next: usize,
}

impl Meter {
    /// Bytes pass. A stretch is at least `round_trip` long, so that it sees a window with the pause behind it.
    pub(crate) fn add(&mut self, now: Instant, bytes: u64, round_trip: Option<Duration>) {
        let least = round_trip.unwrap_or_default().max(SHORTEST);
        let since = *self.since.get_or_insert(now);
        let lasted = now.saturating_duration_since(since);
        if lasted >= least {
            // Longer than that by a pause at the end only: what passes now begins the next one.
            let measured = if lasted < 2 * least { lasted } else { least };
            let nanos = measured.as_nanos().max(1);
            let rate = u128::from(self.bytes) * 8 * 1_000_000_000 / nanos;
            self.rates[self.next] = u64::try_from(rate).unwrap_or(u64::MAX);
            self.next = (self.next + 1) % STRETCHES;
            self.since = Some(now);
            self.bytes = 0;
        }
        self.bytes += bytes;
    }

    /// What has passed of the present stretch does not count.
    pub(crate) const fn skip(&mut self) {
        self.since = None;
        self.bytes = 0;
    }

    /// The fastest of late; `None` before the first whole stretch.
    pub(crate) fn rate(&self) -> Option<DataRate> {
        let fastest = self.rates.into_iter().max().filter(|rate| *rate > 0)?;
        Some(DataRate::from_bits_per_second(fastest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_does_not_make_a_flow_slow() {
        let mut meter = Meter::default();
        for ms in 0..200 {
            meter.add(Instant::from_millis(ms), 1_250, None);
        }
        assert_eq!(meter.rate(), Some(DataRate::from_megabits_per_second(10)));
        meter.add(Instant::from_secs(20), 1_250, None);
        assert_eq!(meter.rate(), Some(DataRate::from_megabits_per_second(10)));
    }

    #[test]
    fn nothing_is_known_of_a_flow_that_has_just_begun() {
        let mut meter = Meter::default();
        for ms in 0..50 {
            meter.add(Instant::from_millis(ms), 1_250, Some(Duration::from_millis(200)));
        }
        assert_eq!(meter.rate(), None);
    }
}
