//! Everything that was made is somewhere.

/// Where the packets (or bytes) of one place went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Came into being, or came in.
    pub created: u64,
    /// Reached where they were to go.
    pub delivered: u64,
    /// Were dropped, for any cause.
    pub dropped: u64,
    /// Were taken elsewhere or became something else: re-routed, cut into fragments, put together again.
    pub moved: u64,
    /// Wait in a queue.
    pub queued: u64,
    /// Are on the way.
    pub in_flight: u64,
}

impl Ledger {
    /// What is missing (positive) or came from nowhere (negative); 0 in a world without mistakes.
    #[must_use]
    pub fn difference(&self) -> i64 {
        let accounted = [self.delivered, self.dropped, self.moved, self.queued, self.in_flight];
        let difference = i128::from(self.created) - accounted.into_iter().map(i128::from).sum::<i128>();
        i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { i64::MIN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_sign_of_what_is_missing() {
        let balanced = Ledger { created: 15, delivered: 1, dropped: 2, moved: 3, queued: 4, in_flight: 5 };
        assert_eq!(balanced.difference(), 0);
        assert_eq!(Ledger { created: 16, ..balanced }.difference(), 1);
        assert_eq!(Ledger { delivered: 3, ..balanced }.difference(), -2);
        assert_eq!(Ledger { delivered: u64::MAX, ..balanced }.difference(), i64::MIN);
    }
}
