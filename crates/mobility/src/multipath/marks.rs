//! What was sent over a path, by the time of sending.

use core::time::Duration;

use careof_base::Instant;

use super::wire_time::{is_before, micros};

/// Marks that are kept.
const KEPT: usize = 128;

/// The state of a path when something was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    at: Instant,
    stamp: u32,
    /// The number of the last packet sent by then.
    sequence: u32,
    /// Bytes sent by then, with it.
    pub(super) bytes: u64,
    /// How long its queue was predicted to be, with it, nanoseconds; what predictions were put right by since the path began is taken
    /// off, so that what is put right later counts for this one, too.
    pub(super) backlog: i64,
}

/// The latest marks, one every so often.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    ring: [Mark; KEPT],
    /// Where the latest stands; `None`: there is none yet.
    latest: Option<usize>,
    count: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Self { ring: [Mark::default(); KEPT], latest: None, count: 0 }
    }
}

impl Marks {
    /// Enters what was sent, so that all marks together reach back `reach` at least. What is sent in between moves the latest mark on.
    pub(super) fn add(&mut self, now: Instant, sequence: u32, bytes: u64, backlog: i64, reach: Duration) {
        let mark = Mark { at: now, stamp: micros(now), sequence, bytes, backlog };
        let before = self.latest.and_then(|at| self.ring.get((at + KEPT - 1) % KEPT));
        let apart =
            before.filter(|_| self.count > 1).is_none_or(|last| now >= last.at + reach * 2 / KEPT as u32);
        let at = match self.latest {
            Some(at) if !apart => at,
            Some(at) => (at + 1) % KEPT,
            None => 0,
        };
        if self.latest != Some(at) {
            self.count = (self.count + 1).min(KEPT);
        }
        self.latest = Some(at);
        if let Some(place) = self.ring.get_mut(at) {
            *place = mark;
        }
    }

    fn newest_first(&self) -> impl Iterator<Item = &Mark> {
        let latest = self.latest.unwrap_or_default();
        (0..self.count).filter_map(move |back| self.ring.get((latest + KEPT - back) % KEPT))
    }

    /// The prediction of the queue at `stamp`, nanoseconds, between the marks before and after it; `None` where that is forgotten.
    pub(super) fn backlog_at(&self, stamp: u32) -> Option<i64> {
        let mut after: Option<&Mark> = None;
        for mark in self.newest_first() {
            if !is_before(stamp, mark.stamp) {
                let since = i64::from(stamp.wrapping_sub(mark.stamp));
                return Some(match after {
                    None => mark.backlog.saturating_sub(since.saturating_mul(1_000)),
                    Some(after) => {
                        let span = i64::from(after.stamp.wrapping_sub(mark.stamp)).max(1);
                        let change = i128::from(after.backlog) - i128::from(mark.backlog);
                        let part = change * i128::from(since) / i128::from(span);
                        mark.backlog.saturating_add(i64::try_from(part).unwrap_or_default())
                    }
                });
            }
            after = Some(mark);
        }
        None
    }

    /// The latest mark whose packets were all sent by the one with this number.
    pub(super) fn at_sequence(&self, sequence: u32) -> Option<&Mark> {
        self.newest_first().find(|mark| !is_before(sequence, mark.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_at_a_time_of_sending_is_found_again() {
        let mut marks = Marks::default();
        for n in 0..1000_u64 {
            marks.add(Instant::from_millis(n), n as u32, n * 100, n as i64 * 7, Duration::from_millis(500));
        }
        for asked in 600..999_u32 {
            assert!(marks.backlog_at(asked * 1000).unwrap().abs_diff(i64::from(asked) * 7) <= 1, "{asked}");
            // 128 marks reach over 500 ms, so one is 8 ms at most before what is asked for.
            let found = marks.at_sequence(asked).unwrap().bytes;
            assert!(u64::from(asked) * 100 - found <= 800, "{asked}: {found}");
        }
        assert_eq!(
            marks.backlog_at(1_005_000),
            Some(999 * 7 - 6_000_000),
            "since then it has been transmitted"
        );
        assert!(marks.backlog_at(10_000).is_none(), "it is forgotten");
    }
}
