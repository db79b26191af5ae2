//! The Mobility Header and its messages.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use etherparse::checksum::Sum16BitWords;

use super::fast_handover::{FastBindingAcknowledgement, HandoverAcknowledge, HandoverInitiate};
use super::path_probe::PathProbe;
use super::return_routability::{CareOfTest, CareOfTestInit, HomeTest, HomeTestInit};
use super::{
    AcknowledgementFlags, BindingErrorStatus, BindingStatus, Lifetime, MobilityOption, MobilityOptions,
    PROTOCOL, SequenceNumber, UpdateFlags,
};
use crate::fixed::Fixed;
use crate::{Error, checksum};

const BINDING_REFRESH_REQUEST: u8 = 0;
const HOME_TEST_INIT: u8 = 1;
const CARE_OF_TEST_INIT: u8 = 2;
const HOME_TEST: u8 = 3;
const CARE_OF_TEST: u8 = 4;
const BINDING_UPDATE: u8 = 5;
const BINDING_ACKNOWLEDGEMENT: u8 = 6;
const BINDING_ERROR: u8 = 7;
const FAST_BINDING_UPDATE: u8 = 8;
const FAST_BINDING_ACKNOWLEDGEMENT: u8 = 9;
const HANDOVER_INITIATE: u8 = 14;
const HANDOVER_ACKNOWLEDGE: u8 = 15;

/// Payload Proto: nothing follows (RFC 6275 section 6.1.1).
const NO_NEXT_HEADER: u8 = 59;
/// The Header Len counts in these, the first one apart.
pub(super) const UNIT: usize = 8;

/// Offsets that all messages have in common (RFC 6275 section 6.1.1).
pub(super) mod common {
    pub(in super::super) const PAYLOAD_PROTO: usize = 0;
    pub(in super::super) const HEADER_LEN: usize = 1;
    pub(in super::super) const MH_TYPE: usize = 2;
    pub(in super::super) const CHECKSUM: usize = 4;
    pub(in super::super) const LEN: usize = 6;
}

/// Offsets in a Binding Update (RFC 6275 section 6.1.7).
mod update {
    pub(super) const SEQUENCE: usize = 6;
    pub(super) const FLAGS: usize = 8;
    pub(super) const LIFETIME: usize = 10;
    pub(super) const LEN: usize = 12;
}

/// Offsets in a Binding Acknowledgement (RFC 6275 section 6.1.8).
mod acknowledgement {
    pub(super) const STATUS: usize = 6;
    pub(super) const FLAGS: usize = 7;
    pub(super) const SEQUENCE: usize = 8;
    pub(super) const LIFETIME: usize = 10;
    pub(super) const LEN: usize = 12;
}

/// Offsets in a Binding Error (RFC 6275 section 6.1.9).
mod error {
    pub(super) const STATUS: usize = 6;
    pub(super) const HOME_ADDRESS: usize = 8;
    pub(super) const LEN: usize = 24;
}

/// A message has more options than a Mobility Header holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Mobility Header would take {needed} bytes, it has {} at most", Message::MAX_LEN)]
pub struct TooLong {
    /// Bytes the header would take.
    pub needed: usize,
}

/// A Binding Refresh Request (RFC 6275 section 6.1.2): the mobile node is asked for a new Binding Update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BindingRefreshRequest {
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl BindingRefreshRequest {
    const FIXED_LEN: usize = 8;

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let (_, options) = Fixed::<{ Self::FIXED_LEN }>::split(header, "Binding Refresh Request")?;
        Ok(Self { options: MobilityOptions::parse(options, Self::FIXED_LEN)? })
    }
}

