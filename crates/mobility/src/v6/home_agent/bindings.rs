//! The home registrations: where the packets of mobile nodes go.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_wire::mip6::{BindingId, Lifetime, PathReport, ReceivedData, SequenceNumber};

use crate::Change;
use crate::v6::{BindingChanged, Tunnel};

/// What a home agent knows of one care-of address of one mobile node (RFC 6275 section 10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeRegistration {
    /// The mobile node.
    pub home_address: Ipv6Addr,
    /// Its IPv4 home address, if that is bound, too; the same in all bindings of a mobile node (RFC 5648 section 8.2).
    pub ipv4_home_address: Option<Ipv4Addr>,
    /// Where its packets go; IPv4-mapped where that is an IPv4 address.
    pub care_of: Ipv6Addr,
    /// Its name among several (RFC 5648).
    pub id: Option<BindingId>,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends.
    pub expires: Instant,
    /// The sequence number of the update that made it.
    pub sequence: SequenceNumber,
    /// The link-local address that belongs to the home address is defended, too (L).
    pub link_local: bool,
    /// What the mobile node reported of the path with the update; not kept across a restart of the home agent.
    pub path: Option<PathReport>,
}

impl HomeRegistration {
    fn changed(&self, change: Change) -> BindingChanged {
        let gone = matches!(change, Change::Removed | Change::Expired);
        BindingChanged {
            home_address: self.home_address,
            care_of: self.care_of,
            id: self.id,
            lifetime: if gone { Lifetime::ZERO } else { self.lifetime },
            change,
            path: None,
            received: ReceivedData::EMPTY,
        }
    }
}

#[derive(Debug, Default)]
struct Node {
    registrations: Vec<HomeRegistration>,
    /// The tunnels of `registrations`, in the same order, as the data plane wants them.
    tunnels: Vec<Tunnel>,
    /// That of the last update accepted, whatever it was about.
    sequence: SequenceNumber,
}

type Deadline = (Instant, Ipv6Addr, Option<BindingId>);

/// The home registrations of all mobile nodes of a home agent.
#[derive(Debug)]
pub(super) struct HomeRegistrations {
    home_agent: Ipv6Addr,
    /// Where tunnels to IPv4 care-of addresses begin.
    ipv4: Option<Ipv4Addr>,
    nodes: BTreeMap<Ipv6Addr, Box<Node>>,
    deadlines: BTreeSet<Deadline>,
    /// Of mobile nodes that have deregistered lately: until when their last sequence number is remembered (RFC 6275 section 10.3.2).
    deleted: BTreeMap<Ipv6Addr, (Instant, SequenceNumber)>,
    deleted_ends: BTreeSet<(Instant, Ipv6Addr)>,
    count: usize,
}

impl HomeRegistrations {
    pub(super) const fn new(home_agent: Ipv6Addr, ipv4: Option<Ipv4Addr>) -> Self {
        Self {
            home_agent,
            ipv4,
            nodes: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            deleted: BTreeMap::new(),
            deleted_ends: BTreeSet::new(),
            count: 0,
        }
    }

    pub(super) fn tunnels(&self, home_address: Ipv6Addr) -> &[Tunnel] {
        self.nodes.get(&home_address).map_or(&[], |node| &node.tunnels)
    }

