//! The books of a run: what was seen and told, put in order of time, becomes the trace, the capture and the
//! measurements.
//!
//! Sightings of packets, samples of the kernel's TCP and what agents and applications tell come from several threads.
//! They wait here until nothing earlier can come any more.

mod agents;
mod connection;
mod datagram;
mod datagrams;
mod packets;
mod subflow;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use careof_agent::{AssistEvent, AssistNews, PacketDeed};
use careof_assist::{HoleNews, PathId};
use careof_base::{Duration, Instant};
use careof_lab::TcpInfo;
use careof_lab::told_congestion::{Deed, Did, News};
use careof_metrics::{
    AssistDeed, BlackHoles, FlowMetrics, Handover, Journeys, MOST_DELAYS, NewPath, ProbeSummary,
    RoamingMetrics, SegmentRange, TcpSummary, Transmission, VideoSummary,
};
use careof_plan::{
    Captures, Digest, NodeId, OneWayId, Player, Side, Topology, call, note_hole, stall_threshold,
};
use careof_quic::StreamRange;
use careof_scenario::{Role, Scenario, Voice};
use careof_trace::{AssistRecord, Event, EventLog, FlowId as TraceFlow, NodeId as TraceNode, TcpState};
use careof_wire::SeqNumber;

use crate::domain::DomainEvent;
use crate::report::{AgentEvent, ApplicationEvent, QuicEvent, VoiceEvent};
use connection::{Connection, ConnectionEnd, PendingTimeout, Stretch};
use datagram::Reassembler;
use datagrams::Datagrams;
use packets::Seen;
pub(crate) use packets::{HANDOVER, NO_BUFFER, UNDELIVERABLE};
use subflow::{DataSpace, Subflow};

/// How long records wait for earlier ones: longer than any thread of the run is usually late.
pub(crate) const HOLD: Duration = Duration::from_millis(40);

/// Of how many packets of QUIC it is remembered what they carried: as many as metrics remember transmissions.
const REMEMBERED: usize = 16_384;

/// Something to be entered at its time.
#[derive(Debug)]
pub(crate) enum Record {
    /// A packet was seen at an end of a link.
    Seen(Box<Seen>),
    /// An agent told something.
    Agent { node: NodeId, event: Box<AgentEvent> },
    /// A path of several went out, or came back.
    PathNews { node: NodeId, phase: &'static str, way: Option<OneWayId>, text: &'static str },
    /// A datagram came out of a tunnel over several paths in its turn.
    PassedOn { node: NodeId, datagram: Arc<[u8]> },
    /// A sender did something that was told of a handover.
    Told(Deed),
    /// A router or a mobile node of a domain told something.
    Domain { node: NodeId, event: DomainEvent },
    /// A mobile node in a domain leaves its base station.
    Leaves { node: NodeId },
    /// That is announced.
    MoveAnnounced { node: NodeId, text: String },
    /// The path of the mobile node in a domain carries packets both ways.
    WayReady,
    /// An agent's assists did something.
    Assist { node: NodeId, event: AssistEvent },
    /// A handover was announced: what is said about it, where it leads.
    Announced { text: String, way: OneWayId },
    /// A handover of a mobile node begins. They are counted as the topology counts them.
    Handover { mobile: usize, handover: Handover },
    /// Whether any path of a mobile node can carry packets.
    Path { mobile: usize, usable: bool },
    /// The new path of a mobile node's handover is ready.
    Ready { mobile: usize, path: Box<NewPath> },
    /// An application told something.
    Application { flow: usize, event: ApplicationEvent },
    /// The relay did something for a flow.
    Relay { flow: usize, what: &'static str, bytes: u64 },
    /// What a connection's TCP holds.
    Sample { connection: usize, side: Side, info: Box<TcpInfo> },
    /// A connection's timer ran out before `until`.
    Timeouts { connection: usize, side: Side, until: Instant, count: u32, info: Box<TcpInfo> },
}

/// One direction of data that is measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) kind: &'static str,
    pub(crate) tcp: TcpSummary,
}

