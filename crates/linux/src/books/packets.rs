//! Packets seen at the ends of links, and what they say about connections and messages.

use std::net::{IpAddr, SocketAddr};

use careof_base::Instant;
use careof_lab::{Passage, Sighting};
use careof_link::DropCause;
use careof_metrics::SegmentRange;
use careof_plan::{DropPlace, NodeId, OneWayId, Side, note_filtered, note_filtered_ipv6};
use careof_trace::{
    Direction, Event, FlowId as TraceFlow, LinkId as TraceLink, MessageRecord, NodeId as TraceNode,
    PacketRecord, SegmentRecord,
};
use careof_wire::mptcp::{DataMapping, MptcpOptions};
use careof_wire::{Flags, Segment, icmp, icmpv6};

use super::connection::{Connection, Sent, Stretch};
use super::datagram::{Datagram, Reassembler, innermost, of_several_paths};
use super::datagrams::Entry;
use super::{Books, Multipath, NewConnection, Record};

/// A sighting of a packet, understood.
#[derive(Debug)]
pub(crate) struct Seen {
    way: OneWayId,
    passage: Passage,
    packet: u64,
    /// The datagram that `what` is about: another one when this is the last of its fragments.
    subject: u64,
    size_bytes: u32,
    queue_packets: u32,
    queue_bytes: u64,
    content: u64,
    what: What,
}

/// What a packet is to whom.
#[derive(Debug)]
enum What {
    /// A segment of a connection that `side` sent, at which place of its way; of a subflow also where its data belongs.
    Segment {
        connection: usize,
        side: Side,
        segment: Box<Segment>,
        mapping: Option<DataMapping>,
        place: Place,
    },
    /// A message that `node` sent or received.
    Message { node: NodeId, sent: bool, message: &'static str, text: String },
    /// Something on its way.
    Other,
}

/// Where on its way a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It leaves its sender.
    Start,
    /// Somewhere.
    Middle,
    /// It reached whom it is for.
    End,
}

