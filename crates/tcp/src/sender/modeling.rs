//! A congestion control with a model of the path ([`crate::CongestionControl::Bbr`]) sees every acknowledgement whole,
//! after loss recovery is done with it, and has the last word on the window; pacing of the others.
//!
//! Recovery of the classic variants inflates and halves the window as its specification says. Where a model governs,
//! that is taken back before anything is sent: the model alone decides what a loss means.

use careof_base::Instant;

use super::{Ack, Sender};
use crate::config::Variant;
use crate::congestion::{CaState, Controller, Path, Window};
use crate::delivery_rate::{RateSample, RoundTrip};
use crate::recovery;
use crate::snapshot::Phase;

/// The sender before an acknowledgement.
pub(super) struct Before {
    window: Window,
    phase: Phase,
}

impl Sender {
    /// Whether the congestion control has a model of the path, which governs the window.
    pub(crate) fn is_modeled(&self) -> bool {
        self.modeled
    }

    /// Loss recovery's state in Linux's words; the classic variants know no disorder.
    pub(super) fn ca_state(&self) -> CaState {
        if self.variant == Variant::Linux { self.linux.state() } else { self.phase.into() }
    }

    fn segments_in_flight(&self) -> u32 {
        if self.variant == Variant::Linux {
            self.linux.in_flight(&self.queue)
        } else {
            self.flight().div_ceil(self.mss.max(1))
        }
    }

    /// Tells the model, if there is one.
    pub(crate) fn with_model(&mut self, now: Instant, tell: impl FnOnce(&mut Controller, &mut Path<'_>)) {
        if !self.is_modeled() {
            return;
        }
        let (in_flight, segments_in_flight) = (self.flight(), self.segments_in_flight());
        let (state, srtt) = (self.ca_state(), self.estimator.srtt());
        let selective = match self.variant {
            Variant::Linux => self.linux.is_selective(),
            variant => variant == Variant::Sack,
        };
        let Some(delivery) = self.queue.delivery.as_deref_mut() else { return };
        let mut path = Path {
            now,
            window: &mut self.window,
            pacing: &mut self.pacing,
            delivery,
            srtt,
            in_flight,
            segments_in_flight,
            state,
            selective,
        };
        tell(&mut self.congestion, &mut path);
        path.delivery.forget_lost_segments();
    }

    /// The handshake is complete.
    pub(super) fn begin_model(&mut self, now: Instant) {
        self.with_model(now, Controller::begin_model);
        self.pace_by_window();
    }

    /// The rate follows the window, unless a model sets it.
    pub(crate) fn pace_by_window(&mut self) {
        let wanted = self.pacing.is_on() || self.variant == Variant::Linux;
        if wanted && !self.is_modeled() {
            let outstanding = match self.variant {
                Variant::Linux => self.queue.len() as u32 * self.mss,
                _ => self.queue.outstanding(),
            };
            let srtt = self.estimator.srtt();
            self.pacing.follow_window(self.window.cwnd(), self.window.ssthresh(), outstanding, srtt);
        }
    }

    /// The application hands over more, an acknowledgement or a timeout is about to be looked at: was there too little
    /// to send, less than a segment? Linux asks only when the application writes.
    pub(crate) fn check_app_limited(&mut self) {
        if self.queue.delivery.is_none() || !self.may_send || self.queue.unsent() >= u64::from(self.mss) {
            return;
        }
        let (flight, segments) = (self.flight(), self.segments_in_flight());
        let (room, repaired) = if self.variant == Variant::Linux {
            (segments < self.window.segments(), self.linux.is_repaired())
        } else {
            let repaired = self.queue.at_end() && !self.resend_front && self.queue.scoreboard.is_repaired();
            (flight < self.window.cwnd(), repaired)
        };
        if let Some(delivery) = &mut self.queue.delivery
            && room
            && repaired
        {
            delivery.mark_app_limited(flight, segments);
        }
    }

    /// An acknowledgement is about to be taken in.
    pub(super) fn begin_ack(&mut self) -> Option<Before> {
        self.queue.delivery.as_ref()?;
        let (flight, segments) = (self.flight(), self.segments_in_flight());
        self.queue.delivery.as_deref_mut()?.begin(flight, segments);
        self.check_app_limited();
        Some(Before { window: self.window.clone(), phase: self.phase })
    }

    /// The acknowledgement was taken in by the queue and by a classic recovery.
    pub(super) fn finish_ack(&mut self, now: Instant, ack: &Ack<'_>, before: Option<Before>, progress: bool) {
        let Some(before) = before else { return self.pace_by_window() };
        if self.phase == Phase::Loss && before.phase != Phase::Loss {
            self.queue.note_losses(self.queue.len());
        } else if self.resend_front {
            self.queue.note_losses(1);
        }
        if progress
            && self.phase != Phase::FastRecovery
            && let Some(delivery) = &mut self.queue.delivery
        {
            delivery.forget_duplicates();
        }
        let sample = self.rate_sample(now, ack);
        if let Some(sample) = &sample {
            self.note_rate(sample);
        }
        if !self.modeled {
            return self.pace_by_window();
        }
        let Some(sample) = sample else { return };
        self.window.set(before.window.cwnd());
        self.with_model(now, |congestion, path| congestion.on_sample(path, &sample));
    }

    /// What the acknowledgement says about rates; `None` before the connection is established.
    fn rate_sample(&mut self, now: Instant, ack: &Ack<'_>) -> Option<RateSample> {
        let mss = self.mss;
        let delivery = self.queue.delivery.as_deref_mut()?;
        let round_trip = delivery.round_trip(now, ack.echoed_rtt, mss);
        let sample = delivery.sample(now, round_trip);
        self.may_send.then_some(sample)
    }

    /// The estimator of the bandwidth sees a delivery rate. Without a model nobody looks at single losses.
    fn note_rate(&mut self, sample: &RateSample) {
        let Some(delivery) = self.queue.delivery.as_deref_mut() else { return };
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.on_rate(sample, delivery.bytes_of_unit(self.mss), delivery.delivered());
        }
        if !self.modeled {
            delivery.forget_lost_segments();
        }
    }

