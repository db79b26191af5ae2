//! How a node names its interfaces, and stations on their links.

/// A network interface of a node; the owner numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u16);

/// The address of a station on its link (IEEE 802). Whoever sends on the link can send from any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkAddress(pub [u8; 6]);

impl LinkAddress {
    /// That of a frame which had one that nobody saw.
    pub const UNSEEN: Self = Self([0; 6]);
}
