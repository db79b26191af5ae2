//! Fewer lines when there are too many of a kind: a flood must not fill the disk, or cost more than itself.

use std::collections::BTreeMap;

use careof_base::{Duration, Instant};

/// Lines of a kind that may come at once.
const BURST: u32 = 20;
/// Time until there may be one more.
const INTERVAL: Duration = Duration::from_millis(500);
/// After so long without a line, those that were left out are told.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Kind {
    /// Lines that may come now.
    allowance: u32,
    /// Since when the allowance grows.
    since: Instant,
    suppressed: u64,
    /// When the first of the suppressed lines came.
    first: Instant,
}

/// A bucket for each kind of line.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    kinds: BTreeMap<&'static str, Kind>,
    total: u64,
}

impl Throttle {
    /// Whether a line of `kind` may be written. `Some` says how many were not since the last one.
    pub(crate) fn admit(&mut self, now: Instant, kind: &'static str) -> Option<u64> {
        let fresh = || Kind { allowance: BURST, since: now, suppressed: 0, first: now };
        let bucket = self.kinds.entry(kind).or_insert_with(fresh);
        let grown = now.saturating_duration_since(bucket.since).as_nanos() / INTERVAL.as_nanos();
        let grown = u32::try_from(grown).unwrap_or(u32::MAX);
        if grown > 0 {
            bucket.allowance = bucket.allowance.saturating_add(grown).min(BURST);
            bucket.since = if bucket.allowance == BURST { now } else { bucket.since + INTERVAL * grown };
        }
        if bucket.allowance == 0 {
            if bucket.suppressed == 0 {
                bucket.first = now;
            }
            bucket.suppressed += 1;
            self.total += 1;
            return None;
        }
        bucket.allowance -= 1;
        Some(std::mem::take(&mut bucket.suppressed))
    }

    /// When [`Throttle::settle`] wants to be called.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.kinds.values().filter(|kind| kind.suppressed > 0).map(|kind| kind.first + SETTLE).min()
    }

    /// The kinds of which lines were left out that nobody was told of yet, and how many.
    pub(crate) fn settle(&mut self, now: Instant) -> Vec<(&'static str, u64)> {
        let due = |kind: &Kind| kind.suppressed > 0 && kind.first + SETTLE <= now;
        let due = self.kinds.iter_mut().filter(|(_, kind)| due(kind));
        due.map(|(name, kind)| (*name, std::mem::take(&mut kind.suppressed))).collect()
    }

    /// How many lines were left out so far.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_flood_becomes_a_trickle_that_counts_what_it_leaves_out() {
        let mut throttle = Throttle::default();
        let (mut written, mut told) = (0, 0);
        // 10,000 a second for 10 s.
        for step in 0..100_000_u64 {
            let now = Instant::from_micros(step * 100);
            if let Some(suppressed) = throttle.admit(now, "flood") {
                written += 1;
                told += suppressed;
            }
            told += throttle.settle(now).iter().map(|(_, count)| count).sum::<u64>();
        }
        assert_eq!(written, 20 + 19, "the burst, then two a second");
        told += throttle.settle(at(20_000)).iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(written + told, 100_000);
        assert_eq!(throttle.total(), told);
        assert_eq!(throttle.next_timeout(), None);
    }

    #[test]
    fn kinds_do_not_disturb_each_other() {
        let mut throttle = Throttle::default();
        while throttle.admit(at(0), "loud").is_some() {}
        assert_eq!(throttle.admit(at(0), "quiet"), Some(0));
    }

    #[test]
    fn what_was_left_out_is_told_when_nothing_follows() {
        let mut throttle = Throttle::default();
        while throttle.admit(at(1), "x").is_some() {}
        assert_eq!(throttle.next_timeout(), Some(at(5_001)));
        assert!(throttle.settle(at(5_000)).is_empty());
        assert_eq!(throttle.settle(at(5_001)), [("x", 1)]);
    }
}
