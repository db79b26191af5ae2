//! The wire: packets that were sent and have not arrived.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use careof_base::Instant;

use crate::queue::{Ecn, Queued};
use crate::ring::Ring;

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnWire<P> {
    pub(crate) arrival: Instant,
    /// When its last bit is sent.
    pub(crate) end: Instant,
    /// When it entered the queue.
    pub(crate) since: Instant,
    pub(crate) packet: P,
    pub(crate) size: u16,
    /// Lost on the way: it will be missed at `arrival`.
    pub(crate) lost: bool,
    pub(crate) ecn: Ecn,
}

impl<P: Copy> OnWire<P> {
    /// What was queued, sent by `end`.
    #[inline]
    pub(crate) fn new(queued: &Queued<P>, end: Instant, arrival: Instant) -> Self {
        let Queued { since, packet, size, ecn } = *queued;
        Self { arrival, end, since, packet, size, lost: false, ecn }
    }

    /// What it was in the queue.
    pub(crate) fn queued(&self) -> Queued<P> {
        let Self { since, packet, size, ecn, .. } = *self;
        Queued { since, packet, size, ecn }
    }
}

/// Packets by their time of arrival.
///
/// Those that keep their order stand in a ring; only those that may overtake need a heap.
#[derive(Clone, Debug)]
pub(crate) struct Wire<P> {
    in_order: Ring<OnWire<P>>,
    in_any_order: BinaryHeap<Reverse<Numbered<P>>>,
    sent_in_any_order: u64,
    /// The latest arrival of all that are, or were, on the wire.
    latest: Instant,
    /// The same before the last packet was sent.
    latest_before: Instant,
}

impl<P: Copy> Wire<P> {
    pub(crate) fn new() -> Self {
        Self {
            in_order: Ring::new(),
            in_any_order: BinaryHeap::new(),
            sent_in_any_order: 0,
            latest: Instant::ZERO,
            latest_before: Instant::ZERO,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.in_any_order.len()
    }

    /// Sends a packet that arrives after all that were sent before it.
    #[inline(always)]
    pub(crate) fn send_in_order(&mut self, mut packet: OnWire<P>) {
        packet.arrival = packet.arrival.max(self.latest);
        self.latest_before = self.latest;
        self.latest = packet.arrival;
        self.in_order.push(packet);
    }

    /// Sends a packet that arrives in its own time.
    pub(crate) fn send_in_any_order(&mut self, packet: OnWire<P>) {
        self.latest_before = self.latest;
        self.latest = self.latest.max(packet.arrival);
        self.in_any_order.push(Reverse(Numbered { number: self.sent_in_any_order, packet }));
        self.sent_in_any_order += 1;
    }

    /// Takes the packet that was sent last, in that manner, off the wire, as if it had not been sent.
    pub(crate) fn recall(&mut self, in_any_order: bool) {
        if in_any_order {
            self.sent_in_any_order -= 1;
            let recalled = self.sent_in_any_order;
            let mut rest = core::mem::take(&mut self.in_any_order).into_vec();
            rest.retain(|p| p.0.number != recalled);
            self.in_any_order = rest.into();
        } else {
            self.in_order.pop_newest();
        }
        self.latest = self.latest_before;
    }

    /// Whether every packet on it arrives, unmarked and in order.
    pub(crate) fn is_plain(&self) -> bool {
        let is_plain = |packet: &OnWire<P>| !packet.lost && packet.ecn != Ecn::Marked;
        self.in_any_order.is_empty()
            && (0..self.in_order.len()).filter_map(|n| self.in_order.get(n)).all(is_plain)
    }

    /// How many keep their order.
    #[inline]
    pub(crate) fn len_in_order(&self) -> usize {
        self.in_order.len()
    }

    /// The next to arrive of those that keep their order.
    #[inline(always)]
    pub(crate) fn first_in_order(&self) -> Option<&OnWire<P>> {
        self.in_order.front()
    }

    /// Takes the next to arrive of those that keep their order.
    #[inline(always)]
    pub(crate) fn pop_in_order(&mut self) -> Option<OnWire<P>> {
        self.in_order.pop()
    }

    /// The `n`th of those that keep their order, counted from 1 for the one that was sent last.
    #[inline]
    pub(crate) fn newest_in_order(&self, n: usize) -> Option<&OnWire<P>> {
        self.in_order.get(self.in_order.len().wrapping_sub(n))
    }

    /// Takes the packet that was sent last off the wire, where all keep their order.
    pub(crate) fn take_back(&mut self) -> Option<OnWire<P>> {
        let taken = self.in_order.pop_newest();
        let arrival = |n| self.newest_in_order(n).map_or(Instant::ZERO, |packet| packet.arrival);
        // What has arrived holds nobody up.
        (self.latest, self.latest_before) = (arrival(1), arrival(2));
        taken
    }

    /// The next arrival.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        let ordered = self.in_order.front().map(|p| p.arrival);
        if self.in_any_order.is_empty() {
            return ordered;
        }
        let unordered = self.in_any_order.peek().map(|p| p.0.packet.arrival);
        match (ordered, unordered) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes the next packet that has arrived by `now`. Packets that arrive together come as they were sent.
    #[inline]
    pub(crate) fn receive(&mut self, now: Instant) -> Option<OnWire<P>> {
        if !self.in_any_order.is_empty() {
            return self.receive_from_both(now);
        }
        if self.in_order.front()?.arrival > now {
            return None;
        }
        self.in_order.pop()
    }

    /// As [`Self::receive`], with both kinds of packets on the wire.
    fn receive_from_both(&mut self, now: Instant) -> Option<OnWire<P>> {
        let next = self.next_arrival().filter(|arrival| *arrival <= now)?;
        // Both kinds meet only after a reconfiguration. A packet of the heap that arrives together with one of
        // the ring was sent before it, or was free to overtake it.
        if self.in_any_order.peek().is_some_and(|p| p.0.packet.arrival == next) {
            return self.in_any_order.pop().map(|p| p.0.packet);
        }
        self.in_order.pop()
    }

    /// Removes the packets that arrive after `instant`, in the order of their arrival for each kind.
    pub(crate) fn cut(&mut self, instant: Instant, mut lost: impl FnMut(OnWire<P>)) {
        let mut kept = 0;
        while self.in_order.get(kept).is_some_and(|p| p.arrival <= instant) {
            kept += 1;
        }
        (kept..self.in_order.len()).filter_map(|n| self.in_order.get(n).copied()).for_each(&mut lost);
        while self.in_order.len() > kept {
            self.in_order.pop_newest();
        }
        let mut rest = core::mem::take(&mut self.in_any_order).into_sorted_vec();
        // Sorted by `Reverse`: the latest come first.
        while let Some(p) = rest.pop() {
            if p.0.packet.arrival > instant {
                lost(p.0.packet);
            } else {
                self.in_any_order.push(p);
            }
        }
        self.latest = self.latest.min(instant);
    }

    /// Puts off every arrival after `instant` by `nanos`.
    pub(crate) fn postpone(&mut self, instant: Instant, nanos: u64) {
        let put_off = |arrival: &mut Instant| {
            if *arrival > instant {
                *arrival = Instant::from_nanos(arrival.as_nanos().saturating_add(nanos));
            }
        };
        self.in_order.for_each_mut(|p| put_off(&mut p.arrival));
        let mut unordered = core::mem::take(&mut self.in_any_order).into_vec();
        unordered.iter_mut().for_each(|p| put_off(&mut p.0.packet.arrival));
        self.in_any_order = unordered.into();
        put_off(&mut self.latest);
    }
}

/// A packet in the heap, ordered by (arrival, number).
#[derive(Clone, Copy, Debug)]
struct Numbered<P> {
    number: u64,
    packet: OnWire<P>,
}

impl<P> Numbered<P> {
    fn key(&self) -> (Instant, u64) {
        (self.packet.arrival, self.number)
    }
}

impl<P> PartialEq for Numbered<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Numbered<P> {}

impl<P> PartialOrd for Numbered<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Numbered<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn on_wire(packet: u32, arrival: u64) -> OnWire<u32> {
        let queued = Queued { since: Instant::ZERO, packet, size: 100, ecn: Ecn::Incapable };
        OnWire::new(&queued, at(arrival), at(arrival))
    }