/// A Binding Update (RFC 6275 section 6.1.7), or a Fast Binding Update (RFC 5568 section 6.2.2), which has the same fields and four of its
/// flags.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingUpdate {
    /// Matches the acknowledgement with the update and protects against replay.
    pub sequence: SequenceNumber,
    /// What is asked for.
    pub flags: UpdateFlags,
    /// How long the binding is to last; zero to delete it.
    pub lifetime: Lifetime,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl BindingUpdate {
    /// The care-of address it asks for: that of its Alternate Care-of Address option, else `source`, the source address of the packet.
    #[must_use]
    pub fn care_of_address(&self, source: Ipv6Addr) -> Ipv6Addr {
        self.options.alternate_care_of_address().unwrap_or(source)
    }

    /// `known`: the flags that the message has.
    fn fixed(&self, known: UpdateFlags) -> Fixed<{ update::LEN }> {
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ update::SEQUENCE }, 2>(self.sequence.0.to_be_bytes());
        fixed.put::<{ update::FLAGS }, 2>((self.flags.0 & known.0).to_be_bytes());
        fixed.put::<{ update::LIFETIME }, 2>(self.lifetime.as_units().to_be_bytes());
        fixed
    }

    fn parse(header: &[u8], known: UpdateFlags) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ update::LEN }>::split(header, "Binding Update")?;
        Ok(Self {
            sequence: SequenceNumber(fixed.u16::<{ update::SEQUENCE }>()),
            flags: UpdateFlags(fixed.u16::<{ update::FLAGS }>() & known.0),
            lifetime: Lifetime::from_units(fixed.u16::<{ update::LIFETIME }>()),
            options: MobilityOptions::parse(options, update::LEN)?,
        })
    }
}

/// A Binding Acknowledgement (RFC 6275 section 6.1.8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingAcknowledgement {
    /// The outcome.
    pub status: BindingStatus,
    /// What the sender is capable of.
    pub flags: AcknowledgementFlags,
    /// That of the update; with [`BindingStatus::SequenceNumberOutOfWindow`] the last one that was accepted.
    pub sequence: SequenceNumber,
    /// How long the binding is kept. After a rejection it means nothing.
    pub lifetime: Lifetime,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl BindingAcknowledgement {
    fn fixed(&self) -> Fixed<{ acknowledgement::LEN }> {
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ acknowledgement::STATUS }, 1>([self.status.number()]);
        fixed.put::<{ acknowledgement::FLAGS }, 1>([self.flags.0 & AcknowledgementFlags::KNOWN.0]);
        fixed.put::<{ acknowledgement::SEQUENCE }, 2>(self.sequence.0.to_be_bytes());
        fixed.put::<{ acknowledgement::LIFETIME }, 2>(self.lifetime.as_units().to_be_bytes());
        fixed
    }

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ acknowledgement::LEN }>::split(header, "Binding Acknowledgement")?;
        let flags = fixed.u8::<{ acknowledgement::FLAGS }>() & AcknowledgementFlags::KNOWN.0;
        Ok(Self {
            status: BindingStatus::from_number(fixed.u8::<{ acknowledgement::STATUS }>()),
            flags: AcknowledgementFlags(flags),
            sequence: SequenceNumber(fixed.u16::<{ acknowledgement::SEQUENCE }>()),
            lifetime: Lifetime::from_units(fixed.u16::<{ acknowledgement::LIFETIME }>()),
            options: MobilityOptions::parse(options, acknowledgement::LEN)?,
        })
    }
}

/// A Binding Error (RFC 6275 section 6.1.9).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingError {
    /// What was wrong.
    pub status: BindingErrorStatus,
    /// The home address that the packet claimed; unspecified when it claimed none.
    pub home_address: Ipv6Addr,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl BindingError {
    fn fixed(&self) -> Fixed<{ error::LEN }> {
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ error::STATUS }, 1>([self.status.number()]);
        fixed.put::<{ error::HOME_ADDRESS }, 16>(self.home_address.octets());
        fixed
    }

    fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ error::LEN }>::split(header, "Binding Error")?;
        Ok(Self {
            status: BindingErrorStatus::from_number(fixed.u8::<{ error::STATUS }>()),
            home_address: Ipv6Addr::from(fixed.array::<{ error::HOME_ADDRESS }, 16>()),
            options: MobilityOptions::parse(options, error::LEN)?,
        })
    }
}

/// A message of an MH Type that is not known here, answered with a Binding Error of status
/// [`BindingErrorStatus::UnrecognizedMhType`] (RFC 6275 section 9.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownMessage {
    kind: u8,
    data: Vec<u8>,
}