impl Books {
    /// Takes a sighting in: the packet is recognised and captured at once, the rest waits for its turn.
    ///
    /// In a cell of a domain `station` is the base station there.
    pub(crate) fn see(&mut self, sighting: &Sighting<'_>, way: OneWayId, station: Option<NodeId>) {
        self.sightings += 1;
        let at = sighting.at.max(self.settled);
        let whole = innermost(sighting.bytes);
        let mut is_tunnelled = whole.len() < sighting.bytes.len();
        let is_dispersed = is_tunnelled && of_several_paths(sighting.bytes).is_some();
        let inner = Datagram::parse(&whole);
        let destination = inner.as_ref().map(|inner| inner.destination);
        let content = inner.as_ref().map_or_else(|| careof_plan::of_bytes(sighting.bytes), Datagram::content);
        let enters = matches!(sighting.passage, Passage::Entered | Passage::Refused(_) | Passage::NoBuffer);
        let Entry { id: packet, is_moved } = if enters {
            let number = if sighting.passage == Passage::Entered { sighting.number } else { 0 };
            // Each cell is a link of its own, although all of them are one radio.
            let cell = |station: NodeId| self.ways.len() as u32 + 2 * u32::from(station.0) + way.0 % 2;
            self.datagrams.enter(at, content, station.map_or(way.0, cell), number)
        } else {
            let id = self.datagrams.leave(sighting.number).unwrap_or(0);
            if sighting.passage == Passage::TakenBack {
                self.datagrams.take_back(content, id);
            }
            Entry { id, is_moved: false }
        };
        let fragment = inner.as_ref().is_some_and(Datagram::is_fragment);
        let is_down = way.0.is_multiple_of(2);
        let node = match station.filter(|_| is_down == enters) {
            Some(station) => station,
            None if enters => self.topology.entrance(way),
            None => self.exit(way),
        };
        self.capture(sighting, at, (node, way), packet, fragment);
        if sighting.passage == Passage::Refused(DropCause::IcmpFiltered) {
            self.note_filtered(at, way, sighting.bytes);
        }
        // Whether its host sends it here, and has not done so before.
        let leaves = enters && !is_moved;
        let arrives = sighting.passage == Passage::Left;
        // A segment that several paths carry arrives when its turn has come; one that is cut, when its host has it whole.
        let mut in_turn = is_dispersed && !fragment;
        // A fragment says nothing before it is whole, and then says what the whole does. One that is lost on its way is
        // no part of what arrives.
        let reassembled =
            if fragment && (leaves || arrives) { self.reassemble(at, node, enters, &whole) } else { None };
        let reassembled = reassembled.as_deref().map(|whole| {
            let inside = innermost(whole);
            is_tunnelled |= inside.len() < whole.len();
            in_turn |= of_several_paths(whole).is_some();
            inside
        });
        let inner = match &reassembled {
            Some(whole) => Datagram::parse(whole),
            None => inner.filter(|_| !fragment),
        };
        let subject = match &inner {
            Some(inner) if fragment => {
                let content = inner.content();
                (self.datagrams.whole(at, content), content)
            }
            _ => (packet, content),
        };
        if let (true, Some(captures)) = (subject.0 != packet && arrives, &mut self.capture) {
            captures.known(node, subject.0);
        }
        let what = match &inner {
            Some(inner) => {
                let stretch =
                    if is_tunnelled || self.is_mobile_nodes(way) { Stretch::Mobile } else { Stretch::Fixed };
                self.understand(inner, stretch, node, leaves, (arrives, in_turn))
            }
            None => What::Other,
        };
        let seen = Seen {
            way,
            passage: sighting.passage,
            packet,
            subject: subject.0,
            size_bytes: sighting.length,
            queue_packets: sighting.queue_packets,
            queue_bytes: sighting.queue_bytes,
            content,
            what,
        };
        // Of several paths another one may yet carry what this one has lost.
        if !self.copies && !is_dispersed && !in_turn {
            if arrives && self.ends_here(&seen) {
                self.datagrams.forget(subject.1, subject.0);
            }
            // Neither dropped packets nor those of other protocols are waited for, of which programs may send many.
            let own = &self.own[usize::from(node.0)];
            if is_dropped(sighting.passage) || (arrives && destination.is_some_and(|to| own.contains(&to))) {
                self.datagrams.forget(content, packet);
            }
        }
        self.note(at, Record::Seen(Box::new(seen)));
    }

    fn ends_here(&self, seen: &Seen) -> bool {
        matches!(seen.what, What::Segment { place: Place::End, .. } | What::Message { sent: false, .. })
    }

    /// Whether a link is one of the mobile node's. On others its packets are in a tunnel, but for those that go on from the
    /// home agent to a fixed host, or come from there.
    fn is_mobile_nodes(&self, way: OneWayId) -> bool {
        self.mobile_nodes.contains(&(way.0 / 2))
    }

    /// The node at the far end of a one-way link.
    fn exit(&self, way: OneWayId) -> NodeId {
        self.topology.entrance(OneWayId(way.0 ^ 1))
    }

    fn reassemble(&mut self, at: Instant, node: NodeId, enters: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        let reassembler = self.reassemblers.entry((node.0, enters)).or_insert_with(Reassembler::new);
        reassembler.handle_fragment(at, bytes)
    }

    /// Notes an ICMP error that a link filtered.
    fn note_filtered(&mut self, at: Instant, way: OneWayId, bytes: &[u8]) {
        let Some(link) = self.ways.get(way.0 as usize) else { return };
        if let Some(message) = icmp::error_in(bytes) {
            note_filtered(&mut self.black_holes, at, link, message);
        } else if let Some(message) = icmpv6::error_in(bytes) {
            note_filtered_ipv6(&mut self.black_holes, at, link, message);
        }
    }

