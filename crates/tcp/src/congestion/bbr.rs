//! BBR, version 1 (Linux 6.1 `net/ipv4/tcp_bbr.c`; draft-cardwell-iccrg-bbr-congestion-control-00, 2017): the window and
//! the pacing rate follow a model of the path - the most bandwidth delivered in the last ten rounds and the least
//! round-trip time of the last ten seconds - instead of losses.
//!
//! The integers are the kernel's: bandwidth in segments per microsecond with 24 bits behind the point, gains
//! in 1/256, wall-clock comparisons in milliseconds (HZ=1000). Estimates of one file each: long-term bandwidth where a
//! policer drops ([`super::bbr_policer`]), aggregation of acknowledgements ([`super::bbr_aggregation`]). Where the
//! cycle of gains begins is drawn from a seed that comes in with the connection.
//!
//! With [`crate::Variant::Linux`] it sees what it sees in the kernel; the classic variants tell it of losses what they
//! know (RFC 6675's pipe; one loss a round trip without selective acknowledgements). Left out: the segments that
//! offloading devices hold (`tcp_small_queue_check`), and the greatest pacing rate of a socket.

use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{DataRate, RandomStream};

use super::bbr_aggregation::Aggregation;
use super::bbr_policer::{Evidence, Policer};
use super::windowed_max::WindowedMax;
use super::{CaState, Path, Window};
use crate::delivery_rate::RateSample;
use crate::snapshot::PathModel;

/// Bits of a bandwidth behind the point.
pub(super) const BW_SCALE: u32 = 24;

/// Bits of a gain behind the point, and a gain of 1.
const GAIN_SCALE: u32 = 8;
const UNIT: u32 = 1 << GAIN_SCALE;

/// 2/ln 2: the least gain that lets the rate double each round.
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;

/// Its inverse, which drains in a round what a round of it has queued.
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;

/// Of the window in the steady state.
const CWND_GAIN: u32 = 2 * UNIT;

/// The cycle of pacing gains in the steady state: probe, drain, six times cruise.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];

/// The phases in which the cycle may begin: any but draining.
const CYCLE_STARTS: u64 = 7;

/// Rounds of the bandwidth filter: a cycle and two.
const BANDWIDTH_ROUNDS: u64 = CYCLE.len() as u64 + 2;

const MIN_RTT_WINDOW_MS: u64 = 10_000;
const PROBE_RTT_MS: u64 = 200;
const MIN_CWND: u32 = 4;

/// Growth of the bandwidth in three rounds that means that the pipe is not full yet: a quarter.
const FULL_BANDWIDTH_GAIN: u32 = UNIT * 5 / 4;
const FULL_BANDWIDTH_ROUNDS: u32 = 3;

/// The pacing rate stays this much below what the model says.
const PACING_MARGIN_PERCENT: u64 = 1;

/// Below this many bytes a second (1.2 Mbit/s) segments leave one by one.
const SINGLE_SEGMENT_RATE: u64 = 1_200_000 / 8;

/// Most bytes in a quantum: the largest packet that is cut in software, less room for headers.
const MAX_QUANTUM: u64 = 65_535 - 320;
const MAX_QUANTUM_SEGMENTS: u64 = 127;

/// Linux's initial window, which bounds what is sent before there is a model.
const INITIAL_CWND: u32 = 10;

