//! Time of day as Mobile IP's timestamps carry it, and how a node knows it.

use core::fmt;
use core::time::Duration;

use careof_base::Instant;

/// A time of day in NTP format: seconds since 1900 in the high 32 bits, fractions of a second in the low
/// ones (RFC 5944 section 5.7.1).
///
/// The seconds roll over in February 2036, so there is no `Ord`: two times are compared by
/// [`NtpTime::difference`], which is right as long as they lie within 68 years of each other.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct NtpTime(u64);

/// Seconds from 1900, where NTP begins, to 1970, where Unix time begins.
const UNIX_EPOCH: u64 = 2_208_988_800;

/// A span in units of 2^-32 s, rounded down; saturates at 68 years, the reach of [`NtpTime::difference`].
fn ticks(span: Duration) -> u64 {
    let seconds = span.as_secs().min(u64::from(i32::MAX as u32));
    (seconds << 32) | ((u64::from(span.subsec_nanos()) << 32) / 1_000_000_000)
}

impl NtpTime {
    /// The time with these 64 bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64 bits as sent.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The time `since_1970` after the Unix epoch.
    #[must_use]
    pub fn from_unix(since_1970: Duration) -> Self {
        let seconds = since_1970.as_secs().wrapping_add(UNIX_EPOCH);
        Self((seconds << 32) | ((u64::from(since_1970.subsec_nanos()) << 32) / 1_000_000_000))
    }

    /// Whole seconds, modulo 2^32.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The time `span` later (spans over 68 years saturate).
    #[must_use]
    pub fn later(self, span: Duration) -> Self {
        Self(self.0.wrapping_add(ticks(span)))
    }

    /// The time `span` earlier (spans over 68 years saturate).
    #[must_use]
    pub fn earlier(self, span: Duration) -> Self {
        Self(self.0.wrapping_sub(ticks(span)))
    }

    /// How far `self` is after `other`, in units of 2^-32 s; negative when it is before.
    #[must_use]
    pub const fn difference(self, other: Self) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// The later one of the two.
    pub(crate) const fn later_of(self, other: Self) -> Self {
        if other.difference(self) > 0 { other } else { self }
    }

    /// The time from `other` to `self`; `None` when `self` is not later.
    #[must_use]
    pub fn after(self, other: Self) -> Option<Duration> {
        let ticks = u64::try_from(self.difference(other)).ok().filter(|&ticks| ticks > 0)?;
        let nanos = ((ticks & 0xffff_ffff) * 1_000_000_000) >> 32;
        // Below 10^9, being a fraction of a second.
        Some(Duration::new(ticks >> 32, u32::try_from(nanos).unwrap_or(0)))
    }

    /// Whether the two lie at most `span` apart.
    #[must_use]
    pub fn is_within(self, span: Duration, other: Self) -> bool {
        self.difference(other).unsigned_abs() <= ticks(span)
    }
}

impl fmt::Debug for NtpTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NtpTime({:08x}.{:08x})", self.seconds(), self.0 as u32)
    }
}

impl fmt::Display for NtpTime {
    /// Seconds since 1900 with microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = ((self.0 & 0xffff_ffff) * 1_000_000) >> 32;
        write!(f, "{}.{micros:06}", self.seconds())
    }
}

/// A node's clock: what time of day it believes it is at an [`Instant`].
///
/// The clock may be wrong; a node whose clock is wrong has another `WallClock` than its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallClock {
    epoch: NtpTime,
}

impl WallClock {
    /// A clock that shows `epoch` at [`Instant::ZERO`].
    #[must_use]
    pub const fn new(epoch: NtpTime) -> Self {
        Self { epoch }
    }

    /// The same clock, wrong: `offset` ahead.
    #[must_use]
    pub fn ahead_by(self, offset: Duration) -> Self {
        Self { epoch: self.epoch.later(offset) }
    }

    /// The same clock, wrong: `offset` behind.
    #[must_use]
    pub fn behind_by(self, offset: Duration) -> Self {
        Self { epoch: self.epoch.earlier(offset) }
    }

    /// What the clock shows at `now`.
    #[must_use]
    pub fn at(self, now: Instant) -> NtpTime {
        self.epoch.later(now.since_start())
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn half_a_second_is_half_of_the_fraction() {
        let time = NtpTime::from_unix(Duration::from_millis(500));
        assert_eq!(time.to_bits(), (UNIX_EPOCH << 32) | 0x8000_0000);
        assert_eq!(time.to_string(), "2208988800.500000");
    }

    #[test]
    fn the_rollover_of_2036_is_just_another_second() {
        let before = NtpTime::from_bits(u64::MAX);
        let after = before.later(Duration::from_secs(1));
        assert_eq!(after.seconds(), 0);
        assert!(after.difference(before) > 0 && before.difference(after) < 0);
        assert!(after.is_within(Duration::from_secs(1), before));
        assert!(!after.is_within(Duration::from_millis(999), before));
    }

    #[test]
    fn a_wrong_clock_is_wrong_by_its_offset() {
        let right = WallClock::new(NtpTime::from_unix(Duration::from_secs(1_000_000)));
        let now = Instant::from_secs(5);
        let wrong = right.ahead_by(Duration::from_secs(60));
        assert_eq!(wrong.at(now).difference(right.at(now)), 60 << 32);
        assert_eq!(right.behind_by(Duration::from_secs(60)).ahead_by(Duration::from_secs(60)), right);
    }
}
