//! The face of an assist: what it sees, and what it answers.
//!
//! An assistant shows every assist what happens, in the order of their list ([`crate::assists`]), and an assist fills in the hooks that
//! it has an answer for. One that the configuration does not name answers nothing.
//!
//! Assists do not know each other. What one finds out and others go by is a property of the flow ([`crate::flow`]) or stands in the
//! context ([`crate::context`]).

use core::fmt::Debug;
use core::ops::ControlFlow;

use careof_wire::{ReceivedFlow, Segment};

use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::{Towards, Verdict, Wake};

/// An assist.
///
/// Hooks about a flow are given what the assist remembers of that flow as `state`. They act by the verdict on the packet that passes,
/// where there is one, and by the context's outbox and timers.
pub(crate) trait Assist: Debug + Default {
    /// What is remembered of a flow.
    type State: Debug + Default;

    /// A segment arrives, of which nothing was learnt yet ([`Passing::seen`]). To break means that its fate is decided, and that neither the
    /// flow nor another assist learns of it.
    fn on_arrival(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _passing: &Passing<'_>,
        _verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A segment passes. To break means that its fate is decided, and that the assists behind do not see it.
    fn on_packet(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _passing: &Passing<'_>,
        _verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An assist injects an acknowledgement with the receiver's window: `ack` may still be changed.
    fn on_inject(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _towards: Towards,
        _ack: &mut Segment,
    ) {
    }

    /// The mobile node says how far it has received the flow.
    fn on_received(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _told: &ReceivedFlow,
    ) {
    }

    /// Something happened to the path of the flow. All assists hear of it before any of them answers, by [`Self::signal`] and then by
    /// [`Self::deliver`].
    fn on_path(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// What the ends are told after such an event: small packets, ahead of what was stored.
    fn signal(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// What is sent of what was stored after such an event.
    fn deliver(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// A timer of the flow went off.
    fn on_timeout(&mut self, _cx: &mut Context<'_>, _flow: &mut Flow, _state: &mut Self::State, _wake: Wake) {
    }
}
