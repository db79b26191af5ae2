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

use super::fast_handover::FastAuthorizationData;
use super::message::{TooLong, common, fill_checksum, fixed_len, header};
use super::option::{
    BINDING_AUTHORIZATION_DATA, FAST_AUTHORIZATION_DATA, Frame, MESSAGE_AUTHENTICATION, frames,
};
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

    /// The authenticator over two addresses and the part of a Mobility Header that it covers.
    fn authenticator(self, key: &[u8], addresses: [Ipv6Addr; 2], covered: &[u8]) -> Vec<u8> {
        let mut bytes = match self {
            Self::HmacSha1 => {
                keyed_header::<Hmac<Sha1>>(key, addresses, covered).finalize().as_bytes().to_vec()
            }
            Self::HmacSha256 => {
                keyed_header::<Hmac<Sha256>>(key, addresses, covered).finalize().as_bytes().to_vec()
            }
        };
        bytes.truncate(self.authenticator_len());
        bytes
    }

    /// Whether it is this one; the check takes the same time wherever they differ.
    fn verify(self, key: &[u8], addresses: [Ipv6Addr; 2], covered: &[u8], authenticator: &[u8]) -> bool {
        authenticator.len() == self.authenticator_len()
            && match self {
                Self::HmacSha1 => {
                    keyed_header::<Hmac<Sha1>>(key, addresses, covered).verify_truncated_left(authenticator)
                }
                Self::HmacSha256 => {
                    keyed_header::<Hmac<Sha256>>(key, addresses, covered).verify_truncated_left(authenticator)
                }
            }
            .is_ok()
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
        if fixed[1..] != self.spi.0.to_be_bytes() {
            return false;
        }
        let covered = &header[..frame.data_offset() + MessageAuthentication::FIXED_LEN];
        let addresses = [self.care_of_address, self.home_address];
        self.algorithm.verify(self.key, addresses, covered, authenticator)
    }
}

/// What the authorization data of fast handovers, BADF, is made with and checked by (RFC 5568 section 6.4.5): Binding Authorization Data
/// with the access router in place of the correspondent node and the key they share in place of Kbm. The SPI before the authenticator
/// is covered as well.
#[derive(Clone, Copy, Debug)]
pub struct FastBindingAuthorization<'a> {
    /// Names the security association.
    pub spi: Spi,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The key of mobile node and access router.
    pub key: &'a [u8],
    /// The new care-of address that the update names, or the previous one when it ends the binding; that of the update in an
    /// acknowledgement as well.
    pub care_of_address: Ipv6Addr,
    /// The previous access router.
    pub access_router: Ipv6Addr,
}

