//! What a connection tells its owner: rare things only. The stream of bytes is read from
//! [`crate::Connection::received`], the sender's state from [`crate::Connection::snapshot`].

use alloc::collections::VecDeque;
use core::time::Duration;

use careof_base::DataRate;
use careof_wire::SeqNumber;

use crate::Counters;

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Everything the peer will ever send has been received in order.
    PeerClosed,
    /// The connection is gone, after both sides closed.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The connection was given up: too many timeouts without an answer.
    GivenUp,
    /// The retransmission timer ran out.
    Timeout {
        /// First sequence number that is not acknowledged.
        seq: SeqNumber,
        /// How many times in a row, this one included.
        backoff: u32,
        /// The timeout that ran out.
        rto: Duration,
    },
    /// The path was replaced ([`crate::Advice::Replaced`]), and its round trip is known now.
    PathMeasured {
        /// What the path delivers, of data, by the estimate at the end of the handover; `None` where there is none.
        bandwidth: Option<DataRate>,
        /// Round trip of the first segment that went by it.
        round_trip: Duration,
        /// The window that was set, bytes; `None`: it stays as it is.
        window: Option<u32>,
    },
    /// Duplicate acknowledgements gave a loss away.
    FastRetransmit {
        /// First sequence number that is not acknowledged.
        seq: SeqNumber,
    },
}

/// Where all parts of a connection write down what they did.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Journal {
    /// The last round-trip sample.
    pub(crate) latest_rtt: Option<Duration>,
    pub(crate) events: VecDeque<Event>,
    /// Grows whenever the sender's state may have changed.
    pub(crate) revision: u64,
    /// Last, and those first that an ordinary segment counts.
    pub(crate) counters: Counters,
}

impl Journal {
    /// Writes a round-trip sample down.
    pub(crate) fn sampled(&mut self, rtt: Duration) {
        self.counters.rtt_samples += 1;
        self.latest_rtt = Some(rtt);
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }
}
