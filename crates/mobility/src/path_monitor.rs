//! Whether a path works and how well, from what passes there and from probes where nothing does.
//!
//! A path is what leads through one interface of a mobile node, from one address of its own to the home agent. It is found
//! dead from silence (the ideas are those of RFC 5880): something was sent, nothing at all came for longer than usual, and
//! [`DEATH`] probes that had the time to be answered were not. The round trip is estimated as in RFC 6298 section 2; each
//! probe has its own number, so that no sample is ambiguous.
//!
//! False alarms: with a loss of 5 % each way a probe stays without answer with probability 1 - 0.95^2 = 0.0975, and all of
//! [`DEATH`] do with 8.4e-8. A doubt needs a pause of 100 ms at least in what comes, and the next one another pause: 18,000 in 30
//! minutes at the very most, whatever the traffic, and so less than one false alarm in 600 such half hours. What is late by
//! jitter is late by less than four of its mean deviations, or comes before the last of the probes is given up.
//!
//! Cost: a probe and its answer take 108 bytes each with the headers of IPv4 and UDP (124 with HMAC-SHA256), and 128 bytes with the header
//! of IPv6 (136). A path on which nothing happens is probed once in [`IDLE`], which makes 9 bytes a second of both at most, and wakes the
//! host as often. Where something happens, doubts and measurements together take at most 1 % of the traffic and [`BASE_RATE`] bytes a second, with
//! [`RESERVE`] bytes saved up; timers fire once in 100 ms at most. A path that went silent in use costs 500 B/s for 10 s.
//!
//! What cannot be told from death: a sender that nobody answers and that fills the queue before a slow link by more than half a
//! second, for the probes wait behind it. What is not found by silence: a path that carries one direction only, as long as
//! packets come by it; those of TCP cease by themselves soon.

use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::PathCounts;

use crate::PathFault;
use crate::passage::Passage;
use crate::path_watch::PathAddress;
use crate::round_trip::smoothed;

/// Unanswered probes by which a path in use is dead.
pub(crate) const DEATH: u32 = 7;
/// Unanswered probes by which a path that is not in use counts as silent: nothing hurries there.
const IDLE_DEATH: u32 = 5;
/// Between probes where nothing happens.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// Between probes where nobody answers any, although registrations are answered: the home agent does not know them.
const NOT_UNDERSTOOD: Duration = Duration::from_secs(600);
/// Unanswered probes by which that is so.
const NOT_UNDERSTOOD_AFTER: u32 = 8;
/// Probes of a new path in quick succession, so that its round trip is known when that matters.
const WARM_UP: u32 = 5;
const WARM_UP_INTERVAL: Duration = Duration::from_millis(150);
/// The shortest silence that gives rise to a doubt, and that a probe is given.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest that one probe is waited for.
const LONGEST: Duration = Duration::from_secs(3);
/// The round trip of a path on which nothing was answered yet.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Between probes while a path is in doubt, at least.
const DOUBT_INTERVAL: Duration = Duration::from_millis(60);
/// Between measurements while much passes, at least.
const MEASURE: Duration = Duration::from_secs(2);
/// Bytes that have to have passed for one.
const MEASURE_BYTES: u64 = 20_000;
/// After so long without an arrival, at least, one that was receiving asks whether there is nothing any more.
const ARRIVALS_ENDED: Duration = Duration::from_millis(200);
/// Packets that come and go do so at least this often; what they take is no measure for others.
const TALK: Duration = Duration::from_secs(1);
/// A wait for an answer that is not usual any more.
const FORGET_WAITS: Duration = Duration::from_secs(10);
/// The longest usual wait that is believed: on 9.6 kbit/s two packets of 1500 bytes take 2.5 s.
const LONGEST_WAIT: Duration = Duration::from_millis(2500);

/// Bytes a second that probes may always take.
const BASE_RATE: u64 = 40;
/// Bytes that probes may have saved up.
const RESERVE: i64 = 16_000;
/// One byte in so many that pass may be a probe's.
const SHARE: u64 = 100;

/// Probes that are remembered. Once a path is in doubt for good they are sent four to a timeout.
const REMEMBERED: usize = 16;
/// Whether packets get through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Nothing is known: it is not watched, or nothing has come through it yet.
    #[default]
    Unknown,
    /// What was sent was answered.
    Alive,
    /// Something was sent, and nothing has come for longer than usual.
    Suspect,
    /// Nothing gets through.
    Silent,
}

