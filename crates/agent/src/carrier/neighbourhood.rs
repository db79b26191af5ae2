//! In whose frames messages came, for links on which nobody may be asked by ARP (RFC 5944 section 4.6).
//!
//! Anybody on a link can send in another's name. So a visitor's link address is that of the frame which carried the
//! very request that its home agent has granted, and of two frames with the same request that of the first: who
//! repeats what he has overheard comes later.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use careof_lab::{Error, NeighbourWatch, SeenNeighbour, SeenRequest};
use careof_mobility::v4::REGISTRATION_PORT;

use super::Role;

/// Senders that are remembered, and requests: of more the oldest are forgotten.
const MOST: usize = 4096;
/// Senders taken at a time.
const AT_A_TIME: usize = 1024;

/// A request: by which interface it came, and which it is.
type RequestKey = (u32, SeenRequest);

/// From where something came.
#[derive(Clone, Copy, Debug)]
struct Heard {
    link_address: [u8; 6],
    /// Counts up.
    order: u64,
    /// It is being worked on, and outlives what is not.
    is_needed: bool,
}

/// A bounded memory of link addresses.
#[derive(Debug)]
struct Memory<Key> {
    heard: BTreeMap<Key, Heard>,
    /// What may be forgotten, the oldest first, by whether it is needed.
    by_age: BTreeMap<(bool, u64), Key>,
    order: u64,
}

impl<Key> Default for Memory<Key> {
    fn default() -> Self {
        Self { heard: BTreeMap::new(), by_age: BTreeMap::new(), order: 0 }
    }
}

impl<Key: Copy + Ord> Memory<Key> {
    fn insert(&mut self, key: Key, link_address: [u8; 6]) {
        let former = self.heard.get(&key).copied();
        if let Some(former) = former {
            self.by_age.remove(&(former.is_needed, former.order));
        } else if self.heard.len() >= MOST
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.heard.remove(&oldest);
        }
        self.order += 1;
        let is_needed = former.is_some_and(|former| former.is_needed);
        self.by_age.insert((is_needed, self.order), key);
        self.heard.insert(key, Heard { link_address, order: self.order, is_needed });
    }

    fn get(&self, key: &Key) -> Option<[u8; 6]> {
        self.heard.get(key).map(|heard| heard.link_address)
    }

    fn need(&mut self, key: Key, is_needed: bool) {
        let Some(heard) = self.heard.get_mut(&key) else { return };
        self.by_age.remove(&(heard.is_needed, heard.order));
        heard.is_needed = is_needed;
        self.by_age.insert((is_needed, heard.order), key);
    }
}

/// Link addresses of those who sent messages lately.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    /// `None` for a home agent: its mobile nodes are on their home link when they are near, and answer ARP there.
    watch: Option<NeighbourWatch>,
    /// The latest frame of each sender.
    senders: Memory<(u32, Ipv4Addr)>,
    /// The first frame of each request.
    requests: Memory<RequestKey>,
    /// Foreign agent: those whose requests were granted, and where they are. The agent bounds how many.
    visitors: BTreeMap<Ipv4Addr, (u32, [u8; 6])>,
}

impl Neighbourhood {
    pub(super) fn open(role: Role) -> Result<Self, Error> {
        let watch = match role {
            Role::Home | Role::Correspondent | Role::AnchorPoint | Role::AccessRouter | Role::Relay => None,
            Role::Foreign | Role::Mobile => Some(NeighbourWatch::open(REGISTRATION_PORT)?),
        };
        Ok(Self::new(watch))
    }

    fn new(watch: Option<NeighbourWatch>) -> Self {
        Self { watch, senders: Memory::default(), requests: Memory::default(), visitors: BTreeMap::new() }
    }

    /// Takes in who has sent something; to be called before the messages are read. A failure leaves what is known:
    /// the kernel may know more.
    pub(super) fn listen(&mut self) {
        for _ in 0..AT_A_TIME {
            let Some(Ok(Some(seen))) = self.watch.as_ref().map(NeighbourWatch::receive) else { break };
            self.note(seen);
        }
    }

    fn note(&mut self, seen: SeenNeighbour) {
        self.senders.insert((seen.interface, seen.address), seen.link_address);
        if let Some(request) = seen.request {
            let key = (seen.interface, request);
            if self.requests.get(&key).is_none() {
                self.requests.insert(key, seen.link_address);
            }
        }
    }

