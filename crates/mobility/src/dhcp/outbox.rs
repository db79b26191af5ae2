//! What waits to be polled by the owner.

use alloc::collections::VecDeque;

use careof_base::Instant;

use super::Counters;
use crate::v4::Transmit;

/// Messages and events of a client or server that its owner has not polled yet.
#[derive(Debug)]
pub(super) struct Outbox<E> {
    transmits: VecDeque<Transmit>,
    events: VecDeque<E>,
    pub(super) counters: Counters,
    /// When the owner last called.
    now: Instant,
}

impl<E> Outbox<E> {
    pub(super) fn new() -> Self {
        Self {
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            now: Instant::ZERO,
        }
    }

    /// The owner calls at `now`. Time that runs backwards is a bug of the owner's; debug builds say so.
    pub(super) fn called_at(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "called at {now}, after {}", self.now);
        self.now = now;
    }

    pub(super) fn transmit(&mut self, transmit: Transmit) {
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(transmit);
    }

    pub(super) fn event(&mut self, event: E) {
        self.events.push_back(event);
    }

    pub(super) fn count_received(&mut self) {
        self.counters.received = self.counters.received.saturating_add(1);
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<E> {
        self.events.pop_front()
    }
}
