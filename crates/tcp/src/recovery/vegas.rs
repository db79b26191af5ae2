//! Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", 1995) as ns-2.35's
//! `Agent/TCP/Vegas` has it: both the congestion avoidance and the earlier retransmissions.
//!
//! Once a round trip the sender compares what is in flight with what would be if every round trip were the
//! shortest one seen; the difference is what waits in queues. It keeps that between [`ALPHA`] and [`BETA`] segments, and
//! doubles the window only every other round trip until [`GAMMA`] segments wait. Every segment has its own send time:
//! the first duplicate acknowledgement of a segment that is older than a fine-grained timeout repeats it, and so do the
//! first two acknowledgements after a retransmission. A loss cuts the window by a quarter (by half when the segment was
//! lost again), and not at all if it was cut since that segment left.
//!
//! Kept from ns-2 because who compares with it sees them: a fast retransmit backs the coarse timer off; the window stays
//! inflated by three segments where exactly three duplicates came; a timeout begins with two segments. Left out: its
//! look at the send time of a segment that was never sent, when everything is acknowledged after a retransmission, which
//! sends that segment twice. The paper's own text was not read for this.
//!
//! The window is a floating-point number of segments, as there: whether W steps of 1/W make a segment is a matter of
//! rounding, and that decides with which acknowledgement the next segment leaves.

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::events::Journal;
use crate::send_queue::Acknowledged;
use crate::sender::Sender;
use crate::snapshot::Phase;

/// Segments in queues, in halves of a segment: below the first the window grows, from the second on it shrinks,
/// from the third on slow start ends. ns-2 rounds to whole segments, so that its 1, 3 and 1 begin there.
const ALPHA: i128 = 1;
const BETA: i128 = 7;
const GAMMA: i128 = 3;

/// Acknowledgements after a retransmission that look at the clock.
const WORRIED: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    /// The shortest round trip, nanoseconds.
    base_rtt: Option<u64>,
    /// What had left by then gives no round trip.
    since: Option<Instant>,
    /// Average round trip times 8 and its deviation times 4, nanoseconds.
    average: i64,
    deviation: i64,
    /// The fine-grained timeout, nanoseconds.
    timeout: u64,
    /// Round trips measured since the last comparison.
    sum: u64,
    count: u64,
    /// The next comparison is due when the segment that begins here is acknowledged.
    mark: SeqNumber,
    marked_at: Instant,
    /// The window in segments, and the bytes it was written down as.
    cwnd: f64,
    written: u32,
    /// What an acknowledgement adds to the window until the next comparison, segments.
    growth: f64,
    /// The present round trip is one in which slow start may grow.
    opens: bool,
    /// Acknowledgements that still look at the clock.
    worried: u32,
    /// The window after the last cut, without what duplicates added, bytes.
    reduced: u32,
    /// When the window was cut last.
    cut_at: Option<Instant>,
    /// The last cut was a timeout's.
    timed_out: bool,
}

impl Vegas {
    pub(crate) fn new(iss: SeqNumber) -> Self {
        Self {
            base_rtt: None,
            since: None,
            average: 0,
            deviation: 0,
            timeout: u64::MAX,
            sum: 0,
            count: 0,
            mark: iss,
            marked_at: Instant::ZERO,
            cwnd: 0.0,
            written: 0,
            growth: 0.0,
            opens: false,
            worried: 0,
            reduced: 0,
            cut_at: None,
            timed_out: false,
        }
    }

    /// Takes a round trip in.
    fn sample(&mut self, rtt: u64) {
        if rtt == 0 {
            return;
        }
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        let rtt = i64::try_from(rtt).unwrap_or(i64::MAX >> 4).min(i64::MAX >> 4);
        if self.average == 0 {
            self.average = 8 * rtt;
            self.deviation = rtt;
            self.set_timeout(0);
        } else {
            let error = rtt - self.average / 8;
            self.average += error;
            self.deviation += error.abs() - self.deviation / 4;
            self.set_timeout(16);
        }
    }

    /// The average and twice the deviation, and one part in `margin` more.
    fn set_timeout(&mut self, margin: i64) {
        let span = (self.average / 4 + self.deviation) / 2;
        self.timeout = (span + span.checked_div(margin).unwrap_or(0)).unsigned_abs();
    }

    fn is_overdue(&self, sent_at: Instant, now: Instant) -> bool {
        nanos(sent_at, now) >= self.timeout
    }
}

