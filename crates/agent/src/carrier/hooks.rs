//! What a carrier asks of its owner: a place for bindings, and the time of day.

use core::fmt;
use core::time::Duration;

use careof_mobility::v4::MobileNodeRecord;

/// Why bindings could not be written down or read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Where a home agent keeps what it must remember across a crash.
pub trait BindingStore {
    /// Writes down what is to be known of one mobile node, in place of what was. It is durable when this returns:
    /// the reply leaves afterwards.
    ///
    /// # Errors
    /// Nothing has been written. The agent goes on, and counts it.
    fn save(&mut self, record: &MobileNodeRecord) -> Result<(), StoreError>;

    /// Everything written down.
    ///
    /// # Errors
    /// The agent does not start: without its replay state it would accept what it has accepted before.
    fn load(&mut self) -> Result<Vec<MobileNodeRecord>, StoreError>;
}

/// Reads the time of day: since the beginning of 1970 (UTC). It may jump.
pub type TimeOfDay = Box<dyn Fn() -> Duration + Send>;

/// What a carrier asks of its owner.
#[derive(Default)]
pub struct Hooks {
    /// Where a home agent keeps its bindings; `None`: it forgets them when it ends.
    pub store: Option<Box<dyn BindingStore + Send>>,
    /// The time of day; `None`: the system's.
    pub time_of_day: Option<TimeOfDay>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("store", &self.store.is_some())
            .field("time_of_day", &self.time_of_day.is_some())
            .finish()
    }
}
