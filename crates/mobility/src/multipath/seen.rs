//! Packets of a path that come more than once.

/// Which of the last packets of a path have come, by their number in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen([u64; Seen::WORDS]);

impl Seen {
    const WORDS: usize = 16;
    /// So many numbers back it is known.
    const REACH: u32 = 64 * Self::WORDS as u32;

    /// Takes in a number, where `highest` is the highest before; whether it is new. What is too long ago counts as new.
    pub(super) fn take(&mut self, highest: Option<u32>, number: u32) -> bool {
        let ahead = highest.map_or(Self::REACH, |highest| number.wrapping_sub(highest));
        if (ahead as i32) > 0 {
            // None of those between has come.
            for back in 0..ahead.min(Self::REACH) {
                self.set(number.wrapping_sub(back), false);
            }
        } else if ahead.wrapping_neg() >= Self::REACH {
            return true;
        }
        !self.set(number, true)
    }

    /// What stood there before.
    fn set(&mut self, number: u32, has_come: bool) -> bool {
        let bit = 1 << (number % 64);
        let Some(word) = self.0.get_mut((number / 64) as usize % Self::WORDS) else { return false };
        let before = *word & bit != 0;
        if has_come {
            *word |= bit
        } else {
            *word &= !bit
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_is_not_new_as_far_back_as_it_is_known() {
        let mut seen = Seen::default();
        let mut highest = None;
        let mut take = |number: u32| {
            let is_new = seen.take(highest, number);
            highest = Some(
                highest.filter(|known: &u32| (number.wrapping_sub(*known) as i32) < 0).unwrap_or(number),
            );
            is_new
        };
        // Around the end of the numbers, with a gap that is filled later.
        let start = u32::MAX - 5;
        for number in (0..20).filter(|number| *number != 7).map(|number| start.wrapping_add(number)) {
            assert!(take(number) && !take(number), "{number}");
        }
        assert!(take(start.wrapping_add(7)) && !take(start.wrapping_add(7)));
        assert!(!take(start));
        // After a leap none of those between has come, and what is further back is not known any more.
        let far = start.wrapping_add(5000);
        assert!(take(far) && take(far.wrapping_sub(1023)) && !take(far.wrapping_sub(1023)));
        assert!(take(far.wrapping_sub(1024)) && take(far.wrapping_sub(1024)));
    }
}
