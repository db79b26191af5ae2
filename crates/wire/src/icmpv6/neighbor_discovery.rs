//! The messages of neighbor discovery (RFC 4861 section 4), and when a received one is valid (sections 6.1, 7.1 and 8.1).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::map_option::MapOption;
use super::option::{HomeAgentInformation, NdOption, Nonce, PrefixInformation};
use super::units::{LinkLayerAddress, Milliseconds};
use super::{HEADER_LEN, Header, PrRtAdv, RtSolPr};
use crate::Error;
use crate::fixed::Fixed;
use crate::ipv6::{is_link_local, is_solicited_node};

/// The Hop Limit of every neighbor discovery message: no router can have forwarded it.
pub const HOP_LIMIT: u8 = 255;

pub(super) const ROUTER_SOLICITATION: u8 = 133;
pub(super) const ROUTER_ADVERTISEMENT: u8 = 134;
pub(super) const NEIGHBOR_SOLICITATION: u8 = 135;
pub(super) const NEIGHBOR_ADVERTISEMENT: u8 = 136;
pub(super) const REDIRECT: u8 = 137;

/// How much a router wants to be the default router (RFC 4191 section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouterPreference {
    /// 11 on the wire.
    Low,
    /// 00 on the wire, and what the reserved value 10 is taken for.
    #[default]
    Medium,
    /// 01 on the wire.
    High,
}

impl RouterPreference {
    const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::High,
            0b11 => Self::Low,
            _ => Self::Medium,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::High => 0b01,
            Self::Medium => 0b00,
            Self::Low => 0b11,
        }
    }
}

/// A Router Solicitation (type 133; RFC 4861 section 4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouterSolicitation {
    /// [`NdOption::SourceLinkLayerAddress`], unless the source address is unspecified.
    pub options: Vec<NdOption>,
}

/// A Router Advertisement (type 134; RFC 4861 section 4.2, with the H bit of RFC 6275 section 7.1 and the preference of RFC 4191
/// section 2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouterAdvertisement {
    /// Cur Hop Limit: what hosts shall write into the Hop Limit of what they send; 0 says nothing.
    pub cur_hop_limit: u8,
    /// M: addresses are available by DHCPv6.
    pub managed: bool,
    /// O: other configuration is available by DHCPv6.
    pub other_configuration: bool,
    /// H: the router is a home agent on this link.
    pub home_agent: bool,
    /// Prf: how much the router wants to be the default router.
    pub preference: RouterPreference,
    /// Router Lifetime: seconds for which the router is a default router; 0: it is none.
    pub router_lifetime_secs: u16,
    /// For how long a neighbor is taken for reachable after a confirmation; 0 says nothing.
    pub reachable_time: Milliseconds,
    /// The time between retransmitted neighbor solicitations; 0 says nothing.
    pub retrans_timer: Milliseconds,
    /// What follows, in order.
    pub options: Vec<NdOption>,
}

impl RouterAdvertisement {
    /// The prefix information options, in order.
    pub fn prefixes(&self) -> impl Iterator<Item = &PrefixInformation> {
        self.options.iter().filter_map(|option| match option {
            NdOption::PrefixInformation(prefix) => Some(prefix),
            _ => None,
        })
    }

    /// The router's own global addresses: those of the prefix options with the R bit.
    pub fn router_addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.prefixes().filter_map(PrefixInformation::router)
    }

    /// The mobility anchor points that serve the link (RFC 5380), in order.
    pub fn maps(&self) -> impl Iterator<Item = &MapOption> {
        self.options.iter().filter_map(|option| match option {
            NdOption::Map(map) => Some(map),
            _ => None,
        })
    }

    /// What the router says of itself as a home agent, with the defaults of RFC 6275 section 7.4; `None` without the H bit, where
    /// the option is not valid.
    #[must_use]
    pub fn home_agent_information(&self) -> Option<HomeAgentInformation> {
        let said = self.options.iter().find_map(|option| match option {
            NdOption::HomeAgentInformation(information) => Some(*information),
            _ => None,
        });
        let default = HomeAgentInformation { preference: 0, lifetime_secs: self.router_lifetime_secs };
        self.home_agent.then(|| said.unwrap_or(default))
    }

    /// The longest time between two unsolicited advertisements of the router, where it tells that.
    #[must_use]
    pub fn advertisement_interval(&self) -> Option<Milliseconds> {
        self.options.iter().find_map(|option| match option {
            NdOption::AdvertisementInterval(interval) => Some(*interval),
            _ => None,
        })
    }

    /// The MTU of the link, bytes, where the router tells it.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.options.iter().find_map(|option| match option {
            NdOption::Mtu(mtu) => Some(*mtu),
            _ => None,
        })
    }
}

