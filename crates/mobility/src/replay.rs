//! Replay protection of registrations, RFC 5944 section 5.7: timestamps (5.7.1) and nonces (5.7.2).
//!
//! The Identification of a request is 64 bits: the high 32 are what the home agent checks, the low 32 tie a
//! reply to its request. [`ReplayGuard`] is the home agent's half, `IdentificationSource` the mobile
//! node's.

use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::mip4::Identification;

use crate::time_of_day::{NtpTime, WallClock};

/// How requests under a security association are protected against replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayProtection {
    /// The Identification is an NTP timestamp; the home agent accepts those within `window` of its own
    /// clock that are later than all it accepted before.
    Timestamps {
        /// Tolerated difference of the clocks, either way; the RFC's default is 7 s, and it should be more
        /// than 3 s.
        window: Duration,
    },
    /// The home agent names in every reply the number it expects in the next request.
    Nonces,
}

impl ReplayProtection {
    /// Timestamps within 7 s, what the RFC asks for when nothing else is agreed.
    pub const TIMESTAMPS: Self = Self::Timestamps { window: Duration::from_secs(7) };
}

impl Default for ReplayProtection {
    fn default() -> Self {
        Self::TIMESTAMPS
    }
}

/// Why an Identification was not accepted (code 133).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentificationMismatch {
    /// The timestamp is too far from the home agent's clock.
    OutsideWindow,
    /// The timestamp is not later than one accepted before: a replay, or a message overtaken by another.
    NotNewer,
    /// Not the nonce the home agent gave last.
    WrongNonce,
}

/// What the guard says of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request is fresh.
    pub outcome: Result<(), IdentificationMismatch>,
    /// The Identification for the reply. On a mismatch it tells the mobile node what to use next.
    pub reply: Identification,
}

/// The home agent's memory of what one mobile node has sent under one security association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayGuard {
    /// The latest timestamp accepted.
    Timestamps {
        /// Tolerated difference of the clocks.
        window: Duration,
        /// `None` before the first.
        last: Option<NtpTime>,
    },
    /// The nonce given in the last reply.
    Nonces {
        /// `None` before the first reply.
        expected: Option<u32>,
    },
}

impl ReplayGuard {
    /// A guard that has seen nothing yet.
    #[must_use]
    pub const fn new(mode: ReplayProtection) -> Self {
        match mode {
            ReplayProtection::Timestamps { window } => Self::Timestamps { window, last: None },
            ReplayProtection::Nonces => Self::Nonces { expected: None },
        }
    }

    /// Goes on from what `saved` had seen; its window is not taken over.
    pub(crate) fn resume(&mut self, saved: &Self) {
        match (self, saved) {
            (Self::Timestamps { last, .. }, Self::Timestamps { last: seen, .. }) => *last = *seen,
            (Self::Nonces { expected }, Self::Nonces { expected: seen }) => *expected = *seen,
            _ => {}
        }
    }

    /// The latest timestamp accepted.
    pub(crate) const fn latest(&self) -> Option<NtpTime> {
        match self {
            Self::Timestamps { last, .. } => *last,
            Self::Nonces { .. } => None,
        }
    }

    /// Takes no timestamp any more that is not later than `stamp`.
    pub(crate) fn advance(&mut self, stamp: NtpTime) {
        if let Self::Timestamps { last, .. } = self {
            *last = Some(last.map_or(stamp, |last| last.later_of(stamp)));
        }
    }

    /// Whether this is the Identification that was accepted last, by its timestamp.
    pub(crate) fn accepted_last(&self, identification: Identification) -> bool {
        match self {
            Self::Timestamps { last, .. } => *last == Some(NtpTime::from_bits(identification.0)),
            Self::Nonces { .. } => false,
        }
    }

    /// Judges the Identification of a request whose authenticator was found right, and remembers it if it
    /// is fresh. `clock` is the home agent's time of day.
    pub fn check(
        &mut self,
        identification: Identification,
        clock: NtpTime,
        random: &mut Randomness,
    ) -> Verdict {
        match self {
            Self::Timestamps { window, last } => check_timestamp(*window, last, identification, clock),
            Self::Nonces { expected } => check_nonce(expected, identification, random),
        }
    }
}

