//! What tests of whole worlds have in common.

use std::path::Path;

use careof_base::Instant;
use careof_metrics::{Summary, summary_json};
use careof_plan::{CaptureNodes, CaptureRequest, plan_captures};
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

/// Nothing appears or vanishes in any run of any test.
pub(crate) fn balanced(summary: Summary) -> Summary {
    for (what, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what} in {}", summary_json(&summary));
    }
    summary
}

/// Captures of `nodes` as `NODE.pcapng` in `directory`, and no trace.
pub(crate) fn captured_at(directory: &Path, scenario: &Scenario, nodes: &CaptureNodes) -> Observation {
    let capture = CaptureRequest {
        directory: directory.to_owned(),
        nodes: plan_captures(scenario, nodes).unwrap().nodes,
        snap_length: None,
        limit_bytes: u64::MAX,
    };
    Observation { capture: Some(capture), ..Observation::default() }
}

/// Runs to the end: the summary and the events.
pub(crate) fn finish(mut simulation: Simulation) -> (Summary, Columns) {
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    (balanced(simulation.finish().unwrap()), events)
}
