//! Router discovery (RFC 1256), which agent discovery (RFC 5944 section 2.1) extends.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use etherparse::icmpv4::TYPE_ROUTER_ADVERTISEMENT;

use super::{AdvertisementExtension, HEADER_LEN, Header, MobilityAgentAdvertisement};
use crate::Error;

/// The Code of a mobility agent that does not route common traffic.
const CODE_NO_COMMON_TRAFFIC: u8 = 16;
/// A router address and its preference level, in 32-bit words.
const ADDR_ENTRY_SIZE: u8 = 2;
/// The same in bytes.
const ENTRY_LEN: usize = 8;

/// A router and how much it wants to be the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouterAddress {
    /// The router's address on the link.
    pub address: Ipv4Addr,
    /// The preference level: the higher, the more preferable. `i32::MIN`: not as a default.
    pub preference: i32,
}

/// A Router Advertisement; with a [`MobilityAgentAdvertisement`] among its extensions, an agent
/// advertisement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouterAdvertisement {
    /// Code 16 instead of 0: the agent does not route datagrams that have nothing to do with mobile nodes
    /// (RFC 5944 section 2.1).
    pub no_common_traffic: bool,
    /// Lifetime: seconds the router addresses are valid for.
    pub lifetime_secs: u16,
    /// The routers, 255 at most. An agent advertisement may have none.
    pub routers: Vec<RouterAddress>,
    /// What follows them, in order.
    pub extensions: Vec<AdvertisementExtension>,
}

impl RouterAdvertisement {
    /// The most routers Num Addrs can tell.
    pub const MAX_ROUTERS: usize = u8::MAX as usize;

    /// The first mobility agent extension, if this is an agent advertisement.
    #[must_use]
    pub fn mobility_agent(&self) -> Option<&MobilityAgentAdvertisement> {
        self.extensions.iter().find_map(|extension| match extension {
            AdvertisementExtension::MobilityAgent(agent) => Some(agent),
            _ => None,
        })
    }

    /// The prefix length of the network of router number `router`, bits, where a prefix-lengths extension
    /// tells it (RFC 5944 section 2.1.2).
    #[must_use]
    pub fn prefix_length(&self, router: usize) -> Option<u8> {
        self.extensions.iter().find_map(|extension| match extension {
            AdvertisementExtension::PrefixLengths(lengths) => lengths.get(router).copied(),
            _ => None,
        })
    }

    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        let no_common_traffic = match header.code {
            0 => false,
            CODE_NO_COMMON_TRAFFIC => true,
            code => {
                return Err(Error::Invalid {
                    field: "Router Advertisement Code",
                    offset: 1,
                    found: u32::from(code),
                    expected: "0 or 16",
                });
            }
        };
        let [num_addrs, entry_size, lifetime @ ..] = header.rest;
        if entry_size < ADDR_ENTRY_SIZE {
            return Err(Error::Invalid {
                field: "Addr Entry Size",
                offset: 5,
                found: u32::from(entry_size),
                expected: "2 or more",
            });
        }
        // Entries may be longer than what this edition defines (RFC 1256 section 5.2).
        let entry_len = usize::from(entry_size) * 4;
        let routers_len = usize::from(num_addrs) * entry_len;
        let Some((entries, extensions)) = body.split_at_checked(routers_len) else {
            return Err(Error::Truncated {
                what: "router addresses",
                offset: HEADER_LEN,
                needed: routers_len,
                found: body.len(),
            });
        };
        let routers = entries.chunks_exact(entry_len).filter_map(|entry| {
            let &[a, b, c, d, preference @ ..] = entry.first_chunk::<ENTRY_LEN>()?;
            Some(RouterAddress {
                address: Ipv4Addr::new(a, b, c, d),
                preference: i32::from_be_bytes(preference),
            })
        });
        Ok(Self {
            no_common_traffic,
            lifetime_secs: u16::from_be_bytes(lifetime),
            routers: routers.collect(),
            extensions: AdvertisementExtension::parse_all(extensions, HEADER_LEN + routers_len)?,
        })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        debug_assert!(self.routers.len() <= Self::MAX_ROUTERS, "Num Addrs is one octet");
        let routers = self.routers.get(..Self::MAX_ROUTERS).unwrap_or(&self.routers);
        for router in routers {
            bytes.extend(router.address.octets());
            bytes.extend(router.preference.to_be_bytes());
        }
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
        let [high, low] = self.lifetime_secs.to_be_bytes();
        Header {
            kind: TYPE_ROUTER_ADVERTISEMENT,
            code: if self.no_common_traffic { CODE_NO_COMMON_TRAFFIC } else { 0 },
            rest: [routers.len() as u8, ADDR_ENTRY_SIZE, high, low],
        }
    }
}

