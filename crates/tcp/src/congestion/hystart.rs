//! Hybrid slow start as Linux has it (Linux 6.1, `net/ipv4/tcp_cubic.c`: `hystart_update`; Ha and Rhee 2008): slow
//! start ends where acknowledgements come in a train longer than the path, or where the round trip grows.
//!
//! It needs no acknowledgement to be lost, but a sender with a window of 16 segments. Left out: segmentation offload
//! larger than a segment, which the kernel allows for in the length of a train, except for the constant part: up to
//! 1 ms at the pacing rate.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::AckSample;
use super::window::Window;

/// Smaller windows are let alone, segments (`hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// Acknowledgements no further apart than this belong to a train (`hystart_ack_delta_us`).
const SPACING: Duration = Duration::from_millis(2);
/// Samples of a round before its least delay counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u8 = 8;
/// The round trip has grown when it exceeds the least by an eighth of it, within these bounds.
const DELAY: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// The largest batch that the kernel hands to a device, bytes: 64 KiB without room for headers (`sk_gso_max_size`).
const BATCH: u64 = 65_536 - (MAX_TCP_HEADER + 1);
const MAX_TCP_HEADER: u64 = 320;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    /// The end of slow start was found.
    found: bool,
    round_start: Instant,
    /// The round is over when this is acknowledged.
    round_end: SeqNumber,
    /// The last acknowledgement that belongs to the train.
    train: Instant,
    /// Least round trip of this round.
    current: Duration,
    samples: u8,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self {
            found: false,
            round_start: Instant::ZERO,
            round_end: SeqNumber(0),
            train: Instant::ZERO,
            current: Duration::MAX,
            samples: 0,
        }
    }

    /// Begins anew: with the connection, after a timeout.
    pub(crate) fn reset(&mut self, now: Instant, nxt: SeqNumber) {
        self.found = false;
        self.begin_round(now, nxt);
    }

    fn begin_round(&mut self, now: Instant, nxt: SeqNumber) {
        self.round_start = now;
        self.train = now;
        self.round_end = nxt;
        self.current = Duration::MAX;
        self.samples = 0;
    }

    /// An acknowledgement with a round trip; in slow start it may end it, by setting the threshold. `delay_min` is the
    /// least round trip.
    pub(crate) fn on_ack(
        &mut self,
        window: &mut Window,
        sample: &AckSample,
        rtt: Duration,
        delay_min: Duration,
    ) {
        if self.found || !window.in_slow_start() {
            return;
        }
        if sample.una.is_after(self.round_end) {
            self.begin_round(sample.now, sample.nxt);
        }
        if window.segments() < LOW_WINDOW {
            return;
        }
        if sample.now - self.train <= SPACING {
            self.train = sample.now;
            // Without pacing the data of a round leaves in half of it.
            let path = (delay_min + batch_delay(window, sample.srtt)) / 2;
            self.found |= sample.now - self.round_start > path;
        }
        self.current = self.current.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            self.found |= self.current > delay_min + (delay_min / 8).clamp(DELAY.0, DELAY.1);
        }
        if self.found {
            window.set_ssthresh(window.cwnd());
        }
    }
}

/// What batches may add to the length of a train: four of the largest at the rate that slow start paces at.
fn batch_delay(window: &Window, srtt: Option<Duration>) -> Duration {
    let Some(srtt) = srtt else { return Duration::ZERO };
    // cwnd * 2 / srtt bytes a second in slow start.
    let micros = u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX).saturating_mul(4 * BATCH)
        / (2 * u64::from(window.cwnd())).max(1);
    Duration::from_micros(micros.min(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Variant};

    /// Feeds acknowledgements - (ms since the round began, round trip in ms) - to a sender of `segments` whose least
    /// round trip is 50 ms; returns with which of them slow start ended.
    fn ends_with(segments: u32, acks: impl Iterator<Item = (f64, f64)>) -> Option<usize> {
        let mut window = Window::new(&Config { variant: Variant::Linux, ..Config::default() });
        window.set_segments(segments);
        let mut hystart = HyStart::new();
        let start = Instant::from_secs(1);
        hystart.reset(start, SeqNumber(1_000_000));
        for (index, (at, rtt)) in acks.enumerate() {
            let rtt = Duration::from_secs_f64(rtt / 1e3);
            let sample = AckSample {
                now: start + Duration::from_secs_f64(at / 1e3),
                acked: 1_460,
                delivered: 1,
                rtt: Some(rtt),
                srtt: Some(rtt),
                una: SeqNumber(1_000),
                nxt: SeqNumber(2_000_000),
                window_limited: true,
                predicted: false,
            };
            hystart.on_ack(&mut window, &sample, rtt, Duration::from_millis(50));
            if !window.in_slow_start() {
                assert_eq!(window.ssthresh_segments(), segments);
                return Some(index);
            }
        }
        None
    }

    #[test]
    fn a_train_longer_than_half_the_path_ends_slow_start() {
        // Half of 50 ms and of the 1 ms for batches: 25.5 ms.
        assert_eq!(ends_with(20, (0..100).map(|n| (f64::from(n), 50.0))), Some(26));
        // Acknowledgements 2.1 ms apart are no train.
        assert_eq!(ends_with(20, (1..100).map(|n| (f64::from(n) * 2.1, 50.0))), None);
        assert_eq!(ends_with(20, (0..100).map(|n| (f64::from(n) * 2.0, 50.0))), Some(13));
    }

    #[test]
    fn a_window_below_sixteen_segments_is_let_alone() {
        assert_eq!(ends_with(15, (0..100).map(|n| (f64::from(n), 90.0))), None);
    }

    #[test]
    fn the_least_of_a_round_must_be_an_eighth_above_the_least() {
        // Trains do not form 10 ms apart. An eighth of 50 ms is 6.25 ms; eight samples come first.
        let apart = |rtt: f64| ends_with(20, (1..40).map(move |n| (f64::from(n) * 10.0, rtt)));
        assert_eq!(apart(56.2), None);
        assert_eq!(apart(56.3), Some(8));
        // One low sample speaks for the round.
        let mixed = (1..40).map(|n| (f64::from(n) * 10.0, if n == 3 { 50.0 } else { 90.0 }));
        assert_eq!(ends_with(20, mixed), None);
    }
}
