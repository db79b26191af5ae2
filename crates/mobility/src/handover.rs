//! The phases of a handover, as everybody who cares is told.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::DataRate;
use careof_wire::mip4::ReplyCode;

use crate::InterfaceId;

/// How far in advance a handover was announced before the old link goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Not at all: the node found out by itself.
    #[default]
    None,
    /// By this much; zero says that the owner decided, but knows of no end of the old link.
    Ahead(Duration),
}

/// What is wrong with a path in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathFault {
    /// So many packets are lost, of a thousand.
    Loss {
        /// The least of the spans that decided.
        permille: u16,
    },
    /// It has become slow.
    Delay {
        /// The least round trip of late.
        round_trip: Duration,
        /// What it usually is there.
        usual: Duration,
    },
}

impl PathFault {
    /// The name in status, metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss { .. } => "loss",
            Self::Delay { .. } => "delay",
        }
    }
}

/// Why a handover is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandoverReason {
    /// There was no path in use.
    Attached,
    /// The owner has chosen the interface.
    Chosen,
    /// The interface is the same, the point of attachment another one.
    Moved,
    /// The interface in use works no longer: its link, its address or agent, or the registration through it.
    NotWorking,
    /// An interface before it in the owner's order, or without cost, has worked for long enough.
    Preferred,
    /// The path in use is silent, and this one answers.
    PathSilent,
    /// The path in use is bad, and this one clearly better.
    PathBad(PathFault),
    /// The path was left as bad, and is good again.
    PathGood,
    /// The path was left as bad, and the other one delivers less.
    NotBetter,
}

impl HandoverReason {
    /// The name in status, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Chosen => "chosen",
            Self::Moved => "moved",
            Self::NotWorking => "not-working",
            Self::Preferred => "preferred",
            Self::PathSilent => "path-silent",
            Self::PathBad(PathFault::Loss { .. }) => "path-lossy",
            Self::PathBad(PathFault::Delay { .. }) => "path-slow",
            Self::PathGood => "path-good-again",
            Self::NotBetter => "not-better",
        }
    }
}

impl core::fmt::Display for HandoverReason {
    /// The name, with what was measured.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::PathBad(PathFault::Loss { permille }) => {
                write!(f, ": {}.{} % lost", permille / 10, permille % 10)
            }
            Self::PathBad(PathFault::Delay { round_trip, usual }) => {
                write!(f, ": round trip {} ms instead of {}", round_trip.as_millis(), usual.as_millis())
            }
            _ => Ok(()),
        }
    }
}

/// Which comes first, the new path or the end of the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandoverStyle {
    /// The old path carries packets until the new one is registered.
    MakeBeforeBreak,
    /// The old path is gone before the new one is registered; or there was none.
    BreakBeforeMake,
}

/// What is known of the path through an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathProperties {
    /// Rate towards the mobile node.
    pub downlink: Option<DataRate>,
    /// Rate from the mobile node.
    pub uplink: Option<DataRate>,
    /// Round-trip time to the home agent: given by the owner, and measured since, by registrations, or where paths are
    /// watched by probes: the least of late, without the queues that come and go.
    pub round_trip: Option<Duration>,
}

/// Why a handover did not happen.
///
/// `C` is how the protocol says why a registration is denied: a code of Mobile IPv4, or a status of Mobile IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandoverFailure<C = ReplyCode> {
    /// An agent denied the registration with this code, and nothing can be repaired.
    Denied(C),
    /// No reply came to any request.
    NoReply,
    /// Another handover was asked for meanwhile.
    Superseded,
    /// The new interface went away before the registration was complete.
    LinkLost,
}

