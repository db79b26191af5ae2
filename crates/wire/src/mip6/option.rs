//! Mobility options (RFC 6275 section 6.2).

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Deref;

use super::fast_handover::FastAuthorizationData;
use super::message::UNIT;
use super::{
    AddressRole, AuthenticationSubtype, Authenticator, BindingIdentifier, HandoverAddress,
    HandoverLinkLayerAddress, Ipv4AddressAcknowledgement, Ipv4HomeAddress, Lifetime, LinkLayerRole,
    MessageAuthentication, MobileNodeIdentifier, NatDetection, NonceIndex, NtpTimestamp, ReceivedData,
    ToldPath, VendorOption,
};
use crate::Error;
use crate::icmpv6::LinkLayerAddress;

/// Option Type and Option Length.
const HEADER_LEN: usize = 2;

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
const BINDING_REFRESH_ADVICE: u8 = 2;
const ALTERNATE_CARE_OF_ADDRESS: u8 = 3;
const NONCE_INDICES: u8 = 4;
pub(super) const BINDING_AUTHORIZATION_DATA: u8 = 5;
const LINK_LAYER_ADDRESS: u8 = 7;
const MOBILE_NODE_IDENTIFIER: u8 = 8;
pub(super) const MESSAGE_AUTHENTICATION: u8 = 9;
const REPLAY_PROTECTION: u8 = 10;
const VENDOR: u8 = 19;
pub(super) const FAST_AUTHORIZATION_DATA: u8 = 21;
const IPV4_HOME_ADDRESS: u8 = 29;
const IPV4_ADDRESS_ACKNOWLEDGEMENT: u8 = 30;
const NAT_DETECTION: u8 = 31;
const IPV4_CARE_OF_ADDRESS: u8 = 32;
const IPV6_ADDRESS_PREFIX: u8 = 34;
const BINDING_IDENTIFIER: u8 = 35;

/// Which nonces the keygen tokens of a Binding Update were made with (RFC 6275 section 6.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NonceIndices {
    /// Of the home keygen token.
    pub home: NonceIndex,
    /// Of the care-of keygen token. Ignored when the binding is deleted.
    pub care_of: NonceIndex,
}

/// An option of a type that is not known here, or a link-layer address that is not one of IEEE 802. A receiver skips it (RFC 6275 section 6.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownOption {
    kind: u8,
    data: Vec<u8>,
}

impl UnknownOption {
    /// An option of type `kind`; `None` when that type is known here, or padding, or `data` exceeds 255 bytes.
    #[must_use]
    pub fn new(kind: u8, data: &[u8]) -> Option<Self> {
        (!is_known(kind) && data.len() <= usize::from(u8::MAX)).then(|| Self { kind, data: data.to_vec() })
    }

    /// The Option Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// What follows Option Type and Option Length.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

const fn is_known(kind: u8) -> bool {
    matches!(
        kind,
        PAD_1..=BINDING_AUTHORIZATION_DATA
            | LINK_LAYER_ADDRESS..=REPLAY_PROTECTION
            | VENDOR
            | FAST_AUTHORIZATION_DATA
            | IPV4_HOME_ADDRESS..=IPV4_CARE_OF_ADDRESS
            | IPV6_ADDRESS_PREFIX..=BINDING_IDENTIFIER
    )
}

/// A Binding Identifier option whose length is neither 4, 8 nor 20. The update is answered with
/// [`super::BindingStatus::McoaMalformed`] (RFC 5648 section 4.4), so it is kept instead of condemning the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MalformedBindingIdentifier(Vec<u8>);

impl MalformedBindingIdentifier {
    /// An option with this data; `None` when it is well-formed or exceeds 255 bytes.
    #[must_use]
    pub fn new(data: &[u8]) -> Option<Self> {
        let malformed = data.len() <= usize::from(u8::MAX) && BindingIdentifier::decode(data).is_none();
        malformed.then(|| Self(data.to_vec()))
    }

    /// What follows Option Type and Option Length.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.0
    }
}

