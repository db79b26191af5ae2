//! ICMP unreachable for the sender's back-off (RFC 6069).
//!
//! A sender that repeats into an outage doubles its timeout each time, and when a path is back it waits for the next one. For an ICMP
//! destination unreachable, code net or host, that quotes the segment at SND.UNA, RFC 6069 section 4 has it take one
//! doubling back; if the shorter timeout has elapsed already, it repeats at once. Linux does so without being asked. Over IPv6 the code is 0,
//! no route to destination: RFC 6069 section 3 and Linux heed no other.
//!
//! - **Where.** At the home agent, or a foreign agent, for downloads; on the mobile node, into its own host, for uploads. RFC 2003
//!   section 4 lets the entry of a tunnel tell a sender what happens inside. No end host changes.
//! - **What it needs.** A repetition that was seen, from which it quotes; while a path is missing, to know that it is: the path
//!   was said to be lost, or a receiver that acknowledged has been silent for three round trips and not less than a second, and so has everything
//!   else at the far end of the path: what is lost while other flows get through is lost by congestion, and there the back-off is right.
//! - **What it does.** During the outage one message for each repetition, at most every [`crate::LcdKick::interval`]: the timeout stays
//!   where it was. When a path is usable, [`crate::LcdKick::burst`] messages, [`crate::LcdKick::spacing`] apart, until the sender or the
//!   receiver gives a sign of life; only where a repetition was seen, for without one no timeout has been doubled, and only if what it
//!   repeated is not stored here, for then the replay of it does more.
//! - **Late, missing or wrong.** Late gains less, missing nothing. A sender whose timer has not backed off ignores the message;
//!   so it does if the quoted number is not its SND.UNA.
//! - **Risks.** A host that takes the message for the end of the connection (RFC 1122 section 4.2.3.9 forbids it), filters on
//!   the way, and a loss by congestion that is taken for an outage: then the sender repeats at its first timeout instead of its last.
//!   Not for a flow that is opening, for which the message says something else; nor for one of which neither SYN nor both
//!   directions were seen; nor beyond [`crate::Limits::unreachables_per_flow`] and [`crate::Limits::unreachables_per_second`].

use alloc::collections::BTreeMap;
use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::{IpHeader, SeqNumber};

use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{Action, Kind, LcdKick, Phase, Towards, Verdict, Wake};

/// The least silence that says something: the least timeout of RFC 6298 section 2.4, which a slow acknowledgement should not exceed.
const SILENCE: Duration = Duration::from_secs(1);
/// ICMP header and eight bytes of the quoted segment, beside the IP headers of the message and of what it quotes.
const MESSAGE_LEN: u64 = 8 + 8;

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// IP header of the sender's last repetition, and its sequence number: SND.UNA, as the sender says itself. Until something
    /// is acknowledged.
    repeated: Option<(IpHeader, SeqNumber)>,
    /// A repetition of the last segment, which may be a tail loss probe (RFC 8985 section 7) and then says nothing of SND.UNA.
    may_be_probe: Option<SeqNumber>,
    /// When the last message was sent.
    sent_at: Option<Instant>,
    /// Messages of a burst still to be sent.
    left: u32,
}

/// Sends ICMP messages to a sender that has backed off.
#[derive(Debug, Default)]
pub(crate) struct LcdKickAssist {
    /// When something last came by the path of a mobile node, of whatever flow.
    heard: BTreeMap<IpAddr, Instant>,
}

impl Assist for LcdKickAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        _verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.lcd_kick else { return ControlFlow::Continue(()) };
        let segment = passing.segment;
        if passing.towards == side(cx).back() {
            self.heard.insert(flow.key.mobile, cx.now);
            if passing.seen.acknowledges {
                state.repeated = None;
                state.may_be_probe = None;
                stop(cx, flow, state);
            }
            return ControlFlow::Continue(());
        }
        if segment.seq_len() == 0 || !segment.flags.are_of_a_stream() {
            return ControlFlow::Continue(());
        }
        if state.repeated.is_some_and(|(_, una)| segment.seq.is_at_or_after(una)) {
            stop(cx, flow, state);
        }
        if !passing.seen.is_repetition {
            if !flow.sees_acks(passing.towards) {
                // New data mean that something was acknowledged.
                state.repeated = None;
                state.may_be_probe = None;
            }
            return ControlFlow::Continue(());
        }
        if !is_of_a_timeout(flow, state, passing) {
            return ControlFlow::Continue(());
        }
        state.repeated = Some((*passing.header, segment.seq));
        let is_due = state.sent_at.is_none_or(|at| cx.now.saturating_duration_since(at) >= config.interval);
        if config.during && is_due && self.is_lost(cx, flow) {
            send(cx, flow, state);
        }
        ControlFlow::Continue(())
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let Some(LcdKick { burst, .. }) = cx.config.lcd_kick else { return };
        stop(cx, flow, state);
        let PathEvent::Usable(usable) = event else { return };
        let Some((_, una)) = state.repeated else { return };
        let is_stored = flow
            .stream(side(cx))
            .kept
            .iter()
            .any(|kept| kept.seq.is_at_or_before(una) && kept.end.is_after(una));
        if usable.old_is_lost != Some(false) && !is_stored {
            state.left = burst;
            go_on(cx, flow, state);
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, wake: Wake) {
        if wake == Wake::Kick {
            go_on(cx, flow, state);
        }
    }

    fn forget_mobile(&mut self, mobile: IpAddr) {
        self.heard.remove(&mobile);
    }

    #[cfg(test)]
    fn mobiles(&self) -> usize {
        self.heard.len()
    }
}

