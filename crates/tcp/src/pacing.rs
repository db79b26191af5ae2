//! Pacing: segments leave no faster than a rate (Linux 6.1: `tcp_update_skb_after_send` and `tcp_pacing_check` in
//! `net/ipv4/tcp_output.c`, `tcp_update_pacing_rate` in `tcp_input.c`).
//!
//! What is sent at once, a quantum, is followed by the time it takes at the rate; of time that was not used, up to half
//! of that is given back. The first ten segments of a connection are not held back, nor are a SYN, a probe of
//! the peer's window and what a retransmission timeout repeats first. Congestion controls with a model of the path set
//! the rate; for the others it follows the window ([`Pacing::follow_window`]).
//!
//! Left out: acknowledgements without data, which in Linux use up unused time too. A connection that sends data
//! in both directions could notice, by half a segment's time.

use core::time::Duration;

use careof_base::Instant;

use crate::timer::{Timer, nanos};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Segments at the beginning of a connection that are not paced.
const UNPACED: u32 = 10;

/// Percent of a window a round trip while the window is below half of the threshold (`tcp_pacing_ss_ratio`).
const SLOW_START_PERCENT: u64 = 200;

/// Percent of a window a round trip otherwise (`tcp_pacing_ca_ratio`).
const CONGESTION_AVOIDANCE_PERCENT: u64 = 120;

/// What is leaving at once.
#[derive(Clone, Copy, Debug)]
struct Burst {
    at: Instant,
    /// Segments it may still take.
    left: u32,
    bytes: u64,
    base: Instant,
    credit: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    on: bool,
    /// Bytes of data a second; `None` before there is a round-trip time.
    rate: Option<u64>,
    /// When the next quantum may leave.
    next: Instant,
    /// Most segments that leave at once.
    quantum: u32,
    burst: Option<Burst>,
    sent: u32,
    timer: Timer,
}

impl Pacing {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            rate: None,
            next: Instant::ZERO,
            quantum: 1,
            burst: None,
            sent: 0,
            timer: Timer::default(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// The rate to which segments are held.
    pub(crate) fn limit(&self) -> Option<u64> {
        if self.on { self.rate } else { None }
    }

    /// The rate in bytes of data a second; `None` before it is known.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.rate
    }

    pub(crate) fn set_rate(&mut self, bytes_per_second: u64) {
        self.rate = Some(bytes_per_second);
    }

    /// Most segments that leave at once.
    pub(crate) fn set_quantum(&mut self, segments: u32) {
        self.quantum = segments.max(1);
    }

    /// The rate that goes with a window: `cwnd` or, if more, `outstanding` bytes a round trip, and a fifth more so that
    /// the window and not the rate decides; twice as much early in slow start.
    pub(crate) fn follow_window(
        &mut self,
        cwnd: u32,
        ssthresh: u32,
        outstanding: u32,
        srtt: Option<Duration>,
    ) {
        let Some(srtt) = srtt else { return };
        let percent = if cwnd < ssthresh / 2 { SLOW_START_PERCENT } else { CONGESTION_AVOIDANCE_PERCENT };
        let window = u128::from(cwnd.max(outstanding)) * u128::from(percent * (NANOS_PER_SECOND / 100));
        self.rate = Some(u64::try_from(window / srtt.as_nanos().max(1)).unwrap_or(u64::MAX));
    }

