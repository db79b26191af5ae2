//! The face of an assist: what it sees, and what it answers.
//!
//! The assistant calls the hooks of all assists in the order of their list ([`crate::assists`]). An assist implements the hooks that
//! concern it; the others do nothing. Each hook reads in [`Context::config`] whether its assist is in use.
//!
//! Assists do not know each other. A fact that one assist finds out and another one needs is a property of the flow ([`crate::flow`]) or
//! stands in the context ([`crate::context`]).

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
/// A hook about a flow gets as `state` what the assist remembers of that flow. It acts by the verdict on the packet that passes, if one
/// does, and by the outbox and the timers of the context.
pub(crate) trait Assist: Debug + Default {
    /// What is remembered of a flow.
    type State: Debug + Default;

    /// A segment arrives. The flow has not learnt from it yet ([`Passing::seen`] says nothing). `Break`: the verdict is final, and neither the
    /// flow nor the other assists see the segment.
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

    /// A segment passes. `Break`: the verdict is final, and the assists behind this one do not see the segment.
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

    /// An assist injects an acknowledgement with the receiver's window. Each assist may change `ack` before it leaves.
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

    /// Something happened to the path of the flow. The assists answer in two steps after all of them have heard of it: [`Self::signal`],
    /// then [`Self::deliver`].
    fn on_path(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// First answer to a path event: tells the ends something, in small packets ahead of those that were stored.
    fn signal(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// The peer knows of a path that has been usable for some time, after [`Self::signal`] and [`Self::deliver`] have seen that
    /// it did not ([`Flow::peer_awaits`]). The outage is that of the peer.
    fn on_peer_updated(
        &mut self,
        _cx: &mut Context<'_>,
        _flow: &mut Flow,
        _state: &mut Self::State,
        _event: &PathEvent,
    ) {
    }

    /// Second answer to a path event: sends packets that were stored.
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

    /// A datagram, of TCP or not, is about to take the path of its mobile node. Returns its fate; the assists behind are asked only if it
    /// passes. Only called where [`Config::is_for_all_packets`].
    fn on_datagram(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _size: u16) -> Fate {
        Fate::Pass
    }

    /// Something happened to the path of a mobile node. [`Self::on_path`] follows for each of its flows.
    fn on_mobile_path(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _event: &PathEvent) {}

    /// A mobile node has registered, and has said what its path is like. The path event that follows from that came before.
    fn on_registered(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr) {}

    /// A timer of the mobile node went off.
    fn on_mobile_timeout(&mut self, _cx: &mut Context<'_>, _mobile: IpAddr, _wake: Wake) {}

    /// Called after every segment, path event and timer of a mobile node: acts on any of its flows. Nothing may be injected here.
    fn go_on<S: Holds<Self>>(&mut self, _cx: &mut Context<'_>, _flows: &mut FlowTable<S>, _mobile: IpAddr) {}

    /// A mobile node has no flow any longer. The assist forgets it, unless something waits for it.
    fn forget_mobile(&mut self, _mobile: IpAddr) {}

    /// The assistant stops: releases what waits for mobile nodes. What is stored for flows is released by the assistant.
    fn close(&mut self, _outbox: &mut Outbox) {}

    /// How long after the announced end of a path the announcement counts as a false alarm; `None`: the assist does not care.
    fn patience(_config: &Config) -> Option<Duration> {
        None
    }

    /// Number of mobile nodes that are remembered.
    #[cfg(test)]
    fn mobiles(&self) -> usize {
        0
    }
}

/// What all assists remember of a flow, with that of one of them in it.
pub(crate) trait Holds<A: Assist>: Default {
    /// That of `A`.
    fn state_mut(&mut self) -> &mut A::State;
}
