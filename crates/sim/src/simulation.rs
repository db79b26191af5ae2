//! The world: virtual time, and everything that happens in it.

use std::collections::BTreeMap;

use careof_base::{Duration, Instant, RandomStream};
use careof_link::{Link, Output};
use careof_metrics::{BlackHoles, FlowMetrics};
use careof_mobility::path_mtu::PathMtu;
use careof_plan::{
    Digest, FlowId, InterfaceIndex, Locator, NodeId, OneWayId, Place, Route, Side, Topology, Unsupported,
    note_filtered,
};
use careof_scenario::Scenario;
use careof_wire::icmp::is_error;
use careof_wire::mip4::PathCounts;
use careof_wire::protocol;

use crate::advice::Senders;
use crate::agents::Agent;
use crate::assists::Anchor;
use crate::bytes::PacketBytes;
use crate::cluster::Cluster;
use crate::dhcp::DhcpHost;
use crate::drop_cause::{Cause, NodeDrop};
use crate::fleet::Fleet;
use crate::flow::Flow;
use crate::handover::Script;
use crate::ledger::Ledger;
use crate::media::{OnMedium, SharedMedium};
use crate::micro::Domain;
use crate::multipath::Multipath;
use crate::observer::Observer;
use crate::packet::{Body, Packet, PacketPool, PacketRef};
use crate::queue::{EventQueue, Slot};
use crate::reassembly::Reassembly;
use crate::relay::Relays;

/// What a queue slot belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Component {
    /// The next delivery of a one-way link.
    Link(OneWayId),
    /// What happens on a medium that links share.
    Medium(u16),
    /// A timer of a TCP endpoint.
    Connection(FlowId, Side),
    /// A timer of an endpoint of QUIC.
    Quic(FlowId, Side),
    /// A flow's start, next message or stop.
    Flow(FlowId),
    /// A timer of a mobility agent.
    Agent(NodeId),
    /// A timer of the DHCP clients and servers on a node.
    Dhcp(NodeId),
    /// A timer of the assists on a node.
    Assist(NodeId),
    /// A timer of the half of a relay that talks to this side.
    Relay(FlowId, Side),
    /// A base station tells senders of its link.
    Station(NodeId),
    /// A reassembly time-out.
    Reassembly(NodeId),
    /// A timer of an end of a tunnel over several paths, by its place.
    Multipath(u8),
    /// A timer of a relay or its client.
    Alliance(u8),
    /// The next step of the handover script.
    Script,
    /// One of many mobile nodes leaves its station or arrives at the next one.
    Roamer(u32),
    /// A timer of micro-mobility on a router of a domain, or on a mobile node in it.
    Domain(NodeId),
}

/// One direction of a link, and where it leads.
pub(crate) struct OneWay {
    /// On a medium, what stands for it in what is asked of links.
    pub(crate) link: Link<PacketRef>,
    /// Its place on the medium that it is on.
    pub(crate) medium: Option<Box<OnMedium>>,
    /// ICMP errors are dropped at its entrance.
    pub(crate) filters_icmp: bool,
    pub(crate) name: String,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The interface packets arrive by.
    pub(crate) to_interface: InterfaceIndex,
    pub(crate) slot: Slot,
    /// The longest queue seen: most packets, most bytes.
    pub(crate) longest_queue: (usize, u64),
}

impl OneWay {
    /// Sees to it that the link is looked after, once it has been offered a packet.
    #[inline(always)]
    fn look_after(&mut self, queue: &mut EventQueue) {
        let (packets, bytes) = self.link.queue_len();
        if packets > 0 {
            self.longest_queue = (self.longest_queue.0.max(packets), self.longest_queue.1.max(bytes));
        }
        if !self.link.is_behind_others() {
            self.arm(queue);
        }
    }

    /// Sees to it that the link is looked after when something happens.
    fn arm(&mut self, queue: &mut EventQueue) {
        queue.set(self.slot, self.link.next_timeout());
    }
}

/// A node: its place in the network and what runs on it.
pub(crate) struct Node {
    pub(crate) place: Place,
    /// Of a mobile node.
    pub(crate) home_address: Option<Locator>,
    pub(crate) agent: Agent,
    pub(crate) agent_slot: Slot,
    /// The DHCP clients and servers here.
    pub(crate) dhcp: Option<Box<DhcpHost>>,
    /// The assists that run here.
    pub(crate) assist: Option<Box<Anchor>>,
    pub(crate) reassembly: Reassembly,
    pub(crate) reassembly_slot: Slot,
    /// By subnet, where it forwards: its own address there, and the way out.
    pub(crate) next_ways: Vec<(Locator, OneWayId)>,
    identification: u16,
}

