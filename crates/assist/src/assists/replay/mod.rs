//! Keep what the lost path still owes, and send it in order when a path is back.
//!
//! **Where it runs.** At the home agent, a foreign agent or a base station for what goes to the mobile node, on the mobile node
//! for what it sends. No end host changes: the peer and the mobile node's own TCP see packets of the peer, in order.
//!
//! **What it does.** A copy of every segment with data is kept from the start, not from an alarm on, for what is in flight when
//! a path dies was sent before anybody knew. It goes when its bytes are acknowledged, so with acknowledgements in sight the store
//! holds one flight a flow. When a path is usable again and the old one is lost, all that is owed is sent, oldest first
//! ([`owed`]), at the pace of the new path ([`release`]); what arrives meanwhile waits behind it. So nothing is lost but time: the
//! sender's timeout was spurious, and today's senders find that out by timestamps (Eifel, RFC 3522 and 4015), by D-SACK or by
//! F-RTO (RFC 5682) and take their window back. Measured on Linux 6.18 (10 Mbit/s, 100 ms, outages of 0.5 to 8 s; Reno, CUBIC and
//! BBR): new data are acknowledged one round trip after the path is back, and the full rate is there with them, where without
//! help the stall goes on for up to 4.5 s and Reno needs seconds more to grow again. With the last two packets only
//! ([`crate::HoldLast`]) the stall ends as soon, but the window stays small.
//!
//! **What it needs to know.** That a path is back, and it is better for knowing that path's rate and round trip and whether what
//! was sent by the old one is lost. Acknowledgements in sight make it exact; where they take another way (triangle routing), the
//! sender's own repetitions say how far it has come ([`blind`]).
//!
//! **If the trigger** is late, the replay is late: the sender may have repeated something meanwhile, which is kept in its
//! place behind the originals. If it is missing, copies age out and TCP does what it does alone. If it is wrong, nothing was held
//! back on suspicion: an announced handover that does not happen changes nothing; a replay of what was not lost
//! makes duplicates, at most a flight.
//!
//! **Risks.** Memory, which is bounded a flow and in all. A receiver that gets bytes twice where acknowledgements were lost, or
//! out of sight; it answers with D-SACK, or with a plain duplicate acknowledgement if it is old. Data wait here for a slow path
//! rather than at its link, at most [`crate::Replay::wait`].
//!
//! **Sources.** Buffers for handovers are as old as Caceres and Padmanabhan (1996), and were found to harm the senders of their
//! day, which took every timeout for loss; it is the undo that turns it round. Order: PAWS (RFC 7323 section 5.3).
//! What is dropped here rather than sent twice, and when it never is: [`duplicates`].

mod blind;
mod duplicates;
mod owed;
mod release;
mod rules;
mod state;

use core::net::IpAddr;
use core::ops::ControlFlow;
use core::time::Duration;

use careof_wire::ReceivedFlow;

use crate::acknowledgement::Wanted;
use crate::assist::{Assist, Holds};
use crate::context::{Context, Passing};
use crate::courses::Arrived;
use crate::flow::{Flow, Stream};
use crate::flow_table::{FlowTable, Followed};
use crate::keeping::{Kept, Sent, Whereabouts};
use crate::paths::PathEvent;
use crate::timers::Owner;
use crate::{DropReason, Fate, Place, Towards, Verdict, Wake, Which};

use rules::Rules;
use state::State;

/// Keeps what a path may lose, and sends it again.
#[derive(Debug, Default)]
pub(crate) struct ReplayAssist;

