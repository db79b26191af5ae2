//! Opening a connection (RFC 9293 section 3.5) and the options its SYNs carry: maximum segment size
//! (RFC 6691), window scale (RFC 7323 section 2), SACK permitted (RFC 2018 section 2), timestamps (RFC 7323
//! section 3).

use careof_base::Instant;
use careof_wire::{Flags, Segment};

use crate::config::MIN_MSS;
use crate::connection::{Connection, Role};
use crate::delayed_ack::Due;
use crate::events::Event;
use crate::output::Reply;
use crate::receive_window::ReceiveWindow;
use crate::state::State;

/// The segment size assumed of a peer that names none (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The greatest shift (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;

impl Connection {
    /// Opens the connection: the active side sends a SYN, the passive one waits for it.
    pub fn open(&mut self, _now: Instant) {
        self.ordinary = false;
        if self.state != State::Closed {
            return;
        }
        match self.role {
            Role::Active => {
                self.state = State::SynSent;
                self.sender.want_syn();
            }
            Role::Passive => self.state = State::Listen,
        }
    }

    pub(crate) fn on_segment_in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            self.journal.counters.dropped_by_state += 1;
        } else if segment.flags.contains(Flags::ACK) {
            self.journal.counters.dropped_by_state += 1;
            self.reply = Some(Reply::Reset { seq: segment.ack, ack: None });
        } else if segment.flags.contains(Flags::SYN) {
            self.negotiate(now, segment);
            self.state = State::SynReceived;
            self.sender.want_syn();
        } else {
            self.journal.counters.dropped_by_state += 1;
        }
    }

    pub(crate) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let has_ack = segment.flags.contains(Flags::ACK);
        let acks_syn = has_ack && segment.ack == self.sender.queue.end() && !self.sender.queue.is_empty();
        if has_ack && !acks_syn {
            self.journal.counters.dropped_by_state += 1;
            if !segment.flags.contains(Flags::RST) {
                self.reply = Some(Reply::Reset { seq: segment.ack, ack: None });
            }
            return;
        }
        if segment.flags.contains(Flags::RST) {
            if acks_syn {
                self.finish(Event::Reset);
            } else {
                self.journal.counters.dropped_by_state += 1;
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            self.journal.counters.dropped_by_state += 1;
            return;
        }
        self.negotiate(now, segment);
        if acks_syn {
            let syn_repeated = self.sender.syn_repeated();
            self.take_ack(now, segment);
            self.become_established(now, syn_repeated);
            self.receiver.acks.owe(Due::Soon);
        } else {
            // Both sides opened at once: the SYN is repeated, with an acknowledgement.
            self.state = State::SynReceived;
            self.sender.resend_front = true;
        }
    }

    pub(crate) fn become_established(&mut self, now: Instant, syn_repeated: bool) {
        self.state = State::Established;
        self.sender.connected(now, syn_repeated);
        self.journal.revision += 1;
        self.journal.tell(Event::Connected);
    }

    /// The peer's SYN: what it offers is used where this end offers it too. A segment size below [`MIN_MSS`]
    /// is not followed: no room would be left beside the options.
    fn negotiate(&mut self, now: Instant, segment: &Segment) {
        let mss = segment.mss.unwrap_or(DEFAULT_MSS).max(MIN_MSS);
        self.segment_limit = self.segment_limit.min(mss);
        self.sack = self.config.sack && segment.sack_permitted;
        self.scaling = self.config.window_scaling && segment.window_scale.is_some();
        self.peer_shift = if self.scaling { segment.window_scale.unwrap_or(0).min(MAX_SHIFT) } else { 0 };
        let own_shift = if self.scaling { ReceiveWindow::shift_for(self.config.receive_window) } else { 0 };
        self.timestamps.begin(now, self.config.timestamps, segment);
        self.ecn.begin(self.config.ecn, segment);
        let effective = self.effective_mss();
        self.receiver.begin(segment.seq, own_shift, effective, self.config.sack_compression && self.sack);
        self.sender.negotiated(&self.config, effective, self.sack);
        // The window of a SYN is never scaled.
        self.sender.set_peer_window(segment.seq, u32::from(segment.window));
    }

    /// Adds the options of a SYN or SYN-ACK.
    pub(crate) fn add_syn_options(&self, segment: &mut Segment) {
        let reply = self.state == State::SynReceived;
        let config = &self.config;
        segment.mss = Some(config.mss);
        // A reply only takes up what was offered.
        segment.sack_permitted = config.sack && (!reply || self.sack);
        let scaling = config.window_scaling && (!reply || self.scaling);
        segment.window_scale = scaling.then(|| ReceiveWindow::shift_for(config.receive_window));
    }
}
