//! Many runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use careof_scenario::Scenario;
use careof_sweep::{Crew, Grid, GridError, columns};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::{world, world_name};

create_exception!(
    _careof,
    NativeGridError,
    PyException,
    "What was asked for is no grid of runs. Its arguments: what is wrong, and what to do or None."
);

fn grid_error(error: GridError) -> PyErr {
    NativeGridError::new_err((error.message, error.hint))
}

/// The rows of a sweep's table from the summary of a run, both as JSON.
#[pyfunction]
pub(crate) fn sweep_rows(summary: &str) -> PyResult<String> {
    let summary = serde_json::from_str(summary).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(serde_json::Value::Array(careof_sweep::rows(&summary)).to_string())
}

/// A scenario, the keys that vary, and repetitions.
#[pyclass(name = "Grid", frozen)]
pub(crate) struct PyGrid {
    grid: Arc<Grid>,
}

#[pymethods]
impl PyGrid {
    #[new]
    #[pyo3(signature = (path, text, overrides, seed, varied, repeat))]
    fn new(
        path: &str,
        text: &str,
        overrides: Vec<String>,
        seed: Option<u64>,
        varied: Vec<String>,
        repeat: u64,
    ) -> PyResult<Self> {
        let grid = Grid::new(path, text, &overrides, seed, &varied, repeat).map_err(grid_error)?;
        Ok(Self { grid: Arc::new(grid) })
    }

    /// What the grid is, as JSON, once a cell of it was found that can be run in a world.
    fn plan(&self, py: Python<'_>, world: &str) -> PyResult<String> {
        let world = world_name(world)?;
        let fits = |scenario: &Scenario, file: &str| {
            world::check(world, scenario.clone(), file).map_err(|error| error.message)
        };
        let scenario = py.detach(|| self.grid.check_by(&fits)).map_err(grid_error)?;
        let axes: Vec<_> = self
            .grid
            .axes()
            .iter()
            .map(|axis| {
                serde_json::json!({
                    "key": axis.key, "type": axis.kind.arrow_name(), "values": axis.shown(),
                    "settings": axis.settings().collect::<Vec<_>>(),
                })
            })
            .collect();
        let columns: Vec<_> = columns()
            .iter()
            .map(|one| serde_json::json!({ "name": one.name, "type": one.arrow, "meaning": one.meaning }))
            .collect();
        let traces: BTreeSet<&str> = scenario
            .links
            .iter()
            .flat_map(|link| &link.traces)
            .flatten()
            .map(|file| file.sha256.as_str())
            .collect();
        let plan = serde_json::json!({
            "axes": axes, "columns": columns, "runs": self.grid.runs(), "seed": scenario.seed,
            "title": scenario.title, "traces_sha256": traces,
        });
        serde_json::to_string(&plan).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The numbers of its runs but those in `done`, in the order in which they are best carried out.
    fn missing(&self, done: Vec<u64>) -> PyNumbers {
        PyNumbers { numbers: Mutex::new(Box::new(missing(&self.grid, done))) }
    }
}

/// The numbers of runs but those in `done`, one after the other: a grid may have a hundred million.
fn missing(grid: &Grid, mut done: Vec<u64>) -> impl Iterator<Item = u64> + Send + use<> {
    done.sort_unstable();
    grid.numbers().filter(move |number| done.binary_search(number).is_err())
}

/// Numbers of runs, an iterator.
#[pyclass(name = "Numbers", frozen)]
pub(crate) struct PyNumbers {
    numbers: Mutex<Box<dyn Iterator<Item = u64> + Send>>,
}

#[pymethods]
impl PyNumbers {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self) -> Option<u64> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// Threads that carry out runs of a grid.
#[pyclass(name = "Crew", frozen)]
pub(crate) struct PyCrew {
    crew: Mutex<Crew>,
}

impl PyCrew {
    fn lock(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyCrew {
    /// Begins with the runs `only`, or with all runs but those in `done`.
    #[new]
    #[pyo3(signature = (grid, jobs, done, only))]
    fn new(
        py: Python<'_>,
        grid: &PyGrid,
        jobs: Option<usize>,
        done: Vec<u64>,
        only: Option<Vec<u64>>,
    ) -> Self {
        let grid = &grid.grid;
        let crew = py.detach(|| match only {
            Some(numbers) => Crew::start(grid, numbers.into_iter(), jobs),
            None => Crew::start(grid, missing(grid, done), jobs),
        });
        Self { crew: Mutex::new(crew) }
    }

    /// The records of runs that ended since the last call, a line of JSON each; waits for more, but not for ever.
    fn take(&self, py: Python<'_>, patience_s: f64) -> Vec<String> {
        let patience = Duration::try_from_secs_f64(patience_s).unwrap_or_default();
        py.detach(|| self.lock().take(patience))
    }

    /// Whether all is done and taken.
    fn is_done(&self) -> bool {
        self.lock().is_done()
    }

    /// Abandons the runs under way and begins no other.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.lock().stop());
    }
}
