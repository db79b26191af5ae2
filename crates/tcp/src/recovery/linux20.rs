//! The sender of Linux 2.0 (2.0.3x, 1997-1999), modelled on what its source does.
//!
//! It counts whole segments, and it differs from all others after a timeout: until *everything* outstanding is
//! acknowledged nothing new is sent, no round trip is measured and the back-off stays. Each acknowledgement that
//! covers something meanwhile sends the following segments again, at least one, as far as the window goes.
//! The timer belongs to the first outstanding segment and counts from when that one was sent last; where an
//! acknowledgement uncovers a segment that is overdue, it fires two jiffies later. The threshold is half the
//! window at a timeout, 1 and 0 included, and congestion avoidance adds a segment for each cwnd + 1
//! acknowledgements.
//!
//! Fast retransmit exists but asks for duplicates that carry data
//! ([`crate::Config::linux20_fast_retransmit`]).
//!
//! Left out: a window of the peer that shrinks (2.0 moves segments back to its write queue), its partial
//! packets held for up to a second, keep-alives, and the window of zero segments that a timeout within a fast
//! recovery could leave behind.

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::Event;
use crate::config::{Config, IdleRestart};
use crate::events::Journal;
use crate::rto::Sample;
use crate::send_queue::{Acknowledged, Marks};
use crate::sender::{Ack, Outgoing, Sender};
use crate::snapshot::Phase;

/// The window stops growing here.
const MOST_SEGMENTS: u32 = 2_048;
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// What is to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    /// One segment. `counted` in `packets_out`, except by a fast retransmit.
    One {
        counted: bool,
    },
    /// One, and more while the window is not full.
    Window,
}

#[derive(Clone, Debug)]
pub(crate) struct Linux20 {
    /// Segments.
    cwnd: u32,
    ssthresh: u32,
    /// Acknowledgements since the window grew in congestion avoidance.
    count: u32,
    packets_out: u32,
    /// Timeouts since everything was acknowledged.
    retransmits: u32,
    /// What was sent when something was last sent again after a timeout.
    high_seq: SeqNumber,
    /// The acknowledgement `una` came this many times, the first included.
    ack_count: u32,
    /// Right edge of the peer's window.
    edge: SeqNumber,
    /// Index of the record that is sent again next.
    send_next: usize,
    again: Again,
    /// The path narrowed, and not everything that was too large has been sent again.
    narrowed: bool,
    last_heard: Instant,
}

impl Linux20 {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let mss = u32::from(config.mss);
        let segments = |bytes: u32| if bytes == u32::MAX { NO_THRESHOLD } else { bytes / mss.max(1) };
        Self {
            cwnd: segments(config.initial_window.bytes(mss)).max(1),
            ssthresh: segments(config.initial_ssthresh),
            count: 0,
            packets_out: 0,
            retransmits: 0,
            high_seq: iss,
            ack_count: 0,
            edge: iss,
            send_next: 0,
            again: Again::No,
            narrowed: false,
            last_heard: Instant::ZERO,
        }
    }

    /// Congestion window, segments.
    pub(crate) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Slow start threshold, segments; `None` is no threshold.
    pub(crate) fn ssthresh(&self) -> Option<u32> {
        (self.ssthresh != NO_THRESHOLD).then_some(self.ssthresh)
    }

    /// Sets the window, at least one segment, and the threshold, `ssthresh` bytes.
    pub(crate) fn set_window(&mut self, cwnd: u32, ssthresh: u32, mss: u32) {
        self.cwnd = cwnd.clamp(1, MOST_SEGMENTS);
        self.ssthresh = if ssthresh == u32::MAX { NO_THRESHOLD } else { ssthresh / mss.max(1) };
        self.count = 0;
    }

    pub(crate) fn phase(&self, threshold: u32) -> Phase {
        if self.retransmits > 0 {
            Phase::Loss
        } else if self.ack_count > threshold {
            Phase::FastRecovery
        } else {
            Phase::Open
        }
    }

    fn grow(&mut self) {
        if self.cwnd >= MOST_SEGMENTS {
            return;
        }
        if self.cwnd <= self.ssthresh {
            self.cwnd += 1;
        } else if self.count >= self.cwnd {
            self.cwnd += 1;
            self.count = 0;
        } else {
            self.count += 1;
        }
    }
}

/// Any acknowledgement that is not older than the last, new or not.
pub(crate) fn on_ack(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    journal: &mut Journal,
) -> Acknowledged {
    let new = ack.ack.is_after(sender.queue.una());
    let edge = ack.ack.plus(ack.window);
    sender.linux20.last_heard = now;
    if sender.queue.is_empty() {
        sender.linux20.packets_out = 0;
        sender.linux20.send_next = 0;
    } else if new {
        sender.linux20.grow();
    }
    let counts = if sender.rules.linux20_fast_retransmit { ack.pure } else { ack.has_data };
    let duplicate = !new
        && counts
        && edge == sender.linux20.edge
        && !sender.queue.is_empty()
        && ack.ack.is_after(sender.linux20.high_seq);
    if duplicate {
        on_duplicate_ack(sender, journal);
    } else {
        let state = &mut sender.linux20;
        if state.ack_count > sender.rules.threshold {
            state.cwnd = state.ssthresh.max(1);
        }
        state.edge = edge;
        state.ack_count = 1;
    }
    let (done, while_retransmitting) = take(sender, now, ack.ack, journal);
    if let Some(front) = sender.queue.front() {
        sender.timer.arm(sender.estimator.deadline_of_segment(front.sent_at, now));
        let repairing = while_retransmitting && sender.linux20.retransmits > 0;
        if repairing || new && sender.linux20.narrowed {
            sender.linux20.again = Again::Window;
        }
    } else {
        sender.timer.stop();
    }
    sender.duplicate_acks = sender.linux20.ack_count.saturating_sub(1);
    sender.phase = sender.linux20.phase(sender.rules.threshold);
    done
}