    fn receive_all(wire: &mut Wire<u32>, now: u64) -> Vec<u32> {
        core::iter::from_fn(|| wire.receive(at(now))).map(|p| p.packet).collect()
    }

    #[test]
    fn a_packet_that_may_not_overtake_arrives_with_the_one_before() {
        let mut wire = Wire::new();
        wire.send_in_order(on_wire(1, 30));
        wire.send_in_order(on_wire(2, 20));
        wire.send_in_order(on_wire(3, 40));
        assert_eq!(receive_all(&mut wire, 29), vec![]);
        assert_eq!(receive_all(&mut wire, 30), vec![1, 2]);
        assert_eq!(wire.next_arrival(), Some(at(40)));
    }

    #[test]
    fn packets_that_may_overtake_arrive_in_their_own_time_and_ties_in_the_order_sent() {
        let mut wire = Wire::new();
        for (packet, arrival) in [(1, 30), (2, 20), (3, 30), (4, 30)] {
            wire.send_in_any_order(on_wire(packet, arrival));
        }
        assert_eq!(receive_all(&mut wire, 100), vec![2, 1, 3, 4]);
    }

    #[test]
    fn order_is_kept_from_the_moment_it_is_asked_for() {
        let mut wire = Wire::new();
        wire.send_in_any_order(on_wire(1, 50));
        wire.send_in_any_order(on_wire(2, 20));
        wire.send_in_order(on_wire(3, 30));
        wire.send_in_any_order(on_wire(4, 25));
        assert_eq!(wire.len(), 4);
        assert_eq!(receive_all(&mut wire, 100), vec![2, 4, 1, 3]);
    }

    #[test]
    fn a_cut_wire_keeps_what_has_arrived() {
        let mut wire = Wire::new();
        for (packet, arrival) in [(1, 10), (2, 20), (3, 30)] {
            wire.send_in_order(on_wire(packet, arrival));
            wire.send_in_any_order(on_wire(packet + 10, arrival + 1));
        }
        let mut lost = vec![];
        wire.cut(at(20), |p| lost.push(p.packet));
        assert_eq!(lost, vec![3, 12, 13]);
        // What was cut off holds nobody up.
        wire.send_in_order(on_wire(4, 22));
        assert_eq!(receive_all(&mut wire, 22), vec![1, 11, 2, 4]);
    }

    #[test]
    fn a_postponed_wire_keeps_its_spacing() {
        let mut wire = Wire::new();
        for (packet, arrival) in [(1, 10), (2, 20), (3, 30)] {
            wire.send_in_order(on_wire(packet, arrival));
            wire.send_in_any_order(on_wire(packet + 10, arrival + 1));
        }
        wire.postpone(at(15), 100);
        assert_eq!(receive_all(&mut wire, 100), vec![1, 11]);
        assert_eq!(receive_all(&mut wire, 120), vec![2]);
        assert_eq!(receive_all(&mut wire, 131), vec![12, 3, 13]);
    }
}
