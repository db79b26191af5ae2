//! When the receiver acknowledges (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2); the receiver of today's Linux is in
//! `linux.rs`.
//!
//! The receiver of Linux 2.0 delays by its estimate of the time between arrivals (half the last estimate plus the
//! last gap, a third of a second at first, at most half a second), acknowledges at once when two full segments
//! are waiting, and - unlike RFC 5681 - also delays what fills a gap. After an out-of-order arrival it sends the
//! duplicate at once, and another one RTO later if nothing else was sent. Left out: the shorter delay for pushed
//! segments, and the rounding of the advertised window to whole KiB.

mod linux;

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::config::DelayedAck;
use crate::receive_queue::Arrival;
use crate::timer::{Ticks, Timer};
use linux::Linux;

/// What acknowledgement is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    No,
    /// With the next segment, or alone if there is none.
    Soon,
    /// At once and alone: it is, or may be, a duplicate that the peer counts.
    Alone,
}

/// A segment that arrived, as far as its acknowledgement depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) arrival: Arrival,
    /// Bytes of data.
    pub(crate) len: u32,
    /// The next byte awaited after it.
    pub(crate) nxt: SeqNumber,
    pub(crate) push: bool,
    pub(crate) fin: bool,
    /// It met congestion on its way, and that is news.
    pub(crate) marked: bool,
    /// Something is still missing before what arrived earlier.
    pub(crate) islands: bool,
    /// Bytes of data in a full-sized segment.
    pub(crate) mss: u32,
    /// The window this end has offered, bytes.
    pub(crate) window: u32,
    /// The application reads at once.
    pub(crate) reads: bool,
    /// This end's own, where [`Acknowledger::is_timed`].
    pub(crate) rto: Duration,
    pub(crate) srtt: Option<Duration>,
}

