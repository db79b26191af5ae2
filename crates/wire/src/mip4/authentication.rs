//! Computing and checking authenticators.
//!
//! An authenticator covers (RFC 5944 section 3.5.1) the payload of the UDP datagram up to its extension -
//! the message and all earlier extensions, whole - and the Type, Length and SPI of its own extension. It
//! covers neither itself, nor the UDP header, nor what follows. All of that is one run of bytes: from the
//! start of the message to the authenticator.

use alloc::vec::Vec;

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::Sha256;

use super::extension::{AuthenticationKind, SPI_LEN};
use crate::extension::HEADER_LEN;
use crate::spi::Spi;

/// How an authenticator is computed. No number on the wire says it: the SPI does, by configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC-MD5 (RFC 2104), 16 bytes: the default every implementation has (RFC 5944 section 3.5.1).
    #[default]
    HmacMd5,
    /// HMAC-SHA-256, 32 bytes.
    HmacSha256,
}

impl Algorithm {
    /// Bytes of an authenticator.
    #[must_use]
    pub const fn authenticator_len(self) -> usize {
        match self {
            Self::HmacMd5 => 16,
            Self::HmacSha256 => 32,
        }
    }
}

fn keyed<M: Mac + KeyInit>(key: &[u8], covered: &[u8]) -> M {
    // HMAC takes keys of any length, so the error `new_from_slice` shares with other codes never happens.
    let Ok(mac) = <M as KeyInit>::new_from_slice(key) else { unreachable!("HMAC refused a key") };
    mac.chain_update(covered)
}

/// Appends an authentication extension that covers everything in `bytes`, which must be a message with its
/// earlier extensions and nothing before it.
pub fn append_authentication(
    bytes: &mut Vec<u8>,
    kind: AuthenticationKind,
    spi: Spi,
    algorithm: Algorithm,
    key: &[u8],
) {
    let len = SPI_LEN + algorithm.authenticator_len();
    bytes.extend([kind.number(), len as u8]);
    bytes.extend(spi.0.to_be_bytes());
    match algorithm {
        Algorithm::HmacMd5 => bytes.extend(keyed::<Hmac<Md5>>(key, bytes).finalize().as_bytes().as_slice()),
        Algorithm::HmacSha256 => {
            bytes.extend(keyed::<Hmac<Sha256>>(key, bytes).finalize().as_bytes().as_slice())
        }
    }
}

/// Whether the authentication extension `offset` bytes into the received message `bytes` is genuine.
///
/// The check is over the bytes as they were received, not over a message emitted anew, and takes the same
/// time wherever authenticators differ. It fails as well when `offset` is not that of a whole extension.
#[must_use]
pub fn verify_authentication(bytes: &[u8], offset: usize, algorithm: Algorithm, key: &[u8]) -> bool {
    let Some((message, extension)) = bytes.split_at_checked(offset) else { return false };
    let Some((&[_, len], data)) = extension.split_first_chunk::<HEADER_LEN>() else { return false };
    let Some(authenticator) = data.get(SPI_LEN..usize::from(len)) else { return false };
    let covered = &bytes[..message.len() + HEADER_LEN + SPI_LEN];
    match algorithm {
        Algorithm::HmacMd5 => keyed::<Hmac<Md5>>(key, covered).verify_slice(authenticator).is_ok(),
        Algorithm::HmacSha256 => keyed::<Hmac<Sha256>>(key, covered).verify_slice(authenticator).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip4::{Extension, Identification, Lifetime, Message, RegistrationReply, ReplyCode};
    use core::net::Ipv4Addr;

    const KEY: &[u8] = b"sixteen bytes ok";

    fn signed(algorithm: Algorithm) -> Vec<u8> {
        let mut bytes = Message::Reply(RegistrationReply {
            code: ReplyCode::Accepted,
            lifetime: Lifetime::from_secs(60),
            home_address: Ipv4Addr::new(10, 0, 0, 5),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            identification: Identification(1),
            extensions: alloc::vec![Extension::EncapsulatingDeliveryStyle],
        })
        .emit();
        append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), algorithm, KEY);
        bytes
    }

    #[test]
    fn hmac_is_that_of_rfc_2202_and_rfc_4231() {
        // Test case 2 of both.
        let (key, data) = (b"Jefe", b"what do ya want for nothing?");
        let md5 = keyed::<Hmac<Md5>>(key, data).finalize();
        assert_eq!(md5.as_bytes()[..4], [0x75, 0x0c, 0x78, 0x3e]);
        let sha256 = keyed::<Hmac<Sha256>>(key, data).finalize();
        assert_eq!(sha256.as_bytes()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }

    #[test]
    fn an_authenticator_protects_every_bit_before_it_and_itself() {
        for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
            let bytes = signed(algorithm);
            let message = Message::parse(&bytes).unwrap();
            let (offset, extension) = message.authentication(AuthenticationKind::MobileHome).unwrap();
            assert_eq!(offset, 22);
            assert_eq!(extension.spi(), Spi(256));
            assert_eq!(extension.authenticator().len(), algorithm.authenticator_len());
            assert!(verify_authentication(&bytes, offset, algorithm, KEY));
            assert!(!verify_authentication(&bytes, offset, algorithm, b"another key"));
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(!verify_authentication(&flipped, offset, algorithm, KEY), "bit {bit}");
            }
        }
    }

    #[test]
    fn an_authenticator_covers_nothing_behind_it() {
        let mut bytes = signed(Algorithm::HmacMd5);
        append_authentication(
            &mut bytes,
            AuthenticationKind::ForeignHome,
            Spi(300),
            Algorithm::HmacSha256,
            &[0; 70],
        );
        assert!(verify_authentication(&bytes, 22, Algorithm::HmacMd5, KEY));
        let message = Message::parse(&bytes).unwrap();
        let (offset, _) = message.authentication(AuthenticationKind::ForeignHome).unwrap();
        assert!(verify_authentication(&bytes, offset, Algorithm::HmacSha256, &[0; 70]));
    }

    #[test]
    fn an_offset_that_is_no_extension_is_no_proof() {
        let bytes = signed(Algorithm::HmacMd5);
        for offset in (0..=bytes.len() + 2).filter(|offset| *offset != 22) {
            assert!(!verify_authentication(&bytes, offset, Algorithm::HmacMd5, KEY));
        }
        assert!(!verify_authentication(&bytes, usize::MAX, Algorithm::HmacMd5, KEY));
    }

    #[test]
    fn a_shortened_authenticator_is_refused() {
        let mut bytes = signed(Algorithm::HmacMd5);
        bytes[23] -= 1;
        bytes.pop();
        assert!(!verify_authentication(&bytes, 22, Algorithm::HmacMd5, KEY));
        bytes.truncate(28);
        bytes[23] = 4;
        assert!(!verify_authentication(&bytes, 22, Algorithm::HmacMd5, KEY));
    }
}
