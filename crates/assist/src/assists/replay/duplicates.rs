//! What would only arrive twice, and is dropped here.
//!
//! **Repetitions by the sender** of bytes that wait here, or that were released so recently that their acknowledgement cannot be
//! back: dropped, for every byte has to cross a slow path once, and what costs goodput is crossing it twice. Never one that is
//! needed: not when a hole at the receiver shows that the released packet was lost (three duplicate acknowledgements, or a
//! SACK of one released behind it), not after two round trips as they are at present, and without acknowledgements in sight, or
//! where the old path still has its time, not a second time. Without acknowledgements in sight nothing is released at two handovers, and what
//! was released at an earlier one may be repeated: it seems not to arrive, or the receiver refuses it (PAWS), and only the sender's own has a younger
//! timestamp. What the old path has counts only if it delivers all of it within the
//! least timeout of a sender: a repetition that gets there first makes the receiver refuse the originals (PAWS), and the sender
//! that repeats has found the new path faster. If others wait still, it is the original that goes again, in front of them, instead
//! of the repetition behind them: in the other order PAWS would fail what waits. One probe of the end of the window is let
//! through for the D-SACK that says that nothing was lost, but not onto a slower path. **Who swallows answers for it:** what its
//! sender has repeated in vain goes again when it should have been acknowledged.
//!
//! **What does not fit the new path**, as where a mobile node leaves home and a tunnel begins, is refused there, and its sender told
//! (RFC 1191, RFC 8201): it repeats all of that in smaller segments. From the first of these on what is larger is forgotten; it could
//! not go, and must not stand for what can.
//!
//! **What is lost on the new path** while others wait (three packets that were released later have arrived) goes again at once, in
//! front of them: its sender would hear of it only behind all that waits. Where what was taken for lost arrives after all, the path reorders,
//! and from then on what is passed gets as much time as that was late.
//!
//! **Segments without data that fall behind what waits** (probes of a closed window, keep-alives): what waits makes the receiver
//! answer as they would, and let past it they would raise its `TS.Recent`.
//!
//! **Late copies** at the mobile node: data that come by the path that was left and were delivered and acknowledged since. They
//! would make duplicate acknowledgements. What the receiver may have to acknowledge again passes: by the present path
//! anything, by the old one what has a younger timestamp than what was acknowledged, for it was repeated on purpose.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Segment, SeqNumber};

use crate::context::{Context, Outbox, Passing};
use crate::courses::Arrived;
use crate::flow::{Flow, Stream};
use crate::keeping::{Kept, Sent};
use crate::timers::Owner;
use crate::{DropReason, PathId, Wake};

use super::rules::{LEAST_TIMEOUT, Rules};
use super::state::State;
use super::{blind, owed, release};

/// Duplicate acknowledgements that say that a segment is lost (RFC 5681 section 3.2).
const DUPLICATES: u8 = 3;

/// Whether a segment of the direction that is kept is to be dropped, for its bytes are here or on their way.
pub(super) fn swallow(
    now: Instant,
    stream: &mut Stream,
    state: &mut State,
    rules: &Rules,
    passing: &Passing<'_>,
) -> Option<DropReason> {
    if !rules.replay.swallow || !passing.seen.is_repetition || stream.kept.is_empty() {
        return None;
    }
    let (seq, end) = (passing.segment.seq, passing.segment.end_seq());
    if state.may_probe && is_active(now, stream, state) && blind::may_be_probe(stream, end) {
        state.may_probe = false;
        return None;
    }
    if is_covered(stream, seq, end, |kept| kept.waits()) {
        return Some(DropReason::HeldAlready);
    }
    let delivers = state.patience.is_some_and(|patience| patience.delivers);
    let is_coming = delivers && !state.has_hole(stream) && drains_soon(stream, state);
    let is_on_its_way = |kept: &Kept| {
        let recently = |at: Instant| now < at + state.grace && !is_missing(stream, state, kept);
        kept.sent().is_none_or(|sent| {
            (sent.by_us && recently(sent.at))
                || (is_coming && sent.left && !kept.swallowed && !kept.is_missing)
        })
    };
    if is_covered(stream, seq, end, is_on_its_way) {
        stream.kept.mark(|kept| kept.swallowed |= overlaps(kept, seq, end) && !kept.waits());
        return Some(DropReason::OnItsWay);
    }
    if stream.kept.has_waiting() && is_covered(stream, seq, end, |_| true) {
        // It is needed, but others wait: its original goes again, in front of them.
        stream.kept.owe(now, |kept, _| overlaps(kept, seq, end));
        return Some(DropReason::HeldAlready);
    }
    None
}

