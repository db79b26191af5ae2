//! Small segments are joined when they are sent again (Linux 6.1 and 6.18, `tcp_retrans_try_collapse`, `tcp_can_collapse`,
//! `tcp_collapse_retrans`).
//!
//! A segment that is sent again takes those after it along, lost or not, as long as the sum is no longer than a full segment and the
//! receiver's window takes it. It ends before the first that is selectively acknowledged, or a part of a larger packet. What was
//! counted of the others is counted no more.

use careof_base::Instant;

use super::Linux;
use crate::send_queue::{Marks, Record, SendQueue};
use crate::sender::Sender;

/// Segment `index` is about to be sent again.
pub(super) fn join_following(sender: &mut Sender, index: usize, now: Instant) {
    let Some(&first) = sender.queue.record(index) else { return };
    let edge = sender.window_edge();
    // The first segment leaves whatever the window.
    let offered = if edge.is_after(first.seq) { edge.bytes_since(first.seq) } else { sender.mss };
    let space = offered.min(sender.mss);
    if u32::from(first.len) >= space
        || first.marks.has(Marks::SYN)
        || !can_be_joined(&sender.queue, index, now)
    {
        return;
    }
    let mut len = u32::from(first.len);
    while let Some(next) = sender.queue.record(index + 1) {
        len += u32::from(next.len);
        if len > space || next.end().is_after(edge) || !can_be_joined(&sender.queue, index + 1, now) {
            return;
        }
        let Some(gone) = sender.queue.absorb_next(index) else { return };
        sender.linux.forget_joined(&gone);
    }
}

/// `tcp_can_collapse`.
fn can_be_joined(queue: &SendQueue, index: usize, now: Instant) -> bool {
    queue.record(index).is_some_and(|record| !record.marks.has(Marks::SACKED)) && queue.is_lone(index, now)
}

impl Linux {
    /// A segment is a part of the one before (`tcp_adjust_pcount`).
    fn forget_joined(&mut self, record: &Record) {
        self.lost_out -= u32::from(record.marks.has(Marks::LOST));
        self.retrans_out -= u32::from(record.marks.has(Marks::REPAIRED));
        if !self.sack {
            self.sacked_out = self.sacked_out.saturating_sub(1);
        }
        self.counted_to = None;
    }
}
