//! What a sender does about losses: one file a variant, chosen at run time by [`crate::Variant`].
//!
//! The functions act on a [`Sender`], whose fields are the variables the RFCs name. `on_duplicate_ack` is called
//! for what the variant's specification calls a duplicate; `on_new_ack` after the acknowledged data was taken
//! off the queue, and answers whether the retransmission timer is to go on as it is.

pub(crate) mod dsack;
pub(crate) mod eifel_detection;
pub(crate) mod eifel_response;
pub(crate) mod frto;
pub(crate) mod icmp_unreachable;
pub(crate) mod linux;
pub(crate) mod linux20;
pub(crate) mod newreno;
pub(crate) mod prr;
pub(crate) mod rack;
pub(crate) mod rack_tlp;
pub(crate) mod reno;
pub(crate) mod sack;
pub(crate) mod tahoe;
pub(crate) mod tail_loss_probe;
pub(crate) mod vegas;

use careof_base::Instant;

use crate::Event;
use crate::config::Variant;
use crate::congestion::AckSample;
use crate::events::Journal;
use crate::recovery::eifel_detection::Cause;
use crate::send_queue::Marks;
use crate::sender::Sender;
use crate::snapshot::Phase;

pub(crate) use linux::Linux;
pub(crate) use linux20::Linux20;
pub(crate) use vegas::Vegas;

/// The retransmission timer ran out (RFC 5681 section 3.1; RFC 6582 section 3.2 step 4; RFC 6675 section 5.1).
pub(crate) fn on_timeout(sender: &mut Sender, now: Instant) {
    if sender.variant == Variant::Linux20 {
        linux20::on_timeout(sender);
        return;
    }
    let Some(front) = sender.queue.front() else { return };
    sender.duplicate_acks = 0;
    sender.resend_front = false;
    if front.marks.has(Marks::SYN) {
        sender.queue.set_cursor(0);
        return;
    }
    // A timer that repeats this very segment again does not begin a recovery anew.
    if sender.timeouts_in_a_row() <= 1 {
        begin(sender, Cause::Timeout);
    }
    frto::on_timeout(sender);
    rack_tlp::on_timeout(sender);
    sender.prr = None;
    if sender.variant == Variant::Vegas {
        vegas::on_timeout(sender, now);
        return;
    }
    // The threshold is held when the timer has repeated this very segment before.
    if sender.timeouts_in_a_row() <= 1 {
        // FlightSize, which during a recovery also counts what duplicates let out: not more than the window, as
        // BSD and ns-2 reckon; and in a recovery not more than the window without the duplicates' inflation,
        // as ns-2 does. With many losses in one window, new data leaves with every duplicate while snd_una
        // hardly moves, and half of that flight would be several times what the path holds.
        let mut flight = sender.flight_to_halve().min(sender.window.cwnd());
        if sender.phase == Phase::FastRecovery {
            let whole = sender.window.cwnd().min(sender.window.ssthresh());
            sender.window.set(whole);
            flight = flight.min(whole);
        }
        sender.lower_threshold(flight);
    }
    sender.congestion.on_timeout(&mut sender.window);
    sender.limited = 0;
    sender.window.set(sender.mss);
    sender.phase = Phase::Loss;
    sender.recover = sender.queue.end();
    send_all_again(sender);
}

/// A loss recovery begins, and the window has not been reduced yet: what is needed to find out that it was not
/// called for, and to take it back.
fn begin(sender: &mut Sender, cause: Cause) {
    sender.ecn.reduced(sender.queue.end());
    if sender.rules.eifel {
        sender.eifel.begin(cause);
        eifel_response::remember(sender, sender.queue.outstanding());
    }
    if sender.rules.dsack {
        sender.repeated = Some(dsack::Repeated::new(cause, sender.queue.una()));
    }
}

/// What is outstanding is to be sent again, as far as the window goes.
pub(crate) fn send_all_again(sender: &mut Sender) {
    match sender.variant {
        Variant::Linux20 => linux20::send_all_again(sender),
        Variant::Sack => {
            sender.queue.presume_all_lost();
            sender.phase = Phase::Loss;
            sender.recover = sender.queue.end();
        }
        Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Vegas | Variant::Linux => {
            sender.queue.set_cursor(0);
        }
    }
}

/// Counts a duplicate; returns whether it is the one that means a loss.
fn is_the_one(sender: &mut Sender) -> bool {
    sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
    sender.duplicate_acks == sender.rules.threshold
}

/// A loss was detected: tells it and starts the timer anew for the retransmission.
fn fast_retransmit(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    journal.counters.fast_retransmits += 1;
    journal.tell(Event::FastRetransmit { seq: sender.queue.una() });
    sender.stop_timing();
    sender.timer.arm(sender.estimator.deadline(now));
}

/// Growth outside of a recovery, and the end of what followed a timeout.
fn grow(sender: &mut Sender, sample: &AckSample) {
    sender.congestion.grow(&mut sender.window, sample);
    if sender.phase == Phase::Loss && sender.queue.una().is_at_or_after(sender.recover) {
        sender.phase = Phase::Open;
    }
}