    /// Whether a segment may leave now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        !self.on || self.next <= now || self.burst.is_some_and(|burst| burst.at == now && burst.left > 0)
    }

    /// When the next quantum leaves at the earliest.
    pub(crate) fn next_departure(&self, now: Instant) -> Instant {
        if self.on { self.next.max(now) } else { now }
    }

    /// When the last quantum left, or, if its time at the rate goes on, when that ends (`tcp_wstamp_ns`); `None` where
    /// nothing is paced.
    pub(crate) fn stamp(&self) -> Option<Instant> {
        self.on.then_some(self.next)
    }

    /// A segment with `len` bytes of data leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, len: u16) {
        if self.on && len > 0 {
            self.spend(now, len);
        }
    }

    fn spend(&mut self, now: Instant, len: u16) {
        self.sent = self.sent.saturating_add(1);
        let mut burst = match self.burst {
            Some(burst) if burst.at == now && burst.left > 0 => burst,
            _ => {
                let base = self.next.max(now);
                Burst { at: now, left: self.quantum, bytes: 0, base, credit: base - self.next }
            }
        };
        burst.left -= 1;
        match self.rate {
            Some(rate @ 1..) if self.sent >= UNPACED => {
                burst.bytes += u64::from(len);
                let span = u128::from(burst.bytes) * u128::from(NANOS_PER_SECOND) / u128::from(rate);
                let span = u64::try_from(span).unwrap_or(u64::MAX);
                let credit = nanos(burst.credit).min(span / 2);
                self.next = burst.base + Duration::from_nanos(span - credit);
            }
            _ => self.next = burst.base,
        }
        self.burst = Some(burst);
    }

    /// Nothing more can leave at the moment: the quantum is over.
    pub(crate) fn end_burst(&mut self) {
        self.burst = None;
    }

    /// A retransmission timeout, or another path: what waits leaves at once.
    pub(crate) fn release(&mut self, now: Instant) {
        self.next = self.next.min(now);
        if self.timer.is_armed() {
            self.timer.arm(self.next);
        }
    }

    /// A segment waits for its time.
    pub(crate) fn wait(&mut self) {
        self.timer.arm(self.next);
    }

    pub(crate) fn timer(&self) -> Timer {
        self.timer
    }

    pub(crate) fn stop(&mut self) {
        self.timer.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u16 = 1_000;

    /// 1000 bytes a millisecond, the first ten segments behind it.
    fn pacing(quantum: u32) -> Pacing {
        let mut pacing = Pacing::new(true);
        for _ in 0..UNPACED - 1 {
            assert!(pacing.allows(Instant::ZERO));
            pacing.on_sent(Instant::ZERO, SEGMENT);
        }
        pacing.end_burst();
        pacing.set_rate(1_000_000);
        pacing.set_quantum(quantum);
        pacing
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn a_segment_is_followed_by_its_time_at_the_rate() {
        let mut pacing = pacing(1);
        pacing.on_sent(at(0), SEGMENT);
        assert!(!pacing.allows(at(999)));
        assert!(pacing.allows(at(1_000)));
        pacing.on_sent(at(1_000), SEGMENT / 2);
        assert_eq!(pacing.next_departure(at(1_000)), at(1_500));
    }

    #[test]
    fn a_quantum_leaves_at_once_and_is_followed_by_the_time_of_all_of_it() {
        let mut pacing = pacing(2);
        pacing.on_sent(at(0), SEGMENT);
        assert!(pacing.allows(at(0)));
        pacing.on_sent(at(0), SEGMENT);
        assert!(!pacing.allows(at(0)));
        assert_eq!(pacing.next_departure(at(0)), at(2_000));
        // A quantum that had nothing more to take is over.
        pacing.on_sent(at(2_000), SEGMENT);
        pacing.end_burst();
        assert!(!pacing.allows(at(2_000)));
    }

    #[test]
    fn of_unused_time_half_a_segments_is_given_back() {
        let mut pacing = pacing(1);
        pacing.on_sent(at(0), SEGMENT);
        pacing.on_sent(at(1_300), SEGMENT);
        assert_eq!(pacing.next_departure(at(1_300)), at(2_000));
        pacing.on_sent(at(9_000), SEGMENT);
        assert_eq!(pacing.next_departure(at(9_000)), at(9_500));
    }

    #[test]
    fn the_rate_of_a_window_is_that_of_linux() {
        // Linux 6.1.176 over a path of 50 ms: after the handshake cwnd 10 * 1448, srtt 50129 us; then 11 and 50271.
        let mut pacing = Pacing::new(true);
        pacing.follow_window(14_480, u32::MAX, 0, Some(Duration::from_micros(50_129)));
        assert_eq!(pacing.rate(), Some(577_709));
        pacing.follow_window(11 * 1448, u32::MAX, 0, Some(Duration::from_micros(50_271)));
        // The kernel's srtt has three bits behind the point that a trace does not show.
        assert!(pacing.rate().is_some_and(|rate| rate.abs_diff(633_674) < 20), "{:?}", pacing.rate());
    }
}
