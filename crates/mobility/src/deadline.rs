//! The next thing that is due.

use careof_base::Instant;

/// The earlier of two deadlines; of equal ones the first.
pub(crate) fn earliest<W>(first: Option<(Instant, W)>, second: Option<(Instant, W)>) -> Option<(Instant, W)> {
    match (first, second) {
        (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}
