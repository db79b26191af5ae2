//! The advertised window follows the path.
//!
//! After a handover to a slow path a sender has far too much in flight, and what it goes on sending stands in the queue in front
//! of that path, where it makes the round trip long, timeouts spurious and the loss of a queue dear. A receiver's window of
//! the path's bandwidth-delay product and a segment keeps the path busy without that queue: the segment is the one the receiver
//! cannot acknowledge until it has all of it.
//!
//! - **Where.** On the mobile node and at the home agent, where the acknowledgements pass: of downloads towards the peer, of
//!   uploads towards the mobile node. No end host changes.
//! - **What it needs.** Rate and round trip of the path in use, both SYNs (for the scale of the windows and what they promised),
//!   and how far away the peer is behind the path's far end: the handshake tells, and later samples. Whatever of it is missing
//!   turns the clamp off. The rate is that of the direction the data go in.
//! - **When.** For connections that have come from a faster path. One that began on the path in use has found its window by itself,
//!   and holding it to the product there would shorten its round trip, and with it the timeout, ahead of a handover: that makes
//!   the timeouts after it more, not fewer.
//! - **For how long.** As long as the flow loses nothing by it. The product is right for a
//!   path of a constant rate that the flow has to itself. Where the rate varies, where others are in the queue, or where the round trip is longer than
//!   thought, the same window starves the flow. So the bound is tried: when the flow has settled under it, which is when one window brings no more than
//!   the one before, it is twice as large until that is so again, and what arrives then is the measure. When under the bound itself a whole window less has arrived
//!   than that, or than what the flow has had on the path on average, the bound has shown that it costs something. It opens for the rest of the path's use, by as much as is acknowledged, and the sender's own
//!   control decides. So does a pause of the sender. A window that comes in no larger than four times the bound is left as it is: its receiver, or the agent at the
//!   path's other end, holds the flow back already.
//! - **After a replay** what the path takes was measured, whatever was said ([`crate::Replay`]): the window is that, half as much again and ten packets,
//!   which wait for the path at the agent, and what is on its way between there and the sender. That holds through a row of handovers, and
//!   afterwards opens by as much as is acknowledged: a sender whose congestion window is larger would send all the difference at once.
//! - **What it does.** It lowers windows, and never so far that their right edge moves to the left of where it was seen: a window
//!   closes only as data are acknowledged (RFC 9293 section 3.8.6). It rounds up to the unit of the window's scale, so a scale whose unit
//!   exceeds what one acknowledgement acknowledges keeps a window from closing. At least two segments stay, so that the receiver
//!   need not delay its acknowledgements (RFC 9293 section 3.8.6.3). When a faster path comes, or one of which nothing is
//!   known, one acknowledgement opens what was closed.
//! - **Late, missing or wrong.** A path change that is told late leaves the queue to build up until then. A rate that is
//!   told too low costs throughput until more is delivered than that; one too high does nothing. A round trip that is told too low
//!   is corrected: what is measured counts where it is larger.
//! - **Sources.** Capacity of the link plus one segment: section 7.1.3 of the thesis on TCP over Mobile IP handovers between WaveLAN
//!   and GSM (the paper `vertical`). A receiver that follows a vertical handover by its window: Gou, Pearce and Mitchell 2006.
//!
//! A round trip is measured only with a segment that finds no more data on their way than the path holds. With more, it would
//! contain the queue, the window would follow the queue's length, and the queue would never drain.

use core::ops::ControlFlow;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::PathProperties;
use careof_wire::{Flags, Segment, SeqNumber};

use crate::acknowledgement::{Wanted, may_be_edited};
use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::meter::Meter;
use crate::paths::{PathEvent, rate};
use crate::{Kind, Place, Towards, Verdict, WindowClamp};

/// The largest window there can be (RFC 7323 section 2.3).
const LARGEST_WINDOW: u64 = 1 << 30;
/// No round trip is longer.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(3_600);

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The first segment to the peer, which is a SYN, and its answer.
    handshake: Handshake,
    /// Round trip of the path in use, between here and its other end, as measured without a queue.
    measured: Option<Duration>,
    probe: Option<Probe>,
    /// Of the data towards the mobile node, and towards the peer.
    edges: [Edge; 2],
}

/// The handshake as a measurement of the way to the peer.
#[derive(Clone, Copy, Debug, Default)]
enum Handshake {
    #[default]
    NotSeen,
    /// A SYN passed to the peer.
    Asked(Instant),
    /// It passed again: whatever comes answers one or the other.
    Unclear,
    /// The answer came.
    Answered,
}

