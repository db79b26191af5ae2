//! A TCP connection as the packets at its ends' links show it.

use std::collections::{BTreeMap, VecDeque};

use careof_base::{Duration, Instant};
use careof_plan::{NodeId, Side, Unwrapped};
use careof_trace::TcpState;
use careof_wire::{Flags, Segment, SeqNumber};

use super::subflow::Subflow;

/// Segments whose round trip is being measured, at most; more are under way only on paths faster than this is for.
const MOST_TIMED: usize = 4096;

/// One end of a connection.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    pub(super) node: NodeId,
    /// Whose addresses it has: another node's where a relay speaks for that.
    pub(super) speaks_for: NodeId,
    /// Index of the metrics of the data it sends, where that is measured.
    pub(super) measured: Option<usize>,
    /// Its sequence numbers, once its SYN was seen.
    sequence: Option<Unwrapped>,
    /// One after the last it has sent.
    sent: i64,
    /// The first not acknowledged, as far as acknowledgements have reached it.
    pub(super) una: i64,
    window_shift: u8,
    /// The last acknowledgement that reached it, and the window of that.
    heard: Option<(i64, u32)>,
    /// When segments that were sent once left: by their end.
    timed: VecDeque<(i64, Instant)>,
    /// The first number of its peer that has not reached its host, and what lies beyond that hole.
    in_order: i64,
    beyond: BTreeMap<i64, i64>,
    fin: Option<i64>,
    /// What the trace last said of it.
    pub(super) traced: Option<TcpState>,
    /// A timeout whose retransmission is still to be seen.
    pub(super) timeout: Option<PendingTimeout>,
    /// The largest segment its kernel sends.
    pub(super) mss: Option<u32>,
}

/// A timeout that happened somewhere between two looks at the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingTimeout {
    pub(super) until: Instant,
    pub(super) seq: i64,
    pub(super) state: TcpState,
}

/// What a segment says when it leaves its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) seq: i64,
    pub(super) ack: i64,
    pub(super) window_bytes: u32,
    /// Whether any of it was sent before.
    pub(super) retransmission: bool,
}

/// What an acknowledgement says to the sender of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) is_duplicate: bool,
    pub(super) round_trip: Option<Duration>,
}

impl ConnectionEnd {
    pub(super) fn new(node: NodeId) -> Self {
        Self::speaking_for(node, node)
    }

    /// An end at `node` with the addresses of another node.
    pub(super) fn speaking_for(speaks_for: NodeId, node: NodeId) -> Self {
        Self {
            node,
            speaks_for,
            measured: None,
            sequence: None,
            sent: 0,
            una: 0,
            window_shift: 0,
            heard: None,
            timed: VecDeque::new(),
            in_order: 1,
            beyond: BTreeMap::new(),
            fin: None,
            traced: None,
            timeout: None,
            mss: None,
        }
    }

    /// Whether everything it has sent is acknowledged.
    pub(super) const fn has_nothing_out(&self) -> bool {
        self.una >= self.sent
    }

    /// The window that a segment of it advertises. That of a SYN is never scaled (RFC 7323 section 2.2).
    fn window_bytes(&self, segment: &Segment) -> u32 {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.window_shift.min(14) };
        u32::from(segment.window) << shift
    }

    /// The relative number of one of its sequence numbers; of no meaning before its SYN was seen.
    fn relative(&self, seq: SeqNumber) -> i64 {
        self.sequence.map_or(0, |sequence| sequence.of(seq))
    }
}

/// Which part of a flow's way a connection is. With a relay both have the same addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    /// All of it.
    Whole,
    /// Between the mobile node and a relay.
    Mobile,
    /// Between a relay and the fixed host.
    Fixed,
}

/// A TCP connection between two nodes.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stretch: Stretch,
    /// The flow it belongs to, as traces number them.
    pub(super) flow: u16,
    /// What the trace calls it: the flow, or one of the connections of a flow that is a program.
    pub(super) traced_as: u16,
    /// Opener and acceptor.
    pub(super) ends: [ConnectionEnd; 2],
    /// Who sent the first SYN.
    pub(super) client: Side,
    /// Of a connection of Multipath TCP.
    pub(super) subflow: Option<Subflow>,
}

