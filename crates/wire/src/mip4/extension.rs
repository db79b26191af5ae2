//! The extensions that follow a registration message.

use alloc::vec::Vec;
use core::fmt;

use super::vendor::{VENDOR_HEADER_LEN, VendorExtension};
use super::{MultipathExtension, PreviousForeignAgent};
use crate::extension::{Frame, HEADER_LEN, ONE_BYTE_PADDING};
use crate::spi::Spi;
use crate::{Error, UnknownExtension};

pub(super) const SPI_LEN: usize = 4;

const MOBILE_HOME_AUTHENTICATION: u8 = 32;
const MOBILE_FOREIGN_AUTHENTICATION: u8 = 33;
const FOREIGN_HOME_AUTHENTICATION: u8 = 34;
const ROUTE_OPTIMIZATION_AUTHENTICATION: u8 = 35;
const PREVIOUS_FOREIGN_AGENT: u8 = 96;
const ENCAPSULATING_DELIVERY_STYLE: u8 = 130;
const VENDOR: u8 = 134;

/// Which two parties an authentication extension is between (RFC 5944 sections 3.5.2 to 3.5.4; the last of
/// draft-ietf-mobileip-optim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthenticationKind {
    /// Mobile-Home, type 32.
    MobileHome,
    /// Mobile-Foreign, type 33.
    MobileForeign,
    /// Foreign-Home, type 34.
    ForeignHome,
    /// Whoever keeps a binding and whoever may tell of one, type 35.
    RouteOptimization,
}

impl AuthenticationKind {
    /// The Type of the extension.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::MobileHome => MOBILE_HOME_AUTHENTICATION,
            Self::MobileForeign => MOBILE_FOREIGN_AUTHENTICATION,
            Self::ForeignHome => FOREIGN_HOME_AUTHENTICATION,
            Self::RouteOptimization => ROUTE_OPTIMIZATION_AUTHENTICATION,
        }
    }
}

impl fmt::Display for AuthenticationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MobileHome => "Mobile-Home",
            Self::MobileForeign => "Mobile-Foreign",
            Self::ForeignHome => "Foreign-Home",
            Self::RouteOptimization => "Route Optimization",
        })
    }
}

/// An authentication extension as it stands in a message.
///
/// It only carries the authenticator; [`super::append_authentication`] makes one and
/// [`super::verify_authentication`] checks one, both over the bytes of the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthenticationExtension {
    kind: AuthenticationKind,
    spi: Spi,
    authenticator: Vec<u8>,
}

impl AuthenticationExtension {
    /// Bytes on the wire beside the authenticator.
    pub const OVERHEAD: usize = HEADER_LEN + SPI_LEN;

    /// The longest authenticator the Length octet can tell, bytes.
    pub const MAX_AUTHENTICATOR_LEN: usize = u8::MAX as usize - SPI_LEN;

    /// An extension with this authenticator; `None` when it is longer than
    /// [`Self::MAX_AUTHENTICATOR_LEN`].
    #[must_use]
    pub fn new(kind: AuthenticationKind, spi: Spi, authenticator: &[u8]) -> Option<Self> {
        (authenticator.len() <= Self::MAX_AUTHENTICATOR_LEN).then(|| Self {
            kind,
            spi,
            authenticator: authenticator.to_vec(),
        })
    }

    /// Between whom it is.
    #[must_use]
    pub const fn kind(&self) -> AuthenticationKind {
        self.kind
    }

    /// Names the security association.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// The authenticator, of whatever length was received.
    #[must_use]
    pub fn authenticator(&self) -> &[u8] {
        &self.authenticator
    }
}

/// An extension of a registration message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    /// Type 0: a single byte without Length (RFC 5944 section 1.8).
    OneBytePadding,
    /// Types 32 to 35.
    Authentication(AuthenticationExtension),
    /// Type 96: the foreign agent that the mobile node comes from is to be told.
    PreviousForeignAgent(PreviousForeignAgent),
    /// Encapsulating Delivery Style, type 130 (RFC 3024 section 3.3): the mobile node tunnels what it sends
    /// to the foreign agent, which consumes the extension. It stands behind the Mobile-Home authentication,
    /// and only in a request with the `T` bit.
    EncapsulatingDeliveryStyle,
    /// Type 134 (RFC 3115): skipped by who does not know the vendor.
    Vendor(VendorExtension),
    /// Type 154 (RFC 7629): which of several bindings the request is about.
    Multipath(MultipathExtension),
    /// Any other type from 128 on, or sub-type: skipped.
    Unknown(UnknownExtension),
}

