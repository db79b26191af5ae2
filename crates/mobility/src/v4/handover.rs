//! The phases of a handover, as everybody who cares is told.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::DataRate;
use careof_wire::mip4::{Identification, PathReport, ReplyCode};

use super::replay::TIMESTAMP_PRECISION;
use super::{InterfaceId, NtpTime, PathFault};

/// How far in advance a handover was announced before the old link goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Not at all: the node found out by itself.
    #[default]
    None,
    /// By this much; zero says that the owner decided, but knows of no end of the old link.
    Ahead(Duration),
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

impl From<PathReport> for PathProperties {
    /// What a mobile node said of a path, without what it said of the one before.
    fn from(report: PathReport) -> Self {
        let PathReport { downlink, uplink, round_trip, old_path_lost: _, repeated_for: _ } = report;
        Self { downlink, uplink, round_trip }
    }
}

/// What a report tells that came with the Identification `own`, to who has had the report `before` of the same care-of address. The
/// loss of the old path is no news when it was told by a request that this one repeats: what was lost then has been sent again.
pub(crate) fn news(
    report: Option<PathReport>,
    own: Identification,
    before: Option<(PathReport, Identification)>,
) -> Option<PathReport> {
    let mut report = report?;
    if let Some((before, identification)) = before
        && before.old_path_lost == Some(true)
        && report.old_path_lost == Some(true)
        && !report.repeated_for.is_zero()
    {
        // Only timestamps are chosen anew for a repetition, so these are two.
        let [own, first] = [own, identification].map(|identification| NtpTime::from_bits(identification.0));
        if first.is_within(report.repeated_for + TIMESTAMP_PRECISION, own) {
            report.old_path_lost = Some(false);
        }
    }
    Some(report)
}

/// Why a handover did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandoverFailure {
    /// An agent denied the registration with this code, and nothing can be repaired.
    Denied(ReplyCode),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverEvent {
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
        care_of: Option<Ipv4Addr>,
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
        reason: HandoverFailure,
    },
}

impl HandoverEvent {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Timestamps have low bits from chance, so those of two requests that are 300 ms apart differ by some more or less.
    #[test]
    fn a_repetition_is_known_whatever_the_random_bits_of_its_timestamp() {
        let told = |repeated_for| PathReport {
            downlink: None,
            uplink: None,
            round_trip: None,
            old_path_lost: Some(true),
            repeated_for,
        };
        let stamp = |ms: u64, chance: u64| Identification((((ms << 32) / 1_000) & !0xf_ffff) | chance);
        let first = (told(Duration::ZERO), stamp(5_000, 0));
        let later = told(Duration::from_millis(300));
        for chance in [0, 0x8_0000, 0xf_ffff] {
            let known = news(Some(later), stamp(5_300, chance), Some(first)).expect("a report");
            assert_eq!(known.old_path_lost, Some(false), "{chance:#x}");
        }
        let another = news(Some(later), stamp(5_302, 0), Some(first)).expect("a report");
        assert_eq!(another.old_path_lost, Some(true), "that request was begun after the first");
    }
}
