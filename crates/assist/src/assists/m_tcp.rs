//! The last byte's acknowledgement as a lever on the sender's window (M-TCP: Brown and Singh 1997, as RFC 2757 section 4.10.4
//! describes it).
//!
//! - **Where.** At a foreign agent or base station, or at the home agent, for downloads. The peer does not change; of the mobile
//!   node's part (frozen timers, a marked acknowledgement on return) nothing is needed here, for its data are not many.
//! - **What it needs.** The acknowledgements of the mobile node, both SYNs of a flow, and the round trip to the mobile node, told or
//!   measured; without one nothing is kept back.
//! - **What it does.** It forwards acknowledgements less one byte. When the mobile node has been silent for two round trips, and
//!   not less than an acknowledgement may be delayed, while data are owed to it, or when the path is lost, that byte is acknowledged
//!   with a window of zero: the sender takes it, and stops where it is with all it knows. When the mobile node is heard again, or
//!   a path is usable, the window opens. When it is silent because it has everything, the byte is acknowledged with the window as it is.
//!   All that happens at the agent that closed it. One foreign agent tells another nothing, so behind the next one the mobile node's
//!   answer to a probe opens the window: the sender probes as late as its retransmission timer, backed off alike, would have gone off.
//! - **Late, missing or wrong.** The silence itself is the trigger. One that is no outage stops the sender for as long as it
//!   lasts, at most [`crate::Limits::acks_per_flow`] times a handover. An outage that is noticed after the sender's timer has gone off
//!   is one like any other.
//! - **Risks.** As of `freeze`: a promise is taken back. Never is a byte acknowledged that the mobile node has not.

use core::ops::ControlFlow;
use core::time::Duration;

use crate::acknowledgement::{Wanted, Window, lower, may_be_edited};
use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{Kind, Sack, Towards, Verdict, Wake};

/// Common receivers delay an acknowledgement no longer than this (RFC 9293 section 3.8.6.3 allows half a second).
const LONGEST_DELAY: Duration = Duration::from_millis(200);

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    is_closed: bool,
}

/// Keeps back the last byte's acknowledgement as a lever.
#[derive(Debug, Default)]
pub(crate) struct MTcpAssist;

impl Assist for MTcpAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        if !cx.config.m_tcp || !passing.segment.flags.are_of_a_stream() {
            return ControlFlow::Continue(());
        }
        let silence = silence(cx, flow);
        let is_answer = passing.towards == Towards::Peer;
        let Some(silence) = silence.filter(|_| !is_answer || may_be_edited(flow, passing)) else {
            if is_answer {
                flow.note_ack_left(Towards::Peer, passing.segment.ack);
            }
            return ControlFlow::Continue(());
        };
        if is_answer {
            // It has its own window, and so the sender is free again.
            state.is_closed = false;
            lower(flow, passing, if flow.is_ending() { 0 } else { 1 }, verdict);
            watch(cx, flow, silence);
        } else if cx.timers.get(Owner::Flow(flow.key), Wake::Freeze).is_none() && !state.is_closed {
            watch(cx, flow, silence);
        }
        ControlFlow::Continue(())
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        if !cx.config.m_tcp {
            return;
        }
        match event {
            PathEvent::Lost => close(cx, flow, state),
            PathEvent::Usable(_) if core::mem::take(&mut state.is_closed) => {
                Wanted::of(Kind::MTcp, "open-window", Towards::Peer).inject(cx, flow, 1);
            }
            PathEvent::Usable(_)
            | PathEvent::Announced { .. }
            | PathEvent::FalseAlarm
            | PathEvent::Copies { .. } => {}
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, wake: Wake) {
        if wake != Wake::Freeze || !cx.config.m_tcp {
            return;
        }
        if is_owed(flow) {
            close(cx, flow, state);
        } else if is_holding(flow) {
            Wanted::of(Kind::MTcp, "release-ack", Towards::Peer).give_back(cx, flow);
        }
    }
}

/// How long nothing is heard of the mobile node until it counts as silent; `None`: nobody can tell.
fn silence(cx: &Context<'_>, flow: &Flow) -> Option<Duration> {
    let stream = flow.stream(Towards::Mobile);
    stream.scale?;
    let given = cx.paths.properties(flow.key.mobile).round_trip;
    Some(given.max(stream.round_trip)?.saturating_mul(2).max(LONGEST_DELAY))
}

fn watch(cx: &mut Context<'_>, flow: &Flow, silence: Duration) {
    let timer = Owner::Flow(flow.key);
    if is_owed(flow) || is_holding(flow) {
        cx.timers.set(timer, Wake::Freeze, cx.now + silence);
    } else {
        cx.timers.stop(timer, Wake::Freeze);
    }
}

fn is_owed(flow: &Flow) -> bool {
    let stream = flow.stream(Towards::Mobile);
    stream.una.zip(stream.next).is_some_and(|(una, next)| una.is_before(next))
}

fn is_holding(flow: &Flow) -> bool {
    flow.stream(Towards::Mobile).holds_ack_back()
}

fn close(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    cx.timers.stop(Owner::Flow(flow.key), Wake::Freeze);
    if state.is_closed || flow.stream(Towards::Mobile).scale.is_none() {
        return;
    }
    let closing = Wanted {
        towards: Towards::Peer,
        window: Window::Zero,
        sack: Sack::None,
        assist: Kind::MTcp,
        what: "close-window",
    };
    if closing.inject(cx, flow, 1) > 0 {
        state.is_closed = true;
    } else if is_holding(flow) {
        Wanted::of(Kind::MTcp, "release-ack", Towards::Peer).give_back(cx, flow);
    }
}
