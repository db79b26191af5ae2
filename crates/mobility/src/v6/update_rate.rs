//! How often a mobile node may send, and sends again (RFC 6275 section 11.8).

use core::time::Duration;

use careof_base::Instant;

/// MAX_UPDATE_RATE (RFC 6275 section 12): messages of one type to one node within a second.
const MAX_UPDATE_RATE: usize = 3;

/// The last messages of one type to one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpdateRate {
    sent: [Option<Instant>; MAX_UPDATE_RATE],
}

impl UpdateRate {
    /// The first instant, not before `now`, at which one more may be sent.
    pub(crate) fn earliest(&self, now: Instant) -> Instant {
        let [oldest, ..] = self.sent;
        oldest.map_or(now, |oldest| now.max(oldest + Duration::from_secs(1)))
    }

    /// One is sent at `now`.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.sent.rotate_left(1);
        let [.., latest] = &mut self.sent;
        *latest = Some(now);
    }
}

/// When a message is sent again that nobody answers: each time after twice as long, up to a longest time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retransmission {
    /// When it is to be sent, or sent again.
    pub(crate) next: Instant,
    /// How often it was sent.
    pub(crate) attempts: u32,
    wait: Duration,
    longest: Duration,
}

impl Retransmission {
    /// For something to be sent at `now`, that is sent again after `first` and then after up to `longest`.
    pub(crate) const fn begin(now: Instant, first: Duration, longest: Duration) -> Self {
        Self { next: now, attempts: 0, wait: first, longest }
    }

    /// It is sent at `now`.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.attempts = self.attempts.saturating_add(1);
        self.next = now + self.wait;
        self.wait = (self.wait * 2).min(self.longest);
    }

    /// Whether the wait for an answer has reached the longest.
    pub(crate) fn is_slow(&self) -> bool {
        self.wait >= self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// RFC 6275 section 11.8: no more than MAX_UPDATE_RATE within a second, whichever second that is.
    #[test]
    fn no_second_sees_more_than_three() {
        let mut rate = UpdateRate::default();
        let mut now = Instant::from_secs(100);
        let mut sent = Vec::new();
        for _ in 0..30 {
            now = rate.earliest(now + Duration::from_millis(100));
            rate.spend(now);
            sent.push(now);
        }
        assert!(sent.windows(4).all(|four| four[3] - four[0] >= Duration::from_secs(1)));
        assert!(sent[2] - sent[0] < Duration::from_millis(300));
    }

    /// RFC 6275 section 11.8: doubled until MAX_BINDACK_TIMEOUT.
    #[test]
    fn the_wait_doubles_up_to_the_longest() {
        let first = Duration::from_millis(1500);
        let mut retransmission = Retransmission::begin(Instant::ZERO, first, Duration::from_secs(32));
        let mut waits = Vec::new();
        for _ in 0..7 {
            let now = retransmission.next;
            retransmission.sent(now);
            waits.push((retransmission.next - now).as_millis());
        }
        assert_eq!(waits, [1500, 3000, 6000, 12_000, 24_000, 32_000, 32_000]);
        assert!(retransmission.is_slow());
    }
}
