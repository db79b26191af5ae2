//! Multipath TCP of a flow.

use super::LinkId;

/// Multipath TCP of a flow (RFC 8684), as a kernel has it, the same at both ends. Its subflows are TCP as [`Flow::tcp`](super::Flow::tcp)
/// says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mptcp {
    /// By which the kernel chooses a subflow for the next data: `default`, or one that was loaded into it.
    pub scheduler: String,
    /// How many subflows a connection has beside its first, at most.
    pub subflows: u8,
    /// Links of the mobile node whose subflows carry data only while no other one can.
    pub backup: Vec<LinkId>,
    /// Whether subflows lead from each address of the mobile node to each address of the peer.
    pub fullmesh: bool,
    /// How many retransmission intervals of the connection a subflow may let pass, with data outstanding and nothing sent, before its data
    /// goes to the others.
    pub stale_loss_count: u8,
}

impl Mptcp {
    /// The most subflows that a kernel's limits take.
    pub const MOST_SUBFLOWS: u8 = 8;
}

impl Default for Mptcp {
    /// As Linux has it.
    fn default() -> Self {
        Self {
            scheduler: "default".to_owned(),
            subflows: 2,
            backup: Vec::new(),
            fullmesh: false,
            stale_loss_count: 4,
        }
    }
}