    pub(super) fn of(&self, home_address: Ipv6Addr) -> &[HomeRegistration] {
        self.nodes.get(&home_address).map_or(&[], |node| &node.registrations)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &HomeRegistration> {
        self.nodes.values().flat_map(|node| &node.registrations)
    }

    /// Those of mobile nodes with this home address and larger ones.
    pub(super) fn from(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &HomeRegistration> {
        self.nodes.range(home_address..).flat_map(|(_, node)| &node.registrations)
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The sequence number of the last update accepted of `home_address`, as long as it is remembered.
    pub(super) fn last_sequence(&self, home_address: Ipv6Addr) -> Option<SequenceNumber> {
        let current = self.nodes.get(&home_address).map(|node| node.sequence);
        current.or_else(|| self.deleted.get(&home_address).map(|(_, sequence)| *sequence))
    }

    /// Whether the last binding of `home_address` was deleted so lately that it counts as there, but invalid.
    pub(super) fn was_deleted(&self, home_address: Ipv6Addr) -> bool {
        self.deleted.contains_key(&home_address)
    }

    /// An update with this number was accepted.
    pub(super) fn accept_sequence(&mut self, home_address: Ipv6Addr, sequence: SequenceNumber) {
        if let Some(node) = self.nodes.get_mut(&home_address) {
            node.sequence = sequence;
        }
    }

    /// The last binding of `home_address` is deleted by an update with this number, which is remembered until `until`.
    pub(super) fn mark_deleted(&mut self, home_address: Ipv6Addr, sequence: SequenceNumber, until: Instant) {
        self.forget_deleted(home_address);
        self.deleted.insert(home_address, (until, sequence));
        self.deleted_ends.insert((until, home_address));
    }

    fn forget_deleted(&mut self, home_address: Ipv6Addr) {
        if let Some((until, _)) = self.deleted.remove(&home_address) {
            self.deleted_ends.remove(&(until, home_address));
        }
    }

    /// Enters `registration` in place of the one with the same name; of those with other names, none stay unless `keep_others`.
    /// Returns what changed, removals first.
    pub(super) fn insert(
        &mut self,
        registration: HomeRegistration,
        keep_others: bool,
    ) -> Vec<BindingChanged> {
        let home_address = registration.home_address;
        self.forget_deleted(home_address);
        let node = self.nodes.entry(home_address).or_default();
        node.sequence = registration.sequence;
        let mut changes = Vec::new();
        let mut change = Change::Created;
        let is_same = |old: &HomeRegistration| old.id == registration.id;
        for old in node.registrations.iter().filter(|old| is_same(old) || !keep_others) {
            self.deadlines.remove(&(old.expires, home_address, old.id));
            if old.care_of == registration.care_of && is_same(old) {
                change = Change::Updated;
            } else {
                changes.push(old.changed(Change::Removed));
            }
        }
        self.count -= node.registrations.len();
        node.registrations.retain(|old| keep_others && !is_same(old));
        for other in &mut node.registrations {
            other.ipv4_home_address = registration.ipv4_home_address;
        }
        node.registrations.push(registration);
        self.count += node.registrations.len();
        node.refresh((self.home_agent, self.ipv4));
        self.deadlines.insert((registration.expires, home_address, registration.id));
        changes.push(registration.changed(change));
        changes
    }

    /// Takes out the binding with this name.
    pub(super) fn remove(&mut self, home_address: Ipv6Addr, id: Option<BindingId>) -> Option<BindingChanged> {
        self.take(home_address, id).map(|registration| registration.changed(Change::Removed))
    }

    /// Takes out all bindings of a mobile node.
    pub(super) fn remove_all(&mut self, home_address: Ipv6Addr) -> Vec<BindingChanged> {
        let ids: Vec<_> = self.of(home_address).iter().map(|registration| registration.id).collect();
        ids.into_iter().filter_map(|id| self.remove(home_address, id)).collect()
    }

    /// No binding of `home_address` lasts beyond `until`.
    pub(super) fn shorten(&mut self, home_address: Ipv6Addr, until: Instant) {
        let Some(node) = self.nodes.get_mut(&home_address) else { return };
        for registration in node.registrations.iter_mut().filter(|registration| registration.expires > until)
        {
            self.deadlines.remove(&(registration.expires, home_address, registration.id));
            registration.expires = until;
            self.deadlines.insert((until, home_address, registration.id));
        }
    }

    /// The earliest end of a lifetime.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, ..)| at)
    }

    /// Takes out one binding whose lifetime has ended by `now`; to be called until `None`.
    pub(super) fn expire(&mut self, now: Instant) -> Option<BindingChanged> {
        let &(_, home_address, id) = self.deadlines.first().filter(|(at, ..)| *at <= now)?;
        self.take(home_address, id).map(|registration| registration.changed(Change::Expired))
    }

    /// When a deleted binding may be forgotten.
    pub(super) fn deleted_deadline(&self) -> Option<Instant> {
        self.deleted_ends.first().map(|&(at, _)| at)
    }

    pub(super) fn expire_deleted(&mut self, now: Instant) {
        while let Some(&(_, home_address)) = self.deleted_ends.first().filter(|(at, _)| *at <= now) {
            self.forget_deleted(home_address);
        }
    }

    fn take(&mut self, home_address: Ipv6Addr, id: Option<BindingId>) -> Option<HomeRegistration> {
        let node = self.nodes.get_mut(&home_address)?;
        let at = node.registrations.iter().position(|registration| registration.id == id)?;
        let registration = node.registrations.remove(at);
        self.count -= 1;
        self.deadlines.remove(&(registration.expires, home_address, id));
        if node.registrations.is_empty() {
            self.nodes.remove(&home_address);
        } else {
            node.refresh((self.home_agent, self.ipv4));
        }
        Some(registration)
    }
}

/// The tunnel from a home agent, by its addresses, to a care-of address.
pub(super) fn tunnel_to(care_of: Ipv6Addr, (own, ipv4): (Ipv6Addr, Option<Ipv4Addr>)) -> Tunnel {
    let mapped = care_of.to_ipv4_mapped().and(ipv4).map(|own| own.to_ipv6_mapped());
    Tunnel { entry: mapped.unwrap_or(own), exit: care_of }
}

impl Node {
    fn refresh(&mut self, home_agent: (Ipv6Addr, Option<Ipv4Addr>)) {
        self.tunnels.clear();
        self.tunnels.extend(self.registrations.iter().map(|made| tunnel_to(made.care_of, home_agent)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

    fn registration(id: u16, host: u16, seconds: u64) -> HomeRegistration {
        HomeRegistration {
            home_address: HOME,
            ipv4_home_address: None,
            care_of: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, host),
            id: (id > 0).then_some(BindingId(id)),
            lifetime: Lifetime::from_units(10),
            expires: Instant::from_secs(seconds),
            sequence: SequenceNumber(host),
            link_local: false,
            path: None,
        }
    }

    fn exits(table: &HomeRegistrations) -> Vec<u16> {
        table.tunnels(HOME).iter().map(|tunnel| tunnel.exit.segments()[7]).collect()
    }

    #[test]
    fn bindings_with_other_names_stay_only_when_they_are_to() {
        let mut table = HomeRegistrations::new(HOME_AGENT, None);
        table.insert(registration(1, 1, 100), true);
        table.insert(registration(2, 2, 100), true);
        assert_eq!((exits(&table), table.len()), (alloc::vec![1, 2], 2));
        let changes = table.insert(registration(1, 3, 100), true);
        assert_eq!(changes.iter().map(|c| c.change).collect::<Vec<_>>(), [Change::Removed, Change::Created]);
        assert_eq!(exits(&table), [2, 3]);
        table.insert(registration(0, 9, 100), false);
        assert_eq!((exits(&table), table.len()), (alloc::vec![9], 1));
    }

    #[test]
    fn a_shortened_binding_ends_when_its_prefix_does() {
        let mut table = HomeRegistrations::new(HOME_AGENT, None);
        table.insert(registration(1, 1, 100), true);
        table.insert(registration(2, 2, 20), true);
        table.shorten(HOME, Instant::from_secs(50));
        assert_eq!(table.expire(Instant::from_secs(49)).map(|c| c.id), Some(Some(BindingId(2))));
        assert_eq!(
            (table.expire(Instant::from_secs(49)), table.deadline()),
            (None, Some(Instant::from_secs(50)))
        );
        assert!(table.expire(Instant::from_secs(50)).is_some() && table.len() == 0);
        assert!(table.nodes.is_empty() && table.deadlines.is_empty());
    }

    #[test]
    fn the_sequence_number_outlives_the_last_binding_for_a_while() {
        let mut table = HomeRegistrations::new(HOME_AGENT, None);
        table.insert(registration(0, 7, 100), false);
        assert_eq!(table.last_sequence(HOME), Some(SequenceNumber(7)));
        assert_eq!(table.remove_all(HOME).len(), 1);
        table.mark_deleted(HOME, SequenceNumber(8), Instant::from_secs(10));
        table.expire_deleted(Instant::from_millis(9_999));
        assert_eq!((table.last_sequence(HOME), table.was_deleted(HOME)), (Some(SequenceNumber(8)), true));
        table.expire_deleted(Instant::from_secs(10));
        assert_eq!((table.last_sequence(HOME), table.was_deleted(HOME)), (None, false));
    }
}
