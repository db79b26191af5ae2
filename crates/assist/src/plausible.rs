//! What can be of a connection whose ends were both heard: what they would not accept (RFC 9293 section 3.10.7.4, RFC 5961) teaches
//! nothing here either, and neither ends it nor begins it anew.

use careof_base::Instant;
use careof_wire::{Flags, Segment};

use crate::flow::Flow;
use crate::standing::{LIVE, Standing};
use crate::{Phase, Towards};

/// So far outside of the window something may lie that is late, or probes.
const SLACK: u32 = 65_535;
/// So far behind the window data may lie: a large window, sent again.
const LATE_DATA: u32 = 1 << 24;
/// What may be sent before the first acknowledgement, generously.
const FIRST_WINDOW: u32 = 1 << 20;

impl Flow {
    /// Whether a segment that goes `towards` an end can be of this connection, as far as that is known. Nothing is known while not
    /// both ends were heard, nor without the scale of the windows, nor of a direction whose acknowledgements have not passed
    /// here of late, or not `since` the path in use is used: it may have gone on elsewhere.
    pub(crate) fn can_be_of(
        &self,
        now: Instant,
        since: impl FnOnce() -> Option<Instant>,
        towards: Towards,
        segment: &Segment,
    ) -> bool {
        if self.proof.standing() != Standing::Mutual {
            return true;
        }
        let stream = self.stream(towards);
        if segment.flags.contains(Flags::SYN) {
            // The handshake is over, and a late copy of it says what it said.
            return self.phase == Phase::Closing || stream.syn == Some(segment.seq);
        }
        let (Some(next), Some(_)) = (stream.next, stream.scale) else { return true };
        let window = stream.una.zip(stream.window_edge);
        // Else nothing but the handshake is acknowledged.
        let (una, edge) = window.unwrap_or((next, next.plus(FIRST_WINDOW)));
        // Behind what was seen to be sent something may be missing that was sent elsewhere.
        let is_ahead = segment.end_seq().is_after(edge.plus(SLACK)) && segment.seq.is_after(next.plus(SLACK));
        // Data that were acknowledged may come once more, and late.
        let late = if segment.seq_len() == 0 { SLACK } else { LATE_DATA };
        if !is_ahead && !segment.seq.is_before(una.minus(late)) {
            return true;
        }
        let is_old = |at: Instant| at + LIVE < now || since().is_some_and(|since| at < since);
        stream.last_ack.is_some_and(|last| is_old(last.at))
    }

    /// Whether a SYN that goes `towards` an end, and is not the one of this connection, may begin another one at once. It may not
    /// where both ends are in the middle of one: then it is a mistake or a forgery until the other end has agreed (RFC 5961
    /// section 4).
    pub(crate) fn can_begin_anew(&self) -> bool {
        self.proof.standing() != Standing::Mutual || self.phase == Phase::Closing
    }
}
