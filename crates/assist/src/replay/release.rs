//! How fast what waits is sent on: one pace for all flows that share a path.
//!
//! What waits goes **at the path's rate, oldest first, the flows of a mobile node in turn** (deficit round robin, Shreedhar and
//! Varghese 1995). A burst would gain nothing, for the slowest link serialises at that rate in any case; but it would need a
//! queue there as large as itself, and put itself in front of signalling and of other flows. The first packet goes at once.
//!
//! - *Somebody has said the rate*, or it is not known and *these flows were measured before the handover*: that is a first guess, and
//!   acknowledgements of what was released say what the path is really like ([`super::rate_probe`]). A path like the last one is
//!   then used at its rate from the first packet on, so that the sender's whole window is on its way within a round trip, which is
//!   what lets today's senders undo their timeout; a faster one is found within a few round trips; on a slower one the link drops
//!   the end of the window, as it would without a replay.
//! - *As far as acknowledgements are in sight*, not more than twice what the path holds and two packets are released and
//!   unacknowledged - once what it holds where the pace is the rate that was given - so that too high a guess costs a short queue,
//!   not loss.
//! - *Nothing is known, for the flow has just begun:* all at once. There is not more than its first windows.
//! - *Few packets* need no pace: ten, an initial window (RFC 6928), if they are within rate times round trip or that is not known.
//!
//! When all that was owed is out, what came behind it follows ever faster: the pace rises by the path's rate every round trip.
//! An acknowledgement clock would otherwise keep the sender's surplus waiting here for good; so it moves on to the link, whose
//! queue and discipline are there for it, and a replay ends however wrong the rate was that it was told.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;
use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::context::Context;
use crate::flow::Flow;
use crate::keeping::{Kept, Tally, Whereabouts};
use crate::paths::PathEvent;
use crate::{FlowKey, Towards};

use super::owed::rate_of;
use super::rate_probe::{Arrived, RateProbe};
use super::{DELAYED_ACK, LEAST_TIMEOUT, Rules};

/// What a packet takes up on the path beyond itself: the outer header (RFC 2003, RFC 2473) and about 20 bytes of a link's framing.
const fn overhead(mobile: IpAddr) -> u64 {
    match mobile {
        IpAddr::V4(_) => 20 + 20,
        IpAddr::V6(_) => 40 + 20,
    }
}

/// What a flow may send in its turn, bytes: the largest ordinary packet.
const QUANTUM: u32 = 1_500;
/// So many packets need no pace where they fit into the path (RFC 6928).
const FEW: usize = 10;
/// A host's timer may be so late; the pace makes up for it.
const LATE: Duration = Duration::from_millis(5);
/// Without acknowledgements for this long they are not in sight, whatever was seen before (RFC 6298: an old sender's least
/// timeout).
const NO_ACKS: Duration = Duration::from_secs(1);

/// The replays under way, at most one a mobile node.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    courses: BTreeMap<IpAddr, Course>,
    begun: u64,
}

/// A replay to one mobile node, by one path.
#[derive(Debug)]
pub(crate) struct Course {
    id: u64,
    /// Rate of the path, as somebody has said.
    given: Option<DataRate>,
    /// Sum of the rates at which its flows were delivered before, bit/s.
    measured: u64,
    /// The rate as it shows itself.
    probe: RateProbe,
    /// What a round trip is expected to be, until one has been measured.
    expected: Duration,
    /// The shortest time that a released packet took to be acknowledged.
    sample: Option<Duration>,
    /// The time that the latest one took.
    took: Option<Duration>,
    /// Something was acknowledged since it began.
    heard: bool,
    is_burst: bool,
    turns: VecDeque<FlowKey>,
    members: BTreeMap<FlowKey, Member>,
    total: Tally,
    largest: u16,
    /// See [`overhead`].
    overhead: u64,
    next_at: Instant,
    /// Since when all that was owed is out.
    following_since: Option<Instant>,
    /// Since when the window is full, and nothing was acknowledged.
    full_since: Option<Instant>,
    /// The window was full when it was last looked at.
    was_full: bool,
    acks_in_sight: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    deficit: u32,
    waiting_bytes: u64,
}

