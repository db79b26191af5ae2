//! What agents and nodes tell their owner.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::mip4::{Identification, Lifetime, PathReport, ReplyCode};

use super::{DropReason, HandoverEvent, InterfaceId};
use crate::Change;

/// Something happened that the owner may act on or write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A phase of a handover (mobile node).
    Handover(HandoverEvent),
    /// A mobility binding changed (home agent, and the mobile node's view of it).
    Binding(BindingChanged),
    /// A care-of address that the mobile node has left no longer counts for what comes back (home agent).
    ReverseTunnelEnded {
        /// The mobile node.
        home_address: Ipv4Addr,
    },
    /// A visitor came or went (foreign agent).
    Visitor(VisitorChanged),
    /// The owner is to answer, or to announce, by ARP (home agent and mobile node, RFC 5944 section 4.6).
    Arp(ArpEvent),
    /// A registration message was sent, received, accepted or denied.
    Registration(RegistrationEvent),
    /// An agent was found or lost (mobile node).
    Agent(AgentEvent),
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// Its IP source.
        source: Ipv4Addr,
    },
}

/// A mobility binding changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingChanged {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// Where its packets go, or went.
    pub care_of: Ipv4Addr,
    /// The lifetime granted; zero when removed or expired.
    pub lifetime: Lifetime,
    /// What became of it.
    pub change: Change,
    /// Home agent: what the mobile node reported, under its authentication, of the path it now uses; `None` when it did
    /// not, or when no request of this binding's made the change.
    pub path: Option<PathReport>,
}

/// A visitor of a foreign agent came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitorChanged {
    /// The visitor's home address.
    pub home_address: Ipv4Addr,
    /// The interface behind which it is.
    pub interface: InterfaceId,
    /// The care-of address it registered.
    pub care_of: Ipv4Addr,
    /// The lifetime granted; zero when removed or expired.
    pub lifetime: Lifetime,
    /// What became of it.
    pub change: Change,
    /// What the visitor reported of its path in the request that the home agent accepted; `None` when it did not, or is gone.
    pub path: Option<PathReport>,
}

/// What to do about ARP for a home address (RFC 5944 section 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArpEvent {
    /// Home agent: answer, or no longer answer, ARP requests for `home_address` on its home link.
    Proxy {
        /// The mobile node that is away.
        home_address: Ipv4Addr,
        /// Its home link.
        interface: InterfaceId,
        /// Whether to answer from now on.
        on: bool,
    },
    /// Mobile node: answer, or no longer answer, ARP requests for its own home address.
    Answer {
        /// The node's home address.
        home_address: Ipv4Addr,
        /// Whether to answer from now on, on whatever link it is.
        on: bool,
    },
    /// Announce that `home_address` is at `owner`. Neighbours may ignore the first one (Linux does within a
    /// second of another); repeating it after more than a second is the owner's business.
    Gratuitous {
        /// The address announced.
        home_address: Ipv4Addr,
        /// On which link.
        interface: InterfaceId,
        /// Whose link-layer address to announce.
        owner: ArpOwner,
    },
}

/// Whose link-layer address a gratuitous ARP carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOwner {
    /// The sender's: the home agent takes the packets of a mobile node that left, or the mobile node its
    /// own ones when it is back.
    Sender,
    /// The mobile node's, sent on its behalf by the home agent when it is back.
    MobileNode,
}

/// A registration message, as a trace wants to see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationEvent {
    /// What happened.
    pub step: RegistrationStep,
    /// Whose registration.
    pub home_address: Ipv4Addr,
    /// The care-of address; unspecified where a reply does not tell.
    pub care_of: Ipv4Addr,
    /// Lifetime asked for or granted.
    pub lifetime: Lifetime,
    /// The 64-bit Identification.
    pub identification: Identification,
    /// The interface, where the node knows it.
    pub interface: Option<InterfaceId>,
}

/// What happened to a registration message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationStep {
    /// A mobile node sent a request; `attempt` counts from 1.
    RequestSent {
        /// Which try this is.
        attempt: u32,
    },
    /// An agent received a request.
    RequestReceived,
    /// A foreign agent passed a request on.
    RequestRelayed,
    /// An agent sent a reply with this code.
    ReplySent {
        /// The code.
        code: ReplyCode,
    },
    /// A foreign agent passed a reply on.
    ReplyRelayed {
        /// The code.
        code: ReplyCode,
    },
    /// A mobile node's registration was accepted.
    Accepted {
        /// 0, or 1 when the home agent does not keep several bindings.
        code: ReplyCode,
        /// Time since the request.
        round_trip: Duration,
    },
    /// A mobile node's registration was denied.
    Denied {
        /// The code.
        code: ReplyCode,
        /// Time since the request.
        round_trip: Duration,
    },
    /// A request got no reply in time.
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
            Self::RequestSent { .. } => "request-sent",
            Self::RequestReceived => "request-received",
            Self::RequestRelayed => "request-relayed",
            Self::ReplySent { .. } => "reply-sent",
            Self::ReplyRelayed { .. } => "reply-relayed",
            Self::Accepted { .. } => "accepted",
            Self::Denied { .. } => "denied",
            Self::TimedOut { .. } => "timed-out",
        }
    }
}

/// A mobile node's knowledge of agents changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// An agent was heard that was not known before.
    Found {
        /// Where.
        interface: InterfaceId,
        /// Its address.
        agent: Ipv4Addr,
    },
    /// An agent is not heard any longer.
    Lost {
        /// Where.
        interface: InterfaceId,
        /// Its address.
        agent: Ipv4Addr,
        /// How it was noticed.
        cause: AgentLoss,
    },
    /// The agent the node is registered with has been restarted and forgot its visitors.
    Rebooted {
        /// Where.
        interface: InterfaceId,
        /// Its address.
        agent: Ipv4Addr,
    },
    /// An advertisement with another network prefix shows that the node has moved.
    PrefixChanged {
        /// Where.
        interface: InterfaceId,
        /// The agent heard now.
        agent: Ipv4Addr,
    },
}

/// How the loss of an agent was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentLoss {
    /// The lifetime of its last advertisement ended.
    LifetimeExpired,
    /// Too many advertisements in a row are missing.
    MissedAdvertisements,
    /// The link went down.
    LinkDown,
    /// Others were heard since, and there is no room for all.
    Forgotten,
}
