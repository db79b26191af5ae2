//! What stands in front of the payload of a wrapped datagram.

use etherparse::checksum::Sum16BitWords;

use super::gre::GreHeader;
use super::minimal::MinimalHeader;
use crate::checksum;

const IDENTIFICATION: core::ops::Range<usize> = 4..6;
const FLAGS: usize = 6;
const DONT_FRAGMENT: u8 = 0x40;
const CHECKSUM: core::ops::Range<usize> = 10..12;

/// Bytes of which there is a known most, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short<const MAX: usize> {
    bytes: [u8; MAX],
    len: usize,
}

impl<const MAX: usize> Short<MAX> {
    pub(super) const EMPTY: Self = Self { bytes: [0; MAX], len: 0 };

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl<const MAX: usize> Extend<u8> for Short<MAX> {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        // Nothing longer than the room is ever put in: see who chooses it.
        self.len += room.iter_mut().zip(bytes).map(|(place, byte)| *place = byte).count();
    }
}

/// The bytes that take the place of a datagram's header when it enters a tunnel: the outer header, that of the
/// encapsulation, and the inner header if it stays one. The datagram's payload follows as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    bytes: Short<{ Self::MAX_LEN }>,
    header_len: usize,
}

impl Front {
    /// The longest IPv4 header, bytes.
    const MAX_HEADER_LEN: usize = 60;
    /// The most bytes a front has: an outer header without options, GRE with everything, and an inner header
    /// with all options; or a header with all options and the minimal forwarding header.
    pub const MAX_LEN: usize = 20 + GreHeader::MAX_LEN as usize + Self::MAX_HEADER_LEN;

    /// An empty front for a datagram with a header of `header_len` bytes.
    pub(super) const fn new(header_len: usize) -> Self {
        const { assert!(MinimalHeader::MAX_LEN <= 20 + GreHeader::MAX_LEN) }
        Self { bytes: Short::EMPTY, header_len }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Gives the outer header another Identification and DF bit. They are the encapsulator's business, as long as the datagram
    /// is not fragmented (RFC 6864 section 4).
    pub fn set_outer(&mut self, identification: u16, dont_fragment: bool) {
        let bytes = self.bytes.bytes_mut();
        if let Some(place) = bytes.get_mut(IDENTIFICATION) {
            place.copy_from_slice(&identification.to_be_bytes());
        }
        if let Some(flags) = bytes.get_mut(FLAGS) {
            *flags = if dont_fragment { *flags | DONT_FRAGMENT } else { *flags & !DONT_FRAGMENT };
        }
        let header_len = bytes.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
        let Some(header) = bytes.get_mut(..header_len) else { return };
        if let Some(place) = header.get_mut(CHECKSUM) {
            place.fill(0);
        }
        let sum = checksum::finish(&Sum16BitWords::new().add_slice(header));
        if let Some(place) = header.get_mut(CHECKSUM) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Bytes of the header that it replaces: where the payload starts in the original datagram.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
}

impl Extend<u8> for Front {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        self.bytes.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use crate::ipv4::Ipv4Header;
    use crate::tunnel::{Encapsulation, Origin, Tunnel};

    #[test]
    fn another_identification_and_df_bit_leave_the_rest_as_it_was() {
        let tunnel = |encapsulation| Tunnel {
            encapsulation,
            entry: Ipv4Addr::new(10, 0, 0, 1),
            exit: Ipv4Addr::new(192, 0, 2, 9),
            ttl: 64,
        };
        let mut datagram = alloc::vec::Vec::new();
        let (source, destination) = (Ipv4Addr::new(198, 51, 100, 7), Ipv4Addr::new(10, 0, 0, 5));
        let header = Ipv4Header { source, destination, dont_fragment: true, ..Ipv4Header::default() };
        header.emit(&mut datagram);
        for encapsulation in [Encapsulation::IpInIp, Encapsulation::Gre { key: Some(1), sequence: None }] {
            let before = tunnel(encapsulation).front(&datagram, Origin::Local, 0).unwrap();
            for (identification, dont_fragment) in [(0x1234, true), (0, false), (u16::MAX, true)] {
                let mut front = before;
                front.set_outer(identification, dont_fragment);
                let (outer, _) = Ipv4Header::parse(front.bytes()).unwrap();
                let (old, _) = Ipv4Header::parse(before.bytes()).unwrap();
                assert_eq!(outer, Ipv4Header { identification, dont_fragment, ..old });
                assert_eq!(front.bytes()[20..], before.bytes()[20..]);
            }
        }
    }
}
