//! The address by which others reach the agent: a correspondent node's host must have it, a home agent's must not.

use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_wire::ipv6::home_agents_anycast;

use super::{Error, HostChanges, Ipv6Carrier, Ipv6Setup};
use crate::carrier::Role;

impl Ipv6Carrier {
    pub(in crate::carrier) fn missing_addresses(&self) -> &[IpAddr] {
        &self.missing
    }

    /// Correspondent node: whether the host has its address.
    pub(super) fn look_for_own_address(&mut self, now: Instant) {
        if matches!(self.setup, Ipv6Setup::AccessRouter(_)) {
            return self.look_for_link_local_addresses(now);
        }
        let Ipv6Setup::Correspondent(setup) = &self.setup else { return };
        let own = IpAddr::V6(setup.config.address);
        let outcome = self.reading.check().and_then(|()| self.host.netlink().assigned_addresses());
        let Some(assigned) = self.reading.note(now, outcome) else { return };
        let is_there = assigned.iter().any(|on| on.address == own);
        self.missing = if is_there { Vec::new() } else { vec![own] };
    }
}

/// The addresses of a home agent or mobility anchor point, its own first: as a home agent it has those that it shares with others of its
/// home networks (RFC 6275 section 10.5), too.
pub(super) fn of_home_agent(setup: &Ipv6Setup) -> Vec<Ipv6Addr> {
    let Some(side) = setup.home_side() else { return Vec::new() };
    let shared =
        side.prefixes.iter().map(|home| home_agents_anycast(home.prefix.address(), home.prefix.length()));
    let shared = shared.filter(|_| setup.role() == Role::Home);
    std::iter::once(side.address).chain(shared).collect()
}

/// Refuses a home agent or mobility anchor point whose address is on an interface: the kernel would keep its packets instead of routing them to the tunnel device.
pub(super) fn check(setup: &Ipv6Setup, host: &mut HostChanges) -> Result<(), Error> {
    let Some(side) = setup.home_side() else { return Ok(()) };
    let ipv4 = setup.ipv4_address().map(IpAddr::V4);
    let own = [Some(IpAddr::V6(side.address)), ipv4];
    let assigned = host.netlink().assigned_addresses()?;
    let taken = own.into_iter().flatten().find(|own| assigned.iter().any(|on| on.address == *own));
    taken.map_or(Ok(()), |address| Err(Error::AddressOfHost { address }))
}
