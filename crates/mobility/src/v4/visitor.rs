//! Who visits a foreign agent, and who would like to.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{Identification, Lifetime, PathReport, RequestFlags};

use super::{Encapsulations, InterfaceId, Tunnel};

/// A mobile node registered through a foreign agent (RFC 5944 section 3.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitorEntry {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The care-of address it registered: the agent's, or with D its own.
    pub care_of: Ipv4Addr,
    /// Behind which interface it is.
    pub interface: InterfaceId,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends.
    pub expires: Instant,
    /// The mobile node decapsulates itself (D); the agent only relays its registrations.
    pub co_located: bool,
    /// The way back to the home agent, when the visitor asked for reverse tunnelling (T).
    pub reverse_tunnel: Option<Tunnel>,
    /// What the visitor sends comes tunnelled to the agent (RFC 3024 section 2).
    pub encapsulating_delivery: bool,
    /// How what is tunnelled to the agent for the visitor, or by it, is wrapped.
    pub encapsulations: Encapsulations,
    /// What it reported of its path.
    pub path: Option<PathReport>,
}

/// The visitors of a foreign agent.
#[derive(Debug, Default)]
pub(crate) struct VisitorList {
    /// Each apart from the tree, which is searched for every packet and is small that way.
    entries: BTreeMap<Ipv4Addr, Box<VisitorEntry>>,
    deadlines: BTreeSet<(Instant, Ipv4Addr)>,
    /// How many have a way back through a tunnel.
    reverse_tunnels: usize,
}

