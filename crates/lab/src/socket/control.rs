//! Control messages (cmsg(3)) as bytes: a header of length, level and type, then data, each padded to a word.

use std::net::{Ipv4Addr, Ipv6Addr};

const WORD: usize = size_of::<usize>();
/// Bytes of a `struct cmsghdr`.
const HEADER: usize = size_of::<libc::cmsghdr>();

/// Bytes a control message with as much data takes.
const fn space(data: usize) -> usize {
    HEADER.next_multiple_of(WORD) + data.next_multiple_of(WORD)
}

/// Bytes of a `struct in_pktinfo`.
const PACKET_INFO: usize = size_of::<libc::in_pktinfo>();
/// Bytes of a `struct in6_pktinfo`.
const PACKET_INFO_V6: usize = size_of::<libc::in6_pktinfo>();
/// Bytes of a `struct sock_extended_err`.
const EXTENDED_ERROR: usize = size_of::<libc::sock_extended_err>();

/// Room for the control messages of one received packet.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub(crate) struct Control([u8; Self::LEN]);

impl Control {
    const LEN: usize = 128;

    pub(crate) const fn new() -> Self {
        Self([0; Self::LEN])
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// What is in the first `len` bytes.
    pub(crate) fn read(&self, len: usize) -> ControlReader<'_> {
        ControlReader { rest: self.0.get(..len).unwrap_or(&self.0) }
    }
}

/// Where a packet came in and what for, or where it shall leave and from what address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketInfo {
    /// Index of the interface; 0 leaves it to the routes.
    pub(crate) interface: u32,
    /// The packet's destination on the way in, its source on the way out (unspecified: the kernel's choice).
    pub(crate) address: Ipv4Addr,
}

/// The same of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketInfoV6 {
    /// Index of the interface; 0 leaves it to the routes.
    pub(crate) interface: u32,
    /// The packet's destination on the way in, its source on the way out (unspecified: the kernel's choice).
    pub(crate) address: Ipv6Addr,
}

/// An ICMP error out of a socket's error queue (`struct sock_extended_err`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketError {
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The MTU, or whatever the type puts in the second word.
    pub(crate) info: u32,
    /// Who sent it.
    pub(crate) reporter: Ipv4Addr,
}

/// Reads control messages one by one; garbage ends it.
pub(crate) struct ControlReader<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ControlReader<'a> {
    /// Level, type, data.
    type Item = (libc::c_int, libc::c_int, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, _) = self.rest.split_at_checked(HEADER)?;
        let (len, kind) = header.split_at_checked(WORD)?;
        let len = usize::from_ne_bytes(len.try_into().ok()?);
        let (level, kind) = kind.split_at_checked(4)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(libc::c_int::from_ne_bytes);
        let item = (number(level)?, number(kind)?, self.rest.get(HEADER.next_multiple_of(WORD)..len)?);
        self.rest = self.rest.get(len.checked_next_multiple_of(WORD)?..).unwrap_or_default();
        Some(item)
    }
}

impl ControlReader<'_> {
    /// The first `IP_TTL`.
    pub(crate) fn ttl(mut self) -> Option<u8> {
        self.find_map(|(level, kind, data)| {
            let number = libc::c_int::from_ne_bytes(data.get(..4)?.try_into().ok()?);
            ((level, kind) == (libc::IPPROTO_IP, libc::IP_TTL)).then(|| u8::try_from(number).ok()).flatten()
        })
    }

    /// The first `IPV6_HOPLIMIT`.
    pub(crate) fn hop_limit(mut self) -> Option<u8> {
        self.find_map(|(level, kind, data)| {
            let number = libc::c_int::from_ne_bytes(data.get(..4)?.try_into().ok()?);
            let is_hop_limit = (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT);
            is_hop_limit.then(|| u8::try_from(number).ok()).flatten()
        })
    }

    /// The first `IPV6_PKTINFO`.
    pub(crate) fn packet_info_v6(mut self) -> Option<PacketInfoV6> {
        self.find_map(|(level, kind, data)| {
            let is_info = (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);
            is_info.then(|| packet_info_v6(data)).flatten()
        })
    }

    /// The first `IP_RECVERR`.
    pub(crate) fn socket_error(mut self) -> Option<SocketError> {
        self.find_map(|(level, kind, data)| {
            ((level, kind) == (libc::IPPROTO_IP, libc::IP_RECVERR)).then(|| socket_error(data)).flatten()
        })
    }

    /// The first `IP_PKTINFO`.
    pub(crate) fn packet_info(mut self) -> Option<PacketInfo> {
        self.find_map(|(level, kind, data)| {
            ((level, kind) == (libc::IPPROTO_IP, libc::IP_PKTINFO)).then(|| packet_info(data)).flatten()
        })
    }
}

/// Reads the data of an `IP_PKTINFO`.
fn packet_info(data: &[u8]) -> Option<PacketInfo> {
    let &[i0, i1, i2, i3, _, _, _, _, a, b, c, d] = data.get(..PACKET_INFO)? else { return None };
    let interface = u32::from_ne_bytes([i0, i1, i2, i3]);
    Some(PacketInfo { interface, address: Ipv4Addr::new(a, b, c, d) })
}

/// Reads the data of an `IPV6_PKTINFO`.
fn packet_info_v6(data: &[u8]) -> Option<PacketInfoV6> {
    let (address, rest) = data.get(..PACKET_INFO_V6)?.split_first_chunk::<16>()?;
    let interface = u32::from_ne_bytes(*rest.first_chunk()?);
    Some(PacketInfoV6 { interface, address: Ipv6Addr::from(*address) })
}

