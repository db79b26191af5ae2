//! What a router and a mobile host of a micro-mobility domain take in and hand out.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::Ports;
use crate::drop_counts::DropCounts;
use crate::outbox::Tally;
use crate::packet_buffer::{DiscardReason, PacketToken};
use crate::{Change, InterfaceId};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// It goes to these interfaces, a copy to each.
    To(Ports),
    /// The owner keeps it under this token until an [`Action`] says what becomes of it.
    Hold(PacketToken),
    /// It goes to these interfaces, and the owner keeps a copy under this token.
    ToAndHold(Ports, PacketToken),
    /// It is dropped.
    Drop(PacketDrop),
}

impl Forward {
    /// Of a packet that goes to `rest` at once, and that was kept for the cell as well, or was not for this reason.
    pub(super) fn beside(kept: Result<PacketToken, PacketDrop>, rest: Ports) -> Self {
        match kept {
            Ok(token) if rest.is_empty() => Self::Hold(token),
            Ok(token) => Self::ToAndHold(rest, token),
            Err(reason) if rest.is_empty() => Self::Drop(reason),
            Err(_) => Self::To(rest),
        }
    }
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketDrop {
    /// It is for an address outside the domain, and came from there.
    NotOfDomain,
    /// There is no host route for the mobile node, or only the one it came by.
    NoRoute,
    /// The base station had the mobile node in its cell, and has not any longer.
    NotAttached,
    /// The mobile node is expected in the cell and not there yet, and nothing is kept for it.
    Early,
    /// It came from a cell, with the address of a mobile node of the domain that is not there.
    WrongSource,
    /// What is kept for the mobile node is as much as there may be, or the packet alone is more.
    BufferFull,
}

impl PacketDrop {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::NotOfDomain,
        Self::NoRoute,
        Self::NotAttached,
        Self::Early,
        Self::WrongSource,
        Self::BufferFull,
    ];

    /// The name in traces and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotOfDomain => "not-of-domain",
            Self::NoRoute => "no-route",
            Self::NotAttached => "not-attached",
            Self::Early => "early",
            Self::WrongSource => "wrong-source",
            Self::BufferFull => "buffer-full",
        }
    }
}

/// What becomes of a packet that the owner has kept. The owner drains these after every call, as it does with messages and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes to these interfaces.
    Release {
        /// Which.
        token: PacketToken,
        /// Where.
        ports: Ports,
    },
    /// It is thrown away.
    Discard {
        /// Which.
        token: PacketToken,
        /// Why.
        reason: DiscardReason,
    },
}

/// A message to a neighbour, in UDP to [`careof_wire::micro::PORT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The interface it leaves by.
    pub interface: InterfaceId,
    /// The mobile node it goes to, where the interface is the cell; `None`: the router at the other end of the link.
    pub mobile: Option<Ipv4Addr>,
    /// The UDP payload.
    pub payload: Vec<u8>,
}

/// Something happened that the owner may write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A host route is new, leads to other interfaces, has been taken away or ran out.
    RouteChanged {
        /// Whose.
        mobile: Ipv4Addr,
        /// The interfaces that packets go to now.
        ports: Ports,
        /// What became of it. A route that is only renewed makes no event.
        change: Change,
    },
    /// Base station: packets are on their way to here for a mobile node that is not here yet.
    Expected {
        /// Which.
        mobile: Ipv4Addr,
    },
    /// Base station: a mobile node has proved that it is here.
    Arrived {
        /// Which.
        mobile: Ipv4Addr,
    },
    /// Base station: a mobile node that was here, or was expected, has proved that it is elsewhere.
    Moved {
        /// Which.
        mobile: Ipv4Addr,
    },
    /// A packet for an idle mobile node went out to look for it.
    Paged {
        /// Which.
        mobile: Ipv4Addr,
        /// Where.
        ports: Ports,
    },
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: MessageDrop,
        /// The source address of its IP header.
        source: Ipv4Addr,
    },
}

/// Why a message was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageDrop {
    /// It cannot be parsed.
    Malformed,
    /// Its type is not one of the scheme that is configured, or not one for this node.
    NotForUs,
    /// It came by an interface that no such message comes by: from outside the domain, or a router's message from a cell.
    WrongInterface,
    /// It is not from the node it says it is from: the source address of its IP header is another.
    WrongSource,
    /// It is about a mobile node whose address is not one of the domain.
    NotOfDomain,
    /// It is for another base station, or names one that is not in the direction it came from.
    WrongStation,
    /// Its authenticator does not match.
    BadAuthenticator,
    /// Its timestamp is too far from our clock, or not later than the last of the same origin.
    Replayed,
    /// There is no room to remember it.
    TableFull,
    /// The mobile node has sent more than it may.
    OverShare,
    /// The mobile node asks for something that only one can ask for whose packets come here.
    NotServing,
    /// A confirmation that nobody waits for.
    Unexpected,
}

