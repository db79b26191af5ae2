//! Traces of links: the files that `trace` names.

use careof_base::{DataRate, Duration, Probability};
use careof_link::{Trace, TraceError, TraceRow};
use sha2::{Digest, Sha256};

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::model::TraceFile;
use crate::reference::link::TRACE;
use crate::tree::{Value, quote};
use crate::words::nearest;

/// Where the name of a file is written, which says where it is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedIn {
    /// In the scenario: from its folder.
    Text,
    /// In an override: from where whoever gave it is.
    Override,
}

/// Hands out the text of a file by the name that a scenario gives it, or says why it cannot, as a clause.
pub type ReadFile<'a> = dyn Fn(&str, NamedIn) -> Result<String, String> + 'a;

/// A trace with where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct TraceDraft {
    pub(crate) trace: Trace,
    pub(crate) file: TraceFile,
}

/// What a link's `trace` says.
#[derive(Clone, Debug)]
pub(crate) enum TraceChoice {
    /// `"none"`.
    None,
    Some(TraceDraft),
}

/// Reads the value of `trace` and the file it names.
pub(crate) fn trace(field: &Field<'_>, files: &ReadFile<'_>, problems: &mut Problems) -> Option<TraceChoice> {
    let (name, start) = match &field.node.value {
        Value::Table(_) => {
            let reader = field.reader(&TRACE, problems)?;
            let expected = "a trace needs its file: file = \"traces/walk.csv\"";
            let name = reader.require("file", expected, problems)?;
            let start = reader.get("start").map(|field| field.duration(problems));
            (name, start.unwrap_or(Some(Duration::ZERO))?)
        }
        _ => (field.clone(), Duration::ZERO),
    };
    let file = name.text(problems)?;
    if file == "none" {
        return Some(TraceChoice::None);
    }
    let text = text_of(&name, file, files, problems)?;
    match read(&text) {
        Ok(trace) => {
            let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            let last = file.rsplit('/').next().unwrap_or(file).to_owned();
            let file = TraceFile { file: last, sha256 };
            Some(TraceChoice::Some(TraceDraft { trace: trace.starting_at(start), file }))
        }
        Err(Wrong { line, found, expected, hint }) => {
            let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}, line {line}"));
            problems.add(name.place(), format!("{found} in {place}"), expected, hint);
            None
        }
    }
}

