//! A block of IPv4 addresses.

use core::fmt;
use core::net::Ipv4Addr;

/// A network prefix: the addresses whose first `length` bits agree with `address`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: Ipv4Addr,
    length: u8,
}

impl Prefix {
    /// Every address.
    pub const ALL: Self = Self { address: Ipv4Addr::UNSPECIFIED, length: 0 };

    /// The prefix of `address` with `length` bits; bits beyond are cleared, lengths above 32 count as 32.
    #[must_use]
    pub const fn new(address: Ipv4Addr, length: u8) -> Self {
        let length = if length > 32 { 32 } else { length };
        Self { address: Ipv4Addr::from_bits(address.to_bits() & mask(length)), length }
    }

    /// The prefix that holds `address` alone.
    #[must_use]
    pub const fn host(address: Ipv4Addr) -> Self {
        Self { address, length: 32 }
    }

    /// The first address.
    #[must_use]
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// The number of bits that must agree, 0 to 32.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether `address` lies within.
    #[must_use]
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.length) == self.address.to_bits()
    }

    /// The subnet-directed broadcast address; `None` for lengths 31 and 32, which have none (RFC 3021).
    #[must_use]
    pub const fn directed_broadcast(self) -> Option<Ipv4Addr> {
        if self.length > 30 {
            return None;
        }
        Some(Ipv4Addr::from_bits(self.address.to_bits() | !mask(self.length)))
    }
}

const fn mask(length: u8) -> u32 {
    match length {
        0 => 0,
        1..=31 => u32::MAX << (32 - length),
        _ => u32::MAX,
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_works_and_bits_beyond_are_cleared() {
        let address = Ipv4Addr::new(192, 168, 194, 161);
        assert_eq!(Prefix::new(address, 25), Prefix::new(Ipv4Addr::new(192, 168, 194, 128), 25));
        for length in 0..=40 {
            assert!(Prefix::new(address, length).contains(address));
        }
        assert!(!Prefix::host(address).contains(Ipv4Addr::new(192, 168, 194, 160)));
        assert!(Prefix::ALL.contains(address));
    }

    #[test]
    fn the_directed_broadcast_is_the_last_address_of_a_subnet() {
        let home = Prefix::new(Ipv4Addr::new(192, 168, 194, 128), 25);
        assert_eq!(home.directed_broadcast(), Some(Ipv4Addr::new(192, 168, 194, 255)));
        assert_eq!(Prefix::new(Ipv4Addr::new(10, 0, 0, 0), 31).directed_broadcast(), None);
    }
}
