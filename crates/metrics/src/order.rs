//! In which order transmissions arrive, and which of them arrive again.

use alloc::boxed::Box;

/// How many transmission numbers back an arrival is remembered. Far more than any window holds, and 2 KiB.
const REMEMBERED: u64 = 16_384;
const WORDS: usize = (REMEMBERED / 64) as usize;

/// What the number of an arriving transmission says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Sent later than all that arrived before.
    Latest,
    /// Something sent later arrived before it.
    Overtaken,
    /// It arrived before: the network copied it.
    Copy,
}

/// The transmission numbers that have arrived, as far back as [`REMEMBERED`].
#[derive(Clone, Debug)]
pub(crate) struct ArrivalOrder {
    /// One more than the highest number that has arrived.
    next: u64,
    /// Of each number in `next - REMEMBERED..next`, at its place modulo `REMEMBERED`, whether it has arrived.
    arrived: Box<[u64; WORDS]>,
}

impl Default for ArrivalOrder {
    fn default() -> Self {
        Self { next: 0, arrived: Box::new([0; WORDS]) }
    }
}

impl ArrivalOrder {
    /// Notes an arrival. A number too old to be remembered counts as arriving for the first time.
    ///
    /// The time taken is that of setting a bit, and of clearing one for each number that is skipped.
    pub(crate) fn insert(&mut self, number: u64) -> Place {
        if number >= self.next {
            if number - self.next >= REMEMBERED {
                self.arrived.fill(0);
            } else {
                for skipped in self.next..number {
                    let (word, bit) = self.place(skipped);
                    *word &= !bit;
                }
            }
            let (word, bit) = self.place(number);
            *word |= bit;
            self.next = number.saturating_add(1);
            return Place::Latest;
        }
        if self.next - number > REMEMBERED {
            return Place::Overtaken;
        }
        let (word, bit) = self.place(number);
        if *word & bit != 0 {
            return Place::Copy;
        }
        *word |= bit;
        Place::Overtaken
    }

    /// The word and the bit in it that stand for `number`.
    fn place(&mut self, number: u64) -> (&mut u64, u64) {
        let index = (number % REMEMBERED) as usize;
        (&mut self.arrived[index / 64], 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn a_number_that_comes_again_is_a_copy_wherever_it_stands() {
        let mut order = ArrivalOrder::default();
        let places = [0, 0, 5, 3, 5, 3, 4, 0].map(|number| order.insert(number));
        use Place::{Copy, Latest, Overtaken};
        assert_eq!(places, [Latest, Copy, Latest, Overtaken, Copy, Copy, Overtaken, Copy]);
    }

    #[test]
    fn a_number_too_old_to_be_remembered_counts_as_new() {
        let mut order = ArrivalOrder::default();
        order.insert(0);
        order.insert(REMEMBERED - 1);
        assert_eq!(order.insert(0), Place::Copy);
        order.insert(REMEMBERED);
        assert_eq!(order.insert(0), Place::Overtaken);
        assert_eq!(order.insert(0), Place::Overtaken, "nor is it remembered now");
        assert_eq!(order.insert(REMEMBERED), Place::Copy, "which has its place");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        /// Steps of all sizes round the bitmap: small ones, about its length, and far beyond.
        #[test]
        fn agrees_with_a_set_of_numbers(
            steps in prop::collection::vec((prop_oneof![0_u64..4, 16_300_u64..16_500, 0_u64..60_000], 0_u64..16_500), 1..200)
        ) {
            let mut order = ArrivalOrder::default();
            let mut reference = BTreeSet::new();
            let mut next = 0;
            for (forward, back) in steps {
                for number in [next + forward, (next + forward).saturating_sub(back)] {
                    let expected = match number {
                        _ if number >= next => Place::Latest,
                        _ if next - number <= REMEMBERED && reference.contains(&number) => Place::Copy,
                        _ => Place::Overtaken,
                    };
                    prop_assert_eq!(order.insert(number), expected);
                    reference.insert(number);
                    next = next.max(number + 1);
                }
            }
        }
    }
}
