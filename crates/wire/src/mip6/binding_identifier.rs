//! Several care-of addresses for one home address (RFC 5648).

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::BindingStatus;

/// The number by which a mobile node tells one of its bindings from the others (RFC 5648 section 4.3). 0 is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BindingId(pub u16);

impl BindingId {
    /// Whether it is 0, which is not used.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for BindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A Binding Identifier option, type 35 (RFC 5648 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BindingIdentifier {
    /// Names the binding.
    pub id: BindingId,
    /// In a Binding Acknowledgement or a Care-of Test: the outcome for this binding, when it is not
    /// [`BindingStatus::Accepted`] (0), which leaves it to the message's own Status. Ignored elsewhere.
    pub status: BindingStatus,
    /// `H`: the mobile node registers bindings while it is at home as well. In a Binding Update to the home agent only.
    pub simultaneous_home_and_foreign: bool,
    /// The care-of address, in a Binding Update only; to a correspondent node, an IPv6 address. Without it the care-of
    /// address is the update's.
    pub care_of_address: Option<IpAddr>,
}

impl BindingIdentifier {
    /// An option that names a binding and says nothing else.
    #[must_use]
    pub const fn new(id: BindingId) -> Self {
        Self {
            id,
            status: BindingStatus::Accepted,
            simultaneous_home_and_foreign: false,
            care_of_address: None,
        }
    }

    const FIXED_LEN: usize = 4;
    /// `H`, in the octet behind Status.
    const SIMULTANEOUS: u8 = 0x80;

    pub(super) const fn data_len(&self) -> usize {
        Self::FIXED_LEN
            + match self.care_of_address {
                None => 0,
                Some(IpAddr::V4(_)) => 4,
                Some(IpAddr::V6(_)) => 16,
            }
    }

    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.id.0.to_be_bytes());
        bytes.push(self.status.number());
        bytes.push(if self.simultaneous_home_and_foreign { Self::SIMULTANEOUS } else { 0 });
        match self.care_of_address {
            None => {}
            Some(IpAddr::V4(address)) => bytes.extend(address.octets()),
            Some(IpAddr::V6(address)) => bytes.extend(address.octets()),
        }
    }

    /// `None` when the length is neither 4, 8 nor 20.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (&[high, low, status, flags], address) = data.split_first_chunk::<{ Self::FIXED_LEN }>()?;
        let care_of_address = match address.len() {
            0 => None,
            4 => Some(Ipv4Addr::from(*address.first_chunk::<4>()?).into()),
            16 => Some(Ipv6Addr::from(*address.first_chunk::<16>()?).into()),
            _ => return None,
        };
        Some(Self {
            id: BindingId(u16::from_be_bytes([high, low])),
            status: BindingStatus::from_number(status),
            simultaneous_home_and_foreign: flags & Self::SIMULTANEOUS != 0,
            care_of_address,
        })
    }
}
