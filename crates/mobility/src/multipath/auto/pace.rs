//! What a flow gets on the path that carries it, round trip by round trip.

use core::time::Duration;

use careof_base::Instant;

use crate::multipath::path::{FIRST_TIMEOUT, Path, REPORT_SPAN};

/// Round trips that are remembered: as many as a measurement lasts.
pub(super) const ROUNDS: usize = 10;

/// The counts when a round began.
#[derive(Clone, Copy, Debug)]
struct Begin {
    at: Instant,
    /// Bytes that the path had delivered, and been given, by then.
    delivered: u64,
    given: u64,
}

/// What came in a while: bytes of the flow, and of all on the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    pub(super) span: Duration,
    bytes: u64,
    of_all: u64,
}

impl Delivered {
    /// Bit/s of the flow.
    pub(super) fn rate(self) -> u64 {
        rate(self.bytes, self.span)
    }

    /// Bit/s of all on the path.
    pub(super) fn rate_of_all(self) -> u64 {
        rate(self.of_all, self.span)
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        Self {
            span: self.span + other.span,
            bytes: self.bytes.saturating_add(other.bytes),
            of_all: self.of_all.saturating_add(other.of_all),
        }
    }

    /// The flow's part of so much; all of it where nothing came.
    pub(super) fn part_of(self, rate: u64) -> u64 {
        let part =
            u128::from(rate) * u128::from(self.bytes.min(self.of_all)) / u128::from(self.of_all.max(1));
        if self.of_all == 0 { rate } else { u64::try_from(part).unwrap_or(rate) }
    }
}

/// Bytes delivered in the latest rounds. A round is the least round trip of the path, for a queue may take many times that, and as long as
/// counts are compared at least.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    begin: Option<Begin>,
    /// Bytes that the flow has put on the path since.
    sent: u64,
    rounds: [Delivered; ROUNDS],
    /// Rounds so far.
    count: usize,
    /// What came in all of them but the first, which has what was sent before.
    all: Delivered,
}

impl Pace {
    pub(super) const fn note_sent(&mut self, len: u32) {
        self.sent = self.sent.saturating_add(len as u64);
    }

    /// What the path has delivered is known anew: the round that is over with it.
    pub(super) fn take(&mut self, now: Instant, path: &Path) -> Option<Delivered> {
        let (_, given) = path.sent();
        let next = Begin { at: now, delivered: path.delivered_bytes(), given };
        let Some(begin) = self.begin else {
            (self.begin, self.sent) = (Some(next), 0);
            return None;
        };
        let span = now.saturating_duration_since(begin.at);
        let round = path.estimate().least_round_trip.unwrap_or(FIRST_TIMEOUT).max(REPORT_SPAN);
        if span < round {
            return None;
        }
        // Several flows on a path have parts of what it delivers as of what it is given.
        let delivered = u128::from(next.delivered.saturating_sub(begin.delivered));
        let given = u128::from(next.given.saturating_sub(begin.given)).max(1);
        let bytes = u64::try_from(delivered * u128::from(self.sent) / given).unwrap_or(u64::MAX);
        let round = Delivered { span, bytes, of_all: next.delivered.saturating_sub(begin.delivered) };
        (self.begin, self.sent) = (Some(next), 0);
        if let Some(place) = self.rounds.get_mut(self.count % ROUNDS) {
            *place = round;
        }
        if self.count > 0 {
            self.all = self.all.and(round);
        }
        self.count += 1;
        Some(round)
    }

    /// What came since the flow came here.
    pub(super) const fn since_begin(&self) -> Delivered {
        self.all
    }

    /// Rounds so far, since the flow came here.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Whether more came in the later half of what is remembered than in the earlier one.
    pub(super) fn grows(&self) -> bool {
        self.over(ROUNDS / 2, 0).rate() > self.over(ROUNDS / 2, ROUNDS / 2).rate()
    }

    /// What came in the latest rounds but `but`, so many at most.
    pub(super) fn over(&self, rounds: usize, but: usize) -> Delivered {
        let known = self.count.min(ROUNDS).saturating_sub(but).min(rounds);
        (but + 1..=but + known).fold(Delivered::default(), |sum, back| {
            let round = self.rounds.get((self.count + ROUNDS - back) % ROUNDS).copied().unwrap_or_default();
            sum.and(round)
        })
    }
}

/// Bit/s.
pub(super) fn rate(bytes: u64, span: Duration) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / span.as_nanos().max(1)).unwrap_or(u64::MAX)
}
