//! Bindings that somebody else vouches for: what a previous foreign agent and a correspondent node keep
//! (draft-ietf-mobileip-optim).

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{BindingUpdate, Lifetime, ReceivedData};

use super::lifetime::end_of;
use super::{BindingChanged, Change, EncapsulationChoice, Tunnel};

/// Where a mobile node is, as a [`BindingUpdate`] told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedBinding {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// Its home agent, as far as it is known.
    pub home_agent: Option<Ipv4Addr>,
    /// The lifetime told.
    pub lifetime: Lifetime,
    /// When it ends.
    pub expires: Instant,
    /// The way there.
    pub tunnel: Tunnel,
}

impl CachedBinding {
    /// What `update` tells, for somebody who tunnels from `entry` and caches no longer than `longest`.
    pub(crate) fn told(
        now: Instant,
        update: &BindingUpdate,
        entry: Ipv4Addr,
        home_agent: Option<Ipv4Addr>,
        longest: Lifetime,
    ) -> Self {
        let choice = if update.minimal_encapsulation {
            EncapsulationChoice::Minimal
        } else if update.gre {
            EncapsulationChoice::Gre
        } else {
            EncapsulationChoice::IpInIp
        };
        let lifetime = update.lifetime.min(longest);
        Self {
            home_address: update.home_address,
            home_agent,
            lifetime,
            expires: end_of(lifetime, now),
            tunnel: Tunnel {
                entry,
                exit: update.care_of_address,
                encapsulation: choice.encapsulation(),
                ttl: super::TUNNEL_TTL,
            },
        }
    }

    pub(crate) fn event(&self, change: Change) -> BindingChanged {
        let gone = matches!(change, Change::Removed | Change::Expired);
        BindingChanged {
            home_address: self.home_address,
            care_of: self.tunnel.exit,
            lifetime: if gone { Lifetime::ZERO } else { self.lifetime },
            change,
            path: None,
            received: ReceivedData::EMPTY,
        }
    }
}

/// Cached bindings by home address, at most `capacity`: where there is no room, the one that would end first goes.
#[derive(Debug)]
pub(crate) struct BindingCache {
    capacity: usize,
    entries: BTreeMap<Ipv4Addr, CachedBinding>,
    deadlines: BTreeSet<(Instant, Ipv4Addr)>,
}

impl BindingCache {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { capacity, entries: BTreeMap::new(), deadlines: BTreeSet::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn get(&self, home_address: Ipv4Addr) -> Option<&CachedBinding> {
        self.entries.get(&home_address)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CachedBinding> {
        self.entries.values()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at).filter(|&at| at < Instant::MAX)
    }

    /// Enters `entry`; returns the one it replaces, and the one that had to make room.
    pub(crate) fn insert(&mut self, entry: CachedBinding) -> (Option<CachedBinding>, Option<CachedBinding>) {
        let old = self.remove(entry.home_address);
        let full = self.entries.len() >= self.capacity;
        let first = self.deadlines.first().map(|&(_, home_address)| home_address);
        let evicted = first.filter(|_| full).and_then(|home_address| self.remove(home_address));
        if self.entries.len() < self.capacity {
            self.deadlines.insert((entry.expires, entry.home_address));
            self.entries.insert(entry.home_address, entry);
        }
        (old, evicted)
    }

    pub(crate) fn remove(&mut self, home_address: Ipv4Addr) -> Option<CachedBinding> {
        let entry = self.entries.remove(&home_address)?;
        self.deadlines.remove(&(entry.expires, home_address));
        Some(entry)
    }

    /// Takes out one binding whose lifetime has ended by `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<CachedBinding> {
        let &(at, home_address) = self.deadlines.first()?;
        if at > now || at == Instant::MAX {
            return None;
        }
        self.remove(home_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn entry(node: u8, seconds: u16) -> CachedBinding {
        let lifetime = Lifetime::from_secs(seconds);
        CachedBinding {
            home_address: Ipv4Addr::new(10, 0, 0, node),
            home_agent: None,
            lifetime,
            expires: end_of(lifetime, Instant::ZERO),
            tunnel: Tunnel {
                entry: Ipv4Addr::new(198, 51, 100, 1),
                exit: Ipv4Addr::new(192, 0, 2, 1),
                encapsulation: EncapsulationChoice::IpInIp.encapsulation(),
                ttl: 64,
            },
        }
    }

    #[test]
    fn a_full_cache_gives_up_what_would_end_first() {
        let mut cache = BindingCache::new(2);
        assert_eq!(cache.insert(entry(1, 50)), (None, None));
        assert_eq!(cache.insert(entry(2, 20)), (None, None));
        assert_eq!(cache.insert(entry(2, 30)), (Some(entry(2, 20)), None), "a renewal takes no room");
        assert_eq!(cache.insert(entry(3, 10)), (None, Some(entry(2, 30))));
        let kept: Vec<_> = cache.iter().map(|entry| entry.home_address.octets()[3]).collect();
        assert_eq!((kept, cache.deadline()), (alloc::vec![1, 3], Some(Instant::from_secs(10))));
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let mut cache = BindingCache::new(0);
        assert_eq!(cache.insert(entry(1, 50)), (None, None));
        assert!(cache.is_empty() && cache.deadline().is_none());
    }

    #[test]
    fn bindings_end_in_their_order_and_infinite_ones_never() {
        let mut cache = BindingCache::new(9);
        for (node, seconds) in [(1, u16::MAX), (2, 7), (3, 5)] {
            cache.insert(entry(node, seconds));
        }
        let expired = |cache: &mut BindingCache, at| {
            core::iter::from_fn(|| cache.expire(at)).map(|e| e.home_address.octets()[3]).collect::<Vec<_>>()
        };
        assert!(expired(&mut cache, Instant::from_millis(4_999)).is_empty());
        assert_eq!(expired(&mut cache, Instant::from_secs(100)), [3, 2]);
        assert!(expired(&mut cache, Instant::MAX).is_empty());
        assert_eq!(cache.deadline(), None);
    }
}
