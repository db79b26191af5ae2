//! How fast what waits is sent on: one pace for all flows that share a path.
//!
//! What waits goes **at the path's rate, oldest first, the flows of a mobile node in turn** (deficit round robin, Shreedhar and
//! Varghese 1995). A burst would gain nothing, for the slowest link serialises at that rate in any case; but it would need a
//! queue there as large as itself, and put itself in front of signalling and of other flows. The first packet goes at once.
//!
//! - *As far as acknowledgements are in sight*, they say how much the path holds and how fast it is ([`path_window`]). No more is released
//!   and unacknowledged than that and a few packets, so that no queue at the link overflows, however short it is.
//! - *Until they have said something* the pace is the rate that somebody has said; if nobody has, the one at which *these flows were measured
//!   before the handover*; and if they have just begun, there is none, for there is not more than their first windows.
//! - *Few packets* need no pace: ten, an initial window (RFC 6928), if the path holds them.
//!
//! **Behind what was owed** the sender's surplus waits: today's senders undo their timeout, and take back a window that was right for
//! the path that was left. On a slower one all of the surplus would go to the link's queue when the replay is over, and be lost in one piece: of
//! 400 handovers drawn by chance most that did worse with a replay than without did so for that. So the window and the pace stay for
//! as long as something waits, and ten round trips more, in which a sender may still be as fast as on the path that was left (BBR after a pause).
//! Where [`crate::WindowClamp`] is used the advertised window follows: a sender is not asked for more than keeps the path busy
//! ([`Courses::takes`]), and what waits gets less without a loss.
//!
//! Where acknowledgements are out of sight, what came behind what was owed follows ever faster: the pace rises by the path's rate every round
//! trip. So a replay ends however wrong the rate was that it was told. Where nobody has said it, what is owed goes ever faster, too, for the path
//! that was left may have had a hundredth of the new one's rate.

mod path_window;

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;
use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::FlowKey;
use crate::keeping::Tally;
use path_window::{PathWindow, Seen};

pub(crate) use path_window::Arrived;

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
/// A replay's pace and window stay for so many round trips after nothing waits any longer: so long does BBR remember the rate of the path
/// that was left (draft-cardwell-iccrg-bbr-congestion-control, section 4.1.2).
const LINGERS: u32 = 10;
/// Where a round trip is not known: the least timeout of today's senders (Linux).
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// A host's timer may be so late; the pace makes up for it.
const LATE: Duration = Duration::from_millis(5);
/// Without acknowledgements for this long they are not in sight, whatever was seen before (RFC 6298: an old sender's least
/// timeout).
const NO_ACKS: Duration = Duration::from_secs(1);

/// The replays under way, at most one a mobile node.
#[derive(Debug, Default)]
pub(crate) struct Courses {
    courses: BTreeMap<IpAddr, Course>,
    begun: u64,
}

/// A replay to one mobile node, by one path.
#[derive(Debug)]
pub(crate) struct Course {
    id: u64,
    begun_at: Instant,
    /// Rate of the path, as somebody has said.
    given: Option<DataRate>,
    /// Sum of the rates at which its flows were delivered before, bit/s.
    measured: u64,
    /// What the path takes, as it shows itself.
    path: PathWindow,
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
    /// Since when nothing waits any longer.
    idle_since: Option<Instant>,
    /// Since when the window is full, and nothing was acknowledged.
    full_since: Option<Instant>,
    /// The window was full when it was last looked at.
    was_full: bool,
    /// What was out has been given up once since something was last acknowledged.
    gave_up: bool,
    /// Since when acknowledgements are out of sight.
    blind_since: Option<Instant>,
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

/// A flow with which a course begins, or which takes part in it from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    /// Rate of the path, as somebody has said.
    pub(crate) given: Option<DataRate>,
    /// Round trip of the path, as somebody has said.
    pub(crate) round_trip: Option<Duration>,
    /// What it takes for an acknowledgement to come, as far as that is known.
    pub(crate) expected: Duration,
    /// The rate at which the flow was delivered before, bit/s.
    pub(crate) measured: u64,
    /// The path takes what it was measured to take before.
    pub(crate) is_as_before: bool,
    /// All is sent at once.
    pub(crate) is_burst: bool,
    /// Bytes of the largest packet of the flow.
    pub(crate) largest: u16,
}

