//! The scenario as the worlds see it: every default filled in, every name resolved, nothing left to check.

use core::net::{IpAddr, Ipv4Addr};

use careof_base::{DataRate, Duration};

use crate::prefix::Prefix;

mod assist;
mod dhcp;
mod discovery;
mod fast_handover;
mod hierarchy;
mod micro_mobility;
mod mptcp;
mod multipath;
mod workload;

pub use assist::{
    AdvisedBy, Assist, AssistException, AssistPlace, BandwidthSource, Freeze, Placed, RtoFastDecrease,
    RtoReset, Split, TcpCm,
};
pub use dhcp::{ClientCheck, Dhcp, StartDelay};
pub use discovery::{Discovery, Unreachability};
pub use fast_handover::FastHandover;
pub use hierarchy::{AnchorPoint, Hierarchy, MapSelection};
pub use micro_mobility::{
    BuildingBlocks, CandidateBuffer, CandidateSet, CellularHandover, MicroMobility, MicroProtocol,
    PathScheme, Trigger, WhenFull,
};
pub use mptcp::Mptcp;
pub use multipath::{
    Dispersion, Multipath, PathLink, PathRule, RelayLink, Resequencing, Treatment, Trust, Uplink,
};
pub use workload::{Adaptation, Burst, Codec, Ladder, Law, OnOff, Video, Voice, Workload};

/// Everything a run needs to know.
///
/// Made by [`Scenario::parse`](crate::Scenario::parse) and [`Scenario::load`](crate::Scenario::load), which refuse
/// what makes no sense; a value that was read from a file satisfies the promises written at its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// One line for people. The file's stem where the file gives none.
    pub title: String,
    /// What the scenario shows; empty where the file says nothing.
    pub description: String,
    /// Length of the run, above zero.
    pub duration: Duration,
    /// From which every random stream is derived.
    pub seed: u64,
    /// The shortest silence that counts as a stall, above zero; `None` for what is sensible on these links.
    pub stall_threshold: Option<Duration>,
    /// The version of the Internet Protocol, with which [`Mobility::protocol`] agrees.
    pub ip_version: IpVersion,
    /// Every node, those implied by `[mobility]` included. Names are unique.
    pub nodes: Vec<Node>,
    /// Every link, implied ones included, in the order of the file and then in that of their need. Names are unique.
    pub links: Vec<Link>,
    /// The media that links share, in the order of the file. Each has at least two stations.
    pub media: Vec<Medium>,
    /// Who moves, and by which protocol; `None` for a fixed network.
    pub mobility: Option<Mobility>,
    /// In the order of time, none beyond the duration; empty without [`Scenario::mobility`].
    pub handovers: Vec<Handover>,
    /// Handovers whose instants each run draws. What a world carries out has none any more: they are in `handovers` there.
    pub poisson_handovers: Vec<PoissonHandovers>,
    /// TCP connections with their workload. Names are unique, and a path joins the ends of each.
    pub flows: Vec<Flow>,
    /// What is to help TCP across handovers, each once and in the order of the type. Empty means nothing, and is so
    /// without [`Scenario::mobility`].
    pub assists: Vec<Assist>,
    /// Flows that the assists leave alone.
    pub assist_except: Vec<AssistException>,
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// RFC 791.
    #[default]
    V4,
    /// RFC 8200.
    V6,
}

impl IpVersion {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// Index into [`Scenario::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Index into [`Scenario::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Index into [`Scenario::media`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumId(pub usize);

/// A cable or radio channel that links share.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// Half-duplex Ethernet or 802.11.
    pub config: careof_link::MediumConfig,
    /// The nodes at the ends of the links that are on it, each once. On a cable a link joins each two of them. On a radio channel of a
    /// [`Fleet`] all its stations are on it, and behind them, to the end, its radios, for each of which its mobile node stands here.
    pub stations: Vec<NodeId>,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// What runs on it.
    pub role: Role,
    /// Of a home agent whose home network has no link, and of a mobility anchor point with its regional addresses: that network, where the
    /// file says it. Else it is planned.
    pub home_prefix: Option<Prefix>,
    /// Those of its addresses that the file says, each of a network whose prefix it says, too. The others are planned.
    pub addresses: Vec<IpAddr>,
}