    /// [`crate::Variant::Linux`]: an acknowledgement is about to be taken in, while so much is in flight.
    pub(crate) fn begin_linux_ack(&mut self) {
        if self.queue.delivery.is_none() {
            return;
        }
        let (flight, segments) = (self.flight(), self.segments_in_flight());
        let (delivered, lost) = self.linux.totals();
        if let Some(delivery) = &mut self.queue.delivery {
            delivery.set_totals(delivered, lost);
            delivery.begin(flight, segments);
        }
    }

    /// [`crate::Variant::Linux`]: the acknowledgement was taken in (`tcp_rate_gen`, `cong_control`).
    pub(crate) fn finish_linux_ack(&mut self, now: Instant, round_trip: RoundTrip) {
        self.note_linux_losses();
        let Some(delivery) = self.queue.delivery.as_deref_mut() else { return };
        let sample = delivery.sample(now, round_trip);
        self.note_rate(&sample);
        if self.may_send {
            self.with_model(now, |congestion, path| congestion.on_sample(path, &sample));
        }
    }

    /// [`crate::Variant::Linux`]: the model learns what was marked as lost.
    pub(crate) fn note_linux_losses(&mut self) {
        if self.queue.delivery.is_none() {
            return;
        }
        let (delivered, lost) = self.linux.totals();
        if self.queue.delivery.as_ref().is_some_and(|delivery| delivery.lost() != lost) {
            self.queue.note_marked_losses();
        }
        if let Some(delivery) = &mut self.queue.delivery {
            delivery.set_totals(delivered, lost);
        }
    }

    /// A classic retransmission timeout has been dealt with.
    pub(super) fn finish_timeout(&mut self, now: Instant) {
        self.pacing.release(now);
        if self.queue.delivery.is_none() || !self.may_send {
            return;
        }
        self.queue.note_losses(self.queue.len());
        if let Some(delivery) = &mut self.queue.delivery {
            delivery.forget_duplicates();
        }
        if !self.modeled
            && let Some(delivery) = &mut self.queue.delivery
        {
            delivery.forget_lost_segments();
        }
        self.with_model(now, Controller::on_model_timeout);
    }

    /// The time of the next segment may have come.
    pub(crate) fn on_pacing_timeout(&mut self, now: Instant) {
        if self.pacing.timer().is_due(now) {
            self.pacing.stop();
            if self.variant == Variant::Linux {
                recovery::linux::on_pacing_timer(self, now);
            }
        }
    }

    /// Something with data left; `idle`: nothing was in flight before.
    pub(super) fn pace(&mut self, now: Instant, len: u16, idle: bool) {
        if idle && len > 0 {
            self.with_model(now, Controller::on_model_transmission_start);
        }
        self.pacing.on_sent(now, len);
    }
}
