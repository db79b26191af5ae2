//! What an access router hands out.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::{FastBindingStatus, HandoverCode, InitiateCode, Lifetime};

use crate::InterfaceId;
pub use crate::packet_buffer::{BufferCounters, DiscardReason, PacketToken};
use crate::v6::{Counters, DropReason, Tunnel};

/// A packet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The packet.
    pub packet: crate::v6::Transmit,
    /// The station it goes to, whatever the neighbor cache says of its destination. `None`: the owner resolves it as any other.
    pub link_layer_destination: Option<LinkLayerAddress>,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To its destination as the routes say, on the link of the mobile node.
    Link,
    /// Into the tunnel towards the mobile node's new access router.
    Tunnel(Tunnel),
}

/// What becomes of a packet for a mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It goes on.
    Pass(Way),
    /// It goes on to the link, and the owner keeps a copy under this token.
    PassAndKeep(PacketToken),
    /// The owner keeps it under this token.
    Hold(PacketToken),
    /// It is dropped: the mobile node is not there yet, and there is no buffer.
    Drop,
}

/// What becomes of a packet that the owner has kept. The owner drains these like packets and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes on.
    Release {
        /// Which.
        token: PacketToken,
        /// Where.
        way: Way,
    },
    /// It is thrown away.
    Discard {
        /// Which.
        token: PacketToken,
        /// Why.
        reason: DiscardReason,
    },
}

/// Something happened that the owner may act on or write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Previous access router: a Fast Binding Update was accepted as authentic and fresh.
    UpdateReceived {
        /// The mobile node's previous care-of address.
        previous: Ipv6Addr,
        /// The one it wants.
        new: Ipv6Addr,
        /// From which link it has come.
        code: InitiateCode,
        /// The lifetime asked for.
        lifetime: Lifetime,
    },
    /// Previous access router: packets for `previous` go through `tunnel` from now on.
    TunnelBegun {
        /// The mobile node's previous care-of address.
        previous: Ipv6Addr,
        /// The tunnel.
        tunnel: Tunnel,
    },
    /// Previous access router: they no longer do.
    TunnelEnded {
        /// The mobile node's previous care-of address.
        previous: Ipv6Addr,
        /// The tunnel.
        tunnel: Tunnel,
    },
    /// Previous access router: a handover was refused.
    Refused {
        /// The mobile node's previous care-of address.
        previous: Ipv6Addr,
        /// What it was told.
        status: FastBindingStatus,
    },
    /// New access router: a Handover Initiate was answered.
    Initiated {
        /// The mobile node's previous care-of address.
        previous: Ipv6Addr,
        /// The new one.
        new: Ipv6Addr,
        /// The answer.
        code: HandoverCode,
    },
    /// New access router: find out whether another node on the link has `address` (RFC 4862 section 5.4), and hand the outcome back as
    /// [`crate::v6::Input::DuplicateAddressDetection`].
    DetectDuplicate {
        /// The link.
        interface: InterfaceId,
        /// The address.
        address: Ipv6Addr,
        /// How long to wait for somebody who has it.
        wait: Duration,
    },
    /// New access router: answer neighbor solicitations for `address` and defend it, or no longer.
    Proxy {
        /// The link.
        interface: InterfaceId,
        /// The new care-of address.
        address: Ipv6Addr,
        /// Whether to answer from now on.
        on: bool,
    },
    /// New access router: the mobile node is there. The owner's neighbor cache has an entry in state STALE for `address` from now on (RFC
    /// 5568 section 4), and a host route to the link where `address` is not of its prefix.
    Arrived {
        /// The link.
        interface: InterfaceId,
        /// The address at which packets reach it.
        address: Ipv6Addr,
        /// Its station.
        link_layer_address: LinkLayerAddress,
    },
    /// New access router: it did not come in time.
    NeverCame {
        /// The new care-of address.
        address: Ipv6Addr,
    },
    /// New access router: the host route to a previous care-of address has ended.
    HostRouteEnded {
        /// The previous care-of address.
        address: Ipv6Addr,
    },
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The source address of its IPv6 header.
        source: Ipv6Addr,
    },
}

/// Why an access router wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A Handover Initiate has had no answer for too long.
    HandoverInitiateRetransmit,
    /// A buffered packet may go on.
    BufferRelease,
    /// A mobile node has not come in time.
    ProxyLifetime,
    /// A binding of a previous care-of address, or a host route to one, ends.
    BindingLifetime,
    /// A Duplicate Address Detection has had no outcome for too long.
    DuplicateAddressDetection,
    /// What was remembered of an announcement, or of a mobile node that has left its link, may be forgotten.
    Forget,
}

/// Messages and events that the owner has not polled yet.
pub(super) type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

impl Outbox {
    /// Counts a message that had no effect, and says so.
    pub(super) fn drop(&mut self, reason: DropReason, source: Ipv6Addr) {
        self.counters.count_drop(reason);
        self.event(Event::Dropped { reason, source });
    }

    /// A packet whose destination the owner resolves.
    pub(super) fn packet(&mut self, packet: crate::v6::Transmit) {
        self.transmit(Transmit { packet, link_layer_destination: None });
    }
}
