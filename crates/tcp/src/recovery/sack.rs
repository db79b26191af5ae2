//! Recovery by selective acknowledgements (RFC 6675, 2012, section 5), after timeouts by filling the holes
//! reported since (section 5.1).
//!
//! With PRR (`prr.rs`) the window of a recovery is not ssthresh from its first moment but comes down to it.
//!
//! A timeout forgets what was sacked (RFC 2018 section 8): the receiver may have discarded it. What it still
//! holds it reports again with the acknowledgement of the retransmission.

use careof_base::Instant;

use crate::congestion::AckSample;
use crate::events::Journal;
use crate::recovery::eifel_detection::Cause;
use crate::recovery::prr::Prr;
use crate::send_queue::{Marks, SendQueue};
use crate::sender::{Outgoing, Sender};
use crate::snapshot::Phase;

/// An acknowledgement that reported `sacked` octets for the first time.
pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, sacked: u32, journal: &mut Journal) {
    sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
    if sender.phase != Phase::Open || sender.finds_losses_by_time() {
        return;
    }
    // Steps 1 and 2.
    let una = sender.queue.una();
    if sender.duplicate_acks < sender.rules.threshold && !sender.queue.scoreboard.is_lost(una) {
        return;
    }
    enter(sender, now, sacked, journal);
}

/// Step 4, by an acknowledgement that reported `sacked` octets for the first time. The first segment leaves whatever the
/// window, if it is lost.
pub(crate) fn enter(sender: &mut Sender, now: Instant, sacked: u32, journal: &mut Journal) {
    super::begin(sender, Cause::Duplicates);
    if let Some(bound) = sender.rules.prr {
        let before = sender.queue.scoreboard.sacked().saturating_sub(sacked);
        sender.prr = Some(Prr::new(bound, sender.queue.outstanding(), before));
    }
    sender.recover = sender.queue.end();
    sender.lower_threshold(sender.flight_to_halve());
    sender.window.set(sender.window.ssthresh());
    sender.phase = Phase::FastRecovery;
    if let Some(&front) = sender.queue.front()
        && (!sender.finds_losses_by_time() || front.marks.has(Marks::LOST))
    {
        sender.resend_front = true;
        sender.queue.mark_repaired(0);
        sender.queue.scoreboard.set_high_rxt(front.end());
        sender.rescue = Some(front.end());
    }
    super::fast_retransmit(sender, now, journal);
}

pub(crate) fn on_new_ack(sender: &mut Sender, sample: &AckSample) -> bool {
    let over = sender.queue.una().is_at_or_after(sender.recover);
    match sender.phase {
        // Step A.
        Phase::FastRecovery if over => {
            sender.phase = Phase::Open;
            if sender.prr.take().is_some() {
                sender.window.set(sender.window.ssthresh());
            }
            if sender.finds_losses_by_time() {
                sender.queue.forget_repaired();
            }
            sender.queue.end_of_recovery();
        }
        Phase::FastRecovery => {}
        Phase::Open | Phase::Loss => {
            super::grow(sender, sample);
            if over && sender.phase == Phase::Open {
                sender.queue.end_of_recovery();
            }
        }
    }
    false
}

/// Step C and NextSeg(): what to send while the window is larger than the pipe.
pub(crate) fn next(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    match sender.phase {
        Phase::Open => next_in_order(sender, now),
        Phase::FastRecovery => next_in_recovery(sender, now),
        Phase::Loss => next_after_timeout(sender, now),
    }
}

/// Outside of a recovery: new data. Limited transmit comes of counting the pipe (step 3); without it the
/// duplicates make no room.
fn next_in_order(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let during_duplicates = sender.duplicate_acks > 0;
    let pipe = if during_duplicates && !sender.rules.limited_transmit {
        sender.queue.outstanding()
    } else {
        sender.queue.pipe()
    };
    let sent = sender.new_segment(now, pipe, 0)?;
    if during_duplicates {
        sender.limited = sender.limited.saturating_add(u32::from(sent.len));
    }
    Some(sent)
}

fn next_in_recovery(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let pipe = sender.queue.pipe();
    if sender.window.cwnd().saturating_sub(pipe) < sender.mss {
        return None;
    }
    if sender.finds_losses_by_time() {
        // RACK's marks stand for rule 1, and make rules 3 and 4 needless.
        let Some(index) = sender.queue.first_lost() else { return sender.new_segment(now, pipe, 0) };
        sender.queue.mark_repaired(index);
        return sender.resend(index, now);
    }
    let hole = next_hole(&mut sender.queue);
    // Rule 1: a hole that is lost.
    if let Some((index, seq)) = hole
        && sender.queue.scoreboard.is_lost(seq)
    {
        return repair(sender, index, now);
    }
    // Rule 2: new data.
    if let Some(sent) = sender.new_segment(now, pipe, 0) {
        return Some(sent);
    }
    // Rule 3: a hole below something that was sacked.
    let highest = sender.queue.scoreboard.highest_sacked();
    if let Some((index, seq)) = hole
        && highest.is_some_and(|highest| seq.is_before(highest))
    {
        return repair(sender, index, now);
    }
    rescue(sender, now)
}

/// Rule 4: once in a recovery, the last segment that nothing is known about.
fn rescue(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    if !sender.rules.rescue_retransmission {
        return None;
    }
    if sender.rescue.is_some_and(|rescue| !sender.queue.una().is_after(rescue)) {
        return None;
    }
    let last = (0..sender.queue.len())
        .rev()
        .find(|&index| sender.queue.record(index).is_some_and(|record| !record.marks.has(Marks::SACKED)))?;
    sender.rescue = Some(sender.recover);
    sender.resend(last, now)
}

/// After a timeout: everything not reported since, in order, then new data.
fn next_after_timeout(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let pipe = sender.queue.pipe();
    let Some((index, seq)) = next_hole(&mut sender.queue) else { return sender.new_segment(now, pipe, 0) };
    if !seq.is_before(sender.recover) {
        return sender.new_segment(now, pipe, 0);
    }
    let len = sender.queue.record(index).map_or(0, crate::send_queue::Record::seq_len);
    let fits = len <= sender.window.cwnd().saturating_sub(pipe)
        && seq.plus(len).bytes_since(sender.queue.una()) <= sender.snd_wnd();
    if pipe > 0 && !fits {
        return None;
    }
    repair(sender, index, now)
}

/// The first record above HighRxt that is not sacked. HighRxt moves over sacked ones on the way.
fn next_hole(queue: &mut SendQueue) -> Option<(usize, careof_wire::SeqNumber)> {
    let mut index = queue.index_at(queue.scoreboard.high_rxt());
    loop {
        let record = *queue.record(index)?;
        if !record.marks.has(Marks::SACKED) {
            return Some((index, record.seq));
        }
        queue.scoreboard.set_high_rxt(record.end());
        index += 1;
    }
}

fn repair(sender: &mut Sender, index: usize, now: Instant) -> Option<Outgoing> {
    let end = sender.queue.record(index)?.end();
    sender.queue.mark_repaired(index);
    sender.queue.scoreboard.set_high_rxt(end);
    sender.resend(index, now)
}
