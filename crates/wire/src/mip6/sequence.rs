//! The sequence numbers of Binding Updates.

use core::fmt;

/// The Sequence # of a Binding Update and of its acknowledgement, modulo 2^16 (RFC 6275 section 9.5.1).
///
/// It has no `Ord`: a number is after another one only within half of all numbers, which is what [`SequenceNumber::is_after`]
/// computes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SequenceNumber(pub u16);

impl SequenceNumber {
    /// Whether it is greater than `last`, modulo 2^16: neither `last` itself nor one of the 32768 numbers before it.
    #[must_use]
    pub const fn is_after(self, last: Self) -> bool {
        last.0.wrapping_sub(self.0) > 1 << 15
    }

    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Debug for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_example_is_kept_to() {
        // "If the last received sequence number is 15, then messages with sequence numbers 0 through 15, as well as 32783 through
        // 65535, would be considered less than or equal" (section 9.5.1).
        let last = SequenceNumber(15);
        for number in 0..=u16::MAX {
            let less_or_equal = number <= 15 || number >= 32783;
            assert_eq!(SequenceNumber(number).is_after(last), !less_or_equal, "{number}");
        }
    }

    #[test]
    fn the_next_number_is_after_across_the_wrap() {
        let last = SequenceNumber(u16::MAX);
        assert_eq!(last.next(), SequenceNumber(0));
        assert!(last.next().is_after(last));
        assert!(!last.is_after(last.next()));
    }
}
