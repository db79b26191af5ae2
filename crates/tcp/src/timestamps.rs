//! The timestamps option (RFC 7323, 2014, sections 3 to 5): echoing, round trips, and protection against
//! wrapped sequence numbers.
//!
//! The clock ticks in milliseconds. A timestamp that was not renewed for 24 days says nothing any more (section 5.5):
//! the peer's clock may have wrapped.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Segment, SeqNumber, Timestamps};

/// Milliseconds; from 1, so that 0 always means "no echo".
pub(crate) fn clock(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000).wrapping_add(1) as u32
}

/// How long the last timestamp is believed (section 5.5).
const BELIEVED: Duration = Duration::from_secs(24 * 24 * 3_600);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimestampState {
    /// Both sides sent the option in their SYN.
    pub(crate) on: bool,
    /// `TS.Recent`.
    recent: u32,
    /// When that was renewed last.
    renewed: Instant,
    /// `Last.ACK.sent`.
    last_ack_sent: SeqNumber,
}

impl TimestampState {
    /// The peer's SYN arrived.
    pub(crate) fn begin(&mut self, now: Instant, offered: bool, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps
            && offered
        {
            self.on = true;
            self.recent = timestamps.value;
            self.renewed = now;
            self.last_ack_sent = segment.seq;
        }
    }

    /// Section 5.3 R1: whether the segment is older than one seen before.
    pub(crate) fn is_old(&self, now: Instant, segment: &Segment) -> bool {
        let earlier = |ts: Timestamps| (ts.value.wrapping_sub(self.recent) as i32) < 0;
        self.on && segment.timestamps.is_some_and(earlier) && self.is_believed(now)
    }

    fn is_believed(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.renewed) <= BELIEVED
    }

    /// Section 4.3 (2): which timestamp is echoed.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment) {
        let Some(timestamps) = segment.timestamps else { return };
        let newer = (timestamps.value.wrapping_sub(self.recent) as i32) >= 0 || !self.is_believed(now);
        if self.on && newer && segment.seq.is_at_or_before(self.last_ack_sent) {
            self.recent = timestamps.value;
            self.renewed = now;
        }
    }

    /// The timestamp echoed.
    pub(crate) fn echo(&self, segment: &Segment) -> Option<u32> {
        segment.timestamps.map(|timestamps| timestamps.echo).filter(|&echo| self.on && echo != 0)
    }

    /// The round trip told by the echo.
    pub(crate) fn round_trip(&self, now: Instant, segment: &Segment) -> Option<Duration> {
        let echo = segment.timestamps?.echo;
        if !self.on || echo == 0 {
            return None;
        }
        let ticks = clock(now).wrapping_sub(echo);
        // An echo from the future is nonsense.
        (ticks < u32::MAX / 2).then(|| Duration::from_millis(u64::from(ticks)))
    }

    /// The option for a segment that acknowledges `ack`.
    pub(crate) fn option(&mut self, now: Instant, ack: SeqNumber) -> Option<Timestamps> {
        if !self.on {
            return None;
        }
        self.last_ack_sent = ack;
        Some(Timestamps { value: clock(now), echo: self.recent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(seq: u32, value: u32, echo: u32) -> Segment {
        Segment { seq: SeqNumber(seq), timestamps: Some(Timestamps { value, echo }), ..Segment::default() }
    }

    fn state() -> TimestampState {
        let mut state = TimestampState::default();
        state.begin(Instant::ZERO, true, &segment(99, 1_000, 0));
        state.option(Instant::ZERO, SeqNumber(100));
        state
    }

    #[test]
    fn the_earliest_segment_not_yet_acknowledged_is_echoed() {
        let mut state = state();
        state.on_segment(Instant::ZERO, &segment(100, 1_010, 0));
        state.on_segment(Instant::ZERO, &segment(200, 1_020, 0));
        assert_eq!(state.option(Instant::ZERO, SeqNumber(300)).map(|t| t.echo), Some(1_010));
        state.on_segment(Instant::ZERO, &segment(300, 1_030, 0));
        assert_eq!(state.option(Instant::ZERO, SeqNumber(400)).map(|t| t.echo), Some(1_030));
    }

    #[test]
    fn an_older_timestamp_marks_an_old_duplicate_also_across_the_wrap() {
        let mut state = state();
        assert!(state.is_old(Instant::ZERO, &segment(100, 999, 0)));
        assert!(!state.is_old(Instant::ZERO, &segment(100, 1_000, 0)));
        state.recent = u32::MAX - 5;
        assert!(!state.is_old(Instant::ZERO, &segment(100, 3, 0)));
        assert!(state.is_old(Instant::ZERO, &segment(100, u32::MAX - 6, 0)));
    }

    #[test]
    fn a_timestamp_is_believed_for_24_days() {
        let mut state = state();
        let silence = BELIEVED + Duration::from_nanos(1);
        let old = segment(100, 999, 0);
        assert!(state.is_old(Instant::ZERO + BELIEVED, &old));
        let late = Instant::ZERO + silence;
        assert!(!state.is_old(late, &old));
        // It is what the next ones are measured by.
        state.on_segment(late, &old);
        assert_eq!(state.option(late, SeqNumber(200)).map(|t| t.echo), Some(999));
        assert!(state.is_old(late, &segment(200, 998, 0)));
    }

    #[test]
    fn the_echo_measures_a_round_trip() {
        let state = state();
        let now = Instant::from_millis(250);
        assert_eq!(state.round_trip(now, &segment(0, 1, 201)), Some(Duration::from_millis(50)));
        assert_eq!(state.round_trip(now, &segment(0, 1, 0)), None);
        assert_eq!(state.round_trip(now, &segment(0, 1, 900)), None);
    }
}