/// The window in segments. Who else changes it does so in bytes.
fn cwnd(sender: &Sender) -> f64 {
    let bytes = sender.window.cwnd();
    if bytes == sender.vegas.written { sender.vegas.cwnd } else { segments(bytes, sender.mss) }
}

fn set_cwnd(sender: &mut Sender, cwnd: f64) {
    let whole = cwnd as u32;
    let part = ((cwnd - f64::from(whole)) * f64::from(sender.mss)) as u32;
    let bytes = whole.saturating_mul(sender.mss).saturating_add(part.min(sender.mss - 1));
    sender.window.set(bytes);
    sender.vegas.written = sender.window.cwnd();
    let as_asked = sender.vegas.written == bytes;
    sender.vegas.cwnd = if as_asked { cwnd } else { segments(sender.vegas.written, sender.mss) };
}

fn segments(bytes: u32, mss: u32) -> f64 {
    f64::from(bytes) / f64::from(mss)
}

fn nanos(from: Instant, until: Instant) -> u64 {
    until.as_nanos().saturating_sub(from.as_nanos())
}

/// `duplicates` is how many there were before this acknowledgement.
pub(crate) fn on_new_ack(sender: &mut Sender, now: Instant, done: &Acknowledged, duplicates: u32) {
    if sender.phase == Phase::FastRecovery || sender.queue.una().is_at_or_after(sender.recover) {
        sender.phase = Phase::Open;
    }
    if duplicates > sender.rules.threshold && sender.window.cwnd() > sender.vegas.reduced {
        set_cwnd(sender, segments(sender.vegas.reduced, sender.mss));
        sender.window.set_ssthresh(2 * sender.mss);
    }
    if sender.queue.una().is_after(sender.vegas.mark) {
        if !done.syn {
            compare(sender, now);
        }
        let vegas = &mut sender.vegas;
        (vegas.sum, vegas.count) = (0, 0);
        (vegas.mark, vegas.marked_at) = (sender.queue.nxt(), now);
    }
    grow(sender);
    if let Some(sent_at) = done.newest_sent_at.filter(|sent_at| sender.vegas.since < Some(*sent_at)) {
        let rtt = nanos(sent_at, now);
        if !done.syn {
            sender.vegas.sum += rtt;
            sender.vegas.count += 1;
        }
        sender.vegas.sample(rtt);
    }
    look_at_the_clock(sender, now);
}

/// In flight now, the segment that this acknowledgement lets out included, bytes.
fn in_flight(sender: &Sender) -> u32 {
    sender.queue.flight() + sender.mss
}

/// Once a round trip: how much of what is in flight waits in queues.
fn compare(sender: &mut Sender, now: Instant) {
    let vegas = &mut sender.vegas;
    let measured = vegas.sum.checked_div(vegas.count);
    let rtt = measured.unwrap_or_else(|| nanos(vegas.marked_at, now));
    let sent = sender.queue.nxt().bytes_since(vegas.mark);
    if rtt == 0 {
        return;
    }
    let base = match vegas.base_rtt {
        Some(base) if rtt >= base && sent > sender.mss => base,
        _ => rtt,
    };
    vegas.base_rtt = Some(base);
    // (flight / base - sent / rtt) * base, in halves of a segment times the round trip: no division.
    let in_flight = i128::from(in_flight(sender));
    let waiting = 2 * (in_flight * i128::from(rtt) - i128::from(sent) * i128::from(base));
    let least = |halves: i128| halves * i128::from(sender.mss) * i128::from(rtt);
    let cwnd = cwnd(sender);
    sender.vegas.growth = if sender.window.in_slow_start() {
        sender.vegas.opens = !sender.vegas.opens;
        if !sender.vegas.opens {
            0.0
        } else if waiting < least(GAMMA) {
            1.0
        } else {
            sender.window.set_ssthresh(2 * sender.mss);
            set_cwnd(sender, (cwnd - cwnd / 8.0).max(2.0));
            0.0
        }
    } else if waiting >= least(BETA) {
        set_cwnd(sender, (cwnd - 1.0).max(2.0));
        0.0
    } else if waiting < least(ALPHA) {
        1.0 / cwnd
    } else {
        0.0
    };
}

/// Opens the window by what the last comparison allows, unless more than two segments of it are unused.
fn grow(sender: &mut Sender) {
    if sender.vegas.growth >= 1.0 && !sender.window.in_slow_start() {
        sender.vegas.growth = 0.0;
    }
    let cwnd = cwnd(sender);
    if sender.vegas.growth > 0.0 && cwnd - segments(in_flight(sender), sender.mss) <= 2.0 {
        set_cwnd(sender, cwnd + sender.vegas.growth);
    }
}

