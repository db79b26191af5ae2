//! Times leave as seconds.
//!
//! A number of nanoseconds below 2^53 (104 days) divided by 10^9 is the double nearest to the decimal fraction, so
//! the shortest text that reads back as it has at most nine decimals and is the same on every machine.

use careof_base::{Duration, Instant};
use serde::Serializer;

fn seconds(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e9
}

pub(crate) fn span<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(seconds(*span))
}

pub(crate) fn optional_span<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => serializer.serialize_f64(seconds(*span)),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn instant<S: Serializer>(instant: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    span(&instant.since_start(), serializer)
}

pub(crate) fn optional_instant<S: Serializer>(
    instant: &Option<Instant>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    optional_span(&instant.map(Instant::since_start), serializer)
}
