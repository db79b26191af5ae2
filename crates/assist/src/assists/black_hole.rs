//! Tunnels that swallow large packets: found without ICMP, told to the sender, and crossed in fragments.
//!
//! Where a router on the tunnel's path drops what is too large for its next link and its ICMP message is filtered, nobody
//! learns: small packets pass, full ones never do, and the connection stands still (RFC 2923 section 2.1).
//!
//! - **Where.** At the entry of the tunnel: the home agent for downloads, the foreign agent or the mobile node with a reverse
//!   tunnel for uploads. No end host changes.
//! - **What it needs.** Repetitions of data with the DF bit, or of IPv6, the path that they take, and how much the tunnel adds. Where
//!   acknowledgements pass, they say where the flow stands, and their time stamps which transmission they answer (RFC 3522):
//!   a whole segment that arrived late makes no black hole. Where they do not pass, that the sender goes on after it
//!   repeated one segment over and over says that it arrived.
//! - **What it does.** A segment at which the flow stands and that was repeated [`crate::BlackHole::repeats`] times is sent
//!   in fragments the next time, as a trial; if the flow goes on, they got through where the whole did not. An outage
//!   that ended in between looks the same, so that large packets go whole again, and only when these fail once more, after
//!   a silence as of a timeout, and fragments help once more the path is taken to have a smaller MTU: the next plateau below
//!   the size that failed (RFC 1191 section 7.1), and again the next one if that fails, too. It is soft state of the path,
//!   for [`crate::BlackHole::lifetime`]; when it is old, one failure of two repetitions says that nothing has changed.
//!   What is larger goes on in fragments as large as that, and its sender is told by ICMP fragmentation needed (RFC 1191 section 4) or,
//!   over IPv6, Packet Too Big (RFC 4443 section 3.2), once a second at most: if that is filtered, too, the transfer completes all the same.
//! - **The rule that this bends.** RFC 2003 section 3.1 has the DF bit of the inner header copied into the outer one. Here the
//!   outer datagram is made in fragments, without it. The datagram inside stays whole and keeps its bit, for the tunnel's exit puts
//!   the fragments together before it looks inside; it is never fragmented under an identification that need not be
//!   unique (RFC 6864 section 4.1). Minimal encapsulation has one header for both, and so loses the bit. RFC 4459 section 3.1 weighs this
//!   against nothing getting through. Likewise RFC 2473 section 7.1 has the entry of a tunnel discard a packet of IPv6 that is too large
//!   and longer than 1280 bytes; here its tunnel packet goes in fragments, as that of a shorter one does. No path of IPv6 is taken to carry less
//!   than 1280 bytes (RFC 8200 section 5), and no sender is told less (RFC 8201 section 4).
//! - **Late, missing or wrong.** Late, the sender's timer has backed off further. A false alarm costs headers and
//!   fragments until it is old. What got through whole on a path is suspected there after [`DOUBTS`] repetitions more only.
//! - **Risks.** Fragments cost the exit memory, and a lost one the whole datagram. Not more than
//!   [`crate::Limits::flows`] paths are remembered.

use core::ops::ControlFlow;
use core::time::Duration;

use careof_base::Instant;
use careof_mobility::path_mtu::{LEAST, plateau_below};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{IpHeader, SeqNumber};

use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::paths::PathEvent;
use crate::tunnels::{Tunnel, tunnel};
use crate::{Action, Fate, HoleNews, Kind, PathId, Report, Verdict};

/// How often large packets have to fail and fragments to help before a path is taken for a black hole.
const TRIALS: u32 = 2;
/// Repetitions more until a path is suspected on which packets of this size have arrived whole.
const DOUBTS: u32 = 3;
/// Between two messages to a sender.
const BETWEEN_MESSAGES: Duration = Duration::from_secs(1);
/// The least timeout of any sender in use, Linux's; RFC 6298 section 2.4 has a second.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// Segments that a sender sends at most before the next timeout, when the one that it repeated is acknowledged but none of
/// these: two in slow start, three with appropriate byte counting (RFC 3465), and what a probe adds. Who sends more has heard of them.
const UNHEARD: u32 = 8;