/// A flow as the books know it.
#[derive(Debug)]
pub(crate) struct BookedFlow {
    pub(crate) name: String,
    /// Opener and acceptor.
    pub(crate) nodes: [NodeId; 2],
    pub(crate) kind: &'static str,
    pub(crate) tcp: TcpSummary,
    /// Its programs open connections of which nothing is known before they are seen.
    pub(crate) is_open_ended: bool,
    /// It is carried by Multipath TCP, of whose subflows the same is true.
    pub(crate) multipath: Option<Multipath>,
    /// Connections or subflows seen of such a flow.
    pub(crate) connections: usize,
}

/// By what the subflows of a flow are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multipath {
    /// Who opens them.
    pub(crate) client: Side,
    /// The port that they are opened to.
    pub(crate) server_port: u16,
}

/// What the next look at the kernel's TCP should be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewConnection {
    pub(crate) connection: usize,
    pub(crate) side: Side,
    pub(crate) node: NodeId,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// What is counted of agents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registrations {
    pub(crate) sent: u64,
    pub(crate) accepted: u64,
    pub(crate) denied: u64,
}

/// See the module.
pub(crate) struct Books {
    pub(crate) topology: Arc<Topology>,
    pub(crate) log: EventLog,
    pub(crate) capture: Option<Captures>,
    pub(crate) digest: Digest,
    /// `gsm.down`, `gsm.up`, ...
    ways: Vec<String>,
    /// Links of the mobile node, by number.
    mobile_nodes: BTreeSet<u32>,
    /// Addresses of each node.
    own: Vec<Vec<IpAddr>>,
    flows: Vec<BookedFlow>,
    /// Where the relay is, if there is one.
    relay: Option<NodeId>,
    connections: Vec<Connection>,
    /// By what is measured: what was sent over the subflows of Multipath TCP.
    data_spaces: BTreeMap<usize, DataSpace>,
    /// Connections and senders by source and destination port.
    by_ports: BTreeMap<(u16, u16), Vec<(usize, Side)>>,
    /// By connection of a program: the sequence number of its SYN, which tells it from a later one with the same ports.
    initial: BTreeMap<usize, SeqNumber>,
    /// Connections of programs whose acceptor has answered.
    answered: BTreeSet<usize>,
    pub(crate) measured: Vec<Measured>,
    pub(crate) flow_metrics: Vec<FlowMetrics>,
    /// By what is measured and packet number: what packets of QUIC carried, in their order.
    quic_sent: BTreeMap<(usize, u32), Vec<Transmission>>,
    /// By flow: the players of films as they were last.
    players: BTreeMap<usize, Player>,
    /// The shortest silence that is a stall.
    pub(crate) stall_threshold: Duration,
    pub(crate) handovers: Journeys,
    /// Of the mobile node in a domain.
    pub(crate) roaming: Option<RoamingMetrics>,
    pub(crate) registrations: Registrations,
    pub(crate) probes: Vec<ProbeSummary>,
    /// What is noted of tunnels that swallow large packets.
    pub(crate) black_holes: BlackHoles,
    /// Whether a datagram may be seen after it arrived: the home agent, or a router of a domain, sends copies.
    copies: bool,
    datagrams: Datagrams,
    reassemblers: BTreeMap<(u16, bool), Reassembler>,
    transmissions: BTreeMap<u64, Transmission>,
    /// Connections that were seen to open and nobody looks into yet.
    pub(crate) discovered: Vec<NewConnection>,
    pub(crate) sightings: u64,
    pending: Vec<(Instant, Record)>,
    /// Everything before this was entered.
    settled: Instant,
}