/// A segment that is timed.
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: SeqNumber,
    at: Instant,
    bits: u64,
}

/// What the sender of one direction's data is told of its window.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    /// The last window was less than the receiver's.
    is_cut: bool,
    /// The flow came to the path in use from a faster one, and has lost nothing by the bound so far.
    follows: bool,
    delivery: Delivery,
    trial: Trial,
    taken: Option<Taken>,
}

/// What the path takes of one direction's data, as a replay has measured, or as much of a bound as has been opened.
#[derive(Clone, Copy, Debug)]
struct Taken {
    bytes: u32,
    /// The largest window of its receiver since then, bytes.
    whole: u32,
    /// What was acknowledged when that was last looked at.
    una: SeqNumber,
}

/// What the path in use delivers of one direction's data.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    una: Option<SeqNumber>,
    /// What fills a hole acknowledges what came before.
    has_hole: bool,
    meter: Meter,
}

/// Whether the bound costs the flow something on the path in use.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    stage: Stage,
    /// Where the data begin that have come by the path in use.
    begin: Option<SeqNumber>,
    /// When the first and the latest of them were acknowledged.
    span: Option<(Instant, Instant)>,
    /// What has arrived between these, bytes, duplicates included.
    bytes: u64,
    /// The window under way while something is measured: when it began, and bytes.
    turn: Option<(Instant, u64)>,
    /// What the one before brought, bytes a second.
    last_turn: u64,
    /// How much less has arrived under the bound, bytes.
    missing: u64,
}

/// How far a [`Trial`] has come.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// Under the bound, what was too much drains.
    #[default]
    Settling,
    /// The bound is twice as large, to see what arrives then.
    Wide,
    /// Under the bound, when so many bytes a second had arrived before.
    Held { reference: u64 },
}

