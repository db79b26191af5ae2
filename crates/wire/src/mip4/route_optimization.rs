//! Route optimisation and smooth hand-off, after draft-ietf-mobileip-optim, "Route Optimization in Mobile IP"
//! (Johnson and Perkins): who has sent to a mobile node learns its care-of address, and so does the foreign agent
//! that it has left.
//!
//! The draft never became an RFC. Its message types, 16 to 19, were given away again later (RFC 4857 uses 18 and 19
//! for regional registration, RFC 4881 the others), and Wireshark names them so. Its editions differ in details; where they
//! do, what careof speaks is this, reserved bits sent as zero and ignored:
//!
//! ```text
//! Binding Warning       16 | reserved (24)              | home address | target node address
//! Binding Request       17 | reserved (24)              | home address | identification (64)
//! Binding Update        18 | A I M G (4) rsv (4) | lifetime (16) | home address | care-of address
//!                          | identification (64), only with I
//! Binding Acknowledge   19 | N (1) reserved (23)        | home address | identification (64)
//! Previous Foreign Agent Notification extension
//!                       96 | length (8) | cache lifetime (16) | previous foreign agent address
//!                          | new care-of address | SPI (32) | authenticator
//! ```

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::authentication::{Algorithm, append_authentication};
use super::extension::{AuthenticationExtension, AuthenticationKind, Extension};
use super::{Identification, Lifetime};
use crate::Error;
use crate::extension::{Frame, HEADER_LEN};
use crate::fixed::Fixed;
use crate::spi::Spi;

pub(super) const TYPE_WARNING: u8 = 16;
pub(super) const TYPE_REQUEST: u8 = 17;
pub(super) const TYPE_UPDATE: u8 = 18;
pub(super) const TYPE_ACKNOWLEDGE: u8 = 19;

/// What all four begin with.
mod head {
    pub(super) const TYPE: usize = 0;
    /// A, I, M, G of an update, N of an acknowledgement.
    pub(super) const FLAGS: usize = 1;
    pub(super) const LIFETIME: usize = 2;
    pub(super) const HOME_ADDRESS: usize = 4;
}

mod warning {
    pub(super) const TARGET: usize = 8;
    pub(super) const LEN: usize = 12;
}

mod update {
    pub(super) const CARE_OF_ADDRESS: usize = 8;
    pub(super) const LEN: usize = 12;
    pub(super) const IDENTIFICATION_LEN: usize = 8;
}

/// Of a request and of an acknowledgement.
mod identified {
    pub(super) const IDENTIFICATION: usize = 8;
    pub(super) const LEN: usize = 16;
}

const ACKNOWLEDGE: u8 = 0x80;
const IDENTIFIED: u8 = 0x40;
const MINIMAL_ENCAPSULATION: u8 = 0x20;
const GRE: u8 = 0x10;
const NEGATIVE: u8 = 0x80;

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// A Binding Warning (type 16): `target` would do well to learn where the mobile node is. It carries no authority, and
/// need not be authenticated; who sends updates limits their rate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingWarning {
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Who tunnelled to a place that the mobile node has left.
    pub target: Ipv4Addr,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl BindingWarning {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = warning::LEN;

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let mut fixed = Fixed::<{ warning::LEN }>::ZERO;
        fixed.put::<{ head::TYPE }, 1>([TYPE_WARNING]);
        fixed.put::<{ head::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ warning::TARGET }, 4>(self.target.octets());
        bytes.extend(fixed.bytes());
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ warning::LEN }>::split(bytes, "Binding Warning")?;
        Ok(Self {
            home_address: fixed.address::<{ head::HOME_ADDRESS }>(),
            target: fixed.address::<{ warning::TARGET }>(),
            extensions: Extension::parse_all(rest, warning::LEN)?,
        })
    }
}

/// A Binding Request (type 17): its sender would like a [`BindingUpdate`] from the home agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingRequest {
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// What the update that answers repeats.
    pub identification: Identification,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl BindingRequest {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = identified::LEN;

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        emit_identified(TYPE_REQUEST, 0, self.home_address, self.identification, bytes);
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ identified::LEN }>::split(bytes, "Binding Request")?;
        Ok(Self {
            home_address: fixed.address::<{ head::HOME_ADDRESS }>(),
            identification: Identification(fixed.u64::<{ identified::IDENTIFICATION }>()),
            extensions: Extension::parse_all(rest, identified::LEN)?,
        })
    }
}