impl Books {
    /// Empty books.
    pub(crate) fn new(
        scenario: &Scenario,
        topology: Arc<Topology>,
        log: EventLog,
        capture: Option<Captures>,
    ) -> Self {
        let ways = scenario
            .links
            .iter()
            .flat_map(|link| [format!("{}.down", link.name), format!("{}.up", link.name)])
            .collect();
        let own = topology
            .places
            .iter()
            .zip(0..)
            .map(|(place, node)| {
                let of_links = place.interfaces.iter().map(|interface| interface.address);
                let as_agent = topology.homes.at(NodeId(node)).map(|home| home.agent_address);
                let as_anchor_point =
                    topology.anchor_points.iter().filter(|place| place.node == NodeId(node));
                let as_anchor_point = as_anchor_point.map(|place| place.address());
                let of_cell = place.cell.map(|cell| cell.address);
                let own =
                    of_links.chain(of_cell).chain(topology.homes.address_of(NodeId(node))).chain(as_agent);
                let own = own.chain(as_anchor_point);
                own.map(|own| topology.address(own)).collect()
            })
            .collect();
        let is_mobile_nodes = |link: &u32| {
            let ends = [2 * link, 2 * link + 1].map(|way| topology.entrance(OneWayId(way)));
            ends.iter().any(|end| topology.place(*end).role == Role::Mobile)
        };
        let mobile_nodes = (0..scenario.links.len() as u32).filter(is_mobile_nodes).collect();
        let handovers = Journeys::new(topology.homes.mobile_nodes().count());
        let mobility = scenario.mobility.as_ref();
        let copies = mobility
            .is_some_and(|mobility| mobility.simultaneous_bindings || mobility.micro_mobility.is_some());
        let fleet = mobility.and_then(|mobility| mobility.fleet.as_ref());
        Self {
            topology,
            log,
            capture,
            digest: Digest::new(),
            ways,
            mobile_nodes,
            own,
            flows: Vec::new(),
            relay: None,
            connections: Vec::new(),
            data_spaces: BTreeMap::new(),
            by_ports: BTreeMap::new(),
            initial: BTreeMap::new(),
            answered: BTreeSet::new(),
            measured: Vec::new(),
            flow_metrics: Vec::new(),
            quic_sent: BTreeMap::new(),
            players: BTreeMap::new(),
            stall_threshold: stall_threshold(scenario),
            handovers,
            roaming: fleet.map(|fleet| RoamingMetrics::new(fleet.count, fleet.stations.len())),
            registrations: Registrations::default(),
            probes: Vec::new(),
            black_holes: BlackHoles::new(),
            copies,
            datagrams: Datagrams::default(),
            reassemblers: BTreeMap::new(),
            transmissions: BTreeMap::new(),
            discovered: Vec::new(),
            sightings: 0,
            pending: Vec::new(),
            settled: Instant::ZERO,
        }
    }

    /// Adds a flow, in the order of the scenario.
    pub(crate) fn add_flow(&mut self, flow: BookedFlow) {
        self.flows.push(flow);
    }

    /// Adds a connection of a flow, between `ports` at its nodes; `measured` are the senders of data and their names.
    pub(crate) fn add_connection(
        &mut self,
        flow: usize,
        ports: [u16; 2],
        measured: &[(Side, String)],
    ) -> usize {
        let nodes = self.flows[flow].nodes;
        let ends = Side::BOTH.map(|side| ConnectionEnd::new(nodes[side.index()]));
        let id = self.open_connection(flow, ports, Stretch::Whole, ends);
        for (side, name) in measured {
            self.measure(id, *side, name.clone());
        }
        id
    }

    /// Adds the two connections of a flow that a relay at `relay` makes of one: by side that of the end there. What is
    /// measured of a sender is its own connection, and what the other end's application gets.
    pub(crate) fn add_split_connections(
        &mut self,
        flow: usize,
        relay: NodeId,
        ports: [u16; 2],
        measured: &[(Side, String)],
    ) -> [usize; 2] {
        self.relay = Some(relay);
        let nodes = self.flows[flow].nodes;
        let ids = Side::BOTH.map(|own| {
            let moves = self.topology.homes.index(nodes[own.index()]).is_some();
            let stretch = if moves { Stretch::Mobile } else { Stretch::Fixed };
            let ends = Side::BOTH.map(|side| {
                let node = nodes[side.index()];
                ConnectionEnd::speaking_for(node, if side == own { node } else { relay })
            });
            self.open_connection(flow, ports, stretch, ends)
        });
        for (side, name) in measured {
            self.measure(ids[side.index()], *side, name.clone());
        }
        ids
    }

    /// The flow of this connection is voice: its packets are told of one by one.
    pub(crate) fn follow_voice(&mut self, connection: usize, voice: &Voice) {
        let ends = self.connections.get(connection).into_iter().flat_map(|connection| &connection.ends);
        for index in ends.filter_map(|end| end.measured).collect::<Vec<_>>() {
            let metrics = std::mem::take(&mut self.flow_metrics[index]);
            self.flow_metrics[index] = metrics.with_voice(call(voice));
        }
    }