impl UnknownMessage {
    /// A message of MH Type `kind`; `None` when that type is known here, or when `data` does not fill a Mobility Header: 2
    /// bytes, and any multiple of 8 more, within [`Message::MAX_LEN`].
    #[must_use]
    pub fn new(kind: u8, data: &[u8]) -> Option<Self> {
        let len = common::LEN + data.len();
        let fits = len.is_multiple_of(UNIT) && len <= Message::MAX_LEN;
        (fixed_len(kind, data).is_none() && fits).then(|| Self { kind, data: data.to_vec() })
    }

    /// The MH Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// What follows the checksum.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

/// A message in a Mobility Header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// MH Type 0.
    BindingRefreshRequest(BindingRefreshRequest),
    /// MH Type 1.
    HomeTestInit(HomeTestInit),
    /// MH Type 2.
    CareOfTestInit(CareOfTestInit),
    /// MH Type 3.
    HomeTest(HomeTest),
    /// MH Type 4.
    CareOfTest(CareOfTest),
    /// MH Type 5.
    BindingUpdate(BindingUpdate),
    /// MH Type 6.
    BindingAcknowledgement(BindingAcknowledgement),
    /// MH Type 7.
    BindingError(BindingError),
    /// MH Type 11, by our Vendor ID.
    PathProbe(PathProbe),
    /// MH Type 8 (RFC 5568).
    FastBindingUpdate(BindingUpdate),
    /// MH Type 9 (RFC 5568).
    FastBindingAcknowledgement(FastBindingAcknowledgement),
    /// MH Type 14 (RFC 5568).
    HandoverInitiate(HandoverInitiate),
    /// MH Type 15 (RFC 5568).
    HandoverAcknowledge(HandoverAcknowledge),
    /// Any other MH Type.
    Unknown(UnknownMessage),
}

impl Message {
    /// The longest Mobility Header that the Header Len can tell, bytes.
    pub const MAX_LEN: usize = (u8::MAX as usize + 1) * UNIT;

    /// Reads a Mobility Header that travels from `source` to `destination`; `bytes` is what follows the header before it. What
    /// lies behind the length that the header gives itself is ignored, because Payload Proto says that nothing follows.
    ///
    /// The addresses are those of the IPv6 header, with two exceptions (RFC 6275 section 6.1.1): the home address in a
    /// Home Address option stands for the source, and the last address of a routing header, which is the home address in one of type 2,
    /// for the destination.
    ///
    /// # Errors
    ///
    /// In the order of RFC 6275 section 9.2: a wrong checksum, and bytes that end before the header, are silently discarded; for a
    /// Payload Proto other than 59 and a Header Len too short for the message an ICMP Parameter Problem, code 0, points at
    /// the field, which the offset of [`Error::Invalid`] names. An unknown MH Type is no error.
    /// Options that are cut short, of a length that their type cannot have, or behind Binding Authorization Data condemn the message.
    pub fn parse(source: Ipv6Addr, destination: Ipv6Addr, bytes: &[u8]) -> Result<Self, Error> {
        let header = header(bytes)?;
        let (fixed, data) = Fixed::<{ common::LEN }>::split(header, "Mobility Header")?;
        let sum = pseudo_header(source, destination, header.len()).add_slice(header);
        let found = fixed.u16::<{ common::CHECKSUM }>();
        checksum::verify(&sum, "Mobility Header", common::CHECKSUM, found)?;
        let kind = fixed.u8::<{ common::MH_TYPE }>();
        let Some(fixed_len) = fixed_len(kind, data) else {
            return Ok(Self::Unknown(UnknownMessage { kind, data: data.to_vec() }));
        };
        let payload_proto = fixed.u8::<{ common::PAYLOAD_PROTO }>();
        if payload_proto != NO_NEXT_HEADER {
            return Err(Error::Invalid {
                field: "Payload Proto",
                offset: common::PAYLOAD_PROTO,
                found: u32::from(payload_proto),
                expected: "59",
            });
        }
        if header.len() < fixed_len {
            return Err(Error::Invalid {
                field: "Header Len",
                offset: common::HEADER_LEN,
                found: u32::from(fixed.u8::<{ common::HEADER_LEN }>()),
                expected: "that of the message or more",
            });
        }
        match kind {
            BINDING_REFRESH_REQUEST => BindingRefreshRequest::parse(header).map(Self::BindingRefreshRequest),
            HOME_TEST_INIT => HomeTestInit::parse(header).map(Self::HomeTestInit),
            CARE_OF_TEST_INIT => CareOfTestInit::parse(header).map(Self::CareOfTestInit),
            HOME_TEST => HomeTest::parse(header).map(Self::HomeTest),
            CARE_OF_TEST => CareOfTest::parse(header).map(Self::CareOfTest),
            BINDING_UPDATE => BindingUpdate::parse(header, UpdateFlags::KNOWN).map(Self::BindingUpdate),
            BINDING_ACKNOWLEDGEMENT => {
                BindingAcknowledgement::parse(header).map(Self::BindingAcknowledgement)
            }
            PathProbe::TYPE => PathProbe::parse(header).map(Self::PathProbe),
            FAST_BINDING_UPDATE => {
                BindingUpdate::parse(header, UpdateFlags::FAST).map(Self::FastBindingUpdate)
            }
            FAST_BINDING_ACKNOWLEDGEMENT => {
                FastBindingAcknowledgement::parse(header).map(Self::FastBindingAcknowledgement)
            }
            HANDOVER_INITIATE => HandoverInitiate::parse(header).map(Self::HandoverInitiate),
            HANDOVER_ACKNOWLEDGE => HandoverAcknowledge::parse(header).map(Self::HandoverAcknowledge),
            _ => BindingError::parse(header).map(Self::BindingError),
        }
    }

