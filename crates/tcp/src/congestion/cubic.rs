//! CUBIC (RFC 9438, 2023), in bytes.
//!
//! Time counts in 2^-20 s, windows in bytes with 16 bits behind the point, so that what the formulas say of segments
//! holds to a millionth, without floating point. (target - cwnd)/cwnd is added for each *segment* acknowledged, not
//! for each acknowledgement, so that delayed acknowledgements do not slow it down (section 4.2 means one of a
//! segment). In the Reno-friendly region the window is raised to W_est and never lowered to it.
//!
//! Left out: the reduction for lost retransmissions that section 4.6 leaves open, and heuristics for spurious losses
//! (section 4.9.2): whoever finds one, tells.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::AckSample;
use super::cube_root::cube_root;
use super::slow_start::SlowStart;
use super::window::{FRACTION, Window};

/// beta_cubic = 0.7.
const BETA: (u64, u64) = (7, 10);
/// The new W_max of fast convergence, (1 + beta_cubic) / 2 = 0.85 of the window (section 4.7).
const FAST_CONVERGENCE: (u64, u64) = (17, 20);
/// alpha_cubic = 3 * (1 - beta_cubic) / (1 + beta_cubic) = 9/17 (section 4.3).
const ALPHA: (u64, u64) = (9, 17);
/// C = 0.4.
const C: (i64, i64) = (2, 5);

/// Time counts in seconds with this many bits behind the point.
const TIME: u32 = 20;
/// Differences of windows count in segments with this many bits behind the point.
const SEGMENTS: u32 = 24;
/// Further away from K than this, 2048 s, time stands still: the window is beyond all limits there.
const LONGEST: i64 = 1 << 31;

/// A window: bytes with [`FRACTION`] bits behind the point.
type Size = u64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubic {
    pub(crate) slow_start: SlowStart,
    state: State,
    /// As it was before the last reduction (section 4.9).
    before: Option<State>,
}

/// What section 4.9.2 names as to be saved.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// W_max: the window before the last reduction, after fast convergence; 0 is undefined.
    w_max: Size,
    /// The window when the threshold was set last.
    cwnd_prior: Size,
    /// Whether the next stage of congestion avoidance is the first after a timeout (section 4.8).
    after_timeout: bool,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// t_epoch, later by the time in which the window was not used (section 5.8).
    start: Instant,
    /// The window that the curve is flat at: W_max, or where the stage began.
    origin: Size,
    /// K, in 2^-20 s.
    k: i64,
    w_est: Size,
    /// Where alpha becomes 1.
    cwnd_prior: Size,
    /// The last acknowledgement that found the window in use.
    used: Instant,
    /// Something has found it unused since.
    unused: bool,
}

impl Cubic {
    pub(crate) fn new(slow_start: SlowStart) -> Self {
        Self { slow_start, state: State::default(), before: None }
    }

    pub(crate) fn grow(&mut self, window: &mut Window, sample: &AckSample) {
        if !sample.window_limited {
            if let Some(epoch) = &mut self.state.epoch {
                epoch.unused = true;
            }
            return;
        }
        if window.in_slow_start() {
            self.slow_start.grow(window, sample.acked);
            return;
        }
        let cwnd = window.exact();
        let mss = window.mss();
        let epoch = self.state.epoch_at(sample.now, cwnd, mss);
        if epoch.unused {
            epoch.skip_to(sample.now);
        }
        epoch.used = sample.now;

        // Section 4.3: W_est += alpha_cubic * segments_acked / cwnd.
        let step = ratio(u64::from(sample.acked) << FRACTION, u64::from(mss) << FRACTION, cwnd);
        let friendly = epoch.w_est >= epoch.cwnd_prior;
        epoch.w_est += if friendly { step } else { step * ALPHA.0 / ALPHA.1 };

        let t = ticks(sample.now - epoch.start);
        if epoch.w_cubic(t, mss) < epoch.w_est {
            window.open(epoch.w_est.saturating_sub(cwnd));
            return;
        }
        // Sections 4.2, 4.4, 4.5.
        let rtt = sample.srtt.or(sample.rtt).map_or(0, ticks);
        let target = epoch.w_cubic(t + rtt, mss).clamp(cwnd, cwnd + cwnd / 2);
        window.open(ratio(target - cwnd, u64::from(sample.acked) << FRACTION, cwnd));
    }

