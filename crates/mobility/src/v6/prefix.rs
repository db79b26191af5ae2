//! A block of IPv6 addresses.

use core::fmt;
use core::net::Ipv6Addr;

/// A network prefix: the addresses whose first `length` bits agree with `address`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: Ipv6Addr,
    length: u8,
}

const fn mask(length: u8) -> u128 {
    match length {
        0 => 0,
        1..=127 => u128::MAX << (128 - length),
        _ => u128::MAX,
    }
}

impl Prefix {
    /// Link-local unicast addresses (RFC 4291 section 2.5.6).
    pub const LINK_LOCAL: Self = Self { address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), length: 64 };

    /// The prefix of `address` with `length` bits; bits beyond are cleared, lengths above 128 count as 128.
    #[must_use]
    pub const fn new(address: Ipv6Addr, length: u8) -> Self {
        let length = if length > 128 { 128 } else { length };
        Self { address: Ipv6Addr::from_bits(address.to_bits() & mask(length)), length }
    }

    /// The first address.
    #[must_use]
    pub const fn address(self) -> Ipv6Addr {
        self.address
    }

    /// The number of bits that must agree, 0 to 128.
    #[must_use]
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Whether `address` lies within.
    #[must_use]
    pub const fn contains(self, address: Ipv6Addr) -> bool {
        address.to_bits() & mask(self.length) == self.address.to_bits()
    }

    /// The address with this prefix and the interface identifier of `address`: what follows the prefix.
    #[must_use]
    pub const fn with_interface_of(self, address: Ipv6Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.address.to_bits() | address.to_bits() & !mask(self.length))
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

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6);

    #[test]
    fn a_prefix_holds_what_agrees_in_its_first_bits() {
        let prefix = Prefix::new(A, 64);
        assert!(prefix.contains(A) && prefix.contains(prefix.address()));
        assert!(!prefix.contains(Ipv6Addr::new(0x2001, 0xdb8, 1, 3, 3, 4, 5, 6)));
        assert!(Prefix::new(A, 0).contains(Ipv6Addr::LOCALHOST));
        assert!(Prefix::new(A, 200).contains(A) && !Prefix::new(A, 128).contains(prefix.address()));
    }

    #[test]
    fn a_link_local_address_has_the_interface_identifier_of_the_home_address() {
        assert_eq!(Prefix::LINK_LOCAL.with_interface_of(A), Ipv6Addr::new(0xfe80, 0, 0, 0, 3, 4, 5, 6));
    }
}
