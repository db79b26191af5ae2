//! What this world cannot do, or what went wrong in it.

impl From<careof_plan::Unsupported> for WorldError {
    fn from(careof_plan::Unsupported { key, found, remedy }: careof_plan::Unsupported) -> Self {
        Self::Unsupported { key, found, remedy }
    }
}

/// Something real Linux hosts cannot do, or that went wrong on them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorldError {
    /// The scenario asks for something this world does not have.
    #[error("{key}: {found} cannot be done on Linux; {remedy}")]
    Unsupported {
        /// The scenario's key.
        key: String,
        /// Its value.
        found: String,
        /// What would be right.
        remedy: String,
    },
    /// A mobility agent refuses its configuration, or stopped.
    #[error("mobility: {0}")]
    Agent(String),
    /// The capture could not be begun.
    #[error("the capture cannot be written: {0}")]
    Capture(String),
    /// A program of a flow cannot be found.
    #[error("{key}: there is no program {program:?} on this machine")]
    NoProgram {
        /// The scenario's key.
        key: String,
        /// What was looked for.
        program: String,
        /// How to get it, where that is known.
        remedy: Option<String>,
    },
    /// The kernel of this machine lacks what a key asks for: a congestion control, Multipath TCP.
    #[error("{key}: {error}")]
    Missing {
        /// The scenario's key.
        key: String,
        /// What the machine has.
        error: careof_lab::Error,
    },
    /// An application of a flow failed.
    #[error("flow {flow}: {problem}")]
    Flow {
        /// Its name.
        flow: String,
        /// What happened.
        problem: String,
    },
    /// The kernel's TCP did something about a handover that could not be told.
    #[error("assist.use: {lost} things that TCP did about handovers could not be told")]
    Untold {
        /// How many.
        lost: u64,
    },
    /// The operating system refused something.
    #[error(transparent)]
    Lab(#[from] careof_lab::Error),
}

impl WorldError {
    /// The agent on a host stopped, or could not begin.
    pub(crate) fn agent(host: &str, error: &careof_agent::Error) -> Self {
        match error {
            careof_agent::Error::System(error) => Self::Lab(error.clone()),
            other => Self::Agent(format!("{host}: {other}")),
        }
    }

    /// The command, or the change, that would make it work; `None` where the message says it or there is none.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Lab(error) | Self::Missing { error, .. } => error.remedy(),
            Self::NoProgram { remedy, .. } => remedy.as_deref(),
            Self::Unsupported { .. }
            | Self::Agent(_)
            | Self::Capture(_)
            | Self::Flow { .. }
            | Self::Untold { .. } => None,
        }
    }
}
