//! The congestion window and the slow start threshold: bookkeeping.
//!
//! The window counts bytes, with 16 bits behind the point, so that with full-sized segments it grows as the
//! formula in segments says: cwnd += 1/cwnd. [`crate::Variant::Linux`] uses it in whole segments. How it grows and
//! what a loss leaves of it, says [`super::Controller`].

use crate::config::{AckCounting, Config, Variant};

/// Bits of the window behind the point.
pub(crate) const FRACTION: u32 = 16;

/// Linux's threshold before any loss, segments (`TCP_INFINITE_SSTHRESH`).
pub(crate) const NO_THRESHOLD: u32 = 0x7fff_ffff;

#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Bytes, with [`FRACTION`] bits behind the point.
    cwnd: u64,
    ssthresh: u32,
    mss: u32,
    initial: u32,
    max: u32,
    counting: AckCounting,
    validated: bool,
    whole_segments: bool,
    /// What was acknowledged towards the next step of congestion avoidance: bytes (RFC 3465 section 2.1), in Linux
    /// segments (`snd_cwnd_cnt`).
    counted: u32,
}

impl Window {
    pub(crate) fn new(config: &Config) -> Self {
        let mss = u32::from(config.mss);
        let initial = config.initial_window.bytes(mss);
        Self {
            cwnd: u64::from(initial) << FRACTION,
            ssthresh: config.initial_ssthresh,
            mss,
            initial,
            max: config.max_cwnd,
            counting: config.ack_counting,
            validated: config.window_validation,
            whole_segments: config.variant == Variant::Linux,
            counted: 0,
        }
    }

    /// The segment size is known: the window begins.
    pub(crate) fn begin(&mut self, config: &Config, mss: u32, syn_repeated: bool) {
        self.mss = mss;
        self.initial = config.initial_window.bytes(mss);
        // RFC 5681 section 3.1: after a lost SYN the window begins with one segment.
        self.set(if syn_repeated { mss } else { self.initial });
    }

    /// The segment size changed under way. Where segments are counted, their number stays.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        if self.whole_segments {
            let (cwnd, ssthresh, counted) = (self.segments(), self.ssthresh_segments(), self.counted);
            self.mss = mss;
            self.set_segments(cwnd);
            self.set_ssthresh_segments(ssthresh);
            self.counted = counted;
        } else {
            self.mss = mss;
        }
    }

    /// Bytes of data in a full-sized segment.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// The window, bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        (self.cwnd >> FRACTION) as u32
    }

    /// The window, bytes with [`FRACTION`] bits behind the point.
    pub(crate) fn exact(&self) -> u64 {
        self.cwnd
    }

    /// The threshold, bytes; `u32::MAX` is none.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    pub(crate) fn set_ssthresh(&mut self, bytes: u32) {
        self.ssthresh = bytes;
    }

    /// Whole segments in the window, at least one.
    pub(crate) fn segments(&self) -> u32 {
        (self.cwnd() / self.mss.max(1)).max(1)
    }

    /// Sets the window in segments, at least one.
    pub(crate) fn set_segments(&mut self, segments: u32) {
        let counted = self.counted;
        self.set(segments.saturating_mul(self.mss));
        self.counted = counted;
    }

    /// The threshold in segments; [`NO_THRESHOLD`] is none.
    pub(crate) fn ssthresh_segments(&self) -> u32 {
        if self.ssthresh == u32::MAX { NO_THRESHOLD } else { self.ssthresh / self.mss.max(1) }
    }

    pub(crate) fn set_ssthresh_segments(&mut self, segments: u32) {
        self.ssthresh = if segments >= NO_THRESHOLD { u32::MAX } else { segments.saturating_mul(self.mss) };
    }

    pub(crate) fn initial(&self) -> u32 {
        self.initial
    }

    pub(crate) fn counting(&self) -> AckCounting {
        self.counting
    }

    pub(crate) fn counted(&self) -> u32 {
        self.counted
    }

    pub(crate) fn set_counted(&mut self, counted: u32) {
        self.counted = counted;
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh
    }

    /// Sets the window, at least one segment; what was counted is forgotten.
    pub(crate) fn set(&mut self, bytes: u32) {
        self.cwnd = u64::from(bytes.min(self.max).max(self.mss)) << FRACTION;
        self.counted = 0;
    }

    /// Opens the window by `increment`, with [`FRACTION`] bits behind the point.
    pub(crate) fn open(&mut self, increment: u64) {
        self.cwnd = self.cwnd.saturating_add(increment).min(u64::from(self.max) << FRACTION);
    }

    /// Adds `bytes` for as long as a recovery lasts: the limit does not hold.
    pub(crate) fn inflate(&mut self, bytes: u32) {
        self.cwnd = (self.cwnd + (u64::from(bytes) << FRACTION)).min(u64::from(u32::MAX) << FRACTION);
    }

    pub(crate) fn deflate(&mut self, bytes: u32) {
        let least = u64::from(self.mss) << FRACTION;
        self.cwnd = self.cwnd.saturating_sub(u64::from(bytes) << FRACTION).max(least);
    }

    /// Whether the window may grow when `flight` bytes were outstanding: either nobody asks, or the sender uses it
    /// (RFC 7661's notion, by the rule of Linux); otherwise nothing is known about a larger one.
    pub(crate) fn may_grow(&self, flight: u32) -> bool {
        if !self.validated {
            return true;
        }
        let cwnd = self.cwnd();
        if self.in_slow_start() {
            u64::from(cwnd) < 2 * u64::from(flight)
        } else {
            cwnd < flight.saturating_add(self.mss)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut window = Window::new(&Config { window_validation: true, ..Config::default() });
        assert!(!window.may_grow(2 * 1460), "slow start: a fifth is used");
        assert!(window.may_grow(6 * 1460));
        window.set_ssthresh(1460);
        assert!(!window.may_grow(9 * 1460), "congestion avoidance: all of it must be");
        assert!(window.may_grow(9 * 1460 + 1));
        let free = Window::new(&Config { window_validation: false, ..Config::default() });
        assert!(free.may_grow(0));
    }

    #[test]
    fn whole_segments_stay_when_their_size_changes() {
        let mut window = Window::new(&Config { variant: Variant::Linux, ..Config::default() });
        window.set_segments(20);
        window.set_ssthresh_segments(15);
        window.set_counted(7);
        window.set_mss(500);
        assert_eq!((window.segments(), window.ssthresh_segments(), window.counted()), (20, 15, 7));
        window.set_ssthresh_segments(NO_THRESHOLD);
        assert_eq!((window.ssthresh(), window.ssthresh_segments()), (u32::MAX, NO_THRESHOLD));
    }
}
