//! How often the same thing is said to the same node.

use core::time::Duration;

use careof_base::Instant;

/// At once, then after a second, then each time after twice as long: the draft wants the rate of warnings and updates
/// limited, and names a back-off as the way (draft-ietf-mobileip-optim, on rate limiting).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackOff {
    next: Instant,
    interval: Duration,
}

const FIRST: Duration = Duration::from_secs(1);

impl BackOff {
    /// A node that does not listen is told again once in this time.
    pub(crate) const LONGEST: Duration = Duration::from_secs(64);

    /// For something that is said at `now` for the first time.
    pub(crate) fn begin(now: Instant) -> Self {
        Self { next: now + FIRST, interval: FIRST }
    }

    /// When it may be said again.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Whether it may be said at `now`; then it counts as said.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        // Who has been quiet for a while begins anew.
        let quiet = now >= self.next + Self::LONGEST;
        self.interval = if quiet { FIRST } else { (self.interval * 2).min(Self::LONGEST) };
        self.next = now + self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_wait_doubles_up_to_a_minute() {
        let mut back_off = BackOff::begin(Instant::ZERO);
        let said: Vec<u64> = (1..300).filter(|&at| back_off.allows(Instant::from_secs(at))).collect();
        assert_eq!(said, [1, 3, 7, 15, 31, 63, 127, 191, 255]);
    }

    #[test]
    fn after_a_quiet_time_it_begins_anew() {
        let mut back_off = BackOff::begin(Instant::ZERO);
        for at in [1, 3, 7] {
            assert!(back_off.allows(Instant::from_secs(at)));
        }
        assert!(back_off.allows(Instant::from_secs(15 + 64)));
        assert_eq!(back_off.next(), Instant::from_secs(15 + 64 + 1));
    }
}
