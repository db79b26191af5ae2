//! The only place where an acknowledgement is made.
//!
//! It says what the receiver has said already, and in no other voice than its own: the acknowledgement number is the highest
//! that was seen to leave the receiver, the sequence number the highest that was seen of it (so that the segment is acceptable,
//! RFC 9293 section 3.10.7.4), the timestamp the highest that it sent (RFC 7323 section 5.3: an older one would fail the PAWS
//! test, a younger one would make the receiver's own fail), the echoed timestamp that of its last acknowledgement. The window is
//! that of the last acknowledgement, or zero.
//!
//! None is made for a flow of which no acknowledgement was seen, which has closed or may begin anew, or of which something cannot be read
//! (see [`crate::PacketView::is_opaque`]); and not more than [`crate::Limits::acks_per_flow`] a flow and handover, nor than
//! [`crate::Limits::unproven_acks_per_second`] of all flows whose ends were not both heard. What comes of a wrong trigger is
//! bounded by that: a few segments that repeat what is known.
//!
//! Its risk: an acknowledgement that acknowledges something new to the sender - because the last one was lost on the air -
//! echoes an old timestamp, and the sender takes the time since for a round trip. That is what a late acknowledgement
//! of the receiver would do as well.

use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{Flags, IpHeader, SackBlocks, Segment, Timestamps};

use crate::context::{Context, Passing};
use crate::flow::{Flow, SeenAck};
use crate::standing::Standing;
use crate::{Kind, Phase, Sack, Towards, Verdict};

/// The congestion bits of the type of service or traffic class: no acknowledgement without data is ECN-capable (RFC 3168 section 6.1.4).
const ECN: u8 = 0b11;

/// The window of an acknowledgement that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// That of the last acknowledgement, as far as the assists leave it ([`crate::assist::Assist::on_inject`]).
    AsLast,
    /// None.
    Zero,
}

/// An acknowledgement to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The end it goes to.
    pub(crate) towards: Towards,
    pub(crate) window: Window,
    pub(crate) sack: Sack,
    /// Who wants it.
    pub(crate) assist: Kind,
    /// What for, as a word.
    pub(crate) what: &'static str,
}

impl Wanted {
    /// One with the receiver's window and without SACK blocks.
    pub(crate) const fn of(assist: Kind, what: &'static str, towards: Towards) -> Self {
        Self { towards, window: Window::AsLast, sack: Sack::None, assist, what }
    }

    /// Injects this many, as far as the limit lets it. Returns how many.
    pub(crate) fn inject(self, cx: &mut Context<'_>, flow: &mut Flow, copies: u32) -> u32 {
        if self.make(flow).is_none() {
            return 0;
        }
        let room = cx.config.limits.acks_per_flow.saturating_sub(flow.acks_injected);
        let mut copies_made = copies.min(room);
        if flow.proof.standing() != Standing::Mutual {
            // Whoever makes up many flows must not have as many acknowledgements sent at each handover.
            copies_made = (0..copies_made).take_while(|_| cx.unproven_acks.allows(cx.now)).count() as u32;
        }
        cx.counters.limited += u64::from(copies - copies_made);
        flow.acks_injected += copies_made;
        self.send(cx, flow, copies_made)
    }

    /// Lets out what was kept back. That does not count against the limit: it takes the place of an acknowledgement of the
    /// receiver that did not go on.
    pub(crate) fn give_back(self, cx: &mut Context<'_>, flow: &mut Flow) -> bool {
        self.send(cx, flow, 1) == 1
    }

    fn send(self, cx: &mut Context<'_>, flow: &mut Flow, copies: u32) -> u32 {
        let Some((header, segment)) = self.make(flow) else { return 0 };
        let is_open = self.window == Window::AsLast;
        cx.outbox.inject((header, segment), self.towards, copies, is_open);
        if copies > 0 {
            flow.note_ack_left(self.towards, segment.ack);
            cx.counters.acks_injected += u64::from(copies);
            let bytes = u64::from(copies) * u64::from(header.total_len());
            cx.outbox.did(flow.key, self.assist, self.what, copies, bytes);
        }
        copies
    }

    fn make(self, flow: &Flow) -> Option<(IpHeader, Segment)> {
        if flow.is_opaque || flow.phase != Phase::Open || flow.proof.syn.is_some() {
            return None;
        }
        let acknowledged = flow.stream(self.towards.back());
        let own = flow.stream(self.towards);
        let SeenAck { header, segment: last, .. } = acknowledged.last_ack?;
        let segment = Segment {
            source_port: last.source_port,
            destination_port: last.destination_port,
            seq: own.next?,
            ack: acknowledged.una?,
            flags: Flags::ACK,
            window: match self.window {
                Window::AsLast => last.window,
                Window::Zero => 0,
            },
            timestamps: last.timestamps.map(|stamps| Timestamps {
                value: own.last_value.unwrap_or(stamps.value),
                echo: stamps.echo,
            }),
            sack: match self.sack {
                Sack::AsLast => last.sack,
                Sack::None => SackBlocks::EMPTY,
            },
            ..Segment::default()
        };
        let payload_len = segment.header_len();
        let header = match header {
            // A datagram that is not to be fragmented needs no identification of its own (RFC 6864 section 4.1).
            IpHeader::V4(header) => IpHeader::V4(Ipv4Header {
                tos: header.tos & !ECN,
                identification: 0,
                dont_fragment: true,
                more_fragments: false,
                fragment_offset: 0,
                payload_len,
                ..header
            }),
            IpHeader::V6(header) => {
                let traffic_class = header.traffic_class & !ECN;
                IpHeader::V6(Ipv6Header { traffic_class, payload_len, ..header })
            }
        };
        Some((header, segment))
    }
}

/// Whether the acknowledgement in a segment that passes may be changed: it is one of an open stream that can be read, and
/// it acknowledges something that was sent.
pub(crate) fn may_be_edited(flow: &Flow, passing: &Passing<'_>) -> bool {
    let una = flow.stream(passing.towards.back()).una;
    passing.segment.flags.are_of_a_stream()
        && flow.phase == Phase::Open
        && !flow.is_opaque
        && una.is_some_and(|una| passing.segment.ack.is_at_or_before(una))
}

/// Lowers the acknowledgement of a segment that passes by up to `bytes`, not below what left before.
pub(crate) fn lower(flow: &mut Flow, passing: &Passing<'_>, bytes: u32, verdict: &mut Verdict) {
    let ack = passing.segment.ack;
    // The first one cannot be lowered: nobody knows what left before.
    let left = flow.stream(passing.towards.back()).ack_left.unwrap_or(ack);
    let lowered = ack.minus(bytes).later(left);
    let lowered = if lowered.is_before(ack) { lowered } else { ack };
    if lowered != ack {
        let edit = verdict.edit.get_or_insert_default();
        edit.ack = Some(lowered);
        // A report of what came twice (RFC 2883) would lie above the lowered number, and say that something is missing.
        edit.without_sack |= passing.segment.sack.as_slice().iter().any(|(block, _)| block.is_before(ack));
    }
    flow.note_ack_left(passing.towards, lowered);
}
