//! The smoothed round-trip time (RFC 6298 section 2).

use core::time::Duration;

/// The smoothed round trip and its mean deviation, with one more sample.
pub(crate) fn smoothed(before: Option<(Duration, Duration)>, sample: Duration) -> (Duration, Duration) {
    match before {
        None => (sample, sample / 2),
        // The queue is gone that it was behind: what was learnt there would take long to be forgotten.
        Some((smoothed, variation)) if sample < smoothed / 2 => ((smoothed + sample) / 2, variation / 2),
        Some((smoothed, variation)) => {
            (smoothed - smoothed / 8 + sample / 8, variation - variation / 4 + smoothed.abs_diff(sample) / 4)
        }
    }
}
