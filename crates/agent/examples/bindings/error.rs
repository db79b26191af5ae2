//! What can go wrong with a measurement.

use std::path::PathBuf;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The hosts cannot be made.
    #[error(transparent)]
    Lab(#[from] careof_lab::Error),
    /// The operating system refused something else.
    #[error("cannot {doing}: {problem}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        problem: std::io::Error,
    },
    /// There is no daemon to be measured.
    #[error("there is no {program}", program = .program.display())]
    NoAgent {
        /// Where it was looked for.
        program: PathBuf,
    },
    /// The daemon did not do what was waited for.
    #[error("the agent {problem}; the end of its log:\n{log}")]
    Agent {
        /// What it did instead.
        problem: String,
        /// What it has written.
        log: String,
    },
    /// A registration that must be accepted was not.
    #[error("the agent denies the registration of {home_address} with code {code}")]
    Denied {
        /// Whose.
        home_address: std::net::Ipv4Addr,
        /// Why.
        code: u8,
    },
    /// Registrations stay unanswered.
    #[error("{missing} registrations stay unanswered")]
    Unanswered {
        /// How many.
        missing: usize,
    },
    /// A thread is no more.
    #[error("a thread of the measurement has panicked")]
    Panicked,
}

impl Error {
    pub(crate) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |problem| Self::System { doing, problem }
    }

    /// The command that would help.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Lab(error) => error.remedy(),
            Self::NoAgent { .. } => Some("cargo build --release -p careof-agent, or --agent PROGRAM"),
            _ => None,
        }
    }
}
