//! A domain of micro-mobility below Mobile IPv4.

use careof_base::Duration;

use super::NodeId;

/// A tree of routers inside which moves are not told to the home agent: to Mobile IPv4 it is one link, whose foreign agent is the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MicroMobility {
    /// The root of the tree, on which the foreign agent runs.
    pub gateway: NodeId,
    /// The other nodes of the tree, base stations included, each behind the one that it hangs on.
    pub routers: Vec<NodeId>,
    /// How packets find the mobile nodes inside.
    pub protocol: MicroProtocol,
    /// From one advertisement of a base station to its next: a mobile node that has come tells the network when it hears one. Zero: at once,
    /// told by the link layer.
    pub advertisement_interval: Duration,
}

/// A protocol of micro-mobility with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MicroProtocol {
    /// The mechanisms that the others are made of, each set by itself (paper 003, section III).
    BuildingBlocks(BuildingBlocks),
    /// Cellular IP (draft-ietf-mobileip-cellularip-00).
    CellularIp(CellularHandover),
    /// HAWAII (draft-ietf-mobileip-hawaii-01).
    Hawaii {
        /// The order of updates after a handover.
        scheme: PathScheme,
        /// What the old base station keeps while it has lost the mobile node, with forwarding schemes; `None`: nothing.
        buffer: Option<CandidateBuffer>,
    },
    /// Multicast-based micro-mobility, M&M (Helmy, Jaseemuddin and Bhaskara).
    Multicast {
        /// Which base stations join before the handover.
        candidates: CandidateSet,
        /// Who tells them.
        trigger: Trigger,
        /// How long before the handover.
        lead: Duration,
        /// What those that have joined keep until the mobile node comes.
        buffer: Option<CandidateBuffer>,
        /// For how long the base station before stays joined.
        bicast: Duration,
    },
}

impl MicroProtocol {
    /// The name in scenario files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuildingBlocks(_) => "building-blocks",
            Self::CellularIp(_) => "cellular-ip",
            Self::Hawaii { .. } => "hawaii",
            Self::Multicast { .. } => "multicast",
        }
    }

    /// Whether mobile nodes send to the next base station while they are still at the one before.
    #[must_use]
    pub const fn is_semi_soft(self) -> bool {
        matches!(self, Self::CellularIp(CellularHandover::SemiSoft { .. }))
    }
}

/// How a host of Cellular IP hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellularHandover {
    /// It tells the network from the new base station.
    Hard,
    /// It tells it before, through the new base station, and the network sends to both.
    SemiSoft {
        /// How long before it goes.
        lead: Duration,
        /// How much later packets leave for the new base station (the delay device); zero: none.
        delay: Duration,
        /// How many packets the delay device holds.
        packets: u32,
    },
}

/// The path setup schemes of HAWAII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathScheme {
    /// Multiple stream forwarding.
    Msf,
    /// Single stream forwarding.
    Ssf,
    /// Unicast non-forwarding.
    Unf,
    /// Multicast non-forwarding.
    Mnf,
}

/// What a handover is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildingBlocks {
    /// To how many base stations packets go before the mobile node has come to one of them.
    pub candidates: CandidateSet,
    /// Who tells the network that a handover is near.
    pub trigger: Trigger,
    /// How long before the handover that is.
    pub lead: Duration,
    /// What a candidate keeps for a mobile node that has not come yet; `None`: nothing.
    pub buffer: Option<CandidateBuffer>,
    /// For how long packets go to the base station before, too, when the mobile node has come to another one; zero: not at all.
    pub bicast: Duration,
    /// For how long the base station that was left sends on what still comes there, once it is told where the mobile node is, and keeps what
    /// comes before; zero: it does not. Not together with `bicast`.
    pub forward: Duration,
}

/// The candidate access routers of a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateSet {
    /// None.
    Empty,
    /// So many: that to which the mobile node goes, and its nearest neighbours in the order of the base stations.
    Nearest(u16),
    /// All base stations.
    All,
}

/// What begins a handover in the network (paper 003, section II C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// Nothing does before the mobile node has come to another base station: the handover is reactive.
    #[default]
    None,
    /// The base station that is left, which names the one that is entered.
    Source,
    /// The base station that is left, with a list of candidates.
    Path,
    /// The same, with all base stations.
    NoPath,
}

/// A candidate's buffer for one mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateBuffer {
    /// Packets, above zero.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// How long one is kept.
    pub age: Duration,
    /// Which packet goes when it is full.
    pub when_full: WhenFull,
}

/// Which packet a full buffer drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The oldest one in it.
    #[default]
    DropOldest,
    /// The one that comes.
    DropTail,
}
