//! Registration requests and replies, and the message that is any of those to port 434.

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;

use super::extension::{self, AuthenticationExtension, AuthenticationKind, Extension, PlacedExtension};
use super::path_probe::{self, PathProbe};
use super::route_optimization::{self, BindingAcknowledge, BindingRequest, BindingUpdate, BindingWarning};
use super::{
    MultipathExtension, PathNumber, PathReport, PreviousForeignAgent, ReceivedData, ReplyCode, RequestFlags,
    VendorExtension,
};
use crate::Error;
use crate::fixed::Fixed;

const TYPE_REQUEST: u8 = 1;
const TYPE_REPLY: u8 = 3;

/// Offsets in a Registration Request (RFC 5944 section 3.3).
mod request {
    pub(super) const TYPE: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const LIFETIME: usize = 2;
    pub(super) const HOME_ADDRESS: usize = 4;
    pub(super) const HOME_AGENT: usize = 8;
    pub(super) const CARE_OF_ADDRESS: usize = 12;
    pub(super) const IDENTIFICATION: usize = 16;
    pub(super) const LEN: usize = 24;
}

/// Offsets in a Registration Reply (RFC 5944 section 3.4).
mod reply {
    pub(super) const TYPE: usize = 0;
    pub(super) const CODE: usize = 1;
    pub(super) const LIFETIME: usize = 2;
    pub(super) const HOME_ADDRESS: usize = 4;
    pub(super) const HOME_AGENT: usize = 8;
    pub(super) const IDENTIFICATION: usize = 12;
    pub(super) const LEN: usize = 20;
}

/// The lifetime of a registration, whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lifetime(u16);

impl Lifetime {
    /// In a request: deregister.
    pub const ZERO: Self = Self(0);
    /// 0xffff on the wire.
    pub const INFINITE: Self = Self(u16::MAX);

    /// The lifetime with these seconds in its field; 65535 is [`Lifetime::INFINITE`].
    #[must_use]
    pub const fn from_secs(seconds: u16) -> Self {
        Self(seconds)
    }

    /// The seconds in the field; 65535 for [`Lifetime::INFINITE`].
    #[must_use]
    pub const fn as_secs(self) -> u16 {
        self.0
    }

    /// Whether it asks for a deregistration.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The time it means, or `None` when it is infinite.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        if self.0 == u16::MAX { None } else { Some(Duration::from_secs(self.0 as u64)) }
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u16::MAX { f.write_str("infinite") } else { write!(f, "{} s", self.0) }
    }
}

/// The Identification: matches replies with requests and protects against replay (RFC 5944 section 5.7).
///
/// With timestamps it is an NTP time: seconds since 1900 above, fraction below. With nonces the high half
/// is the home agent's nonce and the low half the mobile node's.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identification(pub u64);

impl Identification {
    /// The identification made of two halves.
    #[must_use]
    pub const fn from_halves(high: u32, low: u32) -> Self {
        Self((high as u64) << 32 | low as u64)
    }

    /// The high-order 32 bits.
    #[must_use]
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The low-order 32 bits: what a reply always copies from its request.
    #[must_use]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for Identification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Identification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.{:08x}", self.high(), self.low())
    }
}