    /// The Mobility Header, with padding, Header Len and the checksum for its way from `source` to `destination`, which
    /// are to be chosen as for [`Message::parse`].
    ///
    /// Binding Authorization Data, that of fast handovers as well, comes last wherever it stands among the options.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: the options do not fit.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<Vec<u8>, TooLong> {
        let (mut bytes, _) = self.unsummed(None)?;
        fill_checksum(source, destination, &mut bytes);
        Ok(bytes)
    }

    /// The Mobility Header with a checksum of zero, which is what authenticators cover, with `last` behind the options; and where the
    /// last option ends.
    pub(super) fn unsummed(&self, last: Option<&MobilityOption>) -> Result<(Vec<u8>, usize), TooLong> {
        let mut bytes = Vec::new();
        match self {
            Self::BindingRefreshRequest(_) => {
                bytes.extend(Fixed::<{ BindingRefreshRequest::FIXED_LEN }>::ZERO.bytes());
            }
            Self::HomeTestInit(message) => bytes.extend(message.fixed().bytes()),
            Self::CareOfTestInit(message) => bytes.extend(message.fixed().bytes()),
            Self::HomeTest(message) => bytes.extend(message.fixed().bytes()),
            Self::CareOfTest(message) => bytes.extend(message.fixed().bytes()),
            Self::BindingUpdate(message) => bytes.extend(message.fixed(UpdateFlags::KNOWN).bytes()),
            Self::BindingAcknowledgement(message) => bytes.extend(message.fixed().bytes()),
            Self::BindingError(message) => bytes.extend(message.fixed().bytes()),
            Self::PathProbe(message) => bytes.extend(message.fixed().bytes()),
            Self::FastBindingUpdate(message) => bytes.extend(message.fixed(UpdateFlags::FAST).bytes()),
            Self::FastBindingAcknowledgement(message) => bytes.extend(message.fixed().bytes()),
            Self::HandoverInitiate(message) => bytes.extend(message.fixed().bytes()),
            Self::HandoverAcknowledge(message) => bytes.extend(message.fixed().bytes()),
            Self::Unknown(message) => {
                bytes.extend([0; common::LEN]);
                bytes.extend(&message.data);
            }
        }
        let end = self.options().unwrap_or(&MobilityOptions::new()).emit(&mut bytes, last);
        if bytes.len() > Self::MAX_LEN {
            return Err(TooLong { needed: bytes.len() });
        }
        bytes[common::PAYLOAD_PROTO] = NO_NEXT_HEADER;
        bytes[common::HEADER_LEN] = (bytes.len() / UNIT - 1) as u8;
        bytes[common::MH_TYPE] = self.kind();
        Ok((bytes, end))
    }

    /// The MH Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::BindingRefreshRequest(_) => BINDING_REFRESH_REQUEST,
            Self::HomeTestInit(_) => HOME_TEST_INIT,
            Self::CareOfTestInit(_) => CARE_OF_TEST_INIT,
            Self::HomeTest(_) => HOME_TEST,
            Self::CareOfTest(_) => CARE_OF_TEST,
            Self::BindingUpdate(_) => BINDING_UPDATE,
            Self::BindingAcknowledgement(_) => BINDING_ACKNOWLEDGEMENT,
            Self::BindingError(_) => BINDING_ERROR,
            Self::PathProbe(_) => PathProbe::TYPE,
            Self::FastBindingUpdate(_) => FAST_BINDING_UPDATE,
            Self::FastBindingAcknowledgement(_) => FAST_BINDING_ACKNOWLEDGEMENT,
            Self::HandoverInitiate(_) => HANDOVER_INITIATE,
            Self::HandoverAcknowledge(_) => HANDOVER_ACKNOWLEDGE,
            Self::Unknown(message) => message.kind,
        }
    }

    /// The options in order; `None` where nobody knows where they would begin.
    #[must_use]
    pub const fn options(&self) -> Option<&MobilityOptions> {
        Some(match self {
            Self::BindingRefreshRequest(message) => &message.options,
            Self::HomeTestInit(message) => &message.options,
            Self::CareOfTestInit(message) => &message.options,
            Self::HomeTest(message) => &message.options,
            Self::CareOfTest(message) => &message.options,
            Self::BindingUpdate(message) => &message.options,
            Self::BindingAcknowledgement(message) => &message.options,
            Self::BindingError(message) => &message.options,
            Self::PathProbe(message) => &message.options,
            Self::FastBindingUpdate(message) => &message.options,
            Self::FastBindingAcknowledgement(message) => &message.options,
            Self::HandoverInitiate(message) => &message.options,
            Self::HandoverAcknowledge(message) => &message.options,
            Self::Unknown(_) => return None,
        })
    }

    /// Whether a node that knows RFC 6275, and no fast handovers (RFC 5568), takes its MH Type for an unknown one.
    #[must_use]
    pub const fn is_unknown_to_mobile_ipv6(&self) -> bool {
        self.kind() > BINDING_ERROR
    }
}

