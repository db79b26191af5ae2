//! Kinds of addresses, and the well-known ones (RFC 4291).

use core::net::Ipv6Addr;

/// All nodes of the link (RFC 4291 section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers of the link (RFC 4291 section 2.7.1).
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// All routers of the link that understand MLDv2, to which its reports go (RFC 3810 section 5.2.14).
pub const ALL_MLDV2_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// The first 104 bits of a solicited-node multicast address.
const SOLICITED_NODE: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
const LOW_24_BITS: u128 = 0x00ff_ffff;

/// The solicited-node multicast address of `address` (RFC 4291 section 2.7.1).
#[must_use]
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(SOLICITED_NODE | (address.to_bits() & LOW_24_BITS))
}

/// Whether `address` is the solicited-node multicast address of some address.
#[must_use]
pub const fn is_solicited_node(address: Ipv6Addr) -> bool {
    address.to_bits() & !LOW_24_BITS == SOLICITED_NODE
}

/// Whether `address` is a link-local unicast address, fe80::/10.
#[must_use]
pub const fn is_link_local(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local()
}

/// Whether `address` is one node's and can be reached through routers, as home and care-of addresses have to be (RFC 6275
/// sections 6.3 and 6.4): not unspecified, loopback, multicast, link-local or an IPv4-mapped address.
#[must_use]
pub const fn is_unicast_routable(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_unicast_link_local()
        || address.to_ipv4_mapped().is_some())
}

/// The Mobile IPv6 home agents' anycast address of the subnet with the first `prefix_length` bits of `prefix` (RFC 2526
/// section 2: identifier 126). Prefixes longer than 121 bits have none, and count as 121 bits.
#[must_use]
pub const fn home_agents_anycast(prefix: Ipv6Addr, prefix_length: u8) -> Ipv6Addr {
    const HOME_AGENTS: u128 = 126;
    /// In an interface identifier in modified EUI-64 format the universal/local bit is 0.
    const UNIVERSAL_LOCAL: u128 = 1 << 57;
    let prefix_length = if prefix_length > 121 { 121 } else { prefix_length };
    let interface = u128::MAX >> prefix_length;
    let identifier = (interface & !0x7f) | HOME_AGENTS;
    let identifier = if prefix_length == 64 { identifier & !UNIVERSAL_LOCAL } else { identifier };
    Ipv6Addr::from_bits((prefix.to_bits() & !interface) | identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solicited_node_address_ends_as_the_address_does() {
        // The example of RFC 4291 section 2.7.1.
        let address: Ipv6Addr = "4037::01:800:200e:8c6c".parse().unwrap();
        let group: Ipv6Addr = "ff02::1:ff0e:8c6c".parse().unwrap();
        assert_eq!(solicited_node(address), group);
        assert!(is_solicited_node(group));
        assert!(!is_solicited_node("ff02::1:fe0e:8c6c".parse().unwrap()));
        assert!(!is_solicited_node(address));
    }

    #[test]
    fn the_home_agents_anycast_address_has_the_format_of_rfc_2526() {
        let with = |prefix: &str, length| home_agents_anycast(prefix.parse().unwrap(), length);
        assert_eq!(
            with("2001:db8:1:2::77", 64),
            "2001:db8:1:2:fdff:ffff:ffff:fffe".parse::<Ipv6Addr>().unwrap()
        );
        assert_eq!(
            with("2001:db8::", 48),
            "2001:db8:0:ffff:ffff:ffff:ffff:fffe".parse::<Ipv6Addr>().unwrap()
        );
        assert_eq!(with("2001:db8::", 112), "2001:db8::fffe".parse::<Ipv6Addr>().unwrap());
        assert_eq!(with("2001:db8::80", 128), "2001:db8::fe".parse::<Ipv6Addr>().unwrap());
        assert_eq!(
            with("2001:db8::", 0),
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe".parse::<Ipv6Addr>().unwrap()
        );
    }

    #[test]
    fn a_home_address_is_unicast_and_routable() {
        let routable = |address: &str| is_unicast_routable(address.parse().unwrap());
        assert!(routable("2001:db8::1") && routable("fd00::1"));
        for address in ["::", "::1", "ff02::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!routable(address), "{address}");
        }
    }
}