/// What every path of a version carries in one piece, bytes (RFC 791 section 3.2, RFC 8200 section 5).
const fn least_mtu(is_ipv6: bool) -> u16 {
    if is_ipv6 { Ipv6Header::MIN_MTU } else { LEAST }
}

/// What the path of a tunnel carries in any case. The version of the outer datagram shows in a care-of address; elsewhere it is that of
/// the datagram inside.
const fn least_outer(path: PathId, header: &IpHeader) -> u16 {
    least_mtu(match path {
        PathId::CareOf(address) => address.is_ipv6(),
        PathId::Interface(_) => matches!(header, IpHeader::V6(_)),
    })
}

/// What is remembered of a flow.
#[derive(Debug, Default)]
pub(crate) struct State {
    watched: Option<Watched>,
    told_at: Option<Instant>,
    sent_at: Option<Instant>,
    /// The shortest silence before a repetition that may have been a timeout.
    shortest_timeout: Option<Duration>,
    /// Segments of this size and more sent since fragments have helped, as long as they are few.
    since_help: Option<(u32, u16)>,
}

/// The segment by which the sender's progress is judged: the first that it has repeated, or the last one.
#[derive(Clone, Copy, Debug)]
struct Watched {
    seq: SeqNumber,
    end: SeqNumber,
    /// Of the outer datagram.
    size: u16,
    /// What its path carries in any case.
    least: u16,
    at: Tunnel,
    /// How often it was sent again.
    repeats: u32,
    /// It was not sent before it was watched.
    is_new: bool,
    /// Its time stamp the last time.
    stamp: Option<u32>,
    /// The last time it went in fragments.
    is_tried: bool,
}

/// Finds tunnels that swallow large packets, and crosses them.
#[derive(Debug, Default)]
pub(crate) struct BlackHoleAssist;

