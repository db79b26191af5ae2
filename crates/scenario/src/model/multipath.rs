//! Several links at once.

use careof_base::{DataRate, Duration, Probability};

use super::{Destination, LinkId, NodeId};

/// `[multipath]`: the mobile node is registered by several access links at once, and its packets are dispersed over them. Only with one
/// mobile node by [`Protocol::MobileIpv4`](super::Protocol::MobileIpv4), co-located care-of addresses and no handovers.
#[derive(Clone, Debug, PartialEq)]
pub struct Multipath {
    /// How packets choose among the paths.
    pub dispersion: Dispersion,
    /// What puts them in order again, if anything does, at both ends.
    pub resequencer: Option<Resequencing>,
    /// How the mobile node's own packets travel.
    pub uplink: Uplink,
    /// The mobile node's own paths, at least one, in the order in which both ends number them; all are up from the beginning.
    pub paths: Vec<PathLink>,
    /// The nodes that lend the mobile node their links; with its own paths they are two to eight.
    pub relays: Vec<RelayLink>,
    /// Whom mobile node and relays believe.
    pub trust: Trust,
    /// The first rule that fits a packet says which paths it may take, and how.
    pub rules: Vec<PathRule>,
}

/// By which rule packets are dispersed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dispersion {
    /// Each flow pinned or split, by what is measured.
    #[default]
    Auto,
    /// `D` of Koyama et al. 2004: at random, by the round trips.
    D,
    /// `DQ` of Koyama et al. 2004: by virtual queues and half the round trip.
    Dq,
    /// Each flow by one path.
    PerFlow,
    /// A copy by every path.
    Duplicate,
    /// By weight.
    Weighted,
    /// Earliest completion first.
    Ecf,
    /// Blocking estimation.
    Blest,
    /// Earliest arrival.
    Earliest,
    /// The cheapest path that is not full.
    Overflow,
}

/// How packets of a mobile node travel that has several paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Uplink {
    /// Through the home agent, dispersed as those that come.
    #[default]
    Dispersed,
    /// Straight to the correspondent node by one path, as in the paper.
    Direct,
}

/// What puts packets in order, of all flows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resequencing {
    /// Packets that it holds at most, above zero.
    pub packets: u32,
    /// Their bytes, above zero.
    pub bytes: u64,
    /// The longest that one is held for what a path should bring by which nothing comes, above zero.
    pub longest_wait: Duration,
}

impl Default for Resequencing {
    fn default() -> Self {
        Self { packets: 8192, bytes: 8 << 20, longest_wait: Duration::from_millis(500) }
    }
}

/// An access link that is one of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLink {
    /// Which one.
    pub link: LinkId,
    /// Paths that cost less are filled first, by the rule that looks at it.
    pub cost: u16,
    /// Its share, by the rule that looks at it.
    pub weight: u32,
}

/// A node with the role [`Relay`](super::Role::Relay), which lends the mobile node its link.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayLink {
    /// Which one.
    pub node: NodeId,
    /// The link that it lends, of which it is the second end.
    pub link: LinkId,
    /// The link of the cluster, of which it is the first end and the mobile node the second.
    pub cluster: LinkId,
    /// What it says that its link costs.
    pub cost: u16,
    /// What it says that its link carries in either direction; `None`: the truth.
    pub claims: Option<DataRate>,
    /// What the mobile node may have in either direction, above zero; `None`: there is no limit.
    pub client_rate: Option<DataRate>,
    /// Bytes that the mobile node may have in an alliance, above zero; `None`: there is no limit.
    pub client_bytes: Option<u64>,
    /// The longest that is granted at once, whole seconds, 1 to 65,535.
    pub longest: Duration,
    /// How many of the packets that it is to pass on it drops instead.
    pub drops: Probability,
    /// When it vanishes, and when it is back.
    pub gone: Option<(Duration, Option<Duration>)>,
}

/// Whom nodes of a cluster believe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Those with whom they have a key.
    #[default]
    Keys,
    /// Whoever comes first.
    FirstUse,
}

/// What is wanted of certain packets. What is `None` fits all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// The other end.
    pub to: Destination,
    /// The port there.
    pub port: Option<u16>,
    /// The Differentiated Services Code Point, 0 to 63.
    pub dscp: Option<u8>,
    /// The links that they may take, at least one: of [`Multipath::paths`], and those that are lent.
    pub paths: Vec<LinkId>,
    /// How they go.
    pub treatment: Treatment,
}

/// How packets that a [`PathRule`] is about go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// As [`Multipath::dispersion`] says.
    #[default]
    Dispersed,
    /// Each flow by one path.
    Pinned,
    /// A copy by every path.
    Duplicated,
}
