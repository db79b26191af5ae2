//! Gratuitous ARP: telling a link whose frames an address is in (RFC 5944 section 4.6).

use std::io::IoSlice;
use std::net::Ipv4Addr;

use crate::error::Error;
use crate::socket::{LinkName, Socket};

const DOING: &str = "send a gratuitous ARP";
const ARP: u16 = libc::ETH_P_ARP as u16;
const IPV4: u16 = libc::ETH_P_IP as u16;
const BROADCAST: [u8; 6] = [0xff; 6];

/// Which of the two packets says it. Nodes differ in which they listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOperation {
    /// A question for the address by the one who has it.
    Request,
    /// An answer that nobody asked for.
    Reply,
}

/// Sends gratuitous ARP packets, and hears nothing.
///
/// A node that has the address in its cache takes the new link address over; one that has changed the entry
/// within the last second (Linux: `locktime`) does not. So the owner sends again after more than a second.
#[derive(Debug)]
pub struct ArpSender {
    socket: Socket,
}

impl ArpSender {
    /// Opens the sender in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket`: `EPERM` without `CAP_NET_RAW`.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { socket: Socket::open(DOING, libc::AF_PACKET, libc::SOCK_DGRAM, 0)? })
    }

    /// Tells the link of `interface` (an index) that frames for `address` go to `link_address`.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg(AF_PACKET)`: `ENODEV` or `ENXIO` for an interface that is gone,
    /// `ENETDOWN` for one that is down, `EINVAL` for one without addresses of six bytes.
    pub fn announce(
        &self,
        interface: u32,
        link_address: [u8; 6],
        address: Ipv4Addr,
        operation: ArpOperation,
    ) -> Result<(), Error> {
        let packet = packet(link_address, address, operation);
        let name = LinkName { protocol: ARP, interface, link_address: BROADCAST };
        self.socket
            .send(&name.bytes(), &[], &[IoSlice::new(&packet)])
            .map_err(|errno| self.socket.failed("sendmsg(AF_PACKET)", errno))
    }
}

/// The packet (RFC 826): sender and target are the same node.
fn packet(link_address: [u8; 6], address: Ipv4Addr, operation: ArpOperation) -> [u8; 28] {
    // In a request the target's link address is not used; in a reply it is the sender's (RFC 5944 section 4.6).
    let (number, target) = match operation {
        ArpOperation::Request => (1_u16, [0; 6]),
        ArpOperation::Reply => (2_u16, link_address),
    };
    let mut packet = [0; 28];
    packet[..2].copy_from_slice(&libc::ARPHRD_ETHER.to_be_bytes());
    packet[2..4].copy_from_slice(&IPV4.to_be_bytes());
    packet[4..6].copy_from_slice(&[6, 4]);
    packet[6..8].copy_from_slice(&number.to_be_bytes());
    packet[8..14].copy_from_slice(&link_address);
    packet[14..18].copy_from_slice(&address.octets());
    packet[18..24].copy_from_slice(&target);
    packet[24..28].copy_from_slice(&address.octets());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sender_and_target_of_a_gratuitous_arp_are_the_same_node() {
        let (link, address) = ([2, 0, 0, 0, 0, 9], Ipv4Addr::new(10, 1, 0, 5));
        let request = packet(link, address, ArpOperation::Request);
        assert_eq!(request[..8], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!((&request[8..14], &request[14..18]), (&link[..], &address.octets()[..]));
        assert_eq!((&request[18..24], &request[24..]), (&[0; 6][..], &address.octets()[..]));
        let reply = packet(link, address, ArpOperation::Reply);
        assert_eq!((reply[7], &reply[18..24]), (2, &link[..]));
    }
}
