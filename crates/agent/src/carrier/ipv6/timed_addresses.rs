//! Addresses about which something is due at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use careof_base::Instant;

/// At most one thing for each address.
#[derive(Debug)]
pub(super) struct TimedAddresses<T> {
    by_address: BTreeMap<Ipv6Addr, (Instant, T)>,
    by_time: BTreeSet<(Instant, Ipv6Addr)>,
}

impl<T> Default for TimedAddresses<T> {
    fn default() -> Self {
        Self { by_address: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<T> TimedAddresses<T> {
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.by_address.keys().copied()
    }

    pub(super) fn get(&self, address: Ipv6Addr) -> Option<&T> {
        self.by_address.get(&address).map(|(_, what)| what)
    }

    /// In place of what was due about the address before.
    pub(super) fn insert(&mut self, at: Instant, address: Ipv6Addr, what: T) {
        self.remove(address);
        self.by_time.insert((at, address));
        self.by_address.insert(address, (at, what));
    }

    pub(super) fn remove(&mut self, address: Ipv6Addr) -> Option<T> {
        let (at, what) = self.by_address.remove(&address)?;
        self.by_time.remove(&(at, address));
        Some(what)
    }

    /// The earliest that is due by `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Ipv6Addr, T)> {
        let &(_, address) = self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.remove(address).map(|what| (address, what))
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

    #[test]
    fn the_earliest_is_due_first_and_of_an_address_the_latest_counts() {
        let mut timed = TimedAddresses::default();
        timed.insert(Instant::from_secs(3), A, 'a');
        timed.insert(Instant::from_secs(2), B, 'b');
        timed.insert(Instant::from_secs(1), A, 'c');
        assert_eq!((timed.len(), timed.next_timeout()), (2, Some(Instant::from_secs(1))));
        assert_eq!(timed.pop_due(Instant::from_millis(999)), None);
        assert_eq!(timed.pop_due(Instant::from_secs(9)), Some((A, 'c')));
        assert_eq!((timed.get(A), timed.get(B)), (None, Some(&'b')));
        assert_eq!(timed.remove(B), Some('b'));
        assert_eq!((timed.next_timeout(), timed.pop_due(Instant::MAX)), (None, None));
    }
}
