//! Messages of neighbor discovery that a mobile node exchanges beside the kernel.

use std::net::Ipv6Addr;

use careof_lab::OutgoingIcmpv6;
use careof_wire::icmpv6::HOP_LIMIT;
use careof_wire::ipv6::ALL_ROUTERS;

/// Router Advertisement (RFC 4861 section 4.2).
pub(super) const ADVERTISEMENT: u8 = 134;
/// Destination Unreachable, Packet Too Big, Time Exceeded and Parameter Problem (RFC 4443).
pub(super) const ERRORS: [u8; 4] = [1, 2, 3, 4];
/// A Router Solicitation without options (RFC 4861 section 4.1); the kernel makes the checksum.
pub(super) const ALL_ROUTERS_SOLICITATION: [u8; 8] = [133, 0, 0, 0, 0, 0, 0, 0];

/// A solicitation of the routers on a link.
pub(super) const fn solicitation(interface: u32, message: &[u8]) -> OutgoingIcmpv6<'_> {
    OutgoingIcmpv6 {
        interface: Some(interface),
        source: Ipv6Addr::UNSPECIFIED,
        destination: ALL_ROUTERS,
        hop_limit: HOP_LIMIT,
        message,
    }
}
