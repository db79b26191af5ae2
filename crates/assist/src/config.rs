//! Which assists are used, with their parameters and bounds.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use careof_link::QueueConfig;

use crate::{FlowKey, Kind, Place};

/// What an [`crate::Assistant`] does. An assist that is `None` is not used.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it runs.
    pub place: Place,
    /// Keep and send again what the lost path owes.
    pub replay: Option<Replay>,
    /// Its cheapest form.
    pub hold_last: Option<HoldLast>,
    /// ICMP host unreachable.
    pub lcd_kick: Option<LcdKick>,
    /// Zero window.
    pub freeze: Option<Freeze>,
    /// Duplicate acknowledgements on reconnection.
    pub fast_retransmit: Option<FastRetransmit>,
    /// The last bytes' acknowledgement kept back.
    pub ack_hold: Option<AckHold>,
    /// The window follows the path.
    pub window_clamp: Option<WindowClamp>,
    /// The queue of the path.
    pub path_queue: Option<PathQueue>,
    /// A large buffer.
    pub buffer_forward: Option<BufferForward>,
    /// Copies by all paths.
    pub bicast: bool,
    /// Local retransmission.
    pub snoop: Option<Snoop>,
    /// The last byte's acknowledgement as a lever.
    pub m_tcp: bool,
    /// The segment size in SYNs.
    pub mss_clamp: Option<MssClamp>,
    /// Tunnels that swallow large packets.
    pub black_hole: Option<BlackHole>,
    /// Bounds.
    pub limits: Limits,
    /// Flows that are left alone.
    pub except: Vec<Exception>,
}

impl Config {
    /// No assist at all.
    #[must_use]
    pub const fn none(place: Place) -> Self {
        Self {
            place,
            replay: None,
            hold_last: None,
            lcd_kick: None,
            freeze: None,
            fast_retransmit: None,
            ack_hold: None,
            window_clamp: None,
            path_queue: None,
            buffer_forward: None,
            bicast: false,
            snoop: None,
            m_tcp: false,
            mss_clamp: None,
            black_hole: None,
            limits: Limits::DEFAULT,
            except: Vec::new(),
        }
    }

    /// What is safe on the open Internet with unmodified ends: [`Replay`], [`LcdKick`], [`WindowClamp`].
    #[must_use]
    pub const fn default_set(place: Place) -> Self {
        let mut config = Self::none(place);
        config.replay = Some(Replay::DEFAULT);
        config.lcd_kick = Some(LcdKick::DEFAULT);
        config.window_clamp = Some(WindowClamp::DEFAULT);
        config
    }

    /// Whether every packet of the mobile nodes is to be shown, and not only the whole segments of TCP.
    #[must_use]
    pub const fn is_for_all_packets(&self) -> bool {
        self.path_queue.is_some() || self.buffer_forward.is_some()
    }

    /// Whether a flow is left alone.
    #[must_use]
    pub fn excepts(&self, flow: &FlowKey) -> bool {
        self.except.iter().any(|exception| exception.covers(flow))
    }

    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let keepers = [
            (Kind::Replay, self.replay.is_some()),
            (Kind::HoldLast, self.hold_last.is_some()),
            (Kind::PathQueue, self.path_queue.is_some()),
            (Kind::BufferForward, self.buffer_forward.is_some()),
            (Kind::Snoop, self.snoop.is_some()),
        ];
        let mut used = keepers.into_iter().filter(|(_, is_used)| *is_used).map(|(kind, _)| kind);
        if let (Some(first), Some(second)) = (used.next(), used.next()) {
            return Err(ConfigError::BothKeep { first, second });
        }
        let rewriters = [
            (Kind::Freeze, self.freeze.is_some()),
            (Kind::AckHold, self.ack_hold.is_some()),
            (Kind::MTcp, self.m_tcp),
        ];
        let mut used = rewriters.into_iter().filter(|(_, is_used)| *is_used).map(|(kind, _)| kind);
        if let (Some(first), Some(second)) = (used.next(), used.next()) {
            return Err(ConfigError::BothRewrite { first, second });
        }
        for (assist, is_used) in [(Kind::Snoop, self.snoop.is_some()), (Kind::MTcp, self.m_tcp)] {
            if is_used && self.place == Place::MobileNode {
                return Err(ConfigError::NotOnTheMobileNode { assist });
            }
        }
        if self.buffer_forward.is_some() && self.place == Place::MobileNode {
            return Err(ConfigError::NotOnTheMobileNode { assist: Kind::BufferForward });
        }
        if let Some(path) = &self.path_queue {
            if path.queue.ecn {
                return Err(ConfigError::NoMarks);
            }
            if !(0.0..1.0).contains(&path.margin) {
                return Err(ConfigError::NothingLeft);
            }
        }
        if self.black_hole.is_some_and(|hole| hole.repeats == 0) {
            return Err(ConfigError::NoRepeats);
        }
        let limits = &self.limits;
        if limits.flows == 0 || limits.packets == 0 || limits.bytes == 0 {
            return Err(ConfigError::NoRoom);
        }
        Ok(())
    }
}