/// The stream of random numbers that says where a cycle begins.
const STREAM: &str = "tcp.bbr";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate each round until the bandwidth stops growing.
    Startup,
    /// Sends slowly until the queue of the start-up is gone.
    Drain,
    /// Cycles around the estimated bandwidth.
    ProbeBandwidth,
    /// Keeps four segments in flight so that the queue empties and the round trip shows.
    ProbeRtt,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    min_rtt_us: Option<u64>,
    min_rtt_ms: u64,
    bandwidth: WindowedMax,
    round: u64,
    round_start: bool,
    next_round_delivered: u64,
    pacing_gain: u32,
    cwnd_gain: u32,
    cycle: usize,
    cycle_us: u64,
    full_bandwidth: u64,
    full_bandwidth_count: u32,
    full_bandwidth_reached: bool,
    probe_rtt_done_ms: Option<u64>,
    probe_rtt_round_done: bool,
    prior_cwnd: u32,
    previous_state: CaState,
    packet_conservation: bool,
    idle_restart: bool,
    seen_rtt: bool,
    policer: Policer,
    aggregation: Aggregation,
    /// Where the next cycles begin, the last one first; those that follow are left to chance.
    starts: Vec<u8>,
    chance: RandomStream,
}

fn micros(at: careof_base::Instant) -> u64 {
    at.as_nanos() / 1_000
}

