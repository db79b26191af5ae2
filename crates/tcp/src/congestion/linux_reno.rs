//! Slow start and congestion avoidance in Linux's integer edition (Linux 6.1, `net/ipv4/tcp_cong.c`:
//! `tcp_slow_start`, `tcp_cong_avoid_ai`, `tcp_reno_*`), in whole segments.
//!
//! What slow start leaves of an acknowledgement at the threshold counts towards congestion avoidance; a loss leaves
//! half of the *window*, not of what is in flight.

use super::window::Window;

/// Grows by `acked` segments.
pub(crate) fn grow(window: &mut Window, acked: u32) {
    let left = slow_start(window, acked);
    avoid_congestion(window, left);
}

/// What slow start has left over of an acknowledgement, in congestion avoidance.
pub(crate) fn avoid_congestion(window: &mut Window, acked: u32) {
    if acked > 0 {
        additive_increase(window, window.segments(), acked);
    }
}

/// A segment for each acknowledged, up to the threshold; returns what is left over.
pub(crate) fn slow_start(window: &mut Window, acked: u32) -> u32 {
    if !window.in_slow_start() {
        return acked;
    }
    let before = window.segments();
    let after = before.saturating_add(acked).min(window.ssthresh_segments());
    window.set_segments(after);
    acked - after.saturating_sub(before)
}

/// A segment for each `every` acknowledged.
pub(crate) fn additive_increase(window: &mut Window, every: u32, acked: u32) {
    let every = every.max(1);
    // Counted when more was needed for a step.
    if window.counted() >= every {
        window.set_counted(0);
        window.set_segments(window.segments().saturating_add(1));
    }
    let counted = window.counted().saturating_add(acked);
    window.set_counted(counted % every);
    if counted >= every {
        window.set_segments(window.segments().saturating_add(counted / every));
    }
}

/// Half the window, at least two segments.
pub(crate) fn ssthresh_segments(window: &Window) -> u32 {
    (window.segments() / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Variant};

    fn window(segments: u32, ssthresh: u32) -> Window {
        let mut window = Window::new(&Config { variant: Variant::Linux, ..Config::default() });
        window.set_segments(segments);
        window.set_ssthresh_segments(ssthresh);
        window
    }

    #[test]
    fn an_acknowledgement_across_the_threshold_is_shared_out() {
        let mut window = window(18, 20);
        grow(&mut window, 5);
        assert_eq!((window.segments(), window.counted()), (20, 3));
        // 17 more make the twenty that the next step takes.
        grow(&mut window, 16);
        assert_eq!((window.segments(), window.counted()), (20, 19));
        grow(&mut window, 1);
        assert_eq!((window.segments(), window.counted()), (21, 0));
    }

    #[test]
    fn a_count_from_a_larger_window_gives_one_segment() {
        let mut window = window(10, 5);
        window.set_counted(40);
        grow(&mut window, 1);
        assert_eq!((window.segments(), window.counted()), (11, 1));
    }

    #[test]
    fn one_acknowledgement_of_several_windows_gives_several_segments() {
        let mut window = window(10, 5);
        additive_increase(&mut window, 2, 7);
        assert_eq!((window.segments(), window.counted()), (13, 1));
    }

    #[test]
    fn the_threshold_is_half_the_window() {
        assert_eq!([1, 3, 4, 49].map(|n| ssthresh_segments(&window(n, 5))), [2, 2, 2, 24]);
    }
}
