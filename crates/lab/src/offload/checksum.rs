//! The Internet checksum (RFC 1071), fast: every payload byte that is split or merged is summed.

/// The sum of bytes as 16-bit words, in the byte order of this machine, not folded. The last of an odd number
/// of bytes counts as the first of a word; only the last part of a whole may be odd.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    // 32-bit halves: their sum does not overflow 64 bits for anything that fits memory.
    let sum = chunks.iter().fold(0_u64, |sum, &chunk| {
        let word = u64::from_ne_bytes(chunk);
        sum + (word & 0xffff_ffff) + (word >> 32)
    });
    let (words, odd) = rest.as_chunks::<2>();
    let sum = words.iter().fold(sum, |sum, &word| sum + u64::from(u16::from_ne_bytes(word)));
    sum + odd.first().map_or(0, |&byte| u64::from(u16::from_ne_bytes([byte, 0])))
}

/// The sum of the pseudo header of TCP and UDP, of either version of IP; `addresses` is source and destination.
pub(crate) fn pseudo_header(addresses: &[u8], protocol: u8, len: u16) -> u64 {
    let [high, low] = len.to_be_bytes();
    sum(addresses) + sum(&[0, protocol, high, low])
}

/// A sum folded to 16 bits, as it goes into a field.
pub(crate) const fn folded(mut sum: u64) -> [u8; 2] {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    (sum as u16).to_ne_bytes()
}

/// The checksum over what has been summed with a field of zeros.
pub(crate) const fn complete(sum: u64) -> [u8; 2] {
    let [high, low] = folded(sum);
    [!high, !low]
}

/// Whether a sum over bytes and their checksum says that they are right.
pub(crate) const fn is_right(sum: u64) -> bool {
    let [high, low] = folded(sum);
    high == 0xff && low == 0xff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(folded(sum(&bytes)), [0xdd, 0xf2]);
        assert_eq!(complete(sum(&bytes)), [0x22, 0x0d]);
    }

    proptest! {
        #[test]
        fn words_are_summed_as_the_definition_says(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
            let mut expected: u64 = bytes.chunks(2).map(word).sum();
            while expected > 0xffff {
                expected = (expected & 0xffff) + (expected >> 16);
            }
            prop_assert_eq!(u16::from_be_bytes(folded(sum(&bytes))), expected as u16);
            let mut whole = bytes;
            if whole.len() % 2 == 1 {
                whole.push(0);
            }
            let checksum = complete(sum(&whole));
            whole.extend(checksum);
            prop_assert!(is_right(sum(&whole)));
        }
    }
}