impl Assist for BlackHoleAssist {
    type State = State;

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        state: &mut State,
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.black_hole else { return ControlFlow::Continue(()) };
        let place = cx.config.place;
        if passing.towards != place.enters() {
            if passing.seen.acknowledges
                && let Some(watched) = state.watched
                && flow.stream(place.enters()).una.is_some_and(|una| una.is_at_or_after(watched.end))
            {
                state.watched = None;
                // Eifel detection (RFC 3522): which transmission arrived. Where an older one did, whole, the timeouts were spurious;
                // where fragments of one did before, nothing is said of this one.
                let echo = passing.segment.timestamps.map(|stamps| stamps.echo);
                let hole = cx.tunnels.get(&watched.at);
                let is_known = hole.is_some_and(|hole| hole.assumed.get(cx.now).is_some());
                let is_late = echo
                    .zip(watched.stamp)
                    .is_some_and(|(echo, stamp)| (echo.wrapping_sub(stamp) as i32) < 0);
                let is_alone = !is_known || (watched.is_new && watched.repeats == 0);
                let is_answer = !is_late && (watched.is_tried || is_alone);
                if !is_answer && !watched.is_tried {
                    return ControlFlow::Continue(());
                }
                let watched = Watched { is_tried: watched.is_tried && is_answer, ..watched };
                got_through(cx, flow, state, passing.path, &watched);
            }
            return ControlFlow::Continue(());
        }
        let (segment, header) = (passing.segment, passing.header);
        let Some(path) = passing.path.filter(|_| segment.payload_len > 0 && header.dont_fragment()) else {
            return ControlFlow::Continue(());
        };
        if verdict.fate != Fate::Pass || cx.paths.lost_since(flow.key.mobile).is_some() {
            return ControlFlow::Continue(());
        }
        let at = tunnel(place, flow.key.mobile, path);
        let size = header.total_len().saturating_add(passing.overhead);
        let least = least_outer(path, header);
        let (seq, end) = (segment.seq, segment.end_seq());
        let heard = flow.stream(place.enters()).una.filter(|_| hears_acks(cx, flow));
        let is_open = |end: SeqNumber| heard.is_none_or(|una| una.is_before(end));
        let before = state.watched.filter(|watched| watched.at == at && is_open(watched.end));
        let silence = state.sent_at.map(|at| cx.now.saturating_duration_since(at));
        state.sent_at = Some(cx.now);
        let is_back =
            before.is_some_and(|watched| seq.is_at_or_before(watched.seq)) && passing.seen.is_repetition;
        let shortest = state.shortest_timeout;
        let is_after_silence = silence.is_some_and(|silence| {
            silence >= LEAST_TIMEOUT && shortest.is_none_or(|least| silence >= least / 2)
        });
        let is_timeout = is_back && is_after_silence;
        if is_timeout {
            state.shortest_timeout = shortest.min(silence).or(silence);
        }
        let is_repetition = passing.seen.is_repetition;
        let is_known = cx.tunnels.assumed(cx.now, place, flow.key.mobile, path).is_some();
        let stamp = segment.timestamps.map(|stamps| stamps.value);
        let repeats = match before {
            // It crossed its acknowledgement.
            _ if !is_open(end) => None,
            Some(watched) if watched.seq == seq => Some(watched.repeats.saturating_add(1)),
            // Back to an earlier one: that is where the sender stands.
            Some(watched) if seq.is_before(watched.seq) => Some(u32::from(is_repetition)),
            // Where acknowledgements pass they say what arrived, and their time stamps which transmission did; of what is
            // repeated behind, some may be lost again.
            Some(_) if stamp.is_some() && heard.is_some() => None,
            // On a path that is known for it, small pieces that arrive have others repeated.
            Some(watched) if is_known && is_repetition && watched.repeats > 0 && !is_after_silence => None,
            Some(watched) => {
                // Who repeats one segment over and over, and then sends the next one, has had it acknowledged.
                if watched.is_tried || watched.repeats >= 2 {
                    got_through(cx, flow, state, Some(path), &watched);
                }
                Some(0)
            }
            None => Some(u32::from(is_repetition)),
        };
        let hole = cx.tunnels.entry(cx.now, at, cx.config.limits.flows);
        if let Some((since, least)) = state.since_help.filter(|(_, least)| !is_back && size >= *least) {
            state.since_help = Some((since + 1, least)).filter(|(since, _)| *since <= UNHEARD);
            if since >= UNHEARD && hole.assumed.latest().is_none() {
                // They arrive whole: it was an outage.
                hole.helped = 0;
            }
        }
        if let Some(repeats) = repeats {
            let is_new = !is_repetition;
            state.watched =
                Some(Watched { seq, end, size, least, at, repeats, is_new, stamp, is_tried: false });
        }
        if let Some(mtu) = hole.assumed.get(cx.now).filter(|mtu| size > *mtu) {
            verdict.fragments = Some(mtu);
            if repeats.is_some() {
                state.watched = None;
            }
            cx.counters.fragmented += 1;
            cx.outbox.did(flow.key, Kind::BlackHole, "in-fragments", 1, u64::from(header.total_len()));
            cx.outbox.report(Report::Hole { flow: flow.key, path, news: HoleNews::InFragments });
            tell(cx, flow, state, passing, path, mtu.saturating_sub(passing.overhead));
            return ControlFlow::Continue(());
        }
        let is_proven = hole.proven.get(cx.now).is_some_and(|proven| proven >= size);
        // Where the path was one for this size, less is needed; where fragments have helped just now, a timeout is enough.
        let needed = if hole.assumed.latest().is_some_and(|mtu| size > mtu) { 1 } else { config.repeats };
        // A path may have become one.
        let is_stuck = repeats.is_some_and(|repeats| repeats > config.repeats.saturating_add(DOUBTS));
        let is_suspected =
            repeats.is_some_and(|repeats| repeats > needed) || (is_timeout && state.since_help.is_some());
        if (is_stuck || (is_suspected && !is_proven)) && size > least {
            verdict.fragments = Some(plateau_below(size).max(least));
            if let Some(watched) = &mut state.watched {
                watched.is_tried = true;
            }
            cx.outbox.did(flow.key, Kind::BlackHole, "trial", 1, u64::from(header.total_len()));
        }
        ControlFlow::Continue(())
    }

    fn on_path(&mut self, _cx: &mut Context<'_>, _flow: &mut Flow, state: &mut State, _event: &PathEvent) {
        // Another path, or none: what waits for an answer gets none.
        *state = State { told_at: state.told_at, ..State::default() };
    }
}