/// A Binding Update (type 18): where the packets of a mobile node may be tunnelled to from now on, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingUpdate {
    /// `A`: a [`BindingAcknowledge`] is wanted.
    pub acknowledge: bool,
    /// `M`: the care-of address takes minimal encapsulation (RFC 2004).
    pub minimal_encapsulation: bool,
    /// `G`: it takes GRE (RFC 2784).
    pub gre: bool,
    /// How long the binding may be cached; zero to forget it.
    pub lifetime: Lifetime,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// Where it is; the home address itself: forget the binding.
    pub care_of_address: Ipv4Addr,
    /// Protects against replay, and is repeated by the acknowledgement (`I`).
    pub identification: Option<Identification>,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl BindingUpdate {
    /// Whether it ends a binding instead of making one.
    #[must_use]
    pub fn forgets(&self) -> bool {
        self.lifetime.is_zero() || self.care_of_address == self.home_address
    }

    /// Bytes before the first extension.
    #[must_use]
    pub const fn fixed_len(&self) -> usize {
        match self.identification {
            Some(_) => update::LEN + update::IDENTIFICATION_LEN,
            None => update::LEN,
        }
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let mut fixed = Fixed::<{ update::LEN }>::ZERO;
        let flags = flag(self.acknowledge, ACKNOWLEDGE)
            | flag(self.identification.is_some(), IDENTIFIED)
            | flag(self.minimal_encapsulation, MINIMAL_ENCAPSULATION)
            | flag(self.gre, GRE);
        fixed.put::<{ head::TYPE }, 1>([TYPE_UPDATE]);
        fixed.put::<{ head::FLAGS }, 1>([flags]);
        fixed.put::<{ head::LIFETIME }, 2>(self.lifetime.as_secs().to_be_bytes());
        fixed.put::<{ head::HOME_ADDRESS }, 4>(self.home_address.octets());
        fixed.put::<{ update::CARE_OF_ADDRESS }, 4>(self.care_of_address.octets());
        bytes.extend(fixed.bytes());
        if let Some(identification) = self.identification {
            bytes.extend(identification.0.to_be_bytes());
        }
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "Binding Update";
        let (fixed, rest) = Fixed::<{ update::LEN }>::split(bytes, WHAT)?;
        let flags = fixed.u8::<{ head::FLAGS }>();
        let (identification, rest, offset) = if flags & IDENTIFIED == 0 {
            (None, rest, update::LEN)
        } else {
            let needed = update::LEN + update::IDENTIFICATION_LEN;
            let Some((number, rest)) = rest.split_first_chunk::<{ update::IDENTIFICATION_LEN }>() else {
                return Err(Error::Truncated { what: WHAT, offset: 0, needed, found: bytes.len() });
            };
            (Some(Identification(u64::from_be_bytes(*number))), rest, needed)
        };
        Ok(Self {
            acknowledge: flags & ACKNOWLEDGE != 0,
            minimal_encapsulation: flags & MINIMAL_ENCAPSULATION != 0,
            gre: flags & GRE != 0,
            lifetime: Lifetime::from_secs(fixed.u16::<{ head::LIFETIME }>()),
            home_address: fixed.address::<{ head::HOME_ADDRESS }>(),
            care_of_address: fixed.address::<{ update::CARE_OF_ADDRESS }>(),
            identification,
            extensions: Extension::parse_all(rest, offset)?,
        })
    }
}

/// A Binding Acknowledge (type 19).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BindingAcknowledge {
    /// `N`: the update was understood and not carried out.
    pub negative: bool,
    /// The mobile node's home address.
    pub home_address: Ipv4Addr,
    /// That of the update; zero where it had none.
    pub identification: Identification,
    /// What follows, in order.
    pub extensions: Vec<Extension>,
}

impl BindingAcknowledge {
    /// Bytes before the first extension.
    pub const FIXED_LEN: usize = identified::LEN;

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let flags = flag(self.negative, NEGATIVE);
        emit_identified(TYPE_ACKNOWLEDGE, flags, self.home_address, self.identification, bytes);
        self.extensions.iter().for_each(|extension| extension.emit(bytes));
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ identified::LEN }>::split(bytes, "Binding Acknowledge")?;
        Ok(Self {
            negative: fixed.u8::<{ head::FLAGS }>() & NEGATIVE != 0,
            home_address: fixed.address::<{ head::HOME_ADDRESS }>(),
            identification: Identification(fixed.u64::<{ identified::IDENTIFICATION }>()),
            extensions: Extension::parse_all(rest, identified::LEN)?,
        })
    }
}

