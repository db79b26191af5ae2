//! A flow: two TCP connections and the applications on them.

use careof_base::Instant;
use careof_plan::{Locator, NodeId, OneWayId, Side, Unwrapped, Workload};
use careof_tcp::Connection;
use careof_trace::TcpState;

use crate::queue::Slot;
use crate::quic::QuicFlow;
use crate::voice::VoiceFlow;

/// One end of a flow. What an ordinary segment touches comes first, and is first in the connection.
#[repr(C)]
pub(crate) struct End {
    /// Where it runs.
    pub(crate) node: NodeId,
    /// The address it uses; known when the flow opens.
    pub(crate) address: Locator,
    /// The way by which all it sends leaves its node; `None` where that depends, or is not known before the flow opens.
    pub(crate) way: Option<OneWayId>,
    /// Its timer.
    pub(crate) slot: Slot,
    /// Bytes handed to the application so far.
    pub(crate) received: u64,
    /// Its own sequence numbers, unwrapped.
    pub(crate) sent_seq: Unwrapped,
    /// The shift of the windows it advertises (RFC 7323), once its SYN has left.
    pub(crate) window_shift: u8,
    /// How many more of its segments say something of a handover.
    pub(crate) tells: u8,
    /// The last handover that it was told of, modulo 256.
    pub(crate) heard: u8,
    /// Duplicate acknowledgements counted so far.
    pub(crate) duplicate_acks: u64,
    /// Round-trip samples counted so far.
    pub(crate) rtt_samples: u64,
    /// The TCP endpoint.
    pub(crate) connection: Connection,
    /// What the trace last said of it.
    pub(crate) traced: Option<TcpState>,
    /// The connection's revision when the trace last looked.
    pub(crate) traced_revision: Option<u64>,
}

/// A flow. What each segment touches comes first.
#[repr(C)]
pub(crate) struct Flow {
    /// By sender: index of the metrics of the data it sends, where that is measured.
    pub(crate) measured: [Option<usize>; 2],
    /// Where many move: which of them is an end.
    pub(crate) roamer: Option<u32>,
    /// Whether its packets carry DF and listen to ICMP "fragmentation needed".
    pub(crate) pmtu_discovery: bool,
    /// Whether an end is a mobile node.
    pub(crate) mobile: bool,
    /// Whether the connection has been opened.
    pub(crate) opened: bool,
    /// The applications' timer, and that of the start.
    pub(crate) slot: Slot,
    /// The applications.
    pub(crate) workload: Workload,
    /// The opener and the acceptor.
    pub(crate) ends: [End; 2],
    /// Where it is carried by QUIC: its endpoints. Those of TCP are then never opened.
    pub(crate) quic: Option<Box<QuicFlow>>,
    /// Where it is voice: what its packets are made of. Endpoints of TCP are then never opened.
    pub(crate) voice: Option<Box<VoiceFlow>>,
    /// Its name in the scenario.
    pub(crate) name: String,
    /// When the application wants to begin.
    pub(crate) start: Instant,
}

impl Flow {
    /// The end on `side`.
    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.index()]
    }
}