    /// Has the captures see a packet: the node that sends it, when it enters a link, the node that it reaches, when it
    /// leaves, and all that saw it, when it is dropped.
    fn capture(
        &mut self,
        sighting: &Sighting<'_>,
        at: Instant,
        (node, way): (NodeId, OneWayId),
        packet: u64,
        fragment: bool,
    ) {
        let Some(captures) = &mut self.capture else { return };
        let bytes = (packet, sighting.bytes);
        let cause = match sighting.passage {
            Passage::Entered | Passage::Left | Passage::TakenBack => None,
            Passage::Refused(cause) | Passage::Lost(cause) => Some(cause.name()),
            Passage::NoBuffer => Some(NO_BUFFER),
            Passage::Undeliverable => Some(UNDELIVERABLE),
            Passage::Discarded => Some(HANDOVER),
        };
        match sighting.passage {
            Passage::Left => {
                if captures.wants_received(node) {
                    captures.packet(at, (node, way), Direction::In, bytes);
                }
            }
            Passage::Entered | Passage::Refused(_) | Passage::NoBuffer => {
                // What a router cuts into fragments it has seen whole.
                let passes_on = fragment && self.topology.place(node).forwards;
                if !passes_on && captures.wants_sent(node, packet) {
                    captures.packet(at, (node, way), Direction::Out, bytes);
                }
            }
            Passage::Lost(_) | Passage::Undeliverable | Passage::Discarded | Passage::TakenBack => {}
        }
        if let Some(cause) = cause {
            captures.dropped(at, packet, cause, DropPlace::Link(way));
        }
    }

    /// Finds out what a datagram is to `node`, which it leaves, or where it arrives, or neither.
    /// With a relay on the flow's way it is on `stretch` of that.
    fn understand(
        &mut self,
        inner: &Datagram<'_>,
        stretch: Stretch,
        node: NodeId,
        leaves: bool,
        (arrives, in_turn): (bool, bool),
    ) -> What {
        if inner.is_signalling() {
            return self.message(inner, node, leaves, arrives);
        }
        let Some(segment) = inner.segment() else { return What::Other };
        let Some((connection, side)) = self.connection_of(inner, &segment, stretch, node, leaves) else {
            return What::Other;
        };
        let Connection { ends, subflow, .. } = &self.connections[connection];
        let options = subflow.as_ref().and_then(|_| MptcpOptions::peek(inner.payload).ok());
        let mapping = options.and_then(|options| options.mapping);
        let place = if leaves && ends[side.index()].node == node {
            Place::Start
        } else if arrives && !in_turn && ends[side.peer().index()].node == node {
            Place::End
        } else {
            Place::Middle
        };
        What::Segment { connection, side, segment: Box::new(segment), mapping, place }
    }

    /// A datagram came out of a tunnel over several paths at `node`, in its turn.
    pub(super) fn enter_passed_on(&mut self, at: Instant, node: NodeId, bytes: &[u8]) {
        let Some(datagram) = Datagram::parse(bytes).filter(|datagram| !datagram.is_fragment()) else {
            return;
        };
        let Some(segment) = datagram.segment() else { return };
        let known = self.connection_of(&datagram, &segment, Stretch::Mobile, node, false);
        let Some((connection, side)) = known else { return };
        if self.connections[connection].ends[side.peer().index()].node != node {
            return;
        }
        let content = datagram.content();
        let packet = self.datagrams.whole(at, content);
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.enter_segment_received(at, connection, side, &segment, (packet, size));
        if !self.copies {
            self.datagrams.forget(content, packet);
        }
    }

    fn message(&self, datagram: &Datagram<'_>, node: NodeId, leaves: bool, arrives: bool) -> What {
        let is_own = |address: IpAddr| self.own[usize::from(node.0)].contains(&address);
        let sent = leaves && (is_own(datagram.source) || datagram.is_from_link());
        let received = arrives && (is_own(datagram.destination) || datagram.is_for_link());
        if !(sent || received) {
            return What::Other;
        }
        if !self.log.is_on() {
            return What::Message { node, sent, message: "", text: String::new() };
        }
        let (message, text) = datagram.describe();
        What::Message { node, sent, message, text }
    }

