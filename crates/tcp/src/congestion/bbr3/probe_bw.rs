//! Probing for bandwidth in four phases (draft-ietf-ccwg-bbr-06 section 5.3.3).

use core::time::Duration;

use super::losses::Seen;
use super::{AckPhase, Bbr3, State, percent};
use crate::congestion::{Path, Window};
use crate::delivery_rate::RateSample;
use crate::timer::nanos;

/// Rounds after which bandwidth is probed so that Reno and CUBIC are left their share; one less by chance.
const RENO_ROUNDS: u64 = 63;
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_CHANCE: Duration = Duration::from_secs(1);

/// Headroom: this part of inflight_longterm is left to others, percent.
const HEADROOM: u64 = 15;

impl Bbr3 {
    pub(super) fn start_down(&mut self, path: &Path<'_>) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = None;
        self.rounds_since_probe_up = self.chance.below(2);
        self.bw_probe_wait = PROBE_WAIT + Duration::from_nanos(self.chance.below(nanos(PROBE_WAIT_CHANCE)));
        self.cycle_stamp = path.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(path);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, path: &Path<'_>) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(path);
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, path: &Path<'_>, rate: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(path);
        self.reset_full_bw();
        self.full_bw = rate;
        self.state = State::Up;
        self.raise_inflight_longterm_slope(path.window);
    }

    pub(super) fn update_probe_bw_cycle_phase(
        &mut self,
        path: &mut Path<'_>,
        sample: &RateSample,
        rate: u64,
    ) {
        if !self.full_bw_reached || self.adapt_long_term_model(path, sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(path) => self.start_refill(path),
            State::Down if self.is_time_to_cruise(path) => self.state = State::Cruise,
            // After one round.
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_up(path, rate);
            }
            State::Up if self.is_time_to_go_down(path, rate) => {
                self.prev_probe_too_high = false;
                self.start_down(path);
            }
            _ => {}
        }
    }

    pub(super) fn is_time_to_probe_bw(&self, path: &Path<'_>) -> bool {
        let reno_rounds = self.target_inflight(path) / u64::from(path.window.mss().max(1));
        path.now > self.cycle_stamp + self.bw_probe_wait
            || self.rounds_since_probe_up >= reno_rounds.min(RENO_ROUNDS)
    }

    pub(super) fn is_time_to_cruise(&self, path: &Path<'_>) -> bool {
        let in_flight = u64::from(path.in_flight);
        self.inflight_with_headroom(path).is_none_or(|headroom| in_flight <= headroom)
            && in_flight <= self.inflight(path, self.max_bw())
    }

    pub(super) fn is_time_to_go_down(&mut self, path: &Path<'_>, rate: u64) -> bool {
        let Some(longterm) = self.inflight_longterm else { return self.full_bw_now };
        if self.prev_probe_too_high && u64::from(path.in_flight) >= longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && u64::from(path.window.cwnd()) >= longterm {
            // The bandwidth is limited by inflight_longterm.
            self.reset_full_bw();
            self.full_bw = rate;
            return false;
        }
        self.full_bw_now
    }

    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    pub(super) fn note_cwnd_limited(&mut self, path: &Path<'_>, sample: &RateSample) {
        if self.round_start {
            self.cwnd_limited = [false, self.cwnd_limited[0]];
        }
        let room = u64::from(path.window.cwnd()).saturating_sub(sample.prior_in_flight);
        self.cwnd_limited[0] |= room < u64::from(path.window.mss());
    }

    /// What leaves others room in the buffer; `None`: nothing is known of a limit.
    pub(super) fn inflight_with_headroom(&self, path: &Path<'_>) -> Option<u64> {
        let longterm = self.inflight_longterm?;
        let headroom = percent(longterm, HEADROOM).max(u64::from(path.window.mss()));
        Some(longterm.saturating_sub(headroom).max(Self::min_pipe_cwnd(path)))
    }

    pub(super) fn raise_inflight_longterm_slope(&mut self, window: &Window) {
        let growth = 1_u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = Some((u64::from(window.cwnd()) / growth).max(u64::from(window.mss())));
    }

    pub(super) fn probe_inflight_longterm_upward(&mut self, path: &Path<'_>, longterm: u64, acked: u64) {
        if !self.is_cwnd_limited() || u64::from(path.window.cwnd()) < longterm {
            return;
        }
        self.bw_probe_up_acked += acked;
        if let Some(per_inc) = self.probe_up_acked_per_inc
            && self.bw_probe_up_acked >= per_inc
        {
            let delta = self.bw_probe_up_acked / per_inc;
            self.bw_probe_up_acked -= delta * per_inc;
            self.inflight_longterm = Some(longterm + delta * u64::from(path.window.mss()));
        }
        if self.round_start {
            self.raise_inflight_longterm_slope(path.window);
        }
    }

    /// Returns whether it decided a transition.
    pub(super) fn adapt_long_term_model(&mut self, path: &Path<'_>, sample: &RateSample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() {
                if !sample.app_limited {
                    self.advance_max_bw_filter();
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill(path);
                    return true;
                }
            }
        }
        let seen = Seen::from(sample);
        if !Self::is_inflight_too_high(path, seen)
            && let Some(longterm) = self.inflight_longterm
        {
            let longterm = longterm.max(seen.tx_in_flight);
            self.inflight_longterm = Some(longterm);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(path, longterm, sample.newly_delivered);
            }
        }
        false
    }
}
