//! Keep back the acknowledgement of the last bytes.
//!
//! A sender that waits in a backed-off timeout is woken by an acknowledgement of something new, and by nothing less. If the last byte
//! that arrived before an outage stays unacknowledged, there is something new to say when the path is back.
//!
//! - **Where.** On the mobile node for downloads, at the home agent or a foreign agent for uploads. No end host changes.
//! - **What it needs.** An announcement, at the latest when the last data arrive; or [`crate::AckHold::always`].
//! - **What it does.** It lowers acknowledgement numbers by [`crate::AckHold::bytes`], not below what has left already. When a path is
//!   usable, the receiver's own number is injected; also after [`crate::AckHold::longest`], unless the path is lost by then.
//! - **Late.** Nothing is kept back then. But the last acknowledgement may have been lost on the air, and is sent once more when
//!   the path is back, if an announcement had come.
//! - **Missing.** Without [`crate::AckHold::always`] nothing is done.
//! - **Wrong.** The last acknowledgement of a pause comes [`crate::AckHold::longest`] late.
//! - **Risks.** One injected acknowledgement for each pause of the sender. An acknowledgement of fewer bytes than a segment
//!   grows a sender's window as one of a whole segment would where it counts acknowledgements instead of bytes (RFC 3465).
//! - **Source.** The last byte as a lever: M-TCP (Brown and Singh 1997, as RFC 2757 section 4.10.4 describes it), here without its
//!   zero window.

use careof_wire::SeqNumber;

use crate::acknowledgement::{Wanted, may_be_edited};
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{Kind, Towards, Verdict, Wake};

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// An end of the path was announced.
    is_warned: bool,
    /// The highest acknowledgement that left, towards the mobile node and towards the peer.
    left: [Option<SeqNumber>; 2],
}

impl State {
    const fn left_mut(&mut self, towards: Towards) -> &mut Option<SeqNumber> {
        match towards {
            Towards::Mobile => &mut self.left[0],
            Towards::Peer => &mut self.left[1],
        }
    }

    /// Whether what left `towards` an end is less than `una`, which its receiver has said.
    pub(crate) fn is_behind(&mut self, towards: Towards, una: Option<SeqNumber>) -> bool {
        let left = *self.left_mut(towards);
        una.zip(left).is_some_and(|(una, left)| left.is_before(una))
    }
}

/// An acknowledgement left.
pub(crate) fn note_sent(flow: &mut Flow, towards: Towards, ack: SeqNumber) {
    let left = flow.ack_hold.left_mut(towards);
    *left = Some(left.map_or(ack, |left| left.later(ack)));
}

/// A segment passes: its acknowledgement says less.
pub(crate) fn on_packet(cx: &mut Context<'_>, flow: &mut Flow, passing: &Passing<'_>, verdict: &mut Verdict) {
    let Some(config) = cx.config.ack_hold else { return };
    if passing.towards != cx.config.place.keeps() || !passing.segment.flags.are_of_a_stream() {
        return;
    }
    if !may_be_edited(flow, passing) {
        note_sent(flow, passing.towards, passing.segment.ack);
        return;
    }
    let is_on = (config.always || flow.ack_hold.is_warned) && !is_ending(flow);
    let bytes = if is_on { config.bytes } else { 0 };
    lower(flow, passing, bytes, verdict);
    let timer = Owner::Flow(flow.key);
    if !is_holding(cx, flow) {
        cx.timers.stop(timer, Wake::AckHold);
    } else if passing.seen.acknowledges {
        cx.timers.set(timer, Wake::AckHold, cx.now + config.longest);
    }
}

/// Lowers the acknowledgement of a segment by up to `bytes`, not below what left before.
pub(crate) fn lower(flow: &mut Flow, passing: &Passing<'_>, bytes: u32, verdict: &mut Verdict) {
    let ack = passing.segment.ack;
    // The first one cannot be lowered: nobody knows what left before.
    let left = flow.ack_hold.left_mut(passing.towards).unwrap_or(ack);
    let lowered = ack.minus(bytes).later(left);
    let lowered = if lowered.is_before(ack) { lowered } else { ack };
    if lowered != ack {
        let edit = verdict.edit.get_or_insert_default();
        edit.ack = Some(lowered);
        // A report of what came twice (RFC 2883) would lie above the lowered number, and say that something is missing.
        edit.without_sack |= passing.segment.sack.as_slice().iter().any(|(block, _)| block.is_before(ack));
    }
    note_sent(flow, passing.towards, lowered);
}

/// Something happened to the path.
pub(crate) fn on_path(cx: &mut Context<'_>, flow: &mut Flow, event: &PathEvent) {
    if cx.config.ack_hold.is_none() {
        return;
    }
    match event {
        PathEvent::Announced { .. } => flow.ack_hold.is_warned = true,
        PathEvent::Lost => {}
        PathEvent::Usable(_) => {
            let was_warned = core::mem::take(&mut flow.ack_hold.is_warned);
            if was_warned || is_holding(cx, flow) {
                release(cx, flow);
            }
        }
        PathEvent::FalseAlarm => {
            flow.ack_hold.is_warned = false;
            if is_holding(cx, flow) {
                release(cx, flow);
            }
        }
    }
}

/// A timer of the flow went off.
pub(crate) fn on_timeout(cx: &mut Context<'_>, flow: &mut Flow, wake: Wake) {
    let is_lost = cx.paths.lost_since(flow.key.mobile).is_some();
    if wake == Wake::AckHold && cx.config.ack_hold.is_some() && !is_lost && is_holding(cx, flow) {
        release(cx, flow);
    }
}

/// Whether a FIN was seen: its sender and receiver are to come to an end by themselves.
pub(crate) fn is_ending(flow: &Flow) -> bool {
    [Towards::Mobile, Towards::Peer].into_iter().any(|towards| flow.stream(towards).fin.is_some())
}

fn is_holding(cx: &Context<'_>, flow: &mut Flow) -> bool {
    let towards = cx.config.place.keeps();
    let una = flow.stream(towards.back()).una;
    flow.ack_hold.is_behind(towards, una)
}

fn release(cx: &mut Context<'_>, flow: &mut Flow) {
    let towards = cx.config.place.keeps();
    cx.timers.stop(Owner::Flow(flow.key), Wake::AckHold);
    Wanted::of(Kind::AckHold, "release-ack", towards).give_back(cx, flow);
}