/// Reads the data of an `IP_RECVERR`: the error, then the socket address of whoever sent it.
fn socket_error(data: &[u8]) -> Option<SocketError> {
    let (error, reporter) = data.split_at_checked(EXTENDED_ERROR)?;
    let &[_, _, _, _, origin, kind, code, _, i0, i1, i2, i3, _, _, _, _] = error else { return None };
    let info = u32::from_ne_bytes([i0, i1, i2, i3]);
    let &[_, _, _, _, a, b, c, d, ..] = reporter else { return None };
    Some(SocketError { origin, kind, code, info, reporter: Ipv4Addr::new(a, b, c, d) })
}

/// Makes control messages for a packet to be sent.
pub(crate) mod encode {
    use super::{HEADER, PACKET_INFO, PACKET_INFO_V6, PacketInfo, PacketInfoV6, WORD, space};

    /// Bytes of an `IP_PKTINFO`.
    pub(crate) const PACKET_INFO_LEN: usize = space(PACKET_INFO);
    /// Bytes of an `IPV6_PKTINFO`.
    pub(crate) const PACKET_INFO_V6_LEN: usize = space(PACKET_INFO_V6);
    /// Bytes of a control message that is one number.
    pub(crate) const NUMBER_LEN: usize = space(size_of::<libc::c_int>());

    /// An `IP_PKTINFO`.
    pub(crate) fn packet_info(info: PacketInfo) -> [u8; PACKET_INFO_LEN] {
        let mut data = [0; PACKET_INFO];
        data[..4].copy_from_slice(&info.interface.to_ne_bytes());
        data[4..8].copy_from_slice(&info.address.octets());
        message(libc::IPPROTO_IP, libc::IP_PKTINFO, &data)
    }

    /// An `IPV6_PKTINFO`.
    pub(crate) fn packet_info_v6(info: PacketInfoV6) -> [u8; PACKET_INFO_V6_LEN] {
        let mut data = [0; PACKET_INFO_V6];
        data[..16].copy_from_slice(&info.address.octets());
        data[16..].copy_from_slice(&info.interface.to_ne_bytes());
        message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data)
    }

    /// An `IPV6_HOPLIMIT`.
    pub(crate) fn hop_limit(hop_limit: u8) -> [u8; NUMBER_LEN] {
        message(libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT, &libc::c_int::from(hop_limit).to_ne_bytes())
    }

    /// An `IPV6_TCLASS`.
    pub(crate) fn traffic_class(traffic_class: u8) -> [u8; NUMBER_LEN] {
        message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &libc::c_int::from(traffic_class).to_ne_bytes())
    }

    /// An `IP_TTL`.
    pub(crate) fn ttl(ttl: u8) -> [u8; NUMBER_LEN] {
        message(libc::IPPROTO_IP, libc::IP_TTL, &libc::c_int::from(ttl).to_ne_bytes())
    }

    /// An `IP_TOS`.
    pub(crate) fn tos(tos: u8) -> [u8; NUMBER_LEN] {
        message(libc::IPPROTO_IP, libc::IP_TOS, &libc::c_int::from(tos).to_ne_bytes())
    }

    fn message<const LEN: usize>(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let start = HEADER.next_multiple_of(WORD);
        let len = start + data.len();
        bytes[..WORD].copy_from_slice(&len.to_ne_bytes());
        bytes[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        bytes[WORD + 4..WORD + 8].copy_from_slice(&kind.to_ne_bytes());
        bytes[start..len].copy_from_slice(data);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        let info = PacketInfo { interface: 7, address: Ipv4Addr::new(192, 0, 2, 1) };
        let mut control = Control::new();
        let bytes = [&encode::ttl(3)[..], &encode::tos(0xb8), &encode::packet_info(info)].concat();
        control.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        let found: Vec<_> = control.read(bytes.len()).collect();
        assert_eq!(found[0], (libc::IPPROTO_IP, libc::IP_TTL, &3_i32.to_ne_bytes()[..]));
        assert_eq!(found[1], (libc::IPPROTO_IP, libc::IP_TOS, &0xb8_i32.to_ne_bytes()[..]));
        assert_eq!(found.len(), 3);
        // On the way out the address is the source, which the kernel takes from another place of the structure.
        let mut received = found[2].2.to_vec();
        received.copy_within(4..8, 8);
        assert_eq!(packet_info(&received), Some(info));
    }

    #[test]
    fn what_is_encoded_for_ipv6_is_read_back() {
        let info = PacketInfoV6 { interface: 7, address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1) };
        let mut control = Control::new();
        let (hop_limit, class) = (encode::hop_limit(255), encode::traffic_class(0xb8));
        let bytes = [&class[..], &hop_limit, &encode::packet_info_v6(info)].concat();
        control.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        assert_eq!(control.read(bytes.len()).hop_limit(), Some(255));
        assert_eq!(control.read(bytes.len()).packet_info_v6(), Some(info));
        assert_eq!(control.read(bytes.len()).packet_info(), None);
        assert_eq!(packet_info_v6(&[0; 19]), None);
    }

    #[test]
    fn garbage_ends_the_reading() {
        for len in [0_usize, 1, 15, 16, 200, usize::MAX] {
            let mut control = Control::new();
            control.bytes_mut()[..WORD].copy_from_slice(&len.to_ne_bytes());
            assert!(control.read(100).count() <= 1, "{len}");
            assert_eq!(control.read(100).packet_info(), None);
        }
        assert_eq!(socket_error(&[0; 16]), None);
        assert_eq!(packet_info(&[0; 11]), None);
    }
}