    /// Sections 4.6 and 4.7.
    pub(crate) fn ssthresh_after_loss(&mut self, window: &Window, flight: u32) -> u32 {
        self.slow_start.on_loss();
        let cwnd = window.exact();
        self.before = Some(self.state);
        let converge = cwnd < self.state.w_max;
        self.state = State {
            w_max: if converge { cwnd * FAST_CONVERGENCE.0 / FAST_CONVERGENCE.1 } else { cwnd },
            cwnd_prior: cwnd,
            after_timeout: false,
            epoch: None,
        };
        let reduced = (u64::from(flight) * BETA.0 / BETA.1) as u32;
        reduced.max(window.mss().saturating_mul(2))
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, nxt: SeqNumber) {
        self.slow_start.begin(now, nxt);
        self.state.after_timeout = true;
        self.state.epoch = None;
    }

    /// Something is sent after silence.
    pub(crate) fn on_transmission_start(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.state.epoch {
            epoch.skip_to(now);
        }
    }

    /// Section 4.9: the last reduction was not called for.
    pub(crate) fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
    }
}

impl State {
    /// The present stage of congestion avoidance; begins one if there is none.
    fn epoch_at(&mut self, now: Instant, cwnd: Size, mss: u32) -> &mut Epoch {
        if self.epoch.is_none() {
            if self.w_max == 0 {
                self.cwnd_prior = cwnd;
            }
            // Sections 4.8 and 4.10: without a window to return to, the curve begins at its flat point.
            if self.w_max == 0 || self.after_timeout {
                self.w_max = cwnd;
            }
            self.after_timeout = false;
        }
        let origin = self.w_max.max(cwnd);
        self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            origin,
            k: k(origin - cwnd, mss),
            w_est: cwnd,
            cwnd_prior: self.cwnd_prior,
            used: now,
            unused: false,
        })
    }
}

impl Epoch {
    /// The time since the window was used last does not count (section 5.8).
    fn skip_to(&mut self, now: Instant) {
        self.start += now - self.used;
        self.used = now;
        self.unused = false;
    }

    /// W_cubic(t) = C * (t - K)^3 + W_max.
    fn w_cubic(&self, t: i64, mss: u32) -> Size {
        let from_k = i128::from((t - self.k).clamp(-LONGEST, LONGEST));
        let cube = (from_k * from_k * from_k) >> (3 * TIME - SEGMENTS);
        let segments = (cube as i64).clamp(-1 << 46, 1 << 46) * C.0 / C.1;
        let bytes = (segments * i64::from(mss)) >> (SEGMENTS - FRACTION);
        self.origin.saturating_add_signed(bytes)
    }
}

/// The curve after a loss at `w_max` segments, as the sender computes it: K, and W_cubic(t) in segments.
///
/// For tables and plots; a connection goes by whole numbers.
#[must_use]
pub fn cubic_curve(w_max: u32, t: Duration) -> (Duration, f64) {
    const MSS: u32 = 1_000;
    let lost_at = (Size::from(w_max) * Size::from(MSS)) << FRACTION;
    let mut state = State { w_max: lost_at, cwnd_prior: lost_at, ..State::default() };
    let epoch = *state.epoch_at(Instant::ZERO, ratio(lost_at, BETA.0, BETA.1), MSS);
    let k = Duration::from_nanos(((u128::from(epoch.k.unsigned_abs()) * 1_000_000_000) >> TIME) as u64);
    (k, epoch.w_cubic(ticks(t), MSS) as f64 / f64::from(1 << FRACTION) / f64::from(MSS))
}

/// K = cubic root of ((W_max - cwnd_epoch) / C), in 2^-20 s.
fn k(difference: Size, mss: u32) -> i64 {
    let cube = (u128::from(difference) << (3 * TIME - FRACTION)) * C.1 as u128 / C.0 as u128;
    cube_root(cube / u128::from(mss.max(1))) as i64
}

/// A span of time in 2^-20 s; 2^20/10^6 = 2^14/5^6.
fn ticks(span: Duration) -> i64 {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).min(LONGEST as u64);
    ((micros << 14) / 15_625) as i64
}

