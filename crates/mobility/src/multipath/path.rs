//! One path of several, as the end that sends over it and hears of it knows it.
//!
//! Both ends run one [`Path`] each for every path. They tell each other what has come ([`PathFeedback`]): a message is a probe,
//! which is answered at once, or an answer. What is measured:
//!
//! - the round trip, from echoed times of sending (smoothed as in RFC 6298, least of late), of messages and of packets;
//! - the *transit* of the direction away from here: the other end's time of arrival less our time of sending. The clocks need not
//!   agree: the offset is the same on all paths of the same two hosts, so the transits of two paths can be compared, and so can
//!   two transits of one path. Its excess over the least of late is the queue;
//! - loss and delivered bytes, from the counts of both ends; apart from that, how much a path loses while no queue stands before it,
//!   which is what a source cannot help by being slower;
//! - the rate, as [`super::path_rate`] says.
//!
//! While packets come, the other end is told so four times in a round trip, asked or not.
//!
//! **Silence.** While something passes, or while a probe is unanswered, a probe leaves every [`Path::interval`]. The path is out
//! when nothing sent lately is confirmed for three of them, and for as much longer as what comes has taken longer since the last
//! confirmation: the next one is behind a queue that grows. A path that nothing passes on is probed once in [`Probing::idle`].
//! While packets flow both ends probe, so that of six messages at least one has to come through: with a loss of 5 % each way
//! that fails about once in 10^7.
//!
//! **Return.** A path that was out is relied on again after [`CONFIRMATIONS`] answers in a row, and after twice as many with each
//! time that it went out of late. Then, as over a path that was never used, so many bytes may be in flight as RFC 6928 has for an
//! initial window; each report that finds them used doubles that.

use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::shake::{PathEcho, PathFeedback, ShakeMessage};

use super::marks::Marks;
use super::path_id::PathId;
use super::path_losses::Losses;
use super::path_rate::PathRate;
use super::seen::Seen;
use super::wire_time::{is_before, micros, micros_of, span};
use crate::least::Least;
use crate::passage::Passage;
use crate::round_trip::smoothed;
use crate::{PathFlow, PathQuality, PathState};

/// Intervals without a confirmation after which a path is out.
pub const INTERVALS_TO_SILENCE: u32 = 3;
/// Answers in a row after which a path that was out is used again.
pub const CONFIRMATIONS: u32 = 3;
/// The most of them.
const MOST_CONFIRMATIONS: u32 = 48;
/// After so long without going out, a path is as good as one that never did.
const FORGIVEN: Duration = Duration::from_secs(600);
/// The round trip of a path on which nothing was answered yet (RFC 6298 section 2.1).
pub(super) const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Something passed so lately: the path is watched closely.
const BUSY: Duration = Duration::from_secs(1);
/// A path that was out is probed every [`Path::interval`] for so long, then more rarely.
const HOPE: Duration = Duration::from_secs(10);
/// The initial window of RFC 6928 section 2, bytes: ten segments.
const FIRST_ALLOWANCE: u64 = 10 * 1460;
/// Doublings after which a path needs no allowance any more: by then it has carried over a megabyte in a round trip.
const DOUBLINGS: u32 = 7;
/// The least queue that is told from none.
const LEAST_QUEUE: Duration = Duration::from_millis(5);
/// For how long the least transit and round trip count, at least: routes change.
const LEAST_OF_LATE: Duration = Duration::from_secs(20);
/// Between messages that nobody has asked for, at least.
const SHORTEST_REPORT: Duration = Duration::from_millis(10);
/// Between two reports that a rate is told from, at least.
pub(super) const REPORT_SPAN: Duration = Duration::from_millis(100);
/// Round trips without growth after which what is delivered before a queue is taken for all that the path carries (as BBR's start has it:
/// draft-ietf-ccwg-bbr, section 5.3.1.2).
const ROUNDS_TO_FULL: u32 = 3;
/// Headers below a message: IPv4 and UDP.
const MESSAGE_OVERHEAD: usize = 28;

