//! The assists, each in a file or folder of its own that knows none of the others, and the list that says in which order they act.

mod ack_hold;
mod bicast;
mod black_hole;
mod buffer_forward;
mod fast_retransmit;
mod freeze;
mod lcd_kick;
mod m_tcp;
mod mss_clamp;
mod path_queue;
mod replay;
mod snoop;
mod window_clamp;

use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;

use careof_wire::ReceivedFlow;

use crate::assist::{Assist, Holds};
use crate::context::{Context, Outbox, Passing};
use crate::flow::Flow;
use crate::flow_table::FlowTable;
use crate::paths::PathEvent;
use crate::{Config, Fate, Verdict, Wake};

/// Defines for each hook of [`Assist`] a function that calls it for every assist, in their order.
macro_rules! in_order {
    ($($name:ident: $assist:ty,)*) => {
        /// The assists.
        #[derive(Debug, Default)]
        pub(crate) struct Assists {
            $($name: $assist,)*
        }

        /// What they remember of a flow.
        #[derive(Debug, Default)]
        pub(crate) struct States {
            $($name: <$assist as Assist>::State,)*
        }

        /// See [`Assist`] for the hooks.
        impl Assists {
            pub(crate) fn on_arrival(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                passing: &Passing<'_>,
                verdict: &mut Verdict,
            ) -> ControlFlow<()> {
                $(self.$name.on_arrival(cx, flow, &mut states.$name, passing, verdict)?;)*
                ControlFlow::Continue(())
            }

            pub(crate) fn on_packet(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                passing: &Passing<'_>,
                verdict: &mut Verdict,
            ) -> ControlFlow<()> {
                $(self.$name.on_packet(cx, flow, &mut states.$name, passing, verdict)?;)*
                ControlFlow::Continue(())
            }

            pub(crate) fn on_received(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                told: &ReceivedFlow,
            ) {
                $(self.$name.on_received(cx, flow, &mut states.$name, told);)*
            }

            /// The three hooks for a path event.
            pub(crate) fn on_path(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                event: &PathEvent,
            ) {
                $(self.$name.on_path(cx, flow, &mut states.$name, event);)*
                $(
                    self.$name.signal(cx, flow, &mut states.$name, event);
                    self.look_at_injected(cx, flow, states);
                )*
                $(self.$name.deliver(cx, flow, &mut states.$name, event);)*
            }

            pub(crate) fn on_peer_updated(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                event: &PathEvent,
            ) {
                $(
                    self.$name.on_peer_updated(cx, flow, &mut states.$name, event);
                    self.look_at_injected(cx, flow, states);
                )*
            }

            pub(crate) fn on_timeout(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
                wake: Wake,
            ) {
                $(self.$name.on_timeout(cx, flow, &mut states.$name, wake);)*
            }

            /// Shows acknowledgements that were injected for the flow to all assists.
            pub(crate) fn look_at_injected(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
            ) {
                if cx.outbox.has_injected() {
                    self.look_at_each_injected(cx, flow, states);
                }
            }

            // No packet has one injected: the way past this is to be short.
            #[cold]
            fn look_at_each_injected(
                &mut self,
                cx: &mut Context<'_>,
                flow: &mut Flow,
                states: &mut States,
            ) {
                while let Some(mut injected) = cx.outbox.next_injected() {
                    let (towards, ack) = (injected.towards, &mut injected.segment);
                    $(self.$name.on_inject(cx, flow, &mut states.$name, towards, ack);)*
                    cx.outbox.change_injected(&injected);
                }
            }

            pub(crate) fn on_datagram(&mut self, cx: &mut Context<'_>, mobile: IpAddr, size: u16) -> Fate {
                $(
                    let fate = self.$name.on_datagram(cx, mobile, size);
                    if fate != Fate::Pass {
                        return fate;
                    }
                )*
                Fate::Pass
            }

            pub(crate) fn on_mobile_path(&mut self, cx: &mut Context<'_>, mobile: IpAddr, event: &PathEvent) {
                $(self.$name.on_mobile_path(cx, mobile, event);)*
            }

            pub(crate) fn on_registered(&mut self, cx: &mut Context<'_>, mobile: IpAddr) {
                $(self.$name.on_registered(cx, mobile);)*
            }

            pub(crate) fn on_mobile_timeout(&mut self, cx: &mut Context<'_>, mobile: IpAddr, wake: Wake) {
                $(self.$name.on_mobile_timeout(cx, mobile, wake);)*
            }

            pub(crate) fn go_on(
                &mut self,
                cx: &mut Context<'_>,
                flows: &mut FlowTable<States>,
                mobile: IpAddr,
            ) {
                $(self.$name.go_on(cx, flows, mobile);)*
            }

            pub(crate) fn forget_mobile(&mut self, mobile: IpAddr) {
                $(self.$name.forget_mobile(mobile);)*
            }

            pub(crate) fn close(&mut self, outbox: &mut Outbox) {
                $(self.$name.close(outbox);)*
            }

            /// The first that an assist has.
            pub(crate) fn patience(config: &Config) -> Option<Duration> {
                None$(.or_else(|| <$assist>::patience(config)))*
            }

            #[cfg(test)]
            pub(crate) fn mobiles(&self) -> usize {
                [$(self.$name.mobiles()),*].iter().sum()
            }
        }

        $(
            impl Holds<$assist> for States {
                fn state_mut(&mut self) -> &mut <$assist as Assist>::State {
                    &mut self.$name
                }
            }
        )*
    };
}

// A segment passes from top to bottom. An assist whose place does not matter stands where it reads best.
in_order! {
    bicast: bicast::BicastAssist,
    snoop: snoop::SnoopAssist,
    ack_hold: ack_hold::AckHoldAssist,
    m_tcp: m_tcp::MTcpAssist,
    freeze: freeze::FreezeAssist,
    fast_retransmit: fast_retransmit::FastRetransmitAssist,
    window_clamp: window_clamp::WindowClampAssist,
    lcd_kick: lcd_kick::LcdKickAssist,
    replay: replay::ReplayAssist,
    mss_clamp: mss_clamp::MssClampAssist,
    black_hole: black_hole::BlackHoleAssist,
    path_queue: path_queue::PathQueueAssist,
    buffer_forward: buffer_forward::BufferForwardAssist,
}