/// The text of the file that a field names.
pub(crate) fn text_of(
    name: &Field<'_>,
    file: &str,
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Option<String> {
    let (named, hint) = match name.node.origin {
        Origin::File(_) => (NamedIn::Text, "its name counts from the folder of the scenario"),
        Origin::Override(_) => (NamedIn::Override, "its name counts from the folder you are in"),
    };
    match files(file, named) {
        Ok(text) => Some(text),
        Err(why) => {
            name.wrong(why, Some(hint.to_owned()), problems);
            None
        }
    }
}

/// A part of a file that is longer than that is not shown, characters.
const LONGEST_SHOWN: usize = 60;

/// A part of the file as an error shows it: only what a trace could have. A scenario of somebody else's may name any file, and its
/// errors go where the names of files do.
fn shown(part: &str) -> String {
    let is_of_a_trace = |byte: u8| byte.is_ascii_digit() || b"+-.,eE \t".contains(&byte);
    if part.len() <= LONGEST_SHOWN && part.bytes().all(is_of_a_trace) {
        quote(part)
    } else {
        "what is no number".to_owned()
    }
}

/// What is wrong with a trace file.
#[derive(Debug, PartialEq)]
struct Wrong {
    line: Option<usize>,
    found: String,
    expected: String,
    hint: Option<String>,
}

impl Wrong {
    fn at(line: usize, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { line: Some(line), found: found.into(), expected: expected.into(), hint: None }
    }
}

/// Reads a trace. Lines that begin with `#` are comments in both forms.
fn read(text: &str) -> Result<Trace, Wrong> {
    let mut lines = (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let Some((_, first)) = lines.peek() else {
        let expected = "a trace has a line for each opportunity to deliver a packet, or columns such as time_s,rate_mbit_s";
        return Err(Wrong {
            line: None,
            found: "nothing".to_owned(),
            expected: expected.to_owned(),
            hint: None,
        });
    };
    if first.bytes().all(|byte| byte.is_ascii_digit()) { opportunities(lines) } else { series(lines) }
}

fn opportunities<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, Wrong> {
    let (mut stamps, mut numbers) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        let stamp = line.parse::<u32>().map_err(|_| {
            let expected = "an opportunity to deliver a packet is a whole number of milliseconds, below 2^32";
            Wrong::at(number, shown(line), expected)
        })?;
        stamps.push(stamp);
        numbers.push((number, line));
    }
    Trace::of_opportunities(stamps).map_err(|error| made_wrong(error, &numbers))
}

/// An error of the whole, at the line where it shows.
fn made_wrong(error: TraceError, lines: &[(usize, &str)]) -> Wrong {
    let row = match error {
        TraceError::OutOfOrder { row } | TraceError::LateColumn { row } => row,
        TraceError::NoLength => lines.len().saturating_sub(1),
        TraceError::BeginsLate | TraceError::Empty => 0,
    };
    let expected = match error {
        TraceError::OutOfOrder { .. } => "time goes forward from line to line",
        TraceError::NoLength => "the last opportunity is where the trace repeats, so that it comes after 0",
        TraceError::BeginsLate => "the first row is at 0 s",
        TraceError::LateColumn { .. } => "a column that has values has one in the first row",
        TraceError::Empty => "below the names of the columns there are rows",
    };
    let (line, found) =
        lines.get(row).map_or((None, "nothing".to_owned()), |(line, text)| (Some(*line), shown(text)));
    Wrong { line, found, expected: expected.to_owned(), hint: None }
}

/// The columns of a series.
const COLUMNS: [&str; 4] = ["time_s", "rate_mbit_s", "delay_ms", "loss"];

/// Beyond these a value is a mistake of its unit, and sums stay exact below them.
const MOST: [f64; 4] = [1e7, 1e6, 3.6e6, 1.0];

fn series<'a>(mut lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, Wrong> {
    let (head_line, head) = lines.next().unwrap_or((1, ""));
    let mut columns = Vec::new();
    for name in head.split(',').map(str::trim) {
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            let expected = format!("the columns are {}", COLUMNS.join(", "));
            // Without any of them it is another kind of file, of which nothing is told.
            let is_head = head.split(',').any(|name| COLUMNS.contains(&name.trim()));
            if !is_head || name.len() > LONGEST_SHOWN || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(Wrong::at(head_line, "neither a number nor names of columns", expected));
            }
            let hint = nearest(name, COLUMNS).map(|near| format!("did you mean {near}?"));
            return Err(Wrong {
                hint,
                ..Wrong::at(head_line, format!("the column {}", quote(name)), expected)
            });
        };
        if columns.contains(&column) {
            return Err(Wrong::at(head_line, format!("{name} twice"), "a column is given once"));
        }
        columns.push(column);
    }
    if !columns.contains(&0) || columns.len() < 2 {
        let expected = "there is a column time_s, and one of rate_mbit_s, delay_ms and loss";
        return Err(Wrong::at(head_line, quote(head), expected));
    }
    let (mut rows, mut numbers) = (Vec::new(), Vec::new());
    for (number, line) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != columns.len() {
            let expected = format!("a row has {} values, as the names of the columns", columns.len());
            return Err(Wrong::at(number, shown(line), expected));
        }
        let mut row = TraceRow::default();
        for (column, cell) in columns.iter().zip(cells) {
            let Some(value) = value(*column, cell, number)? else { continue };
            match column {
                0 => row.at = nanos(value, 1e9),
                1 => row.rate = Some(DataRate::from_bits_per_second((value * 1e6).round() as u64)),
                2 => row.delay = Some(nanos(value, 1e6)),
                _ => row.loss = Probability::new(value).ok(),
            }
        }
        rows.push(row);
        numbers.push((number, line));
    }
    Trace::of_rows(&rows).map_err(|error| made_wrong(error, &numbers))
}

/// A cell; `None` where it is empty, which stands for the one above it.
fn value(column: usize, cell: &str, line: usize) -> Result<Option<f64>, Wrong> {
    if cell.is_empty() && column != 0 {
        return Ok(None);
    }
    let (name, most) = (COLUMNS[column], MOST[column]);
    match cell.parse::<f64>() {
        Ok(value) if (0.0..=most).contains(&value) => Ok(Some(value)),
        _ => Err(Wrong::at(
            line,
            format!("{} as {name}", shown(cell)),
            format!("it is a number from 0 to {most}"),
        )),
    }
}

