//! What a listener hears of a voice flow: packets that come in time for their place in the talk, and those that do not.
//!
//! The receiver has a jitter buffer of fixed depth. Its first packet is played when the depth has passed since it came, and
//! the others at the sender's intervals from then on. One that comes after its time is as good as lost.
//!
//! A path that has become longer for good would have all packets late from then on. A buffer that has played nothing for
//! [`STALL`](crate::STALL), though packets came, starts over: so that those which came by the shortest way meanwhile would
//! have been played when the depth had passed.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use careof_base::{Duration, Instant};
use serde::Serialize;

use crate::burst::BurstMeter;
use crate::seconds::{instant, optional_instant, optional_span, span};
use crate::silence::STALL;
use crate::spread::Spread;

/// How many packets back one that has not come is remembered, with when it was sent.
const REMEMBERED: usize = 16_384;

/// R without any impairment: all of the E-model's parameters at their defaults (ITU-T G.107, section 7.8 and table 3).
const BEST_RATING: f64 = 93.2;

/// What a voice flow is.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The codec's name; `None` for packets of the scenario's own.
    pub codec: Option<String>,
    /// From packet to packet.
    pub interval: Duration,
    /// Depth of the jitter buffer.
    pub buffer: Duration,
    /// How long the sender's codec holds speech back: the time of a packet and what it looks ahead.
    pub coding_delay: Duration,
    /// What the codec costs in the E-model; `None` where that is not known.
    pub impairment: Option<Impairment>,
}

/// What a codec costs in the E-model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// Equipment impairment factor, *Ie*.
    pub ie: f64,
    /// Packet-loss robustness factor, *Bpl*.
    pub bpl: f64,
}

/// Delay impairment, *Id*: the approximation of R. G. Cole and J. H. Rosenbluth, *Voice over IP performance monitoring*,
/// ACM CCR 31(2), 2001, section 2, for echo that is cancelled; `delay` is from mouth to ear.
fn delay_impairment(delay: Duration) -> f64 {
    let ms = delay.as_secs_f64() * 1e3;
    0.024 * ms + 0.11 * (ms - 177.3).max(0.0)
}

impl Impairment {
    /// Effective equipment impairment, *Ie,eff* (ITU-T G.107 section 7.5), with the part `loss` of the packets lost in runs that
    /// are `burst_ratio` times as long as chance would have them.
    fn effective(self, loss: f64, burst_ratio: f64) -> f64 {
        let percent = loss * 100.0;
        if percent == 0.0 {
            return self.ie;
        }
        self.ie + (95.0 - self.ie) * percent / (percent / burst_ratio + self.bpl)
    }
}

