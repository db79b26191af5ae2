//! Which connection a segment belongs to.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use careof_wire::{IpHeader, Segment};

use crate::Towards;

/// A TCP connection of a mobile node, the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The mobile node's home address.
    pub mobile: IpAddr,
    /// Its correspondent.
    pub peer: IpAddr,
    /// The mobile node's port.
    pub mobile_port: u16,
    /// The correspondent's port.
    pub peer_port: u16,
}

impl FlowKey {
    /// The connection of a segment that goes `towards` one of its ends; `header` is that of a [`crate::PacketView`].
    #[must_use]
    pub const fn of(towards: Towards, header: &IpHeader, segment: &Segment) -> Self {
        let (source, destination) = (header.source(), header.destination());
        match towards {
            Towards::Mobile => Self {
                mobile: destination,
                peer: source,
                mobile_port: segment.destination_port,
                peer_port: segment.source_port,
            },
            Towards::Peer => Self {
                mobile: source,
                peer: destination,
                mobile_port: segment.source_port,
                peer_port: segment.destination_port,
            },
        }
    }

    /// The segment size of who says nothing in its SYN (RFC 9293 section 3.7.1).
    pub(crate) const fn default_mss(&self) -> u16 {
        match self.mobile {
            IpAddr::V4(_) => 536,
            IpAddr::V6(_) => 1_220,
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mobile = SocketAddr::new(self.mobile, self.mobile_port);
        let peer = SocketAddr::new(self.peer, self.peer_port);
        write!(f, "{mobile} - {peer}")
    }
}
