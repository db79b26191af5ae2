//! Who made a message.

use alloc::vec::Vec;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of the authenticator: HMAC-SHA-256 cut to its first half (RFC 2104 section 5, RFC 4868).
pub const AUTHENTICATOR_LEN: usize = 16;

fn authenticator(key: &[u8], covered: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length, so the error `new_from_slice` shares with other codes never happens.
    let Ok(mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else { unreachable!("HMAC refused a key") };
    mac.chain_update(covered)
}

/// Appends the authenticator of everything in `bytes`, which must be one message and nothing before it.
pub fn append_authenticator(bytes: &mut Vec<u8>, key: &[u8]) {
    let whole = authenticator(key, bytes).finalize();
    bytes.extend(whole.as_bytes().iter().take(AUTHENTICATOR_LEN));
}

/// Whether the last [`AUTHENTICATOR_LEN`] bytes of a received message are the authenticator of those before them. It takes the same time
/// wherever authenticators differ.
#[must_use]
pub fn verify_authenticator(bytes: &[u8], key: &[u8]) -> bool {
    let Some((covered, found)) = bytes.split_last_chunk::<AUTHENTICATOR_LEN>() else { return false };
    authenticator(key, covered).verify_truncated_left(found).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_first_half_of_rfc_4231_test_case_2() {
        let mut bytes = b"what do ya want for nothing?".to_vec();
        append_authenticator(&mut bytes, b"Jefe");
        assert_eq!(
            bytes[28..],
            [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7]
        );
        assert!(verify_authenticator(&bytes, b"Jefe"));
    }

    #[test]
    fn every_bit_counts_and_so_does_the_key() {
        let mut bytes = b"message".to_vec();
        append_authenticator(&mut bytes, b"key");
        assert!(!verify_authenticator(&bytes, b"another"));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify_authenticator(&flipped, b"key"), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(!verify_authenticator(&bytes[..len], b"key"));
        }
    }
}