impl PathState {
    /// The name in traces, status and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Alive => "alive",
            Self::Suspect => "suspect",
            Self::Silent => "silent",
        }
    }
}

/// What is known of one direction of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathFlow {
    /// Packets lost, of a thousand: a moving average.
    pub loss_permille: Option<u16>,
    /// What has lately got through while something passed; not what could.
    pub delivered: Option<DataRate>,
}

/// What is known of the path through an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathQuality {
    /// Whether packets get through.
    pub state: PathState,
    /// The smoothed round-trip time to the home agent, of probes.
    pub round_trip: Option<Duration>,
    /// Its mean deviation.
    pub variation: Option<Duration>,
    /// From the mobile node.
    pub uplink: PathFlow,
    /// Towards the mobile node.
    pub downlink: PathFlow,
    /// When something came last.
    pub last_received: Option<Instant>,
    /// Probes sent.
    pub probes_sent: u64,
    /// Answers to them.
    pub probes_answered: u64,
    /// The least round-trip time of late: without the queues that come and go.
    pub least_round_trip: Option<Duration>,
    /// What is wrong with it, in use.
    pub fault: Option<PathFault>,
    /// Whether it was left as bad, and is not used before it is good again unless nothing else works.
    pub avoided: bool,
}

/// A probe that may still be answered.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sequence: u32,
    nonce: u64,
    sent_at: Instant,
    counts: PathCounts,
}

/// What both ends had counted at a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) asked_at: Instant,
    pub(crate) answered_at: Instant,
    /// Ours: what was sent when it was asked, what was received when the answer came.
    pub(crate) own: PathCounts,
    pub(crate) peer: PathCounts,
}

/// A probe that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) sequence: u32,
    pub(crate) at: Instant,
    pub(crate) round_trip: Duration,
    /// `None` where the other end does not count.
    pub(crate) mark: Option<Mark>,
}

/// What a monitor wants done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// A probe.
    pub(crate) probe: bool,
    /// The path has just been found silent.
    pub(crate) died: bool,
    /// Something has come through a path that was silent.
    pub(crate) returned: bool,
}

/// Watches the path through one interface.
#[derive(Clone, Debug)]
pub(crate) struct PathMonitor<A> {
    /// The address that the path begins with; `None`: not watched.
    care_of: Option<A>,
    in_use: bool,
    state: PathState,
    /// Smoothed round trip and its variation.
    rtt: Option<(Duration, Duration)>,
    /// The address that they are about: it may come back.
    rtt_of: Option<A>,
    counts: PathCounts,
    last_received: Option<Instant>,
    last_traffic: Option<Instant>,
    /// When the first thing was sent that nothing has followed.
    unanswered_since: Option<Instant>,
    /// The same for packets alone.
    traffic_since: Option<Instant>,
    usual_wait: Option<Duration>,
    /// Between arrivals.
    usual_gap: Duration,
    outstanding: [Option<Outstanding>; REMEMBERED],
    sequence: u32,
    last_probe: Option<Instant>,
    last_answer: Option<Instant>,
    /// Probes since anything came.
    unanswered: u32,
    /// Probes since one was answered.
    missing: u32,
    warm_up: u32,
    /// When the probes so far have had their time.
    verdict_at: Option<Instant>,
    doubt_since: Option<Instant>,
    silent_since: Option<Instant>,
    returned: bool,
    /// Until when it is probed more often, because it was silent.
    probation_until: Instant,
    /// When there is something to do, or earlier.
    armed: Instant,
    /// Bytes that probes may take; below zero when doubts have taken more.
    tokens: i64,
    /// When the tokens were counted, and the bytes that had passed by then.
    counted: (Instant, u64),
    /// The bytes that had passed at the last probe.
    bytes_at_probe: u64,
    mark: Option<Mark>,
    uplink: PathFlow,
    downlink: PathFlow,
    probes_sent: u64,
    probes_answered: u64,
}

impl<A> Default for PathMonitor<A> {
    fn default() -> Self {
        Self {
            care_of: None,
            in_use: false,
            state: PathState::Unknown,
            rtt: None,
            rtt_of: None,
            counts: PathCounts::default(),
            last_received: None,
            last_traffic: None,
            unanswered_since: None,
            traffic_since: None,
            usual_wait: None,
            usual_gap: Duration::ZERO,
            outstanding: [None; REMEMBERED],
            sequence: 0,
            last_probe: None,
            last_answer: None,
            unanswered: 0,
            missing: 0,
            warm_up: WARM_UP,
            verdict_at: None,
            doubt_since: None,
            silent_since: None,
            returned: false,
            probation_until: Instant::ZERO,
            armed: Instant::MAX,
            tokens: RESERVE / 4,
            counted: (Instant::ZERO, 0),
            bytes_at_probe: 0,
            mark: None,
            uplink: PathFlow::default(),
            downlink: PathFlow::default(),
            probes_sent: 0,
            probes_answered: 0,
        }
    }
}

