//! The maximum of what was seen in a sliding window, by Kathleen Nichols' algorithm (Linux 6.1 `lib/win_minmax.c`): the
//! best value and two runners-up, each newer than the one before, so that a worthy successor is at hand when
//! the best grows too old.
//!
//! It is an approximation: a value that was overtaken is forgotten, and the maximum of a full window may be that of
//! its later part. Time is whatever the user counts.

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: u64,
    value: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    /// The best, the second and the third choice.
    best: [Seen; 3],
}

impl WindowedMax {
    /// The maximum.
    pub(crate) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Forgets everything but `value`.
    pub(super) fn reset(&mut self, at: u64, value: u64) {
        self.best = [Seen { at, value }; 3];
    }

    /// Takes in `value`, seen at `at`, and returns the maximum of the last `window`.
    pub(crate) fn update(&mut self, window: u64, at: u64, value: u64) -> u64 {
        let new = Seen { at, value };
        if value >= self.best[0].value || at - self.best[2].at > window {
            self.reset(at, value);
            return value;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.age(window, new);
        self.best[0].value
    }

    /// Moves the choices up where the best is too old, and renews the others at a quarter and at half of the window.
    fn age(&mut self, window: u64, new: Seen) {
        let age = new.at - self.best[0].at;
        if age > window {
            // Twice, for the second choice may be too old as well; the third is not.
            for _ in 0..2 {
                if new.at - self.best[0].at > window {
                    self.best = [self.best[1], self.best[2], new];
                }
            }
        } else if self.best[1].at == self.best[0].at && age > window / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].at == self.best[1].at && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_best_is_followed_by_its_successor() {
        let mut filter = WindowedMax::default();
        let mut seen = alloc::vec::Vec::new();
        for (at, value) in [(0, 50), (1, 30), (4, 40), (8, 20), (10, 10), (11, 10), (15, 5)] {
            seen.push(filter.update(10, at, value));
        }
        assert_eq!(seen, [50, 50, 50, 50, 50, 40, 20]);
    }

    proptest! {
        #[test]
        fn it_is_a_value_of_the_window_and_not_below_the_newest(
            steps in prop::collection::vec((0_u64..4, 0_u64..1_000), 1..200)
        ) {
            let mut filter = WindowedMax::default();
            let mut seen = alloc::vec::Vec::new();
            let mut at = 0;
            for (step, value) in steps {
                at += step;
                seen.push((at, value));
                let max = filter.update(10, at, value);
                prop_assert!(max >= value);
                let exact = seen.iter().filter(|s| at - s.0 <= 10).map(|s| s.1).max();
                prop_assert!(Some(max) <= exact);
                prop_assert!(seen.iter().any(|s| at - s.0 <= 10 && s.1 == max));
            }
        }
    }
}
