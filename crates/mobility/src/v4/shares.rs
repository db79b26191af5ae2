//! How much of a table one may take whom nobody can hold to account.

use alloc::collections::{BTreeMap, BTreeSet};

use super::{InterfaceId, LinkAddress};

/// Who sends on a link.
pub(crate) type Station = (InterfaceId, LinkAddress);

/// The least share: so many come through one station, or from one home agent, in the smallest of networks.
const LEAST: usize = 16;

/// The share of `of` that a station may take where the operator says nothing: a quarter. A host that passes others' frames on as
/// its own - a wireless bridge, say - has many mobile nodes behind it, but hardly hundreds.
pub(crate) fn of_station(configured: Option<usize>, of: usize) -> usize {
    configured.unwrap_or((of / 4).max(LEAST))
}

/// The share of `of` that the mobile nodes of a home agent keep when others come, where the operator says nothing: a half.
pub(crate) fn of_home_agent(configured: Option<usize>, of: usize) -> usize {
    configured.unwrap_or((of / 2).max(LEAST))
}

/// How much everybody has.
#[derive(Clone, Debug)]
pub(crate) struct Holdings<Holder> {
    counts: BTreeMap<Holder, usize>,
    by_count: BTreeSet<(usize, Holder)>,
}

impl<Holder> Default for Holdings<Holder> {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), by_count: BTreeSet::new() }
    }
}

impl<Holder: Copy + Ord> Holdings<Holder> {
    pub(crate) fn of(&self, holder: Holder) -> usize {
        self.counts.get(&holder).copied().unwrap_or(0)
    }

    /// Who has most, and how much.
    pub(crate) fn largest(&self) -> Option<(Holder, usize)> {
        self.by_count.last().map(|&(count, holder)| (holder, count))
    }

    pub(crate) fn add(&mut self, holder: Holder) {
        let count = self.of(holder);
        self.by_count.remove(&(count, holder));
        self.by_count.insert((count + 1, holder));
        self.counts.insert(holder, count + 1);
    }

    pub(crate) fn take(&mut self, holder: Holder) {
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
    fn shares_are_a_part_and_never_less_than_a_few() {
        assert_eq!([of_station(None, 1_000), of_station(None, 20), of_station(Some(3), 20)], [250, 16, 3]);
        assert_eq!(
            [of_home_agent(None, 1_000), of_home_agent(None, 20), of_home_agent(Some(3), 20)],
            [500, 16, 3]
        );
    }

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
