//! What is to help TCP across handovers, with every parameter filled in.

use careof_base::{Duration, Probability};
use careof_link::QueueConfig;

use super::{Destination, Tcp};

/// Something that helps TCP across handovers. A scenario has each at most once, in the order of this type.
#[derive(Clone, Debug, PartialEq)]
pub enum Assist {
    /// What the lost path owes is kept and sent again, in order, when a path is back.
    Replay(ReplayAssist),
    /// The last packets of a flow are kept and sent again: [`Assist::Replay`] for little memory.
    HoldLast(HoldLast),
    /// ICMP host unreachable quoting the first unacknowledged segment (RFC 6069, section 4) shortens a back-off.
    LcdKick(LcdKick),
    /// A zero window ahead of an announced handover (Goff, Moronski, Phatak and Gupta 2000).
    Freeze(Freeze),
    /// Duplicates of the last acknowledgement on reconnection (Caceres and Iftode 1995).
    FastRetransmit(FastRetransmit),
    /// The acknowledgement of the last bytes is kept back, to be there when the path is.
    AckHold(AckHold),
    /// The receiver's window follows the path's bandwidth-delay product.
    WindowClamp(WindowClamp),
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
    /// The sender takes the new path's round trip and bandwidth-delay product from the connection manager.
    TcpCm(TcpCm),
    /// The change is told in an option of the next segment, and the sender reacts as with [`Assist::TcpCm`].
    MobileTcp,
    /// The sender's RTO follows a round trip that has become shorter within a few samples.
    RtoFastDecrease(RtoFastDecrease),
    /// The segment size in SYNs is lowered to what fits the tunnel.
    MssClamp(MssClamp),
    /// Tunnels that swallow large packets without a word are found and crossed (RFC 1191, section 7.1; RFC 2923, section 2.1).
    BlackHole(BlackHole),
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

/// Parameters of [`Assist::Replay`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayAssist {
    /// Where it runs, at least one place, each once and in the order of the type.
    pub at: Vec<AssistPlace>,
    /// Bytes kept of a flow and direction, whole datagrams, at least 1 and at most `total`.
    pub bytes: u64,
    /// Packets kept of a flow and direction, at least 1.
    pub packets: u32,
    /// Bytes kept of all flows.
    pub total: u64,
    /// Flows followed at a time, at least 1; beyond it those make room whose ends were not both heard.
    pub flows: u32,
    /// A copy older than this is dropped. Above zero.
    pub age: Duration,
    /// Which packets of a flow stay when there is no room for all.
    pub keep: KeptEnd,
    /// What becomes of packets beyond the new path's bandwidth-delay product.
    pub rest: ReplayRest,
    /// Longest time for which packets may wait for a slow path; what would take longer is dropped, the newest first.
    pub wait: Duration,
    /// Whether repetitions of what waits or is on its way are dropped.
    pub swallow: bool,
    /// Round trips that the old path gets, where it is not known to be lost, before what it owes is sent again.
    pub patience: u32,
}

/// Which end of a flow's packets is kept when there is no room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeptEnd {
    /// A stretch without a gap from the first that is owed.
    #[default]
    Oldest,
    /// The packets that came last.
    Newest,
}

/// What becomes of packets beyond the new path's bandwidth-delay product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplayRest {
    /// They wait and follow at the path's rate.
    #[default]
    Wait,
    /// They are dropped.
    Drop,
    /// There is no limit: all are sent at once.
    Burst,
}

/// Parameters of [`Assist::HoldLast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLast {
    /// Packets kept of a flow and direction, at least 1.
    pub packets: u32,
    /// A copy older than this is dropped. Above zero.
    pub age: Duration,
}

/// Parameters of [`Assist::LcdKick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcdKick {
    /// Whether repetitions are answered while the path is lost.
    pub during: bool,
    /// Least time between two answers to a flow. Above zero.
    pub interval: Duration,
    /// Messages to a flow when a path is back and nothing was kept for it; 0 is none.
    pub burst: u32,
    /// Between two of them.
    pub spacing: Duration,
    /// Messages a second to all flows together, at least 1.
    pub limit: u32,
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

