//! The options of neighbor discovery (RFC 4861 section 4.6), those of fast handovers among them (RFC 5568 section 6.4).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::fast_handover::NaackStatus;
use super::map_option::MapOption;
use super::units::{LinkLayerAddress, Milliseconds, PrefixLifetime};
use super::{AddressRole, HandoverAddress, HandoverLinkLayerAddress, LinkLayerRole};
use crate::Error;
use crate::fixed::Fixed;

const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
const TARGET_LINK_LAYER_ADDRESS: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const REDIRECTED_HEADER: u8 = 4;
const MTU: u8 = 5;
const ADVERTISEMENT_INTERVAL: u8 = 7;
const HOME_AGENT_INFORMATION: u8 = 8;
const NONCE: u8 = 14;
const MAP: u8 = 23;
const HANDOVER_ADDRESS: u8 = 17;
const HANDOVER_LINK_LAYER_ADDRESS: u8 = 19;
const NEIGHBOR_ADVERTISEMENT_ACKNOWLEDGEMENT: u8 = 20;

/// The unit of the Length, bytes.
const UNIT: usize = 8;
/// Type and Length.
const HEADER_LEN: usize = 2;
/// The most bytes of data an option can have: 255 units.
const MAX_DATA: usize = u8::MAX as usize * UNIT - HEADER_LEN;

/// The Prefix Information option (type 3; RFC 4861 section 4.6.2, with the R bit of RFC 6275 section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixInformation {
    /// The leading bits of [`prefix`](Self::prefix) that are valid, 0 to 128.
    pub prefix_length: u8,
    /// L: the prefix can be used for on-link determination. When it is clear the option says nothing of it.
    pub on_link: bool,
    /// A: the prefix can be used for stateless address configuration (RFC 4862).
    pub autonomous: bool,
    /// R: the field holds a complete address of the router that sends it (RFC 6275 section 7.2).
    pub router_address: bool,
    /// For how long the prefix is valid for on-link determination, and addresses made of it are.
    pub valid_lifetime: PrefixLifetime,
    /// For how long addresses made of it remain preferred. It is not to exceed
    /// [`valid_lifetime`](Self::valid_lifetime); receivers ignore an option in which it does (RFC 4862
    /// section 5.5.3).
    pub preferred_lifetime: PrefixLifetime,
    /// The prefix; with the R bit a whole address, otherwise the bits behind the prefix are ignored.
    pub prefix: Ipv6Addr,
}

/// Offsets in a Prefix Information option, behind Type and Length.
mod prefix {
    pub(super) const PREFIX_LENGTH: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const VALID_LIFETIME: usize = 2;
    pub(super) const PREFERRED_LIFETIME: usize = 6;
    pub(super) const PREFIX: usize = 14;
    pub(super) const LEN: usize = 30;
    pub(super) const ON_LINK: u8 = 0x80;
    pub(super) const AUTONOMOUS: u8 = 0x40;
    pub(super) const ROUTER_ADDRESS: u8 = 0x20;
}

impl PrefixInformation {
    /// The prefix alone: the bits behind it are zero.
    #[must_use]
    pub const fn masked_prefix(&self) -> Ipv6Addr {
        let bits = self.prefix.to_bits();
        match self.prefix_length {
            0 => Ipv6Addr::UNSPECIFIED,
            1..=127 => Ipv6Addr::from_bits(bits & (u128::MAX << (128 - self.prefix_length))),
            _ => self.prefix,
        }
    }

