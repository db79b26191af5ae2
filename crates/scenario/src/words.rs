//! The words of the scenario file for values that are one of a few.

use core::fmt;

use careof_document::decode::Field;
use careof_document::error::Problems;
pub(crate) use careof_document::words::{nearest, one_of};
use careof_quic::Congestion as QuicCongestion;
use careof_tcp::{
    CongestionControl, HyStart, IdleRestart, KernelEdition, PartialAckTimer, Profile, ReductionBound,
    RtoEstimator, Variant,
};

use crate::model::{
    Adaptation, AdvisedBy, Algorithm, AssistPlace, BandwidthSource, CareOf, ClientCheck, Codec, Dispersion,
    DuplicateAddressDetection, Encapsulation, HandoverStyle, KernelProfile, MapSelection, MovementDetection,
    PathScheme, Protocol, QueuedFate, Replay, Role, Routing, Treatment, Trigger, Trust, Uplink, WhenFull,
};

/// A type whose values have names.
pub(crate) trait Word: Copy + 'static {
    /// All values in the order in which they are listed to people.
    const WORDS: &'static [Self];

    /// The name in the file.
    fn word(self) -> &'static str;
}

macro_rules! words {
    ($type:ty: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// The name used in scenario files and results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl Word for $type {
            const WORDS: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                self.name()
            }
        }
    };
}

words!(Role: Correspondent = "correspondent", HomeAgent = "home-agent", ForeignAgent = "foreign-agent",
    Mobile = "mobile", AnchorPoint = "map", Relay = "relay", Host = "host");
words!(MapSelection: Furthest = "furthest", HighestPreference = "highest-preference", Nearest = "nearest");
words!(Protocol: MobileIpv4 = "mobile-ipv4", MobileIpv6 = "mobile-ipv6");
words!(DuplicateAddressDetection: Optimistic = "optimistic", Full = "full", None = "none");
words!(CareOf: CoLocated = "co-located", Dhcp = "dhcp", ForeignAgent = "foreign-agent");
words!(ClientCheck: BeforeUse = "before-use", Background = "background", None = "none");
words!(Routing: Triangle = "triangle", ReverseTunnel = "reverse-tunnel", RegularIp = "regular-ip");
words!(Encapsulation: IpInIp = "ip-in-ip", Minimal = "minimal", Gre = "gre");
words!(MovementDetection: LinkTrigger = "link-trigger", MissedAdvertisements = "missed-advertisements",
    Lifetime = "lifetime", Prefix = "prefix", Eager = "eager", UnreachableRouter = "unreachable-router");
words!(Algorithm: HmacMd5 = "hmac-md5", HmacSha256 = "hmac-sha-256", HmacSha1 = "hmac-sha-1");
words!(Replay: Timestamps = "timestamps", Nonces = "nonces");
words!(KernelProfile: Modern = "modern", Legacy = "legacy");
words!(HandoverStyle: MakeBeforeBreak = "make-before-break", BreakBeforeMake = "break-before-make");
words!(QueuedFate: DrainLate = "drain-late", Drop = "drop", DropWithIcmp = "drop-with-icmp", ReRoute = "re-route",
    BufferAndForward = "buffer-and-forward", Duplicate = "duplicate");

words!(AssistPlace: HomeAgent = "home-agent", ForeignAgent = "foreign-agent", Mobile = "mobile");
words!(Trigger: None = "none", Source = "source", Path = "path", NoPath = "no-path");
words!(PathScheme: Msf = "msf", Ssf = "ssf", Unf = "unf", Mnf = "mnf");
words!(WhenFull: DropOldest = "drop-oldest", DropTail = "drop-tail");
words!(Dispersion: Auto = "auto", D = "d", Dq = "dq", PerFlow = "per-flow", Duplicate = "duplicate", Weighted = "weighted",
    Ecf = "ecf", Blest = "blest", Earliest = "earliest", Overflow = "overflow");
words!(Trust: Keys = "keys", FirstUse = "first-use");
words!(Uplink: Dispersed = "dispersed", Direct = "direct");
words!(Treatment: Dispersed = "dispersed", Pinned = "pinned", Duplicated = "duplicated");
words!(AdvisedBy: Signal = "signal", Option = "option");
words!(BandwidthSource: Westwood = "westwood", DeliveryRate = "delivery-rate", Link = "link");

macro_rules! words_of_tcp {
    ($($type:ty),+) => {
        $(impl Word for $type {
            const WORDS: &'static [Self] = <$type>::ALL;

            fn word(self) -> &'static str {
                self.name()
            }
        })+
    };
}

words_of_tcp!(
    Variant,
    CongestionControl,
    HyStart,
    RtoEstimator,
    Profile,
    PartialAckTimer,
    ReductionBound,
    IdleRestart,
    KernelEdition,
    QuicCongestion
);

/// The word of `kernel` for the kernel that calls itself `release`, as `uname -r` prints it; `None` for no such name.
#[must_use]
pub fn kernel_edition(release: &str) -> Option<&'static str> {
    KernelEdition::of_kernel(release).map(KernelEdition::name)
}