/// A phase of a handover of a mobile node.
///
/// In order: `Initiated`, then `Registered` or `Failed`; after `Registered`, `Terminated`. Link events come
/// whenever they happen.
///
/// `A` is the protocol's address, `C` its code for a registration that is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverEvent<A = Ipv4Addr, C = ReplyCode> {
    /// A handover begins. Nothing has changed yet for packets.
    Initiated {
        /// The interface in use; `None` when there was none. The same as `to` when the node changes its
        /// point of attachment on one interface.
        from: Option<InterfaceId>,
        /// The interface to be used.
        to: InterfaceId,
        /// How much warning there was.
        notice: Notice,
        /// Why.
        reason: HandoverReason,
        /// As things stand now.
        style: HandoverStyle,
        /// The path in use, as far as known.
        old: PathProperties,
        /// The path to be used, as far as known.
        new: PathProperties,
    },
    /// The link layer lost `interface`.
    LinkDown {
        /// Which.
        interface: InterfaceId,
    },
    /// The link layer has `interface`.
    LinkUp {
        /// Which.
        interface: InterfaceId,
    },
    /// Nothing gets through `interface`, although its link is there: what was sent lately is lost.
    PathSilent {
        /// Which.
        interface: InterfaceId,
        /// For how long nothing had come through it by then.
        silence: Duration,
    },
    /// Something comes through `interface` again.
    PathAnswers {
        /// Which.
        interface: InterfaceId,
    },
    /// The registration was accepted: from now on the node sends through `to`, and the home agent has sent
    /// there since it replied.
    Registered {
        /// The interface used before.
        from: Option<InterfaceId>,
        /// The interface used from now on.
        to: InterfaceId,
        /// The care-of address registered; `None` at home.
        care_of: Option<A>,
        /// Requests it took.
        attempts: u32,
        /// Time since `Initiated`.
        latency: Duration,
        /// Time from the accepted request to its reply.
        round_trip: Duration,
        /// The path used before, as far as known.
        old: PathProperties,
        /// The path used from now on, as far as known.
        new: PathProperties,
        /// The home agent keeps the binding of the interface used before, and sends copies there until [`Self::Terminated`] (simultaneous bindings, RFC
        /// 5944 section 3.3).
        keeps_old: bool,
    },
    /// The old interface is not listened to any longer; the handover is over.
    Terminated {
        /// The interface left; `None` when there was none.
        from: Option<InterfaceId>,
        /// The interface in use.
        to: InterfaceId,
        /// Time since `Initiated`.
        duration: Duration,
    },
    /// The handover did not happen; `from`, if it still works, stays in use.
    Failed {
        /// The interface in use.
        from: Option<InterfaceId>,
        /// The interface that was to be used.
        to: InterfaceId,
        /// Why.
        reason: HandoverFailure<C>,
    },
}

/// A phase of a handover, whatever the protocol.
pub type HandoverPhase = HandoverEvent<(), ()>;

impl<C> HandoverFailure<C> {
    /// The same without the protocol's code.
    const fn without_code(&self) -> HandoverFailure<()> {
        match self {
            Self::Denied(_) => HandoverFailure::Denied(()),
            Self::NoReply => HandoverFailure::NoReply,
            Self::Superseded => HandoverFailure::Superseded,
            Self::LinkLost => HandoverFailure::LinkLost,
        }
    }
}

impl<A, C> HandoverEvent<A, C> {
    /// The same without what only the protocol can say: its address and its code.
    #[must_use]
    pub const fn phase(&self) -> HandoverPhase {
        match *self {
            Self::Initiated { from, to, notice, reason, style, old, new } => {
                HandoverEvent::Initiated { from, to, notice, reason, style, old, new }
            }
            Self::LinkDown { interface } => HandoverEvent::LinkDown { interface },
            Self::LinkUp { interface } => HandoverEvent::LinkUp { interface },
            Self::PathSilent { interface, silence } => HandoverEvent::PathSilent { interface, silence },
            Self::PathAnswers { interface } => HandoverEvent::PathAnswers { interface },
            Self::Registered {
                from,
                to,
                ref care_of,
                attempts,
                latency,
                round_trip,
                old,
                new,
                keeps_old,
            } => {
                let care_of = if care_of.is_some() { Some(()) } else { None };
                HandoverEvent::Registered {
                    from,
                    to,
                    care_of,
                    attempts,
                    latency,
                    round_trip,
                    old,
                    new,
                    keeps_old,
                }
            }
            Self::Terminated { from, to, duration } => HandoverEvent::Terminated { from, to, duration },
            Self::Failed { from, to, ref reason } => {
                HandoverEvent::Failed { from, to, reason: reason.without_code() }
            }
        }
    }

    /// The name in traces.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Initiated { .. } => "initiated",
            Self::LinkDown { .. } => "link-down",
            Self::LinkUp { .. } => "link-up",
            Self::PathSilent { .. } => "path-silent",
            Self::PathAnswers { .. } => "path-answers",
            Self::Registered { .. } => "registered",
            Self::Terminated { .. } => "terminated",
            Self::Failed { .. } => "failed",
        }
    }
}
