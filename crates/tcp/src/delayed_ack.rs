//! When the receiver acknowledges (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).
//!
//! The receiver of Linux 2.0 delays by its estimate of the time between arrivals (half the last estimate plus the
//! last gap, a third of a second at first, at most half a second), acknowledges at once when two full segments
//! are waiting, and - unlike RFC 5681 - also delays what fills a gap. After an out-of-order arrival it sends the
//! duplicate at once, and another one RTO later if nothing else was sent. Left out: the shorter delay for pushed
//! segments, and the rounding of the advertised window to whole KiB.

use core::time::Duration;

use careof_base::Instant;

use crate::config::DelayedAck;
use crate::receive_queue::Arrival;
use crate::timer::{Ticks, Timer};

/// What acknowledgement is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    No,
    /// With the next segment, or alone if there is none.
    Soon,
    /// At once and alone: it is, or may be, a duplicate that the peer counts.
    Alone,
}

#[derive(Clone, Debug)]
pub(crate) struct Acknowledger {
    policy: DelayedAck,
    due: Due,
    timer: Timer,
    /// Segments in order not acknowledged yet.
    waiting: u32,
    linux20: Linux20,
}

#[derive(Clone, Copy, Debug, Default)]
struct Linux20 {
    last_arrival: Option<u64>,
    /// Delay in force, jiffies.
    delay: u64,
    /// Bytes not acknowledged yet.
    bytes: u32,
    /// After the acknowledgement that is due, another one is to follow in this many jiffies.
    again: Option<u64>,
}

impl Acknowledger {
    pub(crate) fn new(policy: DelayedAck) -> Self {
        Self { policy, due: Due::No, timer: Timer::default(), waiting: 0, linux20: Linux20::default() }
    }

    pub(crate) fn due(&self) -> Due {
        self.due
    }

    pub(crate) fn timer(&self) -> Timer {
        self.timer
    }

    /// An acknowledgement is owed at once.
    pub(crate) fn owe(&mut self, due: Due) {
        if due == Due::Alone || self.due == Due::No {
            self.due = due;
        }
    }

    /// Data arrived. `rto` is this end's own.
    pub(crate) fn on_data(&mut self, now: Instant, arrival: Arrival, len: u32, mss: u32, rto: Duration) {
        if self.policy == DelayedAck::Linux20 {
            self.on_data_linux20(now, arrival, len, mss, rto);
            return;
        }
        match (arrival, self.policy) {
            (Arrival::OutOfOrder | Arrival::Duplicate, _) => self.owe(Due::Alone),
            (Arrival::InOrder, DelayedAck::Every2 { timeout }) => {
                self.waiting += 1;
                if self.waiting >= 2 {
                    self.owe(Due::Soon);
                } else {
                    self.timer.arm(now + timeout);
                }
            }
            (Arrival::InOrder | Arrival::FillsGap, _) => self.owe(Due::Soon),
        }
    }

    fn on_data_linux20(&mut self, now: Instant, arrival: Arrival, len: u32, mss: u32, rto: Duration) {
        let present = Ticks::JIFFIES.at(now);
        let rto = Ticks::JIFFIES.count_in(rto);
        let state = &mut self.linux20;
        state.bytes = state.bytes.saturating_add(len);
        state.delay = match state.last_arrival {
            None => 33,
            Some(last) => match present.saturating_sub(last).max(1) {
                gap if gap > rto => rto,
                gap => (state.delay >> 1) + gap,
            },
        };
        state.last_arrival = Some(present);
        match arrival {
            Arrival::Duplicate => self.owe(Due::Alone),
            Arrival::OutOfOrder => {
                state.again = Some(rto);
                self.owe(Due::Alone);
            }
            Arrival::InOrder | Arrival::FillsGap if state.bytes >= mss.saturating_mul(2) => {
                self.owe(Due::Soon);
            }
            Arrival::InOrder | Arrival::FillsGap => {
                let deadline = Ticks::JIFFIES.start_of(present + state.delay.min(50));
                self.timer.arm(deadline.min(self.timer.deadline()));
            }
        }
    }

    /// The timer ran out.
    pub(crate) fn expired(&mut self) {
        self.timer.stop();
        self.owe(Due::Soon);
    }

    /// A segment with an acknowledgement left.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.due = Due::No;
        self.waiting = 0;
        self.timer.stop();
        self.linux20.bytes = 0;
        if let Some(again) = self.linux20.again.take() {
            self.timer.arm(Ticks::JIFFIES.start_of(Ticks::JIFFIES.at(now) + again));
        }
    }

    pub(crate) fn stop(&mut self) {
        self.due = Due::No;
        self.timer.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_secs(3);

    #[test]
    fn every_second_segment_is_acknowledged_at_once() {
        let mut acks = Acknowledger::new(DelayedAck::RFC1122);
        let at = Instant::from_millis(5);
        acks.on_data(at, Arrival::InOrder, 1_000, 1_000, RTO);
        assert_eq!((acks.due(), acks.timer().deadline()), (Due::No, Instant::from_millis(205)));
        acks.on_data(at, Arrival::InOrder, 1_000, 1_000, RTO);
        assert_eq!(acks.due(), Due::Soon);
        acks.sent(at);
        assert_eq!((acks.due(), acks.timer().is_armed()), (Due::No, false));
    }

    #[test]
    fn disorder_is_acknowledged_at_once_and_alone() {
        for arrival in [Arrival::OutOfOrder, Arrival::Duplicate] {
            let mut acks = Acknowledger::new(DelayedAck::RFC1122);
            acks.on_data(Instant::ZERO, arrival, 1_000, 1_000, RTO);
            assert_eq!(acks.due(), Due::Alone);
        }
        let mut acks = Acknowledger::new(DelayedAck::RFC1122);
        acks.on_data(Instant::ZERO, Arrival::FillsGap, 1_000, 1_000, RTO);
        assert_eq!(acks.due(), Due::Soon);
    }

    #[test]
    fn linux_2_0_delays_by_the_spacing_of_arrivals() {
        let mut acks = Acknowledger::new(DelayedAck::Linux20);
        acks.on_data(Instant::ZERO, Arrival::InOrder, 1_000, 1_460, RTO);
        assert_eq!(acks.timer().deadline(), Instant::from_millis(330));
        acks.sent(Instant::from_millis(330));
        // Gap 1 s: 33/2 + 100 jiffies, but at most half a second.
        acks.on_data(Instant::from_secs(1), Arrival::InOrder, 1_000, 1_460, RTO);
        assert_eq!(acks.timer().deadline(), Instant::from_millis(1_500));
        // The second one 20 ms later makes two full segments only when they are full.
        acks.on_data(Instant::from_millis(1_020), Arrival::InOrder, 1_000, 1_460, RTO);
        assert_eq!(acks.due(), Due::No);
        acks.on_data(Instant::from_millis(1_030), Arrival::InOrder, 1_000, 1_460, RTO);
        assert_eq!(acks.due(), Due::Soon);
    }

    #[test]
    fn linux_2_0_repeats_a_duplicate_after_its_rto() {
        let mut acks = Acknowledger::new(DelayedAck::Linux20);
        acks.on_data(Instant::ZERO, Arrival::OutOfOrder, 1_000, 1_460, RTO);
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(Instant::ZERO);
        assert_eq!(acks.timer().deadline(), Instant::from_secs(3));
        acks.expired();
        acks.sent(Instant::from_secs(3));
        assert!(!acks.timer().is_armed());
    }
}
