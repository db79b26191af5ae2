//! What a sender learns from D-SACK blocks (RFC 2883, 2000, for the blocks; RFC 3708, 2004, section 3 for the
//! conclusion): a recovery all of whose retransmissions arrived twice was spurious.
//!
//! The receiving half is in `receive_queue.rs`. Counted are segments, so that a block is taken for as many as fit
//! its length. Left out: RFC 3708's search for duplicates that the network made, which need two D-SACKs for one
//! retransmission; the count does not go below 0.

use careof_wire::SeqNumber;

use crate::recovery::eifel_detection::Cause;

/// The block with which the SACK option of an acknowledgement of `ack` reports a duplicate, if it does (RFC 2883
/// section 4): the first block, when it is covered by the acknowledgement or by the second one.
pub(crate) fn reported(ack: SeqNumber, blocks: &[(SeqNumber, SeqNumber)]) -> Option<(SeqNumber, SeqNumber)> {
    let &(left, right) = blocks.first()?;
    let within =
        |second: &(SeqNumber, SeqNumber)| left.is_at_or_after(second.0) && right.is_at_or_before(second.1);
    let covered = right.is_at_or_before(ack) || blocks.get(1).is_some_and(within);
    (left.is_before(right) && covered).then_some((left, right))
}

/// The retransmissions of the last recovery, as far as they have not been reported as duplicates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated {
    cause: Cause,
    /// Segments.
    unreported: u32,
    /// One past the highest octet repeated.
    end: SeqNumber,
}

impl Repeated {
    /// A recovery begins at `una`.
    pub(crate) fn new(cause: Cause, una: SeqNumber) -> Self {
        Self { cause, unreported: 0, end: una }
    }

    /// A segment was sent again.
    pub(crate) fn retransmitted(&mut self, end: SeqNumber) {
        self.unreported = self.unreported.saturating_add(1);
        self.end = self.end.later(end);
    }

    /// A duplicate was reported. Returns what began the recovery if it was spurious: nothing of what it repeated
    /// had been lost.
    pub(crate) fn on_report(
        &mut self,
        block: (SeqNumber, SeqNumber),
        mss: u32,
        una: SeqNumber,
    ) -> Option<Cause> {
        if self.unreported == 0 || block.1.is_after(self.end) {
            return None;
        }
        let segments = block.1.bytes_since(block.0).div_ceil(mss.max(1));
        self.unreported = self.unreported.saturating_sub(segments);
        (self.unreported == 0 && una.is_at_or_after(self.end)).then_some(self.cause)
    }
}
