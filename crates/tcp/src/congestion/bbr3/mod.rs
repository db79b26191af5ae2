//! BBR, version 3 (draft-ietf-ccwg-bbr-06, 6 July 2026): like version 1 it follows a model of the path, but it probes in
//! four phases, listens to losses above two percent, and keeps what they teach in two models - a short-term one that is
//! dropped when it probes again, a long-term one of how much may be in flight.
//!
//! Amounts are bytes of data, rates bytes a second; the functions have the draft's names. Section 5 is followed step by
//! step; where losses end the start-up (5.3.1.3, in prose there) the loss rate is that of the round trip that the
//! acknowledgement ends. What the draft leaves to chance is drawn from a seed that comes in with the connection.
//!
//! Left out: offloading and its budget beyond the send quantum, control of the receiver's acknowledgements (4.1.3.3).
//! ECN has no part in this edition (3.7).

mod control;
mod losses;
mod probe_bw;

use core::time::Duration;

use careof_base::{DataRate, Instant, RandomStream};

use super::windowed_max::WindowedMax;
use super::{CaState, Path};
use crate::delivery_rate::RateSample;
use crate::snapshot::PathModel;

/// Gains in percent.
const STARTUP_PACING_GAIN: u64 = 277;
const DRAIN_PACING_GAIN: u64 = 50;
const DOWN_PACING_GAIN: u64 = 90;
const UP_PACING_GAIN: u64 = 125;
const DEFAULT_CWND_GAIN: u64 = 200;
const UP_CWND_GAIN: u64 = 225;
const PROBE_RTT_CWND_GAIN: u64 = 50;
const UNIT: u64 = 100;

/// Ranges lost in a round that end the start-up (BBRStartupFullLossCnt).
const STARTUP_FULL_LOSSES: u32 = 6;

const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
const EXTRA_ACKED_ROUNDS: u64 = 10;
const FULL_BW_ROUNDS: u32 = 3;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The stream of random numbers for the times of probing.
const STREAM: &str = "tcp.bbr3";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Sending faster than before, so that losses are taken for the path's limit.
    const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Pacing gain and window gain, percent (section 5.6.1).
    const fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (STARTUP_PACING_GAIN, DEFAULT_CWND_GAIN),
            Self::Drain => (DRAIN_PACING_GAIN, DEFAULT_CWND_GAIN),
            Self::Down => (DOWN_PACING_GAIN, DEFAULT_CWND_GAIN),
            Self::Cruise | Self::Refill => (UNIT, DEFAULT_CWND_GAIN),
            Self::Up => (UP_PACING_GAIN, UP_CWND_GAIN),
            Self::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "probe-bw-down",
            Self::Cruise => "probe-bw-cruise",
            Self::Refill => "probe-bw-refill",
            Self::Up => "probe-bw-up",
            Self::ProbeRtt => "probe-rtt",
        }
    }
}

/// What acknowledgements say about a probe for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// What is restored when losses turn out to be none.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// The state that losses ended.
    state: Option<State>,
    bw_shortterm: Option<u64>,
    inflight_shortterm: Option<u64>,
    inflight_longterm: Option<u64>,
}

fn percent(amount: u64, gain: u64) -> u64 {
    u64::try_from(u128::from(amount) * u128::from(gain) / 100).unwrap_or(u64::MAX)
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    state: State,
    previous_state: CaState,

    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,
    idle_restart: bool,

    /// Maxima of the previous and of the current probing cycle.
    max_bw: [u64; 2],
    bw: u64,
    bw_shortterm: Option<u64>,
    inflight_shortterm: Option<u64>,
    inflight_longterm: Option<u64>,

    is_loss_in_round: bool,
    loss_ranges: u32,
    loss_round_delivered: u64,
    loss_round_start: bool,
    /// The last loss round began in fast recovery.
    recovering_for_a_round: bool,
    bw_latest: u64,
    inflight_latest: u64,

    full_bw: u64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,

    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    bw_probe_up_acked: u64,
    bw_probe_up_rounds: u32,
    /// `None`: not growing.
    probe_up_acked_per_inc: Option<u64>,
    rounds_since_probe_up: u64,
    bw_probe_wait: Duration,
    cycle_stamp: Instant,
    /// The window was used up in this round trip, and in the last.
    cwnd_limited: [bool; 2],

    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,

    extra_acked: u64,
    extra_acked_filter: WindowedMax,
    extra_acked_start: Instant,
    extra_acked_delivered: u64,

    send_quantum: u64,
    prior_cwnd: u32,
    seen_rtt: bool,
    undo: Undo,
    chance: RandomStream,
}

