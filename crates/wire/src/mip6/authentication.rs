//! Keys, keygen tokens and authenticators.
//!
//! Both kinds of authenticator cover two addresses and the Mobility Header from its start, with the Checksum taken as zero: up to
//! the Authenticator of Binding Authorization Data, which is the header's end (RFC 6275 section 6.2.7), or up to and with the mobility SPI
//! of a Mobility Message Authentication option (RFC 4285 section 5.1).

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;

use hmac::{Hmac, KeyInit, Mac};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::message::{TooLong, common, fill_checksum, fixed_len, header};
use super::option::{BINDING_AUTHORIZATION_DATA, Frame, MESSAGE_AUTHENTICATION, frames};
use super::{
    AuthenticationSubtype, Authenticator, KeygenToken, Message, MessageAuthentication, MobilityOption, Spi,
};

/// Bytes of the authenticators that HMAC-SHA1 makes: the first 96 bits.
const SHA1_96_LEN: usize = 12;

fn keyed<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> M {
    // HMAC takes keys of any length, so the error `new_from_slice` shares with other codes never happens.
    let Ok(mac) = <M as KeyInit>::new_from_slice(key) else { unreachable!("HMAC refused a key") };
    parts.iter().fold(mac, |mac, part| mac.chain_update(part))
}

/// A nonce of a correspondent node (RFC 6275 section 5.2.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; 8]);

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce")
    }
}

/// The secret of a correspondent node, Kcn, with which it makes keygen tokens (RFC 6275 section 5.2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct NodeKey(pub [u8; 20]);

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey")
    }
}

impl NodeKey {
    /// The home keygen token for `home_address` (RFC 6275 section 5.2.5).
    #[must_use]
    pub fn home_keygen_token(&self, home_address: Ipv6Addr, nonce: Nonce) -> KeygenToken {
        self.token(home_address, nonce, 0)
    }

    /// The care-of keygen token for `care_of_address` (RFC 6275 section 5.2.5).
    #[must_use]
    pub fn care_of_keygen_token(&self, care_of_address: Ipv6Addr, nonce: Nonce) -> KeygenToken {
        self.token(care_of_address, nonce, 1)
    }

    /// First (64, HMAC_SHA1 (Kcn, (address | nonce | `kind`))).
    fn token(&self, address: Ipv6Addr, nonce: Nonce, kind: u8) -> KeygenToken {
        let mac = keyed::<Hmac<Sha1>>(&self.0, &[&address.octets(), &nonce.0, &[kind]]).finalize();
        let mut token = [0; 8];
        token.copy_from_slice(&mac.as_bytes()[..8]);
        KeygenToken(token)
    }
}

/// The key that return routability makes, Kbm (RFC 6275 section 5.2.5).
#[derive(Clone, PartialEq, Eq)]
pub struct BindingManagementKey([u8; 20]);

impl fmt::Debug for BindingManagementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BindingManagementKey")
    }
}

impl BindingManagementKey {
    /// The key to register a care-of address: SHA-1 (home keygen token | care-of keygen token).
    #[must_use]
    pub fn new(home: KeygenToken, care_of: KeygenToken) -> Self {
        Self(Sha1::new().chain_update(home.0).chain_update(care_of.0).finalize().into())
    }

    /// The key to delete a binding, or to answer its deletion: SHA-1 (home keygen token).
    #[must_use]
    pub fn for_deletion(home: KeygenToken) -> Self {
        Self(Sha1::digest(home.0).into())
    }

    /// The 20 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

/// What Binding Authorization Data is made with and checked by (RFC 6275 section 6.2.7).
#[derive(Clone, Copy, Debug)]
pub struct BindingAuthorization<'a> {
    /// The key.
    pub key: &'a BindingManagementKey,
    /// The care-of address that the update registers; the home address when it deletes a binding. That of the update in an
    /// acknowledgement as well.
    pub care_of_address: Ipv6Addr,
    /// The correspondent node; its home address when it is mobile itself.
    pub correspondent: Ipv6Addr,
}

impl BindingAuthorization<'_> {
    fn mac(&self, header: &[u8], authenticator_offset: usize) -> Hmac<Sha1> {
        let addresses = [self.care_of_address, self.correspondent];
        keyed_header(&self.key.0, addresses, &header[..authenticator_offset])
    }

    /// Whether the Binding Authorization Data of the received Mobility Header `bytes` is genuine.
    ///
    /// The check is over the bytes as they were received, and takes the same time wherever authenticators differ. It fails when
    /// there is no such option or when it is not the last.
    #[must_use]
    pub fn verify(&self, bytes: &[u8]) -> bool {
        let is_authorization = |frame: &Frame<'_>| frame.kind == BINDING_AUTHORIZATION_DATA;
        let Some((header, frame)) = find(bytes, is_authorization) else { return false };
        let (at, len) = (frame.data_offset(), frame.data.len());
        len == SHA1_96_LEN
            && at + len == header.len()
            && self.mac(header, at).verify_truncated_left(frame.data).is_ok()
    }
}

/// How the authenticator of a Mobility Message Authentication option is computed. No number on the wire says it: the SPI does,
/// by configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC-SHA1, its first 96 bits: that of RFC 4285 section 5.1.
    #[default]
    HmacSha1,
    /// HMAC-SHA-256, its first 128 bits. An extension of careof: no RFC defines it for this option.
    HmacSha256,
}

impl Algorithm {
    /// Bytes of an authenticator.
    #[must_use]
    pub const fn authenticator_len(self) -> usize {
        match self {
            Self::HmacSha1 => SHA1_96_LEN,
            Self::HmacSha256 => 16,
        }
    }
}

