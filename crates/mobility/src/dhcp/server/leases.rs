//! Which address is whose.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::dhcp::{DhcpMessage, HardwareAddress};

use super::super::DropReason;
use super::ServerConfig;

/// The longest client-identifier that is remembered, bytes: what fits one option.
const MAX_IDENTIFIER_LEN: usize = 255;

/// What a client is known by (RFC 2131 section 4.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClientKey {
    Identifier(Vec<u8>),
    Hardware(HardwareAddress),
}

impl ClientKey {
    pub(super) fn of(message: &DhcpMessage) -> Result<Self, DropReason> {
        match &message.client_identifier {
            Some(identifier) if identifier.len() > MAX_IDENTIFIER_LEN => Err(DropReason::TableFull),
            Some(identifier) => Ok(Self::Identifier(identifier.clone())),
            None => Ok(Self::Hardware(message.chaddr)),
        }
    }
}

/// What an address is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is looked whether somebody uses it, before it is offered.
    Probed,
    /// Offered until then.
    Offered(Instant),
    /// Leased until then.
    Leased(Instant),
    /// Given back, or never taken.
    Free(Instant),
    /// Somebody else uses it; not to be leased until then.
    Abandoned(Instant),
}

impl Use {
    /// Since when the address may be another client's; `None` while it may not.
    fn free_since(self, now: Instant) -> Option<Instant> {
        match self {
            Self::Probed => None,
            Self::Offered(until) | Self::Leased(until) | Self::Abandoned(until) => {
                (until <= now).then_some(until)
            }
            Self::Free(since) => Some(since),
        }
    }
}

#[derive(Clone, Debug)]
struct Record {
    client: ClientKey,
    used: Use,
}

/// All addresses that were ever given out, one record each.
#[derive(Debug, Default)]
pub(super) struct Leases {
    records: BTreeMap<Ipv4Addr, Record>,
    /// By client, the address it had last.
    clients: BTreeMap<ClientKey, Ipv4Addr>,
    /// Addresses of the pool before this one have a record.
    fresh: u32,
}

impl Leases {
    /// What the server has for a client.
    pub(super) fn of(&self, client: &ClientKey) -> Option<(Ipv4Addr, Use)> {
        let address = *self.clients.get(client)?;
        self.records.get(&address).map(|record| (address, record.used))
    }

    /// How many leases run at `now`.
    pub(super) fn running(&self, now: Instant) -> usize {
        let runs = |record: &&Record| matches!(record.used, Use::Leased(until) if until > now);
        self.records.values().filter(runs).count()
    }

    /// The address for a client that looks for one, in the order of RFC 2131 section 4.3.1.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        config: &ServerConfig,
        client: &ClientKey,
        requested: Option<Ipv4Addr>,
    ) -> Option<Ipv4Addr> {
        if let Some((address, _)) = self.of(client) {
            return Some(address);
        }
        let is_free = |address: &Ipv4Addr| {
            self.records.get(address).is_none_or(|record| record.used.free_since(now).is_some())
        };
        if let Some(address) = requested.filter(|address| config.pool_contains(*address) && is_free(address))
        {
            return Some(address);
        }
        while let Some(address) = config.first.to_bits().checked_add(self.fresh).map(Ipv4Addr::from_bits)
            && config.pool_contains(address)
        {
            if !self.records.contains_key(&address) {
                return Some(address);
            }
            self.fresh += 1;
        }
        let free = self.records.iter().filter_map(|(address, r)| Some((r.used.free_since(now)?, *address)));
        free.min().map(|(_, address)| address)
    }

    /// An address is a client's now, whoever had it before.
    pub(super) fn give(&mut self, address: Ipv4Addr, client: &ClientKey, used: Use) {
        if let Some(before) = self.clients.insert(client.clone(), address).filter(|&before| before != address)
        {
            self.records.remove(&before);
            self.fresh = 0;
        }
        let record = Record { client: client.clone(), used };
        if let Some(old) = self.records.insert(address, record).filter(|old| old.client != *client) {
            self.clients.remove(&old.client);
        }
    }

    /// Nobody is to have the address until `until`.
    pub(super) fn abandon(&mut self, address: Ipv4Addr, until: Instant) {
        if let Some(record) = self.records.get_mut(&address) {
            record.used = Use::Abandoned(until);
            self.clients.remove(&record.client);
        }
    }
}
