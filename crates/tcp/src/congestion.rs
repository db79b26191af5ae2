//! The congestion window and the slow start threshold: bookkeeping and growth (RFC 5681, 2009, section 3.1;
//! byte counting RFC 3465, 2003).
//!
//! The window counts bytes, with 16 bits behind the point, so that with full-sized segments it grows as the
//! formula in segments says: cwnd += 1/cwnd. Which losses shrink it and to what is for `recovery/` to say.

use crate::config::{AckCounting, Config};

const FRACTION: u32 = 16;

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
    /// Bytes acknowledged towards the next step of congestion avoidance (RFC 3465 section 2.1).
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

    /// The segment size changed under way.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// The window, bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        (self.cwnd >> FRACTION) as u32
    }

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

    pub(crate) fn initial(&self) -> u32 {
        self.initial
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh
    }

    /// Sets the window, at least one segment.
    pub(crate) fn set(&mut self, bytes: u32) {
        self.cwnd = u64::from(bytes.min(self.max).max(self.mss)) << FRACTION;
        self.counted = 0;
    }

    /// Adds `bytes` for as long as a recovery lasts: the limit does not hold.
    pub(crate) fn inflate(&mut self, bytes: u32) {
        self.cwnd = (self.cwnd + (u64::from(bytes) << FRACTION)).min(u64::from(u32::MAX) << FRACTION);
    }

    pub(crate) fn deflate(&mut self, bytes: u32) {
        let least = u64::from(self.mss) << FRACTION;
        self.cwnd = self.cwnd.saturating_sub(u64::from(bytes) << FRACTION).max(least);
    }

    /// Equation 4: half of what is in flight, at least two segments.
    pub(crate) fn halve(&mut self, flight: u32) {
        self.ssthresh = (flight / 2).max(self.mss.saturating_mul(2));
    }

    /// Grows by an acknowledgement of `acked` bytes of new data, when `flight` bytes were outstanding before it.
    pub(crate) fn grow(&mut self, acked: u32, flight: u32) {
        if acked == 0 || (self.validated && !self.is_used(flight)) {
            return;
        }
        let slow_start = self.in_slow_start();
        let step = u64::from(self.mss);
        let increment = match self.counting {
            AckCounting::PerAck if slow_start => step.min(u64::from(acked)) << FRACTION,
            // SMSS * SMSS / cwnd (equation 3); both shifts are by FRACTION.
            AckCounting::PerAck => ((step * step) << (2 * FRACTION)) / self.cwnd.max(1),
            AckCounting::Bytes { limit } if slow_start => {
                u64::from(acked.min(limit.saturating_mul(self.mss))) << FRACTION
            }
            AckCounting::Bytes { .. } => {
                self.counted = self.counted.saturating_add(acked);
                let cwnd = self.cwnd();
                if self.counted < cwnd {
                    return;
                }
                self.counted -= cwnd;
                step << FRACTION
            }
        };
        self.cwnd = (self.cwnd + increment).min(u64::from(self.max) << FRACTION);
    }

    /// Whether the sender uses its window (RFC 7661's notion, by the rule of Linux): otherwise nothing is known
    /// about a larger one.
    fn is_used(&self, flight: u32) -> bool {
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

    fn window(segments: u32, change: impl FnOnce(&mut Config)) -> Window {
        let mut config = Config { window_validation: false, ..Config::default() };
        change(&mut config);
        let mut window = Window::new(&config);
        window.set(segments * 1460);
        window
    }

    #[test]
    fn congestion_avoidance_follows_the_recurrence() {
        let mut window = window(10, |c| c.initial_ssthresh = 1460);
        for _ in 0..10 {
            window.grow(1460, 14_600);
        }
        let segments = window.cwnd as f64 / 65_536.0 / 1460.0;
        assert!((segments - 10.958_648).abs() < 1e-6, "{segments}");
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_acknowledgement() {
        let mut window = window(10, |_| {});
        for _ in 0..10 {
            window.grow(1460, 14_600);
        }
        assert_eq!(window.cwnd(), 20 * 1460);
        // An acknowledgement of a few bytes does not open a whole segment.
        window.grow(100, 29_200);
        assert_eq!(window.cwnd(), 20 * 1460 + 100);
    }

    #[test]
    fn byte_counting_makes_up_for_delayed_acknowledgements() {
        let rounds = |counting| {
            let mut window = window(10, |c| c.ack_counting = counting);
            [(); 4].map(|()| {
                for _ in 0..window.segments() / 2 {
                    window.grow(2 * 1460, window.cwnd());
                }
                window.segments()
            })
        };
        assert_eq!(rounds(AckCounting::PerAck), [15, 22, 33, 49]);
        assert_eq!(rounds(AckCounting::Bytes { limit: 2 }), [20, 40, 80, 160]);
    }

    #[test]
    fn byte_counting_in_congestion_avoidance_adds_one_segment_a_window() {
        let mut window = window(10, |c| {
            c.ack_counting = AckCounting::Bytes { limit: 2 };
            c.initial_ssthresh = 1460;
        });
        for _ in 0..10 {
            window.grow(1460, 14_600);
        }
        assert_eq!(window.cwnd(), 11 * 1460);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut window = window(10, |c| c.window_validation = true);
        window.grow(1460, 2 * 1460);
        assert_eq!(window.cwnd(), 14_600);
    }

    #[test]
    fn the_threshold_is_half_of_the_flight_but_two_segments() {
        for (flight, half) in [(1, 2 * 1460), (3, 2 * 1460), (4, 2 * 1460), (10, 5 * 1460), (49, 49 * 730)] {
            let mut window = window(20, |_| {});
            window.halve(flight * 1460);
            assert_eq!(window.ssthresh(), half, "flight {flight}");
        }
    }
}
