//! Datagrams from a host that has no address yet, of IPv4 and IPv6.
//!
//! An ordinary socket gives a datagram some address of the host, that of another interface if need be. So the
//! datagram is put on the link whole.

use std::io::IoSlice;
use std::net::{Ipv4Addr, Ipv6Addr};

use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet};
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::{LinkName, Socket};

const DOING: &str = "send from the unspecified address";
const IPV4: u16 = libc::ETH_P_IP as u16;
const IPV6: u16 = libc::ETH_P_IPV6 as u16;

/// A packet socket that only sends: IP datagrams with the source 0.0.0.0 or ::.
#[derive(Debug)]
pub(crate) struct Unaddressed {
    socket: Socket,
}

impl Unaddressed {
    pub(crate) fn open() -> Result<Self, Error> {
        // Protocol 0 hears nothing.
        Ok(Self { socket: Socket::open(DOING, libc::AF_PACKET, libc::SOCK_DGRAM, 0)? })
    }

    /// Sends `payload` to a broadcast or multicast address on the link of `interface`.
    pub(crate) fn send(
        &self,
        interface: u32,
        destination: Ipv4Addr,
        protocol: u8,
        ttl: u8,
        payload: &[u8],
    ) -> Result<(), Error> {
        let failed = |errno| self.socket.failed("sendmsg(AF_PACKET)", errno);
        let payload_len = u16::try_from(payload.len())
            .ok()
            .filter(|&len| len <= Ipv4Header::MAX_PAYLOAD_LEN)
            .ok_or_else(|| failed(Errno::EMSGSIZE))?;
        let mut header = Vec::with_capacity(usize::from(Ipv4Header::LEN));
        Ipv4Header { destination, protocol, ttl, payload_len, ..Ipv4Header::default() }.emit(&mut header);
        let name = LinkName { protocol: IPV4, interface, link_address: link_address(destination) };
        self.socket.send(&name.bytes(), &[], &[IoSlice::new(&header), IoSlice::new(payload)]).map_err(failed)
    }

    /// Sends `payload` to a group of IPv6 on the link of `interface`.
    pub(crate) fn send_v6(
        &self,
        interface: u32,
        group: Ipv6Addr,
        protocol: u8,
        hop_limit: u8,
        payload: &[u8],
    ) -> Result<(), Error> {
        let failed = |errno| self.socket.failed("sendmsg(AF_PACKET)", errno);
        let header = Ipv6Header { destination: group, hop_limit, ..Ipv6Header::default() };
        let mut packet = Vec::new();
        Packet::emit(&header, &Extensions::NONE, protocol, payload, &mut packet)
            .map_err(|_| failed(Errno::EMSGSIZE))?;
        let name = LinkName { protocol: IPV6, interface, link_address: link_address_of_group(group) };
        self.socket.send(&name.bytes(), &[], &[IoSlice::new(&packet)]).map_err(failed)
    }
}

/// Whom a frame with a datagram to a group or to everybody is for (RFC 1112 section 6.4).
fn link_address(destination: Ipv4Addr) -> [u8; 6] {
    if destination.is_multicast() {
        let [_, b, c, d] = destination.octets();
        [0x01, 0x00, 0x5e, b & 0x7f, c, d]
    } else {
        [0xff; 6]
    }
}

/// Whom a frame with a datagram to a group of IPv6 is for (RFC 2464 section 7).
const fn link_address_of_group(group: Ipv6Addr) -> [u8; 6] {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_frame_address_of_its_own() {
        assert_eq!(link_address(Ipv4Addr::new(224, 0, 0, 11)), [1, 0, 0x5e, 0, 0, 11]);
        assert_eq!(link_address(Ipv4Addr::new(239, 255, 1, 2)), [1, 0, 0x5e, 0x7f, 1, 2]);
        assert_eq!(link_address(Ipv4Addr::BROADCAST), [0xff; 6]);
        let solicited_node = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff12, 0x3456);
        assert_eq!(link_address_of_group(solicited_node), [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
    }
}