impl Assist for ReplayAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(rules) = Rules::of(cx.config) else { return ControlFlow::Continue(()) };
        if passing.towards == cx.config.place.keeps() {
            on_sent(cx, flow, state, &rules, passing, verdict);
        } else {
            on_answered(cx, flow, state, &rules, passing);
            if cx.config.place == Place::MobileNode {
                state.sent_again.learn(cx.paths.in_use_since(flow.key.mobile), passing);
                if duplicates::is_late_copy(cx, flow, &state.sent_again, passing) {
                    cx.counters.duplicates_dropped += 1;
                    verdict.fate = Fate::Drop(DropReason::DeliveredAlready);
                }
            }
        }
        release::settle(cx, flow, state);
        ControlFlow::Continue(())
    }

    fn on_received(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, told: &ReceivedFlow) {
        // Copies of that are not needed. SND.UNA stays what the peer has been told, for the acknowledgements themselves may be lost.
        let ack = told.ack;
        let stream = flow.stream_mut(cx.config.place.keeps());
        let is_of_stream = stream.next.is_some_and(|next| ack.is_at_or_before(next))
            && stream.una.is_none_or(|una| ack.is_at_or_after(una));
        if !is_of_stream {
            return;
        }
        state.echoed = told.echo;
        if !state.sees_acks(stream) {
            state.repeated = Some(ack);
        }
        let (outbox, counters) = (&mut *cx.outbox, &mut *cx.counters);
        stream.kept.acknowledge(ack, |kept| {
            counters.acknowledged += 1;
            outbox.drop_kept(&kept, DropReason::DeliveredAlready);
        });
        release::settle(cx, flow, state);
    }

    fn deliver(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let Some(rules) = Rules::of(cx.config) else { return };
        match event {
            PathEvent::Usable(usable) => {
                if usable.old_is_lost == Some(true) {
                    repeat_last_ack(cx, flow, &rules);
                }
                owed::on_usable(cx, flow, state, &rules, usable);
            }
            PathEvent::Lost => {
                state.patience = None;
                cx.timers.stop(Owner::Flow(flow.key), Wake::Patience);
            }
            PathEvent::Copies { .. } => owed::on_copies(cx, flow, state, &rules),
            PathEvent::Announced { .. } | PathEvent::FalseAlarm => {}
        }
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, wake: Wake) {
        let Some(rules) = Rules::of(cx.config) else { return };
        match wake {
            Wake::Patience => owed::on_patience_over(cx, flow, state, &rules),
            Wake::Swallowed => duplicates::on_swallowed_due(cx, flow, state, &rules),
            Wake::Age => age(cx, flow, state, &rules),
            _ => return,
        }
        release::settle(cx, flow, state);
    }

    fn on_mobile_path(&mut self, cx: &mut Context<'_>, mobile: IpAddr, event: &PathEvent) {
        let is_of_copies =
            matches!(event, PathEvent::Copies { .. }) && cx.config.place.keeps() == Towards::Mobile;
        if is_of_copies || matches!(event, PathEvent::Lost | PathEvent::Usable(_)) {
            cx.courses.end(mobile);
        }
    }

    /// Goes on with a replay: what may be sent now, and when to look again.
    fn go_on<S: Holds<Self>>(&mut self, cx: &mut Context<'_>, flows: &mut FlowTable<S>, mobile: IpAddr) {
        if !cx.courses.is_running(mobile) {
            return;
        }
        let Some(rules) = Rules::of(cx.config) else { return };
        if let Some(until) = cx.courses.gives_up(cx.now, mobile) {
            let mut before = None;
            while let Some(key) = cx.courses.member_after(mobile, before) {
                before = Some(key);
                if let Some(Followed { flow, states }) = flows.followed(&key) {
                    owed::on_silence(cx, flow, states.state_mut(), until);
                }
            }
        }
        while let Some((key, room)) = cx.courses.over_bound(mobile, rules.longest_wait())
            && let Some(Followed { flow, states }) = flows.followed(&key)
            && give_up_newest(cx, flow, states.state_mut(), room)
        {}
        while let Some(key) = cx.courses.next_flow(cx.now, mobile)
            && let Some(Followed { flow, states }) = flows.followed(&key)
        {
            release::take_turn(cx, flow, states.state_mut());
        }
        let at = cx.courses.wake_at(mobile);
        cx.timers.set_or_stop(Owner::Mobile(mobile), Wake::Release, at);
    }
}

/// A segment that may acknowledge something of what is kept.
fn on_answered(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    state: &mut State,
    rules: &Rules,
    passing: &Passing<'_>,
) {
    learn_from_answer(cx, flow, state, passing);
    if flow.stream(passing.towards.back()).kept.has_waiting() && !cx.courses.is_running(flow.key.mobile) {
        release::join(cx, flow, state, rules);
    }
}