impl Bbr3 {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: State::Startup,
            previous_state: CaState::Open,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            idle_restart: false,
            max_bw: [0; 2],
            bw: 0,
            bw_shortterm: None,
            inflight_shortterm: None,
            inflight_longterm: None,
            is_loss_in_round: false,
            loss_ranges: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            recovering_for_a_round: false,
            bw_latest: 0,
            inflight_latest: 0,
            full_bw: 0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            bw_probe_up_acked: 0,
            bw_probe_up_rounds: 0,
            probe_up_acked_per_inc: None,
            rounds_since_probe_up: 0,
            bw_probe_wait: Duration::ZERO,
            cycle_stamp: Instant::ZERO,
            cwnd_limited: [false; 2],
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            extra_acked: 0,
            extra_acked_filter: WindowedMax::default(),
            extra_acked_start: Instant::ZERO,
            extra_acked_delivered: 0,
            send_quantum: 0,
            prior_cwnd: 0,
            seen_rtt: false,
            undo: Undo::default(),
            chance: RandomStream::new(seed, 0, STREAM),
        }
    }

    /// Forgets the path.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self { chance: self.chance.clone(), ..Self::new(0) };
    }

    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.chance = RandomStream::new(seed, 0, STREAM);
    }

    /// What the model holds.
    pub(crate) fn model(&self) -> PathModel {
        let (pacing_gain, cwnd_gain) = self.state.gains();
        PathModel {
            mode: self.state.name(),
            bandwidth: DataRate::from_bits_per_second(self.bw.saturating_mul(8)),
            min_rtt: self.min_rtt,
            pacing_gain: (pacing_gain * 256 / UNIT) as u32,
            cwnd_gain: (cwnd_gain * 256 / UNIT) as u32,
        }
    }

    /// OnInit.
    pub(crate) fn begin(&mut self, path: &mut Path<'_>) {
        path.window.set_ssthresh(u32::MAX);
        self.min_rtt = path.srtt;
        self.min_rtt_stamp = path.now;
        self.probe_rtt_min_delay = path.srtt;
        self.probe_rtt_min_stamp = path.now;
        self.extra_acked_start = path.now;
        self.init_pacing_rate(path);
    }

    /// UpdateOnACK. The losses that the acknowledgement gave away come first.
    pub(crate) fn on_sample(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        self.follow_recovery(path);
        self.handle_lost_segments(path);
        let rate = match (sample.delivered, sample.interval) {
            (Some(delivered), Some(interval)) => {
                let rate = u128::from(delivered) * NANOS_PER_SECOND / interval.as_nanos().max(1);
                u64::try_from(rate).unwrap_or(u64::MAX)
            }
            _ => 0,
        };
        self.update_latest_delivery_signals(path, sample, rate);
        self.update_congestion_signals(path, sample, rate);
        self.note_cwnd_limited(path, sample);
        self.update_ack_aggregation(path, sample);
        self.check_full_bw_reached(sample, rate);
        self.check_startup_done(path, sample);
        self.check_drain_done(path);
        self.update_probe_bw_cycle_phase(path, sample, rate);
        self.update_min_rtt(path, sample);
        self.check_probe_rtt(path, sample);
        if self.loss_round_start {
            self.bw_latest = rate;
            self.inflight_latest = sample.delivered.unwrap_or(0);
        }
        self.bound_bw_for_model();
        self.set_pacing_rate(path, self.state.gains().0);
        self.set_send_quantum(path);
        self.set_cwnd(path, sample.newly_delivered);
    }

    // ---- rounds and bandwidth (5.5.1 to 5.5.6)

    fn start_round(&mut self, path: &Path<'_>) {
        self.next_round_delivered = path.delivery.delivered();
    }

    fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    fn advance_max_bw_filter(&mut self) {
        self.max_bw = [self.max_bw[1], 0];
    }

    fn update_max_bw(&mut self, path: &Path<'_>, sample: &RateSample, rate: u64) {
        self.round_start = sample.delivered.is_some() && sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round(path);
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
        if rate > 0 && (rate >= self.max_bw() || !sample.app_limited) {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
    }

    fn bound_bw_for_model(&mut self) {
        self.bw = self.bw_shortterm.map_or(self.max_bw(), |bw| bw.min(self.max_bw()));
    }

    // ---- start-up and drain (5.3.1, 5.3.2)

    fn reset_full_bw(&mut self) {
        self.full_bw = 0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    fn check_full_bw_reached(&mut self, sample: &RateSample, rate: u64) {
        if self.full_bw_now || !self.round_start || sample.app_limited {
            return;
        }
        if u128::from(rate) * 4 >= u128::from(self.full_bw) * 5 {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn check_startup_done(&mut self, path: &Path<'_>, sample: &RateSample) {
        if self.state == State::Startup {
            self.check_startup_high_loss(path, sample);
        }
        if self.loss_round_start {
            self.recovering_for_a_round = path.state == CaState::Recovery;
            self.loss_ranges = 0;
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    fn check_startup_high_loss(&mut self, path: &Path<'_>, sample: &RateSample) {
        let recovering = path.state == CaState::Recovery;
        let high = if path.selective {
            recovering
                && self.loss_round_start
                && self.recovering_for_a_round
                && self.loss_ranges >= STARTUP_FULL_LOSSES
                && Self::is_inflight_too_high(path, sample.into())
        } else {
            recovering && sample.newly_lost > 0
        };
        if high {
            self.undo.state = Some(State::Startup);
            self.full_bw_now = true;
            self.full_bw_reached = true;
            self.inflight_longterm = Some(self.bdp(self.bw).unwrap_or(0).max(self.inflight_latest));
        }
    }

    fn check_drain_done(&mut self, path: &mut Path<'_>) {
        if self.state == State::Drain
            && (u64::from(path.in_flight) <= self.inflight(path, self.bw)
                || self.round_count > self.drain_start_round + 3)
        {
            self.start_down(path);
        }
    }

    // ---- the round trip (5.3.4)

    fn update_min_rtt(&mut self, path: &Path<'_>, sample: &RateSample) {
        self.probe_rtt_expired = path.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|least| rtt < least))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = path.now;
        }
        let expired = path.now > self.min_rtt_stamp + MIN_RTT_FILTER;
        if let Some(delay) = self.probe_rtt_min_delay
            && (expired || self.min_rtt.is_none_or(|min_rtt| delay < min_rtt))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    fn check_probe_rtt(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd(path.window);
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(path);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(path);
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, path: &mut Path<'_>) {
        path.mark_app_limited();
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(path);
            }
        } else if u64::from(path.in_flight) <= self.probe_rtt_cwnd(path) {
            self.probe_rtt_done = Some(path.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round(path);
        }
    }

    fn check_probe_rtt_done(&mut self, path: &mut Path<'_>) {
        if self.probe_rtt_done.is_none_or(|done| path.now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = path.now;
        self.restore_cwnd(path.window);
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_down(path);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    // ---- aggregation (5.5.9)

    fn update_ack_aggregation(&mut self, path: &Path<'_>, sample: &RateSample) {
        let interval = path.now - self.extra_acked_start;
        let mut expected = Self::volume(self.bw, interval);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0;
            self.extra_acked_start = path.now;
            expected = 0;
        }
        self.extra_acked_delivered += sample.newly_delivered;
        let extra = self.extra_acked_delivered.saturating_sub(expected).min(u64::from(path.window.cwnd()));
        let rounds = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked = self.extra_acked_filter.update(rounds, self.round_count, extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gains_are_those_of_the_draft() {
        // 4 ln 2 is 2.7726.
        assert!((4.0 * core::f64::consts::LN_2 * 100.0 - STARTUP_PACING_GAIN as f64).abs() < 0.5);
        let gains = [
            State::Startup,
            State::Drain,
            State::Down,
            State::Cruise,
            State::Refill,
            State::Up,
            State::ProbeRtt,
        ]
        .map(State::gains);
        let table = [(277, 200), (50, 200), (90, 200), (100, 200), (100, 200), (125, 225), (100, 50)];
        assert_eq!(gains, table);
        assert_eq!((MIN_RTT_FILTER, PROBE_RTT_INTERVAL), (Duration::from_secs(10), Duration::from_secs(5)));
        assert_eq!(PROBE_RTT_DURATION, Duration::from_millis(200));
    }
}
