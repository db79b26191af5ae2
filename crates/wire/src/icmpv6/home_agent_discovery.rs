//! Dynamic home agent address discovery and mobile prefix discovery (RFC 6275 sections 6.5 to 6.8).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::option::{NdOption, PrefixInformation};
use super::{HEADER_LEN, Header};
use crate::Error;

pub(super) const HOME_AGENT_ADDRESS_DISCOVERY_REQUEST: u8 = 144;
pub(super) const HOME_AGENT_ADDRESS_DISCOVERY_REPLY: u8 = 145;
pub(super) const MOBILE_PREFIX_SOLICITATION: u8 = 146;
pub(super) const MOBILE_PREFIX_ADVERTISEMENT: u8 = 147;

/// Home Agent Address Discovery Request (type 144), which a mobile node sends from a care-of address to
/// [`home_agents_anycast`](crate::ipv6::home_agents_anycast) of its home subnet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HomeAgentAddressDiscoveryRequest {
    /// Comes back in the reply.
    pub identifier: u16,
}

/// Home Agent Address Discovery Reply (type 145), straight to the source of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HomeAgentAddressDiscoveryReply {
    /// That of the request.
    pub identifier: u16,
    /// The global addresses of the home agents on the home link, the most preferable first (RFC 6275 section 10.5.1).
    pub home_agents: Vec<Ipv6Addr>,
}

/// Mobile Prefix Solicitation (type 146), from the care-of address with a Home Address option.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MobilePrefixSolicitation {
    /// Comes back in the advertisement.
    pub identifier: u16,
    /// None is defined; those that come are ignored.
    pub options: Vec<NdOption>,
}

/// Mobile Prefix Advertisement (type 147), with a type 2 routing header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MobilePrefixAdvertisement {
    /// That of the solicitation.
    pub identifier: u16,
    /// M: addresses are available by DHCPv6 on the home link.
    pub managed: bool,
    /// O: other configuration is available by DHCPv6 on the home link.
    pub other_configuration: bool,
    /// One or more [`NdOption::PrefixInformation`].
    pub options: Vec<NdOption>,
}

impl HomeAgentAddressDiscoveryRequest {
    pub(super) fn decode(header: Header) -> Result<Self, Error> {
        header.expect_code_0("Home Agent Address Discovery Request Code")?;
        Ok(Self { identifier: header.as_halves().0 })
    }

    pub(super) fn encode(&self) -> Header {
        Header::halves(HOME_AGENT_ADDRESS_DISCOVERY_REQUEST, 0, self.identifier, 0)
    }
}

impl HomeAgentAddressDiscoveryReply {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Home Agent Address Discovery Reply Code")?;
        let (addresses, rest) = body.as_chunks::<16>();
        if !rest.is_empty() {
            return Err(Error::Truncated {
                what: "home agent address",
                offset: HEADER_LEN + body.len() - rest.len(),
                needed: 16,
                found: rest.len(),
            });
        }
        let home_agents = addresses.iter().copied().map(Ipv6Addr::from).collect();
        Ok(Self { identifier: header.as_halves().0, home_agents })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(self.home_agents.iter().flat_map(Ipv6Addr::octets));
        Header::halves(HOME_AGENT_ADDRESS_DISCOVERY_REPLY, 0, self.identifier, 0)
    }
}

impl MobilePrefixSolicitation {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Mobile Prefix Solicitation Code")?;
        let options = NdOption::parse_all(body, HEADER_LEN)?;
        Ok(Self { identifier: header.as_halves().0, options })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        self.options.iter().for_each(|option| option.emit(bytes));
        Header::halves(MOBILE_PREFIX_SOLICITATION, 0, self.identifier, 0)
    }
}

impl MobilePrefixAdvertisement {
    const MANAGED: u16 = 0x8000;
    const OTHER: u16 = 0x4000;

    /// The prefix information options, in order.
    pub fn prefixes(&self) -> impl Iterator<Item = &PrefixInformation> {
        self.options.iter().filter_map(|option| match option {
            NdOption::PrefixInformation(prefix) => Some(prefix),
            _ => None,
        })
    }

    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Mobile Prefix Advertisement Code")?;
        let (identifier, flags) = header.as_halves();
        Ok(Self {
            identifier,
            managed: flags & Self::MANAGED != 0,
            other_configuration: flags & Self::OTHER != 0,
            options: NdOption::parse_all(body, HEADER_LEN)?,
        })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        self.options.iter().for_each(|option| option.emit(bytes));
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.managed, Self::MANAGED) | flag(self.other_configuration, Self::OTHER);
        Header::halves(MOBILE_PREFIX_ADVERTISEMENT, 0, self.identifier, flags)
    }
}