impl FastBindingAuthorization<'_> {
    /// Whether the BADF option of the received Mobility Header `bytes` has this SPI and is genuine.
    ///
    /// The check is over the bytes as they were received, and takes the same time wherever authenticators differ. It fails when
    /// there is no such option or when it is not the last.
    #[must_use]
    pub fn verify(&self, bytes: &[u8]) -> bool {
        let is_authorization = |frame: &Frame<'_>| frame.kind == FAST_AUTHORIZATION_DATA;
        let Some((header, frame)) = find(bytes, is_authorization) else { return false };
        let Some((spi, authenticator)) = frame.data.split_at_checked(FastAuthorizationData::FIXED_LEN) else {
            return false;
        };
        let at = frame.data_offset() + FastAuthorizationData::FIXED_LEN;
        let is_last = at + authenticator.len() == header.len();
        let addresses = [self.care_of_address, self.access_router];
        *spi == self.spi.0.to_be_bytes()
            && is_last
            && self.algorithm.verify(self.key, addresses, &header[..at], authenticator)
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
    let options_at = fixed_len(*header.get(common::MH_TYPE)?, header.get(common::LEN..)?)?;
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
        let addresses = [authentication.care_of_address, authentication.home_address];
        let key = (authentication.algorithm, authentication.key);
        self.emit_keyed(source, destination, &placeholder, key, addresses)
    }

    /// The Mobility Header as [`Message::emit`] gives it, with the BADF option of fast handovers behind its options, in place of any
    /// Binding Authorization Data among them.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: the options do not fit.
    pub fn emit_fast_authorized(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        authorization: &FastBindingAuthorization<'_>,
    ) -> Result<Vec<u8>, TooLong> {
        let placeholder = MobilityOption::FastAuthorizationData(FastAuthorizationData::zeroed(
            authorization.spi,
            authorization.algorithm.authenticator_len(),
        ));
        let addresses = [authorization.care_of_address, authorization.access_router];
        let key = (authorization.algorithm, authorization.key);
        self.emit_keyed(source, destination, &placeholder, key, addresses)
    }

    /// With `last` behind the options, which ends in room for an authenticator over `addresses` and what stands before it.
    fn emit_keyed(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        last: &MobilityOption,
        (algorithm, key): (Algorithm, &[u8]),
        addresses: [Ipv6Addr; 2],
    ) -> Result<Vec<u8>, TooLong> {
        let (mut bytes, end) = self.unsummed(Some(last))?;
        let at = end - algorithm.authenticator_len();
        let authenticator = algorithm.authenticator(key, addresses, &bytes[..at]);
        bytes[at..end].copy_from_slice(&authenticator);
        fill_checksum(source, destination, &mut bytes);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip6::{
        BindingUpdate, Lifetime, MobilityOptions, NonceIndex, NonceIndices, NtpTimestamp, SequenceNumber,
        UpdateFlags,
    };

    const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
    const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const CARE_OF_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77);
    const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);
    const KEY: &[u8] = b"sixteen bytes ok";

    // The numbers here were computed with the hashlib and hmac of Python 3, where
    //     A = lambda address: ipaddress.IPv6Address(address).packed
    //     hoa, coa, cn = A("2001:db8:1::5"), A("2001:db8:2::77"), A("2001:db8:3::7")

    fn key_of_the_rfcs_recipe() -> BindingManagementKey {
        BindingManagementKey::new(KeygenToken(*b"homekey1"), KeygenToken(*b"carekey1"))
    }

    #[test]
    fn keys_are_hashes_of_the_tokens() {
        // hashlib.sha1(b"homekey1carekey1").hexdigest()
        assert_eq!(
            *key_of_the_rfcs_recipe().bytes(),
            [
                0x07, 0x06, 0xce, 0xeb, 0x24, 0x26, 0xf5, 0x81, 0x92, 0xae, 0x8c, 0x42, 0x18, 0x1a, 0xcd,
                0x09, 0x95, 0x96, 0xbd, 0xeb
            ]
        );
        // hashlib.sha1(b"homekey1").hexdigest()
        assert_eq!(
            *BindingManagementKey::for_deletion(KeygenToken(*b"homekey1")).bytes(),
            [
                0x8f, 0xae, 0xed, 0x3d, 0x3f, 0x08, 0xeb, 0x9a, 0xb2, 0xd2, 0x24, 0x7f, 0x15, 0x44, 0x9c,
                0xa0, 0x5a, 0x9c, 0x9b, 0x7d
            ]
        );
    }

    #[test]
    fn tokens_are_made_of_address_nonce_and_kind() {
        let node_key = NodeKey(core::array::from_fn(|i| i as u8));
        let nonce = Nonce([0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7]);
        // kcn, nonce = bytes(range(20)), bytes.fromhex("a0a1a2a3a4a5a6a7")
        // hmac.new(kcn, hoa + nonce + b"\0", hashlib.sha1).digest()[:8].hex()
        let home = node_key.home_keygen_token(HOME_ADDRESS, nonce);
        assert_eq!(home.0, [0x56, 0x05, 0xbf, 0x88, 0x9f, 0x81, 0x71, 0xdd]);
        // hmac.new(kcn, coa + nonce + b"\1", hashlib.sha1).digest()[:8].hex()
        let care_of = node_key.care_of_keygen_token(CARE_OF_ADDRESS, nonce);
        assert_eq!(care_of.0, [0x0a, 0x2a, 0xbd, 0x5e, 0x6c, 0xcf, 0xc4, 0x53]);
    }

    /// A Binding Update to the correspondent node.
    fn update() -> Message {
        let indices = NonceIndices { home: NonceIndex(3), care_of: NonceIndex(4) };
        Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(0x0102),
            flags: UpdateFlags::ACKNOWLEDGE,
            lifetime: Lifetime::from_units(105),
            options: MobilityOptions::new().with(MobilityOption::NonceIndices(indices)),
        })
    }

    fn authorization(key: &BindingManagementKey) -> BindingAuthorization<'_> {
        BindingAuthorization { key, care_of_address: CARE_OF_ADDRESS, correspondent: CORRESPONDENT }
    }

    #[test]
    fn binding_authorization_data_is_that_of_another_implementation() {
        let key = key_of_the_rfcs_recipe();
        let bytes = update().emit_authorized(HOME_ADDRESS, CORRESPONDENT, &authorization(&key)).unwrap();
        assert_eq!(bytes.len(), 32);
        // mh = bytes.fromhex("3b0305000000" "0102" "8000" "0069" "0404" "00030004" "050c")
        // hmac.new(hashlib.sha1(b"homekey1carekey1").digest(), coa + cn + mh, hashlib.sha1).digest()[:12].hex()
        let authenticator = [0x71, 0xd6, 0x63, 0xe1, 0xc8, 0xd6, 0x29, 0x22, 0x0d, 0xbc, 0x9f, 0x06];
        assert_eq!(bytes[20..], authenticator);
        let parsed = Message::parse(HOME_ADDRESS, CORRESPONDENT, &bytes).unwrap();
        let found = parsed.options().unwrap().binding_authorization_data().unwrap();
        assert_eq!(found.bytes(), authenticator);
        assert!(authorization(&key).verify(&bytes));
    }

    #[test]
    fn binding_authorization_data_protects_addresses_and_every_bit_but_the_checksum() {
        let key = key_of_the_rfcs_recipe();
        let genuine = authorization(&key);
        let bytes = update().emit_authorized(HOME_ADDRESS, CORRESPONDENT, &genuine).unwrap();
        let other_key = BindingManagementKey::for_deletion(KeygenToken(*b"homekey1"));
        assert!(!authorization(&other_key).verify(&bytes));
        assert!(!BindingAuthorization { care_of_address: HOME_ADDRESS, ..genuine }.verify(&bytes));
        assert!(!BindingAuthorization { correspondent: HOME_AGENT, ..genuine }.verify(&bytes));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_checksum = (32..48).contains(&bit);
            assert_eq!(genuine.verify(&flipped), is_checksum, "bit {bit}");
        }
    }

    #[test]
    fn authorization_that_is_not_the_end_of_the_header_is_no_proof() {
        let key = key_of_the_rfcs_recipe();
        let genuine = authorization(&key);
        let mut bytes = update().emit_authorized(HOME_ADDRESS, CORRESPONDENT, &genuine).unwrap();
        // What is behind the header is nobody's.
        bytes.extend([1, 6, 0, 0, 0, 0, 0, 0]);
        assert!(genuine.verify(&bytes));
        // Trailing padding, with an authenticator that covers the longer header.
        bytes[common::HEADER_LEN] += 1;
        let mac = genuine.mac(&bytes, 20).finalize();
        bytes[20..32].copy_from_slice(&mac.as_bytes()[..12]);
        assert!(!genuine.verify(&bytes));
    }

    #[test]
    fn whatever_is_cut_short_is_no_proof() {
        let key = key_of_the_rfcs_recipe();
        let genuine = authorization(&key);
        let bytes = update().emit_authorized(HOME_ADDRESS, CORRESPONDENT, &genuine).unwrap();
        for len in 0..bytes.len() {
            let mut cut = bytes[..len].to_vec();
            assert!(!genuine.verify(&cut));
            if len >= 8 {
                cut[common::HEADER_LEN] = (len / 8 - 1) as u8;
                assert!(!genuine.verify(&cut));
            }
        }
        assert!(!genuine.verify(&update().emit(HOME_ADDRESS, CORRESPONDENT).unwrap()));
        // An authenticator of fewer bytes, correct as far as it goes.
        let short = Authenticator::new(&bytes[20..24]).unwrap();
        let Message::BindingUpdate(mut message) = update() else { unreachable!() };
        message.options.push(MobilityOption::BindingAuthorizationData(short));
        let bytes = Message::BindingUpdate(message).emit(HOME_ADDRESS, CORRESPONDENT).unwrap();
        assert!(!genuine.verify(&bytes));
    }

    /// A Binding Update to the home agent.
    fn registration() -> Message {
        Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(7),
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            lifetime: Lifetime::from_units(150),
            options: MobilityOptions::new()
                .with(MobilityOption::AlternateCareOfAddress(CARE_OF_ADDRESS))
                .with(MobilityOption::ReplayProtection(NtpTimestamp::from_halves(0xe5a1_b2c3, 0x8000_0001))),
        })
    }

    fn authentication(algorithm: Algorithm) -> MobileHomeAuthentication<'static> {
        MobileHomeAuthentication {
            spi: Spi(256),
            algorithm,
            key: KEY,
            care_of_address: CARE_OF_ADDRESS,
            home_address: HOME_ADDRESS,
        }
    }

    #[test]
    fn message_authentication_is_that_of_another_implementation() {
        // key = b"sixteen bytes ok"
        // mh = bytes.fromhex("3b0705000000" "0007" "c000" "0096" "0100" "0310") + coa
        // mh += bytes.fromhex("0100" "0a08" "e5a1b2c380000001" "00" "0911" "01" "00000100")
        // hmac.new(key, coa + hoa + mh, hashlib.sha1).digest()[:12].hex()
        let genuine = authentication(Algorithm::HmacSha1);
        let bytes = registration().emit_authenticated(HOME_ADDRESS, HOME_AGENT, &genuine).unwrap();
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[52..], [0xfd, 0x22, 0xee, 0x25, 0xc5, 0x20, 0x48, 0x9e, 0x47, 0x62, 0x92, 0xd4]);
        assert!(genuine.verify(&bytes));
        // The same with "3b08..." for a header of 72 bytes, "0915" for 16 bytes of authenticator, hashlib.sha256 and [:16].
        let genuine = authentication(Algorithm::HmacSha256);
        let bytes = registration().emit_authenticated(HOME_ADDRESS, HOME_AGENT, &genuine).unwrap();
        assert_eq!(
            bytes[52..],
            [
                0x97, 0x49, 0x86, 0x20, 0xea, 0x39, 0xde, 0xb8, 0x9b, 0x85, 0xb8, 0x72, 0xde, 0xf8, 0x32,
                0xdd, 1, 2, 0, 0
            ]
        );
        assert!(genuine.verify(&bytes));
        let parsed = Message::parse(HOME_ADDRESS, HOME_AGENT, &bytes).unwrap();
        assert!(parsed.options().unwrap().end_with_authentication(AuthenticationSubtype::MobileHome));
    }

    #[test]
    fn message_authentication_protects_addresses_and_every_bit_before_it() {
        for algorithm in [Algorithm::HmacSha1, Algorithm::HmacSha256] {
            let genuine = authentication(algorithm);
            let bytes = registration().emit_authenticated(HOME_ADDRESS, HOME_AGENT, &genuine).unwrap();
            assert!(!MobileHomeAuthentication { key: b"another key", ..genuine }.verify(&bytes));
            assert!(!MobileHomeAuthentication { spi: Spi(257), ..genuine }.verify(&bytes));
            assert!(!MobileHomeAuthentication { care_of_address: HOME_AGENT, ..genuine }.verify(&bytes));
            assert!(!MobileHomeAuthentication { home_address: HOME_AGENT, ..genuine }.verify(&bytes));
            let end = 52 + algorithm.authenticator_len();
            for bit in 0..end * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let is_checksum = (32..48).contains(&bit);
                assert_eq!(genuine.verify(&flipped), is_checksum, "bit {bit}");
            }
        }
    }

    #[test]
    fn an_authenticator_of_another_algorithm_or_subtype_is_no_proof() {
        let (sha1, sha256) = (authentication(Algorithm::HmacSha1), authentication(Algorithm::HmacSha256));
        let mut bytes = registration().emit_authenticated(HOME_ADDRESS, HOME_AGENT, &sha1).unwrap();
        assert!(!sha256.verify(&bytes));
        bytes[47] = AuthenticationSubtype::MobileAaa.number();
        let covered = bytes[..52].to_vec();
        bytes[52..].copy_from_slice(&sha1.algorithm.authenticator(
            KEY,
            [CARE_OF_ADDRESS, HOME_ADDRESS],
            &covered,
        ));
        assert!(!sha1.verify(&bytes));
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = alloc::format!(
            "{:?} {:?} {:?} {:?}",
            key_of_the_rfcs_recipe(),
            NodeKey([7; 20]),
            Nonce([7; 8]),
            KeygenToken([7; 8])
        );
        assert_eq!(shown, "BindingManagementKey NodeKey Nonce KeygenToken");
    }

    #[test]
    fn authorization_of_fast_handovers_covers_the_spi_and_is_last() {
        let (ncoa, par) = (Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0x77), HOME_AGENT);
        let update = Message::FastBindingUpdate(BindingUpdate {
            sequence: SequenceNumber(0x0102),
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            lifetime: Lifetime::from_units(10),
            options: MobilityOptions::new().with(MobilityOption::AlternateCareOfAddress(ncoa)),
        });
        let authorization = FastBindingAuthorization {
            spi: Spi(256),
            algorithm: Algorithm::HmacSha1,
            key: KEY,
            care_of_address: ncoa,
            access_router: par,
        };
        let bytes = update.emit_fast_authorized(CARE_OF_ADDRESS, par, &authorization).unwrap();
        assert_eq!(bytes.len(), 56);
        // mh = bytes.fromhex("3b06080000000102c000000a" "0100" "0310" + A("2001:db8:3::77").hex()
        //     + "010400000000" "151000000100")
        // hmac.new(b"sixteen bytes ok", A("2001:db8:3::77") + A("2001:db8:1::1") + mh, hashlib.sha1).digest()[:12].hex()
        assert_eq!(bytes[44..], [0xf5, 0x5c, 0x48, 0xd6, 0xbe, 0x12, 0xe1, 0x3f, 0x4f, 0x6a, 0x8a, 0x76]);
        assert!(authorization.verify(&bytes));
        for other in [
            FastBindingAuthorization { spi: Spi(257), ..authorization },
            FastBindingAuthorization { key: b"another key", ..authorization },
            FastBindingAuthorization { care_of_address: CARE_OF_ADDRESS, ..authorization },
            FastBindingAuthorization { access_router: CORRESPONDENT, ..authorization },
            FastBindingAuthorization { algorithm: Algorithm::HmacSha256, ..authorization },
        ] {
            assert!(!other.verify(&bytes), "{other:?}");
        }
        for at in (0..bytes.len()).filter(|at| !(4..6).contains(at)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(!authorization.verify(&changed), "byte {at}");
        }
        let mut longer = bytes.clone();
        longer[1] += 1;
        longer.extend([1, 6, 0, 0, 0, 0, 0, 0]);
        assert!(!authorization.verify(&longer), "padding follows");
        let sha256 = FastBindingAuthorization { algorithm: Algorithm::HmacSha256, ..authorization };
        let bytes = update.emit_fast_authorized(CARE_OF_ADDRESS, par, &sha256).unwrap();
        assert!(sha256.verify(&bytes));
    }
}
