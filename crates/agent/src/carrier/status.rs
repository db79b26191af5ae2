//! What an agent is doing, as a snapshot for people and programs.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

/// Which kind of agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A home agent.
    Home,
    /// A foreign agent.
    Foreign,
    /// A mobile node.
    Mobile,
    /// A correspondent node of Mobile IPv6.
    Correspondent,
    /// A mobility anchor point of Hierarchical Mobile IPv6.
    AnchorPoint,
    /// An access router of fast handovers over Mobile IPv6.
    AccessRouter,
    /// A relay, which lends mobile nodes its link.
    Relay,
}

impl Role {
    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home agent",
            Self::Foreign => "foreign agent",
            Self::Mobile => "mobile node",
            Self::Correspondent => "correspondent node",
            Self::AnchorPoint => "mobility anchor point",
            Self::AccessRouter => "access router",
            Self::Relay => "relay",
        }
    }
}

/// An interface that the agent uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Whether it exists, is up and has a carrier.
    pub up: bool,
    /// Its address with the bits of its network.
    pub address: Option<String>,
    /// Its default router.
    pub gateway: Option<IpAddr>,
    /// Mobile node: what is known of the path through it, while paths are watched.
    pub path: Option<PathStatus>,
}

/// What a mobile node knows of the path through an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStatus {
    /// `unknown`, `alive`, `suspect` or `silent`.
    pub state: &'static str,
    /// The smoothed round trip to the home agent, of probes, milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Its mean deviation, milliseconds.
    pub variation_ms: Option<f64>,
    /// The least round trip of late, milliseconds.
    pub least_round_trip_ms: Option<f64>,
    /// What is wrong with it in use, if it is bad: `loss` or `delay`.
    pub fault: Option<&'static str>,
    /// Whether it was left as bad, and is not come back to before it is good again.
    pub avoided: bool,
    /// Of what was sent from here, lost on the way to the home agent, 0 to 1, about.
    pub loss_out: Option<f64>,
    /// Of what the home agent has sent, lost on the way here, 0 to 1, about.
    pub loss_in: Option<f64>,
    /// What has lately got through to the home agent, bit/s.
    pub delivered_out: Option<u64>,
    /// What has lately come from there, bit/s.
    pub delivered_in: Option<u64>,
    /// When something came last, seconds ago.
    pub received_ago_s: Option<f64>,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
}

/// What this end did with a path that is registered no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeftPath {
    /// Its number.
    pub path: u8,
    /// Packets that were put on it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that it went out.
    pub outages: u64,
    /// For how long it was out.
    pub out_for: std::time::Duration,
}

/// A tunnel over several paths, as this end of it sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MultipathStatus {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// With `auto`, how flows go that find their path full: `pinned`, `tried` or `split`.
    pub mode: Option<&'static str>,
    /// Packets that were to be sent.
    pub offered: u64,
    /// Of these, packets for which no path worked: dropped.
    pub no_path: u64,
    /// Packets put on paths, copies and replays included.
    pub transmitted: u64,
    /// Of these, further copies.
    pub copies: u64,
    /// Of these, packets that were sent again by another path because theirs had gone out.
    pub replayed: u64,
    /// Packets on a path that had gone out which no other path could take.
    pub stranded: u64,
    /// Times that a flow changed its path.
    pub moves: u64,
    /// Messages about paths that were sent.
    pub messages: u64,
    /// Packets that came.
    pub arrived: u64,
    /// Of these, packets that were passed on.
    pub released: u64,
    /// Of these, packets that had come already: dropped.
    pub duplicates: u64,
    /// Packets that waited for earlier ones.
    pub waited: u64,
    /// Packets that came after later ones of their flow were passed on.
    pub late: u64,
    /// Packets that were missing and no longer waited for.
    pub given_up: u64,
    /// Packets that wait now.
    pub holds: usize,
    /// The longest that a packet has waited, milliseconds.
    pub longest_wait_ms: f64,
    /// Times that the other end began anew.
    pub peer_restarts: u64,
    /// The paths.
    pub paths: Vec<MultipathPathStatus>,
    /// Those that are registered no more.
    #[serde(skip)]
    pub left: Vec<LeftPath>,
}

