//! Westwood+ (Mascolo, Grieco, Ferorelli, Camarda and Piscitelli, "Performance evaluation of Westwood+ TCP congestion
//! control", 2004) in the form of Linux (Linux 6.1, `net/ipv4/tcp_westwood.c`): the window grows as Reno's; a loss
//! leaves what the path was seen to deliver in its least round trip.
//!
//! What is delivered is counted for a round trip, at least 50 ms, and goes through two low-pass filters of 1/8. With
//! [`crate::Variant::Linux`] the estimate counts in whole bytes a millisecond, as a kernel with HZ = 1000 has it -
//! 8 kbit/s at the least, and rounded down - and the loss first halves the window, which becomes the estimate's when the
//! recovery ends. The other senders count in bytes a second and take the estimate when the loss is found, as the paper.
//!
//! The order is that of Linux since 6.15 and of the stable kernels of 2025 (6.1.176 and 6.1.192 among them): an
//! acknowledgement's round trip is known before the measurement is looked at - earlier kernels look with the one before
//! it, and so measure sooner - and one that passes the header prediction is taken for plain progress. So a duplicate
//! without selective acknowledgements or another window counts for nothing there, and an acknowledgement of several
//! segments is not checked against duplicates counted before.

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::AckSample;
use super::window::Window;

/// The shortest time that delivery is measured over, ms.
const SHORTEST: u64 = 50;
/// The kernel's round trip before the first measurement (`TCP_WESTWOOD_INIT_RTT`), ms.
const UNMEASURED: u64 = 20_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Westwood {
    /// Milliseconds in the estimate's unit of time: 1, or 1000.
    unit: u64,
    /// The estimate after one filter and after two, bytes a unit of time.
    once: u64,
    estimate: u64,
    /// The measurement under way: since when, and bytes delivered.
    since: u64,
    delivered: u64,
    una: SeqNumber,
    /// Bytes of duplicates that a later acknowledgement covers.
    accounted: u64,
    /// The last round trip, and the least; ms.
    rtt: Option<u64>,
    rtt_min: u64,
    /// The least is to be found anew.
    reset_rtt_min: bool,
    first: bool,
}

impl Westwood {
    pub(crate) fn new(linux: bool) -> Self {
        Self {
            unit: if linux { 1 } else { 1_000 },
            once: 0,
            estimate: 0,
            since: 0,
            delivered: 0,
            una: SeqNumber(0),
            accounted: 0,
            rtt: linux.then_some(UNMEASURED),
            rtt_min: if linux { UNMEASURED } else { 0 },
            reset_rtt_min: true,
            first: true,
        }
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self { since: millis(now), ..Self::new(self.unit == 1) };
    }

    /// As an estimator beside another congestion control: nothing is known of the path, and everything before `una` is acknowledged.
    pub(crate) fn begin_at(&mut self, now: Instant, una: SeqNumber) {
        self.begin(now);
        (self.una, self.first) = (una, false);
    }

    /// The estimate.
    pub(crate) fn bytes_per_second(&self) -> u64 {
        self.estimate.saturating_mul(1_000 / self.unit)
    }

    /// Any acknowledgement, duplicates included; with the paper's senders while something is outstanding.
    pub(crate) fn on_ack(&mut self, window: &Window, sample: &AckSample) {
        if let Some(rtt) = sample.rtt.filter(|rtt| !rtt.is_zero()) {
            self.rtt = Some(u64::try_from(rtt.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX));
        }
        let now = millis(sample.now);
        let span = now.saturating_sub(self.since);
        if self.rtt.is_some_and(|rtt| span > rtt.max(SHORTEST)) {
            self.filter(self.delivered * self.unit / span);
            self.delivered = 0;
            self.since = now;
        }
        // What the first acknowledgement covers was sent before anything was measured; on the kernel's slow path it
        // passes for a duplicate.
        let first = core::mem::take(&mut self.first);
        if first {
            self.una = sample.una;
        }
        if sample.predicted {
            self.delivered += u64::from(sample.una.bytes_since(self.una));
            self.una = sample.una;
        } else if !first || self.unit == 1 {
            self.delivered += self.covered(sample.una, u64::from(window.mss()));
        }
        if let Some(rtt) = self.rtt {
            self.rtt_min = if self.reset_rtt_min { rtt } else { self.rtt_min.min(rtt) };
            self.reset_rtt_min = false;
        }
    }

