//! The one clock of a run.

use careof_base::{Duration, Instant};
use nix::time::{ClockId, clock_gettime};

/// The kernel's monotonic clock that goes on while the machine is suspended (`CLOCK_BOOTTIME`), counted from the
/// beginning of a run.
///
/// `CLOCK_MONOTONIC` stands still meanwhile, and lifetimes do not: a laptop that wakes up after hours would believe a
/// registration that its home agent has long forgotten. Without a suspension both run alike. Whatever waits for an
/// instant uses a timer of this same clock.
///
/// It is a value: every part of a run holds a copy of the same one, so that their instants compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// `CLOCK_BOOTTIME` at [`Instant::ZERO`], in nanoseconds.
    epoch: u64,
}

impl Clock {
    /// A clock at which it is [`Instant::ZERO`] now.
    #[must_use]
    pub fn start() -> Self {
        Self { epoch: boot_time() }
    }

    /// A clock at which it will be [`Instant::ZERO`] after `delay`; until then it stands at that.
    #[must_use]
    pub fn starting_in(delay: Duration) -> Self {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Self { epoch: boot_time().saturating_add(delay) }
    }

    /// How long until `instant`; zero when it has come.
    #[must_use]
    pub fn until(&self, instant: Instant) -> Duration {
        self.boot_time_at(instant).saturating_sub(Duration::from_nanos(boot_time()))
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(boot_time().saturating_sub(self.epoch))
    }

    /// `CLOCK_BOOTTIME` at `instant`, since the kernel's own zero.
    pub(crate) fn boot_time_at(&self, instant: Instant) -> Duration {
        Duration::from_nanos(self.epoch.saturating_add(instant.as_nanos()))
    }
}

/// `CLOCK_BOOTTIME` in nanoseconds. Every Linux has this clock; zero stands for the failure that cannot be.
fn boot_time() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(0, |time| u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_starts_at_zero_and_goes_on() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first < Instant::from_secs(1));
        assert!(clock.now() >= first);
    }

    #[test]
    fn a_clock_can_start_later() {
        let hour = Duration::from_secs(3600);
        let clock = Clock::starting_in(hour);
        assert_eq!(clock.now(), Instant::ZERO);
        assert!(clock.until(Instant::ZERO) > hour / 2);
        assert_eq!(Clock::start().until(Instant::ZERO), Duration::ZERO);
    }
}
