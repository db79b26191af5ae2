//! Who of a connection has been heard: by this a live connection is told from what somebody made up.
//!
//! Anybody can send segments in anybody's name, as many as he likes and with any ports. What he cannot do from off the path is
//! acknowledge what the other end has said, for he does not see it. So a connection counts as one once each end has
//! acknowledged something of the other's. From then on it matters what can be of it ([`crate::plausible`]).

use core::time::Duration;

use careof_wire::{Flags, Segment, SeqNumber};

use crate::Towards;

/// So many segments in one direction make up for the other direction's passing elsewhere (triangle routing).
const MANY: u8 = 8;
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
