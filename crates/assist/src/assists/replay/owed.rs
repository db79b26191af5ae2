//! What a path that was left owes, and when that is sent again.
//!
//! - The path **is lost** - its own link went down, an error came back, the mobile node said so, or it has been silent for a
//!   round trip and an acknowledgement's delay although something was owed: at once.
//! - It **was left and may still deliver** (make-before-break, or nobody knows): what it owes is given the time it takes to be
//!   acknowledged, over the old path and back over the new one, [`crate::Replay::patience`] times, from the last progress on. What
//!   is owed still after that is sent again. In this time, a repetition of it by its sender is dropped: delivered
//!   in front of the originals it would make the receiver refuse them (PAWS), and either they are acknowledged or they follow.
//! - It **is gone, and access routers have kept what came for the mobile node meanwhile** (fast handovers): the acknowledgements of what
//!   had arrived come only now, and with them the sender's own repair of the rest works. It passes; what nothing has been heard of in the
//!   time above is sent again.
//! - It was left and holds so much, so slowly, that the new path delivers it sooner: at once.
//!
//! What is not sent again: what the receiver has said that it has (SACK); originals with an older timestamp than the receiver
//! echoes, which PAWS would make it refuse - a repetition has been delivered in front of them; and, behind its original, a
//! **repetition**, where it can do no good. It does good for a sender with SACK: its D-SACK says that nothing was lost, which is how
//! a sender without timestamps undoes a timeout (RFC 3708), and which keeps a tail loss probe from being taken for
//! the repair of a loss (RFC 8985 section 7.4). A sender without SACK would only see duplicate acknowledgements, and halve its
//! window at the third; and onto a slower path, for which the window is too large in any case, nothing goes twice. Of what lies
//! **behind a hole** a receiver without SACK cannot say what it has: copies of that would each make a duplicate acknowledgement, which its
//! sender takes for a segment that has arrived, or for reordering (Linux then bears any number of duplicates, and finds losses by
//! timeouts alone). So only what fills the hole is sent again, and the rest is left to the sender.

use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::PathProperties;
use careof_wire::SeqNumber;

use crate::context::{Context, Outbox};
use crate::flow::{Flow, Stream};
use crate::keeping::{Kept, Sent, Whereabouts};
use crate::paths::{self, Usable};
use crate::timers::Owner;
use crate::{Place, Towards, Wake};

use super::release;
use super::rules::{DELAYED_ACK, LEAST_TIMEOUT, Rules};
use super::state::{Patience, State};

/// A patient replay gives up when nothing has said where to begin for so long: the longest back-off but the last ones.
const FORGOTTEN: Duration = Duration::from_secs(3);

/// Which packets that were sent on are owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    /// Those that went by the path that was left.
    Left,
}

/// Whether the packet went by a path that was left.
pub(super) fn was_left(kept: &Kept) -> bool {
    kept.sent().is_some_and(|sent| sent.left)
}

/// A path came, or came back.
pub(super) fn on_usable(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    state: &mut State,
    rules: &Rules,
    usable: &Usable,
) {
    let key = flow.key;
    let stream = flow.stream_mut(cx.config.place.keeps());
    state.patience = None;
    cx.timers.stop(Owner::Flow(key), Wake::Patience);
    if stream.kept.is_empty() {
        return;
    }
    stream.kept.leave_path();
    state.is_slower = is_slower(cx.config.place, state, usable);
    state.is_same_path = usable.from.is_some() && usable.from == usable.to;
    state.may_probe = !state.is_slower;
    state.left_round_trip = usable.old.round_trip;
    (state.fastest, state.reordering) = (None, Duration::ZERO);
    let is_lost =
        usable.old_is_lost == Some(true) || is_silent(cx.now, cx.config.place, stream, state, usable);
    state.left_is_lost = is_lost;
    if is_lost || is_sooner_again(cx.config.place, stream, state, usable) {
        return begin(cx, flow, state, rules, Which::All);
    }
    let old = stream.round_trip.max(usable.old.round_trip).unwrap_or(LEAST_TIMEOUT);
    // There by the old path, back by the new one.
    let new = usable.new.round_trip.unwrap_or(old);
    // A standing queue may have made the old round trip anything.
    let wait = (rules.replay.patience * old.max((old + new) / 2) + DELAYED_ACK).min(FORGOTTEN);
    state.patience = Some(Patience { since: cx.now, wait, delivers: usable.outage.is_none() });
    cx.timers.set(Owner::Flow(key), Wake::Patience, cx.now + wait);
    if stream.kept.has_waiting() {
        // The one that ran goes on by the new path.
        release::join(cx, flow, state, rules);
    }
}

