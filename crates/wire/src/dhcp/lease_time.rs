//! Times in DHCP options.

use core::fmt;
use core::time::Duration;

/// A relative time in whole seconds, of a lease or of the steps that keep it (RFC 2131 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseTime(u32);

impl LeaseTime {
    /// 0xffffffff on the wire.
    pub const INFINITE: Self = Self(u32::MAX);

    /// The time with these seconds in its field; 4294967295 is [`LeaseTime::INFINITE`].
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds)
    }

    /// The seconds in the field; 4294967295 for [`LeaseTime::INFINITE`].
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// The time it means, or `None` when it is infinite.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        if self.0 == u32::MAX { None } else { Some(Duration::from_secs(self.0 as u64)) }
    }

    /// This many eighths of it; of an infinite one infinite.
    #[must_use]
    pub const fn eighths(self, parts: u32) -> Self {
        if self.0 == u32::MAX {
            return self;
        }
        let seconds = self.0 as u64 * parts as u64 / 8;
        if seconds < u32::MAX as u64 { Self(seconds as u32) } else { Self(u32::MAX - 1) }
    }
}

impl fmt::Display for LeaseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u32::MAX { f.write_str("infinite") } else { write!(f, "{} s", self.0) }
    }
}