/// What becomes of a flow's turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// Its next packet goes.
    Sends {
        /// Nothing has waited for the mobile node before.
        is_idle: bool,
    },
    /// Another flow has its turn first.
    Passes,
    /// It has nothing to send, and no turn any longer.
    Ends {
        /// As in [`Self::Sends`].
        is_idle: bool,
    },
}

impl Courses {
    /// A flow's waiting packets join those that go to its mobile node.
    pub(crate) fn join(&mut self, now: Instant, key: FlowKey, share: &Share, joining: &Joining) {
        let Joining { given, round_trip, expected, measured, is_as_before, is_burst, largest } = *joining;
        let begun = &mut self.begun;
        let course = self.courses.entry(key.mobile).or_insert_with(|| {
            *begun += 1;
            Course {
                id: *begun,
                begun_at: now,
                given,
                measured: 0,
                path: PathWindow::new(round_trip.unwrap_or_default()),
                heard: false,
                is_burst,
                turns: VecDeque::new(),
                members: BTreeMap::new(),
                total: Tally::default(),
                largest: 0,
                overhead: overhead(key.mobile),
                next_at: now,
                following_since: None,
                idle_since: None,
                full_since: None,
                was_full: false,
                gave_up: false,
                blind_since: None,
            }
        });
        course.largest = course.largest.max(largest);
        if course.members.insert(key, Member::default()).is_none() {
            course.turns.push_back(key);
        }
        if share.course != course.id {
            course.measured = course.measured.saturating_add(measured);
        }
        let is_told = course.given.is_some() || (is_as_before && course.measured > 0);
        let guess = course.given.map_or(course.measured, DataRate::bits_per_second);
        let packet = course.packet();
        course.path.guess(guess, is_told, expected, packet);
        course.following_since = None;
    }

    pub(crate) fn is_running(&self, mobile: IpAddr) -> bool {
        !self.courses.is_empty() && self.courses.contains_key(&mobile)
    }

    /// The path is another one, or lost: the present course ends. Flows with something to send begin a new one.
    pub(crate) fn end(&mut self, mobile: IpAddr) {
        self.courses.remove(&mobile);
    }

    /// The one to a mobile node.
    pub(crate) fn course(&mut self, mobile: IpAddr) -> Option<&mut Course> {
        if self.courses.is_empty() { None } else { self.courses.get_mut(&mobile) }
    }

    /// Whether a packet that arrives now has to go at the pace of a replay that its flow took part in.
    pub(crate) fn lingers(&mut self, now: Instant, mobile: IpAddr, share: &Share) -> bool {
        self.course(mobile).is_some_and(|course| course.id == share.course && course.lingers(now))
    }

    /// Whether a flow has its turn.
    pub(crate) fn has_turn(&mut self, key: &FlowKey) -> bool {
        self.course(key.mobile).is_some_and(|course| course.members.contains_key(key))
    }

    /// A flow is forgotten, or what is stored for it.
    pub(crate) fn leave(&mut self, key: &FlowKey, share: &mut Share) {
        let Some(course) = self.course(key.mobile) else { return };
        course.count(key, share, Tally::default());
        course.members.remove(key);
        course.turns.retain(|member| member != key);
    }

    /// Whether there is room for another packet behind what waits, which may wait for so long.
    pub(crate) fn has_room(&mut self, key: &FlowKey, size: u16, longest_wait: Option<Duration>) -> bool {
        let Some(course) = self.course(key.mobile) else { return true };
        let Some(bound) = course.bound(longest_wait) else { return true };
        let own = course.members.get(key).map_or(0, |member| member.waiting_bytes);
        let fair = bound / course.members.len().max(1) as u64;
        course.total.waiting_bytes + u64::from(size) <= bound || own + u64::from(size) <= fair
    }

    /// The flow that has to give up waiting packets, and how many bytes may stay.
    pub(crate) fn over_bound(
        &mut self,
        mobile: IpAddr,
        longest_wait: Option<Duration>,
    ) -> Option<(FlowKey, u64)> {
        let course = self.course(mobile)?;
        let bound = course.bound(longest_wait)?;
        let excess = course.total.waiting_bytes.checked_sub(bound).filter(|excess| *excess > 0)?;
        let fair = bound / course.members.len().max(1) as u64;
        let (key, member) = course.members.iter().max_by_key(|(_, member)| member.waiting_bytes)?;
        Some((*key, fair.max(member.waiting_bytes.saturating_sub(excess))))
    }

