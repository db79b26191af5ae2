//! The Internet checksum (RFC 1071), over the sums of `etherparse`.

use core::net::{Ipv4Addr, Ipv6Addr};

use etherparse::checksum::Sum16BitWords;

use crate::Error;

/// The sum of the pseudo header of TCP and UDP (RFC 9293 section 3.1, RFC 768).
pub(crate) fn pseudo_header(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    len: usize,
) -> Sum16BitWords {
    // A transport datagram comes out of an IP datagram, so its length fits 16 bits.
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    Sum16BitWords::new()
        .add_4bytes(source.octets())
        .add_4bytes(destination.octets())
        .add_2bytes([0, protocol])
        .add_2bytes(len.to_be_bytes())
}

/// The sum of the pseudo header of an upper-layer protocol over IPv6 (RFC 8200 section 8.1).
pub(crate) fn pseudo_header_v6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: u8,
    len: usize,
) -> Sum16BitWords {
    // Jumbograms are not made here, so the length always fits 32 bits.
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    Sum16BitWords::new()
        .add_16bytes(source.octets())
        .add_16bytes(destination.octets())
        .add_4bytes(len.to_be_bytes())
        .add_2bytes([0, protocol])
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
