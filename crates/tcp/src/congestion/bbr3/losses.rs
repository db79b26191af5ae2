//! What losses teach (draft-ietf-ccwg-bbr-06 sections 5.5.10, 5.5.11 and 5.6.4.4).

use super::{Bbr3, State, Undo};
use crate::congestion::{CaState, Path, Window};
use crate::delivery_rate::{LostSegment, RateSample};

/// LossThresh, percent; Beta, tenths.
const LOSS_THRESHOLD: u64 = 2;
const BETA_TENTHS: u64 = 7;

/// How much a segment saw in flight and lost from its sending on: RS.tx_in_flight, RS.lost, RS.is_app_limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) tx_in_flight: u64,
    pub(super) lost: u64,
    pub(super) app_limited: bool,
}

impl From<&RateSample> for Seen {
    fn from(sample: &RateSample) -> Self {
        Self {
            tx_in_flight: u64::from(sample.tx_in_flight),
            lost: sample.lost,
            app_limited: sample.app_limited,
        }
    }
}

/// The larger of two bounds, where `None` is infinite.
fn looser(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.max(b?))
}

impl Bbr3 {
    pub(super) fn update_latest_delivery_signals(&mut self, path: &Path<'_>, sample: &RateSample, rate: u64) {
        self.loss_round_start = false;
        let Some(delivered) = sample.delivered else { return };
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(delivered);
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = path.delivery.delivered();
            self.loss_round_start = true;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    pub(super) fn update_congestion_signals(&mut self, path: &Path<'_>, sample: &RateSample, rate: u64) {
        self.update_max_bw(path, sample, rate);
        if !self.loss_round_start {
            return;
        }
        if !self.state.is_probing() && self.is_loss_in_round {
            let bw = self.bw_shortterm.unwrap_or(self.max_bw());
            let inflight = self.inflight_shortterm.unwrap_or(u64::from(path.window.cwnd()));
            self.bw_shortterm = Some(self.bw_latest.max(bw * BETA_TENTHS / 10));
            self.inflight_shortterm = Some(self.inflight_latest.max(inflight * BETA_TENTHS / 10));
        }
        self.is_loss_in_round = false;
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = None;
        self.inflight_shortterm = None;
    }

    pub(super) fn handle_lost_segments(&mut self, path: &mut Path<'_>) {
        for index in 0..path.delivery.lost_segments().len() {
            let Some(&lost) = path.delivery.lost_segments().get(index) else { break };
            self.handle_lost_segment(path, &lost);
        }
    }

    pub(super) fn handle_lost_segment(&mut self, path: &mut Path<'_>, lost: &LostSegment) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = path.delivery.delivered();
            self.save_state_upon_loss(path.window);
        }
        self.is_loss_in_round = true;
        self.loss_ranges = self.loss_ranges.saturating_add(u32::from(lost.apart));
        if !self.is_bw_probe_sample {
            return;
        }
        let mut seen =
            Seen { tx_in_flight: u64::from(lost.in_flight), lost: lost.lost, app_limited: lost.app_limited };
        if Self::is_inflight_too_high(path, seen) {
            seen.tx_in_flight = Self::inflight_at_loss(seen, lost.size);
            self.handle_inflight_too_high(path, seen);
        }
    }

    pub(super) fn is_inflight_too_high(path: &Path<'_>, seen: Seen) -> bool {
        seen.lost * 100 > seen.tx_in_flight * LOSS_THRESHOLD || (seen.lost > 0 && !path.selective)
    }

    /// At which part of the lost segment the losses crossed the threshold.
    pub(super) fn inflight_at_loss(seen: Seen, size: u64) -> u64 {
        let inflight_prev = seen.tx_in_flight.saturating_sub(size);
        let lost_prev = seen.lost.saturating_sub(size);
        let budget = (inflight_prev * LOSS_THRESHOLD).saturating_sub(lost_prev * 100);
        inflight_prev + budget / (100 - LOSS_THRESHOLD)
    }

    pub(super) fn handle_inflight_too_high(&mut self, path: &mut Path<'_>, seen: Seen) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !seen.app_limited {
            let bound = self.target_inflight(path) * BETA_TENTHS / 10;
            self.inflight_longterm = Some(seen.tx_in_flight.max(bound));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(path);
        }
    }

    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let good = self.previous_state < CaState::Recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if good { window.cwnd() } else { self.prior_cwnd.max(window.cwnd()) };
    }

    pub(super) fn restore_cwnd(&self, window: &mut Window) {
        window.set(window.cwnd().max(self.prior_cwnd));
    }

    pub(super) fn save_state_upon_loss(&mut self, window: &Window) {
        self.save_cwnd(window);
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Notices where a recovery begins and ends.
    pub(super) fn follow_recovery(&mut self, path: &mut Path<'_>) {
        let (before, state) = (self.previous_state, path.state);
        if state == CaState::Recovery && before < CaState::Recovery {
            self.save_state_upon_loss(path.window);
        } else if before >= CaState::Recovery && state < CaState::Recovery {
            self.restore_cwnd(path.window);
        }
        self.previous_state = state;
    }

    /// OnEnterRTO; the window was reduced to a segment already, and saved before that.
    pub(crate) fn on_timeout(&mut self, path: &mut Path<'_>) {
        self.previous_state = CaState::Loss;
        self.handle_lost_segments(path);
    }

    /// A loss or a timeout is about to reduce the window. The threshold stays: nothing goes by it.
    pub(crate) fn ssthresh_after_loss(&mut self, window: &Window) -> u32 {
        self.save_state_upon_loss(window);
        window.ssthresh()
    }

    /// HandleSpuriousLossDetection.
    pub(crate) fn undo(&mut self, path: &mut Path<'_>) {
        self.restore_cwnd(path.window);
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = looser(self.bw_shortterm, self.undo.bw_shortterm);
        self.inflight_shortterm = looser(self.inflight_shortterm, self.undo.inflight_shortterm);
        self.inflight_longterm = looser(self.inflight_longterm, self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill(path);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(tx_in_flight: u64, lost: u64) -> Seen {
        Seen { tx_in_flight, lost, app_limited: false }
    }

    #[test]
    fn losses_cross_two_percent_within_the_segment() {
        // A burst of 10 kB, the last of 100 kB in flight, 3 kB of losses before it: two percent were crossed before.
        assert_eq!(Bbr3::inflight_at_loss(seen(100_000, 13_000), 10_000), 90_000);
        // No loss before it: 0.02 * 90000 / 0.98 of it could be lost.
        assert_eq!(Bbr3::inflight_at_loss(seen(100_000, 10_000), 10_000), 90_000 + 1_836);
    }

    #[test]
    fn an_unknown_bound_is_the_loosest() {
        assert_eq!(looser(None, Some(5)), None);
        assert_eq!(looser(Some(4), Some(5)), Some(5));
    }
}
