//! What can go wrong with a measurement.

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The hosts cannot be made.
    #[error(transparent)]
    Lab(#[from] careof_lab::Error),
    /// The agents cannot be carried.
    #[error(transparent)]
    Agent(#[from] careof_agent::Error),
    /// They do not get to know each other.
    #[error("the mobile node does not register: {problem}")]
    NotRegistered {
        /// What its carrier says about that.
        problem: String,
    },
    /// An agent's thread is no more.
    #[error("the thread of {name} has panicked")]
    Panicked {
        /// Whose.
        name: &'static str,
    },
}

impl Error {
    /// The command that would help.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Lab(error) => error.remedy(),
            Self::Agent(error) => error.remedy(),
            Self::NotRegistered { .. } | Self::Panicked { .. } => None,
        }
    }
}
