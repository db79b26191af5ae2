//! How many messages were dropped, by reason.

/// One counter for each of `N` reasons, by the reason's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DropCounts<const N: usize>([u64; N]);

impl<const N: usize> Default for DropCounts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> DropCounts<N> {
    pub(crate) fn of(&self, reason: usize) -> u64 {
        self.0.get(reason).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, reason: usize) {
        if let Some(count) = self.0.get_mut(reason) {
            *count = count.saturating_add(1);
        }
    }
}
