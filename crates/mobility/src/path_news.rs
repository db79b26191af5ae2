//! What a mobile node's report of its path tells that was not known.

use careof_wire::PathReport;

use crate::PathProperties;

impl From<PathReport> for PathProperties {
    /// What a mobile node said of a path, without what it said of the one before.
    fn from(report: PathReport) -> Self {
        let PathReport { downlink, uplink, round_trip, old_path_lost: _, repeated_for: _ } = report;
        Self { downlink, uplink, round_trip }
    }
}

/// What `report` tells to who has had the report `before` of the same care-of address. The loss of the old path is no news when
/// it was told by a message that this one repeats, as `is_repetition` says: what was lost then has been sent again.
pub(crate) fn news(
    report: PathReport,
    before: Option<PathReport>,
    is_repetition: impl FnOnce() -> bool,
) -> PathReport {
    let was_told = before.is_some_and(|before| before.old_path_lost == Some(true));
    if was_told && report.old_path_lost == Some(true) && is_repetition() {
        return PathReport { old_path_lost: Some(false), ..report };
    }
    report
}