    /// Adds the connection of a flow over Multipath TCP, whose subflows will be seen.
    pub(crate) fn add_multipath_connection(&mut self, flow: usize, measured: &[(Side, String)]) {
        let ends = self.flows[flow].nodes.map(ConnectionEnd::new);
        let id = self.connections.len();
        self.connections.push(Connection {
            stretch: Stretch::Whole,
            flow: flow as u16,
            traced_as: flow as u16,
            ends,
            client: Side::Opener,
            subflow: None,
        });
        for (side, name) in measured {
            self.measure(id, *side, name.clone());
        }
    }

    /// Adds a subflow that `client` opens, between `addresses` and `ports` of opener and acceptor.
    fn add_subflow(&mut self, flow: usize, client: Side, addresses: [IpAddr; 2], ports: [u16; 2]) -> usize {
        let measured = Side::BOTH.map(|side| self.measured_sender(flow, side));
        let number = self.flows[flow].connections;
        let id = self.add_connection(flow, ports, &[]);
        self.flows[flow].connections += 1;
        let connection = &mut self.connections[id];
        connection.client = client;
        connection.subflow = Some(Subflow::new(u16::try_from(number).unwrap_or(u16::MAX), addresses));
        for (end, measured) in connection.ends.iter_mut().zip(measured) {
            end.measured = measured;
        }
        id
    }

    /// Where an end of a connection is that is to be looked into.
    pub(crate) fn node_of(&self, connection: usize, side: Side) -> Option<NodeId> {
        let connection = self.connections.get(connection).filter(|connection| connection.is_traced(side))?;
        Some(connection.ends[side.index()].node)
    }

    fn open_connection(
        &mut self,
        flow: usize,
        ports: [u16; 2],
        stretch: Stretch,
        ends: [ConnectionEnd; 2],
    ) -> usize {
        let id = self.connections.len();
        let traced_as = self.name_in_trace(flow);
        let (client, subflow) = (Side::Opener, None);
        self.connections.push(Connection { stretch, flow: flow as u16, traced_as, ends, client, subflow });
        for side in Side::BOTH {
            let key = (ports[side.index()], ports[side.peer().index()]);
            // The latest first: it is the one that lives.
            self.by_ports.entry(key).or_default().insert(0, (id, side));
        }
        id
    }

    /// The trace's number for the next connection of a flow. A program may open several, and Multipath TCP has several subflows, each with
    /// sequence numbers of its own, so each has a name of its own: `web.2`.
    fn name_in_trace(&mut self, flow: usize) -> u16 {
        if !self.flows[flow].is_open_ended && self.flows[flow].multipath.is_none() {
            return flow as u16;
        }
        let name = format!("{}.{}", self.flows[flow].name, self.flows[flow].connections + 1);
        let names = &mut self.log.names_mut().flows;
        let number = u16::try_from(names.len()).unwrap_or(flow as u16);
        if usize::from(number) == names.len() {
            names.push(name);
        }
        number
    }

    fn measure(&mut self, connection: usize, side: Side, name: String) -> usize {
        let flow = usize::from(self.connections[connection].flow);
        let nodes = self.flows[flow].nodes;
        let (from, to) = (nodes[side.index()], nodes[side.peer().index()]);
        let index = self.flow_metrics.len();
        let homes = &self.topology.homes;
        self.handovers.add_flow(&name, homes.index(from), homes.index(to));
        let metrics = FlowMetrics::with_stalls_from(self.stall_threshold);
        self.flow_metrics.push(if index < MOST_DELAYS { metrics.with_delays() } else { metrics });
        let BookedFlow { kind, tcp, .. } = &self.flows[flow];
        self.measured.push(Measured { name, from, to, kind, tcp: tcp.clone() });
        self.connections[connection].ends[side.index()].measured = Some(index);
        index
    }

    /// Puts something in its place among what is to be entered.
    pub(crate) fn note(&mut self, at: Instant, record: Record) {
        self.pending.push((at.max(self.settled), record));
    }