impl<A: PathAddress> PathMonitor<A> {
    /// Has the path from `care_of` watched, or with `None` none. What was known of another one is forgotten.
    pub(crate) fn watch(&mut self, now: Instant, care_of: Option<A>, in_use: bool) {
        if self.care_of != care_of {
            *self = Self {
                care_of,
                in_use,
                rtt: self.rtt.filter(|_| care_of.is_none() || self.rtt_of == care_of),
                rtt_of: care_of.or(self.rtt_of),
                // A number never means two probes.
                sequence: self.sequence,
                probes_sent: self.probes_sent,
                probes_answered: self.probes_answered,
                armed: if care_of.is_some() { now } else { Instant::MAX },
                counted: (now, 0),
                ..Self::default()
            };
        } else if self.in_use != in_use {
            self.in_use = in_use;
            if self.state != PathState::Silent {
                self.settle();
            }
            self.usual_wait = None;
            self.bring_forward(now);
        }
    }

    /// The address it watches the path from.
    pub(crate) const fn care_of(&self) -> Option<A> {
        self.care_of
    }

    pub(crate) const fn state(&self) -> PathState {
        self.state
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.state == PathState::Silent
    }

    /// Since when it has been in doubt, or silent.
    pub(crate) const fn doubt_since(&self) -> Option<Instant> {
        self.doubt_since
    }

    /// Whether a probe was answered at `since` or later.
    pub(crate) fn answered_since(&self, since: Instant) -> bool {
        self.last_answer.is_some_and(|at| at >= since)
    }

    pub(crate) const fn last_received(&self) -> Option<Instant> {
        self.last_received
    }

    pub(crate) const fn counts(&self) -> PathCounts {
        self.counts
    }

    /// Probes since anything came.
    pub(crate) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Probes in a row that nobody has answered.
    pub(crate) const fn missing(&self) -> u32 {
        self.missing
    }

    pub(crate) fn quality(&self) -> PathQuality {
        PathQuality {
            state: self.state,
            round_trip: self.rtt.map(|(smoothed, _)| smoothed),
            variation: self.rtt.map(|(_, variation)| variation),
            uplink: self.uplink,
            downlink: self.downlink,
            last_received: self.last_received,
            probes_sent: self.probes_sent,
            probes_answered: self.probes_answered,
            ..PathQuality::default()
        }
    }

