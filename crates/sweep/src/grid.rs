//! All runs of a sweep, and any one of them carried out.

use careof_base::Instant;
use careof_metrics::Summary;
use careof_plan::Observation;
use careof_scenario::{Scenario, ScenarioError, ScenarioErrors};
use careof_sim::Simulation;
use serde_json::{Value, json};

use crate::axis::Axis;
use crate::columns::rows;
use crate::{GridError, columns, panic};

/// The most runs of a grid. It is a bound against slips: so many would take months.
pub const LARGEST_GRID: u64 = 100_000_000;

/// So many cells are looked at for one that can be simulated. Where none can, mostly a key or value is wrong in all.
const MOST_TRIED: u64 = 1000;

/// A run is simulated in so many pieces at least, so that it can be abandoned.
const PIECES: u64 = 256;

/// A scenario, the keys that vary, and how often each combination is repeated.
///
/// Its cells are numbered with the last axis the fastest. Run number `r` of cell `c` is the run of number
/// `c * repeat + r`: the order of the rows of a table.
#[derive(Clone, Debug)]
pub struct Grid {
    file: String,
    text: String,
    overrides: Vec<String>,
    seed: Option<u64>,
    axes: Vec<Axis>,
    repeat: u64,
    runs: u64,
}

impl Grid {
    /// The grid over the scenario `text`, which messages call `file`, with `overrides` laid over it, then a value of
    /// each of `varied` (`key=a,b,c`), then `seed` if given.
    ///
    /// # Errors
    /// An axis is none, a key stands there twice, or there are too many runs.
    pub fn new(
        file: &str,
        text: &str,
        overrides: &[String],
        seed: Option<u64>,
        varied: &[String],
        repeat: u64,
    ) -> Result<Self, GridError> {
        let mut axes: Vec<Axis> = Vec::with_capacity(varied.len());
        for text in varied {
            let axis = Axis::parse(text)?;
            let wrong = |what: &str, hint: &str| Err(GridError::new(format!("--vary {text}: {what}"), hint));
            if axes.iter().any(|other| other.key == axis.key) {
                return wrong("the key varies already", "give all its values in one --vary");
            }
            if overrides
                .iter()
                .any(|other| other.split_once('=').is_some_and(|(key, _)| key.trim() == axis.key))
            {
                return wrong("the key is set by --set as well", "leave one of them out");
            }
            if axis.key == "seed" {
                return wrong(
                    "repetitions have other random numbers under the same seed",
                    "use --repeat N; --seed N gives the seed of them all",
                );
            }
            if ["run", "seed", "error"].contains(&axis.key.as_str())
                || columns().iter().any(|column| column.name == axis.key)
            {
                return wrong("the table has a column of that name", "vary a key of the scenario");
            }
            axes.push(axis);
        }
        if repeat == 0 {
            return Err(GridError::new("--repeat 0: there is nothing to run", "use 1 or more"));
        }
        let cells = axes.iter().try_fold(1_u64, |product, axis| product.checked_mul(axis.len() as u64));
        let runs = cells.and_then(|cells| cells.checked_mul(repeat)).filter(|&runs| runs <= LARGEST_GRID);
        let Some(runs) = runs else {
            let message = format!("the grid has more than {LARGEST_GRID} runs");
            return Err(GridError::new(message, "vary fewer keys, or repeat less"));
        };
        Ok(Self {
            file: file.to_owned(),
            text: text.to_owned(),
            overrides: overrides.to_vec(),
            seed,
            axes,
            repeat,
            runs,
        })
    }

