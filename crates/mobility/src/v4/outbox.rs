//! What waits to be polled by the owner of a Mobile IPv4 node.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::io::DEFAULT_TTL;
use super::{Counters, DropReason, Event, InterfaceId, REGISTRATION_PORT, Transmit, TransmitPayload};

/// Messages and events of an agent or node that its owner has not polled yet.
pub(crate) type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

impl Outbox {
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

    pub(crate) fn count_accepted(&mut self) {
        self.counters.accepted = self.counters.accepted.saturating_add(1);
    }

    /// Counts a message that had no effect, and says so.
    pub(crate) fn drop(&mut self, reason: DropReason, source: Ipv4Addr) {
        self.counters.count_drop(reason);
        self.event(Event::Dropped { reason, source });
    }
}
