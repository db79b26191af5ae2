//! NewReno (RFC 6582, 2012): fast recovery goes on until everything sent before it is acknowledged, and each
//! partial acknowledgement on the way gives the next hole away.
//!
//! `recover` is one past what the RFC stores, and begins at the initial sequence number, so that a loss in the
//! very first window can be repaired fast. With PRR (`prr.rs`) the window is reduced in proportion instead of inflated:
//! each duplicate is taken for a segment delivered, as RFC 9937 section 6 has it without SACK. Left out: the timestamp and cumulative-acknowledgement heuristics of
//! section 4.1 and 4.2.

use careof_base::Instant;

use crate::congestion::AckSample;
use crate::events::Journal;
use crate::recovery::prr::Prr;
use crate::sender::Sender;
use crate::snapshot::Phase;

pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    sender.credited = sender.credited.saturating_add(sender.mss).min(sender.queue.outstanding());
    if sender.phase == Phase::FastRecovery {
        sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
        if sender.prr.is_none() {
            sender.window.inflate(sender.mss);
        }
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
    if let Some(bound) = sender.rules.prr {
        let before = sender.credited.saturating_sub(sender.mss);
        sender.prr = Some(Prr::new(bound, sender.queue.outstanding(), before));
    }
}

pub(crate) fn on_new_ack(sender: &mut Sender, sample: &AckSample) -> bool {
    sender.credited = sender.credited.saturating_sub(sample.acked);
    if sender.phase != Phase::FastRecovery {
        sender.credited = 0;
        super::grow(sender, sample);
        return false;
    }
    if sender.queue.una().is_at_or_after(sender.recover) {
        let ssthresh = sender.window.ssthresh();
        sender.phase = Phase::Open;
        if sender.prr.take().is_some() {
            sender.window.set(ssthresh);
            return false;
        }
        let guard = sender.queue.flight().max(sender.mss).saturating_add(sender.mss);
        sender.window.set(if sender.rules.burst_guard { ssthresh.min(guard) } else { ssthresh });
        return false;
    }
    // A partial acknowledgement: the next hole begins where it ends.
    sender.resend_front = true;
    if sender.prr.is_none() {
        sender.window.deflate(sample.acked);
        if sample.acked >= sender.mss {
            sender.window.inflate(sender.mss);
        }
    }
    let keep = sender.partial_ack_seen && !sender.rules.slow_but_steady;
    sender.partial_ack_seen = true;
    keep
}