/// What a node does beyond forwarding and ending flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The fixed end of the mobile node's flows. Nothing of Mobile IP runs there.
    Correspondent,
    /// The home agent.
    HomeAgent,
    /// A foreign agent.
    ForeignAgent,
    /// The mobile node.
    Mobile,
    /// A mobility anchor point (RFC 5380), which forwards packets, too.
    AnchorPoint,
    /// Lends the mobile node its link, and forwards nothing else.
    Relay,
    /// Forwards packets and ends flows, and nothing else.
    Host,
}

/// Two one-way paths between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// The preset it was made from.
    pub preset: Option<&'static str>,
    /// Whether the file leaves this link to be understood.
    pub implied: bool,
    /// Its ends. For a link to the mobile node the mobile node is the second.
    pub ends: [NodeId; 2],
    /// Whether the second end is the mobile node, and the first no relay, so that handovers can move to and from this link.
    pub access: bool,
    /// The medium it is on. Its directions are then what can be said of it as long as nobody else sends.
    pub medium: Option<MediumId>,
    /// Whether it joins two stations of a medium that no link of the file joins there. No route leads over it, but what would go
    /// round by other stations takes it. These follow the links that routes lead over.
    pub straight: bool,
    /// Which it is of the links that its table stands for; `None` where that is one.
    pub copy: Option<CopyNumber>,
    /// The direction from the first end to the second, called `<name>.down` in traces and random streams.
    pub down: careof_link::Config,
    /// The direction from the second end to the first, called `<name>.up`.
    pub up: careof_link::Config,
    /// Where the traces of the two directions come from, down and up.
    pub traces: [Option<TraceFile>; 2],
    /// What the mobile node takes its rate for.
    pub known_rate: KnownRate,
    /// The network on it, where the file says it. Else it is planned.
    pub prefix: Option<Prefix>,
    /// Whether its network has only IPv4 although the run is over IPv6: mobile nodes have IPv4 care-of addresses there (RFC 5555).
    pub ipv4_only: bool,
}

/// What a mobile node takes the rate of an access link for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownRate {
    /// What it is, in each direction; the round trip is known, too.
    #[default]
    True,
    /// Neither the rate nor the round trip is known.
    Unknown,
    /// This, in both directions, be it right or wrong; the round trip is not known.
    Told(DataRate),
}

/// A file with the trace of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its name, without the folder.
    pub file: String,
    /// SHA-256 of its content in hexadecimal.
    pub sha256: String,
}

/// The `[mobility]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct Mobility {
    /// The protocol.
    pub protocol: Protocol,
    /// Whose address the tunnel ends at.
    pub care_of: CareOf,
    /// How the care-of address is obtained; there with [`CareOf::Dhcp`], and only then.
    pub dhcp: Option<Dhcp>,
    /// How the mobile node's own packets travel while it is away from home, where no rule of [`Mobility::policy`]
    /// says otherwise. Never [`Routing::RegularIp`].
    pub routing: Routing,
    /// The tunnel's header.
    pub encapsulation: Encapsulation,
    /// Whether a mobile node's TCP leaves room for the tunnel, in what it sends and in what it asks for, while the node is away.
    pub leave_room: bool,
    /// Whether mobile nodes watch their paths, and leave one in use that goes silent for another that answers.
    pub path_monitor: bool,
    /// The access links that are up from the beginning, the preferred one first, where the mobile node chooses; else empty.
    pub order: Vec<LinkId>,
    /// Those of them whose use costs something.
    pub metered: Vec<LinkId>,
    /// Whether, among them, one in use that is bad is left for a better one.
    pub leave_bad_paths: bool,
    /// The mobile nodes, those of one home agent in a row; none where there is a [`Mobility::fleet`].
    pub nodes: Vec<MobileNode>,
    /// The access link on which the mobile node is at home, if there is one. Only of one mobile node.
    pub home: Option<LinkId>,
    /// Lifetime asked for in a registration, whole seconds; `None` is infinity (65,535 on the wire).
    pub lifetime: Option<Duration>,
    /// How the mobile node and its agents find each other.
    pub discovery: Discovery,
    /// How the mobile node notices that it moved.
    pub movement_detection: MovementDetection,
    /// By which registrations are authenticated.
    pub algorithm: Algorithm,
    /// What keeps old registrations from being replayed.
    pub replay: Replay,
    /// How many requests a mobile node sends again sooner than RFC 5944 has it, where packets wait for the registration.
    pub early_requests: u32,
    /// Whether the mobile node asks for simultaneous bindings (the S bit).
    pub simultaneous_bindings: bool,
    /// How long after a handover the mobile node goes on listening to the interface it left and, with simultaneous
    /// bindings, the home agent goes on sending copies there; `None` is until the interface's link goes down.
    pub keep_old: Option<Duration>,
    /// Whether the other ends of the mobile nodes' flows run careof, and are told where to tunnel to
    /// (draft-ietf-mobileip-optim).
    pub route_optimization: bool,
    /// Whether foreign agents tell each other of who moves between them, and send on what arrives late
    /// (draft-ietf-mobileip-optim). Only with [`CareOf::ForeignAgent`], [`Replay::Timestamps`] and one mobile node.
    pub smooth_handoff: bool,
    /// The first rule that matches a packet of the mobile node says how it travels.
    pub policy: Vec<PolicyRule>,
    /// How care-of addresses are verified, with [`Protocol::MobileIpv6`].
    pub duplicate_address_detection: DuplicateAddressDetection,
    /// Whether mobile nodes and access routers do fast handovers, with [`Protocol::MobileIpv6`] and no fleet, and how.
    pub fast_handover: Option<FastHandover>,
    /// The mobile nodes where they are many alike.
    pub fleet: Option<Fleet>,
    /// The mobility anchor points, if there are any: with them, mobile nodes are hierarchical ones (RFC 5380). Only with
    /// [`Protocol::MobileIpv6`], all of whose networks have IPv6, and without [`Mobility::fleet`] and [`Mobility::path_monitor`].
    pub hierarchy: Option<Hierarchy>,
    /// The domain that the base stations are in, if they are in one of micro-mobility. Only with [`Mobility::fleet`] and
    /// [`Protocol::MobileIpv4`].
    pub micro_mobility: Option<MicroMobility>,
    /// Several links at once.
    pub multipath: Option<Multipath>,
}