impl VisitorList {
    pub(crate) fn get(&self, home_address: Ipv4Addr) -> Option<&VisitorEntry> {
        self.entries.get(&home_address).map(|entry| &**entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &VisitorEntry> {
        self.entries.values().map(|entry| &**entry)
    }

    pub(crate) fn has_reverse_tunnels(&self) -> bool {
        self.reverse_tunnels > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Those with this home address and larger ones.
    pub(crate) fn from(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &VisitorEntry> {
        self.entries.range(home_address..).map(|(_, entry)| &**entry)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Enters `entry`, and returns the one it replaces.
    pub(crate) fn insert(&mut self, entry: VisitorEntry) -> Option<VisitorEntry> {
        let old = self.remove(entry.home_address);
        if entry.expires < Instant::MAX {
            self.deadlines.insert((entry.expires, entry.home_address));
        }
        self.reverse_tunnels += usize::from(entry.reverse_tunnel.is_some());
        self.entries.insert(entry.home_address, Box::new(entry));
        old
    }

    pub(crate) fn remove(&mut self, home_address: Ipv4Addr) -> Option<VisitorEntry> {
        let entry = self.entries.remove(&home_address)?;
        self.deadlines.remove(&(entry.expires, home_address));
        self.reverse_tunnels -= usize::from(entry.reverse_tunnel.is_some());
        Some(*entry)
    }

    /// Takes out one visitor whose lifetime has ended by `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<VisitorEntry> {
        let &(at, home_address) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.remove(home_address)
    }
}

/// A request that was relayed and waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) home_address: Ipv4Addr,
    pub(crate) home_agent: Ipv4Addr,
    pub(crate) care_of: Ipv4Addr,
    pub(crate) interface: InterfaceId,
    /// IP source of the request.
    pub(crate) source: Ipv4Addr,
    pub(crate) source_port: u16,
    /// The agent's own address on the interface the request came by.
    pub(crate) agent_address: Ipv4Addr,
    pub(crate) identification: Identification,
    pub(crate) flags: RequestFlags,
    pub(crate) encapsulating_delivery: bool,
    pub(crate) lifetime: Lifetime,
    pub(crate) path: Option<PathReport>,
    /// When it was relayed.
    pub(crate) relayed: Instant,
    /// When the agent gives up.
    pub(crate) expires: Instant,
}

/// Requests one mobile node can have waiting; the oldest gives way to a new one.
const PENDING_PER_NODE: usize = 4;

type PendingKey = (Ipv4Addr, u32);

/// The relayed requests of all mobile nodes: at most `capacity`.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    capacity: usize,
    /// By home address and the low half of the Identification, which a reply repeats.
    requests: BTreeMap<PendingKey, PendingRequest>,
    deadlines: BTreeSet<(Instant, PendingKey)>,
}

impl PendingRequests {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { capacity, requests: BTreeMap::new(), deadlines: BTreeSet::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    fn of(&self, home_address: Ipv4Addr) -> impl Iterator<Item = (&PendingKey, &PendingRequest)> {
        self.requests.range((home_address, 0)..=(home_address, u32::MAX))
    }

    /// Whether a request of `home_address` can be entered.
    pub(crate) fn has_room_for(&self, home_address: Ipv4Addr) -> bool {
        self.requests.len() < self.capacity || self.of(home_address).next().is_some()
    }

    /// Enters `request`; the caller has asked [`PendingRequests::has_room_for`].
    pub(crate) fn insert(&mut self, request: PendingRequest) {
        let key = (request.home_address, request.identification.low());
        self.take(key);
        let full = self.requests.len() >= self.capacity;
        if full || self.of(request.home_address).count() >= PENDING_PER_NODE {
            let oldest =
                self.of(request.home_address).min_by_key(|(_, old)| old.relayed).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                self.take(oldest);
            }
        }
        self.deadlines.insert((request.expires, key));
        self.requests.insert(key, request);
    }

    /// The request a reply with this home address and Identification belongs to.
    pub(crate) fn get(
        &self,
        home_address: Ipv4Addr,
        identification: Identification,
    ) -> Option<&PendingRequest> {
        self.requests.get(&(home_address, identification.low()))
    }

    pub(crate) fn remove(&mut self, request: &PendingRequest) {
        self.take((request.home_address, request.identification.low()));
    }

    /// Takes out one request nobody answered by `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<PendingRequest> {
        let &(at, key) = self.deadlines.first()?;
        if at > now { None } else { self.take(key) }
    }

    /// Takes out one request of `home_address`; to be called until `None`.
    pub(crate) fn take_one_of(&mut self, home_address: Ipv4Addr) -> Option<PendingRequest> {
        let (&key, _) = self.of(home_address).next()?;
        self.take(key)
    }

    fn take(&mut self, key: PendingKey) -> Option<PendingRequest> {
        let request = self.requests.remove(&key)?;
        self.deadlines.remove(&(request.expires, key));
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(node: u8, identification: u32, at: u64) -> PendingRequest {
        PendingRequest {
            home_address: Ipv4Addr::new(10, 0, 0, node),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            care_of: Ipv4Addr::new(192, 0, 2, 1),
            interface: InterfaceId(0),
            source: Ipv4Addr::new(10, 0, 0, node),
            source_port: 434,
            agent_address: Ipv4Addr::new(192, 0, 2, 1),
            identification: Identification::from_halves(0, identification),
            flags: RequestFlags::default(),
            encapsulating_delivery: false,
            lifetime: Lifetime::from_secs(300),
            path: None,
            relayed: Instant::from_secs(at),
            expires: Instant::from_secs(at + 7),
        }
    }

    #[test]
    fn one_node_cannot_push_the_others_out() {
        let mut pending = PendingRequests::new(6);
        pending.insert(request(2, 1, 0));
        for identification in 0..100 {
            assert!(pending.has_room_for(Ipv4Addr::new(10, 0, 0, 9)));
            pending.insert(request(9, identification, 1 + u64::from(identification)));
        }
        assert_eq!(pending.len(), 1 + PENDING_PER_NODE);
        assert!(pending.get(Ipv4Addr::new(10, 0, 0, 2), Identification::from_halves(7, 1)).is_some());
        assert!(pending.get(Ipv4Addr::new(10, 0, 0, 9), Identification::from_halves(7, 99)).is_some());
    }

    #[test]
    fn the_table_never_grows_beyond_its_capacity() {
        let mut pending = PendingRequests::new(3);
        for node in 1..=3 {
            pending.insert(request(node, 0, 0));
        }
        assert!(!pending.has_room_for(Ipv4Addr::new(10, 0, 0, 4)));
        assert!(pending.has_room_for(Ipv4Addr::new(10, 0, 0, 3)));
        pending.insert(request(3, 1, 1));
        assert_eq!(pending.len(), 3);
        assert_eq!(core::iter::from_fn(|| pending.expire(Instant::from_secs(100))).count(), 3);
        assert_eq!((pending.len(), pending.deadline()), (0, None));
    }
}
