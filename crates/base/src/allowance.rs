//! How many of something there may be in a time: a token bucket.

use core::time::Duration;

use crate::Instant;

/// So many at once, and then one each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    at_once: u32,
    interval: Duration,
}

/// How much of an [`Allowance`] is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// When all of it is there again.
    until: Instant,
}

impl Allowance {
    /// `at_once` at once, and then one each `interval`.
    #[must_use]
    pub const fn new(at_once: u32, interval: Duration) -> Self {
        Self { at_once, interval }
    }
}

impl Used {
    /// Nothing yet.
    pub const NOTHING: Self = Self { until: Instant::ZERO };

    /// How much is used up with one more; `None` when that is not allowed.
    #[must_use]
    pub fn and_one(self, now: Instant, of: Allowance) -> Option<Self> {
        let until = self.until.max(now) + of.interval;
        let used = until.saturating_duration_since(now);
        (used <= of.interval * of.at_once).then_some(Self { until })
    }

    /// Takes one more, if that is allowed, and says whether it is.
    pub fn take(&mut self, now: Instant, of: Allowance) -> bool {
        let taken = self.and_one(now, of);
        *self = taken.unwrap_or(*self);
        taken.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_go_at_once_and_then_the_interval_holds() {
        let allowance = Allowance::new(100, Duration::from_millis(1));
        let mut used = Used::NOTHING;
        let mut taken = |ms| (0..1000).filter(|_| used.take(Instant::from_millis(ms), allowance)).count();
        assert_eq!([taken(5_000), taken(5_010), taken(9_000)], [100, 10, 100]);
    }
}
