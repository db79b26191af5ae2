//! How losses are found (Linux 6.1): by time with RACK, by counting what was sacked above without it
//! (`tcp_mark_head_lost`), by duplicates without selective acknowledgements (`tcp_newreno_mark_lost`).

use careof_base::Instant;

use super::ack::News;
use super::{Linux, micros, timers};
use crate::congestion::CaState;
use crate::send_queue::{Marks, Record, SendQueue};
use crate::sender::Sender;

impl Linux {
    /// One segment is presumed lost, or its repetition is (`tcp_mark_skb_lost`).
    pub(super) fn mark_lost(&mut self, record: &mut Record) {
        if record.marks.has(Marks::SACKED) {
            return;
        }
        if record.seq.is_before(self.resend_from) {
            self.resend_from = record.seq;
        }
        if !record.marks.has(Marks::LOST) {
            record.marks.set(Marks::LOST);
            self.lost_out += 1;
            self.lost += 1;
        } else if record.marks.has(Marks::REPAIRED) {
            record.marks.clear(Marks::REPAIRED);
            self.retrans_out -= 1;
            self.lost += 1;
        }
    }

    /// Something is sacked further above the first hole than reordering explains (`tcp_force_fast_retransmit`).
    pub(super) fn is_far_sacked(&self, mss: u32) -> bool {
        self.highest_sacked().is_after(self.una.plus(self.reordering.saturating_mul(mss)))
    }

    /// How long RACK waits for what may only be late, microseconds (`tcp_rack_reo_wnd`).
    fn reordering_window(&self, srtt: u64) -> u64 {
        let impatient = self.state >= CaState::Recovery || self.sacked_out >= self.reordering;
        if !self.reordering_seen && impatient { 0 } else { self.rack.window(self.min_rtt.get(), srtt) }
    }

    /// Marks what RACK finds lost; returns how long to wait for the rest of what was passed, microseconds.
    fn detect_by_time(&mut self, queue: &mut SendQueue, now: u64, srtt: u64) -> u64 {
        let window = self.reordering_window(srtt);
        let mut wait = 0;
        while let Some(&(sent, seq)) = self.sent_again.front() {
            let index = queue.index_at(seq);
            if queue.record(index).is_some_and(|record| is_watched_again(record, sent, seq)) {
                break;
            }
            self.sent_again.pop_front();
        }
        for position in 0..self.sent_again.len() {
            let (sent, seq) = self.sent_again[position];
            let index = queue.index_at(seq);
            let Some(record) = queue.record_mut(index).filter(|r| is_watched_again(r, sent, seq)) else {
                continue;
            };
            if !self.look_at(record, now, window, &mut wait) {
                break;
            }
        }
        let mut index = queue.index_at(self.watch_from);
        let mut contiguous = true;
        while let Some(record) = queue.record_mut(index) {
            let done = record.transmissions > 1
                || record.marks.has(Marks::SACKED)
                || record.marks.has(Marks::UNWATCHED);
            if !done && !self.look_at(record, now, window, &mut wait) {
                break;
            }
            contiguous &= done || record.marks.has(Marks::UNWATCHED);
            if contiguous {
                self.watch_from = record.end();
            }
            index += 1;
        }
        wait
    }

    /// Returns whether later ones are to be looked at as well.
    fn look_at(&mut self, record: &mut Record, now: u64, window: u64, wait: &mut u64) -> bool {
        let sent = micros(record.sent_at);
        if !self.rack.is_passed(sent, record.end()) {
            return false;
        }
        if record.marks.has(Marks::LOST) && !record.marks.has(Marks::REPAIRED) {
            return true;
        }
        match u64::try_from(self.rack.remaining(now, sent, window)) {
            Ok(remaining) if remaining > 0 => *wait = remaining.max(*wait),
            _ => {
                self.mark_lost(record);
                record.marks.set(Marks::UNWATCHED);
            }
        }
        true
    }

    /// Whether the timeout does not concern this segment: it has not been on its way for a round trip
    /// (`tcp_rack_skb_timeout`).
    pub(super) fn is_recent(&self, record: &Record, now: u64) -> bool {
        self.switches.rack && self.rack.remaining(now, micros(record.sent_at), 0) > 0
    }

    /// Notes that a segment was sent again: RACK watches it anew.
    pub(super) fn watch_again(&mut self, sent: u64, seq: careof_wire::SeqNumber) {
        self.sent_again.push_back((sent, seq));
    }
}

/// Whether `record` is the segment at `seq` as it was sent at `sent`, and still of interest.
fn is_watched_again(record: &Record, sent: u64, seq: careof_wire::SeqNumber) -> bool {
    record.seq == seq
        && micros(record.sent_at) == sent
        && record.transmissions > 1
        && !record.marks.has(Marks::SACKED)
        && !record.marks.has(Marks::UNWATCHED)
}

fn smoothed(sender: &Sender) -> u64 {
    sender.estimator.srtt().map_or(0, |srtt| u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX))
}

/// Looks for losses after an acknowledgement (`tcp_identify_packet_loss`).
pub(super) fn identify(sender: &mut Sender, now: Instant, news: &mut News) {
    if sender.queue.is_empty() {
        return;
    }
    if !sender.linux.sack {
        by_duplicates(sender, news.una_advanced);
        return;
    }
    if !sender.linux.switches.rack || !sender.linux.rack.advanced {
        return;
    }
    let before = sender.linux.retrans_out;
    sender.linux.rack.advanced = false;
    let wait = detect(sender, now);
    if wait > 0 {
        timers::wait_for_reordering(sender, now, wait);
        news.set_timer = false;
    }
    news.repetition_lost |= before > sender.linux.retrans_out;
}

/// RACK looks at everything that was passed; returns how long to wait, microseconds.
pub(super) fn detect(sender: &mut Sender, now: Instant) -> u64 {
    let srtt = smoothed(sender);
    sender.linux.detect_by_time(&mut sender.queue, micros(now), srtt)
}

/// Enough duplicates, or a partial acknowledgement: the first segment is lost.
fn by_duplicates(sender: &mut Sender, una_advanced: bool) {
    let linux = &mut sender.linux;
    let enough = linux.state < CaState::Recovery && linux.sacked_out >= linux.reordering;
    if enough || linux.state == CaState::Recovery && una_advanced {
        let Some(head) = sender.queue.record_mut(0) else { return };
        if !head.marks.has(Marks::LOST) {
            linux.mark_lost(head);
        }
    }
}

/// Without RACK: what has as many segments sacked above it as reordering explains is lost; at the beginning of a
/// recovery at least the first (`tcp_update_scoreboard`).
pub(super) fn count_sacked(sender: &mut Sender, first_repetition: bool) {
    let linux = &mut sender.linux;
    if !linux.sack {
        return;
    }
    let (most, head_only) = match linux.sacked_out.checked_sub(linux.reordering) {
        Some(most) => (most, false),
        None if first_repetition => (1, true),
        None => return,
    };
    if head_only && linux.counted_to.is_some_and(|(to, _)| to.is_after(linux.una)) {
        return;
    }
    let (from, mut below) = linux.counted_to.unwrap_or((linux.una, 0));
    let mut index = sender.queue.index_ending_after(from);
    while let Some(record) = sender.queue.record_mut(index) {
        linux.counted_to = Some((record.seq, below));
        below += u32::from(record.marks.has(Marks::SACKED));
        if below > most {
            break;
        }
        if !record.marks.has(Marks::LOST) {
            linux.mark_lost(record);
        }
        if head_only {
            break;
        }
        index += 1;
    }
}