    /// What of a flow may be under way to the mobile node and wait here, bytes, so that no more waits than keeps the path busy; `behind` is
    /// the round trip between here and the sender. `None`: the flow takes part in no replay that knows its path.
    pub(crate) fn takes(&self, mobile: IpAddr, share: &Share, behind: Duration) -> Option<u64> {
        let course = self.courses.get(&mobile).filter(|course| course.id == share.course)?;
        if !course.has_window() || !course.path.is_measured() {
            return None;
        }
        let window = course.path.window();
        let way = u128::from(window) * behind.as_nanos() / course.path.round_trip().as_nanos().max(1);
        let takes = window + window / 2 + u64::try_from(way).unwrap_or(u64::MAX);
        Some(takes.saturating_add(FEW as u64 * course.packet()))
    }

    /// Whether a flow takes part in a replay that does not know its path yet, but will.
    pub(crate) fn is_measuring(&self, mobile: IpAddr, share: &Share) -> bool {
        let course = self.courses.get(&mobile).filter(|course| course.id == share.course);
        course.is_some_and(|course| course.blind_since.is_none() && !course.path.is_measured())
    }

    /// The window is full of what was released until the instant that is returned, and nothing has been acknowledged for so long that
    /// it has to be taken for lost, for the first time since something was. It may be called as often as one likes.
    pub(crate) fn gives_up(&mut self, now: Instant, mobile: IpAddr) -> Option<Instant> {
        let course = self.course(mobile).filter(|course| course.heard && !course.gave_up)?;
        let since = course.full_since.filter(|since| now >= *since + course.patience_for_acks())?;
        course.gave_up = true;
        course.full_since = None;
        Some(since)
    }

    /// The flow that comes after `before` of those with packets that wait; `None` before the first one.
    pub(crate) fn member_after(&mut self, mobile: IpAddr, before: Option<FlowKey>) -> Option<FlowKey> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = before.map_or(Unbounded, Excluded);
        self.course(mobile)?.members.range((from, Unbounded)).next().map(|(key, _)| *key)
    }

    /// Whose turn it is, if something may be sent now.
    pub(crate) fn next_flow(&mut self, now: Instant, mobile: IpAddr) -> Option<FlowKey> {
        let course = self.course(mobile)?;
        let Some(key) = course.turns.front().copied() else {
            course.idle_since.get_or_insert(now);
            if !course.lingers(now) {
                self.courses.remove(&mobile);
            }
            return None;
        };
        course.may_send(now).then_some(key)
    }

    /// When to look again.
    pub(crate) fn wake_at(&mut self, mobile: IpAddr) -> Option<Instant> {
        let course = self.course(mobile)?;
        if course.turns.is_empty() {
            return course.lingers_until();
        }
        Some(match course.full_since {
            Some(since) => since + course.patience_for_acks(),
            None => course.next_at,
        })
    }
}

impl Course {
    /// Bytes that may wait for the mobile node in all, where they may wait for so long, or only as far as the path holds them;
    /// `None`: there is no such bound.
    fn bound(&self, longest_wait: Option<Duration>) -> Option<u64> {
        let rate = self.rate()?;
        let pipe = self.path.window();
        match longest_wait {
            Some(wait) => Some((rate.bits_in(wait) / 8).max(pipe)),
            None => Some(pipe),
        }
    }

    fn rate(&self) -> Option<DataRate> {
        self.path.pace().filter(|_| !self.is_burst)
    }

    /// Bytes of a packet on the path.
    fn packet(&self) -> u64 {
        u64::from(self.largest) + self.overhead
    }

    /// Until when the pace holds though nothing waits.
    fn lingers_until(&self) -> Option<Instant> {
        let since = self.idle_since.filter(|_| self.has_window() && self.rate().is_some())?;
        Some(since + LINGERS * self.path.took()?)
    }

    fn lingers(&self, now: Instant) -> bool {
        self.lingers_until().is_some_and(|until| now < until)
    }

    /// Released packets have arrived.
    pub(crate) fn note_arrival(&mut self, now: Instant, arrived: &Arrived) {
        self.blind_since = None;
        self.gave_up = false;
        if !core::mem::replace(&mut self.heard, true) {
            // It may be the last one that the old path lost, repeated by the other end.
            return;
        }
        let Tally { waiting, out, .. } = self.total;
        self.idle_since = if waiting > 0 { None } else { self.idle_since.or(Some(now)) };
        let seen = Seen { out, waits: waiting > 0, packet: self.packet() };
        let pace = self.rate();
        self.path.arrived(now, arrived, &seen);
        if self.rate() > pace {
            // What left before is not to be paid for at the pace of then.
            self.next_at = self.next_at.min(now + LATE);
        }
    }