/// A repetition goes on beside what was sent of it before: what acknowledges it says nothing of that.
pub(super) fn note_repetition(stream: &mut Stream, passing: &Passing<'_>) {
    let (seq, end) = (passing.segment.seq, passing.segment.end_seq());
    stream.kept.mark(|kept| kept.is_repeated |= overlaps(kept, seq, end));
}

/// Whether the sender repeats in smaller segments what is stored in larger ones. One byte is a probe of a closed window (RFC 9293 section
/// 3.8.6.1).
pub(super) fn comes_in_smaller_segments(stream: &Stream, passing: &Passing<'_>) -> bool {
    let (seq, end) = (passing.segment.seq, passing.segment.end_seq());
    passing.seen.is_repetition
        && passing.segment.seq_len() > 1
        && stream.kept.iter().any(|kept| kept.seq == seq && kept.end.is_after(end))
}

/// What is larger than `largest` bytes does not fit the path, and comes again in smaller segments.
pub(super) fn forget_larger(outbox: &mut Outbox, stream: &mut Stream, largest: u16) {
    stream.kept.retain(|kept| kept.size <= largest, |kept| outbox.drop_kept(&kept, DropReason::TooLarge));
}

/// When the first of what its sender has repeated in vain should have been acknowledged.
pub(super) fn swallowed_due(now: Instant, stream: &Stream, state: &State) -> Option<Instant> {
    let swallowed = stream.kept.iter().filter(|kept| kept.swallowed && !kept.is_sacked);
    let sent = swallowed.filter_map(Kept::sent).filter(|sent| sent.by_us).map(|sent| sent.at).min()?;
    // What is overdue goes with the next look.
    Some((sent + state.grace).max(now + Duration::from_millis(1)))
}

/// Whoever swallows a repetition answers for it: what has not arrived in its time goes again.
pub(super) fn on_swallowed_due(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules) {
    let now = cx.now;
    let key = flow.key;
    let stream = flow.stream_mut(cx.config.place.keeps());
    let grace = state.grace;
    stream
        .kept
        .owe(now, |kept, sent| kept.swallowed && !kept.is_sacked && sent.by_us && now >= sent.at + grace);
    if let Some(due) = swallowed_due(now, stream, state) {
        cx.timers.set(Owner::Flow(key), Wake::Swallowed, due);
    }
    if stream.kept.has_waiting() {
        release::join(cx, flow, state, rules);
    }
}

/// Whether the path that was left delivers all that it still has before the sender can have needed it.
fn drains_soon(stream: &Stream, state: &State) -> bool {
    let left = stream.kept.iter().filter(|kept| owed::was_left(kept) && !kept.is_sacked);
    let bytes: u64 = left.map(|kept| u64::from(kept.size)).sum();
    // A flow that has not been measured has sent no more than its first windows.
    state.meter.rate().is_none_or(|rate| bytes <= rate.bits_in(LEAST_TIMEOUT) / 8)
}

/// A replay runs, or ran so recently that its acknowledgements may be on their way.
pub(super) fn is_active(now: Instant, stream: &Stream, state: &State) -> bool {
    stream.kept.has_waiting() || state.last_release.is_some_and(|at| now < at + state.grace)
}

fn overlaps(kept: &Kept, seq: SeqNumber, end: SeqNumber) -> bool {
    kept.seq.is_before(end) && kept.end.is_after(seq)
}