fn check_timestamp(
    window: Duration,
    last: &mut Option<NtpTime>,
    identification: Identification,
    clock: NtpTime,
) -> Verdict {
    let stamp = NtpTime::from_bits(identification.0);
    // A clock that was set back would lock the mobile node out until it has caught up with what was
    // accepted before, or, were it believed, open the past to replays. So time never runs backwards here:
    // the node is led to the latest stamp accepted, and goes on from there.
    let reference = match *last {
        Some(last) if last.difference(clock) > 0 => last,
        _ => clock,
    };
    let outcome = if last.is_some_and(|last| stamp.difference(last) <= 0) {
        Err(IdentificationMismatch::NotNewer)
    } else if stamp.is_within(window, reference) {
        *last = Some(stamp);
        Ok(())
    } else {
        Err(IdentificationMismatch::OutsideWindow)
    };
    let reply = match outcome {
        Ok(()) => identification,
        Err(_) => {
            // The low half is the mobile node's; with it the stamp we suggest must not fall behind what
            // was accepted already.
            let mut high = reference.seconds();
            let suggested = |high| Identification::from_halves(high, identification.low());
            let too_early = |last: NtpTime| NtpTime::from_bits(suggested(high).0).difference(last) <= 0;
            if last.is_some_and(too_early) {
                high = high.wrapping_add(1);
            }
            suggested(high)
        }
    };
    Verdict { outcome, reply }
}

fn check_nonce(
    expected: &mut Option<u32>,
    identification: Identification,
    random: &mut Randomness,
) -> Verdict {
    let given = identification.high();
    let fresh = *expected == Some(given);
    let next = match *expected {
        // A replayed request must not use up the nonce the mobile node is about to send.
        Some(nonce) if !fresh => nonce,
        _ => loop {
            let nonce = (random.next_u64() >> 32) as u32;
            if nonce != given {
                break nonce;
            }
        },
    };
    *expected = Some(next);
    Verdict {
        outcome: if fresh { Ok(()) } else { Err(IdentificationMismatch::WrongNonce) },
        reply: Identification::from_halves(next, identification.low()),
    }
}

/// The random bits of a timestamp.
const CHANCE: u64 = 0xf_ffff;
/// What they are worth, in time, rounded up: a timestamp tells the time to this.
pub(crate) const TIMESTAMP_PRECISION: Duration = Duration::from_micros(250);

/// Where a mobile node takes the Identification of its next request from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdentificationSource {
    mode: ReplayProtection,
    /// The home agent's clock minus ours, in seconds, as the last code 133 told.
    correction: u32,
    last: Option<NtpTime>,
    nonce: u32,
}

impl IdentificationSource {
    /// A source for a security association with this mode.
    pub(crate) const fn new(mode: ReplayProtection) -> Self {
        Self { mode, correction: 0, last: None, nonce: 0 }
    }

    /// Whether an unanswered request is sent again as it is (nonces), or with a new Identification
    /// (timestamps), RFC 5944 section 3.6.3.
    pub(crate) const fn retransmits_unchanged(&self) -> bool {
        matches!(self.mode, ReplayProtection::Nonces)
    }

    /// The Identification of a new request.
    pub(crate) fn next(&mut self, now: Instant, clock: WallClock, random: &mut Randomness) -> Identification {
        match self.mode {
            ReplayProtection::Timestamps { .. } => {
                let own = clock.at(now).to_bits().wrapping_add(u64::from(self.correction) << 32);
                // What is below a quarter of a millisecond comes from chance: a reply is known by the low
                // half, which then differs between requests sent whole seconds apart and cannot be guessed.
                let mut stamp = NtpTime::from_bits((own & !CHANCE) | (random.next_u64() & CHANCE));
                if let Some(last) = self.last
                    && stamp.difference(last) <= 0
                {
                    stamp = NtpTime::from_bits(last.to_bits().wrapping_add(1));
                }
                self.last = Some(stamp);
                Identification(stamp.to_bits())
            }
            ReplayProtection::Nonces => Identification::from_halves(self.nonce, random.next_u64() as u32),
        }
    }

    /// Takes in the Identification of an authenticated reply that accepted the request or denied it for
    /// another reason than its Identification: with nonces it brings the next one.
    pub(crate) fn learn(&mut self, reply: Identification) {
        if matches!(self.mode, ReplayProtection::Nonces) {
            self.nonce = reply.high();
        }
    }

