//! Bindings are written down before the reply that grants them leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_mobility::v4::{HomeAgent, MobileNodeRecord};

use super::{BindingStore, Error, StoreError};

/// What has to be written down, and what was.
#[derive(Default)]
pub(super) struct Persistence {
    store: Option<Box<dyn BindingStore + Send>>,
    /// Mobile nodes about which something may have changed.
    changed: BTreeSet<Ipv4Addr>,
    /// What was written down last, so that the same is not written again.
    written: BTreeMap<Ipv4Addr, MobileNodeRecord>,
    pub(super) saved: u64,
    pub(super) failed: u64,
    pub(super) last_failure: Option<StoreError>,
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

    /// Gives a home agent back what was written down.
    pub(super) fn restore(&mut self, now: Instant, agent: &mut HomeAgent) -> Result<(), Error> {
        let Some(store) = &mut self.store else { return Ok(()) };
        for record in store.load()? {
            agent.restore(now, &record);
            self.changed.insert(record.home_address);
        }
        Ok(())
    }

    /// Something about this mobile node may have changed.
    pub(super) fn note(&mut self, home_address: Ipv4Addr) {
        if self.store.is_some() {
            self.changed.insert(home_address);
        }
    }

    /// Writes down what has changed. An agent whose store fails goes on: its mobile nodes need it now, and the
    /// record may never be.
    pub(super) fn save(&mut self, now: Instant, agent: &HomeAgent) {
        let Some(store) = &mut self.store else { return };
        let records: Vec<MobileNodeRecord> = std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|home_address| agent.record(now, home_address))
            .filter(|record| {
                self.written.get(&record.home_address).is_none_or(|written| !says_the_same(written, record))
            })
            .collect();
        if records.is_empty() {
            return;
        }
        match store.save_all(&records) {
            Ok(()) => {
                self.saved += records.len() as u64;
                self.written.extend(records.into_iter().map(|record| (record.home_address, record)));
            }
            Err(error) => {
                // To be tried again with the next change.
                self.changed.extend(records.iter().map(|record| record.home_address));
                self.failed += 1;
                self.last_failure = Some(error);
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