/// Bytes a second.
fn per_second(bytes: u64, span: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / span.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

impl Trial {
    /// The bound is twice as large as it is to be.
    const fn is_wide(&self) -> bool {
        matches!(self.stage, Stage::Wide)
    }

    /// Whether a window that comes in is the receiver's own, and large. If not, the receiver holds the flow back itself, or another agent does, whose trial a second
    /// bound would spoil. That one tries twice its bound, and may take the round trip for twice as long.
    const fn can_tell(theirs: u64, bound: u64) -> bool {
        theirs > 4 * bound
    }

    /// More has arrived, `bytes`, under a window of `bound` bytes, or twice that ([`Self::is_wide`]), where `theirs` came in. Returns whether the bound has shown
    /// that it costs something.
    fn note(&mut self, now: Instant, bytes: u64, bound: u64, theirs: u64) -> bool {
        if !Self::can_tell(theirs, bound) {
            *self = Self { begin: self.begin, ..Self::default() };
            return false;
        }
        let in_force = if self.is_wide() { 2 * bound } else { bound };
        let Some((first, latest)) = self.span else {
            self.span = Some((now, now));
            return false;
        };
        self.span = Some((first, now));
        self.bytes = self.bytes.saturating_add(bytes);
        match self.stage {
            Stage::Settling => {
                if self.steady(now, bytes, in_force).is_some() {
                    self.stage = Stage::Wide;
                    (self.turn, self.last_turn) = (None, 0);
                }
                false
            }
            Stage::Wide => {
                if let Some(reference) = self.steady(now, bytes, in_force) {
                    self.stage = Stage::Held { reference };
                }
                false
            }
            Stage::Held { reference } => {
                let mean = per_second(self.bytes, now.saturating_duration_since(first));
                let passed = now.saturating_duration_since(latest).as_nanos();
                let due = u128::from(reference.max(mean)) * passed / 1_000_000_000;
                let due = u64::try_from(due).unwrap_or(u64::MAX);
                self.missing = self.missing.saturating_add(due).saturating_sub(bytes);
                self.missing > bound
            }
        }
    }

    /// One window after the other is timed, until one brings no more than the one before, which is returned, in bytes a second: a sender in slow start has come to
    /// its window, or to what the path carries.
    fn steady(&mut self, now: Instant, bytes: u64, window: u64) -> Option<u64> {
        let Some((since, so_far)) = self.turn else {
            self.turn = Some((now, 0));
            return None;
        };
        let arrived = so_far + bytes;
        let lasted = now.saturating_duration_since(since);
        self.turn = Some((since, arrived));
        if arrived < window || lasted.is_zero() {
            return None;
        }
        let rate = per_second(arrived, lasted);
        self.turn = Some((now, 0));
        let last = core::mem::replace(&mut self.last_turn, rate);
        (rate <= last).then_some(last)
    }
}

impl State {
    const fn edge(&self, of: Towards) -> &Edge {
        match of {
            Towards::Mobile => &self.edges[0],
            Towards::Peer => &self.edges[1],
        }
    }

    const fn edge_mut(&mut self, of: Towards) -> &mut Edge {
        match of {
            Towards::Mobile => &mut self.edges[0],
            Towards::Peer => &mut self.edges[1],
        }
    }
}

impl Edge {
    /// The data that go `of` come to another path.
    fn come_to_path(&mut self, of: Towards, old: &PathProperties, new: &PathProperties) {
        self.delivery = Delivery::default();
        self.trial = Trial::default();
        self.follows = match rate(new, of).zip(rate(old, of)) {
            Some((new, old)) => new < old || (new == old && self.follows),
            None => false,
        };
    }
}

/// Lowers advertised windows to what the path is worth.
#[derive(Debug, Default)]
pub(crate) struct WindowClampAssist;

impl Assist for WindowClampAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        if cx.config.window_clamp.is_none() {
            return ControlFlow::Continue(());
        }
        time_handshake(cx, flow, state, passing);
        if !may_be_edited(flow, passing) {
            return ControlFlow::Continue(());
        }
        measure(cx, flow, state, passing);
        note_begin(cx, flow, state, passing);
        note_delivery(cx, flow, state, passing);
        note_taken(cx, flow, state, passing);
        let edit = verdict.edit.unwrap_or_default();
        let ack = edit.ack.unwrap_or(passing.segment.ack);
        let window = edit.window.unwrap_or(passing.segment.window);
        let advertised = advertise(cx, flow, state, passing.towards, ack, window);
        if advertised != window {
            verdict.edit.get_or_insert_default().window = Some(advertised);
        }
        ControlFlow::Continue(())
    }

    fn on_inject(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        towards: Towards,
        ack: &mut Segment,
    ) {
        ack.window = advertise(cx, flow, state, towards, ack.ack, ack.window);
    }

    fn on_path(&mut self, cx: &mut Context<'_>, _flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let (old, new, concerned): (_, _, &[Towards]) = match event {
            PathEvent::Usable(usable) => (&usable.old, &usable.new, &[Towards::Mobile, Towards::Peer]),
            PathEvent::Copies { old, new } => (old, new, &[Towards::Mobile]),
            PathEvent::Announced { .. } | PathEvent::Lost | PathEvent::FalseAlarm => return,
        };
        // What is known of the old path says nothing of the new one, but which is faster.
        for &of in concerned {
            if of == cx.config.place.keeps() {
                state.measured = None;
                state.probe = None;
            }
            state.edge_mut(of).come_to_path(of, old, new);
        }
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        if !matches!(event, PathEvent::Usable(_) | PathEvent::Copies { .. }) {
            return;
        }
        // The window may be larger now, unless what was injected for another reason has said so.
        for towards in [Towards::Peer, Towards::Mobile] {
            let of = towards.back();
            let stream = flow.stream(of);
            let Some((last, ack)) = stream.last_ack.zip(stream.una) else { continue };
            let (Some(furthest), true, Some(scale)) = (stream.told_edge, state.edge(of).is_cut, stream.scale)
            else {
                continue;
            };
            let window = allowed(cx, flow, state, of, ack, last.segment.window);
            let gained = ack.plus(u32::from(window) << scale).bytes_since(furthest);
            if gained >= u32::from(stream.mss.unwrap_or(flow.key.default_mss())) {
                Wanted::of(Kind::WindowClamp, "open-window", towards).inject(cx, flow, 1);
            }
        }
    }
}

/// The window, as it stands in the header, to be advertised `towards` the sender of the data it is about, and remembers it.
fn advertise(
    cx: &Context<'_>,
    flow: &mut Flow,
    state: &mut State,
    towards: Towards,
    ack: SeqNumber,
    window: u16,
) -> u16 {
    let of = towards.back();
    let Some(scale) = flow.stream(of).scale.filter(|_| cx.config.window_clamp.is_some()) else {
        return window;
    };
    let advertised = allowed(cx, flow, state, of, ack, window);
    let edge = ack.plus(u32::from(advertised) << scale);
    flow.stream_mut(of).note_told_edge(edge);
    state.edge_mut(of).is_cut = advertised < window;
    advertised
}