/// A Neighbor Solicitation (type 135; RFC 4861 section 4.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NeighborSolicitation {
    /// Whose link-layer address is asked for; no multicast address.
    pub target: Ipv6Addr,
    /// [`NdOption::SourceLinkLayerAddress`], unless the source address is unspecified; in duplicate address detection
    /// [`NdOption::Nonce`] (RFC 7527).
    pub options: Vec<NdOption>,
}

impl NeighborSolicitation {
    /// The nonce, where there is one.
    #[must_use]
    pub fn nonce(&self) -> Option<&Nonce> {
        self.options.iter().find_map(|option| match option {
            NdOption::Nonce(nonce) => Some(nonce),
            _ => None,
        })
    }
}

/// A Neighbor Advertisement (type 136; RFC 4861 section 4.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NeighborAdvertisement {
    /// R: the sender is a router.
    pub router: bool,
    /// S: it answers a solicitation, and so confirms reachability.
    pub solicited: bool,
    /// O: it overrides a cached link-layer address.
    pub override_flag: bool,
    /// The address whose link-layer address this is about; no multicast address.
    pub target: Ipv6Addr,
    /// [`NdOption::TargetLinkLayerAddress`].
    pub options: Vec<NdOption>,
}

/// A Redirect (type 137; RFC 4861 section 4.5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// The better first hop, or the destination itself where it is a neighbor.
    pub target: Ipv6Addr,
    /// The destination that is redirected.
    pub destination: Ipv6Addr,
    /// [`NdOption::TargetLinkLayerAddress`] and [`NdOption::RedirectedHeader`].
    pub options: Vec<NdOption>,
}

/// The Source Link-Layer Address among `options`.
#[must_use]
pub fn source_link_layer_address(options: &[NdOption]) -> Option<LinkLayerAddress> {
    options.iter().find_map(|option| match option {
        NdOption::SourceLinkLayerAddress(address) => Some(*address),
        _ => None,
    })
}

/// The Target Link-Layer Address among `options`.
#[must_use]
pub fn target_link_layer_address(options: &[NdOption]) -> Option<LinkLayerAddress> {
    options.iter().find_map(|option| match option {
        NdOption::TargetLinkLayerAddress(address) => Some(*address),
        _ => None,
    })
}

/// The fields of the IP header that decide whether a neighbor discovery message is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpFields {
    /// Source Address.
    pub source: Ipv6Addr,
    /// Destination Address.
    pub destination: Ipv6Addr,
    /// Hop Limit, as received.
    pub hop_limit: u8,
}

/// Why a neighbor discovery message, sound in itself, is silently discarded (RFC 4861 sections 6.1, 7.1 and 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotValid {
    /// It may have been forwarded: its Hop Limit is not 255.
    #[error("the Hop Limit is {found}, not 255: the message can come from another link")]
    HopLimit {
        /// The Hop Limit received.
        found: u8,
    },
    /// Routers send advertisements and redirects from their link-local addresses.
    #[error("the source {found} of a router is no link-local address")]
    SourceNotLinkLocal {
        /// The source address.
        found: Ipv6Addr,
    },
    /// Whoever has no address yet has no link-layer address to tell either.
    #[error("a source link-layer address comes from the unspecified address")]
    LinkLayerAddressOfNobody,
    /// Duplicate address detection asks the solicited-node group of the address, and nobody else.
    #[error("the unspecified address solicits {found}, which is no solicited-node multicast address")]
    NotSolicitedNode {
        /// The destination address.
        found: Ipv6Addr,
    },
    /// An answer goes to who asked.
    #[error("an advertisement to the multicast address {found} claims to be solicited")]
    SolicitedToMany {
        /// The destination address.
        found: Ipv6Addr,
    },
    /// A redirect's target is neither a router nor the destination.
    #[error("the target {target} of a redirect is neither link-local nor the destination {destination}")]
    RedirectTarget {
        /// Target Address.
        target: Ipv6Addr,
        /// Destination Address.
        destination: Ipv6Addr,
    },
}