/// Whether a packet that was released is known, or has to be taken, for lost.
fn is_missing(stream: &Stream, state: &State, kept: &Kept) -> bool {
    // A sender without SACK repeats what is missing as soon as what was missing in front of it is acknowledged (RFC 6582).
    let is_next_hole = state.has_hole(stream) && kept.sent().is_some_and(|sent| !sent.again);
    let is_first = stream.una.is_some_and(|una| kept.covers(una));
    let is_from_before = kept.releases > 0 && owed::was_left(kept);
    kept.is_missing
        || (is_first && (state.duplicates >= DUPLICATES || is_next_hole))
        || ((kept.swallowed || is_from_before) && !state.sees_acks(stream))
}

/// Whether all of the stretch is in packets that are stored and fulfil the condition.
fn is_covered(stream: &Stream, seq: SeqNumber, end: SeqNumber, condition: impl Fn(&Kept) -> bool) -> bool {
    let mut next = seq;
    for kept in stream.kept.iter() {
        if kept.seq.is_at_or_before(next) && kept.end.is_after(next) && condition(kept) {
            next = kept.end;
            if next.is_at_or_after(end) {
                return true;
            }
        }
    }
    false
}

/// Whether a segment without data would get in front of data that wait, and is behind them by its number.
pub(super) fn overtakes(stream: &Stream, segment: &Segment) -> bool {
    segment.seq_len() == 0
        && segment.flags.are_of_a_stream()
        && stream.kept.has_waiting()
        && stream.kept.highest().is_some_and(|highest| segment.seq.is_before(highest))
}

/// What an acknowledgement says of packets behind what it acknowledges.
pub(super) fn learn_of_holes(now: Instant, stream: &mut Stream, state: &mut State, passing: &Passing<'_>) {
    let segment = passing.segment;
    let blocks = segment.sack.as_slice();
    // A first block of what is acknowledged reports a duplicate (RFC 2883), not a hole.
    let is_d_sack = blocks.first().is_some_and(|(_, right)| right.is_at_or_before(segment.ack));
    if passing.seen.is_duplicate_ack && !is_d_sack {
        state.duplicates = state.duplicates.saturating_add(1);
    }
    let left_is_lost = state.left_is_lost;
    let mut is_news = false;
    let mut left_delivered = false;
    for (index, &(left, right)) in blocks.iter().enumerate() {
        if right.is_at_or_before(segment.ack) {
            continue;
        }
        // What has just come is in the first block (RFC 2018 section 4); others repeat what came before.
        let is_latest = index == 0;
        stream.kept.mark_sacked(left, right, |kept| {
            is_news = true;
            left_delivered |= owed::was_left(kept);
            Arrived::add(&mut state.arrived, kept, left_is_lost, (is_latest, None));
            state.learn_of_reordering(now, kept);
        });
    }
    if left_delivered {
        state.left_path_delivered = Some(now);
    }
    if is_news && (is_active(now, stream, state) || state.patience.is_some()) {
        find_lost(now, stream, state);
    }
}

/// Finds what is lost by what was sent after it and has arrived.
fn find_lost(now: Instant, stream: &mut Stream, state: &mut State) {
    let by_us = |kept: &Kept| kept.sent().is_some_and(|sent| sent.by_us);
    // What was delivered before the handover says nothing of what was released after it.
    let arrived = stream.kept.iter().rposition(|kept| kept.is_sacked && by_us(kept));
    let mut behind = arrived.unwrap_or(0);
    let by_left = third_latest(stream, |kept| kept.sent().filter(|sent| sent.left));
    let is_lost_there = |sent: Sent| sent.left && by_left.is_some_and(|arrived| sent.at < arrived);
    stream.kept.mark(|kept| {
        if behind > 0 {
            behind -= 1;
            kept.is_missing |= !kept.is_sacked && by_us(kept);
        }
        kept.is_missing |= !kept.is_sacked && kept.sent().is_some_and(is_lost_there);
    });
    let left_is_lost = state.left_is_lost;
    let waits = stream.kept.has_waiting();
    if let Some(arrived) = third_latest(stream, |kept| kept.clearly_released(left_is_lost)) {
        let is_passed = |kept: &Kept, sent: Sent| sent.by_us && !kept.is_sacked && sent.at < arrived;
        stream.kept.mark(|kept| {
            if kept.passed_at.is_none() && kept.sent().is_some_and(|sent| is_passed(kept, sent)) {
                kept.passed_at = Some(now);
            }
        });
        // Its sender would have to wait for all that waits here before it could tell, or has told in vain.
        let (saw_loss, reordering) = (&mut state.saw_loss, state.reordering);
        stream.kept.owe(now, |kept, sent| {
            let is_ours = is_passed(kept, sent) && (waits || kept.swallowed);
            let is_lost = is_ours && kept.passed_at.is_some_and(|at| at + reordering <= now);
            *saw_loss |= is_lost;
            is_lost
        });
    }
}