/// What of a window may be advertised for the data that go `of`.
fn allowed(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards, ack: SeqNumber, window: u16) -> u16 {
    let Some(scale) = flow.stream(of).scale else { return window };
    let Some(limit) = limit(cx, flow, state, of, u64::from(window) << scale) else { return window };
    let edge = ack.plus(limit);
    let edge = flow.stream(of).told_edge.map_or(edge, |furthest| furthest.later(edge));
    let units = edge.bytes_since(ack).div_ceil(1 << scale);
    window.min(u16::try_from(units).unwrap_or(u16::MAX))
}

/// The most that the path and the way behind it should hold, where `theirs` is the window as it came here.
fn limit(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards, theirs: u64) -> Option<u32> {
    let Edge { trial, taken, .. } = state.edge(of);
    let told = bound_as_told(cx, flow, state, of);
    let told = told.filter(|bound| !is_tried(cx) || Trial::can_tell(theirs, (*bound).into()));
    let is_wide = trial.is_wide() && is_tried(cx);
    let told = told.map(|bound| if is_wide { bound.saturating_mul(2) } else { bound });
    [told, taken.map(|taken| taken.bytes)].into_iter().flatten().min()
}

/// A replay has measured the path: more than keeps it busy would only wait. Until the next one has measured its own, after another handover,
/// that holds; and when none follows, or a bound has shown that it costs something, what was closed opens as a sender in slow start does.
fn note_taken(cx: &Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>) {
    let (of, mobile) = (passing.towards.back(), flow.key.mobile);
    let stream = flow.stream(of);
    let Some(una) = stream.una else { return };
    let behind = match cx.config.place {
        Place::MobileNode => Some(Duration::ZERO),
        Place::HomeAgent | Place::ForeignAgent => cx.behind_path(flow),
    };
    let behind = behind.filter(|_| of == cx.config.place.keeps());
    let takes = behind.and_then(|behind| cx.courses.takes(mobile, &stream.share, behind));
    let taken = &mut state.edge_mut(of).taken;
    let window = u32::from(passing.segment.window) << stream.scale.unwrap_or_default();
    // A receiver that closes its window for a while does not want all of it at once afterwards.
    let whole = taken.map_or(window, |taken| taken.whole.max(window));
    if let Some(takes) = takes {
        let bytes = u32::try_from(takes.min(LARGEST_WINDOW)).unwrap_or(u32::MAX);
        *taken = Some(Taken { bytes, whole, una });
    } else if let Some(Taken { bytes, una: before, .. }) = *taken {
        let is_held = of == cx.config.place.keeps() && cx.courses.is_measuring(mobile, &stream.share);
        let opened = if is_held { 0 } else { una.bytes_since(before) };
        let bytes = bytes.saturating_add(opened);
        *taken = (is_held || bytes < whole).then_some(Taken { bytes, whole, una });
    }
}

/// Whether the bound ends where it costs something; not where it is to hold on every path.
fn is_tried(cx: &Context<'_>) -> bool {
    cx.config.window_clamp.is_some_and(|clamp| !clamp.always)
}

/// What the path holds as somebody has said, and segments; `None`: the flow is not held to that.
fn bound_as_told(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards) -> Option<u32> {
    let WindowClamp { factor, segments, always } = cx.config.window_clamp?;
    if !always && !state.edge(of).follows {
        return None;
    }
    let (given, round_trip) = path(cx, flow, state, of)?;
    // What is delivered can be delivered, whatever was said.
    let rate = state.edge(of).delivery.meter.rate().map_or(given, |measured| measured.max(given));
    let product = (bytes_in(rate, round_trip) as f64 * factor) as u64;
    let mss = u64::from(flow.stream(of).mss.unwrap_or(flow.key.default_mss()));
    let limit = product.saturating_add(u64::from(segments) * mss).max(2 * mss);
    Some(u32::try_from(limit.min(LARGEST_WINDOW)).unwrap_or(u32::MAX))
}

fn bytes_in(rate: DataRate, span: Duration) -> u64 {
    rate.bits_in(span.min(LONGEST_ROUND_TRIP)) / 8
}

/// Rate of the path in use for the data that go `of`, and round trip between the ends.
fn path(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards) -> Option<(DataRate, Duration)> {
    let path = cx.paths.properties(flow.key.mobile);
    let given = path.round_trip?.max(state.measured.unwrap_or_default());
    Some((rate(&path, of)?, given.saturating_add(cx.behind_path(flow)?)))
}