    /// The connection and sender of a segment. The SYN of a program's connection makes one.
    fn connection_of(
        &mut self,
        datagram: &Datagram<'_>,
        segment: &Segment,
        stretch: Stretch,
        node: NodeId,
        leaves: bool,
    ) -> Option<(usize, Side)> {
        let key = (segment.source_port, segment.destination_port);
        let is_of = |connection: &Connection, side: Side| {
            let owns = |side: Side, address: IpAddr| match &connection.subflow {
                Some(subflow) => subflow.addresses[side.index()] == address,
                None => {
                    let node = connection.ends[side.index()].speaks_for;
                    self.own[usize::from(node.0)].contains(&address)
                }
            };
            [Stretch::Whole, stretch].contains(&connection.stretch)
                && owns(side, datagram.source)
                && owns(side.peer(), datagram.destination)
        };
        let is_syn = segment.flags.contains(Flags::SYN);
        let opens = is_syn && !segment.flags.contains(Flags::ACK);
        let known = self.by_ports.get(&key).into_iter().flatten();
        let found = known.copied().find(|(id, side)| is_of(&self.connections[*id], *side));
        if let Some((id, side)) = found
            && (!opens || self.initial.get(&id).is_none_or(|initial| *initial == segment.seq))
        {
            if leaves && is_syn && !opens && self.initial.contains_key(&id) {
                self.look_into_server(id, datagram, segment);
            }
            return Some((id, side));
        }
        if !(opens && leaves) {
            return None;
        }
        if let Some((flow, client)) = self.multipath_flow_of(datagram, segment, node) {
            let by_side = |of_client, of_server| {
                if client == Side::Opener { [of_client, of_server] } else { [of_server, of_client] }
            };
            let addresses = by_side(datagram.source, datagram.destination);
            let ports = if client == Side::Opener { [key.0, key.1] } else { [key.1, key.0] };
            let connection = self.add_subflow(flow, client, addresses, ports);
            self.initial.insert(connection, segment.seq);
            self.discover(connection, client, datagram, segment);
            return Some((connection, client));
        }
        let flow = self.flows.iter().position(|flow| {
            flow.is_open_ended
                && flow.nodes[0] == node
                && self.own[usize::from(node.0)].contains(&datagram.source)
                && self.own[usize::from(flow.nodes[1].0)].contains(&datagram.destination)
        })?;
        let connection = self.add_connection(flow, [segment.source_port, segment.destination_port], &[]);
        self.flows[flow].connections += 1;
        self.initial.insert(connection, segment.seq);
        self.discover(connection, Side::Opener, datagram, segment);
        Some((connection, Side::Opener))
    }

    /// The flow over Multipath TCP that a SYN of `node` opens a subflow of, and who is its client.
    fn multipath_flow_of(
        &self,
        datagram: &Datagram<'_>,
        segment: &Segment,
        node: NodeId,
    ) -> Option<(usize, Side)> {
        let owns = |node: NodeId, address| self.own[usize::from(node.0)].contains(&address);
        self.flows.iter().enumerate().find_map(|(index, flow)| {
            let Multipath { client, server_port } = flow.multipath?;
            let is_its = flow.nodes[client.index()] == node
                && segment.destination_port == server_port
                && owns(node, datagram.source)
                && owns(flow.nodes[client.peer().index()], datagram.destination);
            is_its.then_some((index, client))
        })
    }

    /// The server of a program's connection, or of a subflow, answers: from now on there is something to look into. It answers again
    /// when its answer was lost.
    fn look_into_server(&mut self, connection: usize, datagram: &Datagram<'_>, segment: &Segment) {
        if self.answered.insert(connection) {
            let server = self.connections[connection].client.peer();
            self.discover(connection, server, datagram, segment);
        }
    }

