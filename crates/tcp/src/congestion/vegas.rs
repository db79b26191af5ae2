//! Vegas' congestion avoidance (Brakmo and Peterson 1995) in Linux's edition (Linux 6.1, `net/ipv4/tcp_vegas.c`), in
//! whole segments: once a round trip, the segments that wait in queues are kept between alpha and beta.
//!
//! The round trip is the least of those measured in it, so that delayed acknowledgements do no harm; with two or fewer
//! the window grows as Reno's does. Losses halve the window; while one is repaired nothing is compared. With
//! [`crate::Variant::Linux`] alpha, beta and gamma are 2, 4, 1, and what waits is rounded down; the other senders
//! have the paper's 1, 3, 1 and its formula. What the paper has beyond this - slow start every other round trip,
//! retransmissions by its own clock, a milder cut - is in [`crate::Variant::Vegas`], which needs nothing of this file.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::AckSample;
use super::window::Window;
use super::{linux_reno, reno};

/// The fewest measurements in a round trip that a comparison is made with.
const ENOUGH: u32 = 3;
/// The window does not fall below this, segments.
const LEAST: u32 = 2;

/// Segments in queues count in units of this part.
const UNIT: u64 = 1024;

/// Segments in queues.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// With fewer the window grows.
    alpha: u64,
    /// With more it shrinks.
    beta: u64,
    /// With more slow start ends.
    gamma: u64,
}

const LINUX: Bounds = Bounds { alpha: 2 * UNIT, beta: 4 * UNIT, gamma: UNIT };
const PAPER: Bounds = Bounds { alpha: UNIT, beta: 3 * UNIT, gamma: UNIT };

#[derive(Clone, Copy, Debug)]
pub(crate) struct Vegas {
    bounds: Bounds,
    /// Nothing is being repaired.
    enabled: bool,
    /// The next comparison is made when this is acknowledged.
    round_end: SeqNumber,
    /// Least round trip, and least of this round, microseconds.
    base_rtt: Option<u32>,
    min_rtt: Option<u32>,
    samples: u32,
    /// What had left by then gives no least round trip.
    since: Option<Instant>,
    /// The sender counts whole segments.
    linux: bool,
}

impl Vegas {
    pub(crate) fn new(linux: bool) -> Self {
        let (bounds, round_end) = (if linux { LINUX } else { PAPER }, SeqNumber(0));
        let (base_rtt, min_rtt, since) = (None, None, None);
        Self { bounds, enabled: true, round_end, base_rtt, min_rtt, samples: 0, since, linux }
    }

    pub(crate) fn is_linux(&self) -> bool {
        self.linux
    }

    /// Begins: with the connection, and when something is sent after silence.
    pub(crate) fn begin(&mut self, nxt: SeqNumber) {
        self.base_rtt = None;
        self.set_enabled(true, nxt);
    }

    /// The least round trip is measured anew, from what leaves from now on.
    pub(crate) fn measure_base_rtt(&mut self, now: Instant) {
        (self.base_rtt, self.min_rtt, self.samples, self.since) = (None, None, 0, Some(now));
    }

    /// The sender's state was told: comparisons are made only while nothing is missing, and begin anew then.
    pub(crate) fn set_enabled(&mut self, enabled: bool, nxt: SeqNumber) {
        self.enabled = enabled;
        if enabled {
            self.begin_round(nxt);
        }
    }

    fn begin_round(&mut self, nxt: SeqNumber) {
        self.round_end = nxt;
        self.min_rtt = None;
        self.samples = 0;
    }

    pub(crate) fn on_ack(&mut self, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        if self.since.is_some_and(|since| sample.now.saturating_sub(rtt) <= since) {
            return;
        }
        let rtt = micros(rtt);
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.samples = self.samples.saturating_add(1);
    }

    pub(crate) fn grow(&mut self, window: &mut Window, sample: &AckSample) {
        if !self.enabled {
            self.grow_as_reno(window, sample);
        } else if sample.una.is_after(self.round_end) {
            match (self.base_rtt, self.min_rtt) {
                (Some(base), Some(rtt)) if self.samples >= ENOUGH => self.compare(window, sample, base, rtt),
                _ => self.grow_as_reno(window, sample),
            }
            self.begin_round(sample.nxt);
        } else if window.in_slow_start() {
            self.slow_start(window, sample);
        }
    }

