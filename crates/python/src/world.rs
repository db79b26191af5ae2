//! The worlds as one.

use std::io;
use std::str::FromStr;

use careof_base::{Duration, Instant};
use careof_linux::{LinuxRun, Live, OwnProgram, ProgramOutput};
use careof_metrics::Summary;
use careof_plan::Observation;
use careof_scenario::Scenario;
use careof_sim::Simulation;
use careof_trace::Columns;

/// Which world.
#[derive(Clone, Copy)]
pub(crate) enum WorldName {
    Simulated,
    Linux,
}

impl FromStr for WorldName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "sim" => Ok(Self::Simulated),
            "linux" => Ok(Self::Linux),
            _ => Err(()),
        }
    }
}

/// What a world cannot do, and what there is to do about it.
pub(crate) struct WorldError {
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
}

impl From<careof_sim::WorldError> for WorldError {
    fn from(error: careof_sim::WorldError) -> Self {
        Self { message: error.to_string(), remedy: None }
    }
}

impl From<careof_linux::WorldError> for WorldError {
    fn from(error: careof_linux::WorldError) -> Self {
        Self { message: error.to_string(), remedy: error.remedy().map(str::to_owned) }
    }
}

/// Gets this process ready for a world.
pub(crate) fn prepare(name: WorldName) -> Result<(), WorldError> {
    match name {
        WorldName::Simulated => Ok(()),
        WorldName::Linux => Ok(careof_linux::enter()?),
    }
}

/// Refuses what a world cannot do.
pub(crate) fn check(name: WorldName, scenario: Scenario, file: &str) -> Result<(), WorldError> {
    match name {
        WorldName::Simulated => Simulation::new(scenario, file, 0, Observation::default()).map(drop)?,
        WorldName::Linux => careof_linux::check(&scenario)?,
    }
    Ok(())
}

/// A run under way.
pub(crate) enum World {
    Simulated(Box<Simulation>),
    Linux(Box<LinuxRun>),
}

impl World {
    pub(crate) fn new(
        name: WorldName,
        scenario: Scenario,
        file: &str,
        run: u64,
        observation: Observation,
        own: Option<OwnProgram>,
    ) -> Result<Self, WorldError> {
        Ok(match name {
            WorldName::Simulated => {
                Self::Simulated(Box::new(Simulation::new(scenario, file, run, observation)?))
            }
            WorldName::Linux => {
                Self::Linux(Box::new(LinuxRun::with_own_program(scenario, file, run, observation, own)?))
            }
        })
    }

    pub(crate) fn duration(&self) -> Duration {
        match self {
            Self::Simulated(simulation) => simulation.duration(),
            Self::Linux(run) => run.duration(),
        }
    }

    pub(crate) fn advance(&mut self, until: Instant) -> Result<Instant, WorldError> {
        Ok(match self {
            Self::Simulated(simulation) => simulation.advance(until)?,
            Self::Linux(run) => run.advance(until)?,
        })
    }

    pub(crate) fn take_events(&mut self) -> Columns {
        match self {
            Self::Simulated(simulation) => simulation.take_events(),
            Self::Linux(run) => run.take_events(),
        }
    }

    pub(crate) fn take_remarks(&mut self) -> Vec<String> {
        match self {
            Self::Simulated(_) => Vec::new(),
            Self::Linux(run) => run.take_remarks(),
        }
    }

    pub(crate) fn take_outputs(&mut self) -> Vec<ProgramOutput> {
        match self {
            Self::Simulated(_) => Vec::new(),
            Self::Linux(run) => run.take_outputs(),
        }
    }

    pub(crate) fn live(&mut self) -> Option<Live> {
        match self {
            Self::Simulated(_) => None,
            Self::Linux(run) => run.live(),
        }
    }

    pub(crate) fn finish(&mut self) -> io::Result<Summary> {
        match self {
            Self::Simulated(simulation) => simulation.finish(),
            Self::Linux(run) => run.finish(),
        }
    }
}