/// What a flow has added to the sums of a course.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    course: u64,
    counted: Tally,
}

impl Replays {
    pub(crate) fn is_running(&self, mobile: IpAddr) -> bool {
        !self.courses.is_empty() && self.courses.contains_key(&mobile)
    }

    /// The path is another one, or lost: the present course ends. Flows with something to send begin a new one.
    pub(crate) fn on_path(&mut self, mobile: IpAddr, event: &PathEvent) {
        if matches!(event, PathEvent::Lost | PathEvent::Usable(_)) {
            self.courses.remove(&mobile);
        }
    }

    fn course(&mut self, mobile: IpAddr) -> Option<&mut Course> {
        if self.courses.is_empty() { None } else { self.courses.get_mut(&mobile) }
    }

    /// A flow is forgotten, or what is stored for it.
    pub(crate) fn leave(&mut self, flow: &mut Flow, keeps: Towards) {
        let key = flow.key;
        let Some(course) = self.course(key.mobile) else { return };
        let share = &mut flow.stream_mut(keeps).replay.share;
        *share = course.count(&key, share, Tally::default());
        course.members.remove(&key);
        course.turns.retain(|member| *member != key);
    }

    /// Bytes that may wait for a mobile node in all; `None`: there is no such bound.
    fn bound(course: &Course, rules: &Rules) -> Option<u64> {
        if course.is_burst {
            return None;
        }
        let rate = course.rate()?;
        let pipe = course.pipe(rate);
        match rules.longest_wait() {
            Some(wait) => Some((rate.bits_in(wait) / 8).max(pipe)),
            None => Some(pipe),
        }
    }

    /// Whether there is room for another packet behind what waits.
    pub(crate) fn has_room(&mut self, key: &FlowKey, size: u16, rules: &Rules) -> bool {
        let Some(course) = self.course(key.mobile) else { return true };
        let Some(bound) = Self::bound(course, rules) else { return true };
        let own = course.members.get(key).map_or(0, |member| member.waiting_bytes);
        let fair = bound / course.members.len().max(1) as u64;
        course.total.waiting_bytes + u64::from(size) <= bound || own + u64::from(size) <= fair
    }

    /// The flow that has to give up waiting packets, and how many bytes may stay.
    pub(crate) fn over_bound(&mut self, mobile: IpAddr, rules: &Rules) -> Option<(FlowKey, u64)> {
        let course = self.course(mobile)?;
        let bound = Self::bound(course, rules)?;
        let excess = course.total.waiting_bytes.checked_sub(bound).filter(|excess| *excess > 0)?;
        let fair = bound / course.members.len().max(1) as u64;
        let (key, member) = course.members.iter().max_by_key(|(_, member)| member.waiting_bytes)?;
        Some((*key, fair.max(member.waiting_bytes.saturating_sub(excess))))
    }

    /// Whose turn it is, if something may be sent now.
    pub(crate) fn next_flow(&mut self, now: Instant, mobile: IpAddr) -> Option<FlowKey> {
        let course = self.course(mobile)?;
        let Some(key) = course.turns.front().copied() else {
            self.courses.remove(&mobile);
            return None;
        };
        course.may_send(now).then_some(key)
    }

    /// When to look again.
    pub(crate) fn wake_at(&mut self, mobile: IpAddr) -> Option<Instant> {
        let course = self.course(mobile)?;
        Some(match course.full_since {
            Some(since) => since + course.patience_for_acks(),
            None => course.next_at,
        })
    }
}

impl Course {
    fn rate(&self) -> Option<DataRate> {
        self.probe.pace().filter(|_| !self.is_burst)
    }