/// A mobile node that moves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobileNode {
    /// Which node it is.
    pub node: NodeId,
    /// Its home agent.
    pub home_agent: NodeId,
    /// The access link in use when the run begins; with [`Mobility::order`] its first.
    pub start: LinkId,
}

impl Mobility {
    /// The access link in use when the run begins, of the first mobile node.
    #[must_use]
    pub fn first_start(&self) -> Option<LinkId> {
        let of_fleet = self.fleet.as_ref().map(|fleet| fleet.radio);
        self.nodes.first().map(|node| node.start).or(of_fleet)
    }

    /// The mobile node that is `node`.
    #[must_use]
    pub fn mobile_node(&self, node: NodeId) -> Option<&MobileNode> {
        self.nodes.iter().find(|mobile| mobile.node == node)
    }
}

/// Mobile nodes that go round stations, each with a radio of its own that hangs on one station at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// `mobile-1`. The others follow it in [`Scenario::nodes`].
    pub first: NodeId,
    /// How many there are, at least 1.
    pub count: usize,
    /// The radio of `mobile-1`. Those of the others follow it in [`Scenario::links`], and then their second ones, to the end.
    pub radio: LinkId,
    /// Whether each node has a second radio, which is on another station while both are up ([`Round::overlap`]).
    pub has_second_radios: bool,
    /// The stations in the order in which they are visited, at least 1; with `round` at least 2.
    pub stations: Vec<NodeId>,
    /// When the nodes move on; `None` is never.
    pub round: Option<Round>,
    /// Which station is next.
    pub walk: Walk,
}

/// The handovers of a [`Fleet`]: what is in the radio that leaves its station is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// From one handover of a node to its next, above zero.
    pub every: Duration,
    /// From leaving a station to the link at the next, shorter than `every`; zero with `link_layer`.
    pub interruption: Duration,
    /// What that time is drawn from, for each handover anew; the longest is shorter than `every`.
    pub link_layer: Option<careof_link::WirelessHandover>,
    /// For how long the node is on both stations, shorter than `every`; zero where there is an interruption.
    pub overlap: Duration,
    /// Up to how much later than that a handover comes, drawn for each anew; with what comes before shorter than `every`.
    pub spread: Duration,
}

/// Which station a node of a [`Fleet`] goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Walk {
    /// The next one in order, and from the last to the first.
    #[default]
    Round,
    /// These, as indices of [`Fleet::stations`], again and again; no two in a row are the same, nor are the last and the first. A node begins
    /// at the first.
    Given(Vec<usize>),
    /// When a node leaves for which station, as indices of [`Fleet::stations`], at least two, in the order of time and no two in a row the
    /// same. All begin at the first, whenever that is, and stay at the last.
    Trace(Vec<(Duration, usize)>),
    /// A station drawn of all, by those between in order, then another one: a random waypoint on a road of cells.
    RandomWaypoint,
}

