//! What tests of whole worlds have in common.

use careof_base::Instant;
use careof_linux::{LinuxRun, Observation, ProgramOutput, WorldError};
use careof_metrics::{FlowSummary, Summary, summary_json};
use careof_scenario::Scenario;
use careof_trace::Columns;

/// What a run left.
pub(crate) struct Ran {
    pub(crate) summary: Summary,
    pub(crate) events: Columns,
    pub(crate) outputs: Vec<ProgramOutput>,
    pub(crate) remarks: Vec<String>,
}

pub(crate) fn parsed(text: &str) -> Scenario {
    Scenario::parse("test.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn start(scenario: Scenario) -> Result<LinuxRun, WorldError> {
    LinuxRun::new(scenario, "test.toml", 0, Observation { trace: true, ..Observation::default() })
}

/// Runs a scenario to its end, and sees that its books balance; `None`, with the reason printed, where this machine does not
/// give what it takes.
pub(crate) fn run(text: &str) -> Option<Ran> {
    run_scenario(parsed(text))
}

/// As [`run`].
pub(crate) fn run_scenario(scenario: Scenario) -> Option<Ran> {
    let mut world = match start(scenario) {
        Ok(world) => world,
        Err(WorldError::Lab(error)) if error.remedy().is_some() => {
            careof_testbed::skip_for(&error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let remarks = world.take_remarks();
    let end = Instant::ZERO + world.duration();
    assert_eq!(world.advance(Instant::MAX).unwrap_or_else(|error| panic!("{error}")), end);
    let summary = world.finish().unwrap();
    for (what, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what} in {}", summary_json(&summary));
    }
    Some(Ran { summary, events: world.take_events(), outputs: world.take_outputs(), remarks })
}

pub(crate) fn flow<'a>(summary: &'a Summary, name: &str) -> &'a FlowSummary {
    summary.flows.iter().find(|flow| flow.name == name).unwrap()
}
