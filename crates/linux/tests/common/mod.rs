//! What tests of whole worlds have in common.

use careof_base::Instant;
use careof_linux::{LinuxRun, Observation, WorldError};
use careof_metrics::{FlowSummary, Summary, summary_json};
use careof_scenario::Scenario;
use careof_trace::Columns;

pub(crate) fn parsed(text: &str) -> Scenario {
    Scenario::parse("test.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs a scenario to its end, and sees that its books balance; `None`, with the reason printed, where this machine does not
/// give what it takes.
pub(crate) fn run(text: &str) -> Option<(Summary, Columns)> {
    let observation = Observation { trace: true, ..Observation::default() };
    let mut world = match LinuxRun::new(parsed(text), "test.toml", 0, observation) {
        Ok(world) => world,
        Err(WorldError::Lab(error)) if error.remedy().is_some() => {
            careof_testbed::skip_for(&error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    world.advance(Instant::MAX).unwrap_or_else(|error| panic!("{error}"));
    let summary = world.finish().unwrap();
    for (what, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what} in {}", summary_json(&summary));
    }
    Some((summary, world.take_events()))
}

pub(crate) fn flow<'a>(summary: &'a Summary, name: &str) -> &'a FlowSummary {
    summary.flows.iter().find(|flow| flow.name == name).unwrap()
}