/// A Registration Request (RFC 5944 section 3.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegistrationRequest {
    /// What is asked for.
    pub flags: RequestFlags,
    /// How long the binding is to last; zero to deregister.
    pub lifetime: Lifetime,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// The mobile node's home agent.
    pub home_agent: Ipv4Addr,
    /// The end of the tunnel.
    pub care_of_address: Ipv4Addr,
    /// Matches the reply with the request and protects against replay.
    pub identification: Identification,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl RegistrationRequest {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = request::LEN;

    /// Appends the message.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let mut fixed = Fixed::<{ request::LEN }>::ZERO;
        fixed.put::<{ request::TYPE }, 1>([TYPE_REQUEST]);
        fixed.put::<{ request::FLAGS }, 1>([self.flags.0]);
        fixed.put::<{ request::LIFETIME }, 2>(self.lifetime.0.to_be_bytes());
        fixed.put::<{ request::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ request::HOME_AGENT }, 4>(self.home_agent.octets());
        fixed.put::<{ request::CARE_OF_ADDRESS }, 4>(self.care_of_address.octets());
        fixed.put::<{ request::IDENTIFICATION }, 8>(self.identification.0.to_be_bytes());
        bytes.extend(fixed.bytes());
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    /// What the foreign agent it goes to is to tell the one before: the first such extension behind the Mobile-Home
    /// authentication, for it is no business of the home agent's.
    #[must_use]
    pub fn previous_foreign_agent(&self) -> Option<&PreviousForeignAgent> {
        let behind = self.extensions.iter().skip_while(|extension| !is_mobile_home(extension));
        behind.into_iter().find_map(|extension| match extension {
            Extension::PreviousForeignAgent(notification) => Some(notification),
            _ => None,
        })
    }

    /// What the mobile node says of its path: the first report before the Mobile-Home authentication, which covers it.
    #[must_use]
    pub fn path_report(&self) -> Option<PathReport> {
        self.first_covered(VendorExtension::path_report)
    }

    /// How far the mobile node has received its flows; empty when it does not say so before the Mobile-Home authentication.
    #[must_use]
    pub fn received_data(&self) -> ReceivedData {
        self.first_covered(VendorExtension::received_data).unwrap_or_default()
    }

    /// The number of the path that is registered, where the mobile node tells it in a vendor extension.
    #[must_use]
    pub fn path_number(&self) -> Option<PathNumber> {
        self.first_covered(VendorExtension::path_number)
    }

    /// Which of several bindings the request is about (RFC 7629): the first Multipath extension before the Mobile-Home authentication.
    #[must_use]
    pub fn multipath(&self) -> Option<MultipathExtension> {
        covered(&self.extensions).find_map(|extension| match extension {
            Extension::Multipath(multipath) => Some(*multipath),
            _ => None,
        })
    }

    /// The first vendor extension of a kind that the Mobile-Home authentication covers.
    fn first_covered<T>(&self, read: impl Fn(&VendorExtension) -> Option<T>) -> Option<T> {
        covered(&self.extensions).find_map(|extension| vendor(extension).and_then(&read))
    }

    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ request::LEN }>::split(bytes, "Registration Request")?;
        Ok(Self {
            flags: RequestFlags(fixed.u8::<{ request::FLAGS }>()),
            lifetime: Lifetime(fixed.u16::<{ request::LIFETIME }>()),
            home_address: fixed.address::<{ request::HOME_ADDRESS }>(),
            home_agent: fixed.address::<{ request::HOME_AGENT }>(),
            care_of_address: fixed.address::<{ request::CARE_OF_ADDRESS }>(),
            identification: Identification(fixed.u64::<{ request::IDENTIFICATION }>()),
            extensions: Extension::parse_all(rest, request::LEN)?,
        })
    }
}

/// The extensions that the Mobile-Home authentication covers; none where there is none.
fn covered(extensions: &[Extension]) -> impl Iterator<Item = &Extension> {
    let count = extensions.iter().position(is_mobile_home).unwrap_or_default();
    extensions.iter().take(count)
}

const fn vendor(extension: &Extension) -> Option<&VendorExtension> {
    match extension {
        Extension::Vendor(vendor) => Some(vendor),
        _ => None,
    }
}

fn is_mobile_home(extension: &Extension) -> bool {
    matches!(extension, Extension::Authentication(found) if found.kind() == AuthenticationKind::MobileHome)
}

/// A Registration Reply (RFC 5944 section 3.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegistrationReply {
    /// The outcome.
    pub code: ReplyCode,
    /// How long the binding lasts, zero when it is gone; with
    /// [`ReplyCode::ForeignRequestedLifetimeTooLong`] the longest that would be accepted. With any other
    /// denial it means nothing.
    pub lifetime: Lifetime,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// The mobile node's home agent.
    pub home_agent: Ipv4Addr,
    /// Matches the request.
    pub identification: Identification,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl RegistrationReply {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = reply::LEN;

    /// Appends the message.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let mut fixed = Fixed::<{ reply::LEN }>::ZERO;
        fixed.put::<{ reply::TYPE }, 1>([TYPE_REPLY]);
        fixed.put::<{ reply::CODE }, 1>([self.code.number()]);
        fixed.put::<{ reply::LIFETIME }, 2>(self.lifetime.0.to_be_bytes());
        fixed.put::<{ reply::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ reply::HOME_AGENT }, 4>(self.home_agent.octets());
        fixed.put::<{ reply::IDENTIFICATION }, 8>(self.identification.0.to_be_bytes());
        bytes.extend(fixed.bytes());
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    /// The number of the path, where the home agent says that it disperses packets over it.
    #[must_use]
    pub fn path_number(&self) -> Option<PathNumber> {
        covered(&self.extensions).filter_map(vendor).find_map(VendorExtension::path_number)
    }

    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ reply::LEN }>::split(bytes, "Registration Reply")?;
        Ok(Self {
            code: ReplyCode::from_number(fixed.u8::<{ reply::CODE }>()),
            lifetime: Lifetime(fixed.u16::<{ reply::LIFETIME }>()),
            home_address: fixed.address::<{ reply::HOME_ADDRESS }>(),
            home_agent: fixed.address::<{ reply::HOME_AGENT }>(),
            identification: Identification(fixed.u64::<{ reply::IDENTIFICATION }>()),
            extensions: Extension::parse_all(rest, reply::LEN)?,
        })
    }
}

