//! Controlled delay.
//!
//! RFC 8289 (January 2018): the estimator and the control loop of section 5, which decide when a packet comes to
//! the head of the queue. Where the queue marks ECN-capable packets instead of dropping them, the control loop runs on as if
//! it had dropped (as in Linux, include/net/codel_impl.h; the RFC leaves it open).

use careof_base::{Duration, Instant};

use crate::jitter::nanos;
use crate::queue::{Ecn, Fifo, Queued};

/// The state that RFC 8289 section 5 keeps for a queue, with its names.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    /// Nanoseconds.
    target: u64,
    /// Nanoseconds.
    interval: u64,
    /// `maxpacket`: with no more than this many bytes behind it, a packet has met no standing queue.
    max_packet: u64,
    /// When the time in the queue will have been above the target for an interval.
    first_above_time: Option<Instant>,
    /// When the next packet is dropped, in the dropping state.
    drop_next: Instant,
    /// Packets dropped since the dropping state was entered.
    count: u32,
    /// `count` at the entry into the dropping state.
    last_count: u32,
    dropping: bool,
    /// Packets marked.
    pub(crate) marked: u64,
}

impl CoDel {
    pub(crate) fn new(target: Duration, interval: Duration, mtu: u16) -> Self {
        Self {
            target: nanos(target),
            interval: nanos(interval),
            max_packet: u64::from(mtu),
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            marked: 0,
        }
    }

    /// Takes on other constants and keeps its state.
    pub(crate) fn reconfigure(&mut self, target: Duration, interval: Duration, mtu: u16) {
        self.target = nanos(target);
        self.interval = nanos(interval);
        self.max_packet = u64::from(mtu);
    }

    /// The queue is empty: what comes next has not waited.
    pub(crate) fn becomes_empty(&mut self) {
        self.first_above_time = None;
        self.dropping = false;
    }