impl Node {
    /// The way by which a router passes a packet on as the routes say; `None` where it has to look closer.
    #[inline]
    pub(crate) fn next_way(&self, destination: Locator) -> Option<OneWayId> {
        let (own, way) = *self.next_ways.get(destination.network())?;
        let is_on = way != NO_WAY && own != destination && self.agent.leaves_to_routes(destination);
        is_on.then_some(way)
    }

    /// A fresh IP identification.
    #[inline]
    pub(crate) fn next_identification(&mut self) -> u16 {
        self.identification = self.identification.wrapping_add(1);
        self.identification
    }

    /// Resolves its routes once, if it forwards and nothing on it looks at what passes.
    pub(crate) fn resolve_routes(&mut self) {
        if self.place.forwards && self.assist.is_none() {
            let place = &self.place;
            let way = |(own, route): (Locator, Route)| match route {
                Route::Via(interface) => (own, place.interface(interface).out),
                _ => (own, NO_WAY),
            };
            self.next_ways = place.routes().map(way).collect();
        }
    }
}

const NO_WAY: OneWayId = OneWayId(u32::MAX);

/// Something the simulator cannot do, or that went wrong in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// The scenario asks for something this world does not have.
    #[error("{key}: {found} cannot be simulated; {remedy}")]
    Unsupported {
        /// The scenario's key.
        key: String,
        /// Its value.
        found: String,
        /// What would be right.
        remedy: String,
    },
    /// A mobility agent refuses its configuration.
    #[error("mobility: {0}")]
    Agent(String),
    /// The assists of a node contradict each other.
    #[error("assist: {0}")]
    Assist(String),
    /// The capture could not be begun.
    #[error("the capture cannot be written: {0}")]
    Capture(String),
    /// Events without end at one instant.
    #[error("the simulation stands still at {at}: more than {events} events at one instant")]
    NoProgress {
        /// When.
        at: Instant,
        /// How many events there were.
        events: u64,
    },
}

impl From<Unsupported> for WorldError {
    fn from(Unsupported { key, found, remedy }: Unsupported) -> Self {
        Self::Unsupported { key, found, remedy }
    }
}

/// No honest model needs this many events at one instant; it is a loop.
const MAX_EVENTS_AT_ONE_INSTANT: u64 = 10_000_000;

/// A scenario being simulated.
///
/// [`Simulation::advance`] runs it up to an instant, as often as the owner likes; how the run is cut into
/// pieces does not change it. [`Simulation::finish`] ends it and draws up the summary.
pub struct Simulation {
    pub(crate) now: Instant,
    pub(crate) end: Instant,
    pub(crate) queue: EventQueue,
    pub(crate) components: Vec<Component>,
    pub(crate) links: Vec<OneWay>,
    /// Those that links share.
    pub(crate) media: Vec<SharedMedium>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pool: PacketPool,
    pub(crate) flows: Vec<Flow>,
    /// Those over QUIC whose mobile node's address changes with its link.
    pub(crate) migrating: Vec<FlowId>,
    pub(crate) script: Script,
    pub(crate) ledger: Ledger,
    pub(crate) digest: Digest,
    /// What is measured: one entry a flow and direction of data, see [`Flow::measured`].
    pub(crate) flow_metrics: Vec<FlowMetrics>,
    pub(crate) observer: Observer,
    pub(crate) bytes: PacketBytes,
    /// Bytes of an IP header without extension headers: all of a run are of one version.
    pub(crate) ip_header_len: u8,
    /// Whether mobile nodes leave room for their tunnels.
    pub(crate) leaves_room: bool,
    /// What home agents have put into tunnels and taken out, by node, home address and care-of address, where somebody asks.
    pub(crate) passed_at_home: Option<BTreeMap<(NodeId, Locator, Locator), PathCounts>>,
    /// What the entries of tunnels know of their paths, by node and tunnel's exit: soft state (RFC 2003 section 5).
    pub(crate) tunnel_mtus: BTreeMap<(NodeId, Locator), PathMtu>,
    /// What is noted of tunnels that swallow large packets.
    pub(crate) black_holes: BlackHoles,
    /// Signalling datagrams no node could read.
    pub(crate) malformed_messages: u64,
    /// Registration requests the mobile node sent.
    pub(crate) registration_requests: u64,
    /// Whether a node resolves its neighbors and watches whether they are there.
    pub(crate) watches_neighbors: bool,
    /// Where senders are told of handovers: who tells them.
    pub(crate) senders: Option<Box<Senders>>,
    /// Where connections are split: what stands between their ends.
    pub(crate) relays: Option<Box<Relays>>,
    /// Where many move: what moves them.
    pub(crate) fleet: Option<Box<Fleet>>,
    /// Where they move in a domain of micro-mobility: its routers, and what of them is in the mobile nodes.
    pub(crate) micro: Option<Box<Domain>>,
    /// Where a mobile node has several links at once: both ends of its tunnel.
    pub(crate) multipath: Option<Box<Multipath>>,
    /// Nodes that lend the mobile node their links.
    pub(crate) cluster: Option<Box<Cluster>>,
    /// The static part of the nodes and what lies between them.
    pub(crate) topology: Topology,
    pub(crate) scenario_file: String,
    pub(crate) events: u64,
    pub(crate) scenario: Scenario,
    pub(crate) run: u64,
}

