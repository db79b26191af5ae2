//! What a carrier asks of its owner: places for bindings and for former kernel parameters, and the time of day.

use core::fmt;
use core::time::Duration;

use std::time::{SystemTime, UNIX_EPOCH};

use careof_base::Instant;
use careof_mobility::{NtpTime, WallClock, v4, v6};

/// Why something could not be written down or read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Where a home agent keeps what it must remember across a crash: of each mobile node an `R`, that of Mobile IPv4 or of Mobile IPv6.
pub trait BindingStore<R = v4::MobileNodeRecord> {
    /// Writes down what is to be known of one mobile node, in place of what was. It is durable when this returns:
    /// the reply leaves afterwards.
    ///
    /// # Errors
    /// Nothing has been written. The agent goes on without, since its mobile nodes need it now; it says so
    /// ([`Status::store`](crate::Status::store)) and tries again every few seconds.
    fn save(&mut self, record: &R) -> Result<(), StoreError>;

    /// Writes down several records; a store that can do so at the price of one overrides this.
    ///
    /// # Errors
    /// As [`BindingStore::save`]; some may have been written.
    fn save_all(&mut self, records: &[R]) -> Result<(), StoreError> {
        records.iter().try_for_each(|record| self.save(record))
    }

    /// Everything written down.
    ///
    /// # Errors
    /// The agent does not start: without its replay state it would accept what it has accepted before.
    fn load(&mut self) -> Result<Vec<R>, StoreError>;
}

/// A kernel parameter that a carrier has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterChange {
    /// Its path below `/proc/sys/net`, such as `ipv4/conf/eth0/rp_filter`.
    pub name: String,
    /// What it was before.
    pub before: String,
    /// What it was set to.
    pub set: String,
}

/// Where a carrier keeps what kernel parameters were before it set them, so that its successor can set them back
/// when it is killed.
///
/// It must outlive the process and must not outlive the network namespace, a restart of the host included: that sets
/// all parameters anew.
pub trait ParameterLog {
    /// Writes down a change that is about to be made. The latest of a name counts.
    ///
    /// # Errors
    /// Nothing has been written. The parameter is set all the same, and the failure is counted.
    fn note(&mut self, change: &ParameterChange) -> Result<(), StoreError>;

    /// What was written down, in that order. A carrier asks once, when it is opened.
    ///
    /// # Errors
    /// It cannot be read. The carrier begins as if there were nothing, and the failure is counted.
    fn load(&mut self) -> Result<Vec<ParameterChange>, StoreError>;

    /// Everything has been set back; nothing of it need be kept.
    ///
    /// # Errors
    /// It is still there.
    fn clear(&mut self) -> Result<(), StoreError>;
}

/// Reads the time of day: since the beginning of 1970 (UTC). It may jump.
pub type TimeOfDay = Box<dyn Fn() -> Duration + Send>;

/// What a carrier asks of its owner.
#[derive(Default)]
pub struct Hooks {
    /// Where a home agent of Mobile IPv4 keeps its bindings; `None`: it forgets them when it ends.
    pub store: Option<Box<dyn BindingStore + Send>>,
    /// The same of a home agent of Mobile IPv6.
    pub ipv6_store: Option<Box<dyn BindingStore<v6::MobileNodeRecord> + Send>>,
    /// Where it is kept what kernel parameters were before; `None`: those that a killed carrier has set stay set.
    pub parameters: Option<Box<dyn ParameterLog + Send>>,
    /// The time of day; `None`: the system's.
    pub time_of_day: Option<TimeOfDay>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("store", &self.store.is_some())
            .field("ipv6_store", &self.ipv6_store.is_some())
            .field("parameters", &self.parameters.is_some())
            .field("time_of_day", &self.time_of_day.is_some())
            .finish()
    }
}

/// A way to read the time of day.
pub(super) struct Reading(pub(super) TimeOfDay);

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading")
    }
}

/// The clock that shows the time of day read now, at `now`.
pub(super) fn wall_clock(reading: Option<&Reading>, now: Instant) -> WallClock {
    let time = match reading {
        Some(Reading(read)) => read(),
        None => system_time(),
    };
    WallClock::new(NtpTime::from_unix(time)).behind_by(now.since_start())
}

/// The time of day in nanoseconds: a number that is higher than all that were read before, also by a former life.
pub(super) fn nanoseconds(reading: Option<&Reading>) -> u64 {
    let time = match reading {
        Some(Reading(read)) => read(),
        None => system_time(),
    };
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The system's time of day; before 1970 it is 1970.
#[expect(clippy::disallowed_methods, reason = "this is where a world reads the clock")]
fn system_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