    /// Takes the next packet to be sent at `now`, dropping some before it where the law says so.
    pub(crate) fn take<P: Copy>(
        &mut self,
        now: Instant,
        queue: &mut Fifo<P>,
        marks: bool,
        mut drop: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        let mark = |head: &mut Option<Queued<P>>, count: &mut u64| match head {
            Some(head) if marks && head.ecn != Ecn::Incapable => {
                head.ecn = Ecn::Marked;
                *count += 1;
                true
            }
            _ => false,
        };
        let (mut head, mut ok_to_drop) = self.dodequeue(now, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                if mark(&mut head, &mut self.marked) {
                    self.count = self.count.saturating_add(1);
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                head.into_iter().for_each(&mut drop);
                self.count = self.count.saturating_add(1);
                (head, ok_to_drop) = self.dodequeue(now, queue);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            if !mark(&mut head, &mut self.marked) {
                head.into_iter().for_each(&mut drop);
                (head, _) = self.dodequeue(now, queue);
            }
            self.dropping = true;
            // A queue that grew again soon after it was controlled needs the drop rate that controlled it.
            let delta = self.count.saturating_sub(self.last_count);
            let since_last = now.as_nanos().saturating_sub(self.drop_next.as_nanos());
            self.count = if delta > 1 && since_last < self.interval.saturating_mul(16) { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        head
    }

    /// When to look again for a drop, if the next packet is taken at `next`: then, if it will be dropped, or else
    /// when a later one may be. A look may come to nothing; a drop never comes unlooked for.
    pub(crate) fn next_look<P: Copy>(&self, next: Instant, queue: &Fifo<P>) -> Option<Instant> {
        let head = queue.head()?;
        let due =
            self.first_above_time.map(|since| if self.dropping { since.max(self.drop_next) } else { since });
        Some(match due {
            Some(due) if due > next => due,
            Some(_) if self.is_above(next, head, queue.bytes() - u64::from(head.size)) => next,
            // This packet passes: an interval begins at the earliest when it does.
            _ => self.after_interval(next),
        })
    }

    fn after_interval(&self, instant: Instant) -> Instant {
        Instant::from_nanos(instant.as_nanos().saturating_add(self.interval))
    }

    /// Takes the packet at the head, and says whether it may be dropped.
    fn dodequeue<P: Copy>(&mut self, now: Instant, queue: &mut Fifo<P>) -> (Option<Queued<P>>, bool) {
        let Some(head) = queue.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        if !self.is_above(now, &head, queue.bytes()) {
            self.first_above_time = None;
            return (Some(head), false);
        }
        let ok_to_drop = match self.first_above_time {
            None => {
                self.first_above_time = Some(self.after_interval(now));
                false
            }
            Some(since) => now >= since,
        };
        (Some(head), ok_to_drop)
    }

    /// Whether `packet`, with `backlog` bytes behind it, has waited for a standing queue.
    fn is_above<P>(&self, now: Instant, packet: &Queued<P>, backlog: u64) -> bool {
        let sojourn = now.as_nanos().saturating_sub(packet.since.as_nanos());
        sojourn >= self.target && backlog > self.max_packet
    }

    /// The next drop after `instant`: an interval divided by the root of the drops so far.
    fn control_law(&self, instant: Instant) -> Instant {
        let wait = self.interval as f64 / libm::sqrt(f64::from(self.count.max(1)));
        Instant::from_nanos(instant.as_nanos().saturating_add(wait as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn codel() -> CoDel {
        CoDel::new(Duration::from_millis(5), Duration::from_millis(100), 1500)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A packet each millisecond leaves a queue in which each waits `sojourn` ms; says when one was dropped, in ms.
    fn drops_at(codel: &mut CoDel, sojourn: u64, from: u64, to: u64) -> Vec<u64> {
        let mut dropped = Vec::new();
        for now in from..to {
            let mut queue = Fifo::new();
            // Enough packets for any number of drops, all of the same age.
            for packet in 0..100_u32 {
                queue.push(Queued { since: at(now - sojourn), packet, size: 1000, ecn: Ecn::Incapable });
            }
            let foretold = codel.next_look(at(now), &queue) == Some(at(now));
            let before = dropped.len();
            codel.take(at(now), &mut queue, false, |_| dropped.push(now));
            assert_eq!(foretold, dropped.len() > before);
        }
        dropped
    }

    #[test]
    fn the_first_drop_waits_for_an_interval_above_the_target() {
        assert_eq!(drops_at(&mut codel(), 5, 1000, 1150).first(), Some(&1100));
        assert!(drops_at(&mut codel(), 4, 1000, 3000).is_empty());
    }

    #[test]
    fn drops_follow_each_other_at_the_interval_over_the_root_of_their_number() {
        let dropped = drops_at(&mut codel(), 20, 1000, 3000);
        let mut expected = 1100.0;
        for (n, found) in dropped.iter().enumerate() {
            assert!(
                (*found as f64 - expected) < 1.0 && *found as f64 >= expected,
                "{n}: {found}, {expected}"
            );
            expected += 100.0 / ((n + 1) as f64).sqrt();
        }
        assert!(dropped.len() > 80, "{}", dropped.len());
    }

    #[test]
    fn a_packet_below_the_target_ends_the_dropping_state() {
        let mut codel = codel();
        assert!(!drops_at(&mut codel, 20, 1000, 1250).is_empty());
        assert!(drops_at(&mut codel, 1, 1250, 1251).is_empty());
        assert!(!codel.dropping);
        assert_eq!(drops_at(&mut codel, 20, 1251, 1352), [1351]);
    }

    #[test]
    fn a_queue_that_comes_back_soon_meets_the_drop_rate_it_left() {
        let mut codel = codel();
        let first = drops_at(&mut codel, 20, 1000, 2000).len() as u32;
        drops_at(&mut codel, 1, 2000, 2001);
        drops_at(&mut codel, 20, 2001, 2102);
        assert_eq!(codel.count, first - 1);
        // Long after, it starts anew.
        drops_at(&mut codel, 1, 2102, 2103);
        drops_at(&mut codel, 20, 9000, 9101);
        assert_eq!(codel.count, 1);
    }

    #[test]
    fn the_last_packets_of_a_queue_are_never_dropped() {
        let mut codel = codel();
        let mut dropped = 0;
        for now in 1000..3000 {
            let mut queue = Fifo::new();
            for packet in 0..2_u32 {
                queue.push(Queued { since: at(now - 50), packet, size: 1500, ecn: Ecn::Incapable });
            }
            codel.take(at(now), &mut queue, false, |_| dropped += 1);
        }
        assert_eq!(dropped, 0);
    }

    #[test]
    fn an_empty_queue_forgets() {
        let mut codel = codel();
        assert!(!drops_at(&mut codel, 20, 1000, 1250).is_empty());
        let mut queue = Fifo::<u32>::new();
        assert!(codel.take(at(1250), &mut queue, false, |_| ()).is_none());
        assert!(!codel.dropping && codel.first_above_time.is_none());
    }

    #[test]
    fn marks_follow_each_other_as_drops_would_and_only_what_cannot_be_marked_is_dropped() {
        let run = |ecn: Ecn| {
            let mut codel = codel();
            let (mut marked, mut dropped) = (Vec::new(), Vec::new());
            for now in 1000..3000 {
                let mut queue = Fifo::new();
                for packet in 0..100_u32 {
                    queue.push(Queued { since: at(now - 20), packet, size: 1000, ecn });
                }
                let head = codel.take(at(now), &mut queue, true, |_| dropped.push(now));
                if head.is_some_and(|head| head.ecn == Ecn::Marked) {
                    marked.push(now);
                }
            }
            assert_eq!(codel.marked, marked.len() as u64);
            (marked, dropped)
        };
        let (marked, dropped) = run(Ecn::Capable);
        assert!(dropped.is_empty());
        let (none, by_drops) = run(Ecn::Incapable);
        assert!(none.is_empty());
        // The control law is the same; one millisecond a packet is too coarse for more than a mark each.
        assert_eq!(marked[..10], by_drops[..10]);
        assert!(marked.len() > 50, "{}", marked.len());
    }
}
