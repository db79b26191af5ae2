//! Mobility anchor points (RFC 5380).

use careof_base::Duration;

use super::NodeId;

/// Mobility anchor points, and how mobile nodes use them (RFC 5380).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The mobility anchor points, at least one, in the order of the file.
    pub anchor_points: Vec<AnchorPoint>,
    /// Which of several a mobile node uses.
    pub selection: MapSelection,
    /// For how long one that was left for another sends packets on, 4 s to 3 days; `None`: it does not.
    pub forwarding: Option<Duration>,
}

/// A mobility anchor point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorPoint {
    /// Which node it is.
    pub node: NodeId,
    /// The access routers that advertise it, at least one, each once.
    pub domain: Vec<NodeId>,
    /// 0 to 15; with 0 nobody binds anew there (RFC 5380 section 7.1).
    pub preference: u8,
}

/// Which of several mobility anchor points a mobile node uses (RFC 5380 sections 7.1 and 9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapSelection {
    /// The most distant one.
    #[default]
    Furthest,
    /// The most preferred one.
    HighestPreference,
    /// The closest one.
    Nearest,
}
