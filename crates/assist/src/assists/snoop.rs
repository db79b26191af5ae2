//! Local retransmission at the base station (Snoop: Balakrishnan, Seshan, Amir and Katz 1995; RFC 3135 section 5.3.2).
//!
//! - **Where.** At a foreign agent or base station, or at the home agent, for downloads. No end host changes.
//! - **What it needs.** Both directions of a flow, and headers that can be read.
//! - **What it does.** It keeps copies of data until they are acknowledged. At the first duplicate acknowledgement, or
//!   when nothing is acknowledged for two round trips and not less than [`crate::Snoop::least_timeout`], it sends the missing packet
//!   again, from here; the duplicates that this repair explains are not let through, so that the sender does not take the
//!   loss for congestion. Those of packets that are not here, that the sender has repeated itself, or that were sent
//!   [`MOST_REPAIRS`] times in vain, go through.
//! - **Late, missing or wrong.** It has no trigger but what it sees. While the path is known to be lost it repairs nothing; when
//!   one is usable it begins with the first packet that is owed. It does not replace `replay`, which sends all of them.
//! - **Risks.** Packets that overtake each other look like losses: the copy is a duplicate, and the suppressed acknowledgements are
//!   not missed. Timestamps and SACK blocks in suppressed acknowledgements do not reach the sender.

use core::ops::ControlFlow;

use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::keeping::{Kept, Sent, Whereabouts};
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{DropReason, Fate, Kind, Phase, Snoop, Towards, Verdict, Wake};
use careof_wire::SeqNumber;

/// How often a packet is sent again from here, until its loss is left to the sender.
const MOST_REPAIRS: u32 = 8;

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Repairs of the first packet that is owed.
    repairs: u32,
    /// Duplicate acknowledgements since the last one of these that it explains still: packets that were behind it.
    explained: usize,
    /// How far the sender has repeated itself.
    repeated: Option<SeqNumber>,
}

/// Repairs losses from the base station.
#[derive(Debug, Default)]
pub(crate) struct SnoopAssist;

impl Assist for SnoopAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.snoop else { return ControlFlow::Continue(()) };
        let segment = passing.segment;
        if flow.is_opaque || flow.phase != Phase::Open || !segment.flags.are_of_a_stream() {
            return ControlFlow::Continue(());
        }
        if passing.towards == Towards::Mobile {
            if passing.seen.is_repetition {
                let end = segment.end_seq();
                state.repeated = Some(state.repeated.map_or(end, |repeated| repeated.later(end)));
            } else if segment.seq_len() > 0 {
                keep(cx, flow, passing, &config, verdict);
            }
            return ControlFlow::Continue(());
        }
        if passing.seen.acknowledges {
            acknowledged(cx, flow, state, &config);
        } else if passing.seen.is_duplicate_ack && can_repair(flow, state) {
            cx.counters.acks_suppressed += 1;
            match state.explained.checked_sub(1) {
                Some(explained) => state.explained = explained,
                None => repair(cx, flow, state, &config),
            }
            verdict.fate = Fate::Drop(DropReason::LocalRepair);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn deliver(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let Some(config) = cx.config.snoop else { return };
        match event {
            PathEvent::Lost => cx.timers.stop(Owner::Flow(flow.key), Wake::LocalRepair),
            PathEvent::Usable(_) => {
                state.repairs = 0;
                if can_repair(flow, state) {
                    repair(cx, flow, state, &config);
                }
            }
            PathEvent::Announced { .. } | PathEvent::FalseAlarm | PathEvent::Copies { .. } => {}
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, wake: Wake) {
        let Some(config) = cx.config.snoop.filter(|_| wake == Wake::LocalRepair) else { return };
        let is_lost = cx.paths.lost_since(flow.key.mobile).is_some();
        if !is_lost && can_repair(flow, state) {
            repair(cx, flow, state, &config);
        }
    }
}

fn keep(cx: &mut Context<'_>, flow: &mut Flow, passing: &Passing<'_>, config: &Snoop, verdict: &mut Verdict) {
    let size = passing.header.total_len();
    let stream = flow.stream_mut(Towards::Mobile);
    let token = if stream.kept.len() < config.packets { cx.store.take(size) } else { None };
    let Some(token) = token else {
        cx.counters.not_kept += 1;
        return;
    };
    cx.counters.kept += 1;
    let segment = passing.segment;
    let sent = Sent { at: cx.now, by_us: false, again: false, left: false };
    stream.kept.push(Kept::new(
        token,
        (segment.seq, segment.end_seq()),
        segment.timestamps.map(|stamps| stamps.value),
        size,
        cx.now,
        Whereabouts::Sent(sent),
    ));
    verdict.keep = Some(token);
    if cx.timers.get(Owner::Flow(flow.key), Wake::LocalRepair).is_none() {
        watch(cx, flow, config);
    }
}

fn acknowledged(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, config: &Snoop) {
    let stream = flow.stream_mut(Towards::Mobile);
    let Some(una) = stream.una else { return };
    let (outbox, counters) = (&mut *cx.outbox, &mut *cx.counters);
    stream.kept.retain(
        |kept| kept.end.is_after(una),
        |kept| {
            counters.acknowledged += 1;
            outbox.discard(&kept, None);
        },
    );
    state.repairs = 0;
    state.explained = 0;
    state.repeated = state.repeated.filter(|repeated| repeated.is_after(una));
    watch(cx, flow, config);
}

/// The first packet that is owed, if it is here.
fn owed(flow: &Flow) -> Option<Kept> {
    let stream = flow.stream(Towards::Mobile);
    let una = stream.una?;
    stream.kept.iter().find(|kept| kept.seq.is_at_or_before(una) && kept.end.is_after(una)).copied()
}

fn can_repair(flow: &Flow, state: &State) -> bool {
    state.repairs < MOST_REPAIRS && state.repeated.is_none() && owed(flow).is_some()
}

fn repair(cx: &mut Context<'_>, flow: &Flow, state: &mut State, config: &Snoop) {
    let Some(kept) = owed(flow) else { return };
    cx.outbox.release_copy(&kept, None);
    cx.counters.local_repairs += 1;
    cx.outbox.did(flow.key, Kind::Snoop, "repair", 1, kept.size.into());
    state.repairs += 1;
    // Every packet behind it that arrives before the copy is answered by a duplicate.
    state.explained = flow.stream(Towards::Mobile).kept.len();
    watch(cx, flow, config);
}

fn watch(cx: &mut Context<'_>, flow: &Flow, config: &Snoop) {
    let timer = Owner::Flow(flow.key);
    let stream = flow.stream(Towards::Mobile);
    if stream.kept.is_empty() || cx.paths.lost_since(flow.key.mobile).is_some() {
        cx.timers.stop(timer, Wake::LocalRepair);
        return;
    }
    let round_trip = stream.round_trip.unwrap_or_default().saturating_mul(2);
    cx.timers.set(timer, Wake::LocalRepair, cx.now + round_trip.max(config.least_timeout));
}