/// A configuration that contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Two assists would keep the same packets.
    #[error("`{}` and `{}` both keep packets for the mobile node: use one of them", first.name(), second.name())]
    BothKeep {
        /// One.
        first: Kind,
        /// The other.
        second: Kind,
    },
    /// Two assists would rewrite the same acknowledgements.
    #[error("`{}` and `{}` both rewrite the acknowledgements around a handover: use one of them", first.name(), second.name())]
    BothRewrite {
        /// One.
        first: Kind,
        /// The other.
        second: Kind,
    },
    /// An assist of the network.
    #[error("`{}` works between the ends: use it at a foreign agent or at the home agent, not on the mobile node", assist.name())]
    NotOnTheMobileNode {
        /// Which.
        assist: Kind,
    },
    /// A queue that is to mark.
    #[error(
        "`path-queue` marks nothing: it acts on headers when packets come, and a mark is made when they leave; leave ecn out"
    )]
    NoMarks,
    /// A queue that would send nothing.
    #[error(
        "the margin of `path-queue` is the share of the path's rate that is not used: a number from 0 to less than 1"
    )]
    NothingLeft,
    /// A suspicion without a reason.
    #[error("`black-hole` needs a segment that was repeated: `repeats` is 1 at least")]
    NoRepeats,
    /// A bound of zero.
    #[error("an assistant needs room for at least one flow, one packet and one byte: use no assist instead")]
    NoRoom,
}

/// Bounds on what an assistant stores and sends. Not configurable per assist: they protect the node it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows followed at a time; beyond it those make room whose ends were not both heard, of the mobile node with most of them.
    pub flows: usize,
    /// Packets stored at a time, of all flows.
    pub packets: usize,
    /// Bytes stored at a time, whole datagrams of all flows.
    pub bytes: u64,
    /// A flow without packets is forgotten after this.
    pub idle: Duration,
    /// ICMP messages a second, of all flows together; three quarters of them of flows whose ends were not both heard.
    pub unreachables_per_second: u32,
    /// ICMP messages a flow and handover.
    pub unreachables_per_flow: u32,
    /// Acknowledgements made up a flow and handover.
    pub acks_per_flow: u32,
    /// Acknowledgements made up a second, of all flows together whose ends were not both heard.
    pub unproven_acks_per_second: u32,
}

impl Limits {
    /// 4,096 flows, 32,768 packets, 64 MiB, two minutes; 100 ICMP messages a second, 8 a flow and handover; 4 acknowledgements, and
    /// 100 a second for flows whose ends were not both heard.
    pub const DEFAULT: Self = Self {
        flows: 4_096,
        packets: 32_768,
        bytes: 64 << 20,
        idle: Duration::from_secs(120),
        unreachables_per_second: 100,
        unreachables_per_flow: 8,
        acks_per_flow: 4,
        unproven_acks_per_second: 100,
    };
}

/// Flows that no assist touches: those that match both, where both are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Network of the correspondent, as address and prefix length; `None`: any, of either version.
    pub prefix: Option<(IpAddr, u8)>,
    /// Port at either end; `None`: any.
    pub port: Option<u16>,
}

impl Exception {
    /// Whether a flow is one of these.
    #[must_use]
    pub fn covers(&self, flow: &FlowKey) -> bool {
        let prefix = self.prefix.is_none_or(|(network, len)| match (network, flow.peer) {
            (IpAddr::V4(network), IpAddr::V4(peer)) => {
                let differ = network.to_bits() ^ peer.to_bits();
                differ.checked_shr(32 - u32::from(len.min(32))).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(peer)) => {
                let differ = network.to_bits() ^ peer.to_bits();
                differ.checked_shr(128 - u32::from(len.min(128))).unwrap_or(0) == 0
            }
            _ => false,
        });
        let port = self.port.is_none_or(|port| port == flow.peer_port || port == flow.mobile_port);
        prefix && port
    }
}