/// Whether the receiver's acknowledgements of what goes into the tunnel pass here, since this path is in use.
fn hears_acks(cx: &Context<'_>, flow: &Flow) -> bool {
    let heard = flow.stream(cx.config.place.enters()).progress_at;
    let since = cx.paths.in_use_since(flow.key.mobile);
    heard.is_some_and(|at| since.is_none_or(|since| at >= since))
}

/// The sender goes on behind what is watched.
fn got_through(
    cx: &mut Context<'_>,
    flow: &Flow,
    state: &mut State,
    path: Option<PathId>,
    watched: &Watched,
) {
    let Some(config) = cx.config.black_hole else { return };
    let hole = cx.tunnels.entry(cx.now, watched.at, cx.config.limits.flows);
    if !watched.is_tried {
        // Whole: of one that was sent several times each may have been the one.
        if hole.proven.get(cx.now).is_none_or(|proven| proven <= watched.size) {
            hole.proven.learn(cx.now, watched.size, config.lifetime);
        }
        if hole.assumed.latest().is_none() {
            hole.helped = 0;
        }
        return;
    }
    hole.helped = hole.helped.saturating_add(1);
    // What is above an assumption that has become old has been found out before.
    let is_known = hole.assumed.latest().is_some_and(|mtu| watched.size > mtu);
    let again = state.since_help.replace((0, watched.size / 2)).is_some();
    if hole.helped < TRIALS && !is_known && !again {
        return;
    }
    let mtu = plateau_below(watched.size).max(watched.least);
    hole.assumed.learn(cx.now, mtu, config.lifetime);
    hole.helped = 0;
    let path = path.unwrap_or(watched.at.1);
    cx.counters.black_holes += 1;
    cx.outbox.did(flow.key, Kind::BlackHole, "black-hole", 1, u64::from(watched.size));
    let news = HoleNews::Assumed { mtu, failed: watched.size };
    cx.outbox.report(Report::Hole { flow: flow.key, path, news });
}

/// Tells the sender of a packet what fits the tunnel.
fn tell(cx: &mut Context<'_>, flow: &Flow, state: &mut State, passing: &Passing<'_>, path: PathId, mtu: u16) {
    let quoted: IpHeader = *passing.header;
    // No sender is told less than every node passes on whole (RFC 1191 section 3, RFC 8201 section 4). Whose packets are that small goes on
    // in fragments.
    let mtu = mtu.max(least_mtu(matches!(quoted, IpHeader::V6(_))));
    if quoted.total_len() <= mtu {
        return;
    }
    let is_due = state.told_at.is_none_or(|at| cx.now.saturating_duration_since(at) >= BETWEEN_MESSAGES);
    if !is_due {
        return;
    }
    if !cx.may_tell(flow) {
        cx.counters.limited += 1;
        return;
    }
    state.told_at = Some(cx.now);
    let ports = (passing.segment.source_port, passing.segment.destination_port);
    let seq = passing.segment.seq;
    cx.outbox.act(Action::TooBig { quoted, ports, seq, mtu });
    cx.counters.unreachables += 1;
    cx.outbox.did(flow.key, Kind::BlackHole, "told-sender", 1, u64::from(quoted.total_len()));
    cx.outbox.report(Report::Hole { flow: flow.key, path, news: HoleNews::Told { mtu } });
}
