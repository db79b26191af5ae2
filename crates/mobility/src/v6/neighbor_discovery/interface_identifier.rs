//! Interface identifiers: the part of an address behind its prefix (RFC 4291 section 2.5.1, RFC 7217).

use core::fmt;
use core::net::Ipv6Addr;

use careof_wire::icmpv6::LinkLayerAddress;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::v6::Prefix;

/// Bits of an interface identifier (RFC 4291 section 2.5.1).
pub const INTERFACE_IDENTIFIER_BITS: u8 = 64;

/// How a node chooses the interface identifiers of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceIdentifiers {
    /// Modified EUI-64, of the link-layer address (RFC 4291 appendix A): the same with every prefix.
    ModifiedEui64,
    /// Stable and opaque: another one with every prefix, the same one whenever the node comes back to it (RFC 7217).
    Stable(StableSecret),
}

/// The `secret_key` of RFC 7217, which is for nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct StableSecret([u8; Self::LEN]);

impl StableSecret {
    /// Bytes of a secret; RFC 7217 section 5 wants 16 or more.
    pub const LEN: usize = 32;

    /// The secret that the operating system's generator made when the node was set up.
    #[must_use]
    pub const fn new(secret: [u8; Self::LEN]) -> Self {
        Self(secret)
    }

    /// The algorithm of RFC 7217 section 5, with HMAC-SHA-256 as F and the link-layer address as Net_Iface.
    fn identifier(&self, prefix: Prefix, address: LinkLayerAddress, dad_counter: u8) -> u64 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return 0 };
        mac.update(&prefix.address().octets());
        mac.update(&[prefix.length()]);
        mac.update(&address.0);
        mac.update(&[dad_counter]);
        let rid = mac.finalize().into_bytes();
        // The least significant bits.
        rid.iter().rev().take(8).rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }
}

impl fmt::Debug for StableSecret {
    /// Shows nothing of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StableSecret")
    }
}

impl InterfaceIdentifiers {
    /// The address with `prefix`, of 64 bits, of the station at `address`; `dad_counter` counts the addresses that others had
    /// already. `None` where there is no further one.
    #[must_use]
    pub fn address(&self, prefix: Prefix, address: LinkLayerAddress, dad_counter: u8) -> Option<Ipv6Addr> {
        if prefix.length() != INTERFACE_IDENTIFIER_BITS {
            return None;
        }
        let identifier = match self {
            Self::ModifiedEui64 if dad_counter == 0 => modified_eui_64(address),
            Self::ModifiedEui64 => return None,
            Self::Stable(secret) => secret.identifier(prefix, address, dad_counter),
        };
        // RFC 7217 section 5, step 3: a reserved one is as if somebody had it.
        let identifier = if is_reserved(identifier) { identifier ^ 1 << 63 } else { identifier };
        Some(Ipv6Addr::from_bits(prefix.address().to_bits() | u128::from(identifier)))
    }

    /// Whether the identifier says which hardware it belongs to, so that a duplicate means duplicate hardware (RFC 4862 section
    /// 5.4.5).
    #[must_use]
    pub const fn is_of_hardware(&self) -> bool {
        matches!(self, Self::ModifiedEui64)
    }
}

/// The modified EUI-64 identifier of an IEEE 802 address (RFC 4291 appendix A, RFC 2464 section 4).
#[must_use]
pub const fn modified_eui_64(address: LinkLayerAddress) -> u64 {
    let [a, b, c, d, e, f] = address.0;
    u64::from_be_bytes([a ^ 0x02, b, c, 0xff, 0xfe, d, e, f])
}

/// Whether no interface may have the identifier (RFC 5453): that of subnet-router anycast, those of subnet anycast addresses.
const fn is_reserved(identifier: u64) -> bool {
    identifier == 0 || (identifier >= 0xfdff_ffff_ffff_ff80 && identifier <= 0xfdff_ffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: LinkLayerAddress = LinkLayerAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);

    fn prefix(number: u16, length: u8) -> Prefix {
        Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0), length)
    }

    #[test]
    fn the_modified_eui_64_identifier_is_that_of_rfc_2464() {
        // The example of RFC 2464 section 4.
        assert_eq!(modified_eui_64(ADDRESS), 0x3656_78ff_fe9a_bcde);
        let identifiers = InterfaceIdentifiers::ModifiedEui64;
        let address = identifiers.address(Prefix::LINK_LOCAL, ADDRESS, 0);
        assert_eq!(address, Some("fe80::3656:78ff:fe9a:bcde".parse().unwrap()));
        assert_eq!(identifiers.address(Prefix::LINK_LOCAL, ADDRESS, 1), None);
    }

    #[test]
    fn a_stable_identifier_depends_on_all_that_rfc_7217_names() {
        let of = |secret: u8, number, address, counter| {
            InterfaceIdentifiers::Stable(StableSecret::new([secret; 32]))
                .address(prefix(number, 64), address, counter)
                .unwrap()
                .segments()[4..]
                .to_vec()
        };
        let first = of(1, 1, ADDRESS, 0);
        assert_eq!(first, of(1, 1, ADDRESS, 0));
        let other = LinkLayerAddress([2; 6]);
        for changed in [of(2, 1, ADDRESS, 0), of(1, 2, ADDRESS, 0), of(1, 1, other, 0), of(1, 1, ADDRESS, 1)]
        {
            assert_ne!(first, changed);
        }
    }

    #[test]
    fn a_prefix_that_leaves_no_64_bits_makes_no_address() {
        for length in [0, 63, 65, 128] {
            assert_eq!(InterfaceIdentifiers::ModifiedEui64.address(prefix(1, length), ADDRESS, 0), None);
        }
    }

    #[test]
    fn reserved_identifiers_are_known() {
        for identifier in [0, 0xfdff_ffff_ffff_ff80, 0xfdff_ffff_ffff_fffe] {
            assert!(is_reserved(identifier) && !is_reserved(identifier ^ 1 << 63));
        }
        assert!(!is_reserved(0xfdff_ffff_ffff_ff7f));
    }

    #[test]
    fn a_secret_does_not_show() {
        let identifiers = InterfaceIdentifiers::Stable(StableSecret::new([0x5a; 32]));
        assert_eq!(alloc::format!("{identifiers:?}"), "Stable(StableSecret)");
    }
}