    /// An end of a program's connection or of a subflow, the sender of `segment`, was seen.
    fn discover(&mut self, connection: usize, side: Side, datagram: &Datagram<'_>, segment: &Segment) {
        // Of subflows it is known who sends.
        let Connection { subflow, ends, .. } = &self.connections[connection];
        if subflow.is_some() && ends[side.index()].measured.is_none() {
            return;
        }
        let flow = usize::from(self.connections[connection].flow);
        let node = self.flows[flow].nodes[side.index()];
        let local = SocketAddr::new(datagram.source, segment.source_port);
        let remote = SocketAddr::new(datagram.destination, segment.destination_port);
        self.discovered.push(NewConnection { connection, side, node, local, remote });
    }

    pub(super) fn enter_sighting(&mut self, at: Instant, seen: &Seen) {
        let link = TraceLink(seen.way.0 as u16);
        let record = PacketRecord {
            packet: seen.packet,
            size_bytes: seen.size_bytes,
            queue_packets: seen.queue_packets,
            queue_bytes: seen.queue_bytes,
        };
        let flow = match &seen.what {
            What::Segment { connection, .. } => Some(TraceFlow(self.connections[*connection].traced_as)),
            _ => None,
        };
        let enters = matches!(seen.passage, Passage::Entered | Passage::Refused(_) | Passage::NoBuffer);
        if enters {
            self.enter_meaning(at, seen);
        }
        let dropped = |cause: &'static str| Event::packet_dropped(at, link, flow, record, cause);
        let event = match seen.passage {
            Passage::Entered => Some(Event::packet_enqueued(at, link, flow, record)),
            Passage::Left => {
                self.digest.packet(at, seen.way.0, seen.packet, seen.size_bytes, seen.content);
                Some(Event::packet_delivered(at, link, flow, record))
            }
            Passage::Refused(cause) | Passage::Lost(cause) => {
                self.digest.drop(at, seen.packet, cause.name());
                Some(dropped(cause.name()))
            }
            Passage::NoBuffer => Some(dropped(NO_BUFFER)),
            Passage::Undeliverable => Some(dropped(UNDELIVERABLE)),
            Passage::Discarded => {
                self.digest.drop(at, seen.packet, HANDOVER);
                Some(dropped(HANDOVER))
            }
            Passage::TakenBack => None,
        };
        if let Some(event) = event {
            self.log.push(event);
        }
        if seen.passage == Passage::Left {
            self.enter_meaning(at, seen);
        }
    }

    /// What a packet says at the beginning or the end of its way.
    fn enter_meaning(&mut self, at: Instant, seen: &Seen) {
        match &seen.what {
            What::Segment { connection, side, segment, mapping, place: Place::Start } => {
                let packet = (seen.subject, seen.size_bytes);
                self.enter_segment_sent(at, (*connection, *side), (segment, *mapping), packet);
            }
            What::Segment { connection, side, segment, place: Place::End, .. } => {
                let packet = (seen.subject, seen.size_bytes);
                self.enter_segment_received(at, *connection, *side, segment, packet);
            }
            What::Message { node, sent, message, text } if self.log.is_on() => {
                let detail = self.log.detail(format_args!("{text}"));
                let (packet, size_bytes) = (Some(seen.subject), seen.size_bytes);
                let record = MessageRecord { message, packet, size_bytes, detail };
                let node = TraceNode(node.0);
                self.log.push(if *sent {
                    Event::message_sent(at, node, None, record)
                } else {
                    Event::message_received(at, node, None, record)
                });
            }
            What::Segment { .. } | What::Message { .. } | What::Other => {}
        }
    }

