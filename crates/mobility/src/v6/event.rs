//! What agents and nodes tell their owner.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use careof_wire::icmpv6::PrefixInformation;
use careof_wire::mip6::{
    BindingId, BindingStatus, Ipv4AddressStatus, Lifetime, PathReport, ReceivedData, SequenceNumber,
};

use super::DropReason;
use crate::{Change, HandoverEvent, InterfaceId};

/// Something happened that the owner may act on or write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A phase of a handover (mobile node).
    Handover(HandoverEvent<Ipv6Addr, BindingStatus>),
    /// A binding changed: at the home agent or correspondent node, and in the mobile node's view of the home agent's.
    Binding(BindingChanged),
    /// A binding at a correspondent node changed, in the mobile node's view.
    Correspondent(CorrespondentChanged),
    /// A mobile node has said, in an update that was accepted, that a handover has ended (correspondent node).
    HandoverEnded {
        /// The mobile node.
        home_address: Ipv6Addr,
        /// Where its packets go now; its home address at home.
        care_of: Ipv6Addr,
    },
    /// The owner is to do something in neighbor discovery (home agent and mobile node).
    Neighbor(NeighborEvent),
    /// A Binding Update was sent, received, accepted or refused.
    Registration(RegistrationEvent),
    /// A care-of address that the mobile node has left no longer counts for what comes back (home agent).
    ReverseTunnelEnded {
        /// The mobile node.
        home_address: Ipv6Addr,
    },
    /// The mobile node has found these home agents, the most preferable first (RFC 6275 section 11.4.1).
    HomeAgentsFound {
        /// Their addresses.
        home_agents: Vec<Ipv6Addr>,
    },
    /// The mobile node has learned the prefixes of its home network (RFC 6275 section 11.4.3).
    HomePrefixes {
        /// As the home agent advertised them.
        prefixes: Vec<PrefixInformation>,
    },
    /// Somebody else on the home link has the mobile node's home address: it must not be used again (RFC 6275 section 11.7.1).
    HomeAddressLost {
        /// The address.
        home_address: Ipv6Addr,
    },
    /// What the home agent makes of the mobile node's IPv4 home address is new (RFC 5555 section 4.4.2).
    Ipv4HomeAddress {
        /// What it is.
        outcome: Ipv4HomeOutcome,
    },
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The source address of its IPv6 header.
        source: Ipv6Addr,
    },
}

/// A binding changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingChanged {
    /// The mobile node.
    pub home_address: Ipv6Addr,
    /// Where its packets go, or went.
    pub care_of: Ipv6Addr,
    /// Which of several bindings (RFC 5648).
    pub id: Option<BindingId>,
    /// The lifetime granted; zero when removed or expired.
    pub lifetime: Lifetime,
    /// What became of it.
    pub change: Change,
    /// Home agent: what the mobile node reported, under its authentication, of the path it now uses; `None` when it did
    /// not, or when no update of this binding's made the change.
    pub path: Option<PathReport>,
    /// Home agent: how far the mobile node has received its flows, as it said in the update that made the change.
    pub received: ReceivedData,
}

/// What a home agent has made of the IPv4 home address that a mobile node asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4HomeOutcome {
    /// It is bound, and this is it.
    Bound {
        /// The IPv4 home address.
        address: Ipv4Addr,
        /// Bits of the prefix of its home network, 1 to 32; 32: the home agent did not tell them.
        prefix_len: u8,
    },
    /// It is not bound.
    Refused {
        /// Why, 128 or more.
        status: Ipv4AddressStatus,
    },
    /// The home agent did not say: it knows no IPv4 home addresses, and is not asked again.
    NotSupported,
}

/// Route optimisation with a correspondent node began, was renewed or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrespondentChanged {
    /// The correspondent node.
    pub correspondent: Ipv6Addr,
    /// The care-of address that it has, or had.
    pub care_of: Ipv6Addr,
    /// The lifetime granted; zero when removed or expired.
    pub lifetime: Lifetime,
    /// What became of it.
    pub change: Change,
}

/// What the owner is to do in neighbor discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborEvent {
    /// Find out whether another node on the link has `address` (RFC 4862 section 5.4), and hand the outcome back as
    /// `Input::DuplicateAddressDetection`.
    DetectDuplicate {
        /// The link.
        interface: InterfaceId,
        /// The address.
        address: Ipv6Addr,
        /// How long to wait for somebody who has it.
        wait: Duration,
    },
    /// Home agent: answer neighbor solicitations for `address` on the home link, and defend it, or no longer (RFC 6275 section
    /// 10.4.1).
    Proxy {
        /// The home link.
        interface: InterfaceId,
        /// The home address of a mobile node that is away, or the link-local address that belongs to it.
        address: Ipv6Addr,
        /// Whether to answer from now on.
        on: bool,
    },
    /// Mobile node: answer, or no longer answer, neighbor solicitations for its own home address. On the home link it does so from
    /// the moment it deregisters (RFC 6275 section 11.5.5).
    Answer {
        /// The home link; where it does not answer any longer, the link it has left.
        interface: InterfaceId,
        /// The home address, or the link-local address that belongs to it.
        address: Ipv6Addr,
        /// Whether to answer from now on.
        on: bool,
    },
    /// Multicast to all nodes of the link an unsolicited neighbor advertisement for `address` with the own link-layer address and
    /// the Override flag. The owner may repeat it up to MAX_NEIGHBOR_ADVERTISEMENT (3) times.
    Advertise {
        /// The link.
        interface: InterfaceId,
        /// The address.
        address: Ipv6Addr,
    },
}

/// A Binding Update or its acknowledgement, as a trace wants to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationEvent {
    /// What happened.
    pub step: RegistrationStep,
    /// Whose registration.
    pub home_address: Ipv6Addr,
    /// The care-of address.
    pub care_of: Ipv6Addr,
    /// With whom: the home agent or the correspondent node.
    pub peer: Ipv6Addr,
    /// Lifetime asked for or granted.
    pub lifetime: Lifetime,
    /// The sequence number of the update.
    pub sequence: SequenceNumber,
    /// The interface, where the node knows it.
    pub interface: Option<InterfaceId>,
}

/// What happened to a Binding Update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationStep {
    /// A mobile node sent one; `attempt` counts from 1.
    UpdateSent {
        /// Which try this is.
        attempt: u32,
    },
    /// A home agent or correspondent node received one.
    UpdateReceived,
    /// It sent an acknowledgement with this status.
    AcknowledgementSent {
        /// The status.
        status: BindingStatus,
    },
    /// A mobile node's update was accepted.
    Accepted {
        /// The status, below 128.
        status: BindingStatus,
        /// Time since the update.
        round_trip: Duration,
    },
    /// A mobile node's update was refused.
    Refused {
        /// The status, 128 or more.
        status: BindingStatus,
        /// Time since the update.
        round_trip: Duration,
    },
    /// An update got no acknowledgement in time.
    TimedOut {
        /// Which try this was.
        attempt: u32,
    },
}

impl RegistrationStep {
    /// The name in traces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UpdateSent { .. } => "update-sent",
            Self::UpdateReceived => "update-received",
            Self::AcknowledgementSent { .. } => "acknowledgement-sent",
            Self::Accepted { .. } => "accepted",
            Self::Refused { .. } => "refused",
            Self::TimedOut { .. } => "timed-out",
        }
    }
}