fn nanos(value: f64, unit: f64) -> Duration {
    Duration::from_nanos((value * unit).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::Instant;

    fn wrong(text: &str) -> (Option<usize>, String, String) {
        let Wrong { line, found, expected, .. } = read(text).expect_err(text);
        (line, found, expected)
    }

    #[test]
    fn stamps_are_opportunities() {
        let trace = read("# recorded\n0\n4\n4\n\n10\n").unwrap();
        assert_eq!(trace, Trace::of_opportunities(vec![0, 4, 4, 10]).unwrap());
        assert_eq!(trace.mean_rate(), Some(DataRate::from_bits_per_second(4_800_000)));
    }

    #[test]
    fn columns_are_a_series_and_an_empty_cell_is_the_one_above() {
        let trace = read("time_s, loss, rate_mbit_s,delay_ms\n0,0,1.5,20\n0.25,1e-1,0,\n2,,,12.5\n").unwrap();
        let row = |millis, rate, micros, loss| TraceRow {
            at: Duration::from_millis(millis),
            rate: Some(DataRate::from_bits_per_second(rate)),
            delay: Some(Duration::from_micros(micros)),
            loss: Some(Probability::new(loss).unwrap()),
        };
        let rows = [row(0, 1_500_000, 20_000, 0.0), row(250, 0, 20_000, 0.1), row(2_000, 0, 12_500, 0.1)];
        assert_eq!(trace, Trace::of_rows(&rows).unwrap());
        assert_eq!(trace.bits_by(Instant::from_secs(3)), Some(375_000));
    }

    #[test]
    fn of_a_file_that_is_no_trace_nothing_is_told() {
        for text in [
            "root:x:0:0:root:/root:/bin/sh\nsecret\n",
            "secret\n",
            "-----BEGIN secret KEY-----\n",
            "5\nsecret\n",
            "5\n6 secret\n",
            "time_s,loss\n0,secret\n",
            "time_s,loss\n0,0,secret\n",
            "time_s,loss\nsecret\n",
            "secret,with,commas\n",
        ] {
            let (_, found, expected) = wrong(text);
            assert!(!found.contains("secret") && !expected.contains("secret"), "{found}; {expected}");
            assert!(!found.contains("root") && !found.contains("with"), "{found}");
        }
        let long = format!("5\n{}\n", "1".repeat(1000));
        assert_eq!(wrong(&long).1, "what is no number");
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_value() {
        let expected =
            |line, found: &str, expected: &str| (Some(line), found.to_owned(), expected.to_owned());
        assert_eq!(wrong("0\n5\n4\n"), expected(3, "\"4\"", "time goes forward from line to line"));
        assert_eq!(wrong("5\nfive\n").0, Some(2));
        assert_eq!(wrong("5\n-1\n").1, "\"-1\"");
        assert_eq!(wrong("0\n0\n").0, Some(2));
        assert_eq!(wrong("").1, "nothing");
        assert_eq!(wrong("time_s,rate_mbit_s\n").1, "nothing");
        assert_eq!(
            wrong("rate_mbit_s\n1\n").2,
            "there is a column time_s, and one of rate_mbit_s, delay_ms and loss"
        );
        assert_eq!(wrong("time_s,rate\n0,1\n").1, "the column \"rate\"");
        assert_eq!(wrong("time_s,loss,loss\n0,1,1\n").1, "loss twice");
        assert_eq!(
            wrong("time_s,loss\n0,0\n1,1.5\n"),
            expected(3, "\"1.5\" as loss", "it is a number from 0 to 1")
        );
        assert_eq!(wrong("# x\ntime_s,rate_mbit_s\n0,5\n1,-3\n").1, "\"-3\" as rate_mbit_s");
        assert_eq!(wrong("time_s,rate_mbit_s\n0,NaN\n").0, Some(2));
        assert_eq!(wrong("time_s,rate_mbit_s\n1,5\n").2, "the first row is at 0 s");
        assert_eq!(wrong("time_s,rate_mbit_s\n0,5\n0,5\n").0, Some(3));
        assert_eq!(wrong("time_s,rate_mbit_s\n0,5,6\n").2, "a row has 2 values, as the names of the columns");
        assert_eq!(wrong("time_s,rate_mbit_s,loss\n0,5,\n1,5,0.1\n").0, Some(3));
        assert_eq!(wrong("time_s,rate_mbit_s\n,5\n").1, "\"\" as time_s");
    }
}