/// One of several paths. What is told of a direction is that away from here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MultipathPathStatus {
    /// Its number, the same at both ends.
    pub path: u8,
    /// The mobile node's address there.
    pub care_of: Ipv4Addr,
    /// Mobile node: its interface; through a relay that to the cluster.
    pub interface: Option<String>,
    /// Mobile node: the relay that it leads through, by its address in the cluster.
    pub relay: Option<Ipv4Addr>,
    /// `unknown`, `alive`, `suspect` or `silent`.
    pub state: &'static str,
    /// The smoothed round trip, milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Its mean deviation, milliseconds.
    pub variation_ms: Option<f64>,
    /// The least round trip of late, milliseconds.
    pub least_round_trip_ms: Option<f64>,
    /// How far one-way delays of successive packets are apart in the mean, milliseconds.
    pub transit_variation_ms: Option<f64>,
    /// What it is expected to carry, bit/s.
    pub rate: Option<u64>,
    /// Packets lost, 0 to 1.
    pub loss: Option<f64>,
    /// How long the next packet is predicted to queue, milliseconds.
    pub backlog_ms: f64,
    /// Bytes that are not confirmed.
    pub in_flight: u64,
    /// Of all bytes sent, 0 to 1.
    pub share: f64,
    /// Packets sent, whatever became of the path in between.
    pub sent_packets: u64,
    /// Bytes of these, without the tunnel's headers.
    pub sent_bytes: u64,
    /// Packets received since it is a path.
    pub received_packets: u32,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
    /// Times that this end took it for out.
    pub outages: u64,
    /// For how long it did, all in all, seconds.
    pub out_for_s: f64,
}

/// A cluster that a mobile node is in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterStatus {
    /// The interface to it.
    pub interface: String,
    /// The node's address there.
    pub address: Option<Ipv4Addr>,
    /// Relays that advertise themselves.
    pub known: usize,
    /// Those that it uses.
    pub relays: Vec<RelayInUse>,
}

/// A relay that a mobile node uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelayInUse {
    /// Its address in the cluster.
    pub relay: Ipv4Addr,
    /// That of its own link: a care-of address.
    pub care_of: Ipv4Addr,
}

/// What a relay lends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelayStatus {
    /// Whether it does.
    pub lends: bool,
    /// Its address in the cluster.
    pub cluster: Option<Ipv4Addr>,
    /// That of its own link.
    pub outside: Option<Ipv4Addr>,
    /// Allies that it takes at a time.
    pub most_allies: usize,
    /// The allies, by home address.
    pub allies: Vec<AllyStatus>,
    /// Packets passed on for whomever since it was started, to mobile nodes and from them.
    pub relayed_packets: [u64; 2],
    /// Bytes of these, within the outer header.
    pub relayed_bytes: [u64; 2],
}

/// A mobile node that a relay is allied with, and what it passed on for it in this alliance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllyStatus {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// Its address in the cluster.
    pub client: Ipv4Addr,
    /// What is left of the alliance in seconds.
    pub left_s: f64,
    /// Packets to it.
    pub packets_in: u64,
    /// Bytes of these, within the outer header.
    pub bytes_in: u64,
    /// Packets from it.
    pub packets_out: u64,
    /// Bytes of these.
    pub bytes_out: u64,
}

/// A binding of a home agent or correspondent node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BindingStatus {
    /// The mobile node.
    pub home_address: IpAddr,
    /// Where its packets go.
    pub care_of: IpAddr,
    /// The lifetime granted in seconds; `None`: for ever.
    pub lifetime_s: Option<u64>,
    /// What is left of it in seconds.
    pub left_s: Option<f64>,
    /// The mobile node takes packets out of the tunnel itself.
    pub co_located: bool,
    /// Packets may come back through the tunnel.
    pub reverse_tunnel: bool,
    /// How packets are wrapped: `ip-in-ip`, `minimal` or `gre`; of Mobile IPv6 `ipv6-in-ipv6`, or `type-2-routing` at a correspondent
    /// node, which sends them without a tunnel.
    pub encapsulation: &'static str,
}

