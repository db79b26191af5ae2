//! What two nodes have agreed on to authenticate registrations.

use alloc::vec::Vec;
use core::fmt;

use careof_wire::mip4::{Algorithm, Spi};

use crate::config_error::ConfigError;
use crate::replay::ReplayProtection;

/// A mobility security association (RFC 5944 section 1.6): the SPI names algorithm, key and replay
/// protection; nothing of them travels in the message.
///
/// [`Algorithm::HmacMd5`] with a 128-bit key is what every implementation has (section 3.5.1).
///
/// `A` says how authenticators are computed, `R` how replays are told from fresh requests: as in Mobile IPv4, or as in Mobile IPv6
/// (RFC 4285).
#[derive(Clone, PartialEq, Eq)]
pub struct SecurityAssociation<A = Algorithm, R = ReplayProtection> {
    spi: Spi,
    algorithm: A,
    key: Vec<u8>,
    replay: R,
}

impl<A: Copy, R: Copy> SecurityAssociation<A, R> {
    /// An association called `spi`.
    ///
    /// # Errors
    /// [`ConfigError::ReservedSpi`] for 0 to 255, [`ConfigError::EmptyKey`] for a key without bytes.
    pub fn new(spi: Spi, algorithm: A, key: impl Into<Vec<u8>>, replay: R) -> Result<Self, ConfigError> {
        let key = key.into();
        if spi.is_reserved() {
            return Err(ConfigError::ReservedSpi(spi));
        }
        if key.is_empty() {
            return Err(ConfigError::EmptyKey { spi });
        }
        Ok(Self { spi, algorithm, key, replay })
    }

    /// The Security Parameter Index, 256 or more.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// How authenticators are computed.
    #[must_use]
    pub const fn algorithm(&self) -> A {
        self.algorithm
    }

    /// The shared secret.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// How replays are told from fresh requests.
    #[must_use]
    pub const fn replay(&self) -> R {
        self.replay
    }
}

impl SecurityAssociation {
    /// The interoperable default: HMAC-MD5, timestamps within 7 s.
    ///
    /// # Errors
    /// As [`SecurityAssociation::new`].
    pub fn hmac_md5(spi: Spi, key: impl Into<Vec<u8>>) -> Result<Self, ConfigError> {
        Self::new(spi, Algorithm::HmacMd5, key, ReplayProtection::TIMESTAMPS)
    }
}

impl<A: fmt::Debug, R: fmt::Debug> fmt::Debug for SecurityAssociation<A, R> {
    /// Without the key: debug output ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityAssociation")
            .field("spi", &self.spi)
            .field("algorithm", &self.algorithm)
            .field("key", &format_args!("({} bytes)", self.key.len()))
            .field("replay", &self.replay)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn reserved_spis_and_empty_keys_are_refused() {
        assert_eq!(SecurityAssociation::hmac_md5(Spi(255), *b"k"), Err(ConfigError::ReservedSpi(Spi(255))));
        assert_eq!(SecurityAssociation::hmac_md5(Spi(256), []), Err(ConfigError::EmptyKey { spi: Spi(256) }));
        assert!(SecurityAssociation::hmac_md5(Spi(256), *b"k").is_ok());
    }

    #[test]
    fn the_key_is_not_printed() {
        let association = SecurityAssociation::hmac_md5(Spi(256), *b"secret").unwrap();
        let text = format!("{association:?}");
        assert!(text.contains("(6 bytes)") && !text.contains("115"), "{text}");
    }
}
