//! Traces of Linux senders (`SCENARIO.CC.MODE.sackX.tsX.csv`, plain or gzip) and the model's answer to them.

mod closed;
mod comparison;
mod draws;
mod error;
mod link;
mod open;
mod script;
mod setup;
mod trace;

#[cfg(test)]
mod tests;

use std::path::Path;

use careof_tcp::CongestionControl;
use serde_json::Value;

pub use comparison::{Comparison, Difference, Kind, Loop, Share, WANTED_SHARE};
pub use draws::Draws;
pub use error::{Error, Problem};
pub use link::{Fate, Link, Packet, Way};
pub use script::{Cause, Script};
pub use setup::{Setup, Write};
pub use trace::{BbrState, Event, Row, SenderState, Trace};

/// Reads a trace and runs the model beside it.
///
/// # Errors
/// The file cannot be read, or is no trace. A trace whose link script holds something unknown is compared in open
/// loop only, and says so in [`Comparison::error`].
pub fn compare_file(path: &Path) -> Result<Comparison, Error> {
    let trace = Trace::read(path)?;
    compare(&trace)
}

/// Reads a trace and runs the model beside it; the row that says what came out, `file` being what it calls the trace.
#[must_use]
pub fn row(path: &Path, file: &str) -> Value {
    match compare_file(path) {
        Ok(comparison) => comparison.json(file),
        Err(error) => comparison::error_json(file, &error),
    }
}

/// Runs the model beside a trace; with BBR, in the phases that the trace tells, else once for each of several draws.
///
/// # Errors
/// The header asks for a sender that there is no model of.
pub fn compare(trace: &Trace) -> Result<Comparison, Error> {
    let mut setup = Setup::of(trace)?;
    if setup.sender.congestion != CongestionControl::Bbr {
        return compare_with(trace, &setup);
    }
    match draws::read(trace) {
        Ok(starts) => {
            setup.cycle_starts.clone_from(&starts);
            Ok(Comparison { draws: Some(Draws::Read(starts)), ..compare_with(trace, &setup)? })
        }
        Err(why) => {
            let (mut shown, mut agree) = (None, 0);
            for seed in 0..DRAWS {
                setup.seed = seed;
                let found = compare_with(trace, &setup)?;
                let agrees = found.agrees();
                agree += usize::from(agrees);
                if shown.as_ref().is_none_or(|shown: &Comparison| shown.agrees() && !agrees) {
                    shown = Some(found);
                }
            }
            let draws = Draws::Unknown { why, share: Share { agree, of: DRAWS as usize } };
            let shown = shown.map_or_else(|| compare_with(trace, &setup), Ok)?;
            Ok(Comparison { draws: Some(draws), ..shown })
        }
    }
}

/// How often the model draws where a trace does not tell the phases: each of seven comes up.
const DRAWS: u64 = 24;

/// Runs another model than the trace's header asks for beside it.
///
/// # Errors
/// There is no such model.
pub fn compare_with(trace: &Trace, setup: &Setup) -> Result<Comparison, Error> {
    let open = if trace.is_thinned() { None } else { Some(open::run(trace, setup)?) };
    let closed = Script::of(trace).and_then(|script| closed::run(trace, setup, &script));
    let (closed, error) = match closed {
        Ok(found) => (Some(found), None),
        Err(error) => (None, Some(error)),
    };
    let mut found = Comparison { name: trace.name.clone(), open, closed, error, draws: None };
    if found.error.is_none()
        && let Some(name) = found.empty_loop()
    {
        let problem = Problem::NothingCompared(name);
        found.error = Some(Error { file: trace.file.clone(), line: None, problem });
    }
    Ok(found)
}