impl Simulation {
    /// Runs until `until` or the end of the scenario, whichever is earlier, and returns the instant reached.
    ///
    /// # Errors
    /// [`WorldError::NoProgress`] when time stands still.
    pub fn advance(&mut self, until: Instant) -> Result<Instant, WorldError> {
        let until = until.min(self.end);
        let mut events_now = 0;
        while let Some((at, slot)) = self.queue.pop_until(until) {
            if at > self.now {
                self.now = at;
                events_now = 0;
            }
            events_now += 1;
            if events_now > MAX_EVENTS_AT_ONE_INSTANT {
                return Err(WorldError::NoProgress { at, events: events_now });
            }
            self.events += 1;
            match self.components[slot.0 as usize] {
                Component::Link(id) => self.link_due(id),
                other => self.wake(other),
            }
        }
        self.now = self.now.max(until);
        Ok(self.now)
    }

    /// The deadline of a component other than a link has come.
    #[inline(never)]
    fn wake(&mut self, component: Component) {
        match component {
            Component::Link(id) => self.link_timeout(id),
            Component::Medium(index) => self.medium_timeout(index),
            Component::Connection(flow, side) => self.connection_timeout(flow, side),
            Component::Quic(flow, side) => self.quic_timeout(flow, side),
            Component::Flow(flow) => self.flow_timeout(flow),
            Component::Agent(node) => self.agent_timeout(node),
            Component::Dhcp(node) => self.dhcp_timeout(node),
            Component::Assist(node) => self.assist_timeout(node),
            Component::Relay(flow, side) => self.relay_timeout(flow, side),
            Component::Station(node) => self.station_timeout(node),
            Component::Reassembly(node) => self.reassembly_timeout(node),
            Component::Multipath(place) => self.multipath_timeout(usize::from(place)),
            Component::Alliance(index) => self.alliance_timeout(usize::from(index)),
            Component::Script => self.script_timeout(),
            Component::Roamer(mobile) => self.roamer_timeout(mobile as usize),
            Component::Domain(node) => self.domain_timeout(node),
        }
    }