/// What a segment says of how far the direction that is kept has come.
fn learn_from_answer(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, passing: &Passing<'_>) {
    let has_sack = flow.may_have_sack();
    let stream = flow.stream_mut(passing.towards.back());
    let Some(una) = stream.una else { return };
    if passing.seen.is_duplicate_ack && !has_sack {
        state.behind_hole = stream.next;
    }
    if duplicates::is_active(cx.now, stream, state) {
        owed::forget_refused(cx.outbox, stream, state);
    }
    if !passing.seen.acknowledges {
        duplicates::learn_of_holes(cx.now, stream, state, passing);
        return;
    }
    state.acks_hidden = false;
    state.duplicates = 0;
    state.repeated = None;
    let (outbox, counters) = (&mut *cx.outbox, &mut *cx.counters);
    let mut bytes = 0;
    let left_is_lost = state.left_is_lost;
    let echo = passing.segment.timestamps.map(|stamps| stamps.echo);
    stream.kept.acknowledge(una, |kept| {
        counters.acknowledged += 1;
        bytes += u64::from(kept.size);
        if !kept.is_sacked {
            Arrived::add(&mut state.arrived, &kept, left_is_lost, (true, echo));
            state.learn_of_reordering(cx.now, &kept);
        }
        outbox.drop_kept(&kept, DropReason::DeliveredAlready);
    });
    state.meter.add(cx.now, bytes, stream.round_trip);
    duplicates::learn_of_holes(cx.now, stream, state, passing);
    if state.patience.is_some() && !stream.kept.iter().any(owed::was_left) {
        state.patience = None;
        cx.timers.stop(Owner::Flow(flow.key), Wake::Patience);
    }
}

/// A segment of the direction that is kept.
fn on_sent(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    state: &mut State,
    rules: &Rules,
    passing: &Passing<'_>,
    verdict: &mut Verdict,
) {
    let stream = flow.stream_mut(passing.towards);
    let segment = passing.segment;
    if segment.seq_len() == 0 || !segment.flags.are_of_a_stream() {
        if duplicates::overtakes(stream, segment) {
            verdict.fate = Fate::Drop(DropReason::HeldAlready);
        }
        return;
    }
    blind::learn(cx.now, stream, state, passing);
    if blind::tells_where_to_begin(stream, state, passing) {
        owed::begin(cx, flow, state, rules, owed::Which::Left);
    }
    let stream = flow.stream_mut(passing.towards);
    if duplicates::comes_in_smaller_segments(stream, passing) {
        duplicates::forget_larger(cx.outbox, stream, passing.header.total_len());
    }
    if let Some(reason) = duplicates::swallow(cx.now, stream, state, rules, passing) {
        cx.counters.retransmissions_swallowed += 1;
        verdict.fate = Fate::Drop(reason);
        if let Some(due) = duplicates::swallowed_due(cx.now, stream, state) {
            cx.timers.set(Owner::Flow(flow.key), Wake::Swallowed, due);
        }
        return;
    }
    if passing.seen.is_repetition {
        duplicates::note_repetition(stream, passing);
    }
    keep(cx, flow, state, rules, passing, verdict);
    let is_lost = cx.paths.lost_since(flow.key.mobile).is_some();
    let stream = flow.stream_mut(passing.towards);
    if !state.sees_acks(stream) && !is_lost {
        blind::prune(cx, stream, state);
    }
}

