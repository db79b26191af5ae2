//! What waits to be polled by the owner.

use alloc::collections::VecDeque;

use careof_base::Instant;

/// What every node counts.
pub(crate) trait Tally: Default {
    /// Messages handed in.
    fn received(&mut self) -> &mut u64;
    /// Messages handed out.
    fn sent(&mut self) -> &mut u64;
}

/// Messages and events of a node that its owner has not polled yet, and its counters.
#[derive(Debug)]
pub(crate) struct Outbox<T, E, C> {
    transmits: VecDeque<T>,
    events: VecDeque<E>,
    pub(crate) counters: C,
    /// When the owner last called.
    now: Instant,
}

impl<T, E, C: Tally> Default for Outbox<T, E, C> {
    fn default() -> Self {
        Self {
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: C::default(),
            now: Instant::ZERO,
        }
    }
}

impl<T, E, C: Tally> Outbox<T, E, C> {
    /// The owner calls at `now`. Time that runs backwards is a bug of the owner's; debug builds say so.
    pub(crate) fn called_at(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "called at {now}, after {}", self.now);
        self.now = now;
    }

    /// When the owner last called.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn transmit(&mut self, transmit: T) {
        let sent = self.counters.sent();
        *sent = sent.saturating_add(1);
        self.transmits.push_back(transmit);
    }

    pub(crate) fn event(&mut self, event: E) {
        self.events.push_back(event);
    }

    pub(crate) fn count_received(&mut self) {
        let received = self.counters.received();
        *received = received.saturating_add(1);
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<T> {
        self.called_at(now);
        self.pop_transmit()
    }

    /// For a node whose owner does not tell the time when it polls.
    pub(crate) fn pop_transmit(&mut self) -> Option<T> {
        self.transmits.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<E> {
        self.events.pop_front()
    }
}
