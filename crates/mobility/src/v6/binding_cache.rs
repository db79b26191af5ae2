//! The Binding Cache of a correspondent node (RFC 6275 sections 9.1 and 9.6, RFC 5648 section 6).
//!
//! A home address keeps its place, with the sequence number of its last update, for as long as an update of it could be repeated: until
//! a nonce of it ends (RFC 6275 section 5.2.8), even when no binding is left. So nobody is pushed out to make room: where there is
//! none, newcomers are refused, and those of one site sooner, so that who has a site's addresses cannot take all places.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Holdings, Instant};
use careof_wire::mip6::{BindingId, Lifetime, ReceivedData, SequenceNumber};

use super::BindingChanged;
use crate::ration::NodeRation;
use crate::{Change, refresh};

/// What counts as a site (RFC 6177): so many bits of its addresses.
const SITE_PREFIX: u32 = 48;

/// So many ICMP errors, each at least [`UNREACHABLE_INTERVAL`] after the one before, mean that a care-of address is not reachable for good.
const UNREACHABLE_COUNT: u8 = 3;
const UNREACHABLE_INTERVAL: Duration = Duration::from_secs(1);

/// A care-of address of a mobile node, as it registered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedBinding {
    /// The mobile node.
    pub home_address: Ipv6Addr,
    /// Where its packets go.
    pub care_of: Ipv6Addr,
    /// Its name among several (RFC 5648).
    pub id: Option<BindingId>,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends.
    pub expires: Instant,
}

impl CachedBinding {
    pub(super) fn changed(&self, change: Change) -> BindingChanged {
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

/// An accepted update, as far as it must be told from a repetition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) sequence: SequenceNumber,
    /// Until when it could be repeated.
    pub(super) until: Instant,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The end of a binding.
    Expiry,
    /// A question for a new binding, if this one is in use.
    Refresh,
    /// The end of what is remembered of a home address without bindings.
    Oblivion,
}

/// What has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A binding has ended.
    Expired(CachedBinding),
    /// The mobile node is to be asked for a new binding.
    Ask(CachedBinding),
}

type Deadline = (Instant, Due, Ipv6Addr, Option<BindingId>);

#[derive(Debug)]
struct Entry {
    binding: CachedBinding,
    /// When the mobile node is asked for a new one, if this one is in use.
    refresh: Instant,
    /// Whether a packet has been sent by it.
    used: bool,
    /// ICMP errors about packets to it, and when the last one that counted came.
    unreachable: (u8, Instant),
}

#[derive(Debug)]
struct Node {
    /// The latest last.
    entries: Vec<Entry>,
    /// The last update accepted; its end is the latest of all accepted ones.
    last: Accepted,
    refusals: NodeRation,
}

/// The bindings of all mobile nodes, by home address.
#[derive(Debug)]
pub(super) struct BindingCache {
    capacity: usize,
    per_site: usize,
    nodes: BTreeMap<Ipv6Addr, Node>,
    /// Bindings of all nodes.
    count: usize,
    sites: Holdings<u128>,
    deadlines: BTreeSet<Deadline>,
}

