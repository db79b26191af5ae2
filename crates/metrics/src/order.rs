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
///
/// Numbers mostly come in order, so the word that holds the latest one is kept apart: with ten thousand flows the table
/// of a flow is far away in memory, and an arrival in order goes there once in 64 times.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalOrder {
    /// One more than the highest number that has arrived.
    next: u64,
    /// Which 64 numbers `latest` stands for, counted in words from number 0.
    latest_word: u64,
    /// Of each of these, whether it has arrived.
    latest: u64,
    /// The same of the words before `latest_word`, each at its place modulo `WORDS`.
    before: Box<[u64; WORDS]>,
}

impl Default for ArrivalOrder {
    fn default() -> Self {
        Self { next: 0, latest_word: 0, latest: 0, before: Box::new([0; WORDS]) }
    }
}

impl ArrivalOrder {
    /// Notes an arrival. A number too old to be remembered counts as arriving for the first time.
    ///
    /// The time taken is that of setting a bit, and of clearing a word for each 64 numbers that are skipped.
    pub(crate) fn insert(&mut self, number: u64) -> Place {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if number >= self.next {
            if word != self.latest_word {
                self.turn_to(word);
            }
            self.latest |= bit;
            self.next = number.saturating_add(1);
            return Place::Latest;
        }
        if self.next - number > REMEMBERED {
            return Place::Overtaken;
        }
        let arrived = if word == self.latest_word { &mut self.latest } else { &mut self.before[place(word)] };
        if *arrived & bit != 0 {
            return Place::Copy;
        }
        *arrived |= bit;
        Place::Overtaken
    }

    /// Makes a later word the latest one.
    fn turn_to(&mut self, word: u64) {
        self.before[place(self.latest_word)] = self.latest;
        // The place of `word` itself keeps the numbers one round back, of which some are remembered still.
        let skipped = self.latest_word + 1..word;
        if word - self.latest_word > WORDS as u64 {
            self.before.fill(0);
        } else {
            skipped.for_each(|skipped| self.before[place(skipped)] = 0);
        }
        (self.latest_word, self.latest) = (word, 0);
    }
}

/// Where a word is kept.
const fn place(word: u64) -> usize {
    (word % WORDS as u64) as usize
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