impl MessageDrop {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 12] = [
        Self::Malformed,
        Self::NotForUs,
        Self::WrongInterface,
        Self::WrongSource,
        Self::NotOfDomain,
        Self::WrongStation,
        Self::BadAuthenticator,
        Self::Replayed,
        Self::TableFull,
        Self::OverShare,
        Self::NotServing,
        Self::Unexpected,
    ];

    /// The name in traces and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotForUs => "not-for-us",
            Self::WrongInterface => "wrong-interface",
            Self::WrongSource => "wrong-source",
            Self::NotOfDomain => "not-of-domain",
            Self::WrongStation => "wrong-station",
            Self::BadAuthenticator => "bad-authenticator",
            Self::Replayed => "replayed",
            Self::TableFull => "table-full",
            Self::OverShare => "over-share",
            Self::NotServing => "not-serving",
            Self::Unexpected => "unexpected",
        }
    }
}

/// What a router or a mobile host has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handed in.
    pub received: u64,
    /// Messages handed out: the cost of signalling.
    pub sent: u64,
    /// Packets handed in.
    pub packets: u64,
    /// Copies of packets handed out beyond one each: what bicast and paging cost.
    pub copies: u64,
    messages_dropped: DropCounts<{ MessageDrop::ALL.len() }>,
    packets_dropped: DropCounts<{ PacketDrop::ALL.len() }>,
}

impl Tally for Counters {
    fn received(&mut self) -> &mut u64 {
        &mut self.received
    }

    fn sent(&mut self) -> &mut u64 {
        &mut self.sent
    }
}

impl Counters {
    /// Messages dropped for `reason`.
    #[must_use]
    pub fn messages_dropped(&self, reason: MessageDrop) -> u64 {
        self.messages_dropped.of(reason as usize)
    }

    /// Packets dropped for `reason`. What is thrown away after having been kept is in [`super::BufferCounters`].
    #[must_use]
    pub fn packets_dropped(&self, reason: PacketDrop) -> u64 {
        self.packets_dropped.of(reason as usize)
    }

    /// Messages dropped for any reason.
    #[must_use]
    pub fn messages_dropped_total(&self) -> u64 {
        self.messages_dropped.total()
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn packets_dropped_total(&self) -> u64 {
        self.packets_dropped.total()
    }

    /// Counts a packet and what becomes of it.
    pub(super) fn count_packet(&mut self, forward: Forward) {
        self.packets = self.packets.saturating_add(1);
        let copies = match forward {
            Forward::To(ports) => ports.len().saturating_sub(1),
            Forward::ToAndHold(ports, _) => ports.len(),
            Forward::Hold(_) => 0,
            Forward::Drop(reason) => {
                self.packets_dropped.count(reason as usize);
                0
            }
        };
        self.copies = self.copies.saturating_add(u64::from(copies));
    }
}

/// Why a router wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A host route, or something else that is kept for a time, may have run out.
    RouteLifetime,
    /// A packet has been kept for as long as it may, or goes on.
    Buffer,
    /// Neighbours have to be told that routes shall stay.
    Refresh,
    /// What was remembered against replays may be forgotten.
    Forget,
}

/// Messages and events that the owner has not polled yet.
pub(super) type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

impl Outbox {
    /// Counts a message that had no effect, and says so.
    pub(super) fn drop(&mut self, reason: MessageDrop, source: Ipv4Addr) {
        self.counters.messages_dropped.count(reason as usize);
        self.event(Event::Dropped { reason, source });
    }
}

/// A message of a mobile host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTransmit {
    /// The base station it goes to, in UDP to [`careof_wire::micro::PORT`]. It need not be the one that the host is attached to: a
    /// semi-soft handover begins with one packet to the next (draft-ietf-mobileip-cellularip section 4.1).
    pub station: Ipv4Addr,
    /// The UDP payload.
    pub payload: Vec<u8>,
}

/// What a mobile host tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// The base station has accepted the host's message.
    Confirmed {
        /// Which.
        station: Ipv4Addr,
    },
    /// Cellular IP: the host is active, or idle (draft-ietf-mobileip-cellularip section 3.8).
    Active(bool),
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: MessageDrop,
        /// The base station that it came from.
        source: Ipv4Addr,
    },
}

/// Why a mobile host wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostWake {
    /// A message has had no confirmation for too long.
    Retransmit,
    /// Its routes have to be renewed.
    Refresh,
    /// It has had no packet for so long that it becomes idle.
    Idle,
}

/// Messages and events that the owner has not polled yet.
pub(super) type HostOutbox = crate::outbox::Outbox<HostTransmit, HostEvent, Counters>;

impl HostOutbox {
    /// Counts a message that had no effect, and says so.
    pub(super) fn drop(&mut self, reason: MessageDrop, source: Ipv4Addr) {
        self.counters.messages_dropped.count(reason as usize);
        self.event(HostEvent::Dropped { reason, source });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter_and_name() {
        for (index, reason) in MessageDrop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(MessageDrop::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
        for (index, reason) in PacketDrop::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(PacketDrop::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
            let mut counters = Counters::default();
            counters.count_packet(Forward::Drop(reason));
            assert_eq!((counters.packets_dropped(reason), counters.packets_dropped_total()), (1, 1));
        }
    }
}
