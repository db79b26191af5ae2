//! What the headers of a connection's two directions teach.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, IpHeader, Segment, SeqNumber};

use crate::courses::Share;
use crate::keeping::Queue;
use crate::paths::Usable;
use crate::standing::Proof;
use crate::{FlowKey, Phase, Towards};

/// The largest shift count (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// The last acknowledgement that passed, from which others can be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenAck {
    pub(crate) header: IpHeader,
    /// As it came in, before any change of ours.
    pub(crate) segment: Segment,
    pub(crate) at: Instant,
}

/// One direction of data, and the acknowledgements that come back for it.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The SYN of the sender of this data was seen.
    pub(crate) syn: Option<SeqNumber>,
    /// The largest segment its sender may send, bytes: the receiver's MSS option.
    pub(crate) mss: Option<u16>,
    /// Shift count of the windows that the receiver of this data advertises; `None`: not known, for its SYN was not seen.
    pub(crate) scale: Option<u8>,
    /// What the SYN of the receiver of this data offered.
    offered_scale: Option<Option<u8>>,
    /// SND.NXT: the highest sequence number sent, exclusive.
    pub(crate) next: Option<SeqNumber>,
    /// SND.UNA: the highest acknowledgement seen.
    pub(crate) una: Option<SeqNumber>,
    /// The acknowledgement that said so, or a later one of the same number.
    pub(crate) last_ack: Option<SeenAck>,
    /// When [`Self::una`] last moved.
    pub(crate) progress_at: Option<Instant>,
    /// Right edge of the receiver's window, the furthest that was seen.
    pub(crate) window_edge: Option<SeqNumber>,
    /// The right edge that is furthest to the right of what its sender was told from here: by the SYN of its receiver, or by what an
    /// assist made of a window.
    pub(crate) told_edge: Option<SeqNumber>,
    /// The window of its receiver's SYN, which is never scaled.
    syn_window: Option<u16>,
    /// The highest acknowledgement of it that left here, where some leave with a lower number than they came with.
    pub(crate) ack_left: Option<SeqNumber>,
    /// The sequence number behind its FIN.
    pub(crate) fin: Option<SeqNumber>,
    /// The latest time stamp its sender has sent (TSval), as far as it is the highest.
    pub(crate) last_value: Option<u32>,
    /// When the latest packet with new data passed, and what its end was: one at a time is timed for the round trip.
    timed: Option<(SeqNumber, Instant)>,
    /// Round trip between here and the receiver, measured with data and acknowledgements; the smallest of late.
    pub(crate) round_trip: Option<Duration>,
    /// Stored packets.
    pub(crate) kept: Queue,
    /// What of them takes part in a replay.
    pub(crate) share: Share,
}

/// What a segment was for its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// It occupies sequence space, all of which was seen before.
    pub(crate) is_repetition: bool,
    /// It acknowledges data not acknowledged before.
    pub(crate) acknowledges: bool,
    /// It carries neither data nor SYN nor FIN, and repeats the last acknowledgement and its window.
    pub(crate) is_duplicate_ack: bool,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) key: FlowKey,
    pub(crate) phase: Phase,
    pub(crate) last_seen: Instant,
    /// Where it stands in the table's order of age: no later than [`Self::last_seen`].
    pub(crate) listed_at: Instant,
    /// Where it stands among those that would make room, likewise.
    pub(crate) ranked_at: Instant,
    /// What speaks for its being one.
    pub(crate) proof: Proof,
    /// Something about it cannot be read (see [`crate::PacketView::is_opaque`]): nothing is changed or made up.
    pub(crate) is_opaque: bool,
    /// Whether both SYNs permit SACK; `None`: they were not seen.
    pub(crate) has_sack: Option<bool>,
    streams: [Stream; 2],
    /// Round trip between the far end of the path and the peer, as the handshake showed it.
    pub(crate) behind_path: Option<Duration>,
    /// Messages sent in its name since the last path event.
    pub(crate) unreachables: u32,
    pub(crate) acks_injected: u32,
    pub(crate) stall: Option<Stall>,
    /// The path that has been usable from then on, while the peer does not know of it.
    pub(crate) peer_awaits: Option<(Instant, Usable)>,
    pub(crate) last_stall: Option<(Duration, Duration)>,
}

