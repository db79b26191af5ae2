//! What would only arrive twice, and is dropped here.
//!
//! **Repetitions by the sender** of bytes that wait here, or that were released so recently that their acknowledgement cannot be
//! back: dropped, for every byte has to cross a slow path once, and what costs goodput is crossing it twice. Never one that is
//! needed: not when a hole at the receiver shows that the released packet was lost (three duplicate acknowledgements, or a
//! SACK of one released behind it), not after the replay's drain and two round trips, and without acknowledgements in sight, or where the old path still has its time,
//! not a second time. If others wait still, it is the original that goes again, in front of them, instead of the
//! repetition behind them: in the other order PAWS would fail what waits. One probe of the end of the window is let
//! through for the D-SACK that says that nothing was lost, but not onto a slower path.
//!
//! **Segments without data that fall behind what waits** (probes of a closed window, keep-alives): what waits makes the receiver
//! answer as they would, and let past it they would raise its `TS.Recent`.
//!
//! **Late copies** at the mobile node: data that come by the path that was left and were delivered and acknowledged since. They
//! would make duplicate acknowledgements. What the receiver may have to acknowledge again passes: by the present path
//! anything, by the old one what has a younger timestamp than what was acknowledged, for it was repeated on purpose.

use careof_base::Instant;
use careof_wire::{Segment, SeqNumber};

use crate::context::{Context, Passing};
use crate::flow::{Flow, Stream};
use crate::keeping::Kept;
use crate::{DropReason, PathId};

use super::{Rules, blind};

/// Duplicate acknowledgements that say that a segment is lost (RFC 5681 section 3.2).
const DUPLICATES: u8 = 3;

/// Whether a segment of the direction that is kept is to be dropped, for its bytes are here or on their way.
pub(super) fn swallow(
    now: Instant,
    stream: &mut Stream,
    rules: &Rules,
    passing: &Passing<'_>,
) -> Option<DropReason> {
    if !rules.replay.swallow || !passing.seen.is_repetition || stream.kept.is_empty() {
        return None;
    }
    let (seq, end) = (passing.segment.seq, passing.segment.end_seq());
    if stream.replay.may_probe && is_active(now, stream) && blind::may_be_probe(stream, end) {
        stream.replay.may_probe = false;
        return None;
    }
    let is_patient = stream.replay.patience.is_some();
    if is_covered(stream, seq, end, |kept| kept.waits()) {
        return Some(DropReason::HeldAlready);
    }
    let is_on_its_way = |kept: &Kept| {
        let recently = |at: Instant| now < at + stream.replay.grace && !is_missing(stream, kept);
        kept.sent().is_none_or(|sent| {
            (sent.by_us && recently(sent.at)) || (is_patient && sent.left && !kept.swallowed)
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

/// A replay runs, or ran so recently that its acknowledgements may be on their way.
pub(super) fn is_active(now: Instant, stream: &Stream) -> bool {
    let state = &stream.replay;
    stream.kept.has_waiting() || state.last_release.is_some_and(|at| now < at + state.grace)
}

fn overlaps(kept: &Kept, seq: SeqNumber, end: SeqNumber) -> bool {
    kept.seq.is_before(end) && kept.end.is_after(seq)
}

/// Whether a packet that was released is known, or has to be taken, for lost.
fn is_missing(stream: &Stream, kept: &Kept) -> bool {
    let is_first = stream.una.is_some_and(|una| kept.seq.is_at_or_before(una) && kept.end.is_after(una));
    kept.is_missing
        || (is_first && stream.replay.duplicates >= DUPLICATES)
        || (kept.swallowed && !stream.has_visible_acks())
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

fn is_in_blocks(kept: &Kept, blocks: &[(SeqNumber, SeqNumber)]) -> bool {
    blocks.iter().any(|(left, right)| kept.seq.is_at_or_after(*left) && kept.end.is_at_or_before(*right))
}

/// Marks what the last acknowledgement says that the receiver has.
pub(super) fn mark_sacked(stream: &mut Stream) {
    let Some(last) = stream.last_ack else { return };
    let blocks = last.segment.sack;
    stream.kept.mark(|kept| kept.is_sacked = is_in_blocks(kept, blocks.as_slice()));
}

/// What an acknowledgement says of packets that were released.
pub(super) fn learn_of_holes(now: Instant, stream: &mut Stream, passing: &Passing<'_>) {
    let segment = passing.segment;
    let blocks = segment.sack.as_slice();
    // A first block of what is acknowledged reports a duplicate (RFC 2883), not a hole.
    let is_d_sack = blocks.first().is_some_and(|(_, right)| right.is_at_or_before(segment.ack));
    if passing.seen.is_duplicate_ack && !is_d_sack {
        stream.replay.duplicates = stream.replay.duplicates.saturating_add(1);
    }
    if blocks.is_empty() || !is_active(now, stream) {
        return;
    }
    stream.kept.mark(|kept| kept.is_sacked |= is_in_blocks(kept, blocks));
    let by_us = |kept: &Kept| kept.sent().is_some_and(|sent| sent.by_us);
    // What was delivered before the handover says nothing of what was released after it.
    let arrived = stream.kept.iter().rposition(|kept| kept.is_sacked && by_us(kept));
    let mut behind = arrived.unwrap_or(0);
    stream.kept.mark(|kept| {
        if behind > 0 {
            behind -= 1;
            kept.is_missing |= !kept.is_sacked && by_us(kept);
        }
    });
}

/// Whether a segment for the mobile node, at the mobile node, is a late copy of what it has.
pub(super) fn is_late_copy(cx: &Context<'_>, flow: &Flow, passing: &Passing<'_>) -> bool {
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
    segment.end_seq().is_at_or_before(una) && last.at >= since && is_old
}