fn emit_identified(
    kind: u8,
    flags: u8,
    home_address: Ipv4Addr,
    identification: Identification,
    bytes: &mut Vec<u8>,
) {
    let mut fixed = Fixed::<{ identified::LEN }>::ZERO;
    fixed.put::<{ head::TYPE }, 1>([kind]);
    fixed.put::<{ head::FLAGS }, 1>([flags]);
    fixed.put::<{ head::HOME_ADDRESS }, 4>(home_address.octets());
    fixed.put::<{ identified::IDENTIFICATION }, 8>(identification.0.to_be_bytes());
    bytes.extend(fixed.bytes());
}

/// Cache lifetime, two addresses and the SPI.
const NOTIFICATION_FIXED_LEN: usize = 14;

/// The Previous Foreign Agent Notification extension (type 96) of a registration request: the foreign agent it goes to
/// is to send a [`BindingUpdate`] to the one that the mobile node has left. It tells what the request does not.
///
/// The authenticator is the mobile node's, over the update: [`Self::authenticated`] makes it, and [`Self::update`] the
/// update it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PreviousForeignAgent {
    /// How long the previous foreign agent is to send packets on; zero: not at all.
    pub cache_lifetime: Lifetime,
    /// An address of the previous foreign agent.
    pub agent: Ipv4Addr,
    /// Where the mobile node is now.
    pub care_of_address: Ipv4Addr,
    /// Names the security association between mobile node and previous foreign agent.
    pub spi: Spi,
    authenticator: Vec<u8>,
}

impl PreviousForeignAgent {
    /// The longest authenticator the Length octet can tell, bytes.
    pub const MAX_AUTHENTICATOR_LEN: usize = u8::MAX as usize - NOTIFICATION_FIXED_LEN;

    /// An extension with this authenticator; `None` when it is longer than [`Self::MAX_AUTHENTICATOR_LEN`].
    #[must_use]
    pub fn new(
        cache_lifetime: Lifetime,
        agent: Ipv4Addr,
        care_of_address: Ipv4Addr,
        spi: Spi,
        authenticator: &[u8],
    ) -> Option<Self> {
        (authenticator.len() <= Self::MAX_AUTHENTICATOR_LEN).then(|| Self {
            cache_lifetime,
            agent,
            care_of_address,
            spi,
            authenticator: authenticator.to_vec(),
        })
    }

    /// An extension for a request with this home address and Identification, authenticated by the mobile node.
    #[must_use]
    pub fn authenticated(
        cache_lifetime: Lifetime,
        agent: Ipv4Addr,
        care_of_address: Ipv4Addr,
        (home_address, identification): (Ipv4Addr, Identification),
        (spi, algorithm, key): (Spi, Algorithm, &[u8]),
    ) -> Self {
        let mut extension = Self { cache_lifetime, agent, care_of_address, spi, authenticator: Vec::new() };
        let mut bytes = Vec::new();
        extension.unsigned(home_address, identification).emit(&mut bytes);
        append_authentication(&mut bytes, AuthenticationKind::RouteOptimization, spi, algorithm, key);
        let at = bytes.len() - algorithm.authenticator_len();
        extension.authenticator = bytes.split_off(at);
        extension
    }

    /// The update that a foreign agent sends for it, given home address and Identification of the request.
    #[must_use]
    pub fn update(&self, home_address: Ipv4Addr, identification: Identification) -> BindingUpdate {
        let kind = AuthenticationKind::RouteOptimization;
        let authentication = AuthenticationExtension::new(kind, self.spi, &self.authenticator);
        BindingUpdate {
            extensions: authentication.map(Extension::Authentication).into_iter().collect(),
            ..self.unsigned(home_address, identification)
        }
    }

    fn unsigned(&self, home_address: Ipv4Addr, identification: Identification) -> BindingUpdate {
        BindingUpdate {
            acknowledge: true,
            minimal_encapsulation: false,
            gre: false,
            lifetime: self.cache_lifetime,
            home_address,
            care_of_address: self.care_of_address,
            identification: Some(identification),
            extensions: Vec::new(),
        }
    }

    /// Bytes behind Type and Length.
    pub(super) fn data_len(&self) -> usize {
        NOTIFICATION_FIXED_LEN + self.authenticator.len()
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.cache_lifetime.as_secs().to_be_bytes());
        bytes.extend(self.agent.octets());
        bytes.extend(self.care_of_address.octets());
        bytes.extend(self.spi.0.to_be_bytes());
        bytes.extend(&self.authenticator);
    }

    pub(super) fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let (fixed, authenticator) =
            Fixed::<NOTIFICATION_FIXED_LEN>::split(frame.data, "Previous Foreign Agent Notification")
                .map_err(|_| frame.wrong_length("14 or more"))?;
        Ok(Self {
            cache_lifetime: Lifetime::from_secs(fixed.u16::<0>()),
            agent: fixed.address::<2>(),
            care_of_address: fixed.address::<6>(),
            spi: Spi(fixed.u32::<10>()),
            authenticator: authenticator.to_vec(),
        })
    }
}