    /// The router's own address, where the R bit says that there is one.
    #[must_use]
    pub fn router(&self) -> Option<Ipv6Addr> {
        self.router_address.then_some(self.prefix)
    }

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let fixed = frame.exactly::<{ prefix::LEN }>("4")?;
        let prefix_length = fixed.u8::<{ prefix::PREFIX_LENGTH }>();
        if prefix_length > 128 {
            let (field, offset) = ("Prefix Length", HEADER_LEN + prefix::PREFIX_LENGTH);
            return Err(Error::Invalid {
                field,
                offset,
                found: u32::from(prefix_length),
                expected: "0 to 128",
            });
        }
        let flags = fixed.u8::<{ prefix::FLAGS }>();
        Ok(Self {
            prefix_length,
            on_link: flags & prefix::ON_LINK != 0,
            autonomous: flags & prefix::AUTONOMOUS != 0,
            router_address: flags & prefix::ROUTER_ADDRESS != 0,
            valid_lifetime: PrefixLifetime::from_secs(fixed.u32::<{ prefix::VALID_LIFETIME }>()),
            preferred_lifetime: PrefixLifetime::from_secs(fixed.u32::<{ prefix::PREFERRED_LIFETIME }>()),
            prefix: fixed.ipv6_address::<{ prefix::PREFIX }>(),
        })
    }

    fn encode(&self) -> Fixed<{ prefix::LEN }> {
        debug_assert!(self.prefix_length <= 128, "longer than an address");
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.on_link, prefix::ON_LINK)
            | flag(self.autonomous, prefix::AUTONOMOUS)
            | flag(self.router_address, prefix::ROUTER_ADDRESS);
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ prefix::PREFIX_LENGTH }, 1>([self.prefix_length.min(128)]);
        fixed.put::<{ prefix::FLAGS }, 1>([flags]);
        fixed.put::<{ prefix::VALID_LIFETIME }, 4>(self.valid_lifetime.as_secs().to_be_bytes());
        fixed.put::<{ prefix::PREFERRED_LIFETIME }, 4>(self.preferred_lifetime.as_secs().to_be_bytes());
        fixed.put::<{ prefix::PREFIX }, 16>(self.prefix.octets());
        fixed
    }
}

/// The Home Agent Information option (type 8; RFC 6275 section 7.4). Only router advertisements with the H
/// bit carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeAgentInformation {
    /// The higher, the more preferable in the list of a Home Agent Address Discovery Reply. Without the option it is 0.
    pub preference: u16,
    /// Home Agent Lifetime, seconds. Without the option it is the Router Lifetime. Nobody is to send 0; a receiver takes it for
    /// the end of the home agent's service (RFC 6275 section 10.5.1).
    pub lifetime_secs: u16,
}

/// A Nonce option (type 14; RFC 3971 section 5.3.2), by which a node tells its own looped back solicitation
/// from another node's (RFC 7527).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nonce(Vec<u8>);

impl Nonce {
    /// Bytes of the shortest nonce, which RFC 7527 section 4.1 asks for.
    pub const MIN_LEN: usize = 6;

    /// The nonce of 6 bytes.
    #[must_use]
    pub fn new(nonce: [u8; Self::MIN_LEN]) -> Self {
        Self(nonce.to_vec())
    }

    /// The bytes: 6, and perhaps some units of 8 more.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A Neighbor Advertisement Acknowledgment option (type 20; RFC 5568 section 6.4.6), in a Router Advertisement: the care-of address that a
/// mobile node has announced is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Naack {
    /// What to do.
    pub status: NaackStatus,
    /// The address to use instead. The RFC calls it an IP Address option; by its Length, which is 3, it is the address alone.
    pub address: Option<Ipv6Addr>,
}

impl Naack {
    /// Option-Code, Status and Reserved.
    const FIXED_LEN: usize = 6;

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let (fixed, address) = Fixed::<{ Self::FIXED_LEN }>::split(frame.data, "NAACK option")?;
        let address = match address {
            [] => None,
            bytes => {
                let octets: [u8; 16] = bytes.try_into().map_err(|_| frame.wrong_length("1 or 3"))?;
                Some(Ipv6Addr::from(octets))
            }
        };
        Ok(Self { status: NaackStatus::from_number(fixed.u8::<1>()), address })
    }

    fn emit(&self, bytes: &mut Vec<u8>) {
        let fixed = [0, self.status.number(), 0, 0, 0, 0];
        let address = self.address.map(|address| address.octets());
        let address = address.as_ref().map_or(&[][..], |octets| octets);
        emit_framed(NEIGHBOR_ADVERTISEMENT_ACKNOWLEDGEMENT, &[&fixed, address], bytes);
    }
}

