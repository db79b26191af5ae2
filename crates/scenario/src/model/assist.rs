//! What is to help TCP across handovers, with every parameter filled in.

use careof_assist::{
    AckHold, BlackHole, BufferForward, FastRetransmit, HoldLast, MssClamp, PathQueue, Snoop, WindowClamp,
};
use careof_assist_file::parameters::{LcdKickTable, ReplayTable};
use careof_base::Duration;
use careof_tcp::BandwidthEstimator;

use super::{Destination, Tcp};

/// Something that helps TCP across handovers. A scenario has each at most once, in the order of this type.
#[derive(Clone, Debug, PartialEq)]
pub enum Assist {
    /// What the lost path owes is kept and sent again, in order, when a path is back.
    Replay(Placed<ReplayTable>),
    /// The last packets of a flow are kept and sent again: [`Assist::Replay`] for little memory.
    HoldLast(HoldLast),
    /// ICMP host unreachable quoting the first unacknowledged segment (RFC 6069, section 4) shortens a back-off.
    LcdKick(LcdKickTable),
    /// A zero window ahead of an announced handover (Goff, Moronski, Phatak and Gupta 2000).
    Freeze(Freeze),
    /// Duplicates of the last acknowledgement on reconnection (Caceres and Iftode 1995).
    FastRetransmit(FastRetransmit),
    /// The acknowledgement of the last bytes is kept back, to be there when the path is.
    AckHold(AckHold),
    /// The receiver's window follows the path's bandwidth-delay product.
    WindowClamp(Placed<WindowClamp>),
    /// The queue in front of the path stands in the agent, which can take it along.
    PathQueue(PathQueue),
    /// A buffer in the agent while there is no path.
    BufferForward(BufferForward),
    /// Copies by the old path and the new one (the S bit of RFC 5944); the second of two is dropped.
    Bicast,
    /// Local retransmission at the base station (RFC 3135, section 5.3.2).
    Snoop(Snoop),
    /// Explicit bad state notification: the base station has the sender start its timer anew (RFC 2757).
    Ebsn,
    /// Two connections of one, joined at a relay (I-TCP, Bakre and Badrinath 1995; RFC 3135, section 2.4).
    Split(Split),
    /// The base station keeps back the last byte's acknowledgement and closes the window with it (RFC 2757).
    MTcp,
    /// The sender forgets the old path's round trip.
    RtoReset(RtoReset),
    /// The sender is told by the mobility protocol when a handover begins and ends (Le, Fu and Hogrefe 2008).
    TcpCm(TcpCm),
    /// The change is told in an option of the next segment, and the sender reacts as with [`Assist::TcpCm`].
    MobileTcp,
    /// Two acknowledgements tell the rate of the new link, and the slow start threshold follows it (Wu, Chan and Ananda 2007).
    TcpHo,
    /// The sender's Vegas measures the least round trip anew (Ho, Chan and Chen 2005).
    DemoVegas,
    /// The sender's RTO follows a round trip that has become shorter within a few samples.
    RtoFastDecrease(RtoFastDecrease),
    /// The segment size in SYNs is lowered to what fits the tunnel.
    MssClamp(Placed<MssClamp>),
    /// Tunnels that swallow large packets without a word are found and crossed (RFC 1191, section 7.1; RFC 2923, section 2.1).
    BlackHole(Placed<BlackHole>),
}

/// A node on which an assist runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AssistPlace {
    /// Sees what is sent to the mobile node, and what comes from it by a reverse tunnel or a direct way.
    HomeAgent,
    /// Every foreign agent: the base station.
    ForeignAgent,
    /// The mobile node itself.
    Mobile,
}

/// An assist that runs where the scenario says.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<T> {
    /// Where it runs, at least one place, each once and in the order of the type.
    pub at: Vec<AssistPlace>,
    /// Its other parameters.
    pub parameters: T,
}

/// Parameters of [`Assist::Freeze`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// How long before the announced end of the path the window closes; `None` is from the announcement on. Above zero.
    pub warning: Option<Duration>,
    /// Acknowledgements that open the window, at least 1.
    pub acks: u32,
    /// How long after the announced end the window opens if there was no handover.
    pub patience: Duration,
}

/// Parameters of [`Assist::Split`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Where the relay is: the home agent, or every foreign agent.
    pub at: AssistPlace,
    /// Bytes that the relay holds of a flow and direction, at least 1: what it has acknowledged to the sending side, and
    /// the receiving side has not acknowledged to it. Beyond it the window to the sending side is closed.
    pub buffer: u64,
    /// TCP of the relay's connection towards the mobile node, if it is not the flow's. Its `mss` fits the links of the mobile
    /// node and of the home agent. Towards the other end the relay has the flow's.
    pub tcp: Option<Box<Tcp>>,
}

/// Parameters of [`Assist::RtoReset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoReset {
    /// Whether the sender begins again with slow start, too.
    pub slow_start: bool,
    /// How it is told.
    pub by: AdvisedBy,
}

/// How a changed sender hears of a handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AdvisedBy {
    /// At once, as if both ends shared a host.
    #[default]
    Signal,
    /// In an option of the next segments from the mobile node, the first at once.
    Option,
}

/// Parameters of [`Assist::TcpCm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpCm {
    /// Whether what is outstanding is sent again at once.
    pub resend: bool,
    /// Whether a sender on the mobile node stands still while there is no path.
    pub suspend: bool,
    /// From where the bandwidth is that the window is set by.
    pub estimator: BandwidthSource,
}

