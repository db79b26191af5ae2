//! What a mobile node's report of its path tells that was not known.

use careof_wire::mip4::{Identification, PathReport};

use crate::path_news;
use crate::replay::TIMESTAMP_PRECISION;
use crate::time_of_day::NtpTime;

/// What a report tells that came with the Identification `own`, to who has had the report `before` of the same care-of address.
pub(crate) fn news(
    report: Option<PathReport>,
    own: Identification,
    before: Option<(PathReport, Identification)>,
) -> Option<PathReport> {
    let report = report?;
    let is_repetition = || {
        // Only timestamps are chosen anew for a repetition, so these are two.
        before.is_some_and(|(_, first)| {
            let [own, first] = [own, first].map(|identification| NtpTime::from_bits(identification.0));
            !report.repeated_for.is_zero() && first.is_within(report.repeated_for + TIMESTAMP_PRECISION, own)
        })
    };
    Some(path_news::news(report, before.map(|(before, _)| before), is_repetition))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    /// Timestamps have low bits from chance, so those of two requests that are 300 ms apart differ by some more or less.
    #[test]
    fn a_repetition_is_known_whatever_the_random_bits_of_its_timestamp() {
        let told = |repeated_for| PathReport {
            downlink: None,
            uplink: None,
            round_trip: None,
            old_path_lost: Some(true),
            repeated_for,
        };
        let stamp = |ms: u64, chance: u64| Identification((((ms << 32) / 1_000) & !0xf_ffff) | chance);
        let first = (told(Duration::ZERO), stamp(5_000, 0));
        let later = told(Duration::from_millis(300));
        for chance in [0, 0x8_0000, 0xf_ffff] {
            let known = news(Some(later), stamp(5_300, chance), Some(first)).expect("a report");
            assert_eq!(known.old_path_lost, Some(false), "{chance:#x}");
        }
        let another = news(Some(later), stamp(5_302, 0), Some(first)).expect("a report");
        assert_eq!(another.old_path_lost, Some(true), "that request was begun after the first");
    }
}
