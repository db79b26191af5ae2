//! TCP-LCD (RFC 6069, 2010): an ICMP unreachable message that quotes the segment the timer repeats says that the
//! path was broken, not congested; each takes one back-off of the timer back.
//!
//! `BACKOFF_CNT` and `RTO_BASE` are the estimator's own. Which messages qualify (network and host unreachable, codes 0
//! and 1) is for the caller to know. Left out: the check of section 4.2 step 4 against a timer that was never
//! started for this segment, since the estimator's count says so.

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::config::Variant;
use crate::sender::Sender;

/// Steps 3 to 6. `seq` is the sequence number that the message quotes. Returns whether the timer has run out by
/// this: what it repeats is to be repeated now.
pub(crate) fn on_message(sender: &mut Sender, now: Instant, seq: SeqNumber) -> bool {
    if sender.variant == Variant::Linux {
        return sender.rules.icmp_unreachable && super::linux::on_unreachable(sender, now, seq);
    }
    let repeating = sender.timeouts_in_a_row() > 0 && sender.timer.is_armed();
    if !sender.rules.icmp_unreachable || !repeating || seq != sender.queue.una() {
        return false;
    }
    let before = sender.estimator.rto();
    let armed_at = sender.timer.deadline().saturating_sub(before);
    if !sender.estimator.undo_back_off() {
        return false;
    }
    let deadline = match (sender.variant, sender.queue.front()) {
        (Variant::Linux20, Some(front)) => sender.estimator.deadline_of_segment(front.sent_at, now),
        _ => sender.estimator.deadline(armed_at),
    };
    sender.timer.arm(deadline.max(now));
    sender.timer.is_due(now)
}
