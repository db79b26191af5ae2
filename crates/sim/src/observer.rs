//! Who looks on: the event log and the packet capture. Neither changes what happens.

use std::io;

use careof_base::Instant;
use careof_metrics::CaptureSummary;
use careof_plan::{Captures, DropPlace, FlowId, NodeId, OneWayId, Plan, Side, handover_comment};
use careof_tcp::Connection;
use careof_trace::{
    AssistRecord, Direction, Event, EventLog, FlowId as TraceFlow, LinkId as TraceLink, MessageRecord,
    NodeId as TraceNode, PacketRecord, SegmentRecord, TcpState,
};
use careof_wire::{Flags, protocol};

use crate::bytes::PacketBytes;
use crate::drop_cause::Cause;
use crate::packet::{Body, OnLink, Packet, PacketRef};
use crate::simulation::Simulation;

/// The captures, and the buffers in which packets become bytes for them.
pub(crate) struct Pcap {
    captures: Captures,
    bytes: PacketBytes,
}

impl Pcap {
    pub(crate) fn new(captures: Captures, plan: Plan) -> Self {
        Self { captures, bytes: PacketBytes::new(plan) }
    }

    /// A node sends a packet into `way`.
    fn sent(&mut self, now: Instant, node: NodeId, way: OneWayId, packet: &Packet) {
        if self.captures.wants_sent(node, packet.id) {
            let bytes = self.bytes.of(packet);
            self.captures.packet(now, (node, way), Direction::Out, (packet.id, bytes));
        }
    }

    /// A packet arrives at a node by `way`.
    fn received(&mut self, now: Instant, node: NodeId, way: OneWayId, packet: &Packet) {
        if self.captures.wants_received(node) {
            let bytes = self.bytes.of(packet);
            self.captures.packet(now, (node, way), Direction::In, (packet.id, bytes));
        }
    }

    /// There is another option that segments carry.
    fn add_option(&mut self, bytes: Vec<u8>) {
        self.bytes.options.push(bytes);
    }

    /// Writes what lies before `now`.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.captures.flush(now);
    }

    /// Writes everything.
    pub(crate) fn finish(self) -> io::Result<Vec<CaptureSummary>> {
        self.captures.finish()
    }
}

/// The observers of a run.
pub(crate) struct Observer {
    pub(crate) log: EventLog,
    pub(crate) pcap: Option<Pcap>,
    /// Whether either is to see packets, which every hop asks.
    sees_packets: bool,
}

impl Observer {
    pub(crate) fn new(log: EventLog, pcap: Option<Pcap>) -> Self {
        Self { sees_packets: log.is_on() || pcap.is_some(), log, pcap }
    }

    /// Segments will carry an option, the next that is made in this run.
    pub(crate) fn add_option(&mut self, bytes: Vec<u8>) {
        if let Some(pcap) = &mut self.pcap {
            pcap.add_option(bytes);
        }
    }
}

fn trace_node(node: NodeId) -> TraceNode {
    TraceNode(node.0)
}

fn trace_link(way: OneWayId) -> TraceLink {
    TraceLink(way.0 as u16)
}

fn trace_flow(flow: FlowId) -> TraceFlow {
    TraceFlow(flow.0)
}

fn flow_of(packet: &Packet) -> Option<TraceFlow> {
    packet.origin.map(|origin| trace_flow(origin.flow))
}

