//! The mobile node that is carried, with or without mobility anchor points.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_mobility::v6::{
    Addresses, Delivery, HierarchicalMobileNode, Ipv4Delivery, MobileNode, PathQuality,
};
use careof_mobility::{InterfaceId, Notice, PathProperties, UnknownInterface};
use careof_wire::mip6::ReceivedData;

/// A mobile node.
#[derive(Debug)]
pub(super) enum Mobile {
    /// One whose care-of addresses are those of its interfaces.
    Plain(Box<MobileNode>),
    /// One that uses mobility anchor points. It watches no paths, and has no IPv4 home address.
    Hierarchical(Box<HierarchicalMobileNode>),
}

/// The same call on either.
macro_rules! on_mobile {
    ($mobile:expr, $bound:ident => $call:expr) => {
        match $mobile {
            Mobile::Plain($bound) => $call,
            Mobile::Hierarchical($bound) => $call,
        }
    };
}

impl Mobile {
    const fn plain(&self) -> Option<&MobileNode> {
        match self {
            Self::Plain(node) => Some(node),
            Self::Hierarchical(_) => None,
        }
    }

    const fn plain_mut(&mut self) -> Option<&mut MobileNode> {
        match self {
            Self::Plain(node) => Some(node),
            Self::Hierarchical(_) => None,
        }
    }

    pub(super) const fn hierarchical(&self) -> Option<&HierarchicalMobileNode> {
        match self {
            Self::Plain(_) => None,
            Self::Hierarchical(node) => Some(node),
        }
    }

    pub(super) fn switch_to(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        notice: Notice,
    ) -> Result<(), UnknownInterface> {
        on_mobile!(self, node => node.switch_to(now, interface, notice))
    }

    pub(super) fn release(&mut self, now: Instant, interface: InterfaceId) {
        on_mobile!(self, node => node.release(now, interface));
    }

    pub(super) fn deregister(&mut self, now: Instant) {
        on_mobile!(self, node => node.deregister(now));
    }

    pub(super) fn is_registered(&self) -> bool {
        on_mobile!(self, node => node.is_registered())
    }

    pub(super) fn is_at_home(&self) -> bool {
        on_mobile!(self, node => node.is_at_home())
    }

    pub(super) fn active_interface(&self) -> Option<InterfaceId> {
        on_mobile!(self, node => node.active_interface())
    }

    pub(super) fn care_of(&self) -> Option<Ipv6Addr> {
        on_mobile!(self, node => node.care_of())
    }

    pub(super) const fn home_agent(&self) -> Option<Ipv6Addr> {
        on_mobile!(self, node => node.home_agent())
    }

    /// The mobility anchor point in use, and the on-link care-of address registered there.
    pub(super) fn map(&self) -> Option<(Ipv6Addr, Ipv6Addr)> {
        self.hierarchical()?.map()
    }

    /// The regional care-of address whose packets come in tunnels from there.
    pub(super) fn regional_behind(&self, entry: Ipv6Addr) -> Option<Ipv6Addr> {
        self.hierarchical()?.regional_behind(entry)
    }

    pub(super) fn delivery(&self, destination: Ipv6Addr) -> Option<Delivery> {
        on_mobile!(self, node => node.delivery(destination))
    }

    pub(super) fn listens_on(&self, interface: InterfaceId) -> bool {
        on_mobile!(self, node => node.listens_on(interface))
    }

    /// Whether a packet that came in tunnels is taken out of all of them.
    pub(super) fn accepts_tunnels(&self, addresses: &Addresses) -> bool {
        match self {
            Self::Plain(node) => {
                let is_taken = addresses.tunnel.is_none_or(|tunnel| node.accepts_tunnel_from(tunnel.entry));
                is_taken && addresses.map_tunnel.is_none()
            }
            Self::Hierarchical(node) => node.accepts_tunnels(addresses),
        }
    }

    pub(super) fn note_correspondent(&mut self, now: Instant, correspondent: Ipv6Addr) {
        on_mobile!(self, node => node.note_correspondent(now, correspondent));
    }

    /// The correspondent nodes that send to another care-of address than the present one.
    pub(super) fn outdated_correspondents(&self) -> Vec<IpAddr> {
        on_mobile!(self, node => node.outdated_correspondents().map(IpAddr::V6).collect())
    }

    /// How a packet is sent by the care-of address that was registered last, from a link that the node has left (RFC 5568 section 4).
    pub(super) fn delivery_from_previous(&self, destination: Ipv6Addr) -> Option<Delivery> {
        self.plain()?.delivery_from_previous(destination)
    }

    /// Whether access routers send on what is under way to the care-of address that the node leaves.
    pub(super) const fn set_forwarded(&mut self, forwarded: bool) {
        if let Some(node) = self.plain_mut() {
            node.set_forwarded(forwarded);
        }
    }

    pub(super) fn set_received_data(&mut self, received: ReceivedData) {
        if let Some(node) = self.plain_mut() {
            node.set_received_data(received);
        }
    }

    /// A packet of so many bytes has left in a tunnel of the home agent's, or else straight.
    pub(super) fn note_sent(&mut self, now: Instant, by: InterfaceId, tunnelled: bool, bytes: u64) {
        if let Some(node) = self.plain_mut() {
            if tunnelled {
                node.note_sent(now, by, 1, bytes);
            } else {
                node.note_sent_straight(now, by, 1, bytes);
            }
        }
    }

    /// The same of one that has come.
    pub(super) fn note_received(&mut self, now: Instant, by: InterfaceId, tunnelled: bool, bytes: u64) {
        if let Some(node) = self.plain_mut() {
            if tunnelled {
                node.note_received(now, by, 1, bytes);
            } else {
                node.note_received_straight(now, by);
            }
        }
    }

    pub(super) fn path_properties(&self, interface: InterfaceId) -> PathProperties {
        self.plain().map(|node| node.path_properties(interface)).unwrap_or_default()
    }

    pub(super) fn path_quality(&self, interface: InterfaceId) -> Option<PathQuality> {
        self.plain().map(|node| node.path_quality(interface))
    }

    pub(super) fn ipv4_home_address(&self) -> Option<Ipv4Addr> {
        self.plain()?.ipv4_home_address()
    }

    pub(super) fn ipv4_delivery(&self) -> Option<Ipv4Delivery> {
        self.plain()?.ipv4_delivery()
    }

    /// Whether a tunnel of IPv4 packets that begins there is a home agent's.
    pub(super) fn accepts_tunnel_from(&self, entry: Ipv6Addr) -> bool {
        self.plain().is_some_and(|node| node.accepts_tunnel_from(entry))
    }
}