impl RouterSolicitation {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Router Solicitation Code")?;
        Ok(Self { options: NdOption::parse_all(body, HEADER_LEN)? })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        emit_options(&self.options, bytes);
        Header { kind: ROUTER_SOLICITATION, code: 0, rest: [0; 4] }
    }

    /// Whether a router may act on it (RFC 4861 section 6.1.1).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        ip.check_source_link_layer_address(&self.options)
    }
}

impl RouterAdvertisement {
    const MANAGED: u8 = 0x80;
    const OTHER: u8 = 0x40;
    const HOME_AGENT: u8 = 0x20;
    const PREFERENCE_SHIFT: u8 = 3;
    /// Reachable Time and Retrans Timer.
    const TIMERS_LEN: usize = 8;

    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Router Advertisement Code")?;
        let (timers, options) = Fixed::<{ Self::TIMERS_LEN }>::split(body, "Router Advertisement")
            .map_err(|error| error.shifted(HEADER_LEN))?;
        let [cur_hop_limit, flags, lifetime @ ..] = header.rest;
        Ok(Self {
            cur_hop_limit,
            managed: flags & Self::MANAGED != 0,
            other_configuration: flags & Self::OTHER != 0,
            home_agent: flags & Self::HOME_AGENT != 0,
            preference: RouterPreference::from_bits(flags >> Self::PREFERENCE_SHIFT),
            router_lifetime_secs: u16::from_be_bytes(lifetime),
            reachable_time: Milliseconds(timers.u32::<0>()),
            retrans_timer: Milliseconds(timers.u32::<4>()),
            options: NdOption::parse_all(options, HEADER_LEN + Self::TIMERS_LEN)?,
        })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(self.reachable_time.0.to_be_bytes());
        bytes.extend(self.retrans_timer.0.to_be_bytes());
        emit_options(&self.options, bytes);
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.managed, Self::MANAGED)
            | flag(self.other_configuration, Self::OTHER)
            | flag(self.home_agent, Self::HOME_AGENT)
            | self.preference.bits() << Self::PREFERENCE_SHIFT;
        let [high, low] = self.router_lifetime_secs.to_be_bytes();
        Header { kind: ROUTER_ADVERTISEMENT, code: 0, rest: [self.cur_hop_limit, flags, high, low] }
    }

    /// Whether a node may act on it (RFC 4861 section 6.1.2).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        ip.check_source_is_link_local()
    }
}

impl NeighborSolicitation {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Neighbor Solicitation Code")?;
        let (target, options) = split_target(body, "Neighbor Solicitation")?;
        Ok(Self { target, options: NdOption::parse_all(options, HEADER_LEN + 16)? })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        debug_assert!(!self.target.is_multicast(), "a target is no multicast address");
        bytes.extend(self.target.octets());
        emit_options(&self.options, bytes);
        Header { kind: NEIGHBOR_SOLICITATION, code: 0, rest: [0; 4] }
    }

    /// Whether a node may act on it (RFC 4861 section 7.1.1).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        if ip.source.is_unspecified() && !is_solicited_node(ip.destination) {
            return Err(NotValid::NotSolicitedNode { found: ip.destination });
        }
        ip.check_source_link_layer_address(&self.options)
    }
}

