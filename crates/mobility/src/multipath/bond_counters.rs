//! What a bond counts.

use crate::drop_counts::DropCounts;

/// Why a message had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BondDrop {
    /// It cannot be parsed, or is no message about a path.
    Malformed,
    /// It has no authenticator, or another one's.
    NotGenuine,
    /// It is about a path that there is not, or came by another one.
    WrongPath,
    /// It is this end's own.
    Reflected,
    /// It is older than what came before, or comes from an incarnation of the other end that is over.
    Replayed,
    /// The other end does not know yet that this end has begun; it is told.
    Stranger,
}

impl BondDrop {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 6] =
        [Self::Malformed, Self::NotGenuine, Self::WrongPath, Self::Reflected, Self::Replayed, Self::Stranger];

    /// The name in status and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotGenuine => "not-genuine",
            Self::WrongPath => "wrong-path",
            Self::Reflected => "reflected",
            Self::Replayed => "replayed",
            Self::Stranger => "stranger",
        }
    }
}

/// What one end of a tunnel over several paths has done. Of packets that are sent, `offered` is `no_path` and those that were put on at
/// least one path; `transmitted` counts each of these once, and its copies and replays as well. Of those that come the account is that of
/// [`super::ResequencerCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BondCounters {
    /// Packets that were to be sent.
    pub offered: u64,
    /// Of these, packets for which no path worked; the owner has them back.
    pub no_path: u64,
    /// Packets that were put on a path, copies and replays included.
    pub transmitted: u64,
    /// Of these, copies beside the first.
    pub copies: u64,
    /// Of these, packets that were sent again because their path had gone out.
    pub replayed: u64,
    /// Packets that were on a path that had gone out, and that no other path could take.
    pub stranded: u64,
    /// Packets that could not be replayed any more had their path gone out, for there was no room to keep them.
    pub not_kept: u64,
    /// Messages that came.
    pub messages_received: u64,
    /// Messages that were sent.
    pub messages_sent: u64,
    /// Times that the other end began anew.
    pub restarts: u64,
    drops: DropCounts<{ BondDrop::ALL.len() }>,
}

impl BondCounters {
    /// Messages that had no effect for this reason.
    #[must_use]
    pub fn dropped(&self, reason: BondDrop) -> u64 {
        self.drops.of(reason as usize)
    }

    pub(super) fn drop(&mut self, reason: BondDrop) {
        self.drops.count(reason as usize);
    }
}