/// A stall under way: data are owed, and nothing has been acknowledged since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall {
    /// The last progress before.
    pub(crate) since: Instant,
    /// When a path was usable again.
    pub(crate) path_at: Option<Instant>,
}

/// A flow as `status` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The flow.
    pub key: FlowKey,
    /// How far it has come.
    pub phase: Phase,
    /// When its last packet passed.
    pub last_seen: Instant,
    /// Packets stored for it, both directions.
    pub packets: usize,
    /// Bytes stored for it.
    pub bytes: u64,
    /// The last stall: from the last progress before to the first after, and the part of it after the path was back.
    pub last_stall: Option<(Duration, Duration)>,
}

impl Flow {
    pub(crate) fn new(key: FlowKey, now: Instant) -> Self {
        Self {
            key,
            phase: Phase::Opening,
            last_seen: now,
            listed_at: now,
            ranked_at: now,
            proof: Proof::default(),
            is_opaque: false,
            has_sack: None,
            streams: [Stream::default(), Stream::default()],
            behind_path: None,
            unreachables: 0,
            acks_injected: 0,
            stall: None,
            peer_awaits: None,
            last_stall: None,
        }
    }

    /// Whether the receivers may say by SACK what they have behind a hole.
    pub(crate) fn may_have_sack(&self) -> bool {
        self.has_sack != Some(false)
    }

    /// The data that go `towards` an end.
    pub(crate) const fn stream(&self, towards: Towards) -> &Stream {
        match towards {
            Towards::Mobile => &self.streams[0],
            Towards::Peer => &self.streams[1],
        }
    }

    /// As [`Self::stream`].
    pub(crate) const fn stream_mut(&mut self, towards: Towards) -> &mut Stream {
        match towards {
            Towards::Mobile => &mut self.streams[0],
            Towards::Peer => &mut self.streams[1],
        }
    }

    /// Takes in a segment that goes `towards` an end.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        towards: Towards,
        header: &IpHeader,
        segment: &Segment,
    ) -> Seen {
        self.last_seen = now;
        let mut seen = Seen::default();
        if segment.flags.contains(Flags::SYN) {
            self.learn_syn(towards, segment);
            return seen;
        }
        if self.phase == Phase::Opening && segment.flags.contains(Flags::ACK) {
            self.phase = Phase::Open;
        }
        let stream = self.stream_mut(towards);
        if let Some(stamps) = segment.timestamps
            && stream.last_value.is_none_or(|last| stamps.value.wrapping_sub(last) as i32 > 0)
        {
            stream.last_value = Some(stamps.value);
        }
        if segment.seq_len() > 0 {
            let end = segment.end_seq();
            seen.is_repetition = stream.next.is_some_and(|next| end.is_at_or_before(next));
            if !seen.is_repetition {
                stream.next = Some(end);
                if stream.timed.is_none() {
                    stream.timed = Some((end, now));
                }
            } else {
                // Karn: what may be repeated is not timed.
                stream.timed = None;
            }
            if segment.flags.contains(Flags::FIN) {
                stream.fin = Some(end);
            }
        } else if stream.next.is_none_or(|next| segment.seq.is_after(next)) {
            // Of what was sent elsewhere, an acknowledgement tells how far it went.
            stream.next = Some(segment.seq);
        }
        if segment.flags.contains(Flags::ACK) {
            let (acknowledges, is_duplicate) =
                self.stream_mut(towards.back()).learn_ack(now, header, segment);
            seen.acknowledges = acknowledges;
            seen.is_duplicate_ack = is_duplicate;
        }
        if self.streams.iter().all(|stream| stream.fin.is_some()) {
            self.phase = Phase::Closing;
        }
        seen
    }

    /// The window scale and the segment size in a SYN are about the data of the other direction. Scaling is on if both
    /// SYNs have the option (RFC 7323 section 2.2), and the second one has it only if the first did.
    pub(crate) fn learn_syn(&mut self, towards: Towards, segment: &Segment) {
        let stream = self.stream_mut(towards);
        // One that was repeated, or comes late, tells nothing new.
        if stream.syn.replace(segment.seq) != Some(segment.seq) {
            stream.next = Some(segment.end_seq());
        }
        let answer = self.stream_mut(towards.back());
        answer.mss = segment.mss;
        answer.offered_scale = Some(segment.window_scale.map(|shift| shift.min(MAX_SCALE)));
        answer.syn_window = Some(segment.window);
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        self.has_sack = Some(segment.sack_permitted);
        let is_scaled = segment.window_scale.is_some();
        for stream in &mut self.streams {
            stream.scale = match stream.offered_scale {
                _ if !is_scaled => Some(0),
                Some(shift) => shift,
                None => None,
            };
        }
        // Both sides' first bytes are known now, and so is what their windows promised.
        for (of, first) in [(towards.back(), segment.ack), (towards, segment.seq.plus(1))] {
            let stream = self.stream_mut(of);
            if let Some(window) = stream.syn_window {
                stream.note_told_edge(first.plus(u32::from(window)));
            }
        }
    }

    /// An acknowledgement left `towards` an end.
    pub(crate) fn note_ack_left(&mut self, towards: Towards, ack: SeqNumber) {
        let left = &mut self.stream_mut(towards.back()).ack_left;
        *left = Some(left.map_or(ack, |left| left.later(ack)));
    }

    /// Whether a FIN was seen: its sender and receiver are to come to an end by themselves.
    pub(crate) fn is_ending(&self) -> bool {
        self.streams.iter().any(|stream| stream.fin.is_some())
    }

    /// Whether the acknowledgements of the data `towards` an end pass here.
    pub(crate) const fn sees_acks(&self, towards: Towards) -> bool {
        self.stream(towards).una.is_some()
    }

    pub(crate) fn status(&self) -> FlowStatus {
        FlowStatus {
            key: self.key,
            phase: self.phase,
            last_seen: self.last_seen,
            packets: self.streams.iter().map(|stream| stream.kept.len()).sum(),
            bytes: self.streams.iter().map(|stream| stream.kept.bytes()).sum(),
            last_stall: self.last_stall,
        }
    }
}

