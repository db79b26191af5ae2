//! IPv4 among the addresses of Mobile IPv6 (RFC 5555).
//!
//! An IPv4 care-of address, and an end of a tunnel through IPv4, is its IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) everywhere
//! in this room, so that bindings, events and tunnels are of one type. No packet of IPv6 has such an address, and none that
//! a message names as an address of IPv6 is taken for a care-of address.
//!
//! Left out is what a NAT needs (RFC 5555 sections 2.3.2.2, 4.2 and 4.3): packets in UDP and keepalives. Binding Updates from an IPv4
//! network and their acknowledgements are in UDP all the same, as section 4.2 wants it of every mobile node, and the home agent looks
//! for a NAT on the path. Where there is one it refuses the registration with status 129, and counts
//! [`DropReason::NatOnPath`](super::DropReason::NatOnPath). Section 4.5 has status 144 for UDP encapsulation that is asked for in vain; that
//! number is MIPV6-ID-MISMATCH of RFC 4285, so it is 129, too. Prefixes of IPv4 (section 2.2) are refused with status 133.

use core::net::{Ipv4Addr, Ipv6Addr};

/// Whether `address` is one node's and can be reached through routers, as home and care-of addresses have to be.
pub(super) const fn is_unicast_ipv4(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    // 0.0.0.0/8 is this network (RFC 1122), 240.0.0.0/4 is reserved and ends with the broadcast address.
    first != 0 && first < 240 && !address.is_loopback() && !address.is_multicast() && !address.is_link_local()
}

/// Whether nobody outside a network can reach `address` without a NAT: it is private (RFC 1918) or shared (RFC 6598).
pub(super) const fn is_behind_nat(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private() || first == 100 && second & 0xc0 == 64
}

/// Whether `address` is an IPv4-mapped one that can be a care-of address.
pub(super) fn is_ipv4_care_of(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some_and(is_unicast_ipv4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_single_node_has_is_no_care_of_address() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "169.254.1.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(!is_ipv4_care_of(address.to_ipv6_mapped()), "{address}");
        }
        for address in ["192.0.2.1", "10.0.0.1", "1.0.0.0", "223.255.255.255"] {
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(is_ipv4_care_of(address.to_ipv6_mapped()), "{address}");
            // IPv4-compatible is something else.
            assert!(!is_ipv4_care_of(address.to_ipv6_compatible()), "{address}");
        }
    }

    #[test]
    fn private_and_shared_addresses_are_behind_a_nat() {
        for (address, expected) in [
            ("10.0.0.1", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("100.64.0.1", true),
            ("100.127.255.1", true),
            ("100.128.0.1", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_behind_nat(address.parse().unwrap()), expected, "{address}");
        }
    }
}
