//! Socket addresses as the kernel reads and writes them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// Bytes of a `struct sockaddr_in`.
pub(crate) const NAME_LEN: usize = size_of::<libc::sockaddr_in>();

/// The `struct sockaddr_in` of an address and a port.
pub(crate) fn from_ipv4(address: SocketAddrV4) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    name[..2].copy_from_slice(&(libc::AF_INET as libc::sa_family_t).to_ne_bytes());
    name[2..4].copy_from_slice(&address.port().to_be_bytes());
    name[4..8].copy_from_slice(&address.ip().octets());
    name
}

/// The address and port in the first `len` bytes of a name, if it is one of IPv4.
pub(crate) fn to_ipv4(name: &[u8; NAME_LEN], len: usize) -> Option<SocketAddrV4> {
    let &[f0, f1, p0, p1, a, b, c, d, ..] = name;
    let is_ipv4 = len >= 8 && libc::c_int::from(libc::sa_family_t::from_ne_bytes([f0, f1])) == libc::AF_INET;
    is_ipv4.then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p0, p1])))
}

/// Bytes of a `struct sockaddr_in6`.
pub(crate) const NAME_V6_LEN: usize = size_of::<libc::sockaddr_in6>();

/// The `struct sockaddr_in6` of an address, on the link of an interface where it is not 0. Raw sockets know no ports.
pub(crate) fn from_ipv6(address: Ipv6Addr, interface: u32) -> [u8; NAME_V6_LEN] {
    let mut name = [0; NAME_V6_LEN];
    name[..2].copy_from_slice(&(libc::AF_INET6 as libc::sa_family_t).to_ne_bytes());
    name[8..24].copy_from_slice(&address.octets());
    name[24..].copy_from_slice(&interface.to_ne_bytes());
    name
}

/// The address in the first `len` bytes of a name, if it is one of IPv6.
pub(crate) fn to_ipv6(name: &[u8; NAME_V6_LEN], len: usize) -> Option<Ipv6Addr> {
    let family = libc::c_int::from(libc::sa_family_t::from_ne_bytes([name[0], name[1]]));
    let address: [u8; 16] = name[8..24].try_into().ok()?;
    (len >= 24 && family == libc::AF_INET6).then(|| Ipv6Addr::from(address))
}

/// A `struct sockaddr_ll`: an interface, and whom a frame is for there.
#[derive(Debug)]
pub(crate) struct LinkName {
    /// Protocol of what follows the link's header, a number of IEEE 802.
    pub(crate) protocol: u16,
    /// Index of the interface.
    pub(crate) interface: u32,
    /// The frame's destination; a link without addresses ignores it.
    pub(crate) link_address: [u8; 6],
}

impl LinkName {
    const LEN: usize = size_of::<libc::sockaddr_ll>();

    pub(crate) fn bytes(&self) -> [u8; Self::LEN] {
        let mut name = [0; Self::LEN];
        name[..2].copy_from_slice(&(libc::AF_PACKET as libc::sa_family_t).to_ne_bytes());
        name[2..4].copy_from_slice(&self.protocol.to_be_bytes());
        name[4..8].copy_from_slice(&self.interface.to_ne_bytes());
        name[11] = self.link_address.len() as u8;
        name[12..18].copy_from_slice(&self.link_address);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let address = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 434);
        let name = from_ipv4(address);
        assert_eq!(to_ipv4(&name, name.len()), Some(address));
        assert_eq!(to_ipv4(&name, 4), None);
        assert_eq!(to_ipv4(&[0; NAME_LEN], NAME_LEN), None);

        let address = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let name = from_ipv6(address, 3);
        assert_eq!(to_ipv6(&name, name.len()), Some(address));
        assert_eq!(to_ipv6(&name, 20), None);
        assert_eq!(to_ipv6(&[0; NAME_V6_LEN], NAME_V6_LEN), None);
    }
}
