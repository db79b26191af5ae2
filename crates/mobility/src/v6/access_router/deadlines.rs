//! When something of an address is due.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv6Addr;

use careof_base::Instant;

/// At most one deadline for each address, and the earliest of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    of: BTreeMap<Ipv6Addr, Instant>,
    by_time: BTreeSet<(Instant, Ipv6Addr)>,
}

impl Deadlines {
    /// Sets that of an address; `None`: it has none any longer.
    pub(super) fn set(&mut self, address: Ipv6Addr, at: Option<Instant>) {
        let old = match at {
            Some(at) => self.of.insert(address, at),
            None => self.of.remove(&address),
        };
        if let Some(old) = old {
            self.by_time.remove(&(old, address));
        }
        if let Some(at) = at {
            self.by_time.insert((at, address));
        }
    }

    /// The earliest.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The address whose deadline is over by `now`, and has none then.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Ipv6Addr> {
        let (at, address) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(address, None);
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_deadline() {
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
