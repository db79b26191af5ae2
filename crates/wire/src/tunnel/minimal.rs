//! The minimal forwarding header (RFC 2004 section 3).

use core::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;

use crate::fixed::Fixed;
use crate::{Error, checksum};

mod at {
    pub(super) const PROTOCOL: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const CHECKSUM: usize = 2;
    pub(super) const DESTINATION: usize = 4;
    pub(super) const LEN: usize = 8;
    pub(super) const SOURCE: usize = 8;
    pub(super) const LEN_WITH_SOURCE: usize = 12;
}

/// S: the original source address is present.
const SOURCE_PRESENT: u8 = 0x80;

/// What a minimal encapsulation took out of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MinimalHeader {
    pub(super) protocol: u8,
    pub(super) destination: Ipv4Addr,
    /// The original source, unless that is the encapsulator.
    pub(super) source: Option<Ipv4Addr>,
}

impl MinimalHeader {
    pub(super) const MAX_LEN: u16 = at::LEN_WITH_SOURCE as u16;

    /// Bytes of a header, by whether it has a source.
    pub(super) const fn len_with(source: bool) -> u16 {
        if source { Self::MAX_LEN } else { at::LEN as u16 }
    }

    pub(super) fn emit(self, bytes: &mut impl Extend<u8>) {
        let mut fixed = Fixed::<{ at::LEN_WITH_SOURCE }>::ZERO;
        fixed.put::<{ at::PROTOCOL }, 1>([self.protocol]);
        fixed.put::<{ at::DESTINATION }, 4>(self.destination.octets());
        if let Some(source) = self.source {
            fixed.put::<{ at::FLAGS }, 1>([SOURCE_PRESENT]);
            fixed.put::<{ at::SOURCE }, 4>(source.octets());
        }
        // A source that is not there is zeros, which the sum does not notice.
        let sum = checksum::finish(&Sum16BitWords::new().add_slice(fixed.bytes()));
        fixed.put::<{ at::CHECKSUM }, 2>(sum.to_be_bytes());
        let len = usize::from(Self::len_with(self.source.is_some()));
        bytes.extend(fixed.bytes().iter().copied().take(len));
    }

    /// Reads the header; what follows it.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        const WHAT: &str = "minimal forwarding header";
        let (fixed, rest) = Fixed::<{ at::LEN }>::split(bytes, WHAT)?;
        let sum = Sum16BitWords::new().add_slice(fixed.bytes());
        let header = Self {
            protocol: fixed.u8::<{ at::PROTOCOL }>(),
            destination: fixed.address::<{ at::DESTINATION }>(),
            source: None,
        };
        let found = fixed.u16::<{ at::CHECKSUM }>();
        if fixed.u8::<{ at::FLAGS }>() & SOURCE_PRESENT == 0 {
            checksum::verify(&sum, WHAT, at::CHECKSUM, found)?;
            return Ok((header, rest));
        }
        let (longer, rest) = Fixed::<{ at::LEN_WITH_SOURCE }>::split(bytes, WHAT)?;
        let source = longer.address::<{ at::SOURCE }>();
        checksum::verify(&sum.add_slice(&source.octets()), WHAT, at::CHECKSUM, found)?;
        Ok((Self { source: Some(source), ..header }, rest))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const HEADER: MinimalHeader =
        MinimalHeader { protocol: 6, destination: Ipv4Addr::new(10, 0, 0, 5), source: None };

    #[test]
    fn a_header_has_the_layout_of_the_rfc() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        // 0x0600 + 0x0a00 + 0x0005 = 0x1005.
        assert_eq!(bytes, [6, 0, 0xef, 0xfa, 10, 0, 0, 5]);
        assert_eq!(MinimalHeader::parse(&bytes), Ok((HEADER, &[][..])));

        let header = MinimalHeader { source: Some(Ipv4Addr::new(192, 0, 2, 1)), ..HEADER };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        // 0x0680 + 0x0a00 + 0x0005 + 0xc000 + 0x0201 = 0xd286.
        assert_eq!(bytes, [6, 0x80, 0x2d, 0x79, 10, 0, 0, 5, 192, 0, 2, 1]);
        assert_eq!(MinimalHeader::parse(&bytes), Ok((header, &[][..])));
        assert_eq!(
            MinimalHeader::parse(&bytes[..11]),
            Err(Error::Truncated { what: "minimal forwarding header", offset: 0, needed: 12, found: 11 })
        );
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let mut bytes = Vec::new();
        HEADER.emit(&mut bytes);
        bytes[0] = 17;
        assert!(matches!(MinimalHeader::parse(&bytes), Err(Error::Checksum { offset: 2, .. })));
    }
}