/// Keep what the lost path still owes, and send it in order when a path is back.
///
/// Runs at the home agent, a foreign agent or base station for downloads, on the mobile node for uploads. No end host changes.
/// It has to know when a path is back, and is better for knowing the path's rate and round trip. See [`crate::Assistant`]'s
/// module `replay` for the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Bytes a flow and direction, whole datagrams.
    pub bytes: u64,
    /// Packets a flow and direction.
    pub packets: usize,
    /// A copy older than this is dropped.
    pub age: Duration,
    /// Which packets of a flow are given up when there is no room.
    pub keep: Which,
    /// What becomes of packets beyond the new path's bandwidth-delay product.
    pub rest: Rest,
    /// Longest time that packets may wait for a slow path: what would take longer is dropped, the newest first.
    ///
    /// Every byte that is owed has to cross the path once, whoever sends it again. What is dropped makes a hole behind which
    /// data wait that have crossed already: from 2 Mbit/s to 9.6 kbit/s after a gap of 2 s, a modelled Linux sender delivers
    /// 0.90 of the line in the minute after with a bound of 2 s, 0.46 with 30 s and 0.95 without one. So it is there for memory.
    pub wait: Duration,
    /// Do not let repetitions through of what waits or is on its way.
    pub swallow: bool,
    /// How many round trips the old path gets, when it is not known to be lost, before what it owes is sent again.
    pub patience: u32,
}

impl Replay {
    /// 4 MiB and 4,096 packets a flow, copies of 30 s; five minutes of waiting.
    pub const DEFAULT: Self = Self {
        bytes: 4 << 20,
        packets: 4_096,
        age: Duration::from_secs(30),
        keep: Which::Oldest,
        rest: Rest::Wait,
        wait: Duration::from_secs(300),
        swallow: true,
        patience: 1,
    };
}

/// Which end of a flow's packets is kept when there is no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The oldest: a contiguous stretch from the first that is owed.
    Oldest,
    /// The newest.
    Newest,
}

impl Which {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Oldest, Self::Newest];

    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
        }
    }
}

/// What becomes of packets beyond the new path's bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They wait in the assistant's queue and follow at the path's rate.
    Wait,
    /// They are dropped.
    Drop,
    /// No limit: all are sent at once.
    Burst,
}

impl Rest {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Wait, Self::Drop, Self::Burst];

    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Drop => "drop",
            Self::Burst => "burst",
        }
    }
}

/// Keep the last packets of every flow: [`Replay`] for little memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLast {
    /// Packets a flow and direction.
    pub packets: usize,
    /// A copy older than this is dropped.
    pub age: Duration,
}

impl HoldLast {
    /// Two packets, 30 s.
    pub const DEFAULT: Self = Self { packets: 2, age: Duration::from_secs(30) };
}

/// ICMP host unreachable quoting the segment at SND.UNA (RFC 6069 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcdKick {
    /// Answer repetitions while the path is lost.
    pub during: bool,
    /// Least time between two answers.
    pub interval: Duration,
    /// Messages when a path is back and nothing could be kept.
    pub burst: u32,
    /// Time between them.
    pub spacing: Duration,
}

impl LcdKick {
    /// During the outage at most every 250 ms, 8 messages a millisecond apart at its end.
    pub const DEFAULT: Self = Self {
        during: true,
        interval: Duration::from_millis(250),
        burst: 8,
        spacing: Duration::from_millis(1),
    };
}

/// A zero window ahead of an announced handover (Goff, Moronski, Phatak, Gupta 2000).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// How long before the announced end of the path the window closes. It should be a round trip with its queueing.
    pub warning: Duration,
    /// Acknowledgements that open the window.
    pub acks: u32,
    /// How long after the announced end the window opens again if there was no handover.
    pub patience: Duration,
}

/// Duplicates of the last acknowledgement on reconnection (Caceres and Iftode 1995).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRetransmit {
    /// How many.
    pub acks: u32,
    /// The SACK blocks in them.
    pub sack: Sack,
    /// None are sent after a longer outage; `None`: after any.
    pub longest_outage: Option<Duration>,
}

impl FastRetransmit {
    /// Three, with the SACK blocks of the last one, after at most 200 ms.
    pub const DEFAULT: Self =
        Self { acks: 3, sack: Sack::AsLast, longest_outage: Some(Duration::from_millis(200)) };
}

/// SACK blocks of acknowledgements made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sack {
    /// Those of the last acknowledgement, which may be stale.
    AsLast,
    /// None.
    None,
}

impl Sack {
    /// Both.
    pub const ALL: [Self; 2] = [Self::AsLast, Self::None];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsLast => "as-last",
            Self::None => "none",
        }
    }
}

/// Keep back the acknowledgement of the last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckHold {
    /// How many bytes stay unacknowledged.
    pub bytes: u32,
    /// Always, not only when a handover was announced.
    pub always: bool,
    /// Longest time an acknowledgement is kept back.
    pub longest: Duration,
}

impl AckHold {
    /// One byte, from the announcement on, 200 ms.
    pub const DEFAULT: Self = Self { bytes: 1, always: false, longest: Duration::from_millis(200) };
}

/// The receiver's window follows the path's bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowClamp {
    /// Multiple of the bandwidth-delay product.
    pub factor: f64,
    /// Segments on top.
    pub segments: u32,
    /// On every path, and as long as it is used; otherwise only for flows that come from a faster one, as long as they lose nothing by it.
    pub always: bool,
}