const _: () = assert!(HEADER_LEN + NOTIFICATION_FIXED_LEN == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mip4::{Message, verify_authentication};

    const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
    const CARE_OF: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    const ID: Identification = Identification::from_halves(0xa1a2_a3a4, 0xb1b2_b3b4);
    const ID_BYTES: [u8; 8] = [0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4];

    fn update(identification: Option<Identification>) -> BindingUpdate {
        BindingUpdate {
            acknowledge: true,
            minimal_encapsulation: false,
            gre: true,
            lifetime: Lifetime::from_secs(0x0102),
            home_address: HOME,
            care_of_address: CARE_OF,
            identification,
            extensions: Vec::new(),
        }
    }

    #[test]
    fn messages_have_the_layout_of_the_draft() {
        let extensions = Vec::new;
        let warning = Message::BindingWarning(BindingWarning {
            home_address: HOME,
            target: CARE_OF,
            extensions: extensions(),
        });
        assert_eq!(warning.emit(), [16, 0, 0, 0, 10, 0, 0, 5, 192, 0, 2, 7]);
        let request = BindingRequest { home_address: HOME, identification: ID, extensions: extensions() };
        let request = Message::BindingRequest(request);
        assert_eq!(request.emit(), [&[17, 0, 0, 0, 10, 0, 0, 5][..], &ID_BYTES].concat());
        let with = Message::BindingUpdate(update(Some(ID)));
        let fixed = [18, 0xd0, 1, 2, 10, 0, 0, 5, 192, 0, 2, 7];
        assert_eq!(with.emit(), [&fixed[..], &ID_BYTES].concat());
        let without = Message::BindingUpdate(update(None));
        assert_eq!(without.emit(), [18, 0x90, 1, 2, 10, 0, 0, 5, 192, 0, 2, 7]);
        let acknowledge = Message::BindingAcknowledge(BindingAcknowledge {
            negative: true,
            home_address: HOME,
            identification: ID,
            extensions: extensions(),
        });
        assert_eq!(acknowledge.emit(), [&[19, 0x80, 0, 0, 10, 0, 0, 5][..], &ID_BYTES].concat());
        for message in [warning, request, with, without, acknowledge] {
            assert_eq!(Message::parse(&message.emit()), Ok(message));
        }
    }

    #[test]
    fn reserved_bits_are_ignored() {
        let mut bytes = Message::BindingUpdate(update(None)).emit();
        bytes[1] |= 0x0f;
        assert_eq!(Message::parse(&bytes), Ok(Message::BindingUpdate(update(None))));
    }

    #[test]
    fn an_update_cut_off_in_its_identification_is_truncated() {
        let bytes = Message::BindingUpdate(update(Some(ID))).emit();
        assert_eq!(
            Message::parse(&bytes[..19]),
            Err(Error::Truncated { what: "Binding Update", offset: 0, needed: 20, found: 19 })
        );
    }

    #[test]
    fn an_update_without_a_lifetime_or_to_the_home_address_forgets() {
        assert!(!update(None).forgets());
        assert!(BindingUpdate { lifetime: Lifetime::ZERO, ..update(None) }.forgets());
        assert!(BindingUpdate { care_of_address: HOME, ..update(None) }.forgets());
    }

    #[test]
    fn a_notification_carries_the_authenticator_of_the_update_made_from_it() {
        let (spi, algorithm, key) = (Spi(300), Algorithm::HmacMd5, &b"sixteen bytes ok"[..]);
        let agent = Ipv4Addr::new(203, 0, 113, 1);
        let notification = PreviousForeignAgent::authenticated(
            Lifetime::from_secs(60),
            agent,
            CARE_OF,
            (HOME, ID),
            (spi, algorithm, key),
        );
        let mut extension = Vec::new();
        Extension::PreviousForeignAgent(notification.clone()).emit(&mut extension);
        let fixed = [96, 30, 0, 60, 203, 0, 113, 1, 192, 0, 2, 7, 0, 0, 1, 44];
        assert_eq!((extension.len(), &extension[..16]), (32, &fixed[..]));

        let update = Message::BindingUpdate(notification.update(HOME, ID));
        let bytes = update.emit();
        let (offset, _) = update.authentication(AuthenticationKind::RouteOptimization).unwrap();
        assert!(verify_authentication(&bytes, offset, algorithm, key));
        let another = Message::BindingUpdate(notification.update(HOME, Identification(ID.0 + 1))).emit();
        assert!(!verify_authentication(&another, offset, algorithm, key));
    }
}
