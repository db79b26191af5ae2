//! When the delivery rate is back at what the new path can do.

use alloc::collections::VecDeque;

use careof_base::{Duration, Instant};

use crate::handover::PathRate;

/// A window is at least so many full-sized packets long: fewer say nothing about a rate.
const PACKETS_A_WINDOW: u32 = 10;
/// A window is at least so many round trips long: TCP sends in bursts of one.
const ROUND_TRIPS_A_WINDOW: u32 = 4;
/// Deliveries closer together than this part of the window count as one, which bounds memory.
const STEPS_A_WINDOW: u32 = 1024;

/// Looks for the first delivery that a window at the full rate follows.
///
/// A window begins with a delivery and counts what is delivered *after* it, up to and including its end. The
/// bytes of the delivery that begins it do not count: a burst that a filled hole releases at once was carried before.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryMeter {
    window: Duration,
    step: Duration,
    target_bytes: u64,
    /// Deliveries within a window of the latest one; each may be where a window begins.
    deliveries: VecDeque<(Instant, u64)>,
    /// Bytes of all deliveries but the first.
    after_first: u64,
    reached: Option<Instant>,
}

/// The window over which a delivery rate is averaged on a path with this rate and round trip.
pub(crate) fn window(rate: PathRate, round_trip: Duration) -> Duration {
    rate.packet_time.saturating_mul(PACKETS_A_WINDOW).max(round_trip.saturating_mul(ROUND_TRIPS_A_WINDOW))
}

impl RecoveryMeter {
    /// Waits for 90 % of `rate`; `None` on a path that carries nothing.
    pub(crate) fn new(rate: PathRate, round_trip: Duration) -> Option<Self> {
        let window = window(rate, round_trip);
        let bits = u128::from(rate.payload_rate.bits_in(window));
        let target_bytes = u64::try_from(bits * 9 / 80).unwrap_or(u64::MAX);
        (target_bytes > 0).then(|| Self {
            window,
            step: window / STEPS_A_WINDOW,
            target_bytes,
            deliveries: VecDeque::new(),
            after_first: 0,
            reached: None,
        })
    }

    /// Bytes that a window at the full rate has to bring.
    pub(crate) const fn target_bytes(&self) -> u64 {
        self.target_bytes
    }

    /// The receiving application got `bytes`.
    pub(crate) fn on_delivery(&mut self, now: Instant, bytes: u64) {
        if self.reached.is_some() {
            return;
        }
        while let Some(&(begin, _)) = self.deliveries.front() {
            if now <= begin + self.window {
                break;
            }
            self.deliveries.pop_front();
            let first = self.deliveries.front().map_or(0, |&(_, bytes)| bytes);
            self.after_first = self.after_first.saturating_sub(first);
        }
        let is_first = match self.deliveries.back_mut() {
            Some((latest, total)) if now - *latest <= self.step => {
                *total = total.saturating_add(bytes);
                self.deliveries.len() == 1
            }
            _ => {
                self.deliveries.push_back((now, bytes));
                self.deliveries.len() == 1
            }
        };
        if !is_first {
            self.after_first = self.after_first.saturating_add(bytes);
        }
        if self.after_first >= self.target_bytes {
            self.reached = self.deliveries.front().map(|&(begin, _)| begin);
            self.deliveries = VecDeque::new();
        }
    }

    /// When the first window at 90 % of the rate began.
    pub(crate) const fn reached(&self) -> Option<Instant> {
        self.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::DataRate;
    use proptest::prelude::*;

    /// 960 byte/s by 1500-byte packets of 1460 bytes of data.
    fn gsm() -> PathRate {
        PathRate::of(DataRate::from_bits_per_second(9600), 15_000, 1460)
    }

    fn packets(meter: &mut RecoveryMeter, begin: Instant, gap: Duration, count: u32, bytes: u64) {
        for index in 0..count {
            meter.on_delivery(begin + gap * index, bytes);
        }
    }

    #[test]
    fn a_path_that_is_full_at_once_has_recovered_with_its_first_delivery() {
        let mut meter = RecoveryMeter::new(gsm(), Duration::from_millis(700)).unwrap();
        packets(&mut meter, Instant::from_secs(3), gsm().packet_time, 11, 1460);
        assert_eq!(meter.reached(), Some(Instant::from_secs(3)));
    }

    #[test]
    fn a_path_at_four_fifths_has_not_recovered() {
        let mut meter = RecoveryMeter::new(gsm(), Duration::from_millis(700)).unwrap();
        packets(&mut meter, Instant::ZERO, gsm().packet_time * 5 / 4, 1000, 1460);
        assert_eq!(meter.reached(), None);
    }

    #[test]
    fn what_a_filled_hole_releases_at_once_is_not_a_rate() {
        let mut meter = RecoveryMeter::new(gsm(), Duration::from_millis(700)).unwrap();
        meter.on_delivery(Instant::from_secs(20), 100 * 1460);
        packets(&mut meter, Instant::from_secs(100), gsm().packet_time, 11, 1460);
        assert_eq!(meter.reached(), Some(Instant::from_secs(100)));
    }

    #[test]
    fn a_fast_path_is_judged_within_four_round_trips() {
        let line = DataRate::from_megabits_per_second(100);
        let rate = PathRate::of(line, 12_000, 1460);
        let mut meter = RecoveryMeter::new(rate, Duration::from_millis(10)).unwrap();
        // Half rate for 100 ms, then full.
        packets(&mut meter, Instant::ZERO, rate.packet_time * 2, 417, 1460);
        let full = Instant::ZERO + rate.packet_time * 2 * 417;
        packets(&mut meter, full, rate.packet_time, 1000, 1460);
        let reached = meter.reached().unwrap();
        assert!(
            reached > full.saturating_sub(Duration::from_millis(9))
                && reached < full + Duration::from_millis(1),
            "{reached}"
        );
    }

    #[test]
    fn a_path_without_a_rate_is_not_measured() {
        assert!(
            RecoveryMeter::new(PathRate::of(DataRate::ZERO, 12_000, 1460), Duration::from_millis(1))
                .is_none()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Against all deliveries kept: the first delivery with enough behind it, where nothing is merged.
        #[test]
        fn agrees_with_a_search_over_everything(gaps in prop::collection::vec((100_u64..4000, 0_u64..3000), 1..80)) {
            let mut meter = RecoveryMeter::new(gsm(), Duration::ZERO).unwrap();
            let (window, target) = (meter.window, meter.target_bytes);
            let mut now = Instant::ZERO;
            let mut all = alloc::vec::Vec::new();
            for (millis, bytes) in gaps {
                now += Duration::from_millis(millis);
                all.push((now, bytes));
                meter.on_delivery(now, bytes);
                prop_assert!(meter.deliveries.len() <= STEPS_A_WINDOW as usize + 1);
            }
            let expected = all.iter().enumerate().find_map(|(index, &(begin, _))| {
                let bytes: u64 =
                    all[index + 1..].iter().filter(|(at, _)| *at <= begin + window).map(|(_, bytes)| bytes).sum();
                (bytes >= target).then_some(begin)
            });
            prop_assert_eq!(meter.reached(), expected);
        }

        #[test]
        fn memory_does_not_grow_with_the_rate(gap in 1_u64..100_000) {
            let mut meter = RecoveryMeter::new(gsm(), Duration::ZERO).unwrap();
            for index in 0..5000 {
                meter.on_delivery(Instant::from_nanos(index * gap), 0);
                prop_assert!(meter.deliveries.len() <= STEPS_A_WINDOW as usize + 1);
            }
        }
    }
}