    fn enter_segment_sent(
        &mut self,
        at: Instant,
        (id, side): (usize, Side),
        (segment, mapping): (&Segment, Option<DataMapping>),
        packet: (u64, u32),
    ) {
        if segment.payload_len > 0 {
            self.measure_program(at, id, side);
        }
        let connection = &mut self.connections[id];
        let mut sent = connection.sent(at, side, segment);
        let flow = TraceFlow(connection.traced_as);
        let is_program = self.flows[usize::from(connection.flow)].is_open_ended;
        let end = &mut connection.ends[side.index()];
        let node = TraceNode(end.node.0);
        if let (true, Some(index), 1..) = (is_program, end.measured, segment.payload_len) {
            // Of a program it is known that it has something to carry while something is not acknowledged.
            self.flow_metrics[index].on_wanted(at, u64::MAX);
        }
        if sent.retransmission
            && let Some(timeout) = end.timeout.take()
        {
            self.log.push(Event::timeout(at, node, flow, timeout.seq, timeout.state));
        }
        if let (Some(index), 1..) = (end.measured, segment.seq_len()) {
            let mut range = SegmentRange { seq: sent.seq, end: sent.seq + i64::from(segment.seq_len()) };
            if let Some(subflow) = &mut connection.subflow {
                let space = self.data_spaces.entry(index).or_default();
                let again;
                (range, again) = subflow.sent(side, (sent.seq, segment.payload_len.into()), mapping, space);
                sent.retransmission |= again;
            }
            let transmission = self.flow_metrics[index].on_segment_sent(at, range, sent.retransmission);
            self.transmissions.insert(packet.0, transmission);
            while self.transmissions.len() > MOST_TRANSMISSIONS {
                self.transmissions.pop_first();
            }
        }
        if self.connections[id].is_traced(side) {
            let record = segment_record(packet, segment, sent);
            self.log.push(Event::segment_sent(at, node, flow, record));
        }
    }

    fn enter_segment_received(
        &mut self,
        at: Instant,
        id: usize,
        side: Side,
        segment: &Segment,
        packet: (u64, u32),
    ) {
        let connection = &mut self.connections[id];
        let mut arrived = connection.arrived(side, segment);
        let flow = usize::from(connection.flow);
        let node = TraceNode(connection.ends[side.peer().index()].node.0);
        let length = i64::from(segment.seq_len());
        let measured = connection.ends[side.index()].measured;
        let transmission = self.transmissions.get(&packet.0).copied();
        if let (Some(index), Some(transmission)) = (measured, transmission) {
            arrived.retransmission = transmission.is_retransmission();
            let space = self.data_spaces.get(&index);
            let range = match connection.subflow.as_ref().zip(space) {
                Some((subflow, space)) => subflow.range(side, arrived.seq, segment.payload_len.into(), space),
                None => SegmentRange { seq: arrived.seq, end: arrived.seq + length },
            };
            self.flow_metrics[index].on_segment_arrival(range, transmission);
            if !self.copies {
                self.transmissions.remove(&packet.0);
            }
        }
        let traced_as = TraceFlow(connection.traced_as);
        let heard = connection.heard(at, side, segment);
        let listener = &connection.ends[side.peer().index()];
        if let Some(index) = listener.measured {
            if self.flows[flow].is_open_ended && listener.has_nothing_out() {
                self.flow_metrics[index].on_wanted(at, 0);
            }
            if heard.is_duplicate {
                self.flow_metrics[index].on_duplicate_ack();
            }
            if let Some(round_trip) = heard.round_trip {
                self.flow_metrics[index].on_rtt_sample(round_trip);
            }
        }
        if self.connections[id].is_traced(side.peer()) {
            let record = segment_record(packet, segment, arrived);
            self.log.push(Event::segment_received(at, node, traced_as, record));
        }
        if self.flows[flow].is_open_ended && length > 0 {
            let total = self.connections[id].take_in(side, arrived.seq, length);
            let complete = self.connections[id].is_complete(side);
            if let Some(index) = measured {
                if total > self.flow_metrics[index].counters().bytes_delivered {
                    self.log.push(Event::data_delivered(at, node, traced_as, total));
                }
                self.delivered(at, index, total);
                if complete {
                    self.flow_metrics[index].on_complete();
                }
            }
        }
    }