/// a * b / c.
fn ratio(a: u64, b: u64, c: u64) -> u64 {
    let c = c.max(1);
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const MSS: u32 = 1_000;

    fn size(segments: f64) -> Size {
        (segments * f64::from(MSS) * 65_536.0) as u64
    }

    fn segments(size: Size) -> f64 {
        size as f64 / 65_536.0 / f64::from(MSS)
    }

    fn seconds(t: f64) -> i64 {
        (t * f64::from(1 << TIME)) as i64
    }

    fn close(found: f64, wanted: f64, tolerance: f64, what: &str) {
        assert!((found / wanted - 1.0).abs() <= tolerance, "{what}: {found} is not {wanted}");
    }

    /// A controller in congestion avoidance, and its window: `w_max` segments were lost at.
    fn after_loss(w_max: f64) -> (Cubic, Window) {
        let config = Config { mss: 1_000, ..Config::default() };
        let mut window = Window::new(&config);
        window.set((w_max * 1e3) as u32);
        let mut cubic = Cubic::new(SlowStart::new(&config));
        let threshold = cubic.ssthresh_after_loss(&window, window.cwnd());
        window.set_ssthresh(threshold);
        window.set(threshold);
        (cubic, window)
    }

    fn curve(w_max: f64) -> Epoch {
        let (mut cubic, window) = after_loss(w_max);
        *cubic.state.epoch_at(Instant::ZERO, window.exact(), MSS)
    }

    fn sample(now: Instant, acked: u32, rtt: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt));
        let (una, nxt) = (SeqNumber(0), SeqNumber(0));
        AckSample {
            now,
            acked,
            delivered: 0,
            rtt,
            srtt: rtt,
            una,
            nxt,
            window_limited: true,
            predicted: false,
        }
    }

    /// Acknowledges `rounds` windows segment by segment, from `start` on.
    fn rounds(cubic: &mut Cubic, window: &mut Window, start: Instant, rtt: u64, rounds: u64) -> Instant {
        let mut now = start;
        for _ in 0..rounds {
            let count = window.cwnd() / MSS;
            for ack in 0..count {
                let at = now + Duration::from_millis(rtt) * ack / count;
                cubic.grow(window, &sample(at, MSS, rtt));
            }
            now += Duration::from_millis(rtt);
        }
        now
    }

    #[test]
    fn the_curve_is_that_of_the_rfc() {
        let k = |w_max| curve(w_max).k as f64 / f64::from(1 << TIME);
        // K, and the window at 1 and at 5 s, by RFC 9438's equations.
        for (w_max, at_rest, one, five) in [
            (10.0, 1.957_434, 9.6489, 21.2663),
            (49.0, 3.324_700, 43.9747, 50.8808),
            (100.0, 4.217_163, 86.6808, 100.1919),
            (1_000.0, 9.085_603, 788.5551, 972.7210),
        ] {
            close(k(w_max), at_rest, 1e-6, "K");
            for (t, wanted) in [(1.0, one), (5.0, five)] {
                close(segments(curve(w_max).w_cubic(seconds(t), MSS)), wanted, 2e-5, "W");
            }
        }
        // s2n-quic's own figures.
        close(k(2_304.0), 12.0, 1e-6, "K");
        for (t, wanted) in [(15.0, 2_314.8), (10.0, 2_300.8)] {
            close(segments(curve(2_304.0).w_cubic(seconds(t), MSS)), wanted, 1e-6, "W");
        }
    }

    #[test]
    fn a_stage_follows_the_curve_from_the_loss_through_the_plateau() {
        let (mut cubic, mut window) = after_loss(1_000.0);
        let mut now = Instant::ZERO;
        for (until, wanted) in [(4_500, 961.9), (9_000, 1_000.0), (13_500, 1_034.4)] {
            let left = (until - (now.as_nanos() / 1_000_000)) / 100;
            now = rounds(&mut cubic, &mut window, now, 100, left);
            close(segments(window.exact()), wanted, 2e-3, "window");
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_a_second_one_below_it_less_of_the_plateau() {
        let (mut cubic, mut window) = after_loss(100.0);
        assert_eq!((segments(cubic.state.w_max), window.ssthresh()), (100.0, 70_000));
        // Fast convergence.
        window.set(80_000);
        assert_eq!(cubic.ssthresh_after_loss(&window, 80_000), 56_000);
        assert_eq!(segments(cubic.state.w_max), 68.0);
        // Never fewer than two segments.
        window.set(2_000);
        assert_eq!(cubic.ssthresh_after_loss(&window, 1_000), 2_000);
    }

    #[test]
    fn the_target_is_never_more_than_half_a_window_away() {
        // Long after K: the curve is out of sight.
        let (mut cubic, mut window) = after_loss(10.0);
        cubic.grow(&mut window, &sample(Instant::ZERO, 1, 100));
        window.set(7_000);
        cubic.grow(&mut window, &sample(Instant::from_secs(100), 1_000, 100));
        close(segments(window.exact()), 7.0 + 3.5 / 7.0, 1e-4, "half a window");
        // Just after the loss a target below the window leaves it alone.
        let (mut cubic, mut window) = after_loss(1_000.0);
        cubic.grow(&mut window, &sample(Instant::ZERO, 1, 0));
        window.set(900_000);
        cubic.grow(&mut window, &sample(Instant::from_millis(1), 1_000, 0));
        assert_eq!(window.cwnd(), 900_000);
    }

    #[test]
    fn on_short_paths_it_grows_as_reno_would() {
        close(ALPHA.0 as f64 / ALPHA.1 as f64, 3.0 * 0.3 / 1.7, 1e-12, "alpha");
        // W_max 100: 70, and alpha in each round of 10 ms. The curve needs 0.5 s for as much as Reno gains in ten rounds.
        let (mut cubic, mut window) = after_loss(100.0);
        let now = rounds(&mut cubic, &mut window, Instant::ZERO, 10, 20);
        close(segments(window.exact()), 70.0 + 20.0 * 9.0 / 17.0, 5e-3, "after twenty rounds");
        // From the old window on it is a segment a round: alpha becomes 1.
        let now = rounds(&mut cubic, &mut window, now, 10, 40);
        let before = segments(window.exact());
        assert!(before > 100.0, "{before}");
        rounds(&mut cubic, &mut window, now, 10, 10);
        close(segments(window.exact()) - before, 10.0, 0.02, "ten rounds later");
    }

    #[test]
    fn after_a_timeout_the_curve_begins_flat_where_slow_start_ends() {
        let (mut cubic, mut window) = after_loss(1_000.0);
        cubic.on_timeout(Instant::ZERO, SeqNumber(0));
        window.set(window.ssthresh());
        let start = Instant::from_secs(5);
        cubic.grow(&mut window, &sample(start, 1_000, 100));
        let epoch = cubic.state.epoch.unwrap();
        assert_eq!((epoch.k, segments(epoch.origin)), (0, 700.0));
        // 0.4 t^3 above it.
        rounds(&mut cubic, &mut window, start, 100, 60);
        close(segments(window.exact()) - 700.0, 0.4 * 6.0 * 6.0 * 6.0, 0.03, "six seconds later");
    }

    #[test]
    fn without_a_loss_before_the_curve_begins_flat() {
        let config = Config { mss: 1_000, initial_ssthresh: 20_000, ..Config::default() };
        let mut window = Window::new(&config);
        window.set(20_000);
        let mut cubic = Cubic::new(SlowStart::new(&config));
        cubic.grow(&mut window, &sample(Instant::from_secs(1), 1_000, 100));
        let epoch = cubic.state.epoch.unwrap();
        assert_eq!((epoch.k, segments(epoch.origin), segments(epoch.cwnd_prior)), (0, 20.0, 20.0));
    }

    #[test]
    fn no_time_passes_while_the_window_is_not_used() {
        let grown = |idle: u64, silent: bool| {
            let (mut cubic, mut window) = after_loss(1_000.0);
            let now = rounds(&mut cubic, &mut window, Instant::ZERO, 100, 10);
            let later = now + Duration::from_secs(idle);
            if silent {
                cubic.on_transmission_start(later);
            } else {
                let unused = AckSample { window_limited: false, ..sample(now, 1_000, 100) };
                cubic.grow(&mut window, &unused);
            }
            rounds(&mut cubic, &mut window, later, 100, 10);
            segments(window.exact())
        };
        let busy = grown(0, false);
        close(grown(60, false), busy, 2e-3, "limited by the application");
        close(grown(60, true), busy, 2e-3, "silent");
    }

    #[test]
    fn a_reduction_that_was_not_called_for_is_taken_back() {
        let (mut cubic, mut window) = after_loss(1_000.0);
        rounds(&mut cubic, &mut window, Instant::ZERO, 100, 10);
        let (before, cwnd) = (cubic.state.epoch.unwrap(), window.exact());
        cubic.ssthresh_after_loss(&window, 900_000);
        assert!(cubic.state.epoch.is_none() && cubic.state.w_max < size(1_000.0));
        cubic.undo();
        let epoch = cubic.state.epoch.unwrap();
        assert_eq!((epoch.start, epoch.k, epoch.w_est), (before.start, before.k, before.w_est));
        assert_eq!((cubic.state.w_max, window.exact()), (size(1_000.0), cwnd));
    }

    #[test]
    fn delayed_acknowledgements_do_not_slow_it_down() {
        let grown = |per_ack: u32| {
            let (mut cubic, mut window) = after_loss(1_000.0);
            for ack in 0..4_000 / per_ack {
                let at = Instant::from_micros(u64::from(ack * per_ack) * 125);
                cubic.grow(&mut window, &sample(at, per_ack * 1_000, 100));
            }
            segments(window.exact())
        };
        close(grown(2), grown(1), 1e-3, "with one acknowledgement of two");
    }
}
