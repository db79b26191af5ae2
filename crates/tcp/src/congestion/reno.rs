//! Slow start and congestion avoidance of TCP (RFC 5681, 2009, section 3.1), counting acknowledgements or the bytes
//! they acknowledge (RFC 3465, 2003).

use super::window::{FRACTION, Window};
use crate::config::AckCounting;

/// Slow start where the window is below the threshold, else congestion avoidance.
#[inline]
pub(crate) fn grow(window: &mut Window, acked: u32) {
    if window.in_slow_start() {
        slow_start(window, acked);
    } else {
        avoid_congestion(window, acked);
    }
}

/// Equation 2; with byte counting at most L segments.
#[inline]
pub(crate) fn slow_start(window: &mut Window, acked: u32) {
    let limit = match window.counting() {
        AckCounting::PerAck => window.mss(),
        AckCounting::Bytes { limit } => limit.saturating_mul(window.mss()),
    };
    window.open(u64::from(acked.min(limit)) << FRACTION);
}

/// A segment a window: equation 3, or RFC 3465 section 2.1.
#[inline]
pub(crate) fn avoid_congestion(window: &mut Window, acked: u32) {
    let step = u64::from(window.mss());
    match window.counting() {
        // SMSS * SMSS / cwnd; both shifts are by FRACTION.
        AckCounting::PerAck => window.open(((step * step) << (2 * FRACTION)) / window.exact().max(1)),
        AckCounting::Bytes { .. } => {
            let counted = window.counted().saturating_add(acked);
            let cwnd = window.cwnd();
            if counted < cwnd {
                window.set_counted(counted);
            } else {
                window.set_counted(counted - cwnd);
                window.open(step << FRACTION);
            }
        }
    }
}

/// Equation 4: half of what is in flight, at least two segments.
pub(crate) fn ssthresh(window: &Window, flight: u32) -> u32 {
    (flight / 2).max(window.mss().saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

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
            grow(&mut window, 1460);
        }
        let segments = window.exact() as f64 / 65_536.0 / 1460.0;
        assert!((segments - 10.958_648).abs() < 1e-6, "{segments}");
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_acknowledgement() {
        let mut window = window(10, |_| {});
        for _ in 0..10 {
            grow(&mut window, 1460);
        }
        assert_eq!(window.cwnd(), 20 * 1460);
        // An acknowledgement of a few bytes does not open a whole segment.
        grow(&mut window, 100);
        assert_eq!(window.cwnd(), 20 * 1460 + 100);
    }

    #[test]
    fn byte_counting_makes_up_for_delayed_acknowledgements() {
        let rounds = |counting| {
            let mut window = window(10, |c| c.ack_counting = counting);
            [(); 4].map(|()| {
                for _ in 0..window.segments() / 2 {
                    grow(&mut window, 2 * 1460);
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
            grow(&mut window, 1460);
        }
        assert_eq!(window.cwnd(), 11 * 1460);
    }

    #[test]
    fn the_threshold_is_half_of_the_flight_but_two_segments() {
        for (flight, half) in [(1, 2 * 1460), (3, 2 * 1460), (4, 2 * 1460), (10, 5 * 1460), (49, 49 * 730)] {
            assert_eq!(ssthresh(&window(20, |_| {}), flight * 1460), half, "flight {flight}");
        }
    }
}
