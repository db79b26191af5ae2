//! What fast handovers (RFC 5568) say in options of neighbor discovery and of the Mobility Header alike.

use core::net::Ipv6Addr;

use crate::icmpv6::LinkLayerAddress;

crate::numbered::numbered! {
    /// Whose address an IP Address/Prefix option holds: its Option-Code (RFC 5568 sections 6.4.1 and 6.4.2).
    AddressRole, unknown: "unknown role";

    /// 1: the care-of address on the link of the previous access router.
    OldCareOfAddress = 1, "Old Care-of Address";
    /// 2: the care-of address on the link of the new access router.
    NewCareOfAddress = 2, "New Care-of Address";
    /// 3: the new access router.
    NewAccessRouter = 3, "NAR's IP address";
    /// 4: a prefix of the new access router's link.
    NewAccessRouterPrefix = 4, "NAR's Prefix";
}

crate::numbered::numbered! {
    /// Whose link-layer address a Link-Layer Address option holds, or what is known of an access point: its Option-Code (RFC 5568
    /// section 6.4.3).
    LinkLayerRole, unknown: "unknown role";

    /// 0: all access points nearby are asked for; the address means nothing.
    Wildcard = 0, "Wildcard";
    /// 1: the access point asked for, or the one that what follows is about.
    NewAccessPoint = 1, "New Access Point";
    /// 2: the mobile node.
    MobileNode = 2, "MN";
    /// 3: the new access router.
    NewAccessRouter = 3, "NAR";
    /// 4: who sends the RtSolPr or PrRtAdv.
    Source = 4, "source of RtSolPr or PrRtAdv";
    /// 5: an access point of the same link: no new care-of address is needed.
    CurrentInterface = 5, "access point of the current interface";
    /// 6: an access point of which the router knows nothing.
    NoPrefixInformation = 6, "no prefix information for the access point";
    /// 7: an access point whose router does no fast handovers.
    NoFastHandover = 7, "no fast handover support for the access point";
}

/// An IP Address/Prefix option: type 17 in neighbor discovery (RFC 5568 section 6.4.1), type 34 in a Mobility Header (section 6.4.2,
/// with the number of section 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandoverAddress {
    /// What the address is.
    pub role: AddressRole,
    prefix_len: u8,
    /// The address; of a prefix the bits behind it are ignored.
    pub address: Ipv6Addr,
}

impl HandoverAddress {
    /// The longest prefix.
    pub(crate) const MAX_PREFIX_LEN: u8 = 128;

    /// A whole address.
    #[must_use]
    pub const fn new(role: AddressRole, address: Ipv6Addr) -> Self {
        Self { role, prefix_len: Self::MAX_PREFIX_LEN, address }
    }

    /// An address of which the first `prefix_len` bits are the prefix; `None` when it is longer than an address.
    #[must_use]
    pub const fn with_prefix_len(role: AddressRole, address: Ipv6Addr, prefix_len: u8) -> Option<Self> {
        if prefix_len > Self::MAX_PREFIX_LEN {
            return None;
        }
        Some(Self { role, prefix_len, address })
    }

    /// The bits of the prefix, 0 to 128.
    #[must_use]
    pub const fn prefix_len(&self) -> u8 {
        self.prefix_len
    }
}

/// A Link-Layer Address option of fast handovers: type 19 in neighbor discovery (RFC 5568 section 6.4.3), type 7 in a Mobility Header
/// (section 6.4.4). The option does not tell how long the address is; here it is one of IEEE 802.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandoverLinkLayerAddress {
    /// Whose it is, or what is known of it.
    pub role: LinkLayerRole,
    /// The address; zeros with [`LinkLayerRole::Wildcard`].
    pub address: LinkLayerAddress,
}

impl HandoverLinkLayerAddress {
    /// That of a mobile node.
    #[must_use]
    pub const fn of_mobile_node(address: LinkLayerAddress) -> Self {
        Self { role: LinkLayerRole::MobileNode, address }
    }

    /// All access points nearby.
    pub const WILDCARD: Self = Self { role: LinkLayerRole::Wildcard, address: LinkLayerAddress([0; 6]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_is_longer_than_an_address() {
        let of = |len| {
            HandoverAddress::with_prefix_len(AddressRole::NewAccessRouterPrefix, Ipv6Addr::LOCALHOST, len)
        };
        assert_eq!(of(64).map(|option| option.prefix_len()), Some(64));
        assert!(of(128).is_some());
        assert!(of(129).is_none());
    }
}
