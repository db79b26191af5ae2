//! Probing a closed window (RFC 1122 section 4.2.2.17, RFC 9293 section 3.8.6.1).
//!
//! The timer runs while there is data to send, nothing outstanding, and the peer's window does not let the
//! data go: it is zero, or too small for a sensible segment. The first probe leaves one RTO after the window
//! closed and each further one after twice the time. A zero window is probed as Linux does, with an empty
//! segment just below `snd_una` that the peer must answer, not with a byte of data; a small one is filled.

use core::time::Duration;

use careof_base::Instant;

use crate::timer::Timer;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Persist {
    timer: Timer,
    doublings: u32,
    /// The timer ran out: a probe is to be sent.
    pub(crate) probe: bool,
    /// Probes since the peer was heard last.
    unanswered: u32,
    /// When the first of them fell due.
    silent_since: Option<Instant>,
}

impl Persist {
    pub(crate) fn timer(&self) -> Timer {
        self.timer
    }

    /// Whether a probe is due or will be.
    pub(crate) fn is_busy(&self) -> bool {
        self.probe || self.timer.is_armed()
    }

    pub(crate) fn start(&mut self, now: Instant, rto: Duration) {
        self.doublings = 0;
        self.timer.arm(now + rto);
    }

    /// The window opened, or there is something outstanding again.
    pub(crate) fn stop(&mut self) {
        *self = Self::default();
    }

    /// The peer answered, whatever its window.
    pub(crate) fn heard(&mut self) {
        self.unanswered = 0;
        self.silent_since = None;
    }

    /// The next probe leaves after the present wait, counted from `now`.
    pub(crate) fn restart(&mut self, now: Instant, rto: Duration, max: Duration) {
        let factor = 1_u32.checked_shl(self.doublings).unwrap_or(u32::MAX);
        self.timer.arm(now + rto.saturating_mul(factor).min(max.max(rto)));
    }

    /// How long probes have gone unanswered.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| now - since)
    }

    /// The timer ran out: a probe is due, the next one after twice the time. Returns how many went unanswered.
    pub(crate) fn expired(&mut self, now: Instant, rto: Duration, max: Duration) -> u32 {
        self.probe = true;
        self.silent_since.get_or_insert(now);
        self.doublings = self.doublings.saturating_add(1);
        self.restart(now, rto, max);
        self.unanswered = self.unanswered.saturating_add(1);
        self.unanswered
    }
}
