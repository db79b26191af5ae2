//! CUBIC in Linux's integer edition (Linux 6.1, `net/ipv4/tcp_cubic.c`), in whole segments and milliseconds
//! (HZ = 1000).
//!
//! The curve is looked at once a millisecond and once more for each change of the window, and tells how many
//! acknowledged segments make it grow by one. The plateau and the beginning of an epoch are those of the *window*,
//! not of what is in flight. K is an exact cube root here; the kernel's, a table and a step of Newton's method, is up to
//! 0.25 % off, which makes its K differ from this one by at most
//! 5 ms for a window of up to 100 segments below its plateau.
//!
//! Left out: values of the module parameters other than their defaults, other clocks than 1000 Hz, and windows above a
//! million segments, where the kernel's arithmetic overflows.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::cube_root::cube_root;
use super::linux_reno;
use super::slow_start::SlowStart;
use super::window::Window;
use super::{AckSample, CaState};

/// beta, in 1024ths.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
/// C = 41/1024 for a round trip of 100 ms: 0.4 segments/s^3.
const CURVE: u64 = 41 * 10;
/// 2^40 / (41 * 10): 1/C in the cube of 1/1024 s.
const CUBE_FACTOR: u64 = (1 << 40) / CURVE;
/// Acknowledged segments, in eighths of the window, for which a Reno with the same average grows by one:
/// 8 (1 + beta) / 3 (1 - beta).
const FRIENDLY: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Round trips this soon after the beginning of an epoch do not count, ms.
const AFTER_RECOVERY: u32 = 1_000;
/// The curve is looked at this often although the window is the same, ms.
const REVIEW: u32 = 1_000 / 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LinuxCubic {
    curve: Curve,
    slow_start: SlowStart,
}

/// What a timeout forgets. Times in milliseconds, windows in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// Acknowledged segments that make the window grow by one.
    every: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u32,
    origin: u32,
    /// In 1/1024 s.
    k: u32,
    epoch_start: Option<u32>,
    acked: u32,
    tcp_cwnd: u32,
}

impl LinuxCubic {
    pub(crate) fn new(slow_start: SlowStart) -> Self {
        Self { curve: Curve::default(), slow_start }
    }

    pub(crate) fn begin(&mut self, now: Instant, nxt: SeqNumber) {
        self.curve = Curve::default();
        self.slow_start.begin(now, nxt);
    }

    pub(crate) fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        if self.curve.epoch_start.is_some_and(|start| since(millis(sample.now), start) < AFTER_RECOVERY) {
            return;
        }
        self.slow_start.on_ack(window, sample);
    }

    pub(crate) fn grow(&mut self, window: &mut Window, sample: &AckSample) {
        let acked = self.slow_start.grow_segments(window, sample.delivered);
        if acked == 0 {
            return;
        }
        let delay_min = self.slow_start.delay_min().unwrap_or_default();
        self.curve.update(window.segments(), acked, millis(sample.now), delay_min);
        linux_reno::additive_increase(window, self.curve.every, acked);
    }

    /// beta of the window, and fast convergence.
    pub(crate) fn ssthresh_segments(&mut self, window: &Window) -> u32 {
        let cwnd = window.segments();
        self.curve.epoch_start = None;
        self.slow_start.on_loss();
        self.curve.last_max_cwnd = if cwnd < self.curve.last_max_cwnd {
            (u64::from(cwnd) * (SCALE + BETA) / (2 * SCALE)) as u32
        } else {
            cwnd
        };
        ((u64::from(cwnd) * BETA / SCALE) as u32).max(2)
    }

    pub(crate) fn on_state(&mut self, state: CaState, now: Instant, nxt: SeqNumber) {
        if state == CaState::Loss {
            self.begin(now, nxt);
        }
    }

    /// Time without anything in flight does not count for the curve.
    pub(crate) fn on_transmission_start(&mut self, now: Instant, last_sent: Instant) {
        let (now, last_sent) = (millis(now), millis(last_sent));
        if let Some(start) = &mut self.curve.epoch_start
            && since(now, last_sent) > 0
        {
            *start = (*start + since(now, last_sent)).min(now);
        }
    }
}

