//! Times as they travel: microseconds, modulo 2^32.

use core::time::Duration;

use careof_base::Instant;

/// `now` as packets and messages tell it; wraps after 71 minutes.
#[must_use]
pub fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// `a < b` modulo 2^32: of times and of sequence numbers.
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// A span of microseconds; none where it is longer than half of all that can be told, for then it is none.
pub(super) fn span(micros: u32) -> Option<Duration> {
    (micros < u32::MAX / 2).then(|| Duration::from_micros(u64::from(micros)))
}

/// A span as it travels, at most what can be told.
pub(super) fn micros_of(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