    /// Once a round trip.
    fn compare(&self, window: &mut Window, sample: &AckSample, base: u32, rtt: u32) {
        let cwnd = window.segments();
        let waiting = waiting(cwnd, base, rtt, self.linux);
        if window.in_slow_start() && waiting > self.bounds.gamma {
            // What the path takes in a round trip without queues, and one for the rounding.
            let fits = (u64::from(cwnd) * u64::from(base) / u64::from(rtt)) as u32 + 1;
            window.set_segments(cwnd.min(fits));
            lower_threshold(window);
        } else if window.in_slow_start() {
            self.slow_start(window, sample);
        } else if waiting > self.bounds.beta {
            window.set_segments(cwnd - 1);
            lower_threshold(window);
        } else if waiting < self.bounds.alpha {
            window.set_segments(cwnd + 1);
        }
        window.set_segments(window.segments().max(LEAST));
        // Not below three quarters of the window (`tcp_current_ssthresh`).
        let cwnd = window.segments();
        window.set_ssthresh_segments(window.ssthresh_segments().max(cwnd / 2 + cwnd / 4));
    }

    fn slow_start(&self, window: &mut Window, sample: &AckSample) {
        if self.linux {
            linux_reno::slow_start(window, sample.delivered);
        } else {
            reno::slow_start(window, sample.acked);
        }
    }

    /// Only here it matters whether the window is used.
    fn grow_as_reno(&self, window: &mut Window, sample: &AckSample) {
        if !sample.window_limited {
        } else if self.linux {
            linux_reno::grow(window, sample.delivered);
        } else {
            reno::grow(window, sample.acked);
        }
    }
}

/// Segments of `cwnd` that wait in queues, in 1024ths, when a round trip is `rtt` and was `base` without queues. The
/// paper's Diff is what was sent less what arrives: cwnd (1 - base/rtt). The kernel divides by the base, so that it
/// finds rtt/base times as many, and takes whole segments.
fn waiting(cwnd: u32, base: u32, rtt: u32, linux: bool) -> u64 {
    let late = u64::from(cwnd) * u64::from(rtt.saturating_sub(base));
    if linux { late / u64::from(base.max(1)) * UNIT } else { late * UNIT / u64::from(rtt.max(1)) }
}

fn lower_threshold(window: &mut Window) {
    window.set_ssthresh_segments(window.ssthresh_segments().min(window.segments()));
}

/// Never zero.
fn micros(rtt: Duration) -> u32 {
    u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX - 1).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Variant};

    #[test]
    fn twenty_segments_on_a_path_of_50_ms() {
        // Expected 400 segments/s; 363.6, 333.3 and 285.7 arrive: the difference times 50 ms.
        let paper = [55_000, 60_000, 70_000].map(|rtt| waiting(20, 50_000, rtt, false));
        assert_eq!(paper, [1.8182, 3.3333, 5.7143].map(|segments: f64| (segments * 1024.0) as u64));
        let linux = [55_000, 60_000, 70_000].map(|rtt| waiting(20, 50_001, rtt + 1, true) / UNIT);
        assert_eq!(linux, [1, 3, 7]);
    }

    /// The window after a round trip of `rtt` ms on a path of 50 ms, from 20 segments.
    fn after(rtt: u64, linux: bool) -> u32 {
        let variant = if linux { Variant::Linux } else { Variant::NewReno };
        let mut window = Window::new(&Config { variant, ..Config::default() });
        window.set_segments(20);
        window.set_ssthresh_segments(10);
        let mut vegas = Vegas::new(linux);
        vegas.begin(SeqNumber(1_000));
        for (una, rtt) in [(500, 50), (600, 50), (1_001, 50), (1_500, rtt), (1_600, rtt), (2_001, rtt)] {
            let rtt = Some(Duration::from_millis(rtt));
            let sample = AckSample {
                now: Instant::ZERO,
                acked: 1460,
                delivered: 1,
                rtt,
                srtt: rtt,
                una: SeqNumber(una),
                nxt: SeqNumber(2_000),
                window_limited: true,
                predicted: false,
            };
            vegas.on_ack(&sample);
            vegas.grow(&mut window, &sample);
        }
        // The first round trip found no queue and added one.
        window.segments() - 1
    }

    #[test]
    fn a_segment_more_fewer_or_as_many() {
        assert_eq!([50, 54, 60, 70].map(|rtt| after(rtt, true)), [21, 21, 20, 19]);
        assert_eq!([50, 55, 60, 70].map(|rtt| after(rtt, false)), [21, 20, 19, 19]);
    }
}
