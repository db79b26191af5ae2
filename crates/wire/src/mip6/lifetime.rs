//! Lifetimes of bindings.

use core::fmt;
use core::time::Duration;

/// The lifetime of a binding, in units of 4 seconds (RFC 6275 sections 6.1.7 and 6.1.8): up to 72 hours and 49 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lifetime(u16);

impl Lifetime {
    /// Seconds of a unit.
    pub const UNIT_SECS: u16 = 4;
    /// In a Binding Update: delete the binding.
    pub const ZERO: Self = Self(0);
    /// The longest there is.
    pub const MAX: Self = Self(u16::MAX);

    /// The lifetime with these units in its field.
    #[must_use]
    pub const fn from_units(units: u16) -> Self {
        Self(units)
    }

    /// The units in the field.
    #[must_use]
    pub const fn as_units(self) -> u16 {
        self.0
    }

    /// The longest lifetime that is not above `duration`.
    #[must_use]
    pub const fn from_duration(duration: Duration) -> Self {
        let units = duration.as_secs() / Self::UNIT_SECS as u64;
        if units > u16::MAX as u64 { Self::MAX } else { Self(units as u16) }
    }

    /// The time it means.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64 * Self::UNIT_SECS as u64)
    }

    /// Whether it asks to delete the binding.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.duration().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_down_to_units_of_four_seconds() {
        assert_eq!(Lifetime::from_duration(Duration::from_millis(419_999)), Lifetime::from_units(104));
        assert_eq!(Lifetime::from_duration(Duration::from_secs(420)).duration(), Duration::from_secs(420));
        assert_eq!(Lifetime::from_duration(Duration::MAX), Lifetime::MAX);
        assert!(Lifetime::from_duration(Duration::from_secs(3)).is_zero());
    }
}