/// What a Mobility Message Authentication option between mobile node and home agent is made with and checked by (RFC 4285 section
/// 5.1).
#[derive(Clone, Copy, Debug)]
pub struct MobileHomeAuthentication<'a> {
    /// Names the mobility security association.
    pub spi: Spi,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// Its key; of 16 bytes in the RFC, of any length here.
    pub key: &'a [u8],
    /// The care-of address that the update registers or registered: that of the update in an acknowledgement as well.
    pub care_of_address: Ipv6Addr,
    /// The mobile node's home address.
    pub home_address: Ipv6Addr,
}

impl MobileHomeAuthentication<'_> {
    /// Whether the option between mobile node and home agent in the received Mobility Header `bytes` has this SPI and is genuine.
    ///
    /// The check is over the bytes as they were received, and takes the same time wherever authenticators differ. What stands
    /// behind the option it does not protect: see [`super::MobilityOptions::end_with_authentication`].
    #[must_use]
    pub fn verify(&self, bytes: &[u8]) -> bool {
        let mobile_home = [AuthenticationSubtype::MobileHome.number()];
        let is_mobile_home =
            |frame: &Frame<'_>| frame.kind == MESSAGE_AUTHENTICATION && frame.data.starts_with(&mobile_home);
        let Some((header, frame)) = find(bytes, is_mobile_home) else { return false };
        let Some((fixed, authenticator)) = frame.data.split_at_checked(MessageAuthentication::FIXED_LEN)
        else {
            return false;
        };
        if fixed[1..] != self.spi.0.to_be_bytes() || authenticator.len() != self.algorithm.authenticator_len()
        {
            return false;
        }
        let covered = &header[..frame.data_offset() + MessageAuthentication::FIXED_LEN];
        let addresses = [self.care_of_address, self.home_address];
        match self.algorithm {
            Algorithm::HmacSha1 => {
                keyed_header::<Hmac<Sha1>>(self.key, addresses, covered).verify_truncated_left(authenticator)
            }
            Algorithm::HmacSha256 => keyed_header::<Hmac<Sha256>>(self.key, addresses, covered)
                .verify_truncated_left(authenticator),
        }
        .is_ok()
    }

    /// The authenticator over the part of a Mobility Header that it covers.
    fn authenticator(&self, covered: &[u8]) -> Vec<u8> {
        let addresses = [self.care_of_address, self.home_address];
        let mut bytes = match self.algorithm {
            Algorithm::HmacSha1 => {
                keyed_header::<Hmac<Sha1>>(self.key, addresses, covered).finalize().as_bytes().to_vec()
            }
            Algorithm::HmacSha256 => {
                keyed_header::<Hmac<Sha256>>(self.key, addresses, covered).finalize().as_bytes().to_vec()
            }
        };
        bytes.truncate(self.algorithm.authenticator_len());
        bytes
    }
}

/// A MAC over two addresses and the Mobility Header's first bytes, the Checksum among them as zero.
fn keyed_header<M: Mac + KeyInit>(key: &[u8], [first, second]: [Ipv6Addr; 2], covered: &[u8]) -> M {
    let (before, behind) = (&covered[..common::CHECKSUM], &covered[common::LEN..]);
    keyed(key, &[&first.octets(), &second.octets(), before, &[0; 2], behind])
}

/// The Mobility Header at the front of `bytes` and its first option that is `wanted`.
fn find(bytes: &[u8], wanted: impl Fn(&Frame<'_>) -> bool) -> Option<(&[u8], Frame<'_>)> {
    let header = header(bytes).ok()?;
    let options_at = fixed_len(*header.get(common::MH_TYPE)?)?;
    let mut options = frames(header.get(options_at..)?, options_at).map_while(Result::ok);
    Some((header, options.find(wanted)?))
}

impl Message {
    /// The Mobility Header as [`Message::emit`] gives it, with Binding Authorization Data behind its options, in place of any that is
    /// among them.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: the options do not fit.
    pub fn emit_authorized(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        authorization: &BindingAuthorization<'_>,
    ) -> Result<Vec<u8>, TooLong> {
        let placeholder = MobilityOption::BindingAuthorizationData(Authenticator::zeroed(SHA1_96_LEN));
        let (mut bytes, end) = self.unsummed(Some(&placeholder))?;
        let at = end - SHA1_96_LEN;
        let mac = authorization.mac(&bytes, at).finalize();
        bytes[at..end].copy_from_slice(&mac.as_bytes()[..SHA1_96_LEN]);
        fill_checksum(source, destination, &mut bytes);
        Ok(bytes)
    }

    /// The Mobility Header as [`Message::emit`] gives it, with a Mobility Message Authentication option between mobile node and
    /// home agent behind its options. Binding Authorization Data among them is left out, because neither may stand before the other.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: the options do not fit.
    pub fn emit_authenticated(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        authentication: &MobileHomeAuthentication<'_>,
    ) -> Result<Vec<u8>, TooLong> {
        let placeholder = MobilityOption::MessageAuthentication(MessageAuthentication::zeroed(
            AuthenticationSubtype::MobileHome,
            authentication.spi,
            authentication.algorithm.authenticator_len(),
        ));
        let (mut bytes, end) = self.unsummed(Some(&placeholder))?;
        let at = end - authentication.algorithm.authenticator_len();
        let authenticator = authentication.authenticator(&bytes[..at]);
        bytes[at..end].copy_from_slice(&authenticator);
        fill_checksum(source, destination, &mut bytes);
        Ok(bytes)
    }
}