    /// Takes in the Identification of an authenticated reply with code 133, whose low half the caller has
    /// found to be that of the request.
    pub(crate) fn resynchronize(&mut self, request: Identification, reply: Identification) {
        match self.mode {
            ReplayProtection::Timestamps { .. } => {
                let step = reply.high().wrapping_sub(request.high());
                self.correction = self.correction.wrapping_add(step);
                // The home agent's time may be earlier than stamps it never accepted.
                self.last = None;
            }
            ReplayProtection::Nonces => self.nonce = reply.high(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    fn random() -> Randomness {
        RandomStream::new(1, 0, "replay").into()
    }

    fn clock() -> NtpTime {
        NtpTime::from_unix(Duration::from_secs(930_000_000))
    }

    fn stamp(offset_ms: i64) -> Identification {
        let span = Duration::from_millis(offset_ms.unsigned_abs());
        let time = if offset_ms < 0 { clock().earlier(span) } else { clock().later(span) };
        Identification(time.to_bits())
    }

    #[test]
    fn a_timestamp_is_accepted_within_the_window_only() {
        for (offset, expected) in [
            (-7_000, Ok(())),
            (7_000, Ok(())),
            (-7_001, Err(IdentificationMismatch::OutsideWindow)),
            (7_001, Err(IdentificationMismatch::OutsideWindow)),
        ] {
            let mut guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
            assert_eq!(guard.check(stamp(offset), clock(), &mut random()).outcome, expected, "{offset} ms");
        }
    }

    #[test]
    fn a_timestamp_must_be_later_than_all_accepted_before() {
        let mut guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
        assert!(guard.check(stamp(0), clock(), &mut random()).outcome.is_ok());
        for replay in [stamp(0), stamp(-1)] {
            let verdict = guard.check(replay, clock(), &mut random());
            assert_eq!(verdict.outcome, Err(IdentificationMismatch::NotNewer));
            assert_eq!(verdict.reply.low(), replay.low(), "the low half is the request's");
        }
        assert!(guard.check(stamp(1), clock(), &mut random()).outcome.is_ok());
    }

    #[test]
    fn a_refused_timestamp_is_not_remembered() {
        let mut guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
        assert!(guard.check(stamp(60_000), clock(), &mut random()).outcome.is_err());
        assert!(guard.check(stamp(0), clock(), &mut random()).outcome.is_ok());
    }

    #[test]
    fn a_wrong_clock_is_right_after_one_answer() {
        for wrong in [WallClock::new(clock()).ahead_by(Duration::from_secs(86_400)), WallClock::default()] {
            let mut guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
            let mut source = IdentificationSource::new(ReplayProtection::TIMESTAMPS);
            let now = Instant::from_millis(10_250);
            let home = WallClock::new(clock()).at(now);
            let request = source.next(now, wrong, &mut random());
            let verdict = guard.check(request, home, &mut random());
            assert!(verdict.outcome.is_err());
            source.resynchronize(request, verdict.reply);
            let again = source.next(now, wrong, &mut random());
            assert!(guard.check(again, home, &mut random()).outcome.is_ok());
        }
    }

    #[test]
    fn a_home_agent_whose_clock_was_set_back_still_serves_and_still_refuses_replays() {
        let mut guard = ReplayGuard::new(ReplayProtection::TIMESTAMPS);
        let mut source = IdentificationSource::new(ReplayProtection::TIMESTAMPS);
        let mobile = WallClock::new(clock());
        let early = source.next(Instant::ZERO, mobile, &mut random());
        assert!(guard.check(early, mobile.at(Instant::ZERO), &mut random()).outcome.is_ok());

        let back = mobile.behind_by(Duration::from_secs(3600));
        let later = Instant::from_secs(100);
        assert!(guard.check(early, back.at(later), &mut random()).outcome.is_err());
        let request = source.next(later, mobile, &mut random());
        let verdict = guard.check(request, back.at(later), &mut random());
        assert!(verdict.outcome.is_err());
        source.resynchronize(request, verdict.reply);
        let again = source.next(later, mobile, &mut random());
        assert!(guard.check(again, back.at(later), &mut random()).outcome.is_ok());
    }

    #[test]
    fn identifications_increase_even_when_the_clock_stands_still() {
        let mut source = IdentificationSource::new(ReplayProtection::TIMESTAMPS);
        let mut random = random();
        let mut last = Identification::default();
        for _ in 0..100 {
            let next = source.next(Instant::ZERO, WallClock::new(clock()), &mut random);
            assert!(next > last);
            last = next;
        }
    }

    #[test]
    fn nonces_synchronise_themselves_and_a_replay_does_not_disturb_them() {
        let mut guard = ReplayGuard::new(ReplayProtection::Nonces);
        let mut source = IdentificationSource::new(ReplayProtection::Nonces);
        let (mut ours, mut theirs) = (random(), Randomness::from(RandomStream::new(2, 0, "home")));
        let wall = WallClock::default();

        let first = source.next(Instant::ZERO, wall, &mut ours);
        let verdict = guard.check(first, clock(), &mut theirs);
        assert_eq!(verdict.outcome, Err(IdentificationMismatch::WrongNonce));
        source.resynchronize(first, verdict.reply);

        let second = source.next(Instant::ZERO, wall, &mut ours);
        let verdict = guard.check(second, clock(), &mut theirs);
        assert!(verdict.outcome.is_ok());
        source.learn(verdict.reply);

        for replay in [first, second] {
            assert!(guard.check(replay, clock(), &mut theirs).outcome.is_err());
        }
        let third = source.next(Instant::ZERO, wall, &mut ours);
        assert!(guard.check(third, clock(), &mut theirs).outcome.is_ok());
    }
}
