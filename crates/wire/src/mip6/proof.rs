//! What says in a message who sent it, and when: authenticators, identifiers and timestamps, as they stand there (RFC 6275 section 6.2.7,
//! RFC 4283, RFC 4285).

use alloc::vec::Vec;
use core::fmt;

use super::Spi;

/// An authenticator of Binding Authorization Data, of whatever length was received (RFC 6275 section 6.2.7).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Authenticator(pub(super) Vec<u8>);

impl Authenticator {
    /// An authenticator of these bytes; `None` when they are more than 255.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= usize::from(u8::MAX)).then(|| Self(bytes.to_vec()))
    }

    /// Room for an authenticator of `len` bytes.
    pub(super) fn zeroed(len: usize) -> Self {
        Self(alloc::vec![0; len])
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authenticator({} bytes)", self.0.len())
    }
}

/// A Mobile Node Identifier option (RFC 4283).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MobileNodeIdentifier {
    pub(super) subtype: u8,
    pub(super) identifier: Vec<u8>,
}

impl MobileNodeIdentifier {
    /// The subtype of network access identifiers, `user@realm` (RFC 4283 section 3.1).
    pub const NAI: u8 = 1;
    /// The longest identifier the Option Length can tell, bytes.
    pub const MAX_LEN: usize = u8::MAX as usize - 1;

    /// An identifier of this subtype; `None` when it is longer than [`Self::MAX_LEN`].
    #[must_use]
    pub fn new(subtype: u8, identifier: &[u8]) -> Option<Self> {
        (identifier.len() <= Self::MAX_LEN).then(|| Self { subtype, identifier: identifier.to_vec() })
    }

    /// What kind of identifier it is.
    #[must_use]
    pub const fn subtype(&self) -> u8 {
        self.subtype
    }

    /// The identifier; a network access identifier need not be valid UTF-8 when it was received.
    #[must_use]
    pub fn identifier(&self) -> &[u8] {
        &self.identifier
    }
}

crate::numbered::numbered! {
    /// Between whom a Mobility Message Authentication option is (RFC 4285 section 5).
    AuthenticationSubtype, unknown: "unknown subtype";

    /// 1: mobile node and home agent.
    MobileHome = 1, "MN-HA";
    /// 2: mobile node and AAA server of its home network.
    MobileAaa = 2, "MN-AAA";
}

/// A Mobility Message Authentication option (RFC 4285 section 5) as it stands in a message.
///
/// It only carries the authenticator; [`super::MobileHomeAuthentication`] makes and checks one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MessageAuthentication {
    pub(super) subtype: AuthenticationSubtype,
    pub(super) spi: Spi,
    pub(super) authenticator: Vec<u8>,
}

impl MessageAuthentication {
    /// Subtype and mobility SPI.
    pub(super) const FIXED_LEN: usize = 5;
    /// The longest authenticator the Option Length can tell, bytes.
    pub const MAX_AUTHENTICATOR_LEN: usize = u8::MAX as usize - Self::FIXED_LEN;

    /// An option with this authenticator; `None` when it is longer than [`Self::MAX_AUTHENTICATOR_LEN`].
    #[must_use]
    pub fn new(subtype: AuthenticationSubtype, spi: Spi, authenticator: &[u8]) -> Option<Self> {
        (authenticator.len() <= Self::MAX_AUTHENTICATOR_LEN).then(|| Self {
            subtype,
            spi,
            authenticator: authenticator.to_vec(),
        })
    }

    /// An option with room for an authenticator of `len` bytes.
    pub(super) fn zeroed(subtype: AuthenticationSubtype, spi: Spi, len: usize) -> Self {
        Self { subtype, spi, authenticator: alloc::vec![0; len] }
    }

    /// Between whom it is.
    #[must_use]
    pub const fn subtype(&self) -> AuthenticationSubtype {
        self.subtype
    }

    /// Names the mobility security association.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// The authentication data, of whatever length was received.
    #[must_use]
    pub fn authenticator(&self) -> &[u8] {
        &self.authenticator
    }

    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (&[subtype, a, b, c, d], authenticator) = data.split_first_chunk::<{ Self::FIXED_LEN }>()?;
        Some(Self {
            subtype: AuthenticationSubtype::from_number(subtype),
            spi: Spi(u32::from_be_bytes([a, b, c, d])),
            authenticator: authenticator.to_vec(),
        })
    }
}

impl fmt::Debug for MessageAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MessageAuthentication({}, SPI {}, {} bytes)",
            self.subtype,
            self.spi,
            self.authenticator.len()
        )
    }
}

/// The timestamp of a Mobility Message Replay Protection option (RFC 4285 section 6), in the format of NTP: seconds since 1900 above,
/// their fraction below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpTimestamp(pub u64);

impl NtpTimestamp {
    /// The timestamp of two halves.
    #[must_use]
    pub const fn from_halves(seconds: u32, fraction: u32) -> Self {
        Self((seconds as u64) << 32 | fraction as u64)
    }

    /// The high-order 32 bits: seconds.
    #[must_use]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The low-order 32 bits: the fraction, which an acknowledgement always copies.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for NtpTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for NtpTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.{:08x}", self.high(), self.low())
    }
}
