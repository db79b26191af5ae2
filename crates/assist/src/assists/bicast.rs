//! Copies by the old path and the new one: of two that arrive, one is enough.
//!
//! - **Where.** The copies are made by the home agent, which sends to every binding a mobile node has at a time (the S bit of RFC 5944
//!   section 3.3). Here, on the mobile node, the second copy ends. Neither end's TCP changes.
//! - **What it needs.** Simultaneous bindings, kept while both paths deliver.
//! - **What it does.** A segment to the mobile node that equals one of the last second - identification, sequence number, length,
//!   acknowledgement, window, timestamps - is dropped: delivered, it would be answered by a duplicate acknowledgement, and a copy of an
//!   acknowledgement would count as a duplicate at the sender here. A repetition by the sender has another identification and passes. So
//!   does every segment that has no identification, as datagrams that are never fragmented may (RFC 6864), and no timestamp.
//! - **Late, missing or wrong.** There is no trigger but the bindings. A copy more than a second behind the other passes, as all
//!   do without it.
//! - **Risks.** Both links carry everything. What the slower path still has after the faster one is behind is out of date, and fills it.

use alloc::collections::{BTreeSet, VecDeque};
use core::ops::ControlFlow;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::IpHeader;

use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::{DropReason, Fate, Place, Towards, Verdict};

/// How far behind the first a copy is known for one.
const MEMORY: Duration = Duration::from_secs(1);
/// Segments remembered of a flow: a second at 50 Mbit/s.
const ROOM: usize = 4_096;

/// What two copies have in common: identification, sequence number, acknowledgement, length, window, timestamps.
type Mark = (u16, u32, u32, u16, u16, Option<(u32, u32)>);

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    seen: BTreeSet<Mark>,
    /// The same, in order of arrival.
    order: VecDeque<(Instant, Mark)>,
}

/// Drops the second copy of a segment.
#[derive(Debug, Default)]
pub(crate) struct BicastAssist;

impl Assist for BicastAssist {
    type State = State;

    fn on_arrival(
        &mut self,
        cx: &mut Context<'_>,
        _flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let is_here = cx.config.bicast && cx.config.place == Place::MobileNode;
        if is_here && passing.towards == Towards::Mobile && is_copy(cx.now, state, passing) {
            cx.counters.duplicates_dropped += 1;
            verdict.fate = Fate::Drop(DropReason::DeliveredAlready);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Whether a segment that arrives is a copy of one that has.
fn is_copy(now: Instant, state: &mut State, passing: &Passing<'_>) -> bool {
    let segment = passing.segment;
    // IPv6 has none but in fragments.
    let identification = match passing.header {
        IpHeader::V4(header) => header.identification,
        IpHeader::V6(_) => 0,
    };
    if identification == 0 && segment.timestamps.is_none() {
        return false;
    }
    let mark = (
        identification,
        segment.seq.0,
        segment.ack.0,
        segment.payload_len,
        segment.window,
        segment.timestamps.map(|stamps| (stamps.value, stamps.echo)),
    );
    while state.order.front().is_some_and(|(at, _)| *at + MEMORY < now) || state.order.len() >= ROOM {
        if let Some((_, old)) = state.order.pop_front() {
            state.seen.remove(&old);
        }
    }
    if !state.seen.insert(mark) {
        return true;
    }
    state.order.push_back((now, mark));
    false
}
