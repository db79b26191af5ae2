//! The option by which routers tell of mobility anchor points (RFC 5380 section 5).

use core::net::Ipv6Addr;

use super::units::PrefixLifetime;
use crate::fixed::Fixed;

/// A MAP option (type 23): a mobility anchor point (MAP) that serves the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapOption {
    /// Dist: hops between the MAP and the receiver, 1 to 15; 1 for a MAP on the link. 0 must not be used; a receiver ignores the option
    /// then.
    pub distance: u8,
    /// Pref: how much the operator wants the MAP to be used, 0 to 15; 15 is the highest. With 0 mobile nodes make no new bindings there.
    pub preference: u8,
    /// R: the MAP allocates the regional care-of address. Otherwise the mobile node forms it of the prefix of the MAP's address.
    pub allocates_address: bool,
    /// For how long both the MAP's address and regional care-of addresses are valid. Zero: the MAP has failed.
    pub valid_lifetime: PrefixLifetime,
    /// A global address of the MAP.
    pub address: Ipv6Addr,
}

/// Offsets behind Type and Length.
mod field {
    pub(super) const DISTANCE_AND_PREFERENCE: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const VALID_LIFETIME: usize = 2;
    pub(super) const ADDRESS: usize = 6;
}

impl MapOption {
    /// Bytes behind Type and Length.
    pub(super) const LEN: usize = 22;
    /// The most that [`distance`](Self::distance) and [`preference`](Self::preference) can be.
    pub const MAX: u8 = 15;
    const ALLOCATES_ADDRESS: u8 = 0x80;

    pub(super) fn decode(fixed: &Fixed<{ Self::LEN }>) -> Self {
        let both = fixed.u8::<{ field::DISTANCE_AND_PREFERENCE }>();
        Self {
            distance: both >> 4,
            preference: both & Self::MAX,
            allocates_address: fixed.u8::<{ field::FLAGS }>() & Self::ALLOCATES_ADDRESS != 0,
            valid_lifetime: PrefixLifetime::from_secs(fixed.u32::<{ field::VALID_LIFETIME }>()),
            address: fixed.ipv6_address::<{ field::ADDRESS }>(),
        }
    }

    pub(super) fn encode(&self) -> Fixed<{ Self::LEN }> {
        debug_assert!(self.distance <= Self::MAX && self.preference <= Self::MAX, "fields of four bits");
        let both = self.distance.min(Self::MAX) << 4 | self.preference.min(Self::MAX);
        let flags = if self.allocates_address { Self::ALLOCATES_ADDRESS } else { 0 };
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ field::DISTANCE_AND_PREFERENCE }, 1>([both]);
        fixed.put::<{ field::FLAGS }, 1>([flags]);
        fixed.put::<{ field::VALID_LIFETIME }, 4>(self.valid_lifetime.as_secs().to_be_bytes());
        fixed.put::<{ field::ADDRESS }, 16>(self.address.octets());
        fixed
    }
}
