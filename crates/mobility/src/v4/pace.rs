//! How often a mobile node may register.

use core::time::Duration;

use careof_base::Instant;

/// At most one request a second on average (RFC 5944 section 3.6), with a few at once after a quiet time, so
/// that a repair (a clock set right after code 133) need not wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// When the requests sent so far are paid for, at one a second.
    paid_until: Instant,
}

const INTERVAL: Duration = Duration::from_secs(1);
/// Requests that may follow each other without waiting.
const BURST: u32 = 3;

impl Pace {
    /// The first instant, not before `now`, at which a request may be sent that may follow the others without waiting even if
    /// it is one of `more` beyond those that may.
    pub(crate) fn earliest(&self, now: Instant, more: u32) -> Instant {
        now.max(self.paid_until.saturating_sub(INTERVAL * (BURST - 1 + more)))
    }

    /// A request is sent at `now`.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.paid_until = self.paid_until.max(now) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_may_go_at_once_and_then_one_a_second() {
        let mut pace = Pace::default();
        let mut now = Instant::from_secs(100);
        let mut sent = alloc::vec::Vec::new();
        while now < Instant::from_secs(110) {
            now = pace.earliest(now, 0);
            pace.spend(now);
            sent.push(now);
        }
        assert!(sent[..3].iter().all(|&at| at == Instant::from_secs(100)));
        assert!(sent[3..].windows(2).all(|pair| pair[1] - pair[0] == INTERVAL));
    }
}