/// What an ordinary segment touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Acknowledger {
    due: Due,
    /// Segments in order not acknowledged yet.
    waiting: u32,
    timer: Timer,
    policy: DelayedAck,

    linux20: Linux20,
    linux: Linux,
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
        Self {
            policy,
            due: Due::No,
            timer: Timer::default(),
            waiting: 0,
            linux20: Linux20::default(),
            linux: Linux::new(),
        }
    }

    /// Whether it goes by this end's estimate of the round trip.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self.policy, DelayedAck::Linux20 | DelayedAck::Linux)
    }

    pub(crate) fn policy(&self) -> DelayedAck {
        self.policy
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

    /// Data or a FIN arrived.
    pub(crate) fn on_data(&mut self, now: Instant, data: &Received) {
        match self.policy {
            DelayedAck::Linux20 => return self.on_data_linux20(now, data),
            DelayedAck::Linux => {
                let (due, deadline) = self.linux.on_data(now, data, self.timer.deadline());
                self.timer.arm(deadline);
                if due != Due::No {
                    self.owe(due);
                }
                return;
            }
            DelayedAck::Off | DelayedAck::Every2 { .. } => {}
        }
        match data.arrival {
            Arrival::OutOfOrder | Arrival::Duplicate => self.owe(Due::Alone),
            Arrival::InOrder => self.on_next(now),
            Arrival::FillsGap => self.owe(Due::Soon),
        }
    }

    /// Data arrived in order while nothing was missing; the receiver is no kernel's.
    #[inline]
    pub(crate) fn on_next(&mut self, now: Instant) {
        if let DelayedAck::Every2 { timeout } = self.policy {
            self.waiting += 1;
            if self.waiting < 2 {
                return self.timer.arm(now + timeout);
            }
        }
        self.owe(Due::Soon);
    }

    fn on_data_linux20(&mut self, now: Instant, data: &Received) {
        let Received { arrival, len, mss, rto, .. } = *data;
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

    /// Duplicate acknowledgements are compressed, where the policy knows how to.
    pub(crate) fn compress(&mut self, on: bool) {
        self.linux.compress(on);
    }

    /// The timer ran out.
    pub(crate) fn expired(&mut self, rto: Duration) {
        self.timer.stop();
        if self.linux.is_compressing() {
            return self.owe(Due::Alone);
        }
        if self.policy == DelayedAck::Linux {
            self.linux.expired(rto);
        }
        self.owe(Due::Soon);
    }

    /// A segment with an acknowledgement left, with data of this end or without.
    pub(crate) fn sent(&mut self, now: Instant, data: bool) {
        if self.policy == DelayedAck::Linux {
            self.linux.sent(now, data);
        }
        self.settled();
        self.linux20.bytes = 0;
        if let Some(again) = self.linux20.again.take() {
            self.timer.arm(Ticks::JIFFIES.start_of(Ticks::JIFFIES.at(now) + again));
        }
    }

    /// What was owed has left.
    #[inline]
    pub(crate) fn settled(&mut self) {
        self.due = Due::No;
        self.waiting = 0;
        self.timer.stop();
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

    fn data(arrival: Arrival, len: u32, mss: u32) -> Received {
        Received {
            arrival,
            len,
            nxt: SeqNumber(0),
            push: false,
            fin: false,
            marked: false,
            islands: false,
            mss,
            window: 65_535,
            reads: true,
            rto: RTO,
            srtt: None,
        }
    }

    #[test]
    fn every_second_segment_is_acknowledged_at_once() {
        let mut acks = Acknowledger::new(DelayedAck::RFC1122);
        let at = Instant::from_millis(5);
        acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
        assert_eq!((acks.due(), acks.timer().deadline()), (Due::No, Instant::from_millis(205)));
        acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
        assert_eq!(acks.due(), Due::Soon);
        acks.sent(at, false);
        assert_eq!((acks.due(), acks.timer().is_armed()), (Due::No, false));
    }

    #[test]
    fn disorder_is_acknowledged_at_once_and_alone() {
        for arrival in [Arrival::OutOfOrder, Arrival::Duplicate] {
            let mut acks = Acknowledger::new(DelayedAck::RFC1122);
            acks.on_data(Instant::ZERO, &data(arrival, 1_000, 1_000));
            assert_eq!(acks.due(), Due::Alone);
        }
        let mut acks = Acknowledger::new(DelayedAck::RFC1122);
        acks.on_data(Instant::ZERO, &data(Arrival::FillsGap, 1_000, 1_000));
        assert_eq!(acks.due(), Due::Soon);
    }

    #[test]
    fn linux_2_0_delays_by_the_spacing_of_arrivals() {
        let mut acks = Acknowledger::new(DelayedAck::Linux20);
        acks.on_data(Instant::ZERO, &data(Arrival::InOrder, 1_000, 1_460));
        assert_eq!(acks.timer().deadline(), Instant::from_millis(330));
        acks.sent(Instant::from_millis(330), false);
        // Gap 1 s: 33/2 + 100 jiffies, but at most half a second.
        acks.on_data(Instant::from_secs(1), &data(Arrival::InOrder, 1_000, 1_460));
        assert_eq!(acks.timer().deadline(), Instant::from_millis(1_500));
        // The second one 20 ms later makes two full segments only when they are full.
        acks.on_data(Instant::from_millis(1_020), &data(Arrival::InOrder, 1_000, 1_460));
        assert_eq!(acks.due(), Due::No);
        acks.on_data(Instant::from_millis(1_030), &data(Arrival::InOrder, 1_000, 1_460));
        assert_eq!(acks.due(), Due::Soon);
    }

    #[test]
    fn linux_2_0_repeats_a_duplicate_after_its_rto() {
        let mut acks = Acknowledger::new(DelayedAck::Linux20);
        acks.on_data(Instant::ZERO, &data(Arrival::OutOfOrder, 1_000, 1_460));
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(Instant::ZERO, false);
        assert_eq!(acks.timer().deadline(), Instant::from_secs(3));
        acks.expired(RTO);
        acks.sent(Instant::from_secs(3), false);
        assert!(!acks.timer().is_armed());
    }

    fn linux() -> Acknowledger {
        let mut acks = Acknowledger::new(DelayedAck::Linux);
        // The quick ones at the beginning.
        for n in 0..16 {
            let at = Instant::from_millis(n);
            acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
            assert_eq!(acks.due(), Due::Soon, "segment {n}");
            acks.sent(at, false);
        }
        acks
    }

    #[test]
    fn linux_acknowledges_sixteen_segments_at_once_and_then_every_second() {
        let mut acks = linux();
        for n in 16..32 {
            let at = Instant::from_millis(n);
            acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
            assert_eq!(acks.due() == Due::Soon, n % 2 == 1, "segment {n}");
            if acks.due() == Due::Soon {
                acks.sent(at, false);
            }
        }
    }

    #[test]
    fn linux_compresses_duplicate_acknowledgements_after_the_third_for_a_gap() {
        let mut acks = linux();
        acks.compress(true);
        let missing = Received {
            nxt: SeqNumber(7),
            islands: true,
            srtt: Some(Duration::from_millis(10)),
            ..data(Arrival::OutOfOrder, 1_000, 1_000)
        };
        let at = Instant::from_millis(20);
        for n in 0..3 {
            acks.on_data(at, &missing);
            assert_eq!(acks.due(), Due::Alone, "{n}");
            acks.sent(at, false);
        }
        // A twentieth of the round trip and the timer's slack; 44 share it, the next does not wait.
        for n in 0..44 {
            acks.on_data(at, &missing);
            assert_eq!((acks.due(), acks.timer().deadline()), (Due::No, Instant::from_micros(20_600)), "{n}");
        }
        acks.on_data(at, &missing);
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(at, false);
        // Over a longer path a millisecond; and what expires is no delayed acknowledgement.
        acks.on_data(at, &Received { srtt: Some(Duration::from_secs(1)), ..missing });
        assert_eq!(acks.timer().deadline(), Instant::from_micros(21_100));
        acks.expired(RTO);
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(at, false);
        assert!(!acks.timer().is_armed());
        // Another gap begins anew; without SACK nothing is held back.
        acks.on_data(at, &Received { nxt: SeqNumber(1_007), ..missing });
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(at, false);
        acks.compress(false);
        acks.on_data(at, &missing);
        assert_eq!(acks.due(), Due::Alone);
    }

    #[test]
    fn a_small_window_brings_fewer_quick_acknowledgements() {
        let mut acks = Acknowledger::new(DelayedAck::Linux);
        for n in 0..5 {
            acks.on_data(Instant::ZERO, &Received { window: 8_000, ..data(Arrival::InOrder, 1_000, 1_000) });
            assert_eq!(acks.due() == Due::Soon, n < 4, "segment {n}");
            if acks.due() == Due::Soon {
                acks.sent(Instant::ZERO, false);
            }
        }
        assert_eq!(acks.timer().deadline(), Instant::from_millis(40));
    }

    #[test]
    fn the_delay_follows_the_spacing_between_40_and_200_ms() {
        let mut acks = linux();
        let mut arrive = |at: u64, deadline: u64| {
            let at = Instant::from_millis(at);
            acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
            assert_eq!((acks.due(), acks.timer().deadline()), (Due::No, Instant::from_millis(deadline)));
            acks.expired(RTO);
            acks.sent(acks.timer().deadline(), false);
        };
        // 25 ms after the last one: 40 / 2 + 25; the delay ran out, so twice as much; half of that and 60.
        arrive(40, 85);
        arrive(100, 205);
        // A gap longer than the delay leaves it, doubled by its expiry, but 200 ms is the most.
        arrive(500, 700);
        arrive(1_000, 1_200);
    }

    #[test]
    fn a_pause_or_a_duplicate_brings_quick_acknowledgements_back() {
        let mut acks = linux();
        let later = Instant::from_millis(15) + RTO + Duration::from_millis(1);
        acks.on_data(later, &data(Arrival::InOrder, 1_000, 1_000));
        assert_eq!(acks.due(), Due::Soon);

        let mut acks = linux();
        let at = Instant::from_millis(20);
        acks.on_data(at, &data(Arrival::Duplicate, 1_000, 1_000));
        assert_eq!(acks.due(), Due::Alone);
        acks.sent(at, false);
        for _ in 0..15 {
            acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
            assert_eq!(acks.due(), Due::Soon);
            acks.sent(at, false);
        }
        acks.on_data(at, &data(Arrival::InOrder, 1_000, 1_000));
        assert_eq!(acks.due(), Due::No);
    }

    #[test]
    fn a_pushed_segment_is_acknowledged_when_it_is_read_unless_the_host_answers() {
        let pushed = Received { push: true, ..data(Arrival::InOrder, 200, 1_000) };
        let at = Instant::from_millis(20);
        let mut acks = linux();
        acks.on_data(at, &pushed);
        assert_eq!(acks.due(), Due::Soon);
        // The acknowledgement rides on an answer: from now on it waits for one.
        acks.sent(at, true);
        acks.on_data(at, &pushed);
        assert_eq!((acks.due(), acks.timer().deadline()), (Due::No, Instant::from_millis(60)));
        // A second small one does not wait.
        acks.on_data(at, &pushed);
        assert_eq!(acks.due(), Due::Soon);
        // Nor does one after an answer that did not come.
        acks.sent(at, true);
        acks.on_data(at, &pushed);
        acks.expired(RTO);
        acks.sent(Instant::from_millis(60), false);
        acks.on_data(Instant::from_millis(70), &pushed);
        assert_eq!(acks.due(), Due::Soon);
    }
}