/// Copies go by other paths than before: nothing is owed, but what waits goes at the pace of these.
pub(super) fn on_copies(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules) {
    if cx.config.place.keeps() == Towards::Mobile && flow.stream(Towards::Mobile).kept.has_waiting() {
        release::join(cx, flow, state, rules);
    }
}

/// The old path had its time, or has progressed meanwhile.
pub(super) fn on_patience_over(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules) {
    let key = flow.key;
    let stream = flow.stream_mut(cx.config.place.keeps());
    let Some(Patience { since, wait, .. }) = state.patience else { return };
    let sees_acks = state.sees_acks(stream);
    if !sees_acks && state.repeated.is_none() {
        // Nobody can tell what of the last seconds is owed: the sender's first repetition will.
        if cx.now < since + FORGOTTEN {
            cx.timers.set(Owner::Flow(key), Wake::Patience, since + FORGOTTEN);
        } else {
            state.patience = None;
        }
        return;
    }
    let progress = stream.progress_at.max(state.left_path_delivered);
    let progress = progress.filter(|_| sees_acks).unwrap_or(since).max(since);
    if cx.now < progress + wait {
        cx.timers.set(Owner::Flow(key), Wake::Patience, progress + wait);
        return;
    }
    begin(cx, flow, state, rules, Which::Left);
}

/// Whether the path that was left has not been heard of for longer than it takes.
fn is_silent(now: Instant, place: Place, stream: &Stream, state: &State, usable: &Usable) -> bool {
    let Some(sent) = stream.kept.oldest().and_then(Kept::sent) else { return false };
    let heard = if state.sees_acks(stream) {
        stream.last_ack.map(|ack| ack.at)
    } else if state.repeated.is_some() {
        return true;
    } else {
        state.fresh_at
    };
    let round_trip = stream.round_trip.or(usable.old.round_trip).unwrap_or(LEAST_TIMEOUT);
    // What the mobile node has sent is acknowledged by the new path since its home agent has accepted that, and it hears of both at once.
    let detour = match place {
        Place::MobileNode if usable.old_is_lost != Some(true) => usable.new.round_trip.unwrap_or(round_trip),
        Place::MobileNode | Place::HomeAgent | Place::ForeignAgent => Duration::ZERO,
    };
    let longest = round_trip + (round_trip / 2).max(DELAYED_ACK) + detour;
    // Where others have kept what comes from there, nobody could be heard in between.
    let now = match usable.outage.filter(|_| usable.old_is_lost == Some(false)) {
        Some(outage) => now.saturating_sub(outage),
        None => now,
    };
    now.saturating_duration_since(heard.unwrap_or(sent.at).max(sent.at)) > longest
}

/// Rate of a path in the direction that is kept, if it is known.
fn rate_of(place: Place, path: &PathProperties) -> Option<DataRate> {
    paths::rate(path, place.keeps())
}

/// Nothing is acknowledged any longer: what was released `until` then is taken for lost, as a sender's timeout would (RFC 6298), which waits behind all
/// of it here.
pub(super) fn on_silence(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, until: Instant) {
    let stream = flow.stream_mut(cx.config.place.keeps());
    let saw_loss = &mut state.saw_loss;
    stream.kept.owe(cx.now, |kept, sent| {
        let is_lost = sent.by_us && !sent.left && !kept.is_sacked && sent.at <= until;
        *saw_loss |= is_lost;
        is_lost
    });
    release::settle(cx, flow, state);
}

/// Whether the new path delivers what is owed before the old one has.
fn is_sooner_again(place: Place, stream: &Stream, state: &State, usable: &Usable) -> bool {
    let old = rate_of(place, &usable.old).or(state.meter.rate());
    let (Some(old), Some(new), Some(round_trip)) = (old, rate_of(place, &usable.new), usable.new.round_trip)
    else {
        return false;
    };
    let bits = stream.kept.bytes() * 8;
    let (Some(old), Some(new)) = (old.time_for_bits(bits), new.time_for_bits(bits)) else { return false };
    old > round_trip + new
}

/// Whether the new path is known to be slower than the old one.
fn is_slower(place: Place, state: &State, usable: &Usable) -> bool {
    let old = rate_of(place, &usable.old).or(state.meter.rate());
    rate_of(place, &usable.new).zip(old).is_some_and(|(new, old)| new < old)
}