    /// The first data that an end of a program's connection sends makes it a direction that is measured.
    fn measure_program(&mut self, at: Instant, id: usize, side: Side) {
        let connection = &self.connections[id];
        let flow = &self.flows[usize::from(connection.flow)];
        if !flow.is_open_ended || connection.ends[side.index()].measured.is_some() {
            return;
        }
        let number = self.connections[..=id].iter().filter(|other| other.flow == connection.flow).count();
        let way = if side == Side::Opener { "" } else { ".back" };
        let name = format!("{}.{number}{way}", flow.name);
        let index = self.measure(id, side, name);
        self.flow_metrics[index].on_start(at);
    }
}

/// Transmissions under way that are remembered; the metrics do not look further back either.
const MOST_TRANSMISSIONS: usize = 1 << 16;

/// The emulator held as many packets as it can.
pub(crate) const NO_BUFFER: &str = "no-buffer";
/// The receiving host's interface was down or gone.
pub(crate) const UNDELIVERABLE: &str = "interface-down";
/// A handover dropped it from a queue, as the scenario asked.
pub(crate) const HANDOVER: &str = "handover";

/// Whether this is the end of a packet.
const fn is_dropped(passage: Passage) -> bool {
    match passage {
        Passage::Refused(_)
        | Passage::Lost(_)
        | Passage::NoBuffer
        | Passage::Undeliverable
        | Passage::Discarded => true,
        Passage::Entered | Passage::Left | Passage::TakenBack => false,
    }
}