/// How a path is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Between probes of a path that something passes on, at least.
    pub shortest: Duration,
    /// At most, unless messages would take more than their share of the rate then.
    pub longest: Duration,
    /// Between probes of a path that nothing passes on.
    pub idle: Duration,
    /// One byte in so many of what the path carries may be a probe's.
    pub share: u32,
}

impl Default for Probing {
    /// Between 100 and 300 ms, so that a path is out within 900 ms; a 32nd of the rate.
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(100),
            longest: Duration::from_millis(300),
            idle: Duration::from_secs(5),
            share: 32,
        }
    }
}

/// What is told of a path beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathConfig {
    /// What it is said to carry away from here: the maximum bandwidth of section 2.5 of the paper. What is measured counts more,
    /// but for the scheduler `DQ`.
    pub rate: Option<DataRate>,
    /// The order of cost: paths with a lower number are filled first.
    pub cost: u16,
    /// Its share where packets are dispersed by weight; 0 is none.
    pub weight: u32,
    /// How it is probed.
    pub probing: Probing,
}

/// What has become of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Nothing gets through; what is in flight there counts as lost.
    Out,
    /// It is used again.
    Back,
}

/// What a path is like, for who chooses among several. Times of transit are comparable between the paths of one tunnel only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathEstimate {
    /// The smoothed round trip.
    pub round_trip: Option<Duration>,
    /// Its mean deviation.
    pub variation: Option<Duration>,
    /// The least round trip of late.
    pub least_round_trip: Option<Duration>,
    /// The least transit of late, microseconds from any start.
    pub transit: Option<i64>,
    /// How far transits of successive packets are apart in the mean.
    pub transit_variation: Duration,
    /// What it is expected to carry.
    pub rate: Option<DataRate>,
    /// Whether that is a limit.
    pub is_limit: bool,
    /// Packets lost away from here, of a thousand.
    pub loss_permille: Option<u16>,
    /// Bytes that were sent and not reported.
    pub in_flight: u64,
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// What has come by the path.
#[derive(Clone, Copy, Debug, Default)]
struct Receipt {
    latest: Option<(u32, Instant)>,
    transit: u32,
    /// Sixteen times the mean variation, microseconds.
    variation: u64,
    highest: Option<u32>,
    seen: Seen,
    packets: u32,
    bytes: u64,
}

impl Receipt {
    /// Something came that was sent at `stamp`.
    fn stamped(&mut self, now: Instant, stamp: u32) {
        // What was overtaken tells nothing new.
        if self.latest.is_some_and(|(latest, _)| is_before(stamp, latest)) {
            return;
        }
        let transit = micros(now).wrapping_sub(stamp);
        if self.latest.is_some() {
            // RFC 3550 section 6.4.1.
            let apart = u64::from((transit.wrapping_sub(self.transit) as i32).unsigned_abs());
            self.variation = self.variation + apart - self.variation / 16;
        }
        (self.latest, self.transit) = (Some((stamp, now)), transit);
    }

    fn echo(&self, now: Instant) -> Option<PathEcho> {
        let (sent_at, came) = self.latest?;
        Some(PathEcho {
            sent_at,
            held: micros_of(now.saturating_duration_since(came)),
            transit: self.transit,
            variation: u32::try_from(self.variation / 16).unwrap_or(u32::MAX),
        })
    }
}

/// How far a path that is tried has come.
#[derive(Clone, Copy, Debug)]
struct Trial {
    allowance: u64,
    doublings: u32,
    /// All of it was in flight since the last report.
    was_used: bool,
}

impl Trial {
    const FIRST: Self = Self { allowance: FIRST_ALLOWANCE, doublings: 0, was_used: false };
}

