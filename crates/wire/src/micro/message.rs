//! What messages say.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::authentication::{AUTHENTICATOR_LEN, append_authenticator};
use crate::Error;
use crate::fixed::Fixed;

/// Offsets in the header.
mod header {
    pub(super) const VERSION: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const FLAGS: usize = 2;
    pub(super) const COUNT: usize = 3;
    pub(super) const MOBILE: usize = 4;
    pub(super) const STATION: usize = 8;
    pub(super) const ORIGIN: usize = 12;
    pub(super) const TIMESTAMP: usize = 16;
    pub(super) const LEN: usize = 24;
}

const VERSION: u8 = 1;
const ADDRESS_LEN: usize = 4;
/// S of Cellular IP's route-update packet.
const SEMI_SOFT: u8 = 0x80;

/// The four path setup schemes of HAWAII (draft-ietf-mobileip-hawaii section 5; Ramjee et al., ICNP 1999, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathScheme {
    /// MSF: the old base station forwards, and each router on the way to the new one changes its entry as it learns of it.
    MultipleStreamForwarding,
    /// SSF: the old base station forwards along entries for packets from its side only; the crossover router changes last.
    SingleStreamForwarding,
    /// UNF: nobody forwards; the crossover router changes its entry as soon as it learns of the new base station.
    UnicastNonForwarding,
    /// MNF: nobody forwards; the crossover router sends to both base stations for a short time.
    MulticastNonForwarding,
}

impl PathScheme {
    /// Every scheme.
    pub const ALL: [Self; 4] = [
        Self::MultipleStreamForwarding,
        Self::SingleStreamForwarding,
        Self::UnicastNonForwarding,
        Self::MulticastNonForwarding,
    ];

    const fn number(self) -> u8 {
        match self {
            Self::MultipleStreamForwarding => 0,
            Self::SingleStreamForwarding => 1,
            Self::UnicastNonForwarding => 2,
            Self::MulticastNonForwarding => 3,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::MultipleStreamForwarding),
            1 => Some(Self::SingleStreamForwarding),
            2 => Some(Self::UnicastNonForwarding),
            3 => Some(Self::MulticastNonForwarding),
            _ => None,
        }
    }
}

/// The type of a message and what only this type has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Building blocks: the mobile node is at the station now. Type 1, no addresses.
    Attach,
    /// Building blocks: the mobile node, still at the station, will go to one of these stations (Bhaskara and Helmy, section II.C: the
    /// trigger). Type 2, one address or more.
    Announce {
        /// Where it will go: the one it knows of, or all that it may.
        next: Vec<Ipv4Addr>,
    },
    /// Building blocks: the station has had an announcement; packets shall go to these candidate access routers too. Type 3, one address
    /// or more.
    Expect {
        /// The candidate access router set.
        candidates: Vec<Ipv4Addr>,
    },
    /// A station tells a mobile node that its message with this timestamp was accepted. Type 4, no addresses.
    Confirm,
    /// Cellular IP: route-update packet (draft-ietf-mobileip-cellularip section 3.3.2). Type 16, no addresses. Flag 0x80 is S.
    RouteUpdate {
        /// S: the mapping is added to those there are (section 4.1); without it, it replaces them.
        semi_soft: bool,
    },
    /// Cellular IP: paging-update packet (section 3.3.3). Type 17, no addresses.
    PagingUpdate,
    /// Cellular IP: paging-teardown packet (section 3.3.4). Type 18, no addresses.
    PagingTeardown,
    /// HAWAII: path setup after power-up (section 4). Type 32, no addresses.
    PathSetupPowerUp,
    /// HAWAII: path setup update after a handover. Type 33, one address. Flags: the scheme, 0 to 3 as in [`PathScheme::ALL`].
    PathSetupUpdate {
        /// The order of updates.
        scheme: PathScheme,
        /// The old base station.
        old: Ipv4Addr,
    },
    /// HAWAII: what the old base station sends to the new one: with forwarding schemes it changes entries on its way, without it
    /// acknowledges. Type 34, no addresses. Flags as above.
    PathSetupReturn {
        /// The order of updates.
        scheme: PathScheme,
    },
    /// HAWAII: mobile nodes whose entries shall stay (section 6: soft state, aggregated hop by hop). Type 35, one address or more.
    PathRefresh {
        /// Which.
        mobiles: Vec<Ipv4Addr>,
    },
    /// M&M: the mobile node reports to the station that it is a member of its group (Helmy, Jaseemuddin and Bhaskara; IGMP's report).
    /// Type 48, no addresses.
    Report,
    /// M&M: a router joins the mobile node's group towards the root (PIM-SM's Join). Type 49, no addresses.
    Join,
    /// M&M: a router leaves it (PIM-SM's Prune). Type 50, no addresses.
    Prune,
}

