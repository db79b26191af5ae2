//! When a kernel's timer fires: the timer wheel (Linux 6.1 and 6.18, `calc_wheel_index` in `kernel/time/timer.c`).
//!
//! The wheel has levels of 64 buckets, each level eight times as coarse as the one before. A timer goes into the bucket behind the one that
//! its time lies in, so that it never fires early: late by a tick where it runs for less than 63 ticks, and by up to an eighth of its time
//! beyond. At 250 ticks a second a timeout of 600 ms fires 4 to 32 ms late. Ticks are counted from the beginning of the run; a
//! kernel counts from its boot.

use core::num::NonZeroU64;
use core::time::Duration;

use careof_base::Instant;

use crate::timer::nanos;

/// Bits by which each level is coarser than the one before (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
/// Ticks that the first level holds, less one (`LVL_START`).
const FIRST_LEVEL: u64 = 63;
/// The last level (`LVL_DEPTH` is 9, and 8 with less than 250 ticks a second).
const LAST_LEVEL: u32 = 8;

/// A wheel that turns so many times a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel {
    /// Nanoseconds of a tick.
    tick: NonZeroU64,
}

impl Wheel {
    /// `None` for no ticks at all.
    pub(super) fn new(hz: u16) -> Option<Self> {
        NonZeroU64::new(1_000_000_000_u64.checked_div(u64::from(hz))?).map(|tick| Self { tick })
    }

    /// When a timer fires that is set at `now` to run for `span`.
    pub(super) fn fires(self, now: Instant, span: Duration) -> Instant {
        let tick = self.tick.get();
        let ticks = nanos(span).div_ceil(tick);
        let expires = (now.as_nanos() / tick).saturating_add(ticks);
        let mut level = 0;
        while level < LAST_LEVEL && ticks >= FIRST_LEVEL << (LEVEL_SHIFT * level) {
            level += 1;
        }
        let shift = LEVEL_SHIFT * level;
        let bucket = ((expires >> shift) + 1) << shift;
        Instant::from_nanos(bucket.saturating_mul(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds after `now` at which a timer of `span` milliseconds fires.
    fn fires_after(hz: u16, now: u64, span: u64) -> u64 {
        let wheel = Wheel::new(hz).unwrap();
        let at = wheel.fires(Instant::from_millis(now), Duration::from_millis(span));
        (at.as_nanos() / 1_000_000) - now
    }

    #[test]
    fn a_timer_is_late_by_a_tick_in_the_first_level_and_by_the_rest_of_a_bucket_and_more_in_the_others() {
        assert_eq!(fires_after(1_000, 0, 40), 41);
        assert_eq!(fires_after(250, 0, 40), 44);
        // 42 ms are 11 ticks of 4 ms.
        assert_eq!(fires_after(250, 0, 42), 48);
        // 150 ticks from a bucket's begin, and from its second tick: buckets of 32 ms.
        assert_eq!(fires_after(250, 0, 600), 608);
        assert_eq!(fires_after(250, 8, 600), 632);
        // Exactly at the begin of a bucket: it is the next.
        assert_eq!(fires_after(250, 0, 640), 672);
        // 2 s and more: buckets of 256 ms.
        assert_eq!(fires_after(250, 0, 2_100), 2_304);
        assert_eq!(fires_after(250, 0, 120_000), 120_832);
    }

    #[test]
    fn no_timer_fires_early_or_late_by_more_than_a_seventh_and_three_ticks() {
        for hz in [100, 250, 300, 1_000] {
            let tick = 1_000_000_000 / u64::from(hz);
            for span in (1..3_000_u64).chain((3_000..200_000).step_by(997)) {
                for now in [0, 1, 777, 123_457] {
                    let span = span * 1_000_000;
                    let now = Instant::from_micros(now);
                    let wait = Wheel::new(hz).unwrap().fires(now, Duration::from_nanos(span)) - now;
                    let late = nanos(wait) - span;
                    assert!(late <= span / 7 + 3 * tick, "{hz} {span} {late}");
                }
            }
        }
        assert!(Wheel::new(0).is_none());
    }
}
