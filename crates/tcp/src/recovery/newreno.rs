//! NewReno (RFC 6582, 2012): fast recovery goes on until everything sent before it is acknowledged, and each
//! partial acknowledgement on the way gives the next hole away.
//!
//! `recover` is one past what the RFC stores, and begins at the initial sequence number, so that a loss in the
//! very first window can be repaired fast. Left out: the timestamp and cumulative-acknowledgement heuristics of
//! section 4.1 and 4.2.

use careof_base::Instant;

use crate::events::Journal;
use crate::sender::Sender;
use crate::snapshot::Phase;

pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    if sender.phase == Phase::FastRecovery {
        sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
        sender.window.inflate(sender.mss);
        return;
    }
    if !super::is_the_one(sender) {
        return;
    }
    // Step 2.
    if sender.rules.careful && !sender.queue.una().is_after(sender.recover) {
        return;
    }
    sender.recover = sender.queue.end();
    sender.partial_ack_seen = false;
    super::reno::enter(sender, now, journal);
}

pub(crate) fn on_new_ack(sender: &mut Sender, acked: u32, flight: u32) -> bool {
    if sender.phase != Phase::FastRecovery {
        super::grow(sender, acked, flight);
        return false;
    }
    if sender.queue.una().is_at_or_after(sender.recover) {
        let ssthresh = sender.window.ssthresh();
        let guard = sender.queue.flight().max(sender.mss).saturating_add(sender.mss);
        sender.window.set(if sender.rules.burst_guard { ssthresh.min(guard) } else { ssthresh });
        sender.phase = Phase::Open;
        return false;
    }
    // A partial acknowledgement: the next hole begins where it ends.
    sender.resend_front = true;
    sender.window.deflate(acked);
    if acked >= sender.mss {
        sender.window.inflate(sender.mss);
    }
    let keep = sender.partial_ack_seen && !sender.rules.slow_but_steady;
    sender.partial_ack_seen = true;
    keep
}