/// Offsets in an IP Address/Prefix option, behind Type and Length (RFC 5568 section 6.4.1).
mod handover_address {
    pub(super) const OPTION_CODE: usize = 0;
    pub(super) const PREFIX_LENGTH: usize = 1;
    pub(super) const ADDRESS: usize = 6;
    pub(super) const LEN: usize = 22;
}

fn decode_handover_address(frame: &Frame<'_>) -> Result<HandoverAddress, Error> {
    let fixed = frame.exactly::<{ handover_address::LEN }>("3")?;
    let role = AddressRole::from_number(fixed.u8::<{ handover_address::OPTION_CODE }>());
    let prefix_len = fixed.u8::<{ handover_address::PREFIX_LENGTH }>();
    let address = fixed.ipv6_address::<{ handover_address::ADDRESS }>();
    HandoverAddress::with_prefix_len(role, address, prefix_len).ok_or(Error::Invalid {
        field: "IP Address/Prefix Prefix Length",
        offset: HEADER_LEN + handover_address::PREFIX_LENGTH,
        found: u32::from(prefix_len),
        expected: "0 to 128",
    })
}

fn emit_handover_address(option: &HandoverAddress, bytes: &mut Vec<u8>) {
    let head = [option.role.number(), option.prefix_len(), 0, 0, 0, 0];
    emit_framed(HANDOVER_ADDRESS, &[&head, &option.address.octets()], bytes);
}

/// The Link-Layer Address option (RFC 5568 section 6.4.3): `None` when the address is not one of IEEE 802. The option does not tell its
/// length, but what follows 6 bytes is padding only when it is zero. A wildcard needs no address.
fn decode_handover_link_layer_address(data: &[u8]) -> Option<HandoverLinkLayerAddress> {
    let (&role, rest) = data.split_first()?;
    let role = LinkLayerRole::from_number(role);
    if role == LinkLayerRole::Wildcard {
        return Some(HandoverLinkLayerAddress::WILDCARD);
    }
    let (address, padding) = rest.split_first_chunk::<6>()?;
    let is_ieee_802 = padding.iter().all(|byte| *byte == 0);
    is_ieee_802.then_some(HandoverLinkLayerAddress { role, address: LinkLayerAddress(*address) })
}

/// An option of a type that is not known here, or a link-layer address that is not one of IEEE 802. It is ignored (RFC 4861
/// section 4.6), and kept for whoever shows or forwards the message.
///
/// An option that has a variant of its own is not made this way: a receiver would see that variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownOption {
    kind: u8,
    data: Vec<u8>,
}

impl UnknownOption {
    /// An option of type `kind`; `None` when `data` with Type and Length is no whole number of 8 bytes, or more than 255 times
    /// 8 bytes.
    #[must_use]
    pub fn new(kind: u8, data: &[u8]) -> Option<Self> {
        let fits = data.len() <= MAX_DATA && (data.len() + HEADER_LEN).is_multiple_of(UNIT);
        fits.then(|| Self { kind, data: data.to_vec() })
    }