impl Fleet {
    /// The station, as an index of [`Fleet::stations`], at which the `n`th node, counted from 0, begins.
    #[must_use]
    pub fn first_station(&self, n: usize) -> usize {
        match &self.walk {
            Walk::Given(stations) => stations.first().copied().unwrap_or_default(),
            Walk::Trace(steps) => steps.first().map_or(0, |(_, station)| *station),
            Walk::Round | Walk::RandomWaypoint => n % self.stations.len().max(1),
        }
    }

    /// How many radios there are in all.
    #[must_use]
    pub const fn radios(&self) -> usize {
        if self.has_second_radios { 2 * self.count } else { self.count }
    }

    /// When the `n`th node, counted from 0, leaves its first station: the nodes are spread evenly over the interval, but for a walk that has
    /// its own times.
    #[must_use]
    pub fn first_handover(&self, n: usize) -> Option<Duration> {
        if let Walk::Trace(steps) = &self.walk {
            return steps.get(1).map(|(at, _)| *at);
        }
        let every = self.round?.every.as_nanos();
        let nanos = every * (n as u128 + 1) / self.count.max(1) as u128;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Whether `link` is the radio of a node.
    #[must_use]
    pub fn is_radio(&self, link: LinkId) -> bool {
        (self.radio.0..self.radio.0 + self.radios()).contains(&link.0)
    }
}

/// Which of many alike a link or flow is: those one table of the file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyNumber {
    /// Counted from 1. The copies of a table stand in a row.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// A way to follow a mobile node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// RFC 5944.
    #[default]
    MobileIpv4,
    /// RFC 6275.
    MobileIpv6,
}

impl Protocol {
    /// The version of IP it is for.
    #[must_use]
    pub const fn ip_version(self) -> IpVersion {
        match self {
            Self::MobileIpv4 => IpVersion::V4,
            Self::MobileIpv6 => IpVersion::V6,
        }
    }
}

/// Kind of care-of address (RFC 5944, section 1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CareOf {
    /// The mobile node's own address on the link it visits.
    #[default]
    CoLocated,
    /// The foreign agent's address.
    ForeignAgent,
    /// The mobile node's own address on the link it visits, which it has to ask for there.
    Dhcp,
}

impl CareOf {
    /// Whether the tunnel ends at the mobile node.
    #[must_use]
    pub const fn is_co_located(self) -> bool {
        matches!(self, Self::CoLocated | Self::Dhcp)
    }
}

/// How packets of the mobile node travel: MosquitoNet's three choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Routing {
    /// Straight to the destination from the home address; only what comes back takes the tunnel.
    #[default]
    Triangle,
    /// Through the home agent both ways (RFC 3024).
    ReverseTunnel,
    /// With the care-of address as source, as if Mobile IP were not there; does not survive a handover.
    RegularIp,
}

/// Header of the tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// RFC 2003.
    #[default]
    IpInIp,
    /// RFC 2004.
    Minimal,
    /// RFC 2784.
    Gre,
}

/// How a mobile node notices that it moved (RFC 5944, section 2.4.2, and the link layer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MovementDetection {
    /// The link layer says so at once.
    #[default]
    LinkTrigger,
    /// Three advertisements in a row did not come.
    MissedAdvertisements,
    /// The lifetime of the last advertisement ran out (algorithm 1).
    Lifetime,
    /// An advertisement of another prefix came (algorithm 2).
    Prefix,
    /// An agent is heard that was not heard before (eager cell switching): the node goes there at once.
    Eager,
    /// Neighbor unreachability detection says that the default router is unreachable (RFC 4861 section 7.3, RFC 6275 section
    /// 11.5.1); the link layer says nothing.
    UnreachableRouter,
}

/// Authentication of registrations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 5944's default, which every implementation has.
    #[default]
    HmacMd5,
    /// By agreement on the SPI.
    HmacSha256,
    /// RFC 4285's, for Mobile IPv6 only.
    HmacSha1,
}

/// How a mobile node verifies that nobody else on the link has its care-of address (Mobile IPv6), and whether its home agent looks
/// for others with its home address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DuplicateAddressDetection {
    /// The address is used meanwhile (RFC 4429).
    #[default]
    Optimistic,
    /// The address waits for it (RFC 4862).
    Full,
    /// Not at all, as if by agreement.
    None,
}

