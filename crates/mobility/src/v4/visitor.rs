//! Who visits a foreign agent, and who would like to.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Holdings, Instant, Randomness};
use careof_wire::mip4::{Identification, Lifetime, PathReport, RequestFlags};

use super::{Encapsulations, InterfaceId, Tunnel};
use crate::shares::Station;

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
    /// The Identification of the request that was accepted last.
    pub identification: Identification,
}

/// What speaks for somebody who visits or would like to, and whose room he takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) home_address: Ipv4Addr,
    pub(crate) home_agent: Ipv4Addr,
    /// Where he sends from, if that is known.
    pub(crate) station: Option<Station>,
    /// He is who he says: a security association of the mobile node or of its home agent with this agent proves it.
    pub(crate) is_proven: bool,
}

/// Who may have how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    pub(crate) all: usize,
    pub(crate) station: usize,
    /// `None`: home agents have no shares.
    pub(crate) home_agent: Option<usize>,
}

/// Whether there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// If this visitor makes room.
    InsteadOf(Ipv4Addr),
    /// There is none.
    None,
    /// There is none for him.
    OverShare,
}

/// A visitor, and on what grounds it is here.
#[derive(Debug)]
struct Listed {
    entry: VisitorEntry,
    claim: Claim,
    /// Counts up with every visit that begins.
    number: u64,
}

/// The visitors of a foreign agent.
#[derive(Debug, Default)]
pub(crate) struct VisitorList {
    /// Each apart from the tree, which is searched for every packet and is small that way.
    entries: BTreeMap<Ipv4Addr, Box<Listed>>,
    deadlines: BTreeSet<(Instant, Ipv4Addr)>,
    /// How many have a way back through a tunnel.
    reverse_tunnels: usize,
    /// How many are of which home agent.
    home_agents: Holdings<Ipv4Addr>,
    /// How many without proof came from which station, and of which home agent.
    by_station: Holdings<Station>,
    by_home_agent: Holdings<Ipv4Addr>,
    /// Those without proof by home agent, in the order in which they came.
    unproven: BTreeSet<(Ipv4Addr, u64, Ipv4Addr)>,
    /// Visits that have begun.
    begun: u64,
}