    /// The keys that vary.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The numbers of all runs in the order in which they are best carried out: every cell once, then every cell again.
    /// So what is done at any time speaks for all.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + Send + use<> {
        let (repeat, runs) = (self.repeat, self.runs);
        (0..repeat).flat_map(move |run| (run..runs).step_by(usize::try_from(repeat).unwrap_or(usize::MAX)))
    }

    /// A cell that is a scenario which the simulator can run.
    ///
    /// # Errors
    /// As of [`check_by`](Self::check_by).
    pub fn check(&self) -> Result<Scenario, GridError> {
        self.check_by(&|scenario, file| {
            let simulation = Simulation::new(scenario.clone(), file, 0, Observation::default());
            simulation.map(drop).map_err(|error| error.to_string())
        })
    }

    /// A cell that is a scenario which a world can run, as `fits` says, which is given the file's name as well.
    ///
    /// # Errors
    /// None of 1000 is: a key may be mistyped. What is wrong with the one that has the least wrong with it.
    pub fn check_by(
        &self,
        fits: &dyn Fn(&Scenario, &str) -> Result<(), String>,
    ) -> Result<Scenario, GridError> {
        let mut least: Option<(usize, GridError)> = None;
        for cell in self.cells_to_try() {
            let (count, error) = match self.scenario(cell) {
                Ok(scenario) => match fits(&scenario, &self.file) {
                    Ok(()) => return Ok(scenario),
                    Err(message) => (1, GridError { message, hint: None }),
                },
                Err(errors) => {
                    (errors.0.len(), GridError { message: self.in_terms_of_axes(&errors), hint: None })
                }
            };
            if least.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
                least = Some((count, error));
            }
        }
        Err(least
            .map_or_else(|| GridError::new("the grid is empty", "repeat at least once"), |(_, error)| error))
    }

    /// All cells; of very many some, with every value of every axis that has no more values than that. All axes go on
    /// together, and each time the longest has been gone through, every one is a step further on than the one before it.
    fn cells_to_try(&self) -> Vec<u64> {
        let cells = self.runs / self.repeat;
        if cells <= MOST_TRIED {
            return (0..cells).collect();
        }
        let lens: Vec<u64> = self.axes.iter().map(|axis| axis.len() as u64).collect();
        let longest = lens.iter().copied().max().unwrap_or(1);
        let cell = |tried: u64| {
            let positions = (0..).zip(&lens).map(|(axis, len)| (tried + axis * (tried / longest)) % len);
            positions.zip(&lens).fold(0, |cell, (position, len)| cell * len + position)
        };
        (0..MOST_TRIED).map(cell).collect()
    }

    /// The run of this number, carried out: a JSON array on one line. Its first element is the number; its second is a
    /// list of values in the order of [`columns`] for each flow, or a string, the error that kept the run from its end.
    /// `None` if it was abandoned, as `stop` told, or there is no such run.
    pub fn record(&self, number: u64, stop: &dyn Fn() -> bool) -> Option<String> {
        if number >= self.runs {
            return None;
        }
        let result = panic::caught(|| self.carry_out(number / self.repeat, number % self.repeat, stop))
            .unwrap_or_else(|said| {
                Err(format!("internal error: {said}; please report it with the scenario and the seed"))
            });
        let outcome = match result {
            // A summary has no maps whose keys are no strings, and no values that refuse.
            Ok(summary) => Value::Array(rows(&serde_json::to_value(summary?).unwrap_or_default())),
            Err(error) => Value::String(error),
        };
        Some(json!([number, outcome]).to_string())
    }

    fn carry_out(&self, cell: u64, run: u64, stop: &dyn Fn() -> bool) -> Result<Option<Summary>, String> {
        let scenario = self.scenario(cell).map_err(|errors| {
            let words: Vec<String> = errors.0.iter().map(ScenarioError::to_string).collect();
            words.join("\n").trim_start_matches("error: ").to_owned()
        })?;
        let mut simulation = Simulation::new(scenario, &self.file, run, Observation::default())
            .map_err(|error| error.to_string())?;
        let end = simulation.duration();
        for piece in 1..=PIECES {
            let until = if piece == PIECES { end } else { end / PIECES as u32 * piece as u32 };
            simulation.advance(Instant::ZERO + until).map_err(|error| error.to_string())?;
            if stop() {
                return Ok(None);
            }
        }
        let summary = simulation.finish().map_err(|error| error.to_string())?;
        balanced(summary).map(Some)
    }

    fn scenario(&self, cell: u64) -> Result<Scenario, ScenarioErrors> {
        let mut overrides = self.overrides.clone();
        overrides.extend(self.settings(cell));
        overrides.extend(self.seed.map(|seed| format!("seed={seed}")));
        Scenario::parse_beside(&self.file, &self.text, &overrides)
    }

    /// What a cell sets, an override for each axis.
    #[must_use]
    pub fn settings(&self, cell: u64) -> Vec<String> {
        let mut rest = cell;
        let mut settings: Vec<String> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let position = rest % axis.len() as u64;
                rest /= axis.len() as u64;
                axis.setting(position as usize)
            })
            .collect();
        settings.reverse();
        settings
    }

    /// Errors in the words of whoever asked for the sweep: what is wrong with a varied value is not called `--set`.
    fn in_terms_of_axes(&self, errors: &ScenarioErrors) -> String {
        let words = |error: &ScenarioError| {
            let said = error.to_string();
            let of_axis = error
                .override_text
                .as_ref()
                .and_then(|text| text.split_once('='))
                .is_some_and(|(key, _)| self.axes.iter().any(|axis| axis.key == key));
            if of_axis { said.replacen("--set", "--vary", 1) } else { said }
        };
        errors.0.iter().map(words).collect::<Vec<_>>().join("\n")
    }
}

