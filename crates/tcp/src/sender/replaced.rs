//! A sender whose peer has moved to another path, of which nothing is known yet (TCP-CM at the correspondent: Le, Fu and Hogrefe,
//! "A Cross-Layer Approach for Improving TCP Performance in Mobile Environments", 2008, sections 3.2 and 3.2.2); and one that has moved
//! itself and goes on as it was (section 3.2.1).
//!
//! What the paper leaves open, and what is done here:
//!
//! - When BWE is measured. It is the estimate at the end of the handover: an estimator that went on would take the first
//!   acknowledgement of the new path for all that the path delivers in a round trip. So it is the old path's, as the paper's four networks
//!   are alike; how far off that is, is in the summary.
//! - Which acknowledgement gives R. It is the first that covers something sent for the first time since (Karn's algorithm): what a timeout
//!   has repeated before the sender was told may have gone by the new path, too, so that the acknowledgement of something sent
//!   again is that of either copy. With timestamps the one that is echoed tells, and what was sent again counts.
//! - What the window is until then: large enough for what is outstanding to leave at once, whatever timeouts have left of it.

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::{DataRate, Instant};

use super::{Ack, AckOutcome, Sender};
use crate::Event;
use crate::bandwidth::{Bandwidth, BandwidthEstimator};
use crate::config::{Config, Variant};
use crate::congestion::AckSample;
use crate::delivery_rate::Unit;
use crate::events::Journal;
use crate::recovery;
use crate::snapshot::Phase;

/// The resolution of a timestamp echoed.
const TICK: Duration = Duration::from_millis(1);

/// What is known of the path that replaced another, until it has been measured.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    /// What left before went by the old path.
    since: Instant,
    /// All that was outstanding leaves again, at this very instant maybe.
    repeats: bool,
    /// What the path delivers, as estimated by then.
    bandwidth: Option<DataRate>,
}

impl Sender {
    /// Estimates the bandwidth from now on; before anything is sent.
    pub(crate) fn estimate_bandwidth(&mut self, estimator: BandwidthEstimator) {
        debug_assert!(self.queue.is_empty(), "what has left already is not measured");
        self.plain = false;
        self.bandwidth = Some(Box::new(Bandwidth::new(estimator)));
        if estimator == BandwidthEstimator::DeliveryRate && self.queue.delivery.is_none() {
            let linux = self.variant == Variant::Linux;
            self.queue.measure_delivery(if linux { Unit::Segments } else { Unit::Octets });
        }
    }

    /// What the path delivers, of data, where that is estimated.
    pub(crate) fn bandwidth(&self) -> Option<DataRate> {
        self.bandwidth.as_ref()?.rate()
    }

    /// The estimator sees an acknowledgement as the congestion control does.
    #[inline]
    pub(crate) fn note_ack(&mut self, sample: &AckSample) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.on_ack(&self.window, sample);
        }
    }

    /// The path is another, of which nothing is known; what is outstanding is sent again at once if `repeat`.
    pub(crate) fn path_replaced(&mut self, now: Instant, repeat: bool) {
        self.arrive();
        // A recovery's losses and its proportional reduction are the old path's.
        let repeat = repeat || self.phase == Phase::FastRecovery || self.is_reducing();
        if repeat {
            self.repeat_all(now);
            let outstanding = self.queue.outstanding();
            let (cwnd, threshold) = self.control();
            if cwnd < outstanding {
                self.set_control(now, outstanding.next_multiple_of(self.mss.max(1)), threshold);
            }
        }
        self.pacing.release(now);
        let bandwidth = self.bandwidth();
        self.replaced = Some(Box::new(Replaced { since: now, repeats: repeat, bandwidth }));
        if repeat && self.variant == Variant::Linux {
            recovery::linux::repeat_lost(self, now);
        }
    }

    /// [`Self::on_ack`] until the new path has been measured: an acknowledgement of what went by the old one does not move the window, and
    /// the first of what went by the new one sets it.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_ack_of_new_path(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        journal: &mut Journal,
        config: &Config,
    ) -> AckOutcome {
        let left_at = self.first_by_new_path(now, ack);
        let (before, (cwnd, threshold)) = (self.window.clone(), self.control());
        let outcome = self.on_ack(now, ack, journal);
        match left_at {
            Some(left_at) if outcome != AckOutcome::OfUnsent => self.measured(now, left_at, journal, config),
            _ if self.variant == Variant::Linux20 => self.set_control(now, cwnd, threshold),
            _ => self.window = before,
        }
        outcome
    }

    /// When the first segment left that the acknowledgement covers and that went by the new path.
    fn first_by_new_path(&self, now: Instant, ack: &Ack<'_>) -> Option<Instant> {
        let replaced = self.replaced.as_ref()?;
        let echoed = ack.echoed_rtt.map(|rtt| now.saturating_sub(rtt));
        if echoed.is_some_and(|sent_at| sent_at + TICK < replaced.since) {
            return None;
        }
        let mut index = 0;
        while let Some(record) = self.queue.record(index).filter(|record| !record.end().is_after(ack.ack)) {
            let is_since =
                record.sent_at > replaced.since || replaced.repeats && record.sent_at == replaced.since;
            if is_since && echoed.is_some() {
                return echoed;
            }
            if is_since && record.transmissions == 1 {
                return Some(record.sent_at);
            }
            index += 1;
        }
        None
    }

    /// The new path's round trip is known: the window becomes what it holds.
    fn measured(&mut self, now: Instant, left_at: Instant, journal: &mut Journal, config: &Config) {
        let Some(replaced) = self.replaced.take() else { return };
        if self.estimator.srtt().is_none() {
            self.take_sample(now, left_at.max(replaced.since), self.queue.una(), 1);
            if !self.queue.is_empty() {
                self.restart_timers(now);
            }
        }
        let round_trip = now.saturating_duration_since(left_at);
        let window = replaced.bandwidth.map(|rate| {
            let bytes = rate.bits_in(round_trip) / 8;
            u32::try_from(bytes).unwrap_or(u32::MAX).max(self.mss.saturating_mul(2))
        });
        if let Some(window) = window {
            self.begin_control(now, window, window, config);
        }
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.begin(now, self.queue.una());
        }
        self.pacing.release(now);
        let bandwidth = replaced.bandwidth;
        journal.tell(Event::PathMeasured { bandwidth, round_trip, window });
        journal.revision += 1;
    }

    /// The path is there again, as far as anybody knows the same: the timer goes on with what was left of it. Where the windows leave no
    /// room, one segment more may leave.
    pub(crate) fn resume(&mut self, now: Instant) {
        let rest = self.suspended.take();
        if self.away.is_some() {
            self.arrive();
            if !self.queue.is_empty() {
                let due = rest.map_or_else(|| self.estimator.deadline(now), |rest| now + rest);
                self.timer.arm(due);
                if self.variant == Variant::Linux {
                    recovery::linux::expect_timeout(self);
                }
                if self.rack_tlp.is_some() {
                    recovery::rack_tlp::arm_probe(self, now);
                }
            }
            self.pacing.release(now);
        }
        let (cwnd, threshold) = self.control();
        if cwnd.min(self.snd_wnd).saturating_sub(self.flight()) < self.mss {
            self.set_control(now, cwnd.saturating_add(self.mss), threshold);
        }
        self.linux.wake();
    }
}
