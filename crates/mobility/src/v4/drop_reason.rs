//! Why a message had no effect, and how often.

use alloc::collections::BTreeMap;

use crate::drop_counts::DropCounts;
use crate::outbox::Tally;

/// Why a message was dropped. A request that is refused with a reply is counted by its cause as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It cannot be parsed.
    Malformed,
    /// It carries an extension that must be understood and is not (types 0 to 127): silently discarded,
    /// RFC 5944 section 1.8.
    UnknownExtension,
    /// A message this node has no use for: another port, another type, or for another role.
    NotForUs,
    /// An authenticator does not match.
    BadAuthenticator,
    /// A required authentication extension is missing, doubled or out of place.
    MissingAuthenticator,
    /// An authentication extension names a security association we do not have.
    UnknownSpi,
    /// The home agent serves no mobile node with this home address.
    UnknownHomeAddress,
    /// The Identification was used before, is too old, or is not the expected nonce.
    Replayed,
    /// A reply whose Identification is not that of the latest request, or an ICMP error about a request that quotes none under way.
    IdentificationMismatch,
    /// A reply from somebody who was not asked.
    UnexpectedSource,
    /// A reply nobody waits for.
    UnexpectedReply,
    /// The time to live shows that the message is not from this link, or not from where it must be.
    WrongTtl,
    /// A router advertisement without the mobility agent extension.
    NotAnAgent,
    /// There is no room to remember it.
    TableFull,
    /// A request whose fields contradict each other or the protocol.
    PoorlyFormed,
    /// Refused by the operator's rules, or by what this agent offers.
    NotOffered,
    /// Whoever sent it has as much of the agent's room as one may have.
    OverShare,
}

impl DropReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 17] = [
        Self::Malformed,
        Self::UnknownExtension,
        Self::NotForUs,
        Self::BadAuthenticator,
        Self::MissingAuthenticator,
        Self::UnknownSpi,
        Self::UnknownHomeAddress,
        Self::Replayed,
        Self::IdentificationMismatch,
        Self::UnexpectedSource,
        Self::UnexpectedReply,
        Self::WrongTtl,
        Self::NotAnAgent,
        Self::TableFull,
        Self::PoorlyFormed,
        Self::NotOffered,
        Self::OverShare,
    ];

    /// The name in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownExtension => "unknown-extension",
            Self::NotForUs => "not-for-us",
            Self::BadAuthenticator => "bad-authenticator",
            Self::MissingAuthenticator => "missing-authenticator",
            Self::UnknownSpi => "unknown-spi",
            Self::UnknownHomeAddress => "unknown-home-address",
            Self::Replayed => "replayed",
            Self::IdentificationMismatch => "identification-mismatch",
            Self::UnexpectedSource => "unexpected-source",
            Self::UnexpectedReply => "unexpected-reply",
            Self::WrongTtl => "wrong-ttl",
            Self::NotAnAgent => "not-an-agent",
            Self::TableFull => "table-full",
            Self::PoorlyFormed => "poorly-formed",
            Self::NotOffered => "not-offered",
            Self::OverShare => "over-share",
        }
    }
}

/// What an agent or node has received and done, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// UDP and ICMP messages handed in.
    pub received: u64,
    /// Messages handed out.
    pub sent: u64,
    /// Registrations accepted (home agent), relayed as accepted (foreign agent), obtained (mobile node).
    pub accepted: u64,
    /// Denials that an agent did not send, because there were too many to those who had proved nothing.
    pub denials_suppressed: u64,
    dropped: DropCounts<{ DropReason::ALL.len() }>,
    /// By code; at most 256 entries.
    denied: BTreeMap<u8, u64>,
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

    /// Denials with `code`: sent by an agent, received by a mobile node.
    #[must_use]
    pub fn denied(&self, code: u8) -> u64 {
        self.denied.get(&code).copied().unwrap_or(0)
    }

    /// All codes denied with, ascending, and how often.
    pub fn denials(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.denied.iter().map(|(&code, &count)| (code, count))
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.dropped.count(reason as usize);
    }

    pub(crate) fn count_suppressed_denial(&mut self) {
        self.denials_suppressed = self.denials_suppressed.saturating_add(1);
    }

    pub(crate) fn count_denial(&mut self, code: u8) {
        let count = self.denied.entry(code).or_default();
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
