//! What a server leases, and how.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::dhcp::LeaseTime;

use super::super::ConfigError;
use crate::v4::{InterfaceId, Prefix, is_unicast};

/// A DHCP server's configuration: one link and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The interface on the link.
    pub interface: InterfaceId,
    /// The server's address there, by which clients know it.
    pub address: Ipv4Addr,
    /// The bits of the link's network.
    pub prefix_length: u8,
    /// What clients are told, the best one first.
    pub routers: Vec<Ipv4Addr>,
    /// The first address that is leased.
    pub first: Ipv4Addr,
    /// The last one.
    pub last: Ipv4Addr,
    /// For how long, when a client does not say.
    pub lease_time: LeaseTime,
    /// For how long at most.
    pub max_lease_time: LeaseTime,
    /// How long an ICMP echo to an address waits for an answer before the address is offered; `None` is no check.
    pub ping_check: Option<Duration>,
    /// From a message to the reply to it.
    pub processing: Duration,
    /// How long an address stays with an offer.
    pub offer_hold: Duration,
    /// How long an address that somebody else was found to use is not leased.
    pub abandoned_hold: Duration,
}

impl ServerConfig {
    /// The most addresses a server leases: what it remembers is bounded by them.
    pub const MAX_POOL: u32 = 65_536;

    /// A server with the address `address` that leases `first` to `last`, with the defaults of ISC's `dhcpd` (dhcpd.conf(5)):
    /// leases of 12 hours and a day at most, an echo that waits a second, 120 s for an offer, a day for an address in use.
    #[must_use]
    pub fn new(
        interface: InterfaceId,
        address: Ipv4Addr,
        prefix_length: u8,
        first: Ipv4Addr,
        last: Ipv4Addr,
    ) -> Self {
        Self {
            interface,
            address,
            prefix_length,
            routers: alloc::vec![address],
            first,
            last,
            lease_time: LeaseTime::from_secs(43_200),
            max_lease_time: LeaseTime::from_secs(86_400),
            ping_check: Some(Duration::from_secs(1)),
            processing: Duration::ZERO,
            offer_hold: Duration::from_secs(120),
            abandoned_hold: Duration::from_secs(86_400),
        }
    }

    pub(super) const fn network(&self) -> Prefix {
        Prefix::new(self.address, self.prefix_length)
    }

    pub(super) fn pool_contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// What a client gets that asks for `asked`.
    pub(super) fn granted(&self, asked: Option<LeaseTime>) -> LeaseTime {
        asked.filter(|asked| asked.as_secs() > 0).unwrap_or(self.lease_time).min(self.max_lease_time)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { first, last, address, .. } = *self;
        if first > last {
            return Err(ConfigError::EmptyPool { first, last });
        }
        let network = self.network();
        let bad = |address| Err(ConfigError::BadPool { first, last, address, network });
        for end in [first, last] {
            if !network.contains(end) || !is_unicast(end) || Some(end) == network.directed_broadcast() {
                return bad(end);
            }
        }
        if self.pool_contains(address) {
            return bad(address);
        }
        let found = last.to_bits() - first.to_bits();
        if found >= Self::MAX_POOL {
            return Err(ConfigError::LargePool { found: found.saturating_add(1), most: Self::MAX_POOL });
        }
        if self.lease_time.as_secs() == 0 || self.max_lease_time.as_secs() == 0 {
            return Err(ConfigError::NoLease);
        }
        Ok(())
    }
}