/// Protection against replayed registrations (RFC 5944, section 5.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replay {
    /// By time of day.
    #[default]
    Timestamps,
    /// By random numbers.
    Nonces,
}

/// A row of the mobile node's policy table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// Which destinations.
    pub to: Destination,
    /// Which destination port; `None` is any.
    pub port: Option<u16>,
    /// How such packets travel.
    pub method: Routing,
}

/// What a rule of the policy table compares a destination with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Everybody.
    Any,
    /// A node of the scenario.
    Node(NodeId),
    /// The addresses that share their first `length` bits with `address`; the others of `address` are zero.
    Prefix {
        /// First address of the prefix.
        address: Ipv4Addr,
        /// 0 to 32.
        length: u8,
    },
}

/// The mobile node changes its access link.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover {
    /// Make-before-break: when the new link comes up. Break-before-make: when the old one goes down.
    pub at: Duration,
    /// The link in use until then.
    pub from: LinkId,
    /// The link in use after it.
    pub to: LinkId,
    /// Whether both links are up together.
    pub style: HandoverStyle,
    /// Make-before-break: how long both links are up, until the old one goes down; `None` is to the end.
    pub overlap: Option<Duration>,
    /// How long neither link is up; zero with make-before-break. The new link comes up at `at + interruption`.
    pub interruption: Duration,
    /// What each run draws the interruption from, in place of `interruption`, which is zero.
    pub link_layer: Option<careof_link::WirelessHandover>,
    /// What becomes of the packets in the old link's queues.
    pub queued: QueuedFate,
    /// How long before `at` the handover is announced; zero is no notice.
    pub notice: Duration,
    /// Whether the mobile node has another care-of address afterwards.
    pub address_changes: bool,
    /// Whether it is announced (`notice` is above zero) and then does not happen: `from` stays in use.
    pub cancelled: bool,
    /// The link that is announced (`notice` is above zero) where that is wrong, neither `from` nor `to`.
    pub announced: Option<LinkId>,
    /// Index of the `[[handover]]` table in the file, which may stand for several.
    pub table: usize,
    /// From each handover of the table to its next, where the table says `every`.
    pub every: Option<Duration>,
}

/// Handovers of one mobile node at instants that each run draws, from the beginning to the end of the run: from one to the next, and from
/// the beginning to the first, it takes `least` and an exponentially distributed time.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonHandovers {
    /// The handovers in their order, again and again, at least two: each leads on from where the one before has led. Their
    /// [`Handover::at`] means nothing.
    pub round: Vec<Handover>,
    /// The mean of the distances, above `least`.
    pub mean: Duration,
    /// The least distance, no shorter than a handover takes and than its notice.
    pub least: Duration,
}

impl Handover {
    /// The handover as it is announced, which it need not be.
    #[must_use]
    pub fn as_announced(&self) -> Self {
        Self { to: self.announced.unwrap_or(self.to), ..self.clone() }
    }
}

/// The order of leaving the old link and entering the new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HandoverStyle {
    /// The old link stays up; the new one carries data when its registration is accepted.
    #[default]
    MakeBeforeBreak,
    /// The old link goes down, then the new one comes up.
    BreakBeforeMake,
}

/// Fate of the packets that wait for the old link when a handover happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueuedFate {
    /// They stay and leave over the old link, late. With break-before-make, when it is up again.
    #[default]
    DrainLate,
    /// They are dropped silently.
    Drop,
    /// They are dropped, and the sender is told by ICMP.
    DropWithIcmp,
    /// They take the new path as soon as it is registered.
    ReRoute,
    /// They are kept and take the new path when it is registered.
    BufferAndForward,
    /// They leave over both.
    Duplicate,
}

/// A connection of TCP, Multipath TCP or QUIC and what it carries, or packets of RTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// Who opens the connection, and who sends (bulk, paced) or asks (request-response).
    pub from: NodeId,
    /// The other end, never `from`.
    pub to: NodeId,
    /// When the connection is opened, before the end of the run.
    pub start: Duration,
    /// When the application stops writing and closes; `None` is not before the run ends.
    pub stop: Option<Duration>,
    /// What the application does.
    pub workload: Workload,
    /// The programs of [`Workload::Command`].
    pub programs: Option<Programs>,
    /// Both ends' TCP; of no meaning with [`Flow::quic`] and for [`Workload::Voice`].
    pub tcp: Tcp,
    /// Both ends' QUIC, where the flow is carried by it.
    pub quic: Option<Quic>,
    /// Multipath TCP of both ends, where the flow has it: its subflows are [`Flow::tcp`].
    pub mptcp: Option<Mptcp>,
    /// Which it is of the flows that its table stands for; `None` where that is one.
    pub copy: Option<CopyNumber>,
}

