//! Bindings are written down before the reply that grants them leaves.
//!
//! While that fails - the disk is full - requests are granted all the same. Code 130 (insufficient resources) instead
//! would break connections for certain: a mobile node that moves could not tell where to, and one that stays would
//! lose its binding with its lifetime. What is at risk without the record is less, and takes a crash before the store
//! works again: until a node's next registration its packets go where it was before, and a request that was not
//! written down may be replayed - with timestamps for the replay window, some seconds, with nonces until that
//! registration. Against a running agent nothing can be replayed: it remembers. So it goes on, says so, and tries
//! again until all is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::v6::HomeRegistrationRecord;
use careof_mobility::{v4, v6};

use super::{BindingStore, Error, StoreError, StoreStatus};

/// Time between two attempts to write down what could not be. A change that is new is not kept waiting.
const RETRY: Duration = Duration::from_secs(5);

/// The store does not take what it is given.
#[derive(Debug)]
struct Failure {
    since: Instant,
    retry: Instant,
    error: StoreError,
}

/// What a home agent has to remember of one mobile node.
pub(super) trait Record {
    /// Of the version of IP.
    type Address: Copy + Ord + fmt::Debug;

    /// Which mobile node.
    fn home_address(&self) -> Self::Address;

    /// Whether two records differ in nothing but the reading of the clock. A renewal has another Identification or sequence number.
    fn says_the_same(&self, other: &Self) -> bool;
}

impl Record for v4::MobileNodeRecord {
    type Address = Ipv4Addr;

    fn home_address(&self) -> Ipv4Addr {
        self.home_address
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let as_of = |one, other: &v4::BindingRecord| v4::BindingRecord { expires: other.expires, ..one };
        let same_bindings = are_same(&self.bindings, &other.bindings, as_of);
        same_bindings && self.replay == other.replay
    }
}

impl Record for v6::MobileNodeRecord {
    type Address = Ipv6Addr;

    fn home_address(&self) -> Ipv6Addr {
        self.home_address
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let as_of =
            |one, other: &HomeRegistrationRecord| HomeRegistrationRecord { expires: other.expires, ..one };
        let same_bindings = are_same(&self.bindings, &other.bindings, as_of);
        same_bindings && (self.sequence, self.latest) == (other.sequence, other.latest)
    }
}

/// Whether bindings agree; `as_of` gives one the reading of the clock that the other has.
fn are_same<B: Copy + PartialEq>(ours: &[B], others: &[B], as_of: impl Fn(B, &B) -> B) -> bool {
    ours.len() == others.len() && ours.iter().zip(others).all(|(one, other)| as_of(*one, other) == *other)
}

/// What has to be written down, and what was.
pub(super) struct Persistence<R: Record = v4::MobileNodeRecord> {
    store: Option<Box<dyn BindingStore<R> + Send>>,
    /// Mobile nodes about which something may have changed.
    changed: BTreeSet<R::Address>,
    /// What was written down last, so that the same is not written again.
    written: BTreeMap<R::Address, R>,
    /// Something changed since the latest attempt.
    has_news: bool,
    failure: Option<Failure>,
    pub(super) saved: u64,
    pub(super) failed: u64,
    /// Bindings that the agent had from the store when it began.
    pub(super) restored: u64,
}

impl<R: Record> fmt::Debug for Persistence<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistence").field("changed", &self.changed).field("saved", &self.saved).finish()
    }
}

impl<R: Record> Persistence<R> {
    pub(super) const fn new(store: Option<Box<dyn BindingStore<R> + Send>>) -> Self {
        Self {
            store,
            changed: BTreeSet::new(),
            written: BTreeMap::new(),
            has_news: false,
            failure: None,
            saved: 0,
            failed: 0,
            restored: 0,
        }
    }

    /// What was written down.
    pub(super) fn load(&mut self) -> Result<Vec<R>, Error> {
        Ok(self.store.as_mut().map_or_else(|| Ok(Vec::new()), |store| store.load())?)
    }

    /// `record` was written down in a former life, and the agent has taken from it what still counts: so many bindings, and its record
    /// is `present` now. Only a difference is written again.
    pub(super) fn take_over(&mut self, record: R, bindings: usize, present: Option<R>) {
        self.restored += bindings as u64;
        if present.is_some_and(|present| !record.says_the_same(&present)) {
            self.note(record.home_address());
        }
        self.written.insert(record.home_address(), record);
    }

    /// Something about this mobile node may have changed.
    pub(super) fn note(&mut self, home_address: R::Address) {
        if self.store.is_some() {
            self.changed.insert(home_address);
            self.has_news = true;
        }
    }

    /// When [`Persistence::save`] wants to try again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.failure.as_ref().map(|failure| failure.retry)
    }

    /// How the store does; `None` when there is none.
    pub(super) fn status(&self, now: Instant) -> Option<StoreStatus> {
        self.store.as_ref()?;
        let failing = self.failure.as_ref();
        Some(StoreStatus {
            unsaved: self.changed.len(),
            failing_s: failing.map(|failure| now.saturating_duration_since(failure.since).as_secs_f64()),
            problem: failing.map(|failure| failure.error.to_string()),
        })
    }

    /// Why the store does not take what it is given, while it does not.
    pub(super) fn problem(&self) -> Option<&StoreError> {
        self.failure.as_ref().map(|failure| &failure.error)
    }

    /// Writes down what has changed; `present` is what the agent has to remember of a mobile node now.
    pub(super) fn save(&mut self, now: Instant, present: impl Fn(R::Address) -> Option<R>) {
        let Some(store) = &mut self.store else { return };
        // Not with each packet: a store that fails is slow about it.
        let is_due = self.failure.as_ref().is_some_and(|failure| failure.retry <= now);
        if !self.has_news && !is_due {
            return;
        }
        self.has_news = false;
        let records: Vec<R> = std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(present)
            .filter(|record| {
                self.written.get(&record.home_address()).is_none_or(|written| !written.says_the_same(record))
            })
            .collect();
        if records.is_empty() {
            self.failure = None;
            return;
        }
        match store.save_all(&records) {
            Ok(()) => {
                self.failure = None;
                self.saved += records.len() as u64;
                self.written.extend(records.into_iter().map(|record| (record.home_address(), record)));
            }
            Err(error) => {
                self.changed.extend(records.iter().map(R::home_address));
                self.failed += 1;
                let since = self.failure.as_ref().map_or(now, |failure| failure.since);
                self.failure = Some(Failure { since, retry: now + RETRY, error });
            }
        }
    }
}