/// Lets what is owed wait for its turn, which may come at once.
pub(super) fn begin(cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, rules: &Rules, which: Which) {
    let key = flow.key;
    let has_sack = flow.may_have_sack();
    let stream = flow.stream_mut(cx.config.place.keeps());
    state.patience = None;
    state.duplicates = 0;
    cx.timers.stop(Owner::Flow(key), Wake::Patience);
    let is_blind = !state.sees_acks(stream);
    let from = if is_blind { first_owed(cx, state) } else { None };
    let una = stream.una.filter(|_| state.has_hole(stream));
    let is_owed = |kept: &Kept, sent: Sent| {
        let is_wanted = which == Which::All || sent.left;
        let is_lacking = una.is_none_or(|una| kept.covers(una));
        // Without acknowledgements in sight all that is stored may have arrived long ago. It goes again once; what of that was in vain
        // the sender repeats, with a younger timestamp.
        let is_first_time = !is_blind || kept.releases == 0;
        is_wanted
            && is_lacking
            && is_first_time
            && !kept.is_sacked
            && from.is_none_or(|from| from.covers(kept))
    };
    stream.kept.owe(cx.now, is_owed);
    stream.kept.begin_replay();
    forget_refused(cx.outbox, stream, state);
    let leaves_out = rules.replay.swallow && (!has_sack || state.is_slower);
    if leaves_out {
        leave_out_repetitions(cx, stream);
    }
    let tally = stream.kept.tally();
    if tally.waiting == 0 {
        return;
    }
    cx.outbox.did(key, rules.kind, "replay", tally.waiting as u32, tally.waiting_bytes);
    let path = cx.paths.properties(key.mobile);
    let rate = rate_of(cx.config.place, &path).or(state.meter.rate());
    let drain = rate.and_then(|rate| rate.time_for_bits(tally.waiting_bytes * 8)).unwrap_or_default();
    let round_trip = path.round_trip.max(stream.round_trip).unwrap_or(LEAST_TIMEOUT);
    state.grace = drain.min(rules.replay.wait) + 2 * round_trip;
    release::join(cx, flow, state, rules);
}

/// Does away with copies that have an older timestamp than the receiver echoes. A repetition was delivered in front of them, PAWS
/// makes the receiver refuse them, and only their sender can still fill the holes that they were to fill: its repetitions are
/// not to be taken for second ones.
pub(super) fn forget_refused(outbox: &mut Outbox, stream: &mut Stream, state: &State) {
    let seen = stream.last_ack.and_then(|ack| ack.segment.timestamps).map(|stamps| stamps.echo);
    let is_older = |stamp: u32, than: u32| (stamp.wrapping_sub(than) as i32) < 0;
    let later = |one, other| if is_older(one, other) { other } else { one };
    let Some(echoed) = seen.into_iter().chain(state.echoed).reduce(later) else { return };
    let is_refused = |kept: &Kept| {
        let is_older = |stamp: u32| is_older(stamp, echoed);
        kept.whereabouts != Whereabouts::Here && kept.stamp.is_some_and(is_older)
    };
    if stream.kept.iter().any(is_refused) {
        stream.kept.retain(|kept| !is_refused(kept), |kept| outbox.discard(&kept, None));
    }
}

/// Where a replay begins without acknowledgements in sight.
#[derive(Clone, Copy, Debug)]
enum From {
    /// SND.UNA, as the sender has said by repeating it.
    Una(SeqNumber),
    /// Packets that arrived since.
    Time(Instant),
}

impl From {
    fn covers(self, kept: &Kept) -> bool {
        match self {
            Self::Una(una) => kept.end.is_after(una),
            Self::Time(since) => kept.at >= since,
        }
    }
}

/// What the sender repeated; before it has, what arrived within two round trips of its last new data: a window sent as far as
/// it went, with as much again for the part of the way that is not known here.
fn first_owed(cx: &Context<'_>, state: &State) -> Option<From> {
    if let Some(una) = state.repeated {
        return Some(From::Una(una));
    }
    let fresh_at = state.fresh_at.unwrap_or(cx.now);
    let round_trip = state.left_round_trip.unwrap_or(LEAST_TIMEOUT);
    Some(From::Time(fresh_at.saturating_sub(2 * round_trip)))
}

/// Takes out repetitions of bytes that wait in front of them.
fn leave_out_repetitions(cx: &mut Context<'_>, stream: &mut Stream) {
    // Stretches of originals, which are in order.
    let mut covered: Vec<(SeqNumber, SeqNumber)> = Vec::new();
    for kept in stream.kept.iter().filter(|kept| kept.waits() && !kept.is_behind) {
        match covered.last_mut() {
            Some((_, end)) if kept.seq.is_at_or_before(*end) => *end = end.later(kept.end),
            _ => covered.push((kept.seq, kept.end)),
        }
    }
    let is_covered = |kept: &Kept| {
        covered.iter().any(|(seq, end)| kept.seq.is_at_or_after(*seq) && kept.end.is_at_or_before(*end))
    };
    let outbox = &mut *cx.outbox;
    stream.kept.retain(
        |kept| !(kept.is_behind && kept.whereabouts == Whereabouts::Owed && is_covered(kept)),
        |kept| outbox.discard(&kept, None),
    );
}
