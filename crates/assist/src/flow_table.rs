//! The flows, as many as there is room for.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::{Holdings, Instant};

use crate::flow::Flow;
use crate::standing::{LIVE, Standing};
use crate::{FlowKey, Place, Towards};

/// The first of all addresses in their order.
const LEAST: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A peer of IPv4; of IPv6 its link, for whoever has one address there has any number of them (RFC 4291 section 2.5.1: the prefix has 64
/// bits).
fn link_of(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(peer) => IpAddr::V6(Ipv6Addr::from_bits(peer.to_bits() & !u128::from(u64::MAX))),
    }
}

/// A flow, and what the assists remember of it.
#[derive(Debug)]
pub(crate) struct Followed<S> {
    pub(crate) flow: Flow,
    pub(crate) states: S,
}

/// Flows by their key. When it is full, room is made by who deserves it least ([`FlowTable::victim`]).
#[derive(Debug)]
pub(crate) struct FlowTable<S> {
    /// Each apart from the tree, which is searched for every packet.
    flows: BTreeMap<FlowKey, Box<Followed<S>>>,
    /// When each was last seen, at the latest look: brought up to date when it is looked at again.
    by_age: BTreeSet<(Instant, FlowKey)>,
    /// By standing.
    ranks: [Rank; 3],
    room: usize,
    place: Place,
}

/// The flows of one standing, by whose they are.
#[derive(Debug, Default)]
struct Rank {
    /// In order of age, as with [`FlowTable::by_age`].
    flows: BTreeSet<(IpAddr, Instant, FlowKey)>,
    holdings: Holdings<IpAddr>,
}

impl Rank {
    fn insert(&mut self, owner: IpAddr, at: Instant, key: FlowKey) {
        self.flows.insert((owner, at, key));
        self.holdings.add(owner);
    }

    fn remove(&mut self, owner: IpAddr, at: Instant, key: FlowKey) {
        if self.flows.remove(&(owner, at, key)) {
            self.holdings.take(owner);
        }
    }

    fn first_of(&self, owner: IpAddr) -> Option<(Instant, FlowKey)> {
        let least = FlowKey { mobile: LEAST, peer: LEAST, mobile_port: 0, peer_port: 0 };
        let &(found, at, key) = self.flows.range((owner, Instant::ZERO, least)..).next()?;
        (found == owner).then_some((at, key))
    }
}

