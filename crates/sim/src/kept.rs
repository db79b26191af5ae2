//! Packets that an agent keeps under tokens: it has the tokens and lengths, the packets are here. A packet that waits counts as queued; a
//! copy that is kept is a value of its own and no packet of the run until it is sent.

use std::collections::BTreeMap;

use careof_mobility::micro::{DiscardReason, PacketToken};

use crate::drop_cause::NodeDrop;
use crate::packet::{Packet, PacketRef};

/// The packets of one agent.
#[derive(Default)]
pub(crate) struct KeptPackets {
    kept: BTreeMap<PacketToken, Kept>,
    /// How many of them are packets of the run.
    held: u64,
}

/// One of them.
pub(crate) enum Kept {
    /// A copy of what went on.
    Copy(Box<Packet>),
    /// The packet itself, which did not.
    Held(PacketRef),
}

impl KeptPackets {
    pub(crate) fn keep(&mut self, token: PacketToken, kept: Kept) {
        self.held += u64::from(matches!(kept, Kept::Held(_)));
        self.kept.insert(token, kept);
    }

    pub(crate) fn take(&mut self, token: PacketToken) -> Option<Kept> {
        let kept = self.kept.remove(&token)?;
        self.held -= u64::from(matches!(kept, Kept::Held(_)));
        Some(kept)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Packets of the run that wait here.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }
}

impl From<DiscardReason> for NodeDrop {
    fn from(reason: DiscardReason) -> Self {
        match reason {
            DiscardReason::Full => Self::BufferFull,
            DiscardReason::Expired | DiscardReason::CopyNotNeeded => Self::BufferExpired,
        }
    }
}