    /// The Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// What follows Type and Length.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// An option of a neighbor discovery message, or of a mobile prefix solicitation or advertisement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NdOption {
    /// Type 1: the link-layer address of the sender.
    SourceLinkLayerAddress(LinkLayerAddress),
    /// Type 2: the link-layer address of the target.
    TargetLinkLayerAddress(LinkLayerAddress),
    /// Type 3.
    PrefixInformation(PrefixInformation),
    /// Type 4, in a Redirect: the start of the packet that it is about; at most [`NdOption::MAX_REDIRECTED`] bytes, a multiple
    /// of 8.
    RedirectedHeader(Vec<u8>),
    /// Type 5: the MTU that all nodes of the link shall use, bytes.
    Mtu(u32),
    /// Type 7: the longest time between two unsolicited advertisements of the router (RFC 6275 section 7.3).
    AdvertisementInterval(Milliseconds),
    /// Type 8.
    HomeAgentInformation(HomeAgentInformation),
    /// Type 14.
    Nonce(Nonce),
    /// Type 23, in a router advertisement: a mobility anchor point (RFC 5380 section 5).
    Map(MapOption),
    /// Type 17 (RFC 5568).
    HandoverAddress(HandoverAddress),
    /// Type 19 (RFC 5568).
    HandoverLinkLayerAddress(HandoverLinkLayerAddress),
    /// Type 20 (RFC 5568).
    Naack(Naack),
    /// Any other: ignored.
    Unknown(UnknownOption),
}

/// An option as it is framed.
struct Frame<'a> {
    kind: u8,
    data: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Splits the first option off `bytes`.
    fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let truncated = |needed| Error::Truncated {
            what: "neighbor discovery option",
            offset: 0,
            needed,
            found: bytes.len(),
        };
        let Some(&[kind, units]) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(truncated(UNIT));
        };
        if units == 0 {
            let field = "neighbor discovery option Length";
            return Err(Error::Invalid { field, offset: 1, found: 0, expected: "1 or more" });
        }
        let len = usize::from(units) * UNIT;
        match bytes.split_at_checked(len) {
            Some((option, rest)) => {
                Ok((Self { kind, data: option.get(HEADER_LEN..).unwrap_or_default() }, rest))
            }
            None => Err(truncated(len)),
        }
    }

    /// The data, where it has the one length that its type can have.
    fn exactly<const N: usize>(&self, expected: &'static str) -> Result<Fixed<N>, Error> {
        match Fixed::<N>::split(self.data, "neighbor discovery option") {
            Ok((fixed, [])) => Ok(fixed),
            _ => Err(self.wrong_length(expected)),
        }
    }

    fn wrong_length(&self, expected: &'static str) -> Error {
        let units = (self.data.len() + HEADER_LEN) / UNIT;
        let field = "neighbor discovery option Length";
        Error::Invalid { field, offset: 1, found: units as u32, expected }
    }
}

impl NdOption {
    /// The most bytes that a [`NdOption::RedirectedHeader`] quotes.
    pub const MAX_REDIRECTED: usize = MAX_DATA - 6;