/// Parameters of [`Assist::FastRetransmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRetransmit {
    /// How many duplicates, at least 1.
    pub acks: u32,
    /// Whether they have the SACK blocks of the last acknowledgement, which may be stale.
    pub sack: bool,
    /// After a longer outage none are sent; `None` is after any outage.
    pub longest_outage: Option<Duration>,
}

/// Parameters of [`Assist::AckHold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckHold {
    /// Bytes that stay unacknowledged, at least 1.
    pub bytes: u16,
    /// Whether always, not only from the announcement of a handover on.
    pub always: bool,
    /// Longest time for which an acknowledgement is kept back. Above zero.
    pub longest: Duration,
}

/// Parameters of [`Assist::WindowClamp`].
#[derive(Clone, Debug, PartialEq)]
pub struct WindowClamp {
    /// Where it runs: the mobile node, the home agent or both, each once and in the order of the type.
    pub at: Vec<AssistPlace>,
    /// Multiple of the bandwidth-delay product, above 0 and at most 1000.
    pub factor: f64,
    /// Segments on top of it.
    pub plus: u32,
    /// On every path, not only on one that is slower than the one before.
    pub always: bool,
}

/// Parameters of [`Assist::MssClamp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MssClamp {
    /// Where it runs, each place once and in the order of the type.
    pub at: Vec<AssistPlace>,
    /// MTU of the tunnel's path in bytes, the tunnel's header included; at least 128, so that a segment is left.
    pub mtu: u16,
}

/// Parameters of [`Assist::BlackHole`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlackHole {
    /// Where it runs, each place once and in the order of the type.
    pub at: Vec<AssistPlace>,
    /// How often a segment is repeated whole before fragments are tried, at least 1.
    pub repeats: u32,
    /// How long an MTU that was found so is believed. Above zero.
    pub lifetime: Duration,
}

/// Parameters of [`Assist::PathQueue`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathQueue {
    /// Limit and discipline; RED and CoDel with their usual constants.
    pub queue: QueueConfig,
    /// How far below the path's rate it sends, below 1.
    pub margin: Probability,
    /// What becomes of the queue at a handover.
    pub at_handover: QueueAtHandover,
}

/// What becomes of an agent's queue at a handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueAtHandover {
    /// It moves to the new path.
    #[default]
    ReRoute,
    /// It is dropped.
    Drop,
    /// It goes on by the old path.
    DrainLate,
}

/// Parameters of [`Assist::BufferForward`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferForward {
    /// Packets for a mobile node, at least 1; more are dropped.
    pub limit: u32,
    /// Whether it begins when a handover is announced, not only when the link goes down.
    pub from_notice: bool,
}

/// Parameters of [`Assist::Snoop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snoop {
    /// Packets kept of a flow, at least 1.
    pub packets: u32,
    /// Least time after which an unacknowledged packet is sent again. Above zero.
    pub least_timeout: Duration,
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

impl Default for ReplayAssist {
    /// At the home agent and the mobile node; 4 MiB, 4096 packets and 30 s a flow, 64 MiB and 4096 flows in all.
    fn default() -> Self {
        Self {
            at: vec![AssistPlace::HomeAgent, AssistPlace::Mobile],
            bytes: 4 << 20,
            packets: 4096,
            total: 64 << 20,
            flows: 4096,
            age: Duration::from_secs(30),
            keep: KeptEnd::default(),
            rest: ReplayRest::default(),
            wait: Duration::from_secs(300),
            swallow: true,
            patience: 1,
        }
    }
}

impl Default for HoldLast {
    /// Two packets, 30 s.
    fn default() -> Self {
        Self { packets: 2, age: Duration::from_secs(30) }
    }
}

impl Default for LcdKick {
    /// In an outage at most every 250 ms; 8 messages, 1 ms apart, at its end; 100 a second.
    fn default() -> Self {
        Self {
            during: true,
            interval: Duration::from_millis(250),
            burst: 8,
            spacing: Duration::from_millis(1),
            limit: 100,
        }
    }
}

impl Default for Freeze {
    /// From the announcement on; 3 acknowledgements open it, 200 ms late if nothing happened.
    fn default() -> Self {
        Self { warning: None, acks: 3, patience: Duration::from_millis(200) }
    }
}