/// A Mobile IPv4 control message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Type 1.
    Request(RegistrationRequest),
    /// Type 3.
    Reply(RegistrationReply),
    /// Type 16.
    BindingWarning(BindingWarning),
    /// Type 17.
    BindingRequest(BindingRequest),
    /// Type 18.
    BindingUpdate(BindingUpdate),
    /// Type 19.
    BindingAcknowledge(BindingAcknowledge),
    /// Type 255.
    PathProbe(PathProbe),
}

impl Message {
    /// Reads the payload of a UDP datagram to or from port 434.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownExtension`] for an extension that may not be skipped: the message is to be silently
    /// discarded. Anything else: the message is poorly formed, or of a type that is not known here.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        match bytes.first() {
            Some(&TYPE_REQUEST) => RegistrationRequest::parse(bytes).map(Self::Request),
            Some(&TYPE_REPLY) => RegistrationReply::parse(bytes).map(Self::Reply),
            Some(&route_optimization::TYPE_WARNING) => BindingWarning::parse(bytes).map(Self::BindingWarning),
            Some(&route_optimization::TYPE_REQUEST) => BindingRequest::parse(bytes).map(Self::BindingRequest),
            Some(&route_optimization::TYPE_UPDATE) => BindingUpdate::parse(bytes).map(Self::BindingUpdate),
            Some(&route_optimization::TYPE_ACKNOWLEDGE) => {
                BindingAcknowledge::parse(bytes).map(Self::BindingAcknowledge)
            }
            Some(&path_probe::TYPE_EXPERIMENTAL) => PathProbe::parse(bytes).map(Self::PathProbe),
            Some(&found) => Err(Error::Invalid {
                field: "registration message Type",
                offset: 0,
                found: u32::from(found),
                expected: "1, 3, 16 to 19 or 255",
            }),
            None => Err(Error::Truncated { what: "registration message", offset: 0, needed: 1, found: 0 }),
        }
    }

    /// The message as the payload of a UDP datagram.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Request(request) => request.emit(&mut bytes),
            Self::Reply(reply) => reply.emit(&mut bytes),
            Self::BindingWarning(warning) => warning.emit(&mut bytes),
            Self::BindingRequest(request) => request.emit(&mut bytes),
            Self::BindingUpdate(update) => update.emit(&mut bytes),
            Self::BindingAcknowledge(acknowledge) => acknowledge.emit(&mut bytes),
            Self::PathProbe(probe) => probe.emit(&mut bytes),
        }
        bytes
    }

    /// The extensions in order.
    #[must_use]
    pub fn extensions(&self) -> &[Extension] {
        match self {
            Self::Request(request) => &request.extensions,
            Self::Reply(reply) => &reply.extensions,
            Self::BindingWarning(warning) => &warning.extensions,
            Self::BindingRequest(request) => &request.extensions,
            Self::BindingUpdate(update) => &update.extensions,
            Self::BindingAcknowledge(acknowledge) => &acknowledge.extensions,
            Self::PathProbe(probe) => &probe.extensions,
        }
    }

    /// The extensions in order, with their places in the bytes the message was parsed from, or is emitted
    /// as.
    pub fn placed_extensions(&self) -> impl Iterator<Item = PlacedExtension<'_>> {
        let fixed_len = match self {
            Self::Request(_) => request::LEN,
            Self::Reply(_) => reply::LEN,
            Self::BindingWarning(_) => BindingWarning::FIXED_LEN,
            Self::BindingRequest(_) => BindingRequest::FIXED_LEN,
            Self::BindingUpdate(update) => update.fixed_len(),
            Self::BindingAcknowledge(_) => BindingAcknowledge::FIXED_LEN,
            Self::PathProbe(_) => PathProbe::FIXED_LEN,
        };
        extension::placed(self.extensions(), fixed_len)
    }

    /// The first authentication extension between these parties, with its offset.
    #[must_use]
    pub fn authentication(&self, kind: AuthenticationKind) -> Option<(usize, &AuthenticationExtension)> {
        self.placed_extensions().find_map(|placed| match placed.extension {
            Extension::Authentication(found) if found.kind() == kind => Some((placed.offset, found)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip4::Spi;
    use alloc::string::ToString;

    #[test]
    fn a_request_has_the_layout_of_the_rfc() {
        let request = Message::Request(RegistrationRequest {
            flags: RequestFlags::DECAPSULATION_BY_MOBILE_NODE,
            lifetime: Lifetime::from_secs(0x0102),
            home_address: Ipv4Addr::new(10, 0, 0, 5),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            care_of_address: Ipv4Addr::new(192, 0, 2, 7),
            identification: Identification::from_halves(0xa1a2_a3a4, 0xb1b2_b3b4),
            extensions: alloc::vec![Extension::EncapsulatingDeliveryStyle],
        });
        let bytes = request.emit();
        assert_eq!(
            bytes,
            [
                1, 0x20, 1, 2, 10, 0, 0, 5, 10, 0, 0, 1, 192, 0, 2, 7, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2,
                0xb3, 0xb4, 130, 0
            ]
        );
        assert_eq!(Message::parse(&bytes), Ok(request));
    }

    #[test]
    fn a_reply_has_the_layout_of_the_rfc() {
        let reply = Message::Reply(RegistrationReply {
            code: ReplyCode::HomeIdentificationMismatch,
            lifetime: Lifetime::ZERO,
            home_address: Ipv4Addr::new(10, 0, 0, 5),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            identification: Identification::from_halves(1, 2),
            extensions: Vec::new(),
        });
        let bytes = reply.emit();
        assert_eq!(bytes, [3, 133, 0, 0, 10, 0, 0, 5, 10, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(Message::parse(&bytes), Ok(reply));
    }

    #[test]
    fn a_report_counts_where_the_mobile_home_authentication_covers_it() {
        let report = |lost| PathReport { old_path_lost: Some(lost), ..PathReport::default() };
        let reported = |lost| report(lost).extension();
        let authentication =
            |kind| Extension::Authentication(AuthenticationExtension::new(kind, Spi(256), &[0; 16]).unwrap());
        let home = || authentication(AuthenticationKind::MobileHome);
        let foreign = || authentication(AuthenticationKind::MobileForeign);
        let read = |extensions| {
            let request = RegistrationRequest {
                flags: RequestFlags::default(),
                lifetime: Lifetime::ZERO,
                home_address: Ipv4Addr::UNSPECIFIED,
                home_agent: Ipv4Addr::UNSPECIFIED,
                care_of_address: Ipv4Addr::UNSPECIFIED,
                identification: Identification(0),
                extensions,
            };
            request.path_report()
        };
        assert_eq!(read(alloc::vec![reported(true), home()]), Some(report(true)));
        assert_eq!(read(alloc::vec![foreign(), reported(true), reported(false), home()]), Some(report(true)));
        assert_eq!(read(alloc::vec![home(), reported(true)]), None);
        assert_eq!(read(alloc::vec![reported(true), foreign()]), None);
        assert_eq!(read(alloc::vec![home()]), None);
    }

    #[test]
    fn another_type_is_named_in_the_error() {
        let error = Message::parse(&[7; 24]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "registration message Type at offset 0 is 7, not 1, 3, 16 to 19 or 255"
        );
    }

    #[test]
    fn a_lifetime_of_all_ones_never_ends() {
        assert_eq!(Lifetime::INFINITE.duration(), None);
        assert_eq!(Lifetime::from_secs(300).duration(), Some(Duration::from_secs(300)));
        assert_eq!(Lifetime::INFINITE.to_string(), "infinite");
    }
}
