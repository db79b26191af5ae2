//! Where every packet went.

use crate::drop_cause::NodeDrop;

/// How packets end that do not end on a link, which counts its own. At any time
///
/// made = consumed + dropped at nodes + dropped by links + fragmented + reassembled + alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Reached whom they were for.
    pub(crate) consumed: u64,
    /// Ended by being cut into fragments, which are packets of their own.
    pub(crate) fragmented: u64,
    /// Fragments that ended by becoming part of a whole.
    pub(crate) reassembled: u64,
    dropped_at_nodes: [u64; NodeDrop::ALL.len()],
}

impl Ledger {
    /// Counts a packet a node dropped.
    pub(crate) fn drop_at_node(&mut self, cause: NodeDrop) {
        self.dropped_at_nodes[cause as usize] += 1;
    }

    /// Packets dropped by nodes, by cause, those that occurred.
    pub(crate) fn dropped_at_nodes(&self) -> impl Iterator<Item = (NodeDrop, u64)> + '_ {
        NodeDrop::ALL
            .into_iter()
            .map(|cause| (cause, self.dropped_at_nodes[cause as usize]))
            .filter(|(_, n)| *n > 0)
    }
}