impl<S: Default> FlowTable<S> {
    pub(crate) fn new(room: usize, place: Place) -> Self {
        Self { flows: BTreeMap::new(), by_age: BTreeSet::new(), ranks: Default::default(), room, place }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.flows.get(key).map(|followed| &followed.flow)
    }

    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(key).map(|followed| &mut followed.flow)
    }

    /// A flow with what the assists remember of it.
    pub(crate) fn followed(&mut self, key: &FlowKey) -> Option<&mut Followed<S>> {
        self.flows.get_mut(key).map(|followed| &mut **followed)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values().map(|followed| &followed.flow)
    }

    /// The flows of a mobile node.
    pub(crate) fn of(&self, mobile: IpAddr) -> impl Iterator<Item = FlowKey> {
        let first = FlowKey { mobile, peer: LEAST, mobile_port: 0, peer_port: 0 };
        self.flows.range(first..).map(|(key, _)| *key).take_while(move |key| key.mobile == mobile)
    }

    /// Whether another flow finds room.
    pub(crate) fn is_full(&self) -> bool {
        self.flows.len() >= self.room
    }

    /// Whose a flow is: there are many mobile nodes where their packets pass, and many peers at a mobile node.
    fn owner(&self, key: &FlowKey) -> IpAddr {
        match self.place.keeps() {
            Towards::Mobile => key.mobile,
            Towards::Peer => link_of(key.peer),
        }
    }

    pub(crate) fn insert(&mut self, flow: Flow) {
        self.by_age.insert((flow.listed_at, flow.key));
        let owner = self.owner(&flow.key);
        self.ranks[flow.proof.standing() as usize].insert(owner, flow.ranked_at, flow.key);
        self.flows.insert(flow.key, Box::new(Followed { flow, states: S::default() }));
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) -> Option<Box<Followed<S>>> {
        let followed = self.flows.remove(key)?;
        let flow = &followed.flow;
        self.by_age.remove(&(flow.listed_at, flow.key));
        let owner = self.owner(key);
        self.ranks[flow.proof.standing() as usize].remove(owner, flow.ranked_at, flow.key);
        Some(followed)
    }

    /// More is known of a flow, which had `before`.
    pub(crate) fn promote(&mut self, key: &FlowKey, before: Standing) {
        let owner = self.owner(key);
        let Some(flow) = self.flows.get_mut(key).map(|followed| &mut followed.flow) else { return };
        self.ranks[before as usize].remove(owner, flow.ranked_at, *key);
        flow.ranked_at = flow.last_seen;
        self.ranks[flow.proof.standing() as usize].insert(owner, flow.ranked_at, *key);
    }

    /// Which flow makes room for another one, `newcomer`, of which nothing is known yet; `None`: none does.
    ///
    /// - One that is as new, of the mobile node (at a mobile node: of the peer) with most of these, and of them the one seen least
    ///   recently. But an eighth of the room is always theirs, lest those that are known keep all others out:
    /// - then one that was heard in one direction only;
    /// - then one that was not seen for [`LIVE`];
    /// - then one of who has more than half of the room for himself.
    ///
    /// So a live connection whose ends were both heard never makes room for anything made up, unless there are so many
    /// of one mobile node.
    pub(crate) fn victim(&mut self, now: Instant, newcomer: &FlowKey) -> Option<FlowKey> {
        if self.ranks[Standing::New as usize].flows.len() > self.room / 8 {
            return self.least_of_largest(Standing::New);
        }
        self.least_of_largest(Standing::OneWay)
            .or_else(|| self.least_recent(now.saturating_sub(LIVE)).filter(|_| now > Instant::ZERO + LIVE))
            .or_else(|| {
                let (owner, size) = self.ranks[Standing::Mutual as usize].holdings.largest()?;
                let is_others = size > self.room / 2 && owner != self.owner(newcomer);
                is_others.then(|| self.least_of(Standing::Mutual, owner)).flatten()
            })
            .or_else(|| self.least_of_largest(Standing::New))
    }

    fn least_of_largest(&mut self, standing: Standing) -> Option<FlowKey> {
        let (owner, _) = self.ranks[standing as usize].holdings.largest()?;
        self.least_of(standing, owner)
    }

    /// Of the flows of this standing of one, that which was seen least recently. Lines are brought up to date on the way, as
    /// with [`Self::least_recent`].
    fn least_of(&mut self, standing: Standing, owner: IpAddr) -> Option<FlowKey> {
        let rank = &mut self.ranks[standing as usize];
        while let Some((at, key)) = rank.first_of(owner) {
            let Some(flow) = self.flows.get_mut(&key).map(|followed| &mut followed.flow) else { break };
            if flow.last_seen == at {
                return Some(key);
            }
            flow.ranked_at = flow.last_seen;
            rank.flows.remove(&(owner, at, key));
            rank.flows.insert((owner, flow.ranked_at, key));
        }
        None
    }

    /// The flow seen least recently, if its last packet was at or before `before`. Lines of flows that were seen since they
    /// were written are brought up to date on the way, so that a packet need not touch them.
    pub(crate) fn least_recent(&mut self, before: Instant) -> Option<FlowKey> {
        while let Some(&(at, key)) = self.by_age.first() {
            if at > before {
                break;
            }
            let Some(flow) = self.flows.get_mut(&key).map(|followed| &mut followed.flow) else { break };
            if flow.last_seen == at {
                return Some(key);
            }
            flow.listed_at = flow.last_seen;
            self.by_age.pop_first();
            self.by_age.insert((flow.listed_at, key));
        }
        None
    }

    /// When the flow that was seen least recently may have been seen, at the latest look.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.by_age.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        let mobile = IpAddr::from([10, 0, 0, 1]);
        FlowKey { mobile, peer: IpAddr::from([192, 0, 2, 1]), mobile_port: port, peer_port: 80 }
    }

    /// At a mobile node flows count for their peers.
    #[test]
    fn a_peer_with_many_addresses_on_one_link_is_one_peer() {
        let mut table = FlowTable::<()>::new(100, Place::MobileNode);
        let mobile = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1));
        for (link, hosts) in [(8, 4), (9, 40)] {
            for host in 0..hosts {
                let peer = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, link, 0, host, 0, 0, 1));
                let key = FlowKey { mobile, peer, mobile_port: 40_000, peer_port: 80 };
                table.insert(Flow::new(key, Instant::ZERO));
            }
        }
        let many = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 0));
        assert_eq!(table.ranks[Standing::New as usize].holdings.largest(), Some((many, 40)));
    }

    #[test]
    fn the_one_seen_least_recently_is_found_though_others_were_seen_again() {
        let mut table = FlowTable::<()>::new(3, Place::HomeAgent);
        for port in 1..=3 {
            table.insert(Flow::new(key(port), Instant::from_secs(u64::from(port))));
        }
        assert!(table.is_full());
        table.get_mut(&key(1)).unwrap().last_seen = Instant::from_secs(9);
        assert_eq!(table.least_recent(Instant::from_secs(1)), None);
        assert_eq!(table.least_recent(Instant::MAX), Some(key(2)));
        assert_eq!(table.victim(Instant::from_secs(9), &key(4)), Some(key(2)));
        table.remove(&key(2));
        assert_eq!(table.least_recent(Instant::MAX), Some(key(3)));
        table.remove(&key(3));
        assert_eq!(table.least_recent(Instant::MAX), Some(key(1)));
        assert_eq!(table.victim(Instant::from_secs(9), &key(4)), Some(key(1)));
        assert_eq!(table.of(IpAddr::from([10, 0, 0, 1])).count(), 1);
        assert_eq!(table.of(IpAddr::from([10, 0, 0, 2])).count(), 0);
        table.remove(&key(1));
        assert!(table.ranks.iter().all(|rank| rank.flows.is_empty() && rank.holdings.largest().is_none()));
    }
}
