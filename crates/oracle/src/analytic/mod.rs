//! Predictions computed from RFCs and papers without any TCP implementation (`analytic.tsv`: id, source, inputs, expected,
//! tolerance), each held against the models.
//!
//! A row is evaluated through what every user of [`careof_tcp`] can call: a connection is brought into the state that
//! the row describes and is asked what it does. Numbers are taken from the row; where a row speaks in words, the
//! evaluation names the words it relies on, and a row that says something else is reported instead of being believed.

mod averages;
mod bench;
mod controls;
mod models;
mod receiving;
mod recovery;
mod timeouts;
mod windows;
mod world;

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Value, json};

use crate::kernel::{Error, Problem};

/// A prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// The situation.
    pub inputs: String,
    /// What follows.
    pub expected: String,
    /// How near is near enough.
    pub tolerance: String,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The model does as predicted.
    Holds,
    /// It does not: what it does, or what is known of the reason.
    Differs(String),
    /// There is nothing to evaluate it with, and why.
    NotRun(String),
    /// No evaluation could tell, and why: the row contradicts itself, leaves out what it depends on, or is about no sender.
    Unanswerable(String),
}

/// What an evaluation needs to say: why it failed.
type Check = Result<(), Outcome>;

impl From<String> for Outcome {
    fn from(found: String) -> Self {
        Self::Differs(found)
    }
}

/// Fails an evaluation unless a figure is what was predicted.
fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Check {
    if found == wanted {
        Ok(())
    } else {
        Err(Outcome::Differs(format!("{what} is {found:?}, not {wanted:?}")))
    }
}

/// Fails an evaluation unless a figure is near what was predicted.
fn near(what: &str, found: f64, wanted: f64, tolerance: f64) -> Check {
    if (found - wanted).abs() <= tolerance {
        Ok(())
    } else {
        Err(Outcome::Differs(format!("{what} is {found:.6}, not {wanted:.6} within {tolerance}")))
    }
}

/// Refuses a row that no longer says what its evaluation relies on.
fn says(row: &Row, words: &[&str]) -> Check {
    match words.iter().find(|words| !row.expected.contains(**words)) {
        None => Ok(()),
        Some(words) => Err(Outcome::NotRun(format!("the row no longer says {words:?}"))),
    }
}

/// Every number in `text`, in order.
fn numbers(text: &str) -> Vec<f64> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c: char| !digits(c)).filter_map(|word| word.trim_matches('.').parse().ok()).collect()
}

/// The number after `name=`.
fn value(text: &str, name: &str) -> Result<f64, Outcome> {
    let lacking = || Outcome::NotRun(format!("the row has no {name}= followed by a number"));
    let key = format!("{name}=");
    // `rto` is not to be found in `zrto`.
    let at = text
        .match_indices(&key)
        .map(|(at, _)| at)
        .find(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .ok_or_else(lacking)?;
    numbers(&text[at + key.len()..]).first().copied().ok_or_else(lacking)
}

/// The number after `name=`, where an evaluation can do with it: what it takes grows with it, or it is divided by.
fn value_within(text: &str, name: &str, range: RangeInclusive<f64>) -> Result<f64, Outcome> {
    within(name, value(text, name)?, range)
}

/// Refuses a number that an evaluation cannot do with.
fn within(name: &str, found: f64, range: RangeInclusive<f64>) -> Result<f64, Outcome> {
    if range.contains(&found) {
        Ok(found)
    } else {
        let (least, most) = (range.start(), range.end());
        Err(Outcome::NotRun(format!("{name} is {found}; this evaluation takes {least} to {most}")))
    }
}

/// Reads the table.
///
/// # Errors
/// It cannot be read, or a line has other columns.
pub fn read(path: &Path) -> Result<Vec<Row>, Error> {
    let file = path.display().to_string();
    let fail = |line, problem| Error { file: file.clone(), line, problem };
    let text =
        std::fs::read_to_string(path).map_err(|error| fail(None, Problem::Unreadable(error.to_string())))?;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, source, inputs, expected, tolerance] = cells[..] else {
            let problem = Problem::ShortRow { found: cells.len(), expected: 5 };
            return Err(fail(Some(index + 1), problem));
        };
        let own = str::to_owned;
        rows.push(Row {
            id: own(id),
            source: own(source),
            inputs: own(inputs),
            expected: own(expected),
            tolerance: own(tolerance),
        });
    }
    Ok(rows)
}

/// Evaluates one row.
#[must_use]
pub fn evaluate(row: &Row) -> Outcome {
    let topics = [
        timeouts::check,
        windows::check,
        receiving::check,
        recovery::check,
        controls::check,
        models::check,
        averages::check,
    ];
    match topics.iter().find_map(|topic| topic(row)) {
        Some(Ok(())) => Outcome::Holds,
        Some(Err(outcome)) => outcome,
        None => Outcome::NotRun("no evaluation has been written for it".to_owned()),
    }
}

/// The table as JSON: `{"rows": [..]}`, or `{"error": {message, hint}}`.
#[must_use]
pub fn table_json(path: &Path) -> Value {
    match read(path) {
        Ok(rows) => json!({ "rows": rows.iter().map(Row::json).collect::<Vec<_>>() }),
        Err(error) => json!({ "error": { "message": error.to_string(), "hint": error.hint() } }),
    }
}

/// Evaluates one row of [`table_json`]; the row again, with `outcome` and `why`.
#[must_use]
pub fn evaluate_json(row: &Value) -> Value {
    let cell = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let row = Row {
        id: cell("id"),
        source: cell("source"),
        inputs: cell("inputs"),
        expected: cell("expected"),
        tolerance: cell("tolerance"),
    };
    let (outcome, why) = match evaluate(&row) {
        Outcome::Holds => ("holds", None),
        Outcome::Differs(why) => ("differs", Some(why)),
        Outcome::NotRun(why) => ("not run", Some(why)),
        Outcome::Unanswerable(why) => ("unanswerable", Some(why)),
    };
    let mut value = row.json();
    value["outcome"] = outcome.into();
    value["why"] = why.into();
    value
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "id": self.id, "source": self.source, "inputs": self.inputs, "expected": self.expected,
            "tolerance": self.tolerance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_is_judged_where_reno_differs() {
        let row = |expected: &str| Row {
            id: "cubic-avg-test".to_owned(),
            source: String::new(),
            inputs: "RTT=0.1 p=0.01".to_owned(),
            expected: expected.to_owned(),
            tolerance: "5%".to_owned(),
        };
        let Outcome::Differs(how) = evaluate(&row("Reno W=30, CUBIC C=0.4 W=40 segments")) else {
            panic!("neither is near")
        };
        assert!(how.contains("reno is 11.") && how.contains("; the mean window of cubic is 11."), "{how}");
        assert_eq!(evaluate(&row("Reno W=11.2, CUBIC C=0.4 W=11.5 segments")), Outcome::Holds);
    }
}
