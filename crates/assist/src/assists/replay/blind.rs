//! How far a sender is whose acknowledgements do not pass here.
//!
//! With triangle routing a home agent sees what goes to the mobile node, not what comes back. Then the sender's repetitions say
//! where SND.UNA is: the first one after new data begins there, whether a timeout or a fast retransmit sent it. A repetition
//! that ends at SND.NXT says nothing: it may be a tail loss probe (RFC 8985 section 7), which repeats the end of the window.
//! While nothing is repeated, the sender goes on, so what is older than any of its timeouts was acknowledged.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::DropReason;
use crate::context::{Context, Passing};
use crate::flow::Stream;

use super::rules::LEAST_TIMEOUT;
use super::state::State;

/// A sender that had no acknowledgement for what it sent so long ago would have repeated it (RFC 6298 section 2: its first
/// timeout is one second, three after a lost SYN), but for paths with a round trip of seconds.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3);
/// So many packets stay in any case, lest nothing be there for a path with a longer round trip.
const LEAST: usize = 2;
/// A repetition says that what is in front of it was acknowledged, but not within this time, in which a sender may repeat
/// several (the least timeout of today's senders).
const BETWEEN_TIMEOUTS: Duration = LEAST_TIMEOUT;

/// Whether a repetition may be a probe of the end of the window.
pub(super) fn may_be_probe(stream: &Stream, end: SeqNumber) -> bool {
    stream.next == Some(end)
}

/// A segment with data passes.
pub(super) fn learn(now: Instant, stream: &mut Stream, state: &mut State, passing: &Passing<'_>) {
    let size = u64::from(passing.header.total_len());
    let segment = passing.segment;
    if passing.seen.is_repetition {
        if !may_be_probe(stream, segment.end_seq()) {
            let lowest = state.repeated.is_none_or(|repeated| segment.seq.is_before(repeated));
            if lowest {
                state.repeated = Some(segment.seq);
            }
        }
        return;
    }
    // New data although nothing was acknowledged for long: it was, but by another way.
    if let Some(last) = stream.last_ack {
        let longest = (4 * stream.round_trip.unwrap_or_default()).max(Duration::from_secs(1));
        let is_late = |at: Instant| now.saturating_duration_since(at) > longest;
        let owes = stream.kept.oldest().and_then(|oldest| oldest.sent()).is_some_and(|sent| is_late(sent.at));
        state.acks_hidden |= owes && is_late(last.at);
    }
    state.repeated = None;
    state.fresh_at = Some(now);
    if !state.sees_acks(stream) {
        state.meter.add(now, size, None);
    }
}

/// Whether this segment says where a replay has to begin that waits for such a word.
pub(super) fn tells_where_to_begin(stream: &Stream, state: &State, passing: &Passing<'_>) -> bool {
    state.patience.is_some()
        && !state.sees_acks(stream)
        && passing.seen.is_repetition
        && state.repeated.is_some()
}

/// Forgets what must have been acknowledged by now.
pub(super) fn prune(cx: &mut Context<'_>, stream: &mut Stream, state: &State) {
    let (outbox, counters, now) = (&mut *cx.outbox, &mut *cx.counters, cx.now);
    let mut drop = |kept: crate::keeping::Kept| {
        counters.acknowledged += 1;
        outbox.drop_kept(&kept, DropReason::DeliveredAlready);
    };
    if let Some(una) = state.repeated {
        stream.kept.retain(
            |kept| kept.end.is_after(una) || kept.waits() || kept.at + BETWEEN_TIMEOUTS > now,
            &mut drop,
        );
        return;
    }
    while stream.kept.len() > LEAST
        && stream.kept.oldest().is_some_and(|oldest| !oldest.waits() && oldest.at + LONGEST_TIMEOUT <= now)
        && let Some(oldest) = stream.kept.pop_oldest()
    {
        drop(oldest);
    }
}