/// Bytes before the options of a message of MH Type `kind` with these `data` behind the checksum; `None` when it is not known here.
pub(super) fn fixed_len(kind: u8, data: &[u8]) -> Option<usize> {
    Some(match kind {
        BINDING_REFRESH_REQUEST => BindingRefreshRequest::FIXED_LEN,
        HOME_TEST_INIT => HomeTestInit::FIXED_LEN,
        CARE_OF_TEST_INIT => CareOfTestInit::FIXED_LEN,
        HOME_TEST => HomeTest::FIXED_LEN,
        CARE_OF_TEST => CareOfTest::FIXED_LEN,
        BINDING_UPDATE => update::LEN,
        BINDING_ACKNOWLEDGEMENT => acknowledgement::LEN,
        BINDING_ERROR => error::LEN,
        PathProbe::TYPE if PathProbe::is_ours(data) => PathProbe::FIXED_LEN,
        FAST_BINDING_UPDATE => update::LEN,
        FAST_BINDING_ACKNOWLEDGEMENT => FastBindingAcknowledgement::FIXED_LEN,
        HANDOVER_INITIATE => HandoverInitiate::FIXED_LEN,
        HANDOVER_ACKNOWLEDGE => HandoverAcknowledge::FIXED_LEN,
        _ => return None,
    })
}

/// The Mobility Header at the front of `bytes`, by its Header Len.
pub(super) fn header(bytes: &[u8]) -> Result<&[u8], Error> {
    let units = bytes.get(common::HEADER_LEN).map_or(0, |units| usize::from(*units));
    let needed = (units + 1) * UNIT;
    bytes.get(..needed).ok_or(Error::Truncated {
        what: "Mobility Header",
        offset: 0,
        needed,
        found: bytes.len(),
    })
}