impl Connection {
    /// Whether the trace shows what `side` does. Of a relay it does on the mobile node's side alone: that of the fixed host
    /// is seen from there, and a node that says two things of one flow says nothing.
    pub(super) fn is_traced(&self, side: Side) -> bool {
        let end = &self.ends[side.index()];
        end.node == end.speaks_for || self.stretch != Stretch::Fixed
    }

    /// `side` sent a segment at `now`.
    pub(super) fn sent(&mut self, now: Instant, side: Side, segment: &Segment) -> Sent {
        let ack = if segment.flags.contains(Flags::ACK) {
            self.ends[side.peer().index()].relative(segment.ack)
        } else {
            0
        };
        let end = &mut self.ends[side.index()];
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn && end.sequence.is_none() {
            end.sequence = Some(Unwrapped::from(segment.seq));
            end.window_shift = segment.window_scale.unwrap_or(0);
        }
        let seq = match &mut end.sequence {
            Some(sequence) => sequence.follow(segment.seq),
            None => 0,
        };
        let last = seq + i64::from(segment.seq_len());
        let retransmission = segment.seq_len() > 0 && seq < end.sent;
        if segment.flags.contains(Flags::FIN) {
            end.fin = Some(last - 1);
        }
        if retransmission {
            // Karn: what was sent twice tells no time.
            end.timed.retain(|(timed, _)| *timed <= seq || *timed > last);
        } else if segment.seq_len() > 0 && end.timed.len() < MOST_TIMED {
            end.timed.push_back((last, now));
        }
        end.sent = end.sent.max(last);
        Sent { seq, ack, window_bytes: end.window_bytes(segment), retransmission }
    }

    /// The numbers of a segment of `side` that reached the other end.
    pub(super) fn arrived(&self, side: Side, segment: &Segment) -> Sent {
        let end = &self.ends[side.index()];
        let ack = if segment.flags.contains(Flags::ACK) {
            self.ends[side.peer().index()].relative(segment.ack)
        } else {
            0
        };
        Sent {
            seq: end.relative(segment.seq),
            ack,
            window_bytes: end.window_bytes(segment),
            retransmission: false,
        }
    }

    /// What the arrival of a segment of `side` says to the other end, whose data it acknowledges.
    pub(super) fn heard(&mut self, now: Instant, side: Side, segment: &Segment) -> Heard {
        if !segment.flags.contains(Flags::ACK) {
            return Heard::default();
        }
        let window = self.ends[side.index()].window_bytes(segment);
        let listener = &mut self.ends[side.peer().index()];
        let ack = listener.relative(segment.ack);
        let same = listener.heard == Some((ack, window));
        let empty = segment.seq_len() == 0 && !segment.flags.contains(Flags::RST);
        listener.heard = Some((ack, window));
        if ack > listener.una && ack <= listener.sent {
            listener.una = ack;
            let mut round_trip = None;
            while let Some((_, left)) = listener.timed.front().filter(|(end, _)| *end <= ack) {
                round_trip = Some(now.saturating_duration_since(*left));
                listener.timed.pop_front();
            }
            return Heard { is_duplicate: false, round_trip };
        }
        // RFC 5681 section 2.
        Heard { is_duplicate: same && empty && ack == listener.una && listener.sent > ack, round_trip: None }
    }

    /// Data of `side` reached the other end's host: what is there in order now.
    pub(super) fn take_in(&mut self, side: Side, seq: i64, length: i64) -> u64 {
        let sender_fin = self.ends[side.index()].fin;
        let receiver = &mut self.ends[side.peer().index()];
        receiver.beyond.entry(seq).and_modify(|end| *end = (*end).max(seq + length)).or_insert(seq + length);
        while let Some(first) = receiver.beyond.first_entry() {
            if *first.key() > receiver.in_order {
                break;
            }
            receiver.in_order = receiver.in_order.max(first.remove());
        }
        let end = sender_fin.map_or(receiver.in_order, |fin| receiver.in_order.min(fin));
        u64::try_from(end - 1).unwrap_or(0)
    }