/// Where a home agent keeps its bindings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreStatus {
    /// Mobile nodes of which it does not know the latest. They are served; after a crash they would be as they were
    /// before, and what they asked for since might be replayed.
    pub unsaved: usize,
    /// For how long it has taken nothing, in seconds; `None`: it does.
    pub failing_s: Option<f64>,
    /// Why it does not.
    pub problem: Option<String>,
}

/// A visitor of a foreign agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VisitorStatus {
    /// Who.
    pub home_address: Ipv4Addr,
    /// Its home agent.
    pub home_agent: Ipv4Addr,
    /// The care-of address registered.
    pub care_of: Ipv4Addr,
    /// The interface behind which it is.
    pub interface: Option<String>,
    /// What is left of the registration in seconds; `None`: for ever.
    pub left_s: Option<f64>,
    /// Whether its packets go back through a tunnel.
    pub reverse_tunnel: bool,
}

/// The registration of a mobile node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegistrationStatus {
    /// The home address.
    pub home_address: IpAddr,
    /// The home agent, once it is known.
    pub home_agent: Option<IpAddr>,
    /// Whether packets to the home address arrive.
    pub registered: bool,
    /// Whether the node is at home.
    pub at_home: bool,
    /// The interface in use.
    pub interface: Option<String>,
    /// The care-of address in use; under a mobility anchor point the regional one.
    pub care_of: Option<IpAddr>,
    /// The mobility anchor point in use (RFC 5380).
    pub anchor_point: Option<IpAddr>,
    /// The on-link care-of address that it knows.
    pub on_link_care_of: Option<IpAddr>,
}

/// A tunnel and what went through it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunnelStatus {
    /// Our end.
    pub here: IpAddr,
    /// The other end.
    pub there: IpAddr,
    /// The largest datagram that goes through in one piece, bytes; `None` while nothing has shown it.
    pub mtu: Option<u16>,
    /// Datagrams put in.
    pub packets_out: u64,
    /// Bytes of datagrams put in.
    pub bytes_out: u64,
    /// Datagrams taken out.
    pub packets_in: u64,
    /// Bytes of datagrams taken out.
    pub bytes_in: u64,
}

/// A handover of a mobile node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandoverStatus {
    /// When it was initiated, seconds since the carrier's clock began.
    pub at_s: f64,
    /// The interface left.
    pub from: Option<String>,
    /// The interface moved to.
    pub to: Option<String>,
    /// Why: `attached`, `chosen`, `moved`, `not-working`, `preferred`, `path-silent`, `path-lossy`, `path-slow`, `path-good-again` or
    /// `not-better`, with what was measured.
    pub reason: String,
    /// How far it came: `initiated`, `registered`, `terminated` or `failed`.
    pub phase: &'static str,
    /// The care-of address registered; none at home.
    pub care_of: Option<IpAddr>,
    /// Time to the accepted registration in milliseconds.
    pub latency_ms: Option<f64>,
    /// Requests it took.
    pub attempts: Option<u32>,
}

/// What an assist did for a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssistDeed {
    /// Which assist.
    pub assist: &'static str,
    /// What it did: `replay`, `close-window`, `unreachable`, ...
    pub what: &'static str,
    /// How often.
    pub times: u64,
    /// Packets concerned.
    pub packets: u64,
    /// Bytes of these, whole datagrams.
    pub bytes: u64,
}

/// A TCP connection that assists follow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssistFlowStatus {
    /// The mobile node.
    pub home_address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The correspondent.
    pub peer: IpAddr,
    /// Its port.
    pub peer_port: u16,
    /// Seconds since its last packet.
    pub idle_s: f64,
    /// Packets stored for it.
    pub packets: usize,
    /// Bytes stored for it, whole datagrams.
    pub bytes: u64,
    /// How long its last stall at a handover was, in milliseconds, from the last progress before to the first after.
    pub stall_ms: Option<f64>,
    /// The part of it after the new path could be used.
    pub stall_after_path_ms: Option<f64>,
    /// What was done for it.
    pub done: Vec<AssistDeed>,
}