/// A mobility option. Padding is none: it is put in and skipped where it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MobilityOption {
    /// Type 2: after this time the mobile node should register again. In the acknowledgement of a home agent only.
    BindingRefreshAdvice(Lifetime),
    /// Type 3: the care-of address, when it is not the source of the packet. In a Binding Update only.
    AlternateCareOfAddress(Ipv6Addr),
    /// Type 4. In a Binding Update to a correspondent node, with Binding Authorization Data, only.
    NonceIndices(NonceIndices),
    /// Type 5: always the last. In a Binding Update and a Binding Acknowledgement only.
    BindingAuthorizationData(Authenticator),
    /// Type 7 (RFC 5568): the mobile node's, in a Fast Binding Update or a Handover Initiate.
    LinkLayerAddress(HandoverLinkLayerAddress),
    /// Type 8 (RFC 4283): stands before the authentication.
    MobileNodeIdentifier(MobileNodeIdentifier),
    /// Type 9 (RFC 4285): covers what stands before it.
    MessageAuthentication(MessageAuthentication),
    /// Type 10 (RFC 4285).
    ReplayProtection(NtpTimestamp),
    /// Type 19 (RFC 5094): skipped by who does not know the vendor.
    Vendor(VendorOption),
    /// Type 21, BADF (RFC 5568): always the last. In a Fast Binding Update and a Fast Binding Acknowledgment only.
    FastAuthorizationData(FastAuthorizationData),
    /// Type 29 (RFC 5555).
    Ipv4HomeAddress(Ipv4HomeAddress),
    /// Type 30 (RFC 5555).
    Ipv4AddressAcknowledgement(Ipv4AddressAcknowledgement),
    /// Type 31 (RFC 5555).
    NatDetection(NatDetection),
    /// Type 32 (RFC 5555).
    Ipv4CareOfAddress(Ipv4Addr),
    /// Type 34 (RFC 5568): in a Handover Initiate or a Handover Acknowledge.
    HandoverAddress(HandoverAddress),
    /// Type 35 (RFC 5648).
    BindingIdentifier(BindingIdentifier),
    /// Type 35, of a length that says nothing (RFC 5648).
    MalformedBindingIdentifier(MalformedBindingIdentifier),
    /// Any other type: skipped.
    Unknown(UnknownOption),
}

