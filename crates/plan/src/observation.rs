//! Who looks on.

use std::io::Write;

/// What is to be kept of a run besides its summary.
#[derive(Default)]
pub struct Observation {
    /// Keep an event log, to be taken while the run goes on.
    pub trace: bool,
    /// Write a capture (pcapng) here.
    pub pcap: Option<Box<dyn Write + Send>>,
    /// Bytes the capture keeps of each packet; `None` keeps all.
    pub snap_length: Option<u32>,
}