impl Extension {
    /// The Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::OneBytePadding => ONE_BYTE_PADDING,
            Self::Authentication(extension) => extension.kind.number(),
            Self::PreviousForeignAgent(_) => PREVIOUS_FOREIGN_AGENT,
            Self::EncapsulatingDeliveryStyle => ENCAPSULATING_DELIVERY_STYLE,
            Self::Vendor(_) => VENDOR,
            Self::Multipath(_) => MultipathExtension::TYPE,
            Self::Unknown(extension) => extension.kind(),
        }
    }

    /// Bytes on the wire, Type and Length included.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self {
            Self::OneBytePadding => 1,
            Self::Authentication(extension) => {
                AuthenticationExtension::OVERHEAD + extension.authenticator.len()
            }
            Self::PreviousForeignAgent(extension) => HEADER_LEN + extension.data_len(),
            Self::EncapsulatingDeliveryStyle => HEADER_LEN,
            Self::Vendor(extension) => HEADER_LEN + VENDOR_HEADER_LEN + extension.value().len(),
            Self::Multipath(_) => HEADER_LEN + MultipathExtension::DATA_LEN,
            Self::Unknown(extension) => HEADER_LEN + extension.data().len(),
        }
    }

    /// Appends the extension.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.kind());
        if let Some(data_len) = self.wire_len().checked_sub(HEADER_LEN) {
            // The constructors keep the data of every extension within what the Length octet can tell.
            bytes.push(data_len as u8);
        }
        match self {
            Self::Authentication(extension) => {
                bytes.extend(extension.spi.0.to_be_bytes());
                bytes.extend(&extension.authenticator);
            }
            Self::OneBytePadding | Self::EncapsulatingDeliveryStyle => {}
            Self::PreviousForeignAgent(extension) => extension.emit(bytes),
            Self::Vendor(extension) => extension.emit(bytes),
            Self::Multipath(extension) => bytes.extend(extension.data()),
            Self::Unknown(extension) => bytes.extend(extension.data()),
        }
    }

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let authentication = |kind| match frame.data.split_first_chunk::<SPI_LEN>() {
            Some((spi, authenticator)) => Ok(Self::Authentication(AuthenticationExtension {
                kind,
                spi: Spi(u32::from_be_bytes(*spi)),
                authenticator: authenticator.to_vec(),
            })),
            None => Err(frame.wrong_length("4 or more")),
        };
        match frame.kind {
            MOBILE_HOME_AUTHENTICATION => authentication(AuthenticationKind::MobileHome),
            MOBILE_FOREIGN_AUTHENTICATION => authentication(AuthenticationKind::MobileForeign),
            FOREIGN_HOME_AUTHENTICATION => authentication(AuthenticationKind::ForeignHome),
            ROUTE_OPTIMIZATION_AUTHENTICATION => authentication(AuthenticationKind::RouteOptimization),
            PREVIOUS_FOREIGN_AGENT => PreviousForeignAgent::decode(frame).map(Self::PreviousForeignAgent),
            ENCAPSULATING_DELIVERY_STYLE if frame.data.is_empty() => Ok(Self::EncapsulatingDeliveryStyle),
            ENCAPSULATING_DELIVERY_STYLE => Err(frame.wrong_length("0")),
            VENDOR => VendorExtension::decode(frame.data)
                .map(Self::Vendor)
                .ok_or_else(|| frame.wrong_length("8 or more")),
            kind => match MultipathExtension::decode(frame.data).filter(|_| kind == MultipathExtension::TYPE)
            {
                Some(extension) => Ok(Self::Multipath(extension)),
                None => UnknownExtension::received(kind, frame.data).map(Self::Unknown),
            },
        }
    }

    /// The extensions that fill `bytes`, which start `offset` bytes into the message.
    pub(super) fn parse_all(mut bytes: &[u8], mut offset: usize) -> Result<Vec<Self>, Error> {
        let mut extensions = Vec::new();
        while let Some(first) = bytes.first() {
            let (extension, rest) = if *first == ONE_BYTE_PADDING {
                (Self::OneBytePadding, bytes.get(1..).unwrap_or_default())
            } else {
                let (frame, rest) = Frame::split(bytes).map_err(|error| error.shifted(offset))?;
                (Self::decode(&frame).map_err(|error| error.shifted(offset))?, rest)
            };
            offset += extension.wire_len();
            extensions.push(extension);
            bytes = rest;
        }
        Ok(extensions)
    }
}

