//! What tests of whole worlds have in common.

use careof_base::Instant;
use careof_metrics::{Summary, summary_json};
use careof_sim::Simulation;
use careof_trace::Columns;

/// Nothing appears or vanishes in any run of any test.
pub(crate) fn balanced(summary: Summary) -> Summary {
    for (what, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what} in {}", summary_json(&summary));
    }
    summary
}

/// Runs to the end: the summary and the events.
pub(crate) fn finish(mut simulation: Simulation) -> (Summary, Columns) {
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    (balanced(simulation.finish().unwrap()), events)
}