impl VisitorList {
    pub(crate) fn get(&self, home_address: Ipv4Addr) -> Option<&VisitorEntry> {
        self.entries.get(&home_address).map(|listed| &listed.entry)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &VisitorEntry> {
        self.entries.values().map(|listed| &listed.entry)
    }

    pub(crate) fn has_reverse_tunnels(&self) -> bool {
        self.reverse_tunnels > 0
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it is the address of a visitor's home agent.
    pub(crate) fn is_home_agent(&self, address: Ipv4Addr) -> bool {
        self.home_agents.of(address) > 0
    }

    /// Those with this home address and larger ones.
    pub(crate) fn from(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &VisitorEntry> {
        self.entries.range(home_address..).map(|(_, entry)| &entry.entry)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Whether there is room for somebody. A present visitor has his; who makes room has come last of those without proof, of the
    /// home agent that has most of them: so nobody who was there before has to go for a crowd.
    pub(crate) fn room_for(&self, claim: &Claim, shares: &Shares) -> Room {
        if self.entries.contains_key(&claim.home_address) {
            return Room::Free;
        }
        let is_over = claim.station.is_some_and(|station| self.by_station.of(station) >= shares.station);
        if is_over && !claim.is_proven {
            return Room::OverShare;
        }
        if self.entries.len() < shares.all {
            return Room::Free;
        }
        let Some((home_agent, count)) = self.by_home_agent.largest() else { return Room::None };
        let yields = claim.is_proven
            || shares
                .home_agent
                .is_some_and(|share| count > share && self.by_home_agent.of(claim.home_agent) < share);
        if !yields {
            return Room::None;
        }
        let of_home_agent =
            (home_agent, 0, Ipv4Addr::UNSPECIFIED)..=(home_agent, u64::MAX, Ipv4Addr::BROADCAST);
        let last = self.unproven.range(of_home_agent).next_back();
        last.map_or(Room::None, |&(.., home_address)| Room::InsteadOf(home_address))
    }

    /// Whether nobody new can come in; `has_proofs` says that some could prove who they are.
    pub(crate) fn is_closed(&self, shares: &Shares, has_proofs: bool) -> bool {
        let largest = self.by_home_agent.largest().map_or(0, |(_, count)| count);
        let yields = (has_proofs && largest > 0) || shares.home_agent.is_some_and(|share| largest > share);
        self.entries.len() >= shares.all && !yields
    }

    /// Enters `entry`, and returns the one it replaces.
    pub(crate) fn insert(&mut self, entry: VisitorEntry, claim: Claim) -> Option<VisitorEntry> {
        let number = self.entries.get(&entry.home_address).map(|listed| listed.number);
        let old = self.remove(entry.home_address);
        if entry.expires < Instant::MAX {
            self.deadlines.insert((entry.expires, entry.home_address));
        }
        self.reverse_tunnels += usize::from(entry.reverse_tunnel.is_some());
        self.begun += u64::from(number.is_none());
        let number = number.unwrap_or(self.begun);
        self.home_agents.add(entry.home_agent);
        if !claim.is_proven {
            claim.station.into_iter().for_each(|station| self.by_station.add(station));
            self.by_home_agent.add(claim.home_agent);
            self.unproven.insert((claim.home_agent, number, entry.home_address));
        }
        let listed = Listed { entry, claim, number };
        self.entries.insert(entry.home_address, Box::new(listed));
        old
    }

    pub(crate) fn remove(&mut self, home_address: Ipv4Addr) -> Option<VisitorEntry> {
        let Listed { entry, claim, number } = *self.entries.remove(&home_address)?;
        self.deadlines.remove(&(entry.expires, home_address));
        self.reverse_tunnels -= usize::from(entry.reverse_tunnel.is_some());
        self.home_agents.take(entry.home_agent);
        if !claim.is_proven {
            claim.station.into_iter().for_each(|station| self.by_station.take(station));
            self.by_home_agent.take(claim.home_agent);
            self.unproven.remove(&(claim.home_agent, number, home_address));
        }
        Some(entry)
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
    /// Where it came from, if that is known.
    pub(crate) station: Option<Station>,
    /// The mobile node has authenticated it to this agent.
    pub(crate) is_proven: bool,
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
    /// How many may come from one station without proof.
    station_share: usize,
    /// By home address and the low half of the Identification, which a reply repeats.
    requests: BTreeMap<PendingKey, PendingRequest>,
    deadlines: BTreeSet<(Instant, PendingKey)>,
    /// Those without proof, in no order, and the place of each.
    unproven: Vec<PendingKey>,
    places: BTreeMap<PendingKey, usize>,
    by_station: Holdings<Station>,
}

impl PendingRequests {
    pub(crate) fn new(capacity: usize, station_share: usize) -> Self {
        Self {
            capacity,
            station_share,
            requests: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            unproven: Vec::new(),
            places: BTreeMap::new(),
            by_station: Holdings::default(),
        }
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

    /// Whether nobody new finds room.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.len() >= self.capacity && self.unproven.is_empty()
    }

    /// Whether a request can be entered.
    pub(crate) fn room_for(&self, claim: &Claim) -> Room {
        let mut own = self.of(claim.home_address).peekable();
        let has_own = own.peek().is_some();
        let is_over = claim.station.is_some_and(|station| self.by_station.of(station) >= self.station_share);
        if is_over && !claim.is_proven && !own.any(|(_, request)| request.station == claim.station) {
            return Room::OverShare;
        }
        if has_own || !self.is_closed() { Room::Free } else { Room::None }
    }

    /// Enters `request`; the caller has asked [`PendingRequests::room_for`]. Returns one that another mobile node made, and that
    /// had to make room. It is taken by lot: were it the oldest, whoever sends many at a time would leave nobody the
    /// time for an answer, and were it the newest, nobody would come in.
    pub(crate) fn insert(
        &mut self,
        request: PendingRequest,
        random: &mut Randomness,
    ) -> Option<PendingRequest> {
        let key = (request.home_address, request.identification.low());
        self.take(key);
        let full = self.requests.len() >= self.capacity;
        let has_own = self.of(request.home_address).next().is_some();
        let is_over =
            request.station.is_some_and(|station| self.by_station.of(station) >= self.station_share);
        let is_over = is_over && !request.is_proven;
        let mut displaced = None;
        if ((full || is_over) && has_own) || self.of(request.home_address).count() >= PENDING_PER_NODE {
            if let Some(old) = self.superseded_by(&request) {
                self.take(old);
            }
        } else if full {
            let place = random.below(self.unproven.len().max(1) as u64) as usize;
            displaced = self.unproven.get(place).copied().and_then(|key| self.take(key));
        }
        self.deadlines.insert((request.expires, key));
        if !request.is_proven {
            self.places.insert(key, self.unproven.len());
            self.unproven.push(key);
            request.station.into_iter().for_each(|station| self.by_station.add(station));
        }
        self.requests.insert(key, request);
        displaced
    }

    /// Which request for the same home address makes room for a new one: the oldest from the same station, lest somebody
    /// else who names that address have it forgotten; where there is none, from the station with most.
    fn superseded_by(&self, request: &PendingRequest) -> Option<PendingKey> {
        let own = || self.of(request.home_address);
        let from = |station| own().filter(|(_, old)| old.station == station).count();
        let is_there = from(request.station) > 0;
        let rank = |old: &PendingRequest| {
            if is_there { usize::from(old.station == request.station) } else { from(old.station) }
        };
        own().min_by_key(|(_, old)| (usize::MAX - rank(old), old.relayed)).map(|(key, _)| *key)
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
        if let Some(place) = self.places.remove(&key) {
            self.unproven.swap_remove(place);
            if let Some(moved) = self.unproven.get(place) {
                self.places.insert(*moved, place);
            }
            request.station.into_iter().for_each(|station| self.by_station.take(station));
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::LinkAddress;

    fn station(n: u8) -> Station {
        (InterfaceId(0), LinkAddress([2, 0, 0, 0, 0, n]))
    }

    fn request(node: u8, identification: u32, at: u64) -> PendingRequest {
        PendingRequest {
            home_address: Ipv4Addr::new(10, 0, 0, node),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            care_of: Ipv4Addr::new(192, 0, 2, 1),
            interface: InterfaceId(0),
            station: None,
            is_proven: false,
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

    fn claim(request: &PendingRequest) -> Claim {
        let PendingRequest { home_address, home_agent, station, is_proven, .. } = *request;
        Claim { home_address, home_agent, station, is_proven }
    }

    struct Table {
        pending: PendingRequests,
        random: Randomness,
    }

    impl Table {
        fn new(capacity: usize, station_share: usize) -> Self {
            let random = careof_base::RandomStream::new(1, 0, "pending").into();
            Self { pending: PendingRequests::new(capacity, station_share), random }
        }

        /// Enters it where there is room; whom that costs his place.
        fn insert(&mut self, request: PendingRequest) -> Result<Option<PendingRequest>, Room> {
            match self.pending.room_for(&claim(&request)) {
                Room::Free => Ok(self.pending.insert(request, &mut self.random)),
                room => Err(room),
            }
        }

        fn has(&self, node: u8, identification: u32) -> bool {
            let home_address = Ipv4Addr::new(10, 0, 0, node);
            self.pending.get(home_address, Identification::from_halves(7, identification)).is_some()
        }

        fn is_sound(&self) -> bool {
            let PendingRequests { requests, unproven, places, .. } = &self.pending;
            unproven.len() == places.len()
                && unproven
                    .iter()
                    .enumerate()
                    .all(|(n, key)| places.get(key) == Some(&n) && requests.contains_key(key))
        }
    }

    #[test]
    fn an_address_is_a_home_agents_as_long_as_it_has_a_visitor() {
        let mut list = VisitorList::default();
        let enter = |list: &mut VisitorList, node, home_agent| {
            let PendingRequest { home_address, care_of, interface, lifetime, identification, .. } =
                request(node, 1, 0);
            let entry = VisitorEntry {
                home_address,
                home_agent,
                care_of,
                interface,
                lifetime,
                identification,
                expires: Instant::from_secs(300),
                co_located: false,
                reverse_tunnel: None,
                encapsulating_delivery: false,
                encapsulations: Encapsulations::asked_for(RequestFlags::default()),
                path: None,
            };
            list.insert(entry, claim(&request(node, 1, 0)));
        };
        let [one, other] = [1, 2].map(|last| Ipv4Addr::new(192, 0, 2, last));
        enter(&mut list, 7, one);
        enter(&mut list, 8, one);
        enter(&mut list, 7, other);
        assert!(list.is_home_agent(one) && list.is_home_agent(other));
        list.remove(Ipv4Addr::new(10, 0, 0, 8));
        assert!(!list.is_home_agent(one) && list.is_home_agent(other));
        assert!(list.expire(Instant::from_secs(300)).is_some() && !list.is_home_agent(other));
    }

    #[test]
    fn one_node_cannot_push_the_others_out() {
        let mut table = Table::new(6, 16);
        table.insert(request(2, 1, 0)).unwrap();
        for identification in 0..100 {
            assert!(
                table.insert(request(9, identification, 1 + u64::from(identification))).unwrap().is_none()
            );
        }
        assert_eq!(table.pending.len(), 1 + PENDING_PER_NODE);
        assert!(table.has(2, 1) && table.has(9, 99));
    }

    #[test]
    fn the_table_never_grows_beyond_its_capacity() {
        let mut table = Table::new(3, 16);
        for node in 1..=3 {
            table.insert(request(node, 0, 0)).unwrap();
        }
        assert!(table.insert(request(3, 1, 1)).unwrap().is_none(), "in the place of its own");
        assert!(table.insert(request(4, 0, 1)).unwrap().is_some(), "in somebody's");
        assert_eq!(table.pending.len(), 3);
        assert!(table.is_sound());
        assert_eq!(core::iter::from_fn(|| table.pending.expire(Instant::from_secs(100))).count(), 3);
        assert_eq!((table.pending.len(), table.pending.deadline()), (0, None));
        assert!(table.is_sound() && table.pending.by_station.largest().is_none());
    }

    #[test]
    fn a_station_has_its_share_of_requests_and_replaces_its_own() {
        let mut table = Table::new(100, 3);
        let from = |n, node, identification| PendingRequest {
            station: Some(station(n)),
            ..request(node, identification, 0)
        };
        for node in 1..=3 {
            table.insert(from(7, node, 0)).unwrap();
        }
        assert_eq!(table.insert(from(7, 4, 0)).unwrap_err(), Room::OverShare);
        table.insert(from(7, 3, 1)).unwrap();
        assert!(!table.has(3, 0) && table.has(3, 1) && table.pending.len() == 3);
        table.insert(from(8, 4, 0)).unwrap();
        table.insert(PendingRequest { is_proven: true, ..from(7, 5, 0) }).unwrap();
        assert!(table.is_sound() && table.pending.len() == 5);
    }

    #[test]
    fn who_names_anothers_home_address_has_none_of_its_requests_forgotten() {
        let mut table = Table::new(100, 16);
        table.insert(PendingRequest { station: Some(station(1)), ..request(2, 0, 0) }).unwrap();
        for identification in 1..100 {
            let forged = PendingRequest { station: Some(station(9)), ..request(2, identification, 1) };
            table.insert(forged).unwrap();
        }
        assert!(table.has(2, 0) && table.has(2, 99));
        assert_eq!(table.pending.len(), PENDING_PER_NODE);
    }

    #[test]
    fn a_full_table_is_open_to_all_and_closed_to_what_would_displace_a_proof() {
        let mut table = Table::new(64, 16);
        for node in 0..32 {
            table.insert(PendingRequest { is_proven: true, ..request(node, 0, 0) }).unwrap();
        }
        for node in 32..255 {
            table.insert(request(node, 0, 1)).unwrap();
            assert!(table.is_sound() && table.has(node, 0) && table.pending.len() <= 64);
        }
        assert!((0..32).all(|node| table.has(node, 0)));
        for node in 32..64 {
            table.insert(PendingRequest { is_proven: true, ..request(node, 9, 2) }).unwrap();
        }
        assert!(table.pending.is_closed());
        assert_eq!(table.insert(request(200, 7, 3)).unwrap_err(), Room::None);
    }
}