/// Stores the packet: a copy as it goes on, or the packet itself behind what waits.
fn keep(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    state: &mut State,
    rules: &Rules,
    passing: &Passing<'_>,
    verdict: &mut Verdict,
) {
    let size = passing.header.total_len();
    let key = flow.key;
    let stream = flow.stream_mut(passing.towards);
    let lingers = cx.courses.lingers(cx.now, key.mobile, &stream.share);
    let waits = lingers || stream.kept.has_waiting();
    let is_full = |stream: &Stream| {
        stream.kept.len() >= rules.replay.packets
            || stream.kept.bytes() + u64::from(size) > rules.replay.bytes
    };
    while is_full(stream)
        && rules.replay.keep == Which::Newest
        && stream.kept.oldest().is_some_and(|oldest| !oldest.waits())
        && let Some(oldest) = stream.kept.pop_oldest()
    {
        cx.counters.evicted += 1;
        cx.outbox.discard(&oldest, None);
    }
    let has_room = !is_full(stream) && (!waits || cx.courses.has_room(&key, size, rules.longest_wait()));
    let Some(token) = has_room.then(|| cx.store.take(size)).flatten() else {
        if waits {
            // In front of what waits it must not go.
            verdict.fate = Fate::Drop(DropReason::QueueFull);
        }
        cx.counters.not_kept += 1;
        return;
    };
    let whereabouts = if waits {
        cx.counters.held += 1;
        verdict.fate = Fate::Hold(token);
        Whereabouts::Here
    } else {
        cx.counters.kept += 1;
        verdict.keep = Some(token);
        Whereabouts::Sent(Sent { at: cx.now, by_us: false, again: false, left: false })
    };
    let range = (passing.segment.seq, passing.segment.end_seq());
    let stamp = passing.segment.timestamps.map(|stamps| stamps.value);
    stream.kept.push(Kept::new(token, range, stamp, size, cx.now, whereabouts));
    if !state.is_aging {
        state.is_aging = true;
        cx.timers.set(Owner::Flow(key), Wake::Age, cx.now + rules.replay.age);
    }
    if lingers && whereabouts == Whereabouts::Here && !cx.courses.has_turn(&key) {
        release::join(cx, flow, state, rules);
    }
}

/// Sends the last acknowledgement that went by the lost path once more. It may have been lost with what was under way, and then
/// whoever replays at the other end of the path would begin with data that have arrived.
fn repeat_last_ack(cx: &mut Context<'_>, flow: &mut Flow, rules: &Rules) {
    let towards = cx.config.place.keeps();
    let acknowledged = flow.stream(towards.back());
    let has_data =
        acknowledged.una.is_some_and(|una| acknowledged.syn.is_none_or(|syn| una.is_after(syn.plus(1))));
    let is_recent = acknowledged.last_ack.is_some_and(|last| last.at + rules.replay.age > cx.now);
    if has_data && is_recent {
        Wanted::of(rules.kind, "last-ack", towards).inject(cx, flow, 1);
    }
}

/// Gives up what is older than it may be. What waits in a replay that runs has a bound of its own.
fn age(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules) {
    let key = flow.key;
    let waits_long = !cx.courses.is_running(key.mobile);
    let stream = flow.stream_mut(cx.config.place.keeps());
    let (age, now) = (rules.replay.age, cx.now);
    let is_young = |kept: &Kept| kept.at + age > now || (kept.waits() && !waits_long);
    let (outbox, counters) = (&mut *cx.outbox, &mut *cx.counters);
    stream.kept.retain(is_young, |kept| {
        counters.aged += 1;
        outbox.drop_kept(&kept, DropReason::TooOld);
    });
    let oldest = stream.kept.iter().map(|kept| kept.at).min();
    state.is_aging = oldest.is_some();
    if let Some(oldest) = oldest {
        // Not for every packet one by one.
        let at = (oldest + age).max(now + (age / 16).max(Duration::from_millis(1)));
        cx.timers.set(Owner::Flow(key), Wake::Age, at);
    }
}

/// More waits for the mobile node than may: the flow keeps `room` bytes of it, the oldest. Returns whether it gave up anything.
fn give_up_newest(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, room: u64) -> bool {
    let Some(rules) = Rules::of(cx.config) else { return false };
    let stream = flow.stream_mut(cx.config.place.keeps());
    let (mut packets, mut bytes) = (0, 0);
    while stream.kept.tally().waiting_bytes > room
        && let Some(kept) = stream.kept.pop_newest_waiting()
    {
        packets += 1;
        bytes += u64::from(kept.size);
        cx.outbox.drop_kept(&kept, DropReason::QueueFull);
    }
    cx.counters.given_up += u64::from(packets);
    if packets > 0 {
        cx.outbox.did(flow.key, rules.kind, "give-up", packets, bytes);
    }
    release::settle(cx, flow, state);
    packets > 0
}