fn segment_record((packet, size_bytes): (u64, u32), segment: &Segment, sent: Sent) -> SegmentRecord {
    SegmentRecord {
        packet,
        size_bytes,
        seq: sent.seq,
        ack: sent.ack,
        len_bytes: segment.payload_len.into(),
        window_bytes: sent.window_bytes,
        flags: segment.flags.0,
        retransmission: sent.retransmission,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use careof_base::Duration;
    use careof_lab::{Direction, LinkId};
    use careof_metrics::{FlowCounters, TcpSummary};
    use careof_plan::lay_out;
    use careof_scenario::Scenario;
    use careof_trace::EventLog;
    use careof_wire::ipv4::{Ipv4Header, fragment};
    use careof_wire::{SeqNumber, protocol};

    use super::*;
    use crate::books::BookedFlow;

    const OPENER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
    const ACCEPTOR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
    const FIRST: OneWayId = OneWayId(0);
    const SECOND: OneWayId = OneWayId(2);

    /// Two links between two nodes, and a connection of which data is measured from the first to the second.
    struct Observed {
        books: Books,
        clock: Instant,
    }

    impl Observed {
        fn new() -> Self {
            let text = "duration = \"9 s\"\n[links]\n\
                one = { rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"a\", \"b\"] }\n\
                two = { rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"a\", \"b\"] }\n";
            let scenario = Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
            let topology = Arc::new(lay_out(&scenario));
            let nodes = ["a", "b"].map(|name| topology.find(name).unwrap());
            let mut books = Books::new(&scenario, topology, EventLog::off(), None);
            let tcp = TcpSummary { profile: None, variant: String::new(), rto: String::new() };
            let (name, kind) = ("data".to_owned(), "bulk");
            let multipath = None;
            books.add_flow(BookedFlow {
                name,
                nodes,
                kind,
                tcp,
                is_open_ended: false,
                multipath,
                connections: 0,
            });
            books.add_connection(0, [49_152, 5001], &[(Side::Opener, "data".to_owned())]);
            Self { books, clock: Instant::ZERO }
        }

        fn see(&mut self, way: OneWayId, passage: Passage, number: u64, bytes: &[u8]) {
            self.clock += Duration::from_millis(1);
            let sighting = Sighting {
                at: self.clock,
                link: LinkId::default(),
                direction: Direction::Forward,
                passage,
                number,
                queue_packets: 0,
                queue_bytes: 0,
                length: bytes.len() as u32,
                bytes,
            };
            self.books.see(&sighting, way, None);
        }

        fn counted(&mut self) -> FlowCounters {
            self.books.close(self.clock);
            *self.books.flow_metrics[0].counters()
        }
    }

    /// The opener's first segment with that much data.
    fn datagram(length: usize) -> Vec<u8> {
        let payload = vec![7; length];
        let segment = Segment {
            source_port: 49_152,
            destination_port: 5001,
            seq: SeqNumber(1),
            flags: Flags::ACK,
            payload_len: length as u16,
            ..Segment::default()
        };
        let mut inside = Vec::new();
        segment.emit(OPENER, ACCEPTOR, &payload, &mut inside);
        let header = Ipv4Header {
            source: OPENER,
            destination: ACCEPTOR,
            protocol: protocol::TCP,
            ttl: 64,
            tos: 0,
            identification: 7,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            payload_len: inside.len() as u16,
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend(inside);
        bytes
    }

    #[test]
    fn a_segment_arrives_when_the_last_of_its_fragments_does() {
        let mut observed = Observed::new();
        let fragments = fragment(&datagram(1000), 600).unwrap();
        for passage in [Passage::Entered, Passage::Left] {
            for (number, bytes) in (1..).zip(&fragments) {
                observed.see(FIRST, passage, number, bytes);
            }
        }
        let counted = observed.counted();
        assert_eq!((counted.segments_sent, counted.segments_arrived), (1, 1));
    }

    #[test]
    fn a_segment_of_which_a_fragment_was_lost_does_not_arrive() {
        for lost in [Passage::Lost(DropCause::Loss), Passage::Undeliverable] {
            let mut observed = Observed::new();
            let fragments = fragment(&datagram(1000), 600).unwrap();
            for (number, bytes) in (1..).zip(&fragments) {
                observed.see(FIRST, Passage::Entered, number, bytes);
            }
            for (number, bytes) in (1..).zip(&fragments) {
                observed.see(FIRST, if number == 1 { lost } else { Passage::Left }, number, bytes);
            }
            let counted = observed.counted();
            assert_eq!((counted.segments_sent, counted.segments_arrived), (1, 0), "{lost:?}");
        }
    }

    #[test]
    fn what_has_ended_is_not_remembered() {
        let other = |protocol| {
            let mut bytes = Vec::new();
            let header = Ipv4Header { protocol, ..Ipv4Header::parse(&datagram(0)).unwrap().0 };
            Ipv4Header { payload_len: 100, ..header }.emit(&mut bytes);
            bytes.extend([7; 100]);
            bytes
        };
        for bytes in [datagram(100), other(protocol::UDP), other(200)] {
            for end in
                [Passage::Left, Passage::Lost(DropCause::Loss), Passage::Undeliverable, Passage::Discarded]
            {
                let mut observed = Observed::new();
                observed.see(FIRST, Passage::Entered, 1, &bytes);
                assert_eq!(observed.books.datagrams.remembered(), 1);
                observed.see(FIRST, end, 1, &bytes);
                assert_eq!(observed.books.datagrams.remembered(), 0, "{end:?}");
            }
            let mut observed = Observed::new();
            observed.see(FIRST, Passage::Refused(DropCause::QueueFull), 0, &bytes);
            assert_eq!(observed.books.datagrams.remembered(), 0);
        }
    }

    #[test]
    fn what_a_handover_moves_to_another_queue_is_not_sent_again() {
        for pieces in [vec![datagram(500)], fragment(&datagram(1000), 600).unwrap()] {
            let mut observed = Observed::new();
            for (way, taken, out) in [(FIRST, 10, Passage::TakenBack), (SECOND, 20, Passage::Left)] {
                for (passage, bytes) in [Passage::Entered, out].into_iter().flat_map(|passage| {
                    (0_u64..).zip(&pieces).map(move |(place, bytes)| ((passage, place), bytes))
                }) {
                    observed.see(way, passage.0, taken + passage.1, bytes);
                }
            }
            let counted = observed.counted();
            assert_eq!((counted.segments_sent, counted.segments_retransmitted), (1, 0));
            assert_eq!((counted.segments_arrived, counted.network_duplicates), (1, 0));
            assert_eq!(observed.books.packets_on_links(), 0);
        }
    }
}