    /// Enters what happened before `until`.
    pub(crate) fn settle(&mut self, until: Instant) {
        self.pending.sort_by_key(|(at, _)| *at);
        let due = self.pending.partition_point(|(at, _)| *at < until);
        let rest = self.pending.split_off(due);
        for (at, record) in std::mem::replace(&mut self.pending, rest) {
            self.enter(at, record);
        }
        self.settled = self.settled.max(until);
        if let Some(capture) = &mut self.capture {
            capture.flush(self.settled);
        }
    }

    /// Enters what happened up to `end`, and nothing of what came behind.
    pub(crate) fn close(&mut self, end: Instant) {
        self.settle(end + Duration::from_nanos(1));
        self.pending.clear();
    }

    /// Up to when everything was entered.
    pub(crate) const fn settled(&self) -> Instant {
        self.settled
    }

    /// Packets on links, as the sightings have it.
    pub(crate) fn packets_on_links(&self) -> u64 {
        self.datagrams.on_links() as u64
    }

    fn enter(&mut self, at: Instant, record: Record) {
        match record {
            Record::Seen(seen) => self.enter_sighting(at, &seen),
            Record::Agent { node, event } => self.enter_agent_event(at, node, &event),
            Record::Assist { node, event } => self.enter_assist(at, node, &event),
            Record::Domain { node, event } => self.enter_domain_event(at, node, &event),
            Record::Leaves { node } => {
                if let Some(roaming) = &mut self.roaming {
                    roaming.on_handover(0, at);
                }
                self.note_handover(at, node, None, "initiated", "");
            }
            Record::MoveAnnounced { node, text } => {
                self.note_handover(at, node, None, "announced", &text);
            }
            Record::WayReady => {
                let carries = self.flow_metrics.iter().any(FlowMetrics::is_waited_for);
                if let Some(roaming) = &mut self.roaming {
                    roaming.on_ready(0, at, carries);
                }
            }
            Record::PathNews { node, phase, way, text } => {
                self.note_handover(at, node, way, phase, text);
            }
            Record::PassedOn { node, datagram } => self.enter_passed_on(at, node, &datagram),
            Record::Told(deed) => self.enter_deed(at, &deed),
            Record::Announced { text, way } => {
                let node = self.topology.entrance(way);
                self.note_handover(at, node, Some(way), "announced", &text);
            }
            Record::Handover { mobile, handover } => {
                self.handovers.on_handover(mobile, at, handover, &mut self.flow_metrics);
            }
            Record::Path { mobile, usable } => self.handovers.on_path(mobile, at, usable),
            Record::Ready { mobile, path } => self.handovers.on_ready(mobile, at, *path, &self.flow_metrics),
            Record::Application { flow, event } => self.enter_application_event(at, flow, event),
            Record::Relay { flow, what, bytes } => {
                if let Some(node) = self.relay {
                    let record = AssistRecord { assist: "split", what, packets: 0, bytes };
                    self.log.push(Event::assist(at, TraceNode(node.0), TraceFlow(flow as u16), record));
                }
            }
            Record::Sample { connection, side, info } => self.enter_sample(at, connection, side, &info),
            Record::Timeouts { connection, side, until, count, info } => {
                self.enter_timeouts(connection, side, until, count, &info);
            }
        }
    }

    /// The connection between two ends, and the side of the first of them.
    fn connection_between(&self, one: SocketAddr, other: SocketAddr) -> Option<(usize, Side)> {
        let is_of = |end: &ConnectionEnd, address: SocketAddr| {
            self.own[usize::from(end.node.0)].contains(&address.ip())
        };
        let known = self.by_ports.get(&(one.port(), other.port())).into_iter().flatten();
        known.copied().find(|(id, side)| {
            let ends = &self.connections[*id].ends;
            is_of(&ends[side.index()], one) && is_of(&ends[side.peer().index()], other)
        })
    }