fn millis(at: careof_base::Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

/// `bandwidth` times `gain`, less the margin, in bytes a second.
pub(super) fn bytes_per_second(bandwidth: u64, gain: u32, mss: u32) -> u64 {
    let scaled = (u128::from(bandwidth) * u128::from(mss) * u128::from(gain)) >> GAIN_SCALE;
    let rate = (scaled * u128::from(1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT))) >> BW_SCALE;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Segments that leave together at least, at a rate in bytes a second.
pub(super) const fn least_quantum(rate: u64) -> u32 {
    if rate < SINGLE_SEGMENT_RATE { 1 } else { 2 }
}

impl Bbr {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            mode: Mode::Startup,
            min_rtt_us: None,
            min_rtt_ms: 0,
            bandwidth: WindowedMax::default(),
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cycle: 0,
            cycle_us: 0,
            full_bandwidth: 0,
            full_bandwidth_count: 0,
            full_bandwidth_reached: false,
            probe_rtt_done_ms: None,
            probe_rtt_round_done: false,
            prior_cwnd: 0,
            previous_state: CaState::Open,
            packet_conservation: false,
            idle_restart: false,
            seen_rtt: false,
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            starts: Vec::new(),
            chance: RandomStream::new(seed, 0, STREAM),
        }
    }

    /// Forgets the path.
    pub(crate) fn begin_anew(&mut self) {
        *self =
            Self { starts: core::mem::take(&mut self.starts), chance: self.chance.clone(), ..Self::new(0) };
    }

    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.chance = RandomStream::new(seed, 0, STREAM);
    }

    pub(crate) fn set_cycle_starts(&mut self, starts: &[u8]) {
        self.starts = starts.iter().rev().copied().collect();
    }

    /// What the model holds, for a segment size of `mss` bytes (Linux's `tcp_bbr_info`).
    pub(crate) fn model(&self, mss: u32) -> PathModel {
        let bandwidth = (u128::from(self.estimate()) * u128::from(mss) * 1_000_000) >> BW_SCALE;
        PathModel {
            mode: match self.mode {
                Mode::Startup => "startup",
                Mode::Drain => "drain",
                Mode::ProbeBandwidth => "probe-bw",
                Mode::ProbeRtt => "probe-rtt",
            },
            bandwidth: DataRate::from_bits_per_second(u64::try_from(bandwidth * 8).unwrap_or(u64::MAX)),
            min_rtt: self.min_rtt_us.map(Duration::from_micros),
            pacing_gain: self.pacing_gain,
            cwnd_gain: self.cwnd_gain,
        }
    }

    /// The connection is established: a first rate by the window and the round trip of the handshake.
    pub(crate) fn begin(&mut self, path: &mut Path<'_>) {
        path.window.set_ssthresh(u32::MAX);
        self.next_round_delivered = path.delivery.delivered();
        let least = path.delivery.min_rtt();
        self.min_rtt_us =
            (least != Duration::MAX).then(|| u64::try_from(least.as_micros()).unwrap_or(u64::MAX));
        self.min_rtt_ms = millis(path.now);
        self.bandwidth.reset(0, 0);
        self.policer.reset(&Self::evidence(path));
        self.aggregation.begin(micros(path.now));
        self.pace_by_round_trip(path);
    }

    fn pace_by_round_trip(&mut self, path: &mut Path<'_>) {
        let rtt_us = match path.srtt {
            Some(srtt) => {
                self.seen_rtt = true;
                u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX).max(1)
            }
            None => 1_000,
        };
        let bandwidth = (u64::from(path.window.segments()) << BW_SCALE) / rtt_us;
        let rate = bytes_per_second(bandwidth, HIGH_GAIN, path.window.mss());
        path.pacing.set_rate(rate);
        self.set_quantum(path);
    }

    /// After each acknowledgement.
    pub(crate) fn on_sample(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        self.update_bandwidth(path, sample);
        self.update_aggregation(path, sample);
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(path, sample) {
            self.next_phase(path);
        }
        self.check_full_bandwidth(sample);
        self.check_drain(path);
        self.update_min_rtt(path, sample);
        self.update_gains();
        self.set_pacing_rate(path, self.pacing_gain);
        self.set_cwnd(path, sample);
    }

    // ---- the model

    fn max_bandwidth(&self) -> u64 {
        self.bandwidth.get()
    }

    /// The bandwidth in force: the long-term one where a policer is at work.
    fn estimate(&self) -> u64 {
        self.policer.bandwidth().unwrap_or_else(|| self.max_bandwidth())
    }

    fn update_bandwidth(&mut self, path: &Path<'_>, sample: &RateSample) {
        self.round_start = false;
        let (Some(delivered), Some(interval)) = (sample.delivered, sample.interval) else { return };
        let interval_us = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        if interval_us == 0 {
            return;
        }
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = path.delivery.delivered();
            self.round += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(path, sample.newly_lost > 0, sample.app_limited);
        let bandwidth = (delivered << BW_SCALE) / interval_us;
        // A sample of an idle application says nothing, unless it is better than the model.
        if !sample.app_limited || bandwidth >= self.max_bandwidth() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.round, bandwidth);
        }
    }

    fn evidence(path: &Path<'_>) -> Evidence {
        Evidence {
            delivered: path.delivery.delivered(),
            lost: path.delivery.lost(),
            delivered_ms: millis(path.delivery.delivered_at()),
            mss: path.window.mss(),
        }
    }

    fn sample_long_term(&mut self, path: &Path<'_>, losses: bool, app_limited: bool) {
        let evidence = Self::evidence(path);
        if self.policer.bandwidth().is_some() {
            let counts = self.mode == Mode::ProbeBandwidth && self.round_start;
            if counts && self.policer.has_served_its_time() {
                self.policer.reset(&evidence);
                self.enter_probe_bandwidth(path);
            }
        } else if self.policer.sample(&evidence, self.round_start, losses, app_limited) {
            self.pacing_gain = UNIT;
        }
    }

    fn update_aggregation(&mut self, path: &Path<'_>, sample: &RateSample) {
        if sample.newly_delivered == 0 || sample.delivered.is_none() || sample.interval.is_none() {
            return;
        }
        let now_us = micros(path.delivery.delivered_at());
        let (estimate, cwnd) = (self.estimate(), path.window.segments());
        self.aggregation.update(self.round_start, now_us, sample.newly_delivered, estimate, cwnd);
    }

    /// Bandwidth times the least round trip times `gain`, in segments, rounded up.
    fn bdp(&self, bandwidth: u64, gain: u32) -> u32 {
        let Some(min_rtt_us) = self.min_rtt_us else { return INITIAL_CWND };
        let product = (u128::from(bandwidth) * u128::from(min_rtt_us) * u128::from(gain)) >> GAIN_SCALE;
        let segments = (product + (1 << BW_SCALE) - 1) >> BW_SCALE;
        u32::try_from(segments).unwrap_or(u32::MAX)
    }

    /// Segments that leave at once.
    fn quantum(path: &Path<'_>) -> u32 {
        let rate = path.pacing.rate().unwrap_or(0);
        let least = u64::from(least_quantum(rate));
        let bytes = (rate >> 10).min(MAX_QUANTUM);
        (bytes / u64::from(path.window.mss().max(1))).clamp(least, MAX_QUANTUM_SEGMENTS) as u32
    }

    fn set_quantum(&self, path: &mut Path<'_>) {
        let quantum = Self::quantum(path);
        path.pacing.set_quantum(quantum);
    }

    /// Adds what keeps the path busy although segments leave and are acknowledged in twos and more.
    fn with_budget(&self, path: &Path<'_>, cwnd: u32) -> u32 {
        let cwnd = cwnd.saturating_add(3 * Self::quantum(path));
        let even = cwnd.saturating_add(1) & !1;
        let probing = self.mode == Mode::ProbeBandwidth && self.cycle == 0;
        even.saturating_add(if probing { 2 } else { 0 })
    }

    fn inflight(&self, path: &Path<'_>, bandwidth: u64, gain: u32) -> u32 {
        self.with_budget(path, self.bdp(bandwidth, gain))
    }

    /// Of `in_flight` segments, what will be in the network when the next quantum leaves.
    fn in_network_at_next_departure(&self, path: &Path<'_>, in_flight: u32) -> u32 {
        let wait = path.pacing.next_departure(path.now) - path.now;
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let delivered = (u128::from(self.estimate()) * u128::from(wait_us)) >> BW_SCALE;
        let leaving = if self.pacing_gain > UNIT { Self::quantum(path) } else { 0 };
        let then = u128::from(in_flight.saturating_add(leaving));
        u32::try_from(then.saturating_sub(delivered)).unwrap_or(u32::MAX)
    }

    // ---- the modes

    fn phase_is_over(&self, path: &Path<'_>, sample: &RateSample) -> bool {
        let elapsed = micros(path.delivery.delivered_at()).saturating_sub(self.cycle_us);
        let full_length = self.min_rtt_us.is_some_and(|min_rtt| elapsed > min_rtt);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let prior = u32::try_from(sample.prior_in_flight).unwrap_or(u32::MAX);
        let in_network = self.in_network_at_next_departure(path, prior);
        let bandwidth = self.max_bandwidth();
        if self.pacing_gain > UNIT {
            let reached = in_network >= self.inflight(path, bandwidth, self.pacing_gain);
            return full_length && (sample.newly_lost > 0 || reached);
        }
        full_length || in_network <= self.inflight(path, bandwidth, UNIT)
    }

    fn next_phase(&mut self, path: &Path<'_>) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_us = micros(path.delivery.delivered_at());
    }

    fn enter_probe_bandwidth(&mut self, path: &Path<'_>) {
        self.mode = Mode::ProbeBandwidth;
        // The phase before the one that it begins with.
        self.cycle = match self.starts.pop() {
            Some(start) => (usize::from(start) + CYCLE.len() - 1) % CYCLE.len(),
            None => CYCLE.len() - 1 - self.chance.below(CYCLE_STARTS) as usize,
        };
        self.next_phase(path);
    }

    /// The pipe is full when the bandwidth has not grown by a quarter for three rounds.
    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.full_bandwidth_reached || !self.round_start || sample.app_limited {
            return;
        }
        let wanted = (self.full_bandwidth * u64::from(FULL_BANDWIDTH_GAIN)) >> GAIN_SCALE;
        if self.max_bandwidth() >= wanted {
            self.full_bandwidth = self.max_bandwidth();
            self.full_bandwidth_count = 0;
            return;
        }
        self.full_bandwidth_count += 1;
        self.full_bandwidth_reached = self.full_bandwidth_count >= FULL_BANDWIDTH_ROUNDS;
    }

    fn check_drain(&mut self, path: &mut Path<'_>) {
        if self.mode == Mode::Startup && self.full_bandwidth_reached {
            self.mode = Mode::Drain;
            let inflight = self.inflight(path, self.max_bandwidth(), UNIT);
            path.window.set_ssthresh_segments(inflight);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_next_departure(path, path.segments_in_flight)
                <= self.inflight(path, self.max_bandwidth(), UNIT)
        {
            self.enter_probe_bandwidth(path);
        }
    }

    fn update_min_rtt(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        let now_ms = millis(path.now);
        let expired = now_ms > self.min_rtt_ms + MIN_RTT_WINDOW_MS;
        if let Some(rtt) = sample.rtt {
            let rtt_us = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX);
            let less = self.min_rtt_us.is_none_or(|min_rtt| rtt_us < min_rtt);
            if less || (expired && !sample.ack_delayed) {
                self.min_rtt_us = Some(rtt_us);
                self.min_rtt_ms = now_ms;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(path.window);
            self.probe_rtt_done_ms = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(path, now_ms);
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, path: &mut Path<'_>, now_ms: u64) {
        path.mark_app_limited();
        if self.probe_rtt_done_ms.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(path);
            }
        } else if path.segments_in_flight <= MIN_CWND {
            self.probe_rtt_done_ms = Some(now_ms + PROBE_RTT_MS);
            self.probe_rtt_round_done = false;
            self.next_round_delivered = path.delivery.delivered();
        }
    }

    fn check_probe_rtt_done(&mut self, path: &mut Path<'_>) {
        let now_ms = millis(path.now);
        if self.probe_rtt_done_ms.is_none_or(|done| now_ms <= done) {
            return;
        }
        self.min_rtt_ms = now_ms;
        path.window.set_segments(path.window.segments().max(self.prior_cwnd));
        if self.full_bandwidth_reached {
            self.enter_probe_bandwidth(path);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.bandwidth().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE.get(self.cycle).copied().unwrap_or(UNIT), CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // ---- the window and the rate

    fn set_pacing_rate(&mut self, path: &mut Path<'_>, gain: u32) {
        let rate = bytes_per_second(self.estimate(), gain, path.window.mss());
        if !self.seen_rtt && path.srtt.is_some() {
            self.pace_by_round_trip(path);
        }
        if self.full_bandwidth_reached || path.pacing.rate().is_none_or(|current| rate > current) {
            path.pacing.set_rate(rate);
        }
        self.set_quantum(path);
    }

    fn set_cwnd(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        let acked = u32::try_from(sample.newly_delivered).unwrap_or(u32::MAX);
        let mut cwnd = path.window.segments();
        if acked > 0 {
            let conserved;
            (cwnd, conserved) = self.cwnd_in_recovery(path, sample, acked);
            if !conserved {
                cwnd = self.towards_target(path, cwnd, acked);
            }
        }
        path.window.set_segments(cwnd);
        if self.mode == Mode::ProbeRtt {
            path.window.set_segments(path.window.segments().min(MIN_CWND));
        }
    }

    fn towards_target(&self, path: &Path<'_>, cwnd: u32, acked: u32) -> u32 {
        let estimate = self.estimate();
        let extra = if self.full_bandwidth_reached { self.aggregation.cwnd(estimate) } else { 0 };
        let target = self.with_budget(path, self.bdp(estimate, self.cwnd_gain).saturating_add(extra));
        let cwnd = if self.full_bandwidth_reached {
            cwnd.saturating_add(acked).min(target)
        } else if cwnd < target || path.delivery.delivered() < u64::from(INITIAL_CWND) {
            cwnd.saturating_add(acked)
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }

    /// In the first round of a recovery as much is sent as is delivered; after it the window comes back. Returns the
    /// window and whether that is all.
    fn cwnd_in_recovery(&mut self, path: &Path<'_>, sample: &RateSample, acked: u32) -> (u32, bool) {
        let lost = u32::try_from(sample.newly_lost).unwrap_or(u32::MAX);
        let mut cwnd = path.window.segments().saturating_sub(lost).max(1);
        let conserving = path.segments_in_flight.saturating_add(acked);
        let (before, state) = (self.previous_state, path.state);
        if state == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = path.delivery.delivered();
            cwnd = conserving;
        } else if before >= CaState::Recovery && state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.previous_state = state;
        if self.packet_conservation { (cwnd.max(conserving), true) } else { (cwnd, false) }
    }

    fn save_cwnd(&mut self, window: &Window) {
        let good = self.previous_state < CaState::Recovery && self.mode != Mode::ProbeRtt;
        let cwnd = window.segments();
        self.prior_cwnd = if good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    // ---- what happens to the sender

    /// A loss or a timeout: the window is to come back afterwards. The threshold stays.
    pub(crate) fn ssthresh_after_loss(&mut self, window: &Window) -> u32 {
        self.save_cwnd(window);
        window.ssthresh()
    }

    /// A timeout is like the end of a round.
    pub(crate) fn on_timeout(&mut self, path: &Path<'_>) {
        self.previous_state = CaState::Loss;
        self.full_bandwidth = 0;
        self.round_start = true;
        self.sample_long_term(path, true, false);
    }

    /// A loss was none: what it has taught is forgotten; the window needs no repair.
    pub(crate) fn undo(&mut self, path: &Path<'_>) {
        self.full_bandwidth = 0;
        self.full_bandwidth_count = 0;
        self.policer.reset(&Self::evidence(path));
    }

    /// Something is sent while nothing was in flight: after idleness at the estimated bandwidth, no faster.
    pub(crate) fn on_transmission_start(&mut self, path: &mut Path<'_>) {
        if !path.delivery.is_app_limited() {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(micros(path.now));
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(path, UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(path),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_are_those_of_linux() {
        let exact = 2.0 / core::f64::consts::LN_2;
        assert_eq!((HIGH_GAIN, DRAIN_GAIN, CWND_GAIN), (739, 88, 512));
        // 739/256 is 2.887: just above 2/ln 2; 88/256 is 0.344: just below its inverse.
        let (high, drain) = (f64::from(HIGH_GAIN) / 256.0, f64::from(DRAIN_GAIN) / 256.0);
        assert!(high > exact && high - exact < 0.002 && drain < 1.0 / exact && 1.0 / exact - drain < 0.003);
        assert_eq!(CYCLE, [320, 192, 256, 256, 256, 256, 256, 256]);
        // On average the cycle neither fills nor drains.
        assert_eq!(CYCLE.iter().sum::<u32>(), 8 * UNIT);
        assert_eq!((FULL_BANDWIDTH_GAIN, FULL_BANDWIDTH_ROUNDS), (320, 3));
        assert_eq!((MIN_RTT_WINDOW_MS, PROBE_RTT_MS, MIN_CWND), (10_000, 200, 4));
    }

    #[test]
    fn ten_megabits_and_fifty_milliseconds_are_forty_two_packets() {
        let mut bbr = Bbr::new(0);
        // Packets of 1500 bytes a microsecond.
        let bandwidth = (10_000_000 << BW_SCALE) / (8 * 1_500 * 1_000_000);
        assert_eq!(bbr.bdp(bandwidth, UNIT), INITIAL_CWND, "nothing is known of the round trip");
        bbr.min_rtt_us = Some(50_000);
        // 41.67, rounded up; twice, once and a quarter.
        assert_eq!([UNIT, CWND_GAIN, UNIT * 5 / 4].map(|gain| bbr.bdp(bandwidth, gain)), [42, 84, 53]);
        // 1 % below: 9.9 Mbit/s.
        let rate = bytes_per_second(bandwidth, UNIT, 1_500) * 8;
        assert!(rate.abs_diff(9_900_000) < 2_000, "{rate}");
    }
}