/// The summary, if every packet is accounted for; else where one is not.
fn balanced(summary: Summary) -> Result<Summary, String> {
    let wrong: Vec<String> = summary
        .conservation
        .iter()
        .filter(|(_, difference)| **difference != 0)
        .map(|(place, difference)| format!("{place}: {difference}"))
        .collect();
    if wrong.is_empty() {
        Ok(summary)
    } else {
        Err(format!("packets do not add up: {}; this is a fault of careof", wrong.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
duration = "3 s"

[links]
wavelan = { preset = "wavelan", loss = "2 %" }

[mobility]
protocol = "mobile-ipv4"

[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
kind = "bulk"
"#;

    fn grid(varied: &[&str], repeat: u64) -> Result<Grid, GridError> {
        let varied: Vec<String> = varied.iter().map(|&text| text.to_owned()).collect();
        Grid::new("small.toml", SCENARIO, &[], None, &varied, repeat)
    }

    fn record(grid: &Grid, number: u64) -> Value {
        serde_json::from_str(&grid.record(number, &|| false).unwrap()).unwrap()
    }

    fn value(record: &Value, name: &str) -> Value {
        let position = columns().iter().position(|column| column.name == name).unwrap();
        record[1][0][position].clone()
    }

    #[test]
    fn the_last_axis_is_the_fastest() {
        let grid = grid(&["a=1,2", "b=x,y,z"], 4).unwrap();
        assert_eq!(grid.runs(), 24);
        let cells: Vec<_> = (0..6).map(|cell| grid.settings(cell).join(" ")).collect();
        assert_eq!(cells, ["a=1 b=x", "a=1 b=y", "a=1 b=z", "a=2 b=x", "a=2 b=y", "a=2 b=z"]);
    }

    #[test]
    fn every_cell_is_run_once_before_any_is_run_again() {
        let grid = grid(&["a=1,2"], 3).unwrap();
        assert_eq!(grid.numbers().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn a_run_is_what_its_number_says_and_repetitions_differ() {
        let grid = grid(&["flow.tcp.variant=reno,sack"], 3).unwrap();
        let scenario = grid.check().unwrap();
        assert_eq!(value(&record(&grid, 4), "variant"), "sack");
        let mut alone = Simulation::new(
            Scenario::parse("small.toml", SCENARIO, &["flow.tcp.variant=sack".to_owned()]).unwrap(),
            "small.toml",
            1,
            Observation::default(),
        )
        .unwrap();
        alone.advance(Instant::from_secs(3)).unwrap();
        let digest = alone.finish().unwrap().digest;
        assert_eq!(value(&record(&grid, 4), "digest"), digest.as_str());
        assert_ne!(value(&record(&grid, 5), "digest"), digest.as_str());
        assert_eq!(scenario.duration, core::time::Duration::from_secs(3));
    }

    #[test]
    fn a_bad_value_is_the_error_of_its_own_runs() {
        let grid = grid(&["flow.tcp.variant=rino,sack"], 1).unwrap();
        assert!(grid.check().is_ok());
        let error = record(&grid, 0)[1].as_str().unwrap().to_owned();
        assert!(
            error.starts_with("--set flow.tcp.variant=rino: flow.0.tcp.variant: found \"rino\""),
            "{error}"
        );
        assert!(record(&grid, 1)[1].is_array());
    }

    #[test]
    fn a_key_that_exists_in_no_cell_is_an_error_before_anything_starts() {
        let error =
            grid(&["flow.tcp.variant=rino,sack", "flow.tcp.vindow=1,2"], 1).unwrap().check().unwrap_err();
        assert!(error.message.starts_with("error: --vary flow.tcp.vindow=1: "), "{error}");
        assert!(error.message.contains("did you mean `window`?"), "{error}");
        assert!(!error.message.contains("rino"), "{error}");
    }

    #[test]
    fn a_great_grid_is_sampled_for_a_cell_that_can_run() {
        // One of seventy values fits.
        let numbers =
            |count: u64| (501..=500 + count).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        let bad = (0..69).map(|number| format!("wrong{number}")).collect::<Vec<_>>().join(",");
        for good in [format!("reno,{bad}"), format!("{bad},reno")] {
            let axes = [format!("flow.tcp.variant={good}"), format!("flow.tcp.mss={}", numbers(200))];
            for axes in [[&axes[0], &axes[1]], [&axes[1], &axes[0]]] {
                assert!(grid(&axes.map(|axis| axis.as_str()), 1).unwrap().check().is_ok());
            }
        }
        let seconds = format!("duration={}", numbers(1000));
        let grid =
            grid(&["flow.tcp.vindow=1,2", &seconds, &format!("flow.tcp.mss={}", numbers(1000))], 1).unwrap();
        assert_eq!(grid.cells_to_try().len(), 1000);
        assert!(grid.check().unwrap_err().message.contains("flow.tcp.vindow"));
    }

    #[test]
    fn every_value_of_every_axis_is_among_the_first_cells() {
        let values = |count: u64| (0..count).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        for lens in [[2, 500, 10], [500, 10, 2], [100, 100, 100], [10, 10, 128]] {
            let axes: Vec<String> = lens
                .iter()
                .zip(["a", "b", "c"])
                .map(|(&len, key)| format!("{key}={}", values(len)))
                .collect();
            let grid = grid(&axes.iter().map(String::as_str).collect::<Vec<_>>(), 1).unwrap();
            let seen: std::collections::BTreeSet<String> =
                grid.cells_to_try().into_iter().flat_map(|cell| grid.settings(cell)).collect();
            assert_eq!(seen.len() as u64, lens.iter().sum::<u64>(), "{lens:?}");
        }
    }

    #[test]
    fn what_makes_no_grid_is_refused() {
        for (varied, repeat, what) in [
            (&["a=1", "a=2"][..], 1, "varies already"),
            (&["seed=1,2"], 1, "under the same seed"),
            (&["goodput_bps=1"], 1, "column of that name"),
            (&["a=1"], 0, "nothing to run"),
            (&["a=1,2"], LARGEST_GRID, "more than"),
            (&["a=1,2"], u64::MAX, "more than"),
        ] {
            let error = grid(varied, repeat).unwrap_err();
            assert!(error.message.contains(what), "{error}");
        }
        let set = ["flow.tcp.mss = 536".to_owned()];
        let varied = ["flow.tcp.mss=536,1460".to_owned()];
        let error = Grid::new("x", SCENARIO, &set, None, &varied, 1).unwrap_err();
        assert!(error.message.contains("set by --set as well"), "{error}");
    }

    #[test]
    fn a_run_whose_packets_do_not_add_up_has_failed() {
        let grid = grid(&[], 1).unwrap();
        let mut summary = grid.carry_out(0, 0, &|| false).unwrap().unwrap();
        assert!(balanced(summary.clone()).is_ok());
        summary.conservation.insert("link wavelan.down".to_owned(), -2);
        assert!(balanced(summary).unwrap_err().contains("link wavelan.down: -2"));
    }

    #[test]
    fn a_run_can_be_abandoned() {
        assert_eq!(grid(&[], 1).unwrap().record(0, &|| true), None);
        assert_eq!(grid(&[], 1).unwrap().record(1, &|| false), None);
    }

    #[test]
    fn the_seed_is_that_of_all_runs() {
        let seeded = |seed| Grid::new("x", SCENARIO, &[], Some(seed), &[], 1).unwrap();
        assert_eq!(seeded(5).check().unwrap().seed, 5);
        assert_ne!(value(&record(&seeded(5), 0), "digest"), value(&record(&seeded(6), 0), "digest"));
    }
}
