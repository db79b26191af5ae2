//! Which sequence numbers have reached the receiver's host, or have left the sender's.

use alloc::vec::Vec;

/// A receiver holds no more separate ranges than segments fit its window; this is far beyond that.
const MOST_RANGES: usize = 4096;

/// Sequence numbers that have been somewhere: everything before a point, and ranges beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceRanges {
    /// Everything from 0 up to here, exclusive.
    complete: i64,
    /// Disjoint, not touching, ascending; all beyond `complete`.
    beyond: Vec<(i64, i64)>,
}

impl SequenceRanges {
    /// Notes `[seq, end)`; tells whether all of it had been there before. An empty range brings nothing new.
    pub fn insert(&mut self, seq: i64, end: i64) -> bool {
        if end <= self.complete || end <= seq {
            return true;
        }
        if seq <= self.complete && self.beyond.is_empty() {
            self.complete = end;
            return false;
        }
        // Ranges from `first` to before `last` overlap or touch the new one.
        let first = self.beyond.partition_point(|&(_, right)| right < seq);
        let last = self.beyond.partition_point(|&(left, _)| left <= end);
        let (mut left, mut right) = (seq, end);
        if let Some(touched) = self.beyond.get(first..last)
            && let (Some(&(lowest, right_of_lowest)), Some(&(_, highest))) = (touched.first(), touched.last())
        {
            if lowest <= seq && end <= right_of_lowest {
                return true;
            }
            (left, right) = (left.min(lowest), right.max(highest));
            self.beyond.drain(first..last);
        }
        if left <= self.complete {
            self.complete = right;
        } else {
            self.beyond.insert(first, (left, right));
            self.beyond.truncate(MOST_RANGES);
        }
        false
    }

    /// Whether `seq` has been there.
    #[must_use]
    pub fn contains(&self, seq: i64) -> bool {
        if seq < self.complete {
            return true;
        }
        let after = self.beyond.partition_point(|&(left, _)| left <= seq);
        after.checked_sub(1).and_then(|index| self.beyond.get(index)).is_some_and(|&(_, right)| seq < right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn a_filled_hole_makes_one_range_of_its_neighbours() {
        let mut ranges = SequenceRanges::default();
        assert!(!ranges.insert(0, 1));
        assert!(!ranges.insert(11, 21));
        assert!(!ranges.insert(31, 41));
        assert!(!ranges.insert(21, 31));
        assert_eq!(ranges.beyond, [(11, 41)]);
        assert!(ranges.insert(15, 25));
        assert!(!ranges.insert(1, 11));
        assert_eq!((ranges.complete, ranges.beyond.len()), (41, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn agrees_with_a_set_of_numbers(arrivals in prop::collection::vec((0_i64..60, 0_i64..12), 1..60)) {
            let mut ranges = SequenceRanges::default();
            let mut reference = BTreeSet::new();
            for (seq, len) in arrivals {
                let all_there = (seq..seq + len).all(|number| reference.contains(&number));
                reference.extend(seq..seq + len);
                prop_assert_eq!(ranges.insert(seq, seq + len), all_there);
                for number in 0..80 {
                    prop_assert_eq!(ranges.contains(number), reference.contains(&number));
                }
            }
        }
    }
}
