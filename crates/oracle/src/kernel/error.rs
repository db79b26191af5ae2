//! What can be wrong with a trace, where, and what to do about it.

use std::fmt;

/// A trace that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1; `None` where it is about the whole file.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The operating system said no.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A gzip stream that is damaged or ends early.
    #[error("the gzip data are damaged or cut off: {0}")]
    Compressed(String),
    /// More than a trace can be.
    #[error("unpacks to more than {limit} bytes")]
    TooLarge {
        /// The most that is read, bytes.
        limit: u64,
    },
    /// Bytes that are no text.
    #[error("is not UTF-8 text")]
    NotText,
    /// No row with the names of the columns.
    #[error("there is no header row that begins with t_us,ev")]
    NoColumns,
    /// A column is not there.
    #[error("the column {0:?} is missing")]
    MissingColumn(&'static str),
    /// A header comment is not there.
    #[error("the header line `# {0}` is missing")]
    MissingHeader(&'static str),
    /// No segment was sent.
    #[error("there are no rows of a connection: no SYN, SYN-ACK and data")]
    NoConnection,
    /// A row with fewer fields than columns.
    #[error("has {found} fields where the header row names {expected}")]
    ShortRow {
        /// Fields found.
        found: usize,
        /// Columns named.
        expected: usize,
    },
    /// A field that cannot be what it should be.
    #[error("{column} is {found:?}; expected {expected}")]
    BadField {
        /// The column.
        column: &'static str,
        /// What stands there.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// Time goes back.
    #[error("t_us is {found}, which is before the row above ({before})")]
    TimeGoesBack {
        /// What stands there, microseconds.
        found: u64,
        /// The row above, microseconds.
        before: u64,
    },
    /// A flag of the command line that is not known.
    #[error("the command line has the unknown flag {0}")]
    UnknownFlag(String),
    /// A flag of the command line with a value that makes no sense.
    #[error("{flag} is {found:?}; expected {expected}")]
    BadFlag {
        /// The flag.
        flag: String,
        /// Its value.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A flag that must be there.
    #[error("the command line lacks {0}")]
    MissingFlag(&'static str),
    /// A sender that no model stands for.
    #[error("there is no model for {0}")]
    NoModel(String),
    /// A loop in which nothing could be compared.
    #[error("no acknowledgement has the sender's cwnd behind it: the {0} loop compared nothing")]
    NothingCompared(&'static str),
}

impl Error {
    /// What to do about it, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.problem {
            Problem::Unreadable(_) => Some("check the path and its permissions"),
            Problem::Compressed(_) => Some("fetch or write the file again; `gzip -t FILE` tests one"),
            Problem::NotText | Problem::NoColumns | Problem::MissingColumn(_) | Problem::MissingHeader(_) => {
                Some(
                    "traces are named SCENARIO.CC.MODE.sackX.tsX.csv or .csv.gz; docs/oracles.md describes them",
                )
            }
            Problem::UnknownFlag(_) => Some(
                "the open loop does not need the link's script and was compared; docs/oracles.md lists the flags known",
            ),
            Problem::ShortRow { .. } => {
                Some("a file that was cut off, or another format? docs/oracles.md describes both")
            }
            Problem::NoModel(_) => Some("models: reno, cubic, vegas, westwood, bbr"),
            Problem::NothingCompared(_) => Some("R rows need the columns k, cwnd and ssthresh filled in"),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for Error {}
