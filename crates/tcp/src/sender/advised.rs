//! What the sender does about [advice](crate::Advice).

use careof_base::Instant;

use super::{Outgoing, Sender};
use crate::config::{Config, Variant};
use crate::recovery::frto::Frto;
use crate::recovery::{self, eifel_response};
use crate::rto::{Estimator, Told};
use crate::snapshot::Phase;

impl Sender {
    /// The estimator begins anew, with what it was told.
    pub(crate) fn tell_estimator(&mut self, now: Instant, told: Told, config: &Config) {
        self.estimator = Estimator::told(told, now, config);
        self.stop_timing();
        self.adaptation = None;
        eifel_response::forget_timing(self);
        if self.variant == Variant::Vegas {
            recovery::vegas::forget_round_trips(self);
        }
        if self.persist.timer().is_armed() {
            self.persist.start(now, self.estimator.rto());
        }
    }

    /// What waits for an acknowledgement waits from now on.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        if self.away.is_some() {
            return self.wait_for_path();
        }
        if self.queue.is_empty() {
            return;
        }
        if self.variant == Variant::Linux {
            recovery::linux::restart_timer(self, now);
        } else {
            self.timer.arm(self.estimator.deadline(now));
        }
        if self.rack_tlp.is_some() {
            recovery::rack_tlp::arm_probe(self, now);
        }
    }

    /// Congestion control and the window as in a new connection, but with one segment.
    pub(crate) fn start_slowly(&mut self, now: Instant, config: &Config) {
        // Its threshold and its proportional reduction are the old path's.
        if self.phase == Phase::FastRecovery || self.is_reducing() {
            self.repeat_all(now);
        }
        self.begin_control(now, self.mss, config.initial_ssthresh, config);
    }

    pub(super) fn is_reducing(&self) -> bool {
        self.variant == Variant::Linux && self.linux.is_reducing()
    }

    /// Window and threshold, bytes, whichever sender it is.
    pub(crate) fn control(&self) -> (u32, u32) {
        if self.variant == Variant::Linux20 {
            let segments = &self.linux20;
            let threshold = segments.ssthresh().map_or(u32::MAX, |count| count.saturating_mul(self.mss));
            (segments.cwnd().saturating_mul(self.mss), threshold)
        } else {
            (self.window.cwnd(), self.window.ssthresh())
        }
    }

    /// Sets both.
    pub(super) fn set_control(&mut self, now: Instant, cwnd: u32, ssthresh: u32) {
        match self.variant {
            Variant::Linux20 => self.linux20.set_window(cwnd / self.mss.max(1), ssthresh, self.mss),
            Variant::Linux => {
                self.window.set_segments(cwnd / self.mss.max(1));
                self.window.set_ssthresh(ssthresh);
                let threshold = self.window.ssthresh_segments();
                self.window.set_ssthresh_segments(threshold);
                self.linux.window_changed(now);
            }
            _ => {
                self.window.set(cwnd);
                self.window.set_ssthresh(ssthresh);
            }
        }
    }

    pub(super) fn begin_control(&mut self, now: Instant, cwnd: u32, ssthresh: u32, config: &Config) {
        self.before_recovery = None;
        let end = self.queue.end();
        self.congestion.begin_anew(config);
        self.congestion.begin(now, end);
        if self.variant == Variant::Linux {
            self.linux.forget_undo();
        }
        self.set_control(now, cwnd, ssthresh);
        if self.variant == Variant::Vegas {
            recovery::vegas::forget_path(self, now);
        }
        if let Some(delivery) = &mut self.queue.delivery {
            delivery.forget_min_rtt();
        }
        self.begin_model(now);
        let state = self.ca_state();
        self.congestion.on_state(state, now, end);
    }

    /// The least round trip is measured anew.
    pub(crate) fn measure_base_rtt(&mut self, now: Instant) {
        self.congestion.measure_base_rtt(now);
        if self.variant == Variant::Vegas {
            recovery::vegas::measure_base_rtt(self, now);
        }
    }

    /// The path is gone.
    pub(crate) fn leave(&mut self, now: Instant) {
        let until = now + self.rules.rto_max;
        if self.away.is_none() {
            let runs = self.timer.is_armed();
            self.suspended = runs.then(|| self.timer.deadline().saturating_duration_since(now));
        }
        self.away = Some(until);
        self.may_send = false;
        self.persist.stop();
        self.pacing.stop();
        if let Some(state) = &mut self.rack_tlp {
            state.stop();
        }
        self.stop_timer();
        self.timer.arm(until);
    }

    /// The path is away: whatever an acknowledgement did to the timer, it runs.
    fn wait_for_path(&mut self) {
        if let Some(until) = self.away
            && !self.timer.is_armed()
        {
            self.timer.arm(until);
        }
    }

    /// The path is away: nothing leaves.
    #[cold]
    pub(super) fn stay_silent(&mut self) -> Option<Outgoing> {
        self.wait_for_path();
        None
    }

    /// The timer ran out while the path was away. Returns whether the sender goes on, nobody having said more for so
    /// long; then what is outstanding has timed out.
    #[cold]
    pub(super) fn return_unbidden(&mut self, now: Instant) -> bool {
        if let Some(until) = self.away.filter(|&until| now < until) {
            self.timer.arm(until);
            return false;
        }
        self.arrive();
        let outstanding = !self.queue.is_empty();
        if outstanding && self.variant == Variant::Linux {
            recovery::linux::expect_timeout(self);
        }
        outstanding
    }

    pub(super) fn arrive(&mut self) {
        if self.away.take().is_some() {
            self.may_send = true;
            self.stop_timer();
            self.linux.wake();
        }
    }

    /// There is a path, with a window of `window` bytes; what is outstanding is sent again if `repeat`.
    pub(crate) fn come_back(&mut self, now: Instant, window: Option<u32>, repeat: bool, config: &Config) {
        self.arrive();
        // A recovery's losses and its proportional reduction are the old path's.
        let repeat = repeat || self.phase == Phase::FastRecovery || self.is_reducing();
        if repeat {
            self.repeat_all(now);
        }
        if let Some(window) = window {
            let window = window.max(self.mss.saturating_mul(2));
            self.begin_control(now, window, window, config);
        }
        self.pacing.release(now);
        if repeat && self.variant == Variant::Linux {
            recovery::linux::repeat_lost(self, now);
        }
    }

    /// Everything outstanding is lost, and not by congestion.
    pub(super) fn repeat_all(&mut self, now: Instant) {
        if self.queue.is_empty() {
            return;
        }
        self.stop_timing();
        if self.variant == Variant::Linux {
            recovery::linux::path_replaced(self, now);
            return;
        }
        self.duplicate_acks = 0;
        self.resend_front = false;
        self.partial_ack_seen = false;
        self.rescue = None;
        self.limited = 0;
        self.credited = 0;
        self.prr = None;
        self.frto = Frto::Off;
        self.eifel.stop();
        self.before_recovery = None;
        self.repeated = None;
        recovery::rack_tlp::on_timeout(self);
        if self.variant != Variant::Linux20 {
            self.phase = Phase::Loss;
            self.recover = self.queue.end();
        }
        recovery::send_all_again(self);
        if self.queue.delivery.is_some() {
            self.queue.note_losses(self.queue.len());
            if let Some(delivery) = &mut self.queue.delivery {
                delivery.forget_duplicates();
            }
        }
        self.congestion.on_state(self.phase.into(), now, self.queue.end());
    }
}