impl Body {
    const fn kind(&self) -> u8 {
        match self {
            Self::Attach => 1,
            Self::Announce { .. } => 2,
            Self::Expect { .. } => 3,
            Self::Confirm => 4,
            Self::RouteUpdate { .. } => 16,
            Self::PagingUpdate => 17,
            Self::PagingTeardown => 18,
            Self::PathSetupPowerUp => 32,
            Self::PathSetupUpdate { .. } => 33,
            Self::PathSetupReturn { .. } => 34,
            Self::PathRefresh { .. } => 35,
            Self::Report => 48,
            Self::Join => 49,
            Self::Prune => 50,
        }
    }

    const fn flags(&self) -> u8 {
        match self {
            Self::RouteUpdate { semi_soft: true } => SEMI_SOFT,
            Self::PathSetupUpdate { scheme, .. } | Self::PathSetupReturn { scheme } => scheme.number(),
            _ => 0,
        }
    }

    /// The addresses behind the header.
    fn addresses(&self) -> &[Ipv4Addr] {
        match self {
            Self::Announce { next: addresses }
            | Self::Expect { candidates: addresses }
            | Self::PathRefresh { mobiles: addresses } => addresses,
            Self::PathSetupUpdate { old, .. } => core::slice::from_ref(old),
            _ => &[],
        }
    }

    fn from_parts(kind: u8, flags: u8, addresses: Vec<Ipv4Addr>) -> Result<Self, Error> {
        let flags_error = Error::Invalid {
            field: "Flags",
            offset: header::FLAGS,
            found: u32::from(flags),
            expected: "flags of this type",
        };
        let count = addresses.len();
        let count_error = Error::Invalid {
            field: "Count",
            offset: header::COUNT,
            found: count as u32,
            expected: "a count of this type",
        };
        let scheme = PathScheme::from_number(flags).ok_or(flags_error);
        let body = match kind {
            1 => Self::Attach,
            2 => Self::Announce { next: addresses },
            3 => Self::Expect { candidates: addresses },
            4 => Self::Confirm,
            16 => Self::RouteUpdate { semi_soft: flags & SEMI_SOFT != 0 },
            17 => Self::PagingUpdate,
            18 => Self::PagingTeardown,
            32 => Self::PathSetupPowerUp,
            33 => {
                Self::PathSetupUpdate { scheme: scheme?, old: addresses.first().copied().ok_or(count_error)? }
            }
            34 => Self::PathSetupReturn { scheme: scheme? },
            35 => Self::PathRefresh { mobiles: addresses },
            48 => Self::Report,
            49 => Self::Join,
            50 => Self::Prune,
            _ => {
                return Err(Error::Invalid {
                    field: "Type",
                    offset: header::KIND,
                    found: u32::from(kind),
                    expected: "a type of version 1",
                });
            }
        };
        if body.flags() != flags {
            return Err(flags_error);
        }
        let has_list = matches!(body, Self::Announce { .. } | Self::Expect { .. } | Self::PathRefresh { .. });
        if body.addresses().len() != count || has_list && count == 0 {
            return Err(count_error);
        }
        Ok(body)
    }
}

/// A message of a micro-mobility protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MicroMessage {
    /// The mobile node it is about; 0.0.0.0 in [`Body::PathRefresh`].
    pub mobile: Ipv4Addr,
    /// The base station it is for or about; 0.0.0.0 in [`Body::PathRefresh`], [`Body::Join`] and [`Body::Prune`].
    pub station: Ipv4Addr,
    /// Who made and signed it.
    pub origin: Ipv4Addr,
    /// When, in NTP format; in [`Body::Confirm`] the timestamp of what is confirmed.
    pub timestamp: u64,
    /// Its type and the rest.
    pub body: Body,
}

