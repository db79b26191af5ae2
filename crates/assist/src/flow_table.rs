//! The flows, as many as there is room for.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use careof_base::Instant;

use crate::FlowKey;
use crate::flow::Flow;

/// Flows by their key; when it is full, the one seen least recently goes.
#[derive(Debug)]
pub(crate) struct FlowTable {
    /// Each apart from the tree, which is searched for every packet.
    flows: BTreeMap<FlowKey, Box<Flow>>,
    /// When each was last seen, at the latest look: brought up to date when it is looked at again.
    by_age: BTreeSet<(Instant, FlowKey)>,
    room: usize,
}

impl FlowTable {
    pub(crate) const fn new(room: usize) -> Self {
        Self { flows: BTreeMap::new(), by_age: BTreeSet::new(), room }
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<&Flow> {
        self.flows.get(key).map(|flow| &**flow)
    }

    pub(crate) fn get_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(key).map(|flow| &mut **flow)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values().map(|flow| &**flow)
    }

    /// The flows of a mobile node.
    pub(crate) fn of(&self, mobile: core::net::Ipv4Addr) -> impl Iterator<Item = FlowKey> {
        let first = FlowKey { mobile, peer: core::net::Ipv4Addr::UNSPECIFIED, mobile_port: 0, peer_port: 0 };
        self.flows.range(first..).map(|(key, _)| *key).take_while(move |key| key.mobile == mobile)
    }

    /// Whether another flow finds room.
    pub(crate) fn is_full(&self) -> bool {
        self.flows.len() >= self.room
    }

    pub(crate) fn insert(&mut self, flow: Flow) {
        self.by_age.insert((flow.listed_at, flow.key));
        self.flows.insert(flow.key, Box::new(flow));
    }

    pub(crate) fn remove(&mut self, key: &FlowKey) -> Option<Box<Flow>> {
        let flow = self.flows.remove(key)?;
        self.by_age.remove(&(flow.listed_at, flow.key));
        Some(flow)
    }

    /// The flow seen least recently, if its last packet was at or before `before`. Lines of flows that were seen since they
    /// were written are brought up to date on the way, so that a packet need not touch them.
    pub(crate) fn least_recent(&mut self, before: Instant) -> Option<FlowKey> {
        while let Some(&(at, key)) = self.by_age.first() {
            if at > before {
                break;
            }
            let Some(flow) = self.flows.get_mut(&key) else { break };
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
    use core::net::Ipv4Addr;

    fn key(port: u16) -> FlowKey {
        let mobile = Ipv4Addr::new(10, 0, 0, 1);
        FlowKey { mobile, peer: Ipv4Addr::new(192, 0, 2, 1), mobile_port: port, peer_port: 80 }
    }

    #[test]
    fn the_one_seen_least_recently_is_found_though_others_were_seen_again() {
        let mut table = FlowTable::new(3);
        for port in 1..=3 {
            table.insert(Flow::new(key(port), Instant::from_secs(u64::from(port))));
        }
        assert!(table.is_full());
        table.get_mut(&key(1)).unwrap().last_seen = Instant::from_secs(9);
        assert_eq!(table.least_recent(Instant::from_secs(1)), None);
        assert_eq!(table.least_recent(Instant::MAX), Some(key(2)));
        table.remove(&key(2));
        assert_eq!(table.least_recent(Instant::MAX), Some(key(3)));
        table.remove(&key(3));
        assert_eq!(table.least_recent(Instant::MAX), Some(key(1)));
        assert_eq!(table.of(Ipv4Addr::new(10, 0, 0, 1)).count(), 1);
        assert_eq!(table.of(Ipv4Addr::new(10, 0, 0, 2)).count(), 0);
    }
}
