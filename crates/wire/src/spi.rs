//! The number by which two parties know what they share.

use core::fmt;

/// A Security Parameter Index: names a mobility security association (RFC 5944 section 1.6, RFC 4285 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spi(pub u32);

impl Spi {
    /// 0 to 255 are reserved and name no association (RFC 5944 section 1.6, RFC 4285 section 5.1).
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 < 256
    }
}

impl fmt::Display for Spi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
