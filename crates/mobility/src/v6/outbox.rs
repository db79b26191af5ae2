//! What waits to be polled by the owner of a Mobile IPv6 node.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::io::DEFAULT_HOP_LIMIT;
use super::{Addresses, Counters, DropReason, Event, Transmit, TransmitPayload};
use crate::InterfaceId;

/// Messages and events of an agent or node that its owner has not polled yet.
pub(crate) type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

impl Outbox {
    /// A Mobility Header; without an interface it goes where the routes lead.
    pub(crate) fn mobility(
        &mut self,
        interface: Option<InterfaceId>,
        addresses: Addresses,
        message: Vec<u8>,
    ) {
        let payload = TransmitPayload::Mobility(message);
        self.transmit(Transmit { interface, addresses, hop_limit: DEFAULT_HOP_LIMIT, payload });
    }

    /// An ICMPv6 message that is no neighbor discovery; without an interface it goes where the routes lead.
    pub(crate) fn icmp(&mut self, interface: Option<InterfaceId>, addresses: Addresses, message: Vec<u8>) {
        let payload = TransmitPayload::Icmp(message);
        self.transmit(Transmit { interface, addresses, hop_limit: DEFAULT_HOP_LIMIT, payload });
    }

    /// Counts a message that had no effect, and says so.
    pub(crate) fn drop(&mut self, reason: DropReason, source: Ipv6Addr) {
        self.counters.count_drop(reason);
        self.event(Event::Dropped { reason, source });
    }
}