    /// What a sender did that was told of a handover, and the window and threshold it then had.
    fn enter_deed(&mut self, at: Instant, deed: &Deed) {
        let Some((id, side)) = self.connection_between(deed.local, deed.remote) else { return };
        let connection = &mut self.connections[id];
        let flow = TraceFlow(connection.traced_as);
        let end = &mut connection.ends[side.index()];
        let (node, metrics) =
            (TraceNode(end.node.0), end.measured.map(|index| &mut self.flow_metrics[index]));
        let what = match deed.did {
            Did::Heard(news) => {
                if let Some(metrics) = metrics {
                    metrics.on_assist(AssistDeed::Advised);
                }
                match news {
                    News::PathReplaced => "replaced",
                    News::PathLost => "away",
                    News::PathBack => "resume",
                }
            }
            Did::Measured { bandwidth, .. } => {
                if let Some((metrics, bandwidth)) = metrics.zip(bandwidth) {
                    metrics.on_bandwidth_estimate(bandwidth);
                }
                "measured"
            }
            Did::Restored => "restored",
        };
        let record = AssistRecord { assist: "tcp-cm", what, packets: 0, bytes: 0 };
        self.log.push(Event::assist(at, node, flow, record));
        // Of the rest the last look tells.
        if let (Did::Measured { .. } | Did::Restored, Some(before)) = (deed.did, end.traced) {
            let bytes = |segments: u32| segments.saturating_mul(deed.mss);
            let threshold = deed.ssthresh_segments.map(bytes);
            let state =
                TcpState { cwnd_bytes: bytes(deed.cwnd_segments), ssthresh_bytes: threshold, ..before };
            end.traced = Some(state);
            self.log.push(Event::tcp_state(at, node, flow, state));
        }
    }

    /// What an assist did counts for the sender of the data concerned.
    fn enter_assist(&mut self, at: Instant, node: NodeId, event: &AssistEvent) {
        let Some((id, mobile)) = self.connection_between(event.mobile, event.peer) else { return };
        let connection = &self.connections[id];
        let measured = |side: Side| connection.ends[side.index()].measured;
        match event.news {
            AssistNews::Did { assist, what, packets, bytes } => {
                let record = AssistRecord { assist, what, packets, bytes };
                let flow = TraceFlow(connection.traced_as);
                self.log.push(Event::assist(at, TraceNode(node.0), flow, record));
            }
            AssistNews::Packet { to_mobile, deed } => {
                let sender = if to_mobile { mobile.peer() } else { mobile };
                if let Some(index) = measured(sender) {
                    self.flow_metrics[index].on_assist(match deed {
                        PacketDeed::Replayed => AssistDeed::Replayed,
                        PacketDeed::Held => AssistDeed::Held,
                        PacketDeed::Swallowed => AssistDeed::Swallowed,
                        PacketDeed::AckInjected => AssistDeed::AckInjected,
                        PacketDeed::UnreachableInjected => AssistDeed::UnreachableInjected,
                    });
                }
            }
            AssistNews::Hole { path, news } => {
                let flow = connection.ends.iter().find_map(|end| end.measured);
                let flow = flow.map_or_else(String::new, |index| self.measured[index].name.clone());
                self.enter_hole(at, node, &flow, path, news);
            }
            AssistNews::Stalled { after_path } => {
                // Of a connection with data both ways it is that of the data that is worth keeping there.
                let is_mobile = connection.ends[mobile.index()].node == node;
                let sender = if is_mobile { mobile } else { mobile.peer() };
                if let Some(index) = measured(sender).or(measured(sender.peer())) {
                    self.flow_metrics[index].on_assist_stall(after_path);
                }
            }
        }
    }

    /// What shows of a tunnel that swallows large packets.
    fn enter_hole(&mut self, at: Instant, node: NodeId, flow: &str, path: PathId, news: HoleNews) {
        let place = self.topology.place(node);
        let towards = match path {
            PathId::CareOf(care_of) => care_of.to_string(),
            PathId::Interface(interface) => {
                let way = self.way_of(node, interface);
                way.and_then(|way| self.ways.get(way.0 as usize).cloned())
                    .unwrap_or_else(|| interface.0.to_string())
            }
        };
        note_hole(&mut self.black_holes, at, (&place.name, towards), flow, news);
    }