/// A Router Solicitation; also what asks for an agent advertisement (RFC 5944 section 2.2: then with an IP
/// TTL of 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouterSolicitation;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::{AgentFlags, IcmpMessage};
    use crate::mip4::Lifetime;

    fn advertisement() -> RouterAdvertisement {
        RouterAdvertisement {
            no_common_traffic: true,
            lifetime_secs: 3,
            routers: alloc::vec![RouterAddress { address: Ipv4Addr::new(10, 1, 0, 1), preference: -1 }],
            extensions: alloc::vec![
                AdvertisementExtension::MobilityAgent(MobilityAgentAdvertisement {
                    sequence: 256,
                    registration_lifetime: Lifetime::from_secs(600),
                    flags: AgentFlags::FOREIGN_AGENT.with(AgentFlags::REGISTRATION_REQUIRED),
                    care_of_addresses: alloc::vec![Ipv4Addr::new(10, 1, 0, 2)],
                }),
                AdvertisementExtension::PrefixLengths(alloc::vec![24]),
                AdvertisementExtension::OneBytePadding,
            ],
        }
    }

    #[test]
    fn an_agent_advertisement_has_the_layout_of_the_rfc() {
        let message = IcmpMessage::RouterAdvertisement(advertisement());
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        assert_eq!(bytes[..2], [9, 16]);
        assert_eq!(
            bytes[4..],
            [
                1, 2, 0, 3, 10, 1, 0, 1, 255, 255, 255, 255, 16, 10, 1, 0, 2, 88, 0x90, 0, 10, 1, 0, 2, 19,
                1, 24, 0
            ]
        );
        assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn prefix_lengths_go_with_the_routers_in_order() {
        let advertisement = advertisement();
        assert_eq!(advertisement.prefix_length(0), Some(24));
        assert_eq!(advertisement.prefix_length(1), None);
        assert_eq!(advertisement.mobility_agent().unwrap().sequence, 256);
    }

    #[test]
    fn longer_address_entries_are_read_by_their_first_two_words() {
        let header = Header { kind: 9, code: 0, rest: [1, 3, 0, 9] };
        let body = [10, 0, 0, 1, 0, 0, 0, 5, 0xaa, 0xaa, 0xaa, 0xaa];
        let router = RouterAddress { address: Ipv4Addr::new(10, 0, 0, 1), preference: 5 };
        assert_eq!(RouterAdvertisement::decode(header, &body).unwrap().routers, [router]);
        let header = Header { rest: [1, 1, 0, 9], ..header };
        assert!(matches!(
            RouterAdvertisement::decode(header, &body),
            Err(Error::Invalid { field: "Addr Entry Size", found: 1, .. })
        ));
    }

    #[test]
    fn more_routers_than_bytes_are_refused() {
        let header = Header { kind: 9, code: 0, rest: [2, 2, 0, 9] };
        assert_eq!(
            RouterAdvertisement::decode(header, &[0; 15]),
            Err(Error::Truncated { what: "router addresses", offset: 8, needed: 16, found: 15 })
        );
    }
}
