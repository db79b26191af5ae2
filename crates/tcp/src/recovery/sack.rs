//! Recovery by selective acknowledgements (RFC 6675, 2012, section 5), after timeouts by filling the holes
//! reported since (section 5.1).
//!
//! A timeout forgets what was sacked (RFC 2018 section 8): the receiver may have discarded it. What it still
//! holds it reports again with the acknowledgement of the retransmission.

use careof_base::Instant;

use crate::events::Journal;
use crate::send_queue::{Marks, SendQueue};
use crate::sender::{Outgoing, Sender};
use crate::snapshot::Phase;

pub(crate) fn on_duplicate_ack(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    sender.duplicate_acks = sender.duplicate_acks.saturating_add(1);
    if sender.phase != Phase::Open {
        return;
    }
    // Steps 1 and 2.
    let una = sender.queue.una();
    if sender.duplicate_acks < sender.rules.threshold && !sender.queue.scoreboard.is_lost(una) {
        return;
    }
    // Step 4.
    sender.recover = sender.queue.end();
    sender.window.halve(sender.flight_to_halve());
    sender.window.set(sender.window.ssthresh());
    sender.phase = Phase::FastRecovery;
    sender.resend_front = true;
    if let Some(end) = sender.queue.front().map(crate::send_queue::Record::end) {
        sender.queue.mark_repaired(0);
        sender.queue.scoreboard.set_high_rxt(end);
        sender.rescue = Some(end);
    }
    super::fast_retransmit(sender, now, journal);
}

pub(crate) fn on_new_ack(sender: &mut Sender, acked: u32, flight: u32) -> bool {
    let over = sender.queue.una().is_at_or_after(sender.recover);
    match sender.phase {
        // Step A.
        Phase::FastRecovery if over => {
            sender.phase = Phase::Open;
            sender.queue.end_of_recovery();
        }
        Phase::FastRecovery => {}
        Phase::Open | Phase::Loss => {
            super::grow(sender, acked, flight);
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