impl MicroMessage {
    /// The most addresses behind the header.
    pub const MAX_ADDRESSES: usize = u8::MAX as usize;

    /// Reads a whole UDP payload. Who made it is not checked: that takes a key ([`super::verify_authenticator`]).
    ///
    /// # Errors
    /// [`Error::Truncated`] where bytes are missing; [`Error::Invalid`] for a Version other than 1, an unknown Type, Flags or a Count that
    /// the type does not have, and for bytes behind the authenticator.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, rest) = Fixed::<{ header::LEN }>::split(bytes, "micro-mobility message")?;
        let version = fixed.u8::<{ header::VERSION }>();
        if version != VERSION {
            return Err(Error::Invalid {
                field: "Version",
                offset: header::VERSION,
                found: u32::from(version),
                expected: "1",
            });
        }
        let count = usize::from(fixed.u8::<{ header::COUNT }>());
        let needed = header::LEN + count * ADDRESS_LEN + AUTHENTICATOR_LEN;
        if bytes.len() < needed {
            return Err(Error::Truncated {
                what: "micro-mobility message",
                offset: 0,
                needed,
                found: bytes.len(),
            });
        }
        if bytes.len() > needed {
            return Err(Error::Invalid {
                field: "Length",
                offset: needed,
                found: bytes.len() as u32,
                expected: "the end of the message",
            });
        }
        let (addresses, _) = rest.as_chunks::<ADDRESS_LEN>();
        let addresses = addresses.iter().take(count).map(|octets| Ipv4Addr::from(*octets)).collect();
        let body =
            Body::from_parts(fixed.u8::<{ header::KIND }>(), fixed.u8::<{ header::FLAGS }>(), addresses)?;
        Ok(Self {
            mobile: fixed.address::<{ header::MOBILE }>(),
            station: fixed.address::<{ header::STATION }>(),
            origin: fixed.address::<{ header::ORIGIN }>(),
            timestamp: fixed.u64::<{ header::TIMESTAMP }>(),
            body,
        })
    }

    /// The bytes, signed with `key`. Of more than [`Self::MAX_ADDRESSES`] addresses the first go.
    #[must_use]
    pub fn emit(&self, key: &[u8]) -> Vec<u8> {
        let addresses = self.body.addresses();
        let addresses = addresses.get(..Self::MAX_ADDRESSES).unwrap_or(addresses);
        let mut fixed = Fixed::<{ header::LEN }>::ZERO;
        fixed.put::<{ header::VERSION }, 1>([VERSION]);
        fixed.put::<{ header::KIND }, 1>([self.body.kind()]);
        fixed.put::<{ header::FLAGS }, 1>([self.body.flags()]);
        fixed.put::<{ header::COUNT }, 1>([addresses.len() as u8]);
        fixed.put::<{ header::MOBILE }, 4>(self.mobile.octets());
        fixed.put::<{ header::STATION }, 4>(self.station.octets());
        fixed.put::<{ header::ORIGIN }, 4>(self.origin.octets());
        fixed.put::<{ header::TIMESTAMP }, 8>(self.timestamp.to_be_bytes());
        let mut bytes = Vec::with_capacity(header::LEN + addresses.len() * ADDRESS_LEN + AUTHENTICATOR_LEN);
        bytes.extend(fixed.bytes());
        addresses.iter().for_each(|address| bytes.extend(address.octets()));
        append_authenticator(&mut bytes, key);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micro::verify_authenticator;
    use alloc::vec;
    use proptest::prelude::*;

    const KEY: &[u8] = b"sixteen bytes ok";

    fn message(body: Body) -> MicroMessage {
        MicroMessage {
            mobile: Ipv4Addr::new(10, 9, 0, 7),
            station: Ipv4Addr::new(10, 1, 0, 3),
            origin: Ipv4Addr::new(10, 9, 0, 7),
            timestamp: 0x0102_0304_0506_0708,
            body,
        }
    }

    fn bodies() -> Vec<Body> {
        let list = vec![Ipv4Addr::new(10, 1, 0, 4), Ipv4Addr::new(10, 1, 0, 5)];
        let mut bodies = vec![
            Body::Attach,
            Body::Announce { next: list.clone() },
            Body::Expect { candidates: list.clone() },
            Body::Confirm,
            Body::RouteUpdate { semi_soft: false },
            Body::RouteUpdate { semi_soft: true },
            Body::PagingUpdate,
            Body::PagingTeardown,
            Body::PathSetupPowerUp,
            Body::PathRefresh { mobiles: list },
            Body::Report,
            Body::Join,
            Body::Prune,
        ];
        for scheme in PathScheme::ALL {
            bodies.push(Body::PathSetupUpdate { scheme, old: Ipv4Addr::new(10, 1, 0, 9) });
            bodies.push(Body::PathSetupReturn { scheme });
        }
        bodies
    }

    #[test]
    fn a_semi_soft_route_update_stands_where_the_picture_says() {
        let bytes = message(Body::RouteUpdate { semi_soft: true }).emit(KEY);
        let header = [1, 16, 0x80, 0, 10, 9, 0, 7, 10, 1, 0, 3, 10, 9, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!((bytes.len(), &bytes[..24]), (40, &header[..]));
    }

    #[test]
    fn every_message_is_read_as_it_was_written_and_signed() {
        for body in bodies() {
            let message = message(body);
            let bytes = message.emit(KEY);
            assert_eq!(MicroMessage::parse(&bytes), Ok(message));
            assert!(verify_authenticator(&bytes, KEY));
        }
    }

    #[test]
    fn a_message_that_is_cut_or_longer_is_none() {
        for body in bodies() {
            let mut bytes = message(body).emit(KEY);
            for len in 0..bytes.len() {
                assert!(matches!(MicroMessage::parse(&bytes[..len]), Err(Error::Truncated { .. })), "{len}");
            }
            bytes.push(0);
            assert!(matches!(
                MicroMessage::parse(&bytes),
                Err(Error::Invalid { field: "Length", found, .. }) if found as usize == bytes.len()
            ));
        }
    }

    #[test]
    fn errors_name_the_field_and_what_was_found() {
        let with = |at: usize, value: u8, body: Body| {
            let mut bytes = message(body).emit(KEY);
            bytes[at] = value;
            match MicroMessage::parse(&bytes) {
                Err(Error::Invalid { field, offset, found, .. }) => (field, offset, found),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(with(0, 2, Body::Attach), ("Version", 0, 2));
        assert_eq!(with(1, 99, Body::Attach), ("Type", 1, 99));
        assert_eq!(with(2, 1, Body::Attach), ("Flags", 2, 1));
        assert_eq!(with(2, 0x81, Body::RouteUpdate { semi_soft: true }), ("Flags", 2, 0x81));
        let update = PathScheme::UnicastNonForwarding;
        assert_eq!(with(2, 4, Body::PathSetupReturn { scheme: update }), ("Flags", 2, 4));
        // The announcement of one station, taken for a type without addresses, and the other way round.
        let announce = Body::Announce { next: vec![Ipv4Addr::LOCALHOST] };
        assert_eq!(with(1, 1, announce), ("Count", 3, 1));
        assert_eq!(with(1, 2, Body::Attach), ("Count", 3, 0));
    }

    #[test]
    fn a_list_that_is_too_long_is_cut() {
        let next = vec![Ipv4Addr::LOCALHOST; 300];
        let bytes = message(Body::Announce { next }).emit(KEY);
        let Ok(MicroMessage { body: Body::Announce { next }, .. }) = MicroMessage::parse(&bytes) else {
            panic!("it is one")
        };
        assert_eq!(next.len(), MicroMessage::MAX_ADDRESSES);
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_emitted_byte_for_byte(
            kind in 0_u8..52, flags in prop_oneof![0_u8..5, Just(0x80)], count in 0_u8..4, rest in any::<[u8; 48]>(),
        ) {
            let len = 36 + usize::from(count) * 4;
            let bytes = [&[1, kind, flags, count], &rest[..len]].concat();
            if let Ok(message) = MicroMessage::parse(&bytes) {
                let emitted = message.emit(KEY);
                prop_assert_eq!(&emitted[..emitted.len() - 16], &bytes[..bytes.len() - 16]);
            }
        }
    }
}