/// What assists do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssistStatus {
    /// The connections they follow.
    pub flows: Vec<AssistFlowStatus>,
    /// Packets stored, of all connections.
    pub stored_packets: usize,
    /// Bytes stored, whole datagrams.
    pub stored_bytes: u64,
}

/// Counters by name; they only grow.
pub type AgentCounters = BTreeMap<String, u64>;

/// A snapshot of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Which kind of agent.
    pub role: Role,
    /// Seconds since the agent was opened.
    pub uptime_s: f64,
    /// The name of the tunnel device.
    pub tunnel_device: String,
    /// The interfaces it uses.
    pub interfaces: Vec<InterfaceStatus>,
    /// Why what is known of interfaces and addresses may be old: they could not be read, and will be again.
    pub network_problem: Option<String>,
    /// Home and foreign agent, correspondent node: addresses by which others reach it, which this host does not have.
    pub missing_addresses: Vec<IpAddr>,
    /// Routes, proxied addresses and neighbours that wait to be put into the host, or taken out of it, after a start or a change of
    /// the network that left doubts.
    pub host_changes_pending: usize,
    /// Home agent and correspondent node: how many bindings it has.
    pub binding_count: usize,
    /// Home agent and correspondent node: the bindings.
    pub bindings: Vec<BindingStatus>,
    /// Home agent: where they outlive a crash; `None`: nowhere.
    pub store: Option<StoreStatus>,
    /// Foreign agent: how many visitors it has.
    pub visitor_count: usize,
    /// Foreign agent: the visitors.
    pub visitors: Vec<VisitorStatus>,
    /// Mobile node: its registration.
    pub registration: Option<RegistrationStatus>,
    /// The tunnels that carried something, or can.
    pub tunnels: Vec<TunnelStatus>,
    /// Tunnels over several paths.
    pub multipath: Vec<MultipathStatus>,
    /// Mobile node: the cluster whose relays it uses.
    pub cluster: Option<ClusterStatus>,
    /// Relay: what it lends.
    pub relay: Option<RelayStatus>,
    /// What is done for TCP connections; `None`: nothing.
    pub assist: Option<AssistStatus>,
    /// What was counted. Names are of small letters and dashes: `messages-received`, `dropped-malformed`,
    /// `denied-133`, `packets-not-ours`.
    pub counters: AgentCounters,
    /// Mobile node: the latest handovers, the oldest first.
    pub handovers: Vec<HandoverStatus>,
    /// Of a part of a status: the home address with which the next part begins. Bindings, visitors and tunnels are those of the
    /// mobile nodes before it. `None`: this is the last part.
    pub next: Option<IpAddr>,
}

/// What an agent is doing in sums: the time it takes to make one does not grow with bindings or visitors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Overview {
    pub(crate) role: Role,
    pub(crate) uptime_s: f64,
    pub(crate) interfaces: Vec<InterfaceStatus>,
    pub(crate) missing_addresses: usize,
    pub(crate) host_changes_pending: usize,
    pub(crate) bindings: usize,
    pub(crate) store: Option<StoreStatus>,
    pub(crate) visitors: usize,
    pub(crate) registration: Option<RegistrationStatus>,
    /// All tunnels; none when they are of too many mobile nodes.
    pub(crate) tunnels: Vec<TunnelStatus>,
    /// Those over several paths, as well.
    pub(crate) multipath: Vec<MultipathStatus>,
    pub(crate) cluster: Option<ClusterStatus>,
    pub(crate) relay: Option<RelayStatus>,
    /// Datagrams put into tunnels, and their bytes.
    pub(crate) put_in: (u64, u64),
    /// Datagrams taken out of tunnels, and their bytes.
    pub(crate) taken_out: (u64, u64),
    pub(crate) assist: Option<AssistOverview>,
    pub(crate) counters: AgentCounters,
}

/// What assists do, in sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AssistOverview {
    pub(crate) flows: usize,
    pub(crate) stored_packets: usize,
    pub(crate) stored_bytes: u64,
}
