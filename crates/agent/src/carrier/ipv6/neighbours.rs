//! Messages of neighbor discovery that a mobile node exchanges beside the kernel.

use std::net::Ipv6Addr;

use careof_lab::{Error, Icmpv6Socket, OutgoingIcmpv6};
use careof_wire::icmpv6::{HOP_LIMIT, Icmpv6Message, RouterSolicitation};
use careof_wire::ipv6::ALL_ROUTERS;

/// Router Advertisement (RFC 4861 section 4.2).
pub(super) const ADVERTISEMENT: u8 = 134;
/// Destination Unreachable, Packet Too Big, Time Exceeded and Parameter Problem (RFC 4443).
pub(super) const ERRORS: [u8; 4] = [1, 2, 3, 4];

/// Asks for the routers on a link, from an address of the interface, or from the unspecified address as long as it has none that may be
/// used. Without a Source Link-Layer Address option both are right (RFC 4429 section 3.2).
pub(super) fn solicit_routers(icmp: &Icmpv6Socket, interface: u32) -> Result<(), Error> {
    let mut message = Vec::new();
    let source = Ipv6Addr::UNSPECIFIED;
    Icmpv6Message::RouterSolicitation(RouterSolicitation::default()).emit(source, ALL_ROUTERS, &mut message);
    let outgoing = OutgoingIcmpv6 {
        interface: Some(interface),
        source,
        destination: ALL_ROUTERS,
        hop_limit: HOP_LIMIT,
        message: &message,
    };
    icmp.send(&outgoing).or_else(|_| icmp.send_unaddressed(interface, ALL_ROUTERS, HOP_LIMIT, &message))
}
