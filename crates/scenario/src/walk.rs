//! Walks of many mobile nodes from station to station, and the files that hold one.

use careof_base::Duration;

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::mobility::Reference;
use crate::trace::ReadFile;
use crate::tree::Value;

/// The first line of a file, which says what its columns are.
const COLUMNS: &str = "time_s,station";
/// The latest that a step can be, seconds.
const LATEST_S: f64 = 1e9;

/// The way of the mobile nodes from station to station.
#[derive(Debug, Default)]
pub(crate) enum WalkDraft<'a> {
    #[default]
    Round,
    RandomWaypoint,
    Given(Vec<Reference<'a>>),
    Trace(TraceDraft),
}

/// A walk out of a file.
#[derive(Debug)]
pub(crate) struct TraceDraft {
    pub(crate) origin: Origin,
    pub(crate) path: String,
    /// As the scenario names it.
    pub(crate) file: String,
    /// When a mobile node leaves for which station, at least two, in the order of time.
    pub(crate) steps: Vec<StepDraft>,
}

/// A line of such a file.
#[derive(Debug, PartialEq)]
pub(crate) struct StepDraft {
    pub(crate) line: usize,
    pub(crate) at: Duration,
    pub(crate) station: String,
}

impl TraceDraft {
    /// The shortest time from one step to the next.
    pub(crate) fn shortest(&self) -> Duration {
        let spans = self.steps.windows(2).map(|two| two[1].at.saturating_sub(two[0].at));
        spans.min().unwrap_or_default()
    }

    /// A place in it, as an error names it.
    pub(crate) fn at_line(&self, line: usize) -> String {
        format!("{}, line {line}", self.file)
    }
}

/// Whether `value` is the name of a file, whose walk has its own times: no word has a dot.
pub(crate) fn has_times(value: &Value) -> bool {
    matches!(value, Value::Text(name) if name.contains('.'))
}

/// Reads the value of `walk`; `None` if the file that it names could not be read.
pub(crate) fn walk<'a>(
    field: &Field<'a>,
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Option<WalkDraft<'a>> {
    const EXPECTED: &str =
        "it must be \"round\", \"random-waypoint\", an array of stations or a file such as \"walk.csv\"";
    match &field.node.value {
        Value::Text(word) if word == "round" => Some(WalkDraft::Round),
        Value::Text(word) if word == "random-waypoint" => Some(WalkDraft::RandomWaypoint),
        Value::List(_) => {
            let fields = field.list(EXPECTED, problems);
            if fields.len() < 2 {
                field.wrong("a walk has two stations at least", None, problems);
            }
            Some(WalkDraft::Given(
                fields.iter().filter_map(|field| Reference::read(field, problems)).collect(),
            ))
        }
        value if has_times(value) => trace(field, files, problems).map(WalkDraft::Trace),
        _ => {
            let hint = "write walk = [\"station-1\", \"station-2\"], for example".to_owned();
            field.wrong(EXPECTED, Some(hint), problems);
            None
        }
    }
}

fn trace(field: &Field<'_>, files: &ReadFile<'_>, problems: &mut Problems) -> Option<TraceDraft> {
    let name = field;
    let file = name.text(problems)?;
    let text = crate::trace::text_of(name, file, files, problems)?;
    match steps(&text) {
        Ok(steps) => {
            let (origin, path) = (name.node.origin, name.path.clone());
            Some(TraceDraft { origin, path, file: file.to_owned(), steps })
        }
        Err((line, found, expected)) => {
            let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}, line {line}"));
            problems.add(name.place(), format!("{found} in {place}"), expected, None);
            None
        }
    }
}

/// The lines of a file. Nothing of them is repeated in an error: a scenario of somebody else's may name any file.
fn steps(text: &str) -> Result<Vec<StepDraft>, (Option<usize>, &'static str, String)> {
    let mut lines =
        (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let named = lines.next();
    if named.is_none_or(|(_, line)| line.split(',').map(str::trim).ne(COLUMNS.split(','))) {
        let found = if named.is_none() { "nothing" } else { "something else" };
        return Err((named.map(|(line, _)| line), found, format!("its columns come first: {COLUMNS}")));
    }
    let mut steps: Vec<StepDraft> = Vec::new();
    for (line, text) in lines {
        let wrong = |found, expected: &str| Err((Some(line), found, expected.to_owned()));
        let Some((time, station)) = text.split_once(',').map(|(time, station)| (time.trim(), station.trim()))
        else {
            return wrong("one value", "a row has a time and a station");
        };
        let seconds = match time.parse::<f64>() {
            Ok(seconds) if (0.0..=LATEST_S).contains(&seconds) => seconds,
            _ => return wrong("no time", "time_s is a number from 0 to 1000000000"),
        };
        let at = Duration::from_nanos((seconds * 1e9).round() as u64);
        if let Some(last) = steps.last() {
            if at <= last.at {
                return wrong("an earlier time", "each step is later than the one before");
            }
            if station == last.station {
                return wrong("the same station", "a step of the walk leads to another station");
            }
        }
        steps.push(StepDraft { line, at, station: station.to_owned() });
    }
    if steps.len() < 2 {
        return Err((None, "fewer than two steps", "a walk has two stations at least".to_owned()));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_line_for_each_step_and_comments() {
        let found = steps("# by train\ntime_s, station\n0,station-1\n\n12.5, station-3\n").unwrap();
        let step = |line, ms, station: &str| StepDraft {
            line,
            at: Duration::from_millis(ms),
            station: station.to_owned(),
        };
        assert_eq!(found, [step(3, 0, "station-1"), step(5, 12_500, "station-3")]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| {
            let (line, found, _) = steps(text).expect_err(text);
            (line, found)
        };
        assert_eq!(wrong(""), (None, "nothing"));
        assert_eq!(wrong("0,station-1\n"), (Some(1), "something else"));
        assert_eq!(wrong("time_s,station\n0\n"), (Some(2), "one value"));
        assert_eq!(wrong("time_s,station\nsoon,station-1\n"), (Some(2), "no time"));
        assert_eq!(wrong("time_s,station\n-1,station-1\n"), (Some(2), "no time"));
        assert_eq!(wrong("time_s,station\nNaN,station-1\n"), (Some(2), "no time"));
        assert_eq!(wrong("time_s,station\n0,station-1\n0,station-2\n"), (Some(3), "an earlier time"));
        assert_eq!(wrong("time_s,station\n0,station-1\n1,station-1\n"), (Some(3), "the same station"));
        assert_eq!(wrong("time_s,station\n0,station-1\n"), (None, "fewer than two steps"));
    }
}
