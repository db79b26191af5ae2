//! What the fields of neighbor discovery count in.

use core::fmt;
use core::time::Duration;

/// A lifetime of a prefix: whole seconds in 32 bits, of which all ones mean infinity (RFC 4861 section
/// 4.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixLifetime(u32);

impl PrefixLifetime {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// 0xffffffff on the wire.
    pub const INFINITE: Self = Self(u32::MAX);

    /// The lifetime with these seconds in its field; 4294967295 is [`PrefixLifetime::INFINITE`].
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds)
    }

    /// The longest lifetime that is no longer than `duration`, and finite.
    #[must_use]
    pub fn from_duration(duration: Duration) -> Self {
        Self(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).min(u32::MAX - 1))
    }

    /// The seconds in the field; 4294967295 for [`PrefixLifetime::INFINITE`].
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// The time it means, or `None` when it is infinite.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        if self.0 == u32::MAX { None } else { Some(Duration::from_secs(self.0 as u64)) }
    }
}

impl fmt::Display for PrefixLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u32::MAX { f.write_str("infinite") } else { write!(f, "{} s", self.0) }
    }
}

/// A time in milliseconds, in a field of 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Milliseconds(pub u32);

impl Milliseconds {
    /// The longest time that is no longer than `duration` and fits the field.
    #[must_use]
    pub fn from_duration(duration: Duration) -> Self {
        Self(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX))
    }

    /// The time it means.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A link-layer address of a link of the IEEE 802 family, as neighbor discovery carries it (RFC 2464 section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkLayerAddress(pub [u8; 6]);

impl LinkLayerAddress {
    /// Whether it can be the address of one station: neither the group bit is set nor is it all zeros.
    #[must_use]
    pub const fn is_unicast(self) -> bool {
        let [a, b, c, d, e, f] = self.0;
        a & 1 == 0 && a | b | c | d | e | f != 0
    }
}

impl fmt::Display for LinkLayerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn all_ones_are_infinity_and_no_finite_time_becomes_it() {
        assert_eq!(PrefixLifetime::from_secs(u32::MAX).duration(), None);
        assert_eq!(PrefixLifetime::from_secs(7).duration(), Some(Duration::from_secs(7)));
        assert_eq!(PrefixLifetime::from_duration(Duration::MAX).as_secs(), u32::MAX - 1);
        assert_eq!(PrefixLifetime::from_duration(Duration::from_millis(1_999)).as_secs(), 1);
        assert_eq!(PrefixLifetime::INFINITE.to_string(), "infinite");
    }

    #[test]
    fn a_time_too_long_for_milliseconds_is_the_longest() {
        assert_eq!(Milliseconds::from_duration(Duration::MAX), Milliseconds(u32::MAX));
        assert_eq!(Milliseconds::from_duration(Duration::from_micros(1_999)), Milliseconds(1));
    }

    #[test]
    fn an_address_of_many_is_no_unicast_address() {
        assert!(LinkLayerAddress([2, 0, 0, 0, 0, 1]).is_unicast());
        assert!(!LinkLayerAddress([0x33, 0x33, 0, 0, 0, 1]).is_unicast());
        assert!(!LinkLayerAddress([0; 6]).is_unicast());
        assert_eq!(LinkLayerAddress([2, 0, 0, 0, 0, 0xab]).to_string(), "02:00:00:00:00:ab");
    }
}
