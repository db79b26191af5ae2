//! Records of mobile nodes, of either version of IP, and the tables that they are in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_mobility::{v4, v6};
use redb::TableDefinition;

use super::{ipv6_record, record};

/// The record of a mobile node, of Mobile IPv4 or of Mobile IPv6. Each has a table of its own, and a file has one of them.
pub trait Stored: Sized {
    /// The bits of a home address.
    #[doc(hidden)]
    type Bits: Copy + redb::Key + for<'a> redb::Value<SelfType<'a> = Self::Bits> + 'static;
    /// Records by home address.
    #[doc(hidden)]
    const TABLE: TableDefinition<'static, Self::Bits, &'static [u8]>;

    /// The bits of the home address.
    #[doc(hidden)]
    fn bits(&self) -> Self::Bits;

    /// A home address as people write it.
    #[doc(hidden)]
    fn shown(bits: Self::Bits) -> IpAddr;

    /// As it is written.
    #[doc(hidden)]
    fn encode(&self) -> Vec<u8>;

    /// Reads it back.
    #[doc(hidden)]
    fn decode(bytes: &[u8]) -> Result<Self, String>;
}

impl Stored for v4::MobileNodeRecord {
    type Bits = u32;
    const TABLE: TableDefinition<'static, u32, &'static [u8]> = TableDefinition::new("mobile nodes");

    fn bits(&self) -> u32 {
        self.home_address.to_bits()
    }

    fn shown(bits: u32) -> IpAddr {
        Ipv4Addr::from_bits(bits).into()
    }

    fn encode(&self) -> Vec<u8> {
        record::encode(self)
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        record::decode(bytes)
    }
}

impl Stored for v6::MobileNodeRecord {
    type Bits = u128;
    const TABLE: TableDefinition<'static, u128, &'static [u8]> =
        TableDefinition::new("mobile nodes of Mobile IPv6");

    fn bits(&self) -> u128 {
        self.home_address.to_bits()
    }

    fn shown(bits: u128) -> IpAddr {
        Ipv6Addr::from_bits(bits).into()
    }

    fn encode(&self) -> Vec<u8> {
        ipv6_record::encode(self)
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        ipv6_record::decode(bytes)
    }
}
