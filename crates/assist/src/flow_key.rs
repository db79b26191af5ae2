//! Which connection a segment belongs to.

use core::fmt;
use core::net::Ipv4Addr;

use careof_wire::Segment;
use careof_wire::ipv4::Ipv4Header;

use crate::Towards;

/// A TCP connection of a mobile node, the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The mobile node's home address.
    pub mobile: Ipv4Addr,
    /// Its correspondent.
    pub peer: Ipv4Addr,
    /// The mobile node's port.
    pub mobile_port: u16,
    /// The correspondent's port.
    pub peer_port: u16,
}

impl FlowKey {
    /// The connection of a segment that goes `towards` one of its ends.
    #[must_use]
    pub const fn of(towards: Towards, header: &Ipv4Header, segment: &Segment) -> Self {
        match towards {
            Towards::Mobile => Self {
                mobile: header.destination,
                peer: header.source,
                mobile_port: segment.destination_port,
                peer_port: segment.source_port,
            },
            Towards::Peer => Self {
                mobile: header.source,
                peer: header.destination,
                mobile_port: segment.source_port,
                peer_port: segment.destination_port,
            },
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} - {}:{}", self.mobile, self.mobile_port, self.peer, self.peer_port)
    }
}
