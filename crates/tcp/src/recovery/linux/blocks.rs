//! Selective acknowledgements and reports of duplicates (RFC 2018, RFC 2883), as Linux 6.1 takes them
//! (`tcp_sacktag_write_queue`).
//!
//! What lay in the blocks of the acknowledgement before has been looked at, so that one that adds a segment to a
//! block costs a segment.

use careof_wire::SeqNumber;

use super::ack::News;
use super::{Linux, micros};
use crate::congestion::CaState;
use crate::send_queue::{Marks, SendQueue};
use crate::sender::{Ack, Sender};

type Block = (SeqNumber, SeqNumber);

/// Marks what the blocks of `ack` report. `una_before` is what was unacknowledged before it.
pub(super) fn take(sender: &mut Sender, now: u64, ack: &Ack<'_>, una_before: SeqNumber, news: &mut News) {
    let Sender { queue, linux, .. } = sender;
    let (mss, max_window) = (sender.mss, sender.max_wnd);
    let blocks = ack.sack.as_slice();
    let duplicate = linux.reported_duplicate(ack.ack, blocks, una_before, mss, max_window, news);
    if ack.ack.is_before(una_before.minus(max_window)) || queue.is_empty() {
        return;
    }
    // The acceptable blocks, ascending; where the report of a duplicate stands among them.
    let mut used = [(SeqNumber(0), SeqNumber(0)); 4];
    let (mut count, mut report) = (0, None);
    for (index, &block) in blocks.iter().take(4).enumerate() {
        let is_report = index == 0 && duplicate;
        if !linux.accepts(block, is_report, queue.end(), max_window) || !block.1.is_after(una_before) {
            continue;
        }
        let at = used[..count].iter().take_while(|other| !other.0.is_after(block.0)).count();
        used.copy_within(at..count, at + 1);
        used[at] = block;
        count += 1;
        report = match report {
            _ if is_report => Some(at),
            Some(before) if at <= before => Some(before + 1),
            other => other,
        };
    }
    let used = &used[..count];
    let known = if linux.sacked_out > 0 { linux.known_blocks } else { [(linux.una, linux.una); 4] };
    news.reordered = queue.end();
    if linux.sacked_out == 0 {
        linux.highest_sacked = linux.una;
    }
    for (index, &block) in used.iter().enumerate() {
        let nested = report == Some(index + 1) && used[index + 1].0.is_before(block.1);
        if report == Some(index) {
            let within = index > 0 && used[index - 1].1.is_after(block.0);
            if !within {
                linux.walk(queue, now, block, block, Some(block), news);
            }
            continue;
        }
        let inner = nested.then(|| used[index + 1]);
        let mut from = block.0;
        if inner.is_none() {
            for piece in known {
                if !piece.0.is_before(piece.1) || !piece.1.is_after(from) || !piece.0.is_before(block.1) {
                    continue;
                }
                linux.walk(queue, now, block, (from, piece.0), None, news);
                from = from.later(piece.1);
            }
        }
        linux.walk(queue, now, block, (from, block.1), inner, news);
    }
    linux.known_blocks = [(linux.una, linux.una); 4];
    linux.known_blocks[..count].copy_from_slice(used);
    if linux.state != CaState::Loss || linux.undo.marker.is_some() {
        linux.check_reordering(news.reordered, mss);
    }
}

impl Linux {
    /// Whether the first block reports a duplicate, and what follows from that (`tcp_check_dsack`, `tcp_dsack_seen`).
    fn reported_duplicate(
        &mut self,
        ack: SeqNumber,
        blocks: &[Block],
        una_before: SeqNumber,
        mss: u32,
        max_window: u32,
        news: &mut News,
    ) -> bool {
        let Some(&(left, right)) = blocks.first() else { return false };
        let within = |outer: &Block| !right.is_after(outer.1) && !left.is_before(outer.0);
        if !self.switches.dsack || !(left.is_before(ack) || blocks.get(1).is_some_and(within)) {
            return false;
        }
        let len = right.bytes_since(left);
        if len == 0 || len > max_window {
            return false;
        }
        let of_probe = len <= mss && self.probe.ends_at(right);
        let segments = len.div_ceil(mss.max(1)).max(1);
        self.duplicates_reported += u64::from(segments);
        // More than was ever repeated: the network's doing.
        if self.duplicates_reported > self.total_retrans {
            return false;
        }
        news.duplicate_of_probe |= of_probe;
        if self.reordering_seen && !of_probe {
            self.rack.duplicate_seen = true;
        }
        news.duplicate_reported = true;
        news.sack_delivered += segments;
        if !right.is_after(una_before) {
            self.undo.reported(segments, right);
        }
        true
    }

