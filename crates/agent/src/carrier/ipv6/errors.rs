//! ICMPv6 errors about packets on their way between this host's care-of address and another node, told to this host's own TCP, which knows
//! of home addresses only.

use std::net::Ipv6Addr;

use careof_wire::icmpv6::{Icmpv6Message, PacketTooBig, QuotedPacket};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::tunnel::{RelayedFromIpv6, relay_error_ipv6};

/// Whom an error is really for, and what it says to it; `own` is the address that the packet in question was sent from. `None`: it is
/// about nothing that was put into a tunnel, or given a Home Address option or a type 2 routing header, here.
pub(super) fn between_home_addresses(
    error: &Icmpv6Message,
    own: Ipv6Addr,
) -> Option<(Ipv6Addr, Icmpv6Message)> {
    if let Ok(RelayedFromIpv6::Ipv6 { to, message }) = relay_error_ipv6(error, own) {
        return Some((to, message));
    }
    // That a packet did not arrive says little; the agents are told, and find another way.
    let Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted }) = error else { return None };
    let quoted = QuotedPacket::parse(quoted).ok()?;
    let is_optimised =
        quoted.source != quoted.header.source || quoted.destination != quoted.header.destination;
    if quoted.header.source != own || !is_optimised || quoted.fragment.is_some() {
        return None;
    }
    let overhead = u16::try_from(quoted.payload_offset).ok()?.checked_sub(Ipv6Header::LEN)?;
    let header = Ipv6Header {
        source: quoted.source,
        destination: quoted.destination,
        next_header: quoted.protocol,
        payload_len: quoted.header.payload_len.saturating_sub(overhead),
        ..quoted.header
    };
    let mut plain = Vec::with_capacity(usize::from(Ipv6Header::LEN) + quoted.payload.len());
    header.emit(&mut plain);
    plain.extend_from_slice(quoted.payload);
    let mtu = mtu.saturating_sub(overhead.into()).max(Ipv6Header::MIN_MTU.into());
    Some((quoted.source, Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted: plain })))
}

#[cfg(test)]
mod tests {
    use super::super::packets::{encapsulated, with_addresses};
    use super::*;
    use careof_mobility::v6::{Addresses, Tunnel};
    use careof_wire::ipv6::{Extensions, Packet};
    use careof_wire::protocol;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7);
    const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);

    fn packet() -> Vec<u8> {
        let header = Ipv6Header { source: HOME, destination: PEER, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 1400], &mut bytes).unwrap();
        bytes
    }

    fn too_big(mtu: u32, packet: &[u8]) -> Icmpv6Message {
        Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted: packet[..200].to_vec() })
    }

    #[test]
    fn an_error_about_a_packet_under_way_becomes_one_about_the_packet_as_it_was() {
        let (original, mut sent) = (packet(), Vec::new());
        with_addresses(&original, &Addresses::new(CARE_OF, PEER).with_home_address(HOME), &mut sent).unwrap();
        let told = between_home_addresses(&too_big(1324, &sent), CARE_OF);
        let Some((HOME, Icmpv6Message::PacketTooBig(PacketTooBig { mtu: 1300, quoted }))) = told else {
            panic!("{told:?}")
        };
        assert_eq!(quoted, original[..quoted.len()]);
        encapsulated(&original, Tunnel { entry: CARE_OF, exit: PEER }, 1, &mut sent).unwrap();
        let told = between_home_addresses(&too_big(1340, &sent), CARE_OF);
        let Some((HOME, Icmpv6Message::PacketTooBig(PacketTooBig { mtu: 1300, quoted }))) = told else {
            panic!("{told:?}")
        };
        assert_eq!(quoted, original[..quoted.len()]);
        // Nobody's packet, and one that travels as it is.
        assert_eq!(between_home_addresses(&too_big(1340, &sent), HOME), None);
        assert_eq!(between_home_addresses(&too_big(1300, &original), HOME), None);
    }
}
