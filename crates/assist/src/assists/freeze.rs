//! A zero window ahead of an announced handover (Freeze-TCP: Goff, Moronski, Phatak and Gupta 2000).
//!
//! A sender that is told a window of zero keeps its timer, its window of congestion and what it knows of the path as they are,
//! and only probes. So a handover that is announced in time costs it nothing: the window closes before the path ends and opens
//! when the next one is there.
//!
//! - **Where.** On the mobile node for downloads; at the home agent, or a foreign agent, for uploads, where the
//!   acknowledgements towards the mobile node pass. No end host changes: its own window is only rewritten on the way.
//! - **What it needs.** The announcement, early: about a round trip with its queueing, so that what is in flight is still
//!   acknowledged. And both SYNs of a flow.
//! - **What it does.** From [`crate::Freeze::warning`] before the announced end on, every acknowledgement that passes says a window of
//!   zero, and one is injected that says so at once. When a path is usable, [`crate::Freeze::acks`] acknowledgements with the receiver's
//!   last window open it.
//! - **Route optimisation.** The window opens towards a peer that sends straight (RFC 6275) when it has acknowledged the new care-of
//!   address: what it sends sooner goes to the old one.
//! - **Late.** A warning that comes late closes the window at once, if it is open still: data in flight then are lost, and their timer
//!   runs as if nothing had been done. A path that is lost without announcement changes nothing, for nothing could leave.
//! - **Twice.** The last announcement counts: if the end it tells is further away than the warning, a closed window opens until then.
//! - **Wrong.** If nothing has happened [`crate::Freeze::patience`] after the announced end, one acknowledgement opens the window: a false
//!   alarm costs warning and patience.
//! - **Risks.** It takes back what was promised, which a receiver should not do (RFC 9293 section 3.8.6) and a sender must bear:
//!   the receiver itself knows nothing of it and takes what comes. If all the acknowledgements that open it are lost, the sender's
//!   probes do it, later.

use core::ops::ControlFlow;
use core::time::Duration;

use careof_base::Instant;

use crate::acknowledgement::{Wanted, Window, may_be_edited};
use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{Config, Freeze, Kind, Sack, Towards, Verdict, Wake};

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    is_closed: bool,
}

/// Closes the window ahead of a handover.
#[derive(Debug, Default)]
pub(crate) struct FreezeAssist;

impl Assist for FreezeAssist {
    type State = State;

    fn patience(config: &Config) -> Option<Duration> {
        config.freeze.map(|freeze| freeze.patience)
    }

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.freeze else { return ControlFlow::Continue(()) };
        if passing.towards != side(cx) || !is_fit(cx, flow) || !may_be_edited(flow, passing) {
            return ControlFlow::Continue(());
        }
        // A flow that began after the announcement has no timer.
        state.is_closed |= cx.paths.ends_at(flow.key.mobile).is_some_and(|end| begin(&config, end) <= cx.now);
        if state.is_closed && passing.segment.window > 0 {
            verdict.edit.get_or_insert_default().window = Some(0);
        }
        ControlFlow::Continue(())
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let Some(config) = cx.config.freeze else { return };
        let timer = Owner::Flow(flow.key);
        match event {
            PathEvent::Announced { ends_at, .. } => {
                let begin = begin(&config, *ends_at);
                if begin <= cx.now {
                    cx.timers.stop(timer, Wake::Freeze);
                    close(cx, flow, state);
                } else {
                    thaw(cx, flow, state, 1);
                    cx.timers.set(timer, Wake::Freeze, begin);
                }
            }
            PathEvent::Lost => cx.timers.stop(timer, Wake::Freeze),
            PathEvent::Copies { .. } => {}
            PathEvent::Usable(_) => {
                cx.timers.stop(timer, Wake::Freeze);
                if flow.peer_awaits.is_none() {
                    thaw(cx, flow, state, config.acks);
                }
            }
            PathEvent::FalseAlarm => {
                cx.timers.stop(timer, Wake::Freeze);
                thaw(cx, flow, state, 1);
            }
        }
    }

    fn on_peer_updated(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        _event: &PathEvent,
    ) {
        if let Some(config) = cx.config.freeze {
            thaw(cx, flow, state, config.acks);
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, wake: Wake) {
        if cx.config.freeze.is_some() && wake == Wake::Freeze {
            close(cx, flow, state);
        }
    }
}

/// The end whose sender is frozen.
fn side(cx: &Context<'_>) -> Towards {
    cx.config.place.keeps()
}

fn begin(config: &Freeze, end: Instant) -> Instant {
    end.saturating_sub(config.warning)
}

/// Windows are changed only where both SYNs were seen.
fn is_fit(cx: &Context<'_>, flow: &Flow) -> bool {
    flow.stream(side(cx).back()).scale.is_some()
}

fn close(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    if state.is_closed || !is_fit(cx, flow) {
        return;
    }
    state.is_closed = true;
    let closing = Wanted {
        towards: side(cx),
        window: Window::Zero,
        sack: Sack::None,
        assist: Kind::Freeze,
        what: "close-window",
    };
    closing.inject(cx, flow, 1);
}

fn thaw(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, acks: u32) {
    if core::mem::take(&mut state.is_closed) {
        Wanted::of(Kind::Freeze, "open-window", side(cx)).inject(cx, flow, acks);
    }
}
