//! Things that are kept for a time: as many as there is room for, each found by its key.

use alloc::collections::{BTreeMap, BTreeSet};

use careof_base::Instant;

#[derive(Clone, Debug)]
struct Kept<V> {
    value: V,
    expires: Instant,
    /// When somebody has to look at it: at `expires` or before. Prolonging what is kept is done for each packet; only this is in order.
    look: Instant,
}

/// Values by key, each until its time is over. There is no more than there is room for, and looking one up, prolonging it and finding the
/// next that is over take no look at the others.
#[derive(Clone, Debug)]
pub(super) struct Aged<K, V> {
    kept: BTreeMap<K, Kept<V>>,
    by_time: BTreeSet<(Instant, K)>,
    room: usize,
}

impl<K: Copy + Ord, V> Aged<K, V> {
    pub(super) const fn new(room: usize) -> Self {
        Self { kept: BTreeMap::new(), by_time: BTreeSet::new(), room }
    }

    /// How many there are, those that are over and not taken yet among them.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// The value, if its time is not over.
    pub(super) fn get(&self, now: Instant, key: K) -> Option<&V> {
        self.kept.get(&key).filter(|kept| now < kept.expires).map(|kept| &kept.value)
    }

    /// The value, if its time is not over.
    pub(super) fn get_mut(&mut self, now: Instant, key: K) -> Option<&mut V> {
        self.kept.get_mut(&key).filter(|kept| now < kept.expires).map(|kept| &mut kept.value)
    }

    /// Shows the value, if its time is not over, and prolongs it if `renew` says so.
    pub(super) fn renew_if(
        &mut self,
        now: Instant,
        key: K,
        expires: Instant,
        renew: impl FnOnce(&mut V) -> bool,
    ) {
        if let Some(kept) = self.kept.get_mut(&key)
            && now < kept.expires
            && renew(&mut kept.value)
        {
            kept.expires = kept.expires.max(expires);
        }
    }

    /// Prolongs it, or does nothing: what is kept for longer stays.
    pub(super) fn keep_until(&mut self, key: K, expires: Instant) {
        if let Some(kept) = self.kept.get_mut(&key) {
            kept.expires = kept.expires.max(expires);
        }
    }

    /// Keeps `value` until `expires`, in place of what there was under this key. What is over makes no room before it is taken
    /// ([`Aged::take_expired`]).
    ///
    /// # Errors
    /// The value, where there is no room for another.
    pub(super) fn insert(&mut self, key: K, value: V, expires: Instant) -> Result<(), V> {
        if self.kept.len() >= self.room && !self.kept.contains_key(&key) {
            return Err(value);
        }
        if let Some(old) = self.kept.insert(key, Kept { value, expires, look: expires }) {
            self.by_time.remove(&(old.look, key));
        }
        self.by_time.insert((expires, key));
        Ok(())
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let kept = self.kept.remove(&key)?;
        self.by_time.remove(&(kept.look, key));
        Some(kept.value)
    }

    /// When to call [`Aged::take_expired`] next: no later than something is over, and maybe earlier.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_time.first().map(|(look, _)| *look)
    }

    /// Takes out the next whose time is over.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<(K, V)> {
        loop {
            let (look, key) = *self.by_time.first()?;
            if look > now {
                return None;
            }
            self.by_time.remove(&(look, key));
            let expires = self.kept.get(&key)?.expires;
            if expires <= now {
                return self.kept.remove(&key).map(|kept| (key, kept.value));
            }
            if let Some(kept) = self.kept.get_mut(&key) {
                kept.look = expires;
            }
            self.by_time.insert((expires, key));
        }
    }

    /// Keys and values, by key; what is over may still be among them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.kept.iter().map(|(key, kept)| (*key, &kept.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn what_is_over_is_gone_though_nobody_took_it_out() {
        let mut aged = Aged::new(10);
        aged.insert(1, 'a', at(5)).unwrap();
        assert_eq!((aged.get(at(4), 1), aged.get(at(5), 1)), (Some(&'a'), None));
        assert_eq!(aged.take_expired(at(5)), Some((1, 'a')));
        assert_eq!((aged.len(), aged.deadline()), (0, None));
    }

    #[test]
    fn what_is_prolonged_is_looked_at_and_stays() {
        let mut aged = Aged::new(10);
        aged.insert(1, 'a', at(5)).unwrap();
        aged.insert(2, 'b', at(6)).unwrap();
        aged.keep_until(1, at(9));
        aged.keep_until(1, at(7));
        assert_eq!(aged.deadline(), Some(at(5)));
        assert_eq!(aged.take_expired(at(5)), None);
        assert_eq!(aged.deadline(), Some(at(6)));
        assert_eq!(aged.take_expired(at(8)), Some((2, 'b')));
        assert_eq!(aged.take_expired(at(8)), None);
        assert_eq!(aged.take_expired(at(9)), Some((1, 'a')));
    }

    #[test]
    fn there_is_no_more_than_there_is_room_for() {
        let mut aged = Aged::new(2);
        aged.insert(1, 'a', at(5)).unwrap();
        aged.insert(2, 'b', at(6)).unwrap();
        assert_eq!(aged.insert(3, 'c', at(9)), Err('c'));
        // The same key again needs none.
        aged.insert(1, 'd', at(3)).unwrap();
        assert_eq!(aged.take_expired(at(3)), Some((1, 'd')));
        aged.insert(3, 'c', at(9)).unwrap();
        assert_eq!((aged.len(), aged.get(at(3), 1), aged.get(at(3), 3)), (2, None, Some(&'c')));
        assert_eq!(aged.remove(2), Some('b'));
        assert_eq!(aged.deadline(), Some(at(9)));
    }
}