impl LcdKickAssist {
    /// Whether nothing gets through at present, of this flow or another.
    fn is_lost(&self, cx: &Context<'_>, flow: &Flow) -> bool {
        let mobile = flow.key.mobile;
        if cx.paths.lost_since(mobile).is_some() {
            return true;
        }
        let given = cx.paths.properties(mobile).round_trip;
        let round_trip = given.max(flow.stream(side(cx)).round_trip);
        let silence = self.heard.get(&mobile).map(|at| cx.now.saturating_duration_since(*at));
        flow.sees_acks(side(cx))
            && round_trip
                .zip(silence)
                .is_some_and(|(rtt, silence)| silence > rtt.saturating_mul(3).max(SILENCE))
    }
}

/// The end that the data go to whose sender is told.
fn side(cx: &Context<'_>) -> Towards {
    cx.config.place.keeps()
}

fn stop(cx: &mut Context<'_>, flow: &Flow, state: &mut State) {
    if state.left > 0 {
        state.left = 0;
        cx.timers.stop(Owner::Flow(flow.key), Wake::Kick);
    }
}

/// The next message of a burst.
fn go_on(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    let Some(config) = cx.config.lcd_kick.filter(|_| state.left > 0) else { return };
    state.left -= 1;
    send(cx, flow, state);
    if state.left > 0 {
        cx.timers.set(Owner::Flow(flow.key), Wake::Kick, cx.now + config.spacing);
    }
}

/// Whether a repetition is the one a timeout sends: the first segment that is not acknowledged.
fn is_of_a_timeout(flow: &Flow, state: &mut State, passing: &Passing<'_>) -> bool {
    let seq = passing.segment.seq;
    let stream = flow.stream(passing.towards);
    if let Some(una) = stream.una {
        // An acknowledgement may have passed elsewhere: one segment further is still believed.
        return seq.is_at_or_before(una.plus(u32::from(stream.mss.unwrap_or(flow.key.default_mss()))));
    }
    let is_last = stream.next == Some(passing.segment.end_seq());
    let was_seen = state.may_be_probe.replace(seq) == Some(seq);
    !is_last || was_seen
}

/// Whether a flow is one that a sender may be told something of.
fn is_known(cx: &Context<'_>, flow: &Flow) -> bool {
    let stream = flow.stream(side(cx));
    let is_seen_both_ways = stream.una.is_some() && stream.next.is_some();
    let is_sure = flow.phase == Phase::Open && flow.proof.syn.is_none();
    !flow.is_opaque && is_sure && (stream.syn.is_some() || is_seen_both_ways)
}

fn send(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    let Some((quoted, seq)) = state.repeated.filter(|_| is_known(cx, flow)) else { return };
    let limits = &cx.config.limits;
    if flow.unreachables >= limits.unreachables_per_flow || !cx.may_tell(flow) {
        cx.counters.limited += 1;
        return;
    }
    flow.unreachables += 1;
    state.sent_at = Some(cx.now);
    cx.counters.unreachables += 1;
    let ports = match side(cx) {
        Towards::Mobile => (flow.key.peer_port, flow.key.mobile_port),
        Towards::Peer => (flow.key.mobile_port, flow.key.peer_port),
    };
    cx.outbox.act(Action::Unreachable { quoted, ports, seq });
    let bytes = MESSAGE_LEN + 2 * u64::from(quoted.header_len());
    cx.outbox.did(flow.key, Kind::LcdKick, "unreachable", 1, bytes);
}
