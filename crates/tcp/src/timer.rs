//! A timer is a deadline: arming it is a field write.

use core::time::Duration;

use careof_base::Instant;

/// One timer. It never calls anybody: its owner asks whether it is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    deadline: Instant,
}

impl Default for Timer {
    fn default() -> Self {
        Self { deadline: Instant::MAX }
    }
}

impl Timer {
    pub(crate) fn arm(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(crate) fn stop(&mut self) {
        self.deadline = Instant::MAX;
    }

    pub(crate) fn is_armed(self) -> bool {
        self.deadline != Instant::MAX
    }

    pub(crate) fn is_due(self, now: Instant) -> bool {
        self.is_armed() && self.deadline <= now
    }

    /// The deadline; [`Instant::MAX`] when the timer is off.
    pub(crate) fn deadline(self) -> Instant {
        self.deadline
    }
}

/// A clock that only moves in steps: the kernel timers of old systems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    nanos: u64,
}

impl Ticks {
    /// Linux 2.0's jiffies.
    pub(crate) const JIFFIES: Self = Self { nanos: 10_000_000 };
    /// Linux's at HZ = 1000.
    pub(crate) const MILLISECONDS: Self = Self { nanos: 1_000_000 };
    /// BSD's slow timeout.
    pub(crate) const SLOW_TIMEOUT: Self = Self { nanos: 500_000_000 };

    /// The step under way at `at`. Steps are counted from the beginning of the run.
    pub(crate) fn at(self, at: Instant) -> u64 {
        at.as_nanos() / self.nanos
    }

    /// The instant at which step `tick` begins.
    pub(crate) fn start_of(self, tick: u64) -> Instant {
        Instant::from_nanos(tick.saturating_mul(self.nanos))
    }

    pub(crate) fn span_of(self, ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(self.nanos))
    }

    /// Steps in `span`, rounded up.
    pub(crate) fn count_in(self, span: Duration) -> u64 {
        nanos(span).div_ceil(self.nanos)
    }
}

/// `span` in nanoseconds, saturating at 584 years.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
