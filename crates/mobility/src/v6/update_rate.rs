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
    early: Early,
}

/// Messages that are sent again sooner than the RFC has it.
#[derive(Clone, Copy, Debug, Default)]
struct Early {
    /// How many may be whenever it is begun again.
    allowance: u32,
    /// How many still may be.
    left: u32,
    wait: Duration,
    /// Whether the one that is due next is one of them.
    is_next: bool,
}

impl Retransmission {
    /// For something to be sent at `now`, that is sent again after `first` and then after up to `longest`.
    pub(crate) const fn begin(now: Instant, first: Duration, longest: Duration) -> Self {
        let early = Early { allowance: 0, left: 0, wait: Duration::ZERO, is_next: false };
        Self { next: now, attempts: 0, wait: first, longest, early }
    }

    /// The first `count` repetitions follow after `wait` each, if that is sooner.
    pub(crate) fn with_early(mut self, count: u32, wait: Duration) -> Self {
        self.early = Early { allowance: count, left: count, wait: wait.min(self.wait), is_next: false };
        self
    }

    /// Whether the message that is due next is sent sooner than the RFC has it.
    pub(crate) const fn is_early(&self) -> bool {
        self.early.is_next
    }

    /// Is to be sent at `now`, with all its early repetitions.
    pub(crate) const fn begin_again(&mut self, now: Instant) {
        self.next = now;
        self.early.left = self.early.allowance;
        self.early.is_next = false;
    }

    /// Somebody has answered: it goes on without haste.
    pub(crate) const fn calm_down(&mut self) {
        self.early.left = 0;
        self.early.is_next = false;
    }

    /// It is sent at `now`.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.attempts = self.attempts.saturating_add(1);
        self.early.is_next = self.early.left > 0;
        if self.early.is_next {
            self.early.left -= 1;
            self.next = now + self.early.wait;
            return;
        }
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

    #[test]
    fn early_repetitions_come_before_those_of_the_rfc_and_again_when_it_is_begun_again() {
        let [first, early] = [1000, 140].map(Duration::from_millis);
        let mut retransmission =
            Retransmission::begin(Instant::ZERO, first, Duration::from_secs(32)).with_early(2, early);
        let sent = |retransmission: &mut Retransmission, count: usize| -> Vec<(u128, bool)> {
            let one = |_| {
                let (now, is_early) = (retransmission.next, retransmission.is_early());
                retransmission.sent(now);
                (now.since_start().as_millis(), is_early)
            };
            (0..count).map(one).collect()
        };
        let expected = [(0, false), (140, true), (280, true), (1280, false), (3280, false)];
        assert_eq!(sent(&mut retransmission, 5), expected);
        retransmission.begin_again(Instant::from_secs(5));
        assert_eq!(sent(&mut retransmission, 3), [(5000, false), (5140, true), (5280, true)]);
        retransmission.begin_again(Instant::from_secs(60));
        retransmission.calm_down();
        assert!(!sent(&mut retransmission, 3).iter().any(|(_, is_early)| *is_early));
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
