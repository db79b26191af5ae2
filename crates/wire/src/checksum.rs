//! The Internet checksum (RFC 1071), over the sums of `etherparse`.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::checksum::Sum16BitWords;

use crate::Error;

/// An address of either version of IP, as pseudo headers have it.
pub trait IpAddress: Copy + sealed::Sealed {
    /// Whether a UDP checksum of zero says that there is none (RFC 768). Over IPv6 it is a wrong one (RFC 8200 section 8.1).
    const MAY_OMIT_UDP_CHECKSUM: bool;
}

mod sealed {
    use etherparse::checksum::Sum16BitWords;

    pub trait Sealed {
        fn add_to(self, sum: Sum16BitWords) -> Sum16BitWords;
    }
}

impl IpAddress for Ipv4Addr {
    const MAY_OMIT_UDP_CHECKSUM: bool = true;
}

impl sealed::Sealed for Ipv4Addr {
    fn add_to(self, mut sum: Sum16BitWords) -> Sum16BitWords {
        sum.add_4bytes(self.octets())
    }
}

impl IpAddress for Ipv6Addr {
    const MAY_OMIT_UDP_CHECKSUM: bool = false;
}

impl sealed::Sealed for Ipv6Addr {
    fn add_to(self, mut sum: Sum16BitWords) -> Sum16BitWords {
        sum.add_16bytes(self.octets())
    }
}

/// The sum of the pseudo header of an upper-layer protocol (RFC 9293 section 3.1, RFC 768; of IPv6 RFC 8200 section 8.1).
pub(crate) fn pseudo_header<A: IpAddress>(
    source: A,
    destination: A,
    protocol: u8,
    len: usize,
) -> Sum16BitWords {
    // What comes out of an IP datagram is no longer than that. Over IPv4 the length has 16 bits, and the others are zero.
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let mut sum = destination.add_to(source.add_to(Sum16BitWords::new()));
    sum.add_4bytes(len.to_be_bytes()).add_2bytes([0, protocol])
}

/// The checksum of what has been summed.
pub(crate) fn finish(sum: &Sum16BitWords) -> u16 {
    sum.ones_complement().to_be()
}

/// Checks `sum`, which includes the checksum field itself, `found` at `offset`.
///
/// The sum of a sound message is minus zero, whichever of the two zeros its sender wrote in the field.
pub(crate) fn verify(
    sum: &Sum16BitWords,
    what: &'static str,
    offset: usize,
    found: u16,
) -> Result<(), Error> {
    let residue = finish(sum);
    if residue == 0 {
        return Ok(());
    }
    let (expected, carry) = found.overflowing_add(residue);
    Err(Error::Checksum { what, offset, found, expected: expected + u16::from(carry) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_tells_the_checksum_that_would_have_been_right() {
        let mut bytes = [0x45, 0, 0, 20, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let right = finish(&Sum16BitWords::new().add_slice(&bytes));
        for found in [0_u16, 1, 0x1234, 0xffff] {
            bytes[10..12].copy_from_slice(&found.to_be_bytes());
            let sum = Sum16BitWords::new().add_slice(&bytes);
            let error = Error::Checksum { what: "IPv4 header", offset: 10, found, expected: right };
            assert_eq!(verify(&sum, "IPv4 header", 10, found), Err(error));
        }
        bytes[10..12].copy_from_slice(&right.to_be_bytes());
        assert_eq!(verify(&Sum16BitWords::new().add_slice(&bytes), "IPv4 header", 10, right), Ok(()));
    }
}