impl WindowClamp {
    /// The product plus one segment, on a path slower than the one before.
    pub const DEFAULT: Self = Self { factor: 1.0, segments: 1, always: false };
}

/// The segment size in SYNs fits the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MssClamp {
    /// MTU of the tunnel's path, bytes of the outer datagram.
    pub mtu: u16,
}

impl MssClamp {
    /// That of Ethernet.
    pub const DEFAULT: Self = Self { mtu: 1_500 };
}

/// Tunnels that swallow large packets are found and crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlackHole {
    /// How often a segment is repeated whole before fragments of it are tried.
    pub repeats: u32,
    /// How long an MTU that was found so is believed.
    pub lifetime: Duration,
}

impl BlackHole {
    /// Two repetitions; ten minutes (RFC 1191 section 6.3).
    pub const DEFAULT: Self = Self { repeats: 2, lifetime: careof_mobility::path_mtu::LIFETIME };
}

/// The queue of the path in the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathQueue {
    /// Limit and discipline.
    pub queue: QueueConfig,
    /// How far below the path's rate it sends, as a fraction.
    pub margin: f64,
    /// What becomes of the queue at a handover.
    pub at_handover: QueueAtHandover,
}

impl PathQueue {
    /// 50 packets under CoDel, 3 % below the path's rate.
    pub const DEFAULT: Self = Self {
        queue: QueueConfig {
            limit: careof_link::QueueLimit::Packets(50),
            discipline: careof_link::Discipline::CODEL,
            ecn: false,
        },
        margin: 0.03,
        at_handover: QueueAtHandover::ReRoute,
    };
}

/// What becomes of an agent's queue at a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAtHandover {
    /// It moves to the new path.
    ReRoute,
    /// It is dropped.
    Drop,
    /// It goes on by the old path.
    DrainLate,
}

impl QueueAtHandover {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReRoute, Self::Drop, Self::DrainLate];

    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReRoute => "re-route",
            Self::Drop => "drop",
            Self::DrainLate => "drain-late",
        }
    }
}

/// A buffer in the agent while there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferForward {
    /// Packets of a mobile node; more are dropped.
    pub packets: usize,
    /// Begin when a handover is announced, not only when the path is lost.
    pub from_notice: bool,
}

impl BufferForward {
    /// 64 packets, from the announcement on.
    pub const DEFAULT: Self = Self { packets: 64, from_notice: true };
}

/// Local retransmission at the base station (Balakrishnan, Seshan, Amir, Katz 1995).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snoop {
    /// Packets a flow.
    pub packets: usize,
    /// Least time after which an unacknowledged packet is sent again.
    pub least_timeout: Duration,
}

impl Snoop {
    /// 100 packets, sent again after 100 ms at the earliest: ns-2's `SNOOP_MAXWIND` and `SNOOP_MIN_TIMO`.
    pub const DEFAULT: Self = Self { packets: 100, least_timeout: Duration::from_millis(100) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_covers_a_prefix_or_a_port_or_both() {
        let flow = |mobile: &str, peer: &str| FlowKey {
            mobile: mobile.parse().unwrap(),
            peer: peer.parse().unwrap(),
            mobile_port: 40_000,
            peer_port: 22,
        };
        for (flow, network, all, length) in [
            (flow("10.0.0.1", "192.0.2.7"), "192.0.2.0", "0.0.0.0", 32),
            (flow("2001:db8::1", "2001:db8:7::7"), "2001:db8:7::", "::", 128),
        ] {
            let (network, all): (IpAddr, IpAddr) = (network.parse().unwrap(), all.parse().unwrap());
            let covers = |prefix, port| Exception { prefix, port }.covers(&flow);
            assert!(covers(Some((network, length - 8)), None));
            assert!(covers(Some((all, 0)), Some(22)));
            assert!(!covers(Some((network, length)), None));
            assert!(!covers(Some((network, length - 8)), Some(23)));
            assert!(covers(None, Some(40_000)));
        }
        let other = Exception { prefix: Some((IpAddr::from([0; 4]), 0)), port: None };
        assert!(!other.covers(&flow("2001:db8::1", "2001:db8:7::7")), "all of IPv4 is nothing of IPv6");
    }

    #[test]
    fn two_assists_that_keep_the_same_packets_are_refused() {
        let mut config = Config::default_set(Place::HomeAgent);
        assert_eq!(config.check(), Ok(()));
        config.hold_last = Some(HoldLast::DEFAULT);
        assert_eq!(
            config.check(),
            Err(ConfigError::BothKeep { first: Kind::Replay, second: Kind::HoldLast })
        );
    }
}
