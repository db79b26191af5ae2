//! The face of an assist: what it sees, and what it answers.
//!
//! An assistant shows every assist what happens, in the order of their list ([`crate::assists`]), and an assist fills in the hooks that
//! it has an answer for. One that the configuration does not name answers nothing.
//!
//! Assists do not know each other. What one finds out and others go by is a property of the flow ([`crate::flow`]) or stands in the
//! context ([`crate::context`]).

use core::fmt::Debug;
use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;

use careof_wire::{ReceivedFlow, Segment};

use crate::context::{Context, Outbox, Passing};
use crate::flow::Flow;
use crate::flow_table::FlowTable;
use crate::paths::PathEvent;
use crate::{Config, Fate, Towards, Verdict, Wake};

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

    /// A datagram, of TCP or not, that no assist has stopped takes the path of its mobile node: whether it waits. The first assist that
    /// does not let it pass decides. Not asked unless [`Config::is_for_all_packets`].
    fn on_datagram(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _size: u16) -> Fate {
        Fate::Pass
    }

    /// Something happened to the path of a mobile node. Its flows hear of it after that ([`Self::on_path`]).
    fn on_mobile_path(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _event: &PathEvent) {}

    /// A mobile node has registered, and with that said what its path is like. What happened to the path by it was told before.
    fn on_registered(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr) {}

    /// A timer of the mobile node went off.
    fn on_mobile_timeout(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _wake: Wake) {}

    /// Something that was told to the hooks above was about this mobile node: what it means for its flows, whichever they are. Nothing is
    /// injected here.
    fn go_on<S: Holds<Self>>(&mut self, _cx: &mut Context<'_>, _flows: &mut FlowTable<S>, _mobile: IpAddr) {}

    /// A mobile node has no flow: an assist for which nothing waits, nor is to wait, forgets it.
    fn forget_mobile(&mut self, _mobile: IpAddr) {}

    /// The assistant stops: what waits apart from flows goes on.
    fn close(&mut self, _outbox: &mut Outbox) {}

    /// How long after the announced end of a path the announcement is taken for a false alarm; `None`: as long as without the assist.
    fn patience(_config: &Config) -> Option<Duration> {
        None
    }

    /// Of how many mobile nodes something is remembered.
    #[cfg(test)]
    fn mobiles(&self) -> usize {
        0
    }
}

/// What all assists remember of a flow, in which an assist finds its own.
pub(crate) trait Holds<A: Assist>: Default {
    fn state_mut(&mut self) -> &mut A::State;
}