impl MobilityOption {
    /// The Option Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::BindingRefreshAdvice(_) => BINDING_REFRESH_ADVICE,
            Self::AlternateCareOfAddress(_) => ALTERNATE_CARE_OF_ADDRESS,
            Self::NonceIndices(_) => NONCE_INDICES,
            Self::BindingAuthorizationData(_) => BINDING_AUTHORIZATION_DATA,
            Self::LinkLayerAddress(_) => LINK_LAYER_ADDRESS,
            Self::MobileNodeIdentifier(_) => MOBILE_NODE_IDENTIFIER,
            Self::MessageAuthentication(_) => MESSAGE_AUTHENTICATION,
            Self::ReplayProtection(_) => REPLAY_PROTECTION,
            Self::Vendor(_) => VENDOR,
            Self::FastAuthorizationData(_) => FAST_AUTHORIZATION_DATA,
            Self::Ipv4HomeAddress(_) => IPV4_HOME_ADDRESS,
            Self::Ipv4AddressAcknowledgement(_) => IPV4_ADDRESS_ACKNOWLEDGEMENT,
            Self::NatDetection(_) => NAT_DETECTION,
            Self::Ipv4CareOfAddress(_) => IPV4_CARE_OF_ADDRESS,
            Self::HandoverAddress(_) => IPV6_ADDRESS_PREFIX,
            Self::BindingIdentifier(_) | Self::MalformedBindingIdentifier(_) => BINDING_IDENTIFIER,
            Self::Unknown(option) => option.kind,
        }
    }

    /// Whether no other option may follow it.
    const fn comes_last(&self) -> bool {
        matches!(self, Self::BindingAuthorizationData(_) | Self::FastAuthorizationData(_))
    }

    /// Bytes behind Option Type and Option Length.
    fn data_len(&self) -> usize {
        match self {
            Self::BindingRefreshAdvice(_) => 2,
            Self::AlternateCareOfAddress(_) => 16,
            Self::NonceIndices(_) => 4,
            Self::BindingAuthorizationData(authenticator) => authenticator.0.len(),
            Self::LinkLayerAddress(_) => 7,
            Self::MobileNodeIdentifier(option) => 1 + option.identifier.len(),
            Self::MessageAuthentication(option) => {
                MessageAuthentication::FIXED_LEN + option.authenticator.len()
            }
            Self::ReplayProtection(_) => 8,
            Self::Vendor(option) => option.data_len(),
            Self::FastAuthorizationData(option) => {
                FastAuthorizationData::FIXED_LEN + option.authenticator.len()
            }
            Self::Ipv4HomeAddress(_) => Ipv4HomeAddress::DATA_LEN,
            Self::Ipv4AddressAcknowledgement(_) => Ipv4AddressAcknowledgement::DATA_LEN,
            Self::NatDetection(_) => NatDetection::DATA_LEN,
            Self::Ipv4CareOfAddress(_) => 6,
            Self::HandoverAddress(_) => 18,
            Self::BindingIdentifier(option) => option.data_len(),
            Self::MalformedBindingIdentifier(option) => option.0.len(),
            Self::Unknown(option) => option.data.len(),
        }
    }

    /// Where the option may begin: `(x, y)` of the RFCs' "xn + y".
    fn alignment(&self) -> (usize, usize) {
        match self {
            Self::BindingRefreshAdvice(_) | Self::NonceIndices(_) => (2, 0),
            Self::AlternateCareOfAddress(_) => (8, 6),
            // The header ends with it: 8n + 2 for the 12 bytes of return routability.
            Self::BindingAuthorizationData(_) | Self::FastAuthorizationData(_) => {
                (UNIT, (UNIT - (HEADER_LEN + self.data_len()) % UNIT) % UNIT)
            }
            Self::HandoverAddress(_) => (8, 4),
            Self::MessageAuthentication(_) => (4, 1),
            Self::ReplayProtection(_) => (8, 2),
            Self::Vendor(_) => (4, 2),
            Self::Ipv4HomeAddress(_)
            | Self::Ipv4AddressAcknowledgement(_)
            | Self::NatDetection(_)
            | Self::Ipv4CareOfAddress(_) => (4, 0),
            Self::BindingIdentifier(option) if option.care_of_address.is_some() => (8, 2),
            Self::BindingIdentifier(_) => (2, 0),
            Self::LinkLayerAddress(_)
            | Self::MobileNodeIdentifier(_)
            | Self::MalformedBindingIdentifier(_)
            | Self::Unknown(_) => (1, 0),
        }
    }

    /// Appends the option to a Mobility Header, behind the padding it wants.
    fn emit(&self, bytes: &mut Vec<u8>) {
        let (modulus, remainder) = self.alignment();
        pad(bytes, modulus, remainder);
        // The constructors keep the data of every option within what the Option Length can tell.
        bytes.extend([self.kind(), self.data_len() as u8]);
        match self {
            Self::BindingRefreshAdvice(interval) => bytes.extend(interval.as_units().to_be_bytes()),
            Self::AlternateCareOfAddress(address) => bytes.extend(address.octets()),
            Self::NonceIndices(indices) => {
                bytes.extend(indices.home.0.to_be_bytes());
                bytes.extend(indices.care_of.0.to_be_bytes());
            }
            Self::BindingAuthorizationData(authenticator) => bytes.extend(&authenticator.0),
            Self::LinkLayerAddress(option) => {
                bytes.push(option.role.number());
                bytes.extend(option.address.0);
            }
            Self::MobileNodeIdentifier(option) => {
                bytes.push(option.subtype);
                bytes.extend(&option.identifier);
            }
            Self::MessageAuthentication(option) => {
                bytes.push(option.subtype.number());
                bytes.extend(option.spi.0.to_be_bytes());
                bytes.extend(&option.authenticator);
            }
            Self::ReplayProtection(timestamp) => bytes.extend(timestamp.0.to_be_bytes()),
            Self::Vendor(option) => option.emit(bytes),
            Self::FastAuthorizationData(option) => {
                bytes.extend(option.spi.0.to_be_bytes());
                bytes.extend(&option.authenticator);
            }
            Self::HandoverAddress(option) => {
                bytes.extend([option.role.number(), option.prefix_len()]);
                bytes.extend(option.address.octets());
            }
            Self::Ipv4HomeAddress(option) => option.emit(bytes),
            Self::Ipv4AddressAcknowledgement(option) => option.emit(bytes),
            Self::NatDetection(option) => option.emit(bytes),
            Self::Ipv4CareOfAddress(address) => {
                bytes.extend([0; 2]);
                bytes.extend(address.octets());
            }
            Self::BindingIdentifier(option) => option.emit(bytes),
            Self::MalformedBindingIdentifier(option) => bytes.extend(&option.0),
            Self::Unknown(option) => bytes.extend(&option.data),
        }
    }

    /// `None` for padding.
    fn decode(frame: &Frame<'_>) -> Result<Option<Self>, Error> {
        Ok(Some(match frame.kind {
            PAD_1 | PAD_N => return Ok(None),
            BINDING_REFRESH_ADVICE => {
                let units = u16::from_be_bytes(frame.exactly("2")?);
                Self::BindingRefreshAdvice(Lifetime::from_units(units))
            }
            ALTERNATE_CARE_OF_ADDRESS => {
                Self::AlternateCareOfAddress(Ipv6Addr::from(frame.exactly::<16>("16")?))
            }
            NONCE_INDICES => {
                let [a, b, c, d] = frame.exactly("4")?;
                let index = |high, low| NonceIndex(u16::from_be_bytes([high, low]));
                Self::NonceIndices(NonceIndices { home: index(a, b), care_of: index(c, d) })
            }
            BINDING_AUTHORIZATION_DATA => Self::BindingAuthorizationData(Authenticator(frame.data.to_vec())),
            LINK_LAYER_ADDRESS => match frame.data {
                &[role, a, b, c, d, e, f] => Self::LinkLayerAddress(HandoverLinkLayerAddress {
                    role: LinkLayerRole::from_number(role),
                    address: LinkLayerAddress([a, b, c, d, e, f]),
                }),
                data => Self::Unknown(UnknownOption { kind: frame.kind, data: data.to_vec() }),
            },
            FAST_AUTHORIZATION_DATA => FastAuthorizationData::decode(frame.data)
                .map(Self::FastAuthorizationData)
                .ok_or_else(|| frame.wrong_length("4 or more"))?,
            IPV6_ADDRESS_PREFIX => {
                let [role, prefix_len, address @ ..] = frame.exactly::<18>("18")?;
                let role = AddressRole::from_number(role);
                HandoverAddress::with_prefix_len(role, Ipv6Addr::from(address), prefix_len)
                    .map(Self::HandoverAddress)
                    .ok_or_else(|| {
                        frame.invalid("IPv6 Address/Prefix Prefix Length", 3, prefix_len, "0 to 128")
                    })?
            }
            MOBILE_NODE_IDENTIFIER => match frame.data.split_first() {
                Some((subtype, identifier)) => Self::MobileNodeIdentifier(MobileNodeIdentifier {
                    subtype: *subtype,
                    identifier: identifier.to_vec(),
                }),
                None => return Err(frame.wrong_length("1 or more")),
            },
            MESSAGE_AUTHENTICATION => MessageAuthentication::decode(frame.data)
                .map(Self::MessageAuthentication)
                .ok_or_else(|| frame.wrong_length("5 or more"))?,
            REPLAY_PROTECTION => {
                Self::ReplayProtection(NtpTimestamp(u64::from_be_bytes(frame.exactly("8")?)))
            }
            VENDOR => VendorOption::decode(frame.data)
                .map(Self::Vendor)
                .ok_or_else(|| frame.wrong_length("5 or more"))?,
            IPV4_HOME_ADDRESS => {
                let data = frame.exactly("6")?;
                Ipv4HomeAddress::decode(data).map(Self::Ipv4HomeAddress).ok_or_else(|| {
                    frame.invalid("IPv4 Home Address Prefix-len", 2, data[0] >> 2, "1 to 32")
                })?
            }
            IPV4_ADDRESS_ACKNOWLEDGEMENT => {
                let data = frame.exactly("6")?;
                Ipv4AddressAcknowledgement::decode(data)
                    .map(Self::Ipv4AddressAcknowledgement)
                    .ok_or_else(|| frame.invalid("IPv4 Address Pref-len", 3, data[1] >> 2, "32 or less"))?
            }
            NAT_DETECTION => Self::NatDetection(NatDetection::decode(frame.exactly("6")?)),
            IPV4_CARE_OF_ADDRESS => {
                let [_, _, a, b, c, d] = frame.exactly("6")?;
                Self::Ipv4CareOfAddress(Ipv4Addr::new(a, b, c, d))
            }
            BINDING_IDENTIFIER => match BindingIdentifier::decode(frame.data) {
                Some(option) => Self::BindingIdentifier(option),
                None => Self::MalformedBindingIdentifier(MalformedBindingIdentifier(frame.data.to_vec())),
            },
            kind => Self::Unknown(UnknownOption { kind, data: frame.data.to_vec() }),
        }))
    }
}

