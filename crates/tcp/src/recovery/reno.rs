//! Reno (RFC 5681, 2009, section 3.2): fast retransmit and fast recovery, which the first acknowledgement of new
//! data ends.
//!
//! Two losses in a window halve it twice; after three the pipe is mostly too empty for duplicates and the timer
//! has to help. With `careful`, duplicates of data sent before a *timeout* do not start a fast retransmit;
//! between two fast retransmits nothing is asked (ns-2 behaves alike).

use careof_base::Instant;

use crate::congestion::AckSample;
use crate::events::Journal;
use crate::recovery::eifel_detection::Cause;
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
    if sender.rules.careful && !sender.queue.una().is_after(sender.recover) {
        return;
    }
    enter(sender, now, journal);
}

/// Steps 2 and 3: halve, retransmit, inflate by the segments that have left the network.
///
/// Not more than the window is halved, as BSD and ns-2 reckon and equation 4 ("no more than") allows: at the second
/// loss of a window FlightSize still counts what the duplicates of the first let out, and half of it may be more than
/// the first halving left.
pub(super) fn enter(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    super::begin(sender, Cause::Duplicates);
    sender.lower_threshold(sender.flight_to_halve().min(sender.window.cwnd()));
    sender.window.set(sender.window.ssthresh());
    sender.window.inflate(sender.rules.threshold.saturating_mul(sender.mss));
    sender.phase = Phase::FastRecovery;
    sender.resend_front = true;
    super::fast_retransmit(sender, now, journal);
}

pub(crate) fn on_new_ack(sender: &mut Sender, sample: &AckSample) -> bool {
    if sender.phase == Phase::FastRecovery {
        sender.window.set(sender.window.ssthresh());
        sender.phase = Phase::Open;
    } else {
        super::grow(sender, sample);
    }
    false
}
