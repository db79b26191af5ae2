//! What a connection counts.

/// Totals since the connection was made. Segments are counted once each, also when a flag makes them special.
/// Those that an ordinary segment counts come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// All segments sent.
    pub segments_sent: u64,
    /// All segments that arrived for the connection.
    pub segments_received: u64,
    /// Segments sent only to acknowledge.
    pub acks_sent: u64,
    /// Bytes of data sent, repetitions included.
    pub bytes_sent: u64,
    /// Bytes of data the peer has acknowledged.
    pub bytes_acked: u64,
    /// Round-trip times taken.
    pub rtt_samples: u64,
    /// Acknowledgements that repeat the last one while data is outstanding (RFC 5681 section 2).
    pub duplicate_acks_received: u64,
    /// Segments that carried data, a SYN or a FIN sent before.
    pub segments_retransmitted: u64,
    /// Resets sent.
    pub resets_sent: u64,
    /// Bytes of data sent again.
    pub bytes_retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Losses concluded from duplicate acknowledgements.
    pub fast_retransmits: u64,
    /// Losses of a single segment that a tail loss probe repaired (RFC 8985 section 7.4).
    pub losses_repaired_by_probes: u64,
    /// Data segments that arrived with a congestion mark (RFC 3168).
    pub marks_received: u64,
    /// Reductions of the window for congestion that the peer echoed (RFC 3168).
    pub ecn_reductions: u64,
    /// Timeouts found to have been spurious (RFC 5682, RFC 3522, RFC 3708).
    pub spurious_timeouts: u64,
    /// Fast retransmits found to have been spurious (RFC 3522, RFC 3708).
    pub spurious_fast_retransmits: u64,
    /// Duplicates that the peer reported (RFC 2883).
    pub duplicates_reported: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Segments with data of which every byte was here already.
    pub duplicate_segments_received: u64,
    /// Segments with data that left a hole before them.
    pub out_of_order_segments_received: u64,
    /// Acknowledgements of what had been acknowledged before.
    pub old_acks_received: u64,
    /// Segments dropped: an acknowledgement of something never sent.
    pub dropped_ack_of_unsent: u64,
    /// Segments dropped: outside of the receive window.
    pub dropped_out_of_window: u64,
    /// Segments dropped: their timestamp is older than the last (RFC 7323 section 5).
    pub dropped_by_paws: u64,
    /// Segments dropped: a SYN or RST that RFC 5961 answers with a challenge.
    pub dropped_challenged: u64,
    /// Segments dropped: the ACK bit is missing.
    pub dropped_without_ack: u64,
    /// Segments dropped: wrong for the state of the handshake, or the connection is closed.
    pub dropped_by_state: u64,
}