    /// Appends the option.
    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::SourceLinkLayerAddress(address) => {
                emit_framed(SOURCE_LINK_LAYER_ADDRESS, &[&address.0], bytes);
            }
            Self::TargetLinkLayerAddress(address) => {
                emit_framed(TARGET_LINK_LAYER_ADDRESS, &[&address.0], bytes);
            }
            Self::PrefixInformation(prefix) => {
                emit_framed(PREFIX_INFORMATION, &[prefix.encode().bytes()], bytes);
            }
            Self::RedirectedHeader(packet) => {
                debug_assert!(packet.len().is_multiple_of(UNIT), "the Length counts units of 8 bytes");
                emit_framed(REDIRECTED_HEADER, &[&[0; 6], packet], bytes);
            }
            Self::Mtu(mtu) => emit_framed(MTU, &[&[0; 2], &mtu.to_be_bytes()], bytes),
            Self::AdvertisementInterval(interval) => {
                emit_framed(ADVERTISEMENT_INTERVAL, &[&[0; 2], &interval.0.to_be_bytes()], bytes);
            }
            Self::HomeAgentInformation(HomeAgentInformation { preference, lifetime_secs }) => {
                let parts: [&[u8]; 3] = [&[0; 2], &preference.to_be_bytes(), &lifetime_secs.to_be_bytes()];
                emit_framed(HOME_AGENT_INFORMATION, &parts, bytes);
            }
            Self::Nonce(nonce) => emit_framed(NONCE, &[&nonce.0], bytes),
            Self::Map(map) => emit_framed(MAP, &[map.encode().bytes()], bytes),
            Self::HandoverAddress(option) => emit_handover_address(option, bytes),
            Self::HandoverLinkLayerAddress(option) => {
                let parts: [&[u8]; 2] = [&[option.role.number()], &option.address.0];
                emit_framed(HANDOVER_LINK_LAYER_ADDRESS, &parts, bytes);
            }
            Self::Naack(option) => option.emit(bytes),
            Self::Unknown(option) => emit_framed(option.kind, &[&option.data], bytes),
        }
    }

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let address = || frame.data.try_into().map(LinkLayerAddress);
        let unknown = || Self::Unknown(UnknownOption { kind: frame.kind, data: frame.data.to_vec() });
        Ok(match frame.kind {
            SOURCE_LINK_LAYER_ADDRESS => address().map_or_else(|_| unknown(), Self::SourceLinkLayerAddress),
            TARGET_LINK_LAYER_ADDRESS => address().map_or_else(|_| unknown(), Self::TargetLinkLayerAddress),
            PREFIX_INFORMATION => Self::PrefixInformation(PrefixInformation::decode(frame)?),
            REDIRECTED_HEADER => Self::RedirectedHeader(frame.data.get(6..).unwrap_or_default().to_vec()),
            MTU => Self::Mtu(frame.exactly::<6>("1")?.u32::<2>()),
            ADVERTISEMENT_INTERVAL => {
                Self::AdvertisementInterval(Milliseconds(frame.exactly::<6>("1")?.u32::<2>()))
            }
            HOME_AGENT_INFORMATION => {
                let fixed = frame.exactly::<6>("1")?;
                let (preference, lifetime_secs) = (fixed.u16::<2>(), fixed.u16::<4>());
                Self::HomeAgentInformation(HomeAgentInformation { preference, lifetime_secs })
            }
            NONCE => Self::Nonce(Nonce(frame.data.to_vec())),
            MAP => Self::Map(MapOption::decode(&frame.exactly::<{ MapOption::LEN }>("3")?)),
            HANDOVER_ADDRESS => Self::HandoverAddress(decode_handover_address(frame)?),
            HANDOVER_LINK_LAYER_ADDRESS => decode_handover_link_layer_address(frame.data)
                .map_or_else(unknown, Self::HandoverLinkLayerAddress),
            NEIGHBOR_ADVERTISEMENT_ACKNOWLEDGEMENT => Self::Naack(Naack::decode(frame)?),
            _ => unknown(),
        })
    }

    /// The options that fill `bytes`, which start `offset` bytes into the message.
    pub(super) fn parse_all(mut bytes: &[u8], mut offset: usize) -> Result<Vec<Self>, Error> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let (frame, rest) = Frame::split(bytes).map_err(|error| error.shifted(offset))?;
            options.push(Self::decode(&frame).map_err(|error| error.shifted(offset))?);
            offset += bytes.len() - rest.len();
            bytes = rest;
        }
        Ok(options)
    }
}

/// Appends an option whose data are `parts`; zeros fill it up to a whole unit.
fn emit_framed(kind: u8, parts: &[&[u8]], bytes: &mut Vec<u8>) {
    let len = (HEADER_LEN + parts.iter().map(|part| part.len()).sum::<usize>()).next_multiple_of(UNIT);
    debug_assert!(len <= MAX_DATA + HEADER_LEN, "the Length is one octet");
    let len = len.min(MAX_DATA + HEADER_LEN);
    let end = bytes.len() + len;
    bytes.extend([kind, (len / UNIT) as u8]);
    parts.iter().for_each(|part| bytes.extend(*part));
    bytes.resize(end, 0);
}