impl Simulation {
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.sees_packets
    }

    fn packet_record(&self, way: OneWayId, packet: &Packet) -> PacketRecord {
        let (packets, bytes) = self.queue_before(way);
        PacketRecord {
            packet: packet.id,
            size_bytes: packet.size_bytes(),
            queue_packets: packets as u32,
            queue_bytes: bytes,
        }
    }

    /// A one-way link accepted a packet.
    #[inline]
    pub(crate) fn observe_enqueued(&mut self, way: OneWayId, packet: PacketRef) {
        if self.is_observed() {
            self.observe_at_end(way, packet, false, Event::packet_enqueued);
        }
    }

    /// A one-way link delivered a packet.
    #[inline]
    pub(crate) fn observe_delivered(&mut self, way: OneWayId, packet: PacketRef) {
        if self.is_observed() {
            self.observe_at_end(way, packet, true, Event::packet_delivered);
        }
    }

    #[cold]
    fn observe_at_end(
        &mut self,
        way: OneWayId,
        packet: PacketRef,
        receiving: bool,
        event: fn(Instant, TraceLink, Option<TraceFlow>, PacketRecord) -> Event,
    ) {
        self.pool.settle(packet);
        let packet = &self.pool[packet];
        let record = self.packet_record(way, packet);
        self.observer.log.push(event(self.now, trace_link(way), flow_of(packet), record));
        if let Some(pcap) = &mut self.observer.pcap {
            let link = &self.links[way.0 as usize];
            if receiving {
                pcap.received(self.now, link.to, way, packet);
            } else {
                pcap.sent(self.now, link.from, way, packet);
            }
        }
    }

    /// A one-way link dropped a packet: at its entrance, or `late`.
    ///
    /// The node before the link sees the packet in either case.
    pub(crate) fn observe_link_drop(&mut self, way: OneWayId, packet: PacketRef, cause: Cause, late: bool) {
        if !self.is_observed() {
            return;
        }
        self.pool.settle(packet);
        let packet = &self.pool[packet];
        let record = self.packet_record(way, packet);
        let event = Event::packet_dropped(self.now, trace_link(way), flow_of(packet), record, cause.name());
        self.observer.log.push(event);
        if let Some(pcap) = &mut self.observer.pcap {
            let link = &self.links[way.0 as usize];
            if !late {
                pcap.sent(self.now, link.from, way, packet);
            }
            pcap.captures.dropped(self.now, packet.id, cause.name(), DropPlace::Link(way));
        }
    }

    /// A node dropped a packet.
    pub(crate) fn observe_drop(&mut self, node: NodeId, packet: PacketRef, cause: Cause) {
        if !self.is_observed() {
            return;
        }
        self.pool.settle(packet);
        let packet = &self.pool[packet];
        self.observer.log.push(Event::packet_dropped_at_node(
            self.now,
            trace_node(node),
            flow_of(packet),
            packet.id,
            packet.size_bytes(),
            cause.name(),
        ));
        let way = self.node(node).place.interfaces.first().map(|interface| interface.out);
        if let (Some(way), Some(pcap)) = (way, &mut self.observer.pcap) {
            pcap.sent(self.now, node, way, packet);
            pcap.captures.dropped(self.now, packet.id, cause.name(), DropPlace::Node(node));
        }
    }

    /// A signalling message left or reached a node.
    pub(crate) fn trace_message(&mut self, node: NodeId, packet: PacketRef, sent: bool) {
        if !self.observer.log.is_on() {
            return;
        }
        let packet = &self.pool[packet];
        let (message, text) = match &packet.body {
            Body::Message(bytes) if !packet.header.is_ipv6() => {
                careof_plan::describe(&packet.header.to_ipv4(), bytes)
            }
            Body::Message(bytes) => {
                let ends = [packet.header.source, packet.header.destination];
                let [source, destination] = ends.map(|end| self.bytes.address_v6(end));
                careof_plan::describe_ipv6(source, destination, packet.header.protocol, bytes)
            }
            Body::OnLink(on_link) => {
                let OnLink { source, destination, message, .. } = &**on_link;
                careof_plan::describe_ipv6(*source, *destination, protocol::ICMPV6, message)
            }
            Body::Tcp(_) => return,
        };
        let detail = self.observer.log.detail(format_args!("{text}"));
        let record =
            MessageRecord { message, packet: Some(packet.id), size_bytes: packet.size_bytes(), detail };
        let event = if sent {
            Event::message_sent(self.now, trace_node(node), None, record)
        } else {
            Event::message_received(self.now, trace_node(node), None, record)
        };
        self.observer.log.push(event);
    }

    /// A node made `packet` of the one with the number `of_packet`.
    #[inline]
    pub(crate) fn trace_derived(
        &mut self,
        node: NodeId,
        packet: PacketRef,
        of_packet: u64,
        cause: &'static str,
    ) {
        if let (Some(pcap), "fragment") = (&mut self.observer.pcap, cause) {
            pcap.captures.fragment(node, self.pool[packet].id, of_packet);
        }
        if self.observer.log.is_on() {
            let made = &self.pool[packet];
            let (id, size, flow) = (made.id, made.size_bytes(), flow_of(made));
            let event = Event::packet_derived(self.now, trace_node(node), flow, id, size, of_packet, cause);
            self.observer.log.push(event);
        }
    }

    /// What the trace says of a segment whose sender's windows count in units of two to the power of `shift`.
    fn segment_record(packet: &Packet, shift: u8) -> Option<SegmentRecord> {
        let Body::Tcp(segment) = &packet.body else { return None };
        let origin = packet.origin.as_ref();
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { shift };
        Some(SegmentRecord {
            packet: packet.id,
            size_bytes: packet.size_bytes(),
            seq: origin.map_or(0, |origin| origin.seq),
            ack: origin.map_or(0, |origin| origin.ack),
            len_bytes: segment.payload_len.into(),
            window_bytes: u32::from(segment.window) << shift,
            flags: segment.flags.0,
            retransmission: origin.is_some_and(|origin| origin.retransmission),
        })
    }

    /// An endpoint sent a segment.
    #[inline(always)]
    pub(crate) fn trace_segment_sent(&mut self, id: FlowId, side: Side, packet: PacketRef) {
        if self.observer.log.is_on() {
            self.trace_segment(id, side, packet, Event::segment_sent);
        }
    }

    #[cold]
    fn trace_segment(
        &mut self,
        id: FlowId,
        side: Side,
        packet: PacketRef,
        event: fn(Instant, TraceNode, TraceFlow, SegmentRecord) -> Event,
    ) {
        let seen = &self.pool[packet];
        let ends = &self.flows[usize::from(id.0)].ends;
        let shift = match (seen.origin.filter(|origin| origin.sender != side), self.half(id, side)) {
            (Some(_), Some(half)) => half.window_shift,
            (Some(origin), None) => ends[origin.sender.index()].window_shift,
            (None, _) => ends[side.index()].window_shift,
        };
        let Some(record) = Self::segment_record(seen, shift) else { return };
        let node = ends[side.index()].node;
        self.observer.log.push(event(self.now, trace_node(node), trace_flow(id), record));
    }

    /// A segment reached its endpoint.
    #[inline(always)]
    pub(crate) fn trace_segment_received(&mut self, id: FlowId, side: Side, packet: PacketRef) {
        if self.observer.log.is_on() {
            self.trace_segment(id, side, packet, Event::segment_received);
        }
    }

    /// An endpoint of QUIC sent a datagram, or got one: what it carries of the stream stands for a segment.
    pub(crate) fn trace_datagram(&mut self, id: FlowId, side: Side, packet: PacketRef, sent: bool) {
        if !self.observer.log.is_on() {
            return;
        }
        let (seq, len_bytes) = self.carried(packet).unwrap_or_default();
        let seen = &self.pool[packet];
        let record = SegmentRecord {
            packet: seen.id,
            size_bytes: seen.size_bytes(),
            seq,
            len_bytes,
            retransmission: seen.origin.is_some_and(|origin| origin.retransmission),
            ..SegmentRecord::default()
        };
        let node = trace_node(self.flows[usize::from(id.0)].ends[side.index()].node);
        let event = if sent { Event::segment_sent } else { Event::segment_received };
        self.observer.log.push(event(self.now, node, trace_flow(id), record));
    }

    /// The state of an endpoint of QUIC may have changed.
    pub(crate) fn trace_quic_state(&mut self, id: FlowId, side: Side) {
        if self.observer.log.is_on()
            && let Some(state) = self.quic_state(id, side)
        {
            let node = trace_node(self.flows[usize::from(id.0)].ends[side.index()].node);
            self.observer.log.push(Event::tcp_state(self.now, node, trace_flow(id), state));
        }
    }

    /// A relay sent a segment to `facing`, or got one from there.
    pub(crate) fn trace_relay_segment(&mut self, id: FlowId, facing: Side, packet: PacketRef, sent: bool) {
        let (true, Some(node), Some(half)) =
            (self.observer.log.is_on(), self.relay_node(), self.half(id, facing))
        else {
            return;
        };
        let of_end = self.flows[usize::from(id.0)].ends[facing.index()].window_shift;
        let shift = if sent { half.window_shift } else { of_end };
        let Some(record) = Self::segment_record(&self.pool[packet], shift) else { return };
        let event = if sent { Event::segment_sent } else { Event::segment_received };
        self.observer.log.push(event(self.now, trace_node(node), trace_flow(id), record));
    }

    /// The state of the half of a relay that talks to `facing` may have changed.
    pub(crate) fn trace_relay_state(&mut self, id: FlowId, facing: Side) {
        let (true, now, Some(node)) = (self.observer.log.is_on(), self.now, self.relay_node()) else {
            return;
        };
        let Some(half) = self.half_mut(id, facing).filter(|half| half.is_traced) else { return };
        if half.traced_revision == Some(half.connection.revision()) {
            return;
        }
        half.traced_revision = Some(half.connection.revision());
        let state = tcp_state(&half.connection);
        if half.traced != Some(state) {
            half.traced = Some(state);
            self.observer.log.push(Event::tcp_state(now, trace_node(node), trace_flow(id), state));
        }
    }

    /// A retransmission timer of that half ran out.
    pub(crate) fn trace_relay_timeout(&mut self, id: FlowId, facing: Side, seq: i64) {
        if let (true, Some(node), Some(half)) =
            (self.observer.log.is_on(), self.relay_node(), self.half(id, facing))
        {
            let state = tcp_state(&half.connection);
            self.observer.log.push(Event::timeout(self.now, trace_node(node), trace_flow(id), seq, state));
        }
    }

    /// An assist on `node` did something for a flow.
    pub(crate) fn trace_assist(&mut self, node: NodeId, id: FlowId, record: AssistRecord) {
        if self.observer.log.is_on() {
            self.observer.log.push(Event::assist(self.now, trace_node(node), trace_flow(id), record));
        }
    }

    fn tcp_state(&self, id: FlowId, side: Side) -> TcpState {
        tcp_state(&self.flows[usize::from(id.0)].ends[side.index()].connection)
    }

    /// The state of an endpoint may have changed.
    #[inline(always)]
    pub(crate) fn trace_tcp_state(&mut self, id: FlowId, side: Side) {
        if self.observer.log.is_on() {
            self.trace_changed_state(id, side);
        }
    }

    #[cold]
    fn trace_changed_state(&mut self, id: FlowId, side: Side) {
        let end = &self.flows[usize::from(id.0)].ends[side.index()];
        if end.traced_revision == Some(end.connection.revision()) {
            return;
        }
        let state = self.tcp_state(id, side);
        let end = self.flows[usize::from(id.0)].end(side);
        end.traced_revision = Some(end.connection.revision());
        if end.traced != Some(state) {
            end.traced = Some(state);
            let node = end.node;
            self.observer.log.push(Event::tcp_state(self.now, trace_node(node), trace_flow(id), state));
        }
    }

    /// A retransmission timer ran out.
    pub(crate) fn trace_timeout(&mut self, id: FlowId, side: Side, seq: i64) {
        if self.observer.log.is_on() {
            let state = self.tcp_state(id, side);
            let node = self.flows[usize::from(id.0)].ends[side.index()].node;
            self.observer.log.push(Event::timeout(self.now, trace_node(node), trace_flow(id), seq, state));
        }
    }

    /// An application has received `total` bytes in order.
    #[inline(always)]
    pub(crate) fn trace_delivered(&mut self, id: FlowId, side: Side, total: u64) {
        if self.observer.log.is_on() {
            self.trace_delivery(id, side, total);
        }
    }

    #[cold]
    fn trace_delivery(&mut self, id: FlowId, side: Side, total: u64) {
        let node = self.flows[usize::from(id.0)].ends[side.index()].node;
        self.observer.log.push(Event::data_delivered(self.now, trace_node(node), trace_flow(id), total));
    }

    /// A flow opens, or its connection is over.
    pub(crate) fn trace_flow(&mut self, id: FlowId, side: Side, text: std::fmt::Arguments<'_>, start: bool) {
        if self.observer.log.is_on() {
            let node = trace_node(self.flows[usize::from(id.0)].ends[side.index()].node);
            let detail = self.observer.log.detail(text);
            self.observer.log.push(if start {
                Event::flow_start(self.now, node, trace_flow(id), detail)
            } else {
                Event::flow_end(self.now, node, trace_flow(id), detail)
            });
        }
    }

    /// Notes something about a binding, an address resolution or a handover: in the log, and in the
    /// captures as a comment.
    pub(crate) fn note(
        &mut self,
        node: NodeId,
        way: Option<OneWayId>,
        note: Note,
        text: std::fmt::Arguments<'_>,
    ) {
        let now = self.now;
        let link = way.map(trace_link);
        if let (Note::Handover(phase), Some(pcap)) = (note, &mut self.observer.pcap) {
            let name = &self.nodes[usize::from(node.0)].place.name;
            let links = &self.scenario.links;
            let link = way.and_then(|way| links.get(way.0 as usize / 2)).map(|link| link.name.as_str());
            pcap.captures.comment(now, node, &handover_comment(name, phase, link, text));
        }
        let node = trace_node(node);
        if self.observer.log.is_on() {
            let detail = self.observer.log.detail(text);
            self.observer.log.push(match note {
                Note::Binding(cause) => Event::binding(now, node, cause, detail),
                Note::Arp(cause) => Event::arp(now, node, link, cause, detail),
                Note::Handover(cause) => Event::handover(now, node, link, cause, detail),
                Note::Route(cause) => Event::host_route(now, node, cause, detail),
            });
        }
    }
}

fn tcp_state(connection: &Connection) -> TcpState {
    let snapshot = connection.snapshot();
    TcpState {
        cwnd_bytes: snapshot.cwnd,
        ssthresh_bytes: (snapshot.ssthresh != u32::MAX).then_some(snapshot.ssthresh),
        flight_bytes: snapshot.flight,
        srtt: snapshot.srtt,
        rttvar: snapshot.rttvar,
        rto: Some(snapshot.rto),
    }
}

/// What [`Simulation::note`] is about, with the cause or phase.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// A mobility binding changed.
    Binding(&'static str),
    /// An agent decided about ARP.
    Arp(&'static str),
    /// A phase of a handover.
    Handover(&'static str),
    /// A host route of micro-mobility changed.
    Route(&'static str),
}