/// Appends padding until the next byte stands at `modulus` n + `remainder`.
fn pad(bytes: &mut Vec<u8>, modulus: usize, remainder: usize) {
    match (modulus + remainder - bytes.len() % modulus) % modulus {
        0 => {}
        1 => bytes.push(PAD_1),
        len => {
            bytes.extend([PAD_N, (len - HEADER_LEN) as u8]);
            bytes.resize(bytes.len() + len - HEADER_LEN, 0);
        }
    }
}

/// An option as it is framed, `offset` bytes into the header.
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) data: &'a [u8],
    offset: usize,
}

impl Frame<'_> {
    /// Where the data begins, bytes into the header.
    pub(super) const fn data_offset(&self) -> usize {
        self.offset + HEADER_LEN
    }

    fn exactly<const N: usize>(&self, expected: &'static str) -> Result<[u8; N], Error> {
        self.data.try_into().map_err(|_| self.wrong_length(expected))
    }

    fn wrong_length(&self, expected: &'static str) -> Error {
        Error::Invalid {
            field: "mobility option Length",
            offset: self.offset + 1,
            found: self.data.len() as u32,
            expected,
        }
    }

    /// The field that starts `at` bytes into the option has a value that it cannot have.
    fn invalid(&self, field: &'static str, at: usize, found: u8, expected: &'static str) -> Error {
        Error::Invalid { field, offset: self.offset + at, found: u32::from(found), expected }
    }
}

