//! How much a path carries, from what was delivered.
//!
//! What is delivered in a while is what the path can carry only while a queue stands before it; otherwise it is what there was to
//! carry. So an estimate is a *limit*, or it is known only that the path carries so much *at least*. A scheduler that took the
//! latter for the former would never find out that a path carries more.

use careof_base::DataRate;

/// Samples in a row that come close to the limit without a queue, after which it is no limit.
const OUTGROWN: u32 = 4;

/// An estimate of a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRate {
    /// Bit/s.
    measured: Option<u64>,
    is_limit: bool,
    was_limit: bool,
    outgrown: u32,
}

impl PathRate {
    /// Takes in what was delivered; `queued` says whether a queue stood before the path, and `is_filled` whether so much was in flight as
    /// the path carries in its least round trip, if it carries what was measured before. Without, less is what there was to carry, and
    /// what looks like a queue is jitter.
    pub(super) fn add(&mut self, delivered: DataRate, queued: bool, is_filled: bool) {
        let sample = delivered.bits_per_second();
        let Some(before) = self.measured else {
            *self = Self { measured: Some(sample), is_limit: queued, was_limit: queued, outgrown: 0 };
            return;
        };
        if queued && sample < before && !is_filled {
            return;
        }
        if queued {
            let mixed = if self.is_limit { before - before / 4 + sample / 4 } else { sample };
            *self = Self { measured: Some(mixed), is_limit: true, was_limit: true, outgrown: 0 };
            return;
        }
        let is_close = sample >= before - before / 8;
        self.outgrown = if is_close { self.outgrown.saturating_add(1) } else { 0 };
        if !self.is_limit || self.outgrown >= OUTGROWN {
            self.measured = Some(before.max(sample));
            self.is_limit = false;
        }
    }

    /// What was measured last.
    pub(super) fn measured(&self) -> Option<DataRate> {
        self.measured.map(DataRate::from_bits_per_second)
    }

    /// What the path carried when a queue last stood before it, or more; `None` where none ever did.
    pub(super) fn ceiling(&self) -> Option<DataRate> {
        self.measured().filter(|_| self.was_limit)
    }

    /// Whether it is what the path can carry.
    pub(super) const fn is_limit(&self) -> bool {
        self.is_limit
    }

    /// What may be relied on when packets are put there: a limit as it is; twice of what a path carries at least, which is how fast
    /// a source in slow start grows, and a quarter more once its limit was seen.
    pub(super) fn expected(&self) -> Option<DataRate> {
        let measured = self.measured?;
        let expected = match (self.is_limit, self.was_limit) {
            (true, _) => measured,
            (false, true) => measured.saturating_add(measured / 4),
            (false, false) => measured.saturating_mul(2),
        };
        Some(DataRate::from_bits_per_second(expected.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(n: u64) -> DataRate {
        DataRate::from_megabits_per_second(n)
    }

    #[test]
    fn what_little_there_was_to_carry_is_no_limit() {
        let mut rate = PathRate::default();
        rate.add(mbit(5), false, true);
        assert_eq!((rate.expected(), rate.is_limit()), (Some(mbit(10)), false));
        rate.add(mbit(2), false, true);
        assert_eq!(rate.expected(), Some(mbit(10)), "that it carried more is known");
        rate.add(mbit(40), true, true);
        assert_eq!((rate.expected(), rate.is_limit()), (Some(mbit(40)), true));
        rate.add(mbit(4), false, true);
        assert_eq!(rate.expected(), Some(mbit(40)));
    }

    #[test]
    fn jitter_that_looks_like_a_queue_does_not_lower_what_a_path_is_known_to_carry() {
        let mut rate = PathRate::default();
        rate.add(mbit(40), true, true);
        (0..20).for_each(|_| rate.add(mbit(1), true, false));
        assert_eq!((rate.expected(), rate.is_limit()), (Some(mbit(40)), true));
    }

    #[test]
    fn a_limit_follows_the_path_down_and_up() {
        let mut rate = PathRate::default();
        rate.add(mbit(40), true, true);
        (0..20).for_each(|_| rate.add(mbit(10), true, true));
        assert!(rate.expected().unwrap() < mbit(11));
        (0..4).for_each(|_| rate.add(mbit(10), false, true));
        assert!(!rate.is_limit() && rate.expected().unwrap() > mbit(12), "{rate:?}");
    }
}