fn time_handshake(cx: &Context<'_>, flow: &mut Flow, state: &mut State, passing: &Passing<'_>) {
    let is_answer = passing.towards == Towards::Mobile && passing.segment.flags.contains(Flags::ACK);
    let handshake = &mut state.handshake;
    match *handshake {
        Handshake::Asked(at) if is_answer => {
            let whole = cx.now.saturating_duration_since(at);
            let path = match cx.config.place {
                Place::MobileNode => cx.paths.properties(flow.key.mobile).round_trip.unwrap_or_default(),
                Place::HomeAgent | Place::ForeignAgent => Duration::ZERO,
            };
            *handshake = Handshake::Answered;
            // The peer was asked through the path.
            flow.behind_path = Some(whole.saturating_sub(path));
        }
        Handshake::NotSeen if is_syn_to_peer(passing) => *handshake = Handshake::Asked(cx.now),
        Handshake::Asked(_) if is_syn_to_peer(passing) => *handshake = Handshake::Unclear,
        _ => {}
    }
}

fn is_syn_to_peer(passing: &Passing<'_>) -> bool {
    passing.towards == Towards::Peer && passing.segment.flags.contains(Flags::SYN)
}

/// Takes down where the data begin that go, or have come, by the path in use.
fn note_begin(cx: &Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>) {
    let edge = state.edge_mut(passing.towards);
    if !edge.follows || edge.trial.begin.is_some() || passing.segment.payload_len == 0 {
        return;
    }
    let is_by_present = passing.path.is_none_or(|path| cx.paths.present(flow.key.mobile) == Some(path));
    if is_by_present && !passing.seen.is_repetition {
        edge.trial.begin = Some(passing.segment.seq);
    }
}

/// Measures what the path in use delivers, once nothing can be of the path before.
fn note_delivery(cx: &Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>) {
    let of = passing.towards.back();
    if !state.edge(of).follows || !passing.segment.flags.contains(Flags::ACK) {
        return;
    }
    let (Some((_, round_trip)), Some(since)) =
        (path(cx, flow, state, of), cx.paths.in_use_since(flow.key.mobile))
    else {
        return;
    };
    let stream = flow.stream(of);
    let (una, round_trip) = (stream.una, round_trip.max(stream.round_trip.unwrap_or_default()));
    let bound = bound_as_told(cx, flow, state, of);
    let Edge { delivery, trial, .. } = state.edge_mut(of);
    let before = core::mem::replace(&mut delivery.una, una);
    if is_tried(cx)
        && let (Some(bound), Some(before), Some(una)) = (bound, before, una)
        && trial.begin.is_some_and(|begin| una.is_after(begin))
    {
        // A duplicate acknowledgement says that a segment has arrived, too (RFC 5681 section 3.2).
        let mss = stream.mss.unwrap_or(flow.key.default_mss());
        let duplicate = if passing.seen.is_duplicate_ack { mss } else { 0 };
        let bytes = u64::from(una.bytes_since(before)) + u64::from(duplicate);
        let theirs = u64::from(passing.segment.window) << stream.scale.unwrap_or_default();
        if bytes > 0 && trial.note(cx.now, bytes, bound.into(), theirs) {
            return give_up_bound(flow, state, of, bound, passing);
        }
    }
    let Edge { delivery, .. } = state.edge_mut(of);
    let has_hole = passing.seen.is_duplicate_ack || !passing.segment.sack.as_slice().is_empty();
    if has_hole || cx.now < since + 2 * round_trip {
        delivery.has_hole = has_hole;
        delivery.meter.skip();
    } else if passing.seen.acknowledges
        && let (Some(before), Some(una)) = (before, una)
    {
        if core::mem::take(&mut delivery.has_hole) {
            delivery.meter.skip();
        } else {
            delivery.meter.add(cx.now, una.bytes_since(before).into(), Some(round_trip));
        }
    }
}

/// The bound costs the flow something: until the next handover it only opens.
fn give_up_bound(flow: &Flow, state: &mut State, of: Towards, bound: u32, passing: &Passing<'_>) {
    let stream = flow.stream(of);
    let edge = state.edge_mut(of);
    edge.follows = false;
    if let (None, Some(una)) = (edge.taken, stream.una) {
        let whole = u32::from(passing.segment.window) << stream.scale.unwrap_or_default();
        edge.taken = Some(Taken { bytes: bound, whole, una });
    }
}

