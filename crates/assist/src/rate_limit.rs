//! How many messages may be sent in all.

use core::time::Duration;

use careof_base::{Allowance, Instant, Used};

/// A token bucket that is as deep as what it is filled with in a second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// `None`: none at all.
    allowance: Option<Allowance>,
    used: Used,
}

impl RateLimit {
    pub(crate) fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(per_second);
        let allowance = interval.map(|interval| Allowance::new(per_second, interval));
        Self { allowance, used: Used::NOTHING }
    }

    /// Whether one more may be sent, which then counts.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.allowance.is_some_and(|allowance| self.used.take(now, allowance))
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
