//! The ordinary case, told apart early and once: the middle of a transfer, where nothing is lost, repeated, held back or
//! about to end, and the segment that arrives is the next in order or acknowledges what is new.
//!
//! The idea is header prediction (V. Jacobson, "4BSD TCP Header Prediction", ACM Computer Communication Review 20(2),
//! 1990). [`Connection::is_ordinary`] is asked when everything that could be sent has been, and holds until anything
//! happens that is not foreseen here; then all the questions that the general way asks of every segment are answered
//! already. What is done is the same as there, bit for bit, and where it is more than a line it is the same code:
//! `tests/ordinary.rs` drives two connections side by side, one of which never takes this way.

use careof_base::Instant;
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber};

use crate::config::{DelayedAck, Variant};
use crate::connection::{Connection, Sending};
use crate::delayed_ack::{Acknowledger, Due};
use crate::receiver::Receiver;
use crate::recovery::frto::Frto;
use crate::rto::Sampling;
use crate::send_queue::SendQueue;
use crate::sender::Sender;
use crate::snapshot::Phase;
use crate::state::State;

impl Connection {
    /// Whether nothing but the ordinary is under way. To be asked when there is nothing to send.
    pub(crate) fn is_ordinary(&self) -> bool {
        #[cfg(test)]
        if self.always_general {
            return false;
        }
        self.state == State::Established
            && self.reply.is_none()
            && !self.timestamps.on
            && !self.ecn.on
            && !(self.config.dsack && self.receiver.queue.has_duplicate())
            && self.sender.is_ordinary()
            && self.receiver.is_ordinary()
    }

    /// Whether an ordinary connection takes this segment in the ordinary way: it lies in the window, where it is awaited,
    /// and acknowledges something between the last acknowledgement and the last byte sent.
    #[inline]
    pub(crate) fn foresees(&self, segment: &Segment) -> bool {
        let queue = &self.sender.queue;
        let (len, nxt) = (u32::from(segment.payload_len), self.receiver.queue.nxt());
        let advance = segment.ack.0.wrapping_sub(queue.una().0);
        segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == nxt
            && advance <= queue.outstanding()
            && (advance > 0 || len > 0)
            && len <= self.receiver.window.edge().bytes_since(nxt)
            && segment.sack.is_empty()
    }

    /// Takes a segment that was [foreseen](Self::foresees).
    #[inline]
    pub(crate) fn on_ordinary(&mut self, now: Instant, segment: &Segment) {
        let window = u32::from(segment.window) << self.peer_shift;
        self.sender.on_repetition(segment.seq, segment.ack, window);
        if segment.ack != self.sender.queue.una() {
            self.sender.advance_ordinarily(now, segment.ack, &mut self.journal);
        }
        self.journal.revision += 1;
        if segment.payload_len > 0 {
            self.receiver.on_ordinary_data(now, segment.payload_len);
        }
    }

    /// The next segment of an ordinary connection: new data, or an acknowledgement that is due.
    #[inline(always)]
    pub(crate) fn next_ordinary<'a>(
        &mut self,
        now: Instant,
        place: impl FnOnce() -> &'a mut Segment,
    ) -> Option<Sending> {
        let unsent = self.sender.queue.unsent();
        let (seq, mut flags, len) = if unsent == 0 {
            if self.receiver.acks.due() == Due::No {
                return None;
            }
            (self.sender.queue.end(), Flags::ACK, 0)
        } else if self.sender.queue.is_empty() {
            // After an idle time, or for the first time, more is to be thought of; and where the window is closed.
            return Some(self.next_general(now)?.put(place()));
        } else {
            match self.sender.send_ordinary(now, unsent, &mut self.journal) {
                Some((seq, len)) => (seq, Flags::ACK, len),
                None if self.receiver.acks.due() == Due::No => return None,
                None => (self.sender.queue.end(), Flags::ACK, 0),
            }
        };
        if len == 0 {
            self.journal.counters.acks_sent += 1;
        } else if self.sender.queue.unsent() == 0 {
            flags = flags.with(Flags::PSH);
        }
        self.journal.counters.segments_sent += 1;
        *place() = Segment {
            source_port: self.local_port,
            destination_port: self.remote_port,
            seq,
            ack: self.receiver.nxt(),
            flags,
            window: self.receiver.advertise(false),
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            sack: SackBlocks::EMPTY,
            payload_len: len,
        };
        self.receiver.acks.settled();
        Some(Sending {
            header_len: Segment::HEADER_LEN,
            retransmission: false,
            probe: false,
            ecn_capable: false,
        })
    }
}

impl Sender {
    /// Whether it only sends new data, as the windows allow, and takes acknowledgements of it one after the other.
    fn is_ordinary(&self) -> bool {
        self.is_plain()
            && self.may_send()
            && self.phase == Phase::Open
            && matches!(self.variant, Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack)
            && !self.resend_front
            && self.duplicate_acks == 0
            && self.limited == 0
            && self.credited == 0
            && !self.persist.is_busy()
            && self.prr.is_none()
            && self.frto == Frto::Off
            && self.rack_tlp.is_none()
            && self.replaced.is_none()
            && self.handed_off.is_none()
            && !self.rules.judges()
            && self.estimator.sampling() != Sampling::EverySegment
            && self.queue.is_ordinary()
    }

    /// Sends new data while something is outstanding, if both windows allow: where it begins, and how much.
    #[inline(always)]
    fn send_ordinary(
        &mut self,
        now: Instant,
        unsent: u64,
        journal: &mut crate::events::Journal,
    ) -> Option<(SeqNumber, u16)> {
        let outstanding = self.queue.outstanding();
        let len = self.new_data(unsent, outstanding, outstanding, 0)?;
        let seq = self.queue.end();
        self.queue.push_data(now, len);
        journal.counters.bytes_sent += u64::from(len);
        journal.revision += 1;
        self.note_departure(now);
        Some((seq, len))
    }
}

impl SendQueue {
    /// Whether nothing is repeated, reported or finished: the next segment is new.
    fn is_ordinary(&self) -> bool {
        self.at_end() && self.is_unfinished() && self.delivery.is_none() && self.scoreboard.is_blank()
    }
}

impl Receiver {
    /// Whether it has everything in order up to the last byte, which was read at once, and more may come.
    fn is_ordinary(&self) -> bool {
        self.is_unfinished() && self.reads_at_once() && !self.queue.has_islands() && self.acks.is_ordinary()
    }

    /// Takes data that lies in the window and is the next in order.
    #[inline]
    fn on_ordinary_data(&mut self, now: Instant, len: u16) {
        self.queue.append(u32::from(len));
        self.acks.on_next(now);
        self.deliver(u64::from(len));
    }
}

impl Acknowledger {
    fn is_ordinary(&self) -> bool {
        matches!(self.policy(), DelayedAck::Off | DelayedAck::Every2 { .. }) && self.due() == Due::No
    }
}
