//! What makes a configuration impossible.

use core::time::Duration;

use super::{CongestionControl, MIN_MSS, Variant};

/// A configuration that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The segment size leaves no room for data beside the options.
    #[error("mss is {found} bytes; it must be at least {MIN_MSS}, so that options leave room for data")]
    MssTooSmall {
        /// What was asked for, bytes.
        found: u16,
    },
    /// No window at all.
    #[error("receive_window is 0; nothing could ever be received")]
    NoReceiveWindow,
    /// More than the window field can say.
    #[error("receive_window is {found} bytes; {}", window_limit(*.scaling))]
    ReceiveWindowTooLarge {
        /// What was asked for, bytes.
        found: u32,
        /// Whether window scaling is on.
        scaling: bool,
    },
    /// The SACK variant without the SACK option.
    #[error("variant is sack but the sack option is off; turn it on")]
    SackNotOffered,
    /// A variant that is one with its congestion control.
    #[error(
        "congestion is {found}; the variant {variant} has its own: leave congestion out, or choose another variant"
    )]
    OwnCongestionControl {
        /// The variant.
        variant: Variant,
        /// What was asked for.
        found: CongestionControl,
    },
    /// A mechanism that the variant has no use for.
    #[error(
        "{field} is on; the variant {variant} cannot use it: leave {field} out, or choose another variant"
    )]
    NotWithVariant {
        /// Which mechanism.
        field: &'static str,
        /// The variant.
        variant: Variant,
    },
    /// A mechanism without what it works by.
    #[error("{field} is on but {needed} is off; turn {needed} on")]
    Needs {
        /// Which mechanism.
        field: &'static str,
        /// What it needs.
        needed: &'static str,
    },
    /// A user timeout that is over before it begins.
    #[error("user_timeout is 0; it must be above 0, or left out")]
    NoUserTimeout,
    /// RFC 1122 allows half a second.
    #[error("delayed_ack timeout is {found:?}; RFC 1122 allows more than 0 and at most 500 ms")]
    DelayedAckTimeout {
        /// What was asked for.
        found: Duration,
    },
    /// The duplicate threshold is below 1.
    #[error("duplicate_ack_threshold is 0; it must be at least 1")]
    NoDuplicateThreshold,
    /// The RTO bounds contradict each other.
    #[error("rto_min is {min:?} and rto_max {max:?}; the least must be above 0 and not above the greatest")]
    RtoBounds {
        /// Least RTO in force.
        min: Duration,
        /// Greatest RTO in force.
        max: Duration,
    },
    /// The first RTO is outside of its bounds.
    #[error("rto_initial is 0; it must be above 0")]
    RtoInitial,
    /// No first segment could leave.
    #[error("initial_window is 0 segments; it must be at least 1")]
    NoInitialWindow,
    /// A window that cannot hold one segment.
    #[error("{field} is {found} bytes; it must be at least one segment ({mss} bytes)")]
    BelowOneSegment {
        /// Which field.
        field: &'static str,
        /// What was asked for, bytes.
        found: u32,
        /// The segment size, bytes.
        mss: u16,
    },
}

fn window_limit(scaling: bool) -> &'static str {
    if scaling {
        "with scaling it can be at most 1073725440 (RFC 7323)"
    } else {
        "without window_scaling it can be at most 65535"
    }
}
