//! A flow: two TCP connections and the applications on them.

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_tcp::Connection;
use careof_trace::TcpState;
use careof_wire::SeqNumber;

use crate::queue::Slot;
use crate::topology::NodeId;
use crate::workload::{Side, Workload};

/// Index of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowId(pub(crate) u16);

/// A sequence number that counts on beyond 4 GiB, relative to the connection's first.
///
/// The first byte of data is 1, as in every analyser's graphs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwrapped {
    last: SeqNumber,
    relative: i64,
}

impl Unwrapped {
    /// Counts from `initial`, the sequence number of the SYN.
    pub(crate) const fn from(initial: SeqNumber) -> Self {
        Self { last: initial, relative: 0 }
    }

    /// The relative number of `seq`, which lies within 2 GiB of the one last followed.
    pub(crate) fn of(&self, seq: SeqNumber) -> i64 {
        self.relative + i64::from(seq.0.wrapping_sub(self.last.0) as i32)
    }

    /// [`Unwrapped::of`], from which the next ones are counted.
    pub(crate) fn follow(&mut self, seq: SeqNumber) -> i64 {
        self.relative = self.of(seq);
        self.last = seq;
        self.relative
    }
}

/// One end of a flow.
pub(crate) struct End {
    /// The TCP endpoint.
    pub(crate) connection: Connection,
    /// Where it runs.
    pub(crate) node: NodeId,
    /// The address it uses; known when the flow opens.
    pub(crate) address: Ipv4Addr,
    /// Its timer.
    pub(crate) slot: Slot,
    /// Bytes handed to the application so far.
    pub(crate) received: u64,
    /// What the trace last said of it.
    pub(crate) traced: Option<TcpState>,
    /// The connection's revision when the trace last looked.
    pub(crate) traced_revision: Option<u64>,
    /// Its own sequence numbers, unwrapped.
    pub(crate) sent_seq: Unwrapped,
    /// The shift of the windows it advertises (RFC 7323), once its SYN has left.
    pub(crate) window_shift: u8,
    /// Duplicate acknowledgements counted so far.
    pub(crate) duplicate_acks: u64,
    /// Round-trip samples counted so far.
    pub(crate) rtt_samples: u64,
}

/// A flow.
pub(crate) struct Flow {
    /// Its name in the scenario.
    pub(crate) name: String,
    /// The opener and the acceptor.
    pub(crate) ends: [End; 2],
    /// The applications.
    pub(crate) workload: Workload,
    /// When the application wants to begin.
    pub(crate) start: Instant,
    /// Whether the connection has been opened.
    pub(crate) opened: bool,
    /// The applications' timer, and that of the start.
    pub(crate) slot: Slot,
    /// By sender: index of the metrics of the data it sends, where that is measured.
    pub(crate) measured: [Option<usize>; 2],
    /// Whether an end is the mobile node.
    pub(crate) mobile: bool,
    /// Whether its packets carry DF and listen to ICMP "fragmentation needed".
    pub(crate) pmtu_discovery: bool,
}

impl Flow {
    /// The end on `side`.
    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_numbers_count_on_across_the_wrap() {
        let mut unwrapped = Unwrapped::from(SeqNumber(u32::MAX - 1));
        assert_eq!(unwrapped.follow(SeqNumber(u32::MAX)), 1);
        assert_eq!(unwrapped.follow(SeqNumber(1_000_000_000)), 1_000_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(2_500_000_000)), 2_500_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(4_000_000_000)), 4_000_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(700_000_000)), 4_294_967_296 + 700_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(4_000_000_000)), 4_000_000_002, "and back");
    }
}
