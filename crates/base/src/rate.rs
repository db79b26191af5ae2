//! Data rates.

use core::fmt;
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Bits per second. Zero is a rate at which nothing is ever delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRate(u64);

impl DataRate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);

    /// A rate in bit/s.
    #[must_use]
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate in kbit/s (1000 bit/s).
    #[must_use]
    pub const fn from_kilobits_per_second(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1_000))
    }

    /// A rate in Mbit/s (1,000,000 bit/s).
    #[must_use]
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// The rate in bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Time to send `bits`, rounded up to a nanosecond; `None` at rate zero.
    #[must_use]
    pub fn time_for_bits(self, bits: u64) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let nanos = (u128::from(bits) * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Bits that pass in `span`, rounded down.
    #[must_use]
    pub fn bits_in(self, span: Duration) -> u64 {
        u64::try_from(u128::from(self.0) * span.as_nanos() / NANOS_PER_SECOND).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for DataRate {
    /// The largest unit that needs at most three decimals: `9.6 kbit/s`, `2 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")] {
            if self.0 >= unit && self.0.is_multiple_of(unit / 1_000) {
                let (whole, thousandths) = (self.0 / unit, self.0 % unit / (unit / 1_000));
                if thousandths == 0 {
                    return write!(f, "{whole} {name}");
                }
                let mut digits = thousandths;
                let mut width = 3;
                while digits.is_multiple_of(10) {
                    digits /= 10;
                    width -= 1;
                }
                return write!(f, "{whole}.{digits:0width$} {name}");
            }
        }
        write!(f, "{} bit/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn displays_in_the_unit_people_write() {
        for (bits, text) in [
            (9_600, "9.6 kbit/s"),
            (2_000_000, "2 Mbit/s"),
            (1_234_567, "1234.567 kbit/s"),
            (10_050_000, "10.05 Mbit/s"),
            (999, "999 bit/s"),
            (0, "0 bit/s"),
        ] {
            assert_eq!(DataRate::from_bits_per_second(bits).to_string(), text);
        }
    }

    #[test]
    fn nothing_passes_at_rate_zero() {
        assert_eq!(DataRate::ZERO.time_for_bits(1), None);
        assert_eq!(DataRate::ZERO.bits_in(Duration::MAX), 0);
    }
}
