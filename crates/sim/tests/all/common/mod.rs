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

/// A handover with a gap of 400 ms between two like links, for one flow whose table the caller goes on with.
pub(crate) const BETWEEN_LIKE_LINKS: &str = r#"
duration = "20 s"
[links]
one = { rate = "8 Mbit/s", delay = "15 ms" }
two = { rate = "8 Mbit/s", delay = "15 ms" }
ethernet = { rate = "1 Gbit/s", delay = "10 ms" }
[mobility]
[[handover]]
at = "10 s"
from = "one"
to = "two"
style = "break-before-make"
interruption = "400 ms"
queued = "drop"
[[flow]]
name = "it"
from = "correspondent"
to = "mobile"
"#;

/// What becomes of `flow` at a handover between two like links.
pub(crate) fn between_like_links(flow: &str, overrides: &[&str]) -> Summary {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let text = format!("{BETWEEN_LIKE_LINKS}{flow}\n");
    let scenario = Scenario::parse("x.toml", &text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    finish(Simulation::new(scenario, "x.toml", 0, Observation::default()).unwrap()).0
}

/// Runs to the end: the summary and the events.
pub(crate) fn finish(mut simulation: Simulation) -> (Summary, Columns) {
    simulation.advance(Instant::MAX).unwrap();
    let events = simulation.take_events();
    (balanced(simulation.finish().unwrap()), events)
}
