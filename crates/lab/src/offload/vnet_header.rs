//! The header in front of each packet of a device with offloads (`struct virtio_net_hdr`, linux/virtio_net.h).

/// What the kernel leaves for the reader of a packet to do, and what a writer leaves for the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader {
    /// Where a checksum has to be completed: from which byte on it sums, and how far behind that it stands.
    pub(crate) checksum: Option<(u16, u16)>,
    /// How a packet that is longer than a link takes is cut.
    pub(crate) segmentation: Option<Segmentation>,
    /// Bytes of all headers; a hint.
    pub(crate) headers_len: u16,
}

/// A super-packet's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segmentation {
    pub(crate) kind: SegmentationKind,
    /// Bytes of payload in each part but the last.
    pub(crate) size: u16,
    /// The first part has CWR set (RFC 3168 section 6.1.2).
    pub(crate) has_cwr: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentationKind {
    /// A segment of TCP over IPv4.
    Tcp,
    /// Datagrams of UDP in one (`UDP_SEGMENT`).
    Udp,
    /// One this device has not offered to take.
    Other(u8),
}

impl VnetHeader {
    pub(crate) const LEN: usize = 10;

    const NEEDS_CHECKSUM: u8 = 1;
    const NONE: u8 = 0;
    const TCP: u8 = 1;
    const UDP: u8 = 5;
    const ECN: u8 = 0x80;

    /// Reads a header; every ten bytes are one.
    pub(crate) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        // The byte order is the machine's.
        let &[flags, kind, h0, h1, s0, s1, c0, c1, o0, o1] = bytes;
        let number = |low, high| u16::from_ne_bytes([low, high]);
        let segmentation = match kind & !Self::ECN {
            Self::NONE => None,
            Self::TCP => Some(SegmentationKind::Tcp),
            Self::UDP => Some(SegmentationKind::Udp),
            other => Some(SegmentationKind::Other(other)),
        };
        Self {
            checksum: (flags & Self::NEEDS_CHECKSUM != 0).then(|| (number(c0, c1), number(o0, o1))),
            segmentation: segmentation.map(|kind_of| Segmentation {
                kind: kind_of,
                size: number(s0, s1),
                has_cwr: kind & Self::ECN != 0,
            }),
            headers_len: number(h0, h1),
        }
    }

    pub(crate) fn bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        if let Some((start, offset)) = self.checksum {
            bytes[0] = Self::NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..].copy_from_slice(&offset.to_ne_bytes());
        }
        if let Some(Segmentation { kind, size, has_cwr }) = self.segmentation {
            bytes[1] = match kind {
                SegmentationKind::Tcp => Self::TCP,
                SegmentationKind::Udp => Self::UDP,
                SegmentationKind::Other(kind) => kind,
            };
            if has_cwr {
                bytes[1] |= Self::ECN;
            }
            bytes[4..6].copy_from_slice(&size.to_ne_bytes());
        }
        bytes[2..4].copy_from_slice(&self.headers_len.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(bytes in any::<[u8; VnetHeader::LEN]>()) {
            let header = VnetHeader::parse(&bytes);
            prop_assert_eq!(VnetHeader::parse(&header.bytes()), header);
        }
    }
}
