//! Who of a connection has been heard, and what can be of it: by this a live connection is told from what somebody made up.
//!
//! Anybody can send segments in anybody's name, as many as he likes and with any ports. What he cannot do from off the path is
//! acknowledge what the other end has said, for he does not see it. So a connection counts as one once each end has
//! acknowledged something of the other's; what its ends would not accept then (RFC 9293 section 3.10.7.4, RFC 5961) teaches
//! nothing here either, and neither ends it nor begins it anew.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, Segment, SeqNumber};

use crate::Towards;
use crate::flow::{Flow, Phase};

/// So many segments in one direction make up for the other direction's passing elsewhere (triangle routing).
const MANY: u8 = 8;
/// So far outside of the window something may lie that is late, or probes.
const SLACK: u32 = 65_535;
/// So far behind the window data may lie: a large window, sent again.
const LATE_DATA: u32 = 1 << 24;
/// What may be sent before the first acknowledgement, generously.
const FIRST_WINDOW: u32 = 1 << 20;

/// A connection that was not seen for so long is not in the middle of anything: what is kept for it has become old, too
/// ([`crate::Replay::age`]).
pub(crate) const LIVE: Duration = Duration::from_secs(30);

/// What is known of a connection's ends. The order is that of who has to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Some segments, maybe of nobody.
    #[default]
    New,
    /// Many, all in one direction or without an answer.
    OneWay,
    /// Each end has acknowledged something that the other one has sent.
    Mutual,
}

/// What speaks for a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof {
    standing: Standing,
    segments: u8,
    /// What was sent towards the mobile node and towards the peer: the first number and the one behind the last.
    sent: [Option<(SeqNumber, SeqNumber)>; 2],
    /// Something that was sent this way acknowledges what was sent the other way.
    answers: [bool; 2],
    /// A SYN of another connection between the same ports, to which the end it went to has not agreed yet.
    pub(crate) syn: Option<(Towards, Segment)>,
}

const fn index(towards: Towards) -> usize {
    match towards {
        Towards::Mobile => 0,
        Towards::Peer => 1,
    }
}

impl Proof {
    pub(crate) const fn standing(&self) -> Standing {
        self.standing
    }

    /// A segment passes `towards` an end. Whether more is known of the connection now.
    pub(crate) fn note(&mut self, towards: Towards, segment: &Segment) -> bool {
        if self.standing == Standing::Mutual {
            return false;
        }
        let (ahead, back) = (index(towards), index(towards.back()));
        let (seq, end) = (segment.seq, segment.end_seq());
        self.sent[ahead] = Some(match self.sent[ahead] {
            Some((first, last)) => (if seq.is_before(first) { seq } else { first }, last.later(end)),
            None => (seq, end),
        });
        self.answers[ahead] |= segment.flags.contains(Flags::ACK)
            && self.sent[back].is_some_and(|(first, last)| {
                segment.ack.is_at_or_after(first) && segment.ack.is_at_or_before(last)
            });
        self.segments = self.segments.saturating_add(1);
        let before = self.standing;
        if self.answers == [true; 2] {
            self.standing = Standing::Mutual;
        } else if self.segments >= MANY {
            self.standing = Standing::OneWay;
        }
        self.standing != before
    }

    /// The SYN of another connection between the same ports, and where it went, if this segment is the other end's agreement.
    pub(crate) fn agreed(&self, towards: Towards, segment: &Segment) -> Option<(Towards, Segment)> {
        if !segment.flags.contains(Flags::SYN) || !segment.flags.contains(Flags::ACK) {
            return None;
        }
        self.syn.filter(|(to, syn)| *to == towards.back() && segment.ack == syn.seq.plus(1))
    }
}

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
        if self.proof.standing != Standing::Mutual {
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
        self.proof.standing != Standing::Mutual || self.phase == Phase::Closing
    }
}
