//! The state of RACK (RFC 8985, 2021, sections 5 and 6.2): a segment is lost when one sent later has been delivered
//! and a round trip and a reordering window have passed since it left.
//!
//! Times are microseconds since the beginning of the run. The reordering window is Linux 6.1's
//! (`net/ipv4/tcp_recovery.c`): a duplicate reported by D-SACK widens it once a round trip, and sixteen recoveries
//! without one bring it back. Who walks over the segments, and in what order, is the sender's business.

use careof_wire::SeqNumber;

/// Recoveries for which a wider reordering window is kept.
const PERSIST: u32 = 16;
/// The reordering window grows in steps of a quarter of the least round trip, up to this many.
const MOST_STEPS: u32 = 255;

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// When the segment that was sent last of all those delivered had left, and its end (`RACK.xmit_ts`, `RACK.end_seq`).
    newest: Option<(u64, SeqNumber)>,
    /// Its round trip, microseconds.
    rtt: u64,
    /// Something was delivered since losses were looked for.
    pub(crate) advanced: bool,
    /// A duplicate was reported that reordering may have caused.
    pub(crate) duplicate_seen: bool,
    steps: u32,
    persist: u32,
    /// When the window was last widened.
    widened_at: Option<u64>,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self {
            newest: None,
            rtt: 0,
            advanced: false,
            duplicate_seen: false,
            steps: 1,
            persist: 0,
            widened_at: None,
        }
    }

    /// A segment that ends at `end` and left at `sent` was delivered. One that was sent again and comes sooner than
    /// `min_rtt` stands for its first transmission, and tells nothing (section 6.2 step 2).
    pub(crate) fn delivered(&mut self, now: u64, sent: u64, end: SeqNumber, repeated: bool, min_rtt: u64) {
        let rtt = now.saturating_sub(sent);
        if repeated && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if self.newest.is_none_or(|newest| sent_after((sent, end), newest)) {
            self.newest = Some((sent, end));
        }
    }

    /// Whether something sent after this segment was delivered.
    pub(crate) fn is_passed(&self, sent: u64, end: SeqNumber) -> bool {
        self.newest.is_some_and(|newest| sent_after(newest, (sent, end)))
    }

    /// How long to wait for a segment that left at `sent`, microseconds; not positive when it is lost.
    pub(crate) fn remaining(&self, now: u64, sent: u64, window: u64) -> i64 {
        let wait = self.rtt.saturating_add(window);
        i64::try_from(wait).unwrap_or(i64::MAX) - i64::try_from(now.saturating_sub(sent)).unwrap_or(i64::MAX)
    }

    /// The reordering window, microseconds (`RACK_update_reo_wnd`).
    pub(crate) fn window(&self, min_rtt: u64, srtt: u64) -> u64 {
        (min_rtt / 4).saturating_mul(u64::from(self.steps)).min(srtt)
    }

    /// An acknowledgement was taken; `newest` is when the newest segment it delivered had left.
    pub(crate) fn adapt(&mut self, now: u64, newest: Option<u64>) {
        let Some(newest) = newest else { return };
        // What left before the last change says nothing about the wider window.
        if self.widened_at.is_some_and(|widened| newest < widened) {
            self.duplicate_seen = false;
        }
        if self.duplicate_seen {
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.duplicate_seen = false;
            self.widened_at = Some(now);
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended, and was not in vain.
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was in vain.
    pub(crate) fn recovered_in_vain(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
}

/// Section 6.2: `RACK_sent_after`. Segments sent in one go are ordered by sequence number.
fn sent_after(one: (u64, SeqNumber), other: (u64, SeqNumber)) -> bool {
    one.0 > other.0 || one.0 == other.0 && one.1.is_after(other.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn end(segment: u32) -> SeqNumber {
        SeqNumber(segment * 1_000)
    }

    #[test]
    fn a_segment_is_passed_by_a_later_one_or_by_a_higher_one_of_the_same_moment() {
        let mut rack = Rack::new();
        assert!(!rack.is_passed(0, end(1)));
        rack.delivered(50_000, 10_000, end(3), false, u64::MAX);
        assert!(rack.is_passed(9_999, end(9)) && rack.is_passed(10_000, end(2)));
        assert!(!rack.is_passed(10_000, end(3)) && !rack.is_passed(10_001, end(1)));
        // 40 ms of round trip and a window of 10 ms from when it left.
        assert_eq!(rack.remaining(50_000, 5_000, 10_000), 5_000);
        assert_eq!(rack.remaining(55_000, 5_000, 10_000), 0);
    }

    #[test]
    fn a_repeated_segment_that_comes_too_soon_tells_nothing() {
        let mut rack = Rack::new();
        rack.delivered(50_000, 40_000, end(3), true, 20_000);
        assert!(!rack.advanced);
        rack.delivered(60_000, 40_000, end(3), true, 20_000);
        assert!(rack.advanced && rack.is_passed(30_000, end(9)));
    }

    #[test]
    fn duplicates_widen_the_window_once_a_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::new();
        assert_eq!(rack.window(40_000, 100_000), 10_000);
        rack.duplicate_seen = true;
        rack.adapt(1_000_000, Some(900_000));
        assert_eq!(rack.window(40_000, 100_000), 20_000);
        // The same round trip.
        rack.duplicate_seen = true;
        rack.adapt(1_010_000, Some(950_000));
        assert_eq!(rack.window(40_000, 100_000), 20_000);
        rack.duplicate_seen = true;
        rack.adapt(1_100_000, Some(1_000_000));
        assert_eq!((rack.window(40_000, 100_000), rack.window(40_000, 25_000)), (30_000, 25_000));
        for _ in 0..16 {
            rack.adapt(2_000_000, Some(1_900_000));
            assert_eq!(rack.window(40_000, 100_000), 30_000);
            rack.recovered();
        }
        rack.adapt(2_000_000, Some(1_900_000));
        assert_eq!(rack.window(40_000, 100_000), 10_000);
    }
}
