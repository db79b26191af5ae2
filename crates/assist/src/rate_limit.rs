//! How many messages may be sent in all.

use core::time::Duration;

use careof_base::Instant;

/// A token bucket that is as deep as what it is filled with in a second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// When the bucket was, or will be, full.
    full_at: Instant,
    per_second: u32,
}

impl RateLimit {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self { full_at: Instant::ZERO, per_second }
    }

    /// Whether one more may be sent, which then counts.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let Some(interval) = Duration::from_secs(1).checked_div(self.per_second) else { return false };
        let next = self.full_at.max(now) + interval;
        let is_allowed = next.saturating_duration_since(now) <= interval * self.per_second;
        if is_allowed {
            self.full_at = next;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_goes_at_once_and_then_the_rate_holds() {
        let mut limit = RateLimit::new(10);
        let mut allowed = |ms| (0..100).filter(|_| limit.allows(Instant::from_millis(ms))).count();
        assert_eq!(allowed(5_000), 10);
        assert_eq!(allowed(5_050), 0);
        assert_eq!(allowed(5_300), 3);
        assert_eq!(allowed(9_000), 10);
        assert!(!RateLimit::new(0).allows(Instant::from_secs(1)));
    }
}