/// The options that fill `bytes`, padding among them; the first stands `offset` bytes into the header. Nothing comes after an
/// error.
pub(super) fn frames(mut bytes: &[u8], mut offset: usize) -> impl Iterator<Item = Result<Frame<'_>, Error>> {
    core::iter::from_fn(move || {
        let (kind, behind) = bytes.split_first()?;
        if *kind == PAD_1 {
            let frame = Frame { kind: PAD_1, data: &[], offset };
            (bytes, offset) = (behind, offset + 1);
            return Some(Ok(frame));
        }
        let framed = behind.split_first().and_then(|(len, rest)| rest.split_at_checked(usize::from(*len)));
        let Some((data, rest)) = framed else {
            let needed = HEADER_LEN + behind.first().map_or(0, |len| usize::from(*len));
            let error = Error::Truncated { what: "mobility option", offset, needed, found: bytes.len() };
            bytes = &[];
            return Some(Err(error));
        };
        let frame = Frame { kind: *kind, data, offset };
        (bytes, offset) = (rest, offset + HEADER_LEN + data.len());
        Some(Ok(frame))
    })
}

/// The options of a message, in order, without padding.
///
/// Of options of the same kind the accessors give the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MobilityOptions(Vec<MobilityOption>);

impl MobilityOptions {
    /// No options.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an option.
    pub fn push(&mut self, option: MobilityOption) {
        self.0.push(option);
    }

    /// These options and `option` behind them.
    #[must_use]
    pub fn with(mut self, option: MobilityOption) -> Self {
        self.0.push(option);
        self
    }

    /// After which time the mobile node should register again.
    #[must_use]
    pub fn binding_refresh_advice(&self) -> Option<Lifetime> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::BindingRefreshAdvice(interval) => Some(*interval),
            _ => None,
        })
    }

    /// The care-of address that is not the source of the packet.
    #[must_use]
    pub fn alternate_care_of_address(&self) -> Option<Ipv6Addr> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::AlternateCareOfAddress(address) => Some(*address),
            _ => None,
        })
    }

    /// The nonces that the keygen tokens were made with.
    #[must_use]
    pub fn nonce_indices(&self) -> Option<NonceIndices> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::NonceIndices(indices) => Some(*indices),
            _ => None,
        })
    }

    /// The authenticator of return routability.
    #[must_use]
    pub fn binding_authorization_data(&self) -> Option<&Authenticator> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::BindingAuthorizationData(authenticator) => Some(authenticator),
            _ => None,
        })
    }

    /// The authenticator of mobile node and access router.
    #[must_use]
    pub fn fast_authorization_data(&self) -> Option<&FastAuthorizationData> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::FastAuthorizationData(data) => Some(data),
            _ => None,
        })
    }

    /// The link-layer address of the mobile node that changes its access router.
    #[must_use]
    pub fn mobile_link_layer_address(&self) -> Option<LinkLayerAddress> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::LinkLayerAddress(found) if found.role == LinkLayerRole::MobileNode => {
                Some(found.address)
            }
            _ => None,
        })
    }

    /// The address that has this part in a fast handover.
    #[must_use]
    pub fn handover_address(&self, role: AddressRole) -> Option<Ipv6Addr> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::HandoverAddress(found) if found.role == role => Some(found.address),
            _ => None,
        })
    }

    /// Who the mobile node is.
    #[must_use]
    pub fn mobile_node_identifier(&self) -> Option<&MobileNodeIdentifier> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::MobileNodeIdentifier(identifier) => Some(identifier),
            _ => None,
        })
    }

    /// The authentication between these two. What stands behind it is not protected by it: see
    /// [`MobilityOptions::end_with_authentication`].
    #[must_use]
    pub fn message_authentication(&self, subtype: AuthenticationSubtype) -> Option<&MessageAuthentication> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::MessageAuthentication(found) if found.subtype == subtype => Some(found),
            _ => None,
        })
    }

    /// Whether the authentication between these two is there, once, and the last option, so that it covers all others. RFC 4285
    /// section 5.1 asks that of the option between mobile node and home agent.
    #[must_use]
    pub fn end_with_authentication(&self, subtype: AuthenticationSubtype) -> bool {
        let first = self.0.iter().position(
            |option| matches!(option, MobilityOption::MessageAuthentication(found) if found.subtype == subtype),
        );
        first.is_some_and(|at| at + 1 == self.0.len())
    }

    /// The timestamp against replay.
    #[must_use]
    pub fn replay_protection(&self) -> Option<NtpTimestamp> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::ReplayProtection(timestamp) => Some(*timestamp),
            _ => None,
        })
    }

    /// What a mobile node says of its path.
    #[must_use]
    pub fn told_path(&self) -> Option<ToldPath> {
        self.vendors().find_map(VendorOption::told_path)
    }

    /// How far a mobile node has received its flows; empty when it does not say so.
    #[must_use]
    pub fn received_data(&self) -> ReceivedData {
        self.vendors().find_map(VendorOption::received_data).unwrap_or_default()
    }

    /// The options of vendors.
    pub fn vendors(&self) -> impl Iterator<Item = &VendorOption> {
        self.0.iter().filter_map(|option| match option {
            MobilityOption::Vendor(option) => Some(option),
            _ => None,
        })
    }

    /// The IPv4 home addresses and prefixes that are registered or asked for.
    pub fn ipv4_home_addresses(&self) -> impl Iterator<Item = &Ipv4HomeAddress> {
        self.0.iter().filter_map(|option| match option {
            MobilityOption::Ipv4HomeAddress(address) => Some(address),
            _ => None,
        })
    }

    /// What became of them.
    pub fn ipv4_address_acknowledgements(&self) -> impl Iterator<Item = &Ipv4AddressAcknowledgement> {
        self.0.iter().filter_map(|option| match option {
            MobilityOption::Ipv4AddressAcknowledgement(acknowledgement) => Some(acknowledgement),
            _ => None,
        })
    }

    /// The IPv4 care-of address.
    #[must_use]
    pub fn ipv4_care_of_address(&self) -> Option<Ipv4Addr> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::Ipv4CareOfAddress(address) => Some(*address),
            _ => None,
        })
    }

    /// Whether there is a NAT.
    #[must_use]
    pub fn nat_detection(&self) -> Option<NatDetection> {
        self.0.iter().find_map(|option| match option {
            MobilityOption::NatDetection(detection) => Some(*detection),
            _ => None,
        })
    }

    /// Which bindings it is about.
    pub fn binding_identifiers(&self) -> impl Iterator<Item = &BindingIdentifier> {
        self.0.iter().filter_map(|option| match option {
            MobilityOption::BindingIdentifier(identifier) => Some(identifier),
            _ => None,
        })
    }

    /// Whether one of the Binding Identifier options has a length that says nothing.
    #[must_use]
    pub fn has_malformed_binding_identifier(&self) -> bool {
        self.0.iter().any(|option| matches!(option, MobilityOption::MalformedBindingIdentifier(_)))
    }

    /// Appends the options to a Mobility Header, and padding to a multiple of 8 bytes; gives the place where the last option ends. `last`
    /// stands behind all others, in place of Binding Authorization Data.
    pub(super) fn emit(&self, bytes: &mut Vec<u8>, last: Option<&MobilityOption>) -> usize {
        self.0.iter().filter(|option| !option.comes_last()).for_each(|option| option.emit(bytes));
        if let Some(option) = last.or_else(|| self.0.iter().find(|option| option.comes_last())) {
            option.emit(bytes);
        }
        let end = bytes.len();
        pad(bytes, UNIT, 0);
        end
    }

    /// The options that fill `bytes`, which start `offset` bytes into the header.
    pub(super) fn parse(bytes: &[u8], offset: usize) -> Result<Self, Error> {
        let mut options = Vec::new();
        for frame in frames(bytes, offset) {
            let frame = frame?;
            let Some(option) = MobilityOption::decode(&frame)? else { continue };
            if options.last().is_some_and(MobilityOption::comes_last) {
                let field = "option behind Binding Authorization Data";
                return Err(frame.invalid(field, 0, frame.kind, "padding"));
            }
            options.push(option);
        }
        Ok(Self(options))
    }
}