/// The sum of the pseudo header (RFC 8200 section 8.1) of a Mobility Header of `len` bytes.
fn pseudo_header(source: Ipv6Addr, destination: Ipv6Addr, len: usize) -> Sum16BitWords {
    checksum::pseudo_header(source, destination, PROTOCOL, len)
}

/// Writes the checksum into a Mobility Header in which it is zero.
pub(super) fn fill_checksum(source: Ipv6Addr, destination: Ipv6Addr, header: &mut [u8]) {
    let sum = pseudo_header(source, destination, header.len()).add_slice(header);
    header[common::CHECKSUM..common::LEN].copy_from_slice(&checksum::finish(&sum).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip6::{FastBindingStatus, HandoverCode, InitCookie, InitiateCode, KeygenToken, NonceIndex};
    use alloc::string::ToString;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
    const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);

    /// The bytes of a message, with its checksum made zero.
    fn layout(message: &Message) -> Vec<u8> {
        let mut bytes = message.emit(HOME, CORRESPONDENT).unwrap();
        assert_eq!(Message::parse(HOME, CORRESPONDENT, &bytes).as_ref(), Ok(message));
        bytes[common::CHECKSUM..common::LEN].fill(0);
        bytes
    }

    /// `header` with its checksum made right.
    fn summed(mut header: Vec<u8>) -> Vec<u8> {
        header[common::CHECKSUM..common::LEN].fill(0);
        fill_checksum(HOME, CORRESPONDENT, &mut header);
        header
    }

    #[test]
    fn return_routability_has_the_layout_of_the_rfc() {
        let (cookie, token) = (InitCookie(*b"a cookie"), KeygenToken(*b"homekey1"));
        let options = MobilityOptions::new();
        let init = Message::HomeTestInit(HomeTestInit { cookie, options: options.clone() });
        assert_eq!(layout(&init), *b"\x3b\x01\x01\0\0\0\0\0a cookie");
        let init = Message::CareOfTestInit(CareOfTestInit { cookie, options: options.clone() });
        assert_eq!(layout(&init), *b"\x3b\x01\x02\0\0\0\0\0a cookie");
        let nonce_index = NonceIndex(0x0102);
        let test = Message::HomeTest(HomeTest { nonce_index, cookie, token, options: options.clone() });
        assert_eq!(layout(&test), *b"\x3b\x02\x03\0\0\0\x01\x02a cookiehomekey1");
        let test = Message::CareOfTest(CareOfTest { nonce_index, cookie, token, options });
        assert_eq!(layout(&test), *b"\x3b\x02\x04\0\0\0\x01\x02a cookiehomekey1");
    }

    #[test]
    fn binding_messages_have_the_layout_of_the_rfc() {
        let request = Message::BindingRefreshRequest(BindingRefreshRequest::default());
        assert_eq!(layout(&request), [59, 0, 0, 0, 0, 0, 0, 0]);
        let update = Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(0x0102),
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::OVERWRITE),
            lifetime: Lifetime::from_units(0x0304),
            options: MobilityOptions::new(),
        });
        // Without options 4 bytes of padding are necessary.
        assert_eq!(layout(&update), [59, 1, 5, 0, 0, 0, 1, 2, 0x80, 0x40, 3, 4, 1, 2, 0, 0]);
        let acknowledgement = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::SequenceNumberOutOfWindow,
            flags: AcknowledgementFlags::KEY_MANAGEMENT_MOBILITY_CAPABILITY,
            sequence: SequenceNumber(0x0102),
            lifetime: Lifetime::from_units(0x0304),
            options: MobilityOptions::new(),
        });
        assert_eq!(layout(&acknowledgement), [59, 1, 6, 0, 0, 0, 135, 0x80, 1, 2, 3, 4, 1, 2, 0, 0]);
        let error = Message::BindingError(BindingError {
            status: BindingErrorStatus::UnknownBinding,
            home_address: HOME,
            options: MobilityOptions::new(),
        });
        let expected = [59, 2, 7, 0, 0, 0, 1, 0, 0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!(layout(&error), expected);
    }

    #[test]
    fn messages_of_fast_handovers_have_the_layout_of_the_rfc() {
        let update = Message::FastBindingUpdate(BindingUpdate {
            sequence: SequenceNumber(0x0102),
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            lifetime: Lifetime::from_units(0x0304),
            options: MobilityOptions::new(),
        });
        assert_eq!(layout(&update), [59, 1, 8, 0, 0, 0, 1, 2, 0xc0, 0, 3, 4, 1, 2, 0, 0]);
        let acknowledgement = Message::FastBindingAcknowledgement(FastBindingAcknowledgement {
            status: FastBindingStatus::InsufficientResources,
            flags: AcknowledgementFlags::KEY_MANAGEMENT_MOBILITY_CAPABILITY,
            sequence: SequenceNumber(0x0102),
            lifetime: Lifetime::from_units(0x0304),
            options: MobilityOptions::new(),
        });
        assert_eq!(layout(&acknowledgement), [59, 1, 9, 0, 0, 0, 130, 0x80, 1, 2, 3, 4, 1, 2, 0, 0]);
        let initiate = Message::HandoverInitiate(HandoverInitiate {
            sequence: SequenceNumber(0x0102),
            assign_address: true,
            buffer: true,
            code: InitiateCode::FromNewLink,
            options: MobilityOptions::new(),
        });
        assert_eq!(layout(&initiate), [59, 1, 14, 0, 0, 0, 1, 2, 0xc0, 1, 1, 4, 0, 0, 0, 0]);
        let acknowledge = Message::HandoverAcknowledge(HandoverAcknowledge {
            sequence: SequenceNumber(0x0102),
            code: HandoverCode::AcceptedUsePreviousAddress,
            options: MobilityOptions::new(),
        });
        assert_eq!(layout(&acknowledge), [59, 1, 15, 0, 0, 0, 1, 2, 0, 3, 1, 4, 0, 0, 0, 0]);
        let all = [update, acknowledgement, initiate, acknowledge];
        assert!(all.iter().all(Message::is_unknown_to_mobile_ipv6));
    }

    /// RFC 5568 sections 6.2.2 and 6.2.3: flags of other protocols are not relevant, and zero.
    #[test]
    fn fast_messages_have_no_flags_of_other_protocols() {
        let bytes = summed(alloc::vec![59, 1, 8, 0, 0, 0, 1, 2, 0xff, 0xff, 3, 4, 1, 2, 0, 0]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        assert_eq!(layout(&message)[8..10], [0xf0, 0]);
        let bytes = summed(alloc::vec![59, 1, 9, 0, 0, 0, 0, 0xff, 1, 2, 3, 4, 1, 2, 0, 0]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        assert_eq!(layout(&message)[7], 0x80);
        let bytes = summed(alloc::vec![59, 1, 14, 0, 0, 0, 1, 2, 0xff, 0, 1, 4, 0, 0, 0, 0]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        assert_eq!(layout(&message)[8], 0xc0);
    }

    #[test]
    fn reserved_bits_are_ignored_and_not_passed_on() {
        let bytes = summed(alloc::vec![59, 1, 5, 0xff, 0, 0, 1, 2, 0x80, 0x3e, 3, 4, 1, 2, 0xff, 0xff]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        assert_eq!(layout(&message), [59, 1, 5, 0, 0, 0, 1, 2, 0x80, 0, 3, 4, 1, 2, 0, 0]);
        let bytes = summed(alloc::vec![59, 1, 6, 0xff, 0, 0, 0, 0x8f, 1, 2, 3, 4, 0, 0, 0, 0]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        assert_eq!(layout(&message), [59, 1, 6, 0, 0, 0, 0, 0x80, 1, 2, 3, 4, 1, 2, 0, 0]);
    }

    #[test]
    fn the_checksum_covers_both_addresses_and_every_byte() {
        let message = Message::BindingRefreshRequest(BindingRefreshRequest::default());
        let bytes = message.emit(HOME, CORRESPONDENT).unwrap();
        let is_refused = |source, destination, bytes: &[u8]| {
            matches!(Message::parse(source, destination, bytes), Err(Error::Checksum { offset: 4, .. }))
        };
        assert!(is_refused(HOME, HOME, &bytes));
        assert!(is_refused(CORRESPONDENT, CORRESPONDENT, &bytes));
        for at in [0, 2, 3, 4, 5, 6, 7] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(is_refused(HOME, CORRESPONDENT, &changed), "byte {at}");
        }
    }

    #[test]
    fn an_unknown_type_is_kept_whatever_its_payload_proto() {
        let bytes = summed(alloc::vec![6, 1, 10, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let message = Message::parse(HOME, CORRESPONDENT, &bytes).unwrap();
        let unknown = UnknownMessage::new(10, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
        assert_eq!(message, Message::Unknown(unknown));
        assert_eq!(layout(&message)[..3], [59, 1, 10]);
        for known in [0, 7, 8, 9, 14, 15] {
            assert!(UnknownMessage::new(known, &[0; 2]).is_none());
        }
        assert!(UnknownMessage::new(10, &[0; 3]).is_none());
        assert!(UnknownMessage::new(10, &[0; 2]).is_some());
        assert!(UnknownMessage::new(10, &[0; Message::MAX_LEN + 2]).is_none());
    }

    #[test]
    fn errors_point_at_the_field_that_an_icmp_error_names() {
        let parse = |bytes: Vec<u8>| Message::parse(HOME, CORRESPONDENT, &summed(bytes)).unwrap_err();
        assert_eq!(
            parse(alloc::vec![6, 0, 0, 0, 0, 0, 0, 0]).to_string(),
            "Payload Proto at offset 0 is 6, not 59"
        );
        for (kind, len) in
            [(1, 8), (2, 8), (3, 16), (4, 16), (5, 8), (6, 8), (7, 16), (8, 8), (9, 8), (14, 8), (15, 8)]
        {
            let mut bytes = alloc::vec![0; len];
            (bytes[0], bytes[1], bytes[2]) = (59, (len / 8 - 1) as u8, kind);
            let found = (len / 8 - 1) as u32;
            let expected = "that of the message or more";
            assert_eq!(parse(bytes), Error::Invalid { field: "Header Len", offset: 1, found, expected });
        }
        let truncated = Error::Truncated { what: "Mobility Header", offset: 0, needed: 16, found: 15 };
        let mut bytes = alloc::vec![0; 15];
        bytes[1] = 1;
        assert_eq!(Message::parse(HOME, CORRESPONDENT, &bytes), Err(truncated));
        assert!(Message::parse(HOME, CORRESPONDENT, &[]).is_err());
    }

    #[test]
    fn nothing_follows_the_header() {
        let message = Message::BindingRefreshRequest(BindingRefreshRequest::default());
        let mut bytes = message.emit(HOME, CORRESPONDENT).unwrap();
        bytes.extend([1, 2, 3]);
        assert_eq!(Message::parse(HOME, CORRESPONDENT, &bytes), Ok(message));
    }

    #[test]
    fn more_options_than_the_header_holds_are_refused() {
        let option = || {
            let unknown = crate::mip6::UnknownOption::new(200, &[0; 252]).unwrap();
            MobilityOption::Unknown(unknown)
        };
        let with = |count| {
            let options = (0..count).map(|_| option()).collect();
            Message::BindingRefreshRequest(BindingRefreshRequest { options })
        };
        assert_eq!(with(8).emit(HOME, CORRESPONDENT).unwrap().len(), 2040);
        let error = with(9).emit(HOME, CORRESPONDENT).unwrap_err();
        assert_eq!(error, TooLong { needed: 2296 });
        assert_eq!(error.to_string(), "the Mobility Header would take 2296 bytes, it has 2048 at most");
    }

    #[test]
    fn the_alternate_care_of_address_goes_before_the_source() {
        let mut update = BindingUpdate {
            sequence: SequenceNumber(1),
            flags: UpdateFlags::default(),
            lifetime: Lifetime::from_units(1),
            options: MobilityOptions::new(),
        };
        let (source, care_of_address) = (CORRESPONDENT, Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7));
        assert_eq!(update.care_of_address(source), source);
        update.options.push(MobilityOption::AlternateCareOfAddress(care_of_address));
        assert_eq!(update.care_of_address(source), care_of_address);
    }
}