    fn enter_application_event(&mut self, at: Instant, flow: usize, event: ApplicationEvent) {
        let Some(booked) = self.flows.get(flow) else { return };
        let trace_flow = TraceFlow(flow as u16);
        let node = |side: Side| TraceNode(booked.nodes[side.index()].0);
        match event {
            ApplicationEvent::Opening { text, .. } => {
                let detail = self.log.detail(format_args!("{text}"));
                self.log.push(Event::flow_start(at, node(Side::Opener), trace_flow, detail));
                for index in self.measured_of(flow) {
                    self.flow_metrics[index].on_start(at);
                }
            }
            ApplicationEvent::Wanted { totals } => {
                for (side, total) in Side::BOTH.into_iter().zip(totals) {
                    if let Some(index) = self.measured_sender(flow, side) {
                        self.flow_metrics[index].on_wanted(at, total);
                    }
                }
            }
            ApplicationEvent::Delivered { side, total } => {
                self.log.push(Event::data_delivered(at, node(side), trace_flow, total));
                if let Some(index) = self.measured_sender(flow, side.peer()) {
                    self.delivered(at, index, total);
                }
            }
            ApplicationEvent::PeerClosed { side, cut_short } => {
                if let Some(index) = self.measured_sender(flow, side.peer()).filter(|_| !cut_short) {
                    self.flow_metrics[index].on_complete();
                }
            }
            ApplicationEvent::Stopped => {
                for index in self.measured_of(flow) {
                    self.flow_metrics[index].on_stop(at);
                }
            }
            ApplicationEvent::Ended { side, how } => {
                let detail = self.log.detail(format_args!("{how}"));
                self.log.push(Event::flow_end(at, node(side), trace_flow, detail));
            }
            ApplicationEvent::Quic(event) => self.enter_quic(at, flow, event),
            ApplicationEvent::Watched(player) => self.enter_player(flow, *player),
            ApplicationEvent::Voice(VoiceEvent::Sent) => {
                if let Some(index) = self.measured_sender(flow, Side::Opener) {
                    self.flow_metrics[index].on_voice_sent(at);
                }
            }
            ApplicationEvent::Voice(VoiceEvent::Arrived { number, payload }) => {
                let Some(index) = self.measured_sender(flow, Side::Opener) else { return };
                let total = self.flow_metrics[index].on_voice_arrival(at, number) * u64::from(payload);
                if total > self.flow_metrics[index].counters().bytes_delivered {
                    self.log.push(Event::data_delivered(at, node(Side::Acceptor), trace_flow, total));
                    self.delivered(at, index, total);
                }
            }
            ApplicationEvent::ProgramEnded { which, how } => {
                let side = if which == "server" { Side::Acceptor } else { Side::Opener };
                let detail = self.log.detail(format_args!("{which}: {how}"));
                self.log.push(Event::flow_end(at, node(side), trace_flow, detail));
                if which == "command" {
                    for index in self.measured_of(flow) {
                        self.flow_metrics[index].on_stop(at);
                    }
                }
            }
        }
    }

    fn enter_quic(&mut self, at: Instant, flow: usize, event: QuicEvent) {
        let segment = |range: &StreamRange| SegmentRange::of_bytes(range.start, range.end);
        match event {
            QuicEvent::Sent { sender, number, data, left } => {
                let Some(index) = self.measured_sender(flow, sender) else { return };
                let metrics = &mut self.flow_metrics[index];
                let sent =
                    data.iter().map(|range| metrics.on_segment_sent(at, segment(range), range.start < left));
                self.quic_sent.insert((index, number), sent.collect());
                if self.quic_sent.len() > REMEMBERED {
                    self.quic_sent.pop_first();
                }
            }
            QuicEvent::Arrived { sender, number, data } => {
                let Some(index) = self.measured_sender(flow, sender) else { return };
                let sent = self.quic_sent.get(&(index, number));
                for (range, transmission) in data.iter().zip(sent.into_iter().flatten()) {
                    self.flow_metrics[index].on_segment_arrival(segment(range), *transmission);
                }
            }
            QuicEvent::RoundTrip { sender, rtt } => {
                if let Some(index) = self.measured_sender(flow, sender) {
                    self.flow_metrics[index].on_rtt_sample(rtt);
                }
            }
        }
    }

    /// The application of a measured direction of data has got `total` bytes.
    fn delivered(&mut self, at: Instant, index: usize, total: u64) {
        let before = self.flow_metrics[index].counters().bytes_delivered;
        if total > before {
            self.flow_metrics[index].on_delivered(at, total);
            self.handovers.on_delivered(at, index, total - before);
            if let Some(roaming) = &mut self.roaming {
                roaming.on_delivered(0, at);
            }
        }
    }

