//! What a node tells its cluster every two seconds: what it would lend.
//!
//! The body of a message of kind 1 ([`super::ShakeMessage`]):
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |W|    zero     |     zero      |             Cost              |
//! |                        Sequence number                        |
//! |                Rate from the Internet, 100 bit/s              |
//! |                 Rate to the Internet, 100 bit/s               |
//! |                        Outside address                        |
//! |                        Cluster address                        |
//! |      Clients it still takes   |  Longest alliance, seconds    |
//! |                Rate for one client, 100 bit/s                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! W: it is willing to relay. A rate of 0 is not known, or for one client not limited; rates are rounded down.

use core::net::Ipv4Addr;

use careof_base::DataRate;

use crate::Error;
use crate::fixed::Fixed;

const WILLING: u8 = 0x80;
/// The unit of rates, bit/s.
const RATE_UNIT: u64 = 100;

mod at {
    pub(super) const FLAGS: usize = 0;
    pub(super) const COST: usize = 2;
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const DOWNLINK: usize = 8;
    pub(super) const UPLINK: usize = 12;
    pub(super) const OUTSIDE: usize = 16;
    pub(super) const CLUSTER: usize = 20;
    pub(super) const CLIENTS: usize = 24;
    pub(super) const LONGEST: usize = 26;
    pub(super) const CLIENT_RATE: usize = 28;
    pub(super) const LEN: usize = 32;
}

/// A rate on the wire; 0 where there is none.
pub(super) fn rate_units(rate: Option<DataRate>) -> u32 {
    rate.map_or(0, |rate| u32::try_from(rate.bits_per_second() / RATE_UNIT).unwrap_or(u32::MAX))
}

/// A rate from the wire.
pub(super) fn rate_of(units: u32) -> Option<DataRate> {
    (units != 0).then(|| DataRate::from_bits_per_second(u64::from(units) * RATE_UNIT))
}

/// What a node of a cluster says of its link to the Internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClusterAdvertisement {
    /// Which advertisement of its sender's; later ones have higher numbers.
    pub sequence: u32,
    /// Whether it relays for others.
    pub willing: bool,
    /// What its link costs, in an order that the cluster has agreed on; 0 is free.
    pub cost: u16,
    /// What its link carries towards the cluster.
    pub downlink: Option<DataRate>,
    /// What its link carries away from the cluster.
    pub uplink: Option<DataRate>,
    /// Its address on that link: a care-of address for whoever it relays for.
    pub outside: Ipv4Addr,
    /// Its address in the cluster.
    pub cluster: Ipv4Addr,
    /// How many more it would relay for.
    pub clients: u16,
    /// The longest alliance that it grants, seconds.
    pub longest: u16,
    /// The most that one client may have; `None`: it sets no limit.
    pub client_rate: Option<DataRate>,
}

impl ClusterAdvertisement {
    pub(super) fn emit(&self, bytes: &mut impl Extend<u8>) {
        let mut fixed = Fixed::<{ at::LEN }>::ZERO;
        fixed.put::<{ at::FLAGS }, 1>([if self.willing { WILLING } else { 0 }]);
        fixed.put::<{ at::COST }, 2>(self.cost.to_be_bytes());
        fixed.put::<{ at::SEQUENCE }, 4>(self.sequence.to_be_bytes());
        fixed.put::<{ at::DOWNLINK }, 4>(rate_units(self.downlink).to_be_bytes());
        fixed.put::<{ at::UPLINK }, 4>(rate_units(self.uplink).to_be_bytes());
        fixed.put::<{ at::OUTSIDE }, 4>(self.outside.octets());
        fixed.put::<{ at::CLUSTER }, 4>(self.cluster.octets());
        fixed.put::<{ at::CLIENTS }, 2>(self.clients.to_be_bytes());
        fixed.put::<{ at::LONGEST }, 2>(self.longest.to_be_bytes());
        fixed.put::<{ at::CLIENT_RATE }, 4>(rate_units(self.client_rate).to_be_bytes());
        bytes.extend(fixed.bytes().iter().copied());
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Error> {
        let (fixed, _) = Fixed::<{ at::LEN }>::split(body, "advertisement of a cluster")?;
        Ok(Self {
            sequence: fixed.u32::<{ at::SEQUENCE }>(),
            willing: fixed.u8::<{ at::FLAGS }>() & WILLING != 0,
            cost: fixed.u16::<{ at::COST }>(),
            downlink: rate_of(fixed.u32::<{ at::DOWNLINK }>()),
            uplink: rate_of(fixed.u32::<{ at::UPLINK }>()),
            outside: fixed.address::<{ at::OUTSIDE }>(),
            cluster: fixed.address::<{ at::CLUSTER }>(),
            clients: fixed.u16::<{ at::CLIENTS }>(),
            longest: fixed.u16::<{ at::LONGEST }>(),
            client_rate: rate_of(fixed.u32::<{ at::CLIENT_RATE }>()),
        })
    }
}
