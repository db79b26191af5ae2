//! Socket addresses as the kernel reads and writes them.

use std::net::{Ipv4Addr, SocketAddrV4};

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

/// A `struct sockaddr_ll`: an interface, and whom a frame is for there.
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
    }
}