/// One path.
#[derive(Clone, Debug)]
pub struct Path {
    id: PathId,
    config: PathConfig,
    state: PathState,
    /// `None`: what may be in flight is not limited.
    trial: Option<Trial>,
    // What is sent.
    /// The number of the first packet. It follows from the time, so that a path that is taken up anew does not begin with numbers that
    /// the other end has seen already.
    first: u32,
    packets_sent: u32,
    bytes_sent: u64,
    marks: Marks,
    /// When what was sent is predicted to have been transmitted.
    free_at: Instant,
    /// What the predictions were put right by in all, nanoseconds.
    corrected: i64,
    // What has come.
    receipt: Receipt,
    last_data: Option<Instant>,
    // Messages.
    last_probe: Option<Instant>,
    answer_due: bool,
    last_message: Option<Instant>,
    /// Something has come that no message told of yet.
    is_news: bool,
    unanswered: u32,
    probes_sent: u64,
    probes_answered: u64,
    /// Since when it is watched closely.
    watched_since: Option<Instant>,
    confirmed: Option<(u32, Instant)>,
    /// How long what came last had been on its way then, by the other end's clock.
    confirmed_in: u32,
    out_since: Option<Instant>,
    /// Its owner has said that it is out.
    is_told: bool,
    confirmations: u32,
    /// Times that it went out of late, and when last.
    outages: (u32, Instant),
    // What is known.
    rtt: Option<(Duration, Duration)>,
    least_rtt: Least<Duration>,
    /// The first transit, which others are told from, and the least from there.
    first_transit: Option<u32>,
    least_transit: Least<i64>,
    transit_variation: Duration,
    /// The shortest queue of the last one to two round trips: what jitter looks like is gone in between.
    standing_queue: Least<Duration>,
    flow: PathFlow,
    rate: PathRate,
    /// The rate that was last a quarter more than before, bit/s, and when.
    growth: (u64, Instant),
    losses: Losses,
    /// Packets put in and taken out that no loss was told from yet: too few.
    uncounted: (u32, u32),
    /// Bytes, and the time they took, that have come while a queue stood and that no rate was told from yet: too few.
    unrated: (u64, Duration),
    report: Option<PathFeedback>,
    /// Bytes sent with the highest number that was reported, and before.
    reported_bytes: u64,
    /// The highest number that had come when losses were last counted.
    counted: Option<u32>,
    /// It is back, and the other end's counts have what came while it was out: the next report tells no losses.
    is_recounted: bool,
}

impl Path {
    /// A path of which nothing is known but its configuration.
    #[must_use]
    pub fn new(now: Instant, id: PathId, config: PathConfig) -> Self {
        Self {
            id,
            config,
            state: PathState::Unknown,
            trial: Some(Trial::FIRST),
            first: micros(now),
            packets_sent: 0,
            bytes_sent: 0,
            marks: Marks::default(),
            free_at: now,
            corrected: 0,
            receipt: Receipt::default(),
            last_data: None,
            last_probe: None,
            answer_due: false,
            last_message: None,
            is_news: false,
            unanswered: 0,
            probes_sent: 0,
            probes_answered: 0,
            watched_since: None,
            confirmed: None,
            confirmed_in: 0,
            out_since: None,
            is_told: false,
            confirmations: 0,
            outages: (0, Instant::ZERO),
            rtt: None,
            least_rtt: Least::default(),
            first_transit: None,
            least_transit: Least::default(),
            transit_variation: Duration::ZERO,
            standing_queue: Least::default(),
            flow: PathFlow::default(),
            rate: PathRate::default(),
            growth: (0, now),
            losses: Losses::default(),
            uncounted: (0, 0),
            unrated: (0, Duration::ZERO),
            report: None,
            reported_bytes: 0,
            counted: None,
            is_recounted: false,
        }
    }

    /// Which one it is.
    #[must_use]
    pub const fn id(&self) -> PathId {
        self.id
    }

    /// What is told of it beforehand.
    #[must_use]
    pub const fn config(&self) -> &PathConfig {
        &self.config
    }

    /// Something else is told of it, as by an advertisement.
    pub const fn set_config(&mut self, config: PathConfig) {
        self.config = config;
    }

    /// Whether packets get through.
    #[must_use]
    pub const fn state(&self) -> PathState {
        self.state
    }

