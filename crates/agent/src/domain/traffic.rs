//! What became of the packets that were shown to a router or a mobile node of a domain.

use std::collections::BTreeMap;

/// Packets other than messages of the domain: what was taken in and copied has been handed on or dropped, or is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainTraffic {
    /// Packets that came in.
    pub taken: u64,
    /// Copies that were made of them, and sent.
    pub copies: u64,
    /// Packets handed to a link or to the host's kernel.
    pub handed_on: u64,
    /// Packets dropped, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets that are kept, those that are copies of others left out.
    pub held: u64,
    /// Messages that no link took.
    pub unsent_messages: u64,
    /// Events that the owner has not taken in time.
    pub lost_events: u64,
}

impl DomainTraffic {
    pub(super) fn drop(&mut self, cause: &'static str) {
        *self.dropped.entry(cause).or_default() += 1;
    }

    /// What came in beyond what became of it; zero if the account is right.
    #[must_use]
    pub fn difference(&self) -> i64 {
        let dropped: u64 = self.dropped.values().sum();
        let [from, to] = [self.taken + self.copies, self.handed_on + dropped + self.held];
        i64::try_from(i128::from(from) - i128::from(to)).unwrap_or(i64::MAX)
    }
}
