//! The four messages of return routability (RFC 6275 sections 5.2.5 and 6.1.3 to 6.1.6).

use core::fmt;

use super::MobilityOptions;
use crate::Error;
use crate::fixed::Fixed;

/// Offsets in a Home Test Init and a Care-of Test Init, from the start of the Mobility Header.
mod init {
    pub(super) const COOKIE: usize = 8;
    pub(super) const LEN: usize = 16;
}

/// Offsets in a Home Test and a Care-of Test.
mod test {
    pub(super) const NONCE_INDEX: usize = 6;
    pub(super) const COOKIE: usize = 8;
    pub(super) const TOKEN: usize = 16;
    pub(super) const LEN: usize = 24;
}

/// A home init cookie or care-of init cookie (RFC 6275 section 5.2.3): a random number that the mobile node finds again in
/// the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitCookie(pub [u8; 8]);

/// A home keygen token or care-of keygen token (RFC 6275 section 5.2.3): proves that its holder has received what was sent to the address
/// it was made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeygenToken(pub [u8; 8]);

impl fmt::Debug for KeygenToken {
    /// Tokens make keys, so they are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeygenToken")
    }
}

/// Names the nonce a keygen token was made with (RFC 6275 section 5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NonceIndex(pub u16);

impl fmt::Display for NonceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! test_init {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            /// Comes back in the answer.
            pub cookie: InitCookie,
            /// What follows, in order.
            pub options: MobilityOptions,
        }

        impl $name {
            pub(super) const FIXED_LEN: usize = init::LEN;

            pub(super) fn fixed(&self) -> Fixed<{ init::LEN }> {
                let mut fixed = Fixed::ZERO;
                fixed.put::<{ init::COOKIE }, 8>(self.cookie.0);
                fixed
            }

            pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
                let (fixed, options) = Fixed::<{ init::LEN }>::split(header, $what)?;
                Ok(Self {
                    cookie: InitCookie(fixed.array::<{ init::COOKIE }, 8>()),
                    options: MobilityOptions::parse(options, init::LEN)?,
                })
            }
        }
    };
}

macro_rules! test {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            /// Names the nonce that the token was made with.
            pub nonce_index: NonceIndex,
            /// The cookie of the message that this one answers.
            pub cookie: InitCookie,
            /// The token for the address that this message is sent to.
            pub token: KeygenToken,
            /// What follows, in order.
            pub options: MobilityOptions,
        }

        impl $name {
            pub(super) const FIXED_LEN: usize = test::LEN;

            pub(super) fn fixed(&self) -> Fixed<{ test::LEN }> {
                let mut fixed = Fixed::ZERO;
                fixed.put::<{ test::NONCE_INDEX }, 2>(self.nonce_index.0.to_be_bytes());
                fixed.put::<{ test::COOKIE }, 8>(self.cookie.0);
                fixed.put::<{ test::TOKEN }, 8>(self.token.0);
                fixed
            }

            pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
                let (fixed, options) = Fixed::<{ test::LEN }>::split(header, $what)?;
                Ok(Self {
                    nonce_index: NonceIndex(fixed.u16::<{ test::NONCE_INDEX }>()),
                    cookie: InitCookie(fixed.array::<{ test::COOKIE }, 8>()),
                    token: KeygenToken(fixed.array::<{ test::TOKEN }, 8>()),
                    options: MobilityOptions::parse(options, test::LEN)?,
                })
            }
        }
    };
}

test_init! {
    /// A Home Test Init (RFC 6275 section 6.1.3): from the home address, through the home agent, to the correspondent node.
    HomeTestInit, "Home Test Init"
}

test_init! {
    /// A Care-of Test Init (RFC 6275 section 6.1.4): from the care-of address to the correspondent node.
    CareOfTestInit, "Care-of Test Init"
}

test! {
    /// A Home Test (RFC 6275 section 6.1.5): from the correspondent node to the home address.
    HomeTest, "Home Test"
}

test! {
    /// A Care-of Test (RFC 6275 section 6.1.6): from the correspondent node to the care-of address.
    CareOfTest, "Care-of Test"
}