impl Stream {
    /// Its sender is told of a window up to `edge`.
    pub(crate) fn note_told_edge(&mut self, edge: SeqNumber) {
        self.told_edge = Some(self.told_edge.map_or(edge, |furthest| furthest.later(edge)));
    }

    /// Whether the acknowledgements of it that left here say less than its receiver has said.
    pub(crate) fn holds_ack_back(&self) -> bool {
        self.una.zip(self.ack_left).is_some_and(|(una, left)| left.is_before(una))
    }

    /// Takes in an acknowledgement of this direction's data. Returns whether it acknowledges something new, and whether it is
    /// a duplicate (RFC 5681 section 2).
    fn learn_ack(&mut self, now: Instant, header: &IpHeader, segment: &Segment) -> (bool, bool) {
        let ack = segment.ack;
        // Beyond what was sent: nonsense, or what we were not shown. It teaches nothing.
        if self.next.is_some_and(|next| ack.is_after(next)) && self.una.is_some() {
            return (false, false);
        }
        let acknowledges = self.una.is_none_or(|una| ack.is_after(una));
        let is_old = self.una.is_some_and(|una| ack.is_before(una));
        if is_old {
            return (false, false);
        }
        let is_duplicate = !acknowledges
            && segment.seq_len() == 0
            && self.last_ack.is_some_and(|last| last.segment.window == segment.window);
        if acknowledges {
            self.una = Some(ack);
            self.progress_at = Some(now);
            if self.next.is_none_or(|next| ack.is_after(next)) {
                self.next = Some(ack);
            }
            if let Some((end, sent)) = self.timed
                && ack.is_at_or_after(end)
            {
                let sample = now.saturating_duration_since(sent);
                // The least of late: towards a larger value by an eighth of the difference.
                self.round_trip = Some(
                    self.round_trip
                        .map_or(sample, |rtt| if sample < rtt { sample } else { rtt + (sample - rtt) / 8 }),
                );
                self.timed = None;
            }
        }
        let edge = ack.plus(u32::from(segment.window) << self.scale.unwrap_or(0));
        if self.window_edge.is_none_or(|before| edge.is_after(before)) {
            self.window_edge = Some(edge);
        }
        self.last_ack = Some(SeenAck { header: *header, segment: *segment, at: now });
        (acknowledges, is_duplicate)
    }
}