/// Times one segment after the other on its way over the path and back.
fn measure(cx: &Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>) {
    let over = cx.config.place.keeps();
    let Some((rate, round_trip)) = path(cx, flow, state, over) else { return };
    let una = flow.stream(over).una;
    if passing.towards == over && passing.segment.payload_len > 0 {
        if passing.seen.is_repetition {
            // Karn: what may be repeated is not timed.
            state.probe = None;
        } else if state.probe.is_none()
            && una.is_some_and(|una| {
                u64::from(passing.segment.seq.bytes_since(una)) <= bytes_in(rate, round_trip)
            })
        {
            let bits = 8 * u64::from(passing.header.total_len());
            state.probe = Some(Probe { end: passing.segment.end_seq(), at: cx.now, bits });
        }
    } else if passing.towards == over.back()
        && let Some(probe) = state.probe
        && una.is_some_and(|una| una.is_at_or_after(probe.end))
    {
        state.probe = None;
        let behind = match cx.config.place {
            Place::MobileNode => cx.behind_path(flow).unwrap_or_default(),
            Place::HomeAgent | Place::ForeignAgent => Duration::ZERO,
        };
        let sample = cx
            .now
            .saturating_duration_since(probe.at)
            .saturating_sub(rate.time_for_bits(probe.bits).unwrap_or_default())
            .saturating_sub(behind);
        state.measured = Some(state.measured.map_or(sample, |measured| measured.min(sample)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1_000;
    const BOUND: u64 = 10 * SEGMENT;
    const THEIRS: u64 = 1 << 20;

    fn is_held(trial: &Trial) -> bool {
        matches!(trial.stage, Stage::Held { .. })
    }

    /// After how many segments that arrive at such distances, one behind the other, the bound is given up.
    fn given_up(
        trial: &mut Trial,
        now: &mut Instant,
        distances: impl IntoIterator<Item = u64>,
    ) -> Option<usize> {
        distances.into_iter().position(|us| {
            *now += Duration::from_micros(us);
            trial.note(*now, SEGMENT, BOUND, THEIRS)
        })
    }

    #[test]
    fn a_bound_under_which_as_much_arrives_stays() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        assert_eq!(given_up(&mut trial, &mut now, [1_000; 100_000]), None);
        assert!(is_held(&trial));
    }

    #[test]
    fn a_bound_under_which_a_tenth_less_arrives_goes_after_ten_windows() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        // Two windows of the bound, and two of twice that tell how much arrives.
        let wide = (0..200).position(|_| {
            given_up(&mut trial, &mut now, [900]);
            is_held(&trial)
        });
        assert_eq!(wide, Some(62));
        let after = given_up(&mut trial, &mut now, [1_000; 1_000]).expect("it costs something");
        assert!((90..=115).contains(&after), "{after}");
    }

    #[test]
    fn acknowledgements_that_come_at_uneven_distances_are_no_loss() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        let uneven = (0..100_000).map(|number| if number % 2 == 0 { 200 } else { 1_800 });
        assert_eq!(given_up(&mut trial, &mut now, uneven), None);
    }

    #[test]
    fn a_path_that_has_become_faster_and_falls_back_is_none_of_a_constant_rate() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        assert_eq!(given_up(&mut trial, &mut now, [1_000; 100]), None);
        assert_eq!(given_up(&mut trial, &mut now, [500; 200]), None);
        assert!(given_up(&mut trial, &mut now, [1_000; 100]).is_some());
    }

    #[test]
    fn a_sender_in_slow_start_is_not_taken_for_the_path() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        for us in [8_000, 4_000, 2_000, 1_000] {
            assert_eq!(given_up(&mut trial, &mut now, [us; 12]), None);
            assert!(matches!(trial.stage, Stage::Settling), "{us}");
        }
        assert_eq!(given_up(&mut trial, &mut now, [1_000; 20]), None);
        assert!(trial.is_wide());
    }

    #[test]
    fn under_a_window_that_another_one_has_cut_nothing_is_judged() {
        let (mut trial, mut now) = (Trial::default(), Instant::ZERO);
        assert_eq!(given_up(&mut trial, &mut now, [1_000; 100]), None);
        for us in [1_000, 10_000, 100_000] {
            now += Duration::from_micros(us);
            assert!(!trial.note(now, SEGMENT, BOUND, 4 * BOUND), "{us}");
        }
        assert!(matches!(trial.stage, Stage::Settling));
    }
}
