//! The receiving half: takes data in, and knows what to acknowledge and how much room there is.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, Segment, SeqNumber};

use crate::config::{Config, DelayedAck};
use crate::delayed_ack::{Acknowledger, Due, Received};
use crate::events::Journal;
use crate::receive_queue::{Arrival, ReceiveQueue};
use crate::receive_window::ReceiveWindow;
use crate::rto::Estimator;

/// What an ordinary segment touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    pub(crate) queue: ReceiveQueue,
    /// Bytes of data in order.
    received: u64,
    unread: u64,
    pub(crate) window: ReceiveWindow,
    pub(crate) acks: Acknowledger,

    mss: u32,
    auto_read: bool,
    /// Sequence number of the peer's FIN, once one has arrived.
    fin: Option<SeqNumber>,
    finished: bool,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            queue: ReceiveQueue::new(SeqNumber(0)),
            window: ReceiveWindow::new(
                config.receive_window,
                u32::from(config.mss),
                config.delayed_ack == DelayedAck::Linux,
            ),
            acks: Acknowledger::new(config.delayed_ack),
            mss: u32::from(config.mss),
            auto_read: true,
            received: 0,
            unread: 0,
            fin: None,
            finished: false,
        }
    }

    /// The peer's SYN arrived with sequence number `irs`; its segments will carry `mss` bytes. `compress`: see
    /// [`Config::sack_compression`].
    pub(crate) fn begin(&mut self, irs: SeqNumber, shift: u8, mss: u32, compress: bool) {
        self.mss = mss;
        self.acks.compress(compress);
        self.queue = ReceiveQueue::new(irs.plus(1));
        self.window.begin(irs.plus(1), shift, mss);
    }

    pub(crate) fn nxt(&self) -> SeqNumber {
        self.queue.nxt()
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn available(&self) -> u64 {
        self.unread
    }

    /// Whether the peer's FIN was reached.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// RFC 9293 section 3.4: whether some of the segment lies in the window.
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        let (nxt, edge) = (self.nxt(), self.window.edge());
        let len = segment.seq_len();
        // A window that is closed still takes what stands just at its edge.
        let starts_within = segment.seq.is_at_or_after(nxt)
            && (segment.seq.is_before(edge) || (segment.seq == nxt && segment.payload_len == 0));
        if len == 0 {
            return starts_within || segment.seq == nxt;
        }
        starts_within || (segment.seq.is_before(nxt) && segment.end_seq().is_after(nxt))
    }

    /// Takes the data and the FIN of a segment that [`Receiver::accepts`], or of a duplicate.
    /// `estimator` is this end's; `marked` tells of a segment that met congestion.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        estimator: &Estimator,
        marked: bool,
        journal: &mut Journal,
    ) {
        let len = u32::from(segment.payload_len);
        if self.finished {
            // Nothing follows a FIN.
            if len > 0 {
                self.queue.note_duplicate(segment.seq, segment.seq.plus(len));
            }
            journal.counters.duplicate_segments_received += u64::from(len > 0);
            self.acks.owe(Due::Alone);
            return;
        }
        let mut right = segment.seq.plus(len);
        // A FIN below what has arrived contradicts what the peer sent before.
        let mut fin = segment.flags.contains(Flags::FIN) && right.is_at_or_after(self.nxt());
        let edge = self.window.edge();
        if right.is_after(edge) {
            right = edge;
            fin = false;
        }
        if fin {
            self.fin = Some(right);
            right = right.plus(1);
        }
        if !segment.seq.is_before(right) {
            // All of it lies beyond the window.
            journal.counters.dropped_out_of_window += 1;
            self.acks.owe(Due::Alone);
            return;
        }
        let before = self.nxt();
        let arrival = self.queue.insert(segment.seq, right);
        let mut fresh = self.nxt().bytes_since(before);
        if len > 0 {
            journal.counters.duplicate_segments_received += u64::from(arrival == Arrival::Duplicate);
            journal.counters.out_of_order_segments_received += u64::from(arrival == Arrival::OutOfOrder);
        }
        let (rto, srtt) =
            if self.acks.is_timed() { (estimator.rto(), estimator.srtt()) } else { (Duration::ZERO, None) };
        let received = Received {
            arrival,
            len,
            nxt: self.nxt(),
            push: segment.flags.contains(Flags::PSH),
            fin,
            marked,
            islands: self.queue.has_islands(),
            mss: self.mss,
            window: self.window.edge().bytes_since(before),
            reads: self.auto_read,
            rto,
            srtt,
        };
        self.acks.on_data(now, &received);
        if let Some(fin) = self.fin
            && self.nxt().is_after(fin)
        {
            self.finished = true;
            fresh = fresh.saturating_sub(1);
            self.acks.owe(Due::Soon);
        }
        self.received += u64::from(fresh);
        if !self.auto_read {
            self.unread += u64::from(fresh);
        }
    }

    /// Whether no FIN has arrived, in order or not.
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.finished && self.fin.is_none()
    }

    /// Whether what arrives is read at once, and all of it was.
    pub(crate) fn reads_at_once(&self) -> bool {
        self.auto_read && self.unread == 0
    }

    /// So much more is in order, and read at once.
    pub(crate) fn deliver(&mut self, bytes: u64) {
        self.received += bytes;
    }

    pub(crate) fn set_auto_read(&mut self, on: bool) {
        self.auto_read = on;
        if on {
            self.read(u64::MAX);
        }
    }

    /// Takes up to `bytes` out of the buffer; an update of the window follows if it opens enough.
    pub(crate) fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.unread);
        self.unread -= taken;
        if taken > 0 && self.window.wants_update(self.nxt(), self.unread) {
            self.acks.owe(Due::Soon);
        }
        taken
    }

    /// The window field for a segment about to be sent.
    pub(crate) fn advertise(&mut self, in_syn: bool) -> u16 {
        self.window.advertise(self.queue.nxt(), self.unread, in_syn)
    }
}