    /// How long the scenario runs.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end.since_start()
    }

    /// Packets times links crossed, so far.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|way| way.counters().delivered).sum()
    }

    /// Events handled so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Registers a component for timers.
    pub(crate) fn add_component(&mut self, component: Component) -> Slot {
        self.components.push(component);
        self.queue.add_slot()
    }

    /// The random stream of a component.
    pub(crate) fn stream(&self, name: &str) -> RandomStream {
        RandomStream::new(self.scenario.seed, self.run, name)
    }

    /// The node with this id.
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id.0)]
    }

    /// The node with this id.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(id.0)]
    }

    /// A fresh IP identification.
    pub(crate) fn next_identification(&mut self, node: NodeId) -> u16 {
        self.node_mut(node).next_identification()
    }

    /// Stores a packet.
    #[inline(always)]
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketRef {
        self.pool.insert(packet)
    }

    /// Gives a packet's place back.
    pub(crate) fn release(&mut self, packet: PacketRef) {
        self.pool.release(packet);
    }

    /// Offers a packet to a one-way link.
    #[inline(always)]
    pub(crate) fn offer(&mut self, id: OneWayId, packet: PacketRef, size: u32) {
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        if way.medium.is_some() {
            return self.offer_on_medium(id, packet, size);
        }
        if way.filters_icmp && self.is_filtered(id, packet) {
            return;
        }
        let way = &mut self.links[id.0 as usize];
        let outcome = if way.link.marks() && self.pool[packet].outermost().is_ecn_capable() {
            way.link.enqueue_ecn_capable(now, packet, size)
        } else {
            way.link.enqueue(now, packet, size)
        };
        way.look_after(&mut self.queue);
        match outcome {
            Ok(()) => self.observe_enqueued(id, packet),
            Err(cause) => self.drop_on_link(id, packet, Cause::Link(cause), false),
        }
    }

    /// Whether a packet is an ICMP error, outside of any tunnel, which the link then drops.
    #[cold]
    fn is_filtered(&mut self, id: OneWayId, packet: PacketRef) -> bool {
        let Packet { header, outer: None, body: Body::Message(bytes), .. } = &self.pool[packet] else {
            return false;
        };
        let is_error = header.protocol == protocol::ICMP
            && header.fragment_offset == 0
            && bytes.first().is_some_and(|kind| is_error(*kind));
        if !is_error {
            return false;
        }
        note_filtered(&mut self.black_holes, self.now, &self.links[id.0 as usize].name, bytes);
        let way = &mut self.links[id.0 as usize];
        let cause = way.link.refuse_filtered(self.now, self.pool.hop(packet).size);
        way.look_after(&mut self.queue);
        self.drop_on_link(id, packet, Cause::Link(cause), false);
        true
    }

    /// The deadline of a one-way link has come: packets arrive or are lost. The commonest event by far, one packet that
    /// arrives and nothing else, takes a short path.
    #[inline(always)]
    fn link_due(&mut self, id: OneWayId) {
        let now = self.now;
        if self.is_observed() {
            return self.link_timeout(id);
        }
        let way = &mut self.links[id.0 as usize];
        let Some((packet, mut next)) = way.link.take_arrival(now) else { return self.link_timeout(id) };
        let (to, interface, slot) = (way.to, way.to_interface, way.slot);
        let hop = self.pool.hop_mut(packet);
        self.digest.packet(now, id.0, hop.id, hop.size, hop.content);
        match self.nodes[usize::from(to.0)].next_way(hop.destination) {
            Some(out) if hop.ttl > 1 => {
                hop.ttl -= 1;
                let size = hop.size;
                self.transmit_sized(to, out, packet, size);
            }
            Some(_) => self.drop_packet(to, packet, NodeDrop::TtlExpired),
            None => {
                self.look_closer(to, interface, packet);
                // What became of the packet may have changed the link.
                next = self.links[id.0 as usize].link.next_timeout().unwrap_or(Instant::MAX);
            }
        }
        if next <= now {
            return self.link_timeout(id);
        }
        self.queue.set_at(slot, next);
    }

    /// Something may be due on a one-way link: packets arrive or are lost.
    #[inline(never)]
    pub(crate) fn link_timeout(&mut self, id: OneWayId) {
        let now = self.now;
        loop {
            let way = &mut self.links[id.0 as usize];
            match way.link.poll(now) {
                Some(Output::Delivered { packet, marked, .. }) => {
                    let (to, interface) = (way.to, way.to_interface);
                    if marked {
                        self.pool[packet].outermost_mut().mark_congestion();
                    }
                    let hop = self.pool.hop(packet);
                    self.digest.packet(now, id.0, hop.id, hop.size, hop.content);
                    self.observe_delivered(id, packet);
                    self.arrive(to, interface, packet);
                }
                Some(Output::Dropped { packet, cause, .. }) => {
                    self.drop_on_link(id, packet, Cause::Link(cause), true);
                }
                None => break,
            }
            // Mostly one packet arrives at a time, and asking when the next one does is cheaper than polling.
            let way = &mut self.links[id.0 as usize];
            if way.link.next_timeout().is_none_or(|next| next > now) {
                break;
            }
        }
        let way = &mut self.links[id.0 as usize];
        way.arm(&mut self.queue);
    }

    /// Takes a packet out that a link dropped: `late` when it had been accepted before.
    #[inline(never)]
    pub(crate) fn drop_on_link(&mut self, id: OneWayId, packet: PacketRef, cause: Cause, late: bool) {
        self.digest.drop(self.now, self.pool.hop(packet).id, cause.name());
        self.observe_link_drop(id, packet, cause, late);
        if self.senders.is_some() {
            self.transmission_failed(id, packet, cause);
        }
        self.release(packet);
    }

    fn reassembly_timeout(&mut self, node: NodeId) {
        let now = self.now;
        let mut expired = Vec::new();
        self.node_mut(node).reassembly.expire(now, &mut expired);
        for fragment in expired {
            self.drop_packet(node, fragment, NodeDrop::ReassemblyTimeout);
        }
        let (slot, deadline) = (self.node(node).reassembly_slot, self.node(node).reassembly.next_timeout());
        self.queue.set(slot, deadline);
    }

    /// A node at its place, with nothing on it yet.
    pub(crate) fn bare_node(&mut self, place: Place) -> Node {
        let id = NodeId(self.nodes.len() as u16);
        Node {
            place,
            home_address: self.topology.homes.address_of(id),
            agent: Agent::None,
            agent_slot: self.add_component(Component::Agent(id)),
            dhcp: None,
            assist: None,
            reassembly: Reassembly::default(),
            reassembly_slot: self.add_component(Component::Reassembly(id)),
            next_ways: Vec::new(),
            identification: 0,
        }
    }
}