impl Deref for MobilityOptions {
    type Target = [MobilityOption];

    fn deref(&self) -> &[MobilityOption] {
        &self.0
    }
}

impl From<Vec<MobilityOption>> for MobilityOptions {
    fn from(options: Vec<MobilityOption>) -> Self {
        Self(options)
    }
}

impl FromIterator<MobilityOption> for MobilityOptions {
    fn from_iter<I: IntoIterator<Item = MobilityOption>>(options: I) -> Self {
        Self(options.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip6::{BindingId, Spi};
    use core::net::IpAddr;

    const ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77);

    /// One option of every type and length that has an alignment of its own.
    fn every_option() -> Vec<MobilityOption> {
        let identifier = |care_of_address| {
            MobilityOption::BindingIdentifier(BindingIdentifier {
                care_of_address,
                ..BindingIdentifier::new(BindingId(1))
            })
        };
        alloc::vec![
            MobilityOption::BindingRefreshAdvice(Lifetime::from_units(3)),
            MobilityOption::AlternateCareOfAddress(ADDRESS),
            MobilityOption::NonceIndices(NonceIndices { home: NonceIndex(1), care_of: NonceIndex(2) }),
            MobilityOption::LinkLayerAddress(HandoverLinkLayerAddress::of_mobile_node(LinkLayerAddress(
                [2; 6]
            ))),
            MobilityOption::HandoverAddress(HandoverAddress::new(AddressRole::NewCareOfAddress, ADDRESS)),
            MobilityOption::MobileNodeIdentifier(MobileNodeIdentifier::new(1, b"mn@example.org").unwrap()),
            MobilityOption::MessageAuthentication(
                MessageAuthentication::new(AuthenticationSubtype::MobileHome, Spi(256), &[7; 12]).unwrap()
            ),
            MobilityOption::ReplayProtection(NtpTimestamp(1 << 32)),
            MobilityOption::Vendor(VendorOption::new(9, 1, &[1, 2]).unwrap()),
            MobilityOption::Ipv4HomeAddress(Ipv4HomeAddress::new(Ipv4Addr::LOCALHOST, 32, false).unwrap()),
            MobilityOption::NatDetection(NatDetection { udp_encapsulation_required: true, refresh_time: 9 }),
            MobilityOption::Ipv4CareOfAddress(Ipv4Addr::LOCALHOST),
            identifier(None),
            identifier(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))),
            identifier(Some(IpAddr::V6(ADDRESS))),
            MobilityOption::Unknown(UnknownOption::new(200, &[1, 2, 3]).unwrap()),
        ]
    }

    /// Where "xn + y" of the RFCs is, by type and length.
    fn stands_where_its_rfc_wants_it(offset: usize, kind: u8, len: usize) -> bool {
        match (kind, len) {
            (2 | 4, _) | (35, 4) => offset.is_multiple_of(2),
            (3, _) => offset % 8 == 6,
            (5, 12) | (10, _) | (35, 8 | 20) => offset % 8 == 2,
            (34, _) => offset % 8 == 4,
            (9, _) => offset % 4 == 1,
            (19, _) => offset % 4 == 2,
            (29..=32, _) => offset.is_multiple_of(4),
            _ => true,
        }
    }

    #[test]
    fn options_stand_where_their_alignment_wants_them_whatever_comes_before() {
        for first in every_option() {
            for second in every_option() {
                for start in [8, 12, 16, 24] {
                    let options = MobilityOptions::new().with(first.clone()).with(second.clone());
                    for authorized in [false, true] {
                        let options = if authorized {
                            let authenticator = Authenticator::new(&[3; 12]).unwrap();
                            options.clone().with(MobilityOption::BindingAuthorizationData(authenticator))
                        } else {
                            options.clone()
                        };
                        let mut bytes = alloc::vec![0; start];
                        let end = options.emit(&mut bytes, None);
                        assert!(bytes.len().is_multiple_of(8));
                        assert!(!authorized || end == bytes.len(), "no padding behind the authorization");
                        for frame in frames(&bytes[start..], start).map(Result::unwrap) {
                            let (at, len) = (frame.offset, frame.data.len());
                            assert!(stands_where_its_rfc_wants_it(at, frame.kind, len), "{options:?}");
                        }
                        assert_eq!(MobilityOptions::parse(&bytes[start..], start), Ok(options));
                    }
                }
            }
        }
    }

    #[test]
    fn authorization_comes_last_wherever_it_was_put() {
        let authorization = MobilityOption::BindingAuthorizationData(Authenticator::new(&[3; 12]).unwrap());
        let indices = every_option().remove(2);
        let options = MobilityOptions::new().with(authorization.clone()).with(indices.clone());
        let mut bytes = alloc::vec![0; 12];
        options.emit(&mut bytes, None);
        let expected = MobilityOptions::new().with(indices).with(authorization);
        assert_eq!(MobilityOptions::parse(&bytes[12..], 12), Ok(expected));
    }

    #[test]
    fn only_padding_may_stand_behind_authorization() {
        let mut bytes = alloc::vec![5, 12];
        bytes.extend([3; 12]);
        bytes.extend([1, 2, 0, 0, 0, 0]);
        assert_eq!(MobilityOptions::parse(&bytes, 12).unwrap().len(), 1);
        bytes.extend([200, 0]);
        assert_eq!(
            MobilityOptions::parse(&bytes, 12),
            Err(Error::Invalid {
                field: "option behind Binding Authorization Data",
                offset: 32,
                found: 200,
                expected: "padding"
            })
        );
    }

    #[test]
    fn unknown_options_are_kept_and_what_follows_them_is_read() {
        let bytes = [200, 3, 1, 2, 3, 0, 2, 2, 0, 9];
        let options = MobilityOptions::parse(&bytes, 12).unwrap();
        let unknown = UnknownOption::new(200, &[1, 2, 3]).unwrap();
        assert_eq!(options[0], MobilityOption::Unknown(unknown));
        assert_eq!(options.binding_refresh_advice(), Some(Lifetime::from_units(9)));
    }

    #[test]
    fn no_unknown_option_hides_one_that_is_known() {
        for kind in [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 19, 21, 29, 30, 31, 32, 34, 35] {
            assert!(UnknownOption::new(kind, &[]).is_none(), "{kind}");
        }
        for kind in [6, 11, 18, 20, 22, 28, 33, 36, 255] {
            assert!(UnknownOption::new(kind, &[]).is_some(), "{kind}");
        }
        assert!(UnknownOption::new(200, &[0; 256]).is_none());
        assert!(MalformedBindingIdentifier::new(&[0; 4]).is_none());
        assert!(MalformedBindingIdentifier::new(&[0; 5]).is_some());
    }

    #[test]
    fn authorization_of_fast_handovers_ends_the_header_and_nothing_follows_it() {
        let data = FastAuthorizationData::new(super::super::Spi(256), &[7; 12]).unwrap();
        let address = HandoverAddress::new(AddressRole::OldCareOfAddress, ADDRESS);
        let authorization = MobilityOption::FastAuthorizationData(data);
        let options =
            MobilityOptions::new().with(authorization).with(MobilityOption::HandoverAddress(address));
        let mut bytes = alloc::vec![0; 12];
        assert_eq!(options.emit(&mut bytes, None), bytes.len());
        // Type 34 at 8n + 4, then BADF at 8n + 6.
        assert_eq!(bytes[12..16], [34, 18, 1, 128]);
        assert_eq!(bytes[32..34], [1, 4]);
        assert_eq!(bytes[38..44], [21, 16, 0, 0, 1, 0]);
        let parsed = MobilityOptions::parse(&bytes[12..], 12).unwrap();
        assert!(parsed.fast_authorization_data().is_some());
        assert_eq!(parsed.handover_address(AddressRole::OldCareOfAddress), Some(ADDRESS));
        bytes.extend([200, 0]);
        assert!(MobilityOptions::parse(&bytes[12..], 12).is_err());
    }

    #[test]
    fn a_link_layer_address_of_another_length_is_not_known() {
        let options = MobilityOptions::parse(&[7, 9, 2, 1, 2, 3, 4, 5, 6, 7, 8], 12).unwrap();
        assert!(matches!(&options[0], MobilityOption::Unknown(option) if option.kind() == 7));
        assert_eq!(options.mobile_link_layer_address(), None);
        assert!(MobilityOptions::parse(&[21, 3, 0, 0, 0], 12).is_err());
        assert_eq!(
            MobilityOptions::parse(&[&[34, 18, 4, 129][..], &[0; 16]].concat(), 12),
            Err(Error::Invalid {
                field: "IPv6 Address/Prefix Prefix Length",
                offset: 15,
                found: 129,
                expected: "0 to 128"
            })
        );
    }

    #[test]
    fn an_identifier_of_a_wrong_length_does_not_condemn_the_message() {
        let options = MobilityOptions::parse(&[35, 5, 0, 1, 0, 0, 9, 0, 2, 2, 0, 9], 12).unwrap();
        assert!(options.has_malformed_binding_identifier());
        assert_eq!(options.binding_identifiers().count(), 0);
        assert!(options.binding_refresh_advice().is_some());
    }

    #[test]
    fn errors_name_the_place_in_the_header() {
        assert_eq!(
            MobilityOptions::parse(&[0, 3, 15, 0], 12),
            Err(Error::Truncated { what: "mobility option", offset: 13, needed: 17, found: 3 })
        );
        assert_eq!(
            MobilityOptions::parse(&[0, 0, 2], 12),
            Err(Error::Truncated { what: "mobility option", offset: 14, needed: 2, found: 1 })
        );
        assert_eq!(
            MobilityOptions::parse(&[1, 0, 2, 1, 9], 12),
            Err(Error::Invalid { field: "mobility option Length", offset: 15, found: 1, expected: "2" })
        );
        assert_eq!(
            MobilityOptions::parse(&[29, 6, 33 << 2, 0, 127, 0, 0, 1], 12),
            Err(Error::Invalid {
                field: "IPv4 Home Address Prefix-len",
                offset: 14,
                found: 33,
                expected: "1 to 32"
            })
        );
    }

    #[test]
    fn authentication_that_something_follows_does_not_end_the_options() {
        let authentication = |subtype| {
            MobilityOption::MessageAuthentication(
                MessageAuthentication::new(subtype, Spi(256), &[7; 12]).unwrap(),
            )
        };
        let (home, aaa) = (AuthenticationSubtype::MobileHome, AuthenticationSubtype::MobileAaa);
        let ends =
            |options: Vec<MobilityOption>| MobilityOptions::from(options).end_with_authentication(home);
        let other = || every_option().remove(0);
        assert!(ends(alloc::vec![other(), authentication(home)]));
        assert!(!ends(alloc::vec![authentication(home), other()]));
        assert!(!ends(alloc::vec![authentication(home), authentication(home)]));
        assert!(!ends(alloc::vec![authentication(home), authentication(aaa)]));
        assert!(!ends(alloc::vec![authentication(aaa)]));
        assert!(!ends(Vec::new()));
    }
}