impl BindingCache {
    /// A cache for `capacity` home addresses, `per_site` of each site at most.
    pub(super) fn new(capacity: usize, per_site: usize) -> Self {
        Self {
            capacity,
            per_site,
            nodes: BTreeMap::new(),
            count: 0,
            sites: Holdings::default(),
            deadlines: BTreeSet::new(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CachedBinding> {
        self.nodes.values().flat_map(|node| &node.entries).map(|entry| &entry.binding)
    }

    /// Those of mobile nodes with this home address and larger ones.
    pub(super) fn from(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &CachedBinding> {
        self.nodes.range(home_address..).flat_map(|(_, node)| &node.entries).map(|entry| &entry.binding)
    }

    /// The bindings of one mobile node, the latest last.
    pub(super) fn of(&self, home_address: Ipv6Addr) -> impl Iterator<Item = &CachedBinding> {
        self.nodes.get(&home_address).into_iter().flat_map(|node| &node.entries).map(|entry| &entry.binding)
    }

    /// How many bindings there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Home addresses that have a place, with bindings or without.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The care-of address for a packet to `home_address`: the one registered last. It counts as use.
    pub(super) fn route(&mut self, home_address: Ipv6Addr) -> Option<Ipv6Addr> {
        if self.nodes.is_empty() {
            return None;
        }
        let entry = self.nodes.get_mut(&home_address)?.entries.last_mut()?;
        entry.used = true;
        Some(entry.binding.care_of)
    }

    /// Whether a mobile node has registered this care-of address.
    pub(super) fn has(&self, home_address: Ipv6Addr, care_of: Ipv6Addr) -> bool {
        self.of(home_address).any(|binding| binding.care_of == care_of)
    }

    /// A packet has come from a registered care-of address: it is reachable.
    pub(super) fn note_reachable(&mut self, home_address: Ipv6Addr, care_of: Ipv6Addr) {
        if let Some(entry) = self.entry_mut(home_address, care_of) {
            entry.unreachable = (0, Instant::ZERO);
        }
    }

    /// An ICMP error says that packets to a registered care-of address do not arrive. When that goes on, the binding is taken out
    /// (section 9.3.4).
    pub(super) fn note_unreachable(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        care_of: Ipv6Addr,
    ) -> Option<BindingChanged> {
        let entry = self.entry_mut(home_address, care_of)?;
        let (count, last) = entry.unreachable;
        if count > 0 && now < last + UNREACHABLE_INTERVAL {
            return None;
        }
        entry.unreachable = (count + 1, now);
        let id = entry.binding.id;
        if count + 1 < UNREACHABLE_COUNT {
            return None;
        }
        self.remove(now, home_address, id)
    }

    fn entry_mut(&mut self, home_address: Ipv6Addr, care_of: Ipv6Addr) -> Option<&mut Entry> {
        let node = self.nodes.get_mut(&home_address)?;
        node.entries.iter_mut().find(|entry| entry.binding.care_of == care_of)
    }

    /// The sequence number of the last update accepted, as long as it could be repeated or has made a binding that is there.
    pub(super) fn last_sequence(&self, home_address: Ipv6Addr) -> Option<SequenceNumber> {
        self.nodes.get(&home_address).map(|node| node.last.sequence)
    }

    /// The ration of refusals to a mobile node that has proved who it is, or whose updates are repeated by others; `None` when it has
    /// no place.
    pub(super) fn refusals(&mut self, home_address: Ipv6Addr) -> Option<&mut NodeRation> {
        self.nodes.get_mut(&home_address).map(|node| &mut node.refusals)
    }

    /// Whether `home_address` has a place or can have one.
    pub(super) fn has_room(&self, home_address: Ipv6Addr) -> bool {
        let is_free =
            || self.nodes.len() < self.capacity && self.sites.of(site(home_address)) < self.per_site;
        self.nodes.contains_key(&home_address) || is_free()
    }

    /// Enters `binding` in place of the one with the same name; of those with other names, none stay unless `keep_others`. Returns what
    /// changed, removals first. Whether there is room is to be asked before.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        binding: CachedBinding,
        accepted: Accepted,
        keep_others: bool,
    ) -> Vec<BindingChanged> {
        let home_address = binding.home_address;
        let mut changes = Vec::new();
        let mut change = Change::Created;
        let replaced: Vec<_> = self
            .of(home_address)
            .filter(|old| old.id == binding.id || !keep_others)
            .map(|old| old.id)
            .collect();
        // With the node's memory of the last update there is something left of it.
        self.note(home_address, accepted);
        for id in replaced {
            let Some(old) = self.take(home_address, id) else { continue };
            if old.id == binding.id && old.care_of == binding.care_of {
                change = Change::Updated;
            } else {
                changes.push(old.changed(Change::Removed));
            }
        }
        let refresh = refresh::first(now, binding.expires);
        self.deadlines.insert((binding.expires, Due::Expiry, home_address, binding.id));
        self.deadlines.insert((refresh, Due::Refresh, home_address, binding.id));
        if let Some(node) = self.nodes.get_mut(&home_address) {
            self.deadlines.remove(&(node.last.until, Due::Oblivion, home_address, None));
            let unreachable = (0, Instant::ZERO);
            node.entries.push(Entry { binding, refresh, used: false, unreachable });
            self.count += 1;
        }
        changes.push(binding.changed(change));
        changes
    }

    /// An update has been accepted: `home_address` has a place from now on.
    fn note(&mut self, home_address: Ipv6Addr, accepted: Accepted) {
        if let Some(node) = self.nodes.get_mut(&home_address) {
            let until = node.last.until.max(accepted.until);
            if self.deadlines.remove(&(node.last.until, Due::Oblivion, home_address, None)) {
                self.deadlines.insert((until, Due::Oblivion, home_address, None));
            }
            node.last = Accepted { until, ..accepted };
        } else {
            let node = Node { entries: Vec::new(), last: accepted, refusals: NodeRation::default() };
            self.nodes.insert(home_address, node);
            self.sites.add(site(home_address));
        }
    }

    /// Takes out the binding with this name, or all, as an accepted update wants. A home address without a place gets none.
    pub(super) fn delete(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        id: Option<BindingId>,
        accepted: Accepted,
    ) -> Vec<BindingChanged> {
        if !self.nodes.contains_key(&home_address) {
            return Vec::new();
        }
        self.note(home_address, accepted);
        let ids: Vec<_> = match id {
            Some(id) => alloc::vec![Some(id)],
            None => self.of(home_address).map(|binding| binding.id).collect(),
        };
        ids.into_iter().filter_map(|id| self.remove(now, home_address, id)).collect()
    }

    fn remove(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        id: Option<BindingId>,
    ) -> Option<BindingChanged> {
        let binding = self.take(home_address, id)?;
        self.end_service(now, home_address);
        Some(binding.changed(Change::Removed))
    }

    fn take(&mut self, home_address: Ipv6Addr, id: Option<BindingId>) -> Option<CachedBinding> {
        let node = self.nodes.get_mut(&home_address)?;
        let at = node.entries.iter().position(|entry| entry.binding.id == id)?;
        let Entry { binding, refresh, .. } = node.entries.remove(at);
        self.count -= 1;
        self.deadlines.remove(&(binding.expires, Due::Expiry, home_address, id));
        self.deadlines.remove(&(refresh, Due::Refresh, home_address, id));
        Some(binding)
    }

    /// A home address without bindings loses its place as soon as no update of it can be repeated.
    fn end_service(&mut self, now: Instant, home_address: Ipv6Addr) {
        let Some(node) = self.nodes.get(&home_address).filter(|node| node.entries.is_empty()) else { return };
        if node.last.until <= now {
            self.forget(home_address);
        } else {
            self.deadlines.insert((node.last.until, Due::Oblivion, home_address, None));
        }
    }

    fn forget(&mut self, home_address: Ipv6Addr) {
        if self.nodes.remove(&home_address).is_some() {
            self.sites.take(site(home_address));
        }
    }

    /// What is due next.
    pub(super) fn next_due(&self) -> Option<(Instant, Due)> {
        self.deadlines.first().map(|&(at, due, ..)| (at, due))
    }

    /// Carries out one thing that is due by `now` and that others are to know of; to be called until `None`.
    pub(super) fn carry_out(&mut self, now: Instant) -> Option<Outcome> {
        while let Some(&deadline) = self.deadlines.first().filter(|(at, ..)| *at <= now) {
            self.deadlines.remove(&deadline);
            let (_, due, home_address, id) = deadline;
            match due {
                Due::Expiry => {
                    let Some(binding) = self.take(home_address, id) else { continue };
                    self.end_service(now, home_address);
                    return Some(Outcome::Expired(binding));
                }
                Due::Refresh => {
                    if let Some(binding) = self.refresh(now, home_address, id) {
                        return Some(Outcome::Ask(binding));
                    }
                }
                Due::Oblivion => self.forget(home_address),
            }
        }
        None
    }

    /// The binding, if it is in use. Whether it is will be asked again.
    fn refresh(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        id: Option<BindingId>,
    ) -> Option<CachedBinding> {
        let node = self.nodes.get_mut(&home_address)?;
        let entry = node.entries.iter_mut().find(|entry| entry.binding.id == id)?;
        let expires = entry.binding.expires;
        if expires <= now {
            return None;
        }
        entry.refresh = refresh::next(now, expires);
        if entry.refresh < expires {
            self.deadlines.insert((entry.refresh, Due::Refresh, home_address, id));
        }
        entry.used.then_some(entry.binding)
    }
}

fn site(address: Ipv6Addr) -> u128 {
    address.to_bits() >> (128 - SITE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: u16 = 1;

    fn home(site: u16, host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, site, 0, 0, 0, 0, host)
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// A binding from the beginning until `end` seconds.
    fn binding(home_address: Ipv6Addr, id: u16, end: u64) -> CachedBinding {
        CachedBinding {
            home_address,
            care_of: home(9, id),
            id: (id > 0).then_some(BindingId(id)),
            lifetime: Lifetime::from_units((end / 4) as u16),
            expires: at(end),
        }
    }

    fn accepted(sequence: u16, until: u64) -> Accepted {
        Accepted { sequence: SequenceNumber(sequence), until: at(until) }
    }

    fn ids(cache: &BindingCache, home_address: Ipv6Addr) -> Vec<u16> {
        cache.of(home_address).map(|binding| binding.id.map_or(0, |id| id.0)).collect()
    }

    fn changes(changes: &[BindingChanged]) -> Vec<Change> {
        changes.iter().map(|change| change.change).collect()
    }

    fn is_empty(cache: &BindingCache) -> bool {
        cache.count() == 0
            && cache.nodes.is_empty()
            && cache.deadlines.is_empty()
            && cache.sites.largest().is_none()
    }

    #[test]
    fn a_sequence_number_is_kept_for_as_long_as_an_update_could_be_repeated() {
        let mut cache = BindingCache::new(4, 4);
        let node = home(SITE, 1);
        cache.insert(at(0), binding(node, 0, 40), accepted(7, 200), false);
        assert!(matches!(cache.carry_out(at(40)), Some(Outcome::Expired(_))));
        assert_eq!(cache.route(node), None);
        assert_eq!(cache.next_due(), Some((at(200), Due::Oblivion)));
        assert_eq!(cache.last_sequence(node), Some(SequenceNumber(7)));
        assert_eq!(cache.carry_out(at(200)), None);
        assert_eq!(cache.last_sequence(node), None);
        assert!(is_empty(&cache));
    }

    #[test]
    fn the_longest_memory_of_all_updates_counts() {
        let mut cache = BindingCache::new(4, 4);
        let node = home(SITE, 1);
        cache.insert(at(0), binding(node, 0, 40), accepted(7, 200), false);
        assert_eq!(changes(&cache.delete(at(10), node, None, accepted(8, 150))), [Change::Removed]);
        assert_eq!(cache.next_due(), Some((at(200), Due::Oblivion)));
        assert_eq!(cache.last_sequence(node), Some(SequenceNumber(8)));
        // What comes back in the meantime is not forgotten with it.
        cache.insert(at(20), binding(node, 0, 300), accepted(9, 230), false);
        assert!(matches!(cache.carry_out(at(299)), None | Some(Outcome::Ask(_))));
        assert_eq!(ids(&cache, node), [0]);
        assert!(matches!(cache.carry_out(at(300)), Some(Outcome::Expired(_))));
        assert!(is_empty(&cache), "nothing of it can be repeated any longer");
    }

    #[test]
    fn a_deletion_gives_nobody_a_place() {
        let mut cache = BindingCache::new(4, 4);
        assert_eq!(cache.delete(at(0), home(SITE, 1), None, accepted(1, 100)), []);
        assert!(is_empty(&cache));
    }

    #[test]
    fn where_there_is_no_room_newcomers_are_refused_and_those_of_one_site_sooner() {
        let mut cache = BindingCache::new(3, 2);
        for host in [1, 2] {
            cache.insert(at(0), binding(home(SITE, host), 0, 40), accepted(1, 100), false);
        }
        assert!(!cache.has_room(home(SITE, 3)), "the site has its share");
        assert!(cache.has_room(home(SITE, 1)), "who has a place keeps it");
        assert!(cache.has_room(home(2, 1)));
        cache.insert(at(0), binding(home(2, 1), 0, 40), accepted(1, 100), false);
        assert!(!cache.has_room(home(3, 1)), "all places are taken");
        while cache.carry_out(at(40)).is_some() {}
        assert!(!cache.has_room(home(3, 1)), "and stay so as long as what made them could be repeated");
        while cache.carry_out(at(100)).is_some() {}
        assert!(cache.has_room(home(3, 1)) && is_empty(&cache));
    }

    #[test]
    fn several_bindings_live_and_end_by_themselves() {
        let mut cache = BindingCache::new(4, 4);
        let node = home(SITE, 1);
        cache.insert(at(0), binding(node, 1, 100), accepted(1, 200), true);
        cache.insert(at(0), binding(node, 2, 60), accepted(2, 200), true);
        assert_eq!(ids(&cache, node), [1, 2]);
        assert_eq!(cache.route(node), Some(home(9, 2)), "the one registered last");
        let renewed = cache.insert(at(10), binding(node, 1, 110), accepted(3, 200), true);
        assert_eq!((changes(&renewed), ids(&cache, node)), (alloc::vec![Change::Updated], alloc::vec![2, 1]));
        assert_eq!(
            changes(&cache.delete(at(20), node, Some(BindingId(1)), accepted(4, 200))),
            [Change::Removed]
        );
        assert_eq!(ids(&cache, node), [2]);
        cache.insert(at(30), binding(node, 3, 300), accepted(5, 200), true);
        let replaced = cache.insert(at(30), binding(node, 0, 300), accepted(6, 200), false);
        assert_eq!(changes(&replaced), [Change::Removed, Change::Removed, Change::Created]);
        assert_eq!(ids(&cache, node), [0]);
    }

    #[test]
    fn only_a_binding_in_use_is_asked_for() {
        let mut cache = BindingCache::new(4, 4);
        let (used, unused) = (home(SITE, 1), home(SITE, 2));
        for node in [used, unused] {
            cache.insert(at(0), binding(node, 0, 400), accepted(1, 200), false);
        }
        assert_eq!(cache.route(used), Some(home(9, 0)));
        let mut asked = Vec::new();
        for seconds in 0..400 {
            while let Some(Outcome::Ask(binding)) = cache.carry_out(at(seconds)) {
                asked.push((seconds, binding.home_address));
            }
        }
        let times: Vec<_> = asked.iter().map(|(seconds, _)| *seconds).collect();
        assert_eq!(times, [300, 350, 375, 388, 394, 397, 399]);
        assert!(asked.iter().all(|(_, home_address)| *home_address == used));
    }

    #[test]
    fn only_errors_that_go_on_end_a_binding() {
        let mut cache = BindingCache::new(4, 4);
        let (node, care_of) = (home(SITE, 1), home(9, 0));
        cache.insert(at(0), binding(node, 0, 400), accepted(1, 200), false);
        let burst = (0..100).filter_map(|_| cache.note_unreachable(at(10), node, care_of)).count();
        assert_eq!(burst, 0, "a burst is one");
        assert_eq!(cache.note_unreachable(at(11), node, care_of), None);
        cache.note_reachable(node, care_of);
        assert_eq!(cache.note_unreachable(at(12), node, care_of), None);
        assert_eq!(cache.note_unreachable(at(13), node, care_of), None);
        assert_eq!(cache.note_unreachable(at(13), node, home(9, 1)), None, "another care-of address");
        assert_eq!(cache.note_unreachable(at(14), node, care_of).map(|c| c.change), Some(Change::Removed));
        assert_eq!(cache.last_sequence(node), Some(SequenceNumber(1)));
    }
}
