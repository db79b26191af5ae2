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
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::v4::{HomeAgent, MobileNodeRecord};

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

/// What has to be written down, and what was.
#[derive(Default)]
pub(super) struct Persistence {
    store: Option<Box<dyn BindingStore + Send>>,
    /// Mobile nodes about which something may have changed.
    changed: BTreeSet<Ipv4Addr>,
    /// What was written down last, so that the same is not written again.
    written: BTreeMap<Ipv4Addr, MobileNodeRecord>,
    /// Something changed since the latest attempt.
    has_news: bool,
    failure: Option<Failure>,
    pub(super) saved: u64,
    pub(super) failed: u64,
    /// Bindings that the agent had from the store when it began.
    pub(super) restored: u64,
}

impl std::fmt::Debug for Persistence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Persistence").field("changed", &self.changed).field("saved", &self.saved).finish()
    }
}

impl Persistence {
    pub(super) fn new(store: Option<Box<dyn BindingStore + Send>>) -> Self {
        Self { store, ..Self::default() }
    }

    /// What was written down.
    pub(super) fn load(&mut self) -> Result<Vec<MobileNodeRecord>, Error> {
        Ok(self.store.as_mut().map_or_else(|| Ok(Vec::new()), |store| store.load())?)
    }

    /// `record` was written down in a former life, and the agent has taken from it what still counts: only a difference is written
    /// again.
    pub(super) fn take_over(&mut self, now: Instant, agent: &HomeAgent, record: MobileNodeRecord) {
        self.restored += agent.bindings_of(record.home_address).len() as u64;
        let present = agent.record(now, record.home_address);
        if present.is_some_and(|present| !says_the_same(&record, &present)) {
            self.note(record.home_address);
        }
        self.written.insert(record.home_address, record);
    }

    /// Something about this mobile node may have changed.
    pub(super) fn note(&mut self, home_address: Ipv4Addr) {
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

    /// Writes down what has changed.
    pub(super) fn save(&mut self, now: Instant, agent: &HomeAgent) {
        let Some(store) = &mut self.store else { return };
        // Not with each packet: a store that fails is slow about it.
        let is_due = self.failure.as_ref().is_some_and(|failure| failure.retry <= now);
        if !self.has_news && !is_due {
            return;
        }
        self.has_news = false;
        let records: Vec<MobileNodeRecord> = std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|home_address| agent.record(now, home_address))
            .filter(|record| {
                self.written.get(&record.home_address).is_none_or(|written| !says_the_same(written, record))
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
                self.written.extend(records.into_iter().map(|record| (record.home_address, record)));
            }
            Err(error) => {
                self.changed.extend(records.iter().map(|record| record.home_address));
                self.failed += 1;
                let since = self.failure.as_ref().map_or(now, |failure| failure.since);
                self.failure = Some(Failure { since, retry: now + RETRY, error });
            }
        }
    }
}

/// Whether two records differ in nothing but the reading of the clock. A renewal has another Identification.
fn says_the_same(one: &MobileNodeRecord, other: &MobileNodeRecord) -> bool {
    let same_bindings = one.bindings.len() == other.bindings.len()
        && one.bindings.iter().zip(&other.bindings).all(|(one, other)| {
            let mut one = *one;
            one.expires = other.expires;
            one == *other
        });
    same_bindings && one.replay == other.replay
}