    /// Whether a block makes sense (`tcp_is_sackblock_valid`).
    fn accepts(&self, (left, right): Block, is_report: bool, nxt: SeqNumber, max_window: u32) -> bool {
        if right.is_after(nxt) || !left.is_before(right) || !left.is_before(nxt) {
            return false;
        }
        if left.is_after(self.una) {
            return true;
        }
        let Some(marker) = self.undo.marker.filter(|_| is_report) else { return false };
        if right.is_after(self.una) {
            return false;
        }
        left.is_at_or_after(marker) || right.is_after(marker) && left.is_at_or_after(right.minus(max_window))
    }

    /// Looks at the segments that touch `span` and lie wholly in `block`; those within `report` as well came twice.
    fn walk(
        &mut self,
        queue: &mut SendQueue,
        now: u64,
        block: Block,
        span: Block,
        report: Option<Block>,
        news: &mut News,
    ) {
        if !span.0.is_before(span.1) {
            return;
        }
        let mut index = queue.index_ending_after(span.0);
        while let Some(record) = queue.record(index) {
            if !record.seq.is_before(span.1) {
                break;
            }
            let in_block =
                |outer: Block| record.seq.is_at_or_after(outer.0) && !record.end().is_after(outer.1);
            let twice = report.is_some_and(in_block);
            if in_block(block) {
                self.mark_sacked(queue, index, now, twice, news);
            }
            index += 1;
        }
    }

    /// One segment is selectively acknowledged (`tcp_sacktag_one`).
    fn mark_sacked(&mut self, queue: &mut SendQueue, index: usize, now: u64, twice: bool, news: &mut News) {
        let Some(record) = queue.record_mut(index) else { return };
        let (seq, end, sent) = (record.seq, record.end(), micros(record.sent_at));
        let repeated = record.transmissions > 1;
        let known = record.marks.has(Marks::SACKED);
        if twice && repeated {
            self.undo.reported(1, end);
            if known && seq.is_before(news.reordered) {
                news.reordered = seq;
            }
        }
        if !end.is_after(self.una) {
            return;
        }
        if !known {
            self.rack.delivered(now, sent, end, repeated, self.min_rtt.get());
            if record.marks.has(Marks::REPAIRED) {
                // A repetition of what was not lost is believed to be still on its way.
                if record.marks.has(Marks::LOST) {
                    record.marks.clear(Marks::LOST);
                    record.marks.clear(Marks::REPAIRED);
                    self.lost_out -= 1;
                    self.retrans_out -= 1;
                }
            } else {
                if !repeated {
                    let fills_hole = self.sacked_out > 0 && seq.is_before(self.highest_sacked);
                    if fills_hole && seq.is_before(news.reordered) {
                        news.reordered = seq;
                    }
                    news.original_delivered |= !end.is_after(self.high_seq);
                    news.first_sacked.get_or_insert(sent);
                    news.last_sacked = Some(sent);
                }
                if record.marks.has(Marks::LOST) {
                    record.marks.clear(Marks::LOST);
                    self.lost_out -= 1;
                }
            }
            record.marks.set(Marks::SACKED);
            news.sacked = true;
            news.delivered_sent_at(sent);
            news.sack_delivered += 1;
            self.sacked_out += 1;
            self.highest_sacked = if self.sacked_out == 1 { end } else { self.highest_sacked.later(end) };
            if let Some((to, count)) = &mut self.counted_to
                && seq.is_before(*to)
            {
                *count += 1;
            }
        }
        if twice && record.marks.has(Marks::REPAIRED) {
            record.marks.clear(Marks::REPAIRED);
            self.retrans_out -= 1;
        }
        if !known {
            queue.note_arrival(index);
        }
    }
}
