//! What is wrong with a document, where, and what would be right.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::section::Dialect;

/// Everything found wrong with one document, in the order of the file, then of the overrides. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentErrors(pub Vec<DocumentError>);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentError {
    /// The file as the caller named it.
    pub file: String,
    /// Line in the file, from 1; `None` when the error is in an override or concerns the file as a whole.
    pub line: Option<usize>,
    /// Column in the line, in characters from 1.
    pub column: Option<usize>,
    /// The override, as given, when the error is in one.
    #[serde(rename = "override")]
    pub override_text: Option<String>,
    /// Path of the key, such as `links.gsm.rate` or `handover.0.at`; empty when there is none.
    pub key: String,
    /// What was found there.
    pub found: String,
    /// What would be right, as a clause.
    pub expected: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Lines of the file, in its order, where the same is wrong in other tables of an array.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<usize>,
}

/// So many lines of other tables with the same error are shown.
const LINES_SHOWN: usize = 3;

impl fmt::Display for DocumentError {
    /// `error: scenarios/x.toml:12:9: links.gsm.rate: found "-9.6 kbit/s"; a rate must not be negative`, and the other places and the
    /// hint on lines of their own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: ")?;
        match (&self.override_text, self.line, self.column) {
            (Some(text), ..) => write!(f, "--set {text}")?,
            (None, Some(line), Some(column)) => write!(f, "{}:{line}:{column}", self.file)?,
            (None, ..) => write!(f, "{}", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": found {}; {}", self.found, self.expected)?;
        if !self.also.is_empty() {
            let shown: Vec<_> = self.also.iter().take(LINES_SHOWN).map(usize::to_string).collect();
            write!(f, "\n  also in line {}", shown.join(", "))?;
            if self.also.len() > LINES_SHOWN {
                write!(f, " and {} more", self.also.len() - LINES_SHOWN)?;
            }
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DocumentErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DocumentError {}
impl std::error::Error for DocumentErrors {}

/// Where a part of the document was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// At this byte of the file.
    File(usize),
    /// In the override of this index.
    Override(usize),
}

/// A [`DocumentError`] whose place is not yet lines and columns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    origin: Origin,
    key: String,
    found: String,
    expected: String,
    hint: Option<String>,
}

/// What was found wrong so far.
#[derive(Debug)]
pub struct Problems {
    dialect: &'static Dialect,
    found: Vec<Problem>,
}

impl Problems {
    /// None so far, with a document of `dialect`.
    #[must_use]
    pub fn new(dialect: &'static Dialect) -> Self {
        Self { dialect, found: Vec::new() }
    }

    /// The kind of document that is read.
    #[must_use]
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Notes that `found` stands at a place, where `expected`, a clause, would be right.
    pub fn add(
        &mut self,
        (origin, key): (Origin, &str),
        found: impl Into<String>,
        expected: impl Into<String>,
        hint: Option<String>,
    ) {
        let (found, expected) = (found.into(), expected.into());
        self.found.push(Problem { origin, key: key.to_owned(), found, expected, hint });
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// Ends the reading of `file` with content `text`.
    ///
    /// # Errors
    /// The problems, if there are any.
    pub fn finish(mut self, file: &str, text: &str, overrides: &[String]) -> Result<(), DocumentErrors> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|problem| problem.origin);
        // What is read twice, such as the table of a queue for either direction, is wrong once.
        let mut seen = BTreeSet::new();
        self.found.retain(|problem| seen.insert(problem.clone()));
        let lines = Lines::of(text);
        // What is wrong alike in many tables of an array is said once.
        let mut first = BTreeMap::new();
        let mut also: Vec<Vec<usize>> = Vec::new();
        let mut once = Vec::new();
        for problem in self.found {
            if let Origin::File(offset) = problem.origin {
                let place = once.len();
                let Problem { key, found, expected, hint, .. } = problem.clone();
                match *first.entry((of_any_table(&key), found, expected, hint)).or_insert(place) {
                    before if before == place => {}
                    before => {
                        also[before].push(lines.position(offset).0);
                        continue;
                    }
                }
            }
            also.push(Vec::new());
            once.push(problem);
        }
        let error = |(problem, also): (Problem, Vec<usize>)| {
            let (position, override_text) = match problem.origin {
                Origin::File(offset) => (Some(lines.position(offset)), None),
                Origin::Override(index) => (None, overrides.get(index).cloned()),
            };
            DocumentError {
                file: file.to_owned(),
                line: position.map(|(line, _)| line),
                column: position.map(|(_, column)| column),
                override_text,
                key: problem.key,
                found: problem.found,
                expected: problem.expected,
                hint: problem.hint,
                also,
            }
        };
        Err(DocumentErrors(once.into_iter().zip(also).map(error).collect()))
    }
}

/// The path of a key without saying which tables of arrays it goes through: `handover.3.at` is that of each handover.
fn of_any_table(key: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<_> = key.split('.').map(|part| if is_index(part) { "*" } else { part }).collect();
    parts.join(".")
}

/// Where the lines of a text begin, so that a hundred thousand problems do not have it counted through as often.
struct Lines<'a> {
    text: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.as_bytes();
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self { text, starts: std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect() }
    }

    /// Line and column, both from 1, of the byte at `offset`.
    fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|last| self.starts.get(last)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        // Bytes that continue a character do not count.
        (line, before.iter().filter(|byte| **byte & 0xc0 != 0x80).count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "a = 1\nµs = \"x\"\n";
        assert_eq!(Lines::of(text).position(0), (1, 1));
        assert_eq!(Lines::of(text).position(6), (2, 1));
        assert_eq!(Lines::of(text).position(6 + "µs = ".len()), (2, 6));
        assert_eq!(Lines::of(text).position(10_000), (3, 1));
    }
}