    fn filter(&mut self, measured: u64) {
        if self.once == 0 && self.estimate == 0 {
            (self.once, self.estimate) = (measured, measured);
        } else {
            self.once = (7 * self.once + measured) / 8;
            self.estimate = (7 * self.estimate + self.once) / 8;
        }
    }

    /// Bytes that an acknowledgement tells of: a duplicate stands for a segment, which is not counted again when it is
    /// acknowledged.
    fn covered(&mut self, una: SeqNumber, mss: u64) -> u64 {
        let mut covered = u64::from(una.bytes_since(self.una));
        self.una = una;
        if covered == 0 {
            self.accounted += mss;
            return mss;
        }
        if covered > mss {
            if self.accounted >= covered {
                self.accounted -= covered;
                covered = mss;
            } else {
                covered -= self.accounted;
                self.accounted = 0;
            }
        }
        covered
    }

    /// What the path delivers in its least round trip, at least two segments; in segments.
    pub(crate) fn segments(&self, window: &Window) -> u32 {
        let bytes = self.estimate.saturating_mul(self.rtt_min) / self.unit;
        u32::try_from(bytes / u64::from(window.mss().max(1))).unwrap_or(u32::MAX).max(2)
    }

    pub(crate) fn on_timeout(&mut self, window: &mut Window) {
        window.set_ssthresh_segments(self.segments(window));
        self.reset_rtt_min = true;
    }

    /// With Linux's sender: the end of a recovery.
    pub(crate) fn on_reduction_complete(&mut self, window: &mut Window) {
        let segments = self.segments(window);
        window.set_ssthresh_segments(segments);
        window.set_segments(segments);
    }
}

fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::config::Config;

    /// What a path of `rate` segments of 1000 bytes a second and a round trip of `rtt` ms is taken for after a minute of
    /// acknowledgements, in segments. Every `duplicates`-th acknowledgement but one is a duplicate.
    fn estimate(rate: u64, rtt: u64, linux: bool, duplicates: u32) -> u32 {
        let window = Window::new(&Config { mss: 1_000, ..Config::default() });
        let mut westwood = Westwood::new(linux);
        westwood.begin(Instant::ZERO);
        let rtt = Some(Duration::from_millis(rtt));
        let mut una = SeqNumber(1);
        for ack in 1..=rate * 60 {
            let held = !ack.is_multiple_of(u64::from(duplicates));
            una = if held { una } else { una.plus(duplicates * 1_000) };
            westwood.on_ack(
                &window,
                &AckSample {
                    now: Instant::from_nanos(ack * 1_000_000_000 / rate),
                    acked: if held { 0 } else { duplicates * 1_000 },
                    delivered: 1,
                    rtt: if held { None } else { rtt },
                    srtt: rtt,
                    una,
                    nxt: una,
                    window_limited: true,
                    predicted: false,
                },
            );
        }
        westwood.segments(&window)
    }

    #[test]
    fn a_loss_leaves_what_the_path_delivers_in_a_round_trip() {
        for linux in [false, true] {
            // 1000 segments a second and 100 ms: a hundred.
            let found = estimate(1_000, 100, linux, 1);
            assert!((98..=100).contains(&found), "{found}");
            // Duplicates are segments that arrived; what acknowledges them later is not counted again.
            let found = estimate(1_000, 100, linux, 10);
            assert!((98..=101).contains(&found), "{found}");
        }
        // A round trip below 50 ms is measured over 50 ms.
        assert!((19..=20).contains(&estimate(1_000, 20, false, 1)));
        assert_eq!(estimate(5, 100, false, 1), 2, "at least two segments");
    }

    #[test]
    fn the_kernels_estimate_counts_in_bytes_a_millisecond() {
        // 1900 bytes a second and 10 s: 19 segments, if the estimate were not rounded down to one byte a millisecond.
        let path = |linux| {
            let window = Window::new(&Config { mss: 1_000, ..Config::default() });
            let mut westwood = Westwood::new(linux);
            (westwood.estimate, westwood.rtt_min) = (1_900 * westwood.unit / 1_000, 10_000);
            westwood.segments(&window)
        };
        assert_eq!((path(false), path(true)), (19, 10));
    }

    #[test]
    fn the_kernels_first_acknowledgement_is_a_duplicate_and_queueing_does_not_end_the_first_measurement() {
        let window = Window::new(&Config { mss: 1_000, ..Config::default() });
        for (linux, first) in [(true, 1_000), (false, 0)] {
            let mut westwood = Westwood::new(linux);
            westwood.begin(Instant::ZERO);
            // Segments that left together arrive 2 ms apart: each round trip is as long as the measurement.
            for (ack, ms) in (1_u32..).zip([60, 62, 64]) {
                let rtt = Some(Duration::from_millis(ms));
                let una = SeqNumber(1 + 1_000 * ack);
                westwood.on_ack(
                    &window,
                    &AckSample {
                        now: Instant::from_millis(ms),
                        acked: 1_000,
                        delivered: 1,
                        rtt,
                        srtt: rtt,
                        una,
                        nxt: una,
                        window_limited: true,
                        predicted: false,
                    },
                );
            }
            assert_eq!((westwood.estimate, westwood.delivered), (0, first + 2_000));
            assert_eq!((westwood.accounted, westwood.rtt_min), (first, 60));
        }
    }

    #[test]
    fn what_the_header_prediction_lets_by_is_not_checked_against_duplicates() {
        let window = Window::new(&Config { mss: 1_000, ..Config::default() });
        let mut westwood = Westwood::new(true);
        westwood.begin(Instant::ZERO);
        let mut counted = |una: u32, predicted: bool| {
            let sample = AckSample {
                now: Instant::ZERO,
                acked: 0,
                delivered: 0,
                rtt: None,
                srtt: None,
                una: SeqNumber(una),
                nxt: SeqNumber(una),
                window_limited: true,
                predicted,
            };
            westwood.on_ack(&window, &sample);
            (westwood.delivered, westwood.accounted)
        };
        assert_eq!(counted(1_000, true), (0, 0), "the first");
        assert_eq!(counted(1_000, true), (0, 0), "a duplicate");
        assert_eq!(counted(1_000, false), (1_000, 1_000));
        assert_eq!(counted(1_000, false), (2_000, 2_000));
        assert_eq!(counted(4_000, true), (5_000, 2_000), "three segments, two of which had been counted");
        assert_eq!(counted(7_000, false), (6_000, 0), "three segments, less those");
    }

    #[test]
    fn a_step_in_the_rate_passes_two_filters_of_an_eighth() {
        let mut westwood = Westwood::new(false);
        westwood.filter(800);
        westwood.filter(1_600);
        assert_eq!((westwood.once, westwood.estimate), (900, 812));
        westwood.filter(1_600);
        assert_eq!((westwood.once, westwood.estimate), (987, 833));
    }

    #[test]
    fn after_a_timeout_the_least_round_trip_is_found_anew() {
        let mut window = Window::new(&Config { mss: 1_000, ..Config::default() });
        let mut westwood = Westwood::new(false);
        (westwood.estimate, westwood.rtt_min) = (100_000, 100);
        westwood.on_timeout(&mut window);
        assert_eq!((window.ssthresh(), westwood.reset_rtt_min), (10_000, true));
    }
}