    /// When to call [`Self::poll`]; what is to be done then may have become needless.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.armed < Instant::MAX).then_some(self.armed)
    }

    /// Packets were put into the tunnel; whether the deadline was brought forward.
    pub(crate) fn note_sent(&mut self, now: Instant, packets: u32, bytes: u64) -> bool {
        self.counts.packets_sent = self.counts.packets_sent.wrapping_add(packets);
        self.counts.bytes_sent = self.counts.bytes_sent.wrapping_add(bytes);
        self.note_sent_beside(now, packets, bytes)
    }

    /// Packets were sent that the other end of the path does not count; whether the deadline was brought forward.
    pub(crate) fn note_sent_beside(&mut self, now: Instant, packets: u32, bytes: u64) -> bool {
        if bytes <= A::ACKNOWLEDGEMENT * u64::from(packets) {
            return false;
        }
        if self.traffic_since.is_none() {
            self.traffic_since = Some(now);
        }
        self.expect(now)
    }

    /// Packets were taken out of the tunnel; whether the deadline was brought forward.
    pub(crate) fn note_received(&mut self, now: Instant, packets: u32, bytes: u64) -> bool {
        self.counts.packets_received = self.counts.packets_received.wrapping_add(packets);
        self.counts.bytes_received = self.counts.bytes_received.wrapping_add(bytes);
        self.note_received_beside(now)
    }

    /// Packets have come that the other end of the path has not counted; whether the deadline was brought forward.
    pub(crate) fn note_received_beside(&mut self, now: Instant) -> bool {
        if let Some(since) = self.traffic_since.take() {
            self.learn_wait(now.saturating_duration_since(since));
        }
        if let Some(last) = self.last_traffic {
            let gap = now.saturating_duration_since(last).min(LONGEST_WAIT);
            self.usual_gap = longest_of_late(self.usual_gap, gap, 8);
        }
        self.last_traffic = Some(now);
        let returned = self.heard(now);
        let is_watched = self.in_use && self.care_of.is_some();
        returned || (is_watched && self.bring_forward(now + self.gap_that_ends()))
    }

    /// A request was sent that somebody should answer; whether the deadline was brought forward.
    pub(crate) fn expect(&mut self, now: Instant) -> bool {
        if self.unanswered_since.is_some() || self.care_of.is_none() || !self.in_use {
            return false;
        }
        self.unanswered_since = Some(now);
        self.bring_forward(now + self.patience(now))
    }

    /// Something came from the other end; whether the deadline was brought forward.
    pub(crate) fn heard(&mut self, now: Instant) -> bool {
        self.last_received = Some(now);
        if self.care_of.is_none() {
            return false;
        }
        if self.state == PathState::Silent {
            self.returned = true;
            return self.bring_forward(now);
        }
        self.settle();
        self.state = PathState::Alive;
        false
    }

    /// There is no doubt any longer.
    fn settle(&mut self) {
        if self.state == PathState::Suspect {
            self.state = PathState::Alive;
        }
        self.unanswered_since = None;
        self.unanswered = 0;
        self.verdict_at = None;
        self.doubt_since = None;
    }

    fn bring_forward(&mut self, at: Instant) -> bool {
        let is_earlier = at < self.armed;
        if is_earlier {
            self.armed = at;
        }
        is_earlier
    }

    fn passed(&self) -> u64 {
        self.counts.bytes_sent.wrapping_add(self.counts.bytes_received)
    }

    /// A packet was answered by another after `wait`. The longest of the latest counts.
    fn learn_wait(&mut self, wait: Duration) {
        let wait = wait.min(LONGEST_WAIT);
        self.usual_wait = Some(longest_of_late(self.usual_wait.unwrap_or_default(), wait, 4));
    }

    /// The usual wait, where packets still come and go.
    fn waits(&self, now: Instant) -> Option<Duration> {
        let usual = self.usual_wait?;
        let since = self.unanswered_since.unwrap_or(now);
        let last = self.last_traffic?;
        (since.saturating_duration_since(last) <= TALK.max(usual * 4)).then_some(usual)
    }

    /// How long an answer to a probe is waited for.
    fn timeout(&self, now: Instant) -> Duration {
        let Some((smoothed, variation)) = self.rtt else { return FIRST_TIMEOUT };
        let estimate = smoothed + (variation * 4).max(SHORTEST / 2);
        // Behind a slow link even what is quick on its own waits for a packet or two.
        estimate.max(self.waits(now).unwrap_or_default()).clamp(SHORTEST, LONGEST)
    }

    /// How long nothing may come after something was sent.
    fn patience(&self, now: Instant) -> Duration {
        match self.waits(now) {
            Some(usual) => (usual * 5 / 4).max(SHORTEST),
            None => self.timeout(now),
        }
    }

    /// Between probes while there is doubt.
    fn doubt_interval(&self, now: Instant) -> Duration {
        let smoothed = self.rtt.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
        // A slow link takes its time for a probe.
        let slow = (smoothed / 2).saturating_sub(SHORTEST);
        let interval = DOUBT_INTERVAL.max(slow).max(self.waits(now).unwrap_or_default() / 8);
        let interval = interval.min(FIRST_TIMEOUT);
        // Those that decide are sent; further ones see to it that an answer is not missed.
        if self.unanswered < DEATH { interval } else { interval.max(self.timeout(now) / 4) }
    }

    /// Between probes as things stand.
    fn interval(&self, now: Instant, understood: bool) -> Duration {
        let smoothed = self.rtt.map_or(Duration::ZERO, |(smoothed, _)| smoothed);
        match self.state {
            PathState::Unknown | PathState::Alive if self.warm_up > 0 => WARM_UP_INTERVAL.max(smoothed / 2),
            PathState::Suspect => self.doubt_interval(now),
            PathState::Silent => {
                let silent = now.saturating_duration_since(self.silent_since.unwrap_or(now)).as_secs();
                match (self.in_use, silent) {
                    (true, 0..10) => Duration::from_millis(200),
                    (true, 10..40) | (false, 0..10) => Duration::from_secs(1),
                    (true, _) | (false, 10..60) => Duration::from_secs(5),
                    (false, _) => IDLE,
                }
            }
            _ if !understood && self.missing >= NOT_UNDERSTOOD_AFTER => NOT_UNDERSTOOD,
            _ if !self.in_use && self.unanswered > 0 && understood => {
                Duration::from_secs(1).max(self.timeout(now))
            }
            _ if !self.in_use && now < self.probation_until => Duration::from_secs(1),
            _ => IDLE,
        }
    }

    /// Until `until` it is probed often, in use or not, before it is relied on again.
    pub(crate) fn put_on_probation(&mut self, now: Instant, until: Instant) {
        self.probation_until = until;
        self.bring_forward(now);
    }

    /// Counts what probes may take by now.
    fn count_tokens(&mut self, now: Instant) {
        let (at, bytes) = self.counted;
        let elapsed = u64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or(u64::MAX);
        let earned = elapsed.saturating_mul(BASE_RATE) / 1000 + self.passed().wrapping_sub(bytes) / SHARE;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(RESERVE);
            self.counted = (now, self.passed());
        }
    }

    fn affords(&mut self, now: Instant) -> bool {
        self.count_tokens(now);
        self.tokens >= A::PROBE_COST
    }

    /// Pays for a probe that is sent to find out how good a path is, this one or, on behalf of what passes here, another one, if
    /// that leaves enough for doubts.
    pub(crate) fn pay(&mut self, now: Instant) -> bool {
        self.count_tokens(now);
        let can = self.tokens >= A::PROBE_COST + RESERVE / 8;
        if can {
            self.tokens -= A::PROBE_COST;
        }
        can
    }

    /// Gives back the cost of a probe: somebody has paid for the next one already.
    pub(crate) fn credit(&mut self) {
        self.tokens = self.tokens.saturating_add(A::PROBE_COST).min(RESERVE);
    }

    /// When the last probe was sent.
    pub(crate) const fn last_probe(&self) -> Option<Instant> {
        self.last_probe
    }

    /// Whether a probe for another path's sake is worth sending now, and can be afforded: none was answered since `since`, and
    /// none is waited for. Who is `urgent` need not be able to afford it.
    pub(crate) fn should_vouch(&mut self, now: Instant, since: Instant, urgent: bool) -> bool {
        let waits = self.last_probe.is_some_and(|at| now < at + self.timeout(now));
        self.care_of.is_some() && !self.answered_since(since) && !waits && (urgent || self.affords(now))
    }

    /// What is due by `now`. `understood` says whether the home agent is known to answer probes.
    pub(crate) fn poll(&mut self, now: Instant, understood: bool) -> Due {
        let mut due = Due::default();
        if self.care_of.is_none() {
            self.armed = Instant::MAX;
            return due;
        }
        if self.armed > now {
            return due;
        }
        if core::mem::take(&mut self.returned) {
            due.returned = true;
            self.state = PathState::Alive;
            self.silent_since = None;
            self.settle();
        }
        if self.last_traffic.is_some_and(|at| now >= at + FORGET_WAITS) {
            self.usual_wait = None;
        }
        if self.state != PathState::Silent && self.verdict_at.is_some_and(|at| at <= now) && understood {
            self.state = PathState::Silent;
            self.silent_since = Some(now);
            self.doubt_since = self.doubt_since.or(Some(now));
            self.verdict_at = None;
            due.died = true;
        }
        let is_doubtful = |monitor: &Self| {
            let since = monitor.unanswered_since.filter(|_| monitor.in_use && understood)?;
            (since + monitor.patience(now) <= now).then_some(since)
        };
        if matches!(self.state, PathState::Unknown | PathState::Alive)
            && let Some(since) = is_doubtful(self)
        {
            if self.unanswered > 1 || self.affords(now) {
                self.state = PathState::Suspect;
                self.doubt_since = Some(since);
            } else {
                // Later, when it can be afforded.
                self.unanswered_since = Some(now);
            }
        }
        due.probe = self.probe_at(now, understood) <= now || self.measures(now, understood);
        let next = self.next(now, understood, due.probe);
        self.armed = next.max(now + Duration::from_millis(1));
        due
    }

    fn probe_at(&self, now: Instant, understood: bool) -> Instant {
        self.last_probe.map_or(now, |at| at + self.interval(now, understood))
    }

    /// Whether a probe is worth its cost because much passes, or because something did and nothing does any more.
    fn measures(&mut self, now: Instant, understood: bool) -> bool {
        if !self.in_use || self.state != PathState::Alive || !understood {
            return false;
        }
        let rested = self.last_probe.is_none_or(|at| now >= at + MEASURE);
        let much = self.passed().wrapping_sub(self.bytes_at_probe) >= MEASURE_BYTES;
        let ended = self.arrivals_ended().is_some_and(|at| at <= now);
        let worth = ((much && rested) || ended) && self.affords(now);
        let is_busy = much || self.usual_gap < ARRIVALS_ENDED / 2;
        if worth && ended && is_busy {
            // That is no pause as usual.
            self.state = PathState::Suspect;
            self.doubt_since = Some(now);
        }
        worth
    }

    /// How long after an arrival there is usually another one.
    fn gap_that_ends(&self) -> Duration {
        (self.usual_gap * 2).clamp(ARRIVALS_ENDED, TALK)
    }

    /// When arrivals count as ended, unless that was asked already.
    fn arrivals_ended(&self) -> Option<Instant> {
        // What comes at the same instant as a probe leaves does not answer it.
        let last = self.last_traffic.filter(|last| self.last_probe.is_none_or(|at| at <= *last))?;
        self.unanswered_since.is_none().then_some(last + self.gap_that_ends())
    }

    fn next(&self, now: Instant, understood: bool, probes: bool) -> Instant {
        let probe_at =
            if probes { now + self.interval(now, understood) } else { self.probe_at(now, understood) };
        let verdict = self.verdict_at.filter(|_| understood && self.state != PathState::Silent);
        let is_settled = matches!(self.state, PathState::Unknown | PathState::Alive);
        let watches = self.in_use && understood && is_settled;
        let doubt = self.unanswered_since.filter(|_| watches).map(|since| since + self.patience(now));
        let ended = self.arrivals_ended().filter(|_| watches && !probes);
        // At the latest when that can be afforded.
        let short = u64::try_from(A::PROBE_COST - self.tokens).unwrap_or(0);
        let ended = ended.map(|at| at.max(now + Duration::from_millis(short * 1000 / BASE_RATE)));
        [verdict, doubt, ended].into_iter().flatten().fold(probe_at, Instant::min)
    }

    /// A probe with this nonce is sent; returns its number.
    pub(crate) fn probe_sent(&mut self, now: Instant, nonce: u64) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        if let Some(place) = self.outstanding.get_mut(sequence as usize % REMEMBERED) {
            *place = Some(Outstanding { sequence, nonce, sent_at: now, counts: self.counts });
        }
        self.probes_sent = self.probes_sent.saturating_add(1);
        self.last_probe = Some(now);
        self.warm_up = self.warm_up.saturating_sub(1);
        self.count_tokens(now);
        self.tokens = self.tokens.saturating_sub(A::PROBE_COST).max(-RESERVE);
        self.bytes_at_probe = self.passed();
        self.missing = self.missing.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let enough = if self.in_use { DEATH } else { IDLE_DEATH };
        if self.unanswered == enough && self.state != PathState::Silent {
            self.verdict_at = Some(now + self.timeout(now));
            self.bring_forward(now + self.timeout(now));
        }
        self.expect(now);
        sequence
    }

    /// Whether such a probe is waited for.
    pub(crate) fn waits_for(&self, sequence: u32, nonce: u64) -> bool {
        let place = self.outstanding.get(sequence as usize % REMEMBERED).copied().flatten();
        place.is_some_and(|probe| probe.sequence == sequence && probe.nonce == nonce)
    }

    /// The answer to the probe with this number has come, and is genuine.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        sequence: u32,
        peer: Option<PathCounts>,
    ) -> Option<Answer> {
        let probe = self.outstanding.get_mut(sequence as usize % REMEMBERED).and_then(Option::take)?;
        let round_trip = now.saturating_duration_since(probe.sent_at);
        self.rtt = Some(smoothed(self.rtt, round_trip));
        if let Some((smoothed, _)) = self.rtt
            && let Some(usual) = self.usual_wait.filter(|usual| *usual > smoothed * 2)
            && self.traffic_since.is_some_and(|since| since <= probe.sent_at)
        {
            // Whoever does not answer packets, the path is not what takes so long.
            self.usual_wait = Some((usual / 2).max(smoothed));
        }
        let own = PathCounts {
            packets_sent: probe.counts.packets_sent,
            bytes_sent: probe.counts.bytes_sent,
            ..self.counts
        };
        let mark = peer.map(|peer| Mark { asked_at: probe.sent_at, answered_at: now, own, peer });
        if let Some(mark) = mark {
            self.measure(mark);
        }
        self.probes_answered = self.probes_answered.saturating_add(1);
        self.last_answer = Some(now);
        self.missing = 0;
        self.heard(now);
        Some(Answer { sequence, at: now, round_trip, mark })
    }

    /// What the counters of both ends tell since the last mark.
    fn measure(&mut self, mark: Mark) {
        let Some(last) = self.mark.filter(|last| last.asked_at < mark.asked_at) else {
            if self.mark.is_none() {
                self.mark = Some(mark);
            }
            return;
        };
        let up = Passage {
            put_in: mark.own.packets_sent.wrapping_sub(last.own.packets_sent),
            taken_out: mark.peer.packets_received.wrapping_sub(last.peer.packets_received),
            bytes: mark.peer.bytes_received.wrapping_sub(last.peer.bytes_received),
            span: mark.asked_at - last.asked_at,
        };
        let down = Passage {
            put_in: mark.peer.packets_sent.wrapping_sub(last.peer.packets_sent),
            taken_out: mark.own.packets_received.wrapping_sub(last.own.packets_received),
            bytes: mark.own.bytes_received.wrapping_sub(last.own.bytes_received),
            span: mark.answered_at.saturating_duration_since(last.answered_at),
        };
        let told = [up.enter(&mut self.uplink), down.enter(&mut self.downlink)];
        // Few packets are counted on until they are enough.
        if told.contains(&true) || up.span > IDLE {
            self.mark = Some(mark);
        }
    }
}

