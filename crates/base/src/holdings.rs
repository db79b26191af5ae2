//! Who holds how many of something.

use alloc::collections::{BTreeMap, BTreeSet};

/// How much everybody has.
#[derive(Clone, Debug)]
pub struct Holdings<Holder> {
    counts: BTreeMap<Holder, usize>,
    by_count: BTreeSet<(usize, Holder)>,
}

impl<Holder> Default for Holdings<Holder> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), by_count: BTreeSet::new() }
    }
}

impl<Holder: Copy + Ord> Holdings<Holder> {
    /// How much one has.
    #[must_use]
    pub fn of(&self, holder: Holder) -> usize {
        self.counts.get(&holder).copied().unwrap_or(0)
    }

    /// Who has most, and how much.
    #[must_use]
    pub fn largest(&self) -> Option<(Holder, usize)> {
        self.by_count.last().map(|&(count, holder)| (holder, count))
    }

    /// One more.
    pub fn add(&mut self, holder: Holder) {
        let count = self.of(holder);
        self.by_count.remove(&(count, holder));
        self.by_count.insert((count + 1, holder));
        self.counts.insert(holder, count + 1);
    }

    /// One less; nothing if there is none.
    pub fn take(&mut self, holder: Holder) {
        let Some(count) = self.counts.remove(&holder) else { return };
        self.by_count.remove(&(count, holder));
        if count > 1 {
            self.by_count.insert((count - 1, holder));
            self.counts.insert(holder, count - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_is_known_as_holdings_come_and_go() {
        let mut holdings = Holdings::default();
        assert_eq!(holdings.largest(), None);
        for holder in [1, 2, 2, 3, 2] {
            holdings.add(holder);
        }
        assert_eq!((holdings.largest(), holdings.of(1), holdings.of(4)), (Some((2, 3)), 1, 0));
        for holder in [2, 2, 1, 1] {
            holdings.take(holder);
        }
        assert_eq!((holdings.largest(), holdings.of(1)), (Some((3, 1)), 0));
        holdings.take(2);
        holdings.take(3);
        assert!(holdings.counts.is_empty() && holdings.by_count.is_empty());
    }
}
