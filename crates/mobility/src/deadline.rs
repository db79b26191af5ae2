//! The next thing that is due.

use alloc::collections::{BTreeMap, BTreeSet};

use careof_base::Instant;

/// The earlier of two deadlines; of equal ones the first.
pub(crate) fn earliest<W>(first: Option<(Instant, W)>, second: Option<(Instant, W)>) -> Option<(Instant, W)> {
    match (first, second) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// At most one deadline for each key, and the earliest of all.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines<K> {
    of: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Deadlines<K> {
    /// Sets that of a key; `None`: it has none any longer.
    pub(crate) fn set(&mut self, key: K, at: Option<Instant>) {
        let old = match at {
            Some(at) => self.of.insert(key, at),
            None => self.of.remove(&key),
        };
        if let Some(old) = old {
            self.by_time.remove(&(old, key));
        }
        if let Some(at) = at {
            self.by_time.insert((at, key));
        }
    }

    /// The earliest.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.first().map(|(at, _)| at)
    }

    /// The earliest, and whose it is.
    pub(crate) fn first(&self) -> Option<(Instant, K)> {
        self.by_time.first().copied()
    }

    /// The key whose deadline is over by `now`, and has none then.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;

    #[test]
    fn a_key_has_one_deadline() {
        let mut deadlines = Deadlines::default();
        let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        deadlines.set(a, Some(Instant::from_secs(9)));
        deadlines.set(b, Some(Instant::from_secs(5)));
        deadlines.set(a, Some(Instant::from_secs(3)));
        assert_eq!(deadlines.next(), Some(Instant::from_secs(3)));
        assert_eq!(deadlines.take_due(Instant::from_secs(2)), None);
        assert_eq!(deadlines.take_due(Instant::from_secs(9)), Some(a));
        deadlines.set(b, None);
        assert_eq!(deadlines.take_due(Instant::from_secs(9)), None);
        assert!(deadlines.of.is_empty() && deadlines.by_time.is_empty());
    }
}
