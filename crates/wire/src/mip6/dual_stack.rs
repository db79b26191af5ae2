//! IPv4 addresses of a mobile node (RFC 5555 section 3).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

/// The UDP port of home agents for packets from IPv4 networks (RFC 5555 section 4.2).
pub const DSMIPV6_PORT: u16 = 4191;
/// NATKATIMEOUT, seconds: after how long a mobile node behind a NAT should refresh its binding, by default (RFC 5555 section 6).
pub const DSMIPV6_NAT_REFRESH_SECS: u32 = 110;

/// Bits of an IPv4 address.
const ADDRESS_BITS: u8 = 32;

/// An IPv4 Home Address option, type 29 (RFC 5555 section 3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4HomeAddress {
    prefix_len: u8,
    prefix_requested: bool,
    address: Ipv4Addr,
}

impl Ipv4HomeAddress {
    pub(super) const DATA_LEN: usize = 6;
    /// `P`, in the octet behind Prefix-len.
    const PREFIX_REQUESTED: u8 = 0x02;

    /// An option for `address`, of which `prefix_len` bits are the prefix that belongs to the mobile node; `None` unless these are
    /// 1 to 32. The unspecified address asks for one, and `prefix_requested` for a prefix.
    #[must_use]
    pub const fn new(address: Ipv4Addr, prefix_len: u8, prefix_requested: bool) -> Option<Self> {
        if prefix_len == 0 || prefix_len > ADDRESS_BITS {
            return None;
        }
        Some(Self { prefix_len, prefix_requested, address })
    }

    /// Bits of the prefix, 1 to 32; 32 when only the address is the mobile node's.
    #[must_use]
    pub const fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// `P`: a prefix is requested.
    #[must_use]
    pub const fn prefix_requested(&self) -> bool {
        self.prefix_requested
    }

    /// The IPv4 home address; unspecified where one is requested.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let flags = if self.prefix_requested { Self::PREFIX_REQUESTED } else { 0 };
        bytes.extend([self.prefix_len << 2 | flags, 0]);
        bytes.extend(self.address.octets());
    }

    pub(super) const fn decode(data: [u8; Self::DATA_LEN]) -> Option<Self> {
        let [first, _, a, b, c, d] = data;
        Self::new(Ipv4Addr::new(a, b, c, d), first >> 2, first & Self::PREFIX_REQUESTED != 0)
    }
}

crate::numbered::numbered! {
    /// The Status of an IPv4 Address Acknowledgement option (RFC 5555 section 3.2.1). `Display` gives the RFC's wording.
    Ipv4AddressStatus, unknown: "unknown status";

    /// 0.
    Success = 0, "Success";
    /// 128.
    ReasonUnspecified = 128, "Failure, reason unspecified";
    /// 129.
    AdministrativelyProhibited = 129, "Administratively prohibited";
    /// 130.
    IncorrectHomeAddress = 130, "Incorrect IPv4 home address";
    /// 131.
    InvalidAddress = 131, "Invalid IPv4 address";
    /// 132.
    DynamicAssignmentNotAvailable = 132, "Dynamic IPv4 home address assignment not available";
    /// 133.
    PrefixAllocationUnauthorized = 133, "Prefix allocation unauthorized";
}

impl Ipv4AddressStatus {
    /// Whether the IPv4 home address is bound: below 128.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.number() < 128
    }
}

/// An IPv4 Address Acknowledgement option, type 30 (RFC 5555 section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4AddressAcknowledgement {
    status: Ipv4AddressStatus,
    prefix_len: u8,
    address: Ipv4Addr,
}

impl Ipv4AddressAcknowledgement {
    pub(super) const DATA_LEN: usize = 6;

    /// An option that answers for `address` alone.
    #[must_use]
    pub const fn of_address(status: Ipv4AddressStatus, address: Ipv4Addr) -> Self {
        let prefix_len = if status.is_success() { ADDRESS_BITS } else { 0 };
        Self { status, prefix_len, address }
    }

