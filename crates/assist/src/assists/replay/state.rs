//! What is remembered of a flow.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::courses::Arrived;
use crate::flow::Stream;
use crate::keeping::Kept;
use crate::meter::Meter;

use super::duplicates::SentAgain;

/// The old path gets time to deliver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) since: Instant,
    pub(super) wait: Duration,
    /// It can deliver still. If not, its last acknowledgements come late.
    pub(super) delivers: bool,
}

/// What replay knows of the direction of a flow that is kept, beyond its packets.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) meter: Meter,
    /// What has arrived of what was released since the course of the replay was last told.
    pub(super) arrived: Option<Arrived>,
    /// Something released was lost since the course of the replay was last told.
    pub(super) saw_loss: bool,
    /// The least round trip that the course of the replay has measured.
    pub(super) fastest: Option<Duration>,
    /// By how much the present path delivers packets behind those that were released after them.
    pub(super) reordering: Duration,
    /// The old path was left and may still deliver what it has.
    pub(super) patience: Option<Patience>,
    /// Packets and bytes released since the replay began.
    pub(super) released: (u32, u64),
    pub(super) last_release: Option<Instant>,
    /// For so long after its release a packet cannot have been acknowledged.
    pub(super) grace: Duration,
    /// The path is the one that was lost.
    pub(super) is_same_path: bool,
    /// The present path is known to be slower than the one before.
    pub(super) is_slower: bool,
    /// The path that was left delivers nothing any longer.
    pub(super) left_is_lost: bool,
    /// When the path that was left last delivered something behind a hole.
    pub(super) left_path_delivered: Option<Instant>,
    /// Round trip of the path that was left, as far as it was given.
    pub(super) left_round_trip: Option<Duration>,
    /// A tail loss probe is let through for its answer.
    pub(super) may_probe: bool,
    /// Duplicate acknowledgements since the last new one.
    pub(super) duplicates: u8,
    /// Of a receiver without SACK: the end of what it may have behind a hole.
    pub(super) behind_hole: Option<SeqNumber>,
    /// The timestamp that the receiver has echoed, as it has said itself.
    pub(super) echoed: Option<u32>,
    /// Without acknowledgements in sight: the lowest sequence number repeated since the last new data, or where the receiver has said
    /// that it is.
    pub(super) repeated: Option<SeqNumber>,
    /// When new data last arrived.
    pub(super) fresh_at: Option<Instant>,
    /// Acknowledgements passed here, but do no longer.
    pub(super) acks_hidden: bool,
    /// At the mobile node: what the sender of the other direction has sent again.
    pub(super) sent_again: SentAgain,
    /// A timer for the age of what is kept runs.
    pub(super) is_aging: bool,
}

impl State {
    /// Whether acknowledgements pass here that say how far the direction that is kept is.
    pub(super) const fn sees_acks(&self, stream: &Stream) -> bool {
        stream.una.is_some() && !self.acks_hidden
    }

    /// A packet has arrived: if it was taken for lost, the path reorders so much, but no more than a round trip (RFC 8985 section 6.2, step 4).
    pub(super) fn learn_of_reordering(&mut self, now: Instant, kept: &Kept) {
        if let Some(fastest) = self.fastest
            && let Some(late) = kept.late(now, fastest)
        {
            self.reordering = self.reordering.max(late.min(fastest));
        }
    }

    /// Whether the receiver, without SACK, lacks the first byte that is not acknowledged and has something behind it: nobody can tell what.
    pub(super) fn has_hole(&self, stream: &Stream) -> bool {
        stream.una.zip(self.behind_hole).is_some_and(|(una, end)| una.is_before(end))
    }
}
