//! What to put on the wire next.

use careof_base::Instant;
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber, Timestamps};

use crate::connection::{Connection, Sending, Transmission};
use crate::delayed_ack::Due;
use crate::ecn::Negotiation;
use crate::send_queue::Marks;
use crate::sender::Outgoing;
use crate::state::State;
use crate::timestamps;

/// A segment outside of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A reset, with an acknowledgement where `ack` is given.
    Reset { seq: SeqNumber, ack: Option<SeqNumber> },
}

/// Bytes of the SACK option around its blocks.
const SACK_OPTION: u16 = 4;
const SACK_BLOCK: u16 = 8;

impl Connection {
    /// The next segment to send, or `None` when there is nothing to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmission> {
        let mut segment = Segment::default();
        let Sending { retransmission, probe, ecn_capable, .. } =
            self.poll_transmit_into(now, || &mut segment)?;
        Some(Transmission { segment, retransmission, probe, ecn_capable })
    }

    /// [`poll_transmit`](Self::poll_transmit) for those who have a place for the segment: it is written there. `place`
    /// is asked for it once there is one.
    #[inline(always)]
    pub fn poll_transmit_into<'a>(
        &mut self,
        now: Instant,
        place: impl FnOnce() -> &'a mut Segment,
    ) -> Option<Sending> {
        if self.ordinary {
            return self.next_ordinary(now, place);
        }
        Some(self.next_general(now)?.put(place()))
    }

    #[inline(never)]
    pub(crate) fn next_general(&mut self, now: Instant) -> Option<Transmission> {
        self.ordinary = false;
        let rests = self.state.is_synchronized()
            && self.reply.is_none()
            && self.receiver.acks.due() == Due::No
            && self.sender.is_silent();
        let next = if rests { None } else { self.next_transmission(now) };
        if next.is_none() {
            self.ordinary = self.is_ordinary();
            self.after_last_transmission();
        }
        next
    }

    fn next_transmission(&mut self, now: Instant) -> Option<Transmission> {
        if let Some(reply) = self.reply.take() {
            return Some(self.reset(reply));
        }
        match self.state {
            State::Closed | State::Listen => return None,
            // An acknowledgement that the peer may count goes first, and alone.
            State::SynSent | State::SynReceived => {}
            _ if self.receiver.acks.due() == Due::Alone => return Some(self.acknowledgement(now)),
            _ => {}
        }
        if self.state != State::TimeWait
            && let Some(out) = self.sender.poll(now, &mut self.journal)
        {
            return Some(self.stream(now, &out));
        }
        let synchronized = self.state.is_synchronized();
        (synchronized && self.receiver.acks.due() != Due::No).then(|| self.acknowledgement(now))
    }

    fn blank(&self) -> Segment {
        Segment { source_port: self.local_port, destination_port: self.remote_port, ..Segment::default() }
    }

    fn reset(&mut self, reply: Reply) -> Transmission {
        let Reply::Reset { seq, ack } = reply;
        let flags = if ack.is_some() { Flags::RST.with(Flags::ACK) } else { Flags::RST };
        self.journal.counters.resets_sent += 1;
        self.journal.counters.segments_sent += 1;
        let segment = Segment { seq, ack: ack.unwrap_or_default(), flags, ..self.blank() };
        Transmission { segment, retransmission: false, probe: false, ecn_capable: false }
    }

    /// A segment that only acknowledges. It carries the highest sequence number sent, so that the peer takes it
    /// also while older data is being sent again.
    #[inline(never)]
    fn acknowledgement(&mut self, now: Instant) -> Transmission {
        self.journal.counters.acks_sent += 1;
        let mut segment = Segment { seq: self.sender.queue.end(), ..self.blank() };
        self.complete(now, &mut segment);
        Transmission { segment, retransmission: false, probe: false, ecn_capable: false }
    }

    /// A segment of the stream: SYN, data, FIN or probe.
    fn stream(&mut self, now: Instant, out: &Outgoing) -> Transmission {
        let mut segment = Segment { seq: out.seq, payload_len: out.len, ..self.blank() };
        if out.marks.has(Marks::SYN) {
            segment.flags = Flags::SYN.with(self.ecn_of_syn());
            self.add_syn_options(&mut segment);
        } else if out.push && out.len > 0 {
            segment.flags = Flags::PSH;
        }
        if out.marks.has(Marks::FIN) {
            segment.flags = segment.flags.with(Flags::FIN);
            self.state = self.state.after_fin_sent();
        }
        let ecn_capable = self.ecn.on && out.len > 0 && !out.retransmission && !out.probe;
        if ecn_capable && self.sender.ecn.take_cwr() {
            segment.flags = segment.flags.with(Flags::CWR);
        }
        self.complete(now, &mut segment);
        Transmission { segment, retransmission: out.retransmission, probe: out.probe, ecn_capable }
    }

    fn ecn_of_syn(&self) -> Flags {
        match self.state {
            State::SynSent if self.config.ecn => Negotiation::OFFER,
            State::SynReceived if self.ecn.on => Negotiation::ACCEPTANCE,
            _ => Flags::default(),
        }
    }

    /// Acknowledgement, window and options.
    #[inline(always)]
    fn complete(&mut self, now: Instant, segment: &mut Segment) {
        self.journal.counters.segments_sent += 1;
        let is_syn = segment.flags.contains(Flags::SYN);
        if self.state == State::SynSent {
            segment.window = u16::try_from(self.config.receive_window).unwrap_or(u16::MAX);
            segment.timestamps =
                self.config.timestamps.then(|| Timestamps { value: timestamps::clock(now), echo: 0 });
            return;
        }
        segment.flags = segment.flags.with(Flags::ACK);
        if self.ecn.on && !is_syn && self.echo.is_due() {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        segment.ack = self.receiver.nxt();
        segment.window = self.receiver.advertise(is_syn);
        segment.timestamps = self.timestamps.option(now, segment.ack);
        let duplicate = self.config.dsack && self.receiver.queue.has_duplicate();
        if self.sack && !is_syn && (duplicate || self.receiver.queue.has_islands()) {
            segment.sack = self.sack_blocks(segment.payload_len);
        }
        self.receiver.acks.sent(now, segment.payload_len > 0);
    }

    /// As many blocks as the segment has room for beside its data.
    fn sack_blocks(&mut self, payload_len: u16) -> SackBlocks {
        let timestamps = if self.timestamps.on { 12 } else { 0 };
        let room = self.segment_limit.saturating_sub(payload_len + timestamps).min(40 - timestamps);
        let most = room.saturating_sub(SACK_OPTION) / SACK_BLOCK;
        let duplicate =
            if self.config.dsack && most > 0 { self.receiver.queue.take_duplicate() } else { None };
        self.receiver.queue.sack_blocks(usize::from(most), duplicate)
    }
}
