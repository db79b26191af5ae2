//! Where an agent's host is.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::Prefix;

/// What an agent's host is and is connected to, as its owner finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The host's own addresses.
    pub own: Vec<Ipv4Addr>,
    /// The networks it is connected to, where hosts and routers are that it sends to itself.
    pub connected: Vec<Prefix>,
}

impl Surroundings {
    /// Whether it is one of the host's own addresses.
    pub(crate) fn is_own(&self, address: Ipv4Addr) -> bool {
        self.own.contains(&address)
    }

    /// Whether it is on a network that the host is connected to.
    pub(crate) fn is_near(&self, address: Ipv4Addr) -> bool {
        self.connected.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether everybody on a network that the host is connected to is meant.
    pub(crate) fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        self.connected.iter().any(|prefix| prefix.directed_broadcast() == Some(address))
    }
}
