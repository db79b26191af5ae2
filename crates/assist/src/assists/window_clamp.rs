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
    /// The flow came to the path in use from a faster one.
    follows: bool,
    delivery: Delivery,
    taken: Option<Taken>,
}

/// What the path takes of one direction's data, as a replay has measured.
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
        note_delivery(cx, flow, state, passing);
        note_replay(cx, flow, state, passing);
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

    fn on_path(&mut self, _cx: &mut Context<'_>, _flow: &mut Flow, state: &mut State, event: &PathEvent) {
        let PathEvent::Usable(usable) = event else { return };
        // What is known of the old path says nothing of the new one, but which is faster.
        state.measured = None;
        state.probe = None;
        for of in [Towards::Mobile, Towards::Peer] {
            let edge = state.edge_mut(of);
            edge.delivery = Delivery::default();
            edge.follows = match rate(&usable.new, of).zip(rate(&usable.old, of)) {
                Some((new, old)) => new < old || (new == old && edge.follows),
                None => false,
            };
        }
    }

    fn signal(&mut self, cx: &mut Context<'_>, flow: &mut Flow, state: &mut State, event: &PathEvent) {
        if !matches!(event, PathEvent::Usable(_)) {
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
    let Some((scale, limit)) = flow.stream(of).scale.zip(limit(cx, flow, state, of)) else { return window };
    let edge = ack.plus(limit);
    let edge = flow.stream(of).told_edge.map_or(edge, |furthest| furthest.later(edge));
    let units = edge.bytes_since(ack).div_ceil(1 << scale);
    window.min(u16::try_from(units).unwrap_or(u16::MAX))
}

/// The most that the path and the way behind it should hold.
fn limit(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards) -> Option<u32> {
    [limit_as_told(cx, flow, state, of), state.edge(of).taken.map(|taken| taken.bytes)]
        .into_iter()
        .flatten()
        .min()
}

/// A replay has measured the path: more than keeps it busy would only wait. Until the next one has measured its own, after another handover,
/// that holds; and when none follows, what was closed opens as a sender in slow start does.
fn note_replay(cx: &Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>) {
    let (of, mobile) = (cx.config.place.keeps(), flow.key.mobile);
    let stream = flow.stream(of);
    let (true, Some(una)) = (passing.towards == of.back(), stream.una) else { return };
    let behind = match cx.config.place {
        Place::MobileNode => Some(Duration::ZERO),
        Place::HomeAgent | Place::ForeignAgent => cx.behind_path(flow),
    };
    let takes = behind.and_then(|behind| cx.courses.takes(mobile, &stream.share, behind));
    let taken = &mut state.edge_mut(of).taken;
    let window = u32::from(passing.segment.window) << stream.scale.unwrap_or_default();
    // A receiver that closes its window for a while does not want all of it at once afterwards.
    let whole = taken.map_or(window, |taken| taken.whole.max(window));
    if let Some(takes) = takes {
        let bytes = u32::try_from(takes.min(LARGEST_WINDOW)).unwrap_or(u32::MAX);
        *taken = Some(Taken { bytes, whole, una });
    } else if let Some(Taken { bytes, una: before, .. }) = *taken {
        let is_held = cx.courses.is_measuring(mobile, &stream.share);
        let opened = if is_held { 0 } else { una.bytes_since(before) };
        let bytes = bytes.saturating_add(opened);
        *taken = (is_held || bytes < whole).then_some(Taken { bytes, whole, una });
    }
}

fn limit_as_told(cx: &Context<'_>, flow: &Flow, state: &State, of: Towards) -> Option<u32> {
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
    let delivery = &mut state.edge_mut(of).delivery;
    let before = core::mem::replace(&mut delivery.una, una);
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