    /// Whether everything `side` sent up to its FIN has reached the other end's host.
    pub(super) fn is_complete(&self, side: Side) -> bool {
        let fin = self.ends[side.index()].fin;
        fin.is_some_and(|fin| self.ends[side.peer().index()].in_order >= fin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            stretch: Stretch::Whole,
            flow: 0,
            traced_as: 0,
            ends: [ConnectionEnd::new(NodeId(0)), ConnectionEnd::new(NodeId(1))],
            client: Side::Opener,
            subflow: None,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn segment(seq: u32, length: u16, ack: u32, flags: Flags) -> Segment {
        Segment {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            payload_len: length,
            flags,
            window: 500,
            ..Segment::default()
        }
    }

    /// Opened from 1000 and 5000, windows shifted by 7.
    fn opened() -> Connection {
        let mut connection = connection();
        let syn = Segment { window_scale: Some(7), ..segment(1000, 0, 0, Flags::SYN) };
        assert_eq!(connection.sent(at(0), Side::Opener, &syn).seq, 0);
        let answer = Segment { window_scale: Some(7), ..segment(5000, 0, 1001, Flags::SYN.with(Flags::ACK)) };
        connection.sent(at(10), Side::Acceptor, &answer);
        connection.heard(at(20), Side::Acceptor, &answer);
        connection
    }

    #[test]
    fn numbers_are_relative_and_windows_scaled() {
        let mut connection = opened();
        let sent = connection.sent(at(20), Side::Opener, &segment(1001, 100, 5001, Flags::ACK));
        assert_eq!((sent.seq, sent.ack, sent.window_bytes, sent.retransmission), (1, 1, 500 << 7, false));
        let again = connection.sent(at(300), Side::Opener, &segment(1001, 50, 5001, Flags::ACK));
        assert!(again.retransmission);
        let probe = connection.sent(at(400), Side::Opener, &segment(1100, 0, 5001, Flags::ACK));
        assert!(!probe.retransmission, "nothing is sent again without data");
    }

    #[test]
    fn a_round_trip_is_measured_once_and_not_of_what_was_repeated() {
        let mut connection = opened();
        for (ms, seq) in [(20, 1001), (21, 1101), (22, 1201)] {
            connection.sent(at(ms), Side::Opener, &segment(seq, 100, 5001, Flags::ACK));
        }
        connection.sent(at(200), Side::Opener, &segment(1201, 100, 5001, Flags::ACK));
        let ack = |number| segment(5001, 0, number, Flags::ACK);
        let heard = connection.heard(at(71), Side::Acceptor, &ack(1201));
        assert_eq!(heard.round_trip, Some(Duration::from_millis(50)), "of the last one acknowledged");
        assert_eq!(connection.heard(at(300), Side::Acceptor, &ack(1301)).round_trip, None);
    }

    #[test]
    fn a_duplicate_acknowledgement_is_that_of_the_rfc() {
        let mut connection = opened();
        connection.sent(at(20), Side::Opener, &segment(1001, 100, 5001, Flags::ACK));
        let ack = segment(5001, 0, 1001, Flags::ACK);
        assert!(
            !connection.heard(at(30), Side::Acceptor, &ack).is_duplicate,
            "another window than the SYN's"
        );
        assert!(connection.heard(at(31), Side::Acceptor, &ack).is_duplicate);
        let wider = Segment { window: 600, ..ack };
        assert!(!connection.heard(at(32), Side::Acceptor, &wider).is_duplicate);
        let data = Segment { window: 600, ..segment(5001, 10, 1001, Flags::ACK) };
        assert!(!connection.heard(at(33), Side::Acceptor, &data).is_duplicate);
        let all = segment(5001, 0, 1101, Flags::ACK);
        connection.heard(at(34), Side::Acceptor, &all);
        assert!(!connection.heard(at(35), Side::Acceptor, &all).is_duplicate, "nothing is outstanding");
    }

    #[test]
    fn data_counts_when_it_is_there_in_order() {
        let mut connection = opened();
        for seq in [1001, 1101, 1201] {
            connection.sent(at(20), Side::Opener, &segment(seq, 100, 5001, Flags::ACK));
        }
        connection.sent(at(20), Side::Opener, &segment(1301, 0, 5001, Flags::FIN.with(Flags::ACK)));
        assert_eq!(connection.take_in(Side::Opener, 101, 100), 0);
        assert_eq!(connection.take_in(Side::Opener, 1, 100), 200);
        assert_eq!(connection.take_in(Side::Opener, 1, 100), 200, "again");
        assert!(!connection.is_complete(Side::Opener));
        assert_eq!(connection.take_in(Side::Opener, 201, 101), 300, "the FIN is no data");
        assert!(connection.is_complete(Side::Opener));
    }
}
