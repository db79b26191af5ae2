//! What a mobile node's report of its path tells that was not known.

use careof_wire::mip4::{Identification, PathReport};

use crate::PathProperties;
use crate::replay::TIMESTAMP_PRECISION;
use crate::time_of_day::NtpTime;

impl From<PathReport> for PathProperties {
    /// What a mobile node said of a path, without what it said of the one before.
    fn from(report: PathReport) -> Self {
        let PathReport { downlink, uplink, round_trip, old_path_lost: _, repeated_for: _ } = report;
        Self { downlink, uplink, round_trip }
    }
}

/// What a report tells that came with the Identification `own`, to who has had the report `before` of the same care-of address. The
/// loss of the old path is no news when it was told by a request that this one repeats: what was lost then has been sent again.
pub(crate) fn news(
    report: Option<PathReport>,
    own: Identification,
    before: Option<(PathReport, Identification)>,
) -> Option<PathReport> {
    let mut report = report?;
    if let Some((before, identification)) = before
        && before.old_path_lost == Some(true)
        && report.old_path_lost == Some(true)
        && !report.repeated_for.is_zero()
    {
        // Only timestamps are chosen anew for a repetition, so these are two.
        let [own, first] = [own, identification].map(|identification| NtpTime::from_bits(identification.0));
        if first.is_within(report.repeated_for + TIMESTAMP_PRECISION, own) {
            report.old_path_lost = Some(false);
        }
    }
    Some(report)
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