/// Mean opinion score of a rating *R* (ITU-T G.107, Annex B). Its curve dips below 1 where *R* < 80 - sqrt(5400); there is
/// no such score, so 1 holds there.
fn opinion_score(rating: f64) -> f64 {
    match rating {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    arrived: bool,
    /// Whether it came in time.
    in_time: bool,
}

/// What is heard from a handover on.
#[derive(Clone, Copy, Debug)]
struct Period {
    at: Instant,
    missing: u64,
    longest_gap: Duration,
}

/// The schedule of the jitter buffer: when packet 0 is played, as nanoseconds on the run's clock; that may lie before its
/// beginning.
type Origin = i64;

/// Packets that came too late since one was played.
#[derive(Clone, Copy, Debug)]
struct LateRun {
    since: Instant,
    /// The least time of an arrival less its packet's place in the talk.
    best: i64,
}

/// Follows a voice flow.
#[derive(Clone, Debug)]
pub(crate) struct VoiceMeter {
    call: Call,
    /// The next packet whose time has not come: the first of `waiting`.
    next: u64,
    waiting: VecDeque<Sent>,
    /// Packets whose time has come, and that have not: when they were sent.
    missing: BTreeMap<u64, Instant>,
    /// The schedule if the first packet took no time on its way.
    soonest: Origin,
    /// The schedule, once a packet has come.
    origin: Option<Origin>,
    late_run: Option<LateRun>,
    restarts: u64,
    received: u64,
    duplicates: u64,
    late: u64,
    judged: BurstMeter,
    delay: Spread,
    mouth_to_ear: Spread,
    /// Arrival less place in the talk of the packet that came last.
    transit: Option<i64>,
    variation: Spread,
    /// Sixteen times the interarrival jitter, nanoseconds.
    jitter_16: u64,
    max_jitter: Duration,
    /// When what was last played ends.
    heard_until: Option<Instant>,
    longest_gap: Option<(Instant, Duration)>,
    periods: Vec<Period>,
}

impl VoiceMeter {
    pub(crate) fn new(call: Call) -> Self {
        Self {
            call,
            next: 0,
            waiting: VecDeque::new(),
            missing: BTreeMap::new(),
            soonest: 0,
            origin: None,
            late_run: None,
            restarts: 0,
            received: 0,
            duplicates: 0,
            late: 0,
            judged: BurstMeter::default(),
            delay: Spread::new(),
            mouth_to_ear: Spread::new(),
            transit: None,
            variation: Spread::new(),
            jitter_16: 0,
            max_jitter: Duration::ZERO,
            heard_until: None,
            longest_gap: None,
            periods: Vec::new(),
        }
    }

    /// The next packet leaves.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.advance(now);
        if self.sent() == 0 {
            self.soonest = nanos(now.since_start()).saturating_add(nanos(self.call.buffer));
        }
        while self.waiting.len() >= REMEMBERED {
            self.judge();
        }
        self.waiting.push_back(Sent { at: now, arrived: false, in_time: false });
        let oldest = self.sent().saturating_sub(REMEMBERED as u64);
        while self.missing.first_key_value().is_some_and(|(number, _)| *number < oldest) {
            self.missing.pop_first();
        }
    }

    /// The packet with this number arrives.
    pub(crate) fn on_arrival(&mut self, now: Instant, number: u64) {
        self.advance(now);
        let sent_at = match number.checked_sub(self.next) {
            None => self.missing.remove(&number),
            Some(at) => self
                .waiting
                .get_mut(at as usize)
                .and_then(|packet| (!core::mem::replace(&mut packet.arrived, true)).then_some(packet.at)),
        };
        let Some(sent_at) = sent_at else {
            // It came before, or was sent too long ago to be known.
            self.duplicates += 1;
            return;
        };
        let delay = now - sent_at;
        self.received += 1;
        self.delay.add(delay);
        let place = self.place(number);
        let arrival = nanos(now.since_start()).saturating_sub(place);
        self.note_variation(arrival);
        let origin = match self.origin {
            Some(origin) => origin,
            None => *self.origin.insert(arrival.saturating_add(nanos(self.call.buffer))),
        };
        let is_late = arrival > origin && !self.starts_over(now, arrival);
        if is_late {
            self.late += 1;
            return;
        }
        self.late_run = None;
        match number.checked_sub(self.next).and_then(|at| self.waiting.get_mut(at as usize)) {
            Some(packet) => packet.in_time = true,
            // Its time passed before anything said when that was.
            None => self.late += 1,
        }
    }

    /// A packet came too late: whether the buffer starts over, so that it comes in time.
    fn starts_over(&mut self, now: Instant, arrival: i64) -> bool {
        let run = self.late_run.get_or_insert(LateRun { since: now, best: arrival });
        run.best = run.best.min(arrival);
        if now - run.since < STALL {
            return false;
        }
        let origin = run.best.saturating_add(nanos(self.call.buffer));
        self.origin = Some(origin);
        self.restarts += 1;
        self.late_run = None;
        arrival <= origin
    }

    /// A handover begins. One before the first packet costs the call nothing.
    pub(crate) fn on_handover(&mut self, now: Instant) {
        if self.sent() == 0 {
            return;
        }
        self.advance(now);
        self.periods.push(Period { at: now, missing: 0, longest_gap: Duration::ZERO });
    }

    /// Interarrival jitter (RFC 3550 section 6.4.1 and appendix A.8), in nanoseconds.
    fn note_variation(&mut self, arrival: i64) {
        if let Some(before) = self.transit.replace(arrival) {
            let difference = arrival.abs_diff(before);
            self.variation.add(Duration::from_nanos(difference));
            let fading = self.jitter_16.saturating_add(8) >> 4;
            self.jitter_16 = self.jitter_16.saturating_add(difference).saturating_sub(fading);
            self.max_jitter = self.max_jitter.max(self.jitter());
        }
    }

    fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter_16 >> 4)
    }

    /// Where in the talk a packet belongs, nanoseconds from its beginning.
    fn place(&self, number: u64) -> i64 {
        let place = self.call.interval.as_nanos().saturating_mul(number.into());
        i64::try_from(place).unwrap_or(i64::MAX)
    }

    /// When a packet is played; before one has come, the earliest that this can be.
    fn due(&self, number: u64) -> Instant {
        let due = self.origin.unwrap_or(self.soonest).saturating_add(self.place(number));
        Instant::from_nanos(u64::try_from(due).unwrap_or(0))
    }

    fn sent(&self) -> u64 {
        self.next + self.waiting.len() as u64
    }

    /// Decides about the packets whose time has passed. Before one has come nothing says when that is; while they come too
    /// late it is put off, as the buffer may start over.
    fn advance(&mut self, now: Instant) {
        let is_known = self.origin.is_some() && self.late_run.is_none();
        while is_known && !self.waiting.is_empty() && self.due(self.next) < now {
            self.judge();
        }
    }

    /// The time of the next packet has come.
    fn judge(&mut self) {
        let Some(packet) = self.waiting.pop_front() else { return };
        let (number, due, first_due) = (self.next, self.due(self.next), self.due(0));
        self.next += 1;
        self.judged.add(packet.in_time);
        if !packet.arrived {
            self.missing.insert(number, packet.at);
        }
        let period = self.periods.iter_mut().rev().find(|period| period.at <= due);
        if !packet.in_time {
            if let Some(period) = period {
                period.missing += 1;
            }
            return;
        }
        self.mouth_to_ear.add((due - packet.at) + self.call.coding_delay);
        let until = self.heard_until.replace(due + self.call.interval).unwrap_or(first_due);
        let gap = due - until;
        if let Some(period) = period {
            period.longest_gap = period.longest_gap.max(gap);
        }
        self.note_gap(until, gap);
    }

    fn note_gap(&mut self, since: Instant, gap: Duration) {
        if gap > self.longest_gap.map_or(Duration::ZERO, |(_, longest)| longest) {
            self.longest_gap = Some((since, gap));
        }
    }

    /// The same at the end of the run: what should have been played until then is decided, and a gap ends.
    fn at_end(&self, end: Instant) -> Self {
        let mut meter = self.clone();
        meter.late_run = None;
        meter.origin.get_or_insert(meter.soonest);
        meter.advance(end);
        if let Some(last) = meter.next.checked_sub(1) {
            let due = meter.due(last);
            let until = meter.heard_until.unwrap_or(meter.due(0));
            let gap = (due + meter.call.interval) - until;
            meter.note_gap(until, gap);
            if let Some(period) = meter.periods.iter_mut().rev().find(|period| period.at <= due) {
                period.longest_gap = period.longest_gap.max(gap);
            }
        }
        meter
    }

    /// What has been heard in a run that ends at `end`.
    pub(crate) fn summary(&self, flow: &str, end: Instant) -> VoiceSummary {
        let meter = self.at_end(end);
        let bursts = meter.judged.finish();
        let missing = bursts.missing();
        let rating = meter.call.impairment.map(|impairment| {
            let delay = meter.mouth_to_ear.mean();
            // Where nothing was heard there is no delay, and no conversation.
            delay.map_or(0.0, |delay| {
                let loss = missing as f64 / bursts.expected.max(1) as f64;
                BEST_RATING
                    - delay_impairment(delay)
                    - impairment.effective(loss, bursts.ratio().unwrap_or(1.0))
            })
        });
        let [delay_min, delay_max] = meter.delay.extremes();
        VoiceSummary {
            flow: flow.into(),
            codec: meter.call.codec.clone(),
            packets_sent: meter.sent(),
            packets_received: meter.received,
            duplicates: meter.duplicates,
            packets_due: bursts.expected,
            packets_lost: missing.saturating_sub(meter.late),
            packets_late: meter.late,
            missing_part: bursts.part(missing),
            restarts: meter.restarts,
            delay_min,
            delay_mean: meter.delay.mean(),
            delay_max,
            jitter: meter.jitter(),
            jitter_max: meter.max_jitter,
            mouth_to_ear: meter.mouth_to_ear.mean(),
            longest_gap: meter.longest_gap.map(|(_, gap)| gap),
            longest_gap_at: meter.longest_gap.map(|(at, _)| at),
            bursts: bursts.bursts,
            burst_density: bursts.burst_density(),
            burst_duration: bursts.mean_burst().map(|packets| meter.call.interval.mul_f64(packets)),
            gap_density: bursts.gap_density(),
            gap_duration: bursts.mean_gap().map(|packets| meter.call.interval.mul_f64(packets)),
            burst_ratio: bursts.ratio(),
            rating: rating.map(|rating| rating.max(0.0)),
            mos: rating.map(opinion_score),
            handovers: meter
                .periods
                .iter()
                .map(|period| VoiceHandoverSummary {
                    at: period.at,
                    packets_missing: period.missing,
                    longest_gap: period.longest_gap,
                })
                .collect(),
        }
    }

    /// Packets that arrived, each once.
    pub(crate) const fn received(&self) -> u64 {
        self.received
    }

    /// The one-way delays of packets, and by how much those of successive ones differ.
    pub(crate) const fn spreads(&self) -> [&Spread; 2] {
        [&self.delay, &self.variation]
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// What was heard of a voice flow; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VoiceSummary {
    /// The flow's name.
    pub flow: String,
    /// The codec.
    pub codec: Option<String>,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that arrived, each once.
    pub packets_received: u64,
    /// Further arrivals of packets.
    pub duplicates: u64,
    /// Packets whose time to be played came within the run.
    pub packets_due: u64,
    /// Those of them that had not come, nor came later.
    pub packets_lost: u64,
    /// Packets that came after their time.
    pub packets_late: u64,
    /// The part of the packets due that could not be played.
    pub missing_part: Option<f64>,
    /// How often the jitter buffer started over.
    pub restarts: u64,
    /// The least one-way delay.
    #[serde(rename = "delay_min_s", serialize_with = "optional_span")]
    pub delay_min: Option<Duration>,
    /// Their mean.
    #[serde(rename = "delay_mean_s", serialize_with = "optional_span")]
    pub delay_mean: Option<Duration>,
    /// The largest.
    #[serde(rename = "delay_max_s", serialize_with = "optional_span")]
    pub delay_max: Option<Duration>,
    /// Interarrival jitter at the end.
    #[serde(rename = "jitter_s", serialize_with = "span")]
    pub jitter: Duration,
    /// The most that it was.
    #[serde(rename = "jitter_max_s", serialize_with = "span")]
    pub jitter_max: Duration,
    /// From mouth to ear, mean.
    #[serde(rename = "mouth_to_ear_s", serialize_with = "optional_span")]
    pub mouth_to_ear: Option<Duration>,
    /// The longest time in which nothing was played.
    #[serde(rename = "longest_gap_s", serialize_with = "optional_span")]
    pub longest_gap: Option<Duration>,
    /// When that began.
    #[serde(rename = "longest_gap_at_s", serialize_with = "optional_instant")]
    pub longest_gap_at: Option<Instant>,
    /// Bursts.
    pub bursts: u64,
    /// The part of the packets in bursts that was missing.
    pub burst_density: Option<f64>,
    /// How long bursts were.
    #[serde(rename = "burst_duration_s", serialize_with = "optional_span")]
    pub burst_duration: Option<Duration>,
    /// The part of the packets in gaps that was missing.
    pub gap_density: Option<f64>,
    /// How long gaps were.
    #[serde(rename = "gap_duration_s", serialize_with = "optional_span")]
    pub gap_duration: Option<Duration>,
    /// How much longer runs of missing packets were than chance would have them.
    pub burst_ratio: Option<f64>,
    /// The E-model's rating.
    pub rating: Option<f64>,
    /// The mean opinion score.
    pub mos: Option<f64>,
    /// From each handover on.
    pub handovers: Vec<VoiceHandoverSummary>,
}