/// The longest of late: one that is shorter takes such a part of the difference off.
fn longest_of_late(usual: Duration, new: Duration, part: u32) -> Duration {
    if new < usual { usual - (usual - new) / part } else { new }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use super::*;

    const CARE_OF: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A path in use with a round trip of so many milliseconds.
    fn path(round_trip: u64) -> PathMonitor<Ipv4Addr> {
        path_from(CARE_OF, round_trip)
    }

    fn path_from<A: PathAddress>(care_of: A, round_trip: u64) -> PathMonitor<A> {
        let mut monitor = PathMonitor::default();
        monitor.watch(ms(0), Some(care_of), true);
        for n in 0..10 {
            let sequence = monitor.probe_sent(ms(1000 * n), n);
            monitor.answered(ms(1000 * n + round_trip), sequence, None);
        }
        monitor
    }

    /// Does what is due until the end, with nothing coming; when probes were sent, and when it was found dead.
    fn in_silence(monitor: &mut PathMonitor<Ipv4Addr>, until: Instant) -> (Vec<u64>, Option<u64>) {
        let (mut probes, mut died) = (Vec::new(), None);
        while let Some(at) = monitor.deadline().filter(|at| *at <= until) {
            let due = monitor.poll(at, true);
            let millis = at.as_nanos() / 1_000_000;
            if due.died {
                died = Some(millis);
                break;
            }
            if due.probe {
                probes.push(millis);
                monitor.probe_sent(at, 0);
            }
        }
        (probes, died)
    }

    #[test]
    fn seven_probes_that_had_their_time_decide() {
        for (round_trip, dead) in [(20, 20_100 + 360 + 100), (300, 20_350 + 6 * 60 + 350)] {
            let mut monitor = path(round_trip);
            monitor.poll(ms(19_999), true);
            monitor.note_sent(ms(20_000), 1, 1000);
            let (probes, died) = in_silence(&mut monitor, ms(30_000));
            assert!(probes.len() >= 7, "{probes:?}");
            assert!(
                died.is_some_and(|at| at.abs_diff(dead) <= 20),
                "{died:?} at {round_trip} ms: {probes:?}"
            );
            assert_eq!(monitor.state(), PathState::Silent);
        }
    }

    #[test]
    fn whatever_comes_ends_the_doubt() {
        let mut monitor = path(20);
        monitor.note_sent(ms(20_000), 1, 1000);
        assert_eq!(in_silence(&mut monitor, ms(20_400)).1, None);
        assert_eq!(monitor.state(), PathState::Suspect);
        assert!(!monitor.note_received(ms(20_401), 1, 1000), "no deadline comes forward");
        assert_eq!(monitor.state(), PathState::Alive);
        assert_eq!(monitor.doubt_since(), None);
    }

    #[test]
    fn what_comes_at_the_instant_of_a_probe_hides_no_end_of_arrivals() {
        let mut monitor = path(20);
        for n in 0..100 {
            monitor.note_received(ms(20_000 + n * 10), 1, 1000);
        }
        monitor.probe_sent(ms(21_000), 0);
        monitor.note_received(ms(21_000), 1, 1000);
        let (_, died) = in_silence(&mut monitor, ms(40_000));
        assert!(died.is_some_and(|at| at < 22_000), "{died:?}");
    }

    #[test]
    fn an_acknowledgement_waits_for_nothing() {
        let mut monitor = path(20);
        monitor.poll(ms(10_000), true);
        let before = monitor.deadline();
        assert!(!monitor.note_sent(ms(20_000), 3, 3 * 52));
        assert_eq!(monitor.deadline(), before);
        assert!(monitor.note_sent(ms(20_000), 1, 60), "a SYN does");
    }

    #[test]
    fn an_acknowledgement_is_longer_over_ipv6() {
        let mut monitor = path_from(CARE_OF.to_ipv6_mapped(), 20);
        monitor.poll(ms(10_000), true);
        assert!(!monitor.note_sent(ms(20_000), 3, 3 * 72));
        assert!(monitor.note_sent(ms(20_000), 1, 80), "a SYN asks for something");
    }

    #[test]
    fn the_deadline_comes_forward_for_the_first_packet_only() {
        let mut monitor = path(20);
        monitor.poll(ms(10_000), true);
        assert!(monitor.note_sent(ms(20_000), 1, 1000));
        for n in 0..100 {
            assert!(!monitor.note_sent(ms(20_000 + n), 1, 1000));
        }
        assert!(!monitor.note_received(ms(20_100), 1, 1000));
        assert!(!monitor.note_sent(ms(20_101), 1, 1000), "the old timer is put right when it fires");
    }

    #[test]
    fn without_a_home_agent_that_answers_probes_nothing_is_found_dead() {
        let mut monitor = PathMonitor::default();
        monitor.watch(ms(0), Some(CARE_OF), true);
        let mut probes = 0;
        for second in 0..3600 {
            let at = Instant::from_secs(second);
            monitor.note_sent(at, 1, 1000);
            if monitor.poll(at, false).probe {
                probes += 1;
                monitor.probe_sent(at, 0);
            }
            assert_ne!(monitor.state(), PathState::Silent);
        }
        assert!(probes < 20, "{probes}");
    }

    #[test]
    fn a_silent_path_is_probed_often_and_then_more_rarely() {
        let mut monitor = path(20);
        monitor.note_sent(ms(20_000), 1, 1000);
        let (_, died) = in_silence(&mut monitor, ms(30_000));
        let died = died.expect("dead");
        let (probes, _) = in_silence(&mut monitor, ms(died + 100_000));
        let within =
            |from: u64, to: u64| probes.iter().filter(|at| (died + from..died + to).contains(at)).count();
        assert!((48..=51).contains(&within(0, 10_000)), "{probes:?}");
        assert!((28..=31).contains(&within(10_000, 40_000)), "{probes:?}");
        assert!((11..=13).contains(&within(40_000, 100_000)), "{probes:?}");
        assert!(monitor.note_received(ms(died + 100_000), 1, 1000));
        assert!(monitor.poll(ms(died + 100_000), true).returned);
        assert_eq!(monitor.state(), PathState::Alive);
    }

    #[test]
    fn a_queue_that_is_gone_is_forgotten_soon() {
        let mut monitor = path(20);
        for n in 0..20 {
            let sequence = monitor.probe_sent(ms(20_000 + n * 2000), n);
            monitor.answered(ms(20_000 + n * 2000 + 1500), sequence, None);
        }
        assert!(monitor.quality().round_trip > Some(Duration::from_secs(1)));
        for n in 0..6 {
            let sequence = monitor.probe_sent(ms(70_000 + n * 2000), n);
            monitor.answered(ms(70_000 + n * 2000 + 20), sequence, None);
        }
        assert!(monitor.quality().round_trip < Some(Duration::from_millis(60)));
    }

    #[test]
    fn another_address_is_another_path_and_the_same_one_keeps_its_round_trip() {
        let mut monitor = path(20);
        let round_trip = monitor.quality().round_trip;
        monitor.watch(ms(20_000), None, true);
        assert_eq!((monitor.deadline(), monitor.state()), (None, PathState::Unknown));
        monitor.watch(ms(21_000), Some(CARE_OF), true);
        assert_eq!(monitor.quality().round_trip, round_trip);
        monitor.watch(ms(22_000), Some(Ipv4Addr::new(192, 0, 2, 8)), true);
        assert_eq!(monitor.quality().round_trip, None);
    }
}