/// The first acknowledgements after a retransmission: the next segment may be overdue as well.
fn look_at_the_clock(sender: &mut Sender, now: Instant) {
    if sender.vegas.worried == 0 {
        return;
    }
    sender.vegas.worried -= 1;
    if sender.queue.front().is_some_and(|front| sender.vegas.is_overdue(front.sent_at, now)) {
        sender.duplicate_acks = sender.rules.threshold;
        sender.resend_front = true;
    } else {
        sender.vegas.worried = 0;
    }
}

pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
    let Some(&front) = sender.queue.front() else { return };
    let overdue = sender.vegas.is_overdue(front.sent_at, now);
    if !overdue && sender.duplicate_acks != sender.rules.threshold {
        if sender.duplicate_acks > sender.rules.threshold {
            set_cwnd(sender, cwnd(sender) + 1.0);
        }
        return;
    }
    let before = sender.vegas.timed_out && !sender.queue.una().is_after(sender.recover);
    if sender.rules.careful && before {
        return;
    }
    let repeated = front.transmissions > 1;
    cut(sender, front.sent_at, repeated, now);
    let vegas = &mut sender.vegas;
    vegas.timed_out = false;
    vegas.worried = WORRIED;
    vegas.timeout =
        if repeated { vegas.timeout.saturating_mul(2) } else { (vegas.timeout / 8).saturating_mul(9) };
    sender.recover = sender.queue.end();
    sender.phase = Phase::FastRecovery;
    sender.resend_front = true;
    sender.estimator.back_off();
    super::fast_retransmit(sender, now, journal);
    if !repeated {
        sender.duplicate_acks = sender.rules.threshold;
    }
}

/// Cuts the window for the loss of a segment sent at `sent_at`.
fn cut(sender: &mut Sender, sent_at: Instant, repeated: bool, now: Instant) {
    if sender.vegas.cut_at.is_some_and(|cut_at| cut_at >= sent_at) {
        return;
    }
    let window = sender.window.cwnd().min(sender.snd_wnd()) / sender.mss;
    let left = match window {
        0..=3 => 2,
        _ if repeated => window / 2,
        _ => window - window / 4,
    };
    sender.vegas.reduced = left * sender.mss;
    set_cwnd(sender, f64::from(left) + f64::from(sender.duplicate_acks));
    sender.vegas.cut_at = Some(now);
}

/// While duplicates come that mean nothing yet, nothing is sent.
pub(crate) fn holds_back(sender: &Sender) -> bool {
    (1..sender.rules.threshold).contains(&sender.duplicate_acks)
}

/// The fine-grained timeout is another path's.
pub(crate) fn forget_round_trips(sender: &mut Sender) {
    let vegas = &mut sender.vegas;
    (vegas.average, vegas.deviation, vegas.timeout) = (0, 0, u64::MAX);
}

/// The shortest round trip is measured anew, from what leaves from now on.
pub(crate) fn measure_base_rtt(sender: &mut Sender, now: Instant) {
    let vegas = &mut sender.vegas;
    (vegas.base_rtt, vegas.sum, vegas.count, vegas.since) = (None, 0, 0, Some(now));
    (vegas.mark, vegas.marked_at) = (sender.queue.end(), now);
}

/// The shortest round trip and what was compared with it are another path's. The window is what it is set to.
pub(crate) fn forget_path(sender: &mut Sender, now: Instant) {
    let reduced = sender.window.cwnd();
    let vegas = &mut sender.vegas;
    (vegas.base_rtt, vegas.sum, vegas.count) = (None, 0, 0);
    (vegas.mark, vegas.marked_at) = (sender.queue.end(), now);
    (vegas.growth, vegas.opens, vegas.worried, vegas.reduced) = (0.0, false, 0, reduced);
    vegas.timed_out = sender.phase == Phase::Loss;
}

pub(crate) fn on_timeout(sender: &mut Sender, now: Instant) {
    let window = sender.window.cwnd().min(sender.snd_wnd()) / sender.mss;
    sender.window.set_ssthresh((window / 2).max(2) * sender.mss);
    set_cwnd(sender, 2.0);
    sender.vegas.reduced = 0;
    sender.vegas.cut_at = Some(now);
    sender.vegas.timed_out = true;
    sender.phase = Phase::Loss;
    sender.recover = sender.queue.end();
    sender.queue.set_cursor(0);
}