impl Default for FastRetransmit {
    /// Three, with SACK blocks, after at most 200 ms.
    fn default() -> Self {
        Self { acks: 3, sack: true, longest_outage: Some(Duration::from_millis(200)) }
    }
}

impl Default for AckHold {
    /// One byte, from the announcement on, for 200 ms.
    fn default() -> Self {
        Self { bytes: 1, always: false, longest: Duration::from_millis(200) }
    }
}

impl Default for WindowClamp {
    /// At the mobile node: the product and one segment.
    fn default() -> Self {
        Self { at: vec![AssistPlace::Mobile], factor: 1.0, plus: 1, always: false }
    }
}

impl MssClamp {
    /// The least MTU: the tunnel's header and 40 bytes of IP and TCP leave some of it for every encapsulation.
    pub const LEAST_MTU: u16 = 128;
}

impl Default for MssClamp {
    /// At the home agent and the mobile node, for a path of Ethernets.
    fn default() -> Self {
        Self { at: vec![AssistPlace::HomeAgent, AssistPlace::Mobile], mtu: 1_500 }
    }
}

impl Default for BlackHole {
    /// At the home agent: after two repetitions, for ten minutes.
    fn default() -> Self {
        Self { at: vec![AssistPlace::HomeAgent], repeats: 2, lifetime: Duration::from_secs(600) }
    }
}

impl Default for PathQueue {
    /// 50 packets under CoDel, 3 % below the path's rate.
    fn default() -> Self {
        let queue = QueueConfig {
            limit: careof_link::QueueLimit::Packets(50),
            discipline: careof_link::Discipline::CODEL,
            ecn: false,
        };
        Self {
            queue,
            margin: Probability::new(0.03).unwrap_or(Probability::ZERO),
            at_handover: QueueAtHandover::default(),
        }
    }
}

impl Default for BufferForward {
    /// 64 packets, from the announcement on.
    fn default() -> Self {
        Self { limit: 64, from_notice: true }
    }
}

impl Default for Snoop {
    /// 100 packets, sent again after 100 ms at the earliest: ns-2's `SNOOP_MAXWIND` and `SNOOP_MIN_TIMO`.
    fn default() -> Self {
        Self { packets: 100, least_timeout: Duration::from_millis(100) }
    }
}

impl Split {
    /// What the relay holds of a flow and direction: 256 KiB, over a second of 2 Mbit/s.
    pub const BUFFER: u64 = 256 << 10;
}

impl Default for TcpCm {
    /// Both.
    fn default() -> Self {
        Self { resend: true, suspend: true }
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
            Self::RtoFastDecrease(_) => "rto-fast-decrease",
            Self::MssClamp(_) => "mss-clamp",
            Self::BlackHole(_) => "black-hole",
        }
    }

    /// Whether it works only with a sender's TCP that knows of it.
    #[must_use]
    pub const fn needs_changed_sender(&self) -> bool {
        match self {
            Self::Ebsn | Self::RtoReset(_) | Self::TcpCm(_) | Self::MobileTcp | Self::RtoFastDecrease(_) => {
                true
            }
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
            Self::Replay(ReplayAssist { at, .. })
            | Self::WindowClamp(WindowClamp { at, .. })
            | Self::MssClamp(MssClamp { at, .. })
            | Self::BlackHole(BlackHole { at, .. }) => at,
            // Downloads are helped at the agent, uploads at the mobile node.
            Self::HoldLast(_) | Self::LcdKick(_) | Self::Bicast => &[HomeAgent, Mobile],
            Self::Freeze(_) | Self::FastRetransmit(_) | Self::AckHold(_) => &[Mobile],
            Self::PathQueue(_) => &[HomeAgent, ForeignAgent, Mobile],
            Self::BufferForward(_) => &[HomeAgent, ForeignAgent],
            Self::Split(Split { at, .. }) => core::slice::from_ref(at),
            Self::Snoop(_) | Self::Ebsn | Self::MTcp => &[ForeignAgent],
            Self::RtoReset(_) | Self::TcpCm(_) | Self::MobileTcp | Self::RtoFastDecrease(_) => &[],
        }
    }
}
