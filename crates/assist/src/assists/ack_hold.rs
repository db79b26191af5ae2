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

use core::ops::ControlFlow;

use crate::acknowledgement::{Wanted, lower, may_be_edited};
use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{Kind, Verdict, Wake};

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// An end of the path was announced.
    is_warned: bool,
}

/// Keeps back the acknowledgement of the last bytes.
#[derive(Debug, Default)]
pub(crate) struct AckHoldAssist;

impl Assist for AckHoldAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.ack_hold else { return ControlFlow::Continue(()) };
        if passing.towards != cx.config.place.keeps() || !passing.segment.flags.are_of_a_stream() {
            return ControlFlow::Continue(());
        }
        if !may_be_edited(flow, passing) {
            flow.note_ack_left(passing.towards, passing.segment.ack);
            return ControlFlow::Continue(());
        }
        let is_on = (config.always || state.is_warned) && !flow.is_ending();
        let bytes = if is_on { config.bytes } else { 0 };
        lower(flow, passing, bytes, verdict);
        let timer = Owner::Flow(flow.key);
        if !is_holding(cx, flow) {
            cx.timers.stop(timer, Wake::AckHold);
        } else if passing.seen.acknowledges {
            cx.timers.set(timer, Wake::AckHold, cx.now + config.longest);
        }
        ControlFlow::Continue(())
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        if cx.config.ack_hold.is_none() {
            return;
        }
        match event {
            PathEvent::Announced { .. } => state.is_warned = true,
            PathEvent::Lost | PathEvent::Copies { .. } => {}
            PathEvent::Usable(_) => {
                let was_warned = core::mem::take(&mut state.is_warned);
                if was_warned || is_holding(cx, flow) {
                    release(cx, flow);
                }
            }
            PathEvent::FalseAlarm => {
                state.is_warned = false;
                if is_holding(cx, flow) {
                    release(cx, flow);
                }
            }
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, _state: &mut State, wake: Wake) {
        let is_lost = cx.paths.lost_since(flow.key.mobile).is_some();
        if wake == Wake::AckHold && cx.config.ack_hold.is_some() && !is_lost && is_holding(cx, flow) {
            release(cx, flow);
        }
    }
}

fn is_holding(cx: &Context<'_>, flow: &Flow) -> bool {
    flow.stream(cx.config.place.keeps().back()).holds_ack_back()
}

fn release(cx: &mut Context<'_>, flow: &mut Flow) {
    let towards = cx.config.place.keeps();
    cx.timers.stop(Owner::Flow(flow.key), Wake::AckHold);
    Wanted::of(Kind::AckHold, "release-ack", towards).give_back(cx, flow);
}