/// An extension and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedExtension<'a> {
    /// Bytes from the start of the message to the extension's Type.
    pub offset: usize,
    /// The extension.
    pub extension: &'a Extension,
}

impl PlacedExtension<'_> {
    /// Bytes from the start of the message to the end of the extension.
    #[must_use]
    pub fn end(&self) -> usize {
        self.offset + self.extension.wire_len()
    }
}

/// Extensions with their places, the first of them at `offset`.
///
/// The places follow from the lengths, in a received message as in one to be sent: parsing keeps every
/// byte of every extension.
pub(super) fn placed(extensions: &[Extension], offset: usize) -> impl Iterator<Item = PlacedExtension<'_>> {
    extensions.iter().scan(offset, |next, extension| {
        let offset = *next;
        *next += extension.wire_len();
        Some(PlacedExtension { offset, extension })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_below_128_condemns_the_message_and_one_above_does_not() {
        assert_eq!(
            Extension::parse_all(&[127, 0], 24),
            Err(Error::UnknownExtension { kind: 127, offset: 24 })
        );
        let extensions = Extension::parse_all(&[200, 1, 9, 130, 0], 24).unwrap();
        let unknown = UnknownExtension::new(200, &[9]).unwrap();
        assert_eq!(extensions, [Extension::Unknown(unknown), Extension::EncapsulatingDeliveryStyle]);
        let offsets: Vec<_> = placed(&extensions, 24).map(|placed| (placed.offset, placed.end())).collect();
        assert_eq!(offsets, [(24, 27), (27, 29)]);
    }

    #[test]
    fn padding_is_one_byte_without_a_length() {
        let bytes = [0, 130, 0, 0, 0];
        let extensions = Extension::parse_all(&bytes, 24).unwrap();
        let padding = Extension::OneBytePadding;
        assert_eq!(
            extensions,
            [padding.clone(), Extension::EncapsulatingDeliveryStyle, padding.clone(), padding]
        );
        let offsets: Vec<_> = placed(&extensions, 24).map(|placed| placed.offset).collect();
        assert_eq!(offsets, [24, 25, 27, 28]);
        let mut emitted = Vec::new();
        extensions.iter().for_each(|extension| extension.emit(&mut emitted));
        assert_eq!(emitted, bytes);
    }

    #[test]
    fn errors_name_the_place_in_the_message() {
        assert_eq!(
            Extension::parse_all(&[200, 0, 32, 20, 0], 20),
            Err(Error::Truncated { what: "extension", offset: 22, needed: 22, found: 3 })
        );
        assert_eq!(
            Extension::parse_all(&[32, 3, 0, 0, 0], 20),
            Err(Error::Invalid { field: "extension Length", offset: 21, found: 3, expected: "4 or more" })
        );
        assert_eq!(
            Extension::parse_all(&[130, 1, 0], 20),
            Err(Error::Invalid { field: "extension Length", offset: 21, found: 1, expected: "0" })
        );
        assert_eq!(
            Extension::parse_all(&[134, 7, 0, 0, 0, 0, 0, 9, 0], 20),
            Err(Error::Invalid { field: "extension Length", offset: 21, found: 7, expected: "8 or more" })
        );
        assert_eq!(
            Extension::parse_all(&[200], 20),
            Err(Error::Truncated { what: "extension", offset: 20, needed: 2, found: 1 })
        );
    }

    #[test]
    fn another_vendors_extension_is_kept_with_every_bit() {
        let bytes = [134, 10, 0xab, 0xcd, 0, 0, 0, 9, 0, 7, 0xee, 0xff, 130, 0];
        let extensions = Extension::parse_all(&bytes, 24).unwrap();
        let [Extension::Vendor(vendor), Extension::EncapsulatingDeliveryStyle] = &extensions[..] else {
            panic!("{extensions:?}");
        };
        assert_eq!((vendor.vendor(), vendor.kind(), vendor.value()), (9, 7, &[0xee, 0xff][..]));
        let mut emitted = Vec::new();
        extensions.iter().for_each(|extension| extension.emit(&mut emitted));
        assert_eq!(emitted, bytes);
    }

    #[test]
    fn an_authenticator_too_long_for_the_length_octet_is_refused() {
        assert!(AuthenticationExtension::new(AuthenticationKind::MobileHome, Spi(256), &[0; 252]).is_none());
        assert!(AuthenticationExtension::new(AuthenticationKind::MobileHome, Spi(256), &[0; 251]).is_some());
    }
}
