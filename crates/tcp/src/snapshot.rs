//! The state of a sender at one instant, for traces and plots.

use core::fmt;
use core::time::Duration;

use careof_base::DataRate;
use careof_wire::SeqNumber;

use crate::State;

/// What the sender believes about losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing is missing.
    #[default]
    Open,
    /// Repairing a loss that duplicate acknowledgements gave away.
    FastRecovery,
    /// Repairing after a timeout (with Tahoe, after any loss), until what was outstanding is acknowledged.
    Loss,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::FastRecovery => "fast-recovery",
            Self::Loss => "loss",
        })
    }
}

/// What a congestion control with a model of the path believes ([`crate::CongestionControl::Bbr`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathModel {
    /// What it is doing: `startup`, `drain`, `probe-bw`, `probe-rtt`.
    pub mode: &'static str,
    /// Bandwidth of the bottleneck, of data bytes.
    pub bandwidth: DataRate,
    /// Round-trip time without queues; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Pacing rate to bandwidth, in 1/256.
    pub pacing_gain: u32,
    /// Window to bandwidth times round trip, in 1/256.
    pub cwnd_gain: u32,
}

/// The state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// State of the connection.
    pub state: State,
    /// State of loss recovery.
    pub phase: Phase,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow start threshold, bytes; `u32::MAX` is no threshold.
    pub ssthresh: u32,
    /// Bytes the sender believes to be on their way (RFC 6675's pipe with [`crate::Variant::Sack`]).
    pub flight: u32,
    /// The rate at which segments leave at most, of data bytes; `None` is no limit.
    pub pacing_rate: Option<DataRate>,
    /// The peer's window, bytes.
    pub snd_wnd: u32,
    /// Bytes of data in a full-sized segment.
    pub mss: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation; `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// Retransmission timeout in force, back-off included.
    pub rto: Duration,
    /// Timeouts since the last round-trip sample.
    pub backoff: u32,
    /// Duplicate acknowledgements since the last that was not.
    pub duplicate_acks: u32,
    /// First sequence number that is not acknowledged.
    pub snd_una: SeqNumber,
    /// Next sequence number to send; behind the highest one sent while repairing after a timeout.
    pub snd_nxt: SeqNumber,
}
