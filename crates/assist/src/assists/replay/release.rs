//! What a flow has to do with the pace at which stored packets go to its mobile node ([`crate::courses`]).

use core::time::Duration;

use careof_base::DataRate;

use crate::Place;
use crate::context::Context;
use crate::courses::{Joining, Turn};
use crate::flow::Flow;
use crate::keeping::{Kept, Whereabouts};
use crate::paths;

use super::rules::{DELAYED_ACK, LEAST_TIMEOUT, Rules};
use super::state::State;

/// The flow's waiting packets join those that go to its mobile node.
pub(super) fn join(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules) {
    let key = flow.key;
    let path = cx.paths.properties(key.mobile);
    let towards = cx.config.place.keeps();
    let behind = match cx.config.place {
        Place::MobileNode => cx.behind_path(flow).unwrap_or_default(),
        Place::HomeAgent | Place::ForeignAgent => Duration::ZERO,
    };
    let stream = flow.stream_mut(towards);
    let measured = state.meter.rate().map_or(0, DataRate::bits_per_second);
    // What was measured by the path that was left has its queue in it.
    let expected = path.round_trip.or(stream.round_trip.min(Some(LEAST_TIMEOUT))).unwrap_or(LEAST_TIMEOUT);
    let expected = expected + behind;
    let largest = stream.kept.iter().map(|kept| kept.size).max().unwrap_or(0);
    let joining = Joining {
        given: paths::rate(&path, towards),
        round_trip: path.round_trip,
        expected,
        measured,
        // The path that was lost and is back is as it was; and to a foreign agent that was left no acknowledgements come that would say better.
        is_as_before: state.is_same_path || cx.config.place == Place::ForeignAgent,
        is_burst: rules.is_burst(),
        largest,
    };
    cx.courses.join(cx.now, key, &stream.share, &joining);
    settle(cx, flow, state);
}

/// Brings the sums of the flow's course up to date.
pub(super) fn settle(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    let key = flow.key;
    let Some(course) = cx.courses.course(key.mobile) else { return };
    let stream = flow.stream_mut(cx.config.place.keeps());
    if let Some(arrived) = state.arrived.take() {
        course.note_arrival(cx.now, &arrived);
    }
    if core::mem::take(&mut state.saw_loss) {
        course.note_loss(cx.now);
    }
    let mut tally = stream.kept.tally();
    if !state.sees_acks(stream) {
        tally.out = 0;
    }
    if let Some(took) = course.took() {
        state.grace = 2 * took + DELAYED_ACK;
    }
    state.fastest = course.fastest().or(state.fastest);
    course.settle(cx.now, &key, &mut stream.share, tally);
}

/// It is the flow's turn.
pub(crate) fn take_turn(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    let key = flow.key;
    let Some(course) = cx.courses.course(key.mobile) else { return };
    let stream = flow.stream_mut(cx.config.place.keeps());
    let next = stream.kept.next_waiting().map(|kept| kept.size);
    match course.turn(cx.now, key, next) {
        Turn::Passes | Turn::Ends { is_idle: true } => {}
        Turn::Ends { is_idle: false } => finished(cx, flow, state),
        Turn::Sends { is_idle } => {
            if let Some(kept) = stream.kept.send_next(cx.now) {
                cx.outbox.release_copy(&kept, None);
                note_release(cx, state, &kept, is_idle);
            }
            settle(cx, flow, state);
        }
    }
}

fn note_release(cx: &mut Context<'_>, state: &mut State, kept: &Kept, is_idle: bool) {
    if !is_idle {
        state.released.0 += 1;
        state.released.1 += u64::from(kept.size);
    }
    state.last_release = Some(cx.now);
    if kept.whereabouts == Whereabouts::Owed {
        cx.counters.replayed += 1;
        cx.counters.replayed_bytes += u64::from(kept.size);
    }
}

/// Nothing of the flow waits any longer.
fn finished(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State) {
    let Some(rules) = Rules::of(cx.config) else { return };
    let (packets, bytes) = core::mem::take(&mut state.released);
    if packets > 0 {
        cx.outbox.did(flow.key, rules.kind, "released", packets, bytes);
    }
}