/// When the third latest of the packets that have arrived was sent, of those that `sent_by` the path in question: what was sent before it by
/// the same path and has not arrived is lost (RFC 5681 section 3.2; by time, for what goes again is not in the order of its
/// numbers: RFC 8985).
fn third_latest(stream: &Stream, sent_by: impl Fn(&Kept) -> Option<Sent>) -> Option<Instant> {
    let mut latest = [None; DUPLICATES as usize];
    for sent in stream.kept.iter().filter(|kept| kept.is_sacked).filter_map(sent_by) {
        let mut at = Some(sent.at);
        for known in &mut latest {
            if at > *known {
                core::mem::swap(known, &mut at);
            }
        }
    }
    latest[DUPLICATES as usize - 1]
}

/// What the sender of data for the mobile node has sent again, as it arrives there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentAgain {
    /// Timestamp of the latest segment with new data: what is below it and was sent later was sent again.
    fresh: Option<u32>,
    /// The first and the last byte of that, the last exclusive, since the mobile node came to a path.
    span: Option<(SeqNumber, SeqNumber)>,
    since: Option<Instant>,
}

impl SentAgain {
    /// Learns from a segment for the mobile node, which has been at its path `since`.
    pub(super) fn learn(&mut self, since: Option<Instant>, passing: &Passing<'_>) {
        let segment = passing.segment;
        if segment.seq_len() == 0 {
            return;
        }
        let Some(stamps) = segment.timestamps else { return };
        if self.since != since {
            (self.span, self.since) = (None, since);
        }
        let is_later = self.fresh.is_none_or(|fresh| stamps.value.wrapping_sub(fresh) as i32 > 0);
        if !is_later {
            return;
        }
        if passing.seen.is_repetition {
            let (from, to) = self.span.unwrap_or((segment.seq, segment.end_seq()));
            let from = if segment.seq.is_before(from) { segment.seq } else { from };
            self.span = Some((from, to.later(segment.end_seq())));
        } else {
            self.fresh = Some(stamps.value);
        }
    }

    fn has(&self, segment: &Segment) -> bool {
        self.span.is_some_and(|(from, to)| segment.seq.is_before(to) && segment.end_seq().is_after(from))
    }
}

/// Whether a segment for the mobile node, at the mobile node, is a late copy of what it has. What its sender has sent again itself is
/// none: from the duplicate the sender learns that it need not have done so (DSACK, RFC 2883), and takes back what that has cost it.
pub(super) fn is_late_copy(cx: &Context<'_>, flow: &Flow, again: &SentAgain, passing: &Passing<'_>) -> bool {
    let segment = passing.segment;
    if segment.seq_len() == 0 || !segment.flags.are_of_a_stream() {
        return false;
    }
    let mobile = flow.key.mobile;
    let by_left_path = |path: PathId| cx.paths.present(mobile).is_some_and(|present| present != path);
    let (Some(true), Some(since)) = (passing.path.map(by_left_path), cx.paths.in_use_since(mobile)) else {
        return false;
    };
    let stream = flow.stream(passing.towards);
    let (Some(una), Some(last)) = (stream.una, stream.last_ack) else { return false };
    let is_old = match (segment.timestamps, last.segment.timestamps) {
        (Some(stamps), Some(acked)) => stamps.value.wrapping_sub(acked.echo) as i32 <= 0,
        _ => true,
    };
    // The sender is told by the present path: an acknowledgement of these bytes has left by it.
    segment.end_seq().is_at_or_before(una) && last.at >= since && is_old && !again.has(segment)
}
