//! Whether a flow wants more than the path gives that it is pinned to.

use core::time::Duration;

use careof_base::Instant;

use crate::multipath::scheduler;

/// Bytes that a flow has to send against its path to count as one that wants more: those that any flow begins with.
const ENOUGH: u64 = scheduler::INITIAL_WINDOW as u64;
/// A pause after which a flow begins anew.
pub(super) const RESTED: Duration = Duration::from_secs(1);

/// What keeps a flow from more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Its path is full, and another one was not of late.
    Full,
    /// Its path loses packets by itself, and there is none by which copies would take their place in time.
    Lossy,
}

/// Bytes that a flow has sent against one thing, of late.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::multipath) struct Pressure {
    bytes: u64,
    at: Instant,
}

impl Pressure {
    /// Whether that is enough.
    pub(super) const fn is_enough(self) -> bool {
        self.bytes >= ENOUGH
    }

    /// Forgets what was before a pause; whether it has.
    pub(super) fn rest(&mut self, now: Instant) -> bool {
        let rested = now >= self.at + RESTED;
        if rested {
            self.bytes = 0;
        }
        rested
    }

    /// So many bytes more.
    pub(super) const fn add(&mut self, now: Instant, len: u32) {
        self.bytes = self.bytes.saturating_add(len as u64);
        self.at = now;
    }
}
