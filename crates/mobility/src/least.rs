//! A minimum of late.

use core::time::Duration;

use careof_base::Instant;

/// A minimum over the last one to two periods.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least<T = Duration> {
    since: Option<Instant>,
    samples: u32,
    current: Option<T>,
    previous: Option<T>,
}

impl<T> Default for Least<T> {
    fn default() -> Self {
        Self { since: None, samples: 0, current: None, previous: None }
    }
}

impl<T: Copy + Ord> Least<T> {
    /// Takes in a sample; a period ends after `span` and `samples`.
    pub(crate) fn add(&mut self, now: Instant, sample: T, span: Duration, samples: u32) {
        let since = *self.since.get_or_insert(now);
        if self.samples >= samples && now >= since + span {
            *self = Self { since: Some(now), samples: 0, current: None, previous: self.current };
        }
        self.samples = self.samples.saturating_add(1);
        self.current = Some(self.current.map_or(sample, |least| least.min(sample)));
    }

    pub(crate) fn get(&self) -> Option<T> {
        [self.current, self.previous].into_iter().flatten().min()
    }
}
