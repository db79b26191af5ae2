//! Many runs: a scenario, keys to vary, and repetitions under one seed.
//!
//! A [`Grid`] is a scenario with an [`Axis`] for each key that varies. It has a cell for each combination of their
//! values and in each cell a run for each run number. Runs are numbered, and a run's number says all about it: the same
//! grid gives the same [`record`](Grid::record) for it on every machine, in whatever order and company it is carried
//! out. A [`Crew`] carries runs out on several threads.

mod axis;
mod columns;
mod crew;
mod grid;
mod panic;

pub use axis::{Axis, Kind};
pub use columns::{Column, columns, rows};
pub use crew::Crew;
pub use grid::{Grid, LARGEST_GRID};

/// What is wrong with a grid that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GridError {
    /// What was found, where, and what would be right.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl GridError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}
