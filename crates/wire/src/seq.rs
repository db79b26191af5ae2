//! TCP sequence numbers.

use core::fmt;

/// A TCP sequence number, modulo 2^32 (RFC 9293 section 3.4).
///
/// It has no `Ord`: "before" only means something within half the sequence space, which is what
/// [`SeqNumber::is_before`] and its kin compute. No operation panics.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// `self < other` modulo 2^32.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// `self <= other` modulo 2^32.
    #[must_use]
    pub const fn is_at_or_before(self, other: Self) -> bool {
        !other.is_before(self)
    }

    /// `self > other` modulo 2^32.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        other.is_before(self)
    }

    /// `self >= other` modulo 2^32.
    #[must_use]
    pub const fn is_at_or_after(self, other: Self) -> bool {
        !self.is_before(other)
    }

    /// Bytes from `earlier` to `self`; 0 when `self` is before `earlier`.
    #[must_use]
    pub const fn bytes_since(self, earlier: Self) -> u32 {
        if self.is_before(earlier) { 0 } else { self.0.wrapping_sub(earlier.0) }
    }

    /// The sequence number `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The sequence number `bytes` earlier.
    #[must_use]
    pub const fn minus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    /// The later of the two, modulo 2^32.
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = SeqNumber(u32::MAX - 10);
        let after = before.plus(20);
        assert!(before.is_before(after) && after.is_after(before));
        assert_eq!(after.bytes_since(before), 20);
        assert_eq!(before.bytes_since(after), 0);
        assert_eq!(after.later(before), after);
        assert_eq!(after.minus(20), before);
    }
}
