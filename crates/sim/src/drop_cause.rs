//! Why a packet ended before its destination.

use careof_assist::DropReason;
use careof_link::DropCause as LinkDrop;

/// Why a node dropped a packet; a link's causes are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeDrop {
    /// The time to live ran out.
    TtlExpired,
    /// No route, or a group address nobody here listens to.
    NoRoute,
    /// The home agent has no binding for the destination.
    NoBinding,
    /// Larger than the next link or tunnel carries, and not to be fragmented; the sender is told.
    FragmentationNeeded,
    /// A fragment whose datagram never became whole.
    ReassemblyTimeout,
    /// A tunnelled packet from somebody who has no business sending it.
    ForeignTunnel,
    /// None of the several paths to the other end works.
    NoPath,
    /// A copy of it has come already by another path.
    Duplicate,
    /// A relay has no alliance with whose packet it is.
    NoAlly,
    /// It is more than a relay lets its ally have.
    OverRate,
    /// A relay drops it, as the scenario has it.
    RelayFault,
    /// The relay has vanished.
    RelayGone,
    /// A packet for a mobile node that came back to who had tunnelled it, or whom nobody knows where to find.
    TunnelLoop,
    /// A host that does not forward got a packet of somebody else.
    NotForUs,
    /// A message that cannot be read.
    Malformed,
    /// The mobile node has left the station that would send it the packet.
    LeftCell,
    /// Dropped from the old link's queue by the handover, as the scenario asks.
    Handover,
    /// As many packets as may wait for the link-layer address of their next hop, and this was the oldest.
    NeighborQueueFull,
    /// Its next hop does not answer.
    NeighborUnreachable,
    /// The buffer of an access router is full, and this was the oldest packet in it.
    BufferFull,
    /// An access router has waited for the mobile node too long.
    BufferExpired,
    /// The mobile node is not there, and its access router has no buffer.
    NotThereYet,
    /// A base station got it from its cell, with the source address of somebody who is not there.
    WrongSource,
    /// An assist holds the same bytes already.
    AssistHeldAlready,
    /// An assist has sent the same bytes on just now.
    AssistOnItsWay,
    /// An assist saw the same bytes delivered.
    AssistDeliveredAlready,
    /// An assist repairs the loss that this duplicate acknowledgement is about.
    AssistLocalRepair,
    /// The queue of an assist is full.
    AssistQueueFull,
    /// The choice of its discipline.
    AssistQueueManagement,
    /// It waited too long in an assist.
    AssistTooOld,
    /// It waited in an assist when the handover came.
    AssistHandover,
    /// It waited in an assist, does not fit the new path, and its sender sends the same bytes in smaller segments.
    AssistTooLarge,
}

impl NodeDrop {
    /// All causes in order.
    pub(crate) const ALL: [Self; 32] = [
        Self::TtlExpired,
        Self::NoRoute,
        Self::NoBinding,
        Self::FragmentationNeeded,
        Self::ReassemblyTimeout,
        Self::ForeignTunnel,
        Self::NoPath,
        Self::Duplicate,
        Self::NoAlly,
        Self::OverRate,
        Self::RelayFault,
        Self::RelayGone,
        Self::TunnelLoop,
        Self::NotForUs,
        Self::Malformed,
        Self::LeftCell,
        Self::Handover,
        Self::NeighborQueueFull,
        Self::NeighborUnreachable,
        Self::BufferFull,
        Self::BufferExpired,
        Self::NotThereYet,
        Self::WrongSource,
        Self::AssistHeldAlready,
        Self::AssistOnItsWay,
        Self::AssistDeliveredAlready,
        Self::AssistLocalRepair,
        Self::AssistQueueFull,
        Self::AssistQueueManagement,
        Self::AssistTooOld,
        Self::AssistHandover,
        Self::AssistTooLarge,
    ];

    /// The name in traces and summaries.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TtlExpired => "ttl-expired",
            Self::NoRoute => "no-route",
            Self::NoBinding => "no-binding",
            Self::FragmentationNeeded => "fragmentation-needed",
            Self::ReassemblyTimeout => "reassembly-timeout",
            Self::ForeignTunnel => "foreign-tunnel",
            Self::NoPath => "no-path",
            Self::Duplicate => "duplicate",
            Self::NoAlly => "no-ally",
            Self::OverRate => "over-rate",
            Self::RelayFault => "relay-fault",
            Self::RelayGone => "relay-gone",
            Self::TunnelLoop => "tunnel-loop",
            Self::NotForUs => "not-for-us",
            Self::Malformed => "malformed",
            Self::LeftCell => "left-cell",
            Self::Handover => "handover",
            Self::NeighborQueueFull => "neighbor-queue-full",
            Self::NeighborUnreachable => "neighbor-unreachable",
            Self::BufferFull => "buffer-full",
            Self::BufferExpired => "buffer-expired",
            Self::NotThereYet => "not-there-yet",
            Self::WrongSource => "wrong-source",
            Self::AssistHeldAlready => "assist-held-already",
            Self::AssistOnItsWay => "assist-on-its-way",
            Self::AssistDeliveredAlready => "assist-delivered-already",
            Self::AssistLocalRepair => "assist-local-repair",
            Self::AssistQueueFull => "assist-queue-full",
            Self::AssistQueueManagement => "assist-queue-management",
            Self::AssistTooOld => "assist-too-old",
            Self::AssistHandover => "assist-handover",
            Self::AssistTooLarge => "assist-too-large",
        }
    }
}

impl From<DropReason> for NodeDrop {
    fn from(reason: DropReason) -> Self {
        match reason {
            DropReason::HeldAlready => Self::AssistHeldAlready,
            DropReason::OnItsWay => Self::AssistOnItsWay,
            DropReason::DeliveredAlready => Self::AssistDeliveredAlready,
            DropReason::LocalRepair => Self::AssistLocalRepair,
            DropReason::QueueFull => Self::AssistQueueFull,
            DropReason::QueueManagement => Self::AssistQueueManagement,
            DropReason::TooOld => Self::AssistTooOld,
            DropReason::Handover => Self::AssistHandover,
            DropReason::TooLarge => Self::AssistTooLarge,
        }
    }
}

/// Why a packet was dropped, anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By a link.
    Link(LinkDrop),
    /// By a node.
    Node(NodeDrop),
}

impl Cause {
    /// The name in traces and summaries.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Link(cause) => cause.name(),
            Self::Node(cause) => cause.name(),
        }
    }
}
