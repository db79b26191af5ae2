//! Tahoe (Jacobson 1988): the third duplicate acknowledgement means slow start from the hole.
//!
//! The window falls to one segment and everything from the hole on is sent again as the window reopens. With
//! `careful`, duplicates of data sent before that do not start it over (ns-2's `bugfix_`).

use careof_base::Instant;

use crate::congestion::AckSample;
use crate::events::Journal;
use crate::recovery::eifel_detection::Cause;
use crate::sender::Sender;
use crate::snapshot::Phase;

pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    if !super::is_the_one(sender) {
        return;
    }
    if sender.rules.careful && !sender.queue.una().is_after(sender.recover) {
        return;
    }
    super::begin(sender, Cause::Duplicates);
    sender.lower_threshold(sender.flight_to_halve());
    sender.window.set(sender.mss);
    sender.recover = sender.queue.end();
    sender.phase = Phase::Loss;
    sender.queue.set_cursor(0);
    super::fast_retransmit(sender, now, journal);
}

pub(crate) fn on_new_ack(sender: &mut Sender, sample: &AckSample) -> bool {
    super::grow(sender, sample);
    false
}
