//! Pacing rate, send quantum and window (draft-ietf-ccwg-bbr-06 section 5.6).

use core::time::Duration;

use super::{Bbr3, NANOS_PER_SECOND, PROBE_RTT_CWND_GAIN, STARTUP_PACING_GAIN, State, UNIT, percent};
use crate::congestion::Path;

/// MinPipeCwnd, segments.
const MIN_PIPE_SEGMENTS: u64 = 4;

/// The pacing rate stays this much below what the model says.
const PACING_MARGIN_PERCENT: u64 = 1;

/// Most bytes that leave at once.
const MAX_SEND_QUANTUM: u64 = 64 * 1_024;

fn bytes(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

impl Bbr3 {
    pub(super) fn volume(rate: u64, span: Duration) -> u64 {
        u64::try_from(u128::from(rate) * span.as_nanos() / NANOS_PER_SECOND).unwrap_or(u64::MAX)
    }

    pub(super) fn init_pacing_rate(&mut self, path: &mut Path<'_>) {
        self.seen_rtt = path.srtt.is_some();
        let srtt = path.srtt.unwrap_or(Duration::from_millis(1)).as_nanos().max(1);
        let nominal = u128::from(path.window.initial()) * NANOS_PER_SECOND / srtt;
        let nominal = u64::try_from(nominal).unwrap_or(u64::MAX);
        path.pacing.set_rate(percent(nominal, STARTUP_PACING_GAIN));
        self.set_send_quantum(path);
    }

    pub(super) fn set_pacing_rate(&mut self, path: &mut Path<'_>, gain: u64) {
        if !self.seen_rtt && path.srtt.is_some() {
            self.init_pacing_rate(path);
        }
        let rate = percent(percent(self.bw, gain), 100 - PACING_MARGIN_PERCENT);
        if self.full_bw_reached || path.pacing.rate().is_none_or(|current| rate > current) {
            path.pacing.set_rate(rate);
        }
    }

    pub(super) fn set_send_quantum(&mut self, path: &mut Path<'_>) {
        let mss = u64::from(path.window.mss().max(1));
        let rate = path.pacing.rate().unwrap_or(0);
        self.send_quantum = (rate / 1_000).min(MAX_SEND_QUANTUM).max(2 * mss);
        path.pacing.set_quantum(bytes(self.send_quantum / mss));
    }

    /// Bandwidth times the least round trip; `None` before there is one.
    pub(super) fn bdp(&self, bw: u64) -> Option<u64> {
        self.min_rtt.map(|min_rtt| Self::volume(bw, min_rtt))
    }

    pub(super) fn bdp_multiple(&self, path: &Path<'_>, bw: u64, gain: u64) -> u64 {
        self.bdp(bw).map_or(u64::from(path.window.initial()), |bdp| percent(bdp, gain))
    }

    pub(super) fn min_pipe_cwnd(path: &Path<'_>) -> u64 {
        MIN_PIPE_SEGMENTS * u64::from(path.window.mss())
    }

    pub(super) fn quantization_budget(&self, path: &Path<'_>, inflight_cap: u64) -> u64 {
        let cap = inflight_cap.max(3 * self.send_quantum).max(Self::min_pipe_cwnd(path));
        cap + if self.state == State::Up { 2 * u64::from(path.window.mss()) } else { 0 }
    }

    pub(super) fn inflight(&self, path: &Path<'_>, bw: u64) -> u64 {
        self.quantization_budget(path, self.bdp_multiple(path, bw, UNIT))
    }

    pub(super) fn target_inflight(&self, path: &Path<'_>) -> u64 {
        let cwnd = u64::from(path.window.cwnd());
        self.bdp(self.bw).map_or(cwnd, |bdp| bdp.min(cwnd))
    }

    pub(super) fn probe_rtt_cwnd(&self, path: &Path<'_>) -> u64 {
        self.bdp_multiple(path, self.bw, PROBE_RTT_CWND_GAIN).max(Self::min_pipe_cwnd(path))
    }

    pub(super) fn set_cwnd(&self, path: &mut Path<'_>, newly_acked: u64) {
        let inflight_cap = self.bdp_multiple(path, self.bw, self.state.gains().1) + self.extra_acked;
        let max_inflight = self.quantization_budget(path, inflight_cap);
        let mut cwnd = u64::from(path.window.cwnd());
        if self.full_bw_reached {
            cwnd = (cwnd + newly_acked).min(max_inflight);
        } else if cwnd < max_inflight || path.delivery.delivered() < u64::from(path.window.initial()) {
            cwnd += newly_acked;
        }
        cwnd = cwnd.max(Self::min_pipe_cwnd(path));
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd(path));
        }
        path.window.set(bytes(cwnd.min(self.cap_of_model(path))));
    }

    pub(super) fn cap_of_model(&self, path: &Path<'_>) -> u64 {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(path),
            State::Startup | State::Drain => None,
        };
        let cap = longterm.unwrap_or(u64::MAX).min(self.inflight_shortterm.unwrap_or(u64::MAX));
        cap.max(Self::min_pipe_cwnd(path))
    }

    /// HandleRestartFromIdle (5.4.1).
    pub(crate) fn on_transmission_start(&mut self, path: &mut Path<'_>) {
        if !path.delivery.is_app_limited() {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_start = path.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(path, UNIT);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(path);
        }
    }
}