    /// The time that a released packet takes to be acknowledged.
    fn round_trip(&self) -> Duration {
        self.sample.unwrap_or(self.expected)
    }

    /// Released packets have arrived.
    fn note_arrival(&mut self, now: Instant, arrived: &Arrived) {
        if !core::mem::replace(&mut self.heard, true) {
            // It may be the last one that the old path lost, repeated by the other end.
            return;
        }
        let took = now.saturating_duration_since(arrived.released);
        self.took = Some(took);
        self.sample = Some(self.sample.map_or(took, |least| least.min(took)));
        self.probe.arrived(now, arrived, self.round_trip());
    }

    /// What the path holds, and two packets.
    fn pipe(&self, rate: DataRate) -> u64 {
        let packet = u64::from(self.largest) + self.overhead;
        let holds = rate.bits_in(self.round_trip()) / 8;
        // A rate that is looked for is not to be held down by the window.
        let room = if self.given == Some(rate) { holds } else { 2 * holds };
        room + 2 * packet
    }

    fn patience_for_acks(&self) -> Duration {
        (2 * self.round_trip()).max(if self.sample.is_some() { LEAST_TIMEOUT } else { NO_ACKS })
    }

    fn may_send(&mut self, now: Instant) -> bool {
        let Some(rate) = self.rate() else { return true };
        let Tally { waiting, waiting_bytes, out, .. } = self.total;
        let holds = self.given.map_or(u64::MAX, |rate| rate.bits_in(self.round_trip()) / 8);
        if waiting <= FEW && waiting_bytes + out <= holds {
            return true;
        }
        if self.next_at > now {
            return false;
        }
        let has_window = self.acks_in_sight && self.following_since.is_none();
        if has_window && out > 0 && out + u64::from(self.largest) > self.pipe(rate) {
            let since = *self.full_since.get_or_insert(now);
            self.was_full = true;
            if now < since + self.patience_for_acks() {
                return false;
            }
            self.acks_in_sight = false;
        }
        self.full_since = None;
        if core::mem::take(&mut self.was_full) {
            // No credit for the time in which the window was full.
            self.next_at = now;
        }
        true
    }

    /// How long the path is taken up by a packet.
    fn cost(&self, now: Instant, size: u16) -> Duration {
        let bits = (u64::from(size) + self.overhead) * 8;
        let Some(alone) = self.rate().and_then(|rate| rate.time_for_bits(bits)) else {
            return Duration::ZERO;
        };
        let Some(since) = self.following_since else { return alone };
        let round_trip = self.round_trip().as_nanos().max(1);
        let rise = round_trip + now.saturating_duration_since(since).as_nanos();
        Duration::from_nanos(u64::try_from(alone.as_nanos() * round_trip / rise).unwrap_or(u64::MAX))
    }

    /// Takes in what has become of a flow's packets.
    fn count(&mut self, key: &FlowKey, share: &Share, present: Tally) -> Share {
        let before = if share.course == self.id { share.counted } else { Tally::default() };
        let total = &mut self.total;
        total.waiting = total.waiting + present.waiting - before.waiting;
        total.waiting_bytes = total.waiting_bytes + present.waiting_bytes - before.waiting_bytes;
        total.owed = total.owed + present.owed - before.owed;
        total.out = total.out + present.out - before.out;
        if present.out < before.out {
            self.full_since = None;
        }
        if let Some(member) = self.members.get_mut(key) {
            member.waiting_bytes = present.waiting_bytes;
        }
        Share { course: self.id, counted: present }
    }
}