    /// Something released was lost.
    pub(crate) fn note_loss(&mut self, now: Instant) {
        let packet = self.packet();
        self.path.lost(now, packet);
    }

    /// The time that the latest packet took to be acknowledged.
    pub(crate) const fn took(&self) -> Option<Duration> {
        self.path.took()
    }

    /// The shortest time that packets took to be acknowledged.
    pub(crate) fn fastest(&self) -> Option<Duration> {
        self.path.is_measured().then(|| self.path.round_trip())
    }

    fn patience_for_acks(&self) -> Duration {
        (2 * self.path.round_trip()).max(if self.path.is_measured() { LEAST_TIMEOUT } else { NO_ACKS })
    }

    /// Whether acknowledgements say how much is under way.
    fn has_window(&self) -> bool {
        self.blind_since.is_none() && !self.path.gives_way() && (self.following_since.is_none() || self.heard)
    }

    fn may_send(&mut self, now: Instant) -> bool {
        if self.rate().is_none() {
            return true;
        }
        let Tally { waiting, waiting_bytes, out, .. } = self.total;
        let is_first = self.following_since.is_none() && self.idle_since.is_none();
        let holds = match self.given {
            Some(rate) => rate.bits_in(self.path.round_trip()) / 8,
            None if self.heard => self.path.window(),
            None => u64::MAX,
        };
        if is_first && waiting <= FEW && waiting_bytes + out <= holds {
            return true;
        }
        if self.next_at > now {
            return false;
        }
        if self.has_window() && out > 0 && out + u64::from(self.largest) > self.path.window() {
            let since = *self.full_since.get_or_insert(now);
            self.was_full = true;
            if now < since + self.patience_for_acks() {
                return false;
            }
            self.blind_since = Some(now);
        }
        self.full_since = None;
        if core::mem::take(&mut self.was_full) {
            // No credit for the time in which the window was full.
            self.next_at = now;
        }
        true
    }

    /// Since when something should have been acknowledged, where nothing has been and nobody has said the rate.
    fn unheard_since(&self, now: Instant) -> Option<Instant> {
        let since = self.begun_at + self.path.round_trip();
        (!self.heard && self.given.is_none() && since <= now).then_some(since)
    }

    /// How long the path is taken up by a packet.
    fn cost(&self, now: Instant, size: u16) -> Duration {
        let bits = (u64::from(size) + self.overhead) * 8;
        let Some(alone) = self.rate().and_then(|rate| rate.time_for_bits(bits)) else {
            return Duration::ZERO;
        };
        let follows = self.following_since.filter(|_| !self.has_window());
        let follows = follows.map(|since| since.max(self.blind_since.unwrap_or(since)));
        let Some(since) = follows.into_iter().chain(self.unheard_since(now)).min() else { return alone };
        let round_trip = self.path.round_trip().as_nanos().max(1);
        let rise = round_trip + now.saturating_duration_since(since).as_nanos();
        Duration::from_nanos(u64::try_from(alone.as_nanos() * round_trip / rise).unwrap_or(u64::MAX))
    }

    /// Takes in what has become of a flow's packets.
    pub(crate) fn settle(&mut self, now: Instant, key: &FlowKey, share: &mut Share, present: Tally) {
        self.count(key, share, present);
        if self.total.owed == 0 && self.following_since.is_none() {
            self.following_since = Some(now);
        }
    }

    fn count(&mut self, key: &FlowKey, share: &mut Share, present: Tally) {
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
        *share = Share { course: self.id, counted: present };
    }

    /// It is a flow's turn, whose next waiting packet has this size; `None`: none waits.
    pub(crate) fn turn(&mut self, now: Instant, key: FlowKey, next: Option<u16>) -> Turn {
        let member = self.members.entry(key).or_default();
        let Some(size) = next else {
            self.members.remove(&key);
            self.turns.pop_front();
            return Turn::Ends { is_idle: self.idle_since.is_some() };
        };
        if u32::from(size) > member.deficit {
            member.deficit += QUANTUM;
            self.turns.rotate_left(1);
            return Turn::Passes;
        }
        member.deficit -= u32::from(size);
        self.next_at = self.next_at.max(now.saturating_sub(LATE)) + self.cost(now, size);
        Turn::Sends { is_idle: self.idle_since.is_some() }
    }
}