    /// The link address from which `address` has sent last, whoever that was.
    pub(super) fn link_address(&mut self, interface: u32, address: Ipv4Addr) -> Option<[u8; 6]> {
        let key = (interface, address);
        if self.senders.get(&key).is_none() {
            // As with requests: it may have come since the last look.
            self.listen();
        }
        self.senders.get(&key)
    }

    /// The link address from which a request came.
    pub(super) fn requester(&mut self, interface: u32, request: SeenRequest) -> Option<[u8; 6]> {
        let key = (interface, request);
        if self.requests.get(&key).is_none() {
            // It came since the last look, and was read already.
            self.listen();
        }
        self.requests.get(&key)
    }

    /// A request is being worked on: others must not have it forgotten.
    pub(super) fn begin(&mut self, interface: u32, request: SeenRequest) {
        if self.requester(interface, request).is_some() {
            self.requests.need((interface, request), true);
        }
    }

    /// A request has its answer: whoever sent it is a visitor if it was granted.
    pub(super) fn end(&mut self, interface: u32, request: SeenRequest, is_granted: bool) {
        if is_granted && let Some(link_address) = self.requester(interface, request) {
            self.visitors.insert(request.home_address, (interface, link_address));
        }
        self.requests.need((interface, request), false);
    }

    /// The link address of a visitor.
    pub(super) fn visitor(&self, interface: u32, home_address: Ipv4Addr) -> Option<[u8; 6]> {
        let found = self.visitors.get(&home_address).filter(|(on, _)| *on == interface);
        found.map(|(_, link_address)| *link_address)
    }

    /// A visitor has left.
    pub(super) fn forget_visitor(&mut self, home_address: Ipv4Addr) {
        self.visitors.remove(&home_address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VISITOR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
    const LINK: u32 = 3;
    const ITS_OWN: [u8; 6] = [2, 0, 0, 0, 0, 7];
    const ANOTHERS: [u8; 6] = [2, 0, 0, 0, 0, 66];

    fn request(home_address: Ipv4Addr, identification_low: u32) -> SeenRequest {
        SeenRequest { home_address, identification_low }
    }

    fn seen(address: Ipv4Addr, link_address: [u8; 6], identification_low: u32) -> SeenNeighbour {
        let request = Some(request(address, identification_low));
        SeenNeighbour { interface: LINK, address, link_address, request }
    }

    #[test]
    fn a_visitor_is_where_the_granted_request_came_from_whoever_speaks_in_its_name() {
        let mut neighbourhood = Neighbourhood::new(None);
        neighbourhood.note(seen(VISITOR, ITS_OWN, 1));
        neighbourhood.begin(LINK, request(VISITOR, 1));
        // A request that will be denied, and the very same one overheard.
        neighbourhood.note(seen(VISITOR, ANOTHERS, 2));
        neighbourhood.begin(LINK, request(VISITOR, 2));
        neighbourhood.note(seen(VISITOR, ANOTHERS, 1));
        neighbourhood.end(LINK, request(VISITOR, 1), true);
        neighbourhood.end(LINK, request(VISITOR, 2), false);
        assert_eq!(neighbourhood.visitor(LINK, VISITOR), Some(ITS_OWN));
        assert_eq!(neighbourhood.visitor(LINK + 1, VISITOR), None);
        assert_eq!(
            neighbourhood.link_address(LINK, VISITOR),
            Some(ANOTHERS),
            "the latest, for what it is worth"
        );
        neighbourhood.forget_visitor(VISITOR);
        assert_eq!(neighbourhood.visitor(LINK, VISITOR), None);
    }

    #[test]
    fn a_flood_of_senders_has_neither_visitors_nor_waiting_requests_forgotten() {
        let mut neighbourhood = Neighbourhood::new(None);
        let waiting = Ipv4Addr::new(10, 0, 0, 8);
        neighbourhood.note(seen(VISITOR, ITS_OWN, 1));
        neighbourhood.end(LINK, request(VISITOR, 1), true);
        neighbourhood.note(seen(waiting, ITS_OWN, 1));
        neighbourhood.begin(LINK, request(waiting, 1));
        for n in 0..2 * MOST as u32 {
            neighbourhood.note(seen(Ipv4Addr::from_bits(0x0b00_0000 + n), ANOTHERS, n));
        }
        for memory in [neighbourhood.requests.heard.len(), neighbourhood.senders.heard.len()] {
            assert_eq!(memory, MOST);
        }
        assert_eq!(neighbourhood.requests.by_age.len(), MOST);
        assert_eq!(neighbourhood.visitor(LINK, VISITOR), Some(ITS_OWN));
        assert_eq!(neighbourhood.requester(LINK, request(waiting, 1)), Some(ITS_OWN));
    }
}