fn on_duplicate_ack(sender: &mut Sender, journal: &mut Journal) {
    let threshold = sender.rules.threshold;
    let state = &mut sender.linux20;
    // A window of fewer than three segments cannot give three duplicates for one loss.
    if state.cwnd >= 3 || state.ack_count > threshold + 1 {
        state.ack_count = state.ack_count.saturating_add(1);
    }
    if state.ack_count == threshold + 1 {
        state.ssthresh = (state.cwnd >> 1).max(2);
        state.cwnd = state.ssthresh + threshold + 1;
        state.send_next = 0;
        state.again = Again::One { counted: false };
        journal.counters.fast_retransmits += 1;
        journal.tell(Event::FastRetransmit { seq: sender.queue.una() });
    } else if state.ack_count > threshold + 1 {
        state.cwnd = state.cwnd.saturating_add(1).min(MOST_SEGMENTS);
    }
}

/// Takes what `ack` covers off the queue. Every segment of it is a round-trip sample, unless a timeout is
/// being repaired.
fn take(sender: &mut Sender, now: Instant, ack: SeqNumber, journal: &mut Journal) -> (Acknowledged, bool) {
    let mut done = Acknowledged::default();
    let mut while_retransmitting = false;
    while let Some(record) = sender.queue.pop_acknowledged(ack) {
        done.bytes += u32::from(record.len);
        done.newest_sent_at = Some(record.sent_at);
        done.repeated |= record.transmissions > 1;
        done.syn |= record.marks.has(Marks::SYN);
        done.fin |= record.marks.has(Marks::FIN);
        while_retransmitting |= sender.linux20.retransmits > 0;
        if sender.queue.is_empty() {
            sender.linux20.retransmits = 0;
            sender.linux20.narrowed = false;
        }
        sender.linux20.send_next = sender.linux20.send_next.saturating_sub(1);
        sender.linux20.packets_out = sender.linux20.packets_out.saturating_sub(1);
        if !while_retransmitting {
            journal.sampled(now - record.sent_at);
            sender.estimator.sample(&Sample {
                sent_at: record.sent_at,
                now,
                snd_una: ack,
                snd_nxt: sender.queue.end(),
                expected: 1,
                cwnd_segments: sender.linux20.cwnd,
            });
        }
    }
    done.bytes += sender.queue.acknowledge_part(ack);
    journal.counters.bytes_acked += u64::from(done.bytes);
    (done, while_retransmitting)
}

pub(crate) fn on_timeout(sender: &mut Sender) {
    let state = &mut sender.linux20;
    state.ssthresh = state.cwnd >> 1;
    state.count = 0;
    state.cwnd = 1;
    state.retransmits = state.retransmits.saturating_add(1);
    state.send_next = 0;
    state.packets_out = 0;
    state.again = Again::One { counted: true };
    state.narrowed = false;
    sender.phase = Phase::Loss;
}

/// The path narrowed: from the front, as after a timeout, but the window stays.
pub(crate) fn send_all_again(sender: &mut Sender) {
    sender.linux20.send_next = 0;
    sender.linux20.packets_out = 0;
    sender.linux20.again = Again::Window;
    sender.linux20.narrowed = true;
}

pub(crate) fn next(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    if let Some(out) = resend(sender, now) {
        return Some(out);
    }
    restart_after_idle(sender, now);
    let state = &sender.linux20;
    if state.retransmits > 0 || state.narrowed || state.packets_out >= state.cwnd {
        return None;
    }
    // The count of segments stands for the congestion window.
    let out = sender.new_segment(now, 0, 0)?;
    sender.linux20.packets_out += 1;
    Some(out)
}

/// What is to be sent again, one segment a call.
pub(crate) fn resend(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let again = sender.linux20.again;
    if again == Again::No {
        return None;
    }
    let Some(out) = sender.resend(sender.linux20.send_next, now) else {
        sender.linux20.again = Again::No;
        sender.linux20.narrowed = false;
        return None;
    };
    let end = sender.queue.end();
    let more = sender.queue.record(sender.linux20.send_next + 1).is_some();
    let state = &mut sender.linux20;
    state.send_next += 1;
    state.narrowed &= more;
    if again != (Again::One { counted: false }) {
        state.packets_out += 1;
    }
    if state.retransmits > 0 {
        state.high_seq = end;
    }
    if again != Again::Window || state.packets_out >= state.cwnd {
        state.again = Again::No;
    }
    Some(out)
}

/// A sender that has nothing outstanding and has heard nothing for an RTO starts over with one segment.
fn restart_after_idle(sender: &mut Sender, now: Instant) {
    let idle =
        sender.idle_restart() != IdleRestart::Off && sender.queue.is_empty() && sender.queue.unsent() > 0;
    if idle && now - sender.linux20.last_heard > sender.estimator.rto() {
        sender.linux20.cwnd = 1;
    }
}
