//! When a binding in use is asked for again.

use core::time::Duration;

use careof_base::Instant;

/// The least time between two requests.
const LEAST: Duration = Duration::from_secs(1);

/// After three quarters of the time that a binding has.
pub(crate) fn first(now: Instant, expires: Instant) -> Instant {
    if expires == Instant::MAX { expires } else { now + expires.saturating_duration_since(now) * 3 / 4 }
}

/// After half of the time that is left, but no more often than once a second.
pub(crate) fn next(now: Instant, expires: Instant) -> Instant {
    if expires == Instant::MAX {
        return expires;
    }
    let half = expires.saturating_duration_since(now) / 2;
    now + half.max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_more_frequent_towards_the_end_but_never_hurry() {
        let expires = Instant::from_secs(400);
        let mut at = first(Instant::ZERO, expires);
        let mut times = alloc::vec::Vec::new();
        while at < expires {
            times.push(at.since_start().as_secs());
            at = next(at, expires);
        }
        assert_eq!(times, [300, 350, 375, 387, 393, 396, 398, 399]);
        assert_eq!([first(expires, Instant::MAX), next(expires, Instant::MAX)], [Instant::MAX; 2]);
    }
}
