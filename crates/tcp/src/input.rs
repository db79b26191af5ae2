//! A segment arrives (RFC 9293 section 3.10.7; resets and stray SYNs by RFC 5961, 2010).

use careof_base::Instant;
use careof_wire::{Flags, Segment};

use crate::connection::Connection;
use crate::events::Event;
use crate::output::Reply;
use crate::sender::{Ack, AckOutcome};
use crate::state::State;

impl Connection {
    /// A segment arrived for this connection.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        self.handle_packet(now, segment, false);
    }

    /// A segment arrived for this connection, in a packet whose IP header may say that it met congestion (the CE
    /// codepoint of RFC 3168).
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, segment: &Segment, congestion_experienced: bool) {
        self.journal.counters.segments_received += 1;
        if self.ordinary && self.foresees(segment) {
            self.on_ordinary(now, segment);
        } else {
            self.handle_general(now, segment, congestion_experienced);
        }
        self.after_input();
    }

    #[inline(never)]
    fn handle_general(&mut self, now: Instant, segment: &Segment, congestion_experienced: bool) {
        self.ordinary = false;
        match self.state {
            State::Closed => self.on_segment_when_closed(segment),
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment(now, segment, congestion_experienced),
        }
    }

    fn on_segment_when_closed(&mut self, segment: &Segment) {
        self.journal.counters.dropped_by_state += 1;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        self.reply = Some(if segment.flags.contains(Flags::ACK) {
            Reply::Reset { seq: segment.ack, ack: None }
        } else {
            Reply::Reset { seq: careof_wire::SeqNumber(0), ack: Some(segment.end_seq()) }
        });
    }

    fn on_segment(&mut self, now: Instant, segment: &Segment, congestion_experienced: bool) {
        let flags = segment.flags;
        if self.timestamps.is_old(now, segment) && !flags.contains(Flags::RST) {
            self.journal.counters.dropped_by_paws += 1;
            if segment.payload_len > 0 && segment.seq.is_before(self.receiver.nxt()) {
                // It is dropped, and reported as the duplicate that it is (Linux, `tcp_send_dupack`).
                let right = segment.seq.plus(u32::from(segment.payload_len));
                self.receiver.queue.note_duplicate(segment.seq, right);
            }
            self.acknowledge_at_once();
            return;
        }
        let acceptable = self.receiver.accepts(segment);
        if !flags.are_of_a_stream() {
            if flags.contains(Flags::RST) {
                self.on_reset(segment, acceptable);
            } else if flags.contains(Flags::SYN) {
                self.on_stray_syn(now, segment);
            } else {
                self.journal.counters.dropped_without_ack += 1;
            }
            return;
        }
        if acceptable {
            self.timestamps.on_segment(now, segment);
        }
        if !self.on_acknowledgement(now, segment, acceptable) {
            return;
        }
        let mut marked = false;
        if self.ecn.on && segment.payload_len > 0 {
            self.journal.counters.marks_received += u64::from(congestion_experienced);
            marked = self.echo.on_data(flags, congestion_experienced);
        }
        if acceptable && segment.seq_len() > 0 {
            self.on_stream(now, segment, marked);
        } else if !acceptable {
            self.on_unacceptable(now, segment);
        }
    }

    /// RFC 5961 section 3: only a reset exactly at `RCV.NXT` is believed.
    fn on_reset(&mut self, segment: &Segment, acceptable: bool) {
        if segment.seq == self.receiver.nxt() {
            // Listening again after a refused SYN is the owner's choice: it makes connections.
            self.finish(if self.state == State::TimeWait { Event::Closed } else { Event::Reset });
        } else {
            self.journal.counters.dropped_challenged += 1;
            if acceptable {
                self.acknowledge_at_once();
            }
        }
    }

    /// A repeated SYN means that its answer was lost; any other is challenged (RFC 5961 section 4).
    fn on_stray_syn(&mut self, now: Instant, segment: &Segment) {
        let repeated = self.state == State::SynReceived && segment.seq.plus(1) == self.receiver.nxt();
        if repeated && !segment.flags.contains(Flags::ACK) {
            // The peer waits for the SYN-ACK, which is lost or late: it is sent at once (Linux, `tcp_check_req`).
            self.sender.resend_front = true;
            return;
        }
        if repeated && segment.ack == self.sender.queue.end() {
            // Both sides opened at once, and this is the other's answer.
            let syn_repeated = self.sender.syn_repeated();
            self.take_ack(now, segment);
            self.become_established(now, syn_repeated);
            return self.acknowledge_at_once();
        }
        self.journal.counters.dropped_challenged += 1;
        self.acknowledge_at_once();
    }

    /// The acknowledgement. Returns whether the rest of the segment is to be looked at.
    fn on_acknowledgement(&mut self, now: Instant, segment: &Segment, acceptable: bool) -> bool {
        if self.state == State::SynReceived {
            let good = acceptable
                && segment.ack == self.sender.queue.end()
                && segment.ack.is_after(self.sender.queue.una());
            if !good {
                self.journal.counters.dropped_by_state += 1;
                if segment.ack != self.sender.queue.end() {
                    self.reply = Some(Reply::Reset { seq: segment.ack, ack: None });
                }
                return false;
            }
            let syn_repeated = self.sender.syn_repeated();
            self.take_ack(now, segment);
            self.become_established(now, syn_repeated);
            return true;
        }
        if self.only_repeats(segment) {
            return true;
        }
        match self.take_ack(now, segment) {
            AckOutcome::OfUnsent => {
                self.acknowledge_at_once();
                false
            }
            AckOutcome::New { fin: true } => {
                self.state = self.state.after_fin_acknowledged();
                match self.state {
                    State::TimeWait => self.enter_time_wait(now),
                    State::Closed => self.finish(Event::Closed),
                    _ => {}
                }
                self.state != State::Closed
            }
            AckOutcome::New { fin: false } | AckOutcome::Nothing => true,
        }
    }

    /// What arrives at the end that only receives mostly says nothing new to its sending half, but for the window, which
    /// is taken. Whether this is such a segment; it has no SYN.
    #[inline]
    fn only_repeats(&mut self, segment: &Segment) -> bool {
        let repeats = segment.ack == self.sender.queue.una()
            && segment.sack.is_empty()
            && !(self.ecn.on && segment.flags.contains(Flags::ECE))
            && self.sender.is_silent();
        if repeats {
            let window = u32::from(segment.window) << self.peer_shift;
            self.sender.on_repetition(segment.seq, segment.ack, window);
            self.journal.revision += 1;
        }
        repeats
    }

    pub(crate) fn take_ack(&mut self, now: Instant, segment: &Segment) -> AckOutcome {
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.peer_shift };
        let window = u32::from(segment.window) << shift;
        let echoes_congestion =
            self.ecn.on && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::SYN);
        let ack = Ack {
            seq: segment.seq,
            ack: segment.ack,
            window,
            pure: segment.seq_len() == 0,
            has_data: segment.payload_len > 0,
            sack: &segment.sack,
            echoed_rtt: self.timestamps.round_trip(now, segment),
            echo: self.timestamps.echo(segment),
            echoes_congestion,
        };
        if self.sender.replaced.is_some() {
            return self.sender.on_ack_of_new_path(now, &ack, &mut self.journal, &self.config);
        }
        let samples = self.journal.counters.rtt_samples;
        let outcome = self.sender.on_ack(now, &ack, &mut self.journal);
        if self.sender.handed_off.is_some() && self.journal.counters.rtt_samples > samples {
            self.follow_hand_off(now);
        }
        outcome
    }

    /// Data and FIN of an acceptable segment.
    fn on_stream(&mut self, now: Instant, segment: &Segment, marked: bool) {
        self.receiver.on_data(now, segment, &self.sender.estimator, marked, &mut self.journal);
        if !self.receiver.finished() || self.peer_closed() {
            return;
        }
        self.journal.tell(Event::PeerClosed);
        self.journal.revision += 1;
        self.state = self.state.after_fin_received();
        if self.state == State::TimeWait {
            self.enter_time_wait(now);
        }
    }

    /// Whether the state already says that the peer has closed.
    fn peer_closed(&self) -> bool {
        matches!(
            self.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
        )
    }

    /// Nothing of the segment is in the window: it is answered, so that the peer learns where it is.
    fn on_unacceptable(&mut self, now: Instant, segment: &Segment) {
        let old = segment.end_seq().is_at_or_before(self.receiver.nxt());
        if segment.payload_len > 0 && old {
            self.receiver.on_data(now, segment, &self.sender.estimator, false, &mut self.journal);
        } else if segment.payload_len > 0 {
            self.journal.counters.dropped_out_of_window += 1;
            self.acknowledge_at_once();
        } else {
            self.acknowledge_at_once();
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            // The acknowledgement of the peer's FIN was lost.
            self.enter_time_wait(now);
        }
    }
}
