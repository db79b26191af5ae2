//! Who looks on.

use std::path::PathBuf;

use crate::topology::NodeId;

/// What is to be kept of a run besides its summary.
#[derive(Debug, Default)]
pub struct Observation {
    /// Keep an event log, to be taken while the run goes on.
    pub trace: bool,
    /// Write packet captures.
    pub capture: Option<CaptureRequest>,
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