impl Curve {
    fn update(&mut self, cwnd: u32, acked: u32, now: u32, delay_min: Duration) {
        self.acked = self.acked.saturating_add(acked);
        if self.last_cwnd == cwnd && since(now, self.last_time) <= REVIEW {
            return;
        }
        if self.epoch_start.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            self.every = self.look_up(cwnd, acked, now, delay_min);
        }
        self.be_friendly(cwnd);
        // At most one segment for each two acknowledged.
        self.every = self.every.max(2);
    }

    /// Where the curve is in a round trip, and how often the window has to grow to be there.
    fn look_up(&mut self, cwnd: u32, acked: u32, now: u32, delay_min: Duration) -> u32 {
        let start = match self.epoch_start {
            Some(start) => start,
            None => self.begin_epoch(cwnd, acked, now),
        };
        let round_trip = delay_min.as_micros().div_ceil(1_000) as u64;
        let t = ((u64::from(since(now, start)) + round_trip) << 10) / 1_000;
        let distance = t.abs_diff(u64::from(self.k));
        let cube = u128::from(distance).pow(3) * u128::from(CURVE);
        let delta = u32::try_from(cube >> 40).unwrap_or(u32::MAX);
        let target = if t < u64::from(self.k) {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        let every = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // Nothing is known about the path before the first loss.
        if self.last_max_cwnd == 0 { every.min(20) } else { every }
    }

    fn begin_epoch(&mut self, cwnd: u32, acked: u32, now: u32) -> u32 {
        self.epoch_start = Some(now);
        self.acked = acked;
        self.tcp_cwnd = cwnd;
        if self.last_max_cwnd <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            self.k = cube_root(u128::from(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd))) as u32;
            self.origin = self.last_max_cwnd;
        }
        now
    }

    /// Not slower than Reno would be.
    fn be_friendly(&mut self, cwnd: u32) {
        let every = ((u64::from(cwnd) * FRIENDLY) >> 3).max(1) as u32;
        // Strictly more: the count keeps a whole step.
        let steps = self.acked.saturating_sub(1) / every;
        self.acked -= steps * every;
        self.tcp_cwnd = self.tcp_cwnd.saturating_add(steps);
        if self.tcp_cwnd > cwnd {
            self.every = self.every.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

fn millis(at: Instant) -> u32 {
    (at.as_nanos() / 1_000_000) as u32
}

fn since(now: u32, then: u32) -> u32 {
    now.saturating_sub(then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Config, Variant};

    fn fresh(segments: u32) -> (LinuxCubic, Window) {
        let config = Config { variant: Variant::Linux, hystart: config::HyStart::Linux, ..Config::default() };
        let mut window = Window::new(&config);
        window.set_segments(segments);
        let mut cubic = LinuxCubic::new(SlowStart::new(&config));
        cubic.begin(Instant::from_secs(1), SeqNumber(0));
        (cubic, window)
    }

    /// After a loss at `segments`, recovered from.
    fn after_loss(segments: u32) -> (LinuxCubic, Window) {
        let (mut cubic, mut window) = fresh(segments);
        let threshold = cubic.ssthresh_segments(&window);
        window.set_ssthresh_segments(threshold);
        window.set_segments(threshold);
        (cubic, window)
    }

    fn sample(now: Instant, delivered: u32, rtt: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt));
        let (una, nxt) = (SeqNumber(0), SeqNumber(0));
        AckSample {
            now,
            acked: delivered * 1_460,
            delivered,
            rtt,
            srtt: rtt,
            una,
            nxt,
            window_limited: true,
            predicted: false,
        }
    }

    /// Acknowledges `rounds` windows segment by segment; returns when that is done.
    fn rounds(cubic: &mut LinuxCubic, window: &mut Window, start: Instant, rtt: u64, rounds: u64) -> Instant {
        let mut now = start;
        for _ in 0..rounds {
            let count = window.segments();
            for ack in 0..count {
                let sample = sample(now + Duration::from_millis(rtt) * ack / count, 1, rtt);
                cubic.on_ack(window, &sample);
                cubic.grow(window, &sample);
            }
            now += Duration::from_millis(rtt);
        }
        now
    }

    #[test]
    fn a_loss_leaves_717_of_1024_parts_of_the_window() {
        assert_eq!([49, 100, 1_000, 2].map(|n| fresh(n).0.ssthresh_segments(&fresh(n).1)), [34, 70, 700, 2]);
        // A second loss below the first leaves less of the plateau: 80 * 1741 / 2048.
        let (mut cubic, mut window) = after_loss(100);
        window.set_segments(80);
        assert_eq!((cubic.ssthresh_segments(&window), cubic.curve.last_max_cwnd), (56, 68));
    }

    #[test]
    fn the_window_is_back_at_its_plateau_after_k() {
        // K = (30 / 0.4)^(1/3) = 4.22 s; the curve is seen a round trip ahead.
        let (mut cubic, mut window) = after_loss(100);
        let start = Instant::from_secs(10);
        let now = rounds(&mut cubic, &mut window, start, 100, 20);
        assert!((95..=97).contains(&window.segments()), "{} after 2 s", window.segments());
        let now = rounds(&mut cubic, &mut window, now, 100, 22);
        assert!((99..=101).contains(&window.segments()), "{} after 4.2 s", window.segments());
        assert_eq!(cubic.curve.k, 4_316, "in 1/1024 s");
        // C (t - K)^3 = 0.4 * 3.8^3 = 22 beyond it.
        rounds(&mut cubic, &mut window, now, 100, 38);
        assert!((119..=125).contains(&window.segments()), "{} after 8 s", window.segments());
    }

    #[test]
    fn on_short_paths_it_grows_as_reno_would() {
        // 15/8 of a window of acknowledgements for each segment: 0.53 a round trip.
        let (mut cubic, mut window) = after_loss(100);
        rounds(&mut cubic, &mut window, Instant::from_secs(10), 10, 40);
        assert!((89..=92).contains(&window.segments()), "{}", window.segments());
    }

    #[test]
    fn before_any_loss_it_grows_by_a_segment_for_twenty_acknowledged_at_least() {
        let (mut cubic, mut window) = fresh(100);
        window.set_ssthresh_segments(100);
        rounds(&mut cubic, &mut window, Instant::from_secs(10), 100, 1);
        assert_eq!(window.segments(), 105);
    }

    #[test]
    fn it_never_grows_by_more_than_half() {
        let (mut cubic, mut window) = after_loss(100);
        let start = Instant::from_secs(10);
        cubic.grow(&mut window, &sample(start, 1, 100));
        // A minute later the curve is out of sight.
        let before = window.segments();
        rounds(&mut cubic, &mut window, start + Duration::from_secs(60), 100, 1);
        assert!(window.segments() <= before + before / 2 + 1, "{}", window.segments());
        assert_eq!(cubic.curve.every, 2);
    }

    #[test]
    fn silence_does_not_count_for_the_curve() {
        let grown = |idle: u64| {
            let (mut cubic, mut window) = after_loss(1_000);
            let now = rounds(&mut cubic, &mut window, Instant::from_secs(10), 100, 10);
            let later = now + Duration::from_secs(idle);
            cubic.on_transmission_start(later, now);
            rounds(&mut cubic, &mut window, later, 100, 10);
            window.segments()
        };
        assert!(grown(60).abs_diff(grown(0)) <= 1, "{} and {}", grown(60), grown(0));
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let (mut cubic, mut window) = after_loss(100);
        let now = rounds(&mut cubic, &mut window, Instant::from_secs(10), 100, 5);
        cubic.ssthresh_segments(&window);
        cubic.on_state(CaState::Loss, now, SeqNumber(0));
        assert_eq!((cubic.curve.last_max_cwnd, cubic.slow_start.delay_min()), (0, None));
        assert!(cubic.curve.epoch_start.is_none());
    }

    #[test]
    fn round_trips_soon_after_a_recovery_do_not_count() {
        let (mut cubic, mut window) = after_loss(100);
        let start = Instant::from_secs(10);
        cubic.on_ack(&mut window, &sample(start, 1, 100));
        cubic.grow(&mut window, &sample(start, 1, 100));
        cubic.on_ack(&mut window, &sample(start + Duration::from_millis(999), 1, 50));
        assert_eq!(cubic.slow_start.delay_min(), Some(Duration::from_millis(100)));
        cubic.on_ack(&mut window, &sample(start + Duration::from_millis(1_000), 1, 50));
        assert_eq!(cubic.slow_start.delay_min(), Some(Duration::from_millis(50)));
    }
}