/// The programs of a flow: words, the first of which is the program's name. `{node}` stands for that node's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Runs at [`Flow::from`].
    pub command: Vec<String>,
    /// Runs at [`Flow::to`], started before the command and ended after it.
    pub server: Option<Vec<String>>,
}

impl Flow {
    /// Whether its packets are segments of TCP, as far as the scenario decides that: programs have sockets of their own.
    #[must_use]
    pub const fn is_over_tcp(&self) -> bool {
        self.quic.is_none() && !matches!(self.workload, Workload::Voice(_))
    }
}

impl Programs {
    /// `word` with each `{node}` replaced by what `address` says about that node. Braces behind `%` or `$` belong to
    /// the program, as in curl's `%{http_code}`.
    ///
    /// # Errors
    /// The first name that `address` has nothing for.
    pub fn fill(word: &str, address: impl Fn(&str) -> Option<String>) -> Result<String, &str> {
        let mut filled = String::with_capacity(word.len());
        let mut rest = word;
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            match behind.split_once('}') {
                Some((name, after)) if !before.ends_with(['%', '$']) => {
                    filled.push_str(&address(name).ok_or(name)?);
                    rest = after;
                }
                _ => {
                    filled.push('{');
                    rest = behind;
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// TCP of a flow, the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// On which `config` is based.
    pub profile: careof_tcp::Profile,
    /// Passes [`careof_tcp::Config::check`]. Its `mss` fits the links at the flow's ends.
    pub config: careof_tcp::Config,
    /// Whether IP packets of this flow carry DF and ICMP "fragmentation needed" shrinks the segments (RFC 1191).
    pub pmtu_discovery: bool,
    /// What the file asks of a kernel's TCP; `None` where it describes a model. Simulations refuse it.
    pub kernel: Option<KernelTcp>,
    /// The keys that the file gives, in the order of the documentation.
    pub given: Vec<&'static str>,
}

/// QUIC of a flow, the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quic {
    /// Its transport. `config.migration` is whether the mobile node uses its own address on the link that it is on, and takes the
    /// connection along when that changes; otherwise the home address.
    pub config: careof_quic::Config,
    /// The keys that the file gives, in the order of the documentation.
    pub given: Vec<&'static str>,
}

/// The TCP of a Linux kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTcp {
    /// Its congestion control: `cubic`. `None` is the profile's.
    pub congestion: Option<String>,
    /// How much of it is switched on; `None` where [`Tcp::profile`] says which model it is to resemble.
    pub profile: Option<KernelProfile>,
    /// The key that makes it a kernel's, and its value.
    pub asked_by: (&'static str, String),
}

/// How much of a kernel's TCP is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelProfile {
    /// As it comes.
    Modern,
    /// What the 1990s did not have is off: SACK, timestamps, F-RTO, RACK, tail loss probes.
    Legacy,
}

impl Scenario {
    /// Each handover that a run of it may have: also those that are drawn, which are in some runs and not in others. What a world cannot do is
    /// looked for in all of them, lest the tenth run of a series be refused.
    pub fn possible_handovers(&self) -> impl Iterator<Item = &Handover> {
        self.handovers.iter().chain(self.poisson_handovers.iter().flat_map(|poisson| &poisson.round))
    }

    /// The node behind an id of this scenario.
    ///
    /// # Panics
    /// When the id belongs to another scenario.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// The link behind an id of this scenario.
    ///
    /// # Panics
    /// When the id belongs to another scenario.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0]
    }

    /// The node called `name`.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(NodeId)
    }

    /// The link called `name`.
    #[must_use]
    pub fn link_named(&self, name: &str) -> Option<LinkId> {
        self.links.iter().position(|link| link.name == name).map(LinkId)
    }

    /// The only node with `role`, or the first of them.
    #[must_use]
    pub fn node_with_role(&self, role: Role) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.role == role).map(NodeId)
    }

    /// The links a handover can move between, with their ids.
    pub fn access_links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().enumerate().filter(|(_, link)| link.access).map(|(i, link)| (LinkId(i), link))
    }
}
