//! What waits to be polled by the owner.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;

use super::io::DEFAULT_TTL;
use super::{Counters, DropReason, Event, InterfaceId, REGISTRATION_PORT, Transmit, TransmitPayload};

/// Messages and events of an agent or node that its owner has not polled yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    pub(crate) counters: Counters,
    /// When the owner last called.
    now: Instant,
}

impl Outbox {
    /// The owner calls at `now`. Time that runs backwards is a bug of the owner's; debug builds say so.
    pub(crate) fn called_at(&mut self, now: Instant) {
        debug_assert!(now >= self.now, "called at {now}, after {}", self.now);
        self.now = now;
    }

    /// When the owner last called.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn transmit(&mut self, transmit: Transmit) {
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(transmit);
    }

    /// A message of Mobile IP from one agent's port to another's; without an interface it goes where the routes lead.
    pub(crate) fn message(
        &mut self,
        interface: Option<InterfaceId>,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        bytes: Vec<u8>,
    ) {
        self.transmit(Transmit {
            interface,
            source,
            destination,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: REGISTRATION_PORT,
                bytes,
            },
        });
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(crate) fn count_received(&mut self) {
        self.counters.received = self.counters.received.saturating_add(1);
    }

    pub(crate) fn count_accepted(&mut self) {
        self.counters.accepted = self.counters.accepted.saturating_add(1);
    }

    /// Counts a message that had no effect, and says so.
    pub(crate) fn drop(&mut self, reason: DropReason, source: Ipv4Addr) {
        self.counters.count_drop(reason);
        self.events.push_back(Event::Dropped { reason, source });
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.called_at(now);
        self.transmits.pop_front()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