/// How the handovers of a table that come again lie in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Spacing {
    #[default]
    Even,
    Poisson,
}

impl Word for Spacing {
    const WORDS: &'static [Self] = &[Self::Even, Self::Poisson];

    fn word(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
}

/// How stations share a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MediumKind {
    #[default]
    CsmaCd,
    /// 802.11b.
    B,
    /// 802.11g.
    G,
}

/// Whose handover `link_layer` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkLayerKind {
    Wireless,
}

/// [`Scan`](careof_link::Scan) without its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScanKind {
    #[default]
    Active,
    Passive,
    None,
}

/// The preamble of 802.11b.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Preamble {
    #[default]
    Long,
    Short,
}

/// How [`Jitter`](careof_link::Jitter) deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JitterKind {
    None,
    Uniform,
    Normal,
    Pareto,
}

/// How [`Loss`](careof_link::Loss) strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossKind {
    None,
    Bernoulli,
    GilbertElliott,
}

/// [`Discipline`](careof_link::Discipline) without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisciplineKind {
    DropTail,
    Red,
    CoDel,
}

/// [`Workload`](crate::Workload) without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadKind {
    Bulk,
    RequestResponse,
    Paced,
    OnOff,
    Voice,
    Video,
    Command,
    Probe,
}

/// [`Law`](crate::Law) without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LawWord {
    Fixed,
    Exponential,
    Pareto,
}

macro_rules! private_words {
    ($type:ty: $($variant:ident = $name:literal),+) => {
        impl Word for $type {
            const WORDS: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

/// A role as the file names it: three words for a node that only forwards and ends flows, each of which says more to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole {
    Correspondent,
    HomeAgent,
    ForeignAgent,
    Mobile,
    Map,
    Relay,
    Router,
    AccessRouter,
    Host,
}

/// [`MicroProtocol`](crate::MicroProtocol) without its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MicroProtocolName {
    BuildingBlocks,
    CellularIp,
    Hawaii,
    Multicast,
}

/// [`CellularHandover`](crate::CellularHandover) without its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellularWord {
    Hard,
    SemiSoft,
}

private_words!(MicroProtocolName: BuildingBlocks = "building-blocks", CellularIp = "cellular-ip", Hawaii = "hawaii",
    Multicast = "multicast");
private_words!(CellularWord: Hard = "hard", SemiSoft = "semi-soft");
private_words!(NodeRole: Correspondent = "correspondent", HomeAgent = "home-agent", ForeignAgent = "foreign-agent",
    Mobile = "mobile", Map = "map", Relay = "relay", Router = "router", AccessRouter = "access-router", Host = "host");
private_words!(MediumKind: CsmaCd = "csma-cd", B = "802.11b", G = "802.11g");
private_words!(LinkLayerKind: Wireless = "802.11");
private_words!(ScanKind: Active = "active", Passive = "passive", None = "none");
private_words!(Preamble: Long = "long", Short = "short");
private_words!(JitterKind: None = "none", Uniform = "uniform", Normal = "normal", Pareto = "pareto");
private_words!(LossKind: None = "none", Bernoulli = "bernoulli", GilbertElliott = "gilbert-elliott");
private_words!(DisciplineKind: DropTail = "drop-tail", Red = "red", CoDel = "codel");
private_words!(WorkloadKind: Bulk = "bulk", RequestResponse = "request-response", Paced = "paced",
    OnOff = "on-off", Voice = "voice", Video = "video", Command = "command", Probe = "probe");
impl Word for Codec {
    const WORDS: &'static [Self] = &[Self::G711, Self::G729, Self::Opus];

    fn word(self) -> &'static str {
        self.name()
    }
}

private_words!(Adaptation: Throughput = "throughput", Buffer = "buffer");
private_words!(LawWord: Fixed = "fixed", Exponential = "exponential", Pareto = "pareto");

/// Reading words out of the file.
pub(crate) trait ReadWord {
    /// One of the words of `W`.
    fn word<W: Word>(&self, problems: &mut Problems) -> Option<W> {
        self.word_or_later(&[], problems)
    }

    /// One of the words of `W`; those of `later` are words whose time has not come.
    fn word_or_later<W: Word>(&self, later: &[&str], problems: &mut Problems) -> Option<W>;
}

impl ReadWord for Field<'_> {
    fn word_or_later<W: Word>(&self, later: &[&str], problems: &mut Problems) -> Option<W> {
        let choices: Vec<(&str, W)> = W::WORDS.iter().map(|word| (word.word(), *word)).collect();
        self.choice(&choices, later, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_values_of_a_type_share_a_name() {
        fn check<W: Word>() {
            let mut all: Vec<_> = W::WORDS.iter().map(|word| word.word()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), W::WORDS.len());
        }
        check::<QueuedFate>();
        check::<Routing>();
        check::<Variant>();
        check::<RtoEstimator>();
    }
}
