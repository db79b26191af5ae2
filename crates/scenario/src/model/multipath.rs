//! Several links at once.

use careof_base::Duration;

use super::{Destination, LinkId};

/// `[multipath]`: the mobile node is registered by several access links at once, and its packets are dispersed over them. Only with one
/// mobile node by [`Protocol::MobileIpv4`](super::Protocol::MobileIpv4), co-located care-of addresses and no handovers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipath {
    /// How packets choose among the paths.
    pub dispersion: Dispersion,
    /// What puts them in order again, if anything does, at both ends.
    pub resequencer: Option<Resequencing>,
    /// How the mobile node's own packets travel.
    pub uplink: Uplink,
    /// The paths, two to eight, in the order in which both ends number them; all are up from the beginning.
    pub paths: Vec<PathLink>,
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
    /// The longest that one is held, above zero.
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

/// What is wanted of certain packets. What is `None` fits all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// The other end.
    pub to: Destination,
    /// The port there.
    pub port: Option<u16>,
    /// The Differentiated Services Code Point, 0 to 63.
    pub dscp: Option<u8>,
    /// The links of [`Multipath::paths`] that they may take, at least one.
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