    /// Whether packets may be put there.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.state != PathState::Silent
    }

    /// Since when nothing has come of what was sent there; `None` while something does, and of one whose owner says that it is out.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        self.out_since.filter(|_| self.state == PathState::Silent && !self.is_told)
    }

    /// The next message leaves at once: the other end waits for it.
    pub(super) const fn greet(&mut self) {
        self.answer_due = true;
    }

    /// It is probed at once: only now the other end takes messages.
    pub(super) const fn probe_now(&mut self) {
        self.last_probe = None;
    }

    /// Whether `len` bytes more may be in flight: all may, unless the path is only tried.
    #[must_use]
    pub fn allows(&self, len: u32) -> bool {
        self.trial.is_none_or(|trial| self.in_flight() + u64::from(len) <= trial.allowance)
    }

    /// As over a path that has been in use for long.
    #[cfg(test)]
    pub(super) const fn end_trial(&mut self) {
        self.trial = None;
    }

    /// Packets and bytes that were put there.
    #[must_use]
    pub const fn sent(&self) -> (u32, u64) {
        (self.packets_sent, self.bytes_sent)
    }

    /// Packets and bytes that have come by it.
    #[must_use]
    pub const fn received(&self) -> (u32, u64) {
        (self.receipt.packets, self.receipt.bytes)
    }

    /// What status and metrics tell of it, with the direction away from here as the uplink.
    #[must_use]
    pub fn quality(&self) -> PathQuality {
        PathQuality {
            state: self.state,
            round_trip: self.rtt.map(|(smoothed, _)| smoothed),
            variation: self.rtt.map(|(_, variation)| variation),
            uplink: self.flow,
            last_received: self.receipt.latest.map(|(_, at)| at),
            probes_sent: self.probes_sent,
            probes_answered: self.probes_answered,
            least_round_trip: self.least_rtt.get(),
            ..PathQuality::default()
        }
    }

    /// What it is like.
    #[must_use]
    pub fn estimate(&self) -> PathEstimate {
        PathEstimate {
            round_trip: self.rtt.map(|(smoothed, _)| smoothed),
            variation: self.rtt.map(|(_, variation)| variation),
            least_round_trip: self.least_rtt.get(),
            transit: self.transit(),
            transit_variation: self.transit_variation,
            rate: self.expected_rate(),
            is_limit: self.rate.is_limit(),
            loss_permille: self.flow.loss_permille,
            in_flight: self.in_flight(),
        }
    }

    /// What was last measured to be delivered; what it is said to carry does not count.
    #[must_use]
    pub fn measured_rate(&self) -> Option<DataRate> {
        self.rate.measured()
    }

    /// Bytes that have come at the other end, as last reported.
    #[must_use]
    pub fn delivered_bytes(&self) -> u64 {
        self.report.map_or(0, |report| report.bytes)
    }

    /// Packets that have come at the other end, as last reported; wraps.
    pub(super) fn delivered_packets(&self) -> u32 {
        self.report.map_or(0, |report| report.packets)
    }

    /// What it can carry, bit/s, where a queue has shown that.
    pub(super) fn limit(&self) -> Option<u64> {
        self.rate.measured().filter(|_| self.rate.is_limit()).map(DataRate::bits_per_second)
    }

    /// What it carries, bit/s, as a queue has shown of late or as is told.
    pub(super) fn capacity(&self) -> Option<u64> {
        self.rate.ceiling().or(self.config.rate).map(DataRate::bits_per_second)
    }

    /// What is told of it counts as long as nothing has shown that it carries less.
    fn expected_rate(&self) -> Option<DataRate> {
        let expected = self.rate.expected();
        if self.rate.is_limit() { expected } else { expected.max(self.config.rate) }
    }

    /// What it has lost while no queue stood before it.
    pub(super) const fn losses(&self) -> Losses {
        self.losses
    }

    /// Whether a queue stands before it that is told from none and from jitter.
    fn has_standing_queue(&self) -> bool {
        self.standing_queue.get().is_some_and(|queue| queue >= self.noticeable_queue())
    }

    /// Whether a queue has stood before it for a round trip, and still does: some source has more for it than it carries.
    pub(super) fn is_pressed(&self, now: Instant) -> bool {
        self.backlog(now) > self.noticeable_queue() && self.has_standing_queue()
    }

    /// The least transit of late, from the same start on all paths.
    fn transit(&self) -> Option<i64> {
        let first = self.first_transit?;
        self.least_transit.get().map(|least| i64::from(first as i32) + least)
    }

    /// Bytes that were sent and not reported. Packets that were lost before one that was reported do not count.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.bytes_sent.saturating_sub(self.reported_bytes)
    }

    /// How long what was sent is predicted to queue before the path.
    #[must_use]
    pub fn backlog(&self, now: Instant) -> Duration {
        self.free_at.saturating_duration_since(now)
    }

    /// How long a packet of `len` bytes takes at the expected rate; nothing where none is known.
    #[must_use]
    pub fn service_time(&self, len: u32) -> Duration {
        let rate = self.expected_rate();
        rate.and_then(|rate| rate.time_for_bits(u64::from(len) * 8)).unwrap_or_default()
    }

    /// A queue that is told from none and from jitter.
    fn noticeable_queue(&self) -> Duration {
        LEAST_QUEUE.max(self.transit_variation * 4)
    }

    /// Whether it carries as much as it can: a queue stands before it.
    #[must_use]
    pub fn is_full(&self, now: Instant) -> bool {
        self.backlog(now) > self.noticeable_queue() || !self.allows(1)
    }

    /// Between probes while the path is watched closely: half a round trip, and long enough that jitter does not look like
    /// silence, within the bounds of [`Probing`].
    #[must_use]
    pub fn interval(&self) -> Duration {
        let Probing { shortest, longest, .. } = self.config.probing;
        let (smoothed, variation) = self.rtt.unwrap_or_default();
        let interval = (smoothed / 2).max(variation * 2).clamp(shortest, longest.max(shortest));
        interval.max(self.fair_interval())
    }

    /// Between messages so that they take no more than their share of the rate.
    fn fair_interval(&self) -> Duration {
        let len = ShakeMessage::wire_len(PathFeedback::LEN, true) + MESSAGE_OVERHEAD;
        let bits = (len * 8) as u64 * u64::from(self.config.probing.share);
        let fair = self.expected_rate().and_then(|rate| rate.time_for_bits(bits)).unwrap_or_default();
        fair.min(self.config.probing.idle)
    }

    fn timeout(&self) -> Duration {
        self.rtt.map_or(FIRST_TIMEOUT, |(smoothed, variation)| smoothed + variation * 4)
    }

    /// A packet of `len` bytes is put there; its number within the path.
    pub fn note_sent(&mut self, now: Instant, len: u32) -> u32 {
        let sequence = self.first.wrapping_add(self.packets_sent);
        self.packets_sent = self.packets_sent.wrapping_add(1);
        self.bytes_sent = self.bytes_sent.saturating_add(u64::from(len));
        self.free_at = self.free_at.max(now) + self.service_time(len);
        let reach = self.timeout() + self.interval() * 2 + self.backlog(now) * 2;
        let backlog = nanos(self.backlog(now)).saturating_sub(self.corrected);
        self.marks.add(now, sequence, self.bytes_sent, backlog, reach);
        if let Some(trial) = &self.trial
            && self.in_flight() + u64::from(len) >= trial.allowance
            && let Some(trial) = &mut self.trial
        {
            trial.was_used = true;
        }
        self.passes(now);
        sequence
    }

    /// A packet of `len` bytes has come by it, with what its header told.
    pub fn note_received(&mut self, now: Instant, sent_at: u32, path_sequence: u32, len: u32) {
        let receipt = &mut self.receipt;
        // What somebody on the way repeats is no sign of what the path carries.
        if !receipt.seen.take(receipt.highest, path_sequence) {
            return;
        }
        receipt.stamped(now, sent_at);
        receipt.packets = receipt.packets.wrapping_add(1);
        receipt.bytes = receipt.bytes.saturating_add(u64::from(len));
        let is_highest = receipt.highest.is_none_or(|highest| is_before(highest, path_sequence));
        if is_highest {
            receipt.highest = Some(path_sequence);
        }
        self.is_news = true;
        self.passes(now);
    }

    fn passes(&mut self, now: Instant) {
        self.last_data = Some(now);
        self.watch_closely(now);
    }

    fn watch_closely(&mut self, now: Instant) {
        if self.watched_since.is_none() {
            self.watched_since = Some(now);
        }
    }

    fn probe_interval(&self, now: Instant) -> Duration {
        let interval = self.interval();
        match self.out_since {
            Some(since) if now >= since + HOPE && self.confirmations == 0 => {
                self.config.probing.idle.max(interval)
            }
            Some(_) => interval,
            None if self.watched_since.is_some() => interval,
            None => self.config.probing.idle.max(interval),
        }
    }

    fn probe_at(&self, now: Instant) -> Instant {
        self.last_probe.map_or(now, |at| at + self.probe_interval(now))
    }

    fn verdict_at(&self) -> Option<Instant> {
        let since = self.watched_since.filter(|_| self.is_usable() && self.unanswered > 1)?;
        let begun = since + self.timeout();
        let confirmed = self.confirmed.map_or(begun, |(_, at)| at.max(begun));
        // What comes takes longer and longer: the confirmation may be behind the same queue.
        let longer = span(self.receipt.transit.wrapping_sub(self.confirmed_in)).unwrap_or_default();
        Some(confirmed + self.interval() * INTERVALS_TO_SILENCE + longer.min(self.timeout()))
    }

    /// When the other end is told of what has come though it has not asked: four times in a round trip, so that it learns of a queue
    /// while that grows, as far as the share of messages allows.
    fn report_at(&self, now: Instant) -> Option<Instant> {
        let interval =
            (self.least_rtt.get().unwrap_or_default() / 4).max(SHORTEST_REPORT).max(self.fair_interval());
        self.is_news.then(|| self.last_message.map_or(now, |at| at + interval))
    }

    /// When to call [`Path::handle_timeout`] and [`Path::poll_feedback`].
    #[must_use]
    pub fn next_timeout(&self, now: Instant) -> Instant {
        let probe_at = if self.answer_due { now } else { self.probe_at(now) };
        let probe_at = self.report_at(now).map_or(probe_at, |at| at.min(probe_at));
        self.verdict_at().map_or(probe_at, |at| at.min(probe_at))
    }

    /// Finds out whether the path has gone out.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<PathChange> {
        if self.verdict_at().is_some_and(|at| at <= now) {
            return Some(self.go_out(now));
        }
        let is_busy = self.last_data.is_some_and(|at| now < at + BUSY);
        let waits = self.unanswered > 0 && self.last_probe.is_some_and(|at| now >= at + self.timeout());
        if !is_busy && self.unanswered == 0 {
            self.watched_since = None;
        } else if waits {
            self.watch_closely(now);
        }
        if self.state == PathState::Alive && self.unanswered > 1 && self.watched_since.is_some() {
            self.state = PathState::Suspect;
        }
        None
    }

    /// Its owner says that it does not work, before silence does (then it is news) or after.
    pub(super) fn be_told_out(&mut self, now: Instant) -> Option<PathChange> {
        let change = self.is_usable().then(|| self.go_out(now));
        self.is_told = true;
        change
    }

    /// The path is known not to work, by silence.
    pub fn go_out(&mut self, now: Instant) -> PathChange {
        let (before, at) = self.outages;
        let of_late = if now < at + FORGIVEN { before } else { 0 };
        self.outages = (of_late.saturating_add(1), now);
        self.state = PathState::Silent;
        self.out_since = Some(now);
        self.is_told = false;
        self.confirmations = 0;
        self.free_at = now;
        self.standing_queue = Least::default();
        PathChange::Out
    }

    /// The next message to send over this path, without the incarnations, which are its owner's to tell; `late` packets of all paths came too late to be put in order.
    pub fn poll_feedback(&mut self, now: Instant, late: u32) -> Option<PathFeedback> {
        let answer = core::mem::take(&mut self.answer_due);
        let probe = self.probe_at(now) <= now;
        let report = self.report_at(now).is_some_and(|at| at <= now);
        if !answer && !probe && !report {
            return None;
        }
        (self.last_message, self.is_news) = (Some(now), false);
        if probe {
            self.last_probe = Some(now);
            self.unanswered = self.unanswered.saturating_add(1);
            self.probes_sent = self.probes_sent.saturating_add(1);
        }
        Some(PathFeedback {
            path: self.id.number(),
            // A probe tells as much as an answer.
            answer: !probe,
            sent_at: micros(now),
            sent_at_high: ((now.as_nanos() / 1_000) >> 32) as u16,
            echo: self.receipt.echo(now),
            highest: self.receipt.highest,
            packets: self.receipt.packets,
            bytes: self.receipt.bytes,
            late,
            // The owner's to tell.
            sender: 0,
            receiver: 0,
        })
    }

    /// A message has come by this path. Its authenticity is the owner's to check.
    pub fn handle_feedback(&mut self, now: Instant, feedback: &PathFeedback) -> Option<PathChange> {
        self.receipt.stamped(now, feedback.sent_at);
        self.answer_due |= !feedback.answer;
        if self.report.is_none_or(|last| !is_before(feedback.sent_at, last.sent_at)) {
            self.take_report(now, feedback);
            let highest = self.report.and_then(|report| report.highest);
            let mark = highest.and_then(|highest| self.marks.at_sequence(highest));
            self.reported_bytes =
                mark.map_or(self.reported_bytes, |mark| mark.bytes.max(self.reported_bytes));
        }
        let echo = feedback.echo?;
        // Somebody who echoes what was not sent yet knows nothing of this path.
        let round_trip = span(micros(now).wrapping_sub(echo.sent_at).wrapping_sub(echo.held))?;
        let is_new = self.confirmed.is_none_or(|(stamp, _)| is_before(stamp, echo.sent_at));
        if !is_new {
            return None;
        }
        // It had come for so long.
        let at = now.saturating_sub(Duration::from_micros(u64::from(echo.held)));
        (self.confirmed, self.confirmed_in) = (Some((echo.sent_at, at)), self.receipt.transit);
        self.unanswered = 0;
        self.probes_answered = self.probes_answered.saturating_add(1);
        self.rtt = Some(smoothed(self.rtt, round_trip));
        self.least_rtt.add(now, round_trip, LEAST_OF_LATE, 4);
        self.transit_variation = Duration::from_micros(u64::from(echo.variation));
        self.take_transit(now, echo);
        match self.state {
            PathState::Unknown | PathState::Suspect => self.state = PathState::Alive,
            PathState::Silent => return self.confirm_return(echo.sent_at),
            PathState::Alive => {}
        }
        None
    }

    /// Something that was sent at `stamp` has come through a path that is out.
    fn confirm_return(&mut self, stamp: u32) -> Option<PathChange> {
        let out_since = self.out_since?;
        if is_before(stamp, micros(out_since)) {
            return None;
        }
        self.confirmations = self.confirmations.saturating_add(1);
        let doublings = self.outages.0.saturating_sub(1).min(8);
        if self.confirmations < (CONFIRMATIONS << doublings).min(MOST_CONFIRMATIONS) {
            return None;
        }
        self.state = PathState::Alive;
        self.out_since = None;
        self.watched_since = None;
        self.trial = Some(Trial::FIRST);
        // What was in flight when it went out is lost.
        let sequence = self.first.wrapping_add(self.packets_sent).wrapping_sub(1);
        if let Some(report) = &mut self.report {
            report.highest = Some(sequence);
        }
        self.counted = Some(sequence);
        self.is_recounted = true;
        self.reported_bytes = self.bytes_sent;
        Some(PathChange::Back)
    }

    /// The transit of something sent tells of the queue that it met.
    fn take_transit(&mut self, now: Instant, echo: PathEcho) {
        let first = *self.first_transit.get_or_insert(echo.transit);
        let transit = i64::from(echo.transit.wrapping_sub(first) as i32);
        self.least_transit.add(now, transit, LEAST_OF_LATE, 4);
        let least = self.least_transit.get().unwrap_or(transit);
        let queue = Duration::from_micros(u64::try_from(transit - least).unwrap_or_default());
        let round_trip = self.rtt.map_or(FIRST_TIMEOUT, |(smoothed, _)| smoothed);
        self.standing_queue.add(now, queue, round_trip, 3);
        if self.expected_rate().is_none() {
            return;
        }
        // The prediction is put right by a part of what it was wrong by. What is on its way was predicted with the same fault: it
        // must not be put right once more when that is heard of.
        let Some(predicted) = self.marks.backlog_at(echo.sent_at) else { return };
        let predicted = predicted.saturating_add(self.corrected).max(0);
        let backlog = nanos(self.backlog(now));
        let correction = (nanos(queue).saturating_sub(predicted) / 4).max(-backlog);
        self.corrected = self.corrected.saturating_add(correction);
        let backlog = u64::try_from(backlog.saturating_add(correction)).unwrap_or_default();
        self.free_at = now + Duration::from_nanos(backlog);
    }

    /// Whether so much is in flight as the path carries in its least round trip, at the rate that is known; also where that is not.
    fn is_filled(&self) -> bool {
        let known = self.rate.measured().zip(self.least_rtt.get());
        known.is_none_or(|(rate, round_trip)| {
            let bits = u128::from(self.in_flight()) * 8 * 1_000_000_000;
            bits >= u128::from(rate.bits_per_second()) * round_trip.as_nanos()
        })
    }

    /// The counts of the other end.
    fn take_report(&mut self, now: Instant, feedback: &PathFeedback) {
        let Some(last) = self.report else {
            self.report = Some(*feedback);
            return;
        };
        if let Some(trial) = &mut self.trial
            && trial.was_used
            && feedback
                .highest
                .is_some_and(|highest| last.highest.is_none_or(|last| is_before(last, highest)))
        {
            *trial =
                Trial { allowance: trial.allowance * 2, doublings: trial.doublings + 1, was_used: false };
            if trial.doublings >= DOUBLINGS {
                self.trial = None;
            }
        }
        let Some(span) = span(feedback.sent_at.wrapping_sub(last.sent_at)) else { return };
        let highest = match (feedback.highest, last.highest) {
            (Some(highest), Some(last)) if is_before(last, highest) => Some(highest),
            (highest, last) => last.or(highest),
        };
        if span < REPORT_SPAN {
            // Counts are compared with the older report; what is in flight is told by the newer.
            if let Some(report) = &mut self.report {
                report.highest = highest;
            }
            return;
        }
        let put_in = match (highest, self.counted) {
            (Some(highest), Some(first)) => highest.wrapping_sub(first),
            _ => feedback.packets.wrapping_sub(last.packets),
        };
        let arrived = feedback.packets.wrapping_sub(last.packets);
        let bytes = feedback.bytes.wrapping_sub(last.bytes);
        let queued = self.has_standing_queue();
        let is_recounted = core::mem::take(&mut self.is_recounted);
        let is_sound = !is_recounted && put_in < u32::MAX / 2 && arrived < u32::MAX / 2;
        if is_sound && !queued {
            self.losses.add(put_in, arrived);
        }
        // A slow flow puts in too few packets between two reports to tell losses from: they are told from several.
        let (before_in, before_out) = self.uncounted;
        let (put_in, taken_out) = (put_in.saturating_add(before_in), arrived.saturating_add(before_out));
        // Likewise a slow path delivers too little to tell a rate from; while a queue stands before it, it is busy all the time.
        let (before, busy) = if queued && is_sound { self.unrated } else { (0, Duration::ZERO) };
        let passage = Passage {
            put_in,
            taken_out,
            bytes: bytes.saturating_add(before),
            span: span.saturating_add(busy),
        };
        let is_rated = !queued || !is_sound || passage.rate().is_some();
        self.unrated = if is_rated { (0, Duration::ZERO) } else { (passage.bytes, passage.span) };
        self.uncounted = if !is_sound || passage.tells_loss() { (0, 0) } else { (put_in, taken_out) };
        passage.enter(&mut self.flow);
        if let Some(rate) = passage.rate() {
            let (known, since) = self.growth;
            if rate.bits_per_second() >= known.saturating_add(known / 4) {
                self.growth = (rate.bits_per_second(), now);
            }
            // A source in slow start has a queue now and then and is not done growing; a path is not full then.
            let rounds = self.rtt.map_or(FIRST_TIMEOUT, |(smoothed, _)| smoothed) * ROUNDS_TO_FULL;
            let is_done = self.growth.1 == since && now >= since + rounds;
            self.rate.add(rate, queued && is_done, self.is_filled());
        }
        self.report = Some(PathFeedback { highest, ..*feedback });
        self.counted = highest;
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
