//! The mobile node of either kind: with mobility anchor points (RFC 5380) or without.

use core::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_mobility::v6::{Addresses, Delivery, HierarchicalMobileNode, MobileNode};
use careof_mobility::{InterfaceId, Notice, PathProperties};

use super::Ipv6Role;

/// A mobile node, to be asked.
#[derive(Clone, Copy)]
pub(crate) enum AnyMobile<'a> {
    Plain(&'a MobileNode),
    Hierarchical(&'a HierarchicalMobileNode),
}

macro_rules! on_mobile {
    ($mobile:expr, $bound:ident => $call:expr) => {
        match $mobile {
            AnyMobile::Plain($bound) => $call,
            AnyMobile::Hierarchical($bound) => $call,
        }
    };
}

impl AnyMobile<'_> {
    pub(crate) fn is_registered(self) -> bool {
        on_mobile!(self, mobile => mobile.is_registered())
    }

    pub(crate) fn active_interface(self) -> Option<InterfaceId> {
        on_mobile!(self, mobile => mobile.active_interface())
    }

    pub(crate) fn path(self, interface: InterfaceId) -> PathProperties {
        on_mobile!(self, mobile => mobile.path(interface))
    }

    pub(crate) fn delivery(self, destination: Ipv6Addr) -> Option<Delivery> {
        on_mobile!(self, mobile => mobile.delivery(destination))
    }

    pub(crate) fn care_of(self) -> Option<Ipv6Addr> {
        on_mobile!(self, mobile => mobile.care_of())
    }

    pub(crate) fn optimized_route(self, correspondent: Ipv6Addr) -> Option<Ipv6Addr> {
        on_mobile!(self, mobile => mobile.optimized_route(correspondent))
    }

    /// The correspondent nodes that send to another care-of address than the present one.
    pub(super) fn outdated_correspondents(self) -> Vec<IpAddr> {
        on_mobile!(self, mobile => mobile.outdated_correspondents().map(IpAddr::V6).collect())
    }

    /// Whether it takes packets that come through this interface.
    pub(super) fn listens_on(self, interface: InterfaceId) -> bool {
        on_mobile!(self, mobile => mobile.listens_on(interface))
    }

    /// Whether it takes a packet out of the tunnels that it came in.
    pub(super) fn accepts_tunnels(self, addresses: &Addresses) -> bool {
        match self {
            Self::Plain(mobile) => {
                addresses.tunnel.is_some_and(|tunnel| mobile.accepts_tunnel_from(tunnel.entry))
            }
            Self::Hierarchical(mobile) => mobile.accepts_tunnels(addresses),
        }
    }
}

impl Ipv6Role {
    pub(super) fn switch_to(&mut self, now: Instant, interface: InterfaceId, notice: Notice) {
        // The interface exists: the scenario names access links only, and each has one.
        let _ = match self {
            Self::Mobile(mobile) => mobile.switch_to(now, interface, notice),
            Self::HierarchicalMobile(mobile) => mobile.switch_to(now, interface, notice),
            _ => Ok(()),
        };
    }

    /// A packet of a peer's has reached the mobile node; whether there is one.
    pub(super) fn note_correspondent(&mut self, now: Instant, peer: Ipv6Addr) -> bool {
        match self {
            Self::Mobile(mobile) => mobile.note_correspondent(now, peer),
            Self::HierarchicalMobile(mobile) => mobile.note_correspondent(now, peer),
            _ => return false,
        }
        true
    }
}