/// From where a sender has the bandwidth of a new path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BandwidthSource {
    /// Its own estimate, by Westwood's filter.
    #[default]
    Westwood,
    /// Its own estimate, the largest delivery rate of ten round trips.
    DeliveryRate,
    /// The mobile node tells it the rate of its link, and the round trip of its registration.
    Link,
}

impl BandwidthSource {
    /// The estimator in the sender, if there is one.
    #[must_use]
    pub const fn in_tcp(self) -> Option<BandwidthEstimator> {
        match self {
            Self::Westwood => Some(BandwidthEstimator::Westwood),
            Self::DeliveryRate => Some(BandwidthEstimator::DeliveryRate),
            Self::Link => None,
        }
    }
}

/// Parameters of [`Assist::RtoFastDecrease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoFastDecrease {
    /// Samples in a row below what the estimator expects after which it begins anew, at least 1.
    pub samples: u32,
}

/// Flows that no assist touches: those that match both of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssistException {
    /// The end that is not the mobile node.
    pub peer: Destination,
    /// A port of either end; `None` is any.
    pub port: Option<u16>,
}

impl Default for Freeze {
    /// From the announcement on; 3 acknowledgements open it, 200 ms late if nothing happened.
    fn default() -> Self {
        Self { warning: None, acks: 3, patience: Duration::from_millis(200) }
    }
}

impl Split {
    /// What the relay holds of a flow and direction: 256 KiB, over a second of 2 Mbit/s.
    pub const BUFFER: u64 = 256 << 10;
}

impl Default for TcpCm {
    /// Both; the estimate is Westwood's.
    fn default() -> Self {
        Self { resend: true, suspend: true, estimator: BandwidthSource::default() }
    }
}

impl Default for RtoReset {
    /// Told at once, without slow start.
    fn default() -> Self {
        Self { slow_start: false, by: AdvisedBy::default() }
    }
}

impl Default for RtoFastDecrease {
    /// Four.
    fn default() -> Self {
        Self { samples: 4 }
    }
}

impl Assist {
    /// The name used in scenario files and results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Replay(_) => "replay",
            Self::HoldLast(_) => "hold-last",
            Self::LcdKick(_) => "lcd-kick",
            Self::Freeze(_) => "freeze",
            Self::FastRetransmit(_) => "fast-retransmit",
            Self::AckHold(_) => "ack-hold",
            Self::WindowClamp(_) => "window-clamp",
            Self::PathQueue(_) => "path-queue",
            Self::BufferForward(_) => "buffer-forward",
            Self::Bicast => "bicast",
            Self::Snoop(_) => "snoop",
            Self::Ebsn => "ebsn",
            Self::Split(_) => "split",
            Self::MTcp => "m-tcp",
            Self::RtoReset(_) => "rto-reset",
            Self::TcpCm(_) => "tcp-cm",
            Self::MobileTcp => "mobile-tcp",
            Self::TcpHo => "tcp-ho",
            Self::DemoVegas => "demo-vegas",
            Self::RtoFastDecrease(_) => "rto-fast-decrease",
            Self::MssClamp(_) => "mss-clamp",
            Self::BlackHole(_) => "black-hole",
        }
    }

    /// Whether it works only with a sender's TCP that knows of it.
    #[must_use]
    pub const fn needs_changed_sender(&self) -> bool {
        match self {
            Self::Ebsn
            | Self::RtoReset(_)
            | Self::TcpCm(_)
            | Self::MobileTcp
            | Self::TcpHo
            | Self::DemoVegas
            | Self::RtoFastDecrease(_) => true,
            Self::Replay(_)
            | Self::HoldLast(_)
            | Self::LcdKick(_)
            | Self::Freeze(_)
            | Self::FastRetransmit(_)
            | Self::AckHold(_)
            | Self::WindowClamp(_)
            | Self::PathQueue(_)
            | Self::BufferForward(_)
            | Self::Bicast
            | Self::Snoop(_)
            | Self::Split(_)
            | Self::MTcp
            | Self::MssClamp(_)
            | Self::BlackHole(_) => false,
        }
    }

    /// Whether it does nothing where no handover is announced.
    #[must_use]
    pub const fn needs_notice(&self) -> bool {
        matches!(self, Self::Freeze(_) | Self::AckHold(AckHold { always: false, .. }))
    }

    /// The nodes on which it runs, in the order of the type; none for those that are part of an end's TCP.
    #[must_use]
    pub fn places(&self) -> &[AssistPlace] {
        use AssistPlace::{ForeignAgent, HomeAgent, Mobile};
        match self {
            Self::Replay(Placed { at, .. })
            | Self::WindowClamp(Placed { at, .. })
            | Self::MssClamp(Placed { at, .. })
            | Self::BlackHole(Placed { at, .. }) => at,
            // Downloads are helped at the agent, uploads at the mobile node.
            Self::HoldLast(_) | Self::LcdKick(_) | Self::Bicast => &[HomeAgent, Mobile],
            Self::Freeze(_) | Self::FastRetransmit(_) | Self::AckHold(_) => &[Mobile],
            Self::PathQueue(_) => &[HomeAgent, ForeignAgent, Mobile],
            Self::BufferForward(_) => &[HomeAgent, ForeignAgent],
            Self::Split(Split { at, .. }) => core::slice::from_ref(at),
            Self::Snoop(_) | Self::Ebsn | Self::MTcp => &[ForeignAgent],
            Self::RtoReset(_)
            | Self::TcpCm(_)
            | Self::MobileTcp
            | Self::TcpHo
            | Self::DemoVegas
            | Self::RtoFastDecrease(_) => &[],
        }
    }
}
