//! What tests of whole worlds have in common.

use std::time::Duration;

use careof_base::Instant;
use careof_linux::{LinuxRun, Observation, ProgramOutput, WorldError};
use careof_metrics::{FlowSummary, Resumption, Summary, summary_json};
use careof_scenario::Scenario;
use careof_trace::Columns;

/// What a run left.
pub(crate) struct Ran {
    pub(crate) summary: Summary,
    pub(crate) events: Columns,
    pub(crate) outputs: Vec<ProgramOutput>,
    pub(crate) remarks: Vec<String>,
}

impl Ran {
    /// Whether there were so many handovers, and every flow went on after each.
    pub(crate) fn resumes_after(&self, handovers: usize) -> bool {
        let Summary { handovers: found, .. } = &self.summary;
        let mut flows = found.iter().flat_map(|handover| &handover.flows);
        found.len() == handovers && flows.all(|flow| flow.stall == Resumption::Resumed)
    }
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
    run_observed(scenario, Observation { trace: true, ..Observation::default() })
}

/// As [`run`], with what is wanted of it.
pub(crate) fn run_observed(scenario: Scenario, observation: Observation) -> Option<Ran> {
    let mut world = match LinuxRun::new(scenario, "test.toml", 0, observation) {
        Ok(world) => world,
        Err(WorldError::Lab(error) | WorldError::Missing { error, .. }) if error.remedy().is_some() => {
            careof_testbed::skip_for(&error);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let remarks = world.take_remarks();
    let end = Instant::ZERO + world.duration();
    assert_eq!(world.advance(Instant::MAX).unwrap_or_else(|error| panic!("{error}")), end);
    let summary = world.finish().unwrap();
    let late = summary.lateness.unwrap_or_default();
    if late > FAR_TOO_LATE
        && summary.conservation.get("sightings that were missed").is_some_and(|missed| *missed > 0)
    {
        careof_testbed::pass_over_for_lateness(late);
        return None;
    }
    for (what, difference) in &summary.conservation {
        assert_eq!(*difference, 0, "{what} in {}", summary_json(&summary));
    }
    Some(Ran { summary, events: world.take_events(), outputs: world.take_outputs(), remarks })
}

/// As late a machine leaves the run no room for what it sees: that is counted, and the books of packets cannot balance.
const FAR_TOO_LATE: Duration = Duration::from_secs(1);

/// How much slower an experiment is repeated.
const PACES: [u64; 3] = [1, 4, 16];

/// So late, for each time as slow, the instants of an experiment are not those of its scenario any longer: as long as its round trips.
const TOO_LATE: Duration = Duration::from_millis(40);

/// Runs an experiment in which things must happen in time of each other, at ever slower paces until they do: a busy machine makes
/// everything late, by about as much at any pace. `text` is the scenario with all its times, sizes and timers so many times as
/// long; `is_as_planned` says what a machine that is in time makes of it. `None` also where the machine was too busy for the slowest, which
/// is printed.
pub(crate) fn paced(text: impl Fn(u64) -> String, is_as_planned: impl Fn(&Ran) -> bool) -> Option<Ran> {
    let mut ran = None;
    for pace in PACES {
        let this = run(&text(pace))?;
        if is_as_planned(&this) {
            return Some(this);
        }
        eprintln!("not as planned {pace} times as slow");
        ran = Some(this);
    }
    let ran = ran?;
    let late = ran.summary.lateness.unwrap_or_default();
    if late > TOO_LATE * PACES[PACES.len() - 1] as u32 {
        careof_testbed::pass_over_for_lateness(late);
        return None;
    }
    panic!("at no pace as planned: {}", summary_json(&ran.summary));
}

/// A scenario with these keys, which have these values and units in it, so many times as large. The largest value of a key comes first.
pub(crate) fn slower(scenario: &str, pace: u64, keys: &[(&str, u64, &str)]) -> String {
    keys.iter().fold(scenario.to_owned(), |text, (key, value, unit)| {
        let before = format!("{key} = \"{value} {unit}\"");
        assert!(text.contains(&before), "{before} is not in {text}");
        text.replace(&before, &format!("{key} = \"{} {unit}\"", value * pace))
    })
}

/// A scenario whose flows have a certain work to do and no handover to do it at: they get so much time as they need.
pub(crate) fn completed(scenario: impl Fn(u64) -> Scenario) -> Option<Ran> {
    completed_when(|pace| run_scenario(scenario(pace)))
}

/// As [`completed`], run by `run`.
pub(crate) fn completed_when(run: impl Fn(u64) -> Option<Ran>) -> Option<Ran> {
    for pace in PACES {
        let ran = run(pace)?;
        if ran.summary.flows.iter().all(|flow| flow.complete) || pace == PACES[PACES.len() - 1] {
            return Some(ran);
        }
        eprintln!("not complete {pace} times as slow");
    }
    None
}

pub(crate) fn flow<'a>(summary: &'a Summary, name: &str) -> &'a FlowSummary {
    summary.flows.iter().find(|flow| flow.name == name).unwrap()
}

/// How often an assist on `node` said that it did this.
pub(crate) fn did(events: &Columns, node: &str, what: &str) -> usize {
    let [kinds, causes, nodes] = ["kind", "cause", "node"].map(|name| events.by_name(name).unwrap());
    (0..events.rows())
        .filter(|row| kinds.text(*row) == Some("assist") && causes.text(*row) == Some(what))
        .filter(|row| nodes.text(*row) == Some(node))
        .count()
}
