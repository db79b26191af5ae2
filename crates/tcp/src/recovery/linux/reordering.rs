//! The degree of reordering: by how many segments a later one may arrive earlier (Linux 6.1,
//! `tcp_check_sack_reordering`, `tcp_check_reno_reordering` and what stands around them).

use careof_wire::SeqNumber;

use super::{Linux, MOST_REORDERING, outstanding};
use crate::send_queue::SendQueue;

impl Linux {
    /// The segment at `low`, which was sent only once, was delivered after higher ones.
    pub(super) fn check_reordering(&mut self, low: SeqNumber, mss: u32) {
        let highest = self.highest_sacked();
        if !low.is_before(highest) {
            return;
        }
        let distance = highest.bytes_since(low);
        if distance > self.reordering.saturating_mul(mss) {
            self.reordering = distance.div_ceil(mss.max(1)).min(MOST_REORDERING);
        }
        self.reordering_seen = true;
    }

    /// Without selective acknowledgements: more duplicates came than there are segments to cause them, but for the
    /// one that is missing. That is reordering; `acked` segments were just acknowledged.
    fn check_count(&mut self, queue: &SendQueue, acked: u32) {
        if self.limit_count(queue) {
            self.reordering = outstanding(queue).saturating_add(acked).min(MOST_REORDERING);
            self.reordering_seen = true;
        }
    }

    /// Cuts the count of arrived segments to what there can be; returns whether it was more.
    pub(super) fn limit_count(&mut self, queue: &SendQueue) -> bool {
        let outstanding = outstanding(queue);
        let holes = self.lost_out.max(1).min(outstanding);
        if self.sacked_out + holes <= outstanding {
            return false;
        }
        self.sacked_out = outstanding - holes;
        true
    }

    /// A duplicate stands for a segment that arrived.
    pub(super) fn count_duplicates(&mut self, queue: &SendQueue, duplicates: u32) {
        if duplicates == 0 {
            return;
        }
        let before = self.sacked_out;
        self.sacked_out += duplicates;
        self.check_count(queue, 0);
        self.delivered += u64::from(self.sacked_out.saturating_sub(before));
    }

    /// `acked` segments were acknowledged: one filled a hole, the others were those that duplicates told of.
    pub(super) fn uncount_duplicates(&mut self, queue: &SendQueue, acked: u32) {
        if acked > 0 {
            self.delivered += u64::from(acked.saturating_sub(self.sacked_out).max(1));
            self.sacked_out = self.sacked_out.saturating_sub(acked - 1);
        }
        self.check_count(queue, acked);
    }
}