    /// An option that answers for `address`, with `prefix_len` bits of prefix that are the mobile node's; `None` when these are more
    /// than 32. Of a failure the prefix length is 0, whatever is given.
    #[must_use]
    pub const fn new(status: Ipv4AddressStatus, address: Ipv4Addr, prefix_len: u8) -> Option<Self> {
        if prefix_len > ADDRESS_BITS {
            return None;
        }
        let prefix_len = if status.is_success() { prefix_len } else { 0 };
        Some(Self { status, prefix_len, address })
    }

    /// The outcome.
    #[must_use]
    pub const fn status(&self) -> Ipv4AddressStatus {
        self.status
    }

    /// Bits of the prefix that is the mobile node's; 0 after a failure.
    #[must_use]
    pub const fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// The IPv4 home address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.status.number(), self.prefix_len << 2]);
        bytes.extend(self.address.octets());
    }

    pub(super) const fn decode(data: [u8; Self::DATA_LEN]) -> Option<Self> {
        let [status, prefix, a, b, c, d] = data;
        let status = Ipv4AddressStatus::from_number(status);
        // A receiver ignores the prefix length of a failure.
        let prefix_len = if status.is_success() { prefix >> 2 } else { 0 };
        Self::new(status, Ipv4Addr::new(a, b, c, d), prefix_len)
    }
}

/// A NAT Detection option, type 31 (RFC 5555 section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NatDetection {
    /// `F`: UDP encapsulation is required, whether there is a NAT or not.
    pub udp_encapsulation_required: bool,
    /// After how many seconds the mobile node should refresh the NAT's binding. 0 says nothing;
    /// [`NatDetection::NO_NAT`]: not at all.
    pub refresh_time: u32,
}

impl NatDetection {
    pub(super) const DATA_LEN: usize = 6;
    /// `F`, in the first octet.
    const UDP_ENCAPSULATION_REQUIRED: u8 = 0x80;

    /// The refresh time that says that no NAT was found.
    pub const NO_NAT: u32 = u32::MAX;

    /// Whether the mobile node has to send everything in UDP (RFC 5555 sections 4.2 and 4.4.2).
    #[must_use]
    pub const fn requires_udp(&self) -> bool {
        self.udp_encapsulation_required || self.refresh_time != Self::NO_NAT
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend([if self.udp_encapsulation_required { Self::UDP_ENCAPSULATION_REQUIRED } else { 0 }, 0]);
        bytes.extend(self.refresh_time.to_be_bytes());
    }

    pub(super) const fn decode(data: [u8; Self::DATA_LEN]) -> Self {
        let [flags, _, a, b, c, d] = data;
        Self {
            udp_encapsulation_required: flags & Self::UDP_ENCAPSULATION_REQUIRED != 0,
            refresh_time: u32::from_be_bytes([a, b, c, d]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);

    #[test]
    fn a_prefix_is_of_1_to_32_bits() {
        assert!(Ipv4HomeAddress::new(ADDRESS, 0, false).is_none());
        assert!(Ipv4HomeAddress::new(ADDRESS, 33, false).is_none());
        assert_eq!(Ipv4HomeAddress::decode([0, 0, 192, 0, 2, 5]), None);
        assert_eq!(Ipv4HomeAddress::decode([33 << 2, 0, 192, 0, 2, 5]), None);
        assert_eq!(
            Ipv4HomeAddress::decode([32 << 2 | 2, 0xff, 192, 0, 2, 5]),
            Ipv4HomeAddress::new(ADDRESS, 32, true)
        );
    }

    #[test]
    fn a_failure_has_no_prefix() {
        let refused = Ipv4AddressAcknowledgement::decode([130, 24 << 2 | 3, 192, 0, 2, 5]).unwrap();
        assert_eq!(refused.prefix_len(), 0);
        assert_eq!(Ipv4AddressAcknowledgement::new(refused.status(), ADDRESS, 24), Some(refused));
        assert_eq!(Ipv4AddressAcknowledgement::decode([0, 33 << 2, 192, 0, 2, 5]), None);
    }
}
