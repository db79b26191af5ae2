//! What an assistant counts.

/// Events since the assistant began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Flows followed in all.
    pub flows: u64,
    /// Flows given up for another one because the table was full.
    pub flows_evicted: u64,
    /// Segments of flows that were not followed, for all there was room for were in use.
    pub flows_refused: u64,
    /// Segments that their flow's ends would not accept, which taught nothing.
    pub implausible: u64,
    /// Packets of which a copy was kept.
    pub kept: u64,
    /// Packets held back.
    pub held: u64,
    /// Packets not kept for lack of room.
    pub not_kept: u64,
    /// Copies dropped because their bytes were acknowledged.
    pub acknowledged: u64,
    /// Copies dropped for their age.
    pub aged: u64,
    /// Copies given up for newer ones, or for flows seen more recently.
    pub evicted: u64,
    /// Packets that would have waited too long for a slow path.
    pub given_up: u64,
    /// Kept packets sent again.
    pub replayed: u64,
    /// Bytes of these, whole datagrams.
    pub replayed_bytes: u64,
    /// Repetitions by the sender that were not let through, for the same bytes waited here or were on their way.
    pub retransmissions_swallowed: u64,
    /// Late copies of delivered bytes that were dropped at the mobile node.
    pub duplicates_dropped: u64,
    /// Packets sent again at a duplicate acknowledgement or after a local timeout.
    pub local_repairs: u64,
    /// Duplicate acknowledgements that such a repair explains, which did not go on.
    pub acks_suppressed: u64,
    /// Acknowledgements injected.
    pub acks_injected: u64,
    /// Headers changed.
    pub edits: u64,
    /// ICMP messages sent.
    pub unreachables: u64,
    /// ICMP messages and acknowledgements not sent because of a limit.
    pub limited: u64,
    /// Packets that went on in fragments, for the tunnel swallows them whole.
    pub fragmented: u64,
    /// MTUs that were found to be lower without anybody having said so.
    pub black_holes: u64,
    /// Announced handovers that did not happen.
    pub false_alarms: u64,
}
