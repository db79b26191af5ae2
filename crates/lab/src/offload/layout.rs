//! Where things are in a datagram of IPv4 with TCP or UDP inside, for code that looks at each of them.
//!
//! The parsers of `careof_wire` read a message whole; here a few bytes are looked at, a hundred thousand times a
//! second.

use std::net::Ipv4Addr;

use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;

use super::checksum;
use super::vnet_header::{Segmentation, SegmentationKind, VnetHeader};

pub(super) const TOTAL_LENGTH: usize = 2;
pub(super) const IDENTIFICATION: usize = 4;
pub(super) const HEADER_CHECKSUM: usize = 10;
/// Source and destination address.
pub(super) const ADDRESSES: std::ops::Range<usize> = 12..20;
pub(super) const IPV4_LEN: usize = 20;

/// Offsets in a TCP header.
pub(super) mod tcp {
    pub(in super::super) const SEQUENCE: usize = 4;
    pub(in super::super) const DATA_OFFSET: usize = 12;
    pub(in super::super) const FLAGS: usize = 13;
    pub(in super::super) const CHECKSUM: usize = 16;
    pub(in super::super) const LEN: usize = 20;

    pub(in super::super) const FIN: u8 = 0x01;
    pub(in super::super) const PSH: u8 = 0x08;
    pub(in super::super) const ACK: u8 = 0x10;
    pub(in super::super) const ECE: u8 = 0x40;
    pub(in super::super) const CWR: u8 = 0x80;
}

/// Offsets in a UDP header.
pub(super) mod udp {
    pub(in super::super) const LENGTH: usize = 4;
    pub(in super::super) const CHECKSUM: usize = 6;
    pub(in super::super) const LEN: usize = 8;
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// Writes at an offset; nothing where there is no room, which callers have seen to.
pub(super) fn put<const LEN: usize>(bytes: &mut [u8], at: usize, value: [u8; LEN]) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}

/// Reads an IPv4 header, options skipped, without its checksum: the kernel has made it. Also its length.
pub(super) fn ipv4(bytes: &[u8]) -> Option<(Ipv4Header, usize)> {
    let &[first, tos, t0, t1, i0, i1, f0, f1, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
        bytes.first_chunk::<IPV4_LEN>()?;
    let header_len = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_len < IPV4_LEN || bytes.len() < header_len {
        return None;
    }
    let fragment = u16::from_be_bytes([f0, f1]);
    let header = Ipv4Header {
        source: Ipv4Addr::new(s0, s1, s2, s3),
        destination: Ipv4Addr::new(d0, d1, d2, d3),
        protocol,
        ttl,
        tos,
        identification: u16::from_be_bytes([i0, i1]),
        dont_fragment: fragment & 0x4000 != 0,
        more_fragments: fragment & 0x2000 != 0,
        fragment_offset: (fragment & 0x1fff) << 3,
        payload_len: u16::from_be_bytes([t0, t1]).checked_sub(header_len as u16)?,
    };
    Some((header, header_len))
}

/// A datagram whose transport checksum has been left to a network card that it never came by: the field has the sum
/// of the pseudo header only. So do those that the kernel has put together from several, to which it comes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftChecksum {
    /// Bytes of the IP header.
    pub(super) header_len: usize,
    /// Where the checksum stands behind it.
    pub(super) offset: usize,
    /// Bytes of both headers, and the flags, where it is TCP.
    pub(super) tcp: Option<(usize, u8)>,
}

impl LeftChecksum {
    /// Completing a checksum that is right by itself, and looks like this once in 65,536, changes nothing.
    pub(super) fn of(datagram: &[u8]) -> Option<Self> {
        let (header, header_len) = ipv4(datagram)?;
        let (offset, tcp) = match header.protocol {
            protocol::TCP => {
                let data_offset = usize::from(datagram.get(header_len + tcp::DATA_OFFSET)? >> 4) * 4;
                let flags = *datagram.get(header_len + tcp::FLAGS)?;
                (tcp::CHECKSUM, Some((header_len + data_offset.max(tcp::LEN), flags)))
            }
            protocol::UDP => (udp::CHECKSUM, None),
            _ => return None,
        };
        let found = datagram.get(header_len + offset..)?.first_chunk()?;
        let is_left = !header.is_fragment()
            && datagram.len() == header_len + usize::from(header.payload_len)
            && *found == checksum::folded(pseudo_header(datagram, header_len, header.protocol));
        is_left.then_some(Self { header_len, offset, tcp })
    }

    /// What has to be said about it to a device. A segment of TCP that does not fit `mtu` is one of those put
    /// together; from what sizes cannot be known, so it is said to be cut to fit.
    pub(super) fn vnet_header(&self, len: usize, mtu: usize) -> VnetHeader {
        let segmentation = self.tcp.and_then(|(headers_len, flags)| {
            let size = mtu.checked_sub(headers_len).filter(|&size| size > 0 && headers_len + size < len)?;
            let has_cwr = flags & tcp::CWR != 0;
            Some(Segmentation { kind: SegmentationKind::Tcp, size: u16::try_from(size).ok()?, has_cwr })
        });
        VnetHeader {
            checksum: Some((self.header_len as u16, self.offset as u16)),
            segmentation,
            headers_len: self.tcp.map_or(0, |(headers_len, _)| headers_len as u16),
        }
    }
}

/// Makes the total length and the header checksum right.
pub(super) fn finish_ipv4(datagram: &mut [u8], header_len: usize) {
    let len = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
    put(datagram, TOTAL_LENGTH, len.to_be_bytes());
    put(datagram, HEADER_CHECKSUM, [0; 2]);
    let sum = checksum::sum(datagram.get(..header_len).unwrap_or_default());
    put(datagram, HEADER_CHECKSUM, checksum::complete(sum));
}

/// The sum of the pseudo header of what is behind the IP header.
pub(super) fn pseudo_header(datagram: &[u8], header_len: usize, protocol: u8) -> u64 {
    let len = u16::try_from(datagram.len().saturating_sub(header_len)).unwrap_or(u16::MAX);
    checksum::pseudo_header(datagram.get(ADDRESSES).unwrap_or_default(), protocol, len)
}