/// What was heard from a handover to the next; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VoiceHandoverSummary {
    /// When the handover began.
    #[serde(rename = "at_s", serialize_with = "instant")]
    pub at: Instant,
    /// Packets that could not be played.
    pub packets_missing: u64,
    /// The longest time in which nothing was played.
    #[serde(rename = "longest_gap_s", serialize_with = "span")]
    pub longest_gap: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const FRAME: u64 = 20;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn g711(buffer: u64) -> Call {
        Call {
            codec: Some("g711".into()),
            interval: ms(FRAME),
            buffer: ms(buffer),
            coding_delay: ms(FRAME),
            impairment: Some(Impairment { ie: 0.0, bpl: 25.1 }),
        }
    }

    /// A talk of `packets`, each of which takes what `delay` says of it, if it arrives at all.
    fn talk(call: Call, packets: u64, handovers: &[u64], delay: impl Fn(u64) -> Option<u64>) -> VoiceSummary {
        enum What {
            Sent,
            Arrives(u64),
            Handover,
        }
        let mut all: Vec<(u64, What)> = Vec::new();
        for number in 0..packets {
            all.push((number * FRAME, What::Sent));
            all.extend(delay(number).map(|delay| (number * FRAME + delay, What::Arrives(number))));
        }
        all.extend(handovers.iter().map(|at| (*at, What::Handover)));
        all.sort_by_key(|(at, _)| *at);
        let mut meter = VoiceMeter::new(call);
        for (now, what) in all {
            match what {
                What::Sent => meter.on_sent(at(now)),
                What::Arrives(number) => meter.on_arrival(at(now), number),
                What::Handover => meter.on_handover(at(now)),
            }
        }
        meter.summary("call", at(packets * FRAME + 10_000))
    }

    #[test]
    fn scores_are_those_of_the_recommendation() {
        // ITU-T G.107, Table B.1: R and MOS, which it rounds up where the formula has 4.024.
        for (rating, mos) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((opinion_score(rating) - mos).abs() < 0.01, "{rating}: {}", opinion_score(rating));
        }
        assert_eq!((opinion_score(-1.0), opinion_score(101.0)), (1.0, 4.5));
        // The curve is below 1 up to its root, 80 - sqrt(5400).
        for rating in [0.1, 3.0, 6.5] {
            assert_eq!(opinion_score(rating), 1.0, "{rating}");
        }
        assert!(opinion_score(6.6) > 1.0);
        // Cole and Rosenbluth: 0.024 a millisecond, from 177.3 ms on 0.134.
        assert!((delay_impairment(ms(100)) - 2.4).abs() < 1e-9);
        assert!((delay_impairment(ms(277)) - (0.024 * 277.0 + 0.11 * 99.7)).abs() < 1e-9);
        // G.711 with concealment, 5 % lost at random: 95 * 5 / (5 + 25.1).
        let effective = Impairment { ie: 0.0, bpl: 25.1 }.effective(0.05, 1.0);
        assert!((effective - 15.78).abs() < 0.01, "{effective}");
    }

    #[test]
    fn a_talk_without_trouble_is_heard_whole_and_rated_by_its_delay() {
        let heard = talk(g711(60), 1000, &[], |_| Some(30));
        assert_eq!((heard.packets_sent, heard.packets_received, heard.packets_due), (1000, 1000, 1000));
        assert_eq!((heard.packets_lost, heard.packets_late, heard.bursts), (0, 0, 0));
        assert_eq!((heard.jitter, heard.longest_gap, heard.missing_part), (Duration::ZERO, None, Some(0.0)));
        // 20 ms of speech in a packet, 30 ms on the way, 60 ms in the buffer.
        assert_eq!((heard.mouth_to_ear, heard.delay_mean), (Some(ms(110)), Some(ms(30))));
        let rating = heard.rating.unwrap();
        assert!((rating - (93.2 - 0.024 * 110.0)).abs() < 1e-9, "{rating}");
    }

    #[test]
    fn what_comes_after_its_time_is_missing() {
        // The first takes 10 ms, so each is played 70 ms after it was sent.
        let heard = talk(g711(60), 100, &[], |number| Some(if number == 50 { 71 } else { 10 }));
        assert_eq!((heard.packets_lost, heard.packets_late, heard.packets_received), (0, 1, 100));
        assert_eq!(heard.longest_gap, Some(ms(FRAME)));
        assert_eq!(heard.longest_gap_at, Some(at(50 * FRAME + 70)));
        let just_in_time = talk(g711(60), 100, &[], |number| Some(if number == 50 { 70 } else { 10 }));
        assert_eq!((just_in_time.packets_late, just_in_time.longest_gap), (0, None));
    }

    #[test]
    fn a_handover_has_the_packets_that_should_have_been_played_behind_it() {
        let lost = |number: u64| (!(100..115).contains(&number) && number != 300).then_some(10);
        let heard = talk(g711(60), 500, &[2000, 5900], lost);
        assert_eq!((heard.packets_lost, heard.packets_late), (16, 0));
        assert_eq!((heard.longest_gap, heard.longest_gap_at), (Some(ms(300)), Some(at(2070))));
        let expected = [(2000, 15, 300), (5900, 1, 20)].map(|(when, packets_missing, gap)| {
            VoiceHandoverSummary { at: at(when), packets_missing, longest_gap: ms(gap) }
        });
        assert_eq!(heard.handovers, vec![expected[0], expected[1]]);
        assert_eq!(heard.bursts, 1, "one lost packet alone is in a gap");
    }

    #[test]
    fn a_buffer_starts_over_when_the_path_has_become_longer_for_good() {
        let heard = talk(g711(60), 500, &[], |number| Some(if number < 100 { 10 } else { 200 }));
        assert_eq!((heard.restarts, heard.packets_lost), (1, 0));
        // Packet 100 comes at 2200 ms; the first that comes a second later and those behind it are played again.
        assert_eq!(heard.packets_late, 50);
        // The silence is that of the lost packets and of the delay that was added.
        assert_eq!(heard.longest_gap, Some(ms(50 * FRAME + 190)));
    }

    #[test]
    fn packets_that_were_held_back_do_not_move_the_buffer() {
        // 40 packets come at once, 50 ms after the last of them was sent.
        let held = |number: u64| match number {
            100..140 => Some((139 - number) * FRAME + 50),
            _ => Some(10),
        };
        let heard = talk(g711(60), 300, &[], held);
        assert_eq!(heard.restarts, 0);
        // Those of the last 70 ms are in time.
        assert_eq!(heard.packets_late, 38);
    }

    #[test]
    fn a_call_of_which_nothing_comes_is_rated_zero() {
        let heard = talk(g711(60), 50, &[], |_| None);
        assert_eq!((heard.packets_due, heard.packets_lost, heard.missing_part), (50, 50, Some(1.0)));
        assert_eq!((heard.rating, heard.mos, heard.delay_mean), (Some(0.0), Some(1.0), None));
    }

    #[test]
    fn silence_before_the_first_packet_that_comes_is_a_gap() {
        let heard = talk(g711(60), 500, &[1000], |number| (number >= 100).then_some(10));
        assert_eq!(heard.missing_part, Some(0.2));
        // The first would have been played at 70 ms.
        assert_eq!((heard.longest_gap, heard.longest_gap_at), (Some(ms(2000)), Some(at(70))));
        let longest_gap = ms(2000);
        assert_eq!(
            heard.handovers,
            [VoiceHandoverSummary { at: at(1000), packets_missing: 53, longest_gap }]
        );
    }

    #[test]
    fn a_handover_before_the_call_is_none_of_its_own() {
        let lost = |number: u64| (!(100..115).contains(&number)).then_some(10);
        let mut meter = VoiceMeter::new(g711(60));
        meter.on_handover(at(0));
        for number in 0..500 {
            meter.on_sent(at(10_000 + number * FRAME));
            if let Some(delay) = lost(number) {
                meter.on_arrival(at(10_000 + number * FRAME + delay), number);
            }
        }
        let heard = meter.summary("call", at(30_000));
        assert_eq!((heard.packets_lost, heard.longest_gap), (15, Some(ms(300))));
        assert_eq!(heard.handovers, []);
    }

    #[test]
    fn where_nothing_comes_each_handover_has_the_packets_that_were_due_behind_it() {
        let heard = talk(g711(60), 500, &[2000, 4000], |_| None);
        // Packets are due 60 ms after they are sent if they take no time: the first 97 before 2 s, 100 more before 4 s.
        let missing: Vec<u64> = heard.handovers.iter().map(|handover| handover.packets_missing).collect();
        assert_eq!((heard.packets_lost, missing), (500, vec![100, 303]));
        assert_eq!((heard.longest_gap, heard.longest_gap_at), (Some(ms(500 * FRAME)), Some(at(60))));
    }

    #[test]
    fn packets_that_were_heard_are_forgotten() {
        let mut meter = VoiceMeter::new(g711(60));
        for number in 0..3 * REMEMBERED as u64 {
            meter.on_sent(at(number * FRAME));
            if number % 50 > 0 {
                meter.on_arrival(at(number * FRAME + 10), number);
            }
        }
        // One in 50 of the last 16,384 is waited for, and those whose time has not come.
        assert_eq!((meter.missing.len(), meter.waiting.len()), (REMEMBERED / 50, 4));
        let last = 3 * REMEMBERED as u64 / 50 * 50;
        meter.on_arrival(at(3 * REMEMBERED as u64 * FRAME), last - 1);
        meter.on_arrival(at(3 * REMEMBERED as u64 * FRAME), last - 50);
        assert_eq!((meter.duplicates, meter.late), (1, 1));
    }

    #[test]
    fn copies_are_counted_apart() {
        let mut meter = VoiceMeter::new(g711(60));
        meter.on_sent(at(0));
        meter.on_arrival(at(5), 0);
        meter.on_arrival(at(6), 0);
        meter.on_arrival(at(6), 7);
        let heard = meter.summary("call", at(1000));
        assert_eq!((heard.packets_received, heard.duplicates, heard.packets_due), (1, 2, 1));
    }

    #[test]
    fn jitter_is_that_of_the_appendix_of_rfc_3550() {
        // Transit times differ by 16 ms each time: J goes 1, 1.9375, ... towards 16 ms.
        let mut meter = VoiceMeter::new(g711(60));
        for number in 0..3 {
            meter.on_sent(at(number * FRAME));
            meter.on_arrival(at(number * FRAME + if number == 1 { 26 } else { 10 }), number);
        }
        assert_eq!(meter.jitter(), Duration::from_nanos(1_937_500));
    }
}
