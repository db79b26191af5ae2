//! Why a message had no effect, and how often.

use alloc::collections::BTreeMap;

use crate::drop_counts::DropCounts;
use crate::outbox::Tally;

/// Why a message was dropped. An update that is refused with an acknowledgement is counted by its cause as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It cannot be parsed, or its checksum is wrong.
    Malformed,
    /// A message this node has no use for: another address, another type, or for another role.
    NotForUs,
    /// A Mobility Header of a type that is not known here (RFC 6275 section 9.2).
    UnknownMessage,
    /// An authenticator does not match.
    BadAuthenticator,
    /// The authentication it needs is missing, doubled or out of place.
    MissingAuthenticator,
    /// The authentication names a security association we do not have.
    UnknownSpi,
    /// The home agent serves no mobile node with this home address or identifier.
    UnknownHomeAddress,
    /// Its timestamp was used before, is too old, or is missing.
    Replayed,
    /// Its sequence number is not after that of the last one accepted.
    SequenceOutOfWindow,
    /// From somebody who was not asked.
    UnexpectedSource,
    /// An answer nobody waits for, or to something else than was sent.
    UnexpectedAnswer,
    /// Sound in itself, but not valid by its IP header, as neighbor discovery demands.
    NotValid,
    /// A message whose fields contradict each other or the protocol.
    PoorlyFormed,
    /// Refused by the operator's rules, or by what this node offers.
    NotOffered,
    /// The home address is of no prefix of the home network.
    NotHomeSubnet,
    /// Somebody on the home link has the home address.
    DuplicateAddress,
    /// There is no binding that it could be about.
    NoBinding,
    /// There is no room to remember it.
    TableFull,
    /// More than the ration of those who sent it.
    OverRation,
    /// A nonce it refers to has expired.
    ExpiredNonce,
    /// There is a NAT between an IPv4 care-of address and the home agent, which packets would have to be in UDP for (RFC 5555 section
    /// 4.2).
    NatOnPath,
}

impl DropReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 21] = [
        Self::Malformed,
        Self::NotForUs,
        Self::UnknownMessage,
        Self::BadAuthenticator,
        Self::MissingAuthenticator,
        Self::UnknownSpi,
        Self::UnknownHomeAddress,
        Self::Replayed,
        Self::SequenceOutOfWindow,
        Self::UnexpectedSource,
        Self::UnexpectedAnswer,
        Self::NotValid,
        Self::PoorlyFormed,
        Self::NotOffered,
        Self::NotHomeSubnet,
        Self::DuplicateAddress,
        Self::NoBinding,
        Self::TableFull,
        Self::OverRation,
        Self::ExpiredNonce,
        Self::NatOnPath,
    ];

    /// The name in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotForUs => "not-for-us",
            Self::UnknownMessage => "unknown-message",
            Self::BadAuthenticator => "bad-authenticator",
            Self::MissingAuthenticator => "missing-authenticator",
            Self::UnknownSpi => "unknown-spi",
            Self::UnknownHomeAddress => "unknown-home-address",
            Self::Replayed => "replayed",
            Self::SequenceOutOfWindow => "sequence-out-of-window",
            Self::UnexpectedSource => "unexpected-source",
            Self::UnexpectedAnswer => "unexpected-answer",
            Self::NotValid => "not-valid",
            Self::PoorlyFormed => "poorly-formed",
            Self::NotOffered => "not-offered",
            Self::NotHomeSubnet => "not-home-subnet",
            Self::DuplicateAddress => "duplicate-address",
            Self::NoBinding => "no-binding",
            Self::TableFull => "table-full",
            Self::OverRation => "over-ration",
            Self::ExpiredNonce => "expired-nonce",
            Self::NatOnPath => "nat-on-path",
        }
    }
}

/// What an agent or node has received and done, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handed in.
    pub received: u64,
    /// Messages handed out.
    pub sent: u64,
    /// Binding Updates accepted (home agent, correspondent node), or acknowledged as accepted (mobile node).
    pub accepted: u64,
    /// Answers that were not sent, because there were too many to those who had proved nothing.
    pub answers_suppressed: u64,
    dropped: DropCounts<{ DropReason::ALL.len() }>,
    /// By status; at most 256 entries.
    refused: BTreeMap<u8, u64>,
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

    /// Acknowledgements that refuse with this `status`: sent by an agent, received by a mobile node.
    #[must_use]
    pub fn refused(&self, status: u8) -> u64 {
        self.refused.get(&status).copied().unwrap_or(0)
    }

    /// All statuses refused with, ascending, and how often.
    pub fn refusals(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.refused.iter().map(|(&status, &count)| (status, count))
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.dropped.count(reason as usize);
    }

    pub(crate) fn count_suppressed_answer(&mut self) {
        self.answers_suppressed = self.answers_suppressed.saturating_add(1);
    }

    pub(crate) fn count_accepted(&mut self) {
        self.accepted = self.accepted.saturating_add(1);
    }

    pub(crate) fn count_refusal(&mut self, status: u8) {
        let count = self.refused.entry(status).or_default();
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter_and_name() {
        let mut counters = Counters::default();
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.count_drop(reason);
            assert_eq!(counters.dropped(reason), 1);
            assert_eq!(DropReason::ALL.iter().filter(|r| r.name() == reason.name()).count(), 1);
        }
        assert_eq!(counters.dropped_total(), DropReason::ALL.len() as u64);
    }
}
