//! Sets of interfaces.

use crate::InterfaceId;

/// A set of a router's interfaces, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ports(u64);

impl Ports {
    /// No interface.
    pub const NONE: Self = Self(0);
    /// How many interfaces a router can have: they are numbered from 0.
    pub const MAX: u16 = u64::BITS as u16;

    /// This interface alone; none for a number of [`Ports::MAX`] or more.
    #[must_use]
    pub const fn one(interface: InterfaceId) -> Self {
        match 1_u64.checked_shl(interface.0 as u32) {
            Some(bit) => Self(bit),
            None => Self::NONE,
        }
    }

    /// Whether the set has this interface.
    #[must_use]
    pub const fn contains(self, interface: InterfaceId) -> bool {
        self.0 & Self::one(interface).0 != 0
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// This set without the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The interfaces, ascending.
    pub fn iter(self) -> impl Iterator<Item = InterfaceId> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let next = left.trailing_zeros();
            // A set without a bit has as many zeros as bits.
            left &= left.checked_sub(1)?;
            Some(InterfaceId(next as u16))
        })
    }
}

impl FromIterator<InterfaceId> for Ports {
    fn from_iter<I: IntoIterator<Item = InterfaceId>>(interfaces: I) -> Self {
        interfaces.into_iter().fold(Self::NONE, |set, interface| set.with(Self::one(interface)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_set_lists_what_was_put_in() {
        let numbers = [0, 5, 63];
        let set: Ports = numbers.into_iter().map(InterfaceId).collect();
        assert_eq!(set.iter().map(|interface| interface.0).collect::<Vec<_>>(), numbers);
        assert_eq!((set.len(), set.contains(InterfaceId(5)), set.contains(InterfaceId(6))), (3, true, false));
        assert_eq!(set.without(Ports::one(InterfaceId(5))).len(), 2);
    }

    #[test]
    fn an_interface_with_too_high_a_number_is_in_no_set() {
        assert!(Ports::one(InterfaceId(64)).is_empty() && Ports::one(InterfaceId(u16::MAX)).is_empty());
        assert!(!Ports::one(InterfaceId(63)).contains(InterfaceId(64)));
    }
}
