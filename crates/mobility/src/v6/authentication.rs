//! How a mobile node and its home agent know each other's Binding Updates and Acknowledgements (RFC 4285).

use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use careof_wire::mip6::{
    Algorithm, AuthenticationSubtype, BindingUpdate, MobileHomeAuthentication, MobilityOptions, Spi,
};

use super::DropReason;
use crate::ConfigError;

/// How Binding Updates under a security association are protected against replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayProtection {
    /// By the timestamp in a Mobility Message Replay Protection option (RFC 4285 section 6): the home agent accepts those
    /// within `window` of its own clock that are later than all it accepted before.
    Timestamps {
        /// Tolerated difference of the clocks, either way; the RFC's default is 7 s, and it should be more than 3 s.
        window: Duration,
    },
    /// By the sequence number of the update alone (RFC 6275 section 9.5.1). A home agent that has forgotten a binding takes any
    /// number, so that what was recorded can then be replayed to it.
    SequenceNumbers,
}

impl ReplayProtection {
    /// Timestamps within 7 s.
    pub const TIMESTAMPS: Self = Self::Timestamps { window: Duration::from_secs(7) };
}

impl Default for ReplayProtection {
    fn default() -> Self {
        Self::TIMESTAMPS
    }
}

/// What a mobile node and its home agent have agreed on (RFC 4285 section 3.1).
pub type SecurityAssociation = crate::SecurityAssociation<Algorithm, ReplayProtection>;

impl SecurityAssociation {
    /// What RFC 4285 section 5.1 has: HMAC-SHA1, with timestamps within 7 s.
    ///
    /// # Errors
    /// [`ConfigError::ReservedSpi`] for 0 to 255, [`ConfigError::EmptyKey`] for a key without bytes.
    pub fn hmac_sha1(spi: Spi, key: impl Into<alloc::vec::Vec<u8>>) -> Result<Self, ConfigError> {
        Self::new(spi, Algorithm::HmacSha1, key, ReplayProtection::TIMESTAMPS)
    }

    /// How a message about these addresses is authenticated. RFC 4285 knows no care-of addresses of IPv4: in place of one counts the home
    /// address, the source of the packet that names it. The message, which is authenticated, contains it.
    pub(crate) fn authentication(
        &self,
        care_of_address: Ipv6Addr,
        home_address: Ipv6Addr,
    ) -> MobileHomeAuthentication<'_> {
        let is_ipv4 = care_of_address.to_ipv4_mapped().is_some();
        let care_of_address = if is_ipv4 { home_address } else { care_of_address };
        MobileHomeAuthentication {
            spi: self.spi(),
            algorithm: self.algorithm(),
            key: self.key(),
            care_of_address,
            home_address,
        }
    }
}

/// Checks that the authentication between mobile node and home agent covers the whole message `bytes` with these `options`, and is
/// made with one of `associations`, which is returned.
pub(crate) fn check<'a>(
    bytes: &[u8],
    options: &MobilityOptions,
    mut associations: impl Iterator<Item = &'a SecurityAssociation>,
    care_of_address: Ipv6Addr,
    home_address: Ipv6Addr,
) -> Result<&'a SecurityAssociation, DropReason> {
    let subtype = AuthenticationSubtype::MobileHome;
    // It protects what stands before it (RFC 4285 section 5.1: it is the last option).
    let found = options.message_authentication(subtype).filter(|_| options.end_with_authentication(subtype));
    let spi = found.ok_or(DropReason::MissingAuthenticator)?.spi();
    let association = associations.find(|known| known.spi() == spi).ok_or(DropReason::UnknownSpi)?;
    if association.authentication(care_of_address, home_address).verify(bytes) {
        Ok(association)
    } else {
        Err(DropReason::BadAuthenticator)
    }
}

/// The care-of address of IPv6 that `update` registers or deletes: that of its Binding Identifier option (RFC 5648 section 5.2), or of its
/// Alternate Care-of Address option, or the source address of the packet (RFC 6275 section 9.5.1).
pub(crate) fn care_of_address(update: &BindingUpdate, source: Ipv6Addr) -> Ipv6Addr {
    let identified =
        update.options.binding_identifiers().find_map(|identifier| match identifier.care_of_address {
            Some(IpAddr::V6(address)) => Some(address),
            _ => None,
        });
    identified.unwrap_or_else(|| update.care_of_address(source))
}

/// The same at a home agent, where it may be of IPv4: that of the Binding Identifier option (RFC 5648 section 8.1) or of the IPv4 Care-of
/// Address option (RFC 5555 section 3.1.2).
pub(crate) fn home_care_of_address(update: &BindingUpdate, source: Ipv6Addr) -> Ipv6Addr {
    let identified = update.options.binding_identifiers().find_map(|identifier| identifier.care_of_address);
    match (identified, update.options.ipv4_care_of_address()) {
        (Some(IpAddr::V4(address)), _) | (None, Some(address)) => address.to_ipv6_mapped(),
        (Some(IpAddr::V6(_)), _) | (None, None) => care_of_address(update, source),
    }
}