/// The flow's waiting packets join those that go to its mobile node.
pub(super) fn join(cx: &mut Context<'_>, flow: &mut Flow, rules: &Rules) {
    let key = flow.key;
    let mobile = key.mobile;
    let path = cx.paths.properties(mobile);
    let towards = cx.config.place.keeps();
    let stream = flow.stream_mut(towards);
    let measured = stream.replay.meter.rate().map_or(0, DataRate::bits_per_second);
    // What was measured by the path that was left has its queue in it.
    let expected = path.round_trip.or(stream.round_trip.min(Some(LEAST_TIMEOUT))).unwrap_or(LEAST_TIMEOUT);
    let largest = stream.kept.iter().map(|kept| kept.size).max().unwrap_or(0);
    let replays = &mut *cx.replays;
    let given = rate_of(cx.config.place, &path);
    let course = replays.courses.entry(mobile).or_insert_with(|| {
        replays.begun += 1;
        Course {
            id: replays.begun,
            given,
            measured: 0,
            probe: RateProbe::new(0),
            expected,
            sample: None,
            took: None,
            heard: false,
            is_burst: rules.is_burst(),
            turns: VecDeque::new(),
            members: BTreeMap::new(),
            total: Tally::default(),
            largest: 0,
            overhead: overhead(mobile),
            next_at: cx.now,
            following_since: None,
            full_since: None,
            was_full: false,
            acks_in_sight: true,
        }
    });
    course.largest = course.largest.max(largest);
    course.expected = course.expected.max(expected);
    if course.members.insert(key, Member::default()).is_none() {
        course.turns.push_back(key);
    }
    if stream.replay.share.course != course.id {
        course.measured = course.measured.saturating_add(measured);
    }
    course.probe.guess(course.given.map_or(course.measured, DataRate::bits_per_second));
    course.following_since = None;
    settle(cx, flow);
}

/// Brings the sums of the flow's course up to date.
pub(super) fn settle(cx: &mut Context<'_>, flow: &mut Flow) {
    let key = flow.key;
    let Some(course) = cx.replays.course(key.mobile) else { return };
    let stream = flow.stream_mut(cx.config.place.keeps());
    if let Some(arrived) = stream.replay.arrived.take() {
        course.note_arrival(cx.now, &arrived);
    }
    if core::mem::take(&mut stream.replay.saw_loss) {
        course.probe.lost(cx.now);
    }
    let mut tally = stream.kept.tally();
    if !stream.has_visible_acks() {
        tally.out = 0;
    }
    if let Some(took) = course.took {
        stream.replay.grace = 2 * took + DELAYED_ACK;
    }
    stream.replay.share = course.count(&key, &stream.replay.share, tally);
    if course.total.owed == 0 && course.following_since.is_none() {
        course.following_since = Some(cx.now);
    }
}

/// It is the flow's turn.
pub(crate) fn take_turn(cx: &mut Context<'_>, flow: &mut Flow) {
    let key = flow.key;
    let Some(course) = cx.replays.course(key.mobile) else { return };
    let stream = flow.stream_mut(cx.config.place.keeps());
    let member = course.members.entry(key).or_default();
    let Some(size) = stream.kept.next_waiting().map(|kept| kept.size) else {
        course.members.remove(&key);
        course.turns.pop_front();
        super::finished(cx, flow);
        return;
    };
    if u32::from(size) > member.deficit {
        member.deficit += QUANTUM;
        course.turns.rotate_left(1);
        return;
    }
    member.deficit -= u32::from(size);
    let cost = course.cost(cx.now, size);
    course.next_at = course.next_at.max(cx.now.saturating_sub(LATE)) + cost;
    if let Some(kept) = stream.kept.send_next(cx.now) {
        cx.outbox.release_copy(&kept, None);
        note_release(cx, flow, &kept);
    }
    settle(cx, flow);
}

fn note_release(cx: &mut Context<'_>, flow: &mut Flow, kept: &Kept) {
    let replay = &mut flow.stream_mut(cx.config.place.keeps()).replay;
    replay.released.0 += 1;
    replay.released.1 += u64::from(kept.size);
    replay.last_release = Some(cx.now);
    if kept.whereabouts == Whereabouts::Owed {
        cx.counters.replayed += 1;
        cx.counters.replayed_bytes += u64::from(kept.size);
    }
}