impl NeighborAdvertisement {
    const ROUTER: u8 = 0x80;
    const SOLICITED: u8 = 0x40;
    const OVERRIDE: u8 = 0x20;

    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Neighbor Advertisement Code")?;
        let (target, options) = split_target(body, "Neighbor Advertisement")?;
        let [flags, ..] = header.rest;
        Ok(Self {
            router: flags & Self::ROUTER != 0,
            solicited: flags & Self::SOLICITED != 0,
            override_flag: flags & Self::OVERRIDE != 0,
            target,
            options: NdOption::parse_all(options, HEADER_LEN + 16)?,
        })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        debug_assert!(!self.target.is_multicast(), "a target is no multicast address");
        bytes.extend(self.target.octets());
        emit_options(&self.options, bytes);
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.router, Self::ROUTER)
            | flag(self.solicited, Self::SOLICITED)
            | flag(self.override_flag, Self::OVERRIDE);
        Header { kind: NEIGHBOR_ADVERTISEMENT, code: 0, rest: [flags, 0, 0, 0] }
    }

    /// Whether a node may act on it (RFC 4861 section 7.1.2).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        if ip.destination.is_multicast() && self.solicited {
            return Err(NotValid::SolicitedToMany { found: ip.destination });
        }
        Ok(())
    }
}

impl Redirect {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Redirect Code")?;
        let (fixed, options) =
            Fixed::<32>::split(body, "Redirect").map_err(|error| error.shifted(HEADER_LEN))?;
        let (target, destination) = (fixed.ipv6_address::<0>(), fixed.ipv6_address::<16>());
        if destination.is_multicast() {
            return Err(Error::Invalid {
                field: "Redirect Destination Address",
                offset: HEADER_LEN + 16,
                found: u32::from(destination.octets()[0]),
                expected: "no multicast address",
            });
        }
        Ok(Self { target, destination, options: NdOption::parse_all(options, HEADER_LEN + 32)? })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        debug_assert!(!self.destination.is_multicast(), "nobody redirects a multicast address");
        bytes.extend(self.target.octets());
        bytes.extend(self.destination.octets());
        emit_options(&self.options, bytes);
        Header { kind: REDIRECT, code: 0, rest: [0; 4] }
    }

    /// Whether a host may act on it (RFC 4861 section 8.1), but for the rule that it comes from the first hop of its destination,
    /// which the host has to know.
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        ip.check_source_is_link_local()?;
        let Self { target, destination, .. } = *self;
        if is_link_local(target) || target == destination {
            return Ok(());
        }
        Err(NotValid::RedirectTarget { target, destination })
    }
}

impl RtSolPr {
    /// Whether a router may act on it (RFC 5568 section 6.1.1).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()
    }
}

impl PrRtAdv {
    /// Whether a mobile node may act on it (RFC 5568 section 6.1.2).
    ///
    /// # Errors
    ///
    /// [`NotValid`]: it is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        ip.check_hop_limit()?;
        ip.check_source_is_link_local()
    }
}

impl IpFields {
    fn check_hop_limit(&self) -> Result<(), NotValid> {
        if self.hop_limit == HOP_LIMIT {
            return Ok(());
        }
        Err(NotValid::HopLimit { found: self.hop_limit })
    }

    fn check_source_is_link_local(&self) -> Result<(), NotValid> {
        if is_link_local(self.source) {
            return Ok(());
        }
        Err(NotValid::SourceNotLinkLocal { found: self.source })
    }

    fn check_source_link_layer_address(&self, options: &[NdOption]) -> Result<(), NotValid> {
        if self.source.is_unspecified() && source_link_layer_address(options).is_some() {
            return Err(NotValid::LinkLayerAddressOfNobody);
        }
        Ok(())
    }
}

fn emit_options(options: &[NdOption], bytes: &mut Vec<u8>) {
    options.iter().for_each(|option| option.emit(bytes));
}

/// Splits the Target Address off a neighbor solicitation or advertisement.
fn split_target<'a>(body: &'a [u8], what: &'static str) -> Result<(Ipv6Addr, &'a [u8]), Error> {
    let (fixed, options) = Fixed::<16>::split(body, what).map_err(|error| error.shifted(HEADER_LEN))?;
    let target = fixed.ipv6_address::<0>();
    if target.is_multicast() {
        return Err(Error::Invalid {
            field: "Target Address",
            offset: HEADER_LEN,
            found: u32::from(target.octets()[0]),
            expected: "no multicast address",
        });
    }
    Ok((target, options))
}
