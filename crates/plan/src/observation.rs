//! Who looks on.

use std::path::PathBuf;

use careof_trace::{EventKind, EventLog, Names};

use crate::topology::NodeId;

/// What is to be kept of a run besides its summary.
#[derive(Debug, Default)]
pub struct Observation {
    /// Keep an event log, to be taken while the run goes on.
    pub trace: bool,
    /// The kinds of events that the log keeps; `None` keeps all.
    pub kinds: Option<Vec<EventKind>>,
    /// Write packet captures.
    pub capture: Option<CaptureRequest>,
}

impl Observation {
    /// The event log of a run whose identifiers stand for `names`.
    #[must_use]
    pub fn log(&self, names: impl FnOnce() -> Names) -> EventLog {
        match (self.trace, &self.kinds) {
            (false, _) => EventLog::off(),
            (true, None) => EventLog::new(names()),
            (true, Some(kinds)) => EventLog::new(names()).only(kinds),
        }
    }
}

/// The captures that a run is to write.
#[derive(Clone, Debug)]
pub struct CaptureRequest {
    /// The directory of the files, which is there.
    pub directory: PathBuf,
    /// The nodes whose packets are captured, each in a file of its own; see [`plan_captures`](crate::plan_captures).
    pub nodes: Vec<NodeId>,
    /// Bytes the captures keep of each packet; `None` keeps all.
    pub snap_length: Option<u32>,
    /// Bytes of packets that all files hold together at most. From half of it on only headers are kept.
    pub limit_bytes: u64,
}