    /// The metrics of all directions of a flow's data.
    fn measured_of(&self, flow: usize) -> Vec<usize> {
        let own = self.connections.iter().filter(|connection| usize::from(connection.flow) == flow);
        let measured: BTreeSet<usize> =
            own.flat_map(|connection| &connection.ends).filter_map(|end| end.measured).collect();
        // Subflows are measured as one.
        measured.into_iter().collect()
    }

    fn measured_sender(&self, flow: usize, side: Side) -> Option<usize> {
        let mut own = self.connections.iter().filter(|connection| usize::from(connection.flow) == flow);
        own.find_map(|connection| connection.ends[side.index()].measured)
    }

    fn enter_sample(&mut self, at: Instant, connection: usize, side: Side, info: &TcpInfo) {
        let Some(connection) = self.connections.get_mut(connection) else { return };
        let state = tcp_state(info, side == connection.client);
        let flow = TraceFlow(connection.traced_as);
        let end = &mut connection.ends[side.index()];
        end.mss = Some(info.mss);
        let node = TraceNode(end.node.0);
        if let Some(timeout) = end.timeout.take_if(|timeout| timeout.until <= at) {
            // The timer ran out and its retransmission was not seen: the link to send it by is down.
            self.log.push(Event::timeout(timeout.until, node, flow, timeout.seq, timeout.state));
        }
        if end.traced != Some(state) {
            end.traced = Some(state);
            self.log.push(Event::tcp_state(at, node, flow, state));
        }
    }

    fn enter_timeouts(&mut self, connection: usize, side: Side, until: Instant, count: u32, info: &TcpInfo) {
        let Some(connection) = self.connections.get_mut(connection) else { return };
        let state = tcp_state(info, side == connection.client);
        let end = &mut connection.ends[side.index()];
        let seq = end.una;
        end.timeout = Some(PendingTimeout { until, seq, state });
        let Some(index) = end.measured else { return };
        let space = self.data_spaces.get(&index);
        let of_data =
            connection.subflow.as_ref().zip(space).map(|(subflow, space)| {
                subflow.locate(side, seq, space).unwrap_or_else(|| subflow.beside(seq))
            });
        for _ in 0..count {
            self.flow_metrics[index].on_timeout(of_data.unwrap_or(seq));
        }
    }

    /// How the player of a film is now.
    pub(crate) fn enter_player(&mut self, flow: usize, player: Player) {
        self.players.insert(flow, player);
    }

    /// What was seen of films in a run that ends at `end`.
    pub(crate) fn films(&self, end: Instant) -> Vec<VideoSummary> {
        let named =
            self.players.iter().filter_map(|(flow, player)| Some((&self.flows.get(*flow)?.name, player)));
        named.map(|(name, player)| player.summary(name, end)).collect()
    }

    /// The largest segments that the ends of a flow's first connection send, as far as that was looked at; with a relay
    /// those on the mobile node's side of it.
    pub(crate) fn mss(&self, flow: usize) -> Option<u32> {
        let mut own = self.connections.iter().filter(|connection| usize::from(connection.flow) == flow);
        // Of Multipath TCP the first is none of its subflows.
        own.find_map(|connection| {
            let is_mobile_nodes = connection.stretch != Stretch::Fixed;
            connection.ends.iter().filter_map(|end| end.mss.filter(|_| is_mobile_nodes)).min()
        })
    }
}

fn tcp_state(info: &TcpInfo, is_client: bool) -> TcpState {
    let bytes = |segments: u32| segments.saturating_mul(info.mss);
    // What was sent for the first time and not acknowledged. The client's SYN counts among what was; the server's
    // was acknowledged before there was a socket to count.
    let first_time = info.bytes_sent.saturating_sub(info.bytes_retrans);
    let syn = u64::from(is_client);
    let flight = first_time.saturating_sub(info.bytes_acked.saturating_sub(syn));
    TcpState {
        cwnd_bytes: bytes(info.cwnd_segments),
        ssthresh_bytes: info.ssthresh_segments.map(bytes),
        flight_bytes: u32::try_from(flight).unwrap_or(u32::MAX),
        srtt: info.srtt,
        rttvar: info.srtt.map(|_| info.rttvar),
        rto: Some(info.rto),
    }
}
