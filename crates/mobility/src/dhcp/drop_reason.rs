//! Why a message had no effect, and how often.

use crate::drop_counts::DropCounts;
use crate::outbox::Tally;

/// Why a message was dropped. One that is refused with a DHCPNAK is no drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It cannot be parsed.
    Malformed,
    /// For another port or another role, or from a network that this server does not serve.
    NotForUs,
    /// A reply to another client, or to an earlier message.
    WrongTransaction,
    /// A reply that the client does not wait for in its state.
    Unexpected,
    /// An option or field is missing that such a message must have.
    Incomplete,
    /// About another server's offer or lease.
    OtherServer,
    /// An address that no client can have, or another one than was asked for.
    BadAddress,
    /// Through a relay, which is not served.
    Relayed,
    /// No address is free.
    NoAddress,
    /// From a client that the server knows nothing of: another one may.
    UnknownClient,
    /// There is no room to remember it.
    TableFull,
}

impl DropReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 11] = [
        Self::Malformed,
        Self::NotForUs,
        Self::WrongTransaction,
        Self::Unexpected,
        Self::Incomplete,
        Self::OtherServer,
        Self::BadAddress,
        Self::Relayed,
        Self::NoAddress,
        Self::UnknownClient,
        Self::TableFull,
    ];

    /// The name in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotForUs => "not-for-us",
            Self::WrongTransaction => "wrong-transaction",
            Self::Unexpected => "unexpected",
            Self::Incomplete => "incomplete",
            Self::OtherServer => "other-server",
            Self::BadAddress => "bad-address",
            Self::Relayed => "relayed",
            Self::NoAddress => "no-address",
            Self::UnknownClient => "unknown-client",
            Self::TableFull => "table-full",
        }
    }
}

/// What a client or server has received and done, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handed in.
    pub received: u64,
    /// Messages handed out.
    pub sent: u64,
    dropped: DropCounts<{ DropReason::ALL.len() }>,
}

impl Tally for Counters {
    fn received(&mut self) -> &mut u64 {
        &mut self.received
    }

    fn sent(&mut self) -> &mut u64 {
        &mut self.sent
    }
}

impl Counters {
    /// Messages dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.of(reason as usize)
    }

    /// Messages dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.total()
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        self.dropped.count(reason as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_counted_under_its_own_name() {
        let mut counters = Counters::default();
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.count_drop(reason);
            assert_eq!(counters.dropped(reason), 1, "{}", reason.name());
        }
        assert_eq!(counters.dropped_total(), 11);
    }
}
