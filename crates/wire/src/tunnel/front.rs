//! What stands in front of the payload of a wrapped datagram.

use super::gre::GreHeader;
use super::minimal::MinimalHeader;

/// The bytes that take the place of a datagram's header when it enters a tunnel: the outer header, that of the
/// encapsulation, and the inner header if it stays one. The datagram's payload follows as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    bytes: [u8; Self::MAX_LEN],
    len: usize,
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
        Self { bytes: [0; Self::MAX_LEN], len: 0, header_len }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }

    /// Bytes of the header that it replaces: where the payload starts in the original datagram.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
}

impl Extend<u8> for Front {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        // Nothing longer than the room is ever put in: see its constant.
        self.len += room.iter_mut().zip(bytes).map(|(place, byte)| *place = byte).count();
    }
}
